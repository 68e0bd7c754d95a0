#include "tsdp/settings/mixture.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/dataset.h"
#include "tsdp/settings/config.h"

namespace tsdp {

std::optional<std::string> external_name(const std::string& candidate) {
  const std::filesystem::path file(candidate);
  if (file.extension() != ".jsonl" && file.extension() != ".pt") return std::nullopt;
  return file.stem().string();
}

std::optional<std::string> network_name(const std::string& candidate) {
  const std::filesystem::path file(candidate);
  if (file.extension() != ".safetensors") return std::nullopt;
  return file.stem().string();
}

void check_candidates(const std::string& where, const std::vector<std::string>& candidates) {
  if (candidates.size() > most_candidates)
    throw UsageError(cat(where, "model.candidates: found a list of ", candidates.size(), "; expected at most ",
                         most_candidates, ", the networks in the place of ", other_starts, " counted"));
  std::set<std::string> files;
  for (const auto& candidate : candidates) {
    const auto network = network_name(candidate);
    if (const auto name = network ? network : external_name(candidate)) {
      if (Candidate known{}; parse_name(*name, known) || *name == "seasonal_naive" || *name == other_starts)
        throw UsageError(cat(where, "model.candidates: found ", candidate, "; expected a file of another name, since ",
                             *name, " is a forecast of the programs' own"));
      if (!files.insert(*name).second)
        throw UsageError(cat(where, "model.candidates: found two files named ", *name,
                             "; expected different names, by which a model knows them"));
    } else if (Candidate known{}; candidate != other_starts && !parse_name(candidate, known)) {
      throw UsageError(cat(where, "model.candidates: found ", candidate, "; expected names out of ",
                           join(all_names<Candidate>(), ", "), ", ", other_starts,
                           ", files of forecasts (.jsonl), models (.pt) or weights (.safetensors)"));
    }
  }
}

std::vector<std::string> built_in_candidates(const Config& config) {
  auto names = all_names<Candidate>();
  const auto covariates = config.dataset.covariate_columns.size();
  if (covariates == 0 || covariates > most_told_covariates || !config.dataset.covariates_change)
    std::erase(names, std::string(name(Candidate::covariate_quantiles)));
  return names;
}

Mixture mixture_of(const Config& config) {
  auto chosen = config.model.candidates;
  if (config.model.auto_candidates && config.model.prior != PriorKind::none) chosen = built_in_candidates(config);
  const auto season = std::max<std::int64_t>(1, config.dataset.season_length);  // no file leaves it out
  const auto step = data::shortest_step(data::Frequency::parse(config.dataset.frequency));
  const bool within_a_day = season <= 86400 / step;
  const bool is_a_day = season * step == 86400;
  const auto horizon = config.dataset.prediction_length;
  Mixture out;
  const auto add = [&](Candidate method, std::int64_t length, std::initializer_list<std::int64_t> counts) {
    for (const auto count : counts)
      if (const Mixture::Member member{method, length, count}; length <= most_values_read / member.read(horizon))
        out.members.push_back(member);
  };
  for (const auto& text : chosen) {
    if (const auto name = external_name(text)) {
      out.external.push_back(*name);
      continue;
    }
    if (const auto name = network_name(text)) {
      out.networks.push_back(*name);
      continue;
    }
    if (text == other_starts) continue;  // files, once the run is settled
    const auto method = named<Candidate>(text, "model.candidates");
    switch (method) {
      case Candidate::start:  // which is the network itself where its weights are not trained
        if (mechanism::takes_steps(config) && config.training.trainable != Trainable::mixture) add(method, 1, {1});
        break;
      case Candidate::seasonal_quantiles:
        if (within_a_day) add(method, season, {4, 7, 14, 28, 56});
        else add(method, season, {2, 4, 8, 16});
        if (season >= 2 && is_a_day) add(method, 7 * season, {8});
        break;
      case Candidate::moved_quantiles:
        if (season == 1) break;  // every season would be the last value
        if (within_a_day) add(method, season, {7, 28});
        else add(method, season, {4, 16});
        break;
      case Candidate::seasonal_naive_bands:
        if (season >= 2) add(method, season, {within_a_day ? 28 : 8});
        break;
      case Candidate::last_value_bands: add(method, 1, {100}); break;
      case Candidate::seasonal_regression:
        if (season >= 2) add(method, season, {28});
        break;
      case Candidate::covariate_quantiles:
        if (config.dataset.covariate_columns.empty()) break;
        if (season == 1) add(method, season, {25, 100});
        else if (within_a_day) add(method, season, {28, 56});
        else add(method, season, {8, 16});
        if (is_a_day) add(method, 7 * season, {8});
        break;
    }
  }
  if (out.empty()) return out;
  if (out.has(Candidate::covariate_quantiles)) out.covariates = std::ssize(config.dataset.covariate_columns);
  out.skips_outliers = out.widens_tails = true;
  out.stride = std::max(horizon, season);
  out.windows = std::clamp<std::int64_t>(most_values_read / out.stride, 1, 20);
  return out;
}

}  // namespace tsdp
