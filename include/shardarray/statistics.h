// Statistics of arrays, with and without NaN: NumPy's names, JAX's types and values. They are reductions (ops.h): over all axes unless
// given, with the same options.
#pragma once
#include <initializer_list>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- of all elements
/// The largest element minus the smallest. Throws as max, and DTypeError for bool.
inline constexpr ReduceFunction<"ptp"> ptp{};
/// The number of non-zero elements (NaN is non-zero), in int32 or `.dtype`.
inline constexpr ReduceFunction<"count_nonzero"> count_nonzero{};
/// sum(x * weights) / sum(weights), floating; the weights have x's shape, or are a vector along the one axis. Elements masked out by bool
/// weights are ignored, even NaN. Without weights, the mean. Throws ShapeError for weights of another shape.
inline constexpr struct SHARDARRAY_API average_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Array& weights, const ReduceOptions& o = {},
                                 Where w = Where::here()) const;
  template <std::integral I>
  [[nodiscard]] Array operator()(const Array& x, const Array& weights, I axis,
                                 Where w = Where::here()) const {
    return (*this)(x, weights, {.axis = axis}, w);
  }
} average{};

/// How a quantile between two elements is determined: by linear interpolation, as the lower one, the higher one, their mean, or the
/// nearer one (in ties the lower).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class QuantileMethod : std::uint8_t { linear, lower, higher, midpoint, nearest };
#pragma GCC diagnostic pop
/// Options of quantiles: `quantile(x, 0.9, {.axis = 0})`.
struct QuantileOptions {
  AxisSet axis = {};      ///< the axes to reduce
  Flag keepdims = false;  ///< keep them with size 1
  QuantileMethod method = QuantileMethod::linear;
};
/// The value below which a fraction q of the elements lies, 0 <= q <= 1, floating; NaN if any element is. Several at once, as a new first
/// dimension: `quantile(x, {0.25, 0.75})`, also for `{0.5}`. Sorts along the axes, which are gathered. Throws ShapeError over no
/// elements, Error for another q.
inline constexpr struct SHARDARRAY_API quantile_fn {
  [[nodiscard]] Array operator()(const Array& x, double q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<double> q,
                                 const QuantileOptions& o = {}, Where w = Where::here()) const {
    return (*this)(x, std::vector<double>(q), o, w);
  }
} quantile{};
/// The quantile q / 100, 0 <= q <= 100.
inline constexpr struct SHARDARRAY_API percentile_fn {
  [[nodiscard]] Array operator()(const Array& x, double q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<double> q,
                                 const QuantileOptions& o = {}, Where w = Where::here()) const {
    return (*this)(x, std::vector<double>(q), o, w);
  }
} percentile{};
/// The quantile 0.5. Throws as quantile.
inline constexpr ReduceFunction<"median"> median{};

/// Options of cov and corrcoef: `cov(x, {.rowvar = false})`.
struct CovOptions {
  bool rowvar = true;  ///< rows are variables, columns observations; otherwise vice versa
  /// Sums are divided by the number of observations (the sum of the weights) minus this. Default: 1.
  std::optional<std::int64_t> ddof = std::nullopt;
  Array fweights = {};  ///< integers: the number of times each observation occurred; absent: once
  Array aweights = {};  ///< the weight of each observation; absent: all equal
};
/// `cov(x)`, `cov(x, y)`, each optionally followed by options.
template <detail::FixedString name> struct SHARDARRAY_API CovarianceFunction {
  [[nodiscard]] Array operator()(const Array& x, const CovOptions& o = {}, Where w = Where::here()) const {
    return of(x, nullptr, o, w);
  }
  template <std::convertible_to<Array> Y>
  [[nodiscard]] Array operator()(const Array& x, const Y& y, const CovOptions& o = {},
                                 Where w = Where::here()) const {
    const Array second = y;
    return of(x, &second, o, w);
  }

 private:
  [[nodiscard]] Array of(const Array& x, const Array* y, const CovOptions& o, Where w) const;
};
/// The covariance matrix [n, n] of n variables, floating; a scalar for one. For complex ones, deviation times conjugate deviation. x [n,
/// m] has m observations of each; a vector is one variable; the variables of a second array follow those of the first. Weights are taken
/// by absolute value. NaN without observations. For sharded observations only sums move. Throws ShapeError for more than two dimensions,
/// other numbers of observations and of weights, DTypeError for non-integer fweights.
inline constexpr CovarianceFunction<"cov"> cov{};
/// The correlation coefficients: covariances divided by both standard deviations, between -1 and 1; NaN for a constant. Throws as cov.
inline constexpr CovarianceFunction<"corrcoef"> corrcoef{};

// ---------------------------------------------------------------- ignoring NaN
/// The reductions without the prefix over the elements that are not NaN (complex numbers: neither part); the same for integers and bool.
/// If all are NaN, nansum is 0, nanprod 1, nanmean, nanvar, nanstd, nanmax and nanmin are NaN.
inline constexpr ReduceFunction<"nansum"> nansum{};
inline constexpr ReduceFunction<"nanprod"> nanprod{};
inline constexpr ReduceFunction<"nanmax"> nanmax{};
inline constexpr ReduceFunction<"nanmin"> nanmin{};
inline constexpr ReduceFunction<"nanmean"> nanmean{};
/// NaN also if there are at most ddof elements.
inline constexpr SpreadFunction<"nanvar"> nanvar{};
inline constexpr SpreadFunction<"nanstd"> nanstd{};
/// As argmax and argmin; -1 if all are NaN. If the largest one is -infinity (the smallest one infinity; for complex numbers both parts),
/// the first of these and of the NaN, as in JAX.
inline constexpr ReduceFunction<"nanargmax"> nanargmax{};
inline constexpr ReduceFunction<"nanargmin"> nanargmin{};

/// As quantile, percentile and median; NaN if all elements are. Throw as these.
inline constexpr struct SHARDARRAY_API nanquantile_fn {
  [[nodiscard]] Array operator()(const Array& x, double q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<double> q,
                                 const QuantileOptions& o = {}, Where w = Where::here()) const {
    return (*this)(x, std::vector<double>(q), o, w);
  }
} nanquantile{};
inline constexpr struct SHARDARRAY_API nanpercentile_fn {
  [[nodiscard]] Array operator()(const Array& x, double q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const std::vector<double>& q, const QuantileOptions& o = {},
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, std::initializer_list<double> q,
                                 const QuantileOptions& o = {}, Where w = Where::here()) const {
    return (*this)(x, std::vector<double>(q), o, w);
  }
} nanpercentile{};
inline constexpr ReduceFunction<"nanmedian"> nanmedian{};

// ---------------------------------------------------------------- running
/// cumsum and cumprod with NaN replaced by 0 and 1.
inline constexpr CumulativeFunction<"nancumsum"> nancumsum{};
inline constexpr CumulativeFunction<"nancumprod"> nancumprod{};
/// log(cumsum(exp(x))) without overflow, floating: element i is the logsumexp of elements 0 .. i. Throws DTypeError for a `.dtype` that
/// is not floating.
inline constexpr CumulativeFunction<"cumlogsumexp"> cumlogsumexp{};

// ---------------------------------------------------------------- norms
/// Options of norms: `norm(x, {.ord = 1, .axis = 0})`.
struct NormOptions {
  /// p of (sum |x|^p)^(1/p); infinity: the largest |x|, -infinity: the smallest, 0: the number of non-zero elements. None: 2.
  std::optional<double> ord = std::nullopt;
  AxisSet axis = {};      ///< the axes to reduce
  Flag keepdims = false;  ///< keep them with size 1
  bool nuclear = false;   ///< for matrices: the sum of the singular values
};
/// The norm of the elements along the axes as one vector, floating; for complex numbers that of their absolute values. Its gradient at 0
/// is NaN for real ones, as in JAX, and 0 for complex ones, where JAX's is NaN. Throws ShapeError over no elements for an infinite order,
/// Error for nuclear.
inline constexpr struct SHARDARRAY_API vector_norm_fn {
  [[nodiscard]] Array operator()(const Array& x, const NormOptions& o = {}, Where w = Where::here()) const;
} vector_norm{};
/// vector_norm without an order, and along one axis. With an order over two axes, rows first, a matrix norm: 1 and -1 the largest and the
/// smallest column sum of |x|, infinity and -infinity the row sums, 2 and -2 the largest and the smallest singular value. Throws Error
/// for other orders there, and for an order with nuclear, ShapeError for an order over more axes.
inline constexpr struct SHARDARRAY_API norm_fn {
  [[nodiscard]] Array operator()(const Array& x, const NormOptions& o = {}, Where w = Where::here()) const;
} norm{};

}  // namespace shardarray
