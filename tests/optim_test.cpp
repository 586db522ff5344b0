// Optimizers and transformations against optax (tests/reference/optim_more.py): 10 gradients, the updates of every step.
#include <set>

#include "golden.h"

namespace optim_test {

using namespace shardarray;
using golden::Json;

namespace {

struct Params {
  Array b, k, s, w;
};
const Json& reference() {
  static const Json all = golden::load("optim_more.json");
  return all;
}
Params params_of(const Json& j) {
  return {golden::array(j["b"]), golden::array(j["k"]), golden::array(j["s"]), golden::array(j["w"])};
}
std::vector<double> flat(const auto& tree) {
  std::vector<double> r;
  for (const Array& a : tree_leaves(tree))
    for (double v : golden::values(a)) r.push_back(v);
  return r;
}
Params grads_at(int t) {
  static const Params all = params_of(reference()["grads"]);
  return tree_map([&](const Array& a) { return a[t]; }, all);
}
bool is_matrix(const Array& x) { return x.ndim() > 1; }
bool is_vector(const Array& x) { return x.ndim() == 1; }
// A rate that changes, a schedule of the library.
const auto rate = optim::exponential_decay(0.1, 5, 0.5);

std::set<std::string> seen;

template <class O> void check(const std::string& name, const O& optimizer) {
  CAPTURE(name);
  static_assert(optim::GradientTransformation<O, Params>);
  REQUIRE(reference()["optimizers"].contains(name));
  const Json& rows = reference()["optimizers"][name];
  Params p = params_of(reference()["params"]);
  auto state = optimizer.init(p);
  const auto paths = tree_paths(state);
  for (int t = 0; t < static_cast<int>(rows.size()); t++) {
    auto [updates, next] = optimizer.update(grads_at(t), state, p);
    CAPTURE(t);
    CHECK(golden::close(flat(updates), rows[static_cast<std::size_t>(t)].get<std::vector<double>>(), 2e-5,
                        1e-6));
    state = next;
    p = apply_updates(p, updates);
  }
  CHECK(tree_paths(state) == paths);
  seen.insert(name);
}

void check_adaptive() {
  using namespace optim;
  check("adam", adam(0.1, {.b1 = 0.8, .b2 = 0.95, .eps = 1e-6}));
  check("adam eps_root", adam(0.1, {.eps_root = 1e-3}));
  check("adam nesterov", adam(0.1, {.nesterov = true}));
  check("nadam", nadam(rate));
  check("adamw", adamw(0.1));
  check("adamw options",
        adamw(rate, {.b1 = 0.8, .b2 = 0.95, .eps = 1e-5, .eps_root = 1e-6, .weight_decay = 0.1}));
  check("adamw mask", adamw(0.1, {.weight_decay = 0.1}, is_matrix));
  check("nadamw", nadamw(0.1, {.weight_decay = 0.05}));
  check("amsgrad", amsgrad(0.1));
  check("amsgrad options",
        amsgrad(0.1, {.b2 = 0.5, .bias_correction_mu = false, .bias_correction_nu = false}));
  check("adamax", adamax(0.1));
  check("radam", radam(0.1, {.b2 = 0.9}));
  check("radam nesterov", radam(0.1, {.b2 = 0.8, .threshold = 4.5, .nesterov = true}));
  check("adabelief", adabelief(0.1));
  check("adabelief nesterov", adabelief(0.1, {.eps = 1e-6, .eps_root = 1e-4, .nesterov = true}));
  check("yogi", yogi(0.1));
  check("novograd", novograd(0.1));
  check("novograd decay", novograd(0.1, {.b1 = 0.8, .b2 = 0.5, .weight_decay = 0.1}));
  check("lion", lion(0.1));
  check("lion mask", lion(0.1, {.b1 = 0.8, .weight_decay = 0.2}, is_matrix));
  check("lamb", lamb(0.1));
  check("lamb mask", lamb(rate, {.weight_decay = 0.1}, is_matrix));
}
void check_others() {
  using namespace optim;
  check("lars", lars(0.1));
  check("lars masks",
        lars(0.1,
             {.weight_decay = 0.1, .trust_coefficient = 0.1, .eps = 1e-3, .momentum = 0.8, .nesterov = true},
             is_matrix, is_vector));
  check("adafactor", adafactor(0.1, {.min_dim_size_to_factor = 3}));
  check("adafactor alone", adafactor());
  check("adafactor options", adafactor(rate, {.min_dim_size_to_factor = 2,
                                              .decay_rate = 0.7,
                                              .decay_offset = -2,
                                              .multiply_by_parameter_scale = false,
                                              .clipping_threshold = std::nullopt,
                                              .momentum = 0.8,
                                              .weight_decay_rate = 0.01,
                                              .eps = 1e-3}));
  check("adafactor whole", adafactor(0.1, {.clipping_threshold = 0.5, .factored = false}));
  check("rmsprop", rmsprop(0.1));
  check("rmsprop centered",
        rmsprop(0.1, {.decay = 0.8, .eps = 0.1, .initial_scale = 1.5, .centered = true, .momentum = 0.9}));
  check("rmsprop options",
        rmsprop(
            rate,
            {.eps = 1e-3, .eps_in_sqrt = false, .momentum = 0.8, .nesterov = true, .bias_correction = true}));
  check("rmsprop centered corrected", rmsprop(0.1, {.eps = 0.1, .centered = true, .bias_correction = true}));
  check("adagrad", adagrad(0.1));
  check("adagrad options", adagrad(rate, {.initial_accumulator_value = 0, .eps = 1e-3}));
  check("adadelta", adadelta(0.5));
  check("adadelta options", adadelta(0.5, {.rho = 0.8, .eps = 1e-3, .weight_decay = 0.1}));
  check("sign_sgd", sign_sgd(rate));
  check("sgd momentum", sgd(0.1, {.momentum = 0.9}));
  check("sgd nesterov", sgd(rate, {.momentum = 0.9, .nesterov = true}));
}
void check_parts() {
  using namespace optim;
  check("clip", optim::clip(0.3));
  check("clip_by_global_norm", clip_by_global_norm(3));
  check("clip_by_global_norm above", clip_by_global_norm(100));
  check("clip_by_block_rms", clip_by_block_rms(0.7));
  check("trace", optim::trace(0.9));
  check("ema", ema(0.9));
  check("ema biased", ema(0.8, false));
  check("scale", scale(-0.3));
  check("scale_by_schedule", scale_by_schedule(rate));
  check("scale_by_learning_rate", scale_by_learning_rate(0.3, false));
  check("add_decayed_weights", add_decayed_weights(0.1));
  check("add_decayed_weights schedule", add_decayed_weights(rate));
  check("centralize", centralize());
  check("scale_by_param_block_norm", scale_by_param_block_norm(0.8));
  check("scale_by_param_block_rms", scale_by_param_block_rms(0.8));
  check("scale_by_trust_ratio",
        scale_by_trust_ratio({.min_norm = 0.5, .trust_coefficient = 0.3, .eps = 0.1}));
  check("masked",
        masked(scale(3), [](const Array&, const std::string& path) { return path == "k" || path == "w"; }));
  check("apply_every", chain(adam(0.1), apply_every(4)));
  check("multi_steps", multi_steps(adamw(0.1), 3));
  check("multi_steps sum", multi_steps(sgd(0.1, {.momentum = 0.9}), [](const Array& n) { return 2 + n; },
                                       {.use_grad_mean = false}));
  check("chain", chain(clip_by_global_norm(1), adamw(0.1), optim::trace(0.5)));
}

}  // namespace

TEST_CASE("optim: every optimizer has optax's updates") {
  seen.clear();
  check_adaptive();
  check_others();
  check_parts();
  CHECK(seen.size() == reference()["optimizers"].size());
  CHECK(
      golden::close(optim::global_norm(params_of(reference()["params"])), reference()["global_norm"], 1e-6));
  CHECK(optim::global_norm(std::vector<Array>()).item<float>() == 0);
}

TEST_CASE("optim: lookahead has optax's parameters") {
  auto run = [](const std::string& name, const auto& optimizer) {
    CAPTURE(name);
    const Json& rows = reference()["lookaheads"][name];
    auto p = optim::LookaheadParams<Params>::init_synced(params_of(reference()["params"]));
    auto state = optimizer.init(p);
    for (int t = 0; t < static_cast<int>(rows.size()); t++) {
      const auto [updates, next] = optimizer.update(grads_at(t), state, p);
      p = apply_updates(p, updates);
      state = next;
      CHECK(golden::close(flat(p), rows[static_cast<std::size_t>(t)].get<std::vector<double>>(), 2e-5, 1e-6));
    }
  };
  run("lookahead", optim::lookahead(optim::sgd(0.1), 5, 0.3));
  run("lookahead reset", optim::lookahead(optim::adam(0.1), 3, 0.5, true));
}

TEST_CASE("optim: both parameters of lookahead may be taken by the first step") {
  using Both = optim::LookaheadParams<std::vector<Array>>;
  const Array x = device_put(arange(16.0), NamedSharding(make_mesh({{"x", 2}}), P("x")));
  Both p = Both::init_synced({x, Array(), arange(3)});
  CHECK(p.slow[0].sharding() == x.sharding());
  CHECK(p.slow[0].committed());
  CHECK_FALSE(p.slow[1].has_value());
  CHECK(p.slow[2].to_vector<int>() == std::vector<int>{0, 1, 2});
  const auto step = jit(
      [](const Both& b) {
        return Both{{b.fast[0] + 1, Array(), b.fast[2]}, {b.slow[0] + 2, Array(), b.slow[2]}};
      },
      {.donate = Donate::all});
  p = step(p);
  CHECK(shardarray::testing::read<float>(p.fast[0])[3] == 4);
  CHECK(shardarray::testing::read<float>(p.slow[0])[3] == 5);
  const auto inside =
      jit([](const std::vector<Array>& m) { return Both::init_synced(m); })(std::vector<Array>{arange(3.0)});
  CHECK(inside.slow[0].to_vector<float>() == std::vector<float>{0, 1, 2});
}

TEST_CASE("optim: the norm of all gradients that are cut alike is one sum between devices") {
  const auto mesh = make_mesh({{"x", 4}, {"y", 2}});
  const NamedSharding rows(mesh, P("x"));
  const std::vector<Array> grads{device_put(ones({8, 8}), rows), device_put(ones({8}), rows),
                                 device_put(ones({4, 3}), rows)};
  const auto clip = optim::clip_by_global_norm(1);
  const auto report =
      explain([&](const std::vector<Array>& g) { return clip.update(g, clip.init(g)).first; }, grads);
  CHECK(report.transfers().size() == 1);
  CHECK(report.transfers()[0].kind == "all_reduce");
}

// ---------------------------------------------------------------- schedules, losses
namespace {

void check_schedule(const std::string& name, const auto& schedule) {
  CAPTURE(name);
  static_assert(optim::Schedule<std::remove_cvref_t<decltype(schedule)>>);
  REQUIRE(reference()["schedules"].contains(name));
  const Json& expected = reference()["schedules"][name];
  CHECK(golden::close(schedule(arange(32)), expected, 1e-5, 1e-6));
  CHECK(schedule(7).template item<float>() == doctest::Approx(golden::numbers(expected)[7]).epsilon(1e-5));
  CHECK(schedule(array(3, int32)).dtype() == float32);
  seen.insert(name);
}

}  // namespace

TEST_CASE("optim: schedules have optax's values") {
  using namespace optim;
  using Between = PiecewiseSchedule::Between;
  seen.clear();
  check_schedule("constant", constant_schedule(0.3));
  check_schedule("linear", linear_schedule(0.1, 1, 10, 3));
  check_schedule("linear none", linear_schedule(0.1, 1, 0));
  check_schedule("polynomial", polynomial_schedule(1, 0.1, 2.5, 20, 5));
  check_schedule("cosine", cosine_decay_schedule(0.5, 20));
  check_schedule("cosine options", cosine_decay_schedule(0.5, 20, 0.1, 2));
  check_schedule("exponential", exponential_decay(0.5, 7, 0.9));
  check_schedule("exponential options", exponential_decay(0.5, 7, 0.5, {4, true, 0.1}));
  check_schedule("exponential up", exponential_decay(0.5, 7, 1.5, {.end_value = 0.8}));
  check_schedule("exponential zero", exponential_decay(0.5, 7, 0));
  check_schedule("piecewise", piecewise_constant_schedule(0.5, {{5, 0.1}, {20, 3}}));
  check_schedule("piecewise none", piecewise_constant_schedule(0.5));
  check_schedule("interpolate linear",
                 piecewise_interpolate_schedule(Between::linear, 0.5, {{5, 0.1}, {20, 3}}));
  check_schedule("interpolate cosine",
                 piecewise_interpolate_schedule(Between::cosine, 0.5, {{5, 0.1}, {20, 3}}));
  check_schedule("join", join_schedules(std::tuple(linear_schedule(0, 1, 5), constant_schedule(0.7),
                                                   exponential_decay(0.7, 3, 0.5)),
                                        {5, 12}));
  check_schedule("warmup_constant", warmup_constant_schedule(0.1, 1, 9));
  check_schedule("warmup_cosine", warmup_cosine_decay_schedule(0, 1, 5, 25, 0.2, 1.5));
  check_schedule("warmup_exponential", warmup_exponential_decay_schedule(
                                           0, 1, 5, 7, 0.6, {.transition_begin = 3, .end_value = 0.3}));
  check_schedule("sgdr", sgdr_schedule({{0, 1, 2, 10}, {0.1, 0.7, 3, 15, 0.2, 2}}));
  check_schedule("linear_onecycle", linear_onecycle_schedule(27, 0.6));
  check_schedule(
      "cosine_onecycle",
      cosine_onecycle_schedule(27, 0.6, {.pct_start = 0.4, .div_factor = 10, .final_div_factor = 100}));
  CHECK(seen.size() == reference()["schedules"].size());
}

namespace {

void check_loss(const std::string& name, const auto& f) {
  CAPTURE(name);
  REQUIRE(reference()["losses"].contains(name));
  const Json& c = reference()["losses"][name];
  const Array x = golden::array(c["x"]), y = golden::array(c["y"]);
  CHECK(golden::close(f(x, y), c["value"], 2e-5, 1e-6));
  CHECK(golden::close(grad([&](const Array& v) { return sum(f(v, y)); })(x), c["gradient"], 2e-5, 1e-6));
  seen.insert(name);
}

}  // namespace

TEST_CASE("losses: optax's values and gradients") {
  using namespace losses;
  seen.clear();
  using A = const Array&;
  check_loss("squared_error", [](A x, A y) { return squared_error(x, y); });
  check_loss("l2_loss", [](A x, A y) { return l2_loss(x, y); });
  check_loss("huber_loss", [](A x, A y) { return huber_loss(x, y); });
  check_loss("huber_loss delta", [](A x, A y) { return huber_loss(x, y, 2.5); });
  check_loss("log_cosh", [](A x, A y) { return log_cosh(x, y); });
  check_loss("cosine_similarity", [](A x, A y) { return cosine_similarity(x, y); });
  check_loss("cosine_similarity axis",
             [](A x, A y) { return cosine_similarity(x, y, {.epsilon = 100, .axis = 0}); });
  check_loss("cosine_distance", [](A x, A y) { return cosine_distance(x, y); });
  check_loss("sigmoid_binary_cross_entropy", [](A x, A y) { return sigmoid_binary_cross_entropy(x, y); });
  check_loss("hinge_loss", [](A x, A y) { return hinge_loss(x, y); });
  check_loss("kl_divergence", [](A x, A y) { return kl_divergence(x, y); });
  check_loss("kl_divergence_with_log_targets", [](A x, A y) { return kl_divergence_with_log_targets(x, y); });
  check_loss("smooth_labels", [](A x, A y) { return smooth_labels(y, 0.2) + 0 * x; });
  CHECK(seen.size() == reference()["losses"].size());
}

}  // namespace optim_test
