// A transformer that writes verse, on a mesh of 2 x 4 devices: batches are sharded over "data", heads and hidden features over "model".
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

namespace sa = shardarray;
using sa::Array;

constexpr int width = 64, heads = 4, head_width = 16, length = 64, depth = 2, letters = 128, batch = 16;

// With arrays this struct is the model, with shardings it says where each array is placed.
template <class T> struct BlockOf { T norm1, qkv, out, norm2, up, down; };
template <class T> struct ModelOf {
  T embed, position, norm;
  std::vector<BlockOf<T>> blocks;
};
using Model = ModelOf<Array>;

Model init_model(const Array& key) {
  int k = 0;
  const auto weight = [&](const sa::Shape& shape, double fan_in = width) -> Array {
    return sa::random::normal(sa::random::fold_in(key, k++), shape) / std::sqrt(fan_in);
  };
  Model m{weight({letters, width}), weight({length, width}), sa::ones(width), {}};
  for (int i = 0; i < depth; i++)
    m.blocks.push_back({sa::ones(width), weight({width, 3, heads, head_width}),
                        weight({heads, head_width, width}), sa::ones(width), weight({width, 4 * width}),
                        weight({4 * width, width}, 4 * width)});
  return m;
}

// Tensor parallelism: the first weight of a pair is sharded by columns (or heads), the second by rows, so that only the output of the
// pair is a partial sum that has to be combined over devices.
ModelOf<sa::NamedSharding> places(const sa::Mesh& mesh) {
  const sa::NamedSharding whole(mesh, sa::P()), columns(mesh, sa::P(sa::none, "model")),
      rows(mesh, sa::P("model")), by_head(mesh, sa::P(sa::none, sa::none, "model"));
  return {whole, whole, whole, {depth, {whole, by_head, rows, whole, columns, rows}}};
}

// Keys and values of the positions so far: [heads, length, head_width].
using Cache = std::pair<Array, Array>;

// x: [t, width], the features at positions start, start + 1, ..; with a cache they also attend to earlier positions.
Array attention(const BlockOf<Array>& b, const Array& x, const Array& start, Cache* cache) {
  const Array qkv = sa::einsum("td,dchk->chtk", x, b.qkv);
  Array k = qkv[1], v = qkv[2];
  if (cache) {
    k = cache->first = sa::dynamic_update_slice_in_dim(cache->first, k, start, 1);
    v = cache->second = sa::dynamic_update_slice_in_dim(cache->second, v, start, 1);
  }
  const Array here = (start + sa::arange(x.shape()[0]))[{sa::all, sa::newaxis}];
  const Array scores = sa::einsum("htk,hsk->hts", qkv[0], k) / std::sqrt(head_width);
  const Array weights = sa::softmax(sa::where(sa::arange(k.shape()[1]) <= here, scores, -1e9));
  return sa::einsum("hts,hsk,hkd->td", weights, v, b.out);
}

// tokens: int32[t], at positions start, start + 1, .. Returns the logits of the tokens that follow each, [t, letters].
Array logits_of(const Model& m, const Array& tokens, const Array& start, std::vector<Cache>* caches) {
  const auto norm = [](const Array& x, const Array& scale) -> Array { return sa::standardize(x) * scale; };
  Array x = m.embed[tokens] + sa::dynamic_slice_in_dim(m.position, start, tokens.shape()[0]);
  for (std::size_t i = 0; i < m.blocks.size(); i++) {
    const auto& b = m.blocks[i];
    x += attention(b, norm(x, b.norm1), start, caches ? &(*caches)[i] : nullptr);
    x += sa::matmul(sa::gelu(sa::matmul(norm(x, b.norm2), b.up)), b.down);
  }
  return sa::matmul(norm(x, m.norm), m.embed.T());
}

// windows: int32[batch, length + 1]
Array loss_of(const Model& m, const Array& windows) {
  return sa::mean(sa::vmap([&](const Array& w) {
    const Array logits = logits_of(m, w[sa::slice(0, length)], 0, nullptr), next = w[sa::slice(1, sa::none)];
    return sa::losses::softmax_cross_entropy_with_integer_labels(logits, next);
  })(windows));
}

// Continues `prompt` until the context is full: a token per step, all steps in one program. Returns tokens and logits.
std::pair<Array, Array> write_on(const Model& m, const Array& prompt, const Array& key, double temperature) {
  const auto step = [&](std::pair<std::vector<Cache>, Array> state, const Array& t) {
    const Array token = state.second, logits = logits_of(m, token, t, &state.first)[0];
    const Array drawn = sa::random::categorical(sa::random::fold_in(key, t), logits / temperature);
    state.second = sa::where(t + 1 < prompt.size(), prompt[t + 1], drawn).reshape(1);
    return std::pair(state, std::pair(token[0], logits));
  };
  const Array empty = sa::zeros({heads, length, head_width});
  const std::pair first(std::vector(depth, Cache(empty, empty)), Array(prompt[sa::slice(0, 1)]));
  return sa::scan(step, first, sa::arange(length)).second;
}

void print_transfers(const sa::Explanation& plan) {
  std::map<std::string, std::int64_t> bytes;
  for (const auto& t : plan.transfers()) bytes[t.kind + " over " + t.axes] += t.bytes_per_device;
  for (const auto& [what, n] : bytes) std::cout << what << ": " << n << " B per device a step\n";
}

// Trains with the model at `place` and batches at `batch_place`. Returns the model, and the loss of every step.
template <class Place, class BatchPlace>
std::pair<Model, std::vector<double>> train(const Array& text, int steps, const Place& place,
                                            const BatchPlace& batch_place) {
  // Weight decay for matrices only, gradients clipped to norm 1, a rate with warm-up and cosine decay.
  const auto rate = sa::optim::warmup_cosine_decay_schedule(0, 4e-3, 20, 1000);
  const auto is_matrix = [](const Array& x) { return x.ndim() > 1; };
  const auto optim = sa::optim::chain(sa::optim::clip_by_global_norm(1),
                                      sa::optim::adamw(rate, {.weight_decay = 0.01}, is_matrix));
  Model model = sa::device_put(init_model(sa::random::key(0)), place);
  auto state = optim.init(model);
  const auto step = sa::jit([=](const Model& m, const decltype(state)& s, const Array& windows) {
    const auto [loss, grads] = sa::value_and_grad(loss_of)(m, windows);
    const auto [updates, next] = optim.update(grads, s, m);
    return std::tuple(sa::filter_shard(sa::apply_updates(m, updates), place), next, loss);
  });
  std::vector<double> losses;
  for (int i = 0; i < steps; i++) {
    const Array from = sa::random::randint(sa::random::key(i), {batch, 1}, 0, text.size() - length);
    const Array windows = sa::device_put(text[from + sa::arange(length + 1)], batch_place);
    if (i == 0) print_transfers(sa::explain(step, sa::donated(model), sa::donated(state), windows));
    Array loss;
    std::tie(model, state, loss) = step(std::move(model), std::move(state), windows);
    losses.push_back(loss.item<double>());
    if (i % 50 == 0) std::printf("step %4d: loss %.3f\n", i, losses.back());
  }
  return {model, losses};
}

int main(int argc, char** argv) {
  const int steps = argc > 1 && std::string_view(argv[1]) == "--quick" ? 60 : 1000;
  sa::set_cpu_device_count(8);
  const sa::Mesh mesh = sa::make_mesh({{"data", 2}, {"model", 4}});
  std::ifstream file(SHARDARRAY_EXAMPLE_DATA "/sonnets.txt");
  const auto encode = [](const auto& s) { return sa::array(std::vector<int>(s.begin(), s.end())); };
  const Array text = encode(std::vector<char>{std::istreambuf_iterator<char>(file), {}});

  const auto [model, losses] = train(text, steps, places(mesh), sa::NamedSharding(mesh, sa::P("data")));
  for (const Array& w : {model.blocks[0].up, model.blocks[0].down}) sa::visualize_array_sharding(w);
  const sa::Device one = sa::devices()[0];
  const double difference = std::abs(losses[9] - train(text, 10, one, one).second[9]);
  std::printf("the same on one device: the loss of step 9 differs by %.1g\n", difference);

  const Array prompt = encode(std::string("Shall I "));
  const auto [tokens, logits] = sa::jit(write_on)(model, prompt, sa::random::key(1), 0.5);
  const auto verse = tokens.to_vector<std::uint8_t>();
  std::cout << "it writes: " << std::string(verse.begin(), verse.end()) << "\n";
  const double by_cache = sa::max(sa::abs(logits - logits_of(model, tokens, 0, nullptr))).item<double>();
  std::printf("logits with the cache, and of the whole text at once, differ by %.1g\n", by_cache);
  return losses.back() < losses[0] / 2 && difference < 1e-4 && by_cache < 1e-3 ? 0 : 1;
}
