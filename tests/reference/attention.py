"""Attention as jax.nn and Equinox compute it, with gradients of sum(sin(y)): writes tests/data/attention.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 equinox==0.13.8 numpy==2.4.6 && v/bin/python tests/reference/attention.py
"""
import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "attention.json"
random = np.random.default_rng(17)
cases = []


def packed(x):
    x = np.asarray(x)
    values = x.astype(np.float32) if x.dtype.name == "bfloat16" else x
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": [float(str(v)) if v.dtype.kind == "f" else int(v) for v in values.ravel()]}


def drawn(*shape, dtype="float32"):
    return jnp.asarray(random.standard_normal(shape), dtype=dtype)


def product(q, k, v, dtype="float32", bias=None, mask=None, **options):
    q, k, v = (drawn(*s, dtype=dtype) for s in (q, k, v))
    given = {}
    if bias:
        given["bias"] = drawn(*bias)
    if mask:
        given["mask"] = jnp.asarray(random.random(mask) < 0.6)
    if "key_value_seq_lengths" in options:
        given["key_value_seq_lengths"] = jnp.asarray(options.pop("key_value_seq_lengths"), jnp.int32)

    def run(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, **given, **options)

    def loss(q, k, v):
        return jnp.sum(jnp.sin(run(q, k, v).astype(jnp.float32)))

    cases.append({"name": "dot_product_attention", "options": options, "given": {n: packed(x) for n, x in given.items()},
                  "inputs": [packed(x) for x in (q, k, v)], "y": packed(jax.jit(run)(q, k, v)),
                  "grads": [packed(g) for g in jax.jit(jax.grad(loss, (0, 1, 2)))(q, k, v)]})


product((5, 2, 4), (7, 2, 4), (7, 2, 4))
product((2, 5, 4, 3), (2, 6, 2, 3), (2, 6, 2, 3), is_causal=True)
product((2, 6, 4, 3), (2, 6, 1, 3), (2, 6, 1, 3), bias=(1, 4, 6, 6), scale=0.3)
product((2, 4, 2, 3), (2, 9, 2, 3), (2, 9, 2, 3), mask=(2, 1, 4, 9), bias=(1, 2, 1, 9))
product((2, 4, 2, 3), (2, 9, 2, 3), (2, 9, 2, 3), mask=(1, 2, 4, 1), key_value_seq_lengths=[3, 8])
product((1, 9, 1, 4), (1, 9, 1, 4), (1, 9, 1, 4), local_window_size=(2, 1))
product((1, 9, 1, 4), (1, 9, 1, 4), (1, 9, 1, 4), local_window_size=3, is_causal=True)
for dtype in ("bfloat16",):  # JAX on a CPU has no such product of float16
    product((5, 2, 8), (7, 1, 8), (7, 1, 8), dtype=dtype, is_causal=True)

rope = eqx.nn.RotaryPositionalEmbedding(6)
x = drawn(5, 6)
cases.append({"name": "rope", "inputs": [packed(x)], "y": packed(rope(x))})
for partitionable in (True, False):
    with jax.threefry_partitionable(partitionable):
        mha = eqx.nn.MultiheadAttention(2, 6, key_size=5, value_size=4, output_size=3, qk_size=4, vo_size=5, dropout_p=0.3,
                                        use_output_bias=True, key=jax.random.PRNGKey(3))
        q, k, v = drawn(4, 6), drawn(7, 5), drawn(7, 4)
        mask = jnp.asarray(random.random((2, 4, 7)) < 0.7)
        heads = lambda q, k, v: (jax.vmap(eqx.nn.RotaryPositionalEmbedding(4), 1, 1)(q),
                                 jax.vmap(eqx.nn.RotaryPositionalEmbedding(4), 1, 1)(k), v)
        run = lambda m, q: m(q, k, v, mask=mask, key=jax.random.PRNGKey(5), process_heads=heads)
        grads = eqx.filter_jit(eqx.filter_grad(lambda both: jnp.sum(jnp.sin(run(*both)))))((mha, q))
        cases.append({"name": "multihead", "partitionable": partitionable, "inputs": [packed(a) for a in (q, k, v, mask)],
                      "params": [packed(a) for a in jax.tree.leaves(eqx.filter(mha, eqx.is_array))], "y": packed(run(mha, q)),
                      "grads": [packed(g) for g in jax.tree.leaves(grads)]})

versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__, "equinox": eqx.__version__}
lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
PATH.write_text('{"area":"attention",\n"versions":' + json.dumps(versions) + ',\n"cases":[\n' + lines + "\n]}\n")
print(len(cases), "cases,", PATH.stat().st_size, "bytes")
