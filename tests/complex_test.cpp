// Complex arrays: JAX's and numpy's numbers (complex.json), printing, what is stored where, transfers, donation, messages.
#include "shardarray/complex.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "golden.h"
#include "messages.h"
#include "program_of.h"

namespace complex_test {

namespace sa = shardarray;
using golden::Json;
using program_test::prepare;
using sa::Array;
using sa::P;
using Arrays = std::vector<Array>;
using Number = std::complex<double>;

namespace {

void check_close(const Array& got, const Json& want, double tolerance, const std::string& what) {
  REQUIRE_MESSAGE(got.shape() == golden::shape_of(want["shape"]), what);
  const auto mine = got.to_vector<Number>();
  const auto theirs = golden::complex_numbers(want);
  for (std::size_t k = 0; k < mine.size(); k++) {
    const auto same = [&](double a, double b) {
      return (std::isnan(a) && std::isnan(b)) || a == b ||
             std::abs(a - b) <= tolerance * std::max(1.0, std::abs(theirs[k]));
    };
    CHECK_MESSAGE((same(mine[k].real(), theirs[k].real()) && same(mine[k].imag(), theirs[k].imag())),
                  what << " at " << k << ": " << mine[k] << " for " << theirs[k]);
  }
}

using Function = std::function<Array(const Arrays&, std::int64_t)>;
const std::map<std::string, Function>& functions() {
#define UNARY(name)                                                     \
  {                                                                     \
#name, [](const Arrays& x, std::int64_t) { return sa::name(x[0]); } \
  }
#define BINARY(name)                                                          \
  {                                                                           \
#name, [](const Arrays& x, std::int64_t) { return sa::name(x[0], x[1]); } \
  }
#define ALONG(name)                                                                          \
  {                                                                                          \
#name, [](const Arrays& x, std::int64_t axis) { return sa::name(x[0], {.axis = axis}); } \
  }
  static const std::map<std::string, Function> all{
      UNARY(negative),
      UNARY(abs),
      UNARY(sign),
      UNARY(conj),
      UNARY(real),
      UNARY(imag),
      UNARY(angle),
      UNARY(square),
      UNARY(reciprocal),
      UNARY(exp),
      UNARY(expm1),
      UNARY(exp2),
      UNARY(log),
      UNARY(log1p),
      UNARY(log2),
      UNARY(log10),
      UNARY(sqrt),
      UNARY(rsqrt),
      UNARY(sin),
      UNARY(cos),
      UNARY(tan),
      UNARY(sinh),
      UNARY(cosh),
      UNARY(tanh),
      UNARY(arcsin),
      UNARY(arccos),
      UNARY(arctan),
      UNARY(arcsinh),
      UNARY(arccosh),
      UNARY(arctanh),
      UNARY(sigmoid),
      BINARY(add),
      BINARY(subtract),
      BINARY(multiply),
      BINARY(divide),
      BINARY(power),
      BINARY(arctan2),
      BINARY(equal),
      BINARY(not_equal),
      BINARY(less),
      BINARY(less_equal),
      BINARY(greater),
      BINARY(greater_equal),
      BINARY(maximum),
      BINARY(minimum),
      BINARY(matmul),
      BINARY(vdot),
      BINARY(dot),
      ALONG(sum),
      ALONG(prod),
      ALONG(mean),
      ALONG(var),
      ALONG(std),
      ALONG(cumsum),
      ALONG(cumprod),
      ALONG(max),
      ALONG(min),
      ALONG(argmax),
      ALONG(argmin),
      ALONG(nansum),
      ALONG(nanprod),
      ALONG(nanmean),
      ALONG(nanvar),
      ALONG(nanstd),
      ALONG(nancumsum),
      ALONG(nancumprod),
      ALONG(nanmax),
      ALONG(nanmin),
      ALONG(nanargmax),
      ALONG(nanargmin),
      {"sum_all", [](const Arrays& x, std::int64_t) { return sa::sum(x[0]); }},
      {"prod_all", [](const Arrays& x, std::int64_t) { return sa::prod(x[0]); }},
      {"sort", [](const Arrays& x, std::int64_t axis) { return sa::sort(x[0], axis); }},
      {"argsort", [](const Arrays& x, std::int64_t axis) { return sa::argsort(x[0], axis); }}};
#undef UNARY
#undef BINARY
#undef ALONG
  return all;
}

/// Small whole numbers: sums and products are exact in any order.
Array numbers(const sa::Shape& shape, sa::DType t = sa::complex64) {
  return sa::complex(program_test::numbers(shape), program_test::numbers(shape, sa::float32, 1)).astype(t);
}
std::vector<Number> values(const Array& z) { return sa::testing::read<Number>(z); }

}  // namespace

TEST_CASE("complex: JAX's values and pullbacks") {
  const Json cases = golden::load("complex.json")["cases"];
  std::size_t checked = 0;
  for (const Json& c : cases) {
    const std::string name = c["name"];
    REQUIRE_MESSAGE(functions().contains(name), name);
    const Function& f = functions().at(name);
    const std::int64_t axis = c["attrs"].value("axis", std::int64_t{0});
    const bool edge = c["attrs"].contains("edge");
    for (const sa::DType t : {sa::complex128, sa::complex64}) {
      if (edge && t == sa::complex64) continue;  // out of its range
      const double tolerance = t == sa::complex128 ? 1e-12 : 2e-5;
      const std::string what = name + " of " + sa::name(t);
      Arrays x;
      for (const Json& j : c["in"]) x.push_back(golden::array_of_parts(j, t));
      check_close(f(x, axis), c["out"], tolerance, what);
      check_close(sa::jit([&](const Arrays& a) { return f(a, axis); })(x), c["out"], tolerance,
                  what + " in jit");
      checked++;
      if (c["back"].empty()) continue;
      const auto [y, pull] = sa::vjp([&](const Arrays& a) { return f(a, axis); }, x);
      const auto [back] = pull(golden::array_of_parts(c["given"], t));
      for (std::size_t k = 0; k < x.size(); k++)
        check_close(back[k], c["back"][k], 20 * tolerance, what + ", pulled back to " + std::to_string(k));
    }
  }
  CHECK(checked > 120);
}

TEST_CASE("complex: printed as numpy prints") {
  const Json all = golden::load("complex.json");
  for (const Json& c : all["texts"]) {
    const Array z = sa::array(golden::complex_numbers(c["array"]), golden::shape_of(c["array"]["shape"]),
                              golden::dtype_named(c["dtype"]));
    CHECK(sa::to_string(z) == c["text"].get<std::string>());
  }
}

TEST_CASE("complex: elements of C++ programs") {
  static_assert(sa::dtype_of<std::complex<float>>() == sa::complex64);
  static_assert(sa::dtype_of<std::complex<double>>() == sa::complex128);
  const std::vector<std::complex<float>> v{{1, 2}, {3, -4}};
  const Array z = sa::array(v);
  CHECK(z.dtype() == sa::complex64);
  CHECK(z.to_vector<std::complex<float>>() == v);
  CHECK(z.to_vector<Number>() == std::vector<Number>{{1, 2}, {3, -4}});
  CHECK(z[1].item<std::complex<float>>() == std::complex<float>(3, -4));
  CHECK(z[1].item<Number>() == Number(3, -4));
  CHECK(sa::array({std::complex(0.0, 1.0), 2.0}).to_vector<Number>() == std::vector<Number>{{0, 1}, {2, 0}});
  CHECK(sa::array({1, 2}, sa::complex128).dtype() == sa::complex128);
  CHECK(values(sa::array({1, 2}, sa::complex128)) == std::vector<Number>{1, 2});
  CHECK(values(sa::zeros({2}, sa::complex64)) == std::vector<Number>(2));
  CHECK(values(sa::ones({2}, sa::complex128)) == std::vector<Number>(2, 1));
  CHECK(values(sa::full({2}, Number(1, -1), sa::complex64)) == std::vector<Number>(2, {1, -1}));
  CHECK(values(sa::eye(2, 2, 0, sa::complex64)) == std::vector<Number>{1, 0, 0, 1});
  CHECK(z.nbytes() == 16);
  CHECK(values(sa::pad(z, 1, Number(0, -1))) == std::vector<Number>{{0, -1}, {1, 2}, {3, -4}, {0, -1}});
  // only a cast drops imaginary parts
  CHECK_SAYS(
      z.to_vector<float>(),
      "to_vector: c64[2] has imaginary parts, float32 has no place for them. They are not dropped where "
      "an array is read. Read std::complex<float> or std::complex<double>, or real(x), imag(x) or abs(x).",
      sa::DTypeError);
  CHECK(z.astype(sa::int32).to_vector<int>() == std::vector<int>{1, 3});
  CHECK(sa::array({Number(0, 1), Number(0, 0)}).astype(sa::bool_).to_vector<bool>() ==
        std::vector<bool>{true, false});
  CHECK(static_cast<bool>(sa::array({Number(0, 1)})));
  CHECK(z.astype(sa::complex128).astype(sa::complex64).to_vector<std::complex<float>>() == v);
  CHECK(values(sa::array({true, false}).astype(sa::complex64)) == std::vector<Number>{1, 0});
  CHECK(sa::to_string(z[0]) == "(1+2j)");
  // one piece for each device
  const sa::Sharding s = sa::NamedSharding(sa::make_mesh({{"x", 8}}), P("x"));
  const Array pieces = sa::core::from_callback(
      {8}, s,
      [](const sa::ShardIndex& i) {
        const auto at = static_cast<double>(i[0].start);
        return sa::array({Number(at, -at)}, sa::complex64);
      },
      sa::Where::here());
  for (int k = 0; k < 8; k++) CHECK(pieces[k].item<Number>() == Number(k, -k));
}

TEST_CASE("complex: numbers are weak") {
  const Array x = sa::ones({2}), d = sa::ones({2}, sa::float64), z = sa::ones({2}, sa::complex128);
  const std::complex<float> i(0, 1);
  CHECK((x * i).dtype() == sa::complex64);
  CHECK((d * i).dtype() == sa::complex128);
  CHECK((z * i).dtype() == sa::complex128);
  CHECK((sa::ones({2}, sa::int8) + i).dtype() == sa::complex64);
  CHECK((sa::ones({2}, sa::bfloat16) + i).dtype() == sa::complex64);
  CHECK((z + 1).dtype() == sa::complex128);
  CHECK(Array(i).weak_type());
  CHECK(Array(i).dtype() == sa::complex64);
  // all digits of the number
  CHECK(values(d * Number(0.1, 0.2)) == std::vector<Number>(2, {0.1, 0.2}));
  CHECK(values(x * i * i) == std::vector<Number>(2, -1));
  CHECK(values(sa::complex(1.5, sa::array({1, 2}))) == std::vector<Number>{{1.5, 1}, {1.5, 2}});
  CHECK(sa::complex(sa::ones({2}, sa::float16), 1).dtype() == sa::complex64);
  CHECK(sa::complex(d, 1).dtype() == sa::complex128);
  // a real number scales both parts: no NaN is made of an infinite one
  const Array inf = sa::complex(sa::array({INFINITY}), 1);
  CHECK(values(inf * 2) == std::vector<Number>{{INFINITY, 2}});
  CHECK(values(inf / 2) == std::vector<Number>{{INFINITY, 0.5}});
}

TEST_CASE("complex: parts of real numbers") {
  const Array x = sa::array({-1.5, 0.0, 2.0}), n = sa::array({-1, 2});
  CHECK(sa::real(x).to_vector<float>() == x.to_vector<float>());
  CHECK(sa::imag(x).to_vector<float>() == std::vector<float>(3));
  CHECK(sa::conj(n).to_vector<int>() == std::vector<int>{-1, 2});
  CHECK(sa::angle(x).to_vector<float>() == std::vector<float>{std::acos(-1.f), 0, 0});
  CHECK(sa::iscomplex(n).to_vector<bool>() == std::vector<bool>(2, false));
  CHECK(sa::isreal(sa::array({Number(1, 0), Number(0, 1)})).to_vector<bool>() ==
        std::vector<bool>{true, false});
  CHECK(sa::iscomplex(sa::array({Number(1, 0), Number(0, 1)})).to_vector<bool>() ==
        std::vector<bool>{false, true});
  const Array odd = sa::array({Number(NAN, 0), Number(0, INFINITY), Number(1, 1)});
  CHECK(sa::isnan(odd).to_vector<bool>() == std::vector<bool>{true, false, false});
  CHECK(sa::isinf(odd).to_vector<bool>() == std::vector<bool>{false, true, false});
  CHECK(sa::isfinite(odd).to_vector<bool>() == std::vector<bool>{false, false, true});
  CHECK(sa::allclose(odd[2], odd[2] + 1e-9));
}

TEST_CASE("complex: derivatives as JAX defines them") {
  const Array z = sa::array({Number(3, 4), Number(-1, 0.5)});
  // dL/dx - i dL/dy
  CHECK(values(sa::grad([](const Array& v) { return sa::sum(sa::square(sa::abs(v))); })(z)) ==
        std::vector<Number>{{6, -8}, {-2, -1}});
  CHECK(values(sa::grad([](const Array& v) { return sa::sum(sa::real(v) * 2 + sa::imag(v)); })(z)) ==
        std::vector<Number>{{2, -1}, {2, -1}});
  CHECK(values(sa::grad([](const Array& v) { return sa::abs(v); })(sa::zeros({}, sa::complex64))) ==
        std::vector<Number>{0});
  // of a real argument through complex numbers
  const auto power = [](const Array& x) {
    const Array w = sa::exp(x * Number(0, 1)) + x;
    return sa::sum(sa::real(w * sa::conj(w)));
  };
  const Array x = sa::array({0.5, -1.25}, sa::float64);
  const auto slope = sa::grad(power)(x).to_vector<double>();
  for (std::size_t k = 0; k < 2; k++) {
    const double at = x.to_vector<double>()[k];
    // |e^(ix) + x|^2 = 1 + x^2 + 2 x cos x
    CHECK(slope[k] == doctest::Approx(2 * at + 2 * std::cos(at) - 2 * at * std::sin(at)));
  }
  // forward and back agree, and so do second derivatives of what is holomorphic
  const Array t = sa::array({Number(0.5, -1), Number(2, 0.25)});
  const auto [value, pushed] =
      sa::jvp([](const Array& v) { return v * v * v; }, std::tuple(z), std::tuple(t));
  CHECK(sa::allclose(pushed, 3 * z * z * t));
  const auto twice = [](const Array& v) {
    const auto [y, pull] = sa::vjp([](const Array& u) { return sa::sum(u * u * u); }, v);
    return std::get<0>(pull(sa::ones({}, sa::complex64)));
  };
  const auto [first, pull] = sa::vjp(twice, z);
  CHECK(sa::allclose(first, 3 * z * z));
  CHECK(sa::allclose(std::get<0>(pull(t)), 6 * z * t));
  CHECK_SAYS(sa::grad([](const Array& v) { return sa::sum(v); })(z),
             "grad: the function returned c64[]. A gradient is one of a real number. Take the real part, or "
             "abs(x), or use vjp for complex results.",
             sa::DTypeError);
}

TEST_CASE("complex: maps, trees and control flow") {
  const Array z = numbers({8, 3}), w = numbers({3});
  const auto f = [](const Array& a, const Array& b) { return sa::exp(a * 0.1) * b - sa::sum(a); };
  const Array rows = sa::vmap(f, {.in_axes = {0, sa::none}})(z, w);
  for (int k = 0; k < 8; k++) CHECK(sa::allclose(rows[k], f(z[k], w), {.rtol = 1e-5}));
  const auto summed = sa::pmap([](const Array& a) { return sa::psum(a * a, "i") + a; }, {.axis_name = "i"});
  CHECK(values(summed(z)) == values(sa::sum(z * z, {.axis = 0, .keepdims = true}) + z));
  CHECK(values(sa::pmap([](const Array& a) { return sa::all_gather(a, "i"); }, {.axis_name = "i"})(z)[5]) ==
        values(z));
  CHECK(values(sa::pmap([](const Array& a) { return sa::psum_scatter(a, "i"); }, {.axis_name = "i"})(
            numbers({8, 8}))) == values(sa::sum(numbers({8, 8}), {.axis = 0})));
  const auto [last, all] = sa::scan(
      [](const Array& carry, const Array& row) {
        const Array next = carry * Number(0, 1) + row;
        return std::pair(next, next);
      },
      sa::zeros({3}, sa::complex64), z);
  Array carry = sa::zeros({3}, sa::complex64);
  for (int k = 0; k < 8; k++) CHECK(values(all[k]) == values(carry = carry * Number(0, 1) + z[k]));
  CHECK(values(last) == values(carry));
}

TEST_CASE("complex: every placement has the values of one device") {
  const sa::Mesh one = sa::make_mesh({{"x", 8}}), two = sa::make_mesh({{"x", 2}, {"y", 4}});
  struct Row {
    const char* name;
    std::function<Array(const Array&, const Array&)> f;
  };
  const std::vector<Row> rows{
      {"elementwise", [](const Array& a, const Array& b) { return a * b - sa::conj(b) + 2; }},
      {"sums", [](const Array& a, const Array&) { return sa::sum(a, {.axis = 0}) + sa::sum(a); }},
      {"sums that are moved", [](const Array& a, const Array&) { return sa::flip(sa::sum(a, {.axis = 0})); }},
      {"product", [](const Array& a, const Array& b) { return sa::matmul(a.T(), b); }},
      {"product over columns", [](const Array& a, const Array& b) { return sa::matmul(a, b.T()); }},
      {"roll", [](const Array& a, const Array& b) { return sa::roll(a, 1, 0) * b; }},
      {"concatenate",
       [](const Array& a, const Array& b) {
         return sa::concatenate({a, b}, 0) + 1;
       }},
      {"pad",
       [](const Array& a, const Array&) {
         return sa::pad(a * a, {{1, 2}, {0, 1}}, 3);
       }},
      {"take",
       [](const Array& a, const Array&) {
         return sa::take(a, sa::array({2, 0, 1, 2}), 0);
       }},
      {"set",
       [](const Array& a, const Array& b) {
         return a.at(sa::array({1, 0})).set(b[{sa::slice(0, 2)}]);
       }},
      {"add at",
       [](const Array& a, const Array& b) {
         return a.at(sa::array({1, 1})).add(b[{sa::slice(0, 2)}]);
       }},
      {"cumsum", [](const Array& a, const Array&) { return sa::cumsum(a, {.axis = 0}); }},
      {"sort", [](const Array& a, const Array&) { return sa::sort(a, 0); }},
      {"reshape", [](const Array& a, const Array&) { return a.reshape(-1) * 2; }}};
  for (const sa::Shape& shape : {sa::Shape{8, 8}, sa::Shape{7, 5}, sa::Shape{16, 4}})
    for (const sa::DType t : {sa::complex64, sa::complex128}) {
      const Array a = numbers(shape, t), b = numbers(shape, t) * Number(0, 1) + 1;
      for (const Row& row : rows) {
        const auto want = values(row.f(a, b));
        for (const sa::Sharding& s : std::vector<sa::Sharding>{
                 sa::NamedSharding(one, P("x")), sa::NamedSharding(one, P(sa::none, "x")),
                 sa::NamedSharding(two, P("x", "y")), sa::NamedSharding(two, P("y")),
                 sa::NamedSharding(two, P(sa::none, sa::axes("x", "y")))}) {
          const Array p = sa::device_put(a, s), q = sa::device_put(b, sa::NamedSharding(one, P()));
          const auto mine = s.to_string().find("y") == std::string::npos ? q : sa::device_put(b, s);
          CHECK_MESSAGE(values(sa::jit(row.f)(p, mine)) == want,
                        row.name << " of " << sa::to_string(shape) << " " << s.to_string());
          CHECK(values(sa::device_put(p, sa::NamedSharding(one, P(sa::none, "x")))) == values(a));
        }
      }
    }
}

TEST_CASE("complex: no array comes apart where it only moves, and sums cross once") {
  const sa::Sharding rows = sa::NamedSharding(sa::make_mesh({{"x", 8}}), P("x")),
                     columns = sa::NamedSharding(sa::make_mesh({{"x", 8}}), P(sa::none, "x"));
  const Array z = sa::device_put(numbers({8, 8}), rows);
  const auto moved = prepare(sa::jit([&](const Array& a) { return sa::filter_shard(a, columns); }), z);
  REQUIRE(moved.program().transfers.size() == 1);
  CHECK(moved.program().transfers[0].dtype == sa::complex64);
  const auto summed = prepare(sa::jit([](const Array& a) { return sa::sum(a * a, {.axis = 0}); }), z);
  REQUIRE(summed.program().transfers.size() == 1);
  CHECK(summed.program().transfers[0].kind == sa::TransferKind::all_reduce);
  CHECK(summed.program().transfers[0].dtype == sa::complex64);
  CHECK(summed.program().transfers[0].bytes <= 8 * 8 * 8);
  // what is computed of parts alone is one loop over the array, without parts in memory
  const auto one = prepare(sa::jit([](const Array& a) { return sa::exp(a) * a / (a + 1) - sa::conj(a); }),
                           numbers({40, 24}));
  CHECK(one.program().steps.size() == 1);
  CHECK(prepare(sa::jit([](const Array& a) { return sa::sum(a * sa::conj(a), {.axis = 1}); }),
                numbers({40, 24}))
            .program()
            .steps.size() == 1);
}

TEST_CASE("complex: donated memory is written in place") {
  const auto step = [](const Array& a) { return a * a + sa::conj(a); };
  const Array z = numbers({33, 7});
  const auto want = values(step(z));
  Array given = numbers({33, 7});
  const auto f = sa::jit(step);
  CHECK(sa::explain(f, std::move(given)).to_string().find("reused") != std::string::npos);
  Array again = numbers({33, 7});
  CHECK(values(f(std::move(again))) == want);
  // both parts of each element are read before one is written; elsewhere nothing is overwritten
  const auto turned = sa::jit([](const Array& a) { return sa::flip(a) * Number(0, 1); });
  Array other = numbers({33, 7});
  CHECK(values(turned(std::move(other))) == values(sa::flip(z) * Number(0, 1)));
  const auto swapped = sa::jit([](const Array& a) { return sa::complex(sa::imag(a), sa::real(a)); });
  Array third = numbers({33, 7});
  CHECK(values(swapped(std::move(third))) == values(sa::complex(sa::imag(z), sa::real(z))));
}

TEST_CASE("complex: what is no function of complex numbers says so") {
  const Array z = numbers({2}), x = sa::ones({2});
  const std::string rest =
      ": an operand is c64[2]. It is not defined for complex numbers. Give it real(x), imag(x) or abs(x).";
  CHECK_SAYS(sa::relu(z), "relu" + rest, sa::DTypeError);
  CHECK_SAYS(sa::hypot(z, z), "hypot" + rest, sa::DTypeError);
  CHECK_SAYS(sa::erf(z), "erf" + rest, sa::DTypeError);
  CHECK_SAYS(sa::floor(z), "floor: the operand is c64[2]. It takes real numbers. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(sa::complex(z, x), "complex: the operand is c64[2]. It takes real numbers. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(z % x, "remainder: the operand is c64[2]. It takes real numbers. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(z & z, "bitwise_and: the operand is c64[2]. It takes integers and bool. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(sa::cummax(z),
             "cummax: an operand is c64[2]. Only running sums and products are defined for complex numbers. "
             "Give it real(x), imag(x) or abs(x).",
             sa::DTypeError);
  CHECK_SAYS(
      z.at(sa::array({0})).max(z[{sa::slice(0, 1)}]),
      "at.max: an operand is c64[1]. Only sums of rows are defined for complex numbers. Give it real(x), "
      "imag(x) or abs(x).",
      sa::DTypeError);
  CHECK_SAYS(
      x.at(0).set(z[0]),
      "at.set: c64[] in an array f32[2]. Its imaginary part would be lost: x.astype(complex64) holds it, "
      "real(v) drops it.",
      sa::DTypeError);
  CHECK_SAYS(
      z[0].item<float>(),
      "item: a value of complex64 does not fit exactly into float32. A number is read into a type that holds "
      "every one. Say x.item<std::complex<float>>(), or real(x).astype(float32).item<float>().",
      sa::DTypeError);
  CHECK_SAYS(
      sa::arange(3, sa::complex64),
      "arange: dtype complex64. The result is of bool, integers or real floats. Convert it with astype.",
      sa::DTypeError);
}

}  // namespace complex_test
