#include "grainserver/container/words.h"

#include <algorithm>

#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"

namespace dcs::container {

int pack(const Words &words) {
    ByteWriter out;
    out.u32(words.rungs);
    out.u32(words.umask);
    out.text(words.directory);
    out.text(words.program);
    for (const auto *list : {&words.argv, &words.env}) {
        out.u32(static_cast<std::uint32_t>(list->size()));
        for (const std::string &word : *list) out.text(word);
    }
    const int fd = ::memfd_create("dcs_container", MFD_CLOEXEC);
    return ::write(fd, out.bytes().data(), out.size()) == static_cast<ssize_t>(out.size()) ? fd : -1;
}

bool unpack(int fd, Words &words) {
    std::string bytes(static_cast<std::size_t>(std::max<off_t>(::lseek(fd, 0, SEEK_END), 0)), '\0');
    if (::pread(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return false;
    ByteReader in(bytes);
    words.rungs = in.u32();
    words.umask = in.u32();
    words.directory = in.text();
    words.program = in.text();
    for (auto *list : {&words.argv, &words.env})
        for (std::uint32_t left = in.u32(); in.good() && left > 0; --left) list->emplace_back(in.text());
    return in.at_end() && !words.argv.empty();
}

}  // namespace dcs::container
