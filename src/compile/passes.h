// What the passes hand each other. See pipeline.cpp for their order.
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
/// Calls inlined, identities removed, equal nodes merged, dead ones dropped, dots brought into matrix form, large sums split
/// for the workers of this many devices.
FlatGraph simplify(const FlatGraph& g, int devices, const Target& target);
/// Of a simplified graph: what loops read beside their points (pads of slices, pads, rolls of one value) becomes slices of one value with
/// a margin, where less is stored so. None: nothing changes.
std::optional<FlatGraph> gather_shifts(const FlatGraph& g);
/// Of a simplified graph: float sums and products of `reproducible` lines in an order that no sharding changes.
FlatGraph fix_order(const FlatGraph& g);
/// All of them, as a program is compiled.
FlatGraph simplify_and_order(const FlatGraph& g, int devices, const Target& target);

// ---------------------------------------------------------------- propagate
/// The finest common sub-axes (prime sizes) of all placements of a program, most significant first.
struct SubAxes {
  const DeviceOrder* order = nullptr;
  std::vector<SubAxis> axes;
  /// From the sub-axes of `layouts`; those that fit into no common chain are left out (their values cross by an exchange).
  static SubAxes of(const DeviceOrder* order, std::span<const Layout* const> layouts);
  bool can_express(const Layout& l) const;
  /// A sub-axis as sub_axis numbers. It must be expressible.
  void append(SubAxis a, SubAxisList& to) const;
  AxisList axis_list(const SubAxisList& sub_axes) const;
  /// The placement that comes closest to one that they cannot express.
  const Layout* nearest(const Layout& l) const;
  int size(int sub_axis) const { return axes[static_cast<std::size_t>(sub_axis)].size; }
};

/// One value's placement as sub_axes, dimension by dimension.
using SubAxisDims = SmallVector<SubAxisList, 4>;
SubAxisDims to_sub_axes(const SubAxes& sub_axes, const Layout& l);
const Layout* to_layout(const SubAxes& sub_axes, const SubAxisDims& dims, const SubAxisList& unreduced = {},
                        Reducer r = Reducer::none);
/// Axes over which values are shared that lie as these do: all, then those of one dimension of one of them, each once.
std::vector<SubAxisList> sharing_axes(const SubAxes& sub_axes, const std::vector<SubAxisDims>& values);
/// What is left where these axes cut nothing.
SubAxisDims without(SubAxisDims dims, const SubAxisList& axes);

/// Where values would like to be: leaves, constraints and requested outputs are closed, the rest grew towards them.
struct Preferences {
  std::vector<SubAxisDims> dims;       ///< per value
  std::vector<SubAxisList> unreduced;  ///< per value: those of summands that are asked for
  std::vector<bool> closed;            ///< given, not preferred
  std::vector<bool>
      from_closed;  ///< leads, elementwise, to a place that is given: the preference is as good as closed
  std::vector<const Layout*> outputs;  ///< per result of the program: where it has to be; null: it is open
  friend bool operator==(const Preferences&, const Preferences&) = default;
};
struct Propagation {
  SubAxes sub_axes;         ///< of all placements that are given
  std::vector<Rule> rules;  ///< per node
  Preferences preferences;
};
Propagation propagate(const FlatGraph& g, const CompileInput& in);

// ---------------------------------------------------------------- partition
/// The sub_axes on every factor of a node.
using Assignment = SmallVector<SubAxisList, 6>;

struct LocalValue {
  Type type;
  const Layout* layout = nullptr;
  int step = -1;   ///< its producer; -1: an input
  int input = -1;  ///< which
  /// By position of the layout's order: what it has, where that is not its tile. Such boxes overlap.
  std::shared_ptr<const std::vector<Box>> windows = nullptr;
};
/// A step that is assembled from boxes of its operands, not as its node says: those that fill what each position has.
struct Assembly {
  std::vector<std::vector<BoxSource>> sources;  ///< by position; operands count as the step's
  std::vector<bool> fills;                      ///< by position: elsewhere are `bits`
  std::uint64_t bits = 0;
};
struct LocalStep {
  int node = -1;             ///< flat node; -1: a transfer
  int transfer = -1;         ///< index into Partition::transfers (also of a node that moves boxes); -1: none
  std::vector<int> in, out;  ///< local values
  bool copy = false;         ///< a result that needs memory of its own
  std::shared_ptr<const Assembly> assembly = nullptr;
};
/// Carries of a loop: every run writes what it carries to the next one into another buffer, or over what it has found.
struct CarryBuffers {
  std::vector<bool> in_place;  ///< by carry: over what it has found
  /// Carries with two buffers, of the first `count`.
  std::size_t doubled(std::size_t count) const;
  std::size_t doubled() const { return doubled(in_place.size()); }
};
/// A node that calls a program again and again; its step has the node's operands, then results, then second buffers of carries.
struct CalledIteration {
  Iteration iteration;
  std::shared_ptr<const Compiled> compiled;
  CarryBuffers carries;
};
/// A result (by its place in LocalStep::out) that may take over the memory of an operand (in LocalStep::in).
struct InPlace {
  std::size_t operand = 0, result = 0;
};
/// A node that calls programs as values say: the branches of a choice, or the condition and the body of a repetition. Its step has the
/// node's operands, then results; of a repetition then second buffers of carries, and the condition's answer.
struct CalledBranches {
  std::vector<std::shared_ptr<const Compiled>> programs;
  std::int64_t runs =
      1;  ///< of each program, for prices: of a choice once, of a repetition an assumed number
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
      0;  ///< by which plans of one program are compared: work, what moves in all runs, a little for each transfer
};
/// Whether a result that this node makes may be partial sums although nothing asks for them where it leaves the program: it was
/// placed so. What a called program gives is taken for whole.
bool may_leave_partial(const FlatNode& n, const CompileInput& in);
/// The cheapest placement that was found, propagated first. Cut scans append what combines them with their carries to `g`; long sorts along
/// cut dimensions may be sorts by columns in it. Throws ShardingError where a policy refuses a transfer.
Partition partition(FlatGraph& g, const CompileInput& in);

// ---------------------------------------------------------------- fuse
/// Where a local value's elements are: in the memory of `memory`, laid out as the tiles of `geometry`.
struct Storage {
  int memory = -1, geometry = -1;  ///< local values; -1: never stored
};
/// Steps that run as one. A loop's domain is the tile of `domain` (a local value), then the reduced dimensions of `reduce`;
/// roots are written at the points of `domain` or, with another rank, at all points.
struct Group {
  std::vector<int> steps;  ///< ascending
  std::vector<int> roots;  ///< local values that it writes, ascending
  bool loop = false;
  int domain = -1;               ///< local value
  int reduce = -1;               ///< a reduce step of the group; -1: no inner dimensions
  bool flush_denormals = false;  ///< of its lines
};
struct Fusion {
  std::vector<Group> groups;     ///< in execution order
  std::vector<Storage> storage;  ///< per local value
};
Fusion fuse(Partition& p, const FlatGraph& g, const Target& target);
/// The mode of its line; of a transfer, which may add up: of what it moves.
bool flushes_denormals(const Group& group, const Partition& p, const FlatGraph& g);
/// Groups (the keys of `last_step`) in an order in which every one comes behind those in `before` it. Those that wait for each
/// other, and for such ones, are left out.
std::vector<int> schedule(const std::map<int, std::set<int>>& before, const std::map<int, int>& last_step);

/// How a step reads its operand k, as an index map over its own result; for steps inside loops.
IndexMap operand_map(const LocalStep& s, const FlatGraph& g, std::size_t k);

// ---------------------------------------------------------------- kernels
/// One argument of a group's kernel: the value that is read or written, and how it is indexed by the domain. A complex value is
/// two arguments, of floats: every other one in memory.
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
  /// Operations that make floating numbers, as the program has them, however many instructions they are: at every point, in every row.
  double per_point = 0, per_row = 0;
  double reductions = 0;  ///< of all points of a row
};
GroupKernel make_kernel(const Group& group, const Partition& p, const FlatGraph& g, const Target& target);

// ---------------------------------------------------------------- plan
/// Kernels, addresses, aliases. Fills everything of `out` but the layouts of the outputs.
void plan(const Partition& p, Fusion f, const FlatGraph& g, const CompileInput& in, Compiled& out);

/// Of the whole value.
std::int64_t bytes_of(const Type& t);

// ---------------------------------------------------------------- checks, in builds with SHARDARRAY_VERIFY
/// Throw InternalError for what the next pass could not work with.
void verify(const Propagation& p, const FlatGraph& g);
void verify(const Partition& p, const FlatGraph& g, const CompileInput& in);
void verify(const Fusion& f, const Partition& p);
void verify(const Program& p);

}  // namespace shardarray
