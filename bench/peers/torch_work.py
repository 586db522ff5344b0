"""Works and inputs of torch's rows. A row is made for a size and for `wrap`, which its functions pass: `eager` or
torch.compile."""

import math

import jax_numbers
import torch
from side import Work

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # run.py hides GPUs from rows of CPUs
half_products = False  # the row's matrices are bfloat16


wait = torch.cuda.synchronize if DEVICE == "cuda" else lambda: None


def eager(f):
    return f


def figures_of(digest, x):
    return digest(x.detach().double().cpu())


def result_of(f, *inputs):
    """f(*inputs), a tensor."""

    def call():
        result = f(*inputs)
        wait()
        return result

    return [Work("", call, lambda digest: [figures_of(digest, call())])]


def tensor(array):
    return torch.tensor(array, device=DEVICE)


def normal(seed, shape):
    numbers = jax_numbers.between_minus_one_and_one(jax_numbers.key_of(seed), shape)
    return math.sqrt(2) * torch.special.erfinv(tensor(numbers))


def matrix(seed, shape):
    """What products are made of."""
    x = normal(seed, shape)
    return x.bfloat16() if half_products else x


def uniform(seed, shape):
    return tensor(jax_numbers.uniform(jax_numbers.key_of(seed), shape))
