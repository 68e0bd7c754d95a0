// A ledger for models that no run has made.
#pragma once

#include "tsdp/ledger/ledger.h"

namespace tsdp::test {

/// Of a finished run of 20 steps, with privacy or without.
inline nlohmann::ordered_json ledger(bool with_privacy = true) {
  tsdp::privacy::SubsamplingScheme::Parameters p;
  p.lengths = tsdp::privacy::SeriesLengths::equal(4, 100);
  const tsdp::privacy::SubsamplingScheme law(p);
  mechanism::Ledger out(with_privacy ? mechanism::TrainingMethod(mechanism::PrivateMechanism(
                                           {}, law, {}, {tsdp::privacy::NoiseKind::independent, 4.0}))
                                     : mechanism::TrainingMethod(law));
  out.program = "tsdp test";
  out.state = mechanism::RunState::finished;
  out.run = {"0123456789abcdef0123456789abcdef", "0123456789abcdef", std::string(64, '0')};
  out.steps_planned = out.steps_taken = out.steps_charged = 20;
  if (with_privacy) {
    auto& cost = out.cost.emplace();
    cost.delta = 1e-7;
    cost.target_epsilon = 1.0;
    const auto curve = out.method.privacy()->curve();
    cost.epsilon = curve->epsilon(cost.delta, 20);
    cost.attack = privacy::stated(privacy::attack_bound(*curve, 20));
  }
  return mechanism::document(out);
}

}  // namespace tsdp::test
