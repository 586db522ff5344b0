// The rows that a printed kernel keeps in shared memory: arguments that several inner stages read, and values that several of them would
// compute.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/half_casts.h"
#include "cuda/loop_shape.h"

namespace shardarray::cuda {

class KeptRows {
 public:
  /// One contiguous row per outer point. Nothing if shape.kept_points is 0.
  KeptRows(const Kernel& k, const HalfCasts& halves, const LoopShape& shape);

  const std::vector<std::size_t>& arguments() const { return arguments_; }
  bool empty() const { return rows_.empty(); }
  std::uint32_t bytes() const { return bytes_; }

  struct Row {
    std::size_t number;  ///< of an argument, or of an instruction
    bool is_value;
    DType type;
    std::uint32_t at;  ///< byte offset
  };
  /// A value may reuse the memory of an argument that is no longer read.
  const std::vector<Row>& rows() const { return rows_; }

  bool keeps_argument(std::size_t argument) const;
  bool keeps_value(std::size_t v) const;
  /// The instruction whose kept value replaces v's; v itself if there is none.
  std::size_t stands_for(std::size_t v) const { return same_[v]; }
  /// False: no remaining instruction uses it.
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
      values_;  // instructions whose values are kept by the inner stage that first computes them
  std::vector<Row> rows_;
  std::vector<std::size_t> same_;
  std::vector<bool> needed_;
  std::uint32_t bytes_ = 0;
};

}  // namespace shardarray::cuda
