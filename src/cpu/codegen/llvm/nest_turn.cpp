// LoopNestEmitter: transposed loads, of an argument that is contiguous along the axis before the vector axis, or a part of contiguous
// complex numbers: blocks of width_ x width_ elements are read along that axis, transposed in registers and stored on the stack, from where
// the body reads rows. Every cache line is read once.
#include "cpu/codegen/llvm/nest_emitter.h"

namespace shardarray::codegen {

/// The loops over `axis` and the next one, block by block, if the next one is the vector axis and some load is transposed.
bool LoopNestEmitter::turned_loops(int axis) {
  if (axis != vector_axis() - 1) return false;
  std::vector<int> loads;
  for (const int v : accesses_) {
    if (spec_.turns(static_cast<std::size_t>(values_[static_cast<std::size_t>(v)].access)))
      loads.push_back(v);
  }
  if (loads.empty()) return false;
  for (const int v : loads) {
    const auto elements = static_cast<std::uint64_t>(width_) * static_cast<std::uint64_t>(width_);
    turned_[static_cast<std::size_t>(values_[static_cast<std::size_t>(v)].access)] =
        memory_.stack(memory_type(b_.getContext(), k_.code[static_cast<std::size_t>(v)].type), elements);
  }
  const auto below = [&](llvm::Value* x, std::int64_t step, llvm::Value* end) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(x, i64(step)), end);
  };
  // Blocks are visited along the memory that is read, in bands whose output lines and pages stay cached until the next blocks continue
  // them.
  constexpr std::int64_t band = 256;
  llvm::Value *const end_row = bound(2 * axis + 1), *const end = bound(2 * axis + 3);
  emit_loop(b_, bound(2 * axis), end_row, i64(band), [&](llvm::Value* first) {
    llvm::Value* const end_band = below(first, band, end_row);
    emit_loop(b_, bound(2 * axis + 2), end, i64(width_), [&](llvm::Value* i) {
      llvm::Value* const n = b_.CreateSub(below(i, width_, end), i);
      emit_loop(b_, first, end_band, i64(width_), [&](llvm::Value* row_number) {
        llvm::Value* const past = below(row_number, width_, end_band);
        for (const int v : loads) turn_block(v, row_number, b_.CreateSub(past, row_number), i, n);
        emit_if(b_, b_.CreateICmpEQ(n, i64(width_)), [&] { turned_rows(axis, row_number, past, i, {}); });
        emit_if(b_, b_.CreateICmpSLT(n, i64(width_)), [&] {
          turned_rows(axis, row_number, past, i, {i64(0), n});
        });
      });
    });
  });
  return true;
}

/// The body for rows [first_row, end_row) of a block.
void LoopNestEmitter::turned_rows(int axis, llvm::Value* first_row, llvm::Value* end_row, llvm::Value* i,
                                  const Lanes& active) {
  emit_loop(b_, first_row, end_row, i64(1), [&](llvm::Value* row_number) {
    auto before = place(axis, -1, row_number);
    forget_scalars(axis, -1);
    scalars(axis, -1);
    turned_row_ = b_.CreateSub(row_number, first_row);
    body(0, 0, i, active);
    restore(std::move(before));
  });
}

/// Transposes n x rows elements of access v, from row first_row and element i on, into its block.
void LoopNestEmitter::turn_block(int v, llvm::Value* first_row, llvm::Value* rows, llvm::Value* i,
                                 llvm::Value* n) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  const int access = values_[static_cast<std::size_t>(v)].access, axis = vector_axis();
  llvm::Type *const element = memory_type(b_.getContext(), in.type), *const byte = b_.getInt8Ty();
  llvm::Value *const step = stride_bytes(access, axis), *const row_step = stride_bytes(access, axis - 1);
  llvm::Value* const to = turned_[static_cast<std::size_t>(access)];
  llvm::Value* const from = b_.CreateGEP(
      byte, b_.CreateGEP(byte, at_[static_cast<std::size_t>(access)], b_.CreateMul(first_row, row_step)),
      b_.CreateMul(i, step));
  llvm::Value* const whole =
      b_.CreateAnd(b_.CreateICmpEQ(rows, i64(width_)), b_.CreateICmpEQ(n, i64(width_)));
  emit_if(b_, whole, [&] { turn_in_registers(v, from, to); });
  emit_if(b_, b_.CreateNot(whole), [&] {
    emit_loop(b_, i64(0), n, i64(1), [&](llvm::Value* l) {
      llvm::Value* const line = b_.CreateGEP(byte, from, b_.CreateMul(l, step));
      emit_loop(b_, i64(0), rows, i64(1), [&](llvm::Value* r) {
        llvm::Value* const x = b_.CreateAlignedLoad(
            element, b_.CreateGEP(byte, line, b_.CreateMul(r, row_step)), llvm::Align(itemsize(in.type)));
        b_.CreateStore(x, b_.CreateGEP(element, to, b_.CreateAdd(b_.CreateMul(r, i64(width_)), l)));
      });
    });
  });
}

/// Squares with one register per row: interleaves rows i and i + size / 2, log2(size) times.
void LoopNestEmitter::turn_in_registers(int v, llvm::Value* from, llvm::Value* to) {
  const Instr& in = k_.code[static_cast<std::size_t>(v)];
  llvm::Type* const element = memory_type(b_.getContext(), in.type);
  const int access = values_[static_cast<std::size_t>(v)].access;
  llvm::Value* const step = stride_bytes(access, vector_axis());
  const bool is_part = stride(access, vector_axis() - 1) == Stride::second;
  const llvm::Align align(itemsize(in.type));
  const int size = std::min({width_, 16, vector_bytes_ / static_cast<int>(itemsize(in.type))});
  auto* const vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(size));
  llvm::SmallVector<int, 32> low, high;
  for (int l = 0; l < size / 2; l++) {
    low.append({l, l + size});
    high.append({l + size / 2, l + size + size / 2});
  }
  for (int line = 0; line < width_; line += size) {
    for (int row_number = 0; row_number < width_; row_number += size) {
      std::vector<llvm::Value*> x, y(static_cast<std::size_t>(size));
      for (int l = 0; l < size; l++) {
        llvm::Value* const p = b_.CreateGEP(b_.getInt8Ty(), from, b_.CreateMul(step, i64(line + l)));
        llvm::Value* const at = b_.CreateGEP(element, p, i64(is_part ? 2 * row_number : row_number));
        if (is_part) x.push_back(memory_.load_second(vector, in.type, at, {}));
        else x.push_back(b_.CreateAlignedLoad(vector, at, align));
      }
      for (int turn = 1; turn < size; turn *= 2) {
        for (std::size_t k = 0; k < x.size() / 2; k++) {
          y[2 * k] = b_.CreateShuffleVector(x[k], x[k + x.size() / 2], low);
          y[2 * k + 1] = b_.CreateShuffleVector(x[k], x[k + x.size() / 2], high);
        }
        std::swap(x, y);
      }
      for (int r = 0; r < size; r++) {
        b_.CreateAlignedStore(x[static_cast<std::size_t>(r)],
                              b_.CreateGEP(element, to, i64((row_number + r) * width_ + line)), align);
      }
    }
  }
}

}  // namespace shardarray::codegen
