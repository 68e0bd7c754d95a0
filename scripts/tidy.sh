#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the sources of everything that needs no LibTorch, without tests and benchmarks:
#   scripts/tidy.sh [--all | FILE …]
# By default, checks files changed since four hours before the newest commit, or, if that is longer, since the branch left
# origin/main; and those that include a changed header. All files take a quarter of an hour on two cores and are for
# scripts/long.sh. Exit code 1 if it finds anything. If clang-tidy is not available: exit code 77, or 1 on a build
# server (CI).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

tsdp_lock
tsdp_packages
if ! command -v clang-tidy >/dev/null && { [ "${TSDP_PACKAGES:-}" = skip ] || ! (tsdp_install_packages clang-tidy); }; then
  tsdp_say "clang-tidy: not there, and not installed; nothing is checked"
  exit "$([ -n "${CI:-}" ] && echo 1 || echo 77)"
fi
tsdp_configure tidy -DTSDP_BUILD_TESTS=OFF -DTSDP_BUILD_BENCHMARKS=OFF
tsdp_unlock

build=$tsdp_root/build/tidy

# The files that are compiled, in an order that keeps all cores busy to the end: longest first.
compiled() { sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | grep -v "^$build/" | sort -u | xargs ls -S; }

# Of these, the files that changed or that include a header that did. All of them if nothing tells (a shallow clone, or
# no git).
changed() {
  local newest since base names headers
  newest=$(git -C "$tsdp_root" show -s --format=%ct HEAD 2>/dev/null) || { compiled; return; }
  since=$(git -C "$tsdp_root" rev-list -1 --before="$((newest - 14400))" HEAD)
  [ -n "$since" ] || { compiled; return; }
  base=$(git -C "$tsdp_root" merge-base HEAD origin/main 2>/dev/null) || base=$since
  if git -C "$tsdp_root" merge-base --is-ancestor "$base" "$since"; then since=$base; fi
  names=$(git -C "$tsdp_root" diff --name-only --diff-filter=d "$since" -- '*.cpp' '*.h')
  headers=$(sed -n 's#^\(include\|src\)/\(.*[.]h\)$#"\2"#p; s#^\(cli\|models\)/\(.*[.]h\)$#"\2"#p' <<<"$names")
  compiled | while IFS= read -r file; do
    if grep -qxF -- "${file#"$tsdp_root"/}" <<<"$names" || { [ -n "$headers" ] && grep -qF -f <(printf '%s\n' "$headers") -- "$file"; }; then
      printf '%s\n' "$file"
    fi
  done
}

files=("$@")
if [ "${1:-}" = --all ]; then
  mapfile -t files < <(compiled)
elif [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(changed)
fi
if [ ${#files[@]} -eq 0 ]; then
  tsdp_say "clang-tidy: no source changed"
  exit 0
fi
tsdp_say "clang-tidy: ${#files[@]} files, $(tsdp_jobs) at a time…"
log=$tsdp_logs/tidy.log
status=0
printf '%s\0' "${files[@]}" \
  | xargs -0 -n 1 -P "$(tsdp_jobs)" clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option >"$log" 2>"$log.progress" || status=1
grep -E '(error|warning): ' "$log" | sort -u | sed "s#^$tsdp_root/##" || true
[ "$status" -eq 0 ] || tsdp_fail "clang-tidy: found the above ($log)" "mend it, or say in .clang-tidy why a check does not fit here"
tsdp_say "clang-tidy: nothing found in $SECONDS s"
