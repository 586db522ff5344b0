// LoopNestEmitter: reductions. Float sums and products use lanes and blocks by the inner point's flat number (kernel.h); others may combine
// in any order.
#include "cpu/codegen/llvm/nest_emitter.h"
#include "runtime/evaluate_instruction.h"

namespace shardarray::codegen {

/// As stored in memory: bool as bytes.
llvm::Value* LoopNestEmitter::widened(const Instr& in, llvm::Value* x) {
  if (in.type != bool_) return x;
  return b_.CreateZExt(x, x->getType()->getWithNewType(b_.getInt8Ty()));
}
llvm::Constant* LoopNestEmitter::identity(const Instr& in, int width) {
  const DType t = in.type == bool_ ? uint8 : in.type;
  return constant_of(b_.getContext(), t, identity_bits(static_cast<Reducer>(in.imm), in.type), width);
}
/// Combines two lanes; bool as bytes.
llvm::Value* LoopNestEmitter::combine(const Instr& reduce, llvm::Value* x, llvm::Value* y) {
  return emit_binary(b_, combining_code(static_cast<Reducer>(reduce.imm)), reduce.type, x, y);
}

// ---------------------------------------------------------------- totals of blocks, of one element or of a vector

bool LoopNestEmitter::sums_blocks(int stage) const {
  const auto [first, last] = range(stage);
  bool any = false;
  for (int v = first; v < last; v++) any = any || in_blocks(v);
  return any;
}

void LoopNestEmitter::open_total(const Instr& in, llvm::Value* total, llvm::Value* lost, int width) {
  const llvm::Align align(itemsize(in.type));
  b_.CreateAlignedStore(identity(in, width), total, align);
  b_.CreateAlignedStore(constant_of(b_.getContext(), in.type, 0, width), lost, align);
}

void LoopNestEmitter::add_block(const Instr& in, llvm::Value* total, llvm::Value* lost, llvm::Value* x) {
  const llvm::Align align(itemsize(in.type));
  llvm::Value* const before = b_.CreateAlignedLoad(x->getType(), total, align);
  llvm::Value* const after = combine(in, before, x);
  b_.CreateAlignedStore(after, total, align);
  if (static_cast<Reducer>(in.imm) != Reducer::sum) return;
  llvm::Value* const z = b_.CreateFSub(after, before);
  llvm::Value* const rounded_off =
      b_.CreateFAdd(b_.CreateFSub(before, b_.CreateFSub(after, z)), b_.CreateFSub(x, z));
  b_.CreateAlignedStore(b_.CreateFAdd(b_.CreateAlignedLoad(x->getType(), lost, align), rounded_off), lost,
                        align);
}

llvm::Value* LoopNestEmitter::total_of(const Instr& in, llvm::Value* total, llvm::Value* lost, int width) {
  const llvm::Align align(itemsize(in.type));
  llvm::Type* const type = vector_of(memory_type(b_.getContext(), in.type), width);
  llvm::Value* const x = b_.CreateAlignedLoad(type, total, align);
  if (static_cast<Reducer>(in.imm) != Reducer::sum) return x;
  llvm::Value* const all = b_.CreateFAdd(x, b_.CreateAlignedLoad(type, lost, align));
  llvm::Value* const size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, all);
  return b_.CreateSelect(b_.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(type)), all, x);
}

// ---------------------------------------------------------------- rows: the lanes are vectors in registers

void LoopNestEmitter::open_lanes_rows(int stage, int repeats) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code != Code::reduce) continue;
    auto& accumulators = values_[static_cast<std::size_t>(v)].accumulators;
    for (int r = 0; r < repeats; r++) {
      accumulators.push_back(memory_.stack(vector_of(memory_type(b_.getContext(), in.type), width_), 1));
      b_.CreateStore(identity(in, width_), accumulators.back());
    }
    if (!in_blocks(v)) continue;
    EmittedValue& x = values_[static_cast<std::size_t>(v)];
    x.total = memory_.stack(memory_type(b_.getContext(), in.type), 1);
    x.lost = memory_.stack(memory_type(b_.getContext(), in.type), 1);
    open_total(in, x.total, x.lost, 1);
  }
}

void LoopNestEmitter::accumulate_rows(int v, int repeat, llvm::Value* x, const Lanes& active) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  llvm::Value* const at = values_[static_cast<std::size_t>(v)].accumulators[static_cast<std::size_t>(repeat)];
  x = widened(in, x);
  llvm::Value* const before = b_.CreateLoad(x->getType(), at);
  llvm::Value* after = combine(in, before, x);
  if (!active.all()) after = b_.CreateSelect(memory_.mask(active), after, before);
  b_.CreateStore(after, at);
}

/// All lanes combined into one element.
llvm::Value* LoopNestEmitter::folded_lanes(int v) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  std::vector<llvm::Value*> parts;
  for (llvm::Value* a : values_[static_cast<std::size_t>(v)].accumulators) {
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
  return b_.CreateExtractElement(all, std::uint64_t{0});
}

/// Adds the lanes to the total and resets them.
void LoopNestEmitter::close_block_rows(int stage) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    if (!in_blocks(v)) continue;
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    const EmittedValue& x = values_[static_cast<std::size_t>(v)];
    add_block(in, x.total, x.lost, folded_lanes(v));
    for (llvm::Value* a : x.accumulators) b_.CreateStore(identity(in, width_), a);
  }
}

void LoopNestEmitter::finish_rows(int stage) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code != Code::reduce) continue;
    EmittedValue& x = values_[static_cast<std::size_t>(v)];
    x.reduced = in_blocks(v) ? total_of(in, x.total, x.lost, 1) : folded_lanes(v);
    if (in.type == bool_) x.reduced = b_.CreateICmpNE(x.reduced, b_.getInt8(0));
  }
}

// ---------------------------------------------------------------- columns: a lane is a row of a tile's elements

/// The number of lanes: at most the inner points.
llvm::Value* LoopNestEmitter::lane_count(const Instr& in) {
  if (!is_ordered(in)) return i64(1);
  llvm::Value* points = i64(1);
  for (int d = spec_.outer; d < spec_.rank(); d++) points = b_.CreateMul(points, number(d));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, points, i64(lanes));
}

/// The vectors of a tile's elements; the last one may go past `end`.
void LoopNestEmitter::each_vector(llvm::Value* begin, llvm::Value* end,
                                  const std::function<void(llvm::Value*)>& run) {
  emit_loop(b_, begin, end, i64(width_), run);
}

llvm::Value* LoopNestEmitter::lane_address(int v, llvm::Value* lane, llvm::Value* i) {
  const DType t = k_.code[static_cast<std::size_t>(v)].type;
  llvm::Value* const all = values_[static_cast<std::size_t>(v)].accumulators[0];
  llvm::Type* const element = memory_type(b_.getContext(), t);
  return tile_address(b_.CreateGEP(element, all, b_.CreateMul(lane, i64(LoopNest::tile))), t, i);
}

void LoopNestEmitter::open_lanes_columns(int stage, llvm::Value* begin, llvm::Value* end) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (in.code != Code::reduce) continue;
    EmittedValue& x = values_[static_cast<std::size_t>(v)];
    const std::int64_t most = is_ordered(in) ? lanes : 1;
    llvm::Type* const element = memory_type(b_.getContext(), in.type);
    x.tile = memory_.stack(element, static_cast<std::uint64_t>(most * LoopNest::tile));
    x.accumulators = {x.tile};
    emit_loop(b_, i64(0), lane_count(in), i64(1), [&](llvm::Value* lane) {
      each_vector(begin, end, [&](llvm::Value* i) {
        b_.CreateAlignedStore(identity(in, width_), lane_address(v, lane, i), llvm::Align(itemsize(in.type)));
      });
    });
    if (!in_blocks(v)) continue;
    x.total = memory_.stack(element, LoopNest::tile);
    x.lost = memory_.stack(element, LoopNest::tile);
    each_vector(begin, end, [&](llvm::Value* i) {
      open_total(in, tile_address(x.total, in.type, i), tile_address(x.lost, in.type, i), width_);
    });
  }
}

void LoopNestEmitter::accumulate_columns(int v, llvm::Value* x, llvm::Value* i) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  llvm::Value* const lane = is_ordered(in) ? b_.CreateAnd(flat_, i64(lanes - 1)) : i64(0);
  llvm::Value* const at = lane_address(v, lane, i);
  x = widened(in, x);
  const llvm::Align align(itemsize(in.type));
  b_.CreateAlignedStore(combine(in, b_.CreateAlignedLoad(x->getType(), at, align), x), at, align);
}

/// Combines the lanes into the first; `anew`: resets the others. Skips lanes that no inner point reached, which would change nothing.
void LoopNestEmitter::fold_columns(int v, bool anew, llvm::Value* begin, llvm::Value* end) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  llvm::Type* const type = vector_of(memory_type(b_.getContext(), in.type), width_);
  const llvm::Align align(itemsize(in.type));
  llvm::Value* const count = lane_count(in);
  for (int half = lanes / 2; half > 0; half /= 2) {
    llvm::Value* const pairs =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(count, i64(half)), i64(half));
    emit_loop(b_, i64(0), pairs, i64(1), [&](llvm::Value* lane) {
      llvm::Value* const other = b_.CreateAdd(lane, i64(half));
      each_vector(begin, end, [&](llvm::Value* i) {
        llvm::Value* const to = lane_address(v, lane, i);
        llvm::Value* const from = lane_address(v, other, i);
        llvm::Value* const x = b_.CreateAlignedLoad(type, to, align);
        llvm::Value* const y = b_.CreateAlignedLoad(type, from, align);
        b_.CreateAlignedStore(combine(in, x, y), to, align);
        if (anew) b_.CreateAlignedStore(identity(in, width_), from, align);
      });
    });
  }
}

/// Adds the lanes to the totals and resets them.
void LoopNestEmitter::close_block_columns(int stage, llvm::Value* begin, llvm::Value* end) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    if (!in_blocks(v)) continue;
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    const EmittedValue& x = values_[static_cast<std::size_t>(v)];
    fold_columns(v, true, begin, end);
    each_vector(begin, end, [&](llvm::Value* i) {
      llvm::Value* const lane = tile_address(x.tile, in.type, i);
      add_block(in, tile_address(x.total, in.type, i), tile_address(x.lost, in.type, i),
                memory_.load_vector(in.type, lane));
      memory_.store_vector(in.type, lane, identity(in, width_));
    });
  }
}

void LoopNestEmitter::finish_columns(int stage, llvm::Value* begin, llvm::Value* end) {
  const auto [first, last] = range(stage);
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    if (!is_ordered(in)) continue;
    if (!in_blocks(v)) {
      fold_columns(v, false, begin, end);
      continue;
    }
    const EmittedValue& x = values_[static_cast<std::size_t>(v)];
    each_vector(begin, end, [&](llvm::Value* i) {
      llvm::Value* const total = tile_address(x.total, in.type, i);
      memory_.store_vector(in.type, tile_address(x.tile, in.type, i),
                           total_of(in, total, tile_address(x.lost, in.type, i), width_));
    });
  }
}

}  // namespace shardarray::codegen
