#!/usr/bin/env bash
# Installs what is missing, builds the programs, and trains:
#   scripts/train.sh [--config FILE] [options of tsdp-train]
# Without --config (or --resume), uses configs/default.yaml. What is already done is not repeated.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

configuration=(--config "$tsdp_root/configs/default.yaml")
for argument in "$@"; do
  case $argument in
    --config | --config=* | --resume | --resume=* | --version) configuration=() ;;
    --help | -h)
      [ ! -x "$tsdp_root/build/release/bin/tsdp-train" ] || exec "$tsdp_root/build/release/bin/tsdp-train" --help
      tsdp_help --help
      ;;
  esac
done

tsdp_set_up programs
exec "$tsdp_root/build/release/bin/tsdp-train" "${configuration[@]}" "$@"
