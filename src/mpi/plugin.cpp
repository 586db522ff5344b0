// The entry point that the core library looks up.
#include <pthread.h>

#include <cstdlib>

#include "abi_hash.h"
#include "mpi/progress.h"
#include "runtime/processes.h"
#include "shardarray/error.h"

namespace shardarray::mpi {
namespace {

class MpiRun final : public TransportRun {
 public:
  MpiRun(Progress& progress, std::shared_ptr<const SharedRun> run)
      : progress_(progress), run_(std::move(run)) {}
  ~MpiRun() override { progress_.leave(run_); }
  void post(const Parcel& parcel, LateEnd ended) override { progress_.ask(run_, true, parcel, ended); }
  void complete(const Parcel& parcel, LateEnd ended) override { progress_.ask(run_, false, parcel, ended); }
  void advance() noexcept override { progress_.advance(); }
  void look() override { progress_.need_link(); }
  void fail(const std::exception_ptr& why) noexcept override {
    try {
      std::rethrow_exception(why);
    } catch (const Error& e) { progress_.fail(e.text()); } catch (const std::exception& e) {
      progress_.fail(e.what());
    } catch (...) { progress_.fail("an exception of an unknown type"); }
  }

 private:
  Progress& progress_;
  std::shared_ptr<const SharedRun> run_;
};

class MpiProcesses final : public Processes, public Transport {
 public:
  explicit MpiProcesses(int count) : progress_(count) {}
  int index() const override { return progress_.index(); }
  int count() const override { return progress_.count(); }
  std::vector<std::string> all_gather(const std::string& what, const std::string& mine) override {
    return progress_.all_gather(what, mine);
  }
  Transport& transport() override { return *this; }
  std::unique_ptr<TransportRun> begin(std::span<const int> peers,
                                      std::shared_ptr<const Fingerprint> fingerprint,
                                      std::uint64_t numbers) override {
    return std::make_unique<MpiRun>(progress_, progress_.begin(peers, std::move(fingerprint), numbers));
  }
  void end() { progress_.end(); }
  void forget() { progress_.forget(); }

 private:
  Progress progress_;
};

MpiProcesses* joined = nullptr;

Processes* join(int count) {
  joined = new MpiProcesses(count);  // never destroyed
  std::atexit([] { joined->end(); });
  pthread_atfork(nullptr, nullptr, [] { joined->forget(); });
  return joined;
}

}  // namespace
}  // namespace shardarray::mpi

extern "C" __attribute__((visibility("default"))) const shardarray::ProcessesPlugin shardarray_plugin;
const shardarray::ProcessesPlugin shardarray_plugin = {{SHARDARRAY_ABI_HASH, SHARDARRAY_PLUGIN_VERSION},
                                                       shardarray::mpi::join};
