// Runs all tests, by default on eight virtual CPU devices.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("SHARDARRAY_CPU_DEVICES", "8", 0);
  return doctest::Context(argc, argv).run();
}
