#include "cpu/codegen/llvm/move_emitter.h"

#include <llvm/IR/Module.h>

namespace shardarray::codegen {

namespace {

class MoveEmitter {
 public:
  MoveEmitter(llvm::Module& module, const MoveSpec& spec)
      : module_(module), spec_(spec), b_(module.getContext()) {}

  llvm::Function* emit(const std::string& name) {
    auto* const p = b_.getPtrTy();
    llvm::Function* const f = add_function(module_, name);
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", f));
    std::uint64_t args = 0;
    const auto next_arg = [&] { return b_.CreateLoad(p, b_.CreateConstGEP1_64(p, f->getArg(0), args++)); };
    if (spec_.filled > 0) fill(next_arg());
    for (const MoveSpec::Piece& piece : spec_.pieces) {
      llvm::Value *const to = next_arg(), *const from = next_arg();
      move(piece, 0, to, from);
    }
    b_.CreateRetVoid();
    return f;
  }

 private:
  llvm::Value* i64(std::int64_t n) { return b_.getInt64(static_cast<std::uint64_t>(n)); }
  llvm::Value* moved(llvm::Value* from, llvm::Value* by, std::int64_t stride) {
    return b_.CreateGEP(b_.getInt8Ty(), from, b_.CreateMul(by, i64(stride * spec_.itemsize)));
  }

  void fill(llvm::Value* to) {
    llvm::Type* const type =
        b_.getIntNTy(static_cast<unsigned>(8 * std::min<std::int64_t>(spec_.itemsize, 8)));
    llvm::Value* const bits = llvm::ConstantInt::get(type, spec_.fill_bits);
    emit_loop(b_, i64(0), i64(spec_.filled), i64(1), [&](llvm::Value* k) {
      llvm::Value* const at = moved(to, k, 1);
      b_.CreateAlignedStore(bits, at, llvm::Align(1));
      if (spec_.itemsize > 8)
        b_.CreateAlignedStore(llvm::ConstantInt::get(type, 0), b_.CreateConstGEP1_64(b_.getInt8Ty(), at, 8),
                              llvm::Align(1));
    });
  }

  /// The dimensions of a piece from `dim` on.
  void move(const MoveSpec::Piece& p, std::size_t dim, llvm::Value* to, llvm::Value* from) {
    if (is_row(p, dim)) {
      std::int64_t elements = 1;
      for (std::size_t d = dim; d < p.extents.size(); d++) elements *= p.extents[d];
      return emit_copy(b_, to, from, elements * spec_.itemsize);
    }
    emit_loop(b_, i64(0), i64(p.extents[dim]), i64(1), [&](llvm::Value* k) {
      move(p, dim + 1, moved(to, k, p.dst_strides[dim]), moved(from, k, p.src_strides[dim]));
    });
  }

  /// Whether the elements along the dimensions from `dim` on are contiguous, here and there.
  static bool is_row(const MoveSpec::Piece& p, std::size_t dim) {
    std::int64_t next = 1;
    for (std::size_t d = p.extents.size(); d-- > dim; next *= p.extents[d])
      if (p.extents[d] != 1 && (p.src_strides[d] != next || p.dst_strides[d] != next)) return false;
    return true;
  }

  llvm::Module& module_;
  const MoveSpec& spec_;
  llvm::IRBuilder<> b_;
};

}  // namespace

llvm::Function* emit_move(llvm::Module& module, const MoveSpec& spec, const std::string& name) {
  return MoveEmitter(module, spec).emit(name);
}

}  // namespace shardarray::codegen
