"""Options of jax.numpy's, jax.nn's and jax.lax's functions as JAX computes them: `where` and `initial` of reductions, counts of repeat,
ends of diff, weights of histogram, places of gradient, padding and sorting of lax. Writes tests/data/numpy_options.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/numpy_options.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from packed import packed

PATH = pathlib.Path(__file__).parents[1] / "data" / "numpy_options.json"
nan, inf = np.nan, np.inf
X = np.array([[1, 2, -3, 4], [0.5, -1, 2, 7], [5, 3, 9, 1]], np.float32)
N = np.array([[1, nan, -3, 4], [nan, -1, 2, nan], [5, 3, nan, 1]], np.float32)
M = np.array([[True, False, True, True], [False, False, False, False], [True, True, False, True]])
R = np.array([True, False, True, False])  # broadcast
I = np.array([[3, -1, 2, 7], [4, 0, -5, 2], [1, 1, 6, -2]], np.int32)
S = np.array([3, -1, 100, 7], np.int8)
B = I > 1
P = np.array([0.0, 0.5, 2.0, 2.25, 4], np.float32)
V = np.array([1, 3, 2, 5, 4.5], np.float32)
H = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.0, 8388609, inf, nan, -1.2], np.float32)
K1 = np.array([2, 1, 2, 1, 2], np.int32)
K2 = np.array([nan, 3, -0.0, 1, 0.0], np.float32)
A3 = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 7 - 2


def gradients(f):
    return jax.grad(lambda x: jnp.sum(f(x) * jnp.arange(1.0, 1 + f(x).size).reshape(f(x).shape)))(X)


REDUCTIONS = [lambda x, **o: jnp.sum(x, **o), lambda x, **o: jnp.prod(x, **o)]
MOMENTS = [jnp.mean, jnp.var, jnp.std, jnp.nanmean, jnp.nanvar, jnp.nanstd]
CASES = {
    "sums": lambda: [f(x, axis=a, where=w) for f in REDUCTIONS for x in (X, I, B) for a in (None, 0, 1) for w in (M, R)],
    "sums from": lambda: [f(x, axis=1, initial=3) for f in REDUCTIONS for x in (X, I, S[None])] +
        [jnp.sum(X.astype(jnp.float16), axis=1, where=M, initial=2.5), jnp.sum(X[:, :0], axis=1, initial=7)],
    "extrema": lambda: [f(x, axis=a, where=w, initial=i) for f, i in ((jnp.max, -2), (jnp.min, 3)) for x in (X, I, N)
                        for a in (None, 0, 1) for w in (M, R)] +
        [jnp.max(X[:, :0], axis=1, initial=-inf), jnp.min(I, initial=-7), jnp.max(B, axis=1, where=M, initial=False)],
    "truths": lambda: [f(x, axis=a, where=M) for f in (jnp.any, jnp.all) for x in (B, N) for a in (None, 0, 1)],
    "moments": lambda: [f(x, axis=a, where=w) for f in MOMENTS for x in (X, I, N) for a in (None, 0, 1) for w in (M, R)] +
        [f(X, axis=1, where=M, ddof=d, keepdims=True) for f in (jnp.var, jnp.std) for d in (1, 2, 3)],
    "nan": lambda: [jnp.nansum(N, axis=1, where=M, initial=2), jnp.nanprod(N, axis=1, where=M, initial=2),
                    jnp.nanmax(N, axis=1, where=M, initial=-10), jnp.nanmin(N, axis=1, where=M, initial=10)],
    "gradients": lambda: [gradients(f) for f in (
        lambda x: jnp.sum(x, axis=1, where=M), lambda x: jnp.prod(x, axis=1, where=M, initial=2),
        lambda x: jnp.max(x, axis=1, where=M, initial=2), lambda x: jnp.mean(x, axis=0, where=M),
        lambda x: jnp.var(x, axis=0, where=R[:, None][:3]), lambda x: jax.nn.softmax(x, axis=0, where=M),
        lambda x: jax.nn.logsumexp(x, axis=0, where=M), lambda x: jnp.diff(x, axis=0, prepend=1),
        lambda x: jnp.repeat(x, np.array([2, 0, 1]), axis=0),
        lambda x: lax.pad(x, np.float32(1), ((1, -1, 1), (-2, 3, 2))))],
    "softmax": lambda: [f(x, axis=a, where=w) for f in (jax.nn.softmax, jax.nn.log_softmax) for x in (X, A3[0]) for a in (0, 1)
                        for w in (M, R)] + [jax.nn.softmax(X, axis=(0, 1), where=M)],
    "logsumexp": lambda: [f(X, axis=a, where=w) for f in (jax.nn.logsumexp, jax.nn.logmeanexp) for a in (0, 1) for w in (M, R)],
    "standardize": lambda: [jax.nn.standardize(X, axis=a, where=w, algorithm="stable") for a in (0, 1) for w in (R, M | (I < 1))],
    "repeat": lambda: [jnp.repeat(X, np.array(c), axis=0) for c in ([2, 0, 1], [0, 0, 0], [3])] +
        [jnp.repeat(P, np.array([0, 2, 0, 1, 0]))] +
        [jnp.repeat(P, np.array([0, 2, 0, 1, 3]), total_repeat_length=n) for n in (4, 6, 9)],
    "diff": lambda: [jnp.diff(X, axis=0, prepend=1, append=X[:1]), jnp.diff(I, prepend=I[:, :2]), jnp.diff(I, n=2, append=0.5),
                     jnp.diff(X, n=3, axis=1, prepend=0)],
    "histogram": lambda: [v for o in ({"density": True}, {"weights": X}, {"weights": X, "density": True})
                          for v in (*jnp.histogram(X, 4, **o), *jnp.histogram(X, np.array([-1.0, 0, 3, 5], np.float32), **o))] +
        list(jnp.histogram(I, 3, range=(0, 6), weights=I, density=True)),
    "gradient": lambda: [*jnp.gradient(X), *jnp.gradient(X, 2.0), *jnp.gradient(X, 2.0, 0.5)],
    # NumPy's: JAX has no places
    "gradient at places": lambda: [np.gradient(V, P), np.gradient(np.stack([V, V * V]), P, axis=1),
                                   *np.gradient(np.stack([V, V * V]), 0.5, P), np.gradient(V[:2], P[:2])],
    "round": lambda: [lax.round(H, lax.RoundingMethod.AWAY_FROM_ZERO), lax.round(H, lax.RoundingMethod.TO_NEAREST_EVEN),
                      lax.round(H.astype(np.float16)), lax.round(jnp.asarray(H, jnp.bfloat16))],
    "pad": lambda: [lax.pad(X, np.float32(9), w) for w in (((1, 2, 0), (0, 0, 1)), ((-1, 0, 2), (0, -2, 0)), ((-2, 1, 0), (3, -5, 1)),
                                                           ((0, -3, 0), (0, 0, 0)), ((-4, 3, 0), (0, 0, 0)), ((-1, -1, 3), (-1, -1, 3)))] +
        [lax.pad(I, np.int32(-1), ((0, 1, 1), (1, 0, 0)))],
    "sort": lambda: [*lax.sort((K1, K2, V), num_keys=1), *lax.sort((K1, K2, V), num_keys=2), *lax.sort((V, K1)),
                     *lax.sort((I, I[::-1], X), dimension=0, num_keys=2)],
    "norm": lambda: [jnp.linalg.norm(X, ord=o) for o in (2, -2, "nuc")] +
        [jnp.linalg.norm(A3, ord=o, axis=a, keepdims=k) for o in (2, -2, "nuc") for a in ((0, 2), (2, 1)) for k in (False, True)],
    "einsum": lambda: [jnp.einsum("ij,jk,kl->il", X, X.T, X), jnp.einsum("i,i,i,i->", V, P, V, V), jnp.einsum("ij,kj,kl,ml,mn,no->io", *[X] * 4, X[:, :2], X[:2]),
                       jnp.einsum("...j,kj,k->...", A3, X, V[:3])],
}


PATH.write_text(json.dumps({"versions": f"jax {jax.__version__}, numpy {np.__version__}",
                            **{k: [packed(v) for v in f()] for k, f in CASES.items()}}) + "\n")
