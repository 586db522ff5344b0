"""The rows of bench/peers/training.h. Model and optimizer state are donated."""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jax_work import in_precision, matrix, normal
from side import Work
from transformer_sizes import sizes_of


def squared_error(model, x, y):
    return jnp.mean((y - jax.vmap(model)(x)) ** 2)


def make_model(inputs, outputs, width, depth):
    """The arrays of Equinox's MLP, and what makes a module of them."""
    model = eqx.nn.MLP(inputs, outputs, width, depth, key=jax.random.PRNGKey(6789))
    return eqx.partition(model, eqx.is_array)


def seed_step_by(make_step, rows):
    mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    cut, replicated = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    optim = optax.adam(3e-4)
    parameters, static = make_model(4, 4, 32, 1)
    x = normal(1, (rows or 16, 4))
    batch = jax.block_until_ready(jax.device_put((x, jnp.sin(x)), cut))
    now = jax.block_until_ready(jax.device_put((parameters, optim.init(parameters)), replicated))

    def step(batch, parameters, state):
        parameters, state = eqx.filter_shard((parameters, state), replicated)
        x, y = eqx.filter_shard(batch, cut)
        grads = jax.grad(lambda p: squared_error(eqx.combine(p, static), x, y))(parameters)
        updates, state = optim.update(grads, state)
        return eqx.filter_shard((eqx.apply_updates(parameters, updates), state), replicated)

    step = make_step(step)

    def call():
        nonlocal now
        now = jax.block_until_ready(step(batch, *now))

    def check(digest):
        parameters, state = now
        layers = [layer for m in (parameters, state[0].mu, state[0].nu) for layer in m.layers]
        return [digest(a) for layer in layers for a in (layer.weight, layer.bias)]

    return [Work("", call, check)]


def seed_step(rows):
    return seed_step_by(lambda f: jax.jit(f, donate_argnums=(1, 2)), rows)


def seed_step_filter_jit(rows):
    return seed_step_by(lambda f: eqx.filter_jit(f, donate="all-except-first"), rows)


def adam_on(leaves, n):
    """Steps of Adam on so many arrays of n numbers."""
    optim = optax.adam(0.1)
    w = [normal(2 * k + 1, (n,)) for k in range(leaves)]
    g = [normal(2 * k + 2, (n,)) for k in range(leaves)]
    now = jax.block_until_ready((w, optim.init(w)))
    jax.block_until_ready(g)

    def step(w, state, g):
        updates, state = optim.update(g, state)
        return optax.apply_updates(w, updates), state

    step = jax.jit(step, donate_argnums=(0, 1))
    del w

    def call():
        nonlocal now
        now = jax.block_until_ready(step(*now, g))

    def check(digest):
        w, state = now
        return [digest(a[-1]) for a in (w, state[0].mu, state[0].nu)]

    return [Work("", call, check)]


def adam(n):
    return adam_on(1, n)


def adam_of_leaves(leaves):
    return adam_on(leaves, 64)


def training(step, model, *batch):
    """A step (model, *batch) -> (model, loss): the check makes four more steps."""
    jax.block_until_ready((model, batch))
    loss = None

    def call():
        nonlocal model, loss
        model, loss = jax.block_until_ready(step(model, *batch))

    def check(_):
        losses = [[float(loss)]]
        for _ in range(4):
            call()
            losses.append([float(loss)])
        return losses

    return [Work("", call, check)]


def sgd_step(rate, loss_of):
    optim = optax.sgd(rate)

    def step(model, *batch):
        loss, grads = jax.value_and_grad(loss_of)(model, *batch)
        updates, _ = optim.update(grads, optim.init(model))
        return optax.apply_updates(model, updates), loss

    return jax.jit(step, donate_argnums=0)


def mlp(width):
    width = width or 512
    parameters, static = make_model(width, width, width, 7)
    x = matrix(1, (width // 2, width))
    step = sgd_step(100, lambda p, x, y: squared_error(eqx.combine(p, static), x, y))
    return training(step, in_precision(parameters), x, jnp.sin(x))


def make_transformer(s):
    def weight(seed, inputs, outputs):
        return normal(seed, (inputs, outputs)) / math.sqrt(inputs)

    blocks = [
        {
            "norm1": jnp.ones(s.width),
            "qkv": weight(10 * k + 11, s.width, 3 * s.width),
            "out": weight(10 * k + 12, s.width, s.width),
            "norm2": jnp.ones(s.width),
            "up": weight(10 * k + 13, s.width, 4 * s.width),
            "down": weight(10 * k + 14, 4 * s.width, s.width),
        }
        for k in range(s.layers)
    ]
    return {
        "embed": weight(1, s.vocabulary, s.width),
        "position": weight(2, s.length, s.width),
        "norm": jnp.ones(s.width),
        "blocks": blocks,
    }


def normalised(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def attention(s, b, x):
    def by_head(v):
        return v.reshape(s.batch, s.length, s.heads, s.head_width).transpose(0, 2, 1, 3)

    q, k, v = (by_head(part) for part in jnp.split(x @ b["qkv"], 3, axis=-1))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(s.head_width)
    causal = jnp.tril(jnp.ones((s.length, s.length), bool))
    mixed = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(s.batch, s.length, s.width) @ b["out"]


def language_loss(s, t, tokens, targets):
    h = jnp.take(t["embed"], tokens, axis=0) + t["position"]
    for b in t["blocks"]:
        h = h + attention(s, b, normalised(h, b["norm1"]))
        h = h + jax.nn.gelu(normalised(h, b["norm2"]) @ b["up"]) @ b["down"]
    logits = normalised(h, t["norm"]) @ t["embed"].T
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, targets))


def transformer(width):
    s = sizes_of(width)
    text = jax.random.randint(jax.random.key(9), (s.batch, s.length + 1), 0, s.vocabulary)
    step = sgd_step(0.1, partial(language_loss, s))
    return training(step, make_transformer(s), text[:, :-1], text[:, 1:])


ROWS = {
    "seed_step": seed_step,
    "seed_step_filter_jit": seed_step_filter_jit,
    "adam": adam,
    "adam_of_leaves": adam_of_leaves,
    "mlp": mlp,
    "transformer": transformer,
}
