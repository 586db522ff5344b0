// What programs reach on the default platform (SHARDARRAY_PLATFORM=cuda: a GPU), compared with the device's own rates, which
// `./dev gpu run bench` measures in the same run (bench/gpu_ceilings.cu): its copies (--copy-gbs), products by cuBLASLt alone
// (--cublaslt-...), draws by cuRAND (--curand-...). Prints a Markdown table with the aims of device_aims.h. Other modes: --start: what a
// new process waits for; --memory: what the document's step needs; --cpu-start: what the plug-in costs programs that use no GPU.
#include <shardarray/shardarray.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "device_aims.h"
#include "device_table.h"
#include "document_step.h"
#include "loops.h"
#include "runtime/platforms.h"

namespace sa = shardarray;
using bench::Ceiling;
using bench::seconds_of;

namespace {

/// Over all devices: sharded along the first dimension, or replicated.
sa::Sharding over_devices(const sa::P& spec) {
  return sa::NamedSharding(sa::make_mesh({{"d", sa::device_count()}}), spec);
}
sa::Sharding cut() { return over_devices(sa::P("d")); }
sa::Array placed(const sa::Array& x, const sa::Sharding& where) {
  return sa::block_until_ready(sa::device_put(x, where));
}

// ---------------------------------------------------------------- the table

struct Ceilings {
  Ceiling copy{"copy", "GB/s", 1e9};
  Ceiling float32{"cuBLASLt", "TFLOP/s", 1e12}, tf32 = float32, bfloat16 = float32;
  Ceiling uniform{"cuRAND", "GB/s", 1e9}, normal = uniform;
};

class Cases {
 public:
  Cases(bench::DeviceTable& table, const Ceilings& most) : table_(table), most_(most) {}

  /// Adds jitted f(x) of random data.
  void add(const std::string& name, const sa::Shape& shape, sa::DType dtype, double operands_moved,
           sa::Array (*f)(const sa::Array&)) {
    if (table_.leaves_out(name)) return;
    const sa::Array x = placed(sa::random::normal(sa::random::key(1), shape, dtype), cut());
    const auto g = sa::jit([f](const sa::Array& v) { return f(v); });
    const auto bytes = static_cast<double>(x.size()) * static_cast<double>(sa::itemsize(dtype));
    table_.add(name, {operands_moved * bytes, most_.copy}, [g, x] { return g(x); });
  }
  void add_adam(std::int64_t elements) {
    const std::string name = "adam, 7 reads and writes";
    if (table_.leaves_out(name)) return;
    const auto adam = bench::adam(elements, [](const sa::Array& x) { return placed(x, cut()); });
    table_.add(name, {7 * 4 * static_cast<double>(elements), most_.copy}, adam);
  }
  /// Adds float32 draws by Philox; keys are arguments, so that programs do not depend on them.
  void add_draws(const std::string& name, std::int64_t elements, const Ceiling& most,
                 sa::Array (*draw)(const sa::Array& key, std::int64_t n)) {
    if (table_.leaves_out(name)) return;
    const auto f = sa::jit(
        [=](const sa::Array& key) {
          const sa::random::philox on(true);
          return draw(key, elements);
        },
        {.out_shardings = cut()});
    const sa::Array key = sa::block_until_ready(sa::random::key(42));
    table_.add(name, {4 * static_cast<double>(elements), most}, [f, key] { return f(key); });
  }
  void add_product(const std::string& name, std::int64_t n, sa::DType dtype, const Ceiling& most,
                   bool tf32 = false) {
    if (table_.leaves_out(name)) return;
    const auto drawn = [&](std::uint64_t seed, const sa::P& spec) {
      return placed(sa::random::normal(sa::random::key(seed), {n, n}, dtype), over_devices(spec));
    };
    const sa::Array a = drawn(1, sa::P("d")), b = drawn(2, sa::P());
    const auto g = sa::jit([tf32](const sa::Array& x, const sa::Array& y) {
      const sa::tf32 on(tf32);
      return sa::matmul(x, y);
    });
    const auto side = static_cast<double>(n);
    table_.add(name, {2 * side * side * side, most}, [g, a, b] { return g(a, b); });
  }

 private:
  bench::DeviceTable& table_;
  const Ceilings& most_;
};

void add_arrays(Cases& t, std::int64_t elements, const Ceilings& most) {
  const sa::Shape flat{elements}, matrix{elements / 4096, 4096};
  using A = const sa::Array&;
  t.add("x + 1", flat, sa::float32, 2, [](A x) { return x + 1; });
  t.add("gelu", flat, sa::float32, 2, [](A x) { return sa::gelu(x); });
  t.add("gelu bfloat16", flat, sa::bfloat16, 2, [](A x) { return sa::gelu(x); });
  t.add("gelu float16", flat, sa::float16, 2, [](A x) { return sa::gelu(x); });
  t.add_adam(elements / 4);
  t.add("softmax of rows", matrix, sa::float32, 2, [](A x) { return sa::softmax(x, -1); });
  t.add("layer norm", matrix, sa::float32, 2, bench::layer_norm);
  t.add("sums of rows", matrix, sa::float32, 1, [](A x) { return sa::sum(x, 1); });
  t.add("sums of columns", matrix, sa::float32, 1, [](A x) { return sa::sum(x, 0); });
  t.add("sum of all", flat, sa::float32, 1, [](A x) { return sa::sum(x); });
  t.add("transpose + 1", matrix, sa::float32, 2, [](A x) { return sa::transpose(x) + 1; });
  t.add("cumsum of rows", matrix, sa::float32, 2, [](A x) { return sa::cumsum(x, 1); });
  t.add("sort of rows", matrix, sa::float32, 2, [](A x) { return sa::sort(x, -1); });
  t.add("sort of all", flat, sa::float32, 2, [](A x) { return sa::sort(x); });
  t.add("a step of a table whose rows are taken", matrix, sa::float32, 0, [](A x) {
    const sa::Array rows = sa::arange(0, 4096) % x.shape()[0];
    const auto loss = [rows](const sa::Array& w) { return sa::sum(sa::square(sa::take(w, rows, 0))); };
    return x - 0.1F * sa::grad(loss)(x);
  });
  t.add_draws("uniform draws, philox", elements, most.uniform,
              [](A key, std::int64_t n) { return sa::random::uniform(key, {n}); });
  t.add_draws("normal draws, philox", elements, most.normal,
              [](A key, std::int64_t n) { return sa::random::normal(key, {n}); });
}

// ---------------------------------------------------------------- in place of it

void print_row(const std::string& name, double seconds) {
  const auto most = bench::aim_of(bench::time_aims, name);
  fmt::print("| {} | {} |{}\n", name, bench::time_text(seconds),
             most ? bench::verdict("<= " + bench::time_text(*most), seconds <= *most) : bench::no_verdict());
}
constexpr const char* head_of_rows = "| case | time | aim | |\n|---|---|---|---|\n";

/// The time of a new expression, in a process that has computed others.
double first_result_of_new_expression() {
  const sa::Array x = sa::block_until_ready(sa::arange(64.0));
  const std::vector<std::function<sa::Array()>> all = {
      [&] { return sa::tanh(x) * 3 + x; }, [&] { return sa::exp(x / 64) - sa::flip(x, 0); },
      [&] { return sa::sum(x * x) + x; }, [&] { return sa::sort(sa::cos(x)); },
      [&] { return sa::cumsum(x) * x; }};
  std::vector<double> seconds;
  seconds.reserve(all.size());
  for (const auto& f : all) seconds.push_back(seconds_of([&] { f().block_until_ready(); }));
  return bench::median(seconds);
}

/// What a new process waits for; `kernels` are `compiled`, `from the disk` or `interpreted`.
void print_start(const std::string& kernels) {
  fmt::print("{}", head_of_rows);
  print_row("devices", seconds_of([] { static_cast<void>(sa::device_count()); }));
  print_row("first eager result", seconds_of([] { (sa::ones({8}) + 1).block_until_ready(); }));
  std::unique_ptr<bench::DocumentStep> step;
  print_row("the document's model", seconds_of([&] {
              step = std::make_unique<bench::DocumentStep>(16);
              step->wait();
            }));
  const std::string how = kernels == "interpreted" ? "interpreted" : "kernels " + kernels;
  for (const char* name : {"first call of the document's step, ", "second call of the document's step, "})
    print_row(name + how, seconds_of([&] {
                step->ask();
                step->wait();
              }));
  print_row("first result of a new expression, " + how, first_result_of_new_expression());
}

/// The memory that the document's step uses, and what is held for it.
void print_memory(std::int64_t batch) {
  bench::DocumentStep step(batch);
  for (int k = 0; k < 5; k++) {  // the last ones are graph replays
    step.ask();
    step.wait();
  }
  const auto explained = static_cast<double>(step.explain().peak_bytes_per_device);
  double most = 0, in_use = 0, held = 0;
  const auto& backend = sa::backend(sa::devices()[0].platform);
  for (int d = 0; d < backend.device_count(); d++) {
    const sa::MemoryStats s = backend.memory_stats(d);
    most = std::max(most, static_cast<double>(s.high_water));
    in_use += static_cast<double>(s.high_water);
    held += static_cast<double>(s.held);
  }
  fmt::print("| memory | MB | beside | aim | |\n|---|---|---|---|---|\n");
  fmt::print("| peak in use, on the busiest device | {:.2f} | {:.2f} of the {:.2f} that explain says |{}\n",
             1e-6 * most, most / explained, 1e-6 * explained,
             bench::at_most(bench::aim_of_explained, most / explained));
  fmt::print("| held, on all devices | {:.2f} | {:.2f} of their peaks in use |{}\n", 1e-6 * held,
             held / in_use, bench::at_most(bench::aim_of_held, held / in_use));
}

/// The start of programs that use the CPU by default, with and without the plug-in beside the library.
int print_cpu_start(const std::string& program, bool quick) {
  const std::string command = "'" + program + "' --cpu-result >/dev/null 2>&1";
  const char* const set = std::getenv("SHARDARRAY_PLUGIN_DIR");
  const std::string folder =
      set != nullptr ? set : std::filesystem::canonical(program).parent_path().string();
  unsetenv("SHARDARRAY_PLATFORM");
  setenv("SHARDARRAY_CODEGEN", "off", 1);  // the CPU's compiler is another plug-in
  std::vector<double> with, without;
  bool fine = true;
  for (int k = 0; k < (quick ? 3 : 31); k++)
    for (const bool there : {true, false}) {
      setenv("SHARDARRAY_PLUGIN_DIR", there ? folder.c_str() : "/nowhere", 1);
      (there ? with : without).push_back(seconds_of([&] {
        fine = std::system(command.c_str()) == 0 && fine;
      }));
    }
  fmt::print("{}", head_of_rows);
  print_row("start on the CPU, the plug-in beside it", bench::median(with));
  print_row("start on the CPU, without the plug-in", bench::median(without));
  print_row("start on the CPU, more with the plug-in", bench::median(with) - bench::median(without));
  return fine ? 0 : 1;
}
void compute_on_cpu() {
  const sa::default_device here(sa::devices("cpu")[0]);
  (sa::ones({8}) + 1).block_until_ready();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  std::int64_t elements = 1 << 22, product = 512, batch = 1 << 14;
  Ceilings most;
  std::string filter, save, beside, start;
  bool quick = false, memory = false, cpu_start = false, cpu_result = false;
  app.add_option("--elements", elements, "Of the arrays, a multiple of 4096");
  app.add_option("--product", product, "Rows of the square matrices that are multiplied");
  app.add_option("--batch", batch, "Rows of the document's large step");
  app.add_option("--copy-gbs", most.copy.rate,
                 "GB/s at which the device copies, bytes read and written counted");
  app.add_option("--cublaslt-float32", most.float32.rate, "TFLOP/s of cuBLASLt alone");
  app.add_option("--cublaslt-tf32", most.tf32.rate, "The same in TF32");
  app.add_option("--cublaslt-bfloat16", most.bfloat16.rate, "The same of bfloat16");
  app.add_option("--curand-uniform", most.uniform.rate,
                 "GB/s of float32 that cuRAND's Philox generator draws");
  app.add_option("--curand-normal", most.normal.rate, "The same of normal ones");
  app.add_option("--filter", filter, "Only cases whose names contain this text");
  app.add_option("--save", save, "Write the times to this file");
  app.add_option("--beside", beside, "Compare with the times of this file");
  app.add_option("--start", start, "What a new process waits for, whose kernels are these")
      ->check(CLI::IsMember({"compiled", "from the disk", "interpreted"}));
  app.add_flag("--memory", memory, "What the document's large step needs");
  app.add_flag("--cpu-start", cpu_start, "What the plug-in costs programs that use no GPU");
  app.add_flag("--cpu-result", cpu_result, "Computes on the CPU, prints nothing");
  app.add_flag("--quick", quick, "Few short samples: to see that it runs");
  CLI11_PARSE(app, argc, argv);
  if (cpu_result) return compute_on_cpu(), 0;
  if (cpu_start) return print_cpu_start(argv[0], quick);
  if (!start.empty()) return print_start(start), 0;
  if (memory) return print_memory(batch), 0;
  fmt::print("{} devices of '{}', {} elements\n\n", sa::device_count(), sa::devices()[0].platform, elements);
  bench::DeviceTable table(filter);
  Cases cases(table, most);
  add_arrays(cases, elements, most);
  cases.add_product("product float32", product, sa::float32, most.float32);
  cases.add_product("product TF32", product, sa::float32, most.tf32, true);
  cases.add_product("product bfloat16", product, sa::bfloat16, most.bfloat16);
  cases.add("a cached call of 8 elements", {8}, sa::float32, 0, [](const sa::Array& x) { return x + 1; });
  table.add_step("the document's step as one kernel", bench::block_batch);
  table.add_step("the document's step as a cluster's kernel", bench::cluster_batch);
  table.add_step("the document's step as a graph", bench::least_graph_batch);
  table.add_step("the document's step, large batch", batch);
  table.measure(quick);
  table.print(beside.empty() ? std::map<std::string, double>() : bench::saved_times(beside));
  if (!save.empty()) table.save(save);
  return 0;
}
