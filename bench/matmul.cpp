// Matrix products, compared with as many multiply-adds in registers and with a BLAS (OpenBLAS, or what SHARDARRAY_BLAS names); the gain of
// a second worker for a product sharded over 8 virtual devices; the cost of a bias and an activation.
#include <shardarray/shardarray.h>

#include "bench.h"
#include "cpu/products/blas.h"
#include "machine.h"
#include "runtime/pool.h"

namespace sa = shardarray;

static sa::Array random_matrix(std::int64_t m, std::int64_t n, const sa::Sharding& where) {
  return sa::device_put(sa::random::uniform(sa::random::key(n), {m, n}), where);
}
static sa::Array random_matrix(std::int64_t n, const sa::Sharding& where) {
  return random_matrix(n, n, where);
}

// A layer compared with its product: the cost of a bias and an activation, which are applied to each strip of C while it is in a cache.
static void add_layers(bench::Suite& suite, const sa::Sharding& one) {
  const auto product = sa::jit([](const sa::Array& x, const sa::Array& w) { return sa::matmul(x, w); });
  const auto layer = sa::jit([](const sa::Array& x, const sa::Array& w, const sa::Array& b) {
    return sa::maximum(sa::matmul(x, w) + b, 0.0);
  });
  struct Size {
    std::int64_t m, k, n;
  };
  for (const Size& s :
       {Size{8, 512, 512}, {512, 512, 512}, {1024, 1024, 1024}, {4096, 128, 1024}, {2048, 64, 2048}}) {
    const sa::Array x = random_matrix(s.m, s.k, one), w = random_matrix(s.k, s.n, one),
                    b = sa::device_put(sa::random::uniform(sa::random::key(1), {s.n}), one);
    const std::string size = fmt::format("[{}, {}] @ [{}, {}]", s.m, s.k, s.k, s.n);
    const double flops = 2.0 * static_cast<double>(s.m * s.k * s.n);
    suite.add(size,
              [=] {
                sa::set_worker_count(1);
                product(x, w).block_until_ready();
              },
              {.flops = flops});
    suite.add(size + " + bias, relu", [=] { layer(x, w, b).block_until_ready(); },
              {.floor = size, .flops = flops});
  }
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  bench::Suite suite;
  const std::vector<bench::FmaLoop> loops = bench::fma_loops(4);
  const auto add_limit = [&](const std::string& size, double work) {
    if (loops.empty()) return std::string();
    std::string name = "multiply-adds of " + size;
    suite.add(
        name,
        [loop = loops.back(), turns = static_cast<long>(work / loops.back().flops) + 1] { loop.run(turns); },
        {.flops = work});
    return name;
  };

  const sa::Sharding one = sa::SingleDeviceSharding(sa::devices()[0]);
  for (const int n : {64, 128, 256, 512, 1024, 2048}) {
    const double work = 2.0 * n * n * n;
    const std::string size = fmt::format("{}^3", n), limit = add_limit(size, work);
    auto a = std::make_shared<std::vector<float>>(bench::random_floats(static_cast<std::size_t>(n * n))),
         b = std::make_shared<std::vector<float>>(*a), c = std::make_shared<std::vector<float>>(*a);
    if (const sa::Blas* blas = sa::blas())
      suite.add("sgemm " + size,
                [=] {
                  blas->sgemm(sa::Blas::row_major, sa::Blas::no_trans, sa::Blas::no_trans, n, n, n, 1,
                              a->data(), n, b->data(), n, 0, c->data(), n);
                  bench::keep(*c);
                },
                {.floor = limit, .flops = work});
    auto product = sa::jit([](sa::Array x, sa::Array y) { return sa::matmul(x, y); });
    const sa::Array x = random_matrix(n, one), y = random_matrix(n, one);
    suite.add("matmul " + size + ", 1 device, 1 worker",
              [=] {
                sa::set_worker_count(1);
                product(x, y).block_until_ready();
              },
              {.floor = limit, .flops = work, .aim = n >= 512 ? 1 / 0.93 : 0});
  }

  add_layers(suite, one);

  const int n = 1024;
  const auto mesh = sa::make_mesh({{"x", 8}});
  const sa::Array x = random_matrix(n, sa::NamedSharding(mesh, sa::P("x"))),
                  y = random_matrix(n, sa::NamedSharding(mesh, sa::P()));
  auto product = sa::jit([](sa::Array p, sa::Array q) { return sa::matmul(p, q); });
  const int cores = sa::available_cores();
  for (int workers = 1; workers <= std::max(2, cores); workers *= 2)
    suite.add(
        fmt::format("matmul 1024^3, 8 devices, {} worker{}", workers, workers == 1 ? "" : "s"),
        [=] {
          sa::set_worker_count(workers);
          product(x, y).block_until_ready();
        },
        {.floor = workers == 1 ? "matmul 1024^3, 1 device, 1 worker" : "matmul 1024^3, 8 devices, 1 worker",
         .flops = 2.0 * n * n * n});
  return suite.main(argc, argv);
}
