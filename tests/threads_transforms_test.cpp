// Derivatives, maps, modes, callbacks and errors on several threads at once. Each value is compared with plain arithmetic.
#include <atomic>
#include <functional>
#include <future>

#include "messages.h"
#include "threads_helpers.h"

namespace threads_transforms_test {

using namespace shardarray::testing::threads;
using shardarray::Array;
using shardarray::testing::message_of;
namespace sa = shardarray;

// ---------------------------------------------------------------- derivatives

// d/dx sum(x^3 * k), and what jit and captured arrays make of it.
namespace {

/// f() in another thread.
template <class F> auto elsewhere(const F& f) { return std::async(std::launch::async, f).get(); }

}  // namespace

TEST_CASE("threads: what another thread makes in a function that is differentiated is part of it") {
  const auto doubled = sa::jit([](const Array& v) { return v * 2; });
  const auto square =
      sa::custom_vjp([](const Array& v) { return v * v; }, [](const Array& v) { return std::pair(v * v, v); },
                     [](const Array& v, const Array& g) { return g * v * 2; });
  using Function = std::function<Array(const Array&)>;
  const std::vector<Function> all = {
      [](const Array& x) { return x * x * x; },
      [](const Array& x) { return sa::block_until_ready(sa::sin(x) * x) + x; },
      [&](const Array& x) { return doubled(x) * x; },
      [&](const Array& x) { return doubled(doubled(x * x)); },
      [&](const Array& x) { return square(x) * x; },
      [&](const Array& x) { return sa::jit([&](const Array& v) { return v * x; })(x); },
      [](const Array& x) {
        return sa::fori_loop(
            0, 3, [&](const Array&, const Array& c) { return c * x; }, x);
      },
      [](const Array& x) {
        return sa::cond(
            x > 0, [](const Array& v) { return v * v; }, [](const Array& v) { return -v; }, x);
      },
      [&](const Array& x) { return x.item<float>() * x * x; },
      [](const Array& x) { return sa::device_put(sa::block_until_ready(x * x), sa::devices("cpu")[1]) * 2; },
      [](const Array& x) { return sa::pmap([](const Array& v) { return v * v; })(sa::ones(8) * x)[3]; },
      [](const Array& x) { return sa::vmap([&](const Array& v) { return v * x; })(sa::ones(2))[0] * x; }};
  const Array at(1.5f);
  for (std::size_t k = 0; k < all.size(); k++) {
    CAPTURE(k);
    const Function& f = all[k];
    const Function other = [&](const Array& x) { return elsewhere([&] { return f(x); }); };
    const Function both = [&](const Array& x) { return elsewhere([&] { return f(x) * x; }) + f(x); };
    const Function plain = [&](const Array& x) { return f(x) * x + f(x); };
    const auto same = [](const Array& a, const Array& b) {
      CHECK(a.item<float>() == doctest::Approx(b.item<float>()));
    };
    for (const auto& [got, want] : {std::pair(other, f), std::pair(both, plain)}) {
      same(sa::grad(got)(at), sa::grad(want)(at));
      const auto [value, slope] = sa::value_and_grad(got)(at);
      same(value, want(at));
      same(slope, sa::grad(want)(at));
      same(std::get<0>(sa::vjp(got, at).second(Array(1.0f))), sa::grad(want)(at));
      if (k == 4) continue;  // no forward rule
      same(sa::jvp(got, at, Array(1.0f)).second, sa::grad(want)(at));
    }
  }
}

TEST_CASE("threads: gradients of several threads keep to themselves") {
  const Array two(2.0f);
  const Array done = sa::grad([&](const Array& x) {
    elsewhere([&] {
      expect(sa::grad([](const Array& v) { return v * v; })(Array(3.0f)).item<float>() == 6, "own gradient");
      expect((two + 1).item<float>() == 3, "own array");
      return 0;
    });
    return x * x;
  })(two);
  elsewhere([&] { return expect((done * 2).item<float>() == 8, "what was derived"), 0; });
  // What is part of two derivatives on two threads would be lost to one.
  const auto text = message_of<sa::TraceError>([&] {
    static_cast<void>(sa::grad([](const Array& x) {
      return elsewhere([&] { return sa::grad([&](const Array& v) { return v * x; })(x); });
    })(two));
  });
  CHECK(text.find("f32[] depends on a variable by which another thread differentiates just now, and this is "
                  "part of another "
                  "function that is differentiated: it would be lost to one of the derivatives. Take "
                  "stop_gradient of it, "
                  "or compute both in one thread.") != std::string::npos);
}

TEST_CASE(
    "threads: what is made in a function that is differentiated and depends on no variable is anybody's") {
  const auto scaled = sa::jit([](const Array& v) { return v * sa::array({1.0, 2.0, 3.0}); });
  const auto donating = sa::jit(
      [](const Array& v) {
        return v * sa::array({1.0, 2.0, 3.0});
      },
      {.donate = sa::Donate::all});
  const Array three = sa::block_until_ready(sa::ones(3) * 3);
  static_cast<void>(sa::grad([&](const Array& x) {
    const Array constant = sa::array({1.0, 2.0, 3.0}), index = sa::array({2, 1, 0}), key = sa::random::key(3),
                whole = sa::floor(x).astype(sa::int32);
    const Array r = sa::sum(scaled(x) + donating(x + 0));  // traced here first
    elsewhere([&] {
      const auto slope = [&](const std::function<Array(const Array&)>& f) {
        return sa::grad([&](const Array& v) { return sa::sum(f(v)); })(three).to_vector<float>();
      };
      using Slopes = std::vector<float>;
      CHECK(slope([&](const Array& v) { return scaled(v); }) == Slopes{1, 2, 3});
      CHECK(slope([&](const Array& v) { return v * constant; }) == Slopes{1, 2, 3});
      CHECK(slope([&](const Array& v) { return sa::take(v, index) * 2; }) == Slopes{2, 2, 2});
      CHECK(slope([&](const Array& v) { return v * (whole + 1); }) == Slopes{4, 4, 4});
      CHECK(slope([&](const Array& v) { return v * sa::stop_gradient(x); }) == Slopes{3, 3, 3});
      static_cast<void>(slope([&](const Array& v) { return v * sa::random::normal(key, {3}); }));
      // Nothing is kept for the others' derivative.
      Array p = sa::block_until_ready(sa::ones(3) * 5), given = p;
      const Array q = donating(p);
      CHECK(given.is_deleted());
      CHECK(slope([&](const Array& v) { return v * q; }) == Slopes{5, 10, 15});
      return 0;
    });
    return r;
  })(three));
}

TEST_CASE("threads: one jitted loss is differentiated by many threads, traced by whichever is first") {
  for (int round = 0; round < rounds(10); round++) {
    const auto loss = sa::jit([](const Array& v) {
      return sa::sum(v * v * sa::array({1.0, 2.0, 3.0}) + sa::logsumexp(v) * sa::arange(3.0));
    });
    const Array at = sa::array({1.0, 0.5, 0.25});
    const std::vector<float> want =
        sa::grad([](const Array& v) {
          return sa::sum(v * v * sa::array({1.0, 2.0, 3.0}) + sa::logsumexp(v) * sa::arange(3.0));
        })(at)
            .to_vector<float>();
    together([&](int) {
      for (int k = 0; k < 3; k++) {
        const auto got = sa::value_and_grad(loss)(at).second.to_vector<float>();
        for (std::size_t i = 0; i < 3; i++) expect(std::abs(got[i] - want[i]) < 1e-5f, "gradient");
      }
    });
  }
}

TEST_CASE("threads: gradients of functions that capture one lazy array") {
  for (int round = 0; round < rounds(3); round++) {
    const Array shared = rows(16) * 2 + 1, two = sa::filter_shard(rows(16) * 0 + 2, over(0, 8));
    const auto step = sa::jit([](Array x, Array y) { return x * y; });
    together([&](int t) {
      const auto loss = [&](Array x) {
        return sa::sum(t % 2 ? x * shared * two : step(step(x, shared), two));
      };
      for (int k = 0; k < 3; k++) expect(sa::grad(loss)(rows(16)), counting(16, 4, 2), "gradient");
      const auto [value, g] = sa::value_and_grad(loss)(sa::ones({8, 2}));
      expect(value.item<float>() == 4 * 136 + 32, "value");
      expect(g, counting(16, 4, 2), "gradient with value");
    });
  }
}

TEST_CASE(
    "threads: a pullback is made on one thread, called on several, destroyed on another; others donate") {
  const auto step = sa::jit([](Array x) { return x + 1; }, {.donate = sa::Donate::all});
  for (int round = 0; round < rounds(3); round++) {
    const auto f = [](Array x) {
      return sa::jit([](Array y) { return y * y; })(x) + sa::filter_shard(x * 2, over(0, 8));
    };
    using Made = decltype(sa::vjp(f, rows(16)));
    std::unique_ptr<Made> made;
    std::thread([&] { made = std::make_unique<Made>(sa::vjp(f, rows(16))); }).join();
    together([&](int t) {
      if (t == 0) {
        for (int k = 0; k < 4; k++) {
          const Array x = sa::block_until_ready(rows(16));
          expect(step(x), counting(16, 1, 1), "donating step");
          expect(x.is_deleted(), "an open pullback is in nobody's way");
        }
        return;
      }
      expect(
          made->first,
          [] {
            Values v;
            for (float x : counting(16)) v.push_back(x * x + 2 * x);
            return v;
          }(),
          "value");
      for (int k = 1; k < 4; k++)
        expect(std::get<0>(made->second(sa::full({8, 2}, static_cast<float>(k)))),
               counting(16, 2.0f * static_cast<float>(k), 2.0f * static_cast<float>(k)), "pulled back");
    });
    std::thread([&] { made.reset(); }).join();
  }
}

TEST_CASE("threads: maps and gradients side by side") {
  const Array x = put(rows(32), over(0, 8)), lazy = x * 1;
  const Values squares = [] {
    Values v;
    for (float k : counting(32)) v.push_back(k * k);
    return v;
  }();
  const auto square = [](Array r) { return r * r; };
  const auto over_rows =
      sa::shard_map(square, {sa::make_mesh({{"x", 8}}), sa::PartitionSpec("x"), sa::PartitionSpec("x")});
  const auto centred = sa::pmap([](Array r) { return r - sa::psum(r, "i") / 8; }, {.axis_name = "i"});
  const auto both = [&](Array y) { return sa::sum(sa::vmap(square)(y) + sa::pmap(square)(y)); };
  Values deviations;
  for (int row = 0; row < 8; row++)
    for (int k = 0; k < 4; k++) deviations.push_back(static_cast<float>(4 * row) - 14);
  for (int round = 0; round < rounds(2); round++)
    together([&](int t) {
      for (int k = 0; k < 5; k++) switch ((t + k) % 5) {
          case 0: expect(sa::vmap(square)(lazy), squares, "vmap"); break;
          case 1: expect(sa::pmap(square)(lazy), squares, "pmap"); break;
          case 2: expect(over_rows(lazy), squares, "shard_map"); break;
          case 3: expect(centred(lazy), deviations, "psum"); break;
          default: expect(sa::grad(both)(lazy), counting(32, 4), "gradient of maps"); break;
        }
    });
}

// ---------------------------------------------------------------- what belongs to a thread

TEST_CASE("threads: modes are a thread's own") {
  const Array placed = put(sa::array(counting(64, 0.1f)), sa::PositionalSharding(sa::devices()));
  const auto sort = sa::jit([](Array v) { return sa::sort(v); });
  const auto sum = sa::jit([](Array v) { return sa::sum(v); });
  const auto bits_of = [](bool how) {
    const sa::random::partitionable mode(how);
    return sa::random::bits(sa::random::key(1), {3}).to_vector<std::uint32_t>();
  };
  const auto newer = bits_of(true), older = bits_of(false);
  float exact = 0;
  {
    const sa::reproducible on(true);
    exact = sum(sa::array(counting(64, 0.1f))).item<float>();
  }
  for (int round = 0; round < rounds(3); round++)
    together([&](int t) {
      for (int k = 0; k < 3; k++) {
        if (t == 0) {
          const sa::policy::strict guard;
          expect(throws<sa::ShardingError>([&] { sort(placed).block_until_ready(); }), "strict");
          continue;
        }
        if (t == 1) {
          const sa::reproducible on(true);
          expect(sum(placed).item<float>() == exact && (sa::sum(placed * 1)).item<float>() == exact,
                 "reproducible");
        }
        expect(sort(placed), counting(64, 0.1f), "not strict");
        const sa::default_device mine(dev(t));
        expect((sa::ones({3}) + 1).devices()[0].id == t && rows(8).devices()[0].id == t, "default device");
        const sa::random::partitionable mode(t == 2);
        expect(
            sa::random::bits(sa::random::key(1), {3}).to_vector<std::uint32_t>() == (t == 2 ? newer : older),
            "random bits");
      }
    });
}

TEST_CASE("threads: long lazy chains, own ones and on a shared start") {
  const Array start = sa::array(std::vector<int>{5}) * 1;
  together([&](int t) {
    Array x = t % 2 ? start : start + 0;
    std::uint32_t want = 5;
    for (int k = 0; k < rounds(400); k++) {
      x = x * 3 + t;
      want = want * 3 + static_cast<std::uint32_t>(t);
    }
    expect(x[0].item<int>() == static_cast<int>(want), "chain");
  });
}

TEST_CASE("threads: prints, callbacks and what they throw stay with the caller's thread") {
  std::atomic<int> seen{0};
  std::ostringstream text[kThreads];
  const auto f = sa::jit([&](Array x) {
    sa::debug::callback(
        [&](const sa::HostValues& v) {
          seen++;
          if (v.arrays[0].item<float>() < 0) throw std::runtime_error("negative");
        },
        {sa::sum(x)});
    return x + 1;
  });
  const int calls = rounds(4);
  together([&](int t) {
    for (int k = 0; k < calls; k++) {
      if (t == 0) expect(throws<std::runtime_error>([&] { f(-rows(16)); }), "the callback's exception");
      else expect(f(rows(16)), counting(16, 1, 1), "result beside callbacks");
      sa::debug::print("{}", {sa::sum(rows(8))}, {.stream = &text[t]});
    }
  });
  CHECK(seen == kThreads * calls);
  for (const std::ostringstream& s : text)
    CHECK(s.str().size() == static_cast<std::size_t>(calls) * 5);  // "36.0\n"
}

TEST_CASE("threads: one thread's errors leave the others alone") {
  std::atomic<int> failing{0};
  const auto f = sa::jit([&](Array x, int k) {
    if (k < 0) {
      failing++;
      throw std::invalid_argument("user");
    }
    return x * k;
  });
  const Array shared = rows(16) * 2;
  for (int round = 0; round < rounds(3); round++)
    together([&](int t) {
      if (t == 0) expect(throws<std::invalid_argument>([&] { f(shared, -1); }), "the user's exception");
      if (t == 1) {
        Array x = rows(16);
        f(std::move(x), 1);
        expect(throws<sa::DonationError>([&] { x.block_until_ready(); }), "donated");
      }
      if (t == 2) expect(throws<sa::ShapeError>([&] { sa::eval(shared + sa::ones({7})); }), "shapes");
      if (t == 3)
        expect(throws<sa::TraceError>([&] {
                 sa::jit([](Array x) { return x * x[{0, 0}].item<float>(); })(shared);
               }),
               "read in a trace");
      expect(f(shared, 1 + t), counting(16, 2.0f * static_cast<float>(1 + t)), "after the error");
    });
  CHECK(failing == rounds(3));
}

TEST_CASE("threads: arrays and functions outlive the threads that made them, and die on others") {
  for (int round = 0; round < rounds(3); round++) {
    std::vector<Array> made(3 * kThreads);
    std::vector<std::function<Array(Array)>> functions(kThreads);
    together([&](int t) {
      const auto at = static_cast<std::size_t>(3 * t);
      made[at] = rows(16) * 2 + 1;
      made[at + 1] = sa::block_until_ready(rows(16) * 2) + 1;
      const auto f = sa::jit([](Array x) { return x * 2 + 1; });
      made[at + 2] = f(put(rows(16), over(t, 2)));
      functions[static_cast<std::size_t>(t)] = f;
    });
    together([&](int t) {
      const auto next = static_cast<std::size_t>((t + 1) % kThreads);
      const auto f = std::move(functions[next]);
      expect(f(rows(16)), counting(16, 2, 1), "another's function");
      for (std::size_t k = 0; k < 3; k++) {
        const Array x = std::move(made[3 * next + k]);
        if (k != static_cast<std::size_t>(t) % 3) expect(x, counting(16, 2, 1), "another's array");
      }
    });
  }
}

}  // namespace threads_transforms_test
