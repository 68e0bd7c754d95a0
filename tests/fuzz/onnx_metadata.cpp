// ONNX models as messages of protocol buffers: whatever the bytes are, texts that are found lie within them.
#include "ledger/onnx_metadata.h"
#include "fuzz.h"

using namespace tsdp;

TSDP_FUZZ(input) {
  const auto texts = mechanism::onnx_texts(input, "privacy.json");
  if (!texts) return;
  std::size_t size = 0;
  for (const auto text : *texts) {
    size += text.size();
    fuzz::expect(
        text.empty() || (text.data() >= input.data() && text.data() + text.size() <= input.data() + input.size()),
        "a text is a part of the file");
  }
  fuzz::expect(size <= input.size(), "texts are no larger than the file");
}
