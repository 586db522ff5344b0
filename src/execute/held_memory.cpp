#include "execute/held_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/bytes_text.h"
#include "layout/spelling.h"
#include "shardarray/error.h"

namespace shardarray {

std::string place(Where w) { return w.line ? fmt::format("{}:{}", w.file, w.line) : ""; }

// The number of devices that hold the same tile.
static int copies_of(const Layout& l) {
  std::int64_t pieces = 1;
  for (const SubAxis& a : l.unreduced()) pieces *= a.size;
  for (const AxisList& dim : l.dims())
    for (const SubAxis& a : dim) pieces *= a.size;
  return static_cast<int>(l.order()->size() / pieces);
}

std::vector<BufferInfo> buffer_list(const Compiled& c, const std::vector<std::string>& paths,
                                    const Mesh* mesh) {
  std::vector<BufferInfo> list;
  for (const HeldMemory& held : c.largest) {
    const PlacedValue& v = c.values[static_cast<std::size_t>(held.value)];
    const auto number = static_cast<std::size_t>(held.number);
    BufferInfo b{.what = v.op,
                 .type = type_string(v.type.dtype, v.type.shape, *v.layout, mesh),
                 .source = place(v.where),
                 .bytes_per_device = static_cast<std::int64_t>(held.bytes),
                 .copies = copies_of(*v.layout)};
    if (held.kind == HeldMemory::Kind::argument) b.kind = BufferInfo::Kind::argument;
    if (held.kind == HeldMemory::Kind::result) b.kind = BufferInfo::Kind::result;
    if (held.kind == HeldMemory::Kind::argument)
      b.what = number < paths.size() ? "argument " + paths[number]
               : paths.empty()       ? "array"
                                     : "captured array";
    else if (held.kind == HeldMemory::Kind::result) b.what = fmt::format("result {}", number);
    else if (held.kind == HeldMemory::Kind::scratch)
      b.what = "temporary values of " + v.op, b.type.clear(), b.copies = 1;
    list.push_back(std::move(b));
  }
  return list;
}

namespace {

/// Something that would save memory.
struct Remedy {
  std::int64_t saves;
  std::string text;
};

std::vector<Remedy> remedies(std::span<const BufferInfo> largest, bool gives) {
  std::vector<Remedy> all;
  std::int64_t temporary = 0, results = 0;
  bool takes = false;
  for (const BufferInfo& b : largest) {
    if (b.kind == BufferInfo::Kind::temporary) temporary += b.bytes_per_device;
    takes |= b.kind == BufferInfo::Kind::argument;
    if (b.kind == BufferInfo::Kind::result) results += b.bytes_per_device;
    if (b.copies > 1)
      all.push_back(
          {b.bytes_per_device / b.copies * (b.copies - 1),
           fmt::format("shard {} {} over the {} devices that each hold it", b.what, b.type, b.copies)});
  }
  // An estimate: either way about half of the temporaries remain.
  if (temporary > 0) {
    all.push_back(
        {temporary / 2, "recompute instead of keeping, by checkpoint() around parts of the function"});
    all.push_back({temporary / 2,
                   "take half of a batch at a time, and add up gradients (optim::multi_steps, or scan)"});
  }
  if (results > 0 && takes && !gives)
    all.push_back(
        {results, "donate arguments whose memory results can take (std::move, JitOptions::donate)"});
  std::ranges::stable_sort(all, std::greater<>(), &Remedy::saves);
  return all;
}

}  // namespace

std::string too_much_memory(const char* function, std::int64_t needs, std::int64_t may_need,
                            std::span<const BufferInfo> largest, bool gives) {
  constexpr std::size_t kMost = 5;
  std::string pieces, ways;
  for (const BufferInfo& b : largest.first(std::min(kMost, largest.size())))
    pieces += fmt::format("\n  {:>9}  {} {}{}", bytes_text(b.bytes_per_device), b.type, b.what,
                          b.source.empty() ? "" : " (" + b.source + ")");
  const std::vector<Remedy> all = remedies(largest, gives);
  for (std::size_t k = 0; k < std::min(kMost, all.size()); k++)
    ways += fmt::format("\n  up to {:>9}: {}", bytes_text(all[k].saves), all[k].text);
  return fmt::format(
      "{}: a device needs {}, and may need {}. Save {}.\nlargest pieces{}\nwhat would save memory{}",
      function, bytes_text(needs), bytes_text(may_need), bytes_text(needs - may_need), pieces, ways);
}

void check_budget(const Compiled& c, const std::vector<std::string>& paths, const Mesh* mesh,
                  std::int64_t bytes, const char* function) {
  const std::vector<std::uint64_t>& peaks = c.program->peak_bytes;
  const auto most = peaks.empty() ? 0 : static_cast<std::int64_t>(std::ranges::max(peaks));
  if (most <= bytes) return;
  const bool gives = paths.empty() || std::ranges::any_of(c.donations, &DonationVerdict::reused);
  throw OutOfMemory(too_much_memory(function, most, bytes, buffer_list(c, paths, mesh), gives));
}

}  // namespace shardarray
