// The placement of lazy values: as if each line had been computed eagerly, whoever holds what, whatever runs together.
#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "scale.h"
#include "shardarray/shardarray.h"

namespace places_test {

namespace sa = shardarray;
using sa::Array;

// One random program, recorded again and again by the same seed: line by line computed, or lazy with some values dropped.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {}

  /// The values after `lines` lines; absent: let go, or the line was refused.
  std::vector<Array> run(int lines, bool eager, const std::vector<bool>& kept) {
    std::vector<Array> values = leaves();
    for (int k = 0; k < lines; k++) {
      const auto line = random_line(values.size());
      Array made;
      if (eager) {
        try {
          made = line(values);
          made.block_until_ready();
        } catch (const sa::DeviceError&) { made = Array(); }
        refused_.push_back(!made.has_value());
      } else if (!refused_[static_cast<std::size_t>(k)]) {
        made = line(values);
      }
      values.push_back(made);
    }
    for (std::size_t k = 0; k < values.size(); k++)
      if (!kept[k]) values[k] = Array();
    return values;
  }
  void again(unsigned seed) { random_.seed(seed); }

 private:
  using Line = std::function<Array(const std::vector<Array>&)>;

  static std::vector<sa::Sharding> targets() {
    const auto mesh = [](std::size_t first) {
      const auto all = sa::devices();
      return sa::make_mesh({{"x", 2}}, {all[first], all[first + 1]});
    };
    return std::vector<sa::Sharding>{
        sa::SingleDeviceSharding(sa::devices()[3]), sa::SingleDeviceSharding(sa::devices()[0]),
        sa::NamedSharding(mesh(0), sa::P("x")), sa::NamedSharding(mesh(4), sa::P("x")),
        sa::NamedSharding(mesh(4), sa::P())};
  }

  std::vector<Array> leaves() {
    std::vector<Array> v = {sa::arange(4) * 1.f, sa::array({1.f, -2.f, 3.f, 5.f})};
    v[1].block_until_ready();
    for (const sa::Sharding& s : targets()) v.push_back(sa::device_put(v[1], s));
    return v;
  }

  Line random_line(std::size_t values) {
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random_() % n); };
    const std::size_t a = pick(values), b = pick(values), what = pick(7), where = pick(targets().size());
    return [=](const std::vector<Array>& v) -> Array {
      const auto at = [&](std::size_t k) { return v[k].has_value() ? v[k] : v[1]; };
      switch (what) {
        case 0: return sa::filter_shard(at(a), targets()[where]);
        case 1: return at(a) * 0.5f;
        case 2: return sa::flip(at(a), 0);
        case 3: return sa::sum(at(a)) + sa::arange(4) * 1.f;
        case 4: return sa::arange(4) * 2.f;
        default: return at(a) + at(b);
      }
    };
  }

  std::mt19937 random_;
  std::vector<bool> refused_;
};

TEST_CASE("places: lazy values lie where they lie line by line, whoever holds what") {
  constexpr std::size_t leaves = 7;
  const int programs = sa::testing::full_scale() ? 3000 : 150, lines = 9;
  int moved = 0;
  for (int seed = 0; seed < programs; seed++) {
    Program p(static_cast<unsigned>(seed));
    const std::vector<Array> truth = p.run(lines, true, std::vector<bool>(leaves + lines, true));
    std::mt19937 keep(static_cast<unsigned>(seed) + 1);
    for (int round = 0; round < 3; round++) {
      std::vector<bool> kept;
      for (std::size_t k = 0; k < truth.size(); k++) kept.push_back(k >= leaves && keep() % 3 != 0);
      p.again(static_cast<unsigned>(seed));
      const std::vector<Array> lazy = p.run(lines, false, kept);
      if (round == 1) sa::eval(lazy);  // all at once
      for (std::size_t back = 0; back < lazy.size(); back++) {
        const std::size_t k = round == 2 ? back : lazy.size() - 1 - back;  // first or last line first
        if (!lazy[k].has_value() || !truth[k].has_value()) continue;
        INFO("program " << seed << ", line " << k << ", round " << round);
        REQUIRE(lazy[k].to_vector<float>() == truth[k].to_vector<float>());
        REQUIRE(lazy[k].committed() == truth[k].committed());
        REQUIRE(lazy[k].devices() == truth[k].devices());
        moved += truth[k].devices().size() == 2;
      }
    }
  }
  CHECK(moved > programs);
}

TEST_CASE("places: what was held beside a bound value stays unbound") {
  const Array bound = sa::device_put(sa::ones({5}), sa::SingleDeviceSharding(sa::devices()[3]));
  const Array b = sa::arange(5) * 2.f;
  const Array c = bound + b;
  CHECK(c.to_vector<float>() == std::vector<float>{1, 3, 5, 7, 9});
  CHECK(c.committed());
  CHECK_FALSE(b.committed());
  CHECK(b.devices() == std::vector{sa::devices()[0]});
}

}  // namespace places_test
