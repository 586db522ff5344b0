// Attention in blocks, compared with all scores at once, JAX and Equinox; its memory; caches; shardings.
#include <cmath>
#include <numbers>

#include "golden.h"
#include "messages.h"

namespace attention_test {

namespace sa = shardarray;
using golden::Json;
using sa::Array;
using sa::none;
using sa::P;
using sa::Shape;
namespace nn = sa::nn;

namespace {

const Json& cases() {
  static const Json all = golden::load("attention.json")["cases"];
  return all;
}
std::vector<Array> arrays(const Json& list) {
  std::vector<Array> r;
  for (const Json& x : list) r.push_back(golden::array(x));
  return r;
}
Array numbers(const Shape& shape, double step = 1) {
  return sa::sin(sa::arange(sa::num_elements(shape), sa::float32) * step).reshape(shape);
}

struct Heads {
  Array q, k, v;
};
Heads heads(const Shape& q, const Shape& k, const Shape& v) {
  return {numbers(q, 0.7), numbers(k, 1.3), numbers(v, 0.9)};
}

// Reference: all scores at once, for arrays with a batch.
Array plain(const Heads& x, const Array& bias, const Array& counted) {
  const Shape q = x.q.shape(), k = x.k.shape();
  const std::int64_t each = q[2] / k[2];
  const auto serve = [&](const Array& a) {
    return sa::einsum("bskgh->bskgh",
                      sa::broadcast_to(sa::expand_dims(a, 3), {k[0], k[1], k[2], each, a.shape()[3]}))
        .reshape({k[0], k[1], q[2], a.shape()[3]});
  };
  Array s = sa::einsum("bqnh,bknh->bnqk", x.q, serve(x.k)) / std::sqrt(static_cast<double>(q[3]));
  if (bias.has_value()) s = s + bias;
  if (counted.has_value()) s = sa::where(counted, s, -1e30);
  return sa::einsum("bnqk,bknh->bqnh", sa::softmax(s), serve(x.v));
}

template <class F> Heads slopes(const F& f, const Heads& x) {
  return sa::grad([&](const Heads& h) { return sa::sum(sa::sin(f(h))); })(x);
}
void check_same(const Heads& a, const Heads& b) {
  CHECK(golden::close(golden::values(a.q), golden::values(b.q), 2e-5, 1e-6));
  CHECK(golden::close(golden::values(a.k), golden::values(b.k), 2e-5, 1e-6));
  CHECK(golden::close(golden::values(a.v), golden::values(b.v), 2e-5, 1e-6));
}

}  // namespace

TEST_CASE("attention: dot_product_attention has JAX's results and gradients, in blocks of any size") {
  int seen = 0;
  for (const Json& c : cases()) {
    if (c["name"] != "dot_product_attention") continue;
    CAPTURE(c["options"].dump());
    const Json& o = c["options"];
    const std::vector<Array> in = arrays(c["inputs"]);
    nn::AttentionOptions options{.is_causal = o.value("is_causal", false)};
    if (o.contains("scale")) options.scale = o["scale"].get<double>();
    if (o.contains("local_window_size")) {
      const Json& window = o["local_window_size"];
      options.local_window_size = window.is_array()
                                      ? std::pair<std::int64_t, std::int64_t>(window[0], window[1])
                                      : std::pair<std::int64_t, std::int64_t>(window, window);
    }
    for (const auto& [name, to] : {std::pair("bias", &options.bias), std::pair("mask", &options.mask),
                                   std::pair("key_value_seq_lengths", &options.key_value_seq_lengths)})
      if (c["given"].contains(name)) *to = golden::array(c["given"][name]);
    const bool half = sa::itemsize(in[0].dtype()) == 2;
    const double rel = half ? 2e-2 : 1e-5, abs = half ? 1e-2 : 2e-6;
    for (const int block : {256, 4, 3, 1}) {
      CAPTURE(block);
      options.block_size = block;
      const auto f = [&](const Heads& x) { return nn::dot_product_attention(x.q, x.k, x.v, options); };
      const Heads x{in[0], in[1], in[2]};
      const Array y = f(x);
      CHECK(y.dtype() == in[0].dtype());
      CHECK(golden::close(y, c["y"], rel, abs));
      const Heads g = sa::grad([&](const Heads& h) { return sa::sum(sa::sin(f(h).astype(sa::float32))); })(x);
      CHECK(golden::close(g.q, c["grads"][0], rel, abs));
      CHECK(golden::close(g.k, c["grads"][1], rel, abs));
      CHECK(golden::close(g.v, c["grads"][2], rel, abs));
    }
    seen++;
  }
  CHECK(seen == 8);
}

TEST_CASE(
    "attention: blocks are the softmax of all scores: values, first and second derivatives, jit and vmap") {
  const Heads x = heads({2, 6, 4, 3}, {2, 7, 2, 3}, {2, 7, 2, 5});
  const Array bias = numbers({2, 4, 6, 7}, 2.1), counted = numbers({2, 1, 6, 7}, 3.3) > -0.3;
  const auto blocks = [&](const Heads& h) {
    return nn::dot_product_attention(h.q, h.k, h.v, {.bias = bias, .mask = counted, .block_size = 3});
  };
  const auto whole = [&](const Heads& h) { return plain(h, bias, counted); };
  CHECK(golden::close(golden::values(blocks(x)), golden::values(whole(x)), 1e-5, 1e-6));
  CHECK(golden::close(golden::values(sa::jit(blocks)(x)), golden::values(whole(x)), 1e-5, 1e-6));
  check_same(slopes(blocks, x), slopes(whole, x));
  check_same(sa::jit([&](const Heads& h) { return slopes(blocks, h); })(x), slopes(whole, x));
  const auto second = [&](const auto& f) {
    return sa::grad([&](const Heads& h) {
      const Heads g = slopes(f, h);
      return sa::sum(sa::sin(3 * g.q)) + sa::sum(sa::sin(2 * g.k)) + sa::sum(g.v * g.v);
    })(x);
  };
  check_same(second(blocks), second(whole));
  // A bias has a derivative, too.
  const auto by_bias = [&](const auto& f) {
    return sa::grad([&](const Array& b) { return sa::sum(sa::sin(f(b))); })(bias);
  };
  const Array expected = by_bias([&](const Array& b) { return plain(x, b, counted); });
  CHECK(golden::close(golden::values(by_bias([&](const Array& b) {
                        return nn::dot_product_attention(x.q, x.k, x.v,
                                                         {.bias = b, .mask = counted, .block_size = 2});
                      })),
                      golden::values(expected), 2e-5, 1e-6));
  // vmap over the batch gives the same as a batch.
  const Array mapped = sa::vmap([](const Array& q, const Array& k, const Array& v) {
    return nn::dot_product_attention(q, k, v, {.block_size = 3});
  })(x.q, x.k, x.v);
  CHECK(golden::close(golden::values(mapped), golden::values(plain(x, {}, {})), 1e-5, 1e-6));
  // Scores that overflow alone, a first block of -inf, and float64.
  const Array large = x.q * 300,
              out = sa::where(sa::arange(7) < 3, -std::numeric_limits<double>::infinity(), 0.0);
  const Array y =
      nn::dot_product_attention(large, x.k, x.v, {.bias = out.reshape({1, 1, 1, 7}), .block_size = 3});
  CHECK(golden::close(golden::values(y),
                      golden::values(plain({large, x.k, x.v}, out.reshape({1, 1, 1, 7}), {})), 1e-5, 1e-5));
  CHECK(nn::dot_product_attention(x.q.astype(sa::float64), x.k, x.v).dtype() == sa::float64);
}

TEST_CASE("attention: memory grows with the length, not with its square, in the derivative too") {
  const auto peak = [](std::int64_t length, bool derivative) {
    const Shape shape{length, 1, 16};
    const auto f = [](const Array& q, const Array& k, const Array& v) {
      return nn::dot_product_attention(q, k, v, {.is_causal = true, .block_size = 64});
    };
    const auto g = [&](const Array& q, const Array& k, const Array& v) {
      return sa::grad([&](const std::array<Array, 3>& x) { return sa::sum(f(x[0], x[1], x[2])); })(
          std::array{q, k, v});
    };
    const Array x = sa::zeros(shape);
    return derivative ? sa::explain(g, x, x, x).peak_bytes_per_device
                      : sa::explain(f, x, x, x).peak_bytes_per_device;
  };
  for (const bool derivative : {false, true}) {
    CAPTURE(derivative);
    const auto small = static_cast<double>(peak(1024, derivative)),
               large = static_cast<double>(peak(4096, derivative));
    CHECK(large / small < 4.5);              // the square would be 16
    CHECK(large < 4 * 4096.0 * 4096.0 / 4);  // a quarter of one matrix of all scores
  }
}

TEST_CASE(
    "attention: MultiheadAttention has Equinox's bits, results and gradients, with dropout and rotations") {
  const Json old = golden::load("nn.json")["cases"];
  int seen = 0;
  for (const Json& c : old) {
    if (c["name"] != "MultiheadAttention") continue;
    const Json &a = c["attrs"], &in = c["inputs"], &out = c["outputs"];
    CAPTURE(a.dump());
    const auto layer =
        nn::MultiheadAttention::init(a["heads"], a["query_size"], sa::random::PRNGKey(a["seed"].get<int>()),
                                     {.use_query_bias = a.value("use_query_bias", false),
                                      .use_key_bias = a.value("use_key_bias", false),
                                      .use_value_bias = a.value("use_value_bias", false),
                                      .use_output_bias = a.value("use_output_bias", false)});
    const std::vector<std::string> paths = sa::tree_paths(layer);
    const std::vector<Array> leaves = sa::tree_leaves(layer);
    CHECK(leaves.size() == out["params"].size());
    for (std::size_t k = 0; k < leaves.size(); k++)
      CHECK(golden::same_bits(leaves[k], out["params"][paths[k]]));
    const Array q = golden::array(in["q"]), kv = golden::array(in["kv"]), mask = golden::array(in["mask"]);
    for (const int block : {256, 2}) {
      CHECK(golden::close(layer(q, kv, kv, {.block_size = block}), out["y"], 1e-5, 1e-6));
      CHECK(
          golden::close(layer(q, kv, kv, {.mask = mask, .block_size = block}), out["y_masked"], 1e-5, 1e-6));
    }
    seen++;
  }
  CHECK(seen == 3);
  for (const Json& c : cases()) {
    if (c["name"] != "multihead") continue;
    const sa::random::partitionable mode(c["partitionable"].get<bool>());
    const auto layer = nn::MultiheadAttention::init(2, 6, sa::random::PRNGKey(3),
                                                    {.key_size = 5,
                                                     .value_size = 4,
                                                     .output_size = 3,
                                                     .qk_size = 4,
                                                     .vo_size = 5,
                                                     .use_output_bias = true,
                                                     .dropout_p = 0.3});
    const std::vector<Array> leaves = sa::tree_leaves(layer), in = arrays(c["inputs"]);
    for (std::size_t k = 0; k < leaves.size(); k++) CHECK(golden::same_bits(leaves[k], c["params"][k]));
    const auto rotated = [](const Array& q, const Array& k, const Array& v) {
      const auto rope = sa::vmap([](const Array& x) { return nn::RotaryPositionalEmbedding{4}(x); },
                                 {.in_axes = 1, .out_axes = 1});
      return nn::MultiheadAttention::Heads{rope(q), rope(k), v};
    };
    for (const int block : {256, 3}) {
      const auto run = [&](const nn::MultiheadAttention& m, const Array& q) {
        return m(q, in[1], in[2], rotated,
                 {.mask = in[3], .key = sa::random::PRNGKey(5), .block_size = block});
      };
      CHECK(golden::close(run(layer, in[0]), c["y"], 1e-5, 1e-6));
      const auto grads = sa::grad([&](const std::pair<nn::MultiheadAttention, Array>& both) {
        return sa::sum(sa::sin(run(both.first, both.second)));
      })(std::pair(layer, in[0]));
      const std::vector<Array> slopes = sa::tree_leaves(grads);
      REQUIRE(slopes.size() == c["grads"].size());
      for (std::size_t k = 0; k < slopes.size(); k++)
        CHECK(golden::close(slopes[k], c["grads"][k], 2e-5, 2e-6));
    }
    const auto still = nn::inference_mode(layer);
    CHECK(golden::values(still(in[0], in[1], in[2])) ==
          golden::values(layer(in[0], in[1], in[2], {.inference = true})));
    seen++;
  }
  CHECK(seen == 5);
  // The bits of dropout do not depend on the blocks, in any generator.
  const sa::random::philox philox(true);
  const auto layer = nn::MultiheadAttention::init(2, 6, sa::random::key(1), {.dropout_p = 0.5});
  const Array x = numbers({9, 6}), key = sa::random::key(2);
  CHECK(golden::close(golden::values(layer(x, x, x, {.key = key, .block_size = 4})),
                      golden::values(layer(x, x, x, {.key = key})), 1e-5, 1e-6));
}

TEST_CASE("attention: rotations have Equinox's numbers, and turn with the position") {
  for (const Json& c : cases())
    if (c["name"] == "rope")
      CHECK(
          golden::close(nn::RotaryPositionalEmbedding{6}(golden::array(c["inputs"][0])), c["y"], 1e-5, 1e-6));
  const nn::RotaryPositionalEmbedding rope{4};
  const Array x = numbers({6, 4});
  const Array part = rope(x[sa::slice(2, 5)], 2);
  CHECK(golden::close(golden::values(part), golden::values(rope(x)[sa::slice(2, 5)]), 1e-5, 1e-6));
  CHECK(rope(x.astype(sa::bfloat16)).dtype() == sa::bfloat16);
}

TEST_CASE("attention: rotations in float64 have its digits, far along the sequence too") {
  const nn::RotaryPositionalEmbedding rope{4, 10000, sa::float64};
  const Array x = sa::array({{1.0, 2.0, 3.0, 4.0}, {5.0, 6.0, 7.0, 8.0}}, sa::float64);
  const double first = 1000003;
  const std::vector<double> got = rope(x, Array(1000003)).to_vector<double>(), in = x.to_vector<double>();
  for (std::size_t row = 0; row < 2; row++)
    for (std::size_t k = 0; k < 2; k++) {
      const double angle = (first + static_cast<double>(row)) / std::pow(10000.0, static_cast<double>(k) / 2);
      const double low = in[row * 4 + k], high = in[row * 4 + k + 2];
      CHECK(std::abs(got[row * 4 + k] - (low * std::cos(angle) - high * std::sin(angle))) < 1e-8);
      CHECK(std::abs(got[row * 4 + k + 2] - (high * std::cos(angle) + low * std::sin(angle))) < 1e-8);
    }
}

TEST_CASE("attention: steps with a cache are the whole sequence at once") {
  const Heads x = heads({6, 4, 3}, {6, 2, 3}, {6, 2, 5});
  const Array whole = nn::dot_product_attention(x.q, x.k, x.v, {.is_causal = true});
  const auto rows = [](const Array& a, int from, int to) { return a[sa::slice(from, to)]; };
  auto cache = nn::KeyValueCache::init(8, 2, 3, 5);
  const auto step = sa::jit(
      [](const nn::KeyValueCache& c, const Heads& h) { return c.attend(h.q, h.k, h.v, {.block_size = 3}); });
  std::vector<Array> parts;
  for (const auto& [from, to] : {std::pair(0, 3), std::pair(3, 4), std::pair(4, 6)}) {
    auto [y, next] = step(cache, Heads{rows(x.q, from, to), rows(x.k, from, to), rows(x.v, from, to)});
    parts.push_back(y);
    cache = next;
  }
  CHECK(cache.length.item<int>() == 6);
  CHECK(golden::close(golden::values(sa::concatenate(parts)), golden::values(whole), 1e-5, 1e-6));
}

TEST_CASE("attention: heads and examples that are cut move nothing, and have the values of one device") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Heads x = heads({4, 6, 2, 3}, {4, 7, 2, 3}, {4, 7, 2, 3});
  const auto f = [](const Heads& h) { return nn::dot_product_attention(h.q, h.k, h.v, {.block_size = 3}); };
  const auto g = [&](const Heads& h) { return slopes(f, h); };
  for (const P& spec : {P("x"), P("x", none, "y"), P(none, none, "y")}) {
    const Heads cut = sa::device_put(x, sa::NamedSharding(mesh, spec));
    CHECK(golden::close(golden::values(sa::jit(f)(cut)), golden::values(f(x)), 1e-5, 1e-6));
    check_same(sa::jit(g)(cut), g(x));
    CHECK(sa::explain(f, cut).transfers().empty());
    CHECK(sa::explain(g, cut).transfers().empty());
  }
  // Sharded along the queries or the keys it is the same value, whatever moves.
  for (const P& spec : {P(none, "x"), P(none, "y")}) {
    const Heads cut{sa::device_put(x.q, sa::NamedSharding(mesh, spec)), x.k, x.v},
        other{x.q, sa::device_put(x.k, sa::NamedSharding(mesh, spec)), x.v};
    CHECK(golden::close(golden::values(sa::jit(f)(cut)), golden::values(f(x)), 1e-5, 1e-6));
    CHECK(golden::close(golden::values(sa::jit(f)(other)), golden::values(f(x)), 1e-5, 1e-6));
  }
}

TEST_CASE("attention: a window of any width is one") {
  const Array x = sa::sin(numbers({6, 2, 4}));
  const auto seen = [&](std::int64_t before, std::int64_t after, bool causal) {
    return nn::dot_product_attention(x, x, x,
                                     {.is_causal = causal, .local_window_size = std::pair(before, after)});
  };
  const auto all = [&](bool causal) { return nn::dot_product_attention(x, x, x, {.is_causal = causal}); };
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  CHECK(sa::array_equal(seen(any, any, false), all(false)));
  CHECK(sa::array_equal(seen(any, 0, false), all(true)));
  CHECK(sa::array_equal(seen(any, any, true), all(true)));
  CHECK(sa::array_equal(seen(2, any, false), seen(2, 5, false)));
}

TEST_CASE("attention: what is refused") {
  using sa::testing::message_of;
  const Array q = numbers({4, 2, 3}), key = sa::random::key(0), whole = sa::arange(4);
  const auto says = [&](const Array& a, const Array& b, const nn::AttentionOptions& o) {
    return message_of<sa::Error>([&] { nn::dot_product_attention(a, b, b, o); });
  };
  CHECK(says(whole, q, {}) ==
        "nn::dot_product_attention: queries i32[4], keys f32[4,2,3], values f32[4,2,3]. All are floating. "
        "Convert them "
        "with astype().");
  CHECK(says(numbers({4, 3, 3}), q, {}) ==
        "nn::dot_product_attention: queries f32[4,3,3], keys f32[4,2,3], values f32[4,2,3]. Queries are "
        "[batch, T, "
        "heads, size], keys and values [batch, S, groups, size], with or without the batch; groups divide "
        "heads. "
        "Correct them.");
  CHECK(
      says(q, sa::zeros({0, 2, 3}), {}) ==
      "nn::dot_product_attention: keys f32[0,2,3]. Weights are shared out among one key at least. Give it.");
  CHECK(says(q, q, {.mask = q}) ==
        "nn::dot_product_attention: the mask is f32[4,2,3]. They are bools. Convert them with astype().");
  CHECK(says(q, q, {.bias = numbers({3, 4})}) ==
        "nn::dot_product_attention: the bias is f32[3,4] for scores [1,2,4,4]. It is broadcast to [batch, "
        "heads, "
        "queries, keys]. Correct it.");
  CHECK(says(q, q, {.query_offset = whole}) ==
        "nn::dot_product_attention: query_offset is i32[4]. It is one position. Give a scalar, or map over a "
        "batch "
        "with vmap.");
  CHECK(says(q, q, {.key_value_seq_lengths = whole}) ==
        "nn::dot_product_attention: key_value_seq_lengths are i32[4] for a batch of 1. There is one length, "
        "or one for "
        "each element. Correct them.");
  CHECK(says(q, q, {.block_size = 0}) ==
        "nn::dot_product_attention: block_size is 0. A block has one key at least. Correct it.");
  CHECK(says(q, q, {.dropout = {2}}) ==
        "nn::dot_product_attention: dropout.p is 2. A part of the weights is from 0 to 1. Correct it.");
  CHECK(says(q, q, {.dropout = {0.5}}) ==
        "nn::dot_product_attention: there are no keys for dropout. In training it draws random numbers. Give "
        "dropout_keys = random::split(key, heads), or set its inference.");
  CHECK(says(q, q, {.dropout = {0.5}, .dropout_keys = key}) ==
        "nn::dot_product_attention: dropout_keys are u32[2] for 2 heads. There is a key for each head. Make "
        "them with "
        "random::split(key, heads).");
  const nn::RotaryPositionalEmbedding rope{3};
  CHECK(message_of<sa::ShapeError>([&] {
          rope(numbers({2, 3}));
        }) ==
        "nn::RotaryPositionalEmbedding: x is f32[2,3], the offset i32[], the size 3. x is [positions, size], "
        "the size "
        "even, the offset a scalar. Map it over heads with vmap.");
  CHECK(message_of<sa::DTypeError>([&] {
          rope(numbers({2, 3}), 0.5);
        }) ==
        "nn::RotaryPositionalEmbedding: x is f32[2,3], the offset f32[], dtype float32. x and dtype are "
        "floating, the "
        "offset an integer. Convert them with astype().");
  CHECK(message_of<sa::ShapeError>([&] { nn::KeyValueCache::init(-1, 1, 1, 1); }) ==
        "nn::KeyValueCache: -1 positions of 1 group of 1 and 1. Sizes are at least 0. Correct them.");
  CHECK(message_of<sa::ShapeError>([&] { nn::KeyValueCache::init(3, 2, 3, 3).attend(q, q, q); }) ==
        "nn::KeyValueCache: queries f32[4,2,3], keys f32[4,2,3], values f32[4,2,3] for a cache of f32[3,2,3] "
        "and "
        "f32[3,2,3]. All have T positions, keys and values of the cache's sizes. Batch with vmap.");
  CHECK(message_of<sa::ShapeError>([&] { nn::MultiheadAttention::init(0, 2, key); }) ==
        "nn::MultiheadAttention: 0 heads, queries of size 2. There is one head at least, and sizes are at "
        "least 0. "
        "Correct them.");
  const auto layer = nn::MultiheadAttention::init(1, 2, key, {.dropout_p = 0.5});
  const Array x = numbers({3, 2});
  CHECK(message_of<sa::ShapeError>([&] {
          layer(x, x, numbers({2, 2}));
        }) ==
        "nn::MultiheadAttention: queries f32[3,2], keys f32[3,2], values f32[2,2]. They are [T, size], [S, "
        "size] and "
        "[S, size]. Batch with vmap.");
  CHECK(
      message_of<sa::ShapeError>([&] {
        layer(x, numbers({3, 5}), x);
      }) ==
      "nn::MultiheadAttention: keys f32[3,5], their projection takes the size 2. The last dimension is that "
      "size. Give them it, or make the layer for 5.");
  CHECK(message_of<sa::Error>([&] { layer(x, x, x); }) ==
        "nn::MultiheadAttention: there is no key. In training its dropout draws random numbers. Call "
        "layer(q, k, v, "
        "{.key = key}), or the model that inference_mode() gives.");
  CHECK(
      message_of<sa::ShapeError>([&] {
        layer(x, x, x,
              [](const Array& a, const Array& b, const Array&) {
                return nn::MultiheadAttention::Heads{a, b, b[0]};
              },
              {.inference = true});
      }) ==
      "nn::MultiheadAttention: process_heads makes f32[1,2] of f32[3,1,2]. It keeps the shapes of the heads. "
      "Correct it.");
}

}  // namespace attention_test
