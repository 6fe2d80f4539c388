#include "scheduler/turn/export_page.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/limits.h"
#include "base/load_limits.h"
#include "scheduler/core/decisions.h"
#include "scheduler/record/read_blob.h"
#include "wire/message.h"

namespace dcs::turn {
namespace {

// What a record takes besides its strings.
constexpr std::uint64_t record_bytes = 512;

class Page {
public:
    Page(const core::State &state, store::Store &store, const SessionKey &key)
        : state_(state), store_(store), key_(key), session_(*state.session(key)) {}

    Result<wire::ExportReply> fill(GrainNumber after, std::size_t most);

private:
    wire::ExportedSession head() const;
    // Its parameters; they are all of a page when they are as long as one.
    bool fits(const core::Grain &g) const {
        return size_ + record_bytes + core::detail_bytes(g) + 4 * limits::export_inline_bytes <=
               limits::export_page_bytes;
    }
    Result<wire::ExportedGrain> row(GrainNumber number, const core::Grain &g);
    Status add_params(const GrainKey &key, const core::Grain &g, wire::ExportedGrain &row);
    Status add_stream(const GrainKey &key, const core::Grain &g, record::Part part, wire::ExportedStream &stream);
    std::string host_name(core::HostId id) const {
        const core::Host *host = state_.host(id);
        return host ? host->config->name : std::string();
    }

    const core::State &state_;
    store::Store &store_;
    const SessionKey key_;
    const core::Session &session_;
    record::ReadAhead inputs_, results_;
    std::uint64_t size_ = 0;
};

wire::ExportedSession Page::head() const {
    const core::SessionInfo &info = session_.info;
    return {key_.user,         key_.number, info.ident, core::name_of(info.status),
            info.result_count, info.sent,   info.shown, session_.grains.size()};
}

Status Page::add_params(const GrainKey &key, const core::Grain &g, wire::ExportedGrain &row) {
    auto packed = inputs_.read_whole(store_, record::place_of(key, g, record::Part::params));
    if (!packed) return packed.status();
    auto spec = wire::unpack_spec(*packed);
    if (!spec) return fail(Code::io_error, "its recorded parameters cannot be decoded");
    row.spec = std::move(*spec);
    row.input = {row.spec.input.size(), true, std::move(row.spec.input)};
    row.spec.input.clear();
    std::map<std::string_view, const wire::GrainFile *> made;
    for (const wire::GrainFile &output : g.files->outputs) made[output.name] = &output;
    for (wire::GrainFile &file : row.spec.files) {  // outputs as they came back
        if (file.role != wire::FileRole::output) continue;
        if (const auto found = made.find(file.name); found != made.end()) file = *found->second;
    }
    return Status::ok();
}

Status Page::add_stream(const GrainKey &key, const core::Grain &g, record::Part part, wire::ExportedStream &stream) {
    const record::Place place = record::place_of(key, g, part);
    stream.length = place.length;
    // Beside parameters that fill a page there is no room.
    const bool alone = g.params_length > limits::export_page_bytes / 4;
    stream.whole = stream.length == 0 || (!alone && stream.length <= limits::export_inline_bytes);
    if (!stream.whole || stream.length == 0) return Status::ok();
    auto bytes = results_.read_whole(store_, place);
    if (!bytes) return bytes.status();
    stream.content = std::move(*bytes);
    return Status::ok();
}

Result<wire::ExportedGrain> Page::row(GrainNumber number, const core::Grain &g) {
    const GrainKey key{key_, number};
    wire::ExportedGrain row{.grain = number, .state = core::name_of(g.status()), .host = host_name(g.lessee)};
    for (const core::HostId id : g.course->nogo.get()) row.nogo.push_back(host_name(id));
    row.incarnation = g.incarnation;
    row.sequence = g.course->sequence;
    row.failures = g.course->failures;
    if (const auto *end = std::get_if<core::Finished>(&g.phase)) {
        row.exit_code = end->exit_code;
        row.signal = end->signal;
        row.result_index = end->result_index;
    }
    row.queued = g.status() == core::GrainStatus::ready;
    row.queue = row.queued ? g.as<core::Ready>().queue_position : 0;
    row.input_position = g.course->input_position;
    row.usage = core::total_usage(g);
    if (Status s = add_params(key, g, row); !s) return s;
    if (Status s = add_stream(key, g, record::Part::out, row.out); !s) return s;
    if (Status s = add_stream(key, g, record::Part::err, row.err); !s) return s;
    if (Status s = add_stream(key, g, record::Part::checkpoint, row.checkpoint); !s) return s;
    if (Status s = add_stream(key, g, record::Part::message, row.message); !s) return s;
    return row;
}

Result<wire::ExportReply> Page::fill(GrainNumber after, std::size_t most) {
    wire::ExportReply reply{.head = head()};
    for (auto it = session_.grains.upper_bound(after); it != session_.grains.end(); ++it) {
        if (reply.grains.size() >= most || (!reply.grains.empty() && !fits(it->second))) {
            reply.more = true;
            break;
        }
        auto one = row(it->first, it->second);
        if (!one)
            return fail(one.status().code, "grain " + to_text(GrainKey{key_, it->first}) + ": " + one.status().text);
        size_ += record_bytes + core::detail_bytes(it->second) + one->out.content.size() + one->err.content.size() +
                 one->checkpoint.content.size() + one->message.content.size();
        for (const std::string &name : one->nogo) size_ += name.size() + 4;
        reply.grains.push_back(std::move(*one));
    }
    return reply;
}

}  // namespace

Result<wire::ExportReply> export_page(const core::State &state, store::Store &store, const SessionKey &key,
                                      GrainNumber after, std::int32_t most) {
    if (!state.session(key)) return fail(Code::session_unknown, "session " + to_text(key) + " was removed");
    const std::size_t wanted = most > 0 ? static_cast<std::size_t>(most) : SIZE_MAX;
    return Page(state, store, key).fill(after, std::min(wanted, limits::export_page_grains));
}

}  // namespace dcs::turn
