// GemmEmitter: the epilogue on a product's elements.
#include "cpu/codegen/llvm/gemm_emitter.h"
#include "cpu/codegen/llvm/ranges.h"

namespace shardarray::codegen {

void GemmEmitter::follow(llvm::Value* i, llvm::Value* j, llvm::Value* sum, int width) {
  const GemmEpilogue& e = *g_.epilogue;
  const Kernel& k = *e.kernel;
  MemoryAccess memory(b_, width, false);
  const auto row = [&](std::uint64_t arg) {
    const GemmEpilogue::Walk& w = e.args[arg];
    const DType t = k.args[arg].type;
    const Stride stride = stride_class(w.col, static_cast<std::int64_t>(itemsize(t)));
    llvm::Value* const distance = b_.CreateAdd(times(i, w.row), times(j, w.col));
    return Row{t, b_.CreateGEP(b_.getInt8Ty(), followers_[arg], distance), stride, i64(w.col)};
  };
  std::vector<llvm::Value*> values(k.code.size());
  const auto value = [&](int v) { return values[static_cast<std::size_t>(v)]; };
  for (int v = 0; v < static_cast<int>(k.code.size()); v++) {
    const Instr& in = k.code[static_cast<std::size_t>(v)];
    llvm::Value*& x = values[static_cast<std::size_t>(v)];
    if (in.code == Code::constant) {
      x = constant_of(b_.getContext(), in.type, in.imm, width);
    } else if (in.code == Code::load && in.imm == e.product) {
      x = sum;
    } else if (in.code == Code::load) {
      const Row r = row(in.imm);
      if (width > 1 && r.stride != Stride::none) x = memory.load(r, {});
      else x = memory.load_one(r.type, r.first);
      if (width > 1 && r.stride == Stride::none) x = b_.CreateVectorSplat(static_cast<unsigned>(width), x);
    } else if (in.code == Code::store) {
      const Row r = row(in.imm);
      if (width > 1) memory.store(r, value(in.a), {});
      else memory.store_one(r.type, r.first, value(in.a));
    } else {
      x = emit_value(b_, in, operands_of(k, v, value), width);
    }
  }
}

}  // namespace shardarray::codegen
