#include "compile/lives.h"

#include <algorithm>
#include <limits>

#include "base/at.h"

namespace shardarray {

namespace {

class Liveness {
 public:
  Liveness(const Partition& p, const Fusion& f, const std::vector<GroupKernel>& kernels, Addresses& at)
      : p_(p), f_(f), kernels_(kernels), at_(at) {}

  Lives run() {
    for (int v : p_.inputs) lives_[v] = {-1, -1};
    for (std::size_t k = 0; k < f_.groups.size(); k++) {
      const auto [begin, end] = at_once(static_cast<int>(k));
      const Group& x = f_.groups[k];
      for (int v : x.roots) {
        lives_.try_emplace(at_.storage(v).memory, Life{begin, begin});
        use(v, end);
      }
      if (x.loop) {
        for (const KernelAccess& a : kernels_[k].args) use(a.value, end);
      } else {
        for (int s : x.steps)
          for (int v : at(p_.steps, s).in) use(v, end);
        need_arenas(k);
      }
    }
    for (int v : p_.outputs) lives_[at_.storage(v).memory].last = std::numeric_limits<int>::max();
    return std::move(lives_);
  }

 private:
  void use(int v, int group) {
    const int m = at_.storage(v).memory;
    Life& l = lives_[m];
    l.last = std::max(l.last, group);
    at_.memory(m);
  }

  int transfer_of(int group) const {
    const Group& x = at(f_.groups, group);
    return x.loop ? -1 : at(p_.steps, x.steps[0]).transfer;
  }
  // The first and the last group of its step: those that share its transfer. The result of one must not overlap what another one still
  // reads.
  std::pair<int, int> at_once(int group) const {
    int begin = group, end = group;
    const auto same = [&, transfer = transfer_of(group)](int other) {
      return transfer >= 0 && other >= 0 && other < std::ssize(f_.groups) && transfer_of(other) == transfer;
    };
    while (same(begin - 1)) begin--;
    while (same(end + 1)) end++;
    return {begin, end};
  }

  // Arenas for the programs that group k calls, live during the call; they run one at a time.
  void need_arenas(std::size_t k) {
    const int node = at(p_.steps, f_.groups[k].steps[0]).node;
    std::vector<std::uint64_t> bytes;
    const auto need = [&](const Compiled& c) {
      const std::vector<std::uint64_t>& some = c.program->scratch_bytes;
      bytes.resize(some.size());
      for (std::size_t d = 0; d < some.size(); d++) bytes[d] = std::max(bytes[d], some[d]);
    };
    if (const auto called = p_.iterations.find(node); called != p_.iterations.end())
      need(*called->second.compiled);
    if (const auto called = p_.branches.find(node); called != p_.branches.end())
      for (const auto& c : called->second.programs) need(*c);
    if (bytes.empty()) return;
    Memory arenas;
    for (std::size_t d = 0; d < bytes.size(); d++) arenas.device.push_back(static_cast<int>(d));
    arenas.refs.resize(bytes.size());
    arenas.bytes = bytes;
    at(at_.all(), at_.scratch_of(k)) = std::move(arenas);
    lives_[at_.scratch_of(k)] = {static_cast<int>(k), static_cast<int>(k)};
  }

  const Partition& p_;
  const Fusion& f_;
  const std::vector<GroupKernel>& kernels_;
  Addresses& at_;
  Lives lives_;
};

}  // namespace

Lives lives_of(const Partition& p, const Fusion& f, const std::vector<GroupKernel>& kernels, Addresses& at) {
  return Liveness(p, f, kernels, at).run();
}

}  // namespace shardarray
