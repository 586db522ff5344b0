// The results of matmul_layouts as JSON, CSV and Markdown. `floor` is the least time of the best known strategy, null without a peak.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "layouts_output.h"
#include "layouts_table.h"

namespace bench {

inline nlohmann::json json_row(const LayoutResults& x, const LayoutRow& r) {
  nlohmann::json row = {{"name", r.name},
                        {"value", x.seconds(r)},
                        {"unit", "s"},
                        {"floor", nullptr},
                        {"ratio", nullptr},
                        {"a", to_text(r.layout.a, x.product.mesh)},
                        {"b", to_text(r.layout.b, x.product.mesh)},
                        {"c", r.c_spelling.empty() ? to_text(r.layout.c, x.product.mesh) : r.c_spelling},
                        {"picked", r.picked},
                        {"collectives", r.collectives},
                        {"bytes_per_device", r.bytes},
                        {"least_bytes_per_device", r.least.bytes},
                        {"least_strategy", r.least.where},
                        {"moved_bytes", r.moved},
                        {"flops_per_device", r.flops},
                        {"memory_per_device", r.memory},
                        {"t_lo", nullptr},
                        {"t_hi", nullptr},
                        {"spread", x.spread(r)},
                        {"gflops", x.gflops(r)},
                        {"busbw", r.bytes / x.seconds(r)},
                        {"share_of_peak", nullptr},
                        {"bound", x.bound(r)}};
  if (r.layout.v) row["v"] = to_text(*r.layout.v, x.product.mesh);
  if (r.timed) {
    const Case& timed = x.timed(r);
    row["rounds"] = x.o.rounds, row["calls_per_round"] = timed.calls, row["first_call"] = timed.first;
    row["p99"] = percentile_99(timed);
  }
  if (x.rates.flops > 0) {
    row["floor"] = x.floor(r), row["ratio"] = x.seconds(r) / x.floor(r);
    row["share_of_peak"] = x.peak_share(r);
  }
  if (r.predicted() > 0) row["t_lo"] = r.overlapped(), row["t_hi"] = r.predicted();
  if (r.shared) row["shared"] = x.cases[*r.shared].time();
  if (r.jax > 0) row["jax"] = r.jax;
  return row;
}

inline std::string json_text(const LayoutResults& x) {
  nlohmann::json out = nlohmann::json::array();
  auto add = [&](const std::string& name, double value, const char* unit) {
    out.push_back({{"name", name}, {"value", value}, {"unit", unit}, {"floor", nullptr}, {"ratio", nullptr}});
  };
  add("workers", x.workers, "");
  out.back().update({{"platform", x.o.described() ? x.o.machine : x.o.platform},
                     {"predicted", x.o.described()},
                     {"machine", x.machine},
                     {"compiler", __VERSION__},
                     {"load", x.load},
                     {"mesh", x.o.mesh},
                     {"m", x.o.m},
                     {"k", x.o.k},
                     {"n", x.o.n},
                     {"chain", x.o.chain},
                     {"dtype", x.o.dtype},
                     {"sums", shardarray::short_name(x.o.type().sums)},
                     {"replicas", "separate"}});
  if (x.rates.flops > 0) add("peak", x.rates.flops, "FLOP/s");
  if (x.one_device) add(x.cases[*x.one_device].name, x.cases[*x.one_device].time(), "s");
  if (x.blas) {
    add(x.cases[*x.blas].name, x.cases[*x.blas].time(), "s");
    if (!x.blas_library.empty()) out.back()["library"] = x.blas_library;
  }
  if (x.measured()) add("copies", x.rates.bytes, "B/s");
  if (const auto p = prediction(x)) {
    add("rank correlation of t_hi", p->correlation, "");
    add("median error of t_hi", p->median_error, "");
    add("regret of the fastest by t_hi", p->regret, "");
  }
  for (const LayoutRow& r : x.rows) out.push_back(json_row(x, r));
  return out.dump(2) + "\n";
}

inline std::string csv_text(const LayoutResults& x) {
  const std::vector<std::string> columns{"a",
                                         "b",
                                         "v",
                                         "c",
                                         "picked",
                                         "collectives",
                                         "bytes_per_device",
                                         "least_bytes_per_device",
                                         "moved_bytes",
                                         "flops_per_device",
                                         "memory_per_device",
                                         "floor",
                                         "t_lo",
                                         "t_hi",
                                         "value",
                                         "spread",
                                         "p99",
                                         "gflops",
                                         "share_of_peak",
                                         "busbw",
                                         "bound",
                                         "shared",
                                         "jax"};
  const auto heading = [](const std::string& c) {
    return c == "value" ? "seconds" : c == "floor" || c == "shared" || c == "jax" ? c + "_seconds" : c;
  };
  std::string text;
  for (const std::string& c : columns) text += (c == "a" ? "" : ",") + heading(c);
  text += "\n";
  for (const LayoutRow& r : x.rows) {
    const nlohmann::json row = json_row(x, r);
    for (const std::string& column : columns) {
      const nlohmann::json v = row.value(column, nlohmann::json());
      text += column == "a" ? "" : ",";
      text += v.is_string() ? "\"" + v.get<std::string>() + "\"" : v.is_null() ? "" : v.dump();
    }
    text += "\n";
  }
  return text;
}

/// Writes the requested files. Throws std::runtime_error, after writing all that can be written.
inline void write_files(const LayoutResults& x) {
  const auto write = [](const char* option, const std::string& path, const auto& text) {
    return [=] {
      if (!path.empty()) write_file(option, path, text());
    };
  };
  run_all({write("--json", x.o.json_file, [&] { return json_text(x); }),
           write("--csv", x.o.csv_file, [&] { return csv_text(x); }),
           write("--markdown", x.o.markdown_file, [&] { return LayoutTable(x).markdown(); })});
}

}  // namespace bench
