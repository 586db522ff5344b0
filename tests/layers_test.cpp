// Layers against Equinox: initial bits, results, gradients, states; what they refuse; on devices; inside of transforms.
#include <cmath>

#include "golden.h"
#include "messages.h"

namespace layers_test {

namespace sa = shardarray;
using golden::Json;
using sa::Array;
using sa::none;
using sa::P;
using sa::Shape;
namespace nn = sa::nn;

namespace {

const Json& old_cases() {
  static const Json all = golden::load("nn.json")["cases"];
  return all;
}
const Json& new_cases() {
  static const Json all = golden::load("layers.json")["cases"];
  return all;
}
template <class F> void each(const Json& cases, const std::string& name, int count, const F& f) {
  int seen = 0;
  for (const Json& c : cases) {
    if (c["name"] != name) continue;
    CAPTURE(c["attrs"].dump());
    const sa::random::partitionable mode(c["attrs"].value("partitionable", true));
    f(c, c["attrs"], c["outputs"]);
    seen++;
  }
  CHECK_MESSAGE(seen == count, name);
}
Array key_of(const Json& attrs) { return sa::random::key(attrs["seed"].get<std::int32_t>()); }
std::vector<Array> arrays(const Json& list) {
  std::vector<Array> r;
  for (const Json& x : list) r.push_back(golden::array(x));
  return r;
}
bool is_half(const Array& x) { return sa::itemsize(x.dtype()) == 2; }
bool close(const Array& x, const Json& expected) {
  const double rel = is_half(x) ? 1e-2 : 1e-5;
  return x.dtype() == golden::dtype_named(expected["dtype"]) && golden::close(x, expected, rel, rel / 10);
}
void check_leaves(const std::vector<Array>& leaves, const Json& expected, double rel, double abs) {
  REQUIRE(leaves.size() == expected.size());
  for (std::size_t k = 0; k < leaves.size(); k++)
    CHECK_MESSAGE(golden::close(leaves[k], expected[k], rel, abs), "leaf " << k);
}

// The layer with the recorded weights: call(layer, inputs) and the gradients of sum(sin(.)) are Equinox's, also in jit.
template <class L, class Call> void check_case(const Json& c, L layer, const Call& call) {
  const Json& out = c["outputs"];
  layer = sa::with_leaves(layer, arrays(out["params"]));
  const std::vector<Array> inputs = arrays(c["inputs"]);
  const auto run = [&](const L& m, const std::vector<Array>& x) { return sa::tree_leaves(call(m, x)); };
  for (const std::vector<Array>& ys : {run(layer, inputs), sa::jit(run)(layer, inputs)}) {
    REQUIRE(ys.size() == out["y"].size());
    for (std::size_t k = 0; k < ys.size(); k++) CHECK(close(ys[k], out["y"][k]));
  }
  if (!out.contains("grads")) return;
  const auto loss = [&](const std::pair<L, Array>& both) {
    std::vector<Array> x = inputs;
    x[0] = both.second;
    Array sum = 0.0;
    for (const Array& y : run(both.first, x)) sum += sa::sum(sa::sin(y.astype(sa::float32)));
    return sum;
  };
  const auto grads = sa::grad(loss)(std::pair(layer, inputs[0]));
  const double rel = is_half(inputs[0]) ? 2e-2 : 1e-5;
  check_leaves(sa::tree_leaves(grads), out["grads"], rel, rel / 5);
}
template <class L> void check_case(const Json& c, const L& layer) {
  check_case(c, layer, [](const L& m, const std::vector<Array>& x) { return m(x[0]); });
}

Array numbers(const Shape& shape) {
  return sa::sin(sa::arange(sa::num_elements(shape), sa::float32)).reshape(shape);
}

}  // namespace

TEST_CASE("layers: Linear and MLP from and to scalars have Equinox's bits and results") {
  const auto size = [](const Json& j) {
    return j.is_string() ? nn::Features(nn::scalar) : nn::Features(j.get<int>());
  };
  int seen = 0;
  for (const Json& c : old_cases()) {
    const Json &a = c["attrs"], &out = c["outputs"];
    if (c["name"] != "Linear" || (a["in"] != "scalar" && a["out"] != "scalar")) continue;
    CAPTURE(a.dump());
    const sa::random::partitionable mode(a["partitionable"].get<bool>());
    const auto layer =
        nn::Linear::init(size(a["in"]), size(a["out"]), key_of(a), {.use_bias = a["use_bias"]});
    CHECK(golden::same_bits(layer.weight, out["params"]["weight"]));
    CHECK(layer.bias.has_value() == out["params"].contains("bias"));
    if (layer.bias.has_value()) CHECK(golden::same_bits(layer.bias, out["params"]["bias"]));
    CHECK(golden::close(layer(golden::array(c["inputs"]["x"])), out["y"], 1e-5, 1e-6));
    seen++;
  }
  CHECK(seen > 10);
  each(new_cases(), "MLP", 3, [&](const Json& c, const Json& a, const Json& out) {
    const auto model = nn::MLP<>::init(size(a["in"]), size(a["out"]), 4, 1, sa::random::key(3));
    const std::vector<Array> leaves = sa::tree_leaves(model);
    for (std::size_t k = 0; k < leaves.size(); k++) CHECK(golden::same_bits(leaves[k], out["params"][k]));
    check_case(c, model);
  });
  const auto narrow = nn::MLP<>::init(2, 1, 3, 1, sa::random::key(0), {.dtype = sa::bfloat16});
  for (const Array& leaf : sa::tree_leaves(narrow)) CHECK(leaf.dtype() == sa::bfloat16);
}

TEST_CASE("layers: Dropout, Embedding and PReLU have Equinox's numbers") {
  each(old_cases(), "Dropout", 24, [](const Json& c, const Json& a, const Json& out) {
    const nn::Dropout layer{.p = a["p"], .inference = a["inference"]};
    const Array x = golden::array(c["inputs"]["x"]), y = layer(x, {.key = key_of(a)});
    CHECK(golden::close(y, out, 1e-6));
    for (std::size_t k = 0; k < golden::values(y).size(); k++)  // what is dropped is bits
      CHECK((golden::values(y)[k] == 0) == (golden::numbers(out)[k] == 0));
    CHECK(golden::same_bits(nn::Dropout{.p = a["p"]}(x, {.inference = true}), c["inputs"]["x"]));
  });
  const Array x = numbers({50});
  CHECK(sa::sum(nn::Dropout{1.0}(x, {.key = sa::random::key(0)})).item<float>() == 0);
  const auto slope =
      sa::grad([](const Array& v) { return sa::sum(nn::Dropout{1.0}(v, {.key = sa::random::key(0)})); })(x);
  CHECK(golden::values(slope) == std::vector<double>(50, 0.0));
  CHECK(
      nn::Dropout{.p = 0.5, .inference = true}(x, {.key = sa::random::key(0), .inference = false}).dtype() ==
      sa::float32);

  each(old_cases(), "Embedding", 2, [](const Json& c, const Json& a, const Json& out) {
    const auto layer = nn::Embedding::init(a["num"], a["dim"], key_of(a));
    CHECK(golden::close(layer.weight, out["params"]["weight"], 5e-7, 1e-7));
    CHECK(golden::close(sa::vmap(layer)(golden::array(c["inputs"]["idx"])), out["y"], 5e-7, 1e-7));
  });
  each(new_cases(), "Embedding", 6, [](const Json& c, const Json&, const Json&) {
    check_case(c, nn::Embedding::init(6, 3, sa::random::key(3)));
  });
  each(new_cases(), "PReLU", 2, [](const Json& c, const Json&, const Json&) { check_case(c, nn::PReLU{}); });
  CHECK(nn::PReLU{}(sa::array({-2.0f, 3.0f}).astype(sa::bfloat16)).dtype() ==
        sa::bfloat16);  // weak, as in Equinox
}

TEST_CASE("layers: normalisations have Equinox's results and gradients, of 16-bit floats too") {
  each(old_cases(), "LayerNorm", 6, [](const Json& c, const Json& a, const Json& out) {
    const auto layer =
        nn::LayerNorm::init(golden::shape_of(a["shape"]), {.eps = a.value("eps", 1e-5),
                                                           .use_weight = a.value("use_weight", true),
                                                           .use_bias = a.value("use_bias", true)});
    const Array x = golden::array(c["inputs"]["x"]);
    CHECK(layer.weight.has_value() == out["params"].contains("weight"));
    CHECK(layer.bias.has_value() == out["params"].contains("bias"));
    CHECK(golden::close(layer(x), out["y"], 1e-5, 1e-6));
    const auto g = sa::grad([&](const Array& v) { return sa::sum(sa::sin(layer(v))); })(x);
    CHECK(golden::close(g, out["grad_sum_sin"], 1e-5, 2e-6));
  });
  each(old_cases(), "RMSNorm", 2, [](const Json& c, const Json& a, const Json& out) {
    const auto layer = nn::RMSNorm::init(golden::shape_of(a["shape"]));
    CHECK(golden::close(layer(golden::array(c["inputs"]["x"])), out["y"], 1e-5, 1e-6));
  });
  each(old_cases(), "GroupNorm", 2, [](const Json& c, const Json& a, const Json& out) {
    const auto layer = nn::GroupNorm::init(a["groups"], a["channels"].get<int>());
    CHECK(golden::close(layer(golden::array(c["inputs"]["x"])), out["y"], 1e-5, 1e-6));
  });
  each(new_cases(), "LayerNorm", 3, [](const Json& c, const Json&, const Json&) {
    check_case(c, nn::LayerNorm::init({3, 4}));
  });
  each(new_cases(), "RMSNorm", 3,
       [](const Json& c, const Json&, const Json&) { check_case(c, nn::RMSNorm::init(5)); });
  each(new_cases(), "GroupNorm", 4, [](const Json& c, const Json& a, const Json& out) {
    const bool affine = !out["params"].empty();
    check_case(c, affine ? nn::GroupNorm::init(a["groups"], 4)
                         : nn::GroupNorm::init(a["groups"], std::nullopt, {.channelwise_affine = false}));
  });
}

TEST_CASE("layers: GRUCell and LSTMCell have Equinox's bits, results and gradients") {
  each(old_cases(), "GRUCell", 1, [](const Json& c, const Json& a, const Json& out) {
    const auto cell = nn::GRUCell::init(a["in"], a["hidden"], key_of(a));
    for (const auto& [name, value] :
         {std::pair("weight_ih", cell.weight_ih), std::pair("weight_hh", cell.weight_hh),
          std::pair("bias", cell.bias), std::pair("bias_n", cell.bias_n)})
      CHECK(golden::same_bits(value, out["params"][name]));
    CHECK(golden::close(cell(golden::array(c["inputs"]["x"]), golden::array(c["inputs"]["state"])),
                        out["state"], 1e-5, 1e-6));
  });
  each(old_cases(), "LSTMCell", 1, [](const Json& c, const Json& a, const Json& out) {
    const auto cell = nn::LSTMCell::init(a["in"], a["hidden"], key_of(a));
    CHECK(golden::same_bits(cell.weight_ih, out["params"]["weight_ih"]));
    CHECK(golden::same_bits(cell.bias, out["params"]["bias"]));
    const Json& state = c["inputs"]["state"];
    const auto [h, next] =
        cell(golden::array(c["inputs"]["x"]), {golden::array(state[0]), golden::array(state[1])});
    CHECK(golden::close(h, out["state"][0], 1e-5, 1e-6));
    CHECK(golden::close(next, out["state"][1], 1e-5, 1e-6));
  });
  each(new_cases(), "GRUCell", 2, [](const Json& c, const Json& a, const Json& out) {
    const auto cell =
        nn::GRUCell::init(a["in"], a["hidden"], sa::random::key(3), {.use_bias = a["use_bias"]});
    const std::vector<Array> leaves = sa::tree_leaves(cell);
    for (std::size_t k = 0; k < leaves.size(); k++) CHECK(golden::same_bits(leaves[k], out["params"][k]));
    check_case(c, cell, [](const nn::GRUCell& m, const std::vector<Array>& x) { return m(x[0], x[1]); });
  });
  each(new_cases(), "LSTMCell", 2, [](const Json& c, const Json& a, const Json&) {
    const auto cell =
        nn::LSTMCell::init(a["in"], a["hidden"], sa::random::key(3), {.use_bias = a["use_bias"]});
    check_case(c, cell, [](const nn::LSTMCell& m, const std::vector<Array>& x) {
      return m(x[0], {x[1], x[2]});
    });
  });
  // Steps in a scan are the steps one after another.
  const auto cell = nn::LSTMCell::init(3, 4, sa::random::key(1));
  const Array xs = numbers({6, 3});
  using State = std::pair<Array, Array>;
  State each_step(sa::zeros(4), sa::zeros(4));
  for (int k = 0; k < 6; k++) each_step = cell(xs[k], each_step);
  const auto [last, all] = sa::scan(
      [&](const State& s, const Array& x) {
        const State next = cell(x, s);
        return std::pair(next, next.first);
      },
      State(sa::zeros(4), sa::zeros(4)), xs);
  CHECK(golden::close(golden::values(last.second), golden::values(each_step.second), 1e-6, 1e-7));
  CHECK(all.shape() == Shape{6, 4});
}

TEST_CASE("layers: BatchNorm goes through Equinox's states, in both modes") {
  each(new_cases(), "BatchNorm", 4, [](const Json&, const Json& a, const Json& out) {
    const bool ema = a["mode"] == "ema";
    auto norm = nn::BatchNorm::init(4, "rows",
                                    {.channelwise_affine = a["affine"],
                                     .momentum = 0.9,
                                     .mode = ema ? nn::BatchNormMode::ema : nn::BatchNormMode::batch});
    norm = sa::with_leaves(norm, arrays(out["params"]));
    const auto batched = [](const nn::BatchNorm& m, const Array& x, const nn::BatchNormState& s) {
      return sa::vmap(m, {.in_axes = {0, none}, .out_axes = {0, none}, .axis_name = "rows"})(x, s);
    };
    nn::BatchNormState state = norm.init_state();
    for (const Json& step : out["steps"]) {
      const Array x = golden::array(step["x"]);
      const nn::BatchNormState before = state;
      const auto grads = sa::grad([&](const std::pair<nn::BatchNorm, Array>& both) {
        return sa::sum(sa::sin(batched(both.first, both.second, before).first));
      })(std::pair(norm, x));
      check_leaves(sa::tree_leaves(grads), step["grads"], 1e-4, 2e-5);
      Array y;
      std::tie(y, state) = sa::jit(batched)(norm, x, state);
      CHECK(golden::close(y, step["y"], 1e-5, 1e-5));
      CHECK(golden::close(state.mean, step["mean"], 1e-5, 1e-6));
      CHECK(golden::close(state.var, step["var"], 1e-5, 1e-6));
      const auto [still, same] = batched(sa::nn::inference_mode(norm), x, state);
      CHECK(golden::close(still, step["inference"], 1e-5, 1e-5));
      CHECK(sa::tree_equal(same, state));
    }
    CHECK(state.count.item<int>() == 3);
  });
  // Equinox's dtypes: those of x, the layer and its state together, in training and behind it.
  for (const auto& [x_type, type] :
       {std::pair(sa::bfloat16, sa::bfloat16), {sa::float16, sa::float16}, {sa::bfloat16, sa::float32}})
    for (const auto mode : {nn::BatchNormMode::batch, nn::BatchNormMode::ema}) {
      const auto norm = nn::BatchNorm::init(3, "rows", {.dtype = type, .mode = mode});
      const sa::VmapOptions map{.in_axes = {0, none}, .out_axes = {0, none}, .axis_name = "rows"};
      const Array x = numbers({6, 3}).astype(x_type);
      const auto [y, next] = sa::vmap(norm, map)(x, norm.init_state());
      CHECK(y.dtype() == type);
      CHECK(next.mean.dtype() == type);
      CHECK(sa::vmap(nn::inference_mode(norm), map)(x, next).first.dtype() == type);
    }
}

TEST_CASE("layers: Sequential hands keys and states on as Equinox does") {
  const auto [a, b] = sa::random::split<2>(sa::random::key(3));
  const auto model = nn::sequential(nn::Linear::init(3, 5, a), sa::relu, nn::Dropout{0.4},
                                    nn::LayerNorm::init(5), nn::Linear::init(5, 2, b), nn::Dropout{0.3});
  using Model = std::remove_const_t<decltype(model)>;
  each(new_cases(), "Sequential", 2, [&](const Json& c, const Json& attrs, const Json& out) {
    const bool inference = attrs["inference"];
    const std::vector<Array> leaves = sa::tree_leaves(model);
    for (std::size_t k = 0; k < leaves.size(); k++) CHECK(golden::same_bits(leaves[k], out["params"][k]));
    check_case(c, inference ? nn::inference_mode(model) : model,
               [&](const Model& m, const std::vector<Array>& x) {
                 return inference ? m(x[0]) : m(x[0], {.key = sa::random::key(9)});
               });
  });
  CHECK(sa::tree_paths(model) == std::vector<std::string>{"layers[0].weight", "layers[0].bias",
                                                          "layers[3].weight", "layers[3].bias",
                                                          "layers[4].weight", "layers[4].bias"});
  // A state: that of its layer, in a chain in a chain too.
  const auto norm = nn::BatchNorm::init(3, "rows");
  const auto outer = nn::sequential(nn::Identity{}, nn::sequential(norm, &sa::tanh), nn::Dropout{0.5});
  using State = decltype(outer.init_state());
  const Array x = numbers({6, 3}), key = sa::random::key(1);
  const sa::VmapOptions map{.in_axes = {0, none}, .out_axes = {0, none}, .axis_name = "rows"};
  const auto [y, next] = sa::vmap([&](const Array& v, const State& s) { return outer(v, s, {.key = key}); },
                                  map)(x, outer.init_state());
  const auto [z, alone] = sa::vmap(norm, map)(x, norm.init_state());
  CHECK(sa::tree_equal(std::get<0>(std::get<1>(next)), alone));
  CHECK(alone.count.item<int>() == 1);
  const Array kept = sa::vmap([&](const Array& v) {
    return nn::Dropout{0.5}(sa::tanh(v), {.key = sa::random::split(key, 3)[2]});
  })(z);
  CHECK(golden::close(golden::values(y), golden::values(kept), 1e-6, 1e-7));
  const auto [still, same] = sa::vmap(nn::inference_mode(outer), map)(x, outer.init_state());
  CHECK(golden::close(golden::values(still), golden::values(sa::tanh(x)), 1e-4,
                      1e-5));  // of mean 0 and variance 1
  CHECK(sa::tree_equal(same, outer.init_state()));
}

namespace {

struct Deep {
  std::vector<nn::Dropout> list{nn::Dropout{}, nn::Dropout{}};
  std::optional<nn::BatchNorm> norm = nn::BatchNorm::init(1, "i");
  std::map<std::string, std::pair<nn::Dropout, int>> named{{"a", {nn::Dropout{}, 1}}};
  bool inference = false;
  double other = 1;
};

}  // namespace

TEST_CASE("layers: inference_mode sets the fields of all parts") {
  const Deep on = nn::inference_mode(Deep{}), off = nn::inference_mode(on, false);
  for (const auto& [model, value] : {std::pair(on, true), std::pair(off, false)}) {
    CHECK(model.list[0].inference == value);
    CHECK(model.list[1].inference == value);
    CHECK(model.norm->inference == value);
    CHECK(model.named.at("a").first.inference == value);
    CHECK(model.inference == value);
  }
}

TEST_CASE("layers: on devices they have the values of one, and move what their statistics need") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const sa::NamedSharding by_row(mesh, P("x"));
  const Array x = numbers({16, 6}), cut = sa::device_put(x, by_row);
  const Array key = sa::random::key(5);
  const auto model = nn::sequential(nn::Linear::init(6, 6, key), nn::LayerNorm::init(6), nn::RMSNorm::init(6),
                                    nn::GroupNorm::init(2, 6), nn::PReLU{}, nn::Dropout{0.2});
  const auto run = [&](const Array& v) {
    return sa::vmap([&](const Array& one, const Array& k) { return model(one, {.key = k}); })(
        v, sa::random::split(key, 16));
  };
  CHECK(golden::close(golden::values(sa::jit(run)(cut)), golden::values(run(x)), 1e-5, 1e-6));
  CHECK(sa::explain(run, cut).transfers().empty());

  const auto norm = nn::BatchNorm::init(6, "rows");
  const auto train = [&](const Array& v) {
    return sa::vmap(norm, {.in_axes = {0, none}, .out_axes = {0, none}, .axis_name = "rows"})(
        v, norm.init_state());
  };
  const auto [y, state] = sa::jit(train)(cut);
  const auto [expected, expected_state] = train(x);
  CHECK(golden::close(golden::values(y), golden::values(expected), 1e-5, 1e-6));
  CHECK(golden::close(golden::values(state.var), golden::values(expected_state.var), 1e-5, 1e-6));
  for (const sa::TransferInfo& t : sa::explain(train, cut).transfers()) {
    CHECK(t.kind == "all_reduce");
    CHECK(t.shape == Shape{6});
  }
}

TEST_CASE("layers: what is refused") {
  using sa::testing::message_of;
  const Array key = sa::random::key(0), x = numbers({3}), i = sa::array({1, 2});
  CHECK(
      message_of<sa::ShapeError>([&] { nn::Linear::init(nn::scalar, 2, key)(x); }) ==
      "nn::Linear: x is f32[3], the weight f32[2,1]. A layer takes one scalar, and its weight is one column. "
      "Batch with vmap(model)(x).");
  CHECK(message_of<sa::ShapeError>([&] {
          nn::Linear{numbers({2, 3}), {}}(numbers({4}));
        }) ==
        "nn::Linear: x is f32[4], the weight f32[2,3]. A layer takes one vector of the weight's last size. "
        "Give x that size, or make the layer with Linear::init(size of x, size of the result, key).");
  CHECK(message_of<sa::ShapeError>([&] {
          nn::Linear{numbers({2, 3}), {}, false, true}(x);
        }) ==
        "nn::Linear: the weight is f32[2,3]. The weight of a layer that gives a scalar is one row. Make the "
        "layer "
        "with Linear::init(in, nn::scalar, key).");
  CHECK(message_of<sa::Error>([&] { nn::Dropout{1.5}(x); }) ==
        "nn::Dropout: p is 1.5. A part of the elements is from 0 to 1. Correct it.");
  CHECK(message_of<sa::Error>([&] { nn::Dropout{}(x); }) ==
        "nn::Dropout: there is no key. In training it draws random numbers. Call layer(x, {.key = key}), or "
        "layer(x, {.inference = true}), or the model that inference_mode() gives.");
  CHECK_THROWS_AS(nn::Dropout{}(x, {.key = x}), sa::DTypeError);
  CHECK(message_of<sa::ShapeError>([&] { nn::Embedding::init(-1, 2, key); }) ==
        "nn::Embedding: a table of -1 x 2. Sizes are at least 0. Correct them.");
  CHECK_THROWS_AS(nn::Embedding::init(1, 2, key, {.dtype = sa::int32}), sa::DTypeError);
  const auto table = nn::Embedding::init(3, 2, key);
  CHECK(message_of<sa::DTypeError>([&] { table(x); }) ==
        "nn::Embedding: x is f32[3]. It is the number of a row, an integer. Convert it with astype().");
  CHECK(message_of<sa::ShapeError>([&] { table(i); }) ==
        "nn::Embedding: x is i32[2], the weight f32[3,2]. A call takes one number, the weight is [number, "
        "size]. "
        "Batch with vmap(layer)(x).");
  CHECK(message_of<sa::ShapeError>([&] {
          nn::PReLU{numbers({2, 3})}(x);
        }) == "nn::PReLU: x is f32[3], the slope f32[2,3]. The slope is broadcast to x. Correct it.");
  CHECK(message_of<sa::ShapeError>([&] { nn::GRUCell::init(2, 0, key); }) ==
        "nn::GRUCell: sizes 2 -> 0. The input's is at least 0, the state's 1. Correct them.");
  CHECK(message_of<sa::ShapeError>([&] { nn::GRUCell::init(3, 2, key)(x, x); }) ==
        "nn::GRUCell: x is f32[3], the state f32[3], the weights f32[6,3] and f32[6,2]. A cell takes one "
        "vector of "
        "each of the weights' last sizes. Batch with vmap(cell)(x, state).");
  CHECK(message_of<sa::ShapeError>([&] {
          nn::LSTMCell::init(3, 3, key)(x, {x, i});
        }) == "nn::LSTMCell: the state is f32[3] and i32[2]. Both have one size. Correct them.");
  CHECK(message_of<sa::ShapeError>([&] { nn::LayerNorm::init(-2); }) ==
        "nn::LayerNorm: shape [-2]. Sizes are at least 0. Correct them.");
  CHECK(message_of<sa::ShapeError>([&] {
          nn::LayerNorm::init(3)(numbers({2, 3}));
        }) ==
        "nn::LayerNorm: x is f32[2,3], the layer's shape [3]. A call takes one example of that shape. Batch "
        "with "
        "vmap(layer)(x).");
  CHECK(
      message_of<sa::ShapeError>([&] { nn::RMSNorm::init(4)(x); }) ==
      "nn::RMSNorm: x is f32[3], the layer's shape [4]. A call takes one example of that shape. Give x that "
      "shape, or make the layer for that of x.");
  CHECK(message_of<sa::DTypeError>([&] { nn::RMSNorm::init(2)(i); }) ==
        "nn::RMSNorm: x is i32[2]. What is normalised is floating. Convert it with astype().");
  CHECK(message_of<sa::ShapeError>([&] { nn::GroupNorm::init(2, 3); }) ==
        "nn::GroupNorm: 2 groups of 3 channels. There is one group at least, and groups are of equal size. "
        "Correct "
        "them.");
  CHECK(message_of<sa::ShapeError>([&] { nn::GroupNorm::init(2); }) ==
        "nn::GroupNorm: the number of channels is not given. Weights and biases have one element for each. "
        "Give it, "
        "or {.channelwise_affine = false}.");
  CHECK(message_of<sa::ShapeError>([&] { nn::GroupNorm::init(2, 4)(x); }) ==
        "nn::GroupNorm: x is f32[3], 2 groups, the weight f32[4]. The first dimension has the channels, "
        "which the "
        "groups divide and the weight has an element for. Batch with vmap(layer)(x).");
  CHECK(
      message_of<sa::TraceError>([&] {
        const auto norm = nn::BatchNorm::init(3, "i");
        (void)norm(sa::ones({3}), norm.init_state());
      }) ==
      "nn::BatchNorm: unbound axis name 'i'. In scope: none. A name is bound by vmap, pmap or shard_map with "
      "axis_name.");
  CHECK(message_of<sa::ShapeError>([&] { nn::BatchNorm::init(-3, "i"); }) ==
        "nn::BatchNorm: -3 channels. There are at least 0. Correct the number.");
  CHECK(message_of<sa::DTypeError>([&] { nn::BatchNorm::init(3, "i", {.dtype = sa::int8}); }) ==
        "nn::BatchNorm: dtype int8. Statistics are floating. Choose a floating dtype.");
  CHECK(message_of<sa::Error>([&] { nn::BatchNorm::init(3, "i", {.momentum = -1}); }) ==
        "nn::BatchNorm: momentum -1. It is what the running statistics keep of themselves, from 0 to 1. "
        "Correct it.");
  const std::string never_seen =
      "nn::BatchNorm: momentum 1 in mode batch. The running statistics would never see a batch, and "
      "inference "
      "divides by what they have seen. Choose less than 1, or mode ema.";
  CHECK(message_of<sa::Error>([&] { nn::BatchNorm::init(3, "i", {.momentum = 1}); }) == never_seen);
  auto by_hand = nn::BatchNorm::init(3, "i", {.inference = true});
  by_hand.momentum = 1;
  CHECK(message_of<sa::Error>([&] { by_hand(x, by_hand.init_state()); }) == never_seen);
  CHECK(nn::BatchNorm::init(3, "i", {.momentum = 1, .mode = nn::BatchNormMode::ema}).momentum == 1);
  CHECK(message_of<sa::Error>([&] { nn::BatchNorm::init(3, sa::NamedAxes(sa::AxisNames{})); }) ==
        "nn::BatchNorm: there is no name of an axis. Statistics are over the map of that name. Give the "
        "axis_name of "
        "vmap.");
  const auto norm = nn::BatchNorm::init(3, "rows");
  CHECK(message_of<sa::ShapeError>([&] { norm(i.astype(sa::float32), norm.init_state()); }) ==
        "nn::BatchNorm: x is f32[2], the layer has 3 channels. They are the first dimension. Batch with "
        "vmap(layer, "
        "{.in_axes = {0, none}, .out_axes = {0, none}, .axis_name = ..})(x, state).");
  CHECK_THROWS_AS(norm(x, norm.init_state()), sa::TraceError);
}

TEST_CASE("layers: what vmap calls of them has the line of vmap's call") {
  const Array key = sa::random::key(3);
  const auto lines_of = [](const auto& layer, const Array& x) {
    return sa::explain([](const auto& l, const Array& rows) { return sa::vmap(l)(rows); }, layer, x)
        .to_string();
  };
  const int line = __LINE__ - 3;
  const Array vectors = sa::ones({3, 4}), images = sa::ones({3, 4, 8, 8});
  const std::vector<std::string> texts = {lines_of(nn::Linear::init(4, 8, key), vectors),
                                          lines_of(nn::MLP<>::init(4, 2, 8, 1, key), vectors),
                                          lines_of(nn::LayerNorm::init({4}), vectors),
                                          lines_of(nn::RMSNorm::init({4}), vectors),
                                          lines_of(nn::GroupNorm::init(2, 4), images),
                                          lines_of(nn::Conv2d::init(4, 2, {3, 3}, key), images),
                                          lines_of(nn::PReLU{}, vectors)};
  const std::string here = "layers_test.cpp:" + std::to_string(line);
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(text.find(here) != text.npos);
    for (std::size_t at = text.find(".cpp:"); at != text.npos; at = text.find(".cpp:", at + 1))
      CHECK(text.substr(at - 11, here.size()) == here);
  }
}

}  // namespace layers_test
