// This library's side of `./dev bench peers`: runs one row and prints its figures as JSON. bench/peers/run.py runs it in
// turns with bench/peers/jax_side.py and torch_side.py and prints the table.
//
//   bench_peers ROW [--size N] [--precision f32|tf32|bf16] [--samples N] [--min-time S] [--cold]
//   bench_peers --threads              prints how many the library uses: a peer gets as many
#include <shardarray/shardarray.h>

#include <fmt/format.h>

#include <map>

#include "bench.h"
#include "peers/arrays.h"
#include "peers/training.h"
#include "runtime/pool.h"

namespace {

namespace sa = shardarray;
using Row = peers::Works (*)(std::int64_t size);

const std::map<std::string, Row> rows{{"seed_step", peers::seed_step},
                                      {"dispatch_jit", peers::dispatch_jit},
                                      {"dispatch_eager", peers::dispatch_eager},
                                      {"dispatch_pmap", peers::dispatch_pmap},
                                      {"all_reduce", peers::all_reduce},
                                      {"matmul", peers::matmul},
                                      {"layouts", peers::layouts},
                                      {"adam", peers::adam},
                                      {"adam_of_leaves", peers::adam_of_leaves},
                                      {"gelu", peers::gelu},
                                      {"sum", peers::sum},
                                      {"softmax", peers::softmax},
                                      {"layer_norm", peers::layer_norm},
                                      {"transpose", peers::transpose},
                                      {"sort", peers::sort},
                                      {"argsort", peers::argsort},
                                      {"top_k", peers::top_k},
                                      {"cumsum", peers::cumsum},
                                      {"gather", peers::gather},
                                      {"scatter", peers::scatter},
                                      {"rows_in_loop", peers::rows_in_loop},
                                      {"numbers_taken", peers::numbers_taken},
                                      {"numbers_added", peers::numbers_added},
                                      {"number_steps", peers::number_steps},
                                      {"numbers_written", peers::numbers_written},
                                      {"vectors_of_3", peers::vectors_of_3},
                                      {"row_updates", peers::row_updates},
                                      {"integer_product", peers::integer_product},
                                      {"solve", peers::solve},
                                      {"cholesky", peers::cholesky},
                                      {"fft", peers::fft},
                                      {"cholesky_of_one", peers::cholesky_of_one},
                                      {"attention", peers::attention},
                                      {"gru", peers::gru},
                                      {"lstm", peers::lstm},
                                      {"conv", peers::conv},
                                      {"conv_gradients", peers::conv_gradients},
                                      {"random_bits", peers::random_bits},
                                      {"random_normal", peers::random_normal},
                                      {"mlp", peers::mlp},
                                      {"transformer", peers::transformer},
                                      {"chain", peers::chain}};

struct Options {
  std::string row, precision = "f32";
  std::int64_t size = 0;
  int samples = 15;
  double min_time = 0.01, warm_time = 0.3;
  bool cold = false;
};

/// Runs for `seconds`, until late compilation is over.
void warm_up(const bench::Case& c, double seconds) {
  for (double spent = 0; spent < seconds;) spent += bench::sample(c);
}

nlohmann::json run(const Options& o) {
  const sa::tf32 mode(o.precision == "tf32");
  peers::half_products = o.precision == "bf16";
  const peers::Works works = rows.at(o.row)(o.size);
  nlohmann::json results = nlohmann::json::array();
  std::vector<bench::Case> cases;
  for (const peers::Work& w : works) {
    cases.push_back({w.name, w.call});
    const double first = bench::sample(cases.back());
    results.push_back({{"name", w.name}, {"first", first}, {"check", w.check()}});
    if (!o.cold) warm_up(cases.back(), o.warm_time / static_cast<double>(works.size()));
  }
  if (o.cold) return results;
  bench::measure(cases, o.samples, o.min_time);
  for (std::size_t k = 0; k < cases.size(); k++) results[k]["samples"] = cases[k].seconds;
  return results;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--threads") {
    fmt::print("{}\n", sa::ThreadPool::instance().worker_count());
    return 0;
  }
  Options o;
  CLI::App app{"One row of the comparison with JAX and PyTorch; ./dev bench peers runs all."};
  app.add_option("row", o.row)->required()->check(CLI::IsMember(rows));
  app.add_option("--size", o.size, "Elements, rows or operations");
  app.add_option("--precision", o.precision,
                 "Of products: f32, tf32, or bf16 for the rows `matmul`, `layouts` and `mlp`")
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}));
  app.add_option("--samples", o.samples);
  app.add_option("--min-time", o.min_time, "Seconds of a sample");
  app.add_option("--warm-time", o.warm_time, "Seconds of calls before the first sample");
  app.add_flag("--cold", o.cold, "The first call only");
  CLI11_PARSE(app, argc, argv);
  try {
    fmt::print("{}\n", run(o).dump());
  } catch (const std::exception& e) {
    fmt::print(stderr, "peers: {}: {}\n", o.row, e.what());
    return 1;
  }
}
