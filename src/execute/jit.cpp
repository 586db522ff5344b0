// The type-erased core of jit: traces cached by call, programs by placement, donation.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "base/per_thread.h"
#include "base/print_time.h"
#include "base/sizes.h"
#include "execute/constraint.h"
#include "execute/donation_notices.h"
#include "execute/jit.h"
#include "execute/memory_for.h"
#include "execute/why_owned.h"
#include "execute/without_value.h"
#include "graph/key.h"
#include "graph/trace_state.h"
#include "ops/record.h"
#include "runtime/devices.h"
#include "shardarray/detail/maps.h"
#include "shardarray/detail/path.h"
#include "transform/trace.h"

namespace shardarray::core {

// Names outlive their functions, as tombstones point at them. The limit is for programs that make names without end.
static const char* lasting_name(const std::string& name) {
  static std::mutex m;
  static auto* names = new std::set<std::string>;
  const std::lock_guard lock(m);
  if (names->size() >= 16'384 && !names->contains(name)) return "a function";
  return names->insert(name).first->c_str();
}

struct JitCache {
  explicit JitCache(JitOptions o) : options(std::move(o)) {}
  const JitOptions options;
  TableId id;
  mutable std::mutex mutex;  ///< guards what follows
  std::unordered_map<Words, std::shared_ptr<const JitEntry>, WordsHash> entries;
  std::atomic<int> traces{0};
  bool warned = false;
  std::map<std::string, std::set<std::string>> statics;  ///< path -> values so far, eight at most
};

std::shared_ptr<JitCache> make_jit_cache(JitOptions&& options) {
  return std::make_shared<JitCache>(std::move(options));
}
std::shared_ptr<JitCache> make_jit_cache() { return make_jit_cache(JitOptions{}); }
std::shared_ptr<JitCache> make_pmap_cache(const std::vector<int>& static_args,
                                          const std::vector<int>& donate_args) {
  return make_jit_cache(
      {.name = "pmap", .static_args = static_args, .donate_args = donate_args, .relocate = true});
}
const JitOptions& jit_options(const JitCache& c) { return c.options; }
std::size_t jit_cache_size(const JitCache& c) {
  const std::lock_guard lock(c.mutex);
  return c.entries.size();
}
int jit_traces(const JitCache& c) { return c.traces; }

void JitCall::leaf(const Array& a, Array* moved_handle, bool option_donated, const Path& path) {
  if (const char* const donor = a.node()->donor())
    refuse_donated(fmt::format("{}: argument {}", function, path.text()), a, donor);
  leaves.push_back(a);
  moved.push_back(moved_handle);
  dies.push_back(option_donated);
  const Type& t = type_of(a);
  word(static_cast<std::uint64_t>(t.dtype) | static_cast<std::uint64_t>(t.weak) << 8 |
       static_cast<std::uint64_t>(t.shape.size()) << 9 |
       static_cast<std::uint64_t>(moved_handle != nullptr) << 32 |
       static_cast<std::uint64_t>(option_donated) << 33);
  for (std::int64_t d : t.shape) word(static_cast<std::uint64_t>(d));
}

// ---------------------------------------------------------------- tracing
struct JitTrace::State {
  PrintTime time{"trace"};
  OpenTrace open;
  ValueAlone derivatives{false};  // the trace is cached, also for calls that are differentiated
  Arrays placeholders, given;
};

JitTrace::JitTrace(const JitCall& call, const JitOptions& options) : state_(std::make_unique<State>()) {
  for (std::size_t k = 0; k < call.leaves.size(); k++) {
    const Array p = placeholder(type_of(call.leaves[k]));
    if (options.in_shardings) check_fits(p, *options.in_shardings, call.paths.at(k), call.function);
    state_->placeholders.push_back(p);
    state_->given.push_back(options.in_shardings ? constrain(p, *options.in_shardings) : p);
  }
}
JitTrace::~JitTrace() = default;
const Arrays& JitTrace::placeholders() const { return state_->given; }

// Warns once, after 8 traces that differ in one static value.
static void warn_about_statics(JitCache& c, const JitCall& call) {
  constexpr std::size_t most_paths = 1024;  // for trees that change all the time
  if (c.warned) return;
  for (const auto& [path, value] : call.statics) {
    if (c.statics.size() >= most_paths && !c.statics.contains(path)) continue;
    std::set<std::string>& values = c.statics[path];
    values.insert(value);
    if (values.size() < 8) continue;
    std::string text;
    for (const std::string& v : values) text += (text.empty() ? "" : ", ") + v;
    fmt::print(
        stderr,
        "shardarray: {}: traced {} times because the static value {} differs ({}). Pass it as an Array.\n",
        call.function, c.traces, path, text);
    c.warned = true;
    c.statics.clear();
    return;
  }
}

// Collectives refer to the axes in scope, so a trace inside a map serves this call only.
static bool keeps_traces() { return trace_state().axes.empty(); }
// Captured arrays of an open trace or gradient differ at the next call; values that this trace made from host data do not.
static bool is_passing(const Array& captured, std::uint64_t trace) {
  const TraceState& state = trace_state();
  const Node& n = *captured.node();
  if (n.trace == trace && n.evaluated()) return false;
  if (others_differentiate() && foreign_gradient(n) != 0) return true;
  return state.is_open(n.trace) || (!state.gradients.empty() && n.seq >= state.gradients.front());
}

std::shared_ptr<const JitEntry> jit_find(JitCache& c, const JitCall& call) {
  if (!keeps_traces() || c.options.check) return nullptr;
  const auto found = [&](std::shared_ptr<const JitEntry> e) {
    e->used.mark(static_cast<std::uint64_t>(c.traces.load(std::memory_order_relaxed)));
    return e;
  };
  if (auto last = ThreadMemo<JitEntry>::find(c.id); last && last->key == call.key)
    return found(std::move(last));
  const std::lock_guard lock(c.mutex);
  auto it = c.entries.find(call.key);
  if (it == c.entries.end()) return nullptr;
  ThreadMemo<JitEntry>::keep(c.id, it->second);
  return found(it->second);
}

static Arrays constrained(std::span<const Array> outputs, const std::optional<Sharding>& s,
                          const char* function) {
  Arrays r(outputs.begin(), outputs.end());
  for (std::size_t k = 0; s && k < r.size(); k++)
    if (r[k].has_value()) {
      check_fits(r[k], *s, "result " + std::to_string(k), function, "results");
      r[k] = constrain(r[k], *s);
    }
  return r;
}

// Throws unless this trace recorded what the first one did, captured arrays included.
static void check_same(const JitEntry& first, const JitEntry& now, const char* function) {
  if (structure(*first.graph) != structure(*now.graph) || first.captured.size() != now.captured.size())
    throw TraceError(
        fmt::format("{}: check: the function now records another program for the same arguments. A captured "
                    "value changed after the first trace. Pass it as an argument.",
                    function));
  for (std::size_t k = 0; k < now.captured.size(); k++) {
    const Array &a = first.captured[k], &b = now.captured[k];
    if (a.node() == b.node() && a.index() == b.index()) continue;
    if (type_of(a) == type_of(b) && host_elements(a, function) == host_elements(b, function)) continue;
    throw TraceError(
        fmt::format("{}: check: the captured array {} has other elements than at the first trace, whose "
                    "program is kept. Pass it as an argument.",
                    function, to_string(type_of(b))));
  }
}

std::shared_ptr<const JitEntry> jit_finish(JitCache& c, const JitCall& call, JitTrace& trace,
                                           std::span<const Array> outputs, std::shared_ptr<void> prototype) {
  JitTrace::State& s = trace.state();
  auto e = std::make_shared<JitEntry>();
  e->key = call.key;
  e->modes = &current_modes();
  e->function = lasting_name(c.options.name);
  e->paths = call.paths;
  e->graph = std::make_shared<const Graph>(
      close_graph(s.placeholders, constrained(outputs, c.options.out_shardings, call.function), s.open.id(),
                  e->captured, call.function));
  e->flat = flatten(*e->graph);
  for (const Array& o : e->graph->out) {
    e->output_present.push_back(o.has_value());
    if (o.has_value()) e->output_types.push_back(type_of(o));
  }
  for (const Array& x : e->graph->effects) {
    e->effects.push_back({x.node()->attrs().host, {}});
    for (const Array& a : x.node()->in()) e->effects.back().types.push_back(type_of(a));
  }
  for (const Array& a : call.leaves) e->tombstones.push_back(tombstone(type_of(a), e->function));
  e->prototype = std::move(prototype);
  if (c.options.relocate) e->home = constrained_devices(e->flat);
  std::unique_lock lock(c.mutex);
  const int turn = ++c.traces;
  const auto passes = [&](const Array& a) { return is_passing(a, s.open.id()); };
  if (!keeps_traces() || std::any_of(e->captured.begin(), e->captured.end(), passes)) return e;
  if (const auto it = c.entries.find(call.key); it != c.entries.end()) {
    if (c.options.check) {
      std::shared_ptr<const JitEntry> first = it->second;
      lock.unlock();  // comparing may compute
      check_same(*first, *e, call.function);
      return first;
    }
    c.entries.erase(it);
  }
  warn_about_statics(c, call);
  e->used.mark(static_cast<std::uint64_t>(turn));
  c.entries.emplace(call.key, e);
  if (c.entries.size() > c.options.max_entries)
    c.entries.erase(
        least_used(c.entries, [](const auto& entry) -> const LastUse& { return entry.second->used; }));
  return e;
}

const std::shared_ptr<void>& jit_prototype(const JitEntry& e) { return e.prototype; }

// ---------------------------------------------------------------- launching
namespace {

Arrays with_captured(const JitEntry& e, const JitCall& call) {
  Arrays all = call.leaves;
  all.insert(all.end(), e.captured.begin(), e.captured.end());
  return all;
}

// The graph's outputs in order, absent ones included.
template <class Get> Arrays spread(const JitEntry& e, Get get) {
  Arrays r;
  std::size_t k = 0;
  for (const Array& o : e.graph->out) r.push_back(o.has_value() ? get(k++) : Array());
  return r;
}

Arrays record_call(const JitEntry& e, const JitCall& call) {
  Graph g;  // without absent outputs
  g.in = e.graph->in;
  for (const Array& o : e.graph->out)
    if (o.has_value()) g.out.push_back(o);
  const Arrays all = with_captured(e, call);
  if (!e.effects.empty()) return inline_graph(*e.graph, all, true);
  const Arrays out = primitive::call(std::move(g), all);
  return spread(e, [&](std::size_t k) { return out[k]; });
}

std::string path_of(const JitEntry& e, std::size_t k) {
  return k < e.paths.size() ? e.paths[k] : std::to_string(k);
}

// Throws if an array that is donated by option is passed twice. With std::move that is safe: ownership decides.
void check_aliases(const JitEntry& e, const JitCall& call) {
  for (std::size_t k = 0; k < call.leaves.size(); k++) {
    if (!call.dies[k]) continue;
    for (std::size_t j = 0; j < call.leaves.size(); j++) {
      const Array &one = call.leaves[j], &other = call.leaves[k];
      if (j == k || one.node() != other.node() || one.index() != other.index()) continue;
      throw DonationError(fmt::format(
          "{}: Attempt to {} in the same call: arguments {} and {} are one array {}. Pass it once, or donate "
          "none.",
          call.function, call.dies[j] ? "donate the same buffer twice" : "use a buffer that was donated",
          path_of(e, std::min(j, k)), path_of(e, std::max(j, k)), to_string(type_of(call.leaves[k]))));
    }
  }
}

// Up to this size, copying costs less than reading a warning.
constexpr std::int64_t noticed_bytes = 4096;

// Warns that argument k was donated in vain, by std::move or by option.
void notice_donation(const JitEntry& e, const JitCall& call, const LoadedProgram& p,
                     const LaunchVerdict& verdict, std::size_t k) {
  const DonationVerdict& planned = p.compiled.donations[k];
  const Type& t = type_of(call.leaves[k]);
  if (bytes_of(t.shape, t.dtype) <= noticed_bytes) return;
  const auto placed = [&] { return value_of(call.leaves[k])->committed; };  // else nothing is lost
  if (!verdict.other_owner && (planned.reused || !placed())) return;
  const DonationNotice n(e.function, k, call.where);
  if (!is_news(n)) return;
  const std::string text = detail::with_place(
      fmt::format(
          "{}: donated argument {} {} not reused: {}", e.function, path_of(e, k), to_string(t),
          verdict.other_owner ? why_owned(call.leaves, e.paths, p.share_replicas, k) : planned.reason),
      call.where);
  if (!call.moved[k]) return say(n, text);
  *call.moved[k] = tombstone(t, e.function);  // its own one, which identifies the handle
  say_if_named(n, text, *call.moved[k]);
}

// The node's value dies for every handle. Others may be copying the Value; they no longer touch its memory.
void give_away(Node* n, const char* donor) {
  n->set_donor(donor);
  decltype(Value::buffers) gone;
  const std::lock_guard lock(graph_mutex());  // pending.cpp counts the bytes of buffers
  std::swap(gone, n->out()[0].value->buffers);
}

// Empties donated handles, warns about what could not be reused.
void settle_donations(const JitEntry& e, const JitCall& call, const LoadedProgram& p,
                      const std::vector<LaunchVerdict>& verdicts) {
  for (std::size_t k = 0; k < call.leaves.size(); k++) {
    if (!call.moved[k] && !call.dies[k]) continue;
    if (call.moved[k]) *call.moved[k] = e.tombstones[k];
    if (!verdicts[k].reused) notice_donation(e, call, p, verdicts[k], k);
    if (call.moved[k]) continue;
    if (verdicts[k].reused) give_away(call.leaves[k].node(), e.function);
  }
}

// The k-th result as an array: the donated leaf itself if the result is its value, as nobody else holds that leaf.
Array result_array(const JitEntry& e, JitCall& call, const LoadedProgram& p,
                   const std::vector<LaunchVerdict>& verdicts, std::size_t k, ValueRef v) {
  if (p.sources[k] >= 0) {
    const auto j = static_cast<std::size_t>(p.sources[k]);
    if (verdicts[j].reused && call.moved[j] && type_of(call.leaves[j]) == e.output_types[k]) {
      Array& leaf = call.leaves[j];
      const ValueRef& given = leaf.node()->out()[leaf.index()].value;
      if (leaf.node()->op->form == Form::leaf && given == v) return std::move(leaf);
    }
  }
  return leaf_array(e.output_types[k], std::move(v), call.where);
}

// After a failed run: what it had begun to reuse is lost, everything else survives.
void lose_donations(const JitEntry& e, const JitCall& call, const std::vector<LaunchVerdict>& verdicts) {
  for (std::size_t k = 0; k < call.leaves.size() && k < verdicts.size(); k++) {
    if (!verdicts[k].lost) continue;
    const char* donor = lasting_name(fmt::format("{}, which failed and may have overwritten it", e.function));
    if (call.moved[k]) *call.moved[k] = tombstone(type_of(call.leaves[k]), donor);
    else give_away(call.leaves[k].node(), donor);
  }
}

}  // namespace

// Moves a leaf that is bound to other devices to the program's.
static void bring_home(const DeviceOrder* home, const Type& t, LaunchLeaf& l) {
  ValueRef here = bring_home(l.value, t, home);
  if (here != l.value) l = {std::move(here)};
}

static void take_leaves(const JitEntry& e, const JitCall& call, std::vector<LaunchLeaf>& leaves) {
  leaves.clear();
  for (std::size_t k = 0; k < call.leaves.size(); k++) {
    Node* const n = call.leaves[k].node();
    const Give give = call.moved[k] ? Give::moved : call.dies[k] ? Give::option : Give::keep;
    if (is_without_value(call.leaves[k])) {  // of explain()
      leaves.push_back({placed_somewhere(call.leaves[k], e.home)});
      leaves.back().give = give;
      leaves.back().sole_owner = true;
      continue;
    }
    LaunchLeaf l{value_of(call.leaves[k])};
    l.give = give;
    const bool value_alone = l.value.use_count() == 2 && n->out().size() == 1;  // the node's and this one
    const bool handle_alone = n->refs() == 2;                                   // the caller's and the call's
    l.sole_owner = value_alone &&
                   ((l.give == Give::option && n->readers() == 0) || (l.give == Give::moved && handle_alone));
    if (l.give == Give::option) {
      l.node = n;
      l.taker = e.function;
    }
    if (e.home) bring_home(e.home, type_of(call.leaves[k]), l);
    leaves.push_back(std::move(l));
  }
  for (const Array& a : e.captured) {
    leaves.push_back(LaunchLeaf{value_of(a)});
    if (e.home) bring_home(e.home, type_of(a), leaves.back());
  }
}

void launch_leaves(const JitEntry& e, const JitCall& call, std::vector<LaunchLeaf>& leaves) {
  evaluate(call.leaves, call.function);
  evaluate(e.captured, call.function);
  take_leaves(e, call, leaves);
}

void placed_leaves(const JitEntry& e, const JitCall& call, std::vector<LaunchLeaf>& leaves) {
  {
    Arrays with_values = call.leaves;  // released before take_leaves() counts owners
    std::erase_if(with_values, is_without_value);
    evaluate(with_values, call.function);
  }
  evaluate(e.captured, call.function);
  take_leaves(e, call, leaves);
}

std::shared_ptr<const JitEntry::Placed> placed_for(const JitEntry& e, std::span<const LaunchLeaf> leaves,
                                                   const char* function) {
  const auto key = [](const LaunchLeaf& l) {
    const Value& v = *l.value;
    return is_bound(v) ? static_cast<const void*>(v.layout) : v.layout->order();
  };
  const bool share = share_replicas();
  const std::int64_t budget = memory_budget();
  using Placed = JitEntry::Placed;
  const auto fits = [&](const Placed& p) {
    bool same = p.share_replicas == share && p.memory_budget == budget;
    for (std::size_t k = 0; same && k < leaves.size(); k++) same = p.leaves[k] == key(leaves[k]);
    return same;
  };
  if (auto last = ThreadMemo<Placed>::find(e.placements); last && fits(*last)) return last;
  const auto known = [&]() -> std::shared_ptr<const Placed> {
    for (const auto& p : e.programs) {
      if (!fits(*p)) continue;
      p->used.mark(e.compiled);
      ThreadMemo<Placed>::keep(e.placements, p);
      return p;
    }
    return nullptr;
  };
  std::unique_lock lock(e.mutex);
  if (auto p = known()) return p;
  lock.unlock();  // nobody waits for another's compile
  auto placed = std::make_shared<Placed>();
  placed->share_replicas = share;
  placed->memory_budget = budget;
  std::vector<ValueRef> values;
  std::vector<bool> donated;
  for (const LaunchLeaf& l : leaves) {
    placed->leaves.push_back(key(l));
    placed->orders.push_back(l.value->layout->order()->ref());
    values.push_back(l.value);
    donated.push_back(l.give != Give::keep);
  }
  placed->program = load_program(e.flat, values, donated, {}, e.paths, *e.modes, function);
  placed->program->executable->prepare();
  lock.lock();
  if (auto p = known()) return p;
  constexpr std::size_t most = 16;
  if (e.programs.size() >= most)
    e.programs.erase(least_used(e.programs, [](const auto& p) -> const LastUse& { return p->used; }));
  placed->used.mark(++e.compiled);
  return e.programs.emplace_back(std::move(placed));
}

// Whether this thread, or another one, differentiates the call.
static bool is_differentiated(const JitEntry& e, const JitCall& call) {
  if (!trace_state().gradients.empty()) return true;
  if (!others_differentiate()) return false;
  const auto is = [](const Array& a) {
    return is_inexact(a.dtype()) && shardarray::is_differentiated(*a.node());
  };
  return std::ranges::any_of(call.leaves, is) || std::ranges::any_of(e.captured, is);
}

std::span<Array> jit_launch(const JitEntry& e, JitCall& call) {
  if (tracing() || is_differentiated(e, call)) return call.results = record_call(e, call);
  say_of_names(call.where);
  check_aliases(e, call);
  struct Storage {  // keeps its memory from call to call
    std::vector<LaunchLeaf> leaves;
    std::vector<LaunchVerdict> verdicts;
    std::vector<ValueRef> results;
  };
  auto& storage = PerThread<Storage>::get();
  Storage s = std::move(storage);  // a nested launch gets its own
  launch_leaves(e, call, s.leaves);
  const auto placed =
      detail::with_memory(call.function, 0, [&] { return placed_for(e, s.leaves, call.function); });
  const LoadedProgram& program = *placed->program;
  try {
    detail::with_memory(call.function, 0, [&] { launch(program, s.leaves, s.results, &s.verdicts); });
  } catch (const OutOfMemory& error) {
    lose_donations(e, call, s.verdicts);
    throw OutOfMemory(in_name_of(call.function, error.text()));
  } catch (...) {
    lose_donations(e, call, s.verdicts);
    throw;
  }
  s.leaves.clear();
  settle_donations(e, call, program, s.verdicts);
  std::size_t k = 0;
  for (bool present : e.output_present) {
    call.results.push_back(present ? result_array(e, call, program, s.verdicts, k, std::move(s.results[k]))
                                   : Array());
    k += present;
  }
  if (!e.effects.empty())
    run_effects(e.effects, {s.results.data() + k, s.results.size() - k}, !placed->inspected.exchange(true));
  s.results.clear();
  storage = std::move(s);
  return call.results;
}

}  // namespace shardarray::core
