// Many time series on one calendar: values with missing ones, starts, a frequency.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tsdp::data {

/// A calendar step such as 10min, 1h, 1D, 1B (business days), 1W, 1M.
struct Frequency {
  enum class Unit {
    second,
    minute,
    hour,
    day,
    business_day,
    week,
    month,
    quarter,
    year
  };
  int multiple = 1;
  Unit unit = Unit::hour;

  /// Reads pandas-style text: "10min", "10T", "30min", "h", "1h", "H", "1D", "B", "W", "M", "Q", "Y", "s"; also "MS",
  /// "QE" and the like, and anchors ("W-SUN", "QS-OCT"), which state what the start of a series states here. Returns
  /// the normal form. Throws UsageError that names what was found and what is accepted.
  [[nodiscard]] static Frequency parse(std::string_view text);
  /// The unique form of this step, in the longest unit of which it is a whole multiple: 60min is 1h, 24h 1D, 7D 1W,
  /// 3M 1Q, 12M 1Y.
  [[nodiscard]] Frequency normal() const;
  [[nodiscard]] std::string text() const;
  bool operator==(const Frequency&) const = default;
};

/// A moment without time zone, in whole seconds since 1970-01-01 00:00:00 of the proleptic Gregorian calendar.
using Moment = std::int64_t;

/// What a time stamp says: the time on a clock, and by how many seconds that clock is ahead of UTC, if it says so.
struct TimeStamp {
  Moment clock = 0;
  std::optional<std::int64_t> ahead = std::nullopt;
  bool elsewhere =
      false;  ///< the clock is UTC's, not that of the place that the stamp names: 2024-01-01 15:00:00Z[Asia/Tokyo]

  /// In UTC; the clock's time where no zone is given.
  [[nodiscard]] Moment utc() const noexcept { return clock - ahead.value_or(0); }
  /// The moment for series of this frequency: in UTC, where hours are regular when summer time begins or ends; but on
  /// its own clock where a step is a day or longer, since midnight there is the same day in winter and in summer.
  [[nodiscard]] Moment at(const Frequency& frequency) const;
};

/// Whether series of this frequency are in local time where their time stamps have a zone: a step is a day or longer.
[[nodiscard]] bool keeps_local_time(const Frequency& frequency);

/// Reads a time stamp: "2015-01-31", "2015/01/31" or "31.01.2015"; followed by nothing, or by ' ' or 'T' and a time:
/// "13:00", "13:00:00", "13:00:00.000" (also 9:00, and 13-00-00 as in Monash files). A time zone after the time (Z,
/// +01, +01:00, +0100; the name of a place may follow: Z[Asia/Tokyo]) is kept separately. Periods as pandas writes them
/// stand for their first moment: "2015", "2015-01", "2015Q1", "2014-12-29/2015-01-04". None if the text is anything
/// else, no such date exists, or a fraction of a second is not 0.
[[nodiscard]] std::optional<TimeStamp> parse_time_stamp(std::string_view text);
/// The same in UTC. Returns false, and leaves `moment` as it was, if the text is no time stamp.
[[nodiscard]] bool parse_moment(std::string_view text, Moment& moment);
/// "YYYY-MM-DD hh:mm:ss".
[[nodiscard]] std::string moment_text(Moment moment);
/// Whether a step is a whole number of months.
[[nodiscard]] bool is_of_months(const Frequency& frequency);
/// The day of the month on which steps from `start` lie if nothing else is known: the day of `start`, or 31, which
/// stands for last days, if `start` is the last day of its month, as with pandas' month ends.
[[nodiscard]] int month_day_of(Moment start);
/// The day of the month on which all these moments lie, or, in months without it, the last day: 28 for 28 February and
/// 28 March, 30 for 28 February and 30 March; 31 if all are last days. 0 if there is no such day.
[[nodiscard]] int common_month_day(std::span<const Moment> moments);
/// The moment `steps` calendar steps after `start`. Steps of months and longer lie on `month_day` or, in months without
/// it, on the last day; if it is 0, on month_day_of(start). Business days skip Saturday and Sunday.
[[nodiscard]] Moment advance(Moment start, const Frequency& frequency, std::int64_t steps, int month_day = 0);

/// Seconds of the shortest step of that frequency: February among months.
[[nodiscard]] std::int64_t shortest_step(const Frequency& frequency);

/// The `k` for which `moment` is `k` calendar steps after `start` (before it if negative), none if there is no such
/// `k`. Without `month_day`, if `start` is the last day of a month with fewer than 31 days, the same day of another
/// month counts too.
[[nodiscard]] std::optional<std::int64_t> steps_between(Moment start, const Frequency& frequency, Moment moment,
                                                        int month_day = 0);

/// One series. `values[i]` belongs to `at(frequency, i)`; a missing value is a quiet NaN, infinities do not occur.
struct Series {
  std::string id;
  Moment start = 0;
  std::vector<float> values;
  std::int64_t cut = 0;  ///< missing values that a reader cut off at the ends
  /// Empty, or for each of `values` the double nearest to the decimal in the file, NaN where `values` has NaN.
  std::vector<double> exact = {};
  /// The day of the month on which its steps lie, if they are of months: its own, whatever month it starts in. 0: taken
  /// from the start.
  int month_day = 0;
  std::int64_t changes = 0;  ///< values in the file that differ from the value before
  std::int64_t lost = 0;  ///< of these, those equal to that value in single precision
  double last_read = std::numeric_limits<double>::quiet_NaN();  ///< the last value in the file, for readers

  /// The moment of place `place`, also before and after the values.
  [[nodiscard]] Moment at(const Frequency& frequency, std::int64_t place) const {
    return advance(start, frequency, place, month_day);
  }
};

/// The coarsest frequency on which every one of these series of moments lies, each of which must increase: months if
/// each is on one day of the month (common_month_day), business days if none has a weekend. None if no series has 3
/// moments.
[[nodiscard]] std::optional<Frequency> coarsest_frequency(std::span<const std::vector<Moment>> series);
/// The same, but also none if no series of at least 3 moments has moments at half of its steps or more.
[[nodiscard]] std::optional<Frequency> infer_frequency(std::span<const std::vector<Moment>> series);
/// The same for one series.
[[nodiscard]] std::optional<Frequency> infer_frequency(const std::vector<Moment>& moments);
/// The coarsest frequency, if the series show that `stated` is too fine for them: by chance, rows of the stated step
/// would lie on the coarser one with a probability below one in a thousand.
[[nodiscard]] std::optional<Frequency> coarser_than(const Frequency& stated,
                                                    std::span<const std::vector<Moment>> series);

/// Numbers known for every step, ahead of time too: holidays, prices, temperatures. The same for all series, or those
/// of each series.
struct Covariates {
  /// Of one series or more.
  struct Table {
    Moment start = 0;  ///< of the first row
    std::vector<float> values = {};  ///< (rows, K), row-major, finite; one row a step of the data set's frequency
    int month_day = 0;  ///< of the rows, as that of a series
    bool always = false;  ///< it has one row, which holds for every step
  };

  std::string file;  ///< where they come from, for error messages
  std::vector<std::string> names;  ///< K of them
  std::vector<Table> tables = {};
  std::vector<std::size_t> table_of = {};  ///< of each series of the data set; empty: all have the first table
  bool found_categories = false;  ///< some names are of categories that the rows have, and nobody has asked for by name

  [[nodiscard]] bool of_each_series() const noexcept { return !table_of.empty(); }
  /// The number of a series' table.
  [[nodiscard]] std::size_t table(std::size_t series) const { return of_each_series() ? table_of[series] : 0; }
};

/// Forecasts that another program or model made of series of a data set, each from values before the window alone.
struct ExternalForecasts {
  std::string name;
  std::filesystem::path file;  ///< of the forecasts, or of the exported model (.pt) that makes them
  /// (10, H), row-major, by series and place of the first forecast value: the quantiles 0.1, …, 0.9 and the mean.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<float>> windows = {};
  /// What the model that makes them says of its training, if that read data: then they are not free. Empty for a file.
  std::string statement = {};

  [[nodiscard]] bool is_model() const { return file.extension() == ".pt"; }
  [[nodiscard]] bool is_free() const { return statement.empty(); }
};

/// Series of one source, in the order of the source.
struct Dataset {
  std::string name;
  Frequency frequency;
  std::vector<Series> series;
  Covariates covariates = {};  ///< none: no names
  /// The owner of each series, numbered from 0 in the order of their first series; empty: none are known.
  std::vector<std::int64_t> owner = {};
  std::vector<std::shared_ptr<const ExternalForecasts>> external = {};
  /// The names of V variables that each series has at every step, V ≥ 2; empty: it has one. Then `series` holds V
  /// entries in a row for each, in this order: one start, one length, missing values where a variable has none.
  std::vector<std::string> variables = {};

  /// V.
  [[nodiscard]] std::int64_t variable_count() const noexcept {
    return variables.empty() ? 1 : static_cast<std::int64_t>(variables.size());
  }
  /// What is in the record of one series: its number, or that of its owner.
  [[nodiscard]] std::int64_t record_of(std::int64_t entry) const {
    return owner.empty() ? entry / variable_count() : owner[static_cast<std::size_t>(entry)];
  }
};

/// "20 series", or "20 series of 3 variables".
[[nodiscard]] std::string counted_series(const Dataset& dataset);

}  // namespace tsdp::data
