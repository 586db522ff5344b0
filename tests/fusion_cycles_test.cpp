// Programs whose steps could be fused in many ways: values are read twice, directly and reshaped, gathered, kept, summed. However they are
// fused, no step waits for itself, and the values are those of the steps one by one.
#include <functional>
#include <string>

#include "compile/group_graph.h"
#include "compile/passes.h"
#include "op_data.h"
#include "program_of.h"
#include "shardarray/grad.h"

namespace fusion_cycles_test {

namespace sa = shardarray;
using program_test::Array;
using program_test::numbers;
using program_test::Shape;
using sa::testing::Rng;
using sa::testing::whole_between;

namespace {

using Arrays = std::vector<Array>;
using Apply = std::function<Array(const Arrays&)>;

// ---------------------------------------------------------------- random programs over few shapes
struct Line {
  std::string text;
  std::vector<int> in;
  Apply apply;  // null: a leaf
};

struct Program {
  std::vector<Line> lines;
  Arrays leaves;
  std::vector<int> outputs;

  Arrays run(const Arrays& given, bool one_by_one) const {
    Arrays values;
    std::size_t next = 0;
    for (const Line& l : lines) {
      Arrays in;
      for (int v : l.in) in.push_back(values[static_cast<std::size_t>(v)]);
      values.push_back(l.apply ? l.apply(in) : given[next++]);
      if (one_by_one) values.back().block_until_ready();
    }
    Arrays r;
    for (int v : outputs) r.push_back(values[static_cast<std::size_t>(v)]);
    return r;
  }
  std::string to_string() const {
    std::string s;
    for (std::size_t k = 0; k < lines.size(); k++) {
      s += "  %" + std::to_string(k) + " = " + lines[k].text;
      for (int v : lines[k].in) s += " %" + std::to_string(v);
      s += "\n";
    }
    s += "  ->";
    for (int v : outputs) s += " %" + std::to_string(v);
    return s + "\n";
  }
};

// All values have the same number of elements, so that each can be another's operand under another name. Linear programs
// have no products of values.
class Maker {
 public:
  Maker(std::uint64_t seed, sa::DType type, bool linear) : rng_(seed), type_(type), linear_(linear) {
    const std::vector<Shape> sizes[] = {{{24}, {4, 6}, {6, 4}, {2, 3, 4}},
                                        {{36}, {6, 6}, {4, 9}, {3, 4, 3}},
                                        {{16}, {4, 4}, {2, 8}, {1, 16}, {16, 1}},
                                        {{210}, {14, 15}, {30, 7}}};
    shapes_ = sizes[below(4)];
  }

  Program run(int ops) {
    for (std::int64_t k = below(3); k >= 0; k--) leaf(some_shape());
    for (int k = 0; k < ops; k++) add_line();
    const std::int64_t outputs = 1 + below(4);
    for (std::int64_t k = 0; k < outputs; k++)
      p_.outputs.push_back(static_cast<int>(below(static_cast<std::int64_t>(p_.lines.size()))));
    p_.outputs.push_back(static_cast<int>(p_.lines.size()) - 1);
    return std::move(p_);
  }

 private:
  std::int64_t below(std::int64_t n) { return whole_between(rng_, 0, n - 1); }
  const Shape& some_shape() {
    return shapes_[static_cast<std::size_t>(below(static_cast<std::int64_t>(shapes_.size())))];
  }
  const Shape& shape(int v) const { return values_[static_cast<std::size_t>(v)].shape(); }

  int leaf(const Shape& s) {
    p_.leaves.push_back(sa::testing::draw_array({s, -3, 3, sa::int32}, rng_).astype(type_));
    values_.push_back(p_.leaves.back());
    p_.lines.push_back({"leaf", {}, nullptr});
    return static_cast<int>(p_.lines.size()) - 1;
  }
  int add(std::string text, std::vector<int> in, Apply f) {
    Arrays operands;
    for (int v : in) operands.push_back(values_[static_cast<std::size_t>(v)]);
    values_.push_back(f(operands).block_until_ready());
    p_.lines.push_back({std::move(text), std::move(in), std::move(f)});
    return static_cast<int>(p_.lines.size()) - 1;
  }
  // A line of full size: one of the last, mostly.
  int late() {
    std::vector<int> full;
    for (int v = 0; v < static_cast<int>(p_.lines.size()); v++)
      if (values_[static_cast<std::size_t>(v)].size() == values_[0].size()) full.push_back(v);
    const auto n = static_cast<std::int64_t>(full.size());
    return full[static_cast<std::size_t>(below(2) ? below(n) : n - 1 - below(std::min<std::int64_t>(n, 3)))];
  }
  int shaped(int v, const Shape& s) {
    if (shape(v) == s) return v;
    return add("reshape", {v}, [s](const Arrays& x) { return x[0].reshape(s); });
  }

  void add_line() {
    const int v = late();
    switch (below(linear_ ? 9 : 12)) {
      case 0: shaped(v, some_shape()); return;
      case 1: turned(v); return;
      case 2:
      case 3: gathered(v); return;
      case 4: summed(v); return;
      case 5: moved(v); return;
      case 6: scaled(v); return;
      case 7:
      case 8: together(v, "add", [](const Arrays& x) { return x[0] + x[1]; }); return;
      case 9: together(v, "mul", [](const Arrays& x) { return x[0] * x[1]; }); return;
      case 10:
        together(v, "where", [](const Arrays& x) { return sa::where(x[0] < x[1], x[1], x[0] - x[1]); });
        return;
      default: add("sort", {v}, [](const Arrays& x) { return sa::sort(x[0]); });
    }
  }
  void together(int v, const char* text, Apply f) { add(text, {v, shaped(late(), shape(v))}, std::move(f)); }
  void turned(int v) {
    const auto rank = shape(v).size();
    if (rank < 2 || below(2)) {
      const std::int64_t axis = below(static_cast<std::int64_t>(rank));
      add("flip", {v}, [axis](const Arrays& x) { return sa::flip(x[0], axis); });
    } else {
      const int t = add("transpose", {v}, [](const Arrays& x) { return sa::transpose(x[0]); });
      if (below(2)) shaped(t, shape(v));
    }
  }
  // Rows by a table of the data, or by one that is computed.
  void gathered(int v) {
    const std::int64_t axis = below(static_cast<std::int64_t>(shape(v).size()));
    const std::int64_t n = shape(v)[static_cast<std::size_t>(axis)];
    const std::int64_t by = 1 + 2 * below(3), from = below(n);
    const bool computed = !linear_ && below(3) == 0;
    const Array table = sa::testing::draw_array({{n}, 0, static_cast<double>(n - 1), sa::int32}, rng_);
    if (computed) {
      const int o = late();
      add("take by", {v, o}, [axis, n](const Arrays& x) {
        const Array flat = sa::abs(x[1].reshape({-1}).astype(sa::int32));
        return sa::take(x[0], sa::remainder(flat[sa::slice(0, n)], n), axis);
      });
    } else if (below(2)) {
      add("take", {v}, [axis, table](const Arrays& x) { return sa::take(x[0], table, axis); });
    } else {
      add("take iota", {v},
          [=](const Arrays& x) { return sa::take(x[0], sa::remainder(sa::arange(n) * by + from, n), axis); });
    }
  }
  void summed(int v) {
    const std::int64_t axis = below(static_cast<std::int64_t>(shape(v).size()));
    const Shape s = shape(v);
    const bool most = !linear_ && below(3) == 0;
    const int r = add(most ? "max" : "sum", {v}, [axis, most](const Arrays& x) {
      const sa::ReduceOptions o{.axis = axis, .keepdims = true};
      return most ? sa::max(x[0], o) : sa::sum(x[0], o);
    });
    const int wide = add("broadcast", {r}, [s](const Arrays& x) { return sa::broadcast_to(x[0], s); });
    if (below(2)) add("add", {wide, v}, [](const Arrays& x) { return x[0] + x[1]; });
  }
  void moved(int v) {
    const std::int64_t axis = below(static_cast<std::int64_t>(shape(v).size()));
    const std::int64_t n = shape(v)[static_cast<std::size_t>(axis)], by = below(n);
    if (below(2)) {
      add("roll", {v}, [=](const Arrays& x) { return sa::roll(x[0], by, axis); });
    } else {
      add("split, pad", {v}, [=, rank = shape(v).size()](const Arrays& x) {
        std::vector<std::pair<std::int64_t, std::int64_t>> widths(rank);
        widths[static_cast<std::size_t>(axis)] = {0, by};
        return sa::pad(sa::split(x[0], Shape{by}, axis)[1], widths);
      });
    }
  }
  void scaled(int v) {
    const std::int64_t by = below(5) - 2;
    const Shape s = shape(v);
    if (below(2) || linear_) add("scale", {v}, [by](const Arrays& x) { return x[0] * by; });
    else
      add("add iota", {v}, [s, t = type_](const Arrays& x) {
        return x[0] + sa::arange(sa::num_elements(s)).reshape(s).astype(t);
      });
  }
  Rng rng_;
  sa::DType type_;
  bool linear_;
  Program p_;
  Arrays values_;
  std::vector<Shape> shapes_;
};

// What `program` gives compiled as one, against its steps one by one.
std::string wrong_outputs(const Program& program) {
  const Arrays want = program.run(program.leaves, true);
  Arrays got;
  try {
    got = sa::jit([&](const Arrays& x) { return program.run(x, false); })(program.leaves);
  } catch (const std::exception& e) { return e.what(); }
  for (std::size_t k = 0; k < want.size(); k++)
    if (got[k].to_vector<double>() != want[k].to_vector<double>()) return "output " + std::to_string(k);
  return "";
}

// sum(x[k] * y[k]), and the same of the absolute values.
std::pair<double, double> inner(const Arrays& x, const Arrays& y) {
  double sum = 0, size = 1;
  for (std::size_t k = 0; k < x.size(); k++) {
    const auto a = x[k].to_vector<double>(), b = y[k].to_vector<double>();
    for (std::size_t i = 0; i < a.size(); i++) sum += a[i] * b[i], size += std::abs(a[i] * b[i]);
  }
  return {sum, size};
}

// Of y = f(x), linear, the gradient g of sum(y * y): g e = 2 y f(e).
std::string wrong_gradient(const Program& program, Rng& rng) {
  Arrays direction, got;
  for (const Array& x : program.leaves)
    direction.push_back(sa::testing::draw_array({x.shape(), -3, 3, sa::int32}, rng).astype(sa::float64));
  const auto loss = [&](const Arrays& x) {
    Array total = sa::zeros({}, sa::float64);
    for (const Array& y : program.run(x, false)) total = total + sa::sum(sa::square(y));
    return total;
  };
  try {
    got = sa::jit(sa::grad(loss))(program.leaves);
  } catch (const std::exception& e) { return e.what(); }
  const auto want = inner(program.run(program.leaves, true), program.run(direction, true));
  const double have = inner(got, direction).first;
  if (std::abs(have - 2 * want.first) <= 1e-12 * want.second) return "";
  return "along a direction " + std::to_string(have) + ", want " + std::to_string(2 * want.first);
}

}  // namespace

TEST_CASE("fusion: a gather that is read directly and under another name") {
  const int most = sa::testing::full_scale() ? 24 : 7;
  int checked = 0;
  for (int rows = 1; rows <= most; rows++)
    for (int columns = 1; columns <= most; columns++)
      for (int picked = 1; picked <= most; picked += 2) {
        Rng rng(static_cast<std::uint64_t>((rows * 100 + columns) * 100 + picked));
        const Array table = numbers({rows, columns});
        const Array index =
            sa::testing::draw_array({{picked}, 0, static_cast<double>(columns - 1), sa::int32}, rng);
        const auto loss = [&](const Array& u) {
          const Array t = sa::take(u, index, 1);
          return sa::sum(sa::square(t.reshape({-1}))) + sa::sum(sa::square(t));
        };
        const auto got = sa::jit(sa::grad(loss))(table).to_vector<double>();
        std::vector<double> want(got.size(), 0);  // 4 u for every time that a column is picked
        const auto values = table.to_vector<double>();
        for (const std::int32_t c : index.to_vector<std::int32_t>())
          for (int r = 0; r < rows; r++) {
            const auto at = static_cast<std::size_t>(r * columns + c);
            want[at] += 4 * values[at];
          }
        REQUIRE(got == want);
        checked++;
      }
  CHECK(checked > 0);
}

TEST_CASE("fusion: random programs have the values of their steps one by one") {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= (sa::testing::full_scale() ? 5000u : 300u) && failures < 3; seed++) {
    const Program program = Maker(seed, sa::int32, false).run(8 + static_cast<int>(seed % 24));
    const std::string text = wrong_outputs(program);
    if (text.empty()) continue;
    failures++;
    FAIL_CHECK("seed " << seed << ": " << text << "\n" << program.to_string());
  }
}

TEST_CASE("fusion: gradients of random linear programs are their transposes") {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= (sa::testing::full_scale() ? 5000u : 300u) && failures < 3; seed++) {
    Rng rng(seed);
    const Program program = Maker(seed, sa::float64, true).run(4 + static_cast<int>(seed % 14));
    const std::string text = wrong_gradient(program, rng);
    if (text.empty()) continue;
    failures++;
    FAIL_CHECK("seed " << seed << ": " << text << "\n" << program.to_string());
  }
}

TEST_CASE("fusion: groups know who reads whom, joined or not") {
  for (std::uint64_t seed = 1; seed <= 200; seed++) {
    Rng rng(seed);
    const auto below = [&](int n) { return static_cast<int>(whole_between(rng, 0, n - 1)); };
    sa::GroupGraph graph;
    std::vector<std::pair<int, int>> links;  // between those that were added
    std::vector<int> part_of;
    const auto is_before = [&](int a, int b) {  // by one link or more
      std::vector<int> reached;
      const auto follow = [&](int g) {
        for (const auto& [from, to] : links) {
          const int r = part_of[static_cast<std::size_t>(to)];
          if (part_of[static_cast<std::size_t>(from)] == g && r != g &&
              !std::count(reached.begin(), reached.end(), r))
            reached.push_back(r);
        }
      };
      follow(a);
      for (std::size_t k = 0; k < reached.size(); k++) follow(reached[k]);
      return std::count(reached.begin(), reached.end(), b) > 0;
    };
    for (int k = 0; k < 30; k++) {
      const int fresh = graph.add();
      part_of.push_back(fresh);
      for (int n = below(3); n > 0 && fresh > 0; n--) {
        const int reader = below(fresh);
        graph.link(fresh, reader);
        links.emplace_back(fresh, reader);
      }
      const int a = part_of[static_cast<std::size_t>(below(fresh + 1))],
                b = part_of[static_cast<std::size_t>(below(fresh + 1))];
      if (a == b) continue;
      REQUIRE(graph.is_before(a, b) == is_before(a, b));
      REQUIRE(graph.leads_to({a}, b) == is_before(a, b));
      if (is_before(a, b) || is_before(b, a)) continue;
      graph.merge(a, b);
      for (int& p : part_of)
        if (p == b) p = a;
      REQUIRE(graph.find(b) == a);
    }
  }
}

TEST_CASE("fusion: groups that wait for each other are left out of the order") {
  const std::map<int, int> last = {{0, 0}, {1, 4}, {2, 2}, {3, 3}, {4, 1}};
  CHECK(sa::schedule({{1, {0}}, {2, {4}}}, last) == std::vector<int>{0, 4, 2, 3, 1});
  // 2 and 3 read each other, 1 reads 3.
  CHECK(sa::schedule({{2, {3}}, {3, {2}}, {1, {3}}}, last) == std::vector<int>{0, 4});
}

}  // namespace fusion_cycles_test
