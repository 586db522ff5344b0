// Whole programs move no more than the best known plans, and have the values of one device.
#include "../bench/known_plans.h"

#include <random>

#include "../bench/layout_shardings.h"
#include "../bench/strategies.h"
#include "program_of.h"
#include "scale.h"

namespace known_plans_test {

namespace sa = shardarray;
using namespace known_plans;

namespace {

// Quarters; of indices whole numbers from 0 on.
Array operand(const Operand& o, int seed) {
  const Array x = program_test::numbers(o.small, o.dtype, seed);
  return o.dtype == sa::int32 ? x + 5 : x * 0.25;
}

// Of devices that this process has not: 12.5 operations take as long as a byte, as it is planned for those that it has.
sa::Mesh mesh_elsewhere(const Shape& sizes, const std::vector<std::string>& names) {
  const auto count = static_cast<int>(sa::num_elements(sizes));
  sa::Machine m;
  m.name = "like-these-" + std::to_string(count);
  m.device_count = count;
  m.memory = 1e12;
  m.memory_bandwidth = 1e10;
  m.step_latency = 1e-7;
  m.flops["float32"] = 12.5e9;
  m.links = {{"all", count, 1e9, 1e-6}};
  return sa::Mesh({sizes, m.devices()}, names);
}
sa::Mesh mesh_elsewhere(const bench::Product& p) {
  Shape sizes;
  std::vector<std::string> names;
  for (const bench::MeshAxis& a : p.mesh) {
    sizes.push_back(a.size);
    names.emplace_back(1, a.name);
  }
  return mesh_elsewhere(sizes, names);
}

}  // namespace

TEST_CASE("known plans: programs move what the best plan moves") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  for (const KnownPlan& k : known_plans::known_plans()) {
    CAPTURE(k.name);
    const sa::Explanation e = plan_of(k, mesh);
    CAPTURE(e.to_string());
    if (k.planned == 0) CHECK(bytes_of(e) <= k.best);
    else CHECK(bytes_of(e) == k.planned);
    CHECK(k.because.empty() == (k.planned == 0));
    CHECK(bytes_of(e) <= k.xla);
  }
}

// An axis more, which cuts no operand: many devices can do what eight can.
TEST_CASE("known plans: 128 devices and more move no more than eight, or are faster") {
  const auto seconds = [](const sa::Explanation& e) { return e.compute_seconds + e.transfer_seconds; };
  const sa::Mesh eight = mesh_elsewhere({4, 2}, {"x", "y"});
  const std::vector<int> more = sa::testing::full_scale() ? std::vector{16, 32, 128} : std::vector{16};
  for (const int z : more)
    for (const sa::Mesh& mesh :
         {mesh_elsewhere({4, 2, z}, {"x", "y", "z"}), mesh_elsewhere({z, 4, 2}, {"z", "x", "y"})})
      for (const KnownPlan& k : known_plans::known_plans()) {
        CAPTURE(k.name);
        const sa::Explanation e = plan_of(k, mesh);
        CAPTURE(e.to_string());
        if (bytes_of(e) > std::max(k.best, k.planned)) CHECK(seconds(e) < seconds(plan_of(k, eight)));
      }
}

TEST_CASE("known plans: values are those of one device") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  for (const KnownPlan& k : known_plans::known_plans()) {
    CAPTURE(k.name);
    Arrays plain, placed;
    for (const Operand& o : k.operands) {
      plain.push_back(operand(o, static_cast<int>(plain.size())));
      placed.push_back(sa::device_put(plain.back(), sa::NamedSharding(mesh, o.spec)));
    }
    const Arrays want = sa::jit(k.f)(plain), got = sa::jit(placing(k, mesh))(placed);
    for (std::size_t i = 0; i < want.size(); i++) {
      CAPTURE(i);
      CHECK(got[i].sharding().is_equivalent_to(sa::NamedSharding(mesh, k.results[i]), got[i].ndim()));
      const std::vector<double> a = program_test::values(got[i]), b = program_test::values(want[i]);
      double most = 1e-3, error = 0;
      for (const double x : b) most = std::max(most, std::abs(x));
      for (std::size_t j = 0; j < a.size(); j++) error = std::max(error, std::abs(a[j] - b[j]));
      CHECK(error <= 2e-5 * most);
    }
  }
}

// The least: over all ways to deal the axes, down to their prime factors, to m, n and k, with the arithmetic dealt out evenly.
TEST_CASE("known plans: products in any layouts move about what the best strategy moves") {
  struct Case {
    const char* mesh;
    std::int64_t m, k, n;
    double worst;  // of a layout: beside the least
  };
  for (const Case& c : {Case{"x=4,y=2", 256, 256, 256, 1.15},
                        {"x=4,y=2", 256, 4096, 256, 1.6},
                        {"x=4,y=2", 1024, 64, 1024, 1.0},
                        {"x=8", 1024, 1024, 1024, 1.0},
                        {"x=2,y=2,z=2", 512, 512, 512, 1.2},
                        {"x=64", 1024, 1024, 1024, 1.0},
                        {"x=128", 1024, 1024, 1024, 1.0},
                        {"x=8,y=8", 1024, 1024, 1024, 1.05},
                        {"x=8,y=4,z=4", 1024, 1024, 1024, 1.1}}) {
    bench::Product p;
    p.mesh = bench::parse_mesh(c.mesh);
    p.m = c.m, p.k = c.k, p.n = c.n;
    const bool is_large = p.devices() > 8;  // where a plan takes longer
    const sa::Mesh mesh = is_large ? mesh_elsewhere(p) : bench::mesh_of(p);
    std::vector<bench::ProductLayout> layouts = bench::all_layouts(p.mesh);
    std::shuffle(layouts.begin(), layouts.end(), std::mt19937(1));
    layouts.resize(
        std::min<std::size_t>(layouts.size(), (sa::testing::full_scale() ? 1000 : 60) / (is_large ? 10 : 1)));
    double all = 0, least = 0;
    for (const bench::ProductLayout& l : layouts) {
      const Array a = sa::shape_dtype_struct({p.m, p.k}, sa::float32, bench::sharding_of(p, mesh, l.a)),
                  b = sa::shape_dtype_struct({p.k, p.n}, sa::float32, bench::sharding_of(p, mesh, l.b));
      const auto f = sa::jit([&](const Array& x, const Array& y) {
        return sa::filter_shard(sa::matmul(x, y), bench::sharding_of(p, mesh, l.c));
      });
      const double bytes = static_cast<double>(bytes_of(sa::explain(f, a, b))),
                   best = bench::least_bytes(bench::strategies(p, l), 1.0001 * p.flops() / p.devices()).bytes;
      CAPTURE(bench::to_text(l, p.mesh));
      CHECK(bytes <= c.worst * best + 1);
      all += bytes, least += best;
    }
    CAPTURE(c.mesh);
    CHECK(all <= 1.03 * least);
  }
}

// Two axes of the three, with one in between elsewhere: neighbours on one value only.
TEST_CASE("known plans: what a constraint has moved is there for a product, however that splits the axes") {
  bench::Product p;
  p.mesh = bench::parse_mesh("x=2,y=2,z=8");
  const sa::Mesh mesh = mesh_elsewhere(p);
  const sa::NamedSharding rows(mesh, P(sa::AxisNames{{"x", "y", "z"}}));
  const Array a = sa::shape_dtype_struct({4096, 4096}, sa::float32, rows),
              b = sa::shape_dtype_struct({4096, 64}, sa::float32, rows);
  const auto f = [&](const Array& x, const Array& y) {
    return std::pair(
        sa::with_sharding_constraint(x, sa::NamedSharding(mesh, P(sa::AxisNames{{"x", "z"}}, "y"))),
        sa::matmul(x, y));
  };
  CHECK(bytes_of(sa::explain(f, a, b)) <=
        2'097'152 + 524'288 + 2 * 32'768);  // the constraint's, the product's
}

}  // namespace known_plans_test
