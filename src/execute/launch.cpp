#include "execute/launch.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/borrowed.h"
#include "base/fence.h"
#include "base/hash.h"
#include "execute/memory_for.h"
#include "runtime/devices.h"
#include "runtime/step_ranges.h"

namespace shardarray {

namespace {

BufferRef copy_of(const LoadedProgram& p, const BufferRef& x, const Port& port, int position) {
  BufferRef fresh;
  memory_for([&] { fresh = p.backend->allocate(p.local[static_cast<std::size_t>(position)], x->bytes); },
             [&] {
               return "a copy of the argument " + to_string(Type{port.shape, port.dtype});
             });
  p.backend->copy(fresh, x, x->bytes);
  return fresh;
}

// Names the result, and the step that writes it.
std::string result_text(const Program& program, const Port& result) {
  const auto is_written = [&](const auto& body) {
    for (const auto& item : body.items)
      for (const MemoryRange& r : ranges_of(body, item).writes)
        if (std::find(result.bases.begin(), result.bases.end(), r.base) != result.bases.end()) return true;
    return false;
  };
  std::string text = "the result " + to_string(Type{result.shape, result.dtype});
  const auto last = std::find_if(program.steps.rbegin(), program.steps.rend(),
                                 [&](const Step& s) { return std::visit(is_written, s.body); });
  return last == program.steps.rend() ? text : text + " of " + spelled(last->label, last->where);
}

using Buffers = SmallVector<BufferRef, 8>;

// A leaf's buffers as the program needs them, one per instance of its input, if the value's differ.
void convert_buffers(const LoadedProgram& p, std::size_t k, const Value& v, bool same_order, Buffers& to) {
  const Port& port = p.here->inputs[k];
  const Instances want = addressable_instances(*p.inputs[k], p.share_replicas),
                  have = addressable_instances(*v.layout, v.shared);
  const std::vector<Device>&there = v.layout->order()->devices(), &here = p.order->devices();
  if (want.count() > 0 && have.count() == 0)
    throw DeviceError(fmt::format(
        "launch: {} is on {}, a device of another process. A process moves what its own devices hold. "
        "Make the array in every process, or on devices of all of them.",
        to_string(Type{port.shape, port.dtype}), to_string(there[0])));
  for (std::size_t i = 0; i < want.leader.size(); i++) {
    const auto position = static_cast<std::size_t>(want.leader[i]);
    const std::size_t source = same_order ? static_cast<std::size_t>(have.of_position[position]) : 0;
    const Device &from = there[static_cast<std::size_t>(have.leader[source])], &at = here[position];
    // Replicas in one memory share a buffer; other memories get copies.
    const bool shares = p.share_replicas && from.platform == at.platform && from.memory == at.memory;
    to.push_back(shares ? v.buffers[source] : copy_of(p, v.buffers[source], port, port.devices[i]));
  }
}

// The spelling of the results for these leaves.
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

// The temporary storage of a launch.
struct Workspace {
  std::vector<void*> bases;
  std::vector<BufferRef> scratch;
  std::vector<Buffers>
      made;  // per leaf: what the program gets in place of the value's own buffers; mostly none
  std::size_t leaves = 0;
  void clear() {
    scratch.clear();
    for (std::size_t k = 0; k < leaves; k++) made[k].clear();
  }
};

// Empty if the program has no instance of the leaf in this process.
const Buffers& leaf_buffers(const LoadedProgram& p, const Workspace& w, std::span<const LaunchLeaf> leaves,
                            std::size_t k) {
  const bool own = w.made[k].empty() && !p.here->inputs[k].bases.empty();
  return own ? leaves[k].value->buffers : w.made[k];
}

void take_scratch(const LoadedProgram& p, Workspace& w) {
  const Program& program = *p.here;
  w.bases.assign(program.base_count, nullptr);
  if (p.scratch_devices.empty()) return;
  w.scratch.resize(p.scratch_devices.size());
  memory_for([&] { p.backend->allocate(p.scratch_devices, p.scratch_bytes, w.scratch); },
             [&] {
               if (program.steps.empty()) return std::string("values that go from process to process");
               const Step& last = program.steps.back();
               return "values between the steps of " + spelled(last.label, last.where);
             });
  for (std::size_t d = 0, k = 0; k < w.scratch.size(); d++)
    if (program.scratch_bytes[d] > 0) w.bases[d] = w.scratch[k++]->data;
}

// Whether the program takes over the memory of a donated leaf: nobody else owns the value or a view of its buffers.
// An array donated by option is first marked as taken, for every handle, and then checked for owners; a reader first takes its share
// of the value and then checks the mark (value_of): so at least one of the two notices the other. What pending work may still read is
// not taken over.
bool take_over(const LaunchLeaf& l) {
  ValueRef mine;
  if (l.give == Give::option) {
    l.node->set_donor(l.taker);
    mine = l.value;
    fence_after_rmw();
  }
  bool sole = l.value.use_count() == (mine ? 3 : 2);  // the node's, the leaf's
  see_past_owners(l.value);
  if (l.give == Give::option) sole &= l.node->readers() == 0;
  const auto& buffers = l.value->buffers;
  for (std::size_t k = 0; sole && k < buffers.size(); k++) sole = buffers[k].get()->unique();
  if (!sole && l.give == Give::option) l.node->set_donor(nullptr);
  return sole;
}
void give_back(std::span<const LaunchLeaf> leaves, const std::vector<LaunchVerdict>* verdicts) {
  for (std::size_t k = 0; verdicts && k < verdicts->size(); k++)
    if (leaves[k].give == Give::option && (*verdicts)[k].reused) leaves[k].node->set_donor(nullptr);
}

void take_inputs(const LoadedProgram& p, std::span<const LaunchLeaf> leaves, Workspace& w,
                 std::vector<LaunchVerdict>* verdicts) {
  const Program& program = *p.here;
  w.leaves = leaves.size();
  if (w.made.size() < w.leaves) w.made.resize(w.leaves);
  for (std::size_t k = 0; k < leaves.size(); k++) {
    const Value& v = *leaves[k].value;
    const bool same_order = v.layout->order() == p.order || v.layout->order()->sorted() == p.order->sorted();
    const bool same_sharing = v.shared == p.share_replicas, aliased = p.aliased[k];
    const bool owned = verdicts && aliased && leaves[k].sole_owner && same_sharing && take_over(leaves[k]);
    if (verdicts && aliased) (*verdicts)[k] = {owned, !owned, false};
    if (!same_order || !same_sharing) convert_buffers(p, k, v, same_order, w.made[k]);
    if (aliased && !owned) {
      Buffers copies;
      const Buffers& from = leaf_buffers(p, w, leaves, k);
      for (std::size_t i = 0; i < from.size(); i++)
        copies.push_back(copy_of(p, from[i], program.inputs[k], program.inputs[k].devices[i]));
      w.made[k] = std::move(copies);
    }
    const Buffers& b = leaf_buffers(p, w, leaves, k);
    for (std::size_t i = 0; i < b.size(); i++) w.bases[program.inputs[k].bases[i]] = b[i]->data;
  }
}

// The results, with new memory or that of the leaves that they take over or are.
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
      const bool dies =
          leaves[j].give == Give::option && p.aliased[j];  // the old value dies, its memory stays
      if (!dies && w.made[j].empty() && v->layout == layout && v->sharding.impl() == spelled.impl() &&
          v->committed == p.committed && !v->number) {  // the very same value
        results.push_back(v);
        continue;
      }
      results.push_back(make_value(layout, spelled, p.committed, p.share_replicas));
      results.back()->buffers = leaf_buffers(p, w, leaves, j);
      results.back()->ready = v->ready;
      continue;
    }
    const auto made = static_cast<std::size_t>(p.compiled.program_output[k]);
    const Port& o = p.here->outputs[made];
    Value& v = *results.emplace_back(make_value(layout, spelled, p.committed, p.share_replicas));
    v.buffers.resize(o.bytes.size());
    memory_for([&] { p.backend->allocate(p.output_devices[made], o.bytes, v.buffers); },
               [&] { return result_text(*p.here, o); });
    for (std::size_t i = 0; i < o.bytes.size(); i++) w.bases[o.bases[i]] = v.buffers[i]->data;
  }
}

// Arguments, and literals of lines outside of jit.
std::uint64_t numbers_of(std::span<const LaunchLeaf> leaves) {
  std::uint64_t hash = 0;
  for (const LaunchLeaf& l : leaves)
    if (l.value->number) hash = hash_mix(hash, l.value->bits);
  return hash;
}

}  // namespace

const char* keeps_its_memory(const Value& v, bool share_replicas) {
  if (v.shared != share_replicas)
    return v.shared ? "its replicas share memory" : "its replicas have memory of their own";
  const auto is_foreign = [](const BufferRef& b) { return b->give_back != nullptr; };
  if (std::any_of(v.buffers.begin(), v.buffers.end(), is_foreign)) return "its memory is not the library's";
  std::set<const Buffer*> all;
  for (const BufferRef& b : v.buffers)
    if (!all.insert(b.get()).second) return "its pieces share memory";
  return nullptr;
}

void launch(const LoadedProgram& p, std::span<const LaunchLeaf> leaves, std::vector<ValueRef>& results,
            std::vector<LaunchVerdict>* verdicts, RunReport* report) {
  const Borrowed<Workspace> borrowed;
  Workspace& w = *borrowed;
  results.clear();
  if (verdicts) verdicts->assign(leaves.size(), {});
  try {
    take_scratch(p, w);
    take_inputs(p, leaves, w, verdicts);
    make_results(p, leaves, w, results);
  } catch (...) {
    give_back(leaves, verdicts);
    throw;
  }
  if (p.idle) return;
  const auto lose = [&] {
    results.clear();
    if (verdicts)
      for (LaunchVerdict& v : *verdicts) v.lost = v.reused;
  };
  try {
    const CompletionRef done = p.executable->run(w.bases, report, p.is_part() ? numbers_of(leaves) : 0);
    if (report) wait(done);
    for (std::size_t k = 0; done && k < results.size(); k++)
      if (p.compiled.program_output[k] >= 0) results[k]->ready = done;
  } catch (Error& e) {  // thrown by a worker, which does not know the call
    e.add_place(detail::call_site.place());
    lose();
    throw;
  } catch (...) {
    lose();
    throw;
  }
}

}  // namespace shardarray
