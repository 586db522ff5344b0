// Kernels that are no loop nests: sort and scatter_add.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/program.h"

namespace shardarray {

/// One Extern item, in units that are independent of each other: lines along the sorted dimension, or blocks
/// of the table's columns.
class ExternPlan {
 public:
  /// Throws CompileError for a dtype without a kernel.
  ExternPlan(const Extern& x, const Extern::Item& item);
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const {
    (this->*run_)(bases, begin, end);
  }
  std::int64_t units() const { return units_; }
  double cost_ns() const { return cost_ns_; }

 private:
  void plan_sort();
  void plan_scatter_add();
  void sort(void* const* bases, std::int64_t begin, std::int64_t end) const;
  template <class T> void scatter_add(void* const* bases, std::int64_t begin, std::int64_t end) const;

  Extern::Item item_;
  std::vector<DType> types_;  // of the inputs
  std::int64_t units_ = 0;
  double cost_ns_ = 0;
  std::int64_t length_ = 0, inner_ = 1;  // sort: of a line, and the distance between its elements
  std::int64_t batch_ = 0, rows_ = 0, columns_ = 0, updates_ = 0;  // scatter_add
  void (ExternPlan::*run_)(void* const* bases, std::int64_t begin, std::int64_t end) const = nullptr;
};

}  // namespace shardarray
