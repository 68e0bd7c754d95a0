// Files in the form csv: what is read is written and read again as the same.
#include "fuzz.h"

TSDP_FUZZ(input) { tsdp::fuzz::round_trip(input, tsdp::data::Format::csv); }
