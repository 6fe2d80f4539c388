// Builds a report from the grain's directory at the moment of sending, and reads what later reports will contain.
#include <algorithm>

#include "base/limits.h"
#include "base/files.h"
#include "base/require.h"
#include "grainserver/core/checkpoint_file.h"
#include "grainserver/files/room.h"
#include "grainserver/shell/grain_files.h"

namespace dcs::server {
namespace {
using Why = ReportUnsendable::Why;

// Files of increments are the grain's to make.
constexpr std::uint32_t most_peeked = 256;  // increments, for one question

struct Building {
    const SendReport &plan;
    wire::GrainReport report;
    std::size_t room = limits::report_bytes;
    std::optional<ReportUnsendable> trouble;

    bool give_up(Why why, const std::string &text) {
        trouble = ReportUnsendable{plan.id, why, plan.checkpoint, text};
        return false;
    }
    // An error of the grain, which can still end well; it is neither retried nor tried on another host.
    bool ignore_checkpoint(const std::string &why) {
        return give_up(Why::bad_checkpoint, files::checkpoint_name(plan.checkpoint) + " is ignored: " + why);
    }
    bool take_room(std::size_t bytes) {
        if (bytes > room) return give_up(Why::too_big, "the report exceeds the permitted size");
        room -= bytes;
        return true;
    }
};

bool read_carry(Building &b, const files::Room &room, std::uint64_t from, std::uint64_t to) {
    if (from >= to) return true;
    if (!b.take_room(to - from)) return false;
    const Result<Fd> input = files::open_foreign(room, files::input_name);
    if (!input) return b.give_up(Why::unreadable, input.status().text);
    std::string text(to - from, '\0');
    if (!pread_all(input->get(), text, static_cast<std::int64_t>(from)))
        return b.give_up(Why::unreadable, "the grain's input cannot be read");
    if (text.size() < to - from) return b.ignore_checkpoint("the grain's input became shorter");
    b.report.checkpoint += text;
    return true;
}

bool put_checkpoint(Building &b, const files::Room &room, const Result<files::LaunchRecord> &launch) {
    if (!launch) return b.give_up(Why::unreadable, launch.status().text);
    const std::string name = files::checkpoint_name(b.plan.checkpoint);
    const Result<std::string> bytes = files::read_foreign(room, name, limits::report_bytes + limits::message_bytes);
    if (!bytes && bytes.status().code == Code::limit) return b.give_up(Why::too_big, bytes.status().text);
    if (!bytes) return b.give_up(Why::bad_checkpoint, bytes.status().text);
    std::string strange;
    const std::int64_t input_size = files::foreign_size(room, files::input_name, &strange);
    if (input_size < 0) return b.ignore_checkpoint(strange.empty() ? "the grain's input is missing" : strange);
    const Result<Checkpoint> found = parse_checkpoint(*bytes, static_cast<std::uint64_t>(input_size));
    if (!found) return b.ignore_checkpoint(found.status().text);
    if (!b.take_room(found->state.size())) return false;
    b.report.has_checkpoint = true;
    b.report.checkpoint = found->state;
    b.report.message = found->message.substr(0, limits::message_bytes);
    if (b.report.usage.user_us == 0 && b.report.usage.system_us == 0) {
        b.report.usage.user_us = found->user_us;
        b.report.usage.system_us = found->system_us;
    }
    const Normalised n = normalise(found->input_offset, launch->checkpoint_length, launch->input_base);
    b.report.input_position = n.input_position;
    return read_carry(b, room, n.carry_from, launch->checkpoint_length);
}

bool append(Building &b, const files::Room &room, const std::string &name, std::size_t most, std::string &to) {
    const Result<std::string> bytes =
        b.plan.cut ? files::read_foreign_start(room, name, most) : files::read_foreign(room, name, most);
    if (!bytes && bytes.status().code == Code::limit) return b.give_up(Why::too_big, bytes.status().text);
    if (!bytes) return b.give_up(Why::unreadable, bytes.status().text);
    to += *bytes;
    return b.take_room(bytes->size());
}

// If the output must be cut, up to a quarter is reserved for standard error, which is more informative.
bool put_increments(Building &b, const files::Room &room) {
    std::size_t kept = 0;
    for (std::uint32_t k = b.plan.first; b.plan.cut && k <= b.plan.last && k != 0; ++k)
        kept += static_cast<std::size_t>(std::max<std::int64_t>(0, files::foreign_size(room, files::err_name(k))));
    kept = std::min(kept, b.room / 4);
    for (std::uint32_t k = b.plan.first; k <= b.plan.last && k != 0; ++k)
        if (!append(b, room, files::out_name(k), b.room > kept ? b.room - kept : 0, b.report.out)) return false;
    for (std::uint32_t k = b.plan.first; k <= b.plan.last && k != 0; ++k)
        if (!append(b, room, files::err_name(k), b.room, b.report.err)) return false;
    return true;
}
}  // namespace

std::variant<wire::GrainReport, ReportUnsendable> GrainFiles::build(const SendReport &plan) const {
    Building b{plan};
    b.report.key = wire::wire_of(plan.id.key);
    b.report.incarnation = plan.id.incarnation;
    b.report.first_seq = plan.first;
    b.report.last_seq = plan.last;
    b.report.usage = plan.usage;
    b.report.ended = plan.ended;
    b.report.exit_code = plan.exit_code;
    b.report.signal = plan.signal;
    b.report.innocent = plan.innocent;
    b.report.limit = plan.limit;
    b.report.limit_of_host = plan.limit_of_host;
    b.report.reason = plan.reason;
    b.report.given_back = plan.given_back;
    b.report.files = plan.files;
    if (plan.first > plan.last || plan.empty) return std::move(b.report);
    const Result<Fd> grain = directory_of(plan.id);
    const Result<files::Room> room = grain ? files::open_room(grain->get()) : Result<files::Room>(grain.status());
    if (!room) return ReportUnsendable{plan.id, Why::unreadable, plan.checkpoint, room.status().text};
    const bool whole =
        (plan.checkpoint == 0 || put_checkpoint(b, *room, launch_of(grain->get()))) && put_increments(b, *room);
    DCS_REQUIRE(whole == !b.trouble, "an incomplete report has a reason");
    if (!whole) return *b.trouble;
    return std::move(b.report);
}

wire::Peeked GrainFiles::peek(const GrainId &id, const wire::Peek &wanted) const {
    wire::Peeked answer{wanted.ticket, 0, {}};
    const Result<files::Room> room = files::open_room(grains_.get(), name_of(id));
    if (!room) return answer;
    const std::uint64_t most = std::min<std::uint64_t>(wanted.max, limits::fetch_chunk_bytes);
    for (std::uint32_t i = 1; i <= most_peeked; ++i) {
        const std::uint32_t k = wanted.after + i;
        const std::string name = wanted.stream == wire::Stream::err ? files::err_name(k) : files::out_name(k);
        const std::int64_t size = files::foreign_size(*room, name);
        if (size < 0) break;
        const std::uint64_t begin = answer.total, next = wanted.offset + answer.bytes.size();
        answer.total += static_cast<std::uint64_t>(size);
        if (next < begin || next >= answer.total || answer.bytes.size() >= most) continue;
        std::string piece(std::min(answer.total - next, most - answer.bytes.size()), '\0');
        const Result<Fd> file = files::open_foreign(*room, name);
        if (!file || !pread_all(file->get(), piece, static_cast<std::int64_t>(next - begin))) break;
        answer.bytes += piece;
    }
    return answer;
}

}  // namespace dcs::server
