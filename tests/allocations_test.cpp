// Cached calls allocate nothing on the heap. When the heap is exhausted there is an Error, and everything still works. Sanitizers
// keep their own operator new.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <new>
#include <sstream>

#include "program_of.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static thread_local std::size_t allocations = 0;
/// Blocks of at least this many bytes are refused, and every block when `grants` are spent.
static thread_local std::size_t refuse_from = std::numeric_limits<std::size_t>::max();
static thread_local std::size_t grants = std::numeric_limits<std::size_t>::max();

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // both are ours
void* operator new(std::size_t n) {
  allocations++;
  if (n >= refuse_from || grants == 0) throw std::bad_alloc();
  grants--;
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

/// Allocations of f() after a few calls: the least of five, as one of them may be the call that switches to machine code, which becomes
/// ready at any time.
template <class F> std::size_t taken(const F& f) {
  for (int k = 0; k < 100; k++) f();
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (int k = 0; k < 5; k++) {
    const std::size_t before = allocations;
    f();
    least = std::min(least, allocations - before);
  }
  return least;
}

}  // namespace

TEST_CASE(
    "allocations: a cached call takes none, on one device and on eight, donated or not, with transfers") {
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
    // The mean is combined over devices, and replicated on all of them.
    const auto g = sa::jit([](const Array& a) { return a - sa::mean(a, {.axis = 0, .keepdims = true}); });
    CHECK(taken([&] { const Array z = g(y); }) == 0);
  }
}

namespace {

/// Makes this thread's heap short while it lives.
struct ShortHeap {
  explicit ShortHeap(std::size_t from, std::size_t number = std::numeric_limits<std::size_t>::max()) {
    refuse_from = from;
    grants = number;
  }
  ~ShortHeap() { refuse_from = grants = std::numeric_limits<std::size_t>::max(); }
};

}  // namespace

TEST_CASE("allocations: values for which the process has no place are an OutOfMemory, and can be had later") {
  constexpr std::int64_t n = 1 << 18;  // 1 MiB
  const sa::Mesh mesh = sa::make_mesh({{"i", 2}}),
                 others = sa::make_mesh({{"i", 2}}, {sa::devices()[4], sa::devices()[5]});
  const Array x = sa::block_until_ready(sa::arange(n) * 1.0f);
  const Array cut = sa::block_until_ready(sa::device_put(x, sa::NamedSharding(mesh, sa::P("i"))));
  const sa::Sharding by_columns = sa::NamedSharding(mesh, sa::P(sa::none, "i"));
  const Array across = sa::block_until_ready(sa::device_put(x.reshape({512, 512}), by_columns));
  sa::set_share_replicas(false);
  const Array copies = sa::block_until_ready(sa::device_put(x, sa::NamedSharding(mesh, sa::P())));
  sa::set_share_replicas(true);
  const std::string path =
      std::filesystem::temp_directory_path() / ("shardarray_allocations_" + std::to_string(getpid()));
  std::ofstream(path) << std::string(1 << 20, '1') << "\n";
  std::ostringstream shown;
  const std::vector<std::pair<std::string, std::function<void()>>> calls = {
      {"to_vector of its dtype", [&] { x.to_vector<float>(); }},
      {"to_vector of another dtype", [&] { x.to_vector<double>(); }},
      {"to_vector of bools", [&] { x.to_vector<bool>(); }},
      {"to_vector of pieces", [&] { cut.to_vector<float>(); }},
      {"device_put to other devices", [&] { sa::device_put(cut, sa::NamedSharding(others, sa::P("i"))); }},
      {"make_array_from_callback",
       [&] {
         sa::make_array_from_callback({n}, sa::NamedSharding(mesh, sa::P()),
                                      [&](const sa::ShardIndex&) { return x; });
       }},
      {"debug::print", [&] { sa::debug::print("{}", {x}, {.stream = &shown}); }},
      {"debug::callback", [&] { sa::debug::callback([](const sa::HostValues&) {}, {x}); }},
      {"data::loader", [&] { sa::data::loader(std::tuple(x)); }},
      {"batches",
       [&] {
         sa::data::Batches({x.reshape({2, -1})}, {.batch = 2}).at(0);
       }},
      {"data::load_csv", [&] { sa::data::load_csv(path); }},
      {"data::load_table", [&] { sa::data::load_table(path, {}); }},
      {"data::save_csv", [&] { sa::data::save_csv(path + ".csv", x); }},
      {"data::save_table",
       [&] {
         sa::data::save_table(path + ".csv", {{"x"}, {x}});
       }},
      {"from_dlpack", [&] { sa::from_dlpack(sa::to_dlpack(x), {.copy = true}); }},
      {"save_npy", [&] { sa::save_npy(path + ".npy", across); }},
      {"save_npz",
       [&] {
         sa::save_npz(path + ".npz", {{"x", across}});
       }},
      {"save", [&] { sa::save(path + ".tree", across); }},
      {"load_npy", [&] { sa::load_npy(path + ".npy", by_columns); }},
      {"load_npz", [&] { sa::load_npz(path + ".npz", {.sharding = by_columns}); }},
      {"load_safetensors", [&] { sa::load_safetensors(path + ".tree", {.sharding = by_columns}); }},
      {"assert_replica_integrity", [&] { sa::assert_replica_integrity(copies); }},
  };
  for (const auto& row : calls) {
    const auto& what = row.first;
    const auto& call = row.second;
    CAPTURE(what);
    {
      const ShortHeap heap(std::size_t{1} << 18);
      CHECK_THROWS_AS(call(), sa::OutOfMemory);
    }
    CHECK_NOTHROW(call());
  }
  {  // what is not cut across goes straight between files and the devices' own memory
    const ShortHeap heap(std::size_t{1} << 18);
    CHECK_NOTHROW(sa::load_npy(path + ".npy"));
    CHECK_NOTHROW(sa::load_safetensors(path + ".tree"));
    CHECK_NOTHROW(sa::save_npy(path + ".npy", x));
    CHECK_NOTHROW(sa::save(path + ".tree", x));
  }
  for (const char* const ending : {"", ".npy", ".npz", ".tree"}) std::filesystem::remove(path + ending);
}

TEST_CASE(
    "allocations: a launch that finds no heap for a step is an OutOfMemory of its call, and takes nothing") {
  const sa::default_device here(sa::devices()[0]);
  const Array line = sa::block_until_ready(sa::sin(sa::arange(200'003.0, sa::float64))),
              square = sa::block_until_ready(sa::sin(sa::arange(490'000.0, sa::float64)).reshape({700, 700}));
  const auto transform = [](const Array& v) { return sa::real(sa::fft::fft(v)); };
  const auto factors = [](const Array& v) { return sa::linalg::qr(v).r; };
  const auto refused = [](const std::string& what, const auto& f, const Array& x) {
    sa::block_until_ready(f(x * 1));
    int refusals = 0;
    for (int k = 0; k < 20; k++) {  // some allocations are on other threads, whose heap is not short
      Array given = sa::block_until_ready(x + 0);
      const ShortHeap heap(std::size_t{1} << 16);
      try {
        sa::block_until_ready(f(std::move(given)));
      } catch (const sa::OutOfMemory&) { refusals++; }
    }
    CHECK_MESSAGE(refusals > 0, what);
    CHECK(sa::block_until_ready(f(x * 1)).shape()[0] == x.shape()[0]);
  };
  refused("transform", transform, line);
  refused("jitted factors", sa::jit(factors), square);
  refused("factors", factors, square);
}

TEST_CASE("allocations: an evaluation without heap is an error, at whatever block, and works later") {
  const auto rows = program_test::on_xy(sa::P("x"));
  const Array x = sa::block_until_ready(sa::device_put(program_test::numbers({48}), rows));
  double sum = 0;
  for (const float v : x.to_vector<float>()) sum += v;
  int failures = 0;
  bool done = false;
  for (std::size_t number = 0; !done; number += 1 + number / 8) {
    CAPTURE(number);
    REQUIRE(number < 1'000'000);
    const auto added = static_cast<std::int64_t>(number) + 1;  // another size, so that no program is cached
    const Array lazy = sa::sum(sa::concatenate({x, sa::zeros({added})}) * 2 + 1);
    try {
      const ShortHeap heap(std::numeric_limits<std::size_t>::max(), number);
      lazy.block_until_ready();
      done = true;
    } catch (const sa::OutOfMemory&) { failures++; }
    CHECK(lazy.item<float>() == doctest::Approx(2 * sum + 48 + static_cast<double>(added)));
  }
  CHECK(failures > 20);
}

}  // namespace allocations_test

#endif
