// Fused loops on one CPU device: generated code and the interpreter, compared with a loop written by hand or with the memory traffic.
#include <shardarray/shardarray.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "bench.h"
#include "cpu/codegen/code_store.h"
#include "loops.h"
#include "runtime/devices.h"
#include "runtime/expand.h"
#include "workers.h"

namespace sa = shardarray;

namespace {

/// Programs are cached per backend, so every mode gets its own one.
class WithCodegen {
 public:
  explicit WithCodegen(sa::CodegenMode m)
      : mode_(sa::set_codegen_mode(m)), before_(sa::set_backend("cpu", of(m))) {}
  ~WithCodegen() {
    sa::set_backend("cpu", before_);
    sa::set_codegen_mode(mode_);
  }

 private:
  static sa::Backend* of(sa::CodegenMode m) {
    static sa::Backend* const all[3] = {sa::make_cpu_backend(1).release(), sa::make_cpu_backend(1).release(),
                                        sa::make_cpu_backend(1).release()};
    return all[static_cast<int>(m)];
  }
  sa::CodegenMode mode_;
  sa::Backend* before_;
};

using Step = std::function<void()>;

/// Adds `name` by the interpreter and by generated code; `make` builds the jitted call.
void add_both(bench::Suite& suite, const std::string& name, const std::function<Step()>& make,
              const std::string& floor, double elements, double aim = 0) {
  for (const auto mode : {sa::CodegenMode::on, sa::CodegenMode::off}) {
    auto step = std::make_shared<Step>();
    {
      const WithCodegen w(mode);
      *step = make();
      for (int k = 0; k < 3; k++) (*step)();
    }
    const char* how = mode == sa::CodegenMode::on ? "" : ", interpreter";
    suite.add(name + how,
              [step, mode] {
                const WithCodegen w(mode);
                (*step)();
              },
              {.floor = floor, .flops = elements, .aim = mode == sa::CodegenMode::on ? aim : 0});
  }
}

/// Copies n floats on all workers: what reading and writing them costs.
struct CopyFloor {
  std::vector<float> from, to;
  explicit CopyFloor(std::size_t n) : from(n, 1.f), to(n) {}
  void operator()() {
    bench::on_all_workers(from.size(), [&](std::size_t at, std::size_t k) {
      std::memcpy(to.data() + at, from.data() + at, k * sizeof(float));
    });
    bench::keep(to);
  }
};

void hand_adam(float* w, float* m, float* v, const float* g, std::size_t n) {
  for (std::size_t i = 0; i < n; i++) {
    m[i] = 0.1f * g[i] + 0.9f * m[i];
    v[i] = 0.001f * g[i] * g[i] + 0.999f * v[i];
    w[i] -= 3e-4f * (m[i] * 1.1f) / (std::sqrt(v[i] * 1.2f) + 1e-8f);
  }
}

void add_adam(bench::Suite& suite, std::size_t n) {
  struct State {
    std::vector<float> w, m, v, g;
  };
  auto s = std::make_shared<State>();
  for (auto* a : {&s->w, &s->m, &s->v, &s->g}) a->assign(n, 0.25f);
  const std::string floor = "adam " + std::to_string(n) + " by hand";
  suite.add(floor, [s, n] {
    bench::on_all_workers(
        n, [&](std::size_t at, std::size_t k) { hand_adam(&s->w[at], &s->m[at], &s->v[at], &s->g[at], k); });
    bench::keep(*s);
  });
  add_both(
      suite, "adam " + std::to_string(n),
      [n]() -> Step {
        const auto step = bench::adam(static_cast<std::int64_t>(n));
        return [step] { bench::keep(step()); };
      },
      floor, 0, n >= 100'000 ? 1.05 : 0);
}

/// Adds a function of one array, whose floor is a copy of as much.
void add_function(bench::Suite& suite, const std::string& name, const sa::Shape& shape,
                  const std::function<sa::Array(const sa::Array&)>& f, const std::string& floor) {
  add_both(
      suite, name,
      [shape, f]() -> Step {
        const sa::Array x = sa::random::normal(sa::random::key(1), shape);
        x.block_until_ready();
        const auto g = sa::jit([f](const sa::Array& v) { return f(v); });
        return [g, x] { bench::keep(g(x)); };
      },
      floor, 0);
}

/// Reductions fused with elementwise functions of n bytes, compared with their plain sum.
void add_bytes(bench::Suite& suite, std::int64_t n) {
  const auto add = [&](const std::string& name, const std::function<sa::Array(const sa::Array&)>& f,
                       const std::string& floor) {
    add_both(
        suite, name + " " + std::to_string(n) + " bytes",
        [n, f]() -> Step {
          const sa::Array x = sa::ones({n}, sa::uint8);
          x.block_until_ready();
          const auto g = sa::jit([f](const sa::Array& v) { return f(v); });
          return [g, x] { bench::keep(g(x)); };
        },
        floor, 0);
  };
  const std::string plain = "sum " + std::to_string(n) + " bytes";
  add(
      "sum", [](const sa::Array& x) { return sa::sum(x); }, "");
  add(
      "how many are 3 of", [](const sa::Array& x) { return sa::sum(x == 3); }, plain);
  add(
      "mean of 255ths of", [](const sa::Array& x) { return sa::mean(x / 255); }, plain);
  add(
      "variance of", [](const sa::Array& x) { return sa::var(x); }, plain);
}

/// One kernel for the rows of a matrix, as if the compiler fused all of softmax.
void add_fused_softmax(bench::Suite& suite, std::int64_t rows, std::int64_t columns,
                       const std::string& floor) {
  sa::KernelBuilder b(1, 1);
  const int in = b.arg({sa::float32}), out = b.arg({sa::float32, true});
  const auto shifted = [&](int most) {
    return sa::expand::exp(b, b.binary(sa::Code::sub, b.load(in), most));
  };
  b.begin_stage(true);
  const int most = b.reduce(sa::Reducer::max, b.load(in));
  b.begin_stage(true);
  const int total = b.reduce(sa::Reducer::sum, shifted(most));
  b.begin_stage(true);
  b.store(out, b.binary(sa::Code::div, shifted(most), total));
  const auto bytes = static_cast<std::uint64_t>(rows * columns) * 4;
  sa::Loop loop{std::make_shared<const sa::Kernel>(b.finish()), {}};
  loop.items = {
      {0, {rows, columns}, {0, 0}, {{{0, 0}, {columns, 1}, bytes, 0}, {{1, 0}, {columns, 1}, bytes, 0}}}};
  auto program = std::make_shared<sa::Program>();
  program->steps = {{loop, "", {}}};
  program->base_count = 2;
  auto memory = std::make_shared<std::array<std::vector<float>, 2>>();
  for (auto& m : *memory) m.assign(static_cast<std::size_t>(rows * columns), 0.5f);
  add_both(
      suite, "softmax in one kernel",
      [program, memory]() -> Step {
        const std::shared_ptr<sa::Executable> e = sa::make_cpu_backend(1)->load(program);
        e->prepare();
        return [e, memory] {
          void* bases[] = {(*memory)[0].data(), (*memory)[1].data()};
          e->run(bases, nullptr);
        };
      },
      floor, 0);
}

}  // namespace

int main(int argc, char** argv) {
  bench::Suite suite;
  for (const std::int64_t n : {100'000, 1'000'000, 10'000'000}) {
    const std::string size = " " + std::to_string(n);
    auto copy = std::make_shared<CopyFloor>(static_cast<std::size_t>(n));
    suite.add("copy" + size, [copy] { (*copy)(); });
    add_function(
        suite, "gelu" + size, {n}, [](const sa::Array& x) { return sa::gelu(x); }, "copy" + size);
    auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n), 1.f);
    suite.add("sum by hand" + size, [values] {
      std::atomic<float> total{0};
      bench::on_all_workers(values->size(), [&](std::size_t at, std::size_t k) {
        float lane[64] = {};
        const float* x = values->data() + at;
        for (std::size_t i = 0; i + 64 <= k; i += 64)
          for (std::size_t l = 0; l < 64; l++) lane[l] += x[i + l];
        float s = 0;
        for (float l : lane) s += l;
        total.fetch_add(s);
      });
      bench::keep(total);
    });
    add_function(
        suite, "sum" + size, {n}, [](const sa::Array& x) { return sa::sum(x); }, "sum by hand" + size);
  }
  add_function(
      suite, "x + 1, 10000000", {10'000'000}, [](const sa::Array& x) { return x + 1.0; }, "copy 10000000");
  add_bytes(suite, 40'000'000);
  add_adam(suite, 1000);
  add_adam(suite, 100'000);
  add_adam(suite, 10'000'000);
  auto copy = std::make_shared<CopyFloor>(4096 * 1024);
  suite.add("copy 4096 x 1024", [copy] { (*copy)(); });
  const sa::Shape matrix{4096, 1024};
  add_fused_softmax(suite, 4096, 1024, "copy 4096 x 1024");
  add_function(
      suite, "softmax of rows", matrix, [](const sa::Array& x) { return sa::softmax(x, -1); },
      "copy 4096 x 1024");
  auto copy_long = std::make_shared<CopyFloor>(1024 * 16384);
  suite.add("copy 1024 x 16384", [copy_long] { (*copy_long)(); });
  add_function(
      suite, "softmax of rows of 16384", {1024, 16384}, [](const sa::Array& x) { return sa::softmax(x, -1); },
      "copy 1024 x 16384");
  add_function(
      suite, "softmax of rows of 65536, which no cache holds", {256, 65536},
      [](const sa::Array& x) { return sa::softmax(x, -1); }, "copy 1024 x 16384");
  add_function(
      suite, "softmax of columns", matrix, [](const sa::Array& x) { return sa::softmax(x, 0); },
      "copy 4096 x 1024");
  add_function(suite, "layer norm", matrix, bench::layer_norm, "copy 4096 x 1024");
  add_function(
      suite, "transpose", matrix, [](const sa::Array& x) { return sa::transpose(x) + 1.0; },
      "copy 4096 x 1024");
  add_function(
      suite, "sum of columns", matrix, [](const sa::Array& x) { return sa::sum(x, {.axis = 0}); },
      "sum by hand 10000000");
  add_function(
      suite, "cumsum of rows", matrix, [](const sa::Array& x) { return sa::cumsum(x, -1); },
      "copy 4096 x 1024");
  add_function(
      suite, "cumsum of columns", matrix, [](const sa::Array& x) { return sa::cumsum(x, 0); },
      "copy 4096 x 1024");
  add_both(
      suite, "threefry bits 10000000",
      []() -> Step {
        const auto g = sa::jit([](const sa::Array& key) { return sa::random::bits(key, {10'000'000}); });
        const sa::Array key = sa::random::key(3);
        return [g, key] { bench::keep(g(key)); };
      },
      "copy 10000000", 0);
  add_both(
      suite, "normal 10000000",
      []() -> Step {
        const auto g = sa::jit([](const sa::Array& key) { return sa::random::normal(key, {10'000'000}); });
        const sa::Array key = sa::random::key(3);
        return [g, key] { bench::keep(g(key)); };
      },
      "copy 10000000", 0, 5);
  return suite.main(argc, argv);
}
