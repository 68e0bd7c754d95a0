// What a ledger promises, in plain words: for the report and the model card. Markdown's ** stands around what matters.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tsdp/ledger/ledger.h"

namespace tsdp::exporting {

/// The member `name` of `object`; null if it has none.
[[nodiscard]] const nlohmann::ordered_json& part(const nlohmann::ordered_json& object, const char* name);
/// The text under `name`; empty if there is none.
[[nodiscard]] std::string text_in(const nlohmann::ordered_json& object, const char* name);
/// The number under `name`, NaN if there is none.
[[nodiscard]] double number_in(const nlohmann::ordered_json& object, const char* name);

/// What one protected change is: "any single value of any one series".
[[nodiscard]] std::string protected_unit(const nlohmann::ordered_json& ledger);

/// What the numbers of a run leave out if its start was trained on data; otherwise empty.
[[nodiscard]] std::string about_start(mechanism::StartOrigin origin);

/// Paragraphs: what is promised, or that nothing is; epsilon and delta; what the best attacker achieves, rounded
/// upwards.
[[nodiscard]] std::vector<std::string> promise_in_words(const nlohmann::ordered_json& ledger,
                                                        mechanism::StartOrigin origin);

/// What a private run's promise does not cover.
[[nodiscard]] std::vector<std::string> not_covered(const nlohmann::ordered_json& ledger);

}  // namespace tsdp::exporting
