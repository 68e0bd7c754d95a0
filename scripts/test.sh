#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all tests:
#   scripts/test.sh [options of ctest, e.g. -L golden or -R accountant]
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

tsdp_set_up all
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}  # as the programs set it: tests run beside each other
tsdp_say "tests: ctest in build/release"
exec ctest --test-dir "$tsdp_root/build/release" --output-on-failure --no-tests=error --parallel "$(nproc)" "$@"
