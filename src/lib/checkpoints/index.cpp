#include "lib/checkpoints/index.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/sizes.h"
#include "lib/files/arrays.h"

namespace shardarray::checkpoints {

namespace {

using nlohmann::json;

constexpr int version = 1;
constexpr std::uint64_t most_index_bytes = std::uint64_t{1} << 30;

/// The index starts with the CRC-32 of all that follows, so that no change goes unnoticed.
std::string checksum_of(std::string_view text) {
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
  return fmt::format("{{\"crc32\":\"{:08x}\",", sum);
}
constexpr std::size_t checksum_bytes = std::string_view("{\"crc32\":\"01234567\",").size();

/// Reads an index from an untrusted file.
class Reader {
 public:
  explicit Reader(const files::FileReader& file) : file_(file) {}

  Index read() const {
    if (file_.size() > most_index_bytes) bad(fmt::format("has {} bytes", file_.size()));
    std::string text(file_.size(), '\0');
    file_.read(0, text.data(), text.size());
    if (text.size() < checksum_bytes ||
        !text.starts_with(checksum_of(std::string_view(text).substr(checksum_bytes))))
      bad("is damaged, or no index that this library wrote");
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    std::optional<std::string> twice;
    const auto note = [&](int, json::parse_event_t event, const json& key) {
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end) keys.pop_back();
      if (event == json::parse_event_t::key && !keys.back().insert(key).second)
        twice = key.get<std::string>();
      return true;
    };
    const json all = json::parse(text, note, false);
    if (all.is_discarded()) bad("is no JSON");
    if (twice) bad(fmt::format("has `{}` twice in one object", files::shown(*twice)));
    if (member(all, "format", json::value_t::string) != "shardarray") bad("is no index of a checkpoint");
    if (const std::int64_t v = number(member(all, "version")); v != version)
      file_.fail(fmt::format("has the version {}", v),
                 "This library reads version 1. Use the library that wrote it, or a newer one.");
    Index r;
    r.checksum = text.substr(0, checksum_bytes);
    r.step = number(member(all, "step"));
    for (const auto& [key, value] : member(all, "values", json::value_t::object).items()) {
      if (!value.is_string()) bad(fmt::format("has no text for `{}`", files::shown(key)));
      r.values.emplace(key, value.get<std::string>());
    }
    for (const auto& [key, value] : member(all, "arrays", json::value_t::object).items())
      r.arrays.emplace(key, array(key, value));
    return r;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const { file_.fail(what, damage_advice); }
  const json& member(const json& of, const char* name, json::value_t type = json::value_t::null) const {
    if (!of.is_object()) bad("has a number or a list where an object should be");
    const auto at = of.find(name);
    if (at == of.end()) bad(fmt::format("has no `{}` where one should be", name));
    if (type != json::value_t::null && at->type() != type)
      bad(fmt::format("has a `{}` of another kind than it should be", name));
    return *at;
  }
  std::int64_t number(const json& j) const {
    if (!j.is_number_integer() ||
        (j.is_number_unsigned() && j.get<std::uint64_t>() > (std::uint64_t{1} << 62)) ||
        j.get<std::int64_t>() < 0)
      bad("has something else where a number from 0 to 2^62 should be");
    return j.get<std::int64_t>();
  }
  Shape shape(const json& of, const char* name) const {
    Shape r;
    for (const json& n : member(of, name, json::value_t::array)) r.push_back(number(n));
    return r;
  }

  StoredArray array(const std::string& name, const json& of) const {
    StoredArray r;
    const std::string dtype = member(of, "dtype", json::value_t::string);
    const auto known = files::dtype_names();
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& n) { return shardarray::name(n.dtype) == dtype; });
    if (found == known.end())
      bad(fmt::format("has the dtype `{}` of `{}`", files::shown(dtype), files::shown(name)));
    r.type = {shape(of, "shape"), found->dtype};
    (void)files::stored_bytes(file_, name, r.type);
    for (const json& p : member(of, "pieces", json::value_t::array))
      r.pieces.push_back(piece(name, r.type, p));
    check_cover(name, r);
    return r;
  }
  Piece piece(const std::string& name, const Type& whole, const json& of) const {
    Piece r{member(of, "file", json::value_t::string),
            member(of, "key", json::value_t::string),
            shape(of, "start"),
            shape(of, "shape"),
            {}};
    if (r.file.empty() || r.file[0] == '.' ||
        r.file.find_first_of(std::string("/\0", 2)) != std::string::npos)
      bad(fmt::format("names the file `{}`, which is none of the checkpoint", files::shown(r.file)));
    bool inside = r.start.size() == whole.shape.size() && r.shape.size() == whole.shape.size();
    for (std::size_t d = 0; inside && d < whole.shape.size(); d++)
      inside = r.shape[d] > 0 && r.start[d] <= whole.shape[d] && r.shape[d] <= whole.shape[d] - r.start[d];
    if (!inside)
      bad(fmt::format("has a piece {} at {} of `{}` {}", to_string(r.shape), to_string(r.start),
                      files::shown(name), to_string(whole)));
    const auto blocks =
        (static_cast<std::size_t>(bytes_of(r.shape, whole.dtype)) + block_bytes - 1) / block_bytes;
    for (const json& sum : member(of, "crc32", json::value_t::array))
      r.checksums.push_back(static_cast<std::uint32_t>(number(sum)));
    if (r.checksums.size() != blocks)
      bad(fmt::format("has {} checksums of a piece of `{}` with {} blocks", r.checksums.size(),
                      files::shown(name), blocks));
    return r;
  }
  void check_cover(const std::string& name, StoredArray& a) const {
    std::int64_t elements = 0;
    std::vector<const Piece*> order;
    for (const Piece& p : a.pieces) {
      if (__builtin_add_overflow(elements, num_elements(p.shape), &elements))
        bad(fmt::format("has too many pieces of `{}`", files::shown(name)));
      order.push_back(&p);
    }
    const std::size_t rank = a.type.shape.size();
    std::sort(order.begin(), order.end(), [](const Piece* x, const Piece* y) {
      return std::lexicographical_compare(x->start.begin(), x->start.end(), y->start.begin(), y->start.end());
    });
    bool good = elements == num_elements(a.type.shape);
    for (std::size_t k = 0; k < order.size(); k++)
      for (std::size_t j = k + 1; good && j < order.size(); j++) {
        const Piece &x = *order[k], &y = *order[j];
        if (rank > 0 && y.start[0] >= x.start[0] + x.shape[0]) break;
        bool apart = false;
        for (std::size_t d = 0; d < rank; d++)
          apart |= y.start[d] >= x.start[d] + x.shape[d] || x.start[d] >= y.start[d] + y.shape[d];
        good = apart;
      }
    if (!good)
      bad(fmt::format("has pieces of `{}` {} that are not each element once", files::shown(name),
                      to_string(a.type)));
  }

  const files::FileReader& file_;
};

}  // namespace

std::string text_of(const char* function, const std::string& path, const Index& index) {
  json arrays = json::object();
  for (const auto& [name, a] : index.arrays) {
    json pieces = json::array();
    for (const Piece& p : a.pieces)
      pieces.push_back({{"file", p.file},
                        {"key", p.key},
                        {"start", list_of(p.start)},
                        {"shape", list_of(p.shape)},
                        {"crc32", p.checksums}});
    arrays[name] = {
        {"dtype", shardarray::name(a.type.dtype)}, {"shape", list_of(a.type.shape)}, {"pieces", pieces}};
  }
  const json all = {{"format", "shardarray"},
                    {"version", version},
                    {"step", index.step},
                    {"arrays", arrays},
                    {"values", index.values}};
  try {
    const std::string text = all.dump().substr(1);
    return checksum_of(text) + text;
  } catch (const json::exception&) {
    files::fail(function, path, "a path or a text of the tree is not UTF-8",
                "The index of a checkpoint is JSON. Write it as UTF-8.");
  }
}

Index read_index(const files::FileReader& file) { return Reader(file).read(); }

}  // namespace shardarray::checkpoints
