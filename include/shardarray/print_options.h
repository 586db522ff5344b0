// How arrays are printed.
#pragma once
#include <cstdint>

#include "shardarray/export.h"
#include "shardarray/where.h"

namespace shardarray {

/// NumPy's print options, with its defaults.
struct ArrayFormat {
  int precision = 8;              ///< digits after the point, at most
  std::int64_t threshold = 1000;  ///< of arrays with more elements the ends of every dimension are printed
  int edge_items = 3;             ///< how many entries an end has
  int line_width = 75;            ///< columns
  bool suppress = false;          ///< small numbers are printed without an exponent, perhaps as 0
};

/// While it lives, this thread prints arrays so (streams, to_string, debug::print); scalars have all digits. Guards nest.
///
///     sa::print_options here({.precision = 3, .suppress = true});
///
/// Throws Error for a precision that is not in [0, 100], edges or lines of less than one, a negative threshold.
class SHARDARRAY_API print_options {
 public:
  explicit print_options(const ArrayFormat& format, Where w = Where::here());
  ~print_options();
  print_options(const print_options&) = delete;
  print_options& operator=(const print_options&) = delete;

 private:
  ArrayFormat previous_;
};

}  // namespace shardarray
