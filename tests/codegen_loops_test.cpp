// Steps that call programs as generated code: loops with fixed numbers of runs, while_loop, cond and switch, in each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <mutex>

#include "codegen_helpers.h"
#include "golden.h"
#include "shardarray/shardarray.h"
#include "with_codegen.h"

namespace codegen_loops_test {

namespace sa = shardarray;
using namespace sa;

namespace {

using Arrays = std::vector<Array>;
using Pair = std::pair<Array, Array>;
using Program = std::function<Arrays(const Array& x, const Array& y)>;

/// Counts the kinds of steps in what it compiles.
class CountingGenerator final : public CodeGenerator {
 public:
  CountingGenerator() : real_(testing::plugin()->make(nullptr, nullptr, nullptr)) {}
  const std::string& target() const override { return real_->target(); }
  std::vector<char> compile(std::span<const CodeSpec> specs, CodeTier tier) override {
    {
      const std::lock_guard lock(mutex_);
      for (const CodeSpec& s : specs)
        if (const auto* const sequence = std::get_if<SequenceSpec>(&s)) count(*sequence);
    }
    return real_->compile(specs, tier);
  }
  std::shared_ptr<const LinkedCode> link(std::span<const char> object, std::size_t n) override {
    return real_->link(object, n);
  }
  int repeats = 0, choices = 0, whiles = 0, updates = 0, moves = 0;
  std::size_t most_inner = 0;  ///< the most calls in an inner sequence

 private:
  void count(const SequenceSpec& s) {
    for (const SequenceSpec::Step& step : s.steps) {
      repeats += std::holds_alternative<SequenceSpec::Repeat>(step);
      choices += std::holds_alternative<SequenceSpec::Choose>(step);
      whiles += std::holds_alternative<SequenceSpec::While>(step);
    }
    for (const KernelSpec& k : s.kernels) {
      updates += std::holds_alternative<UpdateSpec>(k);
      moves += std::holds_alternative<MoveSpec>(k);
    }
    each_inner(s, [&](const SequenceSpec::Inner& inner) {
      most_inner = std::max(most_inner, call_count(*inner.sequence));
      count(*inner.sequence);
    });
  }
  std::unique_ptr<CodeGenerator> real_;
  std::mutex mutex_;
};

/// Runs with generated code from here on, and counts it.
class Counted {
 public:
  Counted() : Counted(std::make_unique<CountingGenerator>()) {}
  ~Counted() { CodeStore::set_instance(before); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  CountingGenerator& generator;
  CodeStore store;
  CodeStore* before;
  testing::WithCodegen always{CodegenMode::always};

 private:
  explicit Counted(std::unique_ptr<CountingGenerator> g)
      : generator(*g), store(std::move(g), ""), before(CodeStore::set_instance(&store)) {}
};

using Bits = std::vector<std::vector<std::uint64_t>>;
std::vector<std::uint64_t> bits(const Array& a) {
  if (is_complex(a.dtype())) {
    auto all = bits(sa::real(a));
    const auto more = bits(sa::imag(a));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  const DType same[] = {uint8, uint16, uint32, uint64};
  const DType to = same[std::bit_width(itemsize(a.dtype())) - 1];
  const Array here = testing::everywhere(a);
  return (a.dtype() == bool_ ? here.astype(uint8) : sa::bitcast(here, to)).to_vector<std::uint64_t>();
}

/// Both ways to run it give the same bits, on one device and on several, with each of these shapes and types.
void check(const Program& program, const std::vector<Shape>& shapes, const std::vector<DType>& types) {
  for (const Shape& shape : shapes)
    for (const DType t : types)
      for (const int devices : {1, 4})
        for (const bool donated : {false, true}) {
          if (devices > 1 && (shape.empty() || shape[0] % devices != 0)) continue;
          CAPTURE(t);
          CAPTURE(shape);
          CAPTURE(devices);
          CAPTURE(donated);
          const auto result = [&] {
            const Mesh mesh = make_mesh({{"d", devices}});
            const auto number = [&](std::uint64_t seed) {
              const Array k = sa::random::randint(sa::random::key(seed), shape, 1, 4);
              const Array a = (t == bool_ ? k % 2 : k).astype(t);
              return devices == 1 ? a : sa::device_put(a, NamedSharding(mesh, P("d")));
            };
            JitOptions options;
            if (donated) options.donate_args = {0};
            auto f = sa::jit([&](const Array& a, const Array& b) { return program(a, b); }, options);
            Bits all;
            for (const Array& r : f(number(1), number(2))) all.push_back(bits(r));
            return all;
          };
          const Bits want = testing::with_codegen(CodegenMode::off, result);
          const testing::WithCodegen always(CodegenMode::always);
          CHECK(result() == want);
        }
}

Array of_type(const Array& number, const Array& like) { return number.astype(like.dtype()); }

const std::vector<DType> numbers = {float32, float64, bfloat16, float16, int8, int32, uint64, complex64};
const std::vector<Shape> small_shapes = {{}, {1}, {3}, {8}, {4, 5}, {40}};

}  // namespace

TEST_CASE("codegen: loops of every number of runs are code, with carries that change places and rows") {
  if (!testing::plugin()) return;
  const Counted counted;
  for (const std::int64_t trip : {1, 2, 3, 4, 5, 6, 9})
    for (const bool reverse : {false, true}) {
      CAPTURE(trip);
      CAPTURE(reverse);
      check(
          [&](const Array& x, const Array& y) {
            const Array rows = sa::stack(Arrays(static_cast<std::size_t>(trip), x));
            Shape factors = Shape::filled(rows.shape().size(), 1);
            factors[0] = trip;
            const Array xs = rows * of_type(sa::reshape(sa::arange(trip) + 1, factors), x);
            const auto [c, ys] = sa::scan(
                [&](const Pair& carry, const Array& r) {
                  const Array next = carry.first + carry.second * r;
                  return std::pair(Pair(carry.second, next), Pair(next, carry.first - y));
                },
                Pair(x, y), xs, {.reverse = reverse});
            return Arrays{c.first, c.second, ys.first, ys.second};
          },
          trip % 2 == 1 ? small_shapes : std::vector<Shape>{{}, {8}},
          trip < 4 ? numbers : std::vector<DType>{float32});
    }
  CHECK(counted.generator.repeats > 100);
}

TEST_CASE("codegen: while_loop is code for every number of runs, and its results end where they belong") {
  if (!testing::plugin()) return;
  const Counted counted;
  for (const std::int64_t runs : {0, 1, 2, 3, 4, 7}) {
    CAPTURE(runs);
    using State = std::tuple<Array, Array, Array>;
    check(
        [&](const Array& x, const Array& y) {
          const auto [n, a, b] = sa::while_loop([&](const State& s) { return std::get<0>(s) < runs; },
                                                [&](const State& s) {
                                                  const auto& [k, p, q] = s;
                                                  return State(k + 1, q, p + q * y);
                                                },
                                                State(Array(0), x, y));
          return Arrays{n, a, b};
        },
        {{}, {1}, {3}, {17}, {100}}, runs < 3 ? numbers : std::vector<DType>{float32, int8});
  }
  CHECK(counted.generator.whiles > 50);
}

TEST_CASE("codegen: cond and switch are code in loops, and loops in them") {
  if (!testing::plugin()) return;
  const Counted counted;
  check(
      [](const Array& x, const Array& y) {
        const auto step = [&](const Array& i, const Array& c) {
          return sa::cond(
              i % 3 == 1, [&](const Array& a) { return a + y; },
              [&](const Array& a) {
                return sa::switch_(
                    i % 4,
                    std::vector<std::function<Array(Array)>>{
                        [&](Array b) { return b * of_type(Array(2), x); }, [&](Array b) { return b - y; },
                        [&](Array b) {
                          return sa::fori_loop(
                              0, 3, [&](const Array&, const Array& d) { return d + y; }, b);
                        },
                        [](Array b) { return b; }},
                    a);
              },
              c);
        };
        const Array inside = sa::fori_loop(0, 9, step, x);
        const Array outside = sa::cond(
            sa::sum(sa::abs(x)) > 0, [&](const Array& a) { return sa::fori_loop(0, 5, step, a); },
            [&](const Array& a) { return a - y; }, x);
        return Arrays{inside, outside};
      },
      small_shapes, {float32, int32, float16});
  CHECK(counted.generator.choices > 20);
  CHECK(counted.generator.repeats > 20);
}

TEST_CASE("codegen: loops in loops in loops are one function, of all kinds") {
  if (!testing::plugin()) return;
  const Counted counted;
  check(
      [](const Array& x, const Array& y) {
        const auto innermost = [&](const Array& i) {
          return [&, i](const Pair& s) {
            return sa::while_loop(
                [](const Pair& q) { return q.first < 4; },
                [&](const Pair& q) { return Pair(q.first + 1, q.second + y * of_type(i, x)); }, s);
          };
        };
        const Array all = sa::fori_loop(
            0, 3,
            [&](const Array& i, const Array& c) {
              const auto [d, ys] = sa::scan(
                  [&](const Array& e, const Array& k) {
                    const Array f = innermost(i + k)(Pair(k, e)).second;
                    return std::pair(f, f - e);
                  },
                  c, sa::arange(4));
              return d - sa::sum(ys, 0);
            },
            x);
        return Arrays{all};
      },
      {{}, {3}, {8}}, {float32, int32, float64});
  CHECK(counted.generator.whiles > 5);
  CHECK(counted.generator.repeats > 5);
}

TEST_CASE("codegen: updates of few elements are code in loops, wherever they end up") {
  if (!testing::plugin()) return;
  const Counted counted;
  const std::vector<std::function<Array(const Array& x, const Array& i, const Array& v)>> updates = {
      [](const Array& x, const Array& i, const Array& v) { return x.at(i).set(v[0]); },
      [](const Array& x, const Array& i, const Array& v) { return x.at(i).add(v[0]); },
      [](const Array& x, const Array& i, const Array& v) { return x.at(i).mul(v[0]); },
      [](const Array& x, const Array& i, const Array& v) { return x.at(i).max(v[0]); },
      [](const Array& x, const Array& i, const Array& v) { return x.at(i).min(v[0]); },
      [](const Array& x, const Array& i, const Array& v) {  // both dimensions move, and are clamped
        if (x.shape().size() < 2) return sa::dynamic_update_slice(x, v[sa::slice(0, 2)], {i});
        return sa::dynamic_update_slice(x, v[{sa::slice(0, 2), sa::slice(1, 4)}], {i, i * 2});
      },
      [](const Array& x, const Array& i, const Array& v) {  // whole rows
        if (x.shape().size() < 2) return x.at(i - 1).set(v[1]);
        return sa::dynamic_update_slice(x, v[sa::slice(1, 3)], {i, 0});
      }};
  std::vector<DType> types = numbers;
  types.push_back(bool_);
  for (std::size_t k = 0; k < updates.size(); k++) {
    CAPTURE(k);
    const bool combines = k >= 1 && k <= 4;
    for (const DType t : types) {
      if (combines && (t == bool_ || t == complex64)) continue;
      check(
          [&](const Array& x, const Array& y) {
            return Arrays{sa::fori_loop(
                0, 9, [&](const Array& i, const Array& c) { return updates[k](c, i * 5 % 11 - 1, y); }, x)};
          },
          {{7}, {5, 6}}, {t});
    }
  }
  CHECK(counted.generator.updates > 30);
}

TEST_CASE("codegen: moves of few elements are code in loops: stack, concatenate, pad, roll") {
  if (!testing::plugin()) return;
  const Counted counted;
  std::vector<DType> types = numbers;
  types.insert(types.end(), {bool_, complex128});
  check(
      [](const Array& x, const Array& y) {
        const auto plus = [](const Array& a, const Array& b) {
          return a.dtype() == bool_ ? sa::logical_xor(a, b) : a + b;
        };
        const auto rows = [&](const Array& i, const Array& c) {  // of each its neighbour's
          Arrays all;
          for (int k = 0; k < 3; k++) all.push_back(plus(c[(k + 1) % 3], y[k]));
          return sa::where(i % 2 == 0, sa::stack(all),
                           sa::concatenate({c[sa::slice(1, 3)], c[sa::slice(0, 1)]}));
        };
        const auto shifted = [&](const Array&, const Array& c) {
          const Array padded = sa::pad(c[sa::slice(0, 2)], {{0, 1}, {0, 0}}, 1);
          return plus(plus(sa::roll(c, 1, 0), padded), sa::flip(c, 1));
        };
        return Arrays{sa::fori_loop(0, 5, rows, x), sa::fori_loop(0, 5, shifted, x),
                      sa::scan(
                          [&](const Array& c, const Array& r) {
                            const Array next = sa::concatenate({c[sa::slice(1, 3)], sa::expand_dims(r, 0)});
                            return std::pair(next, sa::stack({next, c}, 1));
                          },
                          x, y)
                          .second};
      },
      {{3, 1}, {3, 2}, {3, 5}, {3, 4}}, types);
  CHECK(counted.generator.moves > 20);
}

TEST_CASE("codegen: many branches of many kernels are not one function, which would need a large stack") {
  if (!testing::plugin()) return;
  const Counted counted;
  for (const int branches : {2, 8, 64}) {
    CAPTURE(branches);
    check(
        [&](const Array& x, const Array&) {
          std::vector<std::function<Array(Array)>> all;
          for (int k = 0; k < branches; k++)
            all.emplace_back([k](Array a) {
              for (int j = 0; j < 12; j++)
                a = a + sa::sum(sa::tanh(a * (static_cast<float>(2 * k + j) * 0.5f)));
              return a;
            });
          return Arrays{sa::fori_loop(
              0, 5, [&](const Array& i, const Array& c) { return sa::switch_(i * 3, all, c); }, x)};
        },
        {{8}}, {float32});
  }
  CHECK(counted.generator.choices > 0);
  CHECK(counted.generator.most_inner <= 50);
}

TEST_CASE("codegen: what a loop flushes to zero stays its own") {
  if (!testing::plugin()) return;
  const Counted counted;
  check(
      [](const Array& x, const Array&) {
        const auto halve = [](const Array&, const Array& c) { return c * 0.5f; };
        const Array small = x * std::numeric_limits<float>::min();
        const Array kept = sa::fori_loop(0, 3, halve, small);
        const flush_denormals on(true);
        return Arrays{kept, sa::fori_loop(0, 3, halve, small),
                      sa::fori_loop(
                          0, 3,
                          [&](const Array& i, const Array& c) {
                            const flush_denormals off(false);
                            return halve(i, c);
                          },
                          small)};
      },
      {{}, {3}, {40}}, {float32});
  CHECK(counted.generator.repeats > 3);
}

}  // namespace codegen_loops_test
