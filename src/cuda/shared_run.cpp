#include "cuda/shared_run.h"

#include <list>
#include <utility>

#include "cuda/backend.h"
#include "shardarray/error.h"

namespace shardarray::cuda {

void Ends::end_late(int, std::exception_ptr failure) {
  if (failure && !has_failure_.exchange(true)) {
    failure_ = std::move(failure);
    has_failed_.store(true, std::memory_order_release);
  }
  open_.fetch_sub(1, std::memory_order_release);  // last: afterwards the owner may destroy this
}

void Ends::look() const {
  if (has_failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
}

SharedRun::SharedRun(CudaBackend& backend, const LocalPart& part, std::uint64_t numbers, SharedRun* caller)
    : part_(part), run_(backend.transport().begin(part.peers, part.fingerprint, numbers)) {
  if (caller != nullptr) nccl_ = caller->nccl_;
  if (caller != nullptr || !backend.has_nccl_between()) return;
  try {
    nccl_ = &backend.between(part.peers, *this);
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
}

void SharedRun::look() {
  run_->advance();
  run_->look();
}

void SharedRun::wait(const Ends& ends) {
  for (Pause pause; !ends.have_ended(); pause()) run_->advance();
}

Nccl::Id SharedRun::same_id(std::optional<int> peer) {
  Nccl::Id id;
  if (!peer) id = new_nccl_id();
  Ends ends;
  const auto parcel = [&](int to) {
    return Parcel{to, parcel_of_the_begin, &id, sizeof id, -1, "what joins GPUs by NCCL"};
  };
  try {
    if (peer) ends.add([&](LateEnd end) { run_->complete(parcel(*peer), end); });
    for (const int p : peer ? std::span<const int>() : std::span(part_.peers))
      ends.add([&](LateEnd end) { run_->post(parcel(p), end); });
  } catch (...) {
    fail(std::current_exception());
    wait(ends);
    throw;
  }
  wait(ends);
  ends.look();
  return id;
}

// Waiting for NCCL means waiting for the other processes; the transport knows whether they are alive.
void SharedRun::finish(std::span<Turn* const> turns) {
  if (nccl_ == nullptr) return;
  static const std::string step = "the end of a run over several processes";
  std::list<Mark> marks;
  for (Turn* const t : turns) {
    t->here();
    Mark& m = marks.emplace_back(t->gpu());
    m.check(m.record(), "cudaEventRecord", step);
  }
  for (Pause pause; !marks.empty(); pause()) {
    look();
    look_after_collectives();
    std::erase_if(marks, [&](const Mark& m) {
      const Status status = m.status();
      if (status == not_ready) return false;
      m.check(status, "cudaEventQuery", step);
      return true;
    });
    for (Turn* const t : turns) t->gpu().throw_if_lost();
  }
}

void SharedRun::fail(const std::exception_ptr& why) noexcept {
  run_->fail(why);
  if (nccl_ == nullptr || nccl_->communicator == nullptr || !is_under_way(*nccl_->communicator)) return;
  try {
    std::rethrow_exception(why);
  } catch (const Error& e) { give_up_nccl(e.text()); } catch (const std::exception& e) {
    give_up_nccl(e.what());
  } catch (...) { give_up_nccl("a run over several processes has failed"); }
}

}  // namespace shardarray::cuda
