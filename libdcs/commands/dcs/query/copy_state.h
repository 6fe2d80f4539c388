#pragma once
// What the scheduler of this host says of the backup's copy of its store, even while its commits wait for it.
#include <optional>
#include <string>

#include "commands/dcs/frame/failure.h"
#include "base/status.h"
#include "wire/message.h"

namespace dcs::commands {

// One question to a daemon of this host by its own socket, and the answer.

// Fails if the daemon does not answer within `patience_s`, or with its error.
Result<wire::AnyMessage> ask_daemon(const std::string &socket, const wire::AnyMessage &question, int patience_s = 10);

template <class Reply>
Result<Reply> ask(const std::string &socket, const wire::AnyMessage &question, int patience_s = 10) {
    auto answer = ask_daemon(socket, question, patience_s);
    if (!answer) return answer.status();
    if (const auto *reply = std::get_if<Reply>(&*answer)) return *reply;
    return fail(Code::protocol, "it sent an unexpected kind of answer");
}

// One that was started while the backup is away does not know how far the copy is.
std::string copy_state_text(const wire::MirrorStatus &s);

// Of the one that the host table names: "vault, connected; copy of the store: sync, current".
std::string backup_text(const wire::BackupRow &backup);

// Why a scheduler that runs does not answer: its commits wait for the copy. Nothing: they do not, or the caller may
// not ask.
std::optional<Failure> waits_for_copy(const std::string &pool_directory);

}  // namespace dcs::commands
