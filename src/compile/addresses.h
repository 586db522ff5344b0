// The address of every instance of every stored value.
#pragma once
#include <algorithm>
#include <map>

#include "compile/passes.h"

namespace shardarray {

/// The memory of one stored value: an address and a size per instance.
struct Memory {
  const Instances* instances = nullptr;  ///< null: one per device
  std::vector<int> device;               ///< instance -> position (in the program's order) of its device
  std::vector<Ref> refs;
  std::vector<std::uint64_t> bytes;
};

class Addresses {
 public:
  Addresses(const Partition& p, const Fusion& f, const FlatGraph& g, const CompileInput& in);
  /// How many instances of a written memory, from the first on, get an item: all. One, if the program is only explained and no device does
  /// more than position 0 (less where they share memory).
  std::size_t items_of(const Memory& written) const {
    return items_of_one_ ? std::min<std::size_t>(written.refs.size(), 1) : written.refs.size();
  }

  const LocalValue& value(int v) const { return p_.values[static_cast<std::size_t>(v)]; }
  const Storage& storage(int v) const { return f_.storage[static_cast<std::size_t>(v)]; }
  /// Position p of the program's device order, as a position in the order of `l`.
  int local(const Layout* l, int p) const;
  /// The box of v that position p holds.
  const Box& tile(int v, int p);
  /// The same for the value whose geometry v's memory has.
  const Box& stored_tile(int v, int p) { return tile(storage(v).geometry, p); }
  /// The memory that holds v; created at the first call.
  Memory& memory(int v);
  /// The index of position p's instance of v.
  std::size_t instance(int v, int p);
  Ref ref(int v, int p) { return memory(v).refs[instance(v, p)]; }
  /// Whether p and q share one instance of v, so that p reads it without a transfer.
  bool same_instance(int v, int p, int q) { return instance(v, p) == instance(v, q); }
  /// By number; empty if never requested.
  std::vector<Memory>& all() { return memories_; }
  /// Position -> id of its device's memory; empty if replicas are not shared, or if all devices share one memory.
  std::vector<int> shared_memories() const;
  /// The number of the scratch arenas (one per device) of the program that this group calls; it follows those of all values.
  int scratch_of(std::size_t group) const { return static_cast<int>(p_.values.size() + group); }
  const DeviceOrder* order() const { return in_.order; }

 private:
  const Partition& p_;
  const Fusion& f_;
  const CompileInput& in_;
  const bool items_of_one_;
  std::vector<Memory> memories_;  // of values, then of groups; references stay valid
  std::vector<const std::vector<Box>*>
      tiles_;  // by value: its boxes, by position in its layout's order; null: not requested yet
  // Few layouts and shapes occur.
  std::map<const Layout*, Instances> instances_;
  std::map<std::pair<const Layout*, std::vector<std::int64_t>>, std::vector<Box>> tiles_of_;
};

/// How a loop of `rank` dimensions traverses a tile, in elements. `origin`: the element at indices 0, perhaps outside of the tile.
struct TileWalk {
  Shape strides;
  std::int64_t origin = 0;
  friend bool operator==(const TileWalk&, const TileWalk&) = default;
};
/// Dimensions that are indexed at run time (KernelAccess::indirect) contribute nothing.
TileWalk tile_walk(const KernelAccess& a, const Box& tile, std::size_t rank);

/// The Exchange of a transfer, of an op assembled from boxes, or of a scan's carries.
Exchange make_exchange(const LocalStep& s, const FlatGraph& g, Addresses& at);
/// The same for a transfer between layouts, without its pieces (up to one per pair of devices), and the bytes that they bring from other
/// devices. No items if all data is in place.
std::pair<Exchange, std::int64_t> outline_exchange(const LocalStep& s, Addresses& at);
inline bool is_between_layouts(const LocalStep& s) { return s.node < 0 && s.transfer >= 0 && !s.assembly; }
Gemm make_gemm(const LocalStep& s, const FlatGraph& g, Addresses& at);
LibraryCall make_library_call(const LocalStep& s, const FlatGraph& g, Addresses& at);
Loop make_loop(const Group& group, const GroupKernel& k, const FlatGraph& g, const Partition& p,
               Addresses& at);

/// Assigns all addresses: inputs, outputs (which may reuse donated inputs), scratch. Also computes scratch sizes and peaks.
void assign_addresses(const Partition& p, const Fusion& f, const FlatGraph& g,
                      const std::vector<GroupKernel>& kernels, const CompileInput& in, Addresses& at,
                      Program& program, Compiled& out);

}  // namespace shardarray
