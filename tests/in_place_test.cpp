// Updates in place: the memory of results and of loop carries, values compared with plain loops over host arrays.
#include <functional>
#include <random>

#include "golden.h"
#include "memory_helpers.h"
#include "program_of.h"

namespace in_place_test {

namespace sa = shardarray;
using namespace program_test;
using Arrays = std::vector<Array>;
using Values = std::vector<double>;

namespace {

const std::vector<P>& places() {
  static const std::vector<P> all{
      P(), P("x"), P("y"), P(sa::none, "x"), P("x", "y"), P("y", "x"), P(sa::none, sa::axes("x", "y"))};
  return all;
}
Array put(const Array& x, std::mt19937& rng) {
  if (x.ndim() == 0 || rng() % 4 == 0) return x;
  return sa::device_put(x, on_xy(places()[rng() % (x.ndim() > 1 ? places().size() : 3)]));
}
std::uint64_t peak(const auto& f, auto&&... x) {
  return prepare(f, std::forward<decltype(x)>(x)...).program().peak_bytes[0];
}
Array scalar(std::int64_t v) { return Array(static_cast<int>(v)); }

}  // namespace

TEST_CASE("in place: parts of any dtype, anywhere, with starts of their own for each row of a map") {
  std::mt19937 rng(3);
  const sa::DType dtypes[] = {sa::float32, sa::bool_,   sa::uint8,     sa::bfloat16,
                              sa::int64,   sa::float64, sa::complex64, sa::complex128};
  for (int round = 0; round < 120; round++) {
    CAPTURE(round);
    const sa::DType t = dtypes[rng() % std::size(dtypes)];
    const auto rows = static_cast<std::int64_t>(1 + rng() % 5);
    Shape shape, size;
    for (auto d = 1 + rng() % 3; d > 0; d--) {
      shape.push_back(static_cast<std::int64_t>(1 + rng() % 9));
      size.push_back(rng() % 3 == 0
                         ? shape.back()
                         : static_cast<std::int64_t>(1 + rng() % static_cast<unsigned>(shape.back())));
    }
    const auto random = [&](const Shape& s) {
      std::vector<float> v(static_cast<std::size_t>(sa::num_elements(s)));
      for (float& e : v) e = static_cast<float>(rng() % 5);
      return sa::array(v, s).astype(t);
    };
    Shape all = shape, parts = size;
    all.insert(0, rows);
    parts.insert(0, rows);
    const Array x = random(all), part = random(parts);
    const bool one_start = rng() % 3 == 0;  // for all rows
    std::vector<std::vector<int>> starts(shape.size(), std::vector<int>(static_cast<std::size_t>(rows)));
    for (auto& of_dim : starts)
      for (int& s : of_dim) s = one_start ? of_dim[0] : 0, s = static_cast<int>(rng() % 24) - 12;
    if (one_start)
      for (auto& of_dim : starts) std::fill(of_dim.begin(), of_dim.end(), of_dim[0]);
    // by hand
    Values want = sa::real(x).to_vector<double>();
    const Values with = sa::real(part).to_vector<double>();
    const auto per = static_cast<std::size_t>(sa::num_elements(shape)),
               per_part = static_cast<std::size_t>(sa::num_elements(size));
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); r++)
      for (std::size_t e = 0; e < per_part; e++) {
        std::size_t rest = e, at = 0, step = 1;
        for (std::size_t d = shape.size(); d-- > 0;) {
          const auto m = static_cast<std::size_t>(size[d]);
          std::int64_t begin = starts[d][r];
          if (begin < 0) begin += shape[d];
          begin = std::clamp<std::int64_t>(begin, 0, shape[d] - size[d]);
          at += (rest % m + static_cast<std::size_t>(begin)) * step;
          rest /= m;
          step *= static_cast<std::size_t>(shape[d]);
        }
        want[r * per + at] = with[r * per_part + e];
      }
    const bool narrow = rng() % 4 == 0;
    const auto f = [&](const Array& a, const Array& b, const Arrays& s) {
      const auto one = [](const Array& c, const Array& d, const Arrays& at) {
        return sa::dynamic_update_slice(c, d, at);
      };
      return one_start ? sa::vmap(one, {.in_axes = {0, 0, sa::none}})(a, b, s) : sa::vmap(one)(a, b, s);
    };
    Arrays at;
    for (const auto& of_dim : starts) {
      Array s = one_start ? scalar(of_dim[0]) : sa::array(of_dim);
      if (narrow) s = s.astype(sa::int8);
      if (rng() % 3 == 0) s = s.astype(sa::int64);
      at.push_back(put(s, rng));
    }
    const Array got = sa::jit(f)(put(x, rng), put(part, rng), at);
    CHECK(got.dtype() == t);
    CHECK(values(sa::real(got)) == want);
  }
}

// A loop's carries by name, and what happens in each run of it.
struct Loop {
  std::string name;
  std::function<Arrays(const Arrays& c, const Array& i, const Array& n)> run;
  bool one_buffer = true;  ///< of each carry
};
static std::vector<Loop> loops() {
  return {
      {"a row set",
       [](const Arrays& c, const Array& i, const Array&) { return Arrays{c[0].at(i).set(i * 2)}; }},
      {"an element added to",
       [](const Arrays& c, const Array& i, const Array&) {
         return Arrays{c[0].at({i, i % 3}).add(c[0][0][0])};
       }},
      {"read before and behind",
       [](const Arrays& c, const Array& i, const Array& n) {
         const Array x = c[0].at(i).mul(2);
         return Arrays{x.at((i + 1) % n).add(x[i] + c[0][i])};
       },
       false},
      {"of two carries one is read by the other",
       [](const Arrays& c, const Array& i, const Array&) {
         return Arrays{c[0].at(i).add(c[1][i]), c[1].at({i, 1}).set(i)};
       }},
      {"carries that change places",
       [](const Arrays& c, const Array& i, const Array&) {
         return Arrays{c[1].at(i).add(1), c[0].at(i).set(c[1][i] + i)};
       },
       false},
      {"all of what was is read behind",
       [](const Arrays& c, const Array& i, const Array&) {
         return Arrays{c[0].at(i).set(i), c[1] * 0.5 + sa::sum(c[0]) + c[0]};
       },
       false},
      {"in the shape of a vector",
       [](const Arrays& c, const Array& i, const Array&) {
         return Arrays{sa::reshape(sa::reshape(c[0], {-1}).at(i * 2).add(i), c[0].shape())};
       }},
      {"loops inside",
       [](const Arrays& c, const Array& i, const Array& n) {
         const Array x = sa::fori_loop(
             0, 3,
             [&](const Array& k, const Array& a) {
               return a.at({(i + k) % n, k}).add(k + 1);
             },
             c[0]);
         return Arrays{x.at(i).mul(2)};
       }},
      {"a part that lies anywhere",
       [](const Arrays& c, const Array& i, const Array&) {
         return Arrays{sa::dynamic_update_slice(c[0], sa::dynamic_slice(c[0], {i, Array(0)}, {2, 2}) + 1,
                                                {i + 1, i % 2})};
       }},
      {"nothing is written outside",
       [](const Arrays& c, const Array& i, const Array& n) { return Arrays{c[0].at(i + n - 2).set(i)}; }},
  };
}

TEST_CASE("in place: loops that write parts over, wherever carries lie, against runs one after the other") {
  std::mt19937 rng(5);
  const std::int64_t n = 8;
  for (const Loop& loop : loops())
    for (int round = 0; round < 10; round++) {
      CAPTURE(loop.name);
      CAPTURE(round);
      const std::int64_t length = 1 + static_cast<std::int64_t>(rng() % 6);
      const Arrays first{numbers({n, 4}, sa::float32, 1), numbers({n, 4}, sa::float32, 2)};
      const std::size_t carried = loop.run(first, scalar(0), scalar(n)).size();
      Arrays want(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(carried));
      for (std::int64_t k = 0; k < length; k++) {
        Arrays next = loop.run(want, scalar(k), scalar(n));
        for (std::size_t j = 0; j < carried; j++) want[j] = sa::array(next[j].to_vector<float>(), {n, 4});
      }
      const bool shared = rng() % 3 == 0;  // one array begins both carries
      if (shared && carried == 2) {
        want = {first[0], first[0]};
        for (std::int64_t k = 0; k < length; k++) want = loop.run(want, scalar(k), scalar(n));
      }
      const auto once = [&](const Arrays& c, const Array& i) { return loop.run(c, i, scalar(n)); };
      const auto counted = sa::jit([&](const Arrays& c) {
        return sa::fori_loop(
            0, length, [&](const Array& i, const Arrays& a) { return once(a, i); }, c);
      });
      const auto asked = sa::jit([&](const Arrays& c, const Array& most) {
        return sa::while_loop([&](const std::pair<Arrays, Array>& s) { return s.second < most; },
                              [&](const std::pair<Arrays, Array>& s) {
                                return std::pair(once(s.first, s.second), s.second + 1);
                              },
                              std::pair(c, Array(0)))
            .first;
      });
      // The carries as they come, and again behind the loop; and what lies between.
      const auto read_again = sa::jit([&](const Arrays& c) {
        Arrays begin = c;
        for (Array& x : begin) x = x + 0;
        Arrays end = sa::fori_loop(
            0, length, [&](const Array& i, const Arrays& a) { return once(a, i); }, begin);
        for (std::size_t k = 0; k < c.size(); k++) end.push_back(begin[k] * 2 + c[k]);
        return end;
      });
      Arrays given;
      for (std::size_t k = 0; k < carried; k++)
        given.push_back(shared && k == 1 ? given[0] : put(first[k], rng));
      const auto check = [&](const Arrays& got, const Arrays& expected) {
        for (std::size_t k = 0; k < expected.size(); k++) {
          CAPTURE(k);
          CHECK(sa::testing::read<float>(got[k]) == sa::testing::read<float>(expected[k]));
        }
      };
      check(counted(given), want);
      check(asked(given, scalar(length)), want);
      check(asked(given, scalar(0)), given);
      Arrays again = want;
      for (const Array& x : given) again.push_back(x * 3);
      check(read_again(given), again);
      check(counted(given), want);  // nothing was written over
      if (shared) continue;
      Arrays donated;
      for (const Array& x : given) donated.push_back(x + 0);
      check(sa::jit([&](const Arrays& c) { return counted(c); }, {.donate_args = {0}})(std::move(donated)),
            want);
    }
}

TEST_CASE("in place: a carry with parts written over has one buffer") {
  const std::int64_t n = 1000, bytes = n * 4 * 4;
  const Arrays x{numbers({n, 4}, sa::float32, 1), numbers({n, 4}, sa::float32, 2)};
  for (const Loop& loop : loops()) {
    CAPTURE(loop.name);
    const auto f = sa::jit([&](const Arrays& c) {
      return sa::fori_loop(
          0, 7, [&](const Array& i, const Arrays& a) { return loop.run(a, i, scalar(n)); }, c);
    });
    const std::size_t carried = loop.run(x, scalar(0), scalar(n)).size();
    const std::uint64_t held = 2 * carried * static_cast<std::uint64_t>(bytes);  // what is given, and results
    const Arrays given(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(carried));
    const std::uint64_t most = peak(f, given);
    CAPTURE(most);
    if (loop.one_buffer) CHECK(most < held + 4096);
    else CHECK(most > held + static_cast<std::uint64_t>(bytes));
  }
}

TEST_CASE("in place: what is given away, or read by nobody else, is written over") {
  const std::uint64_t bytes = 4000 * 4;
  Array x = sa::arange(4000.0) + 0;
  const auto several = [](const Array& a) {
    return a.at(Array(3)).set(1).at(Array(5)).add(2).at(Array(7)).mul(3);
  };
  CHECK(peak(sa::jit(several), x) < 2 * bytes + 512);
  const auto given = sa::jit(several, {.donate_args = {0}});
  CHECK(peak(given, sa::donated(x)) < bytes + 512);
  const auto want = several(x).to_vector<float>();
  Array own = x + 0;
  own.block_until_ready();
  const void* const where = memory_helpers::addresses(own)[0];
  const Array got = given(std::move(own));
  got.block_until_ready();
  CHECK(memory_helpers::addresses(got)[0] == where);
  CHECK(got.to_vector<float>() == want);
  // A part that is read of the array itself, and the array read behind.
  const auto reads = sa::jit([](const Array& a) {
    const Array b = a * 2, c = sa::dynamic_update_slice(b, b.at(sa::slice(0, 100)).get(), {Array(50)});
    return std::pair(c, sa::sum(b));
  });
  const auto [c, sum] = reads(x);
  auto doubled = (x * 2).to_vector<float>();
  double total = 0;
  for (const float v : doubled) total += v;
  for (std::size_t k = 100; k-- > 0;) doubled[50 + k] = static_cast<float>(2 * k);
  CHECK(c.to_vector<float>() == doubled);
  CHECK(sum.item<double>() == doctest::Approx(total));
}

TEST_CASE("in place: nothing moves where the array is cut, whatever the part is combined by") {
  using Update = Array (*)(const Array& x, const Array& i, const Array& v);
  const std::pair<std::string, Update> updates[] = {
      {"set",
       [](const Array& x, const Array& i, const Array& v) {
         return x.at({i, 1}).set(v);
       }},
      {"add",
       [](const Array& x, const Array& i, const Array& v) {
         return x.at({i, 1}).add(v);
       }},
      {"mul",
       [](const Array& x, const Array& i, const Array& v) {
         return x.at({i, 1}).mul(v);
       }},
      {"min",
       [](const Array& x, const Array& i, const Array& v) {
         return x.at({i, 1}).min(v);
       }},
      {"max",
       [](const Array& x, const Array& i, const Array& v) {
         return x.at({i, 1}).max(v);
       }},
      {"part", [](const Array& x, const Array& i, const Array& v) {
         return sa::dynamic_update_slice(x, sa::zeros({3, 2}, v.dtype()) + v, {i, i - 4});
       }}};
  for (const sa::DType t : {sa::float32, sa::float64, sa::bool_, sa::int8, sa::uint64, sa::bfloat16})
    for (const sa::Shape& shape : {Shape{8, 4}, Shape{40, 32}})
      for (const P& place : {P("x"), P(sa::none, "y"), P("x", "y"), P(sa::axes("x", "y"))})
        for (const auto& row : updates) {
          const auto& name = row.first;
          const auto& update = row.second;
          CAPTURE(name);
          CAPTURE(sa::name(t));
          CAPTURE(shape);
          const Array x = numbers(shape, t), v = numbers({1}, t, 5)[0];
          const auto f = [&, update = update](const Array& a, const Array& i) { return update(a, i, v); };
          const Array there = sa::device_put(x, on_xy(place));
          const bool rounds =
              t == sa::bfloat16 && name != "set" && name != "part";  // added up in float32, all
          if (!rounds) CHECK(planned(f, there, scalar(5)) == "");
          for (const int i : {-50, -3, 0, 5, 7, 50}) {
            const auto at = i < 0 ? i + shape[0] : i;
            const auto got = values(sa::jit(f)(there, scalar(i))), was = values(x);
            if (name == "part") {
              CHECK(got == f(x, scalar(i)).to_vector<double>());
              continue;
            }
            for (std::size_t e = 0; e < was.size(); e++) {
              const bool is_it = static_cast<std::int64_t>(e) == at * shape[1] + 1;
              const Array old = sa::array(std::vector<double>{was[e]}).astype(t)[0];
              const Array want = !is_it          ? old
                                 : name == "set" ? v
                                 : name == "add" ? old + v
                                 : name == "mul" ? old * v
                                 : name == "min" ? sa::minimum(old, v)
                                                 : sa::maximum(old, v);
              if (is_it) CHECK(got[e] == want.astype(sa::float64).item<double>());
              else CHECK(got[e] == was[e]);
            }
          }
        }
}

TEST_CASE("in place: a loop in a loop copies nothing onto itself") {
  const auto f = sa::jit([](const Array& x) {
    return sa::fori_loop(
        0, 5,
        [](const Array& i, const Array& a) {
          return sa::fori_loop(
              0, 3, [&](const Array& k, const Array& b) { return b.at(i + k).set(k); }, a);
        },
        x);
  });
  const Array x = numbers({100, 4});
  const auto p = prepare(f, x);
  const auto* const outer = std::get_if<sa::ProgramCall>(&p.program().steps.back().body);
  REQUIRE(outer != nullptr);
  for (const sa::Step& step : outer->program->steps) CHECK(step.label.find("copy") == std::string::npos);
  CHECK(p.program().peak_bytes[0] < 2 * 1600 + 1024);
}

// Wherever the result lies. The reference's h is an argument, which nothing writes over.
TEST_CASE("in place: a loop writes over the temporary value that ends in it") {
  struct Row {
    std::string name;
    std::function<Arrays(const Array& h, const Array& w)> f;
    int temporary = 0;  // tiles like that of the product h, beside arguments and results
    bool cut = true;    // is tried by rows, too
  };
  const Row rows[] = {
      {"bias and activation", [](auto& h, auto& w) { return Arrays{sa::relu(h + w[0])}; }},
      {"a row at a time", [](auto& h, auto&) { return Arrays{sa::softmax(h, -1)}; }},
      {"between products", [](auto& h, auto& w) { return Arrays{sa::matmul(sa::tanh(h), w)}; }, 1},
      {"two results",
       [](auto& h, auto&) {
         return Arrays{sa::square(h), h + 1};
       }},
      {"a view",
       [](auto& h, auto&) {
         return Arrays{sa::square(h.reshape({32, 2, 64}))};
       }},
      {"a view, read twice",
       [](auto& h, auto&) {
         return Arrays{h.reshape({2, 32, 64}) * sa::exp(h.reshape({2, 32, 64}))};
       },
       0, false},
      {"a row's sum behind its elements",
       [](auto& h, auto&) {
         const Array e = sa::exp(h);
         return Arrays{e, h - sa::sum(e, 1, {.keepdims = true})};
       }},
      {"elements that go elsewhere", [](auto& h, auto&) { return Arrays{sa::square(sa::transpose(h))}; }, 1},
      {"elements for two places", [](auto& h, auto&) { return Arrays{h + sa::flip(h, 0)}; }, 1, false},
      {"smaller elements", [](auto& h, auto&) { return Arrays{sa::square(h).astype(sa::bfloat16)}; }, 1},
      {"other rows",
       [](auto& h, auto&) {
         return Arrays{sa::take(h, sa::array(std::vector<int>{3, 1, 2}), 0) + 1};
       },
       1, false},
  };
  for (const bool cut : {false, true})
    for (const Row& row : rows) {
      if (cut && !row.cut) continue;
      CAPTURE(cut);
      CAPTURE(row.name);
      const Array x = cut ? sa::device_put(numbers({64, 64}), on_xy(P("x"))) : numbers({64, 64}),
                  w = numbers({64, 64}, sa::float32, 1) / 16;
      const auto f = sa::jit([&](const Array& a, const Array& b) { return row.f(sa::matmul(a, b), b); });
      const std::uint64_t tile = 64 * 64 * 4 / (cut ? 4 : 1);
      CHECK(prepare(f, x, w).program().scratch_bytes[0] == row.temporary * tile);
      const Array h = sa::matmul(x, w);
      (void)h.to_vector<double>();
      const Arrays got = f(x, w), want = row.f(h, w);
      REQUIRE(got.size() == want.size());
      for (std::size_t k = 0; k < got.size(); k++) CHECK(values(got[k]) == values(want[k]));
    }
}

TEST_CASE("in place: until a result is made its memory is room for what ends before") {
  const std::int64_t n = 128, tile = n * n * 4;
  const Array w = numbers({n, n}, sa::float32, 1) / 64;
  for (const bool cut : {false, true})
    for (const bool donated : {false, true})
      for (int depth = 1; depth < 8; depth++) {
        CAPTURE(cut);
        CAPTURE(donated);
        CAPTURE(depth);
        const auto layers = [depth](Array x, const Array& v) {
          for (int k = 0; k < depth; k++) x = sa::tanh(sa::matmul(x, v));
          return x;
        };
        const auto f = sa::jit(layers, {.donate_args = donated ? std::vector<int>{0} : std::vector<int>{}});
        const auto fresh = [&] {
          const Array x = numbers({cut ? 4 * n : n, n});
          return cut ? sa::device_put(x, on_xy(P("x"))) : x + 0;
        };
        // The arguments, the result and a value that a product reads while it makes another one; over the donated argument the last
        // product and the one before it take turns with that.
        const int tiles = depth == 1 || (donated && depth % 2 == 0) ? 3 : 4;
        const Array x = fresh(), want = layers(x, w);
        CHECK(sa::explain(f, fresh(), w).peak_bytes_per_device <= tiles * tile + 1024);
        CHECK(values(f(fresh(), w)) == values(want));
      }
}

TEST_CASE("in place: what is of another type does not take memory while that is read") {
  const std::int64_t n = 128;
  const sa::DType types[] = {sa::int32, sa::uint32, sa::float64, sa::int16, sa::complex64};
  for (const sa::DType t : types)
    for (const bool sorts : {false, true}) {
      CAPTURE(t);
      const auto f = [&](const Array& x) {
        const Array y = sa::floor(x).astype(t),
                    z = sorts && !sa::is_complex(t) ? sa::sort(y, 0) : sa::matmul(y, y);
        return (sa::real(z).astype(sa::float32) + 1) * 2;
      };
      const Array x = numbers({n, n});
      CHECK(values(sa::jit(f, {.donate_args = {0}})(x + 0)) == values(f(x)));
    }
}

}  // namespace in_place_test
