// Matrix products: each element is one ascending chain of multiply-adds, or, if long, blocks of them (scalar.h), the same on every platform
// with `fixed_order`.
#pragma once
#include "kernels/arithmetic.cuh"
#include "kernels/halves.cuh"
#include "kernels/lanes.cuh"

namespace shardarray::device {

/// Strides in elements.
struct ProductItem {
  Address a, b, c;
  std::int64_t m, n, k, batch;
  std::int64_t a_row, a_col, a_batch, b_row, b_col, b_batch, c_row, c_batch;
  std::int64_t lanes;  ///< lanes of a warp that share an element in make_elements_by_lanes, a power of two
};
struct ProductTable {
  List<ProductItem> items;
};

/// 16-bit floats as stored; `wide` is exact.
struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};
SHARDARRAY_DEVICE inline float wide(Half x) { return widen_float16(x.bits); }
SHARDARRAY_DEVICE inline float wide(Brain x) { return widen_bfloat16(x.bits); }
template <class T> SHARDARRAY_DEVICE inline T wide(T x) { return x; }

template <class T> SHARDARRAY_DEVICE inline T multiply_add(T a, T b, T c) {
  if constexpr (std::is_same_v<T, bool>) return (a && b) || c;
  else if constexpr (std::is_floating_point_v<T>) return scalar::fma(a, b, c);
  else return scalar::add(scalar::mul(a, b), c);
}

/// k multiply-adds from 0; advances a and b. Operands of several steps are loaded before the first is used. Item: ProductItem, or one with
/// constant members.
template <class Out, class In, class Item>
SHARDARRAY_DEVICE Out chain(const Item& p, const In*& a, const In*& b, std::int64_t k) {
  constexpr int ahead = 8;
  Out sum{};
  SHARDARRAY_POINTS
  for (; k >= ahead; k -= ahead) {
    In x[ahead], y[ahead];
    for (int i = 0; i < ahead; i++) {
      x[i] = a[i * p.a_col];
      y[i] = b[i * p.b_row];
    }
    a += ahead * p.a_col;
    b += ahead * p.b_row;
    for (int i = 0; i < ahead; i++) sum = multiply_add<Out>(wide(x[i]), wide(y[i]), sum);
  }
  In x[ahead - 1], y[ahead - 1];
  for (int i = 0; i < ahead - 1; i++) {
    if (i >= k) break;
    x[i] = a[i * p.a_col];
    y[i] = b[i * p.b_row];
  }
  for (int i = 0; i < ahead - 1; i++) {
    if (i >= k) break;
    sum = multiply_add<Out>(wide(x[i]), wide(y[i]), sum);
  }
  a += k * p.a_col;
  b += k * p.b_row;
  return sum;
}

template <class Out, class In, class Item>
SHARDARRAY_DEVICE Out chains(const Item& p, const In* a, const In* b) {
  Out total{}, lost{};
  SHARDARRAY_POINTS
  for (std::int64_t left = p.k; left > 0; left -= scalar::chain_block) {
    const Out x = chain<Out>(p, a, b, left < scalar::chain_block ? left : scalar::chain_block);
    lost += scalar::rounded_off(total, x);
    total += x;
    if (left >= scalar::chain_block && (p.k - left + scalar::chain_block) % scalar::carried_steps == 0)
      scalar::carry(total, lost);
  }
  return scalar::with_rounded_off(total, lost);
}

/// An element: offsets of its operands and of the result.
struct ProductPlace {
  std::int64_t a, b, c;
};
template <class Item> SHARDARRAY_DEVICE ProductPlace product_place(const Item& p, std::int64_t element) {
  auto left = static_cast<PointNumber>(element);
  const std::int64_t column = take_off(left, static_cast<PointNumber>(p.n)),
                     row = take_off(left, static_cast<PointNumber>(p.m)),
                     batch = static_cast<std::int64_t>(left);
  return {batch * p.a_batch + row * p.a_row, batch * p.b_batch + column * p.b_col,
          batch * p.c_batch + row * p.c_row + column};
}

/// One thread per element. Neighbouring threads are in one row, so B is read and C written coalesced. 16-bit floats give float32.
template <class In, class Item, class Out>
SHARDARRAY_DEVICE void make_elements(const Grid& g, const Item& p, const In* first_a, const In* first_b,
                                     Out* c) {
  const std::int64_t elements = p.batch * p.m * p.n;
  SHARDARRAY_POINTS
  for (std::int64_t at = first_point(g); at < elements; at += point_step(g)) {
    const ProductPlace place = product_place(p, at);
    const In *a = first_a + place.a, *b = first_b + place.b;
    Out sum{};
    if constexpr (std::is_floating_point_v<Out>) {
      sum = p.k <= scalar::longest_chain ? chain<Out>(p, a, b, p.k) : chains<Out>(p, a, b);
    } else {
      sum = chain<Out>(p, a, b, p.k);
    }
    c[place.c] = sum;
  }
}

/// If no order is fixed, `lanes` of a warp share an element, each taking every `lanes`-th product: a long sum waits for memory fewer times
/// than the k / 8 of one thread. The warp's other lanes make the next elements, whose operands are often in the same cache lines.
template <class In, class Item, class Out>
SHARDARRAY_DEVICE void make_elements_by_lanes(const Grid& g, const Item& p, const In* first_a,
                                              const In* first_b, Out* c) {
  constexpr int ahead = 8;
  const auto lanes = static_cast<std::uint32_t>(p.lanes), side = warp_lanes / lanes;
  const std::int64_t elements = p.batch * p.m * p.n, step = point_step(g) / lanes;
  SHARDARRAY_POINTS
  for (std::int64_t at = first_point(g) / warp_lanes * side; at < elements; at += step) {
    const std::int64_t last = elements - 1 - at;  // lanes without an element repeat the last one
    const auto place_of = [&](std::uint32_t lane) {
      const std::uint32_t number = lane % side;
      return product_place(p, at + (number < last ? number : last));
    };
    Out sums[lanes_here];
    SHARDARRAY_LANES(lane) {
      const ProductPlace place = place_of(lane);
      Out sum{};
      SHARDARRAY_POINTS
      for (std::int64_t k = lane / side; k < p.k; k += ahead * lanes) {
        In x[ahead], y[ahead];
        for (int i = 0; i < ahead; i++) {
          const std::int64_t n = k + i * lanes;
          x[i] = n < p.k ? first_a[place.a + n * p.a_col] : In{};
          y[i] = n < p.k ? first_b[place.b + n * p.b_row] : In{};
        }
        for (int i = 0; i < ahead; i++) sum = multiply_add<Out>(wide(x[i]), wide(y[i]), sum);
      }
      sums[lane % lanes_here] = sum;
    }
    add_lanes(sums, side);
    SHARDARRAY_LANES(lane) {
      if (lane < side && lane <= last) c[place_of(lane).c] = sums[lane % lanes_here];
    }
  }
}

template <class In>
SHARDARRAY_DEVICE void product(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  using Out = decltype(wide(In{}));
  const ProductTable& t = *reinterpret_cast<const ProductTable*>(table);
  const ProductItem& p = entries(table, t.items)[g.item];
  make_elements<In>(g, p, reinterpret_cast<const In*>(address_of(bases, p.a)),
                    reinterpret_cast<const In*>(address_of(bases, p.b)),
                    reinterpret_cast<Out*>(address_of(bases, p.c)));
}

template <class In>
SHARDARRAY_DEVICE void product_by_lanes(const Grid& g, const std::byte* table, std::byte*,
                                        const Bases& bases) {
  using Out = decltype(wide(In{}));
  const ProductTable& t = *reinterpret_cast<const ProductTable*>(table);
  const ProductItem& p = entries(table, t.items)[g.item];
  make_elements_by_lanes<In>(g, p, reinterpret_cast<const In*>(address_of(bases, p.a)),
                             reinterpret_cast<const In*>(address_of(bases, p.b)),
                             reinterpret_cast<Out*>(address_of(bases, p.c)));
}

}  // namespace shardarray::device
