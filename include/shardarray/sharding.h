// Shardings: how the pieces of an array are placed on devices.
//
// `Sharding` holds what the user wrote (a mesh and a spec, a grid of ids, one device) and compares and prints by spelling.
// Two spellings of one placement are `is_equivalent_to` each other.
#pragma once
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shardarray/device.h"
#include "shardarray/export.h"
#include "shardarray/shape.h"
#include "shardarray/where.h"

namespace shardarray {

struct none_t {};  ///< the type of `none`
/// "Nothing here": an unsharded dimension of a spec, an unmapped argument of vmap.
inline constexpr none_t none{};

/// The part of one dimension that a shard holds. A dimension that is not partitioned is unbounded (`:`), never `0:n`.
struct SHARDARRAY_API IndexRange {
  bool whole = true;  ///< all of the dimension
  std::int64_t start = 0,
               stop = 0;  ///< elements start .. stop - 1, in global coordinates; only when not whole
  [[nodiscard]] friend bool operator==(const IndexRange&, const IndexRange&) = default;
};
/// A shard's position: one range per dimension. Prints as `(0:2, :)`.
using ShardIndex = std::vector<IndexRange>;
/// A Python tuple of slices: `(0:2, :)`, `(0:2,)`, `()`.
[[nodiscard]] SHARDARRAY_API std::string to_string(const ShardIndex& index);

class Layout;  // the canonical form below the public surface
struct ShardingImpl;

/// A sharding as it was written. Cheap to copy; immutable; never null: made from one of the classes below.
/// A piece is a tile of a regular grid: over n devices a dimension of size s is cut into tiles of ceil(s / n), the last ones
/// shorter or empty. Members that take a shape or a rank throw ShardingError where it does not fit the spelling, ShapeError for a
/// negative size.
class SHARDARRAY_API Sharding {
 public:
  explicit Sharding(std::shared_ptr<const ShardingImpl> impl) : impl_(std::move(impl)) {}
  /// The largest piece of a value of `shape`: the ceil-sized tile.
  [[nodiscard]] Shape shard_shape(const Shape& shape, Where w = Where::here()) const;
  /// The piece that `device` holds; the last ones may be short or empty. Throws DeviceError for a device outside the set.
  [[nodiscard]] Shape shard_shape(const Shape& shape, const Device& device, Where w = Where::here()) const;
  /// Each device's piece, in device-assignment order.
  [[nodiscard]] std::vector<std::pair<Device, ShardIndex>> devices_indices_map(const Shape& shape,
                                                                               Where w = Where::here()) const;
  /// How many earlier devices (in the order of devices_indices_map) hold the same piece; other summands are other pieces.
  [[nodiscard]] std::vector<int> replica_ids(const Shape& shape, Where w = Where::here()) const;
  /// Same placement of a value of rank `ndim`: same pieces on the same devices in the same order. Throws ShardingError for a
  /// rank that does not fit one of the two, or is not in 0 .. 1024.
  [[nodiscard]] bool is_equivalent_to(const Sharding& other, int ndim, Where w = Where::here()) const;
  /// Every device holds the whole value (not a summand of it): of any rank that fits, or of rank `ndim`.
  [[nodiscard]] bool is_fully_replicated() const;
  [[nodiscard]] bool is_fully_replicated(int ndim, Where w = Where::here()) const;
  /// The devices, sorted by id.
  [[nodiscard]] std::vector<Device> device_set() const;
  /// The devices in assignment order.
  [[nodiscard]] const std::vector<Device>& device_assignment() const;
  /// As JAX prints it: `NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec=PartitionSpec('x', 'y'))`.
  [[nodiscard]] std::string to_string() const;
  /// Compares spellings: P("x") and P("x", none) differ and are equivalent.
  friend SHARDARRAY_API bool operator==(const Sharding& a, const Sharding& b);
  /// Of the spelling: equal shardings have equal ones. Also std::hash.
  [[nodiscard]] std::size_t hash() const;
  /// Below the public surface.
  [[nodiscard]] const std::shared_ptr<const ShardingImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const ShardingImpl> impl_;
};
/// All of this file stream as their to_string().
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Sharding& s);

/// A grid of devices with a name for each dimension.
class SHARDARRAY_API Mesh {
 public:
  /// Throws ShardingError unless there is one distinct name, not empty, per dimension, sizes multiply to the number of devices,
  /// at least one, and every device occurs once.
  Mesh(DeviceGrid grid, std::vector<std::string> axis_names, Where w = Where::here());
  /// The names of the grid's dimensions.
  [[nodiscard]] const std::vector<std::string>& axis_names() const;
  /// Names and sizes, in order.
  [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> shape() const;
  /// Number of devices.
  [[nodiscard]] std::int64_t size() const;
  /// Row-major.
  [[nodiscard]] const std::vector<Device>& devices() const;
  /// The size of axis `name`; throws ShardingError listing the axes when it is unknown.
  [[nodiscard]] std::int64_t axis_size(const std::string& name, Where w = Where::here()) const;
  /// `Mesh('x': 4, 'y': 2)`.
  [[nodiscard]] std::string to_string() const;
  /// The same names, sizes and devices.
  friend SHARDARRAY_API bool operator==(const Mesh& a, const Mesh& b);

  /// Below the public surface.
  struct State;
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Mesh& m);
/// `make_mesh({{"x", 4}, {"y", 2}})`: the first of `devices` (none: of all of the default platform), row-major. Throws DeviceError
/// when there are too few, ShardingError for a size below 1 and for names that are empty or stand twice.
[[nodiscard]] SHARDARRAY_API Mesh make_mesh(const std::vector<std::pair<std::string, std::int64_t>>& axes,
                                            std::vector<Device> devices = {}, Where w = Where::here());
/// The same in JAX's order: `make_mesh({4, 2}, {"x", "y"})`. Throws also ShardingError unless there is one name for each size.
[[nodiscard]] SHARDARRAY_API Mesh make_mesh(const Shape& sizes, const std::vector<std::string>& axis_names,
                                            std::vector<Device> devices = {}, Where w = Where::here());

/// Several mesh axes on one dimension, most significant first: `P(axes("x", "y"))`.
struct SHARDARRAY_API AxisNames {
  std::vector<std::string> names;
};
/// The names as AxisNames; also several axes of a collective.
template <class... S> [[nodiscard]] AxisNames axes(S&&... names) {
  return {{std::string(std::forward<S>(names))...}};
}

/// One entry of a PartitionSpec: a mesh axis, several, or none (a null pointer is none, as in `P(nullptr, "x")`).
struct SHARDARRAY_API SpecEntry {
  SpecEntry(none_t) {}
  SpecEntry(std::nullptr_t) {}  ///< as none
  SpecEntry(std::nullopt_t) {}
  SpecEntry(const char* axis) {
    if (axis) names.emplace_back(axis);
  }
  SpecEntry(const std::string& axis) : names{axis} {}
  SpecEntry(AxisNames a) : names(std::move(a.names)), tuple(true) {}
  std::vector<std::string> names;  ///< empty: nothing cuts the dimension
  bool tuple = false;              ///< written as axes(...): prints as a tuple
  [[nodiscard]] friend bool operator==(const SpecEntry&, const SpecEntry&) = default;
};
/// Mesh axes along which a value is a sum that is not added up yet: `P("x", unreduced("y"))`.
struct SHARDARRAY_API UnreducedAxes {
  std::vector<std::string> names;
};
/// The names as UnreducedAxes, the last argument of a PartitionSpec.
template <class... S> [[nodiscard]] UnreducedAxes unreduced(S&&... names) {
  return {{std::string(std::forward<S>(names))...}};
}

/// Which mesh axes cut which dimension: `P("x", none, axes("y", "z"))`. Missing trailing entries are whole dimensions. What takes
/// one checks it against a mesh. P("x") and P("x", none) are not equal.
///
/// `P("x", unreduced("y"))`: the value is the sum of what the devices along "y" hold, each a summand of the same tile, which nobody
/// has added up yet. It is that value all the same: reading adds up, and every operation sees the sum. Those that are linear in it
/// (adding another one, products with a whole value, sums, what moves or selects elements) work on the summands, so that nothing
/// moves: gradients of several batches are added with one all-reduce at the end. Products then round each summand, and infinities
/// meet each of them: inf times summands that cancel is NaN. What is whole becomes a sum for nothing: one device holds it, the others
/// hold zeros. A value is a sum where that is asked for (filter_shard, device_put), or that it lies as one (zeros_like); other results
/// are whole. Lines of `reproducible` add up before each operation. Reading such a value over several processes is for all of them to
/// do. Not of bool, float16 and bfloat16.
class SHARDARRAY_API PartitionSpec {
  template <class E>
  static constexpr bool is_unreduced = std::is_same_v<std::remove_cvref_t<E>, UnreducedAxes>;

 public:
  template <class... E>
  requires((std::convertible_to<E, SpecEntry> || is_unreduced<E>)&&...) explicit PartitionSpec(E&&... e) {
    static_assert(is_last<E...>(), "P: unreduced(...) stands once, behind the dimensions' entries");
    entries_.reserve(sizeof...(E));
    (add(std::forward<E>(e)), ...);
  }
  explicit PartitionSpec(std::vector<SpecEntry> e, UnreducedAxes sums = {}) : entries_(std::move(e)) {
    add(std::move(sums));
  }
  template <class... E>
  requires(std::is_arithmetic_v<std::remove_cvref_t<E>> || ...) explicit PartitionSpec(E&&...) {
    static_assert(sizeof...(E) == 0, "P: an entry is a mesh axis (\"x\"), none, or axes(\"x\", \"y\")");
  }
  /// One for each dimension from the first.
  [[nodiscard]] const std::vector<SpecEntry>& entries() const { return entries_; }
  /// The axes of unreduced(...), sorted.
  [[nodiscard]] const std::vector<std::string>& unreduced_axes() const { return unreduced_; }
  /// `PartitionSpec('x', None, ('y', 'z'))`, `PartitionSpec('x', unreduced={'y'})`.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;

 private:
  template <class... E> static constexpr bool is_last() {
    constexpr bool is[] = {is_unreduced<E>..., false};
    for (std::size_t k = 0; k + 1 < sizeof...(E); k++)
      if (is[k]) return false;
    return true;
  }
  void add(SpecEntry e) { entries_.push_back(std::move(e)); }
  void add(UnreducedAxes sums);
  std::vector<SpecEntry> entries_;
  std::vector<std::string> unreduced_;
};
using P = PartitionSpec;  ///< the short name, as in JAX
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const PartitionSpec& p);

/// A mesh and a spec: dimension d is cut over the axes of entry d, and replicated over axes that do not stand there (but for those
/// of unreduced(...): devices along them hold summands). Fits values of rank >= the spec's length.
class SHARDARRAY_API NamedSharding {
 public:
  /// Throws ShardingError for an axis that the mesh does not have, or that stands twice.
  NamedSharding(Mesh mesh, PartitionSpec spec, Where w = Where::here());
  /// What it was made of; it converts to a Sharding, whose members `->` reaches: `s->shard_shape(shape)`.
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const PartitionSpec& spec() const { return spec_; }
  operator Sharding() const { return sharding_; }
  [[nodiscard]] const Sharding* operator->() const { return &sharding_; }
  [[nodiscard]] friend bool operator==(const NamedSharding& a, const NamedSharding& b) {
    return a.sharding_ == b.sharding_;
  }

 private:
  Mesh mesh_;
  PartitionSpec spec_;
  Sharding sharding_;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const NamedSharding& s);

/// The whole value on one device, of any rank. The device is looked up where a value is put there.
class SHARDARRAY_API SingleDeviceSharding {
 public:
  explicit SingleDeviceSharding(const Device& device);
  /// What it was made of; it converts to a Sharding, whose members `->` reaches.
  [[nodiscard]] const Device& device() const { return device_; }
  operator Sharding() const { return sharding_; }
  [[nodiscard]] const Sharding* operator->() const { return &sharding_; }

 private:
  Device device_;
  Sharding sharding_;
};

/// A grid of sets of devices, shaped like the value: entry (i, j) holds block (i, j). JAX 0.4's PositionalSharding.
/// Its rank must equal the value's, except that a fully replicated one fits any rank.
class SHARDARRAY_API PositionalSharding {
 public:
  /// One device per entry, a list of n as a grid of shape {n}. Throws ShardingError without devices, when sizes do not multiply to
  /// their number, or when a device stands twice.
  explicit PositionalSharding(const DeviceGrid& grid, Where w = Where::here());
  explicit PositionalSharding(const std::vector<Device>& devices, Where w = Where::here());
  /// The grid in another shape; one size may be -1. Throws ShardingError when the sizes do not multiply.
  [[nodiscard]] PositionalSharding reshape(const Shape& shape, Where w = Where::here()) const;
  /// Dimension k is perm[k] of this one; T(): all dimensions reversed. Throws ShardingError unless perm names each once.
  [[nodiscard]] PositionalSharding transpose(const Shape& perm, Where w = Where::here()) const;
  [[nodiscard]] PositionalSharding T() const;
  struct ReplicateOptions {
    bool keepdims = true;  ///< joined axes stay with size 1
  };
  /// Joins the sets along all axes: shape (1, ..., 1), the value on every device.
  [[nodiscard]] PositionalSharding replicate() const;
  /// Joins the sets along an axis or several (negative ones count from the end), which stay with size 1 unless keepdims is false.
  /// Throws ShardingError for an axis that does not exist or stands twice.
  [[nodiscard]] PositionalSharding replicate(std::int64_t axis, ReplicateOptions o = {true},
                                             Where w = Where::here()) const;
  [[nodiscard]] PositionalSharding replicate(const Shape& axes, ReplicateOptions o = {true},
                                             Where w = Where::here()) const;
  /// The grid's.
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] int ndim() const;
  /// The device ids of every entry, row-major, ascending within an entry.
  [[nodiscard]] std::vector<std::vector<int>> ids() const;
  /// JAX's text: `PositionalSharding([{CPU 0} {CPU 1}], shape=(2,))`.
  [[nodiscard]] std::string to_string() const;
  operator Sharding() const { return sharding_; }
  [[nodiscard]] const Sharding* operator->() const { return &sharding_; }
  [[nodiscard]] friend bool operator==(const PositionalSharding& a, const PositionalSharding& b) {
    return a.sharding_ == b.sharding_;
  }

 private:
  explicit PositionalSharding(Sharding s) : sharding_(std::move(s)) {}
  Sharding sharding_;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const PositionalSharding& s);

}  // namespace shardarray

/// @cond
template <> struct std::hash<shardarray::Sharding> {
  [[nodiscard]] std::size_t operator()(const shardarray::Sharding& s) const { return s.hash(); }
};
/// @endcond
