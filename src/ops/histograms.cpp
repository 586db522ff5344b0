// Multi-dimensional histograms: finds the bin in each dimension by search, then combines them to one position.
#include <fmt/core.h>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/ordering.h"

namespace shardarray {

Array histogram_bin_edges(const Array& x, std::int64_t bins,
                          const std::optional<std::pair<double, double>>& range, Where w) {
  const Site site(w, "histogram_bin_edges");
  return histogram(x, bins, {.range = range}).second;
}

// Coordinates as vectors of equal length, one per dimension.
static Array counted_points(const char* function, const std::vector<Array>& coordinates,
                            const std::vector<Array>& edges, const Array* weights) {
  WeakType t = api::promoted_all(function, coordinates);
  for (const Array& e : edges) t = api::promoted_all(function, Arrays{primitive::full({}, t.dtype, 0), e});
  t = api::to_inexact(t);
  const Shape points = coordinates[0].shape();
  const DType p = DType::int32;
  Array number = zeros_of({points, p, false}), inside = primitive::full(points, DType::bool_, 1);
  Shape shape;
  std::int64_t total = 1;
  for (std::size_t d = 0; d < edges.size(); d++) {
    const Type& e = type_of(edges[d], function);
    if (e.shape.size() != 1 || e.shape[0] < 2)
      throw ShapeError(
          fmt::format("{}: the edges of dimension {} are {}. They are a vector, and a bin has "
                      "two of them. Use histogram_bin_edges for a number of bins.",
                      function, d, to_string(e)));
    const std::int64_t n = e.shape[0];
    shape.push_back(n - 1);
    total = mul_sizes(total, n - 1);
    const Array v = api::cast(coordinates[d], t), borders = api::cast(edges[d], t);
    const Array behind = searchsorted(borders, v, Side::right);
    const Array is_last = primitive::binary(op_eq, v, primitive::element(borders, n - 1, points));
    const Array bin = primitive::sub(primitive::select(is_last, primitive::like_whole(behind, n - 1), behind),
                                     primitive::like_whole(behind, 1));
    inside = primitive::binary(
        op_and, inside,
        primitive::binary(op_and, primitive::binary(op_ge, bin, primitive::like_whole(bin, 0)),
                          primitive::binary(op_lt, bin, primitive::like_whole(bin, n - 1))));
    number = primitive::add(primitive::mul(number, primitive::like_whole(number, n - 1)), bin);
  }
  check_type({shape, t.dtype}, function);
  if (total > std::numeric_limits<std::int32_t>::max())
    throw ShapeError(
        fmt::format("{}: {} bins in all. They are numbered by int32. Take fewer.", function, total));
  const Array row = primitive::select(inside, number, primitive::like_whole(number, -1));
  const WeakType of_result = weights != nullptr ? api::to_inexact(api::promoted(function, {weights}))
                                                : WeakType{DType::int32, false};
  // counts are integers: a float32 stops counting at 2^24
  const Array updates = weights != nullptr
                            ? primitive::cast(api::cast(*weights, of_result), api::computed(of_result.dtype))
                            : primitive::full(points, DType::int32, 1);
  return primitive::reshape(primitive::cast(primitive::scatter(row, updates, 0, 1, total), of_result.dtype),
                            shape);
}
static Array counted_rows(const char* function, const Array& x, const std::vector<Array>& edges,
                          const Array* weights) {
  const Shape& shape = type_of(x, function).shape;
  if (shape.size() != 2 || shape[1] != std::ssize(edges) || edges.empty())
    throw ShapeError(fmt::format(
        "{}: points {} and edges of {}. A row is a point, and every column has edges. Give as many.",
        function, to_string(type_of(x)), count_text(edges.size(), "dimension")));
  if (weights != nullptr && !(type_of(*weights, function).shape == Shape{shape[0]}))
    throw ShapeError(fmt::format("{}: weights {} of {}. Every one has one. Give a vector that is as long.",
                                 function, to_string(type_of(*weights)), count_text(shape[0], "point")));
  std::vector<Array> columns;
  for (std::int64_t d = 0; d < shape[1]; d++)
    columns.push_back(primitive::reshape(primitive::slice_dim(x, 1, d, d + 1), {shape[0]}));
  return counted_points(function, columns, edges, weights);
}
Array histogramdd(const Array& x, const std::vector<Array>& edges, Where w) {
  const Site site(w, "histogramdd");
  return counted_rows("histogramdd", x, edges, nullptr);
}
Array histogramdd(const Array& x, const std::vector<Array>& edges, const Array& weights, Where w) {
  const Site site(w, "histogramdd");
  return counted_rows("histogramdd", x, edges, &weights);
}
Array histogram2d(const Array& x, const Array& y, const Array& x_edges, const Array& y_edges, Where w) {
  const Site site(w, "histogram2d");
  if (!(type_of(x, "histogram2d").shape == type_of(y, "histogram2d").shape))
    throw ShapeError(fmt::format("histogram2d: coordinates {} and {}. Every point has both. Broadcast one.",
                                 to_string(type_of(x)), to_string(type_of(y))));
  const Shape flat{x.size()};
  return counted_points("histogram2d", {primitive::reshape(x, flat), primitive::reshape(y, flat)},
                        {x_edges, y_edges}, nullptr);
}

}  // namespace shardarray
