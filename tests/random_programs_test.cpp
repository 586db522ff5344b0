// Random programs with random placements, compared with plain loops and with one device; what the executor moves, compared with
// explain(). SHARDARRAY_TEST_SEED=n runs one program.
#include "random_grow_maps.h"
#include "random_run.h"
#include "random_shrink.h"

namespace random_programs_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

using Failure = std::string (*)(const RandomProgram&, Coverage*);

std::optional<std::uint64_t> only_seed() {
  const char* one = std::getenv("SHARDARRAY_TEST_SEED");
  return one ? std::optional(std::strtoull(one, nullptr, 10)) : std::nullopt;
}

RandomProgram generated(std::uint64_t seed) { return Generator(seed, WithCodegen::kDevices).run(); }

/// Runs a seed's program; one that fails is shrunk. Returns whether it passed.
bool check_seed(std::uint64_t seed, Failure failure, Coverage* coverage) try {
  const RandomProgram p = generated(seed);
  const std::string text = failure(p, coverage);
  if (text.empty()) return true;
  const RandomProgram small = shrink(p, [&](const RandomProgram& q) { return failure(q, nullptr); });
  FAIL_CHECK("seed " << seed << ": " << text << "\nsmaller: " << failure(small, nullptr) << "\n"
                     << small.to_string() << explain_text(small));
  return false;
} catch (const std::exception& e) {  // while it is generated or shrunk
  FAIL_CHECK("seed " << seed << ": " << std::string(e.what()));
  return false;
}

constexpr int kMostFailures = 5;

}  // namespace

TEST_CASE("random programs: every op has its rows of cells") {
  std::set<std::string> named;
  for (const Row& r : rows()) named.insert(r.op);
  for (const Op& op : all_ops())
    CHECK_MESSAGE((has_no_row(op) != named.contains(op.name)), std::string(op.name)
                                                                   << " needs a row in random_cells.h");
}

TEST_CASE("random programs: any placement gives the values of plain loops") {
  const WithCodegen backend(CodegenMode::on);
  Coverage coverage;
  int failures = 0;
  const std::optional<std::uint64_t> one = only_seed();
  if (one) {
    MESSAGE(generated(*one).to_string());
    check_seed(*one, failure_of, &coverage);
    return;
  }
  const std::uint64_t count = is_sanitized() ? 60 : full_scale() ? 20'000 : 200;
  std::uint64_t seed = 1;
  for (; seed <= count && failures < kMostFailures; seed++)
    failures += !check_seed(seed, failure_of, &coverage);
  if (is_sanitized()) return;  // too few for all cells
  // What one program missed another one that aims at it may reach.
  for (const std::uint64_t last = seed + 30'000; seed < last && failures < kMostFailures; seed++)
    if (coverage.needs(seed)) failures += !check_seed(seed, failure_of, &coverage);
  MESSAGE(coverage.report());
  for (const Cell& c : coverage.empty_cells()) FAIL_CHECK("no program reached " << c.to_string());
  for (const KindCell& c : coverage.empty_kind_cells()) FAIL_CHECK("no program reached " << c.to_string());
  CHECK(failures == 0);
}

TEST_CASE("random programs: generated code has the bits of the interpreter") {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= (is_sanitized() ? 4u
                                        : full_scale() ? 300u
                                                       : 40u) &&
                               failures < kMostFailures;
       seed++)
    failures += !check_seed(only_seed().value_or(seed * 7), changed_by_codegen, nullptr);
  CHECK(failures == 0);
}

// A program that is wrong on purpose (its constraint changes the values) must shrink to that line.
TEST_CASE("random programs: shrinking keeps what fails") {
  const WithCodegen backend(CodegenMode::on);
  RandomProgram p = generated(7);
  const int last = p.outputs.back();
  Line wrong = p.lines[static_cast<std::size_t>(last)];
  wrong.text = "wrong";
  wrong.in = {last};
  wrong.sharding.reset();
  wrong.apply = [](std::span<const Array> x) { return stack({x[0], x[0]}); };
  wrong.plain = [](std::span<const Plain> x) { return x[0]; };
  p.lines.push_back(std::move(wrong));
  p.outputs.push_back(static_cast<int>(p.lines.size()) - 1);
  REQUIRE_FALSE(failure_of(p, nullptr).empty());
  const RandomProgram small = shrink(p, [](const RandomProgram& q) { return failure_of(q, nullptr); });
  CHECK(small.lines.size() == 2);
  CHECK(small.lines[1].text == "wrong");
}

}  // namespace random_programs_test
