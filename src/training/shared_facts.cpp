#include "training/shared_facts.h"

#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>

#include "base/digest.h"
#include "base/log.h"
#include "base/version.h"
#include "run/charge.h"
#include "run/environment.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

using Json = nlohmann::ordered_json;

/// Tells keys that ranks share apart; "" for none.
std::string print_of(const std::optional<SecretKey>& key) { return key ? key_print(*key) : ""; }

/// Of all rows of the covariates, which every rank reads from a file of its own.
std::string digest_of(const data::Covariates& covariates) {
  Digest out;
  for (const auto& table : covariates.tables) {
    out.add(std::as_bytes(std::span(table.values)));
    out.add(std::as_bytes(std::span(&table.start, 1)));
  }
  return out.hex();
}

/// What one rank tells.
Json facts_of(const data::PreparedData& data, const Ranks& ranks) {
  const auto key = shared_sampling_key(data.config, ranks);
  Json files = Json::array();
  for (const auto& file : data.shards->files)
    files.push_back({{"lengths", file.training_length},
                     {"digest", key ? sha256(cat("tsdp shard ", key->hex(), file.digest)) : file.digest}});
  return {{"version", version()},
          {"sampling_key", print_of(ranks.sampling_key())},
          {"mask_key", print_of(ranks.mask_key())},
          {"covariates", digest_of(data.dataset.covariates)},
          {"environment", environment_of(at::kCPU)},
          {"number_of_files", data.config.dataset.files.value()},
          {"first", data.shards->first},
          {"files", files}};
}

Json failure_of(const Error& error) { return {{"error", error.what()}, {"exit", static_cast<int>(error.code())}}; }

/// Throws UsageError unless these facts fit together; Error for the first rank that tells none.
void require_fit(const std::vector<Json>& facts) {
  std::int64_t next = 0;
  for (std::size_t r = 0; r < facts.size(); ++r)
    if (facts[r].contains("refused"))
      throw Error(static_cast<ExitCode>(facts[r].at("refused").get<int>()),
                  cat("rank ", r, " has refused its own files or settings; the line that it ended with says why"));
  for (std::size_t r = 0; r < facts.size(); ++r) {
    const auto& here = facts[r];
    for (const auto& [key, what] :
         {std::pair{"version", "version of tsdp"}, std::pair{"number_of_files", "dataset.files"},
          std::pair{"sampling_key", "--sampling-key"}, std::pair{"covariates", "dataset.covariates.file"}})
      if (here.at(key) != facts.front().at(key))
        throw UsageError(cat(what, ": found ", here.at(key).dump(), " on rank ", r, " and ",
                             facts.front().at(key).dump(), " on rank 0; expected the same on all ranks"));
    if (r > 1 && here.at("mask_key") != facts[1].at("mask_key"))
      throw UsageError(cat("--mask-key: found another key on rank ", r,
                           " than on rank 1; expected the same on all ranks but rank 0"));
    if (here.at("first") != next)
      throw UsageError(cat("dataset.files: found other files on rank ", r, " than are its own; start all ranks anew"));
    next += static_cast<std::int64_t>(here.at("files").size());
  }
}

/// Throws DataError if two files hold the same: one process would find out, too.
void require_different_files(const std::vector<data::Shards::File>& files) {
  for (std::size_t f = 0; f < files.size(); ++f)
    for (std::size_t earlier = 0; earlier < f; ++earlier)
      if (files[earlier].digest == files[f].digest)
        throw DataError(cat("dataset.path: found the same series in the files ", earlier, " and ", f,
                            ", which would be trained on twice; expected other ones"));
}

void throw_failure(const Json& found) {
  if (found.contains("error"))
    throw Error(static_cast<ExitCode>(found.at("exit").get<int>()), found.at("error").get<std::string>());
}

/// The files of all ranks, each of which told these facts.
std::vector<data::Shards::File> files_of(const std::vector<Json>& facts) {
  std::vector<data::Shards::File> out;
  for (const auto& here : facts)
    for (const auto& file : here.at("files"))
      out.push_back({file.at("lengths").get<std::vector<std::int64_t>>(), file.at("digest").get<std::string>(),
                     here.at("environment").get<std::string>()});
  return out;
}

/// The files of all ranks, as rank 0 has told another one of which `own` are the files. Throws Error if it cannot be
/// so.
std::vector<data::Shards::File> files_told_of(const Json& verdict, const data::Shards& own) {
  std::vector<data::Shards::File> out;
  try {
    for (const auto& lengths : verdict.at("lengths")) out.push_back({lengths.get<std::vector<std::int64_t>>()});
  } catch (const Json::exception&) { out.clear(); }
  bool fits = own.first + own.own <= static_cast<std::int64_t>(out.size());
  for (std::size_t f = 0; fits && f < own.files.size(); ++f)
    fits = out[static_cast<std::size_t>(own.first) + f].training_length == own.files[f].training_length;
  if (!fits)
    throw Error(ExitCode::failure, "ranks: rank 0 has told of other files than there are; start all of them again");
  return out;
}

/// Throws UsageError for what is wrong with the data and options of this rank alone.
void check_own(const data::PreparedData& data, const Ranks& ranks) {
  const auto count = ranks.rank().of;
  const auto& training = data.config.training;
  if (!data.shards)
    throw UsageError(cat("dataset.path: found ", data.config.dataset.path, " with ", count, " ranks; expected ",
                         rank_in_path, " in it, since each rank reads files of its own"));
  if (!data.config.privacy.enabled)
    throw UsageError(cat("privacy.enabled: found false with ", count,
                         " ranks, which add up clipped gradients alone; expected true, or one process"));
  if (!training.reproducible && !ranks.sampling_key())
    throw UsageError(cat("--sampling-key: not given, with ", count,
                         " ranks, which draw the same windows; expected the same file on every rank: openssl rand "
                         "-hex 32"));
  if (const auto& sampled = data.config.privacy.noise_sampled; sampled && *sampled == "auto")
    throw UsageError(
        cat("privacy.noise.sampled: found auto with ", count,
            " ranks, each of which would look for noise by itself; expected the key that tsdp-account sigma "
            "--sampled finds, with its privacy.noise_multiplier, or null"));
  if (training.mask_sums && count < 3)
    throw UsageError(cat("training.mask_sums: found true with ", count,
                         " ranks, of which rank 0 would know the other's sum; expected three or more"));
  if (ranks.is_first()) return;
  if (training.mask_sums != ranks.mask_key().has_value())
    throw UsageError(cat("--mask-key: ", ranks.mask_key() ? "given" : "not given", " with training.mask_sums ",
                         ranks.mask_key() ? "false" : "true",
                         "; expected both, on all ranks but rank 0, with one file that rank 0 has not: openssl rand "
                         "-hex 32"));
  if (ranks.mask_key() && ranks.mask_key() == ranks.sampling_key())
    throw UsageError("--mask-key: found the key of --sampling-key, which rank 0 knows; expected another one");
}

/// The configuration with what start and networks hold in place of their names, and without the names of other files,
/// which may lie elsewhere on every rank: covariates are compared by themselves, and of coefficients rank 0's count.
std::string comparable(const mechanism::SettledScheme& settled) {
  auto config = settled.config;
  std::string contents = cat("model.start: ", name(settled.start_origin()),
                             settled.start ? cat(", SHA-256 ", settled.start->sha256) : std::string(), "\n");
  for (const auto& candidate : config.model.candidates) {
    const auto network = network_name(candidate);
    const auto file = network ? network : external_name(candidate);
    contents += cat("model.candidates: ", file.value_or(candidate), "\n");
  }
  for (const auto& network : settled.networks)
    contents += cat("weights of ", network.file.stem().string(), ": SHA-256 ", network.sha256, "\n");
  config.dataset.path = "";
  config.dataset.covariates.reset();
  config.model.start = "";
  config.model.candidates.clear();
  config.privacy.noise_coefficients.reset();
  return config_text(config) + contents;
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
  if (!S_ISREG(status.st_mode)) throw UsageError(cat(where, ": is no file of its own; expected one with 64 digits"));
  auto text = std::string(trimmed(read_file(file)));
  for (auto& c : text) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  try {
    return SecretKey::from_hex(text);
  } catch (const DataError&) {  // whose text would show the key
    throw DataError(cat(where, ": found ", text.size(), " characters; expected 64 hexadecimal digits"));
  }
}

data::PreparedData shared_data(const std::function<data::PreparedData(data::Rank)>& read, Ranks& ranks) {
  std::optional<data::PreparedData> data;
  std::exception_ptr own_failure;
  Json facts;
  try {
    data = read(ranks.rank());
    if (!ranks.alone()) check_own(*data, ranks);
    if (data->shards) facts = facts_of(*data, ranks);
  } catch (const Error& error) {
    own_failure = std::current_exception();
    facts = {{"refused", static_cast<int>(error.code())}};
  }
  if (ranks.alone() && own_failure) std::rethrow_exception(own_failure);
  if (ranks.alone() && data->config.training.mask_sums)
    log::warning("training.mask_sums: true does nothing in one process; it is for three ranks or more");
  if (ranks.alone() && !data->shards) return std::move(*data);
  std::vector<Json> all;
  for (const auto& text : ranks.gathered(facts.dump())) all.push_back(parse_json(text, "what a rank has sent"));
  Json verdict = Json::object();
  std::vector<data::Shards::File> files;
  if (ranks.is_first()) {
    try {
      require_fit(all);
      files = files_of(all);
      require_different_files(files);
      verdict["lengths"] = Json::array();
      for (const auto& file : files) verdict["lengths"].push_back(file.training_length);
    } catch (const Error& error) { verdict = failure_of(error); } catch (const Json::exception&) {
      verdict = failure_of(Error(ExitCode::failure,
                                 "ranks: found facts that this version does not know; expected the same version of "
                                 "tsdp on all ranks"));
    }
  }
  verdict = parse_json(ranks.from_first(verdict.dump()), "what rank 0 has sent");
  if (own_failure) std::rethrow_exception(own_failure);
  throw_failure(verdict);
  auto& shards = *data->shards;
  shards.files = ranks.is_first() ? std::move(files) : files_told_of(verdict, shards);
  shards.sampling_print = print_of(ranks.sampling_key());
  return std::move(*data);
}

std::string environment_of_ranks(const std::string& own, const data::Shards& shards) {
  auto out = own;
  for (std::size_t f = 0; f < shards.files.size(); ++f)
    if (const auto& there = shards.files[f].environment; !there.empty() && there != own)
      out += cat("; file ", f, ": ", there);
  return out;
}

void require_one_run(const mechanism::SettledScheme& settled, const std::string& purpose, Ranks& ranks) {
  if (ranks.alone()) return;
  const auto texts = ranks.gathered(cat(comparable(settled), "what is asked for: ", purpose, "\n"));
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
