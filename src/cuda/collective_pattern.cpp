#include "cuda/collective_pattern.h"

#include <algorithm>
#include <utility>

#include "cuda/libraries.h"
#include "cuda/same_place.h"
#include "runtime/step_ranges.h"

namespace shardarray::cuda {
namespace {

std::optional<int> nccl_type(DType t) {
  switch (t) {
    case DType::int8: return Nccl::int8;
    case DType::uint8: return Nccl::uint8;
    case DType::int32: return Nccl::int32;
    case DType::uint32: return Nccl::uint32;
    case DType::int64: return Nccl::int64;
    case DType::uint64: return Nccl::uint64;
    case DType::float32: return Nccl::real32;
    case DType::float64: return Nccl::real64;
    default: return std::nullopt;
  }
}
std::optional<int> nccl_reduction(const Exchange& x, std::size_t ranks) {
  const bool floats = is_floating(x.dtype);
  if (floats && x.fixed_order && ranks > 2) return std::nullopt;
  switch (x.reducer) {
    case Reducer::sum: return Nccl::sum;
    case Reducer::prod: return Nccl::prod;
    case Reducer::max: return floats ? std::nullopt : std::optional(Nccl::max);
    case Reducer::min: return floats ? std::nullopt : std::optional(Nccl::min);
    default: return std::nullopt;
  }
}

Ref moved(Ref r, std::uint64_t bytes) { return {r.base, r.offset + bytes}; }

/// What one GPU receives: its tile, made of boxes from all GPUs of its group, ascending.
struct ReceivedTile {
  int gpu = 0;
  Ref dst;
  std::vector<int> group;
  std::vector<Ref> from;    // by GPU of the group
  std::uint64_t bytes = 0;  // of a box
};

bool in_a_row(const Exchange::Piece& p) {
  return is_packed(p.extents, p.src_strides) && is_packed(p.extents, p.dst_strides);
}

/// Appends the sources of boxes, in GPU order; false if two are on one GPU, or none is on the receiving GPU.
bool add_sources(const std::vector<std::pair<int, Ref>>& sources, ReceivedTile& to) {
  for (const auto& [gpu, ref] : sources) {
    if (!to.group.empty() && to.group.back() >= gpu) return false;
    to.group.push_back(gpu);
    to.from.push_back(ref);
  }
  return std::find(to.group.begin(), to.group.end(), to.gpu) != to.group.end();
}

/// Boxes of equal size, back to back.
bool gathers(const Exchange& x, const Exchange::Item& item, std::span<const int> gpu_of, ReceivedTile& to) {
  std::vector<const Exchange::Piece*> pieces;
  for (const Exchange::Piece& p : item.pieces) pieces.push_back(&p);
  std::sort(pieces.begin(), pieces.end(),
            [](const auto* a, const auto* b) { return a->dst.offset < b->dst.offset; });
  to.bytes = item.dst_bytes / std::max<std::size_t>(pieces.size(), 1);
  std::vector<std::pair<int, Ref>> sources;
  for (const Exchange::Piece* const p : pieces) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(num_elements(p->extents)) * itemsize(x.dtype);
    if (p->sources.size() != 1 || bytes != to.bytes || !in_a_row(*p)) return false;
    if (!same_place(p->dst, moved(item.dst, sources.size() * bytes))) return false;
    sources.emplace_back(gpu_of[static_cast<std::size_t>(p->sources[0].device)], p->sources[0].ref);
  }
  return to.bytes * pieces.size() == item.dst_bytes && add_sources(sources, to);
}

/// One box, reduced from several.
bool reduces(const Exchange& x, const Exchange::Item& item, std::span<const int> gpu_of, ReceivedTile& to) {
  if (item.pieces.size() != 1) return false;
  const Exchange::Piece& p = item.pieces[0];
  to.bytes = static_cast<std::uint64_t>(num_elements(p.extents)) * itemsize(x.dtype);
  if (to.bytes != item.dst_bytes || !in_a_row(p) || !same_place(p.dst, item.dst)) return false;
  std::vector<std::pair<int, Ref>> sources;
  for (const Exchange::Source& s : p.sources)
    sources.emplace_back(gpu_of[static_cast<std::size_t>(s.device)], s.ref);
  std::sort(sources.begin(), sources.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return add_sources(sources, to);
}

/// Whether all of a group read the same tiles, at `step` bytes times their rank.
bool agree(const std::vector<const ReceivedTile*>& group, std::uint64_t step) {
  const ReceivedTile& first = *group[0];
  for (std::size_t rank = 0; rank < group.size(); rank++) {
    const ReceivedTile& t = *group[rank];
    if (t.group != first.group || t.bytes != first.bytes) return false;
    for (std::size_t from = 0; from < t.from.size(); from++)
      if (!same_place(t.from[from], moved(first.from[from], step * rank))) return false;
  }
  return true;
}

}  // namespace

bool CollectivePattern::Rank::operator==(const Rank& o) const {
  return gpu == o.gpu && same_place(send, o.send) && same_place(receive, o.receive);
}

std::optional<CollectivePattern> collective_pattern(const Exchange& x, std::span<const int> gpu_of,
                                                    int gpus) {
  using Kind = CollectivePattern::Kind;
  const bool moves = x.reducer == Reducer::none;
  std::vector<ReceivedTile> tiles(static_cast<std::size_t>(gpus));
  if (x.items.size() != tiles.size()) return std::nullopt;
  for (const Exchange::Item& item : x.items) {
    const int gpu = gpu_of[static_cast<std::size_t>(item.device)];
    ReceivedTile& t = tiles[static_cast<std::size_t>(gpu)];
    if (!t.group.empty() || item.fill || item.dst_bytes == 0) return std::nullopt;
    t.gpu = gpu;
    t.dst = item.dst;
    if (!(moves ? gathers(x, item, gpu_of, t) : reduces(x, item, gpu_of, t))) return std::nullopt;
  }
  const ReceivedTile& one = tiles[0];
  const std::size_t ranks = one.group.size();
  const auto type = moves ? std::optional(Nccl::uint8) : nccl_type(x.dtype);
  const auto reduction = moves ? std::optional(0) : nccl_reduction(x, ranks);
  if (ranks < 2 || !type || !reduction) return std::nullopt;
  CollectivePattern found;
  found.type = *type;
  found.reduction = *reduction;
  found.bytes = static_cast<std::size_t>(one.bytes);
  found.count = found.bytes / (moves ? 1 : itemsize(x.dtype));
  std::optional<bool> whole;  // all GPUs of a group read the same
  for (const ReceivedTile& t : tiles) {
    if (t.bytes != one.bytes || t.group.size() != ranks) return std::nullopt;
    if (t.group[0] != t.gpu) continue;  // the group is already done
    std::vector<const ReceivedTile*> group;
    for (const int gpu : t.group) group.push_back(&tiles[static_cast<std::size_t>(gpu)]);
    const bool same = agree(group, 0);
    if (!same && (moves || !agree(group, t.bytes))) return std::nullopt;
    if (whole.value_or(same) != same) return std::nullopt;
    whole = same;
    auto& to = found.groups.emplace_back();
    for (std::size_t rank = 0; rank < ranks; rank++)
      to.push_back({group[rank]->gpu, t.from[rank], group[rank]->dst});
  }
  if (found.groups.size() * ranks != tiles.size()) return std::nullopt;
  found.kind = moves ? Kind::all_gather : *whole ? Kind::all_reduce : Kind::reduce_scatter;
  return found;
}

}  // namespace shardarray::cuda
