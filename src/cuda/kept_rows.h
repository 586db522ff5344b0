// What a printed kernel keeps of each row in shared memory: arguments that several inner stages read, and values that several of
// them would compute.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/half_casts.h"
#include "cuda/loop_shape.h"

namespace shardarray::cuda {

class KeptRows {
 public:
  /// A row for each outer point, one element beside the other. Nothing where shape.kept_points is 0.
  KeptRows(const Kernel& k, const HalfCasts& halves, const LoopShape& shape);

  const std::vector<std::size_t>& arguments() const { return arguments_; }
  bool empty() const { return rows_.empty(); }
  std::uint32_t bytes() const { return bytes_; }

  struct Row {
    std::size_t number;  ///< of an argument, or of an instruction
    bool is_value;
    DType type;
    std::uint32_t at;  ///< its first byte
  };
  /// A value may lie where an argument was, which nothing reads any more.
  const std::vector<Row>& rows() const { return rows_; }

  bool keeps_argument(std::size_t argument) const;
  bool keeps_value(std::size_t v) const;
  /// The instruction whose kept value stands for that of v; v: it has its own.
  std::size_t stands_for(std::size_t v) const { return same_[v]; }
  /// False: nothing that is left makes use of it.
  bool is_needed(std::size_t v) const { return needed_[v]; }

 private:
  void find_values();
  void find_needed();
  void find_arguments();
  void place();
  bool reads(std::size_t v, std::size_t argument) const;
  bool is_read_from(std::size_t v, std::size_t argument) const;

  const Kernel& k_;
  const HalfCasts& halves_;
  const LoopShape& shape_;
  std::vector<std::size_t> arguments_;
  std::vector<std::size_t>
      values_;  // instructions whose values are kept where an inner stage computes them first
  std::vector<Row> rows_;
  std::vector<std::size_t> same_;
  std::vector<bool> needed_;
  std::uint32_t bytes_ = 0;
};

}  // namespace shardarray::cuda
