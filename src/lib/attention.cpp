// Attention in blocks along the keys, with the running maximum and sum of the scores' exponentials. Source: T. Dao et al., "FlashAttention"
// (2022); M. Milakov, N. Gimelshein (2018) for the running softmax.
#include "shardarray/nn/attention.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/ceil_div.h"
#include "base/count_text.h"
#include "base/sizes.h"
#include "lib/random_bits.h"
#include "lib/random_floats.h"
#include "ops/api.h"
#include "shardarray/control_flow.h"
#include "shardarray/indexing.h"
#include "shardarray/random.h"

namespace shardarray::nn {

namespace {

constexpr const char* attention_name = "nn::dot_product_attention";

// Sizes: batch, queries, keys, key-value heads, query heads for each of them, features of a key, of a value; keys of a block, blocks.
struct AttentionSizes {
  std::int64_t b, t, s, k, g, h, v, block, blocks;
};

// A bias or mask as a step finds it: whole, or as a sequence of blocks; [b, k, g, t, s], with 1 where it is broadcast.
struct AlongKeys {
  Array whole, blocks;
};

// What all steps share. Scores are computed in `type`.
struct Attention {
  AttentionSizes n;
  DType type;
  const AttentionOptions& o;
  double scale;
};

// One step's block of everything that has a dimension of keys.
struct KeyBlock {
  Array key, value, bias, mask, number;
};

struct RunningSoftmax {
  Array largest, sum, product;  // [b, k, g, t], [b, k, g, t], [b, k, g, t, v]
};
struct WeightedSum {
  Array weights, product;
};

[[noreturn]] void refuse_attention(const std::string& what, const char* rule) {
  throw ShapeError(fmt::format("{}: {}. {}", attention_name, what, rule));
}

Array in_blocks(const Array& x, std::size_t dim, const AttentionSizes& n) {
  Shape lo = Shape::filled(type_of(x).shape.size(), 0), hi = lo, cut = type_of(x).shape;
  hi[dim] = n.blocks * n.block - n.s;
  cut[dim] = n.block;
  cut.insert(dim, n.blocks);
  const Array padded = hi[dim] == 0 ? x : primitive::pad(x, lo, hi);
  return moveaxis(reshape(padded, cut), static_cast<std::int64_t>(dim), 0);
}

// x: [batch or 1, heads or 1, t or 1, s or 1]; leading dimensions may be missing.
AlongKeys along_keys(const char* what, const Array& x, const AttentionSizes& n) {
  if (!x.has_value()) return {};
  Shape shape = type_of(x, attention_name).shape;
  const Shape wanted{n.b, n.k * n.g, n.t, n.s};
  while (shape.size() < 4) shape.insert(0, 1);
  bool fits = shape.size() == 4;
  for (std::size_t d = 0; fits && d < 4; d++) fits = shape[d] == 1 || shape[d] == wanted[d];
  if (!fits)
    refuse_attention(
        fmt::format("the {} is {} for scores {}", what, to_string(type_of(x)), to_string(wanted)),
        "It is broadcast to [batch, heads, queries, keys]. Correct it.");
  const bool every_head = shape[1] > 1;
  shape.erase(1);
  shape.insert(1, every_head ? n.g : 1);
  shape.insert(1, every_head ? n.k : 1);
  const Array parts = reshape(x, shape);
  if (shape[4] == 1 || n.blocks == 1) return {parts, {}};
  return {{}, in_blocks(parts, 4, n)};
}

// Which keys of a block count for which queries, by their positions; absent: all.
Array counted_positions(const Attention& a, const Array& keys) {
  const AttentionSizes& n = a.n;
  Array r;
  auto also = [&](const Array& x) { r = r.has_value() ? r & x : x; };
  if (a.o.is_causal || a.o.local_window_size) {
    const Array queries = expand_dims(arange(n.t) + a.o.query_offset, 1), behind = keys - queries;  // [t, s]
    if (a.o.is_causal) also(behind <= 0);
    if (a.o.local_window_size) {
      const auto [before, after] = *a.o.local_window_size;
      constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // positions are int32
      also(behind >= -std::min(before, most));
      also(behind <= std::min(after, most));
    }
  }
  if (const Array& lengths = a.o.key_value_seq_lengths; lengths.has_value())
    also(keys < reshape(lengths, {type_of(lengths).shape.empty() ? 1 : n.b, 1, 1, 1, 1}));
  return r;
}

// [b, k, g, t, s] of one block; -infinity for keys that pad the last one.
Array scores(const Attention& a, const Array& query, const KeyBlock& x) {
  const AttentionSizes& n = a.n;
  Array r = einsum("btkgh,bskh->bkgts", query, x.key.astype(a.type));
  if (x.bias.has_value()) r = r + x.bias.astype(a.type);
  const Array keys = x.number * n.block + arange(n.block);
  Array counted = counted_positions(a, keys);
  if (x.mask.has_value()) counted = counted.has_value() ? counted & x.mask : x.mask;
  const double largest = a.type == DType::float64 ? std::numeric_limits<double>::max()
                                                  : double{std::numeric_limits<float>::max()};
  if (counted.has_value())
    r = where(counted, r, -0.7 * largest);  // as in JAX: finite, so that all may be masked
  return n.blocks * n.block == n.s ? r : where(keys < n.s, r, -std::numeric_limits<double>::infinity());
}

// The weights of a block after dropout, by the block's bits of each head's draw of [t, s].
Array dropped(const Attention& a, const Array& weights, const KeyBlock& x) {
  const Dropout& d = a.o.dropout;
  if (d.inference || d.p == 0) return weights;
  const AttentionSizes& n = a.n;
  const DType whole =
      n.t > (std::int64_t{1} << 32) / std::max<std::int64_t>(1, n.s) ? DType::uint64 : DType::uint32;
  const Array keys = (x.number * n.block + arange(n.block)).astype(whole);
  const Array position = expand_dims(arange(n.t).astype(whole), 1) * n.s + keys;
  const auto draw = [&](const Array& key) {
    return random::unit_of_bits(random::bits_at(key, position, n.t * n.s), DType::float32);
  };
  const Array& all = a.o.dropout_keys;
  const bool batched = type_of(all).shape.size() == 3;
  const Array u = batched ? vmap(vmap(draw))(all) : vmap(draw)(all);
  const double kept = 1 - d.p;
  const Array keep = reshape(u < kept, {batched ? n.b : 1, n.k, n.g, n.t, n.block});
  return where(keep, weights / (kept == 0 ? 1 : kept), 0);
}

Array weighted(const Attention& a, const Array& weights, const KeyBlock& x) {
  return einsum("bkgts,bskv->bkgtv", dropped(a, weights, x), x.value.astype(a.type));
}

// Everything that has a dimension of keys, whole.
struct KeySide {
  Array key, value;
  AlongKeys bias, mask;
};
// Without gradients.
KeySide constant(const KeySide& x) {
  auto fixed = [](const Array& a) { return a.has_value() ? stop_gradient(a) : a; };
  return {fixed(x.key), fixed(x.value), {fixed(x.bias.whole), fixed(x.bias.blocks)}, x.mask};
}

// Runs a step over all blocks; without a loop over a single one.
template <class Step, class Carry>
Carry over_blocks(const AttentionSizes& n, const KeySide& all, const Carry& first, const Step& step) {
  const auto one = [&](const Carry& c, KeyBlock x) {
    if (!x.bias.has_value()) x.bias = all.bias.whole;
    if (!x.mask.has_value()) x.mask = all.mask.whole;
    return step(c, x);
  };
  if (n.blocks == 1) return one(first, {all.key, all.value, {}, {}, primitive::full({}, DType::int32, 0)});
  const KeyBlock blocks{in_blocks(all.key, 1, n), in_blocks(all.value, 1, n), all.bias.blocks,
                        all.mask.blocks, arange(n.blocks)};
  return scan([&](const Carry& c, const KeyBlock& x) { return std::pair(one(c, x), none); }, first, blocks)
      .first;
}

// The values come from the running softmax, in one pass without derivatives. For these, sums over blocks of exp(score - maximum) / sum
// are recorded too, with maximum and sum as constants, which cancel in the quotient: so its derivatives of any order are those of the
// softmax. No step of theirs needs the carry of another one, and their values are never computed.
Array attend(const Attention& a, const Array& query, const KeySide& all) {
  const AttentionSizes& n = a.n;
  const Shape rows{n.b, n.k, n.g, n.t}, products{n.b, n.k, n.g, n.t, n.v};
  const Array zero = primitive::full(rows, a.type, 0), nothing = primitive::full(products, a.type, 0);
  const double infinity = std::numeric_limits<double>::infinity();
  auto scaled_query = [&](const Array& x) {
    return reshape(x.astype(a.type) * a.scale, {n.b, n.t, n.k, n.g, n.h});
  };
  auto finite = [&](const Array& x) { return where(x == -infinity, 0, x); };  // if all scores are -inf

  const Array fixed_query = scaled_query(stop_gradient(query));
  const auto softmax_step = [&](const RunningSoftmax& c, const KeyBlock& x) {
    const Array s = scores(a, fixed_query, x), largest = maximum(c.largest, max(s, -1)),
                shift = finite(largest);
    const Array weights = exp(s - expand_dims(shift, -1)), before = exp(c.largest - shift);
    return RunningSoftmax{largest, c.sum * before + sum(weights, -1),
                          c.product * expand_dims(before, -1) + weighted(a, weights, x)};
  };
  const RunningSoftmax last =
      over_blocks(n, constant(all), RunningSoftmax{primitive::full(rows, a.type, -infinity), zero, nothing},
                  softmax_step);
  const Array values = last.product / expand_dims(last.sum, -1);

  const Array free_query = scaled_query(query), shift = expand_dims(stop_gradient(finite(last.largest)), -1),
              share = expand_dims(stop_gradient(1.0 / last.sum), -1);
  const auto sum_step = [&](const WeightedSum& c, const KeyBlock& x) {
    const Array weights = exp(scores(a, free_query, x) - shift) * share;
    return WeightedSum{c.weights + sum(weights, -1), c.product + weighted(a, weights, x)};
  };
  const WeightedSum line = over_blocks(n, all, WeightedSum{zero, nothing}, sum_step);
  const Array one = primitive::full(rows, a.type, 1);
  return primitive::with_slope_of(values, line.product) /
         expand_dims(primitive::with_slope_of(one, line.weights), -1);
}

// Keeps the number of scores in a block: with few queries, as in decoding, all keys are one block, however they are sharded.
std::int64_t keys_of_a_block(std::int64_t size, std::int64_t queries) {
  return std::max(size, mul_sizes(size, size) / std::max<std::int64_t>(queries, 1));
}

void check_options(const AttentionOptions& o, const AttentionSizes& n) {
  auto need_type = [](const char* what, const Array& x, bool right, const char* wanted) {
    if (!right)
      throw DTypeError(fmt::format("{}: {} {}. They are {}. Convert them with astype().", attention_name,
                                   what, to_string(type_of(x)), wanted));
  };
  if (o.mask.has_value())
    need_type("the mask is", o.mask, type_of(o.mask, attention_name).dtype == DType::bool_, "bools");
  if (o.bias.has_value())
    need_type("the bias is", o.bias, is_floating(type_of(o.bias, attention_name).dtype), "floating");
  const Type& offset = type_of(o.query_offset, attention_name);
  need_type("query_offset is", o.query_offset, is_integer(offset.dtype), "integers");
  if (!offset.shape.empty())
    refuse_attention(fmt::format("query_offset is {}", to_string(offset)),
                     "It is one position. Give a scalar, or map over a batch with vmap.");
  if (o.key_value_seq_lengths.has_value()) {
    const Type& t = type_of(o.key_value_seq_lengths, attention_name);
    need_type("key_value_seq_lengths are", o.key_value_seq_lengths, is_integer(t.dtype), "integers");
    if (!t.shape.empty() && t.shape != Shape{n.b})
      refuse_attention(fmt::format("key_value_seq_lengths are {} for a batch of {}", to_string(t), n.b),
                       "There is one length, or one for each element. Correct them.");
  }
  if (o.block_size < 1)
    refuse_attention(fmt::format("block_size is {}", o.block_size),
                     "A block has one key at least. Correct it.");
  const Dropout& d = o.dropout;
  if (!(d.p >= 0 && d.p <= 1))
    throw Error(fmt::format("{}: dropout.p is {}. A part of the weights is from 0 to 1. Correct it.",
                            attention_name, d.p));
  if (d.inference || d.p == 0) return;
  if (!o.dropout_keys.has_value())
    throw Error(
        fmt::format("{}: there are no keys for dropout. In training it draws random numbers. Give "
                    "dropout_keys = random::split(key, heads), or set its inference.",
                    attention_name));
  const Type& t = type_of(o.dropout_keys);
  if (t.dtype != DType::uint32 || (t.shape != Shape{n.k * n.g, 2} && t.shape != Shape{n.b, n.k * n.g, 2}))
    refuse_attention(fmt::format("dropout_keys are {} for {}", to_string(t), count_text(n.k * n.g, "head")),
                     "There is a key for each head. Make them with random::split(key, heads).");
}

}  // namespace

Array dot_product_attention(const Array& query, const Array& key, const Array& value,
                            const AttentionOptions& o, Where w) {
  const Site site(w, attention_name);
  const Type &q = type_of(query, attention_name), &k = type_of(key, attention_name),
             &v = type_of(value, attention_name);
  if (!is_floating(q.dtype) || !is_floating(k.dtype) || !is_floating(v.dtype))
    throw DTypeError(
        fmt::format("{}: queries {}, keys {}, values {}. All are floating. Convert them with astype().",
                    attention_name, to_string(q), to_string(k), to_string(v)));
  const std::size_t rank = q.shape.size();
  const bool ranks = (rank == 3 || rank == 4) && k.shape.size() == rank && v.shape.size() == rank;
  auto size = [&](const Type& t, std::size_t d) { return d + rank < 4 ? 1 : t.shape[d + rank - 4]; };
  const bool fits = ranks && size(k, 0) == size(q, 0) && size(v, 0) == size(q, 0) &&
                    size(v, 1) == size(k, 1) && size(v, 2) == size(k, 2) && size(k, 3) == size(q, 3) &&
                    size(k, 2) > 0 && size(q, 2) % size(k, 2) == 0;
  if (!fits)
    refuse_attention(
        fmt::format("queries {}, keys {}, values {}", to_string(q), to_string(k), to_string(v)),
        "Queries are [batch, T, heads, size], keys and values [batch, S, groups, size], with or without "
        "the batch; groups divide heads. Correct them.");
  AttentionSizes n{size(q, 0), size(q, 1), size(k, 1), size(k, 2), size(q, 2) / size(k, 2),
                   size(k, 3), size(v, 3), 0,          0};
  if (n.s == 0)
    refuse_attention(fmt::format("keys {}", to_string(k)),
                     "Weights are shared out among one key at least. Give it.");
  check_options(o, n);
  n.block = std::min(keys_of_a_block(o.block_size, n.t), n.s);
  n.blocks = ceil_div(n.s, n.block);
  const DType result = promote_types(promote_types(q.dtype, k.dtype), v.dtype);
  const Attention a{n, promote_types(result, float32), o,
                    o.scale.value_or(1 / std::sqrt(static_cast<double>(n.h)))};
  const Array r = attend(a, reshape(query, {n.b, n.t, n.k * n.g, n.h}),
                         {reshape(key, {n.b, n.s, n.k, n.h}), reshape(value, {n.b, n.s, n.k, n.v}),
                          along_keys("bias", o.bias, n), along_keys("mask", o.mask, n)});  // [b, k, g, t, v]
  Shape shape = q.shape;
  shape.back() = n.v;
  return reshape(transpose(r, {0, 3, 1, 2, 4}), shape).astype(result);
}

Array RotaryPositionalEmbedding::operator()(const Array& x, const Array& offset, Where w) const {
  constexpr const char* function = "nn::RotaryPositionalEmbedding";
  const Site site(w, function);
  const Type &t = type_of(x, function), &of_offset = type_of(offset, function);
  if (!is_floating(t.dtype) || !is_integer(of_offset.dtype) || !is_floating(dtype))
    throw DTypeError(fmt::format(
        "{}: x is {}, the offset {}, dtype {}. x and dtype are floating, the offset an integer. Convert "
        "them with astype().",
        function, to_string(t), to_string(of_offset), name(dtype)));
  if (t.shape.size() != 2 || t.shape[1] != embedding_size || embedding_size % 2 != 0 ||
      !of_offset.shape.empty())
    throw ShapeError(fmt::format(
        "{}: x is {}, the offset {}, the size {}. x is [positions, size], the size even, the offset a "
        "scalar. Map it over heads with vmap.",
        function, to_string(t), to_string(of_offset), embedding_size));
  const std::int64_t half = embedding_size / 2;
  const DType wide = dtype == DType::float64 ? DType::float64 : DType::float32;
  const Array frequency =
      1.0 / power(theta, arange(half).astype(wide) * 2.0 / static_cast<double>(embedding_size));
  const Array position = (arange(t.shape[0]) + offset).astype(wide);
  const Array angle = expand_dims(position, 1) * frequency;
  auto both = [&](const Array& a) { return concatenate({a, a}, 1).astype(dtype); };
  const Array lower = x[{all, slice(none, half)}], upper = x[{all, slice(half, none)}];
  return (x * both(cos(angle)) + concatenate({-upper, lower}, 1) * both(sin(angle))).astype(t.dtype);
}

// ---------------------------------------------------------------- cache
KeyValueCache KeyValueCache::init(std::int64_t max_length, std::int64_t groups, std::int64_t qk_size,
                                  std::int64_t vo_size, DType dtype, Where w) {
  constexpr const char* function = "nn::KeyValueCache";
  const Site site(w, function);
  if (max_length < 0 || groups < 0 || qk_size < 0 || vo_size < 0)
    throw ShapeError(fmt::format("{}: {} of {} of {} and {}. Sizes are at least 0. Correct them.", function,
                                 count_text(max_length, "position"), count_text(groups, "group"), qk_size,
                                 vo_size));
  random::need_floating(dtype, function);
  return {zeros({max_length, groups, qk_size}, dtype), zeros({max_length, groups, vo_size}, dtype),
          zeros({}, int32)};
}

std::pair<Array, KeyValueCache> KeyValueCache::attend(const Array& query, const Array& new_key,
                                                      const Array& new_value, const AttentionOptions& o,
                                                      Where w) const {
  constexpr const char* function = "nn::KeyValueCache";
  const Site site(w, function);
  const Type &q = type_of(query, function), &k = type_of(new_key, function),
             &v = type_of(new_value, function);
  const Shape &keys = type_of(key, function).shape, &values = type_of(value, function).shape;
  auto fits = [](const Shape& part, const Shape& whole) {
    return part.size() == 3 && whole.size() == 3 && part[0] <= whole[0] && part[1] == whole[1] &&
           part[2] == whole[2];
  };
  if (!fits(k.shape, keys) || !fits(v.shape, values) || q.shape.size() != 3 || q.shape[0] != k.shape[0] ||
      v.shape[0] != k.shape[0])
    throw ShapeError(fmt::format(
        "{}: queries {}, keys {}, values {} for a cache of {} and {}. All have T positions, keys and "
        "values of the cache's sizes. Batch with vmap.",
        function, to_string(q), to_string(k), to_string(v), to_string(type_of(key)),
        to_string(type_of(value))));
  const KeyValueCache next{dynamic_update_slice_in_dim(key, new_key, length, 0),
                           dynamic_update_slice_in_dim(value, new_value, length, 0), length + q.shape[0]};
  AttentionOptions all = o;
  all.is_causal = true;
  all.query_offset = length;
  all.key_value_seq_lengths = next.length;
  return {dot_product_attention(query, next.key, next.value, all), next};
}

// ---------------------------------------------------------------- heads
MultiheadAttention MultiheadAttention::init(std::int64_t num_heads, std::int64_t query_size, const Array& key,
                                            const MultiheadAttentionOptions& o, Where w) {
  constexpr const char* function = "nn::MultiheadAttention";
  const Site site(w, function);
  if (num_heads < 1 || query_size < 0)
    throw ShapeError(fmt::format(
        "{}: {}, queries of size {}. There is one head at least, and sizes are at least 0. Correct them.",
        function, count_text(num_heads, "head"), query_size));
  const auto [query_key, key_key, value_key, output_key] = random::split<4>(key);
  const std::int64_t of_head = query_size / num_heads,
                     keys = mul_sizes(num_heads, o.qk_size.value_or(of_head)),
                     values = mul_sizes(num_heads, o.vo_size.value_or(of_head));
  auto linear = [&](std::int64_t in, std::int64_t out, const Array& k, bool use_bias) {
    return Linear::init(in, out, k, {.use_bias = use_bias, .dtype = o.dtype});
  };
  return {linear(query_size, keys, query_key, o.use_query_bias),
          linear(o.key_size.value_or(query_size), keys, key_key, o.use_key_bias),
          linear(o.value_size.value_or(query_size), values, value_key, o.use_value_bias),
          linear(values, o.output_size.value_or(query_size), output_key, o.use_output_bias),
          Dropout{o.dropout_p, o.inference},
          num_heads};
}

MultiheadAttention::Heads MultiheadAttention::project(const Array& query, const Array& key,
                                                      const Array& value) const {
  constexpr const char* function = "nn::MultiheadAttention";
  const Site site({}, function);
  const Type &q = type_of(query, function), &k = type_of(key, function), &v = type_of(value, function);
  if (q.shape.size() != 2 || k.shape.size() != 2 || v.shape.size() != 2 || k.shape[0] != v.shape[0])
    throw ShapeError(
        fmt::format("{}: queries {}, keys {}, values {}. They are [T, size], [S, size] and [S, size]. "
                    "Batch with vmap.",
                    function, to_string(q), to_string(k), to_string(v)));
  auto heads = [&](const Linear& projection, const Array& x, const char* what) {
    if (const Type& of_weight = type_of(projection.weight, function);
        of_weight.shape.size() == 2 && of_weight.shape[1] != type_of(x).shape[1])
      throw ShapeError(fmt::format(
          "{}: {} {}, their projection takes the size {}. The last dimension is that size. Give them "
          "it, or make the layer for {}.",
          function, what, to_string(type_of(x)), of_weight.shape[1], type_of(x).shape[1]));
    const Array y = vmap(projection)(x);
    const Shape& shape = type_of(y).shape;
    if (num_heads < 1 || shape[1] % num_heads != 0)
      throw ShapeError(
          fmt::format("{}: {} share a projection of size {}. There is one head at least, and the size is a "
                      "multiple of them. Correct num_heads.",
                      function, count_text(num_heads, "head"), shape[1]));
    return reshape(y, {shape[0], num_heads, shape[1] / num_heads});
  };
  return {heads(query_proj, query, "queries"), heads(key_proj, key, "keys"),
          heads(value_proj, value, "values")};
}

Array MultiheadAttention::attend(const Heads& before, const Heads& heads,
                                 const MultiheadAttentionCall& o) const {
  constexpr const char* function = "nn::MultiheadAttention";
  const Site site({}, function);
  for (const auto& [x, y] : {std::pair(before.query, heads.query), std::pair(before.key, heads.key),
                             std::pair(before.value, heads.value)})
    if (type_of(x).shape != type_of(y, function).shape)
      throw ShapeError(
          fmt::format("{}: process_heads makes {} of {}. It keeps the shapes of the heads. Correct it.",
                      function, to_string(type_of(y)), to_string(type_of(x))));
  AttentionOptions a{
      .mask = o.mask, .is_causal = o.is_causal, .block_size = o.block_size, .dropout = dropout};
  a.dropout.inference = o.inference.value_or(dropout.inference);
  if (!a.dropout.inference && dropout.p != 0) {
    if (!o.key.has_value())
      throw Error(
          fmt::format("{}: there is no key. In training its dropout draws random numbers. Call "
                      "layer(q, k, v, {{.key = key}}), or the model that inference_mode() gives.",
                      function));
    a.dropout_keys = random::split(o.key, num_heads);
  }
  const Array r = dot_product_attention(heads.query, heads.key, heads.value, a);
  const Shape& shape = type_of(r).shape;
  return vmap(output_proj)(reshape(r, {shape[0], shape[1] * shape[2]}));
}

}  // namespace shardarray::nn
