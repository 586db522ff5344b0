#include "cpu/codegen/small_works.h"

#include "runtime/step_ranges.h"

namespace shardarray {
namespace {

constexpr std::int64_t most_bytes = 512, most_rows = 32;

/// Of x in place.
std::optional<UpdateSpec> small_update(const LibraryCall& call, const LibraryCall::Item& item) {
  if (call.name != "update" || !updates_in_place(item)) return std::nullopt;
  UpdateSpec s = update_spec(call, item);
  const std::int64_t bytes = s.batch * s.part_bytes, rows = bytes / s.row_bytes();
  if (bytes == 0 || s.x_bytes == 0 || bytes > most_bytes || rows > most_rows) return std::nullopt;
  if (s.reducer != Reducer::none && s.type == DType::bool_) s.type = DType::uint8;
  return s;
}

std::optional<std::pair<SmallSpec, std::vector<Ref>>> small_move(const Exchange& x,
                                                                 const Exchange::Item& item) {
  const auto size = static_cast<std::int64_t>(itemsize(x.dtype));
  if (x.reducer != Reducer::none || x.transfer >= 0) return std::nullopt;
  MoveSpec s{size, item.fill ? static_cast<std::int64_t>(item.dst_bytes) / size : 0, x.fill_bits, {}};
  std::vector<Ref> args;
  if (item.fill) args.push_back(item.dst);
  std::int64_t elements = s.filled;
  for (const Exchange::Piece& p : item.pieces) {
    elements += num_elements(p.extents);
    if (elements * size > most_bytes || p.sources.size() != 1) return std::nullopt;
    if (num_elements(p.extents) == 0 || lies_there(p)) continue;
    s.pieces.push_back({p.extents, p.src_strides, p.dst_strides});
    args.insert(args.end(), {p.dst, p.sources[0].ref});
  }
  if (elements == 0 || std::ssize(s.pieces) > most_rows) return std::nullopt;
  return {{std::move(s), std::move(args)}};
}

}  // namespace

std::optional<std::pair<SmallSpec, std::vector<Ref>>> small_work(const Work& w) {
  if (w.exchange) return small_move(*w.exchange, *w.exchange_item);
  if (!w.library) return std::nullopt;
  auto update = small_update(*w.library, *w.library_item);
  if (!update) return std::nullopt;
  return {{std::move(*update), w.library_item->in}};
}

}  // namespace shardarray
