#include "audit/membership.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "audit/statistics.h"
#include "audit/trainer_audit.h"
#include "base/scratch_folder.h"
#include "training/model_setup.h"
#include "training/window_source.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/windows.h"
#include "tsdp/training/trainer.h"

namespace tsdp::audit {
namespace {

/// At most this many windows of a series are looked at, evenly over its training values.
constexpr std::int64_t most_windows = 256;

/// The mean loss of training windows of series `series` under a model.
class Losses {
 public:
  Losses(models::Forecaster& model, const data::PreparedData& data, std::int64_t horizon)
      : model_(model),
        split_(data.split),
        horizon_(horizon),
        store_(data.dataset, model.past_length(), horizon),
        source_(store_, training::features_of(model, data.dataset), at::TensorOptions().dtype(at::kFloat)) {}

  double of(const std::vector<std::int64_t>& series) {
    double sum = 0.0;
    std::int64_t count = 0;
    for (const auto s : series) {
      const auto last = split_.training_length[static_cast<std::size_t>(s)] - horizon_;
      std::vector<data::WindowIndex> windows;
      const auto wanted = std::min(most_windows, last + 1);
      for (std::int64_t i = 0; i < wanted; ++i) windows.push_back({s, wanted > 1 ? last * i / (wanted - 1) : 0});
      sum += model_.losses(source_.gather(windows)).to(at::kDouble).sum().item<double>();
      count += wanted;
    }
    return sum / static_cast<double>(count);
  }

 private:
  models::Forecaster& model_;
  const data::Split& split_;
  std::int64_t horizon_;
  data::WindowStore store_;
  training::WindowSource source_;
};

/// The series that are absent where the target is.
std::vector<std::int64_t> series_of_target(const data::Dataset& dataset, std::size_t target) {
  std::vector<std::int64_t> out;
  for (std::size_t s = 0; s < dataset.series.size(); ++s)
    if (s == target || (!dataset.owner.empty() && dataset.owner[s] == dataset.owner[target]))
      out.push_back(static_cast<std::int64_t>(s));
  return out;
}

/// The one that is told best from the others before training: an outlier moves a model most.
std::size_t stands_out(Losses& losses, std::size_t count) {
  std::size_t out = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < count; ++s)
    if (const double loss = losses.of({static_cast<std::int64_t>(s)}); loss > most) {
      most = loss;
      out = s;
    }
  return out;
}

std::size_t place_of(const data::Dataset& dataset, const std::string& target) {
  const auto found = std::find_if(dataset.series.begin(), dataset.series.end(),
                                  [&](const data::Series& series) { return series.id == target; });
  if (found == dataset.series.end())
    throw UsageError(cat("--target: found '", target, "', which is no series of ", dataset.name,
                         "; expected the name of one of its ", dataset.series.size(), " series"));
  return static_cast<std::size_t>(found - dataset.series.begin());
}

/// A normal law fitted to numbers, at least two. Without a spread of its own it has the least that doubles tell apart.
struct Normal {
  double mean = 0.0;
  double deviation = 1.0;

  explicit Normal(const std::vector<double>& numbers) {
    const auto count = static_cast<double>(numbers.size());
    for (const double x : numbers) mean += x / count;
    double square = 0.0;
    for (const double x : numbers) square += (x - mean) * (x - mean);
    deviation = std::max(std::sqrt(square / (count - 1.0)), 1e-12 * (1.0 + std::abs(mean)));
  }
  [[nodiscard]] double log_density(double x) const {
    const double z = (x - mean) / deviation;
    return -0.5 * z * z - std::log(deviation);
  }
};

double share_above(const std::vector<double>& ratios, double threshold) {
  const auto hits = std::count_if(ratios.begin(), ratios.end(), [&](double r) { return r > threshold; });
  return static_cast<double>(hits) / static_cast<double>(ratios.size());
}

}  // namespace

MembershipVerdict judge_membership(const std::vector<double>& with, const std::vector<double>& without, double bound,
                                   double confidence) {
  const auto half = [](const std::vector<double>& all, bool second) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    return second ? std::vector<double>(middle, all.end()) : std::vector<double>(all.begin(), middle);
  };
  const Normal in(half(with, false)), out(half(without, false));
  const auto ratios = [&](std::vector<double> numbers) {
    for (double& x : numbers) x = in.log_density(x) - out.log_density(x);
    return numbers;
  };
  // The threshold is fixed by the first half, so that what the second half shows is an independent trial of it.
  const auto fit_in = ratios(half(with, false)), fit_out = ratios(half(without, false));
  auto all = fit_in;
  all.insert(all.end(), fit_out.begin(), fit_out.end());
  std::sort(all.begin(), all.end());
  // In the middle of the widest gap that tells best.
  double threshold = 0.0, best = 0.0, widest = 0.0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double middle = 0.5 * (all[i - 1] + all[i]);
    const double told = share_above(fit_in, middle) - share_above(fit_out, middle);
    const double gap = all[i] - all[i - 1];
    if (told < best || (told == best && gap <= widest)) continue;
    threshold = middle;
    best = told;
    widest = gap;
  }
  const auto tried_in = ratios(half(with, true)), tried_out = ratios(half(without, true));
  MembershipVerdict verdict;
  verdict.models = tried_in.size() + tried_out.size();
  verdict.bound = bound;
  verdict.true_positives = share_above(tried_in, threshold);
  verdict.false_positives = share_above(tried_out, threshold);
  const auto bracket = [&](double share, std::size_t trials) {
    const auto hits = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(trials)));
    return share_bracket(hits, trials, (1.0 - confidence) / 4.0);  // four ends hold at once
  };
  const auto hit = bracket(verdict.true_positives, tried_in.size());
  const auto alarm = bracket(verdict.false_positives, tried_out.size());
  verdict.advantage = {hit.lower - alarm.upper, hit.upper - alarm.lower};
  return verdict;
}

MembershipVerdict attack_membership(const mechanism::Settled& run, const data::PreparedData& data,
                                    const MembershipOptions& options) {
  if (options.models < 8 || options.models % 4 != 0)
    throw UsageError(cat("--models: found ", options.models, "; expected a multiple of 4, at least 8"));
  auto config_of_all = run.config;
  config_of_all.training.validate_every = *config_of_all.training.max_epochs + 1;
  config_of_all.training.checkpoint = ExportedWeights::last;
  config_of_all.training.checkpoint_seconds = 1e6;
  const ScratchFolder scratch("membership");
  auto absent = data;
  std::optional<std::size_t> target;
  if (options.target) target = place_of(data.dataset, *options.target);
  std::vector<std::int64_t> of_target;
  std::vector<double> with, without;
  at::Tensor initial;
  double bound = 1.0;
  std::string not_counted;
  for (std::uint64_t i = 0; i < options.models; ++i) {
    auto own = run;
    own.config = config_of_all;
    own.config.training.seed += static_cast<std::int64_t>(i);
    const bool there = i % 2 == 0;
    training::Trainer trainer(std::move(own), there ? data : absent, at::Device(at::kCPU),
                              {scratch.path() / std::to_string(i)});
    trainer.begin();
    auto& model = trainer.model();
    // Only the key and whether the target is there differ.
    if (i == 0) initial = model.parameters().values().clone();
    else model.parameters().values().copy_(initial);
    Losses losses(model, data, run.config.dataset.prediction_length);
    if (i == 0) {
      if (!target) target = stands_out(losses, data.dataset.series.size());
      of_target = series_of_target(data.dataset, *target);
      for (const auto s : of_target) {
        auto& series = absent.dataset.series[static_cast<std::size_t>(s)];
        std::fill(series.values.begin(), series.values.end(), std::numeric_limits<float>::quiet_NaN());
        std::fill(series.exact.begin(), series.exact.end(), std::numeric_limits<double>::quiet_NaN());
      }
      const auto& privacy = trainer.method().privacy();
      if (privacy && privacy->unit().relation == privacy::Relation::series) bound = trainer.plan().attack->advantage;
      not_counted = mechanism::not_counted_of_start(run.start_origin());
    }
    training::TrainOptions how;
    how.stop = options.stop;
    trainer.run(how);
    if (options.stop != nullptr && options.stop->load()) throw Stopped{};
    (there ? with : without).push_back(losses.of(of_target));
    if (options.progress) options.progress(static_cast<double>(i + 1) / static_cast<double>(options.models));
  }
  auto verdict = judge_membership(with, without, bound, options.confidence);
  verdict.target = data.dataset.series[*target].id;
  verdict.series = of_target.size();
  verdict.not_counted = not_counted;
  verdict.reproducible = run.config.training.reproducible;
  return verdict;
}

nlohmann::ordered_json to_json(const MembershipVerdict& verdict, const MembershipOptions& options) {
  return {{"mode", "membership"},
          {"target", verdict.target},
          {"series_of_target", verdict.series},
          {"models", options.models},
          {"tried", verdict.models},
          {"confidence", options.confidence},
          {"true_positive_rate", verdict.true_positives},
          {"false_positive_rate", verdict.false_positives},
          {"advantage",
           {{"found", verdict.true_positives - verdict.false_positives},
            {"lower", verdict.advantage.lower},
            {"upper", verdict.advantage.upper}}},
          {"bound", verdict.bound},
          {"bound_does_not_count",
           verdict.not_counted.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(verdict.not_counted)},
          {"bound_without_the_seed", verdict.reproducible},
          {"contradicted", verdict.contradicted()},
          {"not_covered", "computed from true values: no epsilon covers this"}};
}

}  // namespace tsdp::audit
