#include "report/report.h"

#include <algorithm>
#include <cmath>

#include "plain_words.h"
#include "plot/line_plot.h"
#include "report_charts.h"
#include "report_style.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/metrics.h"

namespace tsdp::exporting {
namespace {

using Json = nlohmann::ordered_json;

std::string e(std::string_view text) { return xml_escaped(text); }

bool is_private(const ReportContent& c) { return c.ledger.is_object() && c.ledger.value("private", false); }

double upper_epsilon(const ReportContent& c) { return number_in(part(c.ledger, "epsilon"), "upper"); }

std::string percent(double share, int digits = 3) { return cat(rounded(100.0 * share, digits), " %"); }
/// Never smaller than the share.
std::string percent_up(double share, int digits = 3) { return cat(rounded_up(100.0 * share, digits), " %"); }

/// A number far from 1: "10⁻⁷".
std::string small(double value) {
  return std::isfinite(value) ? tick_label(value, AxisScale::linear) : std::string("?");
}

std::string head(const ReportContent& c) {
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri "
      "'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"robots\" content=\"noindex\">\n<title>",
      e(c.model), " on ", e(c.dataset), " – private report</title>\n<style>", style_sheet, plot_style_sheet(),
      ".tsdp-plot .paper{fill:var(--card)}.tsdp-plot .bar{stroke:none}</style>\n</head>\n<body>\n");
}

std::string tile(const std::string& number, const std::string& what) {
  return cat("<li><b>", e(number), "</b>", e(what), "</li>\n");
}

constexpr const char* crps_name = "mean_weighted_quantile_loss";

/// What the model is compared with; null if nothing that is free has a score.
const ReportScore* best_free(const ReportContent& c) { return c.best_free == 0 ? nullptr : &c.scores.at(c.best_free); }

/// The model's score next to the best that is free, in words; empty if either is missing.
std::string comparison(const ReportContent& c, const char* metric = crps_name) {
  const auto* free = best_free(c);
  if (free == nullptr) return {};
  const double ours = number_in(c.scores[0].metrics, metric);
  const double theirs = number_in(free->metrics, metric);
  if (!std::isfinite(ours) || !std::isfinite(theirs) || !(theirs > 0.0)) return {};
  const double gap = ours / theirs - 1.0;
  if (std::abs(gap) < 0.005) return cat("as good as ", free->name);
  if (gap >= 1.0) return cat(rounded(ours / theirs, 2), " times as bad as ", free->name);
  return cat(percent(std::abs(gap), 2), gap < 0.0 ? " better than " : " worse than ", free->name);
}

/// Whether the model's median alone is worse than that of the best that is free, though CRPS is better.
bool only_bands_help(const ReportContent& c) {
  const auto* free = best_free(c);
  if (free == nullptr) return false;
  const auto gap = [&](const char* metric) {
    return number_in(c.scores[0].metrics, metric) - number_in(free->metrics, metric);
  };
  return gap(crps_name) < 0.0 && gap("ND") > 0.0;
}

std::string header(const ReportContent& c) {
  std::string out =
      "<header>\n<p class=\"banner\" role=\"note\">Private: shows data, do not release. Nothing on this page is "
      "covered by epsilon.</p>\n";
  out += cat("<h1>", e(c.model), " on ", e(c.dataset), "</h1>\n<p class=\"faint\">", e(c.program),
             c.made.empty() ? "" : ", ", e(c.made), "</p>\n");
  const auto state = text_in(c.ledger, "state");
  if (!state.empty() && state != "finished")
    out += cat("<p class=\"banner\">The run is not finished: its ledger says “", e(state), "”.</p>\n");
  if (c.ledger.is_object() && c.ledger.value("reproducible", false))
    out += is_private(c) ? "<p class=\"banner\">Not for release: the randomness follows from the seed, so whoever "
                           "knows the seed can remove the noise.</p>\n"
                         : "";
  if (const auto about = about_start(c.start_origin); !about.empty())
    out += cat("<p class=\"banner\">", e(about), "</p>\n");
  out += "<ul class=\"tiles\">\n";
  if (is_private(c)) {
    const std::string alone =
        cat(mechanism::rests_on_data(c.start_origin) ? " (this run alone, without its start)" : "",
            c.ledger.value("reproducible", false) ? " (for whoever does not know the seed)" : "");
    if (const double epsilon = upper_epsilon(c); std::isfinite(epsilon))
      out += tile(cat("ε ≤ ", rounded_up(epsilon, 4)),
                  cat("at δ = ", small(number_in(c.ledger, "delta")), ", for ", protected_unit(c.ledger), alone));
    if (const double advantage = number_in(part(c.ledger, "attack"), "advantage"); std::isfinite(advantage))
      out += tile(cat("≤ ", percent_up(0.5 + 0.5 * advantage, 4)),
                  cat("right guesses of the best possible attacker; a coin has 50 %", alone));
  } else if (c.ledger.is_object() && c.ledger.contains("synthetic_data") &&
             c.start_origin != mechanism::StartOrigin::trained_without_privacy) {
    out += mechanism::rests_on_data(c.start_origin)
               ? tile("Synthetic series", "added no data of anyone to the start; the start's own statement holds")
               : tile("Synthetic series", "the model has seen no data of anyone");
  } else {
    out += tile("No privacy", "trained without clipping and noise: treat the model like the data");
  }
  if (!c.scores.empty())
    if (const double crps = number_in(c.scores[0].metrics, "mean_weighted_quantile_loss"); std::isfinite(crps)) {
      const auto compared = comparison(c);
      out += tile(cat("CRPS ", score_text(crps)),
                  cat("on the ", c.windows, " windows (lower is better)", compared.empty() ? "" : ": ", compared,
                      compared.empty() ? "" : ", the best that is free"));
    }
  return out + "</ul>\n</header>\n";
}

std::string numbers_table(const ReportForecast& f, const ReportContent& c) {
  std::string out =
      cat("<details><summary>Numbers of series ", e(f.series),
          "</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Numbers of series ",
          e(f.series), "\"><table>\n<thead><tr><th scope=\"col\">", e(c.step), " step</th><th scope=\"col\">truth</th>",
          f.seasonal_naive.empty() ? "" : "<th scope=\"col\">seasonal naive</th>");
  for (const double level : report_levels) out += cat("<th scope=\"col\">", 100.0 * level, " %</th>");
  out += "</tr></thead>\n<tbody>\n";
  const auto cell = [](double value) {
    return cat("<td>", std::isfinite(value) ? rounded(value, 7) : std::string("–"), "</td>");
  };
  for (std::size_t k = 0; k < f.truth.size(); ++k) {
    out += cat("<tr><td>", k, "</td>", cell(f.truth[k]), f.seasonal_naive.empty() ? "" : cell(f.seasonal_naive.at(k)));
    for (const auto& quantile : f.quantiles) out += cell(quantile.at(k));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div></details>\n";
}

std::string forecasts(const ReportContent& c) {
  std::string out = "<section>\n<h2>Forecasts and what came</h2>\n";
  if (c.forecasts.empty())
    return cat(out,
               c.scores.empty() ? cat("<p>There are no ", e(c.windows), " windows to forecast here.</p>")
                                : cat("<p>None is shown: no ", e(c.windows),
                                      " window of the series read here has a score to choose by.</p>"),
               "\n</section>\n");
  out += cat("<p>", e(c.how_chosen), "</p>\n", forecast_legend(),
             "<p class=\"faint\">Of every ten true values about nine should lie in the wide band and five in the "
             "narrow one.</p>\n<div class=\"grid\">\n");
  for (std::size_t i = 0; i < std::min(c.forecasts.size(), most_report_forecasts); ++i) {
    const auto& f = c.forecasts[i];
    out += cat("<figure>\n<figcaption><h3>Series ", e(f.series), "</h3>", e(f.why), "; from ", e(f.start),
               "</figcaption>\n", forecast_chart(f, c), numbers_table(f, c), "</figure>\n");
  }
  return out + "</div>\n</section>\n";
}

std::string scores(const ReportContent& c) {
  std::string out = "<section>\n<h2>How good the forecasts are</h2>\n";
  if (c.scores.empty()) return cat(out, "<p>There are no ", e(c.windows), " windows to score here.</p>\n</section>\n");
  struct Column {
    const char* name;
    const char* label;
  };
  constexpr std::array columns = {Column{"mean_weighted_quantile_loss", "CRPS"}, Column{"ND", "ND"},
                                  Column{"NRMSE", "NRMSE"}, Column{"MASE", "MASE"}, Column{"sMAPE", "sMAPE"}};
  const auto chart = score_chart(c);
  if (const auto compared = comparison(c); !compared.empty())
    out += cat(
        "<p>By CRPS, the model is <strong>", e(compared), "</strong>, the best that can be had for nothing, on the ",
        e(c.windows), " windows.",
        only_bands_help(c) ? cat(" Its median alone, without the bands, is ", e(comparison(c, "ND")), " (ND).") : "",
        "</p>\n");
  if (const auto did =
          evaluation::what_data_did(number_in(c.scores.front().metrics, "mean_weighted_quantile_loss"), c.start_crps);
      !did.empty())
    out += cat("<p>Its start (", e(mechanism::start_cited(c.start_origin)), ") had a CRPS of ",
               score_text(c.start_crps), " already: ", did, ".</p>\n");
  for (const auto& remark : c.remarks) out += cat("<p>", e(remark), ".</p>\n");
  out +=
      cat("<div class=\"", chart.empty() ? "" : "beside",
          "\">\n<div>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Scores\"><table "
          "class=\"scores\">\n<caption>Scores on the ",
          e(c.windows),
          " windows; lower is better, but for the 80 % band</caption>\n<thead><tr><th scope=\"col\">forecaster</th>");
  for (const auto& column : columns) out += cat("<th scope=\"col\">", column.label, "</th>");
  constexpr const char* band_label = "in the 80 % band";
  out += cat("<th scope=\"col\">", band_label, "</th></tr></thead>\n<tbody>\n");
  for (const auto& score : c.scores) {
    out += cat("<tr><th scope=\"row\">", e(score.name), "</th>");
    for (const auto& column : columns) {
      const double value = number_in(score.metrics, column.name);
      out += cat("<td data-label=\"", column.label, "\">", score_text(value), "</td>");
    }
    const double share = evaluation::share_in_band(score.metrics);
    const auto words = evaluation::band_in_words(score.metrics);
    out += cat("<td data-label=\"", band_label, "\">", std::isfinite(share) ? percent(share) : std::string("–"),
               words.empty() ? "" : ", ", words, "</td></tr>\n");
  }
  out +=
      "</tbody></table></div>\n<p class=\"faint\">CRPS: losses at the quantiles 10 %, 20 %, … 90 %, as a share of the "
      "values’ size. ND: absolute errors of the median, as a share of the values’ size. NRMSE: root of the mean "
      "squared error, likewise. MASE: absolute errors beside those of seasonal naive within the past. sMAPE: relative "
      "errors of the median. 80 % band: how many true values lie between the quantiles 10 % and 90 %; 80 % would be "
      "right, and less than 77 % or more than 83 % is called too narrow or too wide. A forecaster without bands has "
      "all its quantiles in one place. Its start is the same model before this "
      "run.</p>\n</div>\n";
  if (!chart.empty()) out += cat("<figure>", chart, "</figure>\n");
  return out + "</div>\n</section>\n";
}

std::string training(const ReportContent& c) {
  std::string out = "<section>\n<h2>Training</h2>\n";
  const auto loss = loss_chart(c);
  const auto epsilon = is_private(c) ? epsilon_chart(c) : std::string();
  const auto clipping = is_private(c) ? clipping_chart(c) : std::string();
  if (loss.empty() && epsilon.empty() && clipping.empty())
    return out + "<p>Nothing was logged of the training.</p>\n</section>\n";
  const auto figure = [&](const std::string& chart, const char* title, const std::string& caption) {
    if (!chart.empty())
      out += cat("<figure>\n<figcaption><h3>", title, "</h3>", caption, "</figcaption>\n", chart, "</figure>\n");
  };
  out += "<div class=\"grid\">\n";
  figure(loss, "Loss",
         cat(e(c.loss), "; where many batches were logged, medians of neighbours, with their 10 % to 90 % band.",
             c.validates ? " The validation part is not trained on." : " There is no validation part."));
  figure(epsilon, "Epsilon", "What the steps so far cost at most. No step is taken that could pass the target.");
  figure(clipping, "Clipping",
         "Share of gradients (of windows, or of whole series or owners where those are protected) that were cut to the "
         "clip norm. Near 100 % all count alike, which is usual with small clip norms.");
  return out + "</div>\n</section>\n";
}

/// Text with Markdown's ** as HTML.
std::string emphasised(const std::string& text) {
  std::string out;
  auto rest = e(text);
  for (bool opens = true;; opens = !opens) {
    const auto at = rest.find("**");
    out += rest.substr(0, at);
    if (at == std::string::npos) return out;
    out += opens ? "<strong>" : "</strong>";
    rest.erase(0, at + 2);
  }
}

std::string privacy(const ReportContent& c) {
  std::string promise;
  for (const auto& paragraph : promise_in_words(c.ledger, c.start_origin))
    promise += cat("<p>", emphasised(paragraph), "</p>\n");
  if (!is_private(c)) return cat("<section>\n<h2>Privacy</h2>\n", promise, "</section>\n");
  std::string out = "<section>\n<h2>What is promised, in plain words</h2>\n";
  const auto chart = attack_chart(c);
  out += cat("<div class=\"", chart.empty() ? "" : "beside", "\">\n<div>\n", promise);
  out +=
      cat("<p class=\"exact\">Exactly: ", e(text_in(c.ledger, "statement")), " Bound: ", e(text_in(c.ledger, "bound")),
          "; the epsilon lies in [", rounded_down(number_in(part(c.ledger, "epsilon"), "lower"), 5), ", ",
          rounded_up(upper_epsilon(c), 5), "] for this theorem.</p>\n");
  out += "<h3>What it does not cover</h3>\n<ul>\n";
  for (const auto& entry : not_covered(c.ledger)) out += cat("<li>", e(entry), "</li>\n");
  out += "</ul>\n</div>\n";
  if (!chart.empty())
    out +=
        cat("<figure>\n<figcaption><h3>The best attacker against guessing</h3>The closer the curve to the diagonal, "
            "the less an attacker gains.</figcaption>\n",
            chart, "</figure>\n");
  return out + "</div>\n</section>\n";
}

/// What the release of the model depends on; empty if on nothing.
std::string may_be_released(const ReportContent& c) {
  const bool on_synthetic = !part(c.ledger, "synthetic_data").is_null();
  if (c.ledger.is_object() && c.ledger.value("reproducible", false) && is_private(c))
    return " not, since the noise follows from the seed";
  if (c.start_origin == mechanism::StartOrigin::trained_without_privacy && (is_private(c) || on_synthetic))
    return " only if the data of its start may be";
  if (is_private(c) || (on_synthetic && !mechanism::rests_on_data(c.start_origin))) return "";
  return " only if the data may be";
}

std::string facts(const ReportContent& c) {
  if (c.facts.empty()) return {};
  std::string out =
      "<section>\n<h2>Facts of the run</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Facts "
      "of the run\"><table class=\"facts\">\n<tbody>\n";
  for (const auto& [what, value] : c.facts)
    out += cat("<tr><th scope=\"row\">", e(what), "</th><td>", e(value), "</td></tr>\n");
  return out + "</tbody></table></div>\n</section>\n";
}

}  // namespace

std::string report_html(const ReportContent& c) {
  return cat(head(c), header(c), "<main>\n", forecasts(c), scores(c), training(c), privacy(c), facts(c),
             "</main>\n<footer><p>", e(c.program),
             ". What of a run may be released: config.yaml and privacy.json; model.pt and model_card.md",
             may_be_released(c), "; nothing under private/.</p></footer>\n</body>\n</html>\n");
}

}  // namespace tsdp::exporting
