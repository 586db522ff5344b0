// What programs reach on the default platform (SHARDARRAY_PLATFORM=cuda: a GPU), beside what the device itself can do: its copy rate,
// given by --copy-gbs. `./dev gpu run bench` measures that in the same run (bench/gpu_ceilings.cu). Prints a Markdown table.
#include <shardarray/shardarray.h>

#include "bench.h"
#include "loops.h"

namespace sa = shardarray;

namespace {

struct Row {
  double bytes = 0, flops = 0;  ///< that one call has to read and write, to do
};

/// Cases with what they move.
class Table {
 public:
  /// f(x) of random data, jitted; a call ends when its result is there.
  void add(const std::string& name, const sa::Shape& shape, sa::DType dtype, double operands_moved,
           sa::Array (*f)(const sa::Array&)) {
    const sa::Array x = sa::random::normal(sa::random::key(1), shape, dtype);
    x.block_until_ready();
    const auto g = sa::jit([f](const sa::Array& v) { return f(v); });
    const auto bytes = static_cast<double>(x.size()) * static_cast<double>(sa::itemsize(dtype));
    add_call(name, {operands_moved * bytes, 0}, [g, x] { g(x).block_until_ready(); });
  }
  void add_product(const std::string& name, std::int64_t n, sa::DType dtype) {
    const sa::Array a = sa::random::normal(sa::random::key(1), {n, n}, dtype);
    const sa::Array b = sa::random::normal(sa::random::key(2), {n, n}, dtype);
    const auto g = sa::jit([](const sa::Array& x, const sa::Array& y) { return sa::matmul(x, y); });
    const auto side = static_cast<double>(n);
    add_call(name, {0, 2 * side * side * side}, [g, a, b] { g(a, b).block_until_ready(); });
  }
  void add_call(const std::string& name, Row row, std::function<void()> call) {
    for (int k = 0; k < 3; k++) call();
    cases_.push_back({name, std::move(call)});
    rows_.push_back(row);
  }

  void measure(bool quick) { bench::measure(cases_, quick ? 3 : 15, quick ? 1e-4 : 2e-2); }
  void print(double copy_gbs) const {
    fmt::print("| case | time | +-% | GB/s | of copy | TFLOP/s |\n|---|---|---|---|---|---|\n");
    for (std::size_t k = 0; k < cases_.size(); k++) {
      const double gbs = rows_[k].bytes / cases_[k].time() / 1e9;
      const bool moves = rows_[k].bytes > 0;
      fmt::print("| {} | {} | {:.1f} | {} | {} | {} |\n", cases_[k].name, bench::time_text(cases_[k].time()),
                 100 * cases_[k].spread(), moves ? fmt::format("{:.0f}", gbs) : "-",
                 moves && copy_gbs > 0 ? fmt::format("{:.2f}", gbs / copy_gbs) : "-",
                 rows_[k].flops > 0 ? fmt::format("{:.2f}", rows_[k].flops / cases_[k].time() / 1e12) : "-");
    }
  }

 private:
  std::vector<bench::Case> cases_;
  std::vector<Row> rows_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  std::int64_t elements = 1 << 22, product = 512;
  double copy_gbs = 0;
  bool quick = false;
  app.add_option("--elements", elements, "Of the arrays, a multiple of 4096");
  app.add_option("--product", product, "Rows of the square matrices that are multiplied");
  app.add_option("--copy-gbs", copy_gbs, "GB/s at which the device copies, bytes read and written counted");
  app.add_flag("--quick", quick, "Few short samples: to see that it runs");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{} devices of '{}', {} elements\n\n", sa::device_count(), sa::devices()[0].platform, elements);
  Table t;
  const sa::Shape flat{elements}, matrix{elements / 4096, 4096};
  using A = const sa::Array&;
  t.add("x + 1", flat, sa::float32, 2, [](A x) { return x + 1; });
  t.add("gelu", flat, sa::float32, 2, [](A x) { return sa::gelu(x); });
  t.add("gelu bfloat16", flat, sa::bfloat16, 2, [](A x) { return sa::gelu(x); });
  const auto adam = bench::adam(elements / 4);
  t.add_call("adam, 7 reads and writes", {7.0 * static_cast<double>(elements), 0},
             [adam] { adam().block_until_ready(); });
  t.add("softmax of rows", matrix, sa::float32, 2, [](A x) { return sa::softmax(x, -1); });
  t.add("layer norm", matrix, sa::float32, 2, bench::layer_norm);
  t.add("sums of rows", matrix, sa::float32, 1, [](A x) { return sa::sum(x, 1); });
  t.add("sums of columns", matrix, sa::float32, 1, [](A x) { return sa::sum(x, 0); });
  t.add("sum of all", flat, sa::float32, 1, [](A x) { return sa::sum(x); });
  t.add("transpose + 1", matrix, sa::float32, 2, [](A x) { return sa::transpose(x) + 1; });
  t.add("cumsum of rows", matrix, sa::float32, 2, [](A x) { return sa::cumsum(x, 1); });
  t.add("sort of rows", matrix, sa::float32, 2, [](A x) { return sa::sort(x, -1); });
  t.add_product("product float32", product, sa::float32);
  t.add_product("product bfloat16", product, sa::bfloat16);
  t.add("a cached call of 8 elements", {8}, sa::float32, 0, [](A x) { return x + 1; });
  t.measure(quick);
  t.print(copy_gbs);
  return 0;
}
