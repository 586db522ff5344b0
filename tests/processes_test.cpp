// Communication of processes, if there is only one. Several of them: tests/processes/check.
#include <doctest/doctest.h>

#include "process_helpers.h"
#include "shardarray/shardarray.h"

namespace processes_test {

namespace sa = shardarray;
using sa::testing::thrown;

TEST_CASE("processes: one is alone: it gives to itself, and waits for nobody") {
  sa::sync_devices("here");
  const auto tree = std::pair(sa::arange(3), sa::Array(2.5f));
  CHECK(sa::process_index() == 0);
  CHECK(sa::process_count() == 1);
  const auto all = sa::gather_from_processes(tree);
  REQUIRE(all.size() == 1);
  CHECK(all[0].first.to_vector<int>() == std::vector<int>{0, 1, 2});
  CHECK(sa::broadcast_one_to_all(tree).second.item<float>() == 2.5f);
  CHECK(thrown([&] { (void)sa::broadcast_one_to_all(tree, 1); }) ==
        "broadcast_one_to_all: there is no process 1. There are 1, numbered from 0. Use one of them.");
}

}  // namespace processes_test
