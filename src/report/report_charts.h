// The drawings of a report: SVG for a page that holds plot_style_sheet(). Empty text where there is nothing to draw.
#pragma once

#include <string>

#include "report/report.h"

namespace tsdp::exporting {

[[nodiscard]] std::string forecast_chart(const ReportForecast& forecast, const ReportContent& content);
/// What the curves of forecast_chart are, as an inline list of HTML.
[[nodiscard]] std::string forecast_legend();
/// Bars of CRPS.
[[nodiscard]] std::string score_chart(const ReportContent& content);
[[nodiscard]] std::string loss_chart(const ReportContent& content);
[[nodiscard]] std::string epsilon_chart(const ReportContent& content);
[[nodiscard]] std::string clipping_chart(const ReportContent& content);
[[nodiscard]] std::string attack_chart(const ReportContent& content);

/// A score as it stands everywhere on the page, so that equal ones look equal; "–" where there is none.
[[nodiscard]] std::string score_text(double score);

/// The number under `name` of an object, NaN where there is none.
[[nodiscard]] double number_in(const nlohmann::ordered_json& object, const char* name);

}  // namespace tsdp::exporting
