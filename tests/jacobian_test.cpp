// jacfwd, jacrev, hessian, hvp, linearize, eval_shape: JAX's numbers, trees, shapes, messages.
#include <complex>
#include <map>

#include "golden.h"
#include "messages.h"
#include "transforms_helpers.h"

namespace jacobian_test {

namespace sa = shardarray;
using golden::close;
using sa::Array;
using sa::Shape;
using transforms_test::error;

namespace {

struct Affine {
  Array weight, bias;
};

Array layer(const Array& w, const Array& x) { return sa::tanh(sa::matmul(x, w)) + sa::sum(x); }
Array loss(const Array& w, const Array& x) {
  const Array s = sa::sin(sa::matmul(x, w));
  return sa::sum(s * s) + sa::sum(w[0]) * sa::sum(x);
}

}  // namespace

TEST_CASE("jacobian: JAX's numbers, eagerly and jitted, whatever is cut") {
  const golden::Json c = golden::load("transforms.json")["jacobians"];
  const Array v = golden::array(c["v"]);
  const auto mesh = sa::make_mesh({{"x", 3}, {"y", 2}});
  for (const bool is_cut : {false, true}) {
    const auto put = [&](const golden::Json& j, const sa::P& spec) {
      return is_cut ? sa::device_put(golden::array(j), sa::NamedSharding(mesh, spec)) : golden::array(j);
    };
    const Array w = put(c["w"], sa::P("x", "y")), x = put(c["x"], sa::P("x"));
    CHECK(close(sa::jacfwd(layer)(w, x), c["by_w"], 1e-5, 1e-6));
    CHECK(close(sa::jacrev(layer)(w, x), c["by_w"], 1e-5, 1e-6));
    CHECK(close(sa::jit(sa::jacfwd<1>(layer))(w, x), c["by_x"], 1e-5, 1e-6));
    CHECK(close(sa::jit(sa::jacrev<1>(layer))(w, x), c["by_x"], 1e-5, 1e-6));
    CHECK(close(sa::hessian(loss)(w, x), c["hessian_w"], 1e-4, 1e-5));
    CHECK(close(sa::jit(sa::hessian<1>(loss))(w, x), c["hessian_x"], 1e-4, 1e-5));
    CHECK(close(sa::hessian<1>(layer)(w, x), c["hessian_of_layer"], 1e-4, 1e-5));
    CHECK(close(sa::hvp([&](const Array& a) { return loss(w, a); }, x, v), c["hvp_x"], 1e-4, 1e-5));
    const auto [value, linear] = sa::linearize(layer, w, x);
    CHECK(close(value, c["value"], 1e-5, 1e-6));
    CHECK(close(linear(w * 2, v), c["linear"], 1e-5, 1e-6));
    CHECK(close(sa::jit(linear)(w * 2, v), c["linear"], 1e-5, 1e-6));
    const auto both = sa::hessian([](const std::pair<Array, Array>& p) { return loss(p.first, p.second); })(
        std::pair(w, x));
    const Array got[] = {both.first.first, both.first.second, both.second.first, both.second.second};
    for (std::size_t k = 0; k < 4; k++) CHECK(close(got[k], c["hessian_both"][k], 1e-4, 1e-5));
  }
}

TEST_CASE("jacobian: forward and reverse mode agree, for trees of both sides") {
  const Affine model{sa::sin(sa::arange(6.0)).reshape({3, 2}), sa::array({0.5, -0.25})};
  const Array x = sa::array({0.25, -0.5, 1.0});
  const auto f = [&](const Affine& m) {
    const Array y = sa::matmul(x, m.weight) + m.bias;
    return std::map<std::string, std::vector<Array>>{{"all", {sa::tanh(y), sa::sum(y * y)}}, {"none", {}}};
  };
  const auto forward = sa::jacfwd(f)(model), reverse = sa::jacrev(f)(model);
  const std::vector<Affine>& of_all = forward.at("all");
  REQUIRE(of_all.size() == 2);
  CHECK(forward.at("none").empty());
  CHECK(of_all[0].weight.shape() == Shape{2, 3, 2});
  CHECK(of_all[1].bias.shape() == Shape{2});
  const auto a = sa::tree_leaves(forward), b = sa::tree_leaves(reverse);
  REQUIRE(a.size() == b.size());
  for (std::size_t k = 0; k < a.size(); k++) CHECK(sa::allclose(a[k], b[k]));
  // d sum(y y) / d weight[i, j] = 2 y[j] x[i]
  const auto y = (sa::matmul(x, model.weight) + model.bias).to_vector<float>();
  const auto got = of_all[1].weight.to_vector<float>(), xs = x.to_vector<float>();
  for (std::size_t i = 0; i < 3; i++)
    for (std::size_t j = 0; j < 2; j++) CHECK(got[2 * i + j] == doctest::Approx(2 * y[j] * xs[i]));
  // A struct by a struct: one tree for each of its arrays. By one array: the struct.
  const std::vector<Affine> second =
      sa::hessian([&](const Affine& m) { return sa::sum(f(m)["all"][0]); })(model);
  REQUIRE(second.size() == 2);
  CHECK(second[0].bias.shape() == Shape{3, 2, 2});
  CHECK(second[1].bias.shape() == Shape{2, 2});
  const Affine by_x = sa::jacrev([](const Array& v) { return Affine{v * v, sa::sum(v)}; })(x);
  CHECK(by_x.weight.to_vector<float>() == std::vector<float>{0.5, 0, 0, 0, -1, 0, 0, 0, 2});
  CHECK(by_x.bias.to_vector<float>() == std::vector<float>{1, 1, 1});
}

TEST_CASE("jacobian: numbers, what is not floating, empty arrays, vmap") {
  const auto cube = [](const Array& v) { return v * v * v; };
  CHECK(sa::jacfwd(cube)(2.0).item<float>() == 12);
  CHECK(sa::hessian(cube)(2.0).item<float>() == 12);
  CHECK(sa::hvp(cube, 2.0, 3.0).item<float>() == 36);
  const auto [y, linear] = sa::linearize(cube, 2.0);
  CHECK(y.item<float>() == 8);
  CHECK(linear(Array(0.5)).item<float>() == 6);
  CHECK(linear(Array()).item<float>() == 0);
  const std::pair<Array, Array> mixed(sa::array({1.0, 2.0}), sa::array({1, 2}));
  const auto j = sa::jacfwd([](const std::pair<Array, Array>& p) { return p.first * p.second; })(mixed);
  CHECK_FALSE(j.second.has_value());
  CHECK(j.first.to_vector<float>() == std::vector<float>{1, 0, 0, 2});
  for (const bool reverse : {false, true}) {
    const auto by = [&](const auto& f, const Array& x) {
      return reverse ? sa::jacrev(f)(x) : sa::jacfwd(f)(x);
    };
    CHECK(by([](const Array& v) { return sa::sum(v); }, sa::zeros({0})).shape() == Shape{0});
    CHECK(by([](const Array& v) { return v * 2; }, sa::zeros({0, 2})).shape() == Shape{0, 2, 0, 2});
    CHECK(by([](const Array&) { return sa::ones({2}); }, sa::ones({3})).to_vector<float>() ==
          std::vector<float>(6, 0));
  }
  const Array rows = sa::arange(6.0).reshape({3, 2});
  const Array all = sa::vmap(sa::hessian([&](const Array& v) { return sa::sum(cube(v)); }))(rows);
  CHECK(all.shape() == Shape{3, 2, 2});
  CHECK(all[2].to_vector<float>() == std::vector<float>{24, 0, 0, 30});
  const std::tuple<Array, Array> xs(sa::array({1.0, 2.0}), sa::array({3.0, 4.0})),
      vs(sa::ones({2}), sa::zeros({2}));
  const auto [da, db] = sa::hvp([](const Array& a, const Array& b) { return sa::sum(a * a * b); }, xs, vs);
  CHECK(da.to_vector<float>() == std::vector<float>{6, 8});
  CHECK(db.to_vector<float>() == std::vector<float>{2, 4});
}

TEST_CASE("jacobian: messages") {
  const Array x = sa::ones({3});
  CHECK(error<sa::DTypeError>([&] { sa::jacrev([](const Array& v) { return v > 0; })(x); }) ==
        "jacrev: the function must return floating arrays, but it returned bool[3]. Cast with astype.");
  CHECK(error<sa::DTypeError>([&] { sa::jacfwd([](const Array& v) { return v.astype(sa::int32); })(x); }) ==
        "jacfwd: the function must return floating arrays, but it returned i32[3]. Cast with astype.");
  const auto linear = sa::linearize([](const Array& v) { return v * v; }, x).second;
  CHECK(error<sa::ShapeError>([&] { linear(sa::ones({2})); }) ==
        "linearize: the tangent of `0` has shape [2], the value [3]. Both must have the same shape. "
        "Broadcast it "
        "first.");
  CHECK(error<sa::DTypeError>([&] {
          linear(sa::ones({3}, sa::float64));
        }).find("linearize: the tangent of `0` is") == 0);
}

TEST_CASE("eval_shape: shapes and dtypes, and nothing is computed") {
  const auto f = [](const Affine& m, const Array& x) {
    return std::pair(Affine{sa::matmul(x, m.weight), m.bias.astype(sa::bfloat16)}, std::vector<Array>{x > 0});
  };
  const Affine model{sa::shape_dtype_struct({1'000'000, 2'000'000}), sa::shape_dtype_struct({}, sa::float64)};
  const auto [made, flags] = sa::eval_shape(f, model, sa::shape_dtype_struct({3'000'000, 1'000'000}));
  CHECK(made.weight.shape() == Shape{3'000'000, 2'000'000});
  CHECK(made.weight.dtype() == sa::float32);
  CHECK(made.bias.dtype() == sa::bfloat16);
  CHECK(flags[0].dtype() == sa::bool_);
  int calls = 0;
  const auto counted = [&](const Array& v) {
    calls++;
    return sa::jit([](const Array& a) { return sa::grad([](const Array& b) { return sa::sum(b * b); })(a); })(
        v);
  };
  CHECK(sa::eval_shape(counted, sa::ones({4})).shape() == Shape{4});
  CHECK(calls == 1);
  CHECK(error<sa::TraceError>([&] {
          sa::eval_shape([](const Array& v) { return v.item<float>() * v; }, Array(1.0));
        }).find("reading a value inside a trace") != std::string::npos);
  const std::string none =
      "f32[3] has no values: eval_shape or shape_dtype_struct made it. Such an array has a shape and a "
      "dtype, for the arguments of eval_shape and explain. Give an array with values.";
  const Array nothing = sa::shape_dtype_struct({3});
  CHECK(error<sa::TraceError>([&] { (void)nothing.to_vector<float>(); }) == "to_vector: " + none);
  CHECK(error<sa::TraceError>([&] { (void)(nothing + 1).to_vector<float>(); }) == "to_vector: " + none);
  CHECK(error<sa::TraceError>([&] {
          (void)sa::jit([&](const Array& v) { return v + nothing; })(sa::ones({3}));
        }).find(none) != std::string::npos);
  CHECK(error<sa::ShapeError>([] { (void)sa::shape_dtype_struct({-1}); }).find("shape_dtype_struct: ") == 0);
}

TEST_CASE("jacobian: complex numbers as in JAX: whole rows, or a refusal") {
  const Array z = sa::complex(sa::array({0.5, 2.0}), sa::array({1.5, -1.0})), t = sa::array({0.5, 2.0});
  const auto real_part = [](Array v) { return sa::real(v * v); };
  const auto loss = [](Array v) { return sa::sum(sa::real(v * v * v)); };
  const auto turned = [](Array v) { return sa::exp(v * std::complex<double>(0, 1)); };
  const auto square = [](Array v) { return v * v; };
  // A row is the gradient of its element.
  const Array rows = sa::jacrev(real_part)(z);
  CHECK(rows.dtype() == sa::complex64);
  for (std::int64_t k = 0; k < 2; k++)
    CHECK(sa::allclose(rows[k], sa::grad([&](Array v) { return real_part(v)[k]; })(z)));
  CHECK(sa::allclose(sa::jacrev(loss)(z), sa::grad(loss)(z)));
  CHECK(sa::allclose(sa::jacrev(square)(z), sa::diag(z * 2)));
  CHECK(sa::allclose(sa::jacfwd(square)(z), sa::diag(z * 2)));
  CHECK(sa::allclose(sa::jacfwd(turned)(t), sa::diag(turned(t) * std::complex<double>(0, 1))));
  const auto refusal = [](const auto& f) { return sa::testing::message_of<sa::DTypeError>(f); };
  CHECK(refusal([&] { (void)sa::jacrev(turned)(t); }) ==
        "jacrev: the function gives c64[2] from f32[2]. Rows of a complex result by a real argument are half "
        "of it. Use jacfwd, or the "
        "function's real() and imag().");
  const std::string columns =
      "from c64[2]. Columns of a real result by a complex argument are half of it. Use jacrev, or take real "
      "arguments.";
  CHECK(refusal([&] { (void)sa::jacfwd(real_part)(z); }) == "jacfwd: the function gives f32[2] " + columns);
  CHECK(refusal([&] { (void)sa::hessian(loss)(z); }) ==
        "hessian: the function gives f32[] from c64[2]. Second derivatives where one is complex and the "
        "other real are half of it. Take the function's real() and imag() of real arguments.");
  CHECK_THROWS_AS((void)sa::hessian(turned)(t), sa::DTypeError);
  CHECK(sa::allclose(sa::hessian([](Array v) { return sa::sum(v * v * v); })(z), sa::diag(z * 6)));
  // Rows have the argument's dtype: what a narrower result cannot hold is there.
  const auto narrow = [](Array v) { return (v * v * v).astype(sa::float16); };
  const Array slope = sa::jacrev(narrow)(sa::array({200.0}));
  CHECK(slope.dtype() == sa::float32);
  CHECK(slope.item<float>() == 120000);
}

}  // namespace jacobian_test
