// Sorts of long lines by the bits of their keys, and scatters of many updates by rows: the bits of the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_emulated.h"
#include "cuda_launches.h"
#include "scale.h"

namespace cuda_library_test {

using namespace shardarray;
using namespace shardarray::test;

namespace {

bool launches_any(const std::vector<cuda::KernelLaunch>& launches, std::string_view kernel) {
  return std::any_of(launches.begin(), launches.end(),
                     [&](const cuda::KernelLaunch& l) { return l.kernel == kernel; });
}

/// A step's memory, base by base.
struct StepMemory {
  Memory memory;
  std::vector<DType> types;
  Ref add(Bytes bytes, DType t) {
    memory.push_back(std::move(bytes));
    types.push_back(t);
    return {static_cast<std::uint32_t>(memory.size() - 1), 0};
  }
};

/// Keys of `shape`, sorted along `dim` with what goes along.
LibraryCall sort_of(Random& random, DType key, const Shape& shape, std::int64_t dim, bool in_place,
                    StepMemory& m) {
  LibraryCall x{"sort", {key, int32, float64}, {key, int32, float64}, {}};
  LibraryCall::Item item;
  item.params = {dim};
  for (const DType t : x.in_types) {
    item.in.push_back(m.add(random_elements(random, t, num_elements(shape)), t));
    item.out.push_back(in_place ? item.in.back() : m.add(random_elements(random, t, num_elements(shape)), t));
    item.in_shapes.push_back(shape);
    item.out_shapes.push_back(shape);
  }
  x.items.push_back(item);
  return x;
}

LibraryCall scatter_of(Random& random, DType index, DType values, Reducer reducer, std::int64_t updates,
                       StepMemory& m) {
  LibraryCall x{"scatter", {index, values}, {values}, {}};
  for (std::int64_t items = 1 + pick(random, 3); items > 0; items--) {
    const std::int64_t batch = 1 + pick(random, 3), rows = 1 + pick(random, 40),
                       columns = 1 + pick(random, 9), n = items == 1 ? updates : pick(random, updates);
    LibraryCall::Item item;
    const std::int64_t first = pick(random, 3) * 20;
    item.params = {first, static_cast<std::int64_t>(reducer)};
    Bytes where(static_cast<std::size_t>(batch * n) * itemsize(index));
    for (std::int64_t k = 0; k < batch * n; k++) {
      // Mostly rows of the table, often the same; some before and behind it, some of any bits.
      const std::int64_t row =
          pick(random, 12) == 0 ? static_cast<std::int64_t>(random()) : first + pick(random, rows + 8) - 4;
      std::memcpy(where.data() + static_cast<std::size_t>(k) * itemsize(index), &row, itemsize(index));
    }
    item.in = {m.add(where, index), m.add(random_elements(random, values, batch * n * columns), values)};
    item.out = {m.add(random_elements(random, values, batch * rows * columns), values)};
    item.in_shapes = {{batch, n}, {batch, n, columns}};
    item.out_shapes = {{batch, rows, columns}};
    x.items.push_back(item);
  }
  return x;
}

}  // namespace

TEST_CASE("cuda library: long lines are sorted by the bits of their keys, stable, of all dtypes") {
  Random random(41);
  for (const DType t : {bool_, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16,
                        float32, float64}) {
    CAPTURE(name(t));
    const bool wide = itemsize(t) == 8;
    if (wide && !testing::full_scale()) continue;  // only very long ones go by bits
    for (const std::int64_t length :
         {std::int64_t{wide ? 530000 : 2049}, std::int64_t{wide ? 600000 : 9000}}) {
      const Shape shape = wide ? Shape{length} : Shape{2, length, 2};
      StepMemory m;
      const LibraryCall x = sort_of(random, t, shape, wide ? 0 : 1, length == 9000, m);
      CHECK(launches_any(launches_of_step(x), "shardarray_radix_place"));
      check_step(x, m.memory, m.types);
    }
  }
  StepMemory m;
  CHECK_FALSE(launches_any(launches_of_step(sort_of(random, int8, {100, 2047}, 1, false, m)),
                           "shardarray_radix_place"));
}

TEST_CASE("cuda library: the items of a sort have lines of different lengths, empty ones too") {
  Random random(43);
  StepMemory m;
  LibraryCall x = sort_of(random, uint16, {3, 4100}, 1, false, m);
  for (const Shape& shape : {Shape{1, 17}, Shape{2, 0}, Shape{4, 2048}})
    x.items.push_back(sort_of(random, uint16, shape, 1, false, m).items[0]);
  CHECK(launches_any(launches_of_step(x), "shardarray_radix_place"));
  check_step(x, m.memory, m.types);
}

TEST_CASE("cuda library: many updates are sorted by their rows and combined in their order") {
  Random random(47);
  for (const DType index : {int8, uint8, int32, uint32, int64, uint64})
    for (const Reducer reducer : {Reducer::sum, Reducer::prod, Reducer::max, Reducer::min}) {
      const DType values = reducer == Reducer::prod ? float64 : pick(random, 2) == 0 ? float32 : int16;
      const std::int64_t updates = index == int32 && reducer == Reducer::sum ? 3000 : 300;
      CAPTURE(name(index));
      CAPTURE(name(values));
      StepMemory m;
      const LibraryCall x = scatter_of(random, index, values, reducer, updates, m);
      CHECK((launches_any(launches_of_step(x), "shardarray_scatter_segments") ||
             launches_any(launches_of_step(x), "shardarray_scatter_segments_sum_f32")));
      check_step(x, m.memory, m.types);
    }
  StepMemory m;
  const LibraryCall few = scatter_of(random, int32, float32, Reducer::sum, 255, m);
  CHECK_FALSE(launches_any(launches_of_step(few), "shardarray_scatter_segments"));
}

TEST_CASE("cuda library: the warps of a sort by bits count and place as one after the other") {
  std::string text = std::string(emulator) + R"(
#include "kernels/radix.cuh"
using namespace shardarray;
#define SHARDARRAY_KERNEL(name, text)                                                                       \
  extern "C" void name(const std::byte* table, std::byte* scratch, const device::Bases bases) {             \
    text({blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x}, table, scratch, bases);              \
  }
SHARDARRAY_KERNEL(shardarray_radix_keys, device::radix_keys)
SHARDARRAY_KERNEL(shardarray_radix_count, device::radix_count)
SHARDARRAY_KERNEL(shardarray_radix_offsets, device::radix_offsets)
SHARDARRAY_KERNEL(shardarray_radix_place, device::radix_place)
SHARDARRAY_KERNEL(shardarray_sort_gather, device::sort_gather)
SHARDARRAY_KERNEL(shardarray_sort_put, device::sort_put)
)";
  for (const char* kernel :
       {"radix_keys", "radix_count", "radix_offsets", "radix_place", "sort_gather", "sort_put"})
    text += runner_of(std::string("shardarray_") + kernel);
  const CompiledText compiled(text);
  Random random(53);
  StepMemory m;
  const LibraryCall x = sort_of(random, uint16, {2, 2500}, 1, false, m);
  const auto launches = launches_of_step(x);
  Memory want = m.memory;
  cpu_test::run({cpu_test::step(x)}, pointers(want));
  for (const unsigned order : thread_orders) {
    CAPTURE(order);
    Memory got = m.memory;
    const device::Bases bases = few_bases_of(pointers(got));
    std::vector<std::uint64_t> scratch(launches[0].scratch_bytes / 8 + 1, ~std::uint64_t{0});
    for (const cuda::KernelLaunch& l : launches) {
      std::vector<std::uint64_t> table(l.table.size() / 8 + 1);
      std::memcpy(table.data(), l.table.data(), l.table.size());
      const char* const wrong =
          emulated(compiled, l.kernel)(2, l.items, 256, order, table.data(), scratch.data(), &bases);
      REQUIRE_MESSAGE((wrong == nullptr), wrong);
    }
    for (std::size_t b = 0; b < got.size(); b++) {
      CAPTURE(b);
      CHECK(same_values(m.types[b], got[b], want[b]));
    }
  }
}

}  // namespace cuda_library_test
