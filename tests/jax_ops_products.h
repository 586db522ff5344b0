// Products, windows, transforms and matrices by their names in ops.json.
#pragma once
#include <algorithm>
#include <string>

#include "jax_ops_arrays.h"
#include "shardarray/fft.h"

namespace jax_ops_test {

inline sa::ConvolveMode convolve_mode(const std::string& name) {
  return name == "full"   ? sa::ConvolveMode::full
         : name == "same" ? sa::ConvolveMode::same
                          : sa::ConvolveMode::valid;
}
inline sa::Padding padding_of(const Json& j) {
  return j.is_string() ? sa::Padding(j.get<std::string>()) : sa::Padding(widths_of(j));
}
inline sa::Shape shape_attr(const Json& a, const char* name) {
  return a.contains(name) ? golden::shape_of(a[name]) : sa::Shape{};
}
/// einsum's letters of lax.dot_general's numbers.
inline Arrays dot_general(const Arrays& x, const Json& a) {
  const Json &summed = a["dimension_numbers"][0], &batch = a["dimension_numbers"][1];
  std::string letters[2], result;
  for (int side = 0; side < 2; side++)
    for (int d = 0; d < x[static_cast<std::size_t>(side)].ndim(); d++) {
      const auto place = [&](const Json& list) {
        return std::find(list[side].begin(), list[side].end(), d) - list[side].begin();
      };
      const auto size = [&](const Json& list) { return static_cast<std::ptrdiff_t>(list[side].size()); };
      if (place(batch) < size(batch)) letters[side] += static_cast<char>('a' + place(batch));
      else if (place(summed) < size(summed)) letters[side] += static_cast<char>('i' + place(summed));
      else letters[side] += static_cast<char>((side ? 'v' : 'r') + d);
    }
  for (std::size_t k = 0; k < batch[0].size(); k++) result += static_cast<char>('a' + k);
  for (int side = 0; side < 2; side++)
    for (const char c : letters[side])
      if (c >= 'r') result += c;
  return {sa::einsum(letters[0] + "," + letters[1] + "->" + result, x[0], x[1])};
}
inline Arrays convolved(const Arrays& x, const Json& a) {
  sa::ConvOptions o{.window_strides = shape_attr(a, "strides"),
                    .padding = padding_of(a["padding"]),
                    .lhs_dilation = shape_attr(a, "lhs_dilation"),
                    .rhs_dilation = shape_attr(a, "rhs_dilation"),
                    .feature_group_count = a.value("groups", 1),
                    .batch_group_count = a.value("batch_groups", 1)};
  if (a.contains("dn")) o.dimension_numbers = {a["dn"][0], a["dn"][1], a["dn"][2]};
  return {sa::conv_general_dilated(x[0], x[1], o)};
}
template <auto& f> Arrays pooled(const Arrays& x, const Json& a) {
  return {f(x[0], golden::shape_of(a["window"]),
            {.strides = shape_attr(a, "strides"),
             .padding = padding_of(a["padding"]),
             .dilation = shape_attr(a, "dilation")})};
}
inline const Table& products() {
  static const Table table = {
      {"outer", binary<sa::outer>},
      {"kron", binary<sa::kron>},
      {"cross", binary<sa::cross>},
      {"interp", [](const Arrays& x, const Json&) -> Arrays { return {sa::interp(x[0], x[1], x[2])}; }},
      {"gradient", unary<sa::gradient>},
      {"convolve",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::convolve(x[0], x[1], convolve_mode(a["mode"]))};
       }},
      {"correlate",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::correlate(x[0], x[1], convolve_mode(a["mode"]))};
       }},
      {"polyval", binary<sa::polyval>},
      {"einsum",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::einsum.contract(a["spec"].get<std::string>(), x)};
       }},
      {"lax.dot_general", dot_general},
      {"matmul", binary<sa::matmul>},
      {"tensordot", binary<sa::tensordot>},
      {"vdot", binary<sa::vdot>},
      {"inner", binary<sa::inner>},
      {"lax.conv_general_dilated", convolved},
      {"lax.reduce_window_max", pooled<sa::max_pool>},
      {"lax.reduce_window_min", pooled<sa::min_pool>},
      {"lax.reduce_window_add", pooled<sa::sum_pool>},
      {"fft.fft", unary<sa::fft::fft>},
      {"fft.rfft", unary<sa::fft::rfft>},
      {"fft.irfft",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::fft::irfft(sa::fft::rfft(x[0]), {.n = a["n"].get<int>()})};
       }},
      {"fft.ifft",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::fft::ifft(sa::complex(x[0], x[1]))}; }},
      {"fft.fft2", unary<sa::fft::fft2>},
      {"fft.fftshift", unary<sa::fft::fftshift>},
      {"fft.fftfreq",
       [](const Arrays&, const Json& a) -> Arrays { return {sa::fft::fftfreq(a["n"].get<int>())}; }},
      {"linalg.cholesky", unary<sa::linalg::cholesky>},
      {"linalg.qr_abs_r",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::abs(sa::linalg::qr(x[0]).r)}; }},
      {"linalg.eigvalsh", unary<sa::linalg::eigvalsh>},
      {"linalg.eigh_projector_top",
       [](const Arrays& x, const Json&) -> Arrays {
         const Array v = sa::linalg::eigh(x[0]).eigenvectors[{sa::all, -1}];
         return {sa::outer(v, v)};
       }},
      {"linalg.svdvals", unary<sa::linalg::svdvals>},
      {"linalg.solve", binary<sa::linalg::solve>},
      {"linalg.inv", unary<sa::linalg::inv>},
      {"linalg.det", unary<sa::linalg::det>},
      {"linalg.slogdet",
       [](const Arrays& x, const Json&) -> Arrays {
         const auto [sign, logabsdet] = sa::linalg::slogdet(x[0]);
         return {logabsdet, sign};  // as their names are ordered
       }},
      {"linalg.pinv", unary<sa::linalg::pinv>},
      {"linalg.lstsq",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::linalg::lstsq(x[0], x[1]).x}; }},
      {"linalg.matrix_power",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::matrix_power(x[0], 3)}; }},
      {"scipy.solve_triangular",
       [](const Arrays& x, const Json& a) -> Arrays {
         return {sa::linalg::solve_triangular(x[0], x[1], {.lower = a["lower"].get<bool>()})};
       }},
      {"scipy.expm", unary<sa::linalg::expm>},
      {"nn.softmax", along<sa::softmax>},
      {"nn.log_softmax", along<sa::log_softmax>},
      {"nn.standardize", along<sa::standardize>},
      {"nn.softmax_where",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::softmax(x[0], {.where = x[0] > -0.5})}; }},
      {"nn.glu", unary<sa::glu>},
      {"integer_pow",
       [](const Arrays& x, const Json& a) -> Arrays { return {sa::power(x[0], a["exponent"].get<int>())}; }}};
  return table;
}

}  // namespace jax_ops_test
