#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all tests:
#   scripts/test.sh [options of ctest, e.g. -L golden or -R accountant]
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

tsdp_help "$@"
tsdp_set_up all
# As many tests as cores run beside each other, each on one: threads of two programs on the same cores wait for each other. Tests of threads say how many.
cores=$(nproc)  # which says what OMP_NUM_THREADS says
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000} OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
tsdp_say "tests: ctest in build/release"
exec ctest --test-dir "$tsdp_root/build/release" --output-on-failure --no-tests=error --parallel "$cores" "$@"
