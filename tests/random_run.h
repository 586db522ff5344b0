// Runs random programs as they are placed, on one device, and by plain loops; the results must agree.
#pragma once
#include "execute/jit.h"
#include "execute/launch.h"
#include "explained_numbers.h"
#include "host_decides.h"
#include "random_cells.h"
#include "random_program.h"
#include "shardarray/explain.h"
#include "shardarray/policy.h"
#include "shardarray/reproducible.h"
#include "with_codegen.h"

namespace shardarray::testing {

/// The lines as a function of the leaves; constraints only where `placed`.
inline Arrays run_lines(const RandomProgram& p, std::span<const Array> leaves, bool placed) {
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
inline Arrays make_leaves(const RandomProgram& p, bool placed) {
  Arrays r;
  for (const Line& l : p.lines)
    if (!l.apply) {
      const Array a = array_of(l.leaf);
      r.push_back(placed && l.sharding ? device_put(a, *l.sharding) : a);
    }
  return r;
}

/// Restores the settings that a program changed.
struct ProgramSettings : policy::Guard {
  explicit ProgramSettings(const RandomProgram& p) : Guard(p.policy), mode(p.reproducible) {
    set_share_replicas(p.share);
  }
  ~ProgramSettings() { set_share_replicas(share_before); }
  bool share_before = share_replicas();
  reproducible mode;
};

struct RandomRun {
  Arrays results;
  std::string transfers;               ///< empty: as explained
  std::vector<const Layout*> layouts;  ///< of the results
};

/// The partition of a call, counted.
inline void count_cells(const core::JitEntry& entry, std::span<const LaunchLeaf> leaves, const Mesh& mesh,
                        Coverage& coverage) {
  std::vector<ValueRef> values;
  std::vector<bool> donated;
  for (const LaunchLeaf& l : leaves) {
    values.push_back(l.value);
    donated.push_back(l.give != Give::keep);
  }
  CompileInput in =
      compile_input(entry.flat, place_leaves(entry.flat, values, {}, entry.paths, *entry.modes, "test"),
                    donated, {}, entry.paths, values);
  if (in.order->devices() != mesh.devices()) return;
  in.graph = simplify_and_order(in.graph, in.order->size(), *in.target);
  coverage.count(in.graph, partition(in.graph, in), mesh);
}

/// Launches the call as jit does, with a report.
inline RandomRun launch_counted(const core::JitEntry& entry, const core::JitCall& call,
                                const std::optional<Mesh>& mesh, Coverage* coverage) {
  std::vector<LaunchLeaf> leaves;
  core::launch_leaves(entry, call, leaves);
  if (mesh && coverage) count_cells(entry, leaves, *mesh, *coverage);
  const auto program = core::placed_for(entry, leaves, "jit")->program;
  const Explanation explained = core::explain_call(entry, call);
  RunReport report;
  std::vector<ValueRef> out;
  launch(*program, leaves, out, nullptr, &report);
  RandomRun r;
  r.transfers = not_so(explained, program->compiled);
  r.layouts = program->compiled.output_layouts;
  const auto& said = explained.transfers();
  report.received.resize(
      std::max(report.received.size(), said.size()));  // a program without steps reports nothing
  // A branch may be left out, and a loop's body run often: then what was said moves as a whole, that often.
  const bool repeated = host_decides(*program->compiled.program);
  const auto as_said = [&](std::int64_t moved, std::int64_t once) {
    return moved == once || (repeated && once > 0 && moved % once == 0);
  };
  for (std::size_t k = 0; k < report.received.size(); k++)
    if (k >= said.size() || !as_said(report.received[k], said[k].moved_bytes))
      r.transfers += "transfer " + std::to_string(k) + " moved " + std::to_string(report.received[k]) +
                     " bytes, explained were " +
                     (k < said.size() ? std::to_string(said[k].moved_bytes) : "none") + "; ";
  for (std::size_t k = 0; k < out.size(); k++)
    r.results.push_back(leaf_array(type_of(entry.graph->out[k]), out[k], {}));
  return r;
}

inline RandomRun run_placed(const RandomProgram& p, Coverage* coverage = nullptr) {
  Arrays leaves = make_leaves(p, true);
  if (p.lazy) return {run_lines(p, leaves, true), "", {}};
  const auto f = jit([&](const Arrays& x) { return run_lines(p, x, true); });
  const auto launched = [&](const core::JitEntry& e, const core::JitCall& c) {
    return launch_counted(e, c, p.mesh, coverage);
  };
  RandomRun kept = shardarray::detail::with_lowered(Where::here(), f, launched, leaves);
  if (!p.donate) return kept;
  RandomRun given = shardarray::detail::with_lowered(Where::here(), f, launched, std::move(leaves));
  for (std::size_t k = 0; k < given.layouts.size(); k++)
    if (given.layouts[k] != kept.layouts[k])
      given.transfers += "result " + std::to_string(k) + " lies as " + given.layouts[k]->to_string() +
                         ", without donation as " + kept.layouts[k]->to_string() + "; ";
  return given;
}

/// Reading also runs what is lazy: in the modes of the program.
inline std::string result_difference(const RandomProgram& p, const Arrays& got,
                                     const std::vector<Plain>& want, const char* who) {
  for (std::size_t k = 0; k < got.size(); k++) {
    const std::string text = plain_difference(got[k], want[static_cast<std::size_t>(p.outputs[k])]);
    if (!text.empty()) return "%" + std::to_string(p.outputs[k]) + " " + who + ": " + text;
  }
  return "";
}

/// Empty if the placed program agrees with plain loops and with one device, in the same bits where they must be.
inline std::string failure_of(const RandomProgram& p, Coverage* coverage) {
  try {
    const ProgramSettings settings(p);
    const std::vector<Plain> want = plain_values(p);
    const Arrays one = run_lines(p, make_leaves(p, false), false);
    if (std::string text = result_difference(p, one, want, "on one device"); !text.empty()) return text;
    const RandomRun got = run_placed(p, coverage);
    if (std::string text = result_difference(p, got.results, want, "placed"); !text.empty()) return text;
    for (std::size_t k = 0; k < one.size(); k++) {
      if (p.lines[static_cast<std::size_t>(p.outputs[k])].sums && !p.reproducible) continue;
      if (std::string text = difference(host(got.results[k]), host(one[k]), 0); !text.empty())
        return "%" + std::to_string(p.outputs[k]) + " placed and on one device: " + text;
    }
    return got.transfers;
  } catch (const std::exception& e) { return e.what(); }
}

/// Empty if the placed program has the same bits with and without generated code.
inline std::string changed_by_codegen(const RandomProgram& p, Coverage*) {
  try {
    const ProgramSettings settings(p);
    const auto run = [&] { return hosts(run_placed(p).results); };
    const Hosts want = with_codegen(CodegenMode::off, run), got = with_codegen(CodegenMode::always, run);
    for (std::size_t k = 0; k < want.size(); k++)
      if (std::string text = difference(got[k], want[k], 0); !text.empty())
        return "%" + std::to_string(p.outputs[k]) + ": " + text;
    return "";
  } catch (const std::exception& e) { return e.what(); }
}

inline std::string explain_text(const RandomProgram& p) {
  try {
    const ProgramSettings settings(p);
    return explain(jit([&](const Arrays& x) { return run_lines(p, x, true); }), make_leaves(p, true))
        .to_string();
  } catch (const std::exception& e) { return std::string("explain: ") + e.what(); }
}

}  // namespace shardarray::testing
