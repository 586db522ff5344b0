// explain(): describes the compiled program of a call. The transfers are those of the Program that a call would run.
#include "shardarray/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "base/bytes_text.h"
#include "base/count_text.h"
#include "base/duration_text.h"
#include "base/sizes.h"
#include "base/text_width.h"
#include "compile/passes.h"
#include "compile/spelled_layouts.h"
#include "execute/held_memory.h"
#include "execute/jit.h"
#include "execute/machine_times.h"
#include "execute/transfer_text.h"
#include "layout/spelling.h"
#include "runtime/devices.h"

namespace shardarray {

namespace {

std::string short_place(const std::string& s) {
  const auto slash = s.rfind('/');
  return slash == std::string::npos ? s : s.substr(slash + 1);
}

// The width of a column for these texts, at least `least`.
template <class List, class TextOf>
std::size_t widest(const List& list, std::size_t least, const TextOf& text_of) {
  for (const auto& x : list) least = std::max(least, text_width(text_of(x)));
  return least;
}

}  // namespace

// How far from the least, of one that is not proved to be that: nobody knows a better way.
static std::string gap_text(double gap) {
  if (gap == 1) return "1.00 proved";
  return gap == 0 ? "best known" : fmt::format("{:.2f} best known", gap);
}

std::string moved_text(const TransferInfo& t) {
  const std::string first = fmt::format("{}{}", short_name(t.dtype), to_string(t.shape));
  return t.values > 1 ? fmt::format("{} and {} more", first, t.values - 1) : first;
}

std::int64_t Explanation::received_bytes_per_device() const {
  std::size_t devices = 1;
  for (const TransferInfo& t : transfers_) devices = std::max(devices, t.received.size());
  std::vector<std::int64_t> bytes(devices, 0);
  for (const TransferInfo& t : transfers_)
    for (std::size_t d = 0; d < devices; d++)
      bytes[d] = add_sizes(bytes[d], t.received.empty() ? t.bytes_per_device : t.received[d]);
  return *std::ranges::max_element(bytes);
}

namespace {

std::string sums_text(const Explanation& e) {
  std::string text =
      fmt::format("{} per device, {} transfer{}, {} received per device, {:.3g} flops, peak {} per device\n",
                  count_text(e.steps_per_device, "step"), e.transfers().size(),
                  e.transfers().size() == 1 ? "" : "s", bytes_text(e.received_bytes_per_device()),
                  static_cast<double>(e.flops), bytes_text(e.peak_bytes_per_device));
  if (!e.machine.empty())
    text += fmt::format("on {}: {} to {} ({} of steps, {} of transfers), {} {} of memory\n", e.machine,
                        duration_text(std::max(e.compute_seconds, e.transfer_seconds)),
                        duration_text(e.compute_seconds + e.transfer_seconds),
                        duration_text(e.compute_seconds), duration_text(e.transfer_seconds),
                        e.peak_bytes_per_device <= e.memory_per_device ? "fits into" : "does not fit into",
                        bytes_text(e.memory_per_device));
  return text;
}

std::vector<std::string> transfer_lines(const Explanation& e) {
  const std::size_t axes = widest(e.transfers(), 8, [](const TransferInfo& t) { return t.axes; });
  std::vector<std::string> lines;
  for (const TransferInfo& t : e.transfers())
    lines.push_back(fmt::format("{:<14} {:<{}} {:>9}  {:<11}{}  {}  for {}: {}   {}\n", t.kind, t.axes, axes,
                                bytes_text(t.bytes_per_device), gap_text(t.gap),
                                e.machine.empty() ? "" : fmt::format("  {:>8}", duration_text(t.seconds)),
                                moved_text(t), t.op, t.reason, short_place(t.source)));
  return lines;
}

std::string donation_line(const DonationInfo& d) {
  return fmt::format("  {}: {}\n", d.path, d.reused ? "reused" : "not reused, " + d.reason);
}

std::string largest_text(const std::vector<BufferInfo>& largest) {
  if (largest.empty()) return "";
  std::string text = "largest pieces of memory, at the worst moment\n";
  const std::size_t types = widest(largest, 16, [](const BufferInfo& b) { return b.type; });
  for (const BufferInfo& b : largest)
    text += fmt::format("  {:>9}  {:<{}} {}{}\n", bytes_text(b.bytes_per_device), b.type, types, b.what,
                        b.source.empty() ? "" : "   " + short_place(b.source));
  return text;
}

}  // namespace

std::string Explanation::to_string() const {
  std::string text = sums_text(*this);
  if (!values_.empty()) text += "values\n" + values_;
  if (!transfers_.empty()) text += "transfers\n";
  for (const std::string& line : transfer_lines(*this)) text += "  " + line;
  if (!donations_.empty()) text += "donations\n";
  for (const DonationInfo& d : donations_) text += donation_line(d);
  return text + largest_text(largest_);
}

std::string Explanation::summary() const {
  std::string text = sums_text(*this);
  std::vector<std::pair<std::string, std::size_t>> lines;  // and how often each occurs
  for (std::string& line : transfer_lines(*this)) {
    const auto known = std::ranges::find(lines, line, [](const auto& x) { return x.first; });
    if (known == lines.end()) lines.emplace_back(std::move(line), 1);
    else known->second++;
  }
  if (!lines.empty()) text += "transfers\n";
  for (const auto& [line, count] : lines)
    text += fmt::format("  {:>6}{}", count > 1 ? fmt::format("{} x ", count) : "", line);
  if (!donations_.empty())
    text += fmt::format("donations: {} of {} reused\n",
                        std::ranges::count(donations_, true, &DonationInfo::reused), donations_.size());
  for (const DonationInfo& d : donations_)
    if (!d.reused) text += donation_line(d);
  return text + largest_text(largest_);
}

Explanation Explanation::on(const Machine& m, Where w) const {
  const Site site(w, "Explanation::on");
  check_machine(m);
  Explanation x = *this;
  x.machine = m.name;
  x.memory_per_device = static_cast<std::int64_t>(m.memory);
  x.compute_seconds = x.transfer_seconds = 0;
  if (program_ == nullptr) return x;
  const MachineTimes times(*program_, m);
  x.compute_seconds = times.compute_seconds();
  for (std::size_t k = 0; k < x.transfers_.size(); k++) {
    x.transfers_[k].seconds = times.seconds(program_->transfers[k]);
    x.transfer_seconds += x.transfers_[k].seconds;
  }
  return x;
}

std::vector<Device> Explanation::devices() const {
  return program_ ? program_->order->devices() : std::vector<Device>();
}

std::ostream& operator<<(std::ostream& os, const Explanation& e) { return os << e.to_string(); }

namespace core {

// " %3 %7", the first few.
static std::string operands_text(const std::vector<int>& values) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t k = 0; k < std::min(values.size(), most); k++) text += fmt::format(" %{}", values[k]);
  return values.size() > most ? text + fmt::format(" and {} more", values.size() - most) : text;
}

static std::string value_lines(const Compiled& c, const Mesh* mesh) {
  std::string text;
  SpelledLayouts spelled(mesh);
  const std::size_t types = widest(c.values, 16, [](const PlacedValue& v) { return to_string(v.type); });
  for (std::size_t k = 0; k < c.values.size(); k++) {
    const PlacedValue& v = c.values[k];
    text += fmt::format("  %{:<4} {:<{}} {}{}{}  {}{}{}{}{}\n", k, to_string(v.type), types,
                        spelled.of(v.layout), v.layout->unreduced().empty() ? "" : " U",
                        v.layout->unreduced().empty() ? "" : spelled.summed(v.layout), v.op,
                        operands_text(v.in), v.note.empty() ? "" : ", ", v.note,
                        v.where.line ? "   " + short_place(place(v.where)) : "");
  }
  return text;
}

static std::vector<TransferInfo> transfer_list(const Program& program, const Mesh* mesh) {
  std::vector<TransferInfo> list;
  for (const Transfer& t : program.transfers)
    list.push_back({name(t.kind), axis_names(t.axes, program.order, mesh), t.reason, t.op, place(t.where),
                    t.bytes, t.received, t.gap, t.moved_bytes, t.shape, t.dtype, 0, t.runner_up, t.values});
  return list;
}

static std::vector<std::string> result_list(const JitEntry& e, const Compiled& c, const Mesh* mesh) {
  std::vector<std::string> list;
  for (std::size_t k = 0; k < e.output_types.size(); k++)
    list.push_back(type_string(e.output_types[k].dtype, e.output_types[k].shape, *c.output_layouts[k], mesh));
  return list;
}

// Every trip of a called program counts; a choice counts its longest branch, a while loop one iteration.
static std::int64_t steps_per_device(const Program& program) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(program.order->size()), 0);
  std::int64_t called = 0;
  for (const Step& s : program.steps)
    std::visit(
        [&]<class Body>(const Body& body) {
          if constexpr (std::is_same_v<Body, ProgramCall>)
            called = add_sizes(called, mul_sizes(body.trip, steps_per_device(*body.program)));
          else if constexpr (std::is_same_v<Body, ProgramChoice>) {
            std::int64_t most = 0;
            for (const ProgramCall& b : body.branches) most = std::max(most, steps_per_device(*b.program));
            called = add_sizes(called, most);
          } else if constexpr (std::is_same_v<Body, ProgramLoop>)
            called = add_sizes(called, add_sizes(steps_per_device(*body.condition().program),
                                                 steps_per_device(*body.body().program)));
          else {
            std::vector<bool> has_part(count.size());
            for (const auto& item : body.items) has_part[static_cast<std::size_t>(item.device)] = true;
            for (std::size_t d = 0; d < count.size(); d++) count[d] += has_part[d];
          }
        },
        s.body);
  return add_sizes(*std::max_element(count.begin(), count.end()), called);
}

static std::vector<DonationInfo> donation_list(const JitEntry& e, const JitCall& call, const Compiled& c,
                                               std::span<const LaunchLeaf> leaves, bool share_replicas) {
  std::vector<DonationInfo> list;
  for (std::size_t k = 0; k < call.leaves.size(); k++) {
    if (leaves[k].give == Give::keep) continue;
    DonationInfo d{k < e.paths.size() ? e.paths[k] : std::to_string(k), c.donations[k].reused,
                   c.donations[k].reason};
    const char* const kept = keeps_its_memory(*leaves[k].value, share_replicas);
    bool alone = leaves[k].sole_owner && kept == nullptr;
    for (const BufferRef& b : leaves[k].value->buffers) alone &= b.get()->unique();
    if (d.reused && !alone) {
      d.reused = false;
      d.reason = kept != nullptr ? kept : "another handle owns it";
    }
    list.push_back(std::move(d));
  }
  return list;
}

// Compiles for this call: a cached program may be another function's, with its lines.
Explanation explain_call(const JitEntry& e, const JitCall& call, bool brief) {
  std::vector<LaunchLeaf> leaves;
  placed_leaves(e, call, leaves);
  std::vector<ValueRef> values;
  std::vector<bool> donated;
  for (const LaunchLeaf& l : leaves) {
    values.push_back(l.value);
    donated.push_back(l.give != Give::keep);
  }
  CompileInput in = compile_input(e.flat, place_leaves(e.flat, values, {}, e.paths, *e.modes, call.function),
                                  std::move(donated), {}, e.paths, values);
  in.is_explained = !spans_processes(in.order->devices());
  in.tells_runner_ups = !brief;
  const Mesh* const mesh = in.mesh;
  const bool share_replicas = in.share_replicas;
  const Compiled c = compile(std::move(in));
  const Program& program = *c.program;
  Explanation x(transfer_list(program, mesh), donation_list(e, call, c, leaves, share_replicas),
                brief ? "" : value_lines(c, mesh), buffer_list(c, e.paths, mesh), result_list(e, c, mesh));
  for (std::uint64_t peak : program.peak_bytes)
    x.peak_bytes_per_device = std::max(x.peak_bytes_per_device, static_cast<std::int64_t>(peak));
  constexpr double most = 0x1p63;  // long loops may exceed it
  x.flops = c.flops < most ? static_cast<std::int64_t>(c.flops) : std::numeric_limits<std::int64_t>::max();
  x.steps_per_device = steps_per_device(program);
  x.program_ = c.program;
  const Machine* const described = described_machine(program.order->devices()[0].platform);
  return described ? std::move(x).on(*described) : x;
}

std::string print_call(const JitEntry& e, const JitCall&) {
  const Target& target = backend(default_device_of(*e.modes).platform).target();
  return simplify_and_order(e.flat, device_count(), target).to_string();
}

}  // namespace core
}  // namespace shardarray
