#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "tsdp/base/error.h"
#include "tsdp/base/text.h"

namespace tsdp::sweep {

Process Process::start(const std::vector<std::string>& command, const std::filesystem::path& out,
                       const std::filesystem::path& log) {
  auto words = command;
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const auto parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw Error(ExitCode::failure, cat(command.front(), ": cannot be started: ", std::strerror(errno)));
  if (child == 0) {  // only calls that are safe between fork and exec
    ::setpgid(0, 0);
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
    const bool ready = ::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && ::getppid() == parent &&
                       ::dup2(::open("/dev/null", O_RDONLY), 0) == 0 &&
                       ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 1) == 1 &&
                       ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), 2) == 2;
    if (ready) ::execv(pointers.front(), pointers.data());
    ::_exit(127);
  }
  return {child};
}

void Process::terminate() const { ::kill(id, SIGTERM); }

std::optional<Ended> next_ended() {
  int status = 0;
  struct rusage usage{};
  const pid_t id = ::wait4(-1, &status, WNOHANG, &usage);
  if (id <= 0) return std::nullopt;
  Ended out;
  out.id = id;
  out.memory = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  out.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return out;
}

Lock::Lock(const std::filesystem::path& folder, bool inherited)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | (inherited ? 0 : O_CLOEXEC))) {
  if (descriptor_ < 0)
    throw Error(ExitCode::failure, cat(folder.string(), ": cannot be opened: ", std::strerror(errno)));
}

Lock::~Lock() { ::close(descriptor_); }

bool Lock::take() const { return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0; }

std::int64_t free_memory() {
  constexpr auto none = std::numeric_limits<std::int64_t>::max();
  auto out = none;
  std::ifstream about("/proc/meminfo");
  for (std::string line; std::getline(about, line);) {
    long long kilobytes = 0;
    const auto parts = split(line, ' ');
    if (parts.front() == "MemAvailable:" && parts.size() > 2 && parse_int(parts[parts.size() - 2], kilobytes))
      out = kilobytes * 1024;
  }
  const auto number = [](const char* file) {
    std::ifstream in(file);
    std::string text;
    long long value = -1;
    in >> text;
    return parse_int(text, value) ? value : -1;
  };
  const auto limit = number("/sys/fs/cgroup/memory.max");  // "max" if there is none
  const auto used = number("/sys/fs/cgroup/memory.current");
  if (limit > 0 && used >= 0) out = std::min<std::int64_t>(out, std::max<std::int64_t>(limit - used, 0));
  return out;
}

}  // namespace tsdp::sweep
