"""scan and fori_loop as JAX computes them, with gradients: writes tests/data/control_flow.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/control_flow.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "control_flow.json"
random = np.random.default_rng(5)


def packed(x):
    x = np.asarray(x)
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": [float(v) for v in x.ravel()]}


def lstm(weights, carry, x):
    h, c = carry
    i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ weights, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def newton(a, x, _):
    return 0.5 * (x + a / x), x


def logistic_map(r, x, noise):
    return r * x * (1 - x) + noise, jnp.where(x > 0.5, 1, 0)


def case(name, step, parameters, carry, xs, **options):
    def run(p, c, v):
        return jax.lax.scan(lambda a, b: step(p, a, b), c, v, **options)

    def loss(p, c, v):
        last, ys = run(p, c, v)
        leaves = [y for y in jax.tree.leaves((last, ys)) if jnp.issubdtype(y.dtype, jnp.floating)]
        return sum(jnp.sum(jnp.sin(y)) for y in leaves)

    last, ys = run(parameters, carry, xs)
    gradients = jax.grad(loss, argnums=(0, 1))(parameters, carry, xs)
    return {
        "name": name,
        "reverse": options.get("reverse", False),
        "length": options.get("length"),
        "parameters": packed(parameters),
        "carry": [packed(c) for c in jax.tree.leaves(carry)],
        "xs": [packed(x) for x in jax.tree.leaves(xs)],
        "last": [packed(c) for c in jax.tree.leaves(last)],
        "ys": packed(ys),
        "gradient": packed(gradients[0]),
        "carry_gradient": [packed(g) for g in jax.tree.leaves(gradients[1])],
    }


def normal(*shape):
    return jnp.asarray(random.normal(size=shape) * 0.5, "float32")


CASES = [
    case("lstm", lstm, normal(7, 16), (normal(6, 4), normal(6, 4)), normal(9, 6, 3)),
    case("lstm", lstm, normal(7, 16), (normal(6, 4), normal(6, 4)), normal(5, 6, 3), reverse=True),
    case("newton", newton, jnp.abs(normal(8)) + 1, jnp.ones(8), None, length=6),
    case("logistic_map", logistic_map, jnp.float32(2.75), jnp.abs(normal(8)) * 0.3, normal(7, 8) * 0.01),
]
VERSIONS = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}
PATH.write_text(json.dumps({"versions": VERSIONS, "cases": CASES}) + "\n")
