// Devices and their memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "messages.h"
#include "runtime/arena.h"
#include "runtime/devices.h"
#include "runtime/memory_source.h"
#include "shardarray/error.h"

namespace devices_test {

using namespace shardarray;
using testing::contains;
using testing::message_of;

namespace {

// The system's memory, counted, and refused from a chosen call on.
struct CountedMemory final : MemorySource {
  std::int64_t mapped = 0, calls = 0, fail_from = -1, fail_count = 0;
  MemorySource& real;
  CountedMemory() : real(set_system_memory(*this)) {}
  ~CountedMemory() override { set_system_memory(real); }
  void* map(std::size_t bytes) override {
    const std::int64_t call = calls++;
    if (fail_from >= 0 && call >= fail_from && call < fail_from + fail_count) return nullptr;
    mapped += static_cast<std::int64_t>(bytes);
    return real.map(bytes);
  }
  void unmap(void* p, std::size_t bytes) override {
    mapped -= static_cast<std::int64_t>(bytes);
    real.unmap(p, bytes);
  }
  void fill(void* p, unsigned char byte, std::size_t bytes) override { real.fill(p, byte, bytes); }
};

// Only gives buffers back to its arena.
struct ArenaBackend final : Backend {
  explicit ArenaBackend(MemoryLimit limit = {}) : arena(this, 3, nullptr, limit) {}
  Arena arena;
  const char* platform() const override { return "cpu"; }
  int device_count() const override { return 1; }
  const Target& target() const override { return backend("cpu").target(); }
  BufferRef allocate(int, std::size_t bytes) override { return BufferRef(arena.allocate(bytes)); }
  void deallocate(Buffer* b) override { arena.deallocate(b); }
  void copy_from_host(const BufferRef&, const void*, std::size_t) override {}
  void copy_to_host(void*, const BufferRef&, std::size_t) override {}
  std::unique_ptr<Executable> load(std::shared_ptr<const Program>) override { return nullptr; }
  MemoryStats memory_stats(int) const override { return arena.stats(); }
};

}  // namespace

TEST_CASE("arena: alignment, contents, recycling, statistics") {
  CountedMemory memory;
  {
    ArenaBackend backend;
    std::mt19937 rng(1);
    std::vector<std::pair<BufferRef, unsigned char>> live;
    std::size_t in_use = 0, most = 0;
    for (int step = 0; step < 3000; step++) {
      if (live.empty() || rng() % 3 != 0) {
        const std::size_t bytes =
            rng() % (std::size_t{1} << (rng() % 20)) + (rng() % 300 == 0 ? 5'000'000 : 0);
        BufferRef b = backend.allocate(0, bytes);
        REQUIRE(reinterpret_cast<std::uintptr_t>(b->data) % (bytes >= huge_page ? huge_page : 64) == 0);
        REQUIRE(b->bytes == bytes);
        REQUIRE(b->device == 3);
        const auto value = static_cast<unsigned char>(rng());
        std::memset(b->data, value, bytes);
        live.emplace_back(std::move(b), value);
        in_use += bytes;
        most = std::max(most, in_use);
      } else {
        std::swap(live[rng() % live.size()], live.back());
        auto& [b, value] = live.back();
        const auto* const p = static_cast<const unsigned char*>(b->data);
        REQUIRE(std::all_of(p, p + b->bytes, [v = value](unsigned char x) { return x == v; }));
        in_use -= b->bytes;
        live.pop_back();
      }
    }
    const MemoryStats s = backend.arena.stats();
    CHECK(s.in_use == in_use);
    CHECK(s.high_water == most);
    CHECK(s.held == static_cast<std::size_t>(memory.mapped));
  }
  CHECK(memory.mapped == 0);
}

TEST_CASE("arena: a returned block serves again without the system or malloc") {
  CountedMemory memory;
  ArenaBackend backend;
  for (std::size_t bytes : {0, 1, 64, 65, 192, 1000, 100'000, 1'500'000, 2'000'000, 64'000'000}) {
    CAPTURE(bytes);
    BufferRef a = backend.allocate(0, bytes);
    const Buffer* const object = a.get();
    const void* const data = a->data;
    a = {};
    const auto calls = memory.calls;
    const BufferRef b = backend.allocate(0, bytes);
    CHECK(b.get() == object);  // the Buffer object itself comes back: no malloc
    CHECK(b->data == data);
    CHECK(b->unique());
    CHECK(memory.calls == calls);
  }
}

TEST_CASE("arena: sizes that change do not pile up") {
  CountedMemory memory;
  ArenaBackend backend;
  for (std::size_t mib = 4; mib < 64; mib += 2) (void)backend.allocate(0, mib << 20);
  const MemoryStats s = backend.arena.stats();
  CHECK(s.held <= 2 * s.high_water);
}

TEST_CASE("arena: the k-th refusal of the system") {
  const std::vector<std::size_t> sizes = {10,     3'000'000, 700'000, 64'000,    9'000'000,
                                          60'000, 1'200'000, 50'000,  30'000'000};
  for (int k = 0; k < 12; k++) {
    CAPTURE(k);
    CountedMemory memory;
    {
      ArenaBackend backend;
      memory.fail_from = k;
      memory.fail_count = 2;  // a refused request is tried again after free blocks went back
      std::vector<BufferRef> live;
      int refused = 0;
      for (std::size_t bytes : sizes) {
        try {
          live.push_back(backend.allocate(0, bytes));
          std::memset(live.back()->data, static_cast<int>(live.size()), bytes);
        } catch (const OutOfMemory& e) {
          refused++;
          CHECK(contains(e.what(),
                         "allocate: the system refused " + std::to_string(bytes) + " bytes for cpu:3"));
        }
      }
      CHECK(refused <= 1);
      for (std::size_t n = 0; n < live.size(); n++) {
        const auto* const p = static_cast<const unsigned char*>(live[n]->data);
        CHECK((p[0] == n + 1 && std::memcmp(p, p + 1, live[n]->bytes - 1) == 0));  // all bytes alike
      }
      live.clear();
      for (std::size_t bytes : sizes) live.push_back(backend.allocate(0, bytes));
    }
    CHECK(memory.mapped == 0);
  }
  ArenaBackend backend;
  CHECK(contains(message_of<OutOfMemory>([&] { (void)backend.allocate(0, ~std::size_t{0} - 5); }),
                 "18446744073709551610 bytes"));
  CHECK(backend.arena.stats().in_use == 0);
}

TEST_CASE("arena: a limit") {
  CountedMemory memory;
  ArenaBackend limited({std::size_t{8} << 20, "SOME_LIMIT"});
  constexpr std::size_t mib = std::size_t{1} << 20;
  BufferRef small = limited.allocate(0, 100);  // cut from a block of 1 MiB
  BufferRef a = limited.allocate(0, 4 * mib);
  CHECK(
      message_of<OutOfMemory>([&] { (void)limited.allocate(0, 3 * mib); }) ==
      "allocate: the limit SOME_LIMIT=8388608 refused 3145728 bytes for cpu:3 (4194404 bytes in use, 5242880 "
      "held; a block of 4194304 was needed). All memory of a program is taken before it runs. Free arrays, "
      "donate inputs (std::move) or spread the arrays over more memory, or raise the limit.");
  const BufferRef b = limited.allocate(0, 2 * mib);  // in blocks of 2 MiB
  a = {};
  const BufferRef c = limited.allocate(0, 3 * mib);  // what is kept of freed ones goes first
  CHECK(limited.arena.stats().held == 7 * mib);
  CHECK(contains(message_of<OutOfMemory>([&] { (void)limited.allocate(0, ~std::size_t{0} - 5); }),
                 "the limit SOME_LIMIT=8388608 refused 18446744073709551610 bytes"));
  CHECK(static_cast<std::size_t>(memory.mapped) == limited.arena.stats().held);
}

TEST_CASE("arena: what was freed serves every other size") {
  CountedMemory memory;
  constexpr std::size_t limit = std::size_t{32} << 20;
  const std::vector<std::size_t> sizes = {64,      100,       4000,      60'000,    100'000,
                                          500'000, 1'000'000, 1'500'000, 3'000'000, limit};
  const auto fill = [&](ArenaBackend& b, std::size_t bytes) {
    std::vector<BufferRef> all;
    try {
      for (;;) all.push_back(b.allocate(0, bytes));
    } catch (const OutOfMemory&) {}
    return all.size();
  };
  ArenaBackend used({limit, "SOME_LIMIT"});
  for (int round = 0; round < 3; round++)
    for (std::size_t k = 0; k < sizes.size(); k++) {
      const std::size_t bytes = sizes[(k * 7 + static_cast<std::size_t>(round) * 3) % sizes.size()];
      CAPTURE(bytes);
      ArenaBackend fresh({limit, "SOME_LIMIT"});
      CHECK(fill(used, bytes) == fill(fresh, bytes));
    }
  {  // one small block in use keeps its slab, nothing else
    const BufferRef small = used.allocate(0, 100);
    CHECK(fill(used, std::size_t{2} << 20) == 15);
    CHECK(used.arena.stats().held <= limit);
  }
  CHECK(used.arena.stats().in_use == 0);
}

TEST_CASE("arena: debug fill shows memory that nobody wrote") {
  const bool before = set_debug_fill(true);
  ArenaBackend backend;
  for (int round = 0; round < 2; round++) {
    const BufferRef b = backend.allocate(0, 1000);
    const auto* const p = static_cast<const unsigned char*>(b->data);
    CHECK(std::all_of(p, p + 1000, [](unsigned char x) { return x == 0xff; }));
    std::memset(b->data, 0, 1000);
  }
  set_debug_fill(before);
}

TEST_CASE("arena: many threads") {
  ArenaBackend backend;
  std::atomic<bool> wrong{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(static_cast<std::uint32_t>(t));
      std::array<BufferRef, 8> live;
      for (int step = 0; step < 2000; step++) {
        BufferRef& b = live[rng() % 8];
        if (b) {
          const auto* const p = static_cast<const unsigned char*>(b->data);
          if (p[0] != t || p[b->bytes - 1] != t) wrong = true;
        }
        b = backend.allocate(0, 1 + rng() % 4000);
        std::memset(b->data, t, b->bytes);
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK_FALSE(wrong);
  CHECK(backend.arena.stats().in_use == 0);
}

TEST_CASE("devices: lists, counts and their errors") {
  const int n = device_count();
  CHECK(n >= 1);
  CHECK(local_device_count() == n);
  CHECK(process_index() == 0);
  CHECK(process_count() == 1);
  const auto all = devices();
  REQUIRE(static_cast<int>(all.size()) == n);
  for (int k = 0; k < n; k++) {
    CHECK(all[k].id == k);
    CHECK(all[k].platform == "cpu");
  }
  CHECK(devices("cpu") == all);
  CHECK(local_devices() == all);
  CHECK(contains(message_of<DeviceError>([] { (void)devices("tpu"); }),
                 "devices: the platform 'tpu' is unknown. This process has"));
  CHECK_NOTHROW(set_cpu_device_count(n));
  CHECK(contains(message_of<DeviceError>([&] { set_cpu_device_count(n + 1); }),
                 "set_cpu_device_count: " + std::to_string(n + 1) +
                     " devices asked for, but the process uses " + std::to_string(n) + " already."));
  for (int bad : {0, -2, 100'000}) {
    CHECK(contains(message_of<DeviceError>([&] { set_cpu_device_count(bad); }),
                   "the number is " + std::to_string(bad)));
  }
}

TEST_CASE("devices: default device is a scope of one thread") {
  CHECK(current_default_device().id == 0);
  const Device last = devices().back();
  {
    const default_device outer(last);
    CHECK(current_default_device() == last);
    {
      const default_device inner(devices()[0]);
      CHECK(current_default_device().id == 0);
    }
    CHECK(current_default_device() == last);
    std::thread([] { CHECK(current_default_device().id == 0); }).join();
  }
  CHECK(current_default_device().id == 0);
  Device missing;
  missing.id = 9999;
  CHECK(contains(message_of<DeviceError>([&] { const default_device d(missing); }),
                 "default_device: there is no device cpu:9999."));
  missing.platform = "tpu";
  CHECK(contains(message_of<DeviceError>([&] { const default_device d(missing); }),
                 "default_device: the platform 'tpu' is unknown."));
}

TEST_CASE("devices: create_device_mesh") {
  std::vector<Device> eight(8);
  for (int k = 0; k < 8; k++) eight[k].id = 7 - k;
  const DeviceGrid grid = create_device_mesh({4, 2}, eight);
  CHECK(grid.shape == Shape{4, 2});
  CHECK(grid.devices == eight);
  CHECK(create_device_mesh({2, -1, 2}, eight).shape == Shape{2, 2, 2});
  CHECK(create_device_mesh({-1}, eight).shape == Shape{8});
  CHECK(create_device_mesh({device_count()}).devices == devices());
  for (const Shape& bad :
       {Shape{3, 2}, Shape{-1, -1}, Shape{-1, 3}, Shape{0, 8}, Shape{}, Shape{-2, 4}, Shape{1ll << 62, 8}}) {
    CHECK(contains(message_of<DeviceError>([&] { (void)create_device_mesh(bad, eight); }),
                   "create_device_mesh: the shape " + to_string(bad) + " does not fit 8 devices."));
  }
}

TEST_CASE("devices: backends are found and can be replaced") {
  Backend& cpu = backend("cpu");
  CHECK(cpu.device_count() == device_count());
  ArenaBackend other;
  CHECK(set_backend("cpu", &other) == &cpu);
  CHECK(&backend("cpu") == &other);
  CHECK(set_backend("cpu", &cpu) == &other);
  CHECK(&backend("cpu") == &cpu);
  CHECK(contains(message_of<DeviceError>([] { (void)backend("tpu"); }),
                 "backend: the platform 'tpu' is unknown."));
}

}  // namespace devices_test
