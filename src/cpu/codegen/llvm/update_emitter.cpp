#include "cpu/codegen/llvm/update_emitter.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "runtime/evaluate_instruction.h"

namespace shardarray::codegen {

namespace {

class UpdateEmitter {
 public:
  UpdateEmitter(llvm::Module& module, const UpdateSpec& spec)
      : module_(module), spec_(spec), b_(module.getContext()) {}

  llvm::Function* emit(const std::string& name) {
    auto* const p = b_.getPtrTy();
    llvm::Function* const f = add_function(module_, name);
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", f));
    std::uint64_t args = 0;
    const auto next_arg = [&] { return b_.CreateLoad(p, b_.CreateConstGEP1_64(p, f->getArg(0), args++)); };
    llvm::Value *const x = next_arg(), *const part = next_arg();
    std::vector<llvm::Value*> starts;
    for (const UpdateSpec::Dim& d : spec_.dims) starts.push_back(d.moves ? next_arg() : nullptr);
    emit_loop(b_, i64(0), i64(spec_.batch), i64(1), [&](llvm::Value* entry) {
      at_.clear();
      for (std::size_t k = 0; k < starts.size(); k++) at_.push_back(place(spec_.dims[k], starts[k], entry));
      put(0, moved(x, entry, spec_.x_bytes), moved(part, entry, spec_.part_bytes));
    });
    b_.CreateRetVoid();
    return f;
  }

 private:
  llvm::Value* i64(std::int64_t n) { return b_.getInt64(static_cast<std::uint64_t>(n)); }
  llvm::Value* moved(llvm::Value* from, llvm::Value* by, std::int64_t step) {
    return b_.CreateGEP(b_.getInt8Ty(), from, b_.CreateMul(by, i64(step)));
  }

  /// Where the part starts in the tile.
  llvm::Value* place(const UpdateSpec::Dim& d, llvm::Value* starts, llvm::Value* entry) {
    if (!d.moves) return i64(0);
    llvm::Type* const type = memory_type(b_.getContext(), d.index);
    llvm::Value* const start =
        b_.CreateAlignedLoad(type, b_.CreateGEP(type, starts, entry), llvm::Align(itemsize(d.index)));
    return b_.CreateSub(b_.CreateSExt(start, b_.getInt64Ty()), i64(d.first));
  }

  /// Writes what is inside x along the dimensions from `dim` on.
  void put(std::size_t dim, llvm::Value* x, llvm::Value* part) {
    if (is_whole(dim)) return put_row(x, part, dim == 0 ? spec_.part_bytes : spec_.dims[dim - 1].step);
    const UpdateSpec::Dim& d = spec_.dims[dim];
    llvm::Value* const at = at_[dim];
    const auto row = [&](llvm::Value* k) {
      put(dim + 1, moved(x, b_.CreateAdd(at, k), d.x_step), moved(part, k, d.step));
    };
    if (d.m == 1) return emit_if(b_, b_.CreateICmpULT(at, i64(d.n)), [&] { row(i64(0)); });
    emit_loop(b_, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, i64(0), b_.CreateNeg(at)),
              b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, i64(d.m), b_.CreateSub(i64(d.n), at)), i64(1),
              row);
  }

  /// Whether the part covers x along the dimensions from `dim` on, so that both are contiguous.
  bool is_whole(std::size_t dim) const {
    for (; dim < spec_.dims.size(); dim++)
      if (spec_.dims[dim].moves || spec_.dims[dim].m != spec_.dims[dim].n) return false;
    return true;
  }

  void put_row(llvm::Value* x, llvm::Value* part, std::int64_t bytes) {
    if (spec_.reducer == Reducer::none) return emit_copy(b_, x, part, bytes);
    constexpr std::uint64_t widest = 16;
    const std::uint64_t size = itemsize(spec_.type), n = static_cast<std::uint64_t>(bytes) / size;
    for (std::uint64_t k = 0, width; k < n; k += width) {
      width = std::bit_floor(std::min(n - k, widest));
      MemoryAccess memory(b_, static_cast<int>(width), false);
      const auto place = [&](llvm::Value* row) {
        return b_.CreateConstGEP1_64(b_.getInt8Ty(), row, k * size);
      };
      llvm::Value* const to = place(x);
      llvm::Value* const before = memory.load_vector(spec_.type, to);
      llvm::Value* const by = memory.load_vector(spec_.type, place(part));
      memory.store_vector(spec_.type, to,
                          emit_binary(b_, combining_code(spec_.reducer), spec_.type, before, by));
    }
  }

  llvm::Module& module_;
  const UpdateSpec& spec_;
  llvm::IRBuilder<> b_;
  std::vector<llvm::Value*> at_;  // dimension -> where the current entry's part starts
};

}  // namespace

llvm::Function* emit_update(llvm::Module& module, const UpdateSpec& spec, const std::string& name) {
  return UpdateEmitter(module, spec).emit(name);
}

}  // namespace shardarray::codegen
