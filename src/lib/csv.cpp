// Tables of numbers from text files.
#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "shardarray/data.h"
#include "shardarray/placement.h"

namespace shardarray::data {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, const char* rule_and_remedy) {
  throw IoError(fmt::format("data::load_csv: {}: {}. {}", path, what, rule_and_remedy));
}

// The whole text; zlib passes plain files through.
std::string read_text(const std::string& path, std::int64_t max_bytes) {
  errno = 0;
  std::unique_ptr<gzFile_s, decltype(&gzclose_r)> file(gzopen(path.c_str(), "rb"), &gzclose_r);
  if (!file)
    fail(path, fmt::format("cannot be opened ({})", std::strerror(errno)),
         "The file must exist and be readable. Check the path.");
  std::string text, part(1 << 16, '\0');
  int got = 0;
  while ((got = gzread(file.get(), part.data(), static_cast<unsigned>(part.size()))) > 0) {
    text.append(part, 0, static_cast<std::size_t>(got));
    if (std::cmp_greater(text.size(), max_bytes))
      fail(path, fmt::format("holds more than {} bytes of text", max_bytes),
           "A table that fits into memory is expected, max_bytes says how much at most. Raise it, or split "
           "the "
           "file.");
  }
  int code = Z_OK;
  const std::string message = gzerror(file.get(), &code);
  const int closed = gzclose_r(file.release());
  const auto rows = std::count(text.begin(), text.end(), '\n');
  if (got < 0) {
    const std::string why = message.starts_with(path + ": ") ? message.substr(path.size() + 2)
                                                             : message;  // zlib puts the path first
    fail(path, fmt::format("is damaged somewhere after row {} ({})", rows, why),
         "It must be a plain or a gzip file. Fetch it again.");
  }
  if (closed != Z_OK)
    fail(path, fmt::format("the gzip stream ends in row {}", rows + 1),
         "The file must be complete. Fetch it again.");
  return text;
}

std::string_view trimmed(std::string_view s) {
  const std::size_t first = s.find_first_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view()
                                         : s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

// A number that from_chars finds out of range without saying on which side: the power of ten of its first digit does.
float beyond_float32(std::string_view s) {
  const std::size_t e = std::min(s.find_first_of("eE"), s.size());
  std::int64_t power = 0;
  if (e < s.size()) {
    const bool minus = s[e + 1] == '-';
    const char* const digits = s.data() + e + (minus || s[e + 1] == '+' ? 2 : 1);
    if (std::from_chars(digits, s.data() + s.size(), power).ec != std::errc()) power = std::int64_t{1} << 60;
    if (minus) power = -power;
  }
  const std::size_t point = std::min(s.find('.'), e), first = s.find_first_of("123456789");
  power += static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  const float magnitude = power > 0 ? std::numeric_limits<float>::infinity() : 0;
  return s[0] == '-' ? -magnitude : magnitude;
}

// Appends the numbers of one line; returns how many there are.
std::int64_t parse_row(std::string_view line, const std::string& path, std::int64_t row,
                       std::vector<float>& values) {
  std::int64_t column = 0;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    const std::string_view field = trimmed(line.substr(at, comma - at));
    column++;
    float v = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), v);
    if (error == std::errc::result_out_of_range) v = beyond_float32(field);
    const bool is_number = error == std::errc() || error == std::errc::result_out_of_range;
    if (!is_number || end != field.data() + field.size())
      fail(path,
           fmt::format("row {}, column {}: `{}` is no float32 number", row, column, field.substr(0, 40)),
           "Every field is a number. Remove headers and text columns.");
    values.push_back(v);
    at = comma + 1;
  }
  return column;
}

}  // namespace

static Array parsed_table(const std::string& path, std::int64_t max_bytes, Where w) {
  const std::string text = read_text(path, max_bytes);
  std::vector<float> values;
  std::int64_t row = 0, rows = 0, columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    row++;
    if (line.empty()) continue;
    const std::int64_t n = parse_row(line, path, row, values);
    if (rows++ == 0) columns = n;
    if (n != columns)
      fail(path, fmt::format("row {}: has {} columns, the first row {}", row, n, columns),
           "All rows have the same length. Correct the row.");
  }
  if (rows == 0) fail(path, "row 1: there is none", "A table has at least one row. Check the file.");
  return core::make_array(values.data(), DType::float32, {rows, columns}, w);
}

Array load_csv(const std::string& path, const CsvOptions& o, Where w) {
  const Site site(w);
  return shardarray::detail::with_memory("data::load_csv", 0,
                                         [&] { return parsed_table(path, o.max_bytes, w); });
}

}  // namespace shardarray::data
