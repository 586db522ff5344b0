// Values that tests read: of all processes, where a launcher has started several (tests/processes/check).
#pragma once
#include <vector>

#include "shardarray/shardarray.h"

namespace shardarray::testing {

/// The array, whole in every process. What is on its default device it has for itself.
inline Array everywhere(const Array& x) {
  if (process_count() == 1) return x;
  if (!x.committed() && x.devices() == std::vector<Device>{local_devices()[0]}) return x;
  return device_put(x, PositionalSharding(devices()).replicate());
}
template <class T> std::vector<T> read(const Array& x) { return everywhere(x).to_vector<T>(); }
inline std::vector<double> values(const Array& x) { return read<double>(x); }

}  // namespace shardarray::testing
