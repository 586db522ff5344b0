#include "compile/branches.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "graph/branches.h"

namespace shardarray {
namespace {

using Layouts = std::vector<const Layout*>;
using Binding = ProgramCall::Binding;

Layouts given_layouts(const FlatNode& n, std::span<const Layout* const> given, const CompileInput& in) {
  Layouts r;
  for (std::size_t k = 0; k < given.size(); k++)
    r.push_back(given[k] ? given[k]
                         : Layout::replicated(in.order, static_cast<int>(n.in_types[k].shape.size())));
  return r;
}

FlatGraph simplified(const Graph& g, const CompileInput& in) {
  return simplify_and_order(flatten(g), in.order->size(), *in.target);
}

std::shared_ptr<const Compiled> compiled(const FlatGraph& g, const Layouts& layouts, const Layouts& outputs,
                                         const CompileInput& in) {
  return std::make_shared<const Compiled>(compile(input_of_called(g, layouts, outputs, in)));
}

// Whether the result is the operand under another name.
bool renames(const FlatNode& n) {
  return n.op->form == Form::view || n.op->form == Form::constraint || n.op->trait == Trait::asked;
}

// Who needs the memory that a result of a choice may take.
enum class Owner : std::uint8_t { others, program, donor };

// Of a value, or what it is a view of: others read it; nobody else does; nobody else does, and it is donated.
Owner owner_of(int v, const FlatGraph& g, const Uses& uses, const CompileInput& in) {
  for (;;) {
    if (!uses.has_one(v)) return Owner::others;
    const FlatNode& n = at(g.nodes, at(g.producer, v));
    if (n.op->form == Form::leaf) {
      const auto input = static_cast<std::size_t>(std::ranges::find(g.inputs, v) - g.inputs.begin());
      return in.donated[input] ? Owner::donor : Owner::others;
    }
    if (!renames(n)) return Owner::program;
    v = n.in[0];
  }
}

// Whether v, or a view of it, is a result of the program: such results may take donated memory.
bool leaves(int v, const FlatGraph& g, const Uses& uses) {
  return at(uses.is_output, v) || std::ranges::any_of(at(uses.nodes, v), [&](int reader) {
           const FlatNode& n = at(g.nodes, reader);
           return renames(n) && n.in[0] == v && leaves(n.first_out, g, uses);
         });
}

// By result and operand (after the branch number) of a choice: whether the result may take the operand's memory.
std::vector<bool> may_take(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                           const Uses& uses, const CompileInput& in) {
  std::vector<Owner> owners;
  for (std::size_t k = 1; k < n.in.size(); k++)
    owners.push_back(given[k] && std::ranges::count(n.in, n.in[k]) == 1 ? owner_of(n.in[k], g, uses, in)
                                                                        : Owner::others);
  std::vector<bool> r;
  for (std::size_t k = 0; k < n.out_types.size(); k++)
    for (std::size_t i = 0; i < owners.size(); i++) {
      const Type &from = n.in_types[i + 1], &to = n.out_types[k];
      r.push_back(from.shape == to.shape && from.dtype == to.dtype && owners[i] != Owner::others &&
                  (owners[i] == Owner::program || leaves(n.first_out + static_cast<int>(k), g, uses)));
    }
  return r;
}

// By result: the operand that it equals in some branch, else the next one that no result takes; -1: none that it may take.
std::vector<int> operands_to_take(const std::vector<FlatGraph>& branches, const Layouts& results,
                                  const Layouts& operands, const std::vector<bool>& may) {
  std::vector<int> r(results.size(), -1);
  std::vector<bool> taken(operands.size(), false);
  const auto take = [&](std::size_t result, const auto& is_it) {
    for (std::size_t i = 0; i < operands.size() && r[result] < 0; i++) {
      if (taken[i] || !may[result * operands.size() + i] || operands[i] != results[result] || !is_it(i))
        continue;
      taken[i] = true;
      r[result] = static_cast<int>(i);
    }
  };
  for (std::size_t k = 0; k < results.size(); k++)
    take(k, [&](std::size_t i) {
      return std::ranges::any_of(branches, [&](const auto& g) { return g.outputs[k] == g.inputs[i]; });
    });
  for (std::size_t k = 0; k < results.size(); k++) take(k, [](std::size_t) { return true; });
  return r;
}

// All branches must overwrite the same operands. If a branch cannot overwrite one, the others are compiled again without it; if they do not
// agree soon, none is overwritten.
void compile_branches(const std::vector<FlatGraph>& branches, std::vector<int> over, PlacedBranches& placed,
                      const CompileInput& in) {
  constexpr int tries = 2;
  const Layouts operands(placed.in.begin() + 1, placed.in.end());
  const auto compiled_over = [&](const FlatGraph& g) {
    CompileInput one = input_of_called(g, operands, placed.out, in);
    one.written_over.assign(over.size(), -1);
    for (std::size_t k = 0; k < over.size(); k++)
      if (over[k] >= 0) write_over(one, k, static_cast<std::size_t>(over[k]));
    return std::make_shared<const Compiled>(compile(std::move(one)));
  };
  const auto aliases = [](const Compiled& c) {
    std::vector<int> r;
    for (const Port& p : c.program->outputs) r.push_back(p.alias);
    return r;
  };
  auto& programs = placed.called.programs;
  programs.resize(branches.size());
  for (int turn = 0;; turn++) {
    std::vector<int> agreed = over;
    for (std::size_t b = 0; b < branches.size(); b++) {
      if (programs[b] == nullptr || aliases(*programs[b]) != over) programs[b] = compiled_over(branches[b]);
      const std::vector<int> by_this = aliases(*programs[b]);
      for (std::size_t k = 0; k < over.size(); k++)
        if (by_this[k] != over[k]) agreed[k] = -1;
    }
    if (agreed == over) break;
    over = turn < tries ? std::move(agreed) : std::vector<int>(over.size(), -1);
  }
  for (std::size_t k = 0; k < over.size(); k++)
    if (over[k] >= 0) placed.called.over.push_back({static_cast<std::size_t>(over[k]) + 1, k});
}

PlacedBranches placed_choice(const FlatNode& n, std::span<const Layout* const> given, const Layouts& asked,
                             const std::vector<bool>& may, const CompileInput& in) {
  const Choice c = Choice::of(*n.attrs);
  PlacedBranches r;
  r.in = given_layouts(n, given, in);
  r.in[0] = Layout::replicated(in.order, 0);
  const Layouts operands(r.in.begin() + 1, r.in.end());
  std::vector<FlatGraph> graphs;
  for (const auto& branch : c.branches) {
    graphs.push_back(simplified(*branch, in));
    CompileInput one = input_of_called(graphs.back(), operands, {}, in);
    const Partition open = partition(one.graph, one);
    for (std::size_t k = 0; k < n.out_types.size(); k++) {
      const Layout* const left = asked[k] ? asked[k] : whole_sums(at(open.values, open.outputs[k]).layout);
      if (k == r.out.size()) r.out.push_back(left);
      else if (all_tiles(*left) > all_tiles(*r.out[k])) r.out[k] = left;
    }
  }
  compile_branches(graphs, operands_to_take(graphs, r.out, operands, may), r, in);
  return r;
}

// The number of iterations is known only afterwards; placement assumes this many.
constexpr std::int64_t kRuns = 8;

// Carries get the layouts of a scan over the body.
PlacedBranches placed_repetition(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                                 const CompileInput& in) {
  const Repetition repetition = Repetition::of(*n.attrs);
  const auto asked = static_cast<std::ptrdiff_t>(repetition.asked);
  Iteration it{repetition.body, repetition.constants, repetition.carries(), kRuns, false};
  FlatNode body = n;
  body.attrs = std::make_shared<const Attrs>(it.attrs());
  body.in.erase(body.in.begin(), body.in.begin() + asked);
  body.in_types.erase(body.in_types.begin(), body.in_types.begin() + asked);
  PlacedBranches r;
  r.in = given_layouts(n, given, in);
  for (const Layout*& l : r.in) l = whole_sums(l);  // once, not in every iteration
  Layouts of_body(given.begin() + asked, given.end());
  const std::vector<bool> needed = needed_inputs(*repetition.condition);
  for (std::size_t k = 0; k < it.carries; k++)
    if (needed[repetition.asked + k]) of_body[it.constants + k] = r.in[repetition.first_carry() + k];
  const PlacedIteration placed = place_iteration(body, g, of_body, in);
  std::copy(placed.in.begin(), placed.in.end(), r.in.begin() + asked);
  r.out = placed.out;
  Layouts of_condition(r.in.begin(), r.in.begin() + asked);
  of_condition.insert(of_condition.end(), placed.in.begin() + std::ssize(placed.in) - std::ssize(r.out),
                      placed.in.end());
  r.called.programs = {
      compiled(simplified(*repetition.condition, in), of_condition, {Layout::replicated(in.order, 0)}, in),
      placed.called.compiled};
  r.called.runs = kRuns;
  r.called.carries = placed.called.carries;
  return r;
}

// The call of a program; `input` and `output` (k, device) bind its ports.
template <class Input, class Output>
ProgramCall make_call(const Compiled& compiled, std::span<const Ref> scratch, const Input& input,
                      const Output& output) {
  ProgramCall call;
  call.program = compiled.program;
  ProgramCall::Item item;
  item.bases.resize(call.program->base_count);
  for (std::size_t d = 0; d < scratch.size(); d++) item.bases[d] = {scratch[d], scratch[d], scratch[d]};
  const auto bind = [&](const std::vector<Port>& ports, const auto& binding) {
    for (std::size_t k = 0; k < ports.size(); k++)
      for (std::size_t i = 0; i < ports[k].bases.size(); i++)
        item.bases[ports[k].bases[i]] = binding(k, ports[k].devices[i]);
  };
  bind(call.program->inputs, input);
  bind(call.program->outputs, output);
  call.items.push_back(std::move(item));
  return call;
}

Binding fixed(const Ref& r) { return {r, r, r}; }

// Of a replicated value.
std::vector<Ref> on_every_device(int value, const CalledBranches& called, Addresses& at) {
  const int devices = called.programs[0]->program->order->size();
  std::vector<Ref> refs;
  refs.reserve(static_cast<std::size_t>(devices));
  for (int d = 0; d < devices; d++) refs.push_back(at.ref(value, d));
  return refs;
}

}  // namespace

std::string CalledBranches::note() const {
  std::string text;
  for (const auto& called : programs)
    text += fmt::format("{}{}", text.empty() ? "programs of " : " and ", called->program->steps.size());
  return text + " steps";
}

PlacedBranches place_branches(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                              const Layouts& asked, const Uses& uses, const CompileInput& in) {
  const bool chooses = n.op->form == Form::choose;
  const Repetition r0 = chooses ? Repetition{} : Repetition::of(*n.attrs);
  PlacedIterations::Key key(n, g, given, r0.first_carry(), chooses ? 0 : r0.carries());
  key.asked = asked;
  if (chooses) key.may_take = may_take(n, g, given, uses, in);
  if (const auto known = in.placed->branches.find(key); known != in.placed->branches.end())
    return known->second;
  PlacedBranches r =
      chooses ? placed_choice(n, given, asked, key.may_take, in) : placed_repetition(n, g, given, in);
  return in.placed->branches[key] = std::move(r);
}

ProgramChoice make_program_choice(const LocalStep& s, const CalledBranches& called,
                                  std::span<const Ref> scratch, Addresses& at) {
  ProgramChoice choice;
  for (const auto& branch : called.programs)
    choice.branches.push_back(make_call(
        *branch, scratch, [&](std::size_t k, int device) { return fixed(at.ref(s.in[k + 1], device)); },
        [&](std::size_t k, int device) { return fixed(at.ref(s.out[k], device)); }));
  const std::vector<Ref> indices = on_every_device(s.in[0], called, at);
  choice.items.push_back({indices[0], indices});
  return choice;
}

ProgramLoop make_program_loop(const LocalStep& s, const FlatNode& n, const CalledBranches& called,
                              std::span<const Ref> scratch, Addresses& at) {
  const Repetition r = Repetition::of(*n.attrs);
  const std::size_t carries = r.carries();
  const int answer = s.out.back();
  const std::vector<bool>& in_place = called.carries.in_place;
  // Carry k after an even iteration (the first is 0), after an odd one, before the first.
  const auto even = [&](std::size_t k, int device) { return at.ref(s.out[k], device); };
  const auto odd = [&](std::size_t k, int device) {
    return in_place[k] ? even(k, device) : at.ref(s.out[carries + called.carries.doubled(k)], device);
  };
  const auto first = [&](std::size_t k, int device) { return at.ref(s.in[r.first_carry() + k], device); };
  // An iteration reads what the previous one has written.
  const auto read = [&](std::size_t k, int device) {
    return Binding{first(k, device), odd(k, device), even(k, device)};
  };
  ProgramLoop loop;
  loop.calls.push_back(make_call(
      *called.programs[0], scratch,
      [&](std::size_t k, int device) {
        return k < r.asked ? fixed(at.ref(s.in[k], device)) : read(k - r.asked, device);
      },
      [&](std::size_t, int device) { return fixed(at.ref(answer, device)); }));
  loop.calls.push_back(make_call(
      *called.programs[1], scratch,
      [&](std::size_t k, int device) {
        return k < r.constants ? fixed(at.ref(s.in[r.asked + k], device)) : read(k - r.constants, device);
      },
      [&](std::size_t k, int device) {
        return Binding{even(k, device), even(k, device), odd(k, device)};
      }));
  ProgramLoop::Item item;
  item.answers = on_every_device(answer, called, at);
  item.answer = item.answers[0];
  const std::vector<Port>& results = loop.body().program->outputs;
  for (std::size_t k = 0; k < results.size(); k++) {
    if (in_place[k]) continue;
    for (std::size_t i = 0; i < results[k].devices.size(); i++) {
      const int device = results[k].devices[i];
      item.carries.push_back(
          {device, first(k, device), even(k, device), odd(k, device), results[k].bytes[i]});
    }
  }
  loop.items.push_back(std::move(item));
  return loop;
}

}  // namespace shardarray
