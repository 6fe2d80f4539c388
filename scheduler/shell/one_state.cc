#include "scheduler/shell/one_state.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include "base/beneath.h"
#include "base/files.h"
#include "base/planted.h"
#include "base/text.h"
#include "pki/digest.h"

namespace dcs::shell {
namespace {

std::string fresh_mark() {
    std::uint64_t number = 0;
    const Token token = pki::random_token();
    std::memcpy(&number, token.data(), sizeof number);
    return "start-" + hex_of_number(number);
}

}  // namespace

Status mark_as_one_state(const std::string &directory) {
    const Result<Fd> fd = open_directory(AT_FDCWD, directory);
    if (!fd) return fd.status();
    const Result<std::vector<std::string>> names = list_directory(fd->get());
    if (!names) return names.status();
    std::vector<std::string> marks;
    for (const std::string &name : *names)
        if (name.starts_with("start-")) marks.push_back(name);
    if (marks.size() > 1 && !planted("scheduler.mixed_states"))
        return fail(Code::refused,
                    directory + " has the files of two states, one of which was copied over the other (" + marks[0] +
                        ", " + marks[1] +
                        "): sessions that were removed would run again. Move this directory away, and copy the state "
                        "that is to continue into an empty one");
    const std::string fresh = fresh_mark();
    if (marks.empty()) return replace_file(fd->get(), fresh, "");
    const bool renamed = ::renameat(fd->get(), marks[0].c_str(), fd->get(), fresh.c_str()) == 0;
    return renamed ? Status::ok() : fail_errno(Code::io_error, directory + "/" + marks[0], errno);
}

}  // namespace dcs::shell
