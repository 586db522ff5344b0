#include "compile/largest.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/at.h"

namespace shardarray {

void find_largest(const Partition& p, const Fusion& f, Addresses& addresses, const std::vector<int>& outputs,
                  const Lives& temporary, const Program& program, Compiled& out) {
  constexpr std::size_t most = 10;
  const auto busiest =
      static_cast<int>(std::ranges::max_element(program.peak_bytes) - program.peak_bytes.begin());
  const auto add = [&](HeldMemory held, const std::vector<int>& devices,
                       const std::vector<std::uint64_t>& bytes) {
    for (std::size_t i = 0; i < devices.size(); i++)
      if (devices[i] == busiest) held.bytes += bytes[i];
    if (held.bytes > 0) out.largest.push_back(held);
  };
  for (std::size_t k = 0; k < program.inputs.size(); k++)
    add({HeldMemory::Kind::argument, static_cast<int>(k), p.inputs[k], 0}, program.inputs[k].devices,
        program.inputs[k].bytes);
  for (std::size_t k = 0; k < out.program_output.size(); k++)
    if (const int o = out.program_output[k]; o >= 0 && at(program.outputs, o).alias < 0)
      add({HeldMemory::Kind::result, static_cast<int>(k), at(outputs, o), 0}, at(program.outputs, o).devices,
          at(program.outputs, o).bytes);

  std::vector<std::uint64_t> alive(f.groups.size() + 1, 0);  // first as differences
  for (const auto& [m, life] : temporary) {
    const Memory& memory = at(addresses.all(), m);
    for (std::size_t i = 0; i < memory.device.size(); i++)
      if (memory.device[i] == busiest)
        at(alive, life.first) += memory.bytes[i], at(alive, life.last + 1) -= memory.bytes[i];
  }
  std::partial_sum(alive.begin(), alive.end(), alive.begin());
  const auto worst = static_cast<int>(std::ranges::max_element(alive) - alive.begin());
  for (const auto& [m, life] : temporary) {
    if (life.first > worst || life.last < worst) continue;
    const Memory& memory = at(addresses.all(), m);
    const bool is_value = m < std::ssize(p.values);
    const int value =
        is_value ? m : at(p.steps, at(f.groups, m - static_cast<int>(p.values.size())).steps[0]).out[0];
    add({is_value ? HeldMemory::Kind::temporary : HeldMemory::Kind::scratch, 0, value, 0}, memory.device,
        memory.bytes);
  }
  std::ranges::stable_sort(out.largest, std::greater<>(), &HeldMemory::bytes);
  if (out.largest.size() > most) out.largest.resize(most);
}

}  // namespace shardarray
