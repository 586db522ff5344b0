// A value that several nodes read is moved once, if that is cheaper than a move for each of them.
#include <functional>

#include "program_of.h"

namespace shared_copies_test {

namespace sa = shardarray;
using program_test::bytes_received;
using program_test::numbers;
using sa::Array;
using sa::none;
using sa::P;

namespace {

/// f(what all read, the rest).
struct Case {
  std::string name;
  Array read, rest;
  std::function<Array(const Array&, const Array&)> f;
};

std::vector<Case> cases(int readers) {
  const Array rows = sa::abs(numbers({readers, 512}, sa::int32, 1)) % 64;
  const auto lookups = [=](const Array& table, const Array& all) {
    Array x = sa::take(table, all[0], 0);
    for (int k = 1; k < readers; k++) x = x * 0.5 + sa::take(table, all[k], 0);
    return x;
  };
  const auto columns = [=](const Array& table, const Array& all) { return lookups(table.T(), all); };
  const auto search = [=](const Array& sorted, const Array& all) {
    return sa::searchsorted(sorted, all.reshape({all.size()}));
  };
  return {
      {"lookups", numbers({64, 32}, sa::float32, 2), rows, lookups},
      {"columns", numbers({32, 64}, sa::float32, 2), rows, columns},
      {"search", sa::sort(numbers({512}, sa::float32, 5)), numbers({readers, 64}, sa::float32, 6), search}};
}

}  // namespace

TEST_CASE("shared copies: no more comes than where the program brings all to each device first") {
  const std::vector<sa::Mesh> meshes = {sa::make_mesh({{"x", 8}}), sa::make_mesh({{"x", 4}, {"y", 2}})};
  int checked = 0;
  for (const sa::Mesh& mesh : meshes) {
    std::vector<P> cuts = {P("x")};
    if (mesh.axis_names().size() > 1) cuts.insert(cuts.end(), {P("y"), P(sa::AxisNames{{"y", "x"}})});
    for (const int readers : {1, 2, 3, 6, 12})
      for (const Case& c : cases(readers))
        for (const P& cut : cuts)
          for (const P& rest : {P(none, "x"), P()}) {
            CAPTURE(c.name);
            CAPTURE(readers);
            const Array read = sa::device_put(c.read, sa::NamedSharding(mesh, cut)),
                        others = sa::device_put(c.rest, sa::NamedSharding(mesh, rest));
            const auto first = [&c, mesh](const Array& r, const Array& o) {
              return c.f(sa::with_sharding_constraint(r, sa::NamedSharding(mesh, P())), o);
            };
            const auto to = sa::jit(c.f)(read, others).sharding();
            const auto f = sa::jit(c.f, {.out_shardings = to});
            const auto brought = sa::jit(first, {.out_shardings = to});
            const sa::Explanation plan = sa::explain(f, read, others);
            CAPTURE(plan.to_string());
            CHECK(bytes_received(plan) <= bytes_received(sa::explain(brought, read, others)));
            CHECK(sa::allclose(f(read, others), c.f(c.read, c.rest), {.rtol = 1e-5, .atol = 1e-5}));
            checked++;
          }
  }
  MESSAGE("program x readers x sharding cases: " << checked);
}

}  // namespace shared_copies_test
