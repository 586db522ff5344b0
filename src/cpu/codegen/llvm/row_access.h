// Rows of elements between memory and registers: neighbours, strided ones, rows found at run time, each whole or
// only some of its lanes.
#pragma once
#include <functional>
#include <map>

#include "cpu/codegen/llvm/values.h"
#include "cpu/loops/loop_nest.h"

namespace shardarray::codegen {

/// Code of which one of two parts runs.
void emit_either(llvm::IRBuilder<>& b, llvm::Value* condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise);
/// Calls body(i) for i = begin, begin + step ... below end, which code is emitted after.
void emit_loop(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end, llvm::Value* step,
               const std::function<void(llvm::Value*)>& body);
/// The same where the body says which i comes next.
void emit_turns(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end,
                const std::function<llvm::Value*(llvm::Value*)>& body);
/// Code that runs only where `condition` holds.
void emit_if(llvm::IRBuilder<>& b, llvm::Value* condition, const std::function<void()>& body);

/// The lanes [lo, hi) of a vector; null: all.
struct Lanes {
  llvm::Value *lo = nullptr, *hi = nullptr;
  bool all() const { return lo == nullptr; }
};
/// A row of elements: the first one's address, how the others follow. Strides are bytes.
struct Row {
  DType type;
  llvm::Value* first;
  Stride stride;
  llvm::Value* stride_bytes;
};
/// What rows found at run time need: the address is that of row `lo`.
struct Indirect {
  llvm::Value *row, *row_stride, *lo, *count;
  bool adjacent;  ///< rows are elements side by side
};

class MemoryAccess {
 public:
  /// `entry`: the block of the function that holds its stack; `masked`: the CPU has masked loads of 4 and 8 bytes.
  MemoryAccess(llvm::IRBuilder<>& b, int width, bool masked) : b_(b), width_(width), masked_(masked) {}

  llvm::Value* load(const Row& row, const Lanes& lanes);
  void store(const Row& row, llvm::Value* value, const Lanes& lanes);
  /// All lanes of neighbours, past the caches where they are whole lines; sfence() orders them before what follows.
  void stream(const Row& row, llvm::Value* value);
  void sfence();
  /// Vectors, from rows that differ by lane.
  llvm::Value* gather(const Row& row, const Indirect& at, const Lanes& lanes);
  /// The address of a row that all lanes share; of zeros where there is no such row.
  llvm::Value* indirect_address(llvm::Value* address, llvm::Value* zeros_at, const Indirect& at);
  /// One element.
  llvm::Value* load_one(DType t, llvm::Value* address);
  void store_one(DType t, llvm::Value* address, llvm::Value* value);
  /// Whole vectors in the stack.
  llvm::Value* load_vector(DType t, llvm::Value* address);
  void store_vector(DType t, llvm::Value* address, llvm::Value* value);

  /// Stack that lives as long as the function.
  llvm::AllocaInst* stack(llvm::Type* t, std::uint64_t n);
  llvm::Value* zeros();
  llvm::Value* mask(const Lanes& lanes);

 private:
  llvm::Value* splat(llvm::Value* x) { return b_.CreateVectorSplat(static_cast<unsigned>(width_), x); }
  /// 0, 1, 2, ..
  llvm::Constant* lane_numbers(llvm::IntegerType* t);
  llvm::Value* gather_known(const Row& row, const Indirect& at, llvm::Value* rows);
  llvm::Type* vector(DType t) { return vector_of(memory_type(b_.getContext(), t), width_); }
  llvm::Value* offset(llvm::Value* p, llvm::Value* bytes) { return b_.CreateGEP(b_.getInt8Ty(), p, bytes); }
  llvm::Value* from_memory(DType t, llvm::Value* v);
  llvm::Value* to_memory(DType t, llvm::Value* v);
  llvm::Value* buffer(DType t);
  bool has_mask(DType t) const { return masked_ && itemsize(t) >= 4; }

  llvm::IRBuilder<>& b_;
  int width_;
  bool masked_;
  std::map<unsigned, llvm::Value*> buffers_;  // by element bits: a vector of stack
  llvm::Value* zeros_ = nullptr;
};

}  // namespace shardarray::codegen
