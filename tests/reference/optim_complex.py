"""Optimizers of complex parameters as optax computes them: writes tests/data/optim_complex.json. Numbers stand as real and imaginary parts.

    python3 -m venv v && v/bin/pip install jax==0.10.2 optax==0.2.8 && v/bin/python tests/reference/optim_complex.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import optax as o

from optax_updates import updates_of

PATH = pathlib.Path(__file__).parents[1] / "data" / "optim_complex.json"
STEPS = 6
random = np.random.default_rng(32)
SHAPES = {"b": (5,), "w": (4, 3)}  # in the order of jax.tree


def tree():
    return {k: jnp.asarray(random.normal(size=s) + 1j * random.normal(size=s), "complex64") for k, s in SHAPES.items()}


PARAMS = tree()
GRADS = [tree() for _ in range(STEPS)]


def parts(x):  # the shortest digits
    x = np.asarray(x, np.complex64).ravel()
    return [float(str(v)) for z in x for v in (z.real, z.imag)]


def flat(t):
    return [v for x in jax.tree.leaves(t) for v in parts(x)]


OPTIMIZERS = {
    "adam": o.adam(0.1),
    "adam nesterov": o.adam(0.1, eps_root=1e-3, nesterov=True),
    "adamw": o.adamw(0.1),
    "amsgrad": o.amsgrad(0.1),
    "adamax": o.adamax(0.1),
    "radam": o.radam(0.1, b2=0.9),
    "adabelief": o.adabelief(0.1),
    "yogi": o.yogi(0.1),
    "novograd": o.novograd(0.1, weight_decay=0.1),
    "lamb": o.lamb(0.1),
    "lars": o.lars(0.1),
    "adafactor": o.adafactor(0.1, min_dim_size_to_factor=3),
    "adafactor whole": o.adafactor(0.1, factored=False),
    "rmsprop": o.rmsprop(0.1),
    "rmsprop centered": o.rmsprop(0.1, decay=0.8, eps=0.1, centered=True, momentum=0.9),
    "adagrad": o.adagrad(0.1),
    "adadelta": o.adadelta(0.5),
    "lion": o.lion(0.1),
    "sign_sgd": o.sign_sgd(0.1),
    "sgd nesterov": o.sgd(0.1, momentum=0.9, nesterov=True),
    "clip_by_global_norm": o.clip_by_global_norm(3.0),
    "clip_by_block_rms": o.clip_by_block_rms(0.7),
    "scale_by_param_block_norm": o.scale_by_param_block_norm(0.8),
    "scale_by_param_block_rms": o.scale_by_param_block_rms(0.8),
    "scale_by_trust_ratio": o.scale_by_trust_ratio(min_norm=0.5, trust_coefficient=0.3, eps=0.1),
}
rows = {name: updates_of(optimizer, PARAMS, GRADS, flat) for name, optimizer in OPTIMIZERS.items()}
data = {
    "versions": {m.__name__: m.__version__ for m in (jax, jaxlib, np, o)},
    "params": {k: parts(v) for k, v in PARAMS.items()},
    "grads": {k: [parts(g[k]) for g in GRADS] for k in SHAPES},
    "optimizers": rows,
    "global_norm": float(o.global_norm(PARAMS)),
}
PATH.write_text(json.dumps(data))
print(data["versions"], len(rows))
