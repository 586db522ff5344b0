#include <fmt/format.h>

#include "lib/files/named.h"
#include "lib/files/npy.h"
#include "lib/files/zip.h"
#include "shardarray/files.h"

namespace shardarray {

namespace files {

namespace {

constexpr std::string_view suffix = ".npy";

std::string array_name(const FileReader& file, const ZipMember& m) {
  if (!m.name.ends_with(suffix))
    file.fail(fmt::format("has a member `{}`", shown(m.name)),
              "All members are .npy files. Take the others out of it.");
  return m.name.substr(0, m.name.size() - suffix.size());
}

void check_unpacked(const FileReader& file, const std::vector<ZipMember>& members, std::int64_t most) {
  std::uint64_t bytes = 0;
  for (const ZipMember& m : members)
    if (m.deflated && __builtin_add_overflow(bytes, m.bytes, &bytes)) bytes = ~std::uint64_t{0};
  if (most < 0 || bytes > static_cast<std::uint64_t>(most))
    file.fail(fmt::format("unpacks to {} bytes, {} are allowed", bytes, most),
              "max_bytes says how much a file may hold that is deflated. Raise it if you trust the file.");
}

std::map<std::string, Array> load_members(const std::string& path, const NpzOptions& o) {
  constexpr const char* function = "load_npz";
  const FileReader file(function, path);
  const std::vector<ZipMember> members = zip_members(file);
  check_unpacked(file, members, o.max_bytes);
  std::map<std::string, Home> homes;
  const auto header_of = [&](const ZipMember& m, ZipMemberReader& reader) {
    return read_npy_header(file, array_name(file, m), m.bytes, [&](auto to) { reader.read(to); });
  };
  for (const ZipMember& m : members) {  // reads all headers before any array takes memory
    ZipMemberReader reader(file, m);
    const std::string name = array_name(file, m);
    const Type t = header_of(m, reader).type;
    homes.emplace(name, home_of(function, chosen(o.sharding, o.shardings, name), t, name));
  }
  check_names(file, o.shardings, [&](const std::string& name) { return homes.contains(name); });
  std::map<std::string, Array> arrays;
  for (const ZipMember& m : members) {
    ZipMemberReader reader(file, m);
    const std::string name = array_name(file, m);
    const NpyHeader header = header_of(m, reader);
    arrays[name] = load_array(header.type, homes.at(name), header.order, [&](auto to) { reader.read(to); });
  }
  return arrays;
}

void save_members(const std::string& path, const std::map<std::string, Array>& arrays, bool compressed) {
  constexpr const char* function = "save_npz";
  evaluate_named(function, arrays);
  FileWriter file(function, path);
  ZipWriter zip(file);
  for (const auto& [name, x] : arrays) {
    if (name.size() > 65000)
      fail(function, path, fmt::format("a name has {} bytes: `{}`", name.size(), shown(name)),
           "The format has room for 65,000. Shorten it.");
    zip.begin(name + std::string(suffix), compressed);
    const std::string header = npy_header(type_of(x));
    zip.write(std::as_bytes(std::span(header)));
    save_array(x, [&](std::span<const std::byte> bytes) { zip.write(bytes); });
    zip.end();
  }
  zip.finish();
  file.commit(false);
}

}  // namespace

}  // namespace files

std::map<std::string, Array> load_npz(const std::string& path, const NpzOptions& options, Where w) {
  const Site site(w, "load_npz");
  return detail::with_memory("load_npz", 0, [&] { return files::load_members(path, options); });
}

void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
              const SaveNpzOptions& options, Where w) {
  const Site site(w, "save_npz");
  detail::with_memory("save_npz", 0, [&] { files::save_members(path, arrays, options.compressed); });
}

}  // namespace shardarray
