#pragma once
// Every limit of the system in one place, with its reason.
#include <cstddef>
#include <cstdint>

namespace dcs::limits {

// A grain's standard input given inline with d_gexec. Larger data belongs into files.
inline constexpr std::size_t input_bytes = 16u << 20;
// argv and environment together: what a Linux execve takes comfortably.
inline constexpr std::size_t argv_items = 4096;
inline constexpr std::size_t argv_env_bytes = 1u << 20;
// What one report may carry of checkpoint + output increments; a grain that writes more between
// two checkpoints is ended with a result that says so.
inline constexpr std::size_t report_bytes = 64u << 20;
// Frames: requests of control programs (input + argv + room), and of grain servers.
inline constexpr std::size_t user_frame_bytes = input_bytes + argv_env_bytes + (1u << 16);
inline constexpr std::size_t server_frame_bytes = report_bytes + (1u << 20);
// Before a peer said who it is, it gets no more than this.
inline constexpr std::size_t hello_frame_bytes = 4096;
// A certificate, or a request for one, of the pool: ours have half a kilobyte.
inline constexpr std::size_t certificate_bytes = 2048;
// TLS doors. Peers that have not shown a certificate: all of them, of one network, and what one may send until its
// handshake is over. Connections of one key of a host: the old one and its successors.
inline constexpr std::size_t strangers = 512;
inline constexpr std::size_t strangers_of_network = 64;
inline constexpr std::size_t handshake_bytes = 32 * 1024;
inline constexpr std::size_t connections_of_certificate = 4;
// Codes for joining that can be used; hosts that wait for approval, and of one address.
inline constexpr std::size_t join_codes = 4096;
inline constexpr std::size_t pending_hosts = 64;
inline constexpr std::size_t pending_of_address = 4;
// d_gwait hands out this much of each stream as strings (paper 3.2: "the first 20 K").
inline constexpr std::size_t gwait_text_bytes = 20 * 1024;
// Grains submitted, or results taken, by one call. What a commit and a frame cost is small when a thousand
// share it, and other people's calls wait for no more than that.
inline constexpr std::size_t batch_grains = 1024;
// Parameters of the grains of one such call; one that has more goes alone.
inline constexpr std::size_t batch_bytes = 4u << 20;
// Outputs of the results of one such call, all that is read through for them; one with more comes alone.
inline constexpr std::size_t batch_output_bytes = 1u << 20;
// One piece of an output that is fetched as a stream.
inline constexpr std::size_t fetch_chunk_bytes = 256 * 1024;
// Read through and checked before the first piece of it is handed out; the loop waits that long.
inline constexpr std::size_t checked_at_once = 64u << 20;
// Of which it is remembered that this was done.
inline constexpr std::size_t verified_places = 4096;
// A settled grain of a closed session with no more than this in its files gives up its own tree.
inline constexpr std::size_t packed_grain_bytes = 256 * 1024;
// Packed in one turn: so many grains, or bytes.
inline constexpr std::size_t packed_at_once = 512;
inline constexpr std::size_t packed_bytes_at_once = 4u << 20;
// Kept of the times that a grain changed places, and of the words to each.
inline constexpr std::size_t moves_kept = 8;
inline constexpr std::size_t move_detail_bytes = 160;
// Kinds of grains that one session may have waiting, by class and what they ask for: a host looks at each.
inline constexpr std::size_t shapes_per_session = 1024;
// Staged, brought back or otherwise named by one grain: its record lists them.
inline constexpr std::size_t grain_files = 1024;
inline constexpr std::size_t digest_bytes = 32;  // SHA-256
// One content of the library: a program, a staged file, an input or an output of a grain. A gigabyte goes
// over a link in minutes; what is larger belongs onto a file server.
inline constexpr std::uint64_t content_bytes = 1u << 30;
inline constexpr std::size_t content_piece_bytes = fetch_chunk_bytes;
// Names of a grain's files: each, and together, as in its record.
inline constexpr std::size_t file_name_bytes = 1024;
inline constexpr std::size_t file_names_bytes = 64 * 1024;
// Contents on their way in at one time: of one user or host, and of all.
inline constexpr std::size_t content_uploads_each = 64;
inline constexpr std::size_t content_uploads = 1024;
// A content that no grain names stays so long after it was last put or asked for.
inline constexpr std::int64_t content_unnamed_s = 24 * 3600;
// The same of what a start finds.
inline constexpr std::int64_t content_found_s = 3600;
// The library leaves so much of its disk to the backing store.
inline constexpr std::uint64_t library_leaves_bytes = 256u << 20;
// What the passive backup holds on its disk at most; above it servers keep their reports themselves.
inline constexpr std::size_t backup_held_mb = 4096;
// On their way from the backup to the scheduler, unanswered.
inline constexpr std::size_t hand_over_reports = 256;
inline constexpr std::size_t hand_over_bytes = 64u << 20;
// login names, control idents, host names, labels
inline constexpr std::size_t name_bytes = 64;
inline constexpr std::size_t label_bytes = 256;
inline constexpr std::size_t path_bytes = 4096;
inline constexpr std::size_t message_bytes = 4096;  // a grain's status message
// Inputs decided in one turn, a batch counted by its grains; bounds the latency of a commit, not the throughput.
inline constexpr std::size_t inputs_per_turn = 4096;
// Bytes of payload gathered in one turn before it commits.
inline constexpr std::size_t bytes_per_turn = 128u << 20;
// Rows in one answer to a query; the rest comes with the next request (`after`).
inline constexpr std::size_t query_rows = 4096;
// Grains of which one question reads the parameters and messages.
inline constexpr std::size_t detailed_rows = 128;
// Connections: all of them, and of one user.
// Ten thousand grain servers keep one each.
inline constexpr std::size_t connections = 16384;
inline constexpr std::size_t connections_per_user = 512;
// One page of an export; a single grain may be longer, but never than a frame. Streams above the
// second figure are fetched by themselves.
inline constexpr std::size_t export_page_bytes = 4u << 20;
inline constexpr std::size_t export_inline_bytes = 32 * 1024;
// An import is held in memory until it is committed, in one turn: one of them, and those of all
// users together.
inline constexpr std::size_t import_bytes = 1u << 30;
inline constexpr std::size_t import_bytes_of_all = 2u << 30;
// The event log of an import: it is searched on arrival, and again by each reader of the session. A million
// grains have about fifty bytes each in theirs; an eighth of an import is what a log may be beside what it tells of.
inline constexpr std::size_t import_log_bytes = import_bytes / 8;
// Slots of a host; and grains that its server may say it holds: twice that, after its slots were made fewer.
inline constexpr std::size_t host_slots = 65536;
inline constexpr std::size_t held_grains = 2 * host_slots;
// Hosts that one grain must not be tried on, as an import may name them.
inline constexpr std::size_t nogo_items = 4096;
// Checkpoint and unread input that an imported grain may have: they travel in one launch.
inline constexpr std::size_t restart_bytes = report_bytes - (1u << 20);
// Less free room than this where the backing store lies is worth a warning.
inline constexpr std::size_t disk_low_bytes = 64u << 20;
inline constexpr std::size_t disk_low_files = 2048;
// Default number of attempts of a grain (paper 5.4: fails three times, then is given up).
inline constexpr int attempts = 3;
inline constexpr std::int32_t cores = 65536;  // that a grain can ask for
// Named resources (base/resources.h): of a grain, of a host or the pool; indices of each; the length of a name.
inline constexpr std::size_t grain_resources = 8;
inline constexpr std::size_t host_resources = 32;
inline constexpr std::size_t resource_indices = 1024;
inline constexpr std::size_t resource_name = 32;
// As text: what a grain asks for, and what a host offers.
inline constexpr std::size_t demand_bytes = grain_resources * (resource_name + 12);
inline constexpr std::size_t offer_bytes = host_resources * (resource_name + 4 + 6 * resource_indices);
// Innocent ends of a grain's own (status 74 or 85, reports that do not fit, files that cannot be read) without a new
// checkpoint between them: with so many it has failed. `dcs doctor` names a grain from the smaller number on.
inline constexpr int returns = 10;
inline constexpr int returns_told = 3;
// Longest rest between two such starts, or two that the host's trouble prevented.
inline constexpr std::int64_t rest_s = 3600;
// Token entries without sessions age out.
inline constexpr std::int64_t token_age_s = 24 * 3600;

}  // namespace dcs::limits
