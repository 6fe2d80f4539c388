#pragma once
// The reader: a process beside the scheduler (forked before the scheduler knows anything) that has imports decoded. It
// reads none itself: for each one it forks a decoder, which has no rights at all, gets the stream through a socket, and
// hands back rows (wire/import_rows.h). What a stream does to its decoder is the business of the user who sent it.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "daemon/side_process.h"

namespace dcs::reader {

// What the scheduler may ask, in packets of this form.
enum class Ask : std::uint32_t {
    begin = 1,  // bytes of the stream -> number of a decoder, and a socket to it
    end         // number -> how it ended; it is ended if it has not
};
struct Packet {
    std::uint32_t ask, pid;
    std::uint64_t bytes;
};
static_assert(sizeof(Packet) == 16, "no padding");
std::optional<Packet> read_packet(std::string_view packet);

// This process, just forked, becomes the reader: of all that was open it keeps `socket` and standard error.
[[noreturn]] void run_reader(int socket);

// Processor time that a stream may take: about ten times what it needs.
constexpr std::uint64_t seconds_for(std::uint64_t bytes) { return 10 + bytes / (8u << 20); }
// This process, forked for a stream of that length, keeps `socket` of all that is open: no file, no signal, no other
// socket, no process; memory and time for that stream. `socket` becomes descriptor 3. Without a filter of system calls
// in builds with sanitizers.
Status fence_decoder(int &socket, std::uint64_t bytes);

// What a decoder sends back, whole or not at all: a head, then rows, or why there are none.
std::string envelope_head(Code code, std::uint64_t bytes);
std::optional<Result<std::string>> open_envelope(std::string bytes);

// The scheduler's side. Thread-safe; decode() waits until the decoder is done.
class Reader {
public:
    static Result<std::unique_ptr<Reader>> start();
    int fd() const { return process_->fd(); }  // readable when it answers some thread, or is gone
    bool gone() const;                         // no import can be decoded any more; does not wait for those threads
    std::string how_it_ended() { return process_->how_it_ended(); }
    // Rows, or why there are none: what the decoder says, or what became of it. `busy` is given the socket while the
    // decoder works, and -1 when it does not.
    Result<std::string> decode(std::string stream, const std::function<void(int)> &busy);

private:
    explicit Reader(std::unique_ptr<SideProcess> process) : process_(std::move(process)) {}
    Result<std::string> ask(Ask what, std::uint32_t pid, std::uint64_t bytes, Fd *socket);
    const std::unique_ptr<SideProcess> process_;
};

}  // namespace dcs::reader
