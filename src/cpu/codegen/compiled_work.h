// A WorkList as generated code: products are fused with epilogues; kernels of small programs are joined into functions that call them one
// after another; large works over the same elements become passes.
#pragma once
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/blocked_work.h"
#include "cpu/codegen/code_store.h"
#include "cpu/codegen/loop_over_product.h"
#include "cpu/work_list.h"

namespace shardarray {

/// Loops that touch at least so many bytes write past the caches what their program does not read again. A machine-wide setting; returns
/// the previous one.
std::int64_t set_cache_bytes(std::int64_t bytes);

/// How much longer the full tier compiles than the quick one.
inline constexpr double full_tier_factor = 4;

class CompiledWork {
 public:
  /// Compiles each kernel that costs as much in `runs` interpreted runs as its compilation, counted over all its works. Null if this
  /// process cannot compile. `works` must outlive the result.
  static std::unique_ptr<CompiledWork> make(const WorkList& works, CodeTier tier, double runs = endless_runs);
  static constexpr double endless_runs = 1e300;
  /// Whether everything that can be compiled is; else some of it is not worth it yet, or has failed and may be retried.
  bool complete() const { return complete_ && all_worth_; }
  bool all_worth() const { return all_worth_; }
  /// Works worth compiling.
  std::size_t kernels() const { return kernels_; }
  /// Compile time in the quick tier if nothing is cached: of everything, and of the works worth it.
  double compile_ns() const { return compile_ns_; }
  double worth_ns() const { return worth_ns_; }
  /// In an order that gives the same values. Works without code run as before.
  const std::vector<Work>& all() const { return all_; }

  /// A loop, in units.
  struct UnitLoop {
    LoopNest nest;
    MachineCode code;
    void run(void* const* bases, std::int64_t begin, std::int64_t end) const {
      nest.run(code.function, bases, begin, end);
    }
    std::int64_t units() const { return nest.units(); }
    double cost_ns() const { return nest.cost_ns(); }
  };
  /// A product with its epilogue: units are the entries of its batch.
  struct Product {
    std::vector<Ref> args;
    MachineCode code;
    void run(void* const* bases, std::int64_t begin, std::int64_t end) const;
  };
  /// A product by our own kernel and the loop over its elements, which runs on each part while that is in cache.
  struct FollowedProduct final : AfterProduct {
    const GemmPlan* product;
    LoopNest nest;
    LoopOverProduct loop;
    MachineCode code;
    FollowedProduct(const GemmPlan* p, LoopNest n, const LoopOverProduct& l, MachineCode c)
        : AfterProduct(l.keep), product(p), nest(std::move(n)), loop(l), code(std::move(c)) {}
    void run(void* const* bases, std::int64_t begin, std::int64_t end) const {
      product->run(bases, begin, end, *this);
    }
    void run_part(void* const* bases, std::int64_t batch, std::int64_t i, std::int64_t rows, std::int64_t j,
                  std::int64_t columns, const PartOfC::Place& place) const override;
  };
  /// One function, one unit. Its bases are the addresses `args`, so that equal parts of a program share code; without `args`, the program's
  /// own bases.
  struct Sequence {
    std::vector<Ref> args;
    MachineCode code;
    void run(void* const* bases, std::int64_t, std::int64_t) const;
  };

 private:
  friend class WorkCompiler;
  CompiledWork() = default;
  std::deque<UnitLoop> loops_;
  std::deque<Product> products_;
  std::deque<FollowedProduct> followed_;
  std::deque<Sequence> sequences_;
  std::deque<BlockedWork> blocked_;
  std::vector<Work> all_;
  bool complete_ = true, all_worth_ = true;
  double compile_ns_ = 0, worth_ns_ = 0;
  std::size_t kernels_ = 0;
};

}  // namespace shardarray
