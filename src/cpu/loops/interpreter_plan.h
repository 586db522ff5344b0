// LoopPlanner: decides everything about a LoopPlan that is independent of addresses.
#pragma once
#include <limits>
#include <memory>
#include <vector>

#include "cpu/loops/interpreter.h"

namespace shardarray {

/// log2 of the bytes of an element.
inline int size_log2_of(DType t) {
  const std::size_t n = itemsize(t);
  return n == 1 ? 0 : n == 2 ? 1 : n == 4 ? 2 : 3;
}

class LoopPlanner {
 public:
  static constexpr std::int64_t full_row = 256;  // elements: a handful of float32 rows fit into the L1 cache

  LoopPlanner(LoopPlan& plan, const Kernel& kernel, const Loop::Item& item);
  void build();

 private:
  /// A row of scratch memory, for an interval of the stages' timeline.
  struct Request {
    int start = 0, end = 0;
    int size_log2 = 0;
    bool narrow = false;  // one element
    int row = -1;         // assigned by allocate_rows
  };
  struct LoopValue {
    int stage = 0, root = 0;  // root: the computed value with the same bits (bitcasts share its row)
    bool narrow = false;      // one element per outer point (rows mode)
    bool hoisted = false;     // computed once per run
    int access = -1;
    int last_own = 0;                            // last use in its own stage
    bool leaves = false;                         // used in another stage
    int request = -1, splat = -1, dynamic = -1;  // where its row is
    int splat_stage = -1;                        // the stage that broadcasts it
    int direct = -1;                             // the store whose memory it is computed in
  };
  static constexpr int always = std::numeric_limits<int>::max();

  bool rows_mode() const { return plan_.mode_ == LoopMode::rows; }
  bool inner(int stage) const { return k_.stages[stage].inner; }
  // The timeline: a stage's begin, its instructions, its end.
  int begin_of(int stage) const { return (stage ? k_.stages[stage - 1].end : 0) + 2 * stage; }
  int end_of(int stage) const { return k_.stages[stage].end + 2 * stage + 1; }
  int position(int v) const { return v + 2 * values_[v].stage + 1; }

  bool take_turns(std::size_t a, std::size_t b) const;
  bool overlap(std::size_t a, std::size_t b) const;
  void check_arguments() const;
  void find_values();
  void make_accesses();
  Access make_access(const Instr& in, int stage) const;
  void choose_tile();
  std::int64_t run_length() const { return rows_mode() ? plan_.inner_count_ : plan_.outer_count_; }
  std::int64_t period(const Access& a) const;
  bool fixed(int v) const;
  void find_hoisted();
  void use(int v, int stage, int at, bool at_end);
  void find_uses();
  bool may_be_direct(int store) const;
  void find_direct();
  bool copied(int v) const;
  int request(int start, int end, DType type, bool narrow);
  void request_rows();
  void allocate_rows();
  /// Columns mode: the lane stride of a reduction of this type.
  std::size_t lane_bytes(DType t) const { return (plan_.tile_ * itemsize(t) + 63) / 64 * 64; }
  /// Whether v is reduced in several blocks.
  bool has_blocks(int v) const { return is_ordered(k_.code[v]) && plan_.inner_count_ > k_.order.block; }
  std::uint16_t constant_slot(DType type, std::uint64_t bits);
  std::uint16_t slot_of_request(int r) const { return static_cast<std::uint16_t>(requests_[r].row); }
  std::uint16_t native_slot(int v) const;
  std::uint16_t operand_slot(int v, int stage);
  void emit_load(int v);
  void emit_op(int v);
  void emit_store(int v);
  void emit_reduce(int v);
  void emit_splats();
  void emit();
  StageRows& rows_for(int v);
  void add_cost(int v, double fixed, double element);
  double access_ns(const Access& a) const;
  void estimate();

  LoopPlan& plan_;
  const Kernel& k_;
  const Loop::Item& item_;
  std::vector<LoopValue> values_;
  std::vector<Request> requests_;
  int row_count_ = 0, dynamic_count_ = 0;
  struct Cost {
    double fixed = 0, element = 0;  // nanoseconds per row, per element
  };
  std::vector<Cost> cost_;  // by stage, without what is done once per run
};

}  // namespace shardarray
