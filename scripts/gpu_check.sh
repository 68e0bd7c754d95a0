#!/usr/bin/env bash
# Builds against the LibTorch of a GPU machine without a network, and runs the CUDA tests and the step benchmark there.
#   scripts/gpu_check.sh carry       where there is a network: fetches the libraries that such a machine lacks into .gpu/ (25 MB,
#                                    ignored by git); copy the checkout with it
#   scripts/gpu_check.sh [FOLDER]    on the GPU machine: builds, tests, measures; results go to FOLDER (default build/gpu/out)
# Needs on the GPU machine: Python 3 with a CUDA build of torch, CMake, Ninja, a compiler, the CUDA toolkit
# (TSDP_CUDA_HOME, default /usr/local/cuda). Exits with 0 only if every test ran and passed: a skipped one is a failure
# here. Takes at most ten minutes on 16 cores.
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
mkdir -p "$out"
# spdlog's fmt 9 is kept apart: LibTorch's headers bring fmt 12, and whichever folder comes first would win.
for deb in "$carried"/*.deb; do
  case $deb in *spdlog* | *libfmt*) dpkg -x "$deb" "$deps/log" ;; *) dpkg -x "$deb" "$deps/main" ;; esac
done
export PKG_CONFIG=$deps/main/usr/bin/pkgconf PKG_CONFIG_LIBDIR=$deps/main/usr/lib/$arch/pkgconfig PKG_CONFIG_SYSROOT_DIR=$deps/main
export LD_LIBRARY_PATH=$deps/main/usr/lib/$arch:$deps/main/lib/$arch:$deps/log/usr/lib/$arch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# A private step refuses to run with these.
unset NVIDIA_TF32_OVERRIDE TORCH_ALLOW_TF32_CUBLAS_OVERRIDE CUBLAS_EMULATE_SINGLE_PRECISION
torch=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)') || fail "python3 has no torch" "install a CUDA build of it"
nvidia=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13
cuda=${TSDP_CUDA_HOME:-/usr/local/cuda}

say "configuring $build…"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSDP_WARNINGS_AS_ERRORS=OFF \
  "-DCMAKE_PREFIX_PATH=$torch;$deps/main/usr;$deps/log/usr" -DOPENSSL_USE_STATIC_LIBS=ON \
  "-DCMAKE_CUDA_COMPILER=$cuda/bin/nvcc" "-DCUDA_TOOLKIT_ROOT_DIR=$cuda" -DTORCH_CUDA_ARCH_LIST=9.0 \
  "-DCUDA_nvrtc_LIBRARY=$nvidia/lib/libnvrtc.so.13" \
  "-DCMAKE_CXX_FLAGS=-isystem $nvidia/include -idirafter $deps/main/usr/include -idirafter $deps/main/usr/include/$arch" \
  -DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined >"$out/configure.log" 2>&1 \
  || { tail -n 40 "$out/configure.log" >&2; fail "configuring failed" "set right what $out/configure.log names"; }
say "building…"
timeout 400 cmake --build "$build" --target cuda_test dp_test wiring_test tsdp-bench tsdp-train >"$out/build.log" 2>&1 \
  || { grep -m 20 -E 'error|FAILED' "$out/build.log" >&2; fail "the build failed or took longer than 400 s" "see $out/build.log"; }

cd "$build"
status=0
say "testing…"
timeout 90 tests/cuda_test --gtest_color=no >"$out/cuda_test.log" 2>&1 || status=$?
tail -n 4 "$out/cuda_test.log"
[ "$status" -eq 0 ] || say "cuda_test: ended with $status; see $out/cuda_test.log"
if grep -q '  SKIPPED ' "$out/cuda_test.log"; then
  say "cuda_test: tests were skipped, which is a failure here: is there a GPU that LibTorch sees?"
  status=77
fi
say "measuring…"
timeout 120 bin/tsdp-bench --only step --models 'simple_ff|dlinear|itransformer' --device cuda --seconds 2 --json "$out/step_cuda.json" \
  >"$out/bench.log" 2>&1 || { status=$?; say "tsdp-bench: ended with $status; see $out/bench.log"; }
cat "$out/bench.log"
exit "$status"
