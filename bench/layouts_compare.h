// Compares two files that matmul_layouts --json wrote.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench.h"

namespace bench {

struct CompareOptions {
  std::string before, after;
  double fail_above = -1;  ///< relative to the time; negative: never
};

inline void add_compare(CLI::App& app, CompareOptions& o) {
  CLI::App* const compare =
      app.add_subcommand("compare", "Two files of --json: which layouts became slower?");
  compare->add_option("before", o.before, "File of the first run");
  compare->add_option("after", o.after, "File of the second run");
  compare->add_option_function<std::string>(
      "--fail-above",
      [&o](const std::string& word) {
        std::size_t end = 0;
        double percent = -1;
        try {
          percent = std::stod(word, &end);
        } catch (const std::exception&) { end = word.size() + 1; }
        if (end + (word.ends_with('%') ? 1 : 0) != word.size() || !(percent >= 0))
          throw CLI::ValidationError(
              "--fail-above", fmt::format("'{}' is no number of percent. Write 5%, for example.", word));
        o.fail_above = percent / 100;
      },
      "Ends with status 1 if a layout became slower by more than this, and by more than the spreads: 5%");
}

/// A layout in both runs.
struct LayoutChange {
  std::string name;
  double before = 0, after = 0;  ///< seconds
  bool clear = false;            ///< the difference exceeds both spreads
  std::string plan;              ///< how the transfers differ; empty: they do not
  double ratio() const { return after / before; }
};

namespace detail {
inline bool is_layout(const nlohmann::json& row) {
  for (const char* number : {"value", "spread", "bytes_per_device"})
    if (!row.contains(number) || !row[number].is_number()) return false;
  return row.contains("collectives") && row["collectives"].is_string();
}
inline nlohmann::json layouts_file(const char* which, const std::string& path) {
  if (path.empty())
    throw std::invalid_argument(fmt::format(
        "compare: the {} file is not named. It compares two. Write compare before.json after.json.", which));
  errno = 0;
  std::ifstream file(path);
  file.peek();
  if (errno != 0)
    throw std::invalid_argument(
        fmt::format("compare: the {} file '{}' cannot be read ({}). Name one that --json wrote.", which, path,
                    std::strerror(errno)));
  const auto fail = [&](const std::string& why) {
    throw std::invalid_argument(
        fmt::format("compare: {} is no file of matmul_layouts --json: {}. Write one by --json.", path, why));
  };
  nlohmann::json all = nlohmann::json::parse(file, nullptr, false);
  if (!all.is_array() || all.empty() || !all[0].is_object() || !all[0].contains("mesh"))
    fail("it does not begin with a description of the run");
  for (const char* what : {"chain", "predicted"}) all[0].emplace(what, false);  // older files lack these
  for (const nlohmann::json& row : all)
    if (!row.is_object() || !row.contains("name") || (row.contains("a") && !is_layout(row)))
      fail("a row lacks its name, value, spread, collectives or bytes");
  return all;
}
}  // namespace detail

/// The layouts that both files have, in the order of the first one. Throws std::invalid_argument for a file that is not such a file, and
/// for runs of different products.
inline std::vector<LayoutChange> changes(const nlohmann::json& before, const nlohmann::json& after) {
  for (const char* what : {"platform", "predicted", "mesh", "m", "k", "n", "chain", "dtype"})
    if (before[0].value(what, nlohmann::json()) != after[0].value(what, nlohmann::json()))
      throw std::invalid_argument(fmt::format(
          "compare: {} is {} in the first file and {} in the second. Compare runs of one product.", what,
          before[0].value(what, nlohmann::json()).dump(), after[0].value(what, nlohmann::json()).dump()));
  std::vector<LayoutChange> out;
  for (const nlohmann::json& x : before)
    for (const nlohmann::json& y : after) {
      if (!x.contains("a") || !y.contains("a") || x["name"] != y["name"]) continue;
      LayoutChange c{x["name"], x["value"], y["value"], false, ""};
      const double spreads = c.before * x["spread"].get<double>() + c.after * y["spread"].get<double>();
      c.clear = std::abs(c.after - c.before) > spreads;
      if (x["collectives"] != y["collectives"] || x["bytes_per_device"] != y["bytes_per_device"])
        c.plan = fmt::format("{} B ({}), before {} B ({})", y["bytes_per_device"].get<double>(),
                             y["collectives"].get<std::string>(), x["bytes_per_device"].get<double>(),
                             x["collectives"].get<std::string>());
      out.push_back(std::move(c));
    }
  return out;
}

struct Comparison {
  std::string text;        ///< a line per layout, the largest slowdowns first
  std::size_t slower = 0;  ///< how many are slower than allowed
};
/// Throws std::invalid_argument as changes() does, and if the files have no layout in common.
inline Comparison compare(const CompareOptions& o) {
  const nlohmann::json before = detail::layouts_file("first", o.before),
                       after = detail::layouts_file("second", o.after);
  std::vector<LayoutChange> all = changes(before, after);
  if (all.empty()) throw std::invalid_argument("compare: the files have no layout in common");
  std::ranges::stable_sort(all, std::greater<>(), &LayoutChange::ratio);
  Comparison out;
  std::size_t width = 6;
  std::vector<double> ratios;
  for (const LayoutChange& c : all) width = std::max(width, c.name.size());
  out.text += fmt::format("{:<{}}  {:>9}  {:>9}  {:>6}\n", "layout", width, "before", "after", "ratio");
  for (const LayoutChange& c : all) {
    const bool fails = o.fail_above >= 0 && c.clear && c.ratio() > 1 + o.fail_above;
    out.slower += fails;
    ratios.push_back(c.ratio());
    out.text += fmt::format("{:<{}}  {:>9}  {:>9}  {:>6.3f}{}{}{}\n", c.name, width, time_text(c.before),
                            time_text(c.after), c.ratio(), c.clear ? "" : "  within the spreads",
                            fails ? "  SLOWER" : "", c.plan.empty() ? "" : "  moves " + c.plan);
  }
  out.text += fmt::format("{} layouts, ratio {:.3f} in the median\n", all.size(), median(ratios));
  if (o.fail_above >= 0)
    out.text += fmt::format("{} slower by more than {:g} %\n", out.slower, 100 * o.fail_above);
  return out;
}

}  // namespace bench
