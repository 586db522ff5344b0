// Whole programs move no more than the best plan that is known for them, and their values are those of one device.
#include "../bench/known_plans.h"

#include "program_of.h"

namespace known_plans_test {

namespace sa = shardarray;
using namespace known_plans;

namespace {

// Quarters; of indices whole numbers from 0 on.
Array operand(const Operand& o, int seed) {
  const Array x = program_test::numbers(o.small, o.dtype, seed);
  return o.dtype == sa::int32 ? x + 5 : x * 0.25;
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

}  // namespace known_plans_test
