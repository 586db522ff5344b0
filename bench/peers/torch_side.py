"""PyTorch's side of `./dev bench peers`: runs one row and prints its figures as JSON, each work as torch runs it by
itself (variant `eager`) and after torch.compile (`compiled`), where that goes. PEERS_THREADS: how many threads it gets.
"""

import os
from functools import partial

import side
import torch
import torch_arrays
import torch_training
import torch_work

ROWS = {**torch_arrays.ROWS, **torch_training.ROWS}
EAGER_ROWS = ("dispatch_eager",)


def works_of(o):
    if "PEERS_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["PEERS_THREADS"]))
    torch.set_float32_matmul_precision("high" if o.precision == "tf32" else "highest")
    torch_work.half_products = o.precision == "bf16"
    works = ROWS[o.row](o.size, torch_work.eager)
    for w in works:
        w.variant = "eager"
    if o.row in EAGER_ROWS:
        return works
    compiled = ROWS[o.row](o.size, partial(torch.compile, dynamic=False))
    for w in compiled:
        w.variant, w.optional = "compiled", True
    return works + compiled


side.main(works_of)
