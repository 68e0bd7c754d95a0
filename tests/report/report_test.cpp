// The page itself: what it says, what it leaves out, and that nothing of the data becomes markup. How it looks is
// tested in a browser (tests/cli/report_in_browser.py).
#include "report/report.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "report/report_content.h"
#include "tsdp/base/text.h"

namespace tsdp::exporting {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

nlohmann::ordered_json ledger() {
  return nlohmann::ordered_json::parse(R"json({
    "state": "finished", "private": true, "theorem": "4.4", "bound": "tight", "delta": 1e-7, "target_epsilon": 1.0,
    "randomness": "secret 256-bit key of the operating system",
    "relation": {"kind": "event", "w": 1, "v": null, "text": "one value"},
    "epsilon": {"lower": 0.99961, "upper": 0.99993},
    "attack": {"advantage": 0.1234, "false_positive_rate": 0.001, "true_positive_rate": 0.00231},
    "not_covered": ["everything under private/", "what <else> is public"],
    "statement": "(1, 1e-07)-differential privacy."})json");
}

ReportContent content() {
  ReportContent c;
  c.dataset = "loads";
  c.model = "simple_ff";
  c.program = "tsdp 0";
  c.step = "1h";
  c.steps_per_epoch = 2;
  c.ledger = ledger();
  ReportForecast f;
  f.series = "zone 7";
  f.why = "best of 3";
  f.start = "2015-02-03";
  f.past = {1.0, nan, 3.0};
  f.truth = {4.0, 5.0};
  for (std::size_t i = 0; i < f.quantiles.size(); ++i) f.quantiles[i] = {3.0 + 0.5 * static_cast<double>(i), 4.0};
  c.forecasts = {f};
  c.how_chosen = "All series";
  c.scores = {{"simple_ff",
               {{"mean_weighted_quantile_loss", 0.09},
                {"MASE", nullptr},
                {"intervals", {{"0.8", {{"coverage", 0.65}, {"mean_width", 1.0}}}}}}},
              {"seasonal naive", {{"mean_weighted_quantile_loss", 0.12}}}};
  c.best_free = 1;
  for (int step = 1; step <= 400; ++step)
    c.metrics.push_back({{"step", step}, {"loss", 3.0 + 1.0 / step}, {"clipped_share", 0.5}});
  c.metrics.push_back({{"step", 200}, {"epsilon_upper", 0.7}});
  c.metrics.push_back({{"step", 400}, {"epsilon_upper", 0.99993}});
  c.metrics.push_back({{"step", 400}, {"validation_loss", 3.2}});
  c.false_positive_rates = {0.0, 0.5, 1.0};
  c.true_positive_rates = {0.0, 0.6, 1.0};
  c.facts = {{"Noise multiplier", "2"}};
  return c;
}

bool holds(const std::string& page, std::string_view text) { return page.find(text) != std::string::npos; }

std::size_t count(const std::string& page, std::string_view text) {
  std::size_t times = 0;
  for (auto at = page.find(text); at != std::string::npos; at = page.find(text, at + text.size())) ++times;
  return times;
}

std::size_t charts(const std::string& page) { return count(page, "class=\"tsdp-plot\" role=\"img\""); }

TEST(Report, SaysWhatTheRunCameTo) {
  const auto page = report_html(content());
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_EQ(charts(page), 6U);  // a forecast, scores, loss, epsilon, clipping, attacker
  EXPECT_EQ(count(page, "x-label\""), 6U);
  EXPECT_EQ(count(page, "y-label\""), 6U);
  for (const auto* text :
       {"Private: shows data, do not release", "ε ≤ 1<", "at δ = 10⁻⁷, for any single value of any one series",
        "≤ 56.17 %", "25 % better than seasonal naive", "zone 7", "best of 3",
        "<td data-label=\"in the 80 % band\">65 %, too narrow</td>", "<td data-label=\"MASE\">–</td>",
        "in at most <strong>56.17 of 100</strong>", "0.1 % of all cases finds a true one in at most 0.231 %",
        "(1, 1e-07)-differential privacy.", "What it does not cover", "what &lt;else&gt; is public", "Noise multiplier",
        "[0.99961, 0.99993]"})
    EXPECT_TRUE(holds(page, text)) << text;
  EXPECT_FALSE(holds(page, "not finished"));
}

TEST(Report, RoundsPrivacyUpwards) {
  auto c = content();
  c.ledger["epsilon"]["upper"] = 0.876512;
  c.ledger["attack"]["advantage"] = 0.10001;
  const auto page = report_html(c);
  EXPECT_TRUE(holds(page, "ε ≤ 0.8766<"));
  EXPECT_TRUE(holds(page, "≤ 55.01 %"));
}

TEST(Report, LoadsAndRunsNothing) {
  const auto page = report_html(content());
  EXPECT_TRUE(holds(page, "Content-Security-Policy\" content=\"default-src 'none';"));
  for (const auto* text : {"<script", "<link", "<img", "<iframe", "@import", "url(", " src=", " href=", "onload"})
    EXPECT_FALSE(holds(page, text)) << text;
  // The name of SVG, which is no address to load.
  EXPECT_EQ(count(page, "http://"), count(page, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count(page, "https://"), 0U);
}

TEST(Report, EscapesEveryText) {
  const std::string evil = "</title></style></svg><script>alert(1)</script>\"'&<b>";
  auto c = content();
  c.dataset = c.model = c.program = c.made = c.step = c.windows = c.how_chosen = evil;
  c.forecasts[0].series = c.forecasts[0].why = c.forecasts[0].start = evil;
  c.scores[0].name = c.scores[1].name = evil;
  c.facts = {{evil, evil}};
  c.remarks = {evil};
  c.loss = evil;
  for (const auto* name : {"state", "randomness", "statement", "bound"}) c.ledger[name] = evil;
  c.ledger["not_covered"] = {evil};
  const auto page = report_html(c);
  EXPECT_FALSE(holds(page, "<script"));
  EXPECT_FALSE(holds(page, "<b>\"'"));
  EXPECT_EQ(count(page, "</title>"), charts(page) + 1 + count(page, "</title></path>"));
  EXPECT_EQ(count(page, "</style>"), 1U);
  EXPECT_GT(count(page, "&lt;script&gt;alert(1)"), 12U);
}

TEST(Report, OfARunWithoutPrivacySaysSo) {
  auto c = content();
  c.ledger = {{"state", "finished"}, {"private", false}, {"epsilon", nullptr}, {"statement", "No privacy."}};
  c.false_positive_rates.clear();
  c.true_positive_rates.clear();
  const auto page = report_html(c);
  EXPECT_TRUE(holds(page, "<strong>No privacy.</strong>"));
  EXPECT_TRUE(holds(page, "treat the model like the data"));
  EXPECT_EQ(charts(page), 3U);
  for (const auto* text : {"ε ≤", "attacker", "Epsilon over"}) EXPECT_FALSE(holds(page, text)) << text;
  c.ledger["synthetic_data"] = {{"family", "hourly"}};
  EXPECT_TRUE(holds(report_html(c), "the model has seen no data of anyone"));
  c.start_origin = mechanism::StartOrigin::trained;
  const auto after = report_html(c);
  EXPECT_TRUE(holds(after, "the start's own statement holds") || holds(after, "the start&#39;s own statement holds"))
      << after.substr(after.find("Synthetic series"), 200);
  EXPECT_FALSE(holds(after, "has seen no data of anyone"));
  c.start_origin = mechanism::StartOrigin::trained_without_privacy;
  EXPECT_TRUE(holds(report_html(c), "treat the model like the data"));
}

TEST(Report, OfAStartWithoutPrivacyReleasesNothingByItself) {
  auto c = content();
  const std::string released = "config.yaml and privacy.json; model.pt and model_card.md";
  EXPECT_TRUE(holds(report_html(c), released + "; nothing under private/"));
  c.start_origin = mechanism::StartOrigin::trained_without_privacy;
  EXPECT_TRUE(holds(report_html(c), released + " only if the data of its start may be; nothing under private/"));
}

TEST(Report, OfWindowsWithoutAScoreShowsNone) {
  auto c = content();
  c.forecasts.clear();
  EXPECT_TRUE(holds(report_html(c), "None is shown: no test window of the series read here has a score to choose by."));
}

TEST(Report, OfNothingStillStands) {
  const auto page = report_html({});
  EXPECT_EQ(charts(page), 0U);
  for (const auto* text : {"no test windows to forecast", "no test windows to score", "Nothing was logged"})
    EXPECT_TRUE(holds(page, text)) << text;
  auto c = content();
  c.forecasts.clear();
  c.scores.clear();
  c.metrics.clear();
  c.facts.clear();
  c.true_positive_rates.clear();
  c.ledger.erase("attack");
  c.ledger["epsilon"] = nullptr;
  EXPECT_EQ(charts(report_html(c)), 0U);
}

TEST(Report, WarnsOfWhatIsNotForRelease) {
  auto c = content();
  EXPECT_FALSE(holds(report_html(c), "Not for release"));
  c.ledger["reproducible"] = true;
  c.ledger["state"] = "interrupted";
  const auto page = report_html(c);
  EXPECT_TRUE(holds(page, "Not for release: the randomness follows from the seed"));
  EXPECT_EQ(count(page, "(for whoever does not know the seed)"), 2U);
  EXPECT_TRUE(holds(page, "The run is not finished: its ledger says “interrupted”"));
}

TEST(Report, SaysWhenTheModelIsWorse) {
  auto c = content();
  c.scores[0].metrics["mean_weighted_quantile_loss"] = 0.18;
  EXPECT_TRUE(holds(report_html(c), "<strong>50 % worse than seasonal naive</strong>"));
  c.scores[0].metrics["mean_weighted_quantile_loss"] = 1.44;
  EXPECT_TRUE(holds(report_html(c), "<strong>12 times as bad as seasonal naive</strong>"));
  c.scores[0].metrics["mean_weighted_quantile_loss"] = nullptr;
  EXPECT_FALSE(holds(report_html(c), " seasonal naive</strong>"));
}

TEST(Report, ComparesWithTheBestThatIsFree) {
  auto c = content();
  c.scores.push_back({"seasonal quantiles", {{"mean_weighted_quantile_loss", 0.06}}});
  c.scores.push_back({"its start (trained on data)", {{"mean_weighted_quantile_loss", 0.03}}});
  c.best_free = 2;
  const auto page = report_html(c);
  EXPECT_TRUE(holds(page, "<strong>50 % worse than seasonal quantiles</strong>, the best that can be had for nothing"));
  EXPECT_TRUE(holds(page, "50 % worse than seasonal quantiles, the best that is free"));
  c.best_free = 3;
  EXPECT_TRUE(holds(report_html(c), "3 times as bad as its start"));
}

TEST(Report, SaysWhenOnlyTheBandsHelp) {
  auto c = content();
  c.scores[0].metrics["ND"] = 0.15;
  c.scores[1].metrics["ND"] = 0.12;
  EXPECT_TRUE(holds(report_html(c), "Its median alone, without the bands, is 25 % worse than seasonal naive (ND)"));
  c.scores[0].metrics["ND"] = 0.11;
  EXPECT_FALSE(holds(report_html(c), "median alone"));
}

TEST(Report, TellsTheProtectedUnit) {
  auto c = content();
  c.ledger["relation"] = {{"kind", "event"}, {"w", 24}, {"v", 0.5}};
  EXPECT_TRUE(
      holds(report_html(c), "the values within any 24 steps in a row of any one series, each changed by at most 0.5"));
  c.ledger["relation"] = {{"kind", "user"}, {"w", 3}, {"v", nullptr}};
  EXPECT_TRUE(holds(report_html(c), "any 3 values of any one series, wherever they are"));
}

// The finest parts of the calendar of which at most five begin in what is drawn.
TEST(Report, LabelsTimeByTheCalendar) {
  struct Case {
    const char* from;
    const char* step;
    std::size_t steps;
    std::vector<std::string> labels;
  };
  const std::vector<Case> cases = {
      {"2015-02-02 00:00", "1h", 73, {"3 Feb", "4 Feb", "5 Feb"}},
      {"2015-02-02 22:00", "1h", 30, {"3 Feb", "06:00", "12:00", "18:00", "4 Feb"}},
      {"2015-02-27 12:00", "10min", 12, {"12:30", "13:00", "13:30"}},
      {"2023-10-19 00:00", "15min", 144, {"12:00", "20 Oct"}},  // every six hours would run into each other
      {"2015-02-25 00:00", "1D", 9, {"26 Feb", "28 Feb", "2 Mar", "4 Mar"}},
      {"2015-02-20 00:00", "B", 25, {"23 Feb", "2 Mar", "9 Mar", "16 Mar", "23 Mar"}},
      {"2015-11-03 00:00", "1W", 16, {"Dec", "2016", "Feb"}},
      {"2014-10-01 00:00", "1M", 8, {"2015", "Apr"}},
      {"1995-01-01 00:00", "1Y", 24, {"2000", "2005", "2010", "2015"}},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(cat(one.from, " ", one.step));
    auto c = content();
    auto& f = c.forecasts.front();
    data::Moment start = 0;
    ASSERT_TRUE(data::parse_moment(one.from, start));
    const auto frequency = data::Frequency::parse(one.step);
    for (std::size_t i = 0; i < one.steps; ++i)
      f.moments.push_back(data::advance(start, frequency, static_cast<std::int64_t>(i)));
    f.past.assign(one.steps - f.truth.size(), 1.0);
    const auto page = report_html(c);
    const auto chart =
        page.substr(page.find("<title>Series zone 7"), page.find("x-label") - page.find("<title>Series zone 7"));
    std::vector<std::string> labels;
    for (auto at = chart.find("class=\"tick\" text-anchor=\"middle\">"); at != std::string::npos;
         at = chart.find("class=\"tick\" text-anchor=\"middle\">", at + 1)) {
      const auto begin = chart.find('>', at) + 1;
      labels.push_back(chart.substr(begin, chart.find('<', begin) - begin));
    }
    EXPECT_EQ(labels, one.labels);
  }
}

// One number has one form: in the tile, beside the bar, in the table, in the words.
TEST(Report, AScoreLooksTheSameEverywhere) {
  auto c = content();
  c.scores[0].metrics["mean_weighted_quantile_loss"] = 0.059941;
  c.scores.push_back({"its start", {{"mean_weighted_quantile_loss", 0.060012}}});
  c.start_crps = 0.060012;
  const auto page = report_html(c);
  EXPECT_TRUE(holds(page, "<b>CRPS 0.05994</b>"));
  EXPECT_TRUE(holds(page, "<td data-label=\"CRPS\">0.05994</td>"));
  EXPECT_TRUE(holds(page, ">0.05994</text>"));
  EXPECT_TRUE(holds(page, "had a CRPS of 0.06001"));
  EXPECT_EQ(count(page, "0.0599"), count(page, "0.05994"));
  EXPECT_EQ(count(page, "0.06001"), count(page, "0.0600"));
}

// Of many series some may have no score: the page says how many, and why.
TEST(Report, SaysWhichSeriesHaveNoScore) {
  EXPECT_EQ(how_chosen(5, 5, 5, false, "test"), "All series, from the best to the worst CRPS");
  EXPECT_EQ(how_chosen(5, 4, 4, false, "test"),
            "All of the 4 of 5 series that have a score, from the best to the worst CRPS. The other 1 has no score, as "
            "nothing, or nothing but zeros, was observed in its windows");
  EXPECT_EQ(how_chosen(96, 87, 6, false, "test"),
            "Of the 87 of 96 series that have a score, those with the best, the median and the worst CRPS over all "
            "test windows, and some between them. The other 9 have no score, as nothing, or nothing but zeros, was "
            "observed in their windows");
  EXPECT_EQ(how_chosen(96, 87, 2, true, "test"), "Of 96 series, those that were asked for");
}

TEST(Report, DrawsSeasonalNaiveWhereItIsKnown) {
  auto c = content();
  const auto lines = [](const std::string& page) { return count(page, "class=\"line c5 d2\""); };
  const auto without = lines(report_html(c));
  c.forecasts.front().seasonal_naive = {7.25, 8.5};
  const auto page = report_html(c);
  EXPECT_EQ(lines(page), without + 1);
  EXPECT_TRUE(holds(page, "<td>7.25</td>"));
}

TEST(Report, EpsilonIsAStaircaseNowhereBelowWhatWasSpent) {
  // The step count 200 (epoch 100) cost 0.7: that already bounds every step from the first one on.
  const auto page = report_html(content());
  const auto begin = page.find("<title>Epsilon over epochs");
  const auto path = page.find("class=\"line c0 d0\"", begin);
  ASSERT_NE(path, std::string::npos);
  const auto d = page.substr(page.find("d=\"", path), page.find("\"><title>", path) - page.find("d=\"", path));
  EXPECT_EQ(count(d, "V"), 2U) << d;
  EXPECT_EQ(count(d, "L"), 0U) << d;
}

}  // namespace
}  // namespace tsdp::exporting
