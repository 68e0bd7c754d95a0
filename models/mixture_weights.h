// Trains how a network's forecasts are mixed with public candidates, and nothing else.
#pragma once

#include <memory>
#include <string>

#include "dp/given_gradients.h"
#include "forecaster.h"

namespace tsdp::models {

/// A model of 3K + 1 parameters, where K forecasts are mixed: of candidate k, a_k and b_k, by which the logarithm of
/// its weight (tsdp/settings/mixture.h) rises at step h of H by a_k + b_k (2h − H − 1)/(H − 1), h = 1, …, H; log t, by
/// which the mixture's spread is multiplied; and c_k, by how many quarters of its distance from the mixture's median
/// forecasts are moved. All are 0 at the start, which changes nothing. The weights of the networks stay as they are.
///
/// The loss of a window is `loss_unit` times the mean quantile loss (levels 0.1, …, 0.9, observed steps) of the
/// mixture, over that of the candidate that did best on the series' last windows, or over a thousandth of the mean size
/// of the past's values, if that is more; 0 if no window counts, or all values of the past are 0. The spread s that the
/// last windows choose counts as a constant in the gradient, and the bounds of the data, at which forecasts are cut,
/// are not known here. It reads one window, its own past included, and couples no two windows.
class MixtureWeights final : public Forecaster {
 public:
  /// In this unit the default clip norm, 1e-4, lies among the norms of single windows' gradients: half of them are
  /// below 3e-5 on hourly loads and exchange rates, and below 6e-4 on the look-alike of traffic. Far smaller norms give
  /// every window one length, with which the weights of exchange rates ended worse than they began.
  static constexpr double loss_unit = 0.005;

  /// `network` has the mixture in its options, none of whose forecasts other programs make. Throws UsageError for a
  /// network that samples paths or is not on the CPU.
  explicit MixtureWeights(std::unique_ptr<Forecaster> network);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::int64_t past_length() const override;
  [[nodiscard]] std::int64_t longest_season() const override;
  [[nodiscard]] const Forecaster& network() const override;
  using Forecaster::network;
  [[nodiscard]] std::int64_t bytes_per_window() const override;
  [[nodiscard]] std::int64_t preferred_chunk(bool is_private) const override {
    static_cast<void>(is_private);
    return 32;
  }
  [[nodiscard]] std::unique_ptr<Forecaster> replica() const override;
  /// Of the network; its own are 0.
  void initialise(RandomStream& stream) override;
  at::Tensor losses(const WindowBatch& batch) override;
  void backward() override {}  // `losses` left the gradients
  [[nodiscard]] std::string script() const override;

 private:
  struct Shared;  // by all replicas
  MixtureWeights(std::shared_ptr<Shared> shared, const at::Tensor& values);
  Hidden forward(const WindowBatch& batch) override;

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<dp::GivenGradients> layer_;
};

}  // namespace tsdp::models
