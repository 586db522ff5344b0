// The bits of random numbers.
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

}  // namespace shardarray
