// The CPU backend: matrix products against plain loops, memory, programs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/products/blas.h"
#include "cpu/products/gemm.h"
#include "cpu_helpers.h"

namespace cpu_backend_test {

using namespace shardarray;
using namespace shardarray::cpu_test;

namespace {

/// A matrix product with its operands in memory; C is larger than what is written, filled with 0xff.
template <class T> struct Product {
  Gemm::Item item;
  std::vector<T> a, b, c;

  Product(std::mt19937& rng, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, bool ta,
          bool tb, bool whole) {
    item.m = m, item.n = n, item.k = k, item.batch = batch, item.ta = ta, item.tb = tb;
    const auto ld = [&](std::int64_t cols) {
      return cols + (rng() % 3 == 0 ? static_cast<std::int64_t>(rng() % 5) : 0);
    };
    item.lda = ld(ta ? m : k), item.ldb = ld(tb ? k : n), item.ldc = ld(n);
    item.stride_a = rng() % 4 == 0 ? 0 : (ta ? k : m) * item.lda;
    item.stride_b = rng() % 4 == 0 ? 0 : (tb ? n : k) * item.ldb;
    item.stride_c = m * item.ldc;
    fill(rng, whole);
  }
  void fill(std::mt19937& rng, bool whole) {
    const Gemm::Item& g = item;
    const std::int64_t rows_a = g.ta ? g.k : g.m, rows_b = g.tb ? g.n : g.k;
    a = random_values<T>(rng, g.batch * g.stride_a + rows_a * g.lda + g.k + g.m + 8, whole);
    b = random_values<T>(rng, g.batch * g.stride_b + rows_b * g.ldb + g.k + g.n + 8, whole);
    c.resize(static_cast<std::size_t>(g.batch * g.stride_c + g.m * g.ldc + 8));
    item.a = {0, 0}, item.b = {1, 0}, item.c = {2, 0};
  }
  Gemm step_body() const {
    Gemm g;
    g.in = g.out = dtype_of<T>();
    g.items = {item};
    return g;
  }
  void execute() {
    std::memset(static_cast<void*>(c.data()), 0xff, c.size() * sizeof(T));
    run({step(step_body())}, {a.data(), b.data(), c.data()});
  }
  /// Element (i, j) of product q, summed in order; pointers, since tests are compiled without optimisation.
  template <class Sum> Sum expected(std::int64_t q, std::int64_t i, std::int64_t j) const {
    const T* x = a.data() + q * item.stride_a + i * (item.ta ? 1 : item.lda);
    const T* y = b.data() + q * item.stride_b + j * (item.tb ? item.ldb : 1);
    const std::int64_t dx = item.ta ? item.lda : 1, dy = item.tb ? 1 : item.ldb;
    Sum sum = 0;
    for (std::int64_t p = 0; p < item.k; p++, x += dx, y += dy)
      sum += static_cast<Sum>(*x) * static_cast<Sum>(*y);
    return sum;
  }

  /// Every element of C, and that nothing else of it was written.
  void check(double tolerance) const {
    std::vector<T> untouched = c;
    for (std::int64_t q = 0; q < item.batch; q++) {
      for (std::int64_t i = 0; i < item.m; i++) {
        for (std::int64_t j = 0; j < item.n; j++) {
          const auto at = static_cast<std::size_t>(q * item.stride_c + i * item.ldc + j);
          std::memset(static_cast<void*>(&untouched[at]), 0xff, sizeof(T));
          if constexpr (std::is_floating_point_v<T>) {
            REQUIRE(std::abs(static_cast<double>(c[at]) - expected<double>(q, i, j)) <= tolerance);
          } else {
            REQUIRE(c[at] == static_cast<T>(expected<std::uint64_t>(q, i, j)));
          }
        }
      }
    }
    const auto* const bytes = reinterpret_cast<const unsigned char*>(untouched.data());
    REQUIRE(
        std::all_of(bytes, bytes + untouched.size() * sizeof(T), [](unsigned char x) { return x == 0xff; }));
  }
};

template <class T> void random_products(std::uint32_t seed, int count) {
  std::mt19937 rng(seed);
  for (int round = 0; round < count; round++) {
    const auto size = [&] {
      const auto kind = rng() % 10;
      return static_cast<std::int64_t>(kind == 0 ? 0 : kind == 1 ? 1 : kind < 7 ? rng() % 20 : rng() % 150);
    };
    const std::int64_t m = size(), n = size(), k = size(), batch = static_cast<std::int64_t>(rng() % 3);
    const bool whole = std::is_integral_v<T> || rng() % 2 == 0;
    Product<T> p(rng, m, n, k, batch, rng() % 2, rng() % 2, whole);
    INFO("round ", round, ": ", m, " x ", n, " x ", k, ", batch ", batch, ", transposed ", p.item.ta,
         p.item.tb);
    p.execute();
    p.check(whole
                ? 0
                : (sizeof(T) == 4 ? 2e-7 : 1e-15) * static_cast<double>(k));  // small whole numbers are exact
  }
}

bool no_blas(Blas&) { return false; }
bool serial_blas(Blas& t) {
  t.config = "OpenBLAS 0.3.21 NO_LAPACKE SINGLE_THREADED";
  return true;
}
int fake_calls = 0;
bool openmp_blas(Blas& t) {
  t.config = "OpenBLAS 0.3.21 USE_OPENMP";
  t.sgemm = [](int, int, int, int m, int n, int, float, const float*, int, const float*, int, float, float* c,
               int ldc) {
    fake_calls++;
    for (int i = 0; i < m; i++) std::fill_n(c + i * ldc, n, 5.f);
  };
  return true;
}

struct OpenedBy {
  BlasOpener before;
  explicit OpenedBy(BlasOpener open) : before(set_blas_opener(open)) {}
  ~OpenedBy() { set_blas_opener(before); }
};

}  // namespace

TEST_CASE("gemm: random shapes, transposes, batches and strides against a plain loop") {
  random_products<float>(1, 250);
  random_products<double>(2, 250);
}

TEST_CASE("gemm: integers wrap, bool is or of and") {
  random_products<std::int32_t>(3, 40);
  random_products<std::uint64_t>(4, 30);
  random_products<std::int64_t>(5, 30);
  random_products<std::uint16_t>(6, 30);
  random_products<std::int8_t>(7, 30);
  bool a[6] = {true, false, true, false, false, false}, b[3] = {false, true, true}, c[2] = {};
  Gemm g;
  g.in = g.out = DType::bool_;
  g.items.resize(1);
  g.items[0] = {0, {0, 0}, {1, 0}, {2, 0}, 2, 1, 3, 1, 3, 1, 1, 0, 0, 0, false, false};
  run({step(g)}, {a, b, c});
  CHECK(c[0]);
  CHECK_FALSE(c[1]);
}

TEST_CASE("gemm: shapes that are cut into panels, vectors, rows that overlap") {
  std::mt19937 rng(8);
  const std::vector<Shape> shapes = {{600, 130, 40},  {130, 600, 40}, {1, 3000, 300}, {3000, 1, 300},
                                     {530, 257, 120}, {1, 1, 5000},   {1, 70, 70},    {70, 1, 70}};
  for (const Shape& s : shapes) {
    for (int t = 0; t < 4; t++) {
      INFO("m, n, k: ", to_string(s), ", transposes ", t);
      Product<float> p(rng, s[0], s[1], s[2], 1, t & 1, t & 2, true);
      p.execute();
      p.check(0);
    }
  }
  Product<double> p(rng, 40, 50, 60, 2, false, false, true);
  for (std::int64_t ld : {0, 1}) {  // every row of A the same, or shifted by one: no BLAS takes that
    p.item.lda = ld;
    p.item.ldb = 1 - ld;
    p.fill(rng, true);
    p.execute();
    p.check(0);
  }
}

TEST_CASE("gemm: the same bits for any number of workers") {
  std::mt19937 rng(9);
  for (const Shape& s : std::vector<Shape>{{700, 200, 150}, {200, 700, 150}, {1, 5000, 200}, {64, 64, 64}}) {
    Product<float> p(rng, s[0], s[1], s[2], 2, false, true, false);
    std::vector<float> first;
    for (int workers : {1, 2, 3, 7}) {
      const Workers w(workers);
      p.execute();
      if (first.empty()) first = p.c;
      CHECK(std::memcmp(p.c.data(), first.data(), first.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("gemm: random shapes by a BLAS that is asked for") {
  if (blas() == nullptr) return;
  static const Blas real = *blas();
  const OpenedBy asked([](Blas& table) {
    table = real;
    return true;
  });
  random_products<float>(12, 100);
  random_products<double>(13, 100);
  std::mt19937 rng(14);
  Product<float> deep(rng, 5, 33, 20'000, 1, false, false, true);  // in blocks that are added
  deep.execute();
  deep.check(0);
  Product<float> p(rng, 300, 200, 100, 1, false, true, true);
  p.execute();
  p.check(0);
}

TEST_CASE("gemm: without a BLAS, with a wrong one, with another one") {
  std::mt19937 rng(10);
  Product<float> p(rng, 70, 60, 50, 1, false, false, true);
  {
    const OpenedBy missing(no_blas);
    CHECK(stderr_of([&] { p.execute(); }) ==
          "shardarray: no BLAS found: products with a vector, and on CPUs without AVX2 all large ones, are "
          "slow. Install libopenblas0-pthread.\n");
    p.check(0);
    CHECK(stderr_of([&] { p.execute(); }).empty());  // once
    Product<double> d(rng, 300, 70, 300, 1, true, true, true);
    d.execute();
    d.check(0);
    Product<float> v(rng, 1, 600, 300, 1, false, true, true);
    v.execute();
    v.check(0);
  }
  {
    const OpenedBy wrong(serial_blas);
    for (int twice = 0; twice < 2; twice++) {
      CHECK(contains(message_of<CompileError>([&] { p.execute(); }),
                     "matmul: the BLAS is the serial build ('OpenBLAS 0.3.21 NO_LAPACKE SINGLE_THREADED')."));
    }
  }
  {
    const OpenedBy slow(openmp_blas);
    CHECK(contains(stderr_of([&] { p.execute(); }), "shardarray: the BLAS is an OpenMP build"));
    CHECK(fake_calls == 1);
    CHECK(p.c[0] == 5);
  }
  p.execute();
  p.check(0);
}

TEST_CASE("programs that the CPU has no kernels for are refused when they are loaded") {
  Gemm g;
  g.in = DType::bfloat16;
  g.items.resize(1);
  CHECK(contains(message_of<CompileError>([&] { run({step(g)}, {nullptr}); }),
                 "matmul: the CPU has no kernel for bfloat16."));
  Exchange x;
  x.dtype = DType::complex64;
  x.reducer = Reducer::sum;
  x.items.resize(1);
  CHECK(contains(message_of<CompileError>([&] { run({step(x)}, {nullptr}); }),
                 "sum over devices: the CPU has no kernel for complex64."));
  LibraryCall e;
  e.name = "sort_by_hand";
  e.in_types = e.out_types = {DType::complex64};
  e.items.resize(1);
  CHECK(contains(
      message_of<CompileError>([&] { run({step(e)}, {nullptr}); }),
      "sort_by_hand: the CPU has no library kernel of this name. It has sort, scatter, update, update_rows, "
      "scan, "
      "conv, cholesky, lu, triangular_solve, lu_solve, qr, eigh, svd, fft, rfft, irfft. Please report"));
  e.name = "sort";
  CHECK(contains(message_of<CompileError>([&] { run({step(e)}, {nullptr}); }),
                 "sort: the CPU has no kernel for complex64."));
  e.name = "scan";
  e.in_types = {DType::bool_};
  CHECK(contains(message_of<CompileError>([&] { run({step(e)}, {nullptr}); }),
                 "scan: the CPU has no kernel for bool."));
  e.name = "conv";
  CHECK(contains(message_of<CompileError>([&] { run({step(e)}, {nullptr}); }),
                 "conv: the CPU has no kernel for bool."));
  e.name = "scatter";
  e.in_types = {DType::int32, DType::bool_};
  CHECK(contains(message_of<CompileError>([&] { run({step(e)}, {nullptr}); }),
                 "scatter: the CPU has no kernel for bool."));
  e.in_types = {DType::float32, DType::float32};
  CHECK(contains(message_of<CompileError>([&] { run({step(e)}, {nullptr}); }),
                 "scatter: the CPU has no kernel for float32. It takes rows"));
  x = {};
  x.items = {{0, {7, 0}, 4, true, {}}};
  CHECK(contains(message_of<InternalError>([&] { run({step(x)}, {nullptr}); }),
                 "load: a step touches bytes [0, 4) of base 7, the program has 1 bases."));
  const auto empty = std::make_shared<Program>();
  void* base = nullptr;
  CHECK(contains(message_of<InternalError>([&] {
                   make_cpu_backend(1)->load(empty)->run({&base, 1}, nullptr);
                 }),
                 "run: 1 base pointers, the program has 0."));
}

TEST_CASE("backend: memory per device") {
  const auto cpu = make_cpu_backend(3);
  CHECK(cpu->device_count() == 3);
  CHECK(std::string(cpu->platform()) == "cpu");
  {
    const BufferRef b = cpu->allocate(2, 1000);
    std::vector<char> out(1000), in(1000);
    std::iota(in.begin(), in.end(), static_cast<char>(0));
    cpu->copy_from_host(b, in.data(), in.size());
    cpu->copy_to_host(out.data(), b, out.size());
    CHECK(in == out);
    CHECK(cpu->memory_stats(2).in_use == 1000);
    CHECK(cpu->memory_stats(1).in_use == 0);
  }
  CHECK(cpu->memory_stats(2).in_use == 0);
  CHECK(cpu->memory_stats(2).high_water == 1000);
  CHECK(contains(message_of<DeviceError>([&] { (void)cpu->allocate(3, 1); }),
                 "backend: there is no device cpu:3. The platform has 3 devices"));
}

TEST_CASE("programs: steps that reuse memory run in order on any number of workers") {
  // Eight devices: y = A x per device, the sum over devices back into x, twenty times; one scratch block for
  // all y.
  constexpr std::int64_t d = 64;
  std::mt19937 rng(11);
  std::vector<float> a = random_values<float>(rng, 8 * d * d, true);
  for (auto& v : a) v = v > 7 ? 1.f : 0.f;
  std::vector<Step> steps;
  Gemm product;
  Exchange sum;
  sum.reducer = Reducer::sum;
  sum.transfer = 0;
  Exchange::Piece piece = {{d}, {1}, {1}, {2, 0}, {}};
  for (int k = 0; k < 8; k++) {
    const auto y = static_cast<std::uint64_t>(k) * d * 4;
    product.items.push_back({k,
                             {0, static_cast<std::uint64_t>(k) * d * d * 4},
                             {2, 0},
                             {1, y},
                             d,
                             1,
                             d,
                             1,
                             d,
                             1,
                             1,
                             0,
                             0,
                             0,
                             false,
                             false});
    piece.sources.push_back({{1, y}, k, d * 4, 0});
  }
  sum.items = {{0, {2, 0}, d * 4, false, {piece}}};
  for (int round = 0; round < 20; round++) {
    steps.push_back(step(product));
    steps.push_back(step(sum));
  }
  std::vector<float> expected(d, 1.f);
  for (int round = 0; round < 20; round++) {
    std::vector<float> next(d, 0.f);
    for (int k = 0; k < 8; k++) {
      for (std::int64_t i = 0; i < d; i++) {
        float y = 0;
        for (std::int64_t p = 0; p < d; p++) y = std::fma(a[(k * d + i) * d + p], expected[p], y);
        next[i] = k == 0 ? y : next[i] + y;
      }
    }
    expected = next;
  }
  for (int workers : {1, 2, 4}) {
    const Workers w(workers);
    std::vector<float> y(8 * d), x(d, 1.f);
    const RunReport report = run(steps, {a.data(), y.data(), x.data()}, 1);
    CHECK(x == expected);
    CHECK(report.received == std::vector<std::int64_t>{20 * 7 * d * 4});
  }
}

TEST_CASE("programs: loops are cut into chunks and wait for each other") {
  constexpr std::int64_t n = 300'000;
  auto kernel = std::make_shared<Kernel>();  // out = in + 1
  kernel->outer = 1;
  kernel->args = {{DType::float32}, {DType::float32, true}};
  kernel->code = {{Code::load, DType::float32},
                  {Code::constant, DType::float32, -1, -1, -1, 0x3f800000},
                  {Code::add, DType::float32, 0, 1},
                  {Code::store, DType::float32, 2, -1, -1, 1}};
  kernel->stages = {{false, 4}};
  const auto loop = [&](std::uint32_t from, std::uint32_t to) {
    const auto arg = [](std::uint32_t base) { return LoopArg{{base, 0}, {1}, n * 4, 0, 0, 0, 0}; };
    return step(Loop{kernel, {{0, {n}, {0}, {arg(from), arg(to)}}}});
  };
  // There, back, in place: twenty times.
  std::vector<Step> steps;
  for (int round = 0; round < 20; round++) {
    for (const Step& s : {loop(0, 1), loop(1, 0), loop(0, 0)}) steps.push_back(s);
  }
  for (int workers : {1, 2, 4}) {
    const Workers w(workers);
    std::vector<float> a(n), b(n);
    std::iota(a.begin(), a.end(), 0.f);
    run(steps, {a.data(), b.data()});
    bool right = true;
    for (std::int64_t i = 0; i < n; i++)
      right = right && a[i] == static_cast<float>(i + 60) && b[i] == static_cast<float>(i + 58);
    CHECK(right);
  }
}

}  // namespace cpu_backend_test
