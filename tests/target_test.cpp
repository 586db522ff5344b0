// The compiler does what its Target says: each number, compared with another one.
#include <doctest/doctest.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "compile/passes.h"
#include "cpu/products/gemm.h"
#include "messages.h"
#include "program_of.h"
#include "runtime/devices.h"
#include "shardarray/shardarray.h"

namespace target_test {

namespace sa = shardarray;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

/// f(x) compiled for a target.
template <class F> sa::Compiled compiled(const sa::Target& target, const Array& x, const F& f) {
  const program_test::Prepared p = program_test::prepare(sa::jit(f), x);
  std::vector<sa::ValueRef> values;
  for (const sa::LaunchLeaf& l : p.leaves) values.push_back(l.value);
  sa::CompileInput in = sa::compile_input(
      p.entry->flat, sa::place_leaves(p.entry->flat, values, {}, {}, *p.entry->modes, "test"),
      std::vector<bool>(values.size()), {}, {}, values);
  in.target = &target;
  in.cost = sa::CostModel(target);
  return sa::compile(std::move(in));
}
sa::Target cpu() { return sa::backend("cpu").target(); }

std::vector<const sa::Loop*> loops(const sa::Compiled& c) {
  std::vector<const sa::Loop*> all;
  for (const sa::Step& s : c.program->steps)
    if (const auto* l = std::get_if<sa::Loop>(&s.body)) all.push_back(l);
  return all;
}

}  // namespace

TEST_CASE("target: sums to few results are split into parts from a size on") {
  const auto f = [](const Array& x) { return sa::sum(x); };
  sa::Target t = cpu();
  t.split = {.min_points = 4096, .most_results = 2, .parts = 8};
  CHECK(loops(compiled(t, numbers({4088}), f)).size() == 1);
  const sa::Compiled split = compiled(t, numbers({4096}), f);
  REQUIRE(loops(split).size() == 2);
  CHECK(sa::num_elements(loops(split)[0]->items[0].extents) == 4096);
  CHECK(sa::num_elements(loops(split)[1]->items[0].extents) == 8);
  const auto of_rows = [](const Array& x) { return sa::sum(x, 1); };
  CHECK(loops(compiled(t, numbers({2, 4096}), of_rows)).size() == 1);
  // Of so many elements at least; so many of all results together.
  const auto parts = [&](const sa::Shape& shape) {
    const sa::Compiled c = compiled(t, numbers(shape), of_rows);
    return loops(c).size() == 1 ? 1 : sa::num_elements(loops(c)[1]->items[0].extents) / shape[0];
  };
  t.split = {.min_points = 4096, .most_results = 100, .parts = 64, .part_points = 128, .rows = 96};
  CHECK(parts({1, 4096}) == 32);
  CHECK(parts({1, 16384}) == 64);
  CHECK(parts({3, 16384}) == 32);
  CHECK(parts({97, 4096}) == 1);
}

TEST_CASE("target: loops hold so many operations") {
  const auto f = [](Array x) {
    for (int k = 0; k < 20; k++) x = sa::abs(x) * sa::cos(x);
    return x;
  };
  sa::Target t = cpu();
  for (const std::int64_t most : {1, 7, 60, 256}) {
    t.fusion.most_operations = most;
    const auto count = static_cast<std::int64_t>(loops(compiled(t, numbers({50}), f)).size());
    CAPTURE(most);
    CHECK(count >= (60 + most - 1) / most);
    CHECK((count == 1) == (most >= 60));
  }
}

TEST_CASE("target: rows are computed again where there are enough of them, or few points") {
  const auto f = [](const Array& x) {
    return sa::exp(x) / sa::sum(sa::exp(x), {.axis = 1, .keepdims = true});
  };
  sa::Target t = cpu();
  const auto count = [&](std::int64_t rows, std::int64_t points) {
    t.fusion.enough_rows = rows;
    t.fusion.few_points = points;
    return loops(compiled(t, numbers({6, 50}), f)).size();
  };
  CHECK(count(6, 0) == 1);
  CHECK(count(7, 300) == 1);
  CHECK(count(7, 299) > 1);
}

TEST_CASE("target: scratch blocks stand at multiples of the alignment") {
  const auto f = [](const Array& x) { return sa::sort(x * 2) + sa::sort(x * 3) * sa::sort(x - 1); };
  for (const std::int64_t alignment : {64, 1024}) {
    sa::Target t = cpu();
    t.alignment = alignment;
    std::uint64_t least = 1 << 20;
    const sa::Compiled c = compiled(t, numbers({7}), f);
    for (const sa::Loop* l : loops(c))
      for (const sa::LoopArg& a : l->items[0].args)
        if (a.ref.base == 0 && a.ref.offset > 0) least = std::min(least, a.ref.offset & -a.ref.offset);
    CHECK(least == static_cast<std::uint64_t>(alignment));
  }
}

TEST_CASE("target: products of 16-bit floats come as they are where a backend takes them") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}});
  for (const sa::DType half : {sa::float16, sa::bfloat16}) {
    const Array x = sa::device_put(numbers({8, 8}, half), sa::NamedSharding(mesh, P(sa::none, "x")));
    const auto f = [](const Array& v) { return sa::matmul(v, sa::transpose(v)); };  // its sums are in parts
    const auto gemm = [&](bool takes) {
      sa::Target t = cpu();
      t.half_products = takes;
      const sa::Compiled c = compiled(t, x, f);
      for (const sa::Step& s : c.program->steps)
        if (const auto* g = std::get_if<sa::Gemm>(&s.body)) return std::pair(g->in, g->out);
      return std::pair(sa::bool_, sa::bool_);
    };
    CHECK(gemm(true) == std::pair(half, sa::float32));
    CHECK(gemm(false) == std::pair(sa::float32, sa::float32));
  }
  sa::Gemm g;
  g.in = sa::bfloat16;
  CHECK_SAYS(sa::GemmPlan(g, {}),
             "matmul: the CPU has no kernel for bfloat16. It multiplies bool, integers, float32 and float64. "
             "Convert the operands first.",
             sa::CompileError);
}

TEST_CASE("target: float sums have the target's order, those of reproducible lines have one everywhere") {
  const auto f = [](const Array& x) { return sa::sum(x, 1) * 2; };
  sa::Target t = cpu();
  t.reductions = {.lanes = 128, .block = 4096};
  const sa::Compiled its = compiled(t, numbers({6, 50}), f);
  CHECK(loops(its).at(0)->kernel->order == t.reductions);
  const sa::reproducible on(true);
  const sa::Compiled everywhere = compiled(t, numbers({6, 50}), f);
  for (const sa::Loop* l : loops(everywhere)) {
    const auto& code = l->kernel->code;
    if (std::any_of(code.begin(), code.end(), sa::is_ordered))
      CHECK(l->kernel->order == sa::ReductionOrder{});
  }
}

TEST_CASE("target: work weighs against transfers as the links say") {
  // The right operand has to come in any case; then all of it can be computed everywhere, or a part, to fetch the others'.
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(numbers({64, 64}), sa::NamedSharding(mesh, P("x")));
  const auto f = [&](const Array& v) {
    return sa::filter_shard(sa::matmul(v, v), sa::NamedSharding(mesh, P()));
  };
  sa::Target t = cpu();
  t.links = {.start = 1e9, .operation = 1e-6};
  const sa::Compiled whole = compiled(t, x, f);
  t.links = {.start = 0, .operation = 1e6};
  const sa::Compiled cut = compiled(t, x, f);
  CHECK(whole.program->transfers.size() == 1);
  CHECK(cut.program->transfers.size() > 1);
  CHECK(cut.flops * 8 == whole.flops);
}

TEST_CASE("target: neighbours' elements weigh against other transfers as the links say") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(numbers({64}), sa::NamedSharding(mesh, P("x")));
  const auto kind = [&](double start, double halo_start) {
    sa::Target t = cpu();
    t.links = {.start = start, .halo_start = halo_start};
    const sa::Compiled c = compiled(t, x, [](const Array& v) { return sa::roll(v, 3); });
    REQUIRE(c.program->transfers.size() == 1);
    return c.program->transfers[0].kind;
  };
  CHECK(kind(1e9, 0) == sa::TransferKind::exchange);
  CHECK(kind(0, 1e9) == sa::TransferKind::all_gather);
}

TEST_CASE("target: of placements that move more, one that fits the devices' memory is taken") {
  // Rows of the result are sharded over x. The right operand, sharded over y, has to be gathered: 8 KiB more; or resharded to rows,
  // which takes less memory, but then the result has to move.
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array left = sa::device_put(numbers({48, 16}), sa::NamedSharding(mesh, P("x"))),
              right = sa::device_put(numbers({16, 256}), sa::NamedSharding(mesh, P("y")));
  const auto plan = [&](std::int64_t memory) {
    sa::Target t = cpu();
    t.device_memory = memory;
    const sa::Compiled c = compiled(t, left, [&](const Array& a) {
      return sa::filter_shard(sa::matmul(a, right), sa::NamedSharding(mesh, P("x")));
    });
    std::vector<std::pair<sa::TransferKind, std::int64_t>> moved;
    for (const sa::Transfer& m : c.program->transfers) moved.emplace_back(m.kind, m.bytes);
    return std::pair(moved, *std::max_element(c.program->peak_bytes.begin(), c.program->peak_bytes.end()));
  };
  using Moved = std::vector<std::pair<sa::TransferKind, std::int64_t>>;
  const auto [any, most] = plan(0);
  CHECK(any == Moved{{sa::TransferKind::all_gather, 8192}});
  CHECK(plan(static_cast<std::int64_t>(most)).first == any);
  // Operands and result of the product alone are 768 + 16384 + 12288 bytes: what is there beside them counts too.
  const auto [small, least] = plan(static_cast<std::int64_t>(most) - 1);
  CHECK(small == Moved{{sa::TransferKind::all_to_all, 4096}, {sa::TransferKind::all_gather, 6144}});
  CHECK(least < most);
  CHECK(plan(100).second <= least);  // nothing fits: what needs least is taken
}

TEST_CASE("target: iterations are placed within the devices' memory too") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array left = sa::device_put(numbers({3, 48, 16}), sa::NamedSharding(mesh, P(sa::none, "x"))),
              right = sa::device_put(numbers({16, 256}), sa::NamedSharding(mesh, P("y")));
  const auto most = [&](std::int64_t memory) {
    sa::Target t = cpu();
    t.device_memory = memory;
    const sa::Compiled c = compiled(t, left, [&](const Array& a) {
      const auto step = [&](const Array& total, const Array& rows) {
        const Array product = sa::filter_shard(sa::matmul(rows, right), sa::NamedSharding(mesh, P("x")));
        return std::pair(total + sa::sum(product), sa::sum(product, 1));
      };
      return std::get<1>(sa::scan(step, sa::array(0.0f), a));
    });
    return *std::max_element(c.program->peak_bytes.begin(), c.program->peak_bytes.end());
  };
  const std::uint64_t any = most(0);
  CHECK(most(1'000'000) == any);
  CHECK(most(20'000) < any);
}

TEST_CASE("target: what fusion never stores does not count against the devices' memory") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array rows = sa::device_put(numbers({400, 1}), sa::NamedSharding(mesh, P("x"))),
              columns = sa::device_put(numbers({1, 400}), sa::NamedSharding(mesh, P()));
  sa::Target t = cpu();
  t.device_memory = 20'000;  // a tile of the product by itself has 160,000 bytes
  const sa::Compiled c = compiled(t, rows, [&](const Array& a) { return sa::sum(sa::tanh(a * columns), 1); });
  CHECK(c.program->transfers.empty());
  for (const std::uint64_t bytes : c.program->peak_bytes) CHECK(bytes < 20'000);
}

}  // namespace target_test
