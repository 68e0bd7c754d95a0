// --device and --threads.
#pragma once

#include <string>

#include <ATen/Device.h>

namespace tsdp::cli {

/// "auto" (a GPU where there is one), "cpu", "cuda", "cuda:i". Throws UsageError.
[[nodiscard]] at::Device device_of(const std::string& text);

/// One count for LibTorch's threads, inside operators and between them; 0 means all cores. FFTW and Eigen stay at one.
void set_threads(int threads);

}  // namespace tsdp::cli
