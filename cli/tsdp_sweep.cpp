// tsdp-sweep: a grid of configurations and seeds, several runs at a time, resumable, ending in a table.
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "program.h"
#include "sweep/table.h"
#include "sweep/table_text.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace {

using tsdp::cat;

const char* name(tsdp::sweep::Need need) {
  switch (need) {
    case tsdp::sweep::Need::begin: return "begin";
    case tsdp::sweep::Need::resume: return "resume";
    case tsdp::sweep::Need::score: return "score";
    case tsdp::sweep::Need::nothing: return "done";
  }
  return "";
}

/// Prints what would be done, as far as the disk shows it now.
void print_plan(const tsdp::sweep::SweepPlan& plan, int threads, bool as_json) {
  nlohmann::ordered_json out;
  out["output"] = plan.output.string();
  out["runs"] = nlohmann::ordered_json::array();
  for (const auto& run : plan.runs) {
    auto step = tsdp::sweep::next_step(plan, run);
    const std::string state = name(step.need);
    nlohmann::ordered_json commands = nlohmann::ordered_json::array();
    if (step.need == tsdp::sweep::Need::begin || step.need == tsdp::sweep::Need::resume)
      commands.push_back(tsdp::sweep::command_of(plan, run, step, threads));
    for (std::size_t i = 0; i < run.scores.size(); ++i) {
      if (tsdp::sweep::is_scored(plan, run, i)) continue;
      if (!commands.empty() && run.scores[i].arguments.empty()) continue;  // training gives this score
      commands.push_back(tsdp::sweep::command_of(plan, run, {tsdp::sweep::Need::score, i}, threads));
    }
    out["runs"].push_back(
        {{"name", run.name}, {"seed", run.seed}, {"state", state}, {"commands", std::move(commands)}});
  }
  if (as_json) {
    tsdp::cli::print_json(out);
    return;
  }
  auto text = cat(plan.file.title, ": ", plan.cells.size(), " cells, ", plan.runs.size(), " runs in ",
                  plan.output.string(), "\n");
  for (const auto& run : out["runs"]) {
    text += cat(run["state"].get<std::string>(), " ", run["name"].get<std::string>(), "\n");
    for (const auto& command : run["commands"])
      text += cat("    ", tsdp::join(command.get<std::vector<std::string>>(), " "), "\n");
  }
  tsdp::cli::print(text);
}

/// What the program is asked for.
struct Options {
  tsdp::cli::CommonOptions common;
  std::string config, output;
  bool smoke = false;
  bool dry_run = false;
  tsdp::sweep::SweepOptions sweep;
};

void add_options(CLI::App& app, Options& o) {
  tsdp::cli::add_common_options(app, o.common);
  app.add_option("--config", o.config, "Sweep file; also looked up in configs/sweeps, configs/paper and configs")
      ->required();
  app.add_option("--output", o.output, "Folder of the sweep, new or to go on with (default: runs/sweep-<name>)");
  app.add_flag("--smoke", o.smoke,
               "Only show that all of it runs: look-alike data, one seed, two steps, each row and column once");
  app.add_option("--jobs", o.sweep.jobs, "Most runs at a time; 0: as many as cores and memory allow")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--threads", o.sweep.threads, "CPU threads of each run; 0: one (all cores for a single run)")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_flag("--dry-run", o.dry_run, "Print the runs, how far each is, and the commands, and run nothing");
}

/// The folder that this program lies in, beside those that it starts.
std::filesystem::path folder_of_programs() {
  std::error_code error;
  auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error)
    throw tsdp::Error(tsdp::ExitCode::failure, cat("/proc/self/exe: cannot be read: ", error.message(),
                                                   "; the programs beside this one are looked up by it"));
  return folder;
}

/// Takes every run to its end, and writes the table anew after each.
tsdp::sweep::Failures take_runs(const tsdp::sweep::SweepPlan& plan, const Options& o) {
  auto options = o.sweep;
  options.stop = &tsdp::cli::stop_on_signals();
  options.progress = !o.common.quiet;
  options.programs = folder_of_programs();
  options.on_done = [&](const tsdp::sweep::Failures& so_far) {
    tsdp::sweep::write_table(plan, tsdp::sweep::read_table(plan, so_far));
  };
  try {
    return tsdp::sweep::run_sweep(plan, options);
  } catch (const tsdp::sweep::Interrupted& interrupted) {
    throw tsdp::Error(interrupted.code(),
                      cat(interrupted.what(), "; go on with: tsdp-sweep --config ", plan.file.path.string(),
                          " --output ", plan.output.string(), plan.smoke ? " --smoke" : ""));
  }
}

/// One line with each reason once, together with the first run that it ended.
std::string failed_text(const tsdp::sweep::SweepPlan& plan, const tsdp::sweep::Failures& failures) {
  std::vector<std::string> reasons;
  std::set<std::string> said;
  for (const auto& [i, reason] : failures)
    if (said.insert(reason).second) reasons.push_back(cat(plan.runs[i].name, ": ", reason));
  return cat(failures.size(), " of ", plan.runs.size(), " runs failed: ", tsdp::join(reasons, "; "));
}

int sweep(const Options& o) {
  const auto file = tsdp::sweep::find_sweep_file(o.config);
  const auto output = o.output.empty() ? cat("runs/sweep-", file.stem().string(), o.smoke ? "-smoke" : "") : o.output;
  const auto plan = tsdp::sweep::make_plan(tsdp::sweep::read_sweep_file(file), output, o.smoke);
  if (o.dry_run) {
    print_plan(plan, tsdp::sweep::threads_of(plan, o.sweep), o.common.json);
    return 0;
  }
  const auto failures = take_runs(plan, o);
  auto table = tsdp::sweep::read_table(plan, failures);
  table.joint = tsdp::sweep::joint_statements(plan);
  tsdp::sweep::write_table(plan, table);
  if (o.common.json) {
    std::cout << tsdp::sweep::json(table);
  } else {
    tsdp::cli::print(tsdp::sweep::markdown(table));
  }
  if (!failures.empty()) throw tsdp::Error(tsdp::ExitCode::failure, failed_text(plan, failures));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains and scores a grid of configurations and seeds, and sets the table beside a paper's numbers.",
               "tsdp-sweep");
  Options options;
  add_options(app, options);
  return tsdp::cli::run(app, argc, argv, options.common, [&] { return sweep(options); });
}
