#pragma once
// What a control program and the scheduler say to each other. Every struct has one serialize(): the same field list feeds
// the wire, the JSON of the commands, "names what differs" and docs/PROTOCOL.md.
//
// A connection starts with Hello. After that each request gets exactly one reply frame that carries the request's id; the
// kind of the reply is the one named beside the request, or ErrorReply. Requests are retried with the same id after a
// broken connection.
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "wire/content_calls.h"
#include "wire/demands.h"
#include "wire/form_8.h"
#include "wire/system_row.h"
#include "wire/wait_calls.h"

namespace dcs::wire {

// First frame on a connection. `protocol` is the opening form in every message that has this field; the forms that the
// sender reads are in its offer (form.h). `token` is empty for callers that only query or that request a token.
// The socket's peer credentials identify the user.
struct Hello {
    std::uint16_t protocol = opening_form;
    std::string token;  // 32 bytes or none
};
struct Welcome {
    std::uint64_t epoch = 0;  // of the backing store; grows when a backup is promoted
    std::string user;         // the login name that the scheduler sees
};

struct GetAuth {
    std::string ident;
};  // -> AuthReply
struct AuthReply {
    std::string token;
};

enum class OpenMode : std::uint8_t { open, resume, reopen };
enum class OpenedAs : std::uint8_t { fresh, resumed, replay };
struct OpenSession {  // -> OpenReply
    std::int32_t number = 0;
    OpenMode mode = OpenMode::open;
    bool sent_reset = false;
    std::string command, label;  // of a new session: its command line, and the user's label; for display
    std::int32_t nice = 0;       // of a new session, as in SetSession
    std::string run;             // which run of the program this is, for those that it takes the session from
    bool for_failed = false;     // with sent_reset: a closed session in which grains failed becomes active
};
struct OpenReply {
    OpenedAs as = OpenedAs::fresh;
    std::int32_t sent = 0;  // next index of d_gwait
    std::int32_t completed = 0;
    std::int32_t results = 0;  // indices of results that were given out
};
struct CloseSession {
    std::string user;
    std::int32_t number = 0;
    std::int32_t acknowledged = -1;
};  // -> Done
struct CleanSession {
    std::string user;
    std::int32_t number = 0;
};  // -> Done
// Changes the settings of an active session. A session comes after all sessions that are less nice, whatever their user
// and age; equally nice sessions are ordered by age.
struct SetSession {  // -> Done
    std::string user;
    std::int32_t number = 0;
    std::int32_t nice = -1;  // 0 to most_nice; -1: unchanged
    bool set_label = false;
    std::string label;
};
inline constexpr std::int32_t most_nice = 19;

// The parameters of a grain. All of them except the label count for idempotence.
struct GrainSpec {
    std::vector<std::string> argv;  // argv[0]: path of the executable
    std::vector<std::string> env;   // NAME=value
    std::string input;              // standard input, any bytes
    Demands demands;
    std::string directory;         // working directory; empty: a private one
    std::string label;             // for display
    std::vector<GrainFile> files;  // staged files, programs, input and outputs
};
struct Gexec {  // -> Done
    std::int32_t session = 0, grain = 0;
    GrainSpec spec;
    // A recorded grain may differ in demands, and then in environment: a ready one takes these. `again`: one that failed,
    // or unless `only_failed` was killed, begins again as it is here; `from_start`: past a checkpoint; `in_order`: but for
    // one after whose failure grains were submitted, which is refused.
    bool new_demands = false, new_environment = false, again = false, from_start = false;
    bool only_failed = false, in_order = false;
};
struct Gkill {
    std::string user;
    std::int32_t session = 0, grain = 0;
};  // -> Done
// Of a submission: how many of its grains an earlier request has recorded, and how many of these were killed. Others: 0.
struct Done {
    std::int32_t repeated = 0, killed = 0;
};

enum class Stream : std::uint8_t { out, err, checkpoint, message, input, file, log };  // log: of the session itself
struct Fetch {                                                                         // -> Piece
    std::string user;
    std::int32_t session = 0, grain = 0;
    Stream stream = Stream::out;
    std::uint64_t offset = 0;
    std::uint32_t max = 0;
    std::string file;  // name of an output file, below the working directory
    // Of out and err: after the recorded bytes also those that the grain has written since, if its host answers. They
    // are not durable: when the grain begins again, the next incarnation writes them again.
    bool live = false;
};
// Answer to a live Fetch: `recorded` bytes of `total` are durable, the rest was written by that incarnation.
struct Piece {
    std::uint64_t total = 0;
    std::string bytes;
    std::uint64_t recorded = 0;
    std::uint32_t incarnation = 0;
};

enum class QueryType : std::uint8_t { system, hosts, sessions, grains, grain };
// Selects: user empty = the caller (sessions: all users whom the caller may see); grains of one
// session in ascending order after `after`, filtered by `status` ("" = all); grain = one, with argv, and behind it those
// of `with` that can be read, as many as fit (an earlier release: that one only);
// hosts of one `status`; sessions strictly after (`after_user`, `after`), in order of user and number.
struct Query {  // -> QueryReply
    QueryType type = QueryType::system;
    std::string user;
    std::int32_t session = -1;
    std::int32_t grain = -1;
    std::int32_t after = -1;
    std::string status;
    std::string after_user;
    std::vector<std::int32_t> with;
};
struct HostRow {
    std::string name, state, binary_class;  // state: unknown active delinquent dead no_job
    std::uint32_t host_class = 0;
    std::int32_t slots = 0, running = 0, ending = 0;  // ending: killed ones beside the running, with processes
    double last_call_in_s = -1, interval_s = 0, alert_s = 0, limit_s = 0, extended_s = 0, load = 0;
    std::int64_t free_memory_kb = 0;
    std::int32_t cores = 0, cores_used = 0;
    std::int64_t memory_mb = 0, memory_used_mb = 0;  // demanded by grains that run there
    bool connected = false, drained = false;
    std::string settings;            // that d_sethost changed against the host table, "slots=0 ..."
    std::string note;                // for display: "checked: alive, waits until ...", "on probation"
    std::vector<std::string> users;  // permitted; empty: all
    // Grains that failed there and then finished elsewhere: in total, and since a grain last finished there.
    std::int64_t blamed = 0;
    std::int32_t blamed_lately = 0;
    // Of its grains, since the backing store was created.
    std::int64_t launched = 0, finished = 0, failed = 0, given_back = 0;
    double cpu_s = 0;
    std::string confinement;            // its rungs as words (base/confinement.h); empty: it has not called yet
    std::string class_names;            // of host_class, with commas: "gpu,0x8"; empty if it has no names
    std::int32_t time_zone_offset = 0;  // minutes that its local time is ahead of the scheduler's, by the host table
    std::string resources;              // named ones that it offers, "gpu=[0,1],scratch_gb=200" (base/resources.h)
    std::string resources_used;         // of these, by running grains: "gpu=1"
    std::int64_t expires_s = 0;         // wall clock, of its certificate; 0: it has none, or that is not known
    std::string version;                // of its server's release; empty: it has not called yet, or does not say it
    std::string address;                // from which its server is connected; empty: not, or by a socket
    std::string limits;                 // of each grain there, by its server: "memory_mb=64,processes=512"
    std::string drain_reason;           // that its operator gave
};
// A host of the table without a grain server: of control programs (role client), or of the passive backup.
struct MemberRow {
    std::string name, role, address;           // address: of a backup
    bool joined = false, connected = false;    // connected: of a backup
    std::int64_t joined_s = 0, expires_s = 0;  // wall clock, of its certificate; 0: not known
    std::vector<std::string> users;            // of a client: who may call from it; empty: all but root
};
struct SessionRow {
    std::string user;
    std::int32_t session = 0;
    std::string ident, state;  // state: active terminated damaged
    std::int32_t ready = 0, running = 0, finished = 0, killed = 0, sent = 0;
    double saved_cpu_s = 0;                 // of its grains, see GrainRow
    std::string command, label;             // for its owner and operators
    std::int32_t nice = 0, failed = 0;      // failed: finished with a signal, a code, or without an output
    double submitted_s = 0, settled_s = 0;  // since 1970: when it was opened; when a grain last ended. 0: not known
    std::int32_t stuck = 0;                 // asked for alone: of the ready ones, that no host can take
    std::uint64_t stored_bytes = 0;         // that it takes on the scheduler's disk
};
struct StoredRow {  // what a user takes on the scheduler's disk, by sessions and by staged programs and files
    std::string user;
    std::uint64_t sessions_bytes = 0, contents_bytes = 0;
};
struct MoveRow {         // one departure of a grain from a host
    std::string reason;  // a word, such as usurped; docs/SCHEDULING.md lists them
    std::string host;    // that it left
    std::string detail;  // for display
    std::uint32_t incarnation = 0;
    double age_s = -1;  // -1: before the scheduler's last start
};
struct GrainRow {
    std::int32_t session = 0, grain = 0;
    std::string user, state, host, label;  // state: ready running finished killed
    std::uint32_t incarnation = 0;
    std::int32_t restarts = 0, failures = 0, exit_code = 0, signal = 0, result_index = -1;
    double cpu_s = 0, run_cpu_s = 0;  // all incarnations; the current or last one
    double saved_cpu_s = 0;           // that incarnations saved by starting from a checkpoint
    double last_contact_s = -1, checkpoint_age_s = -1;
    std::uint64_t out_length = 0, err_length = 0, checkpoint_length = 0;
    Demands demands;
    // type grain only
    std::string message;  // latest status message
    std::vector<std::string> argv;
    std::vector<std::string> nogo;    // hosts on which it must not be tried
    std::vector<MoveRow> moves;       // the latest, oldest first
    std::vector<GrainFile> files;     // its outputs; in a list the first one that it ended without
    std::int32_t starts = 0;          // of a process, on all hosts
    double user_s = 0, system_s = 0;  // of all incarnations; so are these, but for max_rss_kb, the greatest
    std::int64_t max_rss_kb = 0, minor_faults = 0, major_faults = 0, in_blocks = 0, out_blocks = 0;
    // type grain only
    std::string class_names;       // as in HostRow
    std::string directory;         // as submitted
    std::vector<std::string> env;  // NAME=value, as submitted
    std::string note;              // for display: it has ended, but its result cannot be recorded yet
    std::int64_t uid = -1;         // of its user's grains on its host; -1: not known
};
struct QueryReply {
    SystemRow system;
    std::vector<HostRow> hosts;
    std::vector<SessionRow> sessions;
    std::vector<GrainRow> grains;
    bool more = false;               // ask again with `after` = the last row's number (and `after_user`)
    std::vector<MemberRow> members;  // with hosts of any status
    std::int32_t last_number = -1;   // with sessions: the highest of removed ones, of the asked user or the caller
    std::vector<StoredRow> stored;   // with the first sessions: of the asked user, or of all
};

struct ErrorReply {
    std::int32_t code = 0;
    std::string text;
    std::int32_t grain = -1;  // of a batch: the grain that caused the refusal
};

// The highest value of each enum: what a Reader takes.
constexpr OpenMode last_of(OpenMode) { return OpenMode::reopen; }
constexpr OpenedAs last_of(OpenedAs) { return OpenedAs::replay; }
constexpr Stream last_of(Stream) { return Stream::log; }
constexpr QueryType last_of(QueryType) { return QueryType::grain; }

// clang-format off
template <class A> void serialize(A &a, Hello &x, unsigned) {
    a & DCS_FIELD(protocol) & at_most(sizeof(Token), DCS_FIELD(token));
}
template <class A> void serialize(A &a, Welcome &x, unsigned) {
    a & DCS_FIELD(epoch) & at_most(limits::name_bytes, DCS_FIELD(user));
}
template <class A> void serialize(A &a, GetAuth &x, unsigned) { a & at_most(limits::name_bytes, DCS_FIELD(ident)); }
template <class A> void serialize(A &a, AuthReply &x, unsigned) { a & at_most(sizeof(Token), DCS_FIELD(token)); }
template <class A> void serialize(A &a, OpenSession &x, unsigned) { 
    a & DCS_FIELD(number) & DCS_FIELD(mode) & DCS_FIELD(sent_reset)
      & at_most(limits::label_bytes, shown_since<9>(DCS_FIELD(command)))
      & at_most(limits::label_bytes, shown_since<9>(DCS_FIELD(label))) & since<9>(DCS_FIELD(nice))
      & at_most(limits::label_bytes, shown_since<9>(DCS_FIELD(run))) & shown_since<9>(DCS_FIELD(for_failed));
}
template <class A> void serialize(A &a, OpenReply &x, unsigned) {
    a & DCS_FIELD(as) & DCS_FIELD(sent) & DCS_FIELD(completed) & shown_since<9>(DCS_FIELD(results));
}
template <class A> void serialize(A &a, CloseSession &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(number) & DCS_FIELD(acknowledged);
}
template <class A> void serialize(A &a, CleanSession &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(number);
}
template <class A> void serialize(A &a, SetSession &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(number) & DCS_FIELD(nice) & DCS_FIELD(set_label)
      & at_most(limits::label_bytes, DCS_FIELD(label));
}
template <class A> void serialize(A &a, GrainSpec &x, unsigned) {
    if (positional(a)) return list_of_spec_8(a, x);
    a & at_most(limits::argv_items, DCS_FIELD(argv)) & at_most(limits::argv_items, DCS_FIELD(env)) & DCS_FIELD(input)
      & DCS_FIELD(demands) & at_most(limits::path_bytes, DCS_FIELD(directory))
      & at_most(limits::label_bytes, DCS_FIELD(label)) & at_most(limits::grain_files, DCS_FIELD(files));
}
template <class A> void serialize(A &a, Gexec &x, unsigned) { 
    a & DCS_FIELD(session) & DCS_FIELD(grain) & DCS_FIELD(spec) & shown_since<9>(DCS_FIELD(new_demands))
      & shown_since<9>(DCS_FIELD(new_environment)) & shown_since<9>(DCS_FIELD(again)) & shown_since<9>(DCS_FIELD(from_start))
      & shown_since<9>(DCS_FIELD(only_failed)) & shown_since<9>(DCS_FIELD(in_order));
}
template <class A> void serialize(A &a, Gkill &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain);
}
template <class A> void serialize(A &a, Done &x, unsigned) {
    a & shown_since<9>(DCS_FIELD(repeated)) & shown_since<9>(DCS_FIELD(killed));
}
template <class A> void serialize(A &a, Fetch &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain) & DCS_FIELD(stream)
      & DCS_FIELD(offset) & DCS_FIELD(max)
      & at_most(limits::path_bytes, DCS_FIELD(file)) & shown_since<9>(DCS_FIELD(live));
}
template <class A> void serialize(A &a, Piece &x, unsigned) {
    a & DCS_FIELD(total) & at_most(limits::fetch_chunk_bytes, DCS_FIELD(bytes)) & shown_since<9>(DCS_FIELD(recorded))
      & shown_since<9>(DCS_FIELD(incarnation));
}
template <class A> void serialize(A &a, Query &x, unsigned) {
    a & DCS_FIELD(type) & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session) & DCS_FIELD(grain)
      & DCS_FIELD(after) & at_most(limits::name_bytes, DCS_FIELD(status))
      & DCS_FIELD(after_user) & at_most(limits::detailed_rows, shown_since<9>(DCS_FIELD(with)));
}
template <class A> void serialize(A &a, HostRow &x, unsigned) {
    a & at_most(limits::path_bytes, DCS_FIELD(name)) & at_most(limits::name_bytes, DCS_FIELD(state))
      & at_most(limits::name_bytes, DCS_FIELD(binary_class)) & DCS_FIELD(host_class) & DCS_FIELD(slots)
      & DCS_FIELD(running) & DCS_FIELD(last_call_in_s) & DCS_FIELD(interval_s) & DCS_FIELD(alert_s) & DCS_FIELD(limit_s)
      & DCS_FIELD(extended_s) & DCS_FIELD(load) & DCS_FIELD(free_memory_kb) & DCS_FIELD(cores) & DCS_FIELD(cores_used)
      & DCS_FIELD(memory_mb) & DCS_FIELD(memory_used_mb) & DCS_FIELD(connected) & DCS_FIELD(drained) & DCS_FIELD(settings)
      & DCS_FIELD(note) & DCS_FIELD(users) & DCS_FIELD(blamed) & DCS_FIELD(blamed_lately)
      & DCS_FIELD(launched) & DCS_FIELD(finished) & DCS_FIELD(failed) & DCS_FIELD(given_back) & DCS_FIELD(cpu_s)
      & DCS_FIELD(confinement) & shown_since<9>(DCS_FIELD(class_names))
      & shown_since<9>(DCS_FIELD(time_zone_offset)) & shown_since<9>(DCS_FIELD(resources))
      & shown_since<9>(DCS_FIELD(resources_used)) & shown_since<9>(DCS_FIELD(expires_s))
      & at_most(limits::name_bytes, shown_since<9>(DCS_FIELD(version)))
      & at_most(limits::path_bytes, shown_since<9>(DCS_FIELD(address)))
      & at_most(limits::path_bytes, shown_since<9>(DCS_FIELD(limits)))
      & at_most(limits::label_bytes, shown_since<9>(DCS_FIELD(drain_reason))) & shown_since<9>(DCS_FIELD(ending));
}
template <class A> void serialize(A &a, MoveRow &x, unsigned) {
    a & DCS_FIELD(reason) & at_most(limits::name_bytes, DCS_FIELD(host)) & DCS_FIELD(detail) & DCS_FIELD(incarnation)
      & DCS_FIELD(age_s);
}
template <class A> void serialize(A &a, MemberRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(name)) & at_most(limits::name_bytes, DCS_FIELD(role))
      & at_most(limits::path_bytes, DCS_FIELD(address)) & DCS_FIELD(joined) & DCS_FIELD(connected)
      & DCS_FIELD(joined_s) & DCS_FIELD(expires_s) & DCS_FIELD(users);
}
template <class A> void serialize(A &a, SessionRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(session)
      & at_most(limits::name_bytes, DCS_FIELD(ident)) & at_most(limits::name_bytes, DCS_FIELD(state))
      & DCS_FIELD(ready) & DCS_FIELD(running)
      & DCS_FIELD(finished) & DCS_FIELD(killed) & DCS_FIELD(sent) & DCS_FIELD(saved_cpu_s)
      & at_most(limits::label_bytes, shown_since<9>(DCS_FIELD(command)))
      & at_most(limits::label_bytes, shown_since<9>(DCS_FIELD(label))) & shown_since<9>(DCS_FIELD(nice))
      & shown_since<9>(DCS_FIELD(failed)) & shown_since<9>(DCS_FIELD(submitted_s))
      & shown_since<9>(DCS_FIELD(settled_s)) & shown_since<9>(DCS_FIELD(stuck))
      & shown_since<9>(DCS_FIELD(stored_bytes));
}
template <class A> void serialize(A &a, StoredRow &x, unsigned) {
    a & at_most(limits::name_bytes, DCS_FIELD(user)) & DCS_FIELD(sessions_bytes) & DCS_FIELD(contents_bytes);
}
template <class A> void serialize(A &a, GrainRow &x, unsigned) {
    if (positional(a)) return list_of_row_8(a, x);
    a & DCS_FIELD(session) & DCS_FIELD(grain) & at_most(limits::name_bytes, DCS_FIELD(user))
      & at_most(limits::name_bytes, DCS_FIELD(state)) & at_most(limits::name_bytes, DCS_FIELD(host))
      & at_most(limits::label_bytes, DCS_FIELD(label)) & DCS_FIELD(incarnation) & DCS_FIELD(restarts)
      & DCS_FIELD(failures) & DCS_FIELD(exit_code) & DCS_FIELD(signal) & DCS_FIELD(result_index) & DCS_FIELD(cpu_s)
      & DCS_FIELD(run_cpu_s) & DCS_FIELD(saved_cpu_s) & DCS_FIELD(last_contact_s) & DCS_FIELD(checkpoint_age_s)
      & DCS_FIELD(out_length) & DCS_FIELD(err_length) & DCS_FIELD(checkpoint_length) & DCS_FIELD(demands)
      & DCS_FIELD(message) & at_most(limits::argv_items, DCS_FIELD(argv))
      & at_most(limits::nogo_items, DCS_FIELD(nogo)) & DCS_FIELD(moves) & at_most(limits::grain_files, DCS_FIELD(files))
      & shown_since<9>(DCS_FIELD(starts)) & shown_since<9>(DCS_FIELD(user_s)) & shown_since<9>(DCS_FIELD(system_s))
      & shown_since<9>(DCS_FIELD(max_rss_kb)) & shown_since<9>(DCS_FIELD(minor_faults))
      & shown_since<9>(DCS_FIELD(major_faults)) & shown_since<9>(DCS_FIELD(in_blocks))
      & shown_since<9>(DCS_FIELD(out_blocks)) & shown_since<9>(DCS_FIELD(class_names))
      & at_most(limits::path_bytes, shown_since<9>(DCS_FIELD(directory)))
      & at_most(limits::argv_items, shown_since<9>(DCS_FIELD(env))) & shown_since<9>(DCS_FIELD(note))
      & shown_since<9>(DCS_FIELD(uid));
}
template <class A> void serialize(A &a, QueryReply &x, unsigned) {
    a & DCS_FIELD(system) & DCS_FIELD(hosts) & DCS_FIELD(sessions) & DCS_FIELD(grains) & DCS_FIELD(more)
      & shown_since<9>(DCS_FIELD(members)) & shown_since<9>(DCS_FIELD(last_number))
      & shown_since<9>(DCS_FIELD(stored));
}
template <class A> void serialize(A &a, ErrorReply &x, unsigned) { a & DCS_FIELD(code) & DCS_FIELD(text) & DCS_FIELD(grain); }
// clang-format on

}  // namespace dcs::wire
