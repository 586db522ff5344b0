// Rows that are combined by their number, with derivatives.
#pragma once
#include "ops/record.h"

namespace shardarray {

/// The rows [n, ..] whose `number` [n] is k, combined in row k of [count, ..]; the identity where there is none. Rows of other
/// numbers belong to none. Equal extrema share the derivative; that of a product compares every row with every number, and stores
/// the rows once for each.
Array combined_rows(Reducer r, const Array& number, const Array& rows, std::int64_t count);

}  // namespace shardarray
