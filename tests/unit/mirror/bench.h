#pragma once
// The scheduler's side of a copy (turn::Mirror over a real store) and the backup's (backup::Copy), both on simulated
// disks, with a wire between them that delivers when it is ordered to.
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backupd/mirror/copy.h"
#include "base/limits.h"
#include "scheduler/turn/mirror.h"
#include "store/names.h"
#include "support/catch.h"
#include "support/sim_disk.h"

namespace dcs::mirror_test {

using Files = std::map<std::string, std::string>;

inline const store::Forest &forest() {
    static const store::Forest all = {store::identity_tree(),
                                      {"tree",
                                       {{{"log", store::Shape::pair, store::Action::append, ""}},
                                        {{"big", store::Shape::pair, store::Action::replace, ""}}},
                                       {"status", store::Shape::pair, store::Action::replace, ""}}};
    return all;
}

inline store::StoreOptions small_store() {
    store::StoreOptions options;
    options.inline_limit = 200;
    options.append_inline_limit = 400;
    options.flush_turns = 5;
    options.reserve_bytes = 0;
    options.journal_bytes = 16'384;  // every crash state copies it
    options.step_room = options.turn_room = 0;
    return options;
}

// What a copy must have of a disk: everything below directories of trees.
inline Files trees_of(const test::SimDisk &disk, const std::string &top) {
    Files found;
    for (const auto &[path, bytes] : disk.files(top)) {
        std::string below = path;
        if (!top.empty() && path.rfind(top + "/", 0) == 0) below = path.substr(top.size() + 1);
        if (path.back() != '/' && store::valid_copied_path(below)) found[below] = bytes;
    }
    return found;
}

class Bench : public turn::MirrorOutside {
public:
    static constexpr ConnId backup{7}, person{9};

    explicit Bench(turn::MirrorMode mode, turn::Attachment before = turn::Attachment::never,
                   store::Identity identity = {0xfeed, 3})
        : mode_(mode), attachment(before), identity_(identity) {
        open_scheduler();
        if (commit({store::identity_update(identity)}) != store::Answer::done) FAIL("the first commit");
    }

    // ---- the scheduler ----
    void open_scheduler() {
        mirror.reset();
        store::StoreOptions options = small_store();
        options.committed = [this](std::uint64_t turn, const std::vector<store::Step> &steps) {
            turns.push_back({turn, store::encode_for_copy(turn, steps)});
        };
        auto opened = store::Store::open(disk, forest(), options, nullptr);
        REQUIRE(opened);
        store = std::move(*opened);
        auto shelves = library::Library::open(disk, clock);
        REQUIRE(shelves);
        library = std::move(*shelves);
        turns.clear();
        mirror = std::make_unique<turn::Mirror>(
            turn::Mirror::Setup{identity_, mode_, attachment, window_bytes, backlog_bytes, own_up_to}, *store, *library,
            *this);
        connected = false;
    }
    store::Answer commit(const std::vector<store::TreeUpdate> &updates) {
        const store::CommitResult done = store->commit(updates);
        if (done.answer == store::Answer::done) {
            history[store->turn()] = trees_of(disk, "");
            mirror->committed(std::exchange(turns, {}));
            mirror->pump(true);
        }
        return done.answer;
    }
    store::Answer append(const std::string &tree, const std::string &bytes) {
        std::uint64_t &length = lengths[tree];
        const std::string status = std::to_string(length + bytes.size());
        store::TreeUpdate update{tree, "tree", {{"log", bytes, length}, {"status", status, 0}}, false};
        length += bytes.size();
        return commit({update});
    }
    void add_content(const std::string &digest, const std::string &bytes) {
        const std::string path = library::path_of(digest);
        (void)disk.make_dir("library");
        (void)disk.make_dir(store::parent_of(path));
        REQUIRE(disk.create(path, bytes));
        library->set(digest, bytes.size(), clock);
        contents[digest] = bytes;
    }

    // ---- the backup ----
    std::string connect() {  // "" or why there is no copy
        auto opened = backup::Copy::open(copy_disk, small_store(), plant);
        if (!opened) return opened.status().text;
        copy = std::move(*opened);
        to_backup.clear();
        refused.clear();
        connected = true;
        wire::MirrorCall call;
        const store::Identity what = copy->identity();
        if (copy->whole()) call.name = what.name, call.epoch = what.epoch, call.turn = copy->turn();
        call.seen_name = seen.name, call.seen = seen.epoch;
        mirror->came(backup, call, 0);
        if (!connected) return "";
        wire::MirrorContents told;
        const auto there = copy->contents();
        if (!there) return there.status().text;
        for (const std::string &digest : *there) told.bytes += digest;
        told.last = true;
        mirror->came(backup, told, 0);
        mirror->pump(true);
        return "";
    }
    void disconnect() {
        connected = false;
        to_backup.clear();
        mirror->gone(backup);
    }
    // One page; false: there is none.
    bool deliver() {
        if (to_backup.empty()) return false;
        const wire::MirrorPage page = std::move(to_backup.front());
        to_backup.pop_front();
        last = copy->take(page);
        if (!last) {
            if (copy->spoilt().empty()) copy.reset();
            disconnect();
            return true;
        }
        if (page.step == wire::MirrorStep::content && page.offset + page.bytes.size() == page.size)
            promised_contents[page.key] = contents[page.key];
        if (page.step == wire::MirrorStep::forget) promised_contents.erase(page.key);
        if (copy->whole()) promised_turn = std::max(promised_turn, copy->turn());
        mirror->came(backup, wire::MirrorHas{page.number, copy->whole(), copy->turn()}, 0);
        mirror->pump(true);
        return true;
    }
    void deliver_all() {
        while (deliver()) {}
    }
    // The trees of the whole copy; empty: there is none.
    static Files copied(test::SimDisk &disk) {
        const auto current = disk.read("current", 0, 1);
        return current ? trees_of(disk, *current) : Files{};
    }
    Files copied() { return copied(copy_disk); }
    wire::MirrorStatus status() {
        answers.clear();
        mirror->came(person, wire::AskMirror{}, 1);
        REQUIRE(answers.size() == 1);
        return std::get<wire::MirrorStatus>(answers[0]);
    }

    // ---- MirrorOutside ----
    Instant now() override { return clock; }
    void send(ConnId conn, const wire::AnyMessage &message, std::uint64_t) override {
        if (conn == person) return answers.push_back(message);
        if (const auto *page = std::get_if<wire::MirrorPage>(&message)) to_backup.push_back(*page);
        if (const auto *no = std::get_if<wire::Refused>(&message)) refused = no->text;
    }
    void close(ConnId conn) override {
        if (conn == backup) connected = false;
    }
    void log(turn::Level, const std::string &line) override { lines.push_back(line); }
    Status remember(turn::Attachment to, std::uint64_t turn) override {
        if (remember_fails) return fail(Code::io_error, "no");
        attachment = to;
        own_up_to = turn;
        return Status::ok();
    }
    void fenced(std::uint64_t epoch) override { fenced_by = epoch; }

private:
    const turn::MirrorMode mode_;

public:
    turn::Attachment attachment;
    std::uint64_t own_up_to = 0;
    std::uint64_t window_bytes = 8u << 20, backlog_bytes = 64u << 20;
    std::string_view plant;
    store::Identity seen{0, 0};
    test::SimDisk disk, copy_disk{16};
    Instant clock{};
    std::vector<turn::CopiedTurn> turns;
    std::unique_ptr<store::Store> store;
    std::unique_ptr<library::Library> library;
    std::unique_ptr<turn::Mirror> mirror;
    std::unique_ptr<backup::Copy> copy;
    std::deque<wire::MirrorPage> to_backup;
    std::vector<wire::AnyMessage> answers;
    std::vector<std::string> lines;
    std::string refused;
    std::uint64_t fenced_by = 0;
    bool connected = false, remember_fails = false;
    Status last;
    std::map<std::string, std::uint64_t> lengths;
    std::map<std::uint64_t, Files> history;  // of the scheduler's store, by turn
    Files contents, promised_contents;       // in its library; that the backup has acknowledged
    std::uint64_t promised_turn = 0;

private:
    store::Identity identity_;
};

// In the scheduler's log.
inline bool said(const Bench &b, const std::string &words) {
    for (const std::string &line : b.lines)
        if (line.find(words) != std::string::npos) return true;
    return false;
}

}  // namespace dcs::mirror_test
