// What a backend need not say itself.
#include "runtime/backend.h"

#include "base/host_memory.h"

namespace shardarray {

Device Backend::device(int local) const {
  Device d;
  d.id = local;
  d.platform = d.kind = platform();
  return d;
}

void Backend::allocate(std::span<const int> devices, std::span<const std::uint64_t> bytes,
                       std::span<BufferRef> to) {
  for (std::size_t k = 0; k < devices.size(); k++) to[k] = allocate(devices[k], bytes[k]);
}

void Backend::copy(const BufferRef& to, const BufferRef& from, std::size_t bytes) {
  std::vector<std::byte> host = host_bytes("copy", static_cast<std::int64_t>(bytes));
  from->owner->copy_to_host(host.data(), from, bytes);
  copy_from_host(to, host.data(), bytes);
}

}  // namespace shardarray
