// The MPI calls of this plug-in, made by one thread at a time: join, non-blocking send and receive, leave.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardarray::mpi {

/// Bytes in flight; complete when test() says so.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool test() = 0;
  /// The transfer may end without its bytes; test() says when.
  virtual void cancel() = 0;
};
using TransferRef = std::unique_ptr<Transfer>;

/// Short texts between processes, on their own communicator.
struct Note {
  int peer = 0;
  std::string text;
};

class Link {
 public:
  /// Joins. Throws DeviceError.
  Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();
  int index() const { return index_; }
  int count() const { return count_; }
  /// The number of tags for boxes, from 0.
  std::uint64_t most_tags() const { return most_tags_; }
  /// Bytes with the same tag arrive in the order they were sent. `bytes` is at most most_bytes.
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;
  TransferRef send(int peer, std::uint64_t tag, const void* from, std::size_t bytes);
  TransferRef receive(int peer, std::uint64_t tag, void* to, std::size_t bytes);
  /// At most 4,000 bytes of text.
  void post(int peer, const std::string& text);
  /// The next note that has arrived.
  bool next(Note& note);
  /// Whether all posted notes have been sent.
  bool notes_are_gone();
  /// Gathers what every process gives: sizes first, then the bytes.
  TransferRef gather(std::size_t bytes, void* all);  // equal sizes; this process's own is already in place
  TransferRef gather(const void* mine, std::size_t bytes, void* all, const std::vector<int>& sizes,
                     const std::vector<int>& offsets);
  /// Ends all processes, including this one, with this status.
  [[noreturn]] void abort(int status);

 private:
  struct Handles;
  std::unique_ptr<Handles> h_;
  int index_ = 0, count_ = 1;
  std::uint64_t most_tags_ = 0;
};

}  // namespace shardarray::mpi
