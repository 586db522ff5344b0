// The numbers of data/optim.json: 20 steps of optax's optimizers on one problem, schedules, means, losses.
#include <functional>
#include <set>

#include "golden.h"

namespace optax_test {

using namespace shardarray;
using golden::Json;

namespace {

struct Params {
  Array b, s, w;  // the order of the recorded numbers
};
const Json& cases() {
  static const Json all = golden::load("optim.json")["cases"];
  return all;
}
Params params_of(const Json& j) {
  return {golden::array(j["b"]), golden::array(j["s"]), golden::array(j["w"])};
}
std::vector<double> flat(const Params& p) {
  std::vector<double> r;
  for (const Array& a : tree_leaves(p))
    for (double v : golden::values(a)) r.push_back(v);
  return r;
}
bool is_w(const Array&, const std::string& path) { return path == "w"; }
bool is_no_b(const Array&, const std::string& path) { return path != "b"; }

/// `[0].mu['w']` and `[1].mu.w` as `mu.w`.
std::string plain(const std::string& path) {
  std::string r;
  for (std::size_t k = 0; k < path.size(); k++) {
    if (path[k] != '[') {
      r += path[k];
      continue;
    }
    const std::size_t end = path.find(']', k);
    if (path[k + 1] == '\'') r += "." + path.substr(k + 2, end - k - 3);
    k = end;
  }
  return r.starts_with(".") ? r.substr(1) : r;
}
/// Every array of optax's last state stands in ours, whatever the chains are that hold it. Where nothing is factored optax has
/// arrays of one element, and we have none.
void check_state(const auto& state, const Json& want) {
  std::map<std::string, Array> ours;
  const auto paths = tree_paths(state);
  const auto leaves = tree_leaves(state);
  for (std::size_t k = 0; k < paths.size(); k++) ours[plain(paths[k])] = leaves[k];
  for (const auto& [path, array] : want.items()) {
    const std::string name = plain(path);
    CAPTURE(name);
    const auto found = ours.find(name);
    if (found == ours.end()) CHECK(array["shape"] == Json({1}));
    else CHECK(golden::close(found->second, array, 1e-4, 1e-6));
  }
}

std::set<std::string> seen;

// `steps`: how many of the 20 can be compared.
template <class O> void check(const std::string& spec, const O& optimizer, int steps = 20) {
  CAPTURE(spec);
  const Json name = Json::parse(spec), &problem = cases()[0]["inputs"];
  const auto found = std::find_if(cases().begin(), cases().end(), [&](const Json& c) {
    return c["name"] == "trajectory" && c["attrs"]["optimizer"] == name;
  });
  REQUIRE(found != cases().end());
  const Json& out = (*found)["outputs"];
  const Params scale = params_of(problem["a"]), target = params_of(problem["target"]);
  Params p = params_of(problem["init"]);
  auto state = optimizer.init(p);
  const auto step = jit([=](const Params& x, const decltype(state)& s, const Params& n) {
    const auto gradient = [](const Array& a, const Array& v, const Array& t, const Array& noise) {
      return a * (v - t) + noise;
    };
    const Params grads = tree_map(gradient, scale, x, target, n);
    const auto [updates, next] = optimizer.update(grads, s, x);
    return std::tuple(apply_updates(x, updates), next, updates, grads);
  });
  const std::vector<double> expected = golden::numbers(out["params"]);
  for (int t = 0; t < steps; t++) {
    CAPTURE(t);
    const auto at = [&](const char* leaf) { return golden::array(problem["noise"][leaf])[t]; };
    Params updates, grads;
    std::tie(p, state, updates, grads) = step(p, state, Params{at("b"), at("s"), at("w")});
    if (t == 0) {
      CHECK(golden::close(flat(grads), golden::numbers(out["first"]["grads"]), 1e-5, 1e-6));
      CHECK(golden::close(flat(updates), golden::numbers(out["first"]["updates"]), 1e-5, 1e-7));
    }
    if (t == 19) CHECK(golden::close(flat(updates), golden::numbers(out["last_updates"]), 1e-4, 1e-6));
    const auto row = expected.begin() + t * 18;
    CHECK(golden::close(flat(p), std::vector(row, row + 18), 1e-4, 1e-6));
  }
  if (steps == 20) check_state(state, out["state_last"]);
  seen.insert(name.dump());
}

void check_plain() {
  using namespace optim;
  check(R"(["sgd", {"learning_rate": 0.1}])", sgd(0.1));
  check(R"(["sgd", {"learning_rate": 0.05, "momentum": 0.9}])", sgd(0.05, {.momentum = 0.9}));
  check(R"(["sgd", {"learning_rate": 0.05, "momentum": 0.9, "nesterov": true}])",
        sgd(0.05, {.momentum = 0.9, .nesterov = true}));
  check(R"(["sgd", {"learning_rate": {"schedule": ["warmup_cosine_decay_schedule", {"init_value": 0.0,
           "peak_value": 0.1, "warmup_steps": 4, "decay_steps": 16, "end_value": 0.001}]}}])",
        sgd(warmup_cosine_decay_schedule(0, 0.1, 4, 16, 0.001)));
  check(R"(["adam", {"learning_rate": 0.0003}])", adam(3e-4));
  check(R"(["adam", {"learning_rate": 0.05, "b1": 0.8, "b2": 0.99, "eps": 1e-05, "eps_root": 1e-09}])",
        adam(0.05, {.b1 = 0.8, .b2 = 0.99, .eps = 1e-5, .eps_root = 1e-9}));
  check(R"(["adam", {"learning_rate": 0.01, "nesterov": true}])", adam(0.01, {.nesterov = true}));
  check(R"(["adam", {"learning_rate": {"schedule": ["exponential_decay", {"init_value": 0.1,
           "transition_steps": 5, "decay_rate": 0.5}]}}])",
        adam(exponential_decay(0.1, 5, 0.5)));
  check(R"(["adamw", {"learning_rate": 0.01}])", adamw(0.01));
  check(R"(["adamw", {"learning_rate": 0.01, "weight_decay": 0.1}])", adamw(0.01, {.weight_decay = 0.1}));
  check(R"(["rmsprop", {"learning_rate": 0.01}])", rmsprop(0.01));
  check(
      R"(["rmsprop", {"learning_rate": 0.01, "decay": 0.8, "centered": true, "momentum": 0.5,
           "nesterov": true, "initial_scale": 1.0}])",
      rmsprop(0.01, {.decay = 0.8, .initial_scale = 1, .centered = true, .momentum = 0.5, .nesterov = true}));
  check(R"(["lion", {"learning_rate": 0.01}])", lion(0.01));
  check(R"(["lion", {"learning_rate": 0.003, "b1": 0.8, "b2": 0.95, "weight_decay": 0.05}])",
        lion(0.003, {.b1 = 0.8, .b2 = 0.95, .weight_decay = 0.05}));
  check(R"(["adafactor", {"learning_rate": 0.02, "min_dim_size_to_factor": 2}])",
        adafactor(0.02, {.min_dim_size_to_factor = 2}));
  // The scalar moves by its own size: 1e-7 of where it starts is 2e-2 of where it ends.
  check(R"(["adafactor", {"learning_rate": null}])", adafactor(), 11);
  check(R"(["lamb", {"learning_rate": 0.01, "weight_decay": 0.02}])", lamb(0.01, {.weight_decay = 0.02}));
  check(R"(["adagrad", {"learning_rate": 0.1}])", adagrad(0.1));
  check(R"(["adamax", {"learning_rate": 0.02}])", adamax(0.02));
  check(R"(["amsgrad", {"learning_rate": 0.02}])", amsgrad(0.02));
  check(R"(["radam", {"learning_rate": 0.02}])", radam(0.02));
  check(R"(["nadam", {"learning_rate": 0.02}])", nadam(0.02));
  check(R"(["adabelief", {"learning_rate": 0.02}])", adabelief(0.02));
  check(R"(["novograd", {"learning_rate": 0.02}])", novograd(0.02));
  check(R"(["yogi", {"learning_rate": 0.02}])", yogi(0.02));
  check(R"(["adadelta", {"learning_rate": 0.5}])", adadelta(0.5));
}
void check_made_of_others() {
  using namespace optim;
  check(R"(["chain", ["clip_by_global_norm", {"max_norm": 1.0}], ["adam", {"learning_rate": 0.02}]])",
        chain(clip_by_global_norm(1), adam(0.02)));
  check(R"(["chain", ["clip_by_global_norm", {"max_norm": 0.5}],
           ["sgd", {"learning_rate": 0.1, "momentum": 0.9}]])",
        chain(clip_by_global_norm(0.5), sgd(0.1, {.momentum = 0.9})));
  check(R"(["chain", ["clip", {"max_delta": 0.3}], ["sgd", {"learning_rate": 0.1}]])",
        chain(optim::clip(0.3), sgd(0.1)));
  check(R"(["chain", ["clip_by_block_rms", {"threshold": 0.4}], ["sgd", {"learning_rate": 0.1}]])",
        chain(clip_by_block_rms(0.4), sgd(0.1)));
  check(R"(["chain", ["scale_by_adam", {}], ["scale_by_schedule", {"step_size_fn": {"schedule":
           ["linear_schedule", {"init_value": -0.1, "end_value": -0.01, "transition_steps": 10}]}}]])",
        chain(scale_by_adam(), scale_by_schedule(linear_schedule(-0.1, -0.01, 10))));
  check(R"(["masked_decay", 0.01, 0.1])", adamw(0.01, {.weight_decay = 0.1}, is_w));
  check(R"(["masked", ["sgd", {"learning_rate": 0.1}]])", masked(sgd(0.1), is_no_b));
  check(R"(["add_decayed_weights_mask", 0.05, 0.1])",
        chain(masked(add_decayed_weights(0.05), is_w), sgd(0.1)));
  check(R"(["MultiSteps", ["adam", {"learning_rate": 0.05}], {"every_k_schedule": 4}])",
        multi_steps(adam(0.05), 4));
  check(R"(["MultiSteps", ["sgd", {"learning_rate": 0.1}], {"every_k_schedule": 3, "use_grad_mean": false}])",
        multi_steps(sgd(0.1), 3, {.use_grad_mean = false}));
}

int count_of(const std::string& name) {
  return static_cast<int>(
      std::count_if(cases().begin(), cases().end(), [&](const Json& c) { return c["name"] == name; }));
}

}  // namespace

TEST_CASE("optim: trajectories of 20 steps are optax's, states too") {
  seen.clear();
  check_plain();
  check_made_of_others();
  CHECK(static_cast<int>(seen.size()) == count_of("trajectory"));
}

namespace {

using AnySchedule = std::function<Array(const Array&)>;

AnySchedule schedule_of(const Json& spec) {
  using namespace optim;
  const std::string name = spec[0];
  if (name == "join_schedules")
    return join_schedules(std::tuple(schedule_of(spec[1][0]), schedule_of(spec[1][1])),
                          spec[2].get<std::vector<std::int64_t>>());
  const Json& a = spec[1];
  const auto steps = [&](const char* key) { return a.value(key, std::int64_t{0}); };
  const auto scales = [&] {
    BoundariesAndScales r;
    for (const auto& [step, scale] : a["boundaries_and_scales"].items())
      r[std::stoll(step)] = scale.get<double>();
    return r;
  };
  const double init = a.value("init_value", 0.0), end = a.value("end_value", 0.0),
               peak = a.value("peak_value", 0.0);
  if (name == "constant_schedule") return constant_schedule(a["value"]);
  if (name == "linear_schedule")
    return linear_schedule(init, end, steps("transition_steps"), steps("transition_begin"));
  if (name == "polynomial_schedule")
    return polynomial_schedule(init, end, a["power"], steps("transition_steps"));
  if (name == "cosine_decay_schedule")
    return cosine_decay_schedule(init, steps("decay_steps"), a.value("alpha", 0.0), a.value("exponent", 1.0));
  if (name == "warmup_cosine_decay_schedule")
    return warmup_cosine_decay_schedule(init, peak, steps("warmup_steps"), steps("decay_steps"), end);
  if (name == "exponential_decay") {
    ExponentialDecayOptions o{.transition_begin = steps("transition_begin"),
                              .staircase = a.value("staircase", false)};
    if (a.contains("end_value")) o.end_value = end;
    return exponential_decay(init, steps("transition_steps"), a["decay_rate"], o);
  }
  if (name == "piecewise_constant_schedule") return piecewise_constant_schedule(init, scales());
  if (name == "piecewise_interpolate_schedule")
    return piecewise_interpolate_schedule(PiecewiseSchedule::Between::linear, init, scales());
  if (name == "warmup_exponential_decay_schedule")
    return warmup_exponential_decay_schedule(init, peak, steps("warmup_steps"), steps("transition_steps"),
                                             a["decay_rate"]);
  if (name == "cosine_onecycle_schedule") return cosine_onecycle_schedule(steps("transition_steps"), peak);
  if (name == "linear_onecycle_schedule") return linear_onecycle_schedule(steps("transition_steps"), peak);
  throw Error("no schedule " + name);
}

}  // namespace

TEST_CASE("optim: schedules at optax's steps, means, the norm of all parameters") {
  for (const Json& c : cases()) {
    const Json& a = c["attrs"];
    CAPTURE(a.dump());
    if (c["name"] == "schedule") {
      const Array steps = array(a["steps"].get<std::vector<int>>());
      CHECK(golden::close(schedule_of(a["schedule"])(steps), c["outputs"], 1e-5, 1e-6));
    } else if (c["name"] == "ema") {
      const auto mean = optim::ema(a["decay"], a["debias"].get<bool>());
      const Array x = golden::array(c["inputs"]["x"]), first = x[0];
      auto state = mean.init(first);
      std::vector<Array> rows;
      for (int t = 0; t < 20; t++) {
        const auto [row, next] = mean.update(x[t], state);
        rows.push_back(row);
        state = next;
      }
      CHECK(golden::close(stack(rows), c["outputs"], 1e-5, 1e-6));
    } else if (c["name"] == "global_norm") {
      CHECK(golden::close(optim::global_norm(params_of(cases()[0]["inputs"]["init"])), c["outputs"], 1e-6));
    }
  }
}

TEST_CASE("losses: every loss of optim.json") {
  using Loss = std::function<Array(const Array&, const Array&)>;
  const std::map<std::string, Loss> table = {
      {"softmax_cross_entropy_with_integer_labels",
       [](const Array& x, const Array& y) {
         return losses::softmax_cross_entropy_with_integer_labels(x, y);
       }},
      {"softmax_cross_entropy",
       [](const Array& x, const Array& y) { return losses::softmax_cross_entropy(x, y); }},
      {"sigmoid_binary_cross_entropy",
       [](const Array& x, const Array& y) { return losses::sigmoid_binary_cross_entropy(x, y); }},
      {"l2_loss", [](const Array& x, const Array& y) { return losses::l2_loss(x, y); }},
      {"huber_loss", [](const Array& x, const Array& y) { return losses::huber_loss(x, y); }},
      {"log_cosh", [](const Array& x, const Array& y) { return losses::log_cosh(x, y); }},
      {"cosine_similarity", [](const Array& x, const Array& y) { return losses::cosine_similarity(x, y); }}};
  CHECK(count_of("loss") == static_cast<int>(table.size()));
  for (const Json& c : cases()) {
    if (c["name"] != "loss") continue;
    CAPTURE(c["attrs"].dump());
    const Loss& loss = table.at(c["attrs"]["loss"]);
    const Array x = golden::array(c["inputs"][0]), y = golden::array(c["inputs"][1]);
    CHECK(golden::close(loss(x, y), c["outputs"]["value"], 1e-5, 1e-6));
    CHECK(golden::close(grad([&](const Array& v) { return sum(loss(v, y)); })(x), c["outputs"]["grad_of_sum"],
                        1e-5, 1e-6));
  }
}

}  // namespace optax_test
