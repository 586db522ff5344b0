// What a program asks of a plan: that donated memory is reused, that it fits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/bytes_text.h"
#include "shardarray/error.h"
#include "shardarray/plan_lock.h"

namespace shardarray {

void require_reuse(const Explanation& plan, Where w) {
  const Site site(w, "require_reuse");
  std::string text;
  for (const DonationInfo& d : plan.donations())
    if (!d.reused) text += fmt::format("\n  {}: {}", d.path, d.reason);
  if (!text.empty())
    throw PlanError(
        fmt::format("require_reuse: memory that is given away becomes no result's. Return an array of that "
                    "shape, dtype and sharding, which is "
                    "written when this one has been read, move the only handle in, or keep it:{}",
                    text));
}

namespace {

/// Something that would save memory.
struct Remedy {
  std::int64_t saves;
  std::string text;
};

std::vector<Remedy> remedies(const Explanation& plan) {
  std::vector<Remedy> all;
  std::int64_t temporary = 0, results = 0;
  for (const BufferInfo& b : plan.largest()) {
    if (b.kind == BufferInfo::Kind::temporary) temporary += b.bytes_per_device;
    if (b.kind == BufferInfo::Kind::result) results += b.bytes_per_device;
    if (b.copies > 1)
      all.push_back(
          {b.bytes_per_device / b.copies * (b.copies - 1),
           fmt::format("shard {} {} over the {} devices that each hold it", b.what, b.type, b.copies)});
  }
  // Half of it, as what is kept for the derivative is recomputed, or of half a batch at a time.
  if (temporary > 0) {
    all.push_back(
        {temporary / 2, "recompute instead of keeping, by checkpoint() around parts of the function"});
    all.push_back({temporary / 2,
                   "take half of a batch at a time, and add up gradients (optim::multi_steps, or scan)"});
  }
  const bool gives = !plan.donations().empty();
  if (results > 0 && !gives)
    all.push_back(
        {results, "donate arguments whose memory results can take (std::move, JitOptions::donate)"});
  std::ranges::stable_sort(all, std::greater<>(), &Remedy::saves);
  return all;
}

}  // namespace

void require_memory(const Explanation& plan, std::int64_t bytes_per_device, Where w) {
  const Site site(w, "require_memory");
  if (bytes_per_device < 1)
    throw Error(fmt::format("require_memory: {} bytes. A device has at least 1. Give what it has.",
                            bytes_per_device));
  if (plan.peak_bytes_per_device <= bytes_per_device) return;
  constexpr std::size_t kMost = 5;
  std::string pieces, ways;
  for (std::size_t k = 0; k < std::min(kMost, plan.largest().size()); k++) {
    const BufferInfo& b = plan.largest()[k];
    pieces += fmt::format("\n  {:>9}  {} {}{}", bytes_text(b.bytes_per_device), b.type, b.what,
                          b.source.empty() ? "" : " (" + b.source + ")");
  }
  const std::vector<Remedy> all = remedies(plan);
  for (std::size_t k = 0; k < std::min(kMost, all.size()); k++)
    ways += fmt::format("\n  up to {:>9}: {}", bytes_text(all[k].saves), all[k].text);
  throw OutOfMemory(
      fmt::format("require_memory: a device needs {}, and may need {}. Save {}.\nlargest pieces{}\nwhat "
                  "would save memory{}",
                  bytes_text(plan.peak_bytes_per_device), bytes_text(bytes_per_device),
                  bytes_text(plan.peak_bytes_per_device - bytes_per_device), pieces, ways));
}

}  // namespace shardarray
