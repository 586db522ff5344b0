"""Works and inputs of JAX's rows."""

import jax
import jax.numpy as jnp
from side import Work

half_products = False  # what the row's products are made of is bfloat16


def result_of(f, *inputs):
    """f(*inputs), an array."""
    jax.block_until_ready(inputs)
    return [Work("", lambda: f(*inputs).block_until_ready(), lambda digest: [digest(f(*inputs))])]


def normal(seed, shape):
    return jax.random.normal(jax.random.key(seed), shape)


def in_precision(tree):
    """Arrays that products are made of."""
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16), tree) if half_products else tree


def matrix(seed, shape):
    return in_precision(normal(seed, shape))


def uniform(seed, shape):
    return jax.random.uniform(jax.random.key(seed), shape)
