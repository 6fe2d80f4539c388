#include "sim/checkers/promises.h"

namespace dcs::sim {

void Promises::asks(const SessionKey &key, const wire::AnyMessage &call) {
    const auto found = books_.find(key);
    if (found == books_.end()) return;
    Book &book = found->second;
    if (const auto *close = std::get_if<wire::CloseSession>(&call); close && close->user.empty()) book.closing = true;
    if (const auto *clean = std::get_if<wire::CleanSession>(&call); clean && clean->user.empty()) book.cleaning = true;
    for (const GrainNumber grain : submitted_by(call)) book.asked.insert(grain);
    book.batches = book.batches || std::holds_alternative<wire::GwaitMany>(call);
    const auto *open = std::get_if<wire::OpenSession>(&call);
    if (open && open->mode == wire::OpenMode::reopen) book.closed = false;  // it may or may not be
}

void Promises::opened(const SessionKey &key, const wire::OpenSession &call, const wire::OpenReply &reply) {
    const auto found = books_.find(key);
    if (reply.as == wire::OpenedAs::fresh) {
        if (found != books_.end() && !found->second.cleaning && !found->second.grains.empty())
            return wrong(key, "was opened, and is opened as new again");
        books_[key] = Book{};
        return;
    }
    Book &book = books_[key];
    if (reply.as == wire::OpenedAs::replay && !book.closing) return wrong(key, "is closed, but was never closed");
    if (call.mode == wire::OpenMode::reopen) book.closing = book.closed = false;
}

void Promises::told(const SessionKey &key, const Script &script, const wire::AnyMessage &call,
                    const wire::AnyMessage &reply, const core::State *state) {
    if (const auto *open = std::get_if<wire::OpenSession>(&call)) {
        if (const auto *r = std::get_if<wire::OpenReply>(&reply)) opened(key, *open, *r);
        return;
    }
    if (const auto *error = std::get_if<wire::ErrorReply>(&reply)) {
        if (static_cast<Code>(error->code) == Code::io_error && !clock_.plan.has(Fault::disk_full))
            wrong(key, "an error of the disk: " + error->text);
        return;
    }
    const auto found = books_.find(key);
    if (found == books_.end()) return;
    Book &book = found->second;
    for (const GrainNumber grain : submitted_by(call))
        if (std::holds_alternative<wire::Done>(reply)) book.grains.emplace(grain, false);
    // What was handed out stays as it is, also when the program looks at it later.
    const auto *kill = std::get_if<wire::Gkill>(&call);
    if (kill && book.index.count(kill->grain) == 0) book.grains[kill->grain] = true;
    if (std::holds_alternative<wire::CloseSession>(call)) book.closed = true;
    if (std::holds_alternative<wire::CleanSession>(call)) {
        books_.erase(found);
        return;
    }
    if (const auto *r = std::get_if<wire::GrainResult>(&reply)) return result(key, book, script, *r);
    if (const auto *many = std::get_if<wire::GrainResults>(&reply)) {
        for (const wire::GrainResult &r : many->results) result(key, book, script, r);
        return;
    }
    if (std::holds_alternative<wire::RestartGrain>(call)) return forgotten(key, book, state);
    const auto *piece = std::get_if<wire::Piece>(&reply);
    const auto *fetch = std::get_if<wire::Fetch>(&call);
    if (!piece || !fetch || fetch->stream != wire::Stream::out || clock_.plan.has(Fault::bad_host)) return;
    if (const std::string what = wrong_with_piece(script.model(fetch->grain), *fetch, *piece); !what.empty())
        wrong(key, "output of grain " + std::to_string(fetch->grain) + ": " + what);
}

void Promises::result(const SessionKey &key, Book &book, const Script &script, const wire::GrainResult &r) {
    ++results_;
    const std::int32_t index = r.sent - 1;
    const std::string name = "result " + std::to_string(index) + ", of grain " + std::to_string(r.grain) + ", ";
    Result now{r.grain, r.code, r.signal, r.out_length, r.err_length, mix(mix(1, r.out), r.err)};
    clock_.mark(now.digest);
    if (const auto before = book.order.find(index); before != book.order.end()) {
        if (!(before->second == now)) wrong(key, name + "was another one when it was handed out before");
        return;
    }
    auto grain = book.grains.find(r.grain);
    if (grain == book.grains.end()) {  // its program may never have heard that it was taken
        if (book.asked.count(r.grain) == 0) return wrong(key, name + "which was never submitted");
        grain = book.grains.emplace(r.grain, false).first;
    }
    if (grain->second && !book.batches) return wrong(key, name + "which was killed");
    grain->second = false;  // its result was handed out by a reply that got lost, before it was killed
    if (book.index.count(r.grain) != 0) return wrong(key, name + "which has a result already");
    if (const std::string what = wrong_with_output(clock_.plan, script.model(r.grain), r); !what.empty())
        return wrong(key, name + what);
    book.order[index] = now;
    book.index[r.grain] = index;
}

// From here on nothing is known of what goes: the answer may get lost.
void Promises::forgets(const SessionKey &key, const Forgotten &what) {
    Book &book = books_[key];
    const auto end = book.index.find(what.grain);
    if (end != book.index.end() && end->second != what.stand)
        wrong(key, "grain " + std::to_string(what.grain) + " was result " + std::to_string(end->second) +
                       ", and its log says that " + std::to_string(what.stand) + " stand without it");
    book.forgotten = what;
    book.closed = false;
    std::erase_if(book.order, [&](const auto &entry) { return entry.first >= what.stand; });
    std::erase_if(book.index, [&](const auto &entry) { return entry.second >= what.stand; });
    for (const GrainNumber grain : what.gone) book.grains.erase(grain);
    for (const GrainNumber grain : what.revived) book.grains.erase(grain);
    book.grains.erase(what.grain);
}

// It is done, and no party has the session: what was decided after the result is as if it had never been.
void Promises::forgotten(const SessionKey &key, Book &book, const core::State *state) {
    const Forgotten &what = book.forgotten;
    ++forgotten_;
    book.closing = false;
    for (const GrainNumber grain : what.gone) book.asked.erase(grain);
    for (const GrainNumber grain : what.revived) book.grains[grain] = false;
    book.grains[what.grain] = false;
    if (!state) return;
    const core::Session *session = state->session(key);
    if (!session) return wrong(key, "is lost, as a result was forgotten");
    if (session->info.status == core::SessionStatus::terminated)
        return wrong(key, "a result was forgotten, and it is closed");
    if (session->info.shown > what.stand)
        return wrong(key, std::to_string(session->info.shown) + " results count as handed out, " +
                              std::to_string(what.stand) + " stand");
    for (const GrainNumber grain : what.gone)
        if (session->grains.count(grain) != 0)
            return wrong(key, "the submission of grain " + std::to_string(grain) + " was forgotten, and it is there");
    for (const auto &[number, g] : session->grains) {
        const bool anew = number == what.grain || what.revived.count(number) != 0;
        const auto *end = std::get_if<core::Finished>(&g.phase);
        const bool ended = g.status() == core::GrainStatus::killed || (end && end->result_index < what.stand);
        if (anew && ended)
            return wrong(key,
                         "grain " + std::to_string(number) + " was to run again, and is " + core::name_of(g.status()));
    }
}

void Promises::complete(const SessionKey &key, const Course &course, const core::State *state) {
    if (const core::Session *session = state ? state->session(key) : nullptr)
        for (const auto &[number, g] : session->grains)
            if (course.submitted().count(number) == 0)
                return wrong(key, "nothing is left of it, and there is grain " + std::to_string(number) +
                                      ", which this run of the program did not submit");
    for (const GrainNumber grain : course.submitted())
        if (course.received().count(grain) == 0 && course.killed().count(grain) == 0)
            return wrong(key, "nothing is left of it, but grain " + std::to_string(grain) + " has no result");
}

void Promises::compare(const core::State &state) {
    for (auto &[key, book] : books_)
        if (!book.cleaning && clock_.fine()) compare_book(key, book, state);
}

void Promises::compare_book(const SessionKey &key, Book &book, const core::State &state) {
    const core::Session *session = state.session(key);
    if (!session) return wrong(key, "is lost");
    if (book.seniority == 0) book.seniority = session->info.seniority;
    if (book.seniority != session->info.seniority) return wrong(key, "is another one of the same number");
    const bool terminated = session->info.status == core::SessionStatus::terminated;
    if (book.closed && !terminated) return wrong(key, "was closed and is active");
    if (!book.closing && terminated) return wrong(key, "is closed, but was never closed");
    for (const auto &[number, killed] : book.grains) {
        const auto grain = session->grains.find(number);
        if (grain == session->grains.end()) return wrong(key, "grain " + std::to_string(number) + " is lost");
        const bool was_shown = book.batches && grain->second.status() == core::GrainStatus::finished &&
                               grain->second.as<core::Finished>().result_index < session->info.shown;
        if (killed && grain->second.status() != core::GrainStatus::killed && !was_shown)
            return wrong(
                key, "grain " + std::to_string(number) + " was killed and is " + core::name_of(grain->second.status()));
    }
    for (const auto &[index, result] : book.order) {
        const auto i = static_cast<std::size_t>(index);
        if (i >= session->results.size() || session->results[i] != result.grain)
            return wrong(key, "result " + std::to_string(index) + " is not that of grain " +
                                  std::to_string(result.grain) + " any more");
        if (session->grains.at(result.grain).status() != core::GrainStatus::finished)
            return wrong(key, "grain " + std::to_string(result.grain) + " had a result and is not finished");
    }
}

}  // namespace dcs::sim
