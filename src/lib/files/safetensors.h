// The safetensors format: 8 bytes with the length of a JSON object, that object, and the bytes of all arrays.
// Source: github.com/huggingface/safetensors (README, Format).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/files/arrays.h"
#include "lib/files/file_writer.h"

namespace shardarray::files {

/// One array of a file.
struct TensorEntry {
  std::string name;
  Type type;
  std::uint64_t begin = 0, end = 0;  ///< offsets of its bytes from the end of the header
};
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::uint64_t bytes = 0;  ///< of the length and the header: where the arrays' bytes begin
};

/// Reads and checks a header: the arrays' bytes fill the rest of the file without overlap. Throws IoError.
SafetensorsHeader read_safetensors_header(const FileReader& file);
/// The array of an entry.
Array load_tensor(const FileReader& file, const SafetensorsHeader& header, const TensorEntry& entry,
                  const Home& home);
/// Called with the bytes of arrays as they are written.
using Watch = detail::FunctionRef<void(const std::string& name, std::span<const std::byte>)>;
/// Writes computed arrays. Throws IoError for names and texts that are not UTF-8.
void write_safetensors(FileWriter& file, const char* function, const std::string& path,
                       const std::map<std::string, Array>& arrays,
                       const std::map<std::string, std::string>& metadata, const Watch* watch = nullptr);

}  // namespace shardarray::files
