#include "lib/shard_memory.h"

#include <fmt/core.h>

#include "execute/evaluate.h"
#include "runtime/devices.h"

namespace shardarray {

ShardMemory shard_memory(const char* function, const Array& x) {
  const ValueRef v = force(x, function);
  const Type& t = type_of(x, function);
  const std::vector<Device>& devices = v->layout->order()->devices();
  if (devices.size() != 1)
    throw ShardingError(
        fmt::format("{}: {} is on {} devices. Memory is shown of one piece, on one device. Take "
                    "addressable_data(i), or put the array on one device with device_put.",
                    function, to_string(t), devices.size()));
  const Device& device = devices[0];
  if (device.platform != "cpu" || local_index(device) < 0)
    throw DeviceError(fmt::format(
        "{}: {} is on {}, of process {}. Only the memory of this process' CPU devices can be read "
        "where it lies. Put the array on one of devices(\"cpu\") with device_put.",
        function, to_string(t), to_string(device), device.process_index));
  wait(v->ready);
  return {t, v->buffers[0]};
}

}  // namespace shardarray
