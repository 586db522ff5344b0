"""JAX's side of `./dev bench peers`: runs one row and prints its figures as JSON.

Every result is waited for: with 8 devices in one process JAX can deadlock in loops that are not.
"""

import jax
import jax_arrays
import jax_work
import side


def works_of(o):
    if jax.default_backend() != "cpu":  # whose products of float32 are JAX's default there
        jax.config.update(
            "jax_default_matmul_precision", "tensorfloat32" if o.precision == "tf32" else "highest"
        )
    jax_work.half_products = o.precision == "bf16"
    if o.row in jax_arrays.ROWS:
        return jax_arrays.ROWS[o.row](o.size)
    import jax_training  # needs Equinox and optax

    return jax_training.ROWS[o.row](o.size)


side.main(works_of)
