// An absent or donated array passed to any public function of arrays, as any operand: the error names the function and the line of the
// call.
#include <filesystem>
#include <map>
#include <set>

#include "messages.h"
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

std::string function_in(const std::string& message) { return message.substr(0, message.find(": ")); }
/// f(row, its operands, k) for each operand k of each public function that does not do without it. How many there are.
template <class F> std::size_t each_operand(const F& f) {
  std::size_t calls = 0;
  for (const OpCase& row : op_cases()) {
    if (recorded.contains(row.name)) continue;
    const auto known = optional_operands.find(row.name);
    Rng rng(5);
    const Arrays operands = draw_operands(row, rng);
    for (std::size_t k = 0; k < operands.size(); k++) {
      if (known != optional_operands.end() && known->second.contains(k)) continue;
      CAPTURE(row.name);
      CAPTURE(k);
      calls++;
      f(row, operands, k);
    }
  }
  return calls;
}
/// x, given away.
Array donated(const Array& x) {
  const auto same = jit([](const Array& a) { return a; });
  Array copy = same(x);
  eval(copy);
  static_cast<void>(same(std::move(copy)));
  return copy;
}

}  // namespace

TEST_CASE("errors: every function of arrays names its caller's line, whichever operand is absent") {
  const std::size_t calls = each_operand([](const OpCase& row, Arrays some, std::size_t k) {
    some[k] = Array();
    try {
      eval(row.function(some));
      FAIL_CHECK("an absent array was taken");
    } catch (const Error& e) {
      const std::filesystem::path file = e.where().file;
      CHECK_MESSAGE(file.parent_path().filename() == "tests", file.string() << ": " << e.what());
      CHECK(e.where().line > 0);
      CHECK(
          std::string(e.what()).ends_with(" (" + file.string() + ":" + std::to_string(e.where().line) + ")"));
    }
  });
  CHECK(calls > 1000);
}

TEST_CASE("errors: of a donated array the function is named that was called, as of an absent one") {
  std::set<std::pair<std::string, std::string>> others;
  const std::size_t calls = each_operand([&](const OpCase& row, Arrays some, std::size_t k) {
    const Array operand = some[k];
    some[k] = Array();
    const std::string absent = message_of<Error>([&] { eval(row.function(some)); });
    some[k] = donated(operand);
    const std::string gone = message_of<Error>([&] { eval(row.function(some)); });
    CHECK(contains(gone, "Array has been deleted"));
    // Some cases ask x for its shape or dtype first, which a donated one has; some functions give x back; what
    // calls a function of the user, and what derives it, gives it absent arrays too.
    static const std::set<std::string> asked = {"dtype", "shape"},
                                       others_say = {"eval",       "grad", "fori_loop", "associative_scan",
                                                     "while_loop", "scan", "map"};
    const std::string of_absent = function_in(absent), of_gone = function_in(gone);
    if (of_gone != of_absent && !asked.contains(of_absent) && !others_say.contains(of_gone))
      others.emplace(of_absent, of_gone);
  });
  CHECK(calls > 1000);
  for (const auto& [absent, gone] : others)
    FAIL_CHECK(absent << " of an absent array, " << gone << " of a donated one");
}

}  // namespace errors_ops_test
