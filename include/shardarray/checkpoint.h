// checkpoint: functions whose derivative recomputes intermediate values instead of storing them.
#pragma once
#include "shardarray/detail/call.h"
#include "shardarray/detail/custom_call.h"
#include "shardarray/detail/placed_call.h"

namespace shardarray {

namespace detail {

/// The present arrays of the arguments.
template <class... A> core::Arrays present_leaves(const std::tuple<A...>& args) {
  core::Arrays r;
  each_argument_leaf(args, [&](const Array& a, const Path&) {
    if (a.has_value()) r.push_back(a);
  });
  return r;
}

/// The result of checkpoint().
template <class F> class Checkpoint : public PlacedCall<Checkpoint<F>> {
 public:
  explicit Checkpoint(F f) : f_(std::move(f)) {}
  template <class... A> using Verdict = AllGood<TreeVerdict<A>..., FunctionVerdict<F, const A&...>>;
  template <class... A> using RefusedCall = refused_t<F, A...>;
  template <class... A> using Entry = detail::Entry<F, const A&...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok()) {
      using R = result_t<F, const A&...>;
      if (!core::may_be_derived()) {
        const UserSite user(w);
        return R(f_(args...));
      }
      std::tuple<A...> copies{args...};
      const core::Arrays given = present_leaves(copies);
      std::optional<R> result;
      const auto body = [&](std::span<const Array> placeholders) {
        set_argument_leaves(copies, placeholders);
        result.emplace(std::apply(f_, std::as_const(copies)));
        return slots(*result);
      };
      const core::Arrays places = core::checkpoint(body, given, w);  // also sets `result`
      set_slots(*result, places);
      return std::move(*result);
    } else return refused<F, A...>();
  }

 private:
  F f_;
};

}  // namespace detail

/// `checkpoint(f)(args...)` is f(args...), but derivatives store only the arguments (and what f captures) and recompute f in the backward
/// pass. Saves memory for one more evaluation of f; same values, same derivatives. Arguments and results are trees:
///
///     for (const Layer& layer : model.layers) x = checkpoint(block)(layer, x);
///
/// May be used in jit, vmap, scan and other checkpoints, and differentiated repeatedly. Throws TraceError if f prints or calls the host,
/// or reads values while traced or differentiated, and what f throws. Source: jax.checkpoint, without policies.
template <class F> [[nodiscard]] auto checkpoint(F f) { return detail::Checkpoint<F>(std::move(f)); }

}  // namespace shardarray
