#include "net/look_up.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <netdb.h>

#include "base/bytes.h"

namespace dcs::net {
namespace {

constexpr std::size_t places_max = 16, name_max = 255, answer_max = 2048;  // one write to a pipe

int resolver = -1;

std::string places_of(const addrinfo *at) {
    ByteWriter out;
    for (std::size_t n = 0; at != nullptr && n < places_max; at = at->ai_next) {
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
        if (n++ == 0) out.u8(1);
        out.text({reinterpret_cast<const char *>(at->ai_addr), at->ai_addrlen});
    }
    return std::move(out.bytes());
}

// Empty: `why` says why.
std::string find(const std::string &name, std::uint16_t port, addrinfo hints, std::string &why) {
    hints.ai_socktype = SOCK_STREAM;
    addrinfo *found = nullptr;
    const int wrong = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
    why = wrong == EAI_SYSTEM ? std::strerror(errno) : wrong != 0 ? ::gai_strerror(wrong) : "it has no address";
    std::string places = wrong == 0 ? places_of(found) : "";
    if (found != nullptr) ::freeaddrinfo(found);
    return places;
}

void say(int fd, std::string_view answer) {
    if (::write(fd, answer.data(), std::min(answer.size(), answer_max)) < 0) return;  // given up
}

}  // namespace

void look_up_by(int socket) { resolver = socket; }

Result<Fd> look_up(const std::string &name, std::uint16_t port, int family) {
    if (name.size() > name_max) return fail(Code::invalid, "a name of more than 255 bytes");
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno(Code::limit, "a pipe to look up " + name, errno);
    Fd ours(pipe[0]), theirs(pipe[1]);
    std::string why;
    const std::string number = find(name, port, {.ai_flags = AI_NUMERICHOST, .ai_family = family}, why);
    if (!number.empty()) {
        say(theirs.get(), number);
        return ours;
    }
    ByteWriter request;
    request.u32(static_cast<std::uint32_t>(family));
    request.u16(port);
    request.text(name);
    if (resolver >= 0) {
        if (send_packet(resolver, request.bytes(), theirs.get(), MSG_DONTWAIT)) return ours;
        if (errno == EAGAIN || errno == ETOOMANYREFS) return fail(Code::limit, "too many names are looked up");
        return fail_errno(Code::unreachable, "the process that looks up names is gone", errno);
    }
    try {
        std::thread([packet = std::move(request.bytes()), end = std::move(theirs)] {
            answer_look_up(packet, end.get());
        }).detach();
    } catch (const std::system_error &) { return fail(Code::limit, "no thread to look up " + name); }
    return ours;
}

void answer_look_up(std::string_view packet, int fd) {
    ByteReader in(packet);
    const auto family = static_cast<int>(in.u32());
    const std::uint16_t port = in.u16();
    const std::string name(in.text());
    std::string why = "invalid request";
    const bool asked = in.at_end() && name.size() <= name_max;
    const std::string places = asked ? find(name, port, {.ai_family = family}, why) : "";
    say(fd, places.empty() ? std::string(1, '\0') + why : places);
}

Found read_found(int fd) {
    std::string bytes(answer_max, '\0');
    const ssize_t n = ::read(fd, bytes.data(), bytes.size());
    Found found;
    if (n <= 0) found.why = "the look-up ended without an answer";
    ByteReader in({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))});
    if (in.left() > 0 && in.u8() == 0) found.why = in.raw(in.left());
    while (in.left() > 0 && in.good() && found.places.size() < places_max) {
        const std::string_view address = in.text();
        Place place;
        if (address.size() < sizeof(sockaddr_in) || address.size() > sizeof(sockaddr_in6)) break;
        std::memcpy(&place.address, address.data(), address.size());
        place.size = static_cast<socklen_t>(address.size());
        found.places.push_back(place);
    }
    if (found.places.empty() && found.why.empty()) found.why = "the look-up had an invalid answer";
    return found;
}

}  // namespace dcs::net
