#include "audit/trainer_audit.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

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
#include "tsdp/privacy/terms/strategy.h"
#include "tsdp/training/trainer.h"

namespace tsdp::audit {
namespace {

using Json = nlohmann::ordered_json;
using privacy::TopLevel;

/// What clipping leaves of a canary's gradient in a batch of the scheme, in multiples of C.
double unit_length_of(const Config& config, const mechanism::PrivateMechanism& audited,
                      const models::ModelOptions& options, const MarkCode& code) {
  // Windows without marks count −1 if gradients are substituted; a code of that kind tells the same about any other.
  auto plain = code;
  plain.kind = CanaryKind::substituted;
  Canary canary(options, on_cpu, plain, config.privacy.clip_norm, std::make_shared<std::atomic<std::int64_t>>(0));
  sampling::StructuredSampler sampler(audited.scheme());
  Clipped clipped(canary, config, audited);
  // Any non-empty batch will do.
  sampling::Draw drawn;
  for (std::uint64_t step = 0; drawn.windows.empty(); ++step) drawn = sampler.draw(SecretKey::from_seed(0), step);
  const auto windows = static_cast<std::int64_t>(drawn.windows.size());
  const auto past = at::zeros({windows, options.context_length});
  const auto future = at::zeros({windows, options.prediction_length});
  const double sum = clipped.sum({past, past, future, future, {}}, drawn.places)[0].item<double>();
  const auto records = audited.scheme().parameters().record == privacy::Record::window
                           ? drawn.windows.size()
                           : std::set<std::int64_t>(drawn.places.begin(), drawn.places.end()).size();
  return -sum / static_cast<double>(records);
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
mechanism::PrivateMechanism mechanism_of(const Config& config, const privacy::SeriesLengths& lengths) {
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

/// Refuses a run whose uses this attack cannot tell from each other, or that has no worst neighbours here.
void require_attackable(const mechanism::PrivateMechanism& audited, Mode mode) {
  const auto& p = audited.scheme().parameters();
  const bool whole_series = p.record == privacy::Record::series;
  const char* sampler = tsdp::name(p.top_level);
  if (whole_series && mode == Mode::data)
    throw UsageError(
        "--mode: found data with privacy.relation series, whose worst neighbours no data come near; "
        "expected canary");
  if (audited.noise().strategy && p.top_level != TopLevel::cyclic_poisson)
    throw PrivacyError(cat("privacy.noise.mechanism: found ", tsdp::name(audited.noise().strategy->kind()),
                           " with sampling.top_level ", sampler,
                           ", whose noise joins all steps of a series to a single use; expected identity, or "
                           "cyclic_poisson, whose bands keep uses apart"));
  switch (p.top_level) {
    case TopLevel::deterministic:
    case TopLevel::without_replacement: return;
    case TopLevel::shuffled:
      throw PrivacyError(
          "sampling.top_level: found shuffled, whose steps that read a series are not known in advance; expected "
          "deterministic, which has the same bound");
    case TopLevel::balls_in_bins:
      if (whole_series)
        throw PrivacyError(
            "sampling.top_level: found balls_in_bins, where one draw decides about all steps of an epoch or a run, so "
            "that they are no independent uses; expected poisson, cyclic_poisson, wor or deterministic");
      break;
    case TopLevel::poisson:
    case TopLevel::cyclic_poisson:
      if (whole_series) return;
      break;
  }
  throw PrivacyError(
      cat("sampling.top_level: found ", sampler,
          ", whose batches have no fixed size, which the attack needs; expected wor, which has the same bound"));
}

/// With which steps uses begin: every `period`-th one, from step `due` on. Where series are read in turn that is the
/// step of an epoch that reads the changed one; in cyclic Poisson batches, that of a round in which it has its turn.
struct Turns {
  std::uint64_t period = 1;
  std::uint64_t due = 0;

  /// `taken`: steps so far, with this one.
  [[nodiscard]] bool begins_use(std::uint64_t taken) const { return (taken - 1) % period == due; }
};

Turns turns_of(const privacy::SubsamplingScheme& scheme, const Neighbours& neighbours) {
  const auto turns = [](std::int64_t period, std::int64_t due) {
    return Turns{static_cast<std::uint64_t>(period), static_cast<std::uint64_t>(due)};
  };
  const auto groups = scheme.parameters().groups;
  switch (scheme.parameters().top_level) {
    case TopLevel::deterministic:
      return turns(scheme.steps_per_epoch(), neighbours.series / scheme.sequences_per_batch());
    case TopLevel::cyclic_poisson: return turns(groups, neighbours.series % groups);
    case TopLevel::without_replacement:
    case TopLevel::poisson:
    case TopLevel::shuffled:
    case TopLevel::balls_in_bins: break;
  }
  return {};
}

/// The strategy's column c_0 … c_{p−1}; of independent noise, 1.
std::vector<double> bands_of(const privacy::Noise& noise) {
  if (!noise.strategy) return {1.0};
  auto out = noise.strategy->column();
  out.resize(static_cast<std::size_t>(noise.strategy->bands()));
  return out;
}

double length_of(const std::vector<double>& bands) {
  double square = 0.0;
  for (const double c : bands) square += c * c;
  return std::sqrt(square);
}

/// The uses of a run, from its releases in the order of steps.
///
/// Training releases X = G + C⁻¹Z with p-banded C, and row t of CX = CG + Z is Σ_j c_j X_{t−j}. A record that takes
/// part in step t adds g c_i to row t + i for i < p. It has its turn every p-th step at the most, so it adds to these p
/// rows in no other one, and the log-likelihood ratio of all rows is the sum over turns of that of
///   Σ_i c_i (CX)_{t+i} / ‖c‖  =  ‖c‖ g + N(0, σ²)
/// (docs/proofs/cyclic-poisson.md, in which other records' parts are known). Turns share no row, so uses are
/// independent. With independent noise, c = (1) and a use is a release.
class Uses {
 public:
  explicit Uses(std::vector<double> bands) : bands_(std::move(bands)), length_(length_of(bands_)) {
    before_.resize(bands_.size());
  }

  /// Whether releases of steps in which no use begins tell anything.
  [[nodiscard]] bool joins_steps() const { return bands_.size() > 1; }

  /// Takes the release of the next step, with which a use may begin; returns the use that ends with it.
  std::optional<Release> take(const Release& release, bool begins) {
    before_[steps_ % before_.size()] = {release.along, release.across, release.blank};
    Row row{};  // of CX
    for (std::size_t j = 0; j < bands_.size() && j <= steps_; ++j)
      add(row, bands_[j], before_[(steps_ - j) % before_.size()]);
    ++steps_;
    if (begins) {
      sum_ = {};
      place_ = 0;
      touched_ = release.touched;
    }
    if (place_ >= bands_.size()) return std::nullopt;
    add(sum_, bands_[place_] / length_, row);
    if (++place_ < bands_.size()) return std::nullopt;
    return Release{static_cast<float>(sum_[0]), static_cast<float>(sum_[1]), static_cast<float>(sum_[2]), touched_};
  }

 private:
  using Row = std::array<double, 3>;  // along, across, blank
  static void add(Row& to, double weight, const Row& row) {
    for (std::size_t k = 0; k < row.size(); ++k) to[k] += weight * row[k];
  }

  std::vector<double> bands_;
  double length_;
  std::vector<Row> before_;  // the last p releases, that of step t at t mod p
  std::uint64_t steps_ = 0;
  Row sum_{};
  std::size_t place_ = std::numeric_limits<std::size_t>::max();  // of the next row in its use; p or more: in none
  std::int32_t touched_ = -1;
};

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
  view.divisor = audited.divisor() / config.privacy.clip_norm;
  if (mode == Mode::canary) {
    out.unit_length = unit_length_of(config, audited, view.canary_options, view.code);
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

Measurement measure(const Config& config, const privacy::SeriesLengths& lengths, const AuditOptions& options) {
  if (options.trials < 2) throw UsageError(cat("--trials: found ", options.trials, "; expected at least 2"));
  const auto audited = mechanism_of(config, lengths);
  static_cast<void>(plan_of(config, audited));  // refuses what cannot be claimed before attacking it
  const auto& scheme = audited.scheme();
  require_attackable(audited, options.mode);
  const auto neighbours = worst_neighbours(scheme, audited.unit());
  const auto turns = turns_of(scheme, neighbours);
  const auto bands = bands_of(audited.noise());
  const auto steps = options.trials * turns.period + bands.size() - 1;  // the last use ends after the last turn
  const auto steps_per_epoch = static_cast<std::uint64_t>(scheme.steps_per_epoch());
  const auto run_config = attacked(config, audited.noise(), (steps + steps_per_epoch - 1) / steps_per_epoch);
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
    training::Trainer trainer(mechanism::settle_noise({own}, data.training_lengths()), data, at::Device(at::kCPU),
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
    Uses read(bands);
    Repeats repeats;
    Progress progress(options.progress);
    training::TrainOptions how;
    how.most_steps = steps;
    how.stop = options.stop;
    how.after_step = [&](std::uint64_t taken) {
      const auto found = touched->exchange(0, std::memory_order_relaxed);
      if (repeats.again(gradients)) ++out.uses.repeats;
      const bool begins = turns.begins_use(taken);
      if (!begins && found > 0) ++out.uses.strays;
      if (!begins && !read.joins_steps()) return;
      if (const auto use = read.take(view.read(gradients, found), begins)) uses.push_back(*use);
      progress.show((static_cast<double>(uses.size()) / static_cast<double>(options.trials) + (second ? 1.0 : 0.0)) /
                    2.0);
    };
    trainer.run(how);
    if (options.stop != nullptr && options.stop->load()) throw Stopped{};
  }
  return out;
}

Claim claim_of(const Config& config, const privacy::SeriesLengths& lengths, const AuditOptions& options,
               const Measurement& measurement) {
  const auto audited = mechanism_of(config, lengths);
  const auto& scheme = audited.scheme();
  const auto& unit = audited.unit();
  require_attackable(audited, options.mode);
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
  out.pair_at = [scheme, unit, theorem = out.theorem, strategy = held.noise().strategy](double sigma) {
    return privacy::apply_theorem(scheme, unit, privacy::noise_by(strategy, sigma), theorem).pair;
  };
  out.one_direction = unit.relation == privacy::Relation::series;
  const double moved = measurement.unit_length * length_of(bands_of(audited.noise()));
  out.shape = measurement.shape ? *measurement.shape : canary_shape(scheme, neighbours, moved);
  out.shape_is_exact = options.mode == Mode::canary;
  if (out.shape_is_exact) out.touched_share = touched_share_of_batches(scheme, neighbours);
  out.delta = config.privacy.delta;
  out.uses = held.theorem().uses_of_steps(plan.steps);
  out.one_use = held.curve()->epsilon(out.delta, 1).upper;
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
