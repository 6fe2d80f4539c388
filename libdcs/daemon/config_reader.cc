#include "daemon/config_reader.h"

#include <cerrno>

#include <linux/capability.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "daemon/privileges.h"

namespace dcs {
namespace {

constexpr int reader_patience_s = 10;
constexpr std::size_t most_read = 64u << 20;
// Of root's rights: configuration files may lie where only others may look.
constexpr std::uint64_t kept_by_reader = 1ull << CAP_DAC_READ_SEARCH;

// Errors stand before the texts, as a text of no file.
std::string all_of(const std::string &file) {
    std::vector<std::string> why;
    std::vector<ConfigText> texts = read_config_files(file, why);
    for (const std::string &error : why) texts.push_back({"", error});
    return pack(texts);
}

std::string read_for(const std::string &file, int *fd) {
    const std::string bytes = all_of(file);
    Fd memory(::memfd_create("configuration", MFD_CLOEXEC));
    if (!memory || !write_all(memory.get(), bytes) || ::lseek(memory.get(), 0, SEEK_SET) != 0)
        return side_answer(fail_errno(Code::io_error, "a copy of the configuration", errno), "");
    *fd = memory.release();
    return side_answer(Status::ok(), "");
}

[[noreturn]] void run_reader(int socket, const std::string &file) {
    Status s = settle_side_process(socket, "dcs_config");
    if (s) s = give_up_capabilities(kept_by_reader);
    if (s)
        serve_side_process(socket, reader_patience_s, [&](std::string_view, int *fd) {
            *fd = -1;
            return read_for(file, fd);
        });
    ::_exit(s ? 0 : 1);
}

}  // namespace

Result<std::unique_ptr<ConfigReader>> ConfigReader::start(const std::string &program, const std::string &file) {
    auto process = SideProcess::start({"what reads the configuration of " + program, program}, reader_patience_s,
                                      [&](int socket) { run_reader(socket, file); });
    if (!process) return process.status();
    return std::unique_ptr<ConfigReader>(new ConfigReader(std::move(*process)));
}

Result<std::vector<ConfigText>> ConfigReader::read(std::vector<std::string> &why) {
    int fd = -1;
    const Result<std::string> packet = process_->ask("read", &fd);
    const Fd memory(fd);
    if (!packet) return packet.status();
    const auto reply = read_side_answer(*packet);
    if (!reply) return process_->distrust();
    if (!reply->status) return reply->status;
    if (!memory) return fail(Code::limit, "no descriptor is left for the configuration: raise ulimit -n");
    std::string bytes;
    if (!read_to_end(memory.get(), most_read, bytes))
        return fail_errno(Code::io_error, "the configuration cannot be read", errno);
    auto texts = unpack_config(bytes);
    if (!texts) return process_->distrust();
    std::vector<ConfigText> files;
    for (ConfigText &text : *texts)
        if (text.file.empty()) why.push_back(std::move(text.text));
        else files.push_back(std::move(text));
    return files;
}

}  // namespace dcs
