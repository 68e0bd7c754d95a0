#!/usr/bin/env bash
# Builds and runs the unit tests of one module, for quick use between two edits:
#   scripts/check.sh MODULE [options of ctest]      MODULE as in CONTRIBUTING.md, such as data or privacy/adaptive
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

module=${1:-}
[ -d "$tsdp_root/tests/$module" ] && [ -n "$module" ] \
  || tsdp_fail "found the module '$module'" "give one that has tests: $(cd "$tsdp_root/tests" && find . -name '*_test.cpp' -printf '%h\n' | sort -u | sed 's#^\./##' | grep -Ev '^(cli|examples)$' | paste -sd ' ')"
shift
name=$(basename "$module")
tsdp_set_up "${name}_test"
exec ctest --test-dir "$tsdp_root/build/release" --output-on-failure --no-tests=error --parallel "$(nproc)" -L "^$name\$" "$@"
