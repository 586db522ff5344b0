// Products of few elements and great depth, split along the depth (split-K): which ones, the partial products and their sum, and
// programs on the fake GPU (tests/cuda/), in separate processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/libraries.h"
#include "cuda/product_parts.h"
#include "cuda_emulated.h"
#include "cuda_fake.h"
#include "cuda_products.h"
#include "platform_programs.h"
#include "process_helpers.h"
#include "scale.h"

namespace cuda_parts_test {

namespace sa = shardarray;
using namespace sa;
using namespace sa::test;
using namespace sa::testing;
using cuda::PartsSum;
using cuda::ProductCall;
using program_test::numbers;

namespace {

Gemm gemm_of(const std::vector<Gemm::Item>& items, DType in = float32, DType out = float32) {
  Gemm g;
  g.in = in;
  g.out = out;
  g.items = items;
  return g;
}
ProductCall call_of(const Gemm& gemm) {
  const auto split = cuda::split_products(gemm, 64, 0);
  REQUIRE(split.calls.size() == 1);
  return split.calls[0];
}
/// m x k times k x n on so many devices, each with memory of its own.
ProductCall deep_call(std::int64_t m, std::int64_t n, std::int64_t k, std::uint32_t devices = 1,
                      DType in = float32) {
  Gemm gemm = gemm_of({}, in);
  for (std::uint32_t d = 0; d < devices; d++) {
    Gemm::Item g = dense(m, n, k, true);
    g.a.base = 3 * d;
    g.b.base = 3 * d + 1;
    g.c.base = 3 * d + 2;
    gemm.items.push_back(g);
  }
  return call_of(gemm);
}

/// A call of parts that is made: the memory that the launches share, then what `sum` does with it, as a kernel that gets its table.
struct MadeParts {
  PartsSum sum;
  Bytes scratch;
};
MadeParts made_parts(ProductCall c, std::int64_t parts, const Memory& m) {
  c = cuda::in_parts(c, parts);
  CHECK((c.parts == parts && cuda::part_counts(c, 132).empty()));
  const std::size_t bytes = cuda::bytes_of_parts(c);
  for (const std::int64_t b : {std::int64_t{0}, c.batch - 1})
    CHECK(place_of(c.result, b, c.out).offset +
              static_cast<std::uint64_t>(c.result.part_stride) * itemsize(c.out) <=
          bytes);
  Memory all = m;
  all.emplace_back(bytes, std::byte{0xee});
  ProductCall here = c;
  for (Ref& r : here.result.refs) {
    REQUIRE(r.base == cuda::scratch_base);
    r.base = static_cast<std::uint32_t>(m.size());
  }
  multiply_call(here, all);
  return {cuda::sum_of_parts(c), all.back()};
}
std::vector<std::uint64_t> table_of(const PartsSum& sum) {
  std::vector<std::uint64_t> table(sum.table.size() / 8 + 1);
  std::memcpy(table.data(), sum.table.data(), sum.table.size());
  return table;
}

void add_up(MadeParts& made, Memory& m) {
  const std::vector<std::uint64_t> table = table_of(made.sum);
  const device::Bases bases = few_bases_of(pointers(m));
  const cuda::HostKernel kernel = cuda::host_kernel(made.sum.kernel);
  const cuda::Grid& g = made.sum.grid;
  REQUIRE((kernel != nullptr));
  for (std::uint32_t b = 0; b < g.blocks; b++)
    kernel({b, g.blocks, 0, 0, g.threads}, reinterpret_cast<const std::byte*>(table.data()),
           made.scratch.data(), bases);
}

}  // namespace

// ---------------------------------------------------------------- which, and what of them
TEST_CASE("cuda parts: deep products of few elements are tried in parts that fill the GPU") {
  using Counts = std::vector<std::int64_t>;
  const auto counts = [](const ProductCall& c, int multiprocessors = 132) {
    return cuda::part_counts(c, multiprocessors);
  };
  CHECK(cuda::product_limits().deep == 8192);
  // The document's gradients: 1 and 8 logical devices.
  CHECK(counts(deep_call(32, 4, 1 << 20)) == Counts{256, 512, 1024});
  CHECK(counts(deep_call(32, 4, 1 << 17, 8)) == Counts{32, 64, 128});
  CHECK(counts(deep_call(32, 4, 1 << 17, 8), 60) == Counts{8, 16, 32});
  // Parts have 1,024 terms at least.
  CHECK(counts(deep_call(32, 4, 1 << 17)) == Counts{});
  CHECK(counts(deep_call(32, 4, 1 << 14, 8)) == Counts{});
  CHECK(counts(deep_call(128, 128, 1 << 16, 4)) == Counts{16, 32, 64});
  // Not deep; of many elements; with a loop behind it.
  CHECK(counts(deep_call(128, 128, 8190, 4)).empty());
  CHECK((counts(deep_call(512, 512, 1 << 16)).size() == 3 && counts(deep_call(512, 576, 1 << 16)).empty()));
  ProductCall relu = deep_call(32, 4, 1 << 20);
  relu.relu = true;
  CHECK(counts(relu).empty());
  // They are equal, and begin where 16 bytes do if they can.
  CHECK(counts(deep_call(64, 64, 1'000'000, 8)) == Counts{20, 40, 80});
  CHECK(counts(deep_call(64, 64, 1'000'000, 8, bfloat16))[0] == 20);
  CHECK(counts(deep_call(64, 64, 8 * 17 * 10'007, 8))[0] == 17);
  CHECK(counts(deep_call(64, 64, 1'000'003, 8)).empty());  // a prime
}

TEST_CASE(
    "cuda parts: where the parts of all products are the same distance apart they are no call by addresses") {
  const ProductCall one = cuda::in_parts(deep_call(32, 4, 4096), 8);
  CHECK((one.batch == 8 && !one.by_pointers() && one.depth() == 512));
  CHECK((one.first.stride == 512 * 4 && one.second.stride == 512 * 32 && one.result.stride == 4 * 32));
  // Batches whose depths follow each other, and others.
  Gemm::Item g = dense(8, 5, 64, true);
  g.batch = 3;
  g.b.base = 1;
  g.c.base = 2;
  const ProductCall follow = cuda::in_parts(call_of(gemm_of({g})), 4);
  CHECK((follow.batch == 12 && !follow.by_pointers() && follow.result.ld == 8));
  g.stride_a += 8;
  CHECK(cuda::in_parts(call_of(gemm_of({g})), 4).by_pointers());
  CHECK(cuda::in_parts(deep_call(32, 4, 4096, 8), 4).by_pointers());
  CHECK(cuda::in_parts(deep_call(32, 4, 4096, 8), 4).result.refs.size() == 32);
}

TEST_CASE("cuda parts: random products, their parts added up, against plain loops") {
  Random r(17);
  int strided = 0, apart = 0;
  for (int repeat = 0; repeat < (full_scale() ? 2'000 : 200); repeat++) {
    constexpr DType kinds[][2] = {{float32, float32}, {float64, float64}, {bfloat16, float32}};
    const DType in = kinds[repeat % 3][0], out = kinds[repeat % 3][1];
    const std::int64_t parts = 2 + pick(r, repeat % 7 == 0 ? 70 : 7), depth = (1 + pick(r, 3)) * parts;
    Gemm gemm = gemm_of({}, in, out);
    Gemm::Item g = dense(1 + pick(r, 6), 1 + pick(r, 6), depth, pick(r, 2) == 0, pick(r, 2) == 0);
    g.lda += pick(r, 2) * pick(r, 4);
    g.ldb += pick(r, 2) * pick(r, 3);
    g.ldc += pick(r, 2) * pick(r, 3);
    g.batch = 1 + pick(r, 2) * pick(r, 3);
    g.stride_a = pick(r, 4) == 0 ? 0 : (g.ta ? g.k : g.m) * g.lda + pick(r, 2);
    g.stride_b = pick(r, 2) == 0 ? 0 : (g.tb ? g.n : g.k) * g.ldb;
    g.stride_c = g.m * g.ldc;
    const std::int64_t items = 1 + pick(r, 2) * pick(r, 3);
    for (std::int64_t i = 0; i < items; i++) {
      g.a = {static_cast<std::uint32_t>(pick(r, 2)), static_cast<std::uint64_t>(pick(r, 9)) * itemsize(in)};
      g.b = {static_cast<std::uint32_t>(pick(r, 2)), static_cast<std::uint64_t>(pick(r, 9)) * itemsize(in)};
      g.c = {static_cast<std::uint32_t>(2 + i), static_cast<std::uint64_t>(pick(r, 9)) * itemsize(out)};
      gemm.items.push_back(g);
    }
    CAPTURE(repeat);
    Memory memory = random_memory(r, {in, in, out, out, out, out}, 6'000), want = memory;
    multiply_items(gemm, want);
    for (const ProductCall& c : cuda::split_products(gemm, 16, 0).calls) {
      (cuda::in_parts(c, parts).by_pointers() ? apart : strided)++;
      MadeParts made = made_parts(c, parts, memory);
      add_up(made, memory);
    }
    REQUIRE(memory == want);
  }
  CHECK((strided > 25 && apart > 25));
}

// Threads and warps of a block, as a device has them.
TEST_CASE("cuda parts: the warps of a sum add up as one after the other") {
  std::string text = std::string(emulator) + R"(
#include "kernels/parts.cuh"
using namespace shardarray;
#define SHARDARRAY_KERNEL(name, type)                                                                       \
  extern "C" void name(const std::byte* table, std::byte* scratch, const device::Bases bases) {             \
    device::sum_parts<type>({blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x}, table, scratch,   \
                            bases);                                                                         \
  }
SHARDARRAY_KERNEL(shardarray_sum_parts_f32, float)
SHARDARRAY_KERNEL(shardarray_sum_parts_f64, double)
)";
  for (const char* const t : {"f32", "f64"}) text += runner_of(std::string("shardarray_sum_parts_") + t);
  const CompiledText compiled(text);
  for (const DType t : {float32, float64})
    for (const std::int64_t parts : {3, 32, 75})
      for (const std::int64_t m : {7, 130}) {  // few elements, and many
        Gemm gemm;
        gemm.in = gemm.out = t;
        Gemm::Item g = dense(m, m == 130 ? 70 : 5, parts);
        g.b.base = 1;
        g.c.base = 2;
        gemm.items = {g};
        Random r(19);
        Memory memory;
        for (const std::int64_t n : {m * parts, parts * g.n, m * g.n}) {
          memory.emplace_back(static_cast<std::size_t>(n) * itemsize(t));
          for (std::int64_t i = 0; i < n; i++)  // sums that are rounded
            set_element(memory, t, {static_cast<std::uint32_t>(memory.size() - 1), 0}, i,
                        std::sin(static_cast<double>(pick(r, 10'000))));
        }
        MadeParts made = made_parts(call_of(gemm), parts, memory);
        Memory want = memory;
        add_up(made, want);
        CHECK(want != memory);
        const std::vector<std::uint64_t> table = table_of(made.sum);
        for (const unsigned order : thread_orders) {
          Memory got = memory;
          const device::Bases bases = few_bases_of(pointers(got));
          const char* const wrong = emulated(compiled, made.sum.kernel)(2, 1, 128, order, table.data(),
                                                                        made.scratch.data(), &bases);
          REQUIRE_MESSAGE((wrong == nullptr), wrong);
          CAPTURE(parts);
          CHECK(got == want);
        }
      }
}

// ---------------------------------------------------------------- programs
namespace {

const std::string settings =
    "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CODEGEN=off SHARDARRAY_FAKE_CUBLASLT=1 "
    "SHARDARRAY_FAKE_OWN_PRODUCTS=0 "
    "SHARDARRAY_FAKE_DEEP_PRODUCTS=256 SHARDARRAY_FAKE_SLOW_DEPTH=255 ";
const std::string no_disk = settings + "SHARDARRAY_CACHE_DIR= ";
const std::string one = "SHARDARRAY_CUDA_LOGICAL_DEVICES=1 ", eight = "SHARDARRAY_CUDA_LOGICAL_DEVICES=8 ";

std::uint64_t launches() { return fake_control().launches(); }

Array put(const Array& x, const P& spec) {
  return sa::devices("cuda").size() < 8 ? sa::device_put(x, sa::devices("cuda")[0])
                                        : platform_test::put(x, "cuda", spec);
}
Array deep_product(const Array& a, const Array& b) { return sa::matmul(sa::transpose(a), b); }
/// Largest error beside float64 on the CPU, as a part of the largest element.
double error_of(const Array& got, const Array& a, const Array& b, bool tb) {
  const sa::default_device cpu(sa::devices("cpu")[0]);
  const Array x = sa::device_put(a, sa::devices("cpu")[0]).astype(sa::float64),
              y = sa::device_put(b, sa::devices("cpu")[0]).astype(sa::float64);
  const Array want = sa::matmul(sa::transpose(x), tb ? sa::transpose(y) : y),
              off = sa::abs(sa::device_put(got, sa::devices("cpu")[0]).astype(sa::float64) - want);
  return sa::max(off).item<double>() / sa::max(sa::abs(want)).item<double>();
}

}  // namespace

// x' y, as in the gradients of weights; cut over devices along the depth each of them has a part.
TEST_CASE("cuda process: deep products" * doctest::skip()) {
  const bool cut = sa::devices("cuda").size() == 8;
  const std::int64_t k = cut ? 16384 : 10240;
  const std::uint64_t strided = fake_control().products(1), apart = fake_control().products(2);
  for (const sa::DType t : {sa::float32, sa::float64, sa::float16, sa::bfloat16})
    for (const bool tf32 : {false, true})
      for (const bool tb : {false, true}) {
        if (tf32 && t != sa::float32) continue;
        CAPTURE(name(t));
        const sa::DType drawn = t == sa::float64 ? sa::float64 : sa::float32;
        const Array a = sa::random::normal(sa::random::key(1), {k, 3}, drawn).astype(t);
        const Array b =
            sa::random::normal(sa::random::key(2), tb ? sa::Shape{5, k} : sa::Shape{k, 5}, drawn).astype(t);
        const Array x = put(a, P("x", sa::none)), y = put(b, tb ? P(sa::none, "x") : P("x", sa::none));
        const auto f = sa::jit([tf32, tb](const Array& p, const Array& q) {
          const sa::tf32 on(tf32);
          return sa::matmul(sa::transpose(p), tb ? sa::transpose(q) : q);
        });
        const double most = t == sa::float64   ? 1e-13
                            : tf32             ? 4e-3
                            : t == sa::float32 ? 4e-6
                            : t == sa::float16 ? 2e-3
                                               : 2e-2;
        const Array first = f(x, y);
        CHECK(error_of(first, a, b, tb) < most);
        const auto want = platform_test::bits(first);
        std::vector<Array> alive;
        for (int run = 0; run < 7; run++) {  // a graph from the third on, at other addresses
          alive.push_back(sa::block_until_ready(f(run % 3 == 0 ? put(a, P("x", sa::none)) : x, y)));
          if (run == 4) alive.clear();
          for (const Array& z : alive) CHECK(platform_test::bits(z) == want);
        }
      }
  std::printf("%d strided, %d by addresses, %d graphs\n",
              static_cast<int>(fake_control().products(1) - strided),
              static_cast<int>(fake_control().products(2) - apart),
              static_cast<int>(fake_control().graph_launches()));
}

// One in a program that is called, whose addresses are others each time, and one with a loop behind it.
TEST_CASE("cuda process: deep products among others" * doctest::skip()) {
  const std::int64_t k = sa::devices("cuda").size() == 8 ? 16384 : 10240;
  const Array a = sa::random::normal(sa::random::key(1), {k, 6}),
              w = sa::random::normal(sa::random::key(3), {6});
  const auto together = [](bool apart) {
    return sa::jit([apart](const Array& x, const Array& v) {
      const Array r = sa::fori_loop(
          0, 3,
          [&](const Array&, const Array& c) {
            Array g = sa::matmul(sa::transpose(x), x * c);
            if (apart) g = sa::flip(sa::flip(g, 0), 0);
            return sa::relu(g + v)[0] / (1 + sa::max(sa::abs(g)));
          },
          v);
      return sa::relu(sa::matmul(sa::transpose(x), x) + r);
    });
  };
  const Array x = put(a, P("x", sa::none)), v = put(w, P());
  const auto f = together(false), g = together(true);
  const auto want = platform_test::bits(g(x, v));
  for (int run = 0; run < 5; run++) CHECK(platform_test::bits(f(x, v)) == want);
  std::printf("%d by addresses\n", static_cast<int>(fake_control().products(2)));
}

TEST_CASE("cuda process: how a deep product is made" * doctest::skip()) {
  const Array a = put(numbers({10240, 6}), P("x", sa::none));
  const auto f = sa::jit([](const Array& x) { return sa::matmul(sa::transpose(x), x); });
  const std::uint64_t start = fake_control().products(0), held = fake_control().held();
  sa::block_until_ready(f(a));
  const std::uint64_t made = fake_control().products(0), strided = fake_control().products(1),
                      before = launches();
  const Array y = f(a);
  CHECK(error_of(y, a, a, false) < 5e-5);
  std::printf("%s tried, %d of %d of parts, %d kernels\nholds %d KB more\n", made > start + 1 ? "was" : "not",
              static_cast<int>(fake_control().products(1) - strided),
              static_cast<int>(fake_control().products(0) - made), static_cast<int>(launches() - before),
              static_cast<int>((fake_control().held() - held) >> 10));
}

TEST_CASE("cuda process: deep products without memory to try them" * doctest::skip()) {
  constexpr std::size_t all = std::size_t{1} << 30, step = std::size_t{1} << 19;
  int whole = 0, in_parts = 0;
  for (int k = 0; k < 64 && in_parts == 0; k++) {  // of another size each time, so that it is tried anew
    const Array a = sa::block_until_ready(sa::sin(numbers({10240, 2 + k % 8}))),
                b = sa::block_until_ready(sa::cos(numbers({10240, 2 + k / 8})));
    fake_control().set_capacity(0);
    CHECK(thrown([] { sa::block_until_ready(sa::zeros({1 << 26})); }) != "");  // gives back what nobody has
    fake_control().set_capacity(fake_control().held() + static_cast<std::size_t>(k) * step);
    const std::uint64_t strided = fake_control().products(1);
    Array y;
    bool made = false;
    try {
      y = sa::block_until_ready(deep_product(a, b));
      made = true;
    } catch (const sa::OutOfMemory&) {}
    fake_control().set_capacity(all);
    if (!made) continue;
    CHECK(error_of(y, a, b, false) < 5e-5);
    (fake_control().products(1) > strided ? in_parts : whole)++;
  }
  CHECK((whole > 0 && in_parts > 0));
}

TEST_CASE("cuda process: deep products whose calls fail" * doctest::skip()) {
  int named = 0, n = 0;
  for (int k = 0, reached = 1; reached != 0; k += full_scale() ? 1 + k / 40 : 1 + k / 2) {
    const Array a = sa::block_until_ready(sa::sin(numbers({10240, 2 + n % 7}))),  // tried anew
        b = sa::block_until_ready(sa::cos(numbers({10240, 2 + n / 7})));
    n++;
    const auto right = [&](const Array& y) { return error_of(y, a, b, false) < 5e-5; };
    const auto f = sa::jit(deep_product);
    const std::uint64_t calls = fake_control().calls();
    fake_control().fail_call(k, 1);
    try {
      for (int run = 0; run < 5; run++) {
        const bool as_wanted = right(f(a, b));
        CHECK_MESSAGE(as_wanted, k);
      }
    } catch (const sa::Error& e) {
      named++;
      CHECK_MESSAGE(std::string(e.what()).find(fake_control().last_call()) != std::string::npos, e.what());
    }
    reached = fake_control().calls() - calls > static_cast<std::uint64_t>(k) ? 1 : 0;
    fake_control().fail_call(-1, 0);
    const bool as_wanted = right(f(a, b));
    CHECK_MESSAGE(as_wanted, k);
  }
  CHECK(named > 3);
}

TEST_CASE(
    "cuda parts: deep products of every float, on one device, and by addresses where they are cut over "
    "eight") {
  const std::string name = "cuda process: deep products";
  const std::string single = text_on_fake(name, no_disk + one);
  CHECK_MESSAGE(single.find("\n0 strided") == single.npos, single);
  const std::string many = text_on_fake(name, no_disk + eight);
  CHECK_MESSAGE(many.find(" 0 by addresses") == many.npos, many);
  for (const std::string& text : {single, many}) CHECK_MESSAGE(text.find(" 0 graphs") == text.npos, text);
  if (!full_scale()) return;
  // A library that has nothing by addresses: a call each, in parts of its own.
  const std::string singles = text_on_fake(name, no_disk + eight + "SHARDARRAY_FAKE_CUBLASLT=singles");
  CHECK_MESSAGE(singles.find("\n0 strided") == singles.npos, singles);
  CHECK_MESSAGE(singles.find(" 0 by addresses") != singles.npos, singles);
}

TEST_CASE("cuda parts: deep products in programs that are called, and with loops behind them") {
  const std::string fast = "SHARDARRAY_FAKE_EPILOGUES=fast", slow = "SHARDARRAY_FAKE_EPILOGUES=slow";
  std::vector<std::string> all = {one + slow, eight + fast};
  if (full_scale()) all.insert(all.end(), {one, one + fast, eight, eight + slow});
  for (const std::string& devices : all)
    text_on_fake("cuda process: deep products among others",
                 no_disk + "SHARDARRAY_FAKE_GUESSED_PRODUCTS=1 " + devices);
}

TEST_CASE("cuda parts: the faster way is taken, and kept on the disk") {
  const TemporaryFolder parts, whole, workspace;
  const auto says = [](const TemporaryFolder& disk, const std::string& changed, const std::string& line) {
    const std::string text =
        text_on_fake("cuda process: how a deep product is made",
                     settings + one + "SHARDARRAY_CACHE_DIR=" + disk.path + " " + changed);
    CHECK_MESSAGE(text.find(line) != text.npos, text);
    return text.substr(text.find("holds "), 12);
  };
  const std::string slow_parts = "SHARDARRAY_FAKE_SLOW_DEPTH=-256 ";
  const std::string tried = says(parts, "", "was tried, 1 of 1 of parts, 1 kernels");
  says(whole, slow_parts, "was tried, 0 of 1 of parts, 0 kernels");
  says(workspace, "SHARDARRAY_FAKE_SLOW=1",
       "was tried, 1 of 1 of parts, 1 kernels");  // behind what the parts make
  // Other processes know, whatever is true by then.
  const std::string known = says(parts, slow_parts, "not tried, 1 of 1 of parts, 1 kernels");
  CHECK(tried == known);  // what it was tried on is given back
  says(whole, "", "not tried, 0 of 1 of parts, 0 kernels");
  // What is not deep.
  says(parts, "SHARDARRAY_FAKE_DEEP_PRODUCTS=1e6", "not tried, 0 of 1 of parts, 0 kernels");
}

TEST_CASE("cuda parts: without memory to try them, and whichever call fails" *
          doctest::skip(!shardarray::testing::full_scale())) {
  text_on_fake("cuda process: deep products without memory to try them", no_disk + one);
  text_on_fake("cuda process: deep products whose calls fail", no_disk + one);
}

}  // namespace cuda_parts_test
