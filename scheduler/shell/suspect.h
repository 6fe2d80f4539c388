#pragma once
// Which session was being worked on when the scheduler aborted. A session that makes it abort twice
// running is set aside, so that one damaged entity cannot keep the others from being served.
// If a message was not about a session of its sender, the sender is noted instead: no user can have the session of
// another set aside (scheduler/turn/concerns.h decides who is noted).
// It is a small file that is mapped into memory: noting a session costs a copy of its name, and what
// was noted outlives the process (not a power failure, for which no session is to blame).
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/status.h"

namespace dcs::shell {

// How sessions are called in it: "ann/3". Nothing for what is no such name.
std::string session_text(const SessionKey &session);  // empty for the empty key
std::optional<SessionKey> session_of(const std::string &text);

class Suspect {
public:
    // The file is made if it is missing. From here on SIGABRT, SIGSEGV and their like are noted in
    // it; SIGKILL is not, it is no session's fault. One per process.
    static Result<std::unique_ptr<Suspect>> open(const std::string &path);
    ~Suspect();
    Suspect(const Suspect &) = delete;
    Suspect &operator=(const Suspect &) = delete;

    // What was worked on at the last two aborts, if it was the same; empty otherwise. Told once.
    std::string culprit();
    // A session's text, or who sent what is at hand: a user, "host h1". Names longer than the file's field are cut.
    // Empty: nothing in particular.
    void working_on(const std::string &entity);

private:
    struct Page;
    explicit Suspect(Page *page) : page_(page) {}
    Page *page_;
    std::string culprit_;
};

}  // namespace dcs::shell
