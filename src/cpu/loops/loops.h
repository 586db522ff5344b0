// Loops: the interpreter's inner loops, one simple function per opcode and type over rows of elements in memory.
//
// loops.inc is compiled twice, for the architecture's baseline and for x86-64-v3: same bits, different speed (std::fma takes 3.0 ns per
// element without the instruction, 0.03 ns with it).
#pragma once
#include <cstdint>

#include "runtime/kernel.h"

namespace shardarray {

/// dst[i] = f(a[i], b[i], c[i]) for i < n. Operands that f does not have are not read. dst may be an operand.
using RowFunction = void (*)(void* dst, const void* a, const void* b, const void* c, std::int64_t n);

/// Inner points [begin, end) of `points`, in blocks of `block`, a power of two.
struct BlockedPoints {
  std::int64_t begin, end, points, block;
};
/// dst: the lanes of the current block, the total of the finished blocks, its rounding error. Adds the points from a.
using BlockFunction = void (*)(void* dst, const void* a, const void* identity, const BlockedPoints& points);

struct Loops {
  static constexpr int codes = static_cast<int>(Code::call) + 1;
  static constexpr int types = static_cast<int>(float64) + 1;
  static constexpr int lanes = 32;  // of a float reduction over a row

  // By operand type; null where kernel.h defines nothing.
  RowFunction op[codes][types] = {};
  RowFunction cast[types][types] = {};  // [from][to]
  RowFunction call[function_count] = {};
  RowFunction accumulate[codes][types] =
      {};                               // by the combining code: dst[i % lanes] = f(dst[i % lanes], a[i])
  RowFunction fold[codes][types] = {};  // dst[0] = the lanes a[0..lanes) combined pairwise
  BlockFunction accumulate_blocks[codes][types] = {};  // of floats
  // By type, for floats: the rounding error of adding a block's sum, and the total corrected by it (scalar.h).
  RowFunction add_rounded_off[types] = {};   // dst[i] += rounded_off(a[i], b[i])
  RowFunction with_rounded_off[types] = {};  // dst[i] = with_rounded_off(a[i], b[i])
  // By log2 of the element's bytes. Strides are in elements.
  RowFunction select[4] = {};
  RowFunction splat[4] = {};  // a: one element
  void (*gather[4])(void* dst, const void* src, std::int64_t stride,
                    std::int64_t n) = {};  // dst[i] = src[i * stride]
  void (*scatter[4])(void* dst, const void* src, std::int64_t stride,
                     std::int64_t n) = {};  // dst[i * stride] = src[i]
  // dst[i] = src[i * stride + rows[i] * row_stride] where 0 <= rows[i] - lo < count, else 0; src is row lo
  void (*gather_rows[4])(void* dst, const void* src, const std::int64_t* rows, std::int64_t stride,
                         std::int64_t row_stride, std::int64_t lo, std::int64_t count, std::int64_t n) = {};
  void (*iota)(std::int64_t* dst, std::int64_t start, std::int64_t step, std::int64_t n) = nullptr;
};

/// Whether this CPU has the parts of x86-64-v3 that compilers use.
bool has_v3();
/// Whether it has x86-64-v4 (AVX-512).
bool has_v4();
const Loops& baseline_loops();
/// The x86-64-v3 loops; null if this machine or build has none.
const Loops* v3_loops();
/// The fastest ones that run here.
const Loops& best_loops();

}  // namespace shardarray
