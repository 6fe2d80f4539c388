#include "grainserver/shell/paths.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/beneath.h"

namespace dcs::server {
namespace {
// Opens a component of a path that other processes may change.
Result<Fd> open_folder(const Fd &in, const std::string &name) {
    Fd fd(open_beneath(in.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    if (!fd) return file_error(name, errno);
    return fd;
}
}  // namespace

Result<Fd> enter_folders(const Fd &work, const std::string &name, bool make, std::string &last) {
    Result<Fd> here = open_directory(work.get(), ".");
    for (std::size_t from = 0; here;) {
        const std::size_t slash = name.find('/', from);
        const std::string part = name.substr(from, slash == std::string::npos ? slash : slash - from);
        if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
            return fail(Code::invalid, "\"" + name + "\" is not the name of a file below the working directory");
        if (slash == std::string::npos) {
            last = part;
            return here;
        }
        if (make && ::mkdirat(here->get(), part.c_str(), 0755) != 0 && errno != EEXIST) return file_error(name, errno);
        here = open_folder(*here, part);
        from = slash + 1;
    }
    return here.status();
}

}  // namespace dcs::server
