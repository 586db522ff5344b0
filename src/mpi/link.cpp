#include "mpi/link.h"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <list>
#include <thread>

#include "shardarray/error.h"

namespace shardarray::mpi {

namespace {

constexpr int note_bytes = 4096;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw TransportError(fmt::format(
      "mpi: {} failed: {}. Processes talk by MPI, which does not work here any more. Start them again.", call,
      std::string_view(text, static_cast<std::size_t>(length))));
}

class OneRequest final : public Transfer {
 public:
  ~OneRequest() override {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  bool test() override {
    int done = 0;
    check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  void cancel() override {
    if (request_ != MPI_REQUEST_NULL) MPI_Cancel(&request_);
  }
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

struct Link::Handles {
  MPI_Comm data = MPI_COMM_NULL, notes = MPI_COMM_NULL, gathers = MPI_COMM_NULL;
  bool owns_mpi = false;  // else the program initialized MPI, and finalizes it
  MPI_Request incoming = MPI_REQUEST_NULL;
  char buffer[note_bytes] = {};
  struct Outgoing {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::list<Outgoing> outgoing;

  void listen() {
    check(MPI_Irecv(buffer, note_bytes, MPI_BYTE, MPI_ANY_SOURCE, 0, notes, &incoming), "MPI_Irecv");
  }
};

Link::Link() : h_(std::make_unique<Handles>()) {
  int there = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&there);
  if (there != 0) {
    MPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
      throw DeviceError(
          "processes: the program has started MPI for one thread at a time. The library has a thread of its "
          "own for it. Start it by MPI_Init_thread with MPI_THREAD_MULTIPLE, or leave that to the library.");
  } else {
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_SERIALIZED)
      throw DeviceError("processes: MPI_Init_thread failed. Start the program by the launcher of this MPI.");
    h_->owns_mpi = true;
  }
  for (MPI_Comm* const comm : {&h_->data, &h_->notes, &h_->gathers}) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(h_->data, &index_);
  MPI_Comm_size(h_->data, &count_);
  void* bound = nullptr;
  int known = 0;
  MPI_Comm_get_attr(h_->data, MPI_TAG_UB, static_cast<void*>(&bound), &known);
  most_tags_ = known != 0 ? static_cast<std::uint64_t>(*static_cast<int*>(bound)) : 32767;
  h_->listen();
}

Link::~Link() {
  if (h_->incoming != MPI_REQUEST_NULL) {
    MPI_Cancel(&h_->incoming);
    MPI_Wait(&h_->incoming, MPI_STATUS_IGNORE);
  }
  if (h_->owns_mpi) MPI_Finalize();
}

TransferRef Link::send(int peer, std::uint64_t tag, const void* from, std::size_t bytes) {
  auto r = std::make_unique<OneRequest>();
  check(
      MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(tag), h_->data, &r->request_),
      "MPI_Isend");
  return r;
}

TransferRef Link::receive(int peer, std::uint64_t tag, void* to, std::size_t bytes) {
  auto r = std::make_unique<OneRequest>();
  check(MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, peer, static_cast<int>(tag), h_->data, &r->request_),
        "MPI_Irecv");
  return r;
}

void Link::post(int peer, const std::string& text) {
  h_->outgoing.push_back({text.substr(0, note_bytes), MPI_REQUEST_NULL});
  Handles::Outgoing& o = h_->outgoing.back();
  check(MPI_Isend(o.text.data(), static_cast<int>(o.text.size()), MPI_BYTE, peer, 0, h_->notes, &o.request),
        "MPI_Isend");
}

bool Link::next(Note& note) {
  int done = 0;
  MPI_Status status;
  check(MPI_Test(&h_->incoming, &done, &status), "MPI_Test");
  if (done == 0) return false;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  note = {status.MPI_SOURCE, std::string(h_->buffer, static_cast<std::size_t>(bytes))};
  h_->listen();
  return true;
}

bool Link::notes_are_gone() {
  std::erase_if(h_->outgoing, [](Handles::Outgoing& o) {
    int done = 0;
    check(MPI_Test(&o.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  });
  return h_->outgoing.empty();
}

TransferRef Link::gather(std::size_t bytes, void* all) {
  auto r = std::make_unique<OneRequest>();
  check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, all, static_cast<int>(bytes), MPI_BYTE, h_->gathers,
                       &r->request_),
        "MPI_Iallgather");
  return r;
}
TransferRef Link::gather(const void* mine, std::size_t bytes, void* all, const std::vector<int>& sizes,
                         const std::vector<int>& offsets) {
  auto r = std::make_unique<OneRequest>();
  check(MPI_Iallgatherv(mine, static_cast<int>(bytes), MPI_BYTE, all, sizes.data(), offsets.data(), MPI_BYTE,
                        h_->gathers, &r->request_),
        "MPI_Iallgatherv");
  return r;
}

void Link::abort(int status) {
  // MPI_Abort may block on a peer that is gone.
  std::thread([status] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    _exit(status);
  }).detach();
  MPI_Abort(MPI_COMM_WORLD, status);
  _exit(status);
}

}  // namespace shardarray::mpi
