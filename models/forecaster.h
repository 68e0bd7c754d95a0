// What every forecaster is: a composition of layers from a window's past to the parameters of its forecast, the loss of
// each window, a recorded backward pass, and a TorchScript form. models/README.md tells how to add one.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "prior.h"
#include "student_t.h"
#include "tsdp/dp/layers.h"
#include "tsdp/dp/parameters.h"
#include "tsdp/dp/tape.h"
#include "tsdp/random/random.h"
#include "tsdp/settings/config.h"
#include "tsdp/settings/mixture.h"

namespace tsdp::models {

/// Sizes that a model is built for.
struct ModelOptions {
  std::int64_t context_length = 1;  ///< C ≥ 1
  std::int64_t prediction_length = 1;  ///< H ≥ 1
  std::vector<std::int64_t> lags = {};  ///< for models that read lagged values: ≥ 1, in the order they are fed
  std::int64_t time_features = 0;  ///< F: calendar, covariates and age of a step, for models that read them
  /// Scale of a window that holds no observed value, if a model scales by the mean of observed values. It is a
  /// constant: the mean over the batch, which GluonTS takes, lets one window's gradient depend on another's values. At
  /// least 1e-10 is used.
  double default_scale = 0.0;
  std::int64_t width_factor = 1;  ///< multiple of the model's standard widths, ≥ 1
  std::int64_t width = 0;  ///< hidden units of a step or token; 0: the standard ones
  /// Without a prior: whether values that are not observed, in a window or before the start of its series, are read as
  /// the mean of the observed ones in its context (0 if there are none) instead of as 0, as GluonTS does. With a prior
  /// they always are.
  bool imputes = false;
  /// What no value of any series leaves: no quantile, mean or sample of a forecast lies outside. The loss does not know
  /// of it.
  double lower_bound = -std::numeric_limits<double>::infinity();
  double upper_bound = std::numeric_limits<double>::infinity();
  /// Which parameters are trained; the others stay as they are initialised.
  Trainable trainable = Trainable::all;
  Mixture mixture = {};  ///< what exported forecasts are mixed with; the loss knows nothing of it
  Prior prior = {};  ///< its season is at most the context; for a model that reads lags, at most the largest
  /// More parameters are refused (DataError) before memory is taken; for sizes from a file.
  std::int64_t most_parameters = std::numeric_limits<std::int64_t>::max();
  /// If defined, the flat buffer that the parameters are views of: replicas of a model share it.
  at::Tensor parameter_values = {};
  std::int64_t covariates = 0;  ///< K of the time features, which the head of a model that reads no others is told of
  std::int64_t variables = 1;  ///< V of each series, for models that forecast them together
  /// Of a network that another one is mixed with: how many steps of the series one of its own takes. It reads and
  /// forecasts every so many values, beginning at each; its lengths are in its own steps.
  std::int64_t every = 1;
};

/// A batch of windows, P = `Forecaster::past_length()`. Unobserved values are 0. Where series have V variables, each V
/// rows in a row are those of one series at the same steps.
struct WindowBatch {
  at::Tensor past_target;  ///< (B, P)
  at::Tensor past_observed;  ///< (B, P), 1 or 0
  at::Tensor future_target;  ///< (B, H)
  at::Tensor future_observed;  ///< (B, H), 1 or 0
  at::Tensor time_features;  ///< (B, P + H, F), only where the model reads them; 0 before the start of a series

  [[nodiscard]] std::int64_t size() const { return past_target.size(0); }
  /// Windows `begin` … `begin + count − 1`.
  [[nodiscard]] WindowBatch rows(std::int64_t begin, std::int64_t count) const;
};

/// Nothing in `losses` or `distribution` couples two windows of a batch, but those of the `variables()` variables of
/// one series, which are in one record.
class Forecaster {
 public:
  virtual ~Forecaster() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  /// P: how many past values a window carries. All of them can influence its gradient, so this is the context length
  /// that the accountant must be told.
  [[nodiscard]] virtual std::int64_t past_length() const { return options_.context_length; }
  /// Whether windows must come with time features.
  [[nodiscard]] virtual bool reads_time_features() const { return options_.covariates > 0; }
  /// Whether forecasts are sample paths (each step depends on the draw before), not a distribution known at each step.
  [[nodiscard]] virtual bool samples_paths() const { return false; }
  /// How many variables of a series are forecast together: rows of a batch that read each other.
  [[nodiscard]] std::int64_t variables() const { return options_.variables; }
  /// The longest season that it sees as a whole; for a prior.
  [[nodiscard]] virtual std::int64_t longest_season() const { return options_.context_length; }
  [[nodiscard]] const ModelOptions& options() const noexcept { return options_; }

  [[nodiscard]] const dp::ParameterBuffer& parameters() const noexcept { return parameters_; }
  /// Parametric layers whose records make up the per-window gradients.
  [[nodiscard]] const std::vector<dp::Layer*>& layers() const noexcept { return layer_list_; }
  /// Memory that one window's records need in a step, in bytes, approximately.
  [[nodiscard]] virtual std::int64_t bytes_per_window() const = 0;
  /// How many windows of a batch a thread should work on at a time, if not all; fewer may be better if the gradients of
  /// single windows take memory (private steps).
  [[nodiscard]] virtual std::int64_t preferred_chunk(bool is_private) const {
    static_cast<void>(is_private);
    return std::numeric_limits<std::int64_t>::max();
  }

  /// The same model over the same parameter values, with records and gradients of its own: for another thread.
  [[nodiscard]] virtual std::unique_ptr<Forecaster> replica() const;

  /// Draws the initial weights from `stream`.
  virtual void initialise(RandomStream& stream) = 0;

  /// Loss of each window (B): negative log-likelihood as GluonTS has it. Records activations.
  virtual at::Tensor losses(const WindowBatch& batch);
  /// What is exported: this model, or the network whose mixture is trained in its place.
  [[nodiscard]] virtual const Forecaster& network() const { return *this; }
  [[nodiscard]] Forecaster& network() { return const_cast<Forecaster&>(std::as_const(*this).network()); }
  /// Keeps the present weights as those of the start, a candidate of the mixture of exported forecasts.
  void keep_start() { start_ = parameters_.values().clone(); }
  /// Keeps the networks that exported forecasts are mixed with, as many as options().mixture.networks names.
  void keep_networks(std::vector<std::shared_ptr<const Forecaster>> networks) { networks_ = std::move(networks); }
  [[nodiscard]] const std::vector<std::shared_ptr<const Forecaster>>& networks() const noexcept { return networks_; }
  /// Keeps what was trained of the mixture of exported forecasts (mixture_weights.h); views.
  void keep_trained_mixture(std::vector<at::Tensor> trained) { trained_mixture_ = std::move(trained); }
  /// In the order of mixture_parameters (mixture.h); none if nothing was trained.
  [[nodiscard]] const std::vector<at::Tensor>& trained_mixture() const noexcept { return trained_mixture_; }
  /// All parameters of the start, flat; undefined if they are not kept.
  [[nodiscard]] const at::Tensor& start() const noexcept { return start_; }

  /// Backward pass of Σ_i loss_i through everything `losses` recorded.
  virtual void backward();
  /// Forecast distribution of every step that enters the loss, given the values before it.
  StudentT distribution(const WindowBatch& batch);

  /// TorchScript source. For a model whose distribution is known at each step, the method
  ///   def distribution(self, past_target, past_observed, time_features) -> Tuple[Tensor, Tensor, Tensor, Tensor]
  /// that gives df, loc, scale (B, H) and affine_scale (B, 1) from the parameters `self.<name with _ for .>`; for one
  /// that samples paths,
  ///   def paths(self, past_target, past_observed, time_features, draws: Tensor) -> Tensor
  /// that gives (B, S, H) in units of the data from uniform draws (B, S, H, 2) by `self.student_t_draw`.
  [[nodiscard]] virtual std::string script() const = 0;

 protected:
  explicit Forecaster(ModelOptions options) : options_(std::move(options)) {}
  Forecaster(const Forecaster&) = delete;
  Forecaster& operator=(const Forecaster&) = delete;

  /// `batch` imputed as ModelOptions::imputes says, each window by itself; marks stay as they are.
  [[nodiscard]] WindowBatch imputed(const WindowBatch& batch) const;
  /// What the loss is computed from: the head's input, the window's scale, and what a prior adds to it (prior.h).
  struct Hidden {
    dp::Tape::Value value;  ///< (B, K, D): one row a step
    at::Tensor affine_scale;  ///< (B, 1)
    at::Tensor naive = {};  ///< (B, K) in units of the data; undefined without a prior
    at::Tensor growth = {};  ///< (K); undefined where it is 1
  };
  /// A batch's windows in units of their own; `mean_scale` is the model's scale without a prior.
  [[nodiscard]] Frame frame(const WindowBatch& batch, const at::Tensor& mean_scale) const;
  /// Sets the head's weights of covariates to 0. With a prior: sets parameters so that the prior alone is forecast.
  /// `last` holds the prefixes of the layers before the head, which become 0; if there are none, the head's weights do.
  /// Each of the head's maps then reads hidden units of its own, half of them for the location, so that the noise of
  /// one does not disturb the others.
  void start_at_prior(const std::string& head, const std::vector<std::string>& last);
  /// Parts of TorchScript: the methods that `script_frame` calls; lines that set locals `scaled` and `affine_scale`
  /// (with a prior also naive, growth) from past_target, past_observed and an expression of the model's scale; and the
  /// end of `distribution`.
  [[nodiscard]] std::string script_methods() const {
    return filled_past_script(options_.prior) + frame_script(options_.prior) + covariates_script();
  }
  [[nodiscard]] std::string script_frame(const std::string& mean_scale) const;
  [[nodiscard]] std::string script_end() const;
  /// How many numbers of a step the head reads: `width` hidden units, and what `with_covariates` puts beside them.
  [[nodiscard]] std::int64_t head_inputs(std::int64_t width) const { return width + 2 * options_.covariates; }
  /// Hidden units of all steps, (B, H · width), as the head reads them, (B, H, head_inputs(width)): beside them stand
  /// the covariates of each step less their mean over the window's past, and that mean. Where a covariate never changes
  /// (the kind of a building), the mean is what tells it.
  dp::Tape::Value with_covariates(dp::Tape::Value steps, const WindowBatch& batch);
  /// The same in TorchScript: the method `beside`, and lines that turn a local `steps` (B, H · width) into (B, H, D).
  [[nodiscard]] std::string covariates_script() const;
  [[nodiscard]] std::string script_steps() const;
  /// The composition of layers, on `tape_`.
  virtual Hidden forward(const WindowBatch& batch) = 0;
  /// Values the K steps are scored against, (B, K) in units of the data, and their weights in the window's loss.
  struct Scored {
    at::Tensor target, weights;
  };
  /// Unless overridden: the steps to forecast, each observed one weighted by its share of them.
  [[nodiscard]] virtual Scored scored(const WindowBatch& batch) const;

  /// Whether what is neither bias, norm nor head is trained.
  [[nodiscard]] bool trains_all() const noexcept { return options_.trainable == Trainable::all; }
  /// Declares weight and bias of a layer from `inputs` to `outputs`; `linear` makes it after `allocate`.
  std::size_t declare_linear(const std::string& prefix, std::int64_t outputs, std::int64_t inputs);
  /// Allocates parameters and makes the head, which becomes the first of the layers.
  void allocate(const at::TensorOptions& tensor_options, std::size_t head, std::int64_t head_width);
  /// Layers over parameters `first` (weight) and `first + 1` (bias). They join `layers()`.
  std::unique_ptr<dp::Linear> linear(std::size_t first);
  std::unique_ptr<dp::LayerNorm> layer_norm(std::size_t first);

  /// Fills `values` (all parameters, double precision) with a uniform draw on ±bound, entry by entry; a bound of 0
  /// leaves zeros. Then copies it to the parameters.
  void initialise_uniform(RandomStream& stream, const std::function<double(const dp::ParameterBuffer::Entry&)>& bound);

  /// Hidden units that the options ask for.
  [[nodiscard]] std::int64_t width_or(std::int64_t standard) const {
    return options_.width > 0 ? options_.width : standard * options_.width_factor;
  }

  ModelOptions options_;
  dp::ParameterBuffer parameters_;
  at::Tensor start_;
  std::vector<std::shared_ptr<const Forecaster>> networks_;
  std::vector<at::Tensor> trained_mixture_;
  std::vector<dp::Layer*> layer_list_;
  dp::Tape tape_;
  std::unique_ptr<StudentTHead> head_;
  dp::Tape::Value end_ = 0;  // the head's input on the tape
};

/// Builds a forecaster; all tensors have `tensor_options`.
using Factory =
    std::function<std::unique_ptr<Forecaster>(const ModelOptions&, const at::TensorOptions& tensor_options)>;

template <class Model>
[[nodiscard]] Factory factory_of() {
  return [](const ModelOptions& options, const at::TensorOptions& tensor_options) -> std::unique_ptr<Forecaster> {
    return std::make_unique<Model>(options, tensor_options);
  };
}

/// Makes a forecaster known to configurations and to make_model. Throws Error for a name that is taken. A forecaster
/// outside the tree calls this in a line of its source, which is linked into the program:
///   const bool registered = tsdp::models::register_model({"autoregression"},
///   tsdp::models::factory_of<Autoregression>());
bool register_model(const ModelRules& rules, Factory factory);

/// Names of all registered forecasters.
[[nodiscard]] std::vector<std::string> model_names();
/// Throws UsageError that names the known models if `name` is not one of them.
[[nodiscard]] std::unique_ptr<Forecaster> make_model(const std::string& name, const ModelOptions& options,
                                                     const at::TensorOptions& tensor_options);

}  // namespace tsdp::models
