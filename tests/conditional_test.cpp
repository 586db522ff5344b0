// cond, switch_, while_loop: JAX's numbers under any sharding; nested in each other, scan, vmap and derivatives; one branch runs; messages.
#include <cmath>
#include <functional>
#include <random>

#include "golden.h"
#include "program_of.h"
#include "transforms_helpers.h"

namespace conditional_test {

namespace sa = shardarray;
using golden::close;
using sa::Array;
using sa::Shape;
using transforms_test::error;

namespace {

using Chosen = std::pair<Array, Array>;

Chosen choice(const Array& p, const Array& x, const Array& w) {
  return sa::cond(
      p > 0, [&](const Array& a) { return Chosen(sa::sin(a) * w, sa::sum(a)); },
      [](const Array& a) { return Chosen(a * a, sa::sum(a) * 2); }, x);
}
Array several(const Array& k, const Array& x, const Array& w) {
  const auto branches =
      std::tuple([](const Array& a) { return a * 1; }, [&](const Array& a) { return sa::exp(a) * w; },
                 [](const Array& a) { return sa::sum(a * a) * a; });
  return sa::switch_(k, branches, x);
}
Chosen halved(const Array& x, const Array& limit) {
  return sa::while_loop([&](const Chosen& c) { return sa::sum(c.first * c.first) > limit; },
                        [](const Chosen& c) { return Chosen(sa::sin(c.first) * 0.9, c.second + 1); },
                        Chosen(x, Array(0)));
}
void check_pair(const Chosen& got, const golden::Json& want, double tolerance = 1e-5) {
  CHECK(close(got.first, want[0], tolerance, 1e-6));
  CHECK(close(got.second, want[1], tolerance, 1e-6));
}
sa::Sharding on_devices(const sa::P& spec) {
  return sa::NamedSharding(sa::make_mesh({{"x", 4}, {"y", 2}}), spec);
}
const std::vector<sa::P>& places() {
  static const std::vector<sa::P> all{sa::P(), sa::P("x"), sa::P("y")};
  return all;
}

}  // namespace

TEST_CASE("branches: JAX's values and derivatives of cond, whatever is cut") {
  const golden::Json c = golden::load("transforms.json")["branches"];
  const Array ps = golden::array(c["ps"]);
  const auto total = [](const Array& p, const Array& a, const Array& b) {
    const Chosen r = choice(p, a, b);
    return sa::sum(r.first) + r.second;
  };
  for (const sa::P& spec : places()) {
    const Array x = sa::device_put(golden::array(c["x"]), on_devices(spec)),
                w = sa::device_put(golden::array(c["w"]), on_devices(sa::P("y")));
    for (std::size_t k = 0; k < 4; k++) {
      const Array p = ps[static_cast<std::int64_t>(k)];
      check_pair(choice(p, x, w), c["chosen"][k]);
      check_pair(sa::jit(choice)(p, x, w), c["chosen"][k]);
      const auto [by_x, by_w] = sa::jit(sa::grad<1, 2>(total))(p, x, w);
      check_pair({by_x, by_w}, c["gradients"][k]);
      const auto [eager_x, eager_w] = sa::grad<1, 2>(total)(p, x, w);
      check_pair({eager_x, eager_w}, c["gradients"][k]);
      const Array tangent = sa::jvp([&](const Array& a) { return total(p, a, w); }, x, w).second;
      CHECK(sa::allclose(tangent, sa::sum(by_x * w), {.rtol = 1e-4, .atol = 1e-5}));
    }
    check_pair(sa::vmap(choice, {.in_axes = {0, sa::none, sa::none}})(ps, x, w), c["chosen_rows"]);
    const auto of_rows = [&](const Array& a) {
      return sa::sum(sa::vmap(total, {.in_axes = {0, sa::none, sa::none}})(ps, a, w));
    };
    CHECK(close(sa::jit(sa::grad(of_rows))(x), c["gradient_rows"], 1e-5, 1e-6));
  }
  const Array x = golden::array(c["x"]), w = golden::array(c["w"]);
  for (std::size_t k = 0; k < 4; k++)
    CHECK(close(sa::jit(sa::hessian<1>(total))(ps[static_cast<std::int64_t>(k)], x, w), c["second"][k], 1e-4,
                1e-5));
}

TEST_CASE("branches: JAX's values and derivatives of switch_; the index is clamped") {
  const golden::Json c = golden::load("transforms.json")["branches"];
  const auto loss = [](const Array& k, const Array& a, const Array& b) {
    return sa::sum(sa::sin(several(k, a, b)));
  };
  const int numbers[] = {-3, 0, 1, 2, 7};
  for (const sa::P& spec : places()) {
    const Array x = sa::device_put(golden::array(c["x"]), on_devices(spec)), w = golden::array(c["w"]);
    for (std::size_t j = 0; j < 5; j++) {
      const Array k = sa::array({numbers[j]})[0];
      CHECK(close(several(k, x, w), c["switched"][j], 1e-5, 1e-6));
      const auto [by_x, by_w] = sa::jit(sa::grad<1, 2>(loss))(k, x, w);
      check_pair({by_x, by_w}, c["switched_gradients"][j]);
    }
  }
  const Array x = golden::array(c["x"]), w = golden::array(c["w"]);
  const Array all =
      sa::vmap(several, {.in_axes = {0, sa::none, sa::none}})(sa::array({-3, 0, 1, 2, 7}), x, w);
  for (std::size_t j = 0; j < 5; j++)
    CHECK(close(all[static_cast<std::int64_t>(j)], c["switched"][j], 1e-5, 1e-6));
  using F = std::function<Array(const Array&)>;
  const std::vector<F> list{[](const Array& a) { return a + 1; }, [](const Array& a) { return a * 5; }};
  CHECK(sa::switch_(sa::array({200}, sa::uint8)[0], list, Array(3.0)).item<float>() == 15);
  CHECK(sa::switch_(sa::array({-100}, sa::int8)[0], list, Array(3.0)).item<float>() == 4);
}

TEST_CASE("branches: JAX's values, tangents and rows of while_loop, whatever is cut") {
  const golden::Json c = golden::load("transforms.json")["branches"];
  const Array rows = golden::array(c["rows"]), limits = golden::array(c["limits"]);
  for (const sa::P& spec : places()) {
    for (std::size_t k = 0; k < 4; k++) {
      const Array x = sa::device_put(rows[static_cast<std::int64_t>(k)], on_devices(spec)),
                  limit = limits[static_cast<std::int64_t>(k)];
      check_pair(halved(x, limit), c["halved"][k]);
      check_pair(sa::jit(halved)(x, limit), c["halved"][k]);
      const auto tangent = [](const Array& v) {
        return sa::jvp([](const Array& a) { return halved(a, Array(0.05f)).first; }, v, sa::ones_like(v))
            .second;
      };
      CHECK(close(sa::jit(tangent)(x), c["halved_tangents"][k], 1e-4, 1e-5));
      CHECK(close(tangent(x), c["halved_tangents"][k], 1e-4, 1e-5));
    }
    const Array cut = sa::device_put(rows, on_devices(spec));
    check_pair(sa::vmap(halved)(cut, limits), c["halved_rows"]);
    const auto tangents = sa::vmap([](const Array& v) {
      return sa::jvp([](const Array& a) { return halved(a, Array(0.05f)).first; }, v, sa::ones_like(v))
          .second;
    });
    CHECK(close(sa::jit(tangents)(cut), c["halved_tangent_rows"], 1e-4, 1e-5));
  }
}

TEST_CASE("branches: loops of any length end where they should") {
  // No run, one, an even and an odd number: carries have two buffers.
  const auto count = sa::jit([](const Array& n, const Array& first) {
    return sa::while_loop([&](const Chosen& c) { return c.first < n; },
                          [](const Chosen& c) { return Chosen(c.first + 1, c.second * 2 + 1); },
                          Chosen(Array(0), first));
  });
  for (int n = 0; n < 12; n++) {
    const auto [k, v] = count(sa::array({n})[0], sa::device_put(sa::zeros({16}), on_devices(sa::P("x"))));
    CHECK(k.item<int>() == n);
    CHECK(sa::testing::read<float>(v) == std::vector<float>(16, static_cast<float>((1 << n) - 1)));
  }
  // Carries that change places, that stay, and that nobody reads.
  struct State {
    Array a, b, kept, unread;
  };
  const auto turns = [](const State& s, int n) {
    return sa::while_loop([n](const State& c) { return c.unread < n; },
                          [](const State& c) {
                            return State{c.b, c.a + c.kept, c.kept, c.unread + 1};
                          },
                          s);
  };
  const State start{sa::arange(8.0), sa::ones({8}), sa::full({8}, 2.0), sa::array({0})[0]};
  for (int n = 0; n < 5; n++) {
    State want = start;
    for (int k = 0; k < n; k++) want = {want.b, want.a + want.kept, want.kept, want.unread + 1};
    const State got = sa::jit([&](const State& s) { return turns(s, n); })(start);
    CHECK(sa::tree_equal(got, want));
    CHECK(sa::tree_equal(turns(start, n), want));
  }
  // A condition that is a number; a donated first carry.
  const auto f = sa::jit(
      [](const Array& v) {
        return sa::while_loop([](const Array& c) { return 3 - sa::min(c).astype(sa::int32); },
                              [](const Array& c) { return c + 1; }, v);
      },
      {.donate_args = {0}});
  CHECK(f(sa::zeros({100}) + 0).to_vector<float>() == std::vector<float>(100, 3));
  // A weak carry becomes what a step makes of it.
  CHECK(sa::while_loop([](const Array& v) { return v < 3; }, [](const Array& v) { return v + 0.5; }, Array(0))
            .item<float>() == 3);
}

TEST_CASE(
    "branches: inside of each other, of scan, of vmap; programs of all sizes against loops of the host") {
  const auto collatz = [](const Array& n) {
    return sa::while_loop([](const Chosen& c) { return c.first > 1; },
                          [](const Chosen& c) {
                            const Array next = sa::cond(
                                c.first % 2 == 0, [](const Array& v) { return sa::floor_divide(v, 2); },
                                [](const Array& v) { return v * 3 + 1; }, c.first);
                            return Chosen(next.astype(sa::int32), c.second + 1);
                          },
                          Chosen(n, Array(0)))
        .second;
  };
  const auto on_host = [](int n) {
    int steps = 0;
    for (; n > 1; steps++) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    return steps;
  };
  std::vector<int> want, numbers;
  for (int n = 1; n < 20; n++) {
    numbers.push_back(n);
    want.push_back(on_host(n));
    CHECK(sa::jit(collatz)(sa::array({n})[0]).item<int>() == on_host(n));
  }
  const Array all = sa::array(numbers);
  CHECK(sa::jit(sa::vmap(collatz))(all).to_vector<int>() == want);
  CHECK(sa::scan([&](const Array& c, const Array& n) { return std::pair(c + collatz(n), collatz(n)); },
                 sa::array({0})[0], all)
            .second.to_vector<int>() == want);
  // A gradient through cond inside of scan: of the branches that ran.
  const auto loss = [](const Array& v) {
    return sa::scan(
               [](const Array& c, const Array& x) {
                 const Array next = sa::cond(
                     x > 0, [&](const Array& a) { return a * x; }, [](const Array& a) { return sa::sin(a); },
                     c);
                 return std::pair(next, sa::none);
               },
               v, sa::array({2.0, -1.0, 3.0}))
        .first;
  };
  const double v = 0.3;
  CHECK(loss(Array(0.3f)).item<float>() == doctest::Approx(3 * std::sin(2 * v)));
  CHECK(sa::jit(sa::grad(loss))(Array(0.3f)).item<float>() == doctest::Approx(6 * std::cos(2 * v)));
  // Rows on devices, a predicate for all of them and one for each.
  const Array rows = sa::arange(16.0).reshape({8, 2});
  const auto one = [](const Array& r) {
    return sa::cond(
        sa::sum(r) > 12, [](const Array& a) { return a * 10; }, [](const Array& a) { return -a; }, r);
  };
  std::vector<float> chosen = rows.to_vector<float>();
  for (std::size_t k = 0; k < chosen.size(); k += 2) {
    const bool large = chosen[k] + chosen[k + 1] > 12;
    for (const std::size_t j : {k, k + 1}) chosen[j] = large ? 10 * chosen[j] : -chosen[j];
  }
  CHECK(sa::testing::read<float>(sa::pmap(one)(rows)) == chosen);
  CHECK(sa::vmap(one)(rows).to_vector<float>() == chosen);
}

TEST_CASE("branches: only the branch that is chosen runs, and what moves in it is named") {
  const Array x = program_test::placed({8, 4}, on_devices(sa::P("x")));
  const auto f = sa::jit([](const Array& p, const Array& v) {
    return sa::cond(
        p, [](const Array& a) { return sa::sum(a, 0); }, [](const Array& a) { return a[0] * 2; }, v);
  });
  const auto transfers = sa::explain(f, Array(true), x).transfers();
  REQUIRE_FALSE(transfers.empty());
  bool in_sum = false;  // branch 1: of what is true
  for (const auto& t : transfers) {
    CAPTURE(t.reason);
    CHECK(t.reason.find("(in branch ") != std::string::npos);
    in_sum |= t.reason.find("(in branch 1)") != std::string::npos;
  }
  CHECK(in_sum);
  CHECK(sa::testing::read<float>(f(Array(true), x)) == sa::testing::read<float>(sa::sum(x, 0)));
  CHECK(sa::testing::read<float>(f(Array(false), x)) == sa::testing::read<float>(x[0] * 2));
  // The branch that does not run contains an endless loop.
  const auto guarded = sa::jit([](const Array& p, const Array& v) {
    return sa::cond(
        p, [](const Array& a) { return a + 1; },
        [](const Array& a) {
          return sa::while_loop([](const Array& c) { return sa::sum(c) > -1; },
                                [](const Array& c) { return c * 1; }, a);
        },
        v);
  });
  CHECK(guarded(Array(true), sa::ones({2})).to_vector<float>() == std::vector<float>{2, 2});
  // Branches that differ in constants only are different programs.
  for (const double k : {1.0, 2.0})
    CHECK(sa::cond(
              Array(true), [&](const Array& a) { return a * sa::exp(sa::full({2}, k)); },
              [](const Array& a) { return a * 1; }, sa::ones({2}))
              .to_vector<double>()[0] == doctest::Approx(std::exp(k)));
  // Neither branch needs the operand, or both give it back.
  CHECK(sa::cond(
            x[0][0] > 100, [](const Array&) { return sa::ones({2}); },
            [](const Array&) { return sa::zeros({2}); }, x)
            .to_vector<float>() == std::vector<float>{0, 0});
  const auto either = sa::jit([](const Array& p, const Array& v) {
    return sa::cond(
        p, [](const Array& a) { return a; }, [](const Array& a) { return a; }, v);
  });
  CHECK(sa::testing::read<float>(either(Array(false), x)) == sa::testing::read<float>(x));
}

TEST_CASE("branches: messages") {
  const Array x = sa::ones({3}), p = sa::array({true})[0];
  const auto id = [](const Array& a) { return a; };
  CHECK(error<sa::ShapeError>([&] { (void)sa::cond(x > 0, id, id, x); }) ==
        "cond: the predicate is bool[3]. It is one number for all: a scalar. Reduce it with all() or any(), "
        "or choose "
        "elements with where().");
  CHECK(error<sa::ShapeError>([&] {
          (void)sa::cond(
              p, id, [](const Array& a) { return sa::sum(a); }, x);
        }) ==
        "cond: if_false gives f32[] where if_true gives f32[3]. All branches give the same shapes. Pad or "
        "broadcast "
        "them.");
  CHECK(error<sa::DTypeError>([&] {
          (void)sa::cond(
              p, id, [](const Array& a) { return a > 0; }, x);
        }) ==
        "cond: if_false gives bool[3] where if_true gives f32[3]. All branches give the same dtypes. Convert "
        "with "
        "astype.");
  CHECK(error<sa::TreeError>([&] {
          (void)sa::cond(
              p, id, [](const Array&) { return Array(); }, x);
        }) ==
        "cond: if_false gives no array where if_true gives one. All branches give arrays in the same places. "
        "Return "
        "zeros where there is nothing.");
  CHECK(error<sa::DTypeError>([&] { (void)sa::switch_(Array(1.0), std::tuple(id, id), x); }) ==
        "switch_: the index is f32[]. It is the number of a branch: an integer. Convert it with "
        "astype(int32).");
  CHECK(error<sa::ShapeError>([&] {
          (void)sa::switch_(sa::array({1, 2}), std::tuple(id, id), x);
        }) ==
        "switch_: the index is i32[2]. It is one number for all: a scalar. Choose elements with where() or "
        "choose().");
  CHECK(error<sa::ShapeError>([&] {
          (void)sa::switch_(Array(1), std::vector<Array (*)(const Array&)>{}, x);
        }) == "switch_: there is no branch. One of several runs. Give one or more.");
  const auto prints = [](const Array& a) {
    sa::debug::print("{}", a);
    return a;
  };
  CHECK(
      error<sa::TraceError>([&] { (void)sa::cond(p, id, prints, x); }) ==
      "cond: a branch prints or calls the host (debug::print). Branches run on the devices only. Return what "
      "is to be "
      "seen.");
  CHECK(error<sa::TraceError>([&] {
          (void)sa::cond(
              p, id, [](const Array& a) { return a * a.item<float>(); }, Array(1.f));
        }).find("reading a value inside a trace") != std::string::npos);
  const auto positive = [](const Array& a) { return sa::sum(a) > 0; };
  CHECK(error<sa::ShapeError>([&] { (void)sa::while_loop([](const Array& a) { return a > 0; }, id, x); }) ==
        "while_loop: the condition is bool[3]. It is one number for all: a scalar. Reduce it with all() or "
        "any(), or "
        "choose elements with where().");
  CHECK(error<sa::ShapeError>([&] {
          (void)sa::while_loop(
              positive, [](const Array& a) { return sa::sum(a); }, x);
        }) ==
        "while_loop: the carry is f32[3] before a step and f32[] behind it. A carry keeps its shape. Return "
        "it as it "
        "came, or begin with that shape.");
  CHECK(error<sa::TraceError>([&] {
          (void)sa::while_loop(positive, prints, x);
        }).find("while_loop: a step prints") == 0);
  CHECK(error<sa::Error>([&] {
          (void)sa::grad([&](const Array& v) {
            return sa::sum(sa::while_loop([](const Array& c) { return sa::sum(c) < 10; },
                                          [](const Array& c) { return c * 2; }, v));
          })(x);
        }) ==
        "while_loop: reverse-mode derivatives (grad, vjp, jacrev) cannot pass a while_loop: how many steps "
        "it takes, "
        "and so what it would store of them, is known only when it has run. Use fori_loop or scan with a "
        "fixed number "
        "of steps, stop_gradient, or forward mode (jvp, jacfwd).");
}

TEST_CASE("while_loop: under vmap conditions and bodies capture any number of arrays") {
  const auto number = [](float v) {
    Array a = sa::array({v, 0.f})[0];
    a.to_vector<float>();  // no literal
    return a;
  };
  const Array xs = sa::array({1.f, 2.f, 3.f});
  for (int of_condition = 0; of_condition < 4; of_condition++)
    for (int of_body = 0; of_body < 4; of_body++)
      for (int carries = 1; carries < 4; carries++) {
        CAPTURE(of_condition);
        CAPTURE(of_body);
        CAPTURE(carries);
        std::vector<Array> limit(static_cast<std::size_t>(of_condition)),
            factor(static_cast<std::size_t>(of_body));
        for (Array& a : limit) a = number(10);
        for (Array& a : factor) a = number(2);
        using Carry = std::vector<Array>;
        const auto loop = [&](const Array& x) {
          const Carry last = sa::while_loop(
              [&](const Carry& c) {
                Array goes_on = c[0] < 40;
                for (const Array& l : limit) goes_on = goes_on & (c[0] < l);
                return goes_on;
              },
              [&](const Carry& c) {
                Carry next = c;
                next[0] = c[0] + 1;
                for (const Array& f : factor) next[0] = next[0] * f;
                for (std::size_t k = 1; k < c.size(); k++) next[k] = c[k] + 1;
                return next;
              },
              Carry(static_cast<std::size_t>(carries), x));
          return last;
        };
        const Carry got = sa::vmap(loop)(xs);
        for (std::size_t row = 0; row < 3; row++) {
          double c = static_cast<double>(row + 1), steps = 0;
          for (; c < (of_condition > 0 ? 10 : 40); steps++) c = (c + 1) * std::pow(2, of_body);
          CHECK(got[0].to_vector<float>()[row] == c);
          for (std::size_t k = 1; k < got.size(); k++)
            CHECK(got[k].to_vector<float>()[row] == static_cast<double>(row + 1) + steps);
        }
      }
}

TEST_CASE("while_loop: one loop that begins as zeros and as something else is placed twice") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(sa::ones({16, 8}), sa::NamedSharding(mesh, sa::P("x")));
  const auto inner = sa::jit([](const Array& rows, const Array& first) {
    return sa::while_loop([](const Array& c) { return sa::max(c) < 40; },
                          [&](const Array& c) { return c + sa::sum(rows, 0); }, first);
  });
  for (const bool zeros_first : {true, false}) {
    const auto outer = sa::jit([&](const Array& rows) {
      if (zeros_first) return inner(rows, sa::zeros({8})) - 1000 * inner(rows, sa::ones({8}));
      const Array of_ones = inner(rows, sa::ones({8}));
      return inner(rows, sa::zeros({8})) - 1000 * of_ones;
    });
    CHECK(outer(x).to_vector<float>() == std::vector<float>(8, 48 - 1000 * 49.f));
  }
}

}  // namespace conditional_test
