// What a data set holds, and which of its series are unfit for their intended use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/oddities.h"
#include "tsdp/data/dataset.h"
#include "tsdp/data/windows.h"

namespace tsdp::data {

/// What the series are to be used for.
struct DescribeOptions {
  std::optional<SplitOptions> split;   ///< every series must be long enough for this split
  std::int64_t prediction_length = 0;  ///< and for this many values
  std::int64_t context_length = 0;     ///< plus this many
  std::int64_t season_length = 1;      ///< steps in a season, ≥ 1
};

/// A series that stands out, and the number by which it does.
struct Finding {
  std::int64_t series;
  double number;
};

struct Description {
  std::int64_t least_length = 1;  ///< what the options ask of every series
  std::int64_t season_length = 1;
  std::int64_t shortest = 0, longest = 0;
  double median_length = 0;
  std::int64_t places = 0;              ///< of all series together, including those cut off at their ends
  std::int64_t missing = 0;             ///< how many of them are missing
  Moment first = 0, last = 0;           ///< first and last step of any series
  float least = 0, greatest = 0;        ///< of the values that are not missing
  std::vector<Finding> too_short;       ///< number: length
  std::vector<Finding> constant;        ///< in the file, not only in single precision; number: the only value
  std::vector<Finding> mostly_missing;  ///< more than half of the places; number: share
  std::vector<Finding> without_season;  ///< fewer values than a season before the first range to forecast (of
                                        ///< the test part); number: how many. The seasonal-naive baseline falls
                                        ///< back to the mean there.
  std::vector<Finding> outlying;  ///< with values far from all others (outliers_of); number: how many
  Oddities odd;
};

/// Requires at least one series, none of them empty.
[[nodiscard]] Description describe(const Dataset& dataset, const DescribeOptions& options);

/// All findings.
[[nodiscard]] nlohmann::ordered_json description_json(const Dataset& dataset, const Description& description);
/// For people: one line per fact or finding.
[[nodiscard]] std::string description_text(const Dataset& dataset, const Description& description);

}  // namespace tsdp::data
