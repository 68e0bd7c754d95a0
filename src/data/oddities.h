// What is odd about series, whatever their use: one that occurs twice, and numbers that single precision does not hold.
#pragma once

#include <cstdint>
#include <vector>

#include "tsdp/data/dataset.h"

namespace tsdp::data {

/// Values from here on are neither trained on nor forecast from: their sums and squares leave single precision, and
/// files use them for missing values (-3.4e38 in maps, 1e20 and 9.97e36 in climate data).
inline constexpr float least_excessive = 1e18F;

/// The places of values that lie far from all others of the series: further from its median than ten times as far as
/// 99 % of them do. None in series of fewer than 100 values, or of which 99 % are the median.
[[nodiscard]] std::vector<std::int64_t> outliers_of(const Series& series);

/// Two series of a data set.
struct SeriesPair {
  std::int64_t series, earlier;
};

struct Oddities {
  std::vector<SeriesPair> same_name;
  std::vector<SeriesPair> alike_name;  ///< the same except for case and outer spaces
  std::size_t compared = 0;  ///< series, or records of several, that same_values compares with each other
  std::vector<SeriesPair> same_values;  ///< one equals the other or its beginning, from the same start on; neither is
                                        ///< constant, nor shorter than 8 without four different values
  std::vector<std::int64_t> not_told_apart;  ///< a twentieth of the changes or more are lost in single precision
  std::vector<std::int64_t> excessive;  ///< a value's magnitude is least_excessive or more
};

[[nodiscard]] Oddities oddities_of(const Dataset& dataset);

/// Throws DataError that names a value of least_excessive or more.
void require_magnitudes(const Dataset& dataset);

/// Throws UsageError, which names what is not implemented for them, if series have several variables.
void require_one_variable(const Dataset& dataset, const std::string& what);

/// What happens if a series occurs in the data more than once.
enum class Copies {
  told,  ///< without privacy
  refused_if_half,  ///< training with privacy: a few may be two meters of one plant; if it is half of them or more, the
                    ///< file holds series several times
  refused,  ///< forecasts from privatised pasts, each of which counts as one use of one series
};

/// Unless copies are only told: throws DataError if a name occurs again, or if as many series as `copies` says
/// certainly equal others or beginnings of others. Certain are series of four different values or more, and
/// plain beginnings of others if they are half or more; half is of those that same_values compares. Warns of the rest.
void treat_copies(const Dataset& dataset, Copies copies);

/// Checks what is to be trained on or scored. Throws DataError for values of least_excessive or more; if most of a
/// series' changes are lost in single precision, since it would be scored as if it hardly moved; and as treat_copies
/// does.
void require_distinct(const Dataset& dataset, Copies copies);

}  // namespace tsdp::data
