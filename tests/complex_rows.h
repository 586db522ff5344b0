// Shared by the rows of op_cases.h whose functions take complex numbers.
#pragma once
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

/// A mixture with different weights of both parts.
inline Array mixed(const Array& z) { return real(z) + 0.75 * imag(z); }
inline double mixed(Number z) { return z.real() + 0.75 * z.imag(); }
inline Numbers mixed(const Complexes& z) {
  Numbers r;
  for (const Number& v : z) r.push_back(mixed(v));
  return r;
}
inline Number at(H x, std::size_t k, const Shape& i) { return {read(x[k], i), read(x[k + 1], i)}; }

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
inline OpCase moved(
    const char* name, std::function<Array(const Array&)> f,
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
inline Complexes every(std::int64_t rows, std::int64_t columns,
                       const std::function<Number(std::int64_t, std::int64_t)>& f) {
  Complexes r;
  for (std::int64_t i = 0; i < rows; i++)
    for (std::int64_t k = 0; k < columns; k++) r.push_back(f(i, k));
  return r;
}
using Read = std::function<Number(std::int64_t, std::int64_t)>;

/// A part stands for NaN where the real one is above 1, where the imaginary one is below -1.
inline Array holed(const Array& z) {
  const Array re = real(z), im = imag(z);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return complex(where(re > 1, nan, re), where(im < -1, nan, im));
}
inline bool is_number(Number z) { return z.real() <= 1 && z.imag() >= -1; }
/// f of the numbers in each column.
template <class F> Complexes of_columns(const Read& z, F f) {
  Complexes r;
  for (std::int64_t k = 0; k < 6; k++) {
    Complexes column;
    for (std::int64_t i = 0; i < 10; i++)
      if (is_number(z(i, k))) column.push_back(z(i, k));
    r.push_back(f(column));
  }
  return r;
}
inline Number mean_of(const Complexes& v) {
  return std::accumulate(v.begin(), v.end(), Number(0)) / static_cast<double>(v.size());
}
/// Mean |z - mean|^2, divided by n - ddof.
inline double variance_of(const Complexes& v, double ddof) {
  double s = 0;
  for (const Number& z : v) s += std::norm(z - mean_of(v));
  return s / (static_cast<double>(v.size()) - ddof);
}
/// Orders by the real parts, then by the imaginary ones.
inline bool comes_before(const Number& a, const Number& b) {
  return std::pair(a.real(), a.imag()) < std::pair(b.real(), b.imag());
}

}  // namespace complex_rows

}  // namespace shardarray::testing
