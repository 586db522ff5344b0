// Options of reductions and of functions of NumPy, jax.nn and lax: JAX's numbers, edges and messages. Their values on shards:
// op_cases_options.cpp.
#include <limits>
#include <optional>
#include <utility>

#include "golden.h"
#include "messages.h"

namespace numpy_options_test {

namespace sa = shardarray;
using sa::array;
using sa::Array;
using sa::ReduceOptions;
using sa::Shape;
using Arrays = std::vector<Array>;
using Values = std::vector<double>;
using shardarray::testing::values;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

/// The results of a case of tests/reference/numpy_options.py, in its order.
void check_case(const std::string& name, const Arrays& given, double tolerance = 0) {
  static const golden::Json all_cases = golden::load("numpy_options.json");
  const golden::Json& cases = all_cases[name];
  REQUIRE(cases.size() == given.size());
  for (std::size_t k = 0; k < given.size(); k++) {
    CAPTURE(name);
    CAPTURE(k);
    CAPTURE(sa::to_string(given[k].shape()));
    CAPTURE(sa::to_string(given[k]));
    CHECK(golden::close(given[k], cases[k], tolerance, tolerance));
    CHECK(given[k].dtype() == golden::dtype_named(cases[k]["dtype"]));
  }
}
void add(Arrays& to, const Arrays& more) { to.insert(to.end(), more.begin(), more.end()); }

// Made when a test asks: before main there are no devices.
Array X() { return array({{1.0, 2.0, -3.0, 4.0}, {0.5, -1.0, 2.0, 7.0}, {5.0, 3.0, 9.0, 1.0}}); }
Array N() { return array({{1.0, nan, -3.0, 4.0}, {nan, -1.0, 2.0, nan}, {5.0, 3.0, nan, 1.0}}); }
Array M() {
  return array({{true, false, true, true}, {false, false, false, false}, {true, true, false, true}});
}
Array R() { return array({true, false, true, false}); }
Array I() { return array({{3, -1, 2, 7}, {4, 0, -5, 2}, {1, 1, 6, -2}}); }
Array S() { return array({{3, -1, 100, 7}}, sa::int8); }
Array B() { return I() > 1; }
Array P() { return array({0.0, 0.5, 2.0, 2.25, 4.0}); }
Array V() { return array({1.0, 3.0, 2.0, 5.0, 4.5}); }
Array H() { return array({0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.0, 8388609.0, inf, nan, -1.2}); }
Array K1() { return array({2, 1, 2, 1, 2}); }
Array K2() { return array({nan, 3.0, -0.0, 1.0, 0.0}); }
Array A3() { return (sa::arange(24.0) % 7 - 2).reshape(2, 3, 4); }

/// f(x, options) over all axes, over the first, over the second.
template <class F> Arrays along_each(const F& f, const Array& x, ReduceOptions o) {
  Arrays r;
  for (const sa::AxisSet& axis : {sa::AxisSet(), sa::AxisSet(0), sa::AxisSet(1)}) {
    o.axis = axis;
    r.push_back(f(x, o));
  }
  return r;
}
/// The same with both masks in turns.
template <class F> Arrays with_masks(const F& f, const Array& x, ReduceOptions o = {}) {
  Arrays r;
  for (const sa::AxisSet& axis : {sa::AxisSet(), sa::AxisSet(0), sa::AxisSet(1)})
    for (const Array& mask : {M(), R()}) {
      o.axis = axis;
      o.where = mask;
      r.push_back(f(x, o));
    }
  return r;
}

}  // namespace

TEST_CASE("options: sums and products of some elements, and from a value on") {
  Arrays r;
  for (const Array& x : {X(), I(), B()}) add(r, with_masks(sa::sum, x));
  for (const Array& x : {X(), I(), B()}) add(r, with_masks(sa::prod, x));
  check_case("sums", r, 1e-6);
  r.clear();
  for (const Array& x : {X(), I(), S()}) r.push_back(sa::sum(x, 1, {.initial = 3}));
  for (const Array& x : {X(), I(), S()}) r.push_back(x.prod(1, {.initial = 3}));
  r.push_back(sa::sum(X().astype(sa::float16), 1, {.where = M(), .initial = 2.5}));
  r.push_back(sa::sum(sa::zeros({3, 0}), 1, {.initial = 7}));
  check_case("sums from", r, 1e-6);
}

TEST_CASE("options: extrema and truths of some elements") {
  Arrays r;
  for (const Array& x : {X(), I(), N()}) add(r, with_masks(sa::max, x, {.initial = -2}));
  for (const Array& x : {X(), I(), N()}) add(r, with_masks(sa::min, x, {.initial = 3}));
  r.push_back(sa::max(sa::zeros({3, 0}), 1, {.initial = -inf}));
  r.push_back(sa::min(I(), {.initial = -7}));
  r.push_back(sa::max(B(), 1, {.where = M(), .initial = false}));
  check_case("extrema", r);
  r.clear();
  for (const Array& x : {B(), N()}) add(r, along_each(sa::any, x, {.where = M()}));
  for (const Array& x : {B(), N()}) add(r, along_each(sa::all, x, {.where = M()}));
  check_case("truths", r);
}

TEST_CASE("options: means and variances of some elements, with NaN and without") {
  Arrays r;
  const auto add_moment = [&](const auto& f) {
    for (const Array& x : {X(), I(), N()})
      add(r, with_masks([&](const Array& y, const ReduceOptions& o) { return f(y, o); }, x));
  };
  add_moment(sa::mean);
  add_moment(sa::var);
  add_moment(sa::std);
  add_moment(sa::nanmean);
  add_moment(sa::nanvar);
  add_moment(sa::nanstd);
  const ReduceOptions kept{.axis = 1, .keepdims = true, .where = M()};
  for (const int ddof : {1, 2, 3}) r.push_back(sa::var(X(), kept, ddof));
  for (const int ddof : {1, 2, 3}) r.push_back(sa::std(X(), kept, ddof));
  check_case("moments", r, 2e-6);
  check_case("nan", {sa::nansum(N(), 1, {.where = M(), .initial = 2}),
                     sa::nanprod(N(), 1, {.where = M(), .initial = 2}),
                     sa::nanmax(N(), 1, {.where = M(), .initial = -10}),
                     sa::nanmin(N(), 1, {.where = M(), .initial = 10})});
  const Array z = array({std::complex(1.0F, 2.0F), std::complex(3.0F, 4.0F), std::complex(9.0F, 9.0F)});
  const Array mask = array({true, true, false});
  CHECK(sa::mean(z, {.where = mask}).item<std::complex<float>>() == std::complex(2.0F, 3.0F));
  CHECK(sa::var(z, {.where = mask}).item<float>() == doctest::Approx(2));
}

TEST_CASE("options: empty braces are the default ones, whatever else may stand there") {
  const auto same = [](const Array& braces, const Array& none) {
    CHECK(braces.shape() == none.shape());
    CHECK(values(braces) == values(none));
  };
  const auto check = [&](const auto& f, const auto&... x) { same(f(x..., {}), f(x...)); };
  check(sa::sum, X());
  check(sa::sum, X(), 0);
  same(sa::sum(X(), {0, 1}, {}), sa::sum(X()));
  check(sa::nanmax, X(), 1);
  check(sa::var, X());
  check(sa::var, X(), 0);
  same(sa::var(X(), {0, 1}, {}), sa::var(X()));
  check(sa::nanstd, X(), 1);
  check(sa::softmax, X());
  check(sa::log_softmax, X());
  check(sa::standardize, X());
  check(sa::cumsum, X());
  check(sa::sort, X());
  check(sa::argsort, X());
  check(sa::diff, X());
  check(sa::average, X(), X());
  check(sa::quantile, X(), 0.5);
  check(sa::cov, X());
  check(sa::cov, X(), X());
  check(sa::corrcoef, X());
  const auto check_bins = [&](const auto& bins) {
    const auto [braces, braces_edges] = sa::histogram(X(), bins, {});
    const auto [none, edges] = sa::histogram(X(), bins);
    same(braces, none);
    same(braces_edges, edges);
  };
  check_bins(4);
  check_bins(P());
  // a range by itself is one, in every spelling
  const std::pair<double, double> pair(0, 6);
  const Array counts = sa::histogram(X(), 4, {.range = pair}).first;
  CHECK(values(counts) == Values{3, 2, 2, 1});
  same(sa::histogram(X(), 4, {{0, 6}}).first, counts);
  same(sa::histogram(X(), 4, pair).first, counts);
  same(sa::histogram(X(), 4, std::optional(pair)).first, counts);
  same(sa::histogram(X(), 4, std::nullopt).first, sa::histogram(X(), 4).first);
  // numbers behind axes are ddof
  const Array one_less = sa::var(X(), {.axis = {0, 1}}, 1);
  same(sa::var(X(), {0, 1}, 1), one_less);
  CHECK(values(one_less)[0] == doctest::Approx(12.0 / 11 * values(sa::var(X()))[0]));
  same(sa::var(X(), 0, 1), sa::var(X(), {.axis = 0}, 1));
}

TEST_CASE("options: ddof among the options, and what stands behind an axis") {
  const auto same = [](const Array& a, const Array& b) {
    CHECK(a.shape() == b.shape());
    CHECK(sa::to_string(a) == sa::to_string(b));  // NaN is equal
  };
  same(sa::var(X(), {.ddof = 1}), sa::var(X(), {}, 1));
  same(sa::var(X(), 0, {.ddof = 1}), sa::var(X(), 0, 1));
  same(sa::var(X(), {0, 1}, {.keepdims = true, .ddof = 1}),
       sa::var(X(), {.axis = {0, 1}, .keepdims = true}, 1));
  same(sa::std(X(), {.axis = 0, .dtype = sa::float64, .where = X() > 2, .ddof = 1}),
       sa::std(X(), sa::ReduceOptions{.axis = 0, .dtype = sa::float64, .where = X() > 2}, 1));
  same(sa::std(X(), -1, {.where = X() > 2}), sa::std(X(), {.axis = -1, .where = X() > 2}));
  same(sa::nanvar(X(), 1, {.ddof = 1}), sa::nanvar(X(), {.axis = 1}, 1));
  same(sa::nanstd(X(), {0}, {.ddof = 1}), sa::nanstd(X(), {.axis = 0, .ddof = 1}));
  const sa::ReduceOptions columns{.axis = 0};
  same(sa::var(X(), columns), sa::var(X(), 0));
  same(sa::cumsum(X(), 0, {.reverse = true}), sa::cumsum(X(), {.axis = 0, .reverse = true}));
  same(sa::cummax(X(), 1, {.reverse = true}), sa::cummax(X(), {.axis = 1, .reverse = true}));
  CHECK(sa::cumprod(X(), 0, {.dtype = sa::float64}).dtype() == sa::float64);
  CHECK(values(sa::cumsum(sa::array({1.0, 2.0, 4.0}), 0, {.reverse = true})) == Values{7, 6, 4});
}

TEST_CASE("options: gradients of what was chosen are JAX's") {
  const auto slope = [](const auto& f) {
    return sa::grad([&](const Array& x) {
      const Array y = f(x);
      return sa::sum(y * (sa::arange(static_cast<double>(y.size())) + 1.0).reshape(y.shape()));
    })(X());
  };
  check_case("gradients",
             {slope([](const Array& x) { return sa::sum(x, 1, {.where = M()}); }),
              slope([](const Array& x) { return sa::prod(x, 1, {.where = M(), .initial = 2}); }),
              slope([](const Array& x) { return sa::max(x, 1, {.where = M(), .initial = 2}); }),
              slope([](const Array& x) { return sa::mean(x, 0, {.where = M()}); }), slope([](const Array& x) {
                return sa::var(x, 0, {.where = array({{true}, {false}, {true}})});
              }),
              slope([](const Array& x) { return sa::softmax(x, {.axis = 0, .where = M()}); }),
              slope([](const Array& x) { return sa::logsumexp(x, 0, {.where = M()}); }),
              slope([](const Array& x) { return sa::diff(x, {.axis = 0, .prepend = 1}); }),
              slope([](const Array& x) {
                return sa::repeat(x, {2, 0, 1}, 0);
              }),
              slope([](const Array& x) {
                return sa::pad_general(x, {{1, -1, 1}, {-2, 3, 2}}, 1);
              })},
             2e-6);
}

TEST_CASE("options: probabilities and standards of some elements") {
  Arrays r;
  const auto each = [&](const auto& f) {
    for (const Array& x : {X(), A3()[0]})
      for (const int axis : {0, 1})
        for (const Array& mask : {M(), R()})
          r.push_back(f(x, sa::SoftmaxOptions{.axis = axis, .where = mask}));
  };
  each(sa::softmax);
  each(sa::log_softmax);
  r.push_back(sa::softmax(X(), {.axis = {0, 1}, .where = M()}));
  check_case("softmax", r, 1e-6);
  r.clear();
  for (const int axis : {0, 1})
    for (const Array& mask : {M(), R()}) r.push_back(sa::logsumexp(X(), axis, {.where = mask}));
  for (const int axis : {0, 1})
    for (const Array& mask : {M(), R()}) r.push_back(sa::logmeanexp(X(), axis, {.where = mask}));
  check_case("logsumexp", r, 1e-6);
  r.clear();
  for (const int axis : {0, 1})
    for (const Array& mask : {R(), M() | (I() < 1)})
      r.push_back(sa::standardize(X(), {.axis = axis, .where = mask}));
  check_case("standardize", r, 5e-6);
}

TEST_CASE("options: counts of repeat, by a list, by an array and inside of jit") {
  check_case("repeat", {sa::repeat(X(), {2, 0, 1}, 0), sa::repeat(X(), {0, 0, 0}, 0),
                        sa::repeat(X(), array({3}), {.axis = 0}), sa::repeat(P(), array({0, 2, 0, 1, 0})),
                        sa::repeat(P(), array({0, 2, 0, 1, 3}), {.total_repeat_length = 4}),
                        sa::repeat(P(), array({0, 2, 0, 1, 3}), {.total_repeat_length = 6}),
                        sa::jit([](Array x, Array n) {
                          return sa::repeat(x, n, {.total_repeat_length = 9});
                        })(P(), array({0, 2, 0, 1, 3}))});
  CHECK(values(sa::repeat(P(), array({-1, 2, 0, 0, 0}))) == Values{0.5, 0.5});
  CHECK(sa::repeat(sa::zeros({0}), sa::zeros({0}, sa::int32)).shape() == Shape{0});
  CHECK_SAYS(sa::repeat(X(), {1, 2}, 0),
             "repeat: 2 counts for f32[3,4] along axis 0. Every element has one, or all have the same. Give "
             "as many, or "
             "one number.",
             sa::ShapeError);
  CHECK_SAYS(sa::repeat(X(), P()), "repeat: the operand is f32[5]. Counts are integers. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(sa::repeat(sa::zeros({0}), sa::zeros({0}, sa::int32), {.total_repeat_length = 1}),
             "repeat: f32[0] has no elements along axis 0, and 1 are asked for. There is none to repeat. "
             "Leave the length out.",
             sa::ShapeError);
  CHECK_SAYS(sa::jit([](Array x, Array n) { return sa::repeat(x, n); })(P(), array({0, 2, 0, 1, 3})),
             "repeat: the counts i32[5] have no values while the function is traced. The result is as long "
             "as they say. "
             "Give total_repeat_length.",
             sa::TraceError);
}

TEST_CASE("options: ends of diff, weights of histogram, places of gradient") {
  check_case("diff",
             {sa::diff(X(), {.axis = 0, .prepend = 1, .append = X()[{sa::slice(1)}]}),
              sa::diff(I(), {.prepend = I()[{sa::all, sa::slice(2)}]}),
              sa::diff(I(), {.n = 2, .append = 0.5}), sa::diff(X(), {.n = 3, .axis = 1, .prepend = 0})});
  Arrays r;
  for (const sa::HistogramOptions& o :
       {sa::HistogramOptions{.density = true}, sa::HistogramOptions{.weights = X()},
        sa::HistogramOptions{.weights = X(), .density = true}}) {
    const auto [a, b] = sa::histogram(X(), 4, o);
    const auto [c, d] = sa::histogram(X(), array({-1.0, 0.0, 3.0, 5.0}), o);
    add(r, {a, b, c, d});
  }
  const auto [counts, edges] = sa::histogram(I(), 3, {.range = {{0, 6}}, .weights = I(), .density = true});
  add(r, {counts, edges});
  check_case("histogram", r, 1e-6);
  CHECK_SAYS(sa::histogram(X(), P(), {.range = {{0, 6}}}),
             "histogram: a range was given beside edges. Edges are the bins. Leave one of them out.",
             sa::Error);
  CHECK_SAYS(sa::histogram(X(), 3, {.weights = P()}),
             "histogram: weights f32[5] of f32[3,4]. Every element has one. Broadcast them.", sa::ShapeError);
  r = sa::gradient(X(), {0, 1});
  add(r, sa::gradient(X(), {0, 1}, {2.0}));
  add(r, sa::gradient(X(), {0, 1}, {2.0, 0.5}));
  check_case("gradient", r, 1e-6);
  const Array both = sa::stack({V(), V() * V()});
  r = {sa::gradient(V(), 0, P()), sa::gradient(both, 1, P())};
  add(r, sa::gradient(both, {0, 1}, {0.5, P()}));
  r.push_back(sa::gradient(V()[{sa::slice(2)}], 0, P()[{sa::slice(2)}]));
  check_case("gradient at places", r, 1e-6);
  CHECK_SAYS(sa::gradient(X(), 0, P()),
             "gradient: places f32[5] of f32[3,4] along axis 0. They are a vector that is as long. Give one "
             "for each "
             "sample.",
             sa::ShapeError);
  CHECK_SAYS(sa::gradient(X(), {0, 1}, {1, 2, 3}),
             "gradient: 3 distances for 2 axes. There is one for each, or one for all. Give as many.",
             sa::ShapeError);
}

TEST_CASE("options: rounding, padding and sorting as lax does it") {
  using sa::RoundingMethod;
  check_case("round",
             {sa::round(H(), RoundingMethod::away_from_zero), sa::round(H(), RoundingMethod::to_nearest_even),
              sa::round(H().astype(sa::float16), RoundingMethod::away_from_zero),
              sa::round(H().astype(sa::bfloat16), RoundingMethod::away_from_zero)});
  CHECK(std::signbit(values(sa::round(array({-0.3}), RoundingMethod::away_from_zero))[0]));
  CHECK(sa::round(I(), RoundingMethod::away_from_zero).dtype() == sa::int32);
  Arrays r;
  for (const std::vector<sa::PadWidths>& widths :
       std::vector<std::vector<sa::PadWidths>>{{{1, 2, 0}, {0, 0, 1}},
                                               {{-1, 0, 2}, {0, -2, 0}},
                                               {{-2, 1, 0}, {3, -5, 1}},
                                               {{0, -3, 0}, {0, 0, 0}},
                                               {{-4, 3, 0}, {0, 0, 0}},
                                               {{-1, -1, 3}, {-1, -1, 3}}}) {
    r.push_back(sa::pad_general(X(), widths, 9));
    const auto by_value = sa::jit([=](Array x, Array v) { return sa::pad_general(x, widths, v); });
    CHECK(values(by_value(X(), Array(9.0F))) == values(r.back()));
  }
  r.push_back(sa::pad_general(I(), {{0, 1, 1}, {1, 0, 0}}, -1));
  check_case("pad", r);
  CHECK_SAYS(
      sa::pad_general(X(), {{0, -4, 0}, {0, 0, 0}}),
      "pad_general: widths 0 and -4 of 3 elements along axis 0. No more goes than there is. Remove fewer.",
      sa::ShapeError);
  CHECK_SAYS(sa::pad_general(X(), {{0, 0, -1}, {0, 0, 0}}),
             "pad_general: -1 elements between two. The number is not negative. Use a slice with a step to "
             "remove elements.",
             sa::ShapeError);
  CHECK_SAYS(sa::pad_general(X(), {{0, 0, 0}}),
             "pad_general: 1 width for f32[3,4]. Every dimension has three. Give as many.", sa::ShapeError);
  r = sa::sort({K1(), K2(), V()});
  add(r, sa::sort({K1(), K2(), V()}, {.num_keys = 2}));
  add(r, sa::sort({V(), K1()}));
  add(r, sa::sort({I(), sa::flip(I(), 0), X()}, {.axis = 0, .num_keys = 2}));
  check_case("sort", r);
  CHECK_SAYS(sa::sort({V(), P()}, {.num_keys = 3}),
             "sort: 3 keys of 2 operands. There is one at least, and no more than operands. Change num_keys.",
             sa::Error);
  CHECK_SAYS(sa::sort({V(), X()}), "sort: shapes [5] and [3,4]. All operands have one shape. Broadcast one.",
             sa::ShapeError);
}

TEST_CASE("options: norms by singular values, products of several in any order") {
  Arrays r{sa::norm(X(), {.ord = 2}), sa::norm(X(), {.ord = -2}), sa::norm(X(), {.nuclear = true})};
  for (const sa::NormOptions& o :
       {sa::NormOptions{.ord = 2}, sa::NormOptions{.ord = -2}, sa::NormOptions{.nuclear = true}})
    for (const sa::AxisSet& axes : {sa::AxisSet{0, 2}, sa::AxisSet{2, 1}})
      for (const bool keepdims : {false, true})
        r.push_back(sa::norm(A3(), {.ord = o.ord, .axis = axes, .keepdims = keepdims, .nuclear = o.nuclear}));
  check_case("norm", r, 1e-5);
  CHECK_SAYS(sa::norm(V(), {.nuclear = true}),
             "norm: nuclear of vectors. Matrices have singular values. Name two axes, or leave it out.",
             sa::Error);
  const Array x = X(), two = x[{sa::all, sa::slice(2)}], rows = x[{sa::slice(2)}];
  check_case("einsum",
             {sa::einsum("ij,jk,kl->il", x, x.T(), x), sa::einsum("i,i,i,i->", V(), P(), V(), V()),
              sa::einsum("ij,kj,kl,ml,mn,no->io", x, x, x, x, two, rows),
              sa::einsum("...j,kj,k->...", A3(), x, V()[{sa::slice(3)}])},
             1e-5);
}

TEST_CASE("options: operands of an einsum are multiplied in the cheapest order") {
  const Array a = sa::ones({1000, 2}), b = sa::ones({2, 1000}), c = sa::ones({1000, 1});
  const auto flops = [](const auto& f, const auto&... x) { return sa::explain(f, x...).flops; };
  const auto by_hand =
      flops([](Array x, Array y, Array z) { return sa::matmul(x, sa::matmul(y, z)); }, a, b, c);
  const auto chain = [&](const char* text, const auto&... x) {
    return flops([text](auto... y) { return sa::einsum(text, y...); }, x...);
  };
  CHECK(chain("ij,jk,kl->il", a, b, c) == by_hand);
  CHECK(chain("kl,ij,jk->il", c, a, b) == by_hand);
  // six operands: the cheapest two first
  const Array one = sa::ones({1, 1});
  CHECK(chain("ij,jk,kl,lm,mn,no->io", a, b, c, one, one, one) < 2 * by_hand);
}

TEST_CASE("options: what does not fit is said") {
  CHECK_SAYS(sa::max(X(), {.where = M()}),
             "max: .where was given, but not .initial. Of no element there is no extremum. Give one of the "
             "dtype, such as "
             "the result of nothing.",
             sa::Error);
  CHECK_SAYS(sa::sum(X(), {.where = sa::ones({2, 3, 4}, sa::bool_)}),
             "sum: .where is bool[2,3,4] for f32[3,4]. It is broadcast to the operand's shape. Broadcast the "
             "operand before.",
             sa::ShapeError);
  CHECK_SAYS(sa::sum(X(), {.initial = P()}),
             "sum: .initial is f32[5]. It is a scalar. Use add, maximum and so on for arrays.",
             sa::ShapeError);
  CHECK_SAYS(sa::mean(X(), {.initial = 1}),
             "mean: .initial was given. It is of sum, prod, max and min. Leave it out.", sa::Error);
  CHECK_SAYS(sa::argmax(X(), {.where = M()}),
             "argmax: .where was given. It looks at all elements. Choose them before, by where().",
             sa::Error);
}

TEST_CASE("options: lists of axes are axes everywhere, and a first value stands for what is not there") {
  const Array x = sa::arange(6.0).reshape({2, 3}) * 0.5, flat = x.reshape({6});
  CHECK(sa::allclose(sa::softmax(x, {0, 1}).reshape({6}), sa::softmax(flat)));
  CHECK(sa::allclose(sa::softmax(x, {1, 0}), sa::softmax(x, {-2, -1})));
  CHECK(sa::allclose(sa::softmax(x, {0}), sa::softmax(x, 0)));
  CHECK(sa::allclose(sa::log_softmax(x, {0, 1}).reshape({6}), sa::log_softmax(flat)));
  CHECK(sa::allclose(sa::standardize(x, {0, 1}).reshape({6}), sa::standardize(flat)));
  CHECK(sa::allclose(sa::standardize(x, {-2, -1}, 1e-3).reshape({6}), sa::standardize(flat, 0, 1e-3)));
  const Array nothing = sa::full({2}, NAN);
  CHECK(sa::nanmax(nothing, {.initial = 3}).item<float>() == 3);
  CHECK(sa::nanmin(nothing, {.initial = -3}).item<float>() == -3);
  CHECK(sa::nanmax(sa::zeros({0}), {.initial = 3}).item<float>() == 3);
  CHECK(std::isnan(sa::nanmax(nothing).item<float>()));
  // The edges are of the common dtype: 0.3f is above the edge 0.3.
  const Array edges =
      sa::histogram(sa::array({0.3f}), 10, {.range = {{0, 1}}, .weights = sa::ones({1}, sa::float64)}).second;
  CHECK(edges.dtype() == sa::float64);
  CHECK(edges[1].item<double>() == doctest::Approx(0.1).epsilon(1e-15));
}

}  // namespace numpy_options_test
