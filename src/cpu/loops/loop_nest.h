// LoopNest: one item of a Loop step as generated code sees it: which loops run around its kernel and how every
// access moves along them. Two items with equal specs share their code; numbers (extents, strides, starts) come
// at run time.
//
// Outer axes are put in an order that suits memory; neighbours that one stride serves are merged. Vectors run
// along the last outer axis (columns) or the last inner one (rows).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/loops/interpreter.h"
#include "runtime/program.h"

namespace shardarray {

/// How an access moves along an axis: not at all, to the neighbouring element (an index: by one), otherwise.
enum class Stride : std::uint8_t { none, next, other };
/// Of a stride, where neighbours are `step` apart.
inline Stride stride_class(std::int64_t stride, std::int64_t step) {
  return stride == 0 ? Stride::none : stride == step ? Stride::next : Stride::other;
}

struct LoopNestSpec {
  std::shared_ptr<const Kernel> kernel;
  LoopMode mode = LoopMode::columns;
  std::int32_t outer = 0,
               inner = 0;       ///< axes, at least one outer; inner ones where the kernel has inner stages
  std::vector<Stride> strides;  ///< [access][axis]; accesses are the kernel's in order
  static constexpr std::int64_t short_row = 16384;
  bool short_rows = false;          ///< rows mode: one inner axis of at most that many points
  bool streams = false;             ///< nobody reads soon what it writes: stores go past the caches
  bool blocks = false;              ///< float sums or products over more inner points than a block has
  std::vector<bool> adjacent = {};  ///< by access: its rows found at run time are elements side by side
  /// Extents of the last outer axes where these are short: vectors run across them and the axis before, as if all were one. Part of the
  /// code.
  std::vector<std::int64_t> packed = {};
  std::vector<bool> goes_on =
      {};  ///< by access, where axes are packed: its elements are neighbours across them
  /// Extents and strides as they stand in the numbers, and all points at once: part of the code. Empty: they come at
  /// run time.
  std::vector<std::int64_t> fixed;

  int rank() const { return outer + inner; }
  /// The outer axis along which vectors run in columns mode; the first one of those that they run across.
  int vector_axis() const { return outer - 1 - static_cast<int>(packed.size()); }
  /// Whether an access is a load whose neighbours lie along the axis before the vectors': it is read in blocks.
  bool turns(std::size_t access) const;
  /// Equal words, equal code; none is the key of another kind of spec.
  std::vector<std::uint64_t> key() const;
};
/// Appends a kernel to the words of a key.
void put_kernel(const Kernel& k, std::vector<std::uint64_t>& words);
/// The instructions of a kernel that touch memory or are an index, in order.
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
  return strides[axis - 1] == Stride::next && strides[axis] == Stride::other &&
         kernel->code[static_cast<std::size_t>(accesses_of(*kernel)[access])].code == Code::load;
}

/// The numbers that generated code reads: the extent of every axis, then for each access `access_words` of them.
struct LoopNestNumbers {
  static constexpr int row_stride = 0, lo = 1, count = 2;  ///< of a load_at, behind the strides
  static constexpr int start = 0;                          ///< of an index: its value at domain point 0
  static int access_words(int rank) { return rank + 3; }
  static int access(int rank, int a) { return rank + a * access_words(rank); }
  /// Whether number k is an extent or a stride; else it says where an index starts or which rows exist.
  static bool is_shape(int rank, int k) { return k < rank || (k - rank) % access_words(rank) < rank; }
};
/// Runs the kernel over a box of outer points: [box[2 d], box[2 d + 1]) along outer axis d. `args` are the
/// addresses of domain point 0.
using LoopNestFunction = void (*)(void* const* args, const std::int64_t* numbers, const std::int64_t* box);

class LoopNest {
 public:
  /// Columns are worked on in tiles of so many outer points where a kernel reduces.
  static constexpr std::int64_t tile = 128;

  LoopNest(std::shared_ptr<const Kernel> kernel, const Loop::Item& item);
  LoopNest(std::shared_ptr<const Kernel> kernel, const Loop::Item& item, LoopMode mode);
  /// Of a kernel that reduces nothing: its axes are dimensions of the domain, so that boxes of these can be run.
  static LoopNest of_dimensions(std::shared_ptr<const Kernel> kernel, const Loop::Item& item);

  const LoopNestSpec& spec() const { return spec_; }
  /// Whether there is anything to compile: an item without points stays with the interpreter.
  bool has_points() const { return has_points_; }
  /// Pieces of the outer points that may run anywhere; any cut gives the same bits.
  std::int64_t units() const { return units_; }
  /// Points of a unit where all points are one axis that units may cut; else 0.
  std::int64_t grain() const { return axes_.size() == 1 && spec_.fixed.empty() ? grain_ : 0; }
  double cost_ns() const { return cost_ns_; }
  void run(LoopNestFunction f, void* const* bases, std::int64_t begin, std::int64_t end) const;
  /// Runs points [box[2 d], box[2 d + 1]) along dimension d; of_dimensions() made it. An argument that is read may stand elsewhere:
  /// the box's first point at `at`, steps along `dimension` of so many elements; along the others they are as ever.
  struct Elsewhere {
    std::size_t argument;
    const void* at;
    int dimension;
    std::int64_t stride;
  };
  void run_box(LoopNestFunction f, void* const* bases, const std::int64_t* box,
               const Elsewhere* elsewhere = nullptr) const;
  /// What the function is given for all points: where domain point 0 of every argument is, and the numbers.
  const std::vector<Ref>& refs() const { return refs_; }
  const std::vector<std::int64_t>& numbers() const { return numbers_; }
  /// Makes extents and strides part of the code and all points one unit: where a call costs as much as its points.
  void fix_numbers();
  /// What it writes will not be found in the caches.
  void stream() { spec_.streams = true; }

 private:
  struct Access {
    int instr;
    std::vector<std::int64_t> strides;  // by dimension; bytes, or steps of an index
  };
  struct Axis {
    std::int64_t extent;
    std::vector<std::int64_t> strides;  // by access
    int dimension;                      // of the domain; of several that are one axis, the last
  };
  struct AxisOrder {
    std::vector<Axis> axes;
    std::int32_t outer;  // so many of them are; the others are inner ones
  };
  LoopNest() = default;
  void fill(std::shared_ptr<const Kernel> kernel, const Loop::Item& item, LoopMode mode);
  void collect(const Loop::Item& item);
  void order_axes(LoopMode mode, const Loop::Item& item);
  void describe_axes();
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
  int points_ = 0;          // axes before it are taken one point at a time
  int split_ = 0;           // the axis that units cut; all others are whole
  std::int64_t grain_ = 1;  // points of the cut axis in a unit
  std::int64_t blocks_ = 1, units_ = 0;
  double cost_ns_ = 0;
};

}  // namespace shardarray
