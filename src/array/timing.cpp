#include "shardarray/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/count_text.h"
#include "base/duration_text.h"

namespace shardarray {

double Timing::best() const { return runs.empty() ? 0 : *std::min_element(runs.begin(), runs.end()); }
double Timing::median() const {
  std::vector<double> sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  return n == 0 ? 0 : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

std::string to_string(const Timing& t) {
  if (t.runs.empty()) return "no runs";
  return fmt::format("{} (best {} of {})", duration_text(t.median()), duration_text(t.best()), t.runs.size());
}
std::ostream& operator<<(std::ostream& os, const Timing& t) { return os << to_string(t); }

void detail::check_time_options(const TimeOptions& o) {
  if (o.runs < 1 || o.warmup < 0)
    throw Error(fmt::format("time_it: {} and {}. There is one run at least. Correct them.",
                            count_text(o.runs, "run"), count_text(o.warmup, "warm-up")));
}

}  // namespace shardarray
