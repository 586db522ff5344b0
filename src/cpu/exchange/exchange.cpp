#include "cpu/exchange/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/nest_axes.h"
#include "base/per_thread.h"
#include "cpu/address.h"
#include "cpu/loops/loops.h"
#include "runtime/step_ranges.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

template <std::size_t size> void copy_row(const ExchangeRow& r) {
  const char* const src = r.sources[0] + r.offset;
  if (src == r.dst && r.src_stride == r.dst_stride) return;
  if (r.src_stride == 1 && r.dst_stride == 1) {
    std::memcpy(r.dst, src, static_cast<std::size_t>(r.n) * size);
    return;
  }
  constexpr auto bytes = static_cast<std::int64_t>(size);
  for (std::int64_t i = 0; i < r.n; i++) {
    std::memcpy(r.dst + i * r.dst_stride * bytes, src + i * r.src_stride * bytes, size);
  }
}

constexpr std::int64_t short_row = 32;  // bytes: a call for each would take longer than to copy it

/// Rows of at most so many bytes, in two moves each, which may overlap.
void copy_short_rows(char* dst, const char* src, std::int64_t bytes, std::int64_t rows, std::int64_t dst_step,
                     std::int64_t src_step) {
  const auto copy = [&]<class T>(T) {
    const auto last = bytes - static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t r = 0; r < rows; r++, dst += dst_step, src += src_step) {
      T first, second;
      std::memcpy(&first, src, sizeof first);
      std::memcpy(&second, src + last, sizeof second);
      std::memcpy(dst, &first, sizeof first);
      std::memcpy(dst + last, &second, sizeof second);
    }
  };
  if (bytes >= 16) copy(std::array<std::uint64_t, 2>{});
  else if (bytes >= 8) copy(std::uint64_t{});
  else if (bytes >= 4) copy(std::uint32_t{});
  else if (bytes >= 2) copy(std::uint16_t{});
  else copy(std::uint8_t{});
}

ExchangeRowFunction copy_function(std::size_t size) {
  switch (size) {
    case 1: return copy_row<1>;
    case 2: return copy_row<2>;
    case 4: return copy_row<4>;
    case 8: return copy_row<8>;
    default: return copy_row<16>;
  }
}

ExchangeRowFunction reduce_function(Reducer reducer, DType t) {
#if defined(__x86_64__)
  if (has_v3()) return exchange_reduce_v3(reducer, t);
#endif
  return exchange_reduce_baseline(reducer, t);
}

}  // namespace

ExchangePlan::ExchangePlan(const Exchange& x, const Exchange::Item& item, std::uint32_t counters)
    : itemsize_(static_cast<std::int64_t>(itemsize(x.dtype))),
      fill_bits_(x.fill_bits),
      dst_(item.dst),
      transfer_(x.transfer),
      counters_(counters),
      copy_(copy_function(itemsize(x.dtype))) {
  if (x.reducer != Reducer::none) {
    reduce_ = reduce_function(x.reducer, x.dtype);
    if (reduce_ == nullptr) {
      throw CompileError(fmt::format(
          "{} over devices: the CPU has no kernel for {}. Sums, products and extrema take integers, float32 "
          "and float64; all takes bool. Convert the operand first.",
          name(x.reducer), name(x.dtype)));
    }
  }
  if (item.fill) fill_units_ = static_cast<std::int64_t>(item.dst_bytes) / itemsize_;
  units_ = fill_units_;
  for (const Exchange::Piece& p : item.pieces) add_piece(p, item.device);
}

void ExchangePlan::add_piece(const Exchange::Piece& p, int device) {
  Piece piece;
  piece.dst = p.dst;
  piece.elements = num_elements(p.extents);
  if (piece.elements == 0 || lies_there(p)) return;
  for (std::size_t d = 0; d < p.extents.size(); d++)
    append_axis<&Dim::src, &Dim::dst>(piece.dims, {p.extents[d], p.src_strides[d], p.dst_strides[d]});
  if (piece.dims.empty()) piece.dims.push_back({1, 1, 1});
  for (const Exchange::Source& s : p.sources) {
    piece.sources.push_back(s.ref);
    if (s.device != device) piece.foreign++;
  }
  piece.first = units_;
  units_ += piece.elements;
  pieces_.push_back(std::move(piece));
}

double ExchangePlan::cost_ns(std::int64_t begin, std::int64_t end) const {
  double cost = 10;
  if (begin < fill_units_)
    cost += static_cast<double>((std::min(end, fill_units_) - begin) * itemsize_) * 0.05;
  for (const Piece& p : pieces_) {
    const std::int64_t n = std::min(end, p.first + p.elements) - std::max(begin, p.first);
    if (n <= 0) continue;
    const Dim& inner = p.dims.back();
    const bool contiguous = inner.src == 1 && inner.dst == 1;
    const double per_element =
        contiguous ? 0.03 * static_cast<double>(itemsize_) : 1.0;  // strided: 1 ns each
    const auto rows = static_cast<double>(n) / static_cast<double>(inner.extent);
    cost += 5 + (inner.extent * itemsize_ <= short_row ? 1.5 : 5) * rows +
            per_element * static_cast<double>(n) * static_cast<double>(p.sources.size() + 1) / 2;
  }
  return cost;
}

void ExchangePlan::run(void* const* bases, std::int64_t begin, std::int64_t end) const {
  if (begin < fill_units_) fill(bases, begin, std::min(end, fill_units_));
  // The first piece that ends after `begin`.
  auto p = std::partition_point(pieces_.begin(), pieces_.end(),
                                [&](const Piece& x) { return x.first + x.elements <= begin; });
  std::int64_t received = 0;
  for (; p != pieces_.end() && p->first < end; ++p) {
    const std::int64_t from = std::max(begin, p->first), to = std::min(end, p->first + p->elements);
    if (from >= to) continue;
    run_piece(*p, bases, from - p->first, to - p->first);
    received += (to - from) * itemsize_ * p->foreign;
  }
  if (transfer_ < 0 || received == 0 || bases[counters_] == nullptr) return;
  std::atomic_ref(static_cast<std::int64_t*>(bases[counters_])[transfer_])
      .fetch_add(received, std::memory_order_relaxed);
}

// A piece's source addresses; reuses its memory.
struct Sources : std::vector<const char*> {};

void ExchangePlan::run_piece(const Piece& p, void* const* bases, std::int64_t begin, std::int64_t end) const {
  auto& sources = PerThread<Sources>::get();
  sources.clear();
  for (const Ref& r : p.sources) sources.push_back(address(bases, r));
  if (sources.empty()) return;
  const ExchangeRowFunction function = sources.size() == 1 ? copy_ : reduce_;
  const Dim& inner = p.dims.back();
  const std::size_t outer = p.dims.size() - 1;
  char* const dst = address(bases, p.dst);

  // The offsets of the row that contains `begin`.
  Shape index = Shape::filled(outer, 0);
  std::int64_t src = 0, to = 0, rest = begin / inner.extent;
  for (std::size_t d = outer; d-- > 0; rest /= p.dims[d].extent) {
    index[d] = rest % p.dims[d].extent;
    src += index[d] * p.dims[d].src;
    to += index[d] * p.dims[d].dst;
  }
  std::int64_t column = begin % inner.extent;
  const bool is_short = sources.size() == 1 && outer > 0 && inner.src == 1 && inner.dst == 1 &&
                        inner.extent * itemsize_ <= short_row;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t n = std::min(inner.extent - column, end - at);
    if (is_short && n == inner.extent) {
      const Dim& rows = p.dims[outer - 1];
      const std::int64_t count = std::min(rows.extent - index[outer - 1], (end - at) / n), all = count - 1;
      copy_short_rows(dst + to * itemsize_, sources[0] + src * itemsize_, n * itemsize_, count,
                      rows.dst * itemsize_, rows.src * itemsize_);
      at += all * n, src += all * rows.src, to += all * rows.dst, index[outer - 1] += all;
    } else {
      function({sources.data(), static_cast<std::int64_t>(sources.size()),
                (src + column * inner.src) * itemsize_, dst + (to + column * inner.dst) * itemsize_, n,
                inner.src, inner.dst});
    }
    at += n;
    column = 0;
    for (std::size_t d = outer; d-- > 0;) {
      const Dim& dim = p.dims[d];
      src += dim.src;
      to += dim.dst;
      if (++index[d] < dim.extent) break;
      index[d] = 0;
      src -= dim.extent * dim.src;
      to -= dim.extent * dim.dst;
    }
  }
}

void ExchangePlan::fill(void* const* bases, std::int64_t begin, std::int64_t end) const {
  char* const dst = address(bases, dst_);
  const auto write = [&]<class T>(T value) {
    std::fill(reinterpret_cast<T*>(dst) + begin, reinterpret_cast<T*>(dst) + end, value);
  };
  switch (itemsize_) {
    case 1: write(static_cast<std::uint8_t>(fill_bits_)); break;
    case 2: write(static_cast<std::uint16_t>(fill_bits_)); break;
    case 4: write(static_cast<std::uint32_t>(fill_bits_)); break;
    case 8: write(fill_bits_); break;
    // complex128 has 16 bytes: fill_bits is the real part, the imaginary part is 0.
    default: write(std::array<std::uint64_t, 2>{fill_bits_, 0}); break;
  }
}

}  // namespace shardarray
