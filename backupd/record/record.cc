#include "backupd/record/record.h"

#include "base/bytes.h"
#include "base/require.h"
#include "base/text.h"

namespace dcs::backup::record {
namespace {

Status damaged(const char *what) { return fail(Code::io_error, what); }

constexpr std::string_view plain = "_-";

using store::Action;
using store::Shape;

store::NodeTemplate node(const char *name, Action action) { return {name, Shape::pair, action, ""}; }

constexpr std::uint64_t small_file = 4096;
constexpr const char *reports_lost = "its reports are lost, the grains run again from the scheduler's state";

// Reads the heads only: a report is read and verified when it is handed over. Records that the scheduler has precede
// the others.
Status read_log(store::Store &store, const std::string &name, HostReports &host) {
    const std::string path = host_directory(name) + "/" + log_file;
    std::vector<Held> all;
    for (std::uint64_t at = 0; at < host.log_length;) {
        const auto bytes = store.read(path, at, prefix_bytes + head_bytes_max);
        if (!bytes) return bytes.status();
        std::string_view rest = *bytes;
        const auto head = next_head(rest);
        if (!head) return head.status();
        const std::uint64_t length = bytes->size() - rest.size() + head->body_length;
        if (length > host.log_length - at) return fail(Code::io_error, "a record is longer than its log");
        all.push_back({0, head->key, head->incarnation, head->first_seq, head->last_seq, head->ended, at, length});
        at += length;
    }
    // Numbers are contiguous, and the last one is known.
    std::uint64_t number = host.last;
    for (auto it = all.rbegin(); it != all.rend() && number > host.forgotten; ++it, --number) {
        DCS_REQUIRE(number > host.forgotten, "held reports have numbers above `forgotten`");
        it->number = number;
        host.held.push_front(*it);
    }
    return Status::ok();
}

struct Builder {
    store::Store &store;
    Rebuilt out;
    bool numbers_lost = false;

    void report(const std::string &path, const std::string &what, const char *lost) {
        out.reports.push_back(path + ": " + what + "; " + lost);
    }

    Status read_name() {
        const std::string path = std::string(identity_directory) + "/" + identity_file;
        const auto bytes = store.read(path, 0, small_file);
        if (!bytes && bytes.status().code == Code::not_found) return Status::ok();
        if (!bytes) return bytes.status();
        ByteReader r(*bytes);
        const std::uint8_t version = r.u8();
        const std::uint64_t name = r.u64();
        const std::uint32_t sum = r.u32();
        // Numbers are not valid under a new name, but the held reports are still handed over.
        if (!r.at_end() || version != identity_version || sum != crc32c(std::string_view(*bytes).substr(0, 9)))
            report(path, "damaged", "the store gets a new name");
        else out.state.store = name;
        return Status::ok();
    }

    Status read_host(const std::string &name) {
        const std::string directory = host_directory(name);
        const auto bytes = store.read(directory + "/" + state_file, 0, small_file);
        if (!bytes && bytes.status().code == Code::not_found) return Status::ok();
        auto host = bytes ? decode_host(*bytes) : Result<HostReports>(bytes.status());
        if (!host) {
            report(directory, host.status().text, reports_lost);
            out.first.push_back({directory, host_tree, {}, true});
            numbers_lost = true;
            return Status::ok();
        }
        HostReports read = *host;
        if (const Status s = read_log(store, name, read); !s) {
            report(directory, s.text, reports_lost);
            read.held.clear();
            read.forgotten = read.last;
        }
        load_host(out.state, name, std::move(read));
        return Status::ok();
    }
};

}  // namespace

std::string host_directory(const std::string &host) {
    return std::string(hosts_directory) + "/" + percent_encoded(host, plain);
}

std::optional<std::string> host_of(std::string_view name) {
    return name.empty() ? std::nullopt : percent_decoded(name, plain);
}

Result<Head> next_head(std::string_view &bytes) {
    ByteReader prefix(bytes);
    const std::uint32_t length = prefix.u32(), sum = prefix.u32();
    if (!prefix.good() || length > head_bytes_max || length > prefix.left()) return damaged("a record without a head");
    const std::string_view text = prefix.raw(length);
    if (crc32c(text) != sum) return damaged("a record's head has a wrong checksum");
    ByteReader r(text);
    if (r.u8() != head_version) return damaged("a record of another format");
    Head head;
    head.key.session.user = std::string(r.text());
    head.key.session.number = static_cast<std::int32_t>(r.u32());
    head.key.grain = static_cast<GrainNumber>(r.u32());
    head.incarnation = r.u32();
    head.first_seq = r.u32();
    head.last_seq = r.u32();
    head.ended = r.u8() != 0;
    head.body_length = r.u32();
    head.body_sum = r.u32();
    if (!r.at_end()) return damaged("a record's head cannot be decoded");
    bytes.remove_prefix(prefix_bytes + length);
    return head;
}

std::string encode_host(const HostReports &host) {
    ByteWriter w;
    w.u8(host_version);
    w.u64(host.last);
    w.u64(host.forgotten);
    w.u64(host.log_length);
    w.u32(crc32c(w.bytes()));
    return std::move(w.bytes());
}

Result<HostReports> decode_host(std::string_view file) {
    if (file.size() < 4) return damaged("it is truncated");
    ByteReader r(file);
    const std::uint8_t version = r.u8();
    HostReports host{.last = r.u64(), .forgotten = r.u64(), .log_length = r.u64()};
    const std::uint32_t sum = r.u32();
    if (!r.at_end() || sum != crc32c(file.substr(0, file.size() - 4))) return damaged("its checksum is wrong");
    if (version != host_version) return damaged("it has another format");
    if (host.forgotten > host.last) return damaged("its numbers are inconsistent");
    return host;
}

const store::Forest &forest() {
    static const store::Forest all = {
        {identity_tree, {}, node(identity_file, Action::replace)},
        {host_tree, {{node(log_file, Action::append)}}, node(state_file, Action::replace)},
    };
    return all;
}

std::shared_ptr<const std::string> pack(const wire::GrainReport &report) {
    const std::string body = wire::pack(report);
    ByteWriter head;
    head.u8(head_version);
    head.text(report.key.user);
    head.u32(static_cast<std::uint32_t>(report.key.session));
    head.u32(static_cast<std::uint32_t>(report.key.grain));
    head.u32(report.incarnation);
    head.u32(report.first_seq);
    head.u32(report.last_seq);
    head.u8(report.ended);
    head.u32(static_cast<std::uint32_t>(body.size()));
    head.u32(crc32c(body));
    DCS_REQUIRE(head.size() <= head_bytes_max, "the size of a head is valid");
    ByteWriter w;
    w.bytes().reserve(prefix_bytes + head.size() + body.size());
    w.u32(static_cast<std::uint32_t>(head.size()));
    w.u32(crc32c(head.bytes()));
    w.raw(head.bytes());
    w.raw(body);
    return std::make_shared<const std::string>(std::move(w.bytes()));
}

Result<wire::GrainReport> read_report(store::Store &store, const std::string &host, const Held &held) {
    DCS_REQUIRE(held.length > prefix_bytes, "a record has a head");
    const auto bytes = store.read(host_directory(host) + "/" + log_file, held.offset, held.length);
    if (!bytes) return bytes.status();
    std::string_view rest = *bytes;
    auto head = next_head(rest);
    if (!head) return head.status();
    if (rest.size() != head->body_length || crc32c(rest) != head->body_sum)
        return fail(Code::io_error, "a checksum is wrong");
    return wire::unpack_report(rest);
}

void TurnChanges::add(const State &before, const Change &change) {
    if (!durable(change)) return;
    const bool holds = std::holds_alternative<Hold>(change);
    const std::string &name = holds ? std::get<Hold>(change).host : std::get<Forget>(change).host;
    const HostReports *known = before.host(name);
    const std::uint64_t length = known ? known->log_length : 0;
    Log &log = hosts_.try_emplace(name, Log{length, {}, false}).first->second;
    if (!holds) {
        // Removes the whole log if nothing else is held.
        const bool all = known->held.empty() || known->held.back().number <= std::get<Forget>(change).number;
        if (all) log = Log{0, {}, true};
        return;
    }
    const std::string &packed = *std::get<Hold>(change).packed;
    DCS_REQUIRE(log.old_length + log.bytes.size() == length, "a record follows the last one");
    log.bytes += packed;
    log.cut = true;
    bytes_ += packed.size();
}

std::vector<store::TreeUpdate> TurnChanges::plan(const State &after) {
    std::vector<store::TreeUpdate> updates;
    for (auto &[name, log] : hosts_) {
        store::TreeUpdate update{host_directory(name), host_tree, {}, false};
        if (log.cut) update.nodes.push_back({log_file, std::move(log.bytes), log.old_length});
        update.nodes.push_back({state_file, encode_host(after.hosts.at(name)), 0});
        updates.push_back(std::move(update));
    }
    return updates;
}

store::TreeUpdate name_store(std::uint64_t name) {
    DCS_REQUIRE(name != 0, "a store's name is not 0");
    ByteWriter w;
    w.u8(identity_version);
    w.u64(name);
    w.u32(crc32c(w.bytes()));
    return {identity_directory, identity_tree, {{identity_file, std::move(w.bytes()), 0}}, false};
}

Result<Rebuilt> rebuild(store::Store &store) {
    Builder builder{store, {}};
    if (Status s = builder.read_name(); !s) return s;
    const auto names = store.list(hosts_directory);
    if (!names && names.status().code != Code::not_found) return names.status();
    for (std::string name : names ? *names : std::vector<std::string>{}) {
        if (!name.empty() && name.back() == '/') name.pop_back();
        const auto host = host_of(name);
        if (!host) {
            builder.report(std::string(hosts_directory) + "/" + name, "not the name of a host", "it is left unchanged");
            continue;
        }
        if (Status s = builder.read_host(*host); !s) return s;
    }
    if (builder.numbers_lost) builder.out.state.store = 0;
    if (const std::string wrong = check(builder.out.state); !wrong.empty())
        return fail(Code::internal, "the rebuilt state is inconsistent: " + wrong);
    return std::move(builder.out);
}

}  // namespace dcs::backup::record
