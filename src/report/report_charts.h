// The drawings of a report: SVG for a page that holds plot_style_sheet(). Empty text if there is nothing to draw.
#pragma once

#include <string>

#include "report/report.h"

namespace tsdp::exporting {

[[nodiscard]] std::string forecast_chart(const ReportForecast& forecast, const ReportContent& content);
/// A legend for the curves of forecast_chart, as an inline list in HTML.
[[nodiscard]] std::string forecast_legend();
/// Bars of CRPS.
[[nodiscard]] std::string score_chart(const ReportContent& content);
[[nodiscard]] std::string loss_chart(const ReportContent& content);
[[nodiscard]] std::string epsilon_chart(const ReportContent& content);
[[nodiscard]] std::string clipping_chart(const ReportContent& content);
[[nodiscard]] std::string attack_chart(const ReportContent& content);

/// A score as written everywhere on the page, so that equal ones look equal; "–" if there is none.
[[nodiscard]] std::string score_text(double score);

}  // namespace tsdp::exporting
