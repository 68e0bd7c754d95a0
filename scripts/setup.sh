#!/usr/bin/env bash
# Only the set-up that train.sh, test.sh and bench.sh begin with, up to and including a stage:
#   scripts/setup.sh [packages|torch|configure|programs|all]      (default: programs)
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

tsdp_help "$@"
stage=${1:-programs}
case $stage in
  packages | torch | configure | programs | all) ;;
  *)
    tsdp_say "setup.sh: no stage '$stage'; there are: packages, torch, configure, programs, all"
    exit 2
    ;;
esac

tsdp_lock
tsdp_packages
[ "$stage" != packages ] || exit 0
tsdp_torch
[ "$stage" != torch ] || exit 0
if [ "$stage" = all ]; then
  tsdp_test_packages
  tsdp_test_python
fi
tsdp_configure_release
[ "$stage" != configure ] || exit 0
tsdp_build release "$stage"
