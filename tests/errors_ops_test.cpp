// An absent array given to any public function of arrays: the error names the line of the call, whichever operand it is.
#include <filesystem>
#include <map>
#include <set>

#include "op_data.h"
#include "shardarray/shardarray.h"

namespace errors_ops_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

/// Operands that a function does without.
const std::map<std::string, std::set<std::size_t>> optional_operands = {
    {"cov of columns, weighted", {2, 3}}, {"ediff1d", {1}}, {"polyfit", {2}}};
/// Rows of operations that no public function names as such.
const std::set<std::string> recorded = {"scatter", "constraint", "beside"};

}  // namespace

TEST_CASE("errors: every function of arrays names its caller's line, whichever operand is absent") {
  set_cpu_device_count(8);
  std::size_t calls = 0;
  for (const OpCase& row : op_cases()) {
    if (recorded.contains(row.name)) continue;
    const auto known = optional_operands.find(row.name);
    Rng rng(5);
    const Arrays operands = draw_operands(row, rng);
    for (std::size_t k = 0; k < operands.size(); k++) {
      if (known != optional_operands.end() && known->second.contains(k)) continue;
      Arrays some = operands;
      some[k] = Array();
      CAPTURE(row.name);
      CAPTURE(k);
      calls++;
      try {
        eval(row.function(some));
        FAIL_CHECK("an absent array was taken");
      } catch (const Error& e) {
        const std::filesystem::path file = e.where().file;
        CHECK_MESSAGE(file.parent_path().filename() == "tests", file.string() << ": " << e.what());
        CHECK(e.where().line > 0);
        CHECK(std::string(e.what()).ends_with(" (" + file.string() + ":" + std::to_string(e.where().line) +
                                              ")"));
      }
    }
  }
  CHECK(calls > 1000);
}

}  // namespace errors_ops_test
