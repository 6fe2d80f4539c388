#include "grainserver/starter/starter_calls.h"

#include <climits>

#include "base/bytes.h"

namespace dcs::starter {
namespace {

constexpr std::size_t name_max = NAME_MAX;

bool is_name(const std::string &name) {
    return !name.empty() && name.size() <= name_max && name[0] != '.' && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos;
}

// Each field is used only by the requests that need it.
bool is_one(const Request &r) {
    if (r.ask < Ask::start || r.ask > Ask::last) return false;
    const bool starts = r.ask == Ask::start || r.ask == Ask::prove, orphan = r.ask == Ask::end_orphan;
    const bool leaf = r.ask == Ask::make_leaf || r.ask == Ask::seal_leaf || r.ask == Ask::remove_leaf;
    const bool signals = r.ask == Ask::signal || r.ask == Ask::signal_group;
    const bool process = signals || r.ask == Ask::mark || r.ask == Ask::lower;
    if (starts || r.ask == Ask::disk ? !is_name(r.dir) : !r.dir.empty() && !(orphan && is_name(r.dir))) return false;
    if (leaf ? !is_name(r.leaf) : !r.leaf.empty() && !((starts || orphan) && is_name(r.leaf))) return false;
    if (orphan && r.dir.empty() == r.leaf.empty()) return false;
    if (process ? r.pid <= 1 || r.pid > INT_MAX : r.pid != 0 && r.ask != Ask::clear) return false;
    if (signals && (r.number < 1 || r.number > 64)) return false;
    const bool numbers = starts || signals || r.ask == Ask::make_leaf || r.ask == Ask::disk;
    if (r.number < 0 || r.amount < 0 || (!numbers && r.number != 0)) return false;
    if (r.ask != Ask::signal && r.ask != Ask::make_leaf && r.amount != 0) return false;
    return r.list.empty() || ((starts || r.ask == Ask::disk || r.ask == Ask::make_leaf) && r.list.size() <= list_max);
}

}  // namespace

std::string to_packet(const Request &r) {
    ByteWriter w;
    w.u8(static_cast<std::uint8_t>(r.ask));
    w.text(r.dir);
    w.text(r.leaf);
    w.u32(r.pid);
    w.u64(static_cast<std::uint64_t>(r.number));
    w.u64(static_cast<std::uint64_t>(r.amount));
    for (const std::int32_t one : r.list) w.u32(static_cast<std::uint32_t>(one));
    return std::move(w.bytes());
}

std::optional<Request> read_request(std::string_view packet) {
    ByteReader r(packet);
    Request request;
    request.ask = static_cast<Ask>(r.u8());
    request.dir = r.text();
    request.leaf = r.text();
    request.pid = r.u32();
    request.number = static_cast<std::int64_t>(r.u64());
    request.amount = static_cast<std::int64_t>(r.u64());
    while (r.good() && !r.at_end() && request.list.size() <= list_max)
        request.list.push_back(static_cast<std::int32_t>(r.u32()));
    if (!r.at_end() || packet.size() > request_max || !is_one(request)) return {};
    return request;
}

std::string to_packet(const Answer &a) {
    ByteWriter w;
    w.u32(static_cast<std::uint32_t>(a.status.code));
    w.text(std::string_view(a.status ? a.text : a.status.text).substr(0, answer_max / 2));
    w.u64(static_cast<std::uint64_t>(a.value));
    w.u32(a.bits);
    if (a.failure) {
        w.u32(static_cast<std::uint32_t>(a.failure->step));
        w.u32(static_cast<std::uint32_t>(a.failure->error));
        w.u32(static_cast<std::uint32_t>(a.failure->program));
    }
    return std::move(w.bytes());
}

std::optional<Answer> read_answer(std::string_view packet) {
    ByteReader r(packet);
    Answer a;
    const std::uint32_t code = r.u32();
    if (code > static_cast<std::uint32_t>(Code::last)) return {};
    a.status.code = static_cast<Code>(code);
    (a.status ? a.text : a.status.text) = r.text();
    a.value = static_cast<std::int64_t>(r.u64());
    a.bits = r.u32();
    if (r.good() && !r.at_end()) {
        const std::uint32_t step = r.u32(), error = r.u32(), program = r.u32();
        if (step > static_cast<std::uint32_t>(Step::runner) || program > static_cast<std::uint32_t>(There::directory))
            return {};
        a.failure = Failure{static_cast<Step>(step), static_cast<std::int32_t>(error), static_cast<There>(program)};
    }
    if (!r.at_end()) return {};
    return a;
}

}  // namespace dcs::starter
