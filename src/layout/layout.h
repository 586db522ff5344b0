// Layout: the canonical form of a placement. Everything below floor 6 sees only this.
//
// The N devices are in one flat order. A sub-axis (pre, size) views position p as [pre, size, N/(pre*size)] and takes the middle
// coordinate. Each dimension of a value is sharded over an ordered list of sub-axes, most significant first; over `unreduced` sub-axes it
// is a partial sum, still to be combined. Over unused sub-axes it is replicated. Tiles are ceil-sized; the last ones may be short or empty:
// 10 over 4 is 3, 3, 3, 1.
//
// Layouts are interned: over one order, same placement <=> same pointer. They belong to their order and live as long as it does; orders
// live while somebody holds them (an OrderRef, a LayoutRef, the Sharding that they were made from). Temporary uses pass plain pointers.
// Layouts from layout_of (spelling.h) also have the canonical order (factor.h), so that comparing their pointers compares placements.
#pragma once
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/reducer.h"
#include "base/small_vector.h"
#include "shardarray/device.h"
#include "shardarray/shape.h"

namespace shardarray {

struct SubAxis {
  std::int32_t pre = 1, size = 1;
  friend auto operator<=>(const SubAxis&, const SubAxis&) = default;
};
using AxisList = SmallVector<SubAxis, 4>;

class DeviceOrder;
class Layout;
using OrderRef = std::shared_ptr<const DeviceOrder>;
using LayoutRef = std::shared_ptr<const Layout>;

/// An ordered list of distinct devices, interned: equal lists have the same address.
class DeviceOrder : public std::enable_shared_from_this<DeviceOrder> {
 public:
  static OrderRef shared(std::vector<Device> devices);
  /// The same, never freed: for the few common orders, such as single devices.
  static const DeviceOrder* of(std::vector<Device> devices);
  /// The number of live orders.
  static std::size_t count();
  ~DeviceOrder();
  OrderRef ref() const { return shared_from_this(); }
  int size() const { return static_cast<int>(devices_.size()); }
  const std::vector<Device>& devices() const { return devices_; }
  /// -1 if the device is not in the list.
  int position(const Device& d) const;
  /// The same devices, sorted by id.
  const DeviceOrder* sorted() const { return sorted_ ? sorted_.get() : this; }

 private:
  friend class Layout;
  struct Layouts;
  DeviceOrder(std::vector<Device> devices, OrderRef sorted);
  std::vector<Device> devices_;
  OrderRef sorted_;  // null: this one
  std::unique_ptr<Layouts> layouts_;
};

class Layout {
 public:
  /// Drops sub-axes of size 1, merges neighbours ((1,2),(2,3) -> (1,6)), sorts `unreduced` by pre, interns. Throws InternalError if
  /// sub-axes overlap.
  static const Layout* of(const DeviceOrder* order, std::vector<AxisList> dims, AxisList unreduced = {},
                          Reducer reducer = Reducer::none);
  /// The whole value on every device of `order`.
  static const Layout* replicated(const DeviceOrder* order, int rank);

  /// Keeps the layout and its order alive.
  LayoutRef ref() const { return {order_->ref(), this}; }
  const DeviceOrder* order() const { return order_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  const std::vector<AxisList>& dims() const { return dims_; }
  const AxisList& unreduced() const { return unreduced_; }
  Reducer reducer() const { return reducer_; }
  /// The number of tiles along dimension d.
  std::int64_t tiles(int d) const;
  /// The tile of position p along dimension d.
  std::int64_t tile_index(int d, int p) const;
  bool is_fully_replicated() const;
  std::size_t hash() const { return hash_; }
  /// `[{1:4}, {}] U{4:2}`: sub-axes as pre:size; for internal messages.
  std::string to_string() const;

 private:
  const DeviceOrder* order_ = nullptr;
  std::vector<AxisList> dims_;
  AxisList unreduced_;
  Reducer reducer_ = Reducer::none;
  std::size_t hash_ = 0;
};

/// The coordinate of position p along a sub-axis, for n devices.
constexpr std::int64_t coordinate(SubAxis a, int p, int n) { return p / (n / (a.pre * a.size)) % a.size; }
/// The same for several sub-axes, the most significant first.
inline std::int64_t coordinate(const AxisList& axes, int p, int n) {
  std::int64_t index = 0;
  for (SubAxis a : axes) index = index * a.size + coordinate(a, p, n);
  return index;
}

/// Which summand of its tile position p holds; 0 if there is only one.
std::int64_t summand_index(const Layout& layout, int p);

/// A box of a value, in global coordinates.
struct Box {
  Shape lo, size;
  std::int64_t elements() const;
  bool empty() const { return elements() == 0; }
  friend bool operator==(const Box&, const Box&) = default;
};
Box intersect(const Box& a, const Box& b);
Box whole_box(const Shape& shape);
/// The tile of position p of a value of `shape`.
Box tile_of(const Layout& layout, const Shape& shape, int p);
/// The largest tile: ceil-sized in every dimension.
Shape tile_shape(const Layout& layout, const Shape& shape);

/// Which devices share one buffer. With sharing, positions in one memory of one process that agree on all sub-axes in use form one instance
/// (partial sums differ along unreduced sub-axes); without, each position is an instance.
struct Instances {
  std::vector<int> of_position;  ///< position -> instance
  std::vector<int> leader;       ///< instance -> its lowest position; ascending
  int count() const { return static_cast<int>(leader.size()); }
};
Instances instances_of(const Layout& layout, bool share_replicas);

}  // namespace shardarray
