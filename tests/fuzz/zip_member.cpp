// Exported models as archives: every member is read whole, or the archive is refused in a line.
#include "base/zip_file.h"
#include "fuzz.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto file = fuzz::put("model.pt", input);
  std::map<std::string, std::string> members;
  std::size_t size = 0;
  if (!fuzz::accepted([&] { members = read_zip(file); }, {file.string()})) return;
  for (const auto& [name, content] : members) size += content.size();
  fuzz::expect(size <= (16 << 20) + 8 * input.size(), "an archive unpacks to no more than was allowed");
}
