// The golden rows of the compiler: shardings of results, transfers and their bytes, and that the values are those of one
// device.
#include "../bench/propagation_rows.h"

#include "golden.h"
#include "program_of.h"

namespace propagation_test {

namespace sa = shardarray;
using namespace program_test;
using propagation_rows::Row;

namespace {

void check(const Row& row) {
  CAPTURE(row.number);
  CAPTURE(row.what);
  std::vector<Array> plain, placed;
  for (const propagation_rows::Operand& o : row.operands) {
    plain.push_back(numbers(o.shape, o.dtype, static_cast<int>(plain.size())));
    placed.push_back(sa::device_put(plain.back(), o.sharding));
  }
  const auto f = sa::jit([&row](const std::vector<Array>& v) {
    return row.closed ? sa::filter_shard(row.f(v), *row.closed) : row.f(v);
  });
  const sa::Explanation e = sa::explain(f, placed);
  CAPTURE(e.to_string());
  CHECK(transfers(e) == row.transfers);
  CHECK(bytes_received(e) <= row.most);
  if (row.xla >= 0) CHECK(bytes_received(e) <= row.xla);
  const Array got = f(placed);
  const std::string lies = got.sharding().to_string();
  CAPTURE(lies);
  CHECK(got.sharding().is_equivalent_to(row.final, got.ndim()));
  CHECK(golden::close(values(got), values(sa::jit(row.f)(plain)), 1e-6));
  check_received(f, placed);
  if (row.closed)
    CHECK(transfers(sa::explain(sa::jit(row.f, {.out_shardings = row.closed}), placed)) == row.transfers);
}

}  // namespace

TEST_CASE("propagation: elementwise") {
  for (const Row& row : propagation_rows::elementwise()) check(row);
}
TEST_CASE("propagation: transpose and reshape") {
  for (const Row& row : propagation_rows::transpose_and_reshape()) check(row);
}
TEST_CASE("propagation: products") {
  for (const Row& row : propagation_rows::products()) check(row);
}
TEST_CASE("propagation: a tiny batch moves, not the weight") {
  for (const Row& row : propagation_rows::a_tiny_batch_moves_not_the_weight()) check(row);
}
TEST_CASE("propagation: sums") {
  for (const Row& row : propagation_rows::sums()) check(row);
}
TEST_CASE("propagation: concatenate, pad, sort, windows") {
  for (const Row& row : propagation_rows::concatenate_pad_sort_windows()) check(row);
}
TEST_CASE("propagation: rows taken and scattered") {
  for (const Row& row : propagation_rows::rows_taken_and_scattered()) check(row);
}
TEST_CASE("propagation: reshards") {
  for (const Row& row : propagation_rows::reshards()) check(row);
}

}  // namespace propagation_test
