// What matmul_layouts has measured, as JSON and CSV. `floor` is what the best known strategy needs at least, null without a peak.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "layouts_results.h"

namespace bench {

inline nlohmann::json json_row(const LayoutResults& x, const LayoutRow& r) {
  const Case& timed = x.timed(r);
  nlohmann::json row = {{"name", r.name},
                        {"value", timed.time()},
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
                        {"spread", timed.spread()},
                        {"rounds", x.o.rounds},
                        {"calls_per_round", timed.calls},
                        {"first_call", timed.first},
                        {"gflops", x.gflops(r)},
                        {"share_of_peak", nullptr},
                        {"predicted", nullptr},
                        {"bound", x.bound(r)}};
  if (x.rates.flops > 0) {
    row["floor"] = x.floor(r), row["ratio"] = timed.time() / x.floor(r);
    row["share_of_peak"] = x.peak_share(r), row["predicted"] = x.predicted(r);
  }
  if (x.o.share) row["shared"] = x.cases[r.shared].time();
  return row;
}

inline void write_json(const LayoutResults& x, const std::string& path) {
  nlohmann::json out = nlohmann::json::array();
  auto add = [&](const std::string& name, double value, const char* unit) {
    out.push_back({{"name", name}, {"value", value}, {"unit", unit}, {"floor", nullptr}, {"ratio", nullptr}});
  };
  add("workers", x.workers, "");
  out.back().update({{"platform", x.o.platform},
                     {"machine", x.machine},
                     {"compiler", __VERSION__},
                     {"load", x.load},
                     {"mesh", x.o.mesh},
                     {"m", x.o.m},
                     {"k", x.o.k},
                     {"n", x.o.n},
                     {"dtype", x.o.dtype},
                     {"sums", shardarray::short_name(x.o.type().sums)},
                     {"replicas", "separate"}});
  if (x.rates.flops > 0) add("peak", x.rates.flops, "FLOP/s");
  if (x.blas) add(x.cases[*x.blas].name, x.cases[*x.blas].time(), "s");
  add("copies", x.rates.bytes, "B/s");
  for (const LayoutRow& r : x.rows) out.push_back(json_row(x, r));
  std::ofstream(path) << out.dump(2) << "\n";
}

inline void write_csv(const LayoutResults& x, const std::string& path) {
  const std::vector<std::string> columns{"a",
                                         "b",
                                         "c",
                                         "picked",
                                         "collectives",
                                         "bytes_per_device",
                                         "least_bytes_per_device",
                                         "moved_bytes",
                                         "flops_per_device",
                                         "floor",
                                         "value",
                                         "spread",
                                         "gflops",
                                         "share_of_peak",
                                         "predicted",
                                         "bound"};
  const auto heading = [](const std::string& c) {
    return c == "value" ? "seconds" : c == "floor" ? "floor_seconds" : c;
  };
  std::ofstream file(path);
  for (const std::string& c : columns) file << (c == "a" ? "" : ",") << heading(c);
  file << (x.o.share ? ",shared_seconds\n" : "\n");
  for (const LayoutRow& r : x.rows) {
    const nlohmann::json row = json_row(x, r);
    for (const std::string& column : columns)
      file << (column == "a" ? "" : ",")
           << (row[column].is_string() ? "\"" + row[column].get<std::string>() + "\""
               : row[column].is_null() ? ""
                                       : row[column].dump());
    if (x.o.share) file << "," << row["shared"];
    file << "\n";
  }
}

}  // namespace bench
