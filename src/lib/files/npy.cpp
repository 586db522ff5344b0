#include "lib/files/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/count_text.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "lib/files/file_writer.h"
#include "shardarray/files.h"

namespace shardarray::files {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
// Headers of simple dtypes have 128 bytes; much longer ones describe structs, which arrays do not have.
constexpr std::uint32_t most_npy_header = 1 << 16;

/// The header's text: a Python dict of three entries, in any order and with any spaces.
class NpyText {
 public:
  NpyText(const FileReader& file, std::string prefix, std::string_view text)
      : file_(file), prefix_(std::move(prefix)), text_(text) {}

  NpyHeader parse() {
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3 || seen[which])
        bad(fmt::format("has {} entry `{}`", which == 3 ? "an unknown" : "a second", shown(key)));
      seen[which] = true;
      if (which == 0) dtype(string());
      if (which == 1) header_.order.fortran = boolean();
      if (which == 2) shape();
      if (!accept(',') && !peek('}')) bad(fmt::format("goes on with `{}`", shown(text_.substr(at_))));
    }
    skip();
    if (at_ != text_.size()) bad(fmt::format("goes on with `{}`", shown(text_.substr(at_))));
    if (!seen[0] || !seen[1] || !seen[2]) bad("lacks an entry");
    return header_;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    file_.fail(fmt::format("{}the header {}", prefix_, what),
               "It is a dict of `descr`, `fortran_order` and `shape`. Write the file again with numpy.save.");
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) at_++;
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) { return peek(c) && ++at_; }
  void expect(char c) {
    if (!accept(c))
      bad(at_ == text_.size()
              ? fmt::format("ends where a `{}` is expected", c)
              : fmt::format("has `{}` where a `{}` is expected", shown(text_.substr(at_)), c));
  }
  std::string_view string() {
    const char quote = peek('"') ? '"' : '\'';
    if (peek('[')) unsupported(text_.substr(at_));
    expect(quote);
    const std::size_t end = text_.find(quote, at_);
    if (end == text_.npos) bad("has a text without an end");
    const std::string_view r = text_.substr(at_, end - at_);
    at_ = end + 1;
    return r;
  }
  bool boolean() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    bad(fmt::format("has the fortran_order `{}`", shown(text_.substr(at_))));
  }
  void shape() {
    expect('(');
    while (!accept(')')) {
      skip();
      std::int64_t n = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error != std::errc() || n < 0) bad(fmt::format("has a size `{}`", shown(text_.substr(at_))));
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // as Python 2 wrote them
      header_.type.shape.push_back(n);
      if (header_.type.shape.size() > most_dimensions) bad("has a shape of more than 32 dimensions");
      if (!accept(',') && !peek(')')) bad(fmt::format("has a size `{}`", shown(text_.substr(at_))));
    }
  }
  void dtype(std::string_view descr) {
    std::string_view kind = descr;
    char order = '|';
    if (!kind.empty() && std::string_view("<>|=").find(kind[0]) != kind.npos) {
      order = kind[0];
      kind.remove_prefix(1);
    }
    for (const DTypeNames& n : dtype_names())
      if (kind == n.npy) {
        header_.type.dtype = n.dtype;
        header_.order.swapped = order == '>' && kind[0] != 'V' && itemsize(n.dtype) > 1;
        return;
      }
    unsupported(descr);
  }
  [[noreturn]] void unsupported(std::string_view descr) const {
    file_.fail(fmt::format("{}the dtype is `{}`", prefix_, shown(descr)),
               "Arrays are of bool, integers of 1 to 8 bytes, floats of 2 to 8 bytes, complex numbers of 8 "
               "or 16, or `<V2` (bfloat16). Convert it in Python with astype.");
  }

  const FileReader& file_;
  std::string prefix_;
  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

std::string prefix_of(const std::string& name) {
  return name.empty() ? "" : fmt::format("`{}`: ", shown(name));
}

}  // namespace

NpyHeader read_npy_header(const FileReader& file, const std::string& name, std::uint64_t size, Fill fill) {
  const std::string prefix = prefix_of(name);
  const auto demand = [&](std::uint64_t bytes) {
    if (size < bytes)
      file.fail(fmt::format("{}holds {}, the header needs {}", prefix, count_text(size, "byte"), bytes),
                "A .npy file begins with its header. Fetch the file again.");
  };
  unsigned char start[12];
  demand(10);
  fill(std::as_writable_bytes(std::span(start, 10)));
  if (std::memcmp(start, magic.data(), magic.size()) != 0) {
    if (name.empty()) file.refuse_other_kind(".npy file", "A .npy file begins with `\\x93NUMPY`.");
    file.fail(fmt::format("{}begins with `{}`", prefix,
                          shown({reinterpret_cast<const char*>(start), magic.size()})),
              "A .npy file begins with `\\x93NUMPY`. Check which kind of file it is.");
  }
  const unsigned major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0)
    file.fail(fmt::format("{}is of version {}.{} of the format", prefix, major, minor),
              "There are versions 1.0, 2.0 and 3.0. Check the file.");
  std::uint32_t length = start[8] | std::uint32_t{start[9]} << 8;
  std::uint64_t begin = 10;
  if (major > 1) {
    begin = 12;
    demand(begin);
    fill(std::as_writable_bytes(std::span(start + 10, 2)));
    length |= std::uint32_t{start[10]} << 16 | std::uint32_t{start[11]} << 24;
  }
  if (length > most_npy_header)
    file.fail(fmt::format("{}has a header of {}", prefix, count_text(length, "byte")),
              "Headers of arrays of numbers have some hundred bytes. Check the file.");
  demand(begin + length);
  std::string text(length, '\0');
  fill(std::as_writable_bytes(std::span(text)));
  NpyHeader r = NpyText(file, prefix, text).parse();
  r.bytes = begin + length;
  const auto wanted = r.bytes + static_cast<std::uint64_t>(stored_bytes(file, name, r.type));
  if (size != wanted)
    file.fail(fmt::format("{}holds {}, its header and {} are {}", prefix, count_text(size, "byte"),
                          to_string(r.type), wanted),
              "One array is expected, all of it. Fetch or write the file again.");
  return r;
}

std::string npy_header(const Type& t) {
  std::string shape;
  for (const std::int64_t n : t.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", n);
  if (t.shape.size() == 1) shape += ",";
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 itemsize(t.dtype) == 1 ? "|" : "<", names_of(t.dtype).npy, shape);
  const std::size_t start = magic.size() + 4, whole = (start + text.size() + 1 + 63) / 64 * 64;
  text.resize(whole - start - 1, ' ');  // the elements begin at a multiple of 64
  text += '\n';
  std::string header(magic);
  header += {'\1', '\0', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace shardarray::files

namespace shardarray {

Array load_npy(const std::string& path, const std::optional<Sharding>& sharding, Where w) {
  const Site site(w, "load_npy");
  return detail::with_memory("load_npy", 0, [&] {
    const files::FileReader file("load_npy", path);
    std::uint64_t at = 0;
    const auto next = [&](std::span<std::byte> to) {
      file.read(at, to.data(), to.size());
      at += to.size();
    };
    const files::NpyHeader header = files::read_npy_header(file, "", file.size(), next);
    return files::load_array(header.type, files::home_of("load_npy", sharding, header.type, ""), header.order,
                             file, at);
  });
}

void save_npy(const std::string& path, const Array& x, Where w) {
  const Site site(w, "save_npy");
  detail::with_memory("save_npy", 0, [&] {
    const Type& t = type_of(x, "save_npy");
    evaluate({&x, 1}, "save_npy");
    files::FileWriter file("save_npy", path);
    file.write(files::npy_header(t));
    files::save_array(x, [&](std::span<const std::byte> bytes) { file.write(bytes); });
    file.commit(false);
  });
}

}  // namespace shardarray
