// Work that all processes do together: it succeeds in all of them or fails in all.
#pragma once
#include <exception>
#include <string>
#include <vector>

#include "runtime/processes.h"
#include "shardarray/detail/path.h"

namespace shardarray {

/// The text that `work` returns for the other processes, or its failure, which is kept for this one.
class Attempt {
 public:
  Attempt() = default;
  Attempt(const char* function, detail::FunctionRef<std::string()> work);
  bool has_failed() const { return failure_ != nullptr; }
  /// The texts of all processes, in their order; `all` null: of this one. A failure in one process is thrown in all: there as it was, in
  /// the others as E (TransportError, IoError). All processes call this in the same order; `what` says for what.
  template <class E> std::vector<std::string> agreed(const std::string& what, Processes* all) const {
    int failed = -1;
    std::vector<std::string> r = said_by_all(what, all, failed);
    if (failed >= 0) throw E(r[static_cast<std::size_t>(failed)]);
    return r;
  }

 private:
  /// Throws this process's failure. `failed`: another process that failed, whose text is its message.
  std::vector<std::string> said_by_all(const std::string& what, Processes* all, int& failed) const;
  std::string said_ = "+";
  std::exception_ptr failure_;
};

}  // namespace shardarray
