// Random bits.
#include <algorithm>

#include "ops/rules.h"

namespace shardarray {

using namespace rules;

// Threefry-2x32, 20 rounds (Salmon et al. 2011): five groups of four rounds, each followed by a key injection.
static void emit_threefry(ScalarArgs& s) {
  KernelBuilder& b = s.b;
  auto word = [&](std::uint32_t v) { return b.constant_bits(DType::uint32, v); };
  auto add = [&](int x, int y) { return b.binary(Code::add, x, y); };
  auto xor_of = [&](int x, int y) { return b.binary(Code::xor_, x, y); };
  auto rotate = [&](int x, std::uint32_t n) {
    return b.binary(Code::or_, b.binary(Code::shl, x, word(n)), b.binary(Code::shr, x, word(32 - n)));
  };
  constexpr std::uint32_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const int key[3] = {s.in[0], s.in[1], xor_of(xor_of(s.in[0], s.in[1]), word(0x1BD11BDA))};
  int x = add(s.in[2], key[0]), y = add(s.in[3], key[1]);
  for (std::uint32_t group = 0; group < 5; group++) {
    for (std::uint32_t n : rotations[group % 2]) {
      x = add(x, y);
      y = xor_of(x, rotate(y, n));
    }
    x = add(x, key[(group + 1) % 3]);
    y = add(add(y, key[(group + 2) % 3]), word(group + 1));
  }
  s.out[0] = x;
  s.out[1] = y;
}

// uint32 k0, k1, c0, c1 -> two uint32.
SHARDARRAY_OP op_threefry = elementwise({.name = "threefry",
                                         .type =
                                             [](const Call& c) {
                                               const Type t = same_type(c)[0];
                                               return Types{t, t};
                                             },
                                         .jvp = no_tangent,
                                         .scalar = emit_threefry});

// Philox 4x32, 10 rounds (same source): two 32 x 32 bit products per round, whose high words are mixed with the other two words and the
// key; the key advances by Weyl sequences.
static void emit_philox(ScalarArgs& s) {
  KernelBuilder& b = s.b;
  auto word = [&](std::uint32_t v) { return b.constant_bits(DType::uint32, v); };
  auto wide = [&](int x) { return b.cast(x, DType::uint64); };
  auto xor_of = [&](int x, int y) { return b.binary(Code::xor_, x, y); };
  int key[2] = {s.in[0], s.in[1]}, x[4] = {s.in[2], s.in[3], s.in[4], word(0)};
  for (int round = 0; round < 10; round++) {
    const int products[2] = {
        b.binary(Code::mul, wide(x[0]), b.constant_bits(DType::uint64, 0xD2511F53)),
        b.binary(Code::mul, wide(x[2]), b.constant_bits(DType::uint64, 0xCD9E8D57)),
    };
    auto low = [&](int k) { return b.cast(products[k], DType::uint32); };
    auto high = [&](int k) {
      return b.cast(b.binary(Code::shr, products[k], b.constant_bits(DType::uint64, 32)), DType::uint32);
    };
    const int next[4] = {xor_of(xor_of(high(1), x[1]), key[0]), low(1), xor_of(xor_of(high(0), x[3]), key[1]),
                         low(0)};
    std::copy_n(next, 4, x);
    key[0] = b.binary(Code::add, key[0], word(0x9E3779B9));
    key[1] = b.binary(Code::add, key[1], word(0xBB67AE85));
  }
  std::copy_n(x, 4, s.out.begin());
}

// uint32 k0, k1, c0, c1, c2 -> four uint32. c3 is 0.
SHARDARRAY_OP op_philox = elementwise({.name = "philox",
                                       .type =
                                           [](const Call& c) {
                                             const Type t = same_type(c)[0];
                                             return Types{t, t, t, t};
                                           },
                                       .jvp = no_tangent,
                                       .scalar = emit_philox});

}  // namespace shardarray
