// Reads the state of the backup from its store, at the start.

#include "backupd/record/record.h"
#include "base/bytes.h"
#include "base/require.h"

namespace dcs::backup::record {
namespace {

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
