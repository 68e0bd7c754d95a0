#!/usr/bin/env bash
# Installs what is missing, builds Release, and runs the benchmarks:
#   scripts/bench.sh [--json FILE] [--only PATTERN]
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

tsdp_help "$@"
tsdp_set_up tsdp-bench
exec "$tsdp_root/build/release/bin/tsdp-bench" "$@"
