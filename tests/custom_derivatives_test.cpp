// custom_jvp, custom_vjp, checkpoint: JAX's numbers, under every transform, what they store, messages.
#include <functional>
#include <map>

#include "golden.h"
#include "program_of.h"
#include "transforms_helpers.h"

namespace custom_derivatives_test {

namespace sa = shardarray;
using golden::close;
using sa::Array;
using sa::Shape;
using transforms_test::error;

namespace {

// The rule calls the function, as many do: its second derivative asks for the rule again.
struct Log1pExp {
  static Array value(const Array& x) { return sa::log(1 + sa::exp(x)); }
  static Array call(const Array& x);
};
const auto log1pexp = sa::custom_jvp([](const Array& x) { return Log1pExp::value(x); },
                                     [](const Array& x, const Array& dx) {
                                       return std::pair(Log1pExp::call(x), (1 - 1 / (1 + sa::exp(x))) * dx);
                                     });
Array Log1pExp::call(const Array& x) { return log1pexp(x); }

const auto clipped = sa::custom_vjp(
    [](const Array& x, const Array&) { return x * 1; },
    [](const Array& x, const Array& most) { return std::pair(x * 1, most); },
    [](const Array& most, const Array& g) { return std::tuple(sa::clip(g, -most, most), Array()); });

}  // namespace

TEST_CASE("custom derivatives: JAX's numbers under grad, jvp, vmap, jit, scan and each other") {
  const golden::Json c = golden::load("transforms.json")["custom"];
  const Array x = golden::array(c["x"]), rows = golden::array(c["rows"]);
  const auto total = [](const Array& v) { return sa::sum(log1pexp(v)); };
  const auto each = [](const Array& v) { return log1pexp(v); };
  CHECK(close(sa::grad(total)(x), c["gradient"], 1e-5, 1e-6));
  CHECK(close(sa::jit(sa::grad(total))(x), c["gradient"], 1e-5, 1e-6));
  CHECK(close(sa::grad([&](const Array& v) { return sa::jit(total)(v); })(x), c["gradient"], 1e-5, 1e-6));
  CHECK(close(sa::vmap(sa::grad(each))(x), c["gradient"], 1e-5, 1e-6));
  CHECK(close(sa::grad([&](const Array& v) { return sa::sum(sa::vmap(each)(v)); })(x), c["gradient"], 1e-5,
              1e-6));
  CHECK(close(sa::jvp(log1pexp, x, x * 2).second, c["tangent"], 1e-5, 1e-6));
  const auto second = sa::grad([&](const Array& v) { return sa::grad(each)(v); });
  CHECK(close(sa::vmap(second)(x), c["second"], 1e-4, 1e-5));
  CHECK(close(sa::jit(sa::vmap(second))(x), c["second"], 1e-4, 1e-5));
  // Rows first, derivatives then.
  const auto sum_of_rows = [&](const Array& v) { return sa::sum(sa::vmap(each)(v)); };
  const auto twice = sa::grad([&](const Array& v) { return sa::sum(sa::grad(sum_of_rows)(v)); });
  CHECK(close(twice(x), c["second"], 1e-4, 1e-5));
  CHECK(close(sa::vmap(sa::grad(second))(x), c["third"], 1e-3, 1e-4));

  const auto steep = [](const Array& v, const Array& most) {
    const Array y = clipped(v, most);
    return sa::sum(y * y * y);
  };
  CHECK(close(sa::grad(steep)(x, Array(0.7f)), c["clipped"], 1e-5, 1e-6));
  CHECK(close(sa::jit(sa::grad(steep))(x, Array(0.7f)), c["clipped"], 1e-5, 1e-6));
  CHECK(close(sa::vmap(sa::grad(steep), {.in_axes = {0, sa::none}})(rows, Array(0.3f)), c["clipped_rows"],
              1e-5, 1e-6));
  const auto mapped_loss = [&](const Array& r) {
    return sa::sum(sa::vmap(steep, {.in_axes = {0, sa::none}})(r, Array(0.3f)));
  };
  CHECK(close(sa::grad(mapped_loss)(rows), c["clipped_rows"], 1e-5, 1e-6));
  CHECK(sa::grad<1>(steep)(x, Array(0.7f)).item<float>() == 0);  // absent: zero

  const auto steps = [&](const Array& v) {
    return sa::scan(
               [](const Array& h, const Array& r) {
                 return std::pair(log1pexp(h * r) + clipped(h, Array(0.5f)), sa::none);
               },
               v, rows)
        .first;
  };
  CHECK(close(steps(x), c["steps"], 1e-5, 1e-6));
  const auto loss = [&](const Array& v) { return sa::sum(steps(v)); };
  CHECK(close(sa::grad(loss)(x), c["steps_gradient"], 1e-4, 1e-5));
  CHECK(close(sa::jit(sa::grad(loss))(x), c["steps_gradient"], 1e-4, 1e-5));
  const Array on_devices =
      sa::device_put(rows, sa::NamedSharding(sa::make_mesh({{"x", 4}, {"y", 2}}), sa::P(sa::none, "y")));
  CHECK(close(
      sa::grad([&](const Array& v) {
        return sa::sum(sa::vmap(log1pexp)(v) +
                       sa::vmap([](const Array& r) { return clipped(r, Array(9.0f)); })(v));
      })(on_devices),
      [&] {
        golden::Json j = c["rows"];
        const auto r = golden::numbers(j);
        for (std::size_t k = 0; k < r.size(); k++) j["data"][k] = 1 / (1 + std::exp(-r[k])) + 1;
        return j;
      }(),
      1e-5, 1e-6));
}

TEST_CASE("custom derivatives: they count, trees and captured arrays go through them") {
  struct Pair {
    Array a;
    std::vector<Array> b;
    Array count;  // no derivative
  };
  const Array scale = sa::array({2.0, 3.0});
  int pushed = 0;
  const auto f = sa::custom_jvp(
      [scale](const Pair& p, const Array& x) {
        return Pair{p.a * scale * x, {sa::sum(p.b[0])}, p.count};
      },
      [scale, &pushed](const std::tuple<Pair, Array>& x, const std::tuple<Pair, Array>& dx) {
        pushed++;
        const auto& [p, v] = x;
        const auto& [dp, dv] = dx;
        CHECK_FALSE(dp.count.has_value());
        // Ten times what it is.
        return std::pair(Pair{p.a * scale * v, {sa::sum(p.b[0])}, p.count},
                         Pair{10 * scale * (dp.a * v + p.a * dv), {Array()}, Array()});
      });
  const Pair p{sa::array({1.0, 2.0}), {sa::ones({3})}, sa::array({7})};
  const Array x = sa::array({5.0, 6.0});
  CHECK(f(p, x).a.to_vector<float>() == std::vector<float>{10, 36});
  CHECK(pushed == 0);  // nothing is derived
  const auto loss = [&](const Pair& q, const Array& v) {
    const Pair r = f(q, v);
    return sa::sum(r.a) + r.b[0];
  };
  for (int k = 0; k < 2; k++) {
    const auto [by_p, by_x] = k ? sa::jit(sa::grad<0, 1>(loss))(p, x) : sa::grad<0, 1>(loss)(p, x);
    CHECK(by_p.a.to_vector<float>() == std::vector<float>{100, 180});
    CHECK(by_p.b[0].to_vector<float>() == std::vector<float>{0, 0, 0});
    CHECK_FALSE(by_p.count.has_value());
    CHECK(by_x.to_vector<float>() == std::vector<float>{20, 60});
  }
  // The forward and backward functions run where f is derived, and their residuals are any tree.
  int forward = 0;
  const auto g = sa::custom_vjp(
      [](const Array& v) { return sa::sin(v); },
      [&forward, scale](const Array& v) {
        forward++;
        return std::pair(sa::sin(v), std::map<std::string, Array>{{"cos", sa::cos(v)}, {"scale", scale}});
      },
      [scale](const std::map<std::string, Array>& r, const Array& c) {
        return c * r.at("cos") * r.at("scale") * scale;
      });
  CHECK(g(x).to_vector<float>() == sa::sin(x).to_vector<float>());
  CHECK(forward == 0);
  const auto sum_of = [&](const Array& v) { return sa::sum(g(v)); };
  const std::vector<float> want = (sa::cos(x) * scale * scale).to_vector<float>();
  for (const Array& got :
       {sa::grad(sum_of)(x), sa::jit(sa::grad(sum_of))(x), std::get<0>(sa::vjp(g, x).second(sa::ones({2}))),
        sa::grad([&](const Array& v) { return sa::sum(sa::jit(g)(v)); })(x)})
    CHECK(golden::close(got.to_vector<double>(), std::vector<double>(want.begin(), want.end()), 1e-6));
  // Its derivative is derived like any function: d (cos x scale^2) = -sin x scale^2.
  const Array second = sa::grad([&](const Array& v) { return sa::sum(sa::grad(sum_of)(v)); })(x);
  CHECK(sa::allclose(second, -sa::sin(x) * scale * scale));
  CHECK(sa::allclose(sa::jvp([&](const Array& v) { return sa::grad(sum_of)(v); }, x, sa::ones({2})).second,
                     -sa::sin(x) * scale * scale));
}

TEST_CASE("custom derivatives: a function that a rule calls with tangents is derived backwards") {
  // Linear in its argument, with a rule of its own; `twice` has one by vjp. Rules of other functions call them with tangents.
  const auto threefold = sa::custom_jvp(
      [](const Array& x) { return 3 * sa::flip(x); },
      [](const Array& x, const Array& dx) { return std::pair(3 * sa::flip(x), 3 * sa::flip(dx)); });
  const auto twice = sa::custom_vjp([](const Array& x) { return 2 * x; },
                                    [](const Array& x) { return std::pair(2 * x, Array(0)); },
                                    [](const Array&, const Array& g) { return 2 * g; });
  const Array x = sa::array({0.5, 1.0, 2.0});
  for (const bool by_jvp : {true, false}) {
    const auto f = sa::custom_jvp([](const Array& v) { return sa::sin(v); },
                                  [=](const Array& v, const Array& dv) {
                                    const Array t = by_jvp ? threefold(dv) : twice(dv);
                                    return std::pair(sa::sin(v), sa::cos(v) * t);
                                  });
    const auto loss = [&](const Array& v) { return sa::sum(f(v) * sa::array({1.0, 10.0, 100.0})); };
    const std::vector<double> c = {std::cos(0.5), 10 * std::cos(1.0), 100 * std::cos(2.0)};
    const std::vector<double> want = by_jvp ? std::vector<double>{3 * c[2], 3 * c[1], 3 * c[0]}
                                            : std::vector<double>{2 * c[0], 2 * c[1], 2 * c[2]};
    CHECK(golden::close(golden::values(sa::grad(loss)(x)), want, 1e-5));
    CHECK(golden::close(golden::values(sa::jit(sa::grad(loss))(x)), want, 1e-5));
    const Array rows = sa::stack({x, x});
    CHECK(golden::close(golden::values(sa::vmap(sa::grad(loss))(rows)[1]), want, 1e-5));
    CHECK(golden::close(
        golden::values(sa::grad([&](const Array& r) { return sa::sum(sa::vmap(loss)(r)); })(rows)[0]), want,
        1e-5));
  }
}

namespace {

int called = 0;
// Each level calls the one below, in its value and in its rule.
Array level(int depth, const Array& x) {
  if (depth == 0) {
    called++;
    return sa::sin(x);
  }
  return sa::custom_jvp([=](const Array& v) { return level(depth - 1, v) + 1; },
                        [=](const Array& v, const Array& dv) {
                          const auto [y, dy] =
                              sa::jvp([=](const Array& u) { return level(depth - 1, u) + 1; }, v, dv);
                          return std::pair(y, dy);
                        })(x);
}
int calls_of(int depth) {
  called = 0;
  const Array x = sa::array({0.5, 1.0});
  const Array g = sa::jit(sa::grad([=](const Array& v) { return sa::sum(level(depth, v)); }))(x);
  CHECK(golden::close(golden::values(g), {std::cos(0.5), std::cos(1.0)}, 1e-5));
  return called;
}

}  // namespace

TEST_CASE("custom derivatives: nested functions are recorded once more for each level, not twice as often") {
  const int few = calls_of(1);
  CHECK(calls_of(12) <= 12 * few + 1);
  // What is derived inside of a value has its rules.
  const auto slope = sa::custom_jvp(
      [](const Array& v) { return sa::grad([](const Array& u) { return level(2, u * u); })(v); },
      [](const Array& v, const Array& dv) { return std::pair(v, dv); });
  CHECK(sa::jit(slope)(Array(0.5f)).item<float>() == doctest::Approx(2 * 0.5 * std::cos(0.25)));
  // A jitted function that was traced inside of a value is derived by its rules elsewhere.
  const auto tenfold =
      sa::custom_jvp([](const Array& v) { return v * 1; },
                     [](const Array& v, const Array& dv) { return std::pair(v * 1, 10 * dv); });
  const auto inner = sa::jit(tenfold);
  const auto outer = sa::custom_jvp([&](const Array& v) { return inner(v); },
                                    [](const Array& v, const Array& dv) { return std::pair(v, dv); });
  CHECK(sa::grad(outer)(Array(1.0f)).item<float>() == 1);
  CHECK(sa::grad([&](const Array& v) { return inner(v); })(Array(1.0f)).item<float>() == 10);
}

TEST_CASE("custom derivatives: messages") {
  const Array x = sa::ones({3});
  const auto identity = [](const Array& v) { return v * 1; };
  const auto reverse_only = sa::custom_vjp(
      identity, [&](const Array& v) { return std::pair(v * 1, v); },
      [](const Array&, const Array& g) { return g; });
  const std::string refused =
      "custom_vjp: forward-mode derivatives (jvp, jacfwd, hessian, linearize) cannot pass a function with "
      "custom_vjp. Its author gave its reverse mode only. Use grad, vjp or jacrev, or give it a custom_jvp.";
  CHECK(error<sa::Error>([&] { (void)sa::jvp(reverse_only, x, x); }) == refused);
  CHECK(error<sa::Error>([&] { (void)sa::jacfwd(reverse_only)(x); }) == refused);
  CHECK(error<sa::Error>([&] { (void)sa::jvp(sa::jit(reverse_only), x, x); }) == refused);
  CHECK(error<sa::Error>([&] {
          (void)sa::jit([&](const Array& v) { return sa::jvp(reverse_only, v, v).second; })(x);
        }) == refused);
  const auto by = [&](auto tangent) {
    const auto f = sa::custom_jvp(
        identity, [tangent](const Array& v, const Array& dv) { return std::pair(v, tangent(dv)); });
    return [f, x] { (void)sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x); };
  };
  CHECK(error<sa::ShapeError>(by([](const Array& d) { return sa::sum(d); })) ==
        "custom_jvp: the tangent of the result has shape [], the value [3]. Both must have the same shape. "
        "Return it "
        "in that shape.");
  CHECK(
      error<sa::DTypeError>(by([](const Array& d) { return d.astype(sa::bfloat16); })) ==
      "custom_jvp: the tangent of the result is bfloat16, the value float32. Both must have the same dtype. "
      "Convert it with astype().");
  const auto back = [&](auto cotangent) {
    const auto f = sa::custom_vjp(
        identity, [](const Array& v) { return std::pair(v * 1, v); },
        [cotangent](const Array&, const Array& g) { return cotangent(g); });
    return [f, x] { (void)sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x); };
  };
  CHECK(error<sa::ShapeError>(back([](const Array& g) {
          return sa::concatenate({g, g});
        })) ==
        "custom_vjp: the cotangent of '0' of the arguments has shape [6], the value [3]. Both must have the "
        "same "
        "shape. "
        "Return it in that shape.");
  const auto other = sa::custom_vjp(
      identity, [](const Array& v) { return std::pair(sa::sum(v), v); },
      [](const Array&, const Array& g) { return g; });
  CHECK(
      error<sa::ShapeError>([&] { (void)sa::grad([&](const Array& v) { return sa::sum(other(v)); })(x); }) ==
      "custom_vjp: the derivative gives f32[] for the result, the function f32[3]. Both give the same "
      "result. Let it "
      "return what the function returns.");
  CHECK(error<sa::Error>([&] {
          (void)sa::grad([&](const Array& w) {
            const auto f =
                sa::custom_jvp([w](const Array& v) { return v * w; },
                               [w](const Array& v, const Array& dv) { return std::pair(v * w, dv * w); });
            return sa::sum(f(x));
          })(x);
        }) ==
        "custom_jvp: a derivative is asked for by an array f32[3] that the function captures. Its derivative "
        "knows "
        "its arguments only. Pass the array as an argument, or capture stop_gradient of it.");
  const auto prints = [](const Array& v) {
    sa::debug::print("{}", v);
    return v * 1;
  };
  CHECK(
      error<sa::TraceError>([&] { (void)sa::jit(sa::checkpoint(prints))(x); }) ==
      "checkpoint: the function prints or calls the host (debug::print). It runs when derivatives do, on the "
      "devices "
      "only. Return what is to be seen.");
}

TEST_CASE("checkpoint: same values and derivatives, under every transform") {
  const Array w = sa::sin(sa::arange(16.0)).reshape({4, 4}), x = sa::cos(sa::arange(12.0)).reshape({3, 4});
  const auto block = [&](const Array& v) { return sa::tanh(sa::matmul(sa::sin(v), w)) + v; };
  const auto loss = [&](auto f) {
    return [f](const Array& v) {
      const Array y = f(f(v));
      return sa::sum(y * y);
    };
  };
  const auto plain = loss(block);
  const auto saved = loss(sa::checkpoint(block));
  const auto same = [](const Array& a, const Array& b) {
    CHECK(sa::allclose(a, b, {.rtol = 1e-4, .atol = 1e-5}));
  };
  const auto mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  for (const sa::P& spec : {sa::P(), sa::P("x"), sa::P("y", "x")}) {
    const Array at = sa::device_put(x, sa::NamedSharding(mesh, spec));
    same(plain(at), saved(at));
    same(sa::grad(plain)(at), sa::grad(saved)(at));
    same(sa::jit(sa::grad(plain))(at), sa::jit(sa::grad(saved))(at));
    same(sa::jvp(plain, at, at).second, sa::jvp(saved, at, at).second);
    const auto twice = [&](auto f) {
      return sa::grad([f](const Array& v) { return sa::sum(sa::sin(sa::grad(f)(v))); })(at);
    };
    same(twice(plain), twice(saved));
    same(sa::vmap(sa::grad(plain))(at), sa::vmap(sa::grad(saved))(at));
  }
  const auto steps = [&](auto f) {
    return sa::grad([f](const Array& v) {
      return sa::sum(sa::scan([&](const Array& c, sa::none_t) { return std::pair(f(c), sa::none); }, v,
                              sa::none, {.length = 4})
                         .first);
    })(x);
  };
  same(steps(block), steps(sa::checkpoint(block)));
  // What it captures has a derivative, too.
  const auto by_w = [&](bool save) {
    return sa::grad([&](const Array& u) {
      const auto f = [&](const Array& v) { return sa::tanh(sa::matmul(v, u)); };
      return sa::sum(save ? sa::checkpoint(f)(x) : f(x));
    })(w);
  };
  same(by_w(false), by_w(true));
}

TEST_CASE("checkpoint: the way back stores arguments only") {
  // Eight blocks of four products each: without checkpoints the activations of 32 are stored, with them those of one block.
  const std::int64_t n = 64;
  const Array w = sa::eye(n) * 0.5;
  const auto block = [](const Array& v, const Array& u) {
    Array h = v;
    for (int k = 0; k < 4; k++) h = sa::tanh(sa::matmul(sa::sin(h), u));
    return h;
  };
  const auto net = [](auto f) {
    return sa::jit(sa::grad([f](const Array& v, const Array& u) {
      Array h = v;
      for (int k = 0; k < 8; k++) h = f(h, u);
      return sa::sum(h);
    }));
  };
  const auto peak = [&](const auto& f) { return sa::explain(f, sa::ones({n, n}), w).peak_bytes_per_device; };
  const std::int64_t one = n * n * 4, plain = peak(net(block)), saved = peak(net(sa::checkpoint(block)));
  MESSAGE("peak: " << plain / one << " arrays, with checkpoints " << saved / one);
  CHECK(plain >= 30 * one);
  CHECK(saved <= 18 * one);
  CHECK(sa::allclose(net(block)(sa::ones({n, n}), w), net(sa::checkpoint(block))(sa::ones({n, n}), w)));
}

}  // namespace custom_derivatives_test
