#include "audit/data_attack.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "privacy/terms/numbers.h"
#include "settings/setup.h"
#include "training/model_setup.h"
#include "training/window_source.h"
#include "tsdp/data/windows.h"
#include "tsdp/random/random.h"

namespace tsdp::audit {
namespace {

/// A method that clips as the run's method does, in batches of a single window.
mechanism::TrainingMethod method_of_one(Config config) {
  config.sampling = {};
  config.sampling.top_level = privacy::TopLevel::deterministic;
  config.sampling.batch_size = 1;
  config.augmentation = {};
  config.privacy.noise_multiplier = 1.0;
  config.privacy.composition = privacy::StepComposition::symmetrised;  // nothing is composed
  return mechanism::method_of(config, {config.dataset.prediction_length + config.privacy.w});
}

}  // namespace

DataAttack::DataAttack(const Config& config, const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours,
                       models::Forecaster& model)
    : config_(config),
      scheme_(scheme),
      neighbours_(neighbours),
      model_(model),
      clipped_(model, config, method_of_one(config)) {}

Projection DataAttack::best() {
  Projection out;
  double furthest = -1.0;
  for (int exponent = -12; exponent <= 6; ++exponent) {
    const double most = config_.privacy.v.value_or(privacy::infinity);
    const double size = std::pow(10.0, exponent);
    if (size > most) break;
    for (const bool opposite : {false, true}) {
      const Extremes tried{static_cast<float>(opposite ? -0.5 * size : 0.0),
                           static_cast<float>(opposite ? 0.5 * size : size)};
      const auto [first, second] = touched(tried, 8);
      const double distance = (second - first).square().sum().item<double>();
      if (distance > furthest) {
        furthest = distance;
        out.extremes = tried;
      }
    }
  }
  if (!(furthest > 0.0)) {
    const double most = config_.privacy.v.value_or(1.0);
    out.extremes = {0.0F, static_cast<float>(most)};
  }
  const auto [first, second] = touched(out.extremes, 128);
  const auto plain = untouched();
  const auto moved = second - first;
  auto direction = moved.t().mv(moved.norm(2, {1}));  // those that move far count most
  const bool poisson = scheme_.parameters().bottom_level == privacy::BottomLevel::poisson;
  if (poisson) {
    // The number of windows is random, so what they have in common is left out of the attacker's view.
    const auto square = plain.dot(plain);
    if (square.item<double>() > 0.0) direction = direction - plain * (direction.dot(plain) / square);
  }
  out.direction = direction / direction.norm().clamp_min(1e-300);
  std::vector<double> z(static_cast<std::size_t>(out.direction.numel()));
  RandomStream(SecretKey::from_seed(0), "blank direction of an audit", 0).normals(0, z);
  out.blank = at::tensor(z, at::kDouble);
  for (int i = 0; i < 2; ++i)  // twice, because of rounding
    for (const auto& other : {out.direction, plain / plain.norm().clamp_min(1e-300)})
      out.blank -= other * out.blank.dot(other);
  out.blank /= out.blank.norm();
  const double base = plain.dot(out.direction).item<double>();
  out.offset = poisson ? 0.0 : base * static_cast<double>(scheme_.expected_windows());
  const double from = poisson ? 0.0 : base;
  out.shape.drawn = canary_shape(scheme_, neighbours_).drawn;
  out.shape.first = law_of(first.mv(out.direction) - from);
  out.shape.second = law_of(second.mv(out.direction) - from);
  return out;
}

std::vector<float> DataAttack::values(const Extremes& extremes, const Neighbours& neighbours, std::int64_t series,
                                      std::int64_t length, bool second) {
  std::vector<float> out(static_cast<std::size_t>(length), 0.0F);
  if (series != neighbours.series) return out;
  for (const auto place : neighbours.places)
    out[static_cast<std::size_t>(place)] = second ? extremes.second : extremes.first;
  return out;
}

at::Tensor DataAttack::gradients(const Extremes& extremes, bool second, const std::vector<std::int64_t>& starts) {
  const auto length = scheme_.parameters().lengths[neighbours_.series];
  const Neighbours alone{0, neighbours_.places};
  const auto data =
      data_of(config_, {length}, [&](std::int64_t s, std::int64_t l) { return values(extremes, alone, s, l, second); });
  const data::WindowStore store(data.dataset, model_.past_length(), config_.dataset.prediction_length);
  training::WindowSource source(store, training::features_of(model_, data.dataset), on_cpu);
  std::vector<at::Tensor> rows;
  for (const auto start : starts) {
    const std::vector<data::WindowIndex> one = {{0, start}};
    rows.push_back(clipped_.sum(source.gather(one), std::vector<std::int64_t>{0}).to(at::kDouble));
  }
  return at::stack(rows);
}

std::vector<Component> DataAttack::law_of(const at::Tensor& moves) const {
  constexpr double grid = 0.02;
  constexpr double negligible = 1e-9;
  using Law = std::map<std::int64_t, double>;
  const auto windows = static_cast<double>(scheme_.windows_of(neighbours_.series));
  const auto taken = static_cast<double>(moves.numel());
  // Windows that each one stands for.
  const auto each = static_cast<double>(touched_windows_of(scheme_, neighbours_).size()) / taken;
  const auto lambda = scheme_.parameters().subsequences_per_sequence;
  const auto sum_of = [&](const Law& a, const Law& b) {
    Law out;
    for (const auto& [x, p] : a)
      for (const auto& [y, q] : b)
        if (p * q > negligible) out[x + y] += p * q;
    return out;
  };
  const auto place = [&](std::int64_t i) { return std::llround(moves[i].item<double>() / grid); };
  Law law = {{0, 1.0}};
  if (scheme_.parameters().bottom_level == privacy::BottomLevel::poisson) {
    const double rate = std::min(1.0, each * static_cast<double>(lambda) / windows);
    for (std::int64_t i = 0; i < moves.numel(); ++i) {
      Law one = {{0, 1.0 - rate}};
      one[place(i)] += rate;
      law = sum_of(law, one);
    }
  } else {
    Law one = {{0, 1.0 - each * taken / windows}};
    for (std::int64_t i = 0; i < moves.numel(); ++i) one[place(i)] += each / windows;
    for (std::int64_t i = 0; i < lambda; ++i) law = sum_of(law, one);
  }
  double total = 0.0;
  for (const auto& [x, p] : law) total += p;
  std::vector<Component> out;
  for (const auto& [x, p] : law) out.push_back({grid * static_cast<double>(x), p / total});
  return out;
}

std::pair<at::Tensor, at::Tensor> DataAttack::touched(const Extremes& extremes, std::size_t most) {
  const auto all = touched_windows_of(scheme_, neighbours_);
  const auto every = (all.size() + most - 1) / most;
  std::vector<std::int64_t> starts;
  for (std::size_t i = 0; i < all.size(); i += every) starts.push_back(all[i].start);
  return {gradients(extremes, false, starts), gradients(extremes, true, starts)};
}

at::Tensor DataAttack::untouched() {
  const auto windows = scheme_.windows_of(neighbours_.series);
  const auto every = (windows + 63) / 64;
  std::vector<std::int64_t> starts;
  for (std::int64_t start = 0; start < windows; start += every) starts.push_back(start);
  return gradients({0.0F, 0.0F}, false, starts).mean(0);
}

}  // namespace tsdp::audit
