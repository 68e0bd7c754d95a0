#include "training/shared_facts.h"

#include <sys/stat.h>

#include <algorithm>
#include <exception>

#include "base/digest.h"
#include "base/version.h"
#include "run/charge.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

using Json = nlohmann::ordered_json;

/// Tells keys that ranks share apart; "" for none.
std::string print_of(const std::optional<SecretKey>& key) { return key ? key_print(*key) : ""; }

/// What one rank tells.
Json facts_of(const data::PreparedData& data, const Ranks& ranks) {
  Json files = Json::array();
  for (const auto& file : data.shards->files)
    files.push_back(
        {{"lengths", file.training_length},
         {"digest",
          ranks.sampling_key() ? sha256(cat("tsdp shard ", ranks.sampling_key()->hex(), file.digest)) : file.digest}});
  return {{"version", version()},
          {"sampling_key", print_of(ranks.sampling_key())},
          {"mask_key", print_of(ranks.mask_key())},
          {"number_of_files", data.config.dataset.files.value()},
          {"first", data.shards->first},
          {"files", files}};
}

Json failure_of(const Error& error) { return {{"error", error.what()}, {"exit", static_cast<int>(error.code())}}; }

/// Throws the first failure among these; else UsageError if they do not fit together.
void require_fit(const std::vector<Json>& facts) {
  std::int64_t next = 0;
  for (std::size_t r = 0; r < facts.size(); ++r) {
    const auto& here = facts[r];
    if (here.contains("error"))
      throw Error(static_cast<ExitCode>(here["exit"].get<int>()),
                  facts.size() == 1 ? here["error"].get<std::string>()
                                    : cat("rank ", r, ": ", here["error"].get<std::string>()));
    for (const auto& [key, what] :
         {std::pair{"version", "version of tsdp"}, std::pair{"number_of_files", "dataset.files"},
          std::pair{"sampling_key", "--sampling-key"}})
      if (here[key] != facts.front()[key])
        throw UsageError(cat(what, ": found ", here[key].dump(), " on rank ", r, " and ", facts.front()[key].dump(),
                             " on rank 0; expected the same on all ranks"));
    if (r > 1 && here["mask_key"] != facts[1]["mask_key"])
      throw UsageError(cat("--mask-key: found another key on rank ", r,
                           " than on rank 1; expected the same on all ranks "
                           "but rank 0"));
    if (here["first"] != next)
      throw UsageError(cat("dataset.files: found other files on rank ", r, " than are its own; start all ranks anew"));
    next += static_cast<std::int64_t>(here["files"].size());
  }
}

/// What rank 0 makes of all facts, or the failure that it found; sent to all.
Json merged(const std::vector<std::string>& texts) {
  try {
    std::vector<Json> facts;
    facts.reserve(texts.size());
    for (const auto& text : texts) facts.push_back(parse_json(text, "a rank's facts"));
    require_fit(facts);
    Json files = Json::array();
    for (const auto& here : facts) files.insert(files.end(), here["files"].begin(), here["files"].end());
    return {{"files", files}};
  } catch (const Error& error) { return failure_of(error); }
}

void throw_failure(const Json& found) {
  if (found.contains("error"))
    throw Error(static_cast<ExitCode>(found["exit"].get<int>()), found["error"].get<std::string>());
}

/// `config` without what names files, which may lie elsewhere on every rank, and whose contents are compared or come
/// from rank 0 alone.
std::string comparable(Config config) {
  config.dataset.path = "";
  config.dataset.covariates.reset();
  config.model.start = "";
  config.model.candidates.clear();
  config.privacy.noise_coefficients.reset();
  return config_text(config);
}

}  // namespace

SecretKey sampling_key_of(const SecretKey& shared, const std::string& key_print) {
  return SecretKey::from_stream(shared, cat("sampling of ranks, run with key ", key_print), 0);
}

std::optional<SecretKey> shared_sampling_key(const Config& config, const Ranks& ranks) {
  return config.training.reproducible ? SecretKey::from_seed(static_cast<std::uint64_t>(config.training.seed))
                                      : ranks.sampling_key();
}

SecretKey read_shared_key(const std::string& option, const std::filesystem::path& file) {
  const auto where = cat(option, ": ", file.string());
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0)
    throw UsageError(cat(where, ": no such file; expected one with 64 hexadecimal digits: openssl rand -hex 32"));
  if (S_ISREG(status.st_mode) && (status.st_mode & 0077) != 0)
    throw UsageError(
        cat(where, ": others may read it; expected a file for its owner alone: chmod 600 ", file.string()));
  const auto text = std::string(trimmed(read_file(file)));
  try {
    return SecretKey::from_hex(text);
  } catch (const DataError&) {  // whose text would show the key
    throw DataError(cat(where, ": found ", text.size(), " characters; expected 64 hexadecimal digits"));
  }
}

data::PreparedData shared_data(const std::function<data::PreparedData(data::Rank)>& read, Ranks& ranks) {
  std::optional<data::PreparedData> data;
  Json facts;
  try {
    data = read(ranks.rank());
    if (!data->shards) {
      if (ranks.alone()) return std::move(*data);
      throw UsageError(cat("dataset.path: found ", data->config.dataset.path, " with ", ranks.rank().of,
                           " ranks; expected ", rank_in_path, " in it, since each rank reads files of its own"));
    }
    if (!ranks.alone() && !data->config.privacy.enabled)
      throw UsageError(cat("privacy.enabled: found false with ", ranks.rank().of,
                           " ranks, which add up clipped gradients alone; expected true, or one process"));
    if (!ranks.alone() && !data->config.training.reproducible && !ranks.sampling_key())
      throw UsageError(cat("--sampling-key: not given, with ", ranks.rank().of,
                           " ranks, which draw the same windows; expected the same file on every rank: "
                           "openssl rand -hex 32"));
    if (data->config.training.mask_sums && !ranks.alone() && ranks.rank().of < 3)
      throw UsageError(cat("training.mask_sums: found true with ", ranks.rank().of,
                           " ranks, of which rank 0 would know the other's sum; expected three or more"));
    if (!ranks.is_first() && data->config.training.mask_sums != ranks.mask_key().has_value())
      throw UsageError(cat("--mask-key: ", ranks.mask_key() ? "given" : "not given", " with training.mask_sums ",
                           ranks.mask_key() ? "false" : "true",
                           "; expected both, on all ranks but rank 0, with one file that rank 0 has not: "
                           "openssl rand -hex 32"));
    facts = facts_of(*data, ranks);
  } catch (const Error& error) {
    if (ranks.alone()) throw;
    facts = failure_of(error);
  }
  const auto texts = ranks.gathered(facts.dump());
  const auto all = parse_json(ranks.from_first(ranks.is_first() ? merged(texts).dump() : ""), "what rank 0 has sent");
  throw_failure(all);
  data->shards->files.clear();
  for (const auto& file : all["files"])
    data->shards->files.push_back(
        {file["lengths"].get<std::vector<std::int64_t>>(), file["digest"].get<std::string>()});
  if (ranks.sampling_key()) data->shards->sampling_print = key_print(*ranks.sampling_key());
  return std::move(*data);
}

void require_one_run(const Config& settled, Ranks& ranks) {
  if (ranks.alone()) return;
  const auto texts = ranks.gathered(comparable(settled));
  Json verdict = Json::object();
  for (std::size_t r = 1; r < texts.size() && verdict.empty(); ++r) {
    const auto here = split(texts[r], '\n');
    const auto first = split(texts.front(), '\n');
    const auto differs = std::mismatch(here.begin(), here.end(), first.begin(), first.end());
    if (differs.first == here.end() && differs.second == first.end()) continue;
    const auto line = [](auto at, const auto& lines) { return at == lines.end() ? "" : std::string(trimmed(*at)); };
    verdict =
        failure_of(UsageError(cat("the configuration: found '", line(differs.first, here), "' on rank ", r, " and '",
                                  line(differs.second, first), "' on rank 0; expected the same on all ranks")));
  }
  throw_failure(parse_json(ranks.from_first(verdict.dump()), "what rank 0 has sent"));
}

}  // namespace tsdp::training
