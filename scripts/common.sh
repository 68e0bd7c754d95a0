# shellcheck shell=bash
# What the other scripts share: packages, LibTorch, build. Sourced, not run.
#
# Every stage does only what is missing and reports it in one line on stderr; stdout belongs to the program being run.
# The environment can override:
#   TSDP_TORCH=auto|cpu|cuda|PATH  which LibTorch; PATH is a LibTorch folder or the prefix of a Python that has torch
#   TSDP_PACKAGES=skip             install no system packages; everything needed is there already
#   TSDP_JOBS=N                    compile N files at a time (default: what cores and memory allow)

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  echo "tsdp: common.sh is sourced by the other scripts; run scripts/train.sh, scripts/test.sh or scripts/setup.sh" >&2
  exit 2
fi

tsdp_root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)

# tsdp_help ARGUMENTS…: prints the head of the script, and ends it, if help is asked for. Nothing is installed or built for that.
tsdp_help() {
  local argument
  for argument in "$@"; do
    case $argument in
      -h | --help)
        sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    esac
  done
}
tsdp_logs=$tsdp_root/build/logs
tsdp_venv=$tsdp_root/.venv
tsdp_requirements=$tsdp_root/scripts/requirements.txt
tsdp_test_requirements=$tsdp_root/scripts/requirements-test.txt
# The CPU builds of torch are only on PyTorch's own wheel index.
tsdp_torch_index=https://download.pytorch.org/whl/cpu
tsdp_least_cmake=3.25
tsdp_job_megabytes=2500 # of memory, for one compiler that reads LibTorch's headers

tsdp_say() { printf 'tsdp: %s\n' "$*" >&2; }

# tsdp_fail REASON MEND
tsdp_fail() {
  tsdp_say "$1"
  tsdp_say "mend: $2"
  exit 1
}

# tsdp_fail_with_log WHAT LOG MEND: shows the errors in the log, if it names any, and its end.
tsdp_fail_with_log() {
  {
    grep -n -m 5 -E '(^|[^A-Za-z])([Ee]rror|ERROR|fatal|FAILED)([: ]|$)' "$2" || true
    echo '…'
    grep -v -E '^(: && |ccache )*[^ ]*[+][+] .* -o ' "$2" | tail -n 12
  } | cut -c 1-240 | sed 's/^/  | /' >&2
  tsdp_fail "$1 failed; all of it is in $2" "$3"
}

# tsdp_logged NAME COMMAND…: runs the command with all its output in build/logs/NAME.log.
tsdp_logged() {
  local log=$tsdp_logs/$1.log
  shift
  { printf '$'; printf ' %q' "$@"; echo; } >>"$log"
  "$@" </dev/null >>"$log" 2>&1
}

tsdp_new_log() { : >"$tsdp_logs/$1.log"; }

# tsdp_watched MEGABYTES FOLDER COMMAND…: runs the command; on a terminal, one overwritten line shows how much of what
# it downloads is in FOLDER.
tsdp_watched() {
  local megabytes=$1 folder=$2 job start=$SECONDS got spent
  shift 2
  if [ ! -t 2 ]; then
    "$@"
    return
  fi
  "$@" &
  job=$!
  while sleep 1 && kill -0 "$job" 2>/dev/null; do
    got=$(du -sm "$folder" 2>/dev/null | cut -f 1) || true
    spent=$((SECONDS - start))
    if [ $((20 * ${got:-0})) -ge "$megabytes" ] && [ "$got" -lt "$megabytes" ]; then
      printf '\r\033[K  %s of about %s MB, %s s left ' "$got" "$megabytes" $((spent * (megabytes - got) / got)) >&2
    else
      printf '\r\033[K  %s s ' "$spent" >&2
    fi
  done
  printf '\r\033[K' >&2
  wait "$job"
}

# tsdp_apt_progress LOG: reads apt's output with status lines (APT::Status-Fd=1) on stdin; one overwritten line shows
# percentage, file and time left, and everything else goes to the log.
tsdp_apt_progress() {
  local line kind percent text
  while IFS= read -r line; do
    IFS=: read -r kind _ percent text <<<"$line"
    case $kind in
      dlstatus | pmstatus) printf '\r\033[K  %3.0f %% %.60s ' "$percent" "$text" >&2 ;;
      *) printf '%s\n' "$line" >>"$1" ;;
    esac
  done
  printf '\r\033[K' >&2
}

# tsdp_version_at_least FOUND WANTED
tsdp_version_at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# One set-up at a time per checkout; descriptor 9 must be closed again before a program is started.
tsdp_lock() {
  mkdir -p "$tsdp_logs" || tsdp_fail "cannot write to $tsdp_root" "give yourself the right to write there"
  command -v flock >/dev/null || return 0
  exec 9>"$tsdp_root/build/.lock"
  if ! flock -n 9; then
    tsdp_say "waiting for another set-up in this checkout to finish…"
    flock 9
  fi
}

tsdp_unlock() { exec 9>&-; }

# ---- stage 1: packages ---------------------------------------------------------------------------------------------

# One line each: the package, and how to check that what it provides is there ('-': ask dpkg).
tsdp_package_list() {
  cat <<'LIST'
build-essential command:g++
build-essential command:make
cmake command:cmake
ninja-build command:ninja
ccache command:ccache
git command:git
pkg-config command:pkg-config
python3 command:python3
python3-venv python:ensurepip
libboost-dev file:/usr/include/boost/version.hpp
libcli11-dev -
libeigen3-dev -
libfftw3-dev -
libgtest-dev -
libnlopt-dev -
libspdlog-dev -
libssl-dev -
libyaml-cpp-dev -
libzip-dev -
nlohmann-json3-dev -
zlib1g-dev -
LIST
}

tsdp_missing_packages() {
  local package how
  local -A there=() missing=()
  if command -v dpkg-query >/dev/null; then
    # shellcheck disable=SC2016 # dpkg-query's own variables
    while read -r package how; do
      if [ "$how" = installed ]; then there[$package]=1; fi
    done < <(tsdp_package_list | awk '$2 == "-" { print $1 }' \
      | xargs dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' 2>/dev/null)
  fi
  while read -r package how; do
    case $how in
      command:*) command -v "${how#command:}" >/dev/null ;;
      python:*) python3 -c "import ${how#python:}" >/dev/null 2>&1 ;;
      file:*) [ -e "${how#file:}" ] ;;
      *) [ -n "${there[$package]:-}" ] ;;
    esac || missing[$package]=1
  done < <(tsdp_package_list)
  printf '%s\n' "${!missing[@]}" | sort
}

tsdp_packages() {
  if [ "${TSDP_PACKAGES:-}" = skip ]; then
    tsdp_say "packages: not looked at (TSDP_PACKAGES=skip)"
  else
    local missing
    missing=$(tsdp_missing_packages)
    if [ -n "$missing" ]; then
      tsdp_install_packages "$missing"
    else
      tsdp_say "packages: all there"
    fi
  fi
  local cmake_version
  cmake_version=$(cmake --version 2>/dev/null | awk 'NR == 1 { print $3 }')
  if ! tsdp_version_at_least "${cmake_version:-0}" "$tsdp_least_cmake"; then
    tsdp_fail "packages: $(command -v cmake || echo cmake) is version ${cmake_version:-unknown}; at least $tsdp_least_cmake is needed" \
      "put a newer CMake first in PATH"
  fi
}

# Packages that only tests use, and skip if missing: never the reason why a set-up fails.
tsdp_test_packages() {
  [ "${TSDP_PACKAGES:-}" != skip ] || return 0
  command -v doxygen >/dev/null || tsdp_test_package doxygen "the pages of the headers"
  # Users who have a browser with a name that tests/cli/chromium.py looks for do not need ours.
  local name
  for name in "${TSDP_CHROMIUM:-chromium}" chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then return 0; fi
  done
  tsdp_test_package chromium "pages in a browser"
}

# tsdp_test_package PACKAGE WHAT: Ubuntu has Chromium only as a snap, so there may be no package to install.
tsdp_test_package() {
  # Lists that were never loaded say nothing about what exists.
  if ! command -v apt-cache >/dev/null \
    || { compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null && ! apt-cache show "$1" >/dev/null 2>&1; }; then
    tsdp_say "packages: no $1 to install here; tests of $2 will be skipped"
    return 0
  fi
  (tsdp_install_packages "$1") || tsdp_say "packages: going on without $1; tests of $2 will be skipped"
}

# Clang with libFuzzer's runtime, which distributions package separately by the compiler's version. False, with one line
# that says so, if it is not available.
tsdp_fuzz_packages() {
  local what='no clang with libFuzzer, and none to install here'
  if ! tsdp_has_fuzzer; then
    if [ "${TSDP_PACKAGES:-}" = skip ]; then
      what='no clang with libFuzzer, and packages are not looked at (TSDP_PACKAGES=skip)'
    elif command -v clang++ >/dev/null || (tsdp_install_packages clang); then
      (tsdp_install_packages "libclang-rt-$(clang++ -dumpversion | cut -d . -f 1)-dev") || true
    fi
  fi
  if ! tsdp_has_fuzzer; then
    tsdp_say "fuzzing: $what; nothing is fuzzed"
    return 1
  fi
}

tsdp_has_fuzzer() {
  command -v clang++ >/dev/null && command -v clang >/dev/null || return 1
  local program status=0
  program=$(mktemp) || return 1
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' \
    | clang++ -x c++ -fsanitize=fuzzer,address,undefined -o "$program" - >/dev/null 2>&1 || status=1
  rm -f -- "$program"
  return "$status"
}

# tsdp_install_packages "NAME…": with apt, as root or through sudo.
tsdp_install_packages() {
  local packages command as_root=() mend
  mapfile -t packages <<<"$1"
  command="apt-get install ${packages[*]}"
  mend="as root: $command"
  if ! command -v apt-get >/dev/null; then
    tsdp_fail "packages: missing, and there is no apt-get to install them with: ${packages[*]} (Debian's names)" \
      "install what corresponds to them here, then run again with TSDP_PACKAGES=skip"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      tsdp_fail "packages: missing, and only root can install them: ${packages[*]}" "$mend"
    fi
    as_root=(sudo)
    mend="sudo $command"
    if ! sudo -n true 2>/dev/null; then
      # Asks for the password now, on the terminal; the commands below have no terminal.
      if ! { [ -t 0 ] && sudo -v; }; then
        tsdp_fail "packages: missing, and sudo refused or needs a password: ${packages[*]}" "$mend"
      fi
    fi
  fi
  tsdp_say "packages: reading the lists of what there is…"
  tsdp_new_log packages
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  local apt=(apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  # A failed update is not the end: the lists already here may do.
  tsdp_logged packages "${as_root[@]}" "${apt[@]}" update || true
  local size
  size=$("${apt[@]}" install --print-uris -qq --no-install-recommends "${packages[@]}" 2>/dev/null | awk '{ bytes += $3 } END { if (bytes) printf "; this loads %.0f MB", bytes / 1e6 + 0.5 }') || true
  tsdp_say "packages: installing ${packages[*]}$size…"
  local install=("${as_root[@]}" "${apt[@]}" install --yes --no-install-recommends)
  if ! if [ -t 2 ]; then
    "${install[@]}" -o APT::Status-Fd=1 "${packages[@]}" </dev/null 2>&1 | tsdp_apt_progress "$tsdp_logs/packages.log"
  else
    tsdp_logged packages "${install[@]}" "${packages[@]}"
  fi; then
    tsdp_fail_with_log "packages: installing" "$tsdp_logs/packages.log" "$mend"
  fi
}

# ---- stage 2: LibTorch ---------------------------------------------------------------------------------------------

# Sets tsdp_torch_dir (the folder of TorchConfig.cmake) and, if they exist, tsdp_python (a Python that has torch) and
# tsdp_cuda_home (the CUDA toolkit with it).
tsdp_torch() {
  tsdp_cuda_home=''
  tsdp_torch_dir=''
  tsdp_python=''
  local wanted=${TSDP_TORCH:-}
  case $wanted in
    '' | auto)
      if tsdp_torch_from_environment; then return; fi
      tsdp_torch_from_venv auto
      ;;
    cpu | cuda) tsdp_torch_from_venv "$wanted" ;;
    *)
      tsdp_torch_from_path "$wanted" \
        || tsdp_fail "LibTorch: none in TSDP_TORCH=$wanted (looked for share/cmake/Torch/TorchConfig.cmake and bin/python3 with torch)" \
          "set TSDP_TORCH to cpu, cuda, the folder of a LibTorch, or the prefix of a Python that has torch"
      tsdp_say "LibTorch: $tsdp_torch_dir (TSDP_TORCH)"
      ;;
  esac
}

# Torch_DIR or CMAKE_PREFIX_PATH, if the user has set one that leads to LibTorch.
tsdp_torch_from_environment() {
  local entry entries=()
  if [ -n "${Torch_DIR:-}" ]; then
    [ -e "$Torch_DIR/TorchConfig.cmake" ] \
      || tsdp_fail "LibTorch: no TorchConfig.cmake in Torch_DIR=$Torch_DIR" "correct or unset Torch_DIR"
    tsdp_torch_dir=$(CDPATH='' cd -- "$Torch_DIR" && pwd -P)
    tsdp_say "LibTorch: $tsdp_torch_dir (Torch_DIR)"
    return 0
  fi
  IFS=':;' read -r -a entries <<<"${CMAKE_PREFIX_PATH:-}"
  for entry in "${entries[@]}"; do
    if [ -n "$entry" ] && tsdp_torch_from_folder "$entry"; then
      tsdp_say "LibTorch: $tsdp_torch_dir (CMAKE_PREFIX_PATH)"
      return 0
    fi
  done
  return 1
}

# tsdp_torch_from_folder FOLDER: a LibTorch folder, or what torch.utils.cmake_prefix_path prints.
tsdp_torch_from_folder() {
  local folder
  for folder in "$1" "$1/Torch" "$1/share/cmake/Torch" "$1/lib/cmake/Torch" "$1/torch/share/cmake/Torch"; do
    if [ -e "$folder/TorchConfig.cmake" ]; then
      tsdp_torch_dir=$(CDPATH='' cd -- "$folder" && pwd -P)
      return 0
    fi
  done
  return 1
}

tsdp_torch_from_path() {
  local python prefix
  if tsdp_torch_from_folder "$1"; then return 0; fi
  for python in "$1/bin/python3" "$1/bin/python"; do
    [ -x "$python" ] || continue
    prefix=$("$python" -c 'import torch.utils; print(torch.utils.cmake_prefix_path)' 2>/dev/null) || continue
    if tsdp_torch_from_folder "$prefix"; then
      tsdp_python=$python
      return 0
    fi
  done
  return 1
}

tsdp_has_nvidia_driver() {
  [ -e /proc/driver/nvidia/version ] || { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }
}

# The contents of the stamp of a finished .venv: build of torch, checksum of the pins, the Python it was made with.
tsdp_venv_stamp() {
  printf '%s %s %s\n' "$1" "$(cksum <"$tsdp_requirements" | tr ' ' -)" "$(readlink -f -- "$tsdp_venv/bin/python3")"
}

# tsdp_venv_ready BUILD: whether .venv is finished, with that build of torch (auto: either) and with the current pins.
tsdp_venv_ready() {
  local stamp build
  stamp=$(cat "$tsdp_venv/.tsdp-stamp" 2>/dev/null) || return 1
  build=${stamp%% *}
  [ "$1" = auto ] || [ "$1" = "$build" ] || return 1
  [ -x "$tsdp_venv/bin/python3" ] && [ "$stamp" = "$(tsdp_venv_stamp "$build")" ] || return 1
  local site=("$tsdp_venv"/lib/python3*/site-packages)
  tsdp_torch_from_folder "${site[0]}/torch" || return 1
  tsdp_python=$tsdp_venv/bin/python3
  if [ "$build" = cuda ]; then
    tsdp_cuda_home=$(echo "${site[0]}"/nvidia/cu[0-9]*/)
    tsdp_cuda_home=${tsdp_cuda_home%/}
    [ -x "$tsdp_cuda_home/bin/nvcc" ] || return 1
  fi
  tsdp_torch_name="torch $(tsdp_pin torch) ($build build)"
}

tsdp_pin() { sed -n "s/^$1==\([^ ]*\).*/\1/p" "$tsdp_requirements"; }

# tsdp_torch_from_venv auto|cpu|cuda
tsdp_torch_from_venv() {
  local build=$1 torch_name=''
  if tsdp_venv_ready "$build"; then
    tsdp_say "LibTorch: $tsdp_torch_name in .venv"
    return
  fi
  if [ "$build" = auto ]; then
    build=cpu
    if tsdp_has_nvidia_driver; then build=cuda; fi
  fi
  if [ -e "$tsdp_venv" ] && [ ! -e "$tsdp_venv/.tsdp" ]; then
    tsdp_fail "LibTorch: $tsdp_venv is there, and these scripts did not make it" \
      "move it away, or use its torch with TSDP_TORCH='$tsdp_venv'"
  fi
  rm -rf -- "$tsdp_venv"
  torch_name="torch $(tsdp_pin torch) ($build build)"
  local megabytes=250
  if [ "$build" = cuda ]; then megabytes=3000; fi
  tsdp_say "LibTorch: installing $torch_name into .venv; this loads $megabytes MB…"
  tsdp_new_log torch
  mkdir -p "$tsdp_venv"
  : >"$tsdp_venv/.tsdp"
  if ! tsdp_logged torch python3 -m venv "$tsdp_venv"; then
    tsdp_fail_with_log "LibTorch: making the virtual environment" "$tsdp_logs/torch.log" \
      "check that 'python3 -m venv' works (package python3-venv) and run again"
  fi
  # What pip downloads is in the temporary folder until it is unpacked.
  local loads=$tsdp_venv/.loads
  mkdir -p "$loads"
  local pip=(env "TMPDIR=$loads" "$tsdp_venv/bin/python3" -m pip --disable-pip-version-check --no-input install --prefer-binary -r "$tsdp_requirements")
  if [ "$build" = cuda ]; then
    # If pip also knows a CPU build, that one would count as newer. LibTorch's CMake files want a complete CUDA toolkit;
    # the wheels that torch brings lack the compiler, whose version torch's own pins choose.
    tsdp_watched "$megabytes" "$loads" tsdp_logged torch "${pip[@]}" "torch!=$(tsdp_pin torch)+cpu" 'cuda-toolkit[cccl,crt,nvcc,nvvm]' \
      && tsdp_complete_cuda_toolkit
  else
    pip+=("torch==$(tsdp_pin torch)+cpu")
    tsdp_watched "$megabytes" "$loads" tsdp_logged torch "${pip[@]}" \
      || tsdp_watched "$megabytes" "$loads" tsdp_logged torch "${pip[@]}" --extra-index-url "$tsdp_torch_index"
  fi || tsdp_fail_with_log "LibTorch: pip" "$tsdp_logs/torch.log" \
    "check the network and run again, or point TSDP_TORCH at a LibTorch that you have"
  rm -rf -- "$loads"
  tsdp_venv_stamp "$build" >"$tsdp_venv/.tsdp-stamp.part"
  mv "$tsdp_venv/.tsdp-stamp.part" "$tsdp_venv/.tsdp-stamp"
  tsdp_venv_ready "$build" \
    || tsdp_fail "LibTorch: what pip installed in $tsdp_venv lacks CMake files (or nvcc)" "remove $tsdp_venv and run again"
}

# Python packages that only tests use, installed only into .venv: a Python that is not ours is left alone. Tests skip
# without them.
tsdp_test_python() {
  local stamp
  [ -n "$tsdp_python" ] && [ "$tsdp_python" = "$tsdp_venv/bin/python3" ] || return 0
  stamp=$(cksum <"$tsdp_test_requirements")
  [ "$(cat "$tsdp_venv/.tsdp-test-stamp" 2>/dev/null)" != "$stamp" ] || return 0
  tsdp_say "tests: installing Python packages into .venv"
  tsdp_new_log test-python
  if tsdp_logged test-python "$tsdp_python" -m pip --disable-pip-version-check --no-input install --prefer-binary --no-deps \
    -r "$tsdp_test_requirements"; then
    printf '%s\n' "$stamp" >"$tsdp_venv/.tsdp-test-stamp"
  else
    tsdp_say "tests: pip failed (build/logs/test-python.log); tests that need these packages will be skipped"
  fi
}

# The CUDA wheels contain libraries as programs want them (libcudart.so.13); linking wants libcudart.so, and nvcc wants
# lib64.
tsdp_complete_cuda_toolkit() {
  local home library
  for home in "$tsdp_venv"/lib/python3*/site-packages/nvidia/cu[0-9]*/; do
    [ -x "$home/bin/nvcc" ] || continue
    ln -sfn lib "$home/lib64"
    for library in "$home"/lib/*.so.*; do
      [ -e "${library%%.so.*}.so" ] || ln -s "${library##*/}" "${library%%.so.*}.so"
    done
  done
}

# ---- stage 3: build ------------------------------------------------------------------------------------------------

# How many compilers at a time: no more than there are cores, or than fit into the free (and allowed) memory.
tsdp_jobs() {
  if [ -n "${TSDP_JOBS:-}" ]; then
    printf '%s\n' "$TSDP_JOBS"
    return
  fi
  local cores megabytes limit jobs
  cores=$(nproc)
  megabytes=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
  if [[ $limit =~ ^[0-9]+$ ]] && [ $((limit / 1048576)) -lt "${megabytes:-0}" ]; then
    megabytes=$((limit / 1048576))
  fi
  jobs=$((${megabytes:-$tsdp_job_megabytes} / tsdp_job_megabytes))
  [ "$jobs" -le "$cores" ] || jobs=$cores
  [ "$jobs" -ge 1 ] || jobs=1
  printf '%s\n' "$jobs"
}

# ccache keeps its files under HOME unless told otherwise; if that is not writable, they go into build/. Paths inside
# the checkout count relative to it, so that another checkout of the same sources also hits.
tsdp_prepare_ccache() {
  command -v ccache >/dev/null || return 0
  if [ -z "${CCACHE_DIR:-}" ]; then
    local cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    if [ -n "${HOME:-}" ] && [ -d "$HOME/.ccache" ]; then cache=$HOME/.ccache; else cache=${cache:+$cache/ccache}; fi
    if [ -z "$cache" ] || ! mkdir -p "$cache" 2>/dev/null || [ ! -w "$cache" ]; then
      export CCACHE_DIR=$tsdp_root/build/.ccache
    fi
  fi
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$tsdp_root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
  # What ccache requires to cache files that use a precompiled header.
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
}

# tsdp_configure PRESET [CMAKE ARGUMENTS]: configures only if nothing is configured yet, or if the arguments or presets
# have changed; ninja itself configures again when a CMake file has changed.
tsdp_configure() {
  local preset=$1 folder=$tsdp_root/build/$1 arguments record
  shift
  tsdp_prepare_ccache
  arguments=("$@")
  if command -v ccache >/dev/null; then
    arguments+=("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
  fi
  record=$(printf '%s\n' "$tsdp_root" "${arguments[@]}" "$(cksum <"$tsdp_root/CMakePresets.json")")
  if [ -e "$folder/CMakeCache.txt" ] && [ -e "$folder/build.ninja" ] \
    && [ "$(cat "$folder/.tsdp-configured" 2>/dev/null)" = "$record" ]; then
    return
  fi
  tsdp_say "build: configuring build/$preset…"
  tsdp_new_log "configure-$preset"
  mkdir -p "$folder"
  rm -f "$folder/.tsdp-configured"
  if ! tsdp_logged "configure-$preset" cmake -S "$tsdp_root" --preset "$preset" --fresh --no-warn-unused-cli "${arguments[@]}"; then
    tsdp_fail_with_log "build: cmake" "$tsdp_logs/configure-$preset.log" \
      "the log's first error names what is missing or wrong; run again after setting it right"
  fi
  printf '%s\n' "$record" >"$folder/.tsdp-configured"
}

# tsdp_build PRESET TARGET…
tsdp_build() {
  local preset=$1 log=$tsdp_logs/build-$1.log jobs start=$SECONDS status=0 mend
  shift
  jobs=$(tsdp_jobs)
  tsdp_say "build: bringing build/$preset up to date ($*; $jobs at a time)…"
  NINJA_STATUS='[%f/%t] ' cmake --build "$tsdp_root/build/$preset" --parallel "$jobs" --target "$@" </dev/null 2>&1 \
    | tee "$log" | tsdp_progress || status=$?
  if [ "$status" -ne 0 ]; then
    mend="put the first error right and run again"
    if grep -q -E 'Killed|out of memory|Cannot allocate' "$log"; then
      mend="memory ran out: run again with TSDP_JOBS=1"
    fi
    tsdp_fail_with_log "build: build/$preset" "$log" "$mend"
  fi
  if ! grep -q '^ninja: no work to do' "$log"; then
    tsdp_say "build: done in $((SECONDS - start)) s"
  fi
}

# Ninja's lines on stdin; on a terminal, one overwritten line shows the progress.
tsdp_progress() {
  local line
  if [ ! -t 2 ]; then
    cat >/dev/null
    return
  fi
  while IFS= read -r line; do
    if [[ $line =~ ^\[[1-9][0-9]*/[0-9]+\] ]]; then printf '\r  %s ' "${BASH_REMATCH[0]}" >&2; fi
  done
  printf '\r\033[K' >&2
}

# ---- all of it -----------------------------------------------------------------------------------------------------

# tsdp_set_up TARGET…: the three stages; afterwards the targets are in build/release/bin. With `all`, also what tests
# use.
tsdp_set_up() {
  tsdp_lock
  tsdp_packages
  tsdp_torch
  if [ "$1" = all ]; then
    tsdp_test_packages
    tsdp_test_python
  fi
  tsdp_configure_release
  tsdp_build release "$@"
  tsdp_unlock
}

# Sets tsdp_torch_arguments: what CMake is told of the LibTorch that tsdp_torch found.
tsdp_describe_torch() {
  tsdp_torch_arguments=("-DTorch_DIR=$tsdp_torch_dir")
  if [ -n "$tsdp_python" ]; then tsdp_torch_arguments+=("-DPython3_EXECUTABLE=$tsdp_python"); fi
  if [ -e "$tsdp_torch_dir/../../../lib/libtorch_cuda.so" ]; then
    # Debian 12's CMake does not know C++20 for CUDA.
    tsdp_torch_arguments+=(-DCMAKE_CUDA_STANDARD=17)
    if [ -n "$tsdp_cuda_home" ]; then
      tsdp_torch_arguments+=("-DCUDA_TOOLKIT_ROOT_DIR=$tsdp_cuda_home" "-DCMAKE_CUDA_COMPILER=$tsdp_cuda_home/bin/nvcc")
    elif [ -z "${CUDACXX:-}" ] && ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then
      tsdp_torch_arguments+=(-DCMAKE_CUDA_COMPILER=/usr/local/cuda/bin/nvcc)
    fi
  fi
}

tsdp_configure_release() {
  local arguments=()
  tsdp_describe_torch
  if [ -n "$tsdp_python" ]; then
    # From the package's files only, since importing it takes a second.
    local arrow=("$(dirname -- "$tsdp_python")"/../lib/python3*/site-packages/pyarrow/libparquet.so*)
    if [ -e "${arrow[0]}" ]; then arguments+=(-DTSDP_PARQUET=ON); fi
  fi
  tsdp_configure release "${tsdp_torch_arguments[@]}" "${arguments[@]}"
}
