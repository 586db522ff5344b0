// The verifier of programs: it accepts those that the compiler makes, and none from which something was removed.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "compile/passes.h"
#include "program_of.h"
#include "runtime/step_ranges.h"
#include "shardarray/shardarray.h"

namespace verify_test {

namespace sa = shardarray;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

/// Loops, products, a sort, sums in parts, boxes that move: over devices.
std::vector<sa::Program> programs() {
  std::vector<sa::Program> all;
  const auto add = [&](const auto& f, const P& spec) {
    const Array x = program_test::placed({12, 10}, program_test::on_xy(spec));
    all.push_back(program_test::prepare(sa::jit(f), x).program());
  };
  const auto layers = [](const Array& x) {
    const Array h = sa::tanh(sa::matmul(x, sa::transpose(x)));
    return sa::matmul(h, x) + sa::sum(h, {.axis = 1, .keepdims = true});
  };
  const auto moves = [](const Array& x) {
    return std::pair(sa::concatenate({sa::flip(x, 0), sa::sort(x * 2, 0)}, 0), sa::pad(x, {{1, 1}, {0, 2}}));
  };
  for (const P& spec : {P("x"), P("x", "y"), P(sa::none, "x"), P()}) {
    add(layers, spec);
    add(moves, spec);
    add([&](const Array& x) { return sa::grad([&](const Array& v) { return sa::sum(layers(v)); })(x); },
        spec);
  }
  return all;
}
bool legal(const sa::Program& p) {
  try {
    sa::verify(p);
    return true;
  } catch (const sa::InternalError&) { return false; }
}

/// Whether item `item` of step `step`, -1: every one, writes only what no earlier step wrote and no argument is: bytes that were
/// written before and are dead by now count as written.
bool writes_first(const sa::Program& p, std::size_t step, int item) {
  std::vector<sa::MemoryRange> earlier, own;
  for (const sa::Port& port : p.inputs)
    for (std::size_t k = 0; k < port.bases.size(); k++) earlier.push_back({port.bases[k], 0, port.bytes[k]});
  for (std::size_t k = 0; k <= step; k++) {
    const auto add = [&](const auto& body) {
      for (std::size_t i = 0; i < body.items.size(); i++)
        if (k < step || item < 0 || static_cast<int>(i) == item)
          for (const sa::MemoryRange& r : sa::ranges_of(body, body.items[i]).writes)
            if (r.lo < r.hi) (k < step ? earlier : own).push_back(r);
    };
    std::visit(add, p.steps[k].body);
  }
  return !own.empty() && std::none_of(own.begin(), own.end(), [&](const sa::MemoryRange& r) {
    return std::any_of(earlier.begin(), earlier.end(),
                       [&](const sa::MemoryRange& e) { return overlap(e, r); });
  });
}

}  // namespace

TEST_CASE("verify: takes what the compiler makes, and no program that lacks a step or does one twice") {
  int dropped = 0;
  for (const sa::Program& p : programs()) {
    CHECK(legal(p));
    for (std::size_t k = 0; k < p.steps.size(); k++) {
      CAPTURE(p.steps[k].label);
      sa::Program less = p;
      less.steps.erase(less.steps.begin() + static_cast<std::ptrdiff_t>(k));
      if (writes_first(p, k, -1)) CHECK_FALSE(legal(less));
      sa::Program twice = p;
      std::visit([](auto& body) { body.items.push_back(body.items[0]); }, twice.steps[k].body);
      CHECK_FALSE(legal(twice));
      sa::Program fewer = p;
      std::visit([](auto& body) { body.items.erase(body.items.begin()); }, fewer.steps[k].body);
      if (writes_first(p, k, 0)) CHECK_FALSE(legal(fewer));
      dropped += writes_first(p, k, 0);
    }
    if (p.steps.size() < 2) continue;
    sa::Program late = p;
    std::rotate(late.steps.begin(), late.steps.begin() + 1, late.steps.end());
    if (writes_first(p, 0, -1)) CHECK_FALSE(legal(late));
  }
  CHECK(dropped > 20);
}

TEST_CASE("verify: addresses lie in the memory that the plan gives") {
  for (const sa::Program& p : programs()) {
    for (std::size_t d = 0; d < p.scratch_bytes.size(); d++) {
      if (p.scratch_bytes[d] == 0) continue;
      sa::Program tight = p;
      tight.scratch_bytes[d] = 8;
      CHECK_FALSE(legal(tight));
    }
    sa::Program foreign = p;
    foreign.base_count--;
    CHECK_FALSE(legal(foreign));
  }
}

}  // namespace verify_test
