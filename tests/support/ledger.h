// A ledger for models that no run has made.
#pragma once

#include "tsdp/privacy/accountant.h"
#include "tsdp/sampling/ledger.h"

namespace tsdp::test {

/// Of a finished run of 20 steps, with privacy or without.
inline nlohmann::ordered_json ledger(bool with_privacy = true) {
  sampling::Ledger out;
  out.program = "tsdp test";
  out.state = sampling::RunState::finished;
  out.run = {"0123456789abcdef0123456789abcdef", "0123456789abcdef", std::string(64, '0')};
  out.sequences = 4;
  out.shortest = out.longest = 100;
  out.steps_planned = out.steps_taken = out.steps_charged = 20;
  if (with_privacy) {
    auto& privacy = out.privacy.emplace();
    privacy.theorem = "4.4";
    privacy.clipping = "flat";
    privacy.delta = 1e-7;
    privacy.target_epsilon = 1.0;
    privacy.noise_multiplier = 4.0;
    privacy.epsilon = privacy::Accountant(out.mechanism().pair).epsilon(privacy.delta, 20);
  }
  return sampling::document(out);
}

}  // namespace tsdp::test
