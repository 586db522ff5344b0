// Sums, products, running sums, matrix products, scatter and sort of complex arrays, in terms of their parts.
#include <fmt/core.h>

#include <limits>

#include "graph/trace_state.h"
#include "ops/complex.h"
#include "ops/rules.h"

namespace shardarray::complex_ops {

using rules::from_first;

namespace {

[[noreturn]] void refuse(const char* function, const Array& z, const char* rule) {
  throw DTypeError(fmt::format("{}: an operand is {}. {}. Give it real(x), imag(x) or abs(x).",
                               current_function(function), to_string(type_of(z)), rule));
}

// Multiplies the two halves repeatedly; an odd element is appended.
Array product_along(Array z, std::size_t dim) {
  Shape without = z.shape();
  without.erase(dim);
  if (z.shape()[dim] == 0) return one_of({without, z.dtype(), type_of(z).weak});
  for (std::int64_t n = z.shape()[dim]; n > 1; n = z.shape()[dim]) {
    const std::int64_t half = n / 2;
    Array left =
        primitive::mul(primitive::slice_dim(z, dim, 0, half), primitive::slice_dim(z, dim, half, 2 * half));
    const Array parts[] = {left, n % 2 == 0 ? left : primitive::slice_dim(z, dim, n - 1, n)};
    z = n % 2 == 0 ? left : primitive::concatenate(parts, dim);
  }
  return primitive::reshape(z, without);
}

// Reduces the real parts, then the imaginary parts of elements with the extremal real part; NaN is extremal.
Array extremum(Reducer r, const Complex& z, const Attrs& a) {
  const auto reduced = [&](const Array& x) { return record(op_reduce, {x}, a); };
  const Shape& shape = z.re.shape();
  Shape dims;
  for (const std::int64_t d : a.dims) dims.push_back(static_cast<std::int64_t>(from_first(d, shape.size())));
  const Array re = reduced(z.re);
  const Array best = primitive::expand_reduced(re, shape, dims);
  const auto is_nan = [](const Array& x) { return primitive::binary(op_ne, x, x); };
  const Array hit = primitive::binary(op_or, primitive::binary(op_eq, z.re, best),
                                      primitive::binary(op_and, is_nan(z.re), is_nan(best)));
  const double worst = std::numeric_limits<double>::infinity() * (r == Reducer::max ? -1 : 1);
  return primitive::pair(re, reduced(primitive::select(hit, z.im, primitive::like(z.im, worst))));
}

}  // namespace

Arrays reduce(std::span<const Array> in, const Attrs& attrs) {
  switch (attrs.reducer) {
    case Reducer::sum: return each_part<op_reduce>(in, attrs);
    case Reducer::prod: {
      Array z = in[0];
      Shape dims = attrs.dims;
      std::sort(dims.begin(), dims.end());  // leading dimension first: the others count from the end
      for (const std::int64_t d : dims) z = product_along(z, from_first(d, z.shape().size()));
      return {z};
    }
    case Reducer::max:
    case Reducer::min: return {extremum(attrs.reducer, Complex(in[0]), attrs)};
    default: refuse("reduce", in[0], "Only sum, prod, max and min are defined for complex numbers");
  }
}

// Products by doubling: multiplies in what is 1, 2, 4, ... elements before.
Arrays scan(std::span<const Array> in, const Attrs& attrs) {
  if (attrs.reducer == Reducer::sum) return each_part<op_scan>(in, attrs);
  if (attrs.reducer != Reducer::prod)
    refuse("prefix_scan", in[0], "Only running sums and products are defined for complex numbers");
  Array z = in[0];
  const std::size_t dim = from_first(attrs.dims[0], z.shape().size());
  const bool reverse = attrs.step[0] < 0;
  for (std::int64_t by = 1, n = z.shape()[dim]; by < n; by *= 2) {
    const Array kept = primitive::slice_dim(z, dim, reverse ? n - by : 0, reverse ? n : by),
                moved = primitive::mul(primitive::slice_dim(z, dim, 0, n - by),
                                       primitive::slice_dim(z, dim, by, n));
    const Array parts[] = {reverse ? moved : kept, reverse ? kept : moved};
    z = primitive::concatenate(parts, dim);
  }
  return {z};
}

Arrays scatter(std::span<const Array> in, const Attrs& attrs) {
  if (attrs.reducer != Reducer::sum)
    refuse("scatter", in[1], "Only sums of rows are defined for complex numbers");
  return each_part<op_scatter>(in, attrs);
}

// Stable sorts by the imaginary, then by the real parts. Complex payloads are sorted as parts.
Arrays sort(std::span<const Array> in, const Attrs& attrs) {
  Arrays parts;
  std::vector<bool> is_pair;
  for (const Array& x : in) {
    is_pair.push_back(is_complex(type_of(x).dtype));
    parts.push_back(primitive::real(x));
    if (is_pair.back()) parts.push_back(primitive::imag(x));
  }
  const auto by_first = [&] { return record_all(op_sort, parts, std::make_shared<const Attrs>(attrs), {}); };
  if (is_pair[0]) {
    std::swap(parts[0], parts[1]);
    parts = by_first();
    std::swap(parts[0], parts[1]);
  }
  parts = by_first();
  Arrays out;
  std::size_t next = 0;
  for (const bool pair : is_pair) {
    out.push_back(pair ? primitive::pair(parts[next], parts[next + 1]) : parts[next]);
    next += pair ? 2 : 1;
  }
  return out;
}

}  // namespace shardarray::complex_ops
