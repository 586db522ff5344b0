// The pure parts of bench/matmul_layouts: spelling, lists, what strategies cost.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "../bench/layouts.h"

namespace bench_layouts_test {

using namespace bench;

namespace {

// Throws its message away unless it contains `text`.
template <class F> void check_message(const F& f, const std::string& text) {
  std::string message;
  try {
    f();
  } catch (const std::invalid_argument& e) { message = e.what(); }
  CHECK_MESSAGE(message.find(text) != message.npos, "'" << message << "' lacks '" << text << "'");
}

ProductLayout layout(const std::string& text, const Product& p) {
  return select_layouts({text}, p.mesh).at(0);
}

// The fewest bytes with the arithmetic dealt out evenly.
Strategy evenly(const Product& p, const std::string& text) {
  return least_bytes(strategies(p, layout(text, p)), p.flops() / p.devices());
}

}  // namespace

TEST_CASE("bench layouts: spelling") {
  const auto mesh = parse_mesh("x=2,y=4");
  CHECK(mesh.size() == 2);
  CHECK(mesh[1].size == 4);
  CHECK(parse_cut("x.", mesh) == Cut{{0}, {}});
  CHECK(parse_cut("xy", mesh) == Cut{{0}, {1}});
  CHECK(parse_cut(".y+x", mesh) == Cut{{}, {1, 0}});
  std::set<std::string> texts;
  for (const ProductLayout& l : all_layouts(mesh)) {
    const std::string text = to_text(l, mesh);
    texts.insert(text);
    CHECK(select_layouts({text}, mesh) == std::vector{l});
  }
  CHECK(texts.size() == 729);
  CHECK(all_layouts(parse_mesh("x=8")).size() == 27);
}

TEST_CASE("bench layouts: selection") {
  const auto mesh = parse_mesh("x=8");
  CHECK(select_layouts({"all"}, mesh).size() == 27);
  CHECK(select_layouts({"x.,any,x.", "x.,..,any"}, mesh).size() == 5);  // x.,..,x. once
  CHECK(select_layouts({"random:5"}, mesh).size() == 5);
  CHECK(select_layouts({"random:99"}, mesh).size() == 27);
}

TEST_CASE("bench layouts: messages") {
  const auto mesh = parse_mesh("x=2,y=4");
  check_message(
      [] { parse_mesh("x"); },
      "--mesh x: 'x' is no axis with a size. Write axes of one letter with their sizes: x=8 or x=2,y=4.");
  check_message([] { parse_mesh("x=2,"); }, "'' is no axis with a size");
  check_message([] { parse_mesh("x=2,x=4"); }, "axis x stands twice");
  check_message([] { parse_mesh("x=0"); }, "a mesh has 1 to 256 devices");
  check_message([] { parse_mesh("8=x"); }, "'8=x' is no axis with a size");
  check_message([] { parse_mesh("a=2,b=2,c=2,d=2"); }, "4 axes are too many");
  check_message([&] { parse_cut("z.", mesh); },
                "--layouts: 'z.': 'z' is no axis. A matrix is spelled as rows and columns");
  check_message([&] { parse_cut("xx", mesh); }, "axis x stands twice");
  check_message([&] { parse_cut("x", mesh); }, "it has 1 dimension.");
  check_message([&] { parse_cut("x.y", mesh); }, "it has 3 dimensions.");
  check_message([&] { parse_cut("x+", mesh); }, "an axis is missing at the end");
  check_message([&] { parse_cut("+x", mesh); }, "'+' is no axis");
  check_message([&] { select_layouts({"x.,.y"}, mesh); }, "'x.,.y' is no layout");
  check_message([&] { select_layouts({"random:0"}, mesh); }, "names no number of layouts");
}

// The formulas of the textbook on one axis, elements of 4 bytes.
TEST_CASE("bench layouts: strategies cost what the formulas say") {
  const Product p{parse_mesh("x=8"), 1024, 512, 256, 4};
  const double g = 8, mn = 4.0 * 1024 * 256, kn = 4.0 * 512 * 256;
  CHECK(evenly(p, "x.,..,x.").bytes == 0);
  CHECK(evenly(p, "..,.x,.x").bytes == 0);
  CHECK(evenly(p, "x.,.x,x.").bytes == doctest::Approx((g - 1) / g * kn));  // gather the weights
  CHECK(evenly(p, "x.,.x,x.").where == "m/8");
  CHECK(evenly(p, "..,..,..").bytes == doctest::Approx((g - 1) / g * mn));      // share the work, gather C
  CHECK(evenly(p, "..,x.,.x").bytes == doctest::Approx((g - 1) / g / g * kn));  // all-to-all from k to n
  const Product deep{parse_mesh("x=8"), 64, 65536, 64, 4};
  CHECK(evenly(deep, ".x,x.,..").bytes == doctest::Approx(2 * (g - 1) / g * 4 * 64 * 64));  // all-reduce
  CHECK(evenly(deep, ".x,x.,x.").bytes == doctest::Approx((g - 1) / g * 4 * 64 * 64));      // reduce-scatter
  CHECK(evenly(deep, ".x,x.,x.").where == "k/8");
  // two gathers: A whole along k within rows, B within columns
  const Product grid{parse_mesh("x=2,y=4"), 1024, 1024, 1024, 4};
  const double matrix = 4.0 * 1024 * 1024;
  CHECK(evenly(grid, "xy,xy,xy").bytes <= doctest::Approx(3.0 / 4 * matrix / 2 + 1.0 / 2 * matrix / 4));
  CHECK(least_bytes(strategies(p, layout("..,..,..", p)), 8 * p.flops()).bytes == 0);  // repeat the work
}

TEST_CASE("bench layouts: sizes that do not divide") {
  const Product p{parse_mesh("x=4"), 10, 7, 1, 4};
  const Strategy s = least_bytes(strategies(p, layout("x.,..,x.", p)), 2.0 * 3 * 7);
  CHECK(s.bytes == 0);
  CHECK(s.flops == 2.0 * 3 * 7);  // tiles of 3, 3, 3 and 1 rows
}

TEST_CASE("bench layouts: where gathering overtakes all-reducing") {
  const Product p{parse_mesh("x=8"), 1, 1024, 4096, 4};
  CHECK(crossover_m(p, {}) == 512);
  const Rates fast_math{1e15, 1e9}, slow_math{1e9, 1e9};
  CHECK(crossover_m(p, fast_math) == doctest::Approx(512).epsilon(0.01));
  CHECK(std::isinf(crossover_m(p, slow_math)));
  const Strategy few_bytes{"", 1000, 1}, few_flops{"", 1, 1000};
  CHECK(fastest({few_bytes, few_flops}, {1e6, 1}, 8).bytes == 1);
  CHECK(fastest({few_bytes, few_flops}, {1, 1e6}, 8).flops == 1);
}

}  // namespace bench_layouts_test
