// Subscripts: numpy's basic indexing, and functional updates of the indexed part.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ops/api.h"
#include "shardarray/ops.h"

namespace shardarray {

namespace {

// A subscript as: slice (lo, hi, step >= 1), then reverse, then reshape.
struct Selection {
  Shape lo, hi, step;
  Shape reversed;  // dimensions, from the last
  Shape region;    // shape of the slice
  Shape result;    // without indexed dimensions, with new ones
};

using Kind = Index::Kind;

void select_one(Selection& s, const Index& i, std::int64_t n, std::size_t dim) {
  const std::int64_t at = *i.start < 0 ? *i.start + n : *i.start;
  if (at < 0 || at >= n)
    throw ShapeError(
        fmt::format("index: {} is out of bounds for dimension {} of size {}. An index lies in [-size, size). "
                    "Use a slice, which "
                    "is cut off, or take.",
                    *i.start, dim, n));
  s.lo.push_back(at);
  s.hi.push_back(at + 1);
  s.step.push_back(1);
  s.region.push_back(1);
}

// numpy's start:stop:step.
void select_range(Selection& s, const Index& i, std::int64_t n, std::size_t dim, std::size_t rank) {
  if (i.step == 0)
    throw ShapeError(
        fmt::format("index: step 0 in dimension {}. A slice must move. Give a step that is not 0.", dim));
  const bool forward = i.step > 0;
  const std::int64_t lowest = forward ? 0 : -1, highest = forward ? n : n - 1;
  auto bound = [&](const std::optional<std::int64_t>& b, std::int64_t otherwise) {
    return b ? std::clamp(*b < 0 ? *b + n : *b, lowest, highest) : otherwise;
  };
  const std::int64_t start = bound(i.start, forward ? 0 : n - 1), stop = bound(i.stop, forward ? n : -1);
  const std::int64_t distance = forward ? stop - start : start - stop;
  const std::int64_t by = forward ? i.step : -std::max(i.step, -std::numeric_limits<std::int64_t>::max());
  const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / by + 1;
  const std::int64_t lo = count == 0 ? 0 : forward ? start : start - (count - 1) * by;
  s.lo.push_back(lo);
  s.hi.push_back(count == 0 ? 0 : lo + (count - 1) * by + 1);
  s.step.push_back(count > 1 ? by : 1);
  if (!forward && count > 1)
    s.reversed.push_back(static_cast<std::int64_t>(dim) - static_cast<std::int64_t>(rank));
  s.region.push_back(count);
  s.result.push_back(count);
}

Selection selected(const Shape& shape, const Indices& given) {
  const auto used = static_cast<std::size_t>(std::count_if(given.begin(), given.end(), [](const Index& i) {
    return i.kind == Kind::at || i.kind == Kind::range;
  }));
  const auto ellipses =
      std::count_if(given.begin(), given.end(), [](const Index& i) { return i.kind == Kind::ellipsis; });
  if (used > shape.size())
    throw ShapeError(fmt::format(
        "index: {} indices for shape {} of rank {}. There is at most one per dimension. Remove some, or add "
        "dimensions with newaxis.",
        used, to_string(shape), shape.size()));
  if (ellipses > 1)
    throw ShapeError(fmt::format(
        "index: {} ellipses. One stands for all dimensions between. Use all for single ones.", ellipses));
  Selection s;
  std::size_t dim = 0;
  auto whole = [&](std::size_t count) {
    for (; count > 0; count--, dim++) select_range(s, Index(Kind::range), shape[dim], dim, shape.size());
  };
  for (const Index& i : given) {
    if (i.kind == Kind::newaxis) s.result.push_back(1);
    if (i.kind == Kind::ellipsis) whole(shape.size() - used);
    if (i.kind == Kind::at) select_one(s, i, shape[dim], dim);
    if (i.kind == Kind::range) select_range(s, i, shape[dim], dim, shape.size());
    dim += i.kind == Kind::at || i.kind == Kind::range;
  }
  whole(shape.size() - dim);
  return s;
}

Array part(const Array& x, const Selection& s) {
  return primitive::reshape(primitive::reverse(primitive::slice(x, s.lo, s.hi, s.step), s.reversed),
                            s.result);
}

// True in the selected part; absent when that is everything.
Array mask(const Shape& shape, const Selection& s) {
  Array m;
  for (std::size_t d = 0; d < shape.size(); d++) {
    if (s.region[d] == shape[d]) continue;
    const Array i = primitive::iota({shape[d]}, 0, api::position_type({shape[d]}));
    auto number = [&](std::int64_t v) { return primitive::like_whole(i, v); };
    Array inside = primitive::binary(op_and, primitive::binary(op_ge, i, number(s.lo[d])),
                                     primitive::binary(op_lt, i, number(s.hi[d])));
    if (s.step[d] > 1) {
      const Array offset = primitive::binary(op_rem, primitive::sub(i, number(s.lo[d])), number(s.step[d]));
      inside = primitive::binary(op_and, inside, primitive::binary(op_eq, offset, number(0)));
    }
    const Array full_size = primitive::broadcast(
        inside, shape, {static_cast<std::int64_t>(d) - static_cast<std::int64_t>(shape.size())});
    m = m.has_value() ? primitive::binary(op_and, m, full_size) : full_size;
  }
  return m;
}

// Fractions are not cut off without a word.
void check_kind(const char* function, const Type& x, const Type& v) {
  if (is_inexact(x.dtype) || !is_inexact(v.dtype)) return;
  throw DTypeError(fmt::format(
      "{}: {} in an array {}. Fractions would be lost: x.astype({}) holds them, v.astype({}) drops them.",
      function, to_string(v), to_string(x), name(v.dtype), name(x.dtype)));
}

// x with `change(x, v)` in the selected part.
template <class Change>
Array updated(const char* function, const Array& x, const Subscript& index, const Array& v, Change change) {
  const Type& t = type_of(x, function);
  const Selection s = selected(t.shape, index.indices);
  check_kind(function, t, type_of(v, function));
  const Array value = api::cast(v, {t.dtype, t.weak});
  const Shape shapes[] = {type_of(value, function).shape, s.result};
  if (!(api::common_shape(function, shapes) == s.result))
    throw ShapeError(
        fmt::format("{}: a value of shape {} for an indexed part of shape {}. The value is broadcast to the "
                    "part. Give a value that "
                    "fits.",
                    function, to_string(value.shape()), to_string(s.result)));
  if (num_elements(s.region) == 0) return x;
  const Array in_place =
      primitive::reverse(primitive::reshape(primitive::broadcast_to(value, s.result), s.region), s.reversed);
  const Array changed = change(x, primitive::embed(in_place, s.lo, s.step, t.shape)), m = mask(t.shape, s);
  return m.has_value() ? primitive::select(m, changed, x) : changed;
}

}  // namespace

Array ShardedArray::operator[](const Subscript& s) const {
  const Site site(s.where);
  return part(*this, selected(type_of(*this, "index").shape, s.indices));
}
IndexedArray ShardedArray::at(Subscript s) const { return IndexedArray(*this, std::move(s)); }

Array IndexedArray::get(Where w) const {
  const Site site(w, "at.get");
  return x_[index_];
}
Array IndexedArray::set(const Array& v, Where w) const {
  const Site site(w, "at.set");
  return updated("at.set", x_, index_, v, [](const Array&, const Array& b) { return b; });
}
Array IndexedArray::add(const Array& v, Where w) const {
  const Site site(w, "at.add");
  return updated("at.add", x_, index_, v,
                 [](const Array& a, const Array& b) { return shardarray::add(a, b); });
}
Array IndexedArray::mul(const Array& v, Where w) const {
  const Site site(w, "at.mul");
  return updated("at.mul", x_, index_, v, [](const Array& a, const Array& b) { return multiply(a, b); });
}
Array IndexedArray::min(const Array& v, Where w) const {
  const Site site(w, "at.min");
  return updated("at.min", x_, index_, v, [](const Array& a, const Array& b) { return minimum(a, b); });
}
Array IndexedArray::max(const Array& v, Where w) const {
  const Site site(w, "at.max");
  return updated("at.max", x_, index_, v, [](const Array& a, const Array& b) { return maximum(a, b); });
}

}  // namespace shardarray
