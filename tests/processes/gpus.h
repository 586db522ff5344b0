// Processes on machines with and without GPUs, for main.cpp.
#pragma once
#include <cstdio>

#include "saved.h"

namespace processes_test {

/// The default platform, on which all compute.
inline int found() {
  const auto all = sa::devices();
  const sa::Mesh mesh({{static_cast<std::int64_t>(all.size())}, all}, {"x"});
  const Array x = sa::device_put(sa::arange(16.0), sa::NamedSharding(mesh, P("x")));
  const double sum = sa::jit([](const Array& v) { return sa::sum(v); })(x).item<double>();
  std::printf("process %d of %d: %s, the sum is %g\n", sa::process_index(), sa::process_count(),
              all[0].platform.c_str(), sum);
  return 0;
}

/// The machine of one process has none.
inline int no_gpu() {
  try {
    return static_cast<int>(sa::devices().size());
  } catch (const sa::DeviceError& e) { return std::printf("%s\n", e.what()), 3; }
}

/// Each has GPUs of its own among those of all, in addition to the CPU devices of all.
inline int own_gpus() {
  const auto everywhere = sa::devices("cuda"), all = sa::local_devices();  // of the default platform
  bool good = !all.empty() && everywhere.size() == all.size() * static_cast<std::size_t>(sa::process_count());
  for (std::size_t k = 0; k < everywhere.size(); k++)
    good &= everywhere[k].id == static_cast<int>(k) &&
            everywhere[k].process_index == static_cast<int>(k / all.size());
  const sa::Mesh joined({{static_cast<std::int64_t>(everywhere.size())}, everywhere}, {"x"});
  const Array shared = sa::device_put(sa::arange(16.0), sa::NamedSharding(joined, P("x")));
  good &= sa::jit([](const Array& v) { return sa::sum(v * 2); })(shared).item<double>() == 240;
  const sa::Mesh mesh({{static_cast<std::int64_t>(all.size())}, all}, {"x"});
  const Array x = sa::device_put(sa::arange(16.0) + sa::process_index(), sa::NamedSharding(mesh, P("x")));
  const double sum = sa::jit([](const Array& v) { return sa::sum(v * 2); })(x).item<double>();
  good &= sum == 240 + 32 * sa::process_index();
  const auto cpus = sa::devices("cpu");
  const sa::Mesh both({{static_cast<std::int64_t>(cpus.size())}, cpus}, {"x"});
  const Array everyone = sa::device_put(sa::arange(16.0), sa::NamedSharding(both, P("x")));
  good &= sa::jit([](const Array& v) { return sa::sum(v); })(everyone).item<double>() == 120;
  // what each has for itself: that of the first process is saved
  sa::checkpoints::save(test_folder(), 200, x);
  const Array again = sa::checkpoints::restore(test_folder(), x, {.step = 200});
  good &= sa::array_equal(again, sa::device_put(sa::arange(16.0), x.sharding()));
  std::printf("own GPUs are %s\n", good ? "right" : "wrong");
  return good ? 0 : 1;
}

}  // namespace processes_test
