#include "compile/strict.h"

#include <fmt/core.h>

#include "shardarray/error.h"

namespace shardarray {

std::string spec_text(const Layout& l, const Mesh* mesh) {
  std::string text;
  for (int d = 0; d < l.rank(); d++)
    text += fmt::format("{}{}", d ? ", " : "",
                        axis_names(l.dims()[static_cast<std::size_t>(d)], l.order(), mesh));
  return text;
}

void refuse_transfer(const Transfer& t, const Type& moved, const Layout& to, const Mesh* mesh) {
  throw ShardingError(
      fmt::format("{} ({}:{}): policy strict refuses an implicit {} over {} of {} bytes per device for an "
                  "operand {}. Every transfer must be asked for. Cheapest fix: reshard it to [{}] before.",
                  t.op, t.where.file, t.where.line, name(t.kind), axis_names(t.axes, to.order(), mesh),
                  t.bytes, to_string(moved), spec_text(to, mesh)));
}

void refuse_boxes(const Transfer& t, const Type& made, const Layout& to, const Mesh* mesh) {
  throw ShardingError(
      fmt::format("{} ({}:{}): policy strict refuses an implicit {} over {} of {} bytes per device: parts of "
                  "the result {} come from other devices. Every transfer must be asked for. Cheapest fix: "
                  "say where the result lies, filter_shard(.., [{}]).",
                  t.op, t.where.file, t.where.line, name(t.kind), axis_names(t.axes, to.order(), mesh),
                  t.bytes, to_string(made), spec_text(to, mesh)));
}

}  // namespace shardarray
