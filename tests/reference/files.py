"""Files as NumPy and safetensors write them: tests/data/files/, with what is in them in files.json; and checkpoint/, a checkpoint
as checkpoints.h describes it, of two processes.

    python3 -m venv v && v/bin/pip install numpy==2.4.6 ml_dtypes==0.6.0 safetensors==0.8.0
    v/bin/python tests/reference/files.py           writes the files
    v/bin/python tests/reference/files.py FOLDER    reads what the test "files: what Python reads" left in FOLDER
"""
import json
import pathlib
import sys
import warnings
import zlib

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

PATH = pathlib.Path(__file__).parents[1] / "data" / "files"
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64"]


def dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def values(name, shape):
    """Bits of all kinds: extremes, fractions, NaN."""
    n = int(np.prod(shape))
    if name == "bool":
        return (np.arange(n) % 3 == 0).reshape(shape)
    if "int" in name:
        info = np.iinfo(name)
        return np.array([info.min, info.max, *range(n)][:n], name).reshape(shape)
    return np.array([-0.0, np.inf, np.nan, 1e-3, *(k + 0.25 for k in range(n))][:n]).astype(dtype(name)).reshape(shape)


def described(x):
    """dtype, shape and the elements' bytes, row-major, little-endian, as hexadecimal digits."""
    native = np.ascontiguousarray(x).reshape(x.shape)
    if native.dtype.byteorder == ">":
        native = native.astype(native.dtype.newbyteorder("<"))
    return {"dtype": native.dtype.name, "shape": list(x.shape), "bytes": native.tobytes().hex()}


def npy_files():
    for name in DTYPES:
        yield f"{name}.npy", values(name, (2, 3)), (1, 0)
    for name in ("int16", "uint64", "float16", "float32", "float64"):
        x = values(name, (2, 3))
        yield f"big_{name}.npy", x.astype(x.dtype.newbyteorder(">")), (1, 0)
    for shape in ((), (1,), (0,), (5, 0, 3), (2, 3, 4), (1, 1, 1, 1, 1, 2)):
        yield "shape_" + "_".join(map(str, shape)) + ".npy", values("float32", shape), (1, 0)
    yield "fortran_2.npy", np.asfortranarray(values("int32", (3, 5))), (1, 0)
    yield "fortran_3.npy", np.asfortranarray(values("float64", (2, 3, 4))), (1, 0)
    yield "fortran_bool.npy", np.asfortranarray(values("bool", (4, 3))), (1, 0)
    yield "fortran_big.npy", np.asfortranarray(values("int32", (3, 5)).astype(">i4")), (1, 0)
    for version in ((2, 0), (3, 0)):
        yield f"version_{version[0]}.npy", values("float32", (2, 3)), version


def write_checkpoint(folder):
    folder.mkdir(parents=True, exist_ok=True)
    weight = np.arange(6, dtype="float32").reshape(2, 3) + 0.25
    arrays = {"weight": [weight[:, :2], weight[:, 2:]], "z": [np.array([1 + 2j, 3 - 4j, 0.5j], "complex64")],
              "one": [np.float64(2.5)], "none": []}
    types = {"weight": ("float32", [2, 3]), "z": ("complex64", [3]), "one": ("float64", []), "none": ("int8", [0, 4])}
    index = {"format": "shardarray", "version": 1, "step": 7, "arrays": {},
             "values": {"__tree__": "1", "epoch": "3", "rate": "0.5", "text": "so far"}}
    files = [{}, {}]
    for name, pieces in arrays.items():
        listed, column = [], 0
        for process, piece in enumerate(map(np.ascontiguousarray, pieces)):
            shape = [] if name == "one" else list(piece.shape)
            start = [0] * (len(shape) - 1) + [column] if shape else []
            key = f"{name}[{','.join(map(str, start))}]"
            floats = piece.view("float32").reshape(*piece.shape, 2) if piece.dtype.kind == "c" else piece.reshape(shape)
            files[process][key] = floats
            listed.append({"file": f"process_{process}_of_2.safetensors", "key": key, "start": start, "shape": shape,
                           "crc32": [zlib.crc32(piece.tobytes())]})
            column += shape[-1] if shape else 0
        index["arrays"][name] = {"dtype": types[name][0], "shape": types[name][1], "pieces": listed}
    for process, file in enumerate(files):
        safetensors.numpy.save_file(file, folder / f"process_{process}_of_2.safetensors")
    text = json.dumps(index)[1:]
    (folder / "shardarray.index.json").write_text('{"crc32":"%08x",' % zlib.crc32(text.encode()) + text)


def write():
    PATH.mkdir(exist_ok=True)
    write_checkpoint(PATH / "checkpoint" / "step_00000007")
    listed = {}
    warnings.simplefilter("ignore")  # of versions 2.0 and 3.0
    for name, x, version in npy_files():
        with open(PATH / name, "wb") as file:
            np.lib.format.write_array(file, x, version=version)
        listed[name] = {"": described(x)}
    arrays = {name: values(name, (3, 2)) for name in DTYPES} | {"scalar": np.float32(2.5), "empty": np.zeros((0, 4))}
    np.savez(PATH / "stored.npz", **arrays)
    listed["stored.npz"] = {k: described(np.asarray(v)) for k, v in arrays.items()}
    arrays = {"x": np.arange(3000, dtype="int32").reshape(30, 100), "a/b": np.asfortranarray(values("float32", (4, 5))),
              "gr\u00fcn": values("bool", (7,))}
    np.savez_compressed(PATH / "deflated.npz", **arrays)
    listed["deflated.npz"] = {k: described(v) for k, v in arrays.items()}
    np.savez(PATH / "none.npz")
    listed["none.npz"] = {}
    arrays = {f"layer.{name}": values(name, (2, 2)) for name in DTYPES}
    arrays |= {"scalar": np.array(7, "int64"), "empty": np.zeros((0, 3), "float16"), "gr\u00fcn": values("uint8", (3,))}
    safetensors.numpy.save_file(arrays, PATH / "all.safetensors", {"format": "np", "note": "a \"text\"\n"})
    listed["all.safetensors"] = {k: described(v) for k, v in arrays.items()}
    safetensors.numpy.save_file({}, PATH / "none.safetensors")
    listed["none.safetensors"] = {}
    versions = {m.__name__: m.__version__ for m in (np, ml_dtypes, safetensors)}
    (PATH / "files.json").write_text(json.dumps({"versions": versions, "files": listed}, indent=0))
    print(versions, len(listed), "files")


def check(x, k, name, where):
    """Array k of the test: values(name, [2, 3, 4]) of the test's own rule, the element's number."""
    wanted = (np.arange(24) % 2 == 1 if name == "bool" else np.arange(24)).astype(dtype(name)).reshape(2, 3, 4)
    x = x.view(ml_dtypes.bfloat16) if x.dtype == np.dtype("V2") else x
    assert x.dtype == dtype(name) and x.shape == (2, 3, 4) and (x == wanted).all(), (where, name, k)


def read(folder):
    for k, name in enumerate(DTYPES):
        check(np.load(folder / f"{name}.npy"), k, name, "npy")
    for file in ("stored.npz", "deflated.npz"):
        with np.load(folder / file) as arrays:
            assert sorted(arrays.files) == sorted(DTYPES + ["gr\u00fcn"]), arrays.files
            for k, name in enumerate(DTYPES):
                check(arrays[name], k, name, file)
            assert arrays["gr\u00fcn"] == 2.5
    arrays = safetensors.numpy.load_file(folder / "all.safetensors")
    with safetensors.safe_open(folder / "all.safetensors", "np") as file:
        assert file.metadata() == {"note": "a \"text\"\n", "gr\u00fcn": "\u2713"}, file.metadata()
    assert sorted(arrays) == sorted(DTYPES + ["gr\u00fcn"])
    for k, name in enumerate(DTYPES):
        check(arrays[name], k, name, "safetensors")
    print("all that was written is what Python reads")


if len(sys.argv) > 1:
    read(pathlib.Path(sys.argv[1]))
else:
    write()
