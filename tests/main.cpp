// Runs all tests, by default on eight virtual CPU devices.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("SHARDARRAY_CPU_DEVICES", "8", 0);
  setenv("SHARDARRAY_CACHE_DIR", "", 0);  // nothing stays behind
  return doctest::Context(argc, argv).run();
}
