"""What the Python sides of `./dev bench peers` share: a row's works, how they are measured, the figures as JSON. Options
and output as bench/peers.cpp."""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class Work:
    """What a row runs, as bench/peers/work.h."""

    name: str  # where a row has several
    call: Callable  # returns when the result is there
    check: Callable  # called once with `digest`, after the first call: groups of figures of one scale,
    # on which all sides must agree
    variant: str = ""  # where the same work is done in several ways
    optional: bool = False  # a variant that may be unable to run


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


def run(works, o):
    cases, results = [], []
    for w in works:
        case = Case(w)
        try:
            first = case.sample()
        except Exception as e:
            if not w.optional:
                raise
            print(f"{o.row}, {w.variant}, does not run: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        results.append({"name": w.name, "variant": w.variant, "first": first, "check": w.check(digest)})
        spent = 0
        while not o.cold and spent < o.warm_time / len(works):
            spent += case.sample()
        cases.append(case)
    if not o.cold:
        measure(cases, o.samples, o.min_time)
        for result, case in zip(results, cases):
            result["samples"] = case.samples
    return results


def main(works_of):
    """works_of(options): the works of the row `options.row` of `options.size` in `options.precision`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("row")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--min-time", type=float, default=0.01)
    parser.add_argument("--warm-time", type=float, default=0.3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    o = parser.parse_args()
    print(json.dumps(run(works_of(o), o)))
