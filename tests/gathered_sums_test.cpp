// Small all-reduces over the same devices are merged into one transfer: which are, with the same values and counts, without cycles.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <variant>
#include <vector>

#include "program_of.h"
#include "runtime/step_ranges.h"

namespace gathered_sums_test {

namespace sa = shardarray;
using program_test::check_received;
using program_test::numbers;
using program_test::prepare;
using program_test::transfers;
using sa::Array;
using sa::NamedSharding;
using sa::P;

namespace {

const sa::Mesh& mesh() {
  static const sa::Mesh m = sa::make_mesh({{"x", 4}, {"y", 2}});
  return m;
}
Array rows(const sa::Shape& shape, const P& spec = P("x"), sa::DType t = sa::float32, int seed = 0) {
  return sa::device_put(numbers(shape, t, seed), NamedSharding(mesh(), spec));
}

/// How many values each transfer has.
template <class F, class... A> std::vector<std::int64_t> values_of(const F& f, const A&... args) {
  std::vector<std::int64_t> n;
  for (const sa::TransferInfo& t : sa::explain(f, args...).transfers()) n.push_back(t.values);
  return n;
}
using Values = std::vector<std::int64_t>;

/// The same numbers as on one device, and what is counted is what is planned, in explain's words too.
template <class F, class... A> void check_run(const F& f, const A&... args) {
  const auto j = sa::jit(f);
  check_received(j, args...);
  const auto alone = [](const Array& a) { return sa::array(sa::testing::read<float>(a), a.shape()); };
  const std::vector<Array> got = sa::tree_leaves(j(args...)), want = sa::tree_leaves(f(alone(args)...));
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); k++)
    CHECK(sa::testing::read<float>(got[k]) == sa::testing::read<float>(want[k]));
  const sa::Explanation told = sa::explain(j, args...);
  const auto& planned = prepare(j, args...).program().transfers;
  REQUIRE(told.transfers().size() == planned.size());
  for (std::size_t k = 0; k < planned.size(); k++) {
    CHECK(told.transfers()[k].bytes_per_device == planned[k].bytes);
    CHECK(told.transfers()[k].moved_bytes == planned[k].moved_bytes);
    CHECK(told.transfers()[k].values == planned[k].values);
  }
}

}  // namespace

TEST_CASE("gathered sums: several over one axis are one transfer, whose bytes are those of all") {
  const auto sums = [](const Array& v) {
    return std::tuple(sa::sum(v), sa::sum(v, 0), sa::sum(v * 2, 0), sa::sum(sa::abs(v)));
  };
  const Array x = rows({16, 6});
  CHECK(transfers(sa::explain(sums, x)) == "all_reduce{x} 84");  // 2 (g - 1) / g of 4, 24, 24 and 4 bytes
  CHECK(values_of(sums, x) == Values{4});
  CHECK(sa::explain(sums, x).to_string().find("f32[] and 3 more") != std::string::npos);
  CHECK(sa::transfers(sums, x).find("f32[] and 3 more for ") != std::string::npos);
  CHECK(sa::plan_json(sa::explain(sums, x)).find("\"values\": 4") != std::string::npos);
  CHECK(prepare(sa::jit(sums), x).program().transfers.size() == 1);
  check_run(sums, x);
}

TEST_CASE("gathered sums: sums behind each other, of other axes, types, reducers and kinds stay apart") {
  const Array x = rows({16, 6});
  const auto behind = [](const Array& v) { return sa::sum(sa::maximum(v, sa::sum(v, 0)), 0); };
  CHECK(values_of(behind, x) == Values{1, 1});
  check_run(behind, x);
  const auto reducers = [](const Array& v) { return std::tuple(sa::sum(v, 0), sa::max(v, 0), sa::sum(-v)); };
  CHECK(values_of(reducers, x) == Values{2, 1});
  check_run(reducers, x);
  const Array y = rows({16, 6}, P("y"));
  const auto axes = [](const Array& v, const Array& u) { return std::tuple(sa::sum(v, 0), sa::sum(u, 0)); };
  CHECK(values_of(axes, x, y) == Values{1, 1});
  check_run(axes, x, y);
  const auto types = [](const Array& v) {
    return std::tuple(sa::sum(v, 0), sa::sum(sa::astype(v, sa::int32), 0));
  };
  CHECK(values_of(types, x) == Values{1, 1});
  const auto kinds = [](const Array& v) {
    return std::pair(sa::sum(v, 0), sa::reshard(sa::sum(-v, 0), NamedSharding(mesh(), P("x"))));
  };
  CHECK(values_of(kinds, rows({16, 8})) == Values{1, 1});
  check_run(kinds, rows({16, 8}));
}

TEST_CASE("gathered sums: large ones go alone, and as many together as one message takes") {
  const auto count = [](std::int64_t columns, int sums) {
    const auto f = [=](const Array& x) {
      std::vector<Array> all;
      for (int k = 0; k < sums; k++) all.push_back(sa::sum(x * (k + 1), 0));
      return all;
    };
    const Array x = rows({8, columns});
    check_run(f, x);
    const Values n = values_of(f, x);
    return n;
  };
  CHECK(std::ranges::max(count(1 << 12, 3)) == 1);  // 24 KiB received
  CHECK(count(1 << 10, 5) == Values{2, 2, 1});      // 6 KiB
  CHECK(count(64, 16) == Values{16});
}

TEST_CASE("gathered sums: those that are needed first go first, the others together") {
  const Array x = rows({16, 6});
  // The first one decides what the others are sums of.
  const auto f = [](const Array& v) {
    const Array m = sa::max(v, 0), first = sa::sum(v, 0);
    const Array z = sa::maximum(v - m, first);
    return std::tuple(sa::sum(z, 0), sa::sum(-z, 0), sa::sum(v * 3, 0));
  };
  const Values n = values_of(f, x);
  CHECK(std::reduce(n.begin(), n.end()) == 5);
  CHECK(std::ranges::max(n) >= 2);
  check_run(f, x);
  // Each one waits for the one before.
  const auto chain = [](const Array& v) {
    std::vector<Array> all{sa::sum(v, 0)};
    for (int k = 0; k < 4; k++) all.push_back(sa::sum(sa::maximum(v, all.back()), 0));
    return all;
  };
  CHECK(values_of(chain, x) == Values{1, 1, 1, 1, 1});
  check_run(chain, x);
}

TEST_CASE("gathered sums: a step of many layers has one all-reduce for all small gradients") {
  const sa::Mesh data = sa::make_mesh({{"data", 8}});
  const auto put = [&](const Array& a, const P& spec) {
    return sa::device_put(a, NamedSharding(data, spec));
  };
  struct Layer {
    Array w, b;
  };
  std::vector<Layer> model;
  for (int k = 0; k < 6; k++)
    model.push_back({put(numbers({8, 8}, sa::float32, k) * 0.05f, P()), put(sa::zeros({8}), P())});
  const auto step = [](std::vector<Layer> m, const Array& x) {
    const auto g = sa::grad([&](const std::vector<Layer>& layers) {
      Array h = x;
      for (const Layer& l : layers) h = sa::tanh(sa::matmul(h, l.w) + l.b);
      return sa::mean(h * h);
    })(m);
    return sa::tree_map([](const Array& v, const Array& d) { return v - d * 0.5f; }, m, g);
  };
  const Array x = put(numbers({32, 8}), P("data"));
  const sa::Explanation plan = sa::explain(sa::jit(step), model, x);
  REQUIRE(plan.transfers().size() == 1);
  CHECK(plan.transfers()[0].values == 12);
  CHECK(plan.transfers()[0].bytes_per_device == 6 * (2 * 7 * 256 / 8 + 2 * 7 * 32 / 8));
}

TEST_CASE("gathered sums: donated memory and parts written in place stay what they are") {
  const sa::NamedSharding whole(mesh(), P());
  const auto f = [](Array a, Array b, const Array& x) {
    a = a.at(0).set(sa::sum(x, 0));
    b = b.at(1).set(sa::sum(x * 2, 0));
    const Array c = sa::sum(x * a[0], 0);
    return std::tuple(a, b, c, sa::sum(x * 5, 0));
  };
  const auto j = sa::jit(f, {.donate = sa::Donate::all});
  for (int k = 0; k < 3; k++) {
    const Array x = rows({16, 6}, P("x"), sa::float32, k);
    const auto alone = [](const Array& a) { return sa::array(sa::testing::read<float>(a), a.shape()); };
    const auto [a, b, c, d] = f(alone(numbers({4, 6})), alone(numbers({4, 6})), alone(x));
    const auto [a2, b2, c2, d2] =
        j(sa::device_put(numbers({4, 6}), whole), sa::device_put(numbers({4, 6}), whole), sa::Array(x));
    CHECK(a2.to_vector<float>() == a.to_vector<float>());
    CHECK(b2.to_vector<float>() == b.to_vector<float>());
    CHECK(c2.to_vector<float>() == c.to_vector<float>());
    CHECK(d2.to_vector<float>() == d.to_vector<float>());
  }
}

TEST_CASE("gathered sums: what one of them makes does not lie where another one still reads") {
  const auto f = [](const Array& x) {
    std::vector<Array> all;
    for (int k = 0; k < 8; k++) {
      const Array total = sa::sum(x * (k + 1), 0);
      all.push_back(total * total);
    }
    return all;
  };
  const auto prepared = prepare(sa::jit(f), rows({16, 64}));
  int several = 0;
  for (const sa::Step& s : prepared.program().steps) {
    const auto* const e = std::get_if<sa::Exchange>(&s.body);
    if (e == nullptr || e->items.size() < 8) continue;
    several++;
    for (const sa::Exchange::Item& to : e->items)
      for (const sa::Exchange::Item& from : e->items)
        for (const sa::MemoryRange& w : sa::ranges_of(*e, to).writes) {
          for (const sa::MemoryRange& r : sa::ranges_of(*e, from).reads) CHECK_FALSE(sa::overlap(w, r));
          if (&to != &from)
            for (const sa::MemoryRange& other : sa::ranges_of(*e, from).writes)
              CHECK_FALSE(sa::overlap(w, other));
        }
  }
  CHECK(several > 0);
}

TEST_CASE("gathered sums: no large value is kept for them, and donated memory is still taken over") {
  // A sum of each layer that nothing waits for: its operand is needed no longer than without it.
  const auto layers = [](int n, bool gathers) {
    return [=](const Array& x, const Array& w) {
      std::vector<Array> all;
      Array t = x;
      for (int k = 0; k < n; k++) {
        t = sa::tanh(sa::matmul(t, w));
        const Array most = sa::max(sa::abs(t));
        const sa::DType kind =
            gathers || k % 2 == 0 ? sa::float32 : sa::float64;  // else they cannot go together
        all.push_back(sa::sum(sa::where(t > most * 0.9f, 1.0f, 0.0f).astype(kind), 0));
      }
      return all;
    };
  };
  const Array x = rows({8192, 64}), w = sa::device_put(sa::eye(64), NamedSharding(mesh(), P()));
  const auto peak = [&](int n, bool gathers) {
    return sa::explain(layers(n, gathers), x, w).peak_bytes_per_device;
  };
  CHECK(peak(8, true) < peak(3, true) + (1 << 18));
  CHECK(peak(8, true) <= peak(8, false));
  const auto step = sa::jit(
      [](Array p, const Array& v) {
        const Array first = sa::mean(v * p[0], 0), worst = sa::max(p * first, 0), next = p - p * 0.1f;
        return std::tuple(worst, next, sa::mean(v * next[0], 0));
      },
      {.donate_args = {0}});
  const Array p = sa::device_put(numbers({32, 6}), NamedSharding(mesh(), P()));
  const Array v = rows({16, 6});
  const sa::Explanation plan = sa::explain(step, p, v);
  REQUIRE(plan.donations().size() == 1);
  CHECK_MESSAGE(plan.donations()[0].reused, plan.donations()[0].reason);
}

}  // namespace gathered_sums_test
