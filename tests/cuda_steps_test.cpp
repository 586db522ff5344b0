// Exchanges, products, sorts and scatters by CUDA's kernels, compiled for the host: random steps against the CPU backend, bit for bit.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "cuda_launches.h"
#include "kernel_random.h"
#include "random_exchange.h"
#include "runtime/contraction.h"
#include "scale.h"

namespace cuda_steps_test {

using namespace shardarray;
using namespace shardarray::test;
using cpu_test::message_of;

// ---------------------------------------------------------------- exchanges
namespace {

void check_exchange(Random& r, DType t, Reducer reducer) {
  const RandomExchange e = random_exchange(r, t, reducer);
  check_step(e.exchange, e.memory, std::vector<DType>(e.memory.size(), t));
}

}  // namespace

TEST_CASE("cuda kernels: random exchanges give the bits of the CPU") {
  Random random(11);
  const int repeats = testing::full_scale() ? 60 : 6;
  for (const DType t : all_types)
    for (const Reducer reducer : all_reducers)
      for (int k = 0; k < repeats; k++) {
        CAPTURE(name(t));
        CAPTURE(name(reducer));
        CAPTURE(k);
        if (takes(reducer, t)) check_exchange(random, t, reducer);
      }
}

TEST_CASE("cuda kernels: exchanges take the dtypes that the CPU takes") {
  for (const DType t : all_types)
    for (const Reducer reducer : all_reducers) {
      Exchange x;
      x.dtype = t;
      x.reducer = reducer;
      x.items.resize(1);
      const bool refused = message_of<CompileError>([&] { launches_of_step(x); }) != "nothing was thrown";
      CAPTURE(name(t));
      CAPTURE(name(reducer));
      CHECK(refused == !takes(reducer, t));
    }
  Exchange x;
  x.dtype = complex64;
  x.reducer = Reducer::sum;
  CHECK(message_of<CompileError>([&] { launches_of_step(x); }) ==
        "sum over devices: CUDA has no kernel for complex64. Sums, products and extrema take integers, "
        "float32 and "
        "float64; all takes bool. Convert the operand first.");
}

// ---------------------------------------------------------------- products
namespace {

Gemm::Item random_product(Random& r, std::int64_t (&elements)[3], bool is_long = false,
                          std::int64_t longest = 40) {
  Gemm::Item g;
  g.m = pick(r, is_long ? 4 : longest / 2);
  g.n = pick(r, is_long ? 4 : longest);
  g.k = is_long ? 8190 + pick(r, 80) : pick(r, 50);
  g.batch = 1 + pick(r, 3);
  g.ta = pick(r, 2) == 0;
  g.tb = pick(r, 2) == 0;
  g.lda = (g.ta ? g.m : g.k) + pick(r, 3);
  g.ldb = (g.tb ? g.k : g.n) + pick(r, 3);
  g.ldc = g.n + pick(r, 3);
  const std::int64_t a = (g.ta ? g.k : g.m) * g.lda, b = (g.tb ? g.n : g.k) * g.ldb, c = g.m * g.ldc;
  g.stride_a = pick(r, 3) == 0 ? 0 : a;
  g.stride_b = pick(r, 3) == 0 ? 0 : b;
  g.stride_c = c;
  elements[0] = a + (g.batch - 1) * g.stride_a;
  elements[1] = b + (g.batch - 1) * g.stride_b;
  elements[2] = c * g.batch;
  return g;
}

double half_value(DType t, std::uint16_t bits) {
  const int mantissa = t == float16 ? 10 : 7, bias = t == float16 ? 15 : 127, top = t == float16 ? 31 : 255;
  const int exponent = bits >> mantissa & top, fraction = bits & ((1 << mantissa) - 1);
  double x = std::ldexp(fraction + (exponent ? 1 << mantissa : 0), std::max(exponent, 1) - bias - mantissa);
  if (exponent == top)
    x = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  return bits & 0x8000 ? -x : x;
}

}  // namespace

TEST_CASE(
    "cuda kernels: random products of all dtypes are one chain of multiply-adds, or blocks of long ones") {
  Random random(13);
  const int repeats = testing::full_scale() ? 200 : 10;
  for (const DType t : types)
    for (int k = 0; k < repeats; k++) {
      Gemm gemm;
      gemm.in = gemm.out = t;
      gemm.fixed_order = true;
      Memory memory;
      for (std::uint32_t i = 0; i < 3; i++) {
        std::int64_t elements[3];
        Gemm::Item g = random_product(random, elements, k % 10 == 9);
        for (Ref* ref : {&g.a, &g.b, &g.c}) {
          ref->base = static_cast<std::uint32_t>(memory.size());
          memory.push_back(random_elements(random, t, elements[ref->base % 3]));
        }
        gemm.items.push_back(g);
      }
      CAPTURE(name(t));
      CAPTURE(k);
      check_step(gemm, memory, std::vector<DType>(memory.size(), t));
    }
}

TEST_CASE("cuda kernels: tiles of products are the same chains, whatever their shape") {
  Random random(19);
  for (const DType t : types)
    for (int k = 0; k < (testing::full_scale() ? 50 : 2); k++) {
      Gemm gemm;
      gemm.in = gemm.out = t;
      gemm.fixed_order = true;
      std::int64_t elements[3];
      Gemm::Item g =
          random_product(random, elements, k % 5 == 1 && (t == float32 || testing::full_scale()), 200);
      Memory memory;
      for (Ref* ref : {&g.a, &g.b, &g.c}) {
        ref->base = static_cast<std::uint32_t>(memory.size());
        memory.push_back(random_elements(random, t, elements[ref->base]));
      }
      gemm.items = {g};
      auto launches = launches_of_step(gemm);
      if (launches.empty()) continue;
      const std::string elements_kernel = launches[0].any_block_kernel;
      Memory want = memory;
      cpu_test::run({cpu_test::step(gemm)}, pointers(want));
      for (const std::string shape : {"", "_tiles", "_deep"}) {
        if (shape == "_deep" && t != float32 && t != float64) continue;
        std::string kernel = elements_kernel;
        kernel.insert(kernel.rfind('_'), shape);
        launches[0].kernel = kernel.c_str();
        CAPTURE(kernel);
        CAPTURE(k);
        for (const BlockOrder& order : block_orders) {
          Memory got = memory;
          run_launches(launches, pointers(got), order);
          REQUIRE(same_values(t, got[2], want[2]));
        }
      }
    }
}

TEST_CASE(
    "cuda kernels: products are made in tiles where both sides have one, and there are many, or sums are "
    "long") {
  Random random(29);
  struct Row {
    std::int64_t m, n, k, batch;
    std::string shape;
  };
  for (const Row& r : {Row{450, 450, 16, 1, "_tiles"},
                       {64, 64, 20, 64, "_tiles"},
                       {64, 64, 20, 63, ""},
                       {63, 5000, 20, 1, ""},
                       {5000, 63, 20, 1, ""},
                       {450, 450, 15, 1, ""},
                       {32, 4, 127, 1, ""},
                       {32, 4, 128, 1, "_deep"},
                       {1, 1, 5000, 1, "_deep"},
                       {256, 256, 128, 1, "_deep"},
                       {256, 257, 128, 1, ""}}) {
    Gemm gemm;
    gemm.in = gemm.out = float32;
    gemm.fixed_order = true;
    Gemm::Item g;
    g.m = r.m;
    g.n = r.n;
    g.k = r.k;
    g.batch = r.batch;
    g.lda = r.k;
    g.ldb = g.ldc = r.n;
    g.stride_a = r.m * r.k;
    g.stride_b = 0;
    g.stride_c = r.m * r.n;
    g.b.base = 1;
    g.c.base = 2;
    gemm.items = {g};
    const auto launches = launches_of_step(gemm);
    CAPTURE(r.m);
    CAPTURE(r.n);
    CHECK(std::string(launches.at(0).kernel) == "shardarray_product" + r.shape + "_f32");
    check_step(
        gemm,
        {random_elements(random, float32, g.stride_a * r.batch), random_elements(random, float32, r.k * r.n),
         Bytes(static_cast<std::size_t>(g.stride_c * r.batch) * 4)},
        {float32, float32, float32});
  }
}

TEST_CASE("cuda kernels: a warp makes an element where sums are long, results few and the order free") {
  Random random(31);
  constexpr std::int64_t batch = 2;
  for (const DType t : {float32, float64})
    for (const std::int64_t k : {31, 32, 33, 200, 256, 257, 3000})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          CAPTURE(k);
          Gemm gemm;
          gemm.in = gemm.out = t;
          Gemm::Item g;
          g.m = 5;
          g.n = 7;
          g.k = k;
          g.batch = batch;
          g.ta = ta;
          g.tb = tb;
          g.lda = ta ? g.m : k;
          g.ldb = tb ? k : g.n;
          g.ldc = g.n;
          g.stride_a = g.m * k;
          g.stride_b = k * g.n;
          g.stride_c = g.m * g.n;
          g.b.base = 1;
          g.c.base = 2;
          gemm.items = {g};
          // Whole numbers, whose sums are exact in any order: the chains of the CPU are the truth.
          const auto whole = [&](std::int64_t n) {
            Bytes bytes(static_cast<std::size_t>(n) * itemsize(t));
            for (std::int64_t i = 0; i < n; i++) {
              const auto x = static_cast<float>(pick(random, 17) - 8);
              const double wide = x;
              const auto at = bytes.data() + static_cast<std::size_t>(i) * itemsize(t);
              if (t == float32) std::memcpy(at, &x, sizeof x);
              else std::memcpy(at, &wide, sizeof wide);
            }
            return bytes;
          };
          const bool by_lanes =
              std::string(launches_of_step(gemm).at(0).kernel).find("_by_lanes_") != std::string::npos;
          CHECK(by_lanes == (k >= 32));
          check_step(gemm, {whole(g.stride_a * batch), whole(g.stride_b * batch), whole(g.stride_c * batch)},
                     {t, t, t});
        }
}

TEST_CASE("cuda kernels: 16-bit floats are multiplied exactly and added in float32") {
  Random random(17);
  for (const DType t : {float16, bfloat16})
    for (int repeat = 0; repeat < 30; repeat++) {
      std::int64_t elements[3];
      Gemm::Item g = random_product(random, elements);
      Memory memory = {random_elements(random, t, elements[0]), random_elements(random, t, elements[1]),
                       Bytes(static_cast<std::size_t>(elements[2]) * 4)};
      g.a.base = 0;
      g.b.base = 1;
      g.c.base = 2;
      Bytes want = memory[2];
      const auto at = [&](std::size_t base, std::int64_t i) {
        std::uint16_t bits;
        std::memcpy(&bits, memory[base].data() + i * 2, 2);
        return static_cast<float>(half_value(t, bits));
      };
      for (std::int64_t b = 0; b < g.batch; b++)
        for (std::int64_t i = 0; i < g.m; i++)
          for (std::int64_t j = 0; j < g.n; j++) {
            float sum = 0;
            for (std::int64_t p = 0; p < g.k; p++)
              sum = std::fma(at(0, b * g.stride_a + (g.ta ? p * g.lda + i : i * g.lda + p)),
                             at(1, b * g.stride_b + (g.tb ? j * g.ldb + p : p * g.ldb + j)), sum);
            std::memcpy(want.data() + (b * g.stride_c + i * g.ldc + j) * 4, &sum, 4);
          }
      Gemm gemm;
      gemm.in = t;
      gemm.fixed_order = true;
      gemm.items = {g};
      run_launches(launches_of_step(gemm), pointers(memory), {});
      REQUIRE(same_values(float32, memory[2], want));
    }
}

TEST_CASE("cuda kernels: products are refused by dtype") {
  Gemm gemm;
  gemm.in = gemm.out = float16;
  CHECK(message_of<CompileError>([&] { launches_of_step(gemm); }) ==
        "matmul: CUDA has no kernel for float16 with results in float16. It multiplies bool, integers, "
        "float32 and "
        "float64, and 16-bit floats with results in float32. Convert the operands first.");
}

// ---------------------------------------------------------------- sorts and scatters
TEST_CASE("cuda kernels: random sorts of all dtypes") {
  Random random(19);
  const int repeats = testing::full_scale() ? 100 : 5;
  constexpr std::int64_t lengths[] = {0, 1, 2, 7, 8, 9, 16, 17, 63, 100, 300};
  for (const DType t : all_types) {
    if (is_complex(t)) continue;
    for (int k = 0; k < repeats; k++) {
      LibraryCall x;
      x.name = "sort";
      x.in_types = {t, all_types[pick(random, 15)], int32};
      x.out_types = x.in_types;
      const bool in_place = pick(random, 2) == 0;
      Memory memory;
      std::vector<DType> of;
      for (std::int64_t items = 1 + pick(random, 3); items > 0; items--) {
        LibraryCall::Item item;
        Shape shape;
        const auto rank = static_cast<std::size_t>(1 + pick(random, 3)),
                   dim = static_cast<std::size_t>(pick(random, static_cast<std::int64_t>(rank)));
        for (std::size_t d = 0; d < rank; d++)
          shape.push_back(d == dim ? lengths[pick(random, 11)] : 1 + pick(random, 4));
        item.params = {static_cast<std::int64_t>(dim)};
        for (const DType c : x.in_types) {
          for (auto* refs : {&item.in, &item.out}) {
            if (refs == &item.in || !in_place) {
              refs->push_back({static_cast<std::uint32_t>(memory.size()), 0});
              memory.push_back(random_elements(random, c, num_elements(shape)));
              of.push_back(c);
            } else {
              refs->push_back(item.in.back());
            }
          }
          item.in_shapes.push_back(shape);
          item.out_shapes.push_back(shape);
        }
        x.items.push_back(item);
      }
      CAPTURE(name(t));
      CAPTURE(k);
      check_step(x, memory, of);
    }
  }
}

TEST_CASE("cuda kernels: random scatters combine in order") {
  Random random(23);
  const int repeats = testing::full_scale() ? 60 : 6;
  for (const DType index : {int8, int16, int32, int64, uint8, uint16, uint32, uint64})
    for (const DType t : {int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64})
      for (int k = 0; k < repeats; k++) {
        const Reducer reducer = std::array{Reducer::sum, Reducer::prod, Reducer::max, Reducer::min}[k % 4];
        LibraryCall x;
        x.name = "scatter";
        x.in_types = {index, t};
        x.out_types = {t};
        Memory memory;
        std::vector<DType> of;
        for (std::uint32_t i = 0; i < 2; i++) {
          const std::int64_t b = pick(random, 4), n = pick(random, 30), d = pick(random, 70),
                             v = pick(random, 6);
          LibraryCall::Item item;
          item.in = {{3 * i, 0}, {3 * i + 1, 0}};
          item.out = {{3 * i + 2, 0}};
          item.in_shapes = {{b, n}, {b, n, d}};
          item.out_shapes = {{b, v, d}};
          item.params = {pick(random, 4), static_cast<std::int64_t>(reducer)};
          memory.push_back(random_elements(random, index, b * n));
          memory.push_back(random_elements(random, t, b * n * d));
          memory.push_back(random_elements(random, t, b * v * d));
          of.insert(of.end(), {index, t, t});
          x.items.push_back(item);
        }
        CAPTURE(name(index));
        CAPTURE(name(t));
        check_step(x, memory, of);
      }
}

TEST_CASE("cuda kernels: random scans have the CPU's bits") {
  Random random(29);
  const int repeats = testing::full_scale() ? 100 : 5;
  constexpr std::int64_t lengths[] = {0, 1, 2, 100, 1023, 1024, 1025, 3000, 9001};
  for (const DType t : {int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64})
    for (int k = 0; k < repeats; k++) {
      LibraryCall x;
      x.name = "scan";
      const bool has_totals = pick(random, 2) == 0, in_place = pick(random, 2) == 0;
      x.in_types = {t};
      x.out_types.assign(has_totals ? 2 : 1, t);
      const std::int64_t reducer = static_cast<std::int64_t>(Reducer::sum) + pick(random, 4),
                         direction = pick(random, 2) == 0 ? 1 : -1;
      Memory memory;
      std::vector<DType> of;
      for (std::int64_t items = 1 + pick(random, 3); items > 0; items--) {
        LibraryCall::Item item;
        const auto add = [&](std::vector<Ref>& refs, const Shape& shape) {
          refs.push_back({static_cast<std::uint32_t>(memory.size()), 0});
          memory.push_back(random_elements(random, t, num_elements(shape)));
          of.push_back(t);
        };
        const Shape shape{pick(random, 4), lengths[pick(random, 9)], 1 + pick(random, 5)};
        item.params = {1, reducer, direction};
        item.in_shapes = {shape};
        item.out_shapes = {shape};
        add(item.in, shape);
        if (in_place) item.out = {item.in[0]};
        else add(item.out, shape);
        if (has_totals) {
          item.out_shapes.push_back({shape[0], shape[2]});
          add(item.out, item.out_shapes[1]);
        }
        x.items.push_back(item);
      }
      CAPTURE(name(t));
      CAPTURE(k);
      check_step(x, memory, of);
    }
}

TEST_CASE("cuda kernels: random convolutions have the CPU's bits") {
  Random random(31);
  const int repeats = testing::full_scale() ? 100 : 5;
  for (const DType t : {int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64})
    for (int k = 0; k < repeats; k++) {
      LibraryCall x;
      x.name = "conv";
      x.in_types = {t, t};
      x.out_types = {t};
      Memory memory;
      for (std::uint32_t i = 0; i < 2; i++) {
        const std::int64_t groups = 1 + pick(random, 3), images = pick(random, 4),
                           features = 1 + pick(random, 20), channels = k == 0 ? 1500 : pick(random, 5),
                           window = 1 + pick(random, 3), windows = pick(random, 20),
                           stride = 1 + pick(random, 2), dilation = 1 + pick(random, 2);
        const std::int64_t size =
            std::max<std::int64_t>(windows - 1, 0) * stride + (window - 1) * dilation + 1;
        // the channels of the result last, or before the windows
        const bool last = pick(random, 2) == 0;
        Contraction c;
        c.groups = {
            {groups, images * channels * size, features * channels * window, images * features * windows}};
        c.points = {{images, channels * size, 0, features * windows},
                    {windows, stride, 0, last ? features : 1}};
        c.features = {{features, 0, channels * window, last ? 1 : windows}};
        c.summed = {{channels, size, window, 0}, {window, dilation, 1, 0}};
        LibraryCall::Item item;
        item.in = {{3 * i, 0}, {3 * i + 1, 0}};
        item.out = {{3 * i + 2, 0}};
        item.in_shapes = {{groups, images, channels, size}, {groups, features, channels, window}};
        item.out_shapes = {{groups, images, features, windows}};
        item.params = c.params();
        for (const Shape& s : {item.in_shapes[0], item.in_shapes[1], item.out_shapes[0]})
          memory.push_back(random_elements(random, t, num_elements(s)));
        x.items.push_back(item);
      }
      CAPTURE(name(t));
      CAPTURE(k);
      check_step(x, memory, std::vector<DType>(memory.size(), t));
    }
}

TEST_CASE("cuda kernels: sorts, scatters, scans and convolutions are refused by dtype") {
  LibraryCall x;
  x.name = "sort_by_hand";
  CHECK(message_of<InternalError>([&] { launches_of_step(x); }) ==
        "cuda: sort_by_hand is no launch: the host does it. Please report this.");
  x.name = "sort";
  x.in_types = x.out_types = {complex64};
  CHECK(message_of<CompileError>([&] { launches_of_step(x); }) ==
        "sort: CUDA has no kernel for complex64. It takes bool, integers and floats. Convert the operand "
        "first.");
  x.name = "scatter";
  x.in_types = {float32, float32};
  CHECK(message_of<CompileError>([&] { launches_of_step(x); }) ==
        "scatter: CUDA has no kernel for float32. It takes rows of an integer dtype. Convert the operand "
        "first.");
  x.in_types = {int32, float16};
  CHECK(message_of<CompileError>([&] { launches_of_step(x); }) ==
        "scatter: CUDA has no kernel for float16. It takes integers, float32 or float64. Convert the "
        "operand first.");
  x.name = "scan";
  x.in_types = {bool_};
  CHECK(
      message_of<CompileError>([&] { launches_of_step(x); }) ==
      "scan: CUDA has no kernel for bool. It takes integers, float32 or float64. Convert the operand first.");
  x.name = "conv";
  CHECK(
      message_of<CompileError>([&] { launches_of_step(x); }) ==
      "conv: CUDA has no kernel for bool. It takes integers, float32 or float64. Convert the operand first.");
}

}  // namespace cuda_steps_test
