"""Weights of an Equinox model by names as PyTorch gives them, with what it makes of x: tests/data/files/mlp.safetensors.

    python3 -m venv v && v/bin/pip install equinox==0.13.8 jax==0.10.2 safetensors==0.8.0
    v/bin/python tests/reference/weights.py
"""
import pathlib

import equinox as eqx
import jax
import numpy as np
import safetensors.numpy

PATH = pathlib.Path(__file__).parents[1] / "data" / "files" / "mlp.safetensors"
model = eqx.nn.MLP(3, 2, 5, 2, key=jax.random.key(7))
x = jax.random.normal(jax.random.key(8), (4, 3))
arrays = {"x": x, "y": jax.vmap(model)(x)}
for k, layer in enumerate(model.layers):
    arrays |= {f"layers.{k}.weight": layer.weight, f"layers.{k}.bias": layer.bias}
safetensors.numpy.save_file({name: np.asarray(a) for name, a in arrays.items()}, PATH, {"format": "pt"})
print(eqx.__version__, jax.__version__, safetensors.__version__, PATH.stat().st_size, "bytes")
