// Values of large products of floats on whichever CUDA device there is, beside float64 on the CPU. The kit runs this on a GPU, where
// they are cuBLASLt's, and the cases below do on the fake one.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cuda_fake.h"
#include "platform_programs.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace cuda_product_values_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using sa::Shape;
using sa::testing::fake_control;
using sa::testing::text_on_fake;

namespace {

/// What is rounded, relatively, at most.
struct Precision {
  const char* name;
  sa::DType dtype;
  bool tf32;
  double operand;  ///< where it is read; tensor cores may cut TF32's digits off
  double sum;      ///< an addition, whose digits tensor cores may cut off
  double result;   ///< of a product, and of every operation behind it
};
constexpr Precision precisions[] = {{"float32", sa::float32, false, 0, 0x1p-24, 0x1p-24},
                                    {"TF32", sa::float32, true, 0x1p-10, 0x1p-23, 0x1p-24},
                                    {"float64", sa::float64, false, 0, 0x1p-52, 0x1p-53},
                                    {"float16", sa::float16, false, 0, 0x1p-23, 0x1p-11},
                                    {"bfloat16", sa::bfloat16, false, 0, 0x1p-23, 0x1p-8}};

sa::Device cpu() { return sa::devices("cpu")[0]; }

/// Numbers of random signs in a precision, on the CPU; in the last rows NaNs and infinities if asked for.
Array operand(const Precision& p, const Shape& shape, int seed, bool special) {
  const sa::default_device here(cpu());
  const sa::DType drawn = p.dtype == sa::float64 ? sa::float64 : sa::float32;
  Array x = sa::random::uniform(sa::random::key(static_cast<std::uint64_t>(seed)), shape, drawn, -1, 1);
  if (special) {
    constexpr double inf = std::numeric_limits<double>::infinity(),
                     nan = std::numeric_limits<double>::quiet_NaN();
    const auto count = static_cast<double>(x.size());
    const Array place = sa::reshape(sa::arange(count), shape) - (count - 100);
    x = sa::where(place == 7, inf, sa::where(place == 33, -inf, sa::where(place == 90, nan, x)));
    x = sa::where(place == 3, 0, x);
  }
  return sa::block_until_ready(x.astype(p.dtype));
}

/// A product in float64, and how far it may be off.
struct Wanted {
  Array value, error;
};
using Product = std::function<Array(const Array&, const Array&)>;

/// Each operand and each partial sum is rounded. Of k terms of random signs and the root of the sum of their squares s, partial sums
/// are about s: errors of either sign add up like the root of k, cut digits like k, or less where several terms are added at once.
Wanted wanted(const Precision& p, const Product& product, const Array& a, const Array& b, std::int64_t k) {
  const sa::default_device here(cpu());
  const Array x = a.astype(sa::float64), y = b.astype(sa::float64), value = product(x, y),
              spread = sa::sqrt(product(sa::square(x), sa::square(y)));
  const auto terms = static_cast<double>(k);
  const double of_spread = 8 * p.operand + p.sum * (8 * std::sqrt(terms) + terms / 4);
  return {sa::block_until_ready(value),
          sa::block_until_ready(spread * of_spread + sa::abs(value) * (2 * p.operand + p.result))};
}

/// The largest error as a part of what is allowed; infinite where NaNs or infinities are not those of `want`.
double worst_error(const Array& result, const Wanted& want) {
  const sa::default_device here(cpu());
  const Array got = sa::device_put(result, cpu()).astype(sa::float64);
  const Array finite = sa::isfinite(want.value);
  const Array same = sa::where(sa::isnan(want.value), sa::isnan(got), got == want.value);
  if (!sa::all(sa::where(finite, sa::isfinite(got), same)).item<bool>())
    return std::numeric_limits<double>::infinity();
  return sa::max(sa::where(finite, sa::abs(got - want.value) / want.error, 0)).item<double>();
}

void check(const char* what, const Precision& p, const Array& result, const Wanted& want) {
  CHECK(result.dtype() == p.dtype);
  const double worst = worst_error(result, want);
  CHECK_MESSAGE(worst <= 1, p.name << ", " << what << ": " << worst);
  std::printf("%s, %s: %.2g of what it may be off\n", p.name, what, worst);
}

struct Case {
  const char* name;
  Shape a, b;
  std::int64_t k;
  P a_cut, b_cut;  ///< over the devices, where there are eight
  Product product;
};
Array multiplied(const Array& a, const Array& b) { return sa::matmul(a, b); }
/// Its library multiplies by plain loops.
bool on_fake_gpu() { return sa::devices("cuda")[0].kind == "fake GPU"; }

std::vector<Case> cases() {
  constexpr std::int64_t m = 96, k = 208, n = 80;
  const std::int64_t very_deep =
      on_fake_gpu() ? 5000 : 1 << 18;  // tried in parts of the depth, one and eight
  const auto first_turned = [](const Array& a, const Array& b) { return sa::matmul(sa::transpose(a), b); };
  const auto turned = [](const Array& a, const Array& b) {
    return sa::matmul(sa::transpose(a), sa::transpose(b));
  };
  return {{"one", {m, k}, {k, n}, k, P(), P(), multiplied},
          {"transposed", {k, m}, {n, k}, k, P(), P(), turned},
          {"merged", {3, m, k}, {k, n}, k, P(), P(), multiplied},
          {"strided", {3, m, k}, {3, k, n}, k, P(), P(), multiplied},
          {"of odd sizes", {97, 211}, {211, 83}, 211, P(), P(), multiplied},
          {"deep", {8, 5000}, {5000, 8}, 5000, P(), P(), multiplied},
          {"very deep", {very_deep, 8}, {very_deep, 12}, very_deep, P(), P(), first_turned},
          {"very deep, cut",
           {very_deep, 8},
           {very_deep, 12},
           very_deep,
           P(sa::axes("x", "y")),
           P(sa::axes("x", "y")),
           first_turned},
          {"rows and columns cut", {4 * m, k}, {k, 2 * n}, k, P("x"), P(sa::none, "y"), multiplied},
          {"batches and columns cut", {8, m, k}, {8, k, 2 * n}, k, P("x"), P("x", sa::none, "y"), multiplied},
          {"depth cut", {4 * m, 2 * k}, {2 * k, n}, 2 * k, P("x", "y"), P("y"), multiplied}};
}

Array placed(const Array& x, const P& cut) {
  return sa::devices("cuda").size() < 8 ? sa::device_put(x, sa::devices("cuda")[0])
                                        : platform_test::put(x, "cuda", cut);
}

struct Layer {
  const char* name;
  bool bias, relu;
  Array of(const Array& product, const Array& b) const {
    const Array x = bias ? product + b : product;
    return relu ? sa::relu(x) : x;
  }
};
Wanted wanted(const Precision& p, const Layer& layer, const Wanted& product, const Array& bias) {
  const sa::default_device here(cpu());
  const Array b = bias.astype(sa::float64), sum = layer.bias ? product.value + b : product.value;
  return {sa::block_until_ready(layer.of(product.value, b)),
          sa::block_until_ready(product.error + sa::abs(sum) * p.result)};
}
constexpr Layer layers[] = {{"bias", true, false}, {"relu", false, true}, {"bias and relu", true, true}};

void check_products() {
  for (const Precision& p : precisions)
    for (const Case& c : cases()) {
      const Array a = operand(p, c.a, 1, true), b = operand(p, c.b, 2, true);
      const Wanted want = wanted(p, c.product, a, b, c.k);
      const auto f = sa::jit([&](const Array& x, const Array& y) {
        const sa::tf32 on(p.tf32);
        return c.product(x, y);
      });
      check(c.name, p, f(placed(a, c.a_cut), placed(b, c.b_cut)), want);
    }
}

// Large enough that the library is asked for both at once, where that is the faster way.
void check_layers() {
  const bool fake = on_fake_gpu();
  const std::int64_t m = fake ? 96 : 1024, k = fake ? 208 : 768, n = fake ? 80 : 1024;
  for (const Precision& p : precisions) {
    const Array a = operand(p, {m, k}, 1, true), b = operand(p, {k, n}, 2, true),
                bias = operand(p, {n}, 3, false);
    const Wanted product = wanted(p, multiplied, a, b, k);
    const Array x = placed(a, P()), y = placed(b, P()), z = placed(bias, P());
    for (const Layer& layer : layers) {
      const Wanted want = wanted(p, layer, product, bias);
      const auto f = sa::jit([&](const Array& v, const Array& w, const Array& r) {
        const sa::tf32 on(p.tf32);
        return layer.of(sa::matmul(v, w), r);
      });
      for (int run = 0; run < 4; run++) check(layer.name, p, f(x, y, z), want);  // tried, known, as a graph
    }
  }
}

}  // namespace

TEST_CASE("cuda process: values of products" * doctest::skip()) { check_products(); }
TEST_CASE("cuda process: values of layers" * doctest::skip()) { check_layers(); }

// What the fake library was asked for.
TEST_CASE("cuda process: counted values of products" * doctest::skip()) {
  check_products();
  for (const int kind : {0, 1, 2}) CHECK(fake_control().products(kind) > 0);
}
TEST_CASE("cuda process: counted values of layers" * doctest::skip()) {
  check_layers();
  CHECK(fake_control().products(3) > 0);
}

TEST_CASE("cuda product values: what is off is found") {
  const sa::default_device here(cpu());
  const Precision &single = precisions[0], &half = precisions[3];
  const Array a = operand(single, {16, 300}, 1, true), b = operand(single, {300, 16}, 2, true);
  const Wanted want = wanted(single, multiplied, a, b, 300), roughly = wanted(half, multiplied, a, b, 300);
  const Array right = sa::matmul(a, b);
  CHECK(worst_error(right, want) <= 1);
  CHECK(sa::sum(sa::isnan(right)).item<int>() > 0);
  CHECK(sa::sum(sa::isinf(right)).item<int>() > 0);
  CHECK(sa::sum(sa::isfinite(right)).item<int>() > 100);
  CHECK(std::isinf(worst_error(sa::where(sa::isnan(right), 0, right), want)));
  CHECK(std::isinf(worst_error(sa::where(sa::isinf(right), -right, right), want)));
  CHECK(std::isinf(worst_error(right.at({0, 1}).set(std::nan("")), want)));
  CHECK(worst_error(right.at({0, 1}).add(0.01), want) > 1);
  // Operands of fewer digits are more than a float32 product may be off.
  const auto cut = [](const Array& x) { return x.astype(sa::float16).astype(sa::float32); };
  const Array coarse = sa::matmul(cut(a), cut(b));
  CHECK(worst_error(coarse, want) > 1);
  CHECK(worst_error(right.astype(sa::float16), roughly) <= 1);
}

TEST_CASE(
    "cuda product values: every float, merged, strided, by addresses and with epilogues, beside float64" *
    doctest::skip(!shardarray::testing::full_scale())) {
  const std::string settings =
      "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CODEGEN=off SHARDARRAY_CACHE_DIR= SHARDARRAY_FAKE_CUBLASLT=1 ";
  text_on_fake("cuda process: counted values of products", settings + "SHARDARRAY_CUDA_LOGICAL_DEVICES=8");
  text_on_fake("cuda process: counted values of layers",
               settings + "SHARDARRAY_FAKE_GUESSED_PRODUCTS=1 SHARDARRAY_FAKE_EPILOGUES=fast");
}

}  // namespace cuda_product_values_test
