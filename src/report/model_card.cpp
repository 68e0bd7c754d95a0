#include "model_card.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/markdown.h"
#include "plain_words.h"
#include "tsdp/base/text.h"
#include "tsdp/evaluation/metrics.h"

namespace tsdp::exporting {
namespace {

using Json = nlohmann::ordered_json;

/// A name as it is, whatever Markdown would read in it.
std::string code(const std::string& name) {
  const auto shown = visible(name);
  return shown.find('`') == std::string::npos ? cat("`", shown, "`") : cat("`` ", shown, " ``");
}

/// A text in which nothing but its words is read: names may stand in it.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : visible(text)) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '&': out += "&amp;"; break;
      case '*':
      case '_':
      case '[':
      case ']':
      case '`':
        out += '\\';
        out += c;
        break;
      default: out += c;
    }
  }
  return out;
}

/// The number under `name`, which a verified model has.
std::int64_t count_in(const Json& object, const char* name) {
  const double found = number_in(object, name);
  return std::isfinite(found) ? static_cast<std::int64_t>(found) : 0;
}

std::vector<std::string> texts_in(const Json& object, const char* name) {
  std::vector<std::string> out;
  for (const auto& item : part(object, name))
    if (item.is_string()) out.push_back(code(item.get<std::string>()));
  return out;
}

/// Whether training changed how forecasts are mixed (training.trainable: mixture), and no weight of the network.
bool trains_mixture(const Json& model) {
  const auto& mixture = part(part(model, "sizes"), "mixture");
  return mixture.is_object() && mixture.value("trained", false);
}

std::string what_it_is(const Json& model, mechanism::StartOrigin origin, bool took_steps) {
  const auto& sizes = part(model, "sizes");
  const auto& mixture = part(sizes, "mixture");
  auto out =
      cat("- The network is ", code(text_in(model, "name")), " with ", count_in(model, "parameters"), " weights",
          trains_mixture(model) ? ", those of its start" : "", ". The model forecasts the next ",
          count_in(model, "prediction_length"), " steps of ", text_in(model, "frequency"),
          " of a series, mean and quantiles, from the series' last ", count_in(model, "past_length"), " values.\n");
  std::vector<std::string> names;
  bool rests_on_data = false;
  for (const auto& member : part(mixture, "members")) {
    const auto method = text_in(member, "method");
    rests_on_data = rests_on_data || (method == "start" && mechanism::rests_on_data(origin));
    if (auto name = code(method); std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  for (const auto& network : part(mixture, "networks")) names.push_back(code(text_in(network, "name")));
  if (!names.empty())
    out += cat("- The network's forecast is mixed with those of candidates (", join(names, ", "),
               "), by how each did on the series' own past",
               trains_mixture(model) && took_steps ? " and by numbers that were trained on the data. " : ". ",
               rests_on_data ? "Of these, `start` was trained on data.\n" : "None of these was trained on data.\n");
  if (const auto external = texts_in(mixture, "external"); !external.empty())
    out += cat("- It can mix in forecasts of other models and programs: ", join(external, ", "),
               ". They are no part of the model, and its statement does not cover them.\n");
  const double lower = number_in(sizes, "lower_bound");
  const double upper = number_in(sizes, "upper_bound");
  if (std::isfinite(lower)) out += cat("- No forecast is below ", lower, ".\n");
  if (std::isfinite(upper)) out += cat("- No forecast is above ", upper, ".\n");
  if (const auto together = texts_in(model, "variables"); !together.empty())
    out += cat("- It forecasts ", join(together, ", "), " of each series together, and needs all of them.\n");
  if (const auto needed = texts_in(model, "covariates"); !needed.empty())
    out += cat("- It needs the covariates ", join(needed, ", "), " of past and coming steps.\n");
  return out;
}

/// SubsamplingScheme::mean_windows from a ledger's `mechanism`.
double windows_of_a_step(const Json& data) {
  const auto number = [&](const char* key) { return number_in(data, key); };  // NaN if it is missing or null
  const double sequences = number("num_sequences");
  const double each = data.contains("subsequences_per_sequence") ? number("subsequences_per_sequence") : 1.0;
  const double batches = number("batches");
  const double size = number("batch_size");
  const auto top = text_in(data, "top_level");
  if (top == "poisson" || top == "cyclic_poisson") {
    if (const double rate = number("rate"); std::isfinite(rate)) return each * sequences * rate;
    return std::isfinite(batches) ? each * sequences / batches : size;
  }
  if (text_in(data, "record") == "series" && top != "wor") return each * sequences / number("steps_per_epoch");
  // What a step is divided by may be more than there is.
  return each *
         (std::isfinite(batches) ? std::ceil(sequences / batches) : std::min(sequences, std::floor(size / each)));
}

std::string training_data(const Json& ledger, const Json& model, mechanism::StartOrigin origin) {
  const auto& data = part(ledger, "mechanism");
  const auto shortest = count_in(data, "shortest_sequence");
  const auto longest = count_in(data, "longest_sequence");
  const bool synthetic = !part(ledger, "synthetic_data").is_null();
  const bool owned = data.contains("num_series");
  auto out = cat(count_in(data, owned ? "num_series" : "num_sequences"), synthetic ? " synthetic" : "", " series ",
                 owned                        ? cat("of ", count_in(data, "num_sequences"), " owners, each ")
                 : data.contains("variables") ? cat("of ", count_in(data, "variables"), " variables, each ")
                                              : std::string(),
                 "of ", shortest == longest ? cat(shortest) : cat(shortest, " to ", longest), " steps of ",
                 text_in(model, "frequency"),
                 synthetic ? "."
                 : owned   ? "; their number and lengths, and which have the same owner, are public."
                           : "; their number and lengths are public.");
  const auto steps = count_in(ledger, "steps_taken");
  const auto windows = rounded(windows_of_a_step(data), 4);
  out += steps == 0
             ? " No step of training was taken on them."
             : cat(" Training took ", steps, steps == 1 ? " step of " : " steps of ", windows,
                   windows == "1" ? " window on average" : " windows on average",
                   trains_mixture(model) ? ", and changed how forecasts are mixed, no weight of the network." : ".");
  switch (origin) {
    case mechanism::StartOrigin::fresh: out += " It began with random weights.\n"; break;
    case mechanism::StartOrigin::synthetic:
      out += " It began with weights that were trained on synthetic series alone, if at all.\n";
      break;
    case mechanism::StartOrigin::trained:
    case mechanism::StartOrigin::trained_without_privacy:
      out += " It began with weights that were trained on data.\n";
      break;
  }
  return out;
}

std::string scores_of(const CardScores& scored) {
  const auto& scores = scored.scores;
  auto out = cat(scores.model.windows(), " ", scored.windows, " windows of ", code(scored.dataset),
                 ":\n\n| forecaster | CRPS | in the 80 % band |\n| --- | --- | --- |\n");
  const auto row = [&](const std::string& name, const Json& metrics) {
    const double crps = number_in(metrics, "mean_weighted_quantile_loss");
    const double share = evaluation::share_in_band(metrics);
    out += cat("| ", markdown_cell(name), " | ", std::isfinite(crps) ? rounded(crps, 4) : std::string("–"), " | ",
               std::isfinite(share) ? cat(rounded(100.0 * share, 3), " %") : std::string("–"), " |\n");
  };
  row("this model", scores.model.json());
  const auto beside = evaluation::scored_beside(scores);
  const std::string start = mechanism::rests_on_data(scores.start_origin) ? "its start, which was trained on data"
                                                                          : "its start, before any of the data";
  for (const auto& [name, metrics] : beside.items()) row(name == "start" ? start : code(name), metrics);
  for (const auto& remark : scores.remarks) out += cat("\n", plain(remark), ".\n");
  return out +
         "\nCRPS is the loss at the quantiles 10 %, …, 90 % as a share of the values' size; lower is better. These "
         "scores compare with true values of the series. **No epsilon covers them**: publish them only if you may "
         "publish such a summary of the data.\n";
}

std::string how_to_use(const Json& model) {
  const bool covariates = !texts_in(model, "covariates").empty();
  return cat("\n## How to use it\n\n```python\nimport tsdp\n\nforecasts = tsdp.load(\"model.pt\")",
             covariates ? ".with_covariates(known)" : "",
             ".predict(frame)\n```\n\nNo code in the file runs. `tsdp-forecast --model model.pt",
             covariates ? " --covariates known.csv" : "", "` does the same without Python.\n");
}

}  // namespace

std::string model_card(const ModelMetadata& metadata, const std::optional<CardScores>& scores) {
  const auto& model = metadata.model;
  const auto& ledger = metadata.privacy;
  const auto origin = mechanism::start_origin_of(ledger, "privacy.json");
  const bool protects = ledger.value("private", false) && !ledger.value("reproducible", false) &&
                        origin != mechanism::StartOrigin::trained_without_privacy;
  // Private forecasts know neither.
  const bool is_simple =
      part(part(ledger, "covariates"), "protected") != Json(true) && !part(ledger, "mechanism").contains("variables");
  auto out = cat("---\nlibrary_name: tsdp\npipeline_tag: time-series-forecasting\ntags: [time-series-forecasting",
                 protects ? ", differential-privacy" : "", "]\n---\n\n# A forecaster of ",
                 count_in(model, "prediction_length"), " steps of ", text_in(model, "frequency"), "\n\nMade by ",
                 text_in(model, "program"), " from what the model's file says.\n\n## What it is\n\n",
                 what_it_is(model, origin, ledger.value("steps_taken", std::uint64_t{0}) > 0),
                 "\n## What it may be used for\n\nForecasts of series of the same kind, in the same steps. A forecast "
                 "shows the values that it is made from: give it only to those who may see them",
                 is_simple ? ", or make it with `tsdp-forecast --private`" : "", ".\n\n## Privacy\n\n**",
                 plain(text_in(ledger, "statement")), "**\n\n");
  if (const auto state = text_in(ledger, "state"); state != "finished")
    out += cat("The run was not finished when this model was exported: its ledger says ", code(state), ".\n\n");
  for (const auto& paragraph : promise_in_words(ledger, origin)) out += cat(paragraph, "\n\n");
  const auto list = [&](const std::string& title, const std::vector<std::string>& entries) {
    if (entries.empty()) return;
    out += cat("### ", title, "\n\n");
    for (const auto& entry : entries) out += cat("- ", plain(entry), "\n");
    out += "\n";
  };
  std::vector<std::string> warnings;
  for (const auto& warning : part(ledger, "warnings"))
    if (warning.is_string()) warnings.push_back(warning.get<std::string>());
  list("Warnings", warnings);
  if (ledger.value("private", false)) list("What it does not cover", not_covered(ledger));
  return out + cat("Anyone can check the statement: `tsdp-account verify model.pt` rederives it from the terms in the "
                   "model's ledger.\n\n## Training data\n\n",
                   training_data(ledger, model, origin), "\n## Scores\n\n",
                   scores
                       ? scores_of(*scores)
                       : "None stand here: scores compare with true values, and no epsilon covers them. `tsdp-evaluate "
                         "--card FILE` writes a card with them.\n",
                   how_to_use(model));
}

}  // namespace tsdp::exporting
