// Discrete Fourier transforms: names, values and options of jax.numpy.fft.
//
// fft(x)[k] is the sum of x[j] exp(-2 pi i j k / n) over j. What is not transformed may be cut and stays where it is, every device
// transforms its own rows; a dimension that is transformed is gathered. Integers and bool become floating as in JAX, 16-bit floats
// float32. Any length is right, also a large prime (Bluestein's algorithm). CPU devices compute it, for CUDA
// devices the host, which waits. All throw ShapeError for an axis that there is not, and for lengths below 1.
#pragma once
#include <optional>

#include "shardarray/array.h"
#include "shardarray/detail/function.h"

namespace shardarray::fft {

/// Which direction is divided by what: the inverse by n; both by sqrt(n); the one that is not inverse by n.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Norm : std::uint8_t { backward, ortho, forward };
#pragma GCC diagnostic pop

/// Options of transforms along one axis: `fft(x, {.n = 64, .norm = Norm::ortho})`.
struct Options {
  std::optional<std::int64_t> n = std::nullopt;  ///< the length: x is cut, or continued with zeros; x's own
  std::int64_t axis = -1;
  Norm norm = Norm::backward;
};
/// Options of transforms along several axes: `fftn(x, {.axes = {{0, 2}}})`.
struct AxesOptions {
  std::optional<Shape> s = std::nullopt;  ///< the lengths, one for each axis
  std::optional<Shape> axes =
      std::nullopt;  ///< all, or the last ones if there are lengths; of the 2 functions the last two
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

/// [.., n, ..] -> complex [.., n, ..]: the transform, and its inverse (of exp(+2 pi i j k / n), divided by n).
inline constexpr detail::Transform<"fft"> fft{};
inline constexpr detail::Transform<"ifft"> ifft{};
/// The first n / 2 + 1 elements of the transform of real x, of which the others are conjugates. Throws DTypeError for complex x.
inline constexpr detail::Transform<"rfft"> rfft{};
/// The inverse of rfft, real: x has the first n / 2 + 1 elements; n is 2 (m - 1) for m of them unless given. The imaginary parts of the
/// first one, and of the last one where n is even, count nothing.
inline constexpr detail::Transform<"irfft"> irfft{};
/// The transform, real, of what has n / 2 + 1 elements and goes on with their conjugates; and its inverse, of real x.
inline constexpr detail::Transform<"hfft"> hfft{};
inline constexpr detail::Transform<"ihfft"> ihfft{};

/// The same along several axes, one after the other; rfftn and irfftn are real along the last one. Throw ShapeError for another number of
/// lengths than of axes, and for an axis that stands twice.
inline constexpr detail::AxesTransform<"fftn"> fftn{};
inline constexpr detail::AxesTransform<"ifftn"> ifftn{};
inline constexpr detail::AxesTransform<"rfftn"> rfftn{};
inline constexpr detail::AxesTransform<"irfftn"> irfftn{};
inline constexpr detail::AxesTransform<"fft2"> fft2{};
inline constexpr detail::AxesTransform<"ifft2"> ifft2{};
inline constexpr detail::AxesTransform<"rfft2"> rfft2{};
inline constexpr detail::AxesTransform<"irfft2"> irfft2{};

/// [n]: the frequency of each element of fft, cycles for each unit of the distance d of samples: 0, 1, .., -1 over n d. Throws
/// ShapeError for n < 1, DTypeError for a dtype that is not floating.
inline constexpr struct SHARDARRAY_API fftfreq_fn {
  [[nodiscard]] Array operator()(std::int64_t n, double d = 1, DType dtype = float32,
                                 Where w = Where::here()) const;
} fftfreq{};
/// [n / 2 + 1]: those of rfft.
inline constexpr struct SHARDARRAY_API rfftfreq_fn {
  [[nodiscard]] Array operator()(std::int64_t n, double d = 1, DType dtype = float32,
                                 Where w = Where::here()) const;
} rfftfreq{};
/// The frequency 0 in the middle, at n / 2, and back to the front. Along all axes unless some are named.
inline constexpr struct SHARDARRAY_API fftshift_fn {
  [[nodiscard]] Array operator()(const Array& x, const AxisSet& axes = {}, Where w = Where::here()) const;
} fftshift{};
inline constexpr struct SHARDARRAY_API ifftshift_fn {
  [[nodiscard]] Array operator()(const Array& x, const AxisSet& axes = {}, Where w = Where::here()) const;
} ifftshift{};

}  // namespace shardarray::fft
