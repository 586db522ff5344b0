// The code of printed kernels, which NVRTC makes without a GPU: wide accesses, nothing in local memory, IEEE arithmetic.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/compiler.h"
#include "cuda/printer.h"
#include "cuda_launches.h"
#include "cuda_programs.h"
#include "kernel_transposes.h"
#include "kernels/loop_table.cuh"
#include "op_data.h"

namespace cuda_lint_test {

using namespace shardarray;
using namespace shardarray::test;
using namespace shardarray::testing;

namespace {

struct Text {
  Kernel kernel;
  cuda::LoopShape shape;
};
using Texts = std::map<std::string, Text>;  // each once

/// What the rows of ops are printed as, on one device and cut over eight.
Texts texts_of_ops() {
  Texts all;
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  for (const OpCase& op : launch_cases()) {
    Rng rng(std::hash<std::string>()(op.name));
    Arrays given = draw_operands(op, rng);
    const auto f = jit([&op](const Arrays& a) { return op.function(a); });
    for (int repeat = 0; repeat < 2; repeat++) {
      if (repeat > 0)
        for (Array& a : given) {
          const auto shardings = every_sharding(mesh, a.shape().size());
          a = device_put(a, shardings[rng() % shardings.size()]);
        }
      const auto program = compiled_for(program_test::prepare(f, given), cuda::cuda_target()).program;
      for (const cuda::KernelLaunch& l : cuda::launches_of(*program))
        if (l.loop) all.try_emplace(cuda::print_kernel(*l.loop, l.shape, "loop"), Text{*l.loop, l.shape});
    }
  }
  return all;
}

Texts texts_of_transposes() {
  Texts all;
  for (const TransposeOf& of : transposes_of_all_kinds()) {
    const cuda::KernelLaunch l = launches_of_case(transposes(of, 1)).at(0);
    all.try_emplace(cuda::print_kernel(*l.loop, l.shape, "loop"), Text{*l.loop, l.shape});
  }
  return all;
}

/// NVRTC whose result is PTX in place of a cubin, which it makes all the same.
cuda::Nvrtc nvrtc_for_ptx() {
  cuda::Nvrtc table = cuda::nvrtc();
  void* const library = cuda::open_cuda_library("libnvrtc.so.13", "Kernels are compiled by NVRTC 13");
  table.get_cubin_size = reinterpret_cast<decltype(table.get_cubin_size)>(dlsym(library, "nvrtcGetPTXSize"));
  table.get_cubin = reinterpret_cast<decltype(table.get_cubin)>(dlsym(library, "nvrtcGetPTX"));
  return table;
}

struct KernelCode {
  std::string ptx;
  std::string needs;  // in ptxas' words
};
/// By kernel.
std::map<std::string, KernelCode> code_of(const std::string& text, const char* architecture) {
  std::string report;
  const std::vector<char> bytes = cuda::compile_text(nvrtc_for_ptx(), text, architecture, &report);
  const std::string ptx(bytes.begin(), bytes.end()), entry = ".entry ";
  std::map<std::string, KernelCode> all;
  for (std::size_t at = ptx.find(entry); at != ptx.npos;) {
    const std::size_t name = at + entry.size(), end = ptx.find("\n}", at);
    all[ptx.substr(name, ptx.find('(', name) - name)].ptx = ptx.substr(at, end - at);
    at = ptx.find(entry, end);
  }
  const std::string title = "Function properties for ";
  for (std::size_t at = report.find(title); at != report.npos; at = report.find(title, at + 1)) {
    const std::size_t name = at + title.size(), line = report.find('\n', name);
    const auto it = all.find(report.substr(name, line - name));  // or a function that kernels share
    if (it != all.end()) it->second.needs = report.substr(line + 1, report.find('\n', line + 1) - line - 1);
  }
  return all;
}

/// How often a kernel reads or writes so many bytes of global memory at once.
std::map<std::size_t, int> accesses(const std::string& ptx, const char* way) {
  static const std::regex access(R"((ld|st)\.global(?:\.nc)?(?:\.v([24]))?\.[a-z](\d+)\s)");
  std::map<std::size_t, int> counted;
  for (std::sregex_iterator it(ptx.begin(), ptx.end(), access), end; it != end; ++it) {
    if ((*it)[1] != way) continue;
    const std::size_t lanes = (*it)[2].matched ? std::stoul((*it)[2]) : 1;
    counted[lanes * std::stoul((*it)[3]) / 8]++;
  }
  return counted;
}

/// The accesses that the shape of a loop allows, at least.
void check_widths(const Text& t, const std::string& ptx) {
  const std::uint32_t run = cuda::run_length(t.kernel, t.shape);
  if (run == 1) return;
  std::map<std::size_t, int> reads, writes;
  for (const std::size_t a : cuda::transposed(t.kernel, t.shape)) {
    const std::size_t bytes = t.shape.tile_side * t.shape.tile_side * itemsize(t.kernel.args[a].type);
    reads[16] += static_cast<int>(std::clamp<std::size_t>(bytes / 16 / device::printed_threads, 1, 4));
  }
  std::vector<bool> read(t.kernel.args.size());
  for (const Instr& in : t.kernel.code) {
    if (in.code != Code::load && in.code != Code::store) continue;
    if (!cuda::moves_in_runs(t.shape, in.imm)) continue;
    const std::size_t bytes = run * itemsize(t.kernel.args[in.imm].type);
    if (in.code == Code::store) writes[bytes]++;
    else if (!read[in.imm]) reads[bytes]++;
    read[in.imm] = read[in.imm] || in.code == Code::load;
  }
  const auto got_reads = accesses(ptx, "ld"), got_writes = accesses(ptx, "st");
  const auto number = [](const std::map<std::size_t, int>& of, std::size_t bytes) {
    const auto it = of.find(bytes);
    return it == of.end() ? 0 : it->second;
  };
  for (const auto& want : reads)
    CHECK_MESSAGE(number(got_reads, want.first) >= want.second, want.first << " bytes read");
  for (const auto& want : writes)
    CHECK_MESSAGE(number(got_writes, want.first) >= want.second, want.first << " bytes written");
}

bool uses(const Kernel& k, std::initializer_list<Code> codes) {
  return std::any_of(k.code.begin(), k.code.end(), [&](const Instr& in) {
    return std::find(codes.begin(), codes.end(), in.code) != codes.end();
  });
}
bool uses(const Kernel& k, DType t) {
  return std::any_of(k.code.begin(), k.code.end(), [&](const Instr& in) { return in.type == t; }) ||
         std::any_of(k.args.begin(), k.args.end(), [&](const KernelArg& a) { return a.type == t; });
}
bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

/// float64 functions and remainders are those of CUDA's libraries.
bool calls_library(const Kernel& k) { return uses(k, {Code::call, Code::rem}); }

/// Quotients and roots begin with near reciprocals (kernels/ordinary.cuh).
void check_arithmetic(const Kernel& k, std::string ptx) {
  const bool by_library = calls_library(k);
  if (!by_library && !uses(k, {Code::fma, Code::div, Code::sqrt})) CHECK_FALSE(has(ptx, "fma."));
  if (uses(k, {Code::div, Code::sqrt}))
    ptx = std::regex_replace(ptx, std::regex(R"(\br(sqrt|cp)\.approx\.ftz\.f32\b)"), "");
  if (!by_library) {
    CHECK_FALSE(has(ptx, ".ftz"));
    CHECK_FALSE(has(ptx, ".approx"));
  }
  if (!uses(k, float64)) CHECK_FALSE(has(ptx, ".f64"));
  for (const char* contracted : {"mad.f", "mad.rn.f", "div.full"}) CHECK_FALSE(has(ptx, contracted));
}

/// All accesses are of global memory by name: no other ones but of parameters, and of what a block shares.
void check_memory(const Kernel& k, const KernelCode& code) {
  CHECK_FALSE(has(code.ptx, ".local"));
  CHECK(has(code.needs, " 0 bytes spill stores, 0 bytes spill loads"));
  if (!calls_library(k)) CHECK(has(code.needs, " 0 bytes stack frame"));
  static const std::regex generic(R"(\b(ld|st)\.(v[24]\.)?[busf]\d+\s)");
  CHECK_FALSE(std::regex_search(code.ptx, generic));
}

void check_texts(const Texts& texts, const char* architecture, std::size_t first, std::size_t step) {
  std::vector<const Text*> chosen;
  std::size_t number = 0;
  for (const auto& [shown, text] : texts)
    if (number++ % step == first) chosen.push_back(&text);
  constexpr std::size_t at_once = 60;
  for (std::size_t begin = 0; begin < chosen.size(); begin += at_once) {
    const std::size_t end = std::min(begin + at_once, chosen.size());
    std::string all = cuda::printed_prelude();
    for (std::size_t k = begin; k < end; k++)
      all += cuda::print_kernel(chosen[k]->kernel, chosen[k]->shape, "kernel_" + std::to_string(k));
    const auto code = code_of(all, architecture);
    REQUIRE(code.size() == end - begin);
    for (std::size_t k = begin; k < end; k++) {
      const Text& t = *chosen[k];
      const std::string shown = cuda::print_kernel(t.kernel, t.shape, "loop");
      CAPTURE(std::string(architecture));
      CAPTURE(shown);
      const KernelCode& mine = code.at("kernel_" + std::to_string(k));
      check_widths(t, mine.ptx);
      check_arithmetic(t.kernel, mine.ptx);
      check_memory(t.kernel, mine);
    }
  }
}

}  // namespace

TEST_CASE("cuda lint: the kernels of all ops access memory widely, spill nothing and contract nothing") {
  try {
    cuda::nvrtc();
  } catch (const CompileError& e) {
    MESSAGE("SKIPPED, no text is compiled: " << e.what());
    return;
  }
  const Texts texts = texts_of_ops();
  REQUIRE(texts.size() > 300);
  if (!full_scale()) return check_texts(texts, "sm_90", 0, 16);
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) check_texts(texts, architecture, 0, 1);
}

TEST_CASE(
    "cuda lint: kernels that read transposed operands do so widely, several accesses at once, and spill "
    "nothing") {
  try {
    cuda::nvrtc();
  } catch (const CompileError& e) {
    MESSAGE("SKIPPED, no text is compiled: " << e.what());
    return;
  }
  const Texts texts = texts_of_transposes();
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"})
    if (full_scale() || std::string(architecture) == "sm_90") check_texts(texts, architecture, 0, 1);
}

}  // namespace cuda_lint_test
