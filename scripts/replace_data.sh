#!/usr/bin/env bash
# Replaces the shipped data sets whose terms are unclear (data/README.md) with series made from a seed, for those who
# may not pass the originals on:
#   scripts/replace_data.sh [FOLDER]      (default: data/)
# Names, forms, numbers of series and calendars are the same, so every configuration still runs; scores differ, and the
# tests that know the real values fail. `git checkout data` brings the shipped files back.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)
into=${1:-$root/data}
program=${TSDP_BIN:-$root/build/release/bin}/tsdp-data
[ -x "$program" ] || { echo "replace_data.sh: no $program; run scripts/train.sh first, or set TSDP_BIN" >&2; exit 1; }
[ -d "$into" ] || { echo "replace_data.sh: no folder $into; expected one that is there" >&2; exit 1; }

# Makes all of them next to the folder first, so that a failure changes nothing.
made=$(mktemp -d "$into/.made.XXXXXX")
trap 'rm -rf -- "$made"' EXIT
generate() { "$program" generate "$2" --series "$3" --length "$4" --seed "$5" --output "$made/$1"; }
generate exchange_rate.txt.gz daily 8 7588 1
generate gefcom2012_load.txt.gz hourly 20 39414 1
generate metr_la_week_10min.txt.gz 10_minutes 207 1008 1
generate m4_hourly.txt.gz hourly 414 1008 2
"$program" convert "$made/m4_hourly.txt.gz" "$made/m4_hourly.tsf.gz" --frequency 1h --start 1970-01-01
rm -f -- "$made/m4_hourly.txt.gz"
mv -f -- "$made"/*.gz "$into/"
(cd "$into" && sha256sum -- exchange_rate.txt.gz gefcom2012_load.txt.gz m4_hourly.tsf.gz metr_la_week_10min.txt.gz >SHA256SUMS \
  && if [ -e sf_traffic_one_sensor.txt.gz ]; then sha256sum -- sf_traffic_one_sensor.txt.gz >>SHA256SUMS; fi)
echo "replace_data.sh: $into holds made series in place of exchange_rate, gefcom2012_load, m4_hourly and metr_la_week_10min"
