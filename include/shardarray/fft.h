// Discrete Fourier transforms, with the names, values and options of jax.numpy.fft.
//
// fft(x)[k] is the sum of x[j] exp(-2 pi i j k / n) over j. Dimensions that are not transformed may be sharded and stay in place, every
// device transforming its own rows; a transformed dimension is gathered. Integers and bool become floating as in JAX, 16-bit floats
// float32. Any length is supported, including large primes (Bluestein's algorithm). Computed by CPU devices, for CUDA devices by the
// host, which waits. All throw ShapeError for an axis that does not exist, and for lengths below 1.
#pragma once
#include <optional>

#include "shardarray/array.h"
#include "shardarray/detail/function.h"

namespace shardarray::fft {

/// The normalisation: the inverse is divided by n; both by sqrt(n); or the forward transform by n.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Norm : std::uint8_t { backward, ortho, forward };
#pragma GCC diagnostic pop

/// Options of transforms along one axis: `fft(x, {.n = 64, .norm = Norm::ortho})`.
struct Options {
  std::optional<std::int64_t> n = std::nullopt;  ///< the length: x is truncated or zero-padded; none: its own
  std::int64_t axis = -1;
  Norm norm = Norm::backward;
};
/// Options of transforms along several axes: `fftn(x, {.axes = {{0, 2}}})`.
struct AxesOptions {
  std::optional<Shape> s = std::nullopt;  ///< the lengths, one per axis
  std::optional<Shape> axes =
      std::nullopt;  ///< all, or the last ones if lengths are given; for the 2-D functions the last two
  Norm norm = Norm::backward;
};

namespace detail {
/// f(x, o) for each name.
template <shardarray::detail::FixedString name> struct SHARDARRAY_API Transform {
  [[nodiscard]] Array operator()(const Array& x, const Options& o = {}, Where w = Where::here()) const;
};
template <shardarray::detail::FixedString name> struct SHARDARRAY_API AxesTransform {
  [[nodiscard]] Array operator()(const Array& x, const AxesOptions& o = {}, Where w = Where::here()) const;
};
}  // namespace detail

/// The transform, [.., n, ..] -> complex [.., n, ..], and its inverse (with exp(+2 pi i j k / n), divided by n).
inline constexpr detail::Transform<"fft"> fft{};
inline constexpr detail::Transform<"ifft"> ifft{};
/// The first n / 2 + 1 elements of the transform of real x; the others are their conjugates. Throws DTypeError for complex x.
inline constexpr detail::Transform<"rfft"> rfft{};
/// The inverse of rfft, real: x has the first n / 2 + 1 elements; n defaults to 2 (m - 1) for m elements. Imaginary parts of the first
/// element, and of the last one for even n, are ignored.
inline constexpr detail::Transform<"irfft"> irfft{};
/// The transform, real, of n / 2 + 1 elements continued by their conjugates; and its inverse, for real x.
inline constexpr detail::Transform<"hfft"> hfft{};
inline constexpr detail::Transform<"ihfft"> ihfft{};

/// The same along several axes in sequence; rfftn and irfftn are real along the last one. Throw ShapeError unless there is one length per
/// axis, and for a repeated axis.
inline constexpr detail::AxesTransform<"fftn"> fftn{};
inline constexpr detail::AxesTransform<"ifftn"> ifftn{};
inline constexpr detail::AxesTransform<"rfftn"> rfftn{};
inline constexpr detail::AxesTransform<"irfftn"> irfftn{};
inline constexpr detail::AxesTransform<"fft2"> fft2{};
inline constexpr detail::AxesTransform<"ifft2"> ifft2{};
inline constexpr detail::AxesTransform<"rfft2"> rfft2{};
inline constexpr detail::AxesTransform<"irfft2"> irfft2{};

/// [n]: the frequencies of fft's elements, in cycles per unit of the sample distance d: 0, 1, .., -1 over n d. Throws ShapeError for n <
/// 1, DTypeError for a dtype that is not floating.
inline constexpr struct SHARDARRAY_API fftfreq_fn {
  [[nodiscard]] Array operator()(std::int64_t n, double d = 1, DType dtype = float32,
                                 Where w = Where::here()) const;
} fftfreq{};
/// [n / 2 + 1]: the frequencies of rfft's elements.
inline constexpr struct SHARDARRAY_API rfftfreq_fn {
  [[nodiscard]] Array operator()(std::int64_t n, double d = 1, DType dtype = float32,
                                 Where w = Where::here()) const;
} rfftfreq{};
/// Moves the zero frequency to the middle, at n / 2, and back to the front. Along all axes unless some are given.
inline constexpr struct SHARDARRAY_API fftshift_fn {
  [[nodiscard]] Array operator()(const Array& x, const AxisSet& axes = {}, Where w = Where::here()) const;
} fftshift{};
inline constexpr struct SHARDARRAY_API ifftshift_fn {
  [[nodiscard]] Array operator()(const Array& x, const AxisSet& axes = {}, Where w = Where::here()) const;
} ifftshift{};

}  // namespace shardarray::fft
