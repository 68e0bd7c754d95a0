#include "tsdp/ledger/exported_model.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include <unistd.h>

#include "base/descriptor.h"
#include "base/zip_file.h"
#include "fields.h"
#include "onnx_metadata.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
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

/// The ledger must state as many variables as the model forecasts together.
void require_stated_variables(const ExportedModel& model, const std::string& where) {
  using Json = nlohmann::ordered_json;
  const auto number_at = [](const Json& document, const char* name) {
    const Json::json_pointer place(name);
    return document.contains(place) ? document[place] : Json(1);
  };
  const auto joined = number_at(model.model, "/sizes/variables");
  const Json names = std::max<std::size_t>(1, variables_of(model.model, where).size());
  const auto stated = number_at(model.privacy, "/mechanism/variables");
  if (joined == names && (joined == Json(1) || joined == stated)) return;
  throw DataError(cat(where, ": privacy.json: mechanism.variables: found ", stated.dump(), "; the model forecasts ",
                      joined.dump(), " together and names ", names.dump(),
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
  require_stated_variables(out, where);
  if (check == LedgerCheck::verified)
    if (const auto found = verify(out.privacy, cat(where, ": privacy.json")); !found.agrees())
      throw DataError(cat(where, ": privacy.json: ", found.differences.front()));
  return out;
}

namespace {

using Members = std::map<std::string, std::string>;

ExportedModel model_of(const Members& members, const std::string& where, LedgerCheck check) {
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

/// The ledger in an ONNX model.
std::string_view ledger_in_onnx(std::string_view bytes, const std::string& where) {
  const auto texts = onnx_texts(bytes, "privacy.json");
  if (!texts || bytes.empty())
    throw DataError(cat(where,
                        ": is neither a zip archive nor an ONNX model; expected a model that tsdp-export or "
                        "tsdp-train wrote"));
  if (texts->size() != 1)
    throw DataError(cat(where, ": found ", texts->empty() ? "no privacy.json" : "privacy.json twice",
                        " among the metadata of this ONNX model; expected a model that tsdp-export wrote"));
  return texts->front();
}

bool begins_with(const std::filesystem::path& file, std::string_view expected) {
  const Descriptor opened(open_to_read(file));
  std::string begin(expected.size(), '\0');
  return ::read(opened.number(), begin.data(), begin.size()) == std::ssize(begin) && begin == expected;
}

/// Whether it is an archive of torch.export, and nothing that torch.jit.load would run.
bool is_of_torch_export(const Members& members) {
  const auto format = members.find("archive_format");
  return format != members.end() && format->second == "pt2" && !members.contains("data.pkl") &&
         !members.contains("constants.pkl");
}

}  // namespace

ExportedModel read_exported_model(const std::filesystem::path& file, LedgerCheck check) {
  return model_of(read_zip(file), file.string(), check);
}

CarriedLedger carried_ledger(const std::filesystem::path& file) {
  constexpr std::string_view zip = "PK\x03\x04";  // no message of protocol buffers: its third byte is no field
  constexpr std::uintmax_t largest_onnx = std::uintmax_t{1} << 31;  // of any message
  const auto where = file.string();
  if (begins_with(file, zip)) {
    const auto members = read_zip(file);
    if (!is_of_torch_export(members)) return {model_of(members, where, LedgerCheck::unverified).privacy, true};
    const auto found = members.find("extra/privacy.json");
    if (found == members.end())
      throw DataError(cat(where, ": has no extra/privacy.json; expected a model that tsdp-export wrote"));
    return {parse_json(found->second, cat(where, ": privacy.json"))};
  }
  if (std::filesystem::file_size(file) >= largest_onnx)
    throw DataError(cat(where,
                        ": is neither a zip archive nor small enough for an ONNX model; expected a model that "
                        "tsdp-export or tsdp-train wrote"));
  const auto bytes = read_file(file);
  return {parse_json(ledger_in_onnx(bytes, where), cat(where, ": privacy.json"))};
}

namespace {

std::vector<std::string> texts_of(const nlohmann::ordered_json& about, const std::string& where, const char* name) {
  const Fields fields(about, cat(where, ": model"), "a model that tsdp-train wrote");
  return fields.has(name) ? fields.texts(name) : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> covariates_of(const nlohmann::ordered_json& about, const std::string& where) {
  return texts_of(about, where, "covariates");
}

std::vector<std::string> variables_of(const nlohmann::ordered_json& about, const std::string& where) {
  return texts_of(about, where, "variables");
}

}  // namespace tsdp::mechanism
