#include "tsdp/settings/configured.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "base/log.h"
#include "data/covariates.h"
#include "data/forecast_file.h"
#include "data/oddities.h"
#include "data/owners.h"
#include "data/synthetic.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"
#include "tsdp/data/feature_store.h"
#include "tsdp/data/readers.h"

namespace tsdp::data {

StatedForm stated_form_of(const Config& config) {
  const auto& d = config.dataset;
  return {d.format,
          d.frequency,
          d.start.value_or(""),
          {d.item_column.value_or(""), d.time_column.value_or(""), d.value_columns,
           d.owner_file ? "" : d.owner_column.value_or("")},
          d.duplicates,
          d.gaps};
}

FormNames form_names_of(const std::filesystem::path& config_file) {
  const auto key = cat(config_file.string(), ": dataset.");
  return {cat(key, "format"),  cat(key, "frequency"),  cat(key, "start"),
          cat(key, "columns"), cat(key, "duplicates"), cat(key, "gaps")};
}

namespace {

Dataset synthetic_series(const Config& config, const std::filesystem::path& config_file, bool exact) {
  const auto& d = config.dataset;
  const auto where = cat(config_file.string(), ": dataset.");
  auto out = generate_synthetic(named<SyntheticKind>(d.path, cat(where, "path")),
                                {d.synthetic_series, d.synthetic_length, static_cast<std::uint64_t>(d.synthetic_seed)});
  if (d.frequency != "auto" && Frequency::parse(d.frequency) != out.frequency)
    throw UsageError(cat(where, "frequency: found ", d.frequency, "; series of the family ", d.path, " have ",
                         out.frequency.text()));
  if (exact)
    for (auto& series : out.series) series.exact.assign(series.values.begin(), series.values.end());
  return out;
}

struct Read {
  Dataset dataset;
  std::string format;
};

Read read(const Config& config, const std::filesystem::path& config_file, bool exact) {
  if (config.dataset.is_synthetic()) return {synthetic_series(config, config_file, exact), config.dataset.format};
  const auto file = find_data_file(config.dataset.path, config_file);
  auto options = read_options_of(file, stated_form_of(config), form_names_of(config_file));
  options.exact = exact;
  return {read_dataset(file, options), name(options.format)};
}

/// Drops or pads the series that are shorter than `least`.
void treat_short_series(const Config& config, std::int64_t least, Dataset& dataset) {
  const auto is_short = [&](const Series& series) { return static_cast<std::int64_t>(series.values.size()) < least; };
  // The variables of a series are equally long.
  const auto variables = dataset.variable_count();
  const auto count = std::count_if(dataset.series.begin(), dataset.series.end(), is_short) / variables;
  if (count == 0 || config.dataset.short_series == "error") return;
  const bool drops = config.dataset.short_series == "drop";
  const auto all = std::ssize(dataset.series) / variables;
  if (drops && count == all)
    throw DataError(cat(dataset.name, ": found ", all, " series, all shorter than the ", least,
                        " values that the split needs; expected longer ones, or fewer test windows"));
  log::info(cat("dataset.short_series: ", count, " of ", all, " series are shorter than the ", least,
                " values that the split needs: ", drops ? "left out" : "begun earlier, with missing values"));
  if (drops) {
    std::erase_if(dataset.series, is_short);
  } else {
    for (auto& series : dataset.series) pad_front(series, dataset.frequency, least);
  }
}

/// The owner of each series, as dataset.owner says.
std::vector<std::int64_t> owners_of(const Config& config, const std::filesystem::path& config_file,
                                    const Dataset& dataset) {
  const auto& d = config.dataset;
  const auto key = cat(config_file.string(), ": dataset.owner.column");
  if (!d.owner_file && d.format != name(Format::csv_long))
    throw UsageError(cat(key, ": found ", *d.owner_column, " with series of the format ", d.format,
                         ", which have no columns beside their values; expected dataset.owner.file, too"));
  const auto file =
      d.owner_file ? find_file("dataset.owner.file", *d.owner_file, config_file) : find_data_file(d.path, config_file);
  return read_owners(file, dataset, d.item_column.value_or(""), d.owner_column.value_or("owner"), key);
}

/// Throws UsageError for covariates that cannot be part of the records of their series.
void require_protectable(const Config& config, const Dataset& dataset, const std::filesystem::path& config_file) {
  const auto& known = dataset.covariates;
  const auto refuse = [&](const std::string& what) {
    throw UsageError(cat(config_file.string(), ": dataset.covariates.private: found true, and ", known.file, what));
  };
  if (!known.of_each_series())
    refuse(" is the same for all series; expected a file with a column of series' names, or false");
  if (known.found_categories)
    refuse(
        " has a column of text: which categories there are would be told by the model; expected them in "
        "dataset.covariates.columns, as column=category, from public knowledge");
  if (known.tables.front().always && config.privacy.relation != privacy::Relation::series)
    refuse(cat(" has one row a series, which belongs to all of its steps: privacy.relation ",
               tsdp::name(config.privacy.relation), " protects values of few steps; expected privacy.relation series"));
}

/// Of the training values and start times of some series: what a replayed step must find as it was.
std::string digest_of(std::span<const Series> series, std::span<const std::int64_t> lengths) {
  Digest out;
  for (std::size_t s = 0; s < series.size(); ++s) {
    out.add(std::as_bytes(std::span(series[s].values).first(static_cast<std::size_t>(lengths[s]))));
    out.add(std::as_bytes(std::span(&series[s].start, 1)));
  }
  out.add(std::as_bytes(lengths));
  return out.hex();
}

/// Counts the files that {rank} stands for, in `config`, and shares them out. Every rank gets one at least; but of one
/// file fewer than ranks, rank 0 gets none.
Shards own_files(Config& config, const std::filesystem::path& config_file, const Rank& rank) {
  auto& d = config.dataset;
  if (!d.files && rank.of > 1) d.files = rank.of;
  if (!d.files) {
    std::int64_t count = 1;  // without the first one, reading says so
    while (count < most_files && is_data_file(d.path_of(count), config_file)) ++count;
    constexpr std::int64_t looked_at = 8;  // beyond the last one
    for (auto later = count + 1; later <= count + looked_at; ++later)
      if (is_data_file(d.path_of(later), config_file))
        throw DataError(cat(config_file.string(), ": dataset.path: found ", d.path_of(later), ", and no ",
                            d.path_of(count), "; expected files without a gap, or dataset.files"));
    d.files = count;
  }
  if (*d.files < rank.of - 1)
    throw UsageError(cat(config_file.string(), ": dataset.files: found ", *d.files, " with ", rank.of,
                         " ranks, each of which reads a file at least; expected ", rank.of, " or more, or ",
                         rank.of - 1, " if rank 0 has no series of its own"));
  const auto first = *d.files * rank.number / rank.of;
  return {{}, first, *d.files * (rank.number + 1) / rank.of - first};
}

}  // namespace

std::vector<std::int64_t> Shards::begins() const {
  std::vector<std::int64_t> out = {0};
  for (const auto& file : files) out.push_back(out.back() + static_cast<std::int64_t>(file.training_length.size()));
  return out;
}

privacy::SeriesLengths PreparedData::training_lengths() const {
  if (shards) {
    std::vector<std::int64_t> all;
    for (const auto& file : shards->files)
      all.insert(all.end(), file.training_length.begin(), file.training_length.end());
    return {std::move(all)};
  }
  if (!dataset.variables.empty()) {
    std::vector<std::int64_t> each;
    for (std::size_t s = 0; s < split.training_length.size(); s += dataset.variables.size())
      each.push_back(split.training_length[s]);
    return privacy::SeriesLengths(std::move(each)).of_variables(dataset.variable_count());
  }
  if (dataset.owner.empty()) return {split.training_length};
  // By names in order, so that two files of the same series group them alike or not, whatever order they have. Of the
  // names nothing but this order is in the digest, which is published.
  std::vector<std::size_t> order(dataset.series.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return dataset.series[a].id < dataset.series[b].id; });
  std::map<std::int64_t, std::size_t> number_of;
  std::string numbers;
  for (const auto s : order)
    numbers += cat(number_of.try_emplace(dataset.owner[s], number_of.size()).first->second, ",");
  return {split.training_length, {dataset.owner, sha256(numbers)}};
}

Dataset read_series(const Config& config, const std::filesystem::path& config_file, bool exact) {
  return read(config, config_file, exact).dataset;
}

SplitOptions split_options_of(const Config& config) {
  const auto& d = config.dataset;
  SplitOptions split;
  split.kind = d.split == "lstnet" ? SplitKind::lstnet : SplitKind::last;
  split.prediction_length = d.prediction_length;
  split.test_windows = d.test_windows;
  split.validation_length = d.validation_length.value_or(5 * d.prediction_length);
  return split;
}

PreparedData prepare_data(Config config, const std::filesystem::path& config_file, bool private_forecasts, Rank rank) {
  const auto& noise = config.augmentation;
  // Without noise on the data, guarantees hold for changes of any size, and v does not matter.
  const bool trains_on_noised_values =
      config.privacy.enabled && config.privacy.v && (noise.context_noise > 0.0 || noise.forecast_noise > 0.0);
  const auto options = split_options_of(config);
  const bool drops = config.dataset.short_series == "drop";
  const auto exact = private_forecasts || trains_on_noised_values;
  // Short series are left out before copies are counted, and padded only afterwards: both would hide copies.
  const auto read_file = [&] {
    auto [dataset, format] = read(config, config_file, exact);
    config.dataset.format = format;
    if (config.dataset.frequency == "auto") config.dataset.frequency = dataset.frequency.text();
    if (drops) treat_short_series(config, least_length(options), dataset);
    return std::move(dataset);
  };
  std::optional<Shards> shards;
  std::vector<std::size_t> series_in_files;
  Dataset dataset;
  if (config.dataset.has_ranks()) {
    shards = own_files(config, config_file, rank);
    const auto written = config.dataset;
    for (std::int64_t file = shards->first; file < shards->first + shards->own; ++file) {
      config.dataset.path = written.path_of(file);
      auto read_here = read_file();
      for (auto& series : read_here.series) series.id = cat(file, "/", series.id);
      series_in_files.push_back(read_here.series.size());
      if (file == shards->first) dataset = std::move(read_here);
      else std::move(read_here.series.begin(), read_here.series.end(), std::back_inserter(dataset.series));
    }
    dataset.name = config.dataset.path = written.path;
    if (shards->own == 0) {
      // What other ranks find in their files; the run's configuration has it, whatever ranks it is resumed with.
      for (const auto& [key, value, such_as] :
           {std::tuple{"frequency", config.dataset.frequency, "1h"}, {"format", config.dataset.format, "csv_long"}})
        if (value == "auto")
          throw UsageError(cat(config_file.string(), ": dataset.", key,
                               ": found auto, with a rank 0 that reads no file; expected that of the series, such as ",
                               such_as));
      dataset.frequency = Frequency::parse(config.dataset.frequency);
    }
  } else {
    dataset = read_file();
  }
  if (config.dataset.has_owners()) dataset.owner = owners_of(config, config_file, dataset);
  if (dataset.variable_count() != config.dataset.variable_count())
    throw Error(ExitCode::failure,
                cat(dataset.name, ": found ", counted_series(dataset), " where the configuration has ",
                    config.dataset.variable_count(), " columns of values"));
  if (private_forecasts) require_one_variable(dataset, "a private forecast");
  require_distinct(dataset, private_forecasts        ? Copies::refused
                            : config.privacy.enabled ? Copies::refused_if_half
                                                     : Copies::told);
  if (!drops) treat_short_series(config, least_length(options), dataset);
  if (config.dataset.covariates) {
    const auto where = cat(config_file.string(), ": dataset.covariates.columns");
    const auto file = find_file("dataset.covariates.file", *config.dataset.covariates, config_file);
    const auto columns = stated_form_of(config).columns;
    if (config.dataset.has_ranks() && are_of_each_series(file, columns))
      throw UsageError(cat(file.string(),
                           ": found a column of series' names, with {rank} in dataset.path: not implemented; expected "
                           "covariates that are the same for all series"));
    dataset.covariates = read_covariates(file, dataset, config.dataset.covariate_columns, columns, where);
    config.dataset.covariate_columns = dataset.covariates.names;
    config.dataset.covariates_change = !std::all_of(dataset.covariates.tables.begin(), dataset.covariates.tables.end(),
                                                    [](const Covariates::Table& table) { return table.always; });
    require_covariates(dataset, 0);
    if (config.dataset.protects_covariates) require_protectable(config, dataset, config_file);
    if (const auto same = covariate_that_is_a_series(dataset); same && config.privacy.enabled)
      throw PrivacyError(
          cat(file.string(), ": column ", same->first, ": has the values of series ", same->second,
              config.dataset.protects_covariates
                  ? ", which are what is to be forecast; expected numbers that are known ahead of them"
                  : ", and covariates count as public; expected numbers that are not those to be protected"));
    const auto calendar = window_feature_names(dataset.frequency);
    for (const auto& name : dataset.covariates.names)
      if (std::find(calendar.begin(), calendar.end(), name) != calendar.end())
        throw UsageError(cat(where, ": found '", name,
                             "', which the calendar tells the model already; expected another name, or other columns"));
  }
  for (const auto& candidate : config.model.candidates)
    if (external_name(candidate))
      dataset.external.push_back(read_external(find_file("model.candidates", candidate, config_file), dataset,
                                               config.dataset.prediction_length));
  auto split = split_dataset(dataset, options);
  for (std::size_t first = 0; const auto count : series_in_files) {
    const auto lengths = std::span(split.training_length).subspan(first, count);
    shards->files.push_back(
        {{lengths.begin(), lengths.end()}, digest_of(std::span(dataset.series).subspan(first, count), lengths)});
    first += count;
  }
  return {std::move(dataset), std::move(split), std::move(config), std::move(shards)};
}

}  // namespace tsdp::data
