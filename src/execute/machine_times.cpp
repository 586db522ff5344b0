#include "execute/machine_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/count_text.h"
#include "runtime/contraction.h"
#include "runtime/step_ranges.h"
#include "runtime/transfer_times.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

double bytes_of(const MemoryRanges& ranges) {
  double bytes = 0;
  for (const MemoryRange& r : ranges) bytes += static_cast<double>(r.hi - r.lo);
  return bytes;
}

class Steps {
 public:
  explicit Steps(const Machine& m) : m_(m) {}

  double seconds(const Program& program) const {
    std::vector<double> of_device(static_cast<std::size_t>(program.order->size()), 0);
    double called = 0;
    for (const Step& s : program.steps)
      std::visit(
          [&]<class Body>(const Body& body) {
            if constexpr (std::is_same_v<Body, ProgramCall>)
              called += static_cast<double>(body.trip) * seconds(*body.program);
            else if constexpr (std::is_same_v<Body, ProgramChoice>) {
              double most = 0;
              for (const ProgramCall& b : body.branches) most = std::max(most, seconds(*b.program));
              called += most;
            } else if constexpr (std::is_same_v<Body, ProgramLoop>)
              called += seconds(*body.condition().program) + seconds(*body.body().program);
            else
              for (const auto& item : body.items)
                of_device[static_cast<std::size_t>(item.device)] += seconds(body, item) + start(body);
          },
          s.body);
    return called + *std::ranges::max_element(of_device);
  }

 private:
  template <class Body> double start(const Body&) const { return m_.step_latency; }
  double start(const Exchange& x) const { return x.transfer >= 0 ? 0 : m_.step_latency; }
  double seconds_of(double bytes) const { return bytes / m_.memory_bandwidth; }
  template <class Body, class Item> double memory(const Body& body, const Item& item) const {
    const ItemRanges r = ranges_of(body, item);
    return seconds_of(bytes_of(r.reads) + bytes_of(r.writes));
  }
  /// Memory time: of each argument, the bytes that the loop touches.
  double seconds(const Loop& loop, const Loop::Item& item) const {
    double bytes = 0;
    for (std::size_t k = 0; k < item.args.size(); k++) {
      const LoopArg& a = item.args[k];
      const KernelArg& of = loop.kernel->args[k];
      auto touched = static_cast<double>(itemsize(of.type));
      for (std::size_t d = 0; d < item.extents.size(); d++)
        if (of.indirect || a.strides[d] != 0) touched *= static_cast<double>(item.extents[d]);
      bytes += std::min(touched, static_cast<double>(a.bytes));
    }
    return seconds_of(bytes);
  }
  /// `count` products of m x k by k x n.
  double product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count, double flops) const {
    const auto [rows, columns, terms] = m_.product_padding;
    return 2 * (static_cast<double>(m) + rows) * (static_cast<double>(n) + columns) *
           (static_cast<double>(k) + terms) * static_cast<double>(count) / flops;
  }
  double seconds(const Gemm& g, const Gemm::Item& i) const {
    return std::max(memory(g, i), product(i.m, i.n, i.k, i.batch, flops_of(m_, g.in, g.tf32)));
  }
  double seconds(const LibraryCall& x, const LibraryCall::Item& item) const {
    if (x.name != "conv") return memory(x, item);
    const Contraction c = Contraction::of(item.params);
    return std::max(memory(x, item), product(size_of(c.points), size_of(c.features), size_of(c.summed),
                                             size_of(c.groups), flops_of(m_, x.in_types[0], false)));
  }
  double seconds(const Exchange& x, const Exchange::Item& item) const {
    if (x.transfer >= 0) return 0;  // counted as a transfer
    double elements = 0;
    for (const Exchange::Piece& p : item.pieces)
      elements += static_cast<double>(num_elements(p.extents)) * static_cast<double>(p.sources.size() + 1);
    return seconds_of(elements * static_cast<double>(itemsize(x.dtype)));
  }
  const Machine& m_;
};

}  // namespace

MachineTimes::MachineTimes(const Program& program, const Machine& m) : program_(program), machine_(m) {
  const std::vector<Device>& devices = program.order->devices();
  if (static_cast<int>(devices.size()) > m.device_count)
    throw DeviceError(fmt::format(
        "Explanation::on: the program runs on {}, and '{}' has {}. Take a machine that has as many.",
        count_text(devices.size(), "device"), m.name, m.device_count));
  numbers_ = numbers_on(m, devices);
}

double MachineTimes::seconds(const Transfer& t) const { return transfer_seconds(t, numbers_, machine_); }

double MachineTimes::compute_seconds() const { return Steps(machine_).seconds(program_); }

}  // namespace shardarray
