#include "report/report_content.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>
#include <optional>

#include "base/log.h"
#include "base/version.h"
#include "report_charts.h"
#include "run/metrics_log.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/data/windows.h"
#include "tsdp/ledger/ledger.h"
#include "tsdp/privacy/theorems/attack.h"
#include "tsdp/privacy/theorems/theorems.h"

namespace tsdp::exporting {
namespace {

/// How series are drawn, in words.
std::string drawn(const Config::Sampling& sampling) {
  switch (sampling.top_level) {
    case privacy::TopLevel::without_replacement: return "without replacement";
    case privacy::TopLevel::deterministic: return "in turn";
    case privacy::TopLevel::shuffled:
      return sampling.reshuffle == privacy::Reshuffle::once ? "in turn, in one order for all epochs"
                                                            : "in turn, in another order every epoch";
    case privacy::TopLevel::poisson: return "each by a coin of its own";
    case privacy::TopLevel::cyclic_poisson: return "each by a coin of its own when its group has its turn";
    case privacy::TopLevel::balls_in_bins:
      return sampling.redraw == privacy::Redraw::once ? "by bins that were drawn once"
                                                      : "by bins that every epoch drew anew";
  }
  throw Error(ExitCode::failure, "a top level without words");
}

using Json = nlohmann::ordered_json;

struct Chosen {
  data::ForecastRange range;
  std::string why;
};

/// Ranks of `count` things to show: all if there are few; otherwise the first, the middle, the last, and some between
/// them.
std::vector<std::size_t> spread_ranks(std::size_t count) {
  std::vector<std::size_t> ranks;
  if (count <= most_report_forecasts) {
    ranks.resize(count);
    std::iota(ranks.begin(), ranks.end(), std::size_t{0});
    return ranks;
  }
  // Six fill rows of two and of three.
  const auto last = count - 1;
  ranks = {0, last / 6, last / 3, last / 2, (3 * last + 2) / 4, last};
  return ranks;
}

/// The middle one of a series' windows; none if it has no windows.
std::optional<data::ForecastRange> middle_window(std::span<const data::ForecastRange> ranges, std::int64_t series) {
  std::vector<data::ForecastRange> own;
  for (const auto& range : ranges)
    if (range.series == series) own.push_back(range);
  return own.empty() ? std::nullopt : std::optional(own[own.size() / 2]);
}

std::vector<Chosen> choose_by_score(const ReportSources& s, std::span<const data::ForecastRange> ranges) {
  std::vector<std::pair<double, std::int64_t>> by_score;
  for (std::size_t series = 0; series < s.scores.by_series.size(); ++series) {
    const double crps = s.scores.by_series[series].mean_weighted_quantile_loss();
    if (std::isfinite(crps)) by_score.emplace_back(crps, static_cast<std::int64_t>(series));
  }
  std::sort(by_score.begin(), by_score.end());
  std::vector<Chosen> out;
  for (const auto rank : spread_ranks(by_score.size())) {
    const auto [crps, series] = by_score[rank];
    const auto window = middle_window(ranges, series);
    if (!window) continue;
    const auto place = by_score.size() == 1          ? cat("the only one")
                       : rank == 0                   ? cat("best of ", by_score.size())
                       : rank + 1 == by_score.size() ? cat("worst of ", by_score.size())
                       : 2 * rank == by_score.size() - 1 - (by_score.size() - 1) % 2
                           ? cat("median, ", rank + 1, " of ", by_score.size())
                           : cat(rank + 1, " of ", by_score.size());
    out.push_back({*window, cat(place, ", CRPS ", score_text(crps))});
  }
  return out;
}

std::vector<Chosen> choose_named(const ReportSources& s, std::span<const data::ForecastRange> ranges) {
  const auto& all = s.data.dataset.series;
  std::vector<Chosen> out;
  for (const auto& id : s.series) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const data::Series& series) { return series.id == id; });
    if (found == all.end()) {
      std::vector<std::string> ids;
      for (const auto& series : all) ids.push_back(series.id);
      throw UsageError(
          cat("--series: found '", id, "', the name of no series; the nearest is '", nearest_name(id, ids), "'"));
    }
    const auto series = found - all.begin();
    const auto window = middle_window(ranges, series);
    const double crps = s.scores.by_series[static_cast<std::size_t>(series)].mean_weighted_quantile_loss();
    if (window) out.push_back({*window, std::isfinite(crps) ? cat("chosen, CRPS ", score_text(crps)) : "chosen"});
  }
  return out;
}

/// How a report calls what a model is scored beside.
std::string shown_name(std::string name, mechanism::StartOrigin origin) {
  if (name == "start")
    return mechanism::rests_on_data(origin) ? "its start (trained on data)" : "its start (epsilon 0)";
  if (evaluation::is_baseline(name)) std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

double or_nan(float value) {
  return std::isfinite(value) ? static_cast<double>(value) : std::numeric_limits<double>::quiet_NaN();
}

/// Without seconds, or without a time of day, if they are zero.
std::string shown_moment(data::Moment moment) {
  auto text = data::moment_text(moment);
  for (const std::string_view zeros : {":00", " 00:00"})
    if (text.ends_with(zeros)) text.erase(text.size() - zeros.size());
  return text;
}

std::vector<ReportForecast> forecasts_of(const ReportSources& s, const std::vector<Chosen>& chosen) {
  std::vector<ReportForecast> out;
  if (chosen.empty()) return out;
  const auto past_length = s.module.attr("past_length").toInt();
  const auto horizon = s.module.attr("prediction_length").toInt();
  // With all variables of its series, which may be forecast together.
  const auto variables = s.data.dataset.variable_count();
  std::vector<data::WindowIndex> indices;
  for (const auto& c : chosen)
    for (std::int64_t v = 0; v < variables; ++v)
      indices.push_back({c.range.series / variables * variables + v, c.range.forecast_start});
  evaluation::shape_of(s.module).require_variables(s.data.dataset, indices);
  const data::WindowStore store(s.data.dataset, past_length, horizon);
  const auto rows = static_cast<std::int64_t>(indices.size());
  auto values = at::empty({rows, store.window_length()}, at::kFloat);
  auto observed = at::empty_like(values);
  store.gather(indices, values.data_ptr<float>(), observed.data_ptr<float>());
  RandomStream draws(SecretKey::from_seed(0), "report", 0);
  const auto found =
      evaluation::forecast(s.module, values.narrow(1, 0, past_length), observed.narrow(1, 0, past_length),
                           evaluation::KnownFeatures(s.module, s.data.dataset).gather(indices, at::kCPU),
                           {report_levels.begin(), report_levels.end()}, draws, std::nullopt,
                           evaluation::ExternalWindows(s.module, s.data.dataset, nullptr).gather(indices, at::kCPU));
  const auto of_a_row = static_cast<std::int64_t>(report_levels.size()) * horizon;
  const auto shown_past = std::max(2 * horizon, s.config.dataset.season_length);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto& c = chosen[i];
    const auto row = static_cast<std::int64_t>(i) * variables + c.range.series % variables;
    const auto* quantile = found.quantiles.data_ptr<double>() + row * of_a_row;
    const auto& series = s.data.dataset.series[static_cast<std::size_t>(c.range.series)];
    ReportForecast f;
    f.series = series.id;
    f.why = c.why;
    f.start = shown_moment(series.at(s.data.dataset.frequency, c.range.forecast_start));
    for (auto t = std::max<std::int64_t>(0, c.range.forecast_start - shown_past); t < c.range.forecast_start + horizon;
         ++t) {
      (t < c.range.forecast_start ? f.past : f.truth).push_back(or_nan(series.values[static_cast<std::size_t>(t)]));
      f.moments.push_back(series.at(s.data.dataset.frequency, t));
    }
    f.seasonal_naive =
        evaluation::seasonal_naive(std::span(series.values).first(static_cast<std::size_t>(c.range.forecast_start)),
                                   s.config.dataset.season_length, horizon);
    for (auto& level : f.quantiles) {
      level.assign(quantile, quantile + horizon);
      quantile += horizon;
    }
    out.push_back(std::move(f));
  }
  return out;
}

/// The best attacker's curve for the steps that the ledger charges.
void add_attack(ReportContent& content, const ReportSources& s, const mechanism::TrainingMethod& method) {
  const auto& ledger = s.metadata.privacy;
  if (!ledger.value("private", false) || !ledger.contains("compositions") || !ledger.contains("noise_multiplier"))
    return;
  try {
    const auto curve = method.privacy()->curve();
    for (const double rate : {0.0, 0.001, 0.003, 0.01, 0.02, 0.035}) content.false_positive_rates.push_back(rate);
    for (int i = 1; i <= 20; ++i) content.false_positive_rates.push_back(0.05 * i);
    content.true_positive_rates =
        privacy::trade_off(*curve, ledger["compositions"].get<std::uint64_t>(), content.false_positive_rates);
  } catch (const PrivacyError& error) {
    // The page says what the ledger says; only this drawing is missing.
    log::warning(cat("report: no drawing of the best attacker: ", error.what()));
    content.false_positive_rates.clear();
    content.true_positive_rates.clear();
  }
}

std::string now_text() { return data::moment_text(static_cast<data::Moment>(std::time(nullptr))) + " UTC"; }

/// Facts of the run, by its own configuration and ledger, whatever it is scored with and on.
std::vector<std::pair<std::string, std::string>> facts_of(const ReportSources& s,
                                                          const privacy::SubsamplingScheme& scheme) {
  const auto c = read_config(s.folder.config());
  const auto& ledger = s.metadata.privacy;
  const auto& lengths = scheme.parameters().lengths;
  const bool owners = lengths.has_owners();
  const bool is_private = ledger.value("private", false);
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const char* what, const std::string& value) { out.emplace_back(what, value); };
  add("Trained on",
      cat(owners ? cat(lengths.count(), " series of ", scheme.sequences(), " owners")
                 : cat(scheme.sequences(), ledger.contains("synthetic_data") ? " synthetic series" : " series"),
          scheme.variables() > 1 ? cat(" of ", scheme.variables(), " variables, a value of each every ")
                                 : std::string(", one value each "),
          c.dataset.frequency, "; ",
          lengths.shortest() == lengths.longest() ? cat(lengths.longest())
                                                  : cat(lengths.shortest(), " to ", lengths.longest()),
          " steps of each"));
  std::int64_t own = 0;
  for (const auto& scores : s.scores.by_series) own += scores.windows();
  add("Windows scored",
      cat(s.scores.model.windows(), scheme.variables() > 1 ? ", each variable's counted by itself" : "", " (",
          s.windows, ") of ", s.data.dataset.name, ", ", c.dataset.prediction_length, " steps each",
          s.data.shards ? cat("; of ", s.scores.series, " of ", scheme.sequences(),
                              " series, of which rank 0's own, with ", own, " windows, are shown one by one")
                        : std::string()));
  add("Model", cat(c.model.name, ", ", s.metadata.model.value("parameters", std::int64_t{0}), " parameters; reads ",
                   s.metadata.model.value("past_length", std::int64_t{0}), " past values"));
  add("Batches", cat(rounded(scheme.mean_windows(), 4), scheme.mean_windows() == 1.0 ? " window" : " windows",
                     scheme.variables() > 1 ? " of all variables" : "", " expected a step; ",
                     owners ? "owners" : "series", " chosen ", drawn(c.sampling),
                     c.sampling.largest_batch ? cat(", at most ", *c.sampling.largest_batch, " a step") : std::string(),
                     ", ", c.sampling.subsequences_per_sequence, " window",
                     c.sampling.subsequences_per_sequence == 1 ? "" : "s", " of each, drawn ",
                     c.sampling.bottom_level == privacy::BottomLevel::with_replacement ? "with replacement"
                                                                                       : "by Poisson sampling"));
  const auto taken = ledger.value("steps_taken", std::uint64_t{0});
  const auto per_epoch = static_cast<double>(scheme.steps_per_epoch());
  add("Steps", cat(taken, " of ", ledger.value("steps_planned", std::uint64_t{0}), " planned, ",
                   rounded(static_cast<double>(taken) / per_epoch, 5), " epochs",
                   is_private ? cat("; charged: ", ledger.value("steps_charged", std::uint64_t{0})) : std::string()));
  add("Optimizer", cat(c.optimizer.name, ", learning rate ", rounded(c.optimizer.learning_rate.value()),
                       c.training.trainable == Trainable::mixture ? ", to 0 over the second half of the steps" : ""));
  if (is_private) {
    add("Neighbouring data",
        ledger.contains("relation") ? ledger["relation"].value("text", std::string()) : std::string());
    add("Theorem",
        cat(ledger.value("theorem", std::string()), " of ", ledger.value("source", std::string()), "; composed by ",
            ledger.value("composition_unit", std::string()), ", ", ledger.value("compositions", std::uint64_t{0}),
            " times", ledger.contains("composition") ? ", adaptively (tsdp.6)" : ""));
    add("Noise multiplier σ", rounded(ledger.value("noise_multiplier", 0.0), 6));
    add("Clip norm",
        cat(ledger.value("clip_norm", 0.0), " (", ledger.value("clipping", std::string()), "), of ",
            owners ? "the mean gradient of an owner's windows in a step"
            : scheme.parameters().record == privacy::Record::series ? "the mean gradient of a series' windows in a step"
            : scheme.variables() > 1                                ? "the mean gradient of a window of all variables"
                                                                    : "every window's gradient"));
    add("Target", cat("epsilon ", ledger.value("target_epsilon", 0.0), " at delta ", ledger.value("delta", 0.0)));
    if (c.augmentation.context_noise > 0.0 || c.augmentation.forecast_noise > 0.0)
      add("Noise on the data", cat("context ", c.augmentation.context_noise, ", forecast ",
                                   c.augmentation.forecast_noise, " (multiples of v)"));
  }
  add("Randomness", ledger.value("randomness", std::string()));
  add("Weights", c.training.checkpoint == ExportedWeights::best ? std::string("of the best checkpoint")
                 : ledger.value("steps_taken", std::uint64_t{1}) == 0
                     ? std::string("as the run began: no step was taken")
                     : std::string("of the last step"));
  return out;
}

}  // namespace

std::string how_chosen(std::size_t series, std::size_t scored, std::size_t shown, bool asked_for,
                       const std::string& windows, const std::string& things) {
  if (asked_for) return cat("Of ", series, " ", things, ", those that were asked for");
  const auto left_out = series - scored;
  const auto those =
      left_out == 0 ? cat(series, " ", things) : cat("the ", scored, " of ", series, " ", things, " that have a score");
  auto text = shown < scored ? cat("Of ", those, ", those with the best, the median and the worst CRPS over all ",
                                   windows, " windows, and some between them")
                             : cat(left_out == 0 ? cat("All ", things) : cat("All of ", those),
                                   ", from the best to the worst CRPS");
  if (left_out > 0)
    text += cat(". The other ", left_out, left_out == 1 ? " has" : " have",
                " no score, as nothing, or nothing but zeros, was observed in ", left_out == 1 ? "its" : "their",
                " windows");
  return text;
}

ReportContent report_content(const ReportSources& s) {
  const auto& ranges = s.windows == "validation" ? s.data.split.validation : s.data.split.test;
  ReportContent content;
  content.dataset = s.data.dataset.name;
  content.model = s.metadata.model.value("name", s.config.model.name);
  content.program = cat("tsdp ", version());
  content.made = now_text();
  content.step = s.data.dataset.frequency.text();
  content.windows = s.windows;
  // From the ledger's own terms, whatever configuration the model is scored with.
  const auto method = mechanism::read_ledger(s.metadata.privacy, s.folder.ledger().string()).method;
  content.steps_per_epoch = method.scheme().steps_per_epoch();
  content.ledger = s.metadata.privacy;
  content.start_origin = mechanism::start_origin_of(content.ledger, s.folder.ledger().string());
  content.forecasts = forecasts_of(s, s.series.empty() ? choose_by_score(s, ranges) : choose_named(s, ranges));
  const auto& by_series = s.scores.by_series;
  const auto scored = static_cast<std::size_t>(std::count_if(by_series.begin(), by_series.end(), [](const auto& one) {
    return std::isfinite(one.mean_weighted_quantile_loss());
  }));
  content.how_chosen = how_chosen(
      s.data.dataset.series.size(), scored, content.forecasts.size(), !s.series.empty(), s.windows,
      s.data.dataset.variable_count() > 1
          ? cat("variables of ", std::ssize(s.data.dataset.series) / s.data.dataset.variable_count(), " series")
          : "series");
  content.how_chosen += cat(". Of each the window in the middle of its ", s.windows,
                            " windows is shown, whatever the forecast there looks like.");
  content.scores = {{content.model, s.scores.model.json()}};
  const auto best = evaluation::best_free(s.scores);
  const auto beside = evaluation::scored_beside(s.scores);
  for (const auto& [name, metrics] : beside.items()) {
    if (best && best->name == name) content.best_free = content.scores.size();
    content.scores.push_back({shown_name(name, content.start_origin), metrics});
  }
  content.remarks = s.scores.remarks;
  if (s.scores.start) content.start_crps = s.scores.start->mean_weighted_quantile_loss();
  if (s.scores.model.windows() == 0) content.scores.clear(), content.best_free = 0;
  content.metrics = training::read_metrics(s.folder.metrics());
  if (s.config.training.trainable == Trainable::mixture)
    content.loss =
        "Quantile loss of the mixture, as a share of the best candidate's on the series' own past, times 0.005";
  content.validates = !s.data.split.validation.empty();
  add_attack(content, s, method);
  content.facts = facts_of(s, method.scheme());
  return content;
}

void write_report(const ReportSources& sources) {
  write_file_atomically(sources.folder.report(), report_html(report_content(sources)), FileAccess::owner);
}

}  // namespace tsdp::exporting
