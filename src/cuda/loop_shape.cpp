#include "cuda/loop_shape.h"

#include <algorithm>
#include <utility>

namespace shardarray::cuda {

LoopOperands::LoopOperands(const Kernel& k) : arguments(k.args.size()) {
  for (const Instr& in : k.code) {
    const auto dim = static_cast<std::size_t>(in.imm);
    if (in.code == Code::index && number_of_index(dim) == count()) indices.push_back(dim);
  }
}
std::size_t LoopOperands::number_of_index(std::size_t dim) const {
  return arguments +
         static_cast<std::size_t>(std::find(indices.begin(), indices.end(), dim) - indices.begin());
}

LoopAxes::LoopAxes(const Loop& loop, const LoopOperands& operands)
    : loop_(loop), operands_(operands), items_(loop.items.size()) {
  const Kernel& k = *loop.kernel;
  const auto outer = static_cast<std::size_t>(k.outer), dims = outer + static_cast<std::size_t>(k.inner);
  for (std::size_t d = 0; d < dims; d++) {
    if (d == outer) outer_ = first_ = count_;
    add(d);
  }
  if (dims == outer) outer_ = count_;
}

std::vector<std::int64_t> LoopAxes::steps(std::size_t item, std::size_t dim) const {
  const Kernel& k = *loop_.kernel;
  std::vector<std::int64_t> s;
  for (std::size_t a = 0; a < operands_.arguments; a++)
    s.push_back(loop_.items[item].args[a].strides[dim] * static_cast<std::int64_t>(itemsize(k.args[a].type)));
  for (const std::size_t i : operands_.indices) s.push_back(i == dim);
  return s;
}

/// Where a dimension has one point, or none, how operands move along it does not matter.
bool LoopAxes::may_join(std::size_t item, std::int64_t extent, const std::vector<std::int64_t>& steps) const {
  const Item& it = items_[item];
  if (extent <= 1 || it.extents.back() <= 1) return true;
  for (std::size_t o = 0; o < steps.size(); o++)
    if (it.strides.back()[o] != steps[o] * extent) return false;
  return true;
}

void LoopAxes::add(std::size_t dim) {
  const auto extent = [&](std::size_t item) { return loop_.items[item].extents[dim]; };
  bool moves = false, join = count_ > first_;
  for (std::size_t i = 0; i < items_.size(); i++) {
    moves = moves || extent(i) != 1;
    join = join && may_join(i, extent(i), steps(i, dim));
  }
  if (!moves) return;
  for (std::size_t i = 0; i < items_.size(); i++) {
    Item& it = items_[i];
    if (join) {
      it.extents.back() *= extent(i);
      if (extent(i) > 1) it.strides.back() = steps(i, dim);
    } else {
      it.extents.push_back(extent(i));
      it.strides.push_back(steps(i, dim));
    }
  }
  if (!join) count_++;
}

std::vector<std::int64_t> LoopAxes::strides(std::size_t item) const {
  std::vector<std::int64_t> all;
  for (std::size_t o = 0; o < operands_.count(); o++)
    for (std::size_t x = 0; x < count_; x++) all.push_back(items_[item].strides[x][o]);
  return all;
}

LoopShape::Move LoopAxes::move(std::size_t operand, std::size_t axis) const {
  const std::int64_t one = operand < operands_.arguments
                               ? static_cast<std::int64_t>(itemsize(loop_.kernel->args[operand].type))
                               : 1;
  bool none = true, by_one = true;
  for (const Item& it : items_) {
    if (it.extents[axis] <= 1) continue;
    none = none && it.strides[axis][operand] == 0;
    by_one = by_one && it.strides[axis][operand] == one;
  }
  return none ? LoopShape::Move::none : by_one ? LoopShape::Move::one : LoopShape::Move::any;
}

LoopShape LoopAxes::shape() const {
  LoopShape s;
  s.outer_axes = outer();
  s.axes = count();
  for (const Item& it : items_) {
    std::int64_t outer = 1, inner = 1;
    for (std::size_t x = 0; x < count_; x++) (x < outer_ ? outer : inner) *= it.extents[x];
    s.small = s.small && std::max(outer, inner) < std::int64_t{1} << 31;
  }
  for (std::size_t o = 0; o < operands_.count(); o++)
    for (std::size_t x = 0; x < count_; x++) s.moves.push_back(move(o, x));
  return s;
}

}  // namespace shardarray::cuda
