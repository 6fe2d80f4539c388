#include "scheduler/record/codec.h"

#include <algorithm>

#include "base/planted.h"
#include "scheduler/record/archive.h"
#include "scheduler/record/codec_0_1.h"

namespace dcs::record {
namespace {

// Far above any record; a length beyond it is damage and not worth a checksum run.
constexpr std::uint32_t max_body = 64u << 20;

struct Framed {
    std::string_view body;
    std::uint32_t sum = 0;
    const char *wrong = nullptr;  // why there is no record
};
// Off the front of `in`, which stays as it is if there is no record.
Framed take_framed(std::string_view &in) {
    ByteReader r(in);
    const std::uint64_t length = r.var();
    const std::uint32_t sum = r.u32();
    if (!r.good()) return {{}, 0, "it ends inside a record"};
    if (length > max_body || length > r.left()) return {{}, 0, "a record is longer than the file"};
    const std::string_view body = r.raw(length);
    in.remove_prefix(in.size() - r.left());
    return {body, sum};
}

Status does_not_decode() { return damaged("the record cannot be decoded"); }

// What a version byte means to this program.
Status check_version(std::uint8_t found, std::uint8_t released) {
    if (found == record_version || found == released) return Status::ok();
    const std::string has = "it has format " + std::to_string(found);
    if (found > record_version)
        return fail(Code::protocol, has + ", written by a newer release: this scheduler reads formats up to " +
                                        std::to_string(record_version));
    return damaged(has + ", which no release writes");
}

template <class T> std::string encode(const T &x) {
    ByteWriter w;
    w.u8(record_version);
    Writer(w, nullptr).fields(x);
    return framed(w.bytes());
}

// A file that is one record. `released`: the version of release 0.1, which `read_0_1` reads.
template <class T> Result<T> decode(std::string_view file, std::uint8_t released, void (*read_0_1)(ByteReader &, T &)) {
    auto body = next_body(file);
    if (!body) return body.status();
    if (!file.empty()) return damaged("it continues after its record");
    ByteReader r(*body);
    const std::uint8_t version = r.u8();
    if (Status s = check_version(version, released); !s) return s;
    T x;
    const HostIds none;  // tables name hosts by texts
    if (version == record_version) Reader(r, none).fields(x);
    else read_0_1(r, x);
    if (!r.at_end()) return does_not_decode();
    return x;
}

struct Beginning {
    std::uint8_t version = 0;
    GrainNumber number = 0;
};

// What every grain record begins with; leaves the reader behind it.
Result<Beginning> begin_grain(ByteReader &r) {
    Beginning b;
    b.version = r.u8();
    if (Status s = check_version(b.version, grain_0_1); !s) return s;
    const std::uint64_t number = r.var();
    b.number = static_cast<GrainNumber>(number);
    if (!r.good() || number > INT32_MAX) return does_not_decode();
    return b;
}

}  // namespace

std::string encode_grain(const core::State &state, GrainNumber number, const core::DurableGrain &grain) {
    DCS_REQUIRE(number >= 0 && grain.lease <= grain.incarnation, "only a valid grain is recorded");
    ByteWriter w;
    w.bytes().reserve(160);
    w.u8(record_version);
    w.var(static_cast<std::uint32_t>(number));
    Writer(w, &state).fields(grain);
    return framed(w.bytes());
}

Result<GrainEntry> next_grain(std::string_view &log) {
    const std::string_view all = log;
    auto body = next_body(log);
    if (!body) return body.status();
    ByteReader r(*body);
    const auto beginning = begin_grain(r);
    if (!beginning) return beginning.status();
    return GrainEntry{beginning->number, all.substr(0, all.size() - log.size())};
}

// Earlier programs let a silent host go on with a grain that might not be tried there any more.
static void let_run_where_it_runs(core::DurableGrain &grain) {
    if (!std::holds_alternative<core::Running>(grain.phase) || planted("record.runs_on_nogo")) return;
    const std::vector<core::HostId> &nogo = grain.course->nogo;
    if (std::find(nogo.begin(), nogo.end(), grain.lessee) != nogo.end())
        std::erase(grain.course.edit().nogo.edit(), grain.lessee);
}

Status take_verified(std::string_view &log, const HostIds &ids, core::DurableGrain &grain) {
    ByteReader r(take_framed(log).body);
    const std::uint8_t version = r.u8();
    r.var();  // its number
    if (version == record_version) Reader(r, ids).fields(grain);
    else get_0_1(r, grain, ids);
    let_run_where_it_runs(grain);
    return r.at_end() ? Status::ok() : does_not_decode();
}

Result<GrainRecord> decode_grain(std::string_view file, const HostIds &ids) {
    std::string_view rest = file;
    const auto entry = next_grain(rest);
    if (!entry) return entry.status();
    GrainRecord record{entry->number, {}};
    if (Status s = take_verified(file, ids, record.grain); !s) return s;
    if (!file.empty()) return damaged("it continues after its record");
    return record;
}

std::string encode_session(const core::SessionInfo &info) { return encode(info); }
Result<core::SessionInfo> decode_session(std::string_view file) {
    return decode<core::SessionInfo>(file, session_0_1, get_0_1);
}

std::string encode_auth(const AuthTable &table) { return encode(table); }
Result<AuthTable> decode_auth(std::string_view file) { return decode<AuthTable>(file, auth_0_1, get_0_1); }

std::string encode_hosts(const core::State &state) {
    HostsTable table;
    for (const core::Host &host : state.hosts)
        if (const core::DurableHost &durable = host; durable != core::DurableHost())
            table.hosts.emplace(host.config->name, durable);
    return encode(table);
}
Result<std::map<std::string, core::DurableHost>> decode_hosts(std::string_view file) {
    auto table = decode<HostsTable>(file, hosts_0_1, get_0_1);
    if (!table) return table.status();
    return std::move(table->hosts);
}

std::string encode_trust(const core::Trust &trust) { return encode(trust); }
Result<core::Trust> decode_trust(std::string_view file) { return decode<core::Trust>(file, trust_0_1, get_0_1); }

std::string encode_handed_over(const HandedOver &table) { return encode(HandedOverTable{table}); }
Result<HandedOver> decode_handed_over(std::string_view file) {
    auto table = decode<HandedOverTable>(file, handed_over_0_1, get_0_1);
    if (!table) return table.status();
    return std::move(table->hosts);
}

Status damaged(const std::string &what) { return fail(Code::io_error, what); }

std::string framed(const std::string &body) {
    DCS_REQUIRE(!body.empty() && body.size() <= max_body, "a record that is written can be read");
    ByteWriter w;
    w.bytes().reserve(body.size() + 9);
    w.var(body.size());
    w.u32(crc32c(body));
    w.raw(body);
    return std::move(w.bytes());
}

Result<std::string_view> next_body(std::string_view &in) {
    const Framed record = take_framed(in);
    if (record.wrong) return damaged(record.wrong);
    if (crc32c(record.body) != record.sum) return damaged("a checksum does not match");
    return record.body;
}

bool pass_record(std::string_view &in) { return take_framed(in).wrong == nullptr; }

}  // namespace dcs::record
