// A step of the heat equation on one core, written in several ways, compared with a plain loop: time per point.
#include <shardarray/shardarray.h>

#include "bench.h"
#include "runtime/pool.h"

namespace sa = shardarray;
using sa::Array;

namespace {

constexpr float rate = 0.2F;

// The obvious version: checks the border at every point.
[[gnu::noinline]] void plain_step(const float* from, float* to, long n) {
  for (long i = 0; i < n; i++)
    for (long j = 0; j < n; j++) {
      const float up = i > 0 ? from[(i - 1) * n + j] : 0, down = i + 1 < n ? from[(i + 1) * n + j] : 0,
                  left = j > 0 ? from[i * n + j - 1] : 0, right = j + 1 < n ? from[i * n + j + 1] : 0;
      to[i * n + j] = from[i * n + j] + rate * (up + down + left + right - 4 * from[i * n + j]);
    }
}

// The border separately, so that the loop has no branches.
[[gnu::noinline]] void apart_step(const float* from, float* to, long n) {
  const auto at_border = [&](long i, long j) {
    const auto at = [&](long k, long l) { return k < 0 || k == n || l < 0 || l == n ? 0 : from[k * n + l]; };
    to[i * n + j] =
        at(i, j) + rate * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * at(i, j));
  };
  for (long k = 0; k < n; k++)
    for (const auto& [i, j] : {std::pair{0L, k}, {n - 1, k}, {k, 0L}, {k, n - 1}}) at_border(i, j);
  for (long i = 1; i + 1 < n; i++) {
    const float *row = from + i * n, *above = row - n, *below = row + n;
    float* out = to + i * n;
#ifndef __clang__
#pragma GCC ivdep
#endif
    for (long j = 1; j + 1 < n; j++)
      out[j] = row[j] + rate * (above[j] + below[j] + row[j - 1] + row[j + 1] - 4 * row[j]);
  }
}

Array step(const Array& u, const Array& around) { return u + rate * (around - 4 * u); }

const sa::slice but_first(1, sa::none), but_last(0, -1), before(0, -2), inner(1, -1), behind(2, sa::none);

Array by_pads_of_slices(const Array& u) {
  return step(u, sa::pad(u[but_last], {{1, 0}, {0, 0}}) + sa::pad(u[but_first], {{0, 1}, {0, 0}}) +
                     sa::pad(u[{sa::all, but_last}], {{0, 0}, {1, 0}}) +
                     sa::pad(u[{sa::all, but_first}], {{0, 0}, {0, 1}}));
}
Array by_slices_of_a_pad(const Array& u) {
  const Array p = sa::pad(u, {{1, 1}, {1, 1}});
  return step(u, p[{before, inner}] + p[{behind, inner}] + p[{inner, before}] + p[{inner, behind}]);
}
Array by_concatenations(const Array& u) {
  const std::int64_t n = u.shape()[0];
  const Array row = sa::zeros({1, n}), column = sa::zeros({n, 1});
  return step(u, sa::concatenate({row, u[but_last]}) + sa::concatenate({u[but_first], row}) +
                     sa::concatenate({column, u[{sa::all, but_last}]}, 1) +
                     sa::concatenate({u[{sa::all, but_first}], column}, 1));
}
Array by_a_convolution(const Array& u) {
  const std::int64_t n = u.shape()[0];
  const Array kernel = sa::reshape(sa::array({0, 1, 0, 1, -4, 1, 0, 1, 0}) * rate, {1, 1, 3, 3});
  return u + sa::reshape(sa::conv(sa::reshape(u, {1, 1, n, n}), kernel, {}, "SAME"), {n, n});
}
Array by_rolls(const Array& u) {
  return step(u, sa::roll(u, 1, 0) + sa::roll(u, -1, 0) + sa::roll(u, 1, 1) + sa::roll(u, -1, 1));
}

}  // namespace

int main(int argc, char** argv) {
  bench::Suite suite;
  sa::set_worker_count(1);
  for (const long n : {256L, 2048L}) {
    const auto name = [n](const char* way) { return fmt::format("{}, {} x {}", way, n, n); };
    const auto points = static_cast<std::size_t>(n * n);
    auto from = std::make_shared<std::vector<float>>(bench::random_floats(points)),
         to = std::make_shared<std::vector<float>>(points);
    const double per_call = static_cast<double>(points);
    suite.add(name("plain loop"),
              [=] {
                plain_step(from->data(), to->data(), n);
                bench::keep(*to);
              },
              {.per_call = per_call});
    suite.add(name("plain loop, borders apart"),
              [=] {
                apart_step(from->data(), to->data(), n);
                bench::keep(*to);
              },
              {.floor = name("plain loop"), .per_call = per_call});
    const Array u = sa::random::normal(sa::random::key(1), {n, n});
    const auto add = [&](const char* way, Array (*f)(const Array&)) {
      suite.add(name(way), [f = sa::jit(f), u] { sa::block_until_ready(f(u)); },
                {.floor = name("plain loop"), .per_call = per_call});
    };
    add("pads of slices", by_pads_of_slices);
    add("slices of a pad", by_slices_of_a_pad);
    add("concatenations", by_concatenations);
    add("rolls (the plate is a ring)", by_rolls);
    add("convolution", by_a_convolution);
  }
  return suite.main(argc, argv);
}
