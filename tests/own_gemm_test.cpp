// The library's own matrix products, in every build that runs here, compared with chains of multiply-adds.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include "cpu/products/gemm_tables.h"
#include "cpu_helpers.h"
#include "own_gemm_tables.h"
#include "runtime/scalar.h"
#include "scale.h"

namespace own_gemm_test {

using namespace shardarray;
using namespace shardarray::cpu_test;

namespace {

std::int64_t one_of(std::mt19937& rng, std::initializer_list<std::int64_t> sizes) {
  return sizes.begin()[rng() % sizes.size()];
}

}  // namespace

TEST_CASE("gemm: every build of the own kernel gives the same chains of multiply-adds") {
  std::mt19937 rng(11);
  for (int round = 0; round < (testing::full_scale() ? 400 : 60); round++) {
    const std::int64_t m = one_of(rng, {1, 2, 3, 7, 8, 9, 31, 71, 72, 73, 130}),
                       n = one_of(rng, {1, 5, 15, 16, 17, 33, 47, 48, 49, 96, 100, 700}),
                       k = one_of(rng, {1, 2, 15, 16, 17, 64, 255, 257, 513, 700, 1000});
    const bool ta = rng() % 2, tb = rng() % 2, one_chain = rng() % 2;
    const auto in_all = [&]<class T>(T) {
      INFO("round ", round, ": ", m, " x ", n, " x ", k, ", transposed ", ta, tb, ", one chain ", one_chain);
      // Else chains of equal length, 384 floats or 256 doubles at most, are added.
      constexpr std::int64_t most = sizeof(T) == 4 ? 384 : 256;
      const std::int64_t parts = (k + most - 1) / most, length = one_chain ? k : (k + parts - 1) / parts;
      const auto a = random_values<T>(rng, m * k, false), b = random_values<T>(rng, n * k, false);
      std::vector<T> first;
      for (const OwnGemmTable* table : own_gemm_tables()) {
        std::vector<T> c(static_cast<std::size_t>(m * (n + 3)), T(7));
        const OwnGemm<T> g = {m,        n,          k,          a.data(), ta ? 1 : k, ta ? m : 1,
                              b.data(), tb ? 1 : n, tb ? k : 1, c.data(), n + 3,      one_chain};
        run_product(*table, g);
        if (first.empty()) first = c;
        REQUIRE(std::memcmp(c.data(), first.data(), c.size() * sizeof(T)) == 0);
        for (std::int64_t i = 0; i < m; i++)
          for (std::int64_t j = n; j < n + 3; j++)
            REQUIRE(c[static_cast<std::size_t>(i * (n + 3) + j)] == T(7));
        for (int sample = 0; sample < 40; sample++) {
          const auto i = sample == 0 ? m - 1 : static_cast<std::int64_t>(rng()) % m,
                     j = sample == 0 ? n - 1 : static_cast<std::int64_t>(rng()) % n;
          T sum = 0;
          for (std::int64_t from = 0; from < k; from += length) {
            T part = 0;
            for (std::int64_t p = from; p < std::min(k, from + length); p++)
              part = std::fma(a[i * g.a_row + p * g.a_col], b[p * g.b_row + j * g.b_col], part);
            sum = from == 0 ? part : part + sum;
          }
          REQUIRE(c[static_cast<std::size_t>(i * (n + 3) + j)] == sum);
        }
      }
    };
    in_all(float{});
    in_all(double{});
  }
}

TEST_CASE(
    "gemm: each part of C is whole when it is said to be, in C or apart, and nobody looks at it again") {
  std::mt19937 rng(12);
  int apart = 0;
  for (int round = 0; round < (testing::full_scale() ? 400 : 60); round++) {
    const std::int64_t m = one_of(rng, {1, 5, 8, 9, 71, 72, 73, 130, 300}),
                       n = one_of(rng, {1, 15, 16, 33, 48, 49, 100, 700}),
                       k = one_of(rng,
                                  {1, 16, 255, 400, 1000, m * n < 4000 ? scalar::longest_chain + 40 : 64});
    const bool ta = rng() % 2, tb = rng() % 2, one_chain = rng() % 2, keep = rng() % 2;
    const auto in_all = [&]<class T>(T) {
      INFO("round ", round, ": ", m, " x ", n, " x ", k, ", transposed ", ta, tb, ", one chain ", one_chain,
           ", kept ", keep);
      constexpr T nothing = std::numeric_limits<T>::quiet_NaN();
      const auto a = random_values<T>(rng, m * k, false), b = random_values<T>(rng, n * k, false);
      struct Taken {
        std::vector<T> c, taken;
        std::int64_t row;
        int twice = 0, apart = 0;
      };
      for (const OwnGemmTable* table : own_gemm_tables()) {
        Taken t{std::vector<T>(static_cast<std::size_t>(m * (n + 3))), {}, n + 3};
        OwnGemm<T> g = {m,        n,          k,          a.data(),   ta ? 1 : k, ta ? m : 1,
                        b.data(), tb ? 1 : n, tb ? k : 1, t.c.data(), n + 3,      one_chain};
        run_product(*table, g);
        const std::vector<T> want = t.c;
        t.taken.assign(want.size(), nothing);
        t.c.assign(want.size(), nothing);
        // What is taken is overwritten at once, as by a loop that works in place.
        g.part.take = [](const void* object, std::int64_t i, std::int64_t rows, std::int64_t j,
                         std::int64_t columns, const PartOfC::Place& place) {
          Taken& to = *static_cast<Taken*>(const_cast<void*>(object));
          to.apart += place.at != nullptr;
          for (std::int64_t r = 0; r < rows; r++)
            for (std::int64_t q = 0; q < columns; q++) {
              const auto at = static_cast<std::size_t>((i + r) * to.row + j + q);
              to.twice += !std::isnan(to.taken[at]);
              to.taken[at] =
                  place.at != nullptr ? static_cast<const T*>(place.at)[r * place.row + q] : to.c[at];
              to.c[at] = nothing;
            }
        };
        g.part.object = &t;
        g.part.keep = keep;
        run_product(*table, g);
        CHECK(t.twice == 0);
        if (keep) CHECK(t.apart == 0);
        apart += t.apart;
        for (std::int64_t i = 0; i < m; i++)
          REQUIRE(std::memcmp(&t.taken[static_cast<std::size_t>(i * t.row)],
                              &want[static_cast<std::size_t>(i * t.row)],
                              static_cast<std::size_t>(n) * sizeof(T)) == 0);
      }
    };
    in_all(float{});
    in_all(double{});
  }
  CHECK(apart > 0);
}

TEST_CASE("gemm: every build of the product of what lies anywhere gives one chain of multiply-adds") {
  std::mt19937 rng(15);
  std::vector<const TableGemmTable*> builds = {&table_gemm_baseline};
#if defined(__x86_64__)
  if (has_v3()) builds.push_back(&table_gemm_v3);
  if (has_v4()) builds.push_back(&table_gemm_v4);
#endif
  for (int round = 0; round < (testing::full_scale() ? 400 : 60); round++) {
    const std::int64_t m = one_of(rng, {1, 2, 3, 6, 7, 8, 9, 13, 17}),
                       n = one_of(rng, {1, 7, 8, 15, 16, 31, 33, 48, 64, 65, 81, 100}),
                       k = one_of(rng, {1, 2, 17, 64, 255, 257, 520});
    const auto in_all = [&]<class T>(T, auto function) {
      INFO("round ", round, ": ", m, " x ", n, " x ", k);
      const auto a = random_values<T>(rng, 2 * (m + k), false),
                 b = random_values<T>(rng, n + 3 * k + 10, false);
      const std::int64_t runs = 1 + static_cast<std::int64_t>(rng() % 6), apart = m * (n + 2);
      std::vector<std::int64_t> a_row, a_step, b_step, c_row, b_run, c_run;
      for (std::int64_t r = 0; r < runs; r++)
        b_run.push_back(5 * (r % 3)), c_run.push_back((runs - 1 - r) * apart);
      for (std::int64_t i = 0; i < m; i++)
        a_row.push_back(2 * (m - 1 - i)), c_row.push_back((m - 1 - i) * (n + 2));
      for (std::int64_t p = 0; p < k; p++) a_step.push_back(2 * (p % 5)), b_step.push_back(3 * (k - 1 - p));
      for (const TableGemmTable* build : builds) {
        std::vector<T> c(static_cast<std::size_t>(runs * apart), T(7)), want = c;
        (build->*function)({m, n, k, a.data(), a_row.data(), a_step.data(), b.data(), b_step.data(), c.data(),
                            c_row.data(), runs, b_run.data(), c_run.data()});
        for (std::int64_t r = 0; r < runs; r++)
          for (std::int64_t i = 0; i < m; i++)
            for (std::int64_t j = 0; j < n; j++) {
              T sum = 0;
              for (std::int64_t p = 0; p < k; p++)
                sum = std::fma(a[a_row[i] + a_step[p]], b[b_run[r] + b_step[p] + j], sum);
              want[c_run[r] + c_row[i] + j] = sum;
            }
        REQUIRE(std::memcmp(c.data(), want.data(), c.size() * sizeof(T)) == 0);
      }
    };
    in_all(float{}, &TableGemmTable::f32);
    in_all(double{}, &TableGemmTable::f64);
  }
}

}  // namespace own_gemm_test
