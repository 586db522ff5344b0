#include "lib/files/safetensors.h"

#include <algorithm>

#include "lib/files/named.h"
#include "shardarray/files.h"

namespace shardarray {

namespace files {

Array load_tensor(const FileReader& file, const SafetensorsHeader& header, const TensorEntry& entry,
                  const Home& home) {
  return load_array(entry.type, home, {}, file, header.bytes + entry.begin);
}

static Safetensors load_tensors(const std::string& path, const LoadOptions& o) {
  const FileReader file("load_safetensors", path);
  const SafetensorsHeader header = read_safetensors_header(file);
  check_names(file, o.shardings, [&](const std::string& name) {
    return std::any_of(header.tensors.begin(), header.tensors.end(),
                       [&](const auto& e) { return e.name == name; });
  });
  std::vector<Home> homes;
  for (const TensorEntry& e : header.tensors)
    homes.push_back(home_of("load_safetensors", chosen(o.sharding, o.shardings, e.name), e.type, e.name));
  Safetensors r;
  r.metadata = header.metadata;
  for (std::size_t k = 0; k < homes.size(); k++)
    r.arrays[header.tensors[k].name] = load_tensor(file, header, header.tensors[k], homes[k]);
  return r;
}

}  // namespace files

Safetensors load_safetensors(const std::string& path, const LoadOptions& options, Where w) {
  const Site site(w, "load_safetensors");
  return detail::with_memory("load_safetensors", 0, [&] { return files::load_tensors(path, options); });
}

void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                      const std::map<std::string, std::string>& metadata, Where w) {
  constexpr const char* function = "save_safetensors";
  const Site site(w, function);
  detail::with_memory(function, 0, [&] {
    files::evaluate_named(function, arrays);
    files::FileWriter file(function, path);
    files::write_safetensors(file, function, path, arrays, metadata);
    file.commit(false);
  });
}

}  // namespace shardarray
