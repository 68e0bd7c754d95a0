#include "device.h"

#include <ATen/Parallel.h>
#include <torch/cuda.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

/// Whether the environment says how threads wait for each other.
bool waiting_is_said() { return std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr; }

/// What OMP_NUM_THREADS says, and as many as there are cores where it says no number that --threads takes.
int usual_threads() {
  const auto* said = std::getenv("OMP_NUM_THREADS");
  const std::string_view text = said != nullptr ? said : "";
  long long count = 0;
  if (parse_int(text.substr(0, text.find(',')), count) && count >= 1 && count <= most_threads)  // "4,2" says 4
    return static_cast<int>(count);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

void add_threads_option(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "CPU threads; 0: all cores, or as many as OMP_NUM_THREADS says")
      ->check(CLI::Range(0, most_threads))
      ->capture_default_str();
}

at::Device device_of(const std::string& text) {
  const bool has_gpu = torch::cuda::is_available();
  if (text == "auto") return has_gpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  if (text == "cpu") return at::Device(at::kCPU);
  long long index = 0;
  if (text == "cuda" || (text.rfind("cuda:", 0) == 0 && parse_int(text.substr(5), index) && index >= 0 && index < 64)) {
    const auto gpus =
        static_cast<long long>(torch::cuda::device_count());  // an eight-bit number, which would print as a letter
    if (!has_gpu || index >= gpus)
      throw UsageError(cat("--device: found '", text, "', but LibTorch sees ", gpus,
                           " GPUs here; expected cpu, auto, or cuda:i of one that is there"));
    return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
  }
  throw UsageError(cat("--device: found '", text, "'; expected auto, cpu, cuda or cuda:i"));
}

void spin_briefly(char** argv) {
  if (waiting_is_said()) return;
  // On an idle machine, steps are as fast as with 300,000, the default, down to some 3,000; with 0 they take half as
  // long again.
  ::setenv("GOMP_SPINCOUNT", "10000", 1);
  static_cast<void>(::execv("/proc/self/exe", argv));  // if that fails, the program goes on, and spins
}

void set_threads(int threads) {
  if (!waiting_is_said()) throw std::logic_error("threads are set before spin_briefly was called");
  at::set_num_threads(threads > 0 ? threads : usual_threads());
  static const bool once = [] {
    at::set_num_interop_threads(1);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace tsdp::cli
