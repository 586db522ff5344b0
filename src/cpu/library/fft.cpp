// Discrete Fourier transforms along the last dimension, one unit a line: kissfft for lengths of small factors, Bluestein's algorithm
// ("A linear filtering approach to the computation of the discrete Fourier transform", 1970) for others. float32 is computed in
// float64: kissfft's own factors of float32 are off in the last digits.
#include <bit>
#include <complex>
#include <kissfft/kissfft.hh>
#include <memory>
#include <numbers>
#include <optional>
#include <vector>

#include "cpu/address.h"
#include "cpu/library/library_call.h"

namespace shardarray {
namespace {

using Number = std::complex<double>;
using Numbers = std::vector<Number>;

// Products without a look at infinities, which std::complex takes.
Number product(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// exp(i pi k / n) of 0 <= k < 2 n, by angles up to pi / 4.
Number turn(std::int64_t k, std::int64_t n) {
  const std::int64_t eighth = 4 * k / n;  // 0 .. 7
  const auto angle = [&](std::int64_t part) {
    return std::numbers::pi * static_cast<double>(part) / static_cast<double>(4 * n);
  };
  const std::int64_t past = 4 * k - eighth * n;  // in quarters of pi / n
  const Number first = eighth % 2 == 0 ? std::polar(1.0, angle(past)) : std::polar(1.0, angle(n - past));
  const double c = first.real(), s = first.imag();
  switch (eighth) {
    case 0: return {c, s};
    case 1: return {s, c};
    case 2: return {-s, c};
    case 3: return {-c, s};
    case 4: return {-c, -s};
    case 5: return {-s, -c};
    case 6: return {s, -c};
    default: return {c, -s};
  }
}

bool has_small_factors(std::int64_t n) {
  for (const std::int64_t p : {2, 3, 5, 7, 11, 13})
    while (n % p == 0) n /= p;
  return n == 1;
}

/// The length of the transforms that one of n elements is made of.
std::int64_t inner_size(std::int64_t n) {
  return has_small_factors(n)
             ? n
             : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * n - 1)));
}

/// What does not depend on the elements.
struct FourierTables {
  FourierTables(std::int64_t size, bool inverse)
      : n(size),
        is_chirped(!has_small_factors(size)),
        plan(static_cast<std::size_t>(inner_size(size)), inverse) {
    if (!is_chirped) return;
    const std::int64_t m = inner_size(n);
    for (std::int64_t j = 0, square = 0; j < n; j++) {  // j^2 modulo 2 n
      const Number w = turn(square, n);
      chirp.push_back(inverse ? w : std::conj(w));
      square = (square + 2 * j + 1) % (2 * n);
    }
    Numbers centred(static_cast<std::size_t>(m));
    for (std::int64_t j = 0; j < n; j++)
      centred[static_cast<std::size_t>(j)] = centred[static_cast<std::size_t>((m - j) % m)] =
          std::conj(chirp[static_cast<std::size_t>(j)]);
    filter.resize(centred.size());
    plan.transform(centred.data(), filter.data());
    for (Number& f : filter) f /= static_cast<double>(m);
  }
  /// kissfft writes into its plan while it meets these factors.
  bool is_written() const { return n % 7 == 0 || n % 11 == 0 || n % 13 == 0; }

  std::int64_t n;
  bool is_chirped;
  kissfft<double> plan;
  Numbers chirp, filter;
};

/// The sums of x[j] exp(s 2 pi i j k / n), one line after the other.
class Fourier {
 public:
  explicit Fourier(std::shared_ptr<const FourierTables> tables) : t_(std::move(tables)) {
    if (!t_->is_chirped && t_->is_written()) own_.emplace(t_->plan);
  }

  void run(const Number* x, Number* y) {
    if (!t_->is_chirped) return (own_ ? *own_ : t_->plan).transform(x, y);
    const auto n = static_cast<std::size_t>(t_->n);
    room_.resize(t_->filter.size());
    spectrum_.resize(room_.size());
    for (std::size_t j = 0; j < n; j++) room_[j] = product(x[j], t_->chirp[j]);
    std::fill(room_.begin() + static_cast<std::ptrdiff_t>(n), room_.end(), Number{});
    t_->plan.transform(room_.data(), spectrum_.data());
    // The transform back is that of the conjugate.
    for (std::size_t j = 0; j < spectrum_.size(); j++)
      room_[j] = std::conj(product(spectrum_[j], t_->filter[j]));
    t_->plan.transform(room_.data(), spectrum_.data());
    for (std::size_t j = 0; j < n; j++) y[j] = product(std::conj(spectrum_[j]), t_->chirp[j]);
  }

 private:
  std::shared_ptr<const FourierTables> t_;
  std::optional<kissfft<double>> own_;
  Numbers room_, spectrum_;
};

/// Lines of n elements and what is made of them.
struct Lines {
  std::int64_t count = 1, n = 0;
  double cost_ns() const {
    const auto size = static_cast<double>(inner_size(std::max<std::int64_t>(n, 1)));
    const double transforms = has_small_factors(std::max<std::int64_t>(n, 1)) ? 1 : 2;
    return static_cast<double>(count) * (200 + transforms * size * std::log2(size + 1) * 2.5);
  }
};
Lines lines_of(const Shape& shape) {
  Lines l;
  for (std::size_t d = 0; d + 1 < shape.size(); d++) l.count *= shape[d];
  l.n = shape[shape.size() - 1];
  return l;
}
double scale_in(const LibraryCall::Item& item) { return std::bit_cast<double>(item.params.back()); }
template <class T> T* elements(void* const* bases, const Ref& r) {
  return reinterpret_cast<T*>(address(bases, r));
}

// ---------------------------------------------------------------- complex lines
template <class T> LibraryPlan fft_plan(const LibraryCall::Item& item) {
  const Lines l = lines_of(item.in_shapes[0]);
  if (l.count == 0 || l.n == 0) return {0, 0, [](void* const*, std::int64_t, std::int64_t) {}};
  const auto tables = std::make_shared<const FourierTables>(l.n, item.params[0] > 0);
  const auto run = [=, scale = scale_in(item), in = item.in[0], out = item.out[0]](
                       void* const* bases, std::int64_t begin, std::int64_t end) {
    Fourier transform(tables);
    const auto n = static_cast<std::size_t>(l.n);
    Numbers x(n), y(n);
    for (std::int64_t u = begin; u < end; u++) {
      const auto* const from = elements<const std::complex<T>>(bases, in) + u * l.n;
      auto* const to = elements<std::complex<T>>(bases, out) + u * l.n;
      for (std::size_t k = 0; k < n; k++) x[k] = from[k];
      transform.run(x.data(), y.data());
      for (std::size_t k = 0; k < n; k++) to[k] = std::complex<T>(y[k] * scale);
    }
  };
  return {l.count, l.cost_ns(), run};
}

// ---------------------------------------------------------------- real lines
// Of even length as half as many complex numbers, whose transform comes apart into those of the elements at even and at odd places
// (Press et al., "Numerical Recipes", 12.3); of odd length as complex numbers.
class RealFourier {
 public:
  /// The tables are those of half as many elements where n is even.
  RealFourier(std::int64_t n, std::shared_ptr<const FourierTables> tables, const Numbers& turns)
      : n_(n), halved_(n % 2 == 0), transform_(std::move(tables)), turns_(turns) {
    x_.resize(static_cast<std::size_t>(halved_ ? n / 2 : n));
    y_.resize(x_.size());
  }

  template <class T> void forward(const T* from, std::complex<T>* to, double scale) {
    const std::size_t half = static_cast<std::size_t>(n_ / 2), m = x_.size();
    for (std::size_t k = 0; k < m; k++)
      x_[k] = halved_ ? Number(from[2 * k], from[2 * k + 1]) : Number(from[k], 0);
    transform_.run(x_.data(), y_.data());
    for (std::size_t k = 0; k <= half; k++) {
      Number z = y_[k % m];
      if (halved_) {
        const Number other = std::conj(y_[(m - k) % m]), even = z + other, odd = z - other;
        z = 0.5 * (even + product({0, -1}, product(odd, turns_[k])));
      }
      to[k] = std::complex<T>(z * scale);
    }
  }
  template <class T> void inverse(const std::complex<T>* from, T* to, double scale) {
    const std::size_t half = static_cast<std::size_t>(n_ / 2), m = x_.size();
    const auto at = [&](std::size_t k) {
      const bool real = k == 0 || (halved_ && k == half);
      return Number(from[k].real(), real ? 0 : from[k].imag());
    };
    for (std::size_t k = 0; k < m; k++) {
      if (halved_) {
        const Number z = at(k), other = std::conj(at(half - k));
        x_[k] = z + other + product({0, 1}, product(z - other, turns_[k]));
      } else {
        x_[k] = k <= half ? at(k) : std::conj(at(m - k));
      }
    }
    transform_.run(x_.data(), y_.data());
    for (std::size_t k = 0; k < m; k++) {
      if (halved_) {
        to[2 * k] = static_cast<T>(y_[k].real() * scale);
        to[2 * k + 1] = static_cast<T>(y_[k].imag() * scale);
      } else {
        to[k] = static_cast<T>(y_[k].real() * scale);
      }
    }
  }

 private:
  std::int64_t n_;
  bool halved_;
  Fourier transform_;
  const Numbers& turns_;  // exp(s 2 pi i k / n) up to n / 2, where n is even
  Numbers x_, y_;
};

Numbers half_turn(std::int64_t n, bool inverse) {
  Numbers turns;
  for (std::int64_t k = 0; n % 2 == 0 && 2 * k <= n; k++) {
    const Number w = turn(2 * k, n);
    turns.push_back(inverse ? w : std::conj(w));
  }
  return turns;
}
template <class T> LibraryPlan real_plan(const LibraryCall::Item& item, bool inverse) {
  const Lines of_real = lines_of(inverse ? item.out_shapes[0] : item.in_shapes[0]);
  const std::int64_t n = of_real.n, half = n / 2 + 1;
  if (of_real.count == 0 || n == 0) return {0, 0, [](void* const*, std::int64_t, std::int64_t) {}};
  const auto tables = std::make_shared<const FourierTables>(n % 2 == 0 ? n / 2 : n, inverse);
  const auto turns = std::make_shared<const Numbers>(half_turn(n, inverse));
  const auto run = [=, scale = scale_in(item), in = item.in[0], out = item.out[0]](
                       void* const* bases, std::int64_t begin, std::int64_t end) {
    RealFourier transform(n, tables, *turns);
    for (std::int64_t u = begin; u < end; u++) {
      if (inverse)
        transform.inverse(elements<const std::complex<T>>(bases, in) + u * half,
                          elements<T>(bases, out) + u * n, scale);
      else
        transform.forward(elements<const T>(bases, in) + u * n,
                          elements<std::complex<T>>(bases, out) + u * half, scale);
    }
  };
  return {of_real.count, of_real.cost_ns() * 0.6, run};
}

}  // namespace

LibraryPlan plan_fft(const LibraryCall& call, const LibraryCall::Item& item) {
  if (call.in_types[0] == DType::complex64) return fft_plan<float>(item);
  if (call.in_types[0] == DType::complex128) return fft_plan<double>(item);
  refuse_dtype("fft", call.in_types[0], "complex64 or complex128");
}
LibraryPlan plan_rfft(const LibraryCall& call, const LibraryCall::Item& item) {
  if (call.in_types[0] == DType::float32) return real_plan<float>(item, false);
  if (call.in_types[0] == DType::float64) return real_plan<double>(item, false);
  refuse_dtype("rfft", call.in_types[0], "float32 or float64");
}
LibraryPlan plan_irfft(const LibraryCall& call, const LibraryCall::Item& item) {
  if (call.out_types[0] == DType::float32) return real_plan<float>(item, true);
  if (call.out_types[0] == DType::float64) return real_plan<double>(item, true);
  refuse_dtype("irfft", call.in_types[0], "complex64 or complex128");
}

}  // namespace shardarray
