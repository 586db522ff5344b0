// Rows of op_cases.h: elementwise functions, reductions, products.
#include "op_cases.h"

namespace shardarray::testing {

inline double inverse_erf(double y) {
  double x = 0;
  for (int k = 0; k < 100; k++) x -= (std::erf(x) - y) / (2 / std::sqrt(M_PI) * std::exp(-x * x));
  return x;
}
template <class F> Numbers running(const Numbers& v, F f) {
  Numbers r(v.size());
  std::partial_sum(v.begin(), v.end(), r.begin(), f);
  return r;
}
inline double floored_rest(double a, double b) { return a - std::floor(a / b) * b; }
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

Cases elementwise_cases() {
  using D = double;
  Cases c;
  c.push_back(binary_case(
      "add", add, [](D a, D b) { return a + b; }, values(-2, 2), values(-2, 2)));
  c.push_back(binary_case(
      "subtract", subtract, [](D a, D b) { return a - b; }, values(-2, 2), values(-2, 2)));
  c.push_back(binary_case(
      "multiply", multiply, [](D a, D b) { return a * b; }, values(-2, 2), values(-2, 2)));
  c.push_back(binary_case(
      "divide", divide, [](D a, D b) { return a / b; }, values(-2, 2), values(0.5, 2)));
  c.push_back(binary_case(
      "maximum", maximum, [](D a, D b) { return std::max(a, b); }, kinked(-2, 2),
      whole(-2, 2, DType::float32)));
  c.back().inputs[1].avoid_integers = false;
  c.push_back(binary_case(
      "minimum", minimum, [](D a, D b) { return std::min(a, b); }, kinked(-2, 2), values(3, 4)));
  c.push_back(binary_case(
      "power", power, [](D a, D b) { return std::pow(a, b); }, values(0.3, 2), values(-2, 2), true, 2e-6));
  c.push_back(binary_case(
      "arctan2", arctan2, [](D a, D b) { return std::atan2(a, b); }, values(0.5, 2), values(-2, 2)));
  c.push_back(binary_case("remainder", remainder, floored_rest, kinked(-3, 3), values(5, 6), true, 1e-6));
  c.push_back(binary_case(
      "floor_divide", floor_divide, [](D a, D b) { return std::floor(a / b); }, values(-20, 20),
      values(0.7, 0.9), false, 0));
  c.push_back(unary_case(
      "power 3", [](const Array& x) { return power(x, 3); }, [](D x) { return x * x * x; }, values(-2, 2)));
  c.push_back(unary_case(
      "power -2", [](const Array& x) { return power(x, -2); }, [](D x) { return 1 / (x * x); },
      values(0.5, 2)));
  c.push_back(unary_case(
      "power 0.5", [](const Array& x) { return power(x, 0.5); }, [](D x) { return std::sqrt(x); },
      values(0.5, 2)));
  c.push_back(unary_case(
      "add number", [](const Array& x) { return x + 1.5; }, [](D x) { return x + 1.5; }, values(-2, 2)));
  c.push_back(unary_case(
      "negative", negative, [](D x) { return -x; }, values(-2, 2)));
  c.push_back(unary_case(
      "abs", abs, [](D x) { return std::abs(x); }, kinked(-2, 2)));
  c.push_back(unary_case(
      "sign", sign, [](D x) { return D(x > 0) - D(x < 0); }, kinked(-2, 2), true, 0));
  c.push_back(unary_case(
      "square", square, [](D x) { return x * x; }, values(-2, 2)));
  c.push_back(unary_case(
      "reciprocal", reciprocal, [](D x) { return 1 / x; }, values(0.5, 2)));
  c.push_back(unary_case(
      "floor", floor, [](D x) { return std::floor(x); }, kinked(-4, 4), true, 0));
  c.push_back(unary_case(
      "ceil", ceil, [](D x) { return std::ceil(x); }, kinked(-4, 4), true, 0));
  c.push_back(unary_case(
      "trunc", trunc, [](D x) { return std::trunc(x); }, kinked(-4, 4), true, 0));
  c.push_back(unary_case(
      "round", [](const Array& x) { return round(x); }, [](D x) { return std::nearbyint(x); }, values(-4, 4),
      false, 0));
  c.push_back(unary_case(
      "clip", [](const Array& x) { return clip(x, -1, 1.0); }, [](D x) { return std::clamp(x, -1.0, 1.0); },
      kinked(-3, 3)));
  c.push_back(unary_case(
      "clamp", [](const Array& x) { return clamp(-1, x, 1); }, [](D x) { return std::clamp(x, -1.0, 1.0); },
      kinked(-3, 3)));
  c.push_back(unary_case(
      "exp", exp, [](D x) { return std::exp(x); }, values(-3, 3)));
  c.push_back(unary_case(
      "expm1", expm1, [](D x) { return std::expm1(x); }, values(-2, 2)));
  c.push_back(unary_case(
      "log", log, [](D x) { return std::log(x); }, values(0.3, 4)));
  c.push_back(unary_case(
      "log1p", log1p, [](D x) { return std::log1p(x); }, values(-0.5, 4)));
  c.push_back(unary_case(
      "sqrt", sqrt, [](D x) { return std::sqrt(x); }, values(0.3, 4)));
  c.push_back(unary_case(
      "rsqrt", rsqrt, [](D x) { return 1 / std::sqrt(x); }, values(0.3, 4)));
  c.push_back(unary_case(
      "sin", sin, [](D x) { return std::sin(x); }, values(-4, 4)));
  c.push_back(unary_case(
      "cos", cos, [](D x) { return std::cos(x); }, values(-4, 4)));
  c.push_back(unary_case(
      "sinc", sinc, [](D x) { return std::sin(std::numbers::pi * x) / (std::numbers::pi * x); },
      values(0.1, 3), true, 1e-6));
  c.push_back(unary_case(
      "tan", tan, [](D x) { return std::tan(x); }, values(-1, 1)));
  c.push_back(unary_case(
      "sinh", sinh, [](D x) { return std::sinh(x); }, values(-2, 2), true, 1e-6));
  c.push_back(unary_case(
      "cosh", cosh, [](D x) { return std::cosh(x); }, values(-2, 2), true, 1e-6));
  c.push_back(unary_case(
      "tanh", tanh, [](D x) { return std::tanh(x); }, values(-3, 3)));
  c.push_back(unary_case(
      "arcsin", arcsin, [](D x) { return std::asin(x); }, values(-0.8, 0.8)));
  c.push_back(unary_case(
      "arccos", arccos, [](D x) { return std::acos(x); }, values(-0.8, 0.8)));
  c.push_back(unary_case(
      "arctan", arctan, [](D x) { return std::atan(x); }, values(-4, 4)));
  c.push_back(unary_case(
      "erf", erf, [](D x) { return std::erf(x); }, values(-2, 2)));
  c.push_back(unary_case(
      "erfc", erfc, [](D x) { return std::erfc(x); }, values(-2, 2)));
  c.push_back(unary_case("erf_inv", erf_inv, inverse_erf, values(-0.8, 0.8), true, 2e-6));
  c.push_back(unary_case("sigmoid", sigmoid, sigmoid_of, values(-4, 4)));
  c.push_back(unary_case(
      "relu", relu, [](D x) { return std::max(x, 0.0); }, kinked(-2, 2)));
  c.push_back(unary_case(
      "silu", silu, [](D x) { return x * sigmoid_of(x); }, values(-4, 4), true, 1e-6));
  c.push_back(unary_case(
      "gelu", [](const Array& x) { return gelu(x); },
      [](D x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
      values(-3, 3), true, 2e-6));
  c.push_back(unary_case(
      "gelu exact", [](const Array& x) { return gelu(x, false); },
      [](D x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, values(-3, 3), true, 1e-6));
  c.push_back({"fma",
               [](std::span<const Array> x) { return fma(x[0], x[1], x[2]); },
               [](const Hosts& x) {
                 return build(x[0].shape,
                              [&](const Shape& i) { return read(x[0], i) * read(x[1], i) + read(x[2], i); });
               },
               {{{10, 6}}, {{10, 6}}, {{10, 6}}}});
  c.push_back({"where",
               [](std::span<const Array> x) { return where(x[0], x[1], x[2]); },
               [](const Hosts& x) {
                 return build({10, 6}, [&](const Shape& i) {
                   return read(x[0], i) != 0 ? read_broadcast(x[1], i) : read(x[2], i);
                 });
               },
               {{{10, 6}, 0, 1, DType::bool_}, {{6}}, {{10, 6}}}});
  return c;
}

Cases logic_cases() {
  using D = double;
  Cases c;
  const OpInput small = whole(-3, 3);
  c.push_back(binary_case(
      "equal", equal, [](D a, D b) { return D(a == b); }, small, small));
  c.push_back(binary_case(
      "not_equal", not_equal, [](D a, D b) { return D(a != b); }, small, small));
  c.push_back(binary_case(
      "less", less, [](D a, D b) { return D(a < b); }, small, small));
  c.push_back(binary_case(
      "less_equal", less_equal, [](D a, D b) { return D(a <= b); }, small, small));
  c.push_back(binary_case(
      "greater", greater, [](D a, D b) { return D(a > b); }, small, small));
  c.push_back(binary_case(
      "greater_equal", greater_equal, [](D a, D b) { return D(a >= b); }, small, small));
  c.push_back(binary_case(
      "logical_and", logical_and, [](D a, D b) { return D(a != 0 && b != 0); }, small, truth()));
  c.push_back(binary_case(
      "logical_or", logical_or, [](D a, D b) { return D(a != 0 || b != 0); }, small, truth()));
  c.push_back(binary_case(
      "logical_xor", logical_xor, [](D a, D b) { return D((a != 0) != (b != 0)); }, small, truth()));
  c.push_back(unary_case(
      "logical_not", logical_not, [](D a) { return D(a == 0); }, small));
  using I = std::int32_t;
  c.push_back(binary_case(
      "bitwise_and", bitwise_and, [](D a, D b) { return D(I(a) & I(b)); }, whole(-99, 99), whole(-99, 99)));
  c.push_back(binary_case(
      "bitwise_or", bitwise_or, [](D a, D b) { return D(I(a) | I(b)); }, whole(-99, 99), whole(-99, 99)));
  c.push_back(binary_case(
      "bitwise_xor", bitwise_xor, [](D a, D b) { return D(I(a) ^ I(b)); }, whole(-99, 99), whole(-99, 99)));
  c.push_back(unary_case(
      "bitwise_not", bitwise_not, [](D a) { return D(~I(a)); }, whole(-99, 99)));
  c.push_back(binary_case(
      "left_shift", left_shift, [](D a, D b) { return b > 31 ? 0 : D(I(std::uint32_t(I(a)) << I(b))); },
      whole(-99, 99), whole(0, 40)));
  c.push_back(binary_case(
      "right_shift", right_shift, [](D a, D b) { return D(I(a) >> std::min(I(b), 31)); }, whole(-99, 99),
      whole(0, 40)));
  // integers: x / 0 is -1, x % 0 is x
  c.push_back(binary_case(
      "floor_divide int", floor_divide, [](D a, D b) { return b == 0 ? -1 : std::floor(a / b); },
      whole(-9, 9), small));
  c.push_back(binary_case(
      "remainder int", remainder, [](D a, D b) { return b == 0 ? a : floored_rest(a, b); }, whole(-9, 9),
      small));
  c.push_back(binary_case(
      "floor_divide unsigned", floor_divide, [](D a, D b) { return std::floor(a / b); },
      whole(0, 99, DType::uint8), whole(1, 9, DType::uint8)));
  c.push_back(binary_case(
      "power int", power, [](D a, D b) { return std::pow(a, b); }, small, whole(0, 5)));
  c.push_back(binary_case(
      "add bool", add, [](D a, D b) { return D(a != 0 || b != 0); }, truth(), truth()));
  c.push_back(binary_case(
      "multiply bool", multiply, [](D a, D b) { return a * b; }, truth(), truth()));
  c.push_back(binary_case(
      "maximum int", maximum, [](D a, D b) { return std::max(a, b); }, small, small));
  c.push_back(binary_case(
      "add int8 wraps", add, [](D a, D b) { return D(std::int8_t(std::int32_t(a + b))); },
      whole(90, 127, DType::int8), whole(90, 127, DType::int8)));
  c.push_back(unary_case(
      "isnan", [](const Array& x) { return isnan(sqrt(x)); }, [](D x) { return D(x < 0); }, kinked(-2, 2)));
  c.push_back(unary_case(
      "isinf", [](const Array& x) { return isinf(1.0 / floor(x)); },
      [](D x) { return D(std::floor(x) == 0); }, kinked(-2, 2)));
  c.push_back(unary_case(
      "isfinite", [](const Array& x) { return isfinite(log(x)); }, [](D x) { return D(x > 0); },
      kinked(-2, 2)));
  c.push_back(unary_case(
      "astype int", [](const Array& x) { return astype(x, DType::int32); }, [](D x) { return std::trunc(x); },
      values(-9, 9)));
  c.push_back(unary_case(
      "bitcast", [](const Array& x) { return bitcast(x, DType::int32); },
      [](D x) { return D(std::bit_cast<std::int32_t>(float(x))); }, values(-2, 2)));
  for (OpCase& row : c) row = whole_exact(std::move(row));
  c.push_back(unary_case(
      "astype float", [](const Array& x) { return astype(x, DType::float64) * 2.0; },
      [](D x) { return 2 * x; }, values(-9, 9), true, 0));
  return c;
}

// ---------------------------------------------------------------- reductions
inline double total(const Numbers& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
inline double average(const Numbers& v) { return total(v) / static_cast<double>(v.size()); }
inline double spread(const Numbers& v) {
  double s = 0;
  for (double x : v) s += (x - average(v)) * (x - average(v));
  return s / static_cast<double>(v.size());
}
inline double log_sum_exp(const Numbers& v) {
  double s = 0;
  for (double x : v) s += std::exp(x);
  return std::log(s);
}
inline double product_of(const Numbers& v) {
  return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
}

template <class F>
OpCase reduce_case(std::string name, F f, double (*combine)(const Numbers&), std::vector<std::size_t> axes,
                   OpInput in, bool differentiable = true, double tolerance = 1e-6) {
  in.shape = {4, 10, 6};
  return {std::move(name),
          [f](std::span<const Array> x) { return f(x[0]); },
          [combine, axes](const Hosts& x) { return fold(x[0], axes, combine); },
          {in},
          differentiable,
          tolerance};
}

Cases reduce_cases() {
  using A = const Array&;
  const OpInput x = values(-2, 2), distinct{{}, -2, 2, DType::float32, false, true};
  Cases c;
  c.push_back(reduce_case(
      "sum", [](A a) { return sum(a); }, total, {0, 1, 2}, x, true, 1e-5));
  c.push_back(reduce_case(
      "sum 1", [](A a) { return sum(a, 1); }, total, {1}, x));
  c.push_back(reduce_case(
      "sum 0 -1 kept",
      [](A a) {
        return sum(a, {.axis = {0, -1}, .keepdims = true});
      },
      total, {0, 2}, x, true, 5e-6));
  c.push_back(reduce_case(
      "sum int", [](A a) { return sum(a, -1); }, total, {2}, whole(-9, 9), false, 0));
  c.push_back(reduce_case(
      "sum int8", [](A a) { return sum(a, 1); }, total, {1}, whole(-100, 100, DType::int8), false, 0));
  c.push_back(reduce_case(
      "sum bool", [](A a) { return sum(a, 0); }, total, {0}, truth(), false, 0));
  c.push_back(reduce_case(
      "mean", [](A a) { return mean(a, 1); }, average, {1}, x));
  c.push_back(reduce_case(
      "mean int", [](A a) { return mean(a, 1); }, average, {1}, whole(-9, 9), false));
  c.push_back(reduce_case(
      "var", [](A a) { return var(a, 2); }, spread, {2}, x, true, 2e-6));
  c.push_back(reduce_case(
      "prod", [](A a) { return prod(a, -1); }, product_of, {2}, x, true, 5e-6));
  c.push_back(reduce_case(
      "prod 0 1",
      [](A a) {
        return prod(a, {.axis = {0, 1}});
      },
      product_of, {0, 1}, values(0.8, 1.2), true, 1e-5));
  c.push_back(reduce_case(
      "max", [](A a) { return max(a, 1); },
      [](const Numbers& v) { return *std::max_element(v.begin(), v.end()); }, {1}, distinct, true, 0));
  c.push_back(reduce_case(
      "min",
      [](A a) {
        return min(a, {.axis = {0, 2}});
      },
      [](const Numbers& v) { return *std::min_element(v.begin(), v.end()); }, {0, 2}, distinct, true, 0));
  c.push_back(reduce_case(
      "max int", [](A a) { return max(a); },
      [](const Numbers& v) { return *std::max_element(v.begin(), v.end()); }, {0, 1, 2}, whole(-99, 99),
      false, 0));
  c.push_back(reduce_case(
      "any", [](A a) { return any(a, 2); }, [](const Numbers& v) { return double(total(v) > 0); }, {2},
      truth(), false, 0));
  c.push_back(reduce_case(
      "all", [](A a) { return all(a, 0); }, [](const Numbers& v) { return double(product_of(v) > 0); }, {0},
      truth(), false, 0));
  c.push_back(reduce_case(
      "argmax", [](A a) { return argmax(a, 1); },
      [](const Numbers& v) { return double(std::max_element(v.begin(), v.end()) - v.begin()); }, {1},
      whole(-3, 3), false, 0));
  c.push_back(reduce_case(
      "argmin", [](A a) { return argmin(a); },
      [](const Numbers& v) { return double(std::min_element(v.begin(), v.end()) - v.begin()); }, {0, 1, 2}, x,
      false, 0));
  c.push_back(reduce_case(
      "logsumexp",
      [](A a) {
        return logsumexp(a, {.axis = {1, 2}});
      },
      log_sum_exp, {1, 2}, x, true, 2e-6));
  c.push_back(reduce_case(
      "logmeanexp",
      [](A a) {
        return logmeanexp(a, {.axis = {1, 2}});
      },
      [](const Numbers& v) { return log_sum_exp(v) - std::log(static_cast<double>(v.size())); }, {1, 2}, x,
      true, 2e-6));
  auto line_case = [&](std::string name, auto f, std::size_t axis,
                       std::vector<double> (*reference)(const Numbers&)) {
    c.push_back({std::move(name),
                 [f](std::span<const Array> in) { return f(in[0]); },
                 [axis, reference](const Hosts& in) { return along(in[0], axis, reference); },
                 {{{4, 10, 6}}},
                 true,
                 2e-6});
  };
  line_case(
      "cumsum", [](A a) { return cumsum(a, 1); }, 1,
      [](const Numbers& v) { return running(v, [](double p, double q) { return p + q; }); });
  line_case(
      "cumsum reverse", [](A a) { return cumsum(a, {.axis = 1, .reverse = true}); }, 1,
      [](const Numbers& v) {
        Numbers r = running({v.rbegin(), v.rend()}, [](double p, double q) { return p + q; });
        return Numbers(r.rbegin(), r.rend());
      });
  line_case(
      "cumprod", [](A a) { return cumprod(a, -1); }, 2,
      [](const Numbers& v) { return running(v, [](double p, double q) { return p * q; }); });
  line_case(
      "cummax", [](A a) { return cummax(a, 1); }, 1,
      [](const Numbers& v) { return running(v, [](double p, double q) { return std::max(p, q); }); });
  line_case(
      "cummin", [](A a) { return cummin(a, {.axis = 0, .reverse = true}); }, 0,
      [](const Numbers& v) {
        Numbers r = running({v.rbegin(), v.rend()}, [](double p, double q) { return std::min(p, q); });
        return Numbers(r.rbegin(), r.rend());
      });
  line_case(
      "softmax", [](A a) { return softmax(a); }, 2,
      [](const Numbers& v) {
        Numbers r;
        for (double e : v) r.push_back(std::exp(e - log_sum_exp(v)));
        return r;
      });
  line_case(
      "log_softmax", [](A a) { return log_softmax(a, 1); }, 1,
      [](const Numbers& v) {
        Numbers r;
        for (double e : v) r.push_back(e - log_sum_exp(v));
        return r;
      });
  c.push_back({"one_hot",
               [](std::span<const Array> in) { return one_hot(in[0], 5); },
               [](const Hosts& in) {
                 return build({10, 5}, [&](const Shape& i) {
                   return double(in[0].data[static_cast<std::size_t>(i[0])] == static_cast<double>(i[1]));
                 });
               },
               {{{10}, -1, 5, DType::int32}},
               false,
               0});
  return c;
}

// ---------------------------------------------------------------- products
Cases product_cases() {
  Cases c;
  auto row = [&](std::string name, auto f, std::string letters, std::vector<Shape> shapes,
                 double tolerance = 3e-6) {
    std::vector<OpInput> inputs;
    for (const Shape& s : shapes) inputs.push_back({s, -1, 1});
    c.push_back({std::move(name), f, [letters](const Hosts& x) { return sum_of_products(letters, x); },
                 inputs, true, tolerance});
  };
  using S = std::span<const Array>;
  row("matmul", [](S x) { return matmul(x[0], x[1]); }, "ik,kj->ij", {{10, 6}, {6, 9}});
  row("matmul vector", [](S x) { return matmul(x[0], x[1]); }, "ik,k->i", {{10, 6}, {6}});
  row("vector matmul", [](S x) { return matmul(x[0], x[1]); }, "k,kj->j", {{10}, {10, 6}});
  row("inner product", [](S x) { return matmul(x[0], x[1]); }, "k,k->", {{10}, {10}});
  row("matmul batched", [](S x) { return matmul(x[0], x[1]); }, "bik,bkj->bij", {{3, 5, 6}, {3, 6, 4}});
  row("matmul shared", [](S x) { return matmul(x[0], x[1]); }, "bik,kj->bij", {{3, 5, 6}, {6, 4}});
  row("matmul broadcast",
      [](S x) {
        return matmul(reshape(x[0], {3, 1, 5, 6}), x[1]);
      },
      "aik,bkj->abij", {{3, 5, 6}, {2, 6, 4}});
  row("dot", [](S x) { return dot(x[0], x[1]); }, "ik,bkj->ibj", {{5, 6}, {3, 6, 4}});
  row("tensordot", [](S x) { return tensordot(x[0], x[1]); }, "abc,bcd->ad", {{10, 3, 4}, {3, 4, 5}});
  row("tensordot axes",
      [](S x) {
        return tensordot(x[0], x[1], {0, 2}, {2, 0});
      },
      "abc,cda->bd", {{3, 10, 4}, {4, 5, 3}});
  row("einsum matrix", [](S x) { return einsum("ij,kj->ki", x[0], x[1]); }, "ij,kj->ki", {{10, 6}, {9, 6}});
  row("einsum outer", [](S x) { return einsum("i,j->ji", x[0], x[1]); }, "i,j->ji", {{10}, {6}});
  row("einsum trace", [](S x) { return einsum("ii", x[0]); }, "ii->", {{6, 6}});
  row("einsum diagonal", [](S x) { return einsum("iij->ji", x[0]); }, "iij->ji", {{6, 6, 3}});
  row(
      "einsum lonely letters", [](S x) { return einsum("ij,kl->jl", x[0], x[1]); }, "ij,kl->jl",
      {{3, 10}, {4, 6}}, 1e-5);
  row(
      "einsum three", [](S x) { return einsum("ij,jk,kl->il", x[0], x[1], x[2]); }, "ij,jk,kl->il",
      {{10, 3}, {3, 4}, {4, 6}}, 1e-5);
  row("einsum attention", [](S x) { return einsum("bqhd,bkhd->bhqk", x[0], x[1]); }, "bqhd,bkhd->bhqk",
      {{2, 5, 3, 4}, {2, 6, 3, 4}});
  row("einsum ellipsis", [](S x) { return einsum("...ij,...jk->...ik", x[0], x[1]); }, "aij,jk->aik",
      {{3, 10, 4}, {4, 6}});
  row("einsum ellipses broadcast",
      [](S x) {
        return einsum("i...j,...j", reshape(x[0], {10, 3, 1, 4}), x[1]);
      },
      "iaj,bj->abi", {{10, 3, 4}, {2, 4}});
  c.push_back({"matmul int",
               [](S x) { return matmul(x[0], x[1]); },
               [](const Hosts& x) { return sum_of_products("ik,kj->ij", x); },
               {{{10, 6}, -9, 9, DType::int32}, {{6, 9}, -9, 9, DType::int32}},
               false,
               0});
  c.push_back({"einsum bool",
               [](S x) { return einsum("ik,kj->ij", x[0], x[1]); },
               [](const Hosts& x) {
                 Numbers r = sum_of_products("ik,kj->ij", x);
                 for (double& v : r) v = v != 0;
                 return r;
               },
               {{{10, 2}, 0, 1, DType::bool_}, {{2, 6}, 0, 1, DType::bool_}},
               false,
               0});
  return c;
}

}  // namespace shardarray::testing
