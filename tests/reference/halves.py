"""tests/data/halves.json: what JAX computes with float16 and bfloat16 on a CPU. The inputs are those in the file; names,
inputs and tolerances stay, the results are computed again and the versions written down.

    python3 -m venv venv && venv/bin/pip install jax==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0
    venv/bin/python tests/reference/halves.py
"""
import json
import os
import pathlib

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import jaxlib
import ml_dtypes
import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "halves.json"
BITS = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32}


def function(name, attrs):
    if name == "astype":
        return lambda x: x.astype(attrs["to"])
    if name.endswith("_bf16"):  # sum, matmul
        name = name.removesuffix("_bf16")
    module, _, last = name.rpartition(".")
    return getattr({"": jnp, "lax": jax.lax, "nn": jax.nn}[module], last)


def decode(j):
    if j["dtype"] in BITS:
        return np.array(j["bits"], BITS[j["dtype"]]).view(jnp.dtype(j["dtype"])).reshape(j["shape"])
    return np.array([float(v) if isinstance(v, str) else v for v in j["data"]], j["dtype"]).reshape(j["shape"])


def number(v):
    if not np.isfinite(v):
        return str(v)
    return float(str(v)) if v.dtype == np.float32 else v.item()  # float32 in its shortest digits


def encode(array):
    flat = np.asarray(array).reshape(-1)
    name = flat.dtype.name
    r = {"dtype": name, "shape": list(np.shape(array)), "data": [number(v) for v in flat]}
    if name in BITS:
        r["bits"] = flat.view(BITS[name]).tolist()
    return r


def results(case):
    with jax.enable_x64(case["attrs"].get("x64", False)):
        return encode(function(case["name"], case["attrs"])(*map(jnp.asarray, map(decode, case["inputs"]))))


cases = json.loads(PATH.read_text())["cases"]
for case in cases:
    case["outputs"] = results(case)
versions = {m.__name__: m.__version__ for m in (jax, jaxlib, np, ml_dtypes)}
versions |= {"platform": jax.default_backend(), "devices": jax.device_count()}
PATH.write_text(json.dumps({"versions": versions, "cases": cases}))
print(versions)
