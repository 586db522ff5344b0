// Op: the one place in which an operation is defined. A constinit struct of function pointers: no virtual class, no registrar.
// A definition in src/ops begins with SHARDARRAY_OP, which is all that all_ops() needs to find it.
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
using Types = SmallVector<Type, 2>;  ///< of results: mostly one

/// How the result depends on an operand, in the arithmetic of its dtype: not linearly; linearly in all `joint` operands
/// together (add); linearly in each `each` operand alone (both factors of an integer product). Linear ops transpose, and
/// partial sums pass them: f of every part, added up later, must be what f of the sum is. So linear is only
/// - what moves, repeats, selects or drops elements, or puts zeros beside them;
/// - add, sub, neg and sums: one longer sum of the same summands, whose order is free as that of any float sum
///   (right to its rounding if no sum of some of them overflows; the sign of a zero may differ);
/// - of integers products: they wrap, as sums do, and that is arithmetic modulo 2^n;
/// - of floats products with and quotients by a literal that is a power of two and makes nothing larger: they are exact
///   (parts below the smallest normal number lose at most their last bit).
/// Other float products and quotients are not: they round every part, a part overflows where the sum does not, inf times
/// parts that cancel is NaN. They are where the program asks for summands (Call::summands_asked). Nor are integer quotients, shifts, comparisons, and casts to another dtype: they round or cut
/// off every part, or the sum wraps on one side of the cast only. (XLA combines sums before all of these.)
enum class Linear : std::uint8_t { no, joint, each };

/// Rules of ops that hold graphs need derivatives of graphs: they come in here, so that ops do not include transforms.
struct Calculus {
  /// inputs x.., then a tangent for every input with `has`; outputs: y.. then dy.. (all of them).
  Graph (*derive)(const Graph& g, const std::vector<bool>& has);
  /// g is linear in the inputs with `linear`; inputs: the others, then the cotangents of the outputs; outputs: the
  /// cotangents of the linear inputs.
  Graph (*transpose)(const Graph& g, const std::vector<bool>& linear);
  /// Inputs with `mapped` gain a leading dimension; `out_mapped` says which outputs do.
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
  std::span<const Array> in;          ///< operands; only those that are not linear may be used
  std::span<const Array> cotangents;  ///< of the outputs; absent: zero
  const std::vector<bool>& linear;    ///< which operands carry tangents
  const Calculus& graphs;
};
struct BatchArgs {
  const Node& node;
  std::span<const Array> in;
  const std::vector<bool>& mapped;  ///< at dimension 0
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

/// For ops that only rearrange: operand dimension j is read at `offset + step * (index along result dimension `dim`)`,
/// or at `offset` when dim is -1.
struct MapDim {
  int dim = -1;
  std::int64_t step = 1, offset = 0;
};

/// For ops that are made of boxes: this part of the output (global coordinates) comes from operand `operand`, where the
/// element at `out.lo + i` is read at `in_lo + step * i` (per dimension; negative where reversed).
struct BoxSource {
  int operand = 0;
  Box out;
  Shape in_lo, step;
};

/// A call of a backend's library, as one device makes it: see LibraryCall.
struct LocalCall {
  const char* name;
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<std::int64_t> params;
};
struct LowerArgs {
  const Call& call;              ///< of the whole arrays
  std::span<const Box> in, out;  ///< what the device has of them
};

/// How the compiler treats an op: the closed list.
enum class Form : std::uint8_t {
  leaf,        // a placeholder or a materialised array
  scalar,      // elementwise: `scalar`
  parts,       // elementwise: takes complex numbers apart, or joins them
  map,         // rearranges within a tile: `map`; where its halo dimensions are cut: `boxes`
  view,        // reshape: the same elements in the same order
  boxes,       // assembled from boxes: `boxes` (pad value: attrs.bits)
  reduce,      // attrs.reducer over attrs.dims
  gemm,        // attrs.letters
  take,        // rows of operand 0 by operand 1
  library,     // a kernel that backends have by name: `lower`
  constraint,  // attrs.sharding
  call,        // attrs.graphs[0] on the operands
  iterate,     // attrs.graphs[0] again and again: see iteration.h
  collective,  // over attrs.axis; must be gone after the map that binds it
  choose,      // one of attrs.graphs: see branches.h
  repeat,      // attrs.graphs[1] while attrs.graphs[0] says so: see branches.h
};

inline constexpr bool is_elementwise(Form f) { return f == Form::scalar || f == Form::parts; }

/// What passes and transforms treat apart. They ask for this, never which op it is.
enum class Trait : std::uint8_t {
  none,
  literal,        // a number: attrs.bits of attrs.dtype
  alias,          // operand 0
  beside,         // operand 0 on the devices of operand 1; where these are the same, an alias
  like,           // operand 0, placed as operand 1, of which nothing is read
  asked,          // operand 0; to move it is what the program asks for
  transpose,      // dimension k of the result is dimension attrs.dims[k] of the operand
  sort,           // lines along attrs.dims[0], by operand 0, stable
  positions,      // each element's index along attrs.dims[0], in attrs.dtype
  row_list,       // the program says which row comes from where
  conversion,     // to attrs.dtype
  bits,           // of 16-bit floats it takes the bits, not the values
  sums,           // adds up: 16-bit floats in float32; attrs.uncut fixes the order
  device_rows,    // a dimension lies on the devices of attrs.axes
  without_value,  // a leaf that is a type and nothing else
  behind,         // operand 0; what reads it comes behind the other operands
  real_part,      // of the complex operand 0
  imag_part,      // the same
  pair,           // the complex number with these parts
  in_place,  // operand 0 with a part written over: where the result lies on its memory, only that is written
  reverse_only  // linear, and only its transpose is known
};

struct alignas(64) Op {  // as compilers align large objects: see SHARDARRAY_OP
  const char* name;
  Form form = Form::leaf;
  Rule (*rule)(const Call&) = nullptr;
  /// The types of the results. Null: like operand 0.
  Types (*type)(const Call&) = nullptr;
  Linear (*linearity)(const Call&, int operand) = nullptr;  ///< null: no
  Arrays (*jvp)(const JvpArgs&) =
      nullptr;  ///< null: the op applied to the tangents where linear; else no derivative
  Arrays (*transpose)(const TransposeArgs&) = nullptr;
  Batched (*batch)(const BatchArgs&) = nullptr;       ///< null: a leading dimension on every operand
  void (*scalar)(ScalarArgs&) = nullptr;              ///< elementwise
  std::vector<MapDim> (*map)(const Call&) = nullptr;  ///< rearranges within a tile, fused as an index map
  std::vector<BoxSource> (*boxes)(const Call&, const Box& out) = nullptr;  ///< assembled from boxes
  /// Where what a device reads of an operand is not its tile: for these tiles the box of every operand.
  std::vector<Box> (*windows)(const LowerArgs&) = nullptr;
  /// Of Form::library: one call, which becomes one Step. An op of several steps records several nodes.
  LocalCall (*lower)(const LowerArgs&) = nullptr;
  Trait trait = Trait::none;
  /// Of operands of which some are complex: what it is, recorded with real arithmetic on their parts. Null: it takes them as they
  /// are if it only moves elements (takes_complex), else it refuses them.
  Arrays (*on_parts)(std::span<const Array> in, const Attrs& attrs) = nullptr;
  bool whole_complex = false;  ///< its kernel computes with complex numbers as they are
  bool effect = false;         ///< kept, ordered, never duplicated
};

/// Defines an op: `SHARDARRAY_OP op_exp{.name = "exp", ...};`. The linker puts all of them side by side. One that other files
/// record is declared in record.h.
#define SHARDARRAY_OP [[gnu::section("shardarray_ops"), gnu::used, gnu::retain]] constinit const Op
/// The ops of src/ops, in no order.
std::span<const Op> all_ops();

/// The public function in which `a` was recorded; its op where that has no name.
const char* called_in(const Array& a);
/// Throws DonationError: `a` was given away. `donor`: as it was read of the node, which another thread may take back meanwhile.
[[noreturn]] void refuse_donated(const std::string& function, const Array& a, const char* donor);

/// Records `op`, infers its types, checks its shapes. The handle of output 0.
Array record(const Op& op, std::span<const Array> in, Attrs attrs = {}, Where w = {});
Array record(const Op& op, std::initializer_list<Array> in, Attrs attrs = {}, Where w = {});
Array record_one(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w = {});
/// Counts its operands where they are.
Array record_refs(const Op& op, std::initializer_list<ArrayCref> in, Where w = {});
/// The handles of all outputs.
Arrays record_all(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w);
/// The same op with other operands (a transform's replay); the line of `n`.
Arrays record_again(const Node& n, std::span<const Array> in);

Linear linearity(const Call& c, int operand);
/// Complex elements pass it as they are: it moves them, or takes them apart.
bool takes_complex(const Op& op);
inline bool is_literal(const Node& n) { return n.op->trait == Trait::literal; }

/// Ops that the library itself must recognise, defined in graph/op.cpp.
extern const Op op_input;     ///< a placeholder or a leaf with a value; no operands
extern const Op op_constant;  ///< a scalar: bits, dtype
extern const Op op_identity;  ///< renames

}  // namespace shardarray
