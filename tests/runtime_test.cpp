// Thread pool and task graphs.
#include <doctest/doctest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "messages.h"
#include "runtime/devices.h"
#include "runtime/pool.h"
#include "runtime/task_graph.h"
#include "shardarray/error.h"

namespace runtime_test {

using namespace shardarray;
using testing::contains;
using testing::message_of;

namespace {

struct Cells {
  std::vector<std::vector<std::uint64_t>> data;
  std::vector<void*> bases() {
    std::vector<void*> b;
    for (auto& d : data) b.push_back(d.data());
    return b;
  }
};

// One elementwise operation on cells: dst[i] = mix(old dst[i], sources[i]...). Order matters.
struct Operation {
  struct Range {
    std::uint32_t base;
    std::uint64_t first;
  };
  Range dst;
  std::vector<Range> sources;
  std::uint64_t count, salt;
  bool keeps = false;  // reads dst as well

  static void run(const void* self, void* const* bases, std::int64_t begin, std::int64_t end) {
    const auto& op = *static_cast<const Operation*>(self);
    const auto cell = [&](Range r, std::int64_t i) -> std::uint64_t& {
      return static_cast<std::uint64_t*>(bases[r.base])[r.first + static_cast<std::uint64_t>(i)];
    };
    for (std::int64_t i = begin; i < end; i++) {
      std::uint64_t h = op.keeps ? cell(op.dst, i) * 31 + op.salt : op.salt;
      for (Range s : op.sources) h = (h ^ cell(s, i)) * 0x9e3779b97f4a7c15ull + 1;
      cell(op.dst, i) = h;
    }
  }
  void add_to(TaskGraph& g, int chunks) const {
    const auto bytes = [&](Range r) { return MemoryRange{r.base, r.first * 8, (r.first + count) * 8}; };
    std::vector<MemoryRange> reads;
    for (Range s : sources) reads.push_back(bytes(s));
    if (keeps) reads.push_back(bytes(dst));
    std::vector<Task> tasks;
    const auto n = static_cast<std::int64_t>(count);
    for (int c = 0; c < chunks; c++) tasks.push_back({run, this, n * c / chunks, n * (c + 1) / chunks, 1e6});
    g.add(tasks, reads, std::vector{bytes(dst)});
  }
};

struct RandomWork {
  std::vector<Operation> operations;
  Cells start;
  RandomWork(std::uint32_t seed, int n) {
    std::mt19937 rng(seed);
    const auto pick = [&](std::uint64_t below) { return rng() % below; };
    start.data.resize(1 + pick(4));
    for (auto& d : start.data) {
      d.resize(32 + pick(64));
      for (auto& x : d) x = rng();
    }
    for (int k = 0; k < n; k++) {
      Operation op;
      op.count = 1 + pick(k % 5 == 0 ? 32 : 6);
      op.salt = rng();
      op.keeps = pick(2) == 0;
      const auto place = [&] {
        const auto b = static_cast<std::uint32_t>(pick(start.data.size()));
        return Operation::Range{b, pick(start.data[b].size() - op.count + 1)};
      };
      op.dst = place();
      for (std::uint64_t s = pick(4); s > 0; s--) {
        const auto r = place();
        // A source that overlaps the destination at other cells would make the chunks depend on each other.
        const bool overlaps =
            r.base == op.dst.base && r.first < op.dst.first + op.count && op.dst.first < r.first + op.count;
        if (!overlaps || r.first == op.dst.first) op.sources.push_back(r);
      }
      operations.push_back(op);
    }
  }
  Cells expected() const {
    Cells c = start;
    const auto bases = c.bases();
    for (const Operation& op : operations)
      Operation::run(&op, bases.data(), 0, static_cast<std::int64_t>(op.count));
    return c;
  }
  void build(TaskGraph& g) const {
    int k = 0;
    for (const Operation& op : operations) op.add_to(g, 1 + k++ % 4);
    g.finish();
  }
};

}  // namespace

TEST_CASE("thread pool: everybody shares one job, jobs nest and overlap") {
  for (int workers : {1, 2, 3, 8}) {
    CAPTURE(workers);
    ThreadPool pool(workers);
    struct Job {
      ThreadPool* pool;
      std::atomic<int> next{0}, done{0};
      int depth;
      static void work(void* p) {
        Job& j = *static_cast<Job*>(p);
        while (j.next.fetch_add(1) < 20) {
          if (j.depth > 0) {
            Job inner{j.pool, {}, {}, j.depth - 1};
            j.pool->run(work, &inner);
            if (inner.done != 20) std::abort();
          }
          j.done.fetch_add(1);
        }
      }
    };
    std::vector<std::thread> callers;
    std::atomic<int> right{0};
    for (int c = 0; c < 2; c++) {
      callers.emplace_back([&] {
        for (int round = 0; round < 5; round++) {
          Job job{&pool, {}, {}, 1};
          pool.run(Job::work, &job);
          right += job.done == 20;
        }
      });
    }
    for (auto& c : callers) c.join();
    CHECK(right == 10);
  }
}

TEST_CASE("thread pool: cores by affinity and by quota") {
  cpu_set_t all, one;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CPU_ZERO(&one);
  for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; k++)
    if (CPU_ISSET(k, &all)) CPU_SET(k, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(available_cores() == 1);
  sched_setaffinity(0, sizeof all, &all);

  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "shardarray-cgroup-XXXXXX").string();
  REQUIRE((mkdtemp(pattern.data()) != nullptr));
  const fs::path root = pattern;
  const auto write = [&](const std::string& name, const std::string& text) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text << "\n";
  };
  const auto cores = [&](const std::string& groups) {
    write("groups", groups);
    return quota_cores(root / "groups", root);
  };
  write("a/b/cpu.max", "max 100000");
  CHECK(cores("0::/a/b") > 100);
  write("a/cpu.max", "350000 100000");
  CHECK(cores("0::/a/b") == 4);  // rounded up
  write("a/b/cpu.max", "20000 100000");
  CHECK(cores("0::/a/b") == 1);
  write("cpu/c/cpu.cfs_quota_us", "200000");
  write("cpu/c/cpu.cfs_period_us", "100000");
  write("cpu/d/cpu.cfs_quota_us", "-1");
  write("cpu/d/cpu.cfs_period_us", "100000");
  CHECK(cores("7:memory:/a\n3:cpu,cpuacct:/c\n1:name=systemd:/a") == 2);
  CHECK(cores("3:cpu,cpuacct:/d") > 100);
  CHECK(cores("nothing that is known") > 100);
  fs::remove_all(root);
}

TEST_CASE("thread pool: a launcher's processes on one machine share its cores") {
  CHECK(share_of_cores(12) == 12);
  for (const auto& [name, text] :
       std::vector<std::pair<const char*, const char*>>{{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                                                        {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"},
                                                        {"LOCAL_WORLD_SIZE", "3"}}) {
    if (std::getenv(name) != nullptr) continue;  // there is one
    setenv(name, text, 1);
    CHECK(share_of_cores(12) == 4);
    CHECK(share_of_cores(2) == 1);
    unsetenv(name);
  }
}

TEST_CASE("thread pool: counts") {
  CHECK(available_cores() >= 1);
  ThreadPool pool(2);
  pool.set_worker_count(5);
  CHECK(pool.worker_count() == 5);
  for (int n : {0, -1, 5000}) {
    CHECK(contains(message_of<DeviceError>([&] { pool.set_worker_count(n); }),
                   "set_worker_count: the number is " + std::to_string(n) + ". It must be from 1 to 1024."));
  }
  setenv("SHARDARRAY_TEST_COUNT", "7", 1);
  CHECK(count_from_environment("SHARDARRAY_TEST_COUNT", 10) == 7);
  for (const char* bad : {"0", "-3", "seven", "11", "7 "}) {
    setenv("SHARDARRAY_TEST_COUNT", bad, 1);
    const auto text =
        message_of<DeviceError>([] { (void)count_from_environment("SHARDARRAY_TEST_COUNT", 10); });
    CHECK(contains(text, "SHARDARRAY_TEST_COUNT"));
    CHECK(contains(text, bad));
  }
  unsetenv("SHARDARRAY_TEST_COUNT");
  CHECK_FALSE(count_from_environment("SHARDARRAY_TEST_COUNT", 10));
}

TEST_CASE("task graph: random graphs equal their sequential execution") {
  std::vector<std::unique_ptr<ThreadPool>> pools;
  for (int w = 1; w <= 8; w++) pools.push_back(std::make_unique<ThreadPool>(w));
  for (std::uint32_t seed = 0; seed < 60; seed++) {
    CAPTURE(seed);
    const RandomWork work(seed, 2 + static_cast<int>(seed) * 3);
    const Cells expected = work.expected();
    TaskGraph graph;
    work.build(graph);
    for (auto& pool : pools) {
      Cells cells = work.start;
      graph.run(cells.bases().data(), *pool);
      REQUIRE(cells.data == expected.data);
    }
  }
}

TEST_CASE("task graph: two runs of one graph at the same time") {
  const RandomWork work(77, 100);
  const Cells expected = work.expected();
  TaskGraph graph;
  work.build(graph);
  ThreadPool pool(3);
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; c++) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; round++) {
        Cells cells = work.start;
        graph.run(cells.bases().data(), pool);
        right += cells.data == expected.data;
      }
    });
  }
  for (auto& c : callers) c.join();
  CHECK(right == 60);
}

TEST_CASE("task graph: the exception of task k reaches the caller and spoils nothing else") {
  constexpr int n = 30;
  struct Node {
    int id;
    static void run(const void* self, void* const* bases, std::int64_t, std::int64_t) {
      const int id = static_cast<const Node*>(self)->id;
      if (id == *static_cast<int*>(bases[0])) throw std::runtime_error("node " + std::to_string(id));
      static_cast<std::atomic<int>*>(bases[1])->fetch_add(1);
    }
  };
  std::array<Node, n> nodes;
  TaskGraph graph;
  for (int k = 0; k < n; k++) {
    nodes[k].id = k;
    const auto lane = static_cast<std::uint64_t>(k % 3);  // three independent chains
    graph.add({Node::run, &nodes[k], 0, 0, 1e6}, {}, std::vector{MemoryRange{2, lane, lane + 1}});
  }
  graph.finish();
  for (int workers : {1, 2, 4}) {
    ThreadPool pool(workers);
    for (int bad = 0; bad <= n; bad++) {
      std::atomic<int> ran{0};
      std::array<void*, 3> bases = {&bad, &ran, nullptr};
      const auto text = message_of<std::runtime_error>([&] { graph.run(bases.data(), pool); });
      if (bad == n) {
        CHECK(text == "nothing was thrown");
        CHECK(ran == n);
      } else {
        CHECK(text == "node " + std::to_string(bad));
        CHECK(ran < n);
      }
    }
  }
}

namespace {

// Every late task adds 1 to its cell, at once or from another thread; number `bad` fails, or is not even begun.
class LateCells final : public LateWork {
 public:
  LateCells(std::atomic<int>* cells, int bad, bool refuses) : cells_(cells), bad_(bad), refuses_(refuses) {}
  ~LateCells() {
    for (std::thread& t : threads_) t.join();
  }
  void start(std::int64_t number, LateEnd ended) override {
    const auto act = [this, number, ended] {
      if (number == bad_)
        return ended(std::make_exception_ptr(std::runtime_error("late " + std::to_string(number))));
      cells_[number]++;
      ended();
    };
    if (number == bad_ && refuses_) throw std::runtime_error("late " + std::to_string(number));
    if (number % 3 == 0) return act();
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([act, number] {
      if (number % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      act();
    });
  }
  void stop(const std::exception_ptr&) noexcept override { stops++; }
  std::atomic<int> stops{0};

 private:
  std::atomic<int>* cells_;
  int bad_;
  bool refuses_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("task graph: late tasks end from outside, in their order, and fail the run") {
  // Three lanes of late tasks, each followed by one that doubles what it has left.
  constexpr int n = 24;
  struct Double {
    int cell;
    static void run(const void* self, void* const* bases, std::int64_t, std::int64_t) {
      auto* const cells = static_cast<std::atomic<int>*>(bases[0]);
      const int at = static_cast<const Double*>(self)->cell;
      cells[at] = cells[at] * 2 + (at >= 3 ? cells[at - 3].load() : 0);
    }
  };
  std::array<Double, n> doubles;
  TaskGraph graph;
  std::array<int, n> want{};
  for (int k = 0; k < n; k++) {
    const std::vector lane{
        MemoryRange{1, static_cast<std::uint64_t>(k % 3), static_cast<std::uint64_t>(k % 3) + 1}};
    graph.add_late(k, {}, lane);
    doubles[static_cast<std::size_t>(k)].cell = k;
    graph.add({Double::run, &doubles[static_cast<std::size_t>(k)], 0, 0, 10}, {}, lane);
    want[static_cast<std::size_t>(k)] = 2 + (k >= 3 ? want[static_cast<std::size_t>(k - 3)] : 0);
  }
  graph.finish();
  for (const int workers : {1, 2, 4}) {
    ThreadPool pool(workers);
    for (int bad = -1; bad < n; bad += 5) {
      for (const bool refuses : {false, true}) {
        std::array<std::atomic<int>, n> cells{};
        std::array<void*, 2> bases = {cells.data(), nullptr};
        LateCells late(cells.data(), bad, refuses);
        const auto text = message_of<std::runtime_error>([&] { graph.run(bases.data(), late, pool); });
        CHECK(text == (bad < 0 ? "nothing was thrown" : "late " + std::to_string(bad)));
        CHECK(late.stops == (bad < 0 ? 0 : 1));
        for (std::size_t k = 0; bad < 0 && k < n; k++) CHECK(cells[k] == want[k]);
      }
    }
  }
}

TEST_CASE("task graph: a run is over when nobody is in the start of a late task") {
  // Its task ends while it goes on.
  class Lingers final : public LateWork {
   public:
    void start(std::int64_t, LateEnd ended) override {
      inside++;
      std::thread(ended).join();
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      inside--;
    }
    void stop(const std::exception_ptr&) noexcept override {}
    std::atomic<int> inside{0};
  };
  TaskGraph graph;
  for (int k = 0; k < 6; k++)
    graph.add_late(k, {}, std::vector{MemoryRange{0, 0, 8}});  // one after the other
  graph.finish();
  ThreadPool pool(4);
  for (int round = 0; round < 50; round++) {
    Lingers late;
    graph.run(nullptr, late, pool);
    CHECK(late.inside == 0);
  }
}

TEST_CASE("task graph: barriers of 8 devices make progress on any number of workers") {
  // 8 producers -> 4 chunks that need all of them -> 8 consumers, 50 times.
  struct Node {
    static void run(const void*, void* const* bases, std::int64_t begin, std::int64_t end) {
      auto* const cells = static_cast<std::int64_t*>(bases[0]);
      if (end == -1) {
        cells[begin] = cells[8] + begin;  // a device
      } else {
        std::int64_t sum = 0;
        for (int d = 0; d < 8; d++) sum += cells[d];
        cells[8 + begin] = sum % 1'000'003;  // a chunk of the collective
      }
    }
  };
  TaskGraph graph;
  const std::vector<MemoryRange> devices = {{0, 0, 64}}, result = {{0, 64, 96}};
  for (int round = 0; round < 50; round++) {
    for (std::uint64_t d = 0; d < 8; d++) {
      graph.add({Node::run, nullptr, static_cast<std::int64_t>(d), -1, 1e6}, result,
                std::vector{MemoryRange{0, 8 * d, 8 * d + 8}});
    }
    std::vector<Task> chunks;
    for (int c = 0; c < 4; c++) chunks.push_back({Node::run, nullptr, c, c, 1e6});
    graph.add(chunks, devices, result);
  }
  graph.finish();
  std::int64_t sum = 0;
  for (int round = 0; round < 50; round++) sum = (8 * sum + 28) % 1'000'003;
  for (int workers : {1, 2, 8}) {
    ThreadPool pool(workers);
    std::array<std::int64_t, 12> cells{};
    void* base = cells.data();
    graph.run(&base, pool);
    for (int c = 8; c < 12; c++) CHECK(cells[c] == sum);
  }
}

TEST_CASE("task graph: small graphs run on the caller in the order of addition") {
  struct Node {
    static void run(const void*, void* const* bases, std::int64_t k, std::int64_t) {
      static_cast<std::vector<std::int64_t>*>(bases[0])->push_back(k);
    }
  };
  TaskGraph graph;
  for (std::uint64_t k = 0; k < 20; k++) {
    graph.add({Node::run, nullptr, static_cast<std::int64_t>(k), 0, 1000}, {},
              std::vector{MemoryRange{1, k, k + 1}});
  }
  graph.finish();
  CHECK(graph.total_cost_ns() == 20'000);
  ThreadPool pool(4);
  std::vector<std::int64_t> order;
  std::array<void*, 2> bases = {&order, nullptr};
  graph.run(bases.data(), pool);
  std::vector<std::int64_t> expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
}

TEST_CASE("task graph: edges stay linear in the number of tasks") {
  const auto nothing = [](const void*, void* const*, std::int64_t, std::int64_t) {};
  TaskGraph graph;
  const std::vector<MemoryRange> weights = {{0, 0, 1000}};
  std::vector<Task> chunks(32, Task{nothing, nullptr, 0, 0, 1});
  for (std::uint32_t step = 0; step < 100; step++) {
    for (std::uint32_t k = 0; k < 30; k++)
      graph.add({nothing, nullptr, 0, 0, 1}, weights, std::vector{MemoryRange{1, k * 8, k * 8 + 8}});
    graph.add(chunks, std::vector{MemoryRange{1, 0, 240}}, weights);
    graph.add(chunks, weights, weights);
  }
  graph.finish();
  CHECK(graph.size() < 100 * (30 + 64 + 16));
  CHECK(graph.edge_count() < 4 * graph.size());
}

}  // namespace runtime_test
