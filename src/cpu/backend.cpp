// The CPU backend: virtual devices, which are data and never threads, and programs as task graphs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>
#include <utility>

#include "cpu/exchange.h"
#include "cpu/externs.h"
#include "cpu/gemm.h"
#include "cpu/interpreter.h"
#include "runtime/arena.h"
#include "runtime/backend.h"
#include "runtime/devices.h"
#include "runtime/task_graph.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr double chunk_ns = 10'000;           // a task this long pays for its 100 ns
constexpr std::int64_t chunks_per_item = 32;  // enough for the workers of a large machine

/// n elements of `size` bytes from `r` on.
MemoryRange range(const Ref& r, std::int64_t n, std::size_t size) {
  return {r.base, r.offset, r.offset + static_cast<std::uint64_t>(n) * size};
}

/// The bytes from the first to the last element of `batch` matrices, `stride` apart, of rows `ld` apart.
MemoryRange matrix_range(const Ref& r, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                         std::int64_t batch, std::int64_t stride, std::size_t size) {
  if (rows == 0 || cols == 0 || batch == 0) return {r.base, r.offset, r.offset};
  return range(r, (batch - 1) * stride + (rows - 1) * ld + cols, size);
}

class CpuExecutable final : public Executable {
 public:
  explicit CpuExecutable(std::shared_ptr<const Program> program) : program_(std::move(program)) {
    for (const Step& step : program_->steps) {
      std::visit([&](const auto& body) { add(body); }, step.body);
    }
    graph_.finish();
  }

  void run(std::span<void* const> bases, RunReport* report) const override {
    if (bases.size() != program_->base_count) {
      throw InternalError(fmt::format(
          "run: {} base pointers, the program has {}. Every input, output and scratch arena has one. "
          "Please report this.",
          bases.size(), program_->base_count));
    }
    if (report != nullptr) report->received.assign(program_->transfers.size(), 0);
    if (program_->transfers.empty()) return graph_.run(bases.data());
    // One more base: where exchanges count what they move.
    constexpr std::size_t small = 256;
    void* on_stack[small];
    std::vector<void*> on_heap(bases.size() < small ? 0 : bases.size() + 1);
    void** const all = on_heap.empty() ? on_stack : on_heap.data();
    std::copy(bases.begin(), bases.end(), all);
    all[bases.size()] = report != nullptr ? report->received.data() : nullptr;
    graph_.run(all);
  }

 private:
  using Ranges = std::vector<MemoryRange>;

  /// Adds units [begin, end) of `plan` in chunks.
  template <class Plan>
  void add_units(const Plan& plan, std::int64_t begin, std::int64_t end, double cost_ns, const Ranges& reads,
                 const Ranges& writes) {
    if (begin >= end) return;
    check(reads);
    check(writes);
    const auto by_cost = static_cast<std::int64_t>(std::min(cost_ns / chunk_ns, 1e6));
    const std::int64_t units = end - begin,
                       chunks = std::clamp<std::int64_t>(by_cost, 1, std::min(units, chunks_per_item));
    std::vector<Task> tasks;
    for (std::int64_t c = 0; c < chunks; c++) {
      const auto run = [](const void* p, void* const* bases, std::int64_t b, std::int64_t e) {
        static_cast<const Plan*>(p)->run(bases, b, e);
      };
      tasks.push_back({run, &plan, begin + units * c / chunks, begin + units * (c + 1) / chunks,
                       cost_ns / static_cast<double>(chunks)});
    }
    graph_.add(tasks, reads, writes);
  }

  void add(const Loop& loop) {
    for (const Loop::Item& item : loop.items) {
      Ranges reads, writes;
      for (std::size_t k = 0; k < item.args.size(); k++) {
        const LoopArg& a = item.args[k];
        const std::uint64_t lo = a.ref.offset - a.first;
        (loop.kernel->args[k].output ? writes : reads).push_back({a.ref.base, lo, lo + a.bytes});
      }
      const LoopPlan& plan = loops_.emplace_back(loop.kernel, item);
      add_units(plan, 0, plan.units(), plan.cost_ns(), reads, writes);
    }
  }

  void add(const Gemm& gemm) {
    const std::size_t size = itemsize(gemm.dtype);
    for (const Gemm::Item& i : gemm.items) {
      const GemmPlan& plan = gemms_.emplace_back(gemm.dtype, i);
      const Ranges reads = {
          matrix_range(i.a, i.ta ? i.k : i.m, i.ta ? i.m : i.k, i.lda, i.batch, i.stride_a, size),
          matrix_range(i.b, i.tb ? i.n : i.k, i.tb ? i.k : i.n, i.ldb, i.batch, i.stride_b, size)};
      add_units(plan, 0, plan.units(), plan.cost_ns(), reads,
                {matrix_range(i.c, i.m, i.n, i.ldc, i.batch, i.stride_c, size)});
    }
  }

  void add(const Extern& x) {
    for (const Extern::Item& i : x.items) {
      Ranges reads, writes;
      for (std::size_t k = 0; k < i.in.size(); k++)
        reads.push_back(range(i.in[k], num_elements(i.in_shapes[k]), itemsize(x.in_types[k])));
      for (std::size_t k = 0; k < i.out.size(); k++) {
        writes.push_back(range(i.out[k], num_elements(i.out_shapes[k]), itemsize(x.out_types[k])));
      }
      const ExternPlan& plan = externs_.emplace_back(x, i);
      add_units(plan, 0, plan.units(), plan.cost_ns(), reads, writes);
    }
  }

  void add(const Exchange& x) {
    for (const Exchange::Item& i : x.items) {
      Ranges reads;
      for (const Exchange::Piece& p : i.pieces) {
        for (const Exchange::Source& s : p.sources) {
          const std::uint64_t lo = s.ref.offset - s.first;
          reads.push_back({s.ref.base, lo, lo + s.tile_bytes});
        }
      }
      const Ranges writes = {{i.dst.base, i.dst.offset, i.dst.offset + i.dst_bytes}};
      const ExchangePlan& plan = exchanges_.emplace_back(x, i, program_->base_count);
      const std::int64_t filled = plan.fill_units(), units = plan.units();
      const double cost = plan.cost_ns(0, units);
      if (filled > 0 && cost > 2 * chunk_ns) {  // else one task does both, in order
        add_units(plan, 0, filled, plan.cost_ns(0, filled), {}, writes);
        add_units(plan, filled, units, plan.cost_ns(filled, units), reads, writes);
      } else if (filled > 0) {
        add_units(plan, 0, units, std::min(cost, chunk_ns), reads, writes);
      } else {
        add_units(plan, 0, units, cost, reads, writes);
      }
    }
  }

  void check(const Ranges& ranges) const {
    for (const MemoryRange& r : ranges) {
      if (r.base < program_->base_count && r.lo <= r.hi) continue;
      throw InternalError(fmt::format(
          "load: a step touches bytes [{}, {}) of base {}, the program has {} bases. Addresses must stand in "
          "one of them. Please report this.",
          r.lo, r.hi, r.base, program_->base_count));
    }
  }

  std::shared_ptr<const Program> program_;
  std::deque<LoopPlan> loops_;  // tasks point to the plans
  std::deque<GemmPlan> gemms_;
  std::deque<ExternPlan> externs_;
  std::deque<ExchangePlan> exchanges_;
  TaskGraph graph_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int device_count) {
    for (int d = 0; d < device_count; d++) arenas_.emplace_back(this, d);
  }
  const char* platform() const override { return "cpu"; }
  int device_count() const override { return static_cast<int>(arenas_.size()); }
  BufferRef allocate(int device, std::size_t bytes) override {
    return BufferRef(arenas_[checked(device)].allocate(bytes));
  }
  void deallocate(Buffer* b) override { arenas_[static_cast<std::size_t>(b->device)].deallocate(b); }
  void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to->data, from, bytes);
  }
  void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from->data, bytes);
  }
  std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) override {
    return std::make_unique<CpuExecutable>(std::move(program));
  }
  MemoryStats memory_stats(int device) const override { return arenas_[checked(device)].stats(); }

 private:
  std::size_t checked(int device) const {
    if (device >= 0 && device < device_count()) return static_cast<std::size_t>(device);
    throw DeviceError(fmt::format(
        "backend: there is no device cpu:{}. There are {} devices, numbered from 0. Use one of devices().",
        device, device_count()));
  }
  std::deque<Arena> arenas_;  // one per device, for accounting; no element ever moves
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int device_count) {
  return std::make_unique<CpuBackend>(device_count);
}

}  // namespace shardarray
