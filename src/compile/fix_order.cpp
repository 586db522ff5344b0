// Float sums and products in an order independent of sharding. Summed dimensions are split into blocks by global index. Blocks are never
// sharded: each is summed locally, always in the kernels' order; then neighbouring blocks are added in pairs. Devices only combine such
// pairs, and a + b = b + a.
#include <algorithm>
#include <bit>

#include "compile/passes.h"
#include "ops/record.h"
#include "runtime/evaluate_instruction.h"

namespace shardarray {

namespace {

class FixedOrder {
 public:
  FlatGraph run(const FlatGraph& g) {
    std::vector<int> value(g.types.size(), -1);
    const auto at = [&](int v) -> int& { return value[static_cast<std::size_t>(v)]; };
    for (const FlatNode& n : g.nodes) {
      std::vector<int> in;
      for (const int v : n.in) in.push_back(at(v));
      const int first = add(n, in);
      for (std::size_t k = 0; k < n.out_types.size(); k++)
        at(n.first_out + static_cast<int>(k)) = first + static_cast<int>(k);
    }
    for (const int v : g.inputs) out_.inputs.push_back(at(v));
    for (const int v : g.outputs) out_.outputs.push_back(at(v));
    return std::move(out_);
  }

 private:
  static constexpr std::int64_t blocks = 8;

  int add(const FlatNode& n, const std::vector<int>& in) {
    where_ = n.where;
    modes_ = n.modes;
    if (modes_->reproducible && !n.out_types.empty() && is_inexact(n.out_types[0].dtype)) {
      const Reducer r = n.op->form == Form::reduce ? n.attrs->reducer : Reducer::none;
      if (r == Reducer::sum || r == Reducer::prod) return reduce(n, in[0]);
      if (n.op->form == Form::gemm) return product(n, in);
      if (n.op->trait == Trait::sums && n.attrs->reducer != Reducer::max && n.attrs->reducer != Reducer::min)
        return out_.add(n.op, uncut(*n.attrs), in, n.out_types, n.where, n.modes);
    }
    return out_.add(n.op, n.attrs, in, n.out_types, n.where, n.modes);
  }

  static AttrsRef uncut(Attrs a) {
    a.uncut = true;
    return std::make_shared<const Attrs>(std::move(a));
  }
  const Type& type(int v) const { return out_.types[static_cast<std::size_t>(v)]; }
  // A node with one operand and a result of this shape.
  int add_shaped(const Op& op, Attrs attrs, int v, const Shape& shape) {
    Type t = type(v);
    t.shape = shape;
    return out_.add(&op, std::make_shared<const Attrs>(std::move(attrs)), {v}, {std::move(t)}, where_,
                    modes_);
  }

  // How often a dimension is halved; the block size that is left.
  static int levels_of(std::int64_t size) {
    const auto n = std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(size, 1, blocks)));
    return std::countr_zero(n);
  }
  static std::int64_t block_of(std::int64_t size) {
    const int levels = levels_of(size);
    return (size + (1 << levels) - 1) >> levels;
  }

  // Dimension d, padded with the identity, becomes [2, ..., 2, block].
  int split(int v, std::size_t d, Reducer r) {
    Shape shape = type(v).shape;
    const int levels = levels_of(shape[d]);
    const std::int64_t block = block_of(shape[d]), missing = (block << levels) - shape[d];
    if (missing > 0) {
      Attrs pad;
      pad.lo = Shape::filled(shape.size(), 0);
      pad.hi = pad.lo;
      pad.hi[d] = missing;
      pad.bits = identity_bits(r, type(v).dtype);
      shape[d] += missing;
      v = add_shaped(op_pad, std::move(pad), v, shape);
    }
    Attrs reshape;
    for (std::size_t k = 0; k < shape.size(); k++) {
      for (int l = 0; k == d && l < levels; l++) reshape.shape.push_back(2);
      reshape.shape.push_back(k == d ? block : shape[k]);
    }
    const Shape to = reshape.shape;
    return levels == 0 ? v : add_shaped(op_reshape, std::move(reshape), v, to);
  }

  int reduce_over(int v, Reducer r, const Shape& dims, bool whole) {
    const Shape& from = type(v).shape;
    Attrs attrs;
    attrs.reducer = r;
    attrs.uncut = whole;
    Shape to;
    for (std::size_t d = 0; d < from.size(); d++) {
      const auto from_last = static_cast<std::int64_t>(d) - static_cast<std::int64_t>(from.size());
      if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end())
        to.push_back(from[d]);
      else attrs.dims.push_back(from_last);
    }
    return add_shaped(op_reduce, std::move(attrs), v, to);
  }
  // Reduces the dimensions [first, first + levels) of size 2, the last first.
  int add_pairs(int v, Reducer r, std::size_t first, int levels) {
    for (int l = levels; l-- > 0;) v = reduce_over(v, r, {static_cast<std::int64_t>(first) + l}, false);
    return v;
  }

  int reduce(const FlatNode& n, int v) {
    constexpr std::size_t most_rank = 32, most_levels = 3;  // of a kernel; per dimension
    Shape dims;
    for (const std::int64_t d : n.attrs->dims)
      dims.push_back(d + static_cast<std::int64_t>(n.in_types[0].shape.size()));
    std::sort(dims.begin(), dims.end());
    while (!dims.empty()) {  // the last ones first, as many as fit into a kernel's rank
      const std::size_t rank = type(v).shape.size(),
                        room = rank < most_rank ? (most_rank - rank) / most_levels : 0,
                        first = dims.size() - std::min(dims.size(), std::max<std::size_t>(room, 1));
      v = reduce_dims(v, n.attrs->reducer, Shape(std::span<const std::int64_t>(dims).subspan(first)));
      dims.resize(first);
    }
    return v;
  }

  int reduce_dims(int v, Reducer r, const Shape& dims) {
    Shape blocks_of;  // positions of the blocks after the splits
    std::vector<std::pair<std::size_t, int>>
        pairs;  // first dimension and number of halvings, once the blocks are reduced
    std::int64_t shift = 0;
    for (std::size_t k = 0; k < dims.size(); k++) {
      const auto d = static_cast<std::size_t>(dims[k] + shift);
      const int levels = levels_of(type(v).shape[d]);
      v = split(v, d, r);
      shift += levels;
      blocks_of.push_back(dims[k] + shift);
      pairs.emplace_back(d - k, levels);
    }
    v = reduce_over(v, r, blocks_of, true);
    for (std::size_t k = pairs.size(); k-- > 0;) v = add_pairs(v, r, pairs[k].first, pairs[k].second);
    return v;
  }

  // Splits the first summed letter; its halves become batch dimensions.
  int product(const FlatNode& n, std::vector<int> in) {
    const Letters l = split_letters(n.attrs->letters);
    const auto summed = [&](char c) { return l.out.find(c) == std::string::npos; };
    const auto letter = std::find_if(l.in[0].begin(), l.in[0].end(), summed);
    Attrs attrs = *n.attrs;
    Type t = n.out_types[0];
    int levels = 0;
    if (letter != l.in[0].end()) {
      levels = levels_of(n.in_types[0].shape[static_cast<std::size_t>(letter - l.in[0].begin())]);
      std::string halves;
      for (char c = 'A'; static_cast<int>(halves.size()) < levels; c++)
        if (attrs.letters.find(c) == std::string::npos) halves += c;
      std::string terms[2];
      for (std::size_t k = 0; k < 2; k++) {
        const std::size_t d = l.in[k].find(*letter);
        in[k] = split(in[k], d, Reducer::sum);
        terms[k] = std::string(l.in[k]).insert(d, halves);
      }
      attrs.letters = terms[0] + "," + terms[1] + "->" + halves + l.out;
      t.shape = Shape::filled(static_cast<std::size_t>(levels), 2);
      for (const std::int64_t size : n.out_types[0].shape) t.shape.push_back(size);
    }
    const int parts = out_.add(n.op, uncut(std::move(attrs)), in, {std::move(t)}, n.where, n.modes);
    return add_pairs(parts, Reducer::sum, 0, levels);
  }

  FlatGraph out_;
  detail::RecordedLine where_;
  const Modes* modes_ = nullptr;
};

}  // namespace

FlatGraph fix_order(const FlatGraph& g) { return FixedOrder().run(g); }

}  // namespace shardarray
