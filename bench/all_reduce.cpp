// Sums over eight virtual devices, compared with reading and writing all eight buffers in place: the bound if every device gets the sum in
// its own buffer.
#include <shardarray/shardarray.h>

#include <array>
#include <memory>
#include <vector>

#include "bench.h"
#include "workers.h"

namespace sa = shardarray;

namespace {

constexpr std::size_t devices = 8;
using Buffers = std::array<std::vector<float>, devices>;

std::shared_ptr<Buffers> random_buffers(std::size_t n) {
  auto all = std::make_shared<Buffers>();
  for (unsigned k = 0; k < devices; k++) (*all)[k] = bench::random_floats(n, k);
  return all;
}

void negate(Buffers& all) {
  bench::on_all_workers(all[0].size(), [&](std::size_t at, std::size_t k) {
    for (auto& b : all)
      for (std::size_t i = at; i < at + k; i++) b[i] = -b[i];
  });
}

// 64 bytes of every buffer at a time, added in registers.
void sum_by_hand(Buffers& all) {
  typedef float Vector __attribute__((vector_size(64), aligned(4)));
  constexpr std::size_t lanes = 16;
  bench::on_all_workers(all[0].size(), [&](std::size_t at, std::size_t k) {
    std::size_t i = at;
    for (; i + lanes <= at + k; i += lanes) {
      Vector s{};
      for (const auto& b : all) s += *reinterpret_cast<const Vector*>(&b[i]);
      for (auto& b : all) *reinterpret_cast<Vector*>(&b[i]) = s;
    }
    for (; i < at + k; i++) {
      float s = 0;
      for (const auto& b : all) s += b[i];
      for (auto& b : all) b[i] = s;
    }
  });
}

sa::Array pieces(std::size_t n, const sa::Sharding& where) {
  return sa::device_put(sa::random::normal(sa::random::key(1), {static_cast<std::int64_t>(devices * n)}),
                        where);
}

}  // namespace

int main(int argc, char** argv) {
  sa::set_cpu_device_count(devices);
  bench::Suite suite;
  const auto mesh = sa::make_mesh({{"x", devices}});
  const sa::Sharding cut = sa::NamedSharding(mesh, sa::P("x"));
  const auto sum = [&](const sa::P& out) {
    return sa::jit(sa::shard_map([](const sa::Array& x) { return sa::psum(x, "x"); },
                                 {.mesh = mesh, .in_specs = sa::P("x"), .out_specs = out}));
  };
  for (const std::size_t n : {std::size_t{292}, std::size_t{4} << 10, std::size_t{64} << 10,
                              std::size_t{1} << 20, std::size_t{8} << 20}) {
    const std::string size = fmt::format("8 x {}", n), floor = "read and write " + size;
    auto buffers = random_buffers(n);
    suite.add(floor, [=] { negate(*buffers), bench::keep(*buffers); });
    suite.add("sum by hand " + size, [=] { sum_by_hand(*buffers), bench::keep(*buffers); }, {.floor = floor});
    auto x = std::make_shared<sa::Array>(pieces(n, cut));  // grows to infinity, which costs the same
    suite.add("all-reduce in place " + size,
              [x, f = sum(sa::P("x"))] { (*x = f(std::move(*x))).block_until_ready(); },
              {.floor = floor, .aim = n >= (std::size_t{1} << 20) ? 1.2 : 0});
    const sa::Array kept = pieces(n, cut);
    suite.add("all-reduce, x is kept " + size, [kept, f = sum(sa::P("x"))] { f(kept).block_until_ready(); },
              {.floor = floor});
    suite.add("all-reduce, one result for all " + size,
              [kept, f = sum(sa::P())] { f(kept).block_until_ready(); }, {.floor = floor});
  }
  return suite.main(argc, argv);
}
