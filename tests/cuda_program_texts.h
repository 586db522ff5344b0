// Programs as kernels, compiled for the host.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cuda/program_text.h"
#include "cuda_launches.h"
#include "cuda_programs.h"
#include "kernel_helpers.h"
#include "kernels/program_table.cuh"

namespace shardarray::test {

inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Programs as kernels of so many blocks, compiled together.
class ProgramTexts {
 public:
  explicit ProgramTexts(std::uint32_t blocks = 1) : blocks_(blocks) {}
  void add(const std::string& name, std::shared_ptr<const Program> program) {
    cuda::ProgramText printed = cuda::print_program(*program, cuda::buffer_alignment, blocks_);
    const std::string number = std::to_string(programs_.size());
    std::string text = printed.text;
    for (int line = 0; line < 3; line++) text.erase(0, text.find('\n') + 1);  // all get the same
    replace_all(text, "shardarray_loop_", "loop_" + number + "_");
    replace_all(text, cuda::program_kernel_name, "program_" + number);
    if (parts_.empty() || parts_.back().size() > most_text) parts_.emplace_back();
    parts_.back() += text;
    most_bases_ = std::max(most_bases_, printed.bases);
    programs_.push_back({name, std::move(program), std::move(printed), parts_.size() - 1});
  }
  std::size_t count() const { return programs_.size(); }

  /// Every program's results are those of its launches one by one.
  void check() {
    compile();
    for (std::size_t k = 0; k < programs_.size(); k++) {
      const Row& row = programs_[k];
      const auto launches = cuda::launches_of(*row.program);
      const auto want = outputs_of(
          *row.program, [&](const std::vector<void*>& bases) { run_launches(launches, bases, {}); });
      const auto got = outputs_of(*row.program, [&](const std::vector<void*>& bases) { run(k, bases); });
      const std::string text = difference_of(*row.program, got, want);
      CHECK_MESSAGE(text.empty(), row.name << ": " << text << "\n" << row.printed.text);
    }
  }

 private:
  struct Row {
    std::string name;
    std::shared_ptr<const Program> program;
    cuda::ProgramText printed;
    std::size_t part;
  };
  void compile() {
    const std::string head = "#define SHARDARRAY_PROGRAM_BASES " + std::to_string(most_bases_) +
                             "\n#define SHARDARRAY_PROGRAM_BLOCKS " + std::to_string(blocks_) +
                             "\n#include \"kernels/program.cuh\"\n";
    objects_.resize(parts_.size());
    std::atomic<std::size_t> next = 0;
    std::array<std::future<void>, 2> under_way;  // one a core in CI
    for (std::future<void>& f : under_way)
      f = std::async(std::launch::async, [&] {
        for (std::size_t k = next++; k < parts_.size(); k = next++)
          objects_[k] = std::make_unique<CompiledText>(head + parts_[k]);
      });
    for (std::future<void>& f : under_way) f.get();
  }
  void run(std::size_t number, const std::vector<void*>& bases) const {
    const cuda::ProgramText& printed = programs_[number].printed;
    REQUIRE(printed.bases >= bases.size());
    std::vector<std::uint64_t> addresses(1 + most_bases_), scratch(printed.scratch_bytes / 8 + 1, ~0ull);
    for (std::size_t k = 0; k < bases.size(); k++)
      addresses[1 + k] = reinterpret_cast<std::uint64_t>(bases[k]);
    const ProgramBlock tables(printed.tables.size() + 1);
    std::copy(printed.tables.begin(), printed.tables.end(), tables.data());  // may be none
    const auto kernel = reinterpret_cast<cuda::HostKernel>(
        objects_[programs_[number].part]->symbol("program_" + std::to_string(number)));
    REQUIRE((kernel != nullptr));
    kernel({0, 1, 0, 0, device::program_threads}, tables.data(), reinterpret_cast<std::byte*>(scratch.data()),
           *reinterpret_cast<const device::Bases*>(addresses.data()));
  }

  static constexpr std::size_t most_text = 1 << 21;  // a compiler takes 200 times that in memory
  std::vector<Row> programs_;
  std::vector<std::string> parts_;
  std::vector<std::unique_ptr<CompiledText>> objects_;
  std::size_t most_bases_ = 1;
  const std::uint32_t blocks_;
};

}  // namespace shardarray::test
