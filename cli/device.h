// --device and --threads.
#pragma once

#include <string>

#include <ATen/Device.h>
#include <CLI/CLI.hpp>

namespace tsdp::cli {

/// The most that --threads takes.
inline constexpr int most_threads = 4096;

/// Adds --threads, of a program that always begins anew.
void add_threads_option(CLI::App& app, int& threads);

/// "auto" (a GPU if there is one), "cpu", "cuda", "cuda:i". Throws UsageError.
[[nodiscard]] at::Device device_of(const std::string& text);

/// Lets LibTorch's threads spin for some microseconds while they wait for each other, and then sleep. Otherwise they
/// spin for milliseconds, which makes a step on a busy machine tens of times as long. OpenMP reads this when the
/// program is loaded, so the program replaces itself once with a new start of itself that has GOMP_SPINCOUNT set. Does
/// nothing if the environment sets GOMP_SPINCOUNT or OMP_WAIT_POLICY. This is the first thing main does; without it
/// set_threads throws std::logic_error.
void spin_briefly(char** argv);

/// One count for LibTorch's threads, inside operators and between them; 0 means as many as OMP_NUM_THREADS says,
/// without it all cores. FFTW and Eigen stay at one.
void set_threads(int threads);

}  // namespace tsdp::cli
