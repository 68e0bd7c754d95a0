#include "run/charge.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

constexpr std::string_view planned_line = "planned ";

std::string charge_text(std::uint64_t steps, const std::string& print, const std::string& run,
                        std::optional<std::uint64_t> planned) {
  return cat(steps, "\nkey ", print, "\nrun ", run, "\n", planned ? cat(planned_line, *planned, "\n") : std::string());
}

}  // namespace

std::string key_print(const SecretKey& key) { return sha256(cat("tsdp charge ", key.hex())).substr(0, 16); }

Charge::Charge(std::filesystem::path file) : file_(std::move(file)) {
  long long steps = 0;
  const auto lines = split(read_file(file_), '\n');
  long long planned = 0;
  const bool says_plan = lines.size() == 5 && lines[3].starts_with(planned_line) &&
                         parse_int(lines[3].substr(planned_line.size()), planned) && planned >= 0;
  if ((lines.size() != 4 && !says_plan) || !parse_int(lines[0], steps) || steps < 0 || !lines[1].starts_with("key ") ||
      !lines[2].starts_with("run ") || !lines.back().empty())
    throw DataError(cat(file_.string(), ": found '", lines[0], "' and ", lines.size() - 1,
                        " lines; expected a count of steps, a line for the key and one for the run"));
  if (says_plan && steps > planned)
    throw DataError(cat(file_.string(), ": found ", steps, " steps charged of a plan of ", planned,
                        "; expected no more than are planned"));
  steps_ = static_cast<std::uint64_t>(steps);
  if (says_plan) planned_ = static_cast<std::uint64_t>(planned);
  key_print_ = lines[1].substr(4);
  run_ = lines[2].substr(4);
  found_ = steps_;
}

void Charge::create(const std::filesystem::path& file, const SecretKey& key, const std::string& run,
                    std::uint64_t planned) {
  write_file_atomically(file, charge_text(0, training::key_print(key), run, planned), FileAccess::owner);
}

void Charge::change_key(const SecretKey& key) {
  key_print_ = training::key_print(key);
  write(steps_);
}

void Charge::at_least(std::uint64_t steps) {
  raise_to(steps);
  found_ = std::max(found_, steps);
}

void Charge::raise_to(std::uint64_t steps) {
  if (steps <= steps_) return;
  write(steps);
}

void Charge::settle(std::uint64_t taken) {
  if (const auto least = std::max(taken, found_); least < steps_) write(least);
}

void Charge::write(std::uint64_t steps) {
  write_file_atomically(file_, charge_text(steps, key_print_, run_, planned_), FileAccess::owner);
  steps_ = steps;
}

}  // namespace tsdp::training
