"""What a row runs, as bench/peers/work.h."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

half_products = False  # the row's matrices are bfloat16


@dataclass
class Work:
    name: str  # where a row has several
    call: Callable  # returns when the result is there
    check: Callable  # called once with `digest`, after the first call: groups of figures of one scale,
    # on which both sides must agree


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
