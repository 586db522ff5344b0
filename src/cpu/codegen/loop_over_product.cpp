#include "cpu/codegen/loop_over_product.h"

#include <algorithm>

namespace shardarray {

// The largest epilogue: it is repeated for every vector of a block.
constexpr std::size_t most_following = 16;

std::optional<LoopOverProduct> over_product(const Work& loop, const GemmSpec& g, const Ref& c,
                                            const MemoryRange& c_range) {
  const Kernel& k = *loop.loop->kernel;
  const Loop::Item& item = *loop.item;
  if (k.stages.size() != 1 || k.stages[0].inner) return std::nullopt;
  LoopOverProduct found{k.args.size(), {}};
  for (std::size_t a = 0; a < k.args.size(); a++) {
    const Ref& r = item.args[a].ref;
    if (!k.args[a].output && !k.args[a].indirect && k.args[a].type == g.type && r.base == c.base &&
        r.offset == c.offset)
      found.product = a;
  }
  if (found.product == k.args.size()) return std::nullopt;
  const Shape& strides = item.args[found.product].strides;
  struct Axis {
    std::int64_t extent, stride;
    int dim = -1;
  } axes[] = {{g.batch, g.c_batch}, {g.m, g.c_row}, {g.n, g.c_col}};
  for (std::size_t d = 0; d < item.extents.size(); d++) {
    if (item.extents[d] == 1) continue;
    const auto axis = std::find_if(std::begin(axes), std::end(axes), [&](const Axis& x) {
      return x.dim < 0 && x.extent == item.extents[d] && x.stride == strides[d];
    });
    if (axis == std::end(axes)) return std::nullopt;
    axis->dim = static_cast<int>(d);
  }
  for (const Axis& x : axes)
    if (x.extent > 1 && x.dim < 0) return std::nullopt;
  for (std::size_t a = 0; a < k.args.size(); a++) {
    // C itself may only be read and overwritten element by element.
    const LoopArg& arg = item.args[a];
    const MemoryRange range = tile_range(arg.ref, arg.first, arg.bytes);
    const bool same = arg.ref.offset == c.offset && arg.strides == strides && k.args[a].type == g.type;
    if (a != found.product && overlap(c_range, range) && !(same && k.args[a].output)) return std::nullopt;
  }
  found.dimensions = {axes[0].dim, axes[1].dim, axes[2].dim};
  return found;
}

std::optional<GemmEpilogue> epilogue_of(const Work& loop, const LoopOverProduct& found) {
  const Kernel& k = *loop.loop->kernel;
  const auto excluded = [](const Instr& in) {
    return in.code == Code::index || in.code == Code::load_at || in.code == Code::call;
  };
  if (k.code.size() > most_following || std::any_of(k.code.begin(), k.code.end(), excluded))
    return std::nullopt;
  GemmEpilogue e{loop.loop->kernel, found.product, {}, true};
  for (std::size_t a = 0; a < k.args.size(); a++) {
    const auto walk = [&](int dim) {
      return dim < 0 ? 0
                     : loop.item->args[a].strides[static_cast<std::size_t>(dim)] *
                           static_cast<std::int64_t>(itemsize(k.args[a].type));
    };
    const auto [batch, row, column] = found.dimensions;
    e.args.push_back({walk(batch), walk(row), walk(column)});
  }
  return e;
}

}  // namespace shardarray
