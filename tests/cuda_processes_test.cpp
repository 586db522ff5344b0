// CUDA devices of several processes: who uses which GPUs, and programs over them, whose boxes go through host memory or NCCL. Here the
// processes are threads of one (loopback.h), with fake GPUs; tests/processes/check has real processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/gpus_of_processes.h"
#include "cuda/part_boxes.h"
#include "cuda_fake.h"
#include "loopback.h"
#include "platform_programs.h"
#include "process_helpers.h"

namespace cuda_processes_test {

namespace sa = shardarray;
using namespace sa::cuda;
using namespace sa::testing;
using platform_test::mesh_of;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

/// A process that sees GPUs of these names.
SeenGpus seeing(const std::vector<std::string>& uuids, int logical = 1, int nccl = 22809) {
  SeenGpus s;
  for (const std::string& uuid : uuids) s.gpus.push_back({uuid, "a GPU of two words", 1000});
  s.logical_devices = logical;
  s.nccl = nccl;
  return s;
}
using Numbers = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("cuda processes: what one sees comes to the others") {
  SeenGpus s = seeing({"a", "b"}, 3);
  s.gpus[1].memory = std::uint64_t{1} << 40;
  const SeenGpus got = seen_gpus(to_text(s));
  REQUIRE(got.gpus.size() == 2);
  for (std::size_t k = 0; k < 2; k++) {
    CHECK(got.gpus[k].uuid == s.gpus[k].uuid);
    CHECK(got.gpus[k].name == "a GPU of two words");
    CHECK(got.gpus[k].memory == s.gpus[k].memory);
  }
  CHECK(got.logical_devices == 3);
  CHECK(got.nccl == 22809);
  CHECK(got.failure.empty());
  s = SeenGpus();
  s.failure = "there is none.";
  CHECK(seen_gpus(to_text(s)).failure == "there is none.");
  CHECK(seen_gpus(to_text(s)).gpus.empty());
}

TEST_CASE("cuda processes: GPUs that several processes see are dealt out") {
  const auto numbers_of = [](const std::vector<SeenGpus>& all) { return deal_out(all).numbers; };
  const SeenGpus one = seeing({"a"}), four = seeing({"a", "b", "c", "d"}), other = seeing({"e", "f"});
  CHECK(numbers_of({four}) == Numbers{{0, 1, 2, 3}});
  CHECK(numbers_of({four, four}) == Numbers{{0, 1}, {2, 3}});
  CHECK(numbers_of({four, four, four}) == Numbers{{0}, {1}, {2, 3}});
  CHECK(numbers_of({four, other, four, other}) == Numbers{{0, 1}, {0}, {2, 3}, {1}});
  CHECK(numbers_of({one, other}) == Numbers{{0}, {0, 1}});
  CHECK(numbers_of({other, other, other}) == Numbers{{0}, {1}, {0}});
  // Every GPU has a user, whatever their numbers.
  for (int gpus = 1; gpus < 12; gpus++)
    for (int processes = 1; processes <= gpus; processes++) {
      std::vector<std::string> uuids;
      for (int g = 0; g < gpus; g++) uuids.push_back(std::to_string(g));
      std::vector<int> used;
      for (const auto& row :
           numbers_of(std::vector<SeenGpus>(static_cast<std::size_t>(processes), seeing(uuids)))) {
        CHECK(!row.empty());
        used.insert(used.end(), row.begin(), row.end());
      }
      CHECK(std::ssize(used) == gpus);
      CHECK(std::is_sorted(used.begin(), used.end()));
    }
}

TEST_CASE("cuda processes: devices and their memory, and whether NCCL joins the GPUs") {
  const SeenGpus four = seeing({"a", "b", "c", "d"}, 2), one = seeing({"e"}, 2);
  const UsedGpus used = deal_out({four, one, four});
  REQUIRE(used.devices.size() == 10);
  const std::vector<int> process = {0, 0, 0, 0, 1, 1, 2, 2, 2, 2}, memory = {0, 0, 1, 1, 0, 0, 0, 0, 1, 1};
  for (std::size_t k = 0; k < 10; k++) {
    CHECK(used.devices[k].id == static_cast<int>(k));
    CHECK(used.devices[k].platform == "cuda");
    CHECK(used.devices[k].kind == "a GPU of two words");
    CHECK(used.devices[k].process_index == process[k]);
    CHECK(used.devices[k].memory == memory[k]);
  }
  CHECK(used.uuids == std::vector<std::vector<std::string>>{{"a", "b"}, {"e"}, {"c", "d"}});
  CHECK(used.memory == 500);
  CHECK(used.by_nccl);
  CHECK(!deal_out({one, one}).by_nccl);  // of one GPU it has one rank
  CHECK(deal_out({one, one}).memory == 250);
  CHECK(!deal_out({four, seeing({"e"}, 2, 22900)}).by_nccl);
  CHECK(!deal_out({four, seeing({"e"}, 2, 0)}).by_nccl);
  CHECK(!deal_out({seeing({"a"}, 1, 0), seeing({"e"}, 1, 0)}).by_nccl);
  SeenGpus none;
  none.failure = "cuda: this machine has no NVIDIA driver.";
  CHECK(thrown([&] {
          static_cast<void>(deal_out({four, none}));
        }) ==
        "cuda: this machine has no NVIDIA driver. So says process 1 of 2, and CUDA devices are those of all "
        "processes.");
}

TEST_CASE("cuda processes: the boxes of an exchange move at once, no exchange waits for a later one") {
  struct Box {
    std::size_t step, exchange;
    bool sent;
  };
  const auto groups = [](const std::vector<Box>& boxes, std::size_t step) {
    std::vector<sa::PartBox> all;
    for (const Box& b : boxes) {
      all.emplace_back().step = b.step;
      all.back().exchange = b.exchange;
      all.back().sent = b.sent;
    }
    std::vector<std::size_t> sizes;
    for (const auto& group : crossings(all, step)) sizes.push_back(group.size());
    return sizes;
  };
  using Sizes = std::vector<std::size_t>;
  CHECK(groups({}, 0) == Sizes{});
  const std::vector<Box> some = {{0, 1, true}, {0, 1, false}, {1, 4, true}};
  CHECK(groups(some, 0) == Sizes{2});
  CHECK(groups(some, 1) == Sizes{1});
  CHECK(groups(some, 2) == Sizes{});
  CHECK(groups({{0, 1, true}, {0, 2, true}, {0, 2, false}, {0, 3, false}, {0, 5, false}}, 0) ==
        Sizes{1, 2, 1, 1});
}

// ---------------------------------------------------------------- runs

TEST_CASE("cuda process: NCCL moves what goes between processes" * doctest::skip()) {
  const auto program = [](const sa::Mesh& mesh, platform_test::Read read) {
    const Array x = put(numbers({16, 8}), mesh, P("x", "y"));
    const auto f = sa::jit([](const Array& v) { return sa::roll(v, 1, 0) + sa::sum(v, 0) * sa::flip(v, 1); });
    return std::pair(read(f(x)), read(f(x * 2)));
  };
  const auto everywhere = [](const Array& x) {
    return platform_test::bits(
        sa::device_put(x, sa::PositionalSharding(x.sharding().device_assignment()).replicate()));
  };
  const auto want = program(mesh_of(sa::devices("cuda")), platform_test::bits);
  for (const int processes : {2, 4})
    for (auto& one : World::of(processes).run([&](int, const std::vector<sa::Device>& devices) {
           return program(mesh_of(devices), everywhere);
         }))
      CHECK(one.get() == want);
  CHECK(fake_control().nccl_calls(0) > 0);
  CHECK(fake_control().nccl_calls(0) == fake_control().nccl_calls(1));
  CHECK(fake_control().nccl_misuse() == 0);
}

TEST_CASE("cuda process: one that does not come ends the run of the other, and NCCL's waiting" *
          doctest::skip()) {
  World& w = World::of(2);
  const auto step = [](const std::vector<sa::Device>& devices) {
    const Array x = put(numbers({16, 8}), mesh_of(devices), P("x", "y"));
    sa::block_until_ready(sa::jit([](const Array& v) { return sa::roll(v, 1, 0); })(x));
    sa::block_until_ready(sa::jit([](const Array& v) { return sa::flip(v, 0) * 3; })(x));
  };
  for (auto& one : w.run([&](int, const std::vector<sa::Device>& devices) { return step(devices), 0; }))
    one.get();
  // Who waits for NCCL does so until its deadline, who waits for a box until the transport's.
  w.hub.deadline_ms = 200;
  const std::string says = std::getenv("SHARDARRAY_FAKE_NCCL") != nullptr
                               ? "NCCL does not come to an end on GPU 0"
                               : "within the deadline";
  for (auto& one : w.run([&](int p, const std::vector<sa::Device>&devices) {
         return p == 1 ? says : thrown([&] { step(devices); });
       }))
    CHECK_MESSAGE(one.get().find(says) != std::string::npos, says);
}

TEST_CASE("cuda process: one that fails ends the run of the other at once" * doctest::skip()) {
  World& w = World::of(2);
  const auto step = [](const std::vector<sa::Device>& devices) {
    const Array x = put(numbers({16, 8}), mesh_of(devices), P("x", "y"));
    return sa::block_until_ready(sa::jit([](const Array& v) { return sa::roll(v, 1, 0); })(x));
  };
  for (auto& one : w.run([&](int, const std::vector<sa::Device>& devices) { return step(devices), 0; }))
    one.get();
  // Another program in the second process: it has begun before that is known.
  const auto began = std::chrono::steady_clock::now();
  for (auto& one : w.run([&](int p, const std::vector<sa::Device>&devices) {
         return thrown([&] {
           const Array x = put(numbers({16, 8}), mesh_of(devices), P("x", "y"));
           sa::block_until_ready(
               sa::jit([&](const Array& v) { return p == 0 ? sa::roll(v, 3, 0) : sa::flip(v, 0); })(x));
         });
       }))
    CHECK(one.get().find("run different programs") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
}

TEST_CASE("cuda: programs over several processes, by way of the host's memory and by NCCL") {
  const std::string world =
      "SHARDARRAY_TEST_WORLD=cuda SHARDARRAY_FAKE_GPUS=4 SHARDARRAY_CUDA_LOGICAL_DEVICES=8 "
      "SHARDARRAY_CPU_DEVICES=8 ";
  for (const std::string& way : {std::string(), std::string("SHARDARRAY_FAKE_NCCL=there ")})
    for (const char* const name : {"transport: several processes compute*", "transport: lines that flush*",
                                   "transport: scans over*", "transport: branches and while*"})
      text_on_fake(name, world + way);
  // Large blocks that go back to a GPU wait for NCCL's work: for that of the other "process" here.
  text_on_fake("transport: collectives*", world);
  text_on_fake("transport: communication k fails*", world);
  text_on_fake("transport: processes that run different*", world);
  for (const char* const name : {"cuda process: NCCL moves*", "cuda process: one that does not come*"})
    text_on_fake(name, world + "SHARDARRAY_FAKE_NCCL=there SHARDARRAY_FAKE_NCCL_DEADLINE=300 ");
  text_on_fake("cuda process: one that fails*", world + "SHARDARRAY_FAKE_NCCL=there ");
}

}  // namespace cuda_processes_test
