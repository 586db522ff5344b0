// Every kind of public call from several threads at once, on the same lazy arrays, jitted functions and donated values. Each value is
// compared with plain arithmetic; ThreadSanitizer checks the rest.
#include <atomic>
#include <functional>

#include "threads_helpers.h"

namespace threads_test {

using namespace shardarray::testing::threads;
using shardarray::Array;
namespace sa = shardarray;

// ---------------------------------------------------------------- one lazy array, every verb

// Arrays that are recorded, not computed: twice the counting numbers plus one, in 8 rows of 3.
using Maker = std::function<Array()>;
const std::vector<std::pair<const char*, Maker>>& lazy_arrays() {
  static const auto halve = sa::jit([](Array x) { return std::pair(x * 2, x / 2); });
  static const auto far =
      sa::pmap([](Array x) { return x * 2 + 1; },
               {.devices = {dev(7), dev(6), dev(5), dev(4), dev(3), dev(2), dev(1), dev(0)}});
  static const std::vector<std::pair<const char*, Maker>> all = {
      {"sum", [] { return rows(24) * 2 + 1; }},
      {"sharded", [] { return put(rows(24), over(0, 8)) * 2 + 1; }},
      {"constraint", [] { return sa::filter_shard(rows(24) * 2, over(0, 8)) + 1; }},
      {"moving constraint", [] { return sa::filter_shard(put(rows(24), over(0, 4)) * 2, over(4, 4)) + 1; }},
      {"constraint at the end",
       [] { return sa::filter_shard(put(rows(24), over(0, 2)) * 2 + 1, over(6, 2)); }},
      {"moving twice",
       [] {
         const Array there = sa::filter_shard(put(rows(24), over(0, 4)) + 1, over(4, 4));
         return sa::filter_shard(there * 2, over(2, 2)) - 1;
       }},
      {"put", [] { return put(rows(24) * 2, over(0, 4)) + 1; }},
      {"long",
       [] {
         Array x = rows(24) * 2;
         for (int k = 0; k < 100; k++) x = x + 1 - 1;
         return x + 1;
       }},
      {"jit results",
       [] {
         const auto [twice, half] = halve(rows(24));
         return twice + half - half + 1;
       }},
      {"constants",
       [] {
         return (sa::arange(24.0) + 1).reshape({8, 3}) * 2 + 1;
       }},
      {"call in a gradient",  // recorded as a call; read after the gradient
       [] {
         Array kept;
         sa::grad([&](Array x) {
           const auto [twice, half] = halve(x);
           kept = twice + 1;
           return sa::sum(kept + half);
         })(rows(24));
         return kept;
       }},
      {"pmap in a gradient",
       [] {
         Array kept;
         sa::grad([&](Array x) { return sa::sum(kept = far(put(x, over(0, 4)))); })(rows(24));
         return kept;
       }},
      {"vmap", [] { return sa::vmap([](Array x) { return x * 2 + 1; })(rows(24)); }},
  };
  return all;
}

using Verb = std::function<void(const Array&, const Values&)>;
void expect_text(const Array& x, const std::string& text) {
  expect(text.find(" 3.") != std::string::npos && text.find("49.") != std::string::npos, "text");
  expect(x.shape() == sa::Shape{8, 3}, "shape");
}
void expect_shards(const Array& x, const Values& want) {
  for (const sa::Shard& s : x.addressable_shards()) {
    const Values piece = s.data.to_vector<float>();
    const auto from = static_cast<std::size_t>(s.index[0].start) * 3;
    for (std::size_t k = 0; k < piece.size(); k++) expect(piece[k] == want[from + k], "shard");
  }
}
const std::vector<Verb>& verbs() {
  static const auto add = sa::jit([](Array x, Array y) { return x + y; });
  static const std::vector<Verb> all = {
      [](const Array& x, const Values& want) { expect(x, want, "read"); },
      [](const Array& x, const Values&) {
        expect(x[{0, 0}].item<float>() == 3, "item");
      },
      [](const Array& x, const Values&) { expect_text(x, sa::to_string(x)); },
      [](const Array& x, const Values&) {
        std::ostringstream s;
        s << x;
        expect_text(x, s.str());
      },
      [](const Array& x, const Values&) { expect(!x.sharding().device_assignment().empty(), "sharding"); },
      [](const Array& x, const Values&) {
        expect(x.devices().size() > 1 || x.is_fully_replicated(), "devices");
      },
      expect_shards,
      [](const Array& x, const Values&) { expect(x.addressable_data(0).size() >= 3, "data"); },
      [](const Array& x, const Values& want) { expect(x.block_until_ready(), want, "wait"); },
      [](const Array& x, const Values&) { sa::eval(x); },
      [](const Array& x, const Values& want) { expect(sa::device_put(x, dev(3)), want, "put"); },
      [](const Array& x, const Values& want) { expect(sa::filter_shard(x, over(0, 8)), want, "constraint"); },
      [](const Array& x, const Values& want) { expect(sa::filter_shard(x, over(5, 2)), want, "moved"); },
      [](const Array& x, const Values&) {
        sa::inspect_array_sharding(
            x, [&](const sa::Sharding& s) { expect(!sa::render_sharding(x.shape(), s).empty(), "picture"); });
      },
      [](const Array& x, const Values&) { expect(!sa::explain(add, x, x).to_string().empty(), "explain"); },
      [](const Array& x, const Values& want) { expect(add(x, x) / 2, want, "jit"); },
      [](const Array& x, const Values& want) {
        expect(sa::grad([&](Array y) { return sa::sum(y * x); })(sa::ones({8, 3})), want, "grad");
      },
      [](const Array& x, const Values& want) {
        expect(sa::vmap([](Array r) { return -r; })(-x), want, "vmap");
      },
      [](const Array& x, const Values& want) {
        expect(sa::pmap([](Array r) { return -r; })(-x), want, "pmap");
      },
      [](const Array& x, const Values& want) { expect((x + x) - x, want, "expression"); },
      [](const Array& x, const Values&) { expect(!x.type_string().empty() && !x.is_deleted(), "type"); },
      [](const Array& x, const Values& want) { expect(Array(x), want, "copy"); },
  };
  return all;
}

TEST_CASE("threads: one lazy array, every verb beside every other") {
  const Values want = counting(24, 2, 1);
  const std::size_t n = verbs().size();
  for (const auto& row : lazy_arrays()) {
    const auto& name = row.first;
    const auto& make = row.second;
    CAPTURE(name);
    for (std::size_t step = 0; step < n; step += shardarray::testing::full_scale() ? 1 : 5)
      for (std::size_t first = step % 3; first < n; first += shardarray::testing::full_scale() ? 1 : 4) {
        CAPTURE(first);
        CAPTURE(step);
        const Array x = make();
        together([&](int t) {
          for (std::size_t k = 0; k < 2; k++)
            verbs()[(first + static_cast<std::size_t>(t) * step + k) % n](x, want);
        });
      }
  }
}

TEST_CASE("threads: a number that is a result as it is is its readers', and nobody's where it is donated") {
  const auto f = sa::jit([](Array x) { return x * 2; });
  for (int round = 0; round < rounds(40); round++) {
    const float v = static_cast<float>(round % 50) + 0.5f;
    Array y = sa::stop_gradient(Array(v));  // held by nobody else
    together([&](int) {
      CHECK(y.item<float>() == v);
      CHECK((y + Array(v)).item<float>() == 2 * v);
      CHECK(f(sa::stop_gradient(Array(v))).item<float>() == 2 * v);
    });
    CHECK(f(std::move(y)).item<float>() == 2 * v);
    CHECK((sa::zeros({2}) + Array(v)).to_vector<float>() == Values{v, v});
  }
}

TEST_CASE("threads: a lazy array inside an open gradient is read by others") {
  for (int round = 0; round < rounds(2); round++) {
    const auto f = sa::jit([](Array x) { return x * x; });
    const Array g = sa::grad([&](Array x) {
      const Array y = f(x) + x;
      together([&](int t) {
        verbs()[static_cast<std::size_t>(t)](y * 0 + sa::array(counting(24, 2, 1), sa::Shape{8, 3}),
                                             counting(24, 2, 1));
      });
      return sa::sum(y);
    })(rows(24));
    expect(g, counting(24, 2, 1), "gradient");
  }
}

TEST_CASE("threads: roots that share most of one graph") {
  for (int round = 0; round < rounds(3); round++) {
    std::vector<Array> x = {rows(16), rows(16) * 2};
    std::vector<float> factor = {1, 2};
    for (int k = 2; k < 20; k++) {
      x.push_back(x[static_cast<std::size_t>(k - 1)] + x[static_cast<std::size_t>(k - 2)]);
      factor.push_back(factor[static_cast<std::size_t>(k - 1)] + factor[static_cast<std::size_t>(k - 2)]);
    }
    together([&](int t) {
      for (std::size_t k = 0; k < x.size(); k++) {
        const std::size_t i = t % 2 ? k : x.size() - 1 - k;
        expect(x[i], counting(16, factor[i]), "shared graph");
      }
    });
  }
}

// ---------------------------------------------------------------- jit

TEST_CASE("threads: one jitted function, traced and compiled at once") {
  for (int round = 0; round < rounds(3); round++) {
    const Array captured = rows(8).reshape({8}) * 0 + 1;  // lazy, and everybody's
    const auto f = sa::jit([captured](Array x, int k) { return x * k + captured[0]; });
    together([&](int t) {
      for (int k = 0; k < 6; k++) {
        const int n = 8 * (1 + (t + k) % 2), by = 1 + k % 3;
        expect(f(rows(n), by), counting(n, static_cast<float>(by), 1), "jit");
        expect(f.traces() >= 1 && f.cache_size() >= 1, "counts");
      }
    });
    CHECK(f.cache_size() == 6);
    CHECK(f.traces() >= 6);
    CHECK(f.traces() <= 6 * kThreads);
  }
}

TEST_CASE("threads: a jitted function whose cache is too small") {
  for (int round = 0; round < rounds(2); round++) {
    const auto f = sa::jit([](Array x) { return x * 3; }, {.max_entries = 2});
    together([&](int t) {
      for (int k = 0; k < 6; k++) {
        const int n = 8 * (1 + (t * 5 + k) % 4);
        expect(f(rows(n)), counting(n, 3), "evicted");
        expect(f.cache_size() <= 3, "bound");
      }
    });
  }
}

TEST_CASE("threads: one jitted function on more placements than it keeps programs") {
  const auto f = sa::jit([](Array x) { return x * 2 + 1; });
  for (int round = 0; round < rounds(1); round++)
    together([&](int t) {
      for (int k = 0; k < 18; k++) {
        const int i = (k + 5 * t) % 18;
        expect(f(i < 8 ? put(rows(24), over(i, 1)) : put(rows(24), over((i - 8) % 5, 1 << (i % 3)))),
               counting(24, 2, 1), "placement");
      }
    });
}

// ---------------------------------------------------------------- donation

// What one reader may see of an array that another thread may take: all of the old value, or the error.
void read_whole(const Array& x, const Values& old, int how) {
  try {
    switch (how % 5) {
      case 0: expect(x, old, "reader"); return;
      case 1: expect(x * 1, old, "lazy reader"); return;
      case 2: expect(sa::device_put(x, dev(2)), old, "put reader"); return;
      case 3: {
        const std::vector<sa::Shard> views = x.addressable_shards();
        for (int again = 0; again < 3; again++)
          for (const sa::Shard& s : views)
            expect(s.data.to_vector<float>()[0] ==
                       old[static_cast<std::size_t>(s.index[0].start) * old.size() / 8],
                   "view");
        return;
      }
      default: expect(!x.sharding().device_assignment().empty(), "sharding"); return;
    }
  } catch (const sa::DonationError&) {}
}

// Computed ones, on one device and on eight.
std::vector<Array> computed(int count, int n) {
  std::vector<Array> x;
  for (int k = 0; k < count; k++) x.push_back(k % 2 ? put(rows(n), over(0, 8)) : rows(n) * 1);
  sa::eval(x);
  return x;
}

TEST_CASE("threads: arrays donated by option beside readers of other handles") {
  const int n = 1 << 10;
  const Values old = counting(n), fresh = counting(n, 1, 1);
  const auto step = sa::jit([](Array x) { return x + 1; }, {.donate = sa::Donate::all});
  for (int round = 0; round < rounds(5); round++) {
    const std::vector<Array> x = computed(30, n);
    together([&](int t) {
      for (std::size_t k = 0; k < x.size(); k++) {
        const Array mine = x[k];
        Array y;
        if (t > 0) read_whole(mine, old, round % 2 ? 3 : t + static_cast<int>(k));
        else if (!throws<sa::DonationError>([&] { y = step(mine); })) expect(y, fresh, "result");
      }
    });
  }
}

TEST_CASE("threads: several threads donate one array by option") {
  const int n = 1 << 10;
  const auto step = sa::jit([](Array x) { return x + 1; }, {.donate = sa::Donate::all});
  for (int round = 0; round < rounds(3); round++) {
    const std::vector<Array> x = computed(30, n);
    std::vector<std::atomic<int>> won(x.size());
    together([&](int) {
      for (std::size_t k = 0; k < x.size(); k++) {
        Array y;
        if (throws<sa::DonationError>([&] { y = step(x[k]); })) continue;
        expect(y, counting(n, 1, 1), "result");
        won[k]++;
      }
    });
    for (const std::atomic<int>& w : won) CHECK(w > 0);
  }
}

TEST_CASE("threads: an array that is about to be donated again and again, and never is") {
  const auto step = sa::jit([](Array x) { return x + 1; }, {.donate = sa::Donate::all});
  const Array x = computed(2, 64)[1];
  const std::vector<sa::Shard> views = x.addressable_shards();  // so nobody can take its memory
  together([&](int t) {
    for (int k = 0; k < 5000; k++) {
      if (t < 2) throws<sa::DonationError>([&] { step(x); });
      else throws<sa::DonationError>([&] { x * 1; });
    }
  });
  expect(x, counting(64), "kept");
}

TEST_CASE("threads: one of several results is donated by option, the others are read") {
  const auto step = sa::jit([](Array x) { return x + 1; }, {.donate = sa::Donate::all});
  const auto both = sa::jit([](Array x) { return std::pair(x * 2, x * 3); });
  for (int round = 0; round < rounds(5); round++) {
    Array two, three;
    sa::grad([&](Array x) {
      std::tie(two, three) = both(x);
      return sa::sum(two + three);
    })(rows(64));
    sa::eval(two, three);
    together([&](int t) {
      if (t == 0) expect(step(two), counting(64, 2, 1), "result");
      else expect(three, counting(64, 3), "the other result");
    });
    expect(three, counting(64, 3), "the other result");
  }
}

TEST_CASE("threads: arrays donated by std::move, each in its own thread, views held by others") {
  const int n = 1 << 10;
  const auto step = sa::jit([](Array x) { return x + 1; });
  for (int round = 0; round < rounds(4); round++) {
    std::vector<Array> x;
    std::vector<std::vector<sa::Shard>> views;
    for (int t = 0; t < kThreads; t++) {
      x.push_back(t % 2 ? put(rows(n), over(0, 8)) : rows(n));
      views.push_back(x.back().addressable_shards());
    }
    together([&](int t) {
      Array mine = std::move(x[static_cast<std::size_t>(t)]);
      for (int k = 0; k < 8; k++) {
        mine = step(std::move(mine));
        auto& others = views[static_cast<std::size_t>((t + 1) % kThreads)];
        for (const sa::Shard& s : others)
          expect(s.data.to_vector<float>()[0] == static_cast<float>(s.index[0].start * n / 8 + 1), "view");
        if (k == 4) others.clear();
      }
      expect(mine, counting(n, 1, 8), "result");
    });
  }
}

TEST_CASE("threads: handles are given up on one thread, the last one is donated on another") {
  const int n = 1 << 10;
  const auto step = sa::jit([](Array x) { return x + 1; });
  for (int round = 0; round < rounds(10); round++) {
    Array x = rows(n) * 1;
    std::vector<Array> copies(kThreads, x);
    together([&](int t) {
      Array mine = std::move(copies[static_cast<std::size_t>(t)]);
      if (t == 0) expect(step(std::move(x)), counting(n, 1, 1), "result");
      else expect(mine, counting(n), "copy");
    });
  }
}

}  // namespace threads_test
