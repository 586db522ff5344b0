#include "cpu/called_program.h"

#include <vector>

namespace shardarray {

void CalledProgram::run(void* const* bases, std::int64_t, std::int64_t) const {
  auto* const received =
      call_.program->transfers.empty() ? nullptr : static_cast<std::int64_t*>(bases[counters_]);
  RunReport report;
  std::vector<void*> mine;
  for (std::int64_t run = 0; run < call_.trip; run++) {
    item_.addresses(run, bases, mine);
    program_->run(mine, received != nullptr ? &report : nullptr);
    for (std::size_t t = 0; t < report.received.size(); t++)
      received[static_cast<std::size_t>(call_.first_transfer) + t] += report.received[t];
  }
}

}  // namespace shardarray
