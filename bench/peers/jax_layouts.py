"""JAX's times of layouts of a product, for bench/layouts_jax.h: jax_layouts.py ASKED.json TIMES.json. Times are medians, by layout."""

import functools
import json
import os
import random
import statistics
import sys
import time

asked = json.load(open(sys.argv[1]))
names = [name for name, _ in asked["mesh"]]
sizes = [size for _, size in asked["mesh"]]
count = 1
for size in sizes:
    count *= size
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count} " + os.environ.get("XLA_FLAGS", "")

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

DTYPES = {"f32": jnp.float32, "f64": jnp.float64, "f16": jnp.float16, "bf16": jnp.bfloat16, "tf32": jnp.float32}


def sharding(mesh, cut):
    entries = [tuple(names[axis] for axis in axes) or None for axes in cut]
    return NamedSharding(mesh, PartitionSpec(*entries))


def sample(call, calls):
    start = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / calls


def main():
    jax.config.update("jax_enable_x64", asked["dtype"] == "f64")
    mesh = jax.make_mesh(sizes, names, axis_types=(jax.sharding.AxisType.Auto,) * len(names))
    bits = np.random.default_rng(1)
    dtype = DTYPES[asked["dtype"]]
    a = jnp.asarray(bits.integers(-3, 4, (asked["m"], asked["k"])), dtype)
    b = jnp.asarray(bits.integers(-3, 4, (asked["k"], asked["n"])), dtype)
    v = jnp.asarray(bits.integers(-3, 4, (asked["n"], asked["k"])), dtype)
    calls, counts, times = {}, {}, {}
    for layout in asked["layouts"]:
        try:
            matrices = [jax.device_put(a, sharding(mesh, layout["a"])), jax.device_put(b, sharding(mesh, layout["b"]))]
            if layout["v"] is not None:
                matrices.append(jax.device_put(v, sharding(mesh, layout["v"])))
            out = sharding(mesh, layout["c"]) if layout["c"] is not None else None
            f = jax.jit(lambda *m: functools.reduce(jnp.matmul, m), out_shardings=out)
            jax.block_until_ready(f(*matrices))
        except ValueError:
            continue  # sizes that do not divide
        name = layout["name"]
        calls[name] = lambda f=f, matrices=matrices: f(*matrices)
        counts[name] = max(1, round(asked["seconds"] / max(sample(calls[name], 1), 1e-9)))
        times[name] = []
    order = list(calls)
    for _ in range(asked["rounds"]):
        random.shuffle(order)
        for name in order:
            times[name].append(sample(calls[name], counts[name]))
    json.dump({name: statistics.median(t) for name, t in times.items()}, open(sys.argv[2], "w"))


main()
