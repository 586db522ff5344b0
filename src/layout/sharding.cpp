// Sharding: what all spellings share; SingleDeviceSharding.
#include "shardarray/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "base/key.h"
#include "base/sizes.h"
#include "layout/factor.h"
#include "layout/sharding_impl.h"
#include "layout/spelling.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

template <class... F> struct Overloaded : F... { using F::operator()...; };
template <class... F> Overloaded(F...) -> Overloaded<F...>;

std::string single_repr(const Device& d) {
  std::string platform = d.platform;
  if (!platform.empty() && platform[0] >= 'a' && platform[0] <= 'z')
    platform[0] = static_cast<char>(platform[0] - 32);
  return fmt::format("SingleDeviceSharding(device={}Device(id={}))", platform, d.id);
}

std::int64_t devices_over(const Mesh& mesh, const std::vector<std::string>& axes) {
  std::int64_t n = 1;
  for (const std::string& axis : axes) n *= mesh.axis_size(axis);
  return n;
}
Shape spec_counts(const NamedSpelling& s, int rank) {
  Shape counts = Shape::filled(static_cast<std::size_t>(rank), 1);
  for (std::size_t d = 0; d < s.spec.entries().size(); d++)
    counts[d] = devices_over(s.mesh, s.spec.entries()[d].names);
  return counts;
}
std::int64_t summands_of(const NamedSpelling& s) { return devices_over(s.mesh, s.spec.unreduced_axes()); }

// By position: the tile index of a dimension sharded over these mesh axes.
std::vector<std::int64_t> tiles_over(const Mesh& mesh, const std::vector<std::string>& axes) {
  const Shape& grid = mesh.state().grid.shape;
  std::vector<std::int64_t> tiles(static_cast<std::size_t>(mesh.size()), 0);
  for (const std::string& axis : axes) {
    const int k = axis_position(mesh, axis);
    std::int64_t stride = 1;
    for (std::size_t e = static_cast<std::size_t>(k) + 1; e < grid.size(); e++) stride *= grid[e];
    for (std::size_t p = 0; p < tiles.size(); p++)
      tiles[p] = tiles[p] * grid[k] + static_cast<std::int64_t>(p) / stride % grid[k];
  }
  return tiles;
}

Placement named_placement(const NamedSpelling& s, int rank, const std::vector<Device>& devices) {
  const auto& entries = s.spec.entries();
  Placement out{DeviceOrder::shared(devices), spec_counts(s, rank), {}};
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); d++)
    out.index.push_back(
        tiles_over(s.mesh, d < entries.size() ? entries[d].names : std::vector<std::string>{}));
  const std::int64_t summands = summands_of(s);
  if (summands > 1) {
    out.reducer = Reducer::sum;
    out.counts.push_back(summands);
    out.index.push_back(tiles_over(s.mesh, s.spec.unreduced_axes()));
  }
  return out;
}

Placement positional_placement(const PositionalSpelling& s, const std::vector<Device>& devices) {
  const std::size_t rank = s.shape.size();
  Placement out{DeviceOrder::shared(devices), s.shape, {}};
  out.index.assign(rank, std::vector<std::int64_t>(devices.size(), 0));
  for (std::size_t entry = 0; entry < s.sets.size(); entry++) {
    auto rest = static_cast<std::int64_t>(entry);
    for (std::size_t d = rank; d-- > 0;) {
      for (int p : s.sets[entry]) out.index[d][p] = rest % s.shape[d];
      rest /= s.shape[d];
    }
  }
  return out;
}

bool all_ones(const Shape& s) {
  return std::all_of(s.begin(), s.end(), [](std::int64_t n) { return n == 1; });
}

[[noreturn]] void throw_rank(const Sharding& s, const char* function, const std::string& fitting, int rank,
                             const char* remedy) {
  throw ShardingError(
      fmt::format("{}: {} is only valid for values of rank {}, but was applied to a value of rank {}. The "
                  "sharding must fit the value's dimensions. {}.",
                  function, s.to_string(), fitting, rank, remedy));
}

LayoutRef make_layout(const Sharding& s, int rank, const char* function) {
  const ShardingImpl& impl = *s.impl();
  return std::visit(
      Overloaded{[&](const NamedSpelling& named) {
                   const std::size_t length = named.spec.entries().size();
                   if (static_cast<std::size_t>(rank) < length)
                     throw_rank(s, function ? function : "NamedSharding", fmt::format("at least {}", length),
                                rank,
                                rank == 0 ? "For scalars use P()" : "Drop entries from the PartitionSpec");
                   return canonical_layout(named_placement(named, rank, impl.devices));
                 },
                 [&](const PositionalSpelling& positional) {
                   if (all_ones(positional.shape))
                     return Layout::replicated(DeviceOrder::shared(impl.devices)->sorted(), rank)->ref();
                   if (static_cast<std::size_t>(rank) != positional.shape.size())
                     throw_rank(s, function ? function : "PositionalSharding",
                                std::to_string(positional.shape.size()), rank,
                                "Reshape the sharding or replicate() it");
                   return canonical_layout(positional_placement(positional, impl.devices));
                 },
                 [&](const SingleSpelling&) {
                   return Layout::replicated(DeviceOrder::shared(impl.devices).get(), rank)->ref();
                 }},
      impl.spelling);
}

}  // namespace

Sharding make_sharding(ShardingImpl::Spelling spelling, std::vector<Device> devices) {
  return Sharding(std::make_shared<const ShardingImpl>(std::move(spelling), std::move(devices)));
}

const Layout* layout_of(const Sharding& s, int rank, const char* function) {
  const ShardingImpl& impl = *s.impl();
  auto* const slot = static_cast<std::size_t>(rank) < impl.layouts.size() ? &impl.layouts[rank] : nullptr;
  if (slot)
    if (const Layout* known = slot->load(std::memory_order_acquire)) return known;
  LayoutRef made = make_layout(s, rank, function);
  const Layout* const layout = made.get();
  const std::lock_guard lock(impl.mutex);
  if (std::find(impl.held.begin(), impl.held.end(), made) == impl.held.end())
    impl.held.push_back(std::move(made));
  if (slot) slot->store(layout, std::memory_order_release);
  return layout;
}

Sharding added_up(const Sharding& s) {
  const auto* const named = std::get_if<NamedSpelling>(&s.impl()->spelling);
  if (!named || named->spec.unreduced_axes().empty()) return s;
  return NamedSharding(named->mesh, PartitionSpec(named->spec.entries()));
}

bool is_partial(const Sharding& s) {
  const auto* const named = std::get_if<NamedSpelling>(&s.impl()->spelling);
  return named && summands_of(*named) > 1;
}

// The layout of a value of `shape`, with errors in the name of a public function.
static const Layout* layout_for(const char* function, const Sharding& s, const Shape& shape) {
  check_size(function, shape, DType::bool_);
  return layout_of(s, static_cast<int>(shape.size()));
}
static const Layout* layout_for(const char* function, const Sharding& s, int rank) {
  constexpr int most = 1024;
  if (rank < 0 || rank > most)
    throw ShardingError(fmt::format(
        "{}: rank {}. A rank is from 0 to {}. Give the value's number of dimensions.", function, rank, most));
  return layout_of(s, rank);
}

Shape Sharding::shard_shape(const Shape& shape, Where w) const {
  const Site site(w);
  return tile_shape(*layout_for("shard_shape", *this, shape), shape);
}

Shape Sharding::shard_shape(const Shape& shape, const Device& device, Where w) const {
  const Site site(w);
  const Layout* layout = layout_for("shard_shape", *this, shape);
  const int p = layout->order()->position(device);
  if (p < 0)
    throw DeviceError(fmt::format(
        "shard_shape: {} is not one of the devices of {}. Only those hold a piece. Use a device of "
        "device_set().",
        shardarray::to_string(device), to_string()));
  return tile_of(*layout, shape, p).size;
}

std::vector<std::pair<Device, ShardIndex>> Sharding::devices_indices_map(const Shape& shape, Where w) const {
  const Site site(w);
  const Layout* layout = layout_for("devices_indices_map", *this, shape);
  std::vector<std::pair<Device, ShardIndex>> out;
  for (const Device& device : impl_->devices) {
    const Box box = tile_of(*layout, shape, layout->order()->position(device));
    ShardIndex index;
    for (int d = 0; d < layout->rank(); d++)
      index.push_back(layout->tiles(d) == 1 ? IndexRange{}
                                            : IndexRange{false, box.lo[d], box.lo[d] + box.size[d]});
    out.emplace_back(device, std::move(index));
  }
  return out;
}

std::vector<int> Sharding::replica_ids(const Shape& shape, Where w) const {
  const Site site(w);
  const Layout* layout = layout_for("replica_ids", *this, shape);
  std::map<std::vector<std::int64_t>, int> seen;
  std::vector<int> out;
  for (const Device& device : impl_->devices) {
    const Box box = tile_of(*layout, shape, layout->order()->position(device));
    std::vector<std::int64_t> key(box.lo.begin(), box.lo.end());
    key.insert(key.end(), box.size.begin(), box.size.end());
    key.push_back(summand_index(*layout, layout->order()->position(device)));
    out.push_back(seen[key]++);
  }
  return out;
}

bool Sharding::is_equivalent_to(const Sharding& other, int ndim, Where w) const {
  const Site site(w);
  return layout_for("is_equivalent_to", *this, ndim) == layout_of(other, ndim) &&
         impl_->devices == other.impl_->devices;
}

bool Sharding::is_fully_replicated() const {
  return std::visit(Overloaded{[](const NamedSpelling& s) {
                                 return summands_of(s) == 1 &&
                                        all_ones(spec_counts(s, static_cast<int>(s.spec.entries().size())));
                               },
                               [](const PositionalSpelling& s) { return all_ones(s.shape); },
                               [](const SingleSpelling&) { return true; }},
                    impl_->spelling);
}

bool Sharding::is_fully_replicated(int ndim, Where w) const {
  const Site site(w);
  return layout_for("is_fully_replicated", *this, ndim)->is_fully_replicated();
}

std::vector<Device> Sharding::device_set() const {
  return DeviceOrder::shared(impl_->devices)->sorted()->devices();
}
const std::vector<Device>& Sharding::device_assignment() const { return impl_->devices; }

std::string Sharding::to_string() const {
  return std::visit(
      Overloaded{[](const NamedSpelling& s) {
                   return fmt::format("NamedSharding(mesh={}, spec={})", s.mesh.to_string(),
                                      s.spec.to_string());
                 },
                 [&](const PositionalSpelling& s) { return positional_repr(s, impl_->devices); },
                 [&](const SingleSpelling&) { return single_repr(impl_->devices[0]); }},
      impl_->spelling);
}

bool operator==(const Sharding& a, const Sharding& b) {
  if (a.impl_ == b.impl_) return true;
  const auto &x = a.impl_->spelling, &y = b.impl_->spelling;
  if (x.index() != y.index() || a.impl_->devices != b.impl_->devices) return false;
  if (const auto* s = std::get_if<NamedSpelling>(&x)) {
    const auto& o = std::get<NamedSpelling>(y);
    return s->mesh == o.mesh && s->spec == o.spec;
  }
  if (const auto* s = std::get_if<PositionalSpelling>(&x)) {
    const auto& o = std::get<PositionalSpelling>(y);
    return s->shape == o.shape && s->sets == o.sets;
  }
  return true;
}

void put_sharding(const Sharding& sharding, Words& words) {
  const ShardingImpl& impl = *sharding.impl();
  words.push_back(impl.spelling.index() | impl.devices.size() << 8);
  for (const Device& d : impl.devices) {
    words.push_back(static_cast<std::uint64_t>(d.id));
    put_text(d.platform, words);
  }
  if (const auto* s = std::get_if<NamedSpelling>(&impl.spelling)) {
    words.push_back(s->mesh.shape().size() << 32 | s->spec.entries().size());
    for (const auto& [axis, size] : s->mesh.shape()) {
      put_text(axis, words);
      words.push_back(static_cast<std::uint64_t>(size));
    }
    for (const SpecEntry& e : s->spec.entries()) {
      words.push_back(e.names.size() << 1 | e.tuple);
      for (const std::string& axis : e.names) put_text(axis, words);
    }
    words.push_back(s->spec.unreduced_axes().size());
    for (const std::string& axis : s->spec.unreduced_axes()) put_text(axis, words);
  }
  if (const auto* s = std::get_if<PositionalSpelling>(&impl.spelling)) {
    words.push_back(s->shape.size() << 32 | s->sets.size());
    for (std::int64_t n : s->shape) words.push_back(static_cast<std::uint64_t>(n));
    for (const auto& set : s->sets) {
      words.push_back(set.size());
      for (int p : set) words.push_back(static_cast<std::uint64_t>(p));
    }
  }
}

std::size_t Sharding::hash() const {
  Words words;
  put_sharding(*this, words);
  return WordsHash()(words);
}

std::ostream& operator<<(std::ostream& os, const Sharding& s) { return os << s.to_string(); }

SingleDeviceSharding::SingleDeviceSharding(const Device& device)
    : device_(device), sharding_(make_sharding(SingleSpelling{}, {device})) {}

std::string to_string(const ShardIndex& index) {
  std::vector<std::string> parts;
  for (const IndexRange& r : index) parts.push_back(r.whole ? ":" : fmt::format("{}:{}", r.start, r.stop));
  return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
}

}  // namespace shardarray
