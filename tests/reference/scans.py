"""Running reductions as JAX computes them, with gradients: writes tests/data/scans.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/scans.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "scans.json"
jax.config.update("jax_enable_x64", True)
random = np.random.default_rng(23)


def packed(x):
    x = np.asarray(x)
    data = [str(v) if not np.isfinite(v) else float(v) for v in x.astype(np.float64).ravel()]
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": data}


def case(name, x, axis, reverse):
    f = getattr(jax.lax, name)
    weights = jnp.asarray(random.integers(-4, 5, x.shape), x.dtype)
    c = {"name": name, "axis": axis, "reverse": reverse, "x": packed(x), "y": packed(f(x, axis, reverse))}
    if np.issubdtype(x.dtype, np.floating) and (np.isfinite(x).all() or name in ("cummax", "cummin")):
        c["weights"] = packed(weights)
        c["gradient"] = packed(jax.grad(lambda v: (f(v, axis, reverse) * weights).sum())(x))
    return c


def cases():
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        for shape, axis in (((7,), 0), ((5, 6), 0), ((5, 6), 1), ((3, 4, 5), 1), ((1,), 0), ((0, 3), 0)):
            for reverse in (False, True):
                yield case(name, jnp.asarray(random.uniform(-2, 2, shape), "float32"), axis, reverse)
                # Equal elements, zeros.
                yield case(name, jnp.asarray(random.integers(-2, 3, shape), "float64"), axis, reverse)
                yield case(name, jnp.asarray(random.integers(-100, 100, shape), "int8"), axis, reverse)
                yield case(name, jnp.asarray(random.integers(0, 9, shape), "uint32"), axis, reverse)
        for value in ("nan", "inf", "-inf"):
            x = np.array([1, 2, float(value), 3, -1, 4], np.float32)
            yield case(name, jnp.asarray(x), 0, False)


def defaults():
    """Dtypes of the results."""
    for t in ("bool", "int8", "uint8", "int16", "int32", "uint64", "float16", "bfloat16", "float32", "float64"):
        x = jnp.ones((2, 3), t)
        for name in ("cumsum", "cumprod"):
            with jax.enable_x64(t in ("uint64", "float64")):
                y = getattr(jnp, name)(x)
            yield {"name": name, "dtype": t, "result": y.dtype.name, "shape": list(y.shape)}


def sinc():
    """Derivatives of sinc, in float64."""
    x = np.array([0, 0.5, 1, -1.25, 2, 3.75])
    f = jnp.sinc
    for order in range(5):
        yield {"order": order, "x": packed(x), "y": packed(jax.vmap(f)(x))}
        f = jax.grad(f)


with np.errstate(all="ignore"):
    data = {"cases": list(cases()), "defaults": list(defaults()), "sinc": list(sinc())}
versions = {m.__name__: m.__version__ for m in (jax, jaxlib, np)}
PATH.write_text(json.dumps({"versions": versions} | data))
print(versions, len(data["cases"]))
