// Printed kernels, compiled for the host.
#pragma once
#include <array>
#include <future>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/printer.h"
#include "cuda_launches.h"
#include "cuda_programs.h"
#include "kernel_helpers.h"

namespace shardarray::test {

/// Distinct texts, compiled together.
class PrintedTexts {
 public:
  /// Loops by this kernel, if they have this shape.
  void add(const Kernel& k, const cuda::LoopShape& shape) {
    const std::size_t number = numbers_.size();
    if (!numbers_.try_emplace(print_kernel(k, shape, "loop"), number).second) return;
    std::string& part = parts_[number % parts_.size()];
    if (part.empty()) part = cuda::printed_prelude();
    part += print_kernel(k, shape, name_of(number));
  }
  /// All loops of the launches, and of the programs that they call.
  void add(const std::vector<cuda::KernelLaunch>& launches) {
    for (const cuda::KernelLaunch& l : launches) {
      if (l.loop) add(*l.loop, l.shape);
      if (l.call) add(cuda::launches_of(*l.call->program, l.alignment));
    }
  }
  std::size_t count() const { return numbers_.size(); }

  void compile() {
    std::array<std::future<void>, 2> under_way;
    for (std::size_t k = 0; k < parts_.size(); k++)
      if (!parts_[k].empty())
        under_way[k] = std::async(std::launch::async,
                                  [&, k] { objects_[k] = std::make_unique<CompiledText>(parts_[k]); });
    for (std::future<void>& f : under_way)
      if (f.valid()) f.get();
  }

  /// Null: it was not added.
  cuda::HostKernel kernel(const Kernel& k, const cuda::LoopShape& shape) const {
    const auto it = numbers_.find(print_kernel(k, shape, "loop"));
    if (it == numbers_.end()) return nullptr;
    const auto& object = objects_[it->second % objects_.size()];
    return reinterpret_cast<cuda::HostKernel>(object->symbol(name_of(it->second)));
  }
  /// Loops by printed kernels, everything else as it is.
  void run(const std::vector<cuda::KernelLaunch>& launches, const std::vector<void*>& bases,
           const BlockOrder& order) const {
    run_launches(launches, bases, order, [&](const cuda::KernelLaunch& l) {
      return l.loop ? kernel(*l.loop, l.shape) : cuda::host_kernel(l.kernel);
    });
  }

 private:
  static std::string name_of(std::size_t number) { return "loop_" + std::to_string(number); }

  std::unordered_map<std::string, std::size_t> numbers_;
  std::array<std::string, 2> parts_;  // two compilations: one a core in CI
  std::array<std::unique_ptr<CompiledText>, 2> objects_;
};

/// Of rows with a name, a program and its launches: printed kernels give what interpreting ones do, in every order of blocks.
template <class Row> void check_printed_programs(const std::vector<Row>& rows, const PrintedTexts& texts) {
  for (const auto& row : rows) {
    const auto want = outputs_of(
        *row.program, [&](const std::vector<void*>& bases) { run_launches(row.launches, bases, {}); });
    for (const BlockOrder& order : block_orders) {
      const auto got = outputs_of(
          *row.program, [&](const std::vector<void*>& bases) { texts.run(row.launches, bases, order); });
      const std::string text = difference_of(*row.program, got, want);
      CHECK_MESSAGE(text.empty(), row.name << ": " << text);
    }
  }
}

}  // namespace shardarray::test
