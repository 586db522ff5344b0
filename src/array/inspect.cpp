// Where arrays are placed: for a user function, as a picture, as a difference.
#include "shardarray/inspect.h"

#include <fmt/format.h>

#include "graph/trace_state.h"
#include "shardarray/error.h"
#include "transform/effects.h"

namespace shardarray {

namespace {

using Inspector = std::function<void(const Shape&, const Sharding&)>;

void add_inspector(const Array& x, Inspector f, Where w) {
  HostCall call;
  call.inspect = std::move(f);
  add_host_call(std::move(call), {x}, w);
}

}  // namespace

void inspect_array_sharding(const Array& x, std::function<void(const Sharding&)> f, Where w) {
  const Site site(w, "inspect_array_sharding");
  type_of(x, "inspect_array_sharding");
  if (!f) throw Error("inspect_array_sharding: the function is empty. Give one that can be called.");
  add_inspector(
      x, [f = std::move(f)](const Shape&, const Sharding& s) { f(s); }, w);
}

void visualize_array_sharding(const Array& x, const VisualizeOptions& options, Where w) {
  const Site site(w, "visualize_array_sharding");
  type_of(x, "visualize_array_sharding");
  add_inspector(
      x, [options, w](const Shape& shape, const Sharding& s) { visualize_sharding(shape, s, options, w); },
      w);
}

void visualize_diff(const Array& from, const Array& to, Where w) {
  const Site site(w, "visualize_diff");
  if (from.shape() != to.shape())
    throw ShapeError(fmt::format(
        "visualize_diff: {} and {} differ in shape. Two placements of one shape are compared. Give arrays of "
        "the same shape.",
        from.type_string(), to.type_string()));
  visualize_diff(from.shape(), from.sharding(), to.sharding(), to.dtype());
}

void visualize_diff(const Array& from, const Sharding& to, Where w) {
  const Site site(w, "visualize_diff");
  visualize_diff(from.shape(), from.sharding(), to, from.dtype());
}

}  // namespace shardarray
