// NestEmitter: reductions. Float sums and products run in 32 lanes, by the flat number of the inner point, and
// the lanes are combined pairwise; the others may be combined in any order.
#include "cpu/llvm/nest_emitter.h"
#include "runtime/evaluate_instruction.h"

namespace shardarray::codegen {

/// As it stands in memory: bool as bytes.
llvm::Value* NestEmitter::widened(const Instr& in, llvm::Value* x) {
  if (in.type != bool_) return x;
  return b_.CreateZExt(x, x->getType()->getWithNewType(b_.getInt8Ty()));
}
llvm::Constant* NestEmitter::identity(const Instr& in, int width) {
  const DType t = in.type == bool_ ? uint8 : in.type;
  return constant_of(b_.getContext(), t, identity_bits(static_cast<Reducer>(in.imm), in.type), width);
}
/// Two lanes combined; bool as bytes.
llvm::Value* NestEmitter::combine(const Instr& reduce, llvm::Value* x, llvm::Value* y) {
  return emit_binary(b_, combining_code(static_cast<Reducer>(reduce.imm)), reduce.type, x, y);
}

// ---------------------------------------------------------------- rows: the lanes are vectors in registers

void NestEmitter::open_lanes_rows(int stage, int repeats) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code != Code::reduce) continue;
    auto& accumulators = values_[static_cast<std::size_t>(v)].accumulators;
    for (int r = 0; r < repeats; r++) {
      accumulators.push_back(memory_.stack(vector_of(memory_type(b_.getContext(), in.type), width_), 1));
      b_.CreateStore(identity(in, width_), accumulators.back());
    }
  }
}

void NestEmitter::accumulate_rows(int v, int repeat, llvm::Value* x, const Lanes& active) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  llvm::Value* const at = values_[static_cast<std::size_t>(v)].accumulators[static_cast<std::size_t>(repeat)];
  x = widened(in, x);
  llvm::Value* const before = b_.CreateLoad(x->getType(), at);
  llvm::Value* after = combine(in, before, x);
  if (!active.all()) after = b_.CreateSelect(memory_.mask(active), after, before);
  b_.CreateStore(after, at);
}

void NestEmitter::fold_rows(int stage) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code != Code::reduce) continue;
    Value& x = values_[static_cast<std::size_t>(v)];
    std::vector<llvm::Value*> parts;
    for (llvm::Value* a : x.accumulators) {
      parts.push_back(b_.CreateLoad(vector_of(memory_type(b_.getContext(), in.type), width_), a));
    }
    for (std::size_t half = parts.size() / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; i++) parts[i] = combine(in, parts[i], parts[i + half]);
    }
    llvm::Value* all = parts[0];
    for (int half = width_ / 2; half > 0; half /= 2) {
      llvm::SmallVector<int, 32> low, high;
      for (int i = 0; i < half; i++) low.push_back(i), high.push_back(i + half);
      all = combine(in, b_.CreateShuffleVector(all, low), b_.CreateShuffleVector(all, high));
    }
    x.reduced = b_.CreateExtractElement(all, std::uint64_t{0});
    if (in.type == bool_) x.reduced = b_.CreateICmpNE(x.reduced, b_.getInt8(0));
  }
}

// ---------------------------------------------------------------- columns: a lane is a row of a tile's elements

/// How many lanes there are: no more than inner points.
llvm::Value* NestEmitter::lane_count(const Instr& in) {
  if (!ordered(in)) return i64(1);
  llvm::Value* points = i64(1);
  for (int d = spec_.outer; d < spec_.rank(); d++) points = b_.CreateMul(points, number(d));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, points, i64(lanes));
}

llvm::Value* NestEmitter::lane_address(int v, llvm::Value* lane, llvm::Value* i) {
  const DType t = k_.code[static_cast<std::size_t>(v)].type;
  llvm::Value* const all = values_[static_cast<std::size_t>(v)].accumulators[0];
  llvm::Type* const element = memory_type(b_.getContext(), t);
  return tile_address(b_.CreateGEP(element, all, b_.CreateMul(lane, i64(LoopNest::tile))), t, i);
}

void NestEmitter::open_lanes_columns(int stage, llvm::Value* begin, llvm::Value* end) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code != Code::reduce) continue;
    Value& x = values_[static_cast<std::size_t>(v)];
    const std::int64_t most = ordered(in) ? lanes : 1;
    x.tile = memory_.stack(memory_type(b_.getContext(), in.type),
                           static_cast<std::uint64_t>(most * LoopNest::tile));
    x.accumulators = {x.tile};
    emit_loop(b_, i64(0), lane_count(in), i64(1), [&](llvm::Value* lane) {
      emit_loop(b_, begin, end, i64(width_), [&](llvm::Value* i) {
        b_.CreateAlignedStore(identity(in, width_), lane_address(v, lane, i), llvm::Align(itemsize(in.type)));
      });
    });
  }
}

void NestEmitter::accumulate_columns(int v, llvm::Value* x, llvm::Value* i) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  llvm::Value* const lane = ordered(in) ? b_.CreateAnd(flat_, i64(lanes - 1)) : i64(0);
  llvm::Value* const at = lane_address(v, lane, i);
  x = widened(in, x);
  const llvm::Align align(itemsize(in.type));
  b_.CreateAlignedStore(combine(in, b_.CreateAlignedLoad(x->getType(), at, align), x), at, align);
}

/// Lanes that no inner point reached are left out: they would change nothing.
void NestEmitter::fold_columns(int stage, llvm::Value* begin, llvm::Value* end) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code != Code::reduce || !ordered(in)) continue;
    llvm::Type* const type = vector_of(memory_type(b_.getContext(), in.type), width_);
    const llvm::Align align(itemsize(in.type));
    llvm::Value* const count = lane_count(in);
    for (int half = lanes / 2; half > 0; half /= 2) {
      llvm::Value* const pairs =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(count, i64(half)), i64(half));
      emit_loop(b_, i64(0), pairs, i64(1), [&](llvm::Value* lane) {
        llvm::Value* const other = b_.CreateAdd(lane, i64(half));
        emit_loop(b_, begin, end, i64(width_), [&](llvm::Value* i) {
          llvm::Value* const to = lane_address(v, lane, i);
          llvm::Value* const x = b_.CreateAlignedLoad(type, to, align);
          llvm::Value* const y = b_.CreateAlignedLoad(type, lane_address(v, other, i), align);
          b_.CreateAlignedStore(combine(in, x, y), to, align);
        });
      });
    }
  }
}

}  // namespace shardarray::codegen
