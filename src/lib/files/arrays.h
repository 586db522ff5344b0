// Arrays as rows of bytes in files.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "execute/host_stream.h"
#include "graph/node.h"
#include "lib/files/file_reader.h"
#include "shardarray/array.h"

namespace shardarray::files {

/// How files write a dtype.
struct DTypeNames {
  DType dtype;
  const char* npy;          ///< NumPy's kind and bytes
  const char* safetensors;  ///< null: it has none
};
/// All that arrays have.
std::span<const DTypeNames> dtype_names();
const DTypeNames& names_of(DType dtype);

/// Where an array goes that is loaded.
struct Home {
  Sharding sharding;
  bool committed;
};
/// None: uncommitted on the default device. Throws DeviceError, ShardingError where it does not fit, in the name of `function`;
/// `name` is the array's, in messages.
Home home_of(const char* function, const std::optional<Sharding>& s, const Type& t, const std::string& name);

/// The bytes of an array as it is stored. Throws IoError where no array can have this type; `name` as above.
std::int64_t stored_bytes(const FileReader& file, const std::string& name, const Type& t);

/// How the elements of an array stand in a file.
struct Order {
  bool fortran = false;  ///< the first index runs fastest
  bool swapped = false;  ///< big-endian
};
using Fill = detail::FunctionRef<void(std::span<std::byte>)>;
/// An array of `t`, whose bytes `fill` gives in their order in the file; `pass` as of stream_from_host(). Bytes of bool that are not
/// 0 become 1.
Array load_array(const Type& t, const Home& home, Order order, Fill fill, const Pass* pass = nullptr);
/// The same of bytes that stand in a file from `at` on: what no device of this process needs is not read.
Array load_array(const Type& t, const Home& home, Order order, const FileReader& file, std::uint64_t at);
/// The bytes of a computed array, row-major.
void save_array(const Array& x, detail::FunctionRef<void(std::span<const std::byte>)> take);

}  // namespace shardarray::files
