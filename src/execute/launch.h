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
  moved,   // by this handle: reused if nobody else owns the buffers, else a copy is used
  option,  // donated by option: if reused, it dies for every handle
};

/// A program, compiled for one placement of its leaves and loaded. Shared by all callers with an equal key, so nothing in it may depend
/// on more than the key: neither on the calling function nor on weak types.
struct LoadedProgram {
  Compiled compiled;
  std::shared_ptr<const Program>
      here;           ///< the compiled program, or this process's part of one over several processes
  bool idle = false;  ///< there is nothing to run
  bool is_part() const { return here != compiled.program; }
  std::unique_ptr<Executable> executable;
  Backend* backend = nullptr;
  const DeviceOrder* order = nullptr;
  std::vector<OrderRef>
      orders;  ///< of all layouts in it and in its key, whose addresses stay unique while it lives
  bool share_replicas = true, committed = false;
  std::vector<const Layout*> inputs;  ///< the layouts in which it takes its leaves
  std::vector<Sharding> constraints;  ///< spellings for results, after those of the leaves
  std::vector<bool> aliased;          ///< per leaf: an output takes over its buffers
  std::vector<int> local;             ///< position -> number of the device within its backend
  std::vector<int> scratch_devices;   ///< devices that need scratch: their numbers, and bytes
  std::vector<std::uint64_t> scratch_bytes;
  std::vector<std::vector<int>> output_devices;  ///< per output of the program: the devices' numbers
  std::vector<int> sources;                      ///< per output: the leaf that it takes over or is, or -1
  /// The spelling of results depends on that of the leaves.
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
  Node* node = nullptr;         ///< donated by option: its handles die
  const char* taker = nullptr;  ///< and the function that takes it
};

/// What became of one leaf's donation at a launch.
struct LaunchVerdict {
  bool reused = false, other_owner = false;
  bool lost = false;  ///< reused by a run that failed: it may be overwritten
};

/// Why a program with this `share_replicas` never takes over the memory of a value, even as its sole owner; null: no such reason.
const char* keeps_its_memory(const Value& v, bool share_replicas);

/// Where a computation runs, and the layouts of its leaves there.
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
/// `modes`: of the line that computes; if no leaf or constraint decides, its default device is used. `names`: for messages.
LeafPlacement place_leaves(const FlatGraph& g, std::span<const ValueRef> leaves,
                           std::span<const Sharding* const> requested, const std::vector<std::string>& names,
                           const Modes& modes, const char* function);

/// Finds or compiles. `requested`: output shardings, where null entries are left to the compiler.
std::shared_ptr<const LoadedProgram> load_program(FlatGraph g, std::span<const ValueRef> leaves,
                                                  std::vector<bool> donated,
                                                  std::span<const Sharding* const> requested,
                                                  const std::vector<std::string>& names, const Modes& modes,
                                                  const char* function);
/// The cached program of load_program() for a graph without constraints, requested shardings and donations. `key`: its structure
/// (put_structure()), to which the rest of the program's key is appended. Null: there is none, or the leaves' devices differ.
std::shared_ptr<const LoadedProgram> find_program(Words& key, std::span<const LaunchLeaf> leaves,
                                                  std::size_t outputs, const Modes& modes);
/// The input of compile() for these leaves (also for explain).
CompileInput compile_input(FlatGraph g, const LeafPlacement& where, std::vector<bool> donated,
                           std::span<const Sharding* const> requested, std::vector<std::string> names,
                           std::span<const ValueRef> leaves);

/// Runs; `results` gets the outputs in order, `verdicts` (if any) one entry per leaf. The caller empties donated leaves that were reused.
/// A result that is a leaf is the leaf's own Value, if that describes it fully.
/// Except with a `report`, the work may go on after the return: the results are ready when their `ready` is.
/// A cached program allocates nothing but the results' buffers.
void launch(const LoadedProgram& p, std::span<const LaunchLeaf> leaves, std::vector<ValueRef>& results,
            std::vector<LaunchVerdict>* verdicts = nullptr, RunReport* report = nullptr);

/// A scalar constant as a value on this device; other devices may use it.
ValueRef scalar_value(DType t, std::uint64_t bits, const Device& device);
/// The same, for scalars that no user can hold, donate or read: a thread caches the last few.
ValueRef shared_scalar_value(DType t, std::uint64_t bits, const Device& device);
/// A new value on one device from row-major host data.
ValueRef host_value(const void* data, const Type& t, const Device& device);
/// The same value sharded as `s`, by running an identity program; the very same buffers if nothing moves.
ValueRef reshard_value(const ValueRef& v, const Type& t, const Sharding& s,
                       const char* function = "device_put");
/// The same value sharded like `home`; replicated over its devices if the ranks differ.
ValueRef put_beside(const ValueRef& v, const Type& t, const Value& home);
/// The same value uncommitted on one device, if it is bound to other devices than `home`; else `v` itself.
ValueRef bring_home(const ValueRef& v, const Type& t, const DeviceOrder* home);
/// All elements, row-major, into `to`. Throws DeviceError if only other processes have some of them.
void gather_to_host(const Value& v, const Type& t, void* to);
/// Copies a box between two row-major tiles that contain it; all boxes are in global coordinates. Sizes in elements, `item` in bytes.
void copy_box(std::byte* to, const Box& to_tile, const std::byte* from, const Box& from_tile, const Box& box,
              std::size_t item);

/// Replicas in one address space share one buffer (SHARDARRAY_SHARE_REPLICAS, default on).
bool share_replicas();
/// The limit of policy::budget for this thread; 0: none.
std::int64_t memory_budget();
void set_share_replicas(bool on);

}  // namespace shardarray
