// The passes, in order. Each is checked after it ran (SHARDARRAY_VERIFY builds), and printed if it changed something (SHARDARRAY_DEBUG=2).
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <variant>

#include "base/env.h"
#include "base/print_time.h"
#include "compile/branches.h"
#include "compile/gather_sums.h"

namespace shardarray {

namespace {

#ifdef SHARDARRAY_VERIFY
constexpr bool kVerify = true;
#else
constexpr bool kVerify = false;
#endif

bool prints_passes() {
  static const bool on = debug_is("2");
  return on;
}

void show(const char* name, const std::string& text) {
  if (prints_passes()) fmt::print(stderr, "shardarray: after {}\n{}", name, text);
}

std::string text_of(const Partition& p, const FlatGraph& g) {
  std::string text;
  for (const LocalStep& s : p.steps) {
    for (int v : s.out)
      text += fmt::format("  %{} {} {}", v, to_string(p.values[static_cast<std::size_t>(v)].type),
                          p.values[static_cast<std::size_t>(v)].layout->to_string());
    const char* what = s.copy           ? "copy"
                       : s.node >= 0    ? g.nodes[static_cast<std::size_t>(s.node)].op->name
                       : s.transfer < 0 ? "slice"
                                        : name(p.transfers[static_cast<std::size_t>(s.transfer)].kind);
    text += fmt::format(" = {}", what);
    for (int v : s.in) text += fmt::format(" %{}", v);
    if (const auto note = p.notes.find(s.node); note != p.notes.end()) text += "   " + note->second;
    text += "\n";
  }
  return text;
}

std::string text_of(const Fusion& f, const Partition& p, const FlatGraph& g) {
  std::string text;
  for (const Group& group : f.groups) {
    text += group.loop ? "  loop:" : "  step:";
    for (int s : group.steps) {
      const LocalStep& step = p.steps[static_cast<std::size_t>(s)];
      text += fmt::format(" {}", step.node >= 0      ? g.nodes[static_cast<std::size_t>(step.node)].op->name
                                 : step.transfer < 0 ? "slice"
                                                     : "transfer");
    }
    text += " ->";
    for (int v : group.roots) text += fmt::format(" %{}", v);
    text += "\n";
  }
  return text;
}

std::string text_of(const Program& program) {
  std::string text;
  for (const Step& s : program.steps) {
    constexpr const char* kinds[] = {
        "loop", "gemm", "library call", "exchange", "program call", "choice of programs", "loop of programs"};
    static_assert(std::size(kinds) == std::variant_size_v<decltype(Step::body)>);
    const std::size_t items = std::visit([](const auto& b) { return b.items.size(); }, s.body);
    text += fmt::format("  {} x{}: {}\n", kinds[s.body.index()], items, s.label);
  }
  for (std::size_t d = 0; d < program.scratch_bytes.size(); d++)
    text += fmt::format("  device {}: {} B scratch, {} B peak\n", d, program.scratch_bytes[d],
                        program.peak_bytes[d]);
  return text;
}

}  // namespace

CompileInput::CompileInput(const Target& t)
    : placed(std::make_shared<PlacedIterations>()), target(&t), cost(t) {}

FlatGraph simplify_and_order(const FlatGraph& graph, int devices, const Target& target) {
  const auto simplified = [&](const FlatGraph& from) {
    FlatGraph g = timed("simplify", [&] { return simplify(from, devices, target); });
    if (kVerify) verify(g, "simplify");
    return g;
  };
  FlatGraph g = simplified(graph);
  if (const std::optional<FlatGraph> h = timed("gather_shifts", [&] { return gather_shifts(g); })) {
    if (kVerify) verify(*h, "gather_shifts");
    g = simplified(*h);
  }
  if (std::none_of(g.nodes.begin(), g.nodes.end(), [](const FlatNode& n) { return n.modes->reproducible; }))
    return g;
  g = timed("fix_order", [&] { return fix_order(g); });
  if (kVerify) verify(g, "fix_order");
  return simplified(g);
}

// All passes after those that ignore placement.
static Compiled place(FlatGraph g, const CompileInput& in) {
  Compiled out;
  Partition p = partition(g, in);
  if (kVerify) verify(p, g, in);
  show("propagate, partition", prints_passes() ? text_of(p, g) : "");
  Fusion f = timed("fuse", [&] { return fuse(p, g, *in.target); });
  timed("gather_sums", [&] { gather_sums(p, f, g, in); });
  if (kVerify) verify(f, p);
  show("fuse, schedule", prints_passes() ? text_of(f, p, g) : "");
  timed("plan", [&] { plan(p, std::move(f), g, in, out); });
  if (kVerify && !in.is_explained) verify(*out.program);  // an explained program may lack items
  show("plan", prints_passes() ? text_of(*out.program) : "");
  return out;
}

static std::int64_t most_memory(const Compiled& c) {
  const auto& peaks = c.program->peak_bytes;
  return peaks.empty() ? 0 : static_cast<std::int64_t>(*std::max_element(peaks.begin(), peaks.end()));
}

// The memory of a placement is known only after planning: fusion stores much less than single ops would, and much else is alive at the same
// time. So peaks count only if a program that was planned without them does not fit; then ops may need as much as there is, or half or a
// quarter of it, until all fits. The plan that needs least is taken.
static Compiled place_within_memory(FlatGraph g, CompileInput in) {
  const CostModel with_peaks = in.cost;
  const std::int64_t memory = with_peaks.device_memory();
  const auto count = [&](const CostModel& cost) {
    in.cost = cost;
    in.placed = std::make_shared<PlacedIterations>();  // its entries depend on costs
  };
  count(with_peaks.without_peaks());
  Compiled best = place(g, in);
  for (const std::int64_t part : {memory, memory / 2, memory / 4}) {
    if (most_memory(best) <= memory || part == 0) break;
    count(with_peaks.within(part));
    try {
      Compiled smaller = place(g, in);
      if (most_memory(smaller) < most_memory(best)) best = std::move(smaller);
    } catch (const ShardingError&) {  // policy::strict refuses its transfers
      break;
    }
  }
  return best;
}

Compiled compile(CompileInput in) {
  const std::string collected = prints_passes() ? in.graph.to_string() : "";
  show("collect", collected);
  FlatGraph g = simplify_and_order(in.graph, in.order->size(), *in.target);
  if (prints_passes() && g.to_string() != collected) show("simplify, fix_order", g.to_string());
  return in.cost.has_peaks() ? place_within_memory(std::move(g), std::move(in)) : place(std::move(g), in);
}

}  // namespace shardarray
