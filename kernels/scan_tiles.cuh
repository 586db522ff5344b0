// Prefix scans in tiles: blocks of lines are staged in shared memory, each is scanned by one thread, and they are written combined with
// their carries. Where a thread block has whole lines, each element is read and written once, coalesced. The results are those of scan.cuh.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/scan.cuh"
#include "kernels/tile_threads.cuh"

namespace shardarray::device {

/// Bytes that a thread moves in one access, and bytes of its row that it scans per step. Padding between rows avoids bank conflicts.
inline constexpr std::uint32_t scan_part = 16, scan_row_unit = 2 * scan_part, scan_row_gap = scan_part;
/// Room for 32 whole rows of 1-byte elements; fewer rows of larger ones.
inline constexpr std::uint32_t scan_tile_bytes = 32 * (scan_block_length + scan_row_gap);
/// Carries that fit into a tile's memory.
inline constexpr std::int64_t scan_carries = scan_tile_bytes / sizeof(ScanCarry);

/// Adjacent elements, moved in one access. A tile's memory is accessed both as elements and as words of several.
template <class Word, int n> struct [[gnu::may_alias, gnu::aligned(n * sizeof(Word))]] ScanRun {
  Word words[n];
};

struct ScanMemory {
  alignas(64) std::byte tile[scan_tile_bytes];
  ScanCarry carries[tile_threads];  // by row
};
#ifdef __CUDACC__
#define SHARDARRAY_NOT_UNROLLED _Pragma("unroll 1")
/// The block's shared memory.
SHARDARRAY_DEVICE inline ScanMemory& scan_memory() {
  __shared__ ScanMemory memory;
  return memory;
}
#else
#define SHARDARRAY_NOT_UNROLLED
#endif

/// The runs of elements that a thread moves, interleaved with the other threads in memory order: by column, then along the lines, then by
/// set.
class ScanWalk {
 public:
  SHARDARRAY_DEVICE ScanWalk(std::uint32_t thread, std::uint32_t columns, std::uint32_t runs,
                             std::uint32_t sets)
      : columns_(columns), runs_(runs), sets_(sets), at_(place(thread)), step_(place(tile_threads)) {}
  SHARDARRAY_DEVICE bool works() const { return at_.set < sets_; }
  SHARDARRAY_DEVICE void next() {
    at_.column += step_.column;
    at_.run += step_.run;
    at_.set += step_.set;
    if (at_.column >= columns_) {
      at_.column -= columns_;
      at_.run++;
    }
    if (at_.run >= runs_) {
      at_.run -= runs_;
      at_.set++;
    }
  }
  SHARDARRAY_DEVICE std::uint32_t column() const { return at_.column; }
  SHARDARRAY_DEVICE std::uint32_t run() const { return at_.run; }
  SHARDARRAY_DEVICE std::uint32_t set() const { return at_.set; }

 private:
  struct Place {
    std::uint32_t column, run, set;
  };
  SHARDARRAY_DEVICE Place place(std::uint32_t n) const {
    return {n % columns_, n / columns_ % runs_, n / columns_ / runs_};
  }
  const std::uint32_t columns_, runs_, sets_;
  Place at_;
  const Place step_;
};

/// Calls f with a rule whose combining operation is known at compile time.
template <class T, class F> SHARDARRAY_DEVICE inline void with_rule_of(const ScanTable& t, const F& f) {
  constexpr DType type = dtype_of<T>();
  const auto known = [&]<Code code>(KnownCombine<T, code> combine) {
    f(ScanRule<KnownCombine<T, code>>{combine, type, std::is_floating_point_v<T> && code == Code::add});
  };
  switch (t.combine.code) {
    case Code::add: return known(KnownCombine<T, Code::add>(t.combine));
    case Code::mul: return known(KnownCombine<T, Code::mul>(t.combine));
    case Code::min: return known(KnownCombine<T, Code::min>(t.combine));
    default: return known(KnownCombine<T, Code::max>(t.combine));
  }
}
/// Bits: an unsigned integer of the elements' size.
template <class Bits, class F> SHARDARRAY_DEVICE inline void with_rule(const ScanTable& t, const F& f) {
  if constexpr (sizeof(Bits) == 4) {
    if (t.combine.type == DType::float32) return with_rule_of<float>(t, f);
  } else if constexpr (sizeof(Bits) == 8) {
    if (t.combine.type == DType::float64) return with_rule_of<double>(t, f);
  }
  if (is_signed_integer(t.combine.type)) with_rule_of<std::make_signed_t<Bits>>(t, f);
  else with_rule_of<Bits>(t, f);
}

template <class Bits> class TileScan {
 public:
  SHARDARRAY_DEVICE TileScan(const ScanTable& t, const ScanItem& s, std::byte* scratch, const Bases& bases)
      : t_(t),
        s_(s),
        x_(address_of(bases, s.x)),
        out_(address_of(bases, s.out)),
        totals_(t.has_totals ? address_of(bases, s.totals) : nullptr),
        scratch_(scratch),
        wide_(multiples_of<scan_part>(x_, out_, (s.inner == 1 ? s.length : s.inner) * bytes)),
        is_reverse_(t.is_reverse != 0),
        row_bytes_(s.shape.row_bytes),
        blocks_(s.shape.blocks) {}

  SHARDARRAY_DEVICE void run(const Grid& g) {
    const bool whole = t_.stage == ScanStage::all;  // whole lines, tile after tile
    const std::int64_t chunks = s_.shape.chunks, units = s_.shape.groups * (whole ? 1 : chunks);
    if (t_.stage == ScanStage::carries) {
      for (std::int64_t line = g.block; line < s_.lines; line += g.blocks) put_carries(line);
      return;
    }
    for (std::int64_t at = g.block; at < units; at += g.blocks) {
      const std::int64_t first = whole ? 0 : at % chunks, end = whole ? chunks : first + 1;
      begin(whole ? at : at / chunks);
      for (std::int64_t chunk = first; chunk < end; chunk++) scan_chunk(chunk);
      if (!whole || totals_ == nullptr) continue;
      SHARDARRAY_TILE_THREADS(thread) {
        if (thread < lines()) put_total(line(thread), carry(thread));
      }
    }
  }

 private:
  static constexpr int bytes = sizeof(Bits);
  static constexpr int together = scan_part / bytes;  // elements per access
  /// Elements smaller than 4 bytes stay packed in words: one register each would be too many.
  using Word = std::conditional_t<sizeof(Bits) < 4, std::uint32_t, Bits>;
  static constexpr int each = sizeof(Word) / bytes;  // elements per word
  using Part = ScanRun<Word, scan_part / sizeof(Word)>;
  template <int n> using Moved = std::conditional_t<n == 1, ScanRun<Bits, 1>, Part>;

  // --- the tile's position ---

  SHARDARRAY_DEVICE void begin(std::int64_t group) {
    const ScanShape& shape = s_.shape;
    const std::int64_t first = group * shape.sets, outer = first / shape.across,
                       column = first % shape.across * shape.columns, left = s_.inner - column,
                       sets = s_.lines / s_.inner * shape.across - first;
    columns_ = static_cast<std::uint32_t>(left < shape.columns ? left : shape.columns);
    sets_ = static_cast<std::uint32_t>(sets < shape.sets ? sets : shape.sets);
    first_line_ = outer * s_.inner + column;
    first_element_ = outer * s_.length * s_.inner + column;
    SHARDARRAY_TILE_THREADS(thread) carry(thread) = {t_.identity, 0};
  }
  /// The line with number `n` in the tile.
  SHARDARRAY_DEVICE std::int64_t line(std::uint32_t n) const {
    return first_line_ + n / columns_ * s_.inner + n % columns_;
  }
  SHARDARRAY_DEVICE std::uint32_t lines() const { return sets_ * columns_; }
  SHARDARRAY_DEVICE std::uint32_t rows() const { return lines() * blocks_; }
  /// Elements of a row; 0 for rows that the tile does not have.
  SHARDARRAY_DEVICE std::uint32_t row_length(std::uint32_t row) const {
    const std::uint32_t first = row % blocks_ * row_size;
    if (row >= rows() || first >= length_) return 0;
    return length_ - first < row_size ? length_ - first : row_size;
  }
  SHARDARRAY_DEVICE std::byte* row_at(std::uint32_t row) { return memory().tile + row * row_bytes_; }
  SHARDARRAY_DEVICE std::int64_t line_blocks() const { return (s_.length + row_size - 1) / row_size; }
  /// The carries of a line in scratch memory, and that of a row.
  SHARDARRAY_DEVICE ScanCarry* stored_carries(std::int64_t line) const {
    return reinterpret_cast<ScanCarry*>(scratch_ + s_.carries) + line * line_blocks();
  }
  SHARDARRAY_DEVICE ScanCarry& stored(std::uint32_t row) const {
    return stored_carries(line(row / blocks_))[first_ / row_size + row % blocks_];
  }

  // --- a tile ---

  SHARDARRAY_DEVICE void scan_chunk(std::int64_t chunk) {
    const std::uint32_t most = blocks_ * row_size;
    first_ = chunk * most;
    length_ = static_cast<std::uint32_t>(s_.length - first_ < most ? s_.length - first_ : most);
    SHARDARRAY_TILE_THREADS(thread) {
      if (!wide_) read_tile<1, 1>(thread);
      else if (s_.inner == 1) read_tile<together, 1>(thread);
      else read_tile<1, together>(thread);
    }
    SHARDARRAY_SYNC_TILE();
    SHARDARRAY_TILE_THREADS(row) {
      if (row_length(row) > 0) make_chain(row);
    }
    SHARDARRAY_SYNC_TILE();
    SHARDARRAY_TILE_THREADS(thread) find_carries(thread);
    SHARDARRAY_SYNC_TILE();
    if (t_.stage == ScanStage::totals) return;
    SHARDARRAY_TILE_THREADS(thread) add_carries(thread);
    SHARDARRAY_SYNC_TILE();
    SHARDARRAY_TILE_THREADS(thread) {
      if (!wide_) write_tile<1, 1>(thread);
      else if (s_.inner == 1) write_tile<together, 1>(thread);
      else write_tile<1, together>(thread);
    }
    SHARDARRAY_SYNC_TILE();  // before the next tile
  }

  // In one access a thread moves n elements of a line, or one element of each of m neighbouring lines.

  /// Byte offset of the tile's first run, and strides between runs along a line and between sets.
  struct Distances {
    std::int64_t first, run, set;
  };
  template <int n> SHARDARRAY_DEVICE Distances distances() const {
    const std::int64_t place = is_reverse_ ? s_.length - n - first_ : first_, run = n * s_.inner * bytes;
    return {(first_element_ + place * s_.inner) * bytes, is_reverse_ ? -run : run,
            s_.length * s_.inner * bytes};
  }
  template <int m> SHARDARRAY_DEVICE static std::int64_t in_memory(const ScanWalk& w, const Distances& d) {
    return d.first + w.set() * d.set + w.run() * d.run + w.column() * (m * bytes);
  }
  template <int n, int m> SHARDARRAY_DEVICE std::uint32_t in_tile(const ScanWalk& w) const {
    const std::uint32_t i = w.run() * n, line = w.set() * columns_ + w.column() * m;
    return (line * blocks_ + i / row_size) * row_bytes_ + i % row_size * std::uint32_t{bytes};
  }
  template <int n, int m> SHARDARRAY_DEVICE void read_tile(std::uint32_t thread) {
    constexpr int ahead = n * m == 1 ? 8 : n * m == 16 ? 2 : 4;  // runs in flight: as registers allow
    constexpr std::uint32_t nowhere = scan_tile_bytes;
    const Distances d = distances<n>();
    SHARDARRAY_NOT_UNROLLED
    for (ScanWalk w(thread, columns_ / m, length_ / n, sets_); w.works();) {
      Moved<n * m> runs[ahead]{};
      std::uint32_t to[ahead];
      for (int k = 0; k < ahead; k++) {
        to[k] = nowhere;
        if (!w.works()) continue;
        to[k] = in_tile<n, m>(w);
        runs[k] = *moved<n * m>(x_ + in_memory<m>(w, d));
        w.next();
      }
      for (int k = 0; k < ahead; k++) {
        if (to[k] == nowhere) continue;
        std::byte* const at = memory().tile + to[k];
        if constexpr (m == 1) *moved<n>(at) = ordered(runs[k]);
        else
          for (int line = 0; line < m; line++)
            *moved<1>(at + line * line_bytes()) = {{element(runs[k], line)}};
      }
    }
  }
  template <int n, int m> SHARDARRAY_DEVICE void write_tile(std::uint32_t thread) {
    const Distances d = distances<n>();
    SHARDARRAY_NOT_UNROLLED
    for (ScanWalk w(thread, columns_ / m, length_ / n, sets_); w.works(); w.next()) {
      const std::byte* const at = memory().tile + in_tile<n, m>(w);
      std::byte* const to = out_ + in_memory<m>(w, d);
      if constexpr (m == 1) {
        *moved<n>(to) = ordered(*moved<n>(at));
      } else {
        Part run{};
        for (int line = 0; line < m; line++)
          run.words[line / each] |= Word{moved<1>(at + line * line_bytes())->words[0]}
                                    << line % each * 8 * bytes;
        *moved<m>(to) = run;
      }
    }
  }
  SHARDARRAY_DEVICE int line_bytes() const { return static_cast<int>(blocks_ * row_bytes_); }
  SHARDARRAY_DEVICE static Bits element(const Part& run, int n) {
    return static_cast<Bits>(run.words[n / each] >> n % each * 8 * bytes);
  }
  template <int n, class Byte> SHARDARRAY_DEVICE static auto* moved(Byte* p) {
    using To = std::conditional_t<std::is_const_v<Byte>, const Moved<n>, Moved<n>>;
    check_aligned(p, sizeof(To));
    return reinterpret_cast<To*>(p);
  }
  /// From memory order to scan order, or back.
  template <class Run> SHARDARRAY_DEVICE Run ordered(const Run& run) const {
    constexpr int words = sizeof run.words / sizeof run.words[0];
    Run to;
    for (int k = 0; k < words; k++)
      to.words[k] = is_reverse_ ? backwards(run.words[words - 1 - k]) : run.words[k];
    return to;
  }
  template <class Word> SHARDARRAY_DEVICE static Word backwards(Word word) {
    if constexpr (sizeof(Word) == sizeof(Bits)) {
      return word;
    } else {
      Word to = 0;
      for (std::uint32_t k = 0; k < sizeof(Word); k += sizeof(Bits))
        to = to << 8 * sizeof(Bits) | (word >> 8 * k & std::numeric_limits<Bits>::max());
      return to;
    }
  }
  /// Replaces each element of a word by f of it, in order.
  template <class F> SHARDARRAY_DEVICE static void make_each(Word& word, const F& f) {
    Word to = 0;
    for (std::uint32_t k = 0; k < sizeof(Word); k += sizeof(Bits))
      to |= static_cast<Word>(f(word >> 8 * k & std::numeric_limits<Bits>::max())) << 8 * k;
    word = to;
  }

  /// Scans a row in place and stores its total as the row's carry. Elements past the row's end are combined too, but not used.
  SHARDARRAY_DEVICE void make_chain(std::uint32_t row) {
    constexpr int parts = scan_row_unit / scan_part;
    const std::uint32_t length = row_length(row);
    std::byte* const at = row_at(row);
    std::uint64_t local = t_.identity;
    with_rule<Bits>(t_, [&](const auto& rule) {
      Part next[parts];
      for (int k = 0; k < parts; k++) next[k] = *moved<together>(at + k * scan_part);
      SHARDARRAY_NOT_UNROLLED
      for (std::uint32_t i = 0; i < length * bytes; i += scan_row_unit) {
        Part here[parts];
        for (int k = 0; k < parts; k++) {
          here[k] = next[k];
          if (i + scan_row_unit < length * bytes)
            next[k] = *moved<together>(at + i + scan_row_unit + k * scan_part);
        }
        for (int k = 0; k < parts; k++) {
          for (Word& word : here[k].words)
            make_each(word, [&](std::uint64_t x) { return local = rule.combine(local, x); });
          *moved<together>(at + i + k * scan_part) = here[k];
        }
      }
    });
    const auto last = *moved<1>(at + (length - 1) * bytes);
    memory().carries[row] = {last.words[0], 0};
  }
  /// One thread per line; if other thread blocks have parts of the line, one per row.
  SHARDARRAY_DEVICE void find_carries(std::uint32_t thread) {
    ScanCarry* const carries = memory().carries;
    if (t_.stage == ScanStage::all) {
      if (thread < lines())
        chain_carries(carries + thread * blocks_, (length_ + row_size - 1) / row_size, carry(thread));
    } else if (row_length(thread) > 0) {
      if (t_.stage == ScanStage::totals) stored(thread) = carries[thread];
      else carries[thread] = stored(thread);
    }
  }
  /// Replaces blocks' totals by the carries into them: sequential, since each needs the previous one.
  SHARDARRAY_DEVICE void chain_carries(ScanCarry* at, std::uint32_t count, ScanCarry& carry) const {
    with_rule<Bits>(t_, [&](const auto& rule) {
      ScanCarry c = carry;
      std::uint64_t next = at[0].total;
      SHARDARRAY_NOT_UNROLLED
      for (std::uint32_t k = 0; k < count; k++) {
        const std::uint64_t total = next;
        if (k + 1 < count) next = at[k + 1].total;  // loaded while the chain goes on
        at[k] = c;
        c = rule.behind(c, total);
      }
      carry = c;
    });
  }
  SHARDARRAY_DEVICE void add_carries(std::uint32_t thread) {
    const std::uint32_t parts = (row_bytes_ - scan_row_gap) / scan_part;
    const ScanWalk first(thread, 1, parts, rows());
    with_rule<Bits>(t_, [&](const auto& rule) {
      SHARDARRAY_NOT_UNROLLED
      for (ScanWalk w = first; w.works(); w.next()) {
        std::byte* const at = row_at(w.set()) + w.run() * scan_part;
        const ScanCarry c = memory().carries[w.set()];
        Part part = *moved<together>(at);
        for (Word& word : part.words) make_each(word, [&](std::uint64_t x) { return rule.carried(c, x); });
        *moved<together>(at) = part;
      }
    });
  }

  /// Chains the carries of a line.
  SHARDARRAY_DEVICE void put_carries(std::int64_t line) {
    auto* const here = reinterpret_cast<ScanCarry*>(memory().tile);
    SHARDARRAY_TILE_THREADS(thread) carry(thread) = {t_.identity, 0};
    for (std::int64_t first = 0; first < line_blocks(); first += scan_carries) {
      ScanCarry* const all = stored_carries(line) + first;
      const std::int64_t left = line_blocks() - first;
      const auto count = static_cast<std::uint32_t>(left < scan_carries ? left : scan_carries);
      SHARDARRAY_TILE_THREADS(thread)
      for (std::uint32_t k = thread; k < count; k += tile_threads) here[k] = all[k];
      SHARDARRAY_SYNC_TILE();
      SHARDARRAY_TILE_THREADS(thread) {
        if (thread == 0) chain_carries(here, count, carry(thread));
      }
      SHARDARRAY_SYNC_TILE();
      SHARDARRAY_TILE_THREADS(thread)
      for (std::uint32_t k = thread; k < count; k += tile_threads) all[k] = here[k];
    }
    SHARDARRAY_TILE_THREADS(thread) {
      if (totals_ != nullptr && thread == 0) put_total(line, carry(thread));
    }
  }
  SHARDARRAY_DEVICE void put_total(std::int64_t line, const ScanCarry& c) {
    reinterpret_cast<Bits*>(totals_)[line] = static_cast<Bits>(c.total);
  }

  static constexpr std::uint32_t row_size = scan_block_length;
#ifdef __CUDACC__
  SHARDARRAY_DEVICE static ScanMemory& memory() { return scan_memory(); }
#else
  ScanMemory& memory() { return memory_; }
  ScanMemory memory_{};
#endif
  SHARDARRAY_DEVICE ScanCarry& carry(std::uint32_t thread) { return carry_[thread % tile_threads_here]; }

  const ScanTable& t_;
  const ScanItem& s_;
  const std::byte* const x_;
  std::byte *const out_, *const totals_;
  std::byte* const scratch_;
  const bool wide_, is_reverse_;
  const std::uint32_t row_bytes_, blocks_;
  ScanCarry carry_[tile_threads_here];  // after the line's elements so far
  std::int64_t first_line_ = 0, first_element_ = 0, first_ = 0;
  std::uint32_t columns_ = 0, sets_ = 0, length_ = 0;  // of the tile; of its lines' part in it
};

template <class Bits>
SHARDARRAY_DEVICE void scan_tiles(const Grid& g, const std::byte* table, std::byte* scratch,
                                  const Bases& bases) {
  const ScanTable& t = *reinterpret_cast<const ScanTable*>(table);
  TileScan<Bits>(t, entries(table, t.items)[g.item], scratch, bases).run(g);
}

}  // namespace shardarray::device
