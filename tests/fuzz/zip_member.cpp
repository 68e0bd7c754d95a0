// Exported models as archives: a member is read whole, or the archive is refused in a line.
#include "fuzz.h"
#include "tsdp/core/zip_file.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto file = fuzz::put("model.pt", input);
  std::string member;
  if (fuzz::accepted([&] { member = read_zip_member(file, "extra/tsdp.safetensors", 1 << 20); }, {file.string()}))
    fuzz::expect(member.size() <= (1 << 20), "a member is no larger than was allowed");
}
