// What distributions share: their parameters, and keys of single elements.
#pragma once
#include <initializer_list>

#include "ops/record.h"

namespace shardarray::random {

/// The parameters in dtype `t`, broadcast to the shape of the draw: `shape` or, if that is empty, their own.
struct Parameters {
  Parameters(const char* function, const Shape& shape, DType t, std::initializer_list<const Array*> given);
  Shape shape;
  Arrays values;
};

/// One key per element of a shape, as if each element were drawn alone, in any mode.
struct ElementKeys {
  Array high, low;  ///< uint32
};
/// split(key, shape).
ElementKeys element_keys(const Array& key, const Shape& shape);
/// Key k of split(keys, n), n is 2 or 3.
ElementKeys split_key(const ElementKeys& keys, int n, int k);
/// uniform(key) of every key, in [0, 1).
Array unit_uniform(const ElementKeys& keys, DType t);
/// Throws DTypeError for a dtype that holds no counts.
void need_counts(DType t, const char* function);

}  // namespace shardarray::random
