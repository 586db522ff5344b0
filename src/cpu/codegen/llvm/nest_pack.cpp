// LoopNestEmitter: short last axes, as of [n, 3]. Vectors span them and the axis before, a block of whole rows at a time, so that their
// lanes are full. Accesses that are not contiguous across them (a row broadcast to all, a number per row, a slice) go through a copy on the
// stack, element by element.
#include <functional>
#include <numeric>

#include "cpu/codegen/llvm/nest_emitter.h"

namespace shardarray::codegen {

void LoopNestEmitter::packed_loop() {
  constexpr std::int64_t block_points = 512;
  const int axis = vector_axis();
  const std::int64_t row =
      std::accumulate(spec_.packed.begin(), spec_.packed.end(), std::int64_t{1}, std::multiplies());
  // Whole vectors in every block but the last.
  const std::int64_t step = width_ / std::gcd(row, std::int64_t{width_}),
                     rows = std::max<std::int64_t>(block_points / row / step, 1) * step;
  std::vector<int> once, loads, stores;  // accesses that are the same in every block; others
  for (std::size_t a = 0; a < accesses_.size(); a++) {
    const Instr& in = k_.code[static_cast<std::size_t>(accesses_[a])];
    const int access = static_cast<int>(a);
    if (spec_.goes_on[a] || !in_body(accesses_[a])) continue;
    llvm::Type* const element =
        in.code == Code::index ? b_.getInt64Ty() : memory_type(b_.getContext(), k_.args[in.imm].type);
    packed_[a] = memory_.stack(element, static_cast<std::uint64_t>(rows * row + width_));
    if (in.code == Code::store) stores.push_back(access);
    else if (stride(access, axis) == Stride::none) once.push_back(access);
    else loads.push_back(access);
  }
  llvm::Value *const begin = bound(2 * axis), *const end = bound(2 * axis + 1);
  const auto below = [&](llvm::Value* x) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateSub(end, x), i64(rows));
  };
  for (const int access : once) copy_packed(access, below(begin));
  emit_loop(b_, begin, end, i64(rows), [&](llvm::Value* x) {
    auto before = place(axis, -1, x);
    llvm::Value* const n = below(x);
    for (const int access : loads) copy_packed(access, n);
    vector_loop(i64(0), b_.CreateMul(n, i64(row)), nullptr, 1,
                [&](int, llvm::Value* i, const Lanes& active) { body(0, 0, i, active); });
    for (const int access : stores) copy_packed(access, n);
    restore(std::move(before));
  });
}

/// Copies the elements of the next `rows` rows of an access from memory or, for a store, back.
void LoopNestEmitter::copy_packed(int access, llvm::Value* rows) {
  const auto a = static_cast<std::size_t>(access);
  const Instr& in = k_.code[static_cast<std::size_t>(accesses_[a])];
  llvm::Type* const element = packed_[a]->getAllocatedType();
  const bool is_index = in.code == Code::index;
  const auto copy = [&](llvm::Value* distance, llvm::Value* point) {
    llvm::Value* const here = b_.CreateGEP(element, packed_[a], point);
    if (is_index) {
      b_.CreateStore(b_.CreateAdd(at_[a], distance), here);
      return;
    }
    const llvm::Align align(itemsize(k_.args[in.imm].type));
    llvm::Value* const there = b_.CreateGEP(b_.getInt8Ty(), at_[a], distance);
    if (in.code == Code::store)
      b_.CreateAlignedStore(b_.CreateAlignedLoad(element, here, align), there, align);
    else b_.CreateAlignedStore(b_.CreateAlignedLoad(element, there, align), here, align);
  };
  // All points of a row, unrolled.
  const std::function<void(std::size_t, llvm::Value*, llvm::Value*)> each_point =
      [&](std::size_t k, llvm::Value* distance, llvm::Value* point) {
        if (k == spec_.packed.size()) return copy(distance, point);
        llvm::Value* const step = stride_bytes(access, vector_axis() + 1 + static_cast<int>(k));
        for (std::int64_t x = 0; x < spec_.packed[k]; x++)
          each_point(k + 1, b_.CreateAdd(distance, b_.CreateMul(step, i64(x))),
                     b_.CreateAdd(b_.CreateMul(point, i64(spec_.packed[k])), i64(x)));
      };
  emit_loop(b_, i64(0), rows, i64(1),
            [&](llvm::Value* r) { each_point(0, b_.CreateMul(r, stride_bytes(access, vector_axis())), r); });
}

}  // namespace shardarray::codegen
