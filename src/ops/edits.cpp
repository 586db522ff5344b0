// Arrays with parts inserted, removed or overwritten, at positions that are not data.
#include <fmt/core.h>

#include <algorithm>

#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/row_index.h"
#include "shardarray/indexing.h"
#include "shardarray/rearrange.h"

namespace shardarray {

// ---------------------------------------------------------------- insert, delete_
namespace {

/// The array and the edited axis.
struct Edited {
  Edited(const char* function, const Array& x, std::optional<std::int64_t> axis)
      : from(axis ? x : primitive::reshape(x, {num_elements(type_of(x, function).shape)})),
        dim(api::axis_of(function, axis.value_or(0), type_of(from, function).shape)),
        size(from.shape()[dim]) {}
  Array from;
  std::size_t dim;
  std::int64_t size;
};
std::int64_t place_in(const char* function, std::int64_t at, std::int64_t size, std::int64_t most) {
  const std::int64_t place = at < 0 ? at + size : at;
  if (place < 0 || place > most)
    throw ShapeError(fmt::format("{}: position {} among {}. Positions are in -{} .. {}. Give one of them.",
                                 function, at, size, size, most));
  return place;
}
/// The values in x's dtype and rank, with size `count` along the axis if given.
Array inserted_values(const Edited& e, const Array& values, std::optional<std::int64_t> count,
                      bool first_is_axis) {
  const Type& t = type_of(e.from);
  check_kind("insert", t, type_of(values, "insert"));
  Array v = api::cast(values, {t.dtype, t.weak});
  Shape shape = v.shape();
  while (shape.size() < t.shape.size()) shape.insert(0, 1);
  v = primitive::reshape(v, shape);
  if (first_is_axis && shape.size() == t.shape.size()) v = moveaxis(v, 0, static_cast<std::int64_t>(e.dim));
  Shape part = t.shape;
  part[e.dim] = count ? *count : v.shape()[std::min(e.dim, v.shape().size() - 1)];
  check_fits("insert", v.shape(), part);
  return primitive::broadcast_to(v, part);
}

}  // namespace

Array insert_fn::in_front_of(const Array& x, std::int64_t at, const Array& values,
                             std::optional<std::int64_t> axis, Where w) const {
  const Site site(w, "insert");
  const Edited e("insert", x, axis);
  const std::int64_t place = place_in("insert", at, e.size, e.size);
  const bool is_lower = type_of(values, "insert").shape.size() < e.from.shape().size();
  const Array parts[] = {primitive::slice_dim(e.from, e.dim, 0, place),
                         inserted_values(e, values, std::nullopt, is_lower),
                         primitive::slice_dim(e.from, e.dim, place, e.size)};
  return primitive::concatenate(parts, e.dim);
}
Array insert_fn::operator()(const Array& x, const Shape& at, const Array& values,
                            std::optional<std::int64_t> axis, Where w) const {
  const Site site(w, "insert");
  const Edited e("insert", x, axis);
  std::vector<std::pair<std::int64_t, std::int64_t>> places;  // with the index of the value
  for (const std::int64_t each : at)
    places.emplace_back(place_in("insert", each, e.size, e.size), std::ssize(places));
  const Array v = inserted_values(e, values, std::ssize(places), false);
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Array> parts;
  std::int64_t done = 0;
  for (const auto& [place, which] : places) {
    if (place > done) parts.push_back(primitive::slice_dim(e.from, e.dim, done, place));
    parts.push_back(primitive::slice_dim(v, e.dim, which, which + 1));
    done = place;
  }
  if (done < e.size || parts.empty()) parts.push_back(primitive::slice_dim(e.from, e.dim, done, e.size));
  return primitive::concatenate(parts, e.dim);
}
Array delete_fn::operator()(const Array& x, const Shape& at, std::optional<std::int64_t> axis,
                            Where w) const {
  const Site site(w, "delete_");
  const Edited e("delete_", x, axis);
  std::vector<std::int64_t> places;
  for (const std::int64_t each : at) places.push_back(place_in("delete_", each, e.size, e.size - 1));
  std::sort(places.begin(), places.end());
  std::vector<Array> parts;
  std::int64_t done = 0;
  for (const std::int64_t place : places) {
    if (place > done) parts.push_back(primitive::slice_dim(e.from, e.dim, done, place));
    done = place + 1;
  }
  if (done < e.size || parts.empty()) parts.push_back(primitive::slice_dim(e.from, e.dim, done, e.size));
  return primitive::concatenate(parts, e.dim);
}

// ---------------------------------------------------------------- triangles and diagonals
// The positions of a matrix where column - row is at most, or at least, k.
static std::pair<Array, Array> triangle(const char* function, std::int64_t n, std::int64_t m, std::int64_t k,
                                        bool is_upper) {
  if (n < 0 || m < 0)
    throw ShapeError(
        fmt::format("{}: a matrix of {} x {}. Sizes are not negative. Give others.", function, n, m));
  check_size(function, {n, m}, DType::bool_);
  k = std::clamp(k, -n, m);  // further ones give the same result
  // In row r the columns below r + first: none before row `begin`, all from row `end` on.
  const std::int64_t first = k + (is_upper ? 0 : 1), begin = std::clamp<std::int64_t>(-first, 0, n),
                     end = std::clamp<std::int64_t>(m - first, begin, n), between = end - begin;
  const std::int64_t twice = between * (begin + end - 1 + 2 * first);  // an arithmetic series
  const std::int64_t lower = twice / 2 + (n - end) * m, count = is_upper ? n * m - lower : lower;
  const Array below = tri(n, m, is_upper ? k - 1 : k, DType::bool_);
  const std::vector<Array> at = nonzero(is_upper ? logical_not(below) : below, count);
  return {api::created(at[0]), api::created(at[1])};
}
std::pair<Array, Array> tril_indices(std::int64_t n, std::int64_t k, std::optional<std::int64_t> m, Where w) {
  const Site site(w, "tril_indices");
  return triangle("tril_indices", n, m.value_or(n), k, false);
}
std::pair<Array, Array> triu_indices(std::int64_t n, std::int64_t k, std::optional<std::int64_t> m, Where w) {
  const Site site(w, "triu_indices");
  return triangle("triu_indices", n, m.value_or(n), k, true);
}
Array fill_diagonal_fn::operator()(const Array& x, const Array& value, Where w) const {
  const Site site(w, "fill_diagonal");
  const Type& t = type_of(x, "fill_diagonal");
  const Shape& mine = type_of(value, "fill_diagonal").shape;
  const std::size_t rank = t.shape.size();
  const bool is_cube = std::all_of(t.shape.begin(), t.shape.end(), [&](auto n) { return n == t.shape[0]; });
  if (rank < 2 || (rank > 2 && !is_cube))
    throw ShapeError(
        fmt::format("fill_diagonal: the operand is {}. It is a matrix, or has more dimensions of "
                    "one size. Use vmap for several matrices.",
                    to_string(t)));
  const std::int64_t n = *std::min_element(t.shape.begin(), t.shape.end());
  if (!mine.empty() && !(mine == Shape{n}))
    throw ShapeError(
        fmt::format("fill_diagonal: values {} on a diagonal of {}. They are a number, or a vector as long. "
                    "Give as many.",
                    to_string(type_of(value)), n));
  check_kind("fill_diagonal", t, type_of(value));
  if (n == 0) return x;
  Array v = api::cast(value, {t.dtype, t.weak});
  if (!mine.empty())
    v = primitive::broadcast(primitive::pad(v, {0}, {t.shape[0] - n}), t.shape,
                             {-static_cast<std::int64_t>(rank)});
  const DType p = api::position_type(t.shape);
  const Array first = primitive::iota(t.shape, 0, p);
  Array here;
  for (std::size_t d = 1; d < rank; d++) {
    const Array equal = primitive::binary(op_eq, first, primitive::iota(t.shape, d, p));
    here = here.has_value() ? primitive::binary(op_and, here, equal) : equal;
  }
  return primitive::select(here, primitive::broadcast_to(v, t.shape), x);
}

}  // namespace shardarray
