// Compares explain() with the program that runs.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "execute/machine_times.h"
#include "host_decides.h"
#include "shardarray/explain.h"
#include "shardarray/machine.h"

namespace shardarray::testing {

/// Numbers of explain() that are wrong for a call that runs `c`.
inline std::string not_so(const Explanation& said, const Compiled& c) {
  std::string text;
  const auto check = [&](const char* what, std::int64_t is_said, std::int64_t is) {
    if (is_said != is) text += fmt::format("{}: {}, explained were {}; ", what, is, is_said);
  };
  const Program& program = *c.program;
  std::vector<std::int64_t> steps(static_cast<std::size_t>(program.order->size()), 0);
  bool calls = false;
  for (const Step& s : program.steps)
    std::visit(
        [&]<class Body>(const Body& body) {
          calls |= std::is_same_v<Body, ProgramCall> || std::is_same_v<Body, ProgramChoice> ||
                   std::is_same_v<Body, ProgramLoop>;
          std::set<int> devices;
          for (const auto& item : body.items)
            if constexpr (requires { item.device; }) devices.insert(item.device);
          for (const int d : devices) steps[static_cast<std::size_t>(d)]++;
        },
        s.body);
  if (!calls) check("steps", said.steps_per_device, std::ranges::max(steps));
  check("flops", said.flops, static_cast<std::int64_t>(c.flops));
  static const Machine& m = *new Machine(machine("h200x64"));
  const double seconds = MachineTimes(program, m).compute_seconds(),
               said_seconds = said.on(m).compute_seconds;
  if (std::abs(seconds - said_seconds) > 1e-9 * seconds)
    text += fmt::format("{} seconds of steps, explained were {}; ", seconds, said_seconds);
  check("bytes of the busiest device", said.peak_bytes_per_device,
        static_cast<std::int64_t>(std::ranges::max(program.peak_bytes)));
  return text;
}

}  // namespace shardarray::testing
