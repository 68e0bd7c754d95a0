#!/usr/bin/env bash
# Puts series made from a seed in place of the shipped data sets whose terms are unclear (data/README.md), for those who may not pass them on:
#   scripts/replace_data.sh [FOLDER]      (default: data/)
# Same names, forms, numbers of series and calendars, so every configuration still runs; scores are other ones, and the tests that
# know the real values fail. `git checkout data` brings the shipped files back.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)
into=${1:-$root/data}
program=${TSDP_BIN:-$root/build/release/bin}/tsdp-data
[ -x "$program" ] || { echo "replace_data.sh: no $program; run scripts/train.sh first, or set TSDP_BIN" >&2; exit 1; }
[ -d "$into" ] || { echo "replace_data.sh: no folder $into; expected one that is there" >&2; exit 1; }

# replace FILE FAMILY SERIES LENGTH
replace() {
  "$program" generate "$2" --series "$3" --length "$4" --seed 1 --output "$into/.new.txt.gz"
  mv -- "$into/.new.txt.gz" "$into/$1"
}
replace exchange_rate.txt.gz daily 8 7588
replace gefcom2012_load.txt.gz hourly 20 39414
replace metr_la_week_10min.txt.gz 10_minutes 207 1008
"$program" generate hourly --series 414 --length 1008 --seed 2 --output "$into/.new.txt.gz"
"$program" convert "$into/.new.txt.gz" "$into/.new.tsf.gz" --frequency 1h --start 1970-01-01
mv -- "$into/.new.tsf.gz" "$into/m4_hourly.tsf.gz"
rm -f -- "$into/.new.txt.gz"
(cd "$into" && sha256sum -- *.gz >SHA256SUMS)
echo "replace_data.sh: $into holds made series in place of exchange_rate, gefcom2012_load, m4_hourly and metr_la_week_10min"
