// Arrays made of what each process has. Processes are threads (loopback.h).
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "loopback.h"
#include "messages.h"
#include "platform_programs.h"
#include "process_helpers.h"
#include "shardarray/shardarray.h"

namespace process_local_data_test {

namespace sa = shardarray;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::testing::thrown;
using sa::testing::World;
using Devices = std::vector<sa::Device>;

namespace {

// The entries along dimension d that devices of process p hold, in their order.
std::vector<std::int64_t> entries_of(const sa::Sharding& s, const sa::Shape& whole, std::size_t d,
                                     int process) {
  std::map<std::int64_t, std::int64_t> ranges;
  for (const auto& [device, index] : s.devices_indices_map(whole)) {
    if (device.process_index != process) continue;
    if (index[d].whole) ranges.emplace(0, whole[d]);
    else ranges.emplace(index[d].start, index[d].stop);
  }
  std::vector<std::int64_t> r;
  for (const auto& [first, last] : ranges)
    for (std::int64_t k = first; k < last; k++) r.push_back(k);
  return r;
}

std::vector<std::uint32_t> everywhere(const Array& x) {
  return platform_test::bits(
      sa::device_put(x, sa::PositionalSharding(x.sharding().device_assignment()).replicate()));
}

}  // namespace

TEST_CASE("transport: an array of what each process has is the one that they have parts of") {
  const std::vector<P> specs{P(),
                             P("x"),
                             P("y"),
                             P(sa::none, "x"),
                             P("x", "y"),
                             P("y", "x"),
                             P(sa::axes("x", "y")),
                             P(sa::axes("y", "x")),
                             P(sa::none, sa::axes("y", "x"))};
  for (const int processes : {2, 4})
    for (const sa::Shape& whole : {sa::Shape{16, 8}, {13, 9}, {0, 8}, {1, 24}})
      for (auto& one : World::of(processes).run([&](int, const Devices& devices) {
             const sa::Mesh mesh = platform_test::mesh_of(devices);
             for (const P& spec : specs) {
               CAPTURE(spec.to_string());
               const sa::NamedSharding s(mesh, spec);
               const Array all = numbers(whole);
               Array mine = all;
               for (std::size_t d = 0; d < 2; d++) {
                 const auto entries = entries_of(s, whole, d, sa::process_index());
                 mine = sa::take(mine, sa::array(entries, sa::ShapeOf(), sa::int32), static_cast<int>(d));
               }
               const auto want = platform_test::bits(all);
               const Array made = sa::make_array_from_process_local_data(s, mine, whole);
               CHECK(made.sharding() == sa::Sharding(s));
               CHECK(made.committed());
               CHECK(made.shape() == whole);
               CHECK(everywhere(made) == want);
               // The whole where it is at hand; without a shape where the parts are equal.
               CHECK(everywhere(sa::make_array_from_process_local_data(s, all, whole)) == want);
               if (whole == sa::Shape{16, 8})
                 CHECK(everywhere(sa::make_array_from_process_local_data(s, mine)) == want);
             }
             return 0;
           }))
        one.get();
}

TEST_CASE("transport: what does not fit an array of what each process has") {
  for (auto& one : World::of(2).run([&](int p, const Devices&devices) {
         const sa::NamedSharding rows(sa::Mesh({{8}, devices}, {"x"}), P("x"));
         const auto says = [&](const sa::Sharding& s, const Array& local, const sa::ShapeOf& shape = {}) {
           return thrown([&] { (void)sa::make_array_from_process_local_data(s, local, shape); });
         };
         CHECK(says(rows, numbers({6, 2}))
                   .find("make_array_from_process_local_data: dimension 0 of f32[6,2] is cut into 4 equal "
                         "parts here, "
                         "in process 0, where the shape of the whole is not given. Give `global_shape`.") ==
               0);
         CHECK(says(rows, numbers({6, 2}), {16, 2})
                   .find("make_array_from_process_local_data: dimension 0 of f32[6,2] has 6 entries. Of the "
                         "16 of the "
                         "whole array 8 are on devices of process 0, and a process gives these, or all. Give "
                         "that "
                         "many.") == 0);
         CHECK(says(rows, numbers({8, 2}), {16})
                   .find("make_array_from_process_local_data: f32[8,2] is a part of an array of shape [16]. "
                         "A part has "
                         "as many dimensions as the whole. Correct one of them.") == 0);
         CHECK(says(rows, Array()).find("make_array_from_process_local_data: ") == 0);
         // A process without devices of it has nothing to give, and says the type.
         const sa::NamedSharding first(sa::Mesh({{4}, Devices(devices.begin(), devices.begin() + 4)}, {"x"}),
                                       P("x"));
         const Array made = sa::make_array_from_process_local_data(
             first, numbers({p == 0 ? 8 : 0, 2}).astype(sa::float64), {8, 2});
         CHECK(made.dtype() == sa::float64);
         CHECK(made.addressable_shards().size() == (p == 0 ? 4 : 0));
         CHECK((says(first, numbers({8, 2})).empty()) == (p == 0));
         return 0;
       }))
    one.get();
}

TEST_CASE("placement: arrays made of elements are constants, which a gradient does not pass without a word") {
  const sa::NamedSharding rows(sa::make_mesh({{"x", 8}}), P("x"));
  const auto says = [&](const auto& made) {
    return thrown(
        [&] { (void)sa::grad([&](const Array& a) { return sa::sum(made(a * 2)); })(sa::ones({8})); });
  };
  const auto local = [&](const Array& a) { return sa::make_array_from_process_local_data(rows, a); };
  const auto called = [&](const Array& a) {
    return sa::make_array_from_callback(
        {8}, rows, [&](const sa::ShardIndex& i) { return a[sa::slice(i[0].start, i[0].stop)]; });
  };
  const auto pieces = [&](const Array& a) {
    const std::vector<Array> one{sa::device_put(a, sa::devices()[0])};
    return sa::make_array_from_single_device_arrays({8}, sa::SingleDeviceSharding(sa::devices()[0]), one);
  };
  const auto refuses = [](const std::string& text, const char* begin) {
    CHECK_MESSAGE(text.find(begin) == 0, text);
  };
  refuses(says(local), "make_array_from_process_local_data: f32[8] is diff");
  refuses(says(called), "make_array_from_callback: f32[1] is diff");
  refuses(says(pieces), "make_array_from_single_device_arrays: f32[8] is diff");
  // What is no part of the derivative may be one.
  CHECK(sa::grad([&](const Array& a) { return sa::sum(a * local(sa::arange(8.0f))); })(sa::ones({8}))
            .to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
}

}  // namespace process_local_data_test
