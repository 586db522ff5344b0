// One thread at a time calls MPI: the plug-in's own, or one that waits for a box and has nothing else to do (handing over between threads
// takes longer than a small message). Other threads queue requests and never wait for a peer. The calling thread progresses boxes, compares
// the processes' programs, detects late peers, and on an error fails everything with one text: from then on, runs over several processes
// fail in all of them. Work within one process goes on.
//
// Each pair of processes numbers its shared runs. Boxes move once both have announced the run's number and its program's fingerprint, so a
// difference is found before any byte moves.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "mpi/link.h"
#include "runtime/fingerprint.h"
#include "runtime/transport.h"
#include "shardarray/error.h"

namespace shardarray::mpi {

using Clock = std::chrono::steady_clock;

/// One run of a program that this process shares with others.
struct SharedRun {
  std::map<int, std::uint64_t> numbers;  ///< peer -> the run's number with that peer
  std::shared_ptr<const Fingerprint> fingerprint;
  std::uint64_t given = 0;  ///< a hash of the input numbers
  std::uint64_t value() const { return hash_mix(fingerprint->value(), given); }
};

class Progress {
 public:
  /// Joins the others. Throws DeviceError if MPI does not work, if the number of processes is not `expected`, or at the timeout.
  explicit Progress(int expected);
  int index() const { return index_; }
  int count() const { return count_; }
  const std::string& failure_text() const { return failure_; }

  // From any thread.
  std::shared_ptr<const SharedRun> begin(std::span<const int> peers,
                                         std::shared_ptr<const Fingerprint> fingerprint,
                                         std::uint64_t numbers);
  void ask(const std::shared_ptr<const SharedRun>& run, bool sent, const Parcel& parcel, LateEnd ended);
  void leave(const std::shared_ptr<const SharedRun>& run);
  /// Does the thread's work, unless the thread is doing it now.
  void advance() noexcept;
  /// Throws if the others can no longer be reached.
  void need_link() const;
  /// Reports a failure on this side.
  void fail(const std::string& why);
  std::vector<std::string> all_gather(const std::string& what, const std::string& mine);
  /// Waits until all processes end, and leaves MPI. No requests are accepted afterwards.
  void end();
  /// In a forked child: MPI and the thread belong to the parent.
  void forget() { is_forked_ = true; }

 private:
  /// A box that someone waits for.
  struct Box {
    std::shared_ptr<const SharedRun> run;
    bool sent = false;
    Parcel parcel;
    LateEnd ended;
    Clock::time_point since;
    std::vector<TransferRef> parts;  ///< in flight
    void end(const std::string& failure) const;
  };
  struct Gathering {
    std::string mine;  ///< its purpose, a NUL, and this process's contribution
    std::promise<std::vector<std::string>> result;
    Clock::time_point since;
    std::vector<std::int64_t> sizes;
    std::string all;
    std::vector<int> lengths, offsets;
    TransferRef step;
    std::string what() const { return mine.substr(0, mine.find('\0')); }
  };
  struct Job {
    enum class Kind : std::uint8_t { begin, box, leave, fail, gather, end } kind;
    std::shared_ptr<const SharedRun> run = nullptr;
    std::optional<Box> box = std::nullopt;
    std::string text = {};
    std::unique_ptr<Gathering> gathering = nullptr;
    void refuse(const std::string& why);  ///< fails whatever of it was not taken
  };
  /// The outcome of joining, once it is known.
  struct Start {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_over = false, is_given_up = false;
    std::exception_ptr failure;
  };
  /// The known state of another process.
  struct Peer {
    std::map<std::uint64_t, std::uint64_t> theirs;  ///< number -> fingerprint of runs begun only by the peer
    std::map<std::uint64_t, std::shared_ptr<const SharedRun>> ours;  ///< begun only by this process
    std::uint64_t agreed = 0;                                        ///< runs below it match
    std::uint64_t gathered = 0;                                      ///< all_gathers begun by the peer
    std::string gathers = {};                                        ///< purpose of the latest
    std::optional<std::uint64_t> differing;                          ///< the run whose program differs there
    std::vector<Fingerprint::Mark> our_marks, their_marks;           ///< of that run
    bool has_ended = false;
    Clock::time_point heard;  ///< when the latest note arrived
  };

  void take_over(std::unique_ptr<Link> link);
  void add(Job job);
  void work();
  bool look();  // whether anything has happened
  void take(Job& job);
  void hear(const Note& note);
  void compare(int peer, std::uint64_t number);
  void post_marks(int peer, std::uint64_t number, const SharedRun& run);
  void hear_mark(Peer& peer, const Note& note);
  bool start(Box& box);
  bool advance_gathering();
  bool next_gathering();  // always true
  void begin_gathering();
  std::string late_in_gathering() const;
  void look_for_late_ones();
  void get_stuck(const std::exception& e);
  void fail_all(const std::string& text, bool tell_others);
  void need_peers();
  void leave_mpi();
  void print_waiting() const;
  std::string described(const Box& box) const;

  std::mutex speaking_;  // the holder may call MPI; guards the members down to failure_
  std::unique_ptr<Link> link_;
  std::vector<Peer> peers_;
  std::vector<Box> waiting_, moving_;
  std::map<std::shared_ptr<const SharedRun>, Clock::time_point>
      runs_;  // open runs, and when each last made progress
  std::vector<std::unique_ptr<Gathering>> gatherings_;
  std::uint64_t gathered_ = 0;  // begun
  std::uint64_t tags_of_run_ = 0, run_slots_ = 0;
  bool ending_ = false, is_stuck_ = false;
  Clock::time_point ending_since_, asked_;
  const std::chrono::milliseconds timeout_;  // 0: none

  int index_ = 0, count_ = 1;
  std::atomic<bool> has_failed_{false};
  std::string failure_;  // written once, before has_failed_

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> jobs_;
  std::map<int, std::uint64_t> begun_;  // peer -> number of runs
  std::atomic<bool> has_jobs_{false}, is_asleep_{false};
  std::atomic<bool> is_idle_{false};     // sleeps longer than a box may wait
  std::atomic<Clock::rep> advanced_{0};  // when another thread last did the work
  bool is_leaving_ = false, has_left_ = false;
  std::atomic<bool> is_over_{false};  // no requests are accepted any more
  std::atomic<bool> is_forked_{false};
  std::thread thread_;
};

}  // namespace shardarray::mpi
