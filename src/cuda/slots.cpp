#include "cuda/slots.h"

#include <algorithm>
#include <utility>

namespace shardarray::cuda {
namespace {

class SlotAllocator {
 public:
  explicit SlotAllocator(const Kernel& k) : k_(k), last_(k.code.size()), free_at_(k.code.size() + 1) {
    slots_.places.resize(k.code.size());
    find_last_uses();
  }

  KernelSlots run() {
    std::int32_t begin = 0;
    for (const Stage& stage : k_.stages) {
      for (std::int32_t v = begin; v < stage.end; v++) {
        if (k_.code[v].code == Code::reduce) open_reduction(v, stage.end);
      }
      for (std::int32_t v = begin; v < stage.end; v++) {
        free_before(v);
        const Code code = k_.code[v].code;
        if (code != Code::store && code != Code::reduce) take(slots_.places[v].value, last_[v]);
      }
      begin = stage.end;
    }
    return std::move(slots_);
  }

 private:
  // Finds the last instruction that needs each value. An inner stage needs outside values until its end, since it is a loop.
  void find_last_uses() {
    std::int32_t begin = 0;
    for (const Stage& stage : k_.stages) {
      for (std::int32_t v = begin; v < stage.end; v++) {
        const Instr& in = k_.code[v];
        last_[v] = v;
        const std::int32_t operands[] = {in.a, in.b, in.c};
        for (int n = 0; n < operand_count(in.code, in.imm); n++) {
          const bool outside = operands[n] < begin;
          last_[operands[n]] = std::max(last_[operands[n]], outside && stage.inner ? stage.end : v);
        }
      }
      begin = stage.end;
    }
  }

  void open_reduction(std::int32_t v, std::int32_t end) {
    KernelSlots::Place& p = slots_.places[v];
    take(p.value, std::max(last_[v], end));
    take(p.total, end);
    take(p.lost, end);
  }
  /// Takes a slot until instruction `last`, which may write its own value there: operands are read first.
  void take(int& slot, std::int32_t last) {
    if (free_.empty()) free_.push_back(slots_.count++);
    slot = free_.back();
    free_.pop_back();
    free_at_[std::max(last, freed_)].push_back(slot);
  }
  /// Gives back the slots whose last use is at or before instruction v.
  void free_before(std::int32_t v) {
    for (; freed_ <= v; freed_++) {
      auto& list = free_at_[freed_];
      free_.insert(free_.end(), list.begin(), list.end());
      list.clear();
    }
  }

  const Kernel& k_;
  std::vector<std::int32_t> last_;
  std::vector<std::vector<int>> free_at_;  // by instruction from which slots are free
  std::vector<int> free_;
  std::int32_t freed_ = 0;
  KernelSlots slots_;
};

}  // namespace

KernelSlots slots_of(const Kernel& k) { return SlotAllocator(k).run(); }

}  // namespace shardarray::cuda
