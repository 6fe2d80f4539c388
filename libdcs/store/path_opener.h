#pragma once
// Opens files below one directory only: follows no symbolic link and no "..".
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace dcs::store {

Code code_of(int error);

class PathOpener {
public:
    // `one_call`: opens whole paths at once if the kernel can (openat2), else component by component.
    PathOpener(Fd root, std::string directory, bool one_call);
    int root() const { return root_.get(); }
    // errno, with the whole path.
    Status failed(const char *what, const std::string &path, int error) const;

    // "" is the directory itself, if `flags` open a directory.
    Result<Fd> open(const std::string &path, int flags);
    // The parent of a name: `at` is the root's descriptor, or `own`.
    struct Place {
        Fd own;
        int at = -1;
        std::string name;
    };
    Result<Place> locate(const std::string &path);

private:
    Result<Fd> open_at(int parent, const char *name, int flags, const std::string &path);
    Result<Fd> walk(const std::string &path, int flags);
    int open_once(int parent, const char *name, int flags) const;
    void take_spares();

    Fd root_;
    std::string directory_;
    bool one_call_;
    Fd spare_[2];
};

}  // namespace dcs::store
