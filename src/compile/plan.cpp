// Groups -> Steps with addresses.
#include <fmt/core.h>

#include <algorithm>

#include "base/at.h"
#include "base/print_time.h"
#include "base/sizes.h"
#include "compile/branches.h"
#include "compile/flops.h"
#include "compile/gather_loops.h"
#include "compile/gather_sums.h"
#include "compile/in_place.h"
#include "compile/iterate.h"
#include "compile/received.h"
#include "compile/share_sums.h"
#include "runtime/step_ranges.h"

namespace shardarray {

std::int64_t bytes_of(const Type& t) { return bytes_of(t.shape, t.dtype); }

static std::string label_of(const Group& group, const Partition& p, const FlatGraph& g) {
  std::string label;
  std::size_t named = 0;
  for (int s : group.steps) {
    const LocalStep& step = p.steps[static_cast<std::size_t>(s)];
    const char* what =
        step.copy ? "copy"
        : step.node < 0
            ? (step.transfer < 0 ? "slice" : name(p.transfers[static_cast<std::size_t>(step.transfer)].kind))
            : g.nodes[static_cast<std::size_t>(step.node)].op->name;
    if (named++ < 12) label += fmt::format("{}{}", label.empty() ? "" : ", ", what);
  }
  return named > 12 ? label + fmt::format(", ... ({} ops)", named) : label;
}

static Where where_of(const Group& group, const Partition& p, const FlatGraph& g) {
  for (auto it = group.steps.rbegin(); it != group.steps.rend(); ++it) {
    const LocalStep& s = p.steps[static_cast<std::size_t>(*it)];
    if (s.node >= 0) return g.nodes[static_cast<std::size_t>(s.node)].where;
    if (s.transfer >= 0) return p.transfers[static_cast<std::size_t>(s.transfer)].where;
  }
  return {};
}

bool flushes_denormals(const Group& group, const Partition& p, const FlatGraph& g) {
  if (group.loop) return group.flush_denormals;
  int s = group.steps[0];
  while (at(p.steps, s).node < 0) {
    if (at(p.steps, s).in.empty()) return false;
    s = at(p.values, at(p.steps, s).in[0]).step;
    if (s < 0) return false;
  }
  return at(g.nodes, at(p.steps, s).node).modes->flush_denormals;
}

static std::int64_t moved_bytes(const Exchange& e) {
  std::int64_t bytes = 0;
  for (const Exchange::Item& item : e.items)
    for (const Exchange::Piece& piece : item.pieces)
      for (const Exchange::Source& s : piece.sources)
        if (s.device != item.device && !lies_there(piece))
          bytes = add_sizes(bytes, bytes_of(piece.extents, e.dtype));
  return bytes;
}

static void add_moved(Transfer& t, std::int64_t bytes) { t.moved_bytes = add_sizes(t.moved_bytes, bytes); }

// Its copy is the value itself, on every device.
static bool lies_there(const LocalStep& copy, Addresses& at) {
  const Memory &from = at.memory(copy.in[0]), &to = at.memory(copy.out[0]);
  return std::equal(from.refs.begin(), from.refs.end(), to.refs.begin(), to.refs.end(),
                    [](const Ref& a, const Ref& b) { return a.base == b.base && a.offset == b.offset; });
}

static bool lies_there(const Exchange& e) {
  return std::ranges::all_of(e.items, [](const Exchange::Item& item) {
    return !item.fill && (item.dst_bytes == 0 || !item.pieces.empty()) &&
           std::ranges::all_of(item.pieces, [](const Exchange::Piece& p) { return lies_there(p); });
  });
}

// The transfers of every run of a called program are the caller's.
static void add_transfers(ProgramCall& call, const std::string& when, Program& program) {
  call.first_transfer = static_cast<int>(program.transfers.size());
  for (Transfer t : call.program->transfers) {
    t.bytes = mul_sizes(t.bytes, call.trip);
    for (std::int64_t& n : t.received) n = mul_sizes(n, call.trip);
    t.moved_bytes = mul_sizes(t.moved_bytes, call.trip);
    t.runs = mul_sizes(t.runs, call.trip);
    t.reason += fmt::format(" ({})", when);
    program.transfers.push_back(std::move(t));
  }
}

void plan(const Partition& p, Fusion f, const FlatGraph& g, const CompileInput& in, Compiled& out) {
  auto program = std::make_shared<Program>();
  program->order = in.order;
  program->transfers = transfers_in_order(p, *in.order);
  std::vector<GroupKernel> kernels;
  timed("  kernels", [&] {
    for (const Group& group : f.groups)
      kernels.push_back(group.loop ? make_kernel(group, p, g, *in.target) : GroupKernel{});
  });
  if (in.target->gathers_loops) bring_together(f, kernels, p, g, in);
  lay_in_place(f, p, g, kernels);
  Addresses addresses(p, f, g, in);
  timed("  addresses", [&] { assign_addresses(p, f, g, kernels, in, addresses, *program, out); });
  const bool fixed_order =
      std::any_of(g.nodes.begin(), g.nodes.end(), [](const FlatNode& n) { return n.modes->reproducible; });
  std::vector<double> flops_of_device(static_cast<std::size_t>(in.order->size()), 0);
  for (std::size_t k = 0; k < f.groups.size(); k++) {
    const Group& group = f.groups[k];
    Step step{Loop{}, label_of(group, p, g), where_of(group, p, g), flushes_denormals(group, p, g)};
    bool is_outlined = false;
    if (group.loop) {
      if (is_copy(group, p) && lies_there(at(p.steps, group.steps[0]), addresses)) continue;
      step.body = make_loop(group, kernels[k], g, p, addresses);
    } else {
      const LocalStep& s = p.steps[static_cast<std::size_t>(group.steps[0])];
      const Form form =
          s.node < 0 || s.transfer >= 0 ? Form::boxes : g.nodes[static_cast<std::size_t>(s.node)].op->form;
      if (form == Form::iterate) {
        const std::vector<Ref>& scratch = at(addresses.all(), addresses.scratch_of(k)).refs;
        ProgramCall call =
            make_program_call(s, at(g.nodes, s.node), p.iterations.at(s.node), scratch, addresses);
        add_transfers(call, fmt::format("{} times", call.trip), *program);
        step.body = std::move(call);
        step.flush_denormals = false;  // its lines have modes of their own
      } else if (form == Form::choose || form == Form::repeat) {
        const std::vector<Ref>& scratch = at(addresses.all(), addresses.scratch_of(k)).refs;
        const CalledBranches& called = p.branches.at(s.node);
        if (form == Form::choose) {
          ProgramChoice choice = make_program_choice(s, called, scratch, addresses);
          for (std::size_t b = 0; b < choice.branches.size(); b++)
            add_transfers(choice.branches[b], fmt::format("in branch {}", b), *program);
          step.body = std::move(choice);
        } else {
          ProgramLoop loop = make_program_loop(s, at(g.nodes, s.node), called, scratch, addresses);
          for (ProgramCall& call : loop.calls) add_transfers(call, "every time", *program);
          step.body = std::move(loop);
        }
        step.flush_denormals = false;
      } else if (form == Form::gemm) step.body = make_gemm(s, g, addresses);
      else if (form == Form::library) step.body = make_library_call(s, g, addresses);
      else if (in.is_explained && is_between_layouts(s)) {
        auto [exchange, moved] = outline_exchange(s, addresses);
        add_moved(at(program->transfers, s.transfer), moved);
        if (exchange.items.empty()) continue;
        step.body = std::move(exchange);
        is_outlined = true;
      } else {
        Exchange exchange = make_exchange(s, g, addresses);
        if (lies_there(exchange)) continue;
        step.body = std::move(exchange);
      }
    }
    add_flops(step, kernels[k], flops_of_device);
    Exchange shares;
    if (auto* const e = std::get_if<Exchange>(&step.body)) {
      e->fixed_order = fixed_order;
      shares = share_sums(*e, *in.order);
      if (e->transfer >= 0 && !is_outlined)
        add_moved(at(program->transfers, e->transfer), add_sizes(moved_bytes(*e), moved_bytes(shares)));
    }
    if (!program->steps.empty() && ((shares.items.empty() && take_sums(program->steps.back(), step)) ||
                                    (in.target->gathers_loops && take_items(program->steps.back(), step))))
      continue;
    program->steps.push_back(std::move(step));
    if (shares.items.empty()) continue;
    const Step& sums = program->steps.back();
    program->steps.push_back({std::move(shares), sums.label, sums.where, sums.flush_denormals});
  }
  out.flops = std::ranges::max(flops_of_device);
  for (const auto& [node, called] : p.iterations)
    out.flops += called.compiled->flops * static_cast<double>(called.iteration.length);
  for (const auto& [node, called] : p.branches) {
    const bool one_of = at(g.nodes, node).op->form == Form::choose;
    double flops = 0;
    for (const auto& c : called.programs) flops = one_of ? std::max(flops, c->flops) : flops + c->flops;
    out.flops += flops;
  }
  for (std::size_t v = 0; v < p.values.size(); v++) {
    const int s = p.values[v].step;
    const bool made = s >= 0 && p.steps[static_cast<std::size_t>(s)].node >= 0;
    const FlatNode* n =
        made ? &g.nodes[static_cast<std::size_t>(p.steps[static_cast<std::size_t>(s)].node)] : nullptr;
    std::string what = n ? n->op->name : s < 0 ? "input" : "transfer";
    if (n && (n->op->form == Form::iterate || n->op->form == Form::repeat)) {
      const std::vector<int>& results = at(p.steps, s).out;
      const auto k = std::find(results.begin(), results.end(), static_cast<int>(v)) - results.begin();
      if (n->op->form == Form::repeat && k == std::ssize(results) - 1) what += ", the condition's answer";
      else if (k >= std::ssize(n->out_types)) what += ", second buffer of a carry";
    }
    const auto note = made ? p.notes.find(p.steps[static_cast<std::size_t>(s)].node) : p.notes.end();
    out.values.push_back({p.values[v].type, p.values[v].layout, std::move(what),
                          n ? n->where : detail::RecordedLine{}, note != p.notes.end() ? note->second : ""});
  }
  out.program = std::move(program);
}

}  // namespace shardarray
