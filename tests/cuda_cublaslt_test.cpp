// Products by cuBLASLt: its table and descriptions with the real library, which needs no GPU for them, and programs on the fake GPU
// (tests/cuda/), in processes of their own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cpu_helpers.h"
#include "cuda/product_plan.h"
#include "cuda_fake.h"
#include "op_data.h"
#include "platform_programs.h"
#include "scale.h"

namespace cuda_cublaslt_test {

namespace sa = shardarray;
using namespace sa::testing;
using platform_test::mesh_on;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::cuda::CublasLt;
using sa::cuda::ProductCall;

namespace {

constexpr const char* in_slow_kernel = "Products on CUDA devices run in a slower kernel.";
std::uint64_t products(int kind = 0) { return fake_control().products(kind); }

Array put(const Array& x, const P& spec) { return platform_test::put(x, mesh_on("cuda"), spec); }

std::string text_of(const std::string& name, const std::string& settings) {
  return text_on_fake(name,
                      "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=8 SHARDARRAY_PLATFORM=cuda "
                      "SHARDARRAY_CODEGEN=off " +
                          settings);
}
const std::string all_by_library = "SHARDARRAY_FAKE_OWN_PRODUCTS=0 ";

/// A row that is one product, or some.
bool is_product(const OpCase& row) {
  for (const char* const part : {"matmul", "dot", "einsum", "product"})
    if (row.name.find(part) != std::string::npos) return true;
  return false;
}

/// Of columns that stand one after the other.
ProductCall call_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  ProductCall c;
  c.first = {{{0, 0}}, n, k, n, n * k, 64};
  c.second = {{{1, 0}}, k, m, k, k * m, 64};
  c.result = {{{2, 0}}, n, m, n, n * m, 64};
  return c;
}

}  // namespace

// ---------------------------------------------------------------- the real library
TEST_CASE("cuda cuBLASLt: the real library takes every description") {
  const CublasLt* found = nullptr;
  try {
    found = &sa::cuda::cublas_lt();
  } catch (const sa::CompileError& e) {
    MESSAGE("SKIPPED, nothing is described: " << e.what());
    return;
  }
  const CublasLt& library = *found;
  CHECK(library.version() / 10000 == 13);
  CHECK(std::string(library.status_name(7)) == "CUBLAS_STATUS_INVALID_VALUE");
  constexpr sa::DType kinds[][2] = {{sa::float32, sa::float32},
                                    {sa::float64, sa::float64},
                                    {sa::float16, sa::float32},
                                    {sa::bfloat16, sa::float32}};
  for (const auto& kind : kinds)
    for (const int transposed : {0, 1, 2, 3})
      for (const std::int64_t batch : {1, 5, -5}) {
        ProductCall c = call_of(4, 5, 6);
        c.in = kind[0];
        c.out = kind[1];
        c.transpose_first = (transposed & 1) != 0;
        c.transpose_second = (transposed & 2) != 0;
        c.batch = std::abs(batch);
        c.tf32 = kind[0] == sa::float32 && transposed == 3;
        if (batch < 0)
          for (auto* m : {&c.first, &c.second, &c.result}) m->refs.resize(5);
        sa::cuda::describe_product(library, c);
        sa::cuda::product_preference(library, c, std::size_t{32} << 20);
        c.relu = transposed != 1;
        sa::cuda::describe_product(library, c);
        c.bias = {{{3, 0}}, 4, 1, 4, 8, 16};
        sa::cuda::describe_product(library, c);
      }
  // It looks at them: of no type, of a value's wrong size.
  CublasLt::Layout l;
  CHECK(library.layout_init(&l, sizeof l, CublasLt::real32, 4, 5, 4) == 0);
  CHECK(library.layout_set(&l, CublasLt::batch_offset, &l, 4) != 0);
  CHECK(library.layout_init(&l, 8, CublasLt::real32, 4, 5, 4) != 0);
}

TEST_CASE("cuda cuBLASLt: what it refuses, and a library that is not there") {
  CublasLt broken{};
  broken.product_init = [](CublasLt::Product*, std::size_t, int, int) { return 1; };
  broken.status_name = [](int) { return "CUBLAS_STATUS_NOT_INITIALIZED"; };
  CHECK(sa::cpu_test::message_of<sa::CompileError>(
            [&] { sa::cuda::describe_product(broken, call_of(4, 5, 6)); }) ==
        "cuda: cublasLtMatmulDescInit failed: CUBLAS_STATUS_NOT_INITIALIZED. Large products are made by "
        "cuBLASLt "
        "13. Install one that works.");
  CHECK(sa::cpu_test::message_of<sa::CompileError>([] {
          sa::cuda::open_cuda_library("libcublasLt.so.0", "Large products are made by cuBLASLt 13");
        }) ==
        "cuda: libcublasLt.so.0: cannot open shared object file: No such file or directory. Large products "
        "are made "
        "by cuBLASLt 13. Install CUDA 13's toolkit, or name its folder in CUDA_HOME.");
}

TEST_CASE("cuda cuBLASLt: an algorithm is kept for its product, GPU, workspace and cuBLASLt") {
  CublasLt old{}, fresh{};
  old.version = [] { return std::size_t{130000}; };
  fresh.version = [] { return std::size_t{130100}; };
  const ProductCall c = call_of(4, 5, 6);
  const auto key = [&](const ProductCall& call) { return sa::cuda::algorithm_key(old, call, "a GPU", 1000); };
  const std::string all = key(c);
  CHECK(all == key(c));
  CHECK(all != sa::cuda::algorithm_key(fresh, c, "a GPU", 1000));
  CHECK(all != sa::cuda::algorithm_key(old, c, "another", 1000));
  CHECK(all != sa::cuda::algorithm_key(old, c, "a GPU", 2000));
  const auto changed = [&](auto change) {
    ProductCall other = c;
    change(other);
    return key(other) != all;
  };
  CHECK(changed([](ProductCall& x) { x.in = sa::float16; }));
  CHECK(changed([](ProductCall& x) { x.out = sa::float64; }));
  CHECK(changed([](ProductCall& x) { x.tf32 = true; }));
  CHECK(changed([](ProductCall& x) { x.transpose_first = true; }));
  CHECK(changed([](ProductCall& x) { x.transpose_second = true; }));
  CHECK(changed([](ProductCall& x) { x.batch = 2; }));
  CHECK(changed([](ProductCall& x) { x.result.refs.resize(2); }));
  CHECK(changed([](ProductCall& x) { x.first.rows = 9; }));
  CHECK(changed([](ProductCall& x) { x.second.columns = 9; }));
  CHECK(changed([](ProductCall& x) { x.result.ld = 9; }));
  CHECK(changed([](ProductCall& x) { x.first.stride = 9; }));
  CHECK(changed([](ProductCall& x) { x.second.alignment = 16; }));
  CHECK(changed([](ProductCall& x) { x.relu = true; }));
  const auto biased = [&](std::int64_t stride, std::uint32_t alignment) {
    ProductCall other = c;
    other.bias = {{{3, 0}}, 4, 1, 4, stride, alignment};
    return key(other);
  };
  CHECK((biased(0, 64) != all && biased(4, 64) != biased(0, 64) && biased(0, 16) != biased(0, 64)));
  CHECK(!changed([](ProductCall& x) { x.first.refs[0].offset = 64; }));  // where it is does not matter
}

// ---------------------------------------------------------------- processes
TEST_CASE("cuda process: every product by cuBLASLt" * doctest::skip()) {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  int rows = 0;
  for (const OpCase& row : launch_cases()) {
    if (!is_product(row)) continue;
    rows++;
    Rng rng(std::hash<std::string>()(row.name));
    const sa::Arrays x = draw_operands(row, rng);
    const HostArray shape = host(row.function(x));
    const HostArray want = {shape.shape, row.reference(hosts(x))};
    const double tolerance = std::max(row.tolerance, 2e-6);
    const auto f = sa::jit([&row](const sa::Arrays& a) { return row.function(a); });
    for (int repeat = 0; repeat < (full_scale() ? 12 : 4); repeat++) {
      sa::Arrays given = x;
      for (Array& a : given) {
        const auto shardings = every_sharding(mesh, a.shape().size());
        if (repeat > 0) a = sa::device_put(a, shardings[rng() % shardings.size()]);
      }
      const std::string text = difference(host(f(given)), want, tolerance);
      CHECK_MESSAGE(text.empty(), row.name << ", placement " << repeat << ": " << text);
    }
  }
  CHECK(rows > 15);
  for (const int kind : {0, 1, 2}) CHECK(products(kind) > 0);
}

TEST_CASE("cuda process: products of every float" * doctest::skip()) {
  const bool singles = std::string(std::getenv("SHARDARRAY_FAKE_CUBLASLT")) == "singles";
  const sa::default_device cpu(sa::devices("cpu")[0]);
  const Array a = numbers({48, 40}) * 0.01f, b = numbers({40, 24}) * 0.01f;
  for (const sa::DType t : {sa::float32, sa::float64, sa::float16, sa::bfloat16}) {
    CAPTURE(name(t));
    const std::uint64_t before = products(2);
    const auto f = sa::jit([&](const Array& x, const Array& y) {
      return sa::grad([&](const Array& p) { return sa::sum(sa::square(sa::matmul(p, y))); })(x).astype(
          sa::float32);
    });
    const std::vector<double> want = f(a.astype(t), b.astype(t)).to_vector<double>(),
                              got = f(put(a.astype(t), P("x", "y")), put(b.astype(t), P("y")))
                                        .to_vector<double>();
    double most = 0, error = 0;
    for (std::size_t k = 0; k < want.size(); k++) {
      most = std::max(most, std::abs(want[k]));
      error = std::max(error, std::abs(want[k] - got[k]));
    }
    CHECK(most > 0);
    // 16-bit results are rounded in the middle.
    CHECK(error <= most * (t == sa::float16 ? 2e-3 : t == sa::bfloat16 ? 2e-2 : 2e-6));
    CHECK((products(2) > before) == !singles);
  }
  CHECK(products() >= 8);  // two a dtype
  // A loop whose body is a program of its own, run after run.
  const Array w = numbers({8, 8}) * 0.02f;
  const auto powers = sa::jit([](const Array& m) {
    return sa::fori_loop(
        0, 6, [&](const Array&, const Array& v) { return sa::matmul(v, m); }, m);
  });
  const std::uint64_t before = products();
  const auto wanted = powers(w).to_vector<float>(), made = powers(put(w, P("x"))).to_vector<float>();
  for (std::size_t k = 0; k < wanted.size(); k++)
    CHECK(std::abs(wanted[k] - made[k]) <= 1e-5f * std::abs(wanted[k]) + 1e-9f);
  CHECK(products() >= before + 6);
}

TEST_CASE("cuda process: products that keep their order" * doctest::skip()) {
  const auto bits_on = [](const char* platform, bool fixed) {
    const sa::reproducible order(fixed);
    const auto f = sa::jit([](const Array& x) { return sa::matmul(x, sa::transpose(x)); });
    return platform_test::bits(f(platform_test::put(numbers({40, 24}) * 0.1f, mesh_on(platform), P("x"))));
  };
  CHECK(bits_on("cuda", true) == bits_on("cpu", true));
  CHECK(products() == 0);
  bits_on("cuda", false);
  // Small ones, where the limit is the library's own.
  CHECK((products() > 0) == (std::getenv("SHARDARRAY_FAKE_OWN_PRODUCTS") != nullptr));
  const sa::Array whole = sa::astype(numbers({40, 24}), sa::int32);
  const std::uint64_t before = products();
  sa::matmul(whole, sa::transpose(whole)).to_vector<int>();
  CHECK(products() == before);
}

// What a TF32 product may make of float32 numbers.
float as_tf32(float x) {
  if (x == 0) return x;
  const int exponent = std::ilogb(x) - 10;
  return std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
}
std::vector<double> plain_product(const Array& x, const Array& y, bool rounded) {
  const auto m = static_cast<std::size_t>(x.shape()[0]), k = static_cast<std::size_t>(x.shape()[1]),
             n = static_cast<std::size_t>(y.shape()[1]);
  std::vector<float> a = x.to_vector<float>(), b = y.to_vector<float>();
  if (rounded)
    for (auto* v : {&a, &b}) std::transform(v->begin(), v->end(), v->begin(), as_tf32);
  std::vector<double> r(m * n, 0.0);
  for (std::size_t i = 0; i < m; i++)
    for (std::size_t j = 0; j < n; j++)
      for (std::size_t p = 0; p < k; p++) r[i * n + j] += static_cast<double>(a[i * k + p]) * b[p * n + j];
  return r;
}

TEST_CASE("cuda process: TF32 holds where the line stands" * doctest::skip()) {
  const Array x = put(sa::sin(numbers({40, 24})), P("x")),
              y = put(sa::cos(numbers({24, 16})), P(sa::none, "y"));
  // Relative to the largest element: float32 sums of 24 terms are 1e-6 off, TF32 operands 1e-4.
  const auto is = [](const Array& got, const std::vector<double>& want) {
    double most = 0, error = 0;
    const std::vector<float> g = got.to_vector<float>();
    for (std::size_t k = 0; k < want.size(); k++) {
      most = std::max(most, std::abs(want[k]));
      error = std::max(error, std::abs(want[k] - static_cast<double>(g[k])));
    }
    return error <= 2e-6 * most;
  };
  const std::vector<double> exact = plain_product(x, y, false), rounded = plain_product(x, y, true);
  const auto product = sa::jit([](const Array& a, const Array& b) { return sa::matmul(a, b); });
  const auto back = [](const Array& a, const Array& b) {
    return sa::grad([&](const Array& p) { return sa::sum(sa::matmul(p, b) * sa::matmul(a, b)); })(a);
  };
  CHECK(is(product(x, y), exact));
  Array lazy, with_grad, fixed;
  {
    const sa::tf32 on(true);
    lazy = sa::matmul(x, y);
    CHECK(is(product(x, y), rounded));
    with_grad = back(x, y);
    const sa::reproducible order(true);
    fixed = sa::matmul(x, y);
  }
  CHECK(is(lazy, rounded));
  CHECK(is(fixed, exact));
  CHECK(is(product(x, y), exact));
  CHECK(product.traces() == 2);
  // d/dp sum(matmul(p, y) * c) = c y', whose product has the mode of the line that it is derived from.
  const Array c = put(
      sa::array(std::vector<float>(rounded.begin(), rounded.end()), sa::ShapeOf(sa::Shape{40, 16})), P("x"));
  CHECK(is(with_grad, plain_product(c, sa::transpose(y), true)));
  CHECK_FALSE(is(with_grad, plain_product(c, sa::transpose(y), false)));
  // The CPU does not have it.
  const sa::tf32 on(true);
  const auto on_cpu = [](const Array& a) { return platform_test::put(a, mesh_on("cpu"), P()); };
  CHECK(is(sa::matmul(on_cpu(x), on_cpu(y)), exact));
}

TEST_CASE("cuda process: a large product" * doctest::skip()) {
  const sa::default_device one(sa::devices("cuda")[0]);
  const Array x = numbers({70, 80}) * 0.01f;
  const std::vector<float> v = x.to_vector<float>();
  const auto f = sa::jit([](const Array& a) { return sa::matmul(a, sa::transpose(a)); });
  for (int run = 0; run < 2; run++) {
    const std::vector<float> got = f(x).to_vector<float>();
    double error = 0;
    for (std::size_t i = 0; i < 70; i++)
      for (std::size_t j = 0; j < 70; j++) {
        double want = 0;
        for (std::size_t p = 0; p < 80; p++) want += static_cast<double>(v[i * 80 + p]) * v[j * 80 + p];
        error = std::max(error, std::abs(want - static_cast<double>(got[i * 70 + j])) / (1 + std::abs(want)));
      }
    CHECK(error < 1e-5);
  }
  std::printf("algorithm %d after %d products\nheld: %d MiB\n", fake_control().algorithm(),
              static_cast<int>(products()), static_cast<int>(fake_control().held() >> 20));
}

TEST_CASE("cuda process: a product that fails" * doctest::skip()) {
  const sa::default_device one(sa::devices("cuda")[0]);
  const Array x = numbers({70, 80}) * 0.01f;
  const auto f = sa::jit([](const Array& a) { return sa::matmul(a, sa::transpose(a)); });
  const std::vector<float> want = f(x).to_vector<float>();
  for (int k = 0; k < 30; k++) {
    fake_control().fail_call(k, 1);
    const std::string message = thrown([&] { f(x).to_vector<float>(); });
    const std::string call = fake_control().last_call();
    fake_control().fail_call(-1, 0);
    if (message.find("cuda: cublasLtMatmul failed on GPU 0 (fake GPU) in '") != 0) continue;
    CHECK(call == "cublasLtMatmul");
    CHECK_MESSAGE(message.find("cuda_cublaslt_test.cpp:") != message.npos, message);
    CHECK_MESSAGE(
        message.find("): CUBLAS_STATUS_EXECUTION_FAILED. It had no effect; the GPU can still be used. "
                     "Please report this.") != message.npos,
        message);
    CHECK(f(x).to_vector<float>() == want);
    return;
  }
  FAIL_CHECK("the call was not reached");
}

TEST_CASE("cuda process: cuBLASLt without memory of its own" * doctest::skip()) {
  const sa::default_device one(sa::devices("cuda")[0]);
  const Array x = numbers({70, 80}) * 0.01f;
  const auto f = sa::jit([](const Array& a) { return sa::matmul(a, sa::transpose(a)); });
  fake_control().fail_named("cublasLtCreate", 1, 2);
  const std::vector<float> first = f(x).to_vector<float>();
  CHECK(fake_control().last_call() == std::string("cublasLtCreate"));
  CHECK(products() == 1);
  fake_control().fail_named("cublasLtMatmul", 1, 2);
  CHECK(f(x).to_vector<float>() == first);
  CHECK(fake_control().last_call() == std::string("cublasLtMatmul"));
  CHECK(products() == 2);
  fake_control().fail_named("cublasLtMatmul", 2, 2);
  const std::string text = thrown([&] { f(x).to_vector<float>(); });
  CHECK_MESSAGE(
      text.find("CUBLAS_STATUS_ALLOC_FAILED. CUDA needs some memory beside the arrays. Free arrays.") !=
          text.npos,
      text);
  CHECK(f(x).to_vector<float>() == first);
}

TEST_CASE("cuda cuBLASLt: products are the CPU's but for rounding, on one device and cut over eight") {
  const std::string settings = all_by_library + "SHARDARRAY_FAKE_CUBLASLT=";
  for (const char* const library : {"1", "singles"}) {
    const std::string text = text_of("cuda process: products of every float", settings + library);
    CHECK_MESSAGE(count_of(in_slow_kernel, text) == 0, text);
  }
  text_of("cuda process: every product by cuBLASLt", settings + "1");
}

TEST_CASE("cuda cuBLASLt: TF32 is asked for, and only where a line asks") {
  text_of("cuda process: TF32 holds where the line stands", all_by_library + "SHARDARRAY_FAKE_CUBLASLT=1");
}

TEST_CASE("cuda cuBLASLt: small, whole and reproducible products stay with the own kernel") {
  text_of("cuda process: products that keep their order", "SHARDARRAY_FAKE_CUBLASLT=1");
  text_of("cuda process: products that keep their order", all_by_library + "SHARDARRAY_FAKE_CUBLASLT=1");
}

TEST_CASE("cuda cuBLASLt: the fastest of its algorithms makes large products, and is kept on the disk") {
  const std::string name = "cuda process: a large product";
  const auto says = [&](const std::string& settings, const std::string& line) {
    const std::string text = text_of(name, settings);
    CHECK_MESSAGE(text.find(line) != text.npos, text);
    return text;
  };
  const auto held = [](const std::string& text) { return text.substr(text.find("held: "), 12); };
  const TemporaryFolder cache;
  const std::string kept = "SHARDARRAY_CACHE_DIR=" + cache.path + " SHARDARRAY_FAKE_SLOW=1 " + all_by_library;
  const std::string none = "SHARDARRAY_CACHE_DIR= " + all_by_library;
  says(none + "SHARDARRAY_FAKE_CUBLASLT=1", "algorithm 0 after 2 products");  // the first guess
  // Four that may be used, each called 5 to 22 times, and two runs.
  const std::string tried =
      says(kept + "SHARDARRAY_FAKE_GUESSED_PRODUCTS=1000 SHARDARRAY_FAKE_CUBLASLT=1", "algorithm 3 after ");
  const int products = std::stoi(tried.substr(tried.find("after ") + 6));
  CHECK(products >= 4 * 5 + 2);
  CHECK(products <= 4 * 22 + 2);
  const std::string found =
      says(kept + "SHARDARRAY_FAKE_GUESSED_PRODUCTS=1000 SHARDARRAY_FAKE_CUBLASLT=broken",
           "algorithm 3 after 2 products");
  CHECK(count_of(in_slow_kernel, found) == 0);
  CHECK(held(tried) == held(found));  // what it was tried on is given back
  // Another GPU's is not taken: less workspace is allowed there.
  says(kept + "SHARDARRAY_FAKE_CUBLASLT=1 SHARDARRAY_FAKE_ARCHITECTURE=8", "algorithm 0 after 2 products");
}

TEST_CASE(
    "cuda cuBLASLt: without it, or where it has no algorithm, the own kernel multiplies, which is said "
    "once") {
  const std::string name = "cuda process: a large product", none = "SHARDARRAY_CACHE_DIR= " + all_by_library;
  const std::string missing = text_of(name, none);
  CHECK_MESSAGE(
      count_of("shardarray: cuda: the fake GPU has no cuBLASLt. SHARDARRAY_FAKE_CUBLASLT gives it one. Set "
               "it. Products on CUDA devices run in a slower kernel.\n",
               missing) == 1,
      missing);
  const std::string broken = text_of(name, none + "SHARDARRAY_FAKE_CUBLASLT=broken");
  CHECK_MESSAGE(
      count_of(
          "shardarray: cuda: cuBLASLt has no algorithm for products 70 x 80 x 70 of float32. It has them "
          "for what its GPU knows. Please report this. Products on CUDA devices run in a slower "
          "kernel.\n",
          broken) == 1,
      broken);
  for (const std::string& text : {missing, broken}) {
    CHECK(count_of(in_slow_kernel, text) == 1);
    CHECK_MESSAGE(text.find("after 0 products") != text.npos, text);
  }
  text_of("cuda process: a product that fails", none + "SHARDARRAY_FAKE_CUBLASLT=1");
  const std::string short_of =
      text_of("cuda process: cuBLASLt without memory of its own", none + "SHARDARRAY_FAKE_CUBLASLT=1");
  CHECK_MESSAGE(count_of(in_slow_kernel, short_of) == 0, short_of);
}

}  // namespace cuda_cublaslt_test
