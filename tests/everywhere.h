// Values that tests read, if a launcher has started several processes (tests/processes/check).
#pragma once
#include <vector>

#include "shardarray/shardarray.h"

namespace shardarray::testing {

/// The array, replicated in every process. An uncommitted one on the default device is the process's own.
inline Array everywhere(const Array& x) {
  if (process_count() == 1) return x;
  if (!x.committed() && x.devices() == std::vector<Device>{local_devices()[0]}) return x;
  return device_put(x, PositionalSharding(devices()).replicate());
}
template <class T> std::vector<T> read(const Array& x) { return everywhere(x).to_vector<T>(); }
inline std::vector<double> values(const Array& x) { return read<double>(x); }

}  // namespace shardarray::testing
