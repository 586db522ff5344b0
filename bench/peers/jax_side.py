"""JAX's side of `./dev bench peers`: runs one row and prints its figures as JSON. Options and output as bench/peers.cpp.

Every result is waited for: with 8 devices in one process JAX can deadlock in loops that are not.
"""

import argparse
import json
import random
import time

import jax
import jax_arrays
import jax_work
import numpy as np


def digest(x):
    """Means that depend on the values and on their order, and the corners."""
    v = np.asarray(x).astype(np.float64).ravel()
    weighted = v * ((np.arange(v.size) % 7 + 1) / 4)
    return [float(f) for f in (np.abs(v).mean(), v.mean(), weighted.mean(), v[0], v[-1])]


class Case:
    """As bench::Case: a sample is as many calls as take a certain time."""

    def __init__(self, work):
        self.call, self.calls, self.samples = work.call, 1, []

    def sample(self):
        start = time.perf_counter()
        for _ in range(self.calls):
            self.call()
        return time.perf_counter() - start


def measure(cases, samples, min_time):
    """As bench::measure: rounds of shuffled order."""
    for c in cases:
        while c.sample() < min_time:
            c.calls *= 2
    order = list(cases)
    shuffle = random.Random(1)
    for _ in range(samples):
        shuffle.shuffle(order)
        for c in order:
            c.call()
            c.samples.append(c.sample() / c.calls)


def row_of(name):
    if name in jax_arrays.ROWS:
        return jax_arrays.ROWS[name]
    import jax_training  # needs Equinox and optax

    return jax_training.ROWS[name]


def run(o):
    works = row_of(o.row)(o.size)
    cases, results = [], []
    for w in works:
        case = Case(w)
        first = case.sample()
        results.append({"name": w.name, "first": first, "check": w.check(digest)})
        spent = 0
        while not o.cold and spent < o.warm_time / len(works):
            spent += case.sample()
        cases.append(case)
    if not o.cold:
        measure(cases, o.samples, o.min_time)
        for result, case in zip(results, cases):
            result["samples"] = case.samples
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("row")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--min-time", type=float, default=0.01)
    parser.add_argument("--warm-time", type=float, default=0.3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    o = parser.parse_args()
    if jax.default_backend() != "cpu":  # whose products of float32 are JAX's default there
        jax.config.update("jax_default_matmul_precision", "tensorfloat32" if o.precision == "tf32" else "highest")
    jax_work.half_products = o.precision == "bf16"
    print(json.dumps(run(o)))


main()
