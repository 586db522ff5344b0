"""Distributions as jax.random draws them, in both orders of counters: writes tests/data/distributions.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/distributions.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "distributions.json"
R = jax.random
cases = []


def text(v):
    return str(v) if not np.isfinite(v) else float(str(v)) if isinstance(v, np.floating) else int(v)


def packed(x):
    x = np.asarray(x)
    if x.dtype.name == "bfloat16":
        values = [float(v) for v in x.astype(np.float32).ravel()]
        return {"dtype": "bfloat16", "shape": list(x.shape), "data": values}
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": [text(v) for v in x.ravel()]}


def add(name, *parameters, shape=None, dtypes=("float32",), orders=(True,), draw=None, **attrs):
    """One case for each dtype and order of counters."""
    draw = draw or (lambda key, p, shape, dtype: getattr(R, name)(key, *p, shape=shape, dtype=dtype))
    for dtype in dtypes:
        for partitionable in orders:
            given = [np.asarray(p, np.float64 if dtype == "float64" else np.float32) for p in parameters]
            with jax.threefry_partitionable(partitionable), jax.enable_x64(dtype == "float64"):
                out = draw(R.PRNGKey(np.int32(7)), given, shape, jnp.dtype(dtype))
            cases.append({"name": name, "partitionable": partitionable, "dtype": dtype, **attrs,
                          "shape": list(shape) if shape is not None else [],
                          "parameters": [packed(p) for p in given], "out": packed(out)})


floats, both = ("float32", "float64", "float16", "bfloat16"), (True, False)
for name in ("laplace", "logistic", "cauchy"):
    add(name, shape=(3, 5), dtypes=floats)
    add(name, shape=())
add("rademacher", shape=(4, 5), dtypes=("int32", "int8", "float32"))
add("maxwell", shape=(4, 5))
rows, columns = np.array([[0.5], [1.0], [4.0]]), np.array([0.25, 1.0, 3.0, 20.0])
add("double_sided_maxwell", 1.5, 0.5, shape=(3, 4))
add("weibull_min", rows, columns, shape=(3, 4))
add("pareto", columns, shape=(3, 4))
add("rayleigh", columns, shape=(3, 4))
add("wald", columns, dtypes=floats[:2])
add("triangular", -1.0, rows / 4, 3.0, shape=(3, 4))
add("lognormal", columns, shape=(3, 4))
add("geometric", np.array([0.1, 0.5, 0.9, 1.0]), shape=(5, 4), dtypes=("int32",))
shapes = np.array([0.01, 0.3, 0.999, 1.0, 1.5, 7.0, 1000.0])
add("gamma", shapes, shape=(9, 7), dtypes=floats[:2], orders=both)
add("loggamma", shapes, shape=(9, 7))
add("chisquare", shapes)
add("t", shapes, shape=(3, 7))
add("gamma", 2.5)
add("beta", rows, columns, shape=(3, 4))
add("f", *np.broadcast_arrays(rows, columns), shape=(3, 4))
add("dirichlet", columns, shape=(6,))
add("dirichlet", np.array([[0.1, 0.2, 0.3], [5.0, 1.0, 2.0]]))
add("generalized_normal", shape=(4, 5), p=3.5, draw=lambda key, _, s, t: R.generalized_normal(key, 3.5, s, t))
add("ball", shape=(4,), p=2.0, d=3, draw=lambda key, _, s, t: R.ball(key, 3, 2.0, s, t))
means = np.array([0.0, 0.1, 3.0, 9.99, -1.0, np.nan])
add("poisson", means, shape=(40, 6), dtypes=("int32",), orders=both)
trials, odds = np.array([[0.0], [3.0], [19.0], [-1.0]]), np.array([0.0, 0.01, 0.3, 0.5, 0.77, 1.0])
add("binomial", trials, odds, shape=(4, 6))
add("multinomial", np.array([10.0, 12.0]), np.array([[0.2, 0.3, 0.5], [0.7, 0.0, 0.3]]),
    draw=lambda key, p, s, t: R.multinomial(key, *p, dtype=t))


def alone(draw):
    """Each number by a key of its own: in one draw JAX's numbers of large means depend on one another."""
    return lambda key, p, shape, dtype: jax.vmap(lambda k: draw(k, *p, (), dtype))(R.split(key, shape[0]))


for mean in (10.0, 33.0, 1e4):
    add("poisson", mean, shape=(40,), dtypes=("int32",), alone=True, draw=alone(R.poisson))
for n, p in ((40.0, 0.3), (1000.0, 0.77), (60.0, 0.5)):
    add("binomial", n, p, shape=(40,), alone=True, draw=alone(R.binomial))

versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}
lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
PATH.write_text('{"area":"distributions",\n"versions":' + json.dumps(versions) + ',\n"cases":[\n' + lines + "\n]}\n")
print(len(cases), "cases,", PATH.stat().st_size, "bytes")
