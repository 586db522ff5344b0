// Products of large matrices: a block makes tiles of 64 x 64 results, a thread 4 x 4 of them. Slices of both operands, 16 deep, come
// through shared memory, and the next ones are under way meanwhile. Each result is the chain that gemm.cuh makes.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/gemm.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t tile_side = 64, tile_depth = 16;
inline constexpr std::uint32_t thread_side = 4, threads_a_side = tile_side / thread_side;
inline constexpr std::uint32_t tile_threads = threads_a_side * threads_a_side;        // of a block, always
inline constexpr std::uint32_t thread_share = tile_side * tile_depth / tile_threads;  // elements of a slice
static_assert(scalar::chain_block % tile_depth == 0);

/// A slice, element by element of the sums; with a gap that keeps threads in different banks.
template <class T> struct ProductSlice {
  using Rows = Run<T, thread_side>[tile_depth][threads_a_side + 1];
  Rows a, b;
};

#ifdef __CUDACC__
/// Runs the statement behind it for the threads of the block. Threads of one region do not wait for each other.
#define SHARDARRAY_TILE_THREADS(thread) if (const std::uint32_t thread = threadIdx.x; true)
#define SHARDARRAY_SYNC_TILE() __syncthreads()
inline constexpr std::uint32_t tile_threads_here = 1;  // whose values a thread holds

/// The block's memory, which its products share.
SHARDARRAY_DEVICE inline void* tile_memory() {
  __shared__ alignas(64) std::byte all[sizeof(ProductSlice<std::uint64_t>)];
  return all;
}
#else
#define SHARDARRAY_TILE_THREADS(thread) for (std::uint32_t thread = 0; thread < tile_threads; thread++)
#define SHARDARRAY_SYNC_TILE() static_cast<void>(0)
inline constexpr std::uint32_t tile_threads_here = tile_threads;
#endif

/// One operand as slices of a tile are read: rows of A or columns of B, from the tile's first one on.
template <class In> struct TileOperand {
  const In* first;
  std::int64_t left, depth;    ///< how many there are from there on, and how long they are
  std::int64_t across, along;  ///< strides
  /// Neighbouring threads read neighbours in memory, where either stride is 1.
  SHARDARRAY_DEVICE std::uint32_t side_of(std::uint32_t n) const {
    return along == 1 ? n / tile_depth : n % tile_side;
  }
  SHARDARRAY_DEVICE std::uint32_t depth_of(std::uint32_t n) const {
    return along == 1 ? n % tile_depth : n / tile_side;
  }
  /// What the thread reads of the slice at k. Nothing behind the operand's end, and 0 in its place.
  SHARDARRAY_DEVICE void read(In (&to)[thread_share], std::uint32_t thread, std::int64_t k) const {
    for (std::uint32_t i = 0; i < thread_share; i++) {
      const std::uint32_t n = thread + i * tile_threads;
      const std::int64_t side = side_of(n), at = k + depth_of(n);
      to[i] = side < left && at < depth ? first[side * across + at * along] : In{};
    }
  }
  template <class Rows>
  SHARDARRAY_DEVICE void put(const In (&from)[thread_share], std::uint32_t thread, Rows& to) const {
    for (std::uint32_t i = 0; i < thread_share; i++) {
      const std::uint32_t n = thread + i * tile_threads, side = side_of(n);
      to[depth_of(n)][side / thread_side].bits[side % thread_side] = wide(from[i]);
    }
  }
};

template <class In> class ProductTile {
 public:
  using Out = decltype(wide(In{}));

  SHARDARRAY_DEVICE ProductTile(const TileOperand<In>& a, const TileOperand<In>& b) : a_(a), b_(b) {}

  /// Writes the results from `c` on, whose rows are `row` apart.
  SHARDARRAY_DEVICE void multiply(Out* c, std::int64_t row) {
    SHARDARRAY_TILE_THREADS(thread) read(thread, 0);
    for (std::int64_t k = 0; k < a_.depth; k += tile_depth) {
      SHARDARRAY_TILE_THREADS(thread) {
        const Values& v = of(thread);
        a_.put(v.a, thread, slice().a);
        b_.put(v.b, thread, slice().b);
      }
      SHARDARRAY_SYNC_TILE();
      SHARDARRAY_TILE_THREADS(thread) {
        read(thread, k + tile_depth);
        if (a_.depth - k >= tile_depth) add_products<tile_depth>(thread, tile_depth);
        else add_products<0>(thread, static_cast<std::uint32_t>(a_.depth - k));
        if ((k + tile_depth) % scalar::chain_block == 0 || k + tile_depth >= a_.depth) end_chains(thread);
      }
      SHARDARRAY_SYNC_TILE();
    }
    SHARDARRAY_TILE_THREADS(thread) write(thread, c, row);
  }

 private:
  static constexpr bool is_floating = std::is_floating_point_v<Out>;
  /// What a thread holds.
  struct Values {
    In a[thread_share], b[thread_share];  // of the next slice
    Out sums[thread_side][thread_side] = {}, totals[thread_side][thread_side] = {},
        lost[thread_side][thread_side] = {};
  };
  SHARDARRAY_DEVICE Values& of(std::uint32_t thread) { return values_[thread % tile_threads_here]; }
  SHARDARRAY_DEVICE bool is_long() const { return is_floating && a_.depth > scalar::longest_chain; }

  SHARDARRAY_DEVICE void read(std::uint32_t thread, std::int64_t k) {
    a_.read(of(thread).a, thread, k);
    b_.read(of(thread).b, thread, k);
  }
  /// `whole`: how many they are, where that is known.
  template <std::uint32_t whole>
  SHARDARRAY_DEVICE void add_products(std::uint32_t thread, std::uint32_t depth) {
    auto& sums = of(thread).sums;
    for (std::uint32_t k = 0; k < (whole > 0 ? whole : depth); k++) {
      const auto a = slice().a[k][thread / threads_a_side], b = slice().b[k][thread % threads_a_side];
      for (std::uint32_t i = 0; i < thread_side; i++)
        for (std::uint32_t j = 0; j < thread_side; j++)
          sums[i][j] = multiply_add<Out>(a.bits[i], b.bits[j], sums[i][j]);
    }
  }
  /// As chains() adds them up.
  SHARDARRAY_DEVICE void end_chains(std::uint32_t thread) {
    if (!is_long()) return;
    if constexpr (is_floating) {
      Values& v = of(thread);
      for (std::uint32_t i = 0; i < thread_side; i++)
        for (std::uint32_t j = 0; j < thread_side; j++) {
          v.lost[i][j] += scalar::rounded_off(v.totals[i][j], v.sums[i][j]);
          v.totals[i][j] += v.sums[i][j];
          v.sums[i][j] = Out{};
        }
    }
  }
  SHARDARRAY_DEVICE void write(std::uint32_t thread, Out* c, std::int64_t row) {
    const Values& v = of(thread);
    for (std::uint32_t i = 0; i < thread_side; i++)
      for (std::uint32_t j = 0; j < thread_side; j++) {
        const std::int64_t at = thread / threads_a_side * thread_side + i,
                           column = thread % threads_a_side * thread_side + j;
        Out x = v.sums[i][j];
        if constexpr (is_floating) {
          if (is_long()) x = scalar::with_rounded_off(v.totals[i][j], v.lost[i][j]);
        }
        if (at < a_.left && column < b_.left) c[at * row + column] = x;
      }
  }

#ifdef __CUDACC__
  SHARDARRAY_DEVICE static ProductSlice<Out>& slice() {
    return *static_cast<ProductSlice<Out>*>(tile_memory());
  }
#else
  ProductSlice<Out>& slice() { return slice_; }
  ProductSlice<Out> slice_;
#endif
  const TileOperand<In> a_, b_;
  Values values_[tile_threads_here];
};

SHARDARRAY_DEVICE inline std::int64_t tiles_along(std::int64_t extent) {
  return (extent + tile_side - 1) / tile_side;
}

template <class In>
SHARDARRAY_DEVICE void product_tiles(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  using Out = decltype(wide(In{}));
  const ProductTable& t = *reinterpret_cast<const ProductTable*>(table);
  const ProductItem& p = entries(table, t.items)[g.item];
  const In* const a = reinterpret_cast<const In*>(address_of(bases, p.a));
  const In* const b = reinterpret_cast<const In*>(address_of(bases, p.b));
  Out* const c = reinterpret_cast<Out*>(address_of(bases, p.c));
  const std::int64_t tiles = p.batch * tiles_along(p.m) * tiles_along(p.n);
  for (std::int64_t at = g.block; at < tiles; at += g.blocks) {
    auto left = static_cast<PointNumber>(at);
    const std::int64_t column = take_off(left, static_cast<PointNumber>(tiles_along(p.n))) * tile_side,
                       row = take_off(left, static_cast<PointNumber>(tiles_along(p.m))) * tile_side,
                       batch = static_cast<std::int64_t>(left);
    ProductTile<In> tile({a + batch * p.a_batch + row * p.a_row, p.m - row, p.k, p.a_row, p.a_col},
                         {b + batch * p.b_batch + column * p.b_col, p.n - column, p.k, p.b_col, p.b_row});
    tile.multiply(c + batch * p.c_batch + row * p.c_row + column, p.c_row);
  }
}

}  // namespace shardarray::device
