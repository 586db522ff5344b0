#include "compile/in_place.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/at.h"
#include "compile/step_kind.h"
#include "graph/branches.h"
#include "graph/iteration.h"
#include "shardarray/error.h"

namespace shardarray {

std::size_t CarryBuffers::doubled(std::size_t count) const {
  return static_cast<std::size_t>(
      std::count(in_place.begin(), in_place.begin() + static_cast<std::ptrdiff_t>(count), false));
}

std::vector<InPlace> in_place_of(const LocalStep& s, const Partition& p, const FlatGraph& g) {
  if (s.copy) return {{0, 0}};
  const FlatNode* const n = node_of(s, g);
  if (n == nullptr || s.assembly) return {};
  if (n->op->trait == Trait::in_place) return {{0, 0}};
  std::vector<InPlace> r;
  const auto add = [&](std::size_t first_carry, const std::vector<bool>& carries) {
    for (std::size_t k = 0; k < carries.size(); k++)
      if (carries[k]) r.push_back({first_carry + k, k});
  };
  if (const auto called = p.iterations.find(s.node); called != p.iterations.end())
    add(called->second.iteration.constants, called->second.carries.in_place);
  else if (n->op->form == Form::repeat)
    add(Repetition::of(*n->attrs).first_carry(), p.branches.at(s.node).carries.in_place);
  else if (n->op->form == Form::choose) r = p.branches.at(s.node).over;
  return r;
}

std::vector<InPlace> in_place_of(const LocalStep& s, const Partition& p, const FlatGraph& g,
                                 const std::vector<Storage>& storage) {
  std::vector<InPlace> r = in_place_of(s, p, g);
  const auto memory = [&](int v) { return at(storage, v).memory; };
  std::erase_if(r, [&](const InPlace& x) {
    return std::count_if(s.in.begin(), s.in.end(),
                         [&](int v) { return memory(v) == memory(s.in[x.operand]); }) > 1;
  });
  return r;
}

namespace {

// Whether `group` waits for `other`. Also true once `patience`, the budget of all queries, is used up.
bool waits_for(int group, int other, const std::map<int, std::set<int>>& before, int& patience) {
  std::vector<int> open{group};
  std::set<int> seen;
  while (!open.empty()) {
    const int k = open.back();
    open.pop_back();
    if (k == other || --patience < 0) return true;
    if (const auto them = before.find(k); seen.insert(k).second && them != before.end())
      open.insert(open.end(), them->second.begin(), them->second.end());
  }
  return false;
}

}  // namespace

bool write_last(std::map<int, std::set<int>>& before, const std::vector<int>& order,
                const std::map<int, std::set<int>>& readers, const std::map<int, Group>& groups,
                const Partition& p, const FlatGraph& g, const std::vector<Storage>& storage) {
  std::map<int, int> writers;  // memory -> the last group that may overwrite it; only that one can
  std::map<int, std::size_t> place;
  for (std::size_t k = 0; k < order.size(); k++) {
    place[order[k]] = k;
    const Group& group = groups.at(order[k]);
    if (group.loop) continue;
    const LocalStep& s = at(p.steps, group.steps[0]);
    for (const InPlace& x : in_place_of(s, p, g, storage))
      writers[at(storage, s.in[x.operand]).memory] = order[k];
  }
  bool waits = false;
  int patience = 1 << 16;
  for (const auto& [memory, writer] : writers) {
    const auto all = readers.find(memory);
    if (all == readers.end()) continue;
    for (const int reader : all->second)
      if (reader != writer && place.at(reader) > place.at(writer) &&
          !waits_for(reader, writer, before, patience))
        waits |= before[writer].insert(reader).second;
  }
  return waits;
}

namespace {

// By memory: the last group that reads or writes it.
std::vector<int> last_uses(const Fusion& f, const Partition& p, const std::vector<GroupKernel>& kernels) {
  std::vector<int> last(p.values.size(), -1);
  for (std::size_t k = 0; k < f.groups.size(); k++) {
    const Group& x = f.groups[k];
    const auto use = [&](int v) { at(last, at(f.storage, v).memory) = static_cast<int>(k); };
    for (int v : x.roots) use(v);
    for (const KernelAccess& a : kernels[k].args) use(a.value);
    if (x.loop) continue;
    for (int s : x.steps)
      for (int v : at(p.steps, s).in) use(v);
  }
  for (int v : p.outputs) at(last, at(f.storage, v).memory) = std::numeric_limits<int>::max();
  return last;
}

}  // namespace

bool is_copy(const Group& x, const Partition& p) {
  return x.steps.size() == 1 && at(p.steps, x.steps[0]).copy;
}

void lay_in_place(Fusion& f, const Partition& p, const FlatGraph& g,
                  const std::vector<GroupKernel>& kernels) {
  std::vector<int> last = last_uses(f, p, kernels);
  std::vector<std::vector<int>> lying(p.values.size());  // by memory: the values in it
  for (int v = 0; v < std::ssize(p.values); v++)
    if (const int memory = at(f.storage, v).memory; memory >= 0) at(lying, memory).push_back(v);
  for (std::size_t k = 0; k < f.groups.size(); k++) {
    if (f.groups[k].loop && !is_copy(f.groups[k], p)) continue;
    const LocalStep& s = at(p.steps, f.groups[k].steps[0]);
    for (const InPlace& x : in_place_of(s, p, g, f.storage)) {
      const int v = s.in[x.operand], out = s.out[x.result], memory = at(f.storage, v).memory;
      const LocalValue &from = at(p.values, v), &to = at(p.values, out);
      if (at(p.values, memory).step < 0 || at(last, memory) != static_cast<int>(k) ||
          from.layout != to.layout || at(p.values, memory).windows) {
        if (!s.copy && node_of(s, g)->op->trait != Trait::in_place)  // its iterations write there
          throw InternalError("plan: a carry that is written over is read elsewhere. Please report this.");
        continue;
      }
      at(last, memory) = at(last, out);
      for (const int other : at(lying, out)) {
        at(f.storage, other).memory = memory;
        at(lying, memory).push_back(other);
      }
    }
  }
}

void copy_written_over(Partition& p, LocalValues& values, const FlatGraph& g) {
  LocalStep s = std::move(p.steps.back());
  p.steps.pop_back();
  for (const InPlace& x : in_place_of(s, p, g)) {
    int& v = s.in[x.operand];
    LocalStep copy{-1, -1, {v}, {}, true};
    v = values.add(at(p.values, v).type, at(p.values, v).layout, static_cast<int>(p.steps.size()));
    copy.out = {v};
    p.steps.push_back(std::move(copy));
  }
  for (int v : s.out) at(p.values, v).step = static_cast<int>(p.steps.size());
  p.steps.push_back(std::move(s));
}

void give_second_buffers(Partition& p, LocalValues& values, const CarryBuffers& carries) {
  LocalStep& s = p.steps.back();
  for (std::size_t k = 0; k < carries.in_place.size(); k++)
    if (!carries.in_place[k])
      s.out.push_back(values.add(at(p.values, s.out[k]).type, at(p.values, s.out[k]).layout,
                                 static_cast<int>(p.steps.size()) - 1));
}

static bool is_another_name(const Op& op) { return op.form == Form::view || op.form == Form::constraint; }
// The operand whose memory a result may take: of an array with a part overwritten, a loop's carry, or what some branch passes through.
static std::optional<std::size_t> operand_below(const Op& op, const Attrs* attrs, std::size_t result) {
  if (op.trait == Trait::in_place || is_another_name(op)) return 0;
  if (op.form == Form::iterate) {
    const Iteration it = Iteration::of(*attrs);
    return result < it.carries ? std::optional(it.constants + result) : std::nullopt;
  }
  if (op.form == Form::repeat) return Repetition::of(*attrs).first_carry() + result;
  if (op.form != Form::choose) return std::nullopt;
  for (const auto& branch : Choice::of(*attrs).branches)
    for (Array out = branch->out[result];;) {
      const auto in = std::ranges::find(branch->in, out.node(), &Array::node);
      if (in != branch->in.end()) return static_cast<std::size_t>(in - branch->in.begin()) + 1;
      const Node& n = *out.node();
      const auto below = operand_below(*n.op, &n.attrs(), out.index());
      if (!below) break;
      out = Array(n.in()[*below]);
    }
  return std::nullopt;
}

std::vector<bool> written_over(const FlatGraph& body, std::size_t first_carry, std::size_t carries) {
  std::vector<bool> r(carries, false);
  for (std::size_t k = 0; k < carries; k++) {
    int v = body.outputs[k];
    for (bool writes = false;;) {
      if (v == at(body.inputs, static_cast<int>(first_carry + k))) {
        r[k] = writes;
        break;
      }
      const int node = at(body.producer, v);
      if (node < 0) break;
      const FlatNode& n = at(body.nodes, node);
      const auto below = operand_below(*n.op, n.attrs.get(), static_cast<std::size_t>(v - n.first_out));
      if (!below) break;
      writes |= !is_another_name(*n.op);
      v = n.in[*below];
    }
  }
  return r;
}

}  // namespace shardarray
