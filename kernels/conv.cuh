// Sums of products over windows (runtime/contraction.h): one thread per element of the result, neighbouring threads on neighbouring points.
#pragma once
#include "kernels/gemm.cuh"

namespace shardarray::device {

/// Strides in elements.
struct ConvDim {
  std::int64_t size, lhs, rhs, out;
};
struct ConvItem {
  Address lhs, rhs, out;
  List<ConvDim> groups, points, features, summed;
  std::int64_t elements, steps,
      chain;  ///< of the result; products per element, and those of one chain of multiply-adds
};
struct ConvTable {
  List<ConvItem> items;
};

struct ConvPlace {
  std::int64_t lhs, rhs, out;
};
/// Advances to the position of `number` in these dimensions without the last `skipped`; takes their part off `number`.
SHARDARRAY_DEVICE inline void move_on(ConvPlace& place, PointNumber& number, const std::byte* table,
                                      const List<ConvDim>& dims, std::uint32_t skipped = 0) {
  for (std::uint32_t d = dims.count - skipped; d-- > 0;) {
    const ConvDim& dim = entries(table, dims)[d];
    const std::int64_t at = take_off(number, static_cast<PointNumber>(dim.size));
    place.lhs += at * dim.lhs;
    place.rhs += at * dim.rhs;
    place.out += at * dim.out;
  }
}

/// Sums chain by chain, adding each to the total when it ends.
template <class T> class ConvSum {
 public:
  SHARDARRAY_DEVICE void add(T a, T b, std::int64_t chain) {
    if (length_ == chain) end_chain();
    sum_ = multiply_add(a, b, sum_);
    length_++;
  }
  SHARDARRAY_DEVICE T result() {
    if (!is_long_) return sum_;
    end_chain();
    if constexpr (std::is_floating_point_v<T>) return scalar::with_rounded_off(total_, lost_);
    else return total_;
  }

 private:
  SHARDARRAY_DEVICE void end_chain() {
    if constexpr (std::is_floating_point_v<T>) {
      if (is_long_) lost_ += scalar::rounded_off(total_, sum_);
      total_ = is_long_ ? total_ + sum_ : sum_;
    } else {
      total_ = scalar::add(total_, sum_);
    }
    is_long_ = true;
    sum_ = T{};
    length_ = 0;
  }
  T sum_{}, total_{}, lost_{};
  std::int64_t length_ = 0;
  bool is_long_ = false;
};

template <class T>
SHARDARRAY_DEVICE void conv(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const ConvTable& t = *reinterpret_cast<const ConvTable*>(table);
  const ConvItem& c = entries(table, t.items)[g.item];
  const T* const lhs = reinterpret_cast<const T*>(address_of(bases, c.lhs));
  const T* const rhs = reinterpret_cast<const T*>(address_of(bases, c.rhs));
  const bool has_line = c.summed.count > 0;
  const ConvDim line = has_line ? entries(table, c.summed)[c.summed.count - 1] : ConvDim{1, 0, 0, 0};
  for (std::int64_t at = first_point(g); at < c.elements; at += point_step(g)) {
    ConvPlace place{0, 0, 0};
    auto left = static_cast<PointNumber>(at);
    move_on(place, left, table, c.points);
    move_on(place, left, table, c.features);
    move_on(place, left, table, c.groups);
    ConvSum<T> sum;
    for (std::int64_t step = 0; step < c.steps; step += line.size) {
      ConvPlace from = place;
      auto number = static_cast<PointNumber>(step / line.size);
      move_on(from, number, table, c.summed, has_line ? 1 : 0);
      for (std::int64_t k = 0; k < line.size; k++)
        sum.add(lhs[from.lhs + k * line.lhs], rhs[from.rhs + k * line.rhs], c.chain);
    }
    reinterpret_cast<T*>(address_of(bases, c.out))[place.out] = sum.result();
  }
}

}  // namespace shardarray::device
