#include "cpu/codegen/llvm/nest_emitter.h"

#include <algorithm>
#include <bit>

namespace shardarray::codegen {

namespace {
/// Long dependency chains are latency-bound: several in parallel are not. Needs a machine with many registers.
bool is_chain(const LoopNestSpec& spec, const Machine& machine) {
  constexpr std::size_t long_one = 100;
  const Kernel& k = *spec.kernel;
  if (machine.vector_bytes < 64 || k.code.size() < long_one || spec.inner > 0) return false;
  const std::vector<int> accesses = accesses_of(k);
  for (std::size_t a = 0; a < accesses.size(); a++)
    if (spec.turns(a) || k.code[static_cast<std::size_t>(accesses[a])].code == Code::load_at) return false;
  return true;
}

/// Elements per vector: two registers of the widest type in memory; four for long chains. Fewer for rows that are known to be shorter.
int width_for(const LoopNestSpec& spec, const Machine& machine) {
  constexpr int least = 4;
  std::size_t widest = 1;
  for (const KernelArg& a : spec.kernel->args) widest = std::max(widest, itemsize(a.type));
  const int registers = is_chain(spec, machine) ? 4 : 2;
  const int width =
      std::clamp(registers * machine.vector_bytes / static_cast<int>(widest), least, 16 * registers);
  if (spec.fixed.empty() || spec.mode != LoopMode::columns || spec.inner > 0 || !spec.packed.empty())
    return width;
  const auto row = static_cast<std::uint64_t>(spec.fixed[static_cast<std::size_t>(spec.vector_axis())]);
  return static_cast<int>(
      std::clamp<std::uint64_t>(std::bit_ceil(row), least, static_cast<std::uint64_t>(width)));
}
}  // namespace

LoopNestEmitter::LoopNestEmitter(llvm::Module& module, const LoopNestSpec& spec, const Machine& machine)
    : module_(module),
      spec_(spec),
      k_(*spec.kernel),
      b_(module.getContext()),
      width_(width_for(spec, machine)),
      vector_bytes_(machine.vector_bytes),
      memory_(b_, width_, machine.masked) {
  analyse();
}

void LoopNestEmitter::analyse() {
  values_.resize(k_.code.size());
  accesses_ = accesses_of(k_);
  for (const Stage& s : k_.stages) has_inner_ = has_inner_ || s.inner;
  int stage = 0, access = 0;
  const std::uint64_t all_outer = (std::uint64_t{1} << spec_.outer) - 1;
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    while (v >= k_.stages[static_cast<std::size_t>(stage)].end) stage++;
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    EmittedValue& x = values_[static_cast<std::size_t>(v)];
    x.stage = has_inner_ ? stage : 0;
    if (in.code >= Code::index && in.code <= Code::store) {
      x.access = access++;
      for (int d = 0; d < spec_.rank(); d++) {
        if (stride(x.access, d) != Stride::none) x.axes |= std::uint64_t{1} << d;
      }
    }
    for (const std::int32_t o : {in.a, in.b, in.c}) {
      if (o < 0) continue;
      EmittedValue& from = values_[static_cast<std::size_t>(o)];
      x.axes |= from.axes;
      x.pending = x.pending || from.pending;
      from.leaves = from.leaves || from.stage != x.stage;
    }
    if (in.code != Code::reduce) continue;
    x.axes = all_outer;
    x.pending = true;
  }
}

/// Whether v varies along the vector axis.
bool LoopNestEmitter::varies(int v) const {
  const std::uint64_t across = (std::uint64_t{2} << spec_.packed.size()) - 1;
  return values_[static_cast<std::size_t>(v)].axes >> vector_axis() & across;
}

/// Whether v is computed in the innermost body of its stage.
bool LoopNestEmitter::in_body(int v) const {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  const int stage = values_[static_cast<std::size_t>(v)].stage;
  if (rows() && !inner(stage)) return false;
  return varies(v) || in.code == Code::store || in.code == Code::reduce;
}

/// The loop at whose top v is computed once, unless it is in the body: an axis; -1: before all loops. For values that wait for their stage,
/// at least the innermost outer axis.
int LoopNestEmitter::level(int v) const {
  const std::uint64_t axes = values_[static_cast<std::size_t>(v)].axes;
  return axes == 0 ? -1 : 63 - std::countl_zero(axes);
}

/// The stage's range of instructions.
std::pair<int, int> LoopNestEmitter::range(int stage) const {
  if (!has_inner_) return {0, static_cast<int>(k_.code.size())};
  const auto s = static_cast<std::size_t>(stage);
  return {s ? k_.stages[s - 1].end : 0, k_.stages[s].end};
}

llvm::Function* LoopNestEmitter::emit(const std::string& name) {
  llvm::LLVMContext& c = module_.getContext();
  auto* const p = llvm::PointerType::get(c, 0);
  llvm::Function* const f = add_function(module_, name);
  b_.SetInsertPoint(llvm::BasicBlock::Create(c, "entry", f));
  // Allocas go to the start of this block; the code follows in another one.
  llvm::BasicBlock* const start = llvm::BasicBlock::Create(c, "start", f);
  llvm::BasicBlock* const entry = b_.GetInsertBlock();
  b_.SetInsertPoint(start);
  numbers_ = f->getArg(1);
  box_ = f->getArg(2);
  number_cache_.resize(
      static_cast<std::size_t>(LoopNestNumbers::access(spec_.rank(), static_cast<int>(accesses_.size()))));
  vector_.resize(k_.code.size());
  turned_.resize(accesses_.size());
  packed_.resize(accesses_.size());
  std::vector<llvm::Value*> addresses(k_.args.size());
  for (std::size_t a = 0; a < addresses.size(); a++)
    addresses[a] = b_.CreateLoad(p, b_.CreateConstGEP1_64(p, f->getArg(0), a));
  for (const int v : accesses_) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    const int access = values_[static_cast<std::size_t>(v)].access;
    at_.push_back(in.code == Code::index ? access_number(access, spec_.rank() + LoopNestNumbers::start)
                                         : addresses[in.imm]);
  }
  for (std::size_t k = 0; k < number_cache_.size(); k++) number(static_cast<int>(k));
  find_kept();
  find_prefetching();
  scalars(-1, -1);
  outer_loops(0);
  if (streams()) memory_.sfence();
  b_.CreateRetVoid();
  llvm::IRBuilder<>(entry).CreateBr(start);
  return f;
}

/// Numbers are loaded once, at the start; unused ones are eliminated.
llvm::Value* LoopNestEmitter::number(int k) {
  llvm::Value*& known = number_cache_[static_cast<std::size_t>(k)];
  if (!known && is_fixed(k)) known = i64(spec_.fixed[static_cast<std::size_t>(k)]);
  if (!known) {
    known = b_.CreateAlignedLoad(
        b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), numbers_, static_cast<std::uint64_t>(k)),
        llvm::Align(8));
  }
  return known;
}

llvm::Value* LoopNestEmitter::stride_bytes(int access, int axis) {
  const Instr& in = k_.code[static_cast<std::size_t>(accesses_[static_cast<std::size_t>(access)])];
  switch (stride(access, axis)) {
    case Stride::none: return i64(0);
    case Stride::next:
      return i64(in.code == Code::index ? 1 : static_cast<std::int64_t>(itemsize(k_.args[in.imm].type)));
    case Stride::second: return i64(2 * static_cast<std::int64_t>(itemsize(k_.args[in.imm].type)));
    default: return access_number(access, axis);
  }
}

std::vector<llvm::Value*> LoopNestEmitter::place(int axis, int stage, llvm::Value* x) {
  std::vector<llvm::Value*> before = at_;
  for (std::size_t a = 0; a < at_.size(); a++) {
    const int access = static_cast<int>(a), v = accesses_[a];
    if (stride(access, axis) == Stride::none) continue;
    if (stage >= 0 && values_[static_cast<std::size_t>(v)].stage != stage) continue;
    llvm::Value* const distance = b_.CreateMul(x, stride_bytes(access, axis));
    const bool index = k_.code[static_cast<std::size_t>(v)].code == Code::index;
    at_[a] = index ? b_.CreateAdd(at_[a], distance) : b_.CreateGEP(b_.getInt8Ty(), at_[a], distance);
  }
  return before;
}

/// Whether number k is an extent or stride that is part of the code.
bool LoopNestEmitter::is_fixed(int k) const {
  return !spec_.fixed.empty() && LoopNestNumbers::is_shape(spec_.rank(), k);
}

/// A bound of the box.
llvm::Value* LoopNestEmitter::bound(int k) {
  if (!spec_.fixed.empty()) return k % 2 == 0 ? i64(0) : number(k / 2);
  llvm::Value* const at = b_.CreateConstGEP1_64(b_.getInt64Ty(), box_, static_cast<std::uint64_t>(k));
  return b_.CreateAlignedLoad(b_.getInt64Ty(), at, llvm::Align(8));
}

/// Loops over the outer axes from `axis` on, except the vector axis.
void LoopNestEmitter::outer_loops(int axis) {
  if (turned_loops(axis)) return;
  if (!spec_.packed.empty() && axis == vector_axis()) return packed_loop();
  llvm::Value *const begin = bound(2 * axis), *const end = bound(2 * axis + 1);
  if (!rows() && axis == vector_axis()) {
    if (tiled()) {
      emit_loop(b_, begin, end, i64(LoopNest::tile), [&](llvm::Value* t) {
        tile_begin_ = t;
        llvm::Value* const full = b_.CreateAdd(t, i64(LoopNest::tile));
        tile(t, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, full, end));
      });
    } else {
      vector_loop(begin, end, nullptr, 1,
                  [&](int, llvm::Value* i, const Lanes& active) { body(0, 0, i, active); });
    }
    return;
  }
  emit_loop(b_, begin, end, i64(1), [&](llvm::Value* x) {
    auto before = place(axis, -1, x);
    scalars(axis, -1);
    if (axis + 1 < spec_.outer) outer_loops(axis + 1);
    else point();
    restore(std::move(before));
  });
}

/// Rows mode: all stages of one outer point.
void LoopNestEmitter::point() {
  for (int s = 0; s < static_cast<int>(k_.stages.size()); s++) {
    if (inner(s)) {
      inner_stage_rows(s);
      continue;
    }
    const auto [first, last] = range(s);
    for (int v = first; v < last; v++) emit_scalar(v);
  }
}

/// Columns mode: all stages of a tile of outer points.
void LoopNestEmitter::tile(llvm::Value* begin, llvm::Value* end) {
  for (int s = 0; s < static_cast<int>(k_.stages.size()); s++) {
    if (inner(s)) {
      inner_stage_columns(s, begin, end);
    } else {
      vector_loop(begin, end, nullptr, 1,
                  [&](int, llvm::Value* i, const Lanes& active) { body(s, 0, i, active); });
    }
  }
}

/// Loops over the inner axes [axis, last); `flat`: the inner points so far, in units of the axis.
void LoopNestEmitter::inner_loops(int stage, int axis, int last, llvm::Value* flat,
                                  const std::function<void(llvm::Value*)>& run) {
  if (axis == last) return run(flat);
  inner_axis(stage, axis, i64(0), number(axis), [&](llvm::Value* x) {
    inner_loops(stage, axis + 1, last, b_.CreateAdd(b_.CreateMul(flat, number(axis)), x), run);
  });
}

/// The loop over coordinates [begin, end) of an inner axis.
void LoopNestEmitter::inner_axis(int stage, int axis, llvm::Value* begin, llvm::Value* end,
                                 const std::function<void(llvm::Value*)>& run) {
  emit_loop(b_, begin, end, i64(1), [&](llvm::Value* x) {
    auto before = place(axis, stage, x);
    forget_scalars(axis, stage);
    scalars(axis, stage);
    run(x);
    restore(std::move(before));
  });
}

void LoopNestEmitter::inner_stage_rows(int stage) {
  const auto [first, last] = range(stage);
  bool reduces = false, in_order = false;
  for (int v = first; v < last; v++) {
    const Instr& in = k_.code[static_cast<std::size_t>(v)];
    reduces = reduces || in.code == Code::reduce;
    in_order = in_order || is_ordered(in);
    // Depends on reduced values, and needs no inner loop.
    if (values_[static_cast<std::size_t>(v)].pending && !in_body(v) && level(v) < spec_.outer) emit_scalar(v);
  }
  int repeats = reduces ? lanes / width_ : 1;
  // Reductions in free order use as many vectors as hide the latency of one step.
  constexpr int most_chains = 8, few_instructions = 8;
  if (reduces && !in_order && last - first <= few_instructions) repeats = std::max(repeats, most_chains);
  open_lanes_rows(stage, repeats);
  const auto piece = [&](llvm::Value* before, llvm::Value* begin, llvm::Value* end) {
    // A piece that does not begin at lane 0 is processed as if it began earlier, masked.
    llvm::Value* const skipped =
        in_order && spec_.inner > 1 ? b_.CreateAnd(b_.CreateAdd(before, begin), i64(lanes - 1)) : nullptr;
    vector_loop(begin, end, skipped, repeats,
                [&](int repeat, llvm::Value* i, const Lanes& active) { body(stage, repeat, i, active); });
  };
  inner_rows(stage, piece, [&] { close_block_rows(stage); });
  finish_rows(stage);
}

void LoopNestEmitter::inner_stage_columns(int stage, llvm::Value* begin, llvm::Value* end) {
  open_lanes_columns(stage, begin, end);
  const auto piece = [&](llvm::Value* before, llvm::Value* from, llvm::Value* to) {
    inner_axis(stage, spec_.rank() - 1, from, to, [&](llvm::Value* x) {
      flat_ = b_.CreateAdd(before, x);
      vector_loop(begin, end, nullptr, 1,
                  [&](int, llvm::Value* i, const Lanes& active) { body(stage, 0, i, active); });
    });
  };
  inner_rows(stage, piece, [&] { close_block_columns(stage, begin, end); });
  finish_columns(stage, begin, end);
}

/// The rows along the last inner axis, each with the number of inner points before it: whole, or, if sums are in blocks, in pieces that lie
/// within one block, with `close` after each block.
void LoopNestEmitter::inner_rows(int stage, const Piece& piece, const std::function<void()>& close) {
  const int axis = spec_.rank() - 1;
  llvm::Value* const extent = number(axis);
  const auto whole = [&](llvm::Value* row_number) {
    piece(b_.CreateMul(row_number, extent), i64(0), extent);
  };
  if (!sums_blocks(stage)) return inner_loops(stage, spec_.outer, axis, i64(0), whole);
  if (spec_.inner == 1) return cut_row(i64(0), piece, close);
  inner_loops(stage, spec_.outer, axis - 1, i64(0), [&](llvm::Value* flat) {
    // Alternates between rows that end within a block of the reduction, without checks, and the one row that crosses its end.
    llvm::Value *const count = number(axis - 1), *const first = b_.CreateMul(flat, count);
    const auto before = [&](llvm::Value* x) { return b_.CreateMul(b_.CreateAdd(first, x), extent); };
    emit_turns(b_, i64(0), count, [&](llvm::Value* x) -> llvm::Value* {
      llvm::Value* const left = b_.CreateSub(i64(k_.order.block - 1), begun(before(x)));
      llvm::Value* const cut = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin,
                                                        b_.CreateAdd(x, b_.CreateUDiv(left, extent)), count);
      inner_axis(stage, axis - 1, x, cut, [&](llvm::Value* y) { whole(b_.CreateAdd(first, y)); });
      llvm::Value* const next = b_.CreateAdd(cut, i64(1));
      inner_axis(stage, axis - 1, cut, b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, next, count),
                 [&](llvm::Value* y) { cut_row(before(y), piece, close); });
      return next;
    });
  });
  close();  // the last block; no effect if it was complete
}

/// How many of these points are in the last, unfinished block.
llvm::Value* LoopNestEmitter::begun(llvm::Value* points) {
  return b_.CreateAnd(points, i64(k_.order.block - 1));
}

/// A row after `before` inner points, in pieces. If it is the only row, it closes its last block.
void LoopNestEmitter::cut_row(llvm::Value* before, const Piece& piece, const std::function<void()>& close) {
  const std::int64_t block = k_.order.block;
  llvm::Value* const after = b_.CreateAdd(before, number(spec_.rank() - 1));
  emit_loop(b_, b_.CreateSub(before, begun(before)), after, i64(block), [&](llvm::Value* at) {
    llvm::Value* const begin = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, at, before);
    llvm::Value* const end =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(at, i64(block)), after);
    piece(before, b_.CreateSub(begin, before), b_.CreateSub(end, before));
    if (spec_.inner == 1) close();
    else emit_if(b_, b_.CreateICmpEQ(begun(end), i64(0)), close);
  });
}

/// `repeats` vectors of which only elements [begin, end) exist.
void LoopNestEmitter::masked_block(llvm::Value* at, llvm::Value* begin, llvm::Value* end, int repeats,
                                   const std::function<void(int, llvm::Value*, const Lanes&)>& run) {
  for (int r = 0; r < repeats; r++) {
    llvm::Value* const i = b_.CreateAdd(at, i64(r * width_));
    Lanes active;
    active.lo =
        begin ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b_.CreateSub(begin, i), i64(0)) : i64(0);
    active.hi = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(end, i), i64(width_));
    if (repeats == 1) run(r, i, active);
    else emit_if(b_, b_.CreateICmpSLT(active.lo, active.hi), [&] { run(r, i, active); });
  }
}

/// Blocks of whole vectors, and masked ones at the ends. `skipped`: lanes of the first block before `begin`.
void LoopNestEmitter::vector_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* skipped, int repeats,
                                  const std::function<void(int, llvm::Value*, const Lanes&)>& run) {
  const std::int64_t block = static_cast<std::int64_t>(repeats) * width_;
  const auto whole = [&](llvm::Value* from) {
    llvm::Value* const last = b_.CreateAdd(from, b_.CreateAnd(b_.CreateSub(end, from), i64(-block)));
    emit_loop(b_, from, last, i64(block), [&](llvm::Value* i) {
      for (int r = 0; r < repeats; r++) run(r, b_.CreateAdd(i, i64(r * width_)), {});
    });
    return last;
  };
  if (!skipped) {
    llvm::Value* const last = whole(begin);
    emit_if(b_, b_.CreateICmpSLT(last, end), [&] { masked_block(last, nullptr, end, repeats, run); });
    return;
  }
  // The body runs at most twice: for all whole blocks, then for the rest, masked.
  llvm::AllocaInst* const at = memory_.stack(b_.getInt64Ty(), 1);
  emit_turns(b_, b_.CreateSub(begin, skipped), end, [&](llvm::Value* now) {
    b_.CreateStore(now, at);
    emit_if(b_, b_.CreateICmpSGE(now, begin), [&] { b_.CreateStore(whole(now), at); });
    llvm::Value* const rest = b_.CreateLoad(b_.getInt64Ty(), at);
    emit_if(b_, b_.CreateICmpSLT(rest, end), [&] {
      masked_block(rest, begin, end, repeats, run);
      b_.CreateStore(b_.CreateAdd(rest, i64(block)), at);
    });
    return b_.CreateLoad(b_.getInt64Ty(), at);
  });
}

}  // namespace shardarray::codegen
