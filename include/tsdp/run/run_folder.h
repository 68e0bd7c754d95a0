// Folders and files of a run.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace tsdp::training {

/// Folders and files of a run (docs/runs.md: what may be released and what not).
struct RunFolder {
  std::filesystem::path root;

  [[nodiscard]] std::filesystem::path config() const { return root / "config.yaml"; }
  [[nodiscard]] std::filesystem::path ledger() const { return root / "privacy.json"; }
  [[nodiscard]] std::filesystem::path model() const { return root / "model.pt"; }
  [[nodiscard]] std::filesystem::path card() const { return root / "model_card.md"; }
  [[nodiscard]] std::filesystem::path metrics() const { return priv() / "metrics.jsonl"; }
  [[nodiscard]] std::filesystem::path report() const { return priv() / "report.html"; }
  static constexpr std::string_view weights_extension = ".safetensors";
  static constexpr const char* coefficients = "coefficients.json";
  /// Weights and coefficients that the configuration reads, and what a write of them may have left.
  [[nodiscard]] std::vector<std::filesystem::path> weights() const;
  /// Files that a run is not the same without: nothing else may be written over them.
  [[nodiscard]] std::vector<std::filesystem::path> needed() const;
  [[nodiscard]] std::filesystem::path priv() const { return root / "private"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return priv() / "checkpoints"; }
  [[nodiscard]] std::filesystem::path last() const { return checkpoints() / "last.pt"; }
  [[nodiscard]] std::filesystem::path best() const { return checkpoints() / "best.pt"; }
  [[nodiscard]] std::filesystem::path charged() const { return checkpoints() / "charged"; }
  /// The configuration the run began with: what was charged was charged for this one.
  [[nodiscard]] std::filesystem::path charged_config() const { return checkpoints() / "config.yaml"; }

  /// Where a new run's checkpoints() are made before they get their name.
  [[nodiscard]] RunFolder staging() const { return {priv() / "beginning"}; }

  /// Makes the folders around checkpoints(), durably, and protects them. Throws Error.
  void create() const;
  /// Restricts private/ and the files of checkpoints() to the owner, as far as permitted.
  void protect() const;
  /// Removes what crashes during writing left in checkpoints(): such files may hold the key. Throws Error.
  void remove_leftovers() const;
};

}  // namespace tsdp::training
