// What a cached call takes from the heap: nothing. Sanitizers keep their own operator new.
#include <cstdlib>
#include <new>

#include "program_of.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static thread_local std::size_t allocations = 0;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // both are ours
void* operator new(std::size_t n) {
  allocations++;
  if (void* const p = std::malloc(n == 0 ? 1 : n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#pragma GCC diagnostic pop

namespace allocations_test {

namespace sa = shardarray;
using sa::Array;

namespace {

/// Allocations of f() once it has been called a few times.
template <class F> std::size_t taken(const F& f) {
  for (int k = 0; k < 100; k++) f();
  const std::size_t before = allocations;
  f();
  return allocations - before;
}

}  // namespace

TEST_CASE(
    "allocations: a cached call takes none, on one device and on eight, donated or not, with transfers") {
  sa::set_cpu_device_count(8);
  const auto rows = program_test::on_xy(sa::P("x"));
  for (const bool sharded : {false, true}) {
    const auto put = [&](const Array& v) {
      return sa::block_until_ready(sharded ? sa::device_put(v, rows) : v);
    };
    Array x = put(program_test::numbers({8, 16}));
    const Array y = put(program_test::numbers({8, 16}));
    const auto f = sa::jit([](const Array& a, const Array& b) { return a * 0.5 + b; });
    CHECK(taken([&] { const Array z = f(x, y); }) == 0);
    CHECK(taken([&] { x = f(std::move(x), y); }) == 0);
    // The mean has to cross devices, and goes to all of them.
    const auto g = sa::jit([](const Array& a) { return a - sa::mean(a, {.axis = 0, .keepdims = true}); });
    CHECK(taken([&] { const Array z = g(y); }) == 0);
  }
}

}  // namespace allocations_test

#endif
