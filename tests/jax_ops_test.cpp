// The numbers of data/ops.json and data/ops_more.json: NumPy-style functions on ordinary and special operands, gradients at
// special points. Every case has a row in jax_ops_elementwise.h or jax_ops_arrays.h, by JAX's name.
#include <set>

#include "jax_ops_arrays.h"
#include "jax_ops_elementwise.h"
#include "jax_ops_products.h"

namespace jax_ops_test {

using jax_cases::Tolerance;
using sa::DType;

namespace {

/// The function of a row, or of the element-wise ones; empty: there is none.
Arrays call(const std::string& case_name, const Arrays& x, const Json& a) {
  const auto other = same_functions().find(case_name);
  const std::string& name = other == same_functions().end() ? case_name : other->second;
  if (a.contains("by")) {
    const Array by = sa::full({}, a["by"].get<int>(), sa::int32);
    return {binaries().at(name)(x[0], by)};
  }
  if (const auto f = unaries().find(name); f != unaries().end()) return {f->second(x[0])};
  if (const auto f = binaries().find(name); f != binaries().end()) return {f->second(x[0], x[1])};
  for (const Table* table : {&reductions(), &orders(), &shapes(), &positions(), &products()})
    if (const auto f = table->find(name); f != table->end()) return f->second(x, a);
  FAIL("no row: ", name);
  return {};
}

/// What the gradients are of, by the second word of `grad`, `grad2` and `grad_of_weighted`.
Array at_special_points(const std::string& name, const Array& x) {
  if (name == "clip") return sa::clip(x, -1.5, 2.0);
  if (name == "where_nan_trap") return sa::where(x > 0, sa::sqrt(x), 0.0);
  if (name == "norm_zero") return sa::norm(x);
  return unaries().at(name)(x);
}

Arrays results_of(const Json& c, const Arrays& x) {
  const std::string name = c["name"];
  const std::string kind = name.substr(0, name.find(' ')), function = name.substr(name.find(' ') + 1);
  if (kind == "grad")
    return {sa::grad([&](const Array& v) { return sa::sum(at_special_points(function, v)); })(x[0])};
  if (kind == "grad2") {
    const auto [a, b] = sa::grad<0, 1>(
        [&](const Array& v, const Array& w) { return sa::sum(binaries().at(function)(v, w)); })(x[0], x[1]);
    return {a, b};
  }
  if (kind == "grad_of_weighted")
    return {sa::grad([&](const Array& v) {
      const Array y = call(function, {v}, Json::object())[0];
      return sa::sum(y * (1.0 + sa::arange(y.size()).reshape(y.shape())));
    })(x[0])};
  return call(name, x, c["attrs"]);
}

// Of the functions whose polynomials differ most from XLA's.
const std::set<std::string> less_exact = {"lax.erf_inv", "lax.erfc", "tan", "geomspace"};

// Where XLA's own numbers are off by more: it makes them of rounded exponentials, by sums that cancel, or step by step in 16 bits.
const std::map<std::string, Tolerance> off_in_jax = {{"sinh", {.ulps = 32}},
                                                     {"cosh", {.ulps = 32}},
                                                     {"exp2", {.ulps = 80}},
                                                     {"exp2 float64", {.ulps = 400}},
                                                     {"lax.digamma", {.ulps = 8, .abs = 1e-6}},
                                                     {"lax.lgamma", {.ulps = 8, .abs = 2e-6}},
                                                     {"lax.lgamma float64", {.ulps = 8, .abs = 1e-14}},
                                                     {"logaddexp2", {.ulps = 4, .abs = 1e-7}},
                                                     {"linspace", {.ulps = 4, .abs = 1e-7}},
                                                     {"nn.gelu", {.ulps = 4, .abs = 1e-7}},
                                                     {"nn.gelu float16", {.ulps = 4, .abs = 2e-4}},
                                                     {"nn.gelu bfloat16", {.ulps = 4, .abs = 1e-3}},
                                                     {"nn.gelu float64", {.ulps = 4, .abs = 1e-14}},
                                                     {"nn.mish", {.ulps = 4, .abs = 1e-36}},
                                                     {"nn.silu", {.ulps = 4, .abs = 1e-36}},
                                                     {"grad nn.gelu", {.ulps = 4, .abs = 5e-7}},
                                                     {"grad tanh", {.ulps = 4, .abs = 3e-7}}};

Tolerance tolerance_of(const Json& c, const std::vector<Json>& inputs) {
  const std::string tol = c["attrs"]["tol"], name = c["name"];
  const std::string dtype = inputs.empty() ? "" : inputs[0]["dtype"].get<std::string>();
  for (const std::string& key : {name + " " + dtype, name})
    if (const auto found = off_in_jax.find(key); found != off_in_jax.end()) return found->second;
  if (tol == "exact") return {};
  if (tol == "ulp") return {.ulps = less_exact.contains(name) ? 8.0 : 4.0};
  const bool matrices = name.starts_with("linalg.") || name.starts_with("scipy.");
  return {.rel = matrices ? 1e-4 : 1e-5, .abs = 1e-6};
}

// ---------------------------------------------------------------- where ours are not JAX's
// Of elements x, y (of one operand both).
using Elements = bool (*)(double x, double y, DType t);
bool by_zero(double, double y, DType t) { return is_integer(t) && y == 0; }
bool sub_normal(double x, double y, DType t) {
  const auto is = [t](double v) { return v != 0 && std::abs(v) < jax_cases::smallest_normal(t); };
  return is(x) || is(y);
}
const std::map<std::string, Elements> other_elements = {
    // x / 0 of integers is -1, the rest x; jnp takes 1 off, and has the rest 0
    {"floor_divide", by_zero},
    {"mod", by_zero},
    {"fmod", by_zero},
    // beyond what has decimals: x itself; JAX overflows on the way
    {"round_2", [](double x, double, DType) { return std::abs(x) > 1e36; }},
    {"scipy.i0", [](double x, double, DType) { return std::abs(x) > 88; }},
    // 0; JAX multiplies 0 by infinity
    {"grad2 power", [](double x, double y, DType) { return x == 0 && y == 0; }},
    // XLA has numbers of its own for sub-normal operands
    {"arctan2", sub_normal},
    {"cbrt", sub_normal},
    {"frexp", sub_normal},
    {"power", sub_normal},
    {"x**0.5", sub_normal}};
// Of whole cases: what is said.
const std::map<std::string, std::string> other_cases = {
    // a literal is weak, a result for bools is none
    {"nn.relu bool[3]", "int32, JAX int32*; "},
    // floating, as all elementary functions
    {"nn.sigmoid bool[3]", "JAX refuses it; "},
    {"nn.sigmoid int32[11]", "JAX refuses it; "},
    // pow is power's other name, as in NumPy
    {"lax.pow int32[143] int32[143]", "JAX refuses it; "},
    {"lax.pow int8[63] int8[63]", "JAX refuses it; "},
    {"lax.pow uint32[64] uint32[64]", "JAX refuses it; "},
    {"lax.pow uint8[64] uint8[64]", "JAX refuses it; "}};
std::set<std::string> met;  // of both lists, in the cases that were checked

std::string label(const Json& c, const std::vector<Json>& inputs) {
  std::string text = c["name"];
  Json attrs = c["attrs"];
  for (const char* word : {"tol", "x64", "inputs", "dtype"}) attrs.erase(word);
  for (const Json& i : inputs) text += fmt::format(" {}{}", i["dtype"].get<std::string>(), i["shape"].dump());
  return attrs.empty() ? text : text + " " + attrs.dump();
}

/// The operand without sub-normal numbers, which XLA takes for zeros.
Array flushed(const Array& x) {
  if (!is_floating(x.dtype())) return x;
  const double tiny = jax_cases::smallest_normal(x.dtype());
  return sa::where(sa::abs(x) < tiny, sa::copysign(sa::zeros_like(x), x), x);
}

/// What is not JAX's; empty: nothing. An element may also be that of flushed operands.
std::string differences(const Json& c, const std::vector<Json>& inputs) {
  Arrays x, without;
  for (const Json& i : inputs) x.push_back(jax_cases::input(i));
  for (const Array& v : x) without.push_back(flushed(v));
  const Arrays got = results_of(c, x);
  if (!c.contains("outputs")) {
    for (const Array& r : got) r.block_until_ready();
    return "JAX refuses it; ";
  }
  const std::vector<Json> want = jax_cases::outputs_of(c["outputs"]);
  if (got.size() != want.size()) return "another number of results; ";
  const Tolerance tolerance = tolerance_of(c, inputs);
  const auto is_other = [&](std::size_t e) {
    const auto found = other_elements.find(c["name"]);
    if (found == other_elements.end()) return false;
    const double first = golden::number(inputs[0]["data"][e]),
                 last = golden::number(inputs.back()["data"][e]);
    if (!found->second(first, last, x[0].dtype())) return false;
    met.insert(found->first);
    return true;
  };
  std::string text;
  for (std::size_t k = 0; k < got.size(); k++) {
    const std::string type = jax_cases::differs_in_type(got[k], want[k]);
    if (!type.empty()) {
      text += type + "; ";
      continue;
    }
    const auto apart = jax_cases::elements_apart(got[k], want[k], tolerance);
    if (apart.empty()) continue;
    const auto still = jax_cases::elements_apart(results_of(c, without)[k], want[k], tolerance);
    for (const std::size_t e : apart) {
      if (!std::binary_search(still.begin(), still.end(), e) || is_other(e)) continue;
      text += fmt::format("[{}] {}, JAX {}; ", e, jax_cases::numbers_of(got[k])[e],
                          jax_cases::numbers_of(want[k])[e]);
    }
  }
  return text;
}

void check(const std::string& file, int cases, const std::set<std::string>& others) {
  int seen = 0;
  met.clear();
  std::map<std::string, Json> shared;  // operands that many cases have
  const Json all = golden::load(file);
  for (const Json& c : all["cases"]) {
    const std::string name = c["name"];
    if (name.starts_with("pair_inputs_")) {
      shared[name] = c["inputs"];
      continue;
    }
    const Json& a = c["attrs"];
    const std::vector<Json> inputs = a.contains("inputs") ? shared.at(a["inputs"]) : c["inputs"];
    const std::string title = label(c, inputs);
    CAPTURE(title);
    std::string text;
    try {
      text = differences(c, inputs);
    } catch (const sa::Error& e) {
      if (c.contains("outputs")) text = e.what();
    }
    const auto known = other_cases.find(title);
    CHECK(text == (known == other_cases.end() ? "" : known->second));
    if (known != other_cases.end()) met.insert(name);
    seen++;
  }
  CHECK(seen == cases);
  CHECK(met == others);
}

}  // namespace

TEST_CASE("jax ops: every case of ops.json") {
  std::set<std::string> others = {"nn.relu", "nn.sigmoid"};
  for (const auto& [name, elements] : other_elements) others.insert(name);
  check("ops.json", 964, others);
}

TEST_CASE("jax ops: every case of ops_more.json") { check("ops_more.json", 32, {"lax.pow"}); }

}  // namespace jax_ops_test
