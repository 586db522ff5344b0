// x.at(..) with positions that the program says: every form and way to update, wherever x lies, against a choice by masks.
#include <functional>

#include "program_of.h"

namespace part_updates_test {

namespace sa = shardarray;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

struct Part {
  std::string name;
  std::function<sa::IndexedArray(const Array&)> at;
  sa::Shape rows, columns;  // chosen positions
};
sa::Shape range(std::int64_t lo, std::int64_t hi, std::int64_t step = 1) {
  sa::Shape r;
  for (std::int64_t i = lo; i < hi; i += step) r.push_back(i);
  return r;
}
std::vector<Part> parts(std::int64_t n, std::int64_t m) {
  using sa::none;
  const sa::slice all(none);
  return {{"row", [](const Array& x) { return x.at(5); }, {5}, range(0, m)},
          {"last row", [](const Array& x) { return x.at(-1); }, {n - 1}, range(0, m)},
          {"column",
           [=](const Array& x) {
             return x.at({all, 3});
           },
           range(0, n),
           {3}},
          {"element",
           [](const Array& x) {
             return x.at({7, 2});
           },
           {7},
           {2}},
          {"rows", [](const Array& x) { return x.at(sa::slice(2, 9)); }, range(2, 9), range(0, m)},
          {"block",
           [](const Array& x) {
             return x.at({sa::slice(1, 3), sa::slice(4, 6)});
           },
           {1, 2},
           {4, 5}},
          {"every third", [](const Array& x) { return x.at(sa::slice(none, none, 3)); }, range(0, n, 3),
           range(0, m)},
          {"all but the border",
           [](const Array& x) {
             return x.at({sa::slice(1, -1), sa::slice(1, -1)});
           },
           range(1, n - 1), range(1, m - 1)},
          {"nothing", [](const Array& x) { return x.at(sa::slice(4, 4)); }, {}, range(0, m)}};
}
/// True at the part's positions.
Array mask(const Part& p, std::int64_t n, std::int64_t m) {
  std::vector<std::uint8_t> in(static_cast<std::size_t>(n * m), 0);
  for (const std::int64_t i : p.rows)
    for (const std::int64_t j : p.columns) in[static_cast<std::size_t>(i * m + j)] = 1;
  return sa::array(in, {n, m}) > 0;
}
const std::vector<std::pair<std::string, std::function<Array(const sa::IndexedArray&, const Array&)>>>&
ways() {
  static const std::vector<
      std::pair<std::string, std::function<Array(const sa::IndexedArray&, const Array&)>>>
      all = {{"set", [](const auto& at, const Array& v) { return at.set(v); }},
             {"add", [](const auto& at, const Array& v) { return at.add(v); }},
             {"mul", [](const auto& at, const Array& v) { return at.mul(v); }},
             {"min", [](const auto& at, const Array& v) { return at.min(v); }},
             {"max", [](const auto& at, const Array& v) { return at.max(v); }}};
  return all;
}
Array chosen(const std::string& way, const Array& in, const Array& x, const Array& v) {
  const Array y = way == "set"   ? v + x * 0
                  : way == "add" ? x + v
                  : way == "mul" ? x * v
                  : way == "min" ? sa::minimum(x, v)
                                 : sa::maximum(x, v);
  return sa::where(in, y, x);
}

}  // namespace

TEST_CASE("updates of parts: values and derivatives are those of a choice by masks, wherever x lies") {
  const std::int64_t n = 24, m = 10;
  const sa::Mesh line = sa::make_mesh({{"x", 8}}), grid = sa::make_mesh({{"x", 4}, {"y", 2}});
  const std::vector<sa::Sharding> places = {
      sa::SingleDeviceSharding(sa::devices()[0]), sa::NamedSharding(line, P("x")),
      sa::NamedSharding(line, P(sa::none, "x")), sa::NamedSharding(grid, P("x", "y")),
      sa::NamedSharding(grid, P())};
  int checked = 0;
  for (const sa::DType t : {sa::float32, sa::int32, sa::bfloat16})
    for (const Part& part : parts(n, m))
      for (const auto& [way, update] : ways())
        for (const sa::Sharding& place : places) {
          CAPTURE(part.name);
          const std::string& how = way;
          const auto& changes = update;
          CAPTURE(how);
          CAPTURE(sa::name(t));
          const Array x = (numbers({n, m}, sa::float32, 3) * 0.5).astype(t), v = Array(3).astype(t),
                      in = mask(part, n, m), here = sa::device_put(x, place);
          const auto f = [&](const Array& y, const Array& w) { return changes(part.at(y), w); };
          const Array want = chosen(way, in, x, v);
          CHECK(sa::array_equal(sa::jit(f)(here, v), want));
          CHECK(sa::array_equal(f(here, v), want));
          Array given = sa::device_put(x + Array(0).astype(t), place);
          CHECK(sa::array_equal(sa::jit(f)(std::move(given), v), want));
          CHECK(sa::array_equal(
              sa::vmap([&](const Array& y) { return f(y, v); })(sa::stack(std::vector<Array>{x, want}))[0],
              want));
          checked++;
          if (t != sa::float32) continue;
          const auto slopes = [&](const auto& g) {
            return sa::grad([&](const std::tuple<Array, Array>& both) {
              return sa::sum(sa::sin(g(std::get<0>(both), std::get<1>(both))));
            })(std::tuple(here, v));
          };
          const auto [dx, dv] = slopes(f);
          const auto [wanted_x, wanted_v] =
              slopes([&](const Array& y, const Array& w) { return chosen(how, in, y, w); });
          CHECK(sa::allclose(dx, wanted_x, {.rtol = 1e-5, .atol = 1e-6}));
          CHECK(sa::allclose(dv, wanted_v, {.rtol = 1e-5, .atol = 1e-5}));
        }
  MESSAGE("part x way x place x dtype cases: " << checked);
}

// A row, a number for all, a small part: what is donated is written over, and nothing else of its size is needed.
TEST_CASE("updates of parts: a donated array is written in place") {
  const std::int64_t n = 640, m = 100, bytes = n * m * 4;
  for (const Part& part : parts(n, m)) {
    if (part.name == "every third" || part.name == "nothing") continue;
    for (const auto& [way, update] : ways()) {
      const std::string& how = way;
      CAPTURE(part.name);
      CAPTURE(how);
      Array x = numbers({n, m});
      const auto& changes = update;
      const auto f = sa::jit([&](const Array& y) { return changes(part.at(y), Array(2.0f)); });
      const sa::Explanation plan = sa::explain(f, sa::donated(x));
      CAPTURE(plan.to_string());
      CHECK(plan.donations().at(0).reused);
      CHECK(plan.peak_bytes_per_device <= bytes + bytes / 4 + 4096);
      CHECK(plan.transfers().empty());
    }
  }
}

}  // namespace part_updates_test
