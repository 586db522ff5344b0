// Helpers of the CPU backend's tests.
#pragma once
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "messages.h"
#include "runtime/devices.h"
#include "runtime/pool.h"
#include "shardarray/error.h"

namespace shardarray::cpu_test {

using testing::contains;
using testing::message_of;

/// What f writes to stderr.
inline std::string stderr_of(const std::function<void()>& f) {
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  const int saved = dup(2);
  dup2(fileno(file), 2);
  f();
  std::fflush(stderr);
  dup2(saved, 2);
  close(saved);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

struct Workers {
  const int before = ThreadPool::instance().worker_count();
  explicit Workers(int n) { set_worker_count(n); }
  ~Workers() { set_worker_count(before); }
};

/// Runs a program of these steps on blocks of memory that become the bases.
inline RunReport run(std::vector<Step> steps, const std::vector<void*>& bases, int transfers = 0) {
  auto program = std::make_shared<Program>();
  program->steps = std::move(steps);
  program->base_count = static_cast<std::uint32_t>(bases.size());
  program->transfers.resize(static_cast<std::size_t>(transfers));
  const auto cpu = make_cpu_backend(1);
  RunReport report;
  cpu->load(program)->run(bases, &report);
  return report;
}
template <class Body> Step step(Body b) { return {std::move(b), "", {}}; }

template <class T> std::vector<T> random_values(std::mt19937& rng, std::int64_t n, bool whole) {
  std::vector<T> v(static_cast<std::size_t>(n));
  for (auto& x : v) {
    if constexpr (std::is_floating_point_v<T>) {
      x = whole ? static_cast<T>(static_cast<int>(rng() % 17) - 8)
                : static_cast<T>(static_cast<double>(rng()) / 4294967296.0 - 0.5);
    } else {
      x = static_cast<T>(rng());
    }
  }
  return v;
}

}  // namespace shardarray::cpu_test
