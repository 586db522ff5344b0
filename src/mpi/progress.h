// Who speaks MPI: one thread at a time, which is one of its own, or whoever waits for a box and has nothing else to do (a hand-over
// between threads takes longer than a small message). Others leave it what is to be done and never wait for a peer; it moves boxes on, compares what
// processes run, sees who is late, and ends everything with one text when something is wrong: what runs over several processes then
// fails in all of them, for good. What a process has for itself goes on.
//
// Two processes number the runs that they share. Boxes move when both have said the run's number and the fingerprint of its
// program: what differs is found before any byte of it moves.
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
  std::map<int, std::uint64_t> numbers;  ///< peer -> which of their runs it is
  std::shared_ptr<const Fingerprint> fingerprint;
  std::uint64_t given = 0;  ///< a hash of the numbers that enter
  std::uint64_t value() const { return hash_mix(fingerprint->value(), given); }
};

class Progress {
 public:
  /// Joins the others. Throws DeviceError where MPI does not work, joins another number than `expected`, or does not start within
  /// the timeout.
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
  /// Does what the thread does, if it does not do it now.
  void advance() noexcept;
  /// Throws where the others cannot be reached any more.
  void need_link() const;
  /// Something here has failed.
  void fail(const std::string& why);
  std::vector<std::string> all_gather(const std::string& what, const std::string& mine);
  /// Waits until all processes are at their end, and leaves MPI. Nothing is asked for from then on.
  void end();
  /// In a forked child: MPI and the thread are the other process's.
  void forget() { is_forked_ = true; }

 private:
  /// A box that somebody waits for.
  struct Box {
    std::shared_ptr<const SharedRun> run;
    bool sent = false;
    Parcel parcel;
    LateEnd ended;
    Clock::time_point since;
    std::vector<TransferRef> parts;  ///< on their way
    void end(const std::string& failure) const;
  };
  struct Gathering {
    std::string mine;  ///< what it is for, a zero, and what this process gives
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
    void refuse(const std::string& why);  ///< what of it nobody has taken
  };
  /// How joining ended, if it has.
  struct Start {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_over = false, is_given_up = false;
    std::exception_ptr failure;
  };
  /// What is known of another process.
  struct Peer {
    std::map<std::uint64_t, std::uint64_t> theirs;  ///< number -> fingerprint of runs that only it has begun
    std::map<std::uint64_t, std::shared_ptr<const SharedRun>> ours;  ///< that only this process has begun
    std::uint64_t agreed = 0;                                        ///< runs below are known to both
    std::uint64_t gathered = 0;                                      ///< all_gathers that it has begun
    std::string gathers = {};                                        ///< the last of them
    std::optional<std::uint64_t> differing;                 ///< the run whose program is another one there
    std::vector<Fingerprint::Mark> our_marks, their_marks;  ///< of it
    bool has_ended = false;
    Clock::time_point heard;  ///< when something came from it last
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
  bool next_gathering();  // true
  void begin_gathering();
  std::string late_in_gathering() const;
  void look_for_late_ones();
  void get_stuck(const std::exception& e);
  void fail_all(const std::string& text, bool tell_others);
  void need_peers();
  void leave_mpi();
  void print_waiting() const;
  std::string described(const Box& box) const;

  std::mutex speaking_;  // who has it speaks MPI; of it is all that follows, to failure_
  std::unique_ptr<Link> link_;
  std::vector<Peer> peers_;
  std::vector<Box> waiting_, moving_;
  std::map<std::shared_ptr<const SharedRun>, Clock::time_point>
      runs_;  // open ones, and when something last happened there
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
  std::map<int, std::uint64_t> begun_;  // peer -> runs
  std::atomic<bool> has_jobs_{false}, is_asleep_{false};
  std::atomic<bool> is_idle_{false};     // asleep for longer than a box may wait
  std::atomic<Clock::rep> advanced_{0};  // when another thread did the work last
  bool is_leaving_ = false, has_left_ = false;
  std::atomic<bool> is_over_{false};  // nothing more is taken
  std::atomic<bool> is_forked_{false};
  std::thread thread_;
};

}  // namespace shardarray::mpi
