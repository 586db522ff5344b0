// Loops by CUDA's interpreting kernels, compiled for the host: random kernels against the CPU's interpreter, bit for bit.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

#include "cuda_launches.h"
#include "kernel_check.h"
#include "kernel_random.h"
#include "scale.h"

namespace cuda_kernels_test {

using namespace shardarray;
using namespace shardarray::test;
using cpu_test::message_of;

namespace {

void check_kernel(const KernelCase& c) {
  const std::vector<cuda::KernelLaunch> launches = launches_of_case(c);
  check_blocks(c, interpreted(c), [&](const std::vector<void*>& bases, const BlockOrder& order) {
    run_launches(launches, bases, order);
  });
}

}  // namespace

TEST_CASE("cuda kernels: random loops give the bits of the CPU's interpreter") {
  const std::uint64_t count = testing::full_scale() ? 4000 : 200;
  for (std::uint64_t i = 0; i < count; i++) {
    const KernelCase c = random_case(i);
    CAPTURE(i);
    const std::string shown = to_string(c.kernel) + "extents " + to_string(c.extents);
    CAPTURE(shown);
    check_kernel(c);
  }
}

TEST_CASE("cuda kernels: long float sums and products have the order of kernel IR") {
  Random random(5);
  for (const DType t : {float32, float64})
    for (const Reducer reducer : {Reducer::sum, Reducer::prod, Reducer::max})
      for (const std::int64_t n : {0, 1, 31, 33, 1023, 1024, 1025, 2048, 5000}) {
        KernelCase c;
        KernelBuilder b(1, 1);
        const int x = b.arg({t}), out = b.arg({t, true}), back = b.arg({t, true});
        b.begin_stage(true);
        const int v = b.load(x);
        const int total = b.reduce(reducer, v);
        b.begin_stage(false);
        b.store(out, total);
        b.begin_stage(true);
        b.store(back, b.binary(Code::sub, b.load(x), total));
        c.kernel = b.finish();
        c.extents = {3, n};
        c.start = {0, 0};
        c.args = {{{n, 1}, 0, 3 * n}, {{1, 0}, 0, 3}, {{n, 1}, 0, 3 * n}};
        std::vector<float> f;
        std::vector<double> d;
        for (std::int64_t i = 0; i < 3 * n; i++) {
          d.push_back(std::ldexp(static_cast<double>(random() >> 11), -53) +
                      (reducer == Reducer::prod ? 0.5 : -0.3));
          f.push_back(static_cast<float>(d.back()));
        }
        Bytes bytes(static_cast<std::size_t>(3 * n) * itemsize(t));
        if (n > 0)
          std::memcpy(bytes.data(), t == float32 ? static_cast<const void*>(f.data()) : d.data(),
                      bytes.size());
        c.inputs = {bytes, Bytes(3 * itemsize(t)), Bytes(bytes.size())};
        CAPTURE(n);
        CAPTURE(name(t));
        check_kernel(c);
      }
}

TEST_CASE("cuda kernels: loops of many items, and with many values") {
  Random random(9);
  Loop loop;
  KernelBuilder b(1, 0);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  std::vector<int> v = {b.load(x)};
  for (int k = 1; k < 300; k++) v.push_back(b.binary(Code::mul, v[0], b.constant(float32, k)));
  int sum = v[299];
  for (int k = 298; k >= 0; k--) sum = b.binary(Code::add, sum, v[static_cast<std::size_t>(k)]);
  b.store(out, sum);
  const Kernel kernel = b.finish();
  loop.kernel = std::make_shared<const Kernel>(kernel);
  Memory memory;
  for (std::uint32_t k = 0; k < 9; k++) {
    const std::int64_t n = k == 3 ? 0 : 100 * k + 1;
    memory.push_back(random_elements(random, float32, n));
    memory.push_back(Bytes(static_cast<std::size_t>(n) * 4));
    const auto bytes = static_cast<std::uint64_t>(n) * 4;
    loop.items.push_back({0, {n}, {0}, {{{2 * k, 0}, {1}, bytes}, {{2 * k + 1, 0}, {1}, bytes}}});
  }
  REQUIRE(std::string(launches_of_step(loop).at(0).kernel) == "shardarray_points_512");
  check_step(loop, memory, std::vector<DType>(memory.size(), float32));
}

TEST_CASE("cuda kernels: what a warp does not do is refused") {
  KernelBuilder b(0, 1);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(true);
  const int sum = b.reduce(Reducer::sum, b.load(x));
  b.begin_stage(false);
  b.store(out, sum);
  Kernel k = b.finish();
  k.order.lanes = 64;
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(k);
  loop.items.push_back({0, {8}, {0}, {{{0, 0}, {1}, 32}, {{1, 0}, {0}, 4}}});
  CHECK(message_of<CompileError>([&] { launches_of_step(loop); }) ==
        "cuda: the loop `a step` sums floats in 64 lanes. A warp has 32. Compile for the CUDA target.");
}

TEST_CASE("cuda kernels: loops that are too large for a kernel or a grid are refused") {
  KernelBuilder b(33, 0);
  const int x = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  b.store(out, b.load(x));
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(b.finish());
  // No two dimensions are one axis.
  loop.items.push_back({0,
                        Shape::filled(33, 2),
                        Shape::filled(33, 0),
                        {{{0, 0}, Shape::filled(33, 1), 0}, {{1, 0}, Shape::filled(33, 1), 0}}});
  CHECK(message_of<CompileError>([&] { launches_of_step(loop); }) ==
        "cuda: the loop `a step` has 33 dimensions. Its kernels take up to 32. Join dimensions first.");

  KernelBuilder many(1, 0);
  many.begin_stage(false);
  std::vector<int> v;
  for (int k = 0; k < 513; k++) v.push_back(many.load(many.arg({float32})));
  int sum = v[0];
  for (int k = 1; k < 513; k++) sum = many.binary(Code::add, sum, v[static_cast<std::size_t>(k)]);
  many.store(many.arg({float32, true}), sum);
  Loop wide;
  wide.kernel = std::make_shared<const Kernel>(many.finish());
  wide.items.push_back({0, {1}, {0}, std::vector<LoopArg>(514, LoopArg{{0, 0}, {1}, 4})});
  CHECK(message_of<CompileError>([&] { launches_of_step(wide); }) ==
        "cuda: the loop `a step` holds 513 values at once. Its kernels hold up to 512. Evaluate a part of it "
        "first.");

  Gemm gemm;
  gemm.items.resize(65536);
  for (Gemm::Item& i : gemm.items) i.m = i.n = 1;
  CHECK(message_of<CompileError>([&] { launches_of_step(gemm); }) ==
        "cuda: the step `a step` has 65536 items. A launch serves up to 65535. Use fewer devices.");
}

}  // namespace cuda_kernels_test
