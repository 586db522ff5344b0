// LoopNestEmitter: instructions, where they are placed, and what they read.
#include <algorithm>

#include "cpu/codegen/llvm/nest_emitter.h"
#include "cpu/codegen/llvm/ranges.h"

namespace shardarray::codegen {

/// Emits the scalars that are known once the loop over axis `level` has a coordinate: in outer loops (stage -1) for all stages, in inner
/// loops for their own.
void LoopNestEmitter::scalars(int level, int stage) {
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    const EmittedValue& x = values_[static_cast<std::size_t>(v)];
    if (in_body(v) || k_.code[static_cast<std::size_t>(v)].code == Code::store || this->level(v) != level)
      continue;
    if (stage < 0 ? x.pending : x.stage != stage) continue;
    emit_scalar(v);
  }
}

/// A loop that is emitted twice has its own scalars each time.
void LoopNestEmitter::forget_scalars(int level, int stage) {
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    EmittedValue& x = values_[static_cast<std::size_t>(v)];
    if (this->level(v) == level && (stage < 0 || x.stage == stage)) x.scalar = nullptr;
  }
}

void LoopNestEmitter::emit_scalar(int v) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  EmittedValue& x = values_[static_cast<std::size_t>(v)];
  if (x.scalar || in.code == Code::reduce) return;
  llvm::Value* const at = x.access < 0 ? nullptr : at_[static_cast<std::size_t>(x.access)];
  switch (in.code) {
    case Code::index: x.scalar = at; return;
    case Code::load: x.scalar = memory_.load_one(in.type, at); return;
    case Code::load_at:
      x.scalar = memory_.load_one(
          in.type, memory_.indirect_address(at, memory_.zeros(), indirect(v, scalar_operand(in.a))));
      return;
    case Code::store:
      memory_.store_one(k_.code[static_cast<std::size_t>(in.a)].type, at, scalar_operand(in.a));
      return;
    default: break;
  }
  x.scalar = emit_value(b_, in, operands_of(k_, v, [&](int o) { return scalar_operand(o); }), 1);
}

llvm::Value* LoopNestEmitter::scalar_operand(int v) {
  const EmittedValue& x = values_[static_cast<std::size_t>(v)];
  return x.reduced ? x.reduced : x.scalar;
}

Indirect LoopNestEmitter::indirect(int v, llvm::Value* row) {
  const int access = values_[static_cast<std::size_t>(v)].access, rank = spec_.rank();
  return {row, access_number(access, rank + LoopNestNumbers::row_stride),
          access_number(access, rank + LoopNestNumbers::lo),
          access_number(access, rank + LoopNestNumbers::count),
          spec_.adjacent[static_cast<std::size_t>(access)]};
}

/// The elements of access v from i on along the vector axis.
Row LoopNestEmitter::row(int v, llvm::Value* i) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  const int access = values_[static_cast<std::size_t>(v)].access, axis = vector_axis();
  if (!spec_.packed.empty()) {
    llvm::Value* const copied = packed_[static_cast<std::size_t>(access)];
    const DType t = k_.args[in.imm].type;
    llvm::Value* const from = copied ? copied : at_[static_cast<std::size_t>(access)];
    return {t, b_.CreateGEP(memory_type(b_.getContext(), t), from, i), Stride::next,
            i64(static_cast<std::int64_t>(itemsize(t)))};
  }
  llvm::Value* const bytes = stride_bytes(access, axis);
  llvm::Value* const first =
      b_.CreateGEP(b_.getInt8Ty(), at_[static_cast<std::size_t>(access)], b_.CreateMul(i, bytes));
  return {k_.args[in.imm].type, first, stride(access, axis), bytes};
}

/// Stores both parts of complex numbers in place of the store of the imaginary parts. Whether v is a store of either.
bool LoopNestEmitter::stored_as_pairs(int v, int stage, llvm::Value* i, const Lanes& active) {
  if (spec_.real_parts.empty()) return false;
  const int access = values_[static_cast<std::size_t>(v)].access,
            real = spec_.real_parts[static_cast<std::size_t>(access)];
  if (real < 0) return std::ranges::find(spec_.real_parts, access) != spec_.real_parts.end();
  const int re = accesses_[static_cast<std::size_t>(real)];
  llvm::Value* const x = operand(k_.code[static_cast<std::size_t>(re)].a, stage, i);
  llvm::Value* const y = operand(k_.code[static_cast<std::size_t>(v)].a, stage, i);
  if (memory_.store_pairs(row(re, i), x, y, active)) return true;
  memory_.store(row(re, i), x, active);
  memory_.store(row(v, i), y, active);
  return true;
}

/// The innermost body of a stage, for the elements from i on.
void LoopNestEmitter::body(int stage, int repeat, llvm::Value* i, const Lanes& active) {
  const auto [first, last] = range(stage);
  std::fill(vector_.begin(), vector_.end(), nullptr);
  if (stage == prefetching_ && active.all()) prefetch_next_row(i);
  for (int v = first; v < last; v++) {
    if (!in_body(v)) continue;
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code == Code::store) {
      if (stored_as_pairs(v, stage, i, active)) continue;
      const Row to = row(v, i);
      llvm::Value* const x = operand(in.a, stage, i);
      const bool is_copied = packed_[static_cast<std::size_t>(values_[static_cast<std::size_t>(v)].access)];
      if (streams() && active.all() && to.stride == Stride::next && !is_copied) memory_.stream(to, x);
      else memory_.store(to, x, active);
    } else if (in.code == Code::reduce) {
      if (rows()) accumulate_rows(v, repeat, operand(in.a, stage, i), active);
      else accumulate_columns(v, operand(in.a, stage, i), i);
    } else {
      vector_[static_cast<std::size_t>(v)] = emit_vector(v, i, active);
      EmittedValue& x = values_[static_cast<std::size_t>(v)];
      if (x.row) memory_.store_vector(in.type, row_address(v, i), vector_[static_cast<std::size_t>(v)]);
      if (!tiled() || inner(stage) || !x.leaves) continue;
      if (!x.tile) x.tile = memory_.stack(memory_type(b_.getContext(), in.type), LoopNest::tile);
      memory_.store_vector(in.type, tile_address(x.tile, in.type, i), vector_[static_cast<std::size_t>(v)]);
    }
  }
}

llvm::Value* LoopNestEmitter::emit_vector(int v, llvm::Value* i, const Lanes& active) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  const EmittedValue& x = values_[static_cast<std::size_t>(v)];
  const int stage = x.stage;
  if (x.kept >= 0) return memory_.load_vector(in.type, row_address(x.kept, i));
  if (in.code == Code::index) {
    if (llvm::Value* const copied = packed_[static_cast<std::size_t>(x.access)])
      return memory_.load_vector(int64, b_.CreateGEP(b_.getInt64Ty(), copied, i));
    llvm::Value* const step = spec_.packed.empty() ? stride_bytes(x.access, vector_axis()) : i64(1);
    llvm::Value* const first = b_.CreateAdd(at_[static_cast<std::size_t>(x.access)], b_.CreateMul(i, step));
    const auto splat = [&](llvm::Value* s) { return b_.CreateVectorSplat(static_cast<unsigned>(width_), s); };
    llvm::SmallVector<llvm::Constant*, 32> numbers;
    for (int l = 0; l < width_; l++) numbers.push_back(b_.getInt64(static_cast<std::uint64_t>(l)));
    return b_.CreateAdd(splat(first), b_.CreateMul(splat(step), llvm::ConstantVector::get(numbers)));
  }
  if (in.code == Code::load) {
    if (llvm::Value* const turned = turned_[static_cast<std::size_t>(x.access)]) {
      llvm::Value* const row_of =
          b_.CreateGEP(memory_type(b_.getContext(), in.type), turned, b_.CreateMul(turned_row_, i64(width_)));
      return memory_.load_vector(in.type, row_of);
    }
    return memory_.load(row(v, i), active);
  }
  if (in.code == Code::load_at) {
    Row r = row(v, i);
    const bool shared = !varies(in.a) && r.stride == Stride::next;
    if (!shared) return memory_.gather(r, indirect(v, operand(in.a, stage, i)), active);
    r.first = memory_.indirect_address(r.first, memory_.zeros(), indirect(v, scalar_operand(in.a)));
    return memory_.load(r, active);
  }
  return emit_value(b_, in, operands_of(k_, v, [&](int o) { return operand(o, stage, i); }), width_);
}

/// v as a vector in the body of `stage`.
llvm::Value* LoopNestEmitter::operand(int v, int stage, llvm::Value* i) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  EmittedValue& x = values_[static_cast<std::size_t>(v)];
  llvm::Value*& known = vector_[static_cast<std::size_t>(v)];
  if (known) return known;
  if (in.code == Code::constant) known = constant_of(b_.getContext(), in.type, in.imm, width_);
  else if (x.tile && x.stage != stage) known = memory_.load_vector(in.type, tile_address(x.tile, in.type, i));
  else known = b_.CreateVectorSplat(static_cast<unsigned>(width_), scalar_operand(v));
  return known;
}

/// The address of outer point i in a buffer with a tile's elements.
llvm::Value* LoopNestEmitter::tile_address(llvm::Value* buffer, DType t, llvm::Value* i) {
  return b_.CreateGEP(memory_type(b_.getContext(), t), buffer, b_.CreateSub(i, tile_begin_));
}

}  // namespace shardarray::codegen
