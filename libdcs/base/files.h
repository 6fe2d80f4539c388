#pragma once
// Files and directories of our own, by a descriptor of the directory and one plain name: no symbolic link is followed
// and nothing but a regular file is opened. `directory` may be AT_FDCWD with a path only where the path is our own.
// Files in a place that others may write to are opened by beneath.h.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/status.h"

namespace dcs {

// Code::not_found if missing, no_space for a full disk, io_error otherwise; text names the file.
Status file_error(const std::string &what, int error);

Result<Fd> open_directory(int parent, const std::string &name);
// One that is there already is fine. Of mode 0700.
Status make_directory(const std::string &path);
// mkdir -p: the last one of mode 0700, those above it that are missing of mode `above`.
Status make_directories(const std::string &path, mode_t above = 0700);
// After it, names that were made, renamed or removed in the directory survive a power failure. io_error otherwise.
Status sync_directory(const std::string &directory);

// Whole content; Code::limit if longer than `max`.
Result<std::string> read_file(int directory, const std::string &name, std::size_t max);
// The rest of an open regular file; `cut`: the first `max` bytes of a longer one. `name` is for the error.
Result<std::string> read_open(int fd, const std::string &name, std::size_t max, bool cut);
// What is left to read of any descriptor, up to `max` bytes and one more, which tells that it is longer. False with
// errno. `expected`: how much it will be, if that is known.
bool read_to_end(int fd, std::size_t max, std::string &content, std::size_t expected = 0);

// False with errno; some of it may have been written.
bool write_all(int fd, std::string_view bytes) noexcept;
bool pwrite_all(int fd, std::string_view bytes, std::int64_t at) noexcept;
// As many bytes of a file as `bytes` has, from a place on, or as there are: then it becomes shorter. False with errno.
bool pread_all(int fd, std::string &bytes, std::int64_t at);
// `name`.tmp, then rename: a reader, also one after kill -9, sees the old content or the new one.
Status replace_file(int directory, const std::string &name, std::string_view content);
// The same, and after a power failure too.
Status replace_durably(int directory, const std::string &name, std::string_view content);

bool file_exists(int directory, const std::string &name);
void remove_file(int directory, const std::string &name);
// Names without "." and "..", sorted; where there are more than `most`, more than `most` of them.
Result<std::vector<std::string>> list_directory(int directory, std::size_t most = SIZE_MAX);
// Appends names, unsorted, until there are more than `most`, from the place of the descriptor, opened for reading, on.
// True: there are no others. A directory may have millions.
Result<bool> read_names(int directory, std::size_t most, std::vector<std::string> &names);
// A directory with all that is in it; symbolic links are removed, not followed. Missing is ok.
Status remove_tree(int parent, const std::string &name);

// Removes a directory with all that is in it, in steps, however deep and wide its owner made it: with a bounded number
// of names in memory, and in a time that grows as their number. Symbolic links are removed, not followed, and nothing
// outside is touched, even while the owner moves parts of it: that ends in an error.
class TreeRemoval {
public:
    // `parent` stays open until the end; AT_FDCWD: `name` is a path of our own.
    TreeRemoval(int parent, std::string name) : parent_(parent), name_(std::move(name)) {}
    // Looks at this many names more. True: nothing is left. After an error a new TreeRemoval may go on.
    Result<bool> go_on(int names);
    const std::string &name() const { return name_; }

private:
    struct Level {
        std::string name;  // in the level above
        dev_t device;
        ino_t inode;
        std::vector<std::string> left;
        bool more;  // than these, perhaps
    };
    Result<bool> take(int directory, const std::string &name);
    Status list(Level &level);
    bool moved_up(int directory, const std::string &name);
    Result<bool> leave();

    int parent_;
    std::string name_;
    Fd here_;  // what the last level is: one descriptor, however deep that is
    std::uint64_t moved_ = 0;
    std::vector<Level> levels_;
};

}  // namespace dcs
