// pmap: refusals and their messages.
#include "golden.h"
#include "program_of.h"
#include "transforms_helpers.h"

namespace pmap_messages_test {

using namespace transforms_test;

TEST_CASE("pmap: messages") {
  const auto add = [](const Array& a, const Array& b) { return a + b; };
  const auto same = [](const Array& a) { return a; };
  const Array two = sa::ones({2, 2}), three = sa::ones({3, 2}), nine = sa::ones({9});
  const auto shape = [](const auto& f) { return error<sa::ShapeError>(f); };
  const auto device = [](const auto& f) { return error<sa::DeviceError>(f); };
  CHECK(shape([&] { sa::pmap(add)(two, three); }) ==
        "pmap: got inconsistent sizes for array axes to be mapped:\n"
        "  * one axis had size 2: axis 0 of argument 0 of type f32[2,2];\n"
        "  * one axis had size 3: axis 0 of argument 1 of type f32[3,2]. Mapped axes must have one size.");
  CHECK(shape([&] {
          sa::pmap([](const std::vector<Array>& v) { return v[0]; })(std::vector{two, three, three});
        }) ==
        "pmap: got inconsistent sizes for array axes to be mapped:\n"
        "  * most axes (2 of them) had size 3, e.g. axis 0 of argument 0[1] of type f32[3,2];\n"
        "  * one axis had size 2: axis 0 of argument 0[0] of type f32[2,2]. Mapped axes must have one size.");
  CHECK(shape([&] { sa::pmap(same, {.in_axes = sa::none})(two); }) ==
        "pmap: must have at least one non-none value in in_axes: no array argument is mapped.");
  CHECK(shape([&] { sa::pmap(same, {.in_axes = sa::none, .axis_size = 2})(two); }) ==
        "pmap: must have at least one non-none value in in_axes: no array argument is mapped.");
  CHECK(shape([&] { sa::pmap(same, {.in_axes = -1})(two); }) ==
        "pmap: in_axes -1 of argument 0: axes of pmap count from the front. Give 1 instead.");
  CHECK(shape([&] { sa::pmap(same, {.in_axes = 2})(two); }) ==
        "pmap: was requested to map its argument 0 along axis 2, which implies that its rank should be at "
        "least 3, but "
        "is only 2 (its shape is [2,2]).");
  CHECK(shape([&] { sa::pmap(same, {.out_axes = 2})(two); }) ==
        "pmap: out_axes: axis 2 is out of range for an output f32[2,2] of rank 2.");
  CHECK(shape([&] { sa::pmap(same, {.axis_size = 3})(two); }) ==
        "pmap: Specified axis_size 3 doesn't match received axis_size 2. Leave axis_size out.");
  const std::string empty =
      "pmap: the mapped axis has size 0. Each of its elements is on a device of its own. Map at least one, "
      "or "
      "use vmap.";
  CHECK(shape([&] { sa::pmap(same)(sa::zeros({0, 3})); }) == empty);
  CHECK(shape([&] { sa::jit(sa::pmap(same))(sa::zeros({0, 3})); }) == empty);
  CHECK(shape([&] { sa::pmap(sa::pmap(same))(sa::zeros({2, 0, 3})); }) == empty);
  CHECK(shape([&] { sa::vmap(sa::pmap(same))(sa::zeros({2, 0, 3})); }) == empty);
  CHECK(shape([&] {
          sa::pmap([](const Array& a) { return sa::psum(a, "i"); }, {.axis_name = "i"})(sa::zeros({0, 3}));
        }) == empty);
  CHECK(device([&] { sa::pmap(same)(nine); }) ==
        "pmap: a computation that requires 9 logical devices, but only 8 are available. Map fewer elements, "
        "or make more "
        "virtual devices (set_cpu_device_count, SHARDARRAY_CPU_DEVICES).");
  CHECK(device([&] {
          sa::pmap(sa::pmap(same))(sa::ones({3, 4}));
        }) ==
        "pmap: a computation that requires 12 logical devices due to nested pmaps, but only 8 are available. "
        "Map fewer "
        "elements, or make more virtual devices (set_cpu_device_count, SHARDARRAY_CPU_DEVICES).");
  const auto all = sa::devices();
  CHECK(device([&] {
          sa::pmap(same, {.devices = {all[0], all[1], all[2]}})(two);
        }) == "pmap: the mapped size must equal the number of given devices: 2 elements, 3 devices.");
  CHECK(device([&] {
          sa::pmap(sa::pmap(same), {.devices = {all[0], all[1], all[2]}})(two);
        }) ==
        "pmap: a computation that requires 4 logical devices due to nested pmaps, but only 3 are available. "
        "Map fewer "
        "elements, or make more virtual devices (set_cpu_device_count, SHARDARRAY_CPU_DEVICES).");
  CHECK(device([&] {
          sa::pmap(sa::pmap(same, {.devices = {all[0], all[1]}}))(two);
        }) == "pmap: nested pmap with explicit devices. Give them to the outermost pmap.");
  CHECK(error<sa::TreeError>([&] {
          sa::pmap(add, {.in_axes = {0, 0, 0}})(two, two);
        }) ==
        "pmap: in_axes has 3 entries for 2 parts. A list needs one entry for each argument, element or "
        "field. Write one "
        "number or none for all of them, or one for each.");
  CHECK(error<sa::TreeError>([&] {
          sa::pmap(same, {.out_axes = {0, 1}})(two);
        }) ==
        "pmap: out_axes is a list of 2 entries for one array. An array has one axis. Write a number or none "
        "there.");
  CHECK(contains(error<sa::TraceError>([&] {
                   sa::pmap([](const Array& x) { return sa::psum(x, "batch"); }, {.axis_name = "i"})(two);
                 }),
                 "psum: unbound axis name 'batch'. In scope: 'i'."));
  CHECK(contains(error<sa::Error>([&] {
                   sa::pmap(
                       [](const Array& x) {
                         return sa::ppermute(x, "i", {{0, 1}, {1, 1}});
                       },
                       {.axis_name = "i"})(two);
                 }),
                 "ppermute: sources and destinations must be unique"));
}

}  // namespace pmap_messages_test
