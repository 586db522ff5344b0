// Rows of op_cases.h: sliding windows.
#include <complex>

#include "op_cases.h"
#include "plain_windows.h"
#include "shardarray/complex.h"
#include "shardarray/image.h"
#include "shardarray/pooling.h"

namespace shardarray::testing {

namespace {

using Operands = std::span<const Array>;

OpCase conv_case(std::string name, PlainConv plain, OpInput x, OpInput kernel) {
  const ConvOptions o{.window_strides = Shape(plain.stride),
                      .padding = plain.padding,
                      .lhs_dilation = Shape(plain.holes),
                      .rhs_dilation = Shape(plain.dilation),
                      .feature_group_count = plain.groups,
                      .batch_group_count = plain.batch_groups};
  return {std::move(name),
          [o](Operands in) { return conv_general_dilated(in[0], in[1], o); },
          [plain](const Hosts& in) { return plain(in[0], in[1]); },
          {std::move(x), std::move(kernel)},
          true,
          2e-6};
}

/// What f makes of the elements of each window over the last dimension of [10, 12], 2 apart, behind one element of padding.
OpCase pool_case(std::string name, std::function<Array(const Array&)> pool, std::int64_t window,
                 std::function<double(const Numbers&)> f, double tolerance) {
  return {std::move(name),
          [pool](Operands in) { return pool(in[0]); },
          [=](const Hosts& in) {
            return build({10, (13 - window) / 2 + 1}, [&](const Shape& i) {
              Numbers inside;
              for (std::int64_t k = 2 * i[1] - 1; k < 2 * i[1] - 1 + window; k++)
                if (k >= 0) inside.push_back(read(in[0], {i[0], k}));
              return f(inside);
            });
          },
          {{{10, 12}, -2, 2, DType::float32, false, true}},
          true,
          tolerance};
}

/// The row of complex numbers x + i y, of a function that is linear over real numbers: it acts on each part.
OpCase of_parts(const OpCase& row) {
  OpCase c = row;
  c.name = "complex " + row.name;
  c.function = [f = row.function](Operands in) {
    const Array z = f(std::vector{complex(in[0], in[1])});
    return real(z) + 0.75 * imag(z);
  };
  c.reference = [f = row.reference](const Hosts& in) {
    Numbers r = f({in[0]});
    const Numbers imaginary = f({in[1]});
    for (std::size_t k = 0; k < r.size(); k++) r[k] += 0.75 * imaginary[k];
    return r;
  };
  c.inputs = {row.inputs[0], row.inputs[0]};
  return c;
}

}  // namespace

Cases conv_cases() {
  Cases c;
  c.push_back(conv_case("conv", {{2, 1}, {1, 1}, {1, 1}, {{1, 0}, {0, 2}}}, {{10, 2, 5, 3}}, {{6, 2, 3, 2}}));
  c.push_back(conv_case("conv of groups", {{1}, {1}, {1}, {{1, 1}}, 3}, {{2, 6, 5}}, {{6, 2, 3}}));
  c.push_back(
      conv_case("conv of groups of images", {{2}, {1}, {1}, {{0, 1}}, 1, 2}, {{4, 3, 6}}, {{4, 3, 3}}));
  c.push_back(conv_case("conv with holes", {{2}, {2}, {3}, {{3, -1}}}, {{2, 3, 6}}, {{4, 3, 3}}));
  c.push_back(conv_case("conv of points", {{}, {}, {}, {}}, {{10, 6}}, {{6, 6}}));
  c.push_back(
      whole_exact(conv_case("conv of integers", {{1, 2}, {1, 1}, {1, 1}, {{1, 1}, {1, 1}}},
                            {{3, 10, 3, 4}, -9, 9, DType::int32}, {{6, 10, 3, 3}, -9, 9, DType::int32})));
  c.push_back({"conv_transpose",
               [](Operands in) { return conv_transpose(in[0], in[1], {.strides = {2}, .padding = "SAME"}); },
               [](const Hosts& in) {
                 const PlainConv plain{{1}, {2}, {1}, {{2, 1}}};
                 const HostArray x = turned(in[0], {0, 2, 1}), kernel = turned(in[1], {2, 1, 0});
                 const HostArray y{plain.result(x.shape, kernel.shape), plain(x, kernel)};
                 return turned(y, {0, 2, 1}).data;
               },
               {{{6, 4, 3}}, {{3, 3, 10}}},
               true,
               2e-6});
  const PoolOptions o{.strides = {2}, .padding = {{1, 0}}};
  const auto most = [](const Numbers& v) { return *std::max_element(v.begin(), v.end()); };
  const auto total = [](const Numbers& v) { return std::accumulate(v.begin(), v.end(), 0.0); };
  c.push_back(pool_case(
      "max_pool", [o](const Array& x) { return max_pool(x, {3}, o); }, 3, most, 0));
  c.push_back(pool_case(
      "min_pool", [o](const Array& x) { return min_pool(x, {2}, o); }, 2,
      [](const Numbers& v) { return *std::min_element(v.begin(), v.end()); }, 0));
  c.push_back(pool_case(
      "sum_pool", [o](const Array& x) { return sum_pool(x, {4}, o); }, 4, total, 2e-6));
  c.push_back(pool_case(
      "avg_pool",
      [](const Array& x) {
        return avg_pool(x, {3}, {.strides = {2}, .padding = {{1, 0}}, .count_padding = false});
      },
      3, [=](const Numbers& v) { return total(v) / static_cast<double>(v.size()); }, 2e-6));
  const auto halves = [](auto f) {
    return [f](const Hosts& in) {
      return build({10, 2}, [&](const Shape& i) {
        Numbers v;
        for (std::int64_t k = i[1] * 3; k < (i[1] == 0 ? 3 : 5); k++) v.push_back(read(in[0], {i[0], k}));
        return f(v);
      });
    };
  };
  const OpInput five{{10, 5}, -2, 2, DType::float32, false, true};
  c.push_back({"adaptive_max_pool",
               [](Operands in) { return adaptive_max_pool(in[0], {2}); },
               halves(most),
               {five},
               true,
               0});
  c.push_back({"adaptive_avg_pool",
               [](Operands in) { return adaptive_avg_pool(in[0], {2}); },
               halves([=](const Numbers& v) { return total(v) / static_cast<double>(v.size()); }),
               {five},
               true,
               2e-6});
  c.push_back({"resize",
               [](Operands in) {
                 return resize(in[0], {10, 12}, ResizeMethod::linear);
               },
               [](const Hosts& in) {
                 return build({10, 12}, [&](const Shape& i) {
                   const double at = (static_cast<double>(i[1]) + 0.5) / 2 - 0.5;
                   const auto low = static_cast<std::int64_t>(std::floor(at));
                   const double part = at - static_cast<double>(low);
                   const auto value = [&](std::int64_t k) {
                     return read(in[0], {i[0], std::clamp<std::int64_t>(k, 0, 5)});
                   };
                   return (1 - part) * value(low) + part * value(low + 1);
                 });
               },
               {{{10, 6}}},
               true,
               2e-6});
  c.push_back(whole_exact(
      {"resize to the nearest",
       [](Operands in) {
         return resize(in[0], {4, 6}, ResizeMethod::nearest);
       },
       [](const Hosts& in) {
         return build({4, 6}, [&](const Shape& i) { return read(in[0], {(2 * i[0] + 1) * 10 / 8, i[1]}); });
       },
       {{{10, 6}, -9, 9, DType::int32}}}));
  Cases complex_rows;
  for (const OpCase& row : c)
    for (const char* name : {"sum_pool", "avg_pool", "adaptive_avg_pool", "resize"})
      if (row.name == name) complex_rows.push_back(of_parts(row));
  c.insert(c.end(), complex_rows.begin(), complex_rows.end());
  c.push_back({"complex max_pool",
               [](Operands in) {
                 const Array z = max_pool(complex(in[0], in[1]), {3});
                 return real(z) + 0.75 * imag(z);
               },
               [](const Hosts& in) {
                 return build({10, 10}, [&](const Shape& i) {
                   std::pair<double, double> greatest(-HUGE_VAL, 0);
                   for (std::int64_t k = i[1]; k < i[1] + 3; k++)
                     greatest = std::max(greatest, {read(in[0], {i[0], k}), read(in[1], {i[0], k})});
                   return greatest.first + 0.75 * greatest.second;
                 });
               },
               {{{10, 12}, -2, 2, DType::float32, false, true}, {{10, 12}}},
               true,
               1e-6});
  return c;
}

}  // namespace shardarray::testing
