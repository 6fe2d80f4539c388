#include "scheduler/turn/import_stream.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/bytes.h"
#include "pki/digest.h"
#include "scheduler/core/decisions.h"
#include "scheduler/turn/payload.h"
#include "wire/checks.h"
#include "wire/import_rows.h"
#include "wire/message.h"

namespace dcs::turn {
namespace {

using core::File;
using core::Grain;
using core::GrainStatus;

// Leases that a grain can have had, as far as it is shown; the numbers are a pool's own.
constexpr Incarnation most_leases = 1u << 20;

Status bad(const std::string &why) { return fail(Code::invalid, "the import is refused: " + why); }
Status bad(const wire::Wrong &wrong) {
    return bad((wrong.grain < 0 ? std::string() : "grain " + std::to_string(wrong.grain) + ": ") + wrong.why);
}

core::Phase phase_of(const wire::ExportedGrain &g) {
    if (g.state == "finished") return core::Finished{g.result_index, g.exit_code, g.signal};
    return g.state == "killed" ? core::Phase(core::Killed{}) : core::Phase(core::Ready{});
}

}  // namespace

class ImportReader::Import {
public:
    Import(std::string rows, std::string user) : rows_(std::move(rows)), in_(rows_), user_(std::move(user)) {}

    bool step(std::size_t bytes, const Holder &holder, Contents &contents);
    Result<std::shared_ptr<const core::ImportContent>> take(const core::State &state);
    std::size_t held() const { return rows_.size(); }

private:
    enum class At : std::uint8_t { head, grains, end };
    struct Place {  // of a ready grain in the queue: running ones first, unplaced ones last
        int rank;
        std::int64_t queue;
        GrainNumber number;
        std::size_t index;
        auto key() const { return std::tie(rank, queue, number); }
    };
    Status read_head();
    Status read_grain(const Holder &holder, Contents &contents);
    Status end_grains();
    Status add(wire::ExportedGrain g, const Holder &holder, Contents &contents);
    void keep_params(wire::ExportedGrain &g, Grain &grain);
    Status keep_files(wire::ExportedGrain &g, Grain &grain, const Holder &holder, Contents &contents);
    void keep_streams(wire::ExportedGrain &g, Grain &grain);
    void keep_file(GrainNumber grain, File file, std::string &bytes);
    core::HostId number_of(const std::string &host);
    void name_hosts(const core::State &state);
    void make_queue();
    void keep_log();

    std::string rows_;
    wire::ImportRows in_;
    const std::string user_;
    At at_ = At::head;
    Status wrong_;
    wire::ExportedSession head_;
    core::ImportContent content_;
    core::GrainList grains_;
    std::map<std::string, core::HostId> hosts_;  // as grains have them until the end: numbers of their own
    std::string inputs_, results_;
    std::vector<Place> places_;
    wire::SessionCheck check_;
    std::vector<wire::ResultsKnown::OfGrain> known_;
};

void ImportReader::Import::keep_file(GrainNumber grain, File file, std::string &bytes) {
    if (!bytes.empty()) content_.files.push_back({grain, file, payload_of(std::move(bytes))});
}

void ImportReader::Import::keep_params(wire::ExportedGrain &g, Grain &grain) {
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

// What is not finished needs all that it names; of the rest, returned files must be readable. The parameters
// are those of the submission again.
Status ImportReader::Import::keep_files(wire::ExportedGrain &g, Grain &grain, const Holder &holder,
                                        Contents &contents) {
    if (g.spec.files.empty()) return Status::ok();
    core::GrainFiles files = files_of(g.spec);
    for (wire::GrainFile &file : g.spec.files) {
        const bool output = file.role == wire::FileRole::output;
        const bool wanted = !file.digest.empty() && (output || !grain.is_over());
        if (wanted && !contents.use(file, holder))
            return bad("grain " + std::to_string(g.grain) + ": the library does not have its " + to_text(file));
        if (output) file = {wire::FileRole::output, file.name, {}, 0, {}};
    }
    grain.files = std::move(files);
    return Status::ok();
}

void ImportReader::Import::keep_streams(wire::ExportedGrain &g, Grain &grain) {
    const std::uint64_t size = g.out.length + g.err.length;
    const bool small = grain.is_over() && size <= core::shared_bytes;
    core::Course &course = grain.course.edit();
    course.checkpoint_length = g.checkpoint.length;
    course.message_length = static_cast<std::uint32_t>(g.message.length);
    course.out_length = g.out.length;
    course.err_length = g.err.length;
    course.checkpoint_sum = crc32c(g.checkpoint.content);
    course.message_sum = crc32c(g.message.content);
    course.out_sum = crc32c(g.out.content);
    course.err_sum = crc32c(g.err.content);
    if (g.checkpoint.length > 0 || g.message.length > 0 || (size > 0 && !small)) grain.own_tree = true;
    if (!grain.own_tree) {
        course.result_offset = results_.size();
        results_ += g.out.content;
        results_ += g.err.content;
        return;
    }
    keep_file(g.grain, File::grain_checkpoint, g.checkpoint.content);
    keep_file(g.grain, File::grain_message, g.message.content);
    keep_file(g.grain, File::grain_out, g.out.content);
    keep_file(g.grain, File::grain_err, g.err.content);
}

Status ImportReader::Import::add(wire::ExportedGrain g, const Holder &holder, Contents &contents) {
    if (const auto wrong = check_.add(g)) return bad(*wrong);
    Grain grain;
    grain.phase = phase_of(g);
    grain.demands = {g.spec.demands, grains_.empty() ? core::Shared<wire::Demands>() : grains_.back().second.demands};
    core::Course &course = grain.course.edit();
    course.failures = static_cast<std::uint8_t>(g.failures);
    grain.incarnation = grain.lease = std::min(g.incarnation, most_leases);
    grain.program = program_of(user_, g.spec);
    course.sequence = g.sequence;
    grain.input_length = wire::input_length(g.spec) + g.input.length;  // one of them is 0
    if (Status s = keep_files(g, grain, holder, contents); !s) return s;
    course.input_position = g.input_position;
    course.past = g.usage;
    // A lease of before cannot be taken up again; where a grain ended is only for people.
    if (grain.is_over()) grain.lessee = number_of(g.host);
    for (const std::string &name : g.nogo) course.nogo.edit().push_back(number_of(name));
    if (!grain.is_over())
        places_.push_back({g.state == "running" ? 0 : g.queued ? 1 : 2, g.queue, g.grain, grains_.size()});
    keep_params(g, grain);
    keep_streams(g, grain);
    grains_.emplace_back(g.grain, std::move(grain));
    return Status::ok();
}

void ImportReader::Import::make_queue() {
    std::sort(places_.begin(), places_.end(), [](const Place &a, const Place &b) { return a.key() < b.key(); });
    for (std::size_t i = 0; i < places_.size(); ++i)
        grains_[places_[i].index].second.as<core::Ready>().queue_position = static_cast<std::int64_t>(i);
    content_.info.queue_front = 0;
    content_.info.queue_back = static_cast<std::int64_t>(places_.size());
}

core::HostId ImportReader::Import::number_of(const std::string &host) {
    if (host.empty()) return core::no_host;
    return hosts_.try_emplace(host, static_cast<core::HostId>(hosts_.size())).first->second;
}

// The pool may have got hosts while the stream was read.
void ImportReader::Import::name_hosts(const core::State &state) {
    std::vector<core::HostId> here(hosts_.size(), core::no_host);
    for (const auto &[name, number] : hosts_) here[static_cast<std::size_t>(number)] = state.host_id(name);
    const auto known = [&](core::HostId number) {
        return number == core::no_host ? number : here[static_cast<std::size_t>(number)];
    };
    for (auto &[number, grain] : grains_) {
        grain.lessee = known(grain.lessee);
        if (grain.course->nogo->empty()) continue;
        auto &nogo = grain.course.edit().nogo.edit();
        for (core::HostId &id : nogo) id = known(id);
        std::erase(nogo, core::no_host);
    }
}

Status ImportReader::Import::read_head() {
    auto head = in_.head();
    if (!head) return head.status();
    head_ = std::move(*head);
    return Status::ok();
}

Status ImportReader::Import::read_grain(const Holder &holder, Contents &contents) {
    auto grain = in_.grain();
    if (!grain) return grain.status();
    return add(std::move(*grain), holder, contents);
}

Status ImportReader::Import::end_grains() {
    if (const auto wrong = check_.finish(head_)) return bad(*wrong);
    auto known = in_.known();
    if (!known) return known.status();
    known_ = std::move(*known);
    make_queue();
    return Status::ok();
}

// The event log as it is, with what its grains knew; edited or not, it cannot make more of them than there is.
void ImportReader::Import::keep_log() {
    const auto most = static_cast<std::uint32_t>(std::max(0, head_.handed_out));
    std::size_t index = 0;
    for (auto &[number, grain] : grains_) {
        const wire::ResultsKnown::OfGrain &told = known_[index++];
        if (!told.told) continue;
        grain.known = static_cast<std::int32_t>(std::min(told.known, most));
        if (auto *killed = std::get_if<core::Killed>(&grain.phase))
            killed->after = static_cast<std::int32_t>(std::min(told.killed_after, most));
    }
    content_.events = payload_of(std::move(head_.log));
}

bool ImportReader::Import::step(std::size_t bytes, const Holder &holder, Contents &contents) {
    const std::size_t before = in_.left();
    if (at_ == At::head) {
        wrong_ = read_head();
        at_ = At::grains;
    }
    while (wrong_ && at_ == At::grains && before - in_.left() < bytes) {
        if (grains_.size() < in_.count()) {
            wrong_ = read_grain(holder, contents);
            continue;
        }
        wrong_ = end_grains();
        at_ = At::end;
    }
    return wrong_ && at_ != At::end;
}

Result<std::shared_ptr<const core::ImportContent>> ImportReader::Import::take(const core::State &state) {
    DCS_REQUIRE(!wrong_ || at_ == At::end, "an import was taken before it was read");
    if (!wrong_) return wrong_;
    name_hosts(state);
    keep_log();
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

ImportReader::ImportReader(std::string rows, std::string user)
    : import_(std::make_unique<Import>(std::move(rows), std::move(user))) {}
ImportReader::~ImportReader() = default;
ImportReader::ImportReader(ImportReader &&) noexcept = default;
ImportReader &ImportReader::operator=(ImportReader &&) noexcept = default;
bool ImportReader::step(std::size_t bytes, const Holder &holder, Contents &contents) {
    return import_->step(bytes, holder, contents);
}
std::size_t ImportReader::held() const { return import_->held(); }

Result<std::shared_ptr<const core::ImportContent>> ImportReader::take(const core::State &state) {
    return import_->take(state);
}

}  // namespace dcs::turn
