// What the docs of functions promise beyond the table of ops: dtypes, NaN, ties, edges. The truth is plain C++.
#include <doctest/doctest.h>

#include <math.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "everywhere.h"
#include "shardarray/shardarray.h"

namespace promises_ops_test {

namespace sa = shardarray;
using sa::Array;
using sa::DType;
using sa::Shape;
using shardarray::testing::values;

namespace {

using Values = std::vector<double>;
using Words = std::vector<std::int64_t>;
using Unary = std::function<Array(const Array&)>;
using Binary = std::function<Array(const Array&, const Array&)>;

const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");

Words words(const Array& x) { return x.to_vector<std::int64_t>(); }
Array floats(const Values& v) { return sa::array(v, sa::float32); }
template <class E, class F> std::string message(const F& f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "";
}
Values gradient(const Unary& f, const Values& x) {
  return values(sa::grad([&](Array v) { return sa::sum(f(v)); })(floats(x)));
}

}  // namespace

// ---------------------------------------------------------------- names
TEST_CASE("promises: operators, of arrays and of numbers on either side") {
  struct Row {
    Binary of;
    std::function<std::int64_t(std::int64_t, std::int64_t)> want;
  };
  const Row rows[] = {
      {[](auto& a, auto& b) { return a + b; }, [](auto a, auto b) { return a + b; }},
      {[](auto& a, auto& b) { return a - b; }, [](auto a, auto b) { return a - b; }},
      {[](auto& a, auto& b) { return a * b; }, [](auto a, auto b) { return a * b; }},
      {[](auto& a, auto& b) { return a % b; }, [](auto a, auto b) { return ((a % b) + b) % b; }},
      {[](auto& a, auto& b) { return a & b; }, [](auto a, auto b) { return a & b; }},
      {[](auto& a, auto& b) { return a | b; }, [](auto a, auto b) { return a | b; }},
      {[](auto& a, auto& b) { return a ^ b; }, [](auto a, auto b) { return a ^ b; }},
      {[](auto& a, auto& b) { return a << b; }, [](auto a, auto b) { return a * (1 << b); }},
      {[](auto& a, auto& b) { return a >> b; }, [](auto a, auto b) { return a >> b; }},
      {[](auto& a, auto& b) { return a == b; }, [](auto a, auto b) { return a == b; }},
      {[](auto& a, auto& b) { return a != b; }, [](auto a, auto b) { return a != b; }},
      {[](auto& a, auto& b) { return a < b; }, [](auto a, auto b) { return a < b; }},
      {[](auto& a, auto& b) { return a <= b; }, [](auto a, auto b) { return a <= b; }},
      {[](auto& a, auto& b) { return a > b; }, [](auto a, auto b) { return a > b; }},
      {[](auto& a, auto& b) { return a >= b; }, [](auto a, auto b) { return a >= b; }},
  };
  const Words a{-7, 3, 12, 5}, b{3, 3, 5, 2};
  for (std::size_t r = 0; r < std::size(rows); r++) {
    CAPTURE(r);
    Words want;
    for (std::size_t k = 0; k < a.size(); k++) want.push_back(rows[r].want(a[k], b[k]));
    CHECK(words(rows[r].of(sa::array(a, sa::int32), sa::array(b, sa::int32))) == want);
    CHECK(words(rows[r].of(sa::array(a, sa::int32), 3))[0] == rows[r].want(-7, 3));
    CHECK(words(rows[r].of(12, sa::array(b, sa::int32)))[2] == rows[r].want(12, 5));
  }
  const Array x = sa::array(a, sa::int32);
  CHECK(words(-x) == Words{7, -3, -12, -5});
  CHECK(words(~x) == Words{6, -4, -13, -6});
  CHECK(words(!(x < 4)) == Words{0, 0, 1, 1});
  CHECK(values(x / 2) == Values{-3.5, 1.5, 6, 2.5});
  CHECK(values(3 - x / 2) == Values{6.5, 1.5, -3, 0.5});
}

TEST_CASE("promises: methods of an array are the functions of their names") {
  const Array x = sa::array({{1.5, -2, 3}, {4, 0, 6}});
  CHECK(x.ndim() == 2);
  CHECK(x.size() == 6);
  CHECK(words(x.astype(sa::int32)) == Words{1, -2, 3, 4, 0, 6});
  CHECK(x.reshape({3, -1}).shape() == Shape{3, 2});
  CHECK(values(x.transpose()) == Values{1.5, 4, -2, 0, 3, 6});
  CHECK(values(x.transpose({1, 0})) == values(x.T()));
  CHECK(values(x.sum()) == Values{12.5});
  CHECK(values(x.sum({.axis = 0})) == Values{5.5, -2, 9});
  CHECK(values(x.mean({.axis = 1}))[1] == doctest::Approx(10.0 / 3));
  CHECK(values(x.max({.axis = 0, .keepdims = true})) == Values{4, 0, 6});
  CHECK(values(x.min({.axis = 1})) == Values{-2, 0});
  CHECK(values(x.prod({.axis = 1})) == Values{-9, 0});
  CHECK(words(x.any({.axis = 1})) == Words{1, 1});
  CHECK(words(x.all({.axis = 1})) == Words{1, 0});
}

TEST_CASE("promises: other names of a function") {
  const Array x = floats({-0.5, 0.25, 0.75}), y = floats({2, -4, 8});
  const auto near = [](const Array& got, auto f) {
    const Values g = values(got);
    const double in[] = {-0.5, 0.25, 0.75};
    for (std::size_t k = 0; k < 3; k++) CHECK(g[k] == doctest::Approx(f(in[k])).epsilon(1e-6));
  };
  near(sa::asin(x), [](double v) { return std::asin(v); });
  near(sa::acos(x), [](double v) { return std::acos(v); });
  near(sa::atan(x), [](double v) { return std::atan(v); });
  near(sa::atan2(x, -1.0), [](double v) { return std::atan2(v, -1); });
  CHECK(values(sa::true_divide(y, 4)) == Values{0.5, -1, 2});
  CHECK(values(sa::empty({2})) == Values{0, 0});
  CHECK(words(sa::empty_like(sa::ones({2}, sa::int8))) == Words{0, 0});
  CHECK(words(sa::random::PRNGKey(7)) == words(sa::random::key(7)));
  int traced = 0;
  const auto f = sa::filter_jit([&](Array v) { return traced++, v * 2; });
  CHECK(values(f(y)) == Values{4, -8, 16});
  const Array z = y + 1;
  CHECK(values(f(z)) == Values{6, -6, 18});
  CHECK(traced == 1);
}

TEST_CASE("promises: function objects go into vmap, jit, grad and pmap as they are") {
  const Array x = floats({1, 2, 3, 4}).reshape({2, 2});
  CHECK(values(sa::vmap(sa::sum)(x)) == Values{3, 7});
  CHECK(values(sa::jit(sa::square)(x)) == Values{1, 4, 9, 16});
  CHECK(values(sa::jit(sa::transpose)(x)) == Values{1, 3, 2, 4});
  CHECK(values(sa::vmap(sa::matmul)(x, x)) == Values{5, 25});
  CHECK(values(sa::grad(sa::square)(3.0)) == Values{6});
  CHECK(values(sa::pmap(sa::mean)(x)) == Values{1.5, 3.5});
}

// ---------------------------------------------------------------- dtypes
TEST_CASE("promises: floating functions give float32 of whole numbers, float64 of 64-bit ones") {
  const std::pair<const char*, Unary> all[] = {
      {"exp", sa::exp},
      {"expm1", sa::expm1},
      {"log", sa::log},
      {"log1p", sa::log1p},
      {"sqrt", sa::sqrt},
      {"rsqrt", sa::rsqrt},
      {"sin", sa::sin},
      {"cos", sa::cos},
      {"tan", sa::tan},
      {"sinh", sa::sinh},
      {"cosh", sa::cosh},
      {"tanh", sa::tanh},
      {"arcsin", sa::arcsin},
      {"arccos", sa::arccos},
      {"arctan", sa::arctan},
      {"sinc", sa::sinc},
      {"erf", sa::erf},
      {"erfc", sa::erfc},
      {"erf_inv", sa::erf_inv},
      {"sigmoid", sa::sigmoid},
      {"silu", sa::silu},
      {"reciprocal", sa::reciprocal},
      {"gelu", [](auto& x) { return sa::gelu(x); }},
      {"divide", [](auto& x) { return x / x; }},
      {"arctan2", [](auto& x) { return sa::arctan2(x, x); }},
      {"fma", [](auto& x) { return sa::fma(x, x, x); }},
      {"mean", [](auto& x) { return sa::mean(x); }},
      {"var", [](auto& x) { return sa::var(x); }},
      {"logsumexp", [](auto& x) { return sa::logsumexp(x); }},
      {"softmax", [](auto& x) { return sa::softmax(x); }},
      {"log_softmax", [](auto& x) { return sa::log_softmax(x); }},
  };
  for (const auto& row : all) {
    const auto& function = row.first;
    const auto& f = row.second;
    for (const DType t : {sa::bool_, sa::int8, sa::uint16, sa::int32, sa::int64, sa::uint64, sa::float16,
                          sa::bfloat16, sa::float32, sa::float64}) {
      CAPTURE(function);
      CAPTURE(sa::name(t));
      const DType want = sa::is_floating(t) ? t : sa::itemsize(t) == 8 ? sa::float64 : sa::float32;
      const Array y = f(sa::ones({2}, t));
      CHECK(y.dtype() == want);
      CHECK(y.to_vector<double>().size() == static_cast<std::size_t>(y.size()));  // and it can be computed
    }
  }
}

TEST_CASE("promises: whole numbers stay whole where nothing has to be rounded") {
  for (const DType t : {sa::int8, sa::uint8, sa::int32, sa::int64, sa::uint64}) {
    const Array x = sa::array({0, 3, 100}, t);
    for (const Unary& f : {Unary(sa::floor), Unary(sa::ceil), Unary(sa::trunc), Unary(sa::relu),
                           Unary(sa::abs), Unary([](auto& v) { return sa::round(v); })}) {
      CHECK(f(x).dtype() == t);
      CHECK(words(f(x)) == Words{0, 3, 100});
    }
  }
  CHECK(words(sa::relu(sa::array({-3, 0, 5}))) == Words{0, 0, 5});
  CHECK(words(sa::abs(sa::array({-3, 0, 5}))) == Words{3, 0, 5});
  for (const Array& y : {sa::square(sa::array({true, false})), sa::power(sa::array({true, false}), 3)}) {
    CHECK(y.dtype() == sa::int32);
    CHECK(words(y) == Words{1, 0});
  }
}

TEST_CASE("promises: a reduction is accumulated in the dtype that was asked for") {
  const Array small = sa::full({300}, 100, sa::int8), half = sa::full({4}, 60010.0, sa::float16);
  CHECK(sa::sum(small).dtype() == sa::int32);
  CHECK(sa::sum(small.astype(sa::uint8)).dtype() == sa::uint32);
  CHECK(sa::prod(sa::ones({3}, sa::bool_)).dtype() == sa::int32);
  CHECK(words(sa::sum(small)) == Words{30000});
  CHECK(words(sa::sum(sa::full({3}, 2000000000), {.dtype = sa::int64})) == Words{6000000000});
  CHECK(words(sa::prod(sa::full({3}, 2000000000, sa::int64), {.dtype = sa::int64}))[0] ==
        static_cast<std::int64_t>(8000000000000000000ull * 1000000000ull));  // modulo 2^64
  CHECK(sa::sum(half).item<float>() == inf);
  CHECK(sa::sum(half, {.dtype = sa::float32}).item<float>() == 240000);  // 60010 is 60000 in float16
  const Array fine = sa::concatenate({floats({16777216}), sa::ones({4})});
  CHECK(sa::sum(fine, {.dtype = sa::float64}).item<double>() == 16777220);
  CHECK(sa::mean(sa::array({1, 2}), {.dtype = sa::float64}).dtype() == sa::float64);
}

TEST_CASE("promises: clamp has the dtype of its operand") {
  for (const DType t : {sa::int32, sa::float32, sa::float64, sa::bfloat16}) {
    const Array y = sa::clamp(sa::array({0}, t), sa::array({-1, 1, 5}, t), sa::array({2}, t));
    CHECK(y.dtype() == t);
    CHECK(values(y) == Values{0, 1, 2});
  }
  CHECK(sa::clamp(0, sa::ones({2}, sa::int8), 1).dtype() == sa::int8);
  CHECK(sa::clamp(0.0, sa::ones({2}, sa::float16), 1.0).dtype() == sa::float16);
  CHECK(values(sa::clip(floats({-3, 0.5, 9}), -1, 1)) == Values{-1, 0.5, 1});
}

TEST_CASE("promises: kinds of dtypes, and the dtype of a C++ type") {
  for (int k = 0; k <= static_cast<int>(sa::complex128); k++) {
    const auto t = static_cast<DType>(k);
    const std::string n = sa::name(t);
    CAPTURE(n);
    const auto begins = [&](const char* word) { return n.starts_with(word); };
    CHECK(sa::is_signed_integer(t) == begins("int"));
    CHECK(sa::is_unsigned_integer(t) == begins("uint"));
    CHECK(sa::is_integer(t) == (begins("int") || begins("uint")));
    CHECK(sa::is_floating(t) == (begins("float") || begins("bfloat")));
    CHECK(sa::is_complex(t) == begins("complex"));
    CHECK(sa::is_inexact(t) == (begins("float") || begins("bfloat") || begins("complex")));
  }
  static_assert(sa::dtype_of<bool>() == sa::bool_ && sa::dtype_of<signed char>() == sa::int8 &&
                sa::dtype_of<unsigned char>() == sa::uint8 && sa::dtype_of<short>() == sa::int16 &&
                sa::dtype_of<unsigned short>() == sa::uint16 && sa::dtype_of<int>() == sa::int32 &&
                sa::dtype_of<unsigned>() == sa::uint32 && sa::dtype_of<long long>() == sa::int64 &&
                sa::dtype_of<std::size_t>() == sa::uint64 && sa::dtype_of<float>() == sa::float32 &&
                sa::dtype_of<double>() == sa::float64);
  static_assert(sa::Element<int> && !sa::Element<long double> && !sa::Element<Array>);
}

// ---------------------------------------------------------------- edges
TEST_CASE("promises: fma rounds once") {
  const std::vector<float> a{1.0f + 0x1p-12f, 3.1f, -7.7e10f}, c{-1.0f, -9.61f, 5.5e20f};
  const std::vector<double> b{1.0 + 0x1p-30, 1e300}, d{-1.0, -1e300};
  const std::vector<float> got = sa::fma(sa::array(a), sa::array(a), sa::array(c)).to_vector<float>();
  for (std::size_t k = 0; k < a.size(); k++) CHECK(got[k] == std::fma(a[k], a[k], c[k]));
  const Values wide = sa::fma(sa::array(b), sa::array(b), sa::array(d)).to_vector<double>();
  for (std::size_t k = 0; k < b.size(); k++) CHECK(wide[k] == std::fma(b[k], b[k], d[k]));
  CHECK(got[0] != a[0] * a[0] + c[0]);  // two roundings would show
}

TEST_CASE("promises: round takes decimals, halves go to even") {
  CHECK(values(sa::round(floats({0.5, 1.5, 2.5, -0.5, -1.5, 2.4999}))) == Values{0, 2, 2, 0, -2, 2});
  const auto two = sa::round(sa::array({0.125, 0.375, -1.625, 2.25}, sa::float64), 2).to_vector<double>();
  CHECK(two == Values{0.12, 0.38, -1.62, 2.25});
  CHECK(words(sa::round(sa::array({150, -7}), -2)) == Words{150, -7});
  CHECK(values(sa::round(sa::array({150.0, 250.0, 349.0}, sa::float64), -2)) == Values{200, 200, 300});
}

TEST_CASE("promises: NaN, signs and ties") {
  const Array x = floats({nan, -3, -0.0, 0, 2, inf, -inf});
  const Values s = values(sa::sign(x));
  CHECK(std::isnan(s[0]));
  CHECK(Values(s.begin() + 1, s.end()) == Values{-1, 0, 0, 1, 1, -1});
  for (const Binary& f : {Binary(sa::maximum), Binary(sa::minimum)}) {
    CHECK(std::isnan(values(f(floats({nan}), floats({1})))[0]));
    CHECK(std::isnan(values(f(floats({1}), floats({nan})))[0]));
  }
  CHECK(words(sa::maximum(sa::array({true, false}), sa::array({false, false}))) == Words{1, 0});
  CHECK(words(sa::minimum(sa::array({true, true}), sa::array({false, true}))) == Words{0, 1});
  CHECK(std::isnan(values(sa::max(x))[0]));
  CHECK(std::isnan(values(sa::min(x))[0]));
  const Array some = floats({1, 5, nan, 7, nan});
  CHECK(words(sa::argmax(some)) == Words{2});
  CHECK(words(sa::argmin(some)) == Words{2});
  CHECK(words(sa::argmax(sa::array({3, 9, 9, 1}))) == Words{1});  // the first of equals
  CHECK(words(sa::argmin(sa::array({{3, 1}, {1, 2}}))) == Words{1});
  // ties share the gradient
  CHECK(gradient([](auto& v) { return sa::maximum(v, floats({1, 1, 1})); }, {0, 1, 2}) == Values{0, 0.5, 1});
  CHECK(gradient([](auto& v) { return sa::minimum(floats({1, 1, 1}), v); }, {0, 1, 2}) == Values{1, 0.5, 0});
  CHECK(gradient(sa::max, {4, 1, 4, 4, 4}) == Values{0.25, 0, 0.25, 0.25, 0.25});
  CHECK(gradient(sa::min, {4, 1, 4, 1, 4}) == Values{0, 0.5, 0, 0.5, 0});
  CHECK(gradient(sa::relu, {-1, 0, 1}) == Values{0, 0, 1});
}

TEST_CASE("promises: what is not bool counts as not zero") {
  const Array x = floats({0, -0.0, 0.25, nan});
  CHECK(words(sa::logical_not(x)) == Words{1, 1, 0, 0});
  CHECK(words(sa::logical_and(x, 2)) == Words{0, 0, 1, 1});
  CHECK(words(sa::logical_or(x, 0)) == Words{0, 0, 1, 1});
  CHECK(words(sa::logical_xor(x, 3)) == Words{1, 1, 0, 0});
  CHECK(words(sa::where(x, 7, 8)) == Words{8, 8, 7, 7});
  CHECK(words(sa::any(x.reshape({2, 2}), 1)) == Words{0, 1});
  CHECK(words(sa::all(x.reshape({2, 2}), 1)) == Words{0, 1});
  CHECK(words(x.astype(sa::bool_)) == Words{0, 0, 1, 1});
}

TEST_CASE("promises: floats become integers by truncation, at the border by saturation") {
  const Array x = floats({2.9, -2.9, 300, -300, inf, -inf, nan});
  CHECK(words(x.astype(sa::int8)) == Words{2, -2, 127, -128, 127, -128, 0});
  CHECK(words(x.astype(sa::uint8)) == Words{2, 0, 255, 0, 255, 0, 0});
  CHECK(words(sa::array({1e30, -1e30}, sa::float64).astype(sa::int64)) ==
        Words{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
}

TEST_CASE("promises: sorting is ascending and stable, NaN last") {
  const Values sorted = values(sa::sort(floats({2, nan, -inf, 2, inf, -1, nan})));
  CHECK(Values(sorted.begin(), sorted.begin() + 5) == Values{-inf, -1, 2, 2, inf});
  CHECK((std::isnan(sorted[5]) && std::isnan(sorted[6])));
  const Array order = sa::argsort(floats({2, nan, 1, 2, 1, nan, 2}));
  CHECK(order.dtype() == sa::int32);
  CHECK(words(order) == Words{2, 4, 0, 3, 6, 1, 5});
  CHECK(words(sa::argsort(sa::array({{1, 0}, {0, 0}}), 0)) == Words{1, 0, 0, 1});
}

TEST_CASE("promises: var divides by n - ddof") {
  const Array x = sa::array({1, 2, 4, 9});
  const double squares = 38;  // around the mean 4: 9 + 4 + 0 + 25
  for (int ddof : {0, 1, 2})
    CHECK(sa::var(x, {}, ddof).item<float>() == doctest::Approx(squares / (4 - ddof)));
  CHECK(sa::var(x.reshape({2, 2}), {.axis = 1, .keepdims = true}, 1).shape() == Shape{2, 1});
}

TEST_CASE("promises: what an index outside takes") {
  const Array at = sa::array({1, 2, -3, 9});
  for (const auto& [t, low] : std::vector<std::pair<DType, std::int64_t>>{
           {sa::int8, -128}, {sa::int32, -2147483648ll}, {sa::uint8, 255}, {sa::uint32, 4294967295ll}})
    CHECK(words(sa::take(sa::array({10, 20}, t), at)) == Words{20, low, low, low});
  const Values f = values(sa::take(floats({10, 20}), at));
  CHECK(f[0] == 20);
  CHECK((std::isnan(f[1]) && std::isnan(f[2]) && std::isnan(f[3])));
  CHECK(words(sa::take(sa::array({10, 20}), at, 0, sa::TakeMode::clip)) == Words{20, 20, 10, 20});
}

TEST_CASE("promises: an update of a part leaves the array, and broadcasts the value") {
  const Array x = sa::array({{1, 2, 3}, {4, 5, 6}});
  const auto column = x.at({sa::all, 1});
  CHECK(words(column.get()) == Words{2, 5});
  CHECK(words(column.set(0)) == Words{1, 0, 3, 4, 0, 6});
  CHECK(words(column.add(sa::array({10, 20}))) == Words{1, 12, 3, 4, 25, 6});
  CHECK(words(column.mul(2)) == Words{1, 4, 3, 4, 10, 6});
  CHECK(words(column.min(3)) == Words{1, 2, 3, 4, 3, 6});
  CHECK(words(column.max(3)) == Words{1, 3, 3, 4, 5, 6});
  CHECK(words(x.at({sa::ellipsis}).set(sa::array({7, 8, 9}))) == Words{7, 8, 9, 7, 8, 9});
  CHECK(words(x) == Words{1, 2, 3, 4, 5, 6});
}

TEST_CASE("promises: comparing broadcasts, knows infinities, and refuses shapes that do not meet") {
  const Array x = floats({1, 2});
  CHECK(sa::allclose(sa::ones({3, 2}), 1));
  CHECK(sa::allclose(sa::broadcast_to(x, {3, 2}), x));
  CHECK(sa::allclose(floats({inf, -inf}), floats({inf, -inf})));
  CHECK_FALSE(sa::allclose(floats({inf}), floats({-inf})));
  CHECK_FALSE(sa::allclose(floats({inf}), floats({1e38})));
  CHECK_FALSE(sa::allclose(floats({1e38}), floats({inf})));
  CHECK_FALSE(sa::allclose(sa::array({1}, sa::uint32), sa::array({2}, sa::uint32)));
  CHECK(sa::allclose(sa::array({1}, sa::uint32), sa::array({2}, sa::uint32), {.atol = 1}));
  CHECK(sa::allclose(sa::array({-128}, sa::int8), sa::array({127}, sa::int8), {.atol = 255}));
  CHECK_FALSE(sa::allclose(sa::array({-128}, sa::int8), sa::array({127}, sa::int8), {.atol = 254.5}));
  CHECK(sa::allclose(sa::array({true, false}), sa::array({true, false})));
  CHECK_FALSE(sa::allclose(sa::array({true}), sa::array({false})));
  CHECK(sa::allclose(floats({100}), floats({100.0005})));  // rtol of the second
  CHECK(message<sa::ShapeError>([&] { sa::allclose(x, sa::ones({3})); }) != "");
  CHECK(sa::array_equal(x, sa::array({1, 2}, sa::int8)));
  CHECK_FALSE(sa::array_equal(x, x.reshape({1, 2})));
  CHECK_FALSE(sa::array_equal(floats({nan}), floats({nan})));
  CHECK_FALSE(sa::array_equal(x, floats({1, 3})));
}

// ---------------------------------------------------------------- random numbers, optimizers
TEST_CASE("promises: bounds of whole random numbers are clipped, an empty range is its lower bound") {
  const Array key = sa::random::key(3);
  CHECK(words(sa::random::randint(key, {3}, 7, 7)) == Words{7, 7, 7});
  CHECK(words(sa::random::randint(key, {3}, 7, -2)) == Words{7, 7, 7});
  for (const auto v : words(sa::random::randint(key, {500}, -1000, 1000, sa::int8)))
    CHECK((v >= -128 && v <= 127));
  for (const auto v : words(sa::random::randint(key, {500}, -5, 3, sa::uint8))) CHECK((v >= 0 && v < 3));
  const Array p = sa::array({0.0, 1.0, 0.0});
  CHECK(words(sa::random::bernoulli(key, p)) == Words{0, 1, 0});
  CHECK(words(sa::random::bernoulli(key, p, {2, 3})) == Words{0, 1, 0, 0, 1, 0});
  CHECK(words(sa::random::choice(key, 3, {4}, {.p = p})) == Words{1, 1, 1, 1});
  Words drawn = words(sa::random::choice(key, 5, {5}, {.replace = false}));
  std::sort(drawn.begin(), drawn.end());
  CHECK(drawn == Words{0, 1, 2, 3, 4});
}

TEST_CASE(
    "promises: an optimizer's state lies where its parameters lie, and its count ends at the largest int32") {
  const sa::Sharding rows = sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P("x"));
  const Array w = sa::device_put(sa::ones({16, 2}), rows);
  const auto adam = sa::optim::adam(0.1);
  auto state = adam.init(w);
  const auto momentum = sa::optim::sgd(0.1, {.momentum = 0.9}).init(w);
  for (const Array& a : {state.mu, state.nu, momentum.trace}) {
    CHECK(a.sharding() == rows);
    CHECK(a.committed());
    CHECK(values(a) == Values(32, 0.0));
  }
  CHECK_FALSE(momentum.count.has_value());
  const auto plain = sa::optim::sgd(0.1).init(w);
  CHECK_FALSE(plain.trace.has_value());
  CHECK_FALSE(plain.count.has_value());
  CHECK(state.count.dtype() == sa::int32);
  state.count = sa::array(2147483646, sa::int32);
  for (int k = 0; k < 3; k++) state = adam.update(w, state).second;
  CHECK(words(state.count) == Words{2147483647});
}

// ---------------------------------------------------------------- names of C
namespace beside_c {
using namespace shardarray;

TEST_CASE("promises: functions of arrays stand beside C's of the same names") {
  const Array x = floats({-1.5, 2.25});
  CHECK(values(abs(x)) == Values{1.5, 2.25});
  CHECK(values(floor(x)) == Values{-2, 2});
  CHECK(values(ceil(x)) == Values{-1, 3});
  CHECK(values(trunc(x)) == Values{-1, 2});
  CHECK(values(round(x)) == Values{-2, 2});
  CHECK(values(round(x, 1)) == Values{-1.5, 2.2f});
  CHECK(values(pow(x, 2)) == Values{2.25, 5.0625});
  CHECK(values(pow(2, x)) == values(sa::power(2, x)));
  CHECK(pow(sa::arange(3), 2).dtype() == sa::int32);
  CHECK(values(remainder(x, 2)) == Values{0.5, 0.25});
  CHECK(values(fma(x, 2, 1)) == Values{-2, 5.5});
  CHECK(values(sqrt(floats({4}))) == Values{2});
  CHECK(values(isnan(x)) == Values{0, 0});
  CHECK(values(isinf(x) | isfinite(x)) == Values{1, 1});
  for (const Array& zero : {exp(x) - sa::exp(x), log(x * x) - sa::log(x * x), atan(x) - sa::arctan(x),
                            atan2(x, x) - sa::arctan2(x, x), asin(x / 4) - sa::arcsin(x / 4)})
    CHECK(values(zero) == Values{0, 0});
  CHECK(std::is_same_v<decltype(abs(-2.5)), double>);
  CHECK(abs(-3) == 3);
  CHECK(floor(2.5) == 2);
  CHECK(pow(2.0, 3) == 8);
  CHECK(round(2.5) == 3);
  const std::vector<bool> bits{true, false, true};  // other types keep their operators
  std::size_t count = 0;
  for (std::size_t k = 0; k < bits.size(); k++) count += bits[k];
  CHECK(count == 2);
}

TEST_CASE("promises: functions whose names C has too are passed as function objects are") {
  const Array x = floats({0.5, 0.25});
  CHECK(values(sa::vmap(sa::tanh)(x)) == values(sa::tanh(x)));
  CHECK(values(sa::jit(sa::exp)(x)) == values(sa::jit([](const Array& v) { return sa::exp(v); })(x)));
  CHECK(values(sa::vmap(sa::grad(sa::sin))(x)) ==
        gradient([](const Array& v) { return sa::sin(v); }, {0.5, 0.25}));
  const auto model = sa::nn::mlp(2, 2, 4, 1, sa::tanh, sa::random::key(0));
  const auto same = sa::nn::mlp(
      2, 2, 4, 1, [](const Array& v) { return sa::tanh(v); }, sa::random::key(0));
  CHECK(values(sa::jit(model)(x)) == values(sa::jit(same)(x)));
}

TEST_CASE("promises: sizes and axes stand in a row or in a list") {
  const Array x = sa::arange(24);
  CHECK(x.reshape(2, 3, 4).shape() == Shape{2, 3, 4});
  CHECK(sa::reshape(x, 1, 2, 3, 1, 4, 1).shape() == Shape{1, 2, 3, 1, 4, 1});
  CHECK(sa::reshape(x, {24}).shape() == sa::reshape(x, 24).shape());
  CHECK(x.reshape({-1}).shape() == x.reshape(-1).shape());
  const Array y = x.reshape(2, 12);
  CHECK(words(y.sum(0)) == words(sa::sum(y, {.axis = 0})));
  CHECK(words(y.max(-1)) == Words{11, 23});
  CHECK(words(y.min({1})) == Words{0, 12});
  CHECK(values(y.mean(1)) == Values{5.5, 17.5});
  CHECK(words(y.prod(1)) == Words{0, sa::prod(y, 1)[1].item<std::int64_t>()});
  CHECK(words(y.any(1)) == Words{1, 1});
  CHECK(words(y.all(1)) == Words{0, 1});
  CHECK(words(sa::full(3, 7)) == Words{7, 7, 7});
  CHECK(values(sa::einsum(std::string_view("ij->i"), y)) == Values{66, 210});
}

}  // namespace beside_c

}  // namespace promises_ops_test
