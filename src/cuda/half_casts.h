// Where a kernel widens and narrows 16-bit floats. Kernel IR spells that out in integers, which are the same on every platform; a GPU
// has an instruction for it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/kernel.h"

namespace shardarray::cuda {

class HalfCasts {
 public:
  enum class Kind : std::uint8_t {
    widens,
    narrows,
    rounds,   ///< a float32: the operand narrowed and widened again
    repeats,  ///< narrows what was narrowed and widened: it is the operand
  };
  struct Cast {
    DType half = DType::float16;
    Kind kind = Kind::widens;
    std::int32_t operand = -1;  ///< what it is a cast of; -1: it is none
  };
  explicit HalfCasts(const Kernel& k);
  const Cast& of(std::size_t v) const { return casts_[v]; }
  bool is_cast(std::size_t v) const { return casts_[v].operand >= 0; }
  /// False: only casts made use of it.
  bool is_needed(std::size_t v) const { return needed_[v]; }

 private:
  static Cast spelled(const Kernel& k, std::int32_t v);
  static Cast joined(const Kernel& k, std::int32_t v);

  std::vector<Cast> casts_;
  std::vector<bool> needed_;
};

}  // namespace shardarray::cuda
