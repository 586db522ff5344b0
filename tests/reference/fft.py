"""Discrete Fourier transforms as jax.numpy.fft computes them in float64 and complex128, with pullbacks: writes tests/data/fft.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/fft.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
PATH = pathlib.Path(__file__).parents[1] / "data" / "fft.json"
random = np.random.default_rng(29)


def packed(x):
    x = np.asarray(x)
    values = x.ravel().view(np.float64) if x.dtype.kind == "c" else x.ravel()
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": [round(float(v), 14) for v in values]}


def drawn(shape, real=False):
    x = np.round(random.standard_normal(shape) * 16) / 16
    return x if real else x + 1j * np.round(random.standard_normal(shape) * 16) / 16


def case(name, x, **attrs):
    f = getattr(jnp.fft, name)
    y, pull = jax.vjp(lambda v: f(v, **attrs), jnp.asarray(x))
    given = drawn(y.shape, y.dtype.kind == "f")
    return {"name": name, "attrs": attrs, "in": packed(x), "out": packed(y), "given": packed(given), "back": packed(pull(jnp.asarray(given))[0])}


cases = []
for name in "fft ifft rfft irfft hfft ihfft".split():
    real = name in ("rfft", "ihfft")
    for attrs in ({}, {"n": 8}, {"n": 5}, {"axis": 0}, {"n": 7, "axis": 0, "norm": "ortho"}, {"norm": "forward"}):
        cases.append(case(name, drawn((4, 6), real), **attrs))
for name in "fftn ifftn rfftn irfftn".split():
    real = name == "rfftn"
    for attrs in ({}, {"axes": (0, 2)}, {"s": (3, 4)}, {"s": (5, 2), "axes": (2, 0), "norm": "ortho"}):
        if "s" in attrs and "axes" not in attrs:
            attrs = {**attrs, "axes": (1, 2)}
        cases.append(case(name, drawn((3, 4, 4), real), **attrs))
for name in "fft2 ifft2 rfft2 irfft2".split():
    cases.append(case(name, drawn((2, 4, 6), name == "rfft2")))
    cases.append(case(name, drawn((2, 4, 6), name == "rfft2"), norm="forward", axes=(1, 0)))
values = [{"name": n, "attrs": {"n": k, "d": d}, "out": packed(getattr(jnp.fft, n)(k, d))} for n in ("fftfreq", "rfftfreq") for k, d in ((1, 1.0), (6, 0.5), (7, 0.1))]
PATH.write_text(json.dumps({"jax": jax.__version__, "cases": cases, "values": values}, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
print(len(cases), PATH.stat().st_size)
