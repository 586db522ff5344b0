"""tests/data/elementwise.json: JAX's elementwise functions at edge values, with derivatives, and the dtypes of their results; true
values of digamma, trigamma and Bessel functions.

    python3 -m venv venv && venv/bin/pip install jax==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0 mpmath==1.4.1
    venv/bin/python tests/reference/elementwise.py
"""
import json
import os
import pathlib

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # compiling is what takes time

import jax
import jax.numpy as jnp
import jaxlib
import ml_dtypes
import mpmath
import numpy as np
from jax import lax, nn
from jax.scipy import special

PATH = pathlib.Path(__file__).parents[1] / "data" / "elementwise.json"
DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32"]
EDGES = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, 3, -3, 6, 8, 1000, -1000, 20, -20, 0.001, -0.001, 0.75, 1e30,
                  -1e30, np.inf, -np.inf, np.nan], np.float32)
PAIRS = np.array([0, -0.0, 1, -1, 2, -3, 0.5, 5.5, 1e30, np.inf, -np.inf, np.nan], np.float32)

UNARY = {
    "exp2": jnp.exp2, "log2": jnp.log2, "log10": jnp.log10, "cbrt": jnp.cbrt, "arcsinh": jnp.arcsinh,
    "arccosh": jnp.arccosh, "arctanh": jnp.arctanh, "degrees": jnp.degrees, "radians": jnp.radians, "rint": jnp.rint,
    "positive": jnp.positive, "signbit": jnp.signbit, "isposinf": jnp.isposinf, "isneginf": jnp.isneginf,
    "nan_to_num": jnp.nan_to_num, "lgamma": special.gammaln, "digamma": special.digamma, "i0": jnp.i0,
    "ndtr": special.ndtr, "ndtri": special.ndtri, "entr": special.entr, "logit": special.logit, "expit": special.expit,
    "log_sigmoid": nn.log_sigmoid, "relu6": nn.relu6, "elu": nn.elu, "selu": nn.selu, "celu": nn.celu,
    "leaky_relu": nn.leaky_relu, "softplus": nn.softplus, "soft_sign": nn.soft_sign, "mish": nn.mish,
    "hard_tanh": nn.hard_tanh, "hard_sigmoid": nn.hard_sigmoid, "hard_silu": nn.hard_silu, "squareplus": nn.squareplus,
}
BINARY = {
    "hypot": jnp.hypot, "logaddexp": jnp.logaddexp, "logaddexp2": jnp.logaddexp2, "copysign": jnp.copysign,
    "nextafter": jnp.nextafter, "isclose": jnp.isclose, "fmod": jnp.fmod, "fmax": jnp.fmax, "fmin": jnp.fmin,
    "float_power": jnp.float_power, "heaviside": jnp.heaviside, "xlogy": special.xlogy, "xlog1py": special.xlog1py,
    "elu": nn.elu, "leaky_relu": nn.leaky_relu, "celu": nn.celu, "squareplus": nn.squareplus,
}
WHOLE = {"population_count": lax.population_count, "bitwise_count": jnp.bitwise_count, "clz": lax.clz}
WHOLE_PAIRS = {"gcd": jnp.gcd, "lcm": jnp.lcm}
TWO_RESULTS = {"modf": jnp.modf, "frexp": jnp.frexp}
NO_DERIVATIVE = {"signbit", "isposinf", "isneginf", "isclose", "nextafter"}


def numbers(x):
    return [float(str(v)) if np.isfinite(v) else str(v) for v in np.asarray(x).reshape(-1)]


def operand(name):
    return {"weak int": 1, "weak float": 0.5}.get(name) if name.startswith("weak") else jax.ShapeDtypeStruct((), name)


def type_of(f, *names):
    """The dtype of the result, a star where it is weak; numbers are bound, not traced, so that they stay weak."""
    given = [operand(n) for n in names]
    traced = [x for x in given if isinstance(x, jax.ShapeDtypeStruct)]

    def call(*xs):
        left = iter(xs)
        return f(*[next(left) if isinstance(x, jax.ShapeDtypeStruct) else x for x in given])
    try:
        r = jax.eval_shape(call, *traced)
    except (TypeError, ValueError):
        return "raises"
    return ",".join(str(x.dtype) + ("*" if x.weak_type else "") for x in (r if isinstance(r, (tuple, list)) else [r]))


def values(name, f, *xs):
    def all_of_it(*v):
        slopes = () if name in NO_DERIVATIVE else jax.grad(lambda *u: jnp.sum(f(*u)), tuple(range(len(v))))(*v)
        return f(*v).astype(np.float32), slopes
    y, slopes = jax.jit(all_of_it)(*xs)
    print(name, flush=True)
    return {"name": name, "x": [numbers(x) for x in xs], "y": numbers(y)} | (
        {"slopes": [numbers(s) for s in slopes]} if slopes else {})


def true_values():
    mpmath.mp.dps = 40
    x = np.concatenate([np.linspace(-6.45, 12, 124), [1e-3, 1e-8, 1.4616321, 40.5, 1e4, 1e10, 1e300]])
    gammas = [float(v) for v in x if v > 0 or v != np.floor(v)]
    b = np.concatenate([np.linspace(-12, 40, 105), [29.999, 30.001, 90, 300, 700, 709.5]])
    return {"gamma": {"x": gammas, "digamma": [float(mpmath.digamma(v)) for v in gammas],
                      "trigamma": [float(mpmath.psi(1, v)) for v in gammas],
                      "tetragamma": [float(mpmath.psi(2, v)) for v in gammas]},
            "bessel": {"x": b.tolist(), "i0": [float(mpmath.besseli(0, v)) for v in b],
                       "i1": [float(mpmath.besseli(1, v)) for v in b]}}


a, b = (m.reshape(-1) for m in np.meshgrid(PAIRS, PAIRS, indexing="ij"))
small = np.array([0, 1, -1, 3, -3, 7, 8, 127, -128], np.int8)
p, q = (m.reshape(-1) for m in np.meshgrid(small[:7], small[:7], indexing="ij"))  # JAX's gcd never ends with -128
named = DTYPES + ["weak int", "weak float"]
data = {
    "unary": [values(n, f, EDGES) for n, f in UNARY.items()],
    "binary": [values(n, f, a, b) for n, f in BINARY.items()],
    "two_results": [{"name": n, "x": numbers(EDGES), "y": [numbers(r) for r in jax.jit(f)(EDGES)]}
                    for n, f in TWO_RESULTS.items()],
    "whole": [{"name": n, "x": small.tolist(), "y": np.asarray(f(small)).tolist()} for n, f in WHOLE.items()]
    + [{"name": n, "x": p.tolist(), "other": q.tolist(), "y": np.asarray(jax.jit(f)(p, q)).tolist()}
       for n, f in WHOLE_PAIRS.items()],
    "types": {"dtypes": named,
              "one": {n: [type_of(f, t) for t in named] for n, f in (UNARY | WHOLE | TWO_RESULTS).items()},
              "two": {n: [[type_of(f, t, u) for u in named] for t in named]
                      for n, f in (BINARY | WHOLE_PAIRS | {"divmod": jnp.divmod, "ldexp": jnp.ldexp}).items()}},
    "true": true_values(),
}
versions = {m.__name__: m.__version__ for m in (jax, jaxlib, np, ml_dtypes, mpmath)}
PATH.write_text(json.dumps({"versions": versions} | data))
print(versions)
