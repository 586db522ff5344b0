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

// An op, a transfer's kind, or "slice" for a part of what is already there.
static const char* name_of(const LocalStep& s, const Partition& p, const FlatGraph& g) {
  if (s.copy) return "copy";
  if (s.node >= 0) return at(g.nodes, s.node).op->name;
  return s.transfer < 0 ? "slice" : name(at(p.transfers, s.transfer).kind);
}

static std::string label_of(const Group& group, const Partition& p, const FlatGraph& g) {
  std::string label;
  std::size_t named = 0;
  for (int s : group.steps) {
    const LocalStep& step = at(p.steps, s);
    if (named++ < 12) label += fmt::format("{}{}", label.empty() ? "" : ", ", name_of(step, p, g));
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

// Whether the copy is already the value itself, on every device.
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

// Transfers of called programs are the caller's, as often as they run.
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

namespace {

/// Makes the steps of a program, in order.
class StepMaker {
 public:
  StepMaker(const Partition& p, const FlatGraph& g, const CompileInput& in, Addresses& addresses,
            Program& program)
      : p_(p),
        g_(g),
        in_(in),
        addresses_(addresses),
        program_(program),
        fixed_order_(std::ranges::any_of(g.nodes, [](const FlatNode& n) { return n.modes->reproducible; })),
        flops_of_device_(static_cast<std::size_t>(in.order->size()), 0) {}

  void add(const Group& group, std::size_t number, const GroupKernel& kernel) {
    Step step{Loop{}, label_of(group, p_, g_), where_of(group, p_, g_), flushes_denormals(group, p_, g_)};
    bool is_outlined = false;
    if (group.loop) {
      if (is_copy(group, p_) && lies_there(at(p_.steps, group.steps[0]), addresses_)) return;
      step.body = make_loop(group, kernel, g_, p_, addresses_);
    } else {
      auto [body, outlined] = body_of(at(p_.steps, group.steps[0]), number);
      if (!body) return;
      step.body = std::move(*body);
      is_outlined = outlined;
      if (calls_programs(step.body)) step.flush_denormals = false;  // their lines have modes of their own
    }
    add_flops(step, kernel, flops_of_device_);
    Exchange shares;
    if (auto* const e = std::get_if<Exchange>(&step.body)) {
      e->fixed_order = fixed_order_;
      shares = share_sums(*e, *in_.order);
      if (e->transfer >= 0 && !is_outlined)
        add_moved(at(program_.transfers, e->transfer), add_sizes(moved_bytes(*e), moved_bytes(shares)));
    }
    if (!program_.steps.empty() && ((shares.items.empty() && take_sums(program_.steps.back(), step)) ||
                                    (in_.target->gathers_loops && take_items(program_.steps.back(), step))))
      return;
    program_.steps.push_back(std::move(step));
    if (shares.items.empty()) return;
    const Step& sums = program_.steps.back();
    program_.steps.push_back({std::move(shares), sums.label, sums.where, sums.flush_denormals});
  }

  // Of the busiest device: iterations as often as they run, repetitions once, choices by their longest branch.
  double flops() const {
    double all = std::ranges::max(flops_of_device_);
    for (const auto& [node, called] : p_.iterations)
      all += called.compiled->flops * static_cast<double>(called.iteration.length);
    for (const auto& [node, called] : p_.branches) {
      const bool one_of = at(g_.nodes, node).op->form == Form::choose;
      double flops = 0;
      for (const auto& c : called.programs) flops = one_of ? std::max(flops, c->flops) : flops + c->flops;
      all += flops;
    }
    return all;
  }

 private:
  struct Made {
    std::optional<decltype(Step::body)> body;  // none: all data is in place
    bool is_outlined = false;                  // without pieces; what they would move is counted
  };
  // Of a step that is no loop; `number`: of its group.
  Made body_of(const LocalStep& s, std::size_t number) {
    const Form form = s.node < 0 || s.transfer >= 0 ? Form::boxes : at(g_.nodes, s.node).op->form;
    const auto scratch = [&]() -> const std::vector<Ref>& {
      return at(addresses_.all(), addresses_.scratch_of(number)).refs;
    };
    if (form == Form::iterate) {
      ProgramCall call =
          make_program_call(s, at(g_.nodes, s.node), p_.iterations.at(s.node), scratch(), addresses_);
      add_transfers(call, fmt::format("{} times", call.trip), program_);
      return {std::move(call)};
    }
    if (form == Form::choose) {
      ProgramChoice choice = make_program_choice(s, p_.branches.at(s.node), scratch(), addresses_);
      for (std::size_t b = 0; b < choice.branches.size(); b++)
        add_transfers(choice.branches[b], fmt::format("in branch {}", b), program_);
      return {std::move(choice)};
    }
    if (form == Form::repeat) {
      ProgramLoop loop =
          make_program_loop(s, at(g_.nodes, s.node), p_.branches.at(s.node), scratch(), addresses_);
      for (ProgramCall& call : loop.calls) add_transfers(call, "every time", program_);
      return {std::move(loop)};
    }
    if (form == Form::gemm) return {make_gemm(s, g_, addresses_)};
    if (form == Form::library) return {make_library_call(s, g_, addresses_)};
    if (in_.is_explained && is_between_layouts(s)) {
      auto [exchange, moved] = outline_exchange(s, addresses_);
      add_moved(at(program_.transfers, s.transfer), moved);
      if (exchange.items.empty()) return {};
      return {std::move(exchange), true};
    }
    Exchange exchange = make_exchange(s, g_, addresses_);
    if (lies_there(exchange)) return {};
    return {std::move(exchange)};
  }
  static bool calls_programs(const decltype(Step::body)& body) {
    return std::holds_alternative<ProgramCall>(body) || std::holds_alternative<ProgramChoice>(body) ||
           std::holds_alternative<ProgramLoop>(body);
  }

  const Partition& p_;
  const FlatGraph& g_;
  const CompileInput& in_;
  Addresses& addresses_;
  Program& program_;
  const bool fixed_order_;
  std::vector<double> flops_of_device_;
};

}  // namespace

static PlacedValue placed_value(int v, const Partition& p, const FlatGraph& g, bool tells_operands) {
  const LocalValue& value = at(p.values, v);
  PlacedValue out{value.type, value.layout, "input", {}, "", {}};
  if (value.step < 0) return out;
  const LocalStep& s = at(p.steps, value.step);
  out.op = name_of(s, p, g);
  if (tells_operands) out.in = s.in;
  if (s.node < 0) return out;
  const FlatNode& n = at(g.nodes, s.node);
  out.where = n.where;
  if (const auto note = p.notes.find(s.node); note != p.notes.end()) out.note = note->second;
  if (n.op->form == Form::iterate || n.op->form == Form::repeat) {
    const auto k = std::ranges::find(s.out, v) - s.out.begin();
    if (n.op->form == Form::repeat && k == std::ssize(s.out) - 1) out.op += ", the condition's answer";
    else if (k >= std::ssize(n.out_types)) out.op += ", second buffer of a carry";
  }
  return out;
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
  StepMaker steps(p, g, in, addresses, *program);
  for (std::size_t k = 0; k < f.groups.size(); k++) steps.add(f.groups[k], k, kernels[k]);
  out.flops = steps.flops();
  out.values.reserve(p.values.size());
  for (int v = 0; v < std::ssize(p.values); v++)
    out.values.push_back(placed_value(v, p, g, in.tells_runner_ups));
  out.program = std::move(program);
}

}  // namespace shardarray
