#include "rank_scores.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/log.h"
#include "training/model_setup.h"
#include "training/start_weights.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {
namespace {

/// What ranks add up, in this order.
std::vector<evaluation::Metrics*> added_up(evaluation::BacktestResult& scores) {
  std::vector<evaluation::Metrics*> out = {&scores.model, &scores.start.value()};
  for (auto& baseline : scores.baselines) out.push_back(&baseline.all);
  return out;
}

}  // namespace

void send_weights(const models::Forecaster& released, const models::Forecaster& start, training::Ranks& ranks) {
  ranks.take_from_first(start.parameters().values());
  ranks.take_from_first(released.parameters().values());
}

void add_scores_of_others(evaluation::BacktestResult& scores, training::Ranks& ranks) {
  const auto told = ranks.gathered(std::span<const double>());
  static_cast<void>(ranks.from_first("taken"));  // so that all end together
  std::vector<std::string> silent;
  auto all = scores;  // nothing is added unless all that was told is in order
  for (std::size_t r = 1; r < told.size(); ++r) {
    if (told[r].empty()) {
      silent.push_back(cat(r));
      continue;
    }
    const double series = told[r].front();
    if (!(series >= 0.0 && series <= 1e15)) throw Error(ExitCode::failure, "scores: found a count that is none");
    all.series += static_cast<std::int64_t>(series);
    auto left = std::span<const double>(told[r]).subspan(1);
    for (auto* metrics : added_up(all)) {
      const auto count = std::min(metrics->sums().size(), left.size());
      metrics->add(left.first(count));
      left = left.subspan(count);
    }
  }
  scores = std::move(all);
  for (auto& remark : scores.remarks) remark = cat("rank 0's own series: ", remark);
  if (!silent.empty())
    log::warning(cat("scores are without the series of rank", silent.size() > 1 ? "s " : " ", join(silent, ", "),
                     ", which tell", silent.size() > 1 ? "" : "s",
                     " none (training.mask_sums, or a line there says why)"));
}

std::optional<evaluation::BacktestResult> score_own(const mechanism::Settled& run, const data::PreparedData& data,
                                                    training::Ranks& ranks) {
  const auto& config = run.config;
  auto model = training::model_of(config, at::TensorOptions(at::kFloat));
  const auto& values = model->parameters().values();
  ranks.take_from_first(values);
  model->keep_start();
  model->keep_networks(training::networks_of(config, run.networks));
  auto of_start = exporting::make_module(*model, config.model.sampled_forecasts);  // has a copy of the weights
  ranks.take_from_first(values);
  auto released = exporting::make_module(*model, config.model.sampled_forecasts);
  const auto scores_of = [&](torch::jit::Module& module) {
    return evaluation::backtest(module, data.dataset, data.split.test, config.dataset.season_length, at::kCPU);
  };
  std::optional<evaluation::BacktestResult> out;
  std::vector<double> told;
  try {
    auto scores = scores_of(released);
    scores.start = scores_of(of_start).model;
    scores.start_origin = run.start_origin();
    told.push_back(static_cast<double>(scores.series));
    for (const auto* metrics : added_up(scores))
      for (const auto sum : metrics->sums()) told.push_back(sum);
    out = std::move(scores);
  } catch (const Error& error) { log::warning(cat("no scores of this rank: ", error.what())); }
  if (config.training.mask_sums) told.clear();
  try {
    static_cast<void>(ranks.gathered(told));
    static_cast<void>(ranks.from_first(""));
  } catch (const Error& error) {  // the run is done all the same
    log::warning(cat("rank 0 has not taken the scores of this rank: ", error.what()));
  }
  return out;
}

}  // namespace tsdp::cli
