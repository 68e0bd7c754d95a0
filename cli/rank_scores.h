// Scores over the test windows of all ranks that trained one model together.
#pragma once

#include <optional>

#include "run_model.h"
#include "training/ranks.h"
#include "tsdp/settings/auto_settings.h"

namespace tsdp::cli {

/// On rank 0: sends the other ranks the weights of the released model and those that it began with, of `start`, for
/// them to score on their own windows (score_own). Both are released, or follow from the configuration.
void send_weights(const models::Forecaster& released, const models::Forecaster& start, training::Ranks& ranks);

/// On rank 0, after `send_weights`: adds to `scores` (of the model, its start and the baselines) the sums of all ranks
/// that tell theirs. Scores of single series, and remarks, stay those of rank 0. Warns of ranks that tell none.
void add_scores_of_others(evaluation::BacktestResult& scores, training::Ranks& ranks);

/// On any other rank, after its part of a run that is done: scores the model on this rank's windows and sends rank 0
/// the sums; none with training.mask_sums, by which a rank keeps to itself what it adds. Returns the scores; none, with
/// a warning, where the model cannot be scored. A rank 0 that does not take them is a warning, too.
[[nodiscard]] std::optional<evaluation::BacktestResult> score_own(const mechanism::Settled& run,
                                                                  const data::PreparedData& data,
                                                                  training::Ranks& ranks);

}  // namespace tsdp::cli
