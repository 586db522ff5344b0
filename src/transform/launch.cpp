#include "transform/launch.h"

#include <fmt/core.h>

#include <algorithm>
#include <list>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/print_time.h"
#include "compile/assignment.h"
#include "runtime/devices.h"

namespace shardarray {

std::mutex& graph_mutex() {
  static std::mutex m;
  return m;
}

// ---------------------------------------------------------------- placement
namespace {

struct Claim {  // somebody who decides where a computation runs
  const DeviceOrder* order;
  std::string who;
  double weight;  // elements; of a constraint less than one, the more the finer it cuts
};

struct Constraint {
  std::shared_ptr<const Sharding> sharding;
  const Layout* layout;
  Where where;
  bool of_pmap;
};

void add_constraint(const Op* op, const Attrs* attrs, std::size_t rank, Where where,
                    std::vector<Constraint>& to) {
  if (!attrs) return;
  if (op->form == Form::constraint) {
    const std::size_t lead = attrs->lo.empty() ? 0 : static_cast<std::size_t>(attrs->lo[0]);
    to.push_back({attrs->sharding, layout_of(*attrs->sharding, static_cast<int>(rank - lead)), where,
                  attrs->bits == 1});
  }
  for (const auto& g : attrs->graphs)
    for (Node* n : topological(std::span<const Array>(g->out), [](Node*) { return true; }))
      add_constraint(n->op, n->attrs_.get(), n->type().shape.size(), n->where, to);
}

// Of the graph and those that it calls.
std::vector<Constraint> constraints_of(const FlatGraph& g) {
  std::vector<Constraint> found;
  for (const FlatNode& n : g.nodes)
    add_constraint(n.op, n.attrs.get(), n.out_types.empty() ? 0 : n.out_types[0].shape.size(), n.where,
                   found);
  return found;
}

std::string ids(const DeviceOrder* o) {
  std::string text;
  for (const Device& d : o->devices()) text += fmt::format("{}{}", text.empty() ? "" : ", ", d.id);
  return fmt::format("device ids [{}] on platform {}", text, o->devices()[0].platform);
}

std::vector<Claim> claims(const FlatGraph& g, std::span<const ValueRef> leaves,
                          std::span<const Sharding* const> requested, const std::vector<std::string>& names) {
  std::vector<Claim> c;
  for (std::size_t k = 0; k < leaves.size(); k++) {
    const Type& t = g.types[static_cast<std::size_t>(g.inputs[k])];
    const bool counts = leaves[k]->committed || leaves[k]->layout->order()->size() > 1;
    if (!counts) continue;
    const std::string name = k < names.size() && !names[k].empty()
                                 ? fmt::format("argument {} with shape {}", names[k], to_string(t))
                                 : fmt::format("an array {}", to_string(t));
    c.push_back({leaves[k]->layout->order(), name, static_cast<double>(num_elements(t.shape))});
  }
  for (const Constraint& x : constraints_of(g)) {
    double tiles = 1;
    for (int d = 0; d < x.layout->rank(); d++) tiles *= static_cast<double>(x.layout->tiles(d));
    c.push_back({x.layout->order(), fmt::format("a sharding constraint ({}:{})", x.where.file, x.where.line),
                 1 - 1 / tiles});
  }
  for (std::size_t k = 0; k < requested.size(); k++)
    if (requested[k]) {
      const int rank = static_cast<int>(g.types[static_cast<std::size_t>(g.outputs[k])].shape.size());
      c.push_back({layout_of(*requested[k], rank)->order(), "an explicit output sharding", 0});
    }
  return c;
}

// As it is, or whole on each of other devices.
const Layout* layout_on(const DeviceOrder* order, const Layout* l) {
  return l->order()->sorted() == order->sorted() ? l : Layout::replicated(order, l->rank());
}

}  // namespace

const DeviceOrder* constrained_devices(const FlatGraph& g) {
  const std::vector<Constraint> c = constraints_of(g);
  return c.empty() ? nullptr : c[0].layout->order();
}

const DeviceOrder* mapped_devices(const Node& n) {
  if (n.op->form != Form::call) return nullptr;
  std::vector<Constraint> c;
  add_constraint(n.op, n.attrs_.get(), 0, {}, c);
  const auto found = std::find_if(c.begin(), c.end(), [](const Constraint& x) { return x.of_pmap; });
  return found == c.end() ? nullptr : found->layout->order();
}

LeafPlacement place_leaves(const FlatGraph& g, std::span<const ValueRef> leaves,
                           std::span<const Sharding* const> requested, const std::vector<std::string>& names,
                           const char* function) {
  LeafPlacement p;
  const Claim* largest = nullptr;
  const std::vector<Claim> all = claims(g, leaves, requested, names);
  for (const Claim& c : all) {
    if (largest && c.order->sorted() != largest->order->sorted())
      throw DeviceError(
          fmt::format("{}: Received incompatible devices for jitted computation. Got {} with {} and {} with "
                      "{}. All committed arrays, constraints "
                      "and outputs of one computation must be on the same devices. Move one with "
                      "device_put(x, sharding).",
                      function, all[0].who, ids(all[0].order), c.who, ids(c.order)));
    if (!largest || c.weight > largest->weight) largest = &c;
  }
  p.committed = largest != nullptr;
  if (largest) {
    p.order = largest->order;
  } else if (!leaves.empty()) {
    p.order = leaves[0]->layout->order();
    for (const ValueRef& v : leaves)
      if (v->layout->order() != p.order) p.order = DeviceOrder::of({current_default_device()});
  } else {
    p.order = DeviceOrder::of({current_default_device()});
  }
  for (const ValueRef& v : leaves) p.inputs.push_back(layout_on(p.order, v->layout));
  return p;
}

CompileInput compile_input(FlatGraph g, const LeafPlacement& where, std::vector<bool> donated,
                           std::span<const Sharding* const> requested, std::vector<std::string> names,
                           std::span<const ValueRef> leaves) {
  CompileInput in;
  in.order = where.order;
  in.inputs = where.inputs;
  in.donated = std::move(donated);
  for (std::size_t k = 0; k < g.outputs.size(); k++) {
    const int rank = static_cast<int>(g.types[static_cast<std::size_t>(g.outputs[k])].shape.size());
    in.outputs.push_back(k < requested.size() && requested[k] ? layout_of(*requested[k], rank) : nullptr);
  }
  in.input_names = std::move(names);
  in.policy = current_policy();
  in.share_replicas = share_replicas();
  in.reproducible = is_reproducible();
  for (const ValueRef& v : leaves)
    if (!in.mesh) in.mesh = mesh_of(v->sharding);
  for (const Constraint& c : constraints_of(g))  // the finest names most
    if (const auto m = mesh_of(*c.sharding);
        m && (!in.mesh || m->axis_names().size() > in.mesh->axis_names().size()))
      in.mesh = m;
  for (const Sharding* s : requested)
    if (!in.mesh && s) in.mesh = mesh_of(*s);
  in.graph = std::move(g);
  return in;
}

// ---------------------------------------------------------------- the cache
namespace {

using Words = std::vector<std::uint64_t>;
struct WordsHash {
  std::size_t operator()(const Words& w) const {
    std::uint64_t h = w.size();
    for (std::uint64_t x : w) h = hash_mix(h, x);
    return h;
  }
};

// Bounded: the least recently used program goes first.
class ProgramCache {
 public:
  std::shared_ptr<const LoadedProgram> find(const Words& key) {
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    stats.hits++;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }
  void put(Words key, std::shared_ptr<const LoadedProgram> p) {
    stats.misses++;
    order_.emplace_front(key, std::move(p));
    index_[std::move(key)] = order_.begin();
    if (order_.size() > kMost) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    stats.entries = order_.size();
  }
  ProgramCacheStats stats;

 private:
  static constexpr std::size_t kMost = 1024;
  using List = std::list<std::pair<Words, std::shared_ptr<const LoadedProgram>>>;
  List order_;
  std::unordered_map<Words, List::iterator, WordsHash> index_;
};

ProgramCache& program_cache() {
  static ProgramCache* c = new ProgramCache;  // never destroyed: arrays may outlive static destruction
  return *c;
}

// The end of a key, after the graph and the layouts and donations of its arguments and results.
void put_settings(const DeviceOrder* order, bool committed, Words& key) {
  key.push_back(reinterpret_cast<std::uintptr_t>(order));
  key.push_back(static_cast<std::uint64_t>(current_policy()) * 8 + committed * 4u + is_reproducible() * 2u +
                share_replicas());
  key.push_back(reinterpret_cast<std::uintptr_t>(&backend(order->devices()[0].platform)));
}

Words program_key(const CompileInput& in, bool committed) {
  Words key;
  put_structure(in.graph, key);
  for (const Layout* l : in.outputs) key.push_back(reinterpret_cast<std::uintptr_t>(l));
  for (bool d : in.donated) key.push_back(d);
  for (const Layout* l : in.inputs) key.push_back(reinterpret_cast<std::uintptr_t>(l));
  put_settings(in.order, committed, key);
  return key;
}

struct Devices {
  const DeviceOrder* order;
  bool committed;
};
// place_leaves() without constraints, where there is nothing to choose; null: there is.
Devices common_devices(std::span<const LaunchLeaf> leaves) {
  const DeviceOrder *bound = nullptr, *free = nullptr;
  for (const LaunchLeaf& l : leaves) {
    const DeviceOrder* order = l.value->layout->order();
    const DeviceOrder*& all = l.value->committed || order->size() > 1 ? bound : free;
    if (all && all != order) return {};
    all = order;
  }
  return {bound ? bound : free, bound != nullptr};
}

}  // namespace

ProgramCacheStats program_cache_stats() {
  const std::lock_guard lock(graph_mutex());
  return program_cache().stats;
}

std::shared_ptr<const LoadedProgram> find_program(std::vector<std::uint64_t> structure,
                                                  std::span<const LaunchLeaf> leaves, std::size_t outputs) {
  const auto [order, committed] = common_devices(leaves);
  if (!order) return nullptr;
  structure.resize(structure.size() + outputs + leaves.size());  // open; not donated
  for (const LaunchLeaf& l : leaves)
    structure.push_back(reinterpret_cast<std::uintptr_t>(layout_on(order, l.value->layout)));
  put_settings(order, committed, structure);
  return program_cache().find(structure);
}

std::shared_ptr<const LoadedProgram> load_program(FlatGraph g, std::span<const ValueRef> leaves,
                                                  std::vector<bool> donated,
                                                  std::span<const Sharding* const> requested,
                                                  const std::vector<std::string>& names,
                                                  const char* function) {
  const LeafPlacement where = place_leaves(g, leaves, requested, names, function);
  CompileInput in = compile_input(std::move(g), where, std::move(donated), requested, names, leaves);
  Words key = program_key(in, where.committed);
  if (auto found = program_cache().find(key)) return found;
  auto p = std::make_shared<LoadedProgram>();
  p->order = in.order;
  p->share_replicas = in.share_replicas;
  p->committed = where.committed;
  for (const Constraint& c : constraints_of(in.graph)) p->constraints.push_back(*c.sharding);
  p->inputs = in.inputs;
  p->compiled = compile(std::move(in));
  p->backend = &backend(p->order->devices()[0].platform);
  p->executable = timed("load", [&] { return p->backend->load(p->compiled.program); });
  p->aliased.resize(p->inputs.size());
  for (const Port& o : p->compiled.program->outputs)
    if (o.alias >= 0) p->aliased[static_cast<std::size_t>(o.alias)] = true;
  for (std::size_t k = 0; k < p->compiled.output_layouts.size(); k++) {
    const int forwarded = p->compiled.forwarded[k], made = p->compiled.program_output[k];
    p->sources.push_back(forwarded >= 0 ? forwarded
                                        : p->compiled.program->outputs[static_cast<std::size_t>(made)].alias);
  }
  program_cache().put(std::move(key), p);
  return p;
}

// ---------------------------------------------------------------- the run
namespace {

// Memory of the device at this position of the program's order.
BufferRef allocate(const LoadedProgram& p, int position, std::size_t bytes) {
  return p.backend->allocate(p.order->devices()[static_cast<std::size_t>(position)].id, bytes);
}

BufferRef copy_of(const LoadedProgram& p, const BufferRef& x, int position) {
  BufferRef fresh = allocate(p, position, x->bytes);
  p.backend->copy_from_host(fresh, x->data, x->bytes);
  return fresh;
}

using Buffers = SmallVector<BufferRef, 8>;

// A leaf's buffers as the program wants them, one per instance of its input, where the value has them otherwise.
void convert_buffers(const LoadedProgram& p, std::size_t k, const Value& v, bool same_order, Buffers& to) {
  const Port& port = p.compiled.program->inputs[k];
  const Instances want = instances_of(*p.inputs[k], p.share_replicas),
                  have = instances_of(*v.layout, v.shared);
  for (std::size_t i = 0; i < want.leader.size(); i++) {
    const std::size_t source =
        same_order ? static_cast<std::size_t>(have.of_position[static_cast<std::size_t>(want.leader[i])]) : 0;
    // shared replicas read one buffer; separate memories get copies of their own
    to.push_back(p.share_replicas ? v.buffers[source] : copy_of(p, v.buffers[source], port.devices[i]));
  }
}

// How the results of these leaves are spelled.
std::shared_ptr<const LoadedProgram::Spelling> spelling_of(const LoadedProgram& p,
                                                           std::span<const LaunchLeaf> leaves) {
  using Spelling = LoadedProgram::Spelling;
  const auto fits = [&](const std::shared_ptr<const Spelling>& s) {
    bool same = s && s->leaves.size() == leaves.size();
    for (std::size_t k = 0; same && k < leaves.size(); k++)
      same = s->leaves[k] == leaves[k].value->sharding.impl();
    return same;
  };
  if (auto last = ThreadMemo<Spelling>::find(p.spellings); fits(last)) return last;
  const std::lock_guard lock(p.mutex);
  if (!fits(p.spelling)) {
    auto fresh = std::make_shared<Spelling>();
    std::vector<Sharding> like;
    for (const LaunchLeaf& l : leaves) {
      fresh->leaves.push_back(l.value->sharding.impl());
      if (l.value->layout->order()->sorted() == p.order->sorted()) like.push_back(l.value->sharding);
    }
    like.insert(like.end(), p.constraints.begin(), p.constraints.end());
    for (const Layout* l : p.compiled.output_layouts) fresh->results.push_back(spell(l, like));
    p.spelling = std::move(fresh);
  }
  ThreadMemo<Spelling>::keep(p.spellings, p.spelling);
  return p.spelling;
}

bool sole(const Value& v) {
  for (const BufferRef& b : v.buffers)
    if (!b.get()->unique()) return false;
  return true;
}

// What a launch needs for a moment; the storage stays with the thread.
struct Workspace {
  std::vector<void*> bases;
  std::vector<BufferRef> scratch;
  std::vector<Buffers>
      made;  // per leaf: what the program gets in place of the value's own buffers; mostly none
  std::size_t leaves = 0;
};
// A launch may happen inside another one's host code: workspaces are taken and given back.
class BorrowedWorkspace {
 public:
  BorrowedWorkspace() {
    auto& spare = spares();
    if (!spare.empty()) {
      space_ = std::move(spare.back());
      spare.pop_back();
    }
    if (!space_) space_ = std::make_unique<Workspace>();
  }
  ~BorrowedWorkspace() {
    space_->scratch.clear();
    for (std::size_t k = 0; k < space_->leaves; k++) space_->made[k].clear();
    spares().push_back(std::move(space_));
  }
  Workspace& operator*() const { return *space_; }

 private:
  static std::vector<std::unique_ptr<Workspace>>& spares() {
    static thread_local std::vector<std::unique_ptr<Workspace>> s;
    return s;
  }
  std::unique_ptr<Workspace> space_;
};

const Buffers& leaf_buffers(const Workspace& w, std::span<const LaunchLeaf> leaves, std::size_t k) {
  return w.made[k].empty() ? leaves[k].value->buffers : w.made[k];
}

void take_scratch(const LoadedProgram& p, Workspace& w) {
  const Program& program = *p.compiled.program;
  w.bases.assign(program.base_count, nullptr);
  for (std::size_t d = 0; d < program.scratch_bytes.size(); d++)
    if (program.scratch_bytes[d] > 0) {
      w.scratch.push_back(allocate(p, static_cast<int>(d), program.scratch_bytes[d]));
      w.bases[d] = w.scratch.back()->data;
    }
}

void take_inputs(const LoadedProgram& p, std::span<const LaunchLeaf> leaves, Workspace& w,
                 std::vector<LaunchVerdict>* verdicts) {
  const Program& program = *p.compiled.program;
  w.leaves = leaves.size();
  if (w.made.size() < w.leaves) w.made.resize(w.leaves);
  if (verdicts) verdicts->assign(leaves.size(), {});
  for (std::size_t k = 0; k < leaves.size(); k++) {
    const Value& v = *leaves[k].value;
    const bool same_order = v.layout->order() == p.order || v.layout->order()->sorted() == p.order->sorted();
    const bool same_sharing = v.shared == p.share_replicas;
    const bool owned = p.aliased[k] && leaves[k].sole_owner && same_sharing && sole(v);
    if (!same_order || !same_sharing) convert_buffers(p, k, v, same_order, w.made[k]);
    if (p.aliased[k]) {
      if (!owned) {
        Buffers copies;
        const Buffers& from = leaf_buffers(w, leaves, k);
        for (std::size_t i = 0; i < from.size(); i++)
          copies.push_back(copy_of(p, from[i], program.inputs[k].devices[i]));
        w.made[k] = std::move(copies);
      }
      if (verdicts) (*verdicts)[k] = {owned, !owned, false};
    }
    const Buffers& b = leaf_buffers(w, leaves, k);
    for (std::size_t i = 0; i < b.size(); i++) w.bases[program.inputs[k].bases[i]] = b[i]->data;
  }
}

// The results, with memory of their own or that of the leaves that they take over or are.
void make_results(const LoadedProgram& p, std::span<const LaunchLeaf> leaves, Workspace& w,
                  std::vector<ValueRef>& results) {
  const auto spelling = spelling_of(p, leaves);
  for (std::size_t k = 0; k < p.compiled.output_layouts.size(); k++) {
    const Layout* layout = p.compiled.output_layouts[k];
    const Sharding& spelled = spelling->results[k];
    const int source = p.sources[k];
    if (source >= 0) {
      const auto j = static_cast<std::size_t>(source);
      const ValueRef& v = leaves[j].value;
      if (w.made[j].empty() && v->layout == layout && v->sharding.impl() == spelled.impl() &&
          v->committed == p.committed) {  // the very same value
        results.push_back(v);
        continue;
      }
      results.push_back(make_value(layout, spelled, p.committed, p.share_replicas));
      results.back()->buffers = leaf_buffers(w, leaves, j);
      continue;
    }
    const Port& o = p.compiled.program->outputs[static_cast<std::size_t>(p.compiled.program_output[k])];
    Value& v = *results.emplace_back(make_value(layout, spelled, p.committed, p.share_replicas));
    for (std::size_t i = 0; i < o.bytes.size(); i++) {
      v.buffers.push_back(allocate(p, o.devices[i], o.bytes[i]));
      w.bases[o.bases[i]] = v.buffers.back()->data;
    }
  }
}

}  // namespace

void launch(const LoadedProgram& p, std::span<const LaunchLeaf> leaves, std::vector<ValueRef>& results,
            std::vector<LaunchVerdict>* verdicts, RunReport* report) {
  BorrowedWorkspace borrowed;
  Workspace& w = *borrowed;
  results.clear();
  take_scratch(p, w);
  take_inputs(p, leaves, w, verdicts);
  make_results(p, leaves, w, results);
  if (p.compiled.program->steps.empty()) return;
  try {
    p.executable->run(w.bases, report);
  } catch (...) {
    results.clear();
    if (verdicts)
      for (LaunchVerdict& v : *verdicts) v.lost = v.reused;
    throw;
  }
}

}  // namespace shardarray
