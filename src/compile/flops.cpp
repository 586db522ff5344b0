#include "compile/flops.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "runtime/contraction.h"

namespace shardarray {
namespace {

double elements(const Shape& shape) { return static_cast<double>(num_elements(shape)); }
/// The product of all dimensions but the last `rank`.
double how_many(const Shape& shape, std::size_t rank) {
  return elements(Shape(std::span<const std::int64_t>(shape).first(shape.size() - rank)));
}

double factorization(std::string_view name, const Shape& shape) {
  const auto m = static_cast<double>(shape[shape.size() - 2]), n = static_cast<double>(shape.back());
  const double k = std::min(m, n), most = std::max(m, n);
  const double one = name == "cholesky" ? k * k * k / 3
                     : name == "lu"     ? k * k * (most - k / 3)
                     : name == "qr"     ? 4 * k * k * (most - k / 3)  // R, then Q
                     : name == "eigh"   ? 9 * k * k * k
                                        : 6 * k * k * most + 20 * k * k * k;  // svd
  return one * how_many(shape, 2);
}

/// On real numbers.
double operations(const LibraryCall& call, const LibraryCall::Item& x) {
  const std::string_view name = call.name;
  const Shape &in = x.in_shapes[0], &out = x.out_shapes[0];
  if (name == "sort" || name == "update") return 0;
  if (name == "conv") return 2 * products_of(Contraction::of(x.params));
  if (name == "scatter" || name == "update_rows") {
    const bool overwrites = static_cast<Reducer>(x.params[1]) == Reducer::none;
    return overwrites ? 0 : elements(x.in_shapes.back());
  }
  if (name == "scan") {
    const auto n = static_cast<double>(in[static_cast<std::size_t>(x.params[0])]);
    return n > 0 ? elements(in) - elements(in) / n : 0;
  }
  if (name == "fft" || name == "rfft" || name == "irfft") {
    const auto n = static_cast<double>(std::max(in.back(), out.back()));
    return (name == "fft" ? 5 : 2.5) * n * std::log2(std::max(n, 1.0)) * how_many(out, 1);
  }
  if (name == "triangular_solve") return static_cast<double>(in.back()) * elements(out);
  if (name == "lu_solve") return 2 * static_cast<double>(in.back()) * elements(out);
  return factorization(name, in);
}

double& of(std::vector<double>& of_device, int device) { return of_device[static_cast<std::size_t>(device)]; }

}  // namespace

void add_flops(const Step& step, const GroupKernel& kernel, std::vector<double>& of_device) {
  if (const auto* const loop = std::get_if<Loop>(&step.body))
    for (const Loop::Item& x : loop->items) {
      const std::span<const std::int64_t> extents(x.extents);
      const double rows = elements(Shape(extents.first(static_cast<std::size_t>(loop->kernel->outer))));
      const double points = elements(x.extents);
      of(of_device, x.device) += kernel.per_row * rows + kernel.per_point * points +
                                 kernel.reductions * std::max(0.0, points - rows);
    }
  if (const auto* const product = std::get_if<Gemm>(&step.body); product && is_inexact(product->in))
    for (const Gemm::Item& x : product->items)
      of(of_device, x.device) += 2.0 * static_cast<double>(x.m) * static_cast<double>(x.n) *
                                 static_cast<double>(x.k) * static_cast<double>(x.batch);
  if (const auto* const call = std::get_if<LibraryCall>(&step.body)) {
    const DType t = call->in_types.back();  // a scatter's first operands are row numbers
    if (!is_inexact(t)) return;
    const double each = is_complex(t) && !call->name.ends_with("fft") ? 4 : 1;
    for (const LibraryCall::Item& x : call->items) of(of_device, x.device) += each * operations(*call, x);
  }
}

}  // namespace shardarray
