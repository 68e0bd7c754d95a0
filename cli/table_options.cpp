#include "table_options.h"

namespace tsdp::cli {

std::vector<CLI::Option*> add_table_options(CLI::App& app, data::StatedForm& form) {
  auto* columns = app.add_option_function<std::string>(
      "--columns", [&form](const std::string& text) { form.columns = data::parse_columns(text); },
      "item=NAME,time=NAME,value=NAME: columns of a CSV file that have no usual names; any part may be left out. "
      "Several value=NAME: the variables of each series");
  auto* duplicates = app.add_option("--duplicates", form.duplicates,
                                    "Several values of one series at one time in CSV: error, last or mean");
  auto* gaps = app.add_option(
      "--gaps", form.gaps,
      "Steps without a row in CSV: error or missing; by default an error with a column a series, else missing");
  return {columns, duplicates, gaps};
}

}  // namespace tsdp::cli
