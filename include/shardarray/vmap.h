// vmap: a function of one example becomes a function of many.
#pragma once
#include "shardarray/detail/call.h"
#include "shardarray/detail/maps.h"

namespace shardarray {

/// Which dimension is mapped: one for everything (`0`, `-1`), `none`, or a list with an entry for each argument, element or
/// field, as deep as needed: `{0, none, {0, 1}}`.
class SHARDARRAY_API Axes {
 public:
  template <std::integral I> Axes(I axis) : axis_(to_int64(axis)) {}
  Axes(none_t) {}
  Axes(std::initializer_list<Axes> entries) : is_list_(true), entries_(entries) {}
  /// The entry for an array. Throws TreeError where the lists do not fit the tree; `option` is the name to say then.
  std::optional<std::int64_t> at(const Path& path, const char* function, const char* option) const;

 private:
  bool is_list_ = false;
  std::optional<std::int64_t> axis_;
  std::vector<Axes> entries_;
};

struct VmapOptions {
  Axes in_axes = 0;
  Axes out_axes =
      0;  ///< where the mapped dimension appears in the results; none: a result that does not depend on it
  std::string axis_name = {};  ///< for collectives: psum(x, "i")
  std::optional<std::int64_t> axis_size = std::nullopt;
};

/// Maps `f`, which may be a module. Arguments and results are trees; statics are the same for every element.
/// Throws ShapeError when mapped sizes differ or an axis is out of range, TreeError when axes do not fit the trees.
template <class F> auto vmap(F f, VmapOptions options = {}, Where w = Where::here()) {
  return [f = std::move(f), o = std::move(options), w]<class... A>(const A&... args) {
    if constexpr ((detail::check_tree<A>() && ...) && detail::check_function<F, A...>()) {
      const std::tuple<A...> originals{args...};
      std::vector<core::VmapArg> leaves;
      detail::each_argument_leaf(originals, [&](const Array& a, const Path& p) {
        if (a.has_value()) leaves.push_back({a, o.in_axes.at(p, "vmap", "in_axes"), p.text()});
      });
      std::optional<detail::result_t<F, A...>> result;
      auto body = [&](std::span<const Array> placeholders) {
        std::tuple<A...> copy = originals;
        detail::set_argument_leaves(copy, placeholders);
        result.emplace(std::apply(f, std::move(copy)));
        return detail::slots(*result);
      };
      const core::VmapResult r = core::vmap(body, leaves, o.axis_name, o.axis_size, "vmap", w);
      std::size_t k = 0;
      detail::each_leaf(*result, [&](Array& a, const Path& p) {
        if (a.has_value())
          a = core::place_axis(r, k, o.out_axes.at(p, "vmap", "out_axes"), o.axis_name, "vmap");
        k++;
      });
      return std::move(*result);
    }
  };
}

}  // namespace shardarray
