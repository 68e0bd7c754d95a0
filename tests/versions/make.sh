#!/usr/bin/env bash
# Lets the programs of a version write the files that later versions are tested with (earlier_versions.py):
#   tests/versions/make.sh FOLDER_OF_PROGRAMS VERSION [OPTIONS OF tsdp-train]
# Needs that version's tsdp-train, tsdp-forecast and tsdp-account; 0.1 had no tsdp-forecast, and budgets came with 0.5.
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
bin=$(readlink -f -- "$1")
into=$here/$2
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cp -- "$here/series.txt" "$here/config.yaml" "$work/"
cd -- "$work"
mkdir -p -- "$into"
if [ ! -e "$into/configs" ]; then
  mkdir "$into/configs"
  cp -- "$here"/../../configs/{default,exchange_rate,m4_hourly}.yaml "$into/configs/"
fi

budget=()
if "$bin/tsdp-account" --help | grep -q budget; then
  "$bin/tsdp-account" budget budget.json --epsilon 8 --delta 1e-5
  budget=(--budget budget.json)
fi
"$bin/tsdp-train" --config config.yaml --output finished --threads 1 --quiet "${budget[@]}" "${@:3}"
# A run that was stopped in the middle, with its checkpoint.
"$bin/tsdp-train" --config config.yaml --set privacy.noise_multiplier=50 --set training.max_epochs=1000000 --output stopped --threads 1 --quiet "${@:3}" &
sleep 2
kill -INT $!
wait $! || true # with a code that differed between versions
if [ -x "$bin/tsdp-forecast" ]; then
  forecast() {
    "$bin/tsdp-forecast" --model "$1" --input series.txt --format lstnet --frequency 1h --start "2024-01-01 00:00" \
      --quantiles 0.1,0.5,0.9 --output "$2" --threads 1 --quiet
  }
  forecast finished/model.pt "$into/forecast.csv"
  mkdir "$into/models"
  for name in simple_ff itransformer deepar; do
    lags=()
    [ "$name" != deepar ] || lags=(--set 'model.lags=[1,2,24]')
    "$bin/tsdp-train" --config config.yaml --set "model.name=$name" "${lags[@]}" --output "$name" --threads 1 --quiet
    cp -- "$name/model.pt" "$into/models/$name.pt"
    forecast "$name/model.pt" "$into/models/$name.csv"
  done
fi
mkdir "$into/finished" "$into/stopped"
cp -- finished/config.yaml finished/privacy.json finished/model.pt "$into/finished/"
cp -r -- stopped/config.yaml stopped/privacy.json stopped/private "$into/stopped/"
find "$into/stopped/private" -type f ! -path '*/checkpoints/*' -delete
[ ! -e budget.json ] || [ -e "$into/budget.json" ] || cp -- budget.json "$into/"
du -sh -- "$into"
