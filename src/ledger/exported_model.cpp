#include "tsdp/ledger/exported_model.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/zip_file.h"
#include "fields.h"
#include "tsdp/base/error.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/ledger/ledger.h"

namespace tsdp::mechanism {
namespace {

constexpr const char* format_name = "tsdp-model-2";

/// The ledger must name each network that the model holds beside its own once, and no other.
void require_stated_networks(const ExportedModel& model, const std::string& where) {
  using Json = nlohmann::ordered_json;
  std::vector<std::string> held, stated;
  if (const Json::json_pointer place("/sizes/mixture/networks"); model.model.contains(place))
    for (const auto& network : model.model[place])
      if (network.contains("name") && network["name"].is_string()) held.push_back(network["name"].get<std::string>());
  if (const Json::json_pointer place("/start/networks"); model.privacy.contains(place))
    for (const auto& [name, digest] : model.privacy[place].items()) stated.push_back(name);
  std::sort(held.begin(), held.end());
  std::sort(stated.begin(), stated.end());
  if (held == stated) return;
  const auto shown = [](const std::vector<std::string>& names) { return names.empty() ? "none" : join(names, ", "); };
  throw DataError(cat(where, ": privacy.json: start.networks: found ", shown(stated), "; the model holds ", shown(held),
                      "; expected a model as tsdp-export or tsdp-train wrote it"));
}

}  // namespace

ExportedModel read_model_data(std::string_view bytes, const std::string& where, LedgerCheck check) {
  ExportedModel out;
  out.data = read_tensor_file(bytes, where);
  if (const auto& format = out.data.text("format", where); format != format_name)
    throw DataError(cat(where, ": found format '", format, "', of another version of tsdp; expected ", format_name));
  out.model = parse_json(out.data.text("model.json", where), cat(where, ": model.json"));
  out.privacy = parse_json(out.data.text("privacy.json", where), cat(where, ": privacy.json"));
  require_stated_networks(out, where);
  if (check == LedgerCheck::verified)
    if (const auto found = verify(out.privacy, cat(where, ": privacy.json")); !found.agrees())
      throw DataError(cat(where, ": privacy.json: ", found.differences.front()));
  return out;
}

ExportedModel read_exported_model(const std::filesystem::path& file, LedgerCheck check) {
  const auto where = file.string();
  const auto members = read_zip(file);
  const auto member = [&](const std::string& name) -> const std::string& {
    const auto found = members.find(name);
    if (found == members.end())
      throw DataError(cat(where, ": has no ", name,
                          "; expected a model that tsdp-export or tsdp-train of this version wrote (export an older "
                          "run's model again)"));
    return found->second;
  };
  auto out = read_model_data(member("extra/tsdp.safetensors"), where, check);
  for (const auto* entry : {"model.json", "privacy.json"})
    if (member(cat("extra/", entry)) != out.data.text(entry, where))
      throw DataError(
          cat(where, ": extra/", entry,
              " is not what its checksummed copy says; expected a model that tsdp-export or tsdp-train wrote"));
  std::set<std::string_view> storages;
  for (const auto& [name, content] : members)
    if (name.starts_with("data/")) storages.insert(content);
  for (const auto& tensor : out.data.tensors)
    if (!storages.contains(tensor.bytes))
      throw DataError(cat(where, ": the TorchScript module has other weights '", tensor.name,
                          "' than extra/tsdp.safetensors, which the statement is about; expected a model that "
                          "tsdp-export or tsdp-train wrote"));
  return out;
}

std::vector<std::string> covariates_of(const nlohmann::ordered_json& about, const std::string& where) {
  const Fields fields(about, cat(where, ": model"), "a model that tsdp-train wrote");
  return fields.has("covariates") ? fields.texts("covariates") : std::vector<std::string>();
}

}  // namespace tsdp::mechanism
