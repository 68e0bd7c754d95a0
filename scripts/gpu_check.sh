#!/usr/bin/env bash
# Builds against the LibTorch of a GPU machine without a network, runs the tests that a GPU can change there, trains one
# model from start to end with a resume in between, and measures steps.
#   scripts/gpu_check.sh carry       where there is a network: fetches the libraries that such a machine lacks into .gpu/ (25 MB,
#                                    ignored by git); copy the checkout with it
#   scripts/gpu_check.sh [FOLDER]    on the GPU machine: builds, tests, trains, measures; results go to FOLDER (default
#                                    build/gpu/out)
# Needs on the GPU machine: Python 3 with a CUDA build of torch, CMake, Ninja, a compiler, the CUDA toolkit
# (TSDP_CUDA_HOME, default /usr/local/cuda). Exits with 0 only if every test ran and passed: a skipped one is a failure
# here. Takes at most ten minutes on 16 cores. TSDP_GPU_BUILD_SECONDS (default 240) bounds the build.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)
carried=$root/.gpu
packages=(libyaml-cpp-dev libyaml-cpp0.7 libspdlog-dev libspdlog1.10 libfmt-dev libfmt9 libfftw3-dev libfftw3-double3
  libnlopt-dev libnlopt0
  libboost1.74-dev libcli11-dev nlohmann-json3-dev libgtest-dev googletest libssl-dev libssl3 zlib1g-dev zlib1g libeigen3-dev
  libzip-dev libzip4 libbz2-1.0 libbz2-dev liblzma5 liblzma-dev libzstd1 libzstd-dev pkgconf pkgconf-bin libpkgconf3)

say() { printf 'tsdp: %s\n' "$*" >&2; }
fail() {
  say "$1"
  say "mend: $2"
  exit 1
}

if [ "${1:-}" = carry ]; then
  mkdir -p "$carried/partial"
  (cd "$carried" && apt-get download "${packages[@]}") || fail "packages: cannot be fetched" "apt-get update, then again"
  say "carried: $(du -sh "$carried" | cut -f 1) in $carried"
  exit
fi
[ -d "$carried" ] || fail "no $carried" "scripts/gpu_check.sh carry, where there is a network, and copy the folder with the checkout"

out=${1:-$root/build/gpu/out}
deps=$root/build/gpu/deps
build=$root/build/gpu/build
arch=$(uname -m)-linux-gnu
mkdir -p "$out" "$deps/main" "$deps/log"
# spdlog's fmt 9 is kept apart: LibTorch's headers bring fmt 12, and whichever folder comes first would win.
for deb in "$carried"/*.deb; do
  case $deb in *spdlog* | *libfmt*) dpkg -x "$deb" "$deps/log" ;; *) dpkg -x "$deb" "$deps/main" ;; esac
done
# Debian's links for the linker are absolute where the library lies in /lib; here they would point out of the folder.
find "$deps" -lname '/*' -name '*.so*' | while read -r link; do
  target=$(readlink "$link")
  [ ! -e "$deps/main$target" ] || ln -sfn "$deps/main$target" "$link"
done
export PKG_CONFIG=$deps/main/usr/bin/pkgconf PKG_CONFIG_LIBDIR=$deps/main/usr/lib/$arch/pkgconfig PKG_CONFIG_SYSROOT_DIR=$deps/main
export LD_LIBRARY_PATH=$deps/main/usr/lib/$arch:$deps/main/lib/$arch:$deps/log/usr/lib/$arch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# A private step refuses to run with these.
unset NVIDIA_TF32_OVERRIDE TORCH_ALLOW_TF32_CUBLAS_OVERRIDE CUBLAS_EMULATE_SINGLE_PRECISION
torch=$(python3 -c 'from importlib.util import find_spec; print(find_spec("torch").submodule_search_locations[0] + "/share/cmake")') || fail "python3 has no torch" "install a CUDA build of it"
nvidia=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13
cuda=${TSDP_CUDA_HOME:-/usr/local/cuda}

started=$SECONDS
say "configuring $build…"
# Without Parquet: the Arrow of the machine's Python is another than the one we know.
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSDP_WARNINGS_AS_ERRORS=OFF -DTSDP_PARQUET=OFF \
  "-DCMAKE_PREFIX_PATH=$torch;$deps/main/usr;$deps/log/usr" -DOPENSSL_USE_STATIC_LIBS=ON \
  "-DCMAKE_CUDA_COMPILER=$cuda/bin/nvcc" "-DCUDA_TOOLKIT_ROOT_DIR=$cuda" -DTORCH_CUDA_ARCH_LIST=9.0 \
  "-DCUDA_nvrtc_LIBRARY=$nvidia/lib/libnvrtc.so.13" \
  "-DCMAKE_CXX_FLAGS=-isystem $nvidia/include -idirafter $deps/main/usr/include -idirafter $deps/main/usr/include/$arch" \
  -DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined >"$out/configure.log" 2>&1 \
  || { tail -n 40 "$out/configure.log" >&2; fail "configuring failed" "set right what $out/configure.log names"; }
say "building…"
timeout "${TSDP_GPU_BUILD_SECONDS:-240}" cmake --build "$build" --target cuda_test tsdp-bench tsdp-train tsdp-evaluate tsdp-data \
  >"$out/build.log" 2>&1 \
  || { grep -m 20 -E 'error|FAILED' "$out/build.log" >&2; fail "the build failed or took too long" "see $out/build.log"; }
say "built in $((SECONDS - started)) s"

cd "$build"
status=0
# step NAME SECONDS COMMAND…: its output goes to NAME.log; a failure is remembered.
step() {
  local name=$1 seconds=$2 code=0
  shift 2
  timeout "$seconds" "$@" >"$out/$name.log" 2>&1 || code=$?
  [ "$code" -eq 0 ] && return
  say "$name: ended with $code; see $out/$name.log"
  status=1
}

say "testing…"
step cuda_test 120 tests/cuda_test --gtest_color=no
grep -E 'FAILED|PASSED' "$out/cuda_test.log" | tail -n 12 || true
if grep -q '  SKIPPED ' "$out/cuda_test.log"; then
  say "cuda_test: tests were skipped, which is a failure here: is there a GPU that LibTorch sees?"
  status=77
fi
say "training a model, with a stop in between…"
runs=$(mktemp -d)
step data 30 bin/tsdp-data generate traffic-like --series 862 --length 4000 --seed 11 --output "$runs/data.txt.gz"
settings=(--config "$root/configs/lookalike_traffic.yaml" --device cuda --set "dataset.path=$runs/data.txt.gz" --set model.start=fresh
  --set model.prior=none --set model.context_length=96 --set sampling.batch_size=256 --set optimizer.learning_rate=1e-3
  --set privacy.noise_multiplier=4 --set privacy.composition=symmetrised --set training.max_epochs=1500
  --set training.reproducible=true --set training.checkpoint_seconds=0.5)
step whole 60 bin/tsdp-train "${settings[@]}" --output "$runs/whole"
bin/tsdp-train "${settings[@]}" --output "$runs/parts" >"$out/killed.log" 2>&1 &
process=$!
for _ in $(seq 300); do
  grep -q '"step":[1-9][0-9][0-9]' "$runs/parts/private/metrics.jsonl" 2>/dev/null && break
  sleep 0.1
done
kill -KILL "$process" 2>/dev/null || true
wait "$process" 2>/dev/null || true
step resumed 60 bin/tsdp-train --resume "$runs/parts"
for device in cuda cpu; do
  step "evaluated_$device" 60 sh -c '"$@" 2>/dev/null' sh bin/tsdp-evaluate --run "$runs/whole" --device "$device" --json
done
python3 - "$runs" "$out" <<'PYTHON' || status=1
import json
import sys
import torch
runs, out = sys.argv[1:]
whole, parts = (torch.jit.load(f"{runs}/{name}/model.pt", map_location="cpu").state_dict() for name in ("whole", "parts"))
same = all(torch.equal(whole[name], parts[name]) for name in whole)
print("killed and resumed:", "the same model, bit for bit" if same else "ANOTHER MODEL")
scores = [json.load(open(f"{out}/evaluated_{device}.log"))["metrics"] for device in ("cuda", "cpu")]
crps = [score["mean_weighted_quantile_loss"] for score in scores]
print("CRPS on the GPU and on the CPU:", *crps)
sys.exit(not same or abs(crps[0] - crps[1]) > 1e-3 * crps[1])
PYTHON
rm -rf "$runs"

say "measuring…"
step bench 90 bin/tsdp-bench --only step --device cuda --seconds 0.2 --json "$out/step_cuda.json"
grep 'batch 256' "$out/bench.log" || true
say "looking for memory errors…"
if sanitizer=$(command -v compute-sanitizer || ls "$cuda/bin/compute-sanitizer" 2>/dev/null); then
  step sanitizer 60 "$sanitizer" --error-exitcode 9 tests/cuda_test --gtest_filter='Cuda.TakesTheStepsOfTheCpu/*'
fi
exit "$status"
