#include "sim/control_node.h"

#include "base/limits.h"

namespace dcs::sim {
namespace {
constexpr std::uint32_t control_mark = 0x434e;
constexpr Duration pause_after_trouble = seconds(20);
}  // namespace

ControlNode::ControlNode(Clock &clock, Links &links, ControlWatch &watch, int number, std::vector<Job> jobs)
    : clock_(clock),
      links_(links),
      watch_(watch),
      number_(number),
      site_(links.add_site()),
      random_(random_for(clock.plan.seed, "control", static_cast<std::uint64_t>(number))),
      jobs_(std::move(jobs)) {}

std::string ControlNode::where() const {
    if (done()) return "done";
    const char *stages[] = {"auth", "open", "course", "clean", "nosy", "look", "forget"};
    std::string text = to_text(key()) + " at " + stages[static_cast<int>(self_.stage)];
    if (self_.talk) text += ", in call " + std::string(wire::kind_name(self_.call));
    return text + (running_ ? "" : ", not running");
}

// ---- the process --------------------------------------------------------------------------

void ControlNode::start() {
    if (running_ || done()) return;
    running_ = true;
    ++life_;
    in_doubt_ = false;
    self_ = Self{};
    if (clock_.tracing) clock_.note("control " + std::to_string(number_) + " starts for " + to_text(key()));
    think();
}

void ControlNode::kill(Duration away) {
    if (!running_) return;
    if (clock_.tracing) clock_.note("control " + std::to_string(number_) + " is killed");
    running_ = false;
    resume_ = true;
    ++life_;
    if (self_.conn != no_connection) links_.close_client(self_.conn);
    self_ = Self{};
    wish_ = false;
    clock_.put(clock_.now + away, this, control_mark, again, life_);
}

// No party closes the old one's connection: what it waits for still stands with the scheduler.
void ControlNode::start_twin() {
    if (!running_) return;
    if (clock_.tracing) clock_.note("control " + std::to_string(number_) + " is started a second time");
    running_ = false;
    resume_ = true;
    start();
}

void ControlNode::happen(std::uint32_t what, std::uint64_t arg) {
    if (what == again) {
        if (arg == life_) start();
        return;
    }
    if (!running_ || arg != (life_ << 20 | (self_.pause & 0xfffff))) return;
    if (!self_.talk) return think();
    switch (self_.talk->step().what) {
    case client::Do::pause: self_.talk->paused(clock_.now); break;
    case client::Do::connect:
        if (self_.conn != no_connection) links_.close_client(self_.conn);
        self_.conn = no_connection;
        self_.talk->refused("no answer", false, clock_.now);
        break;
    case client::Do::receive:
        if (self_.conn != no_connection) links_.close_client(self_.conn);
        self_.conn = no_connection;
        self_.talk->broken("nothing was heard for too long", clock_.now);
        break;
    default: return;
    }
    drive();
}

void ControlNode::wait_until(Instant at) {
    ++self_.pause;
    if (at != Instant::never()) clock_.put(at, this, control_mark, timer, life_ << 20 | (self_.pause & 0xfffff));
}

void ControlNode::rest(Duration pause) {
    self_.talk.reset();
    wait_until(clock_.now + pause);
}

// ---- one call -----------------------------------------------------------------------------

void ControlNode::say(wire::AnyMessage call, bool for_ever) {
    ++calls_;
    client::Terms terms;
    terms.request = random_.next() | 1;
    terms.token = self_.token;
    terms.for_ever = for_ever;
    terms.met = self_.met;
    terms.greeted = self_.link_up && self_.conn != no_connection;
    if (terms.greeted) terms.form = self_.form;
    terms.seed = random_.next();
    self_.call = std::move(call);
    watch_.asks(key(), self_.call);
    self_.talk.emplace(self_.call, terms, clock_.now);
    drive();
}

void ControlNode::drive() {
    while (self_.talk && clock_.fine()) {
        const client::Step step = self_.talk->step();
        switch (step.what) {
        case client::Do::connect:
            if (self_.conn != no_connection) links_.close_client(self_.conn);
            self_.conn = links_.connect(this, site_, turn::Door::user, job().user);
            return wait_until(step.until);
        case client::Do::send:
            links_.send_up(self_.conn, std::string(step.bytes));
            self_.talk->sent(clock_.now);
            break;
        case client::Do::receive:
        case client::Do::pause: return wait_until(step.until);
        case client::Do::done: return replied();
        }
    }
}

void ControlNode::link_opened(ConnId conn) {
    if (conn != self_.conn || !self_.talk || self_.talk->step().what != client::Do::connect) return;
    self_.talk->connected(clock_.now);
    drive();
}

void ControlNode::link_frame(ConnId conn, std::string frame) {
    if (conn != self_.conn || !self_.talk || self_.talk->step().what != client::Do::receive) return;
    const std::string_view all = frame;
    auto header = wire::decode_header(all.substr(0, wire::header_bytes), limits::server_frame_bytes);
    if (!header) return clock_.complain("wire", "to a control program: " + header.status().text);
    auto message = wire::decode_payload(*header, all.substr(wire::header_bytes));
    if (!message) return clock_.complain("wire", "to a control program: " + message.status().text);
    self_.talk->received(*header, std::move(*message), clock_.now);
    drive();
}

void ControlNode::link_closed(ConnId conn, const std::string &why) {
    if (conn != self_.conn) return;
    self_.conn = no_connection;
    self_.link_up = false;
    if (!self_.talk) return;
    const client::Do what = self_.talk->step().what;
    if (what == client::Do::connect) self_.talk->refused(why, false, clock_.now);
    else if (what == client::Do::receive) self_.talk->broken(why, clock_.now);
    else return;
    drive();
}

// ---- what to say next ---------------------------------------------------------------------

void ControlNode::think() {
    self_.talk.reset();
    if (done() || !clock_.fine()) return;
    switch (self_.stage) {
    case Stage::auth: return say(wire::GetAuth{job().ident}, false);
    case Stage::open: {
        const bool reset = !job().keeps_notes || reopening_;
        auto mode = reopening_ ? wire::OpenMode::reopen : wire::OpenMode::resume;
        if (job().opens && !resume_ && !reopening_) mode = wire::OpenMode::open;
        return say(wire::OpenSession{job().session, mode, reset}, false);
    }
    case Stage::course:
        if (begins_to_forget()) return;
        if (random_.chance(2) && !clock_.plan.scale) {
            self_.stage = Stage::nosy;
            return be_nosy();
        }
        return act(self_.course->next());
    case Stage::clean: clean_asked_ = true; return say(wire::CleanSession{{}, job().session}, false);
    case Stage::nosy: return be_nosy();
    case Stage::look: return look();
    case Stage::forget: return forget();
    }
}

void ControlNode::act(const Action &action) {
    const std::int32_t session = job().session;
    if (std::holds_alternative<Submit>(action)) return submit();
    if (const auto *victim = std::get_if<Kill>(&action)) return say(wire::Gkill{{}, session, victim->grain}, false);
    if (const auto *waits = std::get_if<Wait>(&action)) return wait(waits->block);
    if (const auto *fetch = std::get_if<Fetch>(&action))
        return say(wire::Fetch{{},
                               session,
                               fetch->grain,
                               wire::Stream::out,
                               self_.fetched.size(),
                               static_cast<std::uint32_t>(limits::fetch_chunk_bytes)},
                   false);
    close_asked_ = true;
    say(wire::CloseSession{{}, session, self_.next}, false);
}

// What is not ours must be refused.
void ControlNode::be_nosy() {
    const std::string other = "u" + std::to_string(random_.below(4));
    const auto session = static_cast<std::int32_t>(random_.below(3) * 100 + 1);
    if (other == job().user) {
        self_.stage = Stage::course;
        return think();
    }
    switch (random_.below(5)) {
    case 0: return say(wire::Gkill{other, session, 0}, false);
    case 1: return say(wire::CloseSession{other, session, -1}, false);
    case 2: return say(wire::CleanSession{other, session}, false);
    case 3: return say(wire::Fetch{other, session, 0, wire::Stream::out, 0, 1000}, false);
    default: {
        wire::Query query;
        query.type = wire::QueryType::grain;
        query.grain = 0;
        query.user = other;
        query.session = session;
        return say(query, false);
    }
    }
}

void ControlNode::replied() {
    const auto outcome = self_.talk->outcome();
    self_.link_up = self_.talk->connection_good();
    self_.form = self_.talk->form();
    self_.met = self_.met || self_.talk->welcome().has_value();
    if (!self_.link_up && self_.conn != no_connection) {
        links_.close_client(self_.conn);
        self_.conn = no_connection;
    }
    if (!outcome) {  // unreachable, or broken: the same call again
        in_doubt_ = resume_ = true;
        return rest(pause_after_trouble);
    }
    const bool was_in_doubt = std::exchange(in_doubt_, false);
    const wire::AnyMessage &reply = *outcome;
    if (self_.stage == Stage::nosy) {
        if (!std::holds_alternative<wire::ErrorReply>(reply))
            return wrong("a stranger's " + std::string(wire::kind_name(self_.call)) + " was answered with " +
                         wire::kind_name(reply));
        self_.stage = Stage::course;
        return think();
    }
    watch_.told(key(), job().script, self_.call, reply);
    if (const auto *error = std::get_if<wire::ErrorReply>(&reply)) {
        const auto code = static_cast<Code>(error->code);
        if (code == Code::no_space || code == Code::io_error) return rest(pause_after_trouble);
    }
    switch (self_.stage) {
    case Stage::auth: {
        const auto *auth = std::get_if<wire::AuthReply>(&reply);
        if (const auto *error = std::get_if<wire::ErrorReply>(&reply)) return wrong("no token: " + error->text);
        if (!auth) return wrong("no token was given");
        self_.token = auth->token;
        links_.close_client(self_.conn);  // the next one says Hello with it
        self_.conn = no_connection;
        self_.link_up = false;
        self_.stage = Stage::open;
        return think();
    }
    case Stage::open: return opened(reply);
    case Stage::course: return course_reply(reply, was_in_doubt);
    case Stage::clean: return next_job();
    case Stage::nosy: return;
    case Stage::look: return looked(reply);
    case Stage::forget: return forgot(reply, was_in_doubt);
    }
}

void ControlNode::opened(const wire::AnyMessage &reply) {
    if (const auto *error = std::get_if<wire::ErrorReply>(&reply)) {
        const auto code = static_cast<Code>(error->code);
        if (code == Code::session_closed && close_asked_) return closed();
        if (code == Code::session_unknown && clean_asked_) return next_job();
        if (code == Code::session_active && reopening_) {  // an earlier call did it
            reopening_ = false;
            return think();
        }
        return wrong("the session was not opened: " + error->text);
    }
    const auto &open = std::get<wire::OpenReply>(reply);
    // The removal happened, though its answer was lost: all of it again, in a new session.
    if (clean_asked_ && open.as == wire::OpenedAs::fresh) close_asked_ = clean_asked_ = false;
    const bool notes = job().keeps_notes && notes_ && !reopening_;
    if (reopening_) close_asked_ = false;
    reopening_ = false;
    if (notes) self_.course = notes_;
    else self_.course.emplace(job().script);
    self_.next = notes ? notes_next_ : 0;
    self_.results.clear();
    if (open.sent > self_.next)
        return wrong("result " + std::to_string(self_.next) +
                     " was never taken, and counts as sent: " + std::to_string(open.sent));
    self_.stage = Stage::course;
    think();
}

void ControlNode::course_reply(const wire::AnyMessage &reply, bool was_in_doubt) {
    if (brings(reply)) return;
    if (const auto *error = std::get_if<wire::ErrorReply>(&reply)) {
        if (was_in_doubt && static_cast<Code>(error->code) == Code::grain_exists) {
            self_.course->did();
            in_doubt_ = true;  // the others of its batch are there as well
            return think();
        }
        if (!course_error(*error)) wrong(std::string(wire::kind_name(self_.call)) + " failed: " + error->text);
        return;
    }
    Course &course = *self_.course;
    if (takes(reply)) return go_on();
    if (const auto *piece = std::get_if<wire::Piece>(&reply)) {
        self_.fetched += piece->bytes;
        if (self_.fetched.size() < piece->total && !piece->bytes.empty()) return think();
        self_.fetched.clear();
        course.did();
    } else {
        course.did();
    }
    go_on();
}

// False: this error is not one of those that a program meets.
bool ControlNode::course_error(const wire::ErrorReply &error) {
    switch (static_cast<Code>(error.code)) {
    case Code::nothing_yet: rest(clock_.plan.interval / 4); return true;
    case Code::nothing_left:
        watch_.complete(key(), *self_.course);
        self_.course->finish();
        think();
        return true;
    case Code::cannot_run:
        // Hosts may be put into the table again; when all is well there is no use in waiting.
        if (!clock_.healed) rest(clock_.plan.interval);
        else {
            self_.course->finish();
            think();
        }
        return true;
    case Code::session_taken:
    case Code::no_auth: run_anew(); return static_cast<Code>(error.code) == Code::session_taken;
    case Code::replay_end:
    case Code::session_closed:
        if (!close_asked_) return false;
        self_.course->finish();
        think();
        return true;
    case Code::session_unknown:
        if (!clean_asked_) return false;
        next_job();
        return true;
    default: return false;
    }
}

// ---- after the session --------------------------------------------------------------------

void ControlNode::closed() {
    self_.course.reset();
    notes_.reset();
    notes_next_ = 0;
    if (begins_to_forget()) return;
    if (job().reopenings > 0) {
        --job().reopenings;
        reopening_ = true;
        self_.stage = Stage::open;
        return rest(pause_after_trouble);
    }
    if (!job().cleans) return next_job();
    self_.stage = Stage::clean;
    think();
}

void ControlNode::next_job() {
    ++job_;
    close_asked_ = clean_asked_ = reopening_ = resume_ = wish_ = false;
    notes_.reset();
    notes_next_ = 0;
    if (self_.conn != no_connection) links_.close_client(self_.conn);
    self_ = Self{};
    running_ = false;
    ++life_;
    if (!done())
        clock_.put(clock_.now + Duration{static_cast<std::int64_t>(
                                    random_.below(static_cast<std::uint64_t>(clock_.plan.interval.ns)))},
                   this, control_mark, again, life_);
}

void ControlNode::wrong(const std::string &what) { clock_.complain("control program", to_text(key()) + ": " + what); }

}  // namespace dcs::sim
