"""JAX for step.py: the four models and one training step of each."""

import jax
from jax import numpy as jnp

HALF_LOG_PI = 0.5723649429247001
EPSILON = jnp.finfo(jnp.float32).eps


# ---- the models: the loss of one window ------------------------------------------------------------------------------


def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def mean_scale(target, observed):
    return jnp.maximum(jnp.abs(target * observed).sum() / jnp.maximum(observed.sum(), 1.0), 1e-10)


def student_t(p, hidden, target, scale):
    raw = linear(p, "head", hidden)
    df, loc, width = 2.0 + jax.nn.softplus(raw[:, 0]), raw[:, 1], jnp.maximum(jax.nn.softplus(raw[:, 2]), EPSILON)
    z = (target / scale - loc) / width
    gammaln = jax.scipy.special.gammaln
    return (jnp.log(scale) + jnp.log(width) + 0.5 * jnp.log(df) + HALF_LOG_PI + gammaln(0.5 * df) - gammaln(0.5 * (df + 1.0))
            + 0.5 * (df + 1.0) * jnp.log1p(z * z / df))


def observed_mean(nll, observed):
    return jnp.where(observed > 0.0, nll, 0.0).sum() / jnp.maximum(observed.sum(), 1.0)


def simple_ff(task, p, past, past_observed, future, future_observed):
    scale = jnp.maximum(jnp.abs(past).mean(), 1e-5)
    hidden = linear(p, "nn.2", jax.nn.relu(linear(p, "nn.0", past / scale))).reshape(task.forecast, 64)
    return observed_mean(student_t(p, hidden, future, scale), future_observed)


def dlinear(task, p, past, past_observed, future, future_observed):
    scale = mean_scale(past, past_observed)
    u = past / scale
    # The moving average with repeated ends as a constant matrix.
    places = jnp.clip(jnp.arange(task.context)[:, None] + jnp.arange(-12, 13), 0, task.context - 1)
    average = jax.nn.one_hot(places, task.context).mean(1)
    trend = average @ u
    hidden = (linear(p, "seasonal", u - trend) + linear(p, "trend", trend)).reshape(task.forecast, 20)
    return observed_mean(student_t(p, hidden, future, scale), future_observed)


def layer_norm(p, name, x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def itransformer(task, p, past, past_observed, future, future_observed):
    scale = mean_scale(past, past_observed)
    token = jnp.concatenate((past / scale, jnp.stack((jnp.zeros_like(scale), jnp.log(scale)))))
    x = linear(p, "embedding", token[None, :])
    for i in range(2):
        at = f"encoder.layers.{i}."
        qkv = x @ p[at + "self_attn.in_proj_weight"].T + p[at + "self_attn.in_proj_bias"]
        q, k, v = (part.reshape(-1, 4, 8) for part in jnp.split(qkv, 3, axis=-1))
        attended = jax.nn.dot_product_attention(q, k, v).reshape(x.shape)
        x = layer_norm(p, at + "norm1", x + linear(p, at + "self_attn.out_proj", attended))
        x = layer_norm(p, at + "norm2", x + linear(p, at + "linear2", jax.nn.relu(linear(p, at + "linear1", x))))
    hidden = linear(p, "projection", layer_norm(p, "encoder.norm", x)).reshape(task.forecast, 8)
    return jnp.where(future_observed > 0.0, student_t(p, hidden, future, scale), 0.0).mean()


def lstm(p, layer, x):
    w_hh = p[f"lstm.weight_hh_l{layer}"]
    gates = x @ p[f"lstm.weight_ih_l{layer}"].T + p[f"lstm.bias_ih_l{layer}"] + p[f"lstm.bias_hh_l{layer}"]

    def cell(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + w_hh @ h, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros(w_hh.shape[1])
    return jax.lax.scan(cell, (zeros, zeros), gates)[1]


def deepar(task, p, past, past_observed, future, future_observed, category, features):
    steps = task.context + task.forecast - 1
    scale = mean_scale(past[-task.context :], past_observed[-task.context :])
    target = jnp.concatenate((past, future))
    observed = jnp.concatenate((past_observed, future_observed))
    scaled = target * observed / scale
    lagged = jnp.stack([scaled[max(task.lags) - lag :][:steps] for lag in task.lags], axis=1)
    static = jnp.concatenate((p["embedding.weight"][category], jnp.stack((jnp.zeros_like(scale), jnp.log(scale)))))
    x = jnp.concatenate((lagged, jnp.broadcast_to(static, (steps, 3)), features), axis=1)
    hidden = lstm(p, 1, lstm(p, 0, x))
    return (student_t(p, hidden, target[-steps:], scale) * observed[-steps:]).mean()


# ---- the steps -------------------------------------------------------------------------------------------------------


def prepare(task):
    """A training step, and a function that returns Adam's first moments after it."""
    model = {"simple_ff": simple_ff, "dlinear": dlinear, "itransformer": itransformer, "deepar": deepar}[task.model]

    def loss(p, *sample):
        return model(task, p, *sample)

    def losses(p, *batch):
        return jax.vmap(loss, in_axes=(None,) + (0,) * len(batch))(p, *batch)

    def private_gradients(p, key, *batch):
        gradients = jax.vmap(jax.grad(loss), in_axes=(None,) + (0,) * len(batch))(p, *batch)
        norms = jnp.sqrt(sum(jnp.square(g).reshape(task.batch, -1).sum(1) for g in gradients.values()))
        factors = jnp.minimum(task.clip / (norms + 1e-6), 1.0)
        if task.engine == "jax_two_pass":
            sums = jax.grad(lambda p: (factors * losses(p, *batch)).sum())(p)
        else:
            sums = {name: jnp.einsum("i,i...->...", factors, g) for name, g in gradients.items()}
        keys = dict(zip(p, jax.random.split(key, len(p))))
        noise = {name: task.noise_multiplier * task.clip * jax.random.normal(keys[name], g.shape) for name, g in sums.items()}
        return {name: (g + noise[name]) / task.batch for name, g in sums.items()}

    def adam(p, g, m, v, count):
        g = g + task.weight_decay * p
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        change = (m / (1.0 - 0.9**count)) / (jnp.sqrt(v / (1.0 - 0.999**count)) + 1e-8)
        return p - task.learning_rate * change, m, v

    def work(state, *batch):
        p, m, v, count = state
        if task.engine == "jax":
            gradients = jax.grad(lambda p: losses(p, *batch).mean())(p)
        else:
            gradients = private_gradients(p, jax.random.fold_in(jax.random.key(1), count), *batch)
        count = count + 1
        new = {name: adam(p[name], gradients[name], m[name], v[name], count.astype(jnp.float32)) for name in p}
        return *({name: values[i] for name, values in new.items()} for i in range(3)), count

    compiled = jax.jit(work, donate_argnums=0)
    parameters = {name: jnp.array(value) for name, value in task.parameters().items()}
    zeros = [{name: jnp.zeros_like(value) for name, value in parameters.items()} for _ in range(2)]
    data = tuple(jnp.array(x) for x in task.data())
    state = (parameters, *zeros, jnp.zeros((), jnp.int32))

    def step():
        nonlocal state
        state = jax.block_until_ready(compiled(state, *data))

    return step, lambda: [jax.device_get(m) for m in state[1].values()]
