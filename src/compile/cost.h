// The cost model for choosing placements. Costs are bytes received by the busiest device; seconds are not predicted yet. One object in the
// compiler's input, so that a measured model can replace it.
#pragma once
#include <cstdint>

#include "runtime/target.h"

namespace shardarray {

/// The cost of transfers.
struct MoveCost {
  double moved = 0;  ///< bytes received
  double peak = 0;   ///< for memory that a device does not have
  double all() const { return moved + peak; }
  MoveCost& operator+=(const MoveCost& o) {
    moved += o.moved;
    peak += o.peak;
    return *this;
  }
  friend MoveCost operator+(MoveCost a, const MoveCost& b) { return a += b; }
  friend MoveCost operator*(const MoveCost& a, double factor) { return {a.moved * factor, a.peak * factor}; }
};

/// Memory that is spent in order to move less must save this fraction of what moves.
inline constexpr double kWorthMemory = 1.0 / 16;

class CostModel {
 public:
  explicit CostModel(const Target& target) : links_(target.links), device_memory_(target.device_memory) {}
  /// One transfer of this many bytes; each has a small fixed cost, so that fewer win ties.
  double transfer(std::int64_t bytes) const { return message(bytes, links_.start); }
  /// The same for neighbours' data: halos, carries of a scan.
  double halo(std::int64_t bytes) const { return message(bytes, links_.halo_start); }
  /// Arithmetic on the busiest device.
  double compute(double operations) const { return operations * links_.operation; }
  /// The same for products of such operands; `tf32`: float32 ones may be less exact.
  double product(double operations, DType t, bool tf32) const {
    const double each = t == DType::float16           ? links_.float16_product
                        : t == DType::bfloat16        ? links_.bfloat16_product
                        : t == DType::float64         ? links_.float64_product
                        : t == DType::float32 && tf32 ? links_.tf32_product
                                                      : 0;
    return operations * (each > 0 ? each : links_.operation);
  }
  /// This many bytes at once on one device: free if they fit. What does not fit costs more than any transfers.
  double peak(std::int64_t bytes) const {
    constexpr double byte_too_many = 1000;
    return has_peaks() && bytes > device_memory_ ? static_cast<double>(bytes - device_memory_) * byte_too_many
                                                 : 0;
  }
  /// False: peaks cost nothing.
  bool has_peaks() const { return device_memory_ > 0; }
  std::int64_t device_memory() const { return device_memory_; }
  /// The same model for a device with at most this many bytes; 0: no other limit.
  CostModel within(std::int64_t bytes) const {
    CostModel m = *this;
    if (bytes > 0 && (!has_peaks() || bytes < device_memory_)) m.device_memory_ = bytes;
    return m;
  }
  /// `apart`: replicas have separate memories. Otherwise they share one, and have no work to divide.
  CostModel with_replicas_apart(bool apart) const {
    CostModel m = *this;
    m.replicas_are_apart_ = apart;
    return m;
  }
  bool replicas_are_apart() const { return replicas_are_apart_; }
  CostModel without_peaks() const {
    CostModel m = *this;
    m.device_memory_ = 0;
    return m;
  }

 private:
  static double message(std::int64_t bytes, double start) {
    return bytes > 0 ? static_cast<double>(bytes) + start : 0;
  }
  Target::Links links_;
  std::int64_t device_memory_;
  bool replicas_are_apart_ = false;
};

}  // namespace shardarray
