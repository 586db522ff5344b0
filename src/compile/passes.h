// What passes hand to each other. See pipeline.cpp for their order.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "compile/index_map.h"
#include "compile/sub_axis_list.h"
#include "graph/iteration.h"

namespace shardarray {

// ---------------------------------------------------------------- simplify: FlatGraph -> FlatGraph
/// Calls are inlined, identities removed, equal nodes merged, dead ones dropped, dots brought into matrix form, large sums split for the
/// workers of this many devices.
FlatGraph simplify(const FlatGraph& g, int devices, const Target& target);
/// Of a simplified graph: what loops read beside their points (pads of slices, pads, rolls of one value) becomes slices of one padded
/// value, if that stores less. None: nothing changes.
std::optional<FlatGraph> gather_shifts(const FlatGraph& g);
/// Of a simplified graph: float sums and products of `reproducible` lines get an order that no sharding changes.
FlatGraph fix_order(const FlatGraph& g);
/// All of them, as for compilation.
FlatGraph simplify_and_order(const FlatGraph& g, int devices, const Target& target);

// ---------------------------------------------------------------- propagate
/// The finest common sub-axes (of prime sizes) of all layouts of a program, most significant first.
struct SubAxes {
  const DeviceOrder* order = nullptr;
  std::vector<SubAxis> axes;
  /// From the sub-axes of `layouts`; those that fit into no common chain are left out (their values move by an exchange).
  static SubAxes of(const DeviceOrder* order, std::span<const Layout* const> layouts);
  bool can_express(const Layout& l) const;
  /// Appends a sub-axis, which must be expressible, as indices into `axes`.
  void append(SubAxis a, SubAxisList& to) const;
  AxisList axis_list(const SubAxisList& sub_axes) const;
  /// The expressible layout that is closest to one that is not.
  const Layout* nearest(const Layout& l) const;
  int size(int sub_axis) const { return axes[static_cast<std::size_t>(sub_axis)].size; }
};

/// One value's sharding as sub-axes, dimension by dimension.
using SubAxisDims = SmallVector<SubAxisList, 4>;
SubAxisDims to_sub_axes(const SubAxes& sub_axes, const Layout& l);
const Layout* to_layout(const SubAxes& sub_axes, const SubAxisDims& dims, const SubAxisList& unreduced = {},
                        Reducer r = Reducer::none);
/// Axes over which to share values that are sharded like these: all axes, then those of one dimension of one value, each once.
std::vector<SubAxisList> sharing_axes(const SubAxes& sub_axes, const std::vector<SubAxisDims>& values);
/// `dims`, no longer sharded along these axes.
SubAxisDims without(SubAxisDims dims, const SubAxisList& axes);

/// Preferred layouts: those of leaves, constraints and requested outputs are closed, the others were propagated from them.
struct Preferences {
  std::vector<SubAxisDims> dims;       ///< per value
  std::vector<SubAxisList> unreduced;  ///< per value: sub-axes over which it is requested as summands
  std::vector<bool> closed;            ///< given, not just preferred
  std::vector<bool>
      from_closed;  ///< flows, elementwise, into a given layout: the preference is as good as closed
  std::vector<const Layout*> outputs;  ///< per result of the program: its required layout; null: open
  friend bool operator==(const Preferences&, const Preferences&) = default;
};
struct Propagation {
  SubAxes sub_axes;         ///< of all given layouts
  std::vector<Rule> rules;  ///< per node
  Preferences preferences;
};
Propagation propagate(const FlatGraph& g, const CompileInput& in);

// ---------------------------------------------------------------- partition
/// The sub-axes on each factor of a node.
using Assignment = SmallVector<SubAxisList, 6>;

struct LocalValue {
  Type type;
  const Layout* layout = nullptr;
  int step = -1;   ///< its producer; -1: an input
  int input = -1;  ///< its number
  /// By position in the layout's order: the box it holds, if that is not its tile. Such boxes overlap.
  std::shared_ptr<const std::vector<Box>> windows = nullptr;
};
/// How a step is assembled from boxes of its operands, instead of as its node says: those that fill the box of each position.
struct Assembly {
  std::vector<std::vector<BoxSource>> sources;  ///< by position; operand numbers are the step's
  std::vector<bool> fills;                      ///< by position: gaps are filled with `bits`
  std::uint64_t bits = 0;
};
struct LocalStep {
  int node = -1;             ///< flat node; -1: a transfer
  int transfer = -1;         ///< index into Partition::transfers (also of a node that moves boxes); -1: none
  std::vector<int> in, out;  ///< local values
  bool copy = false;         ///< a result that needs its own memory
  std::shared_ptr<const Assembly> assembly = nullptr;
};
/// Carries of a loop: each iteration overwrites a carry in place, or writes it into the other one of two buffers.
struct CarryBuffers {
  std::vector<bool> in_place;  ///< by carry: overwritten in place
  /// The number of double-buffered carries among the first `count`.
  std::size_t doubled(std::size_t count) const;
  std::size_t doubled() const { return doubled(in_place.size()); }
};
/// A node that calls a program repeatedly; its step has the node's operands, then results, then second buffers of carries.
struct CalledIteration {
  Iteration iteration;
  std::shared_ptr<const Compiled> compiled;
  CarryBuffers carries;
};
/// A result (index into LocalStep::out) that may take the memory of an operand (index into LocalStep::in).
struct InPlace {
  std::size_t operand = 0, result = 0;
};
/// A node that calls programs depending on values: the branches of a choice, or the condition and body of a repetition. Its step has the
/// node's operands, then results; a repetition also has second buffers of carries, and the condition's result.
struct CalledBranches {
  std::vector<std::shared_ptr<const Compiled>> programs;
  std::int64_t runs = 1;  ///< of each program, for prices: 1 for a choice, an assumed number for a repetition
  CarryBuffers carries = {};
  std::vector<InPlace> over = {};  ///< of a choice: every branch writes these results so
  /// What explain() says of it.
  std::string note() const;
};
/// The per-device program: every node with local operands, transfers explicit.
struct Partition {
  std::vector<LocalValue> values;
  std::vector<LocalStep> steps;
  std::vector<Transfer> transfers;
  std::vector<int> inputs, outputs;           ///< local values
  std::vector<int> of_value;                  ///< flat value -> local value; -1: none
  std::map<int, std::string> notes;           ///< flat node -> what explain() says of it
  std::map<int, CalledIteration> iterations;  ///< by flat node
  bool forwards = true;                       ///< results may be inputs themselves
  std::map<int, CalledBranches> branches;     ///< by flat node
  double price =
      0;  ///< for comparing plans of one program: work, what moves in all runs, a little for each transfer
};
/// Whether a result that this node makes may leave the program as a partial sum without being requested as one: it was placed so. Results
/// of called programs may not.
bool may_leave_partial(const FlatNode& n, const CompileInput& in);
/// The cheapest placement that was found, after propagation. Appends to `g` what combines sharded scans with their carries; long sorts
/// along sharded dimensions may become sorts by columns in it. Throws ShardingError if a policy refuses a transfer.
Partition partition(FlatGraph& g, const CompileInput& in);

// ---------------------------------------------------------------- fuse
/// Where a local value's elements are: in the memory of `memory`, laid out as the tiles of `geometry`.
struct Storage {
  int memory = -1, geometry = -1;  ///< local values; -1: never stored
};
/// Steps that run as one. A loop's domain is the tile of `domain` (a local value), then the reduced dimensions of `reduce`; roots are
/// written at the points of `domain` or, if they have another rank, at all points.
struct Group {
  std::vector<int> steps;  ///< ascending
  std::vector<int> roots;  ///< local values that it writes, ascending
  bool loop = false;
  int domain = -1;               ///< local value
  int reduce = -1;               ///< a reduce step of the group; -1: no inner dimensions
  bool flush_denormals = false;  ///< mode of its lines
};
struct Fusion {
  std::vector<Group> groups;     ///< in execution order
  std::vector<Storage> storage;  ///< per local value
};
Fusion fuse(Partition& p, const FlatGraph& g, const Target& target);
/// The mode of its line; a transfer, which may add, has that of what it moves.
bool flushes_denormals(const Group& group, const Partition& p, const FlatGraph& g);
/// A topological order of groups (the keys of `last_step`): each comes after those in `before` it. Cycles, and groups that wait for them,
/// are left out.
std::vector<int> schedule(const std::map<int, std::set<int>>& before, const std::map<int, int>& last_step);

/// How a step reads its operand k, as an index map over its result; for steps inside loops.
IndexMap operand_map(const LocalStep& s, const FlatGraph& g, std::size_t k);

// ---------------------------------------------------------------- kernels
/// One argument of a group's kernel: the value that is read or written, and how the domain indexes it. A complex value is two interleaved
/// arguments of floats.
struct KernelAccess {
  int value = -1;  ///< local value
  IndexMap map;    ///< of the value's geometry
  bool output = false;
  int indirect = -1;  ///< the dimension whose index comes from load_at
  int part = 0;       ///< of a complex value: 0 the real parts, 1 the imaginary ones, or `whole`
  static constexpr int whole = -1;
};
struct GroupKernel {
  Kernel kernel;
  std::vector<KernelAccess> args;
  /// Floating-point operations of the program, however many instructions they become: per point, per row.
  double per_point = 0, per_row = 0;
  double reductions = 0;  ///< over all points of a row
};
GroupKernel make_kernel(const Group& group, const Partition& p, const FlatGraph& g, const Target& target);

// ---------------------------------------------------------------- plan
/// Kernels, addresses, aliases. Fills `out`.
void plan(const Partition& p, Fusion f, const FlatGraph& g, const CompileInput& in, Compiled& out);

/// Of the global value.
std::int64_t bytes_of(const Type& t);

// ---------------------------------------------------------------- checks, in builds with SHARDARRAY_VERIFY
/// Throw InternalError for what the next pass cannot handle.
void verify(const Propagation& p, const FlatGraph& g);
void verify(const Partition& p, const FlatGraph& g, const CompileInput& in);
void verify(const Fusion& f, const Partition& p);
void verify(const Program& p);

}  // namespace shardarray
