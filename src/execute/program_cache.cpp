// Where a computation runs, and the process-wide cache of compiled programs.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/least_used.h"
#include "base/print_time.h"
#include "compile/assignment.h"
#include "execute/held_memory.h"
#include "execute/launch.h"
#include "graph/key.h"
#include "layout/spelling.h"
#include "runtime/devices.h"
#include "runtime/local_part.h"

namespace shardarray {

namespace {

struct Claim {  // what decides where a computation runs: a leaf, a constraint, or a requested result
  const DeviceOrder* order;
  double weight;  // elements; of a constraint less than one, growing with its number of tiles
  std::optional<std::size_t> leaf = {};
  std::optional<Where> constraint = {};  // its line
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

std::string text_of(const Claim& c, const FlatGraph& g, std::span<const ValueRef> leaves,
                    const std::vector<std::string>& names) {
  if (!c.leaf)
    return c.constraint ? fmt::format("a sharding constraint ({}:{})", c.constraint->file, c.constraint->line)
                        : "an explicit output sharding";
  const std::size_t k = *c.leaf;
  const Type& t = g.types[static_cast<std::size_t>(g.inputs[k])];
  const Value& v = *leaves[k];
  const std::string type = type_string(t.dtype, t.shape, *v.layout, mesh_of(v.sharding));
  return k < names.size() && !names[k].empty()
             ? fmt::format("argument {} with shape {}", names[k], type)
             : fmt::format("{} {}", names.empty() ? "an array" : "a captured array", type);
}

std::vector<Claim> claims(const FlatGraph& g, std::span<const ValueRef> leaves,
                          std::span<const Sharding* const> requested) {
  std::vector<Claim> c;
  for (std::size_t k = 0; k < leaves.size(); k++) {
    if (!is_bound(*leaves[k])) continue;
    const Shape& shape = g.types[static_cast<std::size_t>(g.inputs[k])].shape;
    c.push_back({leaves[k]->layout->order(), static_cast<double>(num_elements(shape)), k});
  }
  for (const Constraint& x : constraints_of(g)) {
    double tiles = 1;
    for (int d = 0; d < x.layout->rank(); d++) tiles *= static_cast<double>(x.layout->tiles(d));
    c.push_back({x.layout->order(), 1 - 1 / tiles, {}, x.where});
  }
  for (std::size_t k = 0; k < requested.size(); k++)
    if (requested[k]) {
      const int rank = static_cast<int>(g.types[static_cast<std::size_t>(g.outputs[k])].shape.size());
      c.push_back({layout_of(*requested[k], rank)->order(), 0});
    }
  return c;
}

// The first node with operands on different devices; null: there is none.
const FlatNode* meeting_of(const FlatGraph& g, std::span<const ValueRef> leaves) {
  std::vector<const DeviceOrder*> home(g.types.size(), nullptr);
  for (std::size_t k = 0; k < leaves.size(); k++)
    if (is_bound(*leaves[k]))
      home[static_cast<std::size_t>(g.inputs[k])] = leaves[k]->layout->order()->sorted();
  for (const FlatNode& n : g.nodes) {
    const DeviceOrder* here = nullptr;
    for (const int v : n.in) {
      const DeviceOrder* const there = home[static_cast<std::size_t>(v)];
      if (here && there && here != there) return &n;
      if (there) here = there;
    }
    for (std::size_t k = 0; here && k < n.out_types.size(); k++)
      home[static_cast<std::size_t>(n.first_out) + k] = here;
  }
  return nullptr;
}

// The layout itself, or replicated if it is on other devices.
const Layout* layout_on(const DeviceOrder* order, const Layout* l) {
  return l->order()->sorted() == order->sorted() ? l : Layout::replicated(order, l->rank());
}

}  // namespace

const DeviceOrder* constrained_devices(const FlatGraph& g) {
  const std::vector<Constraint> c = constraints_of(g);
  return c.empty() ? nullptr : c[0].layout->order();
}

CalledDevices called_devices(const Node& n) {
  if (n.attrs().graphs.empty()) return {};
  std::vector<Constraint> c;
  add_constraint(n.op, n.attrs_.get(), 0, {}, c);
  const auto mapped = std::find_if(c.begin(), c.end(), [](const Constraint& x) { return x.of_pmap; });
  if (mapped != c.end()) return {mapped->layout->order(), true};
  return {c.empty() ? nullptr : c[0].layout->order(), false};
}

LeafPlacement place_leaves(const FlatGraph& g, std::span<const ValueRef> leaves,
                           std::span<const Sharding* const> requested, const std::vector<std::string>& names,
                           const Modes& modes, const char* function) {
  LeafPlacement p;
  const Claim* largest = nullptr;
  const std::vector<Claim> all = claims(g, leaves, requested);
  for (const Claim& c : all) {
    if (largest && c.order->sorted() != largest->order->sorted()) {
      const FlatNode* const meeting = meeting_of(g, leaves);
      const detail::RecordedLine line = meeting ? meeting->where : detail::RecordedLine();
      const detail::RecordedSite site(line);
      const bool jitted = !names.empty();
      if (!jitted && meeting) function = line.function ? line.function : meeting->op->name;
      throw DeviceError(
          fmt::format("{}: Received incompatible devices for {}computation. Got {} with {} and {} with {}. "
                      "All committed arrays, constraints and outputs of one computation must be on the same "
                      "devices. Move one with device_put(x, sharding).",
                      function, jitted ? "jitted " : "one ", text_of(all[0], g, leaves, names),
                      ids(all[0].order), text_of(c, g, leaves, names), ids(c.order)));
    }
    if (!largest || c.weight > largest->weight) largest = &c;
  }
  p.committed = largest != nullptr;
  if (largest) {
    p.order = largest->order;
  } else {
    bool agreed = true;
    for (const ValueRef& v : leaves) {
      if (v->number) continue;
      agreed &= !p.order || p.order == v->layout->order();
      p.order = v->layout->order();
    }
    if (!p.order || !agreed) p.order = DeviceOrder::of({default_device_of(modes)});
  }
  for (const ValueRef& v : leaves) p.inputs.push_back(layout_on(p.order, v->layout));
  return p;
}

// Whether no two devices share a memory.
static bool are_apart(const DeviceOrder& order) {
  std::set<std::pair<int, int>> memories;
  return std::ranges::all_of(
      order.devices(), [&](const Device& d) { return memories.emplace(d.process_index, d.memory).second; });
}

CompileInput compile_input(FlatGraph g, const LeafPlacement& where, std::vector<bool> donated,
                           std::span<const Sharding* const> requested, std::vector<std::string> names,
                           std::span<const ValueRef> leaves) {
  CompileInput in(backend(where.order->devices()[0].platform).target());
  in.order = where.order;
  in.share_replicas = share_replicas();
  in.cost = in.cost.within(memory_budget()).with_replicas_apart(!in.share_replicas || are_apart(*in.order));
  in.inputs = where.inputs;
  in.donated = std::move(donated);
  for (std::size_t k = 0; k < g.outputs.size(); k++) {
    const int rank = static_cast<int>(g.types[static_cast<std::size_t>(g.outputs[k])].shape.size());
    in.outputs.push_back(k < requested.size() && requested[k] ? layout_of(*requested[k], rank) : nullptr);
  }
  in.input_names = std::move(names);
  for (const ValueRef& v : leaves)
    if (!in.mesh) in.mesh = mesh_of(v->sharding);
  for (const Constraint& c : constraints_of(g))  // the mesh with the most axes
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

std::size_t bytes_of_item(const Loop::Item& i) { return sizeof i + i.args.size() * sizeof(LoopArg); }
std::size_t bytes_of_item(const Gemm::Item& i) { return sizeof i; }
std::size_t bytes_of_item(const LibraryCall::Item& i) {
  return sizeof i + (i.in.size() + i.out.size()) * (sizeof(Ref) + sizeof(Shape));
}
std::size_t bytes_of_item(const Exchange::Item& i) {
  std::size_t bytes = sizeof i + i.pieces.size() * sizeof(Exchange::Piece);
  for (const Exchange::Piece& p : i.pieces) bytes += p.sources.size() * sizeof(Exchange::Source);
  return bytes;
}

std::size_t bytes_of_steps(const Program& p);
std::size_t bytes_of(const ProgramCall& call) {
  std::size_t bytes = bytes_of_steps(*call.program);
  for (const ProgramCall::Item& i : call.items) bytes += sizeof i + i.bases.size() * sizeof i.bases[0];
  return bytes;
}
std::size_t bytes_of(const ProgramChoice& choice) {
  std::size_t bytes = 0;
  for (const ProgramCall& branch : choice.branches) bytes += bytes_of(branch);
  return bytes;
}
std::size_t bytes_of(const ProgramLoop& loop) {
  return bytes_of(loop.condition()) + bytes_of(loop.body()) +
         loop.items[0].carries.size() * sizeof(ProgramLoop::Carry);
}
template <class Body> std::size_t bytes_of(const Body& body) {
  std::size_t bytes = 0;
  for (const auto& item : body.items) bytes += bytes_of_item(item);
  return bytes;
}
std::size_t bytes_of_steps(const Program& p) {
  std::size_t bytes = 0;
  for (const Step& s : p.steps)
    bytes += sizeof s + std::visit([](const auto& body) { return bytes_of(body); }, s.body);
  return bytes;
}

// Roughly what a loaded program holds: its key, its steps, and as much again for what the backend makes of them.
std::size_t bytes_held(const LoadedProgram& p, const Words& key) {
  const std::size_t steps =
      p.compiled.values.size() * sizeof(PlacedValue) + bytes_of_steps(*p.compiled.program);
  return 2 * (key.size() * sizeof(std::uint64_t) + steps);
}

// Bounded in number and bytes: the least recently used programs go first.
class ProgramCache {
 public:
  std::shared_ptr<const LoadedProgram> find(const Words& key) {
    const std::lock_guard lock(mutex_);
    const auto it = programs_.find(key);
    if (it == programs_.end()) return nullptr;
    it->second.used.mark(++uses_);
    return it->second.program;
  }
  /// Returns `p`, or what another thread put there first.
  std::shared_ptr<const LoadedProgram> put(Words key, std::shared_ptr<const LoadedProgram> p) {
    const std::size_t bytes = bytes_held(*p, key);
    const std::lock_guard lock(mutex_);
    Entry& e = programs_[std::move(key)];
    if (e.program) return e.program;
    e.program = p;
    e.bytes = bytes;
    e.used.mark(++uses_);
    bytes_ += bytes;
    while (programs_.size() > most_programs || (bytes_ > most_bytes && programs_.size() > 1)) {
      const auto last =
          least_used(programs_, [](const auto& entry) -> const LastUse& { return entry.second.used; });
      bytes_ -= last->second.bytes;
      programs_.erase(last);
    }
    return p;
  }

 private:
  static constexpr std::size_t most_programs = 1024, most_bytes = 256 << 20;
  struct Entry {
    std::shared_ptr<const LoadedProgram> program;
    std::size_t bytes = 0;
    LastUse used;
  };
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::uint64_t uses_ = 0;
  std::unordered_map<Words, Entry, WordsHash> programs_;
};

ProgramCache& program_cache() {
  static ProgramCache* c = new ProgramCache;  // never destroyed: arrays may outlive static destruction
  return *c;
}

// The end of a key, after the graph and the layouts and donations of its arguments and results.
void put_settings(const DeviceOrder* order, bool committed, Words& key) {
  key.push_back(static_cast<std::uint64_t>(memory_budget()));
  key.push_back(reinterpret_cast<std::uintptr_t>(order));
  key.push_back(committed * 2u + share_replicas());
  key.push_back(backend_number(order->devices()[0].platform));
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
// place_leaves() without constraints, if the leaves agree; null: they do not.
Devices common_devices(std::span<const LaunchLeaf> leaves, const Modes& modes) {
  const DeviceOrder *bound = nullptr, *free = nullptr;
  for (const LaunchLeaf& l : leaves) {
    if (l.value->number) continue;
    const DeviceOrder* order = l.value->layout->order();
    const DeviceOrder*& all = is_bound(*l.value) ? bound : free;
    if (all && all != order) return {};
    all = order;
  }
  if (!bound && !free) return {DeviceOrder::of({default_device_of(modes)}), false};
  return {bound ? bound : free, bound != nullptr};
}

}  // namespace

// Every process that has devices in the program takes part in each run, even if its own devices have nothing to do.
static void load_here(LoadedProgram& p) {
  p.here = p.compiled.program;
  p.idle = p.here->steps.empty();
  timed("load", [&] {
    if (spans_processes(p.here->order->devices())) {
      const auto part = std::make_shared<const LocalPart>(local_part(*p.here, process_index()));
      p.here = part->program;
      p.idle |= part->peers.empty() && p.here->steps.empty();
      if (!part->peers.empty()) return void(p.executable = p.backend->load_part(part));
    }
    p.executable = p.backend->load(p.here);
  });
}

std::shared_ptr<const LoadedProgram> find_program(Words& key, std::span<const LaunchLeaf> leaves,
                                                  std::size_t outputs, const Modes& modes) {
  const auto [order, committed] = common_devices(leaves, modes);
  if (!order) return nullptr;
  key.resize(key.size() + outputs + leaves.size());  // open; not donated
  for (const LaunchLeaf& l : leaves)
    key.push_back(reinterpret_cast<std::uintptr_t>(layout_on(order, l.value->layout)));
  put_settings(order, committed, key);
  return program_cache().find(key);
}

std::shared_ptr<const LoadedProgram> load_program(FlatGraph g, std::span<const ValueRef> leaves,
                                                  std::vector<bool> donated,
                                                  std::span<const Sharding* const> requested,
                                                  const std::vector<std::string>& names, const Modes& modes,
                                                  const char* function) {
  const LeafPlacement where = place_leaves(g, leaves, requested, names, modes, function);
  CompileInput in = compile_input(std::move(g), where, std::move(donated), requested, names, leaves);
  Words key = program_key(in, where.committed);
  if (auto found = program_cache().find(key)) return found;
  auto p = std::make_shared<LoadedProgram>();
  p->order = in.order;
  p->share_replicas = in.share_replicas;
  p->committed = where.committed;
  for (const Constraint& c : constraints_of(in.graph)) p->constraints.push_back(*c.sharding);
  for (const Sharding* s : requested)
    if (s && is_partial(*s)) p->constraints.push_back(*s);  // only its mesh names the axes of the sum
  p->inputs = in.inputs;
  p->orders.push_back(in.order->ref());
  for (const auto* layouts : {&in.inputs, &in.outputs})
    for (const Layout* l : *layouts)
      if (l) p->orders.push_back(l->order()->ref());
  const Mesh* const mesh = in.mesh;
  p->compiled = compile(std::move(in));
  if (const std::int64_t budget = memory_budget(); budget > 0)
    check_budget(p->compiled, names, mesh, budget, function);
  for (const Layout* l : p->compiled.output_layouts) p->orders.push_back(l->order()->ref());
  p->backend = &backend(p->order->devices()[0].platform);
  for (const Device& d : p->order->devices()) p->local.push_back(local_index(d));
  load_here(*p);
  const Program& program = *p->here;
  for (std::size_t d = 0; d < program.scratch_bytes.size(); d++) {
    if (program.scratch_bytes[d] == 0) continue;
    p->scratch_devices.push_back(p->local[d]);
    p->scratch_bytes.push_back(program.scratch_bytes[d]);
  }
  for (const Port& o : program.outputs) {
    std::vector<int>& local = p->output_devices.emplace_back();
    for (const int position : o.devices) local.push_back(p->local[static_cast<std::size_t>(position)]);
  }
  p->aliased.resize(p->inputs.size());
  for (const Port& o : p->compiled.program->outputs)
    if (o.alias >= 0) p->aliased[static_cast<std::size_t>(o.alias)] = true;
  for (std::size_t k = 0; k < p->compiled.output_layouts.size(); k++) {
    const int forwarded = p->compiled.forwarded[k], output = p->compiled.program_output[k];
    const int source =
        forwarded >= 0 ? forwarded : p->compiled.program->outputs[static_cast<std::size_t>(output)].alias;
    p->sources.push_back(source);
  }
  return program_cache().put(std::move(key), std::move(p));
}

}  // namespace shardarray
