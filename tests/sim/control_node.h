#pragma once
// A user's control program and its process: runs a Course over client::Conversation, is killed and run
// again, and goes on to the next session when one is done.
#include <deque>
#include <optional>

#include "client/conversation.h"
#include "sim/links.h"
#include "sim/program.h"

namespace dcs::sim {

// What goes when a result is forgotten (dcs grain restart --and-after), by the session's event log.
struct Forgotten {
    GrainNumber grain = 0;
    std::int32_t stand = 0;               // results that still count as handed out
    std::set<GrainNumber> gone, revived;  // submissions; kills
};

// Hears what a control program learned (checkers/promises.h).
class ControlWatch {
public:
    virtual ~ControlWatch() = default;
    virtual void asks(const SessionKey &key, const wire::AnyMessage &call) = 0;
    virtual void told(const SessionKey &key, const Script &script, const wire::AnyMessage &call,
                      const wire::AnyMessage &reply) = 0;
    // All of it was received, by the program's own account.
    virtual void complete(const SessionKey &key, const Course &course) = 0;
    // The user is about to order it, or has done so before and got no answer.
    virtual void forgets(const SessionKey &key, const Forgotten &what) = 0;
};

class ControlNode final : public Handler, public Peer {
public:
    struct Job {
        std::string user, ident;
        std::int32_t session = 0;
        Script script;
        bool keeps_notes = false;  // its own state outlives it, so it resumes without sent_reset
        bool cleans = false;
        bool opens = false;  // by d_open_ses, and resumes only when it is run again
        int reopenings = 0;
        int batch = 1;  // submits and takes up to so many at once
    };
    ControlNode(Clock &clock, Links &links, ControlWatch &watch, int number, std::vector<Job> jobs);

    void start();
    void kill(Duration away);
    // The user forgets one of its results, and runs the program again.
    void wish_to_forget() { wish_ = true; }
    // Another process of the same program begins; this one goes on until it learns that.
    void start_twin();
    bool done() const { return job_ >= jobs_.size(); }
    bool runs() const { return running_; }
    std::string where() const;
    std::uint64_t calls() const { return calls_; }

private:
    enum class Stage : std::uint8_t { auth, open, course, clean, nosy, look, forget };
    enum What : std::uint32_t { timer, again };
    // A process: one of them usually.
    struct Self {
        Stage stage = Stage::auth;
        std::optional<client::Conversation> talk;
        wire::AnyMessage call;
        std::string token;
        std::optional<Course> course;
        std::int32_t next = 0;  // index of d_gwait
        ConnId conn{};
        bool link_up = false, busy = false;
        wire::PeerForm form;  // of that link
        std::uint64_t pause = 0;
        std::string fetched;                    // of the stream at hand
        std::deque<wire::GrainResult> results;  // of a batch, not looked at yet
        std::deque<wire::PutContent> bring;     // pieces of contents that the scheduler lacks
        bool met = false;
        std::string log;  // of the session, as far as it was read
        Forgotten forgotten;
    };

    void happen(std::uint32_t what, std::uint64_t arg) override;
    void link_opened(ConnId conn) override;
    void link_frame(ConnId conn, std::string frame) override;
    void link_closed(ConnId conn, const std::string &why) override;

    Job &job() { return jobs_[job_]; }
    SessionKey key() const { return {jobs_[job_].user, jobs_[job_].session}; }
    void say(wire::AnyMessage call, bool for_ever);
    void drive();
    void wait_until(Instant at);
    void think();
    void act(const Action &action);
    void replied();
    void opened(const wire::AnyMessage &reply);
    void course_reply(const wire::AnyMessage &reply, bool was_in_doubt);
    bool brings(const wire::AnyMessage &reply);
    // control_batches.cc
    void submit();
    void wait(bool block);
    bool takes(const wire::AnyMessage &reply);
    void take_result();
    void go_on();
    bool course_error(const wire::ErrorReply &error);
    void closed();
    void next_job();
    void rest(Duration pause);
    void be_nosy();
    // control_forgets.cc
    bool begins_to_forget();
    void look();
    void looked(const wire::AnyMessage &reply);
    void forget();
    void forgot(const wire::AnyMessage &reply, bool was_in_doubt);
    void go_back();
    void run_anew();
    void wrong(const std::string &what);

    Clock &clock_;
    Links &links_;
    ControlWatch &watch_;
    const int number_, site_;
    Random random_;
    std::vector<Job> jobs_;
    std::size_t job_ = 0;
    bool running_ = false, reopening_ = false;
    std::uint64_t life_ = 0, calls_ = 0;
    Self self_;
    std::optional<Course> notes_;  // of a program that keeps them
    std::int32_t notes_next_ = 0;
    bool close_asked_ = false, clean_asked_ = false;
    bool wish_ = false;
    bool resume_ = false;    // the session may be open: an earlier process asked for it, or got no answer
    bool in_doubt_ = false;  // the call at hand was made before, and no party knows whether it happened
};

}  // namespace dcs::sim
