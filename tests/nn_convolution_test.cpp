// Convolutional and pooling layers: Equinox's initial bits, values and gradients (windows.json); messages.
#include <map>

#include "golden.h"
#include "messages.h"
#include "program_of.h"
#include "shardarray/nn/convolution.h"
#include "shardarray/nn/pooling.h"

namespace nn_convolution_test {

namespace sa = shardarray;
namespace nn = shardarray::nn;
using namespace program_test;
using golden::Json;
using shardarray::testing::contains;
using shardarray::testing::message_of;

namespace {

/// One number, or one for each dimension.
Shape sizes_of(const Json& j) { return j.is_number() ? Shape{j.get<std::int64_t>()} : golden::shape_of(j); }
Shape sizes_of(const Json& attrs, const char* name) {
  return attrs.contains(name) ? sizes_of(attrs[name]) : Shape();
}
sa::Padding padding_of(const Json& attrs) {
  if (!attrs.contains("padding")) return {};
  const Json& j = attrs["padding"];
  if (j.is_string()) return j.get<std::string>();
  if (j.is_number()) return j.get<std::int64_t>();
  if (j[0].is_number()) {
    std::vector<std::pair<std::int64_t, std::int64_t>> both;
    for (const Json& n : j) both.emplace_back(n.get<std::int64_t>(), n.get<std::int64_t>());
    return both;
  }
  return j.get<std::vector<std::pair<std::int64_t, std::int64_t>>>();
}
nn::PaddingMode mode_of(const Json& attrs) {
  const std::string name = attrs.value("padding_mode", "ZEROS");
  return name == "REFLECT"     ? nn::PaddingMode::reflect
         : name == "REPLICATE" ? nn::PaddingMode::replicate
         : name == "CIRCULAR"  ? nn::PaddingMode::circular
                               : nn::PaddingMode::zeros;
}

template <class Layer, class Options> Layer layer_of(const Json& a, const Array& key) {
  Options o;
  o.stride = sizes_of(a, "stride");
  o.padding = padding_of(a);
  o.dilation = sizes_of(a, "dilation");
  o.groups = a.value("groups", 1);
  o.use_bias = a.value("use_bias", true);
  o.padding_mode = mode_of(a);
  if constexpr (std::is_same_v<Options, nn::ConvTransposeLayerOptions>)
    o.output_padding = sizes_of(a, "output_padding");
  const char* in = a.contains("in") ? "in" : "in_channels";
  return Layer::init(a[in].get<std::int64_t>(),
                     a[a.contains("out") ? "out" : "out_channels"].get<std::int64_t>(),
                     sizes_of(a[a.contains("kernel") ? "kernel" : "kernel_size"]), key, o);
}

template <class Layer> void check_layer(const Layer& m, const Json& c) {
  const Json &leaves = c["leaves"], &wanted = c["gradients"], &y = c["y"];
  const Array v = golden::array(c["x"]);
  const auto g = sa::grad([&](const Layer& l) { return sa::sum(sa::sin(l(v))); })(m);
  CHECK(golden::same_bits(m.weight, leaves["weight"]));
  CHECK(golden::close(g.weight, wanted["weight"], 1e-4, 1e-4));
  CHECK(m.bias.has_value() == leaves.contains("bias"));
  if (m.bias.has_value()) {
    CHECK(golden::same_bits(m.bias, leaves["bias"]));
    CHECK(golden::close(g.bias, wanted["bias"], 1e-4, 1e-4));
  }
  CHECK(golden::close(m(v), y, 1e-5, 1e-6));
  const Array rows = sa::stack({v, 2 * v});
  CHECK(golden::close(sa::jit([](const Layer& l, const Array& b) { return sa::vmap(l)(b); })(m, rows)[0], y,
                      1e-5, 1e-6));
}

template <int dims> void check_conv(const Json& c) {
  const Array key = sa::random::key(5);
  if (c["layer"] == "Conv") check_layer(layer_of<nn::Conv<dims>, nn::ConvLayerOptions>(c["args"], key), c);
  else check_layer(layer_of<nn::ConvTranspose<dims>, nn::ConvTransposeLayerOptions>(c["args"], key), c);
}

template <int dims> void check_pool(const Json& c) {
  const Json& a = c["args"];
  const std::string kind = c["layer"];
  const Array x = golden::array(c["x"]);
  const auto pool = [&](auto layer) {
    layer.kernel_size = sizes_of(a["kernel_size"]);
    layer.stride = sizes_of(a, "stride");
    layer.padding = padding_of(a);
    layer.use_ceil = a.value("use_ceil", false);
    return layer(x);
  };
  const Array y = kind == "MaxPool"           ? pool(nn::MaxPool<dims>{})
                  : kind == "AvgPool"         ? pool(nn::AvgPool<dims>{})
                  : kind == "AdaptiveMaxPool" ? nn::AdaptiveMaxPool<dims>{sizes_of(a["target_shape"])}(x)
                                              : nn::AdaptiveAvgPool<dims>{sizes_of(a["target_shape"])}(x);
  CHECK(golden::close(y, c["y"], 1e-6, 1e-6));
}

}  // namespace

TEST_CASE("nn: convolutions and pools have Equinox's bits and values") {
  const Json all = golden::load("windows.json");
  for (const Json& c : all["layers"]) {
    CAPTURE(c["layer"].dump());
    CAPTURE(c["dims"].dump());
    CAPTURE(c["args"].dump());
    const int dims = c["dims"];
    if (c.contains("leaves")) dims == 1 ? check_conv<1>(c) : dims == 2 ? check_conv<2>(c) : check_conv<3>(c);
    else dims == 1 ? check_pool<1>(c) : dims == 2 ? check_pool<2>(c) : check_pool<3>(c);
  }
}

namespace {

/// A case of nn.json: a layer from the key of its seed.
template <class Layer, class Options> void check_seeded(const Json& c) {
  const Json& out = c["outputs"];
  const Layer m = layer_of<Layer, Options>(c["attrs"], sa::random::PRNGKey(c["attrs"]["seed"].get<int>()));
  const Array x = golden::array(c["inputs"]["x"]);
  CHECK(golden::same_bits(m.weight, out["params"]["weight"]));
  CHECK(golden::same_bits(m.bias, out["params"]["bias"]));
  CHECK(golden::close(m(x), out["y"], 1e-5, 1e-6));
  if (!out.contains("grad_sum_sin")) return;
  const Layer g = sa::grad([&](const Layer& l) { return sa::sum(sa::sin(l(x))); })(m);
  CHECK(golden::close(g.weight, out["grad_sum_sin"]["weight"], 1e-5, 1e-5));
  CHECK(golden::close(g.bias, out["grad_sum_sin"]["bias"], 1e-5, 1e-5));
}
template <class Layer> void check_window(const Json& c) {
  const Json& a = c["attrs"];
  const Layer pool{.kernel_size = sizes_of(a, "kernel"), .stride = sizes_of(a, "stride")};
  CHECK(golden::close(pool(golden::array(c["inputs"]["x"])), c["outputs"], 1e-6, 1e-6));
}

}  // namespace

TEST_CASE("nn: convolutions and pools of nn.json") {
  using Check = void (*)(const Json&);
  const std::map<std::string, Check> table = {
      {"Conv1d", check_seeded<nn::Conv<1>, nn::ConvLayerOptions>},
      {"Conv2d", check_seeded<nn::Conv<2>, nn::ConvLayerOptions>},
      {"ConvTranspose1d", check_seeded<nn::ConvTranspose<1>, nn::ConvTransposeLayerOptions>},
      {"ConvTranspose2d", check_seeded<nn::ConvTranspose<2>, nn::ConvTransposeLayerOptions>},
      {"MaxPool1d", check_window<nn::MaxPool<1>>},
      {"MaxPool2d", check_window<nn::MaxPool<2>>},
      {"AvgPool1d", check_window<nn::AvgPool<1>>},
      {"AvgPool2d", check_window<nn::AvgPool<2>>}};
  int seen = 0;
  const Json all = golden::load("nn.json");
  for (const Json& c : all["cases"]) {
    const auto check = table.find(c["name"]);
    if (check == table.end()) continue;
    CAPTURE(c["name"].dump());
    CAPTURE(c["attrs"].dump());
    check->second(c);
    seen++;
  }
  CHECK(seen == 14);
}

TEST_CASE("nn: what convolutional and pooling layers refuse") {
  const Array key = sa::random::key(0), x = sa::ones({3, 8});
  const auto said = [](const auto& f) { return message_of<sa::Error>([&] { (void)f(); }); };
  const auto made = [&](std::int64_t in, std::int64_t out, const Shape& kernel,
                        const nn::ConvLayerOptions& o = {}) {
    return said([&] { return nn::Conv1d::init(in, out, kernel, key, o); });
  };
  CHECK(made(3, 4, {3}, {.groups = 2}) ==
        "nn::Conv1d: 3 channels to 4 in 2 groups. Channels are not negative, and multiples of the groups. "
        "Correct them.");
  CHECK(
      made(3, 4, {}) ==
      "nn::Conv1d: kernel_size []. There is one number for each of 1 spatial dimension, or one for all. Add "
      "numbers.");
  CHECK(made(3, 4, {3}, {.dtype = sa::int32}) ==
        "nn::Conv1d: dtype int32. Weights are real floats. Use float32.");
  CHECK(said([&] {
          return nn::Conv1d::init(3, 4, {3}, key)(sa::ones({2, 3, 8}));
        }) ==
        "nn::Conv1d: x is f32[2,3,8]. A layer takes one example of rank 2: channels and 1 spatial dimension. "
        "Batch with vmap(model)(x).");
  CHECK(
      said([&] {
        return nn::ConvTranspose1d::init(3, 4, {3}, key, {.stride = {2}, .output_padding = {2}});
      }) ==
      "nn::ConvTranspose1d: output_padding [2] with stride [2]. It is not negative and less than the stride. "
      "Correct it.");
  CHECK(said([&] {
          return nn::ConvTranspose1d::init(3, 4, {3}, key, {.padding_mode = nn::PaddingMode::circular});
        }) ==
        "nn::ConvTranspose1d: padding_mode circular. It is zeros, or circular with padding \"SAME\" or "
        "\"SAME_LOWER\" and no output_padding. "
        "Correct it.");
  CHECK(said([&] {
          return nn::MaxPool1d{{2}, {1}, 3}(x);
        }) ==
        "nn::MaxPool1d: padding 3 and 3 of a window of 2 elements. There is no window in the padding alone. "
        "Use less padding.");
  CHECK(
      said([&] { return nn::AvgPool2d{{2}}(x); }) ==
      "nn::AvgPool2d: x is f32[3,8]. A layer takes one example of rank 3: channels and 2 spatial dimensions. "
      "Insert the channels with expand_dims(x, 0), or use a layer of fewer dimensions.");
  CHECK(
      said([&] {
        return nn::AdaptiveAvgPool2d{{2}}(sa::ones({2, 3, 8, 8}));
      }) ==
      "nn::AdaptiveAvgPool2d: x is f32[2,3,8,8]. A layer takes one example of rank 3: channels and 2 spatial "
      "dimensions. Batch with vmap(model)(x).");
  CHECK(said([&] { return nn::AdaptiveMaxPool1d{{9}}(x); }) ==
        "nn::AdaptiveMaxPool1d: x is f32[3,8], the target [9]. There is a target size for each of 1 spatial "
        "dimension, or one for all, from 1 to its own. Correct target_shape.");
  CHECK(
      said([&] {
        return nn::AdaptiveAvgPool1d{{2, 2}}(x);
      }) ==
      "nn::AdaptiveAvgPool1d: x is f32[3,8], the target [2,2]. There is a target size for each of 1 spatial "
      "dimension, or one for all, from 1 to its own. Correct target_shape.");
}

TEST_CASE("nn: a layer whose channels are cut adds up what devices have") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}});
  const auto over_channels = [&](const auto& layer, const sa::Array& x) {
    return sa::shard_map(
        [](const auto& l, const sa::Array& v) { return sa::psum(l(v), "x"); },
        {.mesh = mesh, .in_specs = {sa::P(sa::none, "x"), sa::P("x")}, .out_specs = sa::P()})(layer, x);
  };
  const sa::Array x = sa::random::normal(sa::random::key(1), {4, 8, 8});
  const auto check = [&](auto layer) {
    layer.bias = sa::Array();
    CHECK(sa::allclose(sa::testing::everywhere(over_channels(layer, x)), layer(x),
                       {.rtol = 1e-5, .atol = 1e-5}));
  };
  check(nn::Conv2d::init(4, 3, {3}, sa::random::key(0)));
  check(nn::ConvTranspose2d::init(4, 3, {3}, sa::random::key(0)));
}

TEST_CASE("nn: layers name themselves where channels or windows do not fit") {
  const Array key = sa::random::key(0);
  const auto said = [](const auto& layer, const Shape& x) {
    return message_of<sa::ShapeError>([&] { (void)layer(sa::ones(x)); });
  };
  const auto conv = nn::Conv2d::init(3, 4, {3}, key);
  CHECK(said(conv, {4, 8, 8}) ==
        "nn::Conv2d: x is f32[4,8,8], the weight f32[4,3,3,3] for 3 channels. The first dimension has the "
        "channels. Give x that many, or make the layer for 4.");
  CHECK(said(conv, {8, 8, 3}) ==
        "nn::Conv2d: x is f32[8,8,3], the weight f32[4,3,3,3] for 3 channels. The first dimension has the "
        "channels. Move them there with moveaxis(x, -1, 0).");
  CHECK(said(nn::Conv1d::init(4, 4, {3}, key, {.groups = 2}), {2, 8})
            .starts_with("nn::Conv1d: x is f32[2,8], the weight f32[4,2,3] for 4 channels."));
  CHECK(said(nn::ConvTranspose3d::init(3, 4, {3}, key), {4, 8, 8, 8})
            .starts_with("nn::ConvTranspose3d: x is f32[4,8,8,8], the weight "));
  const std::string rule =
      ". The result has one element for each window. Use a smaller kernel_size or dilation, or "
      "padding \"SAME\".";
  CHECK(said(conv, {3, 2, 8}) == "nn::Conv2d: no window [3,3] fits into x f32[3,2,8]" + rule);
  CHECK(said(nn::Conv2d::init(3, 4, {3}, key, {.dilation = {4}}), {3, 8, 8}) ==
        "nn::Conv2d: no window [9,9] fits into x f32[3,8,8]" + rule);
  CHECK(said(nn::MaxPool2d{{3}}, {3, 8, 2}) ==
        "nn::MaxPool2d: no window [3,3] fits into x f32[3,8,2]" + rule);
  CHECK(said(nn::AvgPool1d{{3}}, {3, 2}) == "nn::AvgPool1d: no window [3] fits into x f32[3,2]" + rule);
  CHECK(said(nn::MaxPool1d{{3}, {}, "SAME"}, {3, 2}) == "nothing was thrown");
  CHECK(nn::MaxPool1d{{3}}(sa::ones({3, 0})).shape() == Shape{3, 0});  // an empty example has an empty result
}

TEST_CASE("nn: fields that no init has checked are refused where they are used") {
  const Array key = sa::random::key(0), x = sa::ones({2, 8}), tokens = sa::ones({4, 6});
  const auto refused = [](const auto& layer, const Array& to) {
    return contains(message_of<sa::ShapeError>([&] { (void)layer(to); }), "Correct them.");
  };
  // Each field of both layers with numbers and lists that do not go.
  const auto check = [&](const auto& good) {
    for (const Shape& bad : {Shape{0}, Shape{-1}, Shape{}, Shape{1, 1}}) {
      auto layer = good;
      layer.stride = bad;
      CHECK(refused(layer, x));
      layer = good;
      layer.dilation = bad;
      CHECK(refused(layer, x));
    }
    auto layer = good;
    layer.kernel_size = {};
    CHECK(refused(layer, x));
    for (const std::int64_t groups : {0, -1, 3}) {
      layer = good;
      layer.groups = groups;
      CHECK_THROWS_AS((void)layer(x), sa::ShapeError);
    }
  };
  check(nn::Conv1d::init(2, 2, {3}, key));
  check(nn::Conv1d::init(2, 2, {3}, key, {.padding = "SAME", .padding_mode = nn::PaddingMode::reflect}));
  auto turned = nn::ConvTranspose1d::init(2, 2, {3}, key);
  check(turned);
  check(nn::ConvTranspose1d::init(2, 2, {3}, key,
                                  {.padding = "SAME", .padding_mode = nn::PaddingMode::circular}));
  turned.output_padding = {};
  CHECK(message_of<sa::ShapeError>([&] { (void)turned(x); }) ==
        "nn::ConvTranspose1d: output_padding [] of 1 spatial dimension. It has a number for each. Correct "
        "it.");
  auto zero = nn::Conv1d::init(2, 2, {3}, key);
  zero.groups = 0;
  CHECK(message_of<sa::ShapeError>([&] { (void)zero(x); }) ==
        "nn::Conv1d: stride [1], dilation [1], kernel_size [3] and 0 groups of a layer of 1 spatial "
        "dimension. "
        "Lists have a number for each, and strides, dilations and groups are at least 1. Correct them.");

  auto heads = nn::MultiheadAttention::init(2, 6, key);
  for (const std::int64_t n : {0, -1, 5}) {
    heads.num_heads = n;
    CHECK(
        message_of<sa::ShapeError>([&] { (void)heads(tokens, tokens, tokens); }) ==
        "nn::MultiheadAttention: " + std::to_string(n) +
            " heads share a projection of size 6. There is one head at least, and the size is a multiple of "
            "them. Correct num_heads.");
  }
  // More than any shape has, not what is left of it when it wraps.
  CHECK_THROWS_AS(nn::MultiheadAttention::init(std::int64_t{1} << 62, 6, key, {.qk_size = 4, .vo_size = 4}),
                  sa::ShapeError);
}

}  // namespace nn_convolution_test
