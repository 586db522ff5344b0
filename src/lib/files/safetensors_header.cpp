// Headers of safetensors files, which are untrusted.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/count_text.h"
#include "base/sizes.h"
#include "lib/files/safetensors.h"

namespace shardarray::files {

namespace {

using nlohmann::json;

constexpr std::uint64_t most_header_bytes = 100'000'000;  // as the format's own library

/// Accepts only the JSON parser's events that a header has: it stores nothing else, and nothing is nested deeper than the lists of an
/// entry.
class HeaderEvents final : public nlohmann::json_sax<json> {
 public:
  HeaderEvents(const FileReader& file, SafetensorsHeader& header) : file_(file), header_(header) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a bool"); }
  bool number_float(double, const std::string& text) override { return unexpected(shown(text)); }
  bool number_integer(std::int64_t value) override { return unexpected(std::to_string(value)); }
  bool binary(json::binary_t&) override { return unexpected("bytes"); }
  bool number_unsigned(std::uint64_t value) override {
    if (at_ != At::shape && at_ != At::offsets) return unexpected(std::to_string(value));
    if (at_ == At::shape) {
      if (value > static_cast<std::uint64_t>(byte_limit)) bad(fmt::format("has a size {}", value));
      if (entry_.type.shape.size() > most_dimensions) bad("has too many dimensions");
      entry_.type.shape.push_back(static_cast<std::int64_t>(value));
    } else {
      if (offsets_ == 2) bad("has more than two data_offsets");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    }
    return true;
  }
  bool string(std::string& text) override {
    if (at_ == At::metadata_value) {
      if (!header_.metadata.emplace(key_, text).second) bad(fmt::format("stands twice: `{}`", shown(key_)));
      at_ = At::metadata;
      return true;
    }
    if (at_ != At::dtype) return unexpected("a text");
    for (const DTypeNames& n : dtype_names())
      if (n.safetensors && text == n.safetensors) {
        entry_.type.dtype = n.dtype;
        at_ = At::entry;
        return true;
      }
    file_.fail(fmt::format("`{}` is of dtype {}", shown(entry_.name), shown(text)),
               "Arrays are of BOOL, I8 to I64, U8 to U64, F16, BF16, F32 or F64. Convert it in Python.");
  }
  bool start_object(std::size_t) override {
    if (at_ == At::begin) at_ = At::top;
    else if (at_ == At::named && entry_.name == "__metadata__") at_ = At::metadata;
    else if (at_ == At::named) at_ = At::entry;
    else return unexpected("an object");
    return true;
  }
  bool key(std::string& name) override {
    if (at_ == At::metadata) {
      key_ = name;
      at_ = At::metadata_value;
    } else if (at_ == At::top) {
      if (!names_.insert(name).second) {
        entry_.name = name;
        bad("stands twice");
      }
      entry_ = {};
      entry_.name = name;
      offsets_ = 0;
      seen_.clear();
      at_ = At::named;
    } else {
      if (!seen_.insert(name).second) bad(fmt::format("has two entries `{}`", shown(name)));
      if (name == "dtype") at_ = At::dtype;
      else if (name == "shape") at_ = At::shape_begin;
      else if (name == "data_offsets") at_ = At::offsets_begin;
      else bad(fmt::format("has an entry `{}`", shown(name)));
    }
    return true;
  }
  bool end_object() override {
    if (at_ == At::entry) {
      if (seen_.size() != 3) bad("lacks its dtype, shape or data_offsets");
      if (offsets_ != 2) bad("has fewer than two data_offsets");
      header_.tensors.push_back(entry_);
      at_ = At::top;
    } else at_ = at_ == At::metadata ? At::top : At::end;
    return true;
  }
  bool start_array(std::size_t) override {
    if (at_ == At::shape_begin) at_ = At::shape;
    else if (at_ == At::offsets_begin) at_ = At::offsets;
    else return unexpected("a list");
    return true;
  }
  bool end_array() override {
    at_ = At::entry;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const json::exception&) override {
    file_.fail(fmt::format("the header is no JSON at byte {}, at `{}`", position, shown(token)),
               "The header is one JSON object. Fetch or write the file again.");
  }

 private:
  /// What the next event has to be.
  enum class At : std::uint8_t {
    begin,  ///< the outermost object
    top,    ///< a name
    named,  ///< the object of that name
    entry,  ///< a key of it
    dtype,
    shape_begin,
    shape,
    offsets_begin,
    offsets,
    metadata,  ///< a key
    metadata_value,
    end
  };
  [[noreturn]] void bad(const std::string& what) const {
    file_.fail(
        fmt::format("`{}` {}", shown(entry_.name), what),
        "An array has a name of its own, a `dtype`, a `shape` and two `data_offsets`; metadata are texts. "
        "Write the file again.");
  }
  bool unexpected(const std::string& what) const {
    if (at_ == At::begin)
      file_.fail(fmt::format("the header is {}", what),
                 "The header is one JSON object. Fetch or write the file again.");
    bad(fmt::format("has {} where none may stand", what));
  }

  const FileReader& file_;
  SafetensorsHeader& header_;
  At at_ = At::begin;
  TensorEntry entry_;
  int offsets_ = 0;
  std::string key_;
  std::set<std::string> names_, seen_;
};

// Throws unless every byte after the header belongs to exactly one array.
void check_offsets(const FileReader& file, SafetensorsHeader& header) {
  const std::uint64_t data = file.size() - header.bytes;
  auto& all = header.tensors;
  std::stable_sort(all.begin(), all.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const TensorEntry& e : all) {
    const auto bytes = static_cast<std::uint64_t>(stored_bytes(file, e.name, e.type));
    if (e.begin != at || e.end < e.begin || e.end - e.begin != bytes || e.end > data)
      file.fail(
          fmt::format("`{}` {} has the bytes from {} to {} of {}, where {} from {} are expected",
                      shown(e.name), to_string(e.type), e.begin, e.end, data, bytes, at),
          "The arrays stand one behind another, each as long as its shape says. Fetch or write the file "
          "again.");
    at = e.end;
  }
  if (at != data)
    file.fail(fmt::format("holds {} behind its header, its arrays have {}", count_text(data, "byte"), at),
              "Every byte belongs to an array. Fetch or write the file again.");
}

// A text as JSON. Throws IoError unless it is UTF-8.
std::string quoted(const char* function, const std::string& path, const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    fail(function, path, fmt::format("the text `{}` is not UTF-8", shown(text)),
         "Names and metadata are UTF-8. Write it another way.");
  }
}

}  // namespace

SafetensorsHeader read_safetensors_header(const FileReader& file) {
  constexpr std::uint64_t before = 8;
  if (file.size() < before)
    file.fail(fmt::format("holds {}", count_text(file.size(), "byte")),
              "A safetensors file begins with 8 bytes of a length. Fetch the file again.");
  std::uint64_t length = 0;
  file.read(0, &length, before);
  if (length > most_header_bytes || length > file.size() - before) {
    file.refuse_other_kind("safetensors file", "A safetensors file begins with the length of its header.");
    file.fail(fmt::format("has a header of {} in a file of {}", count_text(length, "byte"), file.size()),
              "The header lies in the file, and has at most 100 MB. Fetch the file again.");
  }
  std::string text(length, '\0');
  file.read(before, text.data(), text.size());
  SafetensorsHeader header;
  header.bytes = before + length;
  HeaderEvents events(file, header);
  json::sax_parse(text, &events);
  check_offsets(file, header);
  return header;
}

void write_safetensors(FileWriter& file, const char* function, const std::string& path,
                       const std::map<std::string, Array>& arrays,
                       const std::map<std::string, std::string>& metadata, const Watch* watch) {
  std::vector<const std::pair<const std::string, Array>*> order;
  order.reserve(arrays.size());
  for (const auto& entry : arrays) order.push_back(&entry);
  // The widest dtypes first, as in the format's own library: so every array is aligned to its elements' size.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return itemsize(type_of(a->second).dtype) > itemsize(type_of(b->second).dtype);
  });
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata)
      text += fmt::format("{}:{},", quoted(function, path, key), quoted(function, path, value));
    text.back() = '}';
    text += ",";
  }
  std::int64_t at = 0;
  for (const auto* entry : order) {
    const Type& t = type_of(entry->second);
    if (entry->first == "__metadata__")
      fail(function, path, "an array has the name `__metadata__`",
           "That name is the format's own. Give it another one.");
    if (!names_of(t.dtype).safetensors)
      fail(function, path, fmt::format("`{}` is {}", shown(entry->first), to_string(t)),
           "The format has no complex dtypes. Write real(x) and imag(x), or use save_npz.");
    const std::int64_t end = at + bytes_of(t.shape, t.dtype);
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},",
                        quoted(function, path, entry->first), names_of(t.dtype).safetensors,
                        fmt::join(t.shape.begin(), t.shape.end(), ","), at, end);
    at = end;
  }
  if (text.back() == ',') text.pop_back();
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > most_header_bytes)
    fail(function, path, fmt::format("the header would have {}", count_text(text.size(), "byte")),
         "It has at most 100 MB. Write several files.");
  std::string length(8, '\0');
  for (std::size_t k = 0; k < 8; k++) length[k] = static_cast<char>(text.size() >> 8 * k & 255);
  file.write(length + text);
  for (const auto* entry : order)
    save_array(entry->second, [&](std::span<const std::byte> bytes) {
      file.write(bytes);
      if (watch != nullptr) (*watch)(entry->first, bytes);
    });
}

}  // namespace shardarray::files
