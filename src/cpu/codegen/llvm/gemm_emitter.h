// GemmEmitter: emits a GemmSpec as one LLVM function.
//
// Vectors run along the columns of B; the accumulators of a block of rows and columns stay in registers over k. A B with strided columns is
// first transposed to the stack.
#pragma once
#include <string>
#include <vector>

#include "cpu/codegen/llvm/nest_emitter.h"
#include "cpu/codegen/llvm/row_access.h"
#include "cpu/products/gemm_spec.h"

namespace shardarray::codegen {

class GemmEmitter {
 public:
  GemmEmitter(llvm::Module& module, const GemmSpec& spec, const Machine& machine);
  /// Adds `void name(args, numbers, box)`: args are A, B, C and the epilogue's arguments; the box is [first, last) of the batch.
  llvm::Function* emit(const std::string& name);

 private:
  /// A power of two of adjacent columns, at a constant offset in their group.
  struct Columns {
    std::int64_t offset;
    int width;
  };
  void product();
  void turn();
  void turn_square(llvm::Value* from, llvm::Value* to, llvm::Value* p, llvm::Value* j, int size);
  void all_rows(llvm::Value* j, const std::vector<Columns>& columns);
  void block(llvm::Value* i, std::int64_t rows, llvm::Value* j, const std::vector<Columns>& columns);
  std::vector<llvm::Value*> carried_loop(
      std::int64_t n, std::vector<llvm::Value*> first,
      const std::function<std::vector<llvm::Value*>(llvm::Value* p, std::vector<llvm::Value*> now)>& body);
  llvm::Value* load(llvm::Value* p, std::int64_t width);
  void store(llvm::Value* p, llvm::Value* x);
  void store_columns(llvm::Value* p, llvm::Value* x, int width);
  /// Elements of C in row i from column j on.
  void finish(llvm::Value* i, llvm::Value* j, llvm::Value* sum, int width);
  void follow(llvm::Value* i, llvm::Value* j, llvm::Value* sum, int width);

  /// The address `elements` after p.
  llvm::Value* at(llvm::Value* p, llvm::Value* elements) { return b_.CreateGEP(element_, p, elements); }
  llvm::Value* times(llvm::Value* x, std::int64_t stride) { return b_.CreateMul(x, i64(stride)); }
  llvm::Value* i64(std::int64_t x) { return b_.getInt64(static_cast<std::uint64_t>(x)); }
  llvm::Type* vector(std::int64_t width) { return vector_of(element_, static_cast<int>(width)); }

  llvm::Module& module_;
  bool transposed_;
  GemmSpec g_;
  llvm::IRBuilder<> b_;
  int width_;
  MemoryAccess memory_;
  llvm::Type* element_;
  llvm::Value *left_ = nullptr, *right_ = nullptr, *out_ = nullptr;  // of one batch entry
  std::vector<llvm::Value*> followers_;  // the epilogue's arguments, for this entry
  std::int64_t right_row_;               // row stride of B
};

}  // namespace shardarray::codegen
