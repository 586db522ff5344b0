// Indexing with numpy's rules, and functional updates of the indexed part.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/count_text.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/array_index.h"
#include "ops/row_index.h"
#include "runtime/half_floats.h"
#include "shardarray/ops.h"

namespace shardarray {

namespace {

// An index as slice (lo, hi, step >= 1), then reverse, then reshape.
struct Selection {
  Shape lo, hi, step;
  Shape reversed;  // dimensions, counted from the last
  Shape region;    // shape of the slice
  Shape result;    // without indexed dimensions, with newaxis ones
};

using Kind = Index::Kind;

void select_one(Selection& s, const Index& i, std::int64_t n, std::size_t dim) {
  const std::int64_t at = *i.start < 0 ? *i.start + n : *i.start;
  if (at < 0 || at >= n) {
    const std::string function = current_function("index");
    throw ShapeError(
        fmt::format("{}: {} is out of bounds for dimension {} of size {}. An index lies in [-size, size). "
                    "Use a slice, which is cut off{}.",
                    function, *i.start, dim, n, function == "index" ? ", or take" : ""));
  }
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
    throw ShapeError(
        fmt::format("index: {} for shape {} of rank {}. There is at most one per dimension. Remove some, or "
                    "add dimensions with newaxis.",
                    count_text(used, "index", "indices"), to_string(shape), shape.size()));
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

// True in the selected part; absent if that is everything.
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

// x with the selected part updated.
Array updated_part(const char* function, const Array& x, const Selection& s, const Array& value, Update how) {
  const Shape& shape = x.shape();
  check_fits(function, value.shape(), s.result);
  if (num_elements(s.region) == 0) return x;
  const Array m = mask(shape, s);
  if (num_elements(value.shape()) == 1 && m.has_value()) {  // one value for all needs no place
    const Array all = primitive::broadcast_to(primitive::reshape(value, {}), shape);
    // Selected as a factor: a derivative that is 0 outside would meet infinities there.
    if (how == Update::mul) return changed(how, x, primitive::select(m, all, one_of(type_of(x))));
    return primitive::select(m, changed(how, x, all), x);
  }
  const Array in_place =
      primitive::reverse(primitive::reshape(primitive::broadcast_to(value, s.result), s.region), s.reversed);
  const Array y = changed(how, x, primitive::embed(in_place, s.lo, s.step, shape));
  return m.has_value() ? primitive::select(m, y, x) : y;
}

// The value for every element selected by a mask of the leading dimensions, if it is the same for all; else absent.
Array value_of_all(const Array& value, std::size_t rest) {
  const Shape& shape = value.shape();
  if (shape.size() <= rest) return value;
  if (shape.size() > rest + 1 || shape[0] != 1) return {};
  return primitive::reshape(value, Shape(shape.begin() + 1, shape.end()));
}

bool has_gaps(const Selection& s) {
  return !s.reversed.empty() ||
         std::any_of(s.step.begin(), s.step.end(), [](std::int64_t step) { return step != 1; });
}
// Whether each array is a single position, and the slices beside them are contiguous.
bool is_one_part(const ArraysAt& at, const Selection& s) {
  return !has_gaps(s) &&
         std::all_of(at.arrays.begin(), at.arrays.end(), [](const Array& a) { return a.shape().empty(); });
}
// Whether to write only the part, instead of selecting by masks in a pass over all of x. Every device then needs the whole update along
// the dimensions that are sliced: nothing moves if these have one element or the update is a broadcast, and little if the part is small.
bool is_small_part(const Shape& shape, const Selection& s, const Array& value) {
  const std::int64_t small = num_elements(value.shape()) == 1 ? 4 : 64;
  if (has_gaps(s)) return false;
  bool is_whole = true, is_row = true;
  for (std::size_t d = 0; d < shape.size(); d++) {
    is_whole = is_whole && s.region[d] == shape[d];
    is_row = is_row && (s.region[d] == shape[d] || s.region[d] == 1);
  }
  return !is_whole && (is_row || num_elements(s.region) <= num_elements(shape) / small);
}
// Writes only such a part.
Array updated_where_data_says(const Array& x, const ArraysAt& at, const Selection& s, const Array& v,
                              Update how, TakeMode mode) {
  const Shape& shape = x.shape();
  Shape sizes = s.region, dims;
  std::vector<Array> starts;
  std::size_t k = 0;  // index into the arrays
  for (std::size_t d = 0; d < shape.size(); d++) {
    const bool is_array = k < at.own.size() && at.own[k] == static_cast<std::int64_t>(d);
    if (!is_array && s.region[d] == shape[d]) continue;
    dims.push_back(static_cast<std::int64_t>(d));
    const DType t = api::position_type({shape[d]});
    if (!is_array) {
      starts.push_back(primitive::constant(t, primitive::bits_of(t, s.lo[d]), false));
      continue;
    }
    sizes[d] = 1;
    const RowIndex row = row_index(at.arrays[k++], shape[d], mode, true);
    const Array i = primitive::cast(row.at, t);
    starts.push_back(row.inside.has_value() ? primitive::select(row.inside, i, primitive::like_whole(i, -1))
                                            : i);
  }
  const Array part = primitive::reshape(v, sizes);
  const DType t = x.dtype();
  if (how == Update::set) return primitive::update(x, part, dims, starts);
  const auto replaced = [&] {
    return primitive::update(x, changed(how, primitive::part_at(x, sizes, dims, starts), part), dims, starts);
  };
  // no kernel combines these in place
  if (is_half(t) || is_complex(t)) return replaced();
  if (how == Update::add || !is_floating(t))
    return primitive::update(x, part, dims, starts, {combining(how, t)});
  const auto fixed = [](const Array& a) { return primitive::unary(op_stop_gradient, a); };
  return primitive::with_slope_of(primitive::update(fixed(x), fixed(part), dims, starts, {combining(how, t)}),
                                  replaced());
}

Array updated(const char* function, const Array& x, const Subscript& index, const Array& v, Update how,
              const IndexOptions& o) {
  const Type& t = type_of(x, function);
  check_kind(function, t, type_of(v, function));
  const Array value = api::cast(v, {t.dtype, t.weak});
  const Indices& given = index.indices;
  if (!has_arrays(given)) {
    const Selection s = selected(t.shape, given);
    if (num_elements(s.region) == 0 || !is_small_part(t.shape, s, value))
      return updated_part(function, x, s, value, how);
    check_fits(function, value.shape(), s.result);
    return updated_where_data_says(x, {}, s, primitive::broadcast_to(value, s.result), how, TakeMode::drop);
  }
  if (given.size() == 1 && is_mask(function, given[0])) {
    const Array& m = *given[0].array;
    check_mask(function, m, t.shape, 0);
    const std::int64_t rank = std::ssize(t.shape);
    const auto own = static_cast<std::ptrdiff_t>(m.shape().size());
    if (const Array every = value_of_all(value, t.shape.size() - m.shape().size()); every.has_value()) {
      check_fits(function, every.shape(), Shape(t.shape.begin() + own, t.shape.end()));
      Shape dims;
      for (std::ptrdiff_t d = 0; d < own; d++) dims.push_back(d - rank);
      return primitive::select(primitive::broadcast(m, t.shape, dims),
                               changed(how, x, primitive::broadcast_to(every, t.shape)), x);
    }
  }
  const ArraysAt at = arrays_in(function, t.shape, given);
  const Selection s = selected(t.shape, at.basic);
  const TakeMode mode = o.mode.value_or(TakeMode::drop);
  const ChosenRows rows(function, part(x, s), at, mode);
  const Shape shape = rows.shape();
  check_fits(function, value.shape(), shape);
  if (num_elements(shape) == 0) return x;
  const Array all = primitive::broadcast_to(value, shape);
  if (is_one_part(at, s)) return updated_where_data_says(x, at, s, all, how, mode);
  const Array changed_part = rows.updated(how, all);
  if (is_small_part(t.shape, s, changed_part))
    return updated_where_data_says(x, {}, s, changed_part, Update::set, mode);
  return updated_part(function, x, s, changed_part, Update::set);
}

}  // namespace

static Array indexed(const char* function, const Array& x, const Indices& given, const IndexOptions& o) {
  const Shape& shape = type_of(x, function).shape;
  if (!has_arrays(given)) return part(x, selected(shape, given));
  const ArraysAt at = arrays_in(function, shape, given);
  const ChosenRows rows(function, part(x, selected(shape, at.basic)), at, o.mode.value_or(TakeMode::clip));
  return rows.get(o.fill_value);
}

Array ShardedArray::operator[](const Subscript& s) const {
  const Site site(s.where, "index");
  return indexed("index", *this, s.indices, {});
}
IndexedArray ShardedArray::at(Subscript s) const { return IndexedArray(*this, std::move(s)); }

Array IndexedArray::get(const IndexOptions& o, Where w) const {
  const Site site(w, "at.get");
  return indexed("at.get", x_, index_.indices, o);
}
Array IndexedArray::set(const Array& v, const IndexOptions& o, Where w) const {
  const Site site(w, "at.set");
  return updated("at.set", x_, index_, v, Update::set, o);
}
Array IndexedArray::add(const Array& v, const IndexOptions& o, Where w) const {
  const Site site(w, "at.add");
  return updated("at.add", x_, index_, v, Update::add, o);
}
Array IndexedArray::mul(const Array& v, const IndexOptions& o, Where w) const {
  const Site site(w, "at.mul");
  return updated("at.mul", x_, index_, v, Update::mul, o);
}
// v in the selected part, 1 elsewhere.
static Array ones_with(const char* function, const Array& x, const Subscript& index, const Array& v,
                       const IndexOptions& o) {
  type_of(x, function);
  return updated(function, primitive::like(x, 1), index, v, Update::mul, o);
}
Array IndexedArray::divide(const Array& v, const IndexOptions& o, Where w) const {
  const Site site(w, "at.divide");
  return shardarray::divide(x_, ones_with("at.divide", x_, index_, v, o));
}
Array IndexedArray::power(const Array& v, const IndexOptions& o, Where w) const {
  const Site site(w, "at.power");
  return shardarray::power(x_, ones_with("at.power", x_, index_, v, o));
}
Array IndexedArray::min(const Array& v, const IndexOptions& o, Where w) const {
  const Site site(w, "at.min");
  return updated("at.min", x_, index_, v, Update::min, o);
}
Array IndexedArray::max(const Array& v, const IndexOptions& o, Where w) const {
  const Site site(w, "at.max");
  return updated("at.max", x_, index_, v, Update::max, o);
}

}  // namespace shardarray
