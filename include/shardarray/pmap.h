// pmap: one element a device.
#pragma once
#include "shardarray/jit.h"
#include "shardarray/vmap.h"

namespace shardarray {

/// Options of pmap(): `pmap(f, {.axis_name = "i", .in_axes = {0, none}})`.
struct PmapOptions {
  std::string axis_name = {};  ///< for collectives: psum(x, "i")
  Axes in_axes = 0;   ///< as in vmap, but axes count from the front; none: the same value for every device
  Axes out_axes = 0;  ///< where the mapped dimension appears; none: the first device's value, without it
  std::vector<int> static_args =
      {};  ///< positions of arguments that hold no arrays (they are part of the program anyway)
  std::vector<int> donate_args = {};  ///< positions that are given away, besides those that are moved in
  std::vector<Device> devices = {};   ///< element k runs on devices[k]; empty: on the first ones
  std::optional<std::int64_t> axis_size = std::nullopt;  ///< must be the size of the mapped axes
};

namespace detail {

/// What pmap compiles: the function on all elements at once.
template <class F> struct MappedOverDevices {
  F f;
  std::shared_ptr<const PmapOptions> options;
  Where where;
  template <class... A>
  requires std::invocable<const F&, A...>
  auto operator()(const A&... args) const {
    const std::tuple<A...> originals{args...};
    std::optional<result_t<F, A...>> result;
    const core::VmapResult r = core::pmap(
        [&](std::span<const Array> placeholders) {
          result.emplace(std::apply(f, with_leaves(originals, placeholders)));
          return slots(*result);
        },
        mapped_leaves(originals, options->in_axes, "pmap"), options->axis_name, options->axis_size,
        options->devices, where);
    place_mapped(*result, options->out_axes, "pmap", [&](std::size_t k, std::optional<std::int64_t> axis) {
      return core::place_device_axis(r, k, axis);
    });
    return std::move(*result);
  }
};

}  // namespace detail

/// Maps `f` over an axis, one element a device; compiled, and cached as jit does. Inside, mapped arguments have no mapped
/// dimension. Results stay where they were made: row k on device k, and another pmap over them moves nothing. Arguments that
/// lie elsewhere come over. Fewer elements than devices use the first devices. Nested maps need the product of their sizes:
/// element (i, j) runs on device i * inner + j.
///
/// The call throws ShapeError when sizes differ, nothing is mapped or an axis is negative or out of range, DeviceError for too
/// few devices, for given ones that are not as many as there are elements, and for given ones of an inner map, TreeError when
/// axes do not fit the trees, TraceError inside shard_map, and what a call of jit throws. Source: jax.pmap.
template <class F> auto pmap(F f, PmapOptions options = {}, Where w = Where::here()) {
  auto cache = core::make_pmap_cache(options.static_args, options.donate_args);
  return Jitted<detail::MappedOverDevices<F>>(
      {std::move(f), std::make_shared<const PmapOptions>(std::move(options)), w}, std::move(cache));
}

}  // namespace shardarray
