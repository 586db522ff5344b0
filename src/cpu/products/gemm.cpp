#include "cpu/products/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/ceil_div.h"
#include "cpu/address.h"
#include "cpu/loops/loops.h"
#include "cpu/products/gemm_tables.h"
#include "cpu/products/integer_product.h"
#include "cpu/products/private_blas.h"
#include "runtime/scalar.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

// m n k up to which a BLAS call costs more than it saves, and a product, which then has one chain, may be generated code
constexpr double small_work = 32768;
constexpr double small_vector_work = 4096;  // the same where m or n is 1
constexpr double panel_ns = 20'000;         // a panel worth a task
constexpr std::int64_t panel_rows =
    128;  // below, packing the other operand again for every panel costs over 10 %
constexpr std::int64_t panel_columns =
    96;  // whole tiles: B is packed once however they are split, and A is read again
constexpr std::int64_t most_in_blocks =
    16384;  // elements of a panel that fits into a cache together with two sums

/// The start of panel `i` of `panels` in a dimension of size n, a multiple of `granule`.
std::int64_t panel_start(std::int64_t n, std::int64_t panels, std::int64_t i, std::int64_t granule) {
  const std::int64_t granules = ceil_div(n, granule);
  return std::min(n, granules * i / panels * granule);
}

/// The row and column strides of A and B in the product.
struct Strides {
  explicit Strides(const Gemm::Item& g)
      : a_row(g.ta ? 1 : g.lda), a_col(g.ta ? g.lda : 1), b_row(g.tb ? 1 : g.ldb), b_col(g.tb ? g.ldb : 1) {}
  std::int64_t a_row, a_col, b_row, b_col;
};

/// C [m, n] as the sum of blocks of k: multiply(p, steps, c, ldc) makes one. A BLAS sums in few long chains, whose rounding error grows
/// with their length; within a block its accuracy is accepted.
template <class T, class Multiply>
void add_blocks(std::int64_t m, std::int64_t n, std::int64_t k, T* c, std::int64_t ldc,
                const Multiply& multiply) {
  const std::int64_t block = m * n <= 1024 ? 256 : 1024;
  std::vector<T> part(static_cast<std::size_t>(m * n)), lost(part.size());
  multiply(0, block, c, ldc);
  for (std::int64_t p = block; p < k; p += block) {
    multiply(p, std::min(block, k - p), part.data(), n);
    std::size_t i = 0;
    for (std::int64_t row = 0; row < m; row++)
      for (T* to = c + row * ldc; to < c + row * ldc + n; to++, i++) {
        lost[i] += scalar::rounded_off(*to, part[i]);
        *to += part[i];
        scalar::carry(*to, lost[i]);
      }
  }
  std::size_t i = 0;
  for (std::int64_t row = 0; row < m; row++)
    for (T* to = c + row * ldc; to < c + row * ldc + n; to++) *to = scalar::with_rounded_off(*to, lost[i++]);
}

IntegerProductFunction integer_product(DType t) {
#if defined(__x86_64__)
  if (has_v4()) return integer_product_v4(t);
  if (has_v3()) return integer_product_v3(t);
#endif
  return integer_product_baseline(t);
}

}  // namespace

const TableGemmTable& table_gemm() {
#if defined(__x86_64__)
  static const TableGemmTable& best = has_v4()   ? table_gemm_v4
                                      : has_v3() ? table_gemm_v3
                                                 : table_gemm_baseline;
  return best;
#else
  return table_gemm_baseline;
#endif
}

GemmPlan::GemmPlan(const Gemm& gemm, const Gemm::Item& item) : dtype_(gemm.in), item_(item) {
  const auto use = [&]<class T>(T) {
    run_ = [](const GemmPlan& p, void* const* bases, std::int64_t begin, std::int64_t end,
              const AfterProduct* then) { p.run_units<T>(bases, begin, end, then); };
  };
  if (dtype_ == DType::float32) {
    use(float{});
  } else if (dtype_ == DType::float64) {
    use(double{});
  } else if (dtype_ == DType::bool_ || is_integer(dtype_)) {
    run_ = [](const GemmPlan& p, void* const* bases, std::int64_t begin, std::int64_t end,
              const AfterProduct*) {
      for (std::int64_t u = begin; u < end; u++) p.run_integer(bases, u / p.panels_, u % p.panels_);
    };
  } else {
    throw CompileError(fmt::format(
        "matmul: the CPU has no kernel for {}. It multiplies bool, integers, float32 and float64. "
        "Convert the operands first.",
        name(dtype_)));
  }
  choose_way(gemm.fixed_order);
  choose_panels();
}

/// CBLAS requires 32-bit sizes and rows that do not overlap.
template <class T> bool GemmPlan::fits_blas() const {
  const Gemm::Item& g = item_;
  const std::int64_t most = std::numeric_limits<int>::max();
  if (std::max({g.m, g.n, g.k, g.lda, g.ldb, g.ldc}) > most) return false;
  const auto fits = [](std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    return rows == 1 || ld >= cols;
  };
  return fits(g.ta ? g.k : g.m, g.ta ? g.m : g.k, g.lda) && fits(g.tb ? g.n : g.k, g.tb ? g.k : g.n, g.ldb) &&
         fits(g.m, g.n, g.ldc);
}

/// Few rows of A, and a B that fits into a cache with rows that do not compete for its sets: packing B, as the BLAS does, would cost as
/// much as the product.
static bool is_skinny(const Gemm::Item& g, std::size_t itemsize) {
  constexpr std::int64_t most_rows = 8, most_row_bytes = 4096, most_bytes = 2 << 20;
  const std::int64_t row_bytes = g.ldb * static_cast<std::int64_t>(itemsize);
  return g.m > 1 && g.m <= most_rows && !g.tb && row_bytes < most_row_bytes && g.k * row_bytes <= most_bytes;
}

void GemmPlan::choose_way(bool fixed_order) {
  const Gemm::Item& g = item_;
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const auto all = static_cast<double>(g.batch);
  one_chain_ = fixed_order || work <= small_work;  // like generated code
  if (g.m == 0 || g.n == 0 || g.batch == 0) {
    item_.batch = 0;
  } else if (g.k == 0) {
    way_ = Way::zero;
    cost_ns_ = all * static_cast<double>(g.m * g.n) * 0.1;
  } else if (!is_floating(dtype_)) {
    way_ = Way::integer;
    cost_ns_ = all * (20 + work * 0.02 * static_cast<double>(itemsize(dtype_)));
  } else {
    const double size = dtype_ == DType::float32 ? 1 : 2;
    const bool vector = g.m == 1 || g.n == 1, is_slow = &own_gemm() == &own_gemm_baseline;
    const double turned = g.tb && !vector ? work / static_cast<double>(g.m) * 0.3 : 0;  // B, to be packed
    cost_ns_ = all * (20 + work * size * (vector ? 0.15 : 0.025) + turned);
    if (work <= (vector ? small_vector_work : small_work) || is_skinny(g, itemsize(dtype_))) return;
    // A matrix-vector product reads the matrix once. The BLAS does so along the sum, in no fixed order; if the sum is long, so are its
    // chains.
    const bool is_long = g.k > scalar::longest_chain;
    const bool asks = !fixed_order && (blas_is_named() || ((vector || is_slow) && !is_long));
    const Blas* const library = asks ? blas() : nullptr;
    if (library == nullptr || !fits_blas<float>()) {
      if (vector || is_slow) cost_ns_ *= 2;
      return;
    }
    blas_ = *library;
    way_ = g.m == 1 ? Way::gemv_row : g.n == 1 ? Way::gemv_column : Way::gemm;
  }
}

void GemmPlan::choose_panels() {
  const Gemm::Item& g = item_;
  if (g.batch == 0 || way_ == Way::zero) return;
  const bool vector = way_ == Way::gemv_row || way_ == Way::gemv_column;
  const bool by_columns = way_ == Way::own && !g.ta && g.n >= 4 * panel_columns && g.m <= 2 * g.n;
  cut_rows_ = !by_columns && (g.m >= g.n || (!vector && g.m >= 2 * panel_rows));
  const std::int64_t length = cut_rows_ ? g.m : g.n, shortest = way_ == Way::integer ? 64
                                                                : by_columns         ? panel_columns
                                                                                     : panel_rows;
  const double by_cost = cost_ns_ / static_cast<double>(g.batch) / panel_ns;
  // Four panels up to 2,048 rows, then panels of 512: few, so that little is packed, and a power of two, to share evenly.
  const std::int64_t long_one = by_columns ? 256 : 512,
                     by_length = std::min(length / shortest, std::max<std::int64_t>(4, length / long_one));
  const auto most =
      static_cast<std::uint64_t>(std::min(static_cast<double>(by_length), std::min(by_cost, 1024.0)));
  panels_ = static_cast<std::int64_t>(std::bit_floor(std::max<std::uint64_t>(most, 1)));
  // A long sum over few rows: an idle worker costs more than packing the other operand twice.
  constexpr std::int64_t few_rows = 48;
  constexpr double long_panels = 10;
  if (panels_ == 1 && by_cost >= long_panels && length >= 2 * few_rows) panels_ = 2;
}

std::optional<GemmSpec> GemmPlan::spec() const {
  constexpr std::int64_t most_elements = 8192;  // of a matrix that is transposed to the stack
  static_assert(most_elements <= scalar::longest_chain);
  const Gemm::Item& g = item_;
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
#ifdef __FP_FAST_FMAF
  constexpr bool fused = true;
#else
  const bool fused = &own_gemm() != &own_gemm_baseline;  // else each multiply-add is a call
#endif
  if (way_ != Way::own || g.batch == 0 || work > small_work || g.k * std::max(g.m, g.n) > most_elements ||
      !fused)
    return std::nullopt;
  return shape();
}

GemmSpec GemmPlan::shape() const {
  const Gemm::Item& g = item_;
  const Strides s(g);
  return GemmSpec{dtype_,     g.batch, g.m,     g.n,        g.k,   s.a_row, s.a_col,
                  g.stride_a, s.b_row, s.b_col, g.stride_b, g.ldc, 1,       g.stride_c};
}

bool GemmPlan::takes_what_follows() const {
  constexpr std::int64_t least_bytes = 64 << 10;
  const Gemm::Item& g = item_;
  return way_ == Way::own && is_floating(dtype_) &&
         g.batch * g.m * g.n * static_cast<std::int64_t>(itemsize(dtype_)) >= least_bytes;
}

/// Whole products by our own kernel: a training step has many that take less than 100 ns.
template <class T> void GemmPlan::run_whole(void* const* bases, std::int64_t begin, std::int64_t end) const {
  const Gemm::Item& g = item_;
  const Strides strides(g);
  OwnGemm<T> s = {g.m,
                  g.n,
                  g.k,
                  reinterpret_cast<T*>(address(bases, g.a)) + begin * g.stride_a,
                  strides.a_row,
                  strides.a_col,
                  reinterpret_cast<T*>(address(bases, g.b)) + begin * g.stride_b,
                  strides.b_row,
                  strides.b_col,
                  reinterpret_cast<T*>(address(bases, g.c)) + begin * g.stride_c,
                  g.ldc,
                  one_chain_};
  for (std::int64_t u = begin; u < end; u++) {
    if constexpr (std::is_same_v<T, float>) own_gemm().f32(s);
    else own_gemm().f64(s);
    s.a += g.stride_a;
    s.b += g.stride_b;
    s.c += g.stride_c;
  }
}

template <class T>
void GemmPlan::run_units(void* const* bases, std::int64_t begin, std::int64_t end,
                         const AfterProduct* then) const {
  if (way_ == Way::own && panels_ == 1 && then == nullptr) return run_whole<T>(bases, begin, end);
  for (std::int64_t u = begin; u < end; u++) panel<T>(bases, u / panels_, u % panels_, then);
}

void GemmPlan::run_integer(void* const* bases, std::int64_t batch, std::int64_t index) const {
  constexpr std::int64_t granule = 64;  // whole lines of the result
  const Gemm::Item& g = item_;
  const auto [a_row, a_col, b_row, b_col] = Strides(g);
  const std::int64_t length = cut_rows_ ? g.m : g.n, from = panel_start(length, panels_, index, granule),
                     size = panel_start(length, panels_, index + 1, granule) - from;
  const std::int64_t i = cut_rows_ ? from : 0, j = cut_rows_ ? 0 : from;
  const auto at = [&](const Ref& r, std::int64_t elements) {
    return address(bases, r) + elements * static_cast<std::int64_t>(itemsize(dtype_));
  };
  integer_product(dtype_)({cut_rows_ ? size : g.m, cut_rows_ ? g.n : size, g.k,
                           at(g.a, batch * g.stride_a + i * a_row), a_row, a_col,
                           at(g.b, batch * g.stride_b + j * b_col), b_row, b_col,
                           at(g.c, batch * g.stride_c + i * g.ldc + j), g.ldc});
}

template <class T>
void GemmPlan::panel(void* const* bases, std::int64_t batch, std::int64_t index,
                     const AfterProduct* then) const {
  const Gemm::Item& g = item_;
  const Strides strides(g);  // no structured binding: clang 14 cannot capture one
  const std::int64_t a_row = strides.a_row, a_col = strides.a_col, b_row = strides.b_row,
                     b_col = strides.b_col;
  const std::int64_t length = cut_rows_ ? g.m : g.n;
  // Whole vectors. OpenBLAS's Haswell kernels give the same bits if rows are split at multiples of 12.
  const std::int64_t granule = way_ == Way::own ? 16 : 12;
  const std::int64_t from = panel_start(length, panels_, index, granule),
                     size = panel_start(length, panels_, index + 1, granule) - from;
  const std::int64_t i = cut_rows_ ? from : 0, j = cut_rows_ ? 0 : from;
  const std::int64_t m = cut_rows_ ? size : g.m, n = cut_rows_ ? g.n : size;
  const T* const a = reinterpret_cast<T*>(address(bases, g.a)) + batch * g.stride_a + i * a_row;
  const T* const b = reinterpret_cast<T*>(address(bases, g.b)) + batch * g.stride_b + j * b_col;
  T* const c = reinterpret_cast<T*>(address(bases, g.c)) + batch * g.stride_c + i * g.ldc + j;

  constexpr bool single = std::is_same_v<T, float>;
  const auto gemm = [&] {
    if constexpr (single) return blas_.sgemm;
    else return blas_.dgemm;
  }();
  const auto gemv = [&] {
    if constexpr (single) return blas_.sgemv;
    else return blas_.dgemv;
  }();
  const auto to_int = [](std::int64_t x) { return static_cast<int>(x); };
  // A single row or element may have any stride; CBLAS still checks it.
  const auto increment = [](std::int64_t x) { return static_cast<int>(std::max<std::int64_t>(x, 1)); };
  const int lda = to_int(std::max(g.lda, g.ta ? g.m : g.k)), ldb = to_int(std::max(g.ldb, g.tb ? g.k : g.n));
  const std::int64_t ldc = std::max(g.ldc, g.n);
  const int ta = g.ta ? Blas::trans : Blas::no_trans, tb = g.tb ? Blas::trans : Blas::no_trans;
  if (way_ == Way::zero) {
    for (std::int64_t r = 0; r < m; r++) std::fill_n(c + r * g.ldc, n, T{});
    return;
  }
  if (way_ == Way::own) {
    struct Parts {
      const AfterProduct* then;
      void* const* bases;
      std::int64_t batch, i, j;
    } const parts{then, bases, batch, i, j};
    OwnGemm<T> s = {m, n, g.k, a, a_row, a_col, b, b_row, b_col, c, g.ldc, one_chain_};
    if (then != nullptr) {
      s.part.take = [](const void* object, std::int64_t row, std::int64_t rows, std::int64_t column,
                       std::int64_t columns, const PartOfC::Place& place) {
        const Parts& p = *static_cast<const Parts*>(object);
        p.then->run_part(p.bases, p.batch, p.i + row, rows, p.j + column, columns, place);
      };
      s.part.object = &parts;
      s.part.keep = then->keeps();
    }
    if constexpr (single) own_gemm().f32(s);
    else own_gemm().f64(s);
    return;
  }
  const auto multiply = [&](std::int64_t p, std::int64_t steps, T* to, std::int64_t to_row) {
    const int k = to_int(steps);
    const T *x = a + p * a_col, *y = b + p * b_row;
    if (way_ == Way::gemm) {
      gemm(Blas::row_major, ta, tb, to_int(m), to_int(n), k, T(1), x, lda, y, ldb, T(0), to, to_int(to_row));
    } else if (way_ == Way::gemv_row) {  // B^T a; gemv scales the content of `to`, which must not be NaN
      std::fill_n(to, n, T{});
      gemv(Blas::row_major, g.tb ? Blas::no_trans : Blas::trans, g.tb ? to_int(n) : k, g.tb ? k : to_int(n),
           T(1), y, ldb, x, increment(a_col), T(0), to, 1);
    } else {
      for (std::int64_t r = 0; r < m; r++) to[r * to_row] = 0;
      gemv(Blas::row_major, ta, g.ta ? k : to_int(m), g.ta ? to_int(m) : k, T(1), x, lda, y, increment(b_row),
           T(0), to, increment(to_row));
    }
  };
  const BlasTurn turn;
  if (g.k > scalar::longest_chain && m * n <= most_in_blocks) add_blocks<T>(m, n, g.k, c, ldc, multiply);
  else multiply(0, g.k, c, ldc);
}

}  // namespace shardarray
