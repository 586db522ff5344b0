// One run of a process's part of a program: its boxes are the late tasks of the graph.
#pragma once
#include <memory>

#include "cpu/address.h"
#include "runtime/local_part.h"
#include "runtime/transport.h"

namespace shardarray {

class PartRun final : public LateWork {
 public:
  PartRun(const LocalPart& part, Transport& transport, void* const* bases, std::uint64_t numbers)
      : part_(part), bases_(bases), run_(transport.begin(part.peers, part.fingerprint, numbers)) {}

  void start(std::int64_t number, LateEnd ended) override {
    const PartBox& b = part_.boxes[static_cast<std::size_t>(number)];
    const Parcel parcel = {b.peer, b.tag, address(bases_, b.ref), b.bytes, b.device, b.label, b.where};
    if (b.sent) run_->post(parcel, ended);
    else run_->complete(parcel, ended);
  }
  void advance() noexcept override { run_->advance(); }
  void stop(const std::exception_ptr& why) noexcept override { run_->fail(why); }

 private:
  const LocalPart& part_;
  void* const* bases_;
  std::unique_ptr<TransportRun> run_;
};

}  // namespace shardarray
