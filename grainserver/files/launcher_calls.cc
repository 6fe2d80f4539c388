#include "grainserver/files/launcher_calls.h"

#include "base/text.h"

namespace dcs::files {
namespace {
struct Shape {
    const char *word;
    bool dir, number, rest;
};
constexpr Shape shapes[] = {
    {"", false, false, false},       {"START", true, true, false},     {"PROVE", true, false, false},
    {"SIGNAL", true, true, false},   {"TERM", true, false, false},     {"KILL", true, false, false},
    {"LIST", false, false, false},   {"QUIT", false, false, false},    {"STARTED", true, false, false},
    {"HAVE", true, false, false},    {"PROVED", true, false, false},   {"FAILED", true, true, true},
    {"RUNNING", true, false, false}, {"END", false, false, false},     {"BUSY", false, false, false},
    {"EXITED", true, false, false},  {"QUEUE", true, true, false},     {"FIRST", true, true, false},
    {"RECALL", true, false, false},  {"RECALLED", true, false, false}, {"QUEUES", false, true, false},
    {"LEFT", true, false, false},
};
constexpr int last_verb = static_cast<int>(Verb::left);
static_assert(sizeof shapes / sizeof shapes[0] == last_verb + 1);

std::string_view take_word(std::string_view &rest) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    return word;
}
}  // namespace

std::string format(const LauncherCall &call) {
    const Shape &shape = shapes[static_cast<int>(call.verb)];
    std::string packet = shape.word;
    if (shape.dir) packet += " " + call.dir;
    if (shape.number) packet += " " + std::to_string(call.number);
    if (shape.rest) packet += (call.again ? " 1 " : " 0 ") + call.text;
    if (packet.size() > launcher_packet_max) packet.resize(launcher_packet_max);
    return packet;
}

LauncherCall parse_call(std::string_view packet) {
    const std::string_view word = take_word(packet);
    for (int i = 1; i <= last_verb; ++i) {
        const Shape &shape = shapes[i];
        if (word != shape.word) continue;
        LauncherCall call;
        if (shape.dir) {
            call.dir = take_word(packet);
            if (call.dir.empty() || call.dir.front() == '.' || call.dir.find('/') != std::string::npos) return {};
        }
        if (shape.number && !read_number(take_word(packet), call.number)) return {};
        if (shape.rest) {
            int again = 0;
            if (!read_number(take_word(packet), again)) return {};
            call.again = again != 0;
            call.text = packet;
            packet = {};
        }
        if (!packet.empty()) return {};
        call.verb = static_cast<Verb>(i);
        return call;
    }
    return {};
}

std::vector<LauncherCall> parse_calls(std::string_view packet) {
    std::vector<LauncherCall> calls;
    for (;;) {
        const std::size_t end = packet.find('\0');
        calls.push_back(parse_call(packet.substr(0, end)));
        if (end == std::string_view::npos) return calls;
        packet.remove_prefix(end + 1);
    }
}

bool add_call(std::string &packet, const std::string &call) {
    if (packet.empty()) packet = call;
    else if (packet.size() + 1 + call.size() > launcher_packet_max) return false;
    else packet.append(1, '\0').append(call);
    return true;
}

}  // namespace dcs::files
