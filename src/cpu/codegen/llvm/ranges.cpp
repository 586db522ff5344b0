#include "cpu/codegen/llvm/ranges.h"

#include <algorithm>
#include <bit>

namespace shardarray::codegen {

Range range_of(const Kernel& k, int v, int depth) {
  const Instr& in = k.code[static_cast<std::size_t>(v)];
  if (depth == 0 || !is_floating(in.type)) return {};
  const auto of = [&](std::int32_t o) { return range_of(k, o, depth - 1); };
  switch (in.code) {
    case Code::constant: {
      const double x = in.type == float32
                           ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(in.imm)))
                           : std::bit_cast<double>(in.imm);
      return x == x ? Range{x, x} : Range{};
    }
    case Code::min:
    case Code::max: {
      const Range x = of(in.a), y = of(in.b);
      if (in.code == Code::min) return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    }
    case Code::mul: {
      const Range x = of(in.a), y = of(in.b);
      const double all[] = {x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi};
      if (std::any_of(std::begin(all), std::end(all), [](double p) { return p != p; })) return {};
      // Rounding may exceed the bound by half an ulp.
      const auto [lo, hi] = std::minmax_element(std::begin(all), std::end(all));
      return {*lo - 1e-6 * std::max(1.0, -*lo), *hi + 1e-6 * std::max(1.0, *hi)};
    }
    case Code::floor:
    case Code::ceil:
    case Code::round:
    case Code::trunc: {
      const Range x = of(in.a);
      return {x.lo - 1, x.hi + 1};
    }
    default: return {};
  }
}

bool fits_int32(const Range& r) { return r.lo > -2e9 && r.hi < 2e9; }

}  // namespace shardarray::codegen
