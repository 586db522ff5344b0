// Exchanges over GPUs that read only their own memory, as pure functions: which are NCCL's collectives, and what is packed, sent and
// put in its place of all others. NCCL's table with the real library, which needs no GPU to be opened.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cuda/collective_pattern.h"
#include "cuda/libraries.h"
#include "cuda/split_exchange.h"
#include "random_exchange.h"
#include "scale.h"

namespace cuda_collective_test {

using namespace shardarray;
using namespace shardarray::test;
using cpu_test::message_of;
using cuda::collective_pattern;
using cuda::CollectivePattern;
using cuda::Nccl;
using Kind = CollectivePattern::Kind;

// ---------------------------------------------------------------- the library
TEST_CASE("cuda NCCL: the real library opens, and is of a version that is known") {
  const Nccl* found = nullptr;
  try {
    found = &cuda::nccl();
  } catch (const CompileError& e) {
    MESSAGE("SKIPPED, nothing is asked: " << e.what());
    return;
  }
  int version = 0;
  CHECK(found->get_version(&version) == 0);
  CHECK(version >= Nccl::least_version);
  CHECK(std::string(found->get_error_string(Nccl::invalid_usage)).find("usage") != std::string::npos);
}

TEST_CASE("cuda NCCL: a library that is not there, or is too old") {
  CHECK(message_of<CompileError>([] {
          cuda::open_cuda_library("libnccl.so.0", "Tiles move between GPUs by NCCL",
                                  "Install NCCL 2.22 or newer");
        }) ==
        "cuda: libnccl.so.0: cannot open shared object file: No such file or directory. Tiles move between "
        "GPUs by "
        "NCCL. Install NCCL 2.22 or newer, or name its folder in CUDA_HOME.");
  Nccl old{};
  old.get_version = [](int* version) { return (*version = 21805, 0); };
  CHECK(message_of<CompileError>([&] { cuda::check_version(old); }) ==
        "cuda: NCCL is of version 2.18. Tiles move between GPUs by NCCL. Install NCCL 2.22 or newer.");
}

// ---------------------------------------------------------------- patterns
namespace {

constexpr std::int64_t tile = 6;  // elements of a rank's part
const std::vector<int> four = {0, 1, 2, 3};

Ref own(int gpu, std::uint64_t offset = 0) { return {static_cast<std::uint32_t>(gpu), offset}; }
Exchange::Piece box(std::int64_t elements, Ref dst) { return {{elements}, {1}, {1}, dst, {}}; }

/// On each device of its own GPU: its result is 4096 bytes behind its summand. Groups of neighbours.
Exchange combined(DType t, Reducer reducer, bool scatter, int ranks = 4, int groups = 1) {
  Exchange x;
  x.dtype = t;
  x.reducer = reducer;
  const std::uint64_t bytes = tile * itemsize(t);
  for (int d = 0; d < ranks * groups; d++) {
    const int first = d / ranks * ranks;
    Exchange::Piece p = box(tile, own(d, 4096));
    for (int from = first; from < first + ranks; from++) {
      const std::uint64_t at = scatter ? static_cast<std::uint64_t>(d - first) * bytes : 0;
      p.sources.push_back({own(from, 64 + at), from, bytes, 0});
    }
    x.items.push_back({d, own(d, 4096), bytes, false, {p}});
  }
  return x;
}
Exchange gathered(DType t, int ranks = 4) {
  Exchange x;
  x.dtype = t;
  const std::uint64_t bytes = tile * itemsize(t);
  for (int d = 0; d < ranks; d++) {
    Exchange::Item item = {d, own(d, 4096), bytes * static_cast<std::uint64_t>(ranks), false, {}};
    for (int k = 0; k < ranks; k++) {
      const int from = (d + k) % ranks;  // in any order
      Exchange::Piece p = box(tile, own(d, 4096 + bytes * static_cast<std::uint64_t>(from)));
      p.sources.push_back({own(from, 64), from, bytes, 0});
      item.pieces.push_back(p);
    }
    x.items.push_back(item);
  }
  return x;
}

bool found(const Exchange& x, const std::vector<int>& gpu_of = four, int gpus = 4) {
  return collective_pattern(x, gpu_of, gpus).has_value();
}
/// Whether it still is a collective once it was changed.
bool found_after(Exchange x, const std::function<void(Exchange&)>& change) {
  REQUIRE(found(x));
  change(x);
  return found(x);
}

}  // namespace

TEST_CASE("cuda collectives: whole tiles that are combined, gathered and scattered are found") {
  const auto sum = collective_pattern(combined(float32, Reducer::sum, false), four, 4);
  REQUIRE(sum);
  CHECK(sum->kind == Kind::all_reduce);
  CHECK((sum->type == Nccl::real32 && sum->reduction == Nccl::sum && sum->count == tile));
  REQUIRE(sum->groups.size() == 1);
  for (int d = 0; d < 4; d++)
    CHECK(sum->groups[0][static_cast<std::size_t>(d)] ==
          CollectivePattern::Rank{d, own(d, 64), own(d, 4096)});

  const auto parts = collective_pattern(combined(int64, Reducer::min, true), four, 4);
  REQUIRE(parts);
  CHECK(parts->kind == Kind::reduce_scatter);
  CHECK((parts->type == Nccl::int64 && parts->reduction == Nccl::min && parts->count == tile));
  for (int d = 0; d < 4; d++)
    CHECK(parts->groups[0][static_cast<std::size_t>(d)] ==
          CollectivePattern::Rank{d, own(d, 64), own(d, 4096)});

  for (const DType t : all_types) {
    const auto all = collective_pattern(gathered(t), four, 4);
    REQUIRE(all);
    CHECK(all->kind == Kind::all_gather);
    CHECK((all->type == Nccl::uint8 && all->count == tile * itemsize(t)));
    for (int d = 0; d < 4; d++)
      CHECK(all->groups[0][static_cast<std::size_t>(d)] ==
            CollectivePattern::Rank{d, own(d, 64), own(d, 4096)});
  }

  const auto beside = collective_pattern(combined(uint8, Reducer::prod, false, 2, 2), four, 4);
  REQUIRE((beside && beside->groups.size() == 2));
  CHECK((beside->groups[1][0].gpu == 2 && beside->groups[1][1].gpu == 3));
}

TEST_CASE(
    "cuda collectives: floats with a fixed order, their extrema and what NCCL has no type for are left "
    "alone") {
  for (const bool scatter : {false, true}) {
    const auto ordered = [&](DType t, Reducer reducer, int ranks, int groups = 1) {
      Exchange x = combined(t, reducer, scatter, ranks, groups);
      x.fixed_order = true;
      return found(x);
    };
    for (const DType t : {float32, float64})
      for (const Reducer reducer : {Reducer::sum, Reducer::prod}) {
        CHECK(found(combined(t, reducer, scatter)));
        CHECK(!ordered(t, reducer, 4));
        CHECK(ordered(t, reducer, 2, 2));  // of two there is one sum
      }
    for (const Reducer reducer : {Reducer::max, Reducer::min}) {
      CHECK(!found(combined(float32, reducer, scatter)));  // NaN would be lost
      CHECK(!ordered(float64, reducer, 2, 2));
      CHECK(ordered(int32, reducer, 4));
    }
    for (const DType t : {int8, uint8, int32, uint32, int64, uint64}) CHECK(ordered(t, Reducer::sum, 4));
    for (const DType t : {bool_, int16, uint16, float16, bfloat16, complex64, complex128})
      CHECK(!found(combined(t, Reducer::sum, scatter)));
    CHECK(!found(combined(uint8, Reducer::any, scatter)));
    CHECK(!found(combined(uint8, Reducer::all, scatter)));
  }
}

TEST_CASE("cuda collectives: what is not exactly the pattern is left alone") {
  for (const Exchange& x :
       {combined(int32, Reducer::sum, false), combined(int32, Reducer::sum, true), gathered(int32)}) {
    CHECK(!found(x, {0, 0, 1, 1}, 2));  // two tiles on a GPU
    CHECK(!found(x, four, 5));          // a GPU without one
    CHECK(!found_after(x, [](Exchange& e) { e.items[1].fill = true; }));
    CHECK(!found_after(x, [](Exchange& e) { e.items[2].dst_bytes += 4; }));  // a part of a tile
    CHECK(!found_after(x, [](Exchange& e) { e.items[3].pieces[0].dst_strides = {2}; }));
    CHECK(!found_after(x, [](Exchange& e) { e.items[3].pieces[0].src_strides = {-1}; }));
    CHECK(!found_after(x, [](Exchange& e) { e.items[0].pieces[0].sources[0].ref.offset += 4; }));
    CHECK(!found_after(x, [](Exchange& e) { e.items[0].pieces.pop_back(); }));
    CHECK(!found_after(x, [](Exchange& e) { e.items[1].dst_bytes = 0; }));
    CHECK(!found_after(x, [](Exchange& e) { e.items.pop_back(); }));
    CHECK(!found_after(x, [](Exchange& e) {
      for (auto& item : e.items) item.pieces[0].extents = {tile - 1};
    }));
  }
  CHECK(!found_after(combined(int32, Reducer::sum, false),
                     [](Exchange& e) { e.items[0].pieces[0].sources.pop_back(); }));
  // Ranks are ascending GPUs: parts in another order would go to others. Whole sums are the same for all.
  const std::vector<int> backwards = {3, 2, 1, 0};
  CHECK(!found(gathered(int32), backwards));
  CHECK(!found(combined(int32, Reducer::sum, true), backwards));
  const auto sum = collective_pattern(combined(int32, Reducer::sum, false), backwards, 4);
  REQUIRE(sum);
  CHECK(sum->groups[0][0] == CollectivePattern::Rank{0, own(3, 64), own(3, 4096)});
}

// ---------------------------------------------------------------- all others
namespace {

/// What GPUs do that see nothing but their own memory: addresses of others' bases are null.
Memory moved_by_parts(const Exchange& x, const std::vector<int>& gpu_of, int gpus,
                      const std::vector<int>& owner, Memory memory, const BlockOrder& order) {
  const auto staging_base = static_cast<std::uint32_t>(memory.size());
  const cuda::SplitExchange split = cuda::split_exchange(x, gpu_of, gpus, staging_base);
  std::vector<Bytes> staging;
  for (const auto& part : split.parts) staging.emplace_back(part.staging_bytes, std::byte{0xff});
  const auto run = [&](std::size_t g, const Exchange& part) {
    std::vector<void*> bases;
    for (std::size_t b = 0; b < memory.size(); b++)
      bases.push_back(owner[b] == static_cast<int>(g) ? memory[b].data() : nullptr);
    bases.push_back(staging[g].data());
    run_launches(launches_of_step(part), bases, order);
  };
  const auto all = [&](const auto& f) {
    for (std::size_t g = 0; g < split.parts.size(); g++) f(g, split.parts[g]);
  };
  all([&](std::size_t g, const auto& part) { run(g, part.packed); });
  std::size_t received = 0;
  all([&](std::size_t g, const auto& part) {
    received += part.received.size();
    for (const auto& b : part.sent) {
      const auto& there = split.parts[static_cast<std::size_t>(b.gpu)].received;
      const auto block = std::find_if(there.begin(), there.end(),
                                      [&](const auto& r) { return r.gpu == static_cast<int>(g); });
      REQUIRE(block != there.end());
      REQUIRE(block->bytes == b.bytes);
      std::memcpy(staging[static_cast<std::size_t>(b.gpu)].data() + block->offset,
                  staging[g].data() + b.offset, b.bytes);
      received--;
    }
  });
  CHECK(received == 0);  // a block for each that is waited for
  all([&](std::size_t g, const auto& part) { run(g, part.delivered); });
  return memory;
}

}  // namespace

TEST_CASE("cuda collectives: random exchanges over GPUs that see only their own memory have the CPU's bits") {
  Random random(23);
  const int repeats = testing::full_scale() ? 40 : 4;
  for (const DType t : all_types)
    for (const Reducer reducer : all_reducers)
      for (int k = 0; k < repeats; k++) {
        if (!takes(reducer, t)) continue;
        RandomExchange e = random_exchange(random, t, reducer);
        constexpr int devices = 5, gpus = 3;
        std::vector<int> gpu_of, owner(e.memory.size(), 0);
        for (int d = 0; d < devices; d++) gpu_of.push_back(static_cast<int>(pick(random, gpus)));
        const auto put = [&](int& device, const Ref& r) {
          device = static_cast<int>(pick(random, devices));
          owner[r.base] = gpu_of[static_cast<std::size_t>(device)];
        };
        for (auto& item : e.exchange.items) {
          put(item.device, item.dst);
          for (auto& p : item.pieces)
            for (auto& s : p.sources) put(s.device, s.ref);
        }
        Memory want = e.memory;
        cpu_test::run({cpu_test::step(e.exchange)}, pointers(want));
        CAPTURE(name(t));
        CAPTURE(name(reducer));
        CAPTURE(k);
        for (const BlockOrder& order : block_orders) {
          const Memory got = moved_by_parts(e.exchange, gpu_of, gpus, owner, e.memory, order);
          for (std::size_t b = 0; b < got.size(); b++) REQUIRE(same_values(t, got[b], want[b]));
        }
      }
}

TEST_CASE("cuda collectives: a box that several tiles of a GPU need is sent once") {
  Exchange x = gathered(float32);
  const std::vector<int> gpu_of = {0, 0, 1, 1};
  const cuda::SplitExchange split = cuda::split_exchange(x, gpu_of, 2, 8);
  const std::uint64_t box_bytes = (tile * 4 + 15) / 16 * 16;
  for (const auto& part : split.parts) {
    REQUIRE((part.sent.size() == 1 && part.received.size() == 1));
    CHECK(part.sent[0].bytes == 2 * box_bytes);
    CHECK(part.received[0].bytes == 2 * box_bytes);
    CHECK(part.staging_bytes == 4 * box_bytes);
  }
}

}  // namespace cuda_collective_test
