"""PyTorch's side of `./dev bench peers`: runs one row and prints its figures as JSON, each work as torch runs it by
itself (variant `eager`) and after torch.compile (`compiled`), where that goes. PEERS_THREADS: how many threads it gets.
"""

import os
import sys
from functools import partial

# Libraries of GPUs may be empty stand-ins here (environment.py): what is in them is looked up when it is called, never.
sys.setdlopenflags(os.RTLD_LAZY)

import side  # noqa: E402
import torch  # noqa: E402
import torch_arrays  # noqa: E402
import torch_training  # noqa: E402
import torch_work  # noqa: E402

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
