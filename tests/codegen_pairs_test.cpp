// Loops over parts of complex numbers, and over every second element: generated code loads and stores them as vectors.
#include <doctest/doctest.h>

#include "cuda_launches.h"
#include "kernel_check.h"
#include "runtime/kernel_builder.h"
#include "scale.h"

namespace codegen_pairs_test {

using namespace shardarray;
using namespace shardarray::test;

namespace {

/// What a case does with its operands: pairs (or, without `whole`, one part of them), stored as pairs or as numbers.
struct Pairs {
  DType type;
  Shape extents;
  std::size_t operands = 1;
  bool whole = true, to_pairs = true;
  bool turned = false;    ///< operands lie along the first dimension
  bool backward = false;  ///< the imaginary parts of the result are stored first
  bool in_place = false;  ///< the result lies on the first operand
  int summed = 0;         ///< so many last dimensions are summed over
  int apart = 1;          ///< elements from a real part to the imaginary one
};

/// The product of the operands; the sums of products.
KernelCase pairs(const Pairs& of, std::uint64_t seed) {
  KernelCase c;
  Random random(seed);
  const std::size_t rank = of.extents.size(), outer = rank - static_cast<std::size_t>(of.summed);
  KernelBuilder b(static_cast<int>(outer), of.summed);
  const auto add = [&](bool output, bool turned, std::size_t dims, std::int64_t step, std::int64_t first,
                       int alias) {
    ArgMemory m{Shape::filled(rank, 0), first, 1};
    std::int64_t next = step;
    for (std::size_t k = 0; k < dims; k++) {
      const std::size_t d = turned ? k : dims - 1 - k;
      m.strides[d] = next;
      m.elements += next * (of.extents[d] - 1);
      next *= of.extents[d];
    }
    m.elements += step > 1 ? of.apart : 0;
    m.alias = alias;
    c.args.push_back(m);
    c.inputs.push_back(random_elements(random, of.type, m.elements));
    return b.arg({of.type, output});
  };
  const auto add_pairs = [&](bool output, bool turned, std::size_t dims, int on) {
    const int re = add(output, turned, dims, 2, 0, on);
    return std::pair(re, add(output, turned, dims, 2, of.apart, on < 0 ? re : on));
  };
  b.begin_stage(of.summed > 0);
  int re = -1, im = -1;
  for (std::size_t k = 0; k < of.operands; k++) {
    const auto [x, y] = add_pairs(false, of.turned, rank, -1);
    if (!of.whole) {
      const int part = b.load(k % 2 == 0 ? x : y);
      re = im = k == 0 ? part : b.binary(Code::add, re, part);
      continue;
    }
    const int r = b.load(x), i = b.load(y);
    if (k == 0) {
      re = r, im = i;
      continue;
    }
    const auto times = [&](int v, int w) { return b.binary(Code::mul, v, w); };
    const int next = b.binary(Code::sub, times(re, r), times(im, i));
    im = b.binary(Code::add, times(re, i), times(im, r));
    re = next;
  }
  if (of.summed > 0) {
    re = b.reduce(Reducer::sum, re), im = b.reduce(Reducer::sum, im);
    b.begin_stage(false);
  }
  const auto [x, y] = of.to_pairs
                          ? add_pairs(true, false, outer, of.in_place ? 0 : -1)
                          : std::pair(add(true, false, outer, 1, 0, -1), add(true, false, outer, 1, 0, -1));
  if (of.backward) b.store(y, im);
  b.store(x, re);
  if (!of.backward) b.store(y, im);
  c.kernel = b.finish();
  c.extents = of.extents;
  c.start = Shape::filled(rank, 3);
  return c;
}

std::vector<Pairs> of_shape(DType t, const Shape& s) {
  std::vector<Pairs> all;
  for (const std::size_t operands : {1, 2}) {
    for (const bool turned : {false, true}) {
      all.push_back({t, s, operands, true, true, turned});
      all.push_back({t, s, operands, true, false, turned});
      all.push_back({t, s, operands, false, true, turned});
      all.push_back({t, s, operands, false, false, turned});
    }
    all.push_back({t, s, operands, true, true, false, true});
    all.push_back({t, s, operands, true, true, false, false, true});
    all.push_back({.type = t, .extents = s, .operands = operands, .apart = 3});
    for (int summed = 1; summed < static_cast<int>(s.size()); summed++)
      for (const bool turned : {false, true})
        all.push_back({.type = t, .extents = s, .operands = operands, .turned = turned, .summed = summed});
  }
  return all;
}

}  // namespace

TEST_CASE("codegen: parts of complex numbers, whole vectors of them, some lanes, transposed, in place") {
  std::size_t stored_as_pairs = 0, all = 0;
  for (const DType t : {float32, float64, int16, int64}) {
    std::vector<KernelCase> cases;
    // Other types have other vectors, and no more ways.
    const std::vector<Shape> shapes = t == float32
                                          ? std::vector<Shape>{{1}, {33}, {40, 20}, {70, 131}, {5, 16, 3}}
                                          : std::vector<Shape>{{25, 70}};
    for (const Shape& s : shapes)
      for (const Pairs& p : of_shape(t, s)) cases.push_back(pairs(p, cases.size()));
    for (const KernelCase& c : cases) {
      const LoopNest nest(std::make_shared<const Kernel>(c.kernel), item_of(c));
      stored_as_pairs += !nest.spec().real_parts.empty();
      all++;
    }
    check_generated(cases, t == float32 ? CodeTier::full : CodeTier::quick);
  }
  CHECK(stored_as_pairs * 4 > all);
  MESSAGE("kernels: " << all << ", that store pairs: " << stored_as_pairs);
}

TEST_CASE("codegen: random shapes of complex numbers") {
  Random random(17);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  std::vector<KernelCase> cases;
  for (int k = 0; k < (testing::full_scale() ? 1000 : 40); k++) {
    Shape s;
    for (std::int64_t d = 1 + below(3); d > 0; d--) s.push_back(1 + below(s.empty() ? 90 : 40));
    Pairs p{.type = below(2) == 0 ? float32 : float64,
            .extents = s,
            .operands = 1 + static_cast<std::size_t>(below(3))};
    p.whole = below(3) > 0, p.to_pairs = below(3) > 0, p.turned = below(2) == 0, p.backward = below(4) == 0;
    p.summed = static_cast<int>(below(s.size()));
    p.in_place = !p.turned && p.summed == 0 && below(3) == 0;
    cases.push_back(pairs(p, static_cast<std::uint64_t>(k)));
  }
  check_generated(cases, CodeTier::full);
}

}  // namespace codegen_pairs_test
