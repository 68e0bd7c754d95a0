#!/usr/bin/env bash
# Compiles and links everything against a CUDA build of LibTorch, on a machine with or without a GPU (the programs
# themselves start only if there is a driver). Run by hand: it fetches about 2 GB and takes a quarter of an hour on two
# cores.
#   scripts/check_cuda_build.sh [folder for the build, default build/cuda]
# Needs a CUDA 13 toolkit (nvcc); TSDP_CUDA_HOME names it if it is not /usr/local/cuda.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

folder=${1:-$tsdp_root/build/cuda}
cuda=${TSDP_CUDA_HOME:-/usr/local/cuda}
[ -x "$cuda/bin/nvcc" ] || { echo "check_cuda_build.sh: no $cuda/bin/nvcc; install a CUDA 13 toolkit or set TSDP_CUDA_HOME" >&2; exit 1; }

venv=$folder/venv
if [ ! -x "$venv/bin/python" ]; then
  echo "check_cuda_build.sh: fetching LibTorch 2.11.0 for CUDA 13.0 into $venv"
  python3 -m venv "$venv"
fi
"$venv/bin/pip" install --quiet --no-deps torch==2.11.0
"$venv/bin/pip" install --quiet numpy typing_extensions sympy filelock jinja2 networkx fsspec
"$venv/bin/pip" install --quiet --no-deps nvidia-cuda-nvrtc==13.0.88 nvidia-cublas==13.0.0.19 nvidia-cusparse \
  nvidia-cusolver nvidia-cufft nvidia-curand

packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
nvidia=$packages/nvidia/cu13
cmake -S "$tsdp_root" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$packages/torch/share/cmake" -DCMAKE_CUDA_COMPILER="$cuda/bin/nvcc" \
  -DCUDA_TOOLKIT_ROOT_DIR="$cuda" -DTORCH_CUDA_ARCH_LIST=9.0 \
  -DCUDA_nvrtc_LIBRARY="$nvidia/lib/libnvrtc.so.13" \
  -DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST \
  -DCMAKE_CXX_FLAGS="-isystem $nvidia/include" -DCMAKE_EXE_LINKER_FLAGS="-Wl,--allow-shlib-undefined"
cmake --build "$folder/build" -- -k 0 programs tsdp-bench cuda_test dp_test wiring_test
version=$("$venv/bin/python" -c 'from importlib.metadata import version; print(version("torch"))')
echo "check_cuda_build.sh: compiled and linked against LibTorch $version, CUDA $("$cuda/bin/nvcc" --version | grep -o 'release [0-9.]*')"
