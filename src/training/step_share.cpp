#include "training/step_share.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "training/model_setup.h"
#include "training/shared_facts.h"
#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::training {
namespace {

/// What rank 0 says before it sends anything: what to do, and with which step.
enum class Order : std::int64_t {
  step,
  done,
  interrupted,
  validation
};

at::Tensor message(Order order, std::uint64_t step) {
  return at::tensor({static_cast<std::int64_t>(order), static_cast<std::int64_t>(step)}, at::kLong);
}

}  // namespace

void add_masks(const at::Tensor& sum, const SecretKey& key, const data::Rank& rank, const std::string& run,
               std::uint64_t step) {
  auto* values = reinterpret_cast<std::uint64_t*>(sum.data_ptr<std::int64_t>());
  const auto count = static_cast<std::size_t>(sum.numel());
  std::vector<std::uint64_t> mask((count + 7) / 8 * 8);
  for (std::int64_t other = 1; other < rank.of; ++other) {
    if (other == rank.number) continue;
    const auto [low, high] = std::minmax(other, rank.number);
    const RandomStream stream(key, cat("mask of ranks ", low, " and ", high, " of ", rank.of, ", run ", run), step);
    stream.blocks(0, mask);
    for (std::size_t i = 0; i < count; ++i) values[i] = rank.number == low ? values[i] + mask[i] : values[i] - mask[i];
  }
}

StepShare::StepShare(models::Forecaster& model, StepEngine& engine, WindowSource& source,
                     sampling::StructuredSampler& sampler, const data::Shards& shards, Ranks& ranks,
                     std::span<const data::WindowIndex> validation, bool masks)
    : model_(model),
      engine_(engine),
      source_(source),
      sampler_(sampler),
      ranks_(ranks),
      validation_(validation),
      masks_(masks) {
  const auto& scheme = sampler.scheme();
  const auto begins = shards.begins();
  TORCH_CHECK(begins.back() == scheme.sequences(), "the ranks have told of other series than the scheme draws");
  begins_.assign(begins.begin() + shards.first, begins.begin() + shards.first + shards.own + 1);
  for (std::size_t f = 0; f + 1 < begins_.size(); ++f) {
    const auto expected = scheme.expected_windows();
    // A series that is drawn may have any place, and a file all of the batch.
    if (!scheme.draws_each_series()) {
      shards_.push_back({0, scheme.places(), expected});
      continue;
    }
    // Where coins or bins draw every series, it has places of its own.
    const auto parts = scheme.parts_of_a_series();
    const auto share = static_cast<double>(begins_[f + 1] - begins_[f]) / static_cast<double>(begins.back());
    shards_.push_back({begins_[f] * parts, begins_[f + 1] * parts,
                       static_cast<std::int64_t>(std::ceil(share * static_cast<double>(expected)))});
  }
}

at::Tensor StepShare::own_sum(const SecretKey& sampling, std::uint64_t step, StepEngine::Result& result) {
  const auto drawn = sampler_.draw(sampling, step);
  if (static_cast<std::int64_t>(drawn.windows.size()) > StepEngine::most_exact_windows)
    throw Error(ExitCode::failure,
                cat("a batch of ", drawn.windows.size(), " windows; expected at most ", StepEngine::most_exact_windows,
                    " where ranks sum it: a smaller "
                    "sampling.batch_size"));
  // The own windows, file by file, each in the order in which they were drawn.
  std::vector<std::vector<std::size_t>> of_file(shards_.size());
  for (std::size_t w = 0; w < drawn.windows.size(); ++w) {
    const auto series = drawn.windows[w].series;
    if (series < begins_.front() || series >= begins_.back()) continue;
    of_file[static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), series) - begins_.begin() - 1)]
        .push_back(w);
  }
  std::vector<data::WindowIndex> windows;
  std::vector<std::int64_t> places;
  std::vector<std::int64_t> counts;
  for (const auto& own : of_file) {
    for (const auto w : own) {
      windows.push_back({drawn.windows[w].series - begins_.front(), drawn.windows[w].start});
      places.push_back(drawn.places[w]);
    }
    counts.push_back(static_cast<std::int64_t>(own.size()));
  }
  return engine_.exact_sum(source_.gather(windows), places, shards_, counts, result);
}

void StepShare::begin(const std::string& key_print, const std::string& run) {
  static_cast<void>(ranks_.from_first(cat(key_print, " ", run)));
}

StepEngine::Result StepShare::step(const SecretKey& sampling, const SecretKey& noise, std::uint64_t step) {
  ranks_.take_from_first(message(Order::step, step));
  ranks_.take_from_first(model_.parameters().values());
  StepEngine::Result result;
  const auto sum = own_sum(sampling, step, result);
  ranks_.add_up_at_first(sum);
  engine_.finish_exact(sum, noise, step);
  return result;
}

WindowSource::LossSum StepShare::validation_loss(std::uint64_t step) {
  ranks_.take_from_first(message(Order::validation, step));
  ranks_.take_from_first(model_.parameters().values());
  auto out = source_.losses(model_, validation_);
  for (const auto& told : ranks_.gathered(std::span<const double>())) {
    if (told.size() != 2) continue;
    out.sum += told[0];
    out.windows += told[1];
  }
  return out;
}

void StepShare::end(bool done, std::uint64_t steps) {
  ranks_.take_from_first(message(done ? Order::done : Order::interrupted, steps));
}

std::optional<std::uint64_t> StepShare::follow(const SecretKey& shared) {
  const auto run = ranks_.from_first("");
  if (run.empty()) throw Error(ExitCode::failure, "rank 0 has not begun the run; the line that it ended with says why");
  const auto sampling = sampling_key_of(shared, run.substr(0, run.find(' ')));
  for (std::uint64_t next = 0;;) {
    auto said = message(Order::done, 0);
    ranks_.take_from_first(said);
    const auto order = static_cast<Order>(said[0].item<std::int64_t>());
    const auto step = static_cast<std::uint64_t>(said[1].item<std::int64_t>());
    if (order == Order::done) return std::nullopt;
    if (order == Order::interrupted) return step;
    if (order == Order::validation) {
      ranks_.take_from_first(model_.parameters().values());
      const auto own = source_.losses(model_, validation_);
      const std::array<double, 2> told = {own.sum, own.windows};
      static_cast<void>(ranks_.gathered(std::span(told).first(masks_ ? 0 : told.size())));
      continue;
    }
    // Summed again with other weights, a step's masks could be taken off, and its windows would be used twice.
    if (step < next) throw Error(ExitCode::failure, cat("ranks: rank 0 asks for step ", step, " again"));
    next = step + 1;
    ranks_.take_from_first(model_.parameters().values());
    StepEngine::Result result;
    const auto sum = own_sum(sampling, step, result);
    if (masks_) add_masks(sum, *ranks_.mask_key(), ranks_.rank(), run, step);
    ranks_.add_up_at_first(sum);
  }
}

void take_part(const mechanism::Settled& run, const data::PreparedData& data, Ranks& ranks) {
  const auto& config = run.config;
  const auto options = at::TensorOptions(at::kCPU).dtype(at::kFloat);
  const auto model = model_of(config, options);
  const data::WindowStore windows(data.dataset, model->past_length(), config.dataset.prediction_length);
  WindowSource source(windows, features_of(*model, data.dataset), options);
  sampling::StructuredSampler sampler(run.method.scheme());
  StepEngine::Options exactly;
  exactly.exact = true;
  StepEngine engine(*model, run.method, exactly);
  const auto validation = data::windows_of(data.split.validation);
  StepShare share(*model, engine, source, sampler, data.shards.value(), ranks, validation, config.training.mask_sums);
  if (const auto step = share.follow(shared_sampling_key(config, ranks).value()))
    throw Error(ExitCode::interrupted,
                cat("rank 0 was interrupted after step ", *step, "; go on with rank 0's --resume, and here as before"));
}

}  // namespace tsdp::training
