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


cases = json.loads(PATH.read_text())["cases"]
for case in cases:
    with np.printoptions(**case.get("options", {})):
        case["text"] = str(decode(case))
source = f"str() of numpy {np.__version__}; floats as hexadecimal text; arange: 0, 1, 2, ... in the shape"
PATH.write_text(json.dumps({"source": source, "cases": cases}, separators=(",", ":")))
print(source)
