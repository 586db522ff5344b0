#include "cuda/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "cuda/launch.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

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

/// The items on one GPU. What a step calls is the concern of all of them.
Step part_on(const Step& step, const Gpu* gpu, const std::vector<Gpu*>& of_device) {
  Step part = step;
  std::visit(
      [&]<class Body>(Body& body) {
        if constexpr (!std::is_same_v<Body, ProgramCall>)
          std::erase_if(body.items, [&](const auto& item) {
            return of_device[static_cast<std::size_t>(item.device)] != gpu;
          });
      },
      part.body);
  return part;
}
/// Does a GPU read what is in another one's memory?
bool crosses(const Step& step, const std::vector<Gpu*>& of_device) {
  const auto* const x = std::get_if<Exchange>(&step.body);
  if (x == nullptr) return false;
  const auto gpu = [&](int device) { return of_device[static_cast<std::size_t>(device)]; };
  for (const Exchange::Item& item : x->items)
    for (const Exchange::Piece& piece : item.pieces)
      for (const Exchange::Source& s : piece.sources)
        if (gpu(s.device) != gpu(item.device)) return true;
  return false;
}

/// Several runs' ends at once.
class AllDone final : public Completion {
 public:
  explicit AllDone(std::vector<CompletionRef> all) : all_(std::move(all)) {}
  void wait() const override {
    for (const CompletionRef& c : all_) c->wait();
  }

 private:
  std::vector<CompletionRef> all_;
};

}  // namespace

CudaExecutable::CudaExecutable(CudaBackend& backend, const std::vector<Gpu*>& gpus,
                               std::shared_ptr<const Program> program, std::uint64_t alignment, bool printed)
    : base_count_(program->base_count), received_(received_by(*program)) {
  std::vector<Gpu*> each = gpus;
  std::sort(each.begin(), each.end(), [](const Gpu* a, const Gpu* b) { return a->number() < b->number(); });
  each.erase(std::unique(each.begin(), each.end()), each.end());
  if (printed && each.size() == 1) kernel_ = ProgramKernel::of(backend, *each[0], program, alignment);
  const bool step_by_step = printed && kernel_ == nullptr;
  std::vector<std::vector<Launch>> launches(each.size());
  std::vector<std::string> named;
  for (const Step& step : program->steps) {
    if (std::holds_alternative<ProgramCall>(step.body)) {
      std::vector<Launch> call;
      add_step_launches(step, alignment, call);
      named.push_back(spelled(step.label, step.where));
      stages_.emplace_back().called = std::make_unique<Called>(
          Called{*call[0].call, std::make_unique<CudaExecutable>(backend, gpus, call[0].call->program,
                                                                 call[0].alignment, step_by_step)});
      continue;
    }
    Stage stage;
    stage.meets = each.size() > 1 && crosses(step, gpus);
    bool empty = true;
    for (std::size_t g = 0; g < each.size(); g++) {
      std::vector<Launch>& to = launches[g];
      stage.first.push_back(to.size());
      if (each.size() == 1) add_step_launches(step, alignment, to);
      else add_step_launches(part_on(step, each[g], gpus), alignment, to);
      stage.last.push_back(to.size());
      if (stage.first[g] == stage.last[g]) continue;
      if (empty) named.push_back(spelled(step.label, step.where));
      empty = false;
    }
    if (empty) continue;
    const bool goes_on = !stages_.empty() && !stages_.back().called && !stages_.back().meets && !stage.meets;
    if (goes_on) stages_.back().last = stage.last;
    else stages_.push_back(std::move(stage));
  }
  for (std::size_t g = 0; g < each.size(); g++)
    gpus_.push_back(std::make_unique<GpuLaunches>(backend, *each[g], launches[g], base_count_, step_by_step));
  if (named.empty()) return;
  steps_ = std::make_shared<std::string>(
      named.size() == 1 ? named[0] : fmt::format("{} to {}", named.front(), named.back()));
  replays_wanted_ = can_be_replayed();
}

void CudaExecutable::prepare() const {
  if (kernel_) kernel_->expect_runs();
  for (const auto& g : gpus_) g->expect_runs();
}

void CudaExecutable::count_run() const {
  if (kernel_) kernel_->count_run();
  for (const auto& g : gpus_) g->count_run();
}

CompletionRef CudaExecutable::run(std::span<void* const> bases, RunReport* report) const {
  if (bases.size() != base_count_)
    throw InternalError(
        fmt::format("run: {} base pointers, the program has {}. Every input, output and scratch arena has "
                    "one. Please report this.",
                    bases.size(), base_count_));
  if (report != nullptr) report->received = received_;
  if (stages_.empty()) return nullptr;
  if (replays_wanted_ && !is_one_kernel()) {
    Turn turn(gpus_[0]->gpu());
    if (replay(turn, bases, nullptr)) return turn.done(steps_);
  }
  const Workspace w = take_workspace();  // given back when all is asked for: whoever gets it next asks later
  std::deque<Turn> turns;  // in the order of the GPUs, so that no two askers wait for each other
  std::vector<Turn*> all;
  for (const auto& g : gpus_) all.push_back(&turns.emplace_back(g->gpu()));
  if (all.size() > 1) ask_together(all, bases, w);
  else if (w.one_kernel || !replay(*all[0], bases, &w)) ask(all, bases, bind(all, bases, w), w);
  std::vector<CompletionRef> ends;
  for (Turn* const t : all) {
    if (all.size() > 1) t->here();
    ends.push_back(t->done(steps_));
  }
  return ends.size() == 1 ? ends[0] : std::make_shared<AllDone>(std::move(ends));
}

// What a run that fails has asked of one GPU may read what the others are about to give back.
void CudaExecutable::ask_together(Turns turns, std::span<void* const> bases, const Workspace& w) const {
  try {
    ask(turns, bases, bind(turns, bases, w), w);
  } catch (...) {
    for (Turn* const t : turns) {
      try {
        t->here();
        t->wait();
      } catch (const Error&) {  // lost: whoever asks next hears of it
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
    if (s.called) w.called.push_back(s.called->program->take_workspace());
  return w;
}

CudaExecutable::Bound CudaExecutable::bind(Turns turns, std::span<void* const> bases,
                                           const Workspace& w) const {
  Bound bound;
  if (w.one_kernel) return bound;  // all of them come with the launch
  for (std::size_t g = 0; g < gpus_.size(); g++) {
    if (gpus_.size() > 1) turns[g]->here();
    bound.push_back(gpus_[g]->bind(*turns[g], bases, w.gpus[g]));
  }
  return bound;
}

void CudaExecutable::ask(Turns turns, std::span<void* const> bases, const Bound& bound,
                         const Workspace& w) const {
  if (w.one_kernel) {
    replays_.clear();  // of its launches, which are not asked for any more
    return kernel_->ask(*turns[0], bases, w.scratch, *steps_);
  }
  count_run();
  auto called = w.called.begin();
  std::vector<std::size_t> operands(gpus_.size(), 0);
  for (const Stage& s : stages_) {
    if (s.called) {
      ask_called(turns, *s.called, bases, *called++);
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
                                const Workspace& w) const {
  std::vector<void*> inner;
  for (std::int64_t run = 0; run < called.call.trip; run++) {
    called.call.items[0].addresses(run, bases.data(), inner);
    called.program->ask(turns, inner, called.program->bind(turns, inner, w), w);
  }
}

}  // namespace shardarray::cuda
