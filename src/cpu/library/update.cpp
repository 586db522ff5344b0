// Writes a part into an array at a position given by data.
#include <algorithm>
#include <cstring>

#include "base/at.h"
#include "base/ceil_div.h"
#include "base/small_vector.h"
#include "cpu/address.h"
#include "cpu/library/combined.h"
#include "cpu/library/library_call.h"
#include "cpu/library/update_spec.h"

namespace shardarray {
namespace {

// Which range of the part is inside x, and the part's start in x, whose global start is `begin`.
struct Inside {
  std::int64_t from, to, at;
};
Inside inside(const UpdateSpec::Dim& d, std::int64_t begin) {
  const std::int64_t at = d.moves ? begin - d.first : 0;
  return {std::max<std::int64_t>(0, -at), std::min(d.m, d.n - at), at};
}

/// Units: rows of the part along its first dimension, by batch entry.
struct Update {
  LibraryCall::Item item;
  UpdateSpec spec;
  /// Writes bytes of the part, or combines them.
  void (*write)(char* to, const char* part, std::int64_t bytes);

  std::int64_t rows() const { return spec.dims.empty() ? 1 : spec.dims[0].m; }
  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t u = begin, next; u < end; u = next) {
      const std::int64_t entry = u / rows(), first = u % rows();
      next = std::min(end, (entry + 1) * rows());
      put(bases, entry, first, first + next - u);
    }
  }

 private:
  void put(void* const* bases, std::int64_t entry, std::int64_t first, std::int64_t last) const {
    char* const out = address(bases, item.out[0]) + entry * spec.x_bytes;
    const char* const part = address(bases, item.in[1]) + entry * spec.part_bytes;
    if (spec.dims.empty()) {
      write(out, part, spec.part_bytes);
      return;
    }
    SmallVector<Inside, 4> ranges;
    std::size_t operand = 2;
    for (const UpdateSpec::Dim& d : spec.dims) {
      std::int64_t start = 0;
      if (d.moves) {
        const char* const p = address(bases, item.in[operand++]);
        start = d.index == DType::int32 ? read_number<std::int32_t>(p + 4 * entry)
                                        : read_number<std::int64_t>(p + 8 * entry);
      }
      ranges.push_back(inside(d, start));
    }
    ranges[0].from = std::max(ranges[0].from, first);
    ranges[0].to = std::min(ranges[0].to, last);
    copy(0, ranges.data(), out, part);
  }
  void copy(std::size_t k, const Inside* ranges, char* out, const char* part) const {
    const UpdateSpec::Dim& d = spec.dims[k];
    const auto [from, to, at] = ranges[k];
    if (from >= to) return;
    out += (from + at) * d.x_step;
    part += from * d.step;
    if (k + 1 == spec.dims.size()) {
      write(out, part, (to - from) * d.step);
      return;
    }
    for (std::int64_t i = from; i < to; i++, out += d.x_step, part += d.step) copy(k + 1, ranges, out, part);
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
  if (updates_in_place(item)) return put;
  const Ref &to = item.out[0], &from = item.in[0];
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

UpdateSpec update_spec(const LibraryCall& call, const LibraryCall::Item& item) {
  const Shape &x = item.in_shapes[0], &part = item.in_shapes[1];
  const auto size = static_cast<std::int64_t>(itemsize(call.in_types[0]));
  UpdateSpec u{call.in_types[0], static_cast<Reducer>(item.params[0]), x[0], size, size, {}};
  int start = 2;
  for (std::size_t d = 1; d < x.size(); d++) {
    UpdateSpec::Dim& dim = u.dims.emplace_back(UpdateSpec::Dim{x[d], part[d]});
    if (item.params[d] < 0) continue;
    dim.moves = true;
    dim.first = item.params[d];
    dim.index = at(call.in_types, start++);
  }
  for (auto d = u.dims.rbegin(); d != u.dims.rend(); ++d) {
    d->x_step = u.x_bytes;
    d->step = u.part_bytes;
    u.x_bytes *= d->n;
    u.part_bytes *= d->m;
  }
  return u;
}

std::int64_t UpdateSpec::row_bytes() const {
  auto bytes = static_cast<std::int64_t>(itemsize(type));
  for (auto d = dims.rbegin(); d != dims.rend() && !d->moves && d->m == d->n; ++d) bytes *= d->m;
  return bytes;
}

LibraryPlan plan_update(const LibraryCall& call, const LibraryCall::Item& item) {
  Update u{item, update_spec(call, item), copy_bytes};
  const auto plan = [&] {
    const UpdateSpec& s = u.spec;
    const std::int64_t units = s.x_bytes == 0 || s.part_bytes == 0 ? 0 : s.batch * u.rows();
    const double cost = static_cast<double>(s.batch * s.part_bytes) * 0.1 + static_cast<double>(units) * 20;
    return after_copy(item, call.in_types[0], {units, cost, std::move(u)});
  };
  const DType t = call.in_types[0];
  if (u.spec.reducer == Reducer::none) return plan();
  return with_number_type("update", t == DType::bool_ ? DType::uint8 : t, [&]<class T>(T) {
    u.write = with_reducer(item.params[0], []<Reducer r>() { return &combine_bytes<r, T>; });
    return plan();
  });
}

}  // namespace shardarray
