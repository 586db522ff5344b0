// The implementation of Sharding: the spelling, and the layouts already made from it.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "layout/layout.h"
#include "shardarray/sharding.h"

namespace shardarray {

/// A text from which jit's keys are built: texts that are equal and alive at the same time share one number; numbers are never reused.
struct NumberedText {
  std::uint64_t number;
  std::string text;
};
/// A spelling with its device ids; made at first use.
struct SpelledOnce {
  mutable std::once_flag once;
  mutable std::shared_ptr<const NumberedText> text;
};

struct Mesh::State {
  State(DeviceGrid g, std::vector<std::string> n) : grid(std::move(g)), names(std::move(n)) {}
  DeviceGrid grid;
  std::vector<std::string> names;
  SpelledOnce spelling;
  mutable std::once_flag order_once;
  mutable OrderRef order;  // see order_of()
};
/// The order of the mesh's devices; lives as long as the mesh.
const OrderRef& order_of(const Mesh& mesh);

/// A mesh and a spec.
struct NamedSpelling {
  Mesh mesh;
  PartitionSpec spec;
};
/// A grid of sets of indices into the device list, row-major, ascending within a set.
struct PositionalSpelling {
  Shape shape;
  std::vector<std::vector<int>> sets;
};
/// The whole value on one device.
struct SingleSpelling {};

struct ShardingImpl : std::enable_shared_from_this<ShardingImpl> {
  using Spelling = std::variant<NamedSpelling, PositionalSpelling, SingleSpelling>;
  ShardingImpl(Spelling s, std::vector<Device> d) : spelling(std::move(s)), devices(std::move(d)) {}
  Spelling spelling;
  std::vector<Device> devices;  ///< in assignment order
  /// layout_of by rank, filled at first use; higher ranks are recomputed each time.
  mutable std::array<std::atomic<const Layout*>, 8> layouts{};
  mutable std::mutex mutex;
  mutable std::vector<LayoutRef> held;  ///< keeps all layouts made from it alive
  SpelledOnce text;
};

Sharding make_sharding(ShardingImpl::Spelling spelling, std::vector<Device> devices);
/// Index of a mesh axis, or -1 if the mesh does not have it.
int axis_position(const Mesh& mesh, const std::string& name);
/// `(8,)`, `(4, 2)`.
std::string python_tuple(const Shape& shape);
/// `PositionalSharding([[{CPU 0} {CPU 1}]], shape=(1, 2))`.
std::string positional_repr(const PositionalSpelling& s, const std::vector<Device>& devices);

}  // namespace shardarray
