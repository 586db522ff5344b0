// Keys and bits. Formulas: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); the
// orders of counters are those of jax.random.
#include "lib/random_bits.h"

#include <fmt/core.h>

#include "base/ceil_div.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "runtime/modes.h"
#include "shardarray/placement.h"
#include "shardarray/random.h"

namespace shardarray::random {

partitionable::partitionable(bool on) : ModeGuard(&Modes::partitionable_random, on) {}
bool is_partitionable() { return current_modes().partitionable_random; }

void check_key(const Array& key, const char* function) {
  const Type& t = type_of(key, function);
  if (t.dtype != DType::uint32)
    throw DTypeError(fmt::format("{}: the key is {}. A key is u32[2]. Make one with random::key(seed).",
                                 current_function(function), to_string(t)));
  if (t.shape != Shape{2})
    throw ShapeError(
        fmt::format("{}: accepts a single key, but was given {}. A key is u32[2]. Index the array of keys, "
                    "or map over it with vmap.",
                    current_function(function), to_string(t)));
}

Arrays words_of(const Array& key, const Array& high, const Array& low) {
  const Shape& shape = low.shape();
  const Array in[] = {primitive::element(key, 0, shape), primitive::element(key, 1, shape), high, low};
  return record_all(op_threefry, in, nullptr, {});
}

Array flat_position(const Shape& shape, DType t) {
  Array r;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    const Array steps =
        primitive::broadcast_to(primitive::constant(t, static_cast<std::uint64_t>(stride), false), shape);
    if (shape[d] > 1) r = add_or(primitive::mul(primitive::iota(shape, d, t), steps), r);
  }
  return r.has_value() ? r : primitive::full(shape, t, 0);
}

Arrays words_by_position(const Array& key, const Shape& shape) {
  check_type({shape, DType::uint32}, "random::bits");
  if (num_elements(shape) <= (std::int64_t{1} << 32))
    return words_of(key, primitive::full(shape, DType::uint32, 0), flat_position(shape, DType::uint32));
  const Array position = flat_position(shape, DType::uint64);
  const Array high = primitive::binary(op_shr, position, primitive::full(shape, DType::uint64, 32));
  return words_of(key, primitive::cast(high, DType::uint32), primitive::cast(position, DType::uint32));
}

static void check_halves(std::int64_t n, const char* function) {
  if (n >= std::int64_t{1} << 32)
    throw ShapeError(
        fmt::format("{}: needs {} words. Draws that are not partitionable end at 2^32 - 1 words. Use "
                    "random::partitionable(true), the default.",
                    function, n));
}

Array words_by_halves(const Array& key, std::int64_t n, const char* function) {
  check_halves(n, function);
  const std::int64_t half = (n + 1) / 2;
  const Array first = primitive::iota({half}, 0, DType::uint32);
  Array second = primitive::add(first, primitive::like(first, static_cast<double>(half)));
  if (n % 2 == 1)  // padded with a zero
    second =
        primitive::select(primitive::binary(op_lt, second, primitive::like(second, static_cast<double>(n))),
                          second, primitive::like(second, 0));
  return primitive::slice_dim(primitive::concatenate(words_of(key, first, second), 0), 0, 0, n);
}

Array detail::make_key(std::uint32_t high, std::uint32_t low, Where w) {
  const std::uint32_t words[] = {high, low};
  return core::make_array(words, DType::uint32, {2}, w);
}

Array split(const detail::Key& key, const Shape& shape, Where w) {
  const Site site(w, "random::split");
  check_key(key, "random::split");
  Shape keys = shape;
  keys.push_back(2);
  check_type({keys, DType::uint32}, "random::split");
  if (!is_partitionable())
    return primitive::reshape(words_by_halves(key, num_elements(keys), "random::split"), keys);
  Shape column = keys;
  column.back() = 1;
  Arrays words = words_by_position(key, shape);
  for (Array& word : words) word = primitive::reshape(word, column);
  return primitive::concatenate(words, shape.size());
}

Array split(const detail::Key& key, std::int64_t n, Where w) {
  if (n < 0)
    throw ShapeError(fmt::format("random::split: {} keys. The number of keys is at least 0. Correct it.", n));
  return split(key, Shape{n}, w);
}

Array fold_in(const detail::Key& key, const Array& data, Where w) {
  const Site site(w, "random::fold_in");
  check_key(key, "random::fold_in");
  const Type& t = type_of(data, "random::fold_in");
  if (!t.shape.empty() || !is_integer(t.dtype))
    throw DTypeError(fmt::format(
        "random::fold_in: the data are {}. They are one integer. Index the array, or map over it with vmap.",
        to_string(t)));
  Arrays words = words_of(key, primitive::full({}, DType::uint32, 0), primitive::cast(data, DType::uint32));
  for (Array& word : words) word = primitive::reshape(word, {1});
  return primitive::concatenate(words, 0);
}

// The older order: a word holds 32 / width values, lowest bits first; of 64-bit values, all high words come before all low ones.
static Array bits_by_halves(const Array& key, const Shape& shape, DType dtype) {
  const auto width = static_cast<std::int64_t>(itemsize(dtype)) * 8;
  const std::int64_t n = num_elements(shape), count = ceil_div(mul_sizes(n, width), 32);
  const Array words = words_by_halves(key, count, "random::bits");
  if (width == 32) return primitive::reshape(words, shape);
  if (width == 64) {
    const Array high = primitive::cast(primitive::slice_dim(words, 0, 0, n), DType::uint64);
    const Array low = primitive::cast(primitive::slice_dim(words, 0, n, 2 * n), DType::uint64);
    return primitive::reshape(
        primitive::binary(op_or, primitive::binary(op_shl, high, primitive::like(high, 32)), low), shape);
  }
  const Shape parts = {count, 32 / width};
  const Array offsets = primitive::mul(primitive::iota(parts, 1, DType::uint32),
                                       primitive::full(parts, DType::uint32, static_cast<double>(width)));
  const Array values = primitive::binary(op_shr, primitive::broadcast(words, parts, {-2}), offsets);
  return primitive::reshape(
      primitive::slice_dim(primitive::reshape(primitive::cast(values, dtype), {count * 32 / width}), 0, 0, n),
      shape);
}

Array bits(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::bits");
  check_key(key, "random::bits");
  if (!is_unsigned_integer(dtype))
    throw DTypeError(
        fmt::format("random::bits: dtype {}. Bits are uint8, uint16, uint32 or uint64. Choose one of them.",
                    name(dtype)));
  check_type({shape, dtype}, "random::bits");
  if (is_philox()) return philox_bits(key, shape, dtype);
  if (!is_partitionable()) return bits_by_halves(key, shape, dtype);
  const Arrays words = words_by_position(key, shape);
  if (dtype != DType::uint64) return primitive::cast(primitive::binary(op_xor, words[0], words[1]), dtype);
  const Array high = primitive::cast(words[0], DType::uint64);
  return primitive::binary(op_or, primitive::binary(op_shl, high, primitive::like(high, 32)),
                           primitive::cast(words[1], DType::uint64));
}

Array bits_at(const Array& key, const Array& position, std::int64_t n) {
  if (is_philox()) return philox_bits_at(key, position, DType::uint32);
  const Shape& shape = type_of(position).shape;
  const Array low = primitive::cast(position, DType::uint32);
  if (is_partitionable()) {
    const Array high =
        type_of(position).dtype == DType::uint64
            ? primitive::cast(primitive::binary(op_shr, position, primitive::like(position, 32)),
                              DType::uint32)
            : primitive::full(shape, DType::uint32, 0);
    const Arrays words = words_of(key, high, low);
    return primitive::binary(op_xor, words[0], words[1]);
  }
  // Elements i and i + half are the two words of one pair of counters; an odd n is padded with a zero.
  check_halves(n, "random::bits");
  auto number = [&](std::int64_t v) {
    return primitive::broadcast_to(primitive::constant(DType::uint32, static_cast<std::uint64_t>(v), false),
                                   shape);
  };
  const Array half = number((n + 1) / 2), is_first = primitive::binary(op_lt, low, half),
              first = primitive::select(is_first, low, primitive::sub(low, half)),
              second = primitive::add(first, half);
  const Array in_range = primitive::binary(op_lt, second, number(n));
  const Arrays words = words_of(key, first, primitive::select(in_range, second, number(0)));
  return primitive::select(is_first, words[0], words[1]);
}

}  // namespace shardarray::random
