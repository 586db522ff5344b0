// Types and shapes of the public functions, without computing anything.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/op.h"
#include "op_cases.h"
#include "ops/record.h"
#include "shardarray/ops.h"
#include "sources.h"

namespace shardarray::ops_types_test {
namespace {

using nlohmann::json;

Array in(const Shape& shape, DType t = float32, bool weak = false) { return placeholder({shape, t, weak}); }

// `float32[2,3]`; a star where the type is weak.
std::string text(const Array& x) {
  return std::string(name(x.dtype())) + (x.weak_type() ? "*" : "") + to_string(x.shape());
}

const std::map<std::string, DType> dtypes = {
    {"bool", bool_},      {"int8", int8},           {"int16", int16},          {"int32", int32},
    {"int64", int64},     {"uint8", uint8},         {"uint16", uint16},        {"uint32", uint32},
    {"uint64", uint64},   {"float16", float16},     {"bfloat16", bfloat16},    {"float32", float32},
    {"float64", float64}, {"complex64", complex64}, {"complex128", complex128}};

// An operand of the table's type.
Array operand(const std::string& type) {
  if (type == "weak bool") return Array(true);
  if (type == "weak int") return Array(2);
  if (type == "weak float") return Array(2.5);
  if (type == "weak complex") return Array(std::complex(2.0f, 1.0f));
  return in({}, dtypes.at(type));
}
bool is_wide(const std::string& type) {
  return (type.find("64") != std::string::npos && type != "complex64") || type == "complex128";
}

json load_promotion() {
  std::ifstream file(testing::data_file("promotion.json"));
  return json::parse(file);
}

using Binary = std::function<Array(const Array&, const Array&)>;
const std::map<std::string, Binary> binaries = {
    {"add", [](auto& a, auto& b) { return a + b; }},
    {"true_divide", [](auto& a, auto& b) { return a / b; }},
    {"floor_divide", [](auto& a, auto& b) { return floor_divide(a, b); }},
    {"power", [](auto& a, auto& b) { return power(a, b); }},
    {"maximum", [](auto& a, auto& b) { return maximum(a, b); }},
    {"equal", [](auto& a, auto& b) { return a == b; }},
    {"arctan2", [](auto& a, auto& b) { return arctan2(a, b); }},
    {"left_shift", [](auto& a, auto& b) { return a << b; }},
    {"bitwise_and", [](auto& a, auto& b) { return a & b; }},
    {"where", [](auto& a, auto& b) { return where(in({}, bool_), a, b); }}};
using Unary = std::function<Array(const Array&)>;
const std::map<std::string, Unary> unaries = {
    {"sum", [](auto& x) { return sum(x); }},       {"mean", [](auto& x) { return mean(x); }},
    {"prod", [](auto& x) { return prod(x); }},     {"abs", [](auto& x) { return abs(x); }},
    {"sqrt", [](auto& x) { return sqrt(x); }},     {"exp", [](auto& x) { return exp(x); }},
    {"negative", [](auto& x) { return -x; }},      {"max", [](auto& x) { return max(x); }},
    {"argmax", [](auto& x) { return argmax(x); }}, {"floor", [](auto& x) { return floor(x); }},
    {"sign", [](auto& x) { return sign(x); }},     {"square", [](auto& x) { return square(x); }},
    {"isnan", [](auto& x) { return isnan(x); }},   {"round", [](auto& x) { return round(x); }},
    {"var", [](auto& x) { return var(x); }},       {"bitwise_not", [](auto& x) { return ~x; }},
    {"cumsum", [](auto& x) { return cumsum(x); }}};

std::string result_of(const std::function<Array()>& f) {
  try {
    const Array r = f();
    return std::string(name(r.dtype())) + (r.weak_type() ? "*" : "");
  } catch (const DTypeError&) { return "raises"; }
}
// Comparisons are never weak here; `raises TypeError` is `raises`.
std::string expected_of(const std::string& result) {
  if (result.starts_with("raises")) return "raises";
  return result == "bool*" ? "bool" : result;
}

}  // namespace

TEST_CASE("types: JAX's table of two operands") {
  int checked = 0;
  const json table = load_promotion();
  for (const json& c : table["cases"]) {
    const std::string op = c["name"] == "pairs" ? c["attrs"]["op"] : c["name"];
    if (!binaries.contains(op)) continue;
    const std::vector<std::string> types = c["attrs"]["types"];
    for (std::size_t i = 0; i < types.size(); i++)
      for (std::size_t k = 0; k < types.size(); k++) {
        const Array a = operand(types[i]), b = operand(types[k]);
        // rows for x64 hold where an operand has 64 bits, the others where none has
        if (c["attrs"]["x64"].get<bool>() != (is_wide(types[i]) || is_wide(types[k]))) continue;
        const std::string got = result_of([&] { return binaries.at(op)(a, b); });
        // a bool literal is no weak one here
        const bool is_strong = op == "power" && types[i] == "weak int" && types[k] == "weak bool";
        const std::string want =
            is_strong ? "int32" : expected_of(c["outputs"]["result"][i][k].get<std::string>());
        CHECK_MESSAGE(got == want, op << " of " << types[i] << " and " << types[k]);
        checked++;
      }
  }
  CHECK(checked > 2000);
}

TEST_CASE("types: JAX's table of one operand") {
  int checked = 0;
  const json table = load_promotion();
  for (const json& c : table["cases"]) {
    if (c["name"] != "unary") continue;
    const std::vector<std::string> types = c["attrs"]["types"], ops = c["attrs"]["ops"];
    for (std::size_t i = 0; i < types.size(); i++)
      for (std::size_t k = 0; k < ops.size(); k++) {
        const Array x = operand(types[i]);
        if (c["attrs"]["x64"].get<bool>() != is_wide(types[i])) continue;
        std::string want = expected_of(c["outputs"]["result"][i][k]);
        if (ops[k] == "argmax") want = "int32";  // positions are int32 always
        CHECK_MESSAGE(result_of([&] { return unaries.at(ops[k])(x); }) == want, ops[k] << " of " << types[i]);
        checked++;
      }
  }
  CHECK(checked > 200);
}

TEST_CASE("types: literals are weak") {
  const Array x = in({3}), h = in({3}, bfloat16), i = in({3}, int8);
  CHECK(text(x * 2.0) == "float32[3]");
  CHECK(text(h * 2.0) == "bfloat16[3]");
  CHECK(text(2 * i) == "int8[3]");
  CHECK(text(i * 2.0) == "float32*[3]");
  CHECK(text(i / 2) == "float32[3]");
  CHECK(text(Array(1) + 2.0) == "float32*[]");
  CHECK(text(Array(std::int64_t{1} << 40)) == "int64*[]");
  CHECK(text(in({2}, uint32) + std::int64_t{3000000000}) == "uint32[2]");
  CHECK(text(x < 1) == "bool[3]");
  CHECK(text(x.astype(float64) * 2.0) == "float64[3]");
  CHECK(text(sum(Array(true))) == "int32[]");
  CHECK(text(full({2}, 1.5)) == "float32*[2]");
  CHECK(text(full({2}, 1.5, float16)) == "float16[2]");
  CHECK(text(relu(i)) == "int8[3]");
  CHECK(x.nbytes() == 12);
}

TEST_CASE("types: a literal beside an array leaves the result strong, in whichever place") {
  int checked = 0;
  for (const testing::OpCase& c : testing::op_cases()) {
    if (c.inputs.size() != 2 || c.inputs[0].dtype != float32 || c.inputs[1].dtype != float32) continue;
    const Shape columns{
        testing::rows_and_columns[1]};  // as functions of two operands, element by element, have them
    if (c.inputs[0].shape != testing::rows_and_columns || c.inputs[1].shape != columns) continue;
    if (c.name.starts_with("complex ")) continue;
    for (const bool first : {true, false}) {
      const Array half(0.5), x = in(c.inputs[0].shape);
      const Array both[] = {first ? half : x, first ? x : half};
      Array r;
      try {
        r = c.function(both);
      } catch (const Error&) { continue; }  // it takes no single number there
      if (!is_floating(r.dtype())) continue;
      CAPTURE(c.name);
      CAPTURE(first);
      CHECK(!r.weak_type());
      checked++;
    }
  }
  CHECK(checked > 40);
}

TEST_CASE("types: bits of literals") {
  CHECK(primitive::bits_of(float32, 1.0) == 0x3f800000u);
  CHECK(primitive::bits_of(float16, 1.0) == 0x3c00u);
  CHECK(primitive::bits_of(float16, 65504.0) == 0x7bffu);
  CHECK(primitive::bits_of(float16, 65520.0) == 0x7c00u);                 // rounds to infinity
  CHECK(primitive::bits_of(float16, -5.960464477539063e-08) == 0x8001u);  // smallest denormal
  CHECK(primitive::bits_of(float16, 6.103515625e-05) == 0x0400u);         // smallest normal
  CHECK(primitive::bits_of(float16, 1.00048828125) == 0x3c00u);           // half way: to even
  CHECK(primitive::bits_of(bfloat16, 3.14159) == 0x4049u);
  CHECK(primitive::bits_of(bfloat16, -0.0) == 0x8000u);
  CHECK(primitive::bits_of(int8, std::int64_t{-1}) == 0xffu);
  CHECK(primitive::bits_of(int8, 300.0) == 0x7fu);
  CHECK(primitive::bits_of(int32, -1e20) == 0x80000000u);
  CHECK(primitive::bits_of(uint32, -1.0) == 0u);
  CHECK(primitive::bits_of(uint8, std::int64_t{257}) == 1u);
  CHECK(primitive::bits_of(int64, std::int64_t{-2}) == ~std::uint64_t{1});
  CHECK(primitive::bits_of(bool_, 0.5) == 1u);
}

TEST_CASE("shapes: elementwise, reductions") {
  CHECK(text(in({4, 1, 3}) + in({2, 1})) == "float32[4,2,3]");
  CHECK(text(in({0, 3}) + in({1, 3})) == "float32[0,3]");
  CHECK(text(where(in({3, 1}, bool_), in({4}), 0)) == "float32[3,4]");
  const Array x = in({2, 3, 4});
  CHECK(text(sum(x)) == "float32[]");
  CHECK(text(sum(x, 1)) == "float32[2,4]");
  CHECK(text(sum(x, -1)) == "float32[2,3]");
  CHECK(text(x.sum({.axis = {0, -1}, .keepdims = true})) == "float32[1,3,1]");
  CHECK(text(sum(x, {.dtype = float64})) == "float64[]");
  CHECK(text(sum(x, {.axis = Shape{}})) == "float32[2,3,4]");
  CHECK(text(mean(in({2, 3}, int32), 0)) == "float32[3]");
  CHECK(text(any(x, 0)) == "bool[3,4]");
  CHECK(text(argmax(x, 2)) == "int32[2,3]");
  CHECK(text(argmin(x, {.keepdims = true})) == "int32[1,1,1]");
  CHECK(text(argmax(x, {.axis = 1, .keepdims = true})) == "int32[2,1,4]");
  CHECK(text(logsumexp(x, {.axis = 1, .keepdims = true})) == "float32[2,1,4]");
  CHECK(text(softmax(x)) == "float32[2,3,4]");
  CHECK(text(log_softmax(in({3}, int32))) == "float32[3]");
  CHECK(text(one_hot(in({2, 3}, int32), 5)) == "float32[2,3,5]");
}

TEST_CASE("shapes: rearranging") {
  const Array x = in({2, 3, 4});
  CHECK(text(x.reshape({-1, 4})) == "float32[6,4]");
  CHECK(text(in({0, 3}).reshape({3, -1})) == "float32[3,0]");
  CHECK(text(x.T()) == "float32[4,3,2]");
  CHECK(text(transpose(x, {1, -1, 0})) == "float32[3,4,2]");
  CHECK(text(swapaxes(x, 0, -1)) == "float32[4,3,2]");
  CHECK(text(moveaxis(x, 0, -1)) == "float32[3,4,2]");
  CHECK(text(moveaxis(x, {0, 1}, {-1, 0})) == "float32[3,4,2]");
  CHECK(text(expand_dims(x, 0)) == "float32[1,2,3,4]");
  CHECK(text(expand_dims(x, {0, -1})) == "float32[1,2,3,4,1]");
  CHECK(text(squeeze(in({1, 3, 1}))) == "float32[3]");
  CHECK(text(squeeze(in({1, 3, 1}), -1)) == "float32[1,3]");
  CHECK(text(broadcast_to(in({3, 1}), {2, 3, 4})) == "float32[2,3,4]");
  CHECK(text(concatenate({x, in({2, 1, 4}, int32)}, 1)) == "float32[2,4,4]");
  CHECK(text(stack({x, x}, -1)) == "float32[2,3,4,2]");
  CHECK(text(split(x, 2, 2)[1]) == "float32[2,3,2]");
  CHECK(text(split(x, {1, 1, 3}, 2)[2]) == "float32[2,3,2]");
  CHECK(split(x, {1, 1, 3}, 2).size() == 4);
  CHECK(text(flip(x)) == "float32[2,3,4]");
  CHECK(text(roll(x, 1)) == "float32[2,3,4]");
  CHECK(text(pad(x, {{1, 2}, {0, 0}, {3, 0}})) == "float32[5,3,7]");
  CHECK(text(pad(x, 1, 2.5)) == "float32[4,5,6]");
  CHECK(text(tril(x, -1)) == "float32[2,3,4]");
  CHECK(text(take(x, in({5, 6}, int8), 1)) == "float32[2,5,6,4]");
  CHECK(text(take(x, in({5}, uint32))) == "float32[5]");
  CHECK(text(sort(x, 0)) == "float32[2,3,4]");
  CHECK(text(argsort(x)) == "int32[2,3,4]");
}

TEST_CASE("shapes: products") {
  auto product = [](const Shape& a, const Shape& b) { return to_string(matmul(in(a), in(b)).shape()); };
  CHECK(product({4, 3}, {3, 2}) == "[4,2]");
  CHECK(product({3}, {3}) == "[]");
  CHECK(product({3}, {5, 3, 2}) == "[5,2]");
  CHECK(product({5, 4, 3}, {3}) == "[5,4]");
  CHECK(product({7, 1, 4, 3}, {5, 3, 2}) == "[7,5,4,2]");
  CHECK(product({1, 4, 3}, {1, 3, 2}) == "[1,4,2]");
  CHECK(text(matmul(in({2, 2}, int8), in({2, 2}, float16))) == "float16[2,2]");
  CHECK(text(matmul(in({2, 2}, bool_), in({2, 2}, bool_))) == "bool[2,2]");
  CHECK(text(dot(in({4, 3}), in({5, 3, 2}))) == "float32[4,5,2]");
  CHECK(text(dot(in({4, 3}), 2.0)) == "float32[4,3]");
  CHECK(text(tensordot(in({2, 3, 4}), in({3, 4, 5}))) == "float32[2,5]");
  CHECK(text(tensordot(in({2, 3}), in({4}), 0)) == "float32[2,3,4]");
  CHECK(text(tensordot(in({2, 3, 4}), in({4, 5, 2}), {0, 2}, {2, 0})) == "float32[3,5]");
  CHECK(text(einsum("ij,jk->ki", in({2, 3}), in({3, 4}))) == "float32[4,2]");
  CHECK(text(einsum("ba, cb", in({2, 3}), in({4, 2}))) == "float32[3,4]");
  CHECK(text(einsum("ij->j", in({2, 3}))) == "float32[3]");
  CHECK(text(einsum("ii", in({3, 3}))) == "float32[]");
  CHECK(text(einsum("ii->i", in({3, 3}))) == "float32[3]");
  CHECK(text(einsum("i,ij,jk,k->", in({2}), in({2, 3}), in({3, 4}), in({4}))) == "float32[]");
  CHECK(text(einsum("ij,kl->jl", in({2, 3}), in({4, 5}))) == "float32[3,5]");
  CHECK(text(einsum("bij,bj->bi", in({5, 2, 3}), in({5, 3}))) == "float32[5,2]");
}

TEST_CASE("shapes: creation") {
  CHECK(text(zeros({2, 3})) == "float32[2,3]");
  CHECK(text(ones({}, int8)) == "int8[]");
  CHECK(text(empty({0})) == "float32[0]");
  CHECK(text(zeros_like(in({2}, int16))) == "int16[2]");
  CHECK(text(ones_like(in({2}), bool_)) == "bool[2]");
  CHECK(text(full_like(in({2, 2}, int32), 2.7)) == "int32[2,2]");
  CHECK(text(full({2, 3}, in({3}, int16))) == "int16[2,3]");
  CHECK(text(arange(5)) == "int32[5]");
  CHECK(text(arange(2, 7)) == "int32[5]");
  CHECK(text(arange(5, 0, -2)) == "int32[3]");
  CHECK(text(arange(1, 0)) == "int32[0]");
  CHECK(text(arange(0, 1, 0.1)) == "float32[10]");
  CHECK(text(arange(0.0, 1.0, 0.3)) == "float32[4]");
  CHECK(text(arange(0.5, 4)) == "float32[4]");
  CHECK(text(arange(3, float64)) == "float64[3]");
  CHECK(text(linspace(0, 1, 7)) == "float32[7]");
  CHECK(text(linspace(0, 10, 4, {.dtype = int32})) == "int32[4]");
  CHECK(text(eye(3)) == "float32[3,3]");
  CHECK(text(eye(3, 4, 1, bool_)) == "bool[3,4]");
}

TEST_CASE("shapes: subscripts") {
  const Array x = in({5, 6, 7});
  CHECK(text(x[2]) == "float32[6,7]");
  CHECK(text(x[-5]) == "float32[6,7]");
  CHECK(text(x[slice(1, 4)]) == "float32[3,6,7]");
  CHECK(text(x[slice(none, none, -2)]) == "float32[3,6,7]");
  CHECK(text(x[slice(10, 0, -3)]) == "float32[2,6,7]");
  CHECK(text(x[slice(4, 1)]) == "float32[0,6,7]");
  CHECK(text(x[slice(-100, 100)]) == "float32[5,6,7]");
  CHECK(text(x[{0, slice(2, 5), all}]) == "float32[3,7]");
  CHECK(text(x[{all, newaxis, -1}]) == "float32[5,1,7]");
  CHECK(text(x[{ellipsis, 3}]) == "float32[5,6]");
  CHECK(text(x[{newaxis, ellipsis, newaxis}]) == "float32[1,5,6,7,1]");
  CHECK(text(x[{1, 2, 3}]) == "float32[]");
  CHECK(text(in({})[ellipsis]) == "float32[]");
  CHECK(text(x.at({0, slice(2, 5)}).get()) == "float32[3,7]");
  CHECK(text(x.at({0, slice(2, 5)}).set(1)) == "float32[5,6,7]");
  CHECK(text(in({4}, int8).at({slice(none, none, 2)}).add(2)) == "int8[4]");
}

TEST_CASE("ops: what a function records") {
  auto op_of = [](const Array& x) { return std::string(x.node()->op->name); };
  const Array x = in({4, 3});
  CHECK(op_of(power(x, 2)) == "mul");
  CHECK(op_of(power(x, 2.0)) == "pow");
  CHECK(op_of(x[all]) == "input");  // everything: the same array
  CHECK(op_of(x.reshape({4, 3})) == "input");
  CHECK(op_of(x.astype(float32)) == "input");
  CHECK(op_of((x * 2).node()->in()[1].node()->in()[0]) == "constant");  // a literal is converted, not cast
  CHECK((x * 2).node()->in()[1].dtype() == float32);
  CHECK(op_of(matmul(x, in({3, 2}))) == "dot");
  CHECK(op_of(einsum("ij,ij->ij", x, x)) == "mul");  // nothing is contracted
  const int line = __LINE__ + 1;
  const Array y = softmax(x + 1.0);
  CHECK(y.node()->where.line == line);
  CHECK(y.node()->in()[0].node()->where.line == line);
}

// The linker puts the definitions side by side: none is lost.
static std::size_t definitions() {
  std::size_t n = 0;
  for (const auto& file : std::filesystem::directory_iterator(testing::source_folder() + "/src/ops")) {
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) n += line.starts_with("SHARDARRAY_OP ");
  }
  return n;
}
TEST_CASE("ops: every op is complete") {
  std::set<std::string> names;
  for (const Op& op : all_ops()) {
    CHECK_MESSAGE(names.insert(op.name).second, op.name << " stands twice");
    CHECK_MESSAGE(!!op.rule, op.name << " has no rule");
    CHECK_MESSAGE((op.form == Form::scalar) == (op.scalar != nullptr), op.name << ": scalar and its form");
    CHECK_MESSAGE((op.form == Form::map) == (op.map != nullptr), op.name << ": map and its form");
    CHECK_MESSAGE((op.form != Form::boxes || op.boxes != nullptr), op.name << " has no boxes");
  }
  CHECK(names.size() == definitions());
}

TEST_CASE("rules: reshape shares what divides") {
  // factors of operand dimension d, with sizes and roles: `2 3w` is a shared 2 and a whole 3
  auto dims = [](const Shape& from, const Shape& to, bool result) {
    const Array y = primitive::reshape(in(from), to);
    const Type types[] = {{from, float32, false}};
    const Rule r = y.node()->op->rule({y.node()->op, types, {}, &y.node()->attrs()});
    std::string s;
    for (const DimFactors& d : (result ? r.results : r.operands)[0]) {
      s += s.empty() ? "" : ",";
      for (std::size_t k = 0; k < d.size(); k++) {
        const Factor& f = r.factors[static_cast<std::size_t>(d[k])];
        s += (k ? " " : "") + std::to_string(f.size) + (f.role == Role::whole ? "w" : "");
      }
    }
    return s;
  };
  CHECK(dims({2, 4}, {8}, true) == "2 4");
  CHECK(dims({2, 4}, {8}, false) == "2,4");
  CHECK(dims({8, 4}, {2, 16}, false) == "2 4,4");
  CHECK(dims({8, 4}, {2, 16}, true) == "2,4 4");
  CHECK(dims({3, 4}, {4, 3}, false) == "3w,4w");
  CHECK(dims({3, 4}, {4, 3}, true) == "4w,3w");
  CHECK(dims({4, 3, 5}, {6, 2, 5}, false) == "2 2w,3w,5");
  CHECK(dims({4, 3, 5}, {6, 2, 5}, true) == "2 3w,2w,5");
  CHECK(dims({1, 6, 1}, {6}, false) == "1w,6,1w");
  CHECK(dims({0, 2}, {2, 0}, true) == "2w,0w");
}

}  // namespace shardarray::ops_types_test
