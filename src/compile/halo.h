// Ops and transfers assembled from boxes: which parts of which operand a device needs for its tile of the result.
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
  /// Position p, which holds `held` of the operand, reads s.
  void read(int p, const BoxSource& s, const Box& held);
  /// Of the position that lacks most.
  std::int64_t most_bytes() const;
  /// Sets bytes, received and gap.
  void tell(Transfer& t) const;

 private:
  std::int64_t itemsize_;
  std::vector<std::int64_t> each_;  ///< elements
  int position_ = -1;
  std::vector<std::pair<int, Box>> read_;  ///< boxes that position_ read, with their operands
  bool is_least_ = true;                   ///< no element is read twice
};

/// The transfer needed to assemble `out` from operands in layouts `in`; bytes 0: all data is local.
Transfer halo_transfer(const FlatNode& n, const std::vector<const Layout*>& in, const Layout* out);
/// What each position of the target receives in a move between two orders of the same devices.
std::vector<std::int64_t> foreign_received(const Layout& from, const Layout& to, const Shape& shape,
                                           std::int64_t itemsize);
TransferCost foreign_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t itemsize);

/// What devices read of operand `operand` if that is not their tiles, by position in its layout's order.
struct Window {
  std::size_t operand;
  std::vector<Box> boxes;
  Transfer transfer;  ///< brings what they lack; bytes 0: nothing
};
/// For a node with Op::windows, with operands and results in these layouts.
std::vector<Window> windows_of(const FlatNode& n, const std::vector<const Layout*>& in,
                               const std::vector<const Layout*>& out);

/// The box of v that position p of its layout's order holds.
Box held_box(const LocalValue& v, int p);
/// The smallest box of the operand that contains what s reads.
Box source_box(const BoxSource& s);
/// Of the indices first, first + step, ... (`count` of them), those in [lo, lo + size).
struct IndexRun {
  std::int64_t begin, count;  ///< `begin`: the number of the first one
};
IndexRun run_within(std::int64_t first, std::int64_t step, std::int64_t count, std::int64_t lo,
                    std::int64_t size);
/// Reads the box itself, from operand 0.
BoxSource identity(const Box& b);
/// How many elements that s reads are outside of `held`.
std::int64_t missing(const BoxSource& s, const Box& held);

}  // namespace shardarray
