#include "compile/sort_by_columns.h"

#include <algorithm>
#include <limits>

#include "base/at.h"
#include "compile/assignment.h"
#include "compile/strict.h"
#include "ops/record.h"

namespace shardarray {

namespace {

std::size_t sorted_dim(const FlatNode& n) {
  return static_cast<std::size_t>(n.attrs->dims[0] + std::ssize(n.in_types[0].shape));
}

// Whether equal keys need positions: something else tells them apart, or the bits must be those of one device.
bool needs_positions(const FlatNode& sort) {
  return sort.in.size() > 1 || (is_floating(sort.in_types[0].dtype) && sort.modes->reproducible);
}
bool is_position(const FlatGraph& g, int v, const FlatNode& sort) {
  const FlatNode& n = at(g.nodes, at(g.producer, v));
  return n.op->trait == Trait::positions && n.attrs->dims[0] == sort.attrs->dims[0] &&
         is_integer(n.out_types[0].dtype);
}

// Whether columns move less than whole lines do.
bool moves_less(const FlatGraph& g, const FlatNode& sort, std::int64_t columns) {
  // Bytes per element: of all operands; of those that are not made where they are needed.
  std::size_t all = 0, to_bring = 0;
  bool has_positions = !needs_positions(sort);
  for (std::size_t k = 0; k < sort.in.size(); k++) {
    const std::size_t bytes = itemsize(sort.in_types[k].dtype);
    all += bytes;
    if (!is_free(g, at(g.producer, sort.in[k]))) to_bring += bytes;
    has_positions |= is_position(g, sort.in[k], sort);
  }
  if (!has_positions) all += itemsize(DType::int32);
  return 2 * all < static_cast<std::size_t>(columns) * to_bring;
}

// The number of columns for a sort: the parts of its lines, if they suit. 1: it stays as it is.
std::int64_t columns_of(const FlatGraph& g, const FlatNode& n, const Propagation& p) {
  if (n.op->trait != Trait::sort) return 1;
  const std::int64_t length = n.in_types[0].shape[sorted_dim(n)];
  std::int64_t columns = 1;
  for (const int sub_axis : at(p.preferences.dims, n.in[0])[sorted_dim(n)])
    columns *= p.sub_axes.size(sub_axis);
  const bool fits = columns > 1 && length % (columns * columns) == 0 &&
                    length / columns >= 2 * columns * columns &&
                    length <= std::numeric_limits<std::int32_t>::max();
  return fits && moves_less(g, n, columns) ? columns : 1;
}

// The nodes of one sort, appended to a graph. Lines are [columns, elements per column], along dimensions d and d + 1.
class Columns {
 public:
  Columns(FlatGraph& g, const FlatNode& sort, std::int64_t columns)
      : g_(g), sort_(sort), d_(sorted_dim(sort)), columns_(columns) {
    rows_ = sort.in_types[0].shape[d_] / columns;
  }

  std::vector<int> run(std::vector<int> operands) {
    lines_ = std::move(operands);
    find_positions();
    const std::int64_t blocks = rows_ / columns_;
    each([&](int v) { return reshaped(v, {columns_, rows_}); });
    sort_lines(false);
    each([&](int v) {
      return reshaped(transposed(reshaped(v, {columns_, blocks, columns_}), {2, 0, 1}), {columns_, rows_});
    });
    sort_lines(false);  // equal keys are ordered by column, so by position
    each([&](int v) {
      return reshaped(transposed(reshaped(v, {columns_, columns_, blocks}), {1, 2, 0}), {columns_, rows_});
    });
    sort_lines(true);
    return with_sorted_borders();
  }

 private:
  void find_positions() {
    count_ = lines_.size();
    if (!needs_positions(sort_)) return;
    positions_ =
        std::find_if(lines_.begin(), lines_.end(), [&](int v) { return is_position(g_, v, sort_); }) -
        lines_.begin();
    if (positions_ < std::ssize(lines_)) return;
    const Type& key = sort_.in_types[0];
    Attrs a;
    a.shape = key.shape;
    a.dtype = DType::int32;
    a.dims = {sort_.attrs->dims[0]};
    lines_.push_back(add(op_iota, std::move(a), {}, {key.shape, DType::int32, false}));
  }

  // Sorts each line; `ties`: equal keys are not ordered by position.
  void sort_lines(bool ties) {
    Attrs a;
    a.dims = {sort_.attrs->dims[0]};
    const auto attrs = std::make_shared<const Attrs>(std::move(a));
    const auto by_first = [&] {
      std::vector<Type> types;
      types.reserve(lines_.size());
      for (const int v : lines_) types.push_back(at(g_.types, v));
      int v = g_.add(sort_.op, attrs, std::move(lines_), std::move(types), sort_.where, sort_.modes);
      lines_.resize(at(g_.nodes, at(g_.producer, v)).out_types.size());
      for (int& line : lines_) line = v++;
    };
    if (ties && positions_ > 0) {
      std::swap(lines_[0], lines_[static_cast<std::size_t>(positions_)]);
      by_first();
      std::swap(lines_[0], lines_[static_cast<std::size_t>(positions_)]);
    }
    by_first();
  }

  // The columns are sorted; sorts the end of each with the start of the next. Returns the operands in their original shape.
  std::vector<int> with_sorted_borders() {
    const std::int64_t border = columns_ * columns_, end = rows_ - border;
    const std::vector<int> inside = lines_;
    each([&](int v) {
      const int first = slice(v, d_ + 1, 0, border);
      const int next = joined({slice(first, d_, 1, columns_), slice(first, d_, 0, 1)}, d_);
      return joined({slice(v, d_ + 1, end, rows_), next}, d_ + 1);
    });
    sort_lines(true);  // after the last column comes the first: what that gives is not read
    std::vector<int> results;
    results.reserve(count_);
    for (std::size_t k = 0; k < count_; k++) {
      const int v = inside[k], sorted = lines_[k];
      const int before = slice(slice(sorted, d_, 0, columns_ - 1), d_ + 1, border, 2 * border),
                behind = slice(slice(sorted, d_, 0, columns_ - 1), d_ + 1, 0, border);
      std::vector<int> parts{joined({slice(slice(v, d_, 0, 1), d_ + 1, 0, border), before}, d_)};
      if (border < end) parts.push_back(slice(v, d_ + 1, border, end));
      parts.push_back(joined({behind, slice(slice(v, d_, columns_ - 1, columns_), d_ + 1, end, rows_)}, d_));
      results.push_back(reshaped(joined(std::move(parts), d_ + 1), {columns_ * rows_}));
    }
    return results;
  }

  template <class F> void each(const F& f) {
    for (int& v : lines_) v = f(v);
  }
  int add(const Op& op, Attrs a, std::vector<int> in, Type t) {
    return g_.add(&op, std::make_shared<const Attrs>(std::move(a)), std::move(in), {std::move(t)},
                  sort_.where, sort_.modes);
  }
  // Dimension d, and those that were split from it, become `sizes`.
  int reshaped(int v, const Shape& sizes) {
    const Shape& whole = sort_.in_types[0].shape;
    Type t = at(g_.types, v);
    Attrs a;
    for (std::size_t d = 0; d < whole.size(); d++)
      if (d != d_) a.shape.push_back(whole[d]);
      else
        for (const std::int64_t size : sizes) a.shape.push_back(size);
    t.shape = a.shape;
    return add(op_reshape, std::move(a), {v}, std::move(t));
  }
  // Permutes the three dimensions from d on: k of the result is order[k].
  int transposed(int v, const Shape& order) {
    const Type from = at(g_.types, v);
    const auto rank = std::ssize(from.shape);
    Type t = from;
    Attrs a;
    for (std::size_t k = 0; k < from.shape.size(); k++) {
      const bool moves = k >= d_ && k < d_ + order.size();
      const std::size_t source = moves ? d_ + static_cast<std::size_t>(order[k - d_]) : k;
      t.shape[k] = from.shape[source];
      a.dims.push_back(static_cast<std::int64_t>(source) - rank);
    }
    return add(op_transpose, std::move(a), {v}, std::move(t));
  }
  int slice(int v, std::size_t dim, std::int64_t lo, std::int64_t hi) {
    Type t = at(g_.types, v);
    Attrs a;
    a.lo = Shape::filled(t.shape.size(), 0);
    a.step = Shape::filled(t.shape.size(), 1);
    a.hi = t.shape;
    a.lo[dim] = lo;
    a.hi[dim] = hi;
    t.shape[dim] = hi - lo;
    return add(op_slice, std::move(a), {v}, std::move(t));
  }
  int joined(std::vector<int> parts, std::size_t dim) {
    Type t = at(g_.types, parts[0]);
    t.shape[dim] = 0;
    for (const int v : parts) t.shape[dim] += at(g_.types, v).shape[dim];
    Attrs a;
    a.dims = {static_cast<std::int64_t>(dim) - std::ssize(t.shape)};
    return add(op_concatenate, std::move(a), std::move(parts), std::move(t));
  }

  FlatGraph& g_;
  const FlatNode& sort_;
  std::size_t d_;
  std::int64_t columns_, rows_ = 0;
  std::vector<int> lines_;         // values: the operands, then positions if no operand has them
  std::size_t count_ = 0;          // operands
  std::ptrdiff_t positions_ = -1;  // among the lines; -1: none are needed
};

}  // namespace

std::optional<FlatGraph> sort_by_columns(const FlatGraph& g, const Propagation& p) {
  const auto by_columns = [&](const FlatNode& n) { return columns_of(g, n, p) > 1; };
  if (!is_auto(g) || std::none_of(g.nodes.begin(), g.nodes.end(), by_columns)) return std::nullopt;
  FlatGraph out;
  std::vector<int> value(g.types.size(), -1);
  for (const FlatNode& n : g.nodes) {
    std::vector<int> in;
    in.reserve(n.in.size());
    for (const int v : n.in) in.push_back(at(value, v));
    if (const std::int64_t columns = columns_of(g, n, p); columns > 1) {
      const std::vector<int> sorted = Columns(out, n, columns).run(std::move(in));
      for (int k = 0; k < std::ssize(sorted); k++) at(value, n.first_out + k) = at(sorted, k);
      continue;
    }
    const int first = out.add(n.op, n.attrs, std::move(in), n.out_types, n.where, n.modes);
    for (int k = 0; k < std::ssize(n.out_types); k++) at(value, n.first_out + k) = first + k;
  }
  for (const int v : g.inputs) out.inputs.push_back(at(value, v));
  for (const int v : g.outputs) out.outputs.push_back(at(value, v));
  return out;
}

}  // namespace shardarray
