// Sets of values, composed of sort, searchsorted, running sums and scatter.
#include "shardarray/sets.h"

#include <fmt/core.h>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/array_index.h"
#include "ops/found.h"
#include "shardarray/ordering.h"
#include "shardarray/products.h"
#include "shardarray/rearrange.h"

namespace shardarray {

namespace {

/// A flattened array in ascending order: where each element came from, and whether it is the first of its equals.
struct SortedSet {
  Array values, order, is_first;
  std::int64_t size() const { return values.size(); }
};
Array differs(const Array& a, const Array& b) {
  Array r = primitive::binary(op_ne, a, b);
  if (!is_floating(a.dtype())) return r;
  return primitive::binary(
      op_and, r,  // two NaN count as equal
      primitive::binary(op_or, primitive::binary(op_eq, a, a), primitive::binary(op_eq, b, b)));
}
SortedSet sorted_set(const Array& x) {
  const std::int64_t n = x.size();
  const Array operands[] = {primitive::reshape(x, {n}), primitive::iota({n}, 0, api::position_type({n}))};
  const Arrays sorted = primitive::sort(operands, 0);
  SortedSet s{sorted[0], sorted[1], primitive::full({std::min<std::int64_t>(n, 1)}, DType::bool_, 1)};
  if (n > 1) {
    const Array parts[] = {s.is_first, differs(primitive::slice_dim(s.values, 0, 1, n),
                                               primitive::slice_dim(s.values, 0, 0, n - 1))};
    s.is_first = primitive::concatenate(parts, 0);
  }
  return s;
}
/// The requested size, or the number of true elements.
std::int64_t size_or_count(const char* function, std::optional<std::int64_t> size, const Array& mask) {
  const auto count = [&] {
    if (is_traced(mask))
      throw TraceError(
          fmt::format("{}: how many values there are nobody knows while the function is traced, and a result "
                      "has one shape. Give the size: what lacks is filled up.",
                      function));
    return count_of_true(function, mask);
  };
  if (!size) return mask.size() == 0 ? 0 : count();
  need_size(function, *size);
  return *size;
}
/// The sorted values where the mask is true, padded with `fill_value` or else with the first of them.
Array chosen_values(const char* function, const SortedSet& s, const Array& mask,
                    std::optional<std::int64_t> asked, std::optional<double> fill_value) {
  const std::int64_t size = size_or_count(function, asked, mask);
  const Type t{{size}, s.values.dtype(), type_of(s.values).weak};
  if (s.size() == 0) return filled_with(function, t, fill_value.value_or(0));
  const Found f = found(mask, size);
  Array values = primitive::take(s.values, f.at, 0, 1);
  if (!asked || size == 0) return values;
  if (fill_value) return primitive::select(f.is_there, values, filled_with(function, t, *fill_value));
  const Array least = primitive::select(primitive::element(f.is_there, 0, {size}),
                                        primitive::element(values, 0, {size}), zeros_of(t));
  return primitive::select(f.is_there, values, least);
}
Array is_one_of(const Array& x, const Array& values) {
  const WeakType t = api::promoted("isin", {&x, &values});
  const Array wanted = api::cast(x, t), flat = primitive::reshape(api::cast(values, t), {values.size()});
  const std::int64_t n = flat.size();
  if (n == 0) return primitive::full(x.shape(), DType::bool_, 0);
  const Array sorted = sort(flat), at = searchsorted(sorted, wanted);
  const Array inside = primitive::binary(op_min, at, primitive::like_whole(at, n - 1));
  return primitive::binary(op_eq, primitive::take(sorted, inside, 0, std::ssize(x.shape())), wanted);
}
/// Both in their common dtype.
std::pair<Array, Array> promoted_sets(const char* function, const Array& a, const Array& b) {
  const WeakType t = api::promoted(function, {&a, &b});
  return {api::cast(a, t), api::cast(b, t)};
}
void need_fill(const char* function, const Array& x, std::optional<std::int64_t> size,
               std::optional<double> fill_value) {
  if (num_elements(type_of(x, function).shape) > 0 || size.value_or(0) <= 0 || fill_value) return;
  throw ShapeError(fmt::format("{}: {} of {}. It has no least one to fill up with. Give a fill_value.",
                               function, count_text(*size, "value"), to_string(type_of(x))));
}

}  // namespace

Array unique_fn::operator()(const Array& x, std::optional<std::int64_t> size,
                            std::optional<double> fill_value, Where w) const {
  const Site site(w, "unique");
  need_fill("unique", x, size, fill_value);
  const SortedSet s = sorted_set(x);
  return chosen_values("unique", s, s.is_first, size, fill_value);
}
UniqueResult unique_all_fn::operator()(const Array& x, std::optional<std::int64_t> asked,
                                       std::optional<double> fill_value, Where w) const {
  const Site site(w, "unique_all");
  need_fill("unique_all", x, asked, fill_value);
  const SortedSet s = sorted_set(x);
  const std::int64_t n = s.size(), size = size_or_count("unique_all", asked, s.is_first);
  if (n == 0) {
    const Array nothing = zeros_of({{size}, DType::int32, false});
    return {chosen_values("unique_all", s, s.is_first, size, fill_value), nothing,
            zeros_of({x.shape(), DType::int32, false}), nothing};
  }
  // one more than requested: the last value's equals end where the next value begins
  const Found f = found(s.is_first, add_sizes(size, 1));
  const Array at = primitive::slice_dim(f.at, 0, 0, size),
              begin = primitive::select(f.is_there, f.at, primitive::like_whole(f.at, n));
  const Array number = cumsum(s.is_first, {.dtype = s.order.dtype()});
  const Array inverse =
      primitive::scatter(s.order, primitive::sub(number, primitive::like_whole(number, 1)), 0, 1, n);
  return {chosen_values("unique_all", s, s.is_first, size, fill_value), primitive::take(s.order, at, 0, 1),
          primitive::reshape(inverse, x.shape()), diff(begin)};
}

Array isin_fn::operator()(const Array& x, const Array& values, Where w) const {
  const Site site(w, "isin");
  return is_one_of(x, values);
}
Array union1d_fn::operator()(const Array& a, const Array& b, std::optional<std::int64_t> size,
                             std::optional<double> fill_value, Where w) const {
  const Site site(w, "union1d");
  const Array both = append(a, b);
  need_fill("union1d", both, size, fill_value);
  const SortedSet s = sorted_set(both);
  return chosen_values("union1d", s, s.is_first, size, fill_value);
}
Array intersect1d_fn::operator()(const Array& a, const Array& b, std::optional<std::int64_t> size,
                                 std::optional<double> fill_value, Where w) const {
  const Site site(w, "intersect1d");
  const auto [x, y] = promoted_sets("intersect1d", a, b);
  const SortedSet s = sorted_set(x);
  return chosen_values("intersect1d", s, primitive::binary(op_and, s.is_first, is_one_of(s.values, y)), size,
                       fill_value);
}
Array setdiff1d_fn::operator()(const Array& a, const Array& b, std::optional<std::int64_t> size,
                               std::optional<double> fill_value, Where w) const {
  const Site site(w, "setdiff1d");
  const auto [x, y] = promoted_sets("setdiff1d", a, b);
  const SortedSet s = sorted_set(x);
  return chosen_values("setdiff1d", s,
                       primitive::binary(op_and, s.is_first, logical_not(is_one_of(s.values, y))), size,
                       fill_value.value_or(0));
}
Array setxor1d_fn::operator()(const Array& a, const Array& b, std::optional<std::int64_t> size,
                              std::optional<double> fill_value, Where w) const {
  const Site site(w, "setxor1d");
  const auto [x, y] = promoted_sets("setxor1d", a, b);
  const SortedSet s = sorted_set(append(x, y));
  const Array in_both = primitive::binary(op_and, is_one_of(s.values, x), is_one_of(s.values, y));
  return chosen_values("setxor1d", s, primitive::binary(op_and, s.is_first, logical_not(in_both)), size,
                       fill_value);
}

}  // namespace shardarray
