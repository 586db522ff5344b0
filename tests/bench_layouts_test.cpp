// The pure functions of bench/matmul_layouts: options, spelling, lists, costs of strategies, how far choices are from the best.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "../bench/layouts_results.h"
#include "bench_layouts.h"

namespace bench_layouts_test {

using namespace bench;

namespace {

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
  CHECK(to_text(select_layouts({"x.,.y,auto"}, mesh).at(0), mesh) == "x.,.y,auto");
}

TEST_CASE("bench layouts: selection") {
  const auto mesh = parse_mesh("x=8");
  const auto all = select_layouts({"all"}, mesh);
  CHECK(all.size() == 27 + 9);  // for each A and B what the library picks, last
  for (std::size_t k = 0; k < all.size(); k++) CHECK(all[k].picked == (k >= 27));
  CHECK(select_layouts({"any,any,any"}, mesh) == all);
  CHECK(select_layouts({"x.,any,x.", "x.,..,any"}, mesh).size() == 6);  // x.,..,x. once
  CHECK(select_layouts({"random:5"}, mesh).size() == 5);
  CHECK(select_layouts({"random:99"}, mesh).size() == 27);
}

TEST_CASE("bench layouts: which C") {
  const auto mesh = parse_mesh("x=2,y=4,z=1");
  const auto asked = select_layouts({"x.,.y"}, mesh);
  CHECK(asked == select_layouts({"x.,.y,any"}, mesh));
  CHECK(asked.size() == 9 + 1);  // an axis of one device cuts nothing
  std::set<std::string> c;
  for (const ProductLayout& l : asked) {
    CHECK(l.a == Cut{{0}, {}});
    CHECK(l.b == Cut{{}, {1}});
    c.insert(to_text(l, mesh).substr(6));
  }
  CHECK(c == std::set<std::string>{"..", "x.", "y.", ".x", ".y", "xy", "yx", "x+y.", ".x+y", "auto"});
  CHECK(select_layouts({"x.,.y,auto"}, mesh) == std::vector{asked.back()});
  CHECK(ordered_cuts(mesh).size() == 9 + 2);  // y+x. and .y+x
}

TEST_CASE("bench layouts: messages") {
  const auto mesh = parse_mesh("x=2,y=4");
  check_message(
      [] { parse_mesh("x"); },
      "--mesh x: 'x' is no axis with a size. Write axes of one letter with their sizes: x=8 or x=2,y=4.");
  check_message([] { parse_mesh("x=2,"); }, "'' is no axis with a size");
  check_message([] { parse_mesh("x=100000"); }, "'x=100000' is too large: a mesh has 1 to 256 devices.");
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
  for (const char* word : {"x.", "x.,.y,..,..", ""})
    check_message([&] { select_layouts({word}, mesh); },
                  fmt::format("--layouts: '{}' is no layout. It names A and B, or A, B and C. Write all, "
                              "random:20, x.,.x (which C?) or x.,any,..",
                              word));
  check_message([&] { select_layouts({"x.,auto,.."}, mesh); },
                "--layouts: 'x.,auto,..': B is auto. A and B are placed before the call, the library picks C "
                "alone. Write any to measure every B.");
  check_message([&] { select_layouts({"random:0"}, mesh); },
                "--layouts: 'random:0' names no number of layouts from 1 to 999999. Write random:20.");
}

TEST_CASE("bench layouts: messages of options") {
  CHECK(parsed("--m 7 --dtype bf16 --layouts x.,.x ..,..,auto --quick").rounds == 3);
  CHECK(refusal("--m 0") == "--m: '0' is no whole number from 1 to 1000000. Write 1024, for example.");
  CHECK(refusal("--k 1e3") == "--k: '1e3' is no whole number from 1 to 1000000. Write 1024, for example.");
  CHECK(refusal("--n 1000001") ==
        "--n: '1000001' is no whole number from 1 to 1000000. Write 1024, for example.");
  CHECK(refusal("--top 0") == "--top: '0' is no whole number from 1 to 1000000. Write 12, for example.");
  CHECK(refusal("--rounds many") ==
        "--rounds: 'many' is no whole number from 1 to 1000. Write 9, for example.");
  CHECK(refusal("--peak-size 99999") ==
        "--peak-size: '99999' is no whole number from 1 to 32768. Write 8192, for example.");
  for (const char* bad : {"61", "-1", "nan", "soon"})
    CHECK(
        refusal(fmt::format("--min-time={}", bad)) ==
        fmt::format("--min-time: '{}' is no number of seconds from 0 to 60. Write 0.01, for example.", bad));
  CHECK(refusal("--dtype f8") ==
        "--dtype: 'f8' is no type of elements. Write one of f32, f64, f16, bf16, tf32.");
  CHECK(refusal("--platform tpu") == "--platform: 'tpu' is no platform. Write one of cpu, cuda.");
  CHECK(refusal("--json /no/such/folder/x") ==
        "--json: '/no/such/folder/x' cannot be written (No such file or directory). Name a file in a folder "
        "that exists and is yours.");
  CHECK(refusal("--csv /") ==
        "--csv: '/' cannot be written (Is a directory). Name a file in a folder that exists and is yours.");
  CHECK(refusal("--dtype tf32") ==
        "--dtype tf32: the CPU has no TF32, a mode of NVIDIA's GPUs. Add --platform cuda, or write --dtype "
        "f32.");
  CHECK(refusal("--m 100000 --n 100000") ==
        "--m 100000 --k 1024 --n 100000: a matrix of 10000000000 elements is too large. It has fewer than "
        "2^31. "
        "Make one of the sizes smaller.");
  CHECK(refusal("--mesh 8").starts_with("--mesh 8: '8' is no axis with a size."));
  CHECK(refusal("--layouts z.,..").starts_with("--layouts: 'z.': 'z' is no axis."));
}

// Rounding by hand: 8 bits of bf16 step by 2 from 256 on, 11 of f16 from 2048 on, by 4 from 4096 on.
TEST_CASE("bench layouts: elements of 2 bytes are rounded once, partial sums have 4") {
  const LayoutOptions bf16 = parsed("--dtype bf16"), f16 = parsed("--dtype f16"), f64 = parsed("--dtype f64");
  CHECK(bf16.type().rounded(255) == 255);
  CHECK(bf16.type().rounded(257) == 256);
  CHECK(bf16.type().rounded(259) == 260);
  CHECK(bf16.type().rounded(-1029) == -1032);
  CHECK(f16.type().rounded(-2049) == -2048);
  CHECK(f16.type().rounded(4102) == 4104);
  CHECK(f16.type().rounded(65519) == 65504);
  CHECK(std::isinf(f16.type().rounded(65520)));
  CHECK(f64.type().rounded(16777215) == 16777215);
  CHECK(parsed("").type().rounded(16777215) == 16777215);
  CHECK(bf16.type().rounded(0) == 0);
  CHECK(bf16.product().itemsize == 2);
  CHECK(bf16.product().sum_itemsize == 4);
  CHECK(f16.product().itemsize == 2);
  CHECK(f64.product().itemsize == 8);
  CHECK(f64.product().sum_itemsize == 8);
}

// The textbook's formulas for one axis, with elements of 4 bytes.
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

// An axis of many prime factors is listed too: as a grid of r rows and c columns it makes tiles of C that are larger in both, and turns
// them to rows then.
TEST_CASE("bench layouts: strategies split long axes") {
  const double side = 1024, square = 4 * side * side;
  for (const auto& [mesh, r, c] : {std::tuple{"x=16", 4.0, 4.0}, {"x=32", 8.0, 4.0}, {"x=64", 8.0, 8.0}}) {
    const Product p{parse_mesh(mesh), 1024, 1024, 1024, 4};
    const double g = r * c, rows_of_a = square * (1 / r - 1 / g), columns_of_b = square / c * (g - 1) / g,
                 rows_of_c = square / g * (c - 1) / c;
    CAPTURE(mesh);
    CHECK(evenly(p, "x.,x.,x.").bytes <= doctest::Approx(rows_of_a + columns_of_b + rows_of_c));
    CHECK(evenly(p, "x.,..,x.").bytes == 0);
    CHECK(strategies(p, layout("x.,x.,x.", p)).size() == 106);  // 1 + 9 + 36 + 60 lists of three factors
  }
}

// Complete sums are gathered in the elements' type, partial sums move in float32.
TEST_CASE("bench layouts: strategies for elements of 2 bytes") {
  const Product p{parse_mesh("x=8"), 1024, 512, 256, 2, 4}, deep{parse_mesh("x=8"), 64, 65536, 64, 2, 4};
  const double g = 8, kn = 2.0 * 512 * 256, sums = 4.0 * 64 * 64, results = 2.0 * 64 * 64;
  CHECK(evenly(p, "x.,.x,x.").bytes == doctest::Approx((g - 1) / g * kn));
  CHECK(evenly(deep, ".x,x.,..").bytes == doctest::Approx((g - 1) / g * (sums + results)));
  CHECK(evenly(deep, ".x,x.,x.").bytes == doctest::Approx((g - 1) / g * sums));
  CHECK(evenly(deep, ".x,x.,auto").bytes == doctest::Approx((g - 1) / g * sums));  // to any C
  CHECK(evenly(p, "x.,..,auto").bytes == 0);
  CHECK(crossover_m({parse_mesh("x=8"), 1, 1024, 4096, 2, 4}, {}) == doctest::Approx(1024.0 * 2 / (4 + 2)));
}

TEST_CASE("bench layouts: the floor is the longer of arithmetic and transfers of the fastest strategy") {
  const std::vector<Strategy> two{{"", 100, 10}, {"", 40, 60}};
  CHECK(floor_seconds(two, {10, 10}, 1) == 6);   // 10 or 1 by the first, 4 or 6 by the second
  CHECK(floor_seconds(two, {10, 1}, 1) == 10);   // 10 or 10
  CHECK(floor_seconds(two, {10, 10}, 8) == 48);  // all devices share the machine
}

TEST_CASE("bench layouts: how far what the library picks is from the best") {
  LayoutResults x;
  x.product = {parse_mesh("x=8"), 64, 64, 64};
  const auto add = [&](const std::string& text, bool picked, std::vector<double> seconds) {
    LayoutRow row;
    row.layout = layout(text, x.product);
    row.picked = picked;
    row.timed = x.cases.size();
    x.cases.push_back({.name = text, .call = {}, .seconds = std::move(seconds)});
    x.rows.push_back(row);
  };
  add("x.,.x,x.", true, {2, 2, 2});  // alone with its A and B
  add("..,..,..", true, {3, 3, 3});  // the best of two
  add("..,..,x.", false, {4, 4, 4});
  add("x.,..,x.", false, {5, 10, 5});
  add("x.,..,..", true, {6, 12, 6});
  add(".x,x.,..", false, {10, 12, 14});
  add(".x,x.,.x", true, {13, 13, 13});  // within the spread of the best
  const std::vector<Choice> all = choices(x);
  REQUIRE(all.size() == 3);
  CHECK(all[0].picked == 4);
  CHECK(all[0].best == 3);
  CHECK(all[0].measured == 2);
  CHECK(all[0].ratio == doctest::Approx(1.2));
  CHECK(!all[0].tie);
  CHECK(all[1].picked == 6);
  CHECK(all[1].tie);
  CHECK(all[2].picked == all[2].best);
  CHECK(all[2].ratio == 1);
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
