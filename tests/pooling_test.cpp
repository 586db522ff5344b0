// Pooling and resizing: JAX's values and gradients (windows.json) under any sharding; NaN, long windows, messages.
#include <cmath>
#include <complex>
#include <limits>

#include "golden.h"
#include "messages.h"
#include "program_of.h"
#include "shardarray/image.h"
#include "shardarray/pooling.h"

namespace pooling_test {

namespace sa = shardarray;
using namespace program_test;
using golden::Json;
using Values = std::vector<double>;
using shardarray::testing::message_of;

namespace {

sa::Padding padding_of(const Json& j) {
  if (j.is_string()) return j.get<std::string>();
  return j.get<std::vector<std::pair<std::int64_t, std::int64_t>>>();
}

std::vector<sa::Sharding> placements(std::size_t rank) {
  std::vector<sa::Sharding> r{on_xy(P())};
  for (std::size_t d = 0; d < rank; d++) {
    std::vector<sa::SpecEntry> entries(rank, sa::none);
    entries[d] = "x";
    if (rank > 1) entries[(d + 1) % rank] = "y";
    r.push_back(on_xy(P(entries)));
  }
  return r;
}

template <class F> void check_case(const Json& c, double tolerance, const F& f) {
  const Array plain = golden::array(c["inputs"][0]);
  for (const sa::Sharding& s : placements(static_cast<std::size_t>(plain.ndim()))) {
    CAPTURE(s.to_string());
    const Array x = sa::device_put(plain, s);
    CHECK(golden::close(sa::jit(f)(x), c["y"], tolerance, tolerance));
    if (!c.contains("gradients")) continue;
    const Array w = golden::array(c["weights"]);
    const auto loss = [&](const Array& v) { return sa::sum(f(v) * w); };
    CHECK(golden::close(sa::jit(sa::grad(loss))(x), c["gradients"][0], tolerance, tolerance));
  }
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("pooling: JAX's values and gradients, whatever is cut") {
  const Json all = golden::load("windows.json");
  for (const Json& c : all["pools"]) {
    const std::string name = c["name"];
    CAPTURE(c["window"].dump());
    CAPTURE(name);
    const Shape window = golden::shape_of(c["window"]);
    const sa::PoolOptions o{.strides = golden::shape_of(c["strides"]),
                            .padding = padding_of(c["padding"]),
                            .dilation = golden::shape_of(c["dilation"])};
    check_case(c, name == "sum" ? 1e-6 : 0, [&](const Array& x) {
      return name == "max"   ? sa::max_pool(x, window, o)
             : name == "min" ? sa::min_pool(x, window, o)
                             : sa::sum_pool(x, window, o);
    });
  }
}

TEST_CASE("resize: JAX's values and gradients, whatever is cut") {
  const Json all = golden::load("windows.json");
  for (const Json& c : all["resizes"]) {
    const std::string name = c["method"];
    const auto method = name == "nearest"    ? sa::ResizeMethod::nearest
                        : name == "linear"   ? sa::ResizeMethod::linear
                        : name == "cubic"    ? sa::ResizeMethod::cubic
                        : name == "lanczos3" ? sa::ResizeMethod::lanczos3
                                             : sa::ResizeMethod::lanczos5;
    CAPTURE(name);
    CAPTURE(c["to"].dump());
    const Shape to = golden::shape_of(c["to"]);
    const bool antialias = c["antialias"];
    check_case(c, method == sa::ResizeMethod::nearest ? 1e-6 : 2e-5,
               [&](const Array& x) { return sa::resize(x, to, method, antialias); });
  }
}

TEST_CASE("pooling: NaN is kept, of equal ones the first counts, padding is neither") {
  const Array x = sa::array({1, nan, 3, 2, -inf, -inf});
  CHECK(golden::close(values(sa::max_pool(x, {2})), Values{nan, nan, 3, 2, -inf}, 0));
  CHECK(golden::close(values(sa::min_pool(x, {2})), Values{nan, nan, 2, -inf, -inf}, 0));
  CHECK(values(sa::max_pool(sa::array({-5, -7}), {2}, {.padding = 1})) == Values{-5, -5, -7});
  CHECK(values(sa::max_pool(sa::array({-128, -128}, sa::int8), {2}, {.padding = 1})) ==
        Values{-128, -128, -128});
  const auto gradient = [](const Array& v) {
    return sa::grad([](const Array& a) { return sa::sum(sa::max_pool(a, {3})); })(v);
  };
  CHECK(values(gradient(sa::array({2., 2., 1., 2., 2.}))) == Values{1, 1, 0, 1, 0});
}

TEST_CASE("pooling: complex numbers by their real parts, then by the imaginary ones; NaN in either is kept") {
  using Number = std::complex<double>;
  using Numbers = std::vector<Number>;
  const auto numbers = [](const Array& z) { return z.to_vector<Number>(); };
  const Array z = sa::array({Number(2, -1), Number(2, 1), Number(1, 5), Number(1, -5)});
  CHECK(numbers(sa::max_pool(z, {2})) == Numbers{{2, 1}, {2, 1}, {1, 5}});
  CHECK(numbers(sa::min_pool(z, {2})) == Numbers{{2, -1}, {1, 5}, {1, -5}});
  CHECK(numbers(sa::max_pool(z, {2}, {.padding = 1}))[0] == Number(2, -1));
  CHECK(numbers(sa::avg_pool(z, {2}, {.padding = 1, .count_padding = false})) ==
        Numbers{{2, -1}, {2, 0}, {1.5, 3}, {1, 0}, {1, -5}});
  CHECK(numbers(sa::adaptive_max_pool(z, {2})) == Numbers{{2, 1}, {1, 5}});
  for (const Number lost : {Number(nan, 0), Number(0, nan), Number(9, nan)})
    for (const bool is_first : {true, false}) {
      CAPTURE(lost);
      const Array both = is_first ? sa::array({lost, Number(1, 2)}) : sa::array({Number(1, 2), lost});
      CHECK(sa::isnan(sa::max_pool(both, {2})).item<bool>());
      CHECK(sa::isnan(sa::min_pool(both, {2})).item<bool>());
    }
}

TEST_CASE("pooling: means count padding or not; integers wrap or become floats") {
  const Array x = sa::array({2., 4., 6.});
  CHECK(values(sa::avg_pool(x, {2}, {.padding = 1})) == Values{1, 3, 5, 3});
  CHECK(values(sa::avg_pool(x, {2}, {.padding = 1, .count_padding = false})) == Values{2, 3, 5, 6});
  CHECK(values(sa::avg_pool(sa::array({1, 2}), {2})) == Values{1.5});
  CHECK(values(sa::sum_pool(sa::array({100, 100}, sa::int8), {2})) == Values{-56});
  CHECK(sa::avg_pool(sa::ones({4}, sa::bfloat16), {2}).dtype() == sa::bfloat16);
  CHECK(sa::max_pool(sa::ones({4}, sa::float16), {5}).shape() == Shape{0});
}

TEST_CASE("pooling: long windows, with strides and dilation, as short ones") {
  const Array x = sa::astype(sa::arange(200) * 37 % 101, sa::float32);
  const Values v = values(x);
  for (const std::int64_t window : {16, 17, 31, 64, 100})
    for (const std::int64_t stride : {1, 3})
      for (const std::int64_t dilation : {1, 2}) {
        Values most, sums;
        for (std::int64_t i = 0; i + (window - 1) * dilation < 200; i += stride) {
          double m = -inf, s = 0;
          for (std::int64_t k = 0; k < window; k++) {
            m = std::max(m, v[static_cast<std::size_t>(i + k * dilation)]);
            s += v[static_cast<std::size_t>(i + k * dilation)];
          }
          most.push_back(m);
          sums.push_back(s);
        }
        const sa::PoolOptions o{.strides = {stride}, .dilation = {dilation}};
        CHECK(values(sa::max_pool(x, {window}, o)) == most);
        CHECK(values(sa::sum_pool(x, {window}, o)) == sums);
      }
}

TEST_CASE("pooling: what does not fit says what and how") {
  const Array x = sa::ones({2, 8});
  const auto said = [](const auto& f) { return message_of<sa::Error>([&] { (void)f(); }); };
  CHECK(said([] {
          return sa::nn::MaxPool2d{}(sa::ones({1, 4, 4}));
        }) ==
        "nn::MaxPool2d: kernel_size is empty. It is a number for each of 2 spatial dimensions, or one for "
        "all. Give it.");
  CHECK(said([&] {
          return sa::max_pool(x, {1, 2, 3});
        }) ==
        "max_pool: a window [1,2,3] over f32[2,8]. It has a size of 1 or more for each of the last "
        "dimensions, which may be all. Correct the "
        "window.");
  CHECK(said([&] { return sa::sum_pool(x, {0}); }) ==
        "sum_pool: a window [0] over f32[2,8]. It has a size of 1 or more for each of the last dimensions, "
        "which may be all. Correct the "
        "window.");
  CHECK(said([&] { return sa::min_pool(sa::astype(x, sa::bool_), {2}); }) ==
        "min_pool: the operand is bool[2,8]. It takes numbers. Cast with astype.");
  CHECK(said([&] { return sa::avg_pool(x, {2}, {.strides = {0}}); }) ==
        "avg_pool: strides [0]. They are 1 or more. Correct them.");
  CHECK(said([&] { return sa::adaptive_max_pool(x, {9}); }) ==
        "adaptive_max_pool: f32[2,8] to [9]. Each of the last dimensions gets a size from 1 to its own. "
        "Correct the shape.");
  CHECK(said([&] { return sa::adaptive_avg_pool(x, {0}); }) ==
        "adaptive_avg_pool: f32[2,8] to [0]. Each of the last dimensions gets a size from 1 to its own. "
        "Correct the shape.");
  CHECK(said([&] { return sa::resize(x, {4}, sa::ResizeMethod::linear); }) ==
        "resize: f32[2,8] to [4]. There is a size for each dimension, not negative, and 0 where there is "
        "nothing. Give all sizes.");
  CHECK(said([&] {
          return sa::resize(sa::astype(x, sa::bool_), {2, 4}, sa::ResizeMethod::cubic);
        }) == "resize: the operand is bool[2,8]. It takes numbers. Cast with astype.");
  CHECK(sa::resize(sa::astype(x, sa::int32), {2, 4}, sa::ResizeMethod::nearest).dtype() == sa::int32);
  CHECK(sa::resize(x, {2, 0}, sa::ResizeMethod::linear).shape() == Shape{2, 0});
}

}  // namespace pooling_test
