// Attention in blocks along the keys: never stores a matrix of all queries and keys, nor does its derivative.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "shardarray/nn/layers.h"
#include "shardarray/nn/linear.h"
#include "shardarray/vmap.h"

namespace shardarray::nn {

/// Options of dot_product_attention(). Queries and keys have T and S positions.
struct AttentionOptions {
  Array bias = {};  ///< added to the scores: broadcast to [batch, heads, T, S]
  Array mask =
      {};  ///< bool, of the same shape; false masks a key; where all keys are masked, all of them count equally
  std::optional<double> scale = std::nullopt;  ///< of the scores; none: 1 / sqrt(size of a head)
  bool is_causal = false;                      ///< queries see keys up to their own position
  Array query_offset = 0;            ///< position of the first query among the keys: an integer scalar
  Array key_value_seq_lengths = {};  ///< integers [batch] (a scalar without a batch): number of valid keys
  /// How many positions before and after its own a query sees.
  std::optional<std::pair<std::int64_t, std::int64_t>> local_window_size = std::nullopt;
  /// Keys processed together. With fewer queries than that, blocks grow until a head has block_size^2 scores.
  std::int64_t block_size = 256;
  Dropout dropout = {0, false};  ///< of the weights; requires a key
  Array dropout_keys = {};       ///< [heads, 2]: a key for each head
};
/// softmax(query key^T * scale + bias) value for every head: queries [batch, T, heads, size], keys and values [batch, S, groups, size],
/// all with or without the batch; values may have a different size. groups divides heads: each key serves heads / groups adjacent query
/// heads. The result has the promoted dtype, computed in float32 (float64 for float64). Memory grows with T + S times block_size, also
/// for the derivative, which recomputes every block. Keys sharded along S stay in place if they form one block; otherwise each block is
/// sent to all devices. So with a large block_size scores are partial, and at most three small sums move. Throws DTypeError unless all
/// three are floating, and for masks and lengths of other dtypes, ShapeError if shapes do not fit or there is no key. Sources:
/// jax.nn.dot_product_attention for names and values; T. Dao et al. (2022).
[[nodiscard]] SHARDARRAY_API Array dot_product_attention(const Array& query, const Array& key,
                                                         const Array& value, const AttentionOptions& o = {},
                                                         Where w = Where::here());

/// Rotates pairs of elements by angles that grow with the position: [T, size] -> [T, size], in the dtype of x. Map it over heads:
/// `vmap(rope, {.in_axes = 1, .out_axes = 1})(heads)`. Source: J. Su et al. (2021).
struct SHARDARRAY_API RotaryPositionalEmbedding {
  std::int64_t embedding_size = 0;  ///< even
  double theta = 10000;
  DType dtype = float32;  ///< of sines and cosines
  /// `offset`: the position of the first row, an integer scalar. Throws ShapeError for another size and an odd one, DTypeError unless x
  /// is floating and the offset an integer.
  [[nodiscard]] Array operator()(const Array& x, const Array& offset = 0, Where w = Where::here()) const;
};

/// The keys and values seen so far: a value that a step takes and returns.
struct SHARDARRAY_API KeyValueCache {
  Array key;     ///< [max_length, groups, size]
  Array value;   ///< [max_length, groups, size]
  Array length;  ///< int32: number of filled positions
  /// An empty cache of zeros. Throws ShapeError for negative sizes, DTypeError for a dtype that is not floating.
  [[nodiscard]] static KeyValueCache init(std::int64_t max_length, std::int64_t groups, std::int64_t qk_size,
                                          std::int64_t vo_size, DType dtype = float32,
                                          Where w = Where::here());
  /// Appends T new keys and values, and returns the attention of T queries [T, heads, size], each seeing keys up to its own position.
  /// Options must not set causality, offset and lengths. Positions beyond max_length overwrite the last ones: the caller must count.
  /// Throws as dot_product_attention(), and ShapeError for more than max_length positions.
  [[nodiscard]] std::pair<Array, KeyValueCache> attend(const Array& query, const Array& new_key,
                                                       const Array& new_value, const AttentionOptions& o = {},
                                                       Where w = Where::here()) const;
};

/// Options of MultiheadAttention::init(); default sizes are those of Equinox.
struct MultiheadAttentionOptions {
  std::optional<std::int64_t> key_size = std::nullopt;     ///< none: query_size
  std::optional<std::int64_t> value_size = std::nullopt;   ///< none: query_size
  std::optional<std::int64_t> output_size = std::nullopt;  ///< none: query_size
  std::optional<std::int64_t> qk_size = std::nullopt;      ///< of a head; none: query_size / num_heads
  std::optional<std::int64_t> vo_size = std::nullopt;      ///< of a head; none: query_size / num_heads
  bool use_query_bias = false, use_key_bias = false, use_value_bias = false, use_output_bias = false;
  double dropout_p = 0;    ///< of the weights
  bool inference = false;  ///< see inference_mode()
  DType dtype = float32;   ///< of weights and biases, floating
};
/// Call options of MultiheadAttention: `attention(q, k, v, {.mask = mask, .key = key})`.
struct MultiheadAttentionCall {
  Array mask = {};  ///< bool [T, S] or [heads, T, S]
  Array key = {};   ///< for dropout
  std::optional<bool> inference = std::nullopt;
  bool is_causal = false;         ///< queries see keys up to their own position
  std::int64_t block_size = 256;  ///< as in AttentionOptions
};
/// Projects queries, keys and values to heads, applies attention to each, and projects all heads. Source: A. Vaswani et al. (2017).
struct SHARDARRAY_API MultiheadAttention {
  Linear query_proj, key_proj, value_proj, output_proj;
  Dropout dropout = {0, false};
  std::int64_t num_heads = 1;
  /// Initialised with Equinox's bits. Throws as Linear::init(), and ShapeError for fewer than one head.
  [[nodiscard]] static MultiheadAttention init(std::int64_t num_heads, std::int64_t query_size,
                                               const Array& key, const MultiheadAttentionOptions& o = {},
                                               Where w = Where::here());
  /// queries [T, query_size], keys [S, key_size], values [S, value_size] -> [T, output_size]. Throws ShapeError for anything else, and as
  /// Dropout.
  [[nodiscard]] Array operator()(const Array& query, const Array& key, const Array& value,
                                 const MultiheadAttentionCall& o = {}, Where w = Where::here()) const {
    return (*this)(
        query, key, value,
        [](const Array& q, const Array& k, const Array& v) {
          return Heads{q, k, v};
        },
        o, w);
  }
  /// The argument and result of process_heads: [T, heads, size].
  struct Heads {
    Array query, key, value;
  };
  /// The same with a function of the heads between projections and attention: `process_heads(query, key, value)` returns Heads of the
  /// same shapes, as with RotaryPositionalEmbedding. Throws ShapeError for other shapes.
  template <class F>
  requires std::is_invocable_r_v<Heads, const F&, const Array&, const Array&, const Array&>
  [[nodiscard]] Array operator()(const Array& query, const Array& key, const Array& value,
                                 const F& process_heads, const MultiheadAttentionCall& o = {},
                                 Where w = Where::here()) const {
    const Site site(w.line ? w : shardarray::detail::call_site.place());
    const Heads before = project(query, key, value);
    return attend(before, process_heads(before.query, before.key, before.value), o);
  }

 private:
  [[nodiscard]] Heads project(const Array& query, const Array& key, const Array& value) const;
  [[nodiscard]] Array attend(const Heads& before, const Heads& heads, const MultiheadAttentionCall& o) const;
};

}  // namespace shardarray::nn
