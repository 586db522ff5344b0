// The static memory plan: donated inputs become outputs, temporaries get offsets in their device's arena.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/addresses.h"
#include "compile/in_place.h"
#include "compile/index_map.h"
#include "compile/largest.h"
#include "compile/lay_in_result.h"
#include "compile/lives.h"
#include "compile/scratch_plan.h"
#include "layout/spelling.h"
#include "shardarray/error.h"

namespace shardarray {

namespace {

class Planner {
 public:
  Planner(const Partition& p, const Fusion& f, const FlatGraph& g, const std::vector<GroupKernel>& kernels,
          const CompileInput& in, Addresses& at, Program& program, Compiled& out)
      : p_(p), f_(f), g_(g), kernels_(kernels), in_(in), at_(at), program_(program), out_(out) {}

  void run() {
    lives_ = lives_of(p_, f_, kernels_, at_);
    ports();
    alias_donated();
    place_outputs();
    check_total();
    lay_in_others();
    lay_in_unmade_results();
    scratch_->give_addresses(temporary());
    place_within();
    peaks();
    find_largest(p_, f_, at_, output_values_, temporary(), program_, out_);
  }

 private:
  Port port(int v) {
    const LocalValue& x = at_.value(v);
    Port port{x.type.shape, x.type.dtype, x.layout, {}, {}, {}, -1};
    const Memory& m = at_.memory(v);
    port.bytes = m.bytes;
    port.devices = m.device;
    port.bases.resize(m.refs.size());
    return port;
  }

  void take_bases(Port& port, Memory& m) {
    for (std::size_t i = 0; i < m.refs.size(); i++) {
      port.bases[i] = program_.base_count++;
      m.refs[i] = {port.bases[i], 0};
    }
  }

  void ports() {
    program_.base_count = static_cast<std::uint32_t>(in_.order->size());
    for (int v : p_.inputs) {
      program_.inputs.push_back(port(v));
      take_bases(program_.inputs.back(), at_.memory(v));
    }
    for (int v : p_.outputs) {
      const int input = at(p_.values, v).input;
      out_.forwarded.push_back(input);
      out_.output_layouts.push_back(at(p_.values, v).layout);
      if (input >= 0) {
        out_.program_output.push_back(-1);
        continue;
      }
      out_.program_output.push_back(static_cast<int>(output_values_.size()));
      output_values_.push_back(v);
      program_.outputs.push_back(port(v));
    }
  }

  // Whether memory m may overwrite input value i. `within`: m is somewhere inside it.
  bool may_reuse(int m, int i, const Within* within = nullptr) {
    const Life made = lives_[m], read = lives_[i];
    if (read.last < made.first) return true;
    if (read.last != made.first) return false;
    const Group& x = at(f_.groups, made.first);
    if (!x.loop)
      return within == nullptr &&
             (carries_on(at(p_.steps, x.steps[0]), m, i) || writes_over(at(p_.steps, x.steps[0]), m, i));
    const GroupKernel& k = at(kernels_, made.first);
    // What is stored: v itself, or what v is a view of. The parts of complex numbers are separate arguments.
    for (std::size_t output = 0; output < k.args.size(); output++) {
      const KernelAccess& written = k.args[output];
      if (!written.output || at_.storage(written.value).memory != m) continue;
      for (std::size_t j = 0; j < k.args.size(); j++) {
        const KernelAccess& a = k.args[j];
        if (a.output || at_.storage(a.value).memory != i) continue;
        if (!same_places(k, a, written, within)) return false;
        if (a.part == written.part && !may_overwrite(k.kernel, static_cast<int>(j), static_cast<int>(output)))
          return false;
      }
    }
    return true;
  }

  // Whether the loop reads one exactly where it writes the other, at every point on every device.
  bool same_places(const GroupKernel& k, const KernelAccess& read, const KernelAccess& written,
                   const Within* within) {
    if (read.indirect >= 0) return false;
    const LocalValue &from = at_.value(at_.storage(read.value).geometry),
                     &to = at_.value(at_.storage(written.value).geometry);
    if (within == nullptr && read.map == written.map && from.layout == to.layout &&
        from.type.shape == to.type.shape && from.windows == to.windows)
      return true;
    const auto rank = static_cast<std::size_t>(k.kernel.outer + k.kernel.inner);
    const auto walk = [&](const KernelAccess& a, int p) {
      return tile_walk(a, at_.stored_tile(a.value, p), rank);
    };
    for (int p = 0; p < in_.order->size(); p++) {
      TileWalk written_walk = walk(written, p);
      if (within != nullptr && !within->places.empty())
        written_walk.origin +=
            static_cast<std::int64_t>(within->places[at_.instance(written.value, p)].offset /
                                      itemsize(at_.value(written.value).type.dtype));
      if (walk(read, p) != written_walk) return false;
    }
    return true;
  }

  // Whether input i is only an initial carry, of a loop that does not write m in its first iteration.
  bool carries_on(const LocalStep& s, int m, int i) const {
    const auto called = p_.iterations.find(s.node);
    if (called == p_.iterations.end()) return false;
    const Iteration& it = called->second.iteration;
    if (it.length % 2 != 0) return false;  // the first iteration writes where the last one does
    const auto is_input = [&](int v) { return at_.storage(v).memory == i; };
    for (std::size_t k = 0; k < it.carries; k++)
      if (at_.storage(s.out[k]).memory == m)
        return is_input(s.in[it.constants + k]) && std::count_if(s.in.begin(), s.in.end(), is_input) == 1;
    return false;
  }

  // Whether m is input i with a part overwritten.
  bool writes_over(const LocalStep& s, int m, int i) const {
    const std::vector<InPlace> all = in_place_of(s, p_, g_, f_.storage);
    return std::any_of(all.begin(), all.end(), [&](const InPlace& x) {
      return at_.storage(s.in[x.operand]).memory == i && at_.storage(s.out[x.result]).memory == m;
    });
  }

  void alias_donated() {
    out_.donations.resize(p_.inputs.size());
    std::vector<bool> taken(p_.inputs.size(), false), fits(p_.inputs.size(), false);
    const std::set<int> outputs(p_.outputs.begin(), p_.outputs.end());
    const auto forwarded = [&](std::size_t i) { return outputs.contains(p_.inputs[i]); };
    std::vector<std::size_t> donated;
    for (std::size_t i = 0; i < p_.inputs.size(); i++)
      if (in_.donated[i] && !forwarded(i)) donated.push_back(i);
    for (std::size_t k = 0; k < output_values_.size(); k++) {
      const LocalValue& o = at_.value(output_values_[k]);
      const auto reused = std::find_if(donated.begin(), donated.end(), [&](std::size_t i) {
        const LocalValue& x = at_.value(p_.inputs[i]);
        if (x.layout != o.layout || !(x.type.shape == o.type.shape) || x.type.dtype != o.type.dtype)
          return false;
        if (!in_.written_over.empty() && in_.written_over[k] != static_cast<int>(i)) return false;
        fits[i] = true;
        return may_reuse(at_.storage(output_values_[k]).memory, p_.inputs[i]);
      });
      if (reused == donated.end()) continue;
      taken[*reused] = true;
      program_.outputs[k].alias = static_cast<int>(*reused);
      donated.erase(reused);
    }
    for (std::size_t i = 0; i < p_.inputs.size(); i++) {
      DonationVerdict& d = out_.donations[i];
      d.reused = taken[i] || forwarded(i);
      if (!d.reused)
        d.reason = fits[i] ? "it is still read after its replacement is written"
                           : "no output of that size and sharding" + that_lies_elsewhere(i);
    }
  }

  // The first result without reused memory that would have taken that of input i, had it been left in the input's layout.
  std::string that_lies_elsewhere(std::size_t i) const {
    const LocalValue& x = at_.value(p_.inputs[i]);
    for (std::size_t k = 0; k < output_values_.size(); k++) {
      const LocalValue& o = at_.value(output_values_[k]);
      if (program_.outputs[k].alias >= 0 || o.type.shape != x.type.shape || o.type.dtype != x.type.dtype)
        continue;
      return fmt::format(": result {} lies as {}, not {}. out_shardings says where it is left", k,
                         spec_text(*o.layout, in_.mesh), spec_text(*x.layout, in_.mesh));
    }
    return "";
  }

  void place_outputs() {
    for (std::size_t k = 0; k < output_values_.size(); k++) {
      Memory& m = at_.memory(output_values_[k]);
      Port& port = program_.outputs[k];
      if (port.alias < 0) {
        take_bases(port, m);
      } else {
        port.bases = at(program_.inputs, port.alias).bases;
        for (std::size_t i = 0; i < m.refs.size(); i++) m.refs[i] = {port.bases[i], 0};
        aliases_[at_.storage(output_values_[k]).memory] = at(p_.inputs, port.alias);
      }
      placed_.insert(at_.storage(output_values_[k]).memory);
    }
  }

  // Values that are used last by being gathered, assembled or overwritten by a loop are made in the memory of the result: in that of
  // program results, and of temporaries if the busiest device then needs no more.
  void lay_in_others() {
    lay_in_results(false);
    place_scratch();
    const Lives lives = lives_;
    const auto placed = placed_;
    const std::size_t in_results = within_.size();
    lay_in_results(true);
    if (within_.size() == in_results) return;
    const auto before = needed();
    place_scratch();
    if (needed() <= before) return;
    lives_ = lives;
    placed_ = placed;
    for (; within_.size() > in_results; within_.pop_back()) hosts_.erase(within_.back().memory);
    place_scratch();
  }

  // Until a result is written, its memory holds large temporaries that end before, the last ones first.
  void lay_in_unmade_results() {
    if (in_.is_run)
      return;  // an iteration's results are anywhere in those of all iterations, aligned only for their elements
    constexpr std::uint64_t large = 1 << 16;
    std::vector<std::pair<int, int>> by_end;  // the last group of a memory, the memory
    for (const auto& [m, life] : temporary())
      if (m < std::ssize(p_.values) && std::ranges::max(at(at_.all(), m).bytes) >= large)
        by_end.emplace_back(life.last, m);
    if (by_end.empty()) return;
    std::ranges::sort(by_end, std::greater());
    const auto before = needed();
    const Lives lives = lives_;
    const auto most = [&] { return std::ranges::max(scratch_->held(temporary(), f_.groups.size())); };
    const std::uint64_t held = most();
    std::vector<Within> fresh;
    for (const int v : output_values_) {
      const int result = at_.storage(v).memory;
      const auto given = aliases_.find(result);  // the input whose memory it takes
      const int free = given == aliases_.end() ? -1 : lives_[given->second].last;
      int first = lives_[result].first;
      for (auto& [last, m] : by_end) {
        if (m < 0 || last >= first || lives_[m].first <= free) continue;
        auto w = room_for(m, result);
        if (!w) continue;
        settle(*w);
        fresh.push_back(std::move(*w));
        first = lives_[m].first;
        m = -1;
      }
    }
    if (fresh.empty()) return;
    const bool holds_less = most() < held;
    if (holds_less) place_scratch();
    if (holds_less && needed() < before) {  // before what lies in them
      within_.insert(within_.begin(), std::move_iterator(fresh.begin()), std::move_iterator(fresh.end()));
      return;
    }
    lives_ = lives;
    for (const Within& w : fresh) {
      placed_.erase(w.memory);
      hosts_.erase(w.memory);
    }
    if (holds_less) place_scratch();
  }

  // At the start of the result's instances, on the same devices, if it fills at least half of each.
  std::optional<Within> room_for(int m, int result) {
    const Memory &memory = at(at_.all(), m), &host = at(at_.all(), result);
    const auto fits = [&](std::size_t i) {
      return host.bytes[i] >= memory.bytes[i] && host.bytes[i] / 2 <= memory.bytes[i];
    };
    if (!fits(0) || memory.device != host.device) return std::nullopt;
    for (std::size_t i = 0; i < memory.device.size(); i++)
      if (!fits(i)) return std::nullopt;
    return Within{m, result, {}};
  }

  // Peak bytes of the busiest device, then bytes of all scratch.
  std::pair<std::uint64_t, std::uint64_t> needed() {
    peaks();
    return {std::ranges::max(program_.peak_bytes),
            std::accumulate(program_.scratch_bytes.begin(), program_.scratch_bytes.end(), std::uint64_t{0})};
  }

  // Last groups first: hosts are placed before what lies in them.
  void lay_in_results(bool temporary) {
    for (int k = static_cast<int>(f_.groups.size()) - 1; k >= 0; k--) {
      const Group& group = at(f_.groups, k);
      std::set<int> hosts;
      for (const int v : group.roots) {
        const int host = at_.storage(v).memory;
        if (host >= 0 && lives_.at(host).first == k && placed_.contains(root_of(host)) != temporary)
          hosts.insert(host);
      }
      for (const int host : hosts) {
        if (group.loop) lay_operand_below(k, host);
        else if (const LocalStep& s = at(p_.steps, group.steps[0]); s.out.size() == 1)
          lay_parts_in(k, s, host);
      }
    }
  }

  // Puts what is gathered or assembled into the result.
  void lay_parts_in(int group, const LocalStep& s, int host) {
    std::map<int, int> reads;  // memory -> how often
    for (const int v : s.in) reads[at_.storage(v).memory]++;
    PartPlaces places(s, g_, at_, align_);
    for (std::size_t operand = 0; operand < s.in.size(); operand++) {
      const int memory = at_.storage(s.in[operand]).memory;
      if (memory < 0 || memory == host || reads[memory] > 1 || !ends_in(memory, group)) continue;
      if (auto within = places.within(operand)) lie_within(std::move(*within));
    }
  }

  // Lets a loop overwrite one of the operands that it is the last to read.
  void lay_operand_below(int group, int host) {
    for (const KernelAccess& a : at(kernels_, group).args) {
      const int memory = at_.storage(a.value).memory;
      if (a.output || memory == host || !ends_in(memory, group)) continue;
      if (!are_alike(memory, host) || !may_reuse(host, memory)) continue;
      if (lie_within({memory, host, {}})) return;
    }
  }

  // Whether both have instances on the same devices, of the same sizes.
  bool are_alike(int memory, int other) {
    const LocalValue &x = at_.value(memory), &y = at_.value(other);
    const Memory &a = at(at_.all(), memory), &b = at(at_.all(), other);
    return x.type.dtype == y.type.dtype && x.layout->order() == y.layout->order() && a.bytes == b.bytes &&
           a.instances->of_position == b.instances->of_position;
  }

  bool lie_within(Within w) {
    const int root = root_of(w.host);
    if (!may_lie_within(w, root)) return false;
    settle(w);
    within_.push_back(std::move(w));
    return true;
  }

  // All memories that contain it live from its first use on.
  void settle(const Within& w) {
    const int first = lives_[w.memory].first;
    hosts_[w.memory] = w.host;
    for (auto host = hosts_.find(w.memory); host != hosts_.end(); host = hosts_.find(host->second))
      lives_[host->second].first = std::min(lives_[host->second].first, first);
    placed_.insert(w.memory);
  }

  // The outermost memory that contains it.
  int root_of(int memory) const {
    for (auto host = hosts_.find(memory); host != hosts_.end(); host = hosts_.find(memory))
      memory = host->second;
    return memory;
  }

  // Whether that group is the last reader of this temporary memory.
  bool ends_in(int memory, int group) {
    const Life& life = lives_.at(memory);
    return is_temporary(memory, life) && life.last == group;
  }

  bool may_lie_within(const Within& w, int root) {
    if (const auto alias = aliases_.find(root); alias != aliases_.end()) {
      const int input = alias->second;
      if (lives_[input].last >= lives_[w.memory].first && (w.host != root || !may_reuse(w.memory, input, &w)))
        return false;
    }
    return placed_.contains(root) || takes_no_more(w, root);
  }

  // A host lives from the first use of what lies in it: whether the arena need not grow for that.
  bool takes_no_more(const Within& w, int root) {
    const int first = lives_[w.memory].first, begins = lives_[root].first;
    if (first >= begins) return true;
    if (alive_.empty()) alive_ = scratch_->held(temporary(), f_.groups.size());
    std::vector<std::uint64_t> more(static_cast<std::size_t>(in_.order->size()), 0);  // by device
    const Memory &source = at_.memory(w.memory), &host = at_.memory(root);
    for (std::size_t i = 0; i < host.device.size(); i++) at(more, host.device[i]) += host.bytes[i];
    for (std::size_t i = 0; i < source.device.size(); i++) {
      std::uint64_t& bytes = at(more, source.device[i]);
      bytes -= std::min(bytes, source.bytes[i]);
    }
    const std::uint64_t most = std::ranges::max(more);
    const auto lo = alive_.begin() + first, hi = alive_.begin() + begins;
    if (*std::max_element(lo, hi) + most > *std::ranges::max_element(alive_)) return false;
    for (auto it = lo; it != hi; ++it) *it += most;
    return true;
  }

  bool is_temporary(int m, const Life& life) const { return life.first >= 0 && !placed_.contains(m); }

  Lives temporary() const {
    Lives r;
    for (const auto& [m, life] : lives_)
      if (is_temporary(m, life)) r.emplace_hint(r.end(), m, life);
    return r;
  }

  // Hosts come first.
  void place_within() {
    for (const Within& w : within_) {
      const Memory& host = at_.memory(w.host);
      Memory& memory = at_.memory(w.memory);
      if (w.places.empty()) memory.refs = host.refs;
      for (std::size_t i = 0; i < w.places.size(); i++) {
        memory.refs[i] = host.refs[w.places[i].instance];
        memory.refs[i].offset += w.places[i].offset;
      }
    }
  }

  // Keeps all sums of bytes below within 64 bits.
  void check_total() {
    std::int64_t total = 0;
    for (const Memory& memory : at_.all())
      for (const std::uint64_t bytes : memory.bytes)
        total = add_sizes(total, static_cast<std::int64_t>(bytes + align_));
    if (total == std::numeric_limits<std::int64_t>::max())
      throw OutOfMemory(
          "compile: the values that the program stores take 2^63 bytes or more. No device has that much. Use "
          "smaller shapes.");
  }

  void place_scratch() {
    const Lives all = temporary();
    if (!scratch_) scratch_.emplace(at_.all(), all, static_cast<std::size_t>(in_.order->size()), align_);
    program_.scratch_bytes = scratch_->place(all);
  }

  void peaks() {
    program_.peak_bytes = program_.scratch_bytes;
    auto add = [&](const Port& port) {
      for (std::size_t i = 0; i < port.bytes.size(); i++)
        at(program_.peak_bytes, port.devices[i]) += port.bytes[i];
    };
    for (const Port& x : program_.inputs) add(x);
    for (const Port& x : program_.outputs)
      if (x.alias < 0) add(x);
  }

  const Partition& p_;
  const Fusion& f_;
  const FlatGraph& g_;
  const std::vector<GroupKernel>& kernels_;
  const CompileInput& in_;
  const std::uint64_t align_ = static_cast<std::uint64_t>(in_.target->alignment);
  Addresses& at_;
  Program& program_;
  Compiled& out_;
  Lives lives_;
  std::optional<ScratchPlan> scratch_;
  std::vector<int> output_values_;
  std::set<int> placed_;              // memories without their own place in scratch
  std::map<int, int> aliases_;        // memory of a result -> the donated input that it overwrites
  std::vector<Within> within_;        // hosts come first
  std::map<int, int> hosts_;          // the same: memory -> host
  std::vector<std::uint64_t> alive_;  // by group: temporary bytes of the fullest device, or a little more
};

}  // namespace

void assign_addresses(const Partition& p, const Fusion& f, const FlatGraph& g,
                      const std::vector<GroupKernel>& kernels, const CompileInput& in, Addresses& at,
                      Program& program, Compiled& out) {
  Planner(p, f, g, kernels, in, at, program, out).run();
}

}  // namespace shardarray
