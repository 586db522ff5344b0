"""What optimizers of optax make of a row of gradients: for the scripts here."""
import jax
import optax


def updates_of(optimizer, params, grads, flat):
    """The updates of each step, as `flat` makes a list of them. The gradients do not depend on the parameters: rounding does not add
    up from step to step."""
    p, rows = params, []
    state = optimizer.init(p)
    update = jax.jit(optimizer.update)
    for g in grads:
        u, state = update(g, state, p)
        p = optax.apply_updates(p, u)
        rows.append(flat(u))
    return rows
