#include "cpu/blas_core.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "cpu/object_cache.h"

namespace shardarray {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos)
      return line.substr(line.find(": ") + 2);
  return "CPU";
}

std::string blas_core_file() {
  const std::string folder = object_cache_folder();
  return folder.empty() ? "" : folder + "/blas_core";
}

// Two lines: the machine and its core type. A home may be shared by machines.
std::string blas_core_type() {
  std::ifstream file(blas_core_file());
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
  const std::filesystem::path path = blas_core_file();
  if (path.empty()) return false;
  std::error_code failed;
  if (std::filesystem::create_directories(path.parent_path(), failed))
    std::filesystem::permissions(path.parent_path(), std::filesystem::perms::owner_all, failed);
  const std::string fresh = path.string() + ".new";
  std::ofstream file(fresh);
  file << cpu_model() << "\n" << type << "\n";
  file.close();
  if (!file) return false;
  std::filesystem::rename(fresh, path, failed);
  return !failed;
}

}  // namespace shardarray
