"""The rows of `./dev bench peers`, and their aims."""

from dataclasses import dataclass, field

TRAINING = ("seed_step", "adam", "adam_of_leaves", "mlp", "transformer")  # rows for which JAX's side needs more packages than JAX
TORCH_ROWS = (
    "dispatch_eager",
    "matmul",
    "gelu",
    "sum",
    "softmax",
    "layer_norm",
    "transpose",
    "sort",
    "argsort",
    "top_k",
    "cumsum",
    "gather",
    "scatter",
    "solve",
    "cholesky",
    "fft",
    "cholesky_of_one",
    "attention",
    "gru",
    "conv",
    "adam",
    "adam_of_leaves",
    "mlp",
    "transformer",
)


@dataclass
class Row:
    title: str
    row: str
    size: int = 0
    devices: int = 1
    cold: bool = False  # the first call of a process is the figure
    jax_row: str = ""  # if JAX's row has another name
    environment: dict = field(default_factory=dict)  # of our side
    ratio: float = 0  # aims: ours / JAX's,
    torch_ratio: float = 0  # ours / torch's,
    seconds: float = 0  # or our time
    part_ratio: float = 0  # against JAX, for each part of a row that has several; `ratio` is for the sum
    precision: str = "f32"  # of products
    busy: bool = False  # while two busy processes per core are running

    def aims(self):
        """Peer -> the ratio aimed at."""
        return {peer: aim for peer, aim in (("jax", self.ratio), ("torch", self.torch_ratio)) if aim}

    def peers(self, among):
        """Those that have this row."""
        return [p for p in among if p != "torch" or self.in_torch()]

    def in_torch(self):
        return self.row in TORCH_ROWS and self.devices == 1


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
    Row("adam of 200 leaves of 64, donated", "adam_of_leaves", 200, ratio=1),
    Row("gelu 1e5", "gelu", 10**5, ratio=0.7),
    Row("gelu 1e6", "gelu", 10**6, ratio=0.7),
    Row("gelu 1e7", "gelu", 10**7, ratio=0.7),
    Row("sum 1e5", "sum", 10**5, ratio=0.2),
    Row("sum 1e7", "sum", 10**7, ratio=0.95),
    Row("softmax 4096 x 1024", "softmax", 4096, ratio=0.35),
    Row("softmax 16 x 262144", "softmax", 16, ratio=0.35),
    Row("layer norm 4096 x 1024", "layer_norm", 4096),
    Row("transpose 4096 x 1024", "transpose", 4096, ratio=0.5),
    Row("sort 1e6", "sort", 10**6, ratio=1),
    Row("argsort 1e6", "argsort", 10**6, ratio=1),
    Row("64 largest of 1e6", "top_k", 10**6, ratio=1),
    Row("cumsum 1e7", "cumsum", 10**7, ratio=1),
    Row("gather of 1e5 rows of 64", "gather", 10**5, ratio=1),
    Row("scatter of 1e5 rows of 64", "scatter", 10**5, ratio=1),
    Row("10,000 rows of 32 added to in a loop", "rows_in_loop", 10**4, ratio=1),
    Row("1e6 numbers taken", "numbers_taken", 10**6, ratio=1),
    Row("1e6 numbers into 1,000 sums", "numbers_added", 10**6, ratio=1),
    Row("10,000 steps on a number, one of two each", "number_steps", 10**4, ratio=1),
    Row("10,000 numbers written in a loop", "numbers_written", 10**4, ratio=1),
    Row("2e5 vectors of 3 less one", "vectors_of_3", 2 * 10**5, ratio=1),
    Row("100 updates of a row of 4000 x 1000", "row_updates", 4000, ratio=1),
    Row("int32 product 256^3", "integer_product", 256, ratio=1),
    Row("solve 1024, 64 sides", "solve", 1024, ratio=1),
    Row("cholesky of 256 x 64 x 64", "cholesky", 256, ratio=1),
    Row("rfft and back of 1e6", "fft", 10**6, ratio=1),
    Row("rfft and back of 1000 x 1000", "fft", 1000, ratio=1),
    Row("rfft and back of 10000 x 64", "fft", 64, ratio=1),
    Row("cholesky of 1024", "cholesky_of_one", 1024, ratio=1),
    *[
        Row(f"attention of 8 heads of {n} x 64", "attention", n, ratio=1, torch_ratio=1.2)
        for n in (64, 512, 4096)
    ],
    Row("GRU, 200 steps of 32 x 256", "gru", 200, ratio=1),
    Row("GRU, 10,000 steps of 32", "gru", 10**4, ratio=1),
    Row("gradients of an LSTM, 200 steps", "lstm", 200, ratio=1),
    Row("gradients of an LSTM, 200 steps, every core busy", "lstm", 200, ratio=1, busy=True),
    Row("conv 3x3 of 32 x 64 x 32 x 32 to 64", "conv", 32, ratio=1, torch_ratio=1.2),
    Row("gradients of that conv", "conv_gradients", 32, ratio=1),
    Row("random bits 1e7", "random_bits", 10**7, ratio=1 / 8),
    Row("random normal 1e7", "random_normal", 10**7, ratio=1 / 8),
    Row("MLP 8 x 512 step, batch 256, SGD", "mlp", ratio=0.9, torch_ratio=0.9),
    Row("transformer step", "transformer"),
    Row("cold seed step, 8 devices", "seed_step", devices=8, cold=True, seconds=60e-3),
    Row("cold seed step, 1 device", "seed_step", cold=True, seconds=60e-3),
    Row("cold chain of 300", "chain", 300, cold=True, ratio=0.1),
    Row("cold chain of 3,000", "chain", 3000, cold=True, ratio=0.1),
]


def precisions(title, row, size=0, devices=1, names=("f32", "tf32"), **aims):
    return [Row(f"{title}, {name}", row, size, devices, precision=name, **aims) for name in names]


# Aims against JAX only; those against the GPU itself are in bench/device_aims.h.
ONE_KERNEL, GRAPH, FILTER_JIT, LARGE_STEP = 0.25, 0.5, 0.1, 1
ALL = ("f32", "tf32", "bf16")
CLUSTER_BATCH, GRAPH_BATCH = 512, 4096  # whose step is a cluster's kernel, or a graph (bench/document_step.h)
CUDA_ROWS = [
    Row("seed step, 8 devices", "seed_step", devices=8, ratio=ONE_KERNEL),
    Row("seed step, 8 devices, as a cluster's kernel", "seed_step", CLUSTER_BATCH, devices=8, ratio=ONE_KERNEL),
    Row("seed step, 8 devices, as a graph", "seed_step", GRAPH_BATCH, devices=8, ratio=GRAPH),
    Row(
        "seed step, 8 devices, filter_jit",
        "seed_step",
        devices=8,
        jax_row="seed_step_filter_jit",
        ratio=FILTER_JIT,
    ),
    Row("seed step, 1 device", "seed_step", ratio=ONE_KERNEL),
    Row("seed step, 1 device, filter_jit", "seed_step", jax_row="seed_step_filter_jit", ratio=FILTER_JIT),
    Row("dispatch of jit", "dispatch_jit"),
    Row("dispatch, eager", "dispatch_eager"),
    *precisions("matmul 256^3", "matmul", 256, names=ALL),
    *precisions("matmul 1024^3", "matmul", 1024, names=ALL),
    *precisions("matmul 4096^3", "matmul", 4096, names=ALL),
    *precisions("matmul 8192^3", "matmul", 8192, names=ALL),
    *precisions("layouts of 4096^3, 8 devices", "layouts", 4096, devices=8, names=ALL),
    Row("adam 1e8, donated", "adam", 10**8),
    Row("gelu 1e6", "gelu", 10**6),
    Row("gelu 1e8", "gelu", 10**8),
    Row("sum 1e6", "sum", 10**6),
    Row("sum 1e8", "sum", 10**8),
    Row("softmax 65,536 x 1024", "softmax", 65536),
    Row("layer norm 65,536 x 1024", "layer_norm", 65536),
    Row("transpose 65,536 x 1024", "transpose", 65536),
    Row("sort 1e6", "sort", 10**6),
    Row("conv 3x3 of 256 x 64 x 32 x 32 to 64", "conv", 256),
    Row("random bits 1e8", "random_bits", 10**8),
    Row("random normal 1e8", "random_normal", 10**8),
    *precisions("MLP 8 x 512 step, batch 256, SGD", "mlp", 512, names=ALL),
    *precisions("MLP 8 x 4096 step, batch 2048, SGD", "mlp", 4096, names=ALL, ratio=LARGE_STEP),
    *precisions("transformer step, small", "transformer"),
    *precisions("transformer step, width 1024, 8 x 512 words", "transformer", 1024, ratio=LARGE_STEP),
    Row("cold seed step, 8 devices", "seed_step", devices=8, cold=True),
    Row("cold seed step, 1 device", "seed_step", cold=True),
    Row("cold chain of 300", "chain", 300, cold=True),
]
