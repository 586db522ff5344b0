// Sizes, positions and numbers out of the range of arrays, dimensions and dtypes: every public function gives the right shape or
// an Error in its own name.
#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "erased.h"
#include "golden.h"
#include "process_helpers.h"

namespace sizes_test {

namespace sa = shardarray;
using sa::Array;
using sa::Shape;

namespace {

using Int = std::int64_t;
__extension__ using Wide = __int128;
constexpr Int lowest = std::numeric_limits<Int>::min(), highest = std::numeric_limits<Int>::max();
// clang-format off
constexpr Int hostile[] = {lowest, -(Int{1} << 31), -2, -1, 0, 1, 3, Int{1} << 31, (Int{1} << 32) + 1, Int{1} << 53,
                           Int{1} << 60, Int{1} << 61, Int{1} << 62, highest - 1, highest};
// clang-format on

using sa::testing::thrown;

/// An array of this size that is never computed.
Array large(Int n, sa::DType t = sa::int8) { return sa::zeros({n}, t); }
Array key() { return sa::random::key(0); }

/// A call with one hostile number. `shape`: what the result has, in numbers that do not overflow.
struct Row {
  std::string function;
  shardarray::testing::Erased<Array(Int)> call;
  shardarray::testing::Erased<std::vector<Wide>(Wide)> shape;
  Int item = 4;             ///< bytes of an element of the widest array on the way
  bool may_refuse = false;  ///< it may refuse more than sizes: positions that int32 does not hold, empty axes
};

const std::vector<Row>& creators() {
  static const std::vector<Row> rows = {
      {"zeros", [](Int n) { return sa::zeros({n}); }, [](Wide n) { return std::vector{n}; }},
      {"zeros",
       [](Int n) {
         return sa::zeros({n, 3}, sa::float64);
       },
       [](Wide n) {
         return std::vector{n, Wide{3}};
       },
       8},
      {"zeros",
       [](Int n) {
         return sa::zeros({n, n}, sa::int8);
       },
       [](Wide n) {
         return std::vector{n, n};
       },
       1},
      {"ones",
       [](Int n) {
         return sa::ones({2, n});
       },
       [](Wide n) {
         return std::vector{Wide{2}, n};
       }},
      {"full", [](Int n) { return sa::full({n}, 7, sa::int64); }, [](Wide n) { return std::vector{n}; }, 8},
      {"eye", [](Int n) { return sa::eye(n); },
       [](Wide n) {
         return std::vector{n, n};
       },
       8},
      {"eye", [](Int n) { return sa::eye(3, n); },
       [](Wide n) {
         return std::vector{Wide{3}, n};
       },
       8},
      {"eye", [](Int k) { return sa::eye(3, 4, k); },
       [](Wide) {
         return std::vector<Wide>{3, 4};
       }},
      {"arange", [](Int n) { return sa::arange(n, sa::int64); },
       [](Wide n) { return std::vector{std::max<Wide>(n, 0)}; }, 8},
      {"arange", [](Int n) { return sa::arange(n); },
       [](Wide n) { return std::vector{std::max<Wide>(n, 0)}; }, 4, true},
      {"arange", [](Int n) { return sa::arange(n, highest, sa::int64); },
       [](Wide n) { return std::vector{highest - n}; }, 8},
      {"arange", [](Int n) { return sa::arange(lowest, n, sa::int64); },
       [](Wide n) { return std::vector{n - lowest}; }, 8},
      {"arange", [](Int n) { return sa::arange(n, n, sa::int64); }, [](Wide) { return std::vector<Wide>{0}; },
       8},
      {"arange", [](Int n) { return sa::arange(lowest, highest, n ? n : 1, sa::int64); },
       [](Wide n) {
         const Wide span = Wide{highest} - lowest, step = n == 0 ? 1 : n;
         return std::vector{step < 0 ? Wide{0} : (span - 1) / step + 1};
       },
       8},
      {"arange", [](Int n) { return sa::arange(highest, lowest, n ? n : 1, sa::int64); },
       [](Wide n) {
         const Wide span = Wide{highest} - lowest;
         return std::vector{n >= 0 ? Wide{0} : (span - 1) / -n + 1};
       },
       8},
      {"linspace", [](Int n) { return sa::linspace(0, 1, n); }, [](Wide n) { return std::vector{n}; }},
      {"one_hot",
       [](Int n) {
         return sa::one_hot(sa::array({1, 2}), n);
       },
       [](Wide n) {
         return std::vector{Wide{2}, n};
       },
       8},
      {"broadcast_to", [](Int n) { return sa::broadcast_to(1, {n}); }, [](Wide n) { return std::vector{n}; }},
      {"broadcast_to",
       [](Int n) {
         return sa::broadcast_to(sa::ones({3}), {n, 3});
       },
       [](Wide n) {
         return std::vector{n, Wide{3}};
       }},
      {"pad", [](Int n) { return sa::pad(sa::ones({4}), n); },
       [](Wide n) { return std::vector{n < 0 ? Wide{-1} : 4 + 2 * n}; }},
      {"pad",
       [](Int n) {
         return sa::pad(sa::ones({4}), {{0, n}});
       },
       [](Wide n) { return std::vector{n < 0 ? Wide{-1} : 4 + n}; }},
      {"pad",
       [](Int n) {
         return sa::pad(sa::ones({4}), {{n, highest}});
       },
       [](Wide n) { return std::vector{n < 0 ? Wide{-1} : 4 + n + highest}; }},
      {"random::split", [](Int n) { return sa::random::split(key(), n); },
       [](Wide n) {
         return std::vector{n, Wide{2}};
       },
       8},
      {"random::split",
       [](Int n) {
         return sa::random::split(key(), Shape{n, n});
       },
       [](Wide n) {
         return std::vector{n, n, Wide{2}};
       },
       8},
      {"random::bits", [](Int n) { return sa::random::bits(key(), {n}, sa::uint8); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::uniform", [](Int n) { return sa::random::uniform(key(), {n}); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::uniform",
       [](Int n) {
         return sa::random::uniform(key(), {-3, n});
       },
       [](Wide n) {
         return std::vector{Wide{-3}, n};
       },
       8},
      {"random::normal", [](Int n) { return sa::random::normal(key(), {n}, sa::float64); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::randint", [](Int n) { return sa::random::randint(key(), {n}, 0, 9); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::randint", [](Int n) { return sa::random::randint(key(), {2}, n, highest); },
       [](Wide) { return std::vector<Wide>{2}; }},
      {"random::randint", [](Int n) { return sa::random::randint(key(), {2}, lowest, n); },
       [](Wide) { return std::vector<Wide>{2}; }},
      {"random::bernoulli", [](Int n) { return sa::random::bernoulli(key(), 0.5, {n}); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::exponential", [](Int n) { return sa::random::exponential(key(), {n}); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::gumbel", [](Int n) { return sa::random::gumbel(key(), {n}); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::truncated_normal", [](Int n) { return sa::random::truncated_normal(key(), -1, 1, {n}); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::permutation", [](Int n) { return sa::random::permutation(key(), n); },
       [](Wide n) { return std::vector{n}; }, 8, true},
      {"random::choice", [](Int n) { return sa::random::choice(key(), 3, {n}); },
       [](Wide n) { return std::vector{n}; }, 8},
      {"random::choice", [](Int n) { return sa::random::choice(key(), n, {2}, {.replace = false}); },
       [](Wide n) { return std::vector{n < 2 ? Wide{-1} : Wide{2}}; }, 4, true},
      {"random::categorical", [](Int n) { return sa::random::categorical(key(), sa::ones({3}), 0, {n}); },
       [](Wide n) { return std::vector{n}; }, 24},
      {"nn::Linear", [](Int n) { return sa::nn::Linear::init(n, 3, key()).weight; },
       [](Wide n) {
         return std::vector{Wide{3}, n};
       },
       8},
      {"nn::Linear", [](Int n) { return sa::nn::Linear::init(3, n, key()).weight; },
       [](Wide n) {
         return std::vector{n, Wide{3}};
       },
       8},
      {"vmap",
       [](Int n) {
         return sa::vmap([](const Array& x) { return x * 2; },
                         {.in_axes = sa::none, .axis_size = n})(sa::ones({3}));
       },
       [](Wide n) {
         return std::vector{n, Wide{3}};
       }},
      {"vmap",
       [](Int n) {
         const auto with_position = [](const Array& x) { return x * sa::axis_index("i"); };
         return sa::vmap(with_position,
                         {.in_axes = sa::none, .axis_name = "i", .axis_size = n})(sa::ones({3}));
       },
       [](Wide n) {
         return std::vector{n, Wide{3}};
       },
       4, true},
  };
  return rows;
}

std::string text_of(const std::vector<Wide>& shape) {
  std::string s;
  for (const Wide n : shape) s += std::to_string(static_cast<double>(n)) + " ";
  return s;
}

}  // namespace

TEST_CASE("sizes: what makes arrays gives the right shape or says in its name that there is no such array") {
  for (const Row& row : creators())
    for (const Int n : hostile) {
      const std::vector<Wide> want = row.shape(n);
      Wide bytes = row.item;
      bool exists = true;
      for (const Wide size : want) {
        exists = exists && size >= 0;
        if (bytes < (Wide{1} << 62)) bytes *= std::max<Wide>(1, size);
      }
      exists = exists && bytes < (Wide{1} << 62);
      Shape got;
      const std::string error = thrown([&] { got = row.call(n).shape(); });
      CAPTURE(row.function);
      CAPTURE(n);
      CAPTURE(error);
      CAPTURE(text_of(want));
      if (!error.empty()) {
        CHECK((!exists || row.may_refuse));
        CHECK(error.starts_with(row.function + ": "));
        continue;
      }
      CHECK(want.size() == got.size());
      for (std::size_t d = 0; d < want.size() && d < got.size(); d++) CHECK(Wide{got[d]} == want[d]);
    }
}

TEST_CASE("sizes: the older order of random numbers refuses what it cannot count") {
  const sa::random::partitionable older(false);
  for (const Row& row : creators())
    for (const Int n : hostile)
      if (row.function.starts_with("random::")) {
        const std::string error = thrown([&] { row.call(n); });
        CHECK((error.empty() || error.starts_with("random::")));
      }
}

// ---------------------------------------------------------------- positions, axes, widths
namespace {

/// A call with one hostile number whose result has a shape of its own (`want`), or which is refused.
struct Use {
  std::string function;
  shardarray::testing::Erased<Array(Int)> call;
  shardarray::testing::Erased<std::optional<Shape>(Int)> want;  ///< none: refused
};

std::optional<Shape> always(Shape s) { return s; }
bool is_axis(Int n, Int rank) { return n >= -rank && n < rank; }
/// The shape where n is an axis of an array of this rank.
auto with_axis(Int rank, Shape s) {
  return [=](Int n) { return is_axis(n, rank) ? std::optional(s) : std::nullopt; };
}
/// Elements of start:stop:step, walked in wide numbers.
Int walked(Wide size, std::optional<Wide> start, std::optional<Wide> stop, Wide step) {
  const bool up = step > 0;
  const auto bound = [&](Wide b) {
    if (b < 0) b += size;
    return std::clamp<Wide>(b, up ? 0 : -1, up ? size : size - 1);
  };
  const Wide end = stop ? bound(*stop) : up ? size : -1;
  Int count = 0;
  for (Wide at = start ? bound(*start) : up ? 0 : size - 1; up ? at < end : at > end; at += step) count++;
  return count;
}

const std::vector<Use>& users() {
  static const Array x = sa::ones({2, 3}), v = sa::arange(6), cube = sa::ones({2, 3, 4});
  static const std::vector<Use> rows = {
      {"reshape", [](Int n) { return v.reshape({n}); },
       [](Int n) { return n == -1 ? always({6}) : std::nullopt; }},
      {"reshape",
       [](Int n) {
         return v.reshape({n, -1});
       },
       [](Int n) {
         return n == 1 || n == 3 ? always({n, 6 / n}) : std::nullopt;
       }},
      {"reshape",
       [](Int n) {
         return v.reshape({n, n, n, n});
       },
       [](Int) { return std::optional<Shape>(); }},
      {"expand_dims", [](Int n) { return sa::expand_dims(v, n); },
       [](Int n) {
         return !is_axis(n, 2) ? std::nullopt : n == 0 || n == -2 ? always({1, 6}) : always({6, 1});
       }},
      {"squeeze", [](Int n) { return sa::squeeze(sa::ones({1}), n); }, with_axis(1, {})},
      {"swapaxes", [](Int n) { return sa::swapaxes(v, n, 0); }, with_axis(1, {6})},
      {"moveaxis", [](Int n) { return sa::moveaxis(v, n, 0); }, with_axis(1, {6})},
      {"moveaxis", [](Int n) { return sa::moveaxis(v, 0, n); }, with_axis(1, {6})},
      {"transpose", [](Int n) { return sa::transpose(v, {n}); }, with_axis(1, {6})},
      {"flip", [](Int n) { return sa::flip(x, n); }, with_axis(2, {2, 3})},
      {"roll", [](Int n) { return sa::roll(v, n); }, [](Int) { return always({6}); }},
      {"roll", [](Int n) { return sa::roll(v, 1, n); }, with_axis(1, {6})},
      {"tril", [](Int n) { return sa::tril(x, n); },
       [](Int) {
         return always({2, 3});
       }},
      {"triu", [](Int n) { return sa::triu(x, n); },
       [](Int) {
         return always({2, 3});
       }},
      {"concatenate",
       [](Int n) {
         return sa::concatenate({v, v}, n);
       },
       with_axis(1, {12})},
      {"stack",
       [](Int n) {
         return sa::stack({sa::ones({2}), sa::ones({2})}, n);
       },
       with_axis(2, {2, 2})},
      {"split", [](Int n) { return sa::split(v, n)[0]; },
       [](Int n) { return n == 1 || n == 3 ? always({6 / n}) : std::nullopt; }},
      {"split", [](Int n) { return sa::split(sa::zeros({0}), n)[0]; },
       [](Int n) { return n >= 1 && n < 1000 ? always({0}) : std::nullopt; }},
      {"split", [](Int n) { return sa::split(v, Shape{n})[0]; },
       [](Int n) { return n >= 0 && n <= 6 ? always({n}) : std::nullopt; }},
      {"split", [](Int n) { return sa::split(v, 2, n)[0]; }, with_axis(1, {3})},
      {"take", [](Int n) { return sa::take(v, sa::array({1}), n); }, with_axis(1, {1})},
      {"take", [](Int n) { return sa::take(v, n); }, [](Int) { return always({}); }},
      {"index", [](Int n) { return v[n]; }, [](Int n) { return is_axis(n, 6) ? always({}) : std::nullopt; }},
      {"index", [](Int n) { return v[sa::slice(n, sa::none)]; },
       [](Int n) { return always({walked(6, n, {}, 1)}); }},
      {"index", [](Int n) { return v[sa::slice(sa::none, n)]; },
       [](Int n) { return always({walked(6, {}, n, 1)}); }},
      {"index", [](Int n) { return v[sa::slice(sa::none, sa::none, n)]; },
       [](Int n) { return n ? always({walked(6, {}, {}, n)}) : std::nullopt; }},
      {"index", [](Int n) { return v[sa::slice(4, 1, n)]; },
       [](Int n) { return n ? always({walked(6, 4, 1, n)}) : std::nullopt; }},
      {"at.set", [](Int n) { return v.at({n}).set(1); },
       [](Int n) { return is_axis(n, 6) ? always({6}) : std::nullopt; }},
      {"index", [](Int n) { return v.at({sa::slice(sa::none, sa::none, n)}).add(1); },
       [](Int n) { return n ? always({6}) : std::nullopt; }},
      {"sum", [](Int n) { return sa::sum(v, n); }, with_axis(1, {})},
      {"var", [](Int n) { return sa::var(v, {}, n); }, [](Int) { return always({}); }},
      {"max", [](Int n) { return sa::max(v, n); }, with_axis(1, {})},
      {"argmax", [](Int n) { return sa::argmax(v, n); }, with_axis(1, {})},
      {"softmax", [](Int n) { return sa::softmax(v, n); }, with_axis(1, {6})},
      {"sort", [](Int n) { return sa::sort(v, n); }, with_axis(1, {6})},
      {"cumsum", [](Int n) { return sa::cumsum(v, n); }, with_axis(1, {6})},
      {"cummax", [](Int n) { return sa::cummax(v, {.axis = n}); }, with_axis(1, {6})},
      {"rot90", [](Int n) { return sa::rot90(x, n); },
       [](Int n) {
         return always(n % 2 == 0 ? Shape{2, 3} : Shape{3, 2});
       }},
      {"argsort", [](Int n) { return sa::argsort(v, n); }, with_axis(1, {6})},
      {"tensordot", [](Int n) { return sa::tensordot(v, v, n); },
       [](Int n) {
         return n == 0 ? always({6, 6}) : n == 1 ? always({}) : std::nullopt;
       }},
      {"tensordot", [](Int n) { return sa::tensordot(v, v, Shape{n}, Shape{0}); }, with_axis(1, {})},
      {"power", [](Int n) { return sa::power(x, n); },
       [](Int) {
         return always({2, 3});
       }},
      {"vmap: ", [](Int n) { return sa::vmap([](const Array& r) { return r * 2; }, {.in_axes = n})(v); },
       with_axis(1, {6})},
      {"vmap: ", [](Int n) { return sa::vmap([](const Array& r) { return r * 2; }, {.out_axes = n})(v); },
       with_axis(1, {6})},
      {"random::categorical", [](Int n) { return sa::random::categorical(key(), sa::ones({3}), n); },
       with_axis(1, {})},
      {"random::permutation", [](Int n) { return sa::random::permutation(key(), v, {.axis = n}); },
       with_axis(1, {6})},
      {"random::choice", [](Int n) { return sa::random::choice(key(), v, {2}, {.axis = n}); },
       with_axis(1, {2})},
      {"random::key", [](Int n) { return sa::random::key(n); }, [](Int) { return always({2}); }},
      {"random::fold_in", [](Int n) { return sa::random::fold_in(key(), n); },
       [](Int) { return always({2}); }},
      {"array",
       [](Int n) {
         return sa::array({1, 2, 3}, {n});
       },
       [](Int n) { return n == 3 ? always({3}) : std::nullopt; }},
      {"array",
       [](Int n) {
         return sa::array(std::vector<int>{1, 2, 3}, Shape{n, n, n, n});
       },
       [](Int) { return std::optional<Shape>(); }},
      {"split_leading_axis", [](Int n) { return sa::split_leading_axis(n, v); },
       [](Int n) {
         return n == 1 || n == 3 ? always({n, 6 / n}) : std::nullopt;
       }},
      {"flatten_leading_axes", [](Int n) { return sa::flatten_leading_axes(cube, n); },
       [](Int n) {
         return n == 1 ? always({2, 3, 4}) : n == 3 ? always({24}) : std::nullopt;
       }},
  };
  return rows;
}

}  // namespace

TEST_CASE("sizes: what takes axes, positions and widths gives the right shape, or refuses in its name") {
  for (const Use& row : users())
    for (const Int n : hostile) {
      const std::optional<Shape> want = row.want(n);
      Shape got;
      const std::string error = thrown([&] { got = row.call(n).shape(); });
      CAPTURE(row.function);
      CAPTURE(n);
      CAPTURE(error);
      CHECK(error.empty() == want.has_value());
      if (!error.empty()) CHECK(error.starts_with(row.function));
      else if (want) CHECK(got == *want);
    }
}

TEST_CASE("sizes: a large number without sign is no negative one") {
  const Array v = sa::arange(6);
  constexpr std::uint64_t all_ones = ~std::uint64_t{0};
  CHECK(thrown([&] { v[all_ones]; }).starts_with("index: 9223372036854775807 is out of bounds"));
  CHECK(thrown([&] { sa::sum(v, all_ones); }).starts_with("sum: axis 9223372036854775807 is out of bounds"));
  CHECK(v[sa::slice(0u, all_ones)].shape() == Shape{6});
  CHECK(thrown([&] { sa::arange(all_ones); }) ==
        "arange: 18446744073709551615. Bounds and steps are below 2^63. Add an array to a smaller range.");
  std::ostringstream out;
  sa::debug::print("{}", {all_ones}, {.stream = &out});
  CHECK(out.str() == "18446744073709551615\n");
}

TEST_CASE("sizes: results of large operands are checked, whatever makes them larger") {
  constexpr Int big = Int{1} << 40;
  const Array column = sa::zeros({big, 1}, sa::int8), row = sa::zeros({1, big}, sa::int8),
              flat = large(Int{1} << 61);
  CHECK(thrown([&] { column + row; }) ==
        "add: shape [1099511627776,1099511627776] of int8 takes 2^62 bytes or more. Every array is smaller, "
        "also one "
        "that is never stored. Use smaller sizes.");
  for (const auto& [function, call] :
       std::vector<std::pair<std::string, shardarray::testing::Erased<void()>>>{
           {"where", [&] { sa::where(column == 0, row, row); }},
           {"less", [&] { sa::less(column, row); }},
           {"matmul", [&] { sa::matmul(column, row); }},
           {"einsum", [&] { sa::einsum("ik,kj->ij", column, row); }},
           {"tensordot", [&] { sa::tensordot(column, row, 0); }},
           {"sum", [&] { sa::sum(flat); }},
           {"prod", [&] { sa::prod(flat); }},
           {"mean", [&] { sa::mean(flat); }},
           {"softmax", [&] { sa::softmax(flat); }},
           {"astype", [&] { flat.astype(sa::float64); }},
           {"full_like", [&] { sa::full_like(flat, 1, sa::float64); }},
           {"zeros_like", [&] { sa::zeros_like(flat, sa::float64); }},
           {"concatenate", [&] { sa::concatenate({flat, flat}); }},
           {"concatenate",
            [&] { sa::concatenate({large(highest / 4), large(highest / 4), large(highest / 4)}); }},
           {"stack", [&] { sa::stack({flat, flat, flat}); }},
           {"pad", [&] { sa::pad(flat, highest); }},
           {"one_hot", [&] { sa::one_hot(flat, 4); }},
           {"take", [&] { sa::take(sa::zeros({4, 4}), flat, 0); }},
           {"argmax", [&] { sa::argmax(large(Int{1} << 32)); }},
           {"argmin", [&] { sa::argmin(large(Int{1} << 32)); }},
           {"argsort", [&] { sa::argsort(large(Int{1} << 32)); }},
           {"vmap", [&] { sa::vmap([](const Array& r) { return sa::ones({big}) * r; })(large(big)); }}}) {
    const std::string error = thrown(call);
    CAPTURE(error);
    CHECK(error.starts_with(function + ": "));
  }
  CHECK(thrown([] { sa::argmax(large(Int{1} << 32)); }) ==
        "argmax: the positions along a dimension of 4294967296 elements do not fit into int32. A position is "
        "a value of its dtype. Reshape so that the dimension is shorter.");
  CHECK(sa::argmax(large(Int{1} << 31)).shape().empty());
}

}  // namespace sizes_test
