#include "cpu/loops/loop_nest.h"

#include <algorithm>
#include <cstdlib>

#include "base/ceil_div.h"
#include "base/nest_axes.h"
#include "cpu/address.h"

namespace shardarray {
namespace {

bool has_inner_stage(const Kernel& k) {
  return std::any_of(k.stages.begin(), k.stages.end(), [](const Stage& s) { return s.inner; });
}
bool is_access(const Instr& in) { return in.code >= Code::index && in.code <= Code::store; }

std::int64_t element_step(const Kernel& k, const Instr& in) {
  return in.code == Code::index ? 1 : static_cast<std::int64_t>(itemsize(k.args[in.imm].type));
}

/// Rough nanoseconds per point of an instruction, vectorized.
double operation_ns(const Instr& in) {
  const double width = static_cast<double>(itemsize(in.type)) / 4;
  switch (in.code) {
    case Code::constant:
    case Code::load:
    case Code::store:
    case Code::bitcast: return 0;
    case Code::index: return 0.02;
    case Code::load_at: return 1;
    case Code::call: return 12;
    case Code::div:
    case Code::sqrt: return is_floating(in.type) ? 0.15 * width : 1;
    case Code::rem: return is_floating(in.type) ? 8 : 1;
    default: return 0.03 * width;
  }
}

}  // namespace

void put_kernel(const Kernel& k, std::vector<std::uint64_t>& words) {
  const auto half = [](std::int32_t x) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(x)); };
  words.insert(words.end(), {k.args.size(), k.code.size(), k.stages.size(),
                             half(k.order.lanes) | half(k.order.block) << 32});
  for (const KernelArg& a : k.args)
    words.push_back(static_cast<std::uint64_t>(a.type) << 2 | a.output << 1 | a.indirect);
  // An index is identified by its strides, not by its domain dimension; but which indices share a dimension matters.
  std::vector<std::uint64_t> dimensions;
  const auto number = [&](std::uint64_t dimension) {
    const auto it = std::find(dimensions.begin(), dimensions.end(), dimension);
    if (it != dimensions.end()) return static_cast<std::uint64_t>(it - dimensions.begin());
    dimensions.push_back(dimension);
    return static_cast<std::uint64_t>(dimensions.size() - 1);
  };
  for (const Instr& in : k.code) {
    words.push_back(static_cast<std::uint64_t>(in.code) | static_cast<std::uint64_t>(in.type) << 8 |
                    half(in.a) << 32);
    words.push_back(half(in.b) | half(in.c) << 32);
    words.push_back(in.code == Code::index ? number(in.imm) : in.imm);
  }
  for (const Stage& s : k.stages) words.push_back(half(s.end) << 1 | s.inner);
}

LoopNest::LoopNest(std::shared_ptr<const Kernel> kernel, const Loop::Item& item, LoopMode mode) {
  fill(std::move(kernel), item, mode);
}

LoopNest LoopNest::of_dimensions(std::shared_ptr<const Kernel> kernel, const Loop::Item& item) {
  LoopNest r;
  r.joins_ = false;
  r.fill(std::move(kernel), item, LoopMode::columns);
  return r;
}

void LoopNest::fill(std::shared_ptr<const Kernel> kernel, const Loop::Item& item, LoopMode mode) {
  spec_.kernel = std::move(kernel);
  collect(item);
  if (!has_points_) return;
  order_axes(mode, item);
  describe_axes();
  find_pairs(item);
  cost_ns_ = spec_.packed.empty() ? estimate({axes_, spec_.outer}, mode)
                                  : estimate_packed(axes_, spec_.packed.size());
  store_numbers(item);
  choose_units();
}

LoopNest::LoopNest(std::shared_ptr<const Kernel> kernel, const Loop::Item& item)
    : LoopNest(kernel, item, LoopMode::columns) {
  if (!has_points_) return;
  if (!has_inner_stage(*kernel)) {
    // A single point needs no vectors: outside of inner stages rows are scalars.
    if (num_elements(item.extents) == 1) *this = LoopNest(std::move(kernel), item, LoopMode::rows);
    return;
  }
  LoopNest by_rows(kernel, item, LoopMode::rows);
  if (by_rows.cost_ns_ < cost_ns_) *this = std::move(by_rows);
}

void LoopNest::collect(const Loop::Item& item) {
  const Kernel& k = *spec_.kernel;
  for (const std::int64_t n : item.extents) has_points_ = has_points_ && n > 0;
  for (const LoopArg& a : item.args) refs_.push_back(a.ref);
  auto stage = k.stages.begin();
  for (const int v : accesses_of(k)) {
    const Instr& in = k.code[v];
    while (stage->end <= v) ++stage;
    Access a{v, std::vector<std::int64_t>(item.extents.size(), 0)};
    const std::size_t dims = stage->inner ? a.strides.size() : static_cast<std::size_t>(k.outer);
    for (std::size_t d = 0; d < dims; d++)  // outer stages are at inner coordinate 0
      a.strides[d] = in.code == Code::index ? d == static_cast<std::size_t>(in.imm)
                                            : item.args[in.imm].strides[d] * element_step(k, in);
    accesses_.push_back(std::move(a));
    spec_.adjacent.push_back(in.code == Code::load_at && item.args[in.imm].indirect_stride == 1);
  }
}

void LoopNest::add_dimension(std::vector<Axis>& axes, const Loop::Item& item, int d) const {
  Axis a{item.extents[d], {}, d};
  for (const Access& x : accesses_) a.strides.push_back(x.strides[d]);
  if (joins_) append_axis<&Axis::strides>(axes, std::move(a));
  else if (a.extent > 1) axes.push_back(std::move(a));
}

/// Outer dimensions, with `second` and `last` after the others (-1: none), then inner ones.
LoopNest::AxisOrder LoopNest::ordered_axes(const Loop::Item& item, int last, int second) const {
  const Kernel& k = *spec_.kernel;
  const Axis one_point{1, std::vector<std::int64_t>(accesses_.size(), 0), -1};
  std::vector<Axis> axes, inner;
  for (int d = 0; d < k.outer; d++)
    if (d != last && d != second) add_dimension(axes, item, d);
  for (const int d : {second, last})
    if (d >= 0) add_dimension(axes, item, d);
  if (axes.empty()) axes.push_back(one_point);
  const auto outer = static_cast<std::int32_t>(axes.size());
  if (!has_inner_stage(k)) return {std::move(axes), outer};
  for (int d = k.outer; d < k.outer + k.inner; d++) add_dimension(inner, item, d);
  if (inner.empty()) inner.push_back(one_point);
  axes.insert(axes.end(), inner.begin(), inner.end());
  return {std::move(axes), outer};
}

/// Turns dimensions into axes, with the vector axis last.
void LoopNest::order_axes(LoopMode mode, const Loop::Item& item) {
  const int outer = spec_.kernel->outer;
  AxisOrder best = ordered_axes(item, outer - 1, -1);
  spec_.mode = mode;
  if (mode == LoopMode::columns) {
    int last = outer - 1;
    double least = estimate(best, mode);
    for (int d = outer - 2; d >= 0; d--) {
      AxisOrder other = ordered_axes(item, d, -1);
      const double cost = estimate(other, mode);
      if (cost < 0.9 * least) least = cost, last = d, best = std::move(other);
    }
    if (joins_ && !has_inner_stage(*spec_.kernel) && pack(ordered_axes(item, outer - 1, -1), least)) return;
    if (const int second = turned_dimension(item, last); second >= 0) best = ordered_axes(item, last, second);
  }
  axes_ = std::move(best.axes);
  spec_.outer = best.outer;
  spec_.inner = static_cast<std::int32_t>(axes_.size()) - spec_.outer;
}

/// Whether an access is contiguous across the axes from `from` on.
bool LoopNest::goes_on(const std::vector<Axis>& axes, std::size_t from, std::size_t access) const {
  std::int64_t next = element_step(*spec_.kernel, spec_.kernel->code[accesses_[access].instr]);
  for (std::size_t x = axes.size(); x-- > from; next *= axes[x].extent)
    if (axes[x].strides[access] != next) return false;
  return true;
}

/// Takes these axes with the last ones packed if that costs less: rows of a few points leave most vector lanes empty.
bool LoopNest::pack(AxisOrder order, double least) {
  constexpr std::int64_t short_axis = 16, most_points = 64;
  const Kernel& k = *spec_.kernel;
  const auto is_indirect = [](const Instr& in) { return in.code == Code::load_at; };
  std::vector<Axis>& axes = order.axes;
  if (axes.size() < 2 || axes.back().extent >= short_axis || std::ranges::any_of(k.code, is_indirect))
    return false;
  std::size_t packed = 0;
  for (std::int64_t points = 1; packed + 1 < axes.size(); packed++) {
    points *= axes[axes.size() - 1 - packed].extent;
    if (points > most_points) break;
  }
  if (estimate_packed(axes, packed) >= least) return false;
  const std::size_t first = axes.size() - 1 - packed;
  for (std::size_t x = first + 1; x < axes.size(); x++) spec_.packed.push_back(axes[x].extent);
  for (std::size_t a = 0; a < accesses_.size(); a++) spec_.goes_on.push_back(goes_on(axes, first, a));
  axes_ = std::move(axes);
  spec_.outer = order.outer;
  return true;
}

void LoopNest::describe_axes() {
  const Kernel& k = *spec_.kernel;
  std::int64_t points = 1;
  for (int d = spec_.outer; d < spec_.rank(); d++) points *= axes_[static_cast<std::size_t>(d)].extent;
  spec_.blocks = points > k.order.block && std::any_of(k.code.begin(), k.code.end(), is_ordered);
  spec_.short_rows =
      spec_.mode == LoopMode::rows && spec_.inner == 1 && axes_.back().extent <= LoopNestSpec::short_row;
  for (std::size_t a = 0; a < accesses_.size(); a++) {
    for (const Axis& x : axes_) {
      const Stride s = stride_class(x.strides[a], element_step(k, k.code[accesses_[a].instr]));
      // Rows of two elements may be elsewhere (run_box).
      spec_.strides.push_back(!joins_ && s == Stride::second ? Stride::other : s);
    }
  }
}

/// Parts of complex numbers that are stored in one stage are stored as one, if vectors run along them.
void LoopNest::find_pairs(const Loop::Item& item) {
  const Kernel& k = *spec_.kernel;
  if (!spec_.packed.empty()) return;
  const auto vector =
      static_cast<std::size_t>(spec_.mode == LoopMode::rows ? spec_.rank() - 1 : spec_.vector_axis());
  const auto rank = static_cast<std::size_t>(spec_.rank());
  const auto stage = [&](const Access& x) {
    return std::ranges::find_if(k.stages, [&](const Stage& s) { return x.instr < s.end; });
  };
  const auto is_store = [&](std::size_t a) {
    return k.code[static_cast<std::size_t>(accesses_[a].instr)].code == Code::store &&
           spec_.strides[a * rank + vector] == Stride::second;
  };
  const auto argument = [&](std::size_t a) {
    return k.code[static_cast<std::size_t>(accesses_[a].instr)].imm;
  };
  for (std::size_t im = 0; im < accesses_.size(); im++)
    for (std::size_t re = 0; is_store(im) && re < im; re++) {
      if (!is_store(re) || accesses_[re].strides != accesses_[im].strides ||
          stage(accesses_[re]) != stage(accesses_[im]))
        continue;
      const Ref &x = item.args[argument(re)].ref, &y = item.args[argument(im)].ref;
      const DType type = k.args[argument(re)].type;
      if (type != k.args[argument(im)].type || x.base != y.base || x.offset + itemsize(type) != y.offset)
        continue;
      spec_.real_parts.resize(accesses_.size(), -1);
      spec_.real_parts[im] = static_cast<std::int32_t>(re);
    }
}

/// The dimension along which most loads that are strided along `last` are contiguous: with it as the next-to-last axis, these are
/// transposed block by block. -1: none.
int LoopNest::turned_dimension(const Loop::Item& item, int last) const {
  const Kernel& k = *spec_.kernel;
  if (has_inner_stage(k) || last < 0) return -1;
  int best = -1, most = 0;
  for (int d = 0; d < k.outer; d++) {
    if (d == last || item.extents[d] < 4) continue;
    int loads = 0;
    for (const Access& a : accesses_) {
      const Instr& in = k.code[a.instr];
      const std::int64_t step = element_step(k, in);
      const Stride along = stride_class(a.strides[d], step);
      loads += in.code == Code::load && (along == Stride::next || along == Stride::second) &&
               stride_class(a.strides[last], step) == Stride::other;
    }
    if (loads > most) most = loads, best = d;
  }
  return best;
}

/// Rough nanoseconds for all points.
double LoopNest::estimate(const AxisOrder& order, LoopMode mode) const {
  const std::vector<Axis>& axes = order.axes;
  const std::int32_t outer = order.outer;
  const Kernel& k = *spec_.kernel;
  const bool rows = mode == LoopMode::rows;
  double outer_points = 1, inner_points = 1;
  for (std::size_t d = 0; d < axes.size(); d++)
    (static_cast<int>(d) < outer ? outer_points : inner_points) *= static_cast<double>(axes[d].extent);
  const std::size_t vector = rows ? axes.size() - 1 : static_cast<std::size_t>(outer) - 1;
  const auto n = static_cast<double>(axes[vector].extent);
  // Masked tails leave lanes idle.
  constexpr double lanes = 16;
  const double waste = lanes * static_cast<double>(static_cast<std::int64_t>((n + lanes - 1) / lanes)) / n;
  // As turned_dimension() has it.
  const auto is_turned = [&](std::size_t access) {
    const Instr& in = k.code[accesses_[access].instr];
    const std::int64_t step = element_step(k, in);
    if (rows || in.code != Code::load || has_inner_stage(k) ||
        stride_class(axes[vector].strides[access], step) != Stride::other)
      return false;
    return std::ranges::any_of(axes, [&](const Axis& x) {
      const Stride s = stride_class(x.strides[access], step);
      return x.extent >= 4 && (s == Stride::next || s == Stride::second);
    });
  };
  const auto stores = std::ranges::count(k.code, Code::store, &Instr::code);
  const auto by_pairs = [&](const Instr& in) { return in.code == Code::load || stores > 1; };
  double total = 20 + (rows ? 4 * outer_points : 0);
  std::size_t access = 0, v = 0;
  for (const Stage& s : k.stages) {
    const bool scalar = rows && !s.inner;
    double point = 0;
    for (; v < static_cast<std::size_t>(s.end); v++) {
      const Instr& in = k.code[v];
      point += operation_ns(in) * (scalar ? 8 : waste);
      if (in.code == Code::reduce) {
        total += (rows ? 8 : 0.5) * outer_points;
        point += rows ? 0 : 0.06;
      }
      if (!is_access(in)) continue;
      const std::int64_t stride = axes[vector].strides[access++], step = element_step(k, in);
      if (in.code == Code::index || scalar) continue;
      point += std::abs(stride) == step ? 0.02 * static_cast<double>(step) * std::min(waste, 2.0)
               : stride == 0            ? 0.01
               : stride == 2 * step && n >= lanes && by_pairs(in) ? 0.04 * static_cast<double>(step)
               : is_turned(access - 1)                            ? 0.08 * static_cast<double>(step)
                                                                  : 0.8;
    }
    const double rows_of_stage = outer_points * (s.inner ? inner_points : 1) / (scalar ? 1 : n);
    total += point * outer_points * (s.inner ? inner_points : 1) + (scalar ? 0 : 2 * rows_of_stage);
  }
  return total;
}

/// The same with the last axes packed: lanes are full, but accesses that are not contiguous are copied element by element.
double LoopNest::estimate_packed(const std::vector<Axis>& axes, std::size_t packed) const {
  constexpr double copied = 0.3;
  const Kernel& k = *spec_.kernel;
  const std::size_t first = axes.size() - 1 - packed;
  double points = 1, point = 0;
  for (const Axis& x : axes) points *= static_cast<double>(x.extent);
  for (const Instr& in : k.code) point += operation_ns(in);
  for (std::size_t a = 0; a < accesses_.size(); a++) {
    const Instr& in = k.code[accesses_[a].instr];
    const bool once = in.code != Code::store && axes[first].strides[a] == 0;  // the same in every block
    point += 0.02 * static_cast<double>(element_step(k, in)) + (goes_on(axes, first, a) || once ? 0 : copied);
  }
  double rows = 1;
  for (std::size_t x = 0; x < first; x++) rows *= static_cast<double>(axes[x].extent);
  return 20 + points * point + 50 * rows;
}

void LoopNest::store_numbers(const Loop::Item& item) {
  const Kernel& k = *spec_.kernel;
  for (const Axis& x : axes_) numbers_.push_back(x.extent);
  for (std::size_t a = 0; a < accesses_.size(); a++) {
    const Instr& in = k.code[accesses_[a].instr];
    for (const Axis& x : axes_) numbers_.push_back(x.strides[a]);
    if (in.code == Code::index) {
      numbers_.insert(numbers_.end(), {item.start[in.imm], 0, 0});
    } else {
      const LoopArg& arg = item.args[in.imm];
      numbers_.insert(numbers_.end(), {arg.indirect_stride * element_step(k, in), arg.lo, arg.count});
    }
  }
}

void LoopNest::choose_units() {
  constexpr std::int64_t wanted = 64, block = 64;
  const auto extent = [&](int d) { return axes_[static_cast<std::size_t>(d)].extent; };
  bool turns = false;
  for (std::size_t a = 0; a < accesses_.size(); a++) turns = turns || spec_.turns(a);
  const int vectors = spec_.mode == LoopMode::columns ? spec_.vector_axis() : spec_.outer;
  const int last = turns ? spec_.outer - 2 : std::min(vectors, spec_.outer - 1);
  std::int64_t before = 1;
  for (points_ = 0;; points_++) {
    split_ = points_;
    // Transposed blocks read along one axis and write along the other: both need long runs.
    if (turns && split_ == last && extent(vectors) >= extent(last)) split_ = vectors;
    grain_ = turns && points_ == last ? block : split_ == vectors ? tile : 1;
    blocks_ = ceil_div(extent(split_), grain_);
    units_ = before * blocks_;
    if (units_ >= wanted || points_ == last) break;
    before *= extent(points_);
  }
}

void LoopNest::fix_numbers() {
  spec_.fixed = numbers_;
  for (std::size_t k = 0; k < spec_.fixed.size(); k++) {
    if (!LoopNestNumbers::is_shape(spec_.rank(), static_cast<int>(k)))
      spec_.fixed[k] = 0;  // passed at run time
  }
  points_ = split_ = 0;
  grain_ = axes_[0].extent;
  blocks_ = units_ = 1;
}

void LoopNest::run(LoopNestFunction f, void* const* bases, std::int64_t begin, std::int64_t end) const {
  const ArgumentAddresses args(bases, refs_);
  std::int64_t box[2 * LoopPlan::max_rank];
  for (int d = points_; d < spec_.outer; d++)
    box[2 * d] = 0, box[2 * d + 1] = axes_[static_cast<std::size_t>(d)].extent;
  const auto split = static_cast<std::size_t>(split_);
  for (std::int64_t u = begin; u < end;) {
    const bool whole = units_ == 1;  // a division takes as long as a small loop
    const std::int64_t first = whole ? 0 : u % blocks_, n = std::min(end - u, blocks_ - first);
    std::int64_t rest = whole ? 0 : u / blocks_;
    for (int d = points_ - 1; d >= 0; d--) {
      const std::int64_t extent = axes_[static_cast<std::size_t>(d)].extent;
      box[2 * d] = rest % extent, box[2 * d + 1] = box[2 * d] + 1;
      rest /= extent;
    }
    box[2 * split] = first * grain_;
    box[2 * split + 1] = std::min((first + n) * grain_, axes_[split].extent);
    f(args.data(), numbers_.data(), box);
    u += n;
  }
}

void LoopNest::run_box(LoopNestFunction f, void* const* bases, const std::int64_t* box,
                       const Elsewhere* elsewhere) const {
  ArgumentAddresses args(bases, refs_);
  std::int64_t axes[2 * LoopPlan::max_rank];
  for (std::size_t a = 0; a < axes_.size(); a++) {
    const int d = axes_[a].dimension;
    axes[2 * a] = d < 0 ? 0 : box[2 * d];
    axes[2 * a + 1] = d < 0 ? 1 : box[2 * d + 1];
  }
  if (elsewhere == nullptr) return f(args.data(), numbers_.data(), axes);
  constexpr std::size_t few = 256;
  std::int64_t on_stack[few];
  std::vector<std::int64_t> on_heap(numbers_.size() > few ? numbers_.size() : 0);
  std::int64_t* const numbers = on_heap.empty() ? on_stack : on_heap.data();
  std::copy(numbers_.begin(), numbers_.end(), numbers);
  for (std::size_t a = 0; a < accesses_.size(); a++) {
    const Instr& in = spec_.kernel->code[static_cast<std::size_t>(accesses_[a].instr)];
    if (in.code != Code::load || in.imm != elsewhere->argument) continue;
    std::int64_t* const strides = numbers + LoopNestNumbers::access(spec_.rank(), static_cast<int>(a));
    std::int64_t first = 0;
    for (std::size_t x = 0; x < axes_.size(); x++) {
      if (axes_[x].dimension == elsewhere->dimension)
        strides[x] = elsewhere->stride * element_step(*spec_.kernel, in);
      first += axes[2 * x] * strides[x];
    }
    // The address that point 0 would have.
    args.set(elsewhere->argument, reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(elsewhere->at) -
                                                          static_cast<std::uintptr_t>(first)));
  }
  f(args.data(), numbers, axes);
}

}  // namespace shardarray
