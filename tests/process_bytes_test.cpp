// What moves between processes. Its values: transport_test.cpp.
#include <doctest/doctest.h>

#include "loopback.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace process_bytes_test {

namespace sa = shardarray;
using platform_test::mesh_of;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::testing::World;
using Devices = std::vector<sa::Device>;

TEST_CASE("transport: what all processes receive is what was planned") {
  const auto f = [](const Array& a, const Array& b) { return sa::matmul(sa::flip(a, 0), b); };
  const auto received = [&](const Devices& devices) {
    const sa::Mesh mesh = mesh_of(devices);
    const auto j = sa::jit(f);
    const auto p = program_test::prepare(j, put(numbers({13, 24}), mesh, P("x", "y")),
                                         put(numbers({24, 5}), mesh, P("y")));
    std::vector<sa::ValueRef> results;
    sa::RunReport report;
    sa::launch(*p.loaded, p.leaves, results, nullptr, &report);
    std::vector<std::int64_t> planned;
    for (const sa::Transfer& t : p.program().transfers) planned.push_back(t.moved_bytes);
    return std::pair(report.received, planned);
  };
  for (const int processes : {2, 4}) {
    std::vector<std::int64_t> sum, planned;
    for (auto& one : World::of(processes).run([&](int, const Devices& d) { return received(d); })) {
      auto [mine, plan] = one.get();
      planned = plan;
      sum.resize(mine.size());
      for (std::size_t k = 0; k < mine.size(); k++) sum[k] += mine[k];
    }
    CHECK(!planned.empty());
    CHECK(sum == planned);
  }
}

TEST_CASE(
    "transport: a large sum over processes moves what an all_reduce is known to, a small one goes at once") {
  sa::set_share_replicas(false);
  for (const std::int64_t columns : {1 << 10, 1 << 16}) {
    CAPTURE(columns);
    const auto moved = [&](const Devices& devices) {
      const sa::Mesh mesh({{8}, devices}, {"x"});
      const auto j = sa::jit([](const Array& v) { return sa::sum(v, 0); },
                             {.out_shardings = sa::NamedSharding(mesh, P())});
      const auto p = program_test::prepare(j, put(numbers({8, columns}), mesh, P("x")));
      std::vector<sa::ValueRef> results;
      sa::RunReport report;
      sa::launch(*p.loaded, p.leaves, results, nullptr, &report);
      REQUIRE(p.program().transfers.size() == 1);
      return std::pair(report.received.at(0), p.program().transfers[0]);
    };
    std::int64_t received = 0, tile = columns * 4;
    for (auto& one : World::of(4).run([&](int, const Devices& d) { return moved(d); })) {
      const auto [mine, transfer] = one.get();
      received += mine;
      CHECK(transfer.kind == sa::TransferKind::all_reduce);
      CHECK(transfer.bytes == 2 * 7 * tile / 8);
    }
    CHECK(received == (tile < (1 << 16) ? 8 * 7 * tile : 8 * 2 * 7 * tile / 8));
  }
  sa::set_share_replicas(true);
}

}  // namespace process_bytes_test
