// pmap: one element per device.
#pragma once
// In this order: compilers print the include path of a header with an error.
#include "shardarray/array.h"
#include "shardarray/tree.h"

#include "shardarray/jit.h"
#include "shardarray/vmap.h"

namespace shardarray {

/// Options of pmap(): `pmap(f, {.axis_name = "i", .in_axes = {0, none}})`.
struct PmapOptions {
  std::string axis_name = {};  ///< for collectives: psum(x, "i")
  Axes in_axes = 0;            ///< as in vmap, but not negative; none: the same value for every device
  Axes out_axes = 0;  ///< position of the mapped dimension; none: the first device's value, without it
  std::vector<int> static_args =
      {};  ///< positions of arguments that hold no arrays (they are part of the program anyway)
  std::vector<int> donate_args = {};  ///< positions that are donated, besides those moved in
  std::vector<Device> devices = {};   ///< element k runs on devices[k]; empty: the first devices
  std::optional<std::int64_t> axis_size = std::nullopt;  ///< must equal the size of the mapped axes
};

namespace detail {

template <class R, class... A>
[[gnu::noinline]] R map_over_devices(Body<R, A...> f, const PmapOptions& options, const A&... args) {
  return map_trees<R, A...>(
      f, options.in_axes, options.out_axes, "pmap",
      [&](core::MapBody body, std::span<const core::VmapArg> leaves) {
        return core::pmap(body, leaves, options.axis_name, options.axis_size, options.devices,
                          call_site.place());
      },
      [](const core::VmapResult& r, std::size_t k, std::optional<std::int64_t> axis) {
        return core::place_device_axis(r, k, axis);
      },
      args...);
}
/// What pmap compiles: the function on all elements at once.
template <class F> struct MappedOverDevices {
  F f;
  std::shared_ptr<const PmapOptions> options;
  template <class... A> using Entry = detail::Entry<F, A...>;
  template <class... A>
  requires std::invocable<const F&, A...> result_t<F, A...>
  operator()(const A&... args) const {
    return map_over_devices<result_t<F, A...>, A...>(body<A...>(f), *options, args...);
  }
};

}  // namespace detail

/// Maps `f` over an axis, one element per device; compiled and cached as by jit. Inside, mapped arguments lack the mapped dimension.
/// Results stay where they were computed: row k on device k, so another pmap over them moves nothing. Arguments on other devices are
/// transferred. With fewer elements than devices, the first devices are used. Nested maps need the product of their sizes: element (i, j)
/// runs on device i * inner + j.
///
/// The call throws ShapeError if sizes differ, nothing is mapped or an axis is negative or out of range; DeviceError for too few devices,
/// if `devices` differs in number from the elements, and for `devices` of an inner map; TreeError if axes do not fit the trees;
/// TraceError inside shard_map; and what a call of jit throws. Source: jax.pmap.
template <class F> [[nodiscard]] auto pmap(F f, PmapOptions options = {}) {
  auto cache = core::make_pmap_cache(options.static_args, options.donate_args);
  return Jitted<detail::MappedOverDevices<F>>(
      {std::move(f), std::make_shared<const PmapOptions>(std::move(options))}, std::move(cache));
}

}  // namespace shardarray
