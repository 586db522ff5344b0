"""The rows of bench/peers/training.h, in torch's own functions where it has one. Models and states are changed in
place."""

import math

import jax_numbers
import torch
import torch.nn.functional as F
from side import Work
from torch_work import DEVICE, eager, figures_of, normal, tensor, wait
from transformer_sizes import sizes_of


def parameter(x):
    return x.clone().requires_grad_()


def adam_on(leaves, n, wrap):
    """Steps of Adam on so many arrays of n numbers."""
    w = [parameter(normal(2 * k + 1, (n,))) for k in range(leaves)]
    for k, leaf in enumerate(w):
        leaf.grad = normal(2 * k + 2, (n,))
    optim = torch.optim.Adam(w, lr=0.1, **updates_for(wrap))
    step = wrap(optim.step)

    def call():
        step()
        wait()

    def check(digest):
        state = optim.state[w[-1]]
        return [figures_of(digest, a) for a in (w[-1], state["exp_avg"], state["exp_avg_sq"])]

    return [Work("", call, check)]


def adam(n, wrap):
    return adam_on(1, n, wrap)


def adam_of_leaves(leaves, wrap):
    return adam_on(leaves, 64, wrap)


def updates_for(wrap):
    """The fastest way of torch's optimizers: one kernel that they bring, or formulas for the compiler to make one of."""
    return {"fused": True} if wrap is eager else {"foreach": True}


def training(loss_of, rate, parameters, wrap, *batch):
    """Steps of SGD: the check makes four more."""
    optim = torch.optim.SGD(parameters, lr=rate, fused=True)
    loss_of = wrap(loss_of)
    loss = None

    def call():
        nonlocal loss
        optim.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optim.step()
        wait()

    def check(_):
        losses = [[loss.item()]]
        for _ in range(4):
            call()
            losses.append([loss.item()])
        return losses

    return [Work("", call, check)]


def linear_layers(sizes, seed):
    """Weights and biases as Equinox's MLP has them."""
    layers = []
    for key, inputs, outputs in zip(
        jax_numbers.split(jax_numbers.key_of(seed), len(sizes) - 1), sizes, sizes[1:]
    ):
        bound = 1 / math.sqrt(inputs)
        for k, shape in zip(jax_numbers.split(key), ((outputs, inputs), (outputs,))):
            layers.append(parameter(tensor(jax_numbers.uniform(k, shape, -bound, bound))))
    return layers


def mlp(width, wrap):
    width = width or 512
    parameters = linear_layers([width] * 9, 6789)

    def loss(x, y):
        for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2]):
            x = F.relu(F.linear(x, weight, bias))
        return F.mse_loss(F.linear(x, *parameters[-2:]), y)

    x = normal(1, (width // 2, width))
    return training(loss, 100, parameters, wrap, x, torch.sin(x))


def make_transformer(s):
    def weight(seed, inputs, outputs):
        return parameter(normal(seed, (inputs, outputs)) / math.sqrt(inputs))

    def ones():
        return parameter(torch.ones(s.width, device=DEVICE))

    blocks = [
        {
            "norm1": ones(),
            "qkv": weight(10 * k + 11, s.width, 3 * s.width),
            "out": weight(10 * k + 12, s.width, s.width),
            "norm2": ones(),
            "up": weight(10 * k + 13, s.width, 4 * s.width),
            "down": weight(10 * k + 14, 4 * s.width, s.width),
        }
        for k in range(s.layers)
    ]
    return {
        "embed": weight(1, s.vocabulary, s.width),
        "position": weight(2, s.length, s.width),
        "norm": ones(),
        "blocks": blocks,
    }


def normalised(x, scale):
    return F.rms_norm(x, scale.shape, scale, eps=1e-5)


def attention(s, b, x):
    q, k, v = (
        part.reshape(s.batch, s.length, s.heads, s.head_width).transpose(1, 2)
        for part in (x @ b["qkv"]).split(s.width, -1)
    )
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(1, 2).reshape(s.batch, s.length, s.width) @ b["out"]


def language_loss(s, t, tokens, targets):
    h = F.embedding(tokens, t["embed"]) + t["position"]
    for b in t["blocks"]:
        h = h + attention(s, b, normalised(h, b["norm1"]))
        h = h + F.gelu(normalised(h, b["norm2"]) @ b["up"], approximate="tanh") @ b["down"]
    logits = normalised(h, t["norm"]) @ t["embed"].T
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def transformer(width, wrap):
    s = sizes_of(width)
    text = tensor(jax_numbers.integers(jax_numbers.key_of(9), (s.batch, s.length + 1), s.vocabulary))
    t = make_transformer(s)
    parameters = [v for part in (t, *t["blocks"]) for v in part.values() if isinstance(v, torch.Tensor)]

    def loss(tokens, targets):
        return language_loss(s, t, tokens, targets)

    return training(loss, 0.1, parameters, wrap, text[:, :-1].contiguous(), text[:, 1:].contiguous())


ROWS = {"adam": adam, "adam_of_leaves": adam_of_leaves, "mlp": mlp, "transformer": transformer}
