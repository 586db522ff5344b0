// cond and switch_ that overwrite their operands: the memory of results, and values compared with branches run alone.
#include <functional>

#include "golden.h"
#include "memory_helpers.h"
#include "program_of.h"

namespace branches_in_place_test {

namespace sa = shardarray;
using namespace program_test;
using Pair = std::pair<Array, Array>;

namespace {

struct Branch {
  std::string name;
  std::function<Pair(const Pair&, const Array& w)> f;
  bool
      in_place;  // each result at each point reads the operand of its number at that point, and nothing of the other one elsewhere
};
const std::vector<Branch>& branches() {
  static const std::vector<Branch> all{
      {"kept", [](const Pair& p, const Array&) { return p; }, true},
      {"one kept", [](const Pair& p, const Array&) { return Pair(p.first, p.second * 2); }, true},
      {"elements", [](const Pair& p, const Array&) { return Pair(p.first + 1, sa::tanh(p.second)); }, true},
      {"elements of both",
       [](const Pair& p, const Array&) { return Pair(p.first * p.second, p.second + p.first); }, true},
      {"a part",
       [](const Pair& p, const Array&) { return Pair(p.first.at(1).set(5.0), p.second.at(0).add(1.0)); },
       true},
      {"turned", [](const Pair& p, const Array&) { return Pair(p.second, p.first); }, false},
      {"one twice", [](const Pair& p, const Array&) { return Pair(p.second, p.second); }, false},
      {"a product",
       [](const Pair& p, const Array& w) { return Pair(sa::matmul(p.first, w), p.second - p.first); }, false},
      {"transposed", [](const Pair& p, const Array&) { return Pair(sa::transpose(p.first), p.second + 1); },
       false},
      {"zeros",
       [](const Pair& p, const Array&) {
         return Pair(sa::zeros({8, 8}), sa::zeros_like(p.second));
       },
       true},
      {"a choice",
       [](const Pair& p, const Array& w) {
         return sa::cond(
             sa::sum(w) > 0, [](const Pair& q) { return Pair(q.first * 3, q.second); },
             [](const Pair& q) { return Pair(q.first, q.second * 3); }, p);
       },
       false},
      {"a loop",
       [](const Pair& p, const Array& w) {
         return sa::fori_loop(
             0, 3, [&](const Array& i, const Pair& q) { return Pair(q.first.at(i).set(w[i]), q.second * 2); },
             p);
       },
       false},
  };
  return all;
}

// What there is of the operands beside the choice.
struct Use {
  std::string name;
  bool donated, read_behind;
  Array before(const Array& x) const { return temporary ? x * 1.5 : x; }
  bool temporary = false;
};
const std::vector<Use>& uses() {
  static const std::vector<Use> all{{"donated", true, false},
                                    {"kept", false, false},
                                    {"donated, read behind", true, true},
                                    {"temporary", false, false, true},
                                    {"temporary, read behind", false, true, true}};
  return all;
}

}  // namespace

TEST_CASE("branches in place: any two branches, whatever becomes of what they take") {
  const Array w = numbers({8, 8}, sa::float32, 2) / 8;
  for (const bool cut : {false, true})
    for (const Use& use : uses())
      for (const Branch& first : branches())
        for (const Branch& second : branches()) {
          CAPTURE(cut);
          CAPTURE(use.name);
          CAPTURE(first.name);
          CAPTURE(second.name);
          const auto f = sa::jit(
              [&](const Pair& p, const Array& number) {
                const Pair q(use.before(p.first), use.before(p.second));
                const Pair r = sa::cond(
                    number == 0, [&](const Pair& v) { return first.f(v, w); },
                    [&](const Pair& v) { return second.f(v, w); }, q);
                return std::pair(r, use.read_behind ? Pair(q.first - 1, q.second - 1) : r);
              },
              {.donate_args = use.donated ? std::vector<int>{0} : std::vector<int>{}});
          const auto fresh = [&] {
            const auto placed = [&](const Array& a) {
              return cut ? sa::device_put(a, on_xy(P("x"))) : a + 0;
            };
            return Pair(placed(numbers({8, 8})), placed(numbers({8, 8}, sa::float32, 1)));
          };
          for (const int number : {0, 1}) {
            const Pair given = fresh(), q(use.before(given.first), use.before(given.second));
            const Pair want = (number == 0 ? first : second).f(Pair(q.first + 0, q.second + 0), w);
            const Array chosen(number);
            const auto [got, behind] = use.donated ? f(fresh(), chosen) : f(given, chosen);
            if (!use.donated) CHECK(values(given.first) == values(numbers({8, 8})));
            CHECK(golden::close(values(got.first), values(want.first), 1e-6, 1e-6));
            CHECK(golden::close(values(got.second), values(want.second), 1e-6, 1e-6));
            if (!use.read_behind) continue;
            CHECK(values(behind.first) == values(q.first - 1));
            CHECK(values(behind.second) == values(q.second - 1));
          }
          if (!use.donated || use.read_behind || !first.in_place || !second.in_place) continue;
          const Array zero(0);
          for (const auto& d : sa::explain(f, fresh(), zero).donations()) CHECK(d.reused);
        }
}

TEST_CASE("branches in place: a carry that a step keeps or replaces has one buffer") {
  const auto f = [](const Array& a) {
    return sa::fori_loop(
        0, 5,
        [](const Array& i, const Array& c) {
          return sa::cond(
              i % 2 == 0, [](const Array& x) { return x * 2 + 1; }, [](const Array& x) { return x; }, c);
        },
        a);
  };
  const Array a = numbers({64, 64});
  const std::uint64_t tile = 64 * 64 * 4;
  const std::uint64_t peak = prepare(sa::jit(f), a).program().peak_bytes[0];
  CHECK(peak >= 2 * tile);  // the argument and the result
  CHECK(peak < 2 * tile + 1024);
  CHECK(values(sa::jit(f)(a)) == values(((a * 2 + 1) * 2 + 1) * 2 + 1));
}

TEST_CASE("branches in place: a carry of which branches write parts has one buffer") {
  using Branch = std::function<Array(const Array& t, const Array& i)>;
  const std::vector<Branch> branches{
      [](const Array& t, const Array&) { return t; },
      [](const Array& t, const Array& i) { return t.at(i).set(i); },
      [](const Array& t, const Array& i) { return t.at(i).add(1.0).at(i + 1).set(2.0); },
      [](const Array& t, const Array& i) {
        return sa::fori_loop(
            0, 2, [&](const Array& k, const Array& c) { return c.at(i + k).add(3.0); }, t);
      },
      [](const Array& t, const Array& i) {
        return sa::cond(
            i > 2, [](const Array& c) { return c; }, [&](const Array& c) { return c.at(i).set(i); }, t);
      },
  };
  const Array table = numbers({512, 8});
  const std::uint64_t bytes = 512 * 8 * 4;
  for (std::size_t a = 0; a < branches.size(); a++)
    for (std::size_t b = 0; b < branches.size(); b++) {
      CAPTURE(a);
      CAPTURE(b);
      const auto f = [&](const Array& t) {
        return sa::fori_loop(
            0, 6,
            [&](const Array& i, const Array& c) {
              return sa::cond(
                  i % 2 == 0, [&](const Array& x) { return branches[a](x, i); },
                  [&](const Array& x) { return branches[b](x, i); }, c);
            },
            t);
      };
      CHECK(prepare(sa::jit(f), table).program().peak_bytes[0] < 2 * bytes + 4096);
      Array want = table;
      for (int i = 0; i < 6; i++) want = branches[i % 2 == 0 ? a : b](want, Array(i));
      CHECK(values(sa::jit(f)(table)) == values(want));
    }
}

// What is donated takes a result of the program only; a copy for another one would be work for nothing.
TEST_CASE("branches in place: what is donated is not copied for what does not leave the program") {
  const auto f = sa::jit(
      [](const Array& number, const Array& x) {
        return sa::sum(sa::cond(
            number == 0, [](const Array& v) { return v * 2; }, [](const Array& v) { return v + 1; }, x));
      },
      {.donate_args = {1}});
  const Array zero(0);
  CHECK(sa::explain(f, zero, numbers({64, 64}) + 0).to_string().find("copy") == std::string::npos);
}

// Tangents flow through what a branch makes of it alone: a comparison stops them, though the other branch captures the same array.
TEST_CASE(
    "branches in place: gradients of branches that capture the same arrays are those of the chosen one") {
  using Make = std::function<Array(const Array& x, const Array& s)>;
  const std::vector<Make> makes{
      [](const Array& x, const Array& s) { return sa::where(s > 0, x, x * 3); },
      [](const Array& x, const Array& s) { return sa::where(s > 0, x, x * x); },
      [](const Array& x, const Array& s) { return x * sa::stop_gradient(s) + x; },
      [](const Array& x, const Array&) { return sa::tanh(x); },
      [](const Array& x, const Array& s) { return s * x; },
  };
  const std::vector<std::function<Array(const Array& x)>> captured{
      [](const Array& x) { return sa::sqrt(x - x); },  // its derivative is infinite
      [](const Array& x) { return x * 2; },
      [](const Array& x) {
        return sa::while_loop([](const Array& v) { return sa::sum(v) < 100; },
                              [](const Array& v) { return v * 2; }, sa::stop_gradient(x));
      },
  };
  const Array x = numbers({4}) + 1;
  for (std::size_t c = 0; c < captured.size(); c++)
    for (std::size_t a = 0; a < makes.size(); a++)
      for (std::size_t b = 0; b < makes.size(); b++)
        for (const int number : {0, 1}) {
          const Make& chosen = makes[number == 0 ? a : b];
          if (c == 0 && (number == 0 ? a : b) == 4) continue;  // 0 times infinity
          CAPTURE(c);
          CAPTURE(a);
          CAPTURE(b);
          CAPTURE(number);
          const auto loss = [&](const Array& v) {
            const Array s = captured[c](v);
            return sa::sum(sa::cond(
                Array(number) == 0, [&] { return makes[a](v, s); }, [&] { return makes[b](v, s); }));
          };
          const auto plain = [&](const Array& v) { return sa::sum(chosen(v, captured[c](v))); };
          if (c == 0 && (a == 4 || b == 4)) continue;
          CHECK(golden::close(values(sa::jit(sa::grad(loss))(x)), values(sa::grad(plain)(x)), 1e-6, 1e-6));
        }
}

TEST_CASE("branches in place: a step of multi_steps writes over all that it keeps") {
  const auto optimizer = sa::optim::multi_steps(sa::optim::adam(1e-3), 3);
  const Array w = sa::device_put(numbers({64, 64}), on_xy(P("x"))), g = w * 0.5;
  const auto state = optimizer.init(w);
  const auto step = sa::jit(
      [&](const Array& p, const decltype(state)& s, const Array& grads) {
        const auto [updates, next] = optimizer.update(grads, s, p);
        return std::pair(p + updates, next);
      },
      {.donate_args = {0, 1}});
  int large = 0;
  for (const auto& d : sa::explain(step, w, state, g).donations()) {
    const bool is_count =
        d.path.find("count") != std::string::npos || d.path.find("step") != std::string::npos;
    if (is_count) continue;
    large++;
    CAPTURE(d.path);
    CHECK(d.reused);
  }
  CHECK(large == 4);  // parameters, mu, nu, accumulated gradients
}

}  // namespace branches_in_place_test
