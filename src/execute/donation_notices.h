// Warnings about donated arguments whose memory was not reused, where somebody can fix that: for donation by option at once; for a moved
// handle when it turns out to have a name. A temporary ends with its line and causes no warning.
#pragma once
#include <string>
#include <tuple>

#include "shardarray/array.h"

namespace shardarray {

/// Argument `index` of the call of `function` at a line. Owns the file's name: the library that contains it may be unloaded.
struct DonationNotice {
  DonationNotice(const char* of, std::size_t argument, Where where)
      : function(of), index(argument), file(where.file), line(where.line) {}
  const char* function;  ///< never freed
  std::size_t index;
  std::string file;
  int line;
  friend bool operator<(const DonationNotice& a, const DonationNotice& b) {
    const auto key = [](const DonationNotice& n) {
      return std::tuple(n.line, n.index, std::string_view(n.function), std::string_view(n.file));
    };
    return key(a) < key(b);
  }
};

/// Whether this was not printed yet: each call site warns once per argument.
bool is_news(const DonationNotice& n);
/// Prints it, if it is news; `text` contains the line.
void say(const DonationNotice& n, const std::string& text);
/// Prints it if `handle`, the only owner of a donated node, has a name: if another value is assigned to it, or if it still exists when
/// say_of_names() is called at another line. Per thread.
void say_if_named(const DonationNotice& n, const std::string& text, const Array& handle);
/// Prints the notices of handles that outlived their line; `now`: the current line.
void say_of_names(Where now);

}  // namespace shardarray
