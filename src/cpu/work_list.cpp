#include "cpu/work_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "shardarray/error.h"

namespace shardarray {
namespace {

/// Work::elements of a loop, if its points are independent.
std::int64_t walked_elements(const Kernel& k, const Loop::Item& item) {
  if (!is_pointwise(k)) return 0;
  const std::int64_t n = num_elements(item.extents);
  for (std::size_t a = 0; a < k.args.size(); a++) {
    const LoopArg& x = item.args[a];
    const bool one = !k.args[a].output && is_one_element(x);
    const auto bytes = (one ? 1 : static_cast<std::uint64_t>(n)) * itemsize(k.args[a].type);
    if (x.first != 0 || x.bytes != bytes || !(one || is_packed(item.extents, x.strides))) return 0;
  }
  return n;
}

/// Work::elements of an exchange: one piece that covers its destination and its sources entirely.
std::int64_t walked_elements(const Exchange& x, const Exchange::Item& item) {
  if (item.fill || item.pieces.size() != 1 || lies_there(item.pieces[0])) return 0;
  const Exchange::Piece& p = item.pieces[0];
  const std::int64_t n = num_elements(p.extents);
  const auto bytes = static_cast<std::uint64_t>(n) * itemsize(x.dtype);
  const auto whole = [&](const Exchange::Source& s) { return s.first == 0 && s.tile_bytes == bytes; };
  const bool all = item.dst_bytes == bytes && std::all_of(p.sources.begin(), p.sources.end(), whole) &&
                   is_packed(p.extents, p.src_strides) && is_packed(p.extents, p.dst_strides);
  return all ? n : 0;
}

/// Whether it calls a program over several processes.
bool calls_a_part(const Step& s) {
  const ProgramCall* first = std::get_if<ProgramCall>(&s.body);
  if (const auto* const choice = std::get_if<ProgramChoice>(&s.body)) first = &choice->branches[0];
  if (const auto* const loop = std::get_if<ProgramLoop>(&s.body)) first = &loop->calls[0];
  return first != nullptr && first->part != nullptr;
}

}  // namespace

WorkList::WorkList(const Program& program, std::span<const PartBox> boxes, Transport* transport)
    : base_count_(program.base_count),
      scratch_bases_(static_cast<std::uint32_t>(program.scratch_bytes.size())),
      transport_(transport),
      takes_turns_(std::any_of(program.steps.begin(), program.steps.end(), calls_a_part)) {
  std::size_t next = 0;
  const auto add_boxes = [&](std::size_t step) {
    for (; next < boxes.size() && boxes[next].step == step; next++)
      add(boxes[next], static_cast<std::int64_t>(next));
  };
  for (std::size_t k = 0; k < program.steps.size(); k++) {
    add_boxes(k);
    const std::size_t first = all_.size();
    std::visit([&](const auto& body) { add(body); }, program.steps[k].body);
    for (std::size_t w = first; w < all_.size(); w++)
      all_[w].units.flush_denormals = program.steps[k].flush_denormals;
  }
  add_boxes(program.steps.size());
}

Work& WorkList::append(ItemRanges ranges, Task units) {
  for (const MemoryRanges* all : {&ranges.reads, &ranges.writes}) {
    for (const MemoryRange& r : *all) {
      if (r.base < base_count_ && r.lo <= r.hi) continue;
      throw InternalError(fmt::format(
          "load: a step touches bytes [{}, {}) of base {}, the program has {} bases. Addresses must stand in "
          "one of them. Please report this.",
          r.lo, r.hi, r.base, base_count_));
    }
  }
  return all_.emplace_back(Work{std::move(ranges.reads), std::move(ranges.writes), units});
}

void WorkList::add(const Loop& loop) {
  for (const Loop::Item& item : loop.items) {
    const LoopPlan& plan = loops_.emplace_back(loop.kernel, item);
    Work& work = append(ranges_of(loop, item), all_units(plan));
    work.loop = &loop;
    work.item = &item;
    may_be_code(work, plan.cost_ns());
    work.least_units = plan.least_units();
    work.elements = walked_elements(*loop.kernel, item);
  }
}

void WorkList::add(const Gemm& gemm) {
  for (const Gemm::Item& i : gemm.items) {
    const GemmPlan& plan = gemms_.emplace_back(gemm, i);
    Work& work = append(ranges_of(gemm, i), all_units(plan));
    work.gemm = &plan;
    if (plan.spec()) may_be_code(work, plan.cost_ns());
  }
}

void WorkList::add(const LibraryCall& call) {
  for (const LibraryCall::Item& i : call.items) {
    const LibraryPlan& first = library_calls_.emplace_back(plan_library_call(call, i));
    Work& work = append(ranges_of(call, i), all_units(first));
    work.library = &call;
    work.library_item = &i;
    for (const LibraryPlan& stage : first.next()) append(ranges_of(call, i), all_units(stage));
  }
}

void WorkList::add(const Exchange& x) {
  for (const Exchange::Item& i : x.items) {
    ItemRanges ranges = ranges_of(x, i);
    const ExchangePlan& plan = exchanges_.emplace_back(x, i, base_count_);
    const std::int64_t filled = plan.fill_units(), units = plan.units();
    const double cost = plan.cost_ns(0, units);
    if (filled > 0 && cost > 2 * chunk_ns) {
      append({{}, ranges.writes}, task_of(plan, 0, filled, plan.cost_ns(0, filled)));
      append(std::move(ranges), task_of(plan, filled, units, plan.cost_ns(filled, units)));
    } else {  // filling and pieces are one task
      Work& work =
          append(std::move(ranges), task_of(plan, 0, units, filled > 0 ? std::min(cost, chunk_ns) : cost));
      work.exchange = &x;
      work.exchange_item = &i;
      work.elements = walked_elements(x, i);
      work.grain = 1;
    }
  }
}

void WorkList::add(const PartBox& box, std::int64_t number) {
  const MemoryRanges memory = {{box.ref.base, box.ref.offset, box.ref.offset + box.bytes}};
  Work& work = append(box.sent ? ItemRanges{memory, {}} : ItemRanges{{}, memory}, Task{});
  work.box = number;
  if (takes_turns_) work.reads.push_back(turn());
}

void WorkList::add(const ProgramCall& call) {
  for (const ProgramCall::Item& i : call.items)
    append_call(ranges_of(call, i), called_.emplace_back(call, i, base_count_, transport_), call);
}

void WorkList::add(const ProgramChoice& choice) {
  for (const ProgramChoice::Item& i : choice.items)
    append_call(ranges_of(choice, i), chosen_.emplace_back(choice, i, base_count_, transport_),
                choice.branches[0]);
}

void WorkList::add(const ProgramLoop& loop) {
  for (const ProgramLoop::Item& i : loop.items)
    append_call(ranges_of(loop, i), repeated_.emplace_back(loop, i, base_count_, transport_), loop.calls[0]);
}

template <class Plan>
void WorkList::append_call(ItemRanges ranges, const Plan& plan, const ProgramCall& call) {
  Work& work = append(std::move(ranges), all_units(plan));
  work.calls = &plan;
  if (call.part) work.writes.push_back(turn());
  calls_ns_ += plan.calls_ns();
  may_be_code(work, plan.calls_ns());
}

void WorkList::may_be_code(Work& work, double ns) {
  work.interpreted_ns = ns;
  interpreted_ns_ += ns;
}

}  // namespace shardarray
