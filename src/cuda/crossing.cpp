#include "cuda/crossing.h"

#include <algorithm>
#include <exception>

#include "cuda/backend.h"
#include "cuda/launch.h"

namespace shardarray::cuda {

Crossing::Crossing(HostBackend host, const GpuPlaces& where, const Program& program,
                   std::span<const PartBox> boxes)
    : host_(host()), step_(spelled(boxes[0].label, boxes[0].where)) {
  const std::vector<int> devices = devices_of_bases(program);
  for (const PartBox& b : boxes) {
    const int gpu = where.of_device[static_cast<std::size_t>(devices[b.ref.base])];
    boxes_.push_back({b, static_cast<std::size_t>(gpu), bytes_});
    bytes_ += (b.bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  }
}

void Crossing::ask(std::span<Turn* const> turns, std::span<void* const> bases, SharedRun& run) const {
  if (run.nccl() != nullptr) ask_nccl(turns, bases, run);
  else ask_host(turns, bases, run);
}

// Boxes between two GPUs are in program order on both sides.
void Crossing::ask_nccl(std::span<Turn* const> turns, std::span<void* const> bases, SharedRun& run) const {
  const BetweenProcesses& all = *run.nccl();
  const std::vector<Gpu*>& gpus = all.communicator->gpus();
  std::vector<NcclCall> calls;
  for (const Box& b : boxes_) {
    if (b.box.bytes == 0) continue;
    NcclCall& c = calls.emplace_back();
    c.kind = b.box.sent ? NcclCall::Kind::send : NcclCall::Kind::receive;
    c.of = all.communicator;
    c.turn = turns[b.gpu];
    c.rank = static_cast<std::size_t>(std::ranges::find(gpus, &c.turn->gpu()) - gpus.begin());
    c.from = c.to = place(b, bases);
    c.count = b.box.bytes;
    c.type = Nccl::uint8;
    c.with = all.ranks.at({b.box.peer, b.box.memory});
  }
  cuda::ask_nccl(calls, step_, &run);
}

void Crossing::ask_host(std::span<Turn* const> turns, std::span<void* const> bases, SharedRun& run) const {
  const BufferRef memory = host_.allocate(0, bytes_);
  auto* const here = static_cast<std::byte*>(memory->data);
  const auto parcel = [&](const Box& b) {
    return Parcel{b.box.peer, b.box.tag, here + b.here, b.box.bytes, b.box.device, b.box.label, b.box.where};
  };
  TransportRun& transport = run.transport();
  Ends ends;
  try {
    for (const Box& b : boxes_)
      if (!b.box.sent) ends.add([&](LateEnd end) { transport.complete(parcel(b), end); });
    for (const Box& b : boxes_) {
      if (!b.box.sent) continue;
      turns[b.gpu]->here();
      turns[b.gpu]->read(here + b.here, place(b, bases), b.box.bytes);
      ends.add([&](LateEnd end) { transport.post(parcel(b), end); });
    }
  } catch (...) {
    run.fail(std::current_exception());
    run.wait(ends);
    throw;
  }
  run.wait(ends);
  ends.look();
  for (const Box& b : boxes_) {
    if (b.box.sent) continue;
    turns[b.gpu]->here();
    turns[b.gpu]->upload(place(b, bases), here + b.here, b.box.bytes);
  }
}

}  // namespace shardarray::cuda
