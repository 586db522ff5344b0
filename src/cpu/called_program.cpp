#include "cpu/called_program.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "cpu/address.h"
#include "cpu/work_list.h"
#include "shardarray/error.h"

namespace shardarray {

CalledProgram::Runs::Runs(const CalledProgram& of, void* const* bases) : of_(of), bases_(bases) {}

void CalledProgram::Runs::next() {
  std::vector<void*>& mine = addresses_[number_ == 0 ? 2 : number_ % 2];
  if (number_ < 3) of_.item_.addresses(number_, bases_, mine);
  of_.run_at(bases_, mine);
  if (number_ > 0)
    for (const auto& [base, stride] : of_.moving_) mine[base] = static_cast<char*>(mine[base]) + 2 * stride;
  number_++;
}

void CalledProgram::run_once(void* const* bases, std::vector<void*>& mine) const {
  item_.addresses(0, bases, mine);
  run_at(bases, mine);
}

void CalledProgram::run_at(void* const* bases, std::span<void* const> mine) const {
  auto* const received =
      call_.program->transfers.empty() ? nullptr : static_cast<std::int64_t*>(bases[counters_]);
  RunReport report;
  program_->run(mine, received != nullptr ? &report : nullptr);
  for (std::size_t t = 0; t < report.received.size(); t++)
    received[static_cast<std::size_t>(call_.first_transfer) + t] += report.received[t];
}

void CalledProgram::run(void* const* bases, std::int64_t, std::int64_t) const {
  Runs runs(*this, bases);
  for (std::int64_t k = 0; k < call_.trip; k++) runs.next();
}

double CalledProgram::calls_ns() const {
  constexpr double call_ns = 10;
  return is_plain() ? static_cast<double>(call_.trip) * (call_ns + works().calls_ns()) : 0;
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
  branches_[static_cast<std::size_t>(index)].run_once(bases, mine);
}

double ChosenProgram::cost_ns() const {
  double most = 0;
  for (const CalledProgram& b : branches_) most = std::max(most, b.cost_ns());
  return most;
}

double ChosenProgram::calls_ns() const {
  double most = 0;
  for (const CalledProgram& b : branches_) most = std::max(most, b.calls_ns());
  return most;
}

void RepeatedProgram::run(void* const* bases, std::int64_t, std::int64_t) const {
  std::int64_t runs = 0;
  const auto* const answer = address(bases, item_.answer);
  CalledProgram::Runs of_condition(condition_, bases), of_body(body_, bases);
  for (;; runs++) {
    of_condition.next();
    if (read_number<std::uint8_t>(answer) == 0) break;
    of_body.next();
  }
  if (runs % 2 == 1) return;  // the last run wrote to where the results belong
  for (const ProgramLoop::Carry& c : item_.carries)
    if (c.bytes > 0)
      std::memcpy(address(bases, c.even), address(bases, runs == 0 ? c.first : c.odd), c.bytes);
}

}  // namespace shardarray
