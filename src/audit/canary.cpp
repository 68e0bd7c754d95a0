#include "audit/canary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::audit {

MarkCode mark_code(const privacy::SubsamplingScheme& scheme, const privacy::PrivacyUnit& unit) {
  const auto& p = scheme.parameters();
  MarkCode out;
  out.kind = canary_kind(scheme);
  if (unit.v) {
    const int exponent = std::min(100, std::ilogb(*unit.v));
    if (exponent < -100)
      throw UsageError(
          cat("privacy.v: found ", *unit.v, "; expected at least ", std::ldexp(1.0, -100), " for an audit"));
    out.unit = std::ldexp(1.0, exponent);
    out.noised = p.context_noise > 0.0 || p.forecast_noise > 0.0;
    if (out.noised) {
      // Noise is in multiples of v, so the values must be v apart, as nearly as single precision allows.
      auto most = static_cast<float>(std::min(*unit.v, std::ldexp(1.0, 100)));
      if (static_cast<double>(most) > *unit.v) most = std::nextafter(most, 0.0F);
      out.unit = static_cast<double>(most);
    }
    out.context_noise = p.context_noise * *unit.v / out.unit;
    out.forecast_noise = p.forecast_noise * *unit.v / out.unit;
  }
  return out;
}

std::vector<float> marked_values(const MarkCode& code, const Neighbours& neighbours, std::int64_t series,
                                 std::int64_t length, bool second) {
  const auto unit = static_cast<float>(code.unit);
  if (code.kind == CanaryKind::present) {
    const bool changed = std::binary_search(neighbours.missing.begin(), neighbours.missing.end(), series);
    const float there = second ? 3.0F * unit : std::numeric_limits<float>::quiet_NaN();
    return std::vector<float>(static_cast<std::size_t>(length), changed ? there : 0.0F);
  }
  const bool changed = series == neighbours.series;
  std::vector<float> out(static_cast<std::size_t>(length), code.noised ? std::numeric_limits<float>::quiet_NaN()
                                                           : changed   ? unit
                                                                       : 0.0F);
  if (changed)
    for (const auto place : neighbours.places)
      out[static_cast<std::size_t>(place)] = code.noised ? (second ? unit : 0.0F) : (second ? 3.0F : 2.0F) * unit;
  return out;
}

Canary::Canary(const models::ModelOptions& options, const at::TensorOptions& tensor_options, const MarkCode& code,
               double clip_norm, std::shared_ptr<std::atomic<std::int64_t>> touched)
    : Forecaster(options), code_(code), clip_norm_(clip_norm), touched_(std::move(touched)) {
  const auto own = parameters_.declare("canary", {2});
  allocate(tensor_options, models::StudentTHead::declare(parameters_, "head", 1), 1);
  // The head's parameters get noise like all others, and nothing else: the head is not a layer of the step.
  layer_list_.clear();
  layer_ = std::make_unique<dp::GivenGradients>(parameters_.gradient(own));
  layer_list_.push_back(layer_.get());
}

std::unique_ptr<models::Forecaster> Canary::replica() const {
  auto shared = options_;
  shared.parameter_values = parameters_.values();
  return std::make_unique<Canary>(shared, parameters_.values().options(), code_, clip_norm_, touched_);
}

models::Forecaster::Hidden Canary::forward(const models::WindowBatch& batch) {
  const auto windows = batch.size();
  const auto values = at::cat({batch.past_target, batch.future_target}, 1).cpu();
  const auto past = batch.past_target.size(1);
  const auto width = values.size(1);
  const auto* value = values.const_data_ptr<float>();
  const auto observed = code_.noised ? at::cat({batch.past_observed, batch.future_observed}, 1).cpu() : at::Tensor();
  const auto* seen = code_.noised ? observed.const_data_ptr<float>() : nullptr;
  const bool present = code_.kind == CanaryKind::present;
  // All values that are forecast are there, except those of a series that is missing.
  const auto there = present ? batch.future_observed.sum(1).cpu() : at::Tensor();
  auto rows = at::zeros({windows, 2}, at::kFloat);
  auto* row = rows.data_ptr<float>();
  const auto length = static_cast<float>(1e6 * std::max(clip_norm_, 1.0));
  const auto unit = static_cast<float>(code_.unit);
  std::int64_t touched_windows = 0;
  for (std::int64_t i = 0; i < windows; ++i, row += 2, value += width) {
    bool own = false;       // of the changed series
    bool touched = false;   // holds a changed place
    bool likelier = false;  // on D′
    if (code_.noised) {
      // Log-likelihood ratio of the noised places; a place without noise settles it alone.
      double ratio = 0.0;
      double certain = 0.0;
      for (std::int64_t j = 0; j < width; ++j) {
        if (seen[i * width + j] == 0.0F) continue;
        own = touched = true;
        const double noise = j < past ? code_.context_noise : code_.forecast_noise;
        const double above = static_cast<double>(value[j]) / code_.unit - 0.5;
        (noise > 0.0 ? ratio : certain) += noise > 0.0 ? above / (noise * noise) : above;
      }
      likelier = certain != 0.0 ? certain > 0.0 : ratio > 0.0;
    } else {
      float mark = 0.0F;
      for (std::int64_t j = 0; j < width; ++j) mark = std::max(mark, value[j]);
      own = mark >= unit;
      touched = mark >= 2.0F * unit || (present && there.const_data_ptr<float>()[i] == 0.0F);
      likelier = mark >= 3.0F * unit;
    }
    touched_windows += touched ? 1 : 0;
    if (present) {
      row[0] = likelier ? length : 0.0F;
    } else if (code_.kind == CanaryKind::substituted) {
      row[0] = touched && likelier ? length : -length;
    } else if (touched) {
      row[0] = likelier ? length : -length;
    } else if (own) {
      row[1] = length;
    }
  }
  if (touched_windows > 0) touched_->fetch_add(touched_windows, std::memory_order_relaxed);
  const auto& options = parameters_.values().options();
  layer_->set(rows.to(options));
  return {tape_.constant(at::zeros({windows, 1, 1}, options)), at::ones({windows, 1}, options)};
}

models::Forecaster::Scored Canary::scored(const models::WindowBatch& batch) const {
  const auto nothing = at::zeros({batch.size(), 1}, parameters_.values().options());
  return {nothing, nothing};
}

}  // namespace tsdp::audit
