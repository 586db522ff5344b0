#include <iostream>

#include "shardarray/device.h"
#include "shardarray/version.h"

int main() {
  shardarray::set_cpu_device_count(4);
  std::cout << "shardarray " << SHARDARRAY_VERSION << " with " << shardarray::device_count() << " devices\n";
  return shardarray::device_count() == 4 ? 0 : 1;
}
