#include "evaluation/private_inference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/oddities.h"
#include "privacy/theorems/series_law.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::evaluation {
namespace {

using Json = nlohmann::ordered_json;

/// a + b and a · b, rounded up if they are not exact.
double upper_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;  // Knuth: the rounding error of a sum is itself a number
  const double error = (a - (sum - part)) + (b - part);
  return error > 0.0 ? std::nextafter(sum, std::numeric_limits<double>::infinity()) : sum;
}
double upper_product(double a, double b) {
  const double product = a * b;
  return std::fma(a, b, -product) > 0.0 ? std::nextafter(product, std::numeric_limits<double>::infinity()) : product;
}

}  // namespace

PastSource::PastSource(const data::Dataset& dataset, std::int64_t past_length, std::int64_t season_length,
                       const PrivateInference* privacy)
    : dataset_(dataset),
      privacy_(privacy),
      past_length_(past_length),
      store_(dataset, privacy != nullptr ? std::max(past_length, season_length) : past_length, 0) {
  if (privacy != nullptr && !store_.has_exact())
    throw Error(ExitCode::failure, "private forecasts need series that were read in double precision");
}

void PastSource::gather(std::span<const data::WindowIndex> indices, std::uint64_t first_use) {
  const auto rows = static_cast<std::int64_t>(indices.size());
  values_ = at::empty({rows, read_length()}, at::kFloat);
  marks_ = at::empty_like(values_);
  if (privacy_ != nullptr) {
    exact_.resize(static_cast<std::size_t>(values_.numel()));
    store_.gather(indices, exact_.data(), marks_.data_ptr<float>());
  } else {
    store_.gather(indices, values_.data_ptr<float>(), marks_.data_ptr<float>());
  }
  naive_.resize(indices.size());
  private_naive_.resize(privacy_ != nullptr ? indices.size() : 0);
  target_ = values_.narrow(1, read_length() - past_length_, past_length_);
  observed_ = marks_.narrow(1, read_length() - past_length_, past_length_);
  if (privacy_ != nullptr) {
    target_ = at::empty({rows, past_length_}, at::kFloat);
    observed_ = at::empty_like(target_);
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto place = indices[i].start;
    if (privacy_ != nullptr) {
      privatise(i, place, first_use + i);
      naive_[i] = private_naive_[i];
    } else {
      naive_[i] = std::span(dataset_.series[static_cast<std::size_t>(indices[i].series)].values)
                      .first(static_cast<std::size_t>(place));
    }
  }
}

void PastSource::privatise(std::size_t row, std::int64_t place, std::uint64_t use) {
  const auto width = static_cast<std::size_t>(read_length());
  const auto past = static_cast<std::size_t>(past_length_);
  const std::span values(values_.data_ptr<float>() + row * width, width);
  const std::span marks(marks_.data_ptr<float>() + row * width, width);
  const std::vector<float> observed(marks.begin(), marks.end());
  RandomStream coins(privacy_->key, sampling::context_coins_purpose, use);
  const RandomStream noise(privacy_->key, sampling::context_noise_purpose, use);
  privacy_->mechanism.release(coins, noise, std::span(exact_).subspan(row * width, width), values, marks);
  // From here on, only the release is used, and which values were observed.
  const std::span model_values(target_.data_ptr<float>() + row * past, past);
  const std::span model_marks(observed_.data_ptr<float>() + row * past, past);
  std::copy_n(values.end() - past_length_, past, model_values.begin());
  std::copy_n(marks.end() - past_length_, past, model_marks.begin());
  sampling::impute(model_values, model_marks, std::span(observed).last(past));
  sampling::impute(values, marks, observed);
  auto& naive = private_naive_[row];
  const auto given = static_cast<std::size_t>(std::min(read_length(), place));
  naive.assign(given, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t j = 0; j < given; ++j)
    if (marks[width - given + j] != 0.0F) naive[j] = values[width - given + j];
}

Json inference_privacy(const PrivateInference& privacy, std::int64_t uses) {
  const auto& p = privacy.mechanism.parameters();
  const auto k = static_cast<double>(uses);
  Json out;
  out["epsilon"] = p.epsilon;
  out["delta"] = p.delta;
  out["v"] = p.v;
  out["w"] = p.w;
  out["keep_probability"] = p.keep;
  out["noise_multiplier"] = privacy.mechanism.noise_multiplier();
  out["noise"] = privacy.mechanism.noise();
  out["theorem"] = "Appendix H, visible pattern";
  out["derivation"] =
      "delta(epsilon) = sum over i = 0..w of Bin(i; w, keep_probability) * delta_Gauss(epsilon; sqrt(i) (1 + 2^-19) v "
      "/ noise)";
  const auto relation = cat("the past of one series changes in at most ", p.w, p.w == 1 ? " value" : " values",
                            " by at most ", p.v, p.w == 1 ? "" : " each");
  out["relation"] = relation;
  out["use"] = "one past of one series, whatever is computed from it";
  out["composition"] = {{"uses_of_a_change", uses},
                        {"epsilon", upper_product(k, p.epsilon)},
                        {"delta", std::min(1.0, upper_product(k, p.delta))},
                        {"text",
                         "k uses that read a changed value cost at most (k epsilon, k delta) together, forecasts made "
                         "on other occasions included"}};
  out["randomness"] =
      privacy.reproducible ? "reproducible from the seed, not for release" : "key from the operating system";
  out["not_covered"] = {
      "lengths of the series, their calendar, and which values are missing: treated as public",
      "whatever else is computed from true values, such as scores",
      "covariates, where the model reads them: treated as public",
      "the training of the model, for series that were in it: it has a statement of its own",
      cat("whether the series are read at all: refused are values that are no numbers or of magnitude ",
          rounded(static_cast<double>(data::least_excessive), 6),
          " and more, tables in which no number tells decimal points from points of thousands, "
          "series of four different values or more that are another one or its beginning from the same time on, and, "
          "to be scored, series most of whose changes single precision does not hold"),
      "floating-point side channels: noise is made of finitely many random bits in double precision, cut at 12.07 "
      "standard deviations (which delta pays for), and released on a grid of 2^-24 of its deviation"};
  auto statement =
      cat("Each forecast: (", exact(p.epsilon), ", ", exact(p.delta), ")-differential privacy, where ", relation,
          " (Appendix H, visible pattern; noise ", rounded(privacy.mechanism.noise_multiplier(), 4),
          " times that, keep probability ", rounded(p.keep, 4),
          "). k forecasts that read a changed value cost at most k times as much together.");
  if (privacy.reproducible) statement += " NOT FOR RELEASE: the randomness is reproducible from the seed.";
  out["statement"] = std::move(statement);
  return out;
}

void require_public_covariates(bool asked, const Json& ledger) {
  if (asked)
    throw UsageError(
        "--private: the configuration has dataset.covariates.private, and a private forecast reads covariates as they "
        "are; expected forecasts without --private, or covariates that are public");
  if (!ledger.is_object() || !ledger.contains("private")) return;
  const auto known = mechanism::read_ledger(ledger, "the model's ledger");
  if (known.protects_covariates)
    throw UsageError(cat("--private: the model's training protects the covariates (", join(known.covariates, ", "),
                         "), which a private forecast would read as they are; expected a model without them"));
}

Json with_training(const PrivateInference& privacy, const Json& ledger) {
  const auto& p = privacy.mechanism.parameters();
  Json out;
  out["epsilon"] = nullptr;
  out["delta"] = nullptr;
  if (!ledger.is_object() || !ledger.contains("private")) {
    out["text"] = "Nothing is known of the model's training: nothing protects the series that it was trained on.";
    return out;
  }
  // Every run from which the weights come.
  const auto last = mechanism::read_ledger(ledger, "the model's ledger");
  auto runs = mechanism::earlier_runs(last.start, "the model's ledger");
  const bool chained = !runs.empty();
  if (!last.synthetic) runs.insert(runs.begin(), last);
  double epsilon = p.epsilon;
  double delta = p.delta;
  for (const auto& run : runs) {
    if (!run.protects()) {
      out["text"] = cat(chained ? "The weights come from runs of which one was trained " : "The model was trained ",
                        run.is_private() ? "with noise that follows from a seed" : "without privacy",
                        ": nothing protects the series that it was trained on.");
      return out;
    }
    // A changed past is a whole series replaced by another.
    auto cost = std::pair{run.cost->epsilon.upper, run.cost->delta};
    if (run.method.privacy()->unit().relation == privacy::Relation::series) {
      const auto replaced = run.method.privacy()->substitution(run.accounted_uses(), cost.first, cost.second);
      cost = {replaced.epsilon, replaced.delta};
    }
    epsilon = upper_sum(epsilon, cost.first);
    delta = upper_sum(delta, cost.second);
  }
  if (privacy.reproducible) {
    out["text"] =
        "The forecast's randomness follows from its seed, so that nothing protects the series that it was made from. "
        "NOT FOR RELEASE.";
    return out;
  }
  if (runs.empty()) {
    out["text"] =
        "The model was trained on synthetic series alone, so that every series needs the forecast's guarantee alone.";
    return out;
  }
  out["epsilon"] = epsilon;
  out["delta"] = std::min(1.0, delta);
  out["text"] = cat("The model's own guarantee is about the series it was trained on, under another relation: ",
                    ledger.value("statement", std::string("no statement")),
                    " A series that was not trained on needs the forecast's guarantee alone. For one that was, the sum",
                    chained ? " over all runs that the weights come from" : "", ", (", rounded_up(epsilon, 4), ", ",
                    rounded_up(out["delta"].get<double>(), 4),
                    ") with one forecast, covers the changes of values that all of these relations allow (of relation "
                    "series: any), and no others.");
  return out;
}

}  // namespace tsdp::evaluation
