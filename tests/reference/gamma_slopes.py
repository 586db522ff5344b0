"""tests/data/gamma_slopes.json: draws of gamma distributions and what is made of them, and their derivatives by a parameter.

    python3 -m venv venv && venv/bin/pip install jax==0.10.2
    venv/bin/python tests/reference/gamma_slopes.py
"""
import json
import os
import pathlib

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax import random

PATH = pathlib.Path(__file__).parents[1] / "data" / "gamma_slopes.json"
KEY = random.key(5)
DRAWS = {
    "gamma": lambda a: random.gamma(KEY, a, (6,)),
    "loggamma": lambda a: random.loggamma(KEY, a, (6,)),
    "beta": lambda a: random.beta(KEY, a, 2.0, (6,)),
    "beta_b": lambda a: random.beta(KEY, 2.0, a, (6,)),
    "dirichlet": lambda a: random.dirichlet(KEY, jnp.stack([a, a * 2, a / 2]), (4,))[:, 0],
    "chisquare": lambda a: random.chisquare(KEY, a, shape=(6,)),
    "t": lambda a: random.t(KEY, a, (6,)),
}


def numbers(x):
    return [float(v) for v in x]


rows = []
for name, draw in DRAWS.items():
    for a in [0.3, 1.0, 2.5, 40.0]:
        y, slope = jax.jvp(draw, (jnp.float32(a),), (jnp.float32(1),))
        rows.append({"draw": name, "a": a, "values": numbers(y), "slopes": numbers(slope)})
json.dump({"versions": {"jax": jax.__version__}, "rows": rows}, PATH.open("w"), indent=0)
