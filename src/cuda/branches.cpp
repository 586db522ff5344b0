// Choices and loops of unknown length: the host waits for the deciding value, and launches what it selects.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cuda/executable.h"
#include "cuda/step_launches.h"
#include "shardarray/error.h"

namespace shardarray::cuda {

std::unique_ptr<CudaExecutable::Branches> CudaExecutable::branches_of(CudaBackend& backend,
                                                                      const GpuPlaces& where,
                                                                      const Step& step,
                                                                      std::uint64_t alignment,
                                                                      bool printed) const {
  const auto* const choice = std::get_if<ProgramChoice>(&step.body);
  const auto* const loop = std::get_if<ProgramLoop>(&step.body);
  if (choice == nullptr && loop == nullptr) return nullptr;
  const auto gpu_of = [&](int device) {
    return static_cast<std::size_t>(where.of_device[static_cast<std::size_t>(device)]);
  };
  auto b = std::make_unique<Branches>();
  b->value = choice != nullptr ? choice->items[0].index : loop->items[0].answer;
  b->gpu = static_cast<std::size_t>(*std::ranges::find_if(where.of_device, [](int gpu) { return gpu >= 0; }));
  b->is_loop = loop != nullptr;
  if (loop != nullptr)
    for (const ProgramLoop::Carry& c : loop->items[0].carries) b->carries.emplace_back(gpu_of(c.device), c);
  for (const ProgramCall& call : choice != nullptr ? choice->branches : loop->calls)
    b->programs.push_back(
        {call, std::make_unique<CudaExecutable>(backend, where, call.program, call_alignment(call, alignment),
                                                printed, call.part)});
  return b;
}

void CudaExecutable::ask_branches(Turns turns, const Branches& b, std::span<void* const> bases,
                                  const Workspace* w, SharedRun* shared) const {
  const auto address = [&](const Ref& r) { return static_cast<std::byte*>(bases[r.base]) + r.offset; };
  const auto read = [&](auto value) {
    turns[b.gpu]->here();
    turns[b.gpu]->read(&value, address(b.value), sizeof value);
    return value;
  };
  if (!b.is_loop) {
    const auto index = static_cast<std::size_t>(read(std::int32_t{}));
    if (index >= b.programs.size())
      throw InternalError(
          fmt::format("run: branch {} of {}. The index is clamped before the step. Please report this.",
                      index, b.programs.size()));
    return ask_once(turns, b.programs[index], 0, bases, w[index], shared);
  }
  std::int64_t runs = 0;
  for (;; runs++) {
    ask_once(turns, b.programs[0], runs, bases, w[0], shared);
    if (read(std::uint8_t{}) == 0) break;
    ask_once(turns, b.programs[1], runs, bases, w[1], shared);
  }
  if (runs % 2 == 1) return;  // the last run wrote to where the results belong
  for (const auto& [gpu, c] : b.carries) {
    turns[gpu]->here();
    turns[gpu]->copy(address(c.even), address(runs == 0 ? c.first : c.odd), c.bytes);
  }
}

}  // namespace shardarray::cuda
