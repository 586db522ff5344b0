// Loop, Gemm and Extern items: the local shapes and addresses of every instance.
#include "compile/addresses.h"
#include "compile/index_map.h"

namespace shardarray {

namespace {

std::int64_t product(const Shape& s, std::size_t from, std::size_t to) {
  std::int64_t n = 1;
  for (std::size_t k = from; k < to; k++) n *= s[k];
  return n;
}

LoopArg loop_arg(const KernelAccess& a, const Loop::Item& item, int p, Addresses& at) {
  const Box tile = at.stored_tile(a.value, p);
  const Shape strides = row_major(tile.size);
  const auto bytes = static_cast<std::int64_t>(itemsize(at.value(a.value).type.dtype));
  LoopArg arg;
  arg.ref = at.ref(a.value, p);
  arg.bytes = at.memory(a.value).bytes[at.instance(a.value, p)];
  arg.strides = Shape::filled(item.extents.size(), 0);
  std::int64_t first = 0;
  for (std::size_t j = 0; j < a.map.size(); j++) {
    if (static_cast<int>(j) == a.indirect) {
      arg.indirect_stride = strides[j];
      arg.lo = tile.lo[j];
      arg.count = tile.size[j];
      continue;
    }
    const MapDim& d = a.map[j];
    std::int64_t global = d.offset;
    if (d.dim >= 0) {
      arg.strides[static_cast<std::size_t>(d.dim)] += d.step * strides[j];
      global += d.step * item.start[static_cast<std::size_t>(d.dim)];
    }
    first += (global - tile.lo[j]) * strides[j];
  }
  arg.first = static_cast<std::uint64_t>(first * bytes);
  arg.ref.offset += arg.first;
  return arg;
}

}  // namespace

Loop make_loop(const Group& group, const GroupKernel& k, const FlatGraph& g, const Partition& p,
               Addresses& at) {
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(k.kernel);
  const Memory memory = at.memory(group.roots[0]);
  for (std::size_t i = 0; i < memory.refs.size(); i++) {
    Loop::Item item;
    item.device = memory.device[i];
    const Box outer = at.tile(group.domain, item.device);
    item.extents = outer.size;
    item.start = outer.lo;
    if (group.reduce >= 0) {
      const PartStep& s = p.steps[static_cast<std::size_t>(group.reduce)];
      const FlatNode& n = g.nodes[static_cast<std::size_t>(s.node)];
      const Box operand = at.tile(s.in[0], item.device);
      const IndexMap map = reduce_map(n, outer.size.size());
      Shape extents = item.extents, start = item.start;
      extents.resize(outer.size.size() + n.attrs->dims.size());
      start.resize(extents.size());
      for (std::size_t j = 0; j < map.dims.size(); j++) {
        extents[static_cast<std::size_t>(map.dims[j].dim)] = operand.size[j];
        start[static_cast<std::size_t>(map.dims[j].dim)] = operand.lo[j];
      }
      item.extents = extents;
      item.start = start;
    }
    for (const KernelAccess& a : k.args) item.args.push_back(loop_arg(a, item, item.device, at));
    loop.items.push_back(std::move(item));
  }
  return loop;
}

Gemm make_gemm(const PartStep& s, const FlatGraph& g, Addresses& at) {
  const FlatNode& n = g.nodes[static_cast<std::size_t>(s.node)];
  const Letters l = split_letters(n.attrs->letters);
  auto has = [](const std::string& t, char c) { return t.find(c) != std::string::npos; };
  std::string batch, m, cols, k;
  for (char c : l.out) (has(l.in[0], c) ? (has(l.in[1], c) ? batch : m) : cols) += c;
  for (char c : l.in[0])
    if (!has(l.out, c)) k += c;
  const bool swapped = l.out != batch + m + cols;  // C is [batch, n, m]: compute B^T A^T
  const int a = s.in[swapped ? 1 : 0], b = s.in[swapped ? 0 : 1];
  const std::string &la = l.in[swapped ? 1 : 0], &lb = l.in[swapped ? 0 : 1];
  const std::string& rows = swapped ? cols : m;
  const std::string& columns = swapped ? m : cols;
  Gemm gemm;
  gemm.in = n.in_types[0].dtype;
  gemm.out = n.out_types[0].dtype;
  gemm.fixed_order = n.attrs->uncut;
  const Memory memory = at.memory(s.out[0]);
  for (std::size_t i = 0; i < memory.refs.size(); i++) {
    const int p = memory.device[i];
    const Box ta = at.tile(a, p), tb = at.tile(b, p);
    auto local = [&](const std::string& letters) {
      std::int64_t size = 1;
      for (char c : letters) size *= has(la, c) ? ta.size[la.find(c)] : tb.size[lb.find(c)];
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

Extern make_extern(const PartStep& s, const FlatGraph& g, Addresses& at) {
  const FlatNode& n = g.nodes[static_cast<std::size_t>(s.node)];
  const bool sorts = n.op->form == Form::sort;
  Extern e;
  e.kind = sorts ? ExternKind::sort : ExternKind::scatter_add;
  for (const Type& t : n.in_types) e.in_types.push_back(t.dtype);
  for (const Type& t : n.out_types) e.out_types.push_back(t.dtype);
  const Memory memory = at.memory(s.out[0]);
  for (std::size_t i = 0; i < memory.refs.size(); i++) {
    Extern::Item item;
    item.device = memory.device[i];
    for (int v : s.in) {
      item.in.push_back(at.ref(v, item.device));
      item.in_shapes.push_back(at.tile(v, item.device).size);
    }
    for (int v : s.out) {
      item.out.push_back(at.ref(v, item.device));
      item.out_shapes.push_back(at.tile(v, item.device).size);
    }
    if (sorts) {
      item.params = {n.attrs->dims[0] + static_cast<std::int64_t>(n.in_types[0].shape.size())};
    } else {  // [b, n] rows and [b, n, d] updates into [b, v, d]
      const auto nb = static_cast<std::size_t>(n.attrs->lo[0]), nr = static_cast<std::size_t>(n.attrs->hi[0]);
      const Shape updates = item.in_shapes[1], out = item.out_shapes[0];
      const std::int64_t batch = product(updates, 0, nb), count = product(updates, nb, nb + nr);
      const std::int64_t width = product(updates, nb + nr, updates.size());
      item.params = {at.tile(s.out[0], item.device).lo[nb]};
      item.in_shapes = {{batch, count}, {batch, count, width}};
      item.out_shapes = {{batch, out[nb], width}};
    }
    e.items.push_back(std::move(item));
  }
  return e;
}

}  // namespace shardarray
