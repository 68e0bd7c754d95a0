#include "script_module.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/single_precision.h"
#include "mixture.h"
#include "scalers.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::models {
namespace {

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
    R"(    df, loc, scale, affine_scale = self.distribution(past_target, past_observed, features)
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

/// The bound in the precision of the weights.
double within(double bound, bool from_below, at::ScalarType precision) {
  return precision == at::kFloat && std::isfinite(bound) ? bound_inwards(bound, from_below) : bound;
}

/// The TorchScript source of student_t_quantile(self, df, level), double precision in and out: Hill's (1970)
/// approximation, then Newton steps on the distribution function: for t² ≤ ν by Gauss–Legendre quadrature of
///   F(t) − ½ = Γ((ν+1)/2) / (√(πν) Γ(ν/2)) t ∫_0^1 (1 + t² v²/ν)^{−(ν+1)/2} dv,
/// further out by the power series of the incomplete beta function at x = ν/(ν+t²) ≤ ½ (DLMF 8.17.7). And of
/// student_t_quantiles(self, df, levels), (B, H) and (A) to (B, A, H): log |t| is a smooth function of 1/ν, so it is
/// interpolated by the polynomial through its values at 20 Chebyshev nodes of (0, ½) (barycentric formula).
/// Relative error below 1e-9 for 2 < df ≤ 1e6 (larger df are taken as 1e6) and levels in [1e-6, 1 − 1e-6].
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
    known = torch.log(self.student_t_quantile((4.0 / (1.0 + nodes)).unsqueeze(1), tails).abs().clamp(min=1e-30))
    gaps = (4.0 / df.double().clamp(2.0, 1e6) - 1.0).unsqueeze(2) - nodes
    gaps = torch.where(gaps.eq(0.0), torch.full_like(gaps, 1e-30), gaps)
    shares = torch.sin(angles) * (1.0 - 2.0 * (places % 2.0)) / gaps
    t = torch.exp(shares.matmul(known) / shares.sum(2, keepdim=True))
    return (torch.sign(levels - 0.5) * t).transpose(1, 2)
)";
}

/// What forecasts a past of the length that the network reads: its weights, and all methods up to `network`.
torch::jit::Module network_module(const Forecaster& model, bool sampled_forecasts) {
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
  if (model.variables() > 1) number("variables", model.variables());
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
  module.define(context_mean_script());
  module.define(draws_script);
  module.define(model.script());
  module.define(cat(network_script, model.samples_paths() ? from_paths_script : from_distribution_script));
  return module;
}

/// The longest past that one of its networks reads, in steps of the series.
std::int64_t longest_network(const Forecaster& model) {
  auto longest = model.past_length();
  for (const auto& network : model.networks())
    longest = std::max(longest, network->past_length() * network->options().every);
  return longest;
}

}  // namespace

std::unique_ptr<Forecaster> start_of(const Forecaster& model) {
  if (!model.start().defined())
    throw Error(ExitCode::failure, "a mixture has the candidate start, and the model has not kept its start");
  auto options = model.options();
  options.mixture = {};
  options.parameter_values = model.start();
  return make_model(model.name(), options, model.start().options());
}

std::int64_t forecast_reach(const Forecaster& model) {
  return model.options().mixture.past_length(longest_network(model), model.options().prediction_length);
}

torch::jit::Module script_module(const Forecaster& model, bool sampled_forecasts) {
  auto module = network_module(model, sampled_forecasts);
  const auto& mixture = model.options().mixture;
  const auto number = [&](const char* name, std::int64_t value) {
    module.register_attribute(name, c10::IntType::get(), value);
  };
  number("past_length", forecast_reach(model));
  if (!mixture.empty()) {
    number("network_length", model.past_length());
    number("longest_network", longest_network(model));
    number("network_count", std::ssize(mixture.networks));
    number("first_network", std::ssize(mixture.members) + 1);
    number("mixture_windows", mixture.windows);
    number("mixture_stride", mixture.stride);
    number("told_count", mixture.covariates);
    module.register_attribute("skips_outliers", c10::BoolType::get(), mixture.skips_outliers);
    module.register_attribute("widens_tails", c10::BoolType::get(), mixture.widens_tails);
    number("candidate_count", mixed_forecasts(mixture));
    module.register_attribute("external", c10::ListType::ofStrings(),
                              c10::List<std::string>(at::ArrayRef<std::string>(mixture.external)));
    number("longest_season", mixture.longest_season());
    number("shortest_read", mixture.shortest_read());
    number("windows_in_a_stride", std::max<std::int64_t>(1, mixture.stride / model.options().prediction_length));
    number("rows_together", model.variables());
    const auto options = model.parameters().values().options();
    const auto& trained = model.trained_mixture();
    for (std::size_t i = 0; const auto& [name, shape] : mixture_parameters(mixture)) {
      module.register_buffer(name, trained.empty() ? at::zeros(shape, options) : trained.at(i).detach().clone());
      ++i;
    }
    module.register_buffer("spreads", at::tensor(mixture_spreads(), model.parameters().values().scalar_type()));
    if (mixture.has(Candidate::start))
      module.register_module("start", network_module(*start_of(model), sampled_forecasts));
    if (model.networks().size() != mixture.networks.size())
      throw Error(ExitCode::failure, cat("a mixture of ", mixture.networks.size(),
                                         " other networks, and the model has ", model.networks().size()));
    std::vector<MixedNetwork> networks;
    for (const auto& network : model.networks()) {
      module.register_module(cat("network_", networks.size()), network_module(*network, false));
      networks.push_back({network->past_length(), network->options().prediction_length, network->options().every});
    }
    module.define(mixture_script(mixture, networks));
  }
  module.define(cat(forward_script,
                    mixture.empty() ? "    return self.network(past_target, past_observed, features, asked, uniform)\n"
                                    : mixed_script));
  module.eval();
  return module;
}

}  // namespace tsdp::models
