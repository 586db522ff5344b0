// Random kernels: all codes and types, several stages, awkward extents and strides.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <utility>

#include "kernel_helpers.h"
#include "runtime/kernel_builder.h"

namespace shardarray::test {

inline constexpr DType types[] = {bool_,  int8,   int16,  int32,   int64,  uint8,
                                  uint16, uint32, uint64, float32, float64};

/// Writes one random kernel, with memory for its arguments.
class RandomKernel {
 public:
  explicit RandomKernel(std::uint64_t seed) : seed_(seed), random_(seed * 2654435761u + 17), b_(0, 0) {}

  KernelCase make() {
    outer_ = pick(4);
    inner_ = pick(3);
    choose_extents();
    b_ = KernelBuilder(outer_, inner_);
    const int stages = 1 + pick(4);
    for (int s = 0; s < stages; s++) stage(s + 1 == stages);
    c_.kernel = b_.finish();
    constexpr std::int32_t blocks[] = {ReductionOrder().block, 32, 64, 256};
    c_.kernel.order.block = blocks[seed_ % 4];
    fill();
    return std::move(c_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  DType type() { return chance(40) ? float32 : types[pick(11)]; }

  void choose_extents() {
    constexpr std::int64_t sizes[] = {1, 2, 3, 5, 16, 31, 32, 33, 64, 257, 1000, 0};
    std::int64_t total = 1;
    for (int d = 0; d < outer_ + inner_; d++) {
      std::int64_t n = sizes[chance(4) ? 11 : pick(11)];
      while (total * n > 6000) n = (n + 1) / 2 < 2 ? 1 : n / 2;
      total *= n == 0 ? 1 : n;
      c_.extents.push_back(n);
      c_.start.push_back(pick(50));
    }
  }

  /// Strides that give every point of `dims` its own element, in some order of the dimensions, perhaps with
  /// gaps.
  Shape dense(int dims) {
    std::vector<int> order;
    for (int d = 0; d < dims; d++) order.insert(order.begin() + (chance(70) ? d : pick(d + 1)), d);
    Shape strides = Shape::filled(c_.extents.size(), 0);
    std::int64_t next = chance(15) ? 2 : 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = next;
      next *= std::max<std::int64_t>(c_.extents[order[i]], 1);
      if (chance(10)) next += 1 + pick(3);
    }
    return strides;
  }
  int add_arg(KernelArg arg, Shape strides) {
    ArgMemory m;
    std::int64_t low = 0, high = 0;
    for (std::size_t d = 0; d < strides.size(); d++) {
      const std::int64_t reach = strides[d] * std::max<std::int64_t>(c_.extents[d] - 1, 0);
      (reach < 0 ? low : high) += reach;
    }
    m.strides = std::move(strides);
    m.first = -low + pick(3);
    m.elements = high + m.first + 1 + pick(3);
    if (arg.indirect) {
      m.indirect_stride = high - low + 1;
      m.lo = pick(4);
      m.count = pick(5);
      m.elements += m.indirect_stride * 5;
    }
    c_.args.push_back(m);
    kinds_.push_back(arg);
    return b_.arg(arg);
  }
  int input(DType t, bool indirect = false) {
    Shape strides = dense(outer_ + inner_);
    for (auto& s : strides) {
      if (chance(20)) s = 0;
      else if (chance(8)) s = -s;
    }
    return add_arg({t, false, indirect}, strides);
  }

  /// A visible value of type t.
  int value(DType t) {
    std::vector<int> fit;
    for (const int v : visible_) {
      if (b_.type(v) == t) fit.push_back(v);
    }
    const int recent = static_cast<int>(std::min<std::size_t>(fit.size(), 5));
    if (!fit.empty() && !chance(10)) return fit[fit.size() - 1 - static_cast<std::size_t>(pick(recent))];
    if (!visible_.empty() && chance(70)) return b_.cast(visible_[pick(static_cast<int>(visible_.size()))], t);
    constexpr double constants[] = {0, 1, -1, 2.5, 3, 0.1, 100, -7, 1e10};
    return b_.constant(t, constants[pick(9)]);
  }
  int operation() {
    const DType t = type();
    const int kind = pick(12);
    if (kind == 0) return b_.cast(value(t), type());
    if (kind == 1) return b_.select(value(bool_), value(t), value(t));
    if (kind == 2)
      return b_.binary(static_cast<Code>(static_cast<int>(Code::eq) + pick(6)), value(t), value(t));
    if (kind == 3) return bitcast(value(t));
    if (kind == 4 && chance(30)) return call();
    if (t == bool_) return chance(20) ? b_.unary(Code::not_, value(t)) : logic(t);
    if (is_floating(t)) return floating(t);
    if (chance(25)) return b_.binary(chance(50) ? Code::shl : Code::shr, value(t), value(t));
    return chance(30) ? logic(t) : number(t);
  }
  int logic(DType t) {
    return b_.binary(static_cast<Code>(static_cast<int>(Code::and_) + pick(3)), value(t), value(t));
  }
  int number(DType t) {
    if (chance(15)) return b_.unary(chance(50) ? Code::neg : Code::abs, value(t));
    return b_.binary(static_cast<Code>(static_cast<int>(Code::add) + pick(7)), value(t), value(t));
  }
  int floating(DType t) {
    if (chance(15)) return b_.unary(static_cast<Code>(static_cast<int>(Code::sqrt) + pick(5)), value(t));
    if (chance(15)) return b_.fma(value(t), value(t), value(t));
    return number(t);
  }
  /// NaN bits are no part of kernel IR: they are replaced before they can be seen.
  int bitcast(int v) {
    const DType t = b_.type(v);
    if (is_floating(t)) v = b_.select(b_.binary(Code::eq, v, v), v, b_.constant(t, 1));
    if (t == bool_) return v;
    std::vector<DType> fit;
    for (const DType to : types) {
      if (to != bool_ && itemsize(to) == itemsize(t)) fit.push_back(to);
    }
    return b_.bitcast(v, fit[pick(static_cast<int>(fit.size()))]);
  }
  int call() {
    const auto f = static_cast<Function>(pick(static_cast<int>(Function::lgamma) + 1));
    const bool two = operand_count(Code::call, static_cast<std::uint64_t>(f)) == 2;
    return b_.call(f, value(float64), two ? value(float64) : -1);
  }

  void load(bool inner) {
    const int dims = inner ? outer_ + inner_ : outer_;
    if (dims > 0 && chance(15)) return visible_.push_back(b_.index(pick(dims)));
    if (chance(15)) {
      const int row = b_.binary(Code::and_, value(int64), b_.constant(int64, 7));
      return visible_.push_back(b_.load_at(input(type(), true), row));
    }
    std::vector<int> again;
    for (int a = 0; a < static_cast<int>(c_.args.size()); a++) {
      if (!kinds_[a].output && !kinds_[a].indirect) again.push_back(a);
    }
    if (!again.empty() && chance(30))
      return visible_.push_back(b_.load(again[pick(static_cast<int>(again.size()))]));
    visible_.push_back(b_.load(input(type())));
  }
  void store(bool inner, int v) {
    const int dims = inner ? outer_ + inner_ : outer_;
    add_arg({b_.type(v), true, false}, dense(dims));
    b_.store(static_cast<int>(c_.args.size()) - 1, v);
  }
  void stage(bool last) {
    const bool inner = chance(55);
    b_.begin_stage(inner);
    const std::size_t kept = visible_.size();
    for (int n = 1 + pick(3); n > 0; n--) load(inner);
    for (int n = pick(10); n > 0; n--) visible_.push_back(operation());
    std::vector<int> reduced;
    for (int n = inner ? pick(3) : 0; n > 0; n--) {
      const DType t = type();
      const Reducer r =
          t == bool_ ? (chance(50) ? Reducer::any : Reducer::all) : static_cast<Reducer>(1 + pick(4));
      reduced.push_back(b_.reduce(r, value(t)));
    }
    for (int n = pick(3) + (last ? 1 : 0); n > 0; n--)
      store(inner, chance(80) ? visible_.back() : value(type()));
    if (inner) visible_.resize(kept);
    visible_.insert(visible_.end(), reduced.begin(), reduced.end());
  }
  void fill() {
    for (std::size_t a = 0; a < c_.args.size(); a++) {
      const DType t = c_.kernel.args[a].type;
      std::vector<std::byte> bytes(c_.args[a].elements * itemsize(t));
      for (std::int64_t i = 0; i < c_.args[a].elements; i++) {
        std::uint64_t bits = random_();
        if (t == bool_) bits &= 1;
        else if (is_integer(t) && chance(60)) bits = static_cast<std::uint64_t>(pick(20) - 5);
        else if (t == float32 && chance(85))
          bits = std::bit_cast<std::uint32_t>(static_cast<float>(pick(20001) - 10000) / 1000.f);
        else if (t == float64 && chance(85))
          bits = std::bit_cast<std::uint64_t>((pick(20001) - 10000) / 1000.);
        std::memcpy(bytes.data() + i * itemsize(t), &bits, itemsize(t));
      }
      c_.inputs.push_back(std::move(bytes));
    }
    for (std::size_t o = 0; o < c_.args.size(); o++) {
      if (c_.kernel.args[o].output && chance(50)) donate(static_cast<int>(o));
    }
  }
  /// Lets an output take over an input's memory where that is allowed.
  void donate(int o) {
    for (int i = 0; i < static_cast<int>(c_.args.size()); i++) {
      const KernelArg &in = c_.kernel.args[i], &out = c_.kernel.args[o];
      bool ok = !in.output && !in.indirect && in.type == out.type && may_overwrite(c_.kernel, i, o);
      for (const ArgMemory& m : c_.args) ok = ok && m.alias != i;
      // The input takes the output's strides, which give every point its own element.
      if (!ok) continue;
      c_.args[i] = c_.args[o];
      c_.inputs[i] = c_.inputs[o];
      c_.args[o].alias = i;
      return;
    }
  }
  std::uint64_t seed_;
  std::mt19937_64 random_;
  KernelBuilder b_;
  KernelCase c_;
  int outer_ = 0, inner_ = 0;
  std::vector<int> visible_;
  std::vector<KernelArg> kinds_;
};

/// Kernel `number` of an endless list.
inline KernelCase random_case(std::uint64_t number) { return RandomKernel(number).make(); }

}  // namespace shardarray::test
