// Fourier transforms of lengths without large prime factors, vectorized across lines; arithmetic in float64.
//
// Stockham's mixed-radix algorithm, decimation in frequency (Cochran et al., "What is the fast Fourier transform?", 1967; Van Loan,
// "Computational frameworks for the fast Fourier transform", 1992): each pass goes from one buffer to another, and the last leaves
// everything in order. No contraction, and lines do not mix: the bits depend neither on the instruction set nor on the neighbouring lines.
#pragma once
#include <cstdint>

namespace shardarray {

struct FourierConvolution;
/// Radix r on n' = r m elements with stride s: b[k] = sum over j of a[j] w_r^(j k), times w_n'^(p k) for p < m. w_n = exp(-2 pi i / n).
struct FourierPass {
  std::int64_t radix, m, s;
  const double* turns;  ///< complex, w_n'^(p k): [m, radix - 1], k from 1
  /// complex, w_r^k: [radix]; for primes above 13 w_r^(j k): [radix / 2, radix / 2], from 1
  const double* roots;
  const FourierConvolution* convolution = nullptr;  ///< instead of roots
};
struct FourierPasses {
  std::int64_t n, count;
  const FourierPass* all;
  std::int64_t room = 0;  ///< scratch of passes, in numbers
};
/// A transform of a prime number r of elements as a cyclic convolution: of r - 1 elements (Rader, "Discrete Fourier transforms when the
/// number of data samples is prime", 1968), or of 2 r - 1 and more (Bluestein, fourier_transform.h).
struct FourierConvolution {
  const FourierPasses* inner;
  const double* filter;           ///< complex, the transform of what a is convolved with
  const double* chirp;            ///< complex [r]: factors of a and of the result; null: Rader's
  const std::int32_t *from, *to;  ///< Rader's: a[from[i]] is element i, and the result's element to[i]
};

/// Lines that are transformed together; tables (`near` below) have room for so many.
constexpr std::int64_t fourier_block = 8;

/// From complex numbers of In to those of Out. Strides in complex numbers; one of each pair is 1.
template <class In, class Out> struct FourierLines {
  const FourierPasses* passes;
  std::int64_t count;  ///< number of lines
  const In* from;
  std::int64_t from_step, from_line;  ///< strides between elements of a line, between lines
  Out* to;
  std::int64_t to_step, to_line;
  bool swap_from, swap_to;  ///< exchange re and im; both: the inverse transform
  double scale;             ///< of the result
  const double* turns;  ///< null, or [n, 2, fourier_block]: factors of the result; then at most so many lines
  double* room;         ///< 64-byte aligned; fourier_room(*passes) numbers
  /// For 2 n real numbers as n complex ones: FourierFold's u, else null. side 1: the fold follows, and the result has n + 1 elements; -1:
  /// it comes first, and the input has them.
  const double* u = nullptr;
  double side = 0;
};
inline std::int64_t fourier_room(const FourierPasses& p) { return 16 * (p.n + 1) + p.room; }

/// The last step of a transform of 2 m real numbers as m complex ones, or the first one of its inverse (Press et al., "Numerical Recipes",
/// 12.3): elements k and m - k for first <= k < last, last <= m / 2 + 1, k from 1. E, O = x[k] +- conj(x[m - k]), D = O (u[k].re, side
/// u[k].im); y[k] = scale (E + D), y[m - k] = scale conj(E - D). y may be x.
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
  /// to[k] = a[k] b[k], complex, for k < n; to may be a.
  void (*multiply)(std::int64_t n, const double* a, const double* b, double* to);
};
extern const FourierTable fourier_baseline, fourier_v3;

}  // namespace shardarray
