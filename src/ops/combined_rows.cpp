#include "ops/combined_rows.h"

#include "graph/trace_state.h"
#include "ops/api.h"

namespace shardarray {

// A function with JAX's derivative of the extrema `best`, without storing rows x numbers: rows equal to their extremum share it; NaN where
// none is.
static Array shared_slope(const Array& best, const Array& rows, const Array& number) {
  const std::int64_t count = best.shape()[0];
  const auto of_number = [&](const Array& y) { return primitive::take(y, number, 0, 1); };
  const Array hit = primitive::cast(primitive::binary(op_eq, rows, of_number(best)), rows.dtype());
  const Array hits = of_number(primitive::scatter(number, hit, 0, 1, count));
  const Array inside =
      primitive::binary(op_and, primitive::binary(op_ge, number, primitive::like_whole(number, 0)),
                        primitive::binary(op_lt, number, primitive::like_whole(number, count)));
  const Array share =
      primitive::select(primitive::broadcast(inside, rows.shape(), {-std::ssize(rows.shape())}),
                        primitive::div(hit, hits), primitive::like(hit, 0));
  return primitive::scatter(number, primitive::mul(rows, share), 0, 1, count);
}
// For every row number the product of its rows, with 1 in place of the others.
static Array compared_product(const Array& rows, const Array& number, std::int64_t count) {
  Shape all = rows.shape();
  all.insert(0, count);
  check_type({all, rows.dtype()}, "prod");
  const std::int64_t rank = std::ssize(all);
  const Shape pairs{count, all[1]};
  const Array belongs = primitive::binary(op_eq, primitive::broadcast(number, pairs, {-1}),
                                          primitive::iota(pairs, 0, number.dtype()));
  const Array everywhere = primitive::broadcast_to(rows, all);
  return primitive::reduce(Reducer::prod,
                           primitive::select(primitive::broadcast(belongs, all, {-rank, 1 - rank}),
                                             everywhere, primitive::like(everywhere, 1)),
                           {1});
}

Array combined_rows(Reducer r, const Array& number, const Array& rows, std::int64_t count) {
  if (r == Reducer::sum || !is_floating(rows.dtype()))
    return primitive::scatter(number, rows, 0, 1, count, r);
  const Array value = primitive::scatter(number, primitive::unary(op_stop_gradient, rows), 0, 1, count, r);
  const DType wide = itemsize(number.dtype()) < 4 ? api::position_type({count}) : number.dtype();
  const Array at = primitive::cast(number, wide);
  return primitive::with_slope_of(
      value, r == Reducer::prod ? compared_product(rows, at, count) : shared_slope(value, rows, at));
}

Array last_of_row(const Array& number, std::int64_t batch_rank, std::int64_t count) {
  const auto dim = static_cast<std::size_t>(batch_rank);
  const Array order = primitive::iota(number.shape(), dim, api::position_type({number.shape()[dim]}));
  return primitive::take(primitive::scatter(number, order, batch_rank, 1, count, Reducer::max), number,
                         batch_rank, 1);
}

}  // namespace shardarray
