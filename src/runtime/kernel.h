// Kernel IR: a small typed loop nest with a scalar expression body; run by the interpreter, printed by code generators.
//
// The domain is `outer` dimensions followed by `inner` ones; extents are given at run time. A kernel is a list of stages. An inner stage
// runs once per point of the domain, in row-major order of the inner dimensions for each outer point; an outer stage runs once per outer
// point. Instructions are numbered through all stages (SSA); a stage may use
//   - values of its own stage,
//   - in any stage: values of earlier outer stages and the results of `reduce` of earlier inner stages.
// `reduce` occurs in an inner stage and combines its operand over the inner dimensions. The order of float sums and products is part of the
// kernel (`ReductionOrder`), so that all backends give the same bits. The flat inner index j = 0, 1, ... is split into blocks. Within a
// block element j goes to lane j % lanes, each lane starts at the identity, and lanes are combined pairwise l[i] += l[i + lanes / 2], ...,
// 4, 2, 1: lane 0 is the block's result p. A total that starts at the identity takes the blocks' results in order:
//   prod  total *= p
//   sum   t = total + p, z = t - total, lost += (total - (t - z)) + (p - z), total = t
//         (the rounding error of the addition, Knuth); the result is total + lost if that is finite, else total
// So a single block gives p itself, and the rounding error of a sum does not grow with the number of blocks.
//
// The arithmetic is the same everywhere: IEEE, denormals kept, no contraction; `fma` is the only fused operation.
//   min, max      NaN if an operand is NaN (the canonical quiet one); max(-0, 0) = +0, min(-0, 0) = -0 in any order
//   div, rem      integers: x / 0 = -1 and x % 0 = x; the lowest value / -1 wraps; truncated towards zero
//   rem           floats: C's fmod
//   shl, shr      amounts >= width give 0 (shr of a negative signed value: -1); shr is arithmetic on signed types
//   cast          float to integer truncates and saturates, NaN gives 0; to bool is "not zero"; integers wrap
//   round         to nearest even
//   comparisons   give bool, stored as one byte 0 or 1
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/reducer.h"
#include "shardarray/dtype.h"

namespace shardarray {

enum class Code : std::uint8_t {
  constant,  // imm: the bits, in the low bytes
  index,     // imm: domain dimension; the global index along it, int64
  load,      // imm: argument; at the point's affine address
  load_at,  // imm: argument; a: int64 row. Reads row a of the argument's indirect dimension, 0 outside [lo, lo + count)
  store,    // imm: argument; a: the value. Has no result
  reduce,   // imm: Reducer; a: the value
  cast,     // a, from its type to `type`
  bitcast,  // a, same width
  neg,
  abs,
  sqrt,
  floor,
  ceil,
  round,
  trunc,
  not_,  // the above: one operand (not_: bitwise; logical on bool)
  add,
  sub,
  mul,
  div,
  rem,
  min,
  max,  // the above: two operands of the result's type
  and_,
  or_,
  xor_,
  shl,
  shr,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,      // the comparisons: two operands of one type, gives bool
  fma,     // a * b + c, rounded once
  select,  // a ? b : c
  call,    // imm: Function; float64 only: a (and b)
};
/// float64 functions that are one C function each, for the interpreter and generated code (float32 ones are expanded into the codes above,
/// see expand.h).
enum class Function : std::uint8_t {
#define SHARDARRAY_UNARY(name) name,
#define SHARDARRAY_BINARY(name) name,
#include "runtime/functions.inc"
};
inline constexpr int function_count = [] {
  int n = 0;
#define SHARDARRAY_UNARY(name) n++;
#define SHARDARRAY_BINARY(name) n++;
#include "runtime/functions.inc"
  return n;
}();

const char* name(Code c);
const char* name(Function f);
/// How many of a, b, c an instruction uses (call: depends on its function).
int operand_count(Code c, std::uint64_t imm);

struct Instr {
  Code code;
  DType type;  ///< of the result; for a load, of the argument
  std::int32_t a = -1, b = -1, c = -1;
  std::uint64_t imm = 0;
  friend bool operator==(const Instr&, const Instr&) = default;
};

struct KernelArg {
  DType type;
  bool output = false;    ///< written by a store (at most one per argument), otherwise only read
  bool indirect = false;  ///< read by load_at
  friend bool operator==(const KernelArg&, const KernelArg&) = default;
};

struct Stage {
  bool inner = false;
  std::int32_t end = 0;  ///< instructions [end of the previous stage, end)
  friend bool operator==(const Stage&, const Stage&) = default;
};

/// The order of float sums and products (above): both are powers of two, and block is a multiple of lanes.
///
/// 32 lanes are 8 vectors of 4, 4 of 8, or 2 of 16 floats: enough independent additions. In float32, 32 equal numbers per lane are off by
/// at most 5.1e-7 (64 by 9.9e-7), so 1024 is the longest block with which two-step sums (of rows, then of their sums) stay within about
/// 1e-6. Shorter blocks would combine lanes more often.
struct ReductionOrder {
  std::int32_t lanes = 32, block = 1024;
  friend bool operator==(const ReductionOrder&, const ReductionOrder&) = default;
};

struct Kernel {
  std::int32_t outer = 0, inner = 0;
  ReductionOrder order = {};
  std::vector<KernelArg> args;
  std::vector<Instr> code;
  std::vector<Stage> stages;
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// Whether an instruction is a reduction whose bits depend on the order.
inline bool is_ordered(const Instr& in) {
  const auto r = static_cast<Reducer>(in.imm);
  return in.code == Code::reduce && is_floating(in.type) && (r == Reducer::sum || r == Reducer::prod);
}
/// Whether every point is computed by itself, whatever its index.
bool is_pointwise(const Kernel& k);
/// Throws InternalError naming the instruction that breaks a rule above.
void verify(const Kernel& k);
/// Whether `output` may alias `input` (same address and strides): every point is read before it is written, that is, no load of `input`
/// follows the store of `output`, and none is indirect.
bool may_overwrite(const Kernel& k, int input, int output);
/// One instruction per line: `%3 = mul f32 %1 %2`.
std::string to_string(const Kernel& k);

}  // namespace shardarray
