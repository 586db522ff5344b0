// Default implementations.
#include "runtime/backend.h"

#include <fmt/format.h>

#include "base/host_memory.h"
#include "shardarray/error.h"

namespace shardarray {

Device Backend::device(int local) const {
  Device d;
  d.id = local;
  d.platform = d.kind = platform();
  return d;
}

std::vector<Device> Backend::devices() const {
  std::vector<Device> all;
  all.reserve(static_cast<std::size_t>(device_count()));
  for (int k = 0; k < device_count(); k++) all.push_back(device(k));
  return all;
}

std::unique_ptr<Executable> Backend::load_part(std::shared_ptr<const LocalPart>) {
  throw CompileError(fmt::format(
      "load: the program runs on devices of several processes, and the platform '{}' has no way between "
      "them. Use devices of one process: local_devices().",
      platform()));
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
