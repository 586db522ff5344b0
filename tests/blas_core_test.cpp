// The core type for the BLAS: calibrated on this machine, or the fixed rule.
#include "cpu/products/blas_core.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace blas_core_test {

using namespace shardarray;

namespace {

struct CacheFolder {  // an empty one while it lives
  CacheFolder() {
    if (const char* text = std::getenv("SHARDARRAY_CACHE_DIR")) before = text, had = true;
    char name[] = "/tmp/blas_core_XXXXXX";
    path = mkdtemp(name);
    setenv("SHARDARRAY_CACHE_DIR", path.c_str(), 1);
  }
  ~CacheFolder() {
    if (had) setenv("SHARDARRAY_CACHE_DIR", before.c_str(), 1);
    else unsetenv("SHARDARRAY_CACHE_DIR");
    std::filesystem::remove_all(path);
  }
  std::string path, before;
  bool had = false;
};

// From what the kernel says of the CPU.
std::string rule_by_cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  std::string vendor, flags;
  for (std::string line; std::getline(file, line) && flags.empty();) {
    if (line.starts_with("vendor_id")) vendor = line.substr(line.find(": ") + 2);
    if (line.starts_with("flags")) flags = line + " ";
  }
  const auto has = [&](const char* flag) { return flags.find(std::string(" ") + flag + " ") != flags.npos; };
  if (vendor == "GenuineIntel" && has("avx512f") && has("avx512dq") && has("avx512bw") && has("avx512vl"))
    return "SkylakeX";
  return has("avx2") && has("fma") ? "Haswell" : "";
}

}  // namespace

TEST_CASE("blas core type: what calibration kept for this machine, else the rule") {
  const CacheFolder folder;
  const std::string rule = blas_core_type();
  CHECK(rule == rule_by_cpuinfo());
  CHECK(keep_blas_core_type("Zen"));
  CHECK(blas_core_type() == "Zen");
  CHECK(keep_blas_core_type("SkylakeX"));
  CHECK(blas_core_type() == "SkylakeX");

  const auto write = [](const std::string& text) { std::ofstream(blas_core_file()) << text; };
  write("another machine\nZen\n");
  CHECK(blas_core_type() == rule);
  write(cpu_model() + "\nZen; rm -rf\n");
  CHECK(blas_core_type() == rule);
  write(cpu_model());
  CHECK(blas_core_type() == rule);
  write("");
  CHECK(blas_core_type() == rule);

  setenv("SHARDARRAY_CACHE_DIR", "", 1);  // kept nowhere
  CHECK(blas_core_file().empty());
  CHECK(!keep_blas_core_type("Zen"));
  CHECK(blas_core_type() == rule);
  setenv("SHARDARRAY_CACHE_DIR", "/proc/no/such", 1);
  CHECK(!keep_blas_core_type("Zen"));
  setenv("SHARDARRAY_CACHE_DIR", (folder.path + "/new/folder").c_str(), 1);
  CHECK(keep_blas_core_type("Zen"));
  CHECK(blas_core_type() == "Zen");
  using std::filesystem::perms;
  CHECK((std::filesystem::status(folder.path + "/new/folder").permissions() & perms::all) ==
        perms::owner_all);
}

}  // namespace blas_core_test
