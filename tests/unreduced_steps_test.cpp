// Unreduced values, and partial sums that the compiler keeps, in called programs: scans, maps, loops, choices.
#include "partial_sums.h"

namespace unreduced_steps_test {

using namespace partial_sums;
using sa::NamedSharding;
using sa::unreduced;

namespace {

// The results of f: on a batch that is cut, jitted, and of one device by itself.
template <class F, class... A> void check_same(const char* what, const F& f, const A&... x) {
  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const auto leaves_of = [](const auto& tree) {
    std::vector<Array> all;
    sa::tree_map(
        [&](const Array& a) {
          all.push_back(a);
          return a;
        },
        tree);
    return all;
  };
  const auto cut = [&](const Array& a) {
    return sa::device_put(a, NamedSharding(mesh, a.ndim() > 2 ? P(sa::none, "data") : P()));
  };
  const std::vector<Array> want = leaves_of(f(x...)), got = leaves_of(sa::jit(f)(cut(x)...));
  REQUIRE(want.size() == got.size());
  for (std::size_t k = 0; k < want.size(); k++) {
    const bool same = sa::allclose(sa::array(sa::testing::read<float>(got[k]), got[k].shape()), want[k],
                                   {.rtol = 1e-5, .atol = 1e-5});
    CHECK_MESSAGE(same, what << ", result " << k);
  }
}
using Pair = std::pair<Array, Array>;

}  // namespace

TEST_CASE("unreduced steps: what every step of a scan or map gives is whole") {
  const Array xs = numbers({3, 16, 4}, sa::float32, 3), w = numbers({4, 2}, sa::float32, 1) * 0.1;
  const auto sums = [](const Array& c, const Array& b) { return std::pair(c + sa::sum(b, 0), c); };
  check_same(
      "sums before each step", [=](Array x) { return sa::scan(sums, sa::zeros({4}), x); }, xs);
  check_same(
      "in reverse", [=](Array x) { return sa::scan(sums, sa::zeros({4}), x, {.reverse = true}); }, xs);
  check_same(
      "behind each step",
      [](Array x) {
        return sa::scan(
            [](Array c, Array b) {
              c = c + sa::sum(b, 0);
              return std::pair(c, c);
            },
            sa::zeros({4}), x);
      },
      xs);
  check_same(
      "products",
      [](Array x) {
        return sa::scan(
            [](Array c, Array b) {
              return std::pair(c + sa::matmul(b.T(), b), sa::reshape(c, {2, 8}));
            },
            sa::zeros({4, 4}), x);
      },
      xs);
  check_same(
      "the step before",
      [](Array x) {
        return sa::scan(
            [](Pair c, Array b) { return std::pair(Pair(c.first + sa::sum(b, 0), c.first), sa::sum(b)); },
            Pair(sa::zeros({4}), sa::zeros({4})), x);
      },
      xs);
  check_same(
      "gradients before each batch",
      [](Array m, Array x) {
        const auto loss = [](Array p, Array b) { return sa::sum(sa::square(sa::matmul(b, p))); };
        return sa::scan([=](Array c, Array b) { return std::pair(c + sa::grad(loss)(m, b), c); },
                        sa::zeros_like(m), x);
      },
      w, xs);
  check_same(
      "derivatives of running sums",
      [](Array x) {
        return sa::grad([](Array v) {
          const auto r =
              sa::scan([](Array c, Array b) { return std::pair(c + sa::sum(sa::square(b), 0), c); },
                       sa::zeros({4}), v);
          return sa::sum(sa::sin(r.second * 1e-3)) + sa::sum(sa::cos(r.first * 1e-3));
        })(x);
      },
      xs);
  check_same(
      "a map", [](Array x) { return sa::map([](Array b) { return sa::sum(b, 0); }, x); }, xs);
  check_same(
      "nested",
      [=](Array x) {
        return sa::scan(
            [=](Array c, Array b) {
              return std::pair(c + sa::sum(b, 0), sa::scan(sums, c, sa::reshape(b, {2, 8, 4})).second);
            },
            sa::zeros({4}), x);
      },
      xs);
  check_same(
      "a loop",
      [](Array x) {
        const auto r = sa::while_loop([](std::tuple<Array, Array, Array> c) { return std::get<2>(c) < 3; },
                                      [=](std::tuple<Array, Array, Array> c) {
                                        return std::tuple(std::get<0>(c) + sa::sum(x[0], 0), std::get<0>(c),
                                                          std::get<2>(c) + 1);
                                      },
                                      std::tuple(sa::zeros({4}), sa::zeros({4}), sa::zeros({}, sa::int32)));
        return Pair(std::get<0>(r), std::get<1>(r));
      },
      xs);
}

TEST_CASE(
    "unreduced steps: constraints to summands in programs that are called, and carries that are given so") {
  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const NamedSharding sums(mesh, P(unreduced("data")));
  const Array xs = numbers({3, 16, 4}, sa::float32, 3);
  const auto placed = [=](const Array& a) { return sa::filter_shard(a, sums); };
  check_same(
      "a map", [=](Array x) { return sa::map([=](Array b) { return placed(sa::sum(b, 0)); }, x); }, xs);
  check_same(
      "steps",
      [=](Array x) {
        return sa::scan(
            [=](Array c, Array b) {
              c = placed(c + sa::sum(b, 0));
              return std::pair(c, placed(c * 2));
            },
            placed(sa::ones({4})), x);
      },
      xs);
  check_same(
      "branches",
      [=](Array x) {
        const Array c = placed(sa::sum(x[0], 0));
        return placed(sa::cond(
            sa::sum(x) > 1e6, [](Array a) { return a + 1; }, [](Array a) { return a * 2; }, c));
      },
      xs);
}

TEST_CASE("unreduced steps: a choice of summands adds up only where a branch needs the sum") {
  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const NamedSharding sums(mesh, P(unreduced("data"))), rows(mesh, P("data"));
  const Array total = sa::device_put(numbers({4}), sums),
              batch = sa::device_put(numbers({16, 4}, sa::float32, 2), rows);
  // A step that is left out where its gradient is not finite, as under loss scaling: adding and leaving move nothing.
  const auto add = sa::jit([=](Array c, Array b, Array ok) {
    return sa::filter_shard(
        sa::cond(
            ok, [](Array s, Array x) { return s + sa::sum(x, 0); }, [](Array s, Array) { return s; }, c, b),
        sums);
  });
  for (const bool ok : {true, false}) {
    const Array next = add(total, batch, sa::array(ok));
    CHECK(prepare(add, total, batch, sa::array(ok)).program().transfers.empty());
    CHECK(next.sharding() == sa::Sharding(sums));
    CHECK(values(next) ==
          values(ok ? numbers({4}) + sa::sum(numbers({16, 4}, sa::float32, 2), 0) : numbers({4})));
  }
  const auto use = sa::jit([](Array c, Array now) {
    return sa::cond(
        now, [](Array s) { return sa::exp(s); }, [](Array s) { return sa::zeros_like(s); }, c);
  });
  const auto moved = prepare(use, total, sa::array(true)).program().transfers;
  REQUIRE(moved.size() == 1);
  CHECK(moved[0].reason.find("in branch 1") != std::string::npos);
}

}  // namespace unreduced_steps_test
