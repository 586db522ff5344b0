// What programs reach on the default platform (SHARDARRAY_PLATFORM=cuda: a GPU), beside what the device itself can do, which
// `./dev gpu run bench` measures in the same run (bench/gpu_ceilings.cu): its copy rate (--copy-gbs), products by cuBLASLt alone
// (--cublaslt-...). Prints a Markdown table. With --start it prints what a new process waits for in place of that.
#include <shardarray/shardarray.h>

#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "bench.h"
#include "loops.h"
#include "runtime/platforms.h"

namespace sa = shardarray;

namespace {

struct Row {
  double bytes = 0, flops = 0;  ///< that one call has to read and write, to do
  double tflops = 0;            ///< that a library alone does
};

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The document's training step, cut over all devices (examples/autoparallelism.cpp).
class DocumentStep {
 public:
  explicit DocumentStep(std::int64_t batch) {
    const auto sharding = sa::PositionalSharding(sa::create_device_mesh({sa::device_count(), 1}));
    const auto replicated = sharding.replicate();
    const auto optim = sa::optim::adam(3e-4);
    model_ = sa::filter_shard(Model::init(4, 4, 32, 1, sa::random::PRNGKey(6789)), replicated);
    state_ = sa::filter_shard(optim.init(model_), replicated);
    x_ = sa::device_put(sa::random::normal(sa::random::key(1), {batch, 4}), sharding);
    y_ = sa::sin(x_);
    auto step = sa::jit([=](Model model, State state, sa::Array x, sa::Array y) {
      std::tie(model, state) = sa::filter_shard(std::tuple(model, state), replicated);
      std::tie(x, y) = sa::filter_shard(std::tuple(x, y), sharding);
      const auto loss = [](const Model& m, const sa::Array& a, const sa::Array& b) {
        return sa::mean(sa::square(b - sa::vmap(m)(a)));
      };
      const auto [updates, next] = optim.update(sa::grad(loss)(model, x, y), state);
      return sa::filter_shard(std::tuple(sa::apply_updates(model, updates), next), replicated);
    });
    ask_ = [this, step] { std::tie(model_, state_) = step(std::move(model_), std::move(state_), x_, y_); };
  }
  DocumentStep(const DocumentStep&) = delete;
  DocumentStep& operator=(const DocumentStep&) = delete;
  void ask() { ask_(); }
  void wait() const {
    sa::block_until_ready(model_);
    sa::block_until_ready(state_);
  }

 private:
  using Model = sa::nn::MLP<>;
  using State = sa::optim::AdamState<Model>;
  Model model_;
  State state_;
  sa::Array x_, y_;
  std::function<void()> ask_;
};

/// Cases with what they move.
class Table {
 public:
  explicit Table(std::string filter) : filter_(std::move(filter)) {}

  /// f(x) of random data, jitted; a call ends when its result is there.
  void add(const std::string& name, const sa::Shape& shape, sa::DType dtype, double operands_moved,
           sa::Array (*f)(const sa::Array&)) {
    if (is_left_out(name)) return;
    const sa::Array x = sa::random::normal(sa::random::key(1), shape, dtype);
    x.block_until_ready();
    const auto g = sa::jit([f](const sa::Array& v) { return f(v); });
    const auto bytes = static_cast<double>(x.size()) * static_cast<double>(sa::itemsize(dtype));
    add_call(name, {operands_moved * bytes}, [g, x] { g(x).block_until_ready(); });
  }
  void add_product(const std::string& name, std::int64_t n, sa::DType dtype, double tflops,
                   bool tf32 = false) {
    if (is_left_out(name)) return;
    const sa::Array a = sa::random::normal(sa::random::key(1), {n, n}, dtype);
    const sa::Array b = sa::random::normal(sa::random::key(2), {n, n}, dtype);
    const auto g = sa::jit([tf32](const sa::Array& x, const sa::Array& y) {
      const sa::tf32 on(tf32);
      return sa::matmul(x, y);
    });
    const auto side = static_cast<double>(n);
    add_call(name, {0, 2 * side * side * side, tflops}, [g, a, b] { g(a, b).block_until_ready(); });
  }
  void add_call(const std::string& name, Row row, std::function<void()> call) {
    if (is_left_out(name)) return;
    for (int k = 0; k < 3; k++) call();
    cases_.push_back({name, std::move(call)});
    rows_.push_back(row);
  }
  /// Until it is there, and what of that the host needs to ask for it.
  void add_step(const std::string& name, std::int64_t batch) {
    if (is_left_out(name)) return;
    const auto step = std::make_shared<DocumentStep>(batch);
    add_call(name, {}, [step] {
      step->ask();
      step->wait();
    });
    steps_.emplace_back(name + ", host alone", step);
  }

  void measure(bool quick) {
    bench::measure(cases_, quick ? 3 : 15, quick ? 1e-4 : 2e-2);
    for (const auto& named : steps_) {
      const auto& step = named.second;
      bench::Case asked{named.first, {}};
      for (int k = 0; k < (quick ? 3 : 200); k++) {
        asked.seconds.push_back(seconds_of([&] { step->ask(); }));
        step->wait();
      }
      cases_.push_back(asked);
      rows_.push_back({});
    }
  }
  /// `beside`: what a run with one device has saved.
  void print(double copy_gbs, const std::map<std::string, double>& beside) const {
    fmt::print(
        "| case | time | +-% | GB/s | of copy | TFLOP/s | of cuBLASLt |{}\n|---|---|---|---|---|---|---|{}\n",
        beside.empty() ? "" : " of one device's time |", beside.empty() ? "" : "---|");
    const auto number = [](bool there, double x, int digits) {
      return there ? fmt::format("{:.{}f}", x, digits) : std::string("-");
    };
    for (std::size_t k = 0; k < cases_.size(); k++) {
      const auto& [bytes, flops, most] = rows_[k];
      const double time = cases_[k].time(), gbs = bytes / time / 1e9, tflops = flops / time / 1e12;
      fmt::print("| {} | {} | {:.1f} | {} | {} | {} | {} |", cases_[k].name, bench::time_text(time),
                 100 * cases_[k].spread(), number(bytes > 0, gbs, 0),
                 number(bytes > 0 && copy_gbs > 0, gbs / copy_gbs, 2), number(flops > 0, tflops, 2),
                 number(flops > 0 && most > 0, tflops / most, 2));
      if (!beside.empty()) {
        const auto other = beside.find(cases_[k].name);
        fmt::print(" {} |",
                   number(other != beside.end(), other == beside.end() ? 0 : time / other->second, 2));
      }
      fmt::print("\n");
    }
  }
  void save(const std::string& file) const {
    std::ofstream to(file);
    for (const bench::Case& c : cases_) to << c.time() << " " << c.name << "\n";
  }

 private:
  bool is_left_out(const std::string& name) const { return name.find(filter_) == std::string::npos; }

  std::string filter_;
  std::vector<bench::Case> cases_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::shared_ptr<DocumentStep>>> steps_;
};

std::map<std::string, double> saved(const std::string& file) {
  std::map<std::string, double> all;
  std::ifstream from(file);
  for (std::string line; std::getline(from, line);) {
    std::istringstream words(line);
    double seconds = 0;
    std::string name;
    words >> seconds >> std::ws;
    std::getline(words, name);
    all[name] = seconds;
  }
  return all;
}

/// What a new process waits for, and the memory that it then holds.
void print_start() {
  fmt::print("| case | time |\n|---|---|\n");
  const auto row = [](const char* name, double seconds) {
    fmt::print("| {} | {} |\n", name, bench::time_text(seconds));
  };
  row("devices", seconds_of([] { static_cast<void>(sa::device_count()); }));
  row("first eager result", seconds_of([] { (sa::ones({8}) + 1).block_until_ready(); }));
  std::unique_ptr<DocumentStep> step;
  row("the document's model", seconds_of([&] {
        step = std::make_unique<DocumentStep>(16);
        step->wait();
      }));
  for (const char* name : {"the document's step, first call", "the document's step, second call"})
    row(name, seconds_of([&] {
          step->ask();
          step->wait();
        }));
  std::size_t held = 0;
  const auto& backend = sa::backend(sa::devices()[0].platform);
  for (int d = 0; d < backend.device_count(); d++) held += backend.memory_stats(d).held;
  fmt::print("\nMemory held: {:.1f} MB.\n", 1e-6 * static_cast<double>(held));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  std::int64_t elements = 1 << 22, product = 512, batch = 1 << 14;
  double copy_gbs = 0, float32_tflops = 0, tf32_tflops = 0, bfloat16_tflops = 0;
  std::string filter, save, beside;
  bool quick = false, start = false;
  app.add_option("--elements", elements, "Of the arrays, a multiple of 4096");
  app.add_option("--product", product, "Rows of the square matrices that are multiplied");
  app.add_option("--batch", batch, "Rows of the document's large step");
  app.add_option("--copy-gbs", copy_gbs, "GB/s at which the device copies, bytes read and written counted");
  app.add_option("--cublaslt-float32", float32_tflops, "TFLOP/s of cuBLASLt alone");
  app.add_option("--cublaslt-tf32", tf32_tflops, "The same in TF32");
  app.add_option("--cublaslt-bfloat16", bfloat16_tflops, "The same of bfloat16");
  app.add_option("--filter", filter, "Only cases whose names contain this text");
  app.add_option("--save", save, "Write the times to this file");
  app.add_option("--beside", beside, "Compare with the times of this file");
  app.add_flag("--start", start, "What a new process waits for");
  app.add_flag("--quick", quick, "Few short samples: to see that it runs");
  CLI11_PARSE(app, argc, argv);
  if (start) {
    print_start();
    return 0;
  }
  fmt::print("{} devices of '{}', {} elements\n\n", sa::device_count(), sa::devices()[0].platform, elements);
  Table t(filter);
  const sa::Shape flat{elements}, matrix{elements / 4096, 4096};
  using A = const sa::Array&;
  t.add("x + 1", flat, sa::float32, 2, [](A x) { return x + 1; });
  t.add("gelu", flat, sa::float32, 2, [](A x) { return sa::gelu(x); });
  t.add("gelu bfloat16", flat, sa::bfloat16, 2, [](A x) { return sa::gelu(x); });
  t.add("gelu float16", flat, sa::float16, 2, [](A x) { return sa::gelu(x); });
  const auto adam = bench::adam(elements / 4);
  t.add_call("adam, 7 reads and writes", {7.0 * static_cast<double>(elements)},
             [adam] { adam().block_until_ready(); });
  t.add("softmax of rows", matrix, sa::float32, 2, [](A x) { return sa::softmax(x, -1); });
  t.add("layer norm", matrix, sa::float32, 2, bench::layer_norm);
  t.add("sums of rows", matrix, sa::float32, 1, [](A x) { return sa::sum(x, 1); });
  t.add("sums of columns", matrix, sa::float32, 1, [](A x) { return sa::sum(x, 0); });
  t.add("sum of all", flat, sa::float32, 1, [](A x) { return sa::sum(x); });
  t.add("transpose + 1", matrix, sa::float32, 2, [](A x) { return sa::transpose(x) + 1; });
  t.add("cumsum of rows", matrix, sa::float32, 2, [](A x) { return sa::cumsum(x, 1); });
  t.add("sort of rows", matrix, sa::float32, 2, [](A x) { return sa::sort(x, -1); });
  t.add("sort of all", flat, sa::float32, 2, [](A x) { return sa::sort(x); });
  t.add("gradient of rows taken", matrix, sa::float32, 0, [](A x) {
    const sa::Array rows = sa::arange(0, 4096) % x.shape()[0];
    return sa::grad([rows](const sa::Array& w) { return sa::sum(sa::square(sa::take(w, rows, 0))); })(x);
  });
  t.add_product("product float32", product, sa::float32, float32_tflops);
  t.add_product("product TF32", product, sa::float32, tf32_tflops, true);
  t.add_product("product bfloat16", product, sa::bfloat16, bfloat16_tflops);
  t.add("a cached call of 8 elements", {8}, sa::float32, 0, [](A x) { return x + 1; });
  t.add_step("the document's step", 16);
  t.add_step("the document's step, large batch", batch);
  t.measure(quick);
  t.print(copy_gbs, beside.empty() ? std::map<std::string, double>() : saved(beside));
  if (!save.empty()) t.save(save);
  return 0;
}
