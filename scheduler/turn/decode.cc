#include "scheduler/turn/decode.h"

#include <algorithm>
#include <iterator>

#include "base/environment.h"
#include "base/load_limits.h"
#include "base/planted.h"
#include "pki/digest.h"
#include "scheduler/core/decisions.h"
#include "scheduler/record/read_blob.h"
#include "scheduler/turn/judge_report.h"
#include "scheduler/turn/payload.h"
#include "wire/checks.h"

namespace dcs::turn {
namespace {

// Of an import's stream: they take as long as deciding a small request.
constexpr std::size_t import_bytes_per_request = 4096;

Decoded refuse(Code code, std::string text) { return {.reply = wire::error_reply(fail(code, std::move(text)))}; }

Decoded nonsense(std::string text) {
    Decoded d = refuse(Code::protocol, text);
    d.close = true;
    d.note = std::move(text);
    return d;
}

// Servers learn it from the closed link; they repeat everything after reconnecting.
Decoded greet(DecodeContext &context, Connection &who, const wire::Hello &hello) {
    if (!hello.token.empty() && hello.token.size() != std::tuple_size<Token>::value)
        return nonsense("an authorization token must have 32 bytes, but this one has " +
                        std::to_string(hello.token.size()));
    who.greeted = true;
    who.has_token = !hello.token.empty();
    who.token = who.has_token ? pki::sha256(hello.token) : TokenHash{};
    return {.reply = wire::Welcome{context.state.epoch, who.user}};
}

core::GetAuth get_auth(Outside &outside, wire::GetAuth call) {
    core::GetAuth begin{.ident = std::move(call.ident), .fresh = outside.fresh_token()};
    begin.fresh_hash =
        pki::sha256(std::string_view(reinterpret_cast<const char *>(begin.fresh.data()), begin.fresh.size()));
    begin.wall_s = outside.wall_s();
    return begin;
}

bool differ_in_work(std::vector<std::string> before, std::vector<std::string> now) {
    std::vector<std::string> entries;
    std::ranges::sort(before);
    std::ranges::sort(now);
    std::ranges::set_symmetric_difference(before, now, std::back_inserter(entries));
    return !std::ranges::all_of(
        entries, [](std::string_view entry) { return is_of_the_login(entry.substr(0, entry.find('='))); });
}

// Of a submission that differs from this grain: with what the grain has of all that it may change.
void note_recorded(store::Store &store, const GrainKey &key, const core::Grain &there, wire::Gexec &call,
                   core::SubmitGrain &submit) {
    wire::GrainSpec &spec = call.spec;
    spec.label.clear();
    spec.demands = *there.demands;
    if (call.new_environment)
        if (const auto packed = record::read_params(store, key, there))
            if (auto recorded = wire::unpack_spec(*packed)) {
                submit.in_its_environment = !differ_in_work(recorded->env, spec.env);
                spec.env = std::move(recorded->env);
            }
    submit.as_demanded = pki::fingerprint(wire::pack(spec));
}

core::SubmitGrain submission(DecodeContext &context, const std::string &user, wire::Gexec call) {
    wire::GrainSpec &spec = call.spec;
    core::SubmitGrain submit;
    submit.session = call.session;
    submit.grain = call.grain;
    submit.demands = spec.demands;
    submit.input_length = wire::input_length(spec);
    submit.files = files_of(spec);
    submit.program = program_of(user, spec);
    std::string packed = wire::pack(spec);
    if (spec.label.empty()) {
        submit.fingerprint = pki::fingerprint(packed);
    } else {  // the label is for people; a new one is not another grain
        spec.label.clear();
        submit.fingerprint = pki::fingerprint(wire::pack(spec));
    }
    submit.params = payload_of(std::move(packed));
    submit.again = call.again;
    submit.from_start = call.from_start;
    submit.only_failed = call.only_failed;
    submit.in_order = call.in_order;
    const GrainKey key{{user, call.session}, call.grain};
    const core::Grain *there = call.new_demands ? context.state.grain(key) : nullptr;
    if (there != nullptr && there->fingerprint != submit.fingerprint)
        note_recorded(context.store, key, *there, call, submit);
    return submit;
}

// Turns a control program's message into its request; false for messages it must not send.
struct ToRequest {
    DecodeContext &context;
    const std::string &user;
    core::UserRequest *request;

    bool operator()(wire::GetAuth &m) {
        *request = get_auth(context.outside, std::move(m));
        return true;
    }
    bool operator()(wire::Gexec &m) {
        *request = submission(context, user, std::move(m));
        return true;
    }
    bool operator()(wire::GexecMany &m) {
        auto grains = std::make_shared<std::vector<core::SubmitGrain>>();
        grains->reserve(m.orders.size());
        for (wire::GrainOrder &order : m.orders)
            grains->push_back(
                submission(context, user,
                           wire::Gexec{m.session, order.grain, std::move(order.spec), m.new_demands, m.new_environment,
                                       m.again, m.from_start, m.only_failed, m.in_order}));
        *request = core::SubmitGrains{m.session, std::move(grains)};
        return true;
    }
    bool operator()(wire::CreateToken &m) {
        *request = create_code(context.outside, std::move(m));
        return true;
    }
    bool operator()(wire::ListTokens &) {
        *request = list_codes(context.outside);
        return true;
    }
    bool operator()(wire::ApproveHost &m) {
        *request = core::ApproveHost{std::move(m.host), std::move(m.words), m.replace != 0, context.outside.wall_s()};
        return true;
    }
    // A message that is a request as it is.
    template <class M> bool operator()(M &m) {
        constexpr bool is_request = is_one_of<M>(static_cast<const core::UserRequestOf *>(nullptr));
        if constexpr (is_request) *request = std::move(m);
        return is_request;
    }

private:
    template <class M, class... R> static constexpr bool is_one_of(const std::variant<R...> *) {
        return (std::is_same_v<M, R> || ...);
    }
};

Decoded take_piece(DecodeContext &context, const Arrival &arrival, const Connection &who, wire::ImportPiece &piece) {
    Status s =
        context.uploads.add(arrival.conn, who.user, context.outside.now(), std::move(piece), context.imports.held());
    if (!s) return refuse(s.code, std::move(s.text));
    return {.reply = wire::Done{}};
}

// An uploaded stream is read in slices and decided after that. Nothing was uploaded: only the core knows whether that
// is a repetition.
Decoded import_session(DecodeContext &context, const Arrival &arrival, const Connection &who,
                       const wire::ImportSession &order, core::UserCall call) {
    Decoded d;
    auto stream = context.uploads.take(arrival.conn, who.user, order);
    if (!stream && stream.status().code != Code::not_found) return refuse(stream.status().code, stream.status().text);
    core::ImportSession without{order.number, order.replace, nullptr};
    if (!stream) {
        call.request = std::move(without);
        d.input = std::move(call);
        return d;
    }
    if (Status s = core::may_import(context.state, call.caller, without); !s) return refuse(s.code, std::move(s.text));
    if (context.imports.of(who.user) >= limits::imports_waiting)
        return refuse(Code::limit, std::to_string(limits::imports_waiting) + " imports of " + who.user +
                                       " wait to be read already: repeat this one when one of them was answered");
    d.weight = stream->size() / import_bytes_per_request;
    context.imports.begin(std::move(call), order, std::move(*stream));
    return d;
}

// What is wrong with a submission, without its session; nothing for other calls.
std::optional<wire::ErrorReply> refuse_submission(DecodeContext &context, const Holder &holder,
                                                  const wire::AnyMessage &message) {
    const auto check = [&](const wire::GrainSpec &spec) {
        const Status s = check_spec(spec);
        return s ? context.contents.check(spec.files, holder) : s;
    };
    if (const auto *call = std::get_if<wire::Gexec>(&message))
        if (Status s = check(call->spec); !s) return wire::error_reply(std::move(s));
    const auto *batch = std::get_if<wire::GexecMany>(&message);
    if (!batch) return std::nullopt;
    for (const wire::GrainOrder &order : batch->orders)
        if (const Status s = check(order.spec); !s)
            return wire::error_reply(fail(s.code, "grain " + std::to_string(order.grain) + ": " + s.text), order.grain);
    return std::nullopt;
}

core::Caller caller_of(const Arrival &arrival, const Connection &who) {
    return {.conn = arrival.conn,
            .request = core::RequestId{arrival.header.request},
            .user = who.user,
            .privileged = who.privileged,
            .has_token = who.has_token,
            .token = who.token,
            .host = who.certified.host,
            .key = who.certified.key};
}

Decoded user_frame(DecodeContext &context, const Arrival &arrival, Connection &who, wire::AnyMessage message) {
    if (const auto *hello = std::get_if<wire::Hello>(&message)) return greet(context, who, *hello);
    const std::string kind = wire::kind_name(message);
    const core::Party party = who.certified.host.empty() ? core::Party::user : core::Party::program;
    const auto no_request = [&] { return nonsense(kind + " is not a request of a control program"); };
    if (!core::may_say(party, message)) return no_request();
    if (!who.greeted) return nonsense("a connection must begin with Hello, not with " + kind);
    core::UserCall call{.caller = caller_of(arrival, who)};
    // Checked again when it is decided; but answers given here also need an authorised caller.
    if (Status s = core::check_user(context.state, call.caller); !s) return refuse(s.code, std::move(s.text));
    if (Status s = core::check_program(context.state, call.caller); !s) return refuse(s.code, std::move(s.text));
    const Holder holder{context.state.stored, who.user, who.privileged};
    if (auto reply = refuse_submission(context, holder, message)) return {.reply = std::move(*reply)};
    if (const auto *ask = std::get_if<wire::AskContents>(&message)) {
        return {.reply = context.contents.missing(*ask, holder)};
    }
    if (const auto *put = std::get_if<wire::PutContent>(&message)) {
        const Peer peer{arrival.conn, core::RequestId{arrival.header.request}, false, who.user, who.privileged};
        context.contents.put(peer, *put, context.state);
        return {};
    }
    if (auto *piece = std::get_if<wire::ImportPiece>(&message)) return take_piece(context, arrival, who, *piece);
    if (const auto *import = std::get_if<wire::ImportSession>(&message))
        return import_session(context, arrival, who, *import, std::move(call));
    if (const auto *renew = std::get_if<wire::RenewCertificate>(&message)) {
        auto request = program_renewal(context.outside, *renew);
        if (!request) return refuse(request.status().code, request.status().text);
        call.request = std::move(*request);
    } else if (!std::visit(ToRequest{context, who.user, &call.request}, message)) {
        return no_request();
    }
    return {.input = std::move(call)};
}

// True: it was one of the calls about contents.
bool about_contents(DecodeContext &context, const Arrival &arrival, core::HostId host,
                    const wire::AnyMessage &message) {
    const Peer peer{arrival.conn, core::RequestId{arrival.header.request}, true,
                    "host " + context.state.host(host)->config->name};
    if (const auto *want = std::get_if<wire::WantContent>(&message)) {
        if (const Status s = core::may_fetch(context.state, host, want->digest))
            context.contents.send(peer, want->digest, want->offset, want->max);
        else context.contents.refuse_want(peer, want->digest, s);
        return true;
    }
    const auto *put = std::get_if<wire::PutContent>(&message);
    if (!put) return false;
    if (const Status s = core::may_bring(context.state, host)) context.contents.put(peer, *put, context.state);
    else context.contents.refuse_put(peer, put->digest, s);
    return true;
}

// Is it about a grain that is leased to this host?
bool counts(const core::State &state, core::HostId host, const wire::GrainReport &report) {
    const core::Grain *grain = state.grain(wire::key_of(report.key));
    return grain && grain->status() == core::GrainStatus::running && grain->runs_on() == host &&
           grain->lease == report.incarnation;
}

wire::Form newest_form_of(const wire::FrameHeader &header) {
    wire::PeerForm form;
    (void)form.hear(header);  // the loop hangs up on those that have none in common with us
    return form.form();
}

Decoded server_frame(DecodeContext &context, const Arrival &arrival, Connection &who, wire::AnyMessage message) {
    const std::string kind = wire::kind_name(message);
    const auto no_message = [&] { return hang_up(kind + " is not a message of a grain server"); };
    if (!core::may_say(core::Party::server, message)) return no_message();
    Decoded d;
    if (who.backup || about_backup(message)) return backup_frame(context, arrival, who, std::move(message));
    if (auto *call = std::get_if<wire::FirstCall>(&message)) {
        if (who.greeted) return hang_up("a grain server sent FirstCall twice on one link");
        who.greeted = true;
        d.input = core::ServerFirstCall{arrival.conn,  std::make_shared<const wire::FirstCall>(std::move(*call)),
                                        who.certified, who.promised,
                                        false,         newest_form_of(arrival.header),
                                        who.address};
        return d;
    }
    if (!who.greeted) return hang_up("a server's link must begin with FirstCall, not with " + kind);
    const core::HostId host = context.state.host_of(arrival.conn);
    if (host == core::no_host) return hang_up("");  // refused, or its host called in again
    if (auto *call = std::get_if<wire::CallIn>(&message)) {
        d.input = core::ServerCallIn{arrival.conn, host, *call};
    } else if (auto *peeked = std::get_if<wire::Peeked>(&message)) {
        context.live.answer(arrival.conn, std::move(*peeked));
    } else if (about_contents(context, arrival, host, message)) {
        return d;
    } else if (auto *report = std::get_if<wire::GrainReport>(&message)) {
        if (report->last_seq == UINT32_MAX)
            return hang_up("the increment's sequence number leaves no room for a next one");
        if (counts(context.state, host, *report))
            if (const auto no = why_not_now(context.state, context.contents, context.state.host(host)->config->name,
                                            *report, Way::from_host)) {
                d.reply = wire::ReportAck{report->key, report->incarnation, report->last_seq,
                                          report->ended || no->output, wire::Verdict::later};
                d.note = no->words + "; its server repeats the report";
                if (report->ended && !no->output) d.unrecorded.emplace(wire::key_of(report->key), report->incarnation);
                return d;
            }
        d.input = core::ServerReport{arrival.conn, host, std::make_shared<const wire::GrainReport>(std::move(*report))};
    } else if (const auto *renew = std::get_if<wire::RenewCertificate>(&message)) {
        return renewal(context.outside, who, *renew);
    } else if (auto *result = std::get_if<wire::LaunchResult>(&message)) {
        d.input = core::ServerLaunchResult{arrival.conn, host, std::move(*result)};
    } else {
        return no_message();
    }
    return d;
}

bool has_nul(const std::string &text) { return text.find('\0') != std::string::npos; }

}  // namespace

Status check_spec(const wire::GrainSpec &spec) {
    if (spec.argv.empty() || spec.argv[0].empty())
        return fail(Code::invalid, "argv[0], the path of the program, is missing");
    if (spec.argv.size() + spec.env.size() > limits::argv_items)
        return fail(Code::limit,
                    "argv and environment have more than " + std::to_string(limits::argv_items) + " entries");
    std::size_t bytes = 0;
    for (const auto *list : {&spec.argv, &spec.env}) {
        for (const std::string &entry : *list) {
            if (has_nul(entry)) return fail(Code::invalid, "argv or environment has a NUL byte");
            bytes += entry.size() + 1;
        }
    }
    if (bytes > limits::argv_env_bytes)
        return fail(Code::limit,
                    "argv and environment have more than " + std::to_string(limits::argv_env_bytes) + " bytes");
    if (spec.input.size() > limits::input_bytes)
        return fail(Code::limit, "the input has " + std::to_string(spec.input.size()) + " bytes, at most " +
                                     std::to_string(limits::input_bytes) +
                                     " fit inline; pass it as a file or a descriptor");
    if (spec.directory.size() > limits::path_bytes || has_nul(spec.directory))
        return fail(Code::invalid, "the working directory must be a path");
    if (spec.label.size() > limits::label_bytes)
        return fail(Code::limit, "the label has more than " + std::to_string(limits::label_bytes) + " bytes");
    return wire::check_files(spec);
}

Decoded decode(DecodeContext &context, const Arrival &arrival) {
    Connection *who = context.connections.find(arrival.conn);
    DCS_REQUIRE(who, "a frame of an unknown connection was decoded");
    const bool user = who->door == Door::user;
    const bool by_wall = planted("turn.end_by_wall_clock") && who->ends != Instant::never();
    if (context.outside.now() > who->ends || (by_wall && context.outside.wall_s() > who->certified.not_after_s)) {
        Decoded d = refuse(Code::no_auth, "the certificate of this connection has expired");
        d.close = true;
        return d;
    }
    auto message = wire::decode_payload(arrival.header, arrival.payload);
    if (!message) return user ? nonsense(message.status().text) : hang_up(message.status().text);
    if (auto refused = refuse_renewal(context, *who, *message)) return std::move(*refused);
    if (who->door == Door::join) return join_frame(context.outside, arrival, *who, std::move(*message));
    if (who->door == Door::begin)
        return begin_frame(context.state, context.outside, arrival, *who, std::move(*message));
    if (who->door == Door::backup) return certified_backup_frame(context, arrival, *who, std::move(*message));
    return user ? user_frame(context, arrival, *who, std::move(*message))
                : server_frame(context, arrival, *who, std::move(*message));
}

}  // namespace dcs::turn
