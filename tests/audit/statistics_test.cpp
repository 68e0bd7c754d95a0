// The statistics of the audit against simulated mechanisms whose truth is known.
//
// Keys are fixed, so a pass stays a pass. Where a verdict is asked for at confidence 1 − 1e-6, a healthy mechanism is
// called unhealthy with probability below 1e-6. Planted faults are found with room to spare: under 25 other keys they
// were found, too.
#include "audit/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "audit/neighbours.h"
#include "privacy/theorems/structured_pairs.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/random/random.h"

namespace tsdp::audit {
namespace {

using privacy::BottomLevel;
using privacy::SubsamplingScheme;
using privacy::TopLevel;

constexpr double surely = 1.0 - 1e-6;

/// What a mechanism of this shape releases, if its noise is `sigma` and it draws the changed series with `drawn`.
struct Simulated {
  Shape shape;
  double sigma = 1.0;
  std::uint64_t seed = 1;
  double correlation = 0.0;  ///< of the noise of consecutive uses
  bool same_sampling = false;  ///< every use draws what the first did

  [[nodiscard]] std::vector<Release> uses(bool second, std::size_t count) const {
    const auto key = SecretKey::from_seed(2 * seed + (second ? 1 : 0));
    RandomStream coins(key, "coins", 0);
    std::vector<double> z(3 * count);
    RandomStream(key, "noise", 0).normals(0, z);
    const auto draw = [&](const std::vector<Component>& parts) {
      double u = coins.uniform();
      for (const auto& c : parts)
        if ((u -= c.weight) < 0.0) return c.mean;
      return parts.back().mean;
    };
    std::vector<Release> out;
    double along = 0.0;
    double across = 0.0;
    double kept[3] = {z[0], z[1], z[2]};
    bool touched = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 0 || !same_sampling) {
        const bool present = coins.uniform() < shape.drawn;
        const double marked = present ? draw(shape.second) : 0.0;
        touched = marked > 0.0;
        along = !present ? 0.0 : second ? marked : shape.first.size() == 1 ? shape.first[0].mean : draw(shape.first);
        across = present && !shape.trace.empty() ? draw(shape.trace) : 0.0;
      }
      for (std::size_t k = 0; k < 3; ++k)
        kept[k] = correlation * kept[k] + std::sqrt(1.0 - correlation * correlation) * z[3 * i + k];
      Release use;
      use.along = static_cast<float>(along + sigma * kept[0]);
      use.across = static_cast<float>(across + sigma * kept[1]);
      use.blank = static_cast<float>(sigma * kept[2]);
      use.touched = touched ? 1 : 0;
      out.push_back(use);
    }
    return out;
  }
  [[nodiscard]] Observations seen(std::size_t count) const {
    Observations out{uses(false, count), uses(true, count)};
    for (const auto* all : {&out.first, &out.second})
      for (std::size_t i = 1; i < all->size(); ++i) {
        const auto& a = (*all)[i];
        const auto& b = (*all)[i - 1];
        out.repeats += a.along == b.along && a.across == b.across && a.blank == b.blank ? 1 : 0;
      }
    return out;
  }
};

/// A small scheme of every row that training can use.
struct Row {
  std::string theorem;
  SubsamplingScheme::Parameters parameters;
  privacy::PrivacyUnit unit = {};
};

std::vector<Row> rows() {
  SubsamplingScheme::Parameters p;
  p.lengths = privacy::SeriesLengths::equal(10, 8);  // T = 8, m = 3
  p.context_length = 2;
  p.forecast_length = 1;
  p.batch_size = 5;  // ρ = 1/2
  std::vector<Row> out;
  const auto add = [&](const char* theorem, TopLevel top, BottomLevel bottom, std::int64_t lambda,
                       double context_noise = 0.0, double forecast_noise = 0.0) {
    auto q = p;
    q.top_level = top;
    q.bottom_level = bottom;
    q.batch_size = 5 * lambda;
    q.subsequences_per_sequence = lambda;
    q.context_noise = context_noise;
    q.forecast_noise = forecast_noise;
    Row row{theorem, q, {}};
    if (context_noise > 0.0 || forecast_noise > 0.0) row.unit.v = 1.0;
    out.push_back(row);
  };
  constexpr auto deterministic = TopLevel::deterministic;
  constexpr auto without_replacement = TopLevel::without_replacement;
  using enum BottomLevel;
  add("4.2", deterministic, with_replacement, 1);
  add("4.4", without_replacement, with_replacement, 1);
  add("E.1", deterministic, with_replacement, 2);
  add("E.8", deterministic, poisson, 2);
  add("F.1", without_replacement, with_replacement, 2);
  add("F.2", without_replacement, poisson, 4);
  add("4.5", without_replacement, with_replacement, 1, 0.5, 0.5);
  add("G.1", without_replacement, with_replacement, 1, 1.0, 0.5);
  return out;
}

Claim claim_of(const Row& row, double sigma) {
  const SubsamplingScheme scheme(row.parameters);
  const auto neighbours = worst_neighbours(scheme, row.unit);
  Claim claim;
  claim.theorem = row.theorem;
  claim.noise_multiplier = sigma;
  claim.pair_at = [scheme, row](double s) { return privacy::apply_theorem(scheme, row.unit, s).pair; };
  claim.shape = canary_shape(scheme, neighbours);
  // The simulation counts a window as touched where its gradient betrays it; with noise on the data that is another
  // share.
  if (!row.unit.v) claim.touched_share = touched_share_of_batches(scheme, neighbours);
  claim.delta = 1e-5;
  claim.uses = 100;
  claim.epsilon = privacy::apply_theorem(scheme, row.unit, sigma).curve()->epsilon(claim.delta, claim.uses);
  return claim;
}

bool says(const Verdict& verdict, const std::string& part) {
  for (const auto& line : verdict.contradictions)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

std::string all(const Verdict& verdict) {
  std::string out;
  for (const auto& line : verdict.contradictions) out += line + "\n";
  return out;
}

// Brackets
// ------------------------------------------------------------------------------------------------------------

TEST(ShareBracket, IsClopperAndPearsons) {
  // No hit in n: the upper end solves (1 − p)^n = error. All: the lower one p^n = error.
  EXPECT_NEAR(share_bracket(0, 1000, 2.5e-7).upper, -std::expm1(std::log(2.5e-7) / 1000.0), 1e-9);
  EXPECT_NEAR(share_bracket(1000, 1000, 2.5e-7).lower, std::exp(std::log(2.5e-7) / 1000.0), 1e-9);
  EXPECT_EQ(share_bracket(0, 1000, 2.5e-7).lower, 0.0);
  EXPECT_EQ(share_bracket(7, 7, 0.1).upper, 1.0);
  EXPECT_NEAR(share_bracket(500'000, 1'000'000, 2.5e-7).lower, 0.5 - 5.026 * 0.0005, 2e-6);
}

TEST(ShareBracket, HoldsTheTruthAsOftenAsItSays) {
  // Exactly: the binomial probability of all counts whose bracket misses p is at most the error on each side.
  for (const double p : {0.01, 0.3, 0.5, 0.9}) {
    constexpr std::uint64_t n = 60;
    double below = 0.0;
    double above = 0.0;
    double weight = std::pow(1.0 - p, n);
    for (std::uint64_t k = 0; k <= n; ++k) {
      const auto bracket = share_bracket(k, n, 0.05);
      if (bracket.lower > p) above += weight;
      if (bracket.upper < p) below += weight;
      weight *= static_cast<double>(n - k) / static_cast<double>(k + 1) * p / (1.0 - p);
    }
    EXPECT_LE(above, 0.05);
    EXPECT_LE(below, 0.05);
  }
}

// The attack
// ----------------------------------------------------------------------------------------------------------

TEST(Attack, ProbabilitiesAreThoseOfTheSimulatedMechanism) {
  for (const auto& row : rows())
    for (const double ran : {1.0, 0.8}) {
      SCOPED_TRACE(row.theorem);
      const auto claim = claim_of(row, 1.0);
      const Attack attack(claim.shape, 1.0);
      const auto seen = Simulated{claim.shape, ran, 11}.seen(40'000);
      for (const double threshold : {-0.4, 0.0, 0.5}) {
        const auto event = attack.event(threshold);
        for (const bool second : {false, true}) {
          std::uint64_t hits = 0;
          for (const auto& use : second ? seen.second : seen.first)
            hits += attack.score(use.along, use.across) > threshold ? 1 : 0;
          const auto bracket = share_bracket(hits, 40'000, 1e-6);
          const double p = attack.probability(event, second, ran);
          EXPECT_GE(p, bracket.lower) << threshold << second;
          EXPECT_LE(p, bracket.upper) << threshold << second;
        }
      }
    }
}

TEST(Attack, ScoreIsTheRatioOfDensities) {
  // Drawn with 1/4: N(±1) along, N(2) across.
  const Attack attack({{{-1.0, 1.0}}, {{1.0, 1.0}}, 0.25, {{2.0, 1.0}}}, 0.7);
  const auto normal = [](double x) { return std::exp(-0.5 * x * x / 0.49); };
  for (const double a : {-1.3, 0.2, 2.0})
    for (const double y : {-0.5, 1.0, 3.0}) {
      const auto density = [&](double mean) {
        return 0.75 * normal(a) * normal(y) + 0.25 * normal(a - mean) * normal(y - 2.0);
      };
      EXPECT_NEAR(attack.score(a, y), std::log(density(1.0) / density(-1.0)), 1e-12);
    }
}

TEST(Attack, RefusesWhatIsNoLaw) {
  EXPECT_THROW(Attack({{{0.0, 0.9}}, {{2.0, 1.0}}}, 1.0), std::exception);
  EXPECT_THROW(Attack({{{0.0, 1.0}}, {{2.0, 1.0}}}, 0.0), std::exception);
  EXPECT_THROW(Attack({{{0.0, 1.0}}, {{2.0, 1.0}}, 0.0}, 1.0), std::exception);
}

// Verdicts
// ------------------------------------------------------------------------------------------------------------

constexpr std::size_t few = 20'000;  // uses on each data set

TEST(Judge, FindsNothingInAHealthyMechanism) {
  for (const auto& row : rows()) {
    SCOPED_TRACE(row.theorem);
    const auto claim = claim_of(row, 1.0);
    const auto verdict = judge(claim, Simulated{claim.shape, 1.0, 21}.seen(few), surely);
    EXPECT_FALSE(verdict.contradicted()) << all(verdict);
    EXPECT_TRUE(verdict.remarks.empty());
    EXPECT_LT(verdict.noise_multiplier.lower, 1.0);
    EXPECT_GT(verdict.noise_multiplier.upper, 1.0);
    EXPECT_LT(verdict.noise_multiplier.upper, 1.1);
    EXPECT_GT(verdict.noise_multiplier.lower, 0.9);
    EXPECT_LE(verdict.epsilon.lower, verdict.epsilon.upper);
    EXPECT_GT(verdict.epsilon.lower, 0.8 * verdict.epsilon.upper);
    EXPECT_LE(verdict.direct_epsilon, verdict.direct_upper);
  }
}

// A run whose steps compose adaptively is certified for less than the symmetrised profile composes to, and no healthy
// one contradicts that.
TEST(Judge, TheLowerEndHoldsForEveryComposition) {
  const auto row = rows()[1];
  auto claim = claim_of(row, 4.0);
  claim.uses = 2000;
  const auto theorem = privacy::apply_theorem(SubsamplingScheme(row.parameters), row.unit, 4.0);
  claim.epsilon = privacy::composed_adaptively(theorem, 50).curve()->epsilon(claim.delta, claim.uses);
  const auto verdict = judge(claim, Simulated{claim.shape, 4.0, 23}.seen(few), surely);
  EXPECT_FALSE(verdict.contradicted()) << all(verdict);
  EXPECT_LE(verdict.epsilon.lower, verdict.epsilon.upper);
  EXPECT_GT(verdict.epsilon.lower, 0.8 * verdict.epsilon.upper);
  // The symmetrised composition at the largest noise that was not refuted is above what is certified.
  EXPECT_GT(privacy::Accountant(claim.pair_at(verdict.noise_multiplier.upper)).epsilon(claim.delta, claim.uses).lower,
            verdict.epsilon.upper);
}

// A tenth less noise than certified: σ/0.9 is certified, σ ran. (12,000 uses find it, too.)
TEST(Judge, FindsATenthLessNoise) {
  for (const auto& row : rows()) {
    SCOPED_TRACE(row.theorem);
    const auto claim = claim_of(row, 1.0 / 0.9);
    const auto verdict = judge(claim, Simulated{claim.shape, 1.0, 31}.seen(few), surely);
    EXPECT_TRUE(says(verdict, "noise multiplier: certified")) << all(verdict);
    EXPECT_GT(verdict.epsilon.lower, verdict.epsilon.upper);
  }
}

TEST(Judge, RemarksOnATenthMoreNoise) {
  const auto claim = claim_of(rows()[1], 0.9);
  const auto verdict = judge(claim, Simulated{claim.shape, 1.0, 32}.seen(few), surely);
  EXPECT_FALSE(verdict.contradicted()) << all(verdict);
  ASSERT_EQ(verdict.remarks.size(), 1U);
}

// A series drawn a tenth too often: 11 series are certified, 10 ran (ρ = 5/11 and 5/10); a window of 9 and of 8.
// (12,000 uses miss it in 4.4 under one key of three.)
TEST(Judge, FindsASamplingRateATenthTooLarge) {
  for (auto row : rows()) {
    if (row.unit.v) continue;  // the simulation does not count touched windows then; the trainer's audit does
    SCOPED_TRACE(row.theorem);
    const auto ran = claim_of(row, 1.0);
    if (row.parameters.top_level == TopLevel::deterministic) {
      row.parameters.lengths = privacy::SeriesLengths::equal(10, 9);
    } else {
      row.parameters.lengths = privacy::SeriesLengths::equal(11, 8);
    }
    const auto verdict = judge(claim_of(row, 1.0), Simulated{ran.shape, 1.0, 41}.seen(few), surely);
    EXPECT_TRUE(says(verdict, "the changed windows were drawn in a share")) << all(verdict);
  }
}

// Without any assumption on the mechanism: the certificate itself is contradicted where the theorem is tight. (Half as
// many uses find it, too.)
TEST(Judge, ContradictsATightCertificateByItself) {
  constexpr std::size_t many = 400'000;
  for (const auto& row : rows()) {
    if (row.theorem != "4.2" && row.theorem != "4.4" && row.theorem != "E.8") continue;
    SCOPED_TRACE(row.theorem);
    const auto truth = claim_of(row, 1.0);
    const auto seen = Simulated{truth.shape, 1.0, 51}.seen(many);
    EXPECT_FALSE(judge(truth, seen, surely).contradicted());
    auto less_noise = claim_of(row, 1.0 / 0.9);
    less_noise.shape_is_exact = false;
    less_noise.touched_share.reset();
    EXPECT_TRUE(says(judge(less_noise, seen, surely), "a use; measured"));
    auto wider = row;
    if (row.parameters.top_level == TopLevel::deterministic) {
      wider.parameters.lengths = privacy::SeriesLengths::equal(10, 9);
    } else {
      wider.parameters.lengths = privacy::SeriesLengths::equal(11, 8);
    }
    auto rate = claim_of(wider, 1.0);
    rate.shape_is_exact = false;
    rate.touched_share.reset();
    EXPECT_TRUE(says(judge(rate, seen, surely), "a use; measured"));
  }
}

TEST(Judge, FindsNoiseThatIsNotFresh) {
  auto claim = claim_of(rows()[1], 1.0);
  claim.uses = 1;  // what so little noise costs many times is not asked here, and takes minutes
  // The same noise in every step: only the sampling differs.
  auto same = Simulated{claim.shape, 1.0, 61};
  same.correlation = 1.0;
  const auto verdict = judge(claim, same.seen(few), surely);
  EXPECT_TRUE(says(verdict, "agrees in sign")) << all(verdict);
  EXPECT_TRUE(says(verdict, "equal the one before them")) << all(verdict);
  // Noise that carries a tenth of the one before: signs agree in 1/2 + arcsin(0.1)/π = 0.532.
  auto carried = Simulated{claim.shape, 1.0, 62};
  carried.correlation = 0.1;
  EXPECT_TRUE(says(judge(claim, carried.seen(40'000), surely), "agrees in sign"));
  // The same sample in every step.
  auto stuck = Simulated{claim.shape, 1.0, 63};
  stuck.same_sampling = true;
  EXPECT_TRUE(says(judge(claim, stuck.seen(few), surely), "consecutive uses agree in drawing"));
}

// Whatever gradients add to a coordinate, it cannot keep closer to 0 than its noise: more spread is no contradiction.
TEST(Judge, FindsTooLittleNoiseAlongABlankDirectionWhateverGradientsAdd) {
  auto claim = claim_of(rows()[1], 1.0);
  auto seen = Simulated{claim.shape, 1.0, 65}.seen(few);
  RandomStream signal(SecretKey::from_seed(66), "signal", 0);
  for (auto* uses : {&seen.first, &seen.second})
    for (auto& use : *uses) use.blank += static_cast<float>(0.3 * signal.uniform());
  claim.shape_is_exact = false;  // such a coordinate is not symmetric
  claim.touched_share.reset();
  EXPECT_FALSE(judge(claim, seen, surely).contradicted());
  for (auto* uses : {&seen.first, &seen.second})
    for (auto& use : *uses) use.blank *= 0.9F;
  const auto verdict = judge(claim, seen, surely);
  EXPECT_TRUE(says(verdict, "along a blank direction")) << all(verdict);
  EXPECT_LT(verdict.noise_multiplier.upper, 1.0);
  EXPECT_GT(verdict.noise_multiplier.upper, 0.9);
}

TEST(Judge, FindsASeriesOutsideOfItsBatch) {
  const auto claim = claim_of(rows()[0], 1.0);
  auto seen = Simulated{claim.shape, 1.0, 64}.seen(few);
  seen.strays = 1;
  EXPECT_TRUE(says(judge(claim, seen, surely), "not its own"));
}

// Where the law is not known the profile alone speaks, and a factor of 2 in the noise is found. (20,000 uses miss it in
// G.1, whose bound the canary does not attain, under seven keys of 25.)
TEST(Judge, FindsAFactorOfTwoByTheProfileAlone) {
  constexpr std::size_t more = 60'000;
  for (const auto& row : rows()) {
    SCOPED_TRACE(row.theorem);
    auto claim = claim_of(row, 1.0);
    claim.shape_is_exact = false;
    claim.touched_share.reset();
    const auto ran = claim.shape;
    const auto healthy = judge(claim, Simulated{ran, 1.0, 71}.seen(more), surely);
    EXPECT_FALSE(healthy.contradicted()) << all(healthy);
    EXPECT_GT(healthy.noise_multiplier.upper, 1.0);
    auto twice = claim_of(row, 2.0);
    twice.shape_is_exact = false;
    twice.touched_share.reset();
    const auto verdict = judge(twice, Simulated{ran, 1.0, 71}.seen(more), surely);
    EXPECT_TRUE(says(verdict, "a use; measured")) << all(verdict);
    EXPECT_GT(verdict.epsilon.lower, verdict.epsilon.upper);
    EXPECT_LT(verdict.noise_multiplier.upper, 2.0);
  }
}

// A release that has the law of no noise multiplier: half of the uses have half the noise, half of them twice as much.
TEST(Judge, SaysWhereNoNoiseMultiplierFits) {
  auto claim = claim_of(rows()[1], 1.0);
  auto quiet = Simulated{claim.shape, 0.5, 81}.seen(few);
  const auto loud = Simulated{claim.shape, 2.0, 82}.seen(few);
  quiet.first.insert(quiet.first.end(), loud.first.begin(), loud.first.end());
  quiet.second.insert(quiet.second.end(), loud.second.begin(), loud.second.end());
  EXPECT_TRUE(says(judge(claim, quiet, surely), "at any noise multiplier"));
}

// Coverage: of 300 audits at confidence 0.8 of a healthy mechanism at most a fifth may find something; 92 or more of
// them with probability below 1e-5 (binomial), and Clopper–Pearson with Bonferroni keeps far below.
TEST(Judge, IsWrongNoMoreOftenThanItSays) {
  const auto claim = claim_of(rows()[1], 1.0);
  int wrong = 0;
  int missed = 0;
  // Of 80 with probability 0.2 each, 36 come up with probability below 1e-6.
  for (std::uint64_t i = 0; i < 80; ++i) {
    const auto verdict = judge(claim, Simulated{claim.shape, 1.0, 1000 + i}.seen(500), 0.8);
    wrong += verdict.contradicted() ? 1 : 0;
    missed += verdict.noise_multiplier.upper < 1.0 || verdict.noise_multiplier.lower > 1.0 ? 1 : 0;
  }
  EXPECT_LT(wrong, 36);
  EXPECT_LT(missed, 36);
  EXPECT_GT(wrong, 0);  // but the brackets are no wider than they need be by much
}

TEST(Judge, NeedsUses) { EXPECT_THROW(judge(claim_of(rows()[0], 1.0), {}, surely), std::exception); }

}  // namespace
}  // namespace tsdp::audit
