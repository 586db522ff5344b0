// shard_map: runs a function on the local shards.
#pragma once
#include "shardarray/sharding.h"
#include "shardarray/vmap.h"

namespace shardarray {

/// Specs for trees: one for everything, or a list with an entry for each argument, element or field, nested as needed; entries for static
/// values may be omitted as in Axes.
class SHARDARRAY_API Specs {
 public:
  Specs(PartitionSpec spec) : spec_(std::move(spec)) {}
  Specs(std::initializer_list<Specs> entries) : is_list_(true), entries_(entries) {}
  /// The entry for an array. Throws TreeError if the lists do not fit the tree; `option` is the name used in the message.
  [[nodiscard]] const PartitionSpec& at(const Path& path, const char* option) const;

 private:
  bool is_list_ = false;
  PartitionSpec spec_;
  std::vector<Specs> entries_;
};

/// Options of shard_map(): `shard_map(f, {.mesh = mesh, .in_specs = P("x"), .out_specs = P("x")})`.
struct ShardMapOptions {
  Mesh mesh;        ///< its devices run the program
  Specs in_specs;   ///< which mesh axes shard which dimension of the arguments
  Specs out_specs;  ///< how the shards of the results form global arrays
  std::vector<std::string> axis_names =
      {};  ///< the mesh axes that the function is manual over; empty: all of them
};

namespace detail {

/// The result of shard_map().
template <class F> struct MappedOverPieces : PlacedCall<MappedOverPieces<F>> {
  MappedOverPieces(F function, ShardMapOptions options) : f(std::move(function)), o(std::move(options)) {}
  template <class... A> using Verdict = AllGood<TreeVerdict<A>..., FunctionVerdict<F, A...>>;
  template <class... A> using RefusedCall = refused_t<F, A...>;
  template <class... A> using Entry = detail::Entry<F, A...>;
  template <class... A> auto call(Where w, const A&... args) const {
    if constexpr (Judged<Verdict<A...>>::ok()) {
      const std::tuple<A...> originals{args...};
      std::vector<core::ShardMapArg> leaves;
      each_argument_leaf(originals, [&](const Array& a, const Path& p) {
        if (a.has_value()) leaves.push_back({a, o.in_specs.at(p, "in_specs"), p.text()});
      });
      std::optional<result_t<F, A...>> result;
      std::vector<PartitionSpec> out_specs;
      auto body = [&](std::span<const Array> placeholders) {
        result.emplace(std::apply(f, with_leaves(originals, placeholders)));
        each_leaf(*result,
                  [&](Array&, const Path& p) { out_specs.push_back(o.out_specs.at(p, "out_specs")); });
        return slots(*result);
      };
      const core::Arrays out = core::shard_map(
          body, leaves, o.mesh, o.axis_names, [&](std::size_t k) { return out_specs[k]; }, w);
      set_slots(*result, out);
      return std::move(*result);
    } else return refused<F, A...>();
  }
  F f;
  ShardMapOptions o;
};

}  // namespace detail

/// Maps `f` over the shards of its arguments: with in_specs P("x") on 8 devices it sees f32[2,4] of an f32[16,4]. Collectives take the
/// names of mesh axes. Values are the same along axes that their spec does not name; a result that differs along an axis must name it.
/// Over mesh axes that are not in axis_names, the program is partitioned automatically, as outside.
///
/// Arguments and results are trees of the same types as for f; statics are the same everywhere. Values cannot be read inside.
///
/// The call throws ShardingError for a spec that is longer than the rank, names an axis outside the map or repeats one, and for a result
/// that differs along an unnamed axis; ShapeError for sizes not divisible by the axes (it says what to pad to); TreeError for specs that
/// do not fit the trees. Source: jax.experimental.shard_map.
template <class F> [[nodiscard]] auto shard_map(F f, ShardMapOptions options) {
  return detail::MappedOverPieces<F>(std::move(f), std::move(options));
}

}  // namespace shardarray
