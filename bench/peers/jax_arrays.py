"""The rows of bench/peers/arrays.h."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jax_work import matrix, normal, result_of, uniform


def eight_numbers():
    return jnp.arange(8, dtype=jnp.float32)


def dispatch_jit(_):
    return result_of(jax.jit(lambda x: x + 1.0), eight_numbers())


def dispatch_eager(_):
    return result_of(lambda x: x + 1.0, eight_numbers())


def dispatch_pmap(_):
    f = jax.pmap(lambda x: x + 1.0)
    return result_of(f, f(eight_numbers()))  # made by pmap, so that each row is on its device


def all_reduce(n):
    mesh = jax.make_mesh((8,), ("x",))
    f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x")))
    return result_of(f, jax.device_put(normal(1, (8, n)), NamedSharding(mesh, P("x"))))


def matmul(n):
    return result_of(jax.jit(jnp.matmul), matrix(1, (n, n)), matrix(2, (n, n)))


def layouts(n):
    devices = jax.device_count()  # 8, or one GPU
    mesh = jax.make_mesh((devices,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    cuts = {"..": P(), "x.": P("x"), ".x": P(None, "x")}
    cuts = {name: NamedSharding(mesh, spec) for name, spec in cuts.items()}
    a, b = matrix(1, (n, n)), matrix(2, (n, n))
    all_works = []
    for a_name, a_cut in cuts.items():
        for b_name, b_cut in cuts.items():
            for c_name, c_cut in cuts.items():
                f = jax.jit(jnp.matmul, out_shardings=c_cut)
                all_works += result_of(f, jax.device_put(a, a_cut), jax.device_put(b, b_cut))
                all_works[-1].name = f"{a_name},{b_name},{c_name}"
    return all_works


def gelu(n):
    return result_of(jax.jit(lambda x: jax.nn.gelu(x, approximate=True)), normal(1, (n,)))


def total(n):
    return result_of(jax.jit(jnp.sum), uniform(1, (n,)))


def softmax(rows):
    return result_of(jax.jit(lambda x: jax.nn.softmax(x, axis=-1)), normal(1, (rows, 2**22 // rows)))


def layer_norm(rows):
    def f(x, scale, shift):
        d = x - jnp.mean(x, axis=-1, keepdims=True)
        return d * jax.lax.rsqrt(jnp.mean(d * d, axis=-1, keepdims=True) + 1e-5) * scale + shift

    return result_of(jax.jit(f), normal(1, (rows, 1024)), normal(2, (1024,)), normal(3, (1024,)))


def transpose(rows):
    return result_of(jax.jit(jnp.transpose), normal(1, (rows, 1024)))


def sort(n):
    return result_of(jax.jit(jnp.sort), normal(1, (n,)))


def argsort(n):
    return result_of(jax.jit(jnp.argsort), normal(1, (n,)))


def top_k(n):
    return result_of(jax.jit(lambda x: jax.lax.top_k(x, 64)[0]), normal(1, (n,)))


def cumsum(n):
    return result_of(jax.jit(jnp.cumsum), normal(1, (n,)))


def places(n):
    return (uniform(2, (n,)) * n).astype(jnp.int32)


def gather(n):
    return result_of(jax.jit(lambda x, at: jnp.take(x, at, axis=0)), normal(1, (n, 64)), places(n))


def scatter(n):
    f = jax.jit(lambda x, at: jnp.zeros((n, 64)).at[at].add(x))
    return result_of(f, normal(1, (n, 64)), places(n))


def rows_in_loop(n):
    f = jax.jit(lambda table, x: jax.lax.fori_loop(0, n, lambda i, t: t.at[i].add(x[i] * 0.5), table))
    return result_of(f, normal(1, (n, 32)), normal(2, (n, 32)))


def numbers_taken(n):
    return result_of(jax.jit(lambda x, at: x[at]), normal(1, (n,)), places(n))


def numbers_added(n):
    f = jax.jit(lambda x, at: jnp.zeros(1000).at[at % 1000].add(x))
    return result_of(f, normal(1, (n,)), places(n))


def number_steps(n):
    def step(c, x):
        c = jax.lax.cond(x > 0, lambda a: a + 1, lambda a: a * 0.5, c)
        return c, c

    return result_of(jax.jit(lambda x: jax.lax.scan(step, jnp.float32(0), x)[1]), normal(1, (n,)))


def numbers_written(n):
    f = jax.jit(lambda t: jax.lax.fori_loop(0, n, lambda i, t: t.at[(i * 7919) % n].set(i), t))
    return result_of(f, jnp.zeros(n, jnp.int32))


def vectors_of_3(n):
    return result_of(jax.jit(lambda x, c: x - c), normal(1, (n, 3)), normal(2, (3,)))


def row_updates(n):
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda _, t: t.at[5].add(1), x))
    return result_of(f, normal(1, (n, 1000)))


def integer_product(n):
    numbers = [(normal(seed, (n, n)) * 100).astype(jnp.int32) for seed in (1, 2)]
    return result_of(jax.jit(jnp.matmul), *numbers)


def solve(n):
    f = jax.jit(lambda a, b: jnp.linalg.solve(a + 2 * n**0.5 * jnp.eye(n), b))
    return result_of(f, normal(1, (n, n)), normal(2, (n, 64)))


def fft(n):
    shape = {1000: (1000, 1000), 64: (10_000, 64)}.get(n, (n,))
    return result_of(jax.jit(lambda x: jnp.fft.irfft(jnp.fft.rfft(x))), normal(1, shape))


def cholesky(matrices):
    f = jax.jit(lambda a: jnp.linalg.cholesky(a + a.mT + 64 * jnp.eye(64)))
    return result_of(f, normal(1, (matrices, 64, 64)))


def cholesky_of_one(n):
    f = jax.jit(lambda a: jnp.linalg.cholesky(a + a.T + 4 * n**0.5 * jnp.eye(n)))
    return result_of(f, normal(1, (n, n)))


def attention(n):
    shape = (1, n, 8, 64)
    return result_of(
        jax.jit(jax.nn.dot_product_attention), normal(1, shape), normal(2, shape), normal(3, shape)
    )


def gru(n):
    batch, inputs, hidden = (1, 32, 32) if n >= 10_000 else (32, 128, 256)

    def f(x, of_input, of_memory):
        def step(h, row):
            given, past = jnp.split(row, 3, -1), jnp.split(h @ of_memory, 3, -1)
            reset, update = jax.nn.sigmoid(given[0] + past[0]), jax.nn.sigmoid(given[1] + past[1])
            return update * h + (1 - update) * jnp.tanh(given[2] + reset * past[2]), None

        return jax.lax.scan(step, jnp.zeros((batch, hidden)), x @ of_input)[0]

    root = hidden**0.5
    weights = normal(2, (inputs, 3 * hidden)) / root, normal(3, (hidden, 3 * hidden)) / root
    return result_of(jax.jit(f), normal(1, (n, batch, inputs)), *weights)


def lstm(n):
    def loss(w, u, x):
        def step(carry, row):
            h, c, total = carry
            gates = jnp.split(row @ w + h @ u, 4, 1)
            c = jax.nn.sigmoid(gates[0]) * c + jax.nn.sigmoid(gates[1]) * jnp.tanh(gates[2])
            h = jax.nn.sigmoid(gates[3]) * jnp.tanh(c)
            return (h, c, total + jnp.mean(jnp.square(h))), None

        start = jnp.zeros((x.shape[1], u.shape[0]))
        return jax.lax.scan(step, (start, start, 0.0), x)[0][2]

    f = jax.jit(lambda *given: jnp.concatenate(jax.grad(loss, (0, 1))(*given)))
    return result_of(f, normal(1, (16, 256)) * 0.2, normal(2, (64, 256)) * 0.1, normal(3, (n, 16, 16)))


def convolved(x, kernel):
    return jax.lax.conv(x, kernel, (1, 1), "SAME")


def conv(n):
    return result_of(jax.jit(convolved), normal(1, (n, 64, 32, 32)), normal(2, (64, 64, 3, 3)))


def conv_gradients(n):
    def f(x, kernel):
        dx, dk = jax.grad(lambda a, b: jnp.sum(jnp.square(convolved(a, b))), (0, 1))(x, kernel)
        return jnp.concatenate([dx.ravel(), dk.ravel()])

    return result_of(jax.jit(f), normal(1, (n, 64, 32, 32)), normal(2, (64, 64, 3, 3)))


def random_bits(n):
    return result_of(jax.jit(lambda key: jax.random.bits(key, (n,))), jax.random.key(3))


def random_normal(n):
    return result_of(jax.jit(lambda key: jax.random.normal(key, (n,))), jax.random.key(3))


def chain(n):
    def f(x, y):
        for _ in range(0, n, 4):
            x = jnp.tanh(x * 1.5 + y) - y
        return x

    return result_of(jax.jit(f), normal(1, (1024,)), normal(2, (1024,)))


ROWS = {
    "dispatch_jit": dispatch_jit,
    "dispatch_eager": dispatch_eager,
    "dispatch_pmap": dispatch_pmap,
    "all_reduce": all_reduce,
    "matmul": matmul,
    "layouts": layouts,
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
    "rows_in_loop": rows_in_loop,
    "numbers_taken": numbers_taken,
    "numbers_added": numbers_added,
    "number_steps": number_steps,
    "numbers_written": numbers_written,
    "vectors_of_3": vectors_of_3,
    "row_updates": row_updates,
    "integer_product": integer_product,
    "solve": solve,
    "cholesky": cholesky,
    "fft": fft,
    "cholesky_of_one": cholesky_of_one,
    "attention": attention,
    "gru": gru,
    "lstm": lstm,
    "conv": conv,
    "conv_gradients": conv_gradients,
    "random_bits": random_bits,
    "random_normal": random_normal,
    "chain": chain,
}
