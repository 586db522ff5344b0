#include "cpu/codegen/llvm/gemm_emitter.h"

#include <algorithm>
#include <bit>

namespace shardarray::codegen {

namespace {

constexpr int most_sums = 12;          // of 16 vector registers
constexpr std::int64_t unrolled = 96;  // most multiply-adds per unrolled block

/// Vectors need contiguous columns of B. If A's columns are contiguous instead, or there are too few columns, the transposed product is
/// computed.
bool better_transposed(const GemmSpec& g) {
  return (g.b_col != 1 && g.a_row == 1 && g.m > 1) || (g.n < 4 && g.m > g.n);
}
std::int64_t power_of_two(std::int64_t x) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(x)));
}

}  // namespace

GemmEmitter::GemmEmitter(llvm::Module& module, const GemmSpec& spec, const Machine& machine)
    : module_(module),
      transposed_(better_transposed(spec)),
      g_(transposed_ ? spec.transposed() : spec),
      b_(module.getContext()),
      width_(std::max(2, machine.vector_bytes / static_cast<int>(itemsize(spec.type)))),
      memory_(b_, width_, machine.masked),
      element_(element_type(module.getContext(), spec.type)),
      right_row_(g_.b_row) {}

llvm::Function* GemmEmitter::emit(const std::string& name) {
  llvm::LLVMContext& context = module_.getContext();
  auto* const p = llvm::PointerType::get(context, 0);
  llvm::Function* const f = add_function(module_, name);
  // Allocas go to the start of the first block; the code follows in another one.
  llvm::BasicBlock* const entry = llvm::BasicBlock::Create(context, "entry", f);
  llvm::BasicBlock* const start = llvm::BasicBlock::Create(context, "start", f);
  b_.SetInsertPoint(start);
  const auto argument = [&](int k) {
    return b_.CreateLoad(p, b_.CreateConstGEP1_64(p, f->getArg(0), static_cast<std::uint64_t>(k)));
  };
  llvm::Value *const left = argument(transposed_ ? 1 : 0), *const right = argument(transposed_ ? 0 : 1);
  llvm::Value* const out = argument(2);
  std::vector<llvm::Value*> followers;
  for (std::size_t k = 0, next = 3; g_.epilogue && k < g_.epilogue->args.size(); k++)
    followers.push_back(k == g_.epilogue->product ? out : argument(static_cast<int>(next++)));
  const auto bound = [&](std::uint64_t k) {
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), f->getArg(2), k));
  };
  const auto entry_of_batch = [&](llvm::Value* u) {
    left_ = at(left, times(u, g_.a_batch));
    right_ = at(right, times(u, g_.b_batch));
    out_ = at(out, times(u, g_.c_batch));
    followers_ = followers;
    for (std::size_t k = 0; k < followers.size(); k++)
      followers_[k] = b_.CreateGEP(b_.getInt8Ty(), followers[k], times(u, g_.epilogue->args[k].batch));
    product();
  };
  if (g_.batch == 1) entry_of_batch(i64(0));
  else emit_loop(b_, bound(0), bound(1), i64(1), entry_of_batch);
  b_.CreateRetVoid();
  llvm::IRBuilder<>(entry).CreateBr(start);
  return f;
}

void GemmEmitter::product() {
  if (g_.b_col != 1 && g_.n > 1) turn();
  std::vector<Columns> all;
  for (std::int64_t j = 0; j < g_.n;) {
    const std::int64_t width = std::min<std::int64_t>(width_, power_of_two(g_.n - j));
    all.push_back({j, static_cast<int>(width)});
    j += width;
  }
  // Pairs of whole vectors; the remaining columns go together.
  const std::int64_t pair = 2 * width_, pairs = g_.n / pair;
  if (pairs > 2) {
    const std::vector<Columns> columns = {{0, width_}, {width_, width_}};
    emit_loop(b_, i64(0), i64(pairs * pair), i64(pair), [&](llvm::Value* j) { all_rows(j, columns); });
    all.erase(all.begin(), all.begin() + 2 * pairs);
  }
  while (!all.empty()) {
    const bool rest = all.size() <= 3;
    const std::ptrdiff_t count = rest ? static_cast<std::ptrdiff_t>(all.size()) : 2;
    const std::vector<Columns> columns(all.begin(), all.begin() + count);
    all_rows(i64(0), columns);
    all.erase(all.begin(), all.begin() + count);
  }
}

/// Copies B to the stack, with contiguous columns.
void GemmEmitter::turn() {
  llvm::Value* const from = right_;
  llvm::Value* const to = memory_.stack(element_, static_cast<std::uint64_t>(g_.k * g_.n));
  const std::int64_t size =
      g_.b_row == 1 ? std::min<std::int64_t>(width_, power_of_two(std::min(g_.k, g_.n))) : 1;
  const std::int64_t k = size > 1 ? g_.k / size * size : 0, n = size > 1 ? g_.n / size * size : 0;
  const auto loop = [&](std::int64_t begin, std::int64_t end, std::int64_t step,
                        const std::function<void(llvm::Value*)>& body) {
    if (begin + step == end) body(i64(begin));
    else if (begin < end) emit_loop(b_, i64(begin), i64(end), i64(step), body);
  };
  loop(0, n, size, [&](llvm::Value* j) {
    loop(0, k, size, [&](llvm::Value* p) { turn_square(from, to, p, j, static_cast<int>(size)); });
  });
  const auto one_by_one = [&](std::int64_t p0, std::int64_t j0, std::int64_t j1) {
    if (p0 == g_.k || j0 == j1) return;
    loop(j0, j1, 1, [&](llvm::Value* j) {
      loop(p0, g_.k, 1, [&](llvm::Value* p) {
        llvm::Value* const source = at(from, b_.CreateAdd(times(p, g_.b_row), times(j, g_.b_col)));
        store(at(to, b_.CreateAdd(times(p, g_.n), j)), load(source, 1));
      });
    });
  };
  one_by_one(k, 0, n);
  one_by_one(0, n, g_.n);
  right_ = to;
  right_row_ = g_.n;
}

/// Interleaves columns i and i + size / 2, log2(size) times.
void GemmEmitter::turn_square(llvm::Value* from, llvm::Value* to, llvm::Value* p, llvm::Value* j, int size) {
  llvm::SmallVector<int, 32> low, high;
  for (int l = 0; l < size / 2; l++) {
    low.append({l, l + size});
    high.append({l + size / 2, l + size + size / 2});
  }
  std::vector<llvm::Value*> x, y(static_cast<std::size_t>(size));
  for (int l = 0; l < size; l++)
    x.push_back(load(at(from, b_.CreateAdd(p, times(b_.CreateAdd(j, i64(l)), g_.b_col))), size));
  for (int turn = 1; turn < size; turn *= 2) {
    for (std::size_t q = 0; q < x.size() / 2; q++) {
      y[2 * q] = b_.CreateShuffleVector(x[q], x[q + x.size() / 2], low);
      y[2 * q + 1] = b_.CreateShuffleVector(x[q], x[q + x.size() / 2], high);
    }
    std::swap(x, y);
  }
  for (int r = 0; r < size; r++)
    store(at(to, b_.CreateAdd(times(b_.CreateAdd(p, i64(r)), g_.n), j)), x[static_cast<std::size_t>(r)]);
}

void GemmEmitter::all_rows(llvm::Value* j, const std::vector<Columns>& columns) {
  const std::int64_t rows = std::min<std::int64_t>(6, most_sums / static_cast<std::int64_t>(columns.size()));
  const std::int64_t whole = g_.m / rows * rows;
  if (whole > 2 * rows) {
    emit_loop(b_, i64(0), i64(whole), i64(rows), [&](llvm::Value* i) { block(i, rows, j, columns); });
  } else {
    for (std::int64_t i = 0; i < whole; i += rows) block(i64(i), rows, j, columns);
  }
  if (whole < g_.m) block(i64(whole), g_.m - whole, j, columns);
}

void GemmEmitter::block(llvm::Value* i, std::int64_t rows, llvm::Value* j,
                        const std::vector<Columns>& columns) {
  std::vector<llvm::Value*> sums;
  for (std::int64_t r = 0; r < rows; r++) {
    for (const Columns& c : columns) sums.push_back(llvm::Constant::getNullValue(vector(c.width)));
  }
  std::vector<llvm::Value*> lines;  // rows of A
  for (std::int64_t r = 0; r < rows; r++)
    lines.push_back(at(left_, times(b_.CreateAdd(i, i64(r)), g_.a_row)));
  llvm::Value* const top = at(right_, j);
  const auto step = [&](llvm::Value* p) {
    llvm::Value* const line = at(top, times(p, right_row_));
    std::vector<llvm::Value*> b;
    b.reserve(columns.size());
    for (const Columns& c : columns) b.push_back(load(at(line, i64(c.offset)), c.width));
    std::size_t sum = 0;
    for (llvm::Value* a_line : lines) {
      llvm::Value* const a = load(at(a_line, times(p, g_.a_col)), 1);
      for (std::size_t c = 0; c < columns.size(); c++, sum++) {
        llvm::Value* const x =
            columns[c].width == 1 ? a : b_.CreateVectorSplat(static_cast<unsigned>(columns[c].width), a);
        sums[sum] = b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, b[c], sums[sum]});
      }
    }
  };
  if (g_.k * static_cast<std::int64_t>(sums.size()) <= unrolled) {
    for (std::int64_t p = 0; p < g_.k; p++) step(i64(p));
  } else {
    sums = carried_loop(g_.k, sums, [&](llvm::Value* p, std::vector<llvm::Value*> now) {
      sums = std::move(now);
      step(p);
      return sums;
    });
  }
  std::size_t sum = 0;
  for (std::int64_t r = 0; r < rows; r++)
    for (const Columns& c : columns)
      finish(b_.CreateAdd(i, i64(r)), b_.CreateAdd(j, i64(c.offset)), sums[sum++], c.width);
}

void GemmEmitter::finish(llvm::Value* i, llvm::Value* j, llvm::Value* sum, int width) {
  if (!g_.epilogue || g_.epilogue->keep)
    store_columns(at(at(out_, times(i, g_.c_row)), times(j, g_.c_col)), sum, width);
  if (g_.epilogue) follow(i, j, sum, width);
}

/// A loop over p = 0 ... n - 1 with loop-carried values.
std::vector<llvm::Value*> GemmEmitter::carried_loop(
    std::int64_t n, std::vector<llvm::Value*> first,
    const std::function<std::vector<llvm::Value*>(llvm::Value*, std::vector<llvm::Value*>)>& body) {
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  llvm::Function* const f = before->getParent();
  llvm::BasicBlock* const head = llvm::BasicBlock::Create(context, "steps", f);
  llvm::BasicBlock* const exit = llvm::BasicBlock::Create(context, "summed", f);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* const p = b_.CreatePHI(b_.getInt64Ty(), 2);
  p->addIncoming(i64(0), before);
  std::vector<llvm::PHINode*> carried;
  for (llvm::Value* x : first) {
    carried.push_back(b_.CreatePHI(x->getType(), 2));
    carried.back()->addIncoming(x, before);
  }
  std::vector<llvm::Value*> after = body(p, {carried.begin(), carried.end()});
  llvm::Value* const next = b_.CreateAdd(p, i64(1));
  p->addIncoming(next, head);
  for (std::size_t k = 0; k < after.size(); k++) carried[k]->addIncoming(after[k], head);
  b_.CreateCondBr(b_.CreateICmpSLT(next, i64(n)), head, exit);
  b_.SetInsertPoint(exit);
  return after;
}

llvm::Value* GemmEmitter::load(llvm::Value* p, std::int64_t width) {
  return b_.CreateAlignedLoad(vector(width), p, llvm::Align(itemsize(g_.type)));
}
void GemmEmitter::store(llvm::Value* p, llvm::Value* x) {
  b_.CreateAlignedStore(x, p, llvm::Align(itemsize(g_.type)));
}
/// Stores to C, whose columns may be strided.
void GemmEmitter::store_columns(llvm::Value* p, llvm::Value* x, int width) {
  if (g_.c_col == 1 || width == 1) return store(p, x);
  for (int l = 0; l < width; l++)
    store(at(p, i64(l * g_.c_col)), b_.CreateExtractElement(x, static_cast<std::uint64_t>(l)));
}

}  // namespace shardarray::codegen
