#include "cuda/product_epilogue.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <variant>

#include "cuda/half_casts.h"
#include "cuda/same_place.h"

namespace shardarray::cuda {
namespace {

constexpr std::size_t most_behind = 256;  // steps searched for a reader

/// What a kernel does to one argument, or to the sum of two.
struct KernelPattern {
  std::vector<std::size_t> loaded;
  std::size_t stored = 0;
  bool relu = false;
  DType out = DType::float32;  ///< the dtype that it stores
};

bool is_zero(const Instr& in) { return in.code == Code::constant && in.imm == 0; }

/// `operands`: the dtype of the factors; `type`: of the results.
std::optional<KernelPattern> pattern_of(const Kernel& k, DType operands, DType type) {
  if (k.inner != 0 || k.stages.size() != 1 || k.stages[0].inner) return std::nullopt;
  const auto at = [&](std::int32_t v) -> const Instr& { return k.code[static_cast<std::size_t>(v)]; };
  const auto is_store = [](const Instr& in) { return in.code == Code::store; };
  const auto store = std::find_if(k.code.begin(), k.code.end(), is_store);
  if (store == k.code.end() || std::find_if(store + 1, k.code.end(), is_store) != k.code.end())
    return std::nullopt;
  KernelPattern p;
  p.stored = store->imm;
  p.out = type;
  const Instr* value = &at(store->a);
  const HalfCasts casts(k);
  const auto cast_of = [&](std::int32_t v) { return casts.of(static_cast<std::size_t>(v)); };
  HalfCasts::Cast narrowed = cast_of(store->a);
  while (narrowed.operand >= 0 && narrowed.kind == HalfCasts::Kind::repeats)
    narrowed = cast_of(narrowed.operand);
  if (narrowed.operand >= 0 && narrowed.kind == HalfCasts::Kind::narrows && narrowed.half == operands) {
    const Instr& wide = at(narrowed.operand);
    if (wide.code != Code::load || wide.type != type || k.args.size() != 2) return std::nullopt;
    p.loaded = {wide.imm};
    p.out = operands;
    return p;
  }
  if (value->code == Code::max) {
    const Instr &a = at(value->a), &b = at(value->b);
    if (!is_zero(a) && !is_zero(b)) return std::nullopt;
    p.relu = true;
    value = is_zero(a) ? &b : &a;
  }
  std::vector<const Instr*> loads = {value};
  if (value->code == Code::add) loads = {&at(value->a), &at(value->b)};
  for (const Instr* const in : loads) {
    if (in->code != Code::load) return std::nullopt;
    p.loaded.push_back(in->imm);
  }
  if (!p.relu && loads.size() == 1) return std::nullopt;  // a plain copy
  const bool same_type = std::all_of(k.args.begin(), k.args.end(),
                                     [&](const KernelArg& a) { return a.type == type && !a.indirect; });
  if (!same_type || k.args.size() != p.loaded.size() + 1) return std::nullopt;
  return p;
}

/// Strides in elements.
struct Walk {
  std::int64_t column = 0, row = 0, batch = 0;
};
/// How each argument of a loop traverses a product's elements, given that the loop's dimensions factor the product's: from the last one,
/// columns, rows, batch. None if they do not.
std::optional<std::vector<Walk>> walks_of(const Loop::Item& item, const Gemm::Item& g) {
  const std::array<std::int64_t, 3> extents = {g.n, g.m, g.batch};
  const std::array<std::int64_t Walk::*, 3> axes = {&Walk::column, &Walk::row, &Walk::batch};
  std::vector<Walk> walks(item.args.size());
  std::size_t axis = 0;
  std::int64_t done = 1;  // extent covered of this axis
  const auto go_on = [&] {
    while (axis < axes.size() && done == extents[axis]) {
      axis++;
      done = 1;
    }
  };
  for (std::size_t d = item.extents.size(); d-- > 0;) {
    const std::int64_t extent = item.extents[d];
    if (extent == 1) continue;
    go_on();
    if (axis == axes.size() || extent == 0 || extents[axis] % (done * extent) != 0) return std::nullopt;
    for (std::size_t a = 0; a < walks.size(); a++) {
      std::int64_t& step = walks[a].*axes[axis];
      if (done == 1) step = item.args[a].strides[d];
      else if (item.args[a].strides[d] != step * done) return std::nullopt;
    }
    done *= extent;
  }
  go_on();
  if (axis < axes.size()) return std::nullopt;
  return walks;
}

bool overlap_any(const MemoryRange& r, const MemoryRanges& all) {
  return std::any_of(all.begin(), all.end(), [&](const MemoryRange& x) { return overlap(r, x); });
}
MemoryRange range_of(const LoopArg& arg) { return tile_range(arg.ref, arg.first, arg.bytes); }

/// Joins the items of a product step with those of the next loop.
class EpilogueJoiner {
 public:
  EpilogueJoiner(const Gemm& gemm, const Loop& loop, KernelPattern pattern)
      : gemm_(gemm), loop_(loop), pattern_(std::move(pattern)) {}

  std::optional<ProductEpilogue> join() {
    joined_.gemm = gemm_;
    joined_.relu = pattern_.relu;
    joined_.gemm.out = pattern_.out;
    for (std::size_t i = 0; i < gemm_.items.size(); i++)
      if (!add(i)) return std::nullopt;
    // Items run concurrently: no item may write what another one reads.
    for (const MemoryRange& r : written_)
      if (overlap_any(r, read_)) return std::nullopt;
    for (const MemoryRange& r : biases_)
      if (overlap_any(r, products_)) return std::nullopt;
    return std::move(joined_);
  }
  const MemoryRanges& products() const { return products_; }

 private:
  bool add(std::size_t i) {
    const Gemm::Item& g = gemm_.items[i];
    const Loop::Item& item = loop_.items[i];
    if (g.m == 0 || g.n == 0 || g.batch == 0 || g.device != item.device) return false;
    const auto is_product = [&](std::size_t a) { return same_place(item.args[a].ref, g.c); };
    const auto product = std::find_if(pattern_.loaded.begin(), pattern_.loaded.end(), is_product);
    const auto walks = walks_of(item, g);
    if (product == pattern_.loaded.end() || !walks) return false;
    const auto takes = [&](const Walk& w, std::int64_t row, std::int64_t batch) {
      return (g.n == 1 || w.column == 1) && (g.m == 1 || w.row == row) && (g.batch == 1 || w.batch == batch);
    };
    if (!takes((*walks)[*product], g.ldc, g.stride_c)) return false;
    const Walk& to = (*walks)[pattern_.stored];
    if (!takes(to, to.row, to.batch) || (g.m > 1 && to.row <= 0) || (g.batch > 1 && to.batch <= 0))
      return false;
    Gemm::Item& out = joined_.gemm.items[i];
    out.c = item.args[pattern_.stored].ref;
    out.ldc = g.m == 1 ? g.n : to.row;
    out.stride_c = g.batch == 1 ? g.m * out.ldc : to.batch;
    if (pattern_.loaded.size() == 2 &&
        !add_bias(item, *walks, pattern_.loaded[product == pattern_.loaded.begin() ? 1 : 0], g))
      return false;
    const ItemRanges ranges = ranges_of(gemm_, g);
    read_.insert(read_.end(), ranges.reads.begin(), ranges.reads.end());
    products_.push_back(ranges.writes[0]);
    written_.push_back(range_of(item.args[pattern_.stored]));
    return true;
  }

  bool add_bias(const Loop::Item& item, const std::vector<Walk>& walks, std::size_t arg,
                const Gemm::Item& g) {
    const Walk& w = walks[arg];
    if ((g.n > 1 && w.column != 1) || w.row != 0 || w.batch < 0) return false;
    joined_.biases.push_back({item.args[arg].ref, w.batch});
    biases_.push_back(range_of(item.args[arg]));
    read_.push_back(biases_.back());
    return true;
  }

  const Gemm& gemm_;
  const Loop& loop_;
  const KernelPattern pattern_;
  ProductEpilogue joined_;
  MemoryRanges read_, written_, products_, biases_;
};

}  // namespace

bool is_read_behind(const Program& program, std::size_t at, const MemoryRange& r) {
  for (std::size_t k = at + 1; k < program.steps.size(); k++) {
    if (k > at + most_behind) return true;
    const bool reads = std::visit(
        [&](const auto& body) {
          return std::any_of(body.items.begin(), body.items.end(),
                             [&](const auto& item) { return overlap_any(r, ranges_of(body, item).reads); });
        },
        program.steps[k].body);
    if (reads) return true;
    const MemoryRanges written = written_wholly(program.steps[k]);
    if (std::any_of(written.begin(), written.end(), [&](const MemoryRange& w) { return covers(w, r); }))
      return false;
  }
  return r.base >= program.scratch_bytes.size();
}

std::optional<ProductEpilogue> product_epilogue(const Program& program, std::size_t at) {
  if (at + 1 >= program.steps.size()) return std::nullopt;
  const Step &first = program.steps[at], &next = program.steps[at + 1];
  const auto* const gemm = std::get_if<Gemm>(&first.body);
  const auto* const loop = std::get_if<Loop>(&next.body);
  if (gemm == nullptr || loop == nullptr || gemm->fixed_order || first.flush_denormals ||
      next.flush_denormals || !is_floating(gemm->out) || gemm->items.empty() ||
      gemm->items.size() != loop->items.size())
    return std::nullopt;
  auto pattern = pattern_of(*loop->kernel, gemm->in, gemm->out);
  if (!pattern) return std::nullopt;
  EpilogueJoiner joiner(*gemm, *loop, std::move(*pattern));
  auto joined = joiner.join();
  if (!joined) return std::nullopt;
  const MemoryRanges own = written_wholly(next);
  for (const MemoryRange& c : joiner.products()) {
    const bool in_place =
        std::any_of(own.begin(), own.end(), [&](const MemoryRange& w) { return covers(w, c); });
    if (!in_place && is_read_behind(program, at + 1, c)) return std::nullopt;
  }
  return joined;
}

}  // namespace shardarray::cuda
