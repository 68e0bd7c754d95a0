#include "run/checkpoint.h"

#include <vector>

#include "dp/stored_tensor.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/tensor_file.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

constexpr const char* format_name = "tsdp-checkpoint-5";
constexpr std::size_t optimizer_tensors = 3;  // of Adam: both moments, the number of steps

/// Values of one kind under one name, in a fixed order.
at::Tensor counts_of(std::initializer_list<std::int64_t> counts) {
  return at::tensor(at::ArrayRef<std::int64_t>(counts), at::kLong);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& file, const Checkpoint& c) {
  TensorFile out;
  out.texts = {{"format", format_name},
               {"run", c.run},
               {"key", c.key ? c.key->hex() : ""},
               {"environment", c.environment},
               {"device", c.device}};
  out.tensors = {
      dp::stored("counts", counts_of({static_cast<std::int64_t>(c.step), static_cast<std::int64_t>(c.given_up),
                                      c.threads, c.schedule.looks_since})),
      dp::stored("numbers", at::tensor({c.best_loss, c.schedule.factor, c.schedule.least_loss}, at::kDouble)),
      dp::stored("loss_sum", c.loss_sum),
      dp::stored("values", c.values),
  };
  for (std::size_t i = 0; i < c.optimizer.size(); ++i)
    out.tensors.push_back(dp::stored(cat("optimizer_", i), c.optimizer[i]));
  for (std::size_t i = 0; i < c.noise.size(); ++i) out.tensors.push_back(dp::stored(cat("noise_", i), c.noise[i]));
  write_file_atomically(file, tensor_file_bytes(out), FileAccess::owner);
}

std::optional<Checkpoint> load_checkpoint(const std::filesystem::path& file) {
  if (!is_there(file)) return std::nullopt;
  const auto where = file.string();
  const auto bytes = read_file(file);
  if (bytes.starts_with("PK"))  // an archive, as versions before 0.4 wrote it
    throw DataError(cat(where,
                        ": found a checkpoint of another version of tsdp, which alone can go on with it; expected ",
                        format_name));
  const auto found = [&] {
    try {
      return read_tensor_file(bytes, where);
    } catch (const DataError& error) {
      throw DataError(
          cat(error.what(),
              "; put a whole copy back, or remove the file: the steps that it had stay charged, and --resume "
              "takes those that are left from the start's weights"));
    }
  }();
  if (const auto& format = found.text("format", where); format != format_name)
    throw DataError(cat(where, ": found format '", format,
                        "', of another version of tsdp, which alone can go on with it; expected ", format_name));
  const auto tensor = [&](const std::string& name, const char* type, std::int64_t count) {
    const auto& stored = found.tensor(name, where);
    const auto value = dp::tensor_of(stored);
    if ((type != nullptr && stored.type != type) || (count >= 0 && (value.dim() != 1 || value.numel() != count)))
      throw DataError(
          cat(where, ": tensor '", name, "' has another type or shape; expected a checkpoint that tsdp-train wrote"));
    return value;
  };
  Checkpoint c;
  c.run = found.text("run", where);
  if (const auto& key = found.text("key", where); !key.empty()) c.key = SecretKey::from_hex(key);
  c.environment = found.text("environment", where);
  if (found.texts.contains("device")) c.device = found.text("device", where);  // older ones do not say
  const auto counts = tensor("counts", "I64", 4);
  const auto* count = counts.const_data_ptr<std::int64_t>();
  if (count[0] < 0 || count[1] < 0 || count[1] > count[0] || count[2] < 1 || count[2] > 4096 || count[3] < 0)
    throw DataError(cat(where, ": found ", count[0], " steps, ", count[1], " given up, ", count[2],
                        " threads; expected a checkpoint that tsdp-train wrote"));
  c.step = static_cast<std::uint64_t>(count[0]);
  c.given_up = static_cast<std::uint64_t>(count[1]);
  c.threads = static_cast<int>(count[2]);
  const auto numbers = tensor("numbers", "F64", 3);
  const auto* number = numbers.const_data_ptr<double>();
  c.best_loss = number[0];
  c.schedule = {number[1], number[2], count[3]};
  c.loss_sum = tensor("loss_sum", "F64", 2);
  c.values = tensor("values", "F32", -1);
  for (std::size_t i = 0; i < optimizer_tensors; ++i) c.optimizer.push_back(tensor(cat("optimizer_", i), "F32", -1));
  for (std::size_t i = 0; found.has(cat("noise_", i)); ++i) c.noise.push_back(tensor(cat("noise_", i), nullptr, -1));
  return c;
}

}  // namespace tsdp::training
