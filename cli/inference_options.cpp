#include "inference_options.h"

#include "program.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::cli {

void add_inference_options(CLI::App& app, InferenceOptions& options, const std::string& seed_help) {
  app.add_flag("--private", options.privately, "Noise the values that forecasts are computed from (Appendix H)");
  app.add_option("--epsilon", options.epsilon, "Of one forecast; with --private");
  app.add_option("--delta", options.delta, "Of one forecast; with --private");
  app.add_option("--v", options.v,
                 "Most by which a value changes between neighbours, in units of the data; with --private");
  app.add_option("--w", options.w, "Values in which neighbours differ; with --private; 1 if not given");
  app.add_option("--keep-probability", options.keep,
                 "Chance that a value is kept, the others being imputed; with --private; 1 if not given");
  app.add_option("--seed", options.seed, seed_help)->check(whole_number);
}

std::optional<evaluation::PrivateInference> inference_of(const InferenceOptions& options) {
  const auto given = [&](const char* name, bool is_given) {
    if (!options.privately && is_given)
      throw UsageError(cat(name, ": given without --private; expected with it alone"));
  };
  given("--epsilon", options.epsilon.has_value());
  given("--delta", options.delta.has_value());
  given("--v", options.v.has_value());
  given("--w", options.w.has_value());
  given("--keep-probability", options.keep.has_value());
  if (!options.privately) return std::nullopt;
  const auto required = [](const char* name, const std::optional<double>& value, const char* expected) {
    if (!value) throw UsageError(cat(name, ": not given; expected with --private ", expected));
    return *value;
  };
  sampling::PrivateContext::Parameters p;
  p.epsilon = required("--epsilon", options.epsilon, "a number greater than 0");
  p.delta = required("--delta", options.delta, "a number from 1e-25 to below 1");
  p.v = required("--v", options.v, "the most by which a value changes, in units of the data");
  p.w = options.w.value_or(1);
  p.keep = options.keep.value_or(1.0);
  try {
    return evaluation::PrivateInference{sampling::PrivateContext(p),
                                        options.seed ? SecretKey::from_seed(*options.seed) : SecretKey::from_system(),
                                        options.seed.has_value()};
  } catch (const UsageError& error) { throw UsageError(cat("--private: ", error.what())); }
}

}  // namespace tsdp::cli
