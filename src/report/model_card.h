// A model card: what goes along with a model that is released.
#pragma once

#include <optional>
#include <string>

#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"

namespace tsdp::exporting {

/// Scores that a card shows.
struct CardScores {
  const evaluation::BacktestResult& scores;
  std::string windows;  ///< on which: "test" or "validation"
  std::string dataset;  ///< of which data set
};

/// The card of an exported model in Markdown, with the head that model hubs read: what it is, what it may be used for,
/// its privacy in words, what it was trained on, how to use and check it. From `metadata` alone, so the model's epsilon
/// covers it. `scores`, if there are any, stand there with the word that no epsilon covers them.
[[nodiscard]] std::string model_card(const ModelMetadata& metadata, const std::optional<CardScores>& scores = {});

}  // namespace tsdp::exporting
