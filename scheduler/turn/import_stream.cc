#include "scheduler/turn/import_stream.h"

#include <algorithm>
#include <tuple>

#include "base/bytes.h"
#include "base/checksum.h"
#include "pki/digest.h"
#include "scheduler/core/decisions.h"
#include "scheduler/turn/payload.h"
#include "wire/history.h"
#include "wire/message.h"
#include "wire/content_check.h"
#include "wire/session_check.h"

namespace dcs::turn {
namespace {

using core::File;
using core::Grain;
using core::GrainStatus;

// Leases that a grain can have had, as far as it is shown; the numbers are a pool's own.
constexpr Incarnation most_leases = 1u << 20;

Status bad(const std::string &why) { return fail(Code::invalid, "the import is refused: " + why); }
Status bad(const wire::Wrong &wrong) {
    return bad((wrong.grain < 0 ? std::string() : "grain " + std::to_string(wrong.grain) + ": ") +
               wrong.why);
}

GrainStatus status_of(const std::string &state) {
    if (state == "finished") return GrainStatus::finished;
    return state == "killed" ? GrainStatus::killed : GrainStatus::ready;
}

class Import {
public:
    Import(const core::State &state, const Contents &contents, const std::string &user)
        : state_(state), library_(contents), user_(user) {}

    Result<std::shared_ptr<const core::ImportContent>> read(std::string_view stream);

private:
    struct Place {  // of a ready grain in the queue: running ones first, unplaced ones last
        int rank;
        std::int64_t queue;
        GrainNumber number;
        std::size_t index;
        auto key() const { return std::tie(rank, queue, number); }
    };
    Status add(wire::ExportedGrain g);
    void keep_params(wire::ExportedGrain &g, Grain &grain);
    Status keep_files(wire::ExportedGrain &g, Grain &grain);
    void keep_streams(wire::ExportedGrain &g, Grain &grain);
    void keep_file(GrainNumber grain, File file, std::string &bytes);
    core::HostId known(const std::string &host) const { return state_.host_id(host); }
    void make_queue();
    Status keep_log();

    const core::State &state_;
    const Contents &library_;
    const std::string &user_;
    wire::ExportedSession head_;
    core::ImportContent content_;
    core::GrainList grains_;
    std::string inputs_, results_;
    std::vector<Place> places_;
    wire::SessionCheck check_;
};

void Import::keep_file(GrainNumber grain, File file, std::string &bytes) {
    if (!bytes.empty())
        content_.files.push_back({grain, file, payload_of(std::move(bytes))});
}

void Import::keep_params(wire::ExportedGrain &g, Grain &grain) {
    wire::GrainSpec &spec = g.spec;
    spec.input = std::move(g.input.content);
    std::string packed = wire::pack(spec);
    std::string label = std::exchange(spec.label, {});
    grain.fingerprint = pki::fingerprint(label.empty() ? packed : wire::pack(spec));
    grain.params_length = static_cast<std::uint32_t>(packed.size());
    grain.params_sum = crc32c(packed);
    if (packed.size() > core::shared_bytes) {
        grain.own_tree = grain.params_own_file = true;
        return keep_file(g.grain, File::grain_params, packed);
    }
    grain.params_offset = inputs_.size();
    inputs_ += packed;
}

// What is not finished needs all that it names; of the rest what came back must be readable. The parameters
// are those of the submission again.
Status Import::keep_files(wire::ExportedGrain &g, Grain &grain) {
    if (g.spec.files.empty()) return Status::ok();
    core::GrainFiles files = files_of(g.spec);
    for (wire::GrainFile &file : g.spec.files) {
        const bool output = file.role == wire::FileRole::output;
        const bool wanted = !file.digest.empty() && (output || grain.status == GrainStatus::ready);
        if (wanted && !library_.has(file))
            return bad("grain " + std::to_string(g.grain) + ": the library does not have its " + to_text(file));
        if (output) file = {wire::FileRole::output, file.name, {}, 0, {}};
    }
    grain.files = std::move(files);
    return Status::ok();
}

void Import::keep_streams(wire::ExportedGrain &g, Grain &grain) {
    const std::uint64_t size = g.out.length + g.err.length;
    const bool small = grain.status != GrainStatus::ready && size <= core::shared_bytes;
    grain.checkpoint_length = g.checkpoint.length;
    grain.message_length = static_cast<std::uint32_t>(g.message.length);
    grain.out_length = g.out.length;
    grain.err_length = g.err.length;
    grain.checkpoint_sum = crc32c(g.checkpoint.content);
    grain.message_sum = crc32c(g.message.content);
    grain.out_sum = crc32c(g.out.content);
    grain.err_sum = crc32c(g.err.content);
    if (g.checkpoint.length > 0 || g.message.length > 0 || (size > 0 && !small))
        grain.own_tree = true;
    if (!grain.own_tree) {
        grain.result_offset = results_.size();
        results_ += g.out.content;
        results_ += g.err.content;
        return;
    }
    keep_file(g.grain, File::grain_checkpoint, g.checkpoint.content);
    keep_file(g.grain, File::grain_message, g.message.content);
    keep_file(g.grain, File::grain_out, g.out.content);
    keep_file(g.grain, File::grain_err, g.err.content);
}

Status Import::add(wire::ExportedGrain g) {
    if (const auto wrong = check_.add(g)) return bad(*wrong);
    Grain grain;
    grain.status = status_of(g.state);
    grain.urgent = g.spec.urgent;
    grain.attempts = static_cast<std::uint8_t>(g.spec.attempts);
    grain.failures = static_cast<std::uint8_t>(g.failures);
    grain.thrash = g.spec.thrash;
    grain.notice = g.spec.notice;
    grain.host_class = g.spec.host_class;
    grain.incarnation = grain.lease = std::min(g.incarnation, most_leases);
    grain.program = program_of(user_, g.spec);
    grain.demand = core::Demand{g.spec.cores, g.spec.memory_mb, g.spec.wall_s};
    grain.sequence = g.sequence;
    grain.exit_code = g.exit_code;
    grain.signal = g.signal;
    grain.result_index = g.result_index;
    grain.input_length = wire::input_length(g.spec) + g.input.length;  // one of them is 0
    if (Status s = keep_files(g, grain); !s) return s;
    grain.input_position = g.input_position;
    grain.past = g.usage;
    // A lease of before cannot be taken up again; where a grain ended is only for people.
    if (grain.status != GrainStatus::ready) grain.host = known(g.host);
    for (const std::string &name : g.nogo)
        if (known(name) != core::no_host) grain.nogo.edit().push_back(known(name));
    if (grain.status == GrainStatus::ready)
        places_.push_back({g.state == "running" ? 0 : g.queued ? 1 : 2, g.queue, g.grain,
                           grains_.size()});
    keep_params(g, grain);
    keep_streams(g, grain);
    grains_.emplace_back(g.grain, std::move(grain));
    return Status::ok();
}

void Import::make_queue() {
    std::sort(places_.begin(), places_.end(),
              [](const Place &a, const Place &b) { return a.key() < b.key(); });
    for (std::size_t i = 0; i < places_.size(); ++i)
        grains_[places_[i].index].second.queue_position = static_cast<std::int64_t>(i);
    content_.info.queue_front = 0;
    content_.info.queue_back = static_cast<std::int64_t>(places_.size());
}

// The event log as it is, with what its grains knew; edited or not, it cannot make more of them than there is.
Status Import::keep_log() {
    std::string_view left = head_.log;
    std::vector<wire::Event> events;
    if (Status s = wire::take_events(left, events); !s) return bad(s.text);
    if (!left.empty()) return bad("the event log: it ends inside a frame");
    wire::History history;
    for (const wire::Event &event : events) history.take(event);
    const auto most = static_cast<std::uint32_t>(std::max(0, head_.handed_out));
    for (auto &[number, grain] : grains_) {
        const auto found = history.grains.find(number);
        if (found == history.grains.end()) continue;
        grain.known = static_cast<std::int32_t>(std::min(found->second.known, most));
        if (grain.status == GrainStatus::killed)
            grain.killed_after = static_cast<std::int32_t>(std::min(found->second.killed_after, most));
    }
    content_.events = payload_of(std::move(head_.log));
    return Status::ok();
}

Result<std::shared_ptr<const core::ImportContent>> Import::read(std::string_view stream) {
    ByteReader in(stream);
    auto head = wire::unpack_exported_session(in.text());
    if (!head) return bad(head.status().text);
    head_ = std::move(*head);
    while (in.good() && !in.at_end()) {
        const auto record = in.text();
        if (!in.good()) break;
        auto grain = wire::unpack_exported_grain(record);
        if (!grain) return bad(grain.status().text);
        if (Status s = add(std::move(*grain)); !s) return s;
    }
    if (!in.good()) return bad("the stream ends inside a record");
    if (const auto wrong = check_.finish(head_)) return bad(*wrong);
    make_queue();
    if (Status s = keep_log(); !s) return s;
    core::SessionInfo &info = content_.info;
    info.ident = head_.ident;
    info.result_count = head_.results;
    info.sent = head_.acknowledged;
    info.shown = head_.handed_out;
    info.inputs_length = inputs_.size();
    info.results_length = results_.size();
    content_.inputs = payload_of(std::move(inputs_));
    content_.results = payload_of(std::move(results_));
    content_.grains = std::make_shared<const core::GrainList>(std::move(grains_));
    return std::make_shared<const core::ImportContent>(std::move(content_));
}

}  // namespace

Result<std::shared_ptr<const core::ImportContent>> read_import(std::string_view stream, const std::string &user,
                                                               const core::State &state, const Contents &contents) {
    return Import(state, contents, user).read(stream);
}

}  // namespace dcs::turn
