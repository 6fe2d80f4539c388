#include "scheduler/shell/suspect.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "scheduler/record/paths.h"

namespace dcs::shell {
namespace {

constexpr std::size_t name_bytes = 256;
constexpr std::uint32_t aborts_to_blame = 2;
constexpr int fatal_signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

volatile std::uint32_t *aborted = nullptr;  // in the page, for the handler

void note_abort(int signal) {
    if (aborted) *aborted = 1;
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

void copy_name(char *to, const std::string &name) {
    const std::size_t length = std::min(name.size(), name_bytes - 1);
    std::memcpy(to, name.data(), length);
    to[length] = '\0';
}

std::string name_in(const char *field) { return std::string(field, ::strnlen(field, name_bytes - 1)); }

}  // namespace

std::string session_text(const SessionKey &session) { return session.user.empty() ? std::string() : to_text(session); }

std::optional<SessionKey> session_of(const std::string &text) {
    const std::size_t slash = text.rfind('/');
    if (slash == std::string::npos || slash == 0) return {};
    const auto number = record::number_of(text.substr(slash + 1));
    if (!number) return {};
    return SessionKey{text.substr(0, slash), *number};
}

struct Suspect::Page {
    std::uint32_t aborted;  // the process that had this page mapped did
    std::uint32_t times;    // aborts running while working on `last`
    char now[name_bytes];
    char last[name_bytes];
};

Result<std::unique_ptr<Suspect>> Suspect::open(const std::string &path) {
    const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return fail_errno(Code::io_error, "cannot open " + path, errno);
    // Its blocks are taken now: on a full disk a store into a hole would end the process.
    const int no_room = ::posix_fallocate(fd.get(), 0, sizeof(Page));
    void *mapped =
        no_room != 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (mapped == MAP_FAILED) return fail_errno(Code::io_error, "cannot map " + path, no_room != 0 ? no_room : errno);
    std::unique_ptr<Suspect> suspect(new Suspect(static_cast<Page *>(mapped)));
    Page &page = *suspect->page_;
    if (page.aborted != 0) {
        const bool again = page.now[0] != '\0' && name_in(page.now) == name_in(page.last);
        page.times = again ? page.times + 1 : 1;
        copy_name(page.last, name_in(page.now));
        if (page.times >= aborts_to_blame) {
            suspect->culprit_ = name_in(page.last);
            page.times = 0;
        }
    }
    page.aborted = 0;
    page.now[0] = '\0';
    aborted = &page.aborted;
    for (const int signal : fatal_signals) ::signal(signal, note_abort);
    return suspect;
}

Suspect::~Suspect() {
    for (const int signal : fatal_signals) ::signal(signal, SIG_DFL);
    aborted = nullptr;
    ::munmap(page_, sizeof(Page));
}

std::string Suspect::culprit() { return std::exchange(culprit_, {}); }

void Suspect::working_on(const std::string &entity) { copy_name(page_->now, entity); }

}  // namespace dcs::shell
