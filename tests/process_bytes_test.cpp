// Bytes that move between processes, and that each reads of files. Values: transport_test.cpp.
#include <doctest/doctest.h>

#include <fstream>

#include "loopback.h"
#include "platform_programs.h"
#include "process_helpers.h"
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

// Bytes that this thread has read so far.
static std::int64_t bytes_read() {
  std::ifstream in("/proc/thread-self/io");
  std::string word;
  std::int64_t n = 0;
  while (in >> word)
    if (word == "rchar:") in >> n;
  return n;
}

TEST_CASE(
    "transport: of a file and of a checkpoint a process reads what its own devices hold, rows or columns") {
  World& w = World::of(2);
  const shardarray::testing::TemporaryFolder folder;
  const std::string npy = folder.file("x.npy"), tensors = folder.file("x.safetensors");
  const Array x = sa::arange(2048.0 * 1024).reshape(2048, 1024);  // 8 MiB
  sa::save_npy(npy, x);
  sa::save_safetensors(tensors, {{"x", x}, {"small", numbers({8})}});
  const Array wide = x.reshape(512, 4096);
  const std::string wide_npy = folder.file("wide.npy"), wide_tensors = folder.file("wide.safetensors");
  sa::save_npy(wide_npy, wide);
  sa::save_safetensors(wide_tensors, {{"x", wide}});
  const sa::Mesh here = sa::make_mesh({{"x", 8}});
  sa::checkpoints::save(folder.file("rows"), 0, sa::device_put(x, sa::NamedSharding(here, P("x"))));
  sa::checkpoints::save(folder.file("columns"), 0,
                        sa::device_put(wide, sa::NamedSharding(here, P(sa::none, "x"))));
  for (auto& one : w.run([&](int p, const Devices&devices) {
         const sa::NamedSharding by_rows(sa::Mesh({{8}, devices}, {"x"}), P("x"));
         const auto check = [&](const Array& made) {
           for (const sa::Shard& s : made.addressable_shards()) {
             const std::int64_t first = s.index[0].start;
             CHECK(s.data.shape() == sa::Shape{256, 1024});
             CHECK(s.data[{0, 0}].item<double>() == static_cast<double>(1024 * first));
             CHECK(s.data[{255, 1023}].item<double>() == static_cast<double>(1024 * (first + 256) - 1));
           }
           CHECK(made.addressable_shards()[0].index[0].start == 1024 * p);
         };
         const std::int64_t before = bytes_read();
         const Array from_npy = sa::load_npy(npy, by_rows);
         const std::int64_t between = bytes_read();
         const Array from_tensors = sa::load_safetensors(tensors, {.sharding = by_rows}).arrays.at("x");
         const std::int64_t after = bytes_read();
         check(from_npy);
         check(from_tensors);
         for (const std::int64_t n : {between - before, after - between}) {
           CHECK(n >= 4 << 20);
           CHECK(n < 5 << 20);
         }
         const sa::NamedSharding by_columns(sa::Mesh({{8}, devices}, {"x"}), P(sa::none, "x"));
         const auto costs = [&](auto read, const sa::Shape& tile, auto first) {
           const std::int64_t start = bytes_read();
           const Array made = read();
           const std::int64_t n = bytes_read() - start;
           CHECK(n >= 4 << 20);
           CHECK(n < 5 << 20);
           CHECK(made.addressable_shards().size() == 4);
           for (const sa::Shard& s : made.addressable_shards()) {
             CHECK(s.data.shape() == tile);
             CHECK(s.data[{0, 0}].item<double>() == first(s));
             CHECK(s.data[{-1, 0}].item<double>() ==
                   first(s) + static_cast<double>((tile[0] - 1) * made.shape()[1]));
           }
         };
         const auto of_row = [](const sa::Shard& s) {
           return 1024.0 * static_cast<double>(s.index[0].start);
         };
         const auto of_column = [](const sa::Shard& s) { return static_cast<double>(s.index[1].start); };
         costs([&] { return sa::load_npy(wide_npy, by_columns); }, {512, 512}, of_column);
         costs([&] { return sa::load_safetensors(wide_tensors, {.sharding = by_columns}).arrays.at("x"); },
               {512, 512}, of_column);
         const auto restored = [&](const char* name, const Array& like, const sa::NamedSharding& s) {
           return sa::checkpoints::restore(folder.file(name), sa::shape_dtype_struct(like.shape()),
                                           {.sharding = s});
         };
         costs([&] { return restored("rows", x, by_rows); }, {256, 1024}, of_row);
         costs([&] { return restored("columns", wide, by_columns); }, {512, 512}, of_column);
         return 0;
       }))
    one.get();
}

}  // namespace process_bytes_test
