#include "cuda/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/codegen_mode.h"
#include "cuda/launch.h"
#include "kernels/device.cuh"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

constexpr std::size_t table_alignment = 64;
// The run of a program that asks for printed kernels: compiling them takes as long as thousands of launches.
constexpr int asking_run = 3;
// Of a graph: one launch is as cheap as a launch of a graph.
constexpr std::int64_t fewest_nodes = 2;

std::string spelled(const Launch& l) {
  return l.where.line > 0 ? fmt::format("'{}' ({}:{})", l.label, l.where.file, l.where.line)
                          : fmt::format("'{}'", l.label);
}

/// Bytes from other devices, transfer by transfer.
std::vector<std::int64_t> received_by(const Program& program) {
  std::vector<std::int64_t> received(program.transfers.size(), 0);
  for (const Step& step : program.steps) {
    if (const auto* const call = std::get_if<ProgramCall>(&step.body)) {
      auto to = received.begin() + call->first_transfer;
      for (const std::int64_t bytes : received_by(*call->program)) *to++ += bytes * call->trip;
    }
    const auto* const x = std::get_if<Exchange>(&step.body);
    if (x == nullptr || x->transfer < 0) continue;
    for (const Exchange::Item& item : x->items)
      for (const Exchange::Piece& piece : item.pieces) {
        const auto foreign =
            std::count_if(piece.sources.begin(), piece.sources.end(),
                          [&](const Exchange::Source& s) { return s.device != item.device; });
        received[static_cast<std::size_t>(x->transfer)] +=
            num_elements(piece.extents) * static_cast<std::int64_t>(itemsize(x->dtype)) * foreign;
      }
  }
  return received;
}

void* address_of(std::span<void* const> bases, const Ref& r) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(bases[r.base]) + r.offset);
}
/// Calls f with each address that a call by addresses reads from the GPU's memory, in the order in which they stand there.
template <class F> void for_addresses(const ProductCall& call, const F& f) {
  if (!call.by_pointers()) return;
  for (const ProductMatrix* m : {&call.first, &call.second, &call.result})
    for (const Ref& r : m->refs) f(r);
}

}  // namespace

CudaExecutable::CudaExecutable(CudaBackend& backend, Gpu& gpu, std::shared_ptr<const Program> program,
                               std::uint64_t alignment)
    : backend_(backend), gpu_(gpu), base_count_(program->base_count), received_(received_by(*program)) {
  const std::vector<Launch> launches = launches_of(*program, alignment);
  std::vector<std::byte> tables;
  for (const Launch& l : launches) {
    tables.resize((tables.size() + table_alignment - 1) / table_alignment * table_alignment);
    std::unique_ptr<Called> called;
    if (l.call != nullptr)
      called = std::make_unique<Called>(
          Called{*l.call, std::make_unique<CudaExecutable>(backend, gpu, l.call->program, l.alignment)});
    launches_.push_back(
        {called ? nullptr : gpu_.kernel(l.kernel),
         {l.blocks, l.items, l.threads},
         tables.size(),
         spelled(l),
         l.bases,
         std::move(called),
         l.products.empty() ? std::vector<ReadyProduct>() : ready_products(backend, gpu, l.products)});
    tables.insert(tables.end(), l.table.begin(), l.table.end());
    scratch_bytes_ = std::max(scratch_bytes_, l.scratch_bytes);
    for (const ReadyProduct& p : launches_.back().products) {
      scratch_bytes_ = std::max(scratch_bytes_, p.plan.workspace);
      for_addresses(p.plan.call, [&](const Ref& r) { operands_.push_back(r); });
    }
  }
  if (launches.empty()) return;
  steps_ = std::make_shared<std::string>(
      launches.size() == 1 ? launches_[0].step
                           : fmt::format("{} to {}", launches_.front().step, launches_.back().step));
  tables_ = backend_.allocate_for_launches(gpu_, tables.size());
  Turn(gpu_).upload(tables_->data, tables.data(), tables.size());
  const CodegenMode mode = codegen_mode_of_environment();
  if (mode != CodegenMode::off) printed_ = PrintedLoops::of(gpu_, launches);
  if (printed_ && mode == CodegenMode::always) build_now(*printed_);
  runs_until_asked_ = mode == CodegenMode::always ? 0 : asking_run;
  replays_wanted_ = graph_nodes() >= fewest_nodes;
}

void CudaExecutable::prepare() const {
  int runs = runs_until_asked_.load(std::memory_order_relaxed);
  while (runs > 1 && !runs_until_asked_.compare_exchange_weak(runs, 1)) {}
}

const std::vector<KernelHandle>* CudaExecutable::printed_kernels() const {
  if (!printed_) return nullptr;
  if (runs_until_asked_.load(std::memory_order_relaxed) > 0 && runs_until_asked_.fetch_sub(1) == 1)
    build_later(printed_);
  return printed_->kernels();
}

CompletionRef CudaExecutable::run(std::span<void* const> bases, RunReport* report) const {
  if (bases.size() != base_count_)
    throw InternalError(
        fmt::format("run: {} base pointers, the program has {}. Every input, output and scratch arena has "
                    "one. Please report this.",
                    bases.size(), base_count_));
  if (report != nullptr) report->received = received_;
  if (launches_.empty()) return nullptr;
  if (replays_wanted_) {
    Turn turn(gpu_);
    if (replay(turn, bases, nullptr)) return turn.done(steps_);
  }
  const Workspace w = take_workspace();  // given back when all is asked for: whoever gets it next asks later
  Turn turn(gpu_);
  if (!replay(turn, bases, &w)) ask(turn, bases, bind(turn, bases, w), w);
  return turn.done(steps_);
}

CudaExecutable::Workspace CudaExecutable::take_workspace() const {
  Workspace w;
  if (scratch_bytes_ > 0) w.scratch = backend_.allocate_for_launches(gpu_, scratch_bytes_);
  if (base_count_ > device::few_bases)
    w.addresses = backend_.allocate_for_launches(gpu_, base_count_ * sizeof(std::uint64_t));
  if (!operands_.empty())
    w.operands = backend_.allocate_for_launches(gpu_, operands_.size() * sizeof(std::uint64_t));
  for (const Ready& l : launches_)
    if (l.called) w.called.push_back(l.called->program->take_workspace());
  return w;
}

device::Bases CudaExecutable::bind(Turn& turn, std::span<void* const> bases, const Workspace& w) const {
  device::Bases bound{};
  std::vector<std::uint64_t> all;
  for (void* const b : bases) all.push_back(reinterpret_cast<std::uint64_t>(b));
  if (w.addresses) {
    turn.upload(w.addresses->data, all.data(), all.size() * sizeof all[0]);
    bound.many = static_cast<const std::uint64_t*>(w.addresses->data);
  } else {
    std::copy(all.begin(), all.end(), bound.few);
  }
  if (w.operands) {
    all.clear();
    for (const Ref& r : operands_) all.push_back(reinterpret_cast<std::uint64_t>(address_of(bases, r)));
    turn.upload(w.operands->data, all.data(), all.size() * sizeof all[0]);
  }
  return bound;
}

KernelHandle CudaExecutable::kernel_of(std::size_t launch, const std::vector<KernelHandle>* printed) const {
  return printed != nullptr && (*printed)[launch] != nullptr ? (*printed)[launch] : launches_[launch].kernel;
}

void CudaExecutable::ask(Turn& turn, std::span<void* const> bases, const device::Bases& bound,
                         const Workspace& w) const {
  const std::vector<KernelHandle>* const printed = printed_kernels();
  auto called = w.called.begin();
  std::size_t operand = 0;  // of `operands_`, the first of the next call by addresses
  for (std::size_t k = 0; k < launches_.size(); k++) {
    const Ready& l = launches_[k];
    if (l.called) {
      const ProgramCall& call = l.called->call;
      const CudaExecutable& program = *l.called->program;
      std::vector<void*> inner;
      for (std::int64_t run = 0; run < call.trip; run++) {
        call.items[0].addresses(run, bases.data(), inner);
        program.ask(turn, inner, program.bind(turn, inner, *called), *called);
      }
      ++called;
      continue;
    }
    if (!l.products.empty()) {
      ask_products(turn, l, bases, w, operand);
      continue;
    }
    Arguments arguments = arguments_of(l, bound, w);
    turn.launch(kernel_of(k, printed), l.grid, arguments.addresses().data(), l.step);
  }
}

void CudaExecutable::ask_products(Turn& turn, const Ready& launch, std::span<void* const> bases,
                                  const Workspace& w, std::size_t& operand) const {
  for (const ReadyProduct& p : launch.products) {
    const ProductCall& call = p.plan.call;
    const auto place = [&](const ProductMatrix& m) -> void* {
      if (!call.by_pointers()) return address_of(bases, m.refs[0]);
      operand += m.refs.size();
      return static_cast<std::uint64_t*>(w.operands->data) + (operand - m.refs.size());
    };
    const void* const first = place(call.first);
    const void* const second = place(call.second);
    void* const memory = w.scratch ? w.scratch->data : nullptr;
    const int status =
        multiply(*p.library, p.handle, p.plan, first, second, place(call.result), memory, turn.stream());
    if (status != 0) turn.fail("cublasLtMatmul", p.library->status_name(status), launch.step);
  }
}

}  // namespace shardarray::cuda
