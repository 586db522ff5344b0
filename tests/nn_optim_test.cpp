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

namespace {

// Calls f(activation) with the one of this name.
template <class F> void with_activation(const std::string& kind, const F& f) {
  if (kind == "relu") f(relu);
  else if (kind == "gelu") f(gelu);
  else if (kind == "sigmoid") f(sigmoid);
  else if (kind == "silu") f(silu);
  else if (kind == "softplus") f(softplus);
  else if (kind == "elu") f(elu);
  else if (kind == "leaky_relu") f(leaky_relu);
  else if (kind == "tanh") f(&tanh_of);  // a function pointer
  else if (kind == "gelu_exact") f([](const Array& x) { return gelu(x, false); });
  else FAIL("no activation ", kind);
}

}  // namespace

TEST_CASE("nn: activations, batches and gradients") {
  int seen = 0;
  for (const Json& c : nn_cases()) {
    const Json& a = c["attrs"];
    const auto key = [&] { return random::key(a["seed"].get<int>()); };
    if (c["name"] == "MLP_batch_grad")
      with_activation(a["activation"], [&](auto activation) {
        check_batch(
            nn::mlp(a["in"].get<int>(), a["out"].get<int>(), a["width"], a["depth"], activation, key()), c);
        seen++;
      });
    if (c["name"] == "MLP_final_activation")
      with_activation(a["final_activation"], [&](auto activation) {
        CAPTURE(a.dump());
        const auto layers = nn::mlp_layers(a["in"].get<int>(), a["out"].get<int>(), a["width"], a["depth"],
                                           key(), {}, Where::here());
        const nn::MLP<UnaryFunction<"relu">, decltype(activation)> m{layers, relu, activation};
        const auto same =
            nn::mlp(a["in"].get<int>(), a["out"].get<int>(), a["width"], a["depth"], relu, activation, key());
        CHECK(tree_equal(m.layers, same.layers));
        CHECK(golden::close(vmap(same)(golden::array(c["inputs"]["x"])), c["outputs"], 1e-5, 1e-6));
        CHECK(golden::close(vmap(m)(golden::array(c["inputs"]["x"])), c["outputs"], 1e-5, 1e-6));
        seen++;
      });
  }
  CHECK(seen == 18);
}

static Array doubled_tanh(const Array& x) { return tanh(x) * 2; }

TEST_CASE("nn: an MLP as a field has any activation, and is assigned like others") {
  const Array key = random::key(3), x = random::normal(key, {5, 2});
  struct Model {
    nn::MLP<nn::Function<doubled_tanh>> own;
    nn::MLP<nn::Function<shardarray::tanh>> function;
    nn::MLP<decltype(gelu), decltype(sigmoid)> objects;
  };
  const auto layers = [&] { return nn::MLP<>::init(2, 3, 4, 1, key).layers; };
  Model m{decltype(Model::own)::init(2, 3, 4, 1, key), decltype(Model::function)::init(2, 3, 4, 1, key),
          decltype(Model::objects)::init(2, 3, 4, 1, key)};
  m = tree_map([](const Array& a) { return a * 1.5; }, m);
  const auto by_hand = [&](const auto& activation, const auto& last) {
    std::vector<nn::Linear> l = tree_map([](const Array& a) { return a * 1.5; }, layers());
    return vmap([&](const Array& row) { return last(l[1](activation(l[0](row)))); })(x);
  };
  const auto none_behind = [](const Array& y) { return y; };
  CHECK(allclose(vmap(m.own)(x), by_hand(doubled_tanh, none_behind)));
  CHECK(allclose(vmap(m.function)(x), by_hand([](const Array& y) { return tanh(y); }, none_behind)));
  CHECK(allclose(vmap(m.objects)(x), by_hand(gelu, sigmoid)));
  CHECK(allclose(jit([](const Model& n, const Array& v) { return vmap(n.own)(v); })(m, x), vmap(m.own)(x)));
}

TEST_CASE("nn: what is refused, and trees") {
  const Array key = random::key(0);
  const auto layer = nn::Linear::init(3, 2, key);
  CHECK(tree_paths(layer) == std::vector<std::string>{"weight", "bias"});
  CHECK(tree_paths(nn::MLP<>::init(2, 2, 4, 1, key)) ==
        std::vector<std::string>{"layers[0].weight", "layers[0].bias", "layers[1].weight", "layers[1].bias"});
  CHECK(tree_leaves(nn::Linear::init(3, 2, key, {.use_bias = false})).size() == 1);
  const Array keys = random::split(key, 3);
  const std::string not_one = ": accepts a single key, but was given u32[3,2].";
  CHECK(
      text_of([&] { static_cast<void>(nn::Linear::init(3, 2, keys)); }).starts_with("nn::Linear" + not_one));
  CHECK(text_of([&] {
          static_cast<void>(nn::MLP<>::init(2, 2, 4, 1, keys));
        }).starts_with("nn::MLP" + not_one));
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

// What JAX refuses (classic PositionalSharding beside vectors), or what has the bits of another case: that one's numbers.
const Json& numbers_of(const Json& file, const Json& c) {
  if (c.contains("outputs") && (c["outputs"].contains("steps") || !c["attrs"].value("jit", true)))
    return c["outputs"];
  for (const Json& other : file["cases"])
    if (other["attrs"]["partitionable"] == c["attrs"]["partitionable"] &&
        other["attrs"]["devices"] == c["attrs"]["devices"] && other["attrs"].value("donate", "") == "all" &&
        other["attrs"]["sharding"] == "named")
      return other["outputs"];
  throw Error("no such case");
}
// (n, 1) devices as the case spells them: of data, of what all have.
std::pair<Sharding, Sharding> placements(const Json& attrs) {
  const int n = attrs["devices"];
  const auto all = devices();
  const auto grid = create_device_mesh({n, 1}, {all.begin(), all.begin() + n});
  if (attrs["sharding"] == "named") {
    const Mesh mesh(grid, {"a", "b"});
    return {NamedSharding(mesh, P("a", "b")), NamedSharding(mesh, P())};
  }
  const PositionalSharding sharding(grid);
  return {sharding, sharding.replicate()};
}

// One recorded run: weights, gradients, every step, the printed loss. JAX's donate="all" is a model that is moved in, "warn" an
// option of jit.
void check_document(const Json& file, const Json& c) {
  const Json &a = c["attrs"], &out = numbers_of(file, c), &data = file["cases"][0]["outputs"];
  CAPTURE(a.dump());
  const bool jitted = a.value("jit", true);
  const std::string donate = a.value("donate", "none");
  const random::partitionable mode(a["partitionable"].get<bool>());
  const Array xs = golden::array(data["xs"]).astype(float32), ys = golden::array(data["ys"]).astype(float32);
  const auto placed = placements(a);
  const Sharding sharding = placed.first, replicated = placed.second;
  const auto optimizer = optim::adam(3e-4);
  const auto step = [=](Model m, State s, Array x, Array y) {
    std::tie(m, s) = filter_shard(std::tuple(m, s), replicated);
    std::tie(x, y) = filter_shard(std::tuple(x, y), sharding);
    const auto [loss, grads] = value_and_grad(document_loss)(m, x, y);
    const auto [updates, next] = optimizer.update(grads, s);
    return std::tuple(filter_shard(std::tuple(apply_updates(m, updates), next), replicated), loss, grads);
  };
  const auto compiled = jit(step, {.donate = donate == "warn" ? Donate::all : Donate::none});

  Model model = Model::init(4, 4, 32, 1, random::PRNGKey(6789));
  if (out.contains("init")) check_layers(model.layers, out["init"]);
  State state = optimizer.init(filter(model, is_inexact_array));
  model = filter_shard(model, replicated);
  for (std::size_t t = 0; t < 10; t++) {
    CAPTURE(t);
    const Array rows = array(data["batches"][t].get<std::vector<std::int32_t>>());
    Array x = take(xs, rows, 0), y = take(ys, rows, 0);
    std::tie(x, y) = filter_shard(std::tuple(x, y), sharding);
    if (a["devices"] != 1) CHECK(x.sharding().is_equivalent_to(sharding, 2));
    const Model old = model;  // shares the buffers: where the model is moved in they must not be overwritten
    const auto [next, loss, grads] = !jitted           ? step(model, state, x, y)
                                     : donate == "all" ? compiled(std::move(model), std::move(state), x, y)
                                                       : compiled(model, state, x, y);
    if (donate == "all") CHECK(model.layers[0].weight.is_deleted());
    for (const Array& leaf : tree_leaves(old)) CHECK(leaf.is_deleted() == (donate == "warn"));
    std::tie(model, state) = next;
    CHECK(golden::close(loss, jitted ? out["steps"][t]["loss_before_update"] : out["losses"][t], 1e-5));
    if (jitted) CHECK(layers_close(model.layers, out["steps"][t]["params"], 1e-5, 1e-6));
    if (jitted && t == 0) CHECK(layers_close(grads.layers, out["first_grads"], 1e-5, 1e-7));
    if (jitted && t == 0 && donate != "warn") check_layers(old.layers, out["init"]);
    for (const Array& leaf : tree_leaves(std::tuple(model, state))) CHECK(leaf.is_fully_replicated());
  }
  CHECK(testing::values(state.count)[0] == 10);
  if (jitted) {
    const Json& last = out["opt_state_last"];
    CHECK(golden::close(state.mu.layers[0].weight, last["[0].mu.layers[0].weight"], 1e-4, 1e-6));
    CHECK(golden::close(state.nu.layers[1].weight, last["[0].nu.layers[1].weight"], 1e-4, 1e-7));
  } else {
    CHECK(layers_close(model.layers, out["params_last"], 1e-5, 1e-6));
  }

  const auto evaluate = jit([=](Model m, Array x, Array y) {
    m = filter_shard(m, replicated);
    std::tie(x, y) = filter_shard(std::tuple(x, y), sharding);
    return document_loss(m, x, y);
  });
  double sum = 0;
  for (std::size_t k = 0; k < 4; k++) {
    const auto part = slice(16 * k, 16 * k + 16);
    const double loss = testing::values(evaluate(model, xs[part], ys[part]))[0];
    CHECK(loss == doctest::Approx(out["eval_losses"][k].get<double>()).epsilon(1e-5));
    sum += loss;
  }
  const std::string printed = out["printed"];  // train loss=0.46692...
  CHECK(sum / 4 == doctest::Approx(std::stod(printed.substr(printed.find('=') + 1))).epsilon(1e-5));
}

}  // namespace

TEST_CASE("nn: the Equinox document, step by step, on 8 devices and on 1") {
  for (const char* name : {"eqx_document.json", "eqx_document_old.json"}) {
    const Json file = golden::load(name);
    for (const Json& c : file["cases"]) {
      // What JAX says of its donations is what ours do; classic JAX gives nothing away on one CPU device.
      if (c.contains("outputs") && c["outputs"].contains("deleted_after_step1"))
        for (const Json& deleted : c["outputs"]["deleted_after_step1"])
          CHECK((deleted == (c["attrs"]["donate"] != "none") ||
                 (file["versions"]["jax"] == "0.4.30" && c["attrs"]["devices"] == 1)));
      check_document(file, c);
    }
    CHECK(file["cases"].size() == (file["versions"]["jax"] == "0.4.30" ? 4 : 16));
  }
}

}  // namespace nn_optim_test
