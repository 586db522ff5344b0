// Matrix products of one device: the choice of kernel, and the split into panels.
#pragma once
#include <cstdint>

#include <optional>

#include "cpu/products/blas.h"
#include "cpu/products/gemm_spec.h"
#include "cpu/products/own_gemm.h"
#include "runtime/program.h"

namespace shardarray {

/// What runs on the elements of a product after it.
class AfterProduct {
 public:
  /// `keep`: others read C too; else it need not be stored.
  explicit AfterProduct(bool keep) : keep_(keep) {}
  /// Called when rows [i, i + rows), columns [j, j + columns) of one batch entry are complete.
  virtual void run_part(void* const* bases, std::int64_t batch, std::int64_t i, std::int64_t rows,
                        std::int64_t j, std::int64_t columns, const PartOfC::Place& place) const = 0;
  bool keeps() const { return keep_; }

 protected:
  ~AfterProduct() = default;

 private:
  bool keep_;
};

/// One item of a Gemm step. Its units are panels of one batch entry each, whose sizes depend on the shape and the kernel, never on the
/// number of workers: some BLAS kernels round differently where rows are split.
class GemmPlan {
 public:
  /// Opens the BLAS if the item needs it. Throws CompileError for a dtype without a kernel.
  GemmPlan(const Gemm& gemm, const Gemm::Item& item);
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const {
    run_(*this, bases, begin, end, nullptr);
  }
  /// The same, with `then` run on each part of C while that is in cache.
  void run(void* const* bases, std::int64_t begin, std::int64_t end, const AfterProduct& then) const {
    run_(*this, bases, begin, end, &then);
  }
  /// Whether that pays: our own kernel makes it, and C is too large for the L1 cache.
  bool takes_what_follows() const;
  std::int64_t units() const { return item_.batch * panels_; }
  double cost_ns() const { return cost_ns_; }
  /// The item as generated code, if that has the bits of this plan and is worth it.
  std::optional<GemmSpec> spec() const;
  /// The item's sizes and strides.
  GemmSpec shape() const;
  const Gemm::Item& item() const { return item_; }

 private:
  enum class Way : std::uint8_t { zero, own, gemm, gemv_row, gemv_column, integer };
  template <class T> bool fits_blas() const;
  void choose_way(bool fixed_order);
  void choose_panels();
  template <class T>
  void panel(void* const* bases, std::int64_t batch, std::int64_t index, const AfterProduct* then) const;
  void run_integer(void* const* bases, std::int64_t batch, std::int64_t index) const;
  template <class T> void run_whole(void* const* bases, std::int64_t begin, std::int64_t end) const;
  template <class T>
  void run_units(void* const* bases, std::int64_t begin, std::int64_t end, const AfterProduct* then) const;

  DType dtype_;
  bool one_chain_ = true;
  Gemm::Item item_;
  Way way_ = Way::own;
  bool cut_rows_ = true;     // else columns
  std::int64_t panels_ = 1;  // per batch entry
  double cost_ns_ = 0;
  Blas blas_;
  void (*run_)(const GemmPlan& plan, void* const* bases, std::int64_t begin, std::int64_t end,
               const AfterProduct* then) = nullptr;
};

}  // namespace shardarray
