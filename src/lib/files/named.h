// What formats with several named arrays share.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "lib/files/file_reader.h"
#include "shardarray/array.h"
#include "shardarray/detail/path.h"

namespace shardarray::files {

/// The sharding of the array `name`, by the options of loading.
std::optional<Sharding> chosen(const std::optional<Sharding>& all,
                               const std::map<std::string, Sharding>& by_name, const std::string& name);
/// Throws TreeError for a sharding of an array that the file does not have.
void check_names(const FileReader& file, const std::map<std::string, Sharding>& by_name,
                 detail::FunctionRef<bool(const std::string&)> exists);
/// Computes all of them at once. Throws Error for an absent one.
void evaluate_named(const char* function, const std::map<std::string, Array>& arrays);

}  // namespace shardarray::files
