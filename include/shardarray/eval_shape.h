// eval_shape: shapes and dtypes of a function's results, without computing them.
#pragma once
#include "shardarray/detail/call.h"
#include "shardarray/detail/maps.h"
#include "shardarray/detail/placed_call.h"

namespace shardarray {

namespace core {

/// What `f` returns for arrays of these types, without values; `f` receives placeholders.
SHARDARRAY_API Arrays eval_shape(MapBody f, std::span<const Array> arguments, Where w);

}  // namespace core

namespace detail {

/// Implements eval_shape().
struct eval_shape_fn {
  template <class F, class... A> static auto call(Where w, const F& f, const A&... args) {
    if constexpr (Judged<TreeVerdict<A>..., FunctionVerdict<F, A...>>::ok()) {
      std::tuple<A...> copies{args...};
      core::Arrays given;
      each_argument_leaf(copies, [&](const Array& a, const Path&) {
        if (a.has_value()) given.push_back(a);
      });
      std::optional<result_t<F, A...>> result;
      const auto body = [&](std::span<const Array> placeholders) {
        set_argument_leaves(copies, placeholders);
        result.emplace(std::apply(f, copies));
        return slots(*result);
      };
      const core::Arrays places = core::eval_shape(body, given, w);  // also sets `result`
      set_slots(*result, places);
      return std::move(*result);
    } else return refused<F, A...>();
  }
};

}  // namespace detail

/// An array of this shape and dtype without values, for eval_shape() and explain(): it takes no memory. Reading it or computing with it
/// throws TraceError. Throws ShapeError for a negative size. Source: jax.ShapeDtypeStruct.
[[nodiscard]] SHARDARRAY_API Array shape_dtype_struct(const Shape& shape, DType dtype = float32,
                                                      Where w = Where::here());

/// `eval_shape(f, args...)`: what f(args...) would return, with arrays that have a shape and a dtype but no values
/// (shape_dtype_struct()). Nothing is computed or stored: f is traced once, so it cannot read values (TraceError). Arguments and results
/// are trees; arguments may be arrays without values:
///
///     const auto model = eval_shape([](const Array& k) { return init(k, 1'000'000); }, random::key(0));
///
/// Throws what f throws. Source: jax.eval_shape.
inline constexpr detail::PlacedFunction<detail::eval_shape_fn> eval_shape{};

}  // namespace shardarray
