// Philox 4x32-10 bits in cuRAND's order.
#include "graph/trace_state.h"
#include "lib/random_bits.h"
#include "runtime/modes.h"
#include "shardarray/random.h"

namespace shardarray::random {

philox::philox(bool on) : ModeGuard(&Modes::philox_random, on) {}
bool is_philox() { return current_modes().philox_random; }

// cuRAND has 65,536 subsequences, used in turn: counter q is number q / 65536 of subsequence q mod 65536 and gives the words 4 q to
// 4 q + 3. Every element computes its counter and picks its word.
Array philox_bits_at(const Array& key, const Array& position, DType dtype) {
  const bool pairs = dtype == DType::uint64;  // two per counter
  const DType t = position.dtype();
  const bool is_long = t == DType::uint64;
  const Shape& shape = position.shape();
  auto like = [&](std::uint64_t v) {
    return primitive::broadcast_to(primitive::constant(t, v, false), shape);
  };
  auto word = [](const Array& x) { return primitive::cast(x, DType::uint32); };
  const Array q = primitive::binary(op_shr, position, like(pairs ? 1 : 2)),
              in_turn = primitive::binary(op_shr, q, like(16)),
              high = is_long ? word(primitive::binary(op_shr, in_turn, like(32)))
                             : primitive::full(shape, DType::uint32, 0);
  const Array in[] = {primitive::element(key, 1, shape), primitive::element(key, 0, shape), word(in_turn),
                      high, word(primitive::binary(op_and, q, like(0xFFFF)))};
  const Arrays words = record_all(op_philox, in, nullptr, {});
  auto bit = [&](std::uint64_t k) {
    return primitive::binary(op_ne, primitive::binary(op_and, position, like(k)), like(0));
  };
  if (!pairs) {
    const Array odd = bit(1);
    return primitive::cast(primitive::select(bit(2), primitive::select(odd, words[3], words[2]),
                                             primitive::select(odd, words[1], words[0])),
                           dtype);
  }
  const Array second = bit(1);
  auto half = [&](std::size_t k) {
    return primitive::cast(primitive::select(second, words[2 + k], words[k]), DType::uint64);
  };
  const Array upper = half(1);
  return primitive::binary(op_or, primitive::binary(op_shl, upper, primitive::like(upper, 32)), half(0));
}

Array philox_bits(const Array& key, const Shape& shape, DType dtype) {
  const bool is_long = num_elements(shape) > std::int64_t{1} << 32;
  return philox_bits_at(key, flat_position(shape, is_long ? DType::uint64 : DType::uint32), dtype);
}

}  // namespace shardarray::random
