// A final gather or concatenation is made in the result's memory: it is not copied, and takes no memory of its own.
#include <doctest/doctest.h>

#include <optional>

#include "op_data.h"
#include "platform_programs.h"
#include "runtime/arena.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace gathers_test {

namespace sa = shardarray;
using program_test::numbers, program_test::values;
using sa::Array;
using sa::P;
using namespace sa::testing;

namespace {

using Arrays = std::vector<Array>;
/// A program of a cut array and one that lies as its result does; `made` and `gathered` are those shardings.
struct Use {
  const char* name;
  Arrays (*f)(const Array& cut, const Array& whole, const sa::Sharding& made, const sa::Sharding& gathered);
};

const Use uses[] = {
    {"a result",
     [](const Array& v, const Array&, const sa::Sharding&, const sa::Sharding& to) -> Arrays {
       return {sa::reshard(v * 2 + 1, to)};
     }},
    {"temporary",
     [](const Array& v, const Array& w, const sa::Sharding&, const sa::Sharding& to) -> Arrays {
       return {sa::flip(sa::reshard(v * v, to), 0) + w};
     }},
    {"read again",
     [](const Array& v, const Array&, const sa::Sharding&, const sa::Sharding& to) -> Arrays {
       const Array y = v * 3;
       return {sa::reshard(y, to), sa::flip(y, 1), y};
     }},
    {"over an argument that is updated",
     [](const Array& v, const Array& w, const sa::Sharding& made, const sa::Sharding& to) -> Arrays {
       return {sa::reshard(sa::reshard(w, made) - v, to)};
     }},
    {"over an argument that is read elsewhere",
     [](const Array& v, const Array& w, const sa::Sharding& made, const sa::Sharding& to) -> Arrays {
       return {sa::reshard(sa::reshard(sa::flip(w, 0), made) - v, to)};
     }},
    {"over an argument that is read later",
     [](const Array& v, const Array& w, const sa::Sharding&, const sa::Sharding& to) -> Arrays {
       const Array z = sa::reshard(sa::exp(v * 0.01), to);
       return {z, sa::cumsum(w, 0) + sa::flip(z, 0)};
     }},
    {"in two steps",
     [](const Array& v, const Array&, const sa::Sharding&, const sa::Sharding& to) -> Arrays {
       const bool one = to == sa::Sharding(sa::SingleDeviceSharding(sa::devices()[0]));
       const sa::NamedSharding rows(sa::make_mesh({{"x", 2}, {"y", 4}}), P("x"));
       return {sa::reshard(sa::reshard(v + 4, one ? to : sa::Sharding(rows)), to)};
     }},
    {"a product",
     [](const Array& v, const Array& w, const sa::Sharding& made, const sa::Sharding& to) -> Arrays {
       return {sa::reshard(sa::reshard(sa::matmul(v, sa::matmul(w.T(), w)), made), to)};
     }},
    {"put together",
     [](const Array& v, const Array& w, const sa::Sharding&, const sa::Sharding&) -> Arrays {
       return {sa::concatenate({v * 2, v + 1, w}, 0), sa::concatenate({v - 1, sa::flip(v, 0) * 2}, 1)};
     }},
    {"put together and gathered",
     [](const Array& v, const Array&, const sa::Sharding&, const sa::Sharding& to) -> Arrays {
       return {sa::reshard(sa::concatenate({v * 2, sa::sin(v)}, 0), to)};
     }},
    {"gathered and put together",
     [](const Array& v, const Array& w, const sa::Sharding&, const sa::Sharding& to) -> Arrays {
       return {sa::concatenate({sa::reshard(v * 2, to), w * 3}, 0) * 0.5};
     }},
    {"stacked by hand",
     [](const Array& v, const Array& w, const sa::Sharding&, const sa::Sharding&) -> Arrays {
       const Array a = v * 2, b = sa::flip(w, 1) - 1;
       return {sa::stack({a, b, a}), sa::stack({b * b, a + a}), sa::pad(a * 3, 1)};
     }},
    {"twice the same",
     [](const Array& v, const Array&, const sa::Sharding&, const sa::Sharding&) -> Arrays {
       const Array a = v * 2;
       return {sa::concatenate({a, a}, 0)};
     }},
    {"a carry",
     [](const Array& v, const Array& w, const sa::Sharding& made, const sa::Sharding& to) -> Arrays {
       return {sa::fori_loop(
           0, 3,
           [&](const Array& i, const Array& c) {
             return sa::reshard(sa::reshard(c, made) * 0.5 + v * i.astype(sa::float32), to);
           },
           w)};
     }},
    {"stacked",
     [](const Array& v, const Array& w, const sa::Sharding& made, const sa::Sharding& to) -> Arrays {
       const auto [c, ys] = sa::scan(
           [&](const Array& carry, const Array& k) {
             const Array next = sa::reshard(sa::reshard(carry, made) * 0.5 + v * k, to);
             return std::pair(next, next * 2);
           },
           w, sa::arange(3.0));
       return {c, ys};
     }},
};

/// Of the busiest device, where no step calls a program.
std::optional<std::int64_t> steps_of(const sa::Program& program) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(program.order->size()), 0);
  bool calls = false;
  for (const sa::Step& s : program.steps)
    std::visit(
        [&](const auto& body) {
          if constexpr (requires { body.items[0].device; })
            for (const auto& item : body.items) count[static_cast<std::size_t>(item.device)]++;
          else calls = true;
        },
        s.body);
  return calls ? std::nullopt : std::optional(*std::max_element(count.begin(), count.end()));
}

/// The results, and where nothing is donated: explained as run.
Arrays run(const Use& u, const Array& cut, const Array& whole, const sa::Sharding& made,
           const sa::Sharding& to, bool donate) {
  const auto f = sa::jit([&](const Array& v, const Array& w) { return u.f(v, w, made, to); });
  if (donate) {
    Array given = sa::device_put(whole * 1, to);
    return f(cut, std::move(given));
  }
  const sa::Explanation e = sa::explain(f, cut, whole);
  const auto prepared = program_test::prepare(f, cut, whole);
  const auto told = e.transfers();
  const auto moved = prepared.program().transfers;
  CHECK(told.size() == moved.size());
  if (const auto steps = steps_of(prepared.program())) CHECK(e.steps_per_device == *steps);
  for (std::size_t k = 0; k < std::min(told.size(), moved.size()); k++)
    CHECK(told[k].moved_bytes == moved[k].moved_bytes);
  return f(cut, whole);
}

}  // namespace

TEST_CASE("gathers: of what is made where it is gathered, the values of one device") {
  const bool filled = sa::set_debug_fill(true);
  const sa::Mesh mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
  const P cuts[] = {P("x"),      P("y"),          P(sa::axes("x", "y")), P(sa::axes("y", "x")),
                    P("x", "y"), P(sa::none, "y")},
          gathered[] = {P(), P("x"), P("y"), P(sa::none, "x")};
  const sa::Sharding one = sa::SingleDeviceSharding(sa::devices()[0]);
  sa::testing::LeftOut left_out(11, 5);
  for (const bool shared : {true, false})
    for (const sa::Shape& shape : {sa::Shape{64, 16}, {16, 16}, {10, 32}, {3, 16}, {1, 64}}) {
      sa::set_share_replicas(shared);
      const Array v = numbers(shape), w = numbers(shape, sa::float32, 1);
      for (const Use& u : uses) {
        const Arrays want = run(u, sa::device_put(v, one), sa::device_put(w, one), one, one, false);
        for (std::size_t a = 0; a < std::size(cuts); a++)
          for (std::size_t b = 0; b < std::size(gathered); b++)
            for (const bool donate : {false, true}) {
              if (left_out()) continue;
              CAPTURE(std::string(u.name));
              CAPTURE(shared);
              CAPTURE(sa::to_string(shape));
              CAPTURE(a);
              CAPTURE(b);
              CAPTURE(donate);
              const sa::NamedSharding from(mesh, cuts[a]), to(mesh, gathered[b]);
              const Arrays got = run(u, sa::device_put(v, from), sa::device_put(w, to), from, to, donate);
              CHECK(got.size() == want.size());
              for (std::size_t k = 0; k < got.size(); k++) CHECK(values(got[k]) == values(want[k]));
            }
      }
    }
  sa::set_share_replicas(true);
  sa::set_debug_fill(filled);
}

TEST_CASE("gathers: nothing is copied in one memory, and of separate ones what others have") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const sa::NamedSharding rows(mesh, P("x")), columns(mesh, P(sa::none, "x")), whole(mesh, P());
  const auto gather = sa::jit([&](const Array& v) { return sa::reshard(v * 2, whole); });
  const auto update = sa::jit(
      [&](const Array& w, const Array& g) { return sa::reshard(sa::reshard(w, rows) - 0.5 * g, whole); });
  constexpr std::int64_t bytes = 64 * 32 * 4;
  const Array x = sa::device_put(numbers({64, 32}), rows), y = sa::device_put(numbers({64, 32}), columns);
  const auto copied = [&](const auto& f, const auto&... args) {
    const auto all = sa::explain(f, args...).transfers();
    REQUIRE(all.size() == 1);
    CHECK(all[0].bytes_per_device == bytes * 7 / 8);
    return all[0].moved_bytes;
  };
  CHECK(copied(gather, x) == 0);
  CHECK(copied(gather, y) == bytes * 7 / 8);  // columns are no rows of the result
  CHECK(copied(sa::jit([&](const Array& v) { return sa::reshard(v, whole); }), x) ==
        bytes * 7 / 8);  // there already
  sa::set_share_replicas(false);
  CHECK(copied(gather, x) == bytes * 7);
  CHECK(sa::explain(gather, x).peak_bytes_per_device == bytes / 8 + bytes);
  CHECK(sa::explain(gather, y).peak_bytes_per_device == bytes / 8 + bytes + bytes / 8);
  sa::set_share_replicas(true);
  // An update of a part of what every device has is made in it.
  Array w = sa::device_put(numbers({64, 32}, sa::float32, 1), whole);
  const sa::Explanation e = sa::explain(update, std::move(w), x);
  CHECK(e.transfers().at(0).moved_bytes == 0);
  CHECK(e.steps_per_device == 1);
}

TEST_CASE("gathers: arrays that are made to be put together are not copied") {
  const sa::Sharding one = sa::SingleDeviceSharding(sa::devices()[0]);
  const Array x = sa::device_put(numbers({64, 32}), one);
  constexpr std::int64_t bytes = 64 * 32 * 4;
  const auto check_needs = [&](std::int64_t steps, std::int64_t peak, const auto& f) {
    const sa::Explanation e = sa::explain(f, x);
    CAPTURE(e.to_string());
    CHECK(e.steps_per_device == steps);
    CHECK(e.peak_bytes_per_device == peak);
  };
  check_needs(2, 3 * bytes, [](const Array& v) { return sa::concatenate({v * 2, sa::cumsum(v, 0)}, 0); });
  check_needs(2, 3 * bytes, [](const Array& v) { return sa::stack({v * 2, sa::cumsum(v, 0)}); });
  check_needs(2, 3 * bytes, [](const Array& v) { return sa::concatenate({sa::sort(v, 1), v + 1}, 0); });
  // Of columns every row is copied.
  check_needs(3, 5 * bytes, [](const Array& v) { return sa::concatenate({v * 2, sa::cumsum(v, 0)}, 1); });
}

}  // namespace gathers_test
