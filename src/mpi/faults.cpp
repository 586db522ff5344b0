// Failures across processes: differing programs, late peers, and how one failure ends everything that runs over several processes.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/count_text.h"
#include "mpi/progress.h"
#include "runtime/program.h"
#include "shardarray/error.h"

namespace shardarray::mpi {
namespace {

/// The text of the last mark: the run's input numbers.
constexpr const char* given_numbers = "given numbers";

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

/// The first difference between two processes' programs.
std::string first_difference(const std::vector<Fingerprint::Mark>& a, int process_a,
                             const std::vector<Fingerprint::Mark>& b, int process_b) {
  std::size_t k = 0;
  while (k < std::min(a.size(), b.size()) && a[k].value == b[k].value) k++;
  const auto there = [&](const std::vector<Fingerprint::Mark>& marks) {
    return k < marks.size() ? marks[k].text : std::string("nothing");
  };
  const std::string what = k == 0 ? "the whole" : fmt::format("step {}", k);
  if (there(a) == given_numbers && there(b) == given_numbers)
    return fmt::format(
        "a number that it is given, as an argument or in a line outside of jit, is another one in "
        "process {} than in process {}",
        process_a, process_b);
  if (k < std::min(a.size(), b.size()) && a[k].text == b[k].text)
    return fmt::format("{}, {}, has other numbers, devices or places in process {} than in process {}", what,
                       a[k].text, process_a, process_b);
  return fmt::format("{} is {} in process {} and {} in process {}", what, there(a), process_a, there(b),
                     process_b);
}

}  // namespace

// Both sides notice, and each sends its program to the other: one note per mark, then an end note.
void Progress::post_marks(int p, std::uint64_t number, const SharedRun& run) {
  Peer& peer = peers_[static_cast<std::size_t>(p)];
  peer.differing = number;
  peer.our_marks = run.fingerprint->marks;
  peer.our_marks.push_back({run.value(), given_numbers});
  for (Fingerprint::Mark& m : peer.our_marks) {
    m.text.resize(std::min<std::size_t>(m.text.size(), 1500));  // one note holds two of them
    link_->post(p, fmt::format("m {} {}", m.value, m.text));
  }
  link_->post(p, "m end");
}
void Progress::hear_mark(Peer& peer, const Note& note) {
  if (note.text != "m end") {
    std::uint64_t value = 0;
    int text = 0;
    (void)std::sscanf(note.text.c_str() + 2, "%lu %n", &value, &text);
    peer.their_marks.push_back({value, note.text.substr(static_cast<std::size_t>(2 + text))});
    return;
  }
  const bool is_first = index_ < note.peer;  // both sides produce the same text
  const int low = std::min(index_, note.peer), high = std::max(index_, note.peer);
  fail_all(fmt::format("processes {} and {} run different programs, at the run {} that they share: {}. All "
                       "processes compute the same in the same order. Compare explain() of them.",
                       low, high, *peer.differing + 1,
                       is_first ? first_difference(peer.our_marks, low, peer.their_marks, high)
                                : first_difference(peer.their_marks, low, peer.our_marks, high)),
           true);
}

std::string Progress::described(const Box& box) const {
  const Parcel& p = box.parcel;
  return p.label.empty() ? "a transfer" : spelled(std::string(p.label), p.where);
}

std::string Progress::late_in_gathering() const {
  std::vector<int> late;
  for (int p = 0; p < count_; p++)
    if (p != index_ && peers_[static_cast<std::size_t>(p)].gathered < gathered_) late.push_back(p);
  if (late.empty()) return "another process is silent";
  return late.size() == 1 ? fmt::format("process {} is silent", late[0])
                          : fmt::format("processes {} are silent", fmt::join(late, ", "));
}

void Progress::look_for_late_ones() {
  if (timeout_.count() == 0) return;
  const auto now = Clock::now();
  constexpr const char* same =
      "All processes compute the same in the same order; what one of them reads of lines "
      "outside of jit, all read.";
  const auto fail_late = [&](const std::string& who, const std::string& what, const std::string& known) {
    fail_all(fmt::format("{} for {} s, while process {} waits for {}. {}", who, timeout_.count() / 1000,
                         index_, what,
                         !known.empty()
                             ? known + same
                             : "A process that is busy with something else or stuck ends the others' runs "
                               "after SHARDARRAY_COMM_TIMEOUT seconds. Set it longer, or look at what that "
                               "process does."),
             true);
  };
  for (const std::vector<Box>* const boxes : {&waiting_, &moving_})
    for (const Box& b : *boxes) {
      const auto run = runs_.find(b.run);
      if (now - std::max(b.since, run == runs_.end() ? b.since : run->second) <= timeout_) continue;
      const Peer& peer = peers_[static_cast<std::size_t>(b.parcel.peer)];
      return fail_late(fmt::format("nothing came from process {}", b.parcel.peer), described(b),
                       peer.gathered <= gathered_ ? ""
                                                  : fmt::format("Process {} waits for `{}` meanwhile. ",
                                                                b.parcel.peer, peer.gathers));
    }
  if (!gatherings_.empty() && now - gatherings_.front()->since > timeout_) {
    std::string known;
    for (int p = 0; p < count_; p++) {
      const Peer& peer = peers_[static_cast<std::size_t>(p)];
      if (p != index_ && peer.gathered < gathered_ && !peer.theirs.empty())
        known = fmt::format("Process {} runs a program meanwhile that process {} has not begun. ", p, index_);
    }
    return fail_late(late_in_gathering(), fmt::format("`{}`", gatherings_.front()->what()), known);
  }
  if (!ending_) return;
  const bool waits = !has_failed_;  // while they are alive
  const bool asks = waits && now - asked_ > timeout_ / 4;
  if (asks) asked_ = now;
  for (int p = 0; p < count_; p++) {
    const Peer& peer = peers_[static_cast<std::size_t>(p)];
    if (p == index_ || peer.has_ended) continue;
    if (asks) link_->post(p, "?");
    if (now - (waits ? std::max(ending_since_, peer.heard) : ending_since_) <= timeout_) continue;
    const std::string why =
        waits
            ? fmt::format("nothing comes from process {} since {} s", p, timeout_.count() / 1000)
            : fmt::format("after what failed process {} has not ended for {} s", p, timeout_.count() / 1000);
    fmt::print(
        stderr,
        "shardarray: processes: process {} is at its end, and {} (SHARDARRAY_COMM_TIMEOUT). All are ended.\n",
        index_, why);
    link_->abort(70);
  }
}

// MPI itself, or our use of it, has failed: nothing calls MPI any more.
void Progress::get_stuck(const std::exception& e) {
  is_stuck_ = true;
  const auto* const known = dynamic_cast<const Error*>(&e);
  fail_all(known != nullptr ? known->text() : std::string(e.what()), false);
}

// MPI cannot take back transfers in flight. If they do not end soon, MPI may still write to their memory: then nothing calls MPI any more.
void Progress::fail_all(const std::string& text, bool tell_others) {
  if (has_failed_) return;
  failure_ = text.starts_with("processes: ") || text.starts_with("mpi: ") ? text : "processes: " + text;
  has_failed_.store(true, std::memory_order_release);
  try {
    for (int p = 0; tell_others && p < count_; p++)
      if (p != index_ && !peers_[static_cast<std::size_t>(p)].has_ended)
        link_->post(p, "f " + failure_.substr(0, 4000));
    for (Box& b : moving_)
      for (const TransferRef& t : b.parts)
        if (!b.sent) t->cancel();
    const auto limit = Clock::now() + std::chrono::seconds(1);
    const auto is_moving = [](Box& b) {
      std::erase_if(b.parts, [](const TransferRef& t) { return t->test(); });
      return !b.parts.empty();
    };
    while (std::any_of(moving_.begin(), moving_.end(), is_moving) || !link_->notes_are_gone()) {
      if (Clock::now() > limit) {
        is_stuck_ = true;
        break;
      }
      sched_yield();
    }
  } catch (const Error&) { is_stuck_ = true; }
  std::vector<Box> boxes;
  for (std::vector<Box>* const all : {&waiting_, &moving_}) {
    for (Box& b : *all) boxes.push_back(std::move(b));
    all->clear();
  }
  for (Box& b : boxes) {
    b.end(failure_);
    for (TransferRef& t : b.parts) (void)t.release();  // MPI may still refer to it
  }
  for (auto& g : gatherings_) {
    g->result.set_exception(std::make_exception_ptr(TransportError(failure_)));
    (void)g.release();
  }
  gatherings_.clear();
}

void Progress::leave_mpi() {
  std::vector<Job> rest;
  {
    const std::lock_guard lock(mutex_);
    is_leaving_ = true;
    is_over_ = true;
    rest.swap(jobs_);
  }
  changed_.notify_all();
  for (Job& j : rest) j.refuse("processes: this process is at its end and has left the others.");
  try {
    link_.reset();
  } catch (const Error&) {}  // the process ends anyway
  const std::lock_guard lock(mutex_);
  has_left_ = true;
  changed_.notify_all();
}

void Progress::print_waiting() const {
  const auto now = Clock::now();
  std::string text = fmt::format("shardarray: process {} of {}: {} open with others\n", index_, count_,
                                 count_text(runs_.size(), "run"));
  for (const std::vector<Box>* const boxes : {&waiting_, &moving_})
    for (const Box& b : *boxes)
      text += fmt::format("  device {} {} process {}, {} B, since {:.1f} s: {}\n", b.parcel.device,
                          b.sent ? "sends to" : "waits for", b.parcel.peer, b.parcel.bytes,
                          seconds(now - b.since), described(b));
  for (const auto& g : gatherings_)
    text += fmt::format("  waits for all, since {:.1f} s: {}\n", seconds(now - g->since),
                        g->mine.substr(0, g->mine.find('\0')));
  fmt::print(stderr, "{}", text);
}

}  // namespace shardarray::mpi
