// Ops and transfers that are made of boxes: which parts of which operand a device needs for its tile of the result.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "compile/passes.h"

namespace shardarray {

/// What the positions of an order lack of the boxes that they read.
class Lacked {
 public:
  Lacked(int positions, DType t)
      : itemsize_(static_cast<std::int64_t>(itemsize(t))), each_(static_cast<std::size_t>(positions)) {}
  /// Position p, which has `held` of the operand, reads s.
  void read(int p, const BoxSource& s, const Box& held);
  /// Of the position that lacks most.
  std::int64_t most_bytes() const;
  /// Writes bytes, received and gap.
  void tell(Transfer& t) const;

 private:
  std::int64_t itemsize_;
  std::vector<std::int64_t> each_;  ///< elements
  int position_ = -1;
  std::vector<std::pair<int, Box>> read_;  ///< of position_: operand and box
  bool is_least_ = true;                   ///< no element is read twice
};

/// The transfer that assembling `out` from operands in layouts `in` needs; bytes 0: everything is at home.
Transfer halo_transfer(const FlatNode& n, const std::vector<const Layout*>& in, const Layout* out);
/// Between two orders of the same devices: what each position of the target's receives.
std::vector<std::int64_t> foreign_received(const Layout& from, const Layout& to, const Shape& shape,
                                           std::int64_t itemsize);
TransferCost foreign_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize);

/// What the devices read of operand `operand`, by position of its layout, where that is not their tiles.
struct Window {
  std::size_t operand;
  std::vector<Box> boxes;
  Transfer transfer;  ///< which brings what they lack; bytes 0: nothing
};
/// Of a node with Op::windows whose operands and results lie so.
std::vector<Window> windows_of(const FlatNode& n, const std::vector<const Layout*>& in,
                               const std::vector<const Layout*>& out);

/// What position p of its layout's order has of a value.
Box held_box(const LocalValue& v, int p);
/// The smallest box of the operand in which all lies that a BoxSource reads.
Box source_box(const BoxSource& s);
/// Of the indices first, first + step, .. (`count` of them) those in [lo, lo + size).
struct IndexRun {
  std::int64_t begin, count;  ///< which of them is the first one
};
IndexRun run_within(std::int64_t first, std::int64_t step, std::int64_t count, std::int64_t lo,
                    std::int64_t size);
/// The box itself, of operand 0.
BoxSource identity(const Box& b);
/// How many elements that s reads are not in `held`.
std::int64_t missing(const BoxSource& s, const Box& held);

}  // namespace shardarray
