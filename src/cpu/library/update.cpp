// Writes a part into an array at a position given by data.
#include <algorithm>
#include <cstring>

#include "base/at.h"
#include "base/ceil_div.h"
#include "base/small_vector.h"
#include "cpu/address.h"
#include "cpu/library/combined.h"
#include "cpu/library/library_call.h"

namespace shardarray {
namespace {

struct Dim {
  std::int64_t n, m;           ///< sizes of x and of the part
  std::int64_t x_step, step;   ///< strides in bytes
  std::int64_t first = 0;      ///< global index of the tile's first element
  int start = -1;              ///< the operand with the part's start; -1: it starts where x does
  DType index = DType::int32;  ///< that operand's dtype
  // Which range of the part is inside x, and the part's start in x, whose global start is `first`.
  struct Inside {
    std::int64_t from, to, at;
  };
  Inside inside(std::int64_t begin) const {
    const std::int64_t at = start < 0 ? 0 : begin - first;
    return {std::max<std::int64_t>(0, -at), std::min(m, n - at), at};
  }
};

/// Units: rows of the part along its first dimension, by batch entry.
struct Update {
  LibraryCall::Item item;
  std::vector<Dim> dims;
  std::int64_t x_bytes, part_bytes;  ///< per batch entry
  /// Writes bytes of the part, or combines them.
  void (*write)(char* to, const char* part, std::int64_t bytes);

  std::int64_t rows() const { return dims.empty() ? 1 : dims[0].m; }
  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t u = begin, next; u < end; u = next) {
      const std::int64_t entry = u / rows(), first = u % rows();
      next = std::min(end, (entry + 1) * rows());
      put(bases, entry, first, first + next - u);
    }
  }

 private:
  std::int64_t start(void* const* bases, const Dim& d, std::int64_t entry) const {
    if (d.start < 0) return 0;
    const char* const p = address(bases, item.in[static_cast<std::size_t>(d.start)]);
    return d.index == DType::int32 ? read_number<std::int32_t>(p + 4 * entry)
                                   : read_number<std::int64_t>(p + 8 * entry);
  }
  void put(void* const* bases, std::int64_t entry, std::int64_t first, std::int64_t last) const {
    char* const out = address(bases, item.out[0]) + entry * x_bytes;
    const char* const part = address(bases, item.in[1]) + entry * part_bytes;
    if (dims.empty()) {
      write(out, part, part_bytes);
      return;
    }
    SmallVector<Dim::Inside, 4> inside;
    for (const Dim& d : dims) inside.push_back(d.inside(start(bases, d, entry)));
    inside[0].from = std::max(inside[0].from, first);
    inside[0].to = std::min(inside[0].to, last);
    copy(0, inside.data(), out, part);
  }
  void copy(std::size_t d, const Dim::Inside* inside, char* out, const char* part) const {
    const auto [from, to, at] = inside[d];
    if (from >= to) return;
    out += (from + at) * dims[d].x_step;
    part += from * dims[d].step;
    if (d + 1 == dims.size()) {
      write(out, part, (to - from) * dims[d].step);
      return;
    }
    for (std::int64_t i = from; i < to; i++, out += dims[d].x_step, part += dims[d].step)
      copy(d + 1, inside, out, part);
  }
};

void copy_bytes(char* to, const char* part, std::int64_t bytes) {
  std::memcpy(to, part, static_cast<std::size_t>(bytes));
}
template <Reducer r, class T> void combine_bytes(char* to, const char* part, std::int64_t bytes) {
  combine_each(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(part),
               bytes / static_cast<std::int64_t>(sizeof(T)), [](T a, T b) { return combined<r>(a, b); });
}

}  // namespace

LibraryPlan after_copy(const LibraryCall::Item& item, DType t, LibraryPlan put) {
  const Ref &to = item.out[0], &from = item.in[0];
  if (to.base == from.base && to.offset == from.offset) return put;
  constexpr std::int64_t block = 1 << 18;
  const std::int64_t bytes = num_elements(item.in_shapes[0]) * static_cast<std::int64_t>(itemsize(t));
  LibraryPlan copy(ceil_div(bytes, block), static_cast<double>(bytes) * 0.1,
                   [=](void* const* bases, std::int64_t begin, std::int64_t end) {
                     const std::int64_t first = begin * block, last = std::min(end * block, bytes);
                     std::memcpy(address(bases, to) + first, address(bases, from) + first,
                                 static_cast<std::size_t>(last - first));
                   });
  return std::move(copy).then(std::move(put));
}

LibraryPlan plan_update(const LibraryCall& call, const LibraryCall::Item& item) {
  const Shape &x = item.in_shapes[0], &part = item.in_shapes[1];
  const DType t = call.in_types[0];
  const auto size = static_cast<std::int64_t>(itemsize(t));
  Update u{item, {}, size, size, copy_bytes};
  int start = 2;
  for (std::size_t d = 1; d < x.size(); d++) {
    u.dims.push_back({x[d], part[d], 0, 0});
    if (item.params[d] < 0) continue;
    u.dims.back().first = item.params[d];
    u.dims.back().start = start;
    u.dims.back().index = at(call.in_types, start++);
  }
  for (std::size_t d = u.dims.size(); d-- > 0;) {
    u.dims[d].x_step = u.x_bytes;
    u.dims[d].step = u.part_bytes;
    u.x_bytes *= x[d + 1];
    u.part_bytes *= part[d + 1];
  }
  const auto plan = [&] {
    const std::int64_t batch = x[0], bytes = batch * u.x_bytes;
    const std::int64_t units = bytes == 0 || u.part_bytes == 0 ? 0 : batch * u.rows();
    const double cost = static_cast<double>(batch * u.part_bytes) * 0.1 + static_cast<double>(units) * 20;
    return after_copy(item, t, {units, cost, std::move(u)});
  };
  if (static_cast<Reducer>(item.params[0]) == Reducer::none) return plan();
  return with_number_type("update", t == DType::bool_ ? DType::uint8 : t, [&]<class T>(T) {
    u.write = with_reducer(item.params[0], []<Reducer r>() { return &combine_bytes<r, T>; });
    return plan();
  });
}

}  // namespace shardarray
