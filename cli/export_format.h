// Formats of an exported model, and the Python package that writes those that LibTorch cannot.
#pragma once

#include <filesystem>
#include <string>

#include "tsdp/base/names.h"

namespace tsdp::cli {

enum class ExportFormat {
  torchscript,
  onnx,
  torch_export
};
constexpr Names<ExportFormat, 3> names_of(ExportFormat) {
  return {{{ExportFormat::torchscript, "torchscript"},
           {ExportFormat::onnx, "onnx"},
           {ExportFormat::torch_export, "torch_export"}}};
}

/// The format that a file's ending names: .onnx, .pt2; TorchScript for all others.
[[nodiscard]] ExportFormat format_of_ending(const std::filesystem::path& file);

/// Runs `python3 -m tsdp.formats` (or the interpreter that TSDP_PYTHON names), which writes the model of the
/// TorchScript archive `model` to `output`. No code in the archive runs. Throws Error that says what is missing, or
/// what Python found; DataError if `model` is at fault.
void write_by_python(const std::filesystem::path& model, const std::filesystem::path& output, ExportFormat format);

}  // namespace tsdp::cli
