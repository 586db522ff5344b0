"""tests/data/special.json: true values of Bessel functions, the gamma function and the exponential integral, SciPy's values at their
edges, and JAX's slopes there.

    python3 -m venv venv && venv/bin/pip install jax==0.10.2 numpy==2.4.6 scipy==1.17.1 mpmath==1.4.1
    venv/bin/python tests/reference/special_values.py
"""
import json
import os
import pathlib
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import mpmath
import numpy as np
import scipy
from jax.scipy import special

PATH = pathlib.Path(__file__).parents[1] / "data" / "special.json"
EDGES = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, -2, 3, -3, 20, -20.5, 34.5, 60, -60, 171.5, -171.25, 200, 1e-300, -1e-300,
                  1e300, -1e300, np.inf, -np.inf, np.nan])
POSITIVE = EDGES[~(EDGES < 0)]

jax.config.update("jax_enable_x64", True)
warnings.simplefilter("ignore")
mpmath.mp.dps = 40


def numbers(x):
    return [float(repr(float(v))) if np.isfinite(v) else str(float(v)) for v in np.asarray(x).reshape(-1)]


def true_values(f, x):
    return {"x": numbers(x), "y": numbers([float(f(mpmath.mpf(v))) for v in x])}


def scaled(order):
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


def edges(name, x):
    f = getattr(special, name)  # that of exp1 never ends for infinity and NaN
    slopes = [float(jax.grad(f)(v)) if name != "exp1" or np.isfinite(v) else "nan" for v in x]
    return {"x": numbers(x), "scipy": numbers(getattr(scipy.special, name)(x)), "slopes": [
        s if isinstance(s, str) or np.isfinite(s) else str(s) for s in slopes]}


middle = np.concatenate([np.linspace(-12, 40, 105), [0, 1e-300, -1e-8, 29.999, 30.001, 90, 300, 700, 709.5]])
far = np.concatenate([middle, [-750, 1e3, 12345.678, -1e6, 1e10, 1e300]])
rng = np.random.default_rng(7)
gammas = np.concatenate([np.linspace(-12.37, 24.63, 149), rng.uniform(24, 171.6, 40), -rng.uniform(13, 183, 40),
                         [1e-300, -1e-300, 1e-8, -1e-8, 171.62, 0.9999999, -0.9999999, -1.0000001, 1.4616321]])
integrals = np.concatenate([np.linspace(0.01, 8, 120), 10.0 ** np.linspace(-300, -2, 12), rng.uniform(8, 738, 40)])
data = {
    "true": {"i1": true_values(lambda x: mpmath.besseli(1, x), middle), "i0e": true_values(scaled(0), far),
             "i1e": true_values(scaled(1), far), "gamma": true_values(mpmath.gamma, gammas),
             "exp1": true_values(mpmath.e1, integrals)},
    "edges": {n: edges(n, POSITIVE if n == "exp1" else EDGES) for n in ("i1", "i0e", "i1e", "gamma", "exp1")},
}
versions = {m.__name__: m.__version__ for m in (jax, np, scipy, mpmath)}
PATH.write_text(json.dumps({"versions": versions} | data))
print(versions)
