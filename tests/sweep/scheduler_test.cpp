#include "sweep/scheduler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/terminal_line.h"
#include "sweep/sweep_fixture.h"
#include "sweep/table.h"

namespace tsdp::sweep {
namespace {

using namespace std::chrono_literals;

TEST(StatusText, NeverWraps) {
  const std::vector<std::string> names = {"simple_ff-target_epsilon_0.25-seed_1", "deepar-seed_1 (plan)"};
  EXPECT_EQ(status_text("3/5 runs · 0:00:12 left", names, 200),
            "3/5 runs · 0:00:12 left · simple_ff-target_epsilon_0.25-seed_1, deepar-seed_1 (plan)");
  EXPECT_EQ(status_text("3/5 runs · 0:00:12 left", names, 79),
            "3/5 runs · 0:00:12 left · simple_ff-target_epsilon_0.25-…, deepar-seed_1 (plan)");
  EXPECT_EQ(status_text("3/5 runs · 0:00:12 left", names, 40), "3/5 runs · 0:00:12 left · 2 at work");
  EXPECT_EQ(status_text("3/5 runs", {}, 40), "3/5 runs · 0 at work");
  const std::vector<std::string> long_names(5, std::string(60, 'x'));
  for (std::size_t columns = 0; columns < 400; ++columns)
    for (std::size_t count = 0; count <= long_names.size(); ++count) {
      const auto line =
          status_text("12/345 runs, 1 failed · 1:02:03 left",
                      {long_names.begin(), long_names.begin() + static_cast<std::ptrdiff_t>(count)}, columns);
      EXPECT_LE(width_of(line), columns) << line;
    }
}

/// A stand-in for tsdp-train that does what its `behaviour` says, and notes when it begins and ends.
const std::string train_script = R"(here=$(dirname "$0")/..
words="$*" out= dry=
while [ $# -gt 0 ]; do
  case $1 in --output | --resume) out=$2 ;; --dry-run) dry=1 ;; esac
  shift
done
behaviour=$(cat "$here/behaviour" 2>/dev/null)
case $behaviour in
  refuse) [[ $words == *privacy.w=2* ]] && { echo "log" >&2; echo "tsdp-train: no budget" >&2; exit 4; } ;;
  crash) [[ $words == *privacy.w=2* && ! $dry ]] && kill -9 $$ ;;
  nothing) [ $dry ] || exit 0 ;;
esac
if [ $dry ]; then echo '{"memory_mb": 200, "steps": 10}'; exit 0; fi
echo "+ $words" >>"$here/trace"
mkdir -p "$out/private/checkpoints"
case $behaviour in
  slow)
    echo '{"state": "running"}' >"$out/privacy.json"
    trap 'echo "{\"state\": \"interrupted\"}" >"$out/privacy.json"; echo "- TERM" >>"$here/trace"; exit 1' TERM
    while :; do sleep 0.02; done ;;
  damaged) echo 'not JSON' >"$out/privacy.json"; exit 0 ;;
  *) sleep 0.1 ;;
esac
echo '{"state": "finished", "private": false}' >"$out/privacy.json"
touch "$out/model.pt"
echo "- end" >>"$here/trace"
echo '{"output": "x", "plan": {}, "privacy": {}, "metrics": {"mean_weighted_quantile_loss": 0.25},'
echo ' "baselines": {"seasonal_naive": {"mean_weighted_quantile_loss": 0.5}}}'
)";

const std::string evaluate_script = R"(here=$(dirname "$0")/..
echo "e $*" >>"$here/trace"
echo '{"metrics": {"mean_weighted_quantile_loss": 0.125}, "baselines": {}}'
)";

class SchedulerTest : public SweepTest {
 protected:
  void SetUp() override {
    SweepTest::SetUp();
    log::set_level(log::Level::quiet);
    write_program("tsdp-train", train_script);
    write_program("tsdp-evaluate", evaluate_script);
    options_.programs = path("bin");
    options_.progress = false;
    plan_ = plan(small_sweep);
  }
  void TearDown() override {
    log::set_level(log::Level::normal);
    SweepTest::TearDown();
  }

  void behave(const std::string& how) const { write("behaviour", how); }
  [[nodiscard]] std::string trace() const {
    return std::filesystem::exists(path("trace")) ? read_file(path("trace")) : std::string();
  }
  /// The trace with a line's end in front of each line.
  [[nodiscard]] std::string trace_lines() const {
    std::string out = "\n";
    return out.append(trace());
  }
  [[nodiscard]] std::ptrdiff_t count(char kind) const {
    const auto text = trace_lines();
    std::ptrdiff_t out = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) out += text[i] == '\n' && text[i + 1] == kind ? 1 : 0;
    return out;
  }
  /// Most trainings at a time, by the trace.
  [[nodiscard]] int overlap() const {
    int now = 0;
    int most = 0;
    const auto text = trace_lines();
    for (std::size_t i = 0; i + 1 < text.size(); ++i)
      if (text[i] == '\n') {
        now += text[i + 1] == '+' ? 1 : text[i + 1] == '-' ? -1 : 0;
        most = std::max(most, now);
      }
    return most;
  }
  template <class Condition>
  static bool eventually(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  SweepPlan plan_;
  SweepOptions options_;
};

TEST_F(SchedulerTest, TakesEveryRunToItsScoresOnce) {
  int told = 0;
  options_.on_done = [&](const Failures&) { ++told; };
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_EQ(count('+'), 8);
  EXPECT_EQ(count('e'), 0);  // training gives the ordinary scores
  EXPECT_EQ(told, 9);
  const auto table = read_table(plan_, {});
  for (const auto& row : table.rows)
    for (const auto& cell : row.cells) {
      EXPECT_EQ(cell.scores.size(), 2U);
      EXPECT_EQ(cell.mean(), row.is_baseline ? 0.5 : 0.25);
    }
  // What is done is not done again.
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_EQ(count('+'), 8);
}

TEST_F(SchedulerTest, ScoresAnewWhatIsTrainedAlready) {
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  write("ets.jsonl", "{}\n");
  const auto more = plan("baseline_forecasts: {auto_ets: ets.jsonl}\n" + small_sweep);
  EXPECT_TRUE(run_sweep(more, options_).empty());
  EXPECT_EQ(count('+'), 8);
  EXPECT_EQ(count('e'), 8);
  EXPECT_EQ(read_table(more, {}).rows[0].cells[0].mean(), 0.125);
}

TEST_F(SchedulerTest, AFailingRunLeavesTheOthersAlone) {
  behave("refuse");
  const auto failures = run_sweep(plan_, options_);
  EXPECT_EQ(failures.size(), 4U);
  for (const auto& [i, reason] : failures) {
    EXPECT_EQ(plan_.runs[i].config.privacy.w, 2);
    EXPECT_EQ(reason, "no budget");
  }
  const auto table = read_table(plan_, failures);
  EXPECT_EQ(table.rows[0].cells[0].scores.size(), 2U);
  EXPECT_EQ(table.rows[0].cells[1].missing, (std::vector<std::string>{"no budget"}));
  behave("");
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
}

TEST_F(SchedulerTest, APlanThatWasToldToStopRefusesNothing) {
  write_program("tsdp-train",
                "mkdir \"$(dirname \"$0\")/once\" 2>/dev/null && { echo 'tsdp-train: interrupted' >&2; exit 130; }\n" +
                    train_script);
  const auto failures = run_sweep(plan_, options_);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures.begin()->second, "interrupted");
}

TEST_F(SchedulerTest, SeedsOfOtherDataNeverShareATable) {
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  write("data.txt", "1,3\n");
  EXPECT_THROW(run_sweep(plan_, options_), DataError);
  write("data.txt", "1,2\n");
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
}

TEST_F(SchedulerTest, AllFilesOfAPathWithRanksAreTheData) {
  const auto by_rank = plan(replaced(small_sweep, "privacy.target_epsilon: 2", "dataset.path: 'part{rank}.txt'"));
  EXPECT_THROW(run_sweep(by_rank, options_), DataError);
  write("part0.txt", "1,2\n");
  write("part1.txt", "1,3\n");
  EXPECT_TRUE(run_sweep(by_rank, options_).empty());
  write("part1.txt", "1,4\n");
  EXPECT_THROW(run_sweep(by_rank, options_), DataError);
  write("part1.txt", "1,3\n");
  EXPECT_TRUE(run_sweep(by_rank, options_).empty());
}

TEST_F(SchedulerTest, NorDoSeedsFromOtherStartsOrWithOtherNoise) {
  write("start.safetensors", "weights");
  write("others.jsonl", "forecasts");
  write("network.safetensors", "weights of a candidate");
  write("coefficients.json", "[1.0, 0.5]");
  const auto text = replaced(
      small_sweep, "privacy.target_epsilon: 2",
      "model.start: start.safetensors, model.candidates: [start, others.jsonl, network.safetensors], "
      "sampling.top_level: balls_in_bins, "
      "sampling.batches: 2, sampling.batch_size: "
      "null, privacy.relation: series, privacy.noise.mechanism: file, privacy.noise.coefficients: coefficients.json");
  const auto by_rank = replaced(replaced(text, "privacy.w: 1", "optimizer.learning_rate: 1e-3"), "privacy.w: 2",
                                "optimizer.learning_rate: 1e-2");
  EXPECT_TRUE(run_sweep(plan(by_rank), options_).empty());
  for (const auto& [name, was] : {std::pair{"start.safetensors", "weights"},
                                  {"others.jsonl", "forecasts"},
                                  {"network.safetensors", "weights of a candidate"},
                                  {"coefficients.json", "[1.0, 0.5]"}}) {
    write(name, "[1.0, 0.25]");
    try {
      static_cast<void>(run_sweep(plan(by_rank), options_));
      ADD_FAILURE() << name << " was taken for the same";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(cat(name, ": changed since the sweep in ")), std::string::npos)
          << error.what();
    }
    write(name, was);
  }
  EXPECT_TRUE(run_sweep(plan(by_rank), options_).empty());
  // Runs begin with the weights beside their configuration; those of that name in the working directory are others.
  write("elsewhere/start.safetensors", "other weights");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(path("elsewhere"));
  EXPECT_NO_THROW(run_sweep(plan(by_rank), options_));
  std::filesystem::current_path(before);
}

TEST_F(SchedulerTest, AScoreThatIsDamagedIsMadeAgain) {
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  const auto& run = plan_.runs.front();
  std::ptrdiff_t made = 0;
  for (const auto* damaged :
       {"", "{}", "[]", "0.25", R"({"metrics": 0.25})", R"({"metrics": {}})",
        R"({"metrics": {"mean_weighted_quantile_loss": "0.25"}})",
        R"({"metrics": {"mean_weighted_quantile_loss": {}}})",
        R"({"metrics": {"mean_weighted_quantile_loss": 0.25}, "baselines": 1})",
        R"({"metrics": {"mean_weighted_quantile_loss": 0.25}, "baselines": {"seasonal_naive": [1]}})"}) {
    write_file_atomically(plan_.score_file(run, run.scores.front()), damaged);
    EXPECT_EQ(next_step(plan_, run).need, Need::score) << damaged;
    for (const auto& row : read_table(plan_, {}).rows)
      for (const auto& cell : row.cells) EXPECT_GE(cell.scores.size(), 1U) << damaged;
    EXPECT_TRUE(run_sweep(plan_, options_).empty());
    EXPECT_EQ(count('e'), ++made);
    EXPECT_EQ(next_step(plan_, run).need, Need::nothing);
  }
  EXPECT_EQ(count('+'), 8);
  // A score that is not finite is one.
  write_file_atomically(plan_.score_file(run, run.scores.front()),
                        R"({"metrics": {"mean_weighted_quantile_loss": null}})");
  EXPECT_EQ(next_step(plan_, run).need, Need::nothing);
}

// None of what a sweep reads back is believed to be what it wrote.
TEST_F(SchedulerTest, FilesOfOtherTypesAreNamed) {
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  const auto& run = plan_.runs.front();
  const auto ledger = plan_.folder_of(run) / "privacy.json";
  for (const auto* damaged : {"", "[]", "{}", R"({"state": 1})", R"({"state": ["finished"]})"}) {
    write_file_atomically(ledger, damaged);
    const auto failures = run_sweep(plan_, options_);
    ASSERT_EQ(failures.size(), 1U) << damaged;
    EXPECT_NE(failures.begin()->second.find("privacy.json: not a ledger"), std::string::npos)
        << failures.begin()->second;
  }
  for (
      const auto* damaged :
      {R"({"state": "finished", "private": 1})", R"({"state": "finished", "private": true})",
       R"({"state": "finished", "private": true, "epsilon": 1})",
       R"({"state": "finished", "private": true, "epsilon": {"lower": "1", "upper": 2}})",
       R"({"state": "finished", "private": true, "epsilon": {"lower": 1, "upper": 2}, "delta": "small"})",
       R"({"state": "finished", "private": true, "epsilon": {"lower": 1, "upper": 2}, "mechanism": {"steps_per_epoch": []}})"}) {
    write_file_atomically(ledger, damaged);
    const auto cell = read_table(plan_, {}).rows[0].cells[0];
    ASSERT_EQ(cell.missing.size(), 1U) << damaged;
    EXPECT_NE(cell.missing[0].find("privacy.json: not a ledger with an epsilon"), std::string::npos) << cell.missing[0];
    EXPECT_FALSE(cell.is_private);
  }
  write_file_atomically(ledger, R"({"state": "finished", "private": false})");
  for (const auto* name : {"sweep.json", "private/data.json"}) {
    const auto before = read_file(path("out") / name);
    for (const auto* damaged : {"", "[]", R"({"smoke": "no", "data.txt": 1})"}) {
      write_file_atomically(path("out") / name, damaged);
      try {
        static_cast<void>(run_sweep(plan_, options_));
        ADD_FAILURE() << name << " was believed: " << damaged;
      } catch (const DataError& error) {
        EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
    }
    write_file_atomically(path("out") / name, before);
  }
  for (const auto& entry : std::filesystem::directory_iterator(path("out/private/plans")))
    write_file_atomically(entry.path(), R"({"memory_bytes": "much", "steps": {}})");
  std::filesystem::remove_all(plan_.folder_of(run));
  EXPECT_TRUE(run_sweep(plan_, options_).empty());  // planned and run again
  EXPECT_EQ(count('+'), 9);
}

TEST_F(SchedulerTest, ResultsOfOtherTypesAreFailures) {
  for (const auto* plan : {R"({"memory_mb": "200", "steps": 10})", R"({"memory_mb": 200, "steps": null})",
                           R"({"memory_mb": -1, "steps": 10})", R"({"memory_mb": 1e300, "steps": 10})"}) {
    std::filesystem::remove_all(path("out"));
    write_program("tsdp-train", std::string("echo '") + plan + "'\n");
    const auto failures = run_sweep(plan_, options_);
    EXPECT_EQ(failures.size(), 8U) << plan;
    for (const auto& [i, reason] : failures) EXPECT_NE(reason.find("memory_mb and steps"), std::string::npos) << reason;
  }
  std::filesystem::remove_all(path("out"));
  write_program("tsdp-train",
                replaced(train_script, R"("metrics": {"mean_weighted_quantile_loss": 0.25})", R"("metrics": 1)"));
  write_program("tsdp-evaluate", "echo '{\"metrics\": {}}'\n");
  const auto failures = run_sweep(plan_, options_);
  EXPECT_EQ(failures.size(), 8U);
  for (const auto& [i, reason] : failures)
    EXPECT_NE(reason.find("found no metrics that are numbers; expected the scores of tsdp-evaluate"), std::string::npos)
        << reason;
}

TEST_F(SchedulerTest, FoldersThatCannotBeUsedAreNamed) {
  ASSERT_EQ(::symlink("circle", path("circle").c_str()), 0);
  for (const auto* name : {"circle", "data.txt", "data.txt/deeper"}) {
    const auto other = make_plan(plan_.file, path(name), false);
    try {
      static_cast<void>(run_sweep(other, options_));
      ADD_FAILURE() << name << " was taken for a folder";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path(name).string()), std::string::npos) << error.what();
    }
  }
  if (::geteuid() == 0) GTEST_SKIP() << "root may look and write everywhere";
  std::filesystem::create_directories(path("closed"));
  ASSERT_EQ(::chmod(path("closed").c_str(), 0), 0);
  const auto other = make_plan(plan_.file, path("closed"), false);
  EXPECT_THROW(static_cast<void>(next_step(other, other.runs.front())), DataError);
  EXPECT_THROW(static_cast<void>(run_sweep(other, options_)), Error);
  ASSERT_EQ(::chmod(path("closed").c_str(), 0700), 0);
}

TEST_F(SchedulerTest, ARunsOwnFolderIsNoFolderForASweep) {
  write("out/privacy.json", "{}");
  EXPECT_THROW(run_sweep(plan_, options_), UsageError);
}

// A run's name and column are of the base configuration as it was read when the sweep began.
TEST_F(SchedulerTest, RunsDoNotBeginOnAnotherBase) {
  const auto base = read_file(path("base.yaml"));
  for (const auto& now : {replaced(base, "noise_multiplier: 4.0", "noise_multiplier: 2.0"), std::string()}) {
    write("base.yaml", now);
    const auto failures = run_sweep(plan_, options_);
    EXPECT_EQ(failures.size(), plan_.runs.size());
    for (const auto& [i, reason] : failures)
      EXPECT_NE(reason.find("base.yaml: changed since the sweep began"), std::string::npos) << reason;
    EXPECT_EQ(count('+'), 0);
  }
  write("base.yaml", base);
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
}

TEST_F(SchedulerTest, ProgramsThatDieOrLeaveNothingAreFailures) {
  behave("crash");
  for (const auto& [i, reason] : run_sweep(plan_, options_))
    EXPECT_NE(reason.find("signal 9"), std::string::npos) << reason;
  behave("damaged");
  auto failures = run_sweep(plan_, options_);
  EXPECT_EQ(failures.size(), 4U);
  for (const auto& [i, reason] : failures) EXPECT_NE(reason.find("not a JSON object"), std::string::npos) << reason;
  // The damaged ledgers stay until somebody has looked at them.
  for (const auto& [i, reason] : run_sweep(plan_, options_))
    EXPECT_NE(reason.find("not a ledger"), std::string::npos) << reason;
  std::filesystem::remove_all(path("out"));
  behave("nothing");
  failures = run_sweep(plan_, options_);
  EXPECT_EQ(failures.size(), 8U);
  std::filesystem::remove(path("bin/tsdp-train"));
  for (const auto& [i, reason] : run_sweep(plan_, options_))
    EXPECT_NE(reason.find("cannot be started"), std::string::npos) << reason;
}

TEST_F(SchedulerTest, NoMoreJobsThanAskedForOrThanCores) {
  options_.jobs = 1;
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_EQ(overlap(), 1);
  std::filesystem::remove_all(path("out"));
  std::filesystem::remove(path("trace"));
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options_.jobs = 2;
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_EQ(overlap(), std::min(2, cores));
  std::filesystem::remove_all(path("out"));
  std::filesystem::remove(path("trace"));
  options_.threads = cores;  // each run takes them all
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_EQ(overlap(), 1);
}

TEST_F(SchedulerTest, NoMoreRunsThanMemoryHolds) {
  options_.memory = 900'000'000;  // a run takes 300 MiB and the 200 MB of its plan
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_EQ(overlap(), 1);
  std::filesystem::remove_all(path("out"));
  std::filesystem::remove(path("trace"));
  options_.memory = 1;  // one is always tried
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_EQ(overlap(), 1);
}

TEST_F(SchedulerTest, AStopEndsProgramsAndTheSweepGoesOnLater) {
  behave("slow");
  std::atomic<bool> stop{false};
  options_.stop = &stop;
  std::thread asks([&] {
    EXPECT_TRUE(eventually([&] { return count('+') >= 1; }));
    std::this_thread::sleep_for(100ms);
    stop = true;
  });
  EXPECT_THROW(static_cast<void>(run_sweep(plan_, options_)), Interrupted);
  asks.join();
  EXPECT_EQ(count('-'), count('+'));  // every one was waited for
  const auto begun = count('+');
  behave("");
  stop = false;
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  EXPECT_NE(trace().find("+ --resume"), std::string::npos);
  EXPECT_EQ(count('+'), begun + 8);
}

TEST_F(SchedulerTest, OneSweepAFolder) {
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
  const int held = ::open(path("out/private").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  try {
    static_cast<void>(run_sweep(plan_, options_));
    ADD_FAILURE() << "two sweeps worked in one folder";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("another sweep"), std::string::npos) << error.what();
  }
  ::close(held);
  EXPECT_TRUE(run_sweep(plan_, options_).empty());
}

TEST_F(SchedulerTest, ASmokeRunAndASweepNeverShareAFolder) {
  const auto smoke = make_plan(plan_.file, path("out"), true);
  EXPECT_TRUE(run_sweep(smoke, options_).empty());
  EXPECT_TRUE(std::filesystem::exists(smoke.look_alike->file));
  EXPECT_NE(refusal([&] { static_cast<void>(run_sweep(plan_, options_)); }).find("a smoke run"), std::string::npos);
}

TEST_F(SchedulerTest, DataThatAreNotThereAreToldOnce) {
  std::filesystem::remove(path("data.txt"));
  EXPECT_THROW(static_cast<void>(run_sweep(plan_, options_)), DataError);
  EXPECT_EQ(trace(), "");
}

/// The program itself, told to stop as by Ctrl-C.
TEST_F(SchedulerTest, AStopHasAnExitCodeOfItsOwn) {
  std::filesystem::copy_file(std::filesystem::path(TSDP_BIN_DIR) / "tsdp-sweep", path("bin/tsdp-sweep"));
  const auto program = path("bin/tsdp-sweep").string();
  const auto sweep = path("sweep.yaml").string();
  const auto out = path("out").string();
  behave("slow");
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto begun = count('+');
    const pid_t child = ::fork();
    if (child == 0) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      ::dup2(nowhere, 1);
      ::dup2(nowhere, 2);
      ::execl(program.c_str(), program.c_str(), "--config", sweep.c_str(), "--output", out.c_str(), nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(eventually([&] { return count('+') > begun; }));
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 130) << signal;
  }
}

/// The program itself among stand-ins, killed without warning.
TEST_F(SchedulerTest, AKilledSweepEndsItsProgramsAndGoesOn) {
  std::filesystem::copy_file(std::filesystem::path(TSDP_BIN_DIR) / "tsdp-sweep", path("bin/tsdp-sweep"));
  const auto program = path("bin/tsdp-sweep").string();
  const auto sweep = path("sweep.yaml").string();
  const auto out = path("out").string();
  const auto start = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      ::dup2(nowhere, 1);
      ::dup2(nowhere, 2);
      ::execl(program.c_str(), program.c_str(), "--config", sweep.c_str(), "--output", out.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  };
  behave("slow");
  auto child = start();
  ASSERT_TRUE(eventually([&] { return count('+') >= 1; }));
  std::this_thread::sleep_for(100ms);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(eventually([&] { return count('-') == count('+'); }));  // the system told them
  behave("");
  child = start();
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_NE(trace().find("+ --resume"), std::string::npos);
  const auto table = nlohmann::json::parse(read_file(path("out/private/table.json")));
  for (const auto& row : table["rows"])
    for (const auto& cell : row["cells"]) EXPECT_EQ(cell["n"], 2);
}

}  // namespace
}  // namespace tsdp::sweep
