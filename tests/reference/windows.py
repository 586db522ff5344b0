"""Convolutions, pooling and resizing as JAX and Equinox compute them, with gradients: writes tests/data/windows.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 equinox==0.13.8 numpy==2.4.6 && v/bin/python tests/reference/windows.py
"""
import json
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax import lax

PATH = pathlib.Path(__file__).parents[1] / "data" / "windows.json"
random = np.random.default_rng(29)


def packed(x):
    x = np.asarray(x)
    if x.dtype in (np.float32, jnp.bfloat16, np.float16):
        data = [float(f"{v:.9g}") for v in x.astype(np.float64).ravel()]
    else:
        data = [int(v) for v in x.ravel()]
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": data}


def drawn(*shape):
    """Multiples of 1/8: sums of few products are exact."""
    return jnp.asarray(random.integers(-16, 17, shape) / 8, "float32")


def with_gradients(f, *x):
    y = f(*x)
    w = drawn(*y.shape)
    loss = lambda *a: (f(*a) * w).sum()
    return {"inputs": [packed(v) for v in x], "y": packed(y), "weights": packed(w),
            "gradients": [packed(g) for g in jax.grad(loss, tuple(range(len(x))))(*x)]}


def conv(x, k, strides, padding, lhs_dilation=None, rhs_dilation=None, dn=None, groups=1, batch_groups=1):
    n = len(x) - 2
    def f(a, b):
        widths = padding
        if lhs_dilation is None and not isinstance(padding, str):
            # XLA of 0.10.2 gives wrong values at the end on CPUs where one width is negative and the other positive: cut before
            cut = [(0, 0, 0)] * 2 + [(min(lo, 0), min(hi, 0), 0) for lo, hi in padding]
            a, widths = lax.pad(a, jnp.float32(0), cut), [(max(lo, 0), max(hi, 0)) for lo, hi in padding]
        return lax.conv_general_dilated(a, b, strides, widths, lhs_dilation, rhs_dilation, dn, groups, batch_groups)

    attrs = {"strides": strides, "padding": padding, "lhs_dilation": lhs_dilation or [1] * n, "rhs_dilation": rhs_dilation or [1] * n,
             "dimension_numbers": list(dn or ["", "", ""]), "groups": groups, "batch_groups": batch_groups}
    return attrs | with_gradients(f, drawn(*x), drawn(*k))


def convs():
    yield conv((2, 3, 9), (4, 3, 3), [1], "VALID")
    yield conv((2, 3, 9), (4, 3, 3), [2], "SAME")
    yield conv((2, 3, 10), (4, 3, 4), [3], "SAME_LOWER")
    yield conv((2, 3, 9), (4, 3, 3), [2], [(2, 1)], None, [2])
    yield conv((2, 3, 9), (4, 3, 3), [1], [(-2, 1)])
    yield conv((2, 3, 5), (4, 3, 3), [2], [(-3, 6)], [3])
    yield conv((1, 2, 3), (2, 2, 5), [1], "VALID")
    yield conv((2, 2, 6, 5), (3, 2, 3, 2), [1, 1], "SAME")
    yield conv((2, 2, 7, 6), (3, 2, 3, 2), [2, 3], [(1, 0), (2, 1)])
    yield conv((2, 2, 7, 6), (3, 2, 2, 3), [1, 2], "VALID", None, [3, 2])
    yield conv((2, 2, 4, 3), (3, 2, 3, 3), [1, 1], [(2, 2), (1, 2)], [2, 3])
    yield conv((2, 2, 4, 3), (3, 2, 3, 3), [2, 1], [(2, -1), (1, 2)], [2, 3], [1, 2])
    yield conv((2, 6, 5, 5), (6, 2, 3, 3), [1, 1], "SAME", groups=3)
    yield conv((2, 4, 6, 6), (8, 1, 3, 3), [2, 2], "SAME", groups=4)
    yield conv((4, 3, 5, 5), (6, 3, 3, 3), [1, 2], "SAME", batch_groups=2)
    yield conv((2, 6, 5, 3), (3, 2, 3, 4), [1, 1], "SAME", dn=("NHWC", "HWIO", "NHWC"))
    yield conv((6, 5, 2, 4), (4, 2, 2, 3), [2, 1], "VALID", dn=("HWNC", "OWIH", "CNWH"), groups=2)
    yield conv((2, 9, 40), (24, 9, 3), [1], "SAME")
    yield conv((3, 2, 5, 4, 6), (4, 2, 2, 3, 2), [1, 2, 1], "SAME")
    yield conv((1, 4, 4, 5, 3), (2, 2, 3, 2, 2), [2, 1, 2], [(1, 1), (0, 2), (1, 0)], None, [1, 2, 1], groups=2)
    yield conv((1, 130, 6), (3, 130, 9), [1], [(4, 4)])  # longer than one chain


def integer_convs():
    for t in ("int8", "uint8", "int32", "uint32"):
        x, k = (jnp.asarray(random.integers(0, 100, s), t) for s in ((2, 3, 7), (2, 3, 3)))
        yield {"inputs": [packed(x), packed(k)], "y": packed(lax.conv(x, k, [2], "SAME"))}
    for t in ("float16", "bfloat16"):
        x, k = drawn(2, 3, 8).astype(t), drawn(2, 3, 3).astype(t)
        yield {"inputs": [packed(x), packed(k)], "y": packed(lax.conv(x, k, [2], "SAME"))}


def transposes():
    for strides, padding, dilation, turned, consistent in (
            ([2, 2], "SAME", [1, 1], False, False), ([2, 3], "VALID", [1, 1], False, False), ([2, 1], "SAME", [2, 1], True, False),
            ([5, 4], "SAME", [1, 1], False, False), ([2, 2], [(1, 2), (0, 1)], [1, 1], False, False),
            ([2, 2], [(1, 2), (0, 1)], [1, 2], True, True)):
        f = lambda a, b: lax.conv_transpose(a, b, strides, padding, dilation, transpose_kernel=turned, use_consistent_padding=consistent)
        yield {"strides": strides, "padding": padding, "rhs_dilation": dilation, "transpose_kernel": turned,
               "use_consistent_padding": consistent} | with_gradients(f, drawn(2, 4, 3, 2), drawn(3, 3, 2, 2))


REDUCERS = {"max": (lax.max, -jnp.inf), "min": (lax.min, jnp.inf), "sum": (lax.add, 0.0)}


def pools():
    for name, (f, init) in REDUCERS.items():
        for shape, window, strides, padding, dilation in (
                ((3, 9), (1, 3), (1, 2), "VALID", (1, 1)), ((3, 9), (1, 4), (1, 3), "SAME", (1, 1)), ((2, 6, 7), (1, 2, 3), (1, 2, 1), "SAME", (1, 1, 1)),
                ((2, 6, 7), (2, 2, 2), (1, 2, 2), [(1, 0), (0, 1), (2, 1)], (1, 1, 2)), ((2, 3, 5, 4, 5), (1, 1, 2, 2, 3), (1, 1, 2, 2, 2), "VALID", (1, 1, 1, 1, 1))):
            # multiples of 1/8 in a small range: ties, which send their gradient to the first
            x = jnp.asarray(random.integers(-3, 4, shape) / 8, "float32")
            pads = padding if isinstance(padding, str) else tuple(padding)
            g = lambda v: lax.reduce_window(v, init, f, window, strides, pads, window_dilation=dilation)
            c = {"name": name, "window": window, "strides": strides, "padding": padding, "dilation": dilation}
            if name != "sum" and any(d > 1 for d in dilation):  # JAX has no gradient of these
                yield c | {"inputs": [packed(x)], "y": packed(g(x))}
            else:
                yield c | with_gradients(g, x)


def resizes():
    for shape, to in (((5,), (9,)), ((9,), (4,)), ((4, 6), (7, 3)), ((3, 4, 5), (3, 8, 10)), ((6, 5), (6, 2)), ((1, 3), (4, 3))):
        for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5"):
            for antialias in (True, False):
                if method == "nearest" and not antialias:
                    continue
                f = lambda x: jax.image.resize(x, to, method, antialias)
                yield {"to": to, "method": method, "antialias": antialias} | with_gradients(f, drawn(*shape))


def leaves(m):
    return {k: packed(v) for k, v in (("weight", m.weight), ("bias", m.bias)) if v is not None}


def layers():
    key = jax.random.PRNGKey(5)
    for dims, args in ((1, dict(in_channels=2, out_channels=4, kernel_size=3, padding="SAME_LOWER", stride=2)),
                       (1, dict(in_channels=4, out_channels=6, kernel_size=4, padding=2, dilation=2, groups=2, use_bias=False)),
                       (2, dict(in_channels=2, out_channels=3, kernel_size=(3, 2), padding=(1, 2), padding_mode="REFLECT")),
                       (2, dict(in_channels=2, out_channels=3, kernel_size=3, padding="SAME", padding_mode="CIRCULAR")),
                       (2, dict(in_channels=2, out_channels=3, kernel_size=3, padding=((1, 0), (2, 1)), padding_mode="REPLICATE", stride=(2, 1))),
                       (3, dict(in_channels=2, out_channels=2, kernel_size=2, stride=(1, 2, 1), padding=1))):
        m = eqx.nn.Conv(dims, **args, key=key)
        x = drawn(args["in_channels"], *(7, 6, 5)[:dims])
        g = eqx.filter_grad(lambda l: jnp.sum(jnp.sin(l(x))))(m)
        yield {"layer": "Conv", "dims": dims, "args": args, "leaves": leaves(m), "gradients": leaves(g), "x": packed(x), "y": packed(m(x))}
    for dims, args in ((1, dict(in_channels=2, out_channels=4, kernel_size=3, stride=2, padding="SAME")),
                       (1, dict(in_channels=4, out_channels=2, kernel_size=4, stride=3, output_padding=1, padding=1, dilation=2, groups=2)),
                       (2, dict(in_channels=2, out_channels=3, kernel_size=3, stride=2, output_padding=1, padding=((1, 0), (1, 1)), use_bias=False)),
                       (2, dict(in_channels=2, out_channels=3, kernel_size=3, stride=(2, 1), padding="SAME_LOWER")),
                       (2, dict(in_channels=2, out_channels=3, kernel_size=3, stride=2, padding="SAME", padding_mode="CIRCULAR")),
                       (3, dict(in_channels=2, out_channels=2, kernel_size=2, stride=2, padding="VALID"))):
        m = eqx.nn.ConvTranspose(dims, **args, key=key)
        x = drawn(args["in_channels"], *(4, 3, 3)[:dims])
        g = eqx.filter_grad(lambda l: jnp.sum(jnp.sin(l(x))))(m)
        yield {"layer": "ConvTranspose", "dims": dims, "args": args, "leaves": leaves(m), "gradients": leaves(g), "x": packed(x), "y": packed(m(x))}
    for dims in (1, 2, 3):
        for kind in ("MaxPool", "AvgPool"):
            for args in (dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=3, stride=2, padding=1, use_ceil=True),
                         dict(kernel_size=3, stride=2, padding=[(1, 0)] * dims, use_ceil=True)):
                m = getattr(eqx.nn, f"{kind}{dims}d")(**args)
                x = drawn(2, *(7, 6, 5)[:dims])
                yield {"layer": kind, "dims": dims, "args": args, "x": packed(x), "y": packed(m(x))}
        for kind in ("AdaptiveMaxPool", "AdaptiveAvgPool"):
            for target in (1, 3, (5, 2, 4)[:dims]):
                m = getattr(eqx.nn, f"{kind}{dims}d")(target)
                x = drawn(2, *(7, 6, 5)[:dims])
                yield {"layer": kind, "dims": dims, "args": {"target_shape": target}, "x": packed(x), "y": packed(m(x))}


data = {"convs": list(convs()), "integer_convs": list(integer_convs()), "transposes": list(transposes()), "pools": list(pools()),
        "resizes": list(resizes()), "layers": list(layers())}
versions = {m.__name__: m.__version__ for m in (jax, jaxlib, eqx, np)}
PATH.write_text(json.dumps({"versions": versions} | data, separators=(",", ":")))
print(versions, {k: len(v) for k, v in data.items()}, PATH.stat().st_size)
