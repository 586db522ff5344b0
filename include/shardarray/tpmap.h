// tpmap: pmap for functions of unsplit values. It splits and replicates the arguments by their kinds and may join the results, so that
// the mapped function takes and returns what the function itself would. Also utilities for pmap: splitting trees by device, and checking
// that replicas agree.
#pragma once
#include "shardarray/pmap.h"

namespace shardarray {

/// What tpmap does with an argument, leaf by leaf; D is the number of devices.
enum class ArgType : std::uint8_t {
  broadcast,  ///< every device gets all of it
  shard,      ///< the leading dimension is split: of (N, ...) each device gets (N / D, ...)
  rng,        ///< a key: device i gets row i of random::split(key, D)
  thru,       ///< already has a leading dimension of size D: device i gets row i
  fixed,      ///< holds no arrays: part of the program
};
using enum ArgType;  // broadcast, shard, ... are names of the namespace

namespace detail {

template <class G> auto signature_of(int) -> decltype(std::function{std::declval<G>()});
template <class G> int signature_of(...);
template <class> struct SoleParameter { using type = Array; };  // of a generic function
template <class R, class A> struct SoleParameter<std::function<R(A)>> {
  using type = std::remove_cvref_t<A>;
};

[[noreturn]] SHARDARRAY_API void throw_wrap_return();

}  // namespace detail

/// The option wrap_return: a function of the whole result, or of an Array (also if generic), applied to every leaf. It must return the
/// type that it takes.
class WrapReturn {
 public:
  WrapReturn() = default;
  template <class G>
  requires(!std::same_as<G, WrapReturn>) WrapReturn(G g) {
    using T = typename detail::SoleParameter<decltype(detail::signature_of<G>(0))>::type;
    constexpr bool fits = std::is_invocable_r_v<T, const G&, const T&>;
    static_assert(fits,
                  "tpmap: wrap_return must return the type that it takes, the result's or Array; for another "
                  "type, call the function on what the mapped function returns");
    if constexpr (fits) {
      type_ = &detail::type_tag<T>;
      apply_ = [g = std::move(g)](void* x) { *static_cast<T*>(x) = g(*static_cast<const T*>(x)); };
    }
  }
  /// Throws TreeError if the function takes neither R nor Array.
  template <class R> void operator()(R& result) const {
    if (!apply_) return;
    if (type_ == &detail::type_tag<R>) return apply_(&result);
    if (type_ != &detail::type_tag<Array>) detail::throw_wrap_return();
    detail::each_leaf(result, [&](Array& a, const Path&) {
      if (a.has_value()) apply_(&a);
    });
  }

 private:
  const char* type_ = nullptr;  ///< the tag of the type that the function takes
  std::function<void(void*)> apply_;
};

/// Options of tpmap().
struct TpmapOptions {
  std::string axis_name = {};         ///< for collectives: psum(x, "i")
  std::vector<ArgType> args = {};     ///< one per argument
  WrapReturn wrap_return = {};        ///< default: results keep the leading device axis
  std::vector<Device> devices = {};   ///< empty: all devices of this process, determined at the call
  Axes out_axes = 0;                  ///< position of the device axis in the results, as in pmap
  std::vector<int> donate_args = {};  ///< positions that are donated, besides those moved in
};

namespace core {

/// The number of devices of a call with `given` arguments. Throws TreeError unless that many are declared.
[[nodiscard]] SHARDARRAY_API std::int64_t tpmap_size(std::size_t given, std::span<const ArgType> declared,
                                                     std::span<const Device> devices);
/// A leaf as pmap takes it. Throws ShapeError, TreeError.
[[nodiscard]] SHARDARRAY_API Array tpmap_argument(const Array& a, ArgType type, std::int64_t devices,
                                                  const Path& path);
/// [devices]: a mapped dummy argument.
[[nodiscard]] SHARDARRAY_API Array tpmap_rows(std::int64_t devices);
[[noreturn]] SHARDARRAY_API void throw_tpmap_number(std::size_t position, ArgType type);
[[nodiscard]] SHARDARRAY_API Array split_leading(const Array& a, std::int64_t n, const Path& path,
                                                 const char* function);
[[nodiscard]] SHARDARRAY_API Array flatten_leading(const Array& a, std::int64_t axes, const Path& path,
                                                   const char* function);
/// Item i: row i of every leaf.
[[nodiscard]] SHARDARRAY_API std::vector<Arrays> unshard(std::span<const Array> leaves,
                                                         std::span<const std::string> paths, Where w);

}  // namespace core

namespace detail {

/// What tpmap compiles: pmap between the conversions of arguments and results.
template <class F> struct MappedWhole {
  F f;
  TpmapOptions options;
  template <class... A>
  requires std::invocable<const F&, A...>
  auto operator()(const A&... args) const {
    const Site site(call_site.place());
    const std::int64_t n = core::tpmap_size(sizeof...(A), options.args, options.devices);
    std::tuple<A...> rows{args...};
    return std::apply([&](auto&... a) { return run(n, a...); }, rows);
  }

 private:
  template <class... A> auto run(std::int64_t n, A&... args) const {
    std::uint32_t i = 0;
    [[maybe_unused]] auto argument = [&]<class T>(T& a) {
      const ArgType type = options.args[i];
      if (std::is_arithmetic_v<T> && type != broadcast && type != fixed) core::throw_tpmap_number(i, type);
      each_leaf(
          a,
          [&](Array& x, const Path& p) {
            if (x.has_value()) x = core::tpmap_argument(x, type, n, p);
          },
          Path{nullptr, {}, i++, sizeof...(A)});
    };
    (argument(args), ...);
    std::size_t k = 0;
    [[maybe_unused]] auto axis = [&](const auto&) -> Axes {
      const ArgType type = options.args[k++];
      return type == broadcast || type == fixed ? Axes(none) : Axes(0);
    };
    // pmap needs a mapped argument: the last one, which is ignored.
    auto without_last = [this](const A&... a, const Array&) { return f(a...); };
    const MappedOverDevices<decltype(without_last)> mapped{
        without_last, std::make_shared<const PmapOptions>(PmapOptions{
                          .axis_name = options.axis_name,
                          .in_axes = Axes(std::initializer_list<Axes>{axis(args)..., Axes(0)}),
                          .out_axes = options.out_axes,
                          .devices = options.devices.empty() ? local_devices() : options.devices})};
    auto result = mapped(args..., core::tpmap_rows(n));
    options.wrap_return(result);
    return result;
  }
};

}  // namespace detail

/// pmap with unsplit arguments and results:
///
///     auto f = tpmap(noisy_matmul, {.axis_name = "i", .args = {broadcast, shard, rng}, .wrap_return = join_batches});
///     Array y = f(matrix, xs, key);   // xs: (16, 8), inside (2, 8); y: (16, 5)
///
/// `.args` says for each argument how it is distributed; inside, `f` sees its part without a device axis. Arguments are trees. Results
/// have a leading device axis of size D, row i from device i, which `.wrap_return` may reshape. Everything is one program. No device is
/// touched before the first call.
///
/// The call throws TreeError if the number of arguments differs from `.args` or a fixed one holds arrays; ShapeError if rows cannot be
/// divided among the devices, their number is not that of the devices (thru), or a leaf or number to be split has no leading dimension;
/// what random::split throws for an invalid key, and what pmap throws.
template <class F> [[nodiscard]] auto tpmap(F f, TpmapOptions options) {
  JitOptions o{.name = "tpmap", .donate_args = options.donate_args, .relocate = true};
  return jit(detail::MappedWhole<F>{std::move(f), std::move(options)}, std::move(o));
}

/// Reshapes every leaf from (n * k, ...) to (n, k, ...). Throws ShapeError if the rows cannot be divided, for n < 1 and for a scalar.
template <Tree T> [[nodiscard]] T split_leading_axis(std::int64_t n, T tree, Where w = Where::here()) {
  const Site site(w);
  detail::each_leaf(tree, [&](Array& a, const Path& p) {
    if (a.has_value()) a = core::split_leading(a, n, p, "split_leading_axis");
  });
  return tree;
}
/// Merges the first `axes` dimensions of every leaf: (n, k, ...) gives (n * k, ...). Throws ShapeError for a leaf of lower rank or axes <
/// 1.
template <Tree T>
[[nodiscard]] T flatten_leading_axes(T tree, std::int64_t axes = 2, Where w = Where::here()) {
  const Site site(w);
  detail::each_leaf(tree, [&](Array& a, const Path& p) {
    if (a.has_value()) a = core::flatten_leading(a, axes, p, "flatten_leading_axes");
  });
  return tree;
}
/// A wrap_return: concatenates the devices' batches, (D, N / D, ...) to (N, ...). Throws ShapeError for a rank below 2.
inline constexpr struct join_batches_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const {
    const Site site(w);
    return core::flatten_leading(x, 2, {}, "join_batches");
  }
} join_batches{};

/// Splits a tree with a leading device axis into rows: as many trees as the first leaf has rows, item i with row i of every leaf (of a
/// shorter leaf, the last row). Rows are uncommitted arrays on the device that holds them: device i for results of pmap, without a copy.
/// Rows of leaves spread over several processes are committed.
///
/// Throws TreeError for a tree without arrays, ShapeError for a leaf without a leading axis, or without rows if the first leaf has some.
template <Tree T> [[nodiscard]] std::vector<T> unshard(const T& tree, Where w = Where::here()) {
  const Site site(w);
  std::vector<T> r;
  for (const core::Arrays& leaves : core::unshard(tree_leaves(tree), tree_paths(tree), w))
    r.push_back(with_leaves(tree, leaves));
  return r;
}
/// Options of assert_replica_integrity().
struct IntegrityOptions {
  double rtol = 1e-5, atol = 1e-5;    ///< relative and absolute tolerance; both 0: bitwise equality
  bool is_device_replicated = false;  ///< leaves have a leading device axis whose rows are the replicas
};
namespace core {
SHARDARRAY_API void assert_replica_integrity(std::span<const Array> leaves,
                                             std::span<const std::string> paths, const IntegrityOptions& o);
}  // namespace core
/// Checks that replicas agree: compares, for every shard of every leaf, the memory of all devices that hold it. Floating x agree if
/// |x - x0| <= atol + rtol |x0|, x0 being the first holder's; NaN agrees with NaN; all other dtypes must be equal. Slow: everything is
/// read. A collective call for several processes: replicas of all processes are compared, in each of them, which takes memory for
/// everything that all devices hold of a leaf. Arrays on a process' own devices only are not replicas of those of other processes.
///
/// Throws ShardingError with leaf, replica, device, index and both values on disagreement, in all processes; ShapeError for a leaf
/// without the device axis announced by the options.
template <Tree T>
void assert_replica_integrity(const T& tree, const IntegrityOptions& o = {}, Where w = Where::here()) {
  const Site site(w, "assert_replica_integrity");
  core::assert_replica_integrity(tree_leaves(tree), tree_paths(tree), o);
}

}  // namespace shardarray
