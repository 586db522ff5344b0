// Discrete Fourier transforms along the last dimension: units are blocks of lines. Long lines are split into two stages, with the
// intermediate values in a second result.
#include <algorithm>
#include <bit>

#include "cpu/address.h"
#include "cpu/library/fourier_transform.h"
#include "cpu/library/library_call.h"
#include "runtime/fourier_sizes.h"

namespace shardarray {
namespace {

/// Lines of n elements.
struct FourierShape {
  explicit FourierShape(const Shape& shape) : n(shape[shape.size() - 1]) {
    for (std::size_t d = 0; d + 1 < shape.size(); d++) count *= shape[d];
  }
  std::int64_t count = 1, n;
};
double scale_in(const LibraryCall::Item& item) { return std::bit_cast<double>(item.params.back()); }
template <class T> T* elements(void* const* bases, const Ref& r) {
  return reinterpret_cast<T*>(address(bases, r));
}
LibraryPlan nothing() {
  return {0, 0, [](void* const*, std::int64_t, std::int64_t) {}};
}
/// Calls f(first line, number of lines, scratch for `room` numbers) for blocks of `block` lines.
template <class F>
LibraryPlan by_lines(std::int64_t count, std::int64_t block, double line_ns, std::int64_t room, F f) {
  return {ceil_div(count, block), static_cast<double>(count) * line_ns,
          [=](void* const* bases, std::int64_t begin, std::int64_t end) {
            const FourierRoom own(room);
            for (std::int64_t u = begin; u < end; u++)
              f(bases, u * block, std::min(block, count - u * block), own.data());
          }};
}

/// Both stages of long lines, from `in` through `between` to `out`.
template <class T> struct LongLines {
  std::int64_t count;
  std::shared_ptr<const TwoStepFourier> transform;
  Ref in, between, out;
  std::int64_t in_line, n, out_line;  // in complex numbers
  bool inverse;
  double scale;

  LibraryPlan columns() const {
    const std::int64_t blocks = transform->column_blocks();
    return by_lines(count * blocks, 1, stage_ns() / static_cast<double>(blocks), transform->room(),
                    [l = *this, blocks](void* const* bases, std::int64_t u, std::int64_t, double* room) {
                      l.transform->columns(
                          u % blocks, elements<const T>(bases, l.in) + 2 * (u / blocks) * l.in_line,
                          elements<T>(bases, l.between) + 2 * (u / blocks) * l.n, l.inverse, room);
                    });
  }
  LibraryPlan rows() const {
    const std::int64_t blocks = transform->row_blocks();
    return by_lines(count * blocks, 1, stage_ns() / static_cast<double>(blocks), transform->room(),
                    [l = *this, blocks](void* const* bases, std::int64_t u, std::int64_t, double* room) {
                      l.transform->rows(u % blocks,
                                        elements<const T>(bases, l.between) + 2 * (u / blocks) * l.n,
                                        elements<T>(bases, l.out) + 2 * (u / blocks) * l.out_line, l.inverse,
                                        l.scale, room);
                    });
  }

 private:
  double stage_ns() const { return static_cast<double>(n) * 4; }
};

// ---------------------------------------------------------------- complex lines
template <class T> LibraryPlan fft_plan(const LibraryCall::Item& item) {
  const FourierShape l(item.in_shapes[0]);
  const bool inverse = item.params[0] > 0;
  const double scale = scale_in(item);
  if (l.count == 0 || l.n == 0) return nothing();
  if (item.out.size() > 1) {
    const LongLines<T> both{l.count,     std::make_shared<const TwoStepFourier>(l.n),
                            item.in[0],  item.out[1],
                            item.out[0], l.n,
                            l.n,         l.n,
                            inverse,     scale};
    return both.columns().then(both.rows());
  }
  const auto transform = std::make_shared<const Fourier>(l.n);
  return by_lines(l.count, transform->block(), transform->cost_ns(), transform->room(),
                  [=, in = item.in[0], out = item.out[0]](void* const* bases, std::int64_t first,
                                                          std::int64_t count, double* room) {
                    transform->lines(count, elements<const T>(bases, in) + 2 * first * l.n, l.n,
                                     elements<T>(bases, out) + 2 * first * l.n, l.n, inverse, scale, room);
                  });
}

// ---------------------------------------------------------------- real lines
// Even lengths as half as many complex numbers, whose transform is folded (FourierFold); odd ones as complex numbers.
std::shared_ptr<const std::vector<double>> fold_turns(std::int64_t n) {
  auto u = std::make_shared<std::vector<double>>();
  for (std::int64_t k = 0; 4 * k <= n; k++) {  // -i exp(-2 pi i k / n)
    const std::complex<double> w = half_turns(2 * k, n);
    u->push_back(-w.imag());
    u->push_back(-w.real());
  }
  return u;
}
template <class In, class Out>
void split_range(const In* x, Out* to, std::int64_t m, std::int64_t first, std::int64_t last, const double* u,
                 double scale) {
  if (first == 0) {
    const double re = x[0], im = x[1];
    to[2 * m] = static_cast<Out>((re - im) * scale);
    to[0] = static_cast<Out>((re + im) * scale);
    to[1] = to[2 * m + 1] = 0;
  }
  fourier_fold(FourierFold<In, Out>{x, to, m, std::max<std::int64_t>(first, 1), last, u, 1, 0.5 * scale});
}
template <class In, class Out>
void join_range(const In* x, Out* to, std::int64_t m, std::int64_t first, std::int64_t last,
                const double* u) {
  if (first == 0) {
    const double start = x[0], middle = x[2 * m];
    to[0] = static_cast<Out>(start + middle);
    to[1] = static_cast<Out>(start - middle);
  }
  fourier_fold(FourierFold<In, Out>{x, to, m, std::max<std::int64_t>(first, 1), last, u, -1, 1});
}

/// Lines of one worker, as complex numbers in its scratch memory.
class RealFourier {
 public:
  explicit RealFourier(std::int64_t n)
      : n_(n),
        m_(n % 2 == 0 ? n / 2 : n),
        line_(ceil_div(m_, std::int64_t{4}) * 4),
        transform_(m_),
        u_(n % 2 == 0 ? fold_turns(n) : nullptr) {}
  std::int64_t block() const { return transform_.block(); }
  std::int64_t room() const { return 2 * line_ * block() + transform_.room(); }
  double cost_ns() const { return transform_.cost_ns() + 3 * static_cast<double>(m_); }

  template <class T>
  void forward(std::int64_t count, const T* from, T* to, double scale, double* room) const {
    const std::int64_t numbers = n_ / 2 + 1;
    if (u_ && transform_.direct() != nullptr) return folded(count, from, m_, to, numbers, 1, scale, room);
    double* const rest = room + 2 * line_ * block();
    if (u_) {
      transform_.lines(count, from, m_, room, line_, false, 1, rest);
      for (std::int64_t l = 0; l < count; l++)
        split_range(room + 2 * line_ * l, to + 2 * numbers * l, m_, 0, m_ / 2 + 1, u_->data(), scale);
      return;
    }
    for (std::int64_t l = 0; l < count; l++)
      for (std::int64_t k = 0; k < n_; k++) {
        double* const z = room + 2 * (line_ * l + k);
        z[0] = static_cast<double>(from[n_ * l + k]), z[1] = 0;
      }
    transform_.lines(count, room, line_, room, line_, false, scale, rest);
    for (std::int64_t l = 0; l < count; l++)
      for (std::int64_t k = 0; k < 2 * numbers; k++)
        to[2 * numbers * l + k] = static_cast<T>(room[2 * line_ * l + k]);
  }
  template <class T>
  void inverse(std::int64_t count, const T* from, T* to, double scale, double* room) const {
    const std::int64_t numbers = n_ / 2 + 1;
    if (u_ && transform_.direct() != nullptr) return folded(count, from, numbers, to, m_, -1, scale, room);
    double* const rest = room + 2 * line_ * block();
    if (u_) {
      for (std::int64_t l = 0; l < count; l++)
        join_range(from + 2 * numbers * l, room + 2 * line_ * l, m_, 0, m_ / 2 + 1, u_->data());
      return transform_.lines(count, room, line_, to, m_, true, scale, rest);
    }
    for (std::int64_t l = 0; l < count; l++) {
      const T* const x = from + 2 * numbers * l;
      double* const z = room + 2 * line_ * l;
      z[0] = static_cast<double>(x[0]), z[1] = 0;
      for (std::int64_t k = 1; k < numbers; k++) {
        z[2 * k] = z[2 * (n_ - k)] = static_cast<double>(x[2 * k]);
        z[2 * k + 1] = static_cast<double>(x[2 * k + 1]);
        z[2 * (n_ - k) + 1] = -z[2 * k + 1];
      }
    }
    transform_.lines(count, room, line_, room, line_, true, scale, rest);
    for (std::int64_t l = 0; l < count; l++)
      for (std::int64_t k = 0; k < n_; k++) to[n_ * l + k] = static_cast<T>(room[2 * line_ * l + 2 * k]);
  }

 private:
  template <class T>
  void folded(std::int64_t count, const T* from, std::int64_t from_line, T* to, std::int64_t to_line,
              double side, double scale, double* room) const {
    const bool inverse = side < 0;
    fourier_lines(FourierLines<T, T>{transform_.direct()->passes(), count, from, 1, from_line, to, 1, to_line,
                                     inverse, inverse, scale, nullptr, room, u_->data(), side});
  }

  std::int64_t n_, m_, line_;  // line_: line stride in the scratch memory
  Fourier transform_;
  std::shared_ptr<const std::vector<double>> u_;
};

/// The fold of long lines as a stage, in place or from `in`.
template <class F> LibraryPlan fold_plan(std::int64_t count, std::int64_t m, F range) {
  constexpr std::int64_t block = 4096;
  const std::int64_t last = m / 2 + 1, blocks = ceil_div(last, block);
  return by_lines(count * blocks, 1, 2.0 * block, 0,
                  [=](void* const* bases, std::int64_t u, std::int64_t, double*) {
                    const std::int64_t first = u % blocks * block;
                    range(bases, u / blocks, first, std::min(first + block, last));
                  });
}
template <class T>
LibraryPlan long_real_plan(const LibraryCall::Item& item, std::int64_t count, std::int64_t n, bool inverse) {
  const std::int64_t m = n / 2;
  const Ref in = item.in[0], out = item.out[0], between = item.out[1];
  const auto u = fold_turns(n);
  const auto transform = std::make_shared<const TwoStepFourier>(m);
  const double scale = scale_in(item);
  if (inverse) {
    const LongLines<T> both{count, transform, out, between, out, m, m, m, true, scale};
    return fold_plan(count, m,
                     [=](void* const* bases, std::int64_t l, std::int64_t first, std::int64_t last) {
                       join_range(elements<const T>(bases, in) + 2 * (m + 1) * l,
                                  elements<T>(bases, out) + 2 * m * l, m, first, last, u->data());
                     })
        .then(both.columns())
        .then(both.rows());
  }
  const LongLines<T> both{count, transform, in, between, out, m, m, m + 1, false, 1};
  return both.columns()
      .then(both.rows())
      .then(
          fold_plan(count, m, [=](void* const* bases, std::int64_t l, std::int64_t first, std::int64_t last) {
            T* const x = elements<T>(bases, out) + 2 * (m + 1) * l;
            split_range(x, x, m, first, last, u->data(), scale);
          }));
}
template <class T> LibraryPlan real_plan(const LibraryCall::Item& item, bool inverse) {
  const FourierShape l(inverse ? item.out_shapes[0] : item.in_shapes[0]);
  if (l.count == 0 || l.n == 0) return nothing();
  if (item.out.size() > 1) return long_real_plan<T>(item, l.count, l.n, inverse);
  const auto transform = std::make_shared<const RealFourier>(l.n);
  const std::int64_t line = 2 * (l.n / 2 + 1);
  return by_lines(l.count, transform->block(), transform->cost_ns(), transform->room(),
                  [=, scale = scale_in(item), in = item.in[0], out = item.out[0]](
                      void* const* bases, std::int64_t first, std::int64_t count, double* room) {
                    const T* const from = elements<const T>(bases, in) + first * (inverse ? line : l.n);
                    T* const to = elements<T>(bases, out) + first * (inverse ? l.n : line);
                    if (inverse) transform->inverse(count, from, to, scale, room);
                    else transform->forward(count, from, to, scale, room);
                  });
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
