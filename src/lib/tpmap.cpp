// The parts of tpmap without templates: arguments by kind, rows of trees on their devices, comparison of replicas.
#include "shardarray/tpmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <utility>

#include "base/count_text.h"
#include "base/sizes.h"
#include "execute/constraint.h"
#include "execute/evaluate.h"
#include "runtime/devices.h"
#include "shardarray/ops.h"
#include "shardarray/placement.h"
#include "shardarray/processes.h"
#include "shardarray/random.h"

namespace shardarray {

// `params.w` f32[4,3]; the tree itself has no path.
static std::string leaf_text(const std::string& path, const Array& a) {
  return path.empty() ? to_string(type_of(a)) : fmt::format("`{}` {}", path, to_string(type_of(a)));
}

// The call that appends so many rows of zeros to x: pad(x, {{0, 7}, {0, 0}}).
static std::string padding_text(const Array& x, std::int64_t rows) {
  std::string text = fmt::format("pad(x, {{{{0, {}}}", rows);
  for (std::int64_t d = 1; d < x.ndim(); d++) text += ", {0, 0}";
  return text + "})";
}

static std::int64_t leading(const Array& a, const std::string& path, const char* function) {
  if (a.ndim() == 0)
    throw ShapeError(
        fmt::format("{}: {} does not have a leading axis. Every leaf has one row for each device. Give it "
                    "one, or leave it out.",
                    function, leaf_text(path, a)));
  return a.shape()[0];
}

// ---------------------------------------------------------------- arguments
static const char* name(ArgType t) {
  switch (t) {
    case ArgType::broadcast: return "broadcast";
    case ArgType::shard: return "shard";
    case ArgType::rng: return "rng";
    case ArgType::thru: return "thru";
    case ArgType::fixed: return "fixed";
  }
  return "?";
}

namespace detail {
void throw_wrap_return() {
  throw TreeError(
      "tpmap: wrap_return takes another type than the function returns. It takes the type of the result, or "
      "an Array for every leaf. Correct its parameter.");
}
}  // namespace detail

namespace core {

std::int64_t tpmap_size(std::size_t given, std::span<const ArgType> declared,
                        std::span<const Device> devices) {
  if (given != declared.size())
    throw TreeError(fmt::format(
        "tpmap: the number of arguments does not match the ones declared in .args ({} != {}). Every argument "
        "has one entry: broadcast, shard, rng, thru or fixed. Correct .args or the call.",
        given, declared.size()));
  return devices.empty() ? local_device_count() : static_cast<std::int64_t>(devices.size());
}

Array tpmap_rows(std::int64_t devices) { return arange(devices); }

void throw_tpmap_number(std::size_t position, ArgType type) {
  throw ShapeError(fmt::format("tpmap: argument {} is a number and declared {}. {}", position,
                               shardarray::name(type),
                               type == rng ? "A key is an array. Make one with random::key(seed)."
                                           : "A number has no leading axis. Declare it broadcast or fixed."));
}

Array split_leading(const Array& a, std::int64_t n, const Path& path, const char* function) {
  const std::int64_t rows = leading(a, path.text(), function);
  if (n < 1)
    throw ShapeError(fmt::format("{}: {} groups. There is at least one group. Correct n.", function, n));
  if (rows % n != 0)
    throw ShapeError(
        fmt::format("{}: Trying to split {} into {} groups: {}. The batch size must be a multiple of the "
                    "number of devices or groups. {}, or pad it to {} with {}.",
                    function, count_text(rows, "row"), n, leaf_text(path.text(), a),
                    rows < n ? fmt::format("Name a number of devices or groups that divides {}", rows)
                             : fmt::format("Drop {} with x[slice({})]", rows % n, rows - rows % n),
                    count_text(add_sizes(rows, n - rows % n), "row"), padding_text(a, n - rows % n)));
  Shape shape = a.shape();
  shape[0] = rows / n;
  shape.insert(0, n);
  return a.reshape(shape);
}

Array flatten_leading(const Array& a, std::int64_t axes, const Path& path, const char* function) {
  if (axes < 1 || axes > a.ndim())
    throw ShapeError(
        fmt::format("{}: cannot join the first {} dimensions of {}. There are between 1 and {} to join.",
                    function, axes, leaf_text(path.text(), a), a.ndim()));
  Shape shape{1};
  for (std::size_t d = 0; d < a.shape().size(); d++)
    if (d < static_cast<std::size_t>(axes)) shape[0] = mul_sizes(shape[0], a.shape()[d]);
    else shape.push_back(a.shape()[d]);
  return a.reshape(shape);
}

Array tpmap_argument(const Array& a, ArgType type, std::int64_t devices, const Path& path) {
  switch (type) {
    case ArgType::broadcast: return a;
    case ArgType::shard: return split_leading(a, devices, path, "tpmap");
    case ArgType::rng: return random::split(a, devices);
    case ArgType::thru:
      if (const std::int64_t rows = leading(a, path.text(), "tpmap"); rows != devices)
        throw ShapeError(fmt::format(
            "tpmap: {} has {} for {}. Declared thru, it has one row for each. {}.", leaf_text(path.text(), a),
            count_text(rows, "row"), count_text(devices, "device"),
            rows > 0 && rows % devices == 0 ? fmt::format("Declare it shard: {} for each", rows / devices)
            : rows > devices ? fmt::format("Take {} of them with x[slice({})]", devices, devices)
            : rows > 0       ? fmt::format("Give it {}, or name {} in .devices", devices, rows)
                             : fmt::format("Give it {}", devices)));
      return a;
    case ArgType::fixed: break;
  }
  throw TreeError(
      fmt::format("tpmap: {} is declared fixed and holds an array. What is fixed is part of the program. "
                  "Declare it broadcast, or pass a number.",
                  leaf_text(path.text(), a)));
}

}  // namespace core

// ---------------------------------------------------------------- rows on their devices
namespace {

// An uncommitted array on one device that shares existing memory.
Array view(const Array& piece, const Shape& shape) {
  const ValueRef value = value_of(piece);
  const Value& v = *value;
  const Type t{shape, piece.dtype(), piece.weak_type()};
  auto r = make_value(Layout::replicated(v.layout->order(), static_cast<int>(shape.size())), v.sharding,
                      false, true);
  r->buffers = v.buffers;
  r->ready = v.ready;
  return leaf_array(t, std::move(r), piece.node()->where);
}

class Rows {
 public:
  Rows(const Array& x, const std::string& path, const char* function)
      : x_(core::added_up(x, function)),
        count_(leading(x_, path, function)),
        places_(x_.sharding().devices_indices_map(x_.shape())),
        is_here_(!spans_processes(x_.devices())),
        shards_(x_.addressable_shards()) {}
  std::int64_t count() const { return count_; }

  // The place of row k: one that holds all of it, of several the k-th in turn.
  const std::pair<Device, ShardIndex>& place(std::int64_t k) const {
    std::vector<std::size_t> holders, owners;
    for (std::size_t p = 0; p < places_.size(); p++) {
      const ShardIndex& index = places_[p].second;
      if (!index[0].whole && (k < index[0].start || k >= index[0].stop)) continue;
      owners.push_back(p);
      if (is_whole_row(index)) holders.push_back(p);
    }
    return places_[holders.empty() ? owners[0] : holders[static_cast<std::size_t>(k) % holders.size()]];
  }
  Array at(std::int64_t k) const {
    const auto& [device_of_row, index] = place(k);
    const Device& device = device_of_row;  // clang before 16 captures no binding
    if (!is_here_ || !is_whole_row(index)) {
      const Array row = core::device_put_leaf(x_[k], SingleDeviceSharding(device), "", {});
      return is_here_ ? view(row, row.shape()) : row;
    }
    const Shard& s =
        *std::find_if(shards_.begin(), shards_.end(), [&](const Shard& o) { return o.device == device; });
    Shape shape = s.data.shape();
    if (shape[0] > 1) return view(s.data, shape)[k - (index[0].whole ? 0 : index[0].start)];
    shape.erase(0);
    return view(s.data, shape);
  }

 private:
  static bool is_whole_row(const ShardIndex& index) {
    return std::all_of(index.begin() + 1, index.end(), [](const IndexRange& r) { return r.whole; });
  }
  Array x_;
  std::int64_t count_;
  std::vector<std::pair<Device, ShardIndex>> places_;
  bool is_here_;  // all of it
  std::vector<Shard> shards_;
};

}  // namespace

namespace core {

std::vector<Arrays> unshard(std::span<const Array> leaves, std::span<const std::string> paths, Where w) {
  const Site site(w);
  if (leaves.empty())
    throw TreeError(
        "unshard: the tree to be unsharded holds no arrays. The first one says how many items there are. "
        "Give it one.");
  evaluate(leaves, "unshard");
  std::vector<Rows> rows;
  for (std::size_t k = 0; k < leaves.size(); k++) rows.emplace_back(leaves[k], paths[k], "unshard");
  std::vector<Arrays> items(static_cast<std::size_t>(rows[0].count()));
  for (const Rows& r : rows) {
    if (r.count() == 0 && !items.empty())
      throw ShapeError(
          "unshard: a leaf has no rows, the first one has. All leaves have one row for each item. Leave it "
          "out.");
    for (std::size_t i = 0; i < items.size(); i++)
      items[i].push_back(r.at(std::min(static_cast<std::int64_t>(i), r.count() - 1)));
  }
  return items;
}

}  // namespace core

// ---------------------------------------------------------------- replicas
namespace {

// One of several copies that should be equal.
struct Replica {
  Device device;
  ShardIndex index;  // of the part within the leaf
  Array data;        // on `device`
};

// Those in this process.
std::vector<Replica> replicas_here(const Array& leaf) {
  std::vector<Replica> r;
  for (Shard& s : leaf.addressable_shards()) r.push_back({s.device, s.index, std::move(s.data)});
  return r;
}

// All of those of a leaf that spans several processes, in every process.
std::vector<Replica> replicas_everywhere(const Array& leaf) {
  const SingleDeviceSharding here(local_devices()[0]);
  Arrays mine{core::device_put_leaf(zeros({0}, leaf.dtype()), here, "", {})};
  for (const Replica& r : replicas_here(leaf))
    mine.push_back(core::device_put_leaf(r.data.reshape({-1}), here, "", {}));
  const std::vector<Arrays> all = core::gather_from_processes(Arrays{concatenate(mine)}, {});
  std::vector<Replica> r;
  std::vector<std::int64_t> next(all.size(), 0);  // of each process
  for (const auto& [device, index] : leaf.sharding().devices_indices_map(leaf.shape())) {
    Shape shape = leaf.shape();
    for (std::size_t d = 0; d < index.size(); d++)
      if (!index[d].whole) shape[d] = index[d].stop - index[d].start;
    const auto process = static_cast<std::size_t>(device.process_index);
    const std::int64_t first = std::exchange(next[process], next[process] + num_elements(shape));
    r.push_back({device, index, all[process][0][slice(first, next[process])].reshape(shape)});
  }
  return r;
}

// The distinct parts of a leaf, each with its replicas.
std::vector<std::vector<Replica>> parts_of(const Array& given) {
  const Array leaf = core::added_up(given, "assert_replica_integrity");
  std::vector<std::vector<Replica>> parts;
  for (Replica& r : in_several_processes(leaf.devices()) ? replicas_everywhere(leaf) : replicas_here(leaf)) {
    auto same =
        std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return p[0].index == r.index; });
    if (same == parts.end()) same = parts.insert(parts.end(), std::vector<Replica>());
    same->push_back(std::move(r));
  }
  return parts;
}

// The rows of a leaf, as replicas of one part.
std::vector<std::vector<Replica>> rows_of(const Array& leaf, const std::string& path) {
  const Rows rows(leaf, path, "assert_replica_integrity");
  Array whole;
  if (in_several_processes(leaf.devices()))
    whole = core::device_put_leaf(leaf, PositionalSharding(devices()).replicate(), "", {})
                .addressable_shards()[0]
                .data;
  else if (spans_processes(leaf.devices())) return {};  // another process has it
  std::vector<Replica> part;
  for (std::int64_t k = 0; k < rows.count(); k++) {
    const Array row = whole.has_value() ? whole[k] : rows.at(k);
    part.push_back({rows.place(k).first, ShardIndex(row.shape().size()), row});
  }
  return {part};
}

template <class T> T element(const std::vector<std::byte>& bytes, std::size_t k) {
  T x;
  std::memcpy(&x, bytes.data() + k * sizeof(T), sizeof(T));
  return x;
}

template <class T> bool agree(T x, T x0, const IntegrityOptions& o) {
  if (x == x0 || (std::isnan(x) && std::isnan(x0))) return true;
  return std::isfinite(x) && std::isfinite(x0) &&
         std::abs(static_cast<double>(x) - static_cast<double>(x0)) <=
             o.atol + o.rtol * std::abs(static_cast<double>(x0));
}

std::string bits_text(const std::vector<std::byte>& bytes, std::size_t k, std::size_t item) {
  std::string text = "0x";
  for (std::size_t b = item; b-- > 0;)
    text += fmt::format("{:02x}", static_cast<unsigned>(bytes[k * item + b]));
  return text;
}

// The fewest digits that identify a value, and its bits.
std::string value_text(const std::vector<std::byte>& bytes, std::size_t k, DType t) {
  std::string bits = bits_text(bytes, k, itemsize(t));
  switch (t) {
    case DType::bool_: return element<std::uint8_t>(bytes, k) ? "true" : "false";
    case DType::int8: return fmt::to_string(static_cast<int>(element<std::int8_t>(bytes, k)));
    case DType::int16: return fmt::to_string(element<std::int16_t>(bytes, k));
    case DType::int32: return fmt::to_string(element<std::int32_t>(bytes, k));
    case DType::int64: return fmt::to_string(element<std::int64_t>(bytes, k));
    case DType::float32: return fmt::format("{} ({})", element<float>(bytes, k), bits);
    case DType::float64: return fmt::format("{} ({})", element<double>(bytes, k), bits);
    default: return bits;
  }
}

// The index of element k of a part in the whole leaf: (3, 0).
std::string index_text(std::size_t k, const Shape& shape, const ShardIndex& part) {
  Shape at = Shape::filled(shape.size(), 0);
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[d]);
    at[d] = static_cast<std::int64_t>(k % size) + (part[d].whole ? 0 : part[d].start);
    k /= size;
  }
  return to_string(at);
}

// Throws if replica number r disagrees with the first one.
void compare(const Replica& first, const Replica& other, std::size_t r, const std::string& path,
             const Array& leaf, const IntegrityOptions& o) {
  const ValueRef a = force(first.data, "assert_replica_integrity"),
                 b = force(other.data, "assert_replica_integrity");
  if (a->buffers[0].get() == b->buffers[0].get()) return;  // they share memory
  const DType t = leaf.dtype();
  const std::size_t item = itemsize(t);
  const auto bytes_of = [](const Array& x) { return host_elements(x, "assert_replica_integrity"); };
  const std::vector<std::byte> x0 = bytes_of(first.data), x = bytes_of(other.data);
  if (x0 == x) return;
  const bool exact = o.rtol == 0 && o.atol == 0;
  std::vector<std::byte> wide0, wide;  // of floats of 16 bits
  if (is_floating(t) && item == 2)
    wide0 = bytes_of(first.data.astype(float32)), wide = bytes_of(other.data.astype(float32));
  auto differs = [&](std::size_t k) {
    if (!exact && t == DType::float32) return !agree(element<float>(x, k), element<float>(x0, k), o);
    if (!exact && t == DType::float64) return !agree(element<double>(x, k), element<double>(x0, k), o);
    if (!exact && !wide.empty()) return !agree(element<float>(wide, k), element<float>(wide0, k), o);
    return std::memcmp(x.data() + k * item, x0.data() + k * item, item) != 0;
  };
  std::size_t count = 0, at = 0;
  for (std::size_t k = 0; k < x.size() / item; k++)
    if (differs(k) && count++ == 0) at = k;
  if (count == 0) return;
  throw ShardingError(fmt::format(
      "assert_replica_integrity: Inconsistency found in replica {} of {}: {} on {}, {} on {} at index {}, {} "
      "of {} elements in all. Replicas must agree within atol = {} and rtol = {}. Find the step after which "
      "they differ: what it computes from is not the same on all devices.",
      r, leaf_text(path, leaf), value_text(x, at, t), to_string(other.device), value_text(x0, at, t),
      to_string(first.device), index_text(at, first.data.shape(), first.index), count, x.size() / item,
      o.atol, o.rtol));
}

}  // namespace

namespace core {

void assert_replica_integrity(std::span<const Array> leaves, std::span<const std::string> paths,
                              const IntegrityOptions& o) {
  evaluate(leaves, "assert_replica_integrity");
  std::exception_ptr failure;
  std::string text;
  for (std::size_t k = 0; k < leaves.size(); k++) {  // even after a failure: other processes go on
    try {
      for (const auto& part : o.is_device_replicated ? rows_of(leaves[k], paths[k]) : parts_of(leaves[k]))
        for (std::size_t r = 1; r < part.size() && !failure; r++)
          compare(part[0], part[r], r, paths[k], leaves[k], o);
    } catch (const ShardingError& e) {
      failure = std::current_exception();
      text = e.text();
    }
  }
  if (process_count() > 1) {
    const std::vector<std::uint8_t> mine(text.begin(), text.end());
    const std::vector<Arrays> all = gather_from_processes(Arrays{array(mine, {std::ssize(mine)})});
    for (std::size_t p = 0; p < all.size() && !failure; p++)
      if (const auto said = all[p][0].to_vector<std::uint8_t>(); !said.empty())
        throw ShardingError(fmt::format("{} (in process {})", std::string(said.begin(), said.end()), p));
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace core
}  // namespace shardarray
