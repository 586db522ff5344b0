// Performance cliffs, where a small change must not cost a multiple: a long program of few kernels against the same compiled at once, two
// workers against one on small dependent steps with and without a competing load, denormal against normal values, full reductions (time
// against the plain sum, peak against the input), long sums and products (error).
#include <shardarray/shardarray.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "bench.h"
#include "cpu/codegen/code_store.h"
#include "lstm.h"
#include "runtime/pool.h"

namespace sa = shardarray;

namespace {

// The leading principal components of rows by orthogonal iteration, unrolled: many equal small steps, and one large product.
sa::Array components(const sa::Array& rows, int count, int iterations) {
  const sa::Array x = rows - sa::mean(rows, 0);
  const sa::Array covariance = sa::matmul(sa::transpose(x), x);
  const std::int64_t d = covariance.shape()[0];
  std::vector<sa::Array> q;
  q.reserve(static_cast<std::size_t>(count));
  for (int k = 0; k < count; k++) q.push_back(sa::sin(sa::arange(d, sa::float32) * (k + 1.0)));
  for (int i = 0; i < iterations; i++) {
    for (int k = 0; k < count; k++) {
      sa::Array v = sa::matmul(covariance, q[static_cast<std::size_t>(k)]);
      for (int j = 0; j < k; j++) {
        const sa::Array& before = q[static_cast<std::size_t>(j)];
        v = v - sa::sum(v * before) * before;
      }
      q[static_cast<std::size_t>(k)] = v / sa::sqrt(sa::sum(v * v));
    }
  }
  return sa::stack(q);
}

// Threads that compute all the time, two per core.
class Load {
 public:
  explicit Load(bool on) {
    for (int k = 0; on && k < 2 * sa::available_cores(); k++)
      threads_.emplace_back([this] {
        while (!ends_) bench::keep(count_);
      });
  }
  ~Load() {
    ends_ = true;
    for (std::thread& t : threads_) t.join();
  }

 private:
  std::atomic<bool> ends_{false};
  int count_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
  setenv("SHARDARRAY_CACHE_DIR", "", 1);  // no cached kernels from the disk
  bench::Suite suite;
  const sa::Array rows = sa::random::normal(sa::random::key(1), {3000, 256});
  const auto pca = [](const sa::Array& x) { return components(x, 4, 100); };
  const auto mode = [](sa::CodegenMode m, auto f) {
    return [=] {
      const sa::CodegenMode before = sa::set_codegen_mode(m);
      f();
      sa::set_codegen_mode(before);
    };
  };
  const std::string always = "long program, compiled at once";
  const auto compiled = sa::jit(pca);
  suite.add(always, mode(sa::CodegenMode::always, [=] { compiled(rows).block_until_ready(); }));
  // A program of its own: it has had 20 calls before it is measured.
  const auto tiered = sa::jit([=](const sa::Array& x) { return pca(x) + 0.0; });
  mode(sa::CodegenMode::on, [&] {
    for (int k = 0; k < 20; k++) tiered(rows).block_until_ready();
  })();
  suite.add("long program after 20 calls",
            mode(sa::CodegenMode::on, [=] { tiered(rows).block_until_ready(); }),
            {.floor = always, .aim = 1.2});

  const sa::Array w = sa::random::normal(sa::random::key(2), {16, 256}) * 0.2,
                  u = sa::random::normal(sa::random::key(3), {64, 256}) * 0.1,
                  x = sa::random::normal(sa::random::key(4), {200, 16, 16});
  const auto gradient =
      sa::jit(sa::grad([x](const sa::Array& v, const sa::Array& r) { return bench::lstm_loss(v, r, x); }));
  for (const bool busy : {false, true}) {
    const auto name = [&](int workers) {
      return fmt::format("200 dependent steps, {} worker{}{}", workers, workers > 1 ? "s" : "",
                         busy ? ", every core busy" : "");
    };
    for (const int workers : {1, 2})
      suite.add(name(workers),
                [=] {
                  const int before = sa::ThreadPool::instance().worker_count();
                  sa::set_worker_count(workers);
                  const Load load(busy);
                  for (int k = 0; k < 20; k++) gradient(w, u).block_until_ready();
                  sa::set_worker_count(before);
                },
                {.floor = workers > 1 ? name(1) : "", .per_call = 20, .aim = busy ? 1.3 : 1.15});
  }

  const auto decays = [](double factor) {
    return sa::jit([=](const sa::Array& v) {
      sa::Array y = v;
      for (int k = 0; k < 160; k++) y = y * factor + v * 1e-39;
      return y;
    });
  };
  const sa::Array v = sa::random::uniform(sa::random::key(5), {50'000});
  const auto normal = decays(0.999), vanishing = decays(0.5), flushed = decays(0.5);
  suite.add("160 gates, normal values", [=] { normal(v * 1e38).block_until_ready(); });
  suite.add("160 gates, vanishing", [=] { vanishing(v * 1e-37).block_until_ready(); },
            {.floor = "160 gates, normal values"});
  suite.add("160 gates, vanishing, flush_denormals",
            [=] {
              const sa::flush_denormals on(true);
              flushed(v * 1e-37).block_until_ready();
            },
            {.floor = "160 gates, normal values", .aim = 1.2});

  const sa::Array floats = sa::random::normal(sa::random::key(6), {4'000'000}),
                  whole = sa::random::randint(sa::random::key(7), {16'000'000}, 0, 100, sa::int8),
                  pixels = whole.astype(sa::uint8);
  std::set<std::string> floors;
  const auto reduced = [&](const std::string& name, const sa::Array& of, auto f) {
    const std::int64_t peak = sa::explain(f, of).peak_bytes_per_device;
    suite.add_count("peak of " + name, static_cast<double>(peak) / static_cast<double>(of.nbytes()), "inputs",
                    1.01);
    const auto mapped = sa::jit(f);
    const auto plain = sa::jit([](const sa::Array& y) { return sa::sum(y); });
    const std::string floor = fmt::format("sum of {}", of.type_string());
    suite.add(name, [=] { mapped(of).block_until_ready(); }, {.floor = floor});
    if (floors.insert(floor).second) suite.add(floor, [=] { plain(of).block_until_ready(); });
  };
  reduced("sum(x == 3)", whole, [](const sa::Array& y) { return sa::sum(y == 3); });
  reduced("mean(exp(f))", floats, [](const sa::Array& y) { return sa::mean(sa::exp(y)); });
  reduced("mean(u8 / 255)", pixels, [](const sa::Array& y) { return sa::mean(y / 255); });
  reduced("mean(int8, float32)", whole,
          [](const sa::Array& y) { return sa::mean(y, {.dtype = sa::float32}); });

  // Reduces a billion equal numbers, the worst case; they are never stored.
  const std::int64_t many = 1'000'000'000;
  const auto error = [&](const std::string& name, const sa::Array& value, double want) {
    suite.add_count("error of " + name, std::abs(value.item<double>() / want - 1), "relative", 1e-6);
  };
  const double tenth = 0.1f;
  error("the mean of 1e9 times 0.1", sa::mean(sa::full({many}, 0.1)), tenth);
  error("the sum of 1e9 squares of 0.1", sa::sum(sa::square(sa::full({many}, 0.1))), 1e9 * tenth * tenth);
  error("a product of vectors of 1e9", sa::matmul(sa::full({many}, 0.1), sa::full({many}, 0.1)),
        1e9 * tenth * tenth);
  error("columns of 1e7 times 0.1", sa::max(sa::mean(sa::full({many / 100, 3}, 0.1), 0)), tenth);
  {
    const sa::reproducible fixed(true);
    error("the mean of 1e9 times 0.1, reproducible", sa::mean(sa::full({many}, 0.1)), tenth);
  }
  {
    const std::int64_t k = many / 100;
    const sa::Array long_rows = sa::full({3, k}, 0.1), column = sa::full({k}, 0.1);
    sa::eval(long_rows, column);
    error("a product of rows of 1e7 and a vector", sa::max(sa::matmul(long_rows, column)),
          static_cast<double>(k) * tenth * tenth);
    error("a product of rows of ones and 1e7 times 0.1", sa::max(sa::matmul(sa::full({3, k}, 1.0), column)),
          static_cast<double>(k) * tenth);
    const sa::Array drawn = sa::random::normal(sa::random::key(8), {10 * k}) + 1;
    error("the deviation of 1e8 numbers", sa::std(drawn), sa::std(drawn.astype(sa::float64)).item<double>());
  }
  return suite.main(argc, argv);
}
