#!/usr/bin/env bash
# Downloads the full benchmark sets into data/ and checks each by its digest.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/fetch_data.sh [traffic|electricity|solar_10_minutes]...

Downloads the named benchmark sets into data/ (all three without a name), checks each by its digest, and skips what is
there already and right. Needs curl and a network; solar_10_minutes needs python3 to be unpacked.
TEXT
}

fail() {
  printf 'fetch_data: %s\n' "$*" >&2
  exit 1
}

data=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)/data
collection=laiguokun/multivariate-time-series-data/7f402f185cc2435b5e66aed13a3b560ed142e023
lstnet=https://raw.githubusercontent.com/$collection
zenodo=https://zenodo.org/records/4656144/files

# Git's name for a file's content: the SHA-1 of "blob <size>\0" and the content.
git_blob_of() { { printf 'blob %s\0' "$(stat -c %s -- "$1")"; cat -- "$1"; } | sha1sum | cut -d' ' -f1; }
md5_of() { md5sum < "$1" | cut -d' ' -f1; }

part=  # the download in progress, removed however this ends
trap 'rm -f -- "$part"' EXIT

# fetch FILE URL DIGEST_KIND DIGEST
fetch() {
  local file="$data/$1" url="$2" kind="$3" wanted="$4" found reason
  if [[ -f "$file" ]] && [[ "$("${kind}_of" "$file")" == "$wanted" ]]; then
    echo "$1: there already, digest right"
    return
  fi
  command -v curl > /dev/null || fail "curl is not installed; install it (apt-get install curl) and run this again"
  echo "$1: downloading from ${url%%\?*}"
  part="$file.part"
  reason="$(curl --fail --location --silent --show-error --connect-timeout 20 --output "$part" -- "$url" 2>&1)" ||
    fail "$1 could not be downloaded from $url (${reason##*$'\n'}); check the network (and https_proxy) and run this" \
      "again, or put the file into $data yourself"
  found="$("${kind}_of" "$part")"
  [[ "$found" == "$wanted" ]] ||
    fail "$1 has the wrong digest: found ${kind} $found, expected $wanted; the download was discarded, so run this" \
      "again, and if that does not help, the source has changed"
  chmod 644 -- "$part"
  mv -f -- "$part" "$file"
  echo "$1: done, digest right"
}

# Unpacks the only .tsf file of the archive next to it, unless it is already there with the archive's check sum.
unpack_solar() {
  local base="$data/solar_10_minutes_dataset" outcome
  command -v python3 > /dev/null ||
    fail "python3 is not installed; install it (apt-get install python3) and run this again"
  outcome="$(python3 - "$base.zip" "$base.tsf" 2>&1 <<'PYTHON'
import os, shutil, sys, zipfile, zlib

archive, target = sys.argv[1:]
try:
    with zipfile.ZipFile(archive) as opened:
        members = [info for info in opened.infolist() if info.filename.endswith(".tsf")]
        if len(members) != 1:
            sys.exit(f"found {len(members)} .tsf files in it; expected one")
        if os.path.isfile(target):
            check = 0
            with open(target, "rb") as there:
                while piece := there.read(1 << 20):
                    check = zlib.crc32(piece, check)
            if check == members[0].CRC:
                print("solar_10_minutes_dataset.tsf: there already, check sum right")
                sys.exit()
        try:
            with opened.open(members[0]) as packed, open(target + ".part", "wb") as out:
                shutil.copyfileobj(packed, out)  # fails if the content does not match its check sum
            os.replace(target + ".part", target)
        finally:
            if os.path.exists(target + ".part"):
                os.remove(target + ".part")
        print("solar_10_minutes_dataset.tsf: unpacked")
except (OSError, zipfile.BadZipFile) as error:
    sys.exit(str(error))
PYTHON
  )" || fail "$base.zip could not be unpacked (${outcome##*$'\n'}); remove it and run this again"
  echo "$outcome"
}

names=()
for argument in "$@"; do
  case "$argument" in
    -h | --help)
      usage
      exit 0
      ;;
    traffic | electricity | solar_10_minutes) names+=("$argument") ;;
    *)
      printf "fetch_data: found '%s'; expected traffic, electricity or solar_10_minutes\n" "$argument" >&2
      exit 2
      ;;
  esac
done
[[ ${#names[@]} -gt 0 ]] || names=(traffic electricity solar_10_minutes)

for name in "${names[@]}"; do
  case "$name" in
    traffic)
      fetch traffic.txt.gz "$lstnet/traffic/traffic.txt.gz" git_blob 63ddb74bf7602568f36056a0b1a47aa407f0a6fe
      ;;
    electricity)
      fetch electricity.txt.gz "$lstnet/electricity/electricity.txt.gz" \
        git_blob df158a9fff65428ece107200432a72c992d5e4e9
      ;;
    solar_10_minutes)
      fetch solar_10_minutes_dataset.zip "$zenodo/solar_10_minutes_dataset.zip?download=1" \
        md5 84c0de18383c911091a3cd274661b029
      unpack_solar
      ;;
  esac
done
