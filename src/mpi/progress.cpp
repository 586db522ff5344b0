#include "mpi/progress.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <limits>

#include "base/count_text.h"
#include "base/env.h"
#include "base/sizes.h"
#include "runtime/program.h"
#include "shardarray/error.h"

namespace shardarray::mpi {
namespace {

constexpr auto spin = std::chrono::microseconds(200);  // after that the thread sleeps between polls
constexpr auto shortest_sleep = std::chrono::microseconds(20), longest_sleep = std::chrono::microseconds(500),
               idle_sleep = std::chrono::microseconds(20'000);
constexpr auto idle_after = std::chrono::milliseconds(100);
constexpr auto look_interval = std::chrono::milliseconds(10);  // for late peers
constexpr std::uint64_t tags_of_a_run = std::uint64_t{1} << 18;

constexpr std::int64_t most_gathered = std::numeric_limits<int>::max();
constexpr const char* over =
    "processes: this process is at its end and has left the others. Compute with them before the program "
    "ends.";

std::atomic<bool> wants_print{false};

/// Announces a run. As text, because the peers' machines may differ.
std::string begun(std::uint64_t number, std::uint64_t fingerprint) {
  return fmt::format("b {} {}", number, fingerprint);
}

}  // namespace

void Progress::Box::end(const std::string& failure) const {
  ended(failure.empty() ? nullptr : std::make_exception_ptr(TransportError(failure)));
}

void Progress::Job::refuse(const std::string& why) {
  if (box && box->run) box->end(why);
  if (gathering) gathering->result.set_exception(std::make_exception_ptr(TransportError(why)));
}

Progress::Progress(int expected) : timeout_(comm_timeout()) {
  const auto start = std::make_shared<Start>();
  thread_ = std::thread([this, expected, start] {
    std::unique_ptr<Link> link;
    std::exception_ptr failure;
    try {
      link = std::make_unique<Link>();
      if (link->count() != expected)
        throw DeviceError(fmt::format(
            "processes: a launcher has started {}, and MPI joins {}. Each would run for itself. Start them "
            "by the mpirun of the same MPI or by srun --mpi=pmix, or set SHARDARRAY_PROCESSES=alone.",
            count_text(expected, "process"), link->count()));
    } catch (...) {
      link.reset();
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(start->mutex);
      if (start->is_given_up) return static_cast<void>(link.release());  // MPI stays as it is
      if (!failure) take_over(std::move(link));
      start->is_over = true;
      start->failure = failure;
    }
    start->changed.notify_one();
    if (!failure) work();
  });
  std::unique_lock lock(start->mutex);
  const auto is_over = [&] { return start->is_over; };
  if (timeout_.count() == 0) start->changed.wait(lock, is_over);
  else start->changed.wait_for(lock, timeout_, is_over);
  if (!start->is_over) {
    start->is_given_up = true;
    thread_.detach();
    throw DeviceError(fmt::format(
        "processes: MPI has not started within {} s. It starts when all {} that the launcher has started use "
        "the library. Look at what the others do, or set SHARDARRAY_COMM_TIMEOUT longer.",
        timeout_.count() / 1000, count_text(expected, "process")));
  }
  if (start->failure) {
    lock.unlock();
    thread_.join();
    std::rethrow_exception(start->failure);
  }
  lock.unlock();
  struct sigaction now {};
  if (sigaction(SIGUSR1, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    now.sa_handler = [](int) { wants_print = true; };
    now.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &now, nullptr);
  }
}

void Progress::take_over(std::unique_ptr<Link> link) {
  link_ = std::move(link);
  index_ = link_->index();
  count_ = link_->count();
  peers_.resize(static_cast<std::size_t>(count_));
  tags_of_run_ = std::min(tags_of_a_run, link_->most_tags() / 2);
  run_slots_ = link_->most_tags() / tags_of_run_;
}

// ---------------------------------------------------------------- requests from other threads

// While runs are open the thread polls often enough: their waiters poll too, which is faster than waking it.
void Progress::add(Job job) {
  const bool of_run = job.kind == Job::Kind::box || job.kind == Job::Kind::leave;
  std::unique_lock lock(mutex_);
  if (is_over_) {
    lock.unlock();
    return job.refuse(over);
  }
  jobs_.push_back(std::move(job));
  has_jobs_.store(true);
  lock.unlock();
  if (of_run ? is_idle_.load() : is_asleep_.load()) changed_.notify_one();
}

// Throws in a forked child, after leaving the others, or after a failure.
void Progress::need_link() const {
  if (is_forked_)
    throw TransportError(
        "processes: this process was forked from one that the launcher has started, and is not one of them. "
        "Compute with the others there.");
  if (is_over_) throw TransportError(over);
  if (has_failed_.load(std::memory_order_acquire)) throw TransportError(failure_);
}

void Progress::advance() noexcept {
  const std::unique_lock lock(speaking_, std::try_to_lock);
  if (!lock || !link_) return;
  look();
  advanced_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

std::shared_ptr<const SharedRun> Progress::begin(std::span<const int> peers,
                                                 std::shared_ptr<const Fingerprint> fingerprint,
                                                 std::uint64_t numbers) {
  need_link();
  auto run = std::make_shared<SharedRun>();
  run->fingerprint = std::move(fingerprint);
  run->given = numbers;
  {
    const std::lock_guard lock(mutex_);  // queued in the order of their numbers
    if (is_over_) throw TransportError(over);
    for (const int p : peers) run->numbers[p] = begun_[p]++;
    jobs_.push_back({Job::Kind::begin, run});
    has_jobs_.store(true);
  }
  if (is_idle_.load()) changed_.notify_one();
  return run;
}

void Progress::ask(const std::shared_ptr<const SharedRun>& run, bool sent, const Parcel& parcel,
                   LateEnd ended) {
  add({Job::Kind::box, nullptr, Box{run, sent, parcel, ended, Clock::now(), {}}});
}
void Progress::leave(const std::shared_ptr<const SharedRun>& run) { add({Job::Kind::leave, run}); }
void Progress::fail(const std::string& why) {
  add({Job::Kind::fail, nullptr, std::nullopt, fmt::format("process {} has failed: {}", index_, why)});
}

std::vector<std::string> Progress::all_gather(const std::string& what, const std::string& mine) {
  need_link();
  auto g = std::make_unique<Gathering>();
  g->mine = what + '\0' + mine;
  auto result = g->result.get_future();
  add({Job::Kind::gather, nullptr, std::nullopt, {}, std::move(g)});
  std::vector<std::string> all = result.get();
  for (std::size_t p = 0; p < all.size(); p++) {
    const std::size_t zero = all[p].find('\0');
    if (all[p].substr(0, zero) != what) {  // from here on, answers would belong to other questions
      const std::string text = fmt::format(
          "processes: process {} asks for `{}` where process {} asks for `{}`. All processes "
          "call the same in the same order. Compare their programs.",
          index_, what, p, all[p].substr(0, zero));
      add({Job::Kind::fail, nullptr, std::nullopt, text});
      throw TransportError(text);
    }
    all[p].erase(0, zero + 1);
  }
  return all;
}

void Progress::end() {
  if (is_forked_) return;
  add({Job::Kind::end});
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_leaving_; });
  const auto has_left = [&] { return has_left_; };
  if (timeout_.count() == 0) changed_.wait(lock, has_left);
  else changed_.wait_for(lock, timeout_, has_left);
  const bool ended = has_left_;
  lock.unlock();
  if (ended) return thread_.join();
  fmt::print(
      stderr,
      "shardarray: processes: MPI_Finalize has not returned within {} s: another process has stopped in "
      "it. This one ends without it.\n",
      timeout_.count() / 1000);
  thread_.detach();
}

// ---------------------------------------------------------------- the thread

void Progress::work() {
  auto last = Clock::now(), looked = last;
  auto pause = shortest_sleep;
  for (;;) {
    std::unique_lock speaking(speaking_);
    const bool moved = look();
    const auto now = Clock::now();
    if (moved) {
      last = now;
      pause = shortest_sleep;
    }
    try {
      if (now - looked > look_interval) {
        looked = now;
        look_for_late_ones();
        if (wants_print.exchange(false)) print_waiting();
      }
      if (ending_ && waiting_.empty() && moving_.empty() && gatherings_.empty()) {
        const bool all_ended = std::all_of(peers_.begin(), peers_.end(), [&](const Peer& p) {
          return p.has_ended || &p == &peers_[static_cast<std::size_t>(index_)];
        });
        if (all_ended && link_->notes_are_gone()) return leave_mpi();
      }
    } catch (const std::exception& e) { get_stuck(e); }
    const bool has_work =
        !waiting_.empty() || !moving_.empty() || !gatherings_.empty() || ending_ || !runs_.empty();
    speaking.unlock();
    const Clock::time_point advanced{Clock::duration(advanced_.load(std::memory_order_relaxed))};
    if (now - last < spin && now - advanced > spin) {
      sched_yield();
      continue;
    }
    const bool is_idle = !has_work && now - std::max(last, advanced) > idle_after;
    std::unique_lock lock(mutex_);
    is_idle_.store(is_idle);
    is_asleep_.store(true);
    if (!has_jobs_.load() || now - advanced <= spin) changed_.wait_for(lock, is_idle ? idle_sleep : pause);
    is_asleep_.store(false);
    is_idle_.store(false);
    pause = std::min(2 * pause, longest_sleep);
  }
}

bool Progress::look() {
  bool moved = false;
  if (has_jobs_.load()) {
    std::vector<Job> jobs;
    {
      const std::lock_guard lock(mutex_);
      jobs.swap(jobs_);
      has_jobs_.store(false);
    }
    for (Job& j : jobs) try {
        take(j);
      } catch (const std::exception& e) {
        get_stuck(e);
        j.refuse(failure_);  // unless take() has moved its contents
      }
    moved = true;
  }
  if (is_stuck_) return moved;  // MPI could still write to memory that has been reused
  try {
    for (Note note; link_->next(note); moved = true) hear(note);
    link_->notes_are_gone();
    for (std::size_t k = 0; k < waiting_.size();) {
      if (!start(waiting_[k])) {
        k++;
        continue;
      }
      moving_.push_back(std::move(waiting_[k]));
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(k));
      moved = true;
    }
    for (std::size_t k = 0; k < moving_.size();) {
      Box& box = moving_[k];
      std::erase_if(box.parts, [](const TransferRef& t) { return t->test(); });
      if (!box.parts.empty()) {
        k++;
        continue;
      }
      const Box done = std::move(box);
      moving_.erase(moving_.begin() + static_cast<std::ptrdiff_t>(k));
      if (const auto run = runs_.find(done.run); run != runs_.end()) run->second = Clock::now();
      done.end("");
      moved = true;
    }
    moved |= advance_gathering();
  } catch (const std::exception& e) { get_stuck(e); }
  return moved;
}

void Progress::take(Job& job) {
  switch (job.kind) {
    case Job::Kind::begin:
      runs_[job.run] = Clock::now();
      if (has_failed_) return;
      for (const auto& [p, number] : job.run->numbers) {
        peers_[static_cast<std::size_t>(p)].ours[number] = job.run;
        link_->post(p, begun(number, job.run->value()));
        compare(p, number);
      }
      return;
    case Job::Kind::box:
      if (has_failed_) return job.box->end(failure_);
      waiting_.push_back(std::move(*job.box));
      return;
    case Job::Kind::leave: runs_.erase(job.run); return;
    case Job::Kind::fail: return fail_all(job.text, true);
    case Job::Kind::gather:
      if (has_failed_)
        return job.gathering->result.set_exception(std::make_exception_ptr(TransportError(failure_)));
      gatherings_.push_back(std::move(job.gathering));
      if (gatherings_.size() == 1) begin_gathering();
      return;
    case Job::Kind::end:
      ending_ = true;
      ending_since_ = asked_ = Clock::now();
      if (is_stuck_) return;
      for (int p = 0; p < count_; p++)
        if (p != index_) link_->post(p, "e");
      return;
  }
}

void Progress::hear(const Note& note) {
  Peer& peer = peers_[static_cast<std::size_t>(note.peer)];
  peer.heard = Clock::now();
  if (note.text == "?") {
    link_->post(note.peer, "!");  // the peer only asks whether this process is alive
  } else if (note.text.starts_with("b ")) {
    std::uint64_t number = 0, fingerprint = 0;
    (void)std::sscanf(note.text.c_str() + 2, "%lu %lu", &number, &fingerprint);
    peer.theirs[number] = fingerprint;
    compare(note.peer, number);
  } else if (note.text.starts_with("g ")) {
    peer.gathered++;
    peer.gathers = note.text.substr(2);
  } else if (note.text.starts_with("m ")) {
    hear_mark(peer, note);
  } else if (note.text == "e") {
    peer.has_ended = true;
    need_peers();
  } else if (note.text.starts_with("f ")) {
    fail_all(note.text.substr(2), false);
  }
}

// A run that both have begun must have the same program.
void Progress::compare(int p, std::uint64_t number) {
  Peer& peer = peers_[static_cast<std::size_t>(p)];
  const auto ours = peer.ours.find(number);
  const auto theirs = peer.theirs.find(number);
  if (ours == peer.ours.end()) return;
  if (theirs == peer.theirs.end()) return need_peers();
  if (peer.differing) return;  // no box of that run or a later one moves
  if (ours->second->value() != theirs->second) return post_marks(p, number, *ours->second);
  peer.ours.erase(ours);
  peer.theirs.erase(theirs);
  peer.agreed = std::max(peer.agreed, number + 1);
}

// An ended process begins no run and joins no gather. Once all have told their sizes, all give their bytes.
void Progress::need_peers() {
  const bool gathers = !gatherings_.empty() && gatherings_.front()->lengths.empty();
  for (int p = 0; p < count_; p++) {
    const Peer& peer = peers_[static_cast<std::size_t>(p)];
    if (!peer.has_ended || (peer.ours.empty() && !gathers)) continue;
    std::string where;
    if (gathers) where = fmt::format(" It is needed for `{}`.", gatherings_.front()->what());
    if (!peer.ours.empty() && peer.ours.begin()->second->fingerprint->marks.size() > 1)
      where = fmt::format(" It is needed for a program that begins with {}.",
                          peer.ours.begin()->second->fingerprint->marks[1].text);
    for (const Box& b : waiting_)
      if (b.parcel.peer == p) where = " It is needed for " + described(b) + ".";
    fail_all(fmt::format(
                 "process {} has ended, and process {} still computes with it.{} All processes compute the "
                 "same in the same order. Look at the output of process {}.",
                 p, index_, where, p),
             true);
    return;
  }
}

// Starts once both sides have begun the run. Boxes larger than one transfer go in parts, in order.
bool Progress::start(Box& box) {
  const int p = box.parcel.peer;
  const std::uint64_t number = box.run->numbers.at(p);
  if (number >= peers_[static_cast<std::size_t>(p)].agreed) return false;
  if (box.parcel.tag >= tags_of_run_)
    throw TransportError(
        fmt::format("processes: a run sends box {}, and the MPI here numbers {} of a run. Use fewer devices, "
                    "or an MPI with more tags.",
                    box.parcel.tag, tags_of_run_));
  const std::uint64_t tag = number % run_slots_ * tags_of_run_ + box.parcel.tag;
  auto* at = static_cast<std::byte*>(box.parcel.memory);
  for (std::size_t left = box.parcel.bytes;;) {
    const std::size_t bytes = std::min(left, Link::most_bytes);
    box.parts.push_back(box.sent ? link_->send(p, tag, at, bytes) : link_->receive(p, tag, at, bytes));
    at += bytes;
    left -= bytes;
    if (left == 0) return true;
  }
}

// ---------------------------------------------------------------- all_gather
void Progress::begin_gathering() {
  Gathering& g = *gatherings_.front();
  g.since = Clock::now();
  g.sizes.assign(static_cast<std::size_t>(count_), static_cast<std::int64_t>(g.mine.size()));
  g.step = link_->gather(sizeof(std::int64_t), g.sizes.data());
  gathered_++;
  for (int p = 0; p < count_; p++)
    if (p != index_ && !peers_[static_cast<std::size_t>(p)].has_ended) link_->post(p, "g " + g.what());
  need_peers();
}

bool Progress::advance_gathering() {
  if (gatherings_.empty() || !gatherings_.front()->step || !gatherings_.front()->step->test()) return false;
  Gathering& g = *gatherings_.front();
  if (g.lengths.empty()) {
    std::int64_t total = 0;
    for (const std::int64_t n : g.sizes) {
      g.offsets.push_back(static_cast<int>(total));
      g.lengths.push_back(static_cast<int>(n));
      total = add_sizes(total, n);
    }
    if (total > most_gathered) {  // all processes see the same total
      g.result.set_exception(std::make_exception_ptr(TransportError(fmt::format(
          "processes: they give {} bytes at once. MPI counts to 2^31 - 1. Give less at a time.", total))));
      return next_gathering();
    }
    g.all.resize(static_cast<std::size_t>(total));
    g.step = link_->gather(g.mine.data(), g.mine.size(), g.all.data(), g.lengths, g.offsets);
    return true;
  }
  std::vector<std::string> all;
  for (std::size_t p = 0; p < g.lengths.size(); p++)
    all.push_back(
        g.all.substr(static_cast<std::size_t>(g.offsets[p]), static_cast<std::size_t>(g.lengths[p])));
  g.result.set_value(std::move(all));
  return next_gathering();
}

bool Progress::next_gathering() {
  gatherings_.erase(gatherings_.begin());
  if (!gatherings_.empty()) begin_gathering();
  return true;
}

}  // namespace shardarray::mpi
