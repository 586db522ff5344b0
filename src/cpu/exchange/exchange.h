// Exchanges of one destination: boxes copied, or combined from several sources, in one pass over memory.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/exchange/exchange_rows.h"
#include "runtime/transport.h"

namespace shardarray {

/// One Exchange item.
class ExchangePlan final : public Communication {
 public:
  /// bases[counters] points to the bytes received so far, one int64 per transfer; it may be null.
  /// Throws CompileError for a dtype that the reducer does not take.
  ExchangePlan(const Exchange& x, const Exchange::Item& item, std::uint32_t counters);
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const override;
  std::int64_t fill_units() const override { return fill_units_; }
  std::int64_t units() const override { return units_; }
  double cost_ns(std::int64_t begin, std::int64_t end) const override;

 private:
  struct Dim {
    std::int64_t extent, src, dst;  // strides in elements
  };
  struct Piece {
    std::vector<Dim> dims;  // at least one; neighbours that lie in sequence on both sides are merged
    Ref dst;
    std::vector<Ref> sources;
    std::int64_t first = 0, elements = 0;  // in units
    std::int64_t foreign = 0;              // sources on other devices
  };
  void add_piece(const Exchange::Piece& p, int device);
  void run_piece(const Piece& p, void* const* bases, std::int64_t begin, std::int64_t end) const;
  void fill(void* const* bases, std::int64_t begin, std::int64_t end) const;

  std::int64_t itemsize_;
  std::int64_t fill_units_ = 0, units_ = 0;
  std::uint64_t fill_bits_;
  Ref dst_;
  int transfer_;
  std::uint32_t counters_;
  ExchangeRowFunction copy_ = nullptr, reduce_ = nullptr;
  std::vector<Piece> pieces_;
};

/// Copies between the devices of this process, which share its memory.
Transport& memory_transport();
/// Puts `t` in its place and returns the one before (tests: faults). Null: the real one.
Transport* set_memory_transport(Transport* t);

}  // namespace shardarray
