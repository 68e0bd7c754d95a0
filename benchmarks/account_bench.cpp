// Times one question to the accountant, asked repeatedly in this process; JSON on stdout. benchmarks/peers/account.py
// sets the answers next to those of another accountant.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "privacy/theorems/structured_pairs.h"
#include "privacy/whole_series/poisson_curve.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"

namespace {

using Json = nlohmann::ordered_json;
using tsdp::privacy::Accountant;
using tsdp::privacy::Interval;

/// A data set of the paper with its training: N series of length L, windows of L_C + L_F, batches of Λ, noise σ.
struct Setting {
  const char* name;
  double series, length, context, forecast, batch, sigma;

  /// ρ r of Theorem 4.4: the series is drawn, and of its L − L_F + 1 windows one that holds the changed value.
  [[nodiscard]] double q() const { return batch / series * ((context + forecast) / (length - forecast + 1.0)); }
  /// The pair with its accountant: every timed question makes them anew, so that nothing is left from the last time.
  [[nodiscard]] Accountant accountant() const { return Accountant(tsdp::privacy::one_window_pair(q(), sigma)); }
};

/// "+ lags": lagged values are read as well, which lengthens the context.
const std::vector<Setting> settings = {
    {"traffic", 862, 13916, 96, 24, 256, 4.0},     {"traffic + lags", 862, 13916, 265, 24, 256, 4.0},
    {"electricity", 321, 20924, 24, 24, 128, 2.0}, {"electricity + lags", 321, 20924, 49, 24, 128, 2.0},
    {"solar", 137, 52200, 240, 60, 128, 4.0},      {"solar + lags", 137, 52200, 409, 60, 128, 4.0},
};
const std::vector<double> plan_epsilons = {0.25, 0.5, 1.0, 2.0, 4.0, 8.0};

const Setting& setting_of(const std::string& name) {
  for (const auto& s : settings)
    if (name == s.name) return s;
  throw tsdp::UsageError(tsdp::cat("--setting: found \"", name, "\"; the case \"settings\" lists what is there"));
}

/// The most memory this process ever held. Not from getrusage: its maximum begins with that of the process that started
/// this one.
double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0.0; word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024.0;
  return 0.0;
}

Json bracket(const Interval& i) { return {{"lower", i.lower}, {"upper", i.upper}}; }

struct Question {
  std::string name, setting = "traffic";
  std::uint64_t steps = 10'000;
  double epsilon = 0.5, delta = 1e-7, precision = 1e-5;
  double sigma = 1.3;  // for "poisson"
};

/// The work to time; its result describes the answer.
std::function<Json()> work_of(const Question& q) {
  if (q.name == "epsilon")
    return [q, &s = setting_of(q.setting)] { return bracket(s.accountant().epsilon(q.delta, q.steps, q.precision)); };
  if (q.name == "max-uses")
    return [q, &s = setting_of(q.setting)] { return Json{{"uses", s.accountant().max_uses(q.epsilon, q.delta)}}; };
  // Whole records drawn by coins of their own, rate 1/T, for T steps.
  if (q.name == "poisson")
    return [q] {
      return bracket(tsdp::privacy::PoissonCurve(1.0 / static_cast<double>(q.steps), q.sigma)
                         .epsilon(q.delta, q.steps, q.precision));
    };
  if (q.name == "plan")
    return [q] {
      auto rows = Json::object();
      for (const auto& s : settings) {
        auto accountant = s.accountant();
        for (const double epsilon : plan_epsilons) rows[s.name].push_back(accountant.max_uses(epsilon, q.delta));
      }
      return Json{{"uses", std::move(rows)}};
    };
  // Another number of steps on an accountant that has answered before: 1 % more each time, so never the same twice.
  if (q.name == "next") {
    auto accountant = std::make_shared<Accountant>(setting_of(q.setting).accountant());
    static_cast<void>(accountant->epsilon(q.delta, q.steps, q.precision));
    return [q, accountant, steps = q.steps]() mutable {
      steps += std::max<std::uint64_t>(q.steps / 100, 1);
      return bracket(accountant->epsilon(q.delta, steps, q.precision));
    };
  }
  throw tsdp::UsageError(
      tsdp::cat("case: found \"", q.name, "\"; settings, epsilon, max-uses, plan, next or poisson is expected"));
}

Json settings_json() {
  auto rows = Json::array();
  for (const auto& s : settings) rows.push_back({{"name", s.name}, {"q", s.q()}, {"sigma", s.sigma}});
  return rows;
}

/// Answers `warm_up` times, then at least `repetitions` times and for at least `seconds`.
Json measure(const std::function<Json()>& work, int warm_up, int repetitions, double seconds) {
  using Clock = std::chrono::steady_clock;
  Json result;
  std::vector<double> times;
  auto start = Clock::now();
  for (int i = -warm_up; i < repetitions || Clock::now() - start < std::chrono::duration<double>(seconds); ++i) {
    const auto begin = Clock::now();
    if (i == 0) start = begin;
    result = work();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  result["cold_ms"] = times.front();  // the first in this process, including what the libraries set up once
  result["ms"] = std::vector<double>(times.begin() + warm_up, times.end());
  result["peak_mb"] = peak_megabytes();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times one question to the accountant; JSON on stdout.", "tsdp-account-bench");
  tsdp::cli::CommonOptions common;
  tsdp::cli::add_common_options(app, common, /*with_json=*/false);
  Question question;
  int repetitions = 5;
  int warm_up = 2;
  double seconds = 0.0;
  app.add_option("case", question.name,
                 "settings: list them; epsilon, max-uses, plan: time them, construction included; next: time epsilon "
                 "for more steps on one accountant; poisson: time epsilon of whole records drawn at rate 1/steps")
      ->required();
  app.add_option("--setting", question.setting, "Data set and training")->capture_default_str();
  app.add_option("--steps", question.steps, "Steps for epsilon, next and poisson")->capture_default_str();
  app.add_option("--epsilon", question.epsilon, "Epsilon for max-uses")->capture_default_str();
  app.add_option("--sigma", question.sigma, "Noise multiplier for poisson")->capture_default_str();
  app.add_option("--delta", question.delta, "Delta of all")->capture_default_str();
  app.add_option("--precision", question.precision, "Relative width of brackets")->capture_default_str();
  app.add_option("--repetitions", repetitions, "Timed, at least")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "Timed for so long, at least")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--warm-up", warm_up, "Done before that")->check(CLI::Range(0, 1'000'000))->capture_default_str();
  return tsdp::cli::run(app, argc, argv, common, [&] {
    if (question.name == "settings") std::cout << settings_json() << "\n";
    else std::cout << measure(work_of(question), warm_up, repetitions, seconds) << "\n";
    return 0;
  });
}
