#include "scheduler/turn/export_page.h"

#include <algorithm>

#include "base/limits.h"
#include "scheduler/core/decisions.h"
#include "scheduler/record/paths.h"
#include "scheduler/record/read_blob.h"
#include "scheduler/record/templates.h"
#include "wire/message.h"

namespace dcs::turn {
namespace {

// What a record takes besides its strings.
constexpr std::uint64_t record_bytes = 512;

// The append files of a session, read in larger pieces than grains are long: neighbours in a page
// are mostly neighbours there.
class Window {
public:
    Window(store::Store &store, std::string path) : store_(store), path_(std::move(path)) {}
    Result<std::string> read(std::uint64_t offset, std::uint64_t length) {
        if (length == 0) return std::string();
        if (offset < start_ || offset + length > start_ + bytes_.size()) {
            auto bytes = store_.read(path_, offset, std::max(length, ahead));
            if (!bytes) return fail(Code::io_error, path_ + ": " + bytes.status().text);
            bytes_ = std::move(*bytes);
            start_ = offset;
        }
        if (offset + length > start_ + bytes_.size())
            return fail(Code::io_error, path_ + ": it is shorter than recorded");
        return bytes_.substr(offset - start_, length);
    }

private:
    static constexpr std::uint64_t ahead = 256 * 1024;
    store::Store &store_;
    std::string path_, bytes_;
    std::uint64_t start_ = 0;
};

class Page {
public:
    Page(const core::State &state, store::Store &store, const SessionKey &key)
        : state_(state), store_(store), key_(key), session_(*state.session(key)),
          inputs_(store, record::session_directory(key) + "/" + record::inputs_file),
          results_(store, record::session_directory(key) + "/" + record::results_file) {}

    Result<wire::ExportReply> fill(GrainNumber after, std::size_t most);

private:
    wire::ExportedSession head() const;
    // Its parameters; they are all of a page when they are as long as one.
    bool fits(const core::Grain &g) const {
        return size_ + record_bytes + g.params_length + 4 * limits::export_inline_bytes <=
               limits::export_page_bytes;
    }
    Result<wire::ExportedGrain> row(GrainNumber number, const core::Grain &g);
    Status add_params(const GrainKey &key, const core::Grain &g, wire::ExportedGrain &row);
    Status add_stream(const GrainKey &key, const core::Grain &g, wire::Stream which,
                      wire::ExportedStream &stream);
    std::string host_name(core::HostId id) const {
        const core::Host *host = state_.host(id);
        return host ? host->config.name : std::string();
    }

    const core::State &state_;
    store::Store &store_;
    const SessionKey key_;
    const core::Session &session_;
    Window inputs_, results_;
    std::uint64_t size_ = 0;
};

wire::ExportedSession Page::head() const {
    const core::SessionInfo &info = session_.info;
    return {key_.user, key_.number, info.ident, core::name_of(info.status), info.result_count,
            info.sent, info.shown, session_.grains.size()};
}

Status Page::add_params(const GrainKey &key, const core::Grain &g, wire::ExportedGrain &row) {
    auto packed = g.params_own_file ? record::read_params(store_, key, g)
                                    : inputs_.read(g.params_offset, g.params_length);
    if (!packed) return packed.status();
    auto spec = wire::unpack_spec(*packed);
    if (!spec) return fail(Code::io_error, "its recorded parameters do not decode");
    row.spec = std::move(*spec);
    row.input = {row.spec.input.size(), true, std::move(row.spec.input)};
    row.spec.input.clear();
    return Status::ok();
}

Status Page::add_stream(const GrainKey &key, const core::Grain &g, wire::Stream which,
                        wire::ExportedStream &stream) {
    stream.length = record::length_of(g, which);
    // Beside parameters that fill a page there is no room.
    const bool alone = g.params_length > limits::export_page_bytes / 4;
    stream.whole =
        stream.length == 0 || (!alone && stream.length <= limits::export_inline_bytes);
    if (!stream.whole || stream.length == 0) return Status::ok();
    const bool packed = !g.own_tree;
    const std::uint64_t before = which == wire::Stream::err ? g.out_length : 0;
    auto bytes = packed ? results_.read(g.result_offset + before, stream.length)
                        : record::read_piece(store_, key, g, which, 0, stream.length);
    if (!bytes) return bytes.status();
    stream.content = std::move(*bytes);
    return Status::ok();
}

Result<wire::ExportedGrain> Page::row(GrainNumber number, const core::Grain &g) {
    const GrainKey key{key_, number};
    wire::ExportedGrain row;
    row.grain = number;
    row.state = core::name_of(g.status);
    row.host = host_name(g.host);
    for (const core::HostId id : g.nogo) row.nogo.push_back(host_name(id));
    row.incarnation = g.incarnation;
    row.sequence = g.sequence;
    row.failures = g.failures;
    row.exit_code = g.exit_code;
    row.signal = g.signal;
    row.result_index = g.result_index;
    row.queued = g.status == core::GrainStatus::ready;
    row.queue = row.queued ? g.queue_position : 0;
    row.input_position = g.input_position;
    row.usage = core::total_usage(g);
    if (Status s = add_params(key, g, row); !s) return s;
    using wire::Stream;
    if (Status s = add_stream(key, g, Stream::out, row.out); !s) return s;
    if (Status s = add_stream(key, g, Stream::err, row.err); !s) return s;
    if (Status s = add_stream(key, g, Stream::checkpoint, row.checkpoint); !s) return s;
    if (Status s = add_stream(key, g, Stream::message, row.message); !s) return s;
    return row;
}

Result<wire::ExportReply> Page::fill(GrainNumber after, std::size_t most) {
    wire::ExportReply reply;
    reply.head = head();
    for (auto it = session_.grains.upper_bound(after); it != session_.grains.end(); ++it) {
        if (reply.grains.size() >= most || (!reply.grains.empty() && !fits(it->second))) {
            reply.more = true;
            break;
        }
        auto one = row(it->first, it->second);
        if (!one)
            return fail(one.status().code,
                        "grain " + to_text(GrainKey{key_, it->first}) + ": " + one.status().text);
        size_ += record_bytes + it->second.params_length + one->out.content.size() +
                 one->err.content.size() + one->checkpoint.content.size() +
                 one->message.content.size();
        for (const std::string &name : one->nogo) size_ += name.size() + 4;
        reply.grains.push_back(std::move(*one));
    }
    return reply;
}

}  // namespace

Result<wire::ExportReply> export_page(const core::State &state, store::Store &store,
                                      const SessionKey &key, GrainNumber after,
                                      std::int32_t most) {
    if (!state.session(key))
        return fail(Code::session_unknown, "session " + to_text(key) + " was removed");
    return Page(state, store, key).fill(after, most > 0 ? static_cast<std::size_t>(most) : SIZE_MAX);
}

}  // namespace dcs::turn
