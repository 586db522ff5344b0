// LoopNestEmitter: prefetching of rows that several stages read. The first stage waits for memory; the second finds the row in cache, and
// meanwhile prefetches the next one.
#include <llvm/IR/Intrinsics.h>

#include "cpu/codegen/llvm/nest_emitter.h"

namespace shardarray::codegen {

void LoopNestEmitter::find_prefetching() {
  if (!rows() || !spec_.short_rows) return;
  for (int s = 0; s < static_cast<int>(k_.stages.size()) && prefetching_ < 0; s++) {
    if (!inner(s)) continue;
    if (reading_ < 0) reading_ = s;
    else prefetching_ = s;
  }
}

/// Prefetches the next row, from element i on, for all loads of the first inner stage.
void LoopNestEmitter::prefetch_next_row(llvm::Value* i) {
  constexpr int line = 64;
  for (const int v : accesses_) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    const int access = values_[static_cast<std::size_t>(v)].access, next_row = spec_.outer - 1;
    if (in.code != Code::load || values_[static_cast<std::size_t>(v)].stage != reading_ ||
        stride(access, vector_axis()) != Stride::next || stride(access, next_row) == Stride::none)
      continue;
    llvm::Value* const at = b_.CreateGEP(b_.getInt8Ty(), row(v, i).first, stride_bytes(access, next_row));
    const int bytes = width_ * static_cast<int>(itemsize(k_.args[in.imm].type));
    for (int ahead = 0; ahead < bytes; ahead += line)
      b_.CreateIntrinsic(
          llvm::Intrinsic::prefetch, {at->getType()},
          {b_.CreateGEP(b_.getInt8Ty(), at, i64(ahead)), b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  }
}

}  // namespace shardarray::codegen
