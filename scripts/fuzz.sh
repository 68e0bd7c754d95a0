#!/usr/bin/env bash
# Fuzzes everything that reads files and options: libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer,
# without LibTorch.
#
#   scripts/fuzz.sh [--seconds N] [--target NAME]… [--jobs N]
#
# N seconds for all targets together (default 600), as many at a time as there are cores. Targets are tests/fuzz/*.cpp
# with their seeds in tests/fuzz/corpus/NAME; new inputs found stay in build/asan/corpus/NAME for the next time. Prints
# what each target ran, covered and found. Exit code 1 if anything crashed, ran longer than 10 s or took more than 2 GB;
# the inputs stay in build/asan/crashes. If clang is not available: exit code 77, or 1 on a build server (CI).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

usage() {
  tsdp_say "usage: scripts/fuzz.sh [--seconds N] [--target NAME]… [--jobs N]; targets: ${targets[*]}"
  exit 2
}

seconds=600
jobs=$(nproc)
wanted=()
targets=()
for file in "$tsdp_root"/tests/fuzz/*.cpp; do
  name=$(basename "$file" .cpp)
  [ "$name" = fuzz ] || targets+=("$name")
done
while [ $# -gt 0 ]; do
  case $1 in
    --seconds | --target | --jobs) [ $# -ge 2 ] || usage ;;
    --help)
      sed -n '2,/^set /{/^# \{0,1\}/s///p}' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) usage ;;
  esac
  case $1 in
    --seconds) [[ $2 =~ ^[1-9][0-9]{0,6}$ ]] || usage; seconds=$2 ;;
    --jobs) [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || usage; jobs=$2 ;;
    --target)
      [[ " ${targets[*]} " == *" $2 "* ]] || usage
      wanted+=("$2")
      ;;
  esac
  shift 2
done
[ ${#wanted[@]} -eq 0 ] || targets=("${wanted[@]}")
[ "$jobs" -le ${#targets[@]} ] || jobs=${#targets[@]}

tsdp_lock
tsdp_packages
if ! tsdp_fuzz_packages; then exit "$([ -n "${CI:-}" ] && echo 1 || echo 77)"; fi
tsdp_configure asan
tsdp_build asan "${targets[@]/#/fuzz_}"
tsdp_unlock

build=$tsdp_root/build/asan
logs=$tsdp_logs/fuzz
mkdir -p "$build/crashes" "$logs"
each=$((seconds * jobs / ${#targets[@]}))
[ "$each" -ge 1 ] || each=1
export ASAN_OPTIONS="allow_addr2line=1:detect_stack_use_after_return=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"

# fuzz_one NAME: writes its log to build/logs/fuzz, with its exit code next to it.
fuzz_one() {
  local name=$1 status=0 dictionary=$tsdp_root/tests/fuzz/dictionaries/$1.dict arguments=()
  [ ! -e "$dictionary" ] || arguments+=("-dict=$dictionary")
  mkdir -p "$build/corpus/$name"
  "$build/fuzzers/fuzz_$name" -max_total_time="$each" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$name-" "${arguments[@]}" "$build/corpus/$name" "$tsdp_root/tests/fuzz/corpus/$name" \
    >"$logs/$name.log" 2>&1 </dev/null || status=$?
  echo "$status" >"$logs/$name.status"
}

# report NAME: one line; for a finding also what it is and how to run it again. False if there is a finding.
report() {
  local name=$1 log=$logs/$1.log runs coverage input
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  [ -n "$runs" ] || runs=$(sed -n 's/^#\([0-9]*\).*/\1/p' "$log" | tail -n 1)
  coverage=$(sed -n 's/^#.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  if [ "$(cat "$logs/$name.status")" -eq 0 ]; then
    printf '%-16s %10s runs  %6s edges  no finding\n' "$name" "${runs:-0}" "${coverage:-0}"
    return
  fi
  printf '%-16s %10s runs  %6s edges  FINDING, %s\n' "$name" "${runs:-0}" "${coverage:-0}" "${log#"$tsdp_root"/}"
  { grep -m 3 -E '^(property does not hold|==[0-9]+== ?ERROR|SUMMARY|terminate called|.*runtime error:)' "$log" || tail -n 3 "$log"; } \
    | cut -c 1-300 | sed 's/^/  | /'
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  if [ -n "$input" ]; then
    printf '  again: build/asan/fuzzers/fuzz_%s %s\n' "$name" "${input#"$tsdp_root"/}"
  fi
  return 1
}

tsdp_say "fuzzing: ${#targets[@]} targets, $each s each, $jobs at a time…"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
running=0
for name in "${targets[@]}"; do
  rm -f "$logs/$name.status"
  if [ "$running" -ge "$jobs" ]; then
    wait -n
    running=$((running - 1))
  fi
  fuzz_one "$name" &
  running=$((running + 1))
done
wait
status=0
for name in "${targets[@]}"; do report "$name" || status=1; done
exit "$status"
