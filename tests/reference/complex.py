"""Complex functions as JAX computes them in complex128 (argmax, argmin, extrema beside NaN and what lies on cuts, or is very large or small: numpy), with their pullbacks, and as numpy prints: writes tests/data/complex.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 numpy==2.4.6 && v/bin/python tests/reference/complex.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
PATH = pathlib.Path(__file__).parents[1] / "data" / "complex.json"
random = np.random.default_rng(23)


def packed(x):
    x = np.asarray(x)
    values = x.ravel().view(np.float64) if x.dtype.kind == "c" else x.ravel()
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": [float(v) if np.isfinite(v) else str(v) for v in values]}


def points(n, scale=1.0):
    """Multiples of 1/8, which float32 has, away from branch cuts and poles."""
    re, im = (np.round(random.uniform(-2.5, 2.5, n) * 8 * scale) / 8 for _ in range(2))
    return re + 0.0625 + 1j * (im + 0.0625)


def case(name, f, *args, **attrs):
    y, pull = jax.vjp(f, *map(jnp.asarray, args))
    given = jnp.asarray(random.standard_normal(y.shape) + (1j * random.standard_normal(y.shape) if y.dtype.kind == "c" else 0))
    back = pull(given) if y.dtype.kind in "cf" else []
    return {"name": name, "attrs": attrs, "in": [packed(a) for a in args], "out": packed(y), "given": packed(given), "back": [packed(b) for b in back]}


unary = "negative abs sign conj real imag angle square reciprocal exp expm1 exp2 log log1p log2 log10 sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh".split()
binary = "add subtract multiply divide power arctan2".split()
plain = "equal not_equal less less_equal greater greater_equal maximum minimum".split()
# JAX's derivative of arccosh has the other sign in the left half plane.
cases = [case(n, getattr(jnp, n), points(24) + (2.5 if n == "arccosh" else 0)) for n in unary]
cases += [case("sigmoid", jax.nn.sigmoid, points(24)), case("rsqrt", jax.lax.rsqrt, points(24))]
cases += [case(n, getattr(jnp, n), points(24), points(24)) for n in binary]
equal_parts = np.array([1 + 2j, 1 + 3j, 1 - 1j, 2 + 1j, -1 + 1j, 1 + 2j])
for n in plain:
    y = getattr(jnp, n)(equal_parts[:, None], equal_parts[None, :])
    cases.append({"name": n, "attrs": {}, "in": [packed(equal_parts[:, None]), packed(equal_parts[None, :])], "out": packed(y), "given": packed(np.zeros(0)), "back": []})
z = points(24).reshape(4, 6)
for n in "sum prod mean cumsum cumprod var std".split():
    for axis in (0, 1):
        cases.append(case(n, lambda x, f=getattr(jnp, n), a=axis: f(x, axis=a), z, axis=axis))
cases.append(case("sum_all", jnp.sum, z))
cases.append(case("prod_all", jnp.prod, z))
ties = np.array([[2 + 1j, 1 + 5j, 2 - 3j, 1 + 2j], [0 + 0j, 0 - 1j, -1 + 9j, 0 + 1j]])
for n in "max min argmax argmin sort argsort".split():
    cases.append({"name": n, "attrs": {"axis": 1}, "in": [packed(ties)], "out": packed(getattr(np if n.startswith("arg") else jnp, n)(ties, axis=1)), "given": packed(np.zeros(0)), "back": []})
cases.append(case("matmul", jnp.matmul, points(12).reshape(3, 4), points(20).reshape(4, 5)))
cases.append(case("vdot", jnp.vdot, points(6), points(6)))
cases.append(case("dot", jnp.dot, points(6), points(6)))
edges = [0j, 1 + 0j, -1 + 0j, 1j, -1j, complex(-1, -0.0), complex(3e30, 4e30), complex(3e-30, -4e-30), complex(1e30, 1e-30), complex(-4, 0), complex(-4, -0.0), complex(0.5, 1e-20)]
for n in "abs sqrt exp log sin cosh tanh log1p expm1 arcsin arccos arctan arctanh arccosh arcsinh".split():
    if n in ("exp", "sin", "cosh", "expm1"):
        at = [e for e in edges if abs(e) < 100]
    else:
        at = edges
    with np.errstate(all="ignore"):
        y = getattr(np, n)(np.array(at))  # JAX forgets the sign of a zero
    cases.append({"name": n, "attrs": {"edge": True}, "in": [packed(np.array(at))], "out": packed(y), "given": packed(np.zeros(0)), "back": []})
a = [1 + 2j, 3e200 + 4e200j, 1e-200 + 1e-200j, 1 + 0j, 0 + 1j, 3 - 4j]
b = [3 - 1j, 1e200 + 2e200j, 2e-200 - 1e-200j, 0 + 2j, 2 + 0j, 1e-3 + 1e3j]
cases.append({"name": "divide", "attrs": {"edge": True}, "in": [packed(np.array(a)), packed(np.array(b))], "out": packed(jnp.divide(np.array(a), np.array(b))), "given": packed(np.zeros(0)), "back": []})
lost = points(24).reshape(4, 6)  # a NaN in either part
lost[0, 1], lost[1, 4], lost[3, 0] = complex(np.nan, 2), complex(1.5, np.nan), complex(np.nan, np.nan)
for n in "nansum nanprod nanmean nanvar nanstd nancumsum nancumprod nanmax nanmin nanargmax nanargmin".split():
    for axis in (0, 1):
        y = getattr(np, n)(lost, axis=axis)
        if n.startswith(("nanm", "nanarg")) and n != "nanmean":
            cases.append({"name": n, "attrs": {"axis": axis}, "in": [packed(lost)], "out": packed(y), "given": packed(np.zeros(0)), "back": []})
            continue
        cases.append(case(n, lambda x, f=getattr(jnp, n), a=axis: f(x, axis=a), lost, axis=axis))
        np.testing.assert_allclose(getattr(jnp, n)(lost, axis=axis), y)

texts = []
for x in ([1 + 2j, -3.5 - 0.25j], [1e10 + 1j, 2 - 3e-7j], [complex(np.nan, 1), complex(np.inf, -np.inf), 1.25 - 2j], [0, 1j, -1j],
          [[1.5 + 2j, 10 - 20j], [-100.125 + 3j, 0.5]]):
    for t in ("complex64", "complex128"):
        texts.append({"array": packed(np.array(x, t).astype(np.complex128)), "dtype": t, "text": str(np.array(x, t))})
for x in (1 + 2j, 2j, -1j, 1.5 - 0.25j, 1e20 + 1j, complex(np.nan, 1), complex(-0.0, 1), complex(0.1, -3)):
    for t in ("complex64", "complex128"):
        texts.append({"array": packed(np.array(x, t).astype(np.complex128)), "dtype": t, "text": str(np.array(x, t)[()])})
PATH.write_text(json.dumps({"jax": jax.__version__, "numpy": np.__version__, "cases": cases, "texts": texts}, separators=(",", ":")).replace('{"name"', '\n{"name"').replace('{"array"', '\n{"array"') + "\n")
print(len(cases), PATH.stat().st_size)
