// What bench/matmul_layouts computes from its figures: quality of predictions, tables, sweeps, comparisons, code.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "../bench/layouts_code.h"
#include "../bench/layouts_compare.h"
#include "../bench/layouts_report.h"
#include "../bench/layouts_sweep.h"
#include "../bench/layouts_table.h"
#include "bench_layouts.h"
#include "shardarray/shardarray.h"

namespace bench_layouts_test {

namespace {

// Rows with measured and predicted times and memory, in the order of the measured times.
LayoutResults results(const std::vector<std::array<double, 3>>& rows, double spread = 0) {
  LayoutResults x;
  x.product = {parse_mesh("x=8"), 64, 64, 64};
  const std::vector<ProductLayout> layouts = all_layouts(x.product.mesh);
  for (std::size_t k = 0; k < rows.size(); k++) {
    const auto [seconds, predicted, memory] = rows[k];
    LayoutRow row;
    row.layout = layouts[k];
    row.name = to_text(row.layout, x.product.mesh);
    row.math = predicted;
    row.memory = memory;
    row.timed = x.cases.size();
    x.cases.push_back(
        {.name = row.name, .call = {}, .seconds = {seconds - spread, seconds, seconds + spread}});
    x.rows.push_back(row);
  }
  return x;
}

// Of products of 8 x 8.
std::string code_of(const std::string& mesh, const std::string& text, bool chain = false,
                    const std::string& dtype = "f32") {
  LayoutResults x;
  x.product = {parse_mesh(mesh), 8, 8, 8, 4, 4, chain};
  x.o.dtype = dtype;
  LayoutRow row;
  row.layout = select_layouts({text}, x.product.mesh, chain).at(0);
  return code(x, row);
}

}  // namespace

TEST_CASE("bench layouts: how well times were predicted") {
  CHECK(ranks({30, 10, 20, 10}) == std::vector<double>{4, 1.5, 3, 1.5});
  CHECK(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 1000}) == doctest::Approx(1));
  CHECK(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}) == doctest::Approx(-1));
  CHECK(rank_correlation({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}) == doctest::Approx(0.8));  // 1 - 6 * 4 / (5 * 24)
  CHECK(rank_correlation({1, 1, 1}, {1, 2, 3}) == 0);

  const auto p = prediction(results({{2, 1, 0}, {4, 2, 0}, {5, 5, 0}}));
  REQUIRE(p);
  CHECK(p->correlation == doctest::Approx(1));
  CHECK(p->median_error == doctest::Approx(0.5));  // of 1/2, 1/2 and 0
  CHECK(p->first == 0);
  CHECK(p->regret == 0);

  const auto late = prediction(results({{2, 3, 0}, {3, 1, 7}, {4, 1, 5}, {5, 1, 5}, {6, 1, 6}}));
  CHECK(late->first == 3);  // 1 second; of those the least memory; of the two alike the slower one
  CHECK(late->alike == 2);
  CHECK(late->regret == doctest::Approx(1.5));

  LayoutResults only_predicted = results({{1, 1, 0}, {2, 2, 0}});
  for (LayoutRow& r : only_predicted.rows) r.timed.reset();
  CHECK_FALSE(prediction(only_predicted));
  CHECK(only_predicted.seconds(only_predicted.rows[1]) == 2);
  CHECK_FALSE(prediction(results({{1, 0, 0}})));  // no rates, no prediction
}

TEST_CASE("bench layouts: a table has its columns, in text and in Markdown") {
  LayoutResults x = results({{2e-3, 1e-3, 1e6}, {4e-3, 5e-3, 2e6}});
  x.o.columns = {"A", "collectives", "memory", "time", "/t_hi"};
  x.rows[1].collectives = "all_gather(x)";
  CHECK(LayoutTable(x).text() ==
        "#   A  collectives   memory    time /t_hi\n"
        "1*  .. none            1 MB 2.00 ms  2.00\n"
        "2   .. all_gather(x)   2 MB 4.00 ms  0.80\n");
  CHECK(LayoutTable(x).markdown() ==
        "| # |  | A | collectives | memory | time | /t_hi |\n"
        "|-:|--|--|--|-:|-:|-:|\n"
        "| 1 | * | .. | none | 1 MB | 2.00 ms | 2.00 |\n"
        "| 2 |  | .. | all_gather(x) | 2 MB | 4.00 ms | 0.80 |\n");
  x.o.top = 1;
  x.not_measured = 3;
  CHECK(LayoutTable(x).text().ends_with(
      "... and 1 slower ones\n... and 3 that are predicted to be slower were not measured\n"));

  x.o.top = 0;
  x.rows[0].bytes = 100, x.rows[0].least.bytes = HUGE_VAL;  // none has as few flops
  x.rows[1].bytes = 100, x.rows[1].least.bytes = 200;       // none receives as little
  CHECK(times_least(x.rows[0]) == "-");
  CHECK(times_least(x.rows[1]) == "0.50");
  x.rows[1].least.bytes = 50;
  CHECK(times_least(x.rows[1]) == "2.00");

  x.o.columns.clear();  // what moves is shortened, so that the table is no wider
  x.rows[1].collectives = std::string(80, 'm');
  x.rows[1].short_collectives = std::string(79, 's');
  const std::string text = LayoutTable(x).text();
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1)
    CHECK(end - at <= 112);
  CHECK(text.find("sss...") != text.npos);
  CHECK(LayoutTable(x).text(300).find(std::string(80, 'm')) != text.npos);

  Case many{.name = "", .call = {}};
  for (int k = 0; k < 200; k++) many.seconds.push_back((k * 7) % 200);  // 0 to 199, shuffled
  CHECK(percentile_99(many) == 197);                                    // 198 of 200 do not exceed it
  CHECK(percentile_99(x.cases[0]) == 2e-3);                             // of few the slowest
  check_message(
      [&] {
        columns_named({"time", "speed"});
      },
      "--columns: there is no column 'speed'. Write some of A,B,V,C,collectives,bytes/dev,");
}

TEST_CASE("bench layouts: a narrow table numbers long C's and names what moves by initials") {
  LayoutResults x = results({{2e-3, 1e-3, 1e6}, {3e-3, 1e-3, 1e6}, {4e-3, 5e-3, 2e6}});
  x.o.columns = {"A", "C", "collectives", "time"};
  x.rows[0].collectives = "all_to_all(x) reduce_scatter(x:(2)4) all_gather(x)";
  x.rows[0].short_collectives = "aa(x) rs(x:(2)4) ag(x)";
  x.rows[1].collectives = "exchange(x)", x.rows[1].short_collectives = "ex(x)";
  for (const std::size_t k : {0, 2}) x.rows[k].c_spelling = "[1024@x:(2)4,1024@x:(1)2]";
  const std::string whole =
      "#   A  C                         collectives                                           time\n"
      "1*  .. [1024@x:(2)4,1024@x:(1)2] all_to_all(x) reduce_scatter(x:(2)4) all_gather(x) 2.00 ms\n"
      "2   .. x.                        exchange(x)                                        3.00 ms\n"
      "3   .. [1024@x:(2)4,1024@x:(1)2] none                                               4.00 ms\n";
  CHECK(LayoutTable(x).text() == whole);
  CHECK(LayoutTable(x).text(60) ==
        "#   A  C   collectives               time\n"
        "1*  .. [1] aa(x) rs(x:(2)4) ag(x) 2.00 ms\n"
        "2   .. x.  exchange(x)            3.00 ms\n"
        "3   .. [1] none                   4.00 ms\n"
        "[1] C is [1024@x:(2)4,1024@x:(1)2]\n"
        "aa all_to_all, ag all_gather, rs reduce_scatter\n");
  CHECK(LayoutTable(x).markdown().find("| [1024@x:(2)4,1024@x:(1)2] | all_to_all(x) reduce_scatter(") !=
        std::string::npos);
}

TEST_CASE("bench layouts: what stands above and below the table") {
  LayoutResults x = results({{2e-3, 1e-3, 1e6}, {4e-3, 5e-3, 2e6}});
  x.cases.push_back({.name = "BLAS", .call = {}, .seconds = {1, 1, 1}});
  x.blas = x.cases.size() - 1;
  x.blas_library = "OpenBLAS 0.3.21, Haswell";
  const std::string text = Report(x).text();
  CHECK(text.starts_with("C[1024,64] = A[1024,1024] B[1024,1024] f32 on 8 virtual CPU devices, mesh x=8"));
  CHECK(text.find("this product by the BLAS (OpenBLAS 0.3.21, Haswell) on one device") != text.npos);
  CHECK(text.find(LayoutTable(x).text()) != text.npos);
  CHECK(text.find("\n2 layouts; every piece of every result is exact\n") != text.npos);
  CHECK(text.find("the first one as code, behind #include <shardarray/shardarray.h>:\n" +
                  code(x, x.rows[0])) != text.npos);
  CHECK(text.find("disturbed") == text.npos);

  x.load = x.workers;
  CHECK(Report(x).text().find("\nother programs were running: these times are disturbed\n") != text.npos);
  x.load = 0;
  x.cases.push_back({.name = "512 bit", .call = {}, .options = {.flops = 8}, .seconds = {8, 10, 10.9}});
  x.peaks = {x.cases.size() - 1};
  x.find_rates();
  CHECK(x.disturbed().empty());            // 2 and 0.9 away from 10
  x.cases.back().seconds = {8, 10, 11.2};  // 2 and 1.2
  CHECK(x.disturbed() == "other programs were running (the peak spreads by 12 %)");
}

// As openblas_get_config writes it: for builds that choose kernels at load time, for other builds, and for other libraries.
TEST_CASE("bench layouts: the BLAS names its kernels") {
  CHECK(blas_library("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64") ==
        "OpenBLAS 0.3.21, SkylakeX");
  CHECK(blas_library("OpenBLAS 0.3.10 NO_AFFINITY HASWELL SINGLE_THREADED") == "OpenBLAS 0.3.10, HASWELL");
  CHECK(blas_library("").empty());
}

// Compiles `...`, runs it and compares it with the printed lines, word by word.
#define CHECK_CODE(printed, value, ...)                                              \
  {                                                                                  \
    const auto compiled = [] {                                                       \
      __VA_ARGS__                                                                    \
      return y.to_vector<float>();                                                   \
    };                                                                               \
    CHECK(compiled() == std::vector<float>(64, value));                              \
    std::istringstream words(printed);                                               \
    std::string line;                                                                \
    for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word; \
    CHECK(line == #__VA_ARGS__);                                                     \
  }

TEST_CASE("bench layouts: a layout as code") {
  // clang-format off
  CHECK_CODE(code_of("x=2,y=4", "x+y.,.y,yx"), 8,
    namespace sa = shardarray;
    const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
    const sa::NamedSharding a(mesh, sa::P(sa::axes("x", "y")));
    const sa::NamedSharding b(mesh, sa::P(sa::none, "y"));
    const sa::NamedSharding c(mesh, sa::P("y", "x"));
    const sa::Array x = sa::ones({8, 8}, sa::float32);
    const sa::Array w = sa::ones({8, 8}, sa::float32);
    const auto product = sa::jit(sa::matmul, {.out_shardings = c});
    const sa::Array y = product(sa::device_put(x, a), sa::device_put(w, b));)
  CHECK_CODE(code_of("x=4", "..,.x,x.,x.", true, "bf16"), 64,
    namespace sa = shardarray;
    const sa::Mesh mesh = sa::make_mesh({{"x", 4}});
    const sa::NamedSharding a(mesh, sa::P());
    const sa::NamedSharding b(mesh, sa::P(sa::none, "x"));
    const sa::NamedSharding v_cut(mesh, sa::P("x"));
    const sa::NamedSharding c(mesh, sa::P("x"));
    const sa::Array x = sa::ones({8, 8}, sa::bfloat16);
    const sa::Array w = sa::ones({8, 8}, sa::bfloat16);
    const sa::Array v = sa::ones({8, 8}, sa::bfloat16);
    const auto product = sa::jit([](const sa::Array& p, const sa::Array& q, const sa::Array& r) { return sa::matmul(sa::matmul(p, q), r); }, {.out_shardings = c});
    const sa::Array y = product(sa::device_put(x, a), sa::device_put(w, b), sa::device_put(v, v_cut));)
  CHECK_CODE(code_of("x=2,y=4", "..,..,auto", false, "tf32"), 8,
    namespace sa = shardarray;
    const sa::tf32 products(true);
    const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
    const sa::NamedSharding a(mesh, sa::P());
    const sa::NamedSharding b(mesh, sa::P());
    const sa::Array x = sa::ones({8, 8}, sa::float32);
    const sa::Array w = sa::ones({8, 8}, sa::float32);
    const auto product = sa::jit(sa::matmul);
    const sa::Array y = product(sa::device_put(x, a), sa::device_put(w, b));)
  // clang-format on
  const std::string lines = code_of("x=4", "..,..,..");
  CHECK(lines.starts_with("  namespace sa = shardarray;\n  const sa::Mesh mesh = "));
  CHECK(lines.ends_with(";\n"));
}

TEST_CASE("bench layouts: a sweep of sizes") {
  CHECK(parse_sweep("m=64..512").values == std::vector<std::int64_t>{64, 128, 256, 512});
  CHECK(parse_sweep("k=3,100").values == std::vector<std::int64_t>{3, 100});
  CHECK(parse_sweep("n=3,100").size == 'n');
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"64..512", "it names none of m, k and n"},
           {"q=64..512", "it names none of m, k and n"},
           {"m=", "it has no sizes of m"},
           {"m=64", "it is less than two sizes"},
           {"m=64..100", "it is less than two sizes"},
           {"m=9,8", "its sizes do not rise"},
           {"m=8,8", "its sizes do not rise"},
           {"m=8,", "'' is no whole number from 1 to 1000000"},
           {"m=0..8", "'0' is no whole number from 1 to 1000000"},
           {"m=8...16", "'.16' is no whole number from 1 to 1000000"}})
    check_message([&text = text] { parse_sweep(text); },
                  "--sweep " + text + ": " + why + ". Write one of m, k and n with sizes: m=64..8192");
  CHECK(refusal("--sweep m=8").find("--sweep m=8: it is less than two sizes") == 0);
  CHECK(refusal("--sweep m=8..64 --csv /dev/null").find("files hold the table of one size") !=
        std::string::npos);
  const std::vector<LayoutOptions> all = sizes_of(parsed("--sweep k=8..32 --m 5"));
  REQUIRE(all.size() == 3);
  CHECK(all[2].k == 32);
  CHECK(all[2].m == 5);
  CHECK(refusal("--m 100000 --n 100000").find("too large") != std::string::npos);
  check_message([] { sizes_of(parsed("--m 100000 --sweep n=100,100000")); }, "too large");

  // The first layout takes m seconds, the second one 10 sqrt(m): they are equal at 100.
  const auto table = [](std::vector<std::int64_t> sizes, double spread) {
    SweepTable t('m');
    for (const std::int64_t m : sizes) {
      const auto first = static_cast<double>(m), second = 10 * std::sqrt(first);
      LayoutResults x = results({{first, first, 0}, {second, second, 0}}, 0);
      for (std::size_t k = 0; k < 2; k++)
        x.cases[k].seconds = {x.seconds(x.rows[k]) * (1 - spread), x.seconds(x.rows[k]),
                              x.seconds(x.rows[k]) * (1 + spread)};
      x.o.m = m;
      x.sort();
      t.add(x);
    }
    return t;
  };
  const SweepTable exact = table({16, 64, 256, 1024}, 0);
  REQUIRE(exact.crossovers().size() == 1);
  CHECK(exact.crossovers()[0].size == doctest::Approx(100));
  CHECK(exact.crossovers()[0].before == "..,..,..");
  CHECK(exact.crossovers()[0].after == "..,..,x.");
  CHECK(exact.text().find("from about m = 100 on (100 to 100) ..,..,x. is faster than ..,..,..\n") !=
        std::string::npos);
  const std::vector<Crossover> spread = table({16, 64, 256, 1024}, 0.05).crossovers();
  REQUIRE(spread.size() == 1);
  CHECK(spread[0].earliest ==
        doctest::Approx(100 * std::exp(-0.2)));  // sqrt(m) / 10 within e^(-0.1) and e^(0.1)
  CHECK(spread[0].latest == doctest::Approx(100 * std::exp(0.2)));
  CHECK(table({64, 256}, 0.2).crossovers().empty());  // 0.8 and 1.25 are within such spreads
  CHECK(table({64, 256}, 0.2).text().find("no layout overtakes another by more than the spreads") !=
        std::string::npos);
}

TEST_CASE("bench layouts: two runs side by side") {
  const auto file = [](const std::vector<std::pair<double, double>>& times) {
    nlohmann::json all = {{{"name", "workers"}, {"mesh", "x=8"}, {"m", 64}, {"dtype", "f32"}}};
    for (std::size_t k = 0; k < times.size(); k++)
      all.push_back({{"name", std::string(1, static_cast<char>('p' + k))},
                     {"a", "x."},
                     {"value", times[k].first},
                     {"spread", times[k].second},
                     {"collectives", "none"},
                     {"bytes_per_device", 0}});
    return all;
  };
  const nlohmann::json before = file({{1, 0.02}, {1, 0.2}, {2, 0}});
  nlohmann::json after = file({{1.1, 0.02}, {1.1, 0.2}, {1, 0}});
  after[3]["bytes_per_device"] = 64, after[3]["collectives"] = "all_gather(x)";
  const std::vector<LayoutChange> all = changes(before, after);
  REQUIRE(all.size() == 3);
  CHECK(all[0].ratio() == doctest::Approx(1.1));
  CHECK(all[0].clear);
  CHECK_FALSE(all[1].clear);
  CHECK(all[2].plan == "64 B (all_gather(x)), before 0 B (none)");
  after[0]["m"] = 65;
  check_message([&] { changes(before, after); },
                "compare: m is 64 in the first file and 65 in the second. Compare runs of one product.");
  after[0]["m"] = 64, after[0]["predicted"] = true;
  check_message([&] { changes(before, after); },
                "compare: predicted is null in the first file and true in the second.");

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("layouts-{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string first = folder / "first.json", second = folder / "second.json",
                    none = folder / "none.json";
  after = file({{1.1, 0.02}, {1.1, 0.2}, {1, 0}});
  std::ofstream(first) << before;
  std::ofstream(second) << after;
  std::ofstream(none) << "[{\"name\": \"x\"}]";
  const Comparison shown = compare({first, second, -1});
  CHECK(shown.slower == 0);
  CHECK(shown.text.find("q          1.00 s     1.10 s   1.100  within the spreads\n") != std::string::npos);
  CHECK(shown.text.ends_with("3 layouts, ratio 1.100 in the median\n"));
  CHECK(compare({first, second, 0.11}).slower == 0);
  CHECK(compare({first, second, 0.05}).slower == 1);  // the first one, by a tenth
  CHECK(compare({second, second, 0}).slower == 0);
  check_message(
      [&] {
        compare({first, none, 0});
      },
      "none.json is no file of matmul_layouts --json: it does not begin with a description of the run");
  const std::string absent = folder / "absent.json", usage = "Write compare before.json after.json.";
  check_message(
      [&] {
        compare({absent, first});
      },
      "compare: the first file '" + absent +
          "' cannot be read (No such file or directory). Name one that --json wrote.");
  check_message(
      [&] {
        compare({first, absent});
      },
      "compare: the second file '" + absent + "' cannot be read");
  check_message([&] { compare({}); }, "compare: the first file is not named. It compares two. " + usage);
  check_message(
      [&] {
        compare({first, ""});
      },
      "compare: the second file is not named. It compares two. " + usage);
  std::filesystem::remove_all(folder);

  const auto percent = [](const std::string& line) {
    CompareOptions o;
    CLI::App app;
    add_compare(app, o);
    app.parse("compare /dev/null /dev/null " + line);
    return o.fail_above;
  };
  CHECK(percent("--fail-above 5%") == doctest::Approx(0.05));
  CHECK(percent("--fail-above 2.5") == doctest::Approx(0.025));
  CHECK(percent("") < 0);
  for (const char* word : {"x", "5%%", "-1", "5 %", "nan"})
    CHECK_THROWS_WITH_AS(
        percent(fmt::format("--fail-above '{}'", word)),
        fmt::format("--fail-above: '{}' is no number of percent. Write 5%, for example.", word).c_str(),
        CLI::ValidationError);
}

TEST_CASE("bench layouts: two products") {
  const auto mesh = parse_mesh("x=4");
  const Product p{mesh, 8, 16, 32, 4, 4, true};
  CHECK(p.flops() == 4.0 * 8 * 16 * 32);
  CHECK(select_layouts({"all"}, mesh, true).size() == 81 + 27);
  CHECK(select_layouts({"..,.x,x."}, mesh, true).size() == 4);
  CHECK(select_layouts({"random:7"}, mesh, true).size() == 7);
  for (const ProductLayout& l : select_layouts({"all"}, mesh, true))
    CHECK(select_layouts({to_text(l, mesh)}, mesh, true) == std::vector{l});
  check_message([&] { select_layouts({"x.,x.,x.,x.,x."}, mesh, true); },
                "is no layout. It names A, B and V, or A, B, V and C. Write all, random:20, x.,..,..,x. or "
                "..,.x,x. (which C?)");
  check_message([&] { select_layouts({"x.,x.,auto,x."}, mesh, true); },
                "V is auto. A, B and V are placed before the call, the library picks C alone. Write any to "
                "measure every V.");
  check_message([&] { select_layouts({"x.,x.,x.,x."}, mesh); }, "It names A and B, or A, B and C.");

  const auto least = [&](const std::string& text) {
    return least_bytes(strategies(p, select_layouts({text}, mesh, true).at(0)), p.flops() / p.devices());
  };
  CHECK(least("x.,..,..,x.").bytes == 0);  // by rows throughout
  // B by columns, V by rows: sums of C over x are scattered, 3/4 of 8 x 16 floats, or H is turned to rows first.
  CHECK(least("..,.x,x.,x.").bytes == 3.0 / 4 * 8 * 16 * 4);
  CHECK(least("..,.x,x.,x.").flops == p.flops() / 4);
  // V whole: H, 8 x 32, is turned to rows: each device has a quarter of its quarter.
  CHECK(least("..,.x,..,x.").bytes == 3.0 / 16 * 8 * 32 * 4);
  const std::vector<Strategy> all = strategies(p, select_layouts({"x.,.x,.x,.x"}, mesh, true).at(0));
  for (std::size_t k = 1; k < all.size(); k++) {  // none is better than another in both
    CHECK(all[k - 1].flops < all[k].flops);
    CHECK(all[k - 1].bytes > all[k].bytes);
  }
  LayoutResults x;
  x.product = p;
  LayoutRow row;
  row.layout = select_layouts({"..,.x,x.,x."}, mesh, true).at(0);
  CHECK(cut_text(x, row, 'V') == "x.");
  CHECK(parsed("--chain --layouts ..,.x,x.,x.").product().chain);
}

TEST_CASE("bench layouts: what is described is not measured") {
  for (const char* other : {"--platform cuda", "--measure top:3", "--share-replicas", "--jax python3"})
    CHECK(refusal(fmt::format("--machine h200x8 {}", other))
              .find("asks for a measurement, and nothing is measured") != std::string::npos);
  CHECK(parsed("--machine h200x8 --dtype tf32").described());
  CHECK(parsed("--measure top:12").most == 12);
  CHECK(parsed("--measure all").most == 0);
  for (const char* word : {"top", "top:", "top:0", "12"})
    CHECK(refusal(fmt::format("--measure {}", word))
              .find(fmt::format("'{}' is neither all nor top:N. Write top:12, for example.", word)) !=
          std::string::npos);
}

}  // namespace bench_layouts_test
