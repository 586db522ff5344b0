// Sorts of long lines as pairs, scatters of many updates by rows, updates of rows: the bits of the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/complex_parts.h"
#include "cuda_launches.h"

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

/// Nothing goes along with them.
void leave_keys(LibraryCall& x) {
  x.in_types.resize(1);
  x.out_types.resize(1);
  for (LibraryCall::Item& item : x.items) {
    item.in.resize(1);
    item.out.resize(1);
    item.in_shapes.resize(1);
    item.out_shapes.resize(1);
  }
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

/// Neither as float16 nor as bfloat16.
void leave_nan_out(Bytes& halves) {
  for (std::size_t k = 1; k < halves.size(); k += 2) halves[k] &= std::byte{0xbf};
}

}  // namespace

TEST_CASE("cuda library: long lines are sorted as pairs, stable, of all dtypes, with columns and alone") {
  Random random(41);
  for (const DType t : {bool_, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16,
                        float32, float64}) {
    CAPTURE(name(t));
    for (const Shape& shape : {Shape{2049}, Shape{2, 2049, 2}, Shape{9000}, Shape{3, 2100}})
      for (const bool alone : {false, true}) {
        CAPTURE(alone);
        StepMemory m;
        LibraryCall x = sort_of(random, t, shape, shape.size() == 1 ? 0 : 1, shape[0] == 3, m);
        if (alone) leave_keys(x);
        CHECK(launches_any(launches_of_step(x), "shardarray_pair_keys"));
        CHECK(launches_any(launches_of_step(x), "shardarray_pair_put") == (alone && itemsize(t) <= 4));
        CHECK(launches_any(launches_of_step(x), "shardarray_pair_lines") ==
              (shape.size() > 1 && itemsize(t) == 8));
        check_step(x, m.memory, m.types);
      }
  }
  StepMemory m;
  CHECK_FALSE(launches_any(launches_of_step(sort_of(random, int8, {100, 2047}, 1, false, m)),
                           "shardarray_pair_keys"));
}

TEST_CASE("cuda library: the items of a sort have lines of different lengths, empty ones too") {
  Random random(43);
  for (const DType t : {uint16, int32, float64})
    for (const bool alone : {false, true}) {
      StepMemory m;
      LibraryCall x = sort_of(random, t, {3, 4100}, 1, false, m);
      for (const Shape& shape : {Shape{2, 0}, Shape{1, 17}, Shape{2, 0}, Shape{4, 2048}})
        x.items.push_back(sort_of(random, t, shape, 1, false, m).items[0]);
      if (alone) leave_keys(x);
      CHECK(launches_any(launches_of_step(x), "shardarray_pair_keys"));
      check_step(x, m.memory, m.types);
    }
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

TEST_CASE("cuda library: rows of x are updated in order, few and many, in place or in a copy") {
  Random random(53);
  const DType all[] = {bool_,  int8,    uint8,    int16,   uint16,  int32,     uint32,    int64,
                       uint64, float16, bfloat16, float32, float64, complex64, complex128};
  const DType indices[] = {int32, int64, uint8, uint64};
  for (const DType t : all)
    for (const Reducer reducer : {Reducer::none, Reducer::sum, Reducer::prod, Reducer::max, Reducer::min})
      for (const std::int64_t updates : {30, 300, 2100}) {
        const bool is_number = t != bool_ && !is_complex(t);
        if (reducer != Reducer::none && !is_number && !(is_complex(t) && reducer == Reducer::sum) &&
            !(t == bool_ && (reducer == Reducer::max || reducer == Reducer::min)))
          continue;
        if (updates == 2100 && pick(random, 4) != 0) continue;
        CAPTURE(name(t));
        CAPTURE(updates);
        StepMemory m;
        LibraryCall x = scatter_of(random, indices[pick(random, 4)], t, reducer, updates, m);
        x.name = "update_rows";
        x.in_types.insert(x.in_types.begin(), t);
        for (LibraryCall::Item& item : x.items) {
          const Shape& shape = item.out_shapes[0];
          item.in.insert(item.in.begin(), pick(random, 2) == 0
                                              ? item.out[0]
                                              : m.add(random_elements(random, t, num_elements(shape)), t));
          item.in_shapes.insert(item.in_shapes.begin(), shape);
        }
        const auto launches = launches_of_step(x);
        const bool sorts = std::any_of(launches.begin(), launches.end(), [](const cuda::KernelLaunch& l) {
          return std::string_view(l.kernel).starts_with("shardarray_update_row_segments");
        });
        CHECK(sorts == (updates >= 300));
        for (std::size_t b = 0; b < m.types.size(); b++)  // only these are compared by bits, NaN too
          if (m.types[b] == float16 || m.types[b] == bfloat16) leave_nan_out(m.memory[b]);
        for (DType& of : m.types) of = part_type(of);  // NaN equals NaN
        check_step(x, m.memory, m.types);
      }
}

}  // namespace cuda_library_test
