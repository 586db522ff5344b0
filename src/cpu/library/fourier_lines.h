// Fourier transforms of lengths with small factors, as many lines side by side as a vector has elements; the arithmetic is float64.
//
// Stockham's algorithm of mixed radix, decimation in frequency (Cochran et al., "What is the fast Fourier transform?", 1967; Van
// Loan, "Computational frameworks for the fast Fourier transform", 1992): passes from one buffer to another one, the last leaves
// everything in order. Nothing is contracted and no line meets another one: the bits depend neither on the instruction set nor on
// the lines beside it.
#pragma once
#include <cstdint>

namespace shardarray {

/// Radix r of n' = r m elements that lie s apart: b[k] = sum over j of a[j] w_r^(j k), and times w_n'^(p k) for p < m.
/// w_n = exp(-2 pi i / n).
struct FourierPass {
  std::int64_t radix, m, s;
  const double* turns;  ///< complex, w_n'^(p k): [m, radix - 1], k from 1
  const double* roots;  ///< complex, w_r^k: [radix]
};
struct FourierPasses {
  std::int64_t n, count;
  const FourierPass* all;
};

/// Lines that are transformed together: their tables (`near` below) hold so many of them.
constexpr std::int64_t fourier_block = 8;

/// Complex numbers of In, transformed into those of Out. Distances in complex numbers; of each pair one is 1.
template <class In, class Out> struct FourierLines {
  const FourierPasses* passes;
  std::int64_t count;  ///< of lines
  const In* from;
  std::int64_t from_step, from_line;  ///< between elements of a line, between lines
  Out* to;
  std::int64_t to_step, to_line;
  bool swap_from, swap_to;  ///< re and im exchanged; both: the inverse transform
  double scale;             ///< of the result
  const double* turns;  ///< null, or [n, 2, fourier_block]: factors of the result; then at most so many lines
  double* room;         ///< 64 bytes aligned; fourier_room(n) numbers
  /// Of 2 n real numbers as n complex ones: FourierFold's u, else null. side 1: it follows, and the result has n + 1 elements; -1: it
  /// comes first, and what is given has them.
  const double* u = nullptr;
  double side = 0;
};
constexpr std::int64_t fourier_room(std::int64_t n) { return 16 * (n + 1); }

/// The last step of a transform of 2 m real numbers as m complex ones, and the first one of its inverse (Press et al., "Numerical
/// Recipes", 12.3): elements k and m - k for first <= k < last, last <= m / 2 + 1, k from 1. E, O = x[k] +- conj(x[m - k]),
/// D = O (u[k].re, side u[k].im); y[k] = scale (E + D), y[m - k] = scale conj(E - D). x may be y.
template <class In, class Out> struct FourierFold {
  const In* x;
  Out* y;
  std::int64_t m, first, last;
  const double* u;  ///< complex
  double side, scale;
};

struct FourierTable {
  void (*f32)(const FourierLines<float, float>& l);
  void (*f32_to_f64)(const FourierLines<float, double>& l);
  void (*f64_to_f32)(const FourierLines<double, float>& l);
  void (*f64)(const FourierLines<double, double>& l);
  void (*fold_f32)(const FourierFold<float, float>& f);
  void (*fold_f32_to_f64)(const FourierFold<float, double>& f);
  void (*fold_f64_to_f32)(const FourierFold<double, float>& f);
  void (*fold_f64)(const FourierFold<double, double>& f);
  /// to[k, :, l] = near[k, :, l] at[k], complex, for k < n: near and to [n, 2, fourier_block].
  void (*spread)(std::int64_t n, const double* near, const double* at, double* to);
  /// to[k] = a[k] b[k] of complex numbers, k < n; to may be a.
  void (*multiply)(std::int64_t n, const double* a, const double* b, double* to);
};
extern const FourierTable fourier_baseline, fourier_v3;

}  // namespace shardarray
