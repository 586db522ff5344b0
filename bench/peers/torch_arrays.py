"""The rows of bench/peers/arrays.h, in torch's own functions where it has one."""

import torch
import torch.nn.functional as F
from torch_work import DEVICE, matrix, normal, result_of, uniform


def dispatch_eager(_, wrap):
    return result_of(wrap(lambda x: x + 1.0), torch.arange(8, dtype=torch.float32, device=DEVICE))


def matmul(n, wrap):
    return result_of(wrap(torch.matmul), matrix(1, (n, n)), matrix(2, (n, n)))


def gelu(n, wrap):
    return result_of(wrap(lambda x: F.gelu(x, approximate="tanh")), normal(1, (n,)))


def total(n, wrap):
    return result_of(wrap(torch.sum), uniform(1, (n,)))


def softmax(rows, wrap):
    return result_of(wrap(lambda x: torch.softmax(x, -1)), normal(1, (rows, 2**22 // rows)))


def layer_norm(rows, wrap):
    f = wrap(lambda x, scale, shift: F.layer_norm(x, (1024,), scale, shift, eps=1e-5))
    return result_of(f, normal(1, (rows, 1024)), normal(2, (1024,)), normal(3, (1024,)))


def transpose(rows, wrap):
    return result_of(wrap(lambda x: x.T.contiguous()), normal(1, (rows, 1024)))


def sort(n, wrap):
    return result_of(wrap(lambda x: torch.sort(x).values), normal(1, (n,)))


def argsort(n, wrap):
    return result_of(wrap(lambda x: torch.argsort(x, stable=True)), normal(1, (n,)))


def top_k(n, wrap):
    return result_of(wrap(lambda x: torch.topk(x, 64).values), normal(1, (n,)))


def cumsum(n, wrap):
    return result_of(wrap(lambda x: torch.cumsum(x, 0)), normal(1, (n,)))


def places(n):
    return (uniform(2, (n,)) * n).int()


def gather(n, wrap):
    return result_of(wrap(lambda x, at: torch.index_select(x, 0, at)), normal(1, (n, 64)), places(n))


def scatter(n, wrap):
    f = wrap(lambda x, at: torch.zeros(n, 64, device=DEVICE).index_add_(0, at, x))
    return result_of(f, normal(1, (n, 64)), places(n))


def solve(n, wrap):
    f = wrap(lambda a, b: torch.linalg.solve(a + 2 * n**0.5 * torch.eye(n, device=DEVICE), b))
    return result_of(f, normal(1, (n, n)), normal(2, (n, 64)))


def fft(n, wrap):
    shape = {1000: (1000, 1000), 64: (10_000, 64)}.get(n, (n,))
    return result_of(wrap(lambda x: torch.fft.irfft(torch.fft.rfft(x))), normal(1, shape))


def cholesky(matrices, wrap):
    f = wrap(lambda a: torch.linalg.cholesky(a + a.mT + 64 * torch.eye(64, device=DEVICE)))
    return result_of(f, normal(1, (matrices, 64, 64)))


def cholesky_of_one(n, wrap):
    f = wrap(lambda a: torch.linalg.cholesky(a + a.T + 4 * n**0.5 * torch.eye(n, device=DEVICE)))
    return result_of(f, normal(1, (n, n)))


def attention(n, wrap):
    def f(q, k, v):
        heads = (x.transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(*heads).transpose(1, 2)

    shape = (1, n, 8, 64)
    return result_of(wrap(f), normal(1, shape), normal(2, shape), normal(3, shape))


def gru(n, wrap):
    batch, inputs, hidden = (1, 32, 32) if n >= 10_000 else (32, 128, 256)
    cell = torch.nn.GRU(inputs, hidden, bias=False, device=DEVICE)
    with torch.no_grad():
        cell.weight_ih_l0.copy_(normal(2, (inputs, 3 * hidden)).T / hidden**0.5)
        cell.weight_hh_l0.copy_(normal(3, (hidden, 3 * hidden)).T / hidden**0.5)
    cell.requires_grad_(False)
    return result_of(wrap(lambda x: cell(x)[1][0]), normal(1, (n, batch, inputs)))


def conv(n, wrap):
    f = wrap(lambda x, kernel: F.conv2d(x, kernel, padding=1))
    return result_of(f, normal(1, (n, 64, 32, 32)), normal(2, (64, 64, 3, 3)))


ROWS = {
    "dispatch_eager": dispatch_eager,
    "matmul": matmul,
    "gelu": gelu,
    "sum": total,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "transpose": transpose,
    "sort": sort,
    "argsort": argsort,
    "top_k": top_k,
    "cumsum": cumsum,
    "gather": gather,
    "scatter": scatter,
    "solve": solve,
    "cholesky": cholesky,
    "fft": fft,
    "cholesky_of_one": cholesky_of_one,
    "attention": attention,
    "gru": gru,
    "conv": conv,
}
