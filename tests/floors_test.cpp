// The rules that keep the house in order: who may include whom, how long files are.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "sources.h"

namespace floors_test {

namespace fs = std::filesystem;

namespace {

// A file may include floors below its own, and its own folder.
const std::map<std::string, int> room_floor = {
    {"base", 0}, {"layout", 1},  {"runtime", 2},   {"graph", 3},   {"cpu", 3},   {"cuda", 3}, {"mpi", 3},
    {"ops", 4},  {"compile", 5}, {"transform", 6}, {"execute", 7}, {"array", 8}, {"lib", 9},
};
// A public header belongs to the floor whose sources define it.
const std::map<std::string, int> public_floor = {
    {"export.h", 0},
    {"where.h", 0},
    {"error.h", 0},
    {"detail/placed_call.h", 0},
    {"detail/verdict.h", 0},
    {"detail/mode_guard.h", 2},
    {"machine.h", 2},
    {"dtype.h", 0},
    {"shape.h", 0},
    {"flag.h", 0},
    {"device.h", 0},
    {"version.h", 0},
    {"sharding.h", 1},
    {"visualize.h", 1},
    {"reduce_options.h", 3},
    {"array.h", 3},
    {"detail/failed.h", 3},
    {"debug.h", 3},
    {"detail/function.h", 4},
    {"math.h", 4},
    {"special.h", 4},
    {"activations.h", 4},
    {"ops.h", 4},
    {"indexing.h", 4},
    {"linalg.h", 4},
    {"complex.h", 4},
    {"fft.h", 4},
    {"convolution.h", 4},
    {"pooling.h", 4},
    {"image.h", 4},
    {"ordering.h", 4},
    {"products.h", 4},
    {"rearrange.h", 4},
    {"statistics.h", 4},
    {"sets.h", 4},
    {"polynomials.h", 4},
    {"window_functions.h", 4},
    {"tree.h", 6},
    {"tree_filter.h", 6},
    {"collectives.h", 6},
    {"grad.h", 6},
    {"vmap.h", 6},
    {"apply.h", 6},
    {"control_flow.h", 6},
    {"conditional.h", 6},
    {"associative_scan.h", 6},
    {"checkpoint.h", 6},
    {"custom_derivatives.h", 6},
    {"eval_shape.h", 6},
    {"jacobian.h", 6},
    {"shard_map.h", 6},
    {"detail/bind_fields.h", 0},
    {"detail/containers.h", 0},
    {"detail/enumerators.h", 0},
    {"detail/call.h", 6},
    {"detail/path.h", 6},
    {"detail/custom_call.h", 6},
    {"detail/differentiation.h", 6},
    {"detail/maps.h", 6},
    {"jit_options.h", 7},
    {"jit.h", 7},
    {"pmap.h", 7},
    {"explain.h", 7},
    {"inspect.h", 8},
    {"policy.h", 7},
    {"reproducible.h", 7},
    {"tf32.h", 7},
    {"flush_denormals.h", 7},
    {"detail/jit_call.h", 7},
    {"placement.h", 8},
    {"print_options.h", 8},
    {"summary.h", 8},
    {"timing.h", 8},
    {"filter_shard.h", 8},
    {"compare.h", 8},
    {"random.h", 9},
    {"distributions.h", 9},
    {"nn.h", 9},
    {"nn/attention.h", 9},
    {"nn/initializers.h", 9},
    {"nn/layers.h", 9},
    {"nn/linear.h", 9},
    {"nn/norms.h", 9},
    {"nn/recurrent.h", 9},
    {"nn/sequential.h", 9},
    {"nn/convolution.h", 9},
    {"nn/pooling.h", 9},
    {"optim.h", 9},
    {"optim/loss_scale.h", 9},
    {"optim/moments.h", 9},
    {"optim/optimizers.h", 9},
    {"optim/scaling.h", 9},
    {"optim/schedules.h", 9},
    {"optim/transform.h", 9},
    {"optim/wrappers.h", 9},
    {"losses.h", 9},
    {"data.h", 9},
    {"dlpack.h", 9},
    {"checkpoints.h", 9},
    {"files.h", 9},
    {"measure.h", 9},
    {"plan_lock.h", 9},
    {"tune.h", 9},
    {"processes.h", 9},
    {"host_view.h", 9},
    {"tpmap.h", 9},
    {"shardarray.h", 9},
};
const std::regex heavy("fmt/.*|llvm.*|cuda.*|cublas.*|curand.*|nvrtc.*|nccl.*|mpi\\.h");
// Folders whose headers only their own plug-in sees, and the headers that only they may bring in.
const std::string llvm_plugin = "cpu/codegen/llvm/", cuda_plugin = "cuda/";
const std::regex cuda_header("cuda.*|cublas.*|curand.*|nvrtc.*|nccl.*");
// Written by CMake.
const std::vector<std::string> generated = {"abi_hash.h", "generator_hash.h"};

bool is_backend(const std::string& room) { return room == "cpu" || room == "cuda" || room == "mpi"; }

// The folder of a path relative to src/ or include/: `cpu` of `cpu/products/gemm.h`, `shardarray` of a public header.
std::string folder(const std::string& path) { return path.substr(0, path.find('/')); }

int floor_of(const std::map<std::string, int>& floors, const std::string& key) {
  const auto it = floors.find(key);
  return it == floors.end() ? -1 : it->second;
}

// Why `file` may not include `target`; empty when it may. Both are relative to src/ or include/.
std::string objection(const std::string& file, const std::string& target, bool quoted) {
  const std::string room = folder(file), target_room = folder(target);
  const bool is_public = room == "shardarray", is_header = file.ends_with(".h");
  const bool in_plugin = file.starts_with(llvm_plugin);
  if (target.starts_with("llvm/") && !quoted)
    return in_plugin ? "" : "only the plug-in in cpu/codegen/llvm/ may know LLVM";
  if (target.starts_with(llvm_plugin) && !in_plugin)
    return "the plug-in is seen through cpu/codegen/codegen.h";
  if (!quoted && std::regex_match(target, cuda_header) && !file.starts_with(cuda_plugin))
    return "only the plug-in in cuda/ may know CUDA";
  if (target.starts_with(cuda_plugin) && !file.starts_with(cuda_plugin))
    return "the plug-in is seen through runtime/platforms.h";
  if (target.starts_with("kernels/"))
    return file.starts_with(cuda_plugin) ? "" : "only the plug-in in cuda/ knows its kernels";
  if (std::find(generated.begin(), generated.end(), target) != generated.end())
    return is_header ? "a header may not depend on the build" : "";
  if (!quoted) {
    const bool allowed = !is_header || file == "shardarray/fmt.h" || !std::regex_match(target, heavy);
    return allowed ? "" : "a header may not bring in fmt, LLVM, CUDA or MPI: include it in a .cpp";
  }
  const std::string name = file.substr(file.find('/') + 1);
  const int floor = is_public ? floor_of(public_floor, name) : floor_of(room_floor, room);
  if (floor < 0) return "has no floor: add it to the lists at the top of floors_test.cpp";
  if (target_room == target) return "write the path relative to src/: \"" + room + "/" + target + "\"";
  if (target_room == "shardarray") {
    const int target_floor = floor_of(public_floor, target.substr(target.find('/') + 1));
    if (target_floor < 0)
      return target + " has no floor: add it to public_floor at the top of floors_test.cpp";
    if (is_backend(room) && target_floor > 0) return "backends see public headers of floor 0 only";
    return target_floor <= floor ? "" : "the public header is on floor " + std::to_string(target_floor);
  }
  if (is_public) return "a public header may include only public headers";
  const int target_floor = floor_of(room_floor, target_room);
  if (target_floor < 0) return "no room has this name: includes are relative to src/";
  if (target_room == room) return "";
  if (is_backend(room) && target_floor > 2) return "backends see floors 0 to 2";
  return target_floor < floor
             ? ""
             : "floor " + std::to_string(floor) + " may not see floor " + std::to_string(target_floor);
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// All files of code below `folder_name`, relative to it.
std::vector<std::string> code_files(const std::string& folder_name) {
  const fs::path root = fs::path(shardarray::testing::source_folder()) / folder_name;
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string ext = entry.path().extension();
    if (ext == ".h" || ext == ".cpp" || ext == ".inc" || ext == ".cu" || ext == ".cuh")
      out.push_back(fs::relative(entry.path(), root));
  }
  return out;
}

void check_includes(const fs::path& root, const std::string& file) {
  static const std::regex include_line(R"(\s*#\s*include\s*(["<])([^">]+)[">].*)");
  std::smatch m;
  int number = 0;
  for (const std::string& line : read_lines(root / file)) {
    ++number;
    if (!std::regex_match(line, m, include_line)) continue;
    const std::string why = objection(file, m[2], m[1] == "\"");
    CHECK_MESSAGE(why.empty(), file << ":" << number << ": " << line << ": " << why);
  }
}

}  // namespace

TEST_CASE("floors: includes go downwards") {
  for (const char* top : {"src", "include"})
    for (const std::string& file : code_files(top))
      check_includes(fs::path(shardarray::testing::source_folder()) / top, file);
}

TEST_CASE("floors: files are short, headers guarded, no tabs") {
  for (const char* top : {"src", "include", "kernels", "tests", "bench", "examples"})
    for (const std::string& file : code_files(top)) {
      const auto lines = read_lines(fs::path(shardarray::testing::source_folder()) / top / file);
      CHECK_MESSAGE(lines.size() <= 500,
                    top << "/" << file << " has " << lines.size() << " lines, more than 500");
      bool guarded = !file.ends_with(".h");
      for (std::size_t k = 0; k < lines.size(); k++) {
        guarded |= lines[k] == "#pragma once";
        CHECK_MESSAGE(lines[k].find('\t') == std::string::npos,
                      top << "/" << file << ":" << k + 1 << " has a tab");
      }
      CHECK_MESSAGE(guarded, top << "/" << file << " lacks #pragma once");
    }
}

// What an op needs of passes and transforms is its form and its trait: another op may need the same.
TEST_CASE("floors: nobody asks which op a node is") {
  const std::regex asks("[!=]= ?&op_");
  for (const std::string& file : code_files("src")) {
    const auto lines = read_lines(fs::path(shardarray::testing::source_folder()) / "src" / file);
    for (std::size_t k = 0; k < lines.size(); k++)
      CHECK_MESSAGE(!std::regex_search(lines[k], asks),
                    file << ":" << k + 1 << " asks for an op by its address");
  }
}

TEST_CASE("floors: the rule itself") {
  struct Row {
    const char *file, *target;
    bool quoted, allowed;
  };
  const Row rows[] = {
      {"layout/tiles.cpp", "base/hash.h", true, true},
      {"layout/tiles.cpp", "layout/layout.h", true, true},
      {"layout/tiles.cpp", "shardarray/sharding.h", true, true},
      {"layout/tiles.cpp", "runtime/pool.h", true, false},
      {"layout/tiles.cpp", "layout.h", true, false},
      {"layout/tiles.cpp", "attic/layout.h", true, false},
      {"attic/tiles.cpp", "base/hash.h", true, false},
      {"base/shape.cpp", "shardarray/sharding.h", true, false},
      {"graph/node.h", "cpu/products/gemm.h", true, false},
      {"cpu/products/gemm.cpp", "runtime/pool.h", true, true},
      {"cpu/products/gemm.cpp", "graph/node.h", true, false},
      {"cpu/products/gemm.cpp", "shardarray/dtype.h", true, true},
      {"cpu/products/gemm.cpp", "shardarray/sharding.h", true, false},
      {"shardarray/sharding.h", "shardarray/device.h", true, true},
      {"shardarray/sharding.h", "layout/layout.h", true, false},
      {"shardarray/device.h", "shardarray/sharding.h", true, false},
      {"shardarray/device.h", "shardarray/nowhere.h", true, false},
      {"shardarray/nowhere.h", "shardarray/device.h", true, false},
      {"shardarray/device.h", "fmt/core.h", false, false},
      {"shardarray/fmt.h", "fmt/core.h", false, true},
      {"mpi/control.h", "mpi.h", false, false},
      {"mpi/control.cpp", "mpi.h", false, true},
      {"base/shape.cpp", "fmt/core.h", false, true},
      {"cpu/codegen/llvm/values.h", "llvm/IR/Module.h", false, true},
      {"cpu/codegen/codegen.cpp", "llvm/IR/Module.h", false, false},
      {"cpu/codegen/codegen.cpp", "cpu/codegen/llvm/values.h", true, false},
      {"cpu/codegen/llvm/values.cpp", "cpu/codegen/codegen.h", true, true},
      {"cpu/codegen/llvm/values.cpp", "graph/node.h", true, false},
      {"cpu/codegen/codegen.cpp", "abi_hash.h", true, true},
      {"runtime/plugin.h", "abi_hash.h", true, false},
      {"cuda/driver.cpp", "cuda_runtime_api.h", false, true},
      {"cuda/driver.h", "cuda_runtime_api.h", false, false},
      {"runtime/platforms.cpp", "cuda_runtime_api.h", false, false},
      {"runtime/platforms.cpp", "cuda/gpu.h", true, false},
      {"cpu/products/gemm.cpp", "kernels/gemm.cuh", true, false},
      {"cuda/launches.cpp", "kernels/gemm.cuh", true, true},
      {"cuda/backend.cpp", "layout/layout.h", true, true},
      {"cuda/backend.cpp", "cpu/products/gemm.h", true, false},
      {"cuda/backend.cpp", "graph/node.h", true, false},
  };
  for (const Row& r : rows) {
    const std::string why = objection(r.file, r.target, r.quoted);
    CHECK_MESSAGE(why.empty() == r.allowed, r.file << " includes " << r.target << ": " << why);
  }
}

}  // namespace floors_test
