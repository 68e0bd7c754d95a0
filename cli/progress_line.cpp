#include "progress_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/log.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

constexpr std::chrono::seconds log_every{15};
constexpr std::size_t log_columns = 200;

/// Right-aligns `text` in a field, so that what follows stays in place as numbers grow.
std::string right(std::string text, std::size_t width) {
  const auto has = width_of(text);
  return has < width ? std::string(width - has, ' ') + text : text;
}

std::string loss_text(double loss) {
  if (!std::isfinite(loss)) return "-";  // no step so far had a window
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%#.4g", loss);
  return text.data();
}

std::string rate_text(double rate) { return rate >= 99.5 && rate < 1e9 ? cat(std::llround(rate)) : rounded(rate, 2); }

}  // namespace

std::string progress_text(const training::Progress& p, double target, std::size_t columns) {
  // Every number gets the room that its last value needs, as far as 80 columns go.
  const auto percent = right(cat(100 * p.step / std::max<std::uint64_t>(p.steps, 1), " %"), 5);
  const auto steps = std::to_string(p.steps);
  const double epochs_a_step = p.step > 0 ? p.epoch / static_cast<double>(p.step) : 0.0;
  const double last_epoch = epochs_a_step * static_cast<double>(p.steps);
  const int decimals = epochs_a_step < 1.0 && last_epoch < 1000.0 ? 1 : 0;
  const auto epoch_text = [&](double epoch) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*f", decimals, epoch);
    return std::string(text.data());
  };
  constexpr std::size_t most_for_epoch = 5;
  const auto epoch_room = std::min(epoch_text(last_epoch).size(), most_for_epoch);
  struct Part {
    std::string text;
    int rank;  // parts with the greatest rank are left out first
  };
  std::vector<Part> parts = {{percent, 5},
                             {cat("step ", right(std::to_string(p.step), steps.size()), "/", steps), 6},
                             {cat("epoch ", right(epoch_text(p.epoch), epoch_room)), 3},
                             {cat("loss ", right(loss_text(p.loss), 5)), 2},
                             {cat(right(rate_text(p.steps_per_second), 4), " steps/s"), 4},
                             {cat(clock_text(p.seconds_left), " left"), 1}};
  if (p.epsilon > 0.0)
    parts.push_back({cat("epsilon ≤ ", right(rounded_up(p.epsilon, 3), 5), " of ", rounded(target, 4)), 1});
  while (true) {
    std::vector<std::string> texts;
    for (const auto& part : parts) texts.push_back(part.text);
    const auto line = join(texts, " · ");
    if (width_of(line) <= columns) return line;
    if (parts.size() == 1) return width_of(percent) <= columns ? percent : std::string();
    parts.erase(
        std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; }));
  }
}

ProgressLine::ProgressLine(double target) : target_(target), last_(std::chrono::steady_clock::now() - log_every) {}

void ProgressLine::show(const training::Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (line_.is_usable()) {
    line_.show(progress_text(progress, target_, TerminalLine::columns()));
  } else if (now - last_ >= log_every) {
    last_ = now;
    log::info(progress_text(progress, target_, log_columns));
  }
}

}  // namespace tsdp::cli
