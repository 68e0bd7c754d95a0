"""PyTorch, torch.func and Opacus for step.py: the four models and one training step of each."""

import warnings

import torch
from torch import nn
from torch.nn import functional as F

HALF_LOG_PI = 0.5723649429247001
EPSILON = torch.finfo(torch.float32).eps


# ---- the models: a forward pass gives the loss of every window -------------------------------------------------------


def mean_scale(target, observed):
    sums = (target * observed).abs().sum(1, keepdim=True)
    return (sums / observed.sum(1, keepdim=True).clamp(min=1.0)).clamp(min=1e-10)


class StudentT(nn.Linear):
    """The three affine maps of the head as one layer."""

    def __init__(self, width):
        super().__init__(width, 3)

    def nll(self, hidden, target, scale):
        df, loc, width = self(hidden).unbind(-1)
        df = 2.0 + F.softplus(df)
        width = F.softplus(width).clamp(min=EPSILON)
        z = (target / scale - loc) / width
        return (scale.log() + width.log() + 0.5 * df.log() + HALF_LOG_PI + torch.lgamma(0.5 * df)
                - torch.lgamma(0.5 * (df + 1.0)) + 0.5 * (df + 1.0) * torch.log1p(z * z / df))


def observed_mean(nll, observed):
    return torch.where(observed > 0.0, nll, 0.0).sum(1) / observed.sum(1).clamp(min=1.0)


class SimpleFF(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.steps = task.forecast
        self.nn = nn.Sequential(nn.Linear(task.context, 64), nn.ReLU(), nn.Linear(64, 64 * task.forecast))
        self.head = StudentT(64)

    def forward(self, past, past_observed, future, future_observed):
        scale = past.abs().mean(1, keepdim=True).clamp(min=1e-5)
        hidden = self.nn(past / scale).unflatten(1, (self.steps, 64))
        return observed_mean(self.head.nll(hidden, future, scale), future_observed)


class DLinear(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.steps = task.forecast
        self.seasonal = nn.Linear(task.context, 20 * task.forecast)
        self.trend = nn.Linear(task.context, 20 * task.forecast)
        self.head = StudentT(20)

    def forward(self, past, past_observed, future, future_observed):
        scale = mean_scale(past, past_observed)
        u = past / scale
        trend = F.avg_pool1d(F.pad(u.unsqueeze(1), (12, 12), mode="replicate"), 25, stride=1).squeeze(1)
        hidden = (self.seasonal(u - trend) + self.trend(trend)).unflatten(1, (self.steps, 20))
        return observed_mean(self.head.nll(hidden, future, scale), future_observed)


class ITransformer(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.steps = task.forecast
        self.embedding = nn.Linear(task.context + 2, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(32), enable_nested_tensor=False)
        self.projection = nn.Linear(32, 8 * task.forecast)
        self.head = StudentT(8)

    def forward(self, past, past_observed, future, future_observed):
        scale = mean_scale(past, past_observed)
        token = torch.cat((past / scale, torch.zeros_like(scale), scale.log()), 1)
        hidden = self.projection(self.encoder(self.embedding(token).unsqueeze(1)).squeeze(1)).unflatten(1, (self.steps, 8))
        return torch.where(future_observed > 0.0, self.head.nll(hidden, future, scale), 0.0).mean(1)


class UnrolledLSTM(nn.Module):
    """nn.LSTM in operators for which torch.func has batched forms; the input's share of the gates in one product."""

    def __init__(self, inputs, width, num_layers, batch_first):
        super().__init__()
        assert batch_first
        self.width = width
        self.layers = num_layers
        for i in range(num_layers):
            shapes = {"weight_ih": (4 * width, inputs if i == 0 else width), "weight_hh": (4 * width, width),
                      "bias_ih": (4 * width,), "bias_hh": (4 * width,)}
            for name, shape in shapes.items():
                self.register_parameter(f"{name}_l{i}", nn.Parameter(torch.empty(shape)))

    def forward(self, x):
        for layer in range(self.layers):
            w_ih, w_hh, b_ih, b_hh = (getattr(self, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            h = c = x.new_zeros(x.shape[0], self.width)
            outputs = []
            for gates in F.linear(x, w_ih, b_ih + b_hh).unbind(1):
                i, f, g, o = (gates + h @ w_hh.t()).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
                outputs.append(h)
            x = torch.stack(outputs, 1)
        return x, (h, c)


class DeepAR(nn.Module):
    def __init__(self, task, lstm):
        super().__init__()
        self.context = task.context
        self.steps = task.context + task.forecast - 1
        # The j-th lag at step k is place start[j] + k of past and future together.
        self.starts = [max(task.lags) - lag for lag in task.lags]
        self.embedding = nn.Embedding(1, 1)
        self.lstm = lstm(len(task.lags) + 8, 40, num_layers=2, batch_first=True)
        self.head = StudentT(40)

    def forward(self, past, past_observed, future, future_observed, category, features):
        scale = mean_scale(past[:, -self.context :], past_observed[:, -self.context :])
        target = torch.cat((past, future), 1)
        observed = torch.cat((past_observed, future_observed), 1)
        lagged = (target * observed / scale).unfold(1, self.steps, 1)[:, self.starts].transpose(1, 2)
        static = torch.cat((self.embedding(category), torch.zeros_like(scale), scale.log()), 1)
        inputs = torch.cat((lagged, static.unsqueeze(1).expand(-1, self.steps, -1), features), 2)
        hidden, _ = self.lstm(inputs)
        nll = self.head.nll(hidden, target[:, -self.steps :], scale)
        return (nll * observed[:, -self.steps :]).mean(1)


def make_model(task, lstm=nn.LSTM):
    models = {"simple_ff": SimpleFF, "dlinear": DLinear, "itransformer": ITransformer}
    model = DeepAR(task, lstm) if task.model == "deepar" else models[task.model](task)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in task.parameters().items()}, strict=True)
    return model.to(task.device).train()


# ---- the steps -------------------------------------------------------------------------------------------------------


def make_adam(task, parameters):
    return torch.optim.Adam(parameters, lr=task.learning_rate, weight_decay=task.weight_decay, fused=True)


def plain_step(task, data):
    model = make_model(task)
    adam = make_adam(task, model.parameters())

    def step():
        adam.zero_grad()
        model(*data).mean().backward()
        adam.step()

    return step, adam


def opacus_step(task, data, ghost):
    # Imported here so that the other engines do not load it.
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
    from opacus.validators import ModuleValidator

    warnings.filterwarnings("ignore", message="Full backward hook")
    model = ModuleValidator.fix(make_model(task))  # DPLSTM and DPMultiheadAttention for nn's
    ModuleValidator.validate(model, strict=True)
    assert sum(p.numel() for p in model.parameters()) == task.parameter_count
    adam = make_adam(task, model.parameters())
    options = {"noise_multiplier": task.noise_multiplier, "max_grad_norm": task.clip, "expected_batch_size": task.batch}
    if ghost:
        model = GradSampleModuleFastGradientClipping(model, max_grad_norm=task.clip)
        optimizer = DPOptimizerFastGradientClipping(adam, **options)
    else:
        model = GradSampleModule(model)
        optimizer = DPOptimizer(adam, **options)

    def step():
        optimizer.zero_grad(set_to_none=True)
        losses = model(*data)
        (DPTensorFastGradientClipping(model, optimizer, losses) if ghost else losses.mean()).backward()
        optimizer.step()

    return step, adam


def vmap_step(task, data, compiled):
    model = make_model(task, UnrolledLSTM)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    adam = make_adam(task, model.parameters())

    def loss(values, *sample):
        return torch.func.functional_call(model, values, tuple(x.unsqueeze(0) for x in sample)).squeeze(0)

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None,) + (0,) * len(data))

    def private_gradients(values, *batch):
        gradients = per_sample(values, *batch)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
        factors = (task.clip / (norms + 1e-6)).clamp(max=1.0)
        return {
            name: (torch.einsum("i,i...", factors, g) + task.noise_multiplier * task.clip * torch.randn_like(g[0])) / task.batch
            for name, g in gradients.items()
        }

    work = torch.compile(private_gradients, fullgraph=True, dynamic=False) if compiled else private_gradients

    def step():
        gradients = work(parameters, *data)
        for name, p in model.named_parameters():
            p.grad = gradients[name]
        adam.step()

    return step, adam


def prepare(task):
    """A training step, and a function that returns Adam's first moments after it."""
    torch.set_num_threads(task.threads)
    torch.set_flush_denormal(True)
    data = tuple(torch.from_numpy(x).to(task.device) for x in task.data())
    work, adam = {
        "torch": lambda: plain_step(task, data),
        "opacus": lambda: opacus_step(task, data, ghost=False),
        "opacus_ghost": lambda: opacus_step(task, data, ghost=True),
        "torch_vmap": lambda: vmap_step(task, data, compiled=False),
        "torch_compile_vmap": lambda: vmap_step(task, data, compiled=True),
    }[task.engine]()

    def step():
        work()
        if task.device != "cpu":
            torch.cuda.synchronize()

    return step, lambda: [state["exp_avg"].cpu().numpy() for state in adam.state.values()]
