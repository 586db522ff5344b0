// PositionalSharding: array operations on a grid of device sets, by numpy's rules.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/count_text.h"
#include "base/sizes.h"
#include "layout/sharding_impl.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

using Sets = std::vector<std::vector<int>>;

const PositionalSpelling& spelling(const Sharding& s) {
  return std::get<PositionalSpelling>(s.impl()->spelling);
}

Shape strides_of(const Shape& shape) {
  Shape out = Shape::filled(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) out[d - 1] = out[d] * shape[d];
  return out;
}

Sharding make_positional(const DeviceGrid& grid, Where w) {
  const Site site(w);
  if (grid.devices.empty() || elements_or_most(grid.shape) != static_cast<std::int64_t>(grid.devices.size()))
    throw ShardingError(
        fmt::format("PositionalSharding: a grid of shape {} with {}. It needs at least one device, and the "
                    "sizes must multiply to their number. Use create_device_mesh.",
                    to_string(grid.shape), count_text(grid.devices.size(), "device")));
  Sets sets;
  for (std::size_t k = 0; k < grid.devices.size(); k++) {
    const auto first =
        std::find(grid.devices.begin(), grid.devices.end(), grid.devices[k]) - grid.devices.begin();
    if (first != static_cast<std::ptrdiff_t>(k))
      throw ShardingError(
          fmt::format("PositionalSharding: device {} stands at positions {} and {} of the grid. Every device "
                      "holds one block. Remove one.",
                      to_string(grid.devices[k]), first, k));
    sets.push_back({static_cast<int>(k)});
  }
  return make_sharding(PositionalSpelling{grid.shape, std::move(sets)}, grid.devices);
}

// The shape with its -1 filled in; throws if it does not hold `count` entries.
Shape completed(const Shape& shape, std::int64_t count) {
  Shape out = shape;
  std::int64_t known = 1;
  int open = -1;
  bool valid = true;
  for (std::size_t d = 0; d < shape.size(); d++) {
    if (shape[d] == -1 && open < 0) open = static_cast<int>(d);
    else if (shape[d] < 1) valid = false;
    else known = mul_sizes(known, shape[d]);
  }
  if (valid && open >= 0 && count % known == 0) out[open] = count / known;
  else valid = valid && open < 0 && known == count;
  if (!valid)
    throw ShardingError(
        fmt::format("reshape: cannot reshape a sharding of {} into shape {}. The sizes must multiply to the "
                    "number of entries; one may be -1. Correct the shape.",
                    count_text(count, "entry"), python_tuple(shape)));
  return out;
}

// For each dimension: is it reduced?
std::vector<bool> reduced_dims(const Shape& axes, std::size_t rank) {
  std::vector<bool> reduced(rank, false);
  const auto n = static_cast<std::int64_t>(rank);
  for (std::int64_t axis : axes) {
    if (axis < -n || axis >= n)
      throw ShardingError(
          fmt::format("replicate: axis {} is out of bounds for a sharding of {}. Axes go from -n to n - 1. "
                      "Correct the axis.",
                      axis, count_text(rank, "dimension")));
    auto at = reduced.begin() + (axis < 0 ? axis + n : axis);
    if (*at)
      throw ShardingError(fmt::format("replicate: axis {} stands twice in {}. Axes are distinct. Remove one.",
                                      axis, python_tuple(axes)));
    *at = true;
  }
  return reduced;
}

// The union of the sets along the reduced dimensions, which keep size 1.
PositionalSpelling joined(const PositionalSpelling& s, const std::vector<bool>& reduced) {
  PositionalSpelling out{s.shape, {}};
  for (std::size_t d = 0; d < reduced.size(); d++)
    if (reduced[d]) out.shape[d] = 1;
  const Shape from = strides_of(s.shape), to = strides_of(out.shape);
  out.sets.resize(static_cast<std::size_t>(num_elements(out.shape)));
  for (std::size_t k = 0; k < s.sets.size(); k++) {
    std::int64_t target = 0;
    for (std::size_t d = 0; d < reduced.size(); d++)
      if (!reduced[d]) target += static_cast<std::int64_t>(k) / from[d] % s.shape[d] * to[d];
    out.sets[target].insert(out.sets[target].end(), s.sets[k].begin(), s.sets[k].end());
  }
  for (auto& set : out.sets) std::sort(set.begin(), set.end());
  return out;
}

std::vector<int> sorted_ids(const std::vector<int>& set, const std::vector<Device>& devices) {
  std::vector<int> ids;
  ids.reserve(set.size());
  for (int p : set) ids.push_back(devices[p].id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// numpy's array2string: rows break before an entry that would exceed `width` columns.
class GridPrinter {
 public:
  GridPrinter(std::vector<std::string> words, const Shape& shape) : words_(std::move(words)), shape_(shape) {}
  std::string print(std::size_t d, int indent, int width) {
    if (d == shape_.size()) return words_[next_++];
    const bool innermost = d + 1 == shape_.size();
    const std::string blanks(static_cast<std::size_t>(indent), ' ');
    std::string out = "[", line;
    for (std::int64_t k = 0; k < shape_[d]; k++) {
      const std::string item = print(d + 1, indent + 1, width - 1);
      if (innermost) {
        const bool breaks = k > 0 && indent + static_cast<int>(line.size() + 1 + item.size()) > width - 1;
        if (breaks) out += line + "\n" + blanks;
        line = k == 0 || breaks ? item : line + " " + item;
      } else {
        if (k > 0) out += std::string(shape_.size() - d - 1, '\n') + blanks;
        out += item;
      }
    }
    return out + line + "]";
  }

 private:
  std::vector<std::string> words_;
  const Shape& shape_;
  std::size_t next_ = 0;
};

}  // namespace

std::string positional_repr(const PositionalSpelling& s, const std::vector<Device>& devices) {
  std::string platform = devices[0].platform;
  for (char& c : platform)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  std::vector<std::string> words;
  for (const auto& set : s.sets)
    words.push_back(fmt::format("{{{} {}}}", platform, fmt::join(sorted_ids(set, devices), ", ")));
  // Entries start after `PositionalSharding([`, at column 20; lines have 99 columns without the closing parenthesis.
  const std::string body = GridPrinter(std::move(words), s.shape).print(0, 20, 99);
  return fmt::format("PositionalSharding({}, shape={})", body, python_tuple(s.shape));
}

PositionalSharding::PositionalSharding(const DeviceGrid& grid, Where w)
    : sharding_(make_positional(grid, w)) {}
PositionalSharding::PositionalSharding(const std::vector<Device>& devices, Where w)
    : PositionalSharding(DeviceGrid{{static_cast<std::int64_t>(devices.size())}, devices}, w) {}

PositionalSharding PositionalSharding::reshape(const Shape& shape, Where w) const {
  const Site site(w);
  const PositionalSpelling& s = spelling(sharding_);
  const auto count = static_cast<std::int64_t>(s.sets.size());
  return PositionalSharding(
      make_sharding(PositionalSpelling{completed(shape, count), s.sets}, sharding_.device_assignment()));
}

PositionalSharding PositionalSharding::transpose(const Shape& perm, Where w) const {
  const Site site(w);
  const PositionalSpelling& s = spelling(sharding_);
  const std::size_t rank = s.shape.size();
  std::vector<bool> seen(rank, false);
  bool valid = perm.size() == rank;
  Shape axes, shape, strides;
  const Shape from = strides_of(s.shape);
  for (std::size_t d = 0; valid && d < rank; d++) {
    const std::int64_t axis = perm[d] < 0 ? perm[d] + static_cast<std::int64_t>(rank) : perm[d];
    valid = axis >= 0 && axis < static_cast<std::int64_t>(rank) && !seen[axis];
    if (!valid) break;
    seen[axis] = true;
    shape.push_back(s.shape[axis]);
    strides.push_back(from[axis]);
  }
  if (!valid)
    throw ShardingError(
        fmt::format("transpose: axes {} do not match a sharding of {}. Each dimension stands there once. "
                    "Correct the axes.",
                    python_tuple(perm), count_text(rank, "dimension")));
  PositionalSpelling out{shape, {}};
  const Shape to = strides_of(shape);
  for (std::size_t k = 0; k < s.sets.size(); k++) {
    std::int64_t source = 0;
    for (std::size_t d = 0; d < rank; d++)
      source += static_cast<std::int64_t>(k) / to[d] % shape[d] * strides[d];
    out.sets.push_back(s.sets[source]);
  }
  return PositionalSharding(make_sharding(std::move(out), sharding_.device_assignment()));
}

PositionalSharding PositionalSharding::T() const {
  Shape reversed;
  for (int d = ndim(); d-- > 0;) reversed.push_back(d);
  return transpose(reversed);
}

PositionalSharding PositionalSharding::replicate() const {
  Shape all;
  for (int d = 0; d < ndim(); d++) all.push_back(d);
  return replicate(all);
}

PositionalSharding PositionalSharding::replicate(std::int64_t axis, ReplicateOptions o, Where w) const {
  return replicate(Shape{axis}, o, w);
}

PositionalSharding PositionalSharding::replicate(const Shape& axes, ReplicateOptions o, Where w) const {
  const Site site(w);
  const PositionalSpelling& s = spelling(sharding_);
  const auto reduced = reduced_dims(axes, s.shape.size());
  PositionalSpelling out = joined(s, reduced);
  if (!o.keepdims)
    for (std::size_t d = reduced.size(); d-- > 0;)
      if (reduced[d]) out.shape.erase(d);
  return PositionalSharding(make_sharding(std::move(out), sharding_.device_assignment()));
}

const Shape& PositionalSharding::shape() const { return spelling(sharding_).shape; }
int PositionalSharding::ndim() const { return static_cast<int>(shape().size()); }

std::vector<std::vector<int>> PositionalSharding::ids() const {
  std::vector<std::vector<int>> out;
  for (const auto& set : spelling(sharding_).sets)
    out.push_back(sorted_ids(set, sharding_.device_assignment()));
  return out;
}

std::string PositionalSharding::to_string() const { return sharding_.to_string(); }

std::ostream& operator<<(std::ostream& os, const PositionalSharding& s) { return os << s.to_string(); }

}  // namespace shardarray
