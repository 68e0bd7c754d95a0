#include "run/environment.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <elf.h>
#include <link.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/version.h"
#include "dp/device_kind.h"
#include "tsdp/base/text.h"
#include "tsdp/random/random.h"

namespace tsdp::training {
namespace {

constexpr std::size_t digits_shown = 16;

std::string short_digest(std::string_view text) { return sha256(text).substr(0, digits_shown); }

/// Name of the first processor, and a digest of everything that tells what it can do, by which libraries choose their
/// code.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  std::string name = "unknown processor", abilities;
  for (std::string line; std::getline(in, line) && !trimmed(line).empty();) {
    const auto key = trimmed(std::string_view(line).substr(0, line.find(':')));
    if (key == "model name") name = trimmed(std::string_view(line).substr(line.find(':') + 1));
    for (const auto* telling :
         {"vendor_id", "cpu family", "model", "model name", "stepping", "cache size", "flags", "Features",
          "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"})
      if (key == telling) abilities += line;
  }
  return cat(name, " ", short_digest(abilities));
}

/// The build ID of a loaded object in hexadecimal digits; empty if it has none.
std::string build_id_of(const dl_phdr_info& object) {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const auto& header = object.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const std::uint8_t*>(object.dlpi_addr + header.p_vaddr);
    const auto* end = at + header.p_memsz;
    const auto padded = [&](std::size_t size) {
      const std::size_t unit = header.p_align == 8 ? 8 : 4;
      return (size + unit - 1) / unit * unit;
    };
    while (end - at >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto* name = at + sizeof note;
      const auto descriptor = padded(sizeof note + note.n_namesz);
      const auto size = descriptor + padded(note.n_descsz);
      if (static_cast<std::size_t>(end - at) < size) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
        return hex_text({at + descriptor, note.n_descsz});
      at += size;
    }
  }
  return {};
}

/// Stands in for an object without a build ID: when its file was written and how large it is.
std::string stamp_of(const char* name) {
  std::error_code link_error, size_error, time_error;
  const std::filesystem::path file =
      *name == '\0' ? std::filesystem::read_symlink("/proc/self/exe", link_error) : std::filesystem::path(name);
  const auto size = std::filesystem::file_size(file, size_error);
  const auto time = std::filesystem::last_write_time(file, time_error);
  return cat(file.string(), " ", size_error ? 0 : size, " ",
             time_error ? 0 : static_cast<long long>(time.time_since_epoch().count()));
}

int add_object(dl_phdr_info* object, std::size_t, void* texts) {
  const std::string_view name = object->dlpi_name;
  // The kernel's own page does no arithmetic and changes with every kernel.
  if (name.find("linux-vdso") != std::string_view::npos || name.find("linux-gate") != std::string_view::npos) return 0;
  const auto id = build_id_of(*object);
  static_cast<std::vector<std::string>*>(texts)->push_back(id.empty() ? stamp_of(object->dlpi_name) : id);
  return 0;
}

std::string code_loaded_now() {
  std::vector<std::string> texts;
  ::dl_iterate_phdr(add_object, &texts);
  std::sort(texts.begin(), texts.end());
  return short_digest(join(texts, " "));
}

/// Taken before main: what is loaded later, and when, is not part of how a program was built.
const std::string loaded_code = code_loaded_now();

/// NAME=VALUE of every variable that may choose other code paths, in order.
std::string steering_variables() {
  static constexpr std::array prefixes = {"MKL_",    "OMP_",    "GOMP_",      "KMP_",           "ONEDNN_",
                                          "DNNL_",   "ATEN_",   "TORCH_",     "PYTORCH_",       "OPENBLAS_",
                                          "CUBLAS_", "CUDA_",   "CUBLASLT_",  "DISABLE_ADDMM_", "NVRTC_",
                                          "CUDNN_",  "NVIDIA_", "LD_PRELOAD", "GLIBC_TUNABLES", "OPENSSL_"};
  std::vector<std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    // torchrun sets these; they steer how GPUs talk, not what they compute.
    if (text.starts_with("TORCH_NCCL_")) continue;
    if (std::any_of(prefixes.begin(), prefixes.end(), [&](const char* prefix) { return text.rfind(prefix, 0) == 0; }))
      found.emplace_back(text);
  }
  std::sort(found.begin(), found.end());
  return join(found, " ");
}

}  // namespace

std::string environment_of(const at::Device& device, bool repeats) {
  const auto variables = steering_variables();
  return cat("tsdp ", version(), ", LibTorch ", TORCH_VERSION, ", ", device.str(), ", ", at::get_num_threads(),
             " threads, ", processor(), ", ", at::get_cpu_capability(), ", code ",
      // A GPU's libraries are loaded with its first work, which has been done by now.
             device.is_cpu() ? loaded_code : code_loaded_now(),
             variables.empty() ? std::string() : cat(", ", variables),
             device.is_cpu() ? std::string() : cat(", ", dp::description_of(device)),
             repeats ? std::string() : cat(", process ", SecretKey::from_system().hex().substr(0, digits_shown)));
}

}  // namespace tsdp::training
