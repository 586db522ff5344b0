#include "cuda/host_step.h"

#include <utility>

#include "cuda/step_launches.h"

namespace shardarray::cuda {

std::unique_ptr<HostStep> HostStep::of(HostBackend host, const GpuPlaces& where, const Step& step) {
  if (has_kernels(step)) return nullptr;
  return std::unique_ptr<HostStep>(new HostStep(host(), where, step));
}

HostStep::HostStep(Backend& host, const GpuPlaces& where, const Step& step) : host_(host) {
  auto call = std::get<LibraryCall>(step.body);
  for (LibraryCall::Item& item : call.items) {
    const auto gpu = static_cast<std::size_t>(where.of_device[static_cast<std::size_t>(item.device)]);
    for (std::size_t k = 0; k < item.in.size(); k++) {
      in_.push_back(tile(gpu, item.in[k], call.in_types[k], item.in_shapes[k]));
      item.in[k] = {0, in_.back().here};
    }
    for (std::size_t k = 0; k < item.out.size(); k++) {
      out_.push_back(tile(gpu, item.out[k], call.out_types[k], item.out_shapes[k]));
      item.out[k] = {0, out_.back().here};
    }
    item.device = 0;
  }
  auto program = std::make_shared<Program>();
  program->steps.push_back({std::move(call), step.label, step.where});
  program->base_count = 1;
  work_ = host.load(std::move(program));
}

HostStep::Tile HostStep::tile(std::size_t gpu, const Ref& there, DType t, const Shape& shape) {
  const Tile made{gpu, there, bytes_, static_cast<std::uint64_t>(num_elements(shape)) * itemsize(t)};
  bytes_ += (made.bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
  return made;
}

void HostStep::ask(std::span<Turn* const> turns, std::span<void* const> bases) const {
  const auto place = [&](const Tile& t) {
    return static_cast<std::byte*>(bases[t.there.base]) + t.there.offset;
  };
  const BufferRef memory = host_.allocate(0, bytes_);
  auto* const here = static_cast<std::byte*>(memory->data);
  for (const Tile& t : in_) {
    turns[t.gpu]->here();
    turns[t.gpu]->read(here + t.here, place(t), t.bytes);
  }
  void* const base = here;
  if (const CompletionRef done = work_->run({&base, 1}, nullptr)) done->wait();
  for (const Tile& t : out_) {
    turns[t.gpu]->here();
    turns[t.gpu]->upload(place(t), here + t.here, t.bytes);
  }
}

}  // namespace shardarray::cuda
