#include "scheduler/reader/reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/failpoint.h"
#include "base/limits.h"
#include "wire/import_rows.h"

namespace dcs::reader {
namespace {

constexpr int answer_within_s = 30;
constexpr std::size_t head_bytes = 12;  // code, length
constexpr std::size_t at_once = 256 * 1024;

bool send_stream(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(socket, bytes.data(), std::min(bytes.size(), at_once), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

// Until the decoder is gone; no more than `most`.
std::string receive_all(int socket, std::size_t most) {
    std::string all;
    for (;;) {
        const std::size_t had = all.size();
        all.resize(had + std::min(at_once, most + 1 - had));
        const ssize_t n = ::recv(socket, all.data() + had, all.size() - had, 0);
        all.resize(had + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || all.size() > most) return all;
    }
}

}  // namespace

std::optional<Packet> read_packet(std::string_view bytes) {
    Packet packet{};
    if (bytes.size() != sizeof packet) return {};
    std::memcpy(&packet, bytes.data(), sizeof packet);
    const bool begin =
        packet.ask == static_cast<std::uint32_t>(Ask::begin) && packet.pid == 0 && packet.bytes <= limits::import_bytes;
    const bool end = packet.ask == static_cast<std::uint32_t>(Ask::end) && packet.bytes == 0;
    return begin || end ? std::optional<Packet>(packet) : std::nullopt;
}

std::string envelope_head(Code code, std::uint64_t bytes) {
    ByteWriter w;
    w.u32(static_cast<std::uint32_t>(code));
    w.u64(bytes);
    return std::move(w.bytes());
}

std::optional<Result<std::string>> open_envelope(std::string bytes) {
    ByteReader in(bytes);
    const std::uint32_t code = in.u32();
    const std::uint64_t length = in.u64();
    if (!in.good() || code > static_cast<std::uint32_t>(Code::last) || length != in.left()) return {};
    bytes.erase(0, head_bytes);
    if (static_cast<Code>(code) == Code::ok) return Result<std::string>(std::move(bytes));
    // The words of a process that a user may have in hand: for that user, and not many.
    return Result<std::string>(fail(static_cast<Code>(code), bytes.substr(0, limits::message_bytes)));
}

Result<std::unique_ptr<Reader>> Reader::start() {
    auto process = SideProcess::start({"the scheduler's reader", "the scheduler"}, answer_within_s,
                                      [](int socket) { run_reader(socket); });
    if (!process) return process.status();
    return std::unique_ptr<Reader>(new Reader(std::move(*process)));
}

bool Reader::gone() const {
    pollfd polled{process_->fd(), 0, 0};
    return ::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

Result<std::string> Reader::ask(Ask what, std::uint32_t pid, std::uint64_t bytes, Fd *socket) {
    const Packet packet{static_cast<std::uint32_t>(what), pid, bytes};
    int fd = -1;
    auto answer = process_->ask({reinterpret_cast<const char *>(&packet), sizeof packet}, &fd);
    Fd brought(fd);
    if (!answer) return answer.status();
    auto reply = read_side_answer(*answer);
    if (!reply) return process_->distrust();
    if (socket) *socket = std::move(brought);
    return reply->status ? Result<std::string>(std::move(reply->bytes)) : Result<std::string>(reply->status);
}

Result<std::string> Reader::decode(std::string stream, const std::function<void(int)> &busy) {
    Fd socket;
    const auto number = ask(Ask::begin, 0, stream.size(), &socket);
    if (!number) return fail(number.status().code, "the import is refused: " + number.status().text);
    if (!socket)
        return fail(Code::limit, "the import is refused: the scheduler may open no more files, raise its ulimit -n");
    busy(socket.get());
    failpoint("reader.decode.begun");
    std::optional<std::string> answer;
    try {
        // A decoder that has refused the first half does not read the second.
        (void)send_stream(socket.get(), stream);
        const std::size_t most = head_bytes + wire::import_rows_bytes(stream.size());
        stream = {};
        answer = receive_all(socket.get(), most);
    } catch (const std::bad_alloc &) {  // here, and its decoder is ended as any other
    }
    busy(-1);
    const auto pid = static_cast<std::uint32_t>(std::strtoul(number->c_str(), nullptr, 10));
    const auto ended = ask(Ask::end, pid, 0, nullptr);
    if (!answer) return fail(Code::limit, "the import is refused: the scheduler has no memory for it");
    if (auto said = open_envelope(std::move(*answer))) return std::move(*said);
    return fail(Code::invalid, "the import is refused: the process that decoded it " +
                                   (ended ? *ended : "is gone: " + ended.status().text) +
                                   ", which concerns nothing else: if the file is an export that nothing has changed, "
                                   "tell the maintainers");
}

}  // namespace dcs::reader
