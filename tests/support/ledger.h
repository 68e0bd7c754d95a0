// A ledger for models that no run has made.
#pragma once

#include "tsdp/sampling/ledger.h"

namespace tsdp::test {

/// Of 10 of 20 planned steps of a run with privacy, whose numbers need not follow from its terms; or of one without.
inline nlohmann::ordered_json ledger(bool with_privacy = true) {
  sampling::Ledger out;
  out.program = "tsdp test";
  out.state = sampling::RunState::finished;
  out.run = {"0123456789abcdef0123456789abcdef", "0123456789abcdef", std::string(64, '0')};
  out.sequences = 4;
  out.shortest = out.longest = 100;
  out.steps_planned = 20;
  out.steps_taken = out.steps_charged = 10;
  if (with_privacy) {
    auto& privacy = out.privacy.emplace();
    privacy.theorem = "4.4";
    privacy.clipping = "flat";
    privacy.delta = 1e-7;
    privacy.target_epsilon = 1.0;
    privacy.epsilon = {0.5, 0.625};
  }
  return sampling::document(out);
}

}  // namespace tsdp::test
