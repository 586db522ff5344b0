// Finds casts of 16-bit floats in a kernel. Kernel IR expresses them in integer operations, the same on every platform; a GPU has
// instructions for them.
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
    rounds,   ///< a float32 narrowed and widened again
    repeats,  ///< narrows what was narrowed and widened: the same as the operand
  };
  struct Cast {
    DType half = DType::float16;
    Kind kind = Kind::widens;
    std::int32_t operand = -1;  ///< -1: not a cast
  };
  explicit HalfCasts(const Kernel& k);
  const Cast& of(std::size_t v) const { return casts_[v]; }
  bool is_cast(std::size_t v) const { return casts_[v].operand >= 0; }
  /// False: only the inside of casts uses it.
  bool is_needed(std::size_t v) const { return needed_[v]; }

 private:
  static Cast spelled(const Kernel& k, std::int32_t v);
  static Cast joined(const Kernel& k, std::int32_t v);

  std::vector<Cast> casts_;
  std::vector<bool> needed_;
};

}  // namespace shardarray::cuda
