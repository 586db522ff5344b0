#include "compile/strict.h"

#include <fmt/core.h>

#include "shardarray/error.h"

namespace shardarray {

void refuse_transfer(const Transfer& t, const Type& moved, const Layout& to, const Mesh* mesh) {
  const detail::RecordedSite site(t.where);
  throw ShardingError(fmt::format(
      "{}: policy strict refuses an implicit {} over {} of {} bytes per device for an operand {}. "
      "Every transfer must be asked for. Cheapest fix: reshard(operand, {}) before.",
      t.op, name(t.kind), axis_names(t.axes, to.order(), mesh), t.bytes, to_string(moved),
      sharding_code(to, mesh)));
}

void refuse_boxes(const Transfer& t, const Type& made, const Layout& to, const Mesh* mesh) {
  const detail::RecordedSite site(t.where);
  throw ShardingError(
      fmt::format("{}: policy strict refuses an implicit {} over {} of {} bytes per device: parts of the "
                  "result {} come from "
                  "other devices. Every transfer must be asked for. Cheapest fix: say where the result lies, "
                  "filter_shard(result, {}).",
                  t.op, name(t.kind), axis_names(t.axes, to.order(), mesh), t.bytes, to_string(made),
                  sharding_code(to, mesh)));
}

}  // namespace shardarray
