"""Jacobians, associative_scan, map, functions with own derivatives, cond, switch and while_loop as JAX computes them: writes
tests/data/transforms.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/transforms.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "transforms.json"
random = np.random.default_rng(11)


def packed(x):
    x = np.asarray(x)
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": [float(v) for v in x.ravel()]}


def leaves(tree):
    return [packed(x) for x in jax.tree.leaves(tree)]


def normal(*shape):
    return jnp.asarray(random.normal(size=shape) * 0.5, "float32")


# ---------------------------------------------------------------- Jacobians
def layer(w, x):
    return jnp.tanh(x @ w) + jnp.sum(x)


def loss(w, x):
    return jnp.sum(jnp.sin(x @ w) ** 2) + jnp.sum(w[0]) * jnp.sum(x)


def jacobians():
    w, x, v = normal(3, 2), normal(3), normal(3)
    value, linear = jax.linearize(layer, w, x)
    return {
        "w": packed(w), "x": packed(x), "v": packed(v),
        "by_w": packed(jax.jacfwd(layer, 0)(w, x)),
        "by_x": packed(jax.jacrev(layer, 1)(w, x)),
        "hessian_w": packed(jax.hessian(loss, 0)(w, x)),
        "hessian_x": packed(jax.hessian(loss, 1)(w, x)),
        "hessian_of_layer": packed(jax.hessian(layer, 1)(w, x)),
        "hvp_x": packed(jax.jvp(lambda a: jax.grad(loss, 1)(w, a), (x,), (v,))[1]),
        "hessian_both": leaves(jax.hessian(lambda p: loss(*p))((w, x))),
        "value": packed(value),
        "linear": packed(linear(w * 2, v)),
    }


# ---------------------------------------------------------------- scans
def scans():
    a, b, m = jnp.abs(normal(7, 3)), normal(7, 3), normal(2, 5, 2, 2)
    counts = jnp.asarray(random.integers(-9, 9, size=(2, 6)), "int32")
    recurrence = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])
    product = lambda p, q: jnp.einsum("...ij,...jk->...ik", p, q)
    forward = jax.lax.associative_scan(recurrence, (a, b))
    backward = jax.lax.associative_scan(recurrence, (a, b), reverse=True)
    total = lambda x, y: jnp.sum(jnp.sin(jax.lax.associative_scan(recurrence, (x, y))[1]))
    row = lambda r: jnp.sum(jnp.exp(r)) * r
    return {
        "a": packed(a), "b": packed(b), "m": packed(m), "counts": packed(counts),
        "forward": leaves(forward), "backward": leaves(backward),
        "gradient": leaves(jax.grad(total, (0, 1))(a, b)),
        "products": packed(jax.lax.associative_scan(product, m, axis=1)),
        "largest": packed(jax.lax.associative_scan(jnp.maximum, counts, axis=1, reverse=True)),
        "map": packed(jax.lax.map(row, b)), "map_in_batches": packed(jax.lax.map(row, b, batch_size=3)),
    }


# ---------------------------------------------------------------- derivatives of the author
@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1 + jnp.exp(x))


@log1pexp.defjvp
def _(primals, tangents):
    x, = primals
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * tangents[0]


@jax.custom_vjp
def clipped(x, most):
    return x * 1


clipped.defvjp(lambda x, most: (clipped(x, most), most),
               lambda most, g: (jnp.clip(g, -most, most), jnp.zeros_like(most)))


def custom():
    x, rows = normal(5) * 4, normal(4, 5)
    steep = lambda v, most: jnp.sum(clipped(v, most) ** 3)
    steps = lambda v: jax.lax.scan(lambda c, r: (log1pexp(c * r) + clipped(c, 0.5), c), v, rows)[0]
    return {
        "x": packed(x), "rows": packed(rows),
        "gradient": packed(jax.grad(lambda v: jnp.sum(log1pexp(v)))(x)),
        "second": packed(jax.vmap(jax.grad(jax.grad(log1pexp)))(x)),
        "third": packed(jax.vmap(jax.grad(jax.grad(jax.grad(log1pexp))))(x)),
        "tangent": packed(jax.jvp(log1pexp, (x,), (x * 2,))[1]),
        "clipped": packed(jax.grad(steep)(x, jnp.float32(0.7))),
        "clipped_rows": packed(jax.vmap(jax.grad(steep), (0, None))(rows, jnp.float32(0.3))),
        "steps": packed(steps(x)), "steps_gradient": packed(jax.grad(lambda v: jnp.sum(steps(v)))(x)),
    }


# ---------------------------------------------------------------- branches
def choice(p, x, w):
    return jax.lax.cond(p > 0, lambda a: (jnp.sin(a) * w, jnp.sum(a)), lambda a: (a * a, jnp.sum(a) * 2), x)


def several(k, x, w):
    return jax.lax.switch(k, [lambda a: a, lambda a: jnp.exp(a) * w, lambda a: a @ a * a], x)


def halved(x, limit):
    return jax.lax.while_loop(lambda c: jnp.sum(c[0] ** 2) > limit,
                              lambda c: (jnp.sin(c[0]) * 0.9, c[1] + 1), (x, 0))


def branches():
    x, w, ps = normal(4), normal(4), jnp.asarray([1.0, -1.0, 0.0, 2.0], "float32")
    rows, limits = normal(4, 3) * 3, jnp.asarray([0.1, 0.4, 9.0, 0.05], "float32")
    total = lambda p, a, b: jnp.sum(choice(p, a, b)[0]) + choice(p, a, b)[1]
    of_several = lambda k, a, b: jnp.sum(jnp.sin(several(k, a, b)))
    tangent = lambda v: jax.jvp(lambda a: halved(a, 0.05)[0], (v,), (jnp.ones_like(v),))[1]
    return {
        "x": packed(x), "w": packed(w), "ps": packed(ps), "rows": packed(rows), "limits": packed(limits),
        "chosen": [leaves(choice(p, x, w)) for p in ps],
        "gradients": [leaves(jax.grad(total, (1, 2))(p, x, w)) for p in ps],
        "second": [packed(jax.hessian(total, 1)(p, x, w)) for p in ps],
        "chosen_rows": leaves(jax.vmap(choice, (0, None, None))(ps, x, w)),
        "gradient_rows": packed(jax.grad(lambda a: jnp.sum(jax.vmap(total, (0, None, None))(ps, a, w)))(x)),
        "switched": [packed(several(k, x, w)) for k in (-3, 0, 1, 2, 7)],
        "switched_gradients": [leaves(jax.grad(of_several, (1, 2))(k, x, w)) for k in (-3, 0, 1, 2, 7)],
        "halved": [leaves(halved(r, m)) for r, m in zip(rows, limits)],
        "halved_rows": leaves(jax.vmap(halved)(rows, limits)),
        "halved_tangents": [packed(tangent(r)) for r in rows],
        "halved_tangent_rows": packed(jax.vmap(tangent)(rows)),
    }


VERSIONS = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}
PATH.write_text(json.dumps({"versions": VERSIONS, "jacobians": jacobians(), "scans": scans(), "custom": custom(),
                            "branches": branches()}) + "\n")
