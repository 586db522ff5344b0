// expm.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/complex_parts.h"
#include "ops/complex.h"
#include "ops/matrices.h"
#include "shardarray/linalg.h"

namespace shardarray {
namespace {

// A Pade approximant of exp, and the 1-norm up to which it is accurate to the dtype's precision (Higham 2005, table 2.3; float32: Higham
// 2008, table 10.2).
struct Pade {
  double most_norm = 0;
  std::vector<double> coefficients;  // of the numerator; the denominator's alternate in sign
};
Pade pade_of(DType t) {
  if (part_type(t) == DType::float32)
    return {3.925724783138660, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}};
  return {5.371920351148152,
          {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
           10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}};
}

// c[first] x^0 + c[first + 2] x^2 + ... up to x^6, from the even powers.
Array even_sum(const std::vector<Array>& powers, const std::vector<double>& c, std::size_t first) {
  Array r;
  for (std::size_t k = 0; k < powers.size() && first + 2 * k < c.size(); k++)
    r = add_or(r, primitive::mul(powers[k], primitive::like(powers[k], c[first + 2 * k])));
  return r;
}

// The part with even (first = 0) or odd coefficients; the odd one lacks a factor x. Powers above x^6 are factored by x^6.
Array pade_part(const std::vector<Array>& powers, const std::vector<double>& c, std::size_t first) {
  Array low = even_sum(powers, c, first);
  if (c.size() <= 8) return low;
  const std::vector<Array> behind_one(powers.begin() + 1, powers.end());
  return primitive::add(matmul(powers.back(), even_sum(behind_one, c, first + 8)), low);
}

}  // namespace

Array linalg::expm_fn::operator()(const Array& a, const ExpmOptions& o, Where w) const {
  const Site site(w, "linalg::expm");
  WeakType t;
  const Array x = matrices::square_operand("linalg::expm", a, t);
  if (o.max_squarings < 0)
    throw Error(fmt::format("linalg::expm: max_squarings is {}. Their number is not negative. Correct it.",
                            o.max_squarings));
  if (x.shape().back() == 0) return api::cast(x, t);
  const Pade pade = pade_of(x.dtype());
  const Array norm =
      stop_gradient(max(sum(abs(x), {.axis = -2, .keepdims = true}), {.axis = -1, .keepdims = true}));
  const Array halvings = maximum(ceil(log2(primitive::div(norm, primitive::like(norm, pade.most_norm)))),
                                 primitive::like(norm, 0));
  const Array halved =
      primitive::mul_real(x, primitive::broadcast_to(exp2(primitive::neg(halvings)), x.shape()));
  std::vector<Array> powers{matrices::identity_like(x), matmul(halved, halved)};
  powers.push_back(matmul(powers[1], powers[1]));
  powers.push_back(matmul(powers[2], powers[1]));
  const Array even = pade_part(powers, pade.coefficients, 0),
              odd = matmul(halved, pade_part(powers, pade.coefficients, 1));
  Array r = linalg::solve(primitive::sub(even, odd), primitive::add(even, odd));
  for (std::int64_t k = 0; k < o.max_squarings; k++) {
    const Array still = primitive::binary(op_gt, halvings, primitive::like(halvings, static_cast<double>(k)));
    r = primitive::select(primitive::broadcast_to(still, r.shape()), matmul(r, r), r);
  }
  // NaN if the norm is too large or NaN
  const Array is_right =
      primitive::binary(op_le, halvings, primitive::like(halvings, static_cast<double>(o.max_squarings)));
  r = primitive::select(primitive::broadcast_to(is_right, r.shape()), r,
                        primitive::like(r, std::numeric_limits<double>::quiet_NaN()));
  return api::cast(r, t);
}

}  // namespace shardarray
