// Cold calls on graphs of 1,000 to 100,000 operations, with nothing cached: time per operation from recording to the result, which should
// not grow with the graph. All rounds take a quarter of an hour, --quick four minutes, --filter chain less.
#include <shardarray/shardarray.h>

#include <vector>

#include "bench.h"

namespace sa = shardarray;

namespace {

sa::Array chain(sa::Array x, const sa::Array& y, int n) {
  for (int k = 0; k < n; k += 4) x = sa::tanh(x * 0.5 + y) - y;
  return x;
}

sa::Array tree(const sa::Array& x, int n) {
  std::vector<sa::Array> level;
  level.reserve(static_cast<std::size_t>(n / 2));
  for (int k = 0; k < n / 2; k++) level.push_back(x + static_cast<double>(k));
  for (std::size_t left = level.size(); left > 1; left = (left + 1) / 2) {
    for (std::size_t k = 0; k < left / 2; k++) level[k] = level[2 * k] * level[2 * k + 1];
    if (left % 2 == 1) level[left / 2] = level[left - 1];
  }
  return level[0];
}

}  // namespace

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  bench::Suite suite;
  const auto cut = sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P("x"));
  const sa::Array x = sa::device_put(sa::random::normal(sa::random::key(1), {1024}), cut);
  const sa::Array y = sa::random::normal(sa::random::key(2), {1024});
  for (int n : {1'000, 10'000, 100'000}) {
    const auto add = [&](const std::string& name, auto f) {
      suite.add(fmt::format("{} of {}", name, n), f, {.per_call = static_cast<double>(n)});
    };
    add("lazy chain", [=] { chain(x, y, n).block_until_ready(); });
    add("jit of a chain",
        [=] { sa::jit([=](const sa::Array& v) { return chain(v, y, n); })(x).block_until_ready(); });
    add("jit of a gradient through a chain", [=] {
      const auto loss = [=](const sa::Array& v) { return sa::sum(chain(v, y, n)); };
      sa::jit(sa::grad(loss))(x).block_until_ready();
    });
    add("jit of a tree",
        [=] { sa::jit([=](const sa::Array& v) { return tree(v, n); })(x).block_until_ready(); });
    add("many results", [=] {
      std::vector<sa::Array> all;
      all.reserve(static_cast<std::size_t>(n));
      for (int k = 0; k < n; k++) all.push_back(y + static_cast<double>(k));
      sa::block_until_ready(all);
    });
  }
  return suite.main(argc, argv);
}
