#include "audit/trainer_audit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "audit/attacked_run.h"
#include "audit/canary.h"
#include "audit/data_attack.h"
#include "audit/neighbours.h"
#include "base/scratch_folder.h"
#include "sampling/structured_sampler.h"
#include "settings/setup.h"
#include "training/model_setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/training/trainer.h"

namespace tsdp::audit {
namespace {

using Json = nlohmann::ordered_json;
using privacy::TopLevel;

/// What clipping leaves of a canary's gradient in a batch of the scheme, in multiples of C.
double unit_length_of(const Config& config, const privacy::SubsamplingScheme& scheme,
                      const models::ModelOptions& options, const MarkCode& code) {
  // Windows without marks count −1 if gradients are substituted; a code of that kind tells the same about any other.
  auto plain = code;
  plain.kind = CanaryKind::substituted;
  Canary canary(options, on_cpu, plain, config.privacy.clip_norm, std::make_shared<std::atomic<std::int64_t>>(0));
  sampling::StructuredSampler sampler(scheme);
  auto own = config;
  if (!own.privacy.noise_multiplier) own.privacy.noise_multiplier = 1.0;
  Clipped clipped(canary, config, mechanism::method_of(own, scheme.parameters().lengths));
  // Any non-empty batch will do.
  sampling::Draw drawn;
  for (std::uint64_t step = 0; drawn.windows.empty(); ++step) drawn = sampler.draw(SecretKey::from_seed(0), step);
  const auto windows = static_cast<std::int64_t>(drawn.windows.size());
  const auto past = at::zeros({windows, options.context_length});
  const auto future = at::zeros({windows, options.prediction_length});
  return -clipped.sum({past, past, future, future, {}}, drawn.places)[0].item<double>() / static_cast<double>(windows);
}

/// Whether a release equals the last one, judged by its first coordinates.
class Repeats {
 public:
  bool again(const at::Tensor& gradients) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(gradients.numel(), 64));
    const auto* now = gradients.const_data_ptr<float>();
    const bool same = last_.size() == count && std::memcmp(last_.data(), now, count * sizeof(float)) == 0;
    last_.assign(now, now + count);
    return same;
  }

 private:
  std::vector<float> last_;
};

/// The run's method, as needed for an audit.
mechanism::PrivateMechanism mechanism_of(const Config& config, const std::vector<std::int64_t>& lengths) {
  if (!config.privacy.enabled)
    throw UsageError("privacy.enabled: found false; an audit is of a private run, expected true");
  return *mechanism::method_of(config, lengths).privacy();
}

training::Plan plan_of(const Config& config, const mechanism::PrivateMechanism& audited) {
  return training::make_plan(audited, {config.privacy.target_epsilon, config.privacy.delta},
                             config.training.max_epochs.value());
}

}  // namespace

const char* name(Mode value) { return value == Mode::canary ? "canary" : "data"; }

namespace {

void require_attackable(const privacy::SubsamplingScheme& scheme) {
  if (scheme.parameters().record == privacy::Record::series)
    throw PrivacyError(
        "privacy.relation: found series, of which no worst neighbours are made so far; expected event or user");
  switch (scheme.parameters().top_level) {
    case TopLevel::deterministic:
    case TopLevel::without_replacement: return;
    case TopLevel::shuffled:
      throw PrivacyError(
          "sampling.top_level: found shuffled, whose steps that read a series are not known in advance; expected "
          "deterministic, which has the same bound");
    case TopLevel::poisson:
    case TopLevel::cyclic_poisson:
    case TopLevel::balls_in_bins: break;
  }
  throw PrivacyError(
      cat("sampling.top_level: found ", tsdp::name(scheme.parameters().top_level),
          ", whose batches have no fixed size, which the attack needs; expected wor, which has the same bound"));
}

/// Which steps are uses: each of them, or, where series are read in turn, the one of every epoch that reads the changed
/// series.
struct Turns {
  bool in_turn;
  std::uint64_t steps_per_epoch;
  std::uint64_t due;  ///< that step, from 0

  /// `taken`: steps so far, with this one.
  [[nodiscard]] bool is_use(std::uint64_t taken) const { return !in_turn || (taken - 1) % steps_per_epoch == due; }
};

Turns turns_of(const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours) {
  const bool in_turn = scheme.parameters().top_level == TopLevel::deterministic;
  return {in_turn, static_cast<std::uint64_t>(scheme.steps_per_epoch()),
          in_turn ? static_cast<std::uint64_t>(neighbours.series / scheme.sequences_per_batch()) : 0};
}

/// What the attacker puts into the two data sets, and how a release is read.
struct View {
  Neighbours neighbours;
  models::ModelOptions canary_options;
  MarkCode code;
  std::optional<Projection> projection;  ///< of the configured forecaster; none: the canary
  at::Tensor directions;  ///< of the projection
  double divisor = 1.0;
  double offset = 0.0;

  [[nodiscard]] std::vector<float> values(std::int64_t series, std::int64_t length, bool second) const {
    return projection ? DataAttack::values(projection->extremes, neighbours, series, length, second)
                      : marked_values(code, neighbours, series, length, second);
  }

  [[nodiscard]] Release read(const at::Tensor& gradients, std::int64_t touched) const {
    Release use;
    if (projection) {
      const auto release = at::mv(directions, gradients.to(at::kDouble));
      use.along = static_cast<float>(release[0].item<double>() * divisor - offset);
      use.blank = static_cast<float>(release[1].item<double>() * divisor);
    } else {
      const auto* release = gradients.const_data_ptr<float>();
      use.along = static_cast<float>(static_cast<double>(release[0]) * divisor - offset);
      use.across = static_cast<float>(static_cast<double>(release[1]) * divisor);
      use.blank = static_cast<float>(static_cast<double>(release[2]) * divisor);
      use.touched = static_cast<std::int32_t>(touched);
    }
    return use;
  }
};

/// The attacker's view. What it shows of the forecaster goes into `out`.
View view_of(const Config& config, const mechanism::PrivateMechanism& audited, const Neighbours& neighbours, Mode mode,
             Measurement& out) {
  const auto& scheme = audited.scheme();
  View view;
  view.neighbours = neighbours;
  view.canary_options.context_length = mechanism::accounted_context(config);
  view.canary_options.prediction_length = config.dataset.prediction_length;
  view.code = mark_code(scheme, audited.unit());
  view.divisor = static_cast<double>(scheme.parameters().batch_size) / config.privacy.clip_norm;
  if (mode == Mode::canary) {
    out.unit_length = unit_length_of(config, scheme, view.canary_options, view.code);
    out.model = "canary";
    if (view.code.kind == CanaryKind::substituted)
      view.offset = -out.unit_length * static_cast<double>(scheme.expected_windows());
    return view;
  }
  // The attacker knows the initial weights, which depend only on the seed.
  const auto model = training::model_of(config, on_cpu);
  RandomStream weights(SecretKey::from_seed(static_cast<std::uint64_t>(config.training.seed)), "initial weights", 0);
  model->initialise(weights);
  view.projection = DataAttack(config, scheme, neighbours, *model).best();
  view.directions = at::stack({view.projection->direction, view.projection->blank});
  view.offset = view.projection->offset;
  out.shape = view.projection->shape;
  out.model = model->name();
  return view;
}

/// Tells of progress, four times a second at most.
class Progress {
 public:
  explicit Progress(const std::function<void(double share)>& tell) : tell_(tell) {}
  void show(double share) {
    if (const auto now = std::chrono::steady_clock::now(); tell_ && now - shown_ > std::chrono::milliseconds(250)) {
      shown_ = now;
      tell_(share);
    }
  }

 private:
  const std::function<void(double share)>& tell_;
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

}  // namespace

Measurement measure(const Config& config, const std::vector<std::int64_t>& lengths, const AuditOptions& options) {
  if (options.trials < 2) throw UsageError(cat("--trials: found ", options.trials, "; expected at least 2"));
  const auto audited = mechanism_of(config, lengths);
  static_cast<void>(plan_of(config, audited));  // refuses what cannot be claimed before attacking it
  const auto& scheme = audited.scheme();
  require_attackable(scheme);
  const auto neighbours = worst_neighbours(scheme, audited.unit());
  const auto turns = turns_of(scheme, neighbours);
  const auto steps = options.trials * (turns.in_turn ? turns.steps_per_epoch : 1);
  const auto run_config =
      attacked(config, audited.noise().multiplier, (steps + turns.steps_per_epoch - 1) / turns.steps_per_epoch);
  Measurement out;
  const auto view = view_of(config, audited, neighbours, options.mode, out);

  const ScratchFolder scratch("audit");
  at::Tensor weights;
  for (const bool second : {false, true}) {
    const auto data = data_of(
        config, lengths, [&](std::int64_t series, std::int64_t length) { return view.values(series, length, second); });
    auto own = run_config;
    if (second) ++own.training.seed;
    const auto touched = std::make_shared<std::atomic<std::int64_t>>(0);
    training::Trainer trainer(mechanism::settle_noise({own}, lengths), data, at::Device(at::kCPU),
                              {scratch.path() / (second ? "second" : "first")},
                              view.projection ? nullptr
                                              : std::make_unique<Canary>(view.canary_options, on_cpu, view.code,
                                                                         config.privacy.clip_norm, touched));
    trainer.begin();
    // The same weights on both: only data and key differ.
    if (second) trainer.model().parameters().values().copy_(weights);
    weights = trainer.model().parameters().values().clone();
    const auto& gradients = trainer.model().parameters().gradients();
    out.parameters = trainer.model().parameters().count();
    auto& uses = second ? out.uses.second : out.uses.first;
    uses.reserve(options.trials);
    Repeats repeats;
    Progress progress(options.progress);
    training::TrainOptions how;
    how.most_steps = steps;
    how.stop = options.stop;
    how.after_step = [&](std::uint64_t taken) {
      const auto found = touched->exchange(0, std::memory_order_relaxed);
      if (repeats.again(gradients)) ++out.uses.repeats;
      if (!turns.is_use(taken)) {
        if (found > 0) ++out.uses.strays;
        return;
      }
      uses.push_back(view.read(gradients, found));
      progress.show((static_cast<double>(uses.size()) / static_cast<double>(options.trials) + (second ? 1.0 : 0.0)) /
                    2.0);
    };
    trainer.run(how);
    if (options.stop != nullptr && options.stop->load()) throw Stopped{};
  }
  return out;
}

Claim claim_of(const Config& config, const std::vector<std::int64_t>& lengths, const AuditOptions& options,
               const Measurement& measurement) {
  const auto audited = mechanism_of(config, lengths);
  const auto& scheme = audited.scheme();
  const auto& unit = audited.unit();
  require_attackable(scheme);
  const auto neighbours = worst_neighbours(scheme, unit);
  const auto plan = plan_of(config, audited);
  // A named row is composed as the run composes its own, if that is proven for it.
  const auto composition_of = [&](const std::string& row) {
    return privacy::covers_adaptive_composition(privacy::apply_theorem(scheme, unit, audited.noise(), row))
               ? audited.composition()
               : privacy::StepComposition::symmetrised;
  };
  const auto held = options.theorem
                        ? mechanism::PrivateMechanism(unit, scheme, audited.clipping(), audited.noise(),
                                                      *options.theorem, 0.0, composition_of(*options.theorem))
                        : audited;
  Claim out;
  out.theorem = held.theorem().theorem;
  out.noise_multiplier = held.noise().multiplier;
  out.pair_at = [scheme, unit, theorem = out.theorem](double sigma) {
    return privacy::apply_theorem(scheme, unit, sigma, theorem).pair;
  };
  out.shape = measurement.shape ? *measurement.shape : canary_shape(scheme, neighbours, measurement.unit_length);
  out.shape_is_exact = options.mode == Mode::canary;
  if (out.shape_is_exact) out.touched_share = touched_share_of_batches(scheme, neighbours);
  out.delta = config.privacy.delta;
  out.uses = held.theorem().uses_of_steps(plan.steps);
  out.epsilon = options.theorem ? held.curve()->epsilon(out.delta, out.uses) : plan.epsilon;
  return out;
}

Json to_json(const Claim& claim, const Measurement& measurement, const Verdict& verdict, const AuditOptions& options) {
  const auto bracket = [](const privacy::Interval& b) {
    // JSON has no infinity.
    return Json{{"lower", b.lower}, {"upper", std::isfinite(b.upper) ? Json(b.upper) : Json(nullptr)}};
  };
  Json out;
  out["epsilon"] = bracket(verdict.epsilon);
  out["confidence"] = options.confidence;
  out["trials"] = options.trials;
  out["theorem"] = claim.theorem;
  out["mode"] = name(options.mode);
  out["share"] = verdict.epsilon.upper > 0.0 ? verdict.epsilon.lower / verdict.epsilon.upper : 0.0;
  out["delta"] = claim.delta;
  out["uses"] = claim.uses;
  out["contradicted"] = verdict.contradicted();
  out["contradictions"] = verdict.contradictions;
  out["remarks"] = verdict.remarks;
  out["noise_multiplier"] = {{"certified", claim.noise_multiplier}, {"measured", bracket(verdict.noise_multiplier)}};
  out["one_use"] = {{"epsilon", {{"lower", verdict.direct_epsilon}, {"upper", verdict.direct_upper}}}};
  if (verdict.touched) out["drawn"] = {{"scheme", *claim.touched_share}, {"measured", bracket(*verdict.touched)}};
  auto& events = out["events"] = Json::array();
  for (const auto& e : verdict.events) {
    Json event = {
        {"log_likelihood_ratio_above", e.threshold}, {"first", bracket(e.first)}, {"second", bracket(e.second)}};
    if (e.law_first) event["law"] = {{"first", *e.law_first}, {"second", *e.law_second}};
    events.push_back(std::move(event));
  }
  out["model"] = measurement.model;
  out["parameters"] = measurement.parameters;
  auto& assumptions = out["assumptions"] = Json::array();
  if (options.mode == Mode::canary)
    assumptions.push_back(cat("epsilon.lower: a release has the law of the scheme of Theorem ", claim.theorem,
                              " at some noise multiplier within a factor ", Attack::fit_range,
                              " of the certified one"));
  else
    assumptions.push_back(cat("epsilon.lower: the mechanism keeps the profile of Theorem ", claim.theorem,
                              " at some noise multiplier, which may be another than the certified one"));
  assumptions.push_back("epsilon.lower: noise is Gaussian and of one deviation in every direction");
  assumptions.push_back(
      "epsilon.lower: what the theorem gives for the whole run at the largest noise multiplier that the measurement "
      "allows; a lower bound of the theorem's number, and where that is an upper bound not of what an attacker "
      "reaches");
  assumptions.push_back("uses are independent: steps draw from streams of their own");
  assumptions.push_back("one_use.epsilon.lower, drawn and contradictions of the theorem assume nothing else");
  return out;
}

}  // namespace tsdp::audit
