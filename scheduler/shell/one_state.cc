#include "scheduler/shell/one_state.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/beneath.h"
#include "base/files.h"
#include "base/planted.h"
#include "base/text.h"
#include "pki/digest.h"
#include "store/names.h"

namespace dcs::shell {
namespace {

std::string fresh_name() {
    std::uint64_t number = 0;
    const Token token = pki::random_token();
    std::memcpy(&number, token.data(), sizeof number);
    return "start-" + hex_of_number(number);
}

bool has_files(int directory, const char *name) {
    const Result<Fd> fd = open_directory(directory, name);
    const auto names = fd ? list_directory(fd->get(), 1) : Result<std::vector<std::string>>(fd.status());
    return names && !names->empty();
}

// A first start that was killed has made an authority, perhaps, and no store.
bool has_served(int directory, const std::vector<std::string> &marks) {
    if (marks.empty()) return has_files(directory, "pki");
    struct stat st {};
    return ::fstatat(directory, marks[0].c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0;
}

Result<std::vector<std::string>> marks_in(int directory) {
    Result<std::vector<std::string>> names = list_directory(directory);
    if (names) std::erase_if(*names, [](const std::string &name) { return !name.starts_with("start-"); });
    return names;
}

// The one mark there, if any, gets the fresh name.
Result<Fd> renew(int fd, const std::string &directory, const std::vector<std::string> &marks,
                 const std::string &fresh) {
    if (!marks.empty() && ::renameat(fd, marks[0].c_str(), fd, fresh.c_str()) != 0)
        return fail_errno(Code::io_error, directory + "/" + marks[0], errno);
    Fd mark(::openat(fd, fresh.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!mark) return fail_errno(Code::io_error, directory + "/" + fresh, errno);
    return mark;
}

Status one_state(const std::string &directory, const std::vector<std::string> &marks) {
    if (marks.size() < 2 || planted("scheduler.mixed_states")) return Status::ok();
    return fail(Code::refused,
                directory + " has the files of two states, one of which was copied over the other (" + marks[0] + ", " +
                    marks[1] +
                    "): sessions that were removed would run again. Move this directory away, and copy the state "
                    "that is to continue into an empty one");
}

Status sound(int fd, const std::string &directory, const std::vector<std::string> &marks) {
    if (Status s = one_state(directory, marks); !s) return s;
    const Result<Fd> state = open_directory(fd, "state/.");  // also by a link
    const auto inside = state ? marks_in(state->get()) : Result<std::vector<std::string>>(state.status());
    if (!inside) return inside.status();
    if (Status s = one_state(directory + "/state", *inside); !s) return s;
    const bool has_store = file_exists(fd, std::string("state/") + store::format_file);
    if (has_store || !has_served(fd, marks) || planted("scheduler.empty_state")) return Status::ok();
    return fail(Code::refused,
                directory +
                    "/state is empty, but this directory has served a pool, whose hosts would end their "
                    "grains. Mount or restore it, or let `dcs backup promote` make the backup's copy the "
                    "store; a new pool begins in an empty directory");
}

}  // namespace

Result<Mark> take_state(const std::string &directory) {
    const Result<Fd> fd = open_directory(AT_FDCWD, directory);
    if (!fd) return fd.status();
    const Result<std::vector<std::string>> marks = marks_in(fd->get());
    if (!marks) return marks.status();
    if (Status s = sound(fd->get(), directory, *marks); !s) return s;
    const std::string fresh = fresh_name();
    Result<Fd> file = renew(fd->get(), directory, *marks, fresh);
    if (!file) return file.status();
    return Mark{std::move(*file), fresh};
}

Status note_store(const Mark &mark, const std::string &state) {
    const Result<Fd> fd = open_directory(AT_FDCWD, state + "/.");
    if (!fd) return fd.status();
    const Result<std::vector<std::string>> marks = marks_in(fd->get());
    if (!marks) return marks.status();
    if (const auto inside = renew(fd->get(), state, *marks, mark.name); !inside) return inside.status();
    return pwrite_all(mark.file.get(), "a store was here\n", 0) ? Status::ok()
                                                                : fail_errno(Code::io_error, "start-", errno);
}

}  // namespace dcs::shell
