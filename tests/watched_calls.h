// Traces the system calls of a child process of this program: one of those that change files fails, or the child is killed there.
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <string>

#include "process_helpers.h"

namespace shardarray::testing {

/// What happens at call `k` of those that change files, between two raise(SIGURG) of the child.
enum class Fate : std::uint8_t { kill, fail };

struct Watched {
  int calls = 0;         ///< that there were, until it ended
  int status = -1;       ///< as of waitpid
  bool is_hit = false;   ///< there was a call k
  bool removes = false;  ///< and it was one that removes something, which may stay where the new one is whole
};

#if defined(__x86_64__)
namespace watched_calls {

inline bool changes_files(std::uint64_t number, std::uint64_t flags_at_3) {
  switch (number) {
    case SYS_openat: return (flags_at_3 & O_CREAT) != 0;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_mkdir:
    case SYS_mkdirat:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_rmdir:
    case SYS_link:
    case SYS_linkat: return true;
    default: return false;
  }
}

/// Or gives what is removed then a name that is nobody's.
inline bool removes(pid_t thread, std::uint64_t number, std::uint64_t second) {
  if (number != SYS_rename) return number == SYS_unlink || number == SYS_unlinkat || number == SYS_rmdir;
  std::string path(512, '\0');
  const std::size_t page = 4096 - second % 4096;  // the next one need not be there
  const iovec here{path.data(), path.size()};
  const iovec there[] = {{reinterpret_cast<void*>(second), page},
                         {reinterpret_cast<void*>(second + page), 512}};
  if (process_vm_readv(thread, &here, 1, there, 2, 0) <= 0) return false;
  path.resize(path.find('\0') == path.npos ? path.size() : path.find('\0'));
  return path.find("/.step_removed") != path.npos;
}

/// Starts a child that waits to be traced and then runs a test case of this program.
inline pid_t start(const std::string& test_case) {
  const std::string program = own_program(), filter = "--test-case=" + test_case;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child > 0) return child;
  raise(SIGSTOP);
  alarm(60);  // of what never ends
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, 1);
  execl(program.c_str(), program.c_str(), "--no-intro", "--no-skip", filter.c_str(), nullptr);
  _exit(127);
}

}  // namespace watched_calls

/// `may_watch`: false if the system forbids tracing.
inline Watched run_watched(const std::string& test_case, Fate fate, int k, bool& may_watch) {
  using namespace watched_calls;
  const pid_t child = start(test_case);
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  Watched r;
  may_watch = ptrace(PTRACE_SEIZE, child, nullptr,
                     PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) == 0;
  if (!may_watch) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return r;
  }
  kill(child, SIGCONT);
  bool is_between = false;
  std::map<pid_t, bool> failing;  // threads whose call is one that fails
  for (;;) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) return r;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread != child) continue;
      r.status = status;
      return r;
    }
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      signal = 0;
      __ptrace_syscall_info info{};
      ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY && is_between &&
          changes_files(info.entry.nr, info.entry.args[2])) {
        if (r.calls++ == k) {
          r.is_hit = true;
          r.removes = removes(thread, info.entry.nr, info.entry.args[1]);
          if (fate == Fate::kill) {
            kill(child, SIGKILL);
            continue;
          }
          user_regs_struct registers{};
          ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
          registers.orig_rax = ~0ull;
          ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
          failing[thread] = true;
        }
      } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && failing.erase(thread) != 0) {
        user_regs_struct registers{};
        ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
        registers.rax = static_cast<unsigned long long>(-EIO);
        ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
      }
    } else if (status >> 16 != 0) {
      signal = 0;  // a new thread, or a stop of all
    } else if (signal == SIGURG) {
      is_between = !is_between;
      signal = 0;
    }
    ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
  }
}
#else
inline Watched run_watched(const std::string&, Fate, int, bool& may_watch) {
  may_watch = false;
  return {};
}
#endif

}  // namespace shardarray::testing
