// Random programs with random placements against one device; what the executor moves against what explain() says.
#include "ops/table.h"
#include "random_program_ops.h"
#include "random_program_sums.h"
#include "shardarray/explain.h"
#include "shardarray/policy.h"
#include "shardarray/reproducible.h"
#include "transform/jit.h"
#include "with_codegen.h"

namespace random_programs_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

std::set<const Op*> reached;

// The lines as a function of the leaves; constraints only where `placed`.
Arrays run_lines(const RandomProgram& p, std::span<const Array> leaves, bool placed) {
  Arrays values;
  std::size_t next = 0;
  for (const Line& l : p.lines) {
    if (!l.apply) {
      values.push_back(leaves[next++]);
      continue;
    }
    Arrays in;
    for (int v : l.in) in.push_back(values[static_cast<std::size_t>(v)]);
    values.push_back(l.apply(in));
    if (placed && l.sharding) values.back() = filter_shard(values.back(), *l.sharding);
  }
  Arrays r;
  for (int v : p.outputs) r.push_back(values[static_cast<std::size_t>(v)]);
  return r;
}

Arrays make_leaves(const RandomProgram& p, bool placed) {
  Arrays r;
  for (const Line& l : p.lines)
    if (!l.apply) {
      const Array a = to_array(l.data, l.shape, l.dtype);
      r.push_back(placed && l.sharding ? device_put(a, *l.sharding) : a);
    }
  return r;
}

// Restores what a program changed.
struct Settings : policy::Guard {
  explicit Settings(const RandomProgram& p) : Guard(p.policy) { set_share_replicas(p.share); }
  ~Settings() { set_share_replicas(share_before); }
  bool share_before = share_replicas();
};

struct Run {
  Hosts results;
  std::string transfers;  // empty: as explained
};

// Launches the call as jit does, with a report.
Run launch_counted(const core::JitEntry& entry, const core::JitCall& call) {
  std::vector<LaunchLeaf> leaves;
  core::launch_leaves(entry, call, leaves);
  const auto program = core::program_for(entry, leaves, "jit");
  const Explanation explained = core::explain_call(entry, call);
  for (const FlatNode& n : entry.flat.nodes) {
    reached.insert(n.op);
    for (const auto& g : n.call().attrs->graphs)
      each_node(g->out, [](Node& inner) { reached.insert(inner.op); });
  }
  RunReport report;
  std::vector<ValueRef> out;
  launch(*program, leaves, out, nullptr, &report);
  Run r;
  const auto& said = explained.transfers();
  report.received.resize(
      std::max(report.received.size(), said.size()));  // a program without steps reports nothing
  for (std::size_t k = 0; k < report.received.size(); k++)
    if (k >= said.size() || report.received[k] != said[k].moved_bytes)
      r.transfers += "transfer " + std::to_string(k) + " moved " + std::to_string(report.received[k]) +
                     " bytes, explained were " +
                     (k < said.size() ? std::to_string(said[k].moved_bytes) : "none") + "; ";
  for (std::size_t k = 0; k < out.size(); k++) {
    const Array& o = entry.graph->out[k];
    r.results.push_back(host(leaf_array(type_of(o), out[k], {})));
  }
  return r;
}

Run run_placed(const RandomProgram& p) {
  const Settings settings(p);
  Arrays leaves = make_leaves(p, true);
  const auto f = jit([&](const Arrays& x) { return run_lines(p, x, true); });
  return p.donate ? detail::with_lowered(f, launch_counted, std::move(leaves))
                  : detail::with_lowered(f, launch_counted, leaves);
}

// Empty when the placed program has the same bits without generated code and with it.
std::string changed_by_codegen(const RandomProgram& p) {
  try {
    const reproducible mode(p.reproducible);
    const Hosts want = with_codegen(CodegenMode::off, [&] { return run_placed(p).results; }),
                got = with_codegen(CodegenMode::always, [&] { return run_placed(p).results; });
    for (std::size_t k = 0; k < want.size(); k++)
      if (std::string text = difference(got[k], want[k], 0); !text.empty())
        return "%" + std::to_string(p.outputs[k]) + ": " + text;
    return "";
  } catch (const std::exception& e) { return e.what(); }
}

constexpr double kTolerance = 2e-3;

// Empty when the placed program gives what one device gives.
std::string failure(const RandomProgram& p) {
  try {
    const reproducible mode(p.reproducible);
    const Hosts want = hosts(run_lines(p, make_leaves(p, false), false));
    const Run got = run_placed(p);
    const std::vector<bool> rounded = p.rounded();
    for (std::size_t k = 0; k < want.size(); k++) {
      const auto v = static_cast<std::size_t>(p.outputs[k]);
      const std::string text =
          difference(got.results[k], want[k], rounded[v] && !p.reproducible ? kTolerance : 0);
      if (!text.empty()) return "%" + std::to_string(v) + ": " + text;
    }
    return got.transfers;
  } catch (const std::exception& e) { return e.what(); }
}

// ---------------------------------------------------------------- shrinking
// Without the lines that no output needs.
RandomProgram without_dead_lines(const RandomProgram& p) {
  std::vector<bool> live(p.lines.size(), false);
  for (int v : p.outputs) live[static_cast<std::size_t>(v)] = true;
  for (std::size_t v = p.lines.size(); v-- > 0;)
    if (live[v])
      for (int o : p.lines[v].in) live[static_cast<std::size_t>(o)] = true;
  RandomProgram r = p;
  r.lines.clear();
  std::vector<int> place(p.lines.size(), -1);
  for (std::size_t v = 0; v < p.lines.size(); v++) {
    if (!live[v]) continue;
    place[v] = static_cast<int>(r.lines.size());
    r.lines.push_back(p.lines[v]);
    for (int& o : r.lines.back().in) o = place[static_cast<std::size_t>(o)];
  }
  for (int& v : r.outputs) v = place[static_cast<std::size_t>(v)];
  return r;
}

// Every program that is one step simpler.
std::vector<RandomProgram> simpler(const RandomProgram& p) {
  std::vector<RandomProgram> list;
  for (std::size_t k = 0; k < p.outputs.size() && p.outputs.size() > 1; k++) {
    list.push_back(p);
    list.back().outputs.erase(list.back().outputs.begin() + static_cast<std::ptrdiff_t>(k));
  }
  for (std::size_t v = p.lines.size(); v-- > 0;) {
    const Line& l = p.lines[v];
    if (l.apply) {  // becomes a leaf
      list.push_back(p);
      Rng rng(v);
      list.back().lines[v] = {"leaf",      {}, nullptr, l.shape, l.dtype, leaf_data(l.shape, l.dtype, rng),
                              std::nullopt};
    }
    if (l.sharding) {
      list.push_back(p);
      list.back().lines[v].sharding.reset();
    }
  }
  for (bool RandomProgram::*option : {&RandomProgram::donate, &RandomProgram::reproducible}) {
    if (!(p.*option)) continue;
    list.push_back(p);
    list.back().*option = false;
  }
  if (!p.share) {
    list.push_back(p);
    list.back().share = true;
  }
  for (RandomProgram& q : list) q = without_dead_lines(q);
  return list;
}

using Failure = std::string (*)(const RandomProgram&);

RandomProgram shrink(RandomProgram p, Failure failure) {
  for (bool again = true; again;) {
    again = false;
    for (RandomProgram& q : simpler(p)) {
      if (failure(q).empty()) continue;
      p = std::move(q);
      again = true;
      break;
    }
  }
  return p;
}

std::string explain_text(const RandomProgram& p) {
  try {
    const Settings settings(p);
    const reproducible mode(p.reproducible);
    return explain(jit([&](const Arrays& x) { return run_lines(p, x, true); }), make_leaves(p, true))
        .to_string();
  } catch (const std::exception& e) { return std::string("explain: ") + e.what(); }
}

// The first `count` programs, or the one of SHARDARRAY_TEST_SEED; what fails is shrunk. Returns the lines that occurred.
std::set<std::string> check_programs(std::uint64_t count, Failure failure) {
  const char* one = std::getenv("SHARDARRAY_TEST_SEED");
  const std::uint64_t first = one ? std::strtoull(one, nullptr, 10) : 1;
  std::set<std::string> names;
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + (one ? 1 : count) && failures < 5; seed++) {
    const RandomProgram p = Generator(seed).run(20);
    for (const Line& l : p.lines) names.insert(l.text);
    const std::string text = failure(p);
    if (text.empty()) continue;
    failures++;
    const RandomProgram small = shrink(p, failure);
    FAIL_CHECK("seed " << seed << ": " << text << "\nsmaller: " << failure(small) << "\n"
                       << small.to_string() << explain_text(small));
  }
  CHECK(failures == 0);
  return one ? std::set<std::string>() : names;
}

}  // namespace

TEST_CASE("random programs: any placement gives the values of one device") {
  const std::set<std::string> names = check_programs(full_scale() ? 10'000 : 300, failure);
  if (names.empty()) return;
  for (const Op* op : all_ops()) {
    // Collectives are gone once the map that binds their axis has been applied.
    const bool named = op->form == Form::collective && names.contains("vmap psum axis_index");
    CHECK_MESSAGE((named || reached.contains(op)), std::string(op->name) << " does not occur");
  }
}

TEST_CASE("random programs: generated code has the bits of the interpreter") {
  check_programs(full_scale() ? 200 : 30, changed_by_codegen);
}

// A program that is wrong on purpose (its constraint changes the values) must shrink to that line.
TEST_CASE("random programs: shrinking keeps what fails") {
  RandomProgram p = Generator(7).run(20);
  const int last = p.outputs.back();
  const Line& l = p.lines[static_cast<std::size_t>(last)];
  auto calls = std::make_shared<int>(0);
  const auto changes = [calls](std::span<const Array> x) {
    return ++*calls % 2 ? x[0] : stack({x[0], x[0]});
  };
  p.lines.push_back({"changes", {last}, changes, l.shape, l.dtype, {}, std::nullopt});
  p.outputs.push_back(static_cast<int>(p.lines.size()) - 1);
  REQUIRE_FALSE(failure(p).empty());
  const RandomProgram small = shrink(p, failure);
  CHECK(small.lines.size() == 2);
  CHECK(small.lines[1].text == "changes");
}

}  // namespace random_programs_test
