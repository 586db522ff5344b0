// Trees of all processes, for main.cpp.
#pragma once
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "saved.h"

namespace processes_test {

/// A failure in one process is thrown in all, and their next calls are right.
inline bool gathering_fails_in_all(const Array& cut) {
  const int index = sa::process_index(), count = sa::process_count();
  const auto refused = [](const auto& f, const std::string& text) {
    try {
      (void)f();
    } catch (const sa::Error& e) { return std::string(e.what()).find(text) != std::string::npos; }
    return false;
  };
  using Trees = std::vector<Array>;
  const Array own = sa::ones({2}), there = sa::device_put(own, sa::devices()[0]);
  bool good = true;
  if (count > 1)
    good &= refused([&] { return sa::gather_from_processes(there); },
                    index == 0 ? "(in process 1)" : "has a part on " + sa::to_string(sa::devices()[0]));
  Array given = sa::block_until_ready(sa::ones({3}));
  if (index == count - 1)
    (void)sa::jit([](const Array& x) { return x + 1; }, {.donate = sa::Donate::all})(std::move(given));
  good &= refused([&] { return sa::gather_from_processes(given); }, "donated");
  if (count > 1) {
    const bool is_last = index == count - 1;
    good &= refused(
        [&] {
          return sa::gather_from_processes(is_last ? Trees{own, cut} : Trees{cut, own});
        },
        "array 0 of the tree is of several processes in process ");
    good &= refused(
        [&] {
          return sa::gather_from_processes(is_last ? Trees{cut, cut} : Trees{cut});
        },
        " gives a tree of ");
    good &= refused([&] { return sa::gather_from_processes(std::pair(index, own)); }, "what is `[0] = ");
    good &=
        refused([&] { return sa::broadcast_one_to_all(std::pair(std::string(is_last ? "b" : "a"), own)); },
                "Make what differs an array.");
    good &= refused(
        [&] {
          return sa::gather_from_processes(std::map<std::string, Array>{{is_last ? "b" : "a", own}});
        },
        "what is `");
    good &= refused(
        [&] {
          return sa::broadcast_one_to_all(is_last ? Trees{own, own} : Trees{own});
        },
        " gives a tree of ");
  }
  const auto all = sa::gather_from_processes(sa::full({2}, index));
  for (int p = 0; p < count; p++)
    good &= all[static_cast<std::size_t>(p)].to_vector<int>() == std::vector{p, p};
  return good;
}

/// MPI's own limit is 2^31 bytes; messages are split from 2^26 bytes on, which this exceeds.
inline int gather_much() {
  const std::int64_t n = (std::int64_t{1} << 24) + 5 + sa::process_index();
  const auto all = sa::gather_from_processes(sa::full({n}, sa::process_index() + 1).astype(sa::float32));
  bool good = true;
  for (std::size_t p = 0; p < all.size(); p++)
    good &= all[p].size() == (std::int64_t{1} << 24) + 5 + static_cast<std::int64_t>(p) &&
            sa::array_equal(all[p], sa::full_like(all[p], p + 1));
  std::printf("much is gathered %s\n", good ? "right" : "wrong");
  return good ? 0 : 1;
}

}  // namespace processes_test
