// Every public function of arrays has a row in op_cases.h; a line that `./dev test` shows counts what the generic tests check of the
// rows.
#include <concepts>
#include <filesystem>
#include <fstream>
#include <map>

#include "op_data.h"
#include "public_names.h"
#include "shardarray/detail/differentiation.h"
#include "shardarray/shardarray.h"
#include "sources.h"

namespace op_coverage_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

const char* const headers[] = {"activations", "apply",       "associative_scan", "collectives", "compare",
                               "complex",     "conditional", "control_flow",     "convolution", "fft",
                               "image",       "indexing",    "linalg",           "losses",      "math",
                               "ops",         "ordering",    "polynomials",      "pooling",     "products",
                               "rearrange",   "sets",        "special",          "statistics"};

/// Other names of what has rows: of the same class, which has no state, or a function that calls it.
template <class F> const char* same_as(const F&, const F&, const char* other) { return other; }
const std::map<std::string, std::string> other_names = {
    {"acos", "arccos"},
    {"acosh", "arccosh"},
    {"asin", "arcsin"},
    {"asinh", "arcsinh"},
    {"atan", "arctan"},
    {"atan2", "arctan2"},
    {"atanh", "arctanh"},
    {"pow", "power"},
    {"conjugate", same_as(conjugate, conj, "conj")},
    {"deg2rad", same_as(deg2rad, radians, "radians")},
    {"empty_like", same_as(empty_like, zeros_like, "zeros_like")},
    {"expit", same_as(expit, sigmoid, "sigmoid")},
    {"hard_swish", same_as(hard_swish, hard_silu, "hard_silu")},
    {"rad2deg", same_as(rad2deg, degrees, "degrees")},
    {"true_divide", same_as(true_divide, divide, "divide")},
};
/// What gives no array.
const std::set<std::string> no_arrays = {"allclose", "array_equal", "ring"};

/// The words of a text without comments, quoted texts and names of the standard library.
void add_words(std::istream& in, std::set<std::string>& words) {
  for (std::string line; std::getline(in, line);) {
    std::size_t at = 0;
    const auto word = [&] {
      const std::size_t begin = at;
      while (at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) || line[at] == '_'))
        at++;
      return line.substr(begin, at - begin);
    };
    while (at < line.size() && !line.substr(at).starts_with("//")) {
      const std::string w = word();
      if (w == "std" && line.substr(at).starts_with("::")) at += 2, word();
      else if (!w.empty()) words.insert(w);
      else if (line[at] == '"') {
        while (++at < line.size() && line[at] != '"') at += line[at] == '\\';
        at++;
      } else at++;
    }
  }
}

enum class Derivative { compared, no_operand, no_result, zero, refused, missing };

/// What there is of a row's derivative, at a point where all of its operands vary.
Derivative derivative_of(const OpCase& row) {
  if (row.differentiable) return Derivative::compared;
  Rng rng(3);
  const Arrays x = draw_operands(row, rng);
  Arrays along;
  for (const OpInput& in : row.inputs)
    along.push_back(is_floating(in.dtype) ? to_array(draw({in.shape, 1, 2}, rng), in.shape, in.dtype)
                                          : Array());
  if (std::none_of(along.begin(), along.end(), [](const Array& a) { return a.has_value(); }))
    return Derivative::no_operand;
  const core::Differentiation d(x, "grad");
  const Array y[] = {row.function(d.variables())};
  if (!is_floating(y[0].dtype())) return Derivative::no_result;
  try {
    const Array forward = d.push(y, along)[0];
    if (!forward.has_value() || largest(host(forward).data) == 0) return Derivative::zero;
    const Array ones[] = {ones_like(y[0])};
    d.linearize(y);
    eval(d.pull(ones));
  } catch (const Error&) { return Derivative::refused; }
  return Derivative::missing;
}

}  // namespace

TEST_CASE("ops: every public function of arrays has a row; what is tested of the rows") {
  namespace fs = std::filesystem;
  const fs::path root = source_folder();
  std::set<std::string> words;
  for (const auto& file : fs::directory_iterator(root / "tests"))
    if (file.path().filename().string().starts_with("op_cases_")) {
      std::ifstream in(file.path());
      add_words(in, words);
    }
  std::size_t functions = 0;
  for (const std::string header : headers) {
    std::ifstream in(root / "include/shardarray" / (header + ".h"));
    REQUIRE(in.good());
    for (const std::string& name : public_names(in, false)) {
      if (no_arrays.contains(name)) continue;
      functions++;
      const auto other = other_names.find(name);
      const std::string& in_rows = other == other_names.end() ? name : other->second;
      CHECK_MESSAGE(words.contains(in_rows), header << ".h: no row of op_cases.h calls " << name);
    }
  }
  CHECK(functions > 300);

  std::map<Derivative, std::size_t> rows;
  std::size_t mapped = 0, all = 0;
  std::string zero, refused;
  for (const OpCase& row : op_cases()) {
    CHECK_MESSAGE((row.reference && row.tolerance < 1e-3), row.name << " is compared with nothing");
    const Derivative derivative = derivative_of(row);
    CHECK_MESSAGE(derivative != Derivative::missing, row.name << " has a derivative that is not compared");
    rows[derivative]++;
    all++;
    mapped += !row.inputs.empty();
    if (derivative == Derivative::zero) zero += (zero.empty() ? "" : ", ") + row.name;
    if (derivative == Derivative::refused) refused += (refused.empty() ? "" : ", ") + row.name;
  }
  // The tests of op_properties_test.cpp leave out what is said here, and no other row.
  MESSAGE("ops: " << functions << " functions in " << all << " rows: value, jit and shardings " << all
                  << ", vmap " << mapped << " (" << all - mapped << " have no operand), derivatives "
                  << rows[Derivative::compared] << " (" << rows[Derivative::no_operand]
                  << " have no floating operand, " << rows[Derivative::no_result] << " no floating result, "
                  << rows[Derivative::zero] << " a derivative of 0, " << rows[Derivative::refused]
                  << " none, which is an Error)");
  MESSAGE("rows with a derivative of 0: " << zero);
  MESSAGE("rows without a derivative: " << refused);
}

TEST_CASE("ops: which words of a row's code count") {
  std::set<std::string> words;
  std::istringstream text("a(b) + std::c(\"d \\\" e\", f);  // g\n// h\nshardarray::std(x_1);\n");
  add_words(text, words);
  CHECK(words == std::set<std::string>{"a", "b", "f", "shardarray", "std", "x_1"});
}

}  // namespace op_coverage_test
