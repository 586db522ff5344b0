#include "ops/array_index.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/combined_rows.h"
#include "ops/row_index.h"
#include "ops/rules.h"
#include "runtime/half_floats.h"
#include "shardarray/indexing.h"

namespace shardarray {

using Kind = Index::Kind;

Array changed(Update how, const Array& a, const Array& b) {
  switch (how) {
    case Update::set: return b;
    case Update::add: return add(a, b);
    case Update::mul: return multiply(a, b);
    case Update::min: return minimum(a, b);
    default: return maximum(a, b);
  }
}

bool has_arrays(const Indices& given) {
  return std::any_of(given.begin(), given.end(), [](const Index& i) { return i.kind == Kind::array; });
}
bool is_mask(const char* function, const Index& i) {
  return i.kind == Kind::array && type_of(*i.array, function).dtype == DType::bool_;
}
static std::size_t dims_of(const char* function, const Index& i) {
  if (i.kind == Kind::newaxis || i.kind == Kind::ellipsis) return 0;
  return is_mask(function, i) ? i.array->shape().size() : 1;
}

bool is_traced(const Array& x) { return !x.node()->evaluated() && trace_state().is_open(x.node()->trace); }
std::int64_t count_of_true(const char* function, const Array& mask) {
  if (is_traced(mask))
    throw TraceError(
        fmt::format("{}: the mask {} has no value while the function is traced. It chooses as many elements "
                    "as its values say. Choose between values with where(mask, a, b), or take positions from "
                    "nonzero(mask, size).",
                    function, to_string(type_of(mask))));
  const DType t = api::position_type({mask.size()});
  return sum(mask, {.dtype = t}).astype(DType::int64).item<std::int64_t>();
}
void check_mask(const char* function, const Array& mask, const Shape& shape, std::size_t dim) {
  const Shape& mine = mask.shape();
  if (mine.empty())
    throw ShapeError(fmt::format(
        "{}: a mask without dimensions. It stands for those whose elements it chooses. Use where.",
        function));
  if (dim + mine.size() <= shape.size() && std::equal(mine.begin(), mine.end(), shape.begin() + dim)) return;
  throw ShapeError(
      fmt::format("{}: a mask of shape {} from dimension {} of shape {} on. It has an element for each one "
                  "there. Give one that fits.",
                  function, to_string(mine), dim, to_string(shape)));
}

ArraysAt arrays_in(const char* function, const Shape& shape, const Indices& given) {
  ArraysAt r;
  std::size_t used = 0, dim = 0, kept = 0;  // dimensions of shape, and of y
  for (const Index& i : given) used += dims_of(function, i);
  if (used > shape.size())
    throw ShapeError(
        fmt::format("{}: {} for shape {} of rank {}. There is at most one per dimension. Remove some, or add "
                    "dimensions with newaxis.",
                    function, count_text(used, "index", "indices"), to_string(shape), shape.size()));
  std::vector<bool> chooses;  // integers count too if there are arrays
  for (const Index& i : given) {
    const bool first = std::find(chooses.begin(), chooses.end(), true) == chooses.end();
    chooses.push_back(i.kind == Kind::at || i.kind == Kind::array);
    if (first && chooses.back()) r.place = kept - r.dims.size();
    if (i.kind != Kind::array) r.basic.push_back(i);
    else {
      if (is_mask(function, i)) {
        check_mask(function, *i.array, shape, dim);
        for (Array& at : nonzero(*i.array, count_of_true(function, *i.array)))
          r.arrays.push_back(std::move(at));
      } else {
        r.arrays.push_back(*i.array);
      }
      for (std::size_t k = 0; k < dims_of(function, i); k++) {
        r.basic.emplace_back(Kind::range);
        r.own.push_back(static_cast<std::int64_t>(dim + k));
        r.dims.push_back(static_cast<std::int64_t>(kept++));
      }
    }
    dim += i.kind == Kind::ellipsis && used < shape.size() ? shape.size() - used : dims_of(function, i);
    kept += i.kind == Kind::ellipsis && used < shape.size()    ? shape.size() - used
            : i.kind == Kind::range || i.kind == Kind::newaxis ? 1
                                                               : 0;
  }
  const auto from = std::find(chooses.begin(), chooses.end(), true),
             to = std::find(chooses.rbegin(), chooses.rend(), true).base();
  if (std::find(from, to, false) != to) r.place = 0;  // the indices are not adjacent
  return r;
}

RowIndex numbers_of(const char* function, const ArraysAt& at, const Shape& sizes, TakeMode mode,
                    bool from_end) {
  std::vector<Shape> shapes;
  std::int64_t rows = 1;
  for (std::size_t k = 0; k < at.arrays.size(); k++) {
    need_index(function, at.arrays[k]);
    shapes.push_back(at.arrays[k].shape());
    rows = mul_sizes(rows, sizes[static_cast<std::size_t>(at.dims[k])]);
  }
  const Shape batch = api::common_shape(function, shapes);
  const DType t = api::position_type({rows});
  RowIndex all;
  for (std::size_t k = 0; k < at.arrays.size(); k++) {
    const std::int64_t size = sizes[static_cast<std::size_t>(at.dims[k])];
    const RowIndex row = row_index(at.arrays[k], size, mode, from_end);
    const Array i = primitive::broadcast_to(primitive::cast(row.at, t), batch);
    all.at = k == 0 ? i : primitive::add(primitive::mul(all.at, primitive::like_whole(all.at, size)), i);
    if (!row.inside.has_value()) continue;
    const Array inside = primitive::broadcast_to(row.inside, batch);
    all.inside = all.inside.has_value() ? primitive::binary(op_and, all.inside, inside) : inside;
  }
  if (all.inside.has_value())
    all.at = primitive::select(all.inside, all.at, primitive::like_whole(all.at, -1));
  return all;
}

ChosenRows::ChosenRows(const char* function, const Array& y, const ArraysAt& at, TakeMode mode)
    : y_(y), order_(at.dims), place_(at.place) {
  const Shape& shape = y.shape();
  for (std::size_t k = 0; k < at.arrays.size(); k++)
    need_rows(function, y, shape[static_cast<std::size_t>(at.dims[k])], at.dims[k], at.arrays[k]);
  const RowIndex all = numbers_of(function, at, shape, mode, true);
  batch_ = all.at.shape();
  inside_ = all.inside;
  number_ = primitive::reshape(all.at, {num_elements(batch_)});
  for (const std::int64_t d : at.dims) rows_ = mul_sizes(rows_, shape[static_cast<std::size_t>(d)]);
  for (std::size_t d = 0; d < shape.size(); d++)
    if (std::find(at.dims.begin(), at.dims.end(), static_cast<std::int64_t>(d)) == at.dims.end()) {
      order_.push_back(static_cast<std::int64_t>(d));
      rest_.push_back(shape[d]);
    }
}

Shape ChosenRows::shape() const {
  Shape s;
  for (std::size_t d = 0; d < place_; d++) s.push_back(rest_[d]);
  for (const std::int64_t n : batch_) s.push_back(n);
  for (std::size_t d = place_; d < rest_.size(); d++) s.push_back(rest_[d]);
  return s;
}
Array ChosenRows::in_front(const Array& x) const {
  Shape shape = rest_;
  shape.insert(0, rows_);
  return primitive::reshape(primitive::transpose(x, order_), shape);
}
Array ChosenRows::put_back(const Array& table) const {
  Shape shape;
  for (const std::int64_t d : order_) shape.push_back(y_.shape()[static_cast<std::size_t>(d)]);
  return primitive::transpose(primitive::reshape(table, shape), rules::inverse(order_));
}

// `count` dimensions starting at `first`.
static Shape counted_from(std::size_t first, std::size_t count) {
  Shape s;
  for (std::size_t k = 0; k < count; k++) s.push_back(static_cast<std::int64_t>(first + k));
  return s;
}
Array ChosenRows::get(std::optional<double> fill_value) const {
  // If the indexed dimensions are adjacent and already where the result has them, y is not transposed.
  const bool in_place = order_[0] == static_cast<std::int64_t>(place_) && are_adjacent();
  const std::size_t lead = in_place ? place_ : 0;
  Shape shape = rest_;
  shape.insert(lead, rows_);
  const Array table = primitive::reshape(in_place ? y_ : primitive::transpose(y_, order_), shape);
  Array taken = rows_along(table, primitive::reshape(number_, batch_), lead);
  if (inside_.has_value())
    taken = filled_outside(
        taken, inside_, lead,
        fill_value ? filled_with("at.get", type_of(taken), *fill_value) : outside_value(type_of(taken)));
  if (in_place) return taken;
  return moveaxis(taken, counted_from(0, batch_.size()), counted_from(place_, batch_.size()));
}

// For bools, addition is or, multiplication is and.
static Array combined_bools(const Array& table, const Array& number, const Array& updates, Reducer r) {
  const bool is_or = r == Reducer::sum || r == Reducer::max;
  const Array found = primitive::scatter(number, primitive::cast(updates, DType::uint8), 0, 1,
                                         table.shape()[0], is_or ? Reducer::max : Reducer::min);
  return primitive::binary(is_or ? op_or : op_and, table, primitive::cast(found, DType::bool_));
}
// For bools, or is max and and is min.
Reducer combining(Update how, DType t) {
  switch (how) {
    case Update::set: return Reducer::none;
    case Update::add: return t == DType::bool_ ? Reducer::max : Reducer::sum;
    case Update::mul: return t == DType::bool_ ? Reducer::min : Reducer::prod;
    case Update::min: return Reducer::min;
    default: return Reducer::max;
  }
}
static bool is_zeros(const Array& x) {
  const Array number = primitive::number_in(x);
  return number.has_value() && number.node()->attrs().bits == 0;
}
Array ChosenRows::added(const Array& table, const Array& updates, Reducer reducer) const {
  const DType t = table.dtype(), wide = api::computed(t);
  const Array found = combined_rows(reducer, number_, primitive::cast(updates, wide), rows_);
  if (reducer == Reducer::sum && is_zeros(y_)) return primitive::cast(found, t, type_of(table).weak);
  const Array y = primitive::cast(table, wide);
  return primitive::cast(reducer == Reducer::sum ? primitive::add(y, found) : primitive::mul(y, found), t,
                         type_of(table).weak);
}
// Among the table's element and the updates, all that equal the extremum share its derivative.
Array ChosenRows::extremum(const Array& table, const Array& updates, Reducer reducer) const {
  const auto fixed = [](const Array& x) { return primitive::unary(op_stop_gradient, x); };
  const auto of_row = [&](const Array& x) { return primitive::take(x, number_, 0, 1); };
  const auto at_row = [&](const Array& x) { return primitive::scatter(number_, x, 0, 1, rows_); };
  const DType t = table.dtype(), wide = api::computed(t);
  const Array y = primitive::cast(table, wide), v = primitive::cast(updates, wide);
  const Array best = primitive::binary(reducer == Reducer::max ? op_max : op_min, fixed(y),
                                       primitive::scatter(number_, fixed(v), 0, 1, rows_, reducer));
  if (!is_floating(t)) return primitive::cast(best, t, type_of(table).weak);
  const auto is_best = [&](const Array& x, const Array& extremum) {
    return primitive::cast(primitive::binary(op_eq, fixed(x), extremum), wide);
  };
  const Array mine = is_best(y, best), theirs = is_best(v, of_row(best));
  const Array sharing = primitive::add(mine, at_row(theirs));
  const Array inside =
      primitive::broadcast(primitive::binary(op_ge, number_, primitive::like_whole(number_, 0)), v.shape(),
                           {-std::ssize(v.shape())});
  const Array share =
      primitive::select(inside, primitive::div(theirs, of_row(sharing)), primitive::like(theirs, 0));
  // NaN equals nothing; rows without updates keep the element itself.
  const Array alone = primitive::binary(op_eq, at_row(primitive::like(theirs, 1)), primitive::like(mine, 0));
  const Array own = primitive::select(alone, primitive::like(mine, 1), primitive::div(mine, sharing));
  const Array line = primitive::add(primitive::mul(y, own), at_row(primitive::mul(v, share)));
  return primitive::cast(primitive::with_slope_of(best, line), t, type_of(table).weak);
}

bool ChosenRows::are_adjacent() const {
  const std::size_t arrays = order_.size() - rest_.size();
  return order_[arrays - 1] - order_[0] == static_cast<std::int64_t>(arrays) - 1;
}

// Dimensions before the indexed ones are a batch, so y is not transposed, unless others lie between.
Array ChosenRows::written(Update how, const Array& y, const Array& v) const {
  const std::size_t lead = are_adjacent() ? static_cast<std::size_t>(order_[0]) : 0;
  const Array x = are_adjacent() ? y : primitive::transpose(y, order_);
  Shape table = rest_, rows(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(lead)),
        updates = rest_;
  const std::int64_t count = num_elements(batch_);
  table.insert(lead, rows_);
  rows.push_back(count);
  updates.insert(lead, count);
  const Array from = moveaxis(v, counted_from(place_, batch_.size()), counted_from(lead, batch_.size()));
  const primitive::UpdateOptions options{combining(how, y.dtype()), static_cast<std::int64_t>(lead)};
  const Array result = primitive::reshape(
      primitive::update_rows(primitive::reshape(x, table), primitive::broadcast_to(number_, rows),
                             primitive::reshape(from, updates), options),
      x.shape());
  return are_adjacent() ? result : primitive::transpose(result, rules::inverse(order_));
}

Array ChosenRows::updated(Update how, const Array& v) const {
  if (num_elements(batch_) == 0) return y_;
  const DType t = y_.dtype();
  const bool has_kernel = how == Update::set || how == Update::add || !is_complex(t);
  // Every device then needs all updates that may meet its rows. Where these and their numbers are more than a table of all rows, it is
  // cheaper if devices combine their own updates; not so for set, which needs those that are last.
  const std::int64_t numbers = how == Update::set ? 0 : num_elements(batch_);
  const bool are_many = num_elements(v.shape()) + numbers > num_elements(y_.shape());
  if (!has_kernel || are_many || (how == Update::add && is_zeros(y_))) return combined(how, v);
  const bool is_linear = how == Update::set || (how == Update::add && !is_half(t));
  if (is_linear || !is_floating(t)) return written(how, y_, v);
  const auto fixed = [](const Array& x) { return primitive::unary(op_stop_gradient, x); };
  return primitive::with_slope_of(written(how, fixed(y_), fixed(v)), combined(how, v));
}

Array ChosenRows::combined(Update how, const Array& v) const {
  const std::int64_t count = num_elements(batch_);
  const Array table = in_front(y_);
  Shape rows = rest_;
  rows.insert(0, count);
  const Array updates = primitive::reshape(
      moveaxis(v, counted_from(place_, batch_.size()), counted_from(0, batch_.size())), rows);
  if (how == Update::set) {
    const DType order = api::position_type({count});
    const Array last =
        primitive::scatter(number_, primitive::iota({count}, 0, order), 0, 1, rows_, Reducer::max);
    const Array zero = primitive::like(last, 0);
    const Array is_set = primitive::broadcast(primitive::binary(op_ge, last, zero), table.shape(),
                                              {-std::ssize(table.shape())});
    const Array chosen = primitive::take(updates, primitive::binary(op_max, last, zero), 0, 1);
    return put_back(primitive::select(is_set, chosen, table));
  }
  const Reducer r = how == Update::add   ? Reducer::sum
                    : how == Update::mul ? Reducer::prod
                    : how == Update::max ? Reducer::max
                                         : Reducer::min;
  if (table.dtype() == DType::bool_) return put_back(combined_bools(table, number_, updates, r));
  const bool is_extremum = r == Reducer::max || r == Reducer::min;
  return put_back(is_extremum ? extremum(table, updates, r) : added(table, updates, r));
}

}  // namespace shardarray
