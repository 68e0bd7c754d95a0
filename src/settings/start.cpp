#include "tsdp/settings/start.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/digest.h"
#include "base/zip_file.h"
#include "ledger/fields.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/data/dataset.h"

namespace tsdp::mechanism {
namespace {

/// What the weights belong to.
struct Sizes {
  std::string model, frequency;
  std::int64_t context, horizon, width, width_factor;
  std::vector<std::int64_t> lags;
  Prior prior;
  std::vector<std::string> covariates;
  std::int64_t variables = 1;
};

Sizes sizes_of(const StartWeights& weights) {
  const Fields about(weights.content.model, cat(weights.file.string(), ": model"), "a model that tsdp-train wrote");
  const auto sizes = about.section("sizes");
  Sizes out{about.text("name"),
            about.text("frequency"),
            sizes.length("context_length"),
            sizes.length("prediction_length"),
            0,
            1,
            {},
            {},
            {}};
  constexpr std::uint64_t widest = 65536;
  if (sizes.has("width")) out.width = static_cast<std::int64_t>(sizes.count("width", 0, widest));
  out.width_factor = static_cast<std::int64_t>(sizes.count("width_factor", 1, widest));
  const auto& lags = sizes.at("lags");
  for (const auto& lag : lags)
    if (lag.is_number_integer()) out.lags.push_back(lag.get<std::int64_t>());
  out.covariates = covariates_of(weights.content.model, weights.file.string());
  if (sizes.has("variables")) out.variables = sizes.length("variables");
  if (sizes.has("prior")) out.prior = {sizes.one_of<PriorKind>("prior"), sizes.length("season")};
  return out;
}

std::string shown(const Prior& prior) {
  return prior.kind == PriorKind::seasonal_naive ? cat("seasonal_naive of season ", prior.season)
                                                 : std::string(name(prior.kind));
}

std::string shown(const StartWeights& weights) {
  const auto s = sizes_of(weights);
  return cat(weights.file.stem().string(), " (", s.model, ", ", s.frequency, ", context ", s.context,
             ", forecasts of up to ", s.horizon, " steps, prior ", shown(s.prior), ")");
}

}  // namespace

StartWeights read_start(const std::filesystem::path& file) {
  StartWeights out;
  out.file = file;
  out.bytes = read_file(file);
  if (out.bytes.starts_with("PK")) {
    // The weights that the archive's module has must be those of its data.
    out.content = read_exported_model(file);
    out.bytes = read_zip(file).at("extra/tsdp.safetensors");
  } else {
    out.content = read_model_data(out.bytes, file.string());
  }
  const auto where = cat(file.string(), ": privacy.json");
  const auto ledger = read_ledger(out.content.privacy, where);
  require_room_for_start(ledger, where);
  out.origin = origin_of_weights(ledger);
  out.sha256 = sha256(out.bytes);
  return out;
}

Start start_of(const Config& config, const std::optional<StartWeights>& weights,
               const std::vector<StartWeights>& networks) {
  Start out;
  out.prior = prior_of(config);
  for (const auto& network : networks) out.networks[network.file.stem().string()] = network.sha256;
  if (!weights) return out;
  out.origin = weights->origin;
  out.sha256 = weights->sha256;
  if (rests_on_data(out.origin)) out.trained = weights->content.privacy;
  return out;
}

std::optional<std::string> misfit(const Config& config, const StartWeights& weights) {
  const auto s = sizes_of(weights);
  const auto differ = [](const char* key, const auto& found, const auto& theirs) {
    return cat(key, ": found ", found, "; the weights are of ", theirs);
  };
  const auto& m = config.model;
  if (m.name != s.model) return differ("model.name", m.name, s.model);
  if (data::Frequency::parse(config.dataset.frequency) != data::Frequency::parse(s.frequency))
    return differ("dataset.frequency", config.dataset.frequency, s.frequency);
  if (m.context_length && *m.context_length != s.context)
    return differ("model.context_length", *m.context_length, s.context);
  if (config.dataset.prediction_length > s.horizon)
    return cat("dataset.prediction_length: found ", config.dataset.prediction_length, "; the weights forecast at most ",
               s.horizon, " steps");
  if (const auto own = joined_variables(config); own != s.variables)
    return differ("dataset.columns.value", cat(own, own == 1 ? " variable" : " variables"),
                  cat(s.variables, " forecast together"));
  if (m.lags != s.lags) return differ("model.lags", cat(m.lags.size(), " lags"), "others");
  // Covariates that weights know nothing of have weights of 0 in the head.
  const bool may_lack = s.covariates.empty() && s.lags.empty();
  if (config.dataset.covariate_columns != s.covariates && !may_lack)
    return differ(
        "dataset.covariates",
        config.dataset.covariate_columns.empty() ? std::string("none") : join(config.dataset.covariate_columns, ", "),
        s.covariates.empty() ? std::string("none") : join(s.covariates, ", "));
  if (config.dataset.protects_covariates && !s.covariates.empty() && rests_on_data(weights.origin) &&
      !read_ledger(weights.content.privacy, cat(weights.file.string(), ": privacy.json")).protects_covariates)
    return differ("dataset.covariates.private", "true", "a run on data to which the covariates were public");
  if (const auto prior = prior_of(config); prior != s.prior) return differ("model.prior", shown(prior), shown(s.prior));
  if (width_of(config) != s.width || m.width_factor != s.width_factor)
    return differ("model.width",
                  width_of(config) == 0 ? cat(m.width_factor, " times the standard") : cat(width_of(config)),
                  s.width == 0 ? cat(s.width_factor, " times the standard") : cat(s.width));
  return std::nullopt;
}

std::int64_t context_length_of(const StartWeights& weights) { return sizes_of(weights).context; }

std::vector<ShippedStart> shipped_starts() {
  std::vector<ShippedStart> out;
  const auto folder = project_root() / "starts";
  std::error_code none;
  if (project_root().empty() || !std::filesystem::is_directory(folder, none)) return out;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> tried;
  if (const auto list = folder / "tried.txt"; is_there(list)) tried = split(read_file(list), '\n');
  for (const auto& file : files)
    out.push_back({read_start(file), std::find(tried.begin(), tried.end(), file.stem().string()) != tried.end()});
  return out;
}

std::optional<StartWeights> find_start(const Config& config, const std::filesystem::path& config_file,
                                       std::int64_t most_context) {
  const auto& asked = config.model.start;
  if (asked == "fresh") return std::nullopt;
  if (config.model.starts_from_file()) {
    auto out = read_start(find_copied_file("model.start", asked, config_file));
    if (const auto why = misfit(config, out))
      throw UsageError(cat("model.start: found ", asked, ", which does not fit: ", *why));
    return out;
  }
  auto all = shipped_starts();
  // Without them, a different model would be trained than the configuration means.
  if (all.empty())
    throw UsageError(cat("model.start: found ", asked, ", and no shipped weights can be found: no folder ",
                         (project_root() / "starts").string(), " with them",
                         project_root().empty() ? " above the programs, which were copied without it" : "",
                         "; expected the programs where they were built or installed, or model.start: fresh"));
  std::optional<StartWeights> best;
  std::vector<std::string> shipped;
  for (auto& start : all) {
    shipped.push_back(shown(start.weights));
    if (misfit(config, start.weights) ||
        (asked == "auto" && (!start.did_no_worse || sizes_of(start.weights).context > most_context)))
      continue;
    if (!best || sizes_of(start.weights).horizon < sizes_of(*best).horizon) best = std::move(start.weights);
  }
  if (!best && asked == "pretrained")
    throw UsageError(cat("model.start: found pretrained, and no shipped weights fit model ", config.model.name,
                         ", frequency ", config.dataset.frequency, ", context ",
                         config.model.context_length ? cat(*config.model.context_length) : std::string("auto"),
                         ", forecasts of ", config.dataset.prediction_length, " steps, prior ", shown(prior_of(config)),
                         joined_variables(config) > 1
                             ? cat(", ", joined_variables(config), " variables forecast together")
                             : std::string(),
                         "; expected one of: ", join(shipped, ", "),
                         "; or weights of your own (docs/choosing.md: tsdp-train --config pretrain/…)"));
  return best;
}

std::int64_t steps_of_network(const Config& config, const StartWeights& weights) {
  const auto own = data::Frequency::parse(config.dataset.frequency);
  const auto theirs = data::Frequency::parse(sizes_of(weights).frequency);
  using Unit = data::Frequency::Unit;
  if (own.unit > Unit::hour || theirs.unit > Unit::day) return 1;
  const auto step = data::shortest_step(own);
  const auto longer = data::shortest_step(theirs);
  return longer > step && longer % step == 0 ? longer / step : 1;
}

std::int64_t values_read_by(const Config& config, const StartWeights& weights) {
  return sizes_of(weights).context * steps_of_network(config, weights);
}

Config config_of_network(const Config& config, const StartWeights& weights) {
  const auto s = sizes_of(weights);
  auto out = config;
  if (const auto every = steps_of_network(config, weights); every > 1) {
    out.dataset.frequency = s.frequency;
    out.dataset.prediction_length = (config.dataset.prediction_length + every - 1) / every;
    out.dataset.season_length = s.prior.season;
  }
  out.model.name = s.model;
  out.model.context_length = s.context;
  out.model.lags = s.lags;
  out.model.width = s.width;
  out.model.width_factor = s.width_factor;
  out.model.prior = s.prior.kind;
  out.model.sampled_forecasts = false;
  out.dataset.covariates.reset();
  out.dataset.covariate_columns.clear();
  out.dataset.value_columns.clear();  // it forecasts each variable by itself
  out.model.candidates.clear();
  out.model.auto_candidates = false;
  out.training.trainable = Trainable::all;
  return out;
}

namespace {

/// `misfit` of a network beside that of `config`.
std::optional<std::string> misfit_beside(const Config& config, const StartWeights& weights) {
  return misfit(config_of_network(config, weights), weights);
}

/// One of each other model that fits, by name; for a step that no weights are shipped for, one of each model of each
/// longer step, by step. One that forecasts each variable by itself is another than one that joins them.
std::vector<StartWeights> other_networks(const Config& config, std::int64_t most_context) {
  std::map<std::pair<std::int64_t, std::string>, StartWeights> best;
  bool has_own_step = false;
  for (auto& start : shipped_starts()) {
    const auto sizes = sizes_of(start.weights);
    has_own_step =
        has_own_step || data::Frequency::parse(sizes.frequency) == data::Frequency::parse(config.dataset.frequency);
    const auto every = steps_of_network(config, start.weights);
    if (every > 1 && values_read_by(config, start.weights) > most_values_read) continue;
    const bool same = every == 1 && sizes.model == config.model.name && joined_variables(config) == sizes.variables;
    if (!start.did_no_worse || same || !sizes.lags.empty() || values_read_by(config, start.weights) > most_context ||
        misfit_beside(config, start.weights))
      continue;
    const std::pair key(every, sizes.model);
    const auto known = best.find(key);
    if (known == best.end() || sizes.horizon < sizes_of(known->second).horizon)
      best.insert_or_assign(key, std::move(start.weights));
  }
  std::vector<StartWeights> out;
  for (auto& [key, weights] : best)
    if (key.first == 1 || !has_own_step) out.push_back(std::move(weights));
  return out;
}

}  // namespace

std::vector<StartWeights> find_networks(Config& config, const std::filesystem::path& config_file,
                                        std::int64_t most_context) {
  std::vector<StartWeights> out;
  std::vector<std::string> candidates;
  for (const auto& candidate : config.model.candidates) {
    if (candidate == other_starts) {
      for (auto& network : other_networks(config, most_context)) {
        candidates.push_back(network.file.string());
        out.push_back(std::move(network));
      }
      continue;
    }
    candidates.push_back(candidate);
    if (!network_name(candidate)) continue;
    auto network = read_start(find_copied_file("model.candidates", candidate, config_file));
    const auto what = cat("model.candidates: found ", candidate);
    if (const auto why = misfit_beside(config, network)) throw UsageError(cat(what, ", which does not fit: ", *why));
    if (const auto read = values_read_by(config, network);
        steps_of_network(config, network) > 1 && read > most_values_read)
      throw UsageError(cat(what, ", weights for a step of ", sizes_of(network).frequency, ", which read ", read,
                           " values of steps of ", config.dataset.frequency, "; expected at most ", most_values_read));
    if (!sizes_of(network).lags.empty())
      throw UsageError(cat(what, ", weights of ", sizes_of(network).model,
                           "; expected those of a model that reads no time features"));
    if (rests_on_data(network.origin))
      throw PrivacyError(cat(what,
                             ", which was trained on data: the exported model would hold those weights as they are, "
                             "and its statement does not cover them; expected weights that were trained on synthetic "
                             "series alone, or the model.pt itself, which stays outside the exported model"));
    out.push_back(std::move(network));
  }
  check_candidates("", candidates);
  config.model.candidates = std::move(candidates);
  return out;
}

}  // namespace tsdp::mechanism
