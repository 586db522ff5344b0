"""Initial weights as jax.nn.initializers draws them: writes tests/data/initializers.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/initializers.py
"""
import json
import pathlib

import jax
import jaxlib
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "initializers.json"
I = jax.nn.initializers
cases = []


def add(name, shape, *arguments, **options):
    out = np.asarray(getattr(I, name)(*arguments, **options)(jax.random.key(5), shape))
    packed = {"dtype": out.dtype.name, "shape": list(out.shape), "data": [float(str(v)) for v in out.ravel()]}
    cases.append({"name": name, "arguments": arguments, "options": options, "shape": shape, "out": packed})


for name in ("glorot_uniform", "glorot_normal", "lecun_uniform", "lecun_normal", "he_uniform", "he_normal"):
    add(name, (4, 6))
add("he_normal", (3, 2, 4, 5))
add("he_uniform", (5, 4, 3, 2), in_axis=1, out_axis=0)
add("lecun_normal", (2, 3, 4), batch_axis=(0,))
add("variance_scaling", (4, 6), 0.5, "fan_out", "normal")
add("variance_scaling", (4, 6), 3.0, "fan_geo_avg", "uniform")
add("uniform", (3, 4))
add("normal", (3, 4), 0.5)
add("truncated_normal", (3, 4), 0.5, lower=-1.0, upper=3.0)

versions = {"jax": jax.__version__, "jaxlib": jaxlib.__version__, "numpy": np.__version__}
lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
PATH.write_text('{"area":"initializers",\n"versions":' + json.dumps(versions) + ',\n"cases":[\n' + lines + "\n]}\n")
print(len(cases), "cases,", PATH.stat().st_size, "bytes")
