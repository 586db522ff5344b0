// Op: the single definition of an operation. A constinit struct of function pointers: no virtual classes, no registration. A definition in
// src/ops begins with SHARDARRAY_OP, by which all_ops() finds it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/node.h"
#include "graph/rule.h"
#include "runtime/kernel_builder.h"

namespace shardarray {

using Arrays = std::vector<Array>;
using Types = SmallVector<Type, 2>;  ///< result types: mostly one

/// How the result depends on an operand, in the arithmetic of its dtype: not linearly; linearly in all `joint` operands together (add);
/// linearly in each `each` operand alone (both factors of an integer product). Linear ops transpose and pass partial sums on: the sum of f
/// over the parts must equal f of the sum. So linear is only
/// - what moves, repeats, selects or drops elements, or pads with zeros;
/// - add, sub, neg and sums: one longer sum of the same summands, whose order is as free as that of any float sum (exact up to rounding if
///   no intermediate sum overflows; the sign of a zero may differ);
/// - integer products: like sums they wrap, which is arithmetic modulo 2^n;
/// - float products with, and quotients by, a literal power of two that does not increase the magnitude: they are exact (denormal parts
///   lose at most their last bit).
/// Other float products and quotients are not: they round every part, a part may overflow where the sum does not, and inf times parts that
/// cancel is NaN. They count as linear where the program asks for summands (Call::summands_asked). Nor are integer quotients, shifts,
/// comparisons, and casts to another dtype: they round or truncate every part, or the sum wraps on only one side of the cast. (XLA combines
/// partial sums before all of these.)
enum class Linear : std::uint8_t { no, joint, each };

/// Rules of ops that hold graphs need derivatives of graphs: passed in, so that ops do not include transforms.
struct Calculus {
  /// Inputs: x.., then a tangent for each input with `has`. Outputs: y.., and all dy..
  Graph (*derive)(const Graph& g, const std::vector<bool>& has);
  /// g is linear in the inputs marked in `linear`. Inputs: the others, then the cotangents of the outputs. Outputs: the cotangents of the
  /// linear inputs.
  Graph (*transpose)(const Graph& g, const std::vector<bool>& linear);
  /// Inputs marked in `mapped` get a leading dimension; `out_mapped` says which outputs do.
  Graph (*batch)(const Graph& g, const std::vector<bool>& mapped, std::shared_ptr<const Axis> axis,
                 std::vector<bool>& out_mapped);
};

struct JvpArgs {
  const Node& node;
  std::span<const Array> in, out;
  std::span<const Array> tangents;  ///< absent: zero
  const Calculus& graphs;
};
struct TransposeArgs {
  const Node& node;
  std::span<const Array> in;          ///< operands; only the non-linear ones may be used
  std::span<const Array> cotangents;  ///< of the outputs; absent: zero
  const std::vector<bool>& linear;    ///< which operands have tangents
  const Calculus& graphs;
};
struct BatchArgs {
  const Node& node;
  std::span<const Array> in;
  const std::vector<bool>& mapped;  ///< mapped operands have the new dimension at 0
  std::shared_ptr<const Axis> axis;
  const Calculus& graphs;
};
struct Batched {
  Arrays out;
  std::vector<bool> mapped;
};

/// Emits the scalar expression of an elementwise op.
struct ScalarArgs {
  KernelBuilder& b;
  const Call& call;
  std::span<const int> in;  ///< values
  std::span<int> out;
  /// The global index (int64) along dimension d of the result.
  int (*index)(ScalarArgs& self, int d);
  void* fusion;
};

/// For ops that only rearrange: operand dimension j is read at `offset + step * (index along result dimension `dim`)`, or at `offset` if
/// dim is -1.
struct MapDim {
  int dim = -1;
  std::int64_t step = 1, offset = 0;
};

/// For ops assembled from boxes: this part of the output (global coordinates) comes from operand `operand`; the element at `out.lo + i` is
/// read at `in_lo + step * i` (per dimension; step is negative if reversed).
struct BoxSource {
  int operand = 0;
  Box out;
  Shape in_lo, step;
};

/// A library call of a backend, for one device: see LibraryCall.
struct LocalCall {
  const char* name;
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<std::int64_t> params;
};
struct LowerArgs {
  const Call& call;              ///< with global shapes
  std::span<const Box> in, out;  ///< the device's boxes
};

/// How the compiler treats an op: the complete list.
enum class Form : std::uint8_t {
  leaf,        // a placeholder or a materialised array
  scalar,      // elementwise: `scalar`
  parts,       // elementwise: splits complex numbers into parts, or joins them
  map,         // rearranges within a tile: `map`; if its halo dimensions are sharded: `boxes`
  view,        // reshape: the same elements in the same order
  boxes,       // assembled from boxes: `boxes` (pad value: attrs.bits)
  reduce,      // attrs.reducer over attrs.dims
  gemm,        // attrs.letters
  take,        // gathers rows of operand 0 by operand 1
  library,     // a kernel that backends provide by name: `lower`
  constraint,  // attrs.sharding
  call,        // attrs.graphs[0] on the operands
  iterate,     // calls attrs.graphs[0] repeatedly: see iteration.h
  collective,  // over attrs.axes; resolved by the map that binds them
  choose,      // one of attrs.graphs: see branches.h
  repeat,      // attrs.graphs[1] while attrs.graphs[0] holds: see branches.h
};

inline constexpr bool is_elementwise(Form f) { return f == Form::scalar || f == Form::parts; }

/// What passes and transforms handle specially. They ask for this, never for the op.
enum class Trait : std::uint8_t {
  none,
  literal,        // a scalar constant: attrs.bits of attrs.dtype
  alias,          // equals operand 0
  beside,         // operand 0 on the devices of operand 1; an alias if they are the same
  like,           // operand 0, placed like operand 1, whose values are not read
  asked,          // operand 0; the program asked for moving it
  transpose,      // dimension k of the result is dimension attrs.dims[k] of the operand
  sort,           // sorts lines along attrs.dims[0] by operand 0, stably
  positions,      // each element's index along attrs.dims[0], in attrs.dtype
  row_list,       // the program states which row comes from where
  conversion,     // a cast to attrs.dtype
  bits,           // reads the bits of 16-bit floats, not their values
  sums,           // sums: 16-bit floats in float32; attrs.uncut fixes the order
  device_rows,    // a dimension is laid out over the devices of attrs.axes
  without_value,  // a leaf with a type but no value
  behind,         // operand 0; its readers run after the other operands
  real_part,      // of the complex operand 0
  imag_part,      // likewise
  pair,           // the complex number of these parts
  in_place,  // operand 0 with a part overwritten: if the result shares its memory, only that part is written
  reverse_only  // linear, but only its transpose is known
};

struct alignas(64) Op {  // the alignment compilers give large objects: see SHARDARRAY_OP
  const char* name;
  Form form = Form::leaf;
  Rule (*rule)(const Call&) = nullptr;
  /// Result types. Null: that of operand 0.
  Types (*type)(const Call&) = nullptr;
  Linear (*linearity)(const Call&, int operand) = nullptr;  ///< null: no
  Arrays (*jvp)(const JvpArgs&) =
      nullptr;  ///< null: if linear, the op applied to the tangents; else not differentiable
  Arrays (*transpose)(const TransposeArgs&) = nullptr;
  Batched (*batch)(const BatchArgs&) = nullptr;       ///< null: every operand gets a leading dimension
  void (*scalar)(ScalarArgs&) = nullptr;              ///< elementwise
  std::vector<MapDim> (*map)(const Call&) = nullptr;  ///< rearranges within a tile, fused as an index map
  std::vector<BoxSource> (*boxes)(const Call&, const Box& out) = nullptr;  ///< assembled from boxes
  /// If a device reads more of an operand than its tile: the box of every operand for these tiles.
  std::vector<Box> (*windows)(const LowerArgs&) = nullptr;
  /// Of Form::library: one call, which becomes one Step. An op of several steps records several nodes.
  LocalCall (*lower)(const LowerArgs&) = nullptr;
  Trait trait = Trait::none;
  /// How to compute it on complex operands, with real arithmetic on their parts. Null: ops that only move elements take them as they are
  /// (takes_complex), others refuse them.
  Arrays (*on_parts)(std::span<const Array> in, const Attrs& attrs) = nullptr;
  bool whole_complex = false;  ///< its kernel computes with complex numbers directly
  bool effect = false;         ///< kept, in order, never duplicated
};

/// Defines an op: `SHARDARRAY_OP op_exp{.name = "exp", ...};`. The linker places all of them side by side. Ops recorded by other files are
/// declared in record.h.
#define SHARDARRAY_OP [[gnu::section("shardarray_ops"), gnu::used, gnu::retain]] constinit const Op
/// The ops of src/ops, in unspecified order.
std::span<const Op> all_ops();

/// The public function in which `a` was recorded, or the op's name.
const char* called_in(const Array& a);
/// Throws DonationError: `a` was donated. `donor` as read from the node, because another thread may reset that meanwhile.
[[noreturn]] void refuse_donated(const std::string& function, const Array& a, const char* donor);

/// Records `op`, infers its types, checks its shapes. Returns output 0.
Array record(const Op& op, std::span<const Array> in, Attrs attrs = {}, Where w = {});
Array record(const Op& op, std::initializer_list<Array> in, Attrs attrs = {}, Where w = {});
Array record_one(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w = {});
/// The same, without copying the operand handles first.
Array record_refs(const Op& op, std::initializer_list<ArrayCref> in, Where w = {});
/// The same; returns all outputs.
Arrays record_all(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w);
/// The same op with other operands (for replay by transforms), at the line of `n`.
Arrays record_again(const Node& n, std::span<const Array> in);

Linear linearity(const Call& c, int operand);
/// Whether complex elements pass unchanged: the op moves them, or splits them into parts.
bool takes_complex(const Op& op);
inline bool is_literal(const Node& n) { return n.op->trait == Trait::literal; }

/// Ops that the library itself needs to know, defined in graph/op.cpp.
extern const Op op_input;     ///< a placeholder or a leaf with a value; no operands
extern const Op op_constant;  ///< a scalar of `bits`, `dtype`
extern const Op op_identity;  ///< the operand under a new name

}  // namespace shardarray
