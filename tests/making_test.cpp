// Values computed where they are needed: broadcasts move their operands; constants, masks and random numbers move nothing.
#include "golden.h"
#include "program_of.h"

namespace making_test {

namespace sa = shardarray;
using namespace program_test;
using sa::none;

namespace {

Array attention(const Array& q, const Array& k, const Array& v, bool causal) {
  Array scores = sa::einsum("bhqd,bhkd->bhqk", q, k) * 0.25;
  if (causal) {
    const std::int64_t n = q.shape()[2];
    const Array at = sa::arange(n);
    scores = sa::where(sa::expand_dims(at, 1) >= sa::expand_dims(at, 0), scores, -1e9);
  }
  return sa::einsum("bhqk,bhkd->bhqd", sa::softmax(scores), v);
}

}  // namespace

TEST_CASE("making: attention of cut positions moves queries, keys and values, no scores and no mask") {
  for (const bool causal : {false, true})
    for (const Shape& shape :
         {Shape{2, 4, 64, 8}, {2, 4, 256, 8}, {4, 8, 128, 16}, {2, 2, 64, 8}, {2, 3, 64, 8}, {1, 4, 64, 8}}) {
      CAPTURE(causal);
      CAPTURE(sa::to_string(shape));
      const P spec = shape[0] % 2 == 0 ? P("y", none, "x") : P(none, none, "x");
      const auto on = on_xy(spec);
      const auto f = sa::jit([&](const Array& q, const Array& k, const Array& v) {
        return sa::filter_shard(attention(q, k, v, causal), on);
      });
      const Array q = numbers(shape) * 0.1, k = numbers(shape, sa::float32, 1) * 0.1,
                  v = numbers(shape, sa::float32, 2);
      const Array qs = sa::device_put(q, on), ks = sa::device_put(k, on), vs = sa::device_put(v, on);
      const sa::Explanation e = sa::explain(f, qs, ks, vs);
      CAPTURE(e.to_string());
      const std::int64_t tile = 4 * q.size() / (shape[0] % 2 == 0 ? 8 : 4);
      // positions against heads for all four, or keys and values to everybody
      const std::int64_t turned = 4 * (tile * 3 / 4), gathered = 2 * 3 * tile;
      CHECK(bytes_received(e) <= (shape[1] % 4 == 0 ? std::min(turned, gathered) : gathered));
      CHECK(golden::close(values(f(qs, ks, vs)), values(attention(q, k, v, causal)), 1e-4, 1e-5));
      check_received(f, qs, ks, vs);
    }
}

TEST_CASE("making: what has several results is made whole, in every place where it is needed") {
  const auto draw = [](const P& first, const P& second) {
    return [=] {
      const Array x = sa::random::normal(sa::random::key(3), {16, 8});
      return std::pair(sa::filter_shard(x, on_xy(first)), sa::filter_shard(x * 2, on_xy(second)));
    };
  };
  const std::vector<double> want = values(sa::random::normal(sa::random::key(3), {16, 8}));
  for (const P& first : {P("x"), P(none, "y"), P(sa::axes("x", "y")), P()})
    for (const P& second : {P("y", "x"), P(), P("x")}) {
      const auto f = sa::jit(draw(first, second));
      CHECK(sa::explain(f).transfers().empty());
      const auto [a, b] = f();
      CHECK(values(a) == want);
      CHECK(values(b * 0.5) == want);
      CHECK(a.sharding().is_equivalent_to(on_xy(first), 2));
    }
}

TEST_CASE("making: a broadcast moves its operand, once for each place") {
  const auto on = on_xy;
  const Array row = placed({64}, on(P("x"))), x = placed({32, 64}, on(P("y")), 1),
              y = placed({64, 32}, on(P("y")), 2);
  const auto f = [&](const Array& r, const Array& a, const Array& b) {
    return std::pair(a + r + a * r, b + sa::expand_dims(r, 1));
  };
  // beside x it is cut by its own axis, beside y by both; 8 of its elements come from elsewhere
  CHECK(planned(f, row, x, y) == "exchange{x,y} 32");
}

TEST_CASE("making: what is like another value lies as that does, whatever is made of it") {
  const Array w = placed({16, 8}, on_xy(P("x", "y")));
  const auto f = sa::jit([](const Array& v) { return sa::zeros_like(v).astype(sa::float64) + 1; });
  CHECK(f(w).sharding().is_equivalent_to(w.sharding(), 2));
}

// Beside the same lines with constants that lie in memory.
TEST_CASE("making: what is like another value is broadcast, rearranged and reduced as any value") {
  const auto stored = [](const Array& x) {
    sa::eval(x);
    return x;
  };
  const Array plain = stored(sa::arange(12.0f).reshape(4, 3) - 5), row = stored(sa::arange(3.0f));
  using One = Array (*)(const Array&);
  using Two = Array (*)(const Array&, const Array&);
  const One references[] = {[](const Array& x) { return x; },
                            [](const Array& x) { return x[0]; },
                            [](const Array& x) { return sa::mean(x, 0); },
                            [](const Array& x) { return sa::sum(x, 1, {.keepdims = true}); },
                            [](const Array& x) {
                              return sa::max(x, {.axis = {0, 1}, .keepdims = true});
                            },
                            [](const Array& x) { return sa::sum(x); },
                            [](const Array& x) { return x[{sa::slice(0, 1)}]; }};
  struct Like {
    One made;
    float value;
  };
  const Like likes[] = {{[](const Array& r) { return sa::zeros_like(r); }, 0},
                        {[](const Array& r) { return sa::ones_like(r); }, 1},
                        {[](const Array& r) { return sa::full_like(r, 3); }, 3},
                        {[](const Array& r) { return sa::exp(sa::zeros_like(r)); }, 1},
                        {[](const Array& r) { return sa::ones_like(r, sa::bool_).astype(sa::float32); }, 1},
                        {[](const Array& r) { return sa::zeros_like(sa::zeros_like(r)) + 2; }, 2}};
  const Two uses[] = {
      [](const Array& x, const Array& l) { return x + l; },
      [](const Array& x, const Array& l) { return sa::maximum(l, x); },
      [](const Array& x, const Array& l) { return sa::where(x > 0, x, l); },
      [](const Array& x, const Array& l) { return sa::where(l > 0, -x, x); },
      [](const Array& x, const Array& l) { return sa::broadcast_to(l, x.shape()) - x; },
      [](const Array& x, const Array& l) {
        return sa::transpose(sa::broadcast_to(l, x.shape())) * sa::transpose(x);
      },
      [](const Array& x, const Array& l) {
        return sa::matmul(x, sa::transpose(sa::broadcast_to(l, x.shape())));
      },
      [](const Array& x, const Array& l) {
        return sa::concatenate({x, sa::flip(sa::broadcast_to(l, x.shape()), 0)}, 0);
      },
      [](const Array& x, const Array& l) { return sa::sum(x + l, 0) + sa::sum(l + x); },
      [](const Array& x, const Array& l) {
        return sa::cumsum(sa::broadcast_to(l, x.shape()), 0) + sa::take(x + l, sa::array({1, 0, 3, 2}), 0);
      }};
  int reference = 0;
  for (const One of : references) {
    reference++;
    for (const Like& like : likes)
      for (std::size_t use = 0; use < std::size(uses); use++) {
        const auto f = [&](const Array& x) { return uses[use](x, like.made(of(x))); };
        const Array constant = stored(sa::full(of(plain).shape(), like.value));
        const auto want = uses[use](plain, constant).to_vector<float>();
        CAPTURE(reference);
        CAPTURE(like.value);
        CAPTURE(use);
        CHECK(f(plain).to_vector<float>() == want);
        CHECK(sa::jit(f)(plain).to_vector<float>() == want);
        for (const auto& spec : {P("x", "y"), P("y"), P(sa::none, "x"), P(sa::axes("x", "y"))})
          CHECK(sa::testing::read<float>(sa::jit(f)(sa::device_put(plain, on_xy(spec)))) == want);
      }
  }
  const auto rows = sa::vmap([&](const Array& x) { return x + sa::zeros_like(row); });
  CHECK(sa::jit(rows)(plain).to_vector<float>() == plain.to_vector<float>());
}

}  // namespace making_test
