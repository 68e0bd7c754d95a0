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
#include "models/scalers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/tensor_file.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/exported_model.h"

namespace tsdp::exporting {
namespace {

constexpr const char* model_entry = "model.json";
constexpr const char* privacy_entry = "privacy.json";
constexpr const char* data_entry = "tsdp.safetensors";
constexpr const char* format_name = "tsdp-model-2";
constexpr std::int64_t largest_length = 1'000'000;  // of context, forecast and lags of a model from elsewhere

// Shared by all models: draws and quantiles, and cutting, padding and masking of the past.
const char* draws_script = R"(
def student_t_draw(self, df: Tensor, draws: Tensor) -> Tensor:
    # Bailey's polar method: exactly Student-t with df degrees of freedom from two uniforms.
    return torch.sqrt(df * torch.expm1(-2.0 * torch.log(draws[..., 0]) / df)) * torch.cos(6.283185307179586 * draws[..., 1])

def order_statistics(self, samples: Tensor, levels: Tensor) -> Tensor:
    sorted, places = torch.sort(samples, 1)
    return sorted.index_select(1, torch.round((samples.size(1) - 1) * levels.double()).long())
)";

const char* forward_script = R"(
def forward(self, past_target: Tensor, past_observed: Tensor, levels: Optional[Tensor] = None, time_features: Optional[Tensor] = None, draws: Optional[Tensor] = None, num_samples: int = 100, external: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, Tensor]:
    # Weights have one precision; numbers of any other kind (numpy has double precision, counts are whole) are turned into it.
    if self.machine_epsilon < 1e-12:
        past_target = past_target.double()
    else:
        past_target = past_target.float()
    missing = past_target.ne(past_target)
    past_target = past_target.masked_fill(missing, 0.0)
    past_observed = past_observed.to(past_target.dtype).masked_fill(missing, 0.0)
    past_target = past_target.masked_fill(past_observed.eq(0.0), 0.0) * past_observed
    given = past_target.size(1)
    horizon = self.prediction_length
    features = torch.zeros([past_target.size(0), given + horizon, 0], dtype=past_target.dtype, device=past_target.device)
    if self.time_feature_count > 0:
        assert time_features is not None, "this model reads time features, a row a past step and a step to forecast"
        features = time_features.to(past_target.dtype)
        assert features.size(1) == given + horizon, "time features: one row a past step and a step to forecast"
        assert features.size(2) == self.time_feature_count, "time features: another number than the model reads"
    if given > self.past_length:
        past_target = past_target[:, given - self.past_length:]
        past_observed = past_observed[:, given - self.past_length:]
        features = features[:, given - self.past_length:]
    elif given < self.past_length:
        past_target = torch.constant_pad_nd(past_target, [self.past_length - given, 0], 0.0)
        past_observed = torch.constant_pad_nd(past_observed, [self.past_length - given, 0], 0.0)
        features = torch.constant_pad_nd(features, [0, 0, self.past_length - given, 0], 0.0)
    asked = torch.arange(1, 10, device=past_target.device).double() / 10.0
    if levels is not None:
        asked = levels.double().to(past_target.device)
    uniform = 1.0 - torch.rand([past_target.size(0), num_samples, horizon, 2], dtype=past_target.dtype, device=past_target.device)
    if draws is not None:
        uniform = draws.to(past_target.dtype)
)";

const char* mixed_script = R"(
    shape = [past_target.size(0), self.mixture_windows + 1, len(self.external), 10, horizon]
    others = torch.full(shape, float('nan'), dtype=past_target.dtype, device=past_target.device)
    if external is not None:
        others = external.to(past_target.dtype)
        assert others.size() == shape, "external: expected a tensor of series, windows + 1, external candidates, 10 and steps"
    return self.mixture(past_target, past_observed, features, asked, uniform, others)
)";

// The network's own forecast of pasts of the length that it reads.
const char* network_script = R"(
def network(self, past_target: Tensor, past_observed: Tensor, features: Tensor, asked: Tensor, uniform: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    if self.imputes:
        past_target = torch.where(past_observed > 0.0, past_target, self.context_mean(past_target, past_observed, self.context_length))
)";

const char* from_distribution_script =
    R"(    df, loc, scale, affine_scale = self.distribution(past_target, past_observed)
    samples = affine_scale.unsqueeze(1) * (loc.unsqueeze(1) + scale.unsqueeze(1) * self.student_t_draw(df.unsqueeze(1), uniform))
    samples = samples.clamp(self.lower_bound, self.upper_bound)
    if self.from_samples:
        return self.order_statistics(samples, asked), samples.mean(1), samples
    t = self.student_t_quantiles(df, asked)
    quantiles = affine_scale.unsqueeze(1) * (loc.unsqueeze(1) + scale.unsqueeze(1) * t)
    mean = affine_scale * loc
    return quantiles.to(past_target.dtype).clamp(self.lower_bound, self.upper_bound), mean.clamp(self.lower_bound, self.upper_bound), samples
)";

const char* from_paths_script =
    R"(    samples = self.paths(past_target, past_observed, features, uniform).clamp(self.lower_bound, self.upper_bound)
    return self.order_statistics(samples, asked), samples.mean(1), samples
)";

}  // namespace

namespace {

/// The bound in the precision of the weights, rounded inwards, so that nothing cut there is outside.
double within(double bound, bool from_below, at::ScalarType precision) {
  if (precision != at::kFloat || !std::isfinite(bound)) return bound;
  auto rounded = static_cast<float>(bound);
  if (from_below && rounded < bound) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  if (!from_below && rounded > bound) rounded = std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  return rounded;
}

}  // namespace

std::string student_t_quantile_script() {
  return R"(
def student_t_quantile(self, df: Tensor, level: Tensor) -> Tensor:
    df = df.clamp(max=1e6)
    tail = torch.minimum(level, 1.0 - level)
    df, tail = torch.broadcast_tensors(df, tail)
    two = 2.0 * tail
    a = 1.0 / (df - 0.5)
    b = 48.0 / (a * a)
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * torch.sqrt(a * 1.5707963267948966) * df
    y = torch.pow(d * two, 2.0 / df)
    normal = 1.4142135623730951 * torch.erfinv(two - 1.0)
    c_near = torch.where(df < 5.0, c + 0.3 * (df - 4.5) * (normal + 0.6), c)
    c_near = (((0.05 * d * normal - 5.0) * normal - 7.0) * normal - 2.0) * normal + b + c_near
    n2 = normal * normal
    near = (((((0.4 * n2 + 6.3) * n2 + 36.0) * n2 + 94.5) / c_near - n2 - 3.0) / b + 1.0) * normal
    near = torch.expm1(a * near * near)
    far = ((1.0 / (((df + 6.0) / (df * y) - 0.089 * d - 0.822) * (df + 2.0) * 3.0) + 0.5 / (df + 4.0)) * y - 1.0) * (df + 1.0) / (df + 2.0) + 1.0 / y
    t = torch.sqrt((df * torch.where(y > 0.05 + a, near, far)).clamp(min=0.0))
    half = 0.5 * df
    r = 1.0 / half
    r2 = r * r
    series = 0.5 * torch.log(half) - r * (0.125 - r2 * (0.005208333333333333 - r2 * (0.0015625 - r2 * 0.0011858258928571428)))
    log_front = torch.where(df > 50.0, series, torch.lgamma(half + 0.5) - torch.lgamma(half)) - 0.5723649429247001
    log_density_front = log_front - 0.5 * torch.log(df)
    on_line = torch.cat([-self.quadrature[:, 0], self.quadrature[:, 0]])
    nodes = torch.square(0.5 + 0.5 * on_line)
    weights = 0.5 * torch.cat([self.quadrature[:, 1], self.quadrature[:, 1]])
    order = torch.arange(48, device=df.device).double()
    terms = torch.cumprod(torch.where(order > 0.0, (order - 0.5) / order, torch.ones_like(order)), 0)
    of_half = half.unsqueeze(-1) / (half.unsqueeze(-1) + order) * terms
    for i in range(4):  # A step doubles the number of correct digits.
        share = t * t / df
        integral = (torch.exp((-0.5 * (df + 1.0)).unsqueeze(-1) * torch.log1p(share.unsqueeze(-1) * nodes)) * weights).sum(-1)
        value = torch.exp(log_density_front) * t * integral - (0.5 - tail)
        log_x = torch.log((1.0 / (1.0 + share)).clamp(max=0.5))
        total = (of_half * torch.exp(log_x.unsqueeze(-1) * order)).sum(-1)
        value = torch.where(share > 1.0, tail - 0.5 * torch.exp(log_front + half * log_x) * total / half, value)
        t = (t - value / torch.exp(log_density_front - 0.5 * (df + 1.0) * torch.log1p(share))).clamp(min=0.0)
    return torch.where(level < 0.5, -t, t)

def student_t_quantiles(self, df: Tensor, levels: Tensor) -> Tensor:
    # 1 - 0.9 differs from 0.1 in its last bits.
    tails = torch.round(torch.minimum(levels, 1.0 - levels) * 1125899906842624.0) / 1125899906842624.0
    places = torch.arange(20, device=df.device).double()
    angles = (places + 0.5) * (3.141592653589793 / 20.0)
    nodes = torch.cos(angles)
    known = torch.log(self.student_t_quantile((4.0 / (1.0 + nodes)).unsqueeze(1), tails).abs().clamp(min=1e-300))
    gaps = (4.0 / df.double().clamp(max=1e6) - 1.0).unsqueeze(2) - nodes
    gaps = torch.where(gaps.eq(0.0), torch.full_like(gaps, 1e-290), gaps)
    shares = torch.sin(angles) * (1.0 - 2.0 * (places % 2.0)) / gaps
    t = torch.exp(shares.matmul(known) / shares.sum(2, keepdim=True))
    return torch.where(levels < 0.5, -t, t).transpose(1, 2)
)";
}

namespace {

/// What forecasts a past of the length that the network reads: its weights, and all methods up to `network`.
torch::jit::Module network_module(const models::Forecaster& model, bool sampled_forecasts) {
  torch::jit::Module module("TsdpForecaster");
  for (std::size_t i = 0; i < model.parameters().entries().size(); ++i) {
    auto name = model.parameters().entries()[i].name;
    std::replace(name.begin(), name.end(), '.', '_');
    module.register_parameter(name, model.parameters().value(i).detach().clone(), /*is_buffer=*/false);
  }
  // Positive nodes and weights of Gauss–Legendre quadrature with 24 points.
  const auto quadrature = at::tensor({0.0640568928626056260850430826247450, 0.1279381953467521569740561652246954,
                                      0.1911188674736163091586398207570696, 0.1258374563468282961213753825111837,
                                      0.3150426796961633743867932913198102, 0.1216704729278033912044631534762624,
                                      0.4337935076260451384870842319133497, 0.1155056680537256013533444839067836,
                                      0.5454214713888395356583756172183723, 0.1074442701159656347825773424466062,
                                      0.6480936519369755692524957869107476, 0.0976186521041138882698806644642472,
                                      0.7401241915785543642438281030999784, 0.0861901615319532759171852029837427,
                                      0.8200019859739029219539498726697452, 0.0733464814110803057340336152531165,
                                      0.8864155270044010342131543419821967, 0.0592985849154367807463677585001086,
                                      0.9382745520027327585236490017087214, 0.0442774388174198061686027482113382,
                                      0.9747285559713094981983919930081690, 0.0285313886289336631813078159518782,
                                      0.9951872199970213601799974097007368, 0.0123412297999871995468056670700373},
                                     at::kDouble);
  module.register_buffer("quadrature", quadrature.view({12, 2}));
  module.register_attribute("machine_epsilon", c10::FloatType::get(),
                            model.parameters().values().scalar_type() == at::kDouble
                                ? std::numeric_limits<double>::epsilon()
                                : static_cast<double>(std::numeric_limits<float>::epsilon()));
  const auto& options = model.options();
  const auto number = [&](const char* name, std::int64_t value) {
    module.register_attribute(name, c10::IntType::get(), value);
  };
  number("context_length", options.context_length);
  number("prediction_length", options.prediction_length);
  number("time_feature_count", model.reads_time_features() ? options.time_features : 0);
  module.register_attribute("default_scale", c10::FloatType::get(), options.default_scale);
  const auto precision = model.parameters().values().scalar_type();
  module.register_attribute("lower_bound", c10::FloatType::get(), within(options.lower_bound, true, precision));
  module.register_attribute("upper_bound", c10::FloatType::get(), within(options.upper_bound, false, precision));
  module.register_attribute("from_samples", c10::BoolType::get(), model.samples_paths() || sampled_forecasts);
  module.register_attribute("imputes", c10::BoolType::get(), options.imputes && options.prior.kind == PriorKind::none);
  module.register_buffer("lags", at::tensor(options.lags, at::kLong));
  // A method is known only to those defined after it.
  module.define(student_t_quantile_script());
  module.define(models::context_mean_script());
  module.define(draws_script);
  module.define(model.script());
  module.define(cat(network_script, model.samples_paths() ? from_paths_script : from_distribution_script));
  return module;
}

/// The longest past that one of its networks reads.
std::int64_t longest_network(const models::Forecaster& model) {
  auto longest = model.past_length();
  for (const auto& network : model.networks()) longest = std::max(longest, network->past_length());
  return longest;
}

/// The forecaster of the weights that training of `model` began with.
std::unique_ptr<models::Forecaster> start_of(const models::Forecaster& model) {
  if (!model.start().defined())
    throw Error(ExitCode::failure, "a mixture has the candidate start, and the model has not kept its start");
  auto options = model.options();
  options.mixture = {};
  options.parameter_values = model.start();
  return models::make_model(model.name(), options, model.start().options());
}

}  // namespace

std::int64_t forecast_past_length(const models::Forecaster& model) {
  return model.options().mixture.past_length(longest_network(model), model.options().prediction_length);
}

torch::jit::Module make_module(const models::Forecaster& model, bool sampled_forecasts) {
  auto module = network_module(model, sampled_forecasts);
  const auto& mixture = model.options().mixture;
  const auto number = [&](const char* name, std::int64_t value) {
    module.register_attribute(name, c10::IntType::get(), value);
  };
  number("past_length", forecast_past_length(model));
  if (!mixture.empty()) {
    number("network_length", model.past_length());
    number("longest_network", longest_network(model));
    number("network_count", std::ssize(mixture.networks));
    number("first_network", std::ssize(mixture.members) + 1);
    number("mixture_windows", mixture.windows);
    number("mixture_stride", mixture.stride);
    module.register_attribute("skips_outliers", c10::BoolType::get(), mixture.skips_outliers);
    number("candidate_count",
           static_cast<std::int64_t>(mixture.members.size() + mixture.networks.size() + mixture.external.size()) + 1);
    module.register_attribute("external", c10::ListType::ofStrings(),
                              c10::List<std::string>(at::ArrayRef<std::string>(mixture.external)));
    number("longest_season", mixture.longest_season());
    module.register_buffer("spreads", at::tensor(models::mixture_spreads(), model.parameters().values().scalar_type()));
    if (mixture.has(Candidate::start))
      module.register_module("start", network_module(*start_of(model), sampled_forecasts));
    if (model.networks().size() != mixture.networks.size())
      throw Error(ExitCode::failure, cat("a mixture of ", mixture.networks.size(),
                                         " other networks, and the model has ", model.networks().size()));
    std::vector<std::int64_t> lengths;
    for (const auto& network : model.networks()) {
      module.register_module(cat("network_", lengths.size()), network_module(*network, false));
      lengths.push_back(network->past_length());
    }
    module.define(models::mixture_script(mixture, lengths));
  }
  module.define(cat(forward_script,
                    mixture.empty() ? "    return self.network(past_target, past_observed, features, asked, uniform)\n"
                                    : mixed_script));
  module.eval();
  return module;
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
  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) refuse(key, "a text");
    return at(key).get<std::string>();
  }
  /// Of the networks that a mixture holds beside the model's own.
  [[nodiscard]] std::vector<Sizes> networks() const {
    std::vector<Sizes> out;
    if (!has("mixture") || at("mixture").is_null() || !at("mixture").contains("networks")) return out;
    for (const auto& item : at("mixture")["networks"]) out.emplace_back(item, where_, "mixture.networks.");
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
    out.skips_outliers = sizes.has("skips_outliers") && sizes.flag("skips_outliers");  // older models do not
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
  return {{"context_length", options.context_length},
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
  for (std::size_t i = 0; i < model.networks().size(); ++i) {
    Json network = {{"name", mixture.networks[i]}, {"model", model.networks()[i]->name()}};
    network.update(sizes_of(model.networks()[i]->options()));
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
  if (options.mixture.has(Candidate::start)) {
    read(*model, std::string(mechanism::start_prefix));
    model->keep_start();
  }
  read(*model, "");
  std::vector<std::shared_ptr<const models::Forecaster>> networks;
  for (const auto& network_sizes : sizes.networks()) {
    const auto its_options = options_of(network_sizes);
    auto network = built(network_sizes.text("model"), its_options);
    if (network->reads_time_features() || network->samples_paths())
      network_sizes.refuse("model", "a model that reads no time features");
    if (its_options.prediction_length != options.prediction_length)
      network_sizes.refuse("prediction_length", cat(options.prediction_length, ", as of the model"));
    read(*network, cat(mechanism::network_prefix, networks.size(), "."));
    networks.push_back(std::move(network));
  }
  model->keep_networks(std::move(networks));
  if (data.tensors.size() != used) throw DataError(cat(where, ": holds weights that the model has not"));
  if (forecast_past_length(*model) > largest_length || metadata.model["past_length"] != forecast_past_length(*model) ||
      metadata.model["prediction_length"] != options.prediction_length)
    throw DataError(cat(where, ": model: past_length and prediction_length are not those of its sizes"));
  metadata.model["parameters"] = model->parameters().count();
  return {make_module(*model, sizes.flag("sampled_forecasts")), std::move(metadata)};
}

}  // namespace

void save_model(const models::Forecaster& model, bool sampled_forecasts, ModelMetadata metadata,
                const std::filesystem::path& file) {
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
  if (model.options().mixture.has(Candidate::start)) put(*start_of(model), std::string(mechanism::start_prefix));
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

LoadedModel load_model(const std::filesystem::path& file, const at::Device& device, ArchiveCode code) {
  const auto where = file.string();
  // Off the CPU LibTorch would compile the forecast's operators anew as it sees fit; what runs is then not what was
  // tested.
  if (!device.is_cpu()) torch::jit::setTensorExprFuserEnabled(false);
  const auto found = mechanism::read_exported_model(file);
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
