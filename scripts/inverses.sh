#!/usr/bin/env bash
# Asks whether `epsilon`, `delta`, `steps` and `sigma` are inverses of each other, for random settings of all rows:
#   scripts/inverses.sh [SETTINGS [SEED [FIRST]]]
# 2000 settings by default, about half an hour on one core; those before number FIRST are drawn and not asked. CTest runs
# 18 of them (Inverses).
set -euo pipefail
CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
TSDP_INVERSES=${1:-2000} TSDP_INVERSES_SEED=${2:-1} TSDP_INVERSES_FIRST=${3:-0} exec build/release/tests/inverses_test --gtest_filter=Inverses.OfAllRowsAtRandom
