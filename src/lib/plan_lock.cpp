#include "shardarray/plan_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "execute/transfer_text.h"
#include "graph/trace_state.h"
#include "lib/files/file_reader.h"
#include "lib/files/file_writer.h"
#include "shardarray/processes.h"

namespace shardarray {

namespace {

constexpr const char* title =
    "# A plan: what a call moves and needs. plan_lock compares with it; SHARDARRAY_PLAN_LOCK=update writes "
    "it.";
constexpr char before_place = '\t';             // in a file
constexpr std::uint64_t most_bytes = 16 << 20;  // of a file

/// A line of a plan: what is compared, and its place in the program.
struct Line {
  std::string what, place;
  std::string text() const { return place.empty() ? what : fmt::format("{}   {}", what, place); }
};
using Lines = std::vector<Line>;
bool same(const Line& a, const Line& b) { return a.what == b.what; }

/// One line without tabs, whatever names the program has.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

std::string line_of(const TransferInfo& t) {
  return fmt::format("{}{} {} B {} for {}", t.kind, t.axes, t.bytes_per_device, moved_text(t), t.op);
}

Lines lines_of(const Explanation& plan) {
  Lines lines{{fmt::format("peak {} B", plan.peak_bytes_per_device), ""},
              {fmt::format("flops {}", plan.flops), ""}};
  for (const TransferInfo& t : plan.transfers())
    lines.push_back({printable(line_of(t)), printable(std::filesystem::path(t.source).filename().string())});
  for (const DonationInfo& d : plan.donations())
    lines.push_back(
        {printable(fmt::format("donated {}: {}", d.path, d.reused ? "reused" : "not reused")), ""});
  return lines;
}

/// The lines that only one of them has, in order, by the longest common subsequence.
std::string difference(std::span<const Line> before, std::span<const Line> after) {
  while (!before.empty() && !after.empty() && same(before.front(), after.front()))
    before = before.subspan(1), after = after.subspan(1);
  while (!before.empty() && !after.empty() && same(before.back(), after.back()))
    before = before.first(before.size() - 1), after = after.first(after.size() - 1);
  constexpr std::size_t most_pairs = 1 << 24, most_lines = 200;
  const bool compares = before.size() <= most_pairs && before.size() * after.size() <= most_pairs;
  // shared(i, j): the number of lines that before[i..] and after[j..] have in common.
  const std::size_t wide = after.size() + 1;
  std::vector<int> table(compares && !before.empty() && !after.empty() ? (before.size() + 1) * wide : 0);
  const auto shared = [&](std::size_t i, std::size_t j) -> int& { return table[i * wide + j]; };
  for (std::size_t i = before.size(); !table.empty() && i-- > 0;)
    for (std::size_t j = after.size(); j-- > 0;)
      shared(i, j) =
          same(before[i], after[j]) ? shared(i + 1, j + 1) + 1 : std::max(shared(i + 1, j), shared(i, j + 1));
  std::string text;
  std::size_t i = 0, j = 0, lines = 0;
  while (i < before.size() || j < after.size()) {
    const bool both = i < before.size() && j < after.size();
    if (both && !table.empty() && same(before[i], after[j])) {
      i++, j++;
      continue;
    }
    const bool removes =
        i < before.size() && (!both || table.empty() || shared(i + 1, j) >= shared(i, j + 1));
    if (++lines <= most_lines)
      text += fmt::format("{} {}\n", removes ? '-' : '+', removes ? before[i].text() : after[j].text());
    (removes ? i : j)++;
  }
  return lines > most_lines ? text + fmt::format("({} more lines)\n", lines - most_lines) : text;
}

bool updates() {
  const char* const said = secure_getenv("SHARDARRAY_PLAN_LOCK");
  if (said == nullptr || *said == '\0') return false;
  if (std::string_view(said) == "update") return true;
  throw Error(fmt::format(
      "SHARDARRAY_PLAN_LOCK: '{}' is not understood. It is `update`, or not set. Correct or unset it.",
      said));
}

Lines read_lines(const std::string& path) {
  const files::FileReader file("plan_lock", path);
  constexpr const char* advice = "A plan begins with a line that says so. Name another file, or remove it.";
  if (file.size() > most_bytes) file.fail(fmt::format("it has {} bytes", file.size()), advice);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  Lines lines;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);  // as some checkouts have it
    const std::size_t end = std::min(line.find(before_place), line.size());
    lines.push_back({printable(std::string(line.substr(0, end))),
                     printable(std::string(line.substr(std::min(end + 1, line.size()))))});
  }
  if (lines.empty()) file.fail("it is empty", advice);
  if (lines[0].what != title)
    file.fail(fmt::format("its first line is `{}`", files::shown(lines[0].what)), advice);
  lines.erase(lines.begin());
  return lines;
}

void write_lines(const std::string& path, const Lines& lines) {
  files::FileWriter file("plan_lock", path);
  std::string text = fmt::format("{}\n", title);
  for (const Line& line : lines) {
    text += line.what;
    if (!line.place.empty()) text += before_place + line.place;
    text += '\n';
  }
  file.write(text);
  file.commit(false);
}

}  // namespace

std::string core::transfer_lines(const Explanation& plan) {
  std::string text;
  for (const TransferInfo& t : plan.transfers()) text += (text.empty() ? "" : "\n") + line_of(t);
  return text;
}

std::string plan_diff(const Explanation& before, const Explanation& after) {
  return difference(lines_of(before), lines_of(after));
}

void plan_lock(const std::string& path, const Explanation& plan, Where w) {
  const Site site(w, "plan_lock");
  const Lines now = lines_of(plan);
  if (updates()) {
    if (process_index() == 0) write_lines(path, now);
    return;
  }
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found)
    throw PlanError(
        fmt::format("plan_lock: there is no {}. A plan is compared with a file. Run with "
                    "SHARDARRAY_PLAN_LOCK=update to write it.",
                    path));
  const std::string text = difference(read_lines(path), now);
  if (!text.empty())
    throw PlanError(fmt::format(
        "plan_lock: the plan is not that of {}:\n{}What a plan moves, needs and reuses stays as the file "
        "says. Change the program, or run with SHARDARRAY_PLAN_LOCK=update if that is meant.",
        path, text));
}

std::string plan_json(const Explanation& plan) {
  using nlohmann::ordered_json;
  ordered_json all{{"steps_per_device", plan.steps_per_device},
                   {"flops", plan.flops},
                   {"peak_bytes_per_device", plan.peak_bytes_per_device},
                   {"received_bytes_per_device", plan.received_bytes_per_device()},
                   {"machine", plan.machine},
                   {"memory_per_device", plan.memory_per_device},
                   {"compute_seconds", plan.compute_seconds},
                   {"transfer_seconds", plan.transfer_seconds},
                   {"results", plan.results()},
                   {"transfers", ordered_json::array()},
                   {"largest", ordered_json::array()},
                   {"donations", ordered_json::array()}};
  for (const TransferInfo& t : plan.transfers())
    all["transfers"].push_back({{"kind", t.kind},
                                {"axes", t.axes},
                                {"reason", t.reason},
                                {"op", t.op},
                                {"source", t.source},
                                {"bytes_per_device", t.bytes_per_device},
                                {"received", t.received},
                                {"gap", t.gap},
                                {"moved_bytes", t.moved_bytes},
                                {"shape", std::vector<std::int64_t>(t.shape.begin(), t.shape.end())},
                                {"dtype", name(t.dtype)},
                                {"values", t.values},
                                {"seconds", t.seconds},
                                {"runner_up", t.runner_up}});
  for (const BufferInfo& b : plan.largest())
    all["largest"].push_back({{"kind", b.kind == BufferInfo::Kind::argument ? "argument"
                                       : b.kind == BufferInfo::Kind::result ? "result"
                                                                            : "temporary"},
                              {"what", b.what},
                              {"type", b.type},
                              {"source", b.source},
                              {"bytes_per_device", b.bytes_per_device},
                              {"copies", b.copies}});
  for (const DonationInfo& d : plan.donations())
    all["donations"].push_back({{"path", d.path}, {"reused", d.reused}, {"reason", d.reason}});
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace shardarray
