"""tests/data/semantics.json: binary functions of 16-bit floats (NumPy's, in float32 and rounded once; JAX's on a CPU are the
same, but that it takes subnormal numbers for 0), uniform draws of 16 bits (JAX's), erfc and exact gelu (true values, to which
JAX's are near). 16-bit values are written as their bits.

    python3 -m venv venv && venv/bin/pip install jax==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0 mpmath==1.4.1
    venv/bin/python tests/reference/semantics.py
"""
import json
import os
import pathlib

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import jaxlib
import ml_dtypes
import mpmath
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "semantics.json"
jax.config.update("jax_enable_x64", True)
HALVES = ["float16", "bfloat16"]


def bits(x):
    return np.asarray(x).reshape(-1).view(np.uint16).tolist()


def numbers(x):
    return [float(str(v)) if np.isfinite(v) else str(v) for v in np.asarray(x).reshape(-1)]


def edge_values(name):
    info = ml_dtypes.finfo(name)
    values = [0.0, -0.0, 1, -1, 0.5, -2, 3, -3.5, 7.25, -104, 0.921875, 1 / 3, 100, -0.001, float(info.max),
              -float(info.max), float(info.smallest_normal), float(info.smallest_subnormal), np.inf, -np.inf, np.nan]
    return np.array(values, dtype=name)


def differ(mine, theirs, tiny):
    """How many results are not the same where nothing is subnormal."""
    m, t = (np.asarray(x).astype(np.float64) for x in (mine, theirs))
    counts = (np.abs(m) >= tiny) & (np.abs(t) >= tiny)
    return int(np.sum(counts & (m != t) & ~(np.isnan(m) & np.isnan(t))))


def binary_cases():
    functions = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum", "minimum",
                 "arctan2"]
    for name in HALVES:
        v = edge_values(name)
        a, b = np.meshgrid(v, v, indexing="ij")
        wide = a.astype(np.float32), b.astype(np.float32)
        results = {}
        for k in functions:
            with np.errstate(all="ignore"):
                r = getattr(np, k)(*wide).astype(a.dtype)
            normal = np.abs(a.astype(np.float64)) != float(ml_dtypes.finfo(name).smallest_subnormal)
            normal &= np.abs(b.astype(np.float64)) != float(ml_dtypes.finfo(name).smallest_subnormal)
            theirs = np.asarray(getattr(jnp, k)(jnp.asarray(a), jnp.asarray(b)))
            print(name, k, "other than JAX's:", differ(r[normal], theirs[normal], float(ml_dtypes.finfo(name).tiny)))
            results[k] = bits(r)
        yield {"dtype": name, "values": bits(v), "results": results}


def uniform_cases():
    for name in HALVES:
        for lo, hi in [(-1, 1), (0.1, 0.7), (-3, 5), (2, 100), (-0.01, 0.03), (0, 1)]:
            x = jax.random.uniform(jax.random.key(7), (200,), name, lo, hi)
            yield {"dtype": name, "seed": 7, "minval": lo, "maxval": hi, "bits": bits(x)}


def true_gelu(x):
    return mpmath.mpf(x) * mpmath.erfc(-mpmath.mpf(x) / mpmath.sqrt(2)) / 2


def tails():
    """The true values, from mpmath, and JAX's, which are near."""
    mpmath.mp.dps = 50
    x = np.concatenate([np.linspace(-12, 12, 97), [-0.1, 1e-3, -1e-3, 1e-8, -13, -37, 26]])
    gelu = [float(true_gelu(v)) for v in x]
    slope = [float(mpmath.erfc(-mpmath.mpf(v) / mpmath.sqrt(2)) / 2 + mpmath.mpf(v) * mpmath.npdf(mpmath.mpf(v)))
             for v in x]
    erfc = [float(mpmath.erfc(mpmath.mpf(v))) for v in x]
    near = jax.nn.gelu(jnp.asarray(x), approximate=False)
    assert np.allclose(near, gelu, rtol=1e-12, atol=1e-300)
    assert np.allclose(jax.lax.erfc(jnp.asarray(x)), erfc, rtol=1e-12, atol=1e-300)
    return {"x": numbers(x), "gelu": gelu, "gelu_slope": slope, "erfc": erfc}


data = {"binary": list(binary_cases()), "uniform": list(uniform_cases()), "tails": tails()}
versions = {m.__name__: m.__version__ for m in (jax, jaxlib, np, ml_dtypes, mpmath)}
PATH.write_text(json.dumps({"versions": versions} | data))
print(versions)
