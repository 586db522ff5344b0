// tune: finds the fastest shardings of a function's arguments.
//
//     const Tuned best = tune(step, TuneOptions{.mesh = mesh, .measured = 6}, model, x, y);
//     std::cout << best;                                   // what was tried, measured, and how far the prediction was off
//     std::tie(model, x, y) = device_put(std::tuple(model, x, y), best.shardings());
#pragma once
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shardarray/filter_shard.h"
#include "shardarray/measure.h"

namespace shardarray {

/// Options of tune().
struct TuneOptions {
  /// The mesh whose axes may shard. Default: one axis `x` of all devices.
  std::optional<Mesh> mesh = std::nullopt;
  /// The most bytes that a device may need, including arguments; 0: all that the machine has.
  std::int64_t memory_per_device = 0;
  /// How many of the best predicted choices are run; 0: none.
  int measured = 4;
  /// Seconds after which nothing new is tried; a measurement in progress is finished.
  double seconds = 20;
  /// The machine whose numbers predict times. Default: the described machine whose devices the mesh has, else this_machine().
  std::optional<Machine> machine = std::nullopt;
};

/// One choice of shardings for all arrays of the arguments.
struct SHARDARRAY_API TunedChoice {
  std::vector<NamedSharding> shardings;   ///< in the order of the arrays
  std::vector<std::string> results = {};  ///< the results' types and shardings, see Explanation::results()
  double at_least = 0;                    ///< predicted seconds with transfers overlapping steps,
  double predicted = 0;                   ///< and without overlap, by which choices are ranked
  double measured = 0;                    ///< median seconds; 0: not run
  double spread = 0;                      ///< median absolute deviation as a fraction of the median
  std::int64_t received_bytes_per_device = 0;
  std::int64_t peak_bytes_per_device = 0;
};

/// The result of tune(). Prints as report().
class SHARDARRAY_API Tuned {
 public:
  /// Measured choices, fastest first, then the others by prediction; at most ten, or as many as were measured.
  [[nodiscard]] const std::vector<TunedChoice>& choices() const& { return choices_; }
  [[nodiscard]] std::vector<TunedChoice> choices() && { return std::move(choices_); }
  /// The first choice, by the arrays' paths in `std::tuple(args...)` as given by tree_paths() (`[0].layers[1].weight`), for device_put()
  /// and filter_shard() of that tuple.
  [[nodiscard]] std::map<std::string, Sharding> shardings() const;
  /// How much slower the best predicted choice is than the fastest measured one, as a fraction of the latter; 0 if nothing was measured.
  [[nodiscard]] double regret() const;
  /// A table of the choices, the details of the first one, and the regret.
  [[nodiscard]] std::string report() const;
  /// C++ code that builds a map of the first choice for device_put(); its mesh consists of the first devices.
  [[nodiscard]] std::string code() const;
  /// The number of choices that were planned.
  [[nodiscard]] std::int64_t tried() const { return tried_; }

 private:
  friend class Tuning;
  std::optional<Mesh> mesh_;
  std::string machine_;
  std::vector<std::string> paths_, types_;
  std::vector<TunedChoice> choices_;
  double predicted_first_ = 0;  // measured seconds of the best predicted choice
  std::int64_t tried_ = 0;
  bool all_tried_ = true;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Tuned& t);

namespace core {
struct TunedLeaf {
  std::string path;
  Shape shape;
  DType dtype;
};
/// Plans the call, or runs it, with these shardings of its arrays.
using TunePlan = std::function<Explanation(const std::vector<NamedSharding>&)>;
using TuneRun = std::function<Timing(const std::vector<NamedSharding>&)>;
/// `run` is empty if an argument has no values.
SHARDARRAY_API Tuned tune(std::vector<TunedLeaf> leaves, const TunePlan& plan, const TuneRun& run,
                          const TuneOptions& options, Where w);
/// Whether the array has values to compute with.
SHARDARRAY_API bool has_values(const Array& a);
/// An array of the same type with this sharding.
SHARDARRAY_API Array elsewhere(const Array& a, const Sharding& s, Where w);
}  // namespace core

namespace detail {
struct tune_fn {
  template <class F, class... A>
  static Tuned call(Where w, const F& f, const TuneOptions& options, const A&... args) {
    if constexpr (CallCheck<F, A...>::ok()) {
      const auto jitted = as_jitted(f);
      const std::tuple<A...> given{args...};
      std::vector<core::TunedLeaf> leaves;
      std::vector<Array> arrays;
      each_leaf(given, [&](const Array& a, const Path& p) {
        if (!a.has_value()) return;
        leaves.push_back({p.text(), a.shape(), a.dtype()});
        arrays.push_back(a);
      });
      const auto with = [&](const auto& array) {
        std::tuple<A...> copies = given;
        std::vector<Array> next;
        for (std::size_t k = 0; k < arrays.size(); k++) next.push_back(array(k));
        set_argument_leaves(copies, next);
        return copies;
      };
      const auto step = keeping(jitted);
      const core::TunePlan plan = [&](const std::vector<NamedSharding>& s) {
        const auto brief = [](const core::JitEntry& e, const core::JitCall& c) {
          return core::explain_call(e, c, true);
        };
        return std::apply([&](const auto&... a) { return with_lowered(w, jitted, brief, a...); },
                          with([&](std::size_t k) { return core::elsewhere(arrays[k], s[k], w); }));
      };
      core::TuneRun run = [&](const std::vector<NamedSharding>& s) {
        const auto placed = with([&](std::size_t k) { return device_put(arrays[k], s[k], w); });
        block_until_ready(placed, w);
        return std::apply(
            [&](const auto&... a) {
              return time_it([&] { return step(a...); }, {.runs = 15, .warmup = 3}, w);
            },
            placed);
      };
      for (const Array& a : arrays)
        if (!core::has_values(a)) run = nullptr;
      return core::tune(leaves, plan, run, options, w);
    } else {
      return {};
    }
  }
  template <class F, class... A>
  requires(sizeof...(A) == 0 ||
           !std::same_as<std::tuple_element_t<0, std::tuple<A..., void>>, TuneOptions>) static Tuned
      call(Where w, const F& f, const A&... args) {
    if constexpr (CallCheck<F, A...>::ok()) return call(w, f, TuneOptions(), args...);
    else return {};
  }
};
}  // namespace detail

/// `tune(f, options, args...)` or `tune(f, args...)`: finds the shardings of all arrays of the arguments under which the call f(args...)
/// is predicted or, if some are run, measured to be fastest. f is a function or the result of jit. Arguments may be anywhere, or have no
/// values (shape_dtype_struct); then, or if the mesh's devices are described, nothing is run. Nothing is donated. Results stay where that
/// is cheapest: the report says where. Shardings requested in f (filter_shard, out_shardings of jit) are kept.
///
/// The search: for each mesh axis, it tries sharding all dimensions of one size in all arrays (a batch, a width); then, from the best of
/// these, it changes one array, or all arrays of one shape, as long as that helps. Dimensions are only split into equal parts. The search
/// is not exhaustive.
///
/// Choices that do not compile (policy strict) or, when run, do not fit are skipped.
///
/// Throws Error for invalid options, DeviceError for devices of several processes, OutOfMemory if no choice tried stays within the memory
/// limit, and what compiling or running the call throws.
inline constexpr detail::PlacedFunction<detail::tune_fn> tune{};

}  // namespace shardarray
