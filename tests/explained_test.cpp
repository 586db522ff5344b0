// explain() computes transfers between layouts without their boxes: the bytes are those that a run copies.
#include <doctest/doctest.h>

#include "explained_numbers.h"
#include "op_data.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace explained_test {

namespace sa = shardarray;
using program_test::numbers;
using sa::Array;
using sa::P;
using namespace sa::testing;

namespace {

using Moved = std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>;

/// Kind, bytes of the busiest device, bytes that are copied.
template <class F, class... A> void check_same(const F& f, const A&... args) {
  const auto j = sa::jit(f);
  const sa::Explanation said = sa::explain(j, args...);
  const program_test::Prepared p = program_test::prepare(j, args...);
  Moved told, run;
  for (const sa::TransferInfo& t : said.transfers())
    told.emplace_back(t.kind, t.bytes_per_device, t.moved_bytes);
  for (const sa::Transfer& t : p.program().transfers)
    run.emplace_back(sa::name(t.kind), t.bytes, t.moved_bytes);
  CHECK(told == run);
  CHECK(not_so(said, p.loaded->compiled) == "");
}

}  // namespace

TEST_CASE("explain: what is copied between all kinds of placements is what a run copies") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  for (const bool shared : {true, false}) {
    sa::set_share_replicas(shared);
    for (const sa::Shape& shape : {sa::Shape{16, 8}, {10, 6}, {3, 5}, {1, 7}}) {
      const auto all = every_sharding(mesh, shape.size());
      for (std::size_t k = 0; k < all.size(); k++)
        for (std::size_t j = 0; j < all.size(); j += 1 + k % 3) {
          CAPTURE(sa::to_string(shape));
          CAPTURE(k);
          CAPTURE(j);
          check_same([&](const Array& v) { return sa::reshard(v, all[j]); },
                     sa::device_put(numbers(shape), all[k]));
        }
      for (const P& rows : {P("x"), P("y"), P(sa::axes("x", "y")), P(sa::none, "y")})
        for (const P& to : {P(), P("x"), P("y"), P(sa::none, "x"), P("y", "x")}) {
          const Array x = sa::device_put(numbers(shape), sa::NamedSharding(mesh, rows));
          check_same(
              [&](const Array& v) { return sa::reshard(sa::matmul(v.T(), v), sa::NamedSharding(mesh, to)); },
              x);
          check_same(
              [&](const Array& v) {
                return sa::reshard(
                    sa::reshard(sa::matmul(v.T(), v), sa::NamedSharding(mesh, P(sa::unreduced("x")))),
                    sa::NamedSharding(mesh, to));
              },
              x);
          check_same([](const Array& v) { return sa::flip(sa::roll(v, 1, 0), 0) + sa::cumsum(v, 0); }, x);
        }
    }
  }
  sa::set_share_replicas(true);
}

TEST_CASE(
    "explain: steps, memory and time are those of the busiest device, also where the first one has less to "
    "do") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const auto rows = [&](const sa::Shape& shape) {
    return sa::device_put(numbers(shape), sa::NamedSharding(mesh, P("x")));
  };
  for (const bool shared : {true, false}) {
    sa::set_share_replicas(shared);
    // One device sends to itself, the others get zeros.
    for (const int to : {0, 1, 7})
      check_same(sa::pmap(
                     [=](const Array& v) {
                       return sa::ppermute(v, "i", {{to, to}}) + 1;
                     },
                     {.axis_name = "i"}),
                 rows({8, 40}));
    // What all devices share lies on the first one alone: the blocks of the others fit otherwise.
    const Array r = numbers({8}), a = rows({8, 640}), b = rows({8, 640}), c = rows({8, 704});
    check_same(
        [](const Array& v, const Array& x, const Array& y, const Array& z) {
          const Array first = sa::sort(v), second = sa::sort(x), third = sa::sort(y);
          const Array s = sa::sum(second * first[0]), fourth = sa::sort(z);
          return s + sa::sum(third) + sa::sum(fourth);
        },
        r, a, b, c);
    // Sums, gathers and pads that need nothing of others.
    check_same([](const Array& v) { return sa::pad(sa::flip(v, 1), {{0, 0}, {1, 2}}); }, a);
    check_same([](const Array& v) { return sa::matmul(v.T(), v) * 2; }, rows({16, 8}));
    check_same([&](const Array& v) { return sa::reshard(v * 2, sa::NamedSharding(mesh, P())); }, a);
  }
  sa::set_share_replicas(true);
}

TEST_CASE("explain: flops are the program's, whatever the backend makes of them") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const auto flops = [](const auto& f, const auto&... x) { return sa::explain(f, x...).flops; };
  const std::int64_t n = 64 * 64;
  for (const sa::DType t : {sa::float32, sa::float64, sa::float16, sa::bfloat16}) {
    CAPTURE(sa::name(t));
    const Array x = sa::ones({64, 64}, t);
    CHECK(flops([](Array v) { return v + v; }, x) == n);
    CHECK(flops([](Array v) { return sa::exp(v); }, x) == n);
    CHECK(flops([](Array v) { return sa::erf(v) * 3 + sa::maximum(v, 0); }, x) == 4 * n);
    CHECK(flops([](Array v) { return sa::matmul(v, v); }, x) == 2 * 64 * n);
    CHECK(flops([](Array v) { return sa::sum(v, 1); }, x) == 63 * 64);
    CHECK(flops([](Array v) { return sa::exp(sa::sum(v, 1)); }, x) == 63 * 64 + 64);
    CHECK(flops([](Array v) { return v - sa::max(v, {.axis = 1, .keepdims = true}); }, x) == 63 * 64 + n);
    CHECK(flops([](Array v) { return sa::where(v > 0, v, sa::astype(v, sa::float32).astype(v.dtype())); },
                x) == 0);
    CHECK(flops([](Array v) { return (v > 0) & (v < 2); }, x) == 0);
    CHECK(flops([](Array v) { return sa::sort(v).T()[0]; }, x) == 0);
  }
  const Array x = sa::ones({64, 64}), ints = sa::ones({64, 64}, sa::int32);
  CHECK(flops([](Array v) { return v + v; }, ints) == 0);
  CHECK(flops([](Array v) { return sa::matmul(v, v); }, ints) == 0);
  CHECK(flops([](Array v) { return sa::sum(v, 1) + 1; }, sa::ones({1000, 0})) == 1000);
  CHECK(flops([](Array v) { return sa::cumsum(v, 0); }, x) == 63 * 64);
  CHECK(flops([](Array v) { return sa::linalg::cholesky(v); }, x) ==
        64 * 64 * 64 / 3 + 2 * n);  // of (x + x^T) / 2
  CHECK(flops([](Array v) { return sa::fft::fft(v); }, sa::ones({4, 64}, sa::complex64)) == 4 * 5 * 64 * 6);
  // Of a device's part, and of all runs.
  const Array cut = sa::device_put(x, sa::NamedSharding(mesh, P("x")));
  CHECK(flops([](Array v) { return v * v; }, cut) == n / 8);
  const auto loop = [](Array v) {
    return sa::fori_loop(
        0, 5, [](Array, Array c) { return c * 1.5f; }, v);
  };
  CHECK(flops(loop, x) == 5 * n);
}

}  // namespace explained_test
