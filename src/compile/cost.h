// The cost model: what the choice of a placement weighs. Seconds are not predicted yet, everything is in bytes received by the
// busiest device. One object in the compiler's input, so that a measured model can take its place.
#pragma once
#include <cstdint>

#include "runtime/target.h"

namespace shardarray {

/// Of transfers.
struct MoveCost {
  double moved = 0;  ///< what is received
  double peak = 0;   ///< memory that a device does not have
  double all() const { return moved + peak; }
  MoveCost& operator+=(const MoveCost& o) {
    moved += o.moved;
    peak += o.peak;
    return *this;
  }
  friend MoveCost operator+(MoveCost a, const MoveCost& b) { return a += b; }
  friend MoveCost operator*(const MoveCost& a, double factor) { return {a.moved * factor, a.peak * factor}; }
};

/// What is kept in memory to move less has to save this part of what moves.
inline constexpr double kWorthMemory = 1.0 / 16;

class CostModel {
 public:
  explicit CostModel(const Target& target) : links_(target.links), device_memory_(target.device_memory) {}
  /// One transfer of so many bytes; every one costs a little, so that fewer win ties.
  double transfer(std::int64_t bytes) const { return message(bytes, links_.start); }
  /// The same of what neighbours send: halos, carries of a scan.
  double halo(std::int64_t bytes) const { return message(bytes, links_.halo_start); }
  /// Arithmetic on the busiest device.
  double compute(double operations) const { return operations * links_.operation; }
  /// The same of products of such operands; `tf32`: those of float32 may be less exact.
  double product(double operations, DType t, bool tf32) const {
    const double each = t == DType::float16           ? links_.float16_product
                        : t == DType::bfloat16        ? links_.bfloat16_product
                        : t == DType::float64         ? links_.float64_product
                        : t == DType::float32 && tf32 ? links_.tf32_product
                                                      : 0;
    return operations * (each > 0 ? each : links_.operation);
  }
  /// So many bytes at once on one device: nothing where they fit. What does not fit costs more than any way to move it.
  double peak(std::int64_t bytes) const {
    constexpr double byte_too_many = 1000;
    return has_peaks() && bytes > device_memory_ ? static_cast<double>(bytes - device_memory_) * byte_too_many
                                                 : 0;
  }
  /// Else no peak costs anything.
  bool has_peaks() const { return device_memory_ > 0; }
  std::int64_t device_memory() const { return device_memory_; }
  /// The same where a device has at most so many bytes; 0: no other limit.
  CostModel within(std::int64_t bytes) const {
    CostModel m = *this;
    if (bytes > 0 && (!has_peaks() || bytes < device_memory_)) m.device_memory_ = bytes;
    return m;
  }
  /// The same where replicas have memory of their own, or one: then devices that hold the same have nothing to share out.
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
