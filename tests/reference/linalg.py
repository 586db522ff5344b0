"""Linear algebra as JAX computes it, with gradients: writes tests/data/linalg.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 scipy && v/bin/python tests/reference/linalg.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import linalg_functions
from linalg_functions import L, definite, heavy, packed, squared_sizes

PATH = pathlib.Path(__file__).parents[1] / "data" / "linalg.json"
jax.config.update("jax_enable_x64", True)
random = np.random.default_rng(31)


def numbers(shape, dtype):
    return jnp.asarray(random.uniform(-1, 1, shape), dtype)


FUNCTIONS = linalg_functions.FUNCTIONS | {
    "triangular_solve right": lambda a, b: (jax.lax.linalg.triangular_solve(a, b, transpose_a=True),),
    "svd": lambda a: (lambda u, s, vh: (s, squared_sizes(u), squared_sizes(vh)))(*L.svd(a, full_matrices=False)),
}


def case(name, *operands, gradient=True):
    f = FUNCTIONS[name]
    out = f(*operands)
    c = {"name": name, "in": [packed(x) for x in operands], "out": [packed(y) for y in out]}
    if not gradient:
        return c
    weights = [jnp.asarray(random.integers(-3, 4, y.shape), y.dtype) for y in out]

    def loss(*x):
        return sum((y * w).sum() for y, w in zip(f(*x), weights) if jnp.issubdtype(y.dtype, jnp.floating))

    c["weights"] = [packed(w) for w in weights]
    c["gradient"] = [packed(g) for g in jax.grad(loss, argnums=tuple(range(len(operands))))(*operands)]
    return c


def cases():
    for t, batches in (("float32", ((),)), ("float64", ((2, 2),))):
        for batch in batches:
            square = numbers((*batch, 5, 5), t)
            for name in ("cholesky", "cholesky lower", "eigh", "eigvalsh", "pinv hermitian"):
                yield case(name, definite(square))
            yield case("eigh upper", definite(square), gradient=False)
            for name in ("lu", "inv", "det", "slogdet", "qr", "svd", "svdvals", "pinv"):
                yield case(name, heavy(square))
            yield case("expm", square)
            yield case("solve", heavy(square), numbers((*batch, 5, 2), t))
            yield case("solve", heavy(square), numbers((5,), t))
            yield case("triangular_solve", heavy(square), numbers((*batch, 5, 2), t))
            yield case("triangular_solve right", heavy(square), numbers((*batch, 2, 5), t))
            yield case("solve_triangular", heavy(square), numbers((*batch, 5, 2), t))
            for m, n in ((6, 3), (3, 6)):
                x = heavy(numbers((*batch, m, n), t))
                for name in ("lu", "qr", "qr complete", "svd", "pinv"):
                    yield case(name, x)
                yield case("matrix_rank", x, gradient=False)
                yield case("matrix_rank tol", x, gradient=False)
        for n in (1, 2, 3, 4):
            yield case("det", numbers((n, n), t))
            yield case("slogdet", numbers((n, n), t))
        for m, n in ((6, 3), (3, 6)):
            yield case("lstsq", heavy(numbers((m, n), t)), numbers((m, 2) if m > n else (m,), t))


def edges():
    """Singular, indefinite and infinite matrices, in float64."""
    nan = np.nan
    low = jnp.asarray(random.uniform(-1, 1, (5, 2)))
    one_rank_less = heavy(jnp.asarray(random.uniform(-1, 1, (5, 5)))).at[4].set(0.0)
    two_ranks = low @ low.T
    yield case("cholesky", jnp.array([[1.0, 2.0], [2.0, 1.0]]), gradient=False)
    yield case("cholesky", jnp.array([[4.0, 2, 0], [2, 5, 0], [0, 0, -1]]), gradient=False)
    yield case("cholesky", jnp.array([[4.0, 2, 0], [2, 5, 0], [0, 0, nan]]), gradient=False)
    for x in (one_rank_less, jnp.zeros((4, 4)), jnp.zeros((1, 1))):
        yield case("det", x)
    for x in (one_rank_less, jnp.zeros((3, 3)), jnp.zeros((1, 1)), jnp.zeros((2, 2)), jnp.full((3, 3), nan)):
        yield case("slogdet", x, gradient=False)
    for x in (two_ranks, jnp.zeros((3, 3)), one_rank_less):
        yield case("matrix_rank", x, gradient=False)
        yield case("pinv", x, gradient=False)
    yield case("lstsq", two_ranks, jnp.asarray(random.uniform(-1, 1, (5, 2))), gradient=False)
    for name in ("eigh", "svd"):
        yield case(name, jnp.array([[4.0, 2, 0], [2, 5, nan], [0, nan, 1]]), gradient=False)
    for name in ("solve_triangular", "triangular_solve"):
        yield case(name, jnp.array([[0.0, 0], [1, 2]]), jnp.ones((2, 1)), gradient=False)
    for shape in ((2, 0, 0),):
        for name in ("cholesky", "lu", "inv", "det", "slogdet", "qr", "eigh", "eigvalsh", "svd", "pinv"):
            yield case(name, jnp.zeros(shape), gradient=False)
    for shape in ((0, 3), (3, 0)):
        for name in ("lu", "qr", "svd", "pinv"):
            yield case(name, jnp.zeros(shape), gradient=False)


def conditions():
    for t, batch in (("float32", ()), ("float64", (2,))):
        yield case("cond", heavy(numbers((*batch, 5, 5), t)))
        for m, n in ((6, 3), (3, 6)):
            yield case("cond of sides", heavy(numbers((*batch, m, n), t)))


def dtypes():
    for t in ("bool", "int8", "int32", "int64", "uint64"):
        for name in ("cholesky", "inv", "det", "svdvals"):
            with jax.enable_x64(t in ("int64", "uint64", "float64")):
                yield {"name": name, "dtype": t, "result": FUNCTIONS[name](jnp.eye(4, dtype=t))[0].dtype.name}


every = {"jax": jax.__version__, "cases": list(cases()), "edges": list(edges()), "dtypes": list(dtypes())}
every["cases"] += conditions()  # behind the others, whose random numbers stay
PATH.write_text(json.dumps(every, separators=(",", ":")) + "\n")
