// The sum of several nodes' partial sums is combined once, if that is cheaper than combining each.
#include <algorithm>
#include <functional>
#include <tuple>

#include "program_of.h"

namespace shared_sums_test {

namespace sa = shardarray;
using program_test::bytes_received;
using program_test::numbers;
using sa::Array;
using sa::none;
using sa::P;

namespace {

/// Of a parameter and one micro-batch [rows, 64].
struct Case {
  std::string name;
  Array parameter;
  std::function<Array(const Array&, const Array&)> gradient;
};
std::vector<Case> cases() {
  const auto loss = [](const Array& w, const Array& x) {
    return sa::mean(sa::square(sa::tanh(sa::matmul(x, w))));
  };
  const auto deep = [](const Array& w, const Array& x) {
    return sa::sum(sa::sin(sa::matmul(sa::tanh(sa::matmul(x, w)), w)));
  };
  const auto rows = [](const Array& b, const Array& x) { return sa::sum(sa::tanh(x + b), 0); };
  return {{"product", numbers({64, 64}, sa::float32, 3) * 0.01, sa::grad(loss)},
          {"two products", numbers({64, 64}, sa::float32, 3) * 0.01, sa::grad(deep)},
          {"rows", numbers({64}, sa::float32, 3) * 0.01, rows}};
}
/// The same by a loop, which adds to zeros.
Array looped(const Case& c, const Array& p, const Array& all) {
  return sa::scan([&](const Array& sum,
                      const Array& batch) { return std::pair(sum + c.gradient(p, batch), std::tuple<>()); },
                  sa::zeros_like(p), all)
      .first;
}
/// How the gradients g(0), g(1), ... are accumulated.
Array added(int how, int batches, const std::function<Array(int)>& g) {
  Array sum = g(0);
  for (int k = 1; k < batches; k++) {
    if (how == 0) sum = sum + g(k);
    else if (how == 1) sum = sum * 0.5 + g(k);
    else if (how == 2) sum = g(k) - sum;
    else sum = sum + g(k) * 0.25;
  }
  return sum;
}

struct Grid {
  sa::Mesh mesh;
  sa::AxisNames axes;
  sa::UnreducedAxes summed;
  std::vector<P> cuts;  // of parameters
};
std::vector<Grid> grids() {
  return {{sa::make_mesh({{"x", 8}}), sa::axes("x"), sa::unreduced("x"), {P(), P("x"), P(none, "x")}},
          {sa::make_mesh({{"x", 4}, {"y", 2}}),
           sa::axes("x", "y"),
           sa::unreduced("x", "y"),
           {P(), P("x"), P("y")}}};
}
/// Each device has the whole parameter and a part of the rows, and makes one summand of all gradients.
Array by_hand(const Grid& g, const Case& c, int how, const Array& p, const Array& all) {
  const Array whole = sa::with_sharding_constraint(p, sa::NamedSharding(g.mesh, P())),
              rows = sa::with_sharding_constraint(all, sa::NamedSharding(g.mesh, P(none, g.axes)));
  const sa::NamedSharding parts(g.mesh, P(g.summed));
  return p - added(how, static_cast<int>(all.shape()[0]),
                   [&](int k) { return sa::with_sharding_constraint(c.gradient(whole, rows[k]), parts); });
}

}  // namespace

// Micro-batches whose rows are cut, over some axes or all.
TEST_CASE("shared sums: no more moves than where the program adds them up before it combines them") {
  int checked = 0, worse = 0;
  for (const Grid& grid : grids()) {
    std::vector<P> rows = {P(none, "x")};
    if (grid.mesh.axis_names().size() > 1) rows.emplace_back(none, grid.axes);
    for (const int batches : {1, 2, 4, 8})
      for (const Case& c : cases())
        for (const P& cut : grid.cuts)
          for (const P& batch : rows)
            for (int how = 0; how < 4; how++) {
              if (c.parameter.ndim() == 1 && cut == P(none, "x")) continue;
              CAPTURE(c.name);
              CAPTURE(batches);
              CAPTURE(how);
              CAPTURE(cut);
              CAPTURE(batch);
              const sa::NamedSharding at(grid.mesh, cut);
              const Array w = sa::device_put(c.parameter, at),
                          x = numbers({batches, 32, 64}, sa::float32, 7) * 0.1,
                          here = sa::device_put(x, sa::NamedSharding(grid.mesh, batch));
              const auto step = [&](const Array& p, const Array& all) {
                return p - added(how, batches, [&](int k) { return c.gradient(p, all[k]); });
              };
              const auto placed = [&](const Array& p, const Array& all) {
                return by_hand(grid, c, how, p, all);
              };
              const auto f = sa::jit(step, {.out_shardings = at});
              const sa::Explanation plan = sa::explain(f, w, here);
              CAPTURE(plan.to_string());
              const std::int64_t bytes = bytes_received(plan),
                                 hand = bytes_received(
                                     sa::explain(sa::jit(placed, {.out_shardings = at}), w, here));
              // What saves less than a sixteenth is not worth its memory, nor the price of a few transfers.
              worse += bytes > hand + hand / 16 + 4096;
              CHECK(bytes <= hand + hand / 2 + 4096);
              CHECK(sa::allclose(f(w, here), step(c.parameter, x), {.rtol = 1e-4, .atol = 1e-4}));
              checked++;
            }
  }
  CHECK(worse * 50 <= checked);
  MESSAGE("program x parameter x batch cases: " << checked << ", above a sixteenth more in " << worse);
}

// What a loop reads in every run comes once, what it adds up is combined once.
TEST_CASE(
    "shared sums: a loop over micro-batches moves no more than its runs, written out and placed by hand") {
  int checked = 0;
  for (const Grid& grid : grids())
    for (const int batches : {2, 5, 8})
      for (const Case& c : cases())
        for (const P& cut : grid.cuts) {
          if (c.parameter.ndim() == 1 && cut == P(none, "x")) continue;
          CAPTURE(c.name);
          CAPTURE(batches);
          CAPTURE(cut);
          const sa::NamedSharding at(grid.mesh, cut);
          const Array w = sa::device_put(c.parameter, at),
                      x = numbers({batches, 128, 64}, sa::float32, 7) * 0.1,
                      here = sa::device_put(x, sa::NamedSharding(grid.mesh, P(none, grid.axes)));
          const auto step = [&](const Array& p, const Array& all) { return p - looped(c, p, all); };
          const auto placed = [&](const Array& p, const Array& all) { return by_hand(grid, c, 0, p, all); };
          const auto f = sa::jit(step, {.out_shardings = at});
          const sa::Explanation plan = sa::explain(f, w, here);
          CAPTURE(plan.to_string());
          const std::int64_t hand =
              bytes_received(sa::explain(sa::jit(placed, {.out_shardings = at}), w, here));
          // A copy and a sum for all runs have to save as much as they take: two runs do not always.
          const std::int64_t taken = batches == 2 ? 2 * 4 * c.parameter.size() : 0;
          CHECK(bytes_received(plan) <= hand + hand / 16 + 4096 + taken);
          CHECK(sa::allclose(f(w, here), step(c.parameter, x), {.rtol = 1e-4, .atol = 1e-4}));
          program_test::check_received(f, w, here);
          checked++;
        }
  MESSAGE("program x parameter cases: " << checked);
}

// Nobody knows how often they run.
TEST_CASE("shared sums: what runs of a while_loop read comes once, what they add up is combined once") {
  for (const Grid& grid : grids())
    for (const Case& c : cases())
      for (const P& cut : grid.cuts) {
        if (c.parameter.ndim() == 1 && cut == P(none, "x")) continue;
        CAPTURE(c.name);
        CAPTURE(cut);
        const sa::NamedSharding at(grid.mesh, cut);
        const Array w = sa::device_put(c.parameter, at), x = numbers({128, 64}, sa::float32, 7) * 0.1,
                    here = sa::device_put(x, sa::NamedSharding(grid.mesh, P(grid.axes)));
        const auto sum = [&](const Array& p, const Array& rows) {
          using Carry = std::tuple<Array, Array>;
          const auto more = [](const Carry& s) { return std::get<1>(s) < 5; };
          const auto add = [&](const Carry& s) {
            return Carry{std::get<0>(s) + c.gradient(p, rows * std::get<1>(s)), std::get<1>(s) + 1};
          };
          return std::get<0>(sa::while_loop(more, add, Carry{sa::zeros_like(p), Array(0)}));
        };
        const auto f = sa::jit(sum, {.out_shardings = at});
        const sa::Explanation plan = sa::explain(f, w, here);
        CAPTURE(plan.to_string());
        CHECK(std::ranges::none_of(plan.transfers(), [](const sa::TransferInfo& t) {
          return t.reason.find("every time") != std::string::npos;
        }));
        CHECK(sa::allclose(f(w, here), sum(c.parameter, x), {.rtol = 1e-4, .atol = 1e-4}));
      }
}

TEST_CASE("shared sums: a loop that is given summands, and asked for such, adds to them where they are") {
  for (const int rows : {64, 256})
    for (const int batches : {2, 5}) {
      CAPTURE(rows);
      CAPTURE(batches);
      const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
      const sa::NamedSharding summands(mesh, P(sa::unreduced("x")));
      const Array x = numbers({batches, rows, 16}, sa::float32, 7) * 0.1, sum = numbers({16, 16}) * 0.1,
                  here = sa::device_put(x, sa::NamedSharding(mesh, P(none, "x"))),
                  given = sa::device_put(sum, summands);
      const auto f = [](const Array& begin, const Array& all) {
        return sa::scan(
                   [](const Array& c, const Array& one) {
                     return std::pair(c + sa::matmul(one.T(), one), std::tuple<>());
                   },
                   begin, all)
            .first;
      };
      const auto g = sa::jit(f, {.out_shardings = summands});
      // Devices along y may share the work, and bring its parts together at the end.
      CHECK(bytes_received(sa::explain(g, given, here)) <= 16 * 16 * 4 / 2);
      CHECK(sa::allclose(sa::reshard(g(given, here), sa::NamedSharding(mesh, P())), f(sum, x),
                         {.rtol = 1e-5, .atol = 1e-5}));
    }
}

// Sums that devices cannot make (of 16 bits, of bool) are none; carries that runs replace are no sums, whatever they begin as.
TEST_CASE("shared sums: carries that begin as zeros, of every dtype") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const auto added = [](const Array& c, const Array& x, const Array&) {
    return c + sa::matmul(x.T(), x).astype(c.dtype());
  };
  const auto replaced = [](const Array&, const Array& x, const Array& w) { return sa::matmul(x, w); };
  const auto grown = [](const Array& c, const Array& x, const Array& w) { return sa::matmul(c + x, w) + c; };
  const auto found = [](const Array& c, const Array& x, const Array& w) {
    return (c.astype(x.dtype()) + x + w > 2).astype(c.dtype());
  };
  using Step = std::function<Array(const Array&, const Array&, const Array&)>;
  for (const sa::DType t : {sa::float32, sa::float64, sa::bfloat16, sa::float16, sa::int8, sa::int32,
                            sa::uint16, sa::complex64, sa::bool_})
    for (const Step& step : std::vector<Step>{added, replaced, grown, found}) {
      const bool is_flag = t == sa::bool_, is_complex = t == sa::complex64;
      const sa::DType of_values = is_flag ? sa::float32 : t;
      for (const P& cut : {P(), P("x"), P(none, "x")}) {
        CAPTURE(sa::name(t));
        CAPTURE(cut);
        const Array w = (numbers({16, 16}, sa::int32, 3) % 2).astype(of_values),
                    x = (numbers({3, 16, 16}, sa::int32, 5) % 2).astype(of_values);
        const auto f = [&](const Array& p, const Array& all) {
          return sa::scan(
                     [&](const Array& c, const Array& one) {
                       return std::pair(step(c, one, p).astype(t), std::tuple<>());
                     },
                     sa::zeros({16, 16}, t), all)
              .first;
        };
        if (is_complex && step.target_type() == typeid(found)) continue;  // has no order
        const Array got = sa::jit(f)(sa::device_put(w, sa::NamedSharding(mesh, cut)),
                                     sa::device_put(x, sa::NamedSharding(mesh, P(none, "x"))));
        CHECK(sa::allclose(got.astype(sa::complex64), f(w, x).astype(sa::complex64), {.rtol = 0.02}));
      }
    }
}

}  // namespace shared_sums_test
