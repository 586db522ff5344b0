// Moves rows of elements between memory and registers: contiguous, strided, or found at run time; whole, or only some lanes.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "cpu/codegen/llvm/values.h"
#include "cpu/loops/loop_nest.h"

namespace shardarray::codegen {

/// Emits an if with both branches.
void emit_either(llvm::IRBuilder<>& b, llvm::Value* condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise);
/// Emits a loop that runs body(i) for i = begin, begin + step, ... below end; later code follows the loop.
void emit_loop(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end, llvm::Value* step,
               const std::function<void(llvm::Value*)>& body);
/// The same, with the body returning the next i.
void emit_turns(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end,
                const std::function<llvm::Value*(llvm::Value*)>& body);
/// Emits code that runs only if `condition` holds.
void emit_if(llvm::IRBuilder<>& b, llvm::Value* condition, const std::function<void()>& body);
/// Adds a function of the one signature that all have: the addresses of the arguments, numbers, box.
llvm::Function* add_function(llvm::Module& module, const std::string& name);
/// Copies bytes between places that do not overlap, aligned or not.
void emit_copy(llvm::IRBuilder<>& b, llvm::Value* to, llvm::Value* from, std::int64_t bytes);

/// Lanes [lo, hi) of a vector; null: all.
struct Lanes {
  llvm::Value *lo = nullptr, *hi = nullptr;
  bool all() const { return lo == nullptr; }
};
/// A row of elements: the first one's address and the stride. Strides are in bytes.
struct Row {
  DType type;
  llvm::Value* first;
  Stride stride;
  llvm::Value* stride_bytes;
};
/// For rows found at run time: the address is that of row `lo`.
struct Indirect {
  llvm::Value *row, *row_stride, *lo, *count;
  bool adjacent;  ///< rows are elements side by side
};

class MemoryAccess {
 public:
  /// `masked`: the CPU has masked loads of 4 and 8 bytes.
  MemoryAccess(llvm::IRBuilder<>& b, int width, bool masked) : b_(b), width_(width), masked_(masked) {}

  llvm::Value* load(const Row& row, const Lanes& lanes);
  void store(const Row& row, llvm::Value* value, const Lanes& lanes);
  /// Stores two rows of stride `second`, the other one between the elements of `row`. False: it cannot, some lanes of this type.
  bool store_pairs(const Row& row, llvm::Value* value, llvm::Value* other, const Lanes& lanes);
  /// Every second element from p on, as a vector of this type in memory.
  llvm::Value* load_second(llvm::FixedVectorType* type, DType t, llvm::Value* p, const Lanes& lanes);
  /// Stores all lanes of contiguous elements, past the caches if they are whole lines; sfence() orders them before later stores.
  void stream(const Row& row, llvm::Value* value);
  void sfence();
  /// Loads from rows that differ by lane.
  llvm::Value* gather(const Row& row, const Indirect& at, const Lanes& lanes);
  /// The address of a row that all lanes share; of zeros if there is no such row.
  llvm::Value* indirect_address(llvm::Value* address, llvm::Value* zeros_at, const Indirect& at);
  /// One element.
  llvm::Value* load_one(DType t, llvm::Value* address);
  void store_one(DType t, llvm::Value* address, llvm::Value* value);
  /// Whole vectors on the stack.
  llvm::Value* load_vector(DType t, llvm::Value* address);
  void store_vector(DType t, llvm::Value* address, llvm::Value* value);

  /// Stack memory that lives as long as the function.
  llvm::AllocaInst* stack(llvm::Type* t, std::uint64_t n);
  llvm::Value* zeros();
  llvm::Value* mask(const Lanes& lanes);

 private:
  llvm::Value* splat(llvm::Value* x) { return b_.CreateVectorSplat(static_cast<unsigned>(width_), x); }
  /// 0, 1, 2, ..
  llvm::Constant* lane_numbers(llvm::IntegerType* t);
  llvm::Value* gather_known(const Row& row, const Indirect& at, llvm::Value* rows);
  /// Elements from the last lane's to the first's.
  llvm::Value* reversed(llvm::Value* v);
  llvm::Value* last_lane(const Row& row);
  Lanes second_lanes(const Lanes& lanes, int first, int past);
  llvm::Type* vector(DType t) { return vector_of(memory_type(b_.getContext(), t), width_); }
  llvm::Value* offset(llvm::Value* p, llvm::Value* bytes) { return b_.CreateGEP(b_.getInt8Ty(), p, bytes); }
  llvm::Value* from_memory(DType t, llvm::Value* v);
  llvm::Value* to_memory(DType t, llvm::Value* v);
  llvm::Value* buffer(DType t);
  bool has_mask(DType t) const { return masked_ && itemsize(t) >= 4; }

  llvm::IRBuilder<>& b_;
  int width_;
  bool masked_;
  std::map<unsigned, llvm::Value*> buffers_;  // by element bits: a vector on the stack
  llvm::Value* zeros_ = nullptr;
};

}  // namespace shardarray::codegen
