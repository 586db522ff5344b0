#include "cpu/loops/interpreter.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/per_thread.h"
#include "cpu/loops/interpreter_plan.h"

namespace shardarray {
namespace {

/// This thread's rows and table of row addresses; as large as its largest plan so far.
class Scratch {
 public:
  std::byte* get(std::size_t bytes) {
    if (bytes > bytes_) {
      release();
      data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}));
      bytes_ = bytes;
    }
    return data_;
  }
  ~Scratch() { release(); }

 private:
  void release() {
    ::operator delete (data_, std::align_val_t{64});
    data_ = nullptr;
    bytes_ = 0;
  }
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The byte offset of flat position `at` in `axes`.
std::int64_t offset_at(const std::vector<LoopAxis>& axes, std::int64_t at) {
  if (axes.empty()) return 0;
  std::int64_t offset = 0;
  for (std::size_t d = axes.size() - 1; d > 0; d--) {
    offset += at % axes[d].extent * axes[d].stride;
    at /= axes[d].extent;
  }
  return offset + at * axes[0].stride;
}

/// Splits flat positions [at, at + n) of `axes` into runs along the last axis: f(offset, stride, first element, count).
template <class F> void for_runs(const std::vector<LoopAxis>& axes, std::int64_t at, std::int64_t n, F f) {
  if (axes.size() <= 1) return f(offset_at(axes, at), axes.empty() ? 0 : axes[0].stride, std::int64_t{0}, n);
  std::int64_t coordinate[LoopPlan::max_rank];
  const std::size_t last = axes.size() - 1;
  std::int64_t offset = 0;
  for (std::size_t d = axes.size(); d-- > 0; at /= axes[d].extent) {
    coordinate[d] = at % axes[d].extent;
    offset += coordinate[d] * axes[d].stride;
  }
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t count = std::min(n - done, axes[last].extent - coordinate[last]);
    f(offset, axes[last].stride, done, count);
    done += count;
    coordinate[last] += count;
    offset += count * axes[last].stride;
    for (std::size_t d = last; d > 0 && coordinate[d] == axes[d].extent; d--) {
      offset += axes[d - 1].stride - axes[d].extent * axes[d].stride;
      coordinate[d] = 0;
      coordinate[d - 1]++;
    }
  }
}

}  // namespace

/// One run: the addresses of all rows, and the operations on them.
class LoopPlan::Run {
 public:
  Run(const LoopPlan& plan, void* const* bases) : p_(plan), loops_(*plan.loops_), bases_(bases) {
    const std::size_t slots = plan.first_constant_ + plan.constants_.size();
    std::byte* memory = PerThread<Scratch>::get().get(plan.scratch_bytes_ + slots * sizeof(void*));
    rows_ = reinterpret_cast<std::byte**>(memory + plan.scratch_bytes_);
    for (std::size_t i = 0; i < plan.row_offset_.size(); i++) rows_[i] = memory + plan.row_offset_[i];
    for (std::size_t i = 0; i < plan.constants_.size(); i++) {
      rows_[plan.first_constant_ + i] = const_cast<std::byte*>(plan.constants_[i]->data());  // never written
    }
  }

  void columns(std::int64_t begin, std::int64_t end) const {
    stage(p_.once_, 0, begin, std::min(p_.tile_, end - begin));
    for (std::int64_t at = begin; at < end; at += p_.tile_) {
      const std::int64_t n = std::min(p_.tile_, end - at);
      for (const StageRows& s : p_.stages_) {
        if (!s.inner) {
          stage(s, 0, at, n);
          continue;
        }
        for (std::int64_t j = 0; j < p_.inner_count_; j++) {
          stage(s, j, at, n);
          for (const ReduceRow& r : s.reduces) add_column(r, j, n);
        }
        for (const ReduceRow& r : s.reduces) finish(r, n);
      }
    }
  }

  void rows(std::int64_t begin, std::int64_t end) const {
    const std::int64_t inner = p_.inner_count_, first = std::min(p_.tile_, inner);
    stage(p_.once_narrow_, 0, 0, 1);
    if (first > 0) {
      ops(p_.once_.enter, 0, 0, first);
      stage(p_.once_, 0, 0, first);
    }
    for (std::int64_t point = begin; point < end; point++) {
      for (const StageRows& s : p_.stages_) {
        if (!s.inner) {
          stage(s, point, 0, 1);
          continue;
        }
        ops(s.enter, point, 0, first);
        for (std::int64_t at = 0; at < inner; at += p_.tile_) {
          const std::int64_t n = std::min(p_.tile_, inner - at);
          stage(s, point, at, n);
          for (const ReduceRow& r : s.reduces) accumulate(r, at, n);
        }
        for (const ReduceRow& r : s.reduces) finish(r, 1);
      }
    }
  }

 private:
  /// Rows [at, at + n) of a stage, at position `walk` of the other group of dimensions.
  void stage(const StageRows& s, std::int64_t walk, std::int64_t at, std::int64_t n) const {
    for (const LoadRow& l : s.loads) load(l, walk, at, n);
    for (const StoreRow& t : s.stores) {
      if (t.direct) rows_[t.slot] = in_place(p_.accesses_[t.access], walk, at, n, t.copy);
    }
    ops(s.ops, walk, at, n);
    for (const StoreRow& t : s.stores) {
      if (!t.direct || (t.copy >= 0 && rows_[t.slot] == rows_[t.copy])) store(t, walk, at, n);
    }
  }

  void ops(const std::vector<OpRow>& list, std::int64_t walk, std::int64_t at, std::int64_t n) const {
    for (const OpRow& op : list) {
      if (op.function) op.function(rows_[op.dst], rows_[op.a], rows_[op.b], rows_[op.c], n);
      else load_at(op, walk, at, n);
    }
  }

  std::byte* address(const Access& a, std::int64_t walk) const {
    return static_cast<std::byte*>(bases_[a.base]) + a.offset + offset_at(a.walk, walk);
  }

  /// The argument's own memory if the row is contiguous there, else row `copy`.
  std::byte* in_place(const Access& a, std::int64_t walk, std::int64_t at, std::int64_t n,
                      std::int32_t copy) const {
    if (a.contiguous) return address(a, walk) + (a.run.empty() ? 0 : at << a.size_log2);
    if (at % a.run.back().extent + n <= a.run.back().extent) return address(a, walk) + offset_at(a.run, at);
    return rows_[copy];
  }

  void load(const LoadRow& l, std::int64_t walk, std::int64_t at, std::int64_t n) const {
    const Access& a = p_.accesses_[l.access];
    if (l.slot != l.copy) {
      rows_[l.slot] = in_place(a, walk, at, n, l.copy);
      if (l.copy < 0 || rows_[l.slot] != rows_[l.copy]) return;
    }
    std::byte* to = rows_[l.slot];
    if (a.is_index) {
      auto* numbers = reinterpret_cast<std::int64_t*>(to);
      const std::int64_t start = a.offset + offset_at(a.walk, walk);
      return for_runs(a.run, at, n,
                      [&](std::int64_t offset, std::int64_t step, std::int64_t first, std::int64_t count) {
                        loops_.iota(numbers + first, start + offset, step, count);
                      });
    }
    const std::byte* from = address(a, walk);
    for_runs(a.run, at, n,
             [&](std::int64_t offset, std::int64_t stride, std::int64_t first, std::int64_t count) {
               loops_.gather[a.size_log2](to + (first << a.size_log2), from + offset, stride >> a.size_log2,
                                          count);
             });
  }

  void store(const StoreRow& t, std::int64_t walk, std::int64_t at, std::int64_t n) const {
    const Access& a = p_.accesses_[t.access];
    std::byte* to = address(a, walk);
    const std::byte* from = rows_[t.slot];
    for_runs(a.run, at, n,
             [&](std::int64_t offset, std::int64_t stride, std::int64_t first, std::int64_t count) {
               loops_.scatter[a.size_log2](to + offset, from + (first << a.size_log2), stride >> a.size_log2,
                                           count);
             });
  }

  void load_at(const OpRow& op, std::int64_t walk, std::int64_t at, std::int64_t n) const {
    const Access& a = p_.accesses_[op.b];
    const std::byte* from = address(a, walk);
    const auto* numbers = reinterpret_cast<const std::int64_t*>(rows_[op.a]);
    for_runs(a.run, at, n,
             [&](std::int64_t offset, std::int64_t stride, std::int64_t first, std::int64_t count) {
               loops_.gather_rows[a.size_log2](rows_[op.dst] + (first << a.size_log2), from + offset,
                                               numbers + first, stride >> a.size_log2, a.row_stride, a.lo,
                                               a.count, count);
             });
  }

  /// Adds inner points [at, at + n) to their lanes. A tile begins at lane 0.
  void accumulate(const ReduceRow& r, std::int64_t at, std::int64_t n) const {
    const std::int64_t points = p_.inner_count_;
    if (r.blocks)
      return r.accumulate_blocks(rows_[r.dst], rows_[r.src], rows_[r.identity],
                                 {at, at + n, points, r.block});
    if (at == 0) std::memcpy(rows_[r.dst], rows_[r.identity], Loops::lanes * r.lane_bytes);
    r.accumulate(rows_[r.dst], rows_[r.src], nullptr, nullptr, n);
    if (at + n == points) r.fold(rows_[r.dst], rows_[r.dst], nullptr, nullptr, 1);
  }
  /// Adds the row of inner point j to its lane; every lane starts at the identity.
  void add_column(const ReduceRow& r, std::int64_t j, std::int64_t n) const {
    const std::int64_t at = j & (r.block - 1);
    std::byte* lane = rows_[r.dst] + at % r.lanes * r.lane_bytes;
    r.combine(lane, at < r.lanes ? rows_[r.identity] : lane, rows_[r.src], nullptr, n);
    if (!ends_block(r, j + 1)) return;
    fold_columns(r, rows_[r.dst], at + 1, n);
    if (r.blocks) add_block(r, j, n);
  }
  bool ends_block(const ReduceRow& r, std::int64_t points) const {
    return points == p_.inner_count_ || (points & (r.block - 1)) == 0;
  }
  /// Lanes that no point of the block reached would hold the identity; they are skipped.
  static void fold_columns(const ReduceRow& r, std::byte* lanes, std::int64_t points, std::int64_t n) {
    const std::int64_t count = std::min<std::int64_t>(r.lanes, points);
    for (std::int64_t width = Loops::lanes / 2; width > 0; width /= 2) {
      for (std::int64_t i = 0; i < width && i + width < count; i++) {
        r.combine(lanes + i * r.lane_bytes, lanes + i * r.lane_bytes, lanes + (i + width) * r.lane_bytes,
                  nullptr, n);
      }
    }
  }
  std::byte* total(const ReduceRow& r) const { return rows_[r.dst] + Loops::lanes * r.lane_bytes; }
  std::byte* lost(const ReduceRow& r) const { return total(r) + r.lane_bytes; }
  /// Adds the result of inner point j's block to the total.
  void add_block(const ReduceRow& r, std::int64_t j, std::int64_t n) const {
    if (j < r.block) {
      std::memcpy(total(r), rows_[r.identity], n << r.size_log2);
      std::memset(lost(r), 0, n << r.size_log2);
    }
    if (r.add_rounded_off) r.add_rounded_off(lost(r), total(r), rows_[r.dst], nullptr, n);
    r.combine(total(r), total(r), rows_[r.dst], nullptr, n);
  }
  void finish(const ReduceRow& r, std::int64_t n) const {
    if (p_.inner_count_ == 0) std::memcpy(rows_[r.dst], rows_[r.identity], n << r.size_log2);
    if (!r.blocks) return;
    if (r.with_rounded_off) r.with_rounded_off(rows_[r.dst], total(r), lost(r), nullptr, n);
    else std::memcpy(rows_[r.dst], total(r), n << r.size_log2);
  }

  const LoopPlan& p_;
  const Loops& loops_;
  void* const* bases_;
  std::byte** rows_;
};

LoopPlan::LoopPlan(const Kernel& kernel, const Loop::Item& item, LoopMode mode, const Loops& loops)
    : loops_(&loops), mode_(mode) {
  for (std::size_t d = 0; d < item.extents.size(); d++) {
    (static_cast<std::int32_t>(d) < kernel.outer ? outer_count_ : inner_count_) *= item.extents[d];
  }
  LoopPlanner(*this, kernel, item).build();
}

LoopPlan::LoopPlan(std::shared_ptr<const Kernel> kernel, const Loop::Item& item)
    : LoopPlan((verify(*kernel), *kernel), item, LoopMode::columns, best_loops()) {
  const bool inner =
      std::any_of(kernel->stages.begin(), kernel->stages.end(), [](const Stage& s) { return s.inner; });
  if (!inner) return;
  LoopPlan by_rows(*kernel, item, LoopMode::rows, best_loops());
  if (by_rows.cost_ns_ < cost_ns_) *this = std::move(by_rows);
}

void LoopPlan::run(void* const* bases, std::int64_t begin, std::int64_t end) const {
  if (begin >= end) return;
  const Run run(*this, bases);
  if (mode_ == LoopMode::rows) run.rows(begin, end);
  else run.columns(begin, end);
}

}  // namespace shardarray
