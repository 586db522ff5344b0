// Segment reductions of rows by number, differentiable.
#pragma once
#include "ops/record.h"

namespace shardarray {

/// Combines the rows [n, ..] whose `number` [n] is k into row k of [count, ..]; the identity if there are none. Out-of-range numbers are
/// ignored. Equal extrema share the derivative; the product's derivative compares every row with every number and stores the rows once per
/// number.
Array combined_rows(Reducer r, const Array& number, const Array& rows, std::int64_t count);

/// For each of the row numbers [b.., n] the last place along n with that number; 0 if it is none of the `count` rows.
Array last_of_row(const Array& number, std::int64_t batch_rank, std::int64_t count);

}  // namespace shardarray
