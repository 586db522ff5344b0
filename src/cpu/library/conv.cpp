// Sums of products over windows (contraction.h). Windows are not materialized: tables hold the offsets of a product's rows, columns and
// steps in the array.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/ceil_div.h"
#include "base/per_thread.h"
#include "cpu/address.h"
#include "cpu/library/library_call.h"
#include "cpu/products/gemm_tables.h"
#include "runtime/contraction.h"
#include "runtime/scalar.h"

namespace shardarray {
namespace {

using Distances = std::vector<std::int64_t>;

/// The offsets in an array of `count` places from `first` on.
void distances_of(const std::vector<ContractionDim>& dims, std::int64_t ContractionDim::*array,
                  std::int64_t first, std::int64_t count, Distances& to) {
  to.resize(static_cast<std::size_t>(count));
  if (count == 0) return;
  constexpr std::size_t most = 64;  // dimensions of an array, including spatial ones
  std::int64_t at[most] = {}, distance = 0;
  for (std::size_t d = dims.size(); d-- > 0; first /= dims[d].size) {
    at[d] = first % dims[d].size;
    distance += at[d] * (dims[d].*array);
  }
  for (std::int64_t& place : to) {
    place = distance;
    for (std::size_t d = dims.size(); d-- > 0;) {
      distance += dims[d].*array;
      if (++at[d] < dims[d].size) break;
      distance -= at[d] * (dims[d].*array);
      at[d] = 0;
    }
  }
}
std::int64_t distance_of(const std::vector<ContractionDim>& dims, std::int64_t ContractionDim::*array,
                         std::int64_t place) {
  std::int64_t distance = 0;
  for (std::size_t d = dims.size(); d-- > 0; place /= dims[d].size)
    distance += place % dims[d].size * (dims[d].*array);
  return distance;
}

/// Per-thread scratch memory.
struct ConvScratch {
  Distances summed_lhs, summed_rhs, points_lhs, points_out, features_rhs, features_out, rows;
  std::vector<std::byte> total, part, lost, packed;
  template <class T> static T* as(std::vector<std::byte>& memory, std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (memory.size() < bytes) memory.resize(bytes);
    return reinterpret_cast<T*>(memory.data());
  }
};

template <class T> void multiply_tables(const TableGemm<T>& g) {
  if constexpr (std::is_same_v<T, float>) {
    table_gemm().f32(g);
  } else if constexpr (std::is_same_v<T, double>) {
    table_gemm().f64(g);
  } else {
    for (std::int64_t r = 0; r < g.runs; r++)
      for (std::int64_t i = 0; i < g.m; i++) {
        T* const to = g.c + g.c_run[r] + g.c_row[i];
        std::fill_n(to, g.n, T{});
        for (std::int64_t p = 0; p < g.k; p++) {
          const T x = g.a[g.a_row[i] + g.a_step[p]];
          const T* const from = g.b + g.b_run[r] + g.b_step[p];
          for (std::int64_t j = 0; j < g.n; j++) to[j] = scalar::add(to[j], scalar::mul(x, from[j]));
        }
      }
  }
}

/// A unit is a block of points by a block of features of one group. If points are contiguous, runs of them are the columns of products and
/// features the rows; else features are the columns, packed contiguously if need be.
template <class T> class Conv {
 public:
  Conv(const LibraryCall::Item& item, Contraction c)
      : item_(item),
        c_(std::move(c)),
        groups_(size_of(c_.groups)),
        points_(size_of(c_.points)),
        features_(size_of(c_.features)),
        summed_(size_of(c_.summed)),
        chain_(chain_of(summed_)) {
    constexpr std::int64_t few = 8, least_points = 288, few_points = 256, many_points = 4096,
                           most_features = 96, worth_a_unit = 1 << 18;
    const bool side_by_side = !c_.points.empty() && c_.points.back().lhs == 1;
    by_points_ = side_by_side && (c_.points.back().size >= few || features_ < few);
    feature_block_ = by_points_ ? most_features : 2 * most_features;
    if (by_points_) {
      run_ = c_.points.back().size;
      runs_.assign(c_.points.begin(), c_.points.end() - 1);
      cut_ = std::clamp<std::int64_t>(run_, 1, few_points);
      cuts_ = ceil_div(run_, cut_);
      const std::int64_t each = std::min(features_, feature_block_) * std::min(summed_, chain_);
      const std::int64_t wanted =
          std::clamp(worth_a_unit / std::max<std::int64_t>(each, 1), few_points, many_points);
      point_block_ = std::max<std::int64_t>(1, wanted / cut_);
      point_blocks_ = run_ == 0 ? 0 : ceil_div(points_ / run_ * cuts_, point_block_);
    } else {
      point_block_ = std::clamp(ceil_div(points_, std::int64_t{4}), least_points, 2 * few_points);
      point_blocks_ = ceil_div(points_, point_block_);
    }
  }

  std::int64_t units() const { return groups_ * point_blocks_ * feature_blocks(); }
  double cost_ns() const {
    const double each = std::is_same_v<T, float> ? 0.02 : std::is_same_v<T, double> ? 0.04 : 0.4;
    const auto n =
        static_cast<double>(groups_) * static_cast<double>(points_) * static_cast<double>(features_);
    return n * (1 + static_cast<double>(summed_) * each);
  }

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t u = begin; u < end; u++) {
      const std::int64_t group = u / feature_blocks() / point_blocks_,
                         points = u / feature_blocks() % point_blocks_,
                         features = u % feature_blocks() * feature_block_;
      const Block b{reinterpret_cast<const T*>(address(bases, item_.in[0])) +
                        distance_of(c_.groups, &ContractionDim::lhs, group),
                    reinterpret_cast<const T*>(address(bases, item_.in[1])) +
                        distance_of(c_.groups, &ContractionDim::rhs, group),
                    reinterpret_cast<T*>(address(bases, item_.out[0])) +
                        distance_of(c_.groups, &ContractionDim::out, group),
                    std::min(feature_block_, features_ - features)};
      ConvScratch& s = PerThread<ConvScratch>::get();
      distances_of(c_.features, &ContractionDim::rhs, features, b.features, s.features_rhs);
      distances_of(c_.features, &ContractionDim::out, features, b.features, s.features_out);
      if (by_points_) run_by_points(b, points, s);
      else run_by_features(b, points, s);
    }
  }

 private:
  struct Block {
    const T *lhs, *rhs;
    T* out;
    std::int64_t features;
  };
  std::int64_t feature_blocks() const { return ceil_div(features_, feature_block_); }

  void run_by_points(const Block& b, std::int64_t block, ConvScratch& s) const {
    const std::int64_t first = block * point_block_,
                       last = std::min(first + point_block_, points_ / run_ * cuts_),
                       first_run = first / cuts_, runs = (last - 1) / cuts_ + 1 - first_run;
    distances_of(runs_, &ContractionDim::lhs, first_run, runs, s.points_lhs);
    distances_of(runs_, &ContractionDim::out, first_run, runs, s.points_out);
    // chains outside, runs inside: the kernel's elements in use stay in cache
    const bool is_long = summed_ > chain_;
    const std::int64_t elements = b.features * cut_, apart = c_.points.back().out;
    const bool direct = !is_long && apart == 1;
    if (direct && cuts_ == 1) {
      const std::int64_t steps = take_steps(0, s);
      return product({b.features, run_, steps, b.rhs, s.features_rhs.data(), s.summed_rhs.data(), b.lhs,
                      s.summed_lhs.data(), b.out, s.features_out.data(), runs, s.points_lhs.data(),
                      s.points_out.data()});
    }
    T* const total = ConvScratch::as<T>(s.total, direct ? 0 : elements * point_block_);
    T* const part = ConvScratch::as<T>(s.part, is_long ? elements : 0);
    T* const lost = ConvScratch::as<T>(s.lost, is_long ? elements * point_block_ : 0);
    for (std::int64_t p = 0; p == 0 || p < summed_; p += chain_) {
      const std::int64_t steps = take_steps(p, s);
      for (std::int64_t r = first; r < last; r++) {
        const auto run = static_cast<std::size_t>(r / cuts_ - first_run);
        const std::int64_t at = r % cuts_ * cut_, length = std::min(cut_, run_ - at);
        T* const out = b.out + s.points_out[run] + at * apart;
        T* const sums = direct ? nullptr : total + (r - first) * elements;
        if (!direct) every(length, b.features, s.rows);
        product({b.features, length, steps, b.rhs, s.features_rhs.data(), s.summed_rhs.data(),
                 b.lhs + s.points_lhs[run] + at, s.summed_lhs.data(),
                 direct   ? out
                 : p == 0 ? sums
                          : part,
                 direct ? s.features_out.data() : s.rows.data()});
        if (direct) continue;
        if (is_long) add(b.features * length, p, part, sums, lost + (r - first) * elements);
        if (p + chain_ < summed_) continue;
        for (std::int64_t f = 0; f < b.features; f++)
          for (std::int64_t k = 0; k < length; k++)
            out[s.features_out[static_cast<std::size_t>(f)] + k * apart] = sums[f * length + k];
      }
    }
  }

  void run_by_features(const Block& b, std::int64_t block, ConvScratch& s) const {
    const std::int64_t first = block * point_block_, count = std::min(point_block_, points_ - first),
                       elements = count * b.features;
    distances_of(c_.points, &ContractionDim::lhs, first, count, s.points_lhs);
    distances_of(c_.points, &ContractionDim::out, first, count, s.points_out);
    const bool is_long = summed_ > chain_, is_packed = !neighbours(s.features_rhs);
    const bool direct = !is_long && neighbours(s.features_out);
    T* const total = direct ? b.out + s.features_out[0] : ConvScratch::as<T>(s.total, elements);
    T* const part = ConvScratch::as<T>(s.part, is_long ? elements : 0);
    T* const lost = ConvScratch::as<T>(s.lost, is_long ? elements : 0);
    if (!direct) every(b.features, count, s.rows);
    for (std::int64_t p = 0; p == 0 || p < summed_; p += chain_) {
      const std::int64_t steps = take_steps(p, s);
      const T* columns = b.rhs + s.features_rhs[0];
      if (is_packed) columns = packed(b, steps, s);
      product({count, b.features, steps, b.lhs, s.points_lhs.data(), s.summed_lhs.data(), columns,
               s.summed_rhs.data(), p == 0 ? total : part, direct ? s.points_out.data() : s.rows.data()});
      if (is_long) add(elements, p, part, total, lost);
    }
    if (direct) return;
    for (std::int64_t f = 0; f < b.features; f++)
      for (std::int64_t i = 0; i < count; i++)
        b.out[s.features_out[static_cast<std::size_t>(f)] + s.points_out[static_cast<std::size_t>(i)]] =
            total[i * b.features + f];
  }

  /// Fills the tables for the steps from p on; returns the number of steps in the chain.
  std::int64_t take_steps(std::int64_t p, ConvScratch& s) const {
    const std::int64_t steps = std::min(chain_, summed_ - p);
    distances_of(c_.summed, &ContractionDim::lhs, p, steps, s.summed_lhs);
    distances_of(c_.summed, &ContractionDim::rhs, p, steps, s.summed_rhs);
    return steps;
  }
  /// 0, distance, 2 distance, ...
  static void every(std::int64_t distance, std::int64_t count, Distances& to) {
    to.resize(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; k++) to[static_cast<std::size_t>(k)] = k * distance;
  }
  static bool neighbours(const Distances& d) {
    for (std::size_t k = 1; k < d.size(); k++)
      if (d[k] != d[k - 1] + 1) return false;
    return true;
  }
  /// Packs the kernel's features contiguously for each step, and sets s.summed_rhs to match. Reads whole cache lines.
  const T* packed(const Block& b, std::int64_t steps, ConvScratch& s) const {
    constexpr std::int64_t line = 64 / sizeof(T);
    T* const to = ConvScratch::as<T>(s.packed, steps * b.features);
    for (std::int64_t p = 0; p < steps; p += line)
      for (std::int64_t f = 0; f < b.features; f++) {
        const T* const from = b.rhs + s.features_rhs[static_cast<std::size_t>(f)];
        for (std::int64_t q = p; q < std::min(p + line, steps); q++)
          to[q * b.features + f] = from[s.summed_rhs[static_cast<std::size_t>(q)]];
      }
    every(b.features, steps, s.summed_rhs);
    return to;
  }

  static void product(const TableGemm<T>& g) {
    if (g.k > 0) return multiply_tables(g);
    for (std::int64_t r = 0; r < g.runs; r++)
      for (std::int64_t i = 0; i < g.m; i++) std::fill_n(g.c + g.c_run[r] + g.c_row[i], g.n, T{});
  }

  /// Adds a chain's sums to `total`, which already has the first chain's; after the last one, also what was rounded off.
  void add(std::int64_t count, std::int64_t p, const T* part, T* total, T* lost) const {
    if (p == 0) {
      std::fill_n(lost, count, T{});
      return;
    }
    if constexpr (std::is_floating_point_v<T>) {
      for (std::int64_t i = 0; i < count; i++) {
        lost[i] += scalar::rounded_off(total[i], part[i]);
        total[i] += part[i];
      }
      if (p + chain_ < summed_) return;
      for (std::int64_t i = 0; i < count; i++) total[i] = scalar::with_rounded_off(total[i], lost[i]);
    } else {
      for (std::int64_t i = 0; i < count; i++) total[i] = scalar::add(total[i], part[i]);
    }
  }

  LibraryCall::Item item_;
  Contraction c_;
  std::vector<ContractionDim> runs_;  // points without those of the contiguous dimension
  std::int64_t groups_, points_, features_, summed_, chain_;
  bool by_points_ = false;
  std::int64_t run_ = 0, cut_ = 0,
               cuts_ = 1;  // contiguous points; points per product; products per run
  std::int64_t point_block_ = 1, point_blocks_ = 0,
               feature_block_ = 1;  // per unit: cuts of runs, or points; features
};

}  // namespace

LibraryPlan plan_conv(const LibraryCall& call, const LibraryCall::Item& item) {
  return with_number_type("conv", call.in_types[0], [&]<class T>(T) -> LibraryPlan {
    Conv<T> conv(item, Contraction::of(item.params));
    const std::int64_t units = conv.units();
    const double cost = conv.cost_ns();
    return {units, cost, std::move(conv)};
  });
}

}  // namespace shardarray
