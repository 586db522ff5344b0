// Shared by tests of the compiler: the program that a call runs, its transfers as text, values on the golden mesh.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

#include "everywhere.h"
#include "execute/jit.h"
#include "execute/launch.h"
#include "shardarray/shardarray.h"

namespace program_test {

using shardarray::Array;
using shardarray::P;
using shardarray::Shape;
using shardarray::testing::values;

struct Prepared {
  std::shared_ptr<const shardarray::core::JitEntry> entry;
  std::vector<shardarray::LaunchLeaf> leaves;
  std::shared_ptr<const shardarray::LoadedProgram> loaded;
  const shardarray::Program& program() const { return *loaded->compiled.program; }
};
/// Traces and compiles f(args...); runs nothing, donates nothing.
template <class F, class... A> Prepared prepare(const F& f, A&&... args) {
  shardarray::core::ReusedCall call("test");
  Prepared p;
  p.entry = f.lower(*call, shardarray::Where::here(), std::forward<A>(args)...);
  shardarray::core::launch_leaves(*p.entry, *call, p.leaves);
  p.loaded = shardarray::core::placed_for(*p.entry, p.leaves, "test")->program;
  return p;
}

/// The bytes that each device receives in a transfer, from the boxes that the program copies: without sums and shared memory.
inline std::vector<std::int64_t> received_by_pieces(const shardarray::Program& p, int transfer) {
  std::vector<std::int64_t> received(static_cast<std::size_t>(p.order->size()), 0);
  for (const shardarray::Step& s : p.steps) {
    const auto* e = std::get_if<shardarray::Exchange>(&s.body);
    if (e == nullptr || e->transfer != transfer) continue;
    for (const auto& item : e->items)
      for (const auto& piece : item.pieces)
        if (piece.sources.at(0).device != item.device)
          received[static_cast<std::size_t>(item.device)] +=
              shardarray::num_elements(piece.extents) *
              static_cast<std::int64_t>(shardarray::itemsize(e->dtype));
  }
  return received;
}

/// Runs f(args...) and compares what the executor received, transfer by transfer, with the plan.
template <class F, class... A> void check_received(const F& f, const A&... args) {
  const Prepared p = prepare(f, args...);
  std::vector<shardarray::ValueRef> results;
  shardarray::RunReport report;
  shardarray::launch(*p.loaded, p.leaves, results, nullptr, &report);
  const auto& planned = p.program().transfers;
  if (shardarray::process_count() > 1 && report.received.empty())
    report.received.resize(planned.size());  // no device of the program is here
  REQUIRE((report.received.size() == planned.size() || planned.empty()));
  if (planned.empty()) return;
  std::vector<std::int64_t> received(planned.size(), 0);  // in all processes
  for (const Array& here : shardarray::gather_from_processes(shardarray::array(report.received)))
    for (std::size_t k = 0; k < planned.size(); k++) received[k] += here.to_vector<std::int64_t>()[k];
  for (std::size_t k = 0; k < planned.size(); k++) CHECK(received[k] == planned[k].moved_bytes);
}

/// The golden tables' mesh.
inline shardarray::Sharding on_xy(const P& spec) {
  return shardarray::NamedSharding(shardarray::make_mesh({{"x", 4}, {"y", 2}}), spec);
}

/// Small whole numbers: sums and products are exact in any order.
inline Array numbers(const Shape& shape, shardarray::DType dtype = shardarray::float32, int seed = 0) {
  std::vector<float> v(static_cast<std::size_t>(shardarray::num_elements(shape)));
  for (std::size_t k = 0; k < v.size(); k++)
    v[k] = static_cast<float>((k * 7 + k / 5 + static_cast<std::size_t>(seed) * 3) % 11) - 5;
  return shardarray::array(v, shape, dtype);
}

/// "all_gather{x} 384, all_reduce{y} 128", in order.
inline std::string transfers(const shardarray::Explanation& e) {
  std::string s;
  for (const shardarray::TransferInfo& t : e.transfers())
    s += (s.empty() ? "" : ", ") + t.kind + t.axes + " " + std::to_string(t.bytes_per_device);
  return s;
}
/// The bytes that the busiest device receives.
inline std::int64_t bytes_received(const shardarray::Explanation& e) { return e.received_bytes_per_device(); }

inline Array placed(const Shape& shape, const shardarray::Sharding& s, int seed = 0) {
  return shardarray::device_put(numbers(shape, shardarray::float32, seed), s);
}
/// The transfers of f(args...), after a run that counts them.
template <class F, class... A> std::string planned(const F& f, const A&... args) {
  const auto j = shardarray::jit(f);
  check_received(j, args...);
  return transfers(shardarray::explain(j, args...));
}

}  // namespace program_test
