// Exported models as files: what they carry, what is read of them, and what is refused.
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/zip_file.h"
#include "support/ledger.h"
#include "support/temporary_folder.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/tensor_file.h"
#include "tsdp/export/torchscript.h"
#include "tsdp/random/random.h"

namespace tsdp::exporting {
namespace {

std::unique_ptr<models::Forecaster> make(std::int64_t context, std::int64_t horizon,
                                         const std::string& name = "simple_ff") {
  models::ModelOptions options{context, horizon, {}, 3, 0.0};
  if (name == "deepar") options.lags = {1, 2, 4};
  auto model = models::make_model(name, options, at::TensorOptions(at::kFloat));
  RandomStream stream(SecretKey::from_seed(5), "initial weights", 0);
  model->initialise(stream);
  return model;
}

ModelMetadata metadata_of(const models::Forecaster& model) {
  return {{{"format", "tsdp-model-2"},
           {"name", model.name()},
           {"past_length", forecast_past_length(model)},
           {"prediction_length", model.options().prediction_length},
           {"frequency", "1h"}},
          test::ledger()};
}

class SavedModel : public test::TemporaryFolder {
 protected:
  [[nodiscard]] std::filesystem::path file() const { return folder_ / "model.pt"; }
  /// The archive with one member replaced, written as Python's zipfile would.
  void replace(const std::string& member, const std::string& content) const {
    int error = 0;
    auto* zip = ::zip_open(file().c_str(), 0, &error);
    ASSERT_NE(zip, nullptr);
    int replaced = 0;
    for (zip_int64_t i = 0; i < ::zip_get_num_entries(zip, 0); ++i) {
      const std::string name = ::zip_get_name(zip, static_cast<zip_uint64_t>(i), 0);
      if (name.substr(name.find('/') + 1) != member) continue;
      ++replaced;
      auto* source = ::zip_source_buffer(zip, content.data(), content.size(), 0);
      ASSERT_EQ(::zip_file_replace(zip, static_cast<zip_uint64_t>(i), source, 0), 0);
    }
    EXPECT_GT(replaced, 0) << member;
    ASSERT_EQ(::zip_close(zip), 0);
  }
  /// Expects that the file is refused with one line that holds `part`.
  void expect_refused(const std::string& part) const {
    try {
      static_cast<void>(load_model(file(), at::kCPU));
      ADD_FAILURE() << "loaded; expected a refusal with '" << part << "'";
    } catch (const DataError& refused) {
      EXPECT_NE(std::string(refused.what()).find(part), std::string::npos) << refused.what();
      EXPECT_NE(std::string(refused.what()).find("model.pt"), std::string::npos) << refused.what();
    }
  }
};

TEST_F(SavedModel, IsBuiltAnewFromItsData) {
  for (const auto& name : models::model_names())
    for (const bool sampled : {false, true}) {
      SCOPED_TRACE(name);
      auto options = make(6, 3, name)->options();
      options.lower_bound = 0.25;
      options.mixture = {{{Candidate::start, 1, 1},
                          {Candidate::seasonal_quantiles, 2, 3},
                          {Candidate::last_value_bands, 1, 4},
                          {Candidate::seasonal_regression, 2, 3}},
                         {"chronos"},
                         2,
                         3,
                         name == "dlinear",
                         {"other"}};
      const auto model = models::make_model(name, options, at::TensorOptions(at::kFloat));
      RandomStream weights(SecretKey::from_seed(3), "initial weights", 0);
      model->initialise(weights);
      model->keep_start();
      model->initialise(weights);
      model->keep_networks({std::shared_ptr<const models::Forecaster>(make(9, 3, "simple_ff"))});
      auto metadata = metadata_of(*model);
      metadata.privacy["start"]["networks"]["other"] = std::string(64, '0');
      save_model(*model, sampled, metadata, file());
      auto expected = make_module(*model, sampled);
      for (const auto code : {ArchiveCode::never, ArchiveCode::run}) {
        auto loaded = load_model(file(), at::kCPU, code);
        EXPECT_EQ(loaded.metadata.privacy, metadata.privacy);
        EXPECT_EQ(loaded.metadata.model["name"], name);
        const auto past = forecast_past_length(*model);
        const auto features = model->reads_time_features() ? at::IValue(at::rand({2, past + 3, 3})) : at::IValue();
        const std::vector<at::IValue> inputs = {at::rand({2, past}),
                                                at::ones({2, past}),
                                                at::tensor({0.1, 0.5}, at::kDouble),
                                                features,
                                                at::rand({2, 5, 3, 2}),
                                                5,
                                                at::rand({2, 3, 1, 10, 3})};
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_TRUE(at::equal(loaded.module.forward(inputs).toTuple()->elements()[i].toTensor(),
                                expected.forward(inputs).toTuple()->elements()[i].toTensor()));
      }
    }
}

TEST_F(SavedModel, TheLedgerNamesItsNetworks) {
  auto options = make(6, 3)->options();
  options.mixture = {{{Candidate::seasonal_quantiles, 2, 3}}, {}, 2, 3, false, {"one", "two"}};
  const auto model = models::make_model("simple_ff", options, at::TensorOptions(at::kFloat));
  model->keep_networks({std::shared_ptr<const models::Forecaster>(make(9, 3, "simple_ff")),
                        std::shared_ptr<const models::Forecaster>(make(9, 3, "dlinear"))});
  const auto saved_with = [&](const nlohmann::ordered_json& networks) {
    auto metadata = metadata_of(*model);
    metadata.privacy["start"]["networks"] = networks;
    save_model(*model, false, metadata, file());
  };
  const std::string digest(64, '1');
  saved_with({{"one", digest}, {"two", digest}});
  EXPECT_NO_THROW(static_cast<void>(load_model(file(), at::kCPU)));
  saved_with(nlohmann::ordered_json::object());
  expect_refused("start.networks: found none; the model holds one, two");
  saved_with({{"one", digest}});
  expect_refused("start.networks: found one; the model holds one, two");
  saved_with({{"one", digest}, {"three", digest}, {"two", digest}});
  expect_refused("start.networks: found one, three, two; the model holds one, two");
  save_model(
      *make(6, 3), false,
      [&] {
        auto metadata = metadata_of(*make(6, 3));
        metadata.privacy["start"]["networks"] = {{"one", digest}};
        return metadata;
      }(),
      file());
  expect_refused("start.networks: found one; the model holds none");
}

// The archive's own program is not even parsed: whatever stands there cannot run.
TEST_F(SavedModel, ItsCodeNeverRunsUnasked) {
  const auto model = make(4, 2);
  save_model(*model, false, metadata_of(*model), file());
  replace("code/__torch__.py", "this is no program");
  EXPECT_NO_THROW(static_cast<void>(load_model(file(), at::kCPU)));
  EXPECT_THROW(static_cast<void>(load_model(file(), at::kCPU, ArchiveCode::run)), DataError);
}

TEST_F(SavedModel, WhatIsNoModelIsRefused) {
  const auto model = make(4, 2);
  expect_refused("No such file");
  std::ofstream(file()) << "not a model";
  expect_refused("not a zip archive");
  make_module(*model).save(file().string());
  expect_refused("has no extra/tsdp.safetensors");
}

TEST_F(SavedModel, AnyFlippedByteOfTheArchiveIsFound) {
  const auto model = make(4, 2);
  save_model(*model, false, metadata_of(*model), file());
  const auto whole = read_file(file());
  // Every 97th byte: headers of members hold a few that say nothing (times, padding), values hold none.
  int found = 0, tried = 0;
  for (std::size_t place = 0; place < whole.size(); place += 97) {
    auto changed = whole;
    changed[place] = static_cast<char>(changed[place] ^ 0x20);
    write_file_atomically(file(), changed);
    ++tried;
    try {
      const auto loaded = load_model(file(), at::kCPU);
      // Then nothing that is used has changed.
      EXPECT_EQ(loaded.metadata.privacy, test::ledger());
    } catch (const DataError&) { ++found; }
  }
  EXPECT_GT(found, tried * 8 / 10);
}

TEST_F(SavedModel, LiesAboutItselfAreRefused) {
  const auto model = make(4, 2);
  const auto saved = [&](const std::function<void(ModelMetadata&)>& change,
                         const std::function<void(TensorFile&)>& of_data = {}) {
    auto metadata = metadata_of(*model);
    save_model(*model, false, metadata, file());
    auto data = read_tensor_file(read_zip(file()).at("extra/tsdp.safetensors"), "model.pt");
    metadata.model = nlohmann::ordered_json::parse(data.texts["model.json"]);
    change(metadata);
    data.texts["model.json"] = metadata.model.dump(2);
    data.texts["privacy.json"] = metadata.privacy.dump(2);
    if (of_data) of_data(data);
    replace("extra/tsdp.safetensors", tensor_file_bytes(data));
    replace("extra/model.json", data.texts["model.json"]);
    replace("extra/privacy.json", data.texts["privacy.json"]);
  };
  saved([](ModelMetadata&) {});
  EXPECT_NO_THROW(static_cast<void>(load_model(file(), at::kCPU)));
  saved([](ModelMetadata& m) { m.model["name"] = "unheard_of"; });
  expect_refused("--trust");
  saved([](ModelMetadata& m) { m.model["name"] = 7; });
  expect_refused("name");
  saved([](ModelMetadata& m) { m.model["past_length"] = "many"; });
  expect_refused("past_length");
  saved([](ModelMetadata& m) { m.model["past_length"] = 40; });
  expect_refused("not those of its sizes");
  saved([](ModelMetadata& m) { m.model.erase("sizes"); });
  expect_refused("sizes");
  for (const auto* size : {"context_length", "prediction_length", "width_factor", "time_features"}) {
    for (const nlohmann::ordered_json& value :
         {nlohmann::ordered_json(-1), nlohmann::ordered_json(1.5), nlohmann::ordered_json("4"),
          nlohmann::ordered_json(std::uint64_t{1} << 63), nlohmann::ordered_json(nullptr)}) {
      saved([&](ModelMetadata& m) { m.model["sizes"][size] = value; });
      expect_refused(size);
    }
  }
  // Sizes that would take more memory than the file has weights for.
  saved([](ModelMetadata& m) {
    m.model["sizes"]["context_length"] = m.model["past_length"] = 1'000'000;
    m.model["sizes"]["width_factor"] = 1024;
  });
  expect_refused("parameters");
  saved([](ModelMetadata& m) { m.model["sizes"]["prior"] = "naive"; });
  expect_refused("prior");
  saved([](ModelMetadata& m) {
    m.model["sizes"]["prior"] = "seasonal_naive";
    m.model["sizes"]["season"] = 1'000'000;
  });
  expect_refused("season");
  // Its mixture, which this model has none of.
  EXPECT_TRUE(model->options().mixture.members.empty());
  const auto mixture = [&](const char* text) {
    saved([&](ModelMetadata& m) { m.model["sizes"]["mixture"] = nlohmann::ordered_json::parse(text); });
  };
  mixture("7");
  expect_refused("mixture.sizes");
  mixture(R"({"windows": 2, "stride": 1, "members": [{"method": "seasonal_quantiles", "season": 1, "seasons": 1}]})");
  expect_refused("mixture.stride: expected an integer from 2");
  mixture(R"({"windows": 2, "stride": 2, "members": []})");
  expect_refused("mixture.members: expected a list of candidates");
  mixture(R"({"windows": 2, "stride": 2, "members": [], "external": [7]})");
  expect_refused("mixture.external: expected a list of names");
  mixture(R"({"windows": 2, "stride": 2, "members": [], "networks": [7]})");
  expect_refused("mixture.networks.sizes: expected the sizes");
  mixture(R"({"windows": 2, "stride": 2, "members": [], "networks": {"name": "other"}})");
  expect_refused("mixture.networks: expected a list of networks");
  mixture(R"({"windows": 2, "stride": 2, "members": [], "networks": [{"name": 3}]})");
  expect_refused("mixture.networks.name: expected a text");
  mixture(R"({"windows": 2, "stride": 2, "members": [{"method": "oracle", "season": 1, "seasons": 1}]})");
  expect_refused("mixture.members.method: expected one of start, seasonal_quantiles");
  mixture(
      R"({"windows": 2, "stride": 2, "members": [{"method": "moved_quantiles", "season": 1000, "seasons": 1000}]})");
  expect_refused("mixture: expected one that reads at most 1000000 values");
  for (const std::string covariates : {"", R"(, "covariates": 0)", R"(, "covariates": 1)", R"(, "covariates": 1e9)"}) {
    const auto text = cat(R"({"windows": 2, "stride": 2, "members": )",
                          R"([{"method": "covariate_quantiles", "season": 2, "seasons": 2}])", covariates, "}");
    mixture(text.c_str());
    expect_refused("mixture.covariates: expected");
  }
  mixture(R"({"windows": 2, "stride": 2, "members": [{"method": "moved_quantiles", "season": 2, "seasons": 2}]})");
  expect_refused("not those of its sizes");
  saved([](ModelMetadata& m) { m.model["sizes"]["default_scale"] = "large"; });
  expect_refused("default_scale");
  saved([](ModelMetadata& m) { m.privacy["epsilon"] = "none"; });
  expect_refused("epsilon");
  saved([](ModelMetadata& m) { m.privacy = 3; });
  expect_refused("privacy");
  saved([](ModelMetadata&) {}, [](TensorFile& data) { data.tensors.pop_back(); });
  expect_refused("parameters; found");
  saved([](ModelMetadata&) {}, [](TensorFile& data) { data.tensors.back().name = "another"; });
  expect_refused("holds no tensor");
  saved([](ModelMetadata&) {},
        [](TensorFile& data) { data.tensors.push_back(data.tensors[0]), data.tensors.back().name = "more"; });
  expect_refused("weights that the model has not");
  saved([](ModelMetadata&) {},
        [](TensorFile& data) { data.tensors[0].bytes.replace(0, 4, std::string("\0\0\xc0\x7f", 4)); });
  expect_refused("other weights");
  saved(
      [](ModelMetadata&) {},
      [](TensorFile& data) { data.tensors[0].shape = {static_cast<std::int64_t>(data.tensors[0].bytes.size() / 4)}; });
  expect_refused("another type or shape");
  // What people see who load it in Python is what the checksum covers.
  saved([](ModelMetadata&) {});
  replace("extra/privacy.json", "{}");
  expect_refused("is not what its checksummed copy says");
}

}  // namespace
}  // namespace tsdp::exporting
