// Objects of threads, and workers that several programs share.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/block_pool.h"
#include "base/intern_table.h"
#include "base/per_thread.h"
#include "runtime/pool.h"
#include "runtime/task_graph.h"

namespace workers_test {

using namespace shardarray;

namespace {

struct Counted {
  static inline std::atomic<int> alive{0}, made{0};
  Counted() { alive++, made++; }
  ~Counted() { alive--; }
  int value = 0;
};
// Uses another thread's object while it goes, as arrays give blocks back.
struct User {
  ~User() { PerThread<Counted>::get().value++; }
};
struct Late {
  std::function<void()> f;
  ~Late() { f(); }
};

// Threads meet here; false: one did not come, and nobody waits for it for ever.
class Meeting {
 public:
  explicit Meeting(int wanted) : wanted_(wanted) {}
  bool wait() {
    here_++;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (here_ < wanted_ && !missed_)
      if (std::chrono::steady_clock::now() > end) missed_ = true;
      else std::this_thread::yield();
    return !missed_;
  }
  void reset() { here_ = 0; }

 private:
  const int wanted_;
  std::atomic<int> here_{0};
  std::atomic<bool> missed_{false};
};

// A graph of std::function: each with the bytes that it writes, so that those of one lane are a chain.
class Functions {
 public:
  void add(std::uint64_t lane, std::function<void()> f) { add(lane, lane + 1, std::move(f)); }
  void add(std::uint64_t lo, std::uint64_t hi, std::function<void()> f) {
    functions_.push_back(std::make_unique<std::function<void()>>(std::move(f)));
    graph_.add({call, functions_.back().get(), 0, 0, 1e6}, {}, std::vector{MemoryRange{0, lo, hi}});
  }
  void finish() { graph_.finish(); }
  void run(ThreadPool& pool) {
    void* base = nullptr;
    graph_.run(&base, pool);
  }

 private:
  static void call(const void* f, void* const*, std::int64_t, std::int64_t) {
    (*static_cast<const std::function<void()>*>(f))();
  }
  std::vector<std::unique_ptr<std::function<void()>>> functions_;
  TaskGraph graph_;
};

}  // namespace

TEST_CASE("per thread: one object for each thread, which ends with it") {
  PerThread<Counted>::get().value = 7;
  const int before = Counted::alive;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int k = 0; k < 8; k++)
    threads.emplace_back([&, k] {
      CHECK(PerThread<Counted>::find() == nullptr);
      PerThread<Counted>::get().value = k;
      right += PerThread<Counted>::get().value == k && PerThread<Counted>::find()->value == k;
    });
  for (auto& t : threads) t.join();
  CHECK(right == 8);
  CHECK(Counted::alive == before);
  CHECK(PerThread<Counted>::get().value == 7);
}

TEST_CASE("per thread: good in every destructor of its thread, and nothing stays behind") {
  const int before = Counted::alive;
  for (const bool used_first : {false, true}) {
    int seen = 0;
    std::thread([&] {
      if (used_first) PerThread<Counted>::get().value = 1;
      thread_local Late late;
      late.f = [&] {
        PerThread<User>::get();
        PerThread<Counted>::get().value += 5;
        seen = PerThread<Counted>::get().value;
        give_block(take_block(100), 100);
      };
      if (!used_first) PerThread<User>::get();
    }).join();
    CHECK(seen == (used_first ? 6 : 5));
    CHECK(Counted::alive == before);
  }
}

TEST_CASE("intern table: one object for a key while somebody holds it, bounded without") {
  InternTable<int, int> table;
  const auto make = [](int k) { return std::make_shared<const int>(k); };
  std::vector<std::shared_ptr<const int>> held;
  for (int k = 0; k < 1000; k++) held.push_back(table.get(k, make));
  for (int k = 1000; k < 20'000; k++) CHECK(*table.get(k, make) == k);
  CHECK(table.size() <= 3000);
  for (int k = 0; k < 1000; k++) REQUIRE(table.get(k, make) == held[static_cast<std::size_t>(k)]);
  held.clear();
  for (int k = 20'000; k < 40'000; k++) table.get(k, make);
  CHECK(table.size() <= 600);
  CHECK(table.find(39'999) != nullptr);
  CHECK(table.find(-1) == nullptr);
}

TEST_CASE(
    "faster way: the second one is taken while it takes clearly less, and both are tried now and then") {
  FasterWay f;
  int workers = 2;
  const auto period = [&](double first, double second) {
    std::vector<int> trial, rest;
    for (std::int64_t k = 0; k < FasterWay::period; k++) {
      const int way = f.next(workers);
      const double noise = k % 3 == 0 ? 1e6 : 0;  // somebody else has run
      f.took(way, k == 0 ? 1 : (way == 0 ? first : second) + noise);
      (k <= FasterWay::tried ? trial : rest).push_back(way);
    }
    CHECK(std::ranges::count(trial, 1) >= 4);
    CHECK(std::ranges::count(trial, 0) >= 4);
    CHECK(std::ranges::count(rest, rest[0]) == std::ssize(rest));
    return rest[0];
  };
  CHECK(period(100, 50) == 1);
  CHECK(period(100, 200) == 0);
  CHECK(period(100, 97) == 0);
  CHECK(period(100, 90) == 1);
  CHECK(period(90, 100) == 0);
  CHECK(period(90, 50) == 1);
  // A way that is fast once but usually slower counts as the slower one.
  for (std::int64_t k = 0; k < FasterWay::period; k++) {
    const int way = f.next(workers);
    f.took(way, way == 1 ? 90 : k == 2 ? 50 : 100);
    if (k > FasterWay::tried) CHECK(way == 1);
  }
  workers = 8;  // nobody knows yet
  CHECK(f.next(workers) == 0);
}

TEST_CASE("task graph: a serial chain keeps no worker from a second thread's program") {
  for (int workers : {3, 4, 8}) {
    CAPTURE(workers);
    ThreadPool pool(workers);
    std::atomic<bool> gate{false};
    std::atomic<int> begun{0}, aside{0};
    std::vector<int> order;
    Functions chain, wide;
    for (int k = 0; k < 2 * workers; k++)
      chain.add(0, [&, k] {
        begun++;
        gate.wait(false);
        order.push_back(k);
      });
    // What is beside the chain brings every worker into the first program.
    for (int k = 0; k < workers; k++) chain.add(static_cast<std::uint64_t>(k) + 1, [&] { aside++; });
    chain.finish();
    // One worker at most runs the chain: all others, and the second thread itself, meet.
    Meeting meeting(workers - 1);
    std::atomic<int> met{0};
    for (int k = 0; k < workers - 1; k++)
      wide.add(static_cast<std::uint64_t>(k), [&] { met += meeting.wait(); });
    wide.finish();

    std::thread first([&] { chain.run(pool); });
    while (begun == 0 || aside < workers) std::this_thread::yield();
    wide.run(pool);
    CHECK(met == workers - 1);
    CHECK(begun == 1);
    gate = true;
    gate.notify_all();
    first.join();
    REQUIRE(order.size() == 2 * static_cast<std::size_t>(workers));
    for (int k = 0; k < 2 * workers; k++) CHECK(order[static_cast<std::size_t>(k)] == k);
  }
}

TEST_CASE("task graph: everybody comes when a program that was serial becomes wide") {
  for (int workers : {2, 3, 5}) {
    CAPTURE(workers);
    ThreadPool pool(workers);
    for (const bool asleep : {false, true}) {  // for longer than anybody spins
      Functions graph;
      constexpr int rounds = 30;
      std::vector<std::unique_ptr<Meeting>> meetings;
      std::atomic<int> met{0};
      const auto width = static_cast<std::uint64_t>(workers);
      for (int r = 0; r < rounds; r++) {
        for (int k = 0; k < 2; k++)
          graph.add(0, width, [asleep] {
            if (asleep) std::this_thread::sleep_for(std::chrono::microseconds(300));
          });
        Meeting& m = *meetings.emplace_back(std::make_unique<Meeting>(workers));
        for (std::uint64_t k = 0; k < width; k++) graph.add(k, [&] { met += m.wait(); });
      }
      graph.finish();
      graph.run(pool);
      CHECK(met == rounds * workers);
    }
  }
}

TEST_CASE("task graph: a chain stays on its thread, whoever else has nothing to do") {
  for (int workers : {2, 4}) {
    ThreadPool pool(workers);
    constexpr std::uint64_t chains = 2, length = 400;
    Functions graph;
    std::vector<std::thread::id> ran(chains * length);
    for (std::uint64_t k = 0; k < length; k++)
      for (std::uint64_t c = 0; c < chains; c++)
        graph.add(c, [&ran, k, c] {
          ran[c * length + k] = std::this_thread::get_id();
          for (volatile int work = 0; work < 1000;) work = work + 1;  // time for others to come
        });
    graph.finish();
    for (int round = 0; round < 20; round++) {
      graph.run(pool);
      for (std::uint64_t c = 0; c < chains; c++)
        for (std::uint64_t k = 1; k < length; k++) REQUIRE((ran[c * length + k] == ran[c * length]));
    }
  }
}

TEST_CASE("task graph: some of the first runs are tried on the caller, in the order of addition") {
  ThreadPool pool(4);
  constexpr std::uint64_t lanes = 2, length = 8;
  Functions graph;
  std::mutex mutex;
  std::vector<std::uint64_t> order;
  bool elsewhere = false;
  const std::thread::id caller = std::this_thread::get_id();
  for (std::uint64_t k = 0; k < lanes * length; k++)
    graph.add(k % lanes, [&, k] {
      const std::lock_guard lock(mutex);
      order.push_back(k);
      elsewhere |= std::this_thread::get_id() != caller;
    });
  graph.finish();
  for (std::int64_t run = 0; run < 2 * FasterWay::tried; run++) {
    order.clear();
    elsewhere = false;
    graph.run(pool);
    REQUIRE(order.size() == lanes * length);
    if (run > FasterWay::tried || run % 2 == 0) continue;
    CHECK_FALSE(elsewhere);
    CHECK(std::ranges::is_sorted(order));
  }
}

TEST_CASE("task graph: graphs end while workers are about to leave them, thousands of times") {
  ThreadPool pool(4);
  std::atomic<int> ran{0};
  int wanted = 0;
  for (int round = 0; round < 300; round++) {
    Functions graph;  // gone at once after its runs
    for (std::uint64_t k = 0; k < 10; k++)
      graph.add(k % 5, [&] { ran++; });  // too wide to be tried on the caller
    graph.finish();
    for (int again = 0; again < 10; again++) {
      graph.run(pool);
      wanted += 10;
      REQUIRE(ran == wanted);
    }
  }
}

TEST_CASE("task graph: who waits for others in its own program helps those that run inside of it") {
  for (int workers : {2, 3, 5})
    for (const bool asleep : {false, true}) {  // for longer than anybody spins
      CAPTURE(workers);
      ThreadPool pool(workers);
      std::atomic<int> met{0};
      // All meet in a program; then one that did not call it runs the next one inside.
      const std::function<void(int)> run = [&](int depth) {
        Functions graph;
        Meeting all(workers);
        std::atomic<bool> begun{false};
        const std::thread::id caller = std::this_thread::get_id();
        for (int k = 0; k < workers; k++)
          graph.add(static_cast<std::uint64_t>(k), [&, caller, depth] {
            met += all.wait();
            if (depth == 0 || std::this_thread::get_id() == caller || begun.exchange(true)) return;
            if (asleep) std::this_thread::sleep_for(std::chrono::microseconds(300));
            run(depth - 1);
          });
        graph.finish();
        graph.run(pool);
      };
      constexpr int rounds = 20, depth = 3;
      for (int round = 0; round < rounds; round++) run(depth);
      CHECK(met == rounds * (depth + 1) * workers);
    }
}

TEST_CASE("task graph: programs of many threads, and programs inside tasks, share the workers") {
  ThreadPool pool(4);
  std::vector<std::thread> threads;
  std::atomic<int> ran{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int round = 0; round < 10; round++) {
        Functions inner, outer;
        for (std::uint64_t k = 0; k < 12; k++) inner.add(k % 3, [&] { ran++; });
        inner.finish();
        for (std::uint64_t k = 0; k < 6; k++) outer.add(k % 2, [&] { inner.run(pool); });
        outer.finish();
        outer.run(pool);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(ran == 4 * 10 * 6 * 12);
}

}  // namespace workers_test
