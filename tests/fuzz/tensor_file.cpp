// Checkpoints and the data of models: with whatever checksum, and with the right one, what is read is written and read
// as the same; nothing else is accepted.
#include "tsdp/base/tensor_file.h"
#include "base/digest.h"
#include "fuzz.h"

using namespace tsdp;

namespace {

void check(const std::string& bytes) {
  TensorFile file;
  if (!fuzz::accepted([&] { file = read_tensor_file(bytes, "last.pt"); }, {"last.pt"})) return;
  const auto again = tensor_file_bytes(file);
  const auto found = read_tensor_file(again, "again");
  fuzz::expect(found.texts == file.texts && found.tensors.size() == file.tensors.size(), "a tensor file reads back");
  fuzz::expect(tensor_file_bytes(found) == again, "to the same bytes");
}

}  // namespace

TSDP_FUZZ(input) {
  check(std::string(input));
  std::string signed_bytes(input);
  const auto hex = sha256(input);
  for (std::size_t i = 0; i < hex.size(); i += 2)
    signed_bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  check(signed_bytes);
}
