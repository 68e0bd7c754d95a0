// What a report says, gathered from a run's folder, its data and its exported model.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"
#include "tsdp/evaluation/backtest.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/run/run_folder.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/configured.h"

namespace tsdp::exporting {

/// Where a report comes from. All references need to outlive only the call.
struct ReportSources {
  const Config& config;
  const training::RunFolder& folder;  ///< metrics.jsonl is read if present
  const data::PreparedData& data;
  torch::jit::Module& module;                ///< the exported model, on the CPU
  const ModelMetadata& metadata;             ///< with the ledger
  const evaluation::BacktestResult& scores;  ///< of `module` on the windows, and of all that it is scored beside
  std::string windows = "test";              ///< "test" or "validation"
  std::vector<std::string> series = {};  ///< ids of the series to show; chosen by their scores if none
};

/// Chooses forecasts to show: for the series with the best, the median and the worst CRPS and some between them, or for
/// the named series, the middle one of each series' windows. None is chosen by its own look. Then forecasts them, and
/// reads the rest from the run. Series without any observed value in the windows are not shown unless they are named.
/// Throws UsageError for an id that no series has.
[[nodiscard]] ReportContent report_content(const ReportSources& sources);

/// Which of `series` series a report shows, in words: `shown` of the `scored` ones with a finite CRPS, or those that
/// were asked for.
[[nodiscard]] std::string how_chosen(std::size_t series, std::size_t scored, std::size_t shown, bool asked_for,
                                     const std::string& windows, const std::string& things = "series");

/// Writes private/report.html of the run: atomically, for the owner only.
void write_report(const ReportSources& sources);

}  // namespace tsdp::exporting
