// The two calls of the driver's library that say whether there is a GPU, as a library of that name: as many as SHARDARRAY_FAKE_GPUS
// says, or a driver that fails with SHARDARRAY_FAKE_CUINIT.
#include <cstdlib>

namespace {
int setting(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}
}  // namespace

extern "C" {
__attribute__((visibility("default"))) int cuInit(unsigned flags);
int cuInit(unsigned) { return setting("SHARDARRAY_FAKE_CUINIT", 0); }

__attribute__((visibility("default"))) int cuDeviceGetCount(int* count);
int cuDeviceGetCount(int* count) {
  *count = setting("SHARDARRAY_FAKE_GPUS", 1);
  return 0;
}
}
