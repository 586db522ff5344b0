"""Stands for bench_peers, and for a Python with peers: STAND_IN is JSON of `packages` (name -> version), of `device`,
the GPU that they find, and of `sides` (ours, jax, torch -> a row's results). Appends what it was called with to the
file `calls`."""

import json
import os
import sys
from pathlib import Path

said, arguments = json.loads(os.environ["STAND_IN"]), sys.argv[1:]


def note(side):
    """The call, and the variables that the bench sets."""
    variables = {k: v for k, v in os.environ.items() if k.split("_")[0] in ("SHARDARRAY", "JAX", "XLA")}
    with Path(said["calls"]).open("a") as to:
        to.write(json.dumps({"side": side, "arguments": arguments, "variables": variables}) + "\n")


if arguments == ["--threads"]:
    print(5)
elif arguments[0] == "-c" and "device" in arguments[1]:
    note("device")
    print(said["device"])
elif arguments[0] == "-c":
    print("\n".join(f"{p} {v}" for p, v in said["packages"].items() if p in arguments[2:]))
else:
    side = Path(arguments[1]).stem.removesuffix("_side") if arguments[0] == "-B" else "ours"
    note(side)
    if side == "torch":
        assert os.environ["PEERS_THREADS"] == "5" and os.environ["CUDA_VISIBLE_DEVICES"] == ""
    results = said["sides"][side]
    if isinstance(results, str):
        sys.exit(results)
    print(json.dumps(results))
