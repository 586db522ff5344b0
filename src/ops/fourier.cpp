// Discrete Fourier transforms along the last dimension, and the functions of jax.numpy.fft in terms of them.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/complex_parts.h"
#include "base/count_text.h"
#include "graph/trace_state.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include "runtime/fourier_sizes.h"
#include "shardarray/fft.h"
#include "shardarray/ops.h"

namespace shardarray {

using namespace rules;

// ---------------------------------------------------------------- the three ops
// As they sum very many products, they are not marked `linear`: partial sums are combined first, not transformed one by one.
static std::int64_t last_size(const Shape& s) { return s[s.size() - 1]; }
static Type resized_type(const Call& c, DType t, std::int64_t n) {
  Shape shape = c.in[0].shape;
  shape[shape.size() - 1] = n;
  return {shape, t, c.in[0].weak};
}
static std::int64_t half_size(std::int64_t n) { return n / 2 + 1; }
static Array first_of(const Op& op, const Array& x, Attrs a) {
  return record_all(op, {&x, 1}, std::make_shared<const Attrs>(std::move(a)), {})[0];
}
static Array like_node(const Node& n, const Array& x) { return first_of(*n.op, x, n.attrs()); }
static Arrays of_tangent(const JvpArgs& v) {
  Arrays r(v.out.size());
  r[0] = like_node(v.node, v.tangents[0]);
  return r;
}
// A second result is scratch for workers that share one transform.
static Types with_room(Type t, bool is_shared, DType pairs, std::int64_t n) {
  Types r{t};
  if (!is_shared) return r;
  t.shape[t.shape.size() - 1] = n;
  t.dtype = pairs;
  r.push_back(std::move(t));
  return r;
}
static std::vector<std::int64_t> with_scale(const Attrs& a, std::vector<std::int64_t> params) {
  params.push_back(static_cast<std::int64_t>(a.bits));
  return params;
}

static Array fourier_sums(const Array& x, int sign, double scale);
static Array real_fourier_sums(const Array& x, double scale);
static double scale_of(const Attrs& a) { return std::bit_cast<double>(a.bits); }

// The last dimension: sums of x[j] exp(s 2 pi i j k / n), scaled. attrs.step = {s}; bits: the scale. The transform's matrix is symmetric,
// so it is its own transpose.
SHARDARRAY_OP op_fft{
    .name = "fft",
    .form = Form::library,
    .rule =
        [](const Call& c) {
          return matrices_rule(c, is_shared_fourier(last_size(c.in[0].shape)) ? "i->i,i" : "i->i");
        },
    .type =
        [](const Call& c) {
          const std::int64_t n = last_size(c.in[0].shape);
          return with_room(c.in[0], is_shared_fourier(n), c.in[0].dtype, n);
        },
    .jvp = of_tangent,
    .transpose = [](const TransposeArgs& t) { return Arrays{like_node(t.node, t.cotangents[0])}; },
    .lower =
        [](const LowerArgs& l) {
          const Attrs& a = *l.call.attrs;
          return library_call(l, "fft", with_scale(a, {a.step[0]}));
        },
    .whole_complex = true};

// The first n / 2 + 1 sums of real numbers, s = -1. Transpose: the real part of the transform of the zero-padded operand.
SHARDARRAY_OP op_rfft{
    .name = "rfft",
    .form = Form::library,
    .rule =
        [](const Call& c) {
          return matrices_rule(c, is_shared_real_fourier(last_size(c.in[0].shape)) ? "i->j,k" : "i->j");
        },
    .type =
        [](const Call& c) {
          const std::int64_t n = last_size(c.in[0].shape);
          const DType pairs = pair_type(c.in[0].dtype);
          return with_room(resized_type(c, pairs, half_size(n)), is_shared_real_fourier(n), pairs, n / 2);
        },
    .jvp = of_tangent,
    .transpose =
        [](const TransposeArgs& t) {
          const Array& g = t.cotangents[0];
          const std::int64_t n = last_size(t.in[0].shape());
          Shape none = Shape::filled(g.shape().size(), 0), behind = none;
          behind[behind.size() - 1] = n - last_size(g.shape());
          const double scale = scale_of(t.node.attrs());
          return Arrays{primitive::real(fourier_sums(primitive::pad(g, none, behind), -1, scale))};
        },
    .lower = [](const LowerArgs& l) { return library_call(l, "rfft", with_scale(*l.call.attrs, {})); }};

// The real sums, s = 1, of the operand continued by its conjugates to attrs.shape[0] elements. Transpose: conjugates of rfft, where all but
// the first, and the one at n / 2, count twice.
SHARDARRAY_OP op_irfft{
    .name = "irfft",
    .form = Form::library,
    .rule =
        [](const Call& c) {
          return matrices_rule(c, is_shared_real_fourier(c.attrs->shape[0]) ? "i->j,k" : "i->j");
        },
    .type =
        [](const Call& c) {
          const std::int64_t n = c.attrs->shape[0];
          return with_room(resized_type(c, part_type(c.in[0].dtype), n), is_shared_real_fourier(n),
                           c.in[0].dtype, n / 2);
        },
    .jvp = of_tangent,
    .transpose =
        [](const TransposeArgs& t) {
          const Complex z(real_fourier_sums(t.cotangents[0], scale_of(t.node.attrs())));
          const std::int64_t n = t.node.attrs().shape[0], half = half_size(n);
          const Array at = primitive::iota({half}, 0, DType::int32);
          const auto is = [&](std::int64_t k) {
            return primitive::binary(op_eq, at, primitive::like_whole(at, k));
          };
          const Array alone = n % 2 == 0 ? primitive::binary(op_or, is(0), is(n / 2)) : is(0);
          const Array weight =
              primitive::broadcast_to(primitive::select(alone, primitive::full({half}, z.re.dtype(), 1),
                                                        primitive::full({half}, z.re.dtype(), 2)),
                                      z.re.shape());
          return Arrays{
              primitive::pair(primitive::mul(z.re, weight), primitive::neg(primitive::mul(z.im, weight)))};
        },
    .lower = [](const LowerArgs& l) { return library_call(l, "irfft", with_scale(*l.call.attrs, {})); },
    .whole_complex = true};

static Attrs scaled_attrs(double scale) {
  Attrs a;
  a.bits = std::bit_cast<std::uint64_t>(scale);
  return a;
}
static Array fourier_sums(const Array& x, int sign, double scale) {
  Attrs a = scaled_attrs(scale);
  a.step = {sign};
  return first_of(op_fft, x, std::move(a));
}
static Array real_fourier_sums(const Array& x, double scale) {
  return first_of(op_rfft, x, scaled_attrs(scale));
}
static Array real_fourier_inverse(const Array& x, std::int64_t n, double scale) {
  Attrs a = scaled_attrs(scale);
  a.shape = {n};
  return first_of(op_irfft, x, std::move(a));
}

// ---------------------------------------------------------------- lengths and axes
namespace {

using fft::AxesOptions;
using fft::Norm;
using fft::Options;

enum class FourierKind : std::uint8_t { complex, real, to_real };

double scale_for(Norm norm, bool inverse, std::int64_t n) {
  const auto size = static_cast<double>(n);
  if (norm == Norm::ortho) return 1 / std::sqrt(size);
  return (norm == Norm::backward) == inverse ? 1 / size : 1;
}
void need_length(const char* function, std::int64_t n) {
  if (n >= 1) return;
  throw ShapeError(fmt::format(
      "{}: a transform of {} elements. It has one at least. Give n, or an axis with elements.", function, n));
}
/// The last dimension, truncated or zero-padded.
Array of_fourier_length(const Array& x, std::int64_t n) {
  const std::size_t last = x.shape().size() - 1;
  const std::int64_t have = x.shape()[last];
  if (n <= have) return primitive::slice_dim(x, last, 0, n);
  Shape none = Shape::filled(last + 1, 0), behind = none;
  behind[last] = n - have;
  return primitive::pad(x, none, behind);
}
/// Applies f with dimension `dim` moved last, and moves it back.
template <class F> Array with_last(const Array& x, std::size_t dim, const F& f) {
  const std::size_t rank = x.shape().size();
  Shape last = dims_of_rank(rank);
  std::rotate(last.begin() + dim, last.begin() + dim + 1, last.end());
  return primitive::transpose(f(primitive::transpose(x, last)), inverse(last));
}
/// Floating or complex, with at least 32 bits.
Array fourier_operand(const char* function, const Array& x, bool make_complex) {
  const WeakType t = api::computed(api::to_inexact(api::weak_type_of(x, function)));
  const DType dtype = make_complex && !is_complex(t.dtype) ? pair_type(t.dtype) : t.dtype;
  return api::cast(x, {dtype, false});
}

Array along_one(const char* function, const Array& x, FourierKind kind, bool inverse_, const Norm norm,
                std::size_t dim, std::optional<std::int64_t> length) {
  const std::int64_t have = x.shape()[dim];
  const std::int64_t n = length.value_or(kind == FourierKind::to_real ? 2 * (have - 1) : have);
  need_length(function, n);
  const double scale = scale_for(norm, inverse_, n);
  return with_last(x, dim, [&](const Array& y) {
    if (kind == FourierKind::real) return real_fourier_sums(of_fourier_length(y, n), scale);
    if (kind == FourierKind::to_real)
      return real_fourier_inverse(of_fourier_length(y, half_size(n)), n, scale);
    return fourier_sums(of_fourier_length(y, n), inverse_ ? 1 : -1, scale);
  });
}

Array one_axis(const char* function, const Array& x, const Options& o, FourierKind kind, bool inverse_) {
  if (kind == FourierKind::real) api::need_real(function, x);
  const std::size_t dim = api::axis_of(function, o.axis, type_of(x, function).shape);
  return along_one(function, fourier_operand(function, x, kind != FourierKind::real), kind, inverse_, o.norm,
                   dim, o.n);
}

Array several_axes(const char* function, const Array& x, const AxesOptions& o, FourierKind kind,
                   bool inverse_, bool two) {
  if (kind == FourierKind::real) api::need_real(function, x);
  const Shape& shape = type_of(x, function).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  Shape axes;
  if (o.axes) axes = *o.axes;
  else if (two) axes = {-2, -1};
  else
    for (std::int64_t d = o.s ? rank - std::ssize(*o.s) : 0; d < rank; d++) axes.push_back(d);
  if (o.s && o.s->size() != axes.size())
    throw ShapeError(fmt::format("{}: {} for {}. There is one for each. Name the axes.", function,
                                 count_text(o.s->size(), "length"), count_text(axes.size(), "axis")));
  api::axes_of(function, axes, shape);
  if (axes.size() == 0 && kind != FourierKind::complex)
    throw ShapeError(
        fmt::format("{}: no axis. The last one is the one of real numbers. Name one.", function));
  Array y = fourier_operand(function, x, kind != FourierKind::real);
  const auto step = [&](std::size_t k, FourierKind how) {
    const std::size_t dim = api::axis_of(function, axes[k], shape);
    std::optional<std::int64_t> n;
    if (o.s) n = (*o.s)[k];
    y = along_one(function, y, how, inverse_, o.norm, dim, n);
  };
  if (kind == FourierKind::real) step(axes.size() - 1, kind);
  const std::size_t complex_axes = axes.size() - (kind == FourierKind::complex ? 0 : 1);
  for (std::size_t k = complex_axes; k-- > 0;) step(k, FourierKind::complex);
  if (kind == FourierKind::to_real) step(axes.size() - 1, kind);
  return y;
}
Norm exchanged(Norm norm) {
  return norm == Norm::backward ? Norm::forward : norm == Norm::forward ? Norm::backward : norm;
}

}  // namespace

namespace fft::detail {

#define SHARDARRAY_TRANSFORM(function, kind, inverse)                                                     \
  template <>                                                                                             \
  SHARDARRAY_API Array Transform<function>::operator()(const Array& x, const Options& o, Where w) const { \
    const Site site(w, "fft::" function);                                                                 \
    return one_axis("fft::" function, x, o, kind, inverse);                                               \
  }
SHARDARRAY_TRANSFORM("fft", FourierKind::complex, false)
SHARDARRAY_TRANSFORM("ifft", FourierKind::complex, true)
SHARDARRAY_TRANSFORM("rfft", FourierKind::real, false)
SHARDARRAY_TRANSFORM("irfft", FourierKind::to_real, true)
#undef SHARDARRAY_TRANSFORM
// Both use the opposite transform of the conjugate.
template <>
SHARDARRAY_API Array Transform<"hfft">::operator()(const Array& x, const Options& o, Where w) const {
  const Site site(w, "fft::hfft");
  const Array z = fourier_operand("fft::hfft", x, true);
  return one_axis("fft::hfft", primitive::conj(z), {o.n, o.axis, exchanged(o.norm)}, FourierKind::to_real,
                  true);
}
template <>
SHARDARRAY_API Array Transform<"ihfft">::operator()(const Array& x, const Options& o, Where w) const {
  const Site site(w, "fft::ihfft");
  return primitive::conj(
      one_axis("fft::ihfft", x, {o.n, o.axis, exchanged(o.norm)}, FourierKind::real, false));
}

#define SHARDARRAY_TRANSFORM(function, kind, inverse, two)                                                \
  template <>                                                                                             \
  SHARDARRAY_API Array AxesTransform<function>::operator()(const Array& x, const AxesOptions& o, Where w) \
      const {                                                                                             \
    const Site site(w, "fft::" function);                                                                 \
    return several_axes("fft::" function, x, o, kind, inverse, two);                                      \
  }
SHARDARRAY_TRANSFORM("fftn", FourierKind::complex, false, false)
SHARDARRAY_TRANSFORM("ifftn", FourierKind::complex, true, false)
SHARDARRAY_TRANSFORM("rfftn", FourierKind::real, false, false)
SHARDARRAY_TRANSFORM("irfftn", FourierKind::to_real, true, false)
SHARDARRAY_TRANSFORM("fft2", FourierKind::complex, false, true)
SHARDARRAY_TRANSFORM("ifft2", FourierKind::complex, true, true)
SHARDARRAY_TRANSFORM("rfft2", FourierKind::real, false, true)
SHARDARRAY_TRANSFORM("irfft2", FourierKind::to_real, true, true)
#undef SHARDARRAY_TRANSFORM

}  // namespace fft::detail

// ---------------------------------------------------------------- frequencies
static Array frequencies(const char* function, std::int64_t n, double d, DType dtype, bool half) {
  need_length(function, n);
  if (!is_floating(dtype))
    throw DTypeError(fmt::format("{}: dtype {}. Frequencies are fractions. Give a floating dtype.", function,
                                 name(dtype)));
  const std::int64_t count = half ? half_size(n) : n;
  const DType t = api::position_type({count});
  const Array k = primitive::iota({count}, 0, t);
  const Array wrapped = primitive::select(primitive::binary(op_lt, k, primitive::like_whole(k, (n + 1) / 2)),
                                          k, primitive::sub(k, primitive::like_whole(k, n)));
  const Array number = primitive::cast(half ? k : wrapped, api::computed(dtype));
  return api::created(
      primitive::cast(primitive::div(number, primitive::like(number, static_cast<double>(n) * d)), dtype));
}
Array fft::fftfreq_fn::operator()(std::int64_t n, double d, DType dtype, Where w) const {
  const Site site(w, "fft::fftfreq");
  return frequencies("fft::fftfreq", n, d, dtype, false);
}
Array fft::rfftfreq_fn::operator()(std::int64_t n, double d, DType dtype, Where w) const {
  const Site site(w, "fft::rfftfreq");
  return frequencies("fft::rfftfreq", n, d, dtype, true);
}

static Array frequency_shifted(const char* function, const Array& x, const AxisSet& axes, bool back) {
  const Shape& shape = type_of(x, function).shape;
  const Shape named = axes.all ? dims_of_rank(shape.size()) : api::axes_of(function, axes.axes, shape);
  Shape by = Shape::filled(shape.size(), 0);
  for (const std::int64_t d : named) {
    const std::int64_t n = shape[static_cast<std::size_t>(d)];
    by[static_cast<std::size_t>(d)] = back ? n - n / 2 : n / 2;
    if (by[static_cast<std::size_t>(d)] == n) by[static_cast<std::size_t>(d)] = 0;
  }
  return primitive::roll(x, by);
}
Array fft::fftshift_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "fft::fftshift");
  return frequency_shifted("fft::fftshift", x, axes, false);
}
Array fft::ifftshift_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "fft::ifftshift");
  return frequency_shifted("fft::ifftshift", x, axes, true);
}

}  // namespace shardarray
