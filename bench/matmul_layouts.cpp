// Which layout of C[m,n] = A[m,k] B[k,n] on a mesh is fastest: every way to shard A, B and C, measured in one run.
//
//   ./dev bench matmul_layouts --mesh x=8 --m 1024 --k 1024 --n 1024 --dtype bf16 --layouts all
//   ./dev bench matmul_layouts --mesh x=2,y=4 --layouts random:60 --top 12
//   ./dev bench matmul_layouts --layouts x.,.x              # A and B are laid out so: which C?
//   ./dev bench matmul_layouts --layouts x.,any,x. ..,x.,..
//   ./dev bench matmul_layouts --platform cuda --dtype tf32     # the mesh is of logical devices, all on the first GPU
//   ./dev bench matmul_layouts --measure top:5              # only what is predicted to be the fastest
//   ./dev bench matmul_layouts --machine h200x8 --m 8192 --k 8192 --n 8192 --dtype bf16     # of a machine that is elsewhere
//   ./dev bench matmul_layouts --sweep m=64..8192           # where does one layout overtake another?
//   ./dev bench matmul_layouts compare before.json after.json --fail-above 5%
//
// Installed, it is shardarray-matmul-layouts, which contains the library. layouts.h explains the spelling of layouts, --help the options.
//
// A and B are placed beforehand, C by out_shardings of jit; one call is timed until the result is ready. Collectives, bytes and flops per
// device are those of explain. Results are integers, so every order of summation gives the same bits: each device's shard is compared with
// a plain product once (rounded once for f16 and bf16). Replicas have their own memory and work, as on separate machines, unless
// --share-replicas shows what sharing gains.
//
// peak:  relative to the multiply-adds that all workers do in registers, best of this run; absent without such a loop. f16 and bf16 are
//        computed in float32, so their peak is float32's.
// t_lo, t_hi: the maximum and the sum of explain()'s seconds of steps (math) and of transfers (comm), by the rates that this_machine()
//        measures once, or by those of --machine. A model, no bounds: a measured time can be below t_lo.
// bound: what takes most of the time: math, comm, or overhead, the rest of the measured time.
// On a GPU the peak is the rate of a product of --peak-size on one logical device, which has all of the GPU, and copies are values that all
// devices read, double and write.
// least: bytes / the fewest that a known strategy receives with no more arithmetic (strategies.h lists all splits of m, k, n); below 1 the
//        plan beats all of them, `-`: none computes so little. For f16 and bf16, partial sums count as float32, the rest as 2 bytes.
// floor: by these rates, the longer of arithmetic and transfers of the fastest known strategy.
#include <fmt/format.h>

#include <filesystem>

#include "layouts_bench.h"
#include "layouts_compare.h"
#include "layouts_files.h"
#include "layouts_jax.h"
#include "layouts_output.h"
#include "layouts_program.h"
#include "layouts_report.h"
#include "layouts_sweep.h"

namespace {

// Installed, the plug-ins are in the folder of libraries, not beside the program.
void find_plugins() {
  std::error_code ignored;
  const auto folder =
      (std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / BENCH_PLUGIN_FOLDER)
          .lexically_normal();
  for (const char* name : {"libshardarray_llvm.so", "libshardarray_cuda.so"})
    if (std::filesystem::exists(folder / name, ignored)) setenv("SHARDARRAY_PLUGIN_DIR", folder.c_str(), 0);
}

void run_one(const bench::LayoutOptions& o) {
  const std::filesystem::path script =
      std::filesystem::path(BENCH_SOURCE_FOLDER) / "peers" / "jax_layouts.py";
  if (!o.jax.empty()) bench::check_jax(o.jax, script);
  bench::LayoutResults x = bench::LayoutBench(o).run();
  bench::run_all({[&] {
                    if (!o.jax.empty()) bench::add_jax(x, script);
                  },
                  [&] { bench::write_stdout(bench::Report(x, bench::line_width(stdout)).text()); },
                  [&] { bench::write_files(x); }});
}

void run_sweep(const bench::LayoutOptions& o) {
  bench::SweepTable table(bench::parse_sweep(o.sweep).size);
  for (const bench::LayoutOptions& of_size : bench::sizes_of(o)) table.add(bench::LayoutBench(of_size).run());
  bench::write_stdout(table.text());
}

int run(int argc, char** argv) {
  bench::LayoutOptions o;
  bench::CompareOptions compared;
  CLI::App app{"Measures layouts of C[m,n] = A[m,k] B[k,n] on a mesh of virtual devices."};
  bench::add_options(app, o);
  bench::add_compare(app, compared);
  if (!bench::parse(app, argc, argv)) return 0;
  setenv("SHARDARRAY_PLATFORM", o.platform.c_str(), 1);
  find_plugins();
  if (app.got_subcommand("compare")) {
    const bench::Comparison c = bench::compare(compared);
    bench::write_stdout(c.text);
    return c.slower > 0 ? bench::kSlower : 0;
  }
  bench::check(o);
  static_cast<void>(bench::columns_named(o.columns));
  if (o.sweep.empty()) run_one(o);
  else run_sweep(o);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::End end = bench::run_program(argv[0], [&] { return run(argc, argv); });
  fmt::print(stderr, "{}", end.said);
  return end.status;
}
