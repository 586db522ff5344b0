// Optimizers as values: states under jit, donation and sharding, absent arrays, dtypes, messages.
#include "golden.h"

namespace optim_values_test {

using namespace shardarray;

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
std::vector<double> values(const Array& x) { return x.to_vector<double>(); }

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
        "warmup_cosine_decay_schedule: 0 steps. Their number is at least 1. Correct it.");
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
