#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "tsdp/data/dataset.h"

namespace tsdp::data {
namespace {

constexpr std::int64_t day_seconds = 86400;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes a text apart from its front. If what is asked for is missing, the text stays as it was.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool ended() const { return rest_.empty(); }
  /// "[…]" at the end.
  std::optional<std::string_view> bracketed() {
    if (!rest_.starts_with('[') || !rest_.ends_with(']')) return std::nullopt;
    const auto found = rest_.substr(1, rest_.size() - 2);
    rest_ = {};
    return found;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  /// Whether `count` digits come next, and then something that is not a digit.
  [[nodiscard]] bool has_digits(std::size_t count) const {
    if (rest_.size() < count || (rest_.size() > count && is_digit(rest_[count]))) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (!is_digit(rest_[i])) return false;
    return true;
  }
  std::optional<int> digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (!is_digit(c)) return std::nullopt;
      value = 10 * value + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  /// The next character, if it is one of these; else 0.
  char one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return 0;
    const char found = rest_.front();
    rest_.remove_prefix(1);
    return found;
  }

 private:
  std::string_view rest_;
};

std::optional<Moment> moment_of(int year, int month, int day) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return day_seconds * std::chrono::sys_days(date).time_since_epoch().count();
}

/// A date, or a year, quarter or month, which stands for its first day and has nothing after it.
std::optional<Moment> scan_date(Scanner& text) {
  if (text.has_digits(2)) {
    const auto day = text.digits(2);
    const auto month = text.one_of(".") ? text.digits(2) : std::nullopt;
    const auto year = month && text.one_of(".") ? text.digits(4) : std::nullopt;
    return year ? moment_of(*year, *month, *day) : std::nullopt;
  }
  if (!text.has_digits(4)) return std::nullopt;
  const int year = *text.digits(4);
  if (text.ended()) return moment_of(year, 1, 1);
  if (text.one_of("Q")) {
    const auto quarter = text.digits(1);
    return quarter && *quarter >= 1 && *quarter <= 4 && text.ended() ? moment_of(year, 3 * *quarter - 2, 1)
                                                                     : std::nullopt;
  }
  const char between = text.one_of("-/");
  const auto month = between != 0 ? text.digits(2) : std::nullopt;
  if (!month) return std::nullopt;
  if (text.ended() && between == '-') return moment_of(year, *month, 1);
  if (text.one_of({&between, 1}) == 0) return std::nullopt;
  const auto day = text.digits(2);
  return day ? moment_of(year, *month, *day) : std::nullopt;
}

/// Seconds since midnight.
std::optional<std::int64_t> scan_time(Scanner& text) {
  const auto hour = text.has_digits(1) ? text.digits(1) : text.digits(2);
  if (!hour || *hour > 23) return std::nullopt;
  const char between = text.one_of(":-");
  const auto minute = between != 0 ? text.digits(2) : std::nullopt;
  if (!minute || *minute > 59) return std::nullopt;
  std::int64_t seconds = std::int64_t{3600} * *hour + std::int64_t{60} * *minute;
  if (text.one_of({&between, 1}) == 0) return seconds;
  const auto second = text.digits(2);
  if (!second || *second > 59) return std::nullopt;
  seconds += *second;
  if (text.one_of(".,") == 0) return seconds;
  if (text.one_of("0") == 0) return std::nullopt;
  while (text.one_of("0") != 0) continue;
  return seconds;
}

/// By how many seconds the zone is ahead of UTC.
std::optional<std::int64_t> scan_zone(Scanner& text) {
  if (text.one_of("Zz") != 0) return 0;
  const char sign = text.one_of("+-");
  const auto hours = sign != 0 ? text.digits(2) : std::nullopt;
  if (!hours || *hours > 23) return std::nullopt;
  std::int64_t seconds = std::int64_t{3600} * *hours;
  if (!text.ended()) {
    (void)text.one_of(":");
    const auto minutes = text.digits(2);
    if (!minutes || *minutes > 59) return std::nullopt;
    seconds += std::int64_t{60} * *minutes;
  }
  return sign == '-' ? -seconds : seconds;
}

/// A whole time stamp.
std::optional<TimeStamp> scan_time_stamp(Scanner& text) {
  const auto moment = scan_date(text);
  if (!moment) return std::nullopt;
  if (text.ended()) return TimeStamp{*moment};
  if (text.one_of("/") != 0) {
    // pandas writes a period of weeks as its first and last day.
    Scanner last(text.rest());
    if (!scan_date(last) || !last.ended()) return std::nullopt;
    return TimeStamp{*moment};
  }
  if (text.one_of(" T") == 0) return std::nullopt;
  const auto time = scan_time(text);
  if (!time) return std::nullopt;
  TimeStamp out{*moment + *time};
  if (text.ended()) return out;
  const bool is_utc = text.rest().starts_with('Z') || text.rest().starts_with('z');
  out.ahead = scan_zone(text);
  if (out.ahead && !text.ended()) {
    const auto place = text.bracketed();
    if (!place || place->empty()) return std::nullopt;
    out.elsewhere = is_utc && *place != "UTC" && *place != "Etc/UTC";
  }
  if (!out.ahead || !text.ended()) return std::nullopt;
  return out;
}

}  // namespace

bool keeps_local_time(const Frequency& frequency) { return shortest_step(frequency) >= day_seconds; }

Moment TimeStamp::at(const Frequency& frequency) const { return keeps_local_time(frequency) ? clock : utc(); }

std::optional<TimeStamp> parse_time_stamp(std::string_view text) {
  Scanner scanner(text);
  return scan_time_stamp(scanner);
}

bool parse_moment(std::string_view text, Moment& moment) {
  const auto found = parse_time_stamp(text);
  if (found) moment = found->utc();
  return found.has_value();
}

std::string moment_text(Moment moment) {
  using namespace std::chrono;
  const std::int64_t day_number = moment / day_seconds - (moment % day_seconds < 0 ? 1 : 0);
  const int second = static_cast<int>(moment - day_seconds * day_number);
  const year_month_day date{sys_days(days(day_number))};
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600, second / 60 % 60,
                second % 60);
  return buffer.data();
}

}  // namespace tsdp::data
