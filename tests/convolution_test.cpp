// Convolutions: JAX's values and gradients (windows.json) under any sharding; long sums, empty results, transfers, messages.
#include <cmath>
#include <limits>

#include "golden.h"
#include "messages.h"
#include "program_of.h"
#include "shardarray/convolution.h"
#include "shardarray/policy.h"
#include "shardarray/reproducible.h"

namespace convolution_test {

namespace sa = shardarray;
using namespace program_test;
using golden::Json;
using Arrays = std::vector<Array>;
using Values = std::vector<double>;

namespace {

sa::Padding padding_of(const Json& j) {
  if (j.is_string()) return j.get<std::string>();
  return j.get<std::vector<std::pair<std::int64_t, std::int64_t>>>();
}
sa::ConvOptions options_of(const Json& c) {
  const Json& n = c["dimension_numbers"];
  return {.window_strides = golden::shape_of(c["strides"]),
          .padding = padding_of(c["padding"]),
          .lhs_dilation = golden::shape_of(c["lhs_dilation"]),
          .rhs_dilation = golden::shape_of(c["rhs_dilation"]),
          .dimension_numbers = {n[0].get<std::string>(), n[1].get<std::string>(), n[2].get<std::string>()},
          .feature_group_count = c["groups"].get<std::int64_t>(),
          .batch_group_count = c["batch_groups"].get<std::int64_t>()};
}

/// Both operands with their dimensions cut in turns.
std::vector<std::pair<sa::Sharding, sa::Sharding>> placements(std::size_t rank) {
  std::vector<std::pair<sa::Sharding, sa::Sharding>> r{{on_xy(P()), on_xy(P())}};
  for (std::size_t d = 0; d < rank; d++) {
    std::vector<sa::SpecEntry> first(rank, sa::none), second(rank, sa::none);
    first[d] = "x";
    first[(d + 1) % rank] = "y";
    second[(d + 1) % rank] = "x";
    r.emplace_back(on_xy(P(first)), on_xy(P(second)));
  }
  return r;
}

template <class F> void check_case(const Json& c, const F& f) {
  const Array w = golden::array(c["weights"]);
  const Array plain[] = {golden::array(c["inputs"][0]), golden::array(c["inputs"][1])};
  const auto loss = [&](const Array& x, const Array& k) { return sa::sum(f(x, k) * w); };
  for (const auto& place : placements(static_cast<std::size_t>(plain[0].ndim()))) {
    CAPTURE(place.first.to_string());
    CAPTURE(place.second.to_string());
    const Array x = sa::device_put(plain[0], place.first), k = sa::device_put(plain[1], place.second);
    CHECK(golden::close(sa::jit(f)(x, k), c["y"], 1e-5, 1e-5));
    const auto gradients = sa::jit(sa::grad(loss, {.argnums = {0, 1}}))(x, k);
    CHECK(golden::close(std::get<0>(gradients), c["gradients"][0], 1e-5, 1e-5));
    CHECK(golden::close(std::get<1>(gradients), c["gradients"][1], 1e-5, 1e-4));
  }
}

}  // namespace

TEST_CASE("conv: JAX's values and gradients, whatever is cut") {
  const Json all = golden::load("windows.json");
  for (const Json& c : all["convs"]) {
    CAPTURE(c["inputs"][0]["shape"].dump());
    CAPTURE(c["padding"].dump());
    const sa::ConvOptions o = options_of(c);
    check_case(c, [&](const Array& x, const Array& k) { return sa::conv_general_dilated(x, k, o); });
  }
}

TEST_CASE("conv_transpose: JAX's values and gradients, whatever is cut") {
  const Json all = golden::load("windows.json");
  for (const Json& c : all["transposes"]) {
    CAPTURE(c["padding"].dump());
    const sa::ConvTransposeOptions o{.strides = golden::shape_of(c["strides"]),
                                     .padding = padding_of(c["padding"]),
                                     .rhs_dilation = golden::shape_of(c["rhs_dilation"]),
                                     .transpose_kernel = c["transpose_kernel"].get<bool>(),
                                     .use_consistent_padding = c["use_consistent_padding"].get<bool>()};
    check_case(c, [&](const Array& x, const Array& k) { return sa::conv_transpose(x, k, o); });
  }
}

TEST_CASE("conv: integers wrap, 16-bit floats are rounded once, as in JAX") {
  const Json all = golden::load("windows.json");
  for (const Json& c : all["integer_convs"]) {
    const Array y = sa::conv(golden::array(c["inputs"][0]), golden::array(c["inputs"][1]), {2}, "same");
    CAPTURE(c["y"]["dtype"].dump());
    CHECK(golden::same_bits(y, c["y"]));
  }
  const Array x = sa::ones({1, 1, 3}, sa::int8);
  CHECK(sa::conv(x, sa::ones({1, 1, 2})).dtype() == sa::float32);
  CHECK(sa::conv(x, sa::ones({1, 1, 2}, sa::float64)).dtype() == sa::float64);
}

TEST_CASE("conv: windows that do not fit, no channels, no images, and their gradients") {
  const auto gradient = [](const Shape& x, const Shape& k, const sa::Padding& p) {
    const auto loss = [&](const Array& a, const Array& b) { return sa::sum(sa::conv(a, b, {}, p)); };
    return sa::grad(loss, {.argnums = {0, 1}})(sa::ones(x), sa::ones(k));
  };
  CHECK(sa::conv(sa::ones({2, 3, 4}), sa::ones({5, 3, 6})).shape() == Shape{2, 5, 0});
  CHECK(values(std::get<0>(gradient({1, 1, 2}, {1, 1, 3}, "VALID"))) == Values{0, 0});
  CHECK(values(std::get<1>(gradient({1, 1, 2}, {1, 1, 3}, "VALID"))) == Values{0, 0, 0});
  CHECK(values(sa::conv(sa::ones({1, 0, 3}), sa::ones({2, 0, 2}))) == Values{0, 0, 0, 0});
  CHECK(std::get<1>(gradient({1, 0, 3}, {2, 0, 2}, "VALID")).shape() == Shape{2, 0, 2});
  CHECK(sa::conv(sa::ones({0, 1, 3}), sa::ones({2, 1, 2})).shape() == Shape{0, 2, 2});
  CHECK(values(std::get<1>(gradient({0, 1, 3}, {2, 1, 2}, "VALID"))) == Values{0, 0, 0, 0});
  CHECK(values(sa::conv(sa::ones({1, 1, 3}), sa::ones({1, 1, 1}), {}, {{-2, 4}})) == Values{1, 0, 0, 0, 0});
  CHECK(values(sa::conv(sa::ones({1, 1, 3}), sa::ones({1, 1, 1}), {}, {{-5, 4}})) == Values{0, 0});
  // distances that no next one is at
  constexpr std::int64_t far = std::int64_t{1} << 62;
  const sa::ConvOptions o{.window_strides = {far}, .rhs_dilation = {far}};
  CHECK(values(sa::conv_general_dilated(sa::ones({1, 1, 3}), sa::ones({1, 1, 1}), o)) == Values{1});
  CHECK(sa::conv_general_dilated(sa::ones({1, 1, 3}), sa::ones({1, 1, 2}), o).size() == 0);
}

TEST_CASE("conv: long sums are as exact as short ones") {
  // every product rounds: 0.1 has no end in binary
  const Array x = sa::full({1, 1, 100'000}, 0.1), k = sa::full({1, 1, 99'999}, 0.1);
  const double a = static_cast<double>(0.1f);
  for (const double y : values(sa::conv(x, k))) CHECK(std::abs(y / (99'999 * a * a) - 1) < 4e-6);
}

TEST_CASE("conv: what many points and features make is what one makes") {
  // blocks of points, features and chains end at all places
  const Shape sizes[] = {{1, 3, 700}, {2, 5, 31, 23}, {3, 40, 6, 9}, {1, 1500, 5}};
  const Shape kernels[] = {{7, 3, 5}, {130, 5, 3, 4}, {9, 40, 5, 6}, {2, 1500, 2}};
  for (std::size_t k = 0; k < 4; k++) {
    const Array x = numbers(sizes[k]), w = numbers(kernels[k], sa::float32, 1);
    const Values all = values(sa::conv(x, w)),
                 wide = values(sa::conv(sa::astype(x, sa::float64), sa::astype(w, sa::float64))),
                 whole = values(sa::conv(sa::astype(x, sa::int32), sa::astype(w, sa::int32)));
    CHECK(all == wide);
    CHECK(all == whole);
    const Shape strides = Shape::filled(sizes[k].size() - 2, 2);
    CHECK(values(sa::conv(x, w, strides)) ==
          values(sa::conv(sa::astype(x, sa::int32), sa::astype(w, sa::int32), strides)));
  }
}

TEST_CASE("conv: images, channels and groups stay where they are; cut channels leave sums in parts") {
  const auto conv = sa::jit([](const Array& x, const Array& k) { return sa::conv(x, k, {}, "SAME"); });
  Array x = numbers({8, 4, 6, 6}), k = numbers({8, 4, 3, 3}, sa::float32, 1);
  const auto moved = [&](const P& of_array, const P& of_kernel) {
    const Values want = values(sa::conv(x, k, {}, "SAME"));
    const Array a = sa::device_put(x, on_xy(of_array)), b = sa::device_put(k, on_xy(of_kernel));
    CHECK(values(conv(a, b)) == want);
    check_received(conv, a, b);
    return transfers(sa::explain(conv, a, b));
  };
  CHECK(moved(P("x"), P()).empty());
  CHECK(moved(P("x"), P("y")).empty());
  CHECK(moved(P(), P("x")).empty());
  // the result, 9,216 B, is less than the channels of the array; y, which cuts nothing, shares the work
  x = numbers({8, 32, 12, 12}), k = numbers({2, 32, 3, 3}, sa::float32, 1);
  CHECK(moved(P(sa::none, "x"), P(sa::none, "x")) == "all_reduce{x} 6912, all_gather{y} 4608");
}

TEST_CASE("conv: with `reproducible` the bits of one device, whatever is cut") {
  const sa::reproducible on(true);
  const Array x = sa::random::normal(sa::random::key(0), {8, 6, 9}),
              k = sa::random::normal(sa::random::key(1), {4, 6, 3});
  const auto conv = sa::jit([](const Array& a, const Array& b) { return sa::conv(a, b, {2}, 1); });
  const auto want = golden::bits(conv(x, k));
  for (const auto& place : placements(3))
    CHECK(golden::bits(conv(sa::device_put(x, place.first), sa::device_put(k, place.second))) == want);
}

TEST_CASE("conv: what does not fit says what and how") {
  using shardarray::testing::message_of;
  const Array x = sa::ones({2, 4, 8, 8}), k = sa::ones({6, 4, 3, 3});
  const auto said = [&](const sa::ConvOptions& o) {
    return message_of<sa::Error>([&] { (void)sa::conv_general_dilated(x, k, o); });
  };
  const auto refused = [&](const Array& a, const Array& b) {
    return message_of<sa::Error>([&] { (void)sa::conv(a, b); });
  };
  CHECK(refused(x, sa::ones({6, 4, 3})) ==
        "conv: lhs f32[2,4,8,8] and rhs f32[6,4,3]. Both have one rank, which is 2 or more: a batch and "
        "channels beside the spatial "
        "dimensions. Insert the batch with expand_dims.");
  CHECK(refused(sa::astype(x, sa::bool_), k) ==
        "conv: the operand is bool[2,4,8,8]. It takes numbers. Cast with astype.");
  CHECK(refused(x, sa::ones({6, 3, 3, 3})) ==
        "conv: lhs f32[2,4,8,8] and rhs f32[6,3,3,3] with 1 feature groups and 1 batch groups. The 4 "
        "channels of lhs are those of all "
        "feature groups, and the kernel has the 3 of one. Check the dimension numbers and the groups.");
  CHECK(said({.batch_group_count = 4}) ==
        "conv_general_dilated: lhs f32[2,4,8,8] and rhs f32[6,4,3,3] with 1 feature groups and 4 batch "
        "groups. Groups divide the 6 "
        "output channels, batch groups also the batch of 2. Check the dimension numbers and the groups.");
  CHECK(said({.feature_group_count = 0}) ==
        "conv_general_dilated: lhs f32[2,4,8,8] and rhs f32[6,4,3,3] with 0 feature groups and 1 batch "
        "groups. There is 1 group or "
        "more, and one of both numbers is 1. Correct them.");
  CHECK(said({.window_strides = {1, 2, 3}}) ==
        "conv_general_dilated: strides [1,2,3] for 2 spatial dimensions. There is one number for each of "
        "them, or one for all. Add or "
        "remove numbers.");
  CHECK(said({.rhs_dilation = {0}}) ==
        "conv_general_dilated: rhs_dilation [0]. They are 1 or more. Correct them.");
  CHECK(said({.padding = "full"}) ==
        "conv_general_dilated: padding \"full\". The rules are \"VALID\", \"SAME\" and \"SAME_LOWER\". Use "
        "one of them, or give widths.");
  CHECK(said({.padding = {{1, 2}, {3, 4}, {5, 6}}}) ==
        "conv_general_dilated: 3 widths of padding for 2 spatial dimensions. There is one pair for each of "
        "them, or one for all. Add or "
        "remove widths.");
  CHECK(said({.padding = -5}) ==
        "conv_general_dilated: padding -5 and -5 of 8 elements. What is left is not negative, and a size is "
        "at most 2^40. Correct the "
        "widths.");
  CHECK(said({.padding = "SAME", .lhs_dilation = {2}}) ==
        "conv_general_dilated: padding \"SAME\" with lhs_dilation [2]. Rules are those of arrays without "
        "holes. Give widths, or use "
        "conv_transpose.");
  CHECK(said({.dimension_numbers = {.lhs = "NHWC", .rhs = "HWIO", .out = "NHHC"}}) ==
        "conv_general_dilated: dimension numbers \"NHWC\", \"HWIO\", \"NHHC\" of arrays of rank 4. Each has "
        "a letter for every "
        "dimension: N and C (of the kernel O and I), and the same spatial letters, once each. Correct them.");
  CHECK(message_of<sa::Error>([&] { (void)sa::conv_transpose(x, k, {.padding = "same_lower"}); }) ==
        "conv_transpose: padding \"SAME_LOWER\". The rules are \"VALID\" and \"SAME\" here. Give widths.");
}

}  // namespace convolution_test
