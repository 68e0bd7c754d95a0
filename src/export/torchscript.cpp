#include "tsdp/export/torchscript.h"

#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/serialization/import.h>
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <new>

#include <sstream>

#include "dp/stored_tensor.h"
#include "models/mixture.h"
#include "models/script_module.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/tensor_file.h"
#include "tsdp/base/text.h"
#include "tsdp/data/readers.h"
#include "tsdp/ledger/exported_model.h"

namespace tsdp::exporting {
namespace {

constexpr const char* model_entry = "model.json";
constexpr const char* privacy_entry = "privacy.json";
constexpr const char* data_entry = "tsdp.safetensors";
constexpr const char* format_name = "tsdp-model-2";
constexpr std::int64_t largest_length = 1'000'000;  // of context, forecast and lags of a model from elsewhere

}  // namespace

std::int64_t forecast_past_length(const models::Forecaster& model) { return models::forecast_reach(model.network()); }

torch::jit::Module make_module(const models::Forecaster& model, bool sampled_forecasts) {
  return models::script_module(model.network(), sampled_forecasts);
}

namespace {

using Json = nlohmann::ordered_json;

/// Sizes of a model, from "sizes" in its metadata, or of a part of it, whose keys begin with `prefix`.
class Sizes {
 public:
  Sizes(Json sizes, std::string where, std::string prefix = "")
      : sizes_(std::move(sizes)), where_(std::move(where)), prefix_(std::move(prefix)) {
    if (!sizes_.is_object()) refuse("sizes", "the sizes that the model is built from");
  }
  [[nodiscard]] std::int64_t number(const char* key, std::int64_t least, std::int64_t most) const {
    return checked(key, at(key), least, most);
  }
  [[nodiscard]] std::vector<std::int64_t> list(const char* key) const {
    const auto& found = at(key);
    if (!found.is_array() || found.size() > 10'000) refuse(key, "a list");
    std::vector<std::int64_t> out;
    for (const auto& item : found) out.push_back(checked(key, item, 1, largest_length));
    return out;
  }
  [[nodiscard]] double real(const char* key) const {
    if (!at(key).is_number() || !std::isfinite(at(key).get<double>())) refuse(key, "a number");
    return at(key).get<double>();
  }
  /// `none` where it is null, or absent as in models from before it was an option.
  [[nodiscard]] double bound(const char* key, double none) const {
    return !has(key) || at(key).is_null() ? none : real(key);
  }
  [[nodiscard]] bool flag(const char* key) const {
    if (!at(key).is_boolean()) refuse(key, "true or false");
    return at(key).get<bool>();
  }
  /// `none` where it is absent, as in models from before it was an option.
  [[nodiscard]] bool flag(const char* key, bool none) const { return has(key) ? flag(key) : none; }
  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) refuse(key, "a text");
    return at(key).get<std::string>();
  }
  /// False in models from before it was an option.
  [[nodiscard]] bool mixture_is_trained() const {
    if (!has("mixture") || at("mixture").is_null()) return false;
    const Sizes sizes(at("mixture"), where_, "mixture.");
    return sizes.flag("trained", false);
  }
  /// Of the networks that a mixture holds beside the model's own.
  [[nodiscard]] std::vector<Sizes> networks() const {
    std::vector<Sizes> out;
    if (!has("mixture") || at("mixture").is_null() || !at("mixture").contains("networks")) return out;
    for (const auto& item : at("mixture")["networks"]) {
      auto& network = out.emplace_back(item, where_, "mixture.networks.");
      if (network.has("every") && !network.has("prediction_length"))
        network.sizes_["prediction_length"] =
            (number("prediction_length", 1, largest_length) - 1) / network.number("every", 1, largest_length) + 1;
    }
    return out;
  }
  [[nodiscard]] bool has(const char* key) const { return sizes_.contains(key); }
  template <class Enum>
  [[nodiscard]] Enum one_of(const char* key) const {
    Enum out{};
    if (!at(key).is_string() || !parse_name(at(key).get<std::string>(), out))
      refuse(key, cat("one of ", join(all_names<Enum>(), ", ")));
    return out;
  }
  /// None in models from before it was an option.
  [[nodiscard]] Prior prior() const {
    if (!has("prior")) return {};
    return {one_of<PriorKind>("prior"), number("season", 1, largest_length)};
  }
  /// None in models from before there were candidates, or where the network forecasts alone.
  [[nodiscard]] Mixture mixture(std::int64_t prediction_length) const {
    Mixture out;
    if (!has("mixture") || at("mixture").is_null()) return out;
    const Sizes sizes(at("mixture"), where_, "mixture.");
    out.windows = sizes.number("windows", 1, 1000);
    out.stride = sizes.number("stride", prediction_length, largest_length);
    const auto& members = sizes.at("members");
    if (!members.is_array() || members.size() > 100) sizes.refuse("members", "a list of candidates");
    out.skips_outliers = sizes.flag("skips_outliers", false);
    out.widens_tails = sizes.flag("widens_tails", false);
    if (sizes.has("external")) {  // older models have none
      const auto& names = sizes.at("external");
      if (!names.is_array() || names.size() > 100) sizes.refuse("external", "a list of names");
      for (const auto& item : names) {
        if (!item.is_string()) sizes.refuse("external", "a list of names");
        out.external.push_back(item.get<std::string>());
      }
    }
    if (sizes.has("networks")) {  // older models have none
      const auto& networks = sizes.at("networks");
      if (!networks.is_array() || networks.size() > 100) sizes.refuse("networks", "a list of networks");
      for (const auto& item : networks) out.networks.push_back(Sizes(item, where_, "mixture.networks.").text("name"));
    }
    if (members.empty() && out.networks.empty() && out.external.empty())
      sizes.refuse("members", "a list of candidates");
    for (const auto& item : members) {
      const Sizes member(item, where_, "mixture.members.");
      out.members.push_back({member.one_of<Candidate>("method"), member.number("season", 1, largest_length),
                             member.number("seasons", 1, largest_length)});
    }
    if (out.has(Candidate::covariate_quantiles)) out.covariates = sizes.number("covariates", 1, largest_length);
    if (out.past_length(1, prediction_length) > largest_length)
      refuse("mixture", cat("one that reads at most ", largest_length, " values"));
    return out;
  }
  [[noreturn]] void refuse(const char* key, const std::string& expected) const {
    throw DataError(cat(where_, ": model: ", prefix_, key, ": expected ", expected));
  }

 private:
  [[nodiscard]] const Json& at(const char* key) const {
    const auto found = sizes_.find(key);
    if (found == sizes_.end()) refuse(key, "it among the sizes");
    return *found;
  }
  [[nodiscard]] std::int64_t checked(const char* key, const Json& value, std::int64_t least, std::int64_t most) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) ||
        value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      refuse(key, cat("an integer from ", least, " to ", most));
    return value.get<std::int64_t>();
  }

  Json sizes_;
  std::string where_, prefix_;
};

Json sizes_of(const models::ModelOptions& options) {
  const auto bound = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  Json out = {{"context_length", options.context_length},
              {"prediction_length", options.prediction_length},
              {"lags", options.lags},
              {"time_features", options.time_features},
              {"default_scale", options.default_scale},
              {"width_factor", options.width_factor},
              {"width", options.width},
              {"imputes", options.imputes},
              {"lower_bound", bound(options.lower_bound)},
              {"upper_bound", bound(options.upper_bound)},
              {"prior", name(options.prior.kind)},
              {"season", options.prior.season}};
  if (options.covariates > 0) out["covariates"] = options.covariates;
  if (options.variables > 1) out["variables"] = options.variables;
  return out;
}

/// Of the mixture.
Json sizes_of(const models::Forecaster& model) {
  const auto& mixture = model.options().mixture;
  if (mixture.empty()) return nullptr;
  auto members = Json::array();
  for (const auto& member : mixture.members)
    members.push_back({{"method", name(member.method)}, {"season", member.season}, {"seasons", member.seasons}});
  Json out = {{"windows", mixture.windows}, {"stride", mixture.stride}, {"members", std::move(members)}};
  if (mixture.skips_outliers) out["skips_outliers"] = true;
  if (mixture.widens_tails) out["widens_tails"] = true;
  if (mixture.covariates > 0) out["covariates"] = mixture.covariates;
  if (!model.trained_mixture().empty()) out["trained"] = true;
  for (std::size_t i = 0; i < model.networks().size(); ++i) {
    Json network = {{"name", mixture.networks[i]}, {"model", model.networks()[i]->name()}};
    const auto& options = model.networks()[i]->options();
    network.update(sizes_of(options));
    if (options.every > 1) {  // its length follows, and programs that know no such networks miss it
      network["every"] = options.every;
      network.erase("prediction_length");
    }
    out["networks"].push_back(std::move(network));
  }
  if (!mixture.external.empty()) out["external"] = mixture.external;
  return out;
}

/// The metadata, with the parts that programs read checked for their types and the ledger verified.
ModelMetadata metadata_of(const mechanism::ExportedModel& found, const std::string& where) {
  const auto refuse = [&](const char* key, const char* expected) {
    throw DataError(cat(where, ": model: ", key, ": expected ", expected));
  };
  if (!found.model.is_object()) refuse("metadata", "a JSON object, as tsdp-export and tsdp-train write it");
  for (const auto* key : {"name", "frequency"})
    if (!found.model.contains(key) || !found.model[key].is_string()) refuse(key, "a text");
  for (const auto* key : {"past_length", "prediction_length"})
    if (!found.model.contains(key) || !found.model[key].is_number_integer()) refuse(key, "a length");
  return {found.model, found.privacy};
}

/// What a network is built from.
models::ModelOptions options_of(const Sizes& sizes) {
  models::ModelOptions options;
  options.context_length = sizes.number("context_length", 1, largest_length);
  options.prediction_length = sizes.number("prediction_length", 1, largest_length);
  options.lags = sizes.list("lags");
  options.time_features = sizes.number("time_features", 0, 1000);
  if (sizes.has("covariates"))
    options.covariates = sizes.number("covariates", 0, std::max<std::int64_t>(0, options.time_features - 1));
  if (sizes.has("variables"))
    options.variables = sizes.number("variables", 1, static_cast<std::int64_t>(data::most_variables));
  options.default_scale = sizes.real("default_scale");
  options.width_factor = sizes.number("width_factor", 1, 1024);
  options.width = sizes.has("width") ? sizes.number("width", 0, 65536) : 0;  // older models have none
  options.imputes = sizes.has("imputes") && sizes.flag("imputes");  // older models read zeros
  options.lower_bound = sizes.bound("lower_bound", options.lower_bound);
  options.upper_bound = sizes.bound("upper_bound", options.upper_bound);
  if (!(options.lower_bound < options.upper_bound)) sizes.refuse("lower_bound", "a number below upper_bound");
  options.prior = sizes.prior();
  return options;
}

/// The model of `data`, built by this program's code.
LoadedModel rebuilt(const TensorFile& data, ModelMetadata metadata, const std::string& where) {
  const auto name = metadata.model["name"].get<std::string>();
  const auto known = models::model_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw DataError(cat(where, ": found a model '", name, "'; this program builds ", join(known, ", "),
                        " (--trust runs the code in the archive instead, if you trust where it is from)"));
  const Sizes sizes(metadata.model.value("sizes", Json()), where);
  auto options = options_of(sizes);
  options.mixture = sizes.mixture(options.prediction_length);
  std::int64_t stored = 0;
  for (const auto& tensor : data.tensors) stored += static_cast<std::int64_t>(tensor.bytes.size() / 4);
  const auto& type = data.tensors.empty() ? std::string() : data.tensors.front().type;
  if (type != "F32" && type != "F64")
    throw DataError(cat(where, ": holds no weights; expected a model that tsdp-export or tsdp-train wrote"));
  const auto built = [&](const std::string& of, models::ModelOptions sizes_of_it) {
    sizes_of_it.most_parameters = stored;
    try {
      return models::make_model(of, sizes_of_it, at::TensorOptions(type == "F32" ? at::kFloat : at::kDouble));
    } catch (const Error& error) { throw DataError(cat(where, ": model: ", error.what())); }
  };
  std::size_t used = 0;
  const auto read = [&](const models::Forecaster& into, const std::string& prefix) {
    const auto& parameters = into.parameters();
    for (std::size_t i = 0; i < parameters.entries().size(); ++i) {
      const auto& entry = parameters.entries()[i];
      const auto& found = data.tensor(prefix + entry.name, where);
      if (found.type != type || found.shape != entry.shape)
        throw DataError(cat(where, ": weights '", prefix, entry.name,
                            "': have another type or shape than the model of these sizes"));
      parameters.value(i).copy_(dp::tensor_of(found));
    }
    if (!parameters.values().isfinite().all().item<bool>())
      throw DataError(cat(where, ": holds weights that are not finite; expected a model that trained to its end"));
    used += parameters.entries().size();
  };
  const auto model = built(name, options);
  const auto told =
      options.covariates > 0 || !model->reads_time_features() ? options.covariates : options.time_features - 1;
  if (options.mixture.covariates > told)
    throw DataError(cat(where, ": model: mixture.covariates: expected at most ", told, ", which the model is told of"));
  if (options.mixture.has(Candidate::start)) {
    read(*model, std::string(mechanism::start_prefix));
    model->keep_start();
  }
  read(*model, "");
  std::vector<std::shared_ptr<const models::Forecaster>> networks;
  for (const auto& network_sizes : sizes.networks()) {
    auto its_options = options_of(network_sizes);
    if (network_sizes.has("every")) its_options.every = network_sizes.number("every", 1, largest_length);
    auto network = built(network_sizes.text("model"), its_options);
    if (network->reads_time_features() || network->samples_paths())
      network_sizes.refuse("model", "a model that reads no time features");
    if (const auto steps = (options.prediction_length + its_options.every - 1) / its_options.every;
        its_options.prediction_length != steps)
      network_sizes.refuse("prediction_length", cat(steps, ", as of the model"));
    read(*network, cat(mechanism::network_prefix, networks.size(), "."));
    networks.push_back(std::move(network));
  }
  model->keep_networks(std::move(networks));
  if (sizes.mixture_is_trained()) {
    std::vector<at::Tensor> trained;
    for (const auto& parameter : models::mixture_parameters(options.mixture)) {
      const auto entry = cat(mechanism::mixture_prefix, parameter.name);
      const auto& found = data.tensor(entry, where);
      trained.push_back(dp::tensor_of(found));
      if (found.type != type || found.shape != parameter.shape || !trained.back().isfinite().all().item<bool>())
        throw DataError(cat(where, ": weights '", entry, "': expected finite ones, for each forecast that is mixed"));
    }
    used += trained.size();
    model->keep_trained_mixture(std::move(trained));
  }
  if (data.tensors.size() != used) throw DataError(cat(where, ": holds weights that the model has not"));
  if (forecast_past_length(*model) > largest_length || metadata.model["past_length"] != forecast_past_length(*model) ||
      metadata.model["prediction_length"] != options.prediction_length)
    throw DataError(cat(where, ": model: past_length and prediction_length are not those of its sizes"));
  metadata.model["parameters"] = model->parameters().count();
  return {make_module(*model, sizes.flag("sampled_forecasts")), std::move(metadata)};
}

}  // namespace

void save_model(const models::Forecaster& trained, bool sampled_forecasts, ModelMetadata metadata,
                const std::filesystem::path& file) {
  const auto& model = trained.network();
  metadata.model["sizes"] = sizes_of(model.options());
  metadata.model["sizes"]["mixture"] = sizes_of(model);
  metadata.model["sizes"]["sampled_forecasts"] = sampled_forecasts;
  TensorFile data;
  data.texts = {{"format", format_name},
                {model_entry, json_text(metadata.model, 2)},
                {privacy_entry, json_text(metadata.privacy, 2)}};
  const auto put = [&](const models::Forecaster& from, const std::string& prefix) {
    for (std::size_t i = 0; i < from.parameters().entries().size(); ++i)
      data.tensors.push_back(dp::stored(prefix + from.parameters().entries()[i].name, from.parameters().value(i)));
  };
  put(model, "");
  if (model.options().mixture.has(Candidate::start))
    put(*models::start_of(model), std::string(mechanism::start_prefix));
  for (std::size_t i = 0; i < model.trained_mixture().size(); ++i)
    data.tensors.push_back(
        dp::stored(cat(mechanism::mixture_prefix, models::mixture_parameters(model.options().mixture)[i].name),
                   model.trained_mixture()[i]));
  for (std::size_t i = 0; i < model.networks().size(); ++i)
    put(*model.networks()[i], cat(mechanism::network_prefix, i, "."));
  const torch::jit::ExtraFilesMap extra = {{model_entry, data.texts[model_entry]},
                                           {privacy_entry, data.texts[privacy_entry]},
                                           {data_entry, tensor_file_bytes(data)}};
  auto module = make_module(model, sampled_forecasts);
  module.to(at::kCPU);
  std::ostringstream out;
  module.save(out, extra);
  write_file_atomically(file, out.str());
}

LoadedModel load_model(const std::filesystem::path& file, const at::Device& device, ArchiveCode code,
                       mechanism::LedgerCheck check) {
  const auto where = file.string();
  // Off the CPU LibTorch would compile the forecast's operators anew as it sees fit; what runs is then not what was
  // tested.
  if (!device.is_cpu()) torch::jit::setTensorExprFuserEnabled(false);
  const auto found = mechanism::read_exported_model(file, check);
  auto metadata = metadata_of(found, where);
  if (code == ArchiveCode::never) {
    auto out = rebuilt(found.data, std::move(metadata), where);
    out.module.to(device);
    return out;
  }
  try {
    return {torch::jit::load(where, device), std::move(metadata)};
  } catch (const std::bad_alloc&) { throw; } catch (const std::exception& error) {
    const std::string why = error.what();
    throw DataError(cat(where, ": its code cannot be loaded (", why.substr(0, why.find('\n')), ")"));
  }
}

}  // namespace tsdp::exporting
