#!/usr/bin/env bash
# Plants each error of tests/planted/ in a copy of the tree and checks that the test it names turns red:
#   scripts/planted_errors.sh [--list] [--only PATTERN]
# A patch begins with lines of words: what is wrong, `Targets:` (what ninja builds) and `Caught by:` (names of tests,
# for ctest). Fails if a patch no longer applies or compiles, or if a named test is missing or stays green. All named
# tests must be green without patches. Takes minutes per patch; meant to be run by hand before a release. The copy is
# build/planted/source, the build build/planted/release; results go to build/planted/results.md.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

planted_only=''
planted_list=''
while [ $# -gt 0 ]; do
  case $1 in
    --only) planted_only=${2:-}; shift 2 || tsdp_fail "--only: found nothing after it" "give a pattern of names of patches" ;;
    --list) planted_list=yes; shift ;;
    *) tsdp_fail "found '$1'" "give --list, --only PATTERN or nothing" ;;
  esac
done

patches=()
for patch in "$tsdp_root"/tests/planted/*.patch; do
  name=$(basename "$patch" .patch)
  if [ -z "$planted_only" ] || [[ $name =~ $planted_only ]]; then patches+=("$patch"); fi
done
[ "${#patches[@]}" -gt 0 ] || tsdp_fail "no patch of tests/planted has a name like '$planted_only'" "see --list"

field() { sed -n "s/^$1: //p" "$2" | head -n 1; }

if [ -n "$planted_list" ]; then
  for patch in "${patches[@]}"; do printf '%s\t%s\n' "$(basename "$patch" .patch)" "$(field 'Caught by' "$patch")"; done
  exit 0
fi

tsdp_lock
tsdp_packages
tsdp_torch
tsdp_unlock
source=$tsdp_root/build/planted/source
build=$tsdp_root/build/planted/release
results=$tsdp_root/build/planted/results.md
mkdir -p "$source" "$build"
git -C "$tsdp_root" ls-files --cached --others --exclude-standard | LC_ALL=C sort >"$build.files"
(cd "$source" && find . -type f -printf '%P\n' | LC_ALL=C sort) | LC_ALL=C comm -13 "$build.files" - \
  | (cd "$source" && tr '\n' '\0' | xargs -0 -r rm -f --)
# Only copies what differs, with a new time: an object left by an earlier, planted source must not pass for this one's.
while IFS= read -r file; do
  if [ -f "$tsdp_root/$file" ] && ! cmp -s -- "$tsdp_root/$file" "$source/$file"; then
    mkdir -p -- "$(dirname -- "$source/$file")"
    cp -- "$tsdp_root/$file" "$source/$file"
  fi
done <"$build.files"
tsdp_prepare_ccache
export CCACHE_BASEDIR=$source
arguments=(-DCMAKE_BUILD_TYPE=Release "-DTorch_DIR=$tsdp_torch_dir" -DTSDP_BUILD_BENCHMARKS=OFF)
if [ -n "$tsdp_python" ]; then arguments+=("-DPython3_EXECUTABLE=$tsdp_python"); fi
if command -v ccache >/dev/null; then arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
tsdp_new_log planted
tsdp_logged planted cmake -S "$source" -B "$build" -G Ninja "${arguments[@]}" \
  || tsdp_fail_with_log "planted: cmake" "$tsdp_logs/planted.log" "set right what the log names"

# build_and_test TARGETS TESTS: 0 all green, 1 all red, 2 does not build, 3 no such test, 4 some green and some red
build_and_test() {
  local targets tests test expression green=0 red=0
  read -r -a targets <<<"$1"
  tsdp_logged planted ninja -C "$build" -j "$(tsdp_jobs)" "${targets[@]}" || return 2
  readarray -t tests < <(sed 's/, */\n/g' <<<"$2")
  for test in "${tests[@]}"; do
    expression="^${test//./[.]}\$"
    ctest --test-dir "$build" -N -R "$expression" 2>/dev/null | grep -q '^Total Tests: [1-9]' || return 3
    if tsdp_logged planted ctest --test-dir "$build" --output-on-failure -R "$expression"; then green=$((green + 1)); else red=$((red + 1)); fi
  done
  if [ "$red" -eq 0 ]; then return 0; fi
  if [ "$green" -eq 0 ]; then return 1; fi
  return 4
}

failures=0
{
  printf '| planted error | caught by | result |\n| --- | --- | --- |\n'
} >"$results"
row() {
  printf '| %s | %s | %s |\n' "$1" "$2" "$3" >>"$results"
  tsdp_say "planted: $1: $3"
}

all_targets=$(for patch in "${patches[@]}"; do field Targets "$patch"; done | tr ' ' '\n' | sort -u | tr '\n' ' ')
all_tests=$(for patch in "${patches[@]}"; do field 'Caught by' "$patch"; done | sed 's/, */\n/g' | sort -u | paste -sd , -)
tsdp_say "planted: ${#patches[@]} errors; first all their tests without any"
status=0
build_and_test "$all_targets" "$all_tests" || status=$?
[ "$status" -eq 0 ] || tsdp_fail_with_log "planted: the tests without errors (status $status)" "$tsdp_logs/planted.log" "mend the tree first"

for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  tests=$(field 'Caught by' "$patch")
  if ! tsdp_logged planted patch --directory="$source" --strip=1 --forward --fuzz=0 --batch --input="$patch"; then
    row "$name" "$tests" "**no longer applies**"
    failures=$((failures + 1))
  else
    status=0
    build_and_test "$(field Targets "$patch")" "$tests" || status=$?
    case $status in
      1) row "$name" "$tests" caught ;;
      0) row "$name" "$tests" "**not caught**"; failures=$((failures + 1)) ;;
      4) row "$name" "$tests" "**not caught by all**"; failures=$((failures + 1)) ;;
      2) row "$name" "$tests" "**does not compile**"; failures=$((failures + 1)) ;;
      *) row "$name" "$tests" "**names a test that is not there**"; failures=$((failures + 1)) ;;
    esac
  fi
  # Restores the tree as it is, whatever the patch left.
  sed -n 's#^+++ b/##p' "$patch" | while read -r file; do cp -p -- "$tsdp_root/$file" "$source/$file"; touch "$source/$file"; rm -f -- "$source/$file".rej "$source/$file".orig; done
done
tsdp_say "planted: $((${#patches[@]} - failures)) of ${#patches[@]} caught ($results)"
[ "$failures" -eq 0 ]
