"""Functions of real and of complex matrices as JAX computes them, for linalg.py and linalg_complex.py."""
import jax
import jax.numpy as jnp
import jax.scipy.linalg as sl
import numpy as np

L = jnp.linalg


def packed(x):
    """Complex numbers as pairs, one after the other."""
    x = np.asarray(x)
    values = np.ascontiguousarray(x).ravel()
    values = values.view(values.real.dtype) if x.dtype.kind == "c" else values
    digits = 9 if values.dtype == np.float32 else 17
    data = [str(v) if not np.isfinite(v) else float(f"{v:.{digits}g}") for v in values.astype(np.float64)]
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": data}


def heavy(x):
    return x + 4 * jnp.eye(*x.shape[-2:], dtype=x.dtype)


def definite(x):
    return heavy((x + jnp.conj(x.mT)) / 2) + jnp.diag(jnp.arange(x.shape[-1], dtype=x.dtype))


def squared_sizes(x):
    """|x|^2: signs and phases of eigenvectors and singular vectors are free."""
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


FUNCTIONS = {
    "cholesky": lambda a: (L.cholesky(a),),
    "cholesky lower": lambda a: (L.cholesky(a, symmetrize_input=False),),
    "lu": lambda a: tuple(jax.lax.linalg.lu(a)),
    "solve": lambda a, b: (L.solve(a, b),),
    "triangular_solve": lambda a, b: (jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),),
    "solve_triangular": lambda a, b: (sl.solve_triangular(a, b, trans=1, unit_diagonal=True),),
    "inv": lambda a: (L.inv(a),),
    "det": lambda a: (L.det(a),),
    "slogdet": lambda a: tuple(L.slogdet(a)),
    "qr": lambda a: tuple(L.qr(a)),
    "qr complete": lambda a: tuple(L.qr(a, mode="complete")),
    "eigh": lambda a: (L.eigh(a)[0], squared_sizes(L.eigh(a)[1])),
    "eigh upper": lambda a: (L.eigh(a, UPLO="U", symmetrize_input=False)[0],),
    "eigvalsh": lambda a: (L.eigvalsh(a),),
    "svdvals": lambda a: (L.svdvals(a),),
    "pinv": lambda a: (L.pinv(a),),
    "pinv hermitian": lambda a: (L.pinv(a, hermitian=True),),
    "matrix_rank": lambda a: (L.matrix_rank(a).astype(jnp.int32),),
    "matrix_rank tol": lambda a: (L.matrix_rank(a, rtol=1.5).astype(jnp.int32),),
    "lstsq": lambda a, b: (lambda x, r, rank, s: (x, r, rank.astype(jnp.int32), s))(*L.lstsq(a, b)),
    "expm": lambda a: (sl.expm(a),),
    "cond": lambda a: tuple(L.cond(a, p) for p in (None, -2, 1, -1, np.inf, -np.inf)),
    "cond of sides": lambda a: (L.cond(a), L.cond(a, -2)),
}
