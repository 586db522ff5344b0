// Rows of op_cases(): complex arrays, joined from two real operands and read through |f|^2-like mixtures of both parts.
#include "complex_rows.h"

namespace shardarray::testing {

using namespace complex_rows;

static void add_complex_functions(Cases& c) {
  const OpInput in = values(0.3, 1.4);
  c.push_back(of_one(
      "conj", conj, [](Number z) { return std::conj(z); }, values(-2, 2)));
  // the imaginary part is -1, 0 or 1
  const auto asks = [&](const char* name, auto f, bool of_real) {
    c.push_back(whole_exact({name,
                             [f](S x) { return f(complex(x[0], x[1].astype(x[0].dtype()))); },
                             [of_real](H x) {
                               return build(x[0].shape,
                                            [&](const Shape& i) { return (read(x[1], i) == 0) == of_real; });
                             },
                             {{{10, 6}}, {{10, 6}, -1, 1, DType::int32}}}));
  };
  asks("isreal", isreal, true);
  asks("iscomplex", iscomplex, false);
  c.push_back(of_one(
      "negative", negative, [](Number z) { return -z; }, values(-2, 2)));
  c.push_back(of_one(
      "abs", [](const Array& z) { return complex(abs(z), angle(z)); },
      [](Number z) { return Number(std::abs(z), std::arg(z)); }, in));
  c.push_back(of_one(
      "sign", sign, [](Number z) { return z / std::abs(z); }, in));
  c.back().differentiable = false;  // its derivative is 0, as JAX has it
  c.push_back(of_one(
      "exp", [](const Array& z) { return exp(z); }, [](Number z) { return std::exp(z); }, in));
  c.push_back(of_one(
      "log", [](const Array& z) { return log(z); }, [](Number z) { return std::log(z); }, in));
  c.push_back(of_one(
      "sqrt", [](const Array& z) { return sqrt(z); }, [](Number z) { return std::sqrt(z); }, in));
  c.push_back(of_one(
      "sin", [](const Array& z) { return sin(z); }, [](Number z) { return std::sin(z); }, in));
  c.push_back(of_one(
      "tanh", [](const Array& z) { return tanh(z); }, [](Number z) { return std::tanh(z); }, in));
  c.push_back(of_one(
      "square", square, [](Number z) { return z * z; }, values(-2, 2), 4e-6));
  c.push_back(of_one(
      "by a number", [](const Array& z) { return z * std::complex(0.5f, -2.f) / 3 + 1; },
      [](Number z) { return z * Number(0.5, -2) / 3. + 1.; }, values(-2, 2)));
  c.push_back(of_two(
      "multiply", multiply, [](Number a, Number b) { return a * b; }, values(-2, 2), 4e-6));
  c.push_back(of_two(
      "divide", divide, [](Number a, Number b) { return a / b; }, in));
  c.push_back(of_two(
      "add, subtract", [](const Array& a, const Array& b) { return a + b - (b + b); },
      [](Number a, Number b) { return a - b; }, values(-2, 2)));
  c.push_back(of_two(
      "power", power, [](Number a, Number b) { return std::pow(a, b); }, in, 5e-6));
  c.push_back(of_two(
      "where", [](const Array& a, const Array& b) { return where(real(a) > imag(b), a, b); },
      [](Number a, Number b) { return a.real() > b.imag() ? a : b; }, kinked(-2, 2)));
}

static void add_complex_sums(Cases& c) {
  c.push_back(moved(
      "sum", [](const Array& z) { return sum(z, {.axis = 0}); },
      [](const Read& z) {
        Complexes r(6);
        for (std::int64_t i = 0; i < 10; i++)
          for (std::int64_t k = 0; k < 6; k++) r[static_cast<std::size_t>(k)] += z(i, k);
        return r;
      },
      5e-6));
  c.push_back(moved(
      "prod", [](const Array& z) { return prod(z, {.axis = 1}); },
      [](const Read& z) {
        Complexes r(10, 1);
        for (std::int64_t i = 0; i < 10; i++)
          for (std::int64_t k = 0; k < 6; k++) r[static_cast<std::size_t>(i)] *= z(i, k);
        return r;
      },
      1e-4));
  c.push_back(moved(
      "cumsum", [](const Array& z) { return cumsum(z, {.axis = 0}); },
      [](const Read& z) {
        return every(10, 6, [&](std::int64_t i, std::int64_t k) {
          Number s = 0;
          for (std::int64_t j = 0; j <= i; j++) s += z(j, k);
          return s;
        });
      },
      5e-6));
  c.push_back(moved(
      "cumprod", [](const Array& z) { return cumprod(z, {.axis = 1, .reverse = true}); },
      [](const Read& z) {
        return every(10, 6, [&](std::int64_t i, std::int64_t k) {
          Number s = 1;
          for (std::int64_t j = k; j < 6; j++) s *= z(i, j);
          return s;
        });
      },
      1e-4));
  c.push_back(moved(
      "matmul", [](const Array& z) { return matmul(z, z.T()); },
      [](const Read& z) {
        return every(10, 10, [&](std::int64_t i, std::int64_t j) {
          Number s = 0;
          for (std::int64_t k = 0; k < 6; k++) s += z(i, k) * z(j, k);
          return s;
        });
      },
      1e-5));
  c.push_back(moved(
      "einsum over rows", [](const Array& z) { return einsum("ik,il->kl", conj(z), z); },
      [](const Read& z) {
        return every(6, 6, [&](std::int64_t k, std::int64_t l) {
          Number s = 0;
          for (std::int64_t i = 0; i < 10; i++) s += std::conj(z(i, k)) * z(i, l);
          return s;
        });
      },
      2e-5));
}

static void add_complex_nan_reductions(Cases& c) {
  const auto row = [&](const char* name, std::function<Array(const Array&)> f, auto reference,
                       double tolerance = 5e-6) {
    c.push_back(moved(
        name, [f](const Array& z) { return f(holed(z)); }, reference, tolerance));
    c.back().inputs = {2, {rows_and_columns, -2, 2, DType::float32, true, true}};
  };
  const auto of_numbers = [&](const char* name, std::function<Array(const Array&)> f,
                              Number (*reference)(const Complexes&), double tolerance = 5e-6) {
    row(
        name, std::move(f), [=](const Read& z) { return of_columns(z, reference); }, tolerance);
  };
  of_numbers(
      "nansum", [](const Array& z) { return nansum(z, 0); },
      [](const Complexes& v) { return std::accumulate(v.begin(), v.end(), Number(0)); });
  of_numbers(
      "nanprod", [](const Array& z) { return nanprod(z, 0); },
      [](const Complexes& v) { return std::accumulate(v.begin(), v.end(), Number(1), std::multiplies<>()); },
      1e-4);
  of_numbers(
      "nanmean", [](const Array& z) { return nanmean(z, 0); }, mean_of);
  of_numbers(
      "nanvar", [](const Array& z) { return nanvar(z, {.axis = 0}, 1); },
      [](const Complexes& v) { return Number(variance_of(v, 1)); });
  of_numbers(
      "nanstd", [](const Array& z) { return nanstd(z, 0); },
      [](const Complexes& v) { return Number(std::sqrt(variance_of(v, 0))); });
  of_numbers(
      "nanmax", [](const Array& z) { return nanmax(z, 0); },
      [](const Complexes& v) { return *std::max_element(v.begin(), v.end(), comes_before); });
  of_numbers(
      "nanmin", [](const Array& z) { return nanmin(z, 0); },
      [](const Complexes& v) { return *std::min_element(v.begin(), v.end(), comes_before); });
  const auto position_row = [&](const char* name, std::function<Array(const Array&)> f, bool is_max) {
    row(name, std::move(f), [is_max](const Read& z) {
      Complexes r;
      for (std::int64_t k = 0; k < 6; k++) {
        std::int64_t best = -1;
        for (std::int64_t i = 0; i < 10; i++)
          if (is_number(z(i, k)) &&
              (best < 0 || (is_max ? comes_before(z(best, k), z(i, k)) : comes_before(z(i, k), z(best, k)))))
            best = i;
        r.emplace_back(static_cast<double>(best));
      }
      return r;
    });
    c.back() = whole_exact(c.back());
  };
  position_row(
      "nanargmax", [](const Array& z) { return nanargmax(z, 0); }, true);
  position_row(
      "nanargmin", [](const Array& z) { return nanargmin(z, 0); }, false);
  row(
      "nancumsum", [](const Array& z) { return nancumsum(z, 0); },
      [](const Read& z) {
        return every(10, 6, [&](std::int64_t i, std::int64_t k) {
          Number s = 0;
          for (std::int64_t j = 0; j <= i; j++) s += is_number(z(j, k)) ? z(j, k) : 0;
          return s;
        });
      });
  row(
      "nancumprod", [](const Array& z) { return nancumprod(z, {.axis = 1, .reverse = true}); },
      [](const Read& z) {
        return every(10, 6, [&](std::int64_t i, std::int64_t k) {
          Number s = 1;
          for (std::int64_t j = k; j < 6; j++) s *= is_number(z(i, j)) ? z(i, j) : 1;
          return s;
        });
      },
      1e-4);
}

// Products in between, so that complex values themselves are stored and move.
static void add_complex_moves(Cases& c) {
  const auto squared = [](const Array& z) { return z * z; };
  c.push_back(moved(
      "roll", [=](const Array& z) { return roll(squared(z), 3, 0) * z; },
      [](const Read& z) {
        return every(10, 6, [&](std::int64_t i, std::int64_t k) {
          const Number v = z((i + 7) % 10, k);
          return v * v * z(i, k);
        });
      },
      1e-5));
  c.push_back(moved(
      "concatenate, flip, pad",
      [=](const Array& z) {
        const Array turned = flip(squared(z), 0);
        return pad(concatenate({turned, z}, 0), {{1, 0}, {0, 1}}, 2);
      },
      [](const Read& z) {
        return every(21, 7, [&](std::int64_t i, std::int64_t k) {
          if (i == 0 || k == 6) return Number(2);
          if (i > 10) return z(i - 11, k);
          return z(10 - i, k) * z(10 - i, k);
        });
      },
      5e-6));
  c.push_back(moved(
      "transpose, slice", [=](const Array& z) { return squared(z).T()[{slice(1, 5, 2)}]; },
      [](const Read& z) {
        return every(2, 10,
                     [&](std::int64_t i, std::int64_t k) { return z(k, 2 * i + 1) * z(k, 2 * i + 1); });
      },
      5e-6));
  c.push_back(moved(
      "take",
      [=](const Array& z) {
        return take(squared(z), array({9, 0, 3, 3}), 0) + z[{slice(0, 4)}];
      },
      [](const Read& z) {
        const std::int64_t rows[] = {9, 0, 3, 3};
        return every(4, 6, [&](std::int64_t i, std::int64_t k) {
          const Number v = z(rows[i], k);
          return v * v + z(i, k);
        });
      },
      5e-6));
  c.push_back(moved(
      "scatter",
      [=](const Array& z) {
        const Array rows = array({1, 8, 1});
        return z.at(rows).add(squared(z)[{slice(0, 3)}]).at(array({0, 2})).set(z[{slice(4, 6)}]);
      },
      [](const Read& z) {
        return every(10, 6, [&](std::int64_t i, std::int64_t k) {
          const auto square = [&](std::int64_t r) { return z(r, k) * z(r, k); };
          if (i == 0) return z(4, k);
          if (i == 2) return z(5, k);
          return z(i, k) + (i == 1 ? square(0) + square(2) : i == 8 ? square(1) : Number(0));
        });
      },
      5e-6));
  c.push_back(moved(
      "psum",
      [=](const Array& z) {
        return vmap([](const Array& r) { return psum(r * r, "i") - r; }, {.axis_name = "i"})(z);
      },
      [](const Read& z) {
        return every(10, 6, [&](std::int64_t i, std::int64_t k) {
          Number s = 0;
          for (std::int64_t j = 0; j < 10; j++) s += z(j, k) * z(j, k);
          return s - z(i, k);
        });
      },
      2e-5));
}

Cases complex_cases() {
  Cases c;
  add_complex_functions(c);
  add_complex_sums(c);
  add_complex_nan_reductions(c);
  add_complex_moves(c);
  return c;
}

}  // namespace shardarray::testing
