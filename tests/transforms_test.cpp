// grad, jvp, vjp and vmap against plain references and finite differences.
#include <cmath>

#include "transforms_helpers.h"

namespace transforms_test {

using namespace transforms_test;

namespace {

// Central difference of a plain function.
template <class F> double slope(const F& f, double x) {
  const double e = 1e-5;
  return (f(x + e) - f(x - e)) / (2 * e);
}
// scale * (W1 (W0 x + b0))^2 summed
Array quadratic(const Model& m, const Array& x) {
  const Array h = sa::matmul(m.layers[0].weight, x) + m.layers[0].bias;
  return m.scale * sa::sum(sa::square(sa::matmul(m.layers[1].weight, h)));
}
double plain_quadratic(const Values& w0, const Values& b0, const Values& w1, const Values& x, double scale) {
  const double h0 = w0[0] * x[0] + w0[1] * x[1] + b0[0], h1 = w0[2] * x[0] + w0[3] * x[1] + b0[1];
  const double y = w1[0] * h0 + w1[1] * h1;
  return scale * y * y;
}

}  // namespace

TEST_CASE("grad: derivatives of sin") {
  const auto d1 = sa::grad(sa::sin);
  const auto d3 = sa::grad(sa::grad(sa::grad(sa::sin)));
  CHECK(at(d1(1.0)) == doctest::Approx(std::cos(1.0)));
  CHECK(at(d3(1.0)) == doctest::Approx(-std::cos(1.0)));
  CHECK(at(sa::grad([](Array x) { return sa::exp(x * x) / x; })(0.7)) ==
        doctest::Approx(slope([](double x) { return std::exp(x * x) / x; }, 0.7)));
}

TEST_CASE("grad: perturbations are not confused") {
  // d/dx x * (d/dy (x + y)) = 1
  const auto f = [](Array x) { return x * sa::grad([&](Array y) { return x + y; })(1.0); };
  CHECK(at(sa::grad(f)(1.0)) == 1);
  // the same array captured and differentiated
  const Array x = 3.0;
  CHECK(at(sa::grad([&](Array w) { return w * x; })(x)) == 3);
}

TEST_CASE("grad: trees") {
  const Model m = model();
  const Array x = sa::array({1.0, -2.0});
  const auto [loss, g] = sa::value_and_grad(quadratic)(m, x);
  const Values w0{0.5, -1, 2, 0.25}, b0{0.1, -0.2}, w1{1.5, -0.5}, px{1, -2};
  CHECK(at(loss) == doctest::Approx(plain_quadratic(w0, b0, w1, px, 2)));
  Values want;
  for (std::size_t k = 0; k < 4; k++)
    want.push_back(slope(
        [&](double v) {
          Values w = w0;
          w[k] = v;
          return plain_quadratic(w, b0, w1, px, 2);
        },
        w0[k]));
  check_near(g.layers[0].weight, want, 1e-4);
  CHECK(g.layers[0].weight.shape() == Shape{2, 2});
  want.clear();
  for (std::size_t k = 0; k < 2; k++)
    want.push_back(slope(
        [&](double v) {
          Values w = w1;
          w[k] = v;
          return plain_quadratic(w0, b0, w, px, 2);
        },
        w1[k]));
  check_near(g.layers[1].weight, want, 1e-4);
  CHECK_FALSE(g.layers[1].bias.has_value());
  CHECK_FALSE(g.steps.has_value());  // an integer
  CHECK(g.scale == 2);

  // a leaf that is not used has gradient zero
  const auto unused =
      sa::grad([](const Layer& l) { return sa::sum(l.weight); })(Layer{sa::ones({2}), sa::ones({3})});
  check_near(unused.bias, {0, 0, 0});
}

TEST_CASE("grad: argnums and has_aux") {
  const auto f = [](Array x, Array y) { return x * x * y; };
  CHECK(at(sa::grad(f, {.argnums = {1}})(3.0, 5.0)) == 9);
  const auto [gx, gy] = sa::grad(f, {.argnums = {0, 1}})(3.0, 5.0);
  CHECK(at(gx) == 30);
  CHECK(at(gy) == 9);
  const auto [v, turned] = sa::value_and_grad(f, {.argnums = {1, 0}})(3.0, 5.0);
  CHECK(at(v) == 45);
  CHECK(at(std::get<0>(turned)) == 9);
  CHECK(at(sa::grad<1>(quadratic)(model(), sa::array({1.0, -2.0}))[0]) ==
        doctest::Approx(slope(
            [](double x) {
              return plain_quadratic({0.5, -1, 2, 0.25}, {0.1, -0.2}, {1.5, -0.5}, {x, -2}, 2);
            },
            1)));

  const auto with_aux = [](Array x) { return std::pair(x * x, std::vector{x + 1, x + 2}); };
  const auto [g, aux] = sa::grad(with_aux, {.has_aux = true})(3.0);
  CHECK(at(g) == 6);
  CHECK(at(aux.at(1)) == 5);
  const auto [both, g2] = sa::value_and_grad(with_aux, {.has_aux = true})(3.0);
  CHECK(at(both.first) == 9);
  CHECK(at(both.second.at(0)) == 4);
  CHECK(at(g2) == 6);

  CHECK(error<sa::TreeError>([&] { sa::grad(f, {.argnums = {2}})(1.0, 1.0); }) ==
        "grad: argnums names argument 2, the call has 2 arguments. Positions count from 0. Correct argnums.");
  CHECK(error<sa::TreeError>([&] {
          sa::grad(f, {.argnums = {0, 0}})(1.0, 1.0);
        }) == "grad: argnums names argument 0 twice. Every argument has one gradient. Correct argnums.");
  CHECK(error<sa::TreeError>(
            [&] { sa::value_and_grad(quadratic, {.argnums = {1}})(model(), sa::ones({2})); }) ==
        "value_and_grad: argnums names argument 1 in place 0, and its type is not that of argument 0. The "
        "type of the "
        "result is fixed at compile time. Write value_and_grad<1>(f) instead of argnums.");
  CHECK(error<sa::TreeError>([&] { sa::grad(f, {.argnums = {0}, .has_aux = true})(1.0, 1.0); }) ==
        "grad: has_aux is set and the function returns one Array. With has_aux it returns (loss, aux). "
        "Return a "
        "std::pair, or leave has_aux out.");
  CHECK(error<sa::TreeError>([&] { sa::grad(with_aux, {.argnums = {0}})(1.0); }) ==
        "grad: the function returns (loss, aux) and has_aux is not set. Without has_aux it returns one "
        "Array. Say "
        "{.has_aux = true}.");
}

TEST_CASE("grad: values can be read inside, losses must be scalars") {
  double seen = 0;
  const auto f = [&](Array x) {
    const Array y = x * x;
    seen = at(y);
    return y > 3 ? 2 * y : y;  // data dependent control flow
  };
  CHECK(at(sa::grad(f)(2.0)) == 8);
  CHECK(seen == 4);
  CHECK(at(sa::grad(f)(1.0)) == 2);
  CHECK(contains(error<sa::ShapeError>([] { sa::grad([](Array x) { return 2 * x; })(sa::ones({2})); }),
                 "Gradient only defined for scalar-output functions. Output had shape: "));
  CHECK(error<sa::DTypeError>([] { sa::grad([](Array x) { return sa::sum(x > 0); })(sa::ones({2})); }) !=
        "no such error");
}

TEST_CASE("grad: stop_gradient") {
  CHECK(at(sa::grad([](Array x) { return x * sa::stop_gradient(x); })(3.0)) == 3);
  const auto g = sa::grad([](const Layer& l) {
    return sa::sum(l.weight * sa::stop_gradient(l).weight * l.bias);
  })(Layer{sa::array({2.0}), sa::array({5.0})});
  check_near(g.weight, {10});
  check_near(g.bias, {4});
}

TEST_CASE("jvp and vjp") {
  const auto f = [](Array x, Array y) { return std::pair(sa::sin(x) * y, x + 1); };
  const auto [v, t] = sa::jvp(f, std::tuple(Array(0.5), Array(2.0)), std::tuple(Array(1.0), Array(3.0)));
  CHECK(at(v.first) == doctest::Approx(std::sin(0.5) * 2));
  CHECK(at(t.first) == doctest::Approx(std::cos(0.5) * 2 + std::sin(0.5) * 3));
  CHECK(at(t.second) == 1);
  // an absent tangent is zero; one argument needs no tuple
  const auto [u, s] = sa::jvp(f, std::tuple(Array(0.5), Array(2.0)), std::tuple(Array(), Array(3.0)));
  CHECK(at(s.first) == doctest::Approx(std::sin(0.5) * 3));
  CHECK(at(s.second) == 0);
  CHECK(at(sa::jvp(sa::exp, Array(1.0), Array(2.0)).second) == doctest::Approx(2 * std::exp(1.0)));

  const auto [w, pull] = sa::vjp(f, Array(0.5), Array(2.0));
  CHECK(at(w.second) == 1.5);
  const auto [cx, cy] = pull({Array(1.0), Array(10.0)});
  CHECK(at(cx) == doctest::Approx(std::cos(0.5) * 2 + 10));
  CHECK(at(cy) == doctest::Approx(std::sin(0.5)));
  const auto [zx, zy] = pull({Array(), Array(10.0)});
  CHECK(at(zx) == 10);
  CHECK(at(zy) == 0);

  CHECK(error<sa::ShapeError>([] { sa::jvp(sa::exp, sa::ones({2}), sa::ones({3})); }) ==
        "jvp: the tangent of `0` has shape [3], the value [2]. Both must have the same shape. Broadcast it "
        "first.");
  CHECK(error<sa::DTypeError>([] { sa::jvp(sa::exp, sa::ones({2}), sa::ones({2}, sa::float16)); }) ==
        "jvp: the tangent of `0` is float16, the value float32. Both must have the same dtype. Convert it "
        "with astype().");
  CHECK(error<sa::DTypeError>(
            [] { sa::jvp([](Array n) { return n; }, sa::ones({2}, sa::int32), sa::ones({2}, sa::int32)); }) ==
        "jvp: there is a tangent for `0`, which is i32[2]. Only floating-point arrays have tangents. Leave "
        "it absent "
        "(Array()).");
}

TEST_CASE("jvp and vjp: pullbacks outlive each other") {
  auto [a, first] = sa::vjp(sa::sin, Array(1.0));
  auto second = sa::vjp(sa::cos, Array(2.0)).second;
  first = sa::vjp(sa::sin, Array(3.0)).second;  // the older one goes first
  CHECK(at(std::get<0>(first(1.0))) == doctest::Approx(std::cos(3.0)));
  CHECK(at(std::get<0>(second(1.0))) == doctest::Approx(-std::sin(2.0)));
  CHECK(at(sa::grad(sa::sin)(1.0)) == doctest::Approx(std::cos(1.0)));
}

TEST_CASE("vmap: axes") {
  const Array x = sa::array({1, 2, 3, 4, 5, 6}, {3, 2}, sa::float32), y = sa::array({10.0, 20.0});
  const auto scaled = sa::vmap([](Array a, Array b) { return sa::sum(a) * b; }, {.in_axes = {0, sa::none}});
  check_near(scaled(x, y), {30, 60, 70, 140, 110, 220});
  CHECK(scaled(x, y).shape() == Shape{3, 2});
  check_near(sa::vmap(sa::sum)(x), {3, 7, 11});
  const auto sum = [](Array a) { return sa::sum(a); };
  check_near(sa::vmap(sum, {.in_axes = 1})(x), {9, 12});
  check_near(sa::vmap(sum, {.in_axes = -1})(x), {9, 12});

  // trees of axes on both sides
  const auto f = sa::vmap(
      [](const std::pair<Array, Array>& p, Array z) { return std::tuple(p.first * z, p.second + 0, z); },
      {.in_axes = {{0, sa::none}, 1}, .out_axes = {1, sa::none, 0}});
  const auto [a, b, c] = f(std::pair(x, y), sa::transpose(x));
  CHECK(a.shape() == Shape{2, 3});
  check_near(a, {1, 9, 25, 4, 16, 36});
  check_near(b, {10, 20});
  check_near(c, {1, 2, 3, 4, 5, 6});

  // nested, a module, statics, absent leaves
  check_near(sa::vmap(sa::vmap([](Array u, Array v) { return u * v; }, {.in_axes = {sa::none, 0}}),
                      {.in_axes = {0, sa::none}})(sa::array({1.0, 2.0}), sa::array({3.0, 4.0, 5.0})),
             {3, 4, 5, 6, 8, 10});
  const auto [l, n] = sa::vmap([](const Layer& layer, int k) {
    return std::pair(Layer{layer.weight * k, layer.bias}, k);
  })(Layer{x, Array()}, 2);
  check_near(l.weight, {2, 4, 6, 8, 10, 12});
  CHECK_FALSE(l.bias.has_value());
  struct Scaled {
    int power;
    Array weight;
    std::string name;
    Array bias;
  };
  const Scaled scaled_model{2, x, "scaled", y};
  const auto apply = [](const Scaled& m) { return sa::sum(m.weight * m.power + m.bias); };
  check_near(sa::vmap(apply, {.in_axes = {{0, sa::none}}})(scaled_model), {36, 44, 52});
  check_near(sa::vmap(apply, {.in_axes = {{0, 0, 0, sa::none}}})(scaled_model), {36, 44, 52});
  CHECK(n == 2);
  struct Affine {
    Array w;
    Array operator()(const Array& v) const { return sa::sum(w * v); }
  };
  check_near(sa::vmap(Affine{y})(x), {50, 110, 170});
  // a constant result is repeated
  check_near(sa::vmap([](Array) { return Array(7.0); })(x), {7, 7, 7});
  check_near(sa::vmap([](Array v) { return v + sa::axis_index("i"); },
                      {.in_axes = sa::none, .axis_name = "i", .axis_size = 3})(Array(1.0)),
             {1, 2, 3});
}

TEST_CASE("vmap: errors") {
  const Array x = sa::ones({3, 2});
  const auto add = [](Array a, Array b) { return a + b; };
  CHECK(contains(error<sa::ShapeError>([&] {
                   sa::vmap(add)(x, sa::ones({4, 2}));
                 }),
                 "vmap: got inconsistent sizes for array axes to be mapped:"));
  CHECK(contains(error<sa::ShapeError>([&] { sa::vmap(sa::sum, {.in_axes = 2})(x); }), "axis 2"));
  CHECK(contains(error<sa::Error>([&] { sa::vmap(sa::sum, {.in_axes = sa::none})(x); }), "vmap"));
  CHECK(error<sa::Error>([&] { sa::vmap(sa::sum, {.axis_size = 4})(x); }) != "no such error");
  CHECK(contains(error<sa::Error>([&] { sa::vmap(sa::sum, {.out_axes = sa::none, .axis_name = "foo"})(x); }),
                 "vmap: has mapped output (axis_name='foo') but out_axes is none"));
  CHECK(error<sa::TreeError>([&] {
          sa::vmap(add, {.in_axes = {0, 0, 0}})(x, x);
        }) ==
        "vmap: in_axes has 3 entries for 2 parts. A list needs one entry for each argument, element or "
        "field. Write one "
        "number or none for all of them, or one for each.");
  CHECK(error<sa::TraceError>([&] {
          sa::vmap([](Array a) { return sa::psum(a, "j"); }, {.axis_name = "i"})(x);
        }) != "no such error");
}

TEST_CASE("vmap, jit and grad together") {
  const Values c{1, 2, 3}, xs{0.5, -1, 2};
  const Array ac = sa::array({1.0, 2.0, 3.0}), axs = sa::array({0.5, -1.0, 2.0});
  // grad of vmap of grad through a captured value: sum over x of d/dw cos(w x) x
  const auto inner = [&](double w) {
    double r = 0;
    for (const double x : xs) r += std::cos(w * x) * x;
    return r;
  };
  const auto outer = [&](Array w) {
    return sa::sum(
        sa::vmap([&](Array x) { return sa::grad([&](Array v) { return sa::sin(v * x); })(w); })(axs));
  };
  CHECK(at(sa::grad(outer)(0.4)) == doctest::Approx(slope(inner, 0.4)).epsilon(1e-4));

  // psum in vmap in jit in grad, with a captured array, a captured outer variable and the row's position
  const double s = 0.7;
  const auto plain = [&](double w) {
    double total = 0, r = 0;
    for (const double v : c) total += v * s * w;
    for (std::size_t k = 0; k < 3; k++) r += std::sin(total * c[k] * s) * static_cast<double>(k + 1) * c[k];
    return r;
  };
  const auto whole = [&](Array w) {
    const auto rows = sa::jit(
        sa::vmap([&](Array r) { return sa::sin(sa::psum(r * w, "i") * r) * (sa::axis_index("i") + 1); },
                 {.axis_name = "i"}));
    return sa::sum(rows(ac * s) * ac);
  };
  CHECK(at(whole(0.3)) == doctest::Approx(plain(0.3)));
  CHECK(at(sa::grad(whole)(0.3)) == doctest::Approx(slope(plain, 0.3)).epsilon(1e-4));

  // psum over the outer axis inside the inner map; of an unmapped value
  const auto nested =
      sa::vmap([&](Array a) { return sa::vmap([&](Array b) { return sa::psum(a * b, "o"); })(ac); },
               {.axis_name = "o"});
  CHECK(at(sa::sum(nested(axs))) == doctest::Approx(3 * 1.5 * 6));
  check_near(sa::vmap([](Array) { return sa::psum(Array(2.0), "i"); }, {.axis_name = "i"})(ac), {6, 6, 6});
  check_near(sa::vmap([](Array x) { return sa::psum(x, "i"); }, {.out_axes = sa::none, .axis_name = "i"})(ac),
             {6});
  // per-row gradient of psum is the number of rows
  check_near(sa::vmap(sa::grad([](Array x) { return sa::psum(x, "i"); }), {.axis_name = "i"})(ac), {3, 3, 3});

  // jit in grad, grad in jit, jit in vmap
  const auto j = sa::jit([](Array x) { return sa::sum(sa::exp(x * x)); });
  const auto exp2 = [](double x) { return std::exp(x * x); };
  check_near(sa::grad(j)(axs), {slope(exp2, 0.5), slope(exp2, -1), slope(exp2, 2)}, 1e-4);
  check_near(sa::jit(sa::grad(j))(axs), {slope(exp2, 0.5), slope(exp2, -1), slope(exp2, 2)}, 1e-4);
  check_near(sa::vmap(j)(axs), {exp2(0.5), exp2(-1), exp2(2)});
  // second derivative of a jitted function
  CHECK(at(sa::grad(sa::grad(sa::jit([](Array x) { return x * x * x; })))(2.0)) == 12);
}

}  // namespace transforms_test
