// scan under any sharding, compared with the same steps unrolled on one device; derivatives of both; maps.
#include <functional>
#include <random>

#include "golden.h"
#include "graph/iteration.h"
#include "scale.h"

namespace control_flow_test {

namespace sa = shardarray;
using sa::Array;
using sa::axes;
using sa::P;
using sa::Shape;
using sa::testing::full_scale;

namespace {

using Arrays = std::vector<Array>;
using Step = std::pair<Arrays, Arrays>;

struct Body {
  std::string name;
  std::vector<Shape> constants, carries, elements;
  std::function<Step(const Arrays& constants, const Arrays& carries, const Arrays& elements)> step;
  bool smooth = true;
};

std::vector<Body> bodies() {
  const Shape rows{6, 4}, square{4, 4};
  return {
      {"recurrence",
       {square},
       {rows},
       {rows},
       [](const Arrays& k, const Arrays& c, const Arrays& x) {
         const Array h = sa::tanh(sa::matmul(x[0], k[0]) + c[0]);
         return Step({h}, {h * 2});
       }},
      {"carries that change places",
       {},
       {rows, rows},
       {rows},
       [](const Arrays&, const Arrays& c, const Arrays& x) {
         return Step({c[1], c[0] + sa::sin(x[0])}, {c[0]});
       }},
      {"a carry that stays, elements handed through",
       {},
       {rows, rows},
       {rows},
       [](const Arrays&, const Arrays& c, const Arrays& x) {
         return Step({c[0], c[1] * 0.5 + c[0] * x[0]}, {x[0], c[0], c[1]});
       }},
      {"sums over what is cut",
       {{6, 1}},
       {{4}},
       {rows},
       [](const Arrays& k, const Arrays& c, const Arrays& x) {
         return Step({c[0] * 0.5 + sa::sum(x[0] * k[0], 0)}, {sa::sum(x[0] * x[0]), sa::mean(x[0], 1)});
       }},
      {"nothing is carried",
       {{4}},
       {},
       {rows},
       [](const Arrays& k, const Arrays&, const Arrays& x) { return Step({}, {sa::exp(x[0] * k[0])}); }},
      {"nothing is scanned over",
       {square},
       {rows},
       {},
       [](const Arrays& k, const Arrays& c, const Arrays&) {
         return Step({sa::tanh(sa::matmul(c[0], k[0]))}, {sa::sum(c[0], 1)});
       }},
      {"products of transposes",
       {},
       {square},
       {rows},
       [](const Arrays&, const Arrays& c, const Arrays& x) {
         return Step({0.3 * sa::transpose(c[0]) + 0.1 * sa::matmul(sa::transpose(x[0]), x[0])}, {c[0][1]});
       }},
      {"boxes, running sums and sorts",
       {},
       {rows},
       {rows},
       [](const Arrays&, const Arrays& c, const Arrays& x) {
         const Array moved = sa::roll(c[0], 1, 0) + sa::flip(x[0], 0);
         return Step({moved * 0.5}, {sa::cumsum(moved, 0), sa::sort(x[0], 0), sa::concatenate({c[0], x[0]})});
       }},
      {"steps inside of steps",
       {square},
       {rows},
       {rows},
       [](const Arrays& k, const Arrays& c, const Arrays& x) {
         auto [last, all] = sa::scan(
             [&](const Array& h, const Array& row) {
               const Array next = sa::tanh(sa::matmul(h, k[0]) + row);
               return std::pair(next, sa::sum(next, 0));
             },
             c[0], x[0]);
         return Step({last}, {all});
       }},
      {"parts written over",
       {},
       {{}, rows, rows},
       {rows},
       [](const Arrays&, const Arrays& c, const Arrays& x) {
         const Array i = c[0].astype(sa::int32) % 6;
         const Array a = c[1].at(i).set(sa::sin(x[0][1]) * c[2][i]), b = c[2].at({i, i % 4}).add(c[1][i][0]);
         return Step({c[0] + 1, a, sa::dynamic_update_slice(b, a[sa::slice(0, 2)] * b[i], {i, Array(0)})},
                     {sa::sum(c[1] * x[0], 0), b[i]});
       }},
      {"carries that no derivative passes",
       {{4}},
       {rows, rows, rows},
       {rows},
       [](const Arrays& k, const Arrays& c, const Arrays& x) {
         const Array v = x[0] * k[0];
         return Step({sa::stop_gradient(c[0] + v), c[1] * 0.5 + (v > 0).astype(sa::float32),
                      sa::floor(c[2] + v) + sa::stop_gradient(c[1])},
                     {c[0] * v, c[1] * v, c[2] * v});
       }},
      {"whole numbers",
       {},
       {{}, rows},
       {rows},
       [](const Arrays&, const Arrays& c, const Arrays& x) {
         const Array count = c[0].astype(sa::int32);
         return Step({(count + 1).astype(sa::float32), sa::where(count % 2 == 0, c[1] + x[0], c[1] * 0.5)},
                     {sa::argmax(x[0], 1), x[0] > c[1]});
       },
       false},
  };
}

// The steps, one after the other.
Step unrolled(const Body& body, const Arrays& constants, Arrays carries, const Arrays& xs,
              std::int64_t length, bool reverse) {
  std::vector<Arrays> each;
  for (std::int64_t k = 0; k < length; k++) {
    Arrays elements;
    for (const Array& x : xs) elements.push_back(x[reverse ? length - 1 - k : k]);
    auto [next, ys] = body.step(constants, carries, elements);
    carries = next;
    for (std::size_t y = 0; y < ys.size(); y++) {
      each.resize(ys.size());
      each[y].push_back(ys[y]);
    }
  }
  Arrays sequences;
  for (Arrays& ys : each) {
    if (reverse) std::reverse(ys.begin(), ys.end());
    sequences.push_back(sa::stack(ys));
  }
  return {carries, sequences};
}
Step scanned(const Body& body, const Arrays& constants, const Arrays& carries, const Arrays& xs,
             std::int64_t length, bool reverse) {
  const auto step = [&](const Arrays& c, const Arrays& x) { return body.step(constants, c, x); };
  return sa::scan(step, carries, xs, {.length = length, .reverse = reverse});
}

struct Given {
  Arrays constants, carries, xs;
};
Given draw(const Body& body, std::int64_t length, std::mt19937& rng) {
  std::uniform_real_distribution<float> any(-1, 1);
  const auto array = [&](Shape shape) {
    std::vector<float> v(static_cast<std::size_t>(sa::num_elements(shape)));
    for (float& e : v) e = any(rng);
    return sa::array(v, shape);
  };
  Given g;
  for (const Shape& s : body.constants) g.constants.push_back(array(s));
  for (const Shape& s : body.carries) g.carries.push_back(s.empty() ? Array(sa::zeros({})) : array(s));
  for (const Shape& s : body.elements) g.xs.push_back(array(sa::sequence_of({s}, length).shape));
  return g;
}

// In one of many places.
Array placed(const Array& x, std::mt19937& rng) {
  const auto mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  std::vector<P> specs{P()};
  if (x.ndim() > 0) specs = {P(), P("x"), P("y"), P(axes("y", "x"))};
  if (x.ndim() > 1)
    for (const P& p : {P(sa::none, "x"), P("y", "x"), P("x", "y"), P(sa::none, axes("x", "y"))})
      specs.push_back(p);
  if (x.ndim() > 2)
    for (const P& p : {P(sa::none, sa::none, "y"), P(sa::none, "x", "y"), P("y", "x"), P(sa::none, "y", "x")})
      specs.push_back(p);
  return sa::device_put(x, sa::NamedSharding(mesh, specs[rng() % specs.size()]));
}
Arrays placed(Arrays all, std::mt19937& rng) {
  for (Array& x : all) x = placed(x, rng);
  return all;
}

void check_same(const Arrays& got, const Arrays& want, double tolerance = 2e-5) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); k++) {
    CAPTURE(k);
    CHECK(got[k].shape() == want[k].shape());
    CHECK(got[k].dtype() == want[k].dtype());
    CHECK(golden::close(sa::testing::values(got[k]), sa::testing::values(want[k]), tolerance, tolerance));
  }
}
Arrays joined(const Step& s) {
  Arrays all = s.first;
  all.insert(all.end(), s.second.begin(), s.second.end());
  return all;
}

// One number from all floating leaves, with a different weight for every element.
Array measure(const Arrays& all) {
  Array total = 0.0f;
  for (const Array& a : all)
    if (sa::is_floating(a.dtype()))
      total = total + sa::sum(sa::sin(a * 0.7) *
                              sa::reshape(sa::cos(sa::arange(static_cast<double>(a.size()))), a.shape()));
  return total;
}

}  // namespace

TEST_CASE("control flow: scan gives what its steps give one after the other, whatever is cut") {
  std::mt19937 rng(3);
  for (const Body& body : bodies())
    for (const std::int64_t length : {1, 2, 3, 6})
      for (int repeat = 0; repeat < (full_scale() ? 40 : 4); repeat++) {
        const bool reverse = rng() % 2, jitted = rng() % 2;
        const Given plain = draw(body, length, rng);
        const Arrays want = joined(unrolled(body, plain.constants, plain.carries, plain.xs, length, reverse));
        const Given g{placed(plain.constants, rng), placed(plain.carries, rng), placed(plain.xs, rng)};
        CAPTURE(body.name);
        CAPTURE(length);
        const auto f = [&](const Arrays& k, const Arrays& c, const Arrays& x) {
          return joined(scanned(body, k, c, x, length, reverse));
        };
        check_same(jitted ? sa::jit(f)(g.constants, g.carries, g.xs) : f(g.constants, g.carries, g.xs), want);
      }
}

TEST_CASE("control flow: carries that steps replace, first carries that are zeros, steps without operands") {
  std::mt19937 rng(9);
  using Next = std::function<Array(const Array& c, const Array& of_x, const Array& s)>;
  const std::vector<Next> nexts = {
      [](const Array&, const Array&, const Array&) { return sa::ones({4}); },
      [](const Array&, const Array&, const Array&) { return sa::zeros({4}); },
      [](const Array&, const Array&, const Array&) { return sa::arange(4.0); },
      [](const Array&, const Array&, const Array& s) { return sa::broadcast_to(s, {4}); },
      [](const Array&, const Array& of_x, const Array&) { return of_x; },
      [](const Array& c, const Array& of_x, const Array&) { return c + of_x; },
      [](const Array& c, const Array&, const Array&) { return c; },
      [](const Array& c, const Array& of_x, const Array& s) { return sa::where(s > 1, c, of_x); },
      [](const Array& c, const Array&, const Array& s) { return sa::zeros_like(c) + s; }};
  const auto zero = [](const Array& like, bool zeros) { return zeros ? sa::zeros(like.shape()) : like; };
  for (std::size_t a = 0; a < nexts.size(); a++)
    for (std::size_t b = 0; b < nexts.size(); b++)
      for (int repeat = 0; repeat < (full_scale() ? 24 : 3); repeat++) {
        const Body body = {
            "", {}, {{4}, {4}, {}}, {{8, 4}}, [&](const Arrays&, const Arrays& c, const Arrays& x) {
              const Array of_x = sa::sum(x[0], 0);
              return Step({nexts[a](c[0], of_x, c[2]), nexts[b](c[1], of_x, c[2]), c[2] + 1},
                          {sa::sum(c[0] + of_x), c[1] * 2 + c[0], sa::ones({2}), c[2]});
            }};
        const std::int64_t length = 1 + static_cast<std::int64_t>(rng() % 4);
        const Given plain = draw(body, length, rng);
        const bool zeros[] = {rng() % 3 > 0, rng() % 3 > 0}, jitted = rng() % 4 > 0;
        CAPTURE(a);
        CAPTURE(b);
        CAPTURE(length);
        const auto run = [&](auto way) {
          return [&, way](const Arrays& c, const Arrays& x) {
            return joined(
                way(body, {}, {zero(c[0], zeros[0]), zero(c[1], zeros[1]), c[2]}, x, length, false));
          };
        };
        const Arrays want = run(unrolled)(plain.carries, plain.xs);
        const Arrays carries = placed(plain.carries, rng), xs = placed(plain.xs, rng);
        check_same(jitted ? sa::jit(run(scanned))(carries, xs) : run(scanned)(carries, xs), want);
        // One result alone: what only the others need is left out.
        const std::size_t one = rng() % want.size();
        const auto f = [&](const Arrays& c, const Arrays& x) { return run(scanned)(c, x)[one]; };
        check_same({sa::jit(f)(carries, xs)}, {want[one]});
      }
}

TEST_CASE("control flow: derivatives of scan are those of its steps") {
  std::mt19937 rng(4);
  for (const Body& body : bodies()) {
    if (!body.smooth) continue;
    for (int repeat = 0; repeat < (full_scale() ? 12 : 2); repeat++) {
      const std::int64_t length = 1 + static_cast<std::int64_t>(rng() % 4);
      const bool reverse = rng() % 2;
      CAPTURE(body.name);
      CAPTURE(length);
      const Given plain = draw(body, length, rng);
      const auto loss = [&](auto run) {
        return [&, run](const std::vector<Arrays>& v) {
          return measure(joined(run(body, v[0], v[1], v[2], length, reverse)));
        };
      };
      const auto steps = loss(unrolled);
      const auto scan = loss(scanned);
      const std::vector<Arrays> at{plain.constants, plain.carries, plain.xs};
      const std::vector<Arrays> cut{placed(at[0], rng), placed(at[1], rng), placed(at[2], rng)};
      const auto flat = [](const std::vector<Arrays>& v) { return sa::tree_leaves(v); };
      check_same(flat(sa::jit(sa::grad(scan))(cut)), flat(sa::grad(steps)(at)), 1e-4);
      check_same(flat(sa::grad(scan)(cut)), flat(sa::grad(steps)(at)), 1e-4);
      const auto forward = [&](auto f, const std::vector<Arrays>& v) {
        return Arrays{sa::jvp(f, v, v).second};
      };
      check_same(forward(scan, cut), forward(steps, at), 1e-4);
      const auto second = [&](auto f) {
        return sa::grad([f, &flat](const std::vector<Arrays>& v) { return measure(flat(sa::grad(f)(v))); });
      };
      check_same(flat(sa::jit(second(scan))(cut)), flat(second(steps)(at)), 1e-3);
    }
  }
}

TEST_CASE("control flow: vmap of scan is scan of every row") {
  std::mt19937 rng(5);
  const std::int64_t rows = 3, length = 4;
  for (const Body& body : bodies())
    for (int repeat = 0; repeat < (full_scale() ? 8 : 2); repeat++) {
      CAPTURE(body.name);
      std::vector<Given> each;
      for (int k = 0; k < rows; k++) each.push_back(draw(body, length, rng));
      const auto mapped = static_cast<unsigned>(1 + rng() % 7);  // which of constants, carries, sequences
      if (((mapped & 1) && body.constants.empty()) || ((mapped & 2) && body.carries.empty()) ||
          ((mapped & 4) && body.elements.empty()))
        continue;
      const auto pick = [&](Arrays Given::*part, bool is_mapped) {
        Arrays all;
        for (std::size_t k = 0; k < (each[0].*part).size(); k++) {
          Arrays stacked;
          for (const Given& g : each) stacked.push_back((g.*part)[k]);
          all.push_back(is_mapped ? sa::stack(stacked) : stacked[0]);
        }
        return all;
      };
      const auto f = [&](const Arrays& k, const Arrays& c, const Arrays& x) {
        return joined(scanned(body, k, c, x, length, true));
      };
      const auto axis = [&](unsigned bit) { return mapped & bit ? sa::Axes(0) : sa::Axes(sa::none); };
      const auto g = sa::vmap(f, {.in_axes = {axis(1), axis(2), axis(4)}});
      const Arrays got = sa::jit(g)(placed(pick(&Given::constants, mapped & 1), rng),
                                    placed(pick(&Given::carries, mapped & 2), rng),
                                    placed(pick(&Given::xs, mapped & 4), rng));
      std::vector<Arrays> want;
      for (int k = 0; k < rows; k++) {
        const Given& own = each[static_cast<std::size_t>(k)];
        const auto of = [&](Arrays Given::*part, bool is_mapped) {
          return is_mapped ? own.*part : each[0].*part;
        };
        want.push_back(
            joined(unrolled(body, of(&Given::constants, mapped & 1), of(&Given::carries, mapped & 2),
                            of(&Given::xs, mapped & 4), length, true)));
      }
      for (std::size_t y = 0; y < got.size(); y++) {
        Arrays stacked;
        for (const Arrays& w : want) stacked.push_back(w[y]);
        check_same({got[y]}, {sa::stack(stacked)});
      }
    }
}

TEST_CASE("control flow: collectives inside of steps") {
  const Array x = sa::reshape(sa::arange(48.0), {8, 6}) * 0.1;
  const auto local = [](const Array& v) {  // [6]
    return sa::scan(
        [](const Array& c, const Array& e) {
          const Array next = c * 0.5 + sa::psum(e, "i");
          return std::pair(next, next - e);
        },
        sa::zeros({}), v);
  };
  const auto whole = sa::scan(
      [](const Array& c, const Array& e) {
        const Array next = c * 0.5 + sa::sum(e);
        return std::pair(next, next - e);
      },
      sa::zeros({}), sa::transpose(x));
  const auto [last, all] = sa::pmap(local, {.axis_name = "i"})(x);
  check_same({last}, {sa::broadcast_to(whole.first, {8})});
  check_same({all}, {sa::transpose(whole.second)});
  const auto mesh = sa::make_mesh({{"i", 8}});
  const auto on_pieces = sa::shard_map([&](const Array& v) { return sa::expand_dims(local(v[0]).second, 0); },
                                       {.mesh = mesh, .in_specs = P("i"), .out_specs = P("i")});
  check_same({sa::jit(on_pieces)(x)}, {sa::transpose(whole.second)});
}

}  // namespace control_flow_test
