// Kernels with memory: what the tests of kernel IR share.
#pragma once
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu/loops/interpreter.h"
#include "runtime/kernel.h"
#include "sources.h"

namespace shardarray::test {

/// An argument's place in a buffer of its own (or, `alias`, in another argument's).
struct ArgMemory {
  Shape strides;           // elements, one per dimension
  std::int64_t first = 0;  // elements from the buffer's begin to domain point 0
  std::int64_t elements = 0;
  std::int64_t indirect_stride = 0, lo = 0, count = 0;
  int alias = -1;
};

struct KernelCase {
  Kernel kernel;
  Shape extents, start;
  std::vector<ArgMemory> args;
  std::vector<std::vector<std::byte>> inputs;  // by argument: its buffer before the run
};

/// The signature of printed kernels (kernel_cpp.h).
using PrintedKernel = void (*)(void* const* args, const std::int64_t* extents, const std::int64_t* starts,
                               const std::int64_t* strides, const std::int64_t* indirect);

template <class T> bool same_elements(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  for (std::size_t i = 0; i < a.size(); i += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + i, sizeof x);
    std::memcpy(&y, b.data() + i, sizeof y);
    if (std::memcmp(&x, &y, sizeof x) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
  }
  return true;
}

/// The item that runs a case with base a = buffer of argument a.
inline Loop::Item item_of(const KernelCase& c) {
  Loop::Item item;
  item.extents = c.extents;
  item.start = c.start;
  for (std::size_t a = 0; a < c.args.size(); a++) {
    const ArgMemory& m = c.args[a];
    const std::uint64_t size = itemsize(c.kernel.args[a].type);
    LoopArg arg;
    arg.ref = {static_cast<std::uint32_t>(m.alias < 0 ? static_cast<int>(a) : m.alias), m.first * size};
    arg.strides = m.strides;
    arg.bytes = m.elements * size;
    arg.first = m.first * size;
    arg.indirect_stride = m.indirect_stride;
    arg.lo = m.lo;
    arg.count = m.count;
    item.args.push_back(arg);
  }
  return item;
}

/// The buffers after the printed kernel ran, each argument in memory of its own.
inline std::vector<std::vector<std::byte>> run_printed(const KernelCase& c, PrintedKernel f) {
  auto memory = c.inputs;
  std::vector<void*> args;
  std::vector<std::int64_t> strides, indirect;
  for (std::size_t a = 0; a < c.args.size(); a++) {
    args.push_back(memory[a].data() + c.args[a].first * itemsize(c.kernel.args[a].type));
    strides.insert(strides.end(), c.args[a].strides.begin(), c.args[a].strides.end());
    for (const std::int64_t x : {c.args[a].indirect_stride, c.args[a].lo, c.args[a].count})
      indirect.push_back(x);
  }
  f(args.data(), c.extents.data(), c.start.data(), strides.data(), indirect.data());
  return memory;
}

/// A buffer at the end of readable memory: reads and writes past it crash, in generated code too.
class FencedBytes {
 public:
  explicit FencedBytes(const std::vector<std::byte>& content) : size_(content.size()) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), pages = (size_ + page - 1) / page;
    mapped_ = (pages + 1) * page;
    void* const p = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("no memory");
    first_ = static_cast<std::byte*>(p);
    mprotect(first_ + pages * page, page, PROT_NONE);
    begin_ = first_ + pages * page - size_;
    if (size_ > 0) std::memcpy(begin_, content.data(), size_);
  }
  ~FencedBytes() { munmap(first_, mapped_); }
  FencedBytes(const FencedBytes&) = delete;
  FencedBytes& operator=(const FencedBytes&) = delete;
  std::byte* data() const { return begin_; }
  std::vector<std::byte> content() const { return {begin_, begin_ + size_}; }

 private:
  std::size_t size_, mapped_ = 0;
  std::byte *first_ = nullptr, *begin_ = nullptr;
};

/// The buffers after run(bases, begin, end) of pieces that end at `cuts`.
template <class Run>
std::vector<std::vector<std::byte>> run_pieces(const KernelCase& c, const std::vector<std::int64_t>& cuts,
                                               const Run& run) {
  std::deque<FencedBytes> memory;
  std::vector<void*> bases;
  for (const auto& m : c.inputs) bases.push_back(memory.emplace_back(m).data());
  std::int64_t begin = 0;
  for (const std::int64_t end : cuts) {
    run(bases.data(), begin, end);
    begin = end;
  }
  std::vector<std::vector<std::byte>> after;
  for (std::size_t a = 0; a < c.args.size(); a++) {
    const int alias = c.args[a].alias;
    after.push_back(memory[alias < 0 ? a : static_cast<std::size_t>(alias)].content());
  }
  return after;
}

inline std::vector<std::vector<std::byte>> run_plan(const KernelCase& c, const LoopPlan& plan,
                                                    const std::vector<std::int64_t>& cuts) {
  return run_pieces(c, cuts, [&](void* const* bases, std::int64_t begin, std::int64_t end) {
    plan.run(bases, begin, end);
  });
}

/// Bits equal; any NaN equals any NaN.
inline bool same_values(DType t, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (t == float32) return same_elements<float>(a, b);
  if (t == float64) return same_elements<double>(a, b);
  return a == b;
}
/// Of all arguments' buffers; but for those that an output has taken over, where it is checked.
inline void require_same(const KernelCase& c, const std::vector<std::vector<std::byte>>& got,
                         const std::vector<std::vector<std::byte>>& want) {
  for (std::size_t a = 0; a < c.args.size(); a++) {
    const auto is_there = [&](const ArgMemory& m) { return m.alias == static_cast<int>(a); };
    if (std::any_of(c.args.begin(), c.args.end(), is_there)) continue;
    CAPTURE(a);
    REQUIRE(same_values(c.kernel.args[a].type, got[a], want[a]));
  }
}

/// Compiles C++ text with the system's compiler and opens it.
class CompiledText {
 public:
  explicit CompiledText(const std::string& text);
  ~CompiledText();
  CompiledText(const CompiledText&) = delete;
  CompiledText& operator=(const CompiledText&) = delete;
  void* symbol(const std::string& name) const;
  std::string path() const { return folder_ + "/k.so"; }

 private:
  std::string folder_;
  void* handle_ = nullptr;
};

inline CompiledText::CompiledText(const std::string& text) {
  std::string pattern = (std::filesystem::temp_directory_path() / "shardarray-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
  std::ofstream(folder_ + "/k.cpp") << text;
  const char* compiler = std::getenv("CXX");
  const std::string source = testing::source_folder();
  const std::string command =
      std::string(compiler ? compiler : "c++") +
      " -std=c++20 -O0 -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC -I" + source +
      "/src -I" + source + "/include -I" + source + " " + folder_ + "/k.cpp -o " + folder_ + "/k.so";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("does not compile: " + folder_ + "/k.cpp");
  handle_ = dlopen((folder_ + "/k.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) throw std::runtime_error(dlerror());
}
inline CompiledText::~CompiledText() {
  if (handle_) dlclose(handle_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}
inline void* CompiledText::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

}  // namespace shardarray::test
