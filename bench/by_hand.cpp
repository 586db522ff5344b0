// Sorts, searches, rows, factorisations, Fourier transforms, attention and a long recurrence, compared with the same by hand. The
// standard library's sorts, sums into rows, the recurrence and LAPACK's functions use one thread, as a first version would; copies and
// the BLAS's products use all workers. The copy is only the memory traffic that a Fourier transform cannot avoid.
#include <shardarray/shardarray.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "bench.h"
#include "cpu/library/lapack.h"
#include "cpu/products/blas.h"
#include "machine.h"
#include "workers.h"

namespace sa = shardarray;

namespace {

using Floats = std::vector<float>;

sa::Array normal(std::int64_t seed, const sa::Shape& shape) {
  return sa::random::normal(sa::random::key(seed), shape);
}

/// Adds f(inputs...), compared with the case `floor`.
template <class F, class... A>
void add(bench::Suite& suite, const std::string& name, const std::string& floor, const F& f,
         const A&... inputs) {
  const auto g = sa::jit(f);
  suite.add(name, [=] { g(inputs...).block_until_ready(); }, {.floor = floor});
}

void add_sorts(bench::Suite& suite) {
  constexpr std::int64_t n = 1'000'000;
  const sa::Array x = normal(1, {n});
  const auto values = std::make_shared<const Floats>(x.to_vector<float>());
  suite.add("std::sort of 1e6", [=] {
    Floats v = *values;
    std::sort(v.begin(), v.end());
    bench::keep(v);
  });
  add(
      suite, "sort of 1e6", "std::sort of 1e6", [](const sa::Array& a) { return sa::sort(a); }, x);
  suite.add("std::stable_sort of 1e6 places", [=] {
    std::vector<std::int32_t> at(values->size());
    std::iota(at.begin(), at.end(), 0);
    const float* const v = values->data();
    std::stable_sort(at.begin(), at.end(), [v](std::int32_t a, std::int32_t b) { return v[a] < v[b]; });
    bench::keep(at);
  });
  add(
      suite, "argsort of 1e6", "std::stable_sort of 1e6 places",
      [](const sa::Array& a) { return sa::argsort(a); }, x);
  suite.add("std::partial_sort, 64 of 1e6", [=] {
    Floats largest(64);
    std::partial_sort_copy(values->begin(), values->end(), largest.begin(), largest.end(), std::greater<>());
    bench::keep(largest);
  });
  add(
      suite, "64 largest of 1e6", "std::partial_sort, 64 of 1e6",
      [](const sa::Array& a) { return sa::top_k(a, 64).first; }, x);
}

void add_sums(bench::Suite& suite) {
  constexpr std::int64_t n = 10'000'000;
  const sa::Array x = normal(1, {n});
  auto from = std::make_shared<Floats>(x.to_vector<float>()), to = std::make_shared<Floats>(from->size());
  suite.add("copy of 1e7", [=] {
    bench::on_all_workers(
        from->size(), [&](std::size_t at, std::size_t k) { std::memcpy(&(*to)[at], &(*from)[at], 4 * k); });
    bench::keep(*to);
  });
  add(
      suite, "cumsum of 1e7", "copy of 1e7", [](const sa::Array& a) { return sa::cumsum(a); }, x);
}

void add_rows(bench::Suite& suite) {
  constexpr std::int64_t n = 100'000;
  constexpr std::size_t width = 64;
  const sa::Array x = normal(1, {n, width}),
                  places = (sa::random::uniform(sa::random::key(2), {n}) * n).astype(sa::int32);
  auto from = std::make_shared<Floats>(x.to_vector<float>()), to = std::make_shared<Floats>(from->size());
  const auto at = std::make_shared<const std::vector<std::int32_t>>(places.to_vector<std::int32_t>());
  suite.add("rows copied", [=] {
    bench::on_all_workers(at->size(), [&](std::size_t first, std::size_t k) {
      for (std::size_t i = first; i < first + k; i++)
        std::memcpy(&(*to)[i * width], &(*from)[static_cast<std::size_t>((*at)[i]) * width], 4 * width);
    });
    bench::keep(*to);
  });
  add(
      suite, "take of 1e5 rows of 64", "rows copied",
      [](const sa::Array& a, const sa::Array& i) { return sa::take(a, i, 0); }, x, places);
  suite.add("rows added", [=] {
    std::fill(to->begin(), to->end(), 0.f);
    for (std::size_t i = 0; i < at->size(); i++)
      for (std::size_t j = 0; j < width; j++)
        (*to)[static_cast<std::size_t>((*at)[i]) * width + j] += (*from)[i * width + j];
    bench::keep(*to);
  });
  add(
      suite, "1e5 rows of 64 added at places", "rows added",
      [](const sa::Array& a, const sa::Array& i) { return sa::zeros_like(a).at(i).add(a); }, x, places);
}

void add_loop(bench::Suite& suite) {
  constexpr std::int64_t n = 10'000;
  constexpr std::size_t width = 32;
  const sa::Array table = normal(1, {n, width}), x = normal(2, {n, width});
  const auto from = std::make_shared<const Floats>(x.to_vector<float>()),
             first = std::make_shared<const Floats>(table.to_vector<float>());
  suite.add("10,000 rows of 32 by hand", [=] {
    Floats t = *first;
    for (std::size_t i = 0; i < t.size(); i++) t[i] += (*from)[i] * 0.5f;
    bench::keep(t);
  });
  add(
      suite, "10,000 rows of 32 added to in a loop", "10,000 rows of 32 by hand",
      [](const sa::Array& t, const sa::Array& rows) {
        const auto step = [&](const sa::Array& i, const sa::Array& c) { return c.at(i).add(rows[i] * 0.5); };
        return sa::fori_loop(0, n, step, t);
      },
      table, x);
}

// Compares with LAPACK's functions, on copies of one matrix.
void add_factorisations(bench::Suite& suite) {
  constexpr int n = 1024, sides = 64;
  const sa::Array x = normal(1, {n, n}), b = normal(2, {n, sides});
  const sa::Array positive = x + sa::transpose(x) + 4 * std::sqrt(static_cast<double>(n)) * sa::eye(n),
                  regular = x + 2 * std::sqrt(static_cast<double>(n)) * sa::eye(n);
  const sa::LapackOf<float>& lapack = sa::lapack("bench").f32;
  const auto symmetric = std::make_shared<const Floats>(positive.to_vector<float>()),
             matrix = std::make_shared<const Floats>(regular.to_vector<float>()),
             right = std::make_shared<const Floats>(b.to_vector<float>());
  suite.add("potrf of 1024", [=] {
    Floats a = *symmetric;
    int info = 0;
    lapack.potrf("L", &n, a.data(), &n, &info, 1);
    bench::keep(a);
  });
  add(
      suite, "cholesky of 1024", "potrf of 1024", [](const sa::Array& a) { return sa::linalg::cholesky(a); },
      positive);
  suite.add("getrf of 1024, trsm of 64 sides", [=] {
    Floats a = *matrix, y = *right;
    std::vector<int> pivots(n);
    int info = 0;
    const float one = 1;
    lapack.getrf(&n, &n, a.data(), &n, pivots.data(), &info);
    lapack.trsm("L", "L", "N", "U", &n, &sides, &one, a.data(), &n, y.data(), &n, 1, 1, 1, 1);
    lapack.trsm("L", "U", "N", "N", &n, &sides, &one, a.data(), &n, y.data(), &n, 1, 1, 1, 1);
    bench::keep(y);
  });
  add(
      suite, "solve 1024, 64 sides", "getrf of 1024, trsm of 64 sides",
      [](const sa::Array& a, const sa::Array& c) { return sa::linalg::solve(a, c); }, regular, b);
}

void add_fourier(bench::Suite& suite) {
  for (const sa::Shape& shape : {sa::Shape{1'000'000}, sa::Shape{1000, 1000}, sa::Shape{10'000, 64}}) {
    const sa::Array x = normal(1, shape);
    auto from = std::make_shared<Floats>(x.to_vector<float>()), to = std::make_shared<Floats>(from->size());
    const std::string size = sa::to_string(shape), floor = "copy there and back " + size;
    suite.add(floor, [=] {
      for (const auto& way : {std::pair(from, to), std::pair(to, from)})
        bench::on_all_workers(from->size(), [&](std::size_t at, std::size_t k) {
          std::memcpy(&(*way.second)[at], &(*way.first)[at], 4 * k);
        });
      bench::keep(*from);
    });
    add(
        suite, "rfft and back of " + size, floor,
        [](const sa::Array& a) { return sa::fft::irfft(sa::fft::rfft(a)); }, x);
  }
}

// The floor: only the two products of attention, per head, with the heads on all workers.
void add_attention(bench::Suite& suite, int n) {
  const sa::Blas* const blas = sa::blas();
  constexpr int heads = 8, features = 64;
  const std::string floor = fmt::format("products of attention, {} x {}", n, features);
  if (blas != nullptr) {
    auto x =
        std::make_shared<Floats>(bench::random_floats(static_cast<std::size_t>(3 * heads * n * features)));
    auto scores = std::make_shared<std::vector<Floats>>(
        heads, Floats(static_cast<std::size_t>(n) * static_cast<std::size_t>(n)));
    auto out = std::make_shared<std::vector<Floats>>(heads, Floats(static_cast<std::size_t>(n * features)));
    suite.add(floor, [=] {
      bench::on_all_workers(heads, [&](int h) {
        using B = sa::Blas;
        const auto part = static_cast<std::size_t>(n * features),
                   first = 3 * part * static_cast<std::size_t>(h);
        const float *const q = x->data() + first, *const k = q + part, *const v = k + part;
        float *const s = (*scores)[static_cast<std::size_t>(h)].data(),
                     *const o = (*out)[static_cast<std::size_t>(h)].data();
        blas->sgemm(B::row_major, B::no_trans, B::trans, n, n, features, 1, q, features, k, features, 0, s,
                    n);
        blas->sgemm(B::row_major, B::no_trans, B::no_trans, n, features, n, 1, s, n, v, features, 0, o,
                    features);
      });
      bench::keep(*out);
    });
  }
  const sa::Shape shape{1, n, heads, features};
  add(
      suite, fmt::format("attention of 8 heads of {} x {}", n, features), floor,
      [](const sa::Array& q, const sa::Array& k, const sa::Array& v) {
        return sa::nn::dot_product_attention(q, k, v);
      },
      normal(1, shape), normal(2, shape), normal(3, shape));
}

// A GRU with 32 hidden and 32 input features, step by step.
void add_recurrence(bench::Suite& suite) {
  constexpr std::size_t steps = 10'000, n = 32;
  const sa::Array x = normal(1, {steps, n}), w = normal(2, {n, 3 * n}) / std::sqrt(32.0),
                  u = normal(3, {n, 3 * n}) / std::sqrt(32.0);
  const auto f = [](const sa::Array& in, const sa::Array& of_input, const sa::Array& of_memory) {
    const auto step = [&](const sa::Array& h, const sa::Array& row) {
      const auto given = sa::split(row, 3), past = sa::split(sa::matmul(h, of_memory), 3);
      const sa::Array reset = sa::sigmoid(given[0] + past[0]), update = sa::sigmoid(given[1] + past[1]);
      return std::pair(update * h + (1 - update) * sa::tanh(given[2] + reset * past[2]), sa::none);
    };
    return sa::scan(step, sa::zeros({n}), sa::matmul(in, of_input)).first;
  };
  const auto in = std::make_shared<const Floats>(x.to_vector<float>()),
             of_input = std::make_shared<const Floats>(w.to_vector<float>()),
             of_memory = std::make_shared<const Floats>(u.to_vector<float>());
  const auto by_hand = [=] {
    Floats h(n, 0.f);
    for (std::size_t t = 0; t < steps; t++) {
      float given[3 * n] = {}, past[3 * n] = {};
      for (std::size_t k = 0; k < n; k++)
        for (std::size_t j = 0; j < 3 * n; j++) {
          given[j] += (*in)[t * n + k] * (*of_input)[k * 3 * n + j];
          past[j] += h[k] * (*of_memory)[k * 3 * n + j];
        }
      for (std::size_t j = 0; j < n; j++) {
        const float reset = 1 / (1 + std::exp(-given[j] - past[j])),
                    update = 1 / (1 + std::exp(-given[n + j] - past[n + j]));
        h[j] = update * h[j] + (1 - update) * std::tanh(given[2 * n + j] + reset * past[2 * n + j]);
      }
    }
    return h;
  };
  const Floats want = by_hand(), got = sa::jit(f)(x, w, u).to_vector<float>();
  for (std::size_t j = 0; j < n; j++)
    if (!(std::abs(want[j] - got[j]) < 1e-4))
      throw std::runtime_error("the recurrence by hand has other values");
  suite.add("10,000 steps of a GRU of 32 by hand", [=] { bench::keep(by_hand()); });
  const auto g = sa::jit(f);
  suite.add("10,000 steps of a GRU of 32", [=] { g(x, w, u).block_until_ready(); },
            {.floor = "10,000 steps of a GRU of 32 by hand", .aim = 1.5});
}

}  // namespace

int main(int argc, char** argv) {
  bench::Suite suite;
  add_sorts(suite);
  add_sums(suite);
  add_rows(suite);
  add_loop(suite);
  add_factorisations(suite);
  add_fourier(suite);
  for (const int n : {64, 512, 4096}) add_attention(suite, n);
  add_recurrence(suite);
  return suite.main(argc, argv);
}
