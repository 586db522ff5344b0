// Checks of a plan: that donated memory is reused, that the program fits.
#include <fmt/format.h>

#include "execute/held_memory.h"
#include "shardarray/error.h"
#include "shardarray/plan_lock.h"

namespace shardarray {

void require_reuse(const Explanation& plan, Where w) {
  const Site site(w, "require_reuse");
  std::string text;
  for (const DonationInfo& d : plan.donations())
    if (!d.reused) text += fmt::format("\n  {}: {}", d.path, d.reason);
  if (!text.empty())
    throw PlanError(fmt::format(
        "require_reuse: memory that is given away becomes no result's. Return an array of that shape, dtype "
        "and sharding, which is written when this one has been read, move the only handle in, or keep it:{}",
        text));
}

void require_memory(const Explanation& plan, std::int64_t bytes_per_device, Where w) {
  const Site site(w, "require_memory");
  if (bytes_per_device < 1)
    throw Error(fmt::format("require_memory: {} bytes. A device has at least 1. Give what it has.",
                            bytes_per_device));
  if (plan.peak_bytes_per_device > bytes_per_device)
    throw OutOfMemory(too_much_memory("require_memory", plan.peak_bytes_per_device, bytes_per_device,
                                      plan.largest(), !plan.donations().empty()));
}

}  // namespace shardarray
