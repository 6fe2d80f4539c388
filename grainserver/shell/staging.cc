// Places the files of a grain from the library into its room, before it starts.
#include <algorithm>
#include <cerrno>
#include <climits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/limits.h"
#include "base/require.h"
#include "grainserver/files/room.h"
#include "grainserver/shell/contents.h"
#include "grainserver/shell/paths.h"

namespace dcs::server {
namespace {
using files::FileRecord;

bool has_role(const FileRecord &file, wire::FileRole role) { return file.role == role; }

// The program for this binary class, if there are several.
const FileRecord *program_of(const std::vector<FileRecord> &files, const std::string &binary_class) {
    const FileRecord *found = nullptr;
    for (const FileRecord &file : files) {
        if (!has_role(file, wire::FileRole::program)) continue;
        if (file.binary_class == binary_class) return &file;
        if (file.binary_class.empty()) found = &file;
    }
    return found;
}

// Whether it is a regular file of that size. `identity` changes with its content.
bool identify(int fd, std::uint64_t size, std::array<std::int64_t, 7> &identity) {
    struct stat st {};
    if (::fstat(fd, &st) != 0 || static_cast<std::uint64_t>(st.st_size) != size) return false;
    identity = {static_cast<std::int64_t>(st.st_dev),
                static_cast<std::int64_t>(st.st_ino),
                st.st_size,
                st.st_mtim.tv_sec,
                st.st_mtim.tv_nsec,
                st.st_ctim.tv_sec,
                st.st_ctim.tv_nsec};
    return true;
}

constexpr std::size_t known_max = 4096;  // programs whose digests are cached

wire::GrainFile missing(const FileRecord &file) { return {.digest = file.digest, .size = file.size}; }

// The name of a submitted program in the grain's room: the user's name for it, if that is a valid file name.
std::string program_name(const files::LaunchRecord &record) {
    const std::string &name = record.argv[0];
    const bool good =
        !name.empty() && name != "." && name != ".." && name.size() <= NAME_MAX && name.find('/') == std::string::npos;
    return good ? name : "program";
}

// A grain under another account gets a copy of its program. A link would give the user a file of root, with content of
// the user's choice; and the path into the library is not secret, because process listings show it.
Result<Fd> make_program(const files::Room &room, const files::LaunchRecord &record) {
    const char *const in = files::program_folder;
    if (::mkdirat(room.fd.get(), in, 0700) != 0) return file_error(in, errno);
    const Result<Fd> folder = open_directory(room.fd.get(), in);
    if (!folder) return folder.status();
    const std::string name = program_name(record);
    Fd fd(::openat(folder->get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0500));
    if (!fd) return file_error(name, errno);
    return fd;
}

// The room belongs to the server. Resets it, also after a server was killed: an empty working directory, no program,
// and the input truncated to the checkpoint's text.
Status clear(const files::Room &room, const files::LaunchRecord &record) {
    for (const char *name : {files::work_name, files::program_folder})
        if (Status s = remove_tree(room.fd.get(), name); !s) return s;
    if (::mkdirat(room.fd.get(), files::work_name, 0700) != 0) return file_error(files::work_name, errno);
    const Fd input(::openat(room.fd.get(), files::input_name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat st {};
    if (input && (::fstat(input.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1))
        return fail(Code::io_error, "the grain's input was replaced");
    const bool has_input = std::any_of(record.files.begin(), record.files.end(),
                                       [](const FileRecord &file) { return has_role(file, wire::FileRole::input); });
    if (!input || (has_input && ::ftruncate(input.get(), static_cast<off_t>(record.checkpoint_length)) != 0))
        return file_error(files::input_name, errno);
    return Status::ok();
}

// The file to copy to; no descriptor for an output, of which only the directory is made.
Result<Fd> destination(const files::Room &room, const Fd &work, const files::LaunchRecord &record,
                       const FileRecord &file) {
    if (has_role(file, wire::FileRole::program)) return make_program(room, record);
    if (has_role(file, wire::FileRole::input)) {
        Fd fd(::openat(room.fd.get(), files::input_name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
        if (!fd || ::lseek(fd.get(), 0, SEEK_END) < 0) return file_error(files::input_name, errno);
        return fd;
    }
    std::string last;
    const Result<Fd> folder = enter_folders(work, file.name, true, last);
    if (!folder) return folder.status();
    if (has_role(file, wire::FileRole::output)) return Fd();
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    const mode_t mode = has_role(file, wire::FileRole::executable) ? 0755 : 0644;
    Fd fd(::openat(folder->get(), last.c_str(), flags, mode));
    if (!fd) return file_error(file.name, errno);
    return fd;
}
}  // namespace

// A program is executed at its own path if its content has the right digest; then sets *program to null.
Work Contents::know_program(const files::LaunchRecord *record, const FileRecord **program) {
    *program = program_of(record->files, binary_class_);
    if (*program == nullptr || files::image_of(record->files) != nullptr)
        co_return;  // a container has no programs of the host
    Identity identity{};
    const Result<Fd> fd = open_program_(record->program, record->account);
    if (!fd || !identify(fd->get(), (*program)->size, identity)) co_return;
    if (known_.count(identity) == 0) {
        std::string digest;
        for (Work reading = read_digest(fd->get(), &digest); reading.go_on();) co_yield Slice{};
        if (known_.size() >= known_max) known_.clear();
        known_[identity] = digest;
    }
    if (known_[identity] == (*program)->digest) *program = nullptr;
}

// `program`: the program to place; null: none.
Work Contents::fill_room(const files::LaunchRecord *record, const files::Room *room, const FileRecord *program,
                         Status *status) {
    DCS_REQUIRE(room->fd && !record->argv.empty(), "a grain with a program has an open room");
    *status = clear(*room, *record);
    if (!*status) co_return;
    const Result<Fd> work = open_directory(room->fd.get(), files::work_name);
    if (!work) *status = work.status();
    for (const FileRecord &file : record->files) {
        if (!*status) co_return;
        if (has_role(file, wire::FileRole::image)) continue;  // the container's runner reads it in the library
        if (has_role(file, wire::FileRole::program) && &file != program) continue;
        const Result<Fd> to = destination(*room, *work, *record, file);
        if (!to) *status = to.status();
        if (!to || !*to) continue;
        const Result<Fd> from = cache_.open_content(file.digest, wall_seconds());
        const std::uint64_t base = has_role(file, wire::FileRole::input) ? record->input_base : 0;
        Copying copying(from ? from->get() : -1, base, limits::content_bytes, to->get(), false);
        Result<bool> done = from ? Result<bool>(false) : Result<bool>(from.status());
        while (done && !*done) {
            co_yield Slice{};
            done = go_on(copying);
        }
        if (!done) *status = done.status();
    }
}

Work Contents::place_files(GrainId id) {
    const Result<Fd> grain = files_.directory_of(id);
    Result<files::LaunchRecord> record =
        grain ? files_.launch_of(grain->get()) : Result<files::LaunchRecord>(grain.status());
    const Result<files::Room> room = grain ? files::open_room(grain->get()) : Result<files::Room>(grain.status());
    if (!record || !room) {
        const Status &s = record ? room.status() : record.status();
        tell_(FilesUnplaced{id, s.code, s.text});
        co_return;
    }
    const FileRecord *program = nullptr;
    for (Work knowing = know_program(&*record, &program); knowing.go_on();) co_yield Slice{};
    FilesMissing absent{id, {}};
    for (const FileRecord &file : record->files) {
        const bool other_program = has_role(file, wire::FileRole::program) && &file != program;
        if (other_program || has_role(file, wire::FileRole::output)) continue;
        for (Work verifying = verify(file.digest); verifying.go_on();) co_yield Slice{};
        if (!cache_.has(file.digest)) absent.files.push_back(missing(file));
    }
    if (!absent.files.empty()) {
        tell_(std::move(absent));
        co_return;
    }
    failpoint("server.files.before_place");
    const bool own_account = !record->account.change;
    // The room belongs to the grain only while nothing is put into it.
    Status s = files_.take_room(id, record->account);
    if (s)
        for (Work filling = fill_room(&*record, &*room, own_account ? nullptr : program, &s); filling.go_on();)
            co_yield Slice{};
    if (s && program != nullptr && !own_account) {
        record->program = files_.room_path(id) + "/" + files::program_folder + "/" + program_name(*record);
    } else if (s && program != nullptr) {
        Result<std::string> path = cache_.program(program->digest, record->argv[0]);
        if (path) record->program = *path;
        else s = path.status();
    }
    if (s) s = files_.give_room(id, record->account);
    if (s) s = files_.write_placed(id, *record);
    failpoint("server.files.after_place");
    if (s) tell_(FilesPlaced{id});
    else tell_(FilesUnplaced{id, s.code == Code::no_space ? s.code : Code::io_error, s.text});
}

}  // namespace dcs::server
