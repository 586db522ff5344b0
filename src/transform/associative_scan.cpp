// associative_scan's erased core. Adjacent pairs are combined and scanned recursively, which gives the odd parts; an even part is the
// preceding odd one combined with one more part (Ladner, Fischer 1980; Blelloch 1990).
#include "shardarray/associative_scan.h"

#include <fmt/core.h>

#include "ops/record.h"

namespace shardarray {

namespace {

class AssociativeScan {
 public:
  AssociativeScan(core::CombineBody f, std::vector<std::size_t> dims) : f_(f), dims_(std::move(dims)) {}

  /// Scans n >= 1 parts.
  Arrays run(const Arrays& x, std::int64_t n) const {
    if (n < 2) return x;
    const std::int64_t pairs = n / 2;
    const Arrays odd = run(combined(every_second(x, 0, pairs), every_second(x, 1, pairs)), pairs);
    const std::int64_t later = (n + 1) / 2 - 1;  // even parts after the first
    Arrays even = parts(x, 0, 1);
    if (later > 0) {
      const Arrays next = combined(parts(odd, 0, later), every_second(x, 2, later));
      for (std::size_t k = 0; k < x.size(); k++)
        even[k] = primitive::concatenate(Arrays{even[k], next[k]}, dims_[k]);
    }
    return interleaved(even, odd, n);
  }

 private:
  Arrays parts(const Arrays& x, std::int64_t lo, std::int64_t hi) const {
    Arrays r;
    for (std::size_t k = 0; k < x.size(); k++) r.push_back(primitive::slice_dim(x[k], dims_[k], lo, hi));
    return r;
  }
  // Parts first, first + 2, ..., `count` of them.
  Arrays every_second(const Arrays& x, std::int64_t first, std::int64_t count) const {
    Arrays r;
    for (std::size_t k = 0; k < x.size(); k++) {
      Shape lo = Shape::filled(x[k].shape().size(), 0), hi = x[k].shape(), step = Shape::filled(lo.size(), 1);
      lo[dims_[k]] = first;
      hi[dims_[k]] = first + 2 * (count - 1) + 1;
      step[dims_[k]] = 2;
      r.push_back(primitive::slice(x[k], lo, hi, step));
    }
    return r;
  }
  // even[0], odd[0], even[1], ...: n parts.
  Arrays interleaved(const Arrays& even, const Arrays& odd, std::int64_t n) const {
    Arrays r;
    for (std::size_t k = 0; k < even.size(); k++) {
      const std::size_t d = dims_[k];
      const std::int64_t pairs = n / 2;
      const auto beside = [&](const Array& a) {
        Shape s = a.shape();
        s.insert(d + 1, 1);
        return primitive::reshape(a, s);
      };
      Shape flat = odd[k].shape();
      flat[d] = 2 * pairs;
      const Array both = primitive::concatenate(
          Arrays{beside(primitive::slice_dim(even[k], d, 0, pairs)), beside(odd[k])}, d + 1);
      const Array all = primitive::reshape(both, flat);
      if (n % 2 == 0) r.push_back(all);
      else
        r.push_back(
            primitive::concatenate(Arrays{all, primitive::slice_dim(even[k], d, pairs, pairs + 1)}, d));
    }
    return r;
  }

  Arrays combined(const Arrays& a, const Arrays& b) const {
    Arrays r = [&] {
      const detail::UserSite user;
      return f_(a, b);
    }();
    for (std::size_t k = 0; k < r.size(); k++) {
      if (!r[k].has_value())
        throw TreeError(
            "associative_scan: the function left an array of its arguments out. It gives a tree like them. "
            "Return all of its arrays.");
      const Type &want = type_of(a[k]), &got = type_of(r[k]);
      if (!(want.shape == got.shape))
        throw ShapeError(
            fmt::format("associative_scan: the function made {} of two {}. It combines part by part and "
                        "keeps shapes. Let it work on any length along the axis.",
                        to_string(got), to_string(want)));
      if (want.dtype != got.dtype)
        throw DTypeError(fmt::format(
            "associative_scan: the function made {} of two {}. It keeps dtypes. Convert with astype.",
            to_string(got), to_string(want)));
    }
    return r;
  }

  core::CombineBody f_;
  std::vector<std::size_t> dims_;
};

}  // namespace

core::Arrays core::associative_scan(CombineBody f, std::span<const ScanLeaf> elements,
                                    const AssociativeScanOptions& options, Where w) {
  const Site site(w, "associative_scan");
  std::vector<std::size_t> dims;
  Arrays present;
  std::optional<std::int64_t> length;
  for (const ScanLeaf& e : elements) {
    if (!e.array.has_value()) continue;
    const Type& t = type_of(e.array);
    const auto rank = static_cast<std::int64_t>(t.shape.size());
    if (options.axis < -rank || options.axis >= rank)
      throw ShapeError(fmt::format(
          "associative_scan: axis {} is out of bounds for an array {} of rank {}. Axes are in -{} .. {}. "
          "Give one of them.",
          options.axis, to_string(t), rank, rank, rank - 1));
    const auto dim = static_cast<std::size_t>(options.axis < 0 ? options.axis + rank : options.axis);
    if (length && *length != t.shape[dim])
      throw ShapeError(fmt::format(
          "associative_scan: the arrays have different lengths along axis {}: {} and {}. One part "
          "of each is combined at once. Slice or pad them to one length.",
          options.axis, *length, t.shape[dim]));
    length = t.shape[dim];
    dims.push_back(dim);
    present.push_back(
        options.reverse
            ? primitive::reverse(e.array, Shape{options.axis < 0 ? options.axis : options.axis - rank})
            : e.array);
  }
  if (!length)
    throw TreeError(
        "associative_scan: there is no array to combine parts of. Elements are a tree of arrays. Give one.");
  // The function sees all leaves, including those without an array.
  const auto all_places = [&](std::span<const Array> some) {
    Arrays all;
    std::size_t next = 0;
    for (const ScanLeaf& e : elements) all.push_back(e.array.has_value() ? some[next++] : Array());
    return all;
  };
  const auto combine = [&](std::span<const Array> a, std::span<const Array> b) {
    const Arrays given = f(all_places(a), all_places(b));
    Arrays r;
    for (std::size_t k = 0; k < elements.size(); k++)
      if (elements[k].array.has_value()) r.push_back(given[k]);
      else if (given[k].has_value())
        throw TreeError(
            fmt::format("associative_scan: the function made {} in a place where the elements have no array. "
                        "It gives a tree like them. Leave it absent (Array()).",
                        to_string(type_of(given[k]))));
    return r;
  };
  Arrays out = *length == 0 ? present : AssociativeScan(combine, dims).run(present, *length);
  if (options.reverse)
    for (Array& a : out) {
      const auto rank = static_cast<std::int64_t>(a.shape().size());
      a = primitive::reverse(a, Shape{options.axis < 0 ? options.axis : options.axis - rank});
    }
  return all_places(out);
}

}  // namespace shardarray
