// Bytes that the busiest device receives in whole programs and in small ones, compared with the best known plans and with XLA's. Nothing is
// run.
#include "known_plans.h"
#include "propagation_rows.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace {

std::string ratio(std::int64_t bytes, std::int64_t to) {
  return bytes == to ? "1.00"
         : to == 0   ? ""
                     : fmt::format("{:.4g}", static_cast<double>(bytes) / static_cast<double>(to));
}

// The least bytes that a plan's transfers can take, and for how many of them that is known; the others count with their own bytes.
std::string limit_of(const known_plans::sa::Explanation& e) {
  double least = 0;
  std::size_t known = 0;
  for (const auto& t : e.transfers()) {
    least += static_cast<double>(t.bytes_per_device) / (t.gap > 0 ? t.gap : 1);
    known += t.gap > 0;
  }
  return fmt::format("{:.0f}, {} of {}", least, known, e.transfers().size());
}

void print_programs(const std::string& only, bool explained) {
  const auto mesh = known_plans::sa::make_mesh({{"x", 4}, {"y", 2}});
  fmt::print(
      "| program | bytes | best known | / best | XLA | / XLA | transfers | least of these moves, known of | "
      "where more than the best known: why |\n"
      "|--|--|--|--|--|--|--|--|--|\n");
  for (const known_plans::KnownPlan& k : known_plans::known_plans()) {
    if (k.name.find(only) == std::string::npos) continue;
    const auto e = known_plans::plan_of(k, mesh);
    const auto bytes = known_plans::bytes_of(e);
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", k.name, bytes, k.best,
               ratio(bytes, k.best), k.xla, ratio(bytes, k.xla), e.transfers().size(), limit_of(e),
               bytes > k.best ? k.because : "");
    if (explained) fmt::print("\n{}\n", e.to_string());
  }
}

void print_rows(const std::string& only, bool explained) {
  fmt::print("| row | operands | result | bytes | best known | XLA | transfers |\n|--|--|--|--|--|--|--|\n");
  for (const propagation_rows::Group& group : propagation_rows::groups())
    for (const propagation_rows::Row& r : group.rows) {
      if (r.what.find(only) == std::string::npos) continue;
      std::vector<known_plans::Array> args;
      std::string lie;
      for (const propagation_rows::Operand& o : r.operands) {
        args.push_back(known_plans::sa::shape_dtype_struct(o.shape, o.dtype, o.sharding));
        lie += (lie.empty() ? "" : ", ") + args.back().type_string();
      }
      const auto e = known_plans::sa::explain(
          [&](const std::vector<known_plans::Array>& v) {
            return r.closed ? known_plans::sa::filter_shard(r.f(v), *r.closed) : r.f(v);
          },
          args);
      std::string moves;
      for (const auto& t : e.transfers()) moves += (moves.empty() ? "" : ", ") + t.kind + t.axes;
      fmt::print("| {}: {} | {} | {} | {} | {} | {} | {} |\n", r.number, r.what, lie, e.results()[0],
                 known_plans::bytes_of(e), r.most, r.xla < 0 ? "" : fmt::format("{}", r.xla), moves);
      if (explained) fmt::print("\n{}\n", e.to_string());
    }
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("bytes of the plans of whole programs on a mesh x=4, y=2, as a table in Markdown");
  bool explained = false, rows = false;
  std::string only;
  app.add_flag("--rows", rows, "small programs, one op or two each");
  app.add_flag("--explain", explained, "what moves, and why");
  app.add_option("--only", only, "those whose name has this in it");
  CLI11_PARSE(app, argc, argv);
  known_plans::sa::set_cpu_device_count(8);
  if (rows) print_rows(only, explained);
  else print_programs(only, explained);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
