// What the points of a run have in common: the values that a printed kernel computes once for all of them, or for groups of them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/half_casts.h"
#include "cuda/loop_shape.h"

namespace shardarray::cuda {

inline constexpr std::uint32_t most_in_run = 16;

/// Of a run of neighbours along the last outer axis that begins at a multiple of its length, a power of two.
///
/// Where shape.index_unit is a multiple of that length, an index along this axis is one, plus 0, 1, 2, ... So its low bits are known
/// and its high ones are those of all neighbours: four elements of a draw share the words of one block of random numbers, say.
class RunValues {
 public:
  RunValues(const Kernel& k, const LoopShape& shape, const LoopOperands& operands, const HalfCasts& halves,
            std::uint32_t run);

  /// Neighbours that begin at a multiple of this number have one value: 1 (all may differ), ..., the run's length.
  std::uint32_t group(std::size_t v) const { return values_[v].group; }
  /// Whether the value of each neighbour is a constant, as the lowest bits of an index are.
  bool is_known(std::size_t v) const { return values_[v].known; }
  std::uint64_t known(std::size_t v, std::uint32_t k) const { return values_[v].low[k]; }

 private:
  /// An integer is a multiple of `unit`, a power of two, plus a number below it that is known.
  struct Value {
    std::uint32_t group = 1;
    bool known = false;                               ///< the multiple is 0
    std::uint64_t unit = 0;                           ///< 0: no integer, or nothing is known of it
    std::array<std::uint64_t, most_in_run> low = {};  ///< by neighbour
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
