// Tiled products: slices of both operands are staged in two shared-memory buffers in turn, while the next ones are loaded. Each result is
// the same chain as in gemm.cuh.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/gemm.cuh"
#include "kernels/tile_threads.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t threads_a_side = 16;
static_assert(threads_a_side * threads_a_side == tile_threads);

/// A tile has side x side results, thread_side x thread_side per thread. A slice is `depth` deep, and `ahead` slices are in flight from
/// memory.
template <std::uint32_t results_a_side, std::uint32_t products_a_slice, std::uint32_t slices_ahead>
struct TileShape {
  static constexpr std::uint32_t side = results_a_side, depth = products_a_slice, ahead = slices_ahead;
  static constexpr std::uint32_t thread_side = side / threads_a_side;
  static constexpr std::uint32_t share =
      side * depth / tile_threads;  // elements of a slice that a thread loads
  /// Products of a slice before a chain may end.
  static constexpr std::uint32_t part = depth < scalar::chain_block ? depth : scalar::chain_block;
  static_assert(scalar::chain_block % part == 0 && depth % part == 0);
};
using LargeTile = TileShape<64, 16, 1>;  // for large matrices: each load serves many results
using DeepTile = TileShape<16, 64, 2>;   // for few results with long sums: many loads in flight

/// An operand's part of a slice, padded against bank conflicts. In one access a thread reads several results' operands for one k, or one
/// result's operand for several k.
template <class T, class Shape> class SliceOperand {
 public:
  static constexpr std::uint32_t together = Shape::thread_side == 1 ? 16 / sizeof(T) : 1;  // k per access
  using Part = Run<T, Shape::thread_side == 1 ? together : Shape::thread_side>;

  SHARDARRAY_DEVICE T& at(std::uint32_t side, std::uint32_t k) {
    if constexpr (together > 1) return parts_[side][k / together].bits[k % together];
    else return parts_[k][side / Shape::thread_side].bits[side % Shape::thread_side];
  }
  /// The operands of thread `thread`'s results, from k on.
  SHARDARRAY_DEVICE const Part& part(std::uint32_t thread, std::uint32_t k) const {
    if constexpr (together > 1) return parts_[thread][k / together];
    else return parts_[k][thread];
  }

 private:
  static constexpr std::uint32_t rows = together > 1 ? Shape::side : Shape::depth,
                                 columns = together > 1 ? Shape::depth / together : threads_a_side;
  Part parts_[rows][columns + 1];
};
template <class T, class Shape> struct ProductSlice { SliceOperand<T, Shape> a, b; };

#ifdef __CUDACC__
/// Unrolling further would exceed the registers.
#define SHARDARRAY_SOME_PARTS _Pragma("unroll 4")

/// The block's shared memory: two slices.
template <class Slice> SHARDARRAY_DEVICE inline Slice* tile_memory() {
  __shared__ alignas(64) std::byte all[2 * sizeof(Slice)];
  return reinterpret_cast<Slice*>(all);
}
#else
#define SHARDARRAY_SOME_PARTS
#endif

/// One operand as a tile's slices read it: rows of A or columns of B, from the tile's first one on.
template <class In, class Shape> struct TileOperand {
  const In* first;
  std::int64_t left, depth;    ///< rows or columns left from there, and their length
  std::int64_t across, along;  ///< strides
  /// Consecutive threads read consecutive addresses if either stride is 1.
  SHARDARRAY_DEVICE std::uint32_t side_of(std::uint32_t n) const {
    return along == 1 ? n / Shape::depth : n % Shape::side;
  }
  SHARDARRAY_DEVICE std::uint32_t depth_of(std::uint32_t n) const {
    return along == 1 ? n % Shape::depth : n / Shape::side;
  }
  /// The thread's share of the slice at k; 0 beyond the operand's end, which is not read.
  SHARDARRAY_DEVICE void read(In (&to)[Shape::share], std::uint32_t thread, std::int64_t k) const {
    for (std::uint32_t i = 0; i < Shape::share; i++) {
      const std::uint32_t n = thread + i * tile_threads;
      const std::int64_t side = side_of(n), at = k + depth_of(n);
      to[i] = side < left && at < depth ? first[side * across + at * along] : In{};
    }
  }
  template <class Operand>
  SHARDARRAY_DEVICE void put(const In (&from)[Shape::share], std::uint32_t thread, Operand& to) const {
    for (std::uint32_t i = 0; i < Shape::share; i++) {
      const std::uint32_t n = thread + i * tile_threads;
      to.at(side_of(n), depth_of(n)) = wide(from[i]);
    }
  }
};

template <class In, class Shape> class ProductTile {
 public:
  using Out = decltype(wide(In{}));

  SHARDARRAY_DEVICE ProductTile(const TileOperand<In, Shape>& a, const TileOperand<In, Shape>& b)
      : a_(a), b_(b) {}

  /// Writes the results to `c`, with row stride `row`.
  SHARDARRAY_DEVICE void multiply(Out* c, std::int64_t row) {
    SHARDARRAY_TILE_THREADS(thread) {
      for (std::uint32_t k = 0; k < Shape::ahead; k++) read(thread, k, k * Shape::depth);
    }
    std::uint32_t place = 0;
    for (std::int64_t k = 0; k < a_.depth; k += Shape::ahead * Shape::depth) {
      add_slice<0>(k, place);
      place = 1 - place;
      if constexpr (Shape::ahead == 2) {
        if (k + Shape::depth < a_.depth) add_slice<1>(k + Shape::depth, place);
        place = 1 - place;
      }
    }
    SHARDARRAY_TILE_THREADS(thread) write(thread, c, row);
    SHARDARRAY_SYNC_TILE();  // before the next tile's slices
  }

 private:
  using Slice = ProductSlice<Out, Shape>;
  static constexpr bool is_floating = std::is_floating_point_v<Out>;
  /// A thread's registers.
  struct Values {
    In a[Shape::ahead][Shape::share], b[Shape::ahead][Shape::share];  // of the next slices
    Out sums[Shape::thread_side][Shape::thread_side] = {},
        totals[Shape::thread_side][Shape::thread_side] = {},
        lost[Shape::thread_side][Shape::thread_side] = {};
  };
  SHARDARRAY_DEVICE Values& of(std::uint32_t thread) { return values_[thread % tile_threads_here]; }
  SHARDARRAY_DEVICE bool is_long() const { return is_floating && a_.depth > scalar::longest_chain; }

  /// Adds the slice at k, staged in buffer `place`. Others may still read the previous one in the other buffer.
  template <std::uint32_t next> SHARDARRAY_DEVICE void add_slice(std::int64_t k, std::uint32_t place) {
    SHARDARRAY_TILE_THREADS(thread) {
      const Values& v = of(thread);
      a_.put(v.a[next], thread, slice(place).a);
      b_.put(v.b[next], thread, slice(place).b);
    }
    SHARDARRAY_SYNC_TILE();
    SHARDARRAY_TILE_THREADS(thread) {
      read(thread, next, k + Shape::ahead * Shape::depth);
      for (std::uint32_t from = 0; from < Shape::depth && k + from < a_.depth; from += Shape::part) {
        const std::int64_t end = k + from + Shape::part;
        if (end <= a_.depth) add_products<Shape::part>(thread, slice(place), from, Shape::part);
        else add_products<0>(thread, slice(place), from, static_cast<std::uint32_t>(a_.depth - k - from));
        if (end % scalar::chain_block == 0 || end >= a_.depth)
          end_chains(thread, end <= a_.depth && end % scalar::carried_steps == 0);
      }
    }
  }
  SHARDARRAY_DEVICE void read(std::uint32_t thread, std::uint32_t next, std::int64_t k) {
    a_.read(of(thread).a[next], thread, k);
    b_.read(of(thread).b[next], thread, k);
  }
  /// From k = `from` of the slice on; `whole`: their number if it is known at compile time, else 0.
  template <std::uint32_t whole>
  SHARDARRAY_DEVICE void add_products(std::uint32_t thread, const Slice& s, std::uint32_t from,
                                      std::uint32_t depth) {
    constexpr std::uint32_t together = whole > 0 ? SliceOperand<Out, Shape>::together : 1;
    auto& sums = of(thread).sums;
    SHARDARRAY_SOME_PARTS
    for (std::uint32_t k = from; k < from + (whole > 0 ? whole : depth); k += together) {
      const auto a = s.a.part(thread / threads_a_side, k), b = s.b.part(thread % threads_a_side, k);
      for (std::uint32_t n = 0; n < together; n++)
        for (std::uint32_t i = 0; i < Shape::thread_side; i++)
          for (std::uint32_t j = 0; j < Shape::thread_side; j++)
            sums[i][j] = multiply_add<Out>(a.bits[bits_of(i, k + n)], b.bits[bits_of(j, k + n)], sums[i][j]);
    }
  }
  /// Index within a part: result i, or element k.
  SHARDARRAY_DEVICE static constexpr std::uint32_t bits_of(std::uint32_t i, std::uint32_t k) {
    return Shape::thread_side == 1 ? k % SliceOperand<Out, Shape>::together : i;
  }
  /// Adds up chains as chains() does.
  SHARDARRAY_DEVICE void end_chains(std::uint32_t thread, bool carries) {
    if (!is_long()) return;
    if constexpr (is_floating) {
      Values& v = of(thread);
      for (std::uint32_t i = 0; i < Shape::thread_side; i++)
        for (std::uint32_t j = 0; j < Shape::thread_side; j++) {
          v.lost[i][j] += scalar::rounded_off(v.totals[i][j], v.sums[i][j]);
          v.totals[i][j] += v.sums[i][j];
          if (carries) scalar::carry(v.totals[i][j], v.lost[i][j]);
          v.sums[i][j] = Out{};
        }
    }
  }
  SHARDARRAY_DEVICE void write(std::uint32_t thread, Out* c, std::int64_t row) {
    const Values& v = of(thread);
    for (std::uint32_t i = 0; i < Shape::thread_side; i++)
      for (std::uint32_t j = 0; j < Shape::thread_side; j++) {
        const std::int64_t at = thread / threads_a_side * Shape::thread_side + i,
                           column = thread % threads_a_side * Shape::thread_side + j;
        Out x = v.sums[i][j];
        if constexpr (is_floating) {
          if (is_long()) x = scalar::with_rounded_off(v.totals[i][j], v.lost[i][j]);
        }
        if (at < a_.left && column < b_.left) c[at * row + column] = x;
      }
  }

#ifdef __CUDACC__
  SHARDARRAY_DEVICE static Slice& slice(std::uint32_t place) { return tile_memory<Slice>()[place]; }
#else
  Slice& slice(std::uint32_t place) { return slices_[place]; }
  Slice slices_[2];
#endif
  const TileOperand<In, Shape> a_, b_;
  Values values_[tile_threads_here];
};

template <class Shape> SHARDARRAY_DEVICE inline std::int64_t tiles_along(std::int64_t extent) {
  return (extent + Shape::side - 1) / Shape::side;
}

template <class In, class Shape>
SHARDARRAY_DEVICE void product_tiles(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  using Out = decltype(wide(In{}));
  const ProductTable& t = *reinterpret_cast<const ProductTable*>(table);
  const ProductItem& p = entries(table, t.items)[g.item];
  const In* const a = reinterpret_cast<const In*>(address_of(bases, p.a));
  const In* const b = reinterpret_cast<const In*>(address_of(bases, p.b));
  Out* const c = reinterpret_cast<Out*>(address_of(bases, p.c));
  const std::int64_t tiles = p.batch * tiles_along<Shape>(p.m) * tiles_along<Shape>(p.n);
  for (std::int64_t at = g.block; at < tiles; at += g.blocks) {
    auto left = static_cast<PointNumber>(at);
    const std::int64_t column =
                           take_off(left, static_cast<PointNumber>(tiles_along<Shape>(p.n))) * Shape::side,
                       row = take_off(left, static_cast<PointNumber>(tiles_along<Shape>(p.m))) * Shape::side,
                       batch = static_cast<std::int64_t>(left);
    ProductTile<In, Shape> tile(
        {a + batch * p.a_batch + row * p.a_row, p.m - row, p.k, p.a_row, p.a_col},
        {b + batch * p.b_batch + column * p.b_col, p.n - column, p.k, p.b_col, p.b_row});
    tile.multiply(c + batch * p.c_batch + row * p.c_row + column, p.c_row);
  }
}

}  // namespace shardarray::device
