#include "runtime/step_ranges.h"

#include <algorithm>

namespace shardarray {
namespace {

/// n elements of `size` bytes starting at `r`.
MemoryRange elements_range(const Ref& r, std::int64_t n, std::size_t size) {
  return {r.base, r.offset, r.offset + static_cast<std::uint64_t>(n) * size};
}

/// The bytes from the first to the last element of `batch` matrices with batch stride `stride` and row stride `ld`.
MemoryRange matrix_range(const Ref& r, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                         std::int64_t batch, std::int64_t stride, std::size_t size) {
  if (rows == 0 || cols == 0 || batch == 0) return {r.base, r.offset, r.offset};
  return elements_range(r, (batch - 1) * stride + (rows - 1) * ld + cols, size);
}

/// What a loop reads of a tile, from its first to its last element; the loop may start outside of the tile. Inputs used after a reduction
/// are read even if the reduction is empty.
MemoryRange read_range(const LoopArg& a, const Shape& extents, int outer, std::size_t size) {
  MemoryRange all = tile_range(a.ref, a.first, a.bytes);
  std::int64_t lo = 0, hi = 0;
  for (std::size_t d = 0; d < extents.size(); d++) {
    if (extents[d] == 0 && d < static_cast<std::size_t>(outer)) return {all.base, all.lo, all.lo};
    (a.strides[d] < 0 ? lo : hi) += a.strides[d] * (std::max<std::int64_t>(extents[d], 1) - 1);
  }
  const auto bytes = static_cast<std::int64_t>(size), first = static_cast<std::int64_t>(a.first);
  const auto inside = [&](std::int64_t n) {
    return all.lo +
           static_cast<std::uint64_t>(std::clamp<std::int64_t>(n, 0, static_cast<std::int64_t>(a.bytes)));
  };
  return {all.base, inside(first + lo * bytes), inside(first + (hi + 1) * bytes)};
}

/// The destination except what is already in place.
MemoryRanges written_by(const Exchange::Item& i, DType dtype) {
  MemoryRanges there, all;
  if (!i.fill)
    for (const Exchange::Piece& p : i.pieces)
      if (lies_there(p)) there.push_back(elements_range(p.dst, num_elements(p.extents), itemsize(dtype)));
  std::ranges::sort(there, {}, &MemoryRange::lo);
  std::uint64_t lo = i.dst.offset;
  for (const MemoryRange& r : there) {
    if (lo < r.lo) all.push_back({i.dst.base, lo, r.lo});
    lo = std::max(lo, r.hi);
  }
  if (const std::uint64_t end = i.dst.offset + i.dst_bytes; lo < end || there.empty())
    all.push_back({i.dst.base, lo, end});
  return all;
}

}  // namespace

bool lies_there(const Exchange::Piece& p) {
  return p.sources.size() == 1 && p.sources[0].ref.base == p.dst.base &&
         p.sources[0].ref.offset == p.dst.offset && is_packed(p.extents, p.src_strides) &&
         is_packed(p.extents, p.dst_strides);
}

Shape row_major(const Shape& shape) {
  Shape strides = Shape::filled(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool is_packed(const Shape& extents, const Shape& strides) {
  const Shape packed = row_major(extents);
  for (std::size_t d = 0; d < extents.size(); d++)
    if (extents[d] != 1 && strides[d] != packed[d]) return false;
  return true;
}

bool is_one_element(const LoopArg& a) {
  return std::all_of(a.strides.begin(), a.strides.end(), [](std::int64_t s) { return s == 0; });
}

ItemRanges ranges_of(const Loop& loop, const Loop::Item& item) {
  ItemRanges out;
  for (std::size_t k = 0; k < item.args.size(); k++) {
    const LoopArg& a = item.args[k];
    const KernelArg& arg = loop.kernel->args[k];
    if (arg.output) out.writes.push_back(tile_range(a.ref, a.first, a.bytes));
    else
      out.reads.push_back(arg.indirect ? tile_range(a.ref, a.first, a.bytes)
                                       : read_range(a, item.extents, loop.kernel->outer, itemsize(arg.type)));
  }
  return out;
}

ItemRanges ranges_of(const Gemm& gemm, const Gemm::Item& i) {
  const std::size_t in = itemsize(gemm.in), out = itemsize(gemm.out);
  return {{matrix_range(i.a, i.ta ? i.k : i.m, i.ta ? i.m : i.k, i.lda, i.batch, i.stride_a, in),
           matrix_range(i.b, i.tb ? i.n : i.k, i.tb ? i.k : i.n, i.ldb, i.batch, i.stride_b, in)},
          {matrix_range(i.c, i.m, i.n, i.ldc, i.batch, i.stride_c, out)}};
}

ItemRanges ranges_of(const LibraryCall& x, const LibraryCall::Item& i) {
  ItemRanges out;
  for (std::size_t k = 0; k < i.in.size(); k++)
    out.reads.push_back(elements_range(i.in[k], num_elements(i.in_shapes[k]), itemsize(x.in_types[k])));
  for (std::size_t k = 0; k < i.out.size(); k++)
    out.writes.push_back(elements_range(i.out[k], num_elements(i.out_shapes[k]), itemsize(x.out_types[k])));
  return out;
}

ItemRanges ranges_of(const Exchange& x, const Exchange::Item& i) {
  ItemRanges out;
  for (const Exchange::Piece& p : i.pieces)
    if (!lies_there(p))
      for (const Exchange::Source& s : p.sources)
        out.reads.push_back(tile_range(s.ref, s.first, s.tile_bytes));
  out.writes = written_by(i, x.dtype);
  return out;
}

ItemRanges ranges_of(const ProgramCall& x, const ProgramCall::Item& item) {
  ItemRanges out;
  const Program& p = *x.program;
  const auto add = [&](MemoryRanges& to, const Ref& r, std::uint64_t bytes) {
    to.push_back({r.base, r.offset, r.offset + bytes});
  };
  // Runs [0, runs) of a base of `bytes` bytes.
  const auto add_runs = [&](MemoryRanges& to, const ProgramCall::Binding& b, std::uint64_t bytes,
                            std::int64_t runs) {
    if (b.stride == 0) {
      for (std::int64_t run = 0; run < std::min<std::int64_t>(runs, 3); run++) add(to, b.at(run), bytes);
      return;
    }
    const Ref one = b.at(0), other = b.at(runs - 1);
    add(to, one.offset <= other.offset ? one : other, bytes * static_cast<std::uint64_t>(runs));
  };
  for (std::size_t d = 0; d < p.scratch_bytes.size(); d++)
    add(out.writes, item.bases[d].first, p.scratch_bytes[d]);
  for (const Port& port : p.inputs)
    for (std::size_t i = 0; i < port.bases.size(); i++) {
      const ProgramCall::Binding& b = item.bases[port.bases[i]];
      add_runs(out.reads, b, port.bytes[i], b.stride == 0 ? 1 : x.trip);
    }
  for (const Port& port : p.outputs)
    for (std::size_t i = 0; i < port.bases.size(); i++)
      add_runs(out.writes, item.bases[port.bases[i]], port.bytes[i], x.trip);
  return out;
}

static void append_ranges(ItemRanges& to, const ItemRanges& more) {
  for (const MemoryRange& r : more.reads) to.reads.push_back(r);
  for (const MemoryRange& r : more.writes) to.writes.push_back(r);
}

ItemRanges ranges_of(const ProgramChoice& x, const ProgramChoice::Item& item) {
  ItemRanges out;
  out.reads.push_back(elements_range(item.index, 1, sizeof(std::int32_t)));
  for (const ProgramCall& branch : x.branches) append_ranges(out, ranges_of(branch, branch.items[0]));
  return out;
}

ItemRanges ranges_of(const ProgramLoop& x, const ProgramLoop::Item& item) {
  ItemRanges out;
  for (const ProgramCall& call : x.calls) append_ranges(out, ranges_of(call, call.items[0]));
  out.writes.push_back(elements_range(item.answer, 1, 1));
  for (const ProgramLoop::Carry& c : item.carries)
    for (const Ref& r : {c.even, c.odd})
      out.writes.push_back(elements_range(r, static_cast<std::int64_t>(c.bytes), 1));
  return out;
}

static MemoryRange packed_range(const Ref& r, const Shape& extents, DType type) {
  return elements_range(r, num_elements(extents), itemsize(type));
}

MemoryRanges written_wholly(const Loop& loop, const Loop::Item& item) {
  MemoryRanges out;
  for (std::size_t a = 0; a < item.args.size(); a++)
    if (loop.kernel->args[a].output && is_packed(item.extents, item.args[a].strides))
      out.push_back(packed_range(item.args[a].ref, item.extents, loop.kernel->args[a].type));
  return out;
}

MemoryRanges written_wholly(const Gemm& gemm, const Gemm::Item& i) {
  const Shape extents = {i.batch, i.m, i.n};
  if (!is_packed(extents, {i.stride_c, i.ldc, 1})) return {};
  return {packed_range(i.c, extents, gemm.out)};
}

MemoryRanges written_wholly(const LibraryCall& x, const LibraryCall::Item& i) {
  return ranges_of(x, i).writes;
}

MemoryRanges written_wholly(const Exchange& x, const Exchange::Item& i) {
  std::uint64_t bytes = 0;  // valid because pieces do not overlap
  for (const Exchange::Piece& p : i.pieces)
    bytes += static_cast<std::uint64_t>(num_elements(p.extents)) * itemsize(x.dtype);
  if (!i.fill && bytes != i.dst_bytes) return {};
  return written_by(i, x.dtype);
}

MemoryRanges written_wholly(const Step& step) {
  MemoryRanges all;
  std::visit(
      [&](const auto& body) {
        if constexpr (requires { written_wholly(body, body.items[0]); })
          for (const auto& item : body.items)
            for (const MemoryRange& r : written_wholly(body, item)) all.push_back(r);
      },
      step.body);
  return all;
}

}  // namespace shardarray
