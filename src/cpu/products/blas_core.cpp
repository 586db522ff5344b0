#include "cpu/products/blas_core.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <span>
#include <sstream>

#include "base/private_folder.h"
#include "runtime/object_cache.h"

namespace shardarray {
namespace {

constexpr char core_file[] = "blas_core";

}  // namespace

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos)
      return line.substr(line.find(": ") + 2);
  return "CPU";
}

std::string blas_core_file() {
  const std::string folder = object_cache_folder();
  return folder.empty() ? "" : folder + "/" + core_file;
}

// Two lines: the machine and its core type. Machines may share a home.
std::string blas_core_type() {
  constexpr std::uint64_t most_bytes = 4096;
  const auto kept =
      PrivateFolder(object_cache_folder(), PrivateFolder::Missing::leave).read(core_file, most_bytes);
  std::istringstream file(kept ? std::string(kept->begin(), kept->end()) : std::string());
  std::string machine, type;
  const bool read = std::getline(file, machine) && std::getline(file, type);
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (read && machine == cpu_model() && std::all_of(type.begin(), type.end(), is_word)) return type;
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

bool keep_blas_core_type(const std::string& type) {
  const std::string text = cpu_model() + "\n" + type + "\n";
  const std::span<const char> parts[] = {text};
  return PrivateFolder(object_cache_folder(), PrivateFolder::Missing::make).write(core_file, parts);
}

}  // namespace shardarray
