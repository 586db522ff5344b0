// Shardings: how the shards of an array are placed on devices.
//
// `Sharding` stores what the user wrote (a mesh and a spec, a grid of ids, one device) and compares and prints by that spelling. Two
// spellings of the same placement are `is_equivalent_to` each other.
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
/// "Nothing": an unsharded dimension of a spec, an unmapped argument of vmap.
inline constexpr none_t none{};

/// The range of one dimension that a shard covers. An unpartitioned dimension is unbounded (`:`), never `0:n`.
struct SHARDARRAY_API IndexRange {
  bool whole = true;  ///< the full dimension
  std::int64_t start = 0,
               stop = 0;  ///< elements start .. stop - 1, in global coordinates; only if not whole
  [[nodiscard]] friend bool operator==(const IndexRange&, const IndexRange&) = default;
};
/// The position of a shard: one range per dimension. Prints as `(0:2, :)`.
using ShardIndex = std::vector<IndexRange>;
/// As a Python tuple of slices: `(0:2, :)`, `(0:2,)`, `()`.
[[nodiscard]] SHARDARRAY_API std::string to_string(const ShardIndex& index);

class Layout;  // the canonical form, not part of the public interface
struct ShardingImpl;

/// A sharding as the user wrote it. Cheap to copy; immutable; never null: constructed from one of the classes below. A shard is a tile of
/// a regular grid: over n devices, a dimension of size s is split into tiles of ceil(s / n), the last ones being shorter or empty.
/// Members that take a shape or a rank throw ShardingError if it does not fit the sharding, ShapeError for a negative size.
class SHARDARRAY_API Sharding {
 public:
  explicit Sharding(std::shared_ptr<const ShardingImpl> impl) : impl_(std::move(impl)) {}
  /// The shape of the largest shard of a value of `shape`: the ceil-sized tile.
  [[nodiscard]] Shape shard_shape(const Shape& shape, Where w = Where::here()) const;
  /// The shape of the shard on `device`; the last ones may be short or empty. Throws DeviceError for a device outside the set.
  [[nodiscard]] Shape shard_shape(const Shape& shape, const Device& device, Where w = Where::here()) const;
  /// The index range of each device's shard, in device-assignment order.
  [[nodiscard]] std::vector<std::pair<Device, ShardIndex>> devices_indices_map(const Shape& shape,
                                                                               Where w = Where::here()) const;
  /// For each device, how many earlier ones (in the order of devices_indices_map) hold the same shard; different terms of a partial sum
  /// are different shards.
  [[nodiscard]] std::vector<int> replica_ids(const Shape& shape, Where w = Where::here()) const;
  /// True if a value of rank `ndim` is placed identically: same shards on the same devices in the same order. Throws ShardingError for a
  /// rank that does not fit one of the two, or is not in 0 .. 1024.
  [[nodiscard]] bool is_equivalent_to(const Sharding& other, int ndim, Where w = Where::here()) const;
  /// True if every device holds the full value (not a term of a partial sum): for any rank that fits, or for rank `ndim`.
  [[nodiscard]] bool is_fully_replicated() const;
  [[nodiscard]] bool is_fully_replicated(int ndim, Where w = Where::here()) const;
  /// The devices, sorted by id.
  [[nodiscard]] std::vector<Device> device_set() const;
  /// The devices in assignment order.
  [[nodiscard]] const std::vector<Device>& device_assignment() const;
  /// As JAX prints it: `NamedSharding(mesh=Mesh('x': 4, 'y': 2), spec=PartitionSpec('x', 'y'))`.
  [[nodiscard]] std::string to_string() const;
  /// Compares spellings: P("x") and P("x", none) are unequal but equivalent.
  friend SHARDARRAY_API bool operator==(const Sharding& a, const Sharding& b);
  /// Hash of the spelling: equal shardings have equal hashes. Also available as std::hash.
  [[nodiscard]] std::size_t hash() const;
  /// Not part of the public interface.
  [[nodiscard]] const std::shared_ptr<const ShardingImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const ShardingImpl> impl_;
};
/// Prints to_string(), like all types of this header.
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Sharding& s);

/// A grid of devices with a name for each dimension.
class SHARDARRAY_API Mesh {
 public:
  /// Throws ShardingError unless there is one distinct, non-empty name per dimension, the sizes multiply to the number of devices (at
  /// least one), and every device occurs once.
  Mesh(DeviceGrid grid, std::vector<std::string> axis_names, Where w = Where::here());
  /// The names of the grid's dimensions.
  [[nodiscard]] const std::vector<std::string>& axis_names() const;
  /// Names and sizes of the axes, in order.
  [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> shape() const;
  /// The number of devices.
  [[nodiscard]] std::int64_t size() const;
  /// The devices in row-major order.
  [[nodiscard]] const std::vector<Device>& devices() const;
  /// The size of axis `name`; throws ShardingError, listing the axes, if there is none of that name.
  [[nodiscard]] std::int64_t axis_size(const std::string& name, Where w = Where::here()) const;
  /// `Mesh('x': 4, 'y': 2)`.
  [[nodiscard]] std::string to_string() const;
  /// True for the same names, sizes and devices.
  friend SHARDARRAY_API bool operator==(const Mesh& a, const Mesh& b);

  /// Not part of the public interface.
  struct State;
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Mesh& m);
/// `make_mesh({{"x", 4}, {"y", 2}})`: a row-major mesh of the first of `devices` (default: all of the default platform). Throws
/// DeviceError if there are too few, ShardingError for a size below 1 and for empty or repeated names.
[[nodiscard]] SHARDARRAY_API Mesh make_mesh(const std::vector<std::pair<std::string, std::int64_t>>& axes,
                                            std::vector<Device> devices = {}, Where w = Where::here());
/// The same with JAX's argument order: `make_mesh({4, 2}, {"x", "y"})`. Also throws ShardingError unless there is one name per size.
[[nodiscard]] SHARDARRAY_API Mesh make_mesh(const Shape& sizes, const std::vector<std::string>& axis_names,
                                            std::vector<Device> devices = {}, Where w = Where::here());

/// Several mesh axes on one dimension, most significant first: `P(axes("x", "y"))`.
struct SHARDARRAY_API AxisNames {
  std::vector<std::string> names;
};
/// Combines names to AxisNames; also used for several axes of a collective.
template <class... S> [[nodiscard]] AxisNames axes(S&&... names) {
  return {{std::string(std::forward<S>(names))...}};
}

/// One entry of a PartitionSpec: one mesh axis, several, or none (also written as a null pointer: `P(nullptr, "x")`).
struct SHARDARRAY_API SpecEntry {
  SpecEntry(none_t) {}
  SpecEntry(std::nullptr_t) {}  ///< same as none
  SpecEntry(std::nullopt_t) {}
  SpecEntry(const char* axis) {
    if (axis) names.emplace_back(axis);
  }
  SpecEntry(const std::string& axis) : names{axis} {}
  SpecEntry(AxisNames a) : names(std::move(a.names)), tuple(true) {}
  std::vector<std::string> names;  ///< empty: the dimension is unsharded
  bool tuple = false;              ///< written as axes(...): prints as a tuple
  [[nodiscard]] friend bool operator==(const SpecEntry&, const SpecEntry&) = default;
};
/// Mesh axes along which a value is an unreduced (pending) sum: `P("x", unreduced("y"))`.
struct SHARDARRAY_API UnreducedAxes {
  std::vector<std::string> names;
};
/// Combines names to UnreducedAxes, the last argument of a PartitionSpec.
template <class... S> [[nodiscard]] UnreducedAxes unreduced(S&&... names) {
  return {{std::string(std::forward<S>(names))...}};
}

/// Which mesh axes shard which dimension: `P("x", none, axes("y", "z"))`. Missing trailing entries are unsharded dimensions. A spec is
/// checked against a mesh where it is used. P("x") and P("x", none) are not equal.
///
/// `P("x", unreduced("y"))`: the value is the sum, not computed yet, of the tiles that the devices along "y" hold, each being one term.
/// The value itself is that sum: reading adds it up, and every operation sees the sum. Operations linear in it (addition of another such
/// value, products with a reduced value, sums, moving or selecting elements) work on the terms without communication: the gradients of
/// several batches are added with a single all-reduce at the end. Products then round each term, and infinities meet each term: inf times
/// terms that cancel is NaN. A reduced value becomes unreduced without communication: one device keeps it, the others hold zeros. A value
/// is unreduced only where that is requested (filter_shard, device_put), directly or as the sharding of another value (zeros_like); other
/// results are reduced. Under `reproducible`, sums are completed before each operation. Over several processes, reading such a value is
/// collective: all of them must do it. Not available for bool, float16 and bfloat16.
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
  /// One entry per dimension, from the first.
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
using P = PartitionSpec;  ///< short name, as in JAX
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const PartitionSpec& p);

/// A mesh and a spec: dimension d is sharded over the axes of entry d, and the value replicated over axes not mentioned (except those of
/// unreduced(...), along which devices hold terms of a sum). Fits values whose rank is at least the spec's length.
class SHARDARRAY_API NamedSharding {
 public:
  /// Throws ShardingError for an axis that the mesh lacks or that is repeated.
  NamedSharding(Mesh mesh, PartitionSpec spec, Where w = Where::here());
  /// The constructor's arguments. It converts to a Sharding, whose members are reached by `->`: `s->shard_shape(shape)`.
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

/// The full value on one device, for any rank. The device is looked up when a value is placed there.
class SHARDARRAY_API SingleDeviceSharding {
 public:
  explicit SingleDeviceSharding(const Device& device);
  /// The constructor's argument. It converts to a Sharding, whose members are reached by `->`.
  [[nodiscard]] const Device& device() const { return device_; }
  operator Sharding() const { return sharding_; }
  [[nodiscard]] const Sharding* operator->() const { return &sharding_; }

 private:
  Device device_;
  Sharding sharding_;
};

/// A grid of sets of devices, shaped like the value: entry (i, j) holds block (i, j). JAX 0.4's PositionalSharding. Its rank must equal
/// the value's, except that a fully replicated one fits any rank.
class SHARDARRAY_API PositionalSharding {
 public:
  /// One device per entry; a list of n devices is a grid of shape {n}. Throws ShardingError if there are no devices, the sizes do not
  /// multiply to their number, or a device is repeated.
  explicit PositionalSharding(const DeviceGrid& grid, Where w = Where::here());
  explicit PositionalSharding(const std::vector<Device>& devices, Where w = Where::here());
  /// The grid with another shape; one size may be -1. Throws ShardingError if the sizes do not multiply to the same number.
  [[nodiscard]] PositionalSharding reshape(const Shape& shape, Where w = Where::here()) const;
  /// Permutes the grid: dimension k of the result is perm[k] of this one; T() reverses all. Throws ShardingError unless perm is a
  /// permutation.
  [[nodiscard]] PositionalSharding transpose(const Shape& perm, Where w = Where::here()) const;
  [[nodiscard]] PositionalSharding T() const;
  struct ReplicateOptions {
    bool keepdims = true;  ///< keep the merged axes with size 1
  };
  /// Merges the sets along all axes: shape (1, ..., 1), the value replicated on every device.
  [[nodiscard]] PositionalSharding replicate() const;
  /// Merges the sets along one axis or several (negative ones count from the end), which keep size 1 unless keepdims is false. Throws
  /// ShardingError for an axis that does not exist or is repeated.
  [[nodiscard]] PositionalSharding replicate(std::int64_t axis, ReplicateOptions o = {true},
                                             Where w = Where::here()) const;
  [[nodiscard]] PositionalSharding replicate(const Shape& axes, ReplicateOptions o = {true},
                                             Where w = Where::here()) const;
  /// The grid's shape and rank.
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] int ndim() const;
  /// The device ids of every entry, row-major, ascending within an entry.
  [[nodiscard]] std::vector<std::vector<int>> ids() const;
  /// JAX's representation: `PositionalSharding([{CPU 0} {CPU 1}], shape=(2,))`.
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
