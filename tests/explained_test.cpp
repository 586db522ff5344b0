// explain() of transfers between layouts makes no pieces: what it says that they copy is what a run copies.
#include <doctest/doctest.h>

#include "op_data.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace explained_test {

namespace sa = shardarray;
using program_test::numbers;
using sa::Array;
using sa::P;
using namespace sa::testing;

namespace {

using Moved = std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>;

/// Kind, bytes of the busiest device, bytes that are copied.
template <class F, class... A> void check_same(const F& f, const A&... args) {
  const auto j = sa::jit(f);
  Moved told, run;
  for (const sa::TransferInfo& t : sa::explain(j, args...).transfers())
    told.emplace_back(t.kind, t.bytes_per_device, t.moved_bytes);
  for (const sa::Transfer& t : program_test::prepare(j, args...).program().transfers)
    run.emplace_back(sa::name(t.kind), t.bytes, t.moved_bytes);
  CHECK(told == run);
}

}  // namespace

TEST_CASE("explain: what is copied between all kinds of placements is what a run copies") {
  sa::set_cpu_device_count(8);
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  for (const bool shared : {true, false}) {
    sa::set_share_replicas(shared);
    for (const sa::Shape& shape : {sa::Shape{16, 8}, {10, 6}, {3, 5}, {1, 7}}) {
      const auto all = every_sharding(mesh, shape.size());
      for (std::size_t k = 0; k < all.size(); k++)
        for (std::size_t j = 0; j < all.size(); j += 1 + k % 3) {
          CAPTURE(sa::to_string(shape));
          CAPTURE(k);
          CAPTURE(j);
          check_same([&](const Array& v) { return sa::reshard(v, all[j]); },
                     sa::device_put(numbers(shape), all[k]));
        }
      for (const P& rows : {P("x"), P("y"), P(sa::axes("x", "y")), P(sa::none, "y")})
        for (const P& to : {P(), P("x"), P("y"), P(sa::none, "x"), P("y", "x")}) {
          const Array x = sa::device_put(numbers(shape), sa::NamedSharding(mesh, rows));
          check_same(
              [&](const Array& v) { return sa::reshard(sa::matmul(v.T(), v), sa::NamedSharding(mesh, to)); },
              x);
          check_same(
              [&](const Array& v) {
                return sa::reshard(
                    sa::reshard(sa::matmul(v.T(), v), sa::NamedSharding(mesh, P(sa::unreduced("x")))),
                    sa::NamedSharding(mesh, to));
              },
              x);
          check_same([](const Array& v) { return sa::flip(sa::roll(v, 1, 0), 0) + sa::cumsum(v, 0); }, x);
        }
    }
  }
  sa::set_share_replicas(true);
}

}  // namespace explained_test
