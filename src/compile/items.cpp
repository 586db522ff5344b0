// Loop, Gemm and LibraryCall items: local shapes and addresses for every instance.
#include <algorithm>

#include "base/complex_parts.h"
#include "compile/addresses.h"
#include "compile/index_map.h"
#include "runtime/step_ranges.h"

namespace shardarray {

namespace {

LoopArg loop_arg(const KernelAccess& a, const Loop::Item& item, int p, Addresses& at) {
  const Box& tile = at.stored_tile(a.value, p);
  const TileWalk walk = tile_walk(a, tile, item.extents.size());
  LoopArg arg;
  arg.ref = at.ref(a.value, p);
  arg.bytes = at.memory(a.value).bytes[at.instance(a.value, p)];
  // The kernel's argument may be one part of complex elements, whose parts are interleaved.
  const DType whole = at.value(a.value).type.dtype,
              element = a.part == KernelAccess::whole ? whole : part_type(whole);
  const std::int64_t parts = whole == element ? 1 : 2;
  for (const std::int64_t s : walk.strides) arg.strides.push_back(s * parts);
  if (a.indirect >= 0) {
    const auto rows = static_cast<std::size_t>(a.indirect);
    arg.indirect_stride = row_major(tile.size)[rows] * parts;
    arg.lo = tile.lo[rows];
    arg.count = tile.size[rows];
  }
  std::int64_t first = walk.origin;
  for (std::size_t d = 0; d < item.start.size(); d++) first += walk.strides[d] * item.start[d];
  arg.first = static_cast<std::uint64_t>((first * parts + std::max(a.part, 0)) *
                                         static_cast<std::int64_t>(itemsize(element)));
  arg.ref.offset += arg.first;
  return arg;
}

}  // namespace

TileWalk tile_walk(const KernelAccess& a, const Box& tile, std::size_t rank) {
  const Shape strides = row_major(tile.size);
  TileWalk walk{Shape::filled(rank, 0), 0};
  for (std::size_t j = 0; j < a.map.dims.size(); j++) {
    if (static_cast<int>(j) == a.indirect) continue;
    for (const IndexSum::Term& t : a.map.dims[j].terms)
      walk.strides[static_cast<std::size_t>(t.dim)] += t.step * strides[j];
    walk.origin += (a.map.dims[j].offset - tile.lo[j]) * strides[j];
  }
  return walk;
}

Loop make_loop(const Group& group, const GroupKernel& k, const FlatGraph& g, const Partition& p,
               Addresses& at) {
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(k.kernel);
  const Memory& memory = at.memory(group.roots[0]);
  for (std::size_t i = 0; i < at.items_of(memory); i++) {
    Loop::Item item;
    item.device = memory.device[i];
    const Box& outer = at.tile(group.domain, item.device);
    item.extents = outer.size;
    item.start = outer.lo;
    if (group.reduce >= 0) {
      const LocalStep& s = p.steps[static_cast<std::size_t>(group.reduce)];
      const FlatNode& n = g.nodes[static_cast<std::size_t>(s.node)];
      const Box& operand = at.tile(s.in[0], item.device);
      const IndexMap map = reduce_map(n, outer.size.size());
      Shape extents = item.extents, start = item.start;
      extents.resize(outer.size.size() + n.attrs->dims.size());
      start.resize(extents.size());
      for (std::size_t j = 0; j < map.dims.size(); j++) {
        const auto d = static_cast<std::size_t>(map.dims[j].terms[0].dim);
        extents[d] = operand.size[j];
        start[d] = operand.lo[j];
      }
      item.extents = extents;
      item.start = start;
    }
    for (const KernelAccess& a : k.args) item.args.push_back(loop_arg(a, item, item.device, at));
    loop.items.push_back(std::move(item));
  }
  return loop;
}

Gemm make_gemm(const LocalStep& s, const FlatGraph& g, Addresses& at) {
  const FlatNode& n = g.nodes[static_cast<std::size_t>(s.node)];
  const Letters l = split_letters(n.attrs->letters);
  const auto [batch, m, cols, k] = dot_letters(l);
  const bool swapped = l.out != batch + m + cols;  // C is [batch, n, m]: compute B^T A^T
  const int a = s.in[swapped ? 1 : 0], b = s.in[swapped ? 0 : 1];
  const std::string &la = l.in[swapped ? 1 : 0], &lb = l.in[swapped ? 0 : 1];
  const std::string& rows = swapped ? cols : m;
  const std::string& columns = swapped ? m : cols;
  Gemm gemm;
  gemm.in = n.in_types[0].dtype;
  gemm.out = n.out_types[0].dtype;
  gemm.fixed_order = n.attrs->uncut;
  gemm.tf32 = n.modes->tf32 && gemm.in == DType::float32;
  const Memory& memory = at.memory(s.out[0]);
  for (std::size_t i = 0; i < at.items_of(memory); i++) {
    const int p = memory.device[i];
    const Box &ta = at.tile(a, p), &tb = at.tile(b, p);
    auto local = [&](const std::string& letters) {
      std::int64_t size = 1;
      for (char c : letters)
        size *= la.find(c) != std::string::npos ? ta.size[la.find(c)] : tb.size[lb.find(c)];
      return size;
    };
    Gemm::Item x;
    x.device = p;
    x.a = at.ref(a, p);
    x.b = at.ref(b, p);
    x.c = memory.refs[i];
    x.m = local(rows);
    x.n = local(columns);
    x.k = local(k);
    x.batch = local(batch);
    x.ta = la != batch + rows + k;
    x.tb = lb != batch + k + columns;
    x.lda = x.ta ? x.m : x.k;
    x.ldb = x.tb ? x.k : x.n;
    x.ldc = x.n;
    x.stride_a = x.m * x.k;
    x.stride_b = x.k * x.n;
    x.stride_c = x.m * x.n;
    gemm.items.push_back(x);
  }
  return gemm;
}

LibraryCall make_library_call(const LocalStep& s, const FlatGraph& g, Addresses& at) {
  const FlatNode& n = g.nodes[static_cast<std::size_t>(s.node)];
  const Call call = n.call();
  LibraryCall l;
  for (int v : s.in) l.in_types.push_back(at.value(v).type.dtype);
  for (int v : s.out) l.out_types.push_back(at.value(v).type.dtype);
  const Memory& memory = at.memory(s.out[0]);
  for (std::size_t i = 0; i < at.items_of(memory); i++) {
    const int device = memory.device[i];
    std::vector<Box> in, out;
    LibraryCall::Item item;
    item.device = device;
    for (int v : s.in) {
      item.in.push_back(at.ref(v, device));
      in.push_back(at.tile(v, device));
    }
    for (int v : s.out) {
      item.out.push_back(at.ref(v, device));
      out.push_back(at.tile(v, device));
    }
    LocalCall here = n.op->lower({call, in, out});
    l.name = here.name;
    item.in_shapes = std::move(here.in_shapes);
    item.out_shapes = std::move(here.out_shapes);
    item.params = std::move(here.params);
    l.items.push_back(std::move(item));
  }
  return l;
}

}  // namespace shardarray
