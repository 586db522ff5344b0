// Shared by thread tests: threads that begin together, values that are compared with plain arithmetic in any of them.
#pragma once
#include <doctest/doctest.h>

#include <barrier>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "scale.h"
#include "shardarray/shardarray.h"

namespace shardarray::testing::threads {

namespace sa = shardarray;
using sa::Array;
using Values = std::vector<float>;

inline constexpr int kThreads = 4;
inline int rounds(int few) { return full_scale() ? 50 * few : few; }

// Runs f(0), f(1), ... in threads that begin together. An exception ends its own thread only, and is rethrown at the end.
template <class F> void together(const F& f, int threads = kThreads) {
  std::barrier begin(threads);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; t++)
    running.emplace_back([&, t] {
      begin.arrive_and_wait();
      try {
        f(t);
      } catch (...) { thrown[static_cast<std::size_t>(t)] = std::current_exception(); }
    });
  for (std::thread& t : running) t.join();
  for (const std::exception_ptr& e : thrown)
    if (e) std::rethrow_exception(e);
}

inline void expect(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(what);
}
inline void expect(const Array& got, const Values& want, const char* what) {
  const Values have = got.to_vector<float>();
  for (std::size_t k = 0; k < want.size() && have.size() == want.size(); k++)
    if (have[k] != want[k]) {
      std::ostringstream s;
      s << what << ": element " << k << " is " << have[k] << ", not " << want[k];
      throw std::runtime_error(s.str());
    }
  expect(have.size() == want.size(), what);
}
template <class E, class F> bool throws(const F& f) {
  try {
    f();
  } catch (const E&) { return true; }
  return false;
}

// 1, 2, 3, ... in 8 rows.
inline Values counting(int n, float scale = 1, float shift = 0) {
  Values v;
  for (int k = 1; k <= n; k++) v.push_back(static_cast<float>(k) * scale + shift);
  return v;
}
inline Array rows(int n) { return sa::array(counting(n), sa::Shape{8, n / 8}); }
inline sa::Device dev(int k) { return sa::devices()[static_cast<std::size_t>(k)]; }
inline sa::Sharding over(int first, int count) {
  std::vector<sa::Device> some;
  for (int k = first; k < first + count; k++) some.push_back(dev(k));
  return sa::PositionalSharding(some).reshape({count, 1});
}
inline Array put(const Array& x, const sa::Sharding& s) { return sa::device_put(x, s); }

}  // namespace shardarray::testing::threads
