// Arrays as bytes in files.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "execute/host_stream.h"
#include "graph/node.h"
#include "lib/files/file_reader.h"
#include "shardarray/array.h"

namespace shardarray::files {

/// The names of a dtype in files.
struct DTypeNames {
  DType dtype;
  const char* npy;          ///< NumPy's kind and bytes
  const char* safetensors;  ///< null: it has none
};
/// Of all dtypes.
std::span<const DTypeNames> dtype_names();
const DTypeNames& names_of(DType dtype);

/// The placement of a loaded array.
struct Home {
  Sharding sharding;
  bool committed;
};
/// Without a sharding: uncommitted on the default device. Throws DeviceError, ShardingError if it does not fit, in the name of
/// `function`; `name`: the array's, for messages.
Home home_of(const char* function, const std::optional<Sharding>& s, const Type& t, const std::string& name);

/// The size of a stored array in bytes. Throws IoError if no array can have this type; `name` as above.
std::int64_t stored_bytes(const FileReader& file, const std::string& name, const Type& t);

/// The order of an array's elements and bytes in a file.
struct Order {
  bool fortran = false;  ///< column-major
  bool swapped = false;  ///< big-endian
};
using Fill = detail::FunctionRef<void(std::span<std::byte>)>;
/// An array whose bytes `fill` provides in the order of the file; `pass` as in stream_from_host(). Bools other than 0 become 1.
Array load_array(const Type& t, const Home& home, Order order, Fill fill, const Pass* pass = nullptr);
/// The same for the bytes of a file from `at` on; what no device of this process needs is not read.
Array load_array(const Type& t, const Home& home, Order order, const FileReader& file, std::uint64_t at);
/// Passes the bytes of a computed array, row-major, to `take`.
void save_array(const Array& x, detail::FunctionRef<void(std::span<const std::byte>)> take);

}  // namespace shardarray::files
