// Tables as text files.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/count_text.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "lib/files/arrays.h"
#include "lib/files/file_writer.h"
#include "lib/tables/csv_numbers.h"
#include "ops/api.h"
#include "shardarray/data.h"
#include "shardarray/math.h"

namespace shardarray::data {

namespace {

constexpr std::size_t enough = 1 << 20;  // bytes of text per write

std::string quoted(const std::string& name, char delimiter) {
  const auto is_special = [&](char c) { return c == delimiter || c == '"' || c == '\n' || c == '\r'; };
  const bool is_plain = !name.empty() && name.front() != ' ' && name.front() != '\t' && name.back() != ' ' &&
                        name.back() != '\t' && std::none_of(name.begin(), name.end(), is_special);
  if (is_plain) return name;
  std::string r = "\"";
  for (const char c : name) r += c == '"' ? std::string("\"\"") : std::string(1, c);
  return r + '"';
}

std::string header_line(const std::vector<std::string>& names, char delimiter) {
  std::string r;
  for (std::size_t k = 0; k < names.size(); k++) {
    if (k > 0) r += delimiter;
    r += quoted(names[k], delimiter);
  }
  return r + '\n';
}

void check_delimiter(const char* function, char delimiter) {
  // A character that numbers may contain would be read as a part of them.
  const bool is_bad = delimiter == '\n' || delimiter == '\r' || delimiter == '"' || delimiter == '\0' ||
                      delimiter == '.' || delimiter == '-' || delimiter == '+' ||
                      (delimiter >= '0' && delimiter <= '9') || (delimiter >= 'a' && delimiter <= 'z');
  if (is_bad)
    throw Error(fmt::format(
        "{}: the delimiter is `{}`. It is a character that no number has, and no quote. Take `,`, "
        "`;` or a tab.",
        function, files::shown({&delimiter, 1})));
}

// 16-bit floats become float32 of the same value.
Array readable(const Array& x, const char* function) {
  return itemsize(type_of(x, function).dtype) == 2 && is_floating(x.dtype()) ? x.astype(DType::float32) : x;
}

}  // namespace

void save_csv(const std::string& path, const Array& x, const SaveCsvOptions& o, Where w) {
  constexpr const char* function = "data::save_csv";
  const Site site(w, function);
  shardarray::detail::with_memory(function, 0, [&] {
    check_delimiter(function, o.delimiter);
    const Type& t = type_of(x, function);
    api::need_real(function, x);
    const std::int64_t columns = t.shape.size() == 2 ? t.shape[1] : 1;
    const bool fits = o.header.empty() || std::cmp_equal(o.header.size(), columns);
    if (t.shape.empty() || t.shape.size() > 2 || columns == 0 || !fits)
      throw ShapeError(
          fmt::format("{}: {} with {}. A table is [rows, columns] or [rows], with at least one column, and "
                      "has a name for each column or none at all. Reshape it, or correct `header`.",
                      function, to_string(t), count_text(o.header.size(), "name")));
    const Array values = readable(x, function);
    evaluate({&values, 1}, function);
    files::FileWriter file(function, path);
    std::string text = o.header.empty() ? "" : header_line(o.header, o.delimiter);
    const DType dtype = values.dtype();
    std::int64_t column = 0;
    files::save_array(values, [&](std::span<const std::byte> bytes) {
      for (std::size_t k = 0; k < bytes.size(); k += itemsize(dtype)) {
        append_number(text, dtype, bytes.data() + k);
        column = (column + 1) % columns;
        text += column == 0 ? '\n' : o.delimiter;
      }
      file.write(text);
      text.clear();
    });
    file.write(text);
    file.commit(false);
  });
}

void save_table(const std::string& path, const Table& table, const SaveCsvOptions& o, Where w) {
  constexpr const char* function = "data::save_table";
  const Site site(w, function);
  shardarray::detail::with_memory(function, 0, [&] {
    check_delimiter(function, o.delimiter);
    if (!o.header.empty())
      throw Error(fmt::format("{}: `header` names {}. A table has its own names. Change `names` of it.",
                              function, count_text(o.header.size(), "column")));
    const std::size_t n = table.columns.size();
    bool fits = n > 0 && table.names.size() == n;
    std::string shapes;
    for (const Array& c : table.columns) {
      const Shape& shape = type_of(c, function).shape;
      api::need_real(function, c);
      fits = fits && shape.size() == 1 && shape == table.columns[0].shape();
      if (shapes.size() < 200) shapes += (shapes.empty() ? "" : ", ") + to_string(type_of(c));
    }
    if (!fits)
      throw ShapeError(
          fmt::format("{}: {} for the columns {}. Every column is [rows], all of one length, with a name "
                      "each. Correct the table.",
                      function, count_text(table.names.size(), "name"), shapes.empty() ? "(none)" : shapes));
    std::vector<Array> columns;
    columns.reserve(table.columns.size());
    for (const Array& c : table.columns) columns.push_back(readable(c, function));
    evaluate(columns, function);
    std::vector<std::vector<std::byte>> bytes;
    bytes.reserve(columns.size());
    for (const Array& c : columns) bytes.push_back(host_elements(c, function));
    files::FileWriter file(function, path);
    std::string text = header_line(table.names, o.delimiter);
    const auto rows = static_cast<std::size_t>(columns[0].shape()[0]);
    for (std::size_t row = 0; row < rows; row++) {
      for (std::size_t k = 0; k < n; k++) {
        const DType t = columns[k].dtype();
        append_number(text, t, bytes[k].data() + row * itemsize(t));
        text += k + 1 < n ? o.delimiter : '\n';
      }
      if (text.size() < enough) continue;
      file.write(text);
      text.clear();
    }
    file.write(text);
    file.commit(false);
  });
}

}  // namespace shardarray::data
