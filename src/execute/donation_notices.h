// What is said about arguments that were given away in vain, where somebody can mend it: of an option at once; of a moved handle
// when it turns out to be one with a name. A temporary ends with its line, and nothing is said of it.
#pragma once
#include <string>
#include <tuple>

#include "shardarray/array.h"

namespace shardarray {

/// Argument `index` of the call of `function` at a line. It owns the file's name: the library that has it may be closed.
struct DonationNotice {
  DonationNotice(const char* of, std::size_t argument, Where where)
      : function(of), index(argument), file(where.file), line(where.line) {}
  const char* function;  ///< outlives the process
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

/// Is there something to say that was not said yet? Each call site has one word for each argument.
bool is_news(const DonationNotice& n);
/// Says it; `text` has its line.
void say(const DonationNotice& n, const std::string& text);
/// Says it if `handle`, which holds the only count of a node that was given away, has a name: if another value is assigned to it, or
/// if it still stands when say_of_names() is called at another line. For this thread.
void say_if_named(const DonationNotice& n, const std::string& text, const Array& handle);
/// Of the handles that still stand, at the line `now`.
void say_of_names(Where now);

}  // namespace shardarray
