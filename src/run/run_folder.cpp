#include "tsdp/run/run_folder.h"

#include <sys/stat.h>

#include <system_error>
#include <vector>

#include "tsdp/base/error.h"
#include "tsdp/base/file.h"
#include "tsdp/base/text.h"

namespace tsdp::training {

std::vector<std::filesystem::path> RunFolder::needed() const {
  std::vector<std::filesystem::path> out = {config(),  ledger(),         last(),    best(),
                                            charged(), charged_config(), metrics(), report()};
  for (auto& file : weights()) out.push_back(std::move(file));
  return out;
}

std::vector<std::filesystem::path> RunFolder::weights() const {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored))
    if (const auto name = entry.path().filename().string();
        name.find(weights_extension) != std::string::npos || name.starts_with(coefficients))
      out.push_back(entry.path());
  return out;
}

void RunFolder::create() const {
  std::vector<std::filesystem::path> made;  // a folder is durable when its parent is
  for (auto path = std::filesystem::absolute(priv()); !is_there(path) && path.has_relative_path();
       path = path.parent_path())
    made.push_back(path);
  std::error_code error;
  std::filesystem::create_directories(priv(), error);
  if (error) throw Error(ExitCode::failure, cat(root.string(), ": cannot create the run's folder: ", error.message()));
  for (const auto& path : made) sync_folder(path.parent_path());
  protect();
}

void RunFolder::protect() const {
  ::chmod(priv().c_str(), 0700);
  ::chmod(checkpoints().c_str(), 0700);
  for (const auto& file : {last(), best(), charged(), charged_config()}) ::chmod(file.c_str(), 0600);  // if there
}

void RunFolder::remove_leftovers() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints(), error))
    if (entry.path().extension() == ".part") std::filesystem::remove(entry.path(), error);
  if (error) throw Error(ExitCode::failure, cat(checkpoints().string(), ": cannot be tidied: ", error.message()));
}

}  // namespace tsdp::training
