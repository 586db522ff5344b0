// Products as calls of a library, done by plain loops: no library is needed.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "cuda/products.h"
#include "cuda_launches.h"

namespace shardarray::test {

inline double element(const Memory& m, DType t, const Ref& ref, std::int64_t at) {
  const std::byte* const p = m[ref.base].data() + ref.offset + static_cast<std::size_t>(at) * itemsize(t);
  REQUIRE(p + itemsize(t) <= m[ref.base].data() + m[ref.base].size());
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, itemsize(t));
  if (t == float64) return std::bit_cast<double>(bits);
  if (t == bfloat16) bits <<= 16;
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
inline void set_element(Memory& m, DType t, const Ref& ref, std::int64_t at, double x) {
  std::byte* const p = m[ref.base].data() + ref.offset + static_cast<std::size_t>(at) * itemsize(t);
  REQUIRE(p + itemsize(t) <= m[ref.base].data() + m[ref.base].size());
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  if (t != float64) bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (t == bfloat16) bits >>= 16;
  std::memcpy(p, &bits, itemsize(t));
}

/// What the step says: C = A B, row by row.
inline void multiply_items(const Gemm& gemm, Memory& m) {
  for (const Gemm::Item& g : gemm.items)
    for (std::int64_t b = 0; b < g.batch; b++)
      for (std::int64_t i = 0; i < g.m; i++)
        for (std::int64_t j = 0; j < g.n; j++) {
          double sum = 0;
          for (std::int64_t p = 0; p < g.k; p++)
            sum += element(m, gemm.in, g.a, b * g.stride_a + (g.ta ? p * g.lda + i : i * g.lda + p)) *
                   element(m, gemm.in, g.b, b * g.stride_b + (g.tb ? j * g.ldb + p : p * g.ldb + j));
          set_element(m, gemm.out, g.c, b * g.stride_c + i * g.ldc + j, sum);
        }
}

inline Ref place_of(const cuda::ProductMatrix& x, std::int64_t product, DType t) {
  if (x.refs.size() > 1) return x.refs[static_cast<std::size_t>(product)];
  return {x.refs[0].base, x.refs[0].offset + static_cast<std::uint64_t>(product * x.stride) * itemsize(t)};
}

/// What the library does with a call: result = first second, or what it makes of that, column by column. Nothing that it refuses.
inline void multiply_call(const cuda::ProductCall& c, Memory& m) {
  for (const cuda::ProductMatrix* x : {&c.first, &c.second, &c.result}) {
    REQUIRE((x->refs.size() == 1 || static_cast<std::int64_t>(x->refs.size()) == c.batch));
    REQUIRE(x->ld >= x->rows);
    REQUIRE((x->alignment <= 64 && std::has_single_bit(x->alignment)));
    for (std::int64_t b = 0; b < c.batch; b++)
      REQUIRE(place_of(*x, b, x == &c.result ? c.out : c.in).offset % x->alignment == 0);
  }
  const auto at = [](const cuda::ProductMatrix& x, bool transposed, std::int64_t row, std::int64_t column) {
    if (transposed) std::swap(row, column);
    REQUIRE((row < x.rows && column < x.columns));
    return row + column * x.ld;
  };
  for (std::int64_t b = 0; b < c.batch; b++)
    for (std::int64_t i = 0; i < c.result.rows; i++)
      for (std::int64_t j = 0; j < c.result.columns; j++) {
        double sum = 0;
        for (std::int64_t p = 0; p < c.depth(); p++)
          sum += element(m, c.in, place_of(c.first, b, c.in), at(c.first, c.transpose_first, i, p)) *
                 element(m, c.in, place_of(c.second, b, c.in), at(c.second, c.transpose_second, p, j));
        if (c.has_bias()) sum += element(m, c.out, place_of(c.bias, b, c.out), i);
        if (c.relu) sum = std::max(sum, 0.0);
        set_element(m, c.out, place_of(c.result, b, c.out), i + j * c.result.ld, sum);
      }
}

/// Small whole numbers, whose sums are exact in any order.
inline Memory random_memory(Random& r, const std::vector<DType>& types, std::int64_t elements) {
  Memory m;
  for (const DType t : types) {
    m.emplace_back(static_cast<std::size_t>(elements) * itemsize(t));
    const auto base = static_cast<std::uint32_t>(m.size() - 1);
    for (std::int64_t i = 0; i < elements; i++)
      set_element(m, t, {base, 0}, i, static_cast<double>(pick(r, 7) - 3));
  }
  return m;
}

inline Gemm::Item dense(std::int64_t m, std::int64_t n, std::int64_t k, bool ta = false, bool tb = false) {
  Gemm::Item g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.ta = ta;
  g.tb = tb;
  g.lda = ta ? m : k;
  g.ldb = tb ? k : n;
  g.ldc = n;
  g.stride_a = m * k;
  g.stride_b = k * n;
  g.stride_c = m * n;
  return g;
}

}  // namespace shardarray::test
