// Matrix products against the BLAS that they call and the multiply-adds that the cores can do; what a second worker wins
// where the product is cut over 8 virtual devices.
#include <shardarray/shardarray.h>

#include "bench.h"
#include "cpu/products/blas.h"
#include "machine.h"
#include "runtime/pool.h"

namespace sa = shardarray;

static sa::Array random_matrix(std::int64_t n, const sa::Sharding& where) {
  return sa::device_put(sa::random::uniform(sa::random::key(n), {n, n}), where);
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  bench::Suite suite;
  for (const bench::FmaLoop& loop : bench::fma_loops(4)) {
    constexpr long turns = 20'000;
    suite.add("multiply-adds of one core, " + loop.name, [loop] { loop.run(turns); },
              {.flops = loop.flops * turns});
  }

  const sa::Sharding one = sa::SingleDeviceSharding(sa::devices()[0]);
  for (const int n : {64, 128, 256, 512, 1024, 2048}) {
    const double work = 2.0 * n * n * n;
    const std::string size = fmt::format("{}^3", n);
    auto a = std::make_shared<std::vector<float>>(bench::random_floats(static_cast<std::size_t>(n * n))),
         b = std::make_shared<std::vector<float>>(*a), c = std::make_shared<std::vector<float>>(*a);
    if (const sa::Blas* blas = sa::blas())
      suite.add("sgemm " + size,
                [=] {
                  blas->sgemm(sa::Blas::row_major, sa::Blas::no_trans, sa::Blas::no_trans, n, n, n, 1,
                              a->data(), n, b->data(), n, 0, c->data(), n);
                  bench::keep(*c);
                },
                {.flops = work});
    auto product = sa::jit([](sa::Array x, sa::Array y) { return sa::matmul(x, y); });
    const sa::Array x = random_matrix(n, one), y = random_matrix(n, one);
    suite.add("matmul " + size + ", 1 device, 1 worker",
              [=] {
                sa::set_worker_count(1);
                product(x, y).block_until_ready();
              },
              {.floor = "sgemm " + size, .flops = work});
  }

  const int n = 1024;
  const auto mesh = sa::make_mesh({{"x", 8}});
  const sa::Array x = random_matrix(n, sa::NamedSharding(mesh, sa::P("x"))),
                  y = random_matrix(n, sa::NamedSharding(mesh, sa::P()));
  auto product = sa::jit([](sa::Array p, sa::Array q) { return sa::matmul(p, q); });
  const int cores = sa::available_cores();
  for (int workers = 1; workers <= std::max(2, cores); workers *= 2)
    suite.add(fmt::format("matmul 1024^3, 8 devices, {} worker{}", workers, workers == 1 ? "" : "s"),
              [=] {
                sa::set_worker_count(workers);
                product(x, y).block_until_ready();
              },
              {.floor = workers == 1 ? "sgemm 1024^3" : "matmul 1024^3, 8 devices, 1 worker",
               .flops = 2.0 * n * n * n});
  return suite.main(argc, argv);
}
