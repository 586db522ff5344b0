// All aims of bench/device.cpp on a GPU; those against JAX are in bench/peers/rows.py.
#pragma once
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bench {

struct Aim {
  std::string_view row;
  double limit;
};

/// At least this part of the GPU's own rate: of its copy, of cuBLASLt alone, of cuRAND. Normal draws have no aim: cuRAND's are other
/// numbers, which are cheaper.
constexpr Aim rate_aims[] = {{"x + 1", 0.90},
                             {"gelu", 0.90},
                             {"gelu bfloat16", 0.90},
                             {"gelu float16", 0.90},
                             {"adam, 7 reads and writes", 0.90},
                             {"softmax of rows", 0.85},
                             {"layer norm", 0.85},
                             {"sums of rows", 0.85},
                             {"transpose + 1", 0.75},
                             {"uniform draws, philox", 0.90},
                             {"product float32", 0.97},
                             {"product TF32", 0.97},
                             {"product bfloat16", 0.97}};
/// Seconds, at most.
constexpr Aim time_aims[] = {{"the document's step as one kernel", 12e-6},
                             {"the document's step as one kernel, host alone", 5e-6},
                             {"the document's step as a cluster's kernel", 25e-6},
                             {"the document's step as a cluster's kernel, host alone", 5e-6},
                             {"the document's step as a graph", 25e-6},
                             {"the document's step as a graph, host alone", 5e-6},
                             {"the document's step, large batch, host alone", 5e-6},
                             {"first call of the document's step, kernels compiled", 1.5},
                             {"first call of the document's step, kernels from the disk", 0.2},
                             {"first result of a new expression, interpreted", 1e-3},
                             {"start on the CPU, more with the plug-in", 5e-3}};
/// At most this multiple of the time on one device.
constexpr double aim_of_one_device = 1.10;
/// At most these ratios of memory: what a step uses to what `explain` says, what is held to the most that was in use.
constexpr double aim_of_explained = 1.0, aim_of_held = 2.0;

inline std::optional<double> aim_of(std::span<const Aim> aims, std::string_view row) {
  for (const Aim& a : aims)
    if (a.row == row) return a.limit;
  return std::nullopt;
}

/// Two cells of a table: the aim, and whether it is met.
inline std::string verdict(const std::string& aim, bool met) {
  return fmt::format(" {} | {} |", aim, met ? "met" : "MISSED");
}
inline std::string no_verdict() { return " | |"; }
inline std::string at_least(double limit, double ratio) {
  return verdict(fmt::format(">= {:.2f}", limit), ratio >= limit);
}
inline std::string at_most(double limit, double ratio) {
  return verdict(fmt::format("<= {:.2f}", limit), ratio <= limit);
}

}  // namespace bench
