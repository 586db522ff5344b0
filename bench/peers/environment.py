"""The Python of the peers: build/peers-python, made here, or one that the user names."""

import os
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent.parent / "build"
FOLDER = BUILD / "peers-python"
NAMES = {"jax": "JAX", "torch": "torch"}
PACKAGES = {"jax": ["jax", "equinox", "optax", "numpy"], "torch": ["torch", "numpy"]}
NEEDED = {"jax": ["jax", "numpy"], "torch": ["torch", "numpy"]}


def peers_named(text):
    """The peers of an option like `jax,torch`; ValueError for others."""
    peers = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in peers:
        if name not in NAMES:
            raise ValueError(
                f"peers: there is no peer '{name}'. The peers are {' and '.join(NAMES)}. "
                f"Name some of them with commas between: --peers {','.join(NAMES)}"
            )
    return peers


def prepare(peers, update):
    """The environment with the packages of these peers; its Python."""
    python = FOLDER / "bin" / "python"
    for peer in peers:
        installed = FOLDER / f"installed-{peer}"
        if installed.exists() and not update:
            continue
        print(f"installing {', '.join(PACKAGES[peer])} in build/{FOLDER.name}", flush=True)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
        output([python, "-m", "pip", "install", "--quiet", "--upgrade", *PACKAGES[peer]])
        installed.touch()
    return python


def output(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it gives no reason"])[-1])
    return done.stdout.strip()


def versions(python, peers):
    """Package -> version, of those that the Python has."""
    code = """
import importlib.metadata as m, sys
for p in sys.argv[1:]:
    try: print(p, m.version(p))
    except m.PackageNotFoundError: pass"""
    packages = dict.fromkeys(p for peer in peers for p in PACKAGES[peer])
    try:
        found = dict(line.split() for line in output([python, "-c", code, *packages]).splitlines())
    except (OSError, RuntimeError) as e:
        sys.exit(f"peers: {python} is no Python that runs: {e}")
    for peer in peers:
        if lacking := [p for p in NEEDED[peer] if p not in found]:
            sys.exit(
                f"peers: {python} has no {' and no '.join(lacking)}. The rows are compared with {NAMES[peer]}. "
                "Name another Python."
            )
    return found


def jax_variables(platform):
    """Of JAX's processes, but for the number of devices."""
    # The last line of their output is the error.
    common = {"JAX_PLATFORMS": platform, "JAX_TRACEBACK_FILTERING": "off"}
    return {**common, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if platform == "cuda" else common


def torch_variables(platform, threads):
    """Of torch's processes. The compiled functions of earlier ones stay in build/, and one process compiles at a time."""
    common = {
        "PEERS_THREADS": str(threads),
        "TORCHINDUCTOR_CACHE_DIR": str(BUILD / "peers-torch"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    return common if platform == "cuda" else {**common, "CUDA_VISIBLE_DEVICES": ""}


def device_name(python, peer, platform):
    """Of the GPU that the peer finds."""
    if peer == "jax":
        code, variables = "import jax; print(jax.devices()[0].device_kind)", jax_variables(platform)
    else:
        code, variables = "import torch; print(torch.cuda.get_device_name())", {}
    try:
        return output([python, "-c", code], variables).splitlines()[-1]
    except RuntimeError as e:
        sys.exit(f"peers: {NAMES[peer]} of {python} has no device of '{platform}': {e}")
