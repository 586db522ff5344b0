// Rows of training steps. Model and optimizer state are donated.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "work.h"

namespace peers {

using Model = sa::nn::MLP<>;

inline sa::Array squared_error(const Model& model, const sa::Array& x, const sa::Array& y) {
  return sa::mean(sa::square(y - sa::vmap(model)(x)));
}

/// Equinox's autoparallelism page: MLP 4-32-4, a batch (by default 16) sharded over all devices, Adam.
inline Works seed_step(std::int64_t batch) {
  if (batch == 0) batch = 16;
  const auto sharding = sa::PositionalSharding(sa::create_device_mesh({sa::device_count(), 1}));
  const auto replicated = sharding.replicate();
  const auto optim = sa::optim::adam(3e-4);
  using State = sa::optim::AdamState<Model>;
  struct Training {
    Model model;
    State state;
    sa::Array x, y;
  };
  auto t = std::make_shared<Training>();
  t->model = sa::device_put(Model::init(4, 4, 32, 1, sa::random::PRNGKey(6789)), replicated);
  t->state = sa::device_put(optim.init(t->model), replicated);
  t->x = normal(1, {batch, 4});
  t->y = sa::device_put(sa::sin(t->x), sharding);
  t->x = sa::device_put(t->x, sharding);
  sa::block_until_ready(std::tuple(t->model, t->state, t->x, t->y));
  const auto step = sa::jit([=](Model model, State state, sa::Array x, sa::Array y) {
    std::tie(model, state) = sa::filter_shard(std::tuple(model, state), replicated);
    std::tie(x, y) = sa::filter_shard(std::tuple(x, y), sharding);
    const auto grads = sa::grad(squared_error)(model, x, y);
    const auto [updates, next] = optim.update(grads, state);
    model = sa::apply_updates(model, updates);
    return sa::filter_shard(std::tuple(model, next), replicated);
  });
  const auto call = [=] {
    std::tie(t->model, t->state) = step(std::move(t->model), std::move(t->state), t->x, t->y);
    sa::block_until_ready(t->model);
    sa::block_until_ready(t->state);
  };
  const auto check = [=] {
    Figures all;
    for (const Model* m : {&t->model, &t->state.mu, &t->state.nu})
      for (const sa::nn::Linear& l : m->layers)
        for (const sa::Array& a : {l.weight, l.bias}) all.push_back(digest(a));
    return all;
  };
  return {{"", call, check}};
}

/// Steps of Adam on `leaves` arrays of n numbers.
inline Works adam_on(std::int64_t leaves, std::int64_t n) {
  const auto optim = sa::optim::adam(0.1);
  using Leaves = std::vector<sa::Array>;
  struct Training {
    Leaves w, g;
    sa::optim::AdamState<Leaves> state;
  };
  auto t = std::make_shared<Training>();
  for (int k = 0; k < leaves; k++) {
    t->w.push_back(normal(2 * k + 1, {n}));
    t->g.push_back(normal(2 * k + 2, {n}));
  }
  t->state = optim.init(t->w);
  sa::block_until_ready(std::tuple(t->w, t->g, t->state));
  const auto step = sa::jit([=](Leaves w, sa::optim::AdamState<Leaves> state, Leaves g) {
    const auto [updates, next] = optim.update(g, state);
    return std::tuple(sa::apply_updates(w, updates), next);
  });
  const auto call = [=] {
    std::tie(t->w, t->state) = step(std::move(t->w), std::move(t->state), t->g);
    sa::block_until_ready(t->w);
    sa::block_until_ready(t->state);
  };
  const auto check = [=] {
    Figures all;
    for (const Leaves* l : {&t->w, &t->state.mu, &t->state.nu}) all.push_back(digest(l->back()));
    return all;
  };
  return {{"", call, check}};
}

inline Works adam(std::int64_t n) { return adam_on(1, n); }
inline Works adam_of_leaves(std::int64_t leaves) { return adam_on(leaves, 64); }

/// `call` and `check` for a step (model, x, y) -> (model, loss): the check runs four more steps.
template <class Step, class M>
Works training(const Step& step, M model, const sa::Array& x, const sa::Array& y) {
  sa::block_until_ready(std::tuple(model, x, y));
  auto m = std::make_shared<M>(std::move(model));
  auto loss = std::make_shared<sa::Array>();
  const auto call = [=] {
    std::tie(*m, *loss) = step(std::move(*m), x, y);
    sa::block_until_ready(*m);
    loss->block_until_ready();
  };
  const auto check = [=] {
    const auto now = [&] { return std::vector<double>{loss->astype(sa::float32).item<float>()}; };
    Figures losses{now()};
    for (int k = 0; k < 4; k++) {
      call();
      losses.push_back(now());
    }
    return losses;
  };
  return {{"", call, check}};
}

/// Eight layers of `width` (by default 512), a batch of half of it, SGD.
inline Works mlp(std::int64_t width) {
  if (width == 0) width = 512;
  const auto optim = sa::optim::sgd(100);
  const auto step = sa::jit([=](Model model, const sa::Array& x, const sa::Array& y) {
    const auto [loss, grads] = sa::value_and_grad(squared_error)(model, x, y);
    const auto [updates, next] = optim.update(grads, optim.init(model));
    return std::tuple(sa::apply_updates(model, updates), loss);
  });
  const sa::Array x = matrix(1, {width / 2, width});
  const Model model = in_precision(Model::init(width, width, width, 7, sa::random::PRNGKey(6789)));
  return training(step, model, x, sa::sin(x));
}

struct Block {
  sa::Array norm1, qkv, out, norm2, up, down;
};
struct Transformer {
  sa::Array embed, position, norm;
  std::vector<Block> blocks;
};

/// The sizes of a transformer of some width.
struct Sizes {
  std::int64_t width = 128, batch = 8, layers = 2, head_width = 32, length = 64, vocabulary = 256;
  std::int64_t heads() const { return width / head_width; }
};
inline Sizes sizes_of(std::int64_t width) {
  if (width == 0) return {};
  return {.width = width, .layers = 4, .head_width = 64, .length = 512, .vocabulary = 8192};
}

inline Transformer make_transformer(const Sizes& s) {
  const std::int64_t width = s.width, hidden = 4 * width;
  const auto weight = [](int seed, std::int64_t in, std::int64_t out) {
    return normal(seed, {in, out}) / std::sqrt(static_cast<double>(in));
  };
  Transformer t{weight(1, s.vocabulary, width), weight(2, s.length, width), sa::ones({width}), {}};
  for (int k = 0; k < s.layers; k++)
    t.blocks.push_back({sa::ones({width}), weight(10 * k + 11, width, 3 * width),
                        weight(10 * k + 12, width, width), sa::ones({width}),
                        weight(10 * k + 13, width, hidden), weight(10 * k + 14, hidden, width)});
  return t;
}

inline sa::Array normalised(const sa::Array& x, const sa::Array& scale) {
  return x * sa::rsqrt(sa::mean(x * x, {.axis = -1, .keepdims = true}) + 1e-5) * scale;
}
inline sa::Array attention(const Sizes& s, const Block& b, const sa::Array& x) {
  const auto by_head = [&](const sa::Array& v) {
    return v.reshape({s.batch, s.length, s.heads(), s.head_width}).transpose({0, 2, 1, 3});
  };
  const std::vector<sa::Array> qkv = sa::split(sa::matmul(x, b.qkv), 3, -1);
  const sa::Array q = by_head(qkv[0]), k = by_head(qkv[1]), v = by_head(qkv[2]);
  const sa::Array scores =
      sa::matmul(q, k.transpose({0, 1, 3, 2})) / std::sqrt(static_cast<double>(s.head_width));
  const sa::Array causal = sa::tril(sa::ones({s.length, s.length}, sa::bool_));
  const sa::Array mixed = sa::matmul(sa::softmax(sa::where(causal, scores, -1e9)), v);
  return sa::matmul(mixed.transpose({0, 2, 1, 3}).reshape({s.batch, s.length, s.width}), b.out);
}
inline sa::Array language_loss(const Sizes& s, const Transformer& t, const sa::Array& tokens,
                               const sa::Array& targets) {
  sa::Array h = sa::take(t.embed, tokens, 0) + t.position;
  for (const Block& b : t.blocks) {
    h = h + attention(s, b, normalised(h, b.norm1));
    h = h + sa::matmul(sa::gelu(sa::matmul(normalised(h, b.norm2), b.up)), b.down);
  }
  const sa::Array logits = sa::matmul(normalised(h, t.norm), t.embed.T());
  return sa::mean(sa::losses::softmax_cross_entropy_with_integer_labels(logits, targets));
}

/// A decoder with tied embeddings, SGD: two blocks, or four larger ones of this width.
inline Works transformer(std::int64_t width) {
  const Sizes s = sizes_of(width);
  const auto optim = sa::optim::sgd(0.1);
  const auto step = sa::jit([=](Transformer t, const sa::Array& tokens, const sa::Array& targets) {
    const auto loss_of = [=](const Transformer& now, const sa::Array& x, const sa::Array& y) {
      return language_loss(s, now, x, y);
    };
    const auto [loss, grads] = sa::value_and_grad(loss_of)(t, tokens, targets);
    const auto [updates, next] = optim.update(grads, optim.init(t));
    return std::tuple(sa::apply_updates(t, updates), loss);
  });
  const sa::Array text = sa::random::randint(sa::random::key(9), {s.batch, s.length + 1}, 0, s.vocabulary);
  const auto columns = [&](std::int64_t from) {
    return sa::Array(text[{sa::all, sa::slice(from, from + s.length)}]);
  };
  return training(step, make_transformer(s), columns(0), columns(1));
}

}  // namespace peers
