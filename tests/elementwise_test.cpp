// The functions of powers.cpp, special.cpp, parts.cpp and activations.cpp compared with JAX at edge values, with its dtypes; the parts
// of numbers compared with C. Numbers: data/elementwise.json.
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "golden.h"
#include "messages.h"
#include "shardarray/shardarray.h"

namespace elementwise_test {

namespace sa = shardarray;
using golden::Json;
using sa::Array;

using sa::testing::message_of;

namespace {

const Json& data() {
  static const Json all = golden::load("elementwise.json");
  return all;
}
std::vector<double> numbers(const Json& list) {
  std::vector<double> r;
  for (const Json& v : list) r.push_back(golden::number(v));
  return r;
}
Array floats(const Json& list) {
  const std::vector<double> v = numbers(list);
  return sa::array(std::vector<float>(v.begin(), v.end()));
}

using Unary = std::function<Array(const Array&)>;
using Binary = std::function<Array(const Array&, const Array&)>;
using Pair = std::pair<Array, Array>;

const std::map<std::string, Unary> unaries = {
    {"exp2", sa::exp2},
    {"log2", sa::log2},
    {"log10", sa::log10},
    {"cbrt", sa::cbrt},
    {"arcsinh", sa::asinh},
    {"arccosh", sa::acosh},
    {"arctanh", sa::atanh},
    {"degrees", sa::rad2deg},
    {"radians", sa::deg2rad},
    {"rint", sa::rint},
    {"positive", sa::positive},
    {"signbit", sa::signbit},
    {"isposinf", sa::isposinf},
    {"isneginf", sa::isneginf},
    {"nan_to_num", [](const Array& x) { return sa::nan_to_num(x); }},
    {"lgamma", sa::lgamma},
    {"digamma", sa::digamma},
    {"i0", sa::i0},
    {"ndtr", sa::ndtr},
    {"ndtri", sa::ndtri},
    {"entr", sa::entr},
    {"logit", sa::logit},
    {"expit", sa::expit},
    {"log_sigmoid", sa::log_sigmoid},
    {"relu6", sa::relu6},
    {"elu", [](const Array& x) { return sa::elu(x); }},
    {"selu", sa::selu},
    {"celu", [](const Array& x) { return sa::celu(x); }},
    {"leaky_relu", [](const Array& x) { return sa::leaky_relu(x); }},
    {"softplus", sa::softplus},
    {"soft_sign", sa::soft_sign},
    {"mish", sa::mish},
    {"hard_tanh", sa::hard_tanh},
    {"hard_sigmoid", sa::hard_sigmoid},
    {"hard_silu", sa::hard_swish},
    {"squareplus", [](const Array& x) { return sa::squareplus(x); }},
    {"population_count", sa::population_count},
    {"bitwise_count", sa::bitwise_count},
    {"clz", sa::clz}};
const std::map<std::string, Binary> binaries = {
    {"hypot", sa::hypot},
    {"logaddexp", sa::logaddexp},
    {"logaddexp2", sa::logaddexp2},
    {"copysign", sa::copysign},
    {"nextafter", sa::nextafter},
    {"isclose", [](const Array& a, const Array& b) { return sa::isclose(a, b); }},
    {"fmod", sa::rem},
    {"fmax", sa::fmax},
    {"fmin", sa::fmin},
    {"float_power", sa::float_power},
    {"heaviside", sa::heaviside},
    {"xlogy", sa::xlogy},
    {"xlog1py", sa::xlog1py},
    {"elu", [](const Array& x, const Array& a) { return sa::elu(x, a); }},
    {"leaky_relu", [](const Array& x, const Array& a) { return sa::leaky_relu(x, a); }},
    {"celu", [](const Array& x, const Array& a) { return sa::celu(x, a); }},
    {"squareplus", [](const Array& x, const Array& a) { return sa::squareplus(x, a); }},
    {"gcd", sa::gcd},
    {"lcm", sa::lcm},
    {"ldexp", [](const Array& x, const Array& n) { return sa::ldexp(x, n); }}};

/// The gradient of the sum.
Array slope_of(const Unary& f, const Array& x) {
  return sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x);
}

/// Where JAX's numbers are not taken over: they overflow on the way, are NaN where the function goes to a limit, or are junk
/// outside of its domain. The docs say what is given.
using Where = std::function<bool(double, double)>;
const std::map<std::string, Where> other_values = {
    {"i0", [](double x, double) { return std::isinf(x); }},
    {"celu", [](double, double alpha) { return !std::isfinite(alpha) || alpha == 0; }}};
const std::map<std::string, Where> other_slopes = {
    {"arccosh", [](double x, double) { return x < 1; }},
    {"digamma", [](double x, double) { return std::isinf(x); }},
    {"i0", [](double x, double) { return std::abs(x) > 80; }},
    {"ndtri", [](double x, double) { return x == 0 || x == 1; }},
    {"logit", [](double x, double) { return x == 0 || std::isinf(x); }},
    {"hypot", [](double a, double b) { return std::isinf(a) || std::isinf(b) || (a > 1e19 && b > 1e19); }},
    {"logaddexp", [](double a, double b) { return std::isinf(a) || std::isinf(b); }},
    {"logaddexp2", [](double a, double b) { return std::isinf(a) || std::isinf(b); }},
    {"float_power", [](double a, double b) { return b == 0 && (a == 0 || std::isinf(a)); }},
    {"heaviside", [](double a, double) { return std::isnan(a); }},
    {"celu", other_values.at("celu")}};

/// Where an element is neither near nor equally NaN; empty: nowhere.
std::string differs(const std::vector<double>& got, const std::vector<double>& want, const Json& operands,
                    const std::map<std::string, Where>& others = {}, const std::string& name = "") {
  if (got.size() != want.size()) return "another size";
  std::string text;
  for (std::size_t k = 0; k < got.size(); k++) {
    const double g = got[k], w = want[k], x = golden::number(operands[0][k]),
                 y = golden::number(operands.back()[k]);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (std::abs(g - w) <= 3e-6 * std::max(std::abs(w), 0.3)) continue;
    if (others.contains(name) && others.at(name)(x, y)) continue;
    text += "(" + std::to_string(x) + " " + std::to_string(y) + " -> " + std::to_string(g) + ", JAX " +
            std::to_string(w) + ") ";
  }
  return text;
}

std::string dtype_text(const Array& x) {
  return std::string(sa::name(x.dtype())) + (x.weak_type() ? "*" : "");
}
Array operand(const std::string& type) {
  if (type == "weak int") return Array(1);
  if (type == "weak float") return Array(0.5);
  return sa::ones({}, golden::dtype_named(type));
}
std::string type_of_result(const std::function<std::string()>& f) {
  try {
    return f();
  } catch (const sa::DTypeError&) { return "raises"; }
}

}  // namespace

TEST_CASE("elementwise: values and slopes at edge values are JAX's") {
  for (const Json& c : data()["unary"]) {
    const std::string name = c["name"];
    CAPTURE(name);
    const Unary& f = unaries.at(name);
    const Array x = floats(c["x"][0]);
    CHECK(differs(golden::values(f(x)), numbers(c["y"]), c["x"], other_values, name) == "");
    if (!c.contains("slopes")) continue;
    const Array slope = sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x);
    CHECK(differs(golden::values(slope), numbers(c["slopes"][0]), c["x"], other_slopes, name) == "");
  }
  for (const Json& c : data()["binary"]) {
    const std::string name = c["name"];
    CAPTURE(name);
    const Binary& f = binaries.at(name);
    const Array a = floats(c["x"][0]), b = floats(c["x"][1]);
    CHECK(differs(golden::values(f(a, b)), numbers(c["y"]), c["x"], other_values, name) == "");
    if (!c.contains("slopes")) continue;
    const auto [of_a, of_b] =
        sa::grad<0, 1>([&](const Array& v, const Array& w) { return sa::sum(f(v, w)); })(a, b);
    CHECK(differs(golden::values(of_a), numbers(c["slopes"][0]), c["x"], other_slopes, name) == "");
    CHECK(differs(golden::values(of_b), numbers(c["slopes"][1]), c["x"], other_slopes, name) == "");
  }
}

TEST_CASE("elementwise: pairs of results and whole numbers are JAX's") {
  for (const Json& c : data()["two_results"]) {
    const Array x = floats(c["x"]);
    const Pair r = c["name"] == "modf" ? sa::modf(x) : sa::frexp(x);
    CAPTURE(c["name"]);
    CHECK(differs(golden::values(r.first), numbers(c["y"][0]), Json::array({c["x"]})) == "");
    CHECK(differs(golden::values(r.second), numbers(c["y"][1]), Json::array({c["x"]})) == "");
  }
  for (const Json& c : data()["whole"]) {
    const std::string name = c["name"];
    CAPTURE(name);
    const auto ints = [](const Json& j) { return sa::array(j.get<std::vector<std::int8_t>>()); };
    const Array y = c.contains("other") ? binaries.at(name)(ints(c["x"]), ints(c["other"]))
                                        : unaries.at(name)(ints(c["x"]));
    CHECK(golden::values(y) == c["y"].get<std::vector<double>>());
  }
}

TEST_CASE("elementwise: dtypes are JAX's") {
  const std::vector<std::string> types = data()["types"]["dtypes"];
  const auto compare = [](const std::string& what, const std::string& got, std::string want) {
    if (want == "bool*") want = "bool";
    const auto strong = [](std::string t) { return t.ends_with("*") ? t.substr(0, t.size() - 1) : t; };
    // JAX refuses what has a result here, and makes numbers strong here and there; products of bools are counted
    if ((want == "raises" && got != "raises") || (what == "leaky_relu of bool and bool" && got == "int32"))
      return;
    CHECK_MESSAGE(strong(got) == strong(want), what);
  };
  for (const auto& row : data()["types"]["one"].items()) {
    const auto& name = row.key();
    const auto& results = row.value();
    for (std::size_t k = 0; k < types.size(); k++) {
      if (name == "modf" || name == "frexp") {
        const Pair r = name == "modf" ? sa::modf(operand(types[k])) : sa::frexp(operand(types[k]));
        const std::string want = results[k];
        compare(name + " of " + types[k], dtype_text(r.first), want.substr(0, want.find(',')));
        compare(name + " of " + types[k], dtype_text(r.second), want.substr(want.find(',') + 1));
        continue;
      }
      compare(name + " of " + types[k],
              type_of_result([&] { return dtype_text(unaries.at(name)(operand(types[k]))); }), results[k]);
    }
  }
  for (const auto& row : data()["types"]["two"].items()) {
    const auto& name = row.key();
    const auto& table = row.value();
    for (std::size_t i = 0; i < types.size(); i++)
      for (std::size_t k = 0; k < types.size(); k++) {
        const Array a = operand(types[i]), b = operand(types[k]);
        const std::string what = name + " of " + types[i] + " and " + types[k];
        std::string want = table[i][k];
        want = want.substr(0, want.find(','));
        compare(what, type_of_result([&] {
                  return dtype_text(name == "divmod" ? sa::divmod(a, b).first : binaries.at(name)(a, b));
                }),
                want);
      }
  }
  CHECK(sa::gcd(sa::array({4}), Array(6)).dtype() == sa::int32);
  CHECK(sa::exp2(sa::array({1}, sa::int64)).dtype() == sa::float64);
  CHECK(sa::elu(sa::array({1}, sa::int64)).dtype() == sa::float64);
}

// ---------------------------------------------------------------- parts of numbers
namespace {

/// Every exponent with some fractions, both signs, denormals, zeros, infinities.
template <class T> std::vector<T> some_of_all() {
  std::vector<T> x = {0,
                      -T(0),
                      std::numeric_limits<T>::infinity(),
                      -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::max(),
                      std::numeric_limits<T>::denorm_min()};
  for (int e = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
       e <= std::numeric_limits<T>::max_exponent; e++)
    for (const double f : {0.5, 0.7321, -0.99999}) x.push_back(std::ldexp(static_cast<T>(f), e));
  return x;
}
template <class T> void check_parts() {
  const std::vector<T> x = some_of_all<T>();
  const auto [fraction, exponent] = sa::frexp(sa::array(x));
  const std::vector<T> f = fraction.template to_vector<T>();
  const auto e = exponent.template to_vector<std::int32_t>();
  for (std::size_t k = 0; k < x.size(); k++) {
    int want = 0;
    CHECK(f[k] == std::frexp(x[k], &want));
    CHECK(e[k] == (std::isinf(x[k]) ? 0 : want));
  }
  for (const int n :
       {0, 1, -1, 20, -30, 127, -127, -149, 150, 260, -260, 1100, -1100, 2000, -2100, 100000, -100000}) {
    const auto got = sa::ldexp(sa::array(x), sa::array({n})).template to_vector<T>();
    for (std::size_t k = 0; k < x.size(); k++) {
      CAPTURE(x[k]);
      CAPTURE(n);
      CHECK(got[k] == std::ldexp(x[k], n));
    }
  }
  for (const T towards : {T(3), T(-3), std::numeric_limits<T>::infinity(), T(0)}) {
    const auto next = sa::nextafter(sa::array(x), sa::array({towards})).template to_vector<T>();
    for (std::size_t k = 0; k < x.size(); k++) CHECK(next[k] == std::nextafter(x[k], towards));
  }
}

}  // namespace

TEST_CASE("elementwise: frexp, ldexp and nextafter are C's, denormals and infinities included") {
  check_parts<float>();
  check_parts<double>();
  for (const sa::DType t : {sa::float16, sa::bfloat16}) {
    const Array x = sa::array({0.0, 1.0, -3.25, 1e-6, 60000.0}).astype(t), one = sa::array({1}).astype(t);
    const auto [f, e] = sa::frexp(x);
    CHECK(f.dtype() == t);
    CHECK(sa::array_equal(sa::ldexp(f, e), x));
    const Array next = sa::nextafter(one, x[{sa::slice(4, 5)}]);
    CHECK((next - one).astype(sa::float32)[0].item<float>() == (t == sa::float16 ? 0x1p-10f : 0x1p-7f));
  }
  CHECK(sa::frexp(sa::array({12.0f})).first[0].item<float>() == 0.75f);
  CHECK(slope_of([](const Array& v) { return sa::frexp(v).first; }, sa::array({12.0f}))[0].item<float>() ==
        0x1p-4f);
  CHECK(slope_of([](const Array& v) { return sa::nextafter(v, 1); }, sa::array({12.0f}))[0].item<float>() ==
        0);
}

TEST_CASE("elementwise: nan_to_num replaces by what is asked for, or by the ends of the dtype") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Array x = sa::array({nan, inf, -inf, 2.0f});
  CHECK(sa::nan_to_num(x, {.nan = 7, .posinf = 8, .neginf = 9}).to_vector<float>() ==
        std::vector<float>{7, 8, 9, 2});
  const float ends[] = {65504, 0x1.fep127f};
  for (int k = 0; k < 2; k++)
    CHECK(sa::nan_to_num(x.astype(k == 0 ? sa::float16 : sa::bfloat16))
              .astype(sa::float32)
              .to_vector<float>() == std::vector<float>{0, ends[k], -ends[k], 2});
  CHECK(sa::nan_to_num(sa::array({1, 2})).dtype() == sa::int32);
}

// ---------------------------------------------------------------- the rest
TEST_CASE("elementwise: 16-bit floats are computed in float32 and rounded once") {
  const std::pair<const char*, Unary> functions[] = {
      {"mish", sa::mish},
      {"softplus", sa::softplus},
      {"selu", sa::selu},
      {"ndtr", sa::ndtr},
      {"entr", sa::entr},
      {"degrees", sa::degrees},
      {"logit", sa::logit},
      {"exp2", sa::exp2},
      {"gelu", [](const Array& v) { return sa::gelu(v); }},
      {"exact gelu", [](const Array& v) { return sa::gelu(v, false); }}};
  for (const sa::DType t : {sa::float16, sa::bfloat16}) {
    const Array x = (sa::arange(1, 64, sa::float32) / 65).astype(t);
    for (const auto& row : functions) {
      const auto& name = row.first;
      const auto& f = row.second;
      CAPTURE(name);
      CHECK(sa::array_equal(f(x), f(x.astype(sa::float32)).astype(t)));
    }
  }
}

TEST_CASE("elementwise: gradients flow through parameters, shares and ends") {
  const Array x = sa::array({-2.0f, -0.5f, 0.0f, 3.0f});
  const auto alpha = [&](const auto& f) {
    return sa::grad([&](const Array& a) { return sa::sum(f(x, a)); })(Array(sa::array(0.5f)))
        .template item<float>();
  };
  CHECK(alpha([](const Array& v, const Array& a) { return sa::elu(v, a); }) ==
        doctest::Approx(std::expm1(-2) + std::expm1(-0.5)));
  CHECK(alpha([](const Array& v, const Array& a) { return sa::leaky_relu(v, a); }) == doctest::Approx(-2.5));
  const float inf = std::numeric_limits<float>::infinity();
  const auto share = sa::grad([](const Array& v) {
    return sa::sum(sa::logaddexp(v, sa::array({-INFINITY, 0.0f, -INFINITY})));
  });
  CHECK(share(sa::array({inf, -inf, -inf})).to_vector<float>() == std::vector<float>{1, 0, 1});
  CHECK(slope_of(sa::relu6, sa::array({0.0f, 6.0f, 3.0f})).to_vector<float>() == std::vector<float>{0, 0, 1});
}

TEST_CASE("elementwise: gcd of every pair of ends, as wide as they come") {
  const std::vector<std::int64_t> ends = {0,
                                          1,
                                          -1,
                                          2,
                                          6,
                                          7540113804746346429,
                                          4660046610375530309,
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min() + 2};
  std::vector<std::int64_t> a, b, g;
  for (const std::int64_t x : ends)
    for (const std::int64_t y : ends) a.push_back(x), b.push_back(y), g.push_back(std::gcd(x, y));
  CHECK(sa::gcd(sa::array(a), sa::array(b)).to_vector<std::int64_t>() == g);
  for (int x = -128; x < 128; x += 3) {
    std::vector<std::int8_t> row, want;
    for (int y = -127; y < 128; y++)
      row.push_back(static_cast<std::int8_t>(y)), want.push_back(static_cast<std::int8_t>(std::gcd(x, y)));
    CHECK(sa::gcd(sa::array({x}, sa::int8), sa::array(row)).to_vector<std::int8_t>() == want);
  }
  CHECK(sa::clz(sa::array({0, 1}, sa::uint64)).to_vector<int>() == std::vector<int>{64, 63});
  CHECK(sa::population_count(sa::array({-1}, sa::int64)).to_vector<int>() == std::vector<int>{64});
  // What does not fit wraps as |a| (|b| / gcd) does: NumPy's and JAX's.
  CHECK(sa::lcm(sa::array({50000, 2147483647, -6, 0, 0, -2147483647 - 1}), sa::array({49999, 2, 4, 0, -5, 3}))
            .to_vector<int>() == std::vector<int>{-1795017296, -2, 12, 0, 0, -2147483647 - 1});
  CHECK(sa::lcm(sa::array({2, 64, -128, 100}, sa::int8), sa::array({127, 7, 64, -99}, sa::int8))
            .to_vector<int>() == std::vector<int>{-2, -64, -128, -84});
  CHECK(sa::lcm(sa::array({200, 255}, sa::uint8), sa::array({199, 2}, sa::uint8)).to_vector<int>() ==
        std::vector<int>{120, 254});
}

TEST_CASE("elementwise: select has one dtype of all it chooses from") {
  const Array first = sa::array({true, false, false}), second = sa::array({false, true, false});
  const auto chosen = [&](const Array& a, const Array& b, const Array& otherwise) {
    return sa::select({first, second}, {a, b}, otherwise);
  };
  const Array wide = sa::ones({3}, sa::float64), bytes = sa::ones({3}, sa::uint8);
  const std::vector<double> all_digits = {1, 0.1, 0.2}, turned = {0.1, 1, 0.2}, behind = {0.1, 0.2, 1};
  CHECK(chosen(wide, 0.1, 0.2).to_vector<double>() == all_digits);
  CHECK(chosen(0.1, wide, 0.2).to_vector<double>() == turned);
  CHECK(chosen(0.1, 0.2, wide).to_vector<double>() == behind);
  CHECK(chosen(sa::full({3}, 300, sa::int32), bytes, 2).to_vector<int>() == std::vector<int>{300, 1, 2});
  CHECK(chosen(bytes, 1, 2).dtype() == sa::uint8);
  CHECK(chosen(1, 2, 0.5).weak_type());
  for (const auto& large : {std::function<Array()>([&] { return chosen(bytes, 1, 300); }),
                            std::function<Array()>([&] { return chosen(bytes, 300, 1); }),
                            std::function<Array()>([&] { return chosen(300, 1, bytes); })})
    CHECK(
        message_of<sa::DTypeError>([&] { static_cast<void>(large()); }) ==
        "select: the number 300 is no value of uint8. A whole number takes the dtype of what it meets, which "
        "must hold it. Cast the array with astype, or give a number that fits.");
}

TEST_CASE("elementwise: what overflows on the way has its slope and its digits") {
  const double large[] = {1e30, 1e300};
  for (const sa::DType t : {sa::float32, sa::float64}) {
    const double x = large[t == sa::float64];
    const Array at = sa::array({x, -x}, sa::float64).astype(t);
    for (const double s : slope_of(sa::asinh, at).astype(sa::float64).to_vector<double>())
      CHECK(s * x == doctest::Approx(1).epsilon(1e-6));
    for (const int decimals : {2, 40, 400}) CHECK(sa::array_equal(sa::round(at, decimals), at));
    const Array small = sa::array({1.5, -0.0, INFINITY}, sa::float64).astype(t);
    CHECK(sa::array_equal(sa::round(small, 400), small));
    for (const int decimals : {-2, -45, -400})
      CHECK(sa::round(small, decimals).astype(sa::float64).to_vector<double>() ==
            std::vector<double>{0, 0, INFINITY});
  }
  // the second slopes of what has a pole
  const auto twice = [](const Unary& f, double x) {
    return slope_of([&](const Array& v) { return slope_of(f, v); }, sa::array({x}, sa::float64))[0]
        .item<double>();
  };
  CHECK(twice(sa::entr, 2) == doctest::Approx(-0.5));
  CHECK(twice([](const Array& y) { return sa::xlogy(3, y); }, 2) == doctest::Approx(-0.75));
  CHECK(twice([](const Array& y) { return sa::xlog1py(3, y); }, 1) == doctest::Approx(-0.75));
}

TEST_CASE("elementwise: messages") {
  const Array x = sa::ones({2, 3}), i = sa::array({1, 2}), b = sa::array({true, false});
  CHECK(message_of<sa::ShapeError>([&] { static_cast<void>(sa::select({x > 0}, {})); }) ==
        "select: 1 condition, 0 choices. Every condition has its choice, and there is one at least. Give as "
        "many of both.");
  CHECK(message_of<sa::ShapeError>([&] { static_cast<void>(sa::glu(x)); }) ==
        "glu: axis -1 of shape [2,3] has size 3. One half gates the other: the size is even. Choose another "
        "axis.");
  CHECK(message_of<sa::ShapeError>([&] {
          static_cast<void>(sa::glu(x, 2));
        }).starts_with("glu: axis 2 is out of bounds"));
  CHECK(message_of<sa::DTypeError>([&] { static_cast<void>(sa::ldexp(x, x)); }) ==
        "ldexp: the operand is f32[2,3]. It takes integers and bool. Cast with astype.");
  CHECK(sa::ldexp(sa::array({1.5, 1.5}), b).to_vector<double>() == std::vector<double>{3, 1.5});
  CHECK(message_of<sa::DTypeError>([&] { static_cast<void>(sa::gcd(b, b)); }) ==
        "gcd: the operand is bool[2]. It takes integers. Cast with astype.");
  CHECK(message_of<sa::DTypeError>([&] {
          static_cast<void>(sa::lcm(i, x));
        }).starts_with("lcm: the operand is f32[2,3]"));
  CHECK(message_of<sa::DTypeError>([&] {
          static_cast<void>(sa::clz(b));
        }).starts_with("clz: the operand is bool[2]. It takes integers."));
  CHECK(message_of<sa::DTypeError>([&] {
          static_cast<void>(sa::population_count(x));
        }).starts_with("population_count: the operand is f32[2,3]."));
  CHECK(message_of<sa::ShapeError>([&] { static_cast<void>(sa::standardize(x, 5)); }).find("axis 5") !=
        std::string::npos);
}

}  // namespace elementwise_test
