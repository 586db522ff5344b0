// Initial weights against jax.nn.initializers.
#include <cmath>
#include <functional>

#include "golden.h"
#include "messages.h"

namespace initializers_test {

namespace sa = shardarray;
using golden::Json;
using sa::Array;
using sa::Shape;
namespace init = sa::nn::initializers;

TEST_CASE("initializers: JAX's numbers") {
  const auto axes = [](const Json& o) {
    init::FanAxes r;
    if (o.contains("in_axis")) r.in_axis = {o["in_axis"].get<int>()};
    if (o.contains("out_axis")) r.out_axis = {o["out_axis"].get<int>()};
    if (o.contains("batch_axis")) r.batch_axis = golden::shape_of(o["batch_axis"]);
    return r;
  };
  const std::map<std::string, std::function<init::VarianceScaling(const init::FanAxes&)>> by_fans{
      {"glorot_uniform", init::glorot_uniform}, {"glorot_normal", init::glorot_normal},
      {"lecun_uniform", init::lecun_uniform},   {"lecun_normal", init::lecun_normal},
      {"he_uniform", init::he_uniform},         {"he_normal", init::he_normal}};
  const Array key = sa::random::key(5);
  int seen = 0;
  const Json cases = golden::load("initializers.json")["cases"];
  for (const Json& c : cases) {
    const std::string name = c["name"];
    CAPTURE(name);
    const Json &o = c["options"], &a = c["arguments"];
    const Shape shape = golden::shape_of(c["shape"]);
    Array x;
    if (by_fans.contains(name)) x = by_fans.at(name)(axes(o))(key, shape);
    else if (name == "variance_scaling")
      x = init::variance_scaling(
          a[0], a[1] == "fan_out" ? init::FanMode::fan_out : init::FanMode::fan_geo_avg,
          a[2] == "normal" ? init::Distribution::normal : init::Distribution::uniform)(key, shape);
    else if (name == "uniform") x = init::uniform()(key, shape);
    else if (name == "normal") x = init::normal(a[0])(key, shape);
    else x = init::truncated_normal(a[0], o["lower"], o["upper"])(key, shape);
    CHECK(golden::close(x, c["out"], 1e-6, 1e-8));
    if (name.find("uniform") != name.npos) CHECK(golden::same_bits(x, c["out"]));  // no erf_inv in it
    seen++;
  }
  CHECK(seen == 14);
}

TEST_CASE("initializers: other dtypes, other names, constants; what is refused") {
  const Array key = sa::random::key(5);
  for (const sa::DType t : {sa::bfloat16, sa::float16, sa::float64}) {
    const Array x = init::he_normal()(key, {64, 32}, t);
    CHECK(x.dtype() == t);
    const double variance = sa::var(x.astype(sa::float32)).item<float>();
    CHECK(variance == doctest::Approx(2.0 / 64).epsilon(0.1));
  }
  const auto values = [&](const auto& f) {
    return golden::values(f(key, Shape{3, 4}, sa::float32, sa::Where()));
  };
  CHECK(values(init::xavier_uniform()) == values(init::glorot_uniform()));
  CHECK(values(init::xavier_normal()) == values(init::glorot_normal()));
  CHECK(values(init::kaiming_uniform()) == values(init::he_uniform()));
  CHECK(values(init::kaiming_normal()) == values(init::he_normal()));
  CHECK(golden::values(init::zeros(key, {2})) == std::vector<double>{0, 0});
  CHECK(golden::values(init::ones(key, {2}, sa::bfloat16)) == std::vector<double>{1, 1});
  CHECK(golden::values(init::constant(2.5)(key, {2})) == std::vector<double>{2.5, 2.5});
  CHECK(init::he_normal()(key, {0, 4}).shape() == Shape{0, 4});
  using sa::testing::message_of;
  CHECK(
      message_of<sa::ShapeError>([&] { init::he_normal()(key, {3}); }) ==
      "nn::initializers: shape [3]. The variance depends on the numbers of inputs and outputs, the last two "
      "dimensions. Give two, or say {.in_axis = ..}.");
  CHECK_THROWS_AS(init::he_normal({.in_axis = {5}})(key, {3, 4}), sa::ShapeError);
  CHECK_THROWS_AS(init::normal()(key, {3}, sa::int32), sa::DTypeError);
  CHECK_THROWS_AS(init::zeros(sa::ones({2}), {3}), sa::DTypeError);
}

}  // namespace initializers_test
