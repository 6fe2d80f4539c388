#include "grainserver/files/program_file.h"

#include <cerrno>
#include <optional>

#include <sys/stat.h>

#include "base/beneath.h"

namespace dcs::files {

Result<Fd> open_program(const std::string &path, const Account &account) {
    std::optional<ActAs> user;
    if (account.change) user.emplace(account.uid, account.gid);
    Fd file(open_regular(path.c_str()));
    const int error = errno;
    user.reset();
    struct stat st {};
    if (!file) return file_error(path, error);
    if (::fstat(file.get(), &st) != 0) return file_error(path, errno);
    if ((st.st_mode & 0111) == 0) return fail(Code::refused, path + " is not a program");
    return file;
}

}  // namespace dcs::files
