#include "cpu/codegen/llvm/row_access.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

namespace shardarray::codegen {

namespace {
llvm::Align align_of(DType t) { return llvm::Align(itemsize(t)); }
llvm::BasicBlock* block_after(llvm::IRBuilder<>& b, const char* name) {
  return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}
}  // namespace

void emit_loop(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end, llvm::Value* step,
               const std::function<void(llvm::Value*)>& body) {
  const auto *const first = llvm::dyn_cast<llvm::ConstantInt>(begin),
                    *const last = llvm::dyn_cast<llvm::ConstantInt>(end),
                    *const by = llvm::dyn_cast<llvm::ConstantInt>(step);
  if (first && last && by && first->getSExtValue() + by->getSExtValue() >= last->getSExtValue()) {
    if (first->getSExtValue() < last->getSExtValue()) body(begin);  // a single iteration
    return;
  }
  emit_turns(b, begin, end, [&](llvm::Value* i) {
    body(i);
    return b.CreateAdd(i, step, "", true, true);
  });
}

void emit_turns(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end,
                const std::function<llvm::Value*(llvm::Value*)>& body) {
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const loop = block_after(b, "loop");
  llvm::BasicBlock* const exit = block_after(b, "exit");
  b.CreateCondBr(b.CreateICmpSLT(begin, end), loop, exit);
  b.SetInsertPoint(loop);
  llvm::PHINode* const i = b.CreatePHI(begin->getType(), 2);
  i->addIncoming(begin, before);
  llvm::Value* const next = body(i);
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, end), loop, exit);
  b.SetInsertPoint(exit);
}

void emit_either(llvm::IRBuilder<>& b, llvm::Value* condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise) {
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return known->isOne() ? then() : otherwise();
  llvm::BasicBlock *const first = block_after(b, "then"), *const second = block_after(b, "else"),
                          *const after = block_after(b, "after");
  b.CreateCondBr(condition, first, second);
  b.SetInsertPoint(first);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(second);
  otherwise();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void emit_if(llvm::IRBuilder<>& b, llvm::Value* condition, const std::function<void()>& body) {
  emit_either(b, condition, body, [] {});
}

llvm::Function* add_function(llvm::Module& module, const std::string& name) {
  auto* const p = llvm::PointerType::get(module.getContext(), 0);
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), {p, p, p}, false);
  llvm::Function* const f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  f->setDoesNotThrow();
  return f;
}

void emit_copy(llvm::IRBuilder<>& b, llvm::Value* to, llvm::Value* from, std::int64_t bytes) {
  constexpr std::int64_t block = 64;
  const auto i64 = [&](std::int64_t n) { return b.getInt64(static_cast<std::uint64_t>(n)); };
  const auto piece = [&](llvm::Value* at, std::int64_t n) {
    const auto place = [&](llvm::Value* base) { return b.CreateGEP(b.getInt8Ty(), base, at); };
    b.CreateMemCpyInline(place(to), llvm::Align(1), place(from), llvm::Align(1), i64(n));
  };
  const std::int64_t whole = bytes / block * block;
  emit_loop(b, i64(0), i64(whole), i64(block), [&](llvm::Value* at) { piece(at, block); });
  if (bytes > whole) piece(i64(whole), bytes - whole);
}

llvm::AllocaInst* MemoryAccess::stack(llvm::Type* t, std::uint64_t n) {
  llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  llvm::AllocaInst* const a = at.CreateAlloca(t, at.getInt64(n));
  a->setAlignment(llvm::Align(64));
  return a;
}

llvm::Value* MemoryAccess::buffer(DType t) {
  llvm::Value*& known = buffers_[static_cast<unsigned>(itemsize(t))];
  if (!known) known = stack(vector(t), 1);
  return known;
}

llvm::Value* MemoryAccess::zeros() {
  if (zeros_) return zeros_;
  llvm::Module& m = *b_.GetInsertBlock()->getModule();
  auto* const type = llvm::ArrayType::get(b_.getInt64Ty(), 64);  // enough for the widest vector
  zeros_ = m.getGlobalVariable("zeros", true);
  if (!zeros_) {
    auto* const g = new llvm::GlobalVariable(m, type, true, llvm::GlobalValue::InternalLinkage,
                                             llvm::Constant::getNullValue(type), "zeros");
    g->setAlignment(llvm::Align(64));
    zeros_ = g;
  }
  return zeros_;
}

llvm::Value* MemoryAccess::from_memory(DType t, llvm::Value* v) {
  return t == bool_ ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}
llvm::Value* MemoryAccess::to_memory(DType t, llvm::Value* v) {
  return t == bool_ ? b_.CreateZExt(v, v->getType()->getWithNewType(b_.getInt8Ty())) : v;
}

llvm::Value* MemoryAccess::load_one(DType t, llvm::Value* address) {
  return from_memory(t, b_.CreateAlignedLoad(memory_type(b_.getContext(), t), address, align_of(t)));
}
void MemoryAccess::store_one(DType t, llvm::Value* address, llvm::Value* value) {
  b_.CreateAlignedStore(to_memory(t, value), address, align_of(t));
}
llvm::Value* MemoryAccess::load_vector(DType t, llvm::Value* address) {
  return from_memory(t, b_.CreateAlignedLoad(vector(t), address, align_of(t)));
}
void MemoryAccess::store_vector(DType t, llvm::Value* address, llvm::Value* value) {
  b_.CreateAlignedStore(to_memory(t, value), address, align_of(t));
}

llvm::Constant* MemoryAccess::lane_numbers(llvm::IntegerType* t) {
  llvm::SmallVector<llvm::Constant*, 32> numbers;
  for (int l = 0; l < width_; l++)
    numbers.push_back(llvm::ConstantInt::get(t, static_cast<std::uint64_t>(l)));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* MemoryAccess::mask(const Lanes& lanes) {
  llvm::IntegerType* const i32 = b_.getInt32Ty();
  llvm::Value* const lane = lane_numbers(i32);
  const auto splat_32 = [&](llvm::Value* x) { return splat(b_.CreateTrunc(x, i32)); };
  llvm::Value* const below = b_.CreateICmpSLT(lane, splat_32(lanes.hi));
  auto* const lo = llvm::dyn_cast<llvm::ConstantInt>(lanes.lo);
  if (lo && lo->isZero()) return below;
  return b_.CreateAnd(below, b_.CreateICmpSGE(lane, splat_32(lanes.lo)));
}

llvm::Value* MemoryAccess::reversed(llvm::Value* v) {
  llvm::SmallVector<int, 32> order;
  for (int l = width_ - 1; l >= 0; l--) order.push_back(l);
  return b_.CreateShuffleVector(v, order);
}
llvm::Value* MemoryAccess::last_lane(const Row& row) {
  return offset(row.first,
                b_.CreateMul(row.stride_bytes, b_.getInt64(static_cast<std::uint64_t>(width_ - 1))));
}

llvm::Value* MemoryAccess::load(const Row& row, const Lanes& lanes) {
  llvm::Type* const type = vector(row.type);
  if (row.stride == Stride::next) {
    if (lanes.all()) return load_vector(row.type, row.first);
    if (has_mask(row.type)) {
      return b_.CreateMaskedLoad(type, row.first, align_of(row.type), mask(lanes),
                                 llvm::Constant::getNullValue(type));
    }
  } else if (row.stride == Stride::previous && lanes.all()) {
    return reversed(load_vector(row.type, last_lane(row)));
  } else if (row.stride == Stride::second && (lanes.all() || has_mask(row.type))) {
    return from_memory(row.type,
                       load_second(llvm::cast<llvm::FixedVectorType>(type), row.type, row.first, lanes));
  } else if (lanes.all()) {
    llvm::Value* v = llvm::PoisonValue::get(type);
    for (int l = 0; l < width_; l++) {
      llvm::Value* const p =
          offset(row.first, b_.CreateMul(row.stride_bytes, b_.getInt64(static_cast<std::uint64_t>(l))));
      v = b_.CreateInsertElement(v, b_.CreateAlignedLoad(type->getScalarType(), p, align_of(row.type)), l);
    }
    return from_memory(row.type, v);
  }
  llvm::Value* const to = buffer(row.type);
  b_.CreateStore(llvm::Constant::getNullValue(type), to);
  emit_loop(b_, lanes.lo, lanes.hi, b_.getInt64(1), [&](llvm::Value* l) {
    llvm::Value* const x = b_.CreateAlignedLoad(
        type->getScalarType(), offset(row.first, b_.CreateMul(l, row.stride_bytes)), align_of(row.type));
    b_.CreateStore(x, b_.CreateGEP(type->getScalarType(), to, l));
  });
  return load_vector(row.type, to);
}

void MemoryAccess::store(const Row& row, llvm::Value* value, const Lanes& lanes) {
  llvm::Type* const type = vector(row.type);
  if (row.stride == Stride::none) {  // an axis of one point
    return store_one(row.type, row.first, b_.CreateExtractElement(value, std::uint64_t{0}));
  }
  if (row.stride == Stride::next && lanes.all()) return store_vector(row.type, row.first, value);
  if (row.stride == Stride::previous && lanes.all())
    return store_vector(row.type, last_lane(row), reversed(value));
  if (row.stride == Stride::next && has_mask(row.type)) {
    b_.CreateMaskedStore(value, row.first, align_of(row.type), mask(lanes));
    return;
  }
  if (lanes.all()) {
    value = to_memory(row.type, value);
    for (int l = 0; l < width_; l++) {
      llvm::Value* const p =
          offset(row.first, b_.CreateMul(row.stride_bytes, b_.getInt64(static_cast<std::uint64_t>(l))));
      b_.CreateAlignedStore(b_.CreateExtractElement(value, l), p, align_of(row.type));
    }
    return;
  }
  llvm::Value* const from = buffer(row.type);
  store_vector(row.type, from, value);
  emit_loop(b_, lanes.lo, lanes.hi, b_.getInt64(1), [&](llvm::Value* l) {
    llvm::Value* const x = b_.CreateLoad(type->getScalarType(), b_.CreateGEP(type->getScalarType(), from, l));
    b_.CreateAlignedStore(x, offset(row.first, b_.CreateMul(l, row.stride_bytes)), align_of(row.type));
  });
}

/// The lanes 2 lo .. 2 hi - past of elements, counted from element `first`.
Lanes MemoryAccess::second_lanes(const Lanes& lanes, int first, int past) {
  if (lanes.all()) return {};
  const auto twice = [&](llvm::Value* x, int less) {
    return b_.CreateSub(b_.CreateShl(x, 1), b_.getInt64(static_cast<std::uint64_t>(less)));
  };
  return {twice(lanes.lo, first), twice(lanes.hi, first + past)};
}

/// As two vectors that share an element: the one after the last may not exist.
llvm::Value* MemoryAccess::load_second(llvm::FixedVectorType* type, DType t, llvm::Value* p,
                                       const Lanes& lanes) {
  const int width = static_cast<int>(type->getNumElements());
  const auto load_from = [&](int element) -> llvm::Value* {
    llvm::Value* const at =
        b_.CreateConstGEP1_64(type->getElementType(), p, static_cast<std::uint64_t>(element));
    if (lanes.all()) return b_.CreateAlignedLoad(type, at, align_of(t));
    return b_.CreateMaskedLoad(type, at, align_of(t), mask(second_lanes(lanes, element, 1)),
                               llvm::Constant::getNullValue(type));
  };
  llvm::SmallVector<int, 32> order;
  for (int l = 0; l < width; l++) order.push_back(2 * l < width ? 2 * l : 2 * l + 1);
  return b_.CreateShuffleVector(load_from(0), load_from(width - 1), order);
}

bool MemoryAccess::store_pairs(const Row& row, llvm::Value* value, llvm::Value* other, const Lanes& lanes) {
  if (!lanes.all() && !has_mask(row.type)) return false;
  value = to_memory(row.type, value), other = to_memory(row.type, other);
  for (const int first : {0, width_}) {
    llvm::SmallVector<int, 32> order;
    for (int l = first / 2; l < (first + width_) / 2; l++) order.append({l, l + width_});
    llvm::Value* const half = b_.CreateShuffleVector(value, other, order);
    llvm::Value* const at = b_.CreateConstGEP1_64(memory_type(b_.getContext(), row.type), row.first,
                                                  static_cast<std::uint64_t>(first));
    if (lanes.all()) b_.CreateAlignedStore(half, at, align_of(row.type));
    else b_.CreateMaskedStore(half, at, align_of(row.type), mask(second_lanes(lanes, first, 0)));
  }
  return true;
}

void MemoryAccess::stream(const Row& row, llvm::Value* value) {
  constexpr std::uint64_t line = 64;
  const auto whole = [&] { store_vector(row.type, row.first, value); };
  if (static_cast<std::uint64_t>(width_) * itemsize(row.type) < line)
    return whole();  // partial lines are slow
  llvm::Value* const past_line =
      b_.CreateAnd(b_.CreatePtrToInt(row.first, b_.getInt64Ty()), b_.getInt64(line - 1));
  const auto stream_lines = [&] {
    llvm::StoreInst* const s =
        b_.CreateAlignedStore(to_memory(row.type, value), row.first, llvm::Align(line));
    s->setMetadata(llvm::LLVMContext::MD_nontemporal,
                   llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  };
  emit_either(b_, b_.CreateICmpEQ(past_line, b_.getInt64(0)), stream_lines, whole);
}
void MemoryAccess::sfence() { b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }

llvm::Value* MemoryAccess::indirect_address(llvm::Value* address, llvm::Value* zeros_at, const Indirect& at) {
  llvm::Value* const row = b_.CreateSub(at.row, at.lo);
  // The difference may wrap, so the row itself is compared too.
  llvm::Value* const here = b_.CreateAnd(b_.CreateICmpSGE(at.row, at.lo), b_.CreateICmpULT(row, at.count));
  return b_.CreateSelect(here, offset(address, b_.CreateMul(row, at.row_stride)), zeros_at);
}

llvm::Value* MemoryAccess::gather(const Row& row, const Indirect& at, const Lanes& lanes) {
  llvm::Type *const type = vector(row.type), *const i64 = b_.getInt64Ty();
  llvm::Value* const to = buffer(row.type);
  llvm::Value* const rows = itemsize(row.type) < 8 ? buffer(int64) : stack(vector(int64), 1);
  const auto gather_each = [&](llvm::Value* lo, llvm::Value* hi) {
    b_.CreateStore(at.row, rows);
    b_.CreateStore(llvm::Constant::getNullValue(type), to);
    emit_loop(b_, lo, hi, b_.getInt64(1), [&](llvm::Value* l) {
      Indirect one = at;
      one.row = b_.CreateLoad(i64, b_.CreateGEP(i64, rows, l));
      llvm::Value* const lane = offset(row.first, b_.CreateMul(l, row.stride_bytes));
      llvm::Value* const x = b_.CreateAlignedLoad(type->getScalarType(), indirect_address(lane, zeros(), one),
                                                  align_of(row.type));
      b_.CreateStore(x, b_.CreateGEP(type->getScalarType(), to, l));
    });
  };
  if (!lanes.all()) {
    gather_each(lanes.lo, lanes.hi);
    return load_vector(row.type, to);
  }
  llvm::Value* const exist =
      b_.CreateAnd(b_.CreateICmpSGE(at.row, splat(at.lo)),
                   b_.CreateICmpULT(b_.CreateSub(at.row, splat(at.lo)), splat(at.count)));
  emit_either(
      b_, b_.CreateAndReduce(exist), [&] { b_.CreateStore(gather_known(row, at, rows), to); },
      [&] { gather_each(b_.getInt64(0), b_.getInt64(static_cast<std::uint64_t>(width_))); });
  return load_vector(row.type, to);
}

/// A vector of rows that exist, as it is in memory. Neighbours come as one, as windows of a sequence do.
llvm::Value* MemoryAccess::gather_known(const Row& row, const Indirect& at, llvm::Value* rows) {
  llvm::Type *const type = vector(row.type), *const element = type->getScalarType(),
                    *const i64 = b_.getInt64Ty();
  llvm::Value* const row_0 = offset(row.first, b_.CreateNeg(b_.CreateMul(at.lo, at.row_stride)));
  const auto address = [&](llvm::Value* r) {
    return at.adjacent ? b_.CreateGEP(element, row_0, r) : offset(row_0, b_.CreateMul(r, at.row_stride));
  };
  llvm::Value* result = nullptr;
  const auto gather_lanes = [&] {
    // Elements that are stored one by one cannot be forwarded to a load of the vector: it is put together in registers.
    b_.CreateStore(at.row, rows);
    llvm::Value* v = llvm::PoisonValue::get(type);
    for (int l = 0; l < width_; l++) {
      llvm::Value* const lane = b_.getInt64(static_cast<std::uint64_t>(l));
      llvm::Value* const p = address(b_.CreateLoad(i64, b_.CreateGEP(i64, rows, lane)));
      v = b_.CreateInsertElement(
          v,
          b_.CreateAlignedLoad(element, offset(p, b_.CreateMul(lane, row.stride_bytes)), align_of(row.type)),
          l);
    }
    return v;
  };
  if (!at.adjacent || row.stride != Stride::none) return gather_lanes();
  llvm::Value* const first = b_.CreateExtractElement(at.row, std::uint64_t{0});
  llvm::Value* const follow =
      b_.CreateAndReduce(b_.CreateICmpEQ(at.row, b_.CreateAdd(splat(first), lane_numbers(b_.getInt64Ty()))));
  llvm::BasicBlock *together = nullptr, *apart = nullptr;
  llvm::Value* one = nullptr;
  emit_either(
      b_, follow,
      [&] {
        one = b_.CreateAlignedLoad(type, address(first), align_of(row.type));
        together = b_.GetInsertBlock();
      },
      [&] {
        result = gather_lanes();
        apart = b_.GetInsertBlock();
      });
  llvm::PHINode* const v = b_.CreatePHI(type, 2);
  v->addIncoming(one, together);
  v->addIncoming(result, apart);
  return v;
}

}  // namespace shardarray::codegen
