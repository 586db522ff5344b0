// Optimizers as values: states under jit, donation and sharding, absent arrays, dtypes, messages.
#include "golden.h"

namespace optim_values_test {

using namespace shardarray;
using shardarray::testing::values;

namespace {

struct Net {
  Array weight, bias, index;
  int size;
};
std::string text_of(const auto& f) {
  try {
    f();
  } catch (const Error& e) { return e.text(); }
  return "no error";
}
struct Twice {
  optim::EmptyState init(const Net&) const { return {}; }
  std::pair<Net, optim::EmptyState> update(const Net& g, const optim::EmptyState& s, const auto&) const {
    return {tree_map([](const Array& x) { return 2 * x; }, g), s};
  }
};
bool is_matrix(const Array& x) { return x.ndim() > 1; }

}  // namespace

TEST_CASE("optim: a chain's state is a tree: jit, donation, shardings") {
  const auto optimizer = optim::chain(
      optim::clip_by_global_norm(1),
      optim::adamw(optim::warmup_cosine_decay_schedule(0, 0.1, 2, 10), {.weight_decay = 0.1}, is_matrix));
  const Sharding rows = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  auto model = [&](bool sharded) {
    Net n{arange(32).reshape(16, 2).astype(float32) / 16, ones({2}), Array(), 7};
    if (sharded) n.weight = device_put(n.weight, rows);
    return n;
  };
  CHECK(tree_paths(optimizer.init(model(false))) ==
        std::vector<std::string>{"[1][0].count", "[1][0].mu.weight", "[1][0].mu.bias", "[1][0].nu.weight",
                                 "[1][0].nu.bias", "[1][2].count"});
  const auto step = jit([=](const Net& m, const decltype(optimizer.init(model(false)))& s) {
    auto loss = [](const Net& n) { return sum(square(matmul(n.weight, n.bias))); };
    const auto [updates, next] = optimizer.update(grad(loss)(m), s, m);
    return std::pair(apply_updates(m, updates), next);
  });
  auto run = [&](bool sharded) {
    Net m = model(sharded);
    auto s = optimizer.init(m);
    if (sharded) CHECK(std::get<0>(std::get<1>(s)).mu.weight.sharding() == rows);
    for (int k = 0; k < 4; k++) {
      const auto [moved, next] = step(std::move(m), std::move(s));
      CHECK(m.weight.is_deleted());
      CHECK(std::get<0>(std::get<1>(s)).nu.weight.is_deleted());
      m = moved;
      s = next;
    }
    CHECK(std::get<0>(std::get<1>(s)).count.template item<int>() == 4);
    if (sharded) CHECK(std::get<0>(std::get<1>(s)).mu.weight.committed());
    return values(m.weight);
  };
  const auto one = run(false), eight = run(true);
  CHECK(golden::close(one, eight, 1e-6));
  CHECK(one[1] < 1.0 / 16);
}

TEST_CASE("optim: init in a trace, several gradients for one update in one jitted step") {
  const auto optimizer = optim::multi_steps(optim::yogi(0.1), 2);
  const Net model{ones({4, 2}), ones({2}), Array(), 7};
  auto state = jit([=](const Net& m) { return optimizer.init(m); })(model);
  CHECK(tree_equal(state, optimizer.init(model)));
  CHECK(golden::close(values(std::get<0>(state.inner_opt_state).nu.bias), {1e-6, 1e-6}, 1e-6));
  const auto step = jit([=](const Net& m, const decltype(state)& s) {
    const auto [updates, next] = optimizer.update(m, s);
    return std::tuple(apply_updates(m, updates), next, optimizer.has_updated(next));
  });
  Net m = model;
  for (const bool updated : {false, true, false, true}) {
    const Net before = m;
    Array has_updated;
    std::tie(m, state, has_updated) = step(std::move(m), std::move(state));
    CHECK(has_updated.item<bool>() == updated);
    CHECK(array_equal(m.weight, before.weight) == !updated);
  }
  CHECK(state.gradient_step.item<int>() == 2);
}

TEST_CASE("optim: what is new lies where its parameter lies") {
  const Sharding rows = NamedSharding(make_mesh({{"x", 8}}), P("x", none));
  const Array w = device_put(ones({16, 8}), rows);
  const auto factored = optim::scale_by_factored_rms({.min_dim_size_to_factor = 8}).init(w);
  CHECK(factored.v_row.shape() == Shape{8});
  CHECK(factored.v_col.shape() == Shape{16});
  for (const Array& a : {factored.v_row, factored.v_col}) {
    CHECK(a.committed());
    CHECK(a.devices().size() == 8);
    CHECK(golden::close(values(a), std::vector<double>(static_cast<std::size_t>(a.size())), 0));
  }
  const auto sums = optim::scale_by_rss().init(w).sum_of_squares;
  CHECK(sums.sharding() == rows);
  CHECK(golden::close(values(sums), std::vector<double>(128, 0.1), 1e-6));
  CHECK(optim::multi_steps(optim::sgd(1), 2).init(w.astype(float16)).acc_grads.sharding() == rows);
}

TEST_CASE("optim: absent arrays stay absent, in every kind of state") {
  const Net t{ones({3, 2}), Array(), arange(2), 7}, grads{ones({3, 2}), Array(), Array(), 7};
  auto run = [&](const auto& optimizer) {
    const auto state = optimizer.init(t);
    const auto [updates, next] = optimizer.update(grads, state, t);
    CHECK(tree_paths(updates) == std::vector<std::string>{"weight"});
    CHECK(tree_paths(next) == tree_paths(state));
    return tree_paths(next);
  };
  using Paths = std::vector<std::string>;
  CHECK(run(optim::adamw(0.1)) == Paths{"[0].count", "[0].mu.weight", "[0].nu.weight"});
  CHECK(run(optim::rmsprop(0.1)) == Paths{"[0].nu.weight"});
  CHECK(run(optim::rmsprop(0.1, {.centered = true, .momentum = 0.9, .bias_correction = true})) ==
        Paths{"[1].count", "[1].mu.weight", "[1].nu.weight", "[3].trace.weight"});
  CHECK(run(optim::multi_steps(optim::adam(0.1), 2)) ==
        Paths{"mini_step", "gradient_step", "inner_opt_state.count", "inner_opt_state.mu.weight",
              "inner_opt_state.nu.weight", "acc_grads.weight"});
  CHECK(run(optim::adafactor(0.1)) ==
        Paths{"[0].count", "[0].v_row.weight", "[0].v_col.weight", "[0].v.weight"});
  CHECK(run(optim::novograd(0.1)) == Paths{"[0].count", "[0].mu.weight", "[0].nu.weight"});
  // What a mask leaves out has no state.
  const auto masked = optim::masked(optim::trace(0.9), [](const Array& x) { return x.ndim() < 2; });
  CHECK(tree_paths(masked.init(t)).empty());
  CHECK(run(masked).empty());
  CHECK(run(optim::chain()).empty());
}

TEST_CASE("optim: dtypes of updates and states, numbers of float64 keep their digits") {
  const Array half = array({1.0, -2.0}, float16), wide = array(std::vector<double>{1.0, -2.0});
  auto types = [&](const auto& optimizer) {
    for (const Array& p : {half, wide}) {
      const auto state = optimizer.init(p);
      const auto [updates, next] = optimizer.update(p, state, p);
      CHECK(updates.dtype() == p.dtype());
      for (const Array& a : tree_leaves(next)) CHECK((a.dtype() == p.dtype() || a.dtype() == int32));
    }
  };
  types(optim::adamw(optim::linear_schedule(1, 0.1, 10)));
  types(optim::lamb(0.1));
  types(optim::adafactor(0.1, {.min_dim_size_to_factor = 1, .momentum = 0.9}));
  types(optim::chain(optim::clip_by_global_norm(1), optim::rmsprop(0.1)));
  const auto scaled = optim::scale(0.1);
  CHECK(values(scaled.update(wide, scaled.init(wide)).first) == std::vector{0.1, -0.2});
  // 16-bit gradients are added in float32.
  const auto four = optim::multi_steps(optim::sgd(1), 4, {.use_grad_mean = false});
  auto state = four.init(half);
  CHECK(state.acc_grads.dtype() == float32);
  CHECK(four.init(wide).acc_grads.dtype() == float64);
  for (const double g : {2048.0, 1.0, 1.0, 2.0}) {
    const auto [updates, next] = four.update(full({2}, g, float16), state);
    state = next;
    CHECK(updates.dtype() == float16);
    CHECK(values(updates)[0] == (g == 2 ? -2052.0 : 0.0));
    CHECK(four.has_updated(state).item<bool>() == (g == 2));
  }
}

TEST_CASE("optim: a transformation of your own stands in a chain") {
  static_assert(optim::GradientTransformation<Twice, Net>);
  const auto optimizer = optim::chain(Twice{}, optim::sgd(0.5));
  const Net t{ones({2}), ones({1}), Array(), 1};
  CHECK(values(optimizer.update(t, optimizer.init(t)).first.weight) == std::vector{-1.0, -1.0});
}

TEST_CASE("optim: what does not fit is refused in the name of the optimizer, with the path") {
  const Net t{ones({3}), ones({2}), Array(), 7};
  const auto adamw = optim::adamw(0.1);
  const auto state = adamw.init(t);
  CHECK(text_of([&] {
          adamw.update(Net{ones({3}), Array(), Array(), 7}, state, t);
        }) ==
        "adamw.update: tree 0 has no array at `bias`, the first tree has one. Every array of the first tree "
        "needs a partner in the others. Leave it out of the first tree too, with filter().");
  CHECK(text_of([&] {
          adamw.update(Net{ones({4}), ones({2}), Array(), 7}, state, t);
        }) ==
        "adamw.update: gradient [4] for the array [3] at `weight`. Both have one shape. Give one of that "
        "shape.");
  CHECK(text_of([&] {
          adamw.update(t, state, Net{ones({3}), Array(), Array(), 7});
        }) ==
        "adamw.update: tree 1 has no array at `bias`, the first tree has one. Every array of the first tree "
        "needs a partner in the others. Leave it out of the first tree too, with filter().");
  CHECK(
      text_of([&] {
        adamw.update(t, state, Net{ones({3}), ones({5}), Array(), 7});
      }) ==
      "adamw.update: gradient [2] for the array [5] at `bias`. Both have one shape. Give one of that shape.");
  const auto clipped = optim::chain(optim::clip(1), optim::trace(0.9));
  CHECK(text_of([&] {
          clipped.update(Net{ones({4}), ones({2}), Array(), 7}, clipped.init(t));
        }) ==
        "trace.update: gradient [4] for the array [3] at `weight`. Both have one shape. Give one of that "
        "shape.");
  const auto steps = optim::multi_steps(optim::sgd(0.1), 2);
  CHECK(
      text_of([&] {
        steps.update(Net{ones({4}), ones({2}), Array(), 7}, steps.init(t));
      }) ==
      "multi_steps.update: gradient [4] for the array [3] at `weight`. Both have one shape. Give one of that "
      "shape.");
  CHECK(text_of([] { optim::apply_every(0); }) ==
        "apply_every: 0 steps. Their number is at least 1. Correct it.");
  CHECK(text_of([] { optim::multi_steps(optim::adam(1), 0); }) ==
        "multi_steps: 0 steps. Their number is at least 1. Correct it.");
  CHECK(text_of([] { optim::lookahead(optim::adam(1), 0, 0.5); }) ==
        "lookahead: 0 steps. Their number is at least 1. Correct it.");
}

TEST_CASE("optim: schedules that are none are refused") {
  CHECK(text_of([] { return optim::cosine_decay_schedule(1, 0); }) ==
        "cosine_decay_schedule: 0 steps. Their number is at least 1. Correct it.");
  CHECK(text_of([] { return optim::warmup_cosine_decay_schedule(0, 1, 10, 10); }) ==
        "warmup_cosine_decay_schedule: 10 steps of warmup, 10 until the end of the decay. These count the "
        "warmup too, and are more. Correct them.");
  CHECK(text_of([] {
          return optim::sgdr_schedule({{0, 1, 10, 10}});
        }).find("sgdr_schedule: 10 steps of warmup, 10 until") == 0);
  CHECK(text_of([] { return optim::linear_onecycle_schedule(0, 1); }) ==
        "linear_onecycle_schedule: 0 steps. Their number is at least 1. Correct it.");
  CHECK(text_of([] { return optim::cosine_onecycle_schedule(-1, 1); }) ==
        "cosine_onecycle_schedule: -1 steps. Their number is at least 1. Correct it.");
  CHECK(text_of([] {
          return optim::piecewise_constant_schedule(1, {{5, -0.5}});
        }) == "piecewise_constant_schedule: the scale -0.5 at step 5. Scales are not negative. Correct it.");
  CHECK(text_of([] { return optim::sgdr_schedule({}); }) ==
        "sgdr_schedule: no cycle. There is one at least. Give one.");
  CHECK(text_of([] {
          return optim::join_schedules(std::tuple(optim::constant_schedule(1), optim::constant_schedule(2)),
                                       {});
        }) ==
        "join_schedules: 2 schedules, 0 boundaries. There is one boundary between each two. Correct them.");
}

// Calls f(name, transformation) for every one that keeps means.
void each_with_means(const auto& f) {
  f("trace", optim::trace(0.99));
  f("trace, nesterov", optim::trace(0.99, true));
  f("ema", optim::ema(0.99));
  f("adam", optim::scale_by_adam());
  f("adam, nesterov", optim::scale_by_adam({.nesterov = true}));
  f("amsgrad", optim::scale_by_amsgrad());
  f("adamax", optim::scale_by_adamax());
  f("radam", optim::scale_by_radam());
  f("belief", optim::scale_by_belief());
  f("yogi", optim::scale_by_yogi());
  f("novograd", optim::scale_by_novograd());
  f("lion", optim::scale_by_lion());
  f("rms", optim::scale_by_rms({.decay = 0.999, .bias_correction = true}));
  f("stddev", optim::scale_by_stddev({.decay = 0.999, .eps = 1e-3}));
  f("rss", optim::scale_by_rss());
  f("adadelta", optim::scale_by_adadelta(0.999));
  f("factored", optim::scale_by_factored_rms({.min_dim_size_to_factor = 2}));
}
// 200 gradients that bfloat16 holds exactly, as `of_grads`; the last update, and the dtypes of the state.
auto after_gradients(const auto& rule, DType of_params, DType of_grads) {
  const Array p = ones({2, 3}, of_params), signs = array({{1.0, -1.0, 0.5}, {2.0, -0.5, 1.0}}, of_grads);
  const auto update = jit([rule](const Array& g, auto state, const Array& parameters) {
    return rule.update(g, state, parameters);
  });
  auto state = rule.init(p);
  Array last;
  for (int t = 0; t < 200; t++) {
    const auto [u, next] = update(t % 4 == 0 ? -0.5 * signs : signs, state, p);
    last = u;
    state = next;
  }
  std::vector<DType> dtypes;
  for (const Array& a : tree_leaves(state)) dtypes.push_back(a.dtype());
  return std::tuple(last.astype(float64).to_vector<double>(), dtypes, update.traces());
}

TEST_CASE("optim: means decay as asked for and keep their dtypes, whatever the gradients are") {
  each_with_means([](const char* name, const auto& rule) {
    CAPTURE(std::string(name));
    const auto [want, dtypes, traces] = after_gradients(rule, float32, float32);
    const auto [mixed, mixed_dtypes, mixed_traces] = after_gradients(rule, float32, bfloat16);
    const auto [narrow, narrow_dtypes, narrow_traces] = after_gradients(rule, bfloat16, float32);
    CHECK(mixed_dtypes == dtypes);
    CHECK(narrow_traces == 1);
    CHECK(mixed_traces == 1);
    for (const DType t : narrow_dtypes) CHECK((t == bfloat16 || t == int32));
    for (std::size_t k = 0; k < want.size(); k++) CHECK(mixed[k] == doctest::Approx(want[k]).epsilon(0.02));
  });
}

TEST_CASE(
    "optim: float64 has its digits, steps beyond int32 never come, of equal boundaries the last counts") {
  const Array p = ones({1}, float64);
  const auto first = [&](const auto& o) { return values(o.update(p, o.init(p), p).first)[0]; };
  CHECK(first(optim::adam(0.1)) == doctest::Approx(-0.1 / (1 + 1e-8)).epsilon(1e-13));
  CHECK(first(optim::amsgrad(0.1)) == doctest::Approx(-0.1 / (1 + 1e-8)).epsilon(1e-13));
  CHECK(first(optim::scale_by_rms({.bias_correction = true})) ==
        doctest::Approx(1 / std::sqrt(1 + 1e-8)).epsilon(1e-13));
  const auto at = [](const auto& schedule, int step) { return schedule(step).template item<float>(); };
  CHECK(at(optim::cosine_decay_schedule(1, 3'000'000'000), 0) == 1);
  CHECK(at(optim::piecewise_constant_schedule(1, {{3'000'000'000, 0.1}}), 5) == 1);
  CHECK(at(optim::linear_schedule(1, 0, 3'000'000'000), 1000) == doctest::Approx(1 - 1000 / 3e9));
  CHECK(at(optim::linear_schedule(1, 0, 10, 3'000'000'000), 1000) == 1);
  CHECK(at(optim::cosine_onecycle_schedule(100, 1, {.pct_start = 1}), 100) == doctest::Approx(1.6e-7));
  CHECK(at(optim::linear_onecycle_schedule(100, 1, {.pct_final = 1}), 100) == doctest::Approx(1e-4));
  CHECK(at(optim::linear_onecycle_schedule(1, 1), 1) == doctest::Approx(1.6e-7));
}

TEST_CASE("optim: functions of the user fail at their lines, and norms have the slope 0 at 0") {
  const Array x = ones({2});
  int line = 0;
  const auto schedule = [&](const Array& count) {
    line = __LINE__ + 1;
    return sum(ones({2}) + ones({3})) * count;
  };
  const auto mask = [&](const Array& a) {
    line = __LINE__ + 1;
    return (a + ones({3})).ndim() > 1;
  };
  const auto check = [&](const auto& o) {
    line = 0;
    try {
      static_cast<void>(o.update(x, o.init(x), x));
      FAIL("nothing was thrown");
    } catch (const Error& e) {
      CHECK(e.where().line == line);
      CHECK_MESSAGE(e.text().find("add: ") == 0, e.text());
    }
  };
  check(optim::adam(schedule));
  check(optim::adamw(schedule));
  check(optim::scale_by_schedule(schedule));
  check(optim::chain(optim::scale(2), optim::masked(optim::scale_by_learning_rate(schedule), is_matrix),
                     optim::scale_by_schedule(schedule)));
  check(optim::masked(optim::scale(2), mask));
  check(optim::adam(optim::join_schedules(std::tuple(schedule, optim::constant_schedule(1)), {5})));
  const auto slope = grad([&](const Array& p) {
    const auto of = [&](const auto& o) { return sum(o.update(x, o.init(p), p).first); };
    return of(optim::scale_by_param_block_norm()) + of(optim::scale_by_param_block_norm(0)) +
           of(optim::scale_by_param_block_rms()) + of(optim::scale_by_trust_ratio());
  });
  for (const double s : values(slope(zeros({2})).astype(float64))) CHECK(std::isfinite(s));
}

TEST_CASE("losses: what is refused, and derivatives where two cases meet") {
  CHECK(text_of([] {
          return losses::sigmoid_binary_cross_entropy(array({1, 2}), array({0.0, 1.0}));
        }) ==
        "sigmoid_binary_cross_entropy: logits i32[2]. Logits are floating. Convert them with astype().");
  CHECK(text_of([] { return losses::smooth_labels(Array(1.0), 0.1); }) ==
        "smooth_labels: labels f32[]. Classes are the last dimension. Give it.");
  CHECK_THROWS_AS(losses::kl_divergence(Array(1.0), Array(1.0)), ShapeError);
  CHECK_THROWS_AS(losses::cosine_similarity(ones({2}), ones({2}), {.axis = 1}), ShapeError);
  CHECK_THROWS_AS(losses::cosine_distance(ones({2}), ones({2}), {.axis = 1}), ShapeError);
  for (auto f : {losses::squared_error, losses::l2_loss, losses::log_cosh})
    CHECK_THROWS_AS(f(array({true}), array({false}), Where::here()), DTypeError);
  CHECK_THROWS_AS(losses::huber_loss(array({true}), array({false})), DTypeError);
  const auto slope =
      grad([](const Array& x) { return sum(losses::sigmoid_binary_cross_entropy(x, ones({1}))); });
  CHECK(slope(zeros({1})).item<float>() == -0.5f);
  const auto flat = grad([](const Array& x) { return sum(losses::log_cosh(x, zeros({1}))); });
  CHECK(flat(zeros({1})).item<float>() == 0);
  const auto finite = grad([](const Array& t) { return losses::kl_divergence(zeros({2}), t); });
  CHECK(std::isfinite(finite(array({0.0, 1.0})).to_vector<float>()[0]));
  CHECK(losses::l2_loss(ones({2}, float16), zeros({2}, float16)).dtype() == float16);
}

}  // namespace optim_values_test
