"""Stands for bench_peers, and for a Python with peers: STAND_IN is JSON of `packages` (name -> version) and of `sides`
(ours, jax, torch -> a row's results)."""

import json
import os
import sys
from pathlib import Path

said, arguments = json.loads(os.environ["STAND_IN"]), sys.argv[1:]
if arguments == ["--threads"]:
    print(5)
elif arguments[0] == "-c":
    print("\n".join(f"{p} {v}" for p, v in said["packages"].items() if p in arguments[2:]))
else:
    side = Path(arguments[1]).stem.removesuffix("_side") if arguments[0] == "-B" else "ours"
    if side == "torch":
        assert os.environ["PEERS_THREADS"] == "5" and os.environ["CUDA_VISIBLE_DEVICES"] == ""
    results = said["sides"][side]
    if isinstance(results, str):
        sys.exit(results)
    print(json.dumps(results))
