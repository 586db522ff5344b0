// Programs over several processes (loopback.h): they compute what one process does, each knows its own parts, failures are thrown by
// every process's call, and everything else survives.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>

#include "loopback.h"
#include "platform_programs.h"
#include "process_helpers.h"
#include "runtime/local_part.h"
#include "shardarray/shardarray.h"
#include "with_codegen.h"

namespace transport_test {

namespace sa = shardarray;
using platform_test::Bits;
using platform_test::mesh_of;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::testing::thrown;
using sa::testing::World;

namespace {

using Devices = std::vector<sa::Device>;

/// The bits of the whole, in a process that has a part of it.
Bits everywhere(const Array& x) {
  return platform_test::bits(
      sa::device_put(x, sa::PositionalSharding(x.sharding().device_assignment()).replicate()));
}

/// What a process' devices hold: where it starts, and its bits.
using Part = std::pair<std::string, Bits>;
std::vector<Part> parts(const Array& x) {
  std::vector<Part> all;
  for (const sa::Shard& s : x.addressable_shards())
    all.push_back({std::to_string(s.device.id) + " " + sa::to_string(s.index), platform_test::bits(s.data)});
  return all;
}

/// program(mesh) in so many processes gives every one of them what one process has.
template <class F> void check_as_one(int processes, const F& program) {
  CAPTURE(processes);
  const auto want = program(mesh_of(sa::devices(sa::testing::world_platform())), platform_test::bits);
  auto all = World::of(processes).run(
      [&](int, const Devices& devices) { return program(mesh_of(devices), everywhere); });
  for (auto& one : all) CHECK(one.get() == want);
}

/// Results that lie as they come, on a mesh x = 4, y = 2.
std::vector<Array> collectives(const sa::Mesh& mesh) {
  const auto mapped = [&](auto f, const Array& x, const P& in, const P& out) {
    return sa::shard_map(f, {mesh, in, out})(x);
  };
  const auto on = [&](const Array& x, const P& spec) { return put(x, mesh, spec); };
  const Array x = on(numbers({16, 8}) * 0.3f, P("x", "y")), u = on(numbers({13, 6}), P("x", "y"));
  const Array a = on(numbers({9, 14}) * 0.1f, P(sa::none, "x")), b = on(numbers({14, 7}), P("x"));
  // Tiles whose sums are dealt out to those who need them; the last part is a smaller one.
  const Array large = on(sa::sin(numbers({4 * 131, 2 * 257})), P("x", "y"));
  return {
      mapped([](const Array& v) { return sa::psum(v, "x"); }, large, P("x", "y"), P(sa::none, "y")),
      mapped(
          [](const Array& v) {
            return sa::psum(v, {"x", "y"});
          },
          large, P("x", "y"), P()),
      mapped([](const Array& v) { return sa::pmax(v, "y"); }, large, P("x", "y"), P("x")),
      sa::jit([](const Array& v) { return sa::sum(v, 1, {.keepdims = true}) * 2 + sa::matmul(v.T(), v); })(
          on(sa::cos(numbers({524, 524})), P("y", "x"))),
      mapped([](const Array& v) { return sa::psum(v, "x"); }, x, P("x", "y"), P(sa::none, "y")),
      mapped([](const Array& v) { return sa::psum(sa::pmax(v, "y"), "x"); }, x, P("x", "y"), P()),
      mapped([](const Array& v) { return sa::all_gather(v, "x", {.tiled = true}); }, x, P("x", "y"),
             P(sa::none, "y")),
      mapped([](const Array& v) { return sa::psum_scatter(v, "x", {.axis = 0, .tiled = true}); }, x,
             P(sa::none, "y"), P("x", "y")),
      mapped(
          [](const Array& v) {
            return sa::all_to_all(v, "x", {.split_axis = 1, .concat_axis = 0, .tiled = true});
          },
          x, P("x"), P(sa::none, "x")),
      mapped(
          [](const Array& v) {
            return sa::ppermute(v, "x", {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
          },
          x, P("x", "y"), P("x", "y")),
      sa::jit([](const Array& v) { return v * 2; },
              {.out_shardings = sa::NamedSharding(mesh, P("y", "x"))})(u),
      sa::jit([](const Array& v) {
        return sa::pad(sa::flip(v, 0), {{2, 1}, {0, 3}}, 7);
      })(u),
      sa::jit([](const Array& v) { return sa::roll(v, 3, 0); })(u),
      sa::jit([](const Array& p, const Array& q) { return sa::matmul(p, q); })(a, b),
      sa::jit([](const Array& p, const Array& q) {
        return sa::matmul(p, q) * 2 + sa::flip(sa::matmul(p, q), 0);  // a partial sum that goes on
      })(a, b),
      sa::jit([](const Array& v) { return sa::cumsum(v, 0); })(u),
  };
}

/// Half of a program's steps need what comes from elsewhere.
Array work(const Array& x) {
  return sa::jit([](const Array& v) { return sa::flip(v / sa::sum(v) + sa::roll(v, 1, 0), 0); })(x);
}
Array rows(const Devices& devices, double first = 1) {
  return sa::block_until_ready(
      sa::device_put(sa::arange(8.0) + first, sa::NamedSharding(sa::Mesh({{8}, devices}, {"x"}), P("x"))));
}

Devices eight() {
  Devices all = sa::devices(sa::testing::world_platform());
  all.resize(8);
  return all;
}

/// What every process' call says.
std::vector<std::string> failures(World& w, const std::function<void(int, const Devices&)>& f) {
  auto all = w.run([&](int p, const Devices& d) { return thrown([&] { f(p, d); }); });
  std::vector<std::string> texts;
  for (auto& one : all) texts.push_back(one.get());
  return texts;
}
/// As at first again when it goes.
struct Quiet {
  explicit Quiet(World& w) : world(w) {}
  ~Quiet() {
    world.hub.keeps = [](int) { return true; };
    world.hub.before_complete = [](int) {};
    world.hub.deadline_ms = 60'000;
  }
  World& world;
};

}  // namespace

TEST_CASE("transport: several processes compute what one does") {
  for (const int processes : {2, 4}) {
    check_as_one(processes, [](const sa::Mesh& m, platform_test::Read read) {
      return platform_test::training(m, read);
    });
    check_as_one(processes, [](const sa::Mesh& m, platform_test::Read read) {
      return platform_test::everything(m, read);
    });
  }
}

TEST_CASE("transport: collectives, resharding, uneven tiles and partial sums over processes, tile by tile") {
  for (const bool share : {true, false}) {
    sa::set_share_replicas(share);
    std::vector<std::vector<Part>> want;
    for (const Array& r : collectives(mesh_of(sa::devices(sa::testing::world_platform()))))
      want.push_back(parts(r));
    for (const int processes : {2, 4}) {
      auto all = World::of(processes).run([&](int, const Devices& devices) {
        std::vector<std::vector<Part>> mine;
        for (const Array& r : collectives(mesh_of(devices))) mine.push_back(parts(r));
        return mine;
      });
      std::vector<std::vector<Part>> joined(want.size());
      for (auto& one : all) {
        const auto mine = one.get();
        for (std::size_t k = 0; k < want.size(); k++) {
          CHECK(mine[k].size() == 8u / static_cast<unsigned>(processes));
          joined[k].insert(joined[k].end(), mine[k].begin(), mine[k].end());
        }
      }
      for (std::size_t k = 0; k < want.size(); k++) {
        CAPTURE(k);
        std::sort(joined[k].begin(), joined[k].end());
        std::sort(want[k].begin(), want[k].end());
        CHECK(joined[k] == want[k]);
      }
    }
  }
  sa::set_share_replicas(true);
}

TEST_CASE("transport: lines that flush denormals do so in every process") {
  for (const bool flushes : {false, true}) {
    const auto program = [&](const sa::Mesh& mesh, platform_test::Read read) {
      const sa::flush_denormals lines(flushes);
      const auto f = sa::jit([](const Array& a, const Array& b) {
        return std::vector<Array>{a * 1e-20f, sa::matmul(a, b), sa::sum(a * 3e-20f, 0)};
      });
      std::vector<Bits> all;
      for (const Array& r : f(put(numbers({12, 24}) * 1e-20f, mesh, P("x", "y")),
                              put(numbers({24, 5}) * 1e-20f, mesh, P("y"))))
        all.push_back(read(r));
      return all;
    };
    check_as_one(2, program);
    const auto first = program(mesh_of(sa::devices("cpu")), platform_test::bits)[0];
    CHECK(std::all_of(first.begin(), first.end(), [](auto b) { return b << 1 == 0; }) == flushes);
  }
}

TEST_CASE("transport: generated code in every process") {
  const auto before = sa::set_codegen_mode(sa::CodegenMode::always);
  const auto program = [](const sa::Mesh& mesh, platform_test::Read read) {
    const auto f = sa::jit(
        [](const Array& a, const Array& b) { return sa::tanh(sa::matmul(a, b)) + sa::sum(a * 3 + 1); });
    return read(f(put(numbers({12, 24}) * 0.1f, mesh, P("x", "y")), put(numbers({24, 5}), mesh, P("y"))));
  };
  check_as_one(2, program);
  sa::set_codegen_mode(before);
}

TEST_CASE("transport: a process has the instances of its own devices, and says where the others are") {
  World& w = World::of(2);
  for (auto& one : w.run([&](int p, const Devices&devices) {
         const auto first = static_cast<std::size_t>(4 * p);
         for (std::size_t id = 0; id < 8; id++) {
           const bool own = id >= first && id < first + 4;
           CHECK(devices[id].id == static_cast<int>(id));
           CHECK(devices[id].process_index == (own ? 0 : 1));
           CHECK(sa::local_index(devices[id]) == (own ? static_cast<int>(id - first) : -1));
         }
         const Array x = rows(devices), whole = put(numbers({8}), mesh_of(devices), P());
         CHECK(sa::value_of(x)->buffers.size() == 4);
         CHECK(sa::value_of(whole)->buffers.size() == 1);
         CHECK(platform_test::bits(whole) == platform_test::bits(numbers({8})));
         CHECK(x.addressable_shards().size() == 4);
         CHECK(x.addressable_data(1).item<float>() == static_cast<float>(4 * p + 2));
         const sa::Device& remote = devices[p == 0 ? 4 : 0];
         const std::string elsewhere =
             ": f32[8] has a part on " + sa::to_string(remote) +
             ", which is of process 1; this is process 0. A process reads what its own devices hold. Read "
             "addressable_shards() in each process, or make it whole in all of them first: device_put(x, "
             "PositionalSharding(devices()).replicate()), or gather_from_processes(x)[0]. Its rows, each "
             "where "
             "it lies, gives unshard(x).";
         CHECK(thrown([&] { x.to_vector<float>(); }) == "to_vector" + elsewhere);
         CHECK(thrown([&] { static_cast<void>(sa::to_string(x)); }) == "to_string" + elsewhere);
         std::ostringstream out;
         CHECK(thrown([&] { out << x; }) == "<<" + elsewhere);
         CHECK(
             thrown([&] { sa::default_device here(remote); }) ==
             "default_device: " + sa::to_string(remote) +
                 " is of process 1, this is process 0. New arrays lie where this process can write. Use one "
                 "of "
                 "local_devices().");
         sa::Device forged = remote;
         forged.process_index = 0;
         CHECK(thrown([&] { sa::device_put(numbers({8}), forged); }) ==
               "device_put: the device " + sa::to_string(remote) +
                   " is said to be of process 0, but is of process 1. Where a device lies is not chosen. Use "
                   "one "
                   "of devices().");
         const Array there = sa::device_put(numbers({8}), remote);
         CHECK(sa::value_of(there)->buffers.size() == 0);
         CHECK(there.addressable_shards().empty());
         CHECK(thrown([&] { there.to_vector<float>(); }).find("to_vector: f32[8] has a part on") == 0);
         CHECK(thrown([&] { sa::device_put(there, devices[first]); }) ==
               "launch: f32[8] is on " + sa::to_string(remote) +
                   ", a device of another process. A process moves what its own devices hold. Make the array "
                   "in "
                   "every process, or on devices of all of them.");
         // Made of pieces, each by who has it.
         const sa::NamedSharding by_rows(sa::Mesh({{8}, devices}, {"x"}), P("x"));
         int asked = 0;
         const Array made = sa::make_array_from_callback({8}, by_rows, [&](const sa::ShardIndex& i) {
           asked++;
           return numbers({8})[sa::slice(i[0].start, i[0].stop)];
         });
         CHECK(asked == 4);
         CHECK(everywhere(made) == platform_test::bits(numbers({8})));
         std::vector<Array> pieces;
         for (const sa::Shard& s : made.addressable_shards()) pieces.push_back(s.data);
         CHECK(everywhere(sa::make_array_from_single_device_arrays({8}, by_rows, pieces)) ==
               platform_test::bits(numbers({8})));
         return 0;
       }))
    one.get();
}

TEST_CASE(
    "transport: scans over several processes compute what one does, also two at once and one in another") {
  for (const int processes : {2, 4})
    check_as_one(processes, [](const sa::Mesh& m, platform_test::Read read) {
      const Array x = put(numbers({13, 6}) * 0.1f, m, P("x", "y")), v = put(numbers({16}) * 0.2f, m, P("x"));
      const auto turned = [](const Array& first, int times) {
        return sa::fori_loop(
            0, times,
            [](const Array&, const Array& c) { return sa::roll(c, 1, 0) * 0.5f + sa::sum(c) * 0.01f; },
            first);
      };
      const auto nested = sa::jit([&](const Array& a) {
        return sa::fori_loop(
            0, 3, [&](const Array& k, const Array& c) { return turned(c, 2) + k.astype(sa::float32); }, a);
      });
      const auto rows = sa::jit([](const Array& a) {
        return sa::scan(
            [](const Array& c, const Array& row) { return std::pair(c + row, sa::cumsum(c * row)); },
            sa::zeros(6), a);
      });
      std::vector<Bits> all = {
          read(sa::jit([&](const Array& a) { return turned(a, 5); })(v)),
          read(sa::jit([&](const Array& a, const Array& b) {
            return sa::sum(turned(a, 4)) + turned(b, 3) + sa::sum(turned(b * 2, 2));
          })(x, v)),
          read(nested(v)),
          read(sa::grad([&](const Array& a) { return sa::sum(sa::square(turned(a, 3))); })(v))};
      const auto [carry, sums] = rows(x);
      all.push_back(read(carry));
      all.push_back(read(sums));
      return all;
    });
}

TEST_CASE("transport: branches and while loops over several processes compute what one does") {
  for (const int processes : {2, 4})
    check_as_one(processes, [](const sa::Mesh& m, platform_test::Read read) {
      const Array v = put(numbers({16}) * 0.2f, m, P("x")), u = put(numbers({13, 6}) * 0.1f, m, P("y"));
      const auto grown = sa::jit([](const Array& a) {
        return sa::while_loop([](const Array& c) { return sa::sum(sa::abs(c)) < 1000; },
                              [](const Array& c) { return sa::roll(c, 1, 0) * 2 + 1; }, a);
      });
      const auto chosen = sa::jit([](const Array& a, int k) {
        return sa::switch_(
            sa::array(k),
            std::tuple([](const Array& x) { return sa::flip(x, 0) + sa::sum(x); },
                       [](const Array& x) { return x * 3; }, [](const Array& x) { return sa::cumsum(x, 0); }),
            a);
      });
      const auto both = sa::jit([](const Array& a, const Array& b) {
        const auto f = [](const Array& x) {
          return sa::cond(
              sa::sum(x) > 0, [](const Array& y) { return sa::roll(y, 2, 0); },
              [](const Array& y) { return y - sa::max(y); }, x);
        };
        return sa::sum(f(a)) * sa::sum(f(b)) + sa::sum(f(-a));
      });
      std::vector<Bits> all = {read(grown(v)), read(grown(u)), read(both(v, u))};
      for (int k = 0; k < 3; k++) all.push_back(read(chosen(u, k)));
      return all;
    });
}

TEST_CASE("transport: small boxes for one process go as one, large ones each for itself") {
  for (const int processes : {2, 4})
    for (const std::int64_t columns : {3, 292, 40'000}) {
      World& w = World::of(processes);
      const int before = w.hub.posted;
      for (auto& one : w.run([&](int, const Devices& devices) {
             const Array x = sa::block_until_ready(
                 put(sa::sin(numbers({8, columns})), mesh_of(devices), P(sa::axes("x", "y"))));
             const Array rows =
                 sa::block_until_ready(sa::jit([](const Array& v) { return sa::flip(v, 0); })(x));
             return parts(rows);
           }))
        CHECK(one.get().size() == 8u / static_cast<unsigned>(processes));
      // Each process sends its rows to the one at the other end.
      CHECK(w.hub.posted - before == (columns < 1000 ? processes : 8));
      check_as_one(processes, [&](const sa::Mesh& m, platform_test::Read read) {
        const Array x = put(sa::sin(numbers({8, columns})), m, P(sa::axes("x", "y")));
        return std::vector<Bits>{
            read(sa::jit([](const Array& v) { return sa::flip(v, 0) + sa::sum(v, 0); })(x)),
            read(sa::jit([](const Array& v) { return sa::flip(sa::flip(v, 0), 1) * 2; })(x))};
      });
    }
}

TEST_CASE("transport: a platform without one") {
  // A platform without a transport says so.
  sa::LocalPart part;
  CHECK(thrown([&] { sa::backend("cpu").load_part(std::make_shared<const sa::LocalPart>(part)); }) ==
        "load: the program runs on devices of several processes, and the platform 'cpu' has no way between "
        "them. "
        "Use devices of one process: local_devices().");
}

TEST_CASE("transport: communication k fails: the caller hears it, nothing hangs, arguments live") {
  const std::vector<Part> want = parts(work(rows(eight())));
  for (const int processes : {2, 4}) {
    World& w = World::of(processes);
    const Quiet quiet(w);
    std::atomic<int> until{-1};  // so many communications until the one that fails
    const auto communicate = [&] {
      if (until >= 0 && until-- == 0) throw sa::TransportError("the line is cut");
    };
    w.hub.keeps = [&](int) { return communicate(), true; };
    w.hub.before_complete = [&](int) { communicate(); };
    int k = 0;
    for (bool failed = true; failed && k < 500; k++) {
      until = k;
      auto all = w.run([&](int, const Devices& devices) {
        const Array x = rows(devices);  // nothing moves here
        std::vector<Part> result;
        const std::string text = thrown([&] { result = parts(work(x)); });
        if (text.empty())
          for (const Part& part : result) CHECK(std::count(want.begin(), want.end(), part) == 1);
        CHECK(parts(x).size() == devices.size() / static_cast<std::size_t>(processes));
        return text;
      });
      int heard = 0;
      for (auto& one : all) {
        const std::string text = one.get();
        heard += !text.empty();
        CHECK((text.empty() || text.find("the line is cut") != std::string::npos));
      }
      failed = heard > 0;
      CHECK(failed == (until < 0));
    }
    CHECK(k > 8);
    CHECK(k < 500);
  }
}

TEST_CASE("transport: a box that never comes ends every process' call") {
  World& w = World::of(2);
  const Quiet quiet(w);
  std::atomic<int> lost{0};
  w.hub.deadline_ms = 100;
  w.hub.keeps = [&](int from) { return from != 1 || lost++ != 0; };
  for (const std::string& text :
       failures(w, [](int, const Devices& devices) { sa::eval(work(rows(devices))); }))
    CHECK(text.find("within the deadline") != std::string::npos);
  w.hub.deadline_ms = 60'000;
  for (const std::string& text :
       failures(w, [](int, const Devices& devices) { sa::eval(work(rows(devices))); }))
    CHECK(text.empty());
}

TEST_CASE("transport: processes that run different programs are told so") {
  World& w = World::of(2);
  // Also where as many bytes go the same ways: another number, operation, library call, direction.
  const std::function<Array(const Array&)> pairs[][2] = {
      {[](const Array& x) { return sa::flip(x, 0); },
       [](const Array& x) { return sa::cumsum(sa::roll(x, 3, 0), 0); }},
      {sa::jit([](const Array& x) { return sa::flip(x * 2, 0); }),
       sa::jit([](const Array& x) { return sa::flip(x * 3, 0); })},
      {[](const Array& x) { return sa::flip(sa::sin(x), 0); },
       [](const Array& x) { return sa::flip(sa::cos(x), 0); }},
      {[](const Array& x) { return sa::flip(sa::sort(x, -1), 0); },
       [](const Array& x) { return sa::flip(sa::cummax(x, -1), 0); }},
      {[](const Array& x) { return sa::roll(x, 1, 0); }, [](const Array& x) { return sa::roll(x, -1, 0); }}};
  for (std::size_t k = 0; k < std::size(pairs); k++)
    for (const std::string& text :
         failures(w, [&](int p, const Devices&devices) { sa::eval(pairs[k][p](rows(devices))); }))
      CHECK_MESSAGE(text.find("run different programs") != std::string::npos, k, ": ", text);
  for (const std::string& text :
       failures(w, [](int, const Devices& devices) { sa::eval(work(rows(devices))); }))
    CHECK(text.empty());
}

TEST_CASE("transport: while one thread's program runs, others evaluate, the same array too") {
  World& w = World::of(2);
  const Quiet quiet(w);
  std::atomic<bool> begun{false};
  bool ended = false;
  std::vector<float> seen;
  w.hub.before_complete = [&](int at) {
    if (at != 0 || begun.exchange(true)) return;
    auto other = std::async(std::launch::async, [&] { return (sa::ones({3}) * 3).to_vector<float>(); });
    ended = other.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    seen = other.get();
  };
  const auto computed_twice = [](int, const Devices& devices) {
    const Array x = rows(devices), y = x * 2 - sa::flip(x, 0), z = sa::cumsum(y, 0);
    auto other = std::async(std::launch::async, [&] { return parts(y).size(); });
    CHECK(parts(y).size() == 4);
    CHECK(other.get() == 4);
    CHECK(parts(z).size() == 4);
  };
  for (const std::string& text : failures(w, computed_twice)) CHECK(text.empty());
  CHECK(ended);
  CHECK(seen == std::vector<float>(3, 3));
  // In whatever order the threads come.
  for (int round = 0; round < 50; round++)
    for (const std::string& text : failures(w, computed_twice)) CHECK_MESSAGE(text.empty(), text);
}

TEST_CASE("jit: traces of the two random modes are apart") {
  auto f = sa::jit([](sa::Array key) { return sa::random::bits(key, {3}); });
  const sa::Array key = sa::random::key(3), now = f(key);
  const sa::random::partitionable legacy(false);
  const sa::Array older = f(key);
  CHECK(f.traces() == 2);
  CHECK(older.to_vector<std::uint32_t>() == sa::random::bits(key, {3}).to_vector<std::uint32_t>());
  CHECK(older.to_vector<std::uint32_t>() != now.to_vector<std::uint32_t>());
}

}  // namespace transport_test
