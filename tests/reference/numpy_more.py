"""Sets, polynomials, covariances and other functions of jax.numpy as JAX computes them, and draws of matrices: writes
tests/data/numpy_more.json. rel_entr is SciPy's: JAX gives infinity for NaN.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 scipy && v/bin/python tests/reference/numpy_more.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jax.scipy.special as js
import numpy as np
import scipy.special
from packed import packed

PATH = pathlib.Path(__file__).parents[1] / "data" / "numpy_more.json"
nan, inf = np.nan, np.inf
I = [3, -1, 3, 7, 0, -1, 7, 7]
J = [7, 2, 0, 2, -5]
F = np.array([2.5, nan, -1, 2.5, inf, nan, -inf], np.float32)
X = np.array([[1, 2, nan, 4], [nan, nan, nan, nan], [5, 3, 9, 1], [nan, 8, nan, -2]], np.float32)
M = np.array([[1.0, 2, 4, 3], [0, 5, 1, 1], [2, 2, 7, 9]], np.float32)
P = np.array([2.0, -1, 0.5, 3], np.float32)
E = np.array([0.0, 1, -1, 30, -30, inf, -inf, nan, 0.5], np.float32)

CASES = {
    "unique": lambda: [jnp.unique(jnp.array(I), size=s, fill_value=f) for s in (3, 5, 8) for f in (None, 9)],
    "unique of floats": lambda: [jnp.unique(F, size=9), jnp.unique(F)],
    "unique_all": lambda: list(jnp.unique(jnp.array(I), True, True, True, size=7)) +
        list(jnp.unique(jnp.array(I), True, True, True, size=3)),
    "union1d": lambda: [jnp.union1d(jnp.array(I), jnp.array(J), size=s) for s in (4, 7, 10)],
    "intersect1d": lambda: [jnp.intersect1d(jnp.array(I), jnp.array(J), size=s) for s in (1, 2, 4)] +
        [jnp.intersect1d(jnp.array(I), jnp.array([50]), size=2)],
    "setdiff1d": lambda: [jnp.setdiff1d(jnp.array(I), jnp.array(J), size=s) for s in (1, 2, 4)],
    "setxor1d": lambda: [jnp.setxor1d(jnp.array(I), jnp.array(J), size=s) for s in (3, 6, 8)],
    "isin": lambda: [jnp.isin(F, jnp.array([nan, inf, 2.5])).astype(int)],
    "nanquantile": lambda: [jnp.nanquantile(X, q, axis=1, method=m) for q in (0.0, 0.3, 0.75, 1.0)
                            for m in ("linear", "lower", "higher", "midpoint", "nearest")],
    "nanmedian": lambda: [jnp.nanmedian(X), jnp.nanmedian(X, axis=0, keepdims=True)],
    "cov": lambda: [jnp.cov(M), jnp.cov(M, ddof=0), jnp.cov(M, rowvar=False), jnp.cov(M[0], M[1]), jnp.cov(M[0]),
                    jnp.cov(M, fweights=jnp.array([1, 2, 0, 3])), jnp.cov(M, aweights=jnp.array([0.5, 1, 2, 0.1]))],
    "corrcoef": lambda: [jnp.corrcoef(M), jnp.corrcoef(M[0]), jnp.corrcoef(jnp.array([[1., 1, 1], [1, 2, 3]]))],
    "poly": lambda: [jnp.polyadd(P, P[:2]), jnp.polysub(P[:2], P), jnp.polymul(P, P[:3]), jnp.polyder(P), jnp.polyder(P, 3),
                     jnp.polyder(P, 0), jnp.polyint(P), jnp.polyint(P, 2, jnp.array([5., 7])), jnp.polyint(P, 3, 1),
                     jnp.poly(P), jnp.vander(P, 3), jnp.vander(P, increasing=True), jnp.vander(jnp.array([2, 3, 5]), 3),
                     jnp.polyfit(jnp.arange(5.), jnp.array([1., 3, 2, 5, 7]), 2)],
    "unwrap": lambda: [jnp.unwrap(jnp.array([0., 3, 6.5, -3, 9, 9 - 2 * np.pi])), jnp.unwrap(jnp.array([0., 350, 10, 180, 0]), period=360),
                       jnp.unwrap(jnp.array([0., 350, 10, 180, 0]), period=360, discont=345)],
    "insert": lambda: [jnp.insert(M, 1, 5, axis=1), jnp.insert(M, 2, jnp.array([7., 8, 9]), axis=1), jnp.insert(M, jnp.array([1, 1, 3]), 6),
                       jnp.insert(M, jnp.array([0, 2]), jnp.array([[1.], [2], [3]]), axis=1), jnp.insert(P, 4, jnp.array([1., 2]))],
    "delete": lambda: [jnp.delete(M, 1, axis=1), jnp.delete(M, jnp.array([0, -1]), axis=0, assume_unique_indices=True), jnp.delete(M, 5)],
    "diagonals": lambda: [jnp.fill_diagonal(M, 9, inplace=False), jnp.fill_diagonal(M, jnp.array([7., 8, 9]), inplace=False),
                          jnp.fill_diagonal(jnp.zeros((2, 2, 2)), 1, inplace=False), *jnp.tril_indices(3), *jnp.tril_indices(3, 1, 4),
                          *jnp.triu_indices(4, -1, 2)],
    "bits": lambda: [jnp.packbits(jnp.array(I)), jnp.packbits(jnp.array([[1, 0, 2], [0, 0, 1]]), axis=0, bitorder="little"),
                     jnp.unpackbits(jnp.array([3, 200], jnp.uint8)), jnp.unpackbits(jnp.array([[3], [200]], jnp.uint8), axis=1, count=10),
                     jnp.unpackbits(jnp.array([3, 200], jnp.uint8), count=5, bitorder="little")],
    "windows": lambda: [f(n) for f in (jnp.bartlett, jnp.hanning, jnp.hamming, jnp.blackman) for n in (0, 1, 7)] +
        [jnp.kaiser(n, 5.0) for n in (1, 7)],
    "special": lambda: [js.log_ndtr(E), js.factorial(jnp.array([-1., 0, 3, 5.5])), scipy.special.rel_entr(E, np.float32(2)), scipy.special.rel_entr(np.float32(0), E),
                        js.kl_div(E, jnp.float32(2)), js.betaln(jnp.array([0.5, 3]), jnp.array([2., 7])), js.multigammaln(jnp.array([3., 7]), 3),
                        jax.nn.log1mexp(jnp.array([0., 1e-6, 0.3, 5, inf])), jax.nn.logmeanexp(jnp.array([[1., 2], [-inf, -inf]]), axis=1)],
    "piecewise": lambda: [jnp.piecewise(P, [P < 0, P > 0, P > 2], [lambda v: -v, jnp.exp, 7, 1])],
    "norms": lambda: [jnp.linalg.matrix_norm(M, ord=o) for o in ("fro", "nuc", 1, -1, 2, -2, inf, -inf)] +
        [jnp.linalg.matrix_norm(M, keepdims=True)],
    "orthogonal": lambda: [jax.random.orthogonal(jax.random.PRNGKey(np.int32(7)), 3, (2,)),
                           jax.random.orthogonal(jax.random.PRNGKey(np.int32(7)), 2, m=4)],
    "multivariate_normal": lambda: [jax.random.multivariate_normal(jax.random.PRNGKey(np.int32(7)), jnp.array([1., -2]),
                                                                   jnp.array([[2., 0.5], [0.5, 1]]), s) for s in (None, (3,), (2, 2))],
}


PATH.write_text(json.dumps({"versions": f"jax {jax.__version__}, numpy {np.__version__}",
                            **{k: [packed(v) for v in f()] for k, f in CASES.items()}}) + "\n")
