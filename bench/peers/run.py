"""The library against its peers on this machine: ./dev bench peers [--peers jax,torch] [--rows TEXT,..] [--rounds N]
[--platform cuda --python P] [--quick] [--json FILE]

A row is the same work on the same inputs on all sides (peers.cpp, jax_side.py, torch_side.py), in processes of their
own that run in turns: ours, JAX, JAX, ours, ... Each makes a first call, tells the values that it got, warms up, and takes
the median of its samples. The table has the medians over the rounds and the median of the rounds' ratios; +-% is
the median absolute deviation of all samples. A row whose values differ between two sides fails. Peers live in an
environment of their own, build/peers-python; with --python P in that Python, where nothing is installed: rows of packages
that it lacks are skipped.

torch has rows for one device, in two variants, `eager` and `compiled` (torch.compile): the faster one stands in the
table. It gets as many threads as the library has.

On a GPU (--platform cuda) rows that multiply matrices come in float32 as IEEE has it, by way of TF32, and in bfloat16,
on all sides alike. Our 8 devices are logical ones of the GPU; JAX has no such devices and does the same work on one.

A row's aim is a ratio or a time. Matmul's and Adam's are the ratios of the times aimed at to those of JAX, both
measured on the machine on which the aims were set.
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import environment
from environment import NAMES
from rows import CUDA_ROWS, ROWS, TRAINING
from table import Figure, Peer, Table, as_json

HERE = Path(__file__).resolve().parent
# Tolerances of values, relative to the largest of their group: rounding to TF32 and bfloat16 is 5e-4 and 4e-3.
TOLERANCE = {"f32": 1e-5, "tf32": 5e-3, "bf16": 2e-2}


class Failure(Exception):
    pass


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return platform.machine()


def run_side(name, command, variables):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        raise Failure(f"{name}: {lines[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def load(processes):
    """So many that compute all the time."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield started
    finally:
        for p in started:
            p.kill()
            p.wait()


def same(ours, theirs, tolerance):
    """Figures of a group are compared on the scale of its largest."""
    if [len(g) for g in ours] != [len(g) for g in theirs]:
        return False
    return all(
        abs(a - b) <= tolerance * max(map(abs, group + other))
        for group, other in zip(ours, theirs)
        for a, b in zip(group, other)
    )


def sides_of(row, bench, peers, o):
    """Side -> its command and environment variables."""
    arguments = ["--size", str(row.size), "--precision", row.precision, *o.sampling]
    arguments += ["--cold"] if row.cold else []
    # Nothing comes from the disk: JAX keeps no compiled programs there either.
    ours = {"SHARDARRAY_PLATFORM": o.platform, "SHARDARRAY_CACHE_DIR": ""}
    if o.platform == "cuda":
        ours["SHARDARRAY_CUDA_LOGICAL_DEVICES"] = str(row.devices)
        if not row.cold:
            ours["SHARDARRAY_CODEGEN"] = "always"  # compiled before the first run, as JAX's programs are
    else:
        ours["SHARDARRAY_CPU_DEVICES"] = str(row.devices)
    sides = {"ours": ([bench, row.row, *arguments], {**ours, **row.environment})}
    if "jax" in peers:
        theirs = environment.jax_variables(o.jax_platform)
        if o.platform == "cpu":
            theirs["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={row.devices}"
        sides["jax"] = ([o.python, "-B", HERE / "jax_side.py", row.jax_row or row.row, *arguments], theirs)
    if "torch" in peers:
        theirs = environment.torch_variables(o.platform, o.threads)
        sides["torch"] = ([o.python, "-B", HERE / "torch_side.py", row.row, *arguments], theirs)
    return sides


def by_part(runs):
    """Part -> variant -> its result of each run; variants that did not run every time are left out."""
    parts = {}
    for run in runs:
        for result in run:
            parts.setdefault(result["name"], {}).setdefault(result.get("variant", ""), []).append(result)
    for variants in parts.values():
        for variant in [v for v, results in variants.items() if len(results) < len(runs)]:
            del variants[variant]
    return parts


def check_values(ours, parts, side, tolerance):
    if list(ours) != list(parts):
        raise Failure(f"ours and {NAMES[side]}'s have different parts")
    for part, variants in parts.items():
        for variant, results in variants.items():
            expected, got = ours[part][""][0]["check"], results[0]["check"]
            if not same(expected, got, tolerance):
                raise Failure(
                    f"values differ{' of ' + part if part else ''}: {expected} and {NAMES[side]}"
                    f"{' ' + variant if variant else ''} {got}"
                )


def seconds_of(result, cold):
    return result["first"] if cold else statistics.median(result["samples"])


def spread_of(results, cold):
    samples = [s for r in results for s in ([r["first"]] if cold else r["samples"])]
    middle = statistics.median(samples)
    return statistics.median(abs(s - middle) for s in samples) / middle


def fastest(variants, cold):
    """The variant's name, its seconds in each run, its spread."""
    times = {v: [seconds_of(r, cold) for r in results] for v, results in variants.items()}
    best = min(times, key=lambda v: statistics.median(times[v]))
    return best, times[best], spread_of(variants[best], cold)


def figures_of(row, sides):
    """sides: side -> what `by_part` gives. One figure, or one for each part behind their sum."""
    figures = []
    for part, variants in sides["ours"].items():
        _, times, spread = fastest(variants, row.cold)
        f = Figure(f"  {part}" if part else row.title, times, spread)
        for side, parts in sides.items():
            if side != "ours":
                best, times, spread = fastest(parts[part], row.cold)
                f.peers[side] = Peer(times, spread, best)
        figures.append(f)
    if len(figures) == 1:
        total = figures[0]
    else:
        for f in figures:
            if "jax" in f.peers:
                f.peers["jax"].aim = row.part_ratio
        added = {
            p: Peer([sum(t) for t in zip(*(f.peers[p].times for f in figures))]) for p in figures[0].peers
        }
        total = Figure(row.title, [sum(t) for t in zip(*(f.ours for f in figures))], peers=added)
        figures.insert(0, total)
    total.seconds_aim = row.seconds
    for peer, aim in row.aims().items():
        if peer in total.peers:
            total.peers[peer].aim = aim
    return figures


def measure(row, bench, peers, o):
    """The figures of a row beside these peers."""
    sides = sides_of(row, bench, peers, o)
    rounds = {side: [] for side in sides}
    for k in range(o.rounds):
        for side in list(sides) if k % 2 == 0 else reversed(sides):
            with load(2 * os.cpu_count() if row.busy else 0):
                rounds[side].append(run_side(NAMES.get(side, side), *sides[side]))
    parts = {side: by_part(runs) for side, runs in rounds.items()}
    for side in peers:
        check_values(parts["ours"], parts[side], side, TOLERANCE[row.precision])
    return figures_of(row, parts)


def options():
    parser = argparse.ArgumentParser(
        prog="./dev bench peers", description="The library against its peers on this machine."
    )
    parser.add_argument("bench", help=argparse.SUPPRESS)
    parser.add_argument(
        "--peers",
        default="jax",
        help=f"of {', '.join(NAMES)}, with commas between (jax); torch is installed when it is named: 5 GB",
    )
    parser.add_argument(
        "--rows", default="", help="only rows whose titles contain one of these texts, with commas between"
    )
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side (3)")
    parser.add_argument(
        "--quick", action="store_true", help="one round of few short samples: to see that it runs"
    )
    parser.add_argument("--platform", choices=["cpu", "cuda"], default="cpu", help="of all sides (cpu)")
    parser.add_argument(
        "--jax-platform", choices=["cpu", "cuda"], help="of JAX's side, where it has another one"
    )
    parser.add_argument(
        "--python",
        help="a Python that has the peers (Equinox and optax too, or their rows are skipped); nothing is installed then",
    )
    parser.add_argument("--update", action="store_true", help="installs the newest peers first")
    parser.add_argument("--json", help="writes the results to this file")
    o = parser.parse_args()
    try:
        o.peers = environment.peers_named(o.peers)
    except ValueError as e:
        sys.exit(str(e))
    o.rounds = 1 if o.quick else max(o.rounds, 1)
    o.sampling = ["--samples", "3", "--min-time", "1e-4", "--warm-time", "0.02"] if o.quick else []
    o.jax_platform = o.jax_platform or o.platform
    return o


def print_machine(found, o):
    load = os.getloadavg()[0]
    platforms = {"jax": o.jax_platform, "torch": o.platform}
    gpus = [environment.device_name(o.python, p, "cuda") for p in o.peers if platforms[p] == "cuda"]
    machine = [*dict.fromkeys(gpus), processor(), f"{os.cpu_count()} cores"]
    print(
        f"{', '.join(f'{p} {v}' for p, v in found.items())} on {', '.join(machine)}; load {load:.1f} at start"
    )


def main():
    o = options()
    if o.python is None:
        try:
            o.python = environment.prepare(o.peers, o.update)
        except (subprocess.CalledProcessError, RuntimeError) as e:
            sys.exit(f"peers: cannot make the Python environment: {e}")
    found = environment.versions(o.python, o.peers)
    o.threads = int(environment.output([o.bench, "--threads"]))
    print_machine(found, o)
    table = Table(o.peers, max(len(r.title) for r in ROWS + CUDA_ROWS))
    print(table.header(), flush=True)
    figures, failures = [], 0
    for row in CUDA_ROWS if o.platform == "cuda" else ROWS:
        if not any(text in row.title for text in o.rows.split(",")):
            continue
        peers = row.peers(o.peers)
        lacking = [p for p in environment.PACKAGES["jax"] if p not in found]
        if row.row in TRAINING and "jax" in peers and lacking:
            print(table.note(row.title, f"SKIPPED: {o.python} has no {' and no '.join(lacking)}"), flush=True)
            continue
        try:
            new = measure(row, o.bench, peers, o)
        except Failure as failure:
            failures += 1
            print(table.note(row.title, f"FAILED: {failure}"), flush=True)
            continue
        for f in new:
            print(table.figure(f), flush=True)
        figures += new
    missed = [f.title.strip() for f in figures if f.met() is False]
    print(f"{len(figures)} figures, {len(missed)} missed their aim, {failures} rows failed")
    if o.json:
        Path(o.json).write_text(json.dumps([as_json(f, o.peers) for f in figures], indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
