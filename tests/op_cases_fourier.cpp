// Rows of Fourier transforms, see op_cases.h.
#include "complex_rows.h"

namespace shardarray::testing {

using namespace complex_rows;

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
  c.push_back({"fftfreq",
               [](S) { return fft::fftfreq(9, 0.5); },
               [](H) {
                 return build({9}, [](const Shape& i) {
                   return static_cast<double>(i[0] < 5 ? i[0] : i[0] - 9) / 4.5;
                 });
               },
               {},
               false});
  c.push_back({"rfftfreq",
               [](S) { return fft::rfftfreq(9, 0.5); },
               [](H) { return build({5}, [](const Shape& i) { return static_cast<double>(i[0]) / 4.5; }); },
               {},
               false});
  const auto shift = [&](const char* name, auto f, std::int64_t rows) {
    c.push_back({name,
                 [f](S x) { return f(x[0]); },
                 [rows](H x) {
                   return build({5, 6}, [&](const Shape& i) {
                     return read(x[0], {(i[0] + rows) % 5, (i[1] + 3) % 6});
                   });
                 },
                 {{{5, 6}}},
                 true,
                 0});
  };
  shift(
      "fftshift", [](const Array& x) { return fft::fftshift(x); }, 3);
  shift(
      "ifftshift", [](const Array& x) { return fft::ifftshift(x); }, 2);
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

}  // namespace shardarray::testing
