// Values, dtypes and placements as JAX and NumPy have them: 16-bit functions, tails, empty arrays, NaN, index dtypes, *_like,
// roll, strings. Numbers: data/semantics.json.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>

#include "golden.h"
#include "ops/record.h"
#include "program_of.h"

namespace semantics_test {

namespace sa = shardarray;
using namespace program_test;
using sa::DType;

namespace {

const golden::Json& reference() {
  static const golden::Json all = golden::load("semantics.json");
  return all;
}

Array from_bits(const golden::Json& bits, const std::string& dtype) {
  return sa::bitcast(sa::array(bits.get<std::vector<std::uint16_t>>()), golden::dtype_named(dtype));
}
std::vector<std::uint16_t> bits_of(const Array& x) {
  return sa::bitcast(x, sa::uint16).to_vector<std::uint16_t>();
}

// All NaN are one; so are the zeros where `signs` is false.
bool same_half(std::uint16_t a, std::uint16_t b, DType t, bool signs) {
  const int infinity = t == sa::float16 ? 0x7c00 : 0x7f80;
  const bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
  const bool zeros = !signs && (a & 0x7fff) == 0 && (b & 0x7fff) == 0;
  return nan_a || nan_b ? nan_a == nan_b : a == b || zeros;
}

const std::map<std::string, Array (*)(const Array&, const Array&)> binaries = {
    {"add", [](const Array& a, const Array& b) { return sa::add(a, b); }},
    {"subtract", [](const Array& a, const Array& b) { return sa::subtract(a, b); }},
    {"multiply", [](const Array& a, const Array& b) { return sa::multiply(a, b); }},
    {"divide", [](const Array& a, const Array& b) { return sa::divide(a, b); }},
    {"floor_divide", [](const Array& a, const Array& b) { return sa::floor_divide(a, b); }},
    {"remainder", [](const Array& a, const Array& b) { return sa::remainder(a, b); }},
    {"power", [](const Array& a, const Array& b) { return sa::power(a, b); }},
    {"maximum", [](const Array& a, const Array& b) { return sa::maximum(a, b); }},
    {"minimum", [](const Array& a, const Array& b) { return sa::minimum(a, b); }},
    {"arctan2", [](const Array& a, const Array& b) { return sa::arctan2(a, b); }}};

// Where the sign of a zero is nobody's promise.
const std::set<std::string> unsigned_zeros = {"maximum", "minimum", "floor_divide", "remainder"};

const DType index_types[] = {sa::int8,  sa::int16,  sa::int32,  sa::int64,
                             sa::uint8, sa::uint16, sa::uint32, sa::uint64};

template <class E, class F> std::string message(F f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "nothing was thrown";
}

}  // namespace

// ---------------------------------------------------------------- numbers
TEST_CASE("semantics: binary functions of 16-bit floats have NumPy's bits at every pair of edge values") {
  for (const golden::Json& c : reference()["binary"]) {
    const Array v = from_bits(c["values"], c["dtype"]);
    const std::int64_t n = v.size();
    const Array a = sa::broadcast_to(v.reshape({n, 1}), {n, n}), b = sa::broadcast_to(v, {n, n});
    const std::vector<double> x = values(a), y = values(b);
    for (const auto& [name, f] : binaries) {
      const auto want = c["results"][name].get<std::vector<std::uint16_t>>(), got = bits_of(f(a, b));
      REQUIRE(got.size() == want.size());
      std::string wrong;
      for (std::size_t k = 0; k < got.size(); k++)
        if (!same_half(got[k], want[k], v.dtype(), !unsigned_zeros.contains(name)))
          wrong += fmt::format("{} {} {} {}: {:x} {:x}; ", c["dtype"].get<std::string>(), name, x[k], y[k],
                               got[k], want[k]);
      CHECK(wrong == "");
    }
  }
}

TEST_CASE("semantics: 16-bit uniform numbers between bounds have JAX's bits") {
  for (const golden::Json& c : reference()["uniform"]) {
    const Array x = sa::random::uniform(sa::random::key(c["seed"].get<int>()), {200},
                                        golden::dtype_named(c["dtype"]), c["minval"], c["maxval"]);
    CAPTURE(c["dtype"].get<std::string>());
    CAPTURE(c["minval"].get<double>());
    CHECK(bits_of(x) == c["bits"].get<std::vector<std::uint16_t>>());
  }
}

TEST_CASE("semantics: erfc and exact gelu keep their digits in the tails, gradients too") {
  const golden::Json& t = reference()["tails"];
  std::vector<double> x;
  for (const golden::Json& v : t["x"]) x.push_back(golden::number(v));
  const auto gelu = [](const Array& v) { return sa::gelu(v, false); };
  const auto slope = [&](const Array& v) { return sa::grad([&](Array u) { return sa::sum(gelu(u)); })(v); };
  struct Row {
    const char* name;
    std::function<Array(const Array&)> f;
  };
  const Row rows[] = {
      {"gelu", gelu}, {"gelu_slope", slope}, {"erfc", [](const Array& v) { return sa::erfc(v); }}};
  const auto smallest = [](DType d) {
    return d == sa::float64 ? 1e-300 : d == sa::float16 ? std::ldexp(1.0, -24) : 1.2e-38;
  };
  for (const DType d : {sa::float64, sa::float32, sa::bfloat16, sa::float16}) {
    const double step = d == sa::float64 ? 2e-16 : d == sa::float32 ? 1.2e-7 : d == sa::float16 ? 1e-3 : 8e-3;
    // the argument may lie a step beside: its tail changes by x^2 of them
    const Array v = sa::array(x, d);
    const std::vector<double> at = values(v);
    for (const Row& row : rows) {
      const std::vector<double> got = values(row.f(v)), want = t[row.name].get<std::vector<double>>();
      for (std::size_t k = 0; k < x.size(); k++) {
        if (at[k] != x[k]) continue;  // the numbers are those of the double
        // the slope is a sum that cancels near its zero
        const double bell = std::abs(x[k]) * std::exp(-x[k] * x[k] / 2) / std::sqrt(2 * M_PI);
        const double size = std::abs(want[k]) + (row.name == std::string("gelu_slope") ? bell : 0);
        const double allowed = row.name == std::string("erfc") ? 8 : 8 + 4 * x[k] * x[k];
        CAPTURE(std::string(row.name));
        CAPTURE(std::string(sa::name(d)));
        CAPTURE(x[k]);
        CAPTURE(got[k]);
        CAPTURE(want[k]);
        CHECK(std::abs(got[k] - want[k]) <= allowed * step * size + smallest(d));
      }
    }
  }
  CHECK(sa::gelu(Array(-7.0f), false).item<float>() == doctest::Approx(-8.9592e-12).epsilon(1e-4));
}

TEST_CASE("semantics: tests for NaN and infinity give strong bools") {
  for (const DType t : {sa::bool_, sa::int8, sa::uint64, sa::int32, sa::float32, sa::bfloat16})
    for (const Array& x : {sa::zeros({2}, t), sa::zeros({}, t)})
      for (const Array& r : {sa::isfinite(x), sa::isinf(x), sa::isnan(x)}) {
        CHECK(r.dtype() == sa::bool_);
        CHECK_FALSE(r.weak_type());
        CHECK((r + sa::zeros({}, sa::int8)).dtype() == sa::int8);
      }
  CHECK_FALSE(sa::isfinite(Array(3)).weak_type());
  CHECK(sa::all(sa::isfinite(sa::arange(3))).item<bool>());
  CHECK_FALSE(sa::any(sa::isinf(sa::arange(3))).item<bool>());
}

TEST_CASE("semantics: logsumexp over nothing is -inf") {
  const double inf = INFINITY;
  for (const DType t : {sa::float32, sa::float64, sa::bfloat16}) {
    CHECK(values(sa::logsumexp(sa::zeros({0}, t))) == std::vector{-inf});
    CHECK(values(sa::logsumexp(sa::zeros({3, 0}, t))) == std::vector{-inf});
    const Array rows = sa::logsumexp(sa::zeros({3, 0}, t), {.axis = 1, .keepdims = true});
    CHECK(rows.shape() == Shape{3, 1});
    CHECK(rows.dtype() == t);
    CHECK(values(rows) == std::vector{-inf, -inf, -inf});
    CHECK(sa::logsumexp(sa::zeros({3, 0}, t), 0).shape() == Shape{0});
  }
  CHECK(sa::logsumexp(sa::zeros({0}, sa::int32)).dtype() == sa::float32);
}

TEST_CASE("semantics: the gradient of an extremum over a NaN is NaN") {
  const auto gradient = [](auto f, std::vector<float> x, Shape shape) {
    return values(sa::grad([&](Array v) { return sa::sum(f(v)); })(sa::array(x, shape)));
  };
  const auto max = [](const Array& v) { return sa::max(v, -1); };
  const auto min = [](const Array& v) { return sa::min(v, -1); };
  for (const auto& g :
       {gradient(max, {1, NAN, 3, 2, 2, 1}, {2, 3}), gradient(min, {1, NAN, 3, 2, 2, 4}, {2, 3})}) {
    for (std::size_t k = 0; k < 3; k++) CHECK(std::isnan(g[k]));
    CHECK(std::vector(g.begin() + 3, g.end()) == std::vector{0.5, 0.5, 0.0});
  }
  const auto [value, tangent] = sa::jvp([](Array v) { return sa::max(v); }, std::tuple(sa::array({1.f, NAN})),
                                        std::tuple(sa::ones({2})));
  CHECK(std::isnan(value.item<float>()));
  CHECK(std::isnan(tangent.item<float>()));
  CHECK(gradient(max, {INFINITY, 1}, {2}) == std::vector{1.0, 0.0});
}

// ---------------------------------------------------------------- positions
TEST_CASE("semantics: take(clip) takes negative indices for 0, as NumPy") {
  const Array x = sa::array({10., 11., 12., 13., 14.}, sa::float32);
  for (const DType t : {sa::int8, sa::int16, sa::int32, sa::int64}) {
    const Array i = sa::array({-1, -2, -7, 7, 4}, t);
    CHECK(values(sa::take(x, i, 0, sa::TakeMode::clip)) == std::vector{10., 10., 10., 14., 14.});
    const std::vector<double> filled = values(sa::take(x, i));
    CHECK(std::vector(filled.begin(), filled.begin() + 2) == std::vector{14., 13.});
    CHECK((std::isnan(filled[2]) && std::isnan(filled[3])));
  }
}

TEST_CASE("semantics: take and scatter with every index dtype, forward and backward, whole and on shards") {
  const std::vector<int> at = {3, 0, 3, 9, 1};
  const Array table = numbers({10, 4}), weights = numbers({5, 4}, sa::float32, 3);
  std::vector<double> want(40), picked;
  const std::vector<double> rows = values(table), w = values(weights);
  for (std::size_t k = 0; k < 20; k++) {
    const std::size_t from = static_cast<std::size_t>(at[k / 4]) * 4 + k % 4;
    picked.push_back(rows[from]);
    want[from] += w[k];
  }
  for (const DType t : index_types)
    for (const sa::P& spec : {sa::P(), sa::P("x"), sa::P(sa::none, "y")})
      for (const auto mode : {sa::TakeMode::fill, sa::TakeMode::clip}) {
        CAPTURE(std::string(sa::name(t)));
        const Array x = sa::device_put(table, on_xy(spec)), i = sa::array(at, sa::ShapeOf(), t);
        const auto loss = [&](Array v, Array j) { return sa::sum(sa::take(v, j, 0, mode) * weights); };
        CHECK(values(sa::take(x, i, 0, mode)) == picked);
        CHECK(values(sa::grad(loss)(x, i)) == want);
        CHECK(values(sa::jit(sa::grad(loss))(x, i)) == want);
        CHECK(values(sa::primitive::scatter(i, weights, 0, 1, 10)) == want);
        const auto back = [&](Array u) { return sa::sum(sa::primitive::scatter(i, u, 0, 1, 10) * x); };
        CHECK(values(sa::grad(back)(weights)) == picked);
      }
  // beyond all rows, and beyond int64
  const Array far = sa::array(std::vector<std::uint64_t>{2, 10, ~std::uint64_t{0}});
  const auto loss = [](Array v, Array j) { return sa::sum(sa::take(v, j, 0, sa::TakeMode::clip)); };
  CHECK(values(sa::grad(loss)(sa::ones({4}), far)) == std::vector{0., 0., 1., 2.});
}

// ---------------------------------------------------------------- arguments, messages
TEST_CASE("semantics: a jitted function takes any text for a std::string") {
  const auto f = sa::jit([](Array x, std::string how, const std::string& unit) {
    return how == "relu" ? sa::relu(x) : how == "neg" ? -x : x * static_cast<double>(unit.size());
  });
  const Array x = sa::array({-1.f, 2.f});
  CHECK(values(f(x, "relu", "")) == std::vector{0., 2.});
  CHECK(values(f(x, "neg", "")) == std::vector{1., -2.});
  CHECK(f.traces() == 2);
  const char* pointer = "relu";
  char letters[] = "relu";
  const std::string_view view = "relu and more";
  CHECK(values(f(x, pointer, "")) == std::vector{0., 2.});
  CHECK(values(f(x, letters, std::string())) == std::vector{0., 2.});
  CHECK(values(f(x, view.substr(0, 4), std::string_view())) == std::vector{0., 2.});
  CHECK(values(f(x, std::string("relu"), "")) == std::vector{0., 2.});
  CHECK(f.traces() == 2);
  CHECK(values(f(x, "other", "abc")) == std::vector{-3., 6.});
  CHECK(sa::explain(f, x, "relu", "").transfers().empty());
  CHECK(values(sa::pmap([](Array v, std::string how) { return how == "neg" ? -v : v; })(x, "neg")) ==
        std::vector{1., -2.});
}

TEST_CASE("semantics: complex dtypes are refused where results are real") {
  const Array x = sa::ones({2});
  const std::string rest = ". The result is of bool, integers or real floats. Convert it with astype.";
  const std::vector<std::pair<const char*, std::function<void(DType)>>> makers = {
      {"arange", [](DType t) { sa::arange(3, t); }},
      {"arange", [](DType t) { sa::arange(3.5, t); }},
      {"linspace", [](DType t) { sa::linspace(0, 1, 3, {.dtype = t}); }},
      {"one_hot", [](DType t) { sa::one_hot(sa::arange(3), 3, t); }},
      {"bitcast", [&](DType t) { sa::bitcast(x, t); }}};
  for (const auto& [name, make] : makers)
    for (const DType t : {sa::complex64, sa::complex128})
      CHECK(message<sa::DTypeError>([&make = make, t] { make(t); }) ==
            std::string(name) + ": dtype " + sa::name(t) + rest);
}

// The variable is read once: a process of its own.
TEST_CASE("semantics: an unknown word in SHARDARRAY_DEBUG is named once") {
  const auto said = [](const std::string& word) {
    const std::string command = "SHARDARRAY_DEBUG=" + word + " " +
                                std::filesystem::canonical("/proc/self/exe").string() +
                                " '--test-case=semantics: logsumexp*' 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    for (char line[256]; std::fgets(line, sizeof line, pipe) != nullptr;) text += line;
    CHECK(pclose(pipe) == 0);
    return text;
  };
  const std::string warning =
      "shardarray: environment: SHARDARRAY_DEBUG=tyme is not understood. It is 2 or time. Correct the "
      "variable or "
      "unset it.\n";
  const std::string text = said("tyme");
  REQUIRE(text.find(warning) != text.npos);
  CHECK(text.find("not understood", text.find(warning) + warning.size()) == text.npos);
  CHECK(said("0").find("not understood") == std::string::npos);
  CHECK(said("time").find("not understood") == std::string::npos);
}

}  // namespace semantics_test
