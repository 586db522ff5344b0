// Layers, optimizers, losses and the Equinox document against JAX, Equinox and optax.
#include <cmath>

#include "golden.h"

namespace nn_optim_test {

using namespace shardarray;
using golden::Json;

namespace {

std::string text_of(const auto& f) {
  try {
    f();
  } catch (const Error& e) { return e.text(); }
  return "no error";
}

void check_bits(const Array& x, const Json& params, const std::string& name) {
  CAPTURE(name);
  REQUIRE(x.has_value() == params.contains(name));
  if (x.has_value()) CHECK(golden::same_bits(x, params[name]));
}
void check_layers(const std::vector<nn::Linear>& layers, const Json& params) {
  for (std::size_t k = 0; k < layers.size(); k++) {
    const std::string at = "layers[" + std::to_string(k) + "].";
    check_bits(layers[k].weight, params, at + "weight");
    check_bits(layers[k].bias, params, at + "bias");
  }
}
bool layers_close(const std::vector<nn::Linear>& layers, const Json& params, double rel, double abs) {
  bool ok = true;
  for (std::size_t k = 0; k < layers.size(); k++) {
    const std::string at = "layers[" + std::to_string(k) + "].";
    ok = ok && golden::close(layers[k].weight, params[at + "weight"], rel, abs);
    if (params.contains(at + "bias")) ok = ok && golden::close(layers[k].bias, params[at + "bias"], rel, abs);
  }
  return ok;
}

const Json& nn_cases() {
  static const Json all = golden::load("nn.json")["cases"];
  return all;
}
const Json& optim_cases() {
  static const Json all = golden::load("optim.json")["cases"];
  return all;
}

}  // namespace

TEST_CASE("nn: Linear and MLP have Equinox's weights and results") {
  int seen = 0;
  for (const Json& c : nn_cases()) {
    const Json &a = c["attrs"], &out = c["outputs"];
    if ((c["name"] != "Linear" && c["name"] != "MLP") || a["in"] == "scalar" || a["out"] == "scalar")
      continue;
    CAPTURE(a.dump());
    const random::partitionable mode(a["partitionable"].get<bool>());
    const Array key = random::PRNGKey(a["seed"].get<int>()), x = golden::array(c["inputs"]["x"]);
    if (c["name"] == "Linear") {
      const auto m =
          nn::Linear::init(a["in"].get<int>(), a["out"].get<int>(), key, {.use_bias = a["use_bias"]});
      check_bits(m.weight, out["params"], "weight");
      check_bits(m.bias, out["params"], "bias");
      CHECK(golden::close(m(x), out["y"], 1e-5, 1e-6));
    } else {
      const auto m = nn::MLP<>::init(a["in"].get<int>(), a["out"].get<int>(), a["width"], a["depth"], key,
                                     {.use_bias = a["use_bias"], .use_final_bias = a["use_final_bias"]});
      check_layers(m.layers, out["params"]);
      CHECK(golden::close(m(x), out["y"], 1e-5, 1e-6));
    }
    seen++;
  }
  CHECK(seen > 100);
}

namespace {

Array tanh_of(const Array& x) { return shardarray::tanh(x); }

template <class M> void check_batch(const M& model, const Json& c) {
  CAPTURE(c["attrs"].dump());
  const Json& out = c["outputs"];
  const Array x = golden::array(c["inputs"]["x"]), y = golden::array(c["inputs"]["y"]);
  check_layers(model.layers, out["params"]);
  CHECK(golden::close(vmap(model)(x), out["y"], 1e-5, 1e-6));
  auto loss = [](const M& m, const Array& xs, const Array& ys) { return losses::mse(vmap(m)(xs), ys); };
  const auto [value, grads] = value_and_grad(loss)(model, x, y);
  CHECK(golden::close(value, out["loss"], 1e-5, 1e-6));
  CHECK(layers_close(grads.layers, out["grads"], 1e-5, 1e-6));
}

}  // namespace

TEST_CASE("nn: activations, batches and gradients") {
  int seen = 0;
  for (const Json& c : nn_cases()) {
    if (c["name"] != "MLP_batch_grad") continue;
    const Json& a = c["attrs"];
    const std::string kind = a["activation"];
    auto check = [&](auto activation) {
      check_batch(nn::mlp(a["in"].get<int>(), a["out"].get<int>(), a["width"], a["depth"], activation,
                          random::key(a["seed"].get<int>())),
                  c);
      seen++;
    };
    if (kind == "relu") check(relu);
    if (kind == "gelu") check(gelu);
    if (kind == "sigmoid") check(sigmoid);
    if (kind == "silu") check(silu);
    if (kind == "tanh") check(&tanh_of);  // a function pointer
    if (kind == "gelu_exact") check([](const Array& x) { return gelu(x, false); });
  }
  CHECK(seen == 6);
}

TEST_CASE("nn: what is refused, and trees") {
  const Array key = random::key(0);
  const auto layer = nn::Linear::init(3, 2, key);
  CHECK(tree_paths(layer) == std::vector<std::string>{"weight", "bias"});
  CHECK(tree_paths(nn::MLP<>::init(2, 2, 4, 1, key)) ==
        std::vector<std::string>{"layers[0].weight", "layers[0].bias", "layers[1].weight", "layers[1].bias"});
  CHECK(tree_leaves(nn::Linear::init(3, 2, key, {.use_bias = false})).size() == 1);
  CHECK(text_of([&] {
          layer(zeros({5, 3}));
        }) ==
        "nn::Linear: x is f32[5,3], the weight f32[2,3]. A layer takes one vector of the weight's last size. "
        "Batch with vmap(model)(x).");
  CHECK(text_of([&] { nn::Linear::init(-3, 2, key); }) ==
        "nn::Linear: sizes -3 -> 2. Sizes are at least 0. Correct them.");
  CHECK(text_of([&] { nn::MLP<>::init(3, 2, 4, -1, key); }) ==
        "nn::MLP: depth -1. The number of hidden layers is at least 0. Correct it.");
}

// ---------------------------------------------------------------- optimizers
namespace {

struct Params {
  Array b, s, w;  // the order of the recorded trajectories
};
Params params_of(const Json& j) {
  return {golden::array(j["b"]), golden::array(j["s"]), golden::array(j["w"])};
}
std::vector<double> flat(const Params& p) {
  std::vector<double> r;
  for (const Array& a : tree_leaves(p))
    for (double v : golden::values(a)) r.push_back(v);
  return r;
}
Params noise_at(const Json& noise, int t) {
  auto row = [&](const char* name) { return golden::array(noise[name])[t]; };
  return {row("b"), row("s"), row("w")};
}

// 20 steps; the parameters after each one are those of optax.
template <class O> void check_trajectory(const O& optimizer, const Json& c) {
  CAPTURE(c["attrs"].dump());
  const Json& in = optim_cases()[0]["inputs"];
  const Params scale = params_of(in["a"]), target = params_of(in["target"]);
  Params p = params_of(in["init"]);
  auto state = optimizer.init(p);
  auto gradient = [](const Array& a, const Array& x, const Array& t, const Array& n) {
    return a * (x - t) + n;
  };
  const auto step = jit([=](const Params& x, const decltype(state)& s, const Params& n) {
    const Params grads = tree_map(gradient, scale, x, target, n);
    auto [updates, next] = optimizer.update(grads, s);
    return std::tuple(apply_updates(x, updates), next, updates);
  });
  const std::vector<double> expected = golden::numbers(c["outputs"]["params"]);
  for (int t = 0; t < 20; t++) {
    Params updates;
    std::tie(p, state, updates) = step(p, state, noise_at(in["noise"], t));
    if (t == 0)
      CHECK(golden::close(flat(updates), golden::numbers(c["outputs"]["first"]["updates"]), 1e-5, 1e-7));
    const auto row = expected.begin() + t * 18;
    CHECK(golden::close(flat(p), std::vector(row, row + 18), 1e-5, 1e-6));
  }
  if constexpr (requires { state.mu; }) {
    const Json& last = c["outputs"]["state_last"];
    CHECK(state.count.template item<int>() == 20);
    CHECK(golden::close(state.mu.w, last["[0].mu['w']"], 1e-4, 1e-6));
    CHECK(golden::close(state.nu.b, last["[0].nu['b']"], 1e-4, 1e-6));
  }
}

}  // namespace

TEST_CASE("optim: trajectories of sgd and adam") {
  int seen = 0;
  for (const Json& c : optim_cases()) {
    if (c["name"] != "trajectory") continue;
    const std::string kind = c["attrs"]["optimizer"][0];
    const Json& o = c["attrs"]["optimizer"][1];
    const Json& rate = o["learning_rate"];
    const bool other = o.contains("eps_root") || (kind == "adam" && o.contains("nesterov"));  // not ours
    if (rate.is_number() && !other) {
      if (kind == "sgd")
        check_trajectory(optim::sgd(rate.get<double>(), {.momentum = o.value("momentum", 0.0),
                                                         .nesterov = o.value("nesterov", false)}),
                         c);
      else
        check_trajectory(
            optim::adam(rate.get<double>(),
                        {.b1 = o.value("b1", 0.9), .b2 = o.value("b2", 0.999), .eps = o.value("eps", 1e-8)}),
            c);
      seen++;
    } else if (kind == "adam" && rate.is_object()) {  // 0.1 * 0.5^(count / 5)
      check_trajectory(
          optim::adam([](const Array& count) { return 0.1 * power(Array(0.5), count.astype(float32) / 5); }),
          c);
      seen++;
    }
  }
  CHECK(seen == 5);
}

TEST_CASE("optim: sgd with a schedule counts, adam's first steps") {
  const auto halving = optim::sgd([](const Array& count) { return 1.0 / (count + 1).astype(float32); });
  Array p = 3.0f;
  auto state = halving.init(p);
  for (int k = 0; k < 3; k++) {
    const auto [updates, next] = halving.update(Array(1.0f), state);
    p = p + updates;
    state = next;
  }
  CHECK(p.item<float>() == doctest::Approx(3 - 1 - 0.5 - 1.0 / 3));
  CHECK(state.count.item<int>() == 3);
  // semantics of optax: the schedule sees the count before the step
  const auto growing = optim::adam([](const Array& count) { return 0.1 * (count + 1).astype(float32); });
  auto s = growing.init(p);
  for (double expected : {-0.09999933, -0.19999799, -0.2999989}) {
    const auto [updates, next] = growing.update(Array(1.0f), s);
    CHECK(updates.item<float>() == doctest::Approx(expected).epsilon(1e-5));
    s = next;
  }
}

TEST_CASE("optim: absent arrays stay absent, float64 keeps its digits") {
  struct Tree {
    Array weight, bias, index;
    int size;
  };
  const Tree t{ones({3}), Array(), arange(2), 7};
  const auto optimizer = optim::adam(0.5);
  const auto state = optimizer.init(t);
  CHECK(tree_paths(state) == std::vector<std::string>{"count", "mu.weight", "nu.weight"});
  const Tree grads{ones({3}), Array(), Array(), 7};
  const auto [updates, next] = optimizer.update(grads, state);
  CHECK(tree_paths(updates) == std::vector<std::string>{"weight"});
  CHECK(tree_paths(next) == tree_paths(state));
  const Tree moved = apply_updates(t, updates);
  CHECK(golden::close(moved.weight.to_vector<double>(), {0.5, 0.5, 0.5}, 1e-4));
  CHECK(moved.index.to_vector<int>() == std::vector{0, 1});
  CHECK(text_of([&] {
          optimizer.update(Tree{Array(), Array(), Array(), 7}, state);
        }) ==
        "adam.update: tree 0 has no array at `weight`, the first tree has one. Every array of the first tree "
        "needs a partner in the "
        "others. Leave it out of the first tree too, with filter().");
  CHECK(text_of([&] {
          optimizer.update(Tree{ones({1}), Array(), Array(), 7}, state);
        }) ==
        "adam.update: gradient [1] for the array [3] at `weight`. Both have one shape. Give one of that "
        "shape.");
  CHECK(text_of([&] {
          apply_updates(t, Tree{ones({2, 3}), Array(), Array(), 7});
        }) ==
        "apply_updates: update [2,3] for the array [3] at `weight`. It is broadcast to the array's shape. "
        "Give one of "
        "that shape.");
  CHECK_THROWS_AS(
      optim::sgd(0.1, {.momentum = 0.9})
          .update(Tree{ones({3}), ones({3}), Array(), 7}, optim::sgd(0.1, {.momentum = 0.9}).init(t)),
      TreeError);

  const Array p = array(std::vector<double>{1.0});
  const auto plain = optim::sgd(0.1);
  CHECK(plain.update(p, plain.init(p)).first.item<double>() == -0.1);
  const auto wide = optim::adam(0.1).init(p);
  CHECK(wide.mu.dtype() == float64);
}

TEST_CASE("losses: softmax cross entropy") {
  int seen = 0;
  for (const Json& c : optim_cases()) {
    if (c["name"] != "loss") continue;
    const Array logits = golden::array(c["inputs"][0]), labels = golden::array(c["inputs"][1]);
    const bool with_integers = is_integer(labels.dtype());
    auto loss = [&](const Array& x) {
      return with_integers ? losses::softmax_cross_entropy_with_integer_labels(x, labels)
                           : losses::softmax_cross_entropy(x, labels);
    };
    CHECK(golden::close(loss(logits), c["outputs"]["value"], 1e-5, 1e-6));
    CHECK(golden::close(grad([&](const Array& x) { return sum(loss(x)); })(logits),
                        c["outputs"]["grad_of_sum"], 1e-5, 1e-6));
    seen++;
  }
  CHECK(seen == 2);
  CHECK(losses::mse(array({1.0, 4.0}), array({0.0, 2.0})).item<float>() == 2.5f);
  const auto outside =
      losses::softmax_cross_entropy_with_integer_labels(zeros({3, 2}), array({0, 2, -1})).to_vector<float>();
  CHECK(outside[0] == doctest::Approx(std::log(2.0)));
  CHECK(std::isnan(outside[1]));
  CHECK(std::isnan(outside[2]));
  CHECK(text_of([] {
          losses::softmax_cross_entropy_with_integer_labels(zeros({3, 2}), zeros({3}));
        }) ==
        "softmax_cross_entropy_with_integer_labels: logits f32[3,2], labels f32[3]. Logits are floating, "
        "labels integers. For "
        "probabilities use softmax_cross_entropy.");
  CHECK(text_of([] {
          losses::softmax_cross_entropy_with_integer_labels(zeros({3, 2}), array({0, 1}));
        }) ==
        "softmax_cross_entropy_with_integer_labels: logits f32[3,2], labels i32[2]. Labels have the shape of "
        "the logits without the last "
        "dimension. Correct them.");
}

// ---------------------------------------------------------------- the Equinox document
namespace {

using Model = nn::MLP<>;
using State = optim::AdamState<Model>;

Array document_loss(const Model& model, const Array& x, const Array& y) {
  return losses::mse(vmap(model)(x), y);
}

// One recorded run: weights, gradients, every step, the printed loss.
void check_document(const Json& file, const Json& c) {
  CAPTURE(c["attrs"].dump());
  const Json &out = c["outputs"], &data = file["cases"][0]["outputs"];
  const random::partitionable mode(c["attrs"]["partitionable"].get<bool>());
  const Array xs = golden::array(data["xs"]).astype(float32), ys = golden::array(data["ys"]).astype(float32);
  const int n = c["attrs"]["devices"];
  const auto all = devices();
  const PositionalSharding sharding(create_device_mesh({n, 1}, {all.begin(), all.begin() + n}));
  const auto replicated = sharding.replicate();
  const auto optimizer = optim::adam(3e-4);
  const auto step = jit([=](Model m, State s, Array x, Array y) {
    std::tie(m, s) = filter_shard(std::tuple(m, s), replicated);
    std::tie(x, y) = filter_shard(std::tuple(x, y), sharding);
    const auto [loss, grads] = value_and_grad(document_loss)(m, x, y);
    const auto [updates, next] = optimizer.update(grads, s);
    return std::tuple(filter_shard(std::tuple(apply_updates(m, updates), next), replicated), loss, grads);
  });

  Model model = Model::init(4, 4, 32, 1, random::PRNGKey(6789));
  check_layers(model.layers, out["init"]);
  State state = optimizer.init(filter(model, is_inexact_array));
  model = filter_shard(model, replicated);
  for (std::size_t t = 0; t < 10; t++) {
    const Array rows = array(data["batches"][t].get<std::vector<std::int32_t>>());
    Array x = take(xs, rows, 0), y = take(ys, rows, 0);
    std::tie(x, y) = filter_shard(std::tuple(x, y), sharding);
    const Model old = model;  // shares the buffers: they must not be overwritten
    const auto [next, loss, grads] = step(std::move(model), std::move(state), x, y);
    CHECK(model.layers[0].weight.is_deleted());
    std::tie(model, state) = next;
    CHECK(golden::close(loss, out["steps"][t]["loss_before_update"], 1e-5));
    CHECK(layers_close(model.layers, out["steps"][t]["params"], 1e-5, 1e-6));
    if (t == 0) {
      CHECK(layers_close(grads.layers, out["first_grads"], 1e-5, 1e-7));
      check_layers(old.layers, out["init"]);
    }
    if (n > 1) CHECK(tree_leaves(x)[0].sharding().is_equivalent_to(sharding, 2));
    for (const Array& leaf : tree_leaves(std::tuple(model, state))) CHECK(leaf.is_fully_replicated());
  }
  const Json& last = out["opt_state_last"];
  CHECK(state.count.item<int>() == 10);
  CHECK(golden::close(state.mu.layers[0].weight, last["[0].mu.layers[0].weight"], 1e-4, 1e-6));
  CHECK(golden::close(state.nu.layers[1].weight, last["[0].nu.layers[1].weight"], 1e-4, 1e-7));

  const auto evaluate = jit([=](Model m, Array x, Array y) {
    m = filter_shard(m, replicated);
    std::tie(x, y) = filter_shard(std::tuple(x, y), sharding);
    return document_loss(m, x, y);
  });
  double sum = 0;
  for (int first = 0; first < 64; first += 16)
    sum += evaluate(model, xs[slice(first, first + 16)], ys[slice(first, first + 16)]).item<float>();
  const std::string printed = out["printed"];  // train loss=0.46692...
  CHECK(sum / 4 == doctest::Approx(std::stod(printed.substr(printed.find('=') + 1))).epsilon(1e-5));
}

}  // namespace

TEST_CASE("nn: the Equinox document, step by step, on 8 devices and on 1") {
  for (const char* name : {"eqx_document.json", "eqx_document_old.json"}) {
    const Json file = golden::load(name);
    int seen = 0;
    for (const Json& c : file["cases"]) {
      check_document(file, c);
      seen++;
    }
    CHECK(seen >= 2);
  }
}

}  // namespace nn_optim_test
