// Packing eight bools into a byte, and unpacking.
#include <fmt/core.h>

#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/rearrange.h"

namespace shardarray {

// [8]: the shift of each bit of a byte.
static Array shifts(BitOrder order, DType t, const Shape& shape) {
  const Array up = primitive::iota(shape, shape.size() - 1, t);
  return order == BitOrder::little ? up : primitive::sub(primitive::like_whole(up, 7), up);
}
static Array flat_without_axis(const char* function, const Array& x, std::optional<std::int64_t> axis) {
  return axis ? x : primitive::reshape(x, {num_elements(type_of(x, function).shape)});
}
Array packbits_fn::operator()(const Array& x, std::optional<std::int64_t> axis, BitOrder order,
                              Where w) const {
  const Site site(w, "packbits");
  if (!is_integer(type_of(x, "packbits").dtype) && x.dtype() != DType::bool_)
    api::refuse_dtype("packbits", x, "It packs integers and bool");
  const Array y = flat_without_axis("packbits", x, axis);
  const auto dim = static_cast<std::int64_t>(api::axis_of("packbits", axis.value_or(0), y.shape()));
  Array bits = primitive::cast(moveaxis(api::to_bool(y, "packbits"), dim, -1), DType::uint32);
  Shape shape = bits.shape();
  const std::int64_t n = shape.back(), bytes = (n + 7) / 8;
  Shape nothing = Shape::filled(shape.size(), 0), behind = nothing;
  behind[shape.size() - 1] = bytes * 8 - n;
  bits = primitive::pad(bits, nothing, behind);
  shape[shape.size() - 1] = bytes;
  shape.push_back(8);
  bits = primitive::reshape(bits, shape);
  const Array placed = primitive::binary(op_shl, bits, shifts(order, DType::uint32, shape));
  const Array packed = primitive::reduce(Reducer::sum, placed, {static_cast<std::int64_t>(shape.size()) - 1});
  return moveaxis(primitive::cast(packed, DType::uint8), -1, dim);
}
Array unpackbits_fn::operator()(const Array& x, const UnpackbitsOptions& o, Where w) const {
  const Site site(w, "unpackbits");
  if (type_of(x, "unpackbits").dtype != DType::uint8) api::refuse_dtype("unpackbits", x, "It unpacks uint8");
  const Array y = flat_without_axis("unpackbits", x, o.axis);
  const auto dim = static_cast<std::int64_t>(api::axis_of("unpackbits", o.axis.value_or(0), y.shape()));
  const Array bytes = moveaxis(y, dim, -1);
  Shape apart = bytes.shape(), wide = apart, flat = apart;
  apart.push_back(1);
  wide.push_back(8);
  const std::size_t last = flat.size() - 1;
  flat[last] = mul_sizes(flat[last], 8);
  const Array each = primitive::broadcast_to(primitive::reshape(bytes, apart), wide);
  const Array shift = shifts(o.order, DType::uint8, wide);
  const Array bit =
      primitive::binary(op_and, each, primitive::binary(op_shl, primitive::like_whole(each, 1), shift));
  Array bits = primitive::reshape(
      primitive::cast(primitive::binary(op_ne, bit, primitive::like_whole(bit, 0)), DType::uint8), flat);
  if (o.count) {
    if (*o.count < 0)
      throw ShapeError(
          fmt::format("unpackbits: {} bits. The number is not negative. Leave it out for all.", *o.count));
    Shape nothing = Shape::filled(flat.size(), 0), behind = nothing;
    behind[last] = std::max<std::int64_t>(0, *o.count - flat[last]);
    bits = primitive::slice_dim(primitive::pad(bits, nothing, behind), last, 0, *o.count);
  }
  return moveaxis(bits, -1, dim);
}

}  // namespace shardarray
