"""Linear algebra of complex matrices as JAX computes it, with pullbacks: writes tests/data/linalg_complex.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 scipy && v/bin/python tests/reference/linalg_complex.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jax.scipy.linalg as sl
import numpy as np

import linalg_functions
from linalg_functions import L, definite, heavy, packed, squared_sizes

PATH = pathlib.Path(__file__).parents[1] / "data" / "linalg_complex.json"
jax.config.update("jax_enable_x64", True)
random = np.random.default_rng(47)


def numbers(shape, dtype="complex128"):
    return jnp.asarray(random.uniform(-1, 1, shape) + 1j * random.uniform(-1, 1, shape), dtype)


def svd(a):
    u, s, vh = L.svd(a, full_matrices=False)
    return s, squared_sizes(u), squared_sizes(vh), u[..., :, :2] @ vh[..., :2, :]


FUNCTIONS = linalg_functions.FUNCTIONS | {
    "cholesky upper": lambda a: (L.cholesky(a, upper=True),),
    "triangular_solve adjoint": lambda a, b: (
        jax.lax.linalg.triangular_solve(a, b, transpose_a=True, conjugate_a=True),
    ),
    "triangular_solve conjugate": lambda a, b: (jax.lax.linalg.triangular_solve(a, b, conjugate_a=True),),
    "solve_triangular adjoint": lambda a, b: (sl.solve_triangular(a, b, trans=2, lower=True),),
    "svd": svd,
    "norm": lambda a: (L.norm(a), L.norm(a, axis=-1), L.norm(a, ord=1, axis=-1), L.norm(a, ord=np.inf, axis=0)),
    "matrix_norm": lambda a: tuple(L.matrix_norm(a, ord=o) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
    "matrix_power": lambda a: (L.matrix_power(a, 3), L.matrix_power(a, -2), L.matrix_power(a, 0)),
    "multi_dot": lambda a, b: (L.multi_dot([a, b, a]),),
    "tensorinv": lambda a: (L.tensorinv(a.reshape(2, 3, 6), 2),),
    "convolve": lambda a, b: tuple(jnp.convolve(a, b, m) for m in ("full", "same", "valid")),
    "correlate": lambda a, b: tuple(jnp.correlate(a, b, m) for m in ("full", "same", "valid")),
    "conv": lambda a, b: (jax.lax.conv_general_dilated(a, b, (2,), [(1, 2)], rhs_dilation=(2,)),),
}


def case(name, *operands, gradient=True):
    f = FUNCTIONS[name]
    out, pull = jax.vjp(f, *operands)
    c = {"name": name, "in": [packed(x) for x in operands], "out": [packed(y) for y in out]}
    if not gradient:
        return c
    given = []
    for y in out:
        if jnp.issubdtype(y.dtype, jnp.complexfloating):
            given.append(jnp.asarray(random.integers(-3, 4, y.shape) + 1j * random.integers(-3, 4, y.shape), y.dtype))
        elif jnp.issubdtype(y.dtype, jnp.floating):
            given.append(jnp.asarray(random.integers(-3, 4, y.shape), y.dtype))
        else:
            given.append(np.zeros(y.shape, jax.dtypes.float0))
    c["given"] = [None if g.dtype == jax.dtypes.float0 else packed(g) for g in given]
    c["back"] = [packed(g) for g in pull(tuple(given))]
    return c


def cases():
    for t, batch in (("complex64", ()), ("complex128", (2,))):
        square = numbers((*batch, 5, 5), t)
        for name in ("cholesky", "cholesky upper", "cholesky lower", "eigh", "eigvalsh", "pinv hermitian"):
            yield case(name, definite(square))
        yield case("eigh upper", definite(square), gradient=False)
        for name in ("lu", "inv", "det", "slogdet", "qr", "svd", "svdvals", "pinv"):
            yield case(name, heavy(square))
        yield case("expm", square)
        yield case("solve", heavy(square), numbers((*batch, 5, 2), t))
        yield case("solve", heavy(square), numbers((5,), t))
        yield case("triangular_solve", heavy(square), numbers((*batch, 5, 2), t))
        yield case("triangular_solve adjoint", heavy(square), numbers((*batch, 2, 5), t))
        yield case("triangular_solve conjugate", heavy(square), numbers((*batch, 2, 5), t))
        yield case("solve_triangular", heavy(square), numbers((*batch, 5, 2), t))
        yield case("solve_triangular adjoint", heavy(square), numbers((*batch, 5, 2), t))
        for m, n in ((6, 3), (3, 6)):
            x = heavy(numbers((*batch, m, n), t))
            for name in ("lu", "qr", "qr complete", "svd", "pinv"):
                yield case(name, x)
            yield case("matrix_rank", x, gradient=False)
            yield case("matrix_rank tol", x, gradient=False)
        for n in (1, 2, 3, 4):
            yield case("det", numbers((n, n), t))
            yield case("slogdet", numbers((n, n), t), gradient=n > 1)
        for m, n in ((6, 3), (3, 6)):
            yield case("lstsq", heavy(numbers((m, n), t)), numbers((m, 2) if m > n else (m,), t))
        yield case("norm", numbers((4, 3), t))
        yield case("matrix_norm", heavy(numbers((4, 3), t)))
        yield case("matrix_power", heavy(numbers((3, 3), t)))
        yield case("multi_dot", numbers((3, 4), t), numbers((4, 3), t))
        yield case("tensorinv", heavy(numbers((6, 6), t)))
        yield case("convolve", numbers((7,), t), numbers((4,), t))
        yield case("convolve", numbers((3,), t), numbers((5,), t))
        yield case("correlate", numbers((7,), t), numbers((4,), t))
        yield case("correlate", numbers((3,), t), numbers((5,), t))
        yield case("conv", numbers((2, 3, 9), t), numbers((4, 3, 2), t))


def edges():
    """Singular, indefinite and infinite matrices, and none."""
    nan = np.nan
    low = numbers((5, 2))
    one_rank_less = heavy(numbers((5, 5))).at[4].set(0.0)
    two_ranks = low @ jnp.conj(low.T)
    yield case("cholesky", jnp.array([[1.0, 2.0j], [-2.0j, 1.0]]), gradient=False)
    yield case("cholesky", jnp.array([[4.0, 2j, 0], [-2j, 5, 0], [0, 0, -1]]), gradient=False)
    for x in (one_rank_less, jnp.zeros((4, 4), "complex128"), jnp.zeros((1, 1), "complex128")):
        yield case("det", x)
        yield case("slogdet", x, gradient=False)
    for x in (two_ranks, jnp.zeros((3, 3), "complex128"), one_rank_less):
        yield case("matrix_rank", x, gradient=False)
        yield case("pinv", x, gradient=False)
    yield case("lstsq", two_ranks, numbers((5, 2)), gradient=False)
    for name in ("eigh", "svd"):
        yield case(name, jnp.array([[4.0, 2j, 0], [-2j, 5, nan * 1j], [0, nan, 1]]), gradient=False)
    for name in ("cholesky", "lu", "inv", "slogdet", "qr", "eigh", "eigvalsh", "pinv"):
        yield case(name, jnp.zeros((2, 0, 0), "complex64"), gradient=False)
    for shape in ((0, 3), (3, 0)):
        for name in ("lu", "qr", "pinv"):
            yield case(name, jnp.zeros(shape, "complex64"), gradient=False)


def conditions():
    for t, batch in (("complex64", ()), ("complex128", (2,))):
        yield case("cond", heavy(numbers((*batch, 5, 5), t)))
        for m, n in ((6, 3), (3, 6)):
            yield case("cond of sides", heavy(numbers((*batch, m, n), t)))


every = {"jax": jax.__version__, "cases": list(cases()), "edges": list(edges())}
every["cases"] += conditions()  # behind the others, whose random numbers stay
PATH.write_text(json.dumps(every, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
print(PATH.stat().st_size)
