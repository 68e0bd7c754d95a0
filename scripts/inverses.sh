#!/usr/bin/env bash
# Asks `epsilon`, `delta`, `steps` and `sigma` for random settings of all rows whether they are inverses of each other:
#   scripts/inverses.sh [SETTINGS [SEED]]
# 2000 settings by default, about half an hour of one core. CTest runs 18 of them (Inverses).
set -euo pipefail
cd "$(dirname "$0")/.."
TSDP_INVERSES=${1:-2000} TSDP_INVERSES_SEED=${2:-1} exec build/release/tests/inverses_test --gtest_filter=Inverses.OfAllRowsAtRandom
