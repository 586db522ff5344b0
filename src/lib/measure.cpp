#include "shardarray/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/bytes_text.h"
#include "base/duration_text.h"

namespace shardarray {

double Measurement::ratio() const {
  const double predicted = plan.compute_seconds + plan.transfer_seconds;
  return predicted > 0 && !time.runs.empty() ? time.median() / predicted : 0;
}

std::string Measurement::to_string() const {
  return fmt::format("{}, predicted {} to {} on {}: {} of steps, {} of transfers, {} received per device",
                     shardarray::to_string(time),
                     duration_text(std::max(plan.compute_seconds, plan.transfer_seconds)),
                     duration_text(plan.compute_seconds + plan.transfer_seconds), plan.machine,
                     duration_text(plan.compute_seconds), duration_text(plan.transfer_seconds),
                     bytes_text(plan.received_bytes_per_device()));
}

std::ostream& operator<<(std::ostream& os, const Measurement& m) { return os << m.to_string(); }

}  // namespace shardarray
