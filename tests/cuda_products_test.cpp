// Product steps as calls of a library: what is one call, and that the calls multiply what the step says. No library is needed: a
// call's meaning is written out here, and compared with plain loops over the step's items.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cuda/libraries.h"
#include "cuda_products.h"
#include "scale.h"

namespace cuda_products_test {

using namespace shardarray;
using namespace shardarray::test;
using cuda::ProductCall;
using cuda::ProductSplit;

namespace {

/// The calls give what the items say, with nothing else written, in one call each or together.
void check_calls(const Gemm& gemm, const ProductSplit& split, const Memory& memory) {
  Memory want = memory, got = memory, single = memory;
  multiply_items(gemm, want);
  for (const ProductCall& c : split.calls) {
    multiply_call(c, got);
    if (!c.by_pointers()) multiply_call(c, single);
    else
      for (const ProductCall& s : cuda::single_products(c)) {
        CHECK((!s.by_pointers() && s.batch == 1));
        multiply_call(s, single);
      }
  }
  Gemm rest = gemm;
  rest.items.clear();
  for (const std::size_t i : split.own) rest.items.push_back(gemm.items[i]);
  for (Memory* m : {&got, &single}) {
    multiply_items(rest, *m);
    REQUIRE(*m == want);
  }
}

constexpr std::uint32_t a_base = 0, b_base = 1, c_base = 2;
/// With matrices at these elements of their blocks.
Gemm::Item placed(Gemm::Item g, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  g.a = {a_base, a * 4};
  g.b = {b_base, b * 4};
  g.c = {c_base, c * 4};
  return g;
}
ProductSplit split_of(const std::vector<Gemm::Item>& items, Random& r, double own = 0) {
  Gemm gemm;
  gemm.items = items;
  ProductSplit split = cuda::split_products(gemm, 64, own);
  check_calls(gemm, split, random_memory(r, std::vector<DType>(8, float32), 600));
  return split;
}

}  // namespace

TEST_CASE("cuda products: rows that follow each other are one product") {
  Random r(3);
  const Gemm::Item four = dense(4, 5, 3), two = dense(2, 5, 3), one = dense(1, 5, 3);
  ProductSplit s = split_of({placed(four, 0, 7, 0), placed(two, 12, 7, 20), placed(one, 18, 7, 30)}, r);
  REQUIRE(s.calls.size() == 1);
  CHECK((s.calls[0].batch == 1 && s.calls[0].result.rows == 5 && s.calls[0].result.columns == 7));
  CHECK((s.calls[0].first.alignment == 4 && s.calls[0].second.alignment == 64));
  CHECK(s.called == std::vector<std::size_t>{0, 1, 2});
  CHECK(split_of({placed(two, 12, 7, 20), placed(one, 18, 7, 30), placed(four, 0, 7, 0)}, r).calls.size() ==
        1);
  // A that stands column by column is a block of rows of a larger one.
  Gemm::Item half = dense(4, 5, 3, true);
  half.lda = 8;
  s = split_of({placed(half, 0, 0, 0), placed(half, 4, 0, 20)}, r);
  REQUIRE(s.calls.size() == 1);
  CHECK((s.calls[0].result.columns == 8 && s.calls[0].transpose_second));
  // The batch of one item, too.
  Gemm::Item batch = placed(four, 0, 0, 0);
  batch.batch = 3;
  batch.stride_b = 0;
  s = split_of({batch}, r);
  REQUIRE(s.calls.size() == 1);
  CHECK((s.calls[0].batch == 1 && s.calls[0].result.columns == 12));
  Gemm::Item rows = dense(1, 5, 3);
  rows.batch = 4;
  rows.stride_a = 9;
  rows.stride_b = 0;
  rows.stride_c = 6;
  s = split_of({placed(rows, 0, 0, 0)}, r);
  REQUIRE(s.calls.size() == 1);
  CHECK((s.calls[0].batch == 1 && s.calls[0].second.ld == 9 && s.calls[0].result.ld == 6));
}

TEST_CASE("cuda products: those the same distance apart are one call, a shared operand at distance 0") {
  Random r(5);
  const Gemm::Item g = dense(4, 5, 3, false, true);
  ProductSplit s = split_of({placed(g, 0, 0, 0), placed(g, 20, 0, 30), placed(g, 40, 0, 60)}, r);
  REQUIRE(s.calls.size() == 1);
  const ProductCall& c = s.calls[0];
  CHECK((c.batch == 3 && !c.by_pointers() && c.transpose_first));
  CHECK((c.first.stride == 0 && c.second.stride == 20 && c.result.stride == 30));
  // Two batches in a row, of which one goes on where the other ends.
  Gemm::Item two = g;
  two.batch = 2;
  s = split_of({placed(two, 0, 0, 0), placed(g, 24, 30, 40)}, r);
  REQUIRE(s.calls.size() == 1);
  CHECK((s.calls[0].batch == 3 && s.calls[0].first.stride == 15));
  // Shared rows of A, which overlap.
  s = split_of({placed(g, 0, 0, 0), placed(g, 3, 15, 20)}, r);
  REQUIRE(s.calls.size() == 1);
  CHECK(s.calls[0].second.stride == 3);
}

TEST_CASE("cuda products: equal ones anywhere are one call by their addresses, others a call each") {
  Random r(7);
  const Gemm::Item g = dense(4, 5, 3);
  Gemm::Item far = placed(g, 1, 0, 0);
  far.c.base = 3;
  ProductSplit s = split_of({placed(g, 0, 0, 0), placed(g, 13, 0, 30), placed(g, 40, 0, 100), far}, r);
  REQUIRE(s.calls.size() == 1);
  CHECK((s.calls[0].by_pointers() && s.calls[0].batch == 4 && s.calls[0].second.alignment == 4));
  s = split_of(
      {placed(g, 0, 0, 0), placed(dense(4, 6, 3), 0, 0, 100), placed(dense(4, 5, 3, true), 0, 0, 200)}, r);
  CHECK(s.calls.size() == 3);
  for (const ProductCall& c : s.calls) CHECK((c.batch == 1 && !c.by_pointers()));
  // Very many are a call a batch.
  Gemm many;
  for (std::uint32_t i = 0; i < 2; i++) {
    Gemm::Item x = g;
    x.batch = 3000;
    x.a.base = x.c.base = i;
    many.items.push_back(x);
  }
  CHECK(cuda::split_products(many, 64, 0).calls.size() == 2);
  many.items[0].batch = many.items[1].batch = 1000;
  CHECK(cuda::split_products(many, 64, 0).calls.size() == 1);
}

TEST_CASE("cuda products: what the own kernel keeps") {
  Random r(11);
  const Gemm::Item small = placed(dense(4, 5, 3), 0, 0, 0), large = placed(dense(5, 5, 3), 20, 30, 40);
  ProductSplit s = split_of({small, large}, r, 60);
  CHECK((s.own == std::vector<std::size_t>{0} && s.called == std::vector<std::size_t>{1}));
  // Of nothing, to nothing, with rows that overlap.
  Gemm::Item apart = large;
  apart.lda = 2;
  s = split_of({placed(dense(4, 5, 0), 0, 0, 0), placed(dense(0, 5, 3), 0, 0, 100), apart}, r);
  CHECK((s.own == std::vector<std::size_t>{0, 2} && s.called.empty()));
  Gemm gemm;
  gemm.items = {large};
  for (const DType t : {bool_, int8, int32, uint64, float16, bfloat16, float32, float64, complex64}) {
    gemm.in = gemm.out = t;
    CAPTURE(name(t));
    const bool half = t == float16 || t == bfloat16;  // whose results may be joined with what rounds them
    CHECK(cuda::split_products(gemm, 64, 0).calls.size() == (half || t == float32 || t == float64 ? 1 : 0));
    gemm.out = float32;
    CHECK(cuda::split_products(gemm, 64, 0).calls.size() == (half || t == float32 ? 1 : 0));
  }
  gemm.in = gemm.out = float32;
  gemm.fixed_order = true;
  CHECK(cuda::split_products(gemm, 64, 0).own.size() == 1);
  CHECK((cuda::product_limits().own == 262144 && cuda::product_limits().own_depth == 1024));
  // However few elements there are, each is one thread's: deep ones are the library's.
  const auto own = [&](DType t, std::int64_t k, bool fixed_order) {
    gemm.in = gemm.out = t;
    gemm.fixed_order = fixed_order;
    gemm.items = {dense(1, 1, k)};
    return cuda::split_products(gemm, 64, cuda::product_limits().own).own.size() == 1;
  };
  CHECK((own(float32, 1024, false) && !own(float32, 1025, false) && !own(float64, 200'000, false)));
  CHECK((own(float32, 200'000, true) && own(int32, 200'000, false)));
}

TEST_CASE("cuda products: random steps, every one against plain loops") {
  Random r(13);
  int rows = 0, batches = 0, addresses = 0, singles = 0;
  for (int repeat = 0; repeat < (testing::full_scale() ? 6'000 : 600); repeat++) {
    Gemm gemm;
    constexpr DType kinds[][2] = {{float32, float32}, {float64, float64}, {bfloat16, float32}};
    gemm.in = kinds[repeat % 3][0];
    gemm.out = kinds[repeat % 3][1];
    const std::size_t in = itemsize(gemm.in), out = itemsize(gemm.out);
    // Bases 0 and 1 hold operands, 2 and 3 results.
    std::uint64_t next[4] = {};
    Gemm::Item g;
    const auto place = [&](Ref& ref, std::uint32_t base, std::int64_t reach, std::size_t size, bool follows) {
      if (!follows) ref.base = base + static_cast<std::uint32_t>(pick(r, 2));
      std::uint64_t& free = next[ref.base];
      if (!follows) free += static_cast<std::uint64_t>(pick(r, 3));
      ref.offset = free * size;
      free += static_cast<std::uint64_t>(reach);
    };
    for (std::int64_t items = 1 + pick(r, 5), i = 0; i < items; i++) {
      const bool like = i > 0 && pick(r, 5) != 0;
      if (!like) {
        g = dense(1 + pick(r, 4), 1 + pick(r, 4), 1 + pick(r, 4), pick(r, 2) == 0, pick(r, 2) == 0);
        g.lda += pick(r, 2) * pick(r, 4);
        g.ldb += pick(r, 2) * pick(r, 3);
        g.ldc += pick(r, 2) * pick(r, 3);
        g.batch = 1 + pick(r, 2) * pick(r, 3);
        g.stride_a = pick(r, 4) == 0 ? 0 : (g.ta ? g.k : g.m) * g.lda;
        g.stride_b = pick(r, 2) == 0 ? 0 : (g.tb ? g.n : g.k) * g.ldb;
        g.stride_c = g.m * g.ldc;
      } else if (g.batch == 1 && !g.ta && pick(r, 6) == 0) {
        g.m = 1 + pick(r, 4);
      }
      if (!like || pick(r, 3) == 0) place(g.b, 0, g.batch * (g.tb ? g.n : g.k) * g.ldb, in, false);
      const bool follows = like && pick(r, 5) != 0;
      place(g.a, 0, g.batch * (g.ta ? g.k : g.m) * g.lda, in, follows);
      place(g.c, 2, g.batch * g.m * g.ldc, out, follows);
      gemm.items.push_back(g);
    }
    const Memory memory = random_memory(r, {gemm.in, gemm.in, gemm.out, gemm.out}, 800);
    const ProductSplit split = cuda::split_products(gemm, 16, static_cast<double>(pick(r, 3) * 8));
    CAPTURE(repeat);
    check_calls(gemm, split, memory);
    for (const ProductCall& c : split.calls)
      (c.by_pointers() ? addresses : c.batch > 1 ? batches : singles)++;
    for (const ProductCall& c : split.calls) rows += c.result.columns > 4;
  }
  // Every form came up often.
  for (const int n : {rows, batches, addresses, singles}) CHECK(n > 30);
}

}  // namespace cuda_products_test
