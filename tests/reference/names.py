"""The public names of jax, its modules for arrays, trees, shardings and SciPy's functions, of equinox, equinox.nn and optax, of each of
which docs/jax-and-equinox-names.md says what stands for it: writes tests/data/names.json. Of jax.scipy.stats the distributions.

    python3 -m venv v && v/bin/pip install jax==0.10.2 equinox==0.13.8 optax==0.2.8 && v/bin/python tests/reference/names.py
"""
import importlib
import json
import pathlib
import types
import warnings
from importlib import metadata

PATH = pathlib.Path(__file__).parents[1] / "data" / "names.json"
MODULES = ("jax", "jax.numpy", "jax.numpy.fft", "jax.numpy.linalg", "jax.lax", "jax.lax.linalg", "jax.nn",
           "jax.nn.initializers", "jax.random", "jax.sharding", "jax.tree", "jax.tree_util", "jax.image", "jax.ops",
           "jax.debug", "jax.dlpack", "jax.flatten_util", "jax.profiler", "jax.scipy.cluster.vq", "jax.scipy.fft",
           "jax.scipy.integrate", "jax.scipy.interpolate", "jax.scipy.linalg", "jax.scipy.ndimage", "jax.scipy.optimize",
           "jax.scipy.signal", "jax.scipy.sparse.linalg", "jax.scipy.spatial.transform", "jax.scipy.special",
           "equinox", "equinox.nn", "optax", "optax.losses")


def is_asked_for(module, name):
    """Neither a module nor a primitive (`add_p`), nor what an optimizer keeps (`EmaState`)."""
    if name.startswith("_") or name.endswith(("_p", "State")):
        return False
    return not isinstance(getattr(module, name, None), types.ModuleType)


names = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for path in MODULES:
        module = importlib.import_module(path)
        every = getattr(module, "__all__", None) or dir(module)
        names[path] = sorted({n for n in every if is_asked_for(module, n)})
    stats = importlib.import_module("jax.scipy.stats")
    names["jax.scipy.stats"] = sorted(n for n in dir(stats) if not n.startswith("_"))
versions = ", ".join(f"{n} {metadata.version(n)}" for n in ("jax", "equinox", "optax"))
PATH.write_text(json.dumps({"versions": versions, "names": names}, indent=1) + "\n")
