// A product and the loop behind it as one call of a library: which loops that are, that the calls make what both steps make, and
// what keeps them apart. No library is needed.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/product_epilogue.h"
#include "cuda/step_launches.h"
#include "cuda_products.h"
#include "runtime/half_floats.h"
#include "runtime/kernel_builder.h"
#include "scale.h"

namespace cuda_epilogue_test {

using namespace shardarray;
using namespace shardarray::test;
using cuda::ProductCall;
using cuda::ProductEpilogue;

namespace {

constexpr std::uint32_t devices = 3, first_base = 3, second_base = 4, bias_base = 5, out_base = 6, bases = 7;
constexpr std::int64_t block = 4000;  // elements behind each base

struct KernelKind {
  bool bias = true, relu = true, bias_first = false, zero_first = false;
  Code sum = Code::add, extremum = Code::max;
  double limit = 0;
  bool cast = false, twice = false;  // a whole number in the middle; a second result
  bool relu_first = false;           // max(C, 0) + bias
  bool inner = false;                // over lanes
  DType half = float32;              // to which a result is rounded
};
/// Arguments: C, the bias if there is one, what is stored.
std::shared_ptr<const Kernel> kernel_of(int dims, DType t, const KernelKind& kind) {
  KernelBuilder b(kind.inner ? dims - 1 : dims, kind.inner ? 1 : 0);
  b.begin_stage(kind.inner);
  const bool rounds = kind.half != float32;
  const int c = b.arg({t}), bias = kind.bias ? b.arg({t}) : -1, out = b.arg({rounds ? uint16 : t, true});
  int v = b.load(c);
  const auto limited = [&](int x) {
    const int limit = b.constant(t, kind.limit);
    return kind.zero_first ? b.binary(kind.extremum, limit, x) : b.binary(kind.extremum, x, limit);
  };
  if (kind.relu_first) v = limited(v);
  if (kind.bias) {
    const int y = b.load(bias);
    v = kind.bias_first ? b.binary(kind.sum, y, v) : b.binary(kind.sum, v, y);
  }
  if (kind.cast) v = b.cast(b.cast(v, int32), t);
  if (kind.relu && !kind.relu_first) v = limited(v);
  b.store(out, rounds ? narrow(b, v, kind.half) : v);
  if (kind.twice) b.store(b.arg({t, true}), v);
  return std::make_shared<const Kernel>(b.finish());
}

/// What a random product and its loop look like; items have their matrices behind each other, with gaps.
struct Form {
  DType in = float32, type = float32;
  std::int64_t items = 1, batch = 1, m = 2, n = 2, k = 2, row_gap = 0, batch_gap = 0, out_gap = 0;
  bool bias_per_product = false, bias_per_item = false;
  Shape extents;          // of the loop
  std::vector<int> axes;  // of the product that these are: 0 the batch, 1 the rows, 2 the columns
};
Form random_form(Random& r) {
  Form f;
  f.type = pick(r, 2) ? float32 : float64;
  f.in = f.type == float32 && pick(r, 2) ? bfloat16 : f.type;
  f.items = 1 + pick(r, 3);
  f.batch = pick(r, 2) ? 1 : 1 + pick(r, 4);
  f.m = 1 + pick(r, 6);
  f.n = 1 + pick(r, 6);
  f.k = 1 + pick(r, 3);
  f.row_gap = pick(r, 2) * pick(r, 4);
  f.batch_gap = pick(r, 2) * pick(r, 4);
  f.out_gap = pick(r, 2) * pick(r, 4);
  f.bias_per_product = pick(r, 3) == 0;
  f.bias_per_item = pick(r, 3) == 0;
  const std::int64_t all[] = {f.batch, f.m, f.n};
  for (int axis = 0; axis < 3; axis++) {
    const auto add = [&](std::int64_t extent) {
      if (extent == 1 && pick(r, 2)) return;
      f.extents.push_back(extent);
      f.axes.push_back(axis);
    };
    const std::int64_t factor = all[axis] % 2 == 0 && pick(r, 2) ? 2 : 1;
    if (factor > 1) add(factor);
    add(all[axis] / factor);
  }
  if (f.extents.empty()) {
    f.extents.push_back(1);
    f.axes.push_back(2);
  }
  return f;
}
/// Of an operand that moves so many elements along the axes.
Shape strides_of(const Form& f, const std::array<std::int64_t, 3>& walk) {
  Shape strides = Shape::filled(f.extents.size(), 0);
  for (std::size_t d = f.extents.size(); d-- > 0;) {
    std::int64_t inside = 1;
    for (std::size_t e = d + 1; e < f.extents.size(); e++)
      if (f.axes[e] == f.axes[d]) inside *= f.extents[e];
    strides[d] = walk[static_cast<std::size_t>(f.axes[d])] * inside;
  }
  return strides;
}

Program program_of(const Form& f, const KernelKind& kind) {
  const std::uint64_t size = itemsize(f.type);
  const auto at = [&](std::uint32_t base, std::int64_t element) {
    return Ref{base, static_cast<std::uint64_t>(element) * size};
  };
  Gemm gemm;
  gemm.in = f.in;
  gemm.out = f.type;
  Loop loop;
  loop.kernel = kernel_of(static_cast<int>(f.extents.size()), f.type, kind);
  for (std::int64_t i = 0; i < f.items; i++) {
    Gemm::Item g = dense(f.m, f.n, f.k);
    g.device = static_cast<int>(i);
    g.batch = f.batch;
    g.ldc += f.row_gap;
    g.stride_c = g.m * g.ldc + f.batch_gap;
    const std::uint64_t in = itemsize(f.in);
    g.a = {first_base, static_cast<std::uint64_t>(i * f.batch * g.stride_a) * in};
    g.b = {second_base, static_cast<std::uint64_t>(i * f.batch * g.stride_b) * in};
    g.c = at(static_cast<std::uint32_t>(i), 16 * i);
    Loop::Item item;
    item.device = g.device;
    item.extents = f.extents;
    item.start = Shape::filled(f.extents.size(), 0);
    const auto add = [&](const Ref& ref, const std::array<std::int64_t, 3>& walk, std::uint64_t each) {
      LoopArg arg;
      arg.ref = ref;
      arg.strides = strides_of(f, walk);
      std::int64_t last = 0;
      for (std::size_t d = 0; d < f.extents.size(); d++) last += (f.extents[d] - 1) * arg.strides[d];
      arg.bytes = static_cast<std::uint64_t>(last + 1) * each;
      item.args.push_back(arg);
    };
    add(g.c, {g.stride_c, g.ldc, 1}, size);
    const std::int64_t row = f.n + f.out_gap, all = f.m * row, one = f.bias_per_product ? f.n + 2 : 0;
    if (kind.bias) add(at(bias_base, f.bias_per_item ? 16 + 64 * i : 16), {one, 0, 1}, size);
    add(at(out_base, i * (f.batch * all + 5)), {all, row, 1}, kind.half == float32 ? size : 2);
    if (kind.twice) add(at(out_base, 3000 + i * (f.batch * all + 5)), {all, row, 1}, size);
    gemm.items.push_back(g);
    loop.items.push_back(item);
  }
  Program p;
  p.steps = {{gemm, "product", {}}, {loop, "loop", {}}};
  p.base_count = bases;
  p.scratch_bytes.assign(devices, block * size);
  return p;
}

Gemm& gemm_of(Program& p) { return std::get<Gemm>(p.steps[0].body); }
Loop& loop_of(Program& p) { return std::get<Loop>(p.steps[1].body); }
bool joins(const Program& p) { return cuda::product_epilogue(p, 0).has_value(); }
/// A step that copies the bytes of `from` to `to`.
Step copy_step(const Ref& from, const Ref& to, std::uint64_t bytes) {
  Exchange x;
  x.dtype = uint8;
  const auto n = static_cast<std::int64_t>(bytes);
  x.items = {{0, to, bytes, false, {{{n}, {1}, {1}, to, {{from, 0, bytes, 0}}}}}};
  return {x, "copy", {}};
}

}  // namespace

TEST_CASE("cuda epilogues: a product and a loop over its results are calls that make the same") {
  Random r(11);
  for (int repeat = 0; repeat < (testing::full_scale() ? 3000 : 300); repeat++) {
    CAPTURE(repeat);
    const Form f = random_form(r);
    KernelKind kind;
    kind.bias = pick(r, 3) != 0;
    kind.relu = !kind.bias || pick(r, 2);
    kind.bias_first = pick(r, 2);
    kind.zero_first = pick(r, 2);
    if (f.in == bfloat16 && pick(r, 2)) {
      kind.half = f.in;
      kind.bias = kind.relu = false;
    }
    Program p = program_of(f, kind);
    const auto both = cuda::product_epilogue(p, 0);
    REQUIRE(both);
    CHECK((both->relu == kind.relu && both->biases.size() == (kind.bias ? gemm_of(p).items.size() : 0)));
    std::vector<DType> types(bases, f.type);
    types[first_base] = types[second_base] = f.in;
    if (kind.half != float32) types[out_base] = kind.half;
    const Memory memory = random_memory(r, types, block);
    Memory want = memory, got = memory;
    multiply_items(gemm_of(p), want);
    cpu_test::run({p.steps[1]}, pointers(want));
    const cuda::ProductSplit split = cuda::split_products(*both, 64, 0);
    REQUIRE(split.own.empty());
    for (const ProductCall& c : split.calls) {
      if (!c.by_pointers()) multiply_call(c, got);
      else
        for (const ProductCall& s : cuda::single_products(c)) multiply_call(s, got);
    }
    for (std::uint32_t b = devices; b < bases; b++) REQUIRE((want[b] == got[b]));
    for (std::uint32_t b = 0; b < devices; b++) REQUIRE((memory[b] == got[b]));  // C is never stored
  }
}

TEST_CASE(
    "cuda epilogues: calls for a launch are the same products, none by addresses, with aligned biases") {
  // Large enough for the library's own limit.
  Form f;
  f.items = 1;
  f.m = f.n = f.k = 80;
  f.extents = {80, 80};
  f.axes = {1, 2};
  const auto calls_of = [](const Form& form, const std::function<void(Program&)>& change) {
    Program p = program_of(form, {});
    change(p);
    const auto both = cuda::product_epilogue(p, 0);
    REQUIRE(both);
    std::vector<cuda::KernelLaunch> launches;
    cuda::add_gemm_launches(p.steps[0], gemm_of(p), 64, launches);
    cuda::add_epilogue_calls(*both, 64, launches.back());
    return launches.back().products_and_next;
  };
  const auto nothing = [](Program&) {};
  const auto calls = calls_of(f, nothing);
  REQUIRE(calls.size() == 1);
  CHECK(
      (calls[0].relu && calls[0].has_bias() && calls[0].bias.alignment == 64 && calls[0].result.rows == 80));
  // An element further on.
  CHECK(calls_of(f, [](Program& p) { loop_of(p).items[0].args[1].ref.offset += 4; }).empty());
  CHECK(calls_of(f, [](Program& p) { loop_of(p).items[0].args[1].ref.offset += 16; }).size() == 1);
  // A batch whose biases are each as well aligned, or not.
  f.batch = 3;
  f.extents = {3, 80, 80};
  f.axes = {0, 1, 2};
  CHECK(calls_of(f, nothing)[0].batch == 3);
  f.bias_per_product = true;  // 82 elements apart
  CHECK(calls_of(f, nothing).empty());
  // C of three devices, in blocks of their own: by addresses.
  f.bias_per_product = false;
  f.batch = 1;
  f.extents = {80, 80};
  f.axes = {1, 2};
  f.items = 3;
  CHECK(calls_of(f, nothing).empty());
}

TEST_CASE("cuda epilogues: whatever differs a little keeps the loop") {
  Random r(12);
  const auto check = [&](const char* what, const KernelKind& kind,
                         const std::function<void(Program&)>& change, bool expected = false) {
    CAPTURE(what);
    for (int repeat = 0; repeat < 20; repeat++) {
      Form f = random_form(r);
      f.in = f.type = float32;
      f.batch = 2;
      f.m = 4;
      f.n = 6;
      f.extents = {2, 4, 6};
      f.axes = {0, 1, 2};
      Program p = program_of(f, kind);
      change(p);
      CHECK(joins(p) == expected);
    }
  };
  const auto nothing = [](Program&) {};
  const auto kind = [](auto change) {
    KernelKind k;
    change(k);
    return k;
  };
  check("as it should be", {}, nothing, true);
  // The kernel.
  check("min", kind([](KernelKind& k) { k.extremum = Code::min; }), nothing);
  check("another limit", kind([](KernelKind& k) { k.limit = 6; }), nothing);
  check("the other zero", kind([](KernelKind& k) { k.limit = -0.0; }), nothing);
  check("a cast", kind([](KernelKind& k) { k.cast = true; }), nothing);
  check("a product", kind([](KernelKind& k) { k.sum = Code::mul; }), nothing);
  check("a difference", kind([](KernelKind& k) { k.sum = Code::sub; }), nothing);
  check("two results", kind([](KernelKind& k) { k.twice = true; }), nothing);
  check("a copy", kind([](KernelKind& k) { k.bias = k.relu = false; }), nothing);
  check("the bias behind the limit", kind([](KernelKind& k) { k.relu_first = true; }), nothing);
  check("over lanes", kind([](KernelKind& k) { k.inner = true; }), nothing);
  const auto rounded = kind([](KernelKind& k) {
    k.bias = k.relu = false;
    k.half = bfloat16;
  });
  const auto of = [](DType in) { return [in](Program& p) { gemm_of(p).in = in; }; };
  check("rounded to the 16 bits of its operands", rounded, of(bfloat16), true);
  check("to others", rounded, of(float16));
  check("of float32", rounded, nothing);
  check("a sum that is rounded", kind([](KernelKind& k) { k.relu = false, k.half = bfloat16; }),
        of(bfloat16));
  // How operands move.
  const auto arg = [](std::size_t a, auto change) {
    return [=](Program& p) {
      for (Loop::Item& i : loop_of(p).items) change(i.args[a]);
    };
  };
  check("other rows of C", {}, arg(0, [](LoopArg& a) { a.strides[1] += 1; }));
  check("another matrix", {}, arg(0, [](LoopArg& a) { a.ref.offset += 4; }));
  check("a bias along the rows", {}, arg(1, [](LoopArg& a) { a.strides = {0, 1, 0}; }));
  check("one number", {}, arg(1, [](LoopArg& a) { a.strides = {0, 0, 0}; }));
  check("every second number", {}, arg(1, [](LoopArg& a) { a.strides = {0, 0, 2}; }));
  check("columns that are stored apart", {}, arg(2, [](LoopArg& a) { a.strides = {96, 1, 4}; }));
  check("rows that are stored backwards", {}, arg(2, [](LoopArg& a) { a.strides[1] = -a.strides[1]; }));
  check("C itself is added", {}, [](Program& p) {
    for (Loop::Item& i : loop_of(p).items) i.args[1] = i.args[0];
  });
  check("a row of C is added", {}, [](Program& p) {
    for (Loop::Item& i : loop_of(p).items) i.args[1].ref = i.args[0].ref;
  });
  check("another order of dimensions", {}, [](Program& p) {
    for (Loop::Item& i : loop_of(p).items) {
      std::swap(i.extents[1], i.extents[2]);
      for (LoopArg& a : i.args) std::swap(a.strides[1], a.strides[2]);
    }
  });
  check("a part of the matrix", {}, [](Program& p) {
    for (Loop::Item& i : loop_of(p).items) i.extents[1] = 2;
  });
  check("without the last item", {}, [](Program& p) { loop_of(p).items.pop_back(); });
  check("an item with nothing to do", {}, [](Program& p) { gemm_of(p).items[0].m = 0; });
  // The steps.
  check("a fixed order", {}, [](Program& p) { gemm_of(p).fixed_order = true; });
  check("whole numbers", {}, [](Program& p) { gemm_of(p).out = int32; });
  check("denormals are flushed", {}, [](Program& p) { p.steps[1].flush_denormals = true; });
  check("in the product", {}, [](Program& p) { p.steps[0].flush_denormals = true; });
  check("a step in the middle", {}, [](Program& p) {
    p.steps.insert(p.steps.begin() + 1, copy_step({first_base, 0}, {0, 9000}, 4));
  });
  // Memory.
  check("C is a result", {}, [](Program& p) { p.scratch_bytes.clear(); });
  const auto last_of_c = [](Program& p) {
    const MemoryRange c = ranges_of(gemm_of(p), gemm_of(p).items.back()).writes[0];
    return Ref{c.base, c.hi - 4};
  };
  check("C is read later", {}, [&](Program& p) {
    p.steps.push_back(copy_step({first_base, 0}, {0, 9000}, 4));
    p.steps.push_back(copy_step(last_of_c(p), {0, 9004}, 4));
  });
  check(
      "what stands beside it is read later", {},
      [&](Program& p) {
        const Ref end = last_of_c(p);
        p.steps.push_back(copy_step({end.base, end.offset + 4}, {0, 9004}, 4));
      },
      true);
  check(
      "it is overwritten first", {},
      [&](Program& p) {
        for (const Gemm::Item& g : gemm_of(p).items) {
          const MemoryRange c = ranges_of(gemm_of(p), g).writes[0];
          p.steps.push_back(copy_step({first_base, 0}, {c.base, c.lo}, c.hi - c.lo));
        }
        p.steps.push_back(copy_step(last_of_c(p), {0, 9004}, 4));
      },
      true);
  check(
      "the loop's result lies in its place", {},
      [](Program& p) {
        for (Gemm::Item& g : gemm_of(p).items) {
          g.ldc = g.n;
          g.stride_c = g.m * g.n;
        }
        for (Loop::Item& i : loop_of(p).items)
          for (const std::size_t a : {0, 2}) {
            i.args[a] = i.args[0];
            i.args[a].strides = {24, 6, 1};
            i.args[a].bytes = 48 * 4;
          }
        p.scratch_bytes.clear();  // and is a result
      },
      true);
  for (const std::uint32_t base : {first_base, second_base, bias_base})
    check("it is stored over what another item reads", {}, [&](Program& p) {
      LoopArg& out = loop_of(p).items.back().args[2];
      out.ref = base == bias_base ? loop_of(p).items[0].args[1].ref : Ref{base, 0};
    });
}

TEST_CASE("cuda epilogues: memory that a step writes all of, and what is read behind a step") {
  const auto ranges = [](auto body) { return written_wholly({std::move(body), "", {}}); };
  const auto is = [](const MemoryRanges& all, std::uint32_t base, std::uint64_t lo, std::uint64_t hi) {
    return all.size() == 1 && all[0].base == base && all[0].lo == lo && all[0].hi == hi;
  };
  // Products: with gaps between rows they leave something.
  Gemm gemm;
  gemm.items = {dense(4, 5, 3)};
  gemm.items[0].c = {2, 8};
  CHECK(is(ranges(gemm), 2, 8, 88));
  gemm.items[0].ldc = 6;
  CHECK(ranges(gemm).empty());
  // Loops: a part of a larger tile counts as the part alone.
  Form f;
  f.extents = {2, 2};
  f.axes = {1, 2};
  Program p = program_of(f, {});
  loop_of(p).items[0].args[2].bytes = 4000;
  CHECK(is(ranges(loop_of(p)), out_base, 0, 16));
  f.out_gap = 1;
  p = program_of(f, {});
  CHECK(ranges(loop_of(p)).empty());
  // Exchanges: all of the tile, or filled before.
  Exchange x = std::get<Exchange>(copy_step({0, 0}, {1, 4}, 12).body);
  CHECK(is(ranges(x), 1, 4, 16));
  x.items[0].dst_bytes = 20;
  CHECK(ranges(x).empty());
  x.items[0].fill = true;
  CHECK(is(ranges(x), 1, 4, 24));
  LibraryCall sort;
  sort.in_types = sort.out_types = {float32};
  sort.items = {{0, {{0, 0}}, {{1, 8}}, {{3, 4}}, {{3, 4}}, {1}}};
  CHECK(is(ranges(sort), 1, 8, 56));

  Program steps;
  steps.scratch_bytes = {100};
  const MemoryRange r{0, 10, 20};
  const auto read = [&](std::vector<Step> all, const MemoryRange& range) {
    steps.steps = std::move(all);
    return cuda::is_read_behind(steps, 0, range);
  };
  const Step writer = copy_step({5, 0}, {0, 8}, 16), reader = copy_step({0, 19}, {5, 0}, 1),
             half = copy_step({5, 0}, {0, 8}, 8), other = copy_step({1, 10}, {5, 0}, 9);
  CHECK_FALSE(read({reader}, r));  // the step itself
  CHECK_FALSE(read({other, other}, r));
  CHECK(read({other, reader}, r));
  CHECK(read({other, half, reader}, r));
  CHECK_FALSE(read({other, writer, reader}, r));
  CHECK(read({other, reader, writer}, r));
  CHECK(read({other}, {1, 10, 20}));  // no scratch memory
  CHECK_FALSE(read({other, copy_step({5, 0}, {1, 0}, 40)}, {1, 10, 20}));
  CHECK(read(std::vector<Step>(400, other), r));  // nobody looks that far
}

}  // namespace cuda_epilogue_test
