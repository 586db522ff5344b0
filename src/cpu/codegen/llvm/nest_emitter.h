// LoopNestEmitter: emits a LoopNestSpec as one LLVM function.
//
// What does not vary along the vectors is computed once: every instruction is placed in the outermost loop where its operands are known. In
// rows mode the stages of an outer point run one after the other, each with its own loops; in columns mode a tile of outer points goes
// through all stages, and values that later stages need are kept on the stack. Kernels without inner stages need no tiles.
#pragma once
#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <vector>

#include "cpu/codegen/llvm/row_access.h"
#include "cpu/loops/loop_nest.h"

namespace shardarray::codegen {

/// What the code's shape depends on besides the spec.
struct Machine {
  int vector_bytes = 16;
  bool masked = false;  ///< masked loads and stores of 4 and 8 bytes
};

class LoopNestEmitter {
 public:
  LoopNestEmitter(llvm::Module& module, const LoopNestSpec& spec, const Machine& machine);
  /// Adds `void name(args, numbers, box)`.
  llvm::Function* emit(const std::string& name);

 private:
  static constexpr int lanes = 32;  // of a float reduction
  struct EmittedValue {
    int stage = 0, access = -1;
    std::uint64_t axes = 0;                  // that it depends on
    bool pending = false;                    // depends on a reduced value: must wait for its stage
    bool leaves = false;                     // used in another stage
    llvm::Value* scalar = nullptr;           // if it does not vary along the vectors
    llvm::AllocaInst* tile = nullptr;        // columns: kept for later stages
    std::vector<llvm::Value*> accumulators;  // of a reduce
    llvm::Value* reduced = nullptr;
    llvm::AllocaInst *total = nullptr, *lost = nullptr;  // of the blocks so far (kernel.h)
    int kept = -1;                                       // rows: this earlier value's row is loaded instead
    llvm::AllocaInst* row = nullptr;                     // the memory of that row
  };

  // Analysis.
  void analyse();
  bool rows() const { return spec_.mode == LoopMode::rows; }
  bool tiled() const { return !rows() && has_inner_; }
  /// x86 only: others have no such vector stores.
  bool streams() const { return spec_.streams && vector_bytes_ >= 32; }
  bool inner(int stage) const { return k_.stages[static_cast<std::size_t>(stage)].inner; }
  int vector_axis() const { return rows() ? spec_.rank() - 1 : spec_.vector_axis(); }
  Stride stride(int access, int axis) const {
    return spec_.strides[static_cast<std::size_t>(access) * static_cast<std::size_t>(spec_.rank()) +
                         static_cast<std::size_t>(axis)];
  }
  bool varies(int v) const;
  bool in_body(int v) const;
  int level(int v) const;
  std::pair<int, int> range(int stage) const;

  // Loops.
  llvm::Value* bound(int k);
  void outer_loops(int axis);
  void point();
  void tile(llvm::Value* begin, llvm::Value* end);
  void inner_stage_rows(int stage);
  /// The points [begin, end) of a row that starts after `before` inner points.
  using Piece = std::function<void(llvm::Value* before, llvm::Value* begin, llvm::Value* end)>;
  void inner_rows(int stage, const Piece& piece, const std::function<void()>& close);
  void cut_row(llvm::Value* before, const Piece& piece, const std::function<void()>& close);
  llvm::Value* begun(llvm::Value* points);
  void inner_axis(int stage, int axis, llvm::Value* begin, llvm::Value* end,
                  const std::function<void(llvm::Value* x)>& body);
  void inner_stage_columns(int stage, llvm::Value* begin, llvm::Value* end);
  void inner_loops(int stage, int axis, int last, llvm::Value* flat,
                   const std::function<void(llvm::Value* flat)>& body);
  void vector_loop(llvm::Value* begin, llvm::Value* end, llvm::Value* skipped, int repeats,
                   const std::function<void(int repeat, llvm::Value* i, const Lanes&)>& body);
  void masked_block(llvm::Value* at, llvm::Value* begin, llvm::Value* end, int repeats,
                    const std::function<void(int repeat, llvm::Value* i, const Lanes&)>& body);
  /// Moves the accesses to coordinate x of an axis; `restore` undoes it.
  std::vector<llvm::Value*> place(int axis, int stage, llvm::Value* x);
  void restore(std::vector<llvm::Value*> before) { at_ = std::move(before); }

  // Loads that are contiguous along the axis before the vector axis: transposed block by block.
  bool turned_loops(int axis);
  void turn_block(int v, llvm::Value* first_row, llvm::Value* rows, llvm::Value* i, llvm::Value* n);
  void turn_in_registers(int v, llvm::Value* from, llvm::Value* to);
  void turned_rows(int axis, llvm::Value* first_row, llvm::Value* end_row, llvm::Value* i,
                   const Lanes& active);

  // Short axes that vectors span.
  void packed_loop();
  void copy_packed(int access, llvm::Value* rows);

  // Rows that later stages need again.
  std::vector<int> equal_values() const;
  void find_kept();
  llvm::Value* row_address(int v, llvm::Value* i);

  // Prefetching of the next rows.
  void find_prefetching();
  void prefetch_next_row(llvm::Value* i);

  // Instructions.
  void scalars(int level, int stage);
  void forget_scalars(int level, int stage);
  void emit_scalar(int v);
  void body(int stage, int repeat, llvm::Value* i, const Lanes& active);
  bool stored_as_pairs(int v, int stage, llvm::Value* i, const Lanes& active);
  llvm::Value* emit_vector(int v, llvm::Value* i, const Lanes& active);
  llvm::Value* operand(int v, int stage, llvm::Value* i);
  llvm::Value* scalar_operand(int v);
  Row row(int v, llvm::Value* i);
  Indirect indirect(int v, llvm::Value* at);
  llvm::Value* number(int k);
  bool is_fixed(int k) const;
  llvm::Value* access_number(int access, int k) {
    return number(LoopNestNumbers::access(spec_.rank(), access) + k);
  }
  llvm::Value* stride_bytes(int access, int axis);

  // Reductions.
  void open_lanes_rows(int stage, int repeats);
  void accumulate_rows(int v, int repeat, llvm::Value* x, const Lanes& active);
  llvm::Value* folded_lanes(int v);
  void close_block_rows(int stage);
  void finish_rows(int stage);
  void open_lanes_columns(int stage, llvm::Value* begin, llvm::Value* end);
  void accumulate_columns(int v, llvm::Value* x, llvm::Value* i);
  void fold_columns(int v, bool anew, llvm::Value* begin, llvm::Value* end);
  void close_block_columns(int stage, llvm::Value* begin, llvm::Value* end);
  void finish_columns(int stage, llvm::Value* begin, llvm::Value* end);
  void each_vector(llvm::Value* begin, llvm::Value* end, const std::function<void(llvm::Value* i)>& body);
  llvm::Value* lane_count(const Instr& in);
  llvm::Value* combine(const Instr& reduce, llvm::Value* x, llvm::Value* y);
  bool in_blocks(int v) const { return spec_.blocks && is_ordered(k_.code[static_cast<std::size_t>(v)]); }
  bool sums_blocks(int stage) const;
  void open_total(const Instr& in, llvm::Value* total, llvm::Value* lost, int width);
  void add_block(const Instr& in, llvm::Value* total, llvm::Value* lost, llvm::Value* x);
  llvm::Value* total_of(const Instr& in, llvm::Value* total, llvm::Value* lost, int width);
  llvm::Value* widened(const Instr& in, llvm::Value* x);
  llvm::Constant* identity(const Instr& in, int width);
  llvm::Value* tile_address(llvm::Value* buffer, DType t, llvm::Value* i);
  llvm::Value* lane_address(int v, llvm::Value* lane, llvm::Value* i);

  llvm::Value* i64(std::int64_t x) { return b_.getInt64(static_cast<std::uint64_t>(x)); }

  llvm::Module& module_;
  const LoopNestSpec& spec_;
  const Kernel& k_;
  llvm::IRBuilder<> b_;
  int width_ = 4;
  int vector_bytes_ = 16;
  bool has_inner_ = false;
  MemoryAccess memory_;
  std::vector<EmittedValue> values_;
  std::vector<int> accesses_;
  llvm::Value *numbers_ = nullptr, *box_ = nullptr;
  std::vector<llvm::Value*> number_cache_;
  std::vector<llvm::Value*> at_;      // access -> address (index: value) at the current loops' coordinates
  std::vector<llvm::Value*> vector_;  // value -> its vector in the body being emitted
  llvm::Value* tile_begin_ = nullptr;
  std::vector<llvm::AllocaInst*> turned_;  // access -> its transposed block, row by row
  int reading_ = -1,
      prefetching_ = -1;  // the stage that reads rows first, and the one that prefetches the next; -1: none
  std::vector<llvm::AllocaInst*>
      packed_;  // access -> stack copy of a block's elements in order; null: they are contiguous in memory
  llvm::Value* turned_row_ = nullptr;  // the current row of the block
  llvm::Value* flat_ = nullptr;        // columns: the flat inner index of the body being emitted
};

}  // namespace shardarray::codegen
