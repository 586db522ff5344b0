// Ops and transfers that are made of boxes: which parts of which operand a device needs for its tile of the result.
#pragma once
#include <span>

#include "compile/passes.h"

namespace shardarray {

/// The transfer that assembling `out` from operands in layouts `in` needs; bytes 0: everything is at home.
Transfer halo_transfer(const FlatNode& n, const std::vector<const Layout*>& in, const Layout* out);
/// Between two orders of the same devices.
TransferCost foreign_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize);

/// The box of the operand that a BoxSource reads.
Box source_box(const BoxSource& s);

}  // namespace shardarray
