#!/usr/bin/env bash
# Builds the wheels that need no compiler to install, and puts them into FOLDER (default: dist):
#   scripts/wheels.sh [--account] [FOLDER]
# tsdp_account: the accountant (tsdp-account, tsdp-data, tsdp.accounting), without LibTorch; with --account this one alone.
# tsdp: all other programs and the Python package, for the torch that they were built with, which is installed beside them.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

wheels=(account tsdp)
output=dist
for argument in "$@"; do
  case $argument in
    -h | --help)
      sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --account) wheels=(account) ;;
    -*)
      tsdp_say "wheels.sh: found the option '$argument'; expected --account or a folder"
      exit 2
      ;;
    *) output=$argument ;;
  esac
done
output=$(readlink -m -- "$output")

tsdp_lock
tsdp_packages
tsdp_prepare_ccache
tools=$tsdp_root/build/wheels
if [ ! -e "$tools/ready" ]; then
  tsdp_say "wheels: installing the tools that make them…"
  tsdp_new_log wheels
  rm -rf -- "$tools"
  if ! { tsdp_logged wheels python3 -m venv "$tools" \
    && tsdp_logged wheels "$tools/bin/python3" -m pip --disable-pip-version-check --no-input install -r "$tsdp_root/scripts/requirements-wheels.txt"; }; then
    tsdp_fail_with_log "wheels: installing their tools" "$tsdp_logs/wheels.log" "check the network and run again"
  fi
  : >"$tools/ready"
fi
# build_programs NAME CMAKE_ARGUMENTS -- PROGRAMS: into build/wheels-NAME/bin. Without Parquet, whose libraries are larger than all the rest.
build_programs() {
  local name=$1 arguments=()
  shift
  if command -v ccache >/dev/null; then arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  while [ "$1" != -- ]; do
    arguments+=("$1")
    shift
  done
  shift
  local build=$tsdp_root/build/wheels-$name  # as deep as build/release, so that ccache finds what that compiled alike
  tsdp_say "wheels: building the programs of $name…"
  tsdp_new_log "wheels-$name"
  if ! { tsdp_logged "wheels-$name" cmake -S "$tsdp_root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSDP_PARQUET=OFF -DTSDP_BUILD_TESTS=OFF \
    -DTSDP_BUILD_BENCHMARKS=OFF "${arguments[@]}" \
    && tsdp_logged "wheels-$name" cmake --build "$build" --parallel "${TSDP_JOBS:-$(nproc)}" --target "$@"; }; then
    tsdp_fail_with_log "wheels: building the programs of $name" "$tsdp_logs/wheels-$name.log" "mend what it says and run again"
  fi
}

build_programs account -DTSDP_WITH_TORCH=OFF -- tsdp-account tsdp-data
if [ "${wheels[*]}" != account ]; then
  tsdp_torch
  [ -n "$tsdp_python" ] || tsdp_fail "wheels: the LibTorch in $tsdp_torch_dir comes with no Python, so no wheel can ask for it" "run again with TSDP_TORCH=cpu"
  tsdp_describe_torch
  build_programs tsdp "${tsdp_torch_arguments[@]}" -- tsdp-audit tsdp-evaluate tsdp-export tsdp-forecast tsdp-sweep tsdp-train
fi
tsdp_unlock
exec "$tools/bin/python3" "$tsdp_root/scripts/wheels.py" --root "$tsdp_root" --output "$output" ${tsdp_python:+--torch "$tsdp_python"}
