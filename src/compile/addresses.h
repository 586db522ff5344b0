// Addresses: where every instance of every stored value lies.
#pragma once
#include <algorithm>
#include <map>

#include "compile/passes.h"

namespace shardarray {

/// One stored value: an address and a size per instance.
struct Memory {
  const Instances* instances = nullptr;  ///< null: one a device
  std::vector<int> device;  ///< instance -> position (in the program's order) of the device that holds it
  std::vector<Ref> refs;
  std::vector<std::uint64_t> bytes;
};

class Addresses {
 public:
  Addresses(const Partition& p, const Fusion& f, const FlatGraph& g, const CompileInput& in);
  /// How many of the first instances of a memory that a step writes get an item. All; one, that of position 0, in a program that will not
  /// run and in which every device does what that one does, or less where they share memory.
  std::size_t items_of(const Memory& written) const {
    return items_of_one_ ? std::min<std::size_t>(written.refs.size(), 1) : written.refs.size();
  }

  const LocalValue& value(int v) const { return p_.values[static_cast<std::size_t>(v)]; }
  const Storage& storage(int v) const { return f_.storage[static_cast<std::size_t>(v)]; }
  /// Position p of the program's device order in the order of `l`.
  int local(const Layout* l, int p) const;
  /// What position p holds of v.
  const Box& tile(int v, int p);
  /// What position p holds of the value whose geometry v's memory has.
  const Box& stored_tile(int v, int p) { return tile(storage(v).geometry, p); }
  /// The memory in which v lies; made at the first call.
  Memory& memory(int v);
  /// Position p's instance of it.
  std::size_t instance(int v, int p);
  Ref ref(int v, int p) { return memory(v).refs[instance(v, p)]; }
  /// True when position p needs no transfer to read the instance that position q has.
  bool same_instance(int v, int p, int q) { return instance(v, p) == instance(v, q); }
  /// By number; empty where nothing asked for it.
  std::vector<Memory>& all() { return memories_; }
  /// Position -> which memory its device shares with others; empty where none does, or all do.
  std::vector<int> shared_memories() const;
  /// The number, behind those of all values, of the scratch arenas (one a device) of the program that this group calls.
  int scratch_of(std::size_t group) const { return static_cast<int>(p_.values.size() + group); }
  const DeviceOrder* order() const { return in_.order; }

 private:
  const Partition& p_;
  const Fusion& f_;
  const CompileInput& in_;
  const bool items_of_one_;
  std::vector<Memory> memories_;  // of values, then of groups; references stay
  std::vector<const std::vector<Box>*>
      tiles_;  // of values, by position of their layouts; null: not asked for yet
  // Of layouts met so far, and shapes: there are few.
  std::map<const Layout*, Instances> instances_;
  std::map<std::pair<const Layout*, std::vector<std::int64_t>>, std::vector<Box>> tiles_of_;
};

/// How a loop of `rank` dimensions walks through a tile, in elements: from where all its indices are 0, which may be outside.
struct TileWalk {
  Shape strides;
  std::int64_t origin = 0;
  friend bool operator==(const TileWalk&, const TileWalk&) = default;
};
/// Dimensions that are found at run time (KernelAccess::indirect) count nothing.
TileWalk tile_walk(const KernelAccess& a, const Box& tile, std::size_t rank);

/// The Exchange that executes a transfer or an op made of boxes.
Exchange make_exchange(const LocalStep& s, const FlatGraph& g, Addresses& at);
/// The same of a transfer between layouts without its pieces, of which there may be as many as pairs of devices; and the bytes that these
/// bring from other devices. Without items where all lies there already.
std::pair<Exchange, std::int64_t> outline_exchange(const LocalStep& s, Addresses& at);
inline bool is_between_layouts(const LocalStep& s) { return s.node < 0 && s.transfer >= 0 && !s.assembly; }
/// Gemm and LibraryCall items.
Gemm make_gemm(const LocalStep& s, const FlatGraph& g, Addresses& at);
LibraryCall make_library_call(const LocalStep& s, const FlatGraph& g, Addresses& at);
Loop make_loop(const Group& group, const GroupKernel& k, const FlatGraph& g, const Partition& p,
               Addresses& at);

/// Gives every memory its addresses: inputs, outputs (donated inputs reused), scratch. Sizes of scratch and peaks.
void assign_addresses(const Partition& p, const Fusion& f, const FlatGraph& g,
                      const std::vector<GroupKernel>& kernels, const CompileInput& in, Addresses& at,
                      Program& program, Compiled& out);

}  // namespace shardarray
