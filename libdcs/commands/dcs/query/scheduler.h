#pragma once
// Questions to the scheduler.
#include <optional>
#include <string>
#include <vector>

#include "commands/dcs/frame/call.h"
#include "commands/dcs/frame/failure.h"
#include "client/auth.h"
#include "client/call.h"
#include "commands/dcs/frame/pool_directory.h"
#include "selector.h"
#include "wire/message.h"
#include "commands/dcs/frame/arguments.h"

namespace dcs::commands {

// One answer of the scheduler: its rows as they came.
struct Info : wire::QueryReply {
    // user: empty for the caller; state: of grains, "ready".
    Status ask(wire::QueryType type, const std::string &user = "", int session = -1, int grain = -1,
               const std::string &state = "");
};

std::string own_user();  // the login name, as the scheduler sees it

void pause_ms(long ms);

// For what follows a session or a grain.
inline constexpr int poll_ms = 500;
inline constexpr int away_patience_s = 600;  // how long the scheduler may be away
inline constexpr int quiet_looks = 20;       // 10 s without a grain, though some are missing: no process submits them

// Seconds for which library calls repeat a broken request, unless the user said otherwise
// (DCS_PATIENCE_S). Questions give up soon; programs that work for hours do not.
void set_patience(int seconds);
bool user_set_patience();
// What begins a session looks for a scheduler as a question does, and then works with it.
inline constexpr int begin_patience_s = 3;
void work_patiently();  // says in words of its own what it waits for

// A row, with what follows from it.
struct Session : wire::SessionRow {
    bool own() const { return user == own_user(); }
    std::string name() const;  // "7", or "ann/7" if it is not the caller's
    // What tells it from others: the user's label, what was typed; else the name that its control program has.
    std::string what(std::size_t columns) const;
    std::string command_again() const;  // which goes on with it: without --new
    int declared() const;       // of a `dcs map` or `dcs submit`: grains of its list or file; else, or not known: 0
    int not_submitted() const;  // of those
    std::int64_t grains() const { return std::int64_t{ready} + running + finished + killed + not_submitted(); }
    std::string submit_log() const;       // of its `dcs submit` in the background; empty: there is none here
    bool over_before(double when) const;  // nothing has happened in it since, nor will
    bool terminated() const { return state == "terminated"; }
    int did_not_finish() const { return terminated() ? ready + running + not_submitted() : 0; }
    bool damaged() const { return state == "damaged"; }
    // Active, but what `dcs map`, `run` or `submit` gave it has ended. Of other control programs that is not known.
    bool is_done() const { return state == "active" && has_no_work() && finished + killed > 0; }
    bool has_no_work() const;
    bool is_active() const { return state == "active" && !is_done(); }
    std::string shown_state() const { return is_done() ? "done" : state; }
};

// "2 active, 1 done but not closed"
std::string open_sessions_text(const std::vector<Session> &sessions);

// Commands number sessions in a row below this; a higher number is of a program's own choice, and none follows it.
inline constexpr int numbers_in_a_row = INT32_MAX / 2;

// Sessions that a selector means, in ascending order; user and number are those of the rows. A
// session that does not exist is a Failure; `all` may be empty.
struct SessionsAnswer {
    std::vector<Session> sessions;
    std::vector<wire::StoredRow> stored;  // of their users
    int last_number = -1;                 // of removed ones, the highest; -1: none
    std::optional<Failure> failure;
};
SessionsAnswer sessions_of(const SessionSelector &selector);
SessionsAnswer sessions_of_all_users();
// The union, each once.
SessionsAnswer sessions_of(const std::vector<std::string> &selectors, bool to_change = false);
SessionsAnswer own_sessions();
// For what acts on sessions or waits for them: a bare `all` means the caller's own, other users' are named USER/all.
SessionsAnswer chosen_sessions(const std::vector<std::string> &selectors, bool to_change = true);
// To a person: `done` ("closed") was nothing, as no session is chosen.
void say_none(const Call &call, const char *done);

// A question that any program of the user may ask, without a session's token.
template <class Reply> Result<Reply> ask_any(const wire::AnyMessage &request) {
    return client::ask<Reply>(this_pool(), request, client::How{client::With::any});
}

// Why a grain is where it is.
Result<wire::Explanation> explain(const std::string &user, int session, int grain);

// all: what sessions_of_all_users() says.
// A row of an answer, as JSON.
inline constexpr auto row_json = [](const auto &row) { return wire::to_json(row); };
std::string json_of_system(const wire::SystemRow &row, const SessionsAnswer &all);

// --class NAMES, by the names of the pool's host table.

// Sets `mask` if the option is there. The scheduler is asked unless its value is a number.
std::optional<Failure> take_class(const Arguments &arguments, std::uint32_t &mask);

}  // namespace dcs::commands
