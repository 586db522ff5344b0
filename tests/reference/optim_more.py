"""Optimizers, transformations, schedules and losses as optax computes them: writes tests/data/optim_more.json.

    python3 -m venv v && v/bin/pip install jax==0.10.2 optax==0.2.8 && v/bin/python tests/reference/optim_more.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import optax

from optax_updates import updates_of

PATH = pathlib.Path(__file__).parents[1] / "data" / "optim_more.json"
STEPS = 10
random = np.random.default_rng(31)

SHAPES = {"b": (5,), "k": (2, 3, 3), "s": (), "w": (4, 3)}  # in the order of jax.tree


def tree():
    return {k: jnp.asarray(random.normal(size=s), "float32") for k, s in SHAPES.items()}


PARAMS = tree()
GRADS = [tree() for _ in range(STEPS)]
matrices = lambda t: {k: v.ndim > 1 for k, v in t.items()}
vectors = lambda t: {k: v.ndim == 1 for k, v in t.items()}


def flat(t):
    return [float(str(v)) for x in jax.tree.leaves(t) for v in np.asarray(x, np.float32).ravel()]  # the shortest digits


def packed(x):
    x = np.asarray(x)
    data = [str(v) if not np.isfinite(v) else float(v) for v in x.astype(np.float64).ravel()]
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": data}


def lookahead_of(optimizer):
    p, rows = optax.LookaheadParams.init_synced(PARAMS), []
    state = optimizer.init(p)
    for g in GRADS:
        u, state = optimizer.update(g, state, p)
        p = optax.apply_updates(p, u)
        rows.append(flat(p.fast) + flat(p.slow))
    return rows


o = optax
rate = o.exponential_decay(0.1, 5, 0.5)
OPTIMIZERS = {
    "adam": o.adam(0.1, b1=0.8, b2=0.95, eps=1e-6),
    "adam eps_root": o.adam(0.1, eps_root=1e-3),
    "adam nesterov": o.adam(0.1, nesterov=True),
    "nadam": o.nadam(rate),
    "adamw": o.adamw(0.1),
    "adamw options": o.adamw(rate, b1=0.8, b2=0.95, eps=1e-5, eps_root=1e-6, weight_decay=0.1),
    "adamw mask": o.adamw(0.1, weight_decay=0.1, mask=matrices),
    "nadamw": o.nadamw(0.1, weight_decay=0.05),
    "amsgrad": o.amsgrad(0.1),
    "amsgrad options": o.amsgrad(0.1, b2=0.5, bias_correction_mu=False, bias_correction_nu=False),
    "adamax": o.adamax(0.1),
    "radam": o.radam(0.1, b2=0.9),
    "radam nesterov": o.radam(0.1, b2=0.8, threshold=4.5, nesterov=True),
    "adabelief": o.adabelief(0.1),
    "adabelief nesterov": o.adabelief(0.1, eps=1e-6, eps_root=1e-4, nesterov=True),
    "yogi": o.yogi(0.1),
    "novograd": o.novograd(0.1),
    "novograd decay": o.novograd(0.1, b1=0.8, b2=0.5, weight_decay=0.1),
    "lion": o.lion(0.1),
    "lion mask": o.lion(0.1, b1=0.8, weight_decay=0.2, mask=matrices),
    "lamb": o.lamb(0.1),
    "lamb mask": o.lamb(rate, weight_decay=0.1, mask=matrices),
    "lars": o.lars(0.1),
    "lars masks": o.lars(0.1, weight_decay=0.1, weight_decay_mask=matrices, trust_ratio_mask=vectors,
                         trust_coefficient=0.1, eps=1e-3, momentum=0.8, nesterov=True),
    "adafactor": o.adafactor(0.1, min_dim_size_to_factor=3),
    "adafactor alone": o.adafactor(),
    "adafactor options": o.adafactor(rate, min_dim_size_to_factor=2, decay_rate=0.7, decay_offset=-2,
                                     multiply_by_parameter_scale=False, clipping_threshold=None, momentum=0.8,
                                     weight_decay_rate=0.01, eps=1e-3),
    "adafactor whole": o.adafactor(0.1, factored=False, clipping_threshold=0.5),
    "rmsprop": o.rmsprop(0.1),
    "rmsprop centered": o.rmsprop(0.1, decay=0.8, eps=0.1, initial_scale=1.5, centered=True, momentum=0.9),
    "rmsprop options": o.rmsprop(rate, eps=1e-3, eps_in_sqrt=False, momentum=0.8, nesterov=True,
                                 bias_correction=True),
    "rmsprop centered corrected": o.rmsprop(0.1, eps=0.1, centered=True, bias_correction=True),
    "adagrad": o.adagrad(0.1),
    "adagrad options": o.adagrad(rate, initial_accumulator_value=0.0, eps=1e-3),
    "adadelta": o.adadelta(0.5),
    "adadelta options": o.adadelta(0.5, rho=0.8, eps=1e-3, weight_decay=0.1),
    "sign_sgd": o.sign_sgd(rate),
    "sgd momentum": o.sgd(0.1, momentum=0.9),
    "sgd nesterov": o.sgd(rate, momentum=0.9, nesterov=True),
    "clip": o.clip(0.3),
    "clip_by_global_norm": o.clip_by_global_norm(3.0),
    "clip_by_global_norm above": o.clip_by_global_norm(100.0),
    "clip_by_block_rms": o.clip_by_block_rms(0.7),
    "trace": o.trace(0.9),
    "ema": o.ema(0.9),
    "ema biased": o.ema(0.8, debias=False),
    "scale": o.scale(-0.3),
    "scale_by_schedule": o.scale_by_schedule(rate),
    "scale_by_learning_rate": o.scale_by_learning_rate(0.3, flip_sign=False),
    "add_decayed_weights": o.add_decayed_weights(0.1),
    "add_decayed_weights schedule": o.add_decayed_weights(rate),
    "centralize": o.centralize(),
    "scale_by_param_block_norm": o.scale_by_param_block_norm(0.8),
    "scale_by_param_block_rms": o.scale_by_param_block_rms(0.8),
    "scale_by_trust_ratio": o.scale_by_trust_ratio(min_norm=0.5, trust_coefficient=0.3, eps=0.1),
    "masked": o.masked(o.scale(3.0), matrices),
    "apply_every": o.chain(o.adam(0.1), o.apply_every(4)),
    "multi_steps": o.MultiSteps(o.adamw(0.1), 3).gradient_transformation(),
    "multi_steps sum": o.MultiSteps(o.sgd(0.1, momentum=0.9), lambda n: 2 + n, use_grad_mean=False).gradient_transformation(),
    "chain": o.chain(o.clip_by_global_norm(1.0), o.adamw(0.1), o.trace(0.5)),
}
LOOKAHEADS = {
    "lookahead": o.lookahead(o.sgd(0.1), 5, 0.3),
    "lookahead reset": o.lookahead(o.adam(0.1), 3, 0.5, reset_state=True),
}
SCHEDULES = {
    "constant": o.constant_schedule(0.3),
    "linear": o.linear_schedule(0.1, 1.0, 10, 3),
    "linear none": o.linear_schedule(0.1, 1.0, 0),
    "polynomial": o.polynomial_schedule(1.0, 0.1, 2.5, 20, 5),
    "cosine": o.cosine_decay_schedule(0.5, 20),
    "cosine options": o.cosine_decay_schedule(0.5, 20, 0.1, 2.0),
    "exponential": o.exponential_decay(0.5, 7, 0.9),
    "exponential options": o.exponential_decay(0.5, 7, 0.5, 4, True, 0.1),
    "exponential up": o.exponential_decay(0.5, 7, 1.5, 0, False, 0.8),
    "exponential zero": o.exponential_decay(0.5, 7, 0.0),
    "piecewise": o.piecewise_constant_schedule(0.5, {5: 0.1, 20: 3.0}),
    "piecewise none": o.piecewise_constant_schedule(0.5),
    "interpolate linear": o.piecewise_interpolate_schedule("linear", 0.5, {5: 0.1, 20: 3.0}),
    "interpolate cosine": o.piecewise_interpolate_schedule("cosine", 0.5, {5: 0.1, 20: 3.0}),
    "join": o.join_schedules([o.linear_schedule(0, 1, 5), o.constant_schedule(0.7), o.exponential_decay(0.7, 3, 0.5)],
                             [5, 12]),
    "warmup_constant": o.warmup_constant_schedule(0.1, 1.0, 9),
    "warmup_cosine": o.warmup_cosine_decay_schedule(0.0, 1.0, 5, 25, 0.2, 1.5),
    "warmup_exponential": o.warmup_exponential_decay_schedule(0.0, 1.0, 5, 7, 0.6, 3, False, 0.3),
    "sgdr": o.sgdr_schedule([{"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 10},
                             {"init_value": 0.1, "peak_value": 0.7, "warmup_steps": 3, "decay_steps": 15,
                              "end_value": 0.2, "exponent": 2.0}]),
    "linear_onecycle": o.linear_onecycle_schedule(27, 0.6),
    "cosine_onecycle": o.cosine_onecycle_schedule(27, 0.6, 0.4, 10.0, 100.0),
}

X = np.concatenate([random.normal(size=(3, 4)) * 3, [[0, 0, 100, -100]]]).astype("float32")
Y = np.concatenate([random.normal(size=(3, 4)), [[0, 1, 0, 1]]]).astype("float32")
P = np.array([[0.1, 0.2, 0.3, 0.4], [0, 0.5, 0.5, 0], [1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]], "float32")
L = jax.nn.log_softmax(jnp.asarray(X))
LOSSES = {
    "squared_error": (o.squared_error, X, Y),
    "l2_loss": (o.l2_loss, X, Y),
    "huber_loss": (o.huber_loss, X, Y),
    "huber_loss delta": (lambda a, b: o.huber_loss(a, b, delta=2.5), X, Y),
    "log_cosh": (o.log_cosh, X, Y),
    "cosine_similarity": (o.cosine_similarity, X, Y),
    "cosine_similarity axis": (lambda a, b: o.cosine_similarity(a, b, epsilon=100.0, axis=0), X, Y),
    "cosine_distance": (o.cosine_distance, X, Y),
    "sigmoid_binary_cross_entropy": (o.sigmoid_binary_cross_entropy, X, P),
    "hinge_loss": (o.hinge_loss, X, np.sign(Y - 0.01)),
    "kl_divergence": (o.losses.kl_divergence, L, P),
    "kl_divergence_with_log_targets": (o.losses.kl_divergence_with_log_targets, L, jax.nn.log_softmax(jnp.asarray(Y))),
    "smooth_labels": (lambda a, b: o.smooth_labels(b, 0.2) + 0 * a, X, P),
}


def loss(f, x, y):
    x, y = jnp.asarray(x), jnp.asarray(y)
    return {"x": packed(x), "y": packed(y), "value": packed(f(x, y)), "gradient": packed(jax.grad(lambda v: f(v, y).sum())(x))}


data = {
    "versions": {m.__name__: m.__version__ for m in (jax, jaxlib, np, optax)},
    "params": {k: packed(v) for k, v in PARAMS.items()},
    "grads": {k: packed(np.stack([g[k] for g in GRADS])) for k in SHAPES},
    "optimizers": {k: updates_of(v, PARAMS, GRADS, flat) for k, v in OPTIMIZERS.items()},
    "lookaheads": {k: lookahead_of(v) for k, v in LOOKAHEADS.items()},
    "schedules": {k: packed(np.asarray([float(f(jnp.int32(t))) for t in range(32)], "float32")) for k, f in SCHEDULES.items()},
    "losses": {k: loss(*v) for k, v in LOSSES.items()},
    "global_norm": packed(optax.global_norm(PARAMS)),
}
PATH.write_text(json.dumps(data))
print(data["versions"], len(data["optimizers"]), len(data["schedules"]), len(data["losses"]))
