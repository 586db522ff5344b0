// Random numbers as in jax.random: functions of a key, with JAX's bits.
//
// A key is uint32[2]. Every element of a draw depends only on the key and its position in the global array, so a sharded draw needs no
// transfer and gives the same numbers on any number of devices. Sources: J. Salmon et al. (2011) for threefry2x32, jax.random for the
// formulas of the distributions.
#pragma once
#include <array>
#include <optional>

#include "shardarray/array.h"
#include "shardarray/detail/mode_guard.h"
#include "shardarray/flag.h"

namespace shardarray::random {

namespace detail {
[[nodiscard]] SHARDARRAY_API Array make_key(std::uint32_t high, std::uint32_t low, Where w);

/// The key argument of a draw: an array; anything else is a compile-time error with an explanation.
class Key {
 public:
  Key(const Array& key) : key_(&key) {}
  template <std::same_as<void> T = void> Key() { refuse<T>(); }
  template <std::integral I> Key(I) { refuse<I>(); }
  template <std::floating_point F> Key(F) { refuse<F>(); }
  template <std::integral I> Key(std::initializer_list<I>) { refuse<I>(); }
  template <std::same_as<Shape> S> Key(const S&) { refuse<S>(); }
  operator const Array&() const { return *key_; }

  /// For a call whose first argument is a T.
  template <class T> static void refuse() {
    static_assert(!std::same_as<T, T>,
                  "random: a key comes first, as in normal(key, {3, 4}); random::key(seed) makes one");
  }

 private:
  const Array* key_ = nullptr;
};
/// A number in place of the key, as the only argument.
struct NoKey {
  template <std::integral I> NoKey(I) { Key::refuse<I>(); }
};
}  // namespace detail

/// Makes a key from a seed. A 64-bit seed type fills both words, a shorter one the low word (negative seeds wrap), as JAX does with and
/// without x64. Never throws.
template <std::integral I> [[nodiscard]] Array key(I seed, Where w = Where::here()) {
  const auto bits = static_cast<std::uint64_t>(seed);
  return detail::make_key(sizeof(I) == 8 ? static_cast<std::uint32_t>(bits >> 32) : 0u,
                          static_cast<std::uint32_t>(bits), w);
}
/// The same: JAX's older name.
template <std::integral I> [[nodiscard]] Array PRNGKey(I seed, Where w = Where::here()) {
  return key(seed, w);
}

/// Selects the counter scheme for this thread while it lives: true (the default): as above; false: JAX's older numbers, where an element
/// depends on the size of the draw and a sharded draw on data of other devices. jit keeps separate traces for both modes. Guards nest. In
/// the older mode a draw has fewer than 2^32 words (ShapeError).
class SHARDARRAY_API partitionable : shardarray::detail::ModeGuard {
 public:
  explicit partitionable(bool on);
};

/// Selects the bit generator for this thread while it lives: false (the default): threefry2x32, as in JAX; true: Philox 4x32-10 in
/// cuRAND's order. Word n of a draw is then word n of a CURAND_RNG_PSEUDO_PHILOX4_32_10 generator whose 64-bit seed is the key, high word
/// first: `bits(key(std::int64_t{seed}), {n})` is the output of curandGenerate(). The n-th uint64 has words 2 n (low) and 2 n + 1;
/// shorter integers are the low bits of word n. Distributions keep their formulas, split() and fold_in() their keys, and `partitionable`
/// changes no draw. jit keeps separate traces for both. Guards nest. Source: J. Salmon et al. (2011); the order of cuRAND 10.4.
class SHARDARRAY_API philox : shardarray::detail::ModeGuard {
 public:
  explicit philox(bool on);
};

// All functions below throw DTypeError if `key` is not uint32, ShapeError if it is not a single key ([2]) and for a negative size in
// `shape`, which is the shape of the result unless stated otherwise; `{}` is a scalar. Those marked "floating" draw float16, bfloat16,
// float32 (the default) or float64, and throw DTypeError for another dtype.

/// Splits a key into n new ones: uint32[n, 2], one array (`keys[0]` is a key; for separate names: split<2>). Throws ShapeError for n < 0.
[[nodiscard]] SHARDARRAY_API Array split(const detail::Key& key, std::int64_t n = 2, Where w = Where::here());
/// Splits a key into an array of `shape` new ones: uint32[shape..., 2].
[[nodiscard]] SHARDARRAY_API Array split(const detail::Key& key, const Shape& shape, Where w = Where::here());
/// `const auto [a, b] = split<2>(key)`.
template <std::size_t N>
[[nodiscard]] std::array<Array, N> split(const detail::Key& key, Where w = Where::here()) {
  const Array keys = split(key, static_cast<std::int64_t>(N), w);
  std::array<Array, N> r;
  for (std::size_t k = 0; k < N; k++) r[k] = keys[k];
  return r;
}
/// Derives a new key from a key and an integer scalar, taken as uint32 (negative ones wrap). Throws DTypeError for anything else.
[[nodiscard]] SHARDARRAY_API Array fold_in(const detail::Key& key, const Array& data,
                                           Where w = Where::here());

/// Uniform random bits: uint8, uint16, uint32 or uint64, else DTypeError.
[[nodiscard]] SHARDARRAY_API Array bits(const detail::Key& key, const Shape& shape = {}, DType dtype = uint32,
                                        Where w = Where::here());
/// Uniform in [minval, maxval), floating; minval if that is empty.
[[nodiscard]] SHARDARRAY_API Array uniform(const detail::Key& key, const Shape& shape = {},
                                           DType dtype = float32, double minval = 0, double maxval = 1,
                                           Where w = Where::here());
/// Standard normal, floating; or complex with independent parts, so that the mean of |x|^2 is 1.
[[nodiscard]] SHARDARRAY_API Array normal(const detail::Key& key, const Shape& shape = {},
                                          DType dtype = float32, Where w = Where::here());
/// Uniform integers in [minval, maxval); minval if that is empty. Bounds are clamped to the dtype: a maxval beyond it includes its
/// highest value. Throws DTypeError unless dtype is an integer.
[[nodiscard]] SHARDARRAY_API Array randint(const detail::Key& key, const Shape& shape, std::int64_t minval,
                                           std::int64_t maxval, DType dtype = int32, Where w = Where::here());
/// @cond
template <std::integral I, std::integral J>
[[nodiscard]] Array randint(std::initializer_list<I>, J, std::int64_t, DType = int32) {
  detail::Key::refuse<I>();
  return {};
}
/// @endcond
/// bool, true with probability p (never below 0, always above 1), of the shape of p, or of a shape that p is broadcast to. Throws
/// DTypeError unless p is floating, ShapeError if it cannot be broadcast.
[[nodiscard]] SHARDARRAY_API Array bernoulli(const detail::Key& key, const Array& p = 0.5,
                                             Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array bernoulli(const detail::Key& key, const Array& p, const Shape& shape,
                                             Where w = Where::here());

/// Options of permutation().
struct PermutationOptions {
  std::int64_t axis = 0;     ///< negative: from the end
  Flag independent = false;  ///< shuffle every vector along the axis independently
};
/// 0..n-1 in random order, int32[n]. Throws ShapeError for n < 0.
[[nodiscard]] SHARDARRAY_API Array permutation(const detail::Key& key, std::int64_t n,
                                               Where w = Where::here());
/// Shuffles x along an axis. Throws ShapeError for an axis that does not exist, so also for a scalar.
[[nodiscard]] SHARDARRAY_API Array permutation(const detail::Key& key, const Array& x,
                                               const PermutationOptions& o = {}, Where w = Where::here());

/// @cond
// Calls without a key: other overloads of these names accept their arguments as they are, and are preferred.
[[nodiscard]] inline Array permutation(const detail::NoKey&) { return {}; }
template <std::same_as<Array> T> [[nodiscard]] Array permutation(const T&) {
  detail::Key::refuse<T>();
  return {};
}
/// @endcond

/// Options of choice().
struct ChoiceOptions {
  bool replace =
      true;  ///< an element may be drawn repeatedly; else drawing more than there are throws ShapeError
  Array p =
      {};  ///< [n] probabilities, floating, normalised to sum 1; absent: uniform. The work grows with n * n
  std::int64_t axis = 0;  ///< of the array to draw from
};
/// Draws from 0..n-1, int32. Throws ShapeError for draws from nothing, more draws than elements without replacement, and p of another
/// shape, DTypeError unless p is floating, and for n above 2^31 - 1.
[[nodiscard]] SHARDARRAY_API Array choice(const detail::Key& key, std::int64_t n, const Shape& shape = {},
                                          const ChoiceOptions& o = {}, Where w = Where::here());
/// Draws from x along an axis, which is replaced by `shape`: [a.., n, c..] -> [a.., shape.., c..]. Throws as above, ShapeError for an
/// axis that does not exist.
[[nodiscard]] SHARDARRAY_API Array choice(const detail::Key& key, const Array& x, const Shape& shape = {},
                                          const ChoiceOptions& o = {}, Where w = Where::here());
/// Draws int32 positions along `axis` with probabilities softmax(logits): of the shape of logits without that axis, or of a `shape` that
/// ends in it. Throws DTypeError unless logits are floating, ShapeError for another shape or axis.
[[nodiscard]] SHARDARRAY_API Array categorical(const detail::Key& key, const Array& logits,
                                               std::int64_t axis = -1, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array categorical(const detail::Key& key, const Array& logits, std::int64_t axis,
                                               const Shape& shape, Where w = Where::here());
/// @cond
template <std::same_as<Array> T> [[nodiscard]] Array categorical(const T&) {
  detail::Key::refuse<T>();
  return {};
}
/// @endcond
/// Standard normal restricted to the open interval (lower, upper) (lower < upper is not checked); float32 or float64, else DTypeError.
[[nodiscard]] SHARDARRAY_API Array truncated_normal(const detail::Key& key, double lower, double upper,
                                                    const Shape& shape = {}, DType dtype = float32,
                                                    Where w = Where::here());
/// Exponential: density exp(-x) for x >= 0, floating.
[[nodiscard]] SHARDARRAY_API Array exponential(const detail::Key& key, const Shape& shape = {},
                                               DType dtype = float32, Where w = Where::here());
/// Standard Gumbel: -log(-log(uniform)), floating.
[[nodiscard]] SHARDARRAY_API Array gumbel(const detail::Key& key, const Shape& shape = {},
                                          DType dtype = float32, Where w = Where::here());

}  // namespace shardarray::random
