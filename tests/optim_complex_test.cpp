// Optimizers of complex parameters against optax (tests/reference/optim_complex.py), and what they hold of them.
#include <fmt/core.h>

#include <complex>
#include <limits>
#include <set>

#include "golden.h"
#include "messages.h"

namespace optim_complex_test {

using namespace shardarray;
using golden::Json;

namespace {

struct Params {
  Array b, w;
};
const Json& reference() {
  static const Json all = golden::load("optim_complex.json");
  return all;
}
Array complex_array(const Json& parts, const Shape& shape) {
  const auto numbers = parts.get<std::vector<float>>();
  std::vector<std::complex<float>> r;
  for (std::size_t k = 0; k < numbers.size(); k += 2) r.emplace_back(numbers[k], numbers[k + 1]);
  return array(r).reshape(shape);
}
Params params_of(const Json& b, const Json& w) { return {complex_array(b, {5}), complex_array(w, {4, 3})}; }
std::vector<double> flat(const Params& p) {
  std::vector<double> r;
  for (const Array& a : tree_leaves(p))
    for (const auto z : a.reshape({a.size()}).to_vector<std::complex<float>>()) {
      r.push_back(z.real());
      r.push_back(z.imag());
    }
  return r;
}

std::set<std::string> seen;

template <class O> void check(const std::string& name, const O& optimizer) {
  CAPTURE(name);
  REQUIRE(reference()["optimizers"].contains(name));
  const Json &rows = reference()["optimizers"][name], &grads = reference()["grads"];
  Params p = params_of(reference()["params"]["b"], reference()["params"]["w"]);
  auto state = optimizer.init(p);
  for (std::size_t t = 0; t < rows.size(); t++) {
    auto [updates, next] = optimizer.update(params_of(grads["b"][t], grads["w"][t]), state, p);
    CAPTURE(t);
    CHECK(updates.b.dtype() == complex64);
    CHECK(golden::close(flat(updates), rows[t].get<std::vector<double>>(), 3e-5, 1e-6));
    state = next;
    p = apply_updates(p, updates);
  }
  seen.insert(name);
}

}  // namespace

TEST_CASE("optim: optimizers of complex parameters have optax's updates") {
  using namespace optim;
  seen.clear();
  check("adam", adam(0.1));
  check("adam nesterov", adam(0.1, {.eps_root = 1e-3, .nesterov = true}));
  check("adamw", adamw(0.1));
  check("amsgrad", amsgrad(0.1));
  check("adamax", adamax(0.1));
  check("radam", radam(0.1, {.b2 = 0.9}));
  check("adabelief", adabelief(0.1));
  check("yogi", yogi(0.1));
  check("novograd", novograd(0.1, {.weight_decay = 0.1}));
  check("lamb", lamb(0.1));
  check("lars", lars(0.1));
  check("adafactor", adafactor(0.1, {.min_dim_size_to_factor = 3}));
  check("adafactor whole", adafactor(0.1, {.factored = false}));
  check("rmsprop", rmsprop(0.1));
  check("rmsprop centered", rmsprop(0.1, {.decay = 0.8, .eps = 0.1, .centered = true, .momentum = 0.9}));
  check("adagrad", adagrad(0.1));
  check("adadelta", adadelta(0.5));
  check("lion", lion(0.1));
  check("sign_sgd", sign_sgd(0.1));
  check("sgd nesterov", sgd(0.1, {.momentum = 0.9, .nesterov = true}));
  check("clip_by_global_norm", clip_by_global_norm(3));
  check("clip_by_block_rms", clip_by_block_rms(0.7));
  check("scale_by_param_block_norm", scale_by_param_block_norm(0.8));
  check("scale_by_param_block_rms", scale_by_param_block_rms(0.8));
  check("scale_by_trust_ratio",
        scale_by_trust_ratio({.min_norm = 0.5, .trust_coefficient = 0.3, .eps = 0.1}));
  CHECK(seen.size() == reference()["optimizers"].size());
  const Array norm = optim::global_norm(params_of(reference()["params"]["b"], reference()["params"]["w"]));
  CHECK(norm.dtype() == float32);
  CHECK(norm.item<float>() == doctest::Approx(reference()["global_norm"].get<double>()));
}

TEST_CASE("optim: states begin with the number that was asked for, in every dtype") {
  for (const DType t : {float16, bfloat16, float32, float64, complex64, complex128})
    for (const bool committed : {false, true}) {
      Array x = zeros(3, t);
      if (committed) x = device_put(x, devices("cpu")[0]);
      const auto state = optim::scale_by_rss({.initial_accumulator_value = 0.5}).init(x);
      const Array first = tree_leaves(state)[0];
      CHECK(first.dtype() == t);
      CHECK(array_equal(first, full(3, 0.5, t)));
    }
}

TEST_CASE("losses: whole numbers are floats of the same value, and do not wrap") {
  using namespace losses;
  using Loss = Array (*)(const Array&, const Array&);
  const Loss all[] = {[](const Array& x, const Array& y) { return mse(x, y); },
                      [](const Array& x, const Array& y) { return squared_error(x, y); },
                      [](const Array& x, const Array& y) { return l2_loss(x, y); },
                      [](const Array& x, const Array& y) { return huber_loss(x, y); },
                      [](const Array& x, const Array& y) { return log_cosh(x, y); },
                      [](const Array& x, const Array& y) { return cosine_similarity(x, y); },
                      [](const Array& x, const Array& y) { return cosine_distance(x, y); },
                      [](const Array& x, const Array& y) { return hinge_loss(x, y); }};
  const Array x = array({0, 127, 3, 100}), y = array({100, 0, 5, 1});
  for (const Loss& f : all)
    for (const DType t : {int8, uint8, int16, uint16, int32, uint32, int64, uint64}) {
      CAPTURE(name(t));
      const Array got = f(x.astype(t), y.astype(t));
      CHECK(is_floating(got.dtype()));
      CHECK(
          golden::close(golden::values(got), golden::values(f(x.astype(float32), y.astype(float32))), 1e-6));
    }
  CHECK(mse(array({1, 50'000, 3}), array({2, 0, 23})).item<float>() == doctest::Approx(2.5e9 / 3));
}

TEST_CASE("losses: narrow labels choose among more classes than they could count") {
  const Array logits = reshape(sin(arange(2'000.0)), {2, 1'000}), wide = array({3, 100});
  const Array want = losses::softmax_cross_entropy_with_integer_labels(logits, wide);
  for (const DType t : {int8, uint8, int16, uint16, uint32, int64})
    CHECK(array_equal(losses::softmax_cross_entropy_with_integer_labels(logits, wide.astype(t)), want));
}

TEST_CASE("optim: parts of a schedule are from 0 to 1") {
  for (const double part :
       {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const auto says = [](const auto& f) { return testing::message_of<ShapeError>(f); };
    const std::string rest = "_onecycle_schedule: the part " + fmt::format("{}", part) +
                             " of the steps. It is from 0 to 1. Correct it.";
    CHECK(says([&] { static_cast<void>(optim::linear_onecycle_schedule(10, 1, {.pct_start = part})); }) ==
          "linear" + rest);
    CHECK(says([&] { static_cast<void>(optim::linear_onecycle_schedule(10, 1, {.pct_final = part})); }) ==
          "linear" + rest);
    CHECK(says([&] { static_cast<void>(optim::cosine_onecycle_schedule(10, 1, {.pct_start = part})); }) ==
          "cosine" + rest);
  }
}

}  // namespace optim_complex_test
