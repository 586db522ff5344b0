// Finds the fastest of OpenBLAS's kernels on this machine. Every candidate runs in its own process, as OpenBLAS chooses when it is loaded;
// the winner is stored in the cache folder, where the library reads it when it opens OpenBLAS: for factorisations, which are mostly
// products, and for products with a vector.
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "bench.h"
#include "cpu/products/blas.h"
#include "cpu/products/blas_core.h"

namespace sa = shardarray;

namespace {

constexpr int sizes[] = {256, 512, 1024};
using Figures = std::array<double, std::size(sizes)>;  // GFLOP/s of one thread

// The best of several products of every size: other programs only slow them down.
void measure_here() {
  const sa::Blas* blas = sa::blas();
  if (blas == nullptr) return;
  for (const int n : sizes) {
    const auto a = bench::random_floats(static_cast<std::size_t>(n * n), 1),
               b = bench::random_floats(static_cast<std::size_t>(n * n), 2);
    std::vector<float> c(a.size());
    double least = 1e9, all = 0;
    while (all < 0.15) {
      const auto start = std::chrono::steady_clock::now();
      blas->sgemm(sa::Blas::row_major, sa::Blas::no_trans, sa::Blas::no_trans, n, n, n, 1, a.data(), n,
                  b.data(), n, 0, c.data(), n);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      least = std::min(least, seconds);
      all += seconds;
    }
    fmt::print("{}\n", 2.0 * n * n * n / least / 1e9);
  }
}

// All zero if the core type does not run here.
Figures measured(const std::string& core) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      (core.empty() ? "" : "OPENBLAS_CORETYPE=" + core + " ") + "'" + self + "' --measure 2>/dev/null";
  Figures f{};
  FILE* out = popen(command.c_str(), "r");
  if (out == nullptr) return f;
  for (double& x : f)
    if (std::fscanf(out, "%lf", &x) != 1) x = 0;
  if (pclose(out) != 0) f = {};
  return f;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Finds the fastest kernels of the BLAS on this machine and keeps the choice");
  bool measure_only = false, dry = false;
  app.add_flag("--measure", measure_only, "Measure with the core type of this process, print GFLOP/s");
  app.add_flag("--dry-run", dry, "Keep nothing");
  CLI11_PARSE(app, argc, argv);
  if (measure_only) return measure_here(), 0;

#if defined(__x86_64__)
  const char* const cores[] = {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids", "Sandybridge"};
#else
  const char* const cores[] = {"ARMV8", "NEOVERSEN1", "NEOVERSEV1", "THUNDERX3T110"};
#endif
  std::map<std::string, Figures> best;
  for (int round = 0; round < 3; round++)  // in turns: other programs slow all of them
    for (const char* core : cores) {
      const Figures f = measured(core);
      for (std::size_t k = 0; k < f.size(); k++) best[core][k] = std::max(best[core][k], f[k]);
    }
  fmt::print("GFLOP/s of one thread on {}\n{:<16}", sa::cpu_model(), "core type");
  for (const int n : sizes) fmt::print("{:>8}^3", n);
  fmt::print("\n");
  const auto score = [](const Figures& f) {  // geometric mean
    double product = 1;
    for (const double x : f) product *= x;
    return std::cbrt(product);
  };
  std::string winner = cores[0];
  for (const char* core : cores) {
    if (score(best[core]) > 1.02 * score(best[winner])) winner = core;
    fmt::print("{:<16}", core);
    for (const double x : best[core]) fmt::print("{:>10}", x > 0 ? fmt::format("{:.1f}", x) : "-");
    fmt::print("\n");
  }
  fmt::print("fastest (by more than 2 %, else the first): {}\n", winner);
  if (dry) return 0;
  if (sa::keep_blas_core_type(winner)) fmt::print("kept in {}\n", sa::blas_core_file());
  else fmt::print("cannot write {}\n", sa::blas_core_file());
}
