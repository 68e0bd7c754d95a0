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
if "$bin/tsdp-account" budget --help 2>/dev/null | grep -q -- --delta; then
  "$bin/tsdp-account" budget budget.json --epsilon 8 --delta 1e-5
  budget=(--budget budget.json)
fi
"$bin/tsdp-train" --config config.yaml --output finished --threads 1 --quiet "${budget[@]}" "${@:3}"
# A run that was stopped in the middle, with its checkpoint.
"$bin/tsdp-train" --config config.yaml --set privacy.noise_multiplier=50 --set training.max_epochs=1000000 --output stopped --threads 1 --quiet "${@:3}" &
sleep 2
kill -INT $!
wait $! || [ $? -eq 130 ]
if [ -x "$bin/tsdp-forecast" ]; then
  "$bin/tsdp-forecast" --model finished/model.pt --input series.txt --format lstnet --frequency 1h --start "2024-01-01 00:00" \
    --quantiles 0.1,0.5,0.9 --output forecast.csv --threads 1 --quiet
  cp -- forecast.csv "$into/"
fi
mkdir "$into/finished" "$into/stopped"
cp -- finished/config.yaml finished/privacy.json finished/model.pt "$into/finished/"
cp -r -- stopped/config.yaml stopped/privacy.json stopped/private "$into/stopped/"
find "$into/stopped/private" -type f ! -path '*/checkpoints/*' -delete
[ ! -e budget.json ] || cp -- budget.json "$into/"
du -sh -- "$into"
