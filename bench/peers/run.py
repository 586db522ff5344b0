"""The library against JAX on this machine: ./dev bench peers [--platform cuda --python P] [--rows TEXT,..] [--rounds N]
[--quick] [--json FILE]

A row is the same work on the same inputs on both sides (peers.cpp and jax_side.py), in processes of their own that
run in turns: ours, JAX, JAX, ours, ... Each makes a first call, tells the values that it got, warms up, and takes
the median of its samples. The table has the medians over the rounds and the median of the rounds' ratios; +-% is
the median absolute deviation of all samples. A row whose values differ between the two sides fails. JAX lives in an
environment of its own, build/peers-python; with --python P in that Python, where nothing is installed: rows of packages
that it lacks are skipped.

On a GPU (--platform cuda) rows that multiply matrices come in float32 as IEEE has it, by way of TF32, and in bfloat16,
on both sides alike. Our 8 devices are logical ones of the GPU; JAX has no such devices and does the same work on one.

A row's aim is a ratio or a time. Matmul's and Adam's are the ratios of the times aimed at to those of JAX, both
measured on the machine on which the aims were set.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent.parent / "build" / "peers-python"
PACKAGES = ["jax", "equinox", "optax", "numpy"]
# Of values, on the scale of the largest of their group: rounding to TF32 and bfloat16 is 5e-4 and 4e-3.
TOLERANCE = {"f32": 1e-5, "tf32": 5e-3, "bf16": 2e-2}
TRAINING = ("seed_step", "adam", "mlp", "transformer")  # rows that need more than JAX


@dataclass
class Row:
    title: str
    row: str
    size: int = 0
    devices: int = 1
    cold: bool = False  # the first call of a process is the figure
    jax_row: str = ""  # where it has another name
    environment: dict = field(default_factory=dict)  # of our side
    ratio: float = 0  # aims: ours / JAX's,
    seconds: float = 0  # or our time
    part_ratio: float = 0  # of each part of a row that has several; `ratio` is the sum's
    precision: str = "f32"  # of products


ROWS = [
    Row("seed step, 8 devices", "seed_step", devices=8, ratio=1 / 150),
    Row("seed step, 8 devices, filter_jit", "seed_step", devices=8, jax_row="seed_step_filter_jit"),
    Row("seed step, 1 device", "seed_step", seconds=5e-6),
    Row("seed step, 1 device, filter_jit", "seed_step", jax_row="seed_step_filter_jit"),
    Row("dispatch of jit", "dispatch_jit", seconds=0.5e-6),
    Row("dispatch, eager", "dispatch_eager", seconds=1e-6),
    Row("dispatch of pmap, 8 devices", "dispatch_pmap", devices=8, seconds=3e-6),
    Row("all-reduce of 8 x 292", "all_reduce", 292, devices=8, seconds=2e-6),
    Row("all-reduce of 8 x 4 MB", "all_reduce", 1 << 20, devices=8),
    Row("matmul 64^3", "matmul", 64, ratio=1),
    Row("matmul 128^3", "matmul", 128, ratio=1),
    Row("matmul 256^3", "matmul", 256, ratio=119 / 212),
    Row("matmul 512^3", "matmul", 512, ratio=200 / 220),
    Row("matmul 1024^3", "matmul", 1024, ratio=215 / 220),
    Row("matmul 2048^3", "matmul", 2048, ratio=195 / 220),
    Row("layouts of 1024^3, 8 devices", "layouts", 1024, devices=8, ratio=0.45, part_ratio=1),
    Row(
        "layouts of 1024^3, 8 devices, replicas apart",
        "layouts",
        1024,
        devices=8,
        environment={"SHARDARRAY_SHARE_REPLICAS": "0"},
    ),
    Row("adam 1e7, donated", "adam", 10**7, ratio=4.5 / 0.95 / 8.6),
    Row("gelu 1e5", "gelu", 10**5, ratio=0.7),
    Row("gelu 1e6", "gelu", 10**6, ratio=0.7),
    Row("gelu 1e7", "gelu", 10**7, ratio=0.7),
    Row("sum 1e5", "sum", 10**5, ratio=0.2),
    Row("sum 1e7", "sum", 10**7, ratio=0.95),
    Row("softmax 4096 x 1024", "softmax", 4096, ratio=0.35),
    Row("layer norm 4096 x 1024", "layer_norm", 4096),
    Row("transpose 4096 x 1024", "transpose", 4096, ratio=0.5),
    Row("random bits 1e7", "random_bits", 10**7, ratio=1 / 8),
    Row("random normal 1e7", "random_normal", 10**7, ratio=1 / 8),
    Row("MLP 8 x 512 step, batch 256, SGD", "mlp", ratio=0.9),
    Row("transformer step", "transformer"),
    Row("cold seed step, 8 devices", "seed_step", devices=8, cold=True, seconds=60e-3),
    Row("cold seed step, 1 device", "seed_step", cold=True, seconds=60e-3),
    Row("cold chain of 300", "chain", 300, cold=True, ratio=0.1),
    Row("cold chain of 3,000", "chain", 3000, cold=True, ratio=0.1),
]


def precisions(title, row, size=0, devices=1, names=("f32", "tf32")):
    return [Row(f"{title}, {name}", row, size, devices, precision=name) for name in names]


ALL = ("f32", "tf32", "bf16")
CUDA_ROWS = [
    Row("seed step, 8 devices", "seed_step", devices=8),
    Row("seed step, 8 devices, filter_jit", "seed_step", devices=8, jax_row="seed_step_filter_jit"),
    Row("seed step, 1 device", "seed_step"),
    Row("seed step, 1 device, filter_jit", "seed_step", jax_row="seed_step_filter_jit"),
    Row("dispatch of jit", "dispatch_jit"),
    Row("dispatch, eager", "dispatch_eager"),
    *precisions("matmul 256^3", "matmul", 256, names=ALL),
    *precisions("matmul 1024^3", "matmul", 1024, names=ALL),
    *precisions("matmul 4096^3", "matmul", 4096, names=ALL),
    *precisions("matmul 8192^3", "matmul", 8192, names=ALL),
    *precisions("layouts of 4096^3, 8 devices", "layouts", 4096, devices=8),
    Row("adam 1e8, donated", "adam", 10**8),
    Row("gelu 1e6", "gelu", 10**6),
    Row("gelu 1e8", "gelu", 10**8),
    Row("sum 1e6", "sum", 10**6),
    Row("sum 1e8", "sum", 10**8),
    Row("softmax 65,536 x 1024", "softmax", 65536),
    Row("layer norm 65,536 x 1024", "layer_norm", 65536),
    Row("transpose 65,536 x 1024", "transpose", 65536),
    Row("random bits 1e8", "random_bits", 10**8),
    Row("random normal 1e8", "random_normal", 10**8),
    *precisions("MLP 8 x 512 step, batch 256, SGD", "mlp", 512),
    *precisions("MLP 8 x 4096 step, batch 2048, SGD", "mlp", 4096),
    *precisions("transformer step, small", "transformer"),
    *precisions("transformer step, width 1024, 8 x 512 words", "transformer", 1024),
    Row("cold seed step, 8 devices", "seed_step", devices=8, cold=True),
    Row("cold seed step, 1 device", "seed_step", cold=True),
    Row("cold chain of 300", "chain", 300, cold=True),
]


class Failure(Exception):
    pass


def prepare(update):
    """The Python environment."""
    installed = ENVIRONMENT / "installed"
    if installed.exists() and not update:
        return
    print(f"installing {', '.join(PACKAGES)} in build/{ENVIRONMENT.name}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    python = ENVIRONMENT / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", *PACKAGES], check=True)
    installed.touch()


def versions(python):
    """Package -> version, of those that the Python has."""
    code = """
import importlib.metadata as m, sys
for p in sys.argv[1:]:
    try: print(p, m.version(p))
    except m.PackageNotFoundError: pass"""
    try:
        done = subprocess.run([python, "-c", code, *PACKAGES], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as e:
        sys.exit(f"peers: {python} is no Python that runs: {e}")
    found = dict(line.split() for line in done.stdout.splitlines())
    if lacking := [p for p in ("jax", "numpy") if p not in found]:
        sys.exit(f"peers: {python} has no {' and no '.join(lacking)}. The rows are compared with JAX. Name another Python.")
    return found


def jax_environment(platform):
    """Of JAX's processes, but for the number of devices."""
    # The last line of what they say is the error.
    common = {"JAX_PLATFORMS": platform, "JAX_TRACEBACK_FILTERING": "off"}
    return {**common, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if platform == "cuda" else common


def jax_device(python, platform):
    code = "import jax; print(jax.devices()[0].device_kind)"
    environment = {**os.environ, **jax_environment(platform)}
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["it gives no reason"])[-1]
        sys.exit(f"peers: JAX of {python} has no device of '{platform}': {why}")
    return done.stdout.strip().splitlines()[-1]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return platform.machine()


def run_side(name, command, environment):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        raise Failure(f"{name}: {lines[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def same(ours, theirs, tolerance):
    """Figures of a group are compared on the scale of its largest."""
    if [len(g) for g in ours] != [len(g) for g in theirs]:
        return False
    return all(
        abs(a - b) <= tolerance * max(map(abs, group + other))
        for group, other in zip(ours, theirs)
        for a, b in zip(group, other)
    )


@dataclass
class Figure:
    title: str
    ours: list  # seconds, one entry a round
    theirs: list
    spread: tuple = ()
    ratio_aim: float = 0
    seconds_aim: float = 0

    def value(self):
        return statistics.median(self.ours)

    def peer(self):
        return statistics.median(self.theirs)

    def ratio(self):
        return statistics.median(a / b for a, b in zip(self.ours, self.theirs))

    def aim(self):
        if self.ratio_aim:
            return f"<= {self.ratio_aim:.3g}x"
        return f"<= {time_text(self.seconds_aim)}" if self.seconds_aim else ""

    def met(self):
        if self.ratio_aim:
            return self.ratio() <= self.ratio_aim
        return self.value() <= self.seconds_aim if self.seconds_aim else None


def measure(row, bench, o):
    """The figures of a row: one, or one for each part and their sum."""
    arguments = ["--size", str(row.size), "--precision", row.precision, *o.sampling]
    arguments += ["--cold"] if row.cold else []
    # Nothing comes from the disk: JAX keeps no compiled programs there either.
    ours = {"SHARDARRAY_PLATFORM": o.platform, "SHARDARRAY_CACHE_DIR": "", **row.environment}
    if o.platform == "cuda":
        ours["SHARDARRAY_CUDA_LOGICAL_DEVICES"] = str(row.devices)
        if not row.cold:
            ours["SHARDARRAY_CODEGEN"] = "always"  # compiled before the first run, as JAX's programs are
    else:
        ours["SHARDARRAY_CPU_DEVICES"] = str(row.devices)
    theirs = jax_environment(o.jax_platform)
    if o.platform == "cpu":
        theirs["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={row.devices}"
    sides = {
        "ours": ([bench, row.row, *arguments], ours),
        "JAX": ([o.python, "-B", HERE / "jax_side.py", row.jax_row or row.row, *arguments], theirs),
    }
    rounds = {name: [] for name in sides}
    for k in range(o.rounds):
        for name in list(sides) if k % 2 == 0 else reversed(sides):
            rounds[name].append(run_side(name, *sides[name]))
    names = [part["name"] for part in rounds["ours"][0]]
    if names != [part["name"] for part in rounds["JAX"][0]]:
        raise Failure("the two sides have different parts")
    for part, ours, theirs in zip(names, rounds["ours"][0], rounds["JAX"][0]):
        if not same(ours["check"], theirs["check"], TOLERANCE[row.precision]):
            raise Failure(
                f"values differ{' of ' + part if part else ''}: {ours['check']} and JAX {theirs['check']}"
            )

    def seconds(part):
        return part["first"] if row.cold else statistics.median(part["samples"])

    def spread(runs, k):
        samples = [s for run in runs for s in ([run[k]["first"]] if row.cold else run[k]["samples"])]
        middle = statistics.median(samples)
        return statistics.median(abs(s - middle) for s in samples) / middle

    parts = []
    for k, name in enumerate(names):
        times = [[seconds(run[k]) for run in rounds[side]] for side in sides]
        parts.append(
            Figure(
                f"  {name}" if name else row.title, *times, tuple(spread(rounds[side], k) for side in sides)
            )
        )
    if len(parts) == 1:
        parts[0].ratio_aim, parts[0].seconds_aim = row.ratio, row.seconds
        return parts
    for part in parts:
        part.ratio_aim = row.part_ratio
    total = [[sum(seconds(part) for part in run) for run in rounds[side]] for side in sides]
    return [Figure(row.title, *total, ratio_aim=row.ratio), *parts]


def time_text(seconds):
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1, 1e3, "ms")):
        if seconds < limit:
            return (
                f"{seconds * factor:.3g} {unit}"
                if seconds * factor < 999.5
                else f"{seconds * factor:.0f} {unit}"
            )
    return f"{seconds:.3g} s"


WIDTH = max(len(r.title) for r in ROWS + CUDA_ROWS)


def print_line(title, ours, our_spread, theirs, their_spread, ratio, aim, met):
    columns = f"{ours:>8} {our_spread:>5}  {theirs:>8} {their_spread:>5}  {ratio:>8}  {aim:<11} {met}"
    print(f"{title:<{WIDTH}}  {columns}".rstrip(), flush=True)


def print_figure(f):
    spread = [f"{100 * s:.1f}" for s in f.spread] or ["", ""]
    met = {True: "met", False: "MISSED", None: ""}[f.met()]
    print_line(
        f.title,
        time_text(f.value()),
        spread[0],
        time_text(f.peer()),
        spread[1],
        f"{f.ratio():.3g}x",
        f.aim(),
        met,
    )


def as_json(f):
    return {
        "name": f.title.strip(),
        "value": f.value(),
        "unit": "s",
        "floor": f.peer(),
        "ratio": f.ratio(),
        "aim": f.aim() or None,
        "met": f.met(),
    }


def main():
    parser = argparse.ArgumentParser(
        prog="./dev bench peers", description="The library against JAX on this machine."
    )
    parser.add_argument("bench", help=argparse.SUPPRESS)
    parser.add_argument(
        "--rows", default="", help="only rows whose titles contain one of these texts, with commas between"
    )
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side (3)")
    parser.add_argument(
        "--quick", action="store_true", help="one round of few short samples: to see that it runs"
    )
    parser.add_argument("--platform", choices=["cpu", "cuda"], default="cpu", help="of both sides (cpu)")
    parser.add_argument(
        "--jax-platform", choices=["cpu", "cuda"], help="of JAX's side, where it has another one"
    )
    parser.add_argument(
        "--python",
        help="a Python that has JAX (and Equinox and optax, or their rows are skipped); nothing is installed then",
    )
    parser.add_argument("--update", action="store_true", help="installs the newest JAX first")
    parser.add_argument("--json", help="writes the results to this file")
    o = parser.parse_args()
    o.rounds = 1 if o.quick else max(o.rounds, 1)
    o.sampling = ["--samples", "3", "--min-time", "1e-4", "--warm-time", "0.02"] if o.quick else []
    o.jax_platform = o.jax_platform or o.platform
    if o.python is None:
        o.python = ENVIRONMENT / "bin" / "python"
        try:
            prepare(o.update)
        except subprocess.CalledProcessError as e:
            sys.exit(f"peers: cannot make the Python environment: {e}")
    load = os.getloadavg()[0]
    found = versions(o.python)
    gpu = f"{jax_device(o.python, 'cuda')}, " if o.jax_platform == "cuda" else ""
    print(
        f"{', '.join(f'{p} {v}' for p, v in found.items())} on {gpu}{processor()}, {os.cpu_count()} cores; "
        f"load {load:.1f} at start"
    )
    print_line("row", "ours", "+-%", "JAX", "+-%", "ratio", "aim", "")
    figures, failures = [], 0
    for row in CUDA_ROWS if o.platform == "cuda" else ROWS:
        if not any(text in row.title for text in o.rows.split(",")):
            continue
        if row.row in TRAINING and (lacking := [p for p in PACKAGES if p not in found]):
            print(f"{row.title:<{WIDTH}}  SKIPPED: {o.python} has no {' and no '.join(lacking)}", flush=True)
            continue
        try:
            new = measure(row, o.bench, o)
        except Failure as failure:
            failures += 1
            print(f"{row.title:<{WIDTH}}  FAILED: {failure}", flush=True)
            continue
        for f in new:
            print_figure(f)
        figures += new
    missed = [f.title.strip() for f in figures if f.met() is False]
    print(f"{len(figures)} figures, {len(missed)} missed their aim, {failures} rows failed")
    if o.json:
        Path(o.json).write_text(json.dumps([as_json(f) for f in figures], indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
