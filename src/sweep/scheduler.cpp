#include "sweep/scheduler.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/digest.h"
#include "base/log.h"
#include "base/terminal_line.h"
#include "data/writers.h"
#include "process.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"
#include "tsdp/settings/mixture.h"
#include "tsdp/settings/start.h"

namespace tsdp::sweep {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr auto poll_time = std::chrono::milliseconds(10);
constexpr auto show_time = std::chrono::milliseconds(500);
constexpr auto log_time = std::chrono::seconds(60);
constexpr auto orphan_time = std::chrono::seconds(120);
constexpr std::int64_t base_memory = 300 << 20;  // of a program with LibTorch, before data and model

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

/// What `tsdp-train --dry-run` says about a run.
struct Forecast {
  std::int64_t memory = base_memory;
  double steps = 1.0;
};

/// A program under way.
struct Active {
  std::size_t run = 0;
  bool planning = false;
  NextStep step;
  Process process;
  std::int64_t memory = 0;
  std::filesystem::path out;
  std::filesystem::path log;
  std::uintmax_t log_begin = 0;
  std::string program;
  Clock::time_point start = Clock::now();
};

class Scheduler {
 public:
  Scheduler(const SweepPlan& plan, const SweepOptions& options)
      : plan_(plan), options_(options), threads_(threads_of(plan, options)) {
    const int most = std::max(1, cores() / threads_);
    jobs_ = options.jobs > 0 ? std::min(options.jobs, most) : most;
    if (options.jobs > most)
      log::info(cat("--jobs: found ", options.jobs, "; ", most, " at a time, with ", threads_, " threads each on ",
                    cores(), " cores"));
  }

  Failures run() {
    create_folders();
    const Lock sweep(plan_.private_folder(), false);
    if (!sweep.take())
      throw Error(
          ExitCode::failure,
          cat(plan_.output.string(), ": another sweep works in this folder; wait for it, or choose another --output"));
    // The programs of a killed sweep hold this lock until they have ended.
    const Lock programs(plan_.runs_folder(), true);
    wait_for_orphans(programs);
    refuse_another_kind();
    prepare_data();
    refuse_other_data();
    memory_ = options_.memory > 0 ? options_.memory : free_memory();
    for (std::size_t i = 0; i < plan_.runs.size(); ++i)
      if (!take_stock(i)) waiting_.push_back(i);
    if (const auto done = finished(); done > 0)
      log::info(cat(done, " of ", plan_.runs.size(), " runs are done already"));
    tell_caller();
    work();
    line_.clear();
    if (stopping_) throw Interrupted(cat("interrupted with ", finished(), " of ", plan_.runs.size(), " runs done"));
    return failures_;
  }

 private:
  void create_folders() const {
    std::error_code error;
    if (is_there(plan_.output / "privacy.json"))
      throw UsageError(
          cat("--output: found ", plan_.output.string(), ", which holds a run; expected a folder of its own"));
    for (const auto& folder : {plan_.runs_folder(), logs(), plans()}) {
      std::filesystem::create_directories(folder, error);
      if (error) throw Error(ExitCode::failure, cat(folder.string(), ": cannot be created: ", error.message()));
    }
    std::filesystem::permissions(plan_.private_folder(), std::filesystem::perms::owner_all, error);
    write_file_atomically(plan_.private_folder() / "README.txt",
                          "Nothing in this folder is covered by epsilon: scores come from test data. Do not release it "
                          "with the models unless that is meant.\n");
  }

  [[nodiscard]] std::filesystem::path logs() const { return plan_.private_folder() / "logs"; }
  [[nodiscard]] std::filesystem::path plans() const { return plan_.private_folder() / "plans"; }

  void wait_for_orphans(const Lock& lock) {
    const auto start = Clock::now();
    bool told = false;
    while (!lock.take()) {
      if (!told) log::info("waiting for the programs of an earlier sweep to end");
      told = true;
      if (stop_asked()) throw Interrupted("interrupted while waiting for the programs of an earlier sweep");
      if (Clock::now() - start > orphan_time)
        throw Error(
            ExitCode::failure,
            cat(plan_.runs_folder().string(),
                ": programs of an earlier sweep still work in this folder; end them, or choose another --output"));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  /// Every file other than the configuration that decides what the runs learn: series, their owners, covariates,
  /// starts, candidates, coefficients of noise; by the name the configuration uses.
  [[nodiscard]] std::map<std::string, std::filesystem::path> inputs() const {
    std::map<std::string, std::filesystem::path> out;
    for (const auto& run : plan_.runs) {
      auto c = run.config;
      for (const auto& file : data_files(c, plan_.file.config))
        out.try_emplace(c.dataset.has_ranks() ? file.string() : c.dataset.path, file);
      for (const auto& setting : file_settings(c)) out.try_emplace(*setting.value, setting.find(plan_.file.config));
    }
    return out;
  }

  [[nodiscard]] static DataError not_ours(const std::filesystem::path& file) {
    return DataError(
        cat(file.string(), ": not what tsdp-sweep wrote there; expected the file as it was, or another --output"));
  }

  /// Scores of a smoke run and those of a sweep never share a table.
  void refuse_another_kind() const {
    const auto file = plan_.output / "sweep.json";
    if (is_there(file)) {
      const auto about = Json::parse(read_file(file), nullptr, false);
      if (!about.is_object() || !about.contains("smoke") || !about["smoke"].is_boolean()) throw not_ours(file);
      if (about["smoke"] != plan_.smoke)
        throw UsageError(cat("--output: found ", plan_.output.string(), ", which holds a ",
                             plan_.smoke ? "sweep" : "smoke run", "; expected another folder for a ",
                             plan_.smoke ? "smoke run" : "sweep"));
    }
    const Json about = {{"format", "tsdp-sweep-1"}, {"title", plan_.file.title}, {"smoke", plan_.smoke}};
    write_file_atomically(file, json_text(about, 2) + "\n");
  }

  /// Neither do scores on other data, or from other starts. What tells data apart shows them, so it is kept under
  /// private/.
  void refuse_other_data() const {
    const auto file = plan_.private_folder() / "data.json";
    auto digests = Json::object();
    const auto files = inputs();
    for (const auto& [name, path] : files) digests[name] = sha256(read_file(path));
    const auto before = is_there(file) ? Json::parse(read_file(file), nullptr, false) : Json::object();
    if (!before.is_object()) throw not_ours(file);
    for (const auto& [name, digest] : before.items()) {
      if (!digest.is_string()) throw not_ours(file);
      if (digests.contains(name) && digests[name] != digest)
        throw DataError(cat(files.at(name).string(), ": changed since the sweep in ", plan_.output.string(),
                            " began; expected the same file, or another --output"));
      digests[name] = digest;
    }
    write_file_atomically(file, json_text(digests, 2) + "\n", FileAccess::owner);
  }

  void prepare_data() const {
    if (plan_.look_alike) {
      if (is_there(plan_.look_alike->file)) return;
      const auto folder = plan_.look_alike->file.parent_path();
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error) throw Error(ExitCode::failure, cat(folder.string(), ": cannot be created: ", error.message()));
      data::write_dataset(data::generate_traffic_like(plan_.look_alike->options), plan_.look_alike->file,
                          data::Format::lstnet);
      return;
    }
    // Reported once here, not by every run.
    std::set<std::string> looked;
    for (const auto& run : plan_.runs)
      if (!run.config.dataset.is_synthetic() && looked.insert(run.config.dataset.path).second)
        static_cast<void>(data_files(run.config, plan_.file.config));
  }

  [[nodiscard]] bool stop_asked() const { return options_.stop != nullptr && options_.stop->load(); }

  [[nodiscard]] std::size_t finished() const {
    return plan_.runs.size() - waiting_.size() - active_.size() - failures_.size();
  }

  /// Whether a run needs nothing more (or has failed for good). If its state cannot be read, that is its failure.
  bool take_stock(std::size_t i) {
    try {
      steps_[i] = next_step(plan_, plan_.runs[i]);
      return steps_[i].need == Need::nothing;
    } catch (const Error& error) {
      fail(i, error.what());
      return true;
    }
  }

  void fail(std::size_t i, const std::string& reason) {
    failures_[i] = reason;
    line_.clear();
    log::warning(cat(plan_.runs[i].name, ": ", reason));
  }

  void work() {
    while (!waiting_.empty() || !active_.empty()) {
      if (stop_asked() && !stopping_) {
        stopping_ = true;
        line_.clear();
        log::info(cat("ending ", active_.size(), " programs"));
        for (const auto& active : active_) active.process.terminate();
      }
      if (stopping_ && active_.empty()) return;
      if (!stopping_) start_some();
      while (const auto ended = next_ended()) collect(*ended);
      show(false);
      std::this_thread::sleep_for(poll_time);
    }
  }

  /// Starts waiting runs in order while a place and memory are free; a single one is always started.
  void start_some() {
    while (!waiting_.empty() && static_cast<int>(active_.size()) < jobs_) {
      const auto i = waiting_.front();
      const auto& run = plan_.runs[i];
      if (const auto same = refused_.find(run.plan); same != refused_.end()) {
        waiting_.pop_front();
        fail(i, same->second);
        tell_caller();
        continue;
      }
      const bool trains = steps_[i].need == Need::begin || steps_[i].need == Need::resume;
      const auto* forecast = trains && !plan_.smoke ? forecast_of(run) : &base_forecast_;
      // One run asks for a plan while the others of its kind wait for the answer.
      if (forecast == nullptr && std::any_of(active_.begin(), active_.end(), [&](const Active& a) {
            return a.planning && plan_.runs[a.run].plan == run.plan;
          })) {
        if (!bring_forward()) return;
        continue;
      }
      const auto need = forecast != nullptr && trains ? forecast->memory : base_memory;
      std::int64_t taken = 0;
      for (const auto& active : active_) taken += active.memory;
      if (!active_.empty() && taken + need > memory_) return;
      waiting_.pop_front();
      if (steps_[i].need == Need::begin && !base_is_the_same()) {
        fail(i, cat(plan_.file.config.string(),
                    ": changed since the sweep began; the sweep started again takes it as it is"));
        tell_caller();
        continue;
      }
      start(i, forecast == nullptr, need);
    }
  }

  /// tsdp-train reads the base configuration when a run begins; the run's name and column date from when the sweep
  /// began.
  [[nodiscard]] bool base_is_the_same() const {
    try {
      return read_file(plan_.file.config) == plan_.base;
    } catch (const DataError&) { return false; }
  }

  /// Moves a run whose plan is not being made to the front; false if there is none.
  bool bring_forward() {
    const auto planning = [&](std::size_t i) {
      return std::any_of(active_.begin(), active_.end(),
                         [&](const Active& a) { return a.planning && plan_.runs[a.run].plan == plan_.runs[i].plan; });
    };
    const auto other = std::find_if(waiting_.begin(), waiting_.end(), [&](std::size_t i) { return !planning(i); });
    if (other == waiting_.end()) return false;
    const auto i = *other;
    waiting_.erase(other);
    waiting_.push_front(i);
    return true;
  }

  void start(std::size_t i, bool planning, std::int64_t memory) {
    const auto& run = plan_.runs[i];
    const auto step = steps_[i];
    Active active;
    active.run = i;
    active.planning = planning;
    active.step = step;
    active.memory = memory;
    if (step.need == Need::begin && !planning) {
      std::error_code ignored;
      std::filesystem::remove_all(plan_.folder_of(run), ignored);
    }
    auto command = command_of(plan_, run, step, threads_);
    if (planning) command.emplace_back("--dry-run");
    active.program = command.front();
    command.front() = (options_.programs / command.front()).string();
    active.log = logs() / (run.name + ".log");
    active.out = logs() / (run.name + (planning ? ".plan.json" : ".json"));
    {
      std::ofstream log(active.log, std::ios::app);
      log << "$ " << join(command, " ") << "\n";
    }
    std::error_code ignored;
    std::filesystem::permissions(active.log, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
                                 ignored);
    active.log_begin = std::filesystem::file_size(active.log, ignored);
    if (ignored) throw Error(ExitCode::failure, cat(active.log.string(), ": cannot be written: ", ignored.message()));
    active.process = Process::start(command, active.out, active.log);
    active_.push_back(std::move(active));
  }

  void collect(const Ended& end) {
    const auto at =
        std::find_if(active_.begin(), active_.end(), [&](const Active& a) { return a.process.id == end.id; });
    if (at == active_.end()) return;
    const auto active = *at;
    active_.erase(at);
    const auto i = active.run;
    const auto& run = plan_.runs[i];
    if (end.exit_code != 0) {
      if (stopping_) {
        waiting_.push_front(i);
        return;
      }
      const auto reason = reason_of(active, end);
      fail(i, reason);
      // What the plan of one seed refuses, those of the others refuse, too. A plan that was told to stop refused
      // nothing.
      if (active.planning && end.exit_code > 1 && end.exit_code != static_cast<int>(ExitCode::interrupted))
        refused_.emplace(run.plan, reason);
      tell_caller();
      return;
    }
    try {
      if (active.planning) {
        keep_forecast(run, active.out, end.memory);
        waiting_.push_front(i);
        return;
      }
      keep_result(run, active);
    } catch (const Error& error) {
      fail(i, error.what());
      tell_caller();
      return;
    }
    const bool trained = active.step.need != Need::score;
    if (trained && forecast_of(run) != nullptr && active.step.need == Need::begin) {
      auto& speed = speeds_[run.config.model.name];
      speed.first += forecast_of(run)->steps;
      speed.second += seconds_since(active.start);
    }
    const auto before = active.step;
    if (take_stock(i)) {
      if (!failures_.contains(i)) tell_done(i);
      tell_caller();
    } else if (steps_[i].need == before.need && steps_[i].score == before.score) {
      fail(i, cat(active.program, " ended without an error, and without its result"));
      tell_caller();
    } else {
      waiting_.push_front(i);
    }
  }

  void tell_caller() const {
    if (options_.on_done) options_.on_done(failures_);
  }

  void tell_done(std::size_t i) {
    line_.clear();
    log::info(cat(finished(), "/", plan_.runs.size(), " ", plan_.runs[i].name));
  }

  /// The program's own line on stderr, or how it ended.
  [[nodiscard]] static std::string reason_of(const Active& active, const Ended& end) {
    std::string reason;
    std::ifstream log(active.log);
    log.seekg(static_cast<std::streamoff>(active.log_begin));
    for (std::string line; std::getline(log, line);)
      if (line.rfind(active.program + ": ", 0) == 0) reason = line.substr(active.program.size() + 2);
    if (!reason.empty()) return reason;
    if (end.signal == 9) return cat(active.program, " was killed (signal 9): memory may have run out");
    if (end.signal != 0) return cat(active.program, " was ended by signal ", end.signal);
    if (end.exit_code == 127) return cat(active.program, " cannot be started; expected it beside tsdp-sweep");
    return cat(active.program, " ended with exit code ", end.exit_code, "; see ", active.log.string());
  }

  [[nodiscard]] static Json result_of(const std::filesystem::path& file) {
    auto json = Json::parse(read_file(file), nullptr, false);
    if (!json.is_object()) throw DataError(cat(file.string(), ": not a JSON object; expected the result of a program"));
    return json;
  }

  void keep_result(const Run& run, const Active& active) const {
    const auto result = result_of(active.out);
    const auto keep = [&](const ScoreRequest& score) {
      const auto file = plan_.score_file(run, score);
      std::error_code error;
      std::filesystem::create_directories(file.parent_path(), error);
      Json kept = {{"arguments", score.arguments}};
      for (const auto& [key, value] : result.items())
        if (key != "plan" && key != "privacy" && key != "output") kept[key] = value;
      write_file_atomically(file, json_text(kept, 2) + "\n", FileAccess::owner);
    };
    const char* const reason = why_no_score(result, plan_.file.metric);
    if (active.step.need == Need::score) {
      if (reason != nullptr)
        throw DataError(cat(active.out.string(), ": found ", reason, "; expected the scores of tsdp-evaluate"));
      keep(run.scores[active.step.score]);
    } else if (reason == nullptr) {
      // Training ends with the ordinary scores, which need no second program.
      for (const auto& score : run.scores)
        if (score.arguments.empty()) keep(score);
    }
    std::error_code ignored;
    std::filesystem::remove(active.out, ignored);
  }

  void keep_forecast(const Run& run, const std::filesystem::path& out, std::int64_t memory) {
    const auto result = result_of(out);
    constexpr double most = 1e15;
    const auto is_amount = [&](const char* key) {
      return result.contains(key) && result[key].is_number() && result[key] >= 0.0 && result[key] <= most;
    };
    if (!is_amount("memory_mb") || !is_amount("steps"))
      throw DataError(
          cat(out.string(), ": found no memory_mb and steps that are amounts; expected the plan of tsdp-train"));
    // The plan has already read the data; a batch comes on top.
    const auto total = static_cast<double>(std::max(base_memory, memory)) + 1e6 * result["memory_mb"].get<double>();
    const Json kept = {{"memory_bytes", static_cast<std::int64_t>(std::min(total, 1e18))}, {"steps", result["steps"]}};
    write_file_atomically(plans() / (run.plan + ".json"), json_text(kept, 2) + "\n", FileAccess::owner);
    std::error_code ignored;
    std::filesystem::remove(out, ignored);
  }

  [[nodiscard]] const Forecast* forecast_of(const Run& run) {
    if (const auto there = forecasts_.find(run.plan); there != forecasts_.end()) return &there->second;
    const auto file = plans() / (run.plan + ".json");
    if (!why_no_file(file).empty()) return nullptr;
    const auto kept = Json::parse(read_file(file), nullptr, false);
    if (!kept.is_object() || !kept.contains("memory_bytes") || !kept["memory_bytes"].is_number_integer() ||
        !kept.contains("steps") || !kept["steps"].is_number())
      return nullptr;  // made again
    return &forecasts_
                .emplace(run.plan, Forecast{kept["memory_bytes"].get<std::int64_t>(), kept["steps"].get<double>()})
                .first->second;
  }

  /// Steps that a training has completed, from the count it keeps (a few seconds ahead).
  [[nodiscard]] double steps_behind(const Run& run) const {
    const auto charged = plan_.folder_of(run) / "private" / "checkpoints" / "charged";
    if (!why_no_file(charged).empty()) return 0.0;
    std::ifstream in(charged);
    double steps = 0.0;
    in >> steps;
    return steps;
  }

  /// Seconds until the end, if any speed is known.
  [[nodiscard]] std::optional<double> seconds_left() {
    auto speeds = speeds_;  // of a model: steps, and seconds for them
    std::map<std::size_t, double> behind;
    for (const auto& active : active_) {
      if (active.planning || active.step.need == Need::score) continue;
      const auto& run = plan_.runs[active.run];
      behind[active.run] = steps_behind(run);
      if (active.step.need == Need::begin && seconds_since(active.start) > 5.0) {
        auto& speed = speeds[run.config.model.name];
        speed.first += behind[active.run];
        speed.second += seconds_since(active.start);
      }
    }
    double all_steps = 0.0;
    double all_seconds = 0.0;
    for (const auto& [model, speed] : speeds) {
      all_steps += speed.first;
      all_seconds += speed.second;
    }
    if (all_steps <= 0.0) return std::nullopt;
    double left = 0.0;
    const auto add = [&](std::size_t i) {
      if (steps_[i].need == Need::score) return;
      const auto& run = plan_.runs[i];
      const auto* forecast = forecast_of(run);
      const auto speed = speeds.find(run.config.model.name);
      const double rate = speed != speeds.end() && speed->second.first > 0.0
                              ? speed->second.second / speed->second.first
                              : all_seconds / all_steps;
      // For a plan not made yet: as many steps as max_epochs of one step each.
      const double steps =
          forecast != nullptr ? forecast->steps : static_cast<double>(run.config.training.max_epochs.value_or(1000));
      left += rate * std::max(0.0, steps - behind[i]);
    };
    for (const auto i : waiting_) add(i);
    for (const auto& active : active_) add(active.run);
    return left / jobs_;
  }

  void show(bool now) {
    if (!options_.progress || active_.empty()) return;
    if (!now &&
        Clock::now() - last_shown_ < (line_.is_usable() ? Clock::duration(show_time) : Clock::duration(log_time)))
      return;
    last_shown_ = Clock::now();
    std::vector<std::string> names;
    for (const auto& active : active_) {
      const auto& run = plan_.runs[active.run];
      names.push_back(run.name.substr(0, run.name.size() - run.hash.size() - 1) + (active.planning ? " (plan)" : ""));
    }
    std::string head = cat(finished(), "/", plan_.runs.size(), " runs");
    if (!failures_.empty()) head += cat(", ", failures_.size(), " failed");
    if (const auto left = seconds_left()) head += cat(" · ", clock_text(*left), " left");
    if (line_.is_usable()) {
      line_.show(status_text(head, names, TerminalLine::columns()));
    } else {
      log::info(cat(head, " · ", join(names, ", ")));
    }
  }

  const SweepPlan& plan_;
  const SweepOptions& options_;
  int threads_;
  int jobs_ = 1;
  std::int64_t memory_ = 0;
  const Forecast base_forecast_{};
  std::deque<std::size_t> waiting_;
  std::list<Active> active_;
  std::map<std::size_t, NextStep> steps_;
  std::map<std::string, Forecast> forecasts_;
  std::map<std::string, std::string> refused_;  // plans, with the reason
  std::map<std::string, std::pair<double, double>> speeds_;  // of a model: steps, and seconds for them
  Failures failures_;
  bool stopping_ = false;
  TerminalLine line_;
  Clock::time_point last_shown_ = Clock::now();
};

}  // namespace

std::string status_text(const std::string& head, const std::vector<std::string>& names, std::size_t columns) {
  if (width_of(head) > columns) return shortened(head, columns);
  // Each name has its share; the others get what one does not need.
  auto order = names;
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return width_of(a) < width_of(b); });
  const std::size_t between = width_of(head) + 3 + 2 * (names.empty() ? 0 : names.size() - 1);
  std::size_t room = columns > between ? columns - between : 0, most = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    most = room / (order.size() - i);
    if (width_of(order[i]) > most) break;
    room -= width_of(order[i]);
    most = width_of(order[i]);
  }
  constexpr std::size_t least = 8;
  if (names.empty() || (most < least && most < width_of(order.back())))
    return shortened(cat(head, " · ", names.size(), " at work"), columns);
  std::vector<std::string> shown;
  for (const auto& name : names) shown.push_back(shortened(name, most));
  return cat(head, " · ", join(shown, ", "));
}

int threads_of(const SweepPlan& plan, const SweepOptions& options) {
  if (options.threads > 0) return std::min(options.threads, 4096);
  return plan.runs.size() == 1 ? cores() : 1;
}

Failures run_sweep(const SweepPlan& plan, const SweepOptions& options) { return Scheduler(plan, options).run(); }

}  // namespace tsdp::sweep
