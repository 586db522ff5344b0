#include "cuda/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/small_vector.h"
#include "cuda/launch.h"
#include "cuda/step_launches.h"
#include "runtime/step_ranges.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

/// Bytes received from other devices, by transfer.
std::vector<std::int64_t> received_by(const Program& program, const LocalPart* part) {
  std::vector<std::int64_t> received(program.transfers.size(), 0);
  for (const PartBox& b : part != nullptr ? std::span(part->boxes) : std::span<const PartBox>())
    if (b.transfer >= 0) received[static_cast<std::size_t>(b.transfer)] += static_cast<std::int64_t>(b.bytes);
  for (const Step& step : program.steps) {
    if (const auto* const call = std::get_if<ProgramCall>(&step.body)) {
      auto to = received.begin() + call->first_transfer;
      for (const std::int64_t bytes : received_by(*call->program, call->part.get()))
        *to++ += bytes * call->trip;
    }
    const auto* const x = std::get_if<Exchange>(&step.body);
    if (x == nullptr || x->transfer < 0) continue;
    for (const Exchange::Item& item : x->items)
      for (const Exchange::Piece& piece : item.pieces) {
        if (lies_there(piece)) continue;
        const auto foreign =
            std::count_if(piece.sources.begin(), piece.sources.end(),
                          [&](const Exchange::Source& s) { return s.device != item.device; });
        received[static_cast<std::size_t>(x->transfer)] +=
            num_elements(piece.extents) * static_cast<std::int64_t>(itemsize(x->dtype)) * foreign;
      }
  }
  return received;
}

/// Fuses the products added last with the loop that comes next, on each GPU that has items of both.
void add_epilogues(const ProductEpilogue& both, const GpuPlaces& where, std::uint64_t alignment,
                   std::vector<std::vector<KernelLaunch>>& launches) {
  for (std::size_t g = 0; g < launches.size(); g++) {
    ProductEpilogue here = both;
    here.gemm.items.clear();
    here.biases.clear();
    for (std::size_t i = 0; i < both.gemm.items.size(); i++) {
      const Gemm::Item& item = both.gemm.items[i];
      if (where.of_device[static_cast<std::size_t>(item.device)] != static_cast<int>(g)) continue;
      here.gemm.items.push_back(item);
      if (!both.biases.empty()) here.biases.push_back(both.biases[i]);
    }
    if (!here.gemm.items.empty()) add_epilogue_calls(here, alignment, launches[g].back());
  }
}

/// The ends of a run on several GPUs.
class AllDone final : public Completion {
 public:
  explicit AllDone(std::vector<CompletionRef> all) : all_(std::move(all)) {}
  void wait() const override {
    for (const CompletionRef& c : all_) c->wait();
  }

 private:
  std::vector<CompletionRef> all_;
};

/// Turns of all GPUs, always taken in the same order, so that no two threads deadlock.
class AllTurns {
 public:
  explicit AllTurns(const std::vector<std::unique_ptr<GpuLaunches>>& gpus) : first_(gpus[0]->gpu()) {
    all_.push_back(&first_);
    for (std::size_t g = 1; g < gpus.size(); g++) all_.push_back(&others_.emplace_back(gpus[g]->gpu()));
  }
  operator std::span<Turn* const>() const { return {all_.begin(), all_.end()}; }

 private:
  Turn first_;
  std::list<Turn> others_;
  SmallVector<Turn*, 8> all_;
};

}  // namespace

CudaExecutable::CudaExecutable(CudaBackend& backend, const GpuPlaces& where,
                               std::shared_ptr<const Program> program, std::uint64_t alignment, bool printed,
                               std::shared_ptr<const LocalPart> part)
    : base_count_(program->base_count),
      part_(std::move(part)),
      backend_(backend),
      received_(received_by(*program, part_.get())) {
  const std::size_t gpus = where.gpus.size();
  if (part_) {
    std::vector<bool> is_here;
    for (const int gpu : where.of_device) is_here.push_back(gpu >= 0);
    program = with_own_sources(*program, is_here);
  }
  if (printed && gpus == 1 && !part_)
    kernel_ = ProgramKernel::of(backend, *where.gpus[0], program, alignment);
  const bool step_by_step = printed && kernel_ == nullptr;
  std::vector<std::vector<KernelLaunch>> launches(gpus);
  std::vector<std::uint64_t> staging_bytes(gpus, 0);
  std::vector<std::string> named;
  for (std::size_t k = 0; k < program->steps.size(); k++) {
    const Step& step = program->steps[k];
    add_crossings(backend.host(), where, *program, k, named);
    if (std::holds_alternative<ProgramCall>(step.body)) {
      std::vector<KernelLaunch> call;
      add_step_launches(step, alignment, call);
      named.push_back(spelled(step.label, step.where));
      stages_.emplace_back().called = std::make_unique<Called>(
          Called{*call[0].call,
                 std::make_unique<CudaExecutable>(backend, where, call[0].call->program, call[0].alignment,
                                                  step_by_step, call[0].call->part)});
    } else if (auto branches = branches_of(backend, where, step, alignment, step_by_step)) {
      named.push_back(spelled(step.label, step.where));
      stages_.emplace_back().branches = std::move(branches);
    } else if (auto host = HostStep::of(backend.host(), where, step)) {
      named.push_back(spelled(step.label, step.where));
      stages_.emplace_back().host = std::move(host);
    } else if (gpus == 1) {
      add(std::span(&step, 1), false, alignment, launches, named);
    } else {
      for (GpuSteps& s : gpu_steps(step, where, program->base_count, staging_bytes)) {
        if (!s.nccl) {
          add(s.of_gpu, s.meets, alignment, launches, named);
          continue;
        }
        named.push_back(s.nccl->step());
        stages_.emplace_back().nccl = std::move(s.nccl);
      }
    }
    const auto* const gemm = std::get_if<Gemm>(&step.body);
    if (gemm == nullptr || multiply_adds(*gemm) <= product_limits().guessed) continue;
    if (const auto both = product_epilogue(*program, k)) add_epilogues(*both, where, alignment, launches);
  }
  add_crossings(backend.host(), where, *program, program->steps.size(), named);
  for (std::size_t g = 0; g < gpus; g++)
    gpus_.push_back(std::make_unique<GpuLaunches>(backend, *where.gpus[g], std::move(launches[g]),
                                                  base_count_, staging_bytes[g]));
  if (step_by_step)
    for (const auto& g : gpus_) g->print_loops();
  if (named.empty()) return;
  steps_ = std::make_shared<std::string>(
      named.size() == 1 ? named[0] : fmt::format("{} to {}", named.front(), named.back()));
  replays_wanted_ = can_be_replayed();
}

void CudaExecutable::add(std::span<const Step> of_gpu, bool meets, std::uint64_t alignment,
                         std::vector<std::vector<KernelLaunch>>& launches, std::vector<std::string>& named) {
  Stage stage;
  stage.meets = meets;
  bool empty = true;
  for (std::size_t g = 0; g < launches.size(); g++) {
    std::vector<KernelLaunch>& to = launches[g];
    stage.first.push_back(to.size());
    add_step_launches(of_gpu[g], alignment, to);
    stage.last.push_back(to.size());
    if (stage.first[g] == stage.last[g]) continue;
    if (empty) named.push_back(spelled(to.back().label, to.back().where));
    empty = false;
  }
  if (empty) return;
  const bool goes_on = !stages_.empty() && stages_.back().is_launches() && !stages_.back().meets && !meets;
  if (goes_on) stages_.back().last = stage.last;
  else stages_.push_back(std::move(stage));
}

void CudaExecutable::add_crossings(HostBackend host, const GpuPlaces& where, const Program& program,
                                   std::size_t step, std::vector<std::string>& named) {
  if (!part_) return;
  for (const std::span<const PartBox> boxes : crossings(part_->boxes, step)) {
    auto crossing = std::make_unique<Crossing>(host, where, program, boxes);
    named.push_back(crossing->step());
    stages_.emplace_back().crossing = std::move(crossing);
  }
}

std::unique_ptr<SharedRun> CudaExecutable::shared_run(std::uint64_t numbers, SharedRun* caller) const {
  return part_ && !part_->peers.empty() ? std::make_unique<SharedRun>(backend_, *part_, numbers, caller)
                                        : nullptr;
}

void CudaExecutable::prepare() const {
  if (kernel_) kernel_->expect_runs();
  for (const auto& g : gpus_) g->expect_runs();
}

void CudaExecutable::count_run() const {
  if (kernel_) kernel_->count_run();
  for (const auto& g : gpus_) g->count_run();
}

void CudaExecutable::print_loops() const {
  for (const auto& g : gpus_) g->print_loops();
  for (const Stage& s : stages_)
    for (const Called& c : s.programs()) c.program->print_loops();
}

void CudaExecutable::print_what_failed() const {
  if (kernel_ && kernel_->has_failed() && !made_up_for_kernel_.exchange(true)) return print_loops();
  for (const Stage& s : stages_)
    for (const Called& c : s.programs()) c.program->print_what_failed();
}

CompletionRef CudaExecutable::run(std::span<void* const> bases, RunReport* report,
                                  std::uint64_t numbers) const {
  if (bases.size() != base_count_)
    throw InternalError(
        fmt::format("run: {} base pointers, the program has {}. Every input, output and scratch arena has "
                    "one. Please report this.",
                    bases.size(), base_count_));
  if (report != nullptr) report->received = received_;
  if (part_) return run_part(bases, numbers);
  if (stages_.empty()) return nullptr;
  print_what_failed();
  count_run();
  const int printed =
      replays_wanted_ ? printed_programs() : 0;  // before the workspace, which serves these or newer ones
  if (replays_wanted_ && !is_one_kernel()) {
    const AllTurns turns(gpus_);
    if (CompletionRef end = asked(turns, bases, nullptr, printed)) return end;
  }
  const Workspace w = workspace();  // returned once all is enqueued: whoever gets it next enqueues later
  const AllTurns turns(gpus_);
  return asked(turns, bases, &w, printed);
}

// Runs begin in the order in which they get the GPUs' turns. The other processes hear of earlier failures too.
CompletionRef CudaExecutable::run_part(std::span<void* const> bases, std::uint64_t numbers) const {
  print_what_failed();
  count_run();
  Workspace w;
  std::exception_ptr failure;
  try {
    w = workspace();
  } catch (...) { failure = std::current_exception(); }
  const AllTurns turns(gpus_);
  const std::unique_ptr<SharedRun> shared = shared_run(numbers);
  if (failure) {
    if (shared) shared->fail(failure);
    std::rethrow_exception(failure);
  }
  if (!stages_.empty()) return asked(turns, bases, &w, 0, shared.get());
  if (shared) shared->finish(turns);
  return nullptr;
}

// Graphs keep their workspaces; if memory runs out, they are dropped.
CudaExecutable::Workspace CudaExecutable::workspace() const {
  try {
    return take_workspace();
  } catch (const OutOfMemory&) {
    const AllTurns turns(gpus_);
    if (replays_.empty()) throw;
    replays_.clear();
  }
  return take_workspace();
}

// On failure one GPU's launches may still read memory that the other GPUs are about to free, so this waits for all.
CompletionRef CudaExecutable::asked(Turns turns, std::span<void* const> bases, const Workspace* w,
                                    int printed, SharedRun* shared) const {
  try {
    if ((w != nullptr && w->one_kernel) || !replay(turns, bases, w, printed)) {
      if (w == nullptr) return nullptr;
      ask(turns, bases, bind(turns, bases, *w), *w, shared);
      if (shared != nullptr) shared->finish(turns);
    }
    if (turns.size() == 1) return turns[0]->done(steps_);
    std::vector<CompletionRef> ends;
    for (Turn* const t : turns) {
      t->here();
      ends.push_back(t->done(steps_));
    }
    return std::make_shared<AllDone>(std::move(ends));
  } catch (...) {
    if (shared != nullptr) shared->fail(std::current_exception());
    for (Turn* const t : turns.size() > 1 ? turns : Turns()) {
      try {
        t->here();
        t->wait();
      } catch (const Error&) {  // lost: the next use reports it
      }
    }
    throw;
  }
}

CudaExecutable::Workspace CudaExecutable::take_workspace() const {
  Workspace w;
  w.one_kernel = is_one_kernel();
  if (w.one_kernel) {
    w.scratch = kernel_->take_scratch();
    return w;
  }
  for (const auto& g : gpus_) w.gpus.push_back(g->take_workspace());
  for (const Stage& s : stages_)
    for (const Called& c : s.programs()) w.called.push_back(c.program->take_workspace());
  return w;
}

CudaExecutable::Bound CudaExecutable::bind(Turns turns, std::span<void* const> bases,
                                           const Workspace& w) const {
  Bound bound;
  if (w.one_kernel) return bound;  // all addresses come with the launch
  for (std::size_t g = 0; g < gpus_.size(); g++) {
    if (gpus_.size() > 1) turns[g]->here();
    bound.push_back(gpus_[g]->bind(*turns[g], bases, w.gpus[g]));
  }
  return bound;
}

void CudaExecutable::ask(Turns turns, std::span<void* const> bases, const Bound& bound, const Workspace& w,
                         SharedRun* shared) const {
  if (w.one_kernel) {
    replays_.clear();  // of its launches, which are no longer used
    return kernel_->ask(*turns[0], bases, w.scratch, *steps_);
  }
  std::vector<void*> staging;
  for (const auto& g : w.gpus) staging.push_back(g.staging ? g.staging->data : nullptr);
  auto called = w.called.begin();
  std::vector<std::size_t> operands(gpus_.size(), 0);
  for (const Stage& s : stages_) {
    if (s.called) {
      ask_called(turns, *s.called, bases, *called++, shared);
      continue;
    }
    if (s.branches) {
      ask_branches(turns, *s.branches, bases, &*called, shared);
      called += std::ssize(s.branches->programs);
      continue;
    }
    if (s.nccl) {
      s.nccl->ask(turns, bases, staging);
      continue;
    }
    if (s.host) {
      s.host->ask(turns, bases);
      continue;
    }
    if (s.crossing) {
      s.crossing->ask(turns, bases, *shared);
      continue;
    }
    if (s.meets) meet(turns);
    for (std::size_t g = 0; g < gpus_.size(); g++) {
      if (s.first[g] == s.last[g]) continue;
      if (gpus_.size() > 1) turns[g]->here();
      gpus_[g]->ask(*turns[g], s.first[g], s.last[g], bases, bound[g], w.gpus[g], operands[g]);
    }
    if (s.meets) meet(turns);
  }
}

void CudaExecutable::ask_called(Turns turns, const Called& called, std::span<void* const> bases,
                                const Workspace& w, SharedRun* shared) const {
  for (std::int64_t run = 0; run < called.call.trip; run++) ask_once(turns, called, run, bases, w, shared);
}

void CudaExecutable::ask_once(Turns turns, const Called& called, std::int64_t run,
                              std::span<void* const> bases, const Workspace& w, SharedRun* shared) const {
  std::vector<void*> inner;
  called.program->count_run();
  called.call.items[0].addresses(run, bases.data(), inner);
  const CudaExecutable& program = *called.program;
  const std::unique_ptr<SharedRun> own = program.shared_run(0, shared);
  program.ask(turns, inner, program.bind(turns, inner, w), w, own.get());
}

}  // namespace shardarray::cuda
