#include "cpu/called_program.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "cpu/address.h"
#include "shardarray/error.h"

namespace shardarray {

void CalledProgram::run_once(void* const* bases, std::int64_t run, std::vector<void*>& mine) const {
  auto* const received =
      call_.program->transfers.empty() ? nullptr : static_cast<std::int64_t*>(bases[counters_]);
  RunReport report;
  item_.addresses(run, bases, mine);
  program_->run(mine, received != nullptr ? &report : nullptr);
  for (std::size_t t = 0; t < report.received.size(); t++)
    received[static_cast<std::size_t>(call_.first_transfer) + t] += report.received[t];
}

void CalledProgram::run(void* const* bases, std::int64_t, std::int64_t) const {
  std::vector<void*> mine;
  for (std::int64_t run = 0; run < call_.trip; run++) run_once(bases, run, mine);
}

ChosenProgram::ChosenProgram(const ProgramChoice& choice, const ProgramChoice::Item& item,
                             std::uint32_t counters, Transport* transport)
    : item_(item) {
  for (const ProgramCall& branch : choice.branches)
    branches_.emplace_back(branch, branch.items[0], counters, transport);
}

void ChosenProgram::run(void* const* bases, std::int64_t, std::int64_t) const {
  const auto index = read_number<std::int32_t>(address(bases, item_.index));
  if (index < 0 || static_cast<std::size_t>(index) >= branches_.size())
    throw InternalError(
        fmt::format("run: branch {} of {}. The index is clamped before the step. Please report this.", index,
                    branches_.size()));
  std::vector<void*> mine;
  branches_[static_cast<std::size_t>(index)].run_once(bases, 0, mine);
}

double ChosenProgram::cost_ns() const {
  double most = 0;
  for (const CalledProgram& b : branches_) most = std::max(most, b.cost_ns());
  return most;
}

void RepeatedProgram::run(void* const* bases, std::int64_t, std::int64_t) const {
  std::int64_t runs = 0;
  std::vector<void*> of_condition, of_body;
  for (;; runs++) {
    condition_.run_once(bases, runs, of_condition);
    if (read_number<std::uint8_t>(address(bases, item_.answer)) == 0) break;
    body_.run_once(bases, runs, of_body);
  }
  if (runs % 2 == 1) return;  // the last run wrote to where the results belong
  for (const ProgramLoop::Carry& c : item_.carries)
    if (c.bytes > 0)
      std::memcpy(address(bases, c.even), address(bases, runs == 0 ? c.first : c.odd), c.bytes);
}

}  // namespace shardarray
