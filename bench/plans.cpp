// What the busiest device receives in whole programs, beside the fewest bytes that anybody is known to need, and XLA's. Nothing is run.
#include "known_plans.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

int main(int argc, char** argv) try {
  CLI::App app("bytes of the plans of whole programs on a mesh x=4, y=2, as a table in Markdown");
  bool explained = false;
  std::string only;
  app.add_flag("--explain", explained, "what moves, and why");
  app.add_option("--only", only, "programs whose name has this in it");
  CLI11_PARSE(app, argc, argv);
  known_plans::sa::set_cpu_device_count(8);
  const auto mesh = known_plans::sa::make_mesh({{"x", 4}, {"y", 2}});
  fmt::print("| program | bytes | best known | / best | XLA | / XLA | transfers |\n|--|--|--|--|--|--|--|\n");
  for (const known_plans::KnownPlan& k : known_plans::known_plans()) {
    if (k.name.find(only) == std::string::npos) continue;
    const auto e = known_plans::plan_of(k, mesh);
    const auto bytes = known_plans::bytes_of(e);
    const auto ratio = [&](std::int64_t to) { return static_cast<double>(bytes) / static_cast<double>(to); };
    fmt::print("| {} | {} | {} | {:.2f} | {} | {:.4f} | {} |\n", k.name, bytes, k.best, ratio(k.best), k.xla,
               ratio(k.xla), e.transfers().size());
    if (explained) fmt::print("\n{}\n", e.to_string());
  }
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
