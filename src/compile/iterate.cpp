#include "compile/iterate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/in_place.h"
#include "compile/linearities.h"
#include "compile/reshards.h"
#include "compile/shared_copies.h"
#include "compile/strict.h"
#include "graph/iteration.h"
#include "layout/tiles.h"
#include "runtime/half_floats.h"

namespace shardarray {

const Layout* whole_sums(const Layout* l) {
  return l->unreduced().empty() ? l : Layout::of(l->order(), l->dims());
}
std::int64_t all_tiles(const Layout& l) {
  std::int64_t n = 1;
  for (int d = 0; d < l.rank(); d++) n *= l.tiles(d);
  return n;
}

CompileInput input_of_called(FlatGraph graph, const std::vector<const Layout*>& layouts,
                             std::vector<const Layout*> outputs, const CompileInput& in) {
  CompileInput r(*in.target);
  r.graph = std::move(graph);
  r.order = in.order;
  r.inputs = layouts;
  r.outputs = std::move(outputs);
  r.donated.assign(layouts.size(), false);
  r.share_replicas = in.share_replicas;
  r.is_run = true;
  r.is_explained = in.is_explained;
  r.placed = in.placed;
  r.cost = in.cost;
  r.mesh = in.mesh;
  return r;
}

void write_over(CompileInput& called, std::size_t result, std::size_t input) {
  called.donated[input] = true;
  called.written_over[result] = static_cast<int>(input);
}

namespace {

// Of the elements of a sequence that lies so.
const Layout* element_layout(const Layout& sequence) {
  return Layout::of(sequence.order(), {sequence.dims().begin() + 1, sequence.dims().end()});
}
const Layout* sequence_layout(const Layout& element) {
  std::vector<AxisList> dims = element.dims();
  dims.insert(dims.begin(), AxisList{});
  return Layout::of(element.order(), std::move(dims));
}

// One run, as it is placed.
class BodyRun {
 public:
  BodyRun(const Iteration& it, const CompileInput& in)
      : it_(it), in_(in), body_(simplify_and_order(flatten(*it.body), in.order->size(), *in.target)) {}
  /// `closed`: carries shall be where they were; those that are written over may lie on what they were.
  CompileInput input(const std::vector<const Layout*>& layouts, bool closed) const {
    std::vector<const Layout*> outputs;
    const auto carries = layouts.begin() + static_cast<std::ptrdiff_t>(it_.constants);
    if (closed) outputs.assign(carries, carries + static_cast<std::ptrdiff_t>(it_.carries));
    CompileInput r = input_of_called(body_, layouts, std::move(outputs), in_);
    if (!closed) return r;
    const std::vector<bool> over = written_over(body_, it_.constants, it_.carries);
    r.written_over.assign(body_.outputs.size(), -1);
    for (std::size_t k = 0; k < it_.carries; k++)
      if (over[k]) write_over(r, k, it_.constants + k);
    return r;
  }
  const Partition& partitioned(const std::vector<const Layout*>& layouts, bool closed,
                               bool is_draft = false) const {
    const std::tuple key(layouts, closed, is_draft);
    if (const auto known = partitions_.find(key); known != partitions_.end()) return known->second;
    CompileInput one = input(layouts, closed);
    one.is_draft = is_draft;
    return partitions_.try_emplace(key, partition(one.graph, one)).first->second;
  }
  // Whether a run adds to carry k, or to a multiple of it.
  bool adds_to(std::size_t k) const {
    const int carry = body_.inputs[it_.constants + k];
    std::vector<int> open{body_.outputs[k]};
    std::vector<bool> seen(body_.types.size());
    while (!open.empty()) {
      const int v = open.back();
      open.pop_back();
      if (v == carry) return true;
      if (at(seen, v)) continue;
      at(seen, v) = true;
      const FlatNode& n = at(body_.nodes, at(body_.producer, v));
      if (n.op->form == Form::leaf) continue;
      const std::vector<Linear> linear = linearities(n, body_, false);
      const auto is_number = [&](int u) { return !std::isnan(literal(u, body_)); };
      const bool scales = std::ranges::count_if(n.in, is_number) + 1 == std::ssize(n.in);
      for (std::size_t i = 0; i < n.in.size(); i++)
        if (linear[i] == Linear::joint || (linear[i] == Linear::each && scales)) open.push_back(n.in[i]);
    }
    return false;
  }
  // Else it runs as the program says.
  bool may_choose() const {
    const auto is_collective = [](const FlatNode& n) { return n.op->trait == Trait::asked; };
    return is_auto(body_) && std::ranges::none_of(body_.nodes, is_collective);
  }

 private:
  const Iteration& it_;
  const CompileInput& in_;
  FlatGraph body_;
  mutable std::map<std::tuple<std::vector<const Layout*>, bool, bool>, Partition> partitions_;
};

const Layout* result_layout(const Partition& p, std::size_t k) {
  return p.values[static_cast<std::size_t>(p.outputs[k])].layout;
}

std::int64_t transferred_bytes(const Partition& p) {
  std::int64_t bytes = 0;
  for (const Transfer& t : p.transfers) bytes = add_sizes(bytes, t.bytes);
  return bytes;
}

// Carries are cut as finely as runs leave them. One run then, which may leave them elsewhere.
const Partition& cut_carries(const BodyRun& run, const Iteration& it, std::vector<const Layout*>& inputs,
                             bool is_draft) {
  for (;;) {
    const Partition& open = run.partitioned(inputs, false, is_draft);
    bool grew = false;
    for (std::size_t k = 0; k < it.carries; k++) {
      const Layout*& carry = inputs[it.constants + k];
      if (all_tiles(*result_layout(open, k)) <= all_tiles(*carry)) continue;
      carry = result_layout(open, k);
      grew = true;
    }
    if (!grew) return open;
  }
}

// Carries get places. Where runs leave them otherwise than they find them, they are found so, if that moves less.
void settle_carries(const BodyRun& run, const Iteration& it, std::vector<const Layout*>& inputs,
                    bool is_draft = false) {
  const Partition& open = cut_carries(run, it, inputs, is_draft);
  std::vector<const Layout*> left = inputs;
  for (std::size_t k = 0; k < it.carries; k++)
    if (all_tiles(*result_layout(open, k)) == all_tiles(*inputs[it.constants + k]))
      left[it.constants + k] = result_layout(open, k);
  if (left == inputs) return;
  const auto moved = [&](const std::vector<const Layout*>& x) {
    return transferred_bytes(run.partitioned(x, true, is_draft));
  };
  if (moved(left) < moved(inputs)) inputs = std::move(left);
}

// Does a run leave the carries as it finds them?
bool keeps_carries(const Partition& p, const Iteration& it, const std::vector<const Layout*>& inputs) {
  for (std::size_t k = 0; k < it.carries; k++)
    if (result_layout(p, k) != inputs[it.constants + k]) return false;
  return true;
}

// A carry that begins as zeros, or as a partial sum that is asked for, is one where that leaves less to move in every run. All carries
// are looked at: one that is no partial sum any more may come to be whole in another one's way.
void keep_partial(const BodyRun& run, const Iteration& it, const std::vector<bool>& may_be,
                  std::vector<const Layout*>& inputs) {
  if (std::find(may_be.begin(), may_be.end(), true) == may_be.end()) return;
  const Partition* best = &run.partitioned(inputs, true);
  for (std::size_t k = 0; k < it.carries; k++) {
    if (!may_be[k]) continue;
    const Layout*& carry = inputs[it.constants + k];
    std::vector<const Layout*> seen;
    for (const LocalValue& v : best->values) {
      const Layout* l = v.layout;
      const bool adds_up = !l->unreduced().empty() && l->reducer() == Reducer::sum &&
                           l->order() == carry->order() && l->dims() == carry->dims();
      if (!adds_up || std::find(seen.begin(), seen.end(), l) != seen.end()) continue;
      seen.push_back(l);
      const Layout* const whole = std::exchange(carry, l);
      const Partition& p = run.partitioned(inputs, true);
      if (keeps_carries(p, it, inputs) && transferred_bytes(p) < transferred_bytes(*best)) {
        best = &p;
        break;
      }
      carry = whole;
    }
  }
}

/// What moves in every run may move once: constants before the first one, as copies, and sums that carries add up behind the last.
class MovesOnce {
 public:
  /// `sums`: carries that may be partial sums.
  MovesOnce(const BodyRun& run, const Iteration& it, const FlatNode& n, std::span<const Layout* const> given,
            const std::vector<bool>& sums, const CompileInput& in)
      : run_(run), it_(it), n_(n), given_(given), reshards_(in.cost), order_(in.order) {
    for (std::size_t k = 0; k < it.carries; k++) sums_.push_back(sums[k] && run.adds_to(k));
  }
  /// `inputs`, or cheaper ones by which no more moves; carries may have other places for copies of constants. `first`: those before they
  /// had any. What lies there for all runs has to save as many bytes as it takes, and a sixteenth of what moves.
  std::vector<const Layout*> of(const std::vector<const Layout*>& inputs,
                                const std::vector<const Layout*>& first) try {
    const Price now = price(run_.partitioned(inputs, true, true), inputs);
    if (now.bytes == 0) return inputs;
    best_ = inputs;
    least_ = now.all;
    tried_.insert(inputs);
    const SubAxes sub_axes = SubAxes::of(order_, inputs);
    std::vector<SubAxisDims> places;
    for (const Layout* l : inputs)
      if (sub_axes.can_express(*l)) places.push_back(to_sub_axes(sub_axes, *l));
    const std::vector<SubAxisList> kinds = sharing_axes(sub_axes, places);
    for (const SubAxisList& kind : kinds) {
      consider(with_sums(sub_axes, kind, inputs));
      for (const auto* const from : {&inputs, &first}) consider_copies(sub_axes, kind, *from, from == &first);
    }
    if (best_ == inputs) return inputs;
    const std::vector<const Layout*> all_copies = best_;
    put_back(inputs);
    const Price before = price(run_.partitioned(inputs, true), inputs);
    for (const std::vector<const Layout*>& where : {best_, all_copies}) {
      const Partition& once = run_.partitioned(where, true);
      const Price after = price(once, where);
      const double worth = std::max(before.bytes / 16, after.held - before.held);
      if (after.all < before.all && after.bytes <= before.bytes - worth && keeps_carries(once, it_, where))
        return where;
      if (where == all_copies) break;
    }
    return inputs;
  } catch (const ShardingError&) {  // policy::strict refuses a transfer, in what a run calls
    return inputs;
  }

 private:
  static constexpr std::size_t kMostPutBack = 12, kMostLeftOut = 3;  // copies

  /// Of all runs, of what comes before them and is combined behind.
  struct Price {
    double all = 0, bytes = 0;
    double held = 0;  // bytes of constants and carries
  };
  // As a sum.
  bool is_asked(std::size_t k) const {
    return given_[k] && !given_[k]->unreduced().empty() && given_[k]->order() == order_;
  }
  // Operands may come from other devices.
  double cost(const Layout* from, const Layout* to, const Type& t) {
    return from->order() == to->order() ? reshards_.cost(from, to, t).moved
                                        : static_cast<double>(reshards_.transfer(from, to, t).bytes);
  }
  Price price(const Partition& one, const std::vector<const Layout*>& where) {
    const auto runs = static_cast<double>(it_.length);
    Price r = price_outside(where);
    r.all += runs * one.price;
    r.bytes += runs * received_bytes(one);
    return r;
  }
  // Before and behind the runs.
  Price price_outside(const std::vector<const Layout*>& where) {
    Price r;
    for (std::size_t k = 0; k < it_.first_element(); k++) {
      const bool is_carry = k >= it_.constants;
      const Type& type = n_.in_types[k];
      double moved = 0;
      if (given_[k]) moved += cost(given_[k], where[k], type);
      if (is_carry && !is_asked(k)) moved += cost(where[k], whole_sums(where[k]), type);
      r.all += moved;
      r.bytes += moved;
      r.held += static_cast<double>(
          tile_bytes(*where[k], type.shape, static_cast<std::int64_t>(itemsize(type.dtype))));
    }
    return r;
  }
  // In what it calls, too.
  static double received_bytes(const Partition& p) {
    auto bytes = static_cast<double>(transferred_bytes(p));
    const auto add = [&](const Program& program, double runs) {
      for (const Transfer& t : program.transfers) bytes += runs * static_cast<double>(t.bytes);
    };
    for (const auto& [node, called] : p.iterations)
      add(*called.compiled->program, static_cast<double>(called.iteration.length));
    for (const auto& [node, called] : p.branches)
      for (const auto& program : called.programs) add(*program->program, 1);
    return bytes;
  }
  // Constants that these axes do not cut.
  std::vector<const Layout*> with_copies(const SubAxes& sub_axes, const SubAxisList& kind,
                                         std::vector<const Layout*> inputs) const {
    for (std::size_t k = 0; k < it_.constants; k++)
      if (sub_axes.can_express(*inputs[k]))
        inputs[k] = to_layout(sub_axes, without(to_sub_axes(sub_axes, *inputs[k]), kind));
    return inputs;
  }
  // Carries that are sums over these axes; those that are given as sums, as they are given.
  std::vector<const Layout*> with_sums(const SubAxes& sub_axes, const SubAxisList& kind,
                                       std::vector<const Layout*> inputs) const {
    for (std::size_t k = 0; k < it_.carries; k++) {
      const Layout*& l = inputs[it_.constants + k];
      if (is_asked(it_.constants + k)) l = given_[it_.constants + k];
      else if (sums_[k] && sub_axes.can_express(*l))
        l = to_layout(sub_axes, without(to_sub_axes(sub_axes, *l), kind), kind, Reducer::sum);
    }
    return inputs;
  }
  void consider(const std::vector<const Layout*>& other) {
    if (!tried_.insert(other).second || price_outside(other).all >= least_) return;
    const Partition& p = run_.partitioned(other, true, true);
    if (const double all = price(p, other).all; all < least_ && keeps_carries(p, it_, other)) {
      least_ = all;
      best_ = other;
    }
  }
  // Copies of all constants, else of all but the largest: to read data again is dearer than to move it, parameters are smaller. The
  // carries settle for them, if asked for.
  void consider_copies(const SubAxes& sub_axes, const SubAxisList& kind, const std::vector<const Layout*>& from,
                       bool settles) {
    std::vector<const Layout*> copies = with_copies(sub_axes, kind, from);
    for (std::size_t left_out = 0; copies != from && left_out <= kMostLeftOut; left_out++) {
      if (price_outside(copies).all < least_) {
        std::vector<const Layout*> where = copies;
        if (settles) settle_carries(run_, it_, where, true);
        const double least = least_;
        consider(where);
        consider(with_sums(sub_axes, kind, std::move(where)));
        copies_help_ |= least_ < least;
      }
      if (copies_help_) return;
      std::size_t largest = 0;
      double most = 0;
      for (std::size_t k = 0; k < it_.constants; k++)
        if (copies[k] != from[k])
          if (const double bytes = cost(from[k], copies[k], n_.in_types[k]); bytes > most) {
            most = bytes;
            largest = k;
          }
      copies[largest] = from[largest];
    }
  }
  // Constants of which no copy is needed beside the others, and carries that had better be whole: counters.
  void put_back(const std::vector<const Layout*>& inputs) {
    std::size_t tried = 0;
    for (std::size_t k = 0; k < it_.first_element() && tried < kMostPutBack; k++) {
      const Layout* const back = k < it_.constants ? inputs[k] : whole_sums(best_[k]);
      if (best_[k] == back || (k >= it_.constants && is_asked(k))) continue;
      std::vector<const Layout*> other = best_;
      other[k] = back;
      consider(other);
      tried++;
    }
  }

  const BodyRun& run_;
  const Iteration& it_;
  const FlatNode& n_;
  std::span<const Layout* const> given_;
  Reshards reshards_;
  const DeviceOrder* order_;
  std::vector<bool> sums_;  // by carry
  std::vector<const Layout*> best_;
  double least_ = 0;
  bool copies_help_ = false;
  std::set<std::vector<const Layout*>> tried_;
};

PlacedIteration placed(const FlatNode& n, std::span<const Layout* const> given,
                       const std::vector<bool>& zeros, const CompileInput& in) {
  const Iteration it = Iteration::of(*n.attrs);
  const BodyRun run(it, in);
  std::vector<const Layout*> inputs;
  for (std::size_t k = 0; k < given.size(); k++) {
    const bool element = k >= it.first_element();
    const auto rank = static_cast<int>(n.in_types[k].shape.size()) - (element ? 1 : 0);
    if (!given[k]) inputs.push_back(Layout::replicated(in.order, rank));
    else inputs.push_back(element ? element_layout(*given[k]) : whole_sums(given[k]));
  }
  const std::vector<const Layout*> first = inputs;
  std::vector<bool> may_be = zeros;
  for (std::size_t k = 0; k < it.carries; k++) {
    const Layout* const l = given[it.constants + k];
    const DType t = n.in_types[it.constants + k].dtype;
    may_be[k] = (may_be[k] || (l && !l->unreduced().empty())) && !is_half(t) && t != DType::bool_;
  }
  if (it.carries > 0) {
    settle_carries(run, it, inputs);
    keep_partial(run, it, may_be, inputs);
  }
  // Not where memory is short, nor where the lines say what moves.
  if (it.length > 1 && !in.cost.has_peaks() && run.may_choose())
    inputs = MovesOnce(run, it, n, given, may_be, in).of(inputs, first);
  PlacedIteration r;
  const auto compiled = std::make_shared<const Compiled>(compile(run.input(inputs, true)));
  r.called = {it, compiled, {}};
  for (std::size_t k = 0; k < it.carries; k++)
    r.called.carries.in_place.push_back(compiled->program->outputs[k].alias >= 0);
  for (std::size_t k = 0; k < inputs.size(); k++)
    r.in.push_back(k < it.first_element() ? inputs[k] : sequence_layout(*inputs[k]));
  for (std::size_t k = 0; k < n.out_types.size(); k++) {
    const Layout* l = compiled->output_layouts[k];
    r.out.push_back(k < it.carries ? l : sequence_layout(*l));
  }
  return r;
}

}  // namespace

PlacedIterations::Key::Key(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> where,
                           std::size_t first_carry, std::size_t carries)
    : attrs(n.attrs), given(where.begin(), where.end()) {
  for (std::size_t k = first_carry; k < first_carry + carries; k++)
    zeros.push_back(!where[k] && literal(n.in[k], g) == 0);
}

PlacedIteration place_iteration(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                                const CompileInput& in) {
  const Iteration it = Iteration::of(*n.attrs);
  PlacedIterations::Key key(n, g, given, it.constants, it.carries);
  if (const auto known = in.placed->all.find(key); known != in.placed->all.end()) return known->second;
  const std::vector<bool> zeros = key.zeros;
  return in.placed->all[std::move(key)] = placed(n, given, zeros, in);
}

ProgramCall make_program_call(const LocalStep& s, const FlatNode& n, const CalledIteration& called,
                              std::span<const Ref> scratch, Addresses& at) {
  using Binding = ProgramCall::Binding;
  const Iteration& it = called.iteration;
  const std::shared_ptr<const Program>& program = called.compiled->program;
  ProgramCall::Item item;
  item.bases.resize(program->base_count);
  for (std::size_t d = 0; d < scratch.size(); d++) item.bases[d] = {scratch[d], scratch[d], scratch[d]};
  const auto fixed = [](const Ref& r) { return Binding{r, r, r}; };
  const auto element = [&](Ref r, std::uint64_t bytes) {
    const auto size = static_cast<std::int64_t>(bytes);
    if (it.reverse) r.offset += bytes * static_cast<std::uint64_t>(it.length - 1);
    Binding b = fixed(r);
    b.stride = it.reverse ? -size : size;
    return b;
  };
  // Where run `run` writes carry k: the last run into the result.
  const auto carry = [&](std::size_t k, int device, std::int64_t run) {
    const bool last = called.carries.in_place[k] || (it.length - 1 - run) % 2 == 0;
    return at.ref(s.out[last ? k : n.out_types.size() + called.carries.doubled(k)], device);
  };
  for (std::size_t k = 0; k < program->inputs.size(); k++) {
    const Port& port = program->inputs[k];
    for (std::size_t i = 0; i < port.bases.size(); i++) {
      const int device = port.devices[i];
      const Ref given = at.ref(s.in[k], device);
      Binding& b = item.bases[port.bases[i]];
      if (k < it.constants) b = fixed(given);
      else if (k >= it.first_element()) b = element(given, port.bytes[i]);
      else if (it.length == 1) b = fixed(given);
      else b = {given, carry(k - it.constants, device, 1), carry(k - it.constants, device, 0)};
    }
  }
  for (std::size_t k = 0; k < program->outputs.size(); k++) {
    const Port& port = program->outputs[k];
    for (std::size_t i = 0; i < port.bases.size(); i++) {
      const int device = port.devices[i];
      if (port.alias >= 0) continue;  // a carry that is written over: bound already
      Binding& b = item.bases[port.bases[i]];
      if (k >= it.carries) b = element(at.ref(s.out[k], device), port.bytes[i]);
      else if (it.length == 1) b = fixed(at.ref(s.out[k], device));
      else b = {carry(k, device, 0), carry(k, device, 0), carry(k, device, 1)};
    }
  }
  ProgramCall call;
  call.program = program;
  call.trip = it.length;
  call.items.push_back(std::move(item));
  return call;
}

}  // namespace shardarray
