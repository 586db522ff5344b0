// Runs launches on the host; shared by the tests of CUDA's kernels.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cpu_helpers.h"
#include "cuda/host_kernels.h"
#include "cuda/launch.h"
#include "kernel_helpers.h"

namespace shardarray::test {

/// How the blocks of a launch are run: the bits are the same for every grid and order.
struct BlockOrder {
  std::uint32_t blocks = 0, threads = 0;  ///< 0: as the launch says
  bool backwards = false, many_bases = false;
};
inline constexpr BlockOrder block_orders[] = {{}, {3, 32, true, true}, {1, 64, false, true}};

/// Runs launches on memory of this process, each by the kernel that `kernel_of` gives for it.
template <class KernelOf>
void run_launches(const std::vector<cuda::KernelLaunch>& launches, const std::vector<void*>& bases,
                  const BlockOrder& order, const KernelOf& kernel_of) {
  std::vector<std::uint64_t> all;
  for (void* const p : bases) all.push_back(reinterpret_cast<std::uint64_t>(p));
  device::Bases given{};
  const bool many = order.many_bases || all.size() > device::few_bases;
  if (many) given.many = all.data();
  else std::copy(all.begin(), all.end(), given.few);
  std::size_t scratch_bytes = 0;
  for (const cuda::KernelLaunch& l : launches) scratch_bytes = std::max(scratch_bytes, l.scratch_bytes);
  // Fresh memory of a device holds anything.
  std::vector<std::uint64_t> scratch(scratch_bytes / 8 + 1, ~std::uint64_t{0});
  for (const cuda::KernelLaunch& l : launches) {
    if (l.call != nullptr) {
      std::vector<void*> inner;
      for (std::int64_t run = 0; run < l.call->trip; run++) {
        l.call->items[0].addresses(run, bases.data(), inner);
        run_launches(cuda::launches_of(*l.call->program, l.alignment), inner, order, kernel_of);
      }
      continue;
    }
    if (l.sort.count > 0) {
      cuda::sort_pairs_on_host(l.sort, reinterpret_cast<std::byte*>(scratch.data()));
      continue;
    }
    const cuda::HostKernel kernel = kernel_of(l);
    REQUIRE_MESSAGE((kernel != nullptr), l.kernel);
    std::vector<std::uint64_t> table(l.table.size() / 8 + 1);
    std::memcpy(table.data(), l.table.data(), l.table.size());
    const std::uint32_t blocks = order.blocks ? order.blocks : l.blocks;
    const std::uint32_t count = blocks * l.items;
    for (std::uint32_t k = 0; k < count; k++) {
      const std::uint32_t at = order.backwards ? count - 1 - k : k;
      const device::Grid grid{at % blocks, blocks, at / blocks, 0, order.threads ? order.threads : l.threads};
      kernel(grid, reinterpret_cast<const std::byte*>(table.data()),
             reinterpret_cast<std::byte*>(scratch.data()), given);
    }
  }
}

inline void run_launches(const std::vector<cuda::KernelLaunch>& launches, const std::vector<void*>& bases,
                         const BlockOrder& order) {
  run_launches(launches, bases, order,
               [](const cuda::KernelLaunch& l) { return cuda::host_kernel(l.kernel); });
}

/// The launches of a program of one step.
template <class Body> std::vector<cuda::KernelLaunch> launches_of_step(Body body) {
  Program p;
  p.steps.push_back({std::move(body), "a step", {}});
  return cuda::launches_of(p);
}

/// The launches of a case's kernel; base a = buffer of argument a.
inline std::vector<cuda::KernelLaunch> launches_of_case(const KernelCase& c) {
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(c.kernel);
  loop.items = {item_of(c)};
  return launches_of_step(loop);
}

/// `run(bases, order)` gives `want`, the buffers after the run, in every order of blocks.
template <class Run>
void check_blocks(const KernelCase& c, const std::vector<std::vector<std::byte>>& want, const Run& run) {
  for (const BlockOrder& order : block_orders) {
    CAPTURE(order.blocks);
    const auto got = run_pieces(c, {1}, [&](void* const* bases, std::int64_t, std::int64_t) {
      run({bases, bases + c.args.size()}, order);
    });
    require_same(c, got, want);
  }
}

using Bytes = std::vector<std::byte>;
using Memory = std::vector<Bytes>;  // by base
using Random = std::mt19937_64;

inline std::int64_t pick(Random& r, std::int64_t n) {
  return static_cast<std::int64_t>(r() % static_cast<std::uint64_t>(n));
}

inline std::vector<void*> pointers(Memory& m) {
  static std::byte nothing{};  // where an empty one lies
  std::vector<void*> p;
  for (auto& bytes : m) p.push_back(bytes.empty() ? &nothing : bytes.data());
  return p;
}

/// Elements of a dtype: small numbers with ties, some special ones, any bits.
inline Bytes random_elements(Random& r, DType t, std::int64_t n) {
  const std::size_t size = itemsize(t);
  Bytes bytes(static_cast<std::size_t>(n) * size);
  for (std::int64_t i = 0; i < n; i++) {
    std::uint64_t bits = r();
    const auto small = static_cast<double>(pick(r, 9) - 4);
    constexpr double special[] = {-0.0, std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN()};
    const double x = pick(r, 6) == 0 ? special[pick(r, 4)] : small;
    const bool any_bits = pick(r, 4) == 0;
    if (t == bool_) bits &= 1;
    else if (any_bits && !is_complex(t)) bits = r();
    else if (t == float32) bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    else if (t == float64) bits = std::bit_cast<std::uint64_t>(x);
    else if (t == bfloat16) bits = std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16;
    else if (is_integer(t)) bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(small));
    for (std::size_t b = 0; b < size; b += 8)
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * size + b, &bits,
                  std::min<std::size_t>(8, size));
  }
  return bytes;
}

/// The step's memory after the CPU backend ran it equals that after the launches, in every order of blocks.
template <class Body>
void check_step(const Body& body, const Memory& memory, const std::vector<DType>& types) {
  Memory want = memory;
  cpu_test::run({cpu_test::step(body)}, pointers(want));
  const std::vector<cuda::KernelLaunch> launches = launches_of_step(body);
  for (const BlockOrder& order : block_orders) {
    Memory got = memory;
    run_launches(launches, pointers(got), order);
    for (std::size_t b = 0; b < memory.size(); b++) {
      CAPTURE(b);
      CAPTURE(order.blocks);
      REQUIRE(same_values(types[b], got[b], want[b]));
    }
  }
}

}  // namespace shardarray::test
