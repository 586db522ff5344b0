// Transforms of any length, built on fourier_lines.h.
#pragma once
#include <algorithm>
#include <complex>
#include <memory>
#include <new>
#include <vector>

#include "base/ceil_div.h"
#include "cpu/library/fourier_lines.h"

namespace shardarray {

/// This machine's kernels.
const FourierTable& fourier_table();
inline void fourier_lines(const FourierLines<float, float>& l) { fourier_table().f32(l); }
inline void fourier_lines(const FourierLines<float, double>& l) { fourier_table().f32_to_f64(l); }
inline void fourier_lines(const FourierLines<double, float>& l) { fourier_table().f64_to_f32(l); }
inline void fourier_lines(const FourierLines<double, double>& l) { fourier_table().f64(l); }
inline void fourier_fold(const FourierFold<float, float>& f) { fourier_table().fold_f32(f); }
inline void fourier_fold(const FourierFold<float, double>& f) { fourier_table().fold_f32_to_f64(f); }
inline void fourier_fold(const FourierFold<double, float>& f) { fourier_table().fold_f64_to_f32(f); }
inline void fourier_fold(const FourierFold<double, double>& f) { fourier_table().fold_f64(f); }

/// exp(i pi k / n) for 0 <= k < 2 n.
std::complex<double> half_turns(std::int64_t k, std::int64_t n);

/// A worker's scratch numbers, uninitialized, 64-byte aligned.
class FourierRoom {
 public:
  explicit FourierRoom(std::int64_t count)
      : all_(static_cast<double*>(
            ::operator new(static_cast<std::size_t>(count) * sizeof(double), alignment))) {}
  double* data() const { return all_.get(); }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(double* p) const { ::operator delete(p, alignment); }
  };
  std::unique_ptr<double, Free> all_;
};

/// The passes for n elements. The larger its prime factors, the more scratch.
class DirectFourier {
 public:
  explicit DirectFourier(std::int64_t n);
  DirectFourier(const DirectFourier&) = delete;
  const FourierPasses* passes() const { return &passes_; }
  std::int64_t size() const { return passes_.n; }
  std::int64_t room() const { return fourier_room(passes_); }

 private:
  struct Convolution;
  std::vector<std::vector<double>> numbers_;
  std::vector<std::shared_ptr<const Convolution>> convolutions_;
  std::vector<FourierPass> all_;
  std::int64_t room_ = 0;
  FourierPasses passes_{};
};

/// n elements as a matrix with columns_.size() rows and rows_.size() columns (Bailey, "FFTs in external or hierarchical memory", 1990): its
/// columns are transformed and multiplied by twiddles, then its rows; element (r, c) of the result goes to c * columns_.size() + r. Both in
/// independent blocks of fourier_block.
class TwoStepFourier {
 public:
  explicit TwoStepFourier(std::int64_t n);
  std::int64_t column_blocks() const { return ceil_div(rows_.size(), fourier_block); }
  std::int64_t row_blocks() const { return ceil_div(columns_.size(), fourier_block); }
  /// Scratch, in numbers.
  std::int64_t room() const {
    return std::max(rows_.room(), columns_.room()) + (2 * fourier_block + 2) * columns_.size();
  }

  template <class In, class Out>
  void columns(std::int64_t block, const In* from, Out* to, bool inverse, double* room) const {
    const std::int64_t first = block * fourier_block, n = rows_.size(), at = 2 * first;
    fourier_lines(FourierLines<In, Out>{columns_.passes(), std::min(fourier_block, n - first), from + at, n,
                                        1, to + at, n, 1, inverse, false, 1,
                                        turns(block, room + columns_.room()), room});
  }
  template <class In, class Out>
  void rows(std::int64_t block, const In* from, Out* to, bool inverse, double scale, double* room) const {
    const std::int64_t first = block * fourier_block, n = rows_.size(), m = columns_.size();
    fourier_lines(FourierLines<In, Out>{rows_.passes(), std::min(fourier_block, m - first),
                                        from + 2 * first * n, 1, n, to + 2 * first, m, 1, false, inverse,
                                        scale, nullptr, room});
  }

 private:
  const double* turns(std::int64_t block, double* room) const;

  DirectFourier columns_, rows_;  // the transforms of a column and of a row
  std::vector<double> near_,
      every_;  // exp(-2 pi i k l / n) for l < fourier_block; for all columns, if these are few
  std::vector<std::complex<double>> coarse_, fine_;
};

/// A transform of n elements, by one worker.
class Fourier {
 public:
  explicit Fourier(std::int64_t n);
  std::int64_t size() const { return n_; }
  /// Lines per unit.
  std::int64_t block() const { return direct_ ? fourier_block : together(); }
  double cost_ns() const;
  /// Null if lines are not transformed directly.
  const DirectFourier* direct() const { return direct_.get(); }
  /// Scratch, in numbers.
  std::int64_t room() const;

  /// `count` lines with these strides (in complex numbers). `to` may be `from`.
  template <class In, class Out>
  void lines(std::int64_t count, const In* from, std::int64_t from_line, Out* to, std::int64_t to_line,
             bool inverse, double scale, double* room) const {
    if (direct_) {
      fourier_lines(FourierLines<In, Out>{direct_->passes(), count, from, 1, from_line, to, 1, to_line,
                                          inverse, inverse, scale, nullptr, room});
      return;
    }
    for (std::int64_t l = 0; l < count; l += together()) {
      const In* const x = from + 2 * l * from_line;
      Out* const y = to + 2 * l * to_line;
      if (two_) two_steps(x, y, inverse, scale, room);
      else chirped(std::min(together(), count - l), x, from_line, y, to_line, inverse, scale, room);
    }
  }

 private:
  using Numbers = std::vector<std::complex<double>>;
  template <class In, class Out>
  void two_steps(const In* from, Out* to, bool inverse, double scale, double* room) const {
    double* const between = room;
    room += room_between();
    for (std::int64_t b = 0; b < two_->column_blocks(); b++) two_->columns(b, from, between, inverse, room);
    for (std::int64_t b = 0; b < two_->row_blocks(); b++) two_->rows(b, between, to, inverse, scale, room);
  }
  template <class In, class Out>
  void chirped(std::int64_t count, const In* from, std::int64_t from_line, Out* to, std::int64_t to_line,
               bool inverse, double scale, double* room) const;
  /// Lines that share part of the scratch.
  std::int64_t together() const { return inner_ ? inner_->block() : 1; }
  std::int64_t room_between() const { return (2 * n_ + 7) / 8 * 8; }

  std::int64_t n_;
  std::unique_ptr<const DirectFourier> direct_;
  std::unique_ptr<const TwoStepFourier> two_;
  // Bluestein, "A linear filtering approach to the computation of the discrete Fourier transform" (1970).
  std::unique_ptr<const Fourier> inner_;
  Numbers chirp_, filter_;
};

template <class In, class Out>
void Fourier::chirped(std::int64_t count, const In* from, std::int64_t from_line, Out* to,
                      std::int64_t to_line, bool inverse, double scale, double* room) const {
  const std::int64_t m = inner_->size();
  double* const rest = room + 2 * m * count;
  const auto* const chirp = reinterpret_cast<const double*>(chirp_.data());
  const auto* const filter = reinterpret_cast<const double*>(filter_.data());
  const auto multiply = fourier_table().multiply;
  const int re = inverse ? 1 : 0, im = 1 - re;
  for (std::int64_t l = 0; l < count; l++) {
    double* const x = room + 2 * m * l;
    const In* const given = from + 2 * l * from_line;
    for (std::int64_t j = 0; j < n_; j++) {
      x[2 * j] = static_cast<double>(given[2 * j + re]);
      x[2 * j + 1] = static_cast<double>(given[2 * j + im]);
    }
    multiply(n_, x, chirp, x);
    std::fill(x + 2 * n_, x + 2 * m, 0.0);
  }
  inner_->lines(count, room, m, room, m, false, 1, rest);
  for (std::int64_t l = 0; l < count; l++) multiply(m, room + 2 * m * l, filter, room + 2 * m * l);
  inner_->lines(count, room, m, room, m, true, 1, rest);
  for (std::int64_t l = 0; l < count; l++) {
    double* const x = room + 2 * m * l;
    Out* const y = to + 2 * l * to_line;
    multiply(n_, x, chirp, x);
    for (std::int64_t j = 0; j < n_; j++) {
      y[2 * j + re] = static_cast<Out>(x[2 * j] * scale);
      y[2 * j + im] = static_cast<Out>(x[2 * j + 1] * scale);
    }
  }
}

}  // namespace shardarray
