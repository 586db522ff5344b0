// LoopNest: one item of a Loop step as generated code sees it: the loops around its kernel, and how every access moves along them. Items
// with equal specs share code; numbers (extents, strides, starts) are passed at run time.
//
// Outer axes are ordered for memory locality; adjacent ones that one stride covers are merged. Vectors run along the last outer axis
// (columns) or the last inner one (rows).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/loops/interpreter.h"
#include "runtime/program.h"

namespace shardarray {

/// How an access moves along an axis: not at all, to the next element (an index: by one), to the previous one, to the next but one (as the
/// parts of complex numbers), otherwise.
enum class Stride : std::uint8_t { none, next, previous, second, other };
/// The class of a stride; adjacent elements are `step` apart.
inline Stride stride_class(std::int64_t stride, std::int64_t step) {
  return stride == 0          ? Stride::none
         : stride == step     ? Stride::next
         : stride == -step    ? Stride::previous
         : stride == 2 * step ? Stride::second
                              : Stride::other;
}

struct LoopNestSpec {
  std::shared_ptr<const Kernel> kernel;
  LoopMode mode = LoopMode::columns;
  std::int32_t outer = 0,
               inner = 0;       ///< axes, at least one outer; inner ones if the kernel has inner stages
  std::vector<Stride> strides;  ///< [access][axis]; accesses in kernel order
  static constexpr std::int64_t short_row = 16384;
  bool short_rows = false;          ///< rows mode: one inner axis of at most short_row points
  bool streams = false;             ///< its results are not read soon: stores bypass the caches
  bool blocks = false;              ///< float sums or products over more inner points than a block
  std::vector<bool> adjacent = {};  ///< by access: a load_at whose rows are contiguous elements
  /// By access: for a store of imaginary parts that lie between the real parts of an earlier one, that one; else -1. Empty: there are none.
  std::vector<std::int32_t> real_parts = {};
  /// Extents of the last outer axes where these are short: vectors span them and the axis before as if all were one. Part of the code.
  std::vector<std::int64_t> packed = {};
  std::vector<bool> goes_on = {};  ///< by access, if axes are packed: contiguous across them
  /// Extents and strides, laid out like the numbers, as part of the code, with all points in one call. Empty: passed at run time.
  std::vector<std::int64_t> fixed;

  int rank() const { return outer + inner; }
  /// The outer axis along which vectors run in columns mode; the first of those that they span.
  int vector_axis() const { return outer - 1 - static_cast<int>(packed.size()); }
  /// Whether an access is a load contiguous (or of one part of contiguous pairs) along the axis before the vector axis: it is read in
  /// transposed blocks.
  bool turns(std::size_t access) const;
  /// Equal words, equal code; never equal to another kind of spec's key.
  std::vector<std::uint64_t> key() const;
};
/// Appends a kernel to a key's words.
void put_kernel(const Kernel& k, std::vector<std::uint64_t>& words);
/// The instructions of a kernel that access memory or are an index, in order.
inline std::vector<int> accesses_of(const Kernel& k) {
  std::vector<int> a;
  for (std::size_t v = 0; v < k.code.size(); v++) {
    if (k.code[v].code >= Code::index && k.code[v].code <= Code::store) a.push_back(static_cast<int>(v));
  }
  return a;
}

/// Inline: the plug-in calls it.
inline bool LoopNestSpec::turns(std::size_t access) const {
  if (mode != LoopMode::columns || outer < 2 || inner > 0 || !packed.empty()) return false;
  const std::size_t axis = access * static_cast<std::size_t>(rank()) + static_cast<std::size_t>(outer) - 1;
  return (strides[axis - 1] == Stride::next || strides[axis - 1] == Stride::second) &&
         strides[axis] == Stride::other &&
         kernel->code[static_cast<std::size_t>(accesses_of(*kernel)[access])].code == Code::load;
}

/// The numbers that generated code reads: the extent of every axis, then `access_words` per access.
struct LoopNestNumbers {
  static constexpr int row_stride = 0, lo = 1, count = 2;  ///< of a load_at, after the strides
  static constexpr int start = 0;                          ///< of an index: its value at domain point 0
  static int access_words(int rank) { return rank + 3; }
  static int access(int rank, int a) { return rank + a * access_words(rank); }
  /// Whether number k is an extent or a stride; else it is an index's start or describes which rows exist.
  static bool is_shape(int rank, int k) { return k < rank || (k - rank) % access_words(rank) < rank; }
};
/// Runs the kernel over a box of outer points: [box[2 d], box[2 d + 1]) along outer axis d. `args` are the arguments' addresses at domain
/// point 0.
using LoopNestFunction = void (*)(void* const* args, const std::int64_t* numbers, const std::int64_t* box);

class LoopNest {
 public:
  /// Outer points per tile in columns mode, if the kernel reduces.
  static constexpr std::int64_t tile = 128;

  LoopNest(std::shared_ptr<const Kernel> kernel, const Loop::Item& item);
  LoopNest(std::shared_ptr<const Kernel> kernel, const Loop::Item& item, LoopMode mode);
  /// For a kernel without reductions: axes are the domain's dimensions, so that boxes of them can be run.
  static LoopNest of_dimensions(std::shared_ptr<const Kernel> kernel, const Loop::Item& item);

  const LoopNestSpec& spec() const { return spec_; }
  /// Whether there is anything to compile: an item without points stays in the interpreter.
  bool has_points() const { return has_points_; }
  /// Pieces of the outer points that may run anywhere; any split gives the same bits.
  std::int64_t units() const { return units_; }
  /// Points per unit if all points are one axis that units split; else 0.
  std::int64_t grain() const { return axes_.size() == 1 && spec_.fixed.empty() ? grain_ : 0; }
  double cost_ns() const { return cost_ns_; }
  void run(LoopNestFunction f, void* const* bases, std::int64_t begin, std::int64_t end) const;
  /// Runs points [box[2 d], box[2 d + 1]) along dimension d, for a nest made by of_dimensions(). One argument that is read may be
  /// elsewhere: the box's first point at `at`, with stride `stride` elements along `dimension`; other strides are unchanged.
  struct Elsewhere {
    std::size_t argument;
    const void* at;
    int dimension;
    std::int64_t stride;
  };
  void run_box(LoopNestFunction f, void* const* bases, const std::int64_t* box,
               const Elsewhere* elsewhere = nullptr) const;
  /// The function's inputs for all points: every argument's address at domain point 0, and the numbers.
  const std::vector<Ref>& refs() const { return refs_; }
  const std::vector<std::int64_t>& numbers() const { return numbers_; }
  /// Makes extents and strides part of the code and all points one unit: for when a call costs as much as its points.
  void fix_numbers();
  /// Its results will not be found in the caches.
  void stream() { spec_.streams = true; }

 private:
  struct Access {
    int instr;
    std::vector<std::int64_t> strides;  // by dimension; in bytes, or an index's steps
  };
  struct Axis {
    std::int64_t extent;
    std::vector<std::int64_t> strides;  // by access
    int dimension;                      // of the domain; for merged dimensions, the last one
  };
  struct AxisOrder {
    std::vector<Axis> axes;
    std::int32_t outer;  // the number of outer ones; the others are inner
  };
  LoopNest() = default;
  void fill(std::shared_ptr<const Kernel> kernel, const Loop::Item& item, LoopMode mode);
  void collect(const Loop::Item& item);
  void order_axes(LoopMode mode, const Loop::Item& item);
  void describe_axes();
  void find_pairs(const Loop::Item& item);
  void add_dimension(std::vector<Axis>& axes, const Loop::Item& item, int d) const;
  AxisOrder ordered_axes(const Loop::Item& item, int last, int second) const;
  int turned_dimension(const Loop::Item& item, int last) const;
  double estimate(const AxisOrder& order, LoopMode mode) const;
  bool goes_on(const std::vector<Axis>& axes, std::size_t from, std::size_t access) const;
  double estimate_packed(const std::vector<Axis>& axes, std::size_t packed) const;
  bool pack(AxisOrder order, double least);
  void store_numbers(const Loop::Item& item);
  void choose_units();

  LoopNestSpec spec_;
  std::vector<Access> accesses_;
  std::vector<Axis> axes_;
  std::vector<std::int64_t> numbers_;
  std::vector<Ref> refs_;  // by argument
  bool has_points_ = true, joins_ = true;
  int points_ = 0;          // axes before it are iterated one point at a time
  int split_ = 0;           // the axis that units split; others from points_ on are whole
  std::int64_t grain_ = 1;  // points of the split axis per unit
  std::int64_t blocks_ = 1, units_ = 0;
  double cost_ns_ = 0;
};

}  // namespace shardarray
