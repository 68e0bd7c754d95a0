// Where the files that a configuration names are, and what to do about one that is missing.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"
#include "tsdp/settings/config.h"

namespace tsdp {

std::filesystem::path project_root() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  for (auto folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    for (const auto& root : {folder, folder / "share" / "tsdp"})
      if (std::filesystem::exists(root / "configs", ignored) && std::filesystem::exists(root / "data", ignored))
        return root;
  return {};
}

namespace {

/// The reason why a searched place has no file, if there is more to say than that nothing is there.
std::string unless_absent(const std::string& reason) {
  return reason == std::strerror(ENOENT) || reason == std::strerror(ENOTDIR) ? std::string() : cat(" (", reason, ")");
}

}  // namespace

std::filesystem::path find_file(const std::string& key, const std::string& path,
                                const std::filesystem::path& config_file, const std::string& hint) {
  const std::filesystem::path given(path);
  std::vector<std::filesystem::path> places = {given};
  if (given.is_relative()) {
    std::error_code ignored;
    const auto folder = config_file.parent_path();
    places.push_back(folder / given);
    if (const auto root = project_root(); !root.empty()) places.push_back(root / given);
    // A run names its data from its own folder or the project's root; a file of that name in the working directory is a
    // different one.
    if (config_file.filename() == "config.yaml" &&
        (std::filesystem::exists(folder / "privacy.json", ignored) ||
         std::filesystem::exists(folder / "private" / "checkpoints", ignored)))
      std::rotate(places.begin(), places.begin() + 1, places.end());
  }
  std::vector<std::string> looked;
  for (const auto& place : places) {
    const auto reason = why_no_file(place);
    if (reason.empty()) return place;
    const auto text = place.lexically_normal().string() + unless_absent(reason);
    if (std::find(looked.begin(), looked.end(), text) == looked.end()) looked.push_back(text);
  }
  throw DataError(cat(key, ": no file '", path, "'; looked for ", join(looked, ", "), hint));
}

namespace {

/// A file that shipped configurations name and that is not shipped: too large, or made by a command.
struct FileToGet {
  const char* file;
  const char* fetched_as;  ///< by scripts/fetch_data.sh; null: made
  const char* origin;  ///< where it is published, or the command that makes it, up to its --output
};
constexpr FileToGet files_to_get[] = {
    {"traffic.txt.gz", "traffic", "traffic/traffic.txt.gz of github.com/laiguokun/multivariate-time-series-data"},
    {"electricity.txt.gz", "electricity",
     "electricity/electricity.txt.gz of github.com/laiguokun/multivariate-time-series-data"},
    {"solar_10_minutes_dataset.tsf", "solar_10_minutes",
     "the file of solar_10_minutes_dataset.zip, zenodo.org/records/4656144, unpacked,"},
    {"lookalike_traffic.txt.gz", nullptr, "tsdp-data generate traffic-like --series 862 --length 17544 --seed 11"},
    {"lookalike_10k.txt.gz", nullptr, "tsdp-data generate traffic-like --series 10000 --length 400 --seed 5"},
};

/// A set that the source tree has and no installation: its terms are unknown (data/README.md).
struct FileOfUnknownTerms {
  const char* file;
  const char* made_by;  ///< makes series of the same form and shape; the name of what it writes comes last
};
constexpr FileOfUnknownTerms files_of_unknown_terms[] = {
    {"exchange_rate.txt.gz", "tsdp-data generate daily --series 8 --length 7588 --seed 1 --output"},
    {"gefcom2012_load.txt.gz", "tsdp-data generate hourly --series 20 --length 39414 --seed 1 --output"},
    {"m4_hourly.tsf.gz",
     "tsdp-data generate hourly --series 414 --length 1008 --seed 2 --output made.txt.gz && tsdp-data convert "
     "--frequency 1h --start 1970-01-01 made.txt.gz"},
    {"metr_la_week_10min.txt.gz", "tsdp-data generate 10_minutes --series 207 --length 1008 --seed 1 --output"},
};

/// What to do about a missing data file, in words; `root`: where an installed copy or the checkout has its data, if
/// anywhere.
std::string how_to_get(const std::filesystem::path& path, const std::filesystem::path& root) {
  const auto folder = (root.empty() ? std::filesystem::path("data") : root / "data").lexically_normal();
  const std::string another =
      "--set dataset.path=FILE takes another file (a run that is resumed needs its own: put it back)";
  for (const auto& known : files_to_get) {
    if (path.filename() != known.file) continue;
    if (!known.fetched_as)
      return cat("; make it: ", known.origin, " --output ", (folder / known.file).string(), "; or ", another);
    std::error_code ignored;
    const auto script = root / "scripts" / "fetch_data.sh";
    const bool has_script = !root.empty() && std::filesystem::exists(script, ignored);
    return cat("; get it: ",
               has_script ? cat(script.lexically_normal().string(), " ", known.fetched_as, ", or ") : std::string(),
               "put ", known.origin, " into ", folder.string(),
               "; without it, --config lookalike_traffic.yaml trains on made data, and ", another);
  }
  for (const auto& known : files_of_unknown_terms)
    if (path.filename() == known.file)
      return cat("; its terms are unknown, so it is in tsdp's sources alone: put data/", known.file, " of them into ",
                 folder.string(), ", or made series in its place: ", known.made_by, " ", (folder / known.file).string(),
                 "; or ", another);
  return cat("; ", another);
}

}  // namespace

std::string Config::Dataset::path_of(std::int64_t file) const {
  auto out = path;
  for (auto at = out.find(rank_in_path); at != std::string::npos; at = out.find(rank_in_path, at))
    out.replace(at, rank_in_path.size(), std::to_string(file));
  return out;
}

std::filesystem::path find_data_file(const std::string& path, const std::filesystem::path& config_file) {
  return find_file("dataset.path", path, config_file, how_to_get(path, project_root()));
}

bool is_data_file(const std::string& path, const std::filesystem::path& config_file) {
  try {
    static_cast<void>(find_data_file(path, config_file));
    return true;
  } catch (const DataError&) { return false; }
}

std::filesystem::path find_copied_file(const std::string& key, const std::string& path,
                                       const std::filesystem::path& config_file) {
  const auto beside = config_file.parent_path() / path;
  return is_there(beside) ? beside : find_file(key, path, config_file);
}

std::filesystem::path FileSetting::find(const std::filesystem::path& config_file) const {
  return copied ? find_copied_file(key, *value, config_file) : find_file(key, *value, config_file);
}

std::vector<FileSetting> file_settings(Config& config) {
  std::vector<FileSetting> out;
  auto& dataset = config.dataset;
  if (dataset.covariates) out.push_back({"dataset.covariates.file", &*dataset.covariates});
  if (dataset.owner_file) out.push_back({"dataset.owner.file", &*dataset.owner_file});
  if (config.model.starts_from_file()) out.push_back({"model.start", &config.model.start, true});
  for (auto& candidate : config.model.candidates)
    if (const bool network = network_name(candidate).has_value(); network || external_name(candidate))
      out.push_back({"model.candidates", &candidate, network});
  if (auto& file = config.privacy.noise_coefficients) out.push_back({"privacy.noise.coefficients", &*file, true});
  return out;
}

std::vector<std::filesystem::path> data_files(const Config& config, const std::filesystem::path& config_file) {
  const auto& dataset = config.dataset;
  if (dataset.is_synthetic()) return {};
  if (!dataset.has_ranks()) return {find_data_file(dataset.path, config_file)};
  std::vector<std::filesystem::path> out;
  for (std::int64_t file = 0; file < dataset.files.value_or(most_files); ++file) try {
      out.push_back(find_data_file(dataset.path_of(file), config_file));
    } catch (const DataError&) { continue; }  // another rank's
  return out.empty() ? std::vector{find_data_file(dataset.path_of(0), config_file)} : out;
}

std::filesystem::path find_config_file(const std::filesystem::path& name, const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> places = {name};
  if (const auto root = project_root(); name.is_relative() && !root.empty())
    for (const auto& folder : folders) places.push_back(root / folder / name);
  std::vector<std::string> looked;
  for (const auto& place : places) {
    const auto reason = why_no_file(place);
    if (reason.empty()) return place;
    looked.push_back(place.string() + unless_absent(reason));
  }
  throw UsageError(cat("--config: no file '", name.string(), "'; looked for ", join(looked, ", ")));
}

}  // namespace tsdp
