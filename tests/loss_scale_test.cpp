// Loss scales: how they grow and shrink, steps with non-finite gradients, in jit and sharded.
#include "golden.h"
#include "messages.h"

namespace loss_scale_test {

using namespace shardarray;

namespace {

struct Net {
  Array weight, bias, index;
  int size;
};
constexpr double infinity = std::numeric_limits<double>::infinity();

// jmp's rule in plain numbers.
struct PlainScale {
  float scale;
  int good = 0;
  void adjust(bool finite, const optim::LossScaleOptions& o) {
    if (!finite) {
      scale = std::max(scale * static_cast<float>(o.backoff_factor), static_cast<float>(o.min_scale));
      good = 0;
      return;
    }
    const float grown = scale * static_cast<float>(o.growth_factor);
    good++;
    if (good < o.growth_interval) return;
    good = 0;
    if (std::isfinite(grown)) scale = grown;
  }
};

}  // namespace

TEST_CASE("optim: a loss scale grows and shrinks, and what is not finite changes nothing") {
  for (const double first : {1024.0, 1.5, 2e38}) {
    const optim::LossScaleOptions o{.initial = first, .growth_interval = 3};
    optim::LossScale scale = optim::LossScale::init(o);
    PlainScale plain{static_cast<float>(first)};
    const auto adjust = jit([](optim::LossScale s, Array finite) { return s.adjust(finite); });
    for (const char step : std::string("ggggggbggbbbggg")) {
      scale = adjust(scale, array(step == 'g'));
      plain.adjust(step == 'g', o);
      CHECK(scale.scale.item<float>() == plain.scale);
      CHECK(scale.good_steps.item<int>() == plain.good);
    }
    CHECK(scale.scale.dtype() == float32);
  }
  CHECK(optim::all_finite(std::tuple(ones(3), arange(3), Array())).item<bool>());
  CHECK(optim::all_finite(std::tuple()).item<bool>());
  CHECK_FALSE(optim::all_finite(std::tuple(ones(3), array({1.0, infinity}))).item<bool>());
  CHECK_FALSE(optim::all_finite(array({1.0, std::nan("")}).astype(float16)).item<bool>());

  // with a scale that is a power of two the steps are those without one
  const Sharding rows = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  for (const bool sharded : {false, true}) {
    Net plain{arange(32).reshape(16, 2).astype(float32) / 16, ones({2}), Array(), 7};
    if (sharded) plain.weight = device_put(plain.weight, rows);
    Net scaled = plain;
    const auto inner = optim::adam(0.1);
    const auto outer = optim::dynamic_loss_scale(inner, {.initial = 256, .growth_interval = 2});
    auto plain_state = inner.init(plain);
    auto state = outer.init(scaled);
    const auto loss = [](const Net& n, const Array& factor) {
      return sum(square(n.weight - 0.3)) * factor + sum(square(n.bias));
    };
    const auto step = jit([=](Net n, auto s, Array factor) {
      const auto of_scaled = [&](const Net& m) { return s.loss_scale.scaled(loss(m, factor)); };
      auto [updates, next] = outer.update(grad(of_scaled)(n), s, n);
      return std::pair(apply_updates(n, updates), next);
    });
    for (const double factor : {1.0, 2.0, infinity, 1.0}) {
      std::tie(scaled, state) = step(scaled, state, Array(factor));
      if (std::isinf(factor)) continue;
      const auto g = grad([&](const Net& m) { return loss(m, Array(factor)); })(plain);
      auto [updates, next] = inner.update(g, plain_state, plain);
      plain = apply_updates(plain, updates);
      plain_state = next;
      CHECK(golden::close(shardarray::testing::values(scaled.weight),
                          shardarray::testing::values(plain.weight), 1e-6));
      CHECK(golden::close(scaled.bias.to_vector<double>(), plain.bias.to_vector<double>(), 1e-6));
    }
    CHECK(state.inner_state.count.item<int>() == 3);
    CHECK(state.loss_scale.scale.item<float>() == 256);  // doubled, halved
    CHECK(state.loss_scale.good_steps.item<int>() == 1);
    CHECK_FALSE(scaled.index.has_value());
    CHECK(scaled.size == 7);
  }
  // 16-bit gradients whose scale has no inverse in their dtype
  const optim::LossScale large = optim::LossScale::init({.initial = 1 << 26});
  CHECK(large.unscale(full({2}, 65504, float16)).dtype() == float16);
  CHECK(large.unscale(full({2}, 32768, float16)).to_vector<double>()[0] == std::ldexp(1.0, -11));
  CHECK(large.scaled(ones({}, bfloat16)).dtype() == bfloat16);
}

TEST_CASE("optim: loss scales that are none are refused") {
  CHECK_SAYS(optim::LossScale::init({.backoff_factor = 0}),
             "loss_scale: 0 among the options. Scales and factors are positive. Change it.", Error);
  CHECK_THROWS_AS((void)optim::dynamic_loss_scale(optim::adam(1), {.growth_interval = 0}).init(ones(2)),
                  ShapeError);
}

}  // namespace loss_scale_test
