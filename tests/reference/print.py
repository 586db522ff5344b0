"""tests/data/print.json: numpy's text of arrays. The arrays are those in the file, with the print options that are not the
default, their text is made again and numpy's version written down.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6
    venv/bin/python tests/reference/print.py
"""
import json
import pathlib

import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "data" / "print.json"


def decode(case):
    dtype = np.dtype(case["dtype"])
    if "arange" in case:
        values = np.arange(np.prod(case["shape"], dtype=int))
    elif dtype.kind == "f":
        values = [float.fromhex(v) for v in case["data"]]
    else:
        values = case["data"]
    return np.array(values, dtype).reshape(case["shape"])


def drawn():
    """Arrays of few elements that need exponents, with denormals, zeros and what is not finite; also within short lines."""
    rng = np.random.default_rng(1)
    for k in range(300):
        dtype = np.dtype(["float16", "float32", "float64"][k % 3])
        least, most = {2: (-24, 15), 4: (-149, 127), 8: (-1074, 1023)}[dtype.itemsize]
        size = int(rng.integers(1, 7))
        values = rng.uniform(1, 2, size) * 2.0 ** rng.uniform(least, most, size) * rng.choice([-1, 1], size)
        values[rng.random(size) < 0.1] = rng.choice([0, np.inf, -np.inf, np.nan])
        if k % 4 == 0:  # few digits
            values = np.array([float(f"{v:.2e}") for v in values])
        values = values.astype(dtype)
        shape = [size] if k % 5 else [1, size]
        case = {"dtype": dtype.name, "shape": shape, "data": [float(v).hex() for v in values], "drawn": True}
        options = {}
        if k % 7 == 0:
            options["linewidth"] = int(rng.integers(1, 40))
        if k % 6 == 0:
            options["precision"] = int(rng.integers(0, 20))
        if options:
            case["options"] = options
        yield case


cases = [c for c in json.loads(PATH.read_text())["cases"] if not c.get("drawn")] + list(drawn())
for case in cases:
    with np.printoptions(**case.get("options", {})):
        case["text"] = str(decode(case))
source = f"str() of numpy {np.__version__}; floats as hexadecimal text; arange: 0, 1, 2, ... in the shape"
PATH.write_text(json.dumps({"source": source, "cases": cases}, separators=(",", ":")))
print(source)
