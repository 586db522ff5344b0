"""Works and inputs of JAX's rows."""

import jax
import jax.numpy as jnp
from side import Work

half_products = False  # the row's matrices are bfloat16


def result_of(f, *inputs):
    """f(*inputs), an array."""
    jax.block_until_ready(inputs)
    return [Work("", lambda: f(*inputs).block_until_ready(), lambda digest: [digest(f(*inputs))])]


def normal(seed, shape):
    return jax.random.normal(jax.random.key(seed), shape)


def matrix(seed, shape):
    """What products are made of."""
    x = normal(seed, shape)
    return x.astype(jnp.bfloat16) if half_products else x


def uniform(seed, shape):
    return jax.random.uniform(jax.random.key(seed), shape)
