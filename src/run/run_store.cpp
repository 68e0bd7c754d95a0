#include "run/run_store.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/digest.h"
#include "run/charged_for.h"
#include "settings/setup.h"
#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/json.h"
#include "tsdp/base/text.h"

namespace tsdp::training {

void RunStore::lock() {
  lock_.emplace(folder_.priv(), "another process trains in this folder; wait for it, or begin a run in another folder");
}

void RunStore::claim() {
  const auto refuse_if = [&](bool taken) {
    if (taken)
      throw UsageError(cat(folder_.root.string(), ": holds a run already; expected a new folder, or --resume"));
  };
  refuse_if(is_there(folder_.checkpoints()) || is_there(folder_.ledger()));
  for (const auto& file : {folder_.config(), folder_.model(), folder_.card()})
    if (is_there(file))
      throw UsageError(cat(file.string(), ": is there already and would be overwritten; expected a new folder"));
  const auto refuse_weights = [&] {  // that a run kept and that did not begin
    if (const auto found = folder_.weights(); !found.empty())
      throw UsageError(cat(found.front().string(),
                           ": is there already and would pass for what this run began with; expected a new folder"));
  };
  refuse_weights();
  folder_.create();
  lock();
  refuse_if(is_there(folder_.checkpoints()));  // another process may have been faster
  refuse_weights();
  run_ = SecretKey::from_system().hex().substr(0, 32);
}

std::string RunStore::keep_coefficients(const privacy::NoiseRecursion& recursion) const {
  write_file_atomically(folder_.root / RunFolder::coefficients, privacy::coefficients_text(recursion));
  return RunFolder::coefficients;
}

std::string RunStore::keep_weights(const std::string& name, const std::string& bytes) const {
  const auto file = cat(name, RunFolder::weights_extension);
  write_file_atomically(folder_.root / file, bytes);
  return file;
}

void RunStore::begin(const Config& config, const data::PreparedData& data, const SecretKey& key,
                     const Checkpoint& first, std::uint64_t planned) {
  // Everything a run cannot do without is made in a staging folder and gets its name at once.
  const auto made = folder_.staging();
  std::error_code error;
  std::filesystem::remove_all(made.root, error);
  std::filesystem::create_directories(made.checkpoints(), error);
  if (error) throw Error(ExitCode::failure, cat(made.root.string(), ": cannot be made: ", error.message()));
  write_file_atomically(made.charged_config(), charged_for(config, data, run_), FileAccess::owner);
  Charge::create(made.charged(), key, run_, planned);
  save_checkpoint(made.last(), first);
  std::filesystem::rename(made.checkpoints(), folder_.checkpoints(), error);
  if (error) throw Error(ExitCode::failure, cat(folder_.checkpoints().string(), ": cannot be made: ", error.message()));
  std::filesystem::remove_all(made.root, error);
  sync_folder(folder_.priv());
  folder_.protect();
  charge_.emplace(folder_.charged());
  write_file_atomically(folder_.config(), config_text(config));
  write_file_atomically(folder_.priv() / "README.txt",
                        "Nothing in this folder is covered by epsilon: it shows data, losses or the secret key of the "
                        "randomness. Do not release it.\n",
                        FileAccess::owner);
}

void RunStore::require_run(const std::filesystem::path& file, const std::string& found) const {
  if (found != run_)
    throw DataError(cat(file.string(), ": belongs to run ", found, "; the run in this folder is ", run_,
                        ": put its own file back"));
}

std::optional<std::uint64_t> RunStore::planned() const {
  const auto kept = charge_ ? charge_->planned() : std::nullopt;
  if (!is_there(folder_.ledger())) return kept;
  const auto where = folder_.ledger().string();
  const auto stated = mechanism::read_ledger(parse_json(read_file(folder_.ledger()), where), where).steps_planned;
  return kept ? std::min(*kept, stated) : stated;
}

bool RunStore::ask_the_ledger(const Config& config, std::uint64_t planned, const std::string& print,
                              const mechanism::Start& start) {
  if (!is_there(folder_.ledger())) {
    // A crash right after the beginning leaves none; no step is charged then.
    if (charge_->steps() > 0)
      throw PrivacyError(cat(folder_.ledger().string(),
                             ": is gone, and with it the record of what this run has spent; put it back, or begin a "
                             "new run in another folder"));
    return true;
  }
  const auto where = folder_.ledger().string();
  const auto ledger = mechanism::read_ledger(parse_json(read_file(folder_.ledger()), where), where);
  require_run(folder_.ledger(), ledger.run.id);
  if (ledger.run.configuration != sha256(config_text(config)))
    throw DataError(cat(where, ": names another configuration than the run's; put the run's own file back"));
  mechanism::require_terms_of(config, ledger, where);
  if (ledger.start != start)
    throw DataError(
        cat(where, ": start: states other weights than those of the run's folder; put its own *.safetensors back"));
  if (ledger.steps_charged > planned)
    throw PrivacyError(cat(where, ": steps_charged: found ", ledger.steps_charged, "; the plan has ", planned,
                           ", so the budget of this run is spent"));
  charge_->at_least(ledger.steps_charged);
  return ledger.run.key_print == print;
}

std::optional<Checkpoint> RunStore::take_up(const Config& config, const data::PreparedData& data,
                                            std::uint64_t planned) {
  if (!is_there(folder_.checkpoints())) {
    if (is_there(folder_.ledger()))
      throw PrivacyError(cat(folder_.checkpoints().string(),
                             ": is gone, and with it the count of charged steps, so the budget of this run counts as "
                             "spent; put it back, or begin a new run in another folder"));
    throw UsageError(cat(folder_.root.string(), ": holds no run; expected the folder of an earlier tsdp-train"));
  }
  for (const auto& [file, what] :
       {std::pair{folder_.charged(), "the count of charged steps"},
        std::pair{folder_.charged_config(), "the configuration that steps were charged for"}})
    if (!is_there(file))
      throw PrivacyError(cat(file.string(), ": ", what,
                             " is gone, so the budget of this run counts as spent; begin a new run in another folder"));
  lock();
  folder_.protect();  // a copy or an archive may have lost the modes
  folder_.remove_leftovers();
  run_ = run_charged_for(folder_);
  auto checkpoint = load_checkpoint(folder_.last());
  if (checkpoint) require_run(folder_.last(), checkpoint->run);
  refuse_what_was_not_charged_for(folder_, config, data);
  put_config_back(folder_);
  charge_.emplace(folder_.charged());
  require_run(folder_.charged(), charge_->run());
  if (checkpoint && checkpoint->step > planned)
    throw DataError(cat(folder_.last().string(), ": found ", checkpoint->step, " steps; the plan has ", planned));
  if (charge_->steps() > planned)
    throw PrivacyError(cat(folder_.charged().string(), ": found ", charge_->steps(), " steps charged; the plan has ",
                           planned, ", so the budget of this run is spent"));
  return checkpoint;
}

void RunStore::write_ledger(const mechanism::Ledger& ledger) const {
  write_file_atomically(folder_.ledger(), json_text(mechanism::document(ledger), 2) + "\n");
}

}  // namespace tsdp::training
