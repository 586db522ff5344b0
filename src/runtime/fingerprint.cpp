#include "runtime/fingerprint.h"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "base/hash.h"
#include "shardarray/dtype.h"
#include "shardarray/shape.h"

namespace shardarray {
namespace {

class Hash {
 public:
  Fingerprint marks_of(const Program& p) {
    Fingerprint f;
    for (const Device& d : p.order->devices()) put(d.id);
    add(p.base_count, p.scratch_bytes, p.inputs, p.outputs);
    f.marks.push_back({value_, fmt::format("({}) -> ({})", types(p.inputs), types(p.outputs))});
    for (const Step& s : p.steps) {
      put(s);
      f.marks.push_back({value_, spelled(s.label, s.where) + size(s)});
    }
    return f;
  }

 private:
  template <class... T> void add(const T&... all) { (put(all), ...); }

  template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>) void put(T x) {
    value_ = hash_mix(value_, static_cast<std::uint64_t>(x));
  }
  template <class T> void put_all(const T& list) {
    put(list.size());
    for (const auto& x : list) put(x);
  }
  template <class T> void put(const std::vector<T>& list) { put_all(list); }
  void put(const Shape& s) { put_all(s); }
  void put(std::string_view text) { put_all(text); }

  static std::string types(const std::vector<Port>& ports) {
    std::string text;
    for (const Port& p : ports)
      text += (text.empty() ? "" : ", ") + (short_name(p.dtype) + to_string(p.shape));
    return text;
  }
  static std::string size(const Step& s) {
    if (const auto* const l = std::get_if<Loop>(&s.body); l != nullptr && !l->items.empty())
      return " of " + to_string(l->items.front().extents);
    if (const auto* const g = std::get_if<Gemm>(&s.body); g != nullptr && !g->items.empty())
      return fmt::format(" of {} x {} x {}", g->items.front().m, g->items.front().k, g->items.front().n);
    return "";
  }

  void of(const Program& p) { add(p.base_count, p.scratch_bytes, p.inputs, p.outputs, p.steps); }
  void put(const Ref& r) { add(r.base, r.offset); }
  void put(const Port& p) { add(p.shape, p.dtype, p.bases, p.bytes, p.devices, p.alias); }
  void put(const Step& s) {
    add(s.body.index(), s.flush_denormals);
    std::visit([&](const auto& body) { put(body); }, s.body);
  }

  void put(const Instr& i) { add(i.code, i.type, i.a, i.b, i.c, i.imm); }
  void put(const Stage& s) { add(s.inner, s.end); }
  void put(const KernelArg& a) { add(a.type, a.output, a.indirect); }
  void put(const LoopArg& a) { add(a.ref, a.strides, a.bytes, a.first, a.indirect_stride, a.lo, a.count); }
  void put(const Loop::Item& i) { add(i.device, i.extents, i.start, i.args); }
  void put(const Loop& l) {
    const Kernel& k = *l.kernel;
    add(k.outer, k.inner, k.order.lanes, k.order.block, k.args, k.code, k.stages, l.items);
  }

  void put(const Gemm::Item& i) {
    add(i.device, i.a, i.b, i.c, i.m, i.n, i.k, i.batch, i.lda, i.ldb, i.ldc, i.stride_a, i.stride_b,
        i.stride_c, i.ta, i.tb);
  }
  void put(const Gemm& g) { add(g.in, g.out, g.fixed_order, g.tf32, g.items); }

  void put(const LibraryCall::Item& i) { add(i.device, i.in, i.out, i.in_shapes, i.out_shapes, i.params); }
  void put(const LibraryCall& c) { add(std::string_view(c.name), c.in_types, c.out_types, c.items); }

  void put(const Exchange::Source& s) { add(s.ref, s.device, s.tile_bytes, s.first); }
  void put(const Exchange::Piece& p) { add(p.extents, p.src_strides, p.dst_strides, p.dst, p.sources); }
  void put(const Exchange::Item& i) { add(i.device, i.dst, i.dst_bytes, i.fill, i.pieces); }
  void put(const Exchange& x) { add(x.dtype, x.reducer, x.fill_bits, x.transfer, x.fixed_order, x.items); }

  void put(const ProgramCall::Binding& b) { add(b.first, b.even, b.odd, b.stride); }
  void put(const ProgramCall::Item& i) { add(i.bases); }
  void put(const ProgramCall& c) {
    add(c.trip, c.first_transfer, c.items);
    of(*c.program);
  }
  void put(const ProgramChoice::Item& i) { add(i.index); }
  void put(const ProgramChoice& c) { add(c.branches, c.items); }
  void put(const ProgramLoop::Carry& c) { add(c.device, c.first, c.even, c.odd, c.bytes); }
  void put(const ProgramLoop::Item& i) { add(i.answer, i.carries); }
  void put(const ProgramLoop& l) { add(l.calls, l.items); }

  std::uint64_t value_ = 0;
};

}  // namespace

Fingerprint fingerprint(const Program& program) { return Hash().marks_of(program); }

}  // namespace shardarray
