#include "cuda/gpu_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "cuda/collective_pattern.h"
#include "cuda/gpu_launches.h"
#include "cuda/split_exchange.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

/// The step's items on one GPU.
Step part_on(const Step& step, int gpu, const GpuPlaces& where) {
  Step part = step;
  std::visit(
      [&](auto& body) {
        if constexpr (requires { body.items[0].device; })
          std::erase_if(body.items, [&](const auto& item) {
            return where.of_device[static_cast<std::size_t>(item.device)] != gpu;
          });
      },
      part.body);
  return part;
}
/// Whether a GPU needs data from another one's memory.
bool crosses(const Exchange& x, const GpuPlaces& where) {
  const auto gpu = [&](int device) { return where.of_device[static_cast<std::size_t>(device)]; };
  for (const Exchange::Item& item : x.items)
    for (const Exchange::Piece& piece : item.pieces)
      for (const Exchange::Source& s : piece.sources)
        if (gpu(s.device) != gpu(item.device)) return true;
  return false;
}

NcclStep whole_tiles(const Step& step, const CollectivePattern& p, const GpuPlaces& where) {
  std::vector<NcclStep::Call> calls;
  for (const auto& group : p.groups) {
    std::vector<Gpu*> gpus;
    gpus.reserve(group.size());
    for (const CollectivePattern::Rank& r : group)
      gpus.push_back(where.gpus[static_cast<std::size_t>(r.gpu)]);
    NcclCall call;
    call.of = &Communicator::of(gpus);
    call.kind = p.kind;
    call.count = p.count;
    call.type = p.type;
    call.with = p.reduction;
    for (call.rank = 0; call.rank < group.size(); call.rank++) {
      const CollectivePattern::Rank& r = group[call.rank];
      calls.push_back({call, static_cast<std::size_t>(r.gpu), r.send, r.receive});
    }
  }
  return {spelled(step.label, step.where), std::move(calls)};
}

NcclStep moved_blocks(const Step& step, const SplitExchange& x, const GpuPlaces& where,
                      std::uint32_t staging) {
  NcclCall call;
  call.of = &Communicator::of(where.gpus);
  call.type = Nccl::uint8;
  std::vector<NcclStep::Call> calls;
  for (std::size_t gpu = 0; gpu < x.parts.size(); gpu++) {
    call.rank = gpu;
    for (const bool sends : {true, false})
      for (const SplitExchange::Block& b : sends ? x.parts[gpu].sent : x.parts[gpu].received) {
        call.kind = sends ? NcclCall::Kind::send : NcclCall::Kind::receive;
        call.count = b.bytes;
        call.with = b.gpu;
        calls.push_back({call, gpu, {staging, b.offset}, {staging, b.offset}});
      }
  }
  return {spelled(step.label, step.where), std::move(calls)};
}

/// The result of `make`. If NCCL is missing: null if the GPUs can do without, which is reported once.
template <class Make> std::unique_ptr<NcclStep> by_nccl(const GpuPlaces& where, const Make& make) {
  try {
    return std::make_unique<NcclStep>(make());
  } catch (const Error& e) {
    if (!where.reach)
      throw DeviceError(fmt::format(
          "load: {} cannot all read each other's memory, so that NCCL must move their tiles. {} Or put the "
          "program on devices of GPUs that can (`nvidia-smi topo -p2p r`), or of one.",
          names_of(where.gpus), e.what()));
    static std::atomic<bool> said = false;
    if (!said.exchange(true))
      fmt::print(stderr, "shardarray: {} GPUs read each other's tiles by kernels of the library.\n",
                 e.what());
    return nullptr;
  }
}

std::vector<GpuSteps> exchange_steps(const Step& step, const Exchange& x, const GpuPlaces& where,
                                     std::uint32_t staging, std::vector<std::uint64_t>& staging_bytes) {
  const auto gpus = static_cast<int>(where.gpus.size());
  std::vector<GpuSteps> all;
  const auto pattern = collective_pattern(x, where.of_device, gpus);
  if (pattern && (!where.reach || pattern->bytes >= nccl_limits().least_bytes)) {
    if (auto nccl = by_nccl(where, [&] { return whole_tiles(step, *pattern, where); })) {
      all.emplace_back().nccl = std::move(nccl);
      return all;
    }
  }
  if (where.reach) {
    GpuSteps& one = all.emplace_back();
    one.meets = true;
    for (int g = 0; g < gpus; g++) one.of_gpu.push_back(part_on(step, g, where));
    return all;
  }
  SplitExchange split = split_exchange(x, where.of_device, gpus, staging);
  all.resize(3);
  for (std::size_t g = 0; g < where.gpus.size(); g++) {
    SplitExchange::Part& p = split.parts[g];
    staging_bytes[g] = std::max(staging_bytes[g], p.staging_bytes);
    all[0].of_gpu.push_back({std::move(p.packed), step.label, step.where});
    all[2].of_gpu.push_back({std::move(p.delivered), step.label, step.where});
  }
  all[1].nccl = by_nccl(where, [&] { return moved_blocks(step, split, where, staging); });
  return all;
}

}  // namespace

void NcclStep::ask(std::span<Turn* const> turns, std::span<void* const> bases,
                   std::span<void* const> staging) const {
  std::vector<NcclCall> calls;
  for (const Call& c : calls_) {
    const auto address = [&](const Ref& r) -> void* {
      return static_cast<std::byte*>(r.base < bases.size() ? bases[r.base] : staging[c.gpu]) + r.offset;
    };
    NcclCall& call = calls.emplace_back(c.call);
    call.turn = turns[c.gpu];
    call.from = address(c.from);
    call.to = address(c.to);
  }
  ask_nccl(calls, step_);
}

std::vector<GpuSteps> gpu_steps(const Step& step, const GpuPlaces& where, std::uint32_t staging,
                                std::vector<std::uint64_t>& staging_bytes) {
  const auto* const x = std::get_if<Exchange>(&step.body);
  if (x != nullptr && crosses(*x, where)) return exchange_steps(step, *x, where, staging, staging_bytes);
  std::vector<GpuSteps> all(1);
  for (int g = 0; g < static_cast<int>(where.gpus.size()); g++)
    all[0].of_gpu.push_back(part_on(step, g, where));
  return all;
}

}  // namespace shardarray::cuda
