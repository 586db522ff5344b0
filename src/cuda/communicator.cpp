#include "cuda/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "cuda/gpu.h"
#include "shardarray/error.h"

namespace shardarray::cuda {

using Clock = std::chrono::steady_clock;

namespace {

/// Usually for lack of memory.
class RefusedByCuda final : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace

/// All communicators of the process, and their steps in flight.
class Collectives {
 public:
  using Members = Communicator::Members;
  using Uuids = std::vector<std::string>;
  std::mutex mutex;
  std::atomic<int> under_way = 0;

  /// Without an id one is made, unless several processes must share it: then null if there is no communicator yet.
  Communicator* communicator(const Nccl& library, const Members& m, const Nccl::Id* id, Watched* others) {
    const std::lock_guard lock(mutex);
    for (const Gpu* const g : m.gpus) g->throw_if_lost();
    Uuids key = m.uuids;
    for (const int rank : m.ranks) key.push_back(m.uuids[static_cast<std::size_t>(rank)]);
    if (const auto failure = failed_.find(key); failure != failed_.end()) throw DeviceError(failure->second);
    auto& entry = all_[key];
    try {
      if (!entry && (id != nullptr || others == nullptr)) entry = made(library, m, id, others);
    } catch (const RefusedByCuda&) {
      throw;  // may work later
    } catch (const DeviceError& e) {
      failed_[key] = e.what();
      throw;
    }
    return entry.get();
  }
  Communicator& communicator(const Nccl& library, const std::vector<Gpu*>& gpus) {
    Members m;
    for (Gpu* const g : gpus) {
      m.ranks.push_back(static_cast<int>(m.gpus.size()));
      m.gpus.push_back(g);
      m.uuids.push_back(g->properties().uuid);
    }
    return *communicator(library, m, nullptr, nullptr);
  }

  void ask(const Nccl& library, const std::vector<NcclCall>& calls, const std::string& step,
           Watched* others) {
    std::unique_lock lock(mutex);
    for (Pause pause; calls[0].of->under_way_ >= nccl_limits().most_under_way;) {
      look(library);
      if (others != nullptr) others->look();
      lock.unlock();  // turns keep the order on each GPU
      pause();
      lock.lock();
    }
    for (const NcclCall& c : calls) c.turn->gpu().throw_if_lost();
    Step s = begun(calls, step);
    try {
      in_group(library, *s.of[0], step, [&] {
        for (const NcclCall& c : calls) start(library, c, step);
      });
      for (Communicator* const c : s.of) settle(library, *c, step, others);
      for (const Place& p : s.places)
        if (const Status status = p.end->record(); status != ok)
          throw DeviceError(p.end->failure(status, "cudaEventRecord", step));
      for (Communicator* const c : s.of) c->under_way_++;
      steps_.push_back(std::move(s));
      under_way++;
    } catch (const TransportError& e) {
      give_up(library, e.text());
      throw;
    } catch (const std::exception& e) {
      give_up(library, e.what());
      throw_lost(*calls[0].of);
    }
  }

  /// Call with the mutex held.
  void look(const Nccl& library) {
    for (auto s = steps_.begin(); s != steps_.end();) {
      std::string failure;
      const bool done = is_done(library, *s, failure);
      if (!failure.empty()) {
        give_up(library, failure);
        return;
      }
      if (!done) {
        s++;
        continue;
      }
      for (Communicator* const c : s->of) c->under_way_--;
      s = steps_.erase(s);
      under_way--;
    }
  }

  /// Call with the mutex held. All communicators: while one is aborted, another one hung on the same GPU may block NCCL.
  void give_up(const Nccl& library, const std::string& why) {
    std::vector<Communicator*> all;
    for (auto& [uuids, c] : all_) {
      if (!c) continue;
      all.push_back(c.get());
      for (Gpu* const g : c->gpus_) g->lose_by(why);  // first: waiters must not take garbage for results
      c->under_way_ = 0;
    }
    abort(library, all);
    steps_.clear();
    under_way = 0;
  }

 private:
  struct Place {
    Turn* turn;  // while the step is being launched
    std::unique_ptr<Mark> begin, end;
  };
  struct Step {
    std::string name;
    std::vector<Communicator*> of;
    std::vector<Place> places;               // one per GPU
    std::optional<Clock::time_point> began;  // when it was first seen to run on all of them
  };

  [[noreturn]] static void throw_lost(const Communicator& c) {
    for (const Gpu* const g : c.gpus_) g->throw_if_lost();
    throw InternalError("nccl: a communicator was given up, and its GPUs were not. Please report this.");
  }

  static std::string text(const Nccl& library, int status, Nccl::Rank rank) {
    const char* const last = library.get_last_error(rank);
    const std::string name = library.get_error_string(status);
    return last == nullptr || *last == 0 ? name : fmt::format("{} ({})", name, last);
  }
  static void check(const Nccl& library, int status, const char* call, const Communicator& c, Nccl::Rank rank,
                    const std::string& step) {
    if (status == 0 || status == Nccl::in_progress) return;
    const std::string what = fmt::format("cuda: {} failed on {} in {}: {}.", call, names_of(c.gpus_), step,
                                         text(library, status, rank));
    if (status == Nccl::unhandled_cuda_error) throw RefusedByCuda(what);
    throw DeviceError(what);
  }

  /// Whether NCCL is still working on its calls; throws if one has failed.
  static bool is_busy(const Nccl& library, const Communicator& c, Nccl::Rank rank, const std::string& step) {
    int state = 0;
    check(library, library.get_async_error(rank, &state), "ncclCommGetAsyncError", c, rank, step);
    check(library, state, "NCCL", c, rank, step);
    return state != 0;
  }

  // Ends the group even if `f` throws.
  template <class F>
  static void in_group(const Nccl& library, const Communicator& c, const std::string& step, const F& f) {
    check(library, library.group_start(), "ncclGroupStart", c, c.ranks_[0], step);
    try {
      f();
    } catch (...) {
      library.group_end();
      throw;
    }
    check(library, library.group_end(), "ncclGroupEnd", c, c.ranks_[0], step);
  }

  /// Returns when NCCL has enqueued its work: later work in the streams runs after it.
  static void settle(const Nccl& library, const Communicator& c, const std::string& step, Watched* others) {
    const auto until = Clock::now() + nccl_limits().deadline;
    for (const Nccl::Rank rank : c.ranks_)
      for (Pause pause;; pause()) {
        if (!is_busy(library, c, rank, step)) break;
        if (others != nullptr) others->look();
        if (Clock::now() > until)
          throw DeviceError(fmt::format("cuda: NCCL does not come to an end on {} in {}: it had {} s.",
                                        names_of(c.gpus_), step, seconds()));
      }
  }
  static double seconds() { return std::chrono::duration<double>(nccl_limits().deadline).count(); }

  static std::unique_ptr<Communicator> made(const Nccl& library, const Members& m, const Nccl::Id* given,
                                            Watched* others) {
    static const std::string step = "the making of a communicator";
    std::unique_ptr<Communicator> c(new Communicator(m.gpus, m.ranks, static_cast<int>(m.uuids.size())));
    const KeptGpu kept;
    try {
      Nccl::Id id;
      if (given != nullptr) id = *given;
      else check(library, library.get_unique_id(&id), "ncclGetUniqueId", *c, nullptr, step);
      Nccl::Config config;
      in_group(library, *c, step, [&] {
        for (std::size_t r = 0; r < m.gpus.size(); r++) {
          m.gpus[r]->set();
          check(library, library.init_rank(&c->ranks_[r], c->count_, id, c->numbers_[r], &config),
                "ncclCommInitRankConfig", *c, nullptr, step);
        }
      });
      settle(library, *c, step, others);
    } catch (const TransportError&) {
      abort(library, {c.get()});
      throw;
    } catch (const Error& e) {
      abort(library, {c.get()});
      const std::string what =
          std::string(e.what()) +
          " Each GPU is one rank of it. NCCL_DEBUG=INFO in the environment prints the cause.";
      if (dynamic_cast<const RefusedByCuda*>(&e) != nullptr) throw RefusedByCuda(what);
      throw DeviceError(what);
    }
    return c;
  }

  static Step begun(const std::vector<NcclCall>& calls, const std::string& step) {
    Step s{step, {}, {}, {}};
    for (const NcclCall& c : calls) {
      if (std::find(s.of.begin(), s.of.end(), c.of) == s.of.end()) s.of.push_back(c.of);
      const auto same = [&](const Place& p) { return p.turn == c.turn; };
      if (std::any_of(s.places.begin(), s.places.end(), same)) continue;
      Gpu& gpu = c.turn->gpu();
      c.turn->here();
      const Place& p =
          s.places.emplace_back(Place{c.turn, std::make_unique<Mark>(gpu), std::make_unique<Mark>(gpu)});
      p.begin->check(p.begin->record(), "cudaEventRecord", step);
    }
    return s;
  }

  static void start(const Nccl& library, const NcclCall& c, const std::string& step) {
    const Nccl::Rank rank = c.of->ranks_[c.rank];
    const Stream stream = c.turn->library_stream();
    int status = 0;
    const char* name = "";
    switch (c.kind) {
      case NcclCall::Kind::send:
        name = "ncclSend";
        status = library.send(c.from, c.count, c.type, c.with, rank, stream);
        break;
      case NcclCall::Kind::receive:
        name = "ncclRecv";
        status = library.receive(c.to, c.count, c.type, c.with, rank, stream);
        break;
      case NcclCall::Kind::all_reduce:
        name = "ncclAllReduce";
        status = library.all_reduce(c.from, c.to, c.count, c.type, c.with, rank, stream);
        break;
      case NcclCall::Kind::all_gather:
        name = "ncclAllGather";
        status = library.all_gather(c.from, c.to, c.count, c.type, rank, stream);
        break;
      case NcclCall::Kind::reduce_scatter:
        name = "ncclReduceScatter";
        status = library.reduce_scatter(c.from, c.to, c.count, c.type, c.with, rank, stream);
        break;
    }
    check(library, status, name, *c.of, rank, step);
  }

  static bool is_done(const Nccl& library, Step& s, std::string& failure) {
    bool began = true, ended = true;
    for (const Place& p : s.places) {
      const Status begin = p.begin->status(), end = p.end->status();
      for (const Status status : {begin, end})
        if (status != ok && status != not_ready) {
          failure = p.begin->failure(status, "cudaEventQuery", s.name);
          return false;
        }
      began = began && begin == ok;
      ended = ended && end == ok;
    }
    try {
      for (const Communicator* const c : s.of)
        for (const Nccl::Rank rank : c->ranks_) is_busy(library, *c, rank, s.name);
    } catch (const DeviceError& e) { failure = e.what(); }
    if (ended || !began) return ended;
    const auto now = Clock::now();
    if (!s.began) s.began = now;
    if (now - *s.began > nccl_limits().deadline)
      failure = fmt::format(
          "cuda: NCCL does not come to an end on {} in {}: it had {} s from when all of them were there.",
          names_of(s.of[0]->gpus_), s.name, seconds());
    return false;
  }

  static void abort(const Nccl& library, const std::vector<Communicator*>& all) {
    library.group_start();
    for (Communicator* const c : all)
      for (Nccl::Rank& rank : c->ranks_)
        if (rank != nullptr) library.abort(std::exchange(rank, nullptr));
    library.group_end();
  }

  /// By the UUIDs of all ranks, then those of this process.
  std::map<Uuids, std::unique_ptr<Communicator>> all_;
  /// Why creation failed: a retry would take as long.
  std::map<Uuids, std::string> failed_;
  std::list<Step> steps_;
};

static Collectives& collectives() {
  static Collectives& all = *new Collectives;
  return all;
}

Communicator& Communicator::of(const std::vector<Gpu*>& gpus) {
  try {
    return collectives().communicator(nccl(), gpus);
  } catch (const RefusedByCuda&) {
    gpus[0]->make_room();
    return collectives().communicator(nccl(), gpus);
  }
}
Communicator* Communicator::of(const Members& members, const Nccl::Id* id, Watched& others) {
  return collectives().communicator(nccl(), members, id, &others);
}
void ask_nccl(const std::vector<NcclCall>& calls, const std::string& step, Watched* others) {
  if (!calls.empty()) collectives().ask(nccl(), calls, step, others);
}
bool is_under_way(const Communicator& c) {
  const std::lock_guard lock(collectives().mutex);
  collectives().look(nccl());
  return c.under_way_ > 0;
}
void give_up_nccl(const std::string& why) {
  const std::lock_guard lock(collectives().mutex);
  collectives().give_up(nccl(), why);
}
Nccl::Id new_nccl_id() {
  Nccl::Id id;
  if (const int status = nccl().get_unique_id(&id); status != 0)
    throw DeviceError(fmt::format("cuda: ncclGetUniqueId failed: {}.", nccl().get_error_string(status)));
  return id;
}
std::mutex& nccl_mutex() { return collectives().mutex; }
bool collectives_under_way() { return collectives().under_way > 0; }
void look_after_collectives() {
  const std::unique_lock lock(collectives().mutex, std::try_to_lock);
  if (lock) collectives().look(nccl());
}

void Pause::operator()() {
  constexpr int eager = 64;
  if (times_++ < eager) std::this_thread::yield();
  else std::this_thread::sleep_for(std::chrono::microseconds(50));
}

std::string names_of(const std::vector<Gpu*>& gpus) {
  std::string text = gpus.size() == 1 ? "GPU" : "GPUs";
  for (std::size_t k = 0; k < gpus.size(); k++)
    text += fmt::format("{} {}", k > 0 ? "," : "", gpus[k]->number());
  return text;
}

}  // namespace shardarray::cuda
