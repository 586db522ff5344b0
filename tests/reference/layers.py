"""Layers as Equinox computes them, with gradients of sum(sin(y)): writes tests/data/layers.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 equinox==0.13.8 numpy==2.4.6 && v/bin/python tests/reference/layers.py
"""
import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "layers.json"
random = np.random.default_rng(11)
cases = []


def packed(x):
    x = np.asarray(x)
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": [float(str(v)) for v in x.ravel()]}


def drawn(*shape, dtype="float32"):
    return jnp.asarray(random.standard_normal(shape), dtype=dtype)


def leaves(tree):
    return [packed(x) for x in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def add(name, layer, inputs, attrs=(), call=None):
    """The layer's leaves, its result, and gradients of the leaves and of the first input."""
    call = call or (lambda m, *a: m(*a))

    def loss(both, rest):
        m, first = both
        return sum(jnp.sum(jnp.sin(y.astype(jnp.float32))) for y in jax.tree.leaves(call(m, first, *rest)))

    out = {"params": leaves(layer), "y": [packed(y) for y in jax.tree.leaves(call(layer, *inputs))]}
    if jnp.issubdtype(inputs[0].dtype, jnp.floating):
        grads = eqx.filter_grad(loss)((layer, inputs[0]), inputs[1:])
        out["grads"] = leaves(grads)
    cases.append({"name": name, "attrs": dict(attrs), "inputs": [packed(x) for x in inputs], "outputs": out})


def scaled(layer):
    """Other weights than ones and zeros."""
    draw = lambda x: jnp.asarray(random.standard_normal(x.shape), x.dtype) if eqx.is_inexact_array(x) else x
    return jax.tree.map(draw, layer)


key = jax.random.key(3)
for dtype in ("float32", "float16", "bfloat16"):
    add("LayerNorm", scaled(eqx.nn.LayerNorm((3, 4))), [drawn(3, 4, dtype=dtype)])
    add("RMSNorm", scaled(eqx.nn.RMSNorm((5,))), [drawn(5, dtype=dtype)])
    add("GroupNorm", scaled(eqx.nn.GroupNorm(2, 4)), [drawn(4, 3, 2, dtype=dtype)], {"groups": 2})
add("GroupNorm", eqx.nn.GroupNorm(3, None, channelwise_affine=False), [drawn(6, 2)], {"groups": 3})
add("PReLU", eqx.nn.PReLU(), [drawn(7)])
add("PReLU", eqx.nn.PReLU(drawn(3)), [drawn(4, 3)])
for use_bias in (True, False):
    attrs = {"use_bias": use_bias, "in": 3, "hidden": 4}
    add("GRUCell", eqx.nn.GRUCell(3, 4, use_bias=use_bias, key=key), [drawn(3), drawn(4)], attrs)
    add("LSTMCell", eqx.nn.LSTMCell(3, 4, use_bias=use_bias, key=key), [drawn(3), drawn(4), drawn(4)], attrs,
        lambda m, x, h, c: m(x, (h, c)))
for size_in, size_out in (("scalar", "scalar"), ("scalar", 2), (3, "scalar")):
    add("MLP", eqx.nn.MLP(size_in, size_out, 4, 1, key=key), [drawn(*([] if size_in == "scalar" else [3]))],
        {"in": size_in, "out": size_out})
table = eqx.nn.Embedding(6, 3, key=key)
for index in (0, 5, -1, -6, 9, -20):
    add("Embedding", table, [jnp.int32(index)])
a, b = jax.random.split(key)
model = eqx.nn.Sequential([
    eqx.nn.Linear(3, 5, key=a), eqx.nn.Lambda(jax.nn.relu), eqx.nn.Dropout(0.4), eqx.nn.LayerNorm((5,)),
    eqx.nn.Linear(5, 2, key=b), eqx.nn.Dropout(0.3)])
add("Sequential", model, [drawn(3)], {"inference": False}, lambda m, x: m(x, key=jax.random.key(9)))
add("Sequential", eqx.nn.inference_mode(model), [drawn(3)], {"inference": True})

for mode in ("batch", "ema"):
    for affine in (True, False):
        norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(
            4, "rows", momentum=0.9, channelwise_affine=affine, mode=mode)
        norm = scaled(norm) if affine else norm
        def batched(m, s, x):
            return jax.vmap(m, axis_name="rows", in_axes=(0, None), out_axes=(0, None))(x, s)
        steps = []
        for step in range(3):
            x = drawn(6, 4, 5) * (step + 1) + step
            before = state
            grads = eqx.filter_grad(lambda both: jnp.sum(jnp.sin(batched(both[0], before, both[1])[0])))((norm, x))
            y, state = batched(norm, state, x)
            still, _ = batched(eqx.nn.inference_mode(norm), state, x)
            index = norm.batch_state_index if mode == "batch" else norm.ema_state_index
            mean, var = state.get(index)
            steps.append({"x": packed(x), "y": packed(y), "inference": packed(still), "mean": packed(mean),
                          "var": packed(var), "grads": leaves(grads)})
        cases.append({"name": "BatchNorm", "attrs": {"mode": mode, "affine": affine},
                      "outputs": {"params": leaves(norm), "steps": steps}})

versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__, "equinox": eqx.__version__}
lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
PATH.write_text('{"area":"layers",\n"versions":' + json.dumps(versions) + ',\n"cases":[\n' + lines + "\n]}\n")
print(len(cases), "cases,", PATH.stat().st_size, "bytes")
