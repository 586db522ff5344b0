#include "cuda/products.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "cuda/libraries.h"
#include "cuda/same_place.h"
#include "shardarray/dtype.h"

namespace shardarray::cuda {
namespace {

/// Products of one shape whose matrices have equal strides, row-major as in the step.
struct ProductRun {
  Gemm::Item item;  // strides are valid if item.batch > 1
  std::vector<std::size_t> items;
  ProductBias bias = {};

  auto form() const { return std::tuple(item.n, item.k, item.lda, item.ldb, item.ldc, item.ta, item.tb); }
  auto place() const { return std::tuple(item.c.base, item.c.offset); }
};

bool takes_dtypes(const Gemm& g) {
  if (g.in == float16 || g.in == bfloat16) return g.out == float32 || g.out == g.in;
  return g.in == g.out && (g.in == float32 || g.in == float64);
}

/// Elements from x to y, if y is in the same block and not before x.
std::optional<std::int64_t> distance_of(const Ref& x, const Ref& y, std::size_t size) {
  if (x.base != y.base || y.offset < x.offset || (y.offset - x.offset) % size != 0) return std::nullopt;
  return static_cast<std::int64_t>((y.offset - x.offset) / size);
}

/// Whether no column overlaps the next one, as cuBLASLt requires.
bool is_apart(std::int64_t rows, std::int64_t columns, std::int64_t ld) { return columns == 1 || ld >= rows; }
bool is_apart(const Gemm::Item& g) {
  return is_apart(g.ta ? g.m : g.k, g.ta ? g.k : g.m, g.lda) &&
         is_apart(g.tb ? g.k : g.n, g.tb ? g.n : g.k, g.ldb) && is_apart(g.n, g.m, g.ldc);
}

class ProductSplitter {
 public:
  ProductSplitter(const Gemm& gemm, std::uint64_t alignment, double own,
                  const ProductEpilogue* epilogue = nullptr)
      : gemm_(gemm),
        epilogue_(epilogue),
        alignment_(alignment),
        own_(own),
        in_(itemsize(gemm.in)),
        out_(itemsize(gemm.out)) {}

  ProductSplit split() {
    const bool takes = takes_dtypes(gemm_) && !gemm_.fixed_order;
    std::vector<ProductRun> runs;
    for (std::size_t i = 0; i < gemm_.items.size(); i++) {
      const Gemm::Item& g = gemm_.items[i];
      if (g.m == 0 || g.n == 0 || g.batch == 0) continue;
      const ProductBias bias = has_bias() ? epilogue_->biases[i] : ProductBias{};
      if (takes && g.k > 0 && is_apart(g)) runs.push_back({own_rows(g, bias), {i}, bias});
      else split_.own.push_back(i);
    }
    runs = joined(
        std::move(runs), [](const ProductRun& r) { return std::tuple(r.form(), r.place()); },
        &ProductSplitter::append_rows);
    const auto by_shape = [](const ProductRun& r) { return std::tuple(r.form(), r.item.m, r.place()); };
    runs = joined(std::move(runs), by_shape, &ProductSplitter::append_batch);
    std::erase_if(runs, [&](const ProductRun& r) {
      const bool small =
          r.item.k <= product_limits().own_depth &&
          static_cast<double>(r.item.m) * static_cast<double>(r.item.n) * static_cast<double>(r.item.k) <=
              own_;
      if (small) split_.own.insert(split_.own.end(), r.items.begin(), r.items.end());
      return small;
    });
    for (const ProductRun& r : runs)
      split_.called.insert(split_.called.end(), r.items.begin(), r.items.end());
    add_calls(runs);
    std::sort(split_.own.begin(), split_.own.end());
    std::sort(split_.called.begin(), split_.called.end());
    return std::move(split_);
  }

 private:
  bool has_bias() const { return epilogue_ != nullptr && !epilogue_->biases.empty(); }
  /// A batch with contiguous rows, one B and one bias is a single product.
  static Gemm::Item own_rows(Gemm::Item g, const ProductBias& bias) {
    if (g.batch == 1) return g;
    if (g.stride_b != 0 || bias.stride != 0) return g;
    if (g.m == 1) {  // a single row: any distance to the next one works as a row stride
      if (!g.ta) g.lda = g.stride_a;
      g.ldc = g.stride_c;
    }
    Gemm::Item tall = g;
    tall.m *= g.batch;
    tall.batch = 1;
    const bool follows = g.stride_a == g.m * (g.ta ? 1 : g.lda) && g.stride_c == g.m * g.ldc;
    return follows && is_apart(tall) ? tall : g;
  }

  /// Merges neighbours in the order of `key` if `append` takes the second into the first.
  template <class Key>
  std::vector<ProductRun> joined(std::vector<ProductRun> runs, const Key& key,
                                 bool (ProductSplitter::*append)(ProductRun&, const ProductRun&)
                                     const) const {
    std::stable_sort(runs.begin(), runs.end(),
                     [&](const ProductRun& x, const ProductRun& y) { return key(x) < key(y); });
    std::vector<ProductRun> out;
    for (ProductRun& r : runs) {
      if (!out.empty() && out.back().form() == r.form() && (this->*append)(out.back(), r))
        out.back().items.insert(out.back().items.end(), r.items.begin(), r.items.end());
      else out.push_back(std::move(r));
    }
    return out;
  }

  bool append_rows(ProductRun& run, const ProductRun& more) const {
    Gemm::Item& to = run.item;
    const Gemm::Item& g = more.item;
    if (to.batch != 1 || g.batch != 1 || !same_place(to.b, g.b) || !same_place(run.bias.ref, more.bias.ref))
      return false;
    Gemm::Item tall = to;
    tall.m += g.m;
    if (distance_of(to.a, g.a, in_) != to.m * (to.ta ? 1 : to.lda) ||
        distance_of(to.c, g.c, out_) != to.m * to.ldc || !is_apart(tall))
      return false;
    to = tall;
    return true;
  }

  bool append_batch(ProductRun& run, const ProductRun& more) const {
    Gemm::Item& to = run.item;
    const Gemm::Item& g = more.item;
    if (to.m != g.m) return false;
    Gemm::Item both = to;
    ProductBias bias = run.bias;
    both.batch += g.batch;
    const auto follows = [&](const Ref& x, const Ref& y, std::size_t size, std::int64_t& stride,
                             std::int64_t next) {
      const auto all = distance_of(x, y, size);
      if (!all || *all % to.batch != 0) return false;
      const std::int64_t step = *all / to.batch;
      if ((to.batch > 1 && step != stride) || (g.batch > 1 && step != next)) return false;
      stride = step;
      return true;
    };
    if (!follows(to.a, g.a, in_, both.stride_a, g.stride_a) ||
        !follows(to.b, g.b, in_, both.stride_b, g.stride_b) ||
        !follows(to.c, g.c, out_, both.stride_c, g.stride_c) || both.stride_c == 0 ||
        !follows(bias.ref, more.bias.ref, out_, bias.stride, more.bias.stride))
      return false;
    to = both;
    run.bias = bias;
    return true;
  }

  /// Runs of one shape become one pointer-array call, unless there are very many products.
  void add_calls(const std::vector<ProductRun>& runs) {
    constexpr std::int64_t most_addresses = 4096;
    for (std::size_t first = 0, last = 0; first < runs.size(); first = last) {
      std::int64_t products = 0;
      for (; last < runs.size() && runs[last].form() == runs[first].form() &&
             runs[last].item.m == runs[first].item.m;
           last++)
        products += runs[last].item.batch;
      const bool one = last - first > 1 && products <= most_addresses;
      if (one) add_call(runs, first, last, products);
      else
        for (std::size_t r = first; r < last; r++) add_call(runs, r, r + 1, runs[r].item.batch);
    }
  }

  void add_call(const std::vector<ProductRun>& runs, std::size_t first, std::size_t last,
                std::int64_t products) {
    const Gemm::Item& g = runs[first].item;
    ProductCall c;
    c.in = gemm_.in;
    c.tf32 = gemm_.tf32;
    c.out = gemm_.out;
    c.transpose_first = g.tb;
    c.transpose_second = g.ta;
    c.batch = products;
    c.first = g.tb ? matrix(g.k, g.n, g.ldb) : matrix(g.n, g.k, g.ldb);
    c.second = g.ta ? matrix(g.m, g.k, g.lda) : matrix(g.k, g.m, g.lda);
    c.result = matrix(g.n, g.m, g.ldc);
    const bool each = last - first > 1;
    for (std::size_t r = first; r < last; r++) {
      const Gemm::Item& x = runs[r].item;
      place(c.first, x.b, x.stride_b, each ? x.batch : 1, in_);
      place(c.second, x.a, x.stride_a, each ? x.batch : 1, in_);
      place(c.result, x.c, x.stride_c, each ? x.batch : 1, out_);
    }
    if (epilogue_ != nullptr) c.relu = epilogue_->relu;
    if (has_bias()) {
      c.bias = matrix(g.n, 1, g.n);
      for (std::size_t r = first; r < last; r++)
        place(c.bias, runs[r].bias.ref, runs[r].bias.stride, each ? runs[r].item.batch : 1, out_);
      if (!each && g.batch > 1) set_stride(c.bias, runs[first].bias.stride, out_);
    }
    if (!each && g.batch > 1) {
      set_stride(c.first, g.stride_b, in_);
      set_stride(c.second, g.stride_a, in_);
      set_stride(c.result, g.stride_c, out_);
    }
    split_.calls.push_back(std::move(c));
  }

  ProductMatrix matrix(std::int64_t rows, std::int64_t columns, std::int64_t ld) const {
    constexpr std::uint64_t most = 64;
    const auto least = static_cast<std::uint32_t>(std::min(alignment_, most));
    return {{}, rows, columns, std::max(ld, rows), 0, least};
  }
  static void align(ProductMatrix& m, std::uint64_t distance) {
    const std::uint64_t all = distance | m.alignment;
    m.alignment = static_cast<std::uint32_t>(all & -all);  // the lowest set bit
  }
  /// Appends the addresses of `count` matrices.
  static void place(ProductMatrix& m, Ref ref, std::int64_t stride, std::int64_t count, std::size_t size) {
    for (std::int64_t i = 0; i < count; i++) {
      align(m, ref.offset);
      m.refs.push_back(ref);
      ref.offset += static_cast<std::uint64_t>(stride) * size;
    }
  }
  static void set_stride(ProductMatrix& m, std::int64_t stride, std::size_t size) {
    m.stride = stride;
    align(m, static_cast<std::uint64_t>(stride) * size);
  }

  const Gemm& gemm_;
  const ProductEpilogue* const epilogue_;  // null: no loop
  const std::uint64_t alignment_;
  const double own_;
  const std::size_t in_, out_;
  ProductSplit split_;
};

}  // namespace

ProductSplit split_products(const Gemm& gemm, std::uint64_t alignment, double own) {
  return ProductSplitter(gemm, alignment, own).split();
}

ProductSplit split_products(const ProductEpilogue& both, std::uint64_t alignment, double own) {
  return ProductSplitter(both.gemm, alignment, own, &both).split();
}

bool same_products(const ProductCall& a, const ProductCall& b) {
  const auto same = [](const ProductMatrix& x, const ProductMatrix& y) {
    return same_place(x.refs[0], y.refs[0]) && x.rows == y.rows && x.columns == y.columns && x.ld == y.ld &&
           x.stride == y.stride;
  };
  return !a.by_pointers() && !b.by_pointers() && a.batch == b.batch &&
         a.transpose_first == b.transpose_first && a.transpose_second == b.transpose_second &&
         same(a.first, b.first) && same(a.second, b.second);
}

std::vector<ProductCall> single_products(const ProductCall& call) {
  std::vector<ProductCall> all;
  for (std::size_t i = 0; i < call.result.refs.size(); i++) {
    ProductCall& c = all.emplace_back(call);
    c.batch = 1;
    c.first.refs = {call.first.refs[i]};
    c.second.refs = {call.second.refs[i]};
    c.result.refs = {call.result.refs[i]};
    if (call.has_bias()) c.bias.refs = {call.bias.refs[i]};
  }
  return all;
}

}  // namespace shardarray::cuda
