// Options of reductions and of functions of NumPy, jax.nn and lax: JAX's numbers, edges and messages. Their values on shards:
// op_cases_options.cpp.
#include <limits>

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
Values values(const Array& x) { return x.to_vector<double>(); }
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

}  // namespace numpy_options_test
