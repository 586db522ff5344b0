#include "lib/tables/csv_text.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace shardarray::data {

void fail_csv(const char* function, const std::string& path, const std::string& what,
              const char* rule_and_remedy) {
  throw IoError(fmt::format("{}: {}: {}. {}", function, path, what, rule_and_remedy));
}

// zlib passes plain files through.
std::string read_csv_text(const char* function, const std::string& path, std::int64_t max_bytes) {
  errno = 0;
  std::unique_ptr<gzFile_s, decltype(&gzclose_r)> file(gzopen(path.c_str(), "rb"), &gzclose_r);
  if (!file)
    fail_csv(function, path, fmt::format("cannot be opened ({})", std::strerror(errno)),
             "The file must exist and be readable. Check the path.");
  std::string text, part(1 << 16, '\0');
  int got = 0;
  while ((got = gzread(file.get(), part.data(), static_cast<unsigned>(part.size()))) > 0) {
    text.append(part, 0, static_cast<std::size_t>(got));
    if (std::cmp_greater(text.size(), max_bytes))
      fail_csv(function, path, fmt::format("holds more than {} bytes of text", max_bytes),
               "A table that fits into memory is expected, max_bytes says how much at most. Raise it, or "
               "split the file.");
  }
  int code = Z_OK;
  const std::string message = gzerror(file.get(), &code);
  const int closed = gzclose_r(file.release());
  const auto rows = std::count(text.begin(), text.end(), '\n');
  if (got < 0) {
    const std::string why = message.starts_with(path + ": ") ? message.substr(path.size() + 2)
                                                             : message;  // zlib puts the path first
    fail_csv(function, path, fmt::format("is damaged somewhere after row {} ({})", rows, why),
             "It must be a plain or a gzip file. Fetch it again.");
  }
  if (closed != Z_OK)
    fail_csv(function, path, fmt::format("the gzip stream ends in row {}", rows + 1),
             "The file must be complete. Fetch it again.");
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    fail_csv(function, path, "is UTF-16, as its first two bytes say",
             "A table is ASCII or UTF-8. Write it as such, or convert it (iconv -f UTF-16 -t UTF-8).");
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

CsvCursor::CsvCursor(const char* function, const std::string& path, const CsvOptions& options,
                     std::string_view text)
    : function_(function), path_(&path), options_(&options), text_(text) {
  for (std::int64_t k = 0; k < options.skip_rows && at_ < text_.size(); k++) skip_line();
}

void CsvCursor::fail(const std::string& what, const char* rule_and_remedy) const {
  fail_csv(function_, *path_, what, rule_and_remedy);
}

std::string_view CsvCursor::line() const {
  return text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
}
void CsvCursor::skip_line() {
  at_ += line().size() + 1;
  next_row_++;
}

bool CsvCursor::next_row() {
  for (; at_ < text_.size(); skip_line()) {
    const std::string_view all = line();
    // A row of empty fields is no empty line, even if tabs or spaces separate them.
    const bool is_empty =
        std::all_of(all.begin(), all.end(), [&](char c) { return is_space(c) && c != options_->delimiter; });
    const bool is_comment = !options_->comment.empty() && all.starts_with(options_->comment);
    if (is_empty || is_comment) continue;
    row_ = next_row_;
    column_ = 0;
    in_row_ = true;
    return true;
  }
  return false;
}

// at_ is after the opening quote; afterwards it is after the closing one.
std::string_view CsvCursor::quoted_field() {
  const char quote = options_->quote;
  unquoted_.clear();
  bool is_copied = false;
  for (;;) {
    const std::size_t end = text_.find(quote, at_);
    if (end == text_.npos)
      fail(fmt::format("row {}, column {}: the quote that opens is not closed", row_, column_),
           "A field that begins with a quote ends with one. Close it, or say that there are none: .quote = "
           "'\\0'.");
    const std::string_view piece = text_.substr(at_, end - at_);
    next_row_ += std::count(piece.begin(), piece.end(), '\n');
    at_ = end + 1;
    const bool goes_on = at_ < text_.size() && text_[at_] == quote;
    if (goes_on || is_copied) unquoted_ += piece;
    if (!goes_on) return is_copied ? std::string_view(unquoted_) : piece;
    is_copied = true;
    unquoted_ += quote;
    at_++;
  }
}

bool CsvCursor::next_field(std::string_view& field) {
  if (!in_row_) return false;
  column_++;
  const char delimiter = options_->delimiter;
  const auto ends = [&](char c) { return c == delimiter || c == '\n'; };
  const auto skip_spaces = [&] {
    while (at_ < text_.size() && is_space(text_[at_]) && !ends(text_[at_])) at_++;
  };
  skip_spaces();
  if (options_->quote != '\0' && at_ < text_.size() && text_[at_] == options_->quote) {
    at_++;
    field = quoted_field();
    skip_spaces();
    if (at_ < text_.size() && !ends(text_[at_]))
      fail(fmt::format("row {}, column {}: goes on behind the quote that closes it", row_, column_),
           "A quote in a quoted field is written twice. Correct the field, or say that there are no quotes: "
           ".quote = '\\0'.");
  } else {
    const std::size_t first = at_;
    while (at_ < text_.size() && !ends(text_[at_])) at_++;
    field = text_.substr(first, at_ - first);
    while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  }
  in_row_ = at_ < text_.size() && text_[at_] == delimiter;
  if (!in_row_) next_row_++;
  at_++;
  return true;
}

}  // namespace shardarray::data
