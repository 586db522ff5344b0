// From a flat graph and placed leaves to values: the process-wide program cache, donation by ownership, the run.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/thread_memo.h"
#include "compile/compile.h"
#include "graph/flat.h"
#include "graph/value.h"
#include "runtime/platforms.h"

namespace shardarray {

/// What may happen to a leaf's buffers.
enum class Give : std::uint8_t {
  keep,    // read only
  moved,   // this handle was given up: reused when nobody else owns the buffers, else a copy is used
  option,  // donated by option: dies for every handle when it is reused
};

/// A program, compiled for one placement of its leaves and loaded. Shared by all callers with an equal key: nothing in it may depend on
/// more than the key has, which is neither whose call it is nor what is weakly typed.
struct LoadedProgram {
  Compiled compiled;
  std::shared_ptr<const Program>
      here;           ///< the compiled one, or of one over several processes this one's part
  bool idle = false;  ///< nothing is to be run
  bool is_part() const { return here != compiled.program; }
  std::unique_ptr<Executable> executable;
  Backend* backend = nullptr;
  const DeviceOrder* order = nullptr;
  std::vector<OrderRef>
      orders;  ///< of all layouts in it and in its key, which hence mean nothing else while it lives
  bool share_replicas = true, committed = false;
  std::vector<const Layout*> inputs;  ///< the layouts in which it takes its leaves
  std::vector<Sharding> constraints;  ///< how results may be spelled besides as their leaves
  std::vector<bool> aliased;          ///< per leaf: an output takes over its buffers
  std::vector<int> local;             ///< position -> number of the device within its backend
  std::vector<int> scratch_devices;   ///< those that need scratch: their numbers, and bytes
  std::vector<std::uint64_t> scratch_bytes;
  std::vector<std::vector<int>> output_devices;  ///< per output of the program: the devices' numbers
  std::vector<int> sources;  ///< per output: the leaf that it takes over or simply is, or -1
  /// The spelling of results follows that of the leaves.
  struct Spelling {
    std::vector<std::shared_ptr<const ShardingImpl>> leaves;
    std::vector<Sharding> results;
  };
  TableId spellings;
  mutable std::mutex mutex;
  mutable std::shared_ptr<const Spelling> spelling;  ///< the last one; guarded by the mutex
};

struct LaunchLeaf {
  ValueRef value;
  Give give = Give::keep;
  bool sole_owner =
      false;  ///< no other handle, node or argument holds the value (buffers are checked at launch)
  Node* node = nullptr;         ///< given by option: whose handles die
  const char* taker = nullptr;  ///< and the function that takes it
};

/// What became of one leaf's donation at a launch.
struct LaunchVerdict {
  bool reused = false, other_owner = false;
  bool lost = false;  ///< reused by a run that failed: it may be overwritten
};

/// Why a program that shares replicas so leaves the memory of a value as it is, whoever has that; null: somebody else may have it.
const char* keeps_its_memory(const Value& v, bool share_replicas);

/// Where a computation runs and how its leaves enter. `names` are for messages.
struct LeafPlacement {
  const DeviceOrder* order = nullptr;
  bool committed = false;
  std::vector<const Layout*> inputs;
};
/// The devices that the first sharding constraint names; null: there is none.
const DeviceOrder* constrained_devices(const FlatGraph& g);
/// The devices of the first pmap in the graphs that a node calls, else of the first sharding constraint; null: there is none.
struct CalledDevices {
  const DeviceOrder* order = nullptr;
  bool of_pmap = false;
};
CalledDevices called_devices(const Node& n);
/// `modes`: of the line that computes; what no leaf or constraint binds goes to its default device.
LeafPlacement place_leaves(const FlatGraph& g, std::span<const ValueRef> leaves,
                           std::span<const Sharding* const> requested, const std::vector<std::string>& names,
                           const Modes& modes, const char* function);

/// Finds or compiles. `requested`: output shardings, null entries are open.
std::shared_ptr<const LoadedProgram> load_program(FlatGraph g, std::span<const ValueRef> leaves,
                                                  std::vector<bool> donated,
                                                  std::span<const Sharding* const> requested,
                                                  const std::vector<std::string>& names, const Modes& modes,
                                                  const char* function);
/// The cached program of load_program() for a graph without constraints, with open outputs, of which nothing is donated. `key`:
/// its structure (put_structure()), to which the rest of the program's key is added. Null: there is none, or its devices are not
/// plain to see.
std::shared_ptr<const LoadedProgram> find_program(Words& key, std::span<const LaunchLeaf> leaves,
                                                  std::size_t outputs, const Modes& modes);
/// The input of compile() for these leaves (also for explain).
CompileInput compile_input(FlatGraph g, const LeafPlacement& where, std::vector<bool> donated,
                           std::span<const Sharding* const> requested, std::vector<std::string> names,
                           std::span<const ValueRef> leaves);

/// Runs; `results` gets the outputs in order, `verdicts` (if any) one entry per leaf. Donated leaves that were reused are the
/// caller's to empty. A result that takes over a leaf or is one is the leaf's own value where that says all of it.
/// The work may go on after the return, but with a `report`: the results are ready when their `ready` is.
/// A cached program allocates nothing but the results' buffers.
void launch(const LoadedProgram& p, std::span<const LaunchLeaf> leaves, std::vector<ValueRef>& results,
            std::vector<LaunchVerdict>* verdicts = nullptr, RunReport* report = nullptr);

/// A scalar constant as a value on this device, from where it goes wherever it is needed.
ValueRef scalar_value(DType t, std::uint64_t bits, const Device& device);
/// The same, for what no user can hold, donate or read: a thread keeps the last few.
ValueRef shared_scalar_value(DType t, std::uint64_t bits, const Device& device);
/// A new value on one device from row-major host data.
ValueRef host_value(const void* data, const Type& t, const Device& device);
/// The same value as `layout`/spelled `s`, by running an identity program; the very same buffers where nothing moves.
ValueRef reshard_value(const ValueRef& v, const Type& t, const Sharding& s,
                       const char* function = "device_put");
/// The same value in the place of `home`; whole on each of its devices where the ranks differ.
ValueRef put_beside(const ValueRef& v, const Type& t, const Value& home);
/// The same value on one device, uncommitted, when it is bound to others than these; else the very same.
ValueRef bring_home(const ValueRef& v, const Type& t, const DeviceOrder* home);
/// All elements, row-major, into `to`. Throws DeviceError where other processes have some of them.
void gather_to_host(const Value& v, const Type& t, void* to);
/// Copies a box between two row-major arrays of which it is a part; all boxes are of one whole. Sizes in elements, `item` in bytes.
void copy_box(std::byte* to, const Box& to_tile, const std::byte* from, const Box& from_tile, const Box& box,
              std::size_t item);

/// Replicas in one address space share one buffer (SHARDARRAY_SHARE_REPLICAS, default on).
bool share_replicas();
/// What policy::budget allows this thread; 0: no limit.
std::int64_t memory_budget();
void set_share_replicas(bool on);

}  // namespace shardarray
