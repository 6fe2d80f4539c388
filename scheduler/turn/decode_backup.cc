#include "scheduler/turn/decode.h"

#include "base/planted.h"
#include "scheduler/core/authorise.h"
#include "scheduler/turn/judge_report.h"

namespace dcs::turn {
namespace {

Decoded backup_comes(const Arrival &arrival, Connection &who, const wire::BackupCall &call) {
    if (who.greeted) return hang_up("a backup sent its first message twice");
    // A grain server's certificate does not make its owner the backup, which may report for all.
    if (who.door != Door::backup && (!who.certified.host.empty() || !who.privileged))
        return hang_up("host " + who.certified.host + " claimed to be the backup");
    who.greeted = who.backup = true;
    return {.input = core::BackupCame{arrival.conn, call.store, who.certified}};
}

Decoded take_over(DecodeContext &context, const Arrival &arrival, wire::HandOver &message) {
    if (message.report.last_seq == UINT32_MAX)
        return hang_up("the increment's sequence number leaves no room for a next one");
    Decoded d;
    core::ReportHandedOver input{arrival.conn, std::move(message.host), message.number, nullptr};
    const auto no = why_not_now(context.state, context.contents, input.host, message.report, Way::from_backup);
    if (no && !planted("turn.the_backup_has_seen_it"))
        d.note = no->words + "; the report that the backup has does not count";
    else input.report = std::make_shared<const wire::GrainReport>(std::move(message.report));
    d.input = std::move(input);
    return d;
}

}  // namespace

Decoded certified_backup_frame(DecodeContext &context, const Arrival &arrival, Connection &who,
                               wire::AnyMessage message) {
    if (!core::may_say(core::Party::backup, message))
        return hang_up(std::string(wire::kind_name(message)) + " is not a message of the backup");
    if (!who.backup && !std::holds_alternative<wire::BackupCall>(message))
        return hang_up("a backup's link must begin with BackupCall");
    const auto *renew = std::get_if<wire::RenewCertificate>(&message);
    if (!renew) return backup_frame(context, arrival, who, std::move(message));
    if (context.state.backup.conn != arrival.conn)
        return hang_up("a certificate for the backup was requested on a link that is not, or no longer, the backup's");
    return renewal(context.outside, who, *renew);
}

bool about_backup(const wire::AnyMessage &message) {
    return std::holds_alternative<wire::BackupCall>(message) || std::holds_alternative<wire::HeldByBackup>(message);
}

Decoded backup_frame(DecodeContext &context, const Arrival &arrival, Connection &who, wire::AnyMessage message) {
    if (const auto *call = std::get_if<wire::BackupCall>(&message)) return backup_comes(arrival, who, *call);
    if (const auto *held = std::get_if<wire::HeldByBackup>(&message)) {
        if (who.greeted) return hang_up("a grain server mentioned the backup after its first call");
        who.promised = core::HandedOver{held->store, held->number};
        return {};
    }
    if (auto *report = std::get_if<wire::HandOver>(&message)) return take_over(context, arrival, *report);
    return hang_up(std::string(wire::kind_name(message)) + " is not a message of the backup");
}

}  // namespace dcs::turn
