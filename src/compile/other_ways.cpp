#include "compile/other_ways.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/bytes_text.h"
#include "base/duration_text.h"
#include "base/sizes.h"
#include "compile/making.h"
#include "compile/node_price.h"
#include "compile/reshard.h"
#include "runtime/transfer_times.h"

namespace shardarray {

namespace {

/// A strategy as the actions it takes, and the bytes that the busiest device receives for them.
struct Way {
  std::int64_t bytes = 0;
  std::vector<std::string> done,
      code;  // `operand 1 as [{x}, {}]`, `reshard(operand 1, NamedSharding(mesh, P("x")))`
  std::vector<Transfer> transfers;
  bool in_parts = false;  // splits axes of the mesh
  bool asks_neighbours = false;
};
/// Consecutive transfers.
struct Along {
  std::int64_t bytes = 0;
  std::vector<Transfer> transfers;  // without those that move nothing
};

// The transfers of a value of type t to layout `to`, and what the busiest device receives in them.
Along along(const Layout* from, const Layout* to, const Type& t, Reshards& reshards) {
  Along all;
  const auto add = [&](Transfer x) {
    all.bytes = add_sizes(all.bytes, x.bytes);
    if (x.bytes > 0) all.transfers.push_back(std::move(x));
  };
  if (from->order() != to->order()) add(describe_transfer(t, from, to));
  else
    for (const Layout* next : reshards.of(from, to, t).layouts) {
      add(describe_transfer(t, from, next));
      from = next;
    }
  return all;
}

Way way_of(const NodeState& s, const Strategy& d, const Mesh* mesh, Reshards& reshards) {
  Way way;
  const auto move = [&](const Along& a) {
    way.bytes = add_sizes(way.bytes, a.bytes);
    way.transfers.insert(way.transfers.end(), a.transfers.begin(), a.transfers.end());
  };
  std::set<std::pair<int, const Layout*>> moved;  // flat values
  for (std::size_t k = 0; k < s.operands.size(); k++) {
    const TermState& t = s.operands[k];
    if (t.free) continue;
    const TermSource& source = t.source;
    const Layout* to = d.in[k];
    for (const Rule* rule : source.rules) to = layout_of_operand(*rule, 0, *to);
    if (to == source.layout || std::ranges::find(source.copies, to) != source.copies.end() ||
        !moved.emplace(s.node->in[k], to).second)
      continue;
    Along least = along(source.layout, to, source.type, reshards);
    for (const Layout* l : source.copies)
      if (to->unreduced().empty())
        if (Along a = along(l, to, source.type, reshards); a.bytes < least.bytes) least = std::move(a);
    if (least.bytes == 0) continue;
    const ShardingCode code = sharding_code(*to, mesh);
    move(least);
    way.done.push_back(fmt::format("operand {} as {}", k, spec_text(*to, mesh)));
    way.code.push_back(fmt::format("reshard(operand {}, {})", k, code.text));
    way.in_parts |= !code.in_parts.empty();
  }
  for (std::size_t k = 0; k < s.results.size(); k++) {
    const Layout* const made = d.out[k];
    if (made->unreduced().empty() || !s.pending.empty()) continue;
    const Layout* const wanted =
        s.results[k].weight == 1.0 ? s.results[k].layout : Layout::of(made->order(), made->dims());
    move(along(made, wanted, s.results[k].type, reshards));
    way.done.push_back("sums over " + axis_names(made->unreduced(), made->order(), mesh));
    way.code.push_back(way.done.back());
  }
  if (const std::int64_t bytes = neighbours_bytes(s, d); bytes > 0) {
    way.bytes = add_sizes(way.bytes, bytes);
    way.done.emplace_back("neighbours' elements");
    way.asks_neighbours = true;
  }
  return way;
}

/// The planner's next choices, whatever policy strict refuses; `most` of those that satisfy `wanted`.
template <class Wanted>
std::vector<Way> ways_but(NodeState& s, const Strategy& d, StrategySearch& search, const CompileInput& in,
                          std::size_t most, const Wanted& wanted) {
  constexpr int kMostTried = 8;
  for (TermState& t : s.operands) t.should_stay = false;
  std::vector<std::vector<const Layout*>> known{d.in};
  std::vector<Way> ways;
  for (int tried = 0; tried < kMostTried && ways.size() < most; tried++) {
    const std::optional<Strategy> other = search.next(s, known);
    if (!other) break;
    known.push_back(other->in);
    if (Way way = way_of(s, *other, in.mesh, search.reshards()); wanted(way)) ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace

std::string other_ways(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in) {
  constexpr std::size_t kMost = 3;
  std::string text;
  const auto wanted = [](const Way& way) { return !way.in_parts && !way.asks_neighbours; };
  for (const Way& w : ways_but(s, d, search, in, kMost, wanted)) {
    std::vector<std::string_view> kinds;  // each once
    double seconds = 0;
    for (const Transfer& t : w.transfers) {
      seconds += described_seconds(t, *in.order);
      if (std::ranges::find(kinds, name(t.kind)) == kinds.end()) kinds.emplace_back(name(t.kind));
    }
    text += fmt::format("\n  {}{}{}{}: {}", bytes_text(w.bytes),
                        seconds > 0 ? fmt::format(", {}", duration_text(seconds)) : "",
                        kinds.empty() ? "" : " by ", fmt::join(kinds, ", "),
                        w.code.empty() ? "operands as they are" : fmt::format("{}", fmt::join(w.code, ", ")));
  }
  return text;
}

RunnerUp runner_up(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in) {
  const auto text = [](const Way& w) {
    return fmt::format("{} by {}", bytes_text(w.bytes),
                       w.done.empty() ? "nothing" : fmt::format("{}", fmt::join(w.done, ", ")));
  };
  const Way taken = way_of(s, d, in.mesh, search.reshards());
  if (taken.bytes == 0) return {};
  const std::vector<Way> ways = ways_but(s, d, search, in, 1, [](const Way&) { return true; });
  return ways.empty() ? RunnerUp() : RunnerUp{text(taken), text(ways[0])};
}

}  // namespace shardarray
