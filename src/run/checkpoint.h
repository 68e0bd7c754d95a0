// Resumable state of a run, durable before it is relied upon.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "run/plateau_schedule.h"
#include "tsdp/random/random.h"

namespace tsdp::training {

/// State after `step` steps of the plan, `given_up` of which were charged and not taken, or taken and lost.
struct Checkpoint {
  std::string run;  ///< RunIdentity::id of the run it belongs to
  std::uint64_t step = 0;
  std::uint64_t given_up = 0;
  std::optional<SecretKey> key;  ///< none once the run is finished (nothing is left to replay), and in best()
  std::string environment;  ///< environment_of where it was made
  int threads = 1;          ///< number of CPU threads it was made with
  double best_loss = 0.0;   ///< of the validation part, or of training
  at::Tensor loss_sum;      ///< losses of the windows since the last look at them, and their number
  PlateauSchedule schedule; ///< of the learning rate
  at::Tensor values;
  std::vector<at::Tensor> optimizer;
  std::vector<at::Tensor> noise = {};  ///< what the noise keeps between steps
  std::string device = "cpu";  ///< it was made on
};

/// Atomic and durable; mode 0600. A tensor file (base/tensor_file.h): only data, under one checksum.
void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);
/// None if there is no such file. Throws DataError if it is damaged.
[[nodiscard]] std::optional<Checkpoint> load_checkpoint(const std::filesystem::path& file);

}  // namespace tsdp::training
