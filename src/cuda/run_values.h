// What the points of a run share: values that a printed kernel computes once for all of them, or once per group.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/half_casts.h"
#include "cuda/loop_shape.h"

namespace shardarray::cuda {

inline constexpr std::uint32_t most_in_run = 16;

/// For a run of adjacent points along the last outer axis that begins at a multiple of its length, a power of two.
///
/// If shape.index_unit is a multiple of that length, an index along this axis is such a multiple plus 0, 1, 2, ... So its low bits are
/// known, and all points share the high ones: for example, four elements of a random draw share the words of one block.
class RunValues {
 public:
  RunValues(const Kernel& k, const LoopShape& shape, const LoopOperands& operands, const HalfCasts& halves,
            std::uint32_t run);

  /// Points that begin at a multiple of this number share a value: 1 (all may differ) up to the run's length.
  std::uint32_t group(std::size_t v) const { return values_[v].group; }
  /// Whether each point's value is a constant, as the low bits of an index are.
  bool is_known(std::size_t v) const { return values_[v].known; }
  std::uint64_t known(std::size_t v, std::uint32_t k) const { return values_[v].low[k]; }

 private:
  /// An integer as a multiple of `unit`, a power of two, plus a known number below it.
  struct Value {
    std::uint32_t group = 1;
    bool known = false;                               ///< the multiple is 0
    std::uint64_t unit = 0;                           ///< 0: no integer, or nothing known
    std::array<std::uint64_t, most_in_run> low = {};  ///< by point
  };
  Value value_of(std::size_t v) const;
  Value index(std::size_t operand) const;
  Value cast(const Instr& in) const;
  Value calculated(const Instr& in) const;
  Value of_operands(std::size_t v) const;
  template <class Low> Value made(const Instr& in, std::uint64_t unit, const Low& low) const;
  const std::uint64_t* constant(std::int32_t v) const;

  const Kernel& k_;
  const LoopShape& shape_;
  const LoopOperands& operands_;
  const HalfCasts& halves_;
  const std::uint32_t run_;
  std::vector<Value> values_;
};

}  // namespace shardarray::cuda
