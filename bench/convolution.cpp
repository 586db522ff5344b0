// Convolutions, compared with a core's peak of multiply-adds and with a BLAS product of as many.
#include <shardarray/shardarray.h>

#include "bench.h"
#include "cpu/products/blas.h"
#include "machine.h"
#include "runtime/pool.h"

namespace sa = shardarray;

namespace {

sa::Array normal(std::int64_t seed, const sa::Shape& shape) {
  return sa::random::normal(sa::random::key(seed), shape);
}

/// C [m, n] = A [m, k] B [k, n].
void add_product(bench::Suite& suite, const std::string& name, int m, int n, int k) {
  const sa::Blas* const blas = sa::blas();
  if (blas == nullptr) return;
  auto a = std::make_shared<std::vector<float>>(bench::random_floats(static_cast<std::size_t>(m * k))),
       b = std::make_shared<std::vector<float>>(bench::random_floats(static_cast<std::size_t>(k * n))),
       c = std::make_shared<std::vector<float>>(static_cast<std::size_t>(m * n));
  suite.add(name,
            [=] {
              blas->sgemm(sa::Blas::row_major, sa::Blas::no_trans, sa::Blas::no_trans, m, n, k, 1, a->data(),
                          k, b->data(), n, 0, c->data(), n);
              bench::keep(*c);
            },
            {.flops = 2.0 * m * n * k});
}

/// Adds a convolution on one worker; `work`: multiply-adds per result.
template <class F>
void add_conv(bench::Suite& suite, const std::string& name, const F& f, const sa::Shape& x,
              const sa::Shape& kernel, double work, const std::string& floor) {
  const auto g = sa::jit(f);
  const sa::Array a = normal(1, x), b = normal(2, kernel);
  suite.add(name,
            [=] {
              sa::set_worker_count(1);
              sa::block_until_ready(g(a, b));
            },
            {.floor = floor, .flops = work});
}

}  // namespace

int main(int argc, char** argv) {
  bench::Suite suite;
  for (const bench::FmaLoop& loop : bench::fma_loops(4)) {
    constexpr long turns = 20'000;
    suite.add("multiply-adds of one core, " + loop.name, [loop] { loop.run(turns); },
              {.flops = loop.flops * turns});
  }
  const std::string product = "sgemm 64 x 32768 x 288";
  add_product(suite, product, 64, 32768, 288);
  const double work = 2.0 * 32 * 1024 * 64 * 288;
  const sa::Shape images{32, 32, 32, 32}, kernel{64, 32, 3, 3};
  const auto same = [](const sa::Array& x, const sa::Array& k) { return sa::conv(x, k, {}, "SAME"); };
  const auto loss = [=](const sa::Array& x, const sa::Array& k) { return sa::sum(same(x, k)); };
  add_conv(suite, "conv 3x3 of 32 x 32 x 32 x 32 to 64", same, images, kernel, work, product);
  add_conv(
      suite, "its gradient of the images",
      [=](const sa::Array& x, const sa::Array& k) { return sa::grad(loss)(x, k); }, images, kernel, work,
      product);
  add_conv(
      suite, "its gradient of the kernel",
      [=](const sa::Array& x, const sa::Array& k) { return sa::grad<1>(loss)(x, k); }, images, kernel, work,
      product);
  add_conv(
      suite, "the same with channels last",
      [](const sa::Array& x, const sa::Array& k) {
        return sa::conv_general_dilated(x, k,
                                        {.padding = "SAME", .dimension_numbers = {"NHWC", "HWIO", "NHWC"}});
      },
      images, {3, 3, 32, 64}, work, product);
  add_conv(
      suite, "with strides of 2",
      [](const sa::Array& x, const sa::Array& k) { return sa::conv(x, k, {2}, "SAME"); }, images, kernel,
      work / 4, product);
  add_conv(suite, "conv 1x1 of 32 x 128 x 16 x 16 to 128", same, {32, 128, 16, 16}, {128, 128, 1, 1},
           2.0 * 32 * 256 * 128 * 128, product);
  add_conv(suite, "conv 3x3 of 32 x 256 x 7 x 7 to 256", same, {32, 256, 7, 7}, {256, 256, 3, 3},
           2.0 * 32 * 49 * 256 * 256 * 9, product);
  add_conv(
      suite, "conv 3x3 of each of 32 x 128 x 32 x 32",
      [](const sa::Array& x, const sa::Array& k) {
        return sa::conv_general_dilated(x, k, {.padding = "SAME", .feature_group_count = 128});
      },
      {32, 128, 32, 32}, {128, 1, 3, 3}, 2.0 * 32 * 1024 * 128 * 9, product);
  return suite.main(argc, argv);
}
