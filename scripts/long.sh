#!/usr/bin/env bash
# Runs what .ci/run leaves out, before a release and after changes to privacy, sampling, dp or random:
#   scripts/long.sh [STAGE …]      stages: tests formats wheels flower kills sanitizers tidy inverses planted fuzz (default: all of them, some six hours on two cores)
# tests: all tests with all trials; formats: models of all kinds in all formats, with how much their forecasts differ; wheels: all of tsdp installed without a compiler; flower: three sites in its simulation engine; kills: runs killed 200 times, and 50 times on the fake device; sanitizers: all tests without LibTorch; tidy: all
# files; inverses: 2000 random settings of the accountant; planted: every planted error; fuzz: an hour. Continues after
# a stage that fails; exit code 1 if one did.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"
cd -- "$tsdp_root" || exit 1

long_tests() { TSDP_TRIALS=full bash scripts/test.sh; }
long_formats() {
  (cd python && TSDP_FORMATS=all TSDP_BIN=$tsdp_root/build/release/bin PYTHONPATH=$tsdp_root/python/src "$tsdp_root/.venv/bin/python3" -m pytest -sq -p no:cacheprovider tests/test_formats.py -k other_formats)
}
long_wheels() { .venv/bin/python3 tests/cli/wheels.py --bin build/release/bin --all; }
long_flower() {
  local flower=$tsdp_root/build/flower
  python3 -m venv "$flower" && "$flower/bin/pip" install --quiet "flwr[simulation]" || return 1
  .venv/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$("$flower/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
  (cd python && TSDP_BIN=$tsdp_root/build/release/bin PYTHONPATH=$tsdp_root/python/src "$flower/bin/python3" -m pytest -q -p no:cacheprovider tests/test_federated.py -k flower)
}
long_kills() {
  local mode
  for mode in keyed reproducible; do
    python3 tests/cli/kill_and_resume.py --mode "$mode" --kills 200 --program build/release/bin/tsdp-train --config configs/exchange_rate.yaml || return 1
  done
  local settings
  for settings in "" "sampling.top_level=poisson" \
    "privacy.relation=series sampling.top_level=balls_in_bins privacy.noise_multiplier=60" \
    "privacy.relation=series sampling.top_level=balls_in_bins privacy.noise_multiplier=300 privacy.noise.mechanism=blt"; do
    # shellcheck disable=SC2086
    python3 tests/cli/kill_and_resume.py --mode keyed --kills 50 --program build/release/tests/fake_device_train --config configs/exchange_rate.yaml \
      ${settings:+$(printf -- '--set=%s ' $settings)} || return 1
  done
  .venv/bin/python3 tests/cli/ranks.py --bin build/release/bin --kills 100
}
long_sanitizers() {
  tsdp_configure asan && tsdp_build asan all && ctest --preset asan --parallel "$(nproc)"
}
long_tidy() { bash scripts/tidy.sh --all; }
long_inverses() { bash scripts/inverses.sh; }
long_planted() { bash scripts/planted_errors.sh; }
long_fuzz() { bash scripts/fuzz.sh --seconds 3600; }

stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(tests formats wheels flower kills sanitizers tidy inverses planted fuzz)
for stage in "${stages[@]}"; do
  declare -F "long_$stage" >/dev/null || tsdp_fail "found the stage '$stage'" "give some of: tests formats wheels flower kills sanitizers tidy inverses planted fuzz"
done
failed=()
for stage in "${stages[@]}"; do
  tsdp_say "long: $stage"
  "long_$stage" || failed+=("$stage")
done
[ ${#failed[@]} -eq 0 ] || tsdp_fail "long: failed: ${failed[*]}" "see above"
tsdp_say "long: all passed"
