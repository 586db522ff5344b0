// Rows of op_cases(): complex arrays, joined from two real operands and read through |f|^2-like mixtures of both parts.
#include <complex>

#include "op_cases.h"
#include "shardarray/complex.h"
#include "shardarray/fft.h"
#include "shardarray/placement.h"
#include "shardarray/vmap.h"

namespace shardarray::testing {
namespace complex_rows {

using S = std::span<const Array>;
using H = const Hosts&;
using Number = std::complex<double>;
using Complexes = std::vector<Number>;

/// Both parts count, differently.
Array mixed(const Array& z) { return real(z) + 0.75 * imag(z); }
double mixed(Number z) { return z.real() + 0.75 * z.imag(); }
Numbers mixed(const Complexes& z) {
  Numbers r;
  for (const Number& v : z) r.push_back(mixed(v));
  return r;
}
Number at(H x, std::size_t k, const Shape& i) { return {read(x[k], i), read(x[k + 1], i)}; }

/// f(complex(x, y)) elementwise.
template <class F>
OpCase of_one(const char* name, F f, Number (*reference)(Number), OpInput in, double tolerance = 2e-6) {
  in.shape = rows_and_columns;
  return {std::string("complex ") + name,
          [f](S x) { return mixed(f(complex(x[0], x[1]))); },
          [reference](H x) {
            return build(x[0].shape, [&](const Shape& i) { return mixed(reference(at(x, 0, i))); });
          },
          {in, in},
          true,
          tolerance};
}
/// f(a, b) elementwise; b is a row of complex numbers that is broadcast.
template <class F>
OpCase of_two(const char* name, F f, Number (*reference)(Number, Number), OpInput in,
              double tolerance = 2e-6) {
  in.shape = rows_and_columns;
  OpInput row = in;
  row.shape = {rows_and_columns[1]};
  return {std::string("complex ") + name,
          [f](S x) { return mixed(f(complex(x[0], x[1]), complex(x[2], x[3]))); },
          [reference](H x) {
            return build(x[0].shape, [&](const Shape& i) {
              return mixed(reference(at(x, 0, i), {read_broadcast(x[2], i), read_broadcast(x[3], i)}));
            });
          },
          {in, in, row, row},
          true,
          tolerance};
}
/// f(complex(x, y)) of any shape, exact.
OpCase moved(const char* name, std::function<Array(const Array&)> f,
             std::function<Complexes(const std::function<Number(std::int64_t, std::int64_t)>&)> reference,
             double tolerance = 0) {
  return {std::string("complex ") + name,
          [f](S x) { return mixed(f(complex(x[0], x[1]))); },
          [reference](H x) {
            return mixed(reference([&](std::int64_t i, std::int64_t k) { return at(x, 0, {i, k}); }));
          },
          {{{10, 6}}, {{10, 6}}},
          true,
          tolerance == 0 ? 1e-6 : tolerance};
}
/// Element (i, k) of a result of this shape.
Complexes every(std::int64_t rows, std::int64_t columns,
                const std::function<Number(std::int64_t, std::int64_t)>& f) {
  Complexes r;
  for (std::int64_t i = 0; i < rows; i++)
    for (std::int64_t k = 0; k < columns; k++) r.push_back(f(i, k));
  return r;
}
using Read = std::function<Number(std::int64_t, std::int64_t)>;

}  // namespace complex_rows

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

// Along the last dimension of [10, 6]: row i, whose sums are f(row).
static OpCase fourier_row(const char* name, std::function<Array(const Array&)> f,
                          std::function<Complexes(const Complexes&)> reference) {
  return moved(
      name, std::move(f),
      [reference](const Read& z) {
        Complexes all;
        for (std::int64_t i = 0; i < 10; i++) {
          Complexes row;
          for (std::int64_t k = 0; k < 6; k++) row.push_back(z(i, k));
          for (const Number& v : reference(row)) all.push_back(v);
        }
        return all;
      },
      5e-6);
}
static Number turn(std::int64_t k, int sign) {
  return std::polar(1.0, sign * std::acos(-1.0) * static_cast<double>(k) / 3);
}
static Complexes sums(const Complexes& row, std::int64_t count, int sign) {
  Complexes r(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; k++)
    for (std::int64_t j = 0; j < 6; j++)
      r[static_cast<std::size_t>(k)] += row[static_cast<std::size_t>(j)] * turn(j * k, sign);
  return r;
}
/// The sums along a dimension of n of [rows, columns], divided by n where they are those of the inverse.
static Complexes plane_sums(const Complexes& z, std::int64_t rows, std::int64_t columns, bool down,
                            int sign) {
  const std::int64_t n = down ? rows : columns;
  return every(rows, columns, [&](std::int64_t i, std::int64_t k) {
    Number s = 0;
    for (std::int64_t j = 0; j < n; j++)
      s += z[static_cast<std::size_t>(down ? j * columns + k : i * columns + j)] *
           std::polar(1.0, sign * 2 * std::acos(-1.0) * static_cast<double>(j * (down ? i : k)) /
                               static_cast<double>(n));
    return sign > 0 ? s / static_cast<double>(n) : s;
  });
}
// Over both dimensions of [10, 6]; of the real ones the last is transformed first, and last on the way back.
static void add_fourier_planes(Cases& c) {
  const auto plane = [&](const char* name, auto f, auto reference) {
    c.push_back(moved(
        name, f, [reference](const Read& z) { return reference(every(10, 6, z)); }, 2e-5));
  };
  const auto both = [](int sign) {
    return [sign](const Complexes& z) {
      return plane_sums(plane_sums(z, 10, 6, true, sign), 10, 6, false, sign);
    };
  };
  plane(
      "fftn", [](const Array& z) { return fft::fftn(z); }, both(-1));
  plane(
      "fft2", [](const Array& z) { return fft::fft2(z); }, both(-1));
  plane(
      "ifftn", [](const Array& z) { return fft::ifftn(z); }, both(1));
  plane(
      "ifft2", [](const Array& z) { return fft::ifft2(z); }, both(1));
  const auto of_real = [both](const Complexes& z) {
    Complexes x, r;
    for (const Number& v : z) x.push_back(v.real() * v.imag());
    const Complexes all = both(-1)(x);
    for (std::size_t i = 0; i < 10; i++)
      for (std::size_t k = 0; k < 4; k++) r.push_back(all[i * 6 + k]);
    return r;
  };
  plane(
      "rfftn", [](const Array& z) { return fft::rfftn(real(z) * imag(z)); }, of_real);
  plane(
      "rfft2", [](const Array& z) { return fft::rfft2(real(z) * imag(z)); }, of_real);
  const auto to_real = [](const Complexes& z) {
    const Complexes down = plane_sums(z, 10, 6, true, 1);
    const Complexes all = every(10, 6, [&](std::int64_t i, std::int64_t k) {
      const auto half = [&](std::int64_t at) { return down[static_cast<std::size_t>(i * 6 + at)]; };
      return k % 3 == 0 ? half(k).real() : k < 3 ? half(k) : std::conj(half(6 - k));
    });
    Complexes r;
    for (const Number& v : plane_sums(all, 10, 6, false, 1)) r.emplace_back(v.real(), 2 * v.real());
    return r;
  };
  const auto halves = [](const auto& f) {
    return [f](const Array& z) {
      const Array x = f(z[{ellipsis, slice(0, 4)}]);
      return complex(x, 2 * x);
    };
  };
  plane("irfftn", halves([](const Array& h) { return fft::irfftn(h, {.s = Shape{10, 6}}); }), to_real);
  plane("irfft2", halves([](const Array& h) { return fft::irfft2(h, {.s = Shape{10, 6}}); }), to_real);
}
static void add_frequencies(Cases& c) {
  c.push_back(
      {"fftfreq",
       [](S) { return fft::fftfreq(9, 0.5); },
       [](H) { return build({9}, [](const Shape& i) { return (i[0] < 5 ? i[0] : i[0] - 9) / 4.5; }); },
       {},
       false});
  c.push_back({"rfftfreq",
               [](S) { return fft::rfftfreq(9, 0.5); },
               [](H) { return build({5}, [](const Shape& i) { return i[0] / 4.5; }); },
               {},
               false});
  c.push_back(
      {"fftshift",
       [](S x) { return fft::fftshift(x[0]); },
       [](H x) {
         return build({5, 6}, [&](const Shape& i) { return read(x[0], {(i[0] + 3) % 5, (i[1] + 3) % 6}); });
       },
       {{{5, 6}}},
       true,
       0});
  c.push_back(
      {"ifftshift",
       [](S x) { return fft::ifftshift(x[0]); },
       [](H x) {
         return build({5, 6}, [&](const Shape& i) { return read(x[0], {(i[0] + 2) % 5, (i[1] + 3) % 6}); });
       },
       {{{5, 6}}},
       true,
       0});
}
Cases fourier_cases() {
  Cases c;
  add_fourier_planes(c);
  add_frequencies(c);
  c.push_back(fourier_row(
      "fft", [](const Array& z) { return fft::fft(z) * z; },
      [](const Complexes& row) {
        Complexes r = sums(row, 6, -1);
        for (std::size_t k = 0; k < 6; k++) r[k] *= row[k];
        return r;
      }));
  c.push_back(fourier_row(
      "rfft", [](const Array& z) { return fft::rfft(real(z) * imag(z)); },
      [](const Complexes& row) {
        Complexes x;
        for (const Number& v : row) x.push_back(v.real() * v.imag());
        return sums(x, 4, -1);
      }));
  c.push_back(fourier_row(
      "ifft", [](const Array& z) { return fft::ifft(z) * z; },
      [](const Complexes& row) {
        Complexes r = sums(row, 6, 1);
        for (std::size_t k = 0; k < 6; k++) r[k] *= row[k] / 6.;
        return r;
      }));
  c.push_back(fourier_row(
      "ihfft", [](const Array& z) { return fft::ihfft(real(z) * imag(z)); },
      [](const Complexes& row) {
        Complexes x;
        for (const Number& v : row) x.push_back(v.real() * v.imag() / 6);
        return sums(x, 4, 1);
      }));
  c.push_back(fourier_row(
      "hfft",
      [](const Array& z) {
        const Array x = fft::hfft(z[{ellipsis, slice(0, 4)}], {.n = 6});
        return complex(x, 2 * x);
      },
      [](const Complexes& row) {
        const Complexes all{row[0].real(),     row[1],           row[2], row[3].real(),
                            std::conj(row[2]), std::conj(row[1])};
        Complexes r;
        for (const Number& v : sums(all, 6, -1)) r.emplace_back(v.real(), 2 * v.real());
        return r;
      }));
  c.push_back(fourier_row(
      "irfft",
      [](const Array& z) {
        const Array x = fft::irfft(z[{ellipsis, slice(0, 4)}], {.n = 6});
        return complex(x, x * x);
      },
      [](const Complexes& row) {
        const Complexes all{row[0].real(),     row[1],           row[2], row[3].real(),
                            std::conj(row[2]), std::conj(row[1])};
        Complexes r;
        for (const Number& v : sums(all, 6, 1)) r.emplace_back(v.real() / 6, v.real() * v.real() / 36);
        return r;
      }));
  return c;
}

Cases complex_cases() {
  Cases c;
  add_complex_functions(c);
  add_complex_sums(c);
  add_complex_moves(c);
  return c;
}

}  // namespace shardarray::testing
