// NCCL on the fake GPUs: ranks of one process that meet on their streams, with pauses; sums go around a ring. It refuses what the
// documentation forbids, and ranks whose calls differ wait for each other until they are aborted, as real ones do. It exists if
// SHARDARRAY_FAKE_NCCL is set: `duplicate` reports every GPU as a duplicate, `stuck` never finishes making a communicator, `silent`
// does not report that ranks differ.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuda/libraries.h"
#include "fake_calls.h"
#include "fake_ring.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

using testing::bytes_of_fake_type;
using testing::FakeBlocks;
using testing::FakeDifference;
using testing::FakeStream;

constexpr int invalid_argument = 4;
enum FakeNcclKind {
  fake_send,
  fake_receive,
  fake_all_reduce,
  fake_all_gather,
  fake_reduce_scatter,
  fake_kinds
};

std::string fake_nccl_mode() {
  const char* const text = std::getenv("SHARDARRAY_FAKE_NCCL");
  return text != nullptr ? text : "";
}

struct FakeNcclCall {
  FakeNcclKind kind;
  const std::byte* from;
  std::byte* to;
  std::size_t count;
  int type, with;
  FakeStream* stream;
};

struct FakeRank;
/// What ranks do at one place of their order.
struct FakeMeeting {
  std::map<int, FakeNcclCall> calls;  // by rank
  bool done = false;
};
struct FakeMessage {
  FakeNcclCall call;
  bool taken = false;
};
struct FakeClique {
  std::vector<FakeRank*> ranks;
  int error = 0;  // of all of them
  std::map<std::uint64_t, FakeMeeting> meetings;
  std::map<std::pair<int, int>, std::vector<FakeMessage*>> sent;  // by sender and receiver
};
struct FakeRank {
  FakeClique* clique = nullptr;
  int rank = 0, gpu = 0;
  std::thread::id maker;
  int polls = 0;  // until it has done what it was asked for
  bool aborted = false;
  std::vector<FakeNcclCall> asked, overtaken;
  std::uint64_t collectives = 0;  // that it has come to
};

struct FakeNccl {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, FakeClique*> cliques;
  std::vector<FakeRank*> ranks;
  std::uint64_t made[fake_kinds] = {}, calls = 0, misuse = 0;
  int to_failure = -1, failure = 0, absent = -1;
  int differs_on = -1;  // the rank on this GPU does
  FakeDifference difference = FakeDifference::count;
  std::atomic<const char*> last_error = "";
};
/// Never destroyed, as the streams' threads.
FakeNccl& fake_library() {
  static FakeNccl& f = *new FakeNccl;
  return f;
}

struct FakeGroup {
  int depth = 0, status = 0;
  std::vector<std::pair<FakeRank*, FakeNcclCall>> calls;
  std::vector<FakeRank*> made;
};
thread_local FakeGroup group;

FakeRank* rank_of(Nccl::Rank r) { return reinterpret_cast<FakeRank*>(r); }

/// Within the lock, with which every call begins: not 0 where a test wants it to fail.
int begin_call() {
  FakeNccl& f = fake_library();
  f.calls++;
  return f.to_failure >= 0 && f.to_failure-- == 0 ? f.failure : 0;
}
int misused(const char* what) {
  fake_library().misuse++;
  fake_library().last_error = what;
  return Nccl::invalid_usage;
}

/// What a call failed with: its group fails with the same.
int in_group(int status) {
  if (group.depth > 0) group.status = status;
  return status;
}

// ---------------------------------------------------------------- on the streams

/// All have come: everything is read before anything is written.
void meet_all(FakeMeeting& m) {
  const FakeNcclCall& one = m.calls.begin()->second;
  const std::size_t bytes = one.count * bytes_of_fake_type(one.type);
  std::vector<const std::byte*> from;
  for (const auto& [rank, c] : m.calls) from.push_back(FakeBlocks::host(c.from));
  std::vector<std::vector<std::byte>> to(from.size());
  if (one.kind == fake_all_gather) {
    for (auto& t : to)
      for (const std::byte* const p : from) t.insert(t.end(), p, p + bytes);
  } else {
    for (auto& t : to) t.resize(bytes);
    testing::reduce_around(from, one.type, one.count, one.kind == fake_reduce_scatter, one.with, to);
  }
  std::size_t k = 0;
  for (const auto& [rank, c] : m.calls) {
    std::memcpy(FakeBlocks::host(c.to), to[k].data(), to[k].size());
    k++;
  }
  m.done = true;
}

void pause_of(const FakeRank& r) {
  const auto place = static_cast<unsigned>(r.rank) * 17 + static_cast<unsigned>(r.collectives);
  std::mt19937 random(testing::fake_seed() * 1000 + place);
  if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

/// The ranks' calls differ: they go on waiting, and queries may report it.
void differ(FakeClique& c, const char* how) {
  if (fake_nccl_mode() == "silent") return;
  c.error = Nccl::invalid_usage;
  fake_library().last_error = how;
}

void come(FakeRank& r, const FakeNcclCall& c, FakeMeeting*& meeting) {
  meeting = &r.clique->meetings[r.collectives++];
  meeting->calls.emplace(r.rank, c);
  const auto is_like = [&](const auto& other) {
    const FakeNcclCall& o = other.second;
    return o.kind == c.kind && o.count == c.count && o.type == c.type && o.with == c.with;
  };
  if (!std::all_of(meeting->calls.begin(), meeting->calls.end(), is_like))
    differ(*r.clique, "ranks differ in order, count or type");
  else if (meeting->calls.size() == r.clique->ranks.size() && r.clique->error == 0) meet_all(*meeting);
}
/// False where nothing has come yet.
bool take(FakeRank& r, const FakeNcclCall& c) {
  auto& queue = r.clique->sent[{c.with, r.rank}];
  if (queue.empty()) return false;
  FakeMessage& m = *queue.front();
  if (m.call.count != c.count || m.call.type != c.type) {
    differ(*r.clique, "a message has another size");
    return false;
  }
  queue.erase(queue.begin());
  std::memcpy(FakeBlocks::host(c.to), FakeBlocks::host(m.call.from), c.count * bytes_of_fake_type(c.type));
  m.taken = true;
  return true;
}

/// Runs a rank's calls of one group on its stream.
void do_calls(FakeRank& r, const std::vector<FakeNcclCall>& calls) {
  FakeNccl& f = fake_library();
  pause_of(r);
  std::unique_lock lock(f.mutex);
  if (f.absent == r.gpu) f.changed.wait(lock, [&] { return r.aborted; });
  if (r.aborted) return;
  std::vector<FakeMeeting*> meetings;
  std::vector<FakeMessage*> messages;  // never destroyed: queues may name them
  std::vector<FakeNcclCall> receives;
  for (const FakeNcclCall& c : calls) {
    if (c.kind == fake_receive) receives.push_back(c);
    else if (c.kind != fake_send) come(r, c, meetings.emplace_back());
    else {
      messages.push_back(new FakeMessage{c});
      r.clique->sent[{r.rank, c.with}].push_back(messages.back());
    }
  }
  f.changed.notify_all();
  f.changed.wait(lock, [&] {
    if (r.aborted) return true;
    if (r.clique->error == 0 &&
        std::erase_if(receives, [&](const FakeNcclCall& c) { return take(r, c); }) > 0)
      f.changed.notify_all();
    return receives.empty() &&
           std::all_of(meetings.begin(), meetings.end(), [](auto* m) { return m->done; }) &&
           std::all_of(messages.begin(), messages.end(), [](auto* m) { return m->taken; });
  });
  if (r.aborted) return;
  for (FakeMessage* const m : messages) delete m;
}

/// What the rank was asked for comes into its stream. Where a test wants it to differ: with other counts, or overtaken by what it is
/// asked for next.
void begin_asked(FakeRank& r) {
  FakeNccl& f = fake_library();
  FakeStream& stream = *r.asked.front().stream;
  const auto begin = [&](std::vector<FakeNcclCall>& calls) {
    stream.ask([&r, taken = std::exchange(calls, {})] { do_calls(r, taken); });
  };
  const bool differs = f.differs_on == r.gpu;
  if (differs && f.difference == FakeDifference::count)
    for (FakeNcclCall& c : r.asked) c.count--;
  if (differs && f.difference == FakeDifference::order && r.overtaken.empty()) {
    r.overtaken = std::exchange(r.asked, {});
    return;
  }
  begin(r.asked);
  if (!r.overtaken.empty()) begin(r.overtaken);
}

// ---------------------------------------------------------------- calls

int start_group() {
  const std::lock_guard lock(fake_library().mutex);
  if (const int status = begin_call()) return status;
  group.depth++;
  return 0;
}

/// Every send has a receive in the same group, and the other way round, where one thread has made both ranks: others are those of
/// other processes.
bool is_paired(const std::vector<std::pair<FakeRank*, FakeNcclCall>>& calls) {
  std::map<std::tuple<FakeClique*, int, int>, int> open;
  for (const auto& [r, c] : calls) {
    const auto& all = r->clique->ranks;
    const bool is_here =
        std::any_of(all.begin(), all.end(), [&, w = c.with, maker = r->maker](const auto* other) {
          return other->rank == w && other->maker == maker;
        });
    if (c.kind == fake_send && is_here) open[{r->clique, r->rank, c.with}]++;
    if (c.kind == fake_receive && is_here) open[{r->clique, c.with, r->rank}]--;
  }
  return std::all_of(open.begin(), open.end(), [](const auto& o) { return o.second == 0; });
}

int end_group() {
  const std::lock_guard lock(fake_library().mutex);
  if (group.depth == 0) return misused("a group that was not begun ends");
  if (--group.depth > 0) return begin_call();
  const FakeGroup g = std::exchange(group, FakeGroup());
  int status = begin_call();
  if (status == 0) status = g.status;
  if (status == 0 && !is_paired(g.calls)) status = misused("a send without a receive");
  if (status != 0) return status;
  for (FakeRank* const r : g.made) r->polls = fake_nccl_mode() == "stuck" ? -1 : 2;
  for (const auto& [r, c] : g.calls) {
    r->asked.push_back(c);
    r->polls = 2;
    fake_library().made[c.kind]++;
  }
  return g.made.empty() && g.calls.empty() ? 0 : Nccl::in_progress;
}

int get_fake_id(Nccl::Id* to) {
  const std::lock_guard lock(fake_library().mutex);
  if (const int status = begin_call()) return status;
  static int count = 0;
  *to = {};
  std::snprintf(to->data, sizeof to->data, "%d", ++count);
  return 0;
}

int make_rank(Nccl::Rank* to, int ranks, Nccl::Id id, int rank, Nccl::Config* config) {
  FakeNccl& f = fake_library();
  const std::lock_guard lock(f.mutex);
  if (const int status = begin_call()) return in_group(status);
  if (config == nullptr || config->magic != 0xcafebeef || config->blocking != 0 || group.depth == 0 ||
      rank >= ranks)
    return in_group(misused("a rank is made outside of a group, or with a wrong configuration"));
  FakeClique*& clique = f.cliques[id.data];
  if (clique == nullptr) clique = new FakeClique;
  const int gpu = testing::fake_current_gpu();
  for (const FakeRank* const other : clique->ranks)
    if (other->gpu == gpu || fake_nccl_mode() == "duplicate") {
      f.last_error = "Duplicate GPU detected";
      return in_group(Nccl::invalid_usage);
    }
  auto* const fresh = new FakeRank;
  fresh->clique = clique;
  fresh->rank = rank;
  fresh->gpu = gpu;
  fresh->maker = std::this_thread::get_id();
  clique->ranks.push_back(fresh);
  f.ranks.push_back(fresh);
  group.made.push_back(fresh);
  *to = reinterpret_cast<Nccl::Rank>(fresh);
  return Nccl::in_progress;
}

/// What was asked for stands in the streams after some questions only: who goes on before that is overtaken.
int ask_rank(Nccl::Rank rank, int* state) {
  FakeNccl& f = fake_library();
  const std::lock_guard lock(f.mutex);
  if (const int status = begin_call()) return status;
  FakeRank& r = *rank_of(rank);
  if (r.aborted) return misused("a rank is used after it was given up");
  *state = r.clique->error != 0 ? r.clique->error : r.polls != 0 ? Nccl::in_progress : 0;
  if (r.polls <= 0 || --r.polls > 0 || r.asked.empty()) return 0;
  begin_asked(r);
  return 0;
}

int abort_rank(Nccl::Rank rank) {
  FakeNccl& f = fake_library();
  const std::lock_guard lock(f.mutex);
  if (const int status = begin_call()) return status;
  if (rank_of(rank)->aborted) return misused("a rank is given up twice");
  rank_of(rank)->aborted = true;
  f.changed.notify_all();
  return 0;
}

int add_call(Nccl::Rank rank, const FakeNcclCall& c, std::size_t read, std::size_t written) {
  const std::lock_guard lock(fake_library().mutex);
  if (const int status = begin_call()) return in_group(status);
  FakeRank& r = *rank_of(rank);
  const auto fits = [](const void* p, std::size_t elements, int type) {
    return elements == 0 || testing::fake_device_blocks().rest(p) >= elements * bytes_of_fake_type(type);
  };
  if (r.aborted) return in_group(misused("a rank is used after it was given up"));
  if (r.polls != 0) return in_group(misused("a rank is asked before it has done what it was asked for"));
  if (group.depth == 0) return in_group(misused("a call outside of a group"));
  if (c.stream->gpu != r.gpu || !fits(c.from, read, c.type) || !fits(c.to, written, c.type)) {
    fake_library().misuse++;
    return in_group(invalid_argument);
  }
  group.calls.emplace_back(&r, c);
  return 0;
}
FakeStream* fake_stream(Stream s) { return reinterpret_cast<FakeStream*>(s); }
const std::byte* bytes_at(const void* p) { return static_cast<const std::byte*>(p); }
std::byte* bytes_at(void* p) { return static_cast<std::byte*>(p); }
std::size_t ranks_beside(Nccl::Rank r) { return rank_of(r)->clique->ranks.size(); }

const Nccl fake_nccl = {
    .get_version = [](int* version) { return (*version = 22809, 0); },
    .get_unique_id = get_fake_id,
    .init_rank = make_rank,
    .get_async_error = ask_rank,
    .abort = abort_rank,
    .get_error_string =
        [](int status) { return status == Nccl::invalid_usage ? "invalid usage" : "unhandled error"; },
    .get_last_error = [](Nccl::Rank) { return fake_library().last_error.load(); },
    .group_start = start_group,
    .group_end = end_group,
    .send =
        [](const void* from, std::size_t count, int type, int peer, Nccl::Rank rank, Stream s) {
          return add_call(rank, {fake_send, bytes_at(from), nullptr, count, type, peer, fake_stream(s)},
                          count, 0);
        },
    .receive =
        [](void* to, std::size_t count, int type, int peer, Nccl::Rank rank, Stream s) {
          return add_call(rank, {fake_receive, nullptr, bytes_at(to), count, type, peer, fake_stream(s)}, 0,
                          count);
        },
    .all_reduce =
        [](const void* from, void* to, std::size_t count, int type, int reduction, Nccl::Rank rank,
           Stream s) {
          return add_call(
              rank, {fake_all_reduce, bytes_at(from), bytes_at(to), count, type, reduction, fake_stream(s)},
              count, count);
        },
    .all_gather =
        [](const void* from, void* to, std::size_t sent, int type, Nccl::Rank rank, Stream s) {
          return add_call(rank,
                          {fake_all_gather, bytes_at(from), bytes_at(to), sent, type, 0, fake_stream(s)},
                          sent, sent * ranks_beside(rank));
        },
    .reduce_scatter =
        [](const void* from, void* to, std::size_t received, int type, int reduction, Nccl::Rank rank,
           Stream s) {
          return add_call(
              rank,
              {fake_reduce_scatter, bytes_at(from), bytes_at(to), received, type, reduction, fake_stream(s)},
              received * ranks_beside(rank), received);
        },
};

}  // namespace

const Nccl& nccl() {
  if (fake_nccl_mode().empty())
    throw CompileError("cuda: the fake GPU has no NCCL. SHARDARRAY_FAKE_NCCL gives it one. Set it.");
  return fake_nccl;
}
const NcclLimits& nccl_limits() {
  static const NcclLimits limits = [] {
    NcclLimits l;
    const char* const least = std::getenv("SHARDARRAY_FAKE_NCCL_LEAST");
    l.least_bytes = least != nullptr ? static_cast<std::size_t>(std::atoi(least)) : 0;
    if (const char* const text = std::getenv("SHARDARRAY_FAKE_NCCL_DEADLINE"))
      l.deadline = std::chrono::milliseconds(std::atoi(text));
    return l;
  }();
  return limits;
}

}  // namespace shardarray::cuda

namespace shardarray::testing {
std::uint64_t fake_nccl_calls(int kind) {
  const std::lock_guard lock(cuda::fake_library().mutex);
  return kind < 0 ? cuda::fake_library().calls : cuda::fake_library().made[kind];
}
std::uint64_t fake_nccl_misuse() {
  const std::lock_guard lock(cuda::fake_library().mutex);
  return cuda::fake_library().misuse;
}
void fail_fake_nccl(int after, int status) {
  const std::lock_guard lock(cuda::fake_library().mutex);
  cuda::fake_library().to_failure = after;
  cuda::fake_library().failure = status;
}
void break_fake_nccl(int status) {
  const std::lock_guard lock(cuda::fake_library().mutex);
  for (cuda::FakeRank* const r : cuda::fake_library().ranks) r->clique->error = status;
}
void miss_fake_rank(int gpu) {
  const std::lock_guard lock(cuda::fake_library().mutex);
  cuda::fake_library().absent = gpu;
}
void differ_fake_rank(int gpu, FakeDifference how) {
  const std::lock_guard lock(cuda::fake_library().mutex);
  cuda::fake_library().differs_on = gpu;
  cuda::fake_library().difference = how;
}
}  // namespace shardarray::testing
