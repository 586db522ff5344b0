// Exchanges into one destination: boxes are copied, or combined from several sources, in one pass over memory.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/exchange/exchange_rows.h"
#include "runtime/program.h"

namespace shardarray {

/// One Exchange item, ready to run in chunks of units that any worker may take. Units are elements: [0, fill_units()) those of a filled
/// destination, [fill_units(), units()) those of the pieces, in order. All of the first must end before any of the second begins; otherwise
/// any split gives the same bits.
class ExchangePlan {
 public:
  /// bases[counters] points to the bytes received so far, one int64 per transfer; it may be null. Throws CompileError for a dtype that the
  /// reducer does not support.
  ExchangePlan(const Exchange& x, const Exchange::Item& item, std::uint32_t counters);
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const;
  std::int64_t fill_units() const { return fill_units_; }
  std::int64_t units() const { return units_; }
  double cost_ns(std::int64_t begin, std::int64_t end) const;

 private:
  struct Dim {
    std::int64_t extent, src, dst;  // strides in elements
  };
  struct Piece {
    std::vector<Dim> dims;  // at least one; adjacent dimensions that are contiguous on both sides are merged
    Ref dst;
    std::vector<Ref> sources;
    std::int64_t first = 0, elements = 0;  // in units
    std::int64_t foreign = 0;              // number of sources on other devices
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

}  // namespace shardarray
