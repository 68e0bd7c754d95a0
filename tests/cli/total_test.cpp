// One statement for many releases: tsdp-account total, tsdp-account budget and tsdp-train --budget.
#include "run_fixture.h"

namespace tsdp::cli_test {
namespace {

const std::string account = "tsdp-account";
const std::string train = "tsdp-train";

class Together : public RunTest {};

TEST_F(Together, RunsOnTheSameDataComposeByTheirMechanisms) {
  make_run("one");
  make_run("two", {"--set", "privacy.noise_multiplier=6", "--set", "sampling.bottom_level=poisson"});
  const auto alone = answer(account, {"total", "one", "--delta", "1e-7", "--json"});
  const auto stated = answer(account, {"verify", "one", "--json"});
  EXPECT_NEAR(alone["epsilon"]["upper"].get<double>(), stated["epsilon"]["upper"].get<double>(),
              2e-3 * stated["epsilon"]["upper"].get<double>());
  EXPECT_EQ(alone["assumption"], "settings fixed beforehand");
  const auto both = answer(account, {"total", "one", "two/privacy.json", "--delta", "1e-7", "--json"});
  EXPECT_EQ(both["runs"].size(), 2U);
  EXPECT_GT(both["epsilon"]["lower"].get<double>(), alone["epsilon"]["upper"].get<double>());
  EXPECT_LT(both["epsilon"]["upper"].get<double>(),
            both["runs"][0]["epsilon"]["upper"].get<double>() + both["runs"][1]["epsilon"]["upper"].get<double>());
  EXPECT_EQ(both["relation"]["kind"], "event");
  const auto text = run(account, {"total", "one", "two", "--delta", "1e-7"});
  EXPECT_NE(text.out.find("settings of all of them were fixed before"), std::string::npos) << text.out;
  expect_failure(run(account, {"total", "one", "one/model.pt", "--delta", "1e-7"}), account, 2, {"given twice"});
  expect_failure(run(account, {"total", "one", "none", "--delta", "1e-7"}), account, 2, {"total: no 'none'"});
  expect_failure(run(account, {"total", "one"}), account, 2, {"--delta"});
  expect_failure(run(account, {"total", "one", "--delta", "1e-7", "--steps", "3"}), account, 2,
                 {"--steps", "not used by total"});
}

// A ledger that no theorem covers is one that does not agree, whatever else is missing from it.
TEST_F(Together, ALedgerThatNothingCoversIsAnsweredToo) {
  make_run("run");
  auto ledger = nlohmann::json::parse(content_of(path("run/privacy.json")));
  ledger["theorem"] = "E.8";
  ledger.erase("state");
  ledger.erase("reproducible");
  write("edited.json", ledger.dump());
  const auto outcome = run(account, {"verify", "edited.json", "--json"});
  EXPECT_EQ(outcome.exit_code, 4) << outcome.err;
  const auto found = nlohmann::json::parse(outcome.out);
  EXPECT_FALSE(found["agrees"].get<bool>());
  EXPECT_TRUE(found["epsilon"].is_null());
  expect_failure(run(account, {"total", "edited.json", "--delta", "1e-7"}), account, 4, {"edited.json"});
}

TEST_F(Together, RelationsThatDoNotContainEachOtherDoNotCompose) {
  make_run("row", {"--set", "privacy.w=5"});
  make_run("anywhere", {"--set", "privacy.relation=user", "--set", "privacy.w=2"});
  expect_failure(run(account, {"total", "row", "anywhere", "--delta", "1e-7"}), account, 4,
                 {"neither of which contains"});
  make_run("open", {"--set", "privacy.enabled=false"});
  expect_failure(run(account, {"total", "row", "open", "--delta", "1e-7"}), account, 4, {"without privacy"});
}

TEST_F(Together, ABudgetIsChargedBeforeTrainingAndNeverPassed) {
  ASSERT_EQ(run(account, {"budget", "budget.json", "--epsilon", "2", "--delta", "1e-6"}).exit_code, 0);
  const auto empty = nlohmann::json::parse(run(account, {"budget", "budget.json", "--json"}).out);
  EXPECT_EQ(empty["spent"], 0.0);
  EXPECT_EQ(empty["left"], 2.0);
  expect_failure(run(account, {"budget", "budget.json", "--epsilon", "2", "--delta", "1e-6"}), account, 2,
                 {"is there already"});
  int admitted = 0;
  Outcome outcome;
  for (; admitted < 30; ++admitted) {
    outcome = run(train, {"--config", "config.yaml", "--output", "run" + std::to_string(admitted), "--quiet",
                          "--threads", "1", "--budget", "budget.json", "--set", "training.max_epochs=20"});
    if (outcome.exit_code != 0) break;
    const auto budget = nlohmann::json::parse(content_of(path("budget.json")));
    EXPECT_EQ(budget["charges"].size(), static_cast<std::size_t>(admitted + 1));
    const auto ledger = nlohmann::json::parse(content_of(path("run" + std::to_string(admitted) + "/privacy.json")));
    EXPECT_EQ(budget["charges"][static_cast<std::size_t>(admitted)]["run"], ledger["run"]["id"]);
    EXPECT_EQ(budget["charges"][static_cast<std::size_t>(admitted)]["compositions"], ledger["compositions"]);
  }
  EXPECT_GT(admitted, 0);
  ASSERT_LT(admitted, 30);
  expect_failure(outcome, train, 4, {"budget.json", "would pass the budget"});
  EXPECT_FALSE(std::filesystem::exists(path("run" + std::to_string(admitted) + "/model.pt")));
  EXPECT_FALSE(std::filesystem::exists(path("run" + std::to_string(admitted) + "/private/checkpoints")));
  // All that was released costs less than the budget by the exact composition, too.
  std::vector<std::string> total = {"total"};
  for (int i = 0; i < admitted; ++i) total.push_back("run" + std::to_string(i));
  for (const char* more : {"--delta", "1e-6", "--json"}) total.emplace_back(more);
  const double together = answer(account, total)["epsilon"]["upper"];
  // What the filter says is spent is no less than that, and within the target.
  const auto left = nlohmann::json::parse(run(account, {"budget", "budget.json", "--json"}).out);
  EXPECT_EQ(left["target"], 2.0);
  EXPECT_GE(left["spent"].get<double>(), together);
  EXPECT_LE(left["spent"].get<double>(), 2.0);
  EXPECT_DOUBLE_EQ(left["left"].get<double>(), 2.0 - left["spent"].get<double>());
  EXPECT_EQ(left["charges"].size(), static_cast<std::size_t>(admitted));
  EXPECT_NE(run(account, {"budget", "budget.json"}).out.find("of 2 at delta 1e-06"), std::string::npos);
  expect_failure(run(account, {"budget", "config.yaml"}), account, 3, {"config.yaml"});
}

TEST_F(Together, BudgetsRefuseInOneLine) {
  expect_failure(run(train, {"--config", "config.yaml", "--output", "a", "--budget", "none.json", "--quiet"}), train, 2,
                 {"--budget: no file 'none.json'", "tsdp-account budget"});
  ASSERT_EQ(run(account, {"budget", "budget.json", "--epsilon", "2", "--delta", "1e-6"}).exit_code, 0);
  expect_failure(run(train, {"--config", "config.yaml", "--output", "b", "--budget", "budget.json", "--quiet", "--set",
                             "privacy.enabled=false"}),
                 train, 4, {"without privacy"});
  expect_failure(run(train, {"--config", "config.yaml", "--output", "b", "--budget", "budget.json", "--quiet", "--set",
                             "training.reproducible=true"}),
                 train, 4, {"--budget: found training.reproducible"});
  write("broken.json", "{");
  expect_failure(run(train, {"--config", "config.yaml", "--output", "c", "--budget", "broken.json", "--quiet"}), train,
                 3, {"broken.json"});
  make_run("run");
  expect_failure(run(train, {"--resume", "run", "--budget", "budget.json"}), train, 2,
                 {"--budget: found with --resume"});
  expect_failure(run(account, {"budget", "new.json", "--epsilon", "0", "--delta", "1e-6"}), account, 2, {"--epsilon"});
  expect_failure(run(account, {"budget", "new.json", "--delta", "1e-6"}), account, 2, {"--epsilon"});
  expect_failure(run(account, {"budget", "new.json", "--epsilon", "1", "--delta", "1e-6", "--steps", "3"}), account, 2,
                 {"not used by budget"});
  // What is written can be read again.
  const std::vector<std::string> budget = {"budget", "unit.json", "--epsilon", "2", "--delta", "1e-6", "--relation"};
  for (const auto& [unit, part] : {std::pair{std::vector<std::string>{"event", "--w", "0"}, "--w: found 0"},
                                   {{"user", "--v", "-1"}, "--v: found -1"},
                                   {{"series", "--w", "3"}, "--w, --v: given with --relation series"}}) {
    auto all = budget;
    all.insert(all.end(), unit.begin(), unit.end());
    expect_failure(run(account, all), account, 2, {part});
    EXPECT_FALSE(std::filesystem::exists(path("unit.json")));
  }
  const auto shown = run(account, {"budget", "budget.json"});
  EXPECT_NE(shown.out.find("What is guaranteed, also if later runs are chosen by the models of earlier ones, is the "
                           "whole: epsilon 2 (not if they are chosen by scores, losses or logs"),
            std::string::npos)
      << shown.out;
}

}  // namespace
}  // namespace tsdp::cli_test
