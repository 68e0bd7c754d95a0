// What must hold of every pair of the theorems and of its composition, over random parameters with fixed seeds, and the
// accountant against the second one in second_accountant.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <vector>

#include "privacy/accountant/second_accountant.h"
#include "privacy/theorems/structured_pairs.h"
#include "support/draw.h"
#include "tsdp/privacy/accountant/accountant.h"
#include "tsdp/privacy/accountant/dominating_pair.h"

namespace tsdp::privacy {
namespace {

enum class Kind {
  one_window,
  wr_optimistic,
  wr_upper,
  poisson_upper,
  poisson_printed,
  poisson_mirrored,
  flat
};
constexpr Kind kinds[] = {Kind::one_window,      Kind::wr_optimistic,    Kind::wr_upper,
                          Kind::wr_upper,        Kind::poisson_upper,    Kind::poisson_upper,
                          Kind::poisson_printed, Kind::poisson_mirrored, Kind::flat};
constexpr std::int64_t flat_records = 400;

/// A pair in terms of its probabilities, as the product makes it and as its definition reads.
struct Case {
  Kind kind = Kind::one_window;
  double share = 0.1;  ///< r, or the Poisson rate; for flat the batch's share of the records
  double rho = 1.0;
  int count = 1;  ///< λ, or m; for flat W
  double sigma = 1.0;

  [[nodiscard]] std::int64_t drawn() const {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(flat_records)));
  }
  [[nodiscard]] DominatingPair pair() const {
    switch (kind) {
      case Kind::one_window: return one_window_pair(rho * share, sigma);
      case Kind::wr_optimistic: return with_replacement_optimistic(count, share, rho, sigma);
      case Kind::wr_upper: return with_replacement_upper(count, share, rho, sigma);
      case Kind::poisson_upper: return privacy::poisson_upper(count, share, rho, sigma);
      case Kind::poisson_printed: return poisson_optimistic_printed(count, share, rho, sigma);
      case Kind::poisson_mirrored: return poisson_optimistic_mirrored(count, share, rho, sigma);
      case Kind::flat: break;
    }
    return flat_optimistic(flat_records, count, drawn(), sigma);
  }
  [[nodiscard]] second::Mixture mixture() const {
    using second::binomial;
    using second::diluted;
    using second::Mixture;
    const second::Real r = share;
    const second::Real use = rho;
    switch (kind) {
      case Kind::one_window: return Mixture(diluted({{2, 1}}, use * r), sigma, false);
      case Kind::wr_optimistic: return Mixture(diluted(binomial(count, r, 2), use), sigma, false);
      case Kind::wr_upper: return Mixture(binomial(count, r, 2), sigma, true, use);
      case Kind::poisson_upper: return Mixture(binomial(count, r, 1), sigma, true, use);
      case Kind::poisson_printed: return Mixture(diluted(binomial(count, r, 1), use), sigma, false);
      case Kind::poisson_mirrored: return Mixture(diluted(binomial(count, r, 1), use), sigma, true);
      case Kind::flat: break;
    }
    // Hypergeom(i; R, W, B): the W marked records one by one, i of them among the B drawn.
    std::vector<second::Atom> atoms;
    for (int i = 0; i <= count && i <= drawn(); ++i) {
      second::Real weight = 1;
      for (int j = 0; j < count; ++j) {  // choose(W, i) · (B)_i (R − B)_{W−i} / (R)_W
        const auto left = static_cast<second::Real>(j < i ? drawn() - j : flat_records - drawn() - (j - i));
        weight *= left / static_cast<second::Real>(flat_records - j);
        if (j < i) weight *= static_cast<second::Real>(count - j) / static_cast<second::Real>(j + 1);
      }
      atoms.push_back({2 * static_cast<second::Real>(i), weight});
    }
    return Mixture(atoms, sigma, false);
  }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  static const char* const names[] = {"one window", "4.3/F.7", "E.1/F.1", "E.8/F.2", "F.8a", "F.8b", "C.2"};
  return out << names[static_cast<int>(c.kind)] << " share " << c.share << " rho " << c.rho << " count " << c.count
             << " sigma " << c.sigma;
}

Case random_case(test::Draw& draw, int i, double least_sigma = 0.4) {
  Case c;
  c.kind = kinds[static_cast<std::size_t>(i) % std::size(kinds)];
  c.share = draw.log_between(0.003, 1.0);
  c.rho = draw.one_of(4) == 0 ? 1.0 : draw.log_between(0.02, 1.0);
  c.count = 1 + draw.one_of(4);
  c.sigma = draw.log_between(least_sigma, 10.0);
  return c;
}

std::uint64_t random_uses(test::Draw& draw, double most) {
  return static_cast<std::uint64_t>(draw.log_between(1.0, most));
}

/// Both signs of ε, around 0 and far out.
constexpr double places[] = {-6.0, -2.0, -0.5, -0.04, -1e-3, 0.0, 1e-3, 0.04, 0.3, 1.0, 2.5, 7.0};

/// profile(a) ≤ profile(b) everywhere, up to rounding.
void expect_below(const DominatingPair& a, const DominatingPair& b, const char* what) {
  for (const double epsilon : places) {
    const double high = b.symmetrised_profile(epsilon);
    EXPECT_LE(a.symmetrised_profile(epsilon), high * (1 + 1e-9) + 2e-15) << what << " at " << epsilon;
  }
}

// The second accountant
// --------------------------------------------------------------------------------------------------

/// δ of the Gaussian mechanism of sensitivity μ: Φ̄(ε/μ − μ/2) − e^ε Φ̄(ε/μ + μ/2).
second::Real gaussian_delta(second::Real epsilon, second::Real mu) {
  return second::upper_normal(epsilon / mu - mu / 2) - std::exp(epsilon) * second::upper_normal(epsilon / mu + mu / 2);
}

TEST(SecondAccountant, BracketsTheGaussianMechanismClosely) {
  // N(2) against N(0): k uses are one of μ = 2√k/σ. N(3) against N(−3): μ = 6√k/σ.
  for (const bool mirror : {false, true}) {
    for (const double sigma : {1.0, 3.0, 10.0}) {
      if (mirror && sigma < 3.0) continue;
      second::Accountant accountant(
          second::Mixture({{static_cast<second::Real>(mirror ? 3 : 2), 1}}, static_cast<second::Real>(sigma), mirror));
      for (const std::uint64_t uses : {1U, 5U, 64U}) {
        accountant.compose(uses);
        for (const double target : {1e-2, 1e-5, 1e-8}) {
          const double epsilon = accountant.epsilon_of_upper(target);
          const auto bracket = accountant.delta(epsilon);
          const auto exact = static_cast<double>(
              gaussian_delta(epsilon, (mirror ? 6 : 2) * std::sqrt(static_cast<second::Real>(uses)) / sigma));
          EXPECT_LE(bracket.lower, exact) << mirror << " " << sigma << " " << uses;
          EXPECT_GE(bracket.upper, exact) << mirror << " " << sigma << " " << uses;
          EXPECT_LE(bracket.upper, 1.1 * bracket.lower) << mirror << " " << sigma << " " << uses << " " << target;
        }
      }
    }
  }
}

TEST(SecondAccountant, BracketsTheProfileAtOneUse) {
  test::Draw draw(11);
  for (int i = 0; i < 18; ++i) {
    const auto c = random_case(draw, i, 0.7);
    second::Accountant accountant(c.mixture());
    accountant.compose(1);
    for (const double epsilon : {0.02, 0.4, 1.5}) {
      const auto exact = static_cast<double>(c.mixture().profile(epsilon));
      const auto bracket = accountant.delta(epsilon);
      EXPECT_LE(bracket.lower, exact * (1 + 1e-12)) << c << " epsilon " << epsilon;
      EXPECT_GE(bracket.upper, exact * (1 - 1e-12)) << c << " epsilon " << epsilon;
    }
  }
}

TEST(Profiles, AreThoseOfTheirDefinitions) {
  test::Draw draw(12);
  for (int i = 0; i < 200; ++i) {
    const auto c = random_case(draw, i);
    const auto pair = c.pair();
    const auto mixture = c.mixture();
    for (const double epsilon : places) {
      const auto exact = static_cast<double>(mixture.profile(epsilon));
      EXPECT_NEAR(pair.symmetrised_profile(epsilon), exact, 2e-9 * std::abs(exact) + 2e-15) << c << " at " << epsilon;
    }
  }
}

/// How often the brackets of `accountant` and `other` miss each other, and how wide the other's are at most.
struct Comparison {
  int missed = 0;
  double widest = 0.0;
};

Comparison compare(Accountant& accountant, second::Accountant& other, std::uint64_t uses, double target) {
  Comparison out;
  other.compose(uses);
  const double epsilon = other.epsilon_of_upper(target);
  const auto second = other.delta(epsilon);
  const auto first = accountant.delta(epsilon, uses);
  out.missed += first.lower > second.upper || first.upper < second.lower ? 1 : 0;
  out.widest = second.upper / second.lower - 1.0;
  // truth(ε.upper) ≤ target ≤ truth(ε.lower) if ε.lower > 0.
  const auto answer = accountant.epsilon(target, uses);
  out.missed += other.delta(answer.upper).lower > target ? 1 : 0;
  out.missed += answer.lower > 0.0 && other.delta(answer.lower).upper < target ? 1 : 0;
  return out;
}

TEST(Accountants, AgreeWithTheSecondOnEveryKindOfPair) {
  test::Draw draw(13);
  std::vector<double> widths;
  for (int i = 0; i < 27; ++i) {
    const auto c = random_case(draw, i);
    Accountant accountant(c.pair());
    second::Accountant other(c.mixture());
    for (const std::uint64_t uses :
         i % 2 == 0 ? std::vector<std::uint64_t>{1, 5, 64} : std::vector<std::uint64_t>{2, 17, 64}) {
      const double target = draw.log_between(1e-8, 0.3) * static_cast<double>(c.mixture().profile(0));
      const auto result = compare(accountant, other, uses, target);
      EXPECT_EQ(result.missed, 0) << c << " uses " << uses << " delta " << target;
      widths.push_back(result.widest);
    }
  }
  // The comparison means something: half of the second brackets are narrower than 1 % of delta, nine in ten than 10 %.
  std::sort(widths.begin(), widths.end());
  EXPECT_LT(widths[widths.size() / 2], 0.01);
  EXPECT_LT(widths[widths.size() * 9 / 10], 0.1);
}

TEST(Accountants, WouldDisagreeWithTheSecondIfTheyWereWrong) {
  // Planted errors in the accountant's pair: 3 % of the rate, of the damping or of the noise; one window fewer; one
  // use.
  const Case right[] = {{Kind::one_window, 0.1, 0.5, 1, 1.5}, {Kind::poisson_upper, 0.1, 0.5, 3, 1.5}};
  for (const auto& c : right) {
    auto wrong = std::vector<Case>(3, c);
    wrong[0].share *= 0.97;
    wrong[1].rho *= 0.97;
    wrong[2].sigma *= 1.03;
    if (c.count > 1) {
      wrong.push_back(c);
      wrong.back().count -= 1;
    }
    for (const auto& w : wrong) {
      Accountant accountant(w.pair());
      second::Accountant other(c.mixture());
      EXPECT_GT(compare(accountant, other, 17, 1e-5).missed, 0) << w;
    }
    Accountant accountant(c.pair());
    second::Accountant other(c.mixture());
    other.compose(17);
    const double epsilon = other.epsilon_of_upper(1e-5);
    EXPECT_GT(other.delta(epsilon).lower, accountant.delta(epsilon, 16).upper) << c;
  }
}

// Properties of the accountant
// --------------------------------------------------------------------------------------------

TEST(Accountants, BracketDeltaBetweenZeroAndOneForEveryPair) {
  test::Draw draw(21);
  for (int i = 0; i < 81; ++i) {
    const auto c = random_case(draw, i);
    const auto uses = random_uses(draw, 3000.0);
    const double epsilon = draw.one_of(8) == 0 ? 0.0 : draw.log_between(1e-3, 30.0);
    SCOPED_TRACE(testing::Message() << c << " uses " << uses << " epsilon " << epsilon);
    Accountant accountant(c.pair());
    const auto here = accountant.delta(epsilon, uses, 1e-2);
    ASSERT_TRUE(std::isfinite(here.lower) && std::isfinite(here.upper));
    EXPECT_LE(0.0, here.lower);
    EXPECT_LE(here.lower, here.upper);
    EXPECT_LE(here.upper, 1.0);
    // The truth falls in ε and grows in the number of uses: brackets never contradict that.
    EXPECT_LE(accountant.delta(epsilon * 1.05 + 1e-3, uses, 1e-2).lower, here.upper);
    EXPECT_LE(here.lower, accountant.delta(epsilon, uses + uses / 20 + 1, 1e-2).upper);
  }
}

TEST(Accountants, OneUseIsTheProfileForEveryPair) {
  test::Draw draw(22);
  for (int i = 0; i < 63; ++i) {
    const auto c = random_case(draw, i);
    Accountant accountant(c.pair());
    const double epsilon = draw.one_of(6) == 0 ? 0.0 : draw.log_between(1e-2, 8.0);
    const auto exact = static_cast<double>(c.mixture().profile(epsilon));
    const auto bracket = accountant.delta(epsilon, 1);
    EXPECT_LE(bracket.lower, exact * (1 + 1e-9)) << c << " epsilon " << epsilon;
    EXPECT_GE(bracket.upper, exact * (1 - 1e-9)) << c << " epsilon " << epsilon;
    if (exact > 1e-12) {
      EXPECT_LE(bracket.upper - bracket.lower, 0.01 * bracket.upper) << c << " epsilon " << epsilon;
    }
  }
}

TEST(Accountants, KeepTheOrderOfEveryPairsParameters) {
  test::Draw draw(23);
  constexpr double precision = 1e-2;
  for (int i = 0; i < 63; ++i) {
    const auto c = random_case(draw, i);
    const auto uses = random_uses(draw, 2000.0);
    const double delta = draw.log_between(1e-12, 1e-3);
    SCOPED_TRACE(testing::Message() << c << " uses " << uses << " delta " << delta);
    Accountant accountant(c.pair());
    const auto base = accountant.epsilon(delta, uses, precision);
    ASSERT_TRUE(std::isfinite(base.lower) && std::isfinite(base.upper));
    EXPECT_LE(0.0, base.lower);
    EXPECT_LE(base.lower, base.upper);
    const auto with = [&](double share, double rho, int count, double sigma) {
      const Case changed{c.kind, std::min(1.0, c.share * share), std::min(1.0, c.rho * rho), c.count + count,
                         c.sigma * sigma};
      return Accountant(changed.pair()).epsilon(delta, uses, precision);
    };
    EXPECT_LE(base.lower, accountant.epsilon(delta, uses + uses / 20 + 1, precision).upper) << "uses";
    EXPECT_LE(base.lower, accountant.epsilon(delta / 1.2, uses, precision).upper) << "delta";
    EXPECT_LE(base.lower, with(1.05, 1.0, 0, 1.0).upper) << "q, r or rate";
    EXPECT_LE(base.lower, with(1.0, 1.05, 0, 1.0).upper) << "rho";
    EXPECT_LE(base.lower, with(1.0, 1.0, 1, 1.0).upper) << "lambda or m";
    EXPECT_LE(with(1.0, 1.0, 0, 1.05).lower, base.upper) << "sigma";
  }
}

TEST(Accountants, InvertTheirOwnAnswersForEveryPair) {
  test::Draw draw(24);
  for (int i = 0; i < 36; ++i) {
    const auto c = random_case(draw, i);
    const auto uses = random_uses(draw, 3000.0);
    const double delta = draw.log_between(1e-12, 1e-2);
    SCOPED_TRACE(testing::Message() << c << " uses " << uses << " delta " << delta);
    Accountant accountant(c.pair());
    const auto epsilon = accountant.epsilon(delta, uses);
    EXPECT_LE(accountant.delta(epsilon.upper, uses).lower, delta * (1 + 1e-12));
    // The bracket of delta aims at 1e-3 of it.
    EXPECT_LE(accountant.delta(epsilon.upper * (1 + 1e-9), uses).upper, delta * 1.01);
    if (epsilon.lower > 0.0) { EXPECT_GE(accountant.delta(epsilon.lower, uses).upper, delta * (1 - 1e-12)); }
  }
}

TEST(Accountants, CertifyTheMostUsesOfEveryPair) {
  test::Draw draw(25);
  constexpr std::uint64_t limit = 1'000'000;
  int searched = 0;
  for (int i = 0; i < 36; ++i) {
    const auto c = random_case(draw, i, 0.8);
    const double epsilon = draw.log_between(0.3, 10.0);
    const double delta = draw.log_between(1e-10, 1e-3);
    SCOPED_TRACE(testing::Message() << c << " epsilon " << epsilon << " delta " << delta);
    Accountant accountant(c.pair());
    const auto most = accountant.max_uses(epsilon, delta, limit);
    if (most > 0) {
      EXPECT_LE(accountant.delta(epsilon, most, 1e-4).upper, delta * (1 + 1e-12));
      EXPECT_LE(accountant.epsilon(delta, most, 1e-4).lower, epsilon * (1 + 1e-12));
    }
    if (most == limit) continue;
    ++searched;
    // One more is at most the width of the brackets, 1e-4 of epsilon, below what is allowed. δ is at least about linear
    // in the uses, so half a percent more is not certified, and one percent more is refuted.
    EXPECT_GE(accountant.epsilon(delta, most + 1, 1e-4).upper, epsilon * (1 - 3e-4));
    EXPECT_GT(accountant.delta(epsilon, most + most / 200 + 1, 1e-4).upper, delta);
    if (most >= 200) { EXPECT_GT(accountant.delta(epsilon, most + most / 100 + 1, 1e-4).lower, delta); }
  }
  EXPECT_GT(searched, 20);
}

TEST(Accountants, ComposeGaussiansOfEveryPairToAGaussian) {
  // All of these are one mean against another: 4.4 at ρ r = 1 (2 apart), E.1 at r = 1 (4 λ), E.8 at rate 1 (2 m), F.8
  // printed at ρ = 1 (m), C.2 with the batch of all records (2 W). k uses: μ = distance √k/σ.
  const struct {
    Case c;
    double distance;
  } cases[] = {{{Kind::one_window, 1.0, 1.0, 1, 3.0}, 2.0},       {{Kind::wr_upper, 1.0, 1.0, 2, 20.0}, 8.0},
               {{Kind::poisson_upper, 1.0, 1.0, 3, 10.0}, 6.0},   {{Kind::poisson_printed, 1.0, 1.0, 3, 4.0}, 3.0},
               {{Kind::poisson_mirrored, 1.0, 1.0, 1, 2.0}, 2.0}, {{Kind::flat, 1.0, 1.0, 3, 20.0}, 6.0}};
  for (const auto& [c, distance] : cases) {
    Accountant accountant(c.pair());
    for (const std::uint64_t uses : {1U, 3U, 100U, 20000U}) {
      const double mu = distance * std::sqrt(static_cast<double>(uses)) / c.sigma;
      for (const double z : {0.0, 2.0, 5.0}) {  // ε = mean of the loss + z deviations
        const double epsilon = mu * mu / 2 + z * mu;
        const auto exact = static_cast<double>(gaussian_delta(epsilon, mu));
        const auto bracket = accountant.delta(epsilon, uses);
        EXPECT_LE(bracket.lower, exact * (1 + 1e-9)) << c << " uses " << uses << " z " << z;
        EXPECT_GE(bracket.upper, exact * (1 - 1e-9)) << c << " uses " << uses << " z " << z;
        EXPECT_LE(bracket.upper - bracket.lower, 5e-3 * bracket.upper) << c << " uses " << uses << " z " << z;
      }
    }
  }
}

TEST(Accountants, ChargeADampedPairAsAPublicCoinDoes) {
  // Damping is a public coin before every use: k uses are Bin(k, ρ) uses of the undamped pair, known to the attacker,
  // so δ of the product is exactly the mean of δ over that number.
  test::Draw draw(26);
  for (int i = 0; i < 12; ++i) {
    Case c{i % 2 == 0 ? Kind::wr_upper : Kind::poisson_upper, draw.log_between(0.02, 0.5), 1.0, 1 + draw.one_of(3),
           draw.log_between(1.0, 6.0)};
    Accountant always(c.pair());
    c.rho = draw.between(0.1, 0.9);
    Accountant sometimes(c.pair());
    constexpr int uses = 6;
    const double epsilon = draw.log_between(0.05, 2.0);
    double low = 0.0;
    double high = 0.0;
    double weight = std::pow(1.0 - c.rho, uses);
    for (int used = 0; used <= uses; ++used) {
      const auto part = always.delta(epsilon, static_cast<std::uint64_t>(used), 1e-4);
      low += weight * part.lower;
      high += weight * part.upper;
      weight *= c.rho / (1.0 - c.rho) * (uses - used) / (used + 1);
    }
    const auto bracket = sometimes.delta(epsilon, uses, 1e-4);
    EXPECT_LE(bracket.lower, high * (1 + 1e-9)) << c << " epsilon " << epsilon;
    EXPECT_GE(bracket.upper, low * (1 - 1e-9)) << c << " epsilon " << epsilon;
    EXPECT_NEAR(sometimes.delta(epsilon, 1, 1e-4).upper, c.rho * always.delta(epsilon, 1, 1e-4).upper,
                1e-3 * c.rho * always.delta(epsilon, 1, 1e-4).upper)
        << c << " epsilon " << epsilon;
  }
}

/// Names every answer whose bracket is wider than `precision`, which is asked for unless it is what comes unasked.
/// Returns how many answers were above 0: those whose width can be too large.
int expect_narrow(const Case& c, double precision, bool unasked, const std::vector<double>& deltas,
                  const std::vector<std::uint64_t>& uses) {
  Accountant accountant(c.pair());
  int above_zero = 0;
  for (const auto k : uses) {
    for (const double delta : deltas) {
      const auto bracket = unasked ? accountant.epsilon(delta, k) : accountant.epsilon(delta, k, precision);
      above_zero += bracket.lower > 0.0 ? 1 : 0;
      EXPECT_LE(bracket.lower, bracket.upper) << c << " uses " << k << " delta " << delta;
      EXPECT_LE(bracket.upper - bracket.lower, precision * bracket.upper)
          << c << " uses " << k << " delta " << delta << ": [" << bracket.lower << ", " << bracket.upper
          << "], relative width " << (bracket.upper - bracket.lower) / bracket.upper;
    }
  }
  return above_zero;
}

TEST(Accountants, AnswerWithinAThousandthUnlessToldOtherwise) {
  const Case cases[] = {{Kind::one_window, 120.0 / 13893.0, 256.0 / 862.0, 1, 4.0},  // traffic
                        {Kind::one_window, 0.2, 0.5, 1, 1.0},
                        {Kind::one_window, 1.0, 1.0, 1, 20.0},
                        {Kind::wr_optimistic, 0.05, 0.1, 4, 2.0},
                        {Kind::wr_upper, 0.02, 1.0, 2, 5.0},
                        {Kind::wr_upper, 0.1, 0.1, 4, 8.0},
                        {Kind::poisson_upper, 0.01, 1.0, 8, 2.0},
                        {Kind::poisson_upper, 0.05, 0.05, 8, 4.0},
                        {Kind::poisson_mirrored, 0.1, 0.2, 3, 1.5},
                        {Kind::flat, 0.05, 1.0, 16, 6.0}};
  for (const auto& c : cases)
    EXPECT_GE(expect_narrow(c, 1e-3, true, {1e-3, 1e-5, 1e-7, 1e-10, 1e-15}, {1, 10, 1000, 100'000, 1'000'000}), 20)
        << c;
}

TEST(Accountants, AnswerWithinAHundredThousandthOnRequest) {
  const Case cases[] = {{Kind::one_window, 120.0 / 13893.0, 256.0 / 862.0, 1, 4.0},
                        {Kind::poisson_upper, 0.05, 1.0, 3, 4.0},
                        {Kind::wr_upper, 0.1, 0.2, 2, 8.0}};
  for (const auto& c : cases) EXPECT_EQ(expect_narrow(c, 1e-5, false, {1e-5, 1e-10}, {1, 1000, 10'000}), 6) << c;
}

// Properties of the pairs ---------------------------------------------------------------------------------------------

TEST(Profiles, ObeyTheIdentityOfSwappedMeasuresForEveryPair) {
  test::Draw draw(31);
  for (int i = 0; i < 200; ++i) {
    const auto c = random_case(draw, i);
    const auto pair = c.pair();
    for (const double epsilon : {1e-4, 0.03, 0.5, 2.0, 5.0}) {
      // The product takes H(−ε) from H(ε) by (3.1). Here by its definition, α = e^{−ε} < 1: Q(S) − α P(S) over the set
      // S where Q's density is above α times P's, which is where P's loss is below ε; unused (public coin), 1 − α.
      const auto mixture = c.mixture();
      const second::Real alpha = std::exp(-static_cast<second::Real>(epsilon));
      const second::Real x = mixture.at_loss(epsilon);
      const second::Real used = (1 - mixture.q_beyond(x)) - alpha * (1 - mixture.p_beyond(x));
      const auto exact = static_cast<double>(mixture.use() * used + (1 - mixture.use()) * (1 - alpha));
      EXPECT_NEAR(pair.symmetrised_profile(-epsilon), exact, 4e-15) << c << " epsilon " << epsilon;
    }
    // H(0−) = H(0+), slope at most 1.
    const double middle = pair.symmetrised_profile(0.0);
    EXPECT_NEAR(pair.symmetrised_profile(1e-11), middle, 2e-11) << c;
    EXPECT_NEAR(pair.symmetrised_profile(-1e-11), middle, 2e-11) << c;
  }
}

TEST(Profiles, AreConvexAndFallInAlphaForEveryPair) {
  test::Draw draw(32);
  for (int i = 0; i < 100; ++i) {
    const auto c = random_case(draw, i);
    const auto pair = c.pair();
    double before = 1.0;
    double slope_before = -1.0;  // convex from H(0) = 1 with slope ≥ −1
    double alpha_before = 0.0;
    for (double alpha = 0.05; alpha < 6.0; alpha *= 1.07) {
      const double here = pair.symmetrised_profile(std::log(alpha));
      const double slope = (here - before) / (alpha - alpha_before);
      EXPECT_GE(slope, slope_before - 1e-12) << c << " alpha " << alpha;
      EXPECT_LE(slope, 1e-15) << c << " alpha " << alpha;
      EXPECT_GE(here, std::max(0.0, 1.0 - alpha) - 1e-15) << c << " alpha " << alpha;
      before = here;
      slope_before = slope;
      alpha_before = alpha;
    }
  }
}

TEST(Profiles, AreLeastAtOneWindowASeries) {
  // 4.1: with T windows, m of them touched, λ = 1 costs least, for both bottom levels and at every α. The bounds of
  // λ ≥ 2 with replacement, the optimistic one included, lie above the exact profile of λ = 1.
  test::Draw draw(33);
  for (int i = 0; i < 120; ++i) {
    const int windows = 4 + draw.one_of(40);
    const int touched = 1 + draw.one_of(std::min(windows, 6));
    const int lambda = 2 + draw.one_of(std::min(windows - 2, 6));
    const double sigma = draw.log_between(0.4, 10.0);
    const double r = static_cast<double>(touched) / windows;
    SCOPED_TRACE(testing::Message() << "T " << windows << " m " << touched << " lambda " << lambda << " sigma "
                                    << sigma);
    expect_below(one_window_pair(r, sigma), with_replacement_optimistic(lambda, r, 1.0, sigma), "4.2 in 4.3");
    expect_below(one_window_pair(r, sigma), with_replacement_upper(lambda, r, 1.0, sigma), "4.2 in E.1");
    expect_below(with_replacement_upper(1, r, 1.0, sigma), with_replacement_upper(lambda, r, 1.0, sigma), "E.1");
    expect_below(poisson_upper(touched, 1.0 / windows, 1.0, sigma),
                 poisson_upper(touched, static_cast<double>(lambda) / windows, 1.0, sigma), "E.8");
  }
}

TEST(Profiles, OfTightAndOptimisticTheoremsLieInsideTheUpperBounds) {
  test::Draw draw(34);
  for (int i = 0; i < 120; ++i) {
    const double r = draw.log_between(0.003, 1.0);
    const double rho = draw.log_between(0.02, 1.0);
    const int lambda = 1 + draw.one_of(6);
    const double sigma = draw.log_between(0.4, 10.0);
    SCOPED_TRACE(testing::Message() << "r " << r << " rho " << rho << " count " << lambda << " sigma " << sigma);
    expect_below(one_window_pair(r, sigma), with_replacement_upper(1, r, 1.0, sigma), "4.2 in E.1");
    expect_below(one_window_pair(rho * r, sigma), with_replacement_upper(1, r, rho, sigma), "4.4 in F.1");
    expect_below(one_window_pair(rho * r, sigma), one_window_pair(r, sigma), "4.4 in 4.2");
    expect_below(one_window_pair(rho * r * draw.between(0.01, 1.0), sigma), one_window_pair(rho * r, sigma),
                 "G.1 in 4.4");
    expect_below(with_replacement_optimistic(lambda, r, 1.0, sigma), with_replacement_upper(lambda, r, 1.0, sigma),
                 "4.3 in E.1");
    expect_below(with_replacement_optimistic(lambda, r, rho, sigma), with_replacement_upper(lambda, r, rho, sigma),
                 "F.7 in F.1");
    expect_below(poisson_optimistic_printed(lambda, r, rho, sigma), poisson_optimistic_mirrored(lambda, r, rho, sigma),
                 "F.8a in F.8b");
    expect_below(poisson_optimistic_mirrored(lambda, r, rho, sigma), poisson_upper(lambda, r, rho, sigma),
                 "F.8b in F.2");
    const std::int64_t records = 50 + draw.one_of(100000);
    const std::int64_t length = 1 + draw.one_of(32);
    const std::int64_t batch = std::max<std::int64_t>(1, static_cast<std::int64_t>(r * static_cast<double>(records)));
    const double share = static_cast<double>(batch) / static_cast<double>(records);
    expect_below(one_window_pair(share, sigma), flat_optimistic(records, length, batch, sigma), "C.1 in C.2");
  }
}

TEST(Profiles, OfDifferentTheoremsAgreeWhereTheTheoremsDo) {
  test::Draw draw(35);
  for (int i = 0; i < 100; ++i) {
    const double r = draw.log_between(0.003, 0.999);
    const double rho = draw.log_between(0.02, 1.0);
    const int count = 1 + draw.one_of(5);
    const double sigma = draw.log_between(0.4, 10.0);
    SCOPED_TRACE(testing::Message() << "r " << r << " rho " << rho << " count " << count << " sigma " << sigma);
    const auto same = [&](const DominatingPair& a, const DominatingPair& b, const char* what, double factor = 1.0) {
      for (const double epsilon : places) {
        if (factor != 1.0 && epsilon < 0.0) continue;
        const double expected = factor * b.symmetrised_profile(epsilon);
        EXPECT_NEAR(a.symmetrised_profile(epsilon), expected, 2e-9 * expected + 2e-15) << what << " at " << epsilon;
      }
    };
    same(with_replacement_optimistic(1, r, rho, sigma), one_window_pair(rho * r, sigma), "F.7 at one window is 4.4");
    same(with_replacement_upper(count, r, rho, sigma), with_replacement_upper(count, r, 1.0, sigma), "F.1 is rho E.1",
         rho);
    same(poisson_upper(count, r, rho, sigma), poisson_upper(count, r, 1.0, sigma), "F.2 is rho E.8", rho);
    same(poisson_optimistic_mirrored(count, r, 1.0, sigma), poisson_upper(count, r, 1.0, sigma),
         "F.8b at rho 1 is E.8");
    // Only the ratio of means to noise counts: means i and σ are means 2 i and 2 σ.
    same(poisson_upper(count, r, rho, sigma), with_replacement_upper(count, r, rho, 2 * sigma), "E.8 scaled is E.1");
    same(poisson_optimistic_printed(count, r, rho, sigma), with_replacement_optimistic(count, r, rho, 2 * sigma),
         "F.8a scaled is F.7");
    same(flat_optimistic(1000, 1, 37, sigma), one_window_pair(0.037, sigma), "C.2 of one window is C.1");
    // At α = 1 mixing costs nothing: H_1(F.8b) = ρ H_1(E.8) = H_1(F.2).
    const double exact = poisson_upper(count, r, rho, sigma).symmetrised_profile(0.0);
    EXPECT_NEAR(poisson_optimistic_mirrored(count, r, rho, sigma).symmetrised_profile(0.0), exact,
                1e-9 * exact + 1e-15);
  }
  // Drawing few of very many records is nearly drawing with replacement: Hypergeom(10⁷; W, 10⁵) and Bin(W, 0.01).
  const auto flat = flat_optimistic(10'000'000, 8, 100'000, 2.0);
  const auto binomial = with_replacement_optimistic(8, 0.01, 1.0, 2.0);
  for (const double epsilon : {0.0, 0.1, 1.0})
    EXPECT_NEAR(flat.symmetrised_profile(epsilon) / binomial.symmetrised_profile(epsilon), 1.0, 1e-4) << epsilon;
}

}  // namespace
}  // namespace tsdp::privacy
