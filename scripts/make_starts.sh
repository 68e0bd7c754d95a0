#!/usr/bin/env bash
# Makes the shipped starting weights anew: starts/FAMILY_MODEL.safetensors, each trained only on synthetic series
# (configs/pretrain).
# Usage: scripts/make_starts.sh [FAMILY_MODEL ...]; without names, makes all of them. Takes about ten minutes on one
# core.
set -euo pipefail
CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

names=("$@")
[ ${#names[@]} -gt 0 ] || names=(hourly_dlinear hourly_simple_ff hourly_itransformer hourly_deepar daily_dlinear daily_simple_ff
  daily_itransformer weekly_dlinear weekly_simple_ff monthly_dlinear monthly_simple_ff)
bin=${TSDP_BIN:-$PWD/build/release/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in "${names[@]}"; do
  family=${name%%_[dsi]*}
  model=${name#"$family"_}
  config=pretrain/$family.yaml
  [ ! -e "configs/pretrain/$name.yaml" ] || config=pretrain/$name.yaml
  "$bin/tsdp-train" --config "$config" --set "model.name=$model" --threads 1 --output "$work/$name"
  python3 - "$work/$name/model.pt" "starts/$name.safetensors" <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    member = next(name for name in archive.namelist() if name.endswith("extra/tsdp.safetensors"))
    open(sys.argv[2], "wb").write(archive.read(member))
PY
done
