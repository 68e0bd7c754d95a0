// What reading and cutting do to values of neighbours: decimals that differ by at most v, as they stand in a file.
#include "sampling/contraction.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace tsdp::sampling {
namespace {

/// The decimal `units` · 10⁻⁸, as a file has it, and as readers read it.
double read(std::int64_t units) {
  constexpr std::uint64_t whole = 100'000'000;
  const auto magnitude = static_cast<std::uint64_t>(units < 0 ? -units : units);
  auto fraction = std::to_string(magnitude % whole);
  fraction.insert(0, 8 - fraction.size(), '0');
  const auto text = cat(units < 0 ? "-" : "", magnitude / whole, ".", fraction);
  double value = 0.0;
  EXPECT_EQ(std::from_chars(text.data(), text.data() + text.size(), value).ec, std::errc{}) << text;
  return value;
}

/// How far apart two numbers lie: exact where long double has more bits, and else for numbers that are near each other.
long double distance(double a, double b) { return std::abs(static_cast<long double>(a) - static_cast<long double>(b)); }

// Every decimal with 8 places in a neighbourhood of each power of two up to beyond 2³² v, of 0 and of the cut itself,
// against those v and a little less than v away.
TEST(Contraction, DecimalsThatDifferByVStayAsNear) {
  for (const std::int64_t v_units : {std::int64_t{200'000'000}, std::int64_t{100'000'000}, std::int64_t{300'000'001},
                                     std::int64_t{10'000'000}, std::int64_t{700'000}, std::int64_t{12'345'679}}) {
    const double v = read(v_units);
    SCOPED_TRACE(v);
    const Contraction contraction(v);
    EXPECT_GE(contraction.reach(), v * (1.0 + reading_share));
    EXPECT_LE(contraction.reach(), v * (1.0 + reading_share) * (1.0 + 0x1p-51));
    long double worst = 0.0L;
    long double worst_of_small = 0.0L;
    const auto look_around = [&](std::int64_t centre) {
      for (std::int64_t units = centre - 300; units <= centre + 300; ++units)
        for (const std::int64_t other : {units - v_units, units - v_units + 1, units - v_units / 2, units + v_units}) {
          const auto apart = distance(contraction(read(units)), contraction(read(other)));
          worst = std::max(worst, apart);
          if (std::abs(units) < 1000 * v_units) worst_of_small = std::max(worst_of_small, apart);
        }
    };
    look_around(0);
    const auto cut = static_cast<double>(v_units) * cut_over_v;  // up to half a unit of it, which is no matter here
    look_around(static_cast<std::int64_t>(cut));
    look_around(-static_cast<std::int64_t>(cut));
    for (int e = -8; std::ldexp(1e8, e) < 2.0 * cut && e < 36; ++e) {
      look_around(static_cast<std::int64_t>(std::ldexp(1e8, e)));
      look_around(-static_cast<std::int64_t>(std::ldexp(1e8, e)) + v_units);
    }
    EXPECT_LE(worst, static_cast<long double>(contraction.reach()));
    EXPECT_GT(worst, static_cast<long double>(v) * (1.0L + 0x1p-23L));  // rounding is there, and seen
    EXPECT_LT(worst_of_small, static_cast<long double>(v) * (1.0L + 0x1p-40L));
  }
}

// The other way round, in units of the last place: reals that lie between doubles, in quarters of their distance, at
// each power of two up to the cut and on both sides of it. v has few bits, so that long double holds all of them.
TEST(Contraction, RealsBetweenDoublesStayAsNear) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is no wider than double";
  for (const double v : {1.0, 1.125, 1.984375, 0x1p-1022, 0x1.8p-1000, 0x1.8p+900, 0x1.8p+991, 0x1.8p+995}) {
    SCOPED_TRACE(v);
    const Contraction contraction(v);
    long double worst = 0.0L;
    for (int e = -4; e <= 33; ++e) {
      const double power = std::ldexp(1.0, std::ilogb(v) + e);
      if (!std::isfinite(2.0 * power)) continue;
      const long double quarter = static_cast<long double>(std::nextafter(power, 2.0 * power) - power) / 4.0L;
      for (int k = -200; k <= 200; ++k) {
        const long double x = static_cast<long double>(power) + static_cast<long double>(k) * quarter;
        const long double other = x - static_cast<long double>(v);
        const double a = contraction(static_cast<double>(x));
        const double b = contraction(static_cast<double>(other));
        worst = std::max(worst, distance(a, b));
        EXPECT_EQ(distance(a, b),
                  distance(contraction(static_cast<double>(-x)), contraction(static_cast<double>(-other))));
      }
    }
    EXPECT_LE(worst, static_cast<long double>(contraction.reach()));
    EXPECT_GE(worst, static_cast<long double>(v));
  }
}

TEST(Contraction, CutsAtAMultipleOfVAndNothingElse) {
  const Contraction contraction(0.75);
  const double cut = 0.75 * 0x1p32;
  for (const double x : {0.0, 1e-300, 0.1, 1e9, std::nextafter(cut, 0.0), cut}) {
    EXPECT_EQ(contraction(x), x);
    EXPECT_EQ(contraction(-x), -x);
  }
  for (const double x : {std::nextafter(cut, 1e300), 1e10, 1e38, 1e300, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(contraction(x), cut);
    EXPECT_EQ(contraction(-x), -cut);
  }
  // Beyond the largest number nothing is left to cut.
  EXPECT_EQ(Contraction(1e300)(1e308), 1e308);
  // Decimals of any size, with the least v.
  const Contraction least(0x1p-1022);
  EXPECT_EQ(least(1e308), 0x1p-990);
  EXPECT_EQ(least(-1e-290), -0x1p-990);
  EXPECT_EQ(least(0x1p-1074), 0x1p-1074);
}

TEST(Contraction, RefusesWhatItsProofDoesNotCover) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const double v : {0.0, -1.0, infinite, std::numeric_limits<double>::quiet_NaN(), 0x1p-1023, 1e-320})
    EXPECT_THROW(Contraction{v}, UsageError) << v;
  EXPECT_NO_THROW(Contraction{0x1p-1022});
}

// Why doubles and not floats: at 1e9 these lie 64 apart.
TEST(Contraction, SinglePrecisionWouldNotDo) {
  EXPECT_EQ(static_cast<float>(1000000033.0) - static_cast<float>(1000000031.0), 64.0F);
  const Contraction contraction(2.0);
  EXPECT_EQ(contraction(1000000033.0) - contraction(1000000031.0), 2.0);
}

}  // namespace
}  // namespace tsdp::sampling
