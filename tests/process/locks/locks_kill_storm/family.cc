#include "family.h"

#include "locks/adaptive_lock.h"
#include "locks/counted_slots.h"
#include "locks/files/queue.h"

namespace storm {
namespace {

using namespace dcs::locks;

Place place_at(const std::string &directory, const std::string &name) {
    Place place;
    place.path = directory + "/" + name;
    place.directory = directory;
    place.atom = Atom{name, "", ""};
    return place;
}

bool failed(Arena &arena, const dcs::Status &status) {
    ++arena.failures;
    tell(arena, "a lock failed: " + status.text);
    return false;
}

class Hold final : public Family {
public:
    Hold(const std::string &directory, bool readers) : directory_(directory), readers_(readers) {}
    bool acquire(Arena &arena, Random &random) override {
        shared = readers_ && pick(random, 4) != 0;
        dcs::Result<LockFile> file = LockFile::open(place_at(directory_, "hold"), FileKind::atom);
        if (!file) return failed(arena, file.status());
        file_ = std::move(*file);
        const bool waits = pick(random, 4) != 0;
        const dcs::Result<bool> got = file_.hold(shared, waits ? Deadline::never() : Deadline::none());
        return got ? *got : failed(arena, got.status());
    }
    void release() override {
        file_.let_go();
        file_ = LockFile();
    }

private:
    std::string directory_;
    bool readers_;
    LockFile file_;
};

// The queue alone: whose turn it is, is inside.
class Queue final : public Family {
public:
    explicit Queue(const std::string &directory) : directory_(directory) {}
    bool acquire(Arena &arena, Random &random) override {
        shared = pick(random, 5) == 0;
        dcs::Result<LockFile> file = LockFile::open(place_at(directory_, "queue"), FileKind::atom);
        if (!file) return failed(arena, file.status());
        file_ = std::move(*file);
        dcs::Result<QueuePlace> place = QueuePlace::enter(file_, shared);
        if (!place) return failed(arena, place.status());
        place_ = std::move(*place);
        const dcs::Result<bool> turn = place_.wait_for_turn(Deadline::never());
        if (!turn || !*turn) return failed(arena, turn.status());
        return true;
    }
    void release() override {
        place_.leave();
        file_ = LockFile();
    }

private:
    std::string directory_;
    LockFile file_;
    QueuePlace place_;
};

class Adaptive final : public Family {
public:
    explicit Adaptive(const std::string &directory) {
        hangs = true;
        request_.place = place_at(directory, "adaptive");
        request_.expire_after = 30'000'000;
        request_.grace = {5'000'000, 5'000'000, 20'000'000'000};
        request_.max_kills = 1'000'000'000;
    }
    bool acquire(Arena &arena, Random &random) override {
        request_.queue = pick(random, 4) == 0;
        request_.wait = pick(random, 4) == 0 ? Deadline::never() : Deadline::none();
        const Answer answer = AdaptiveLock::get(this_world(), request_, lock_);
        if (answer.denied == Denied::failed) return failed(arena, answer.status);
        if (answer.denied != Denied::no) {
            ++arena.refusals;
            if (answer.denied != Denied::busy && answer.denied != Denied::unkillable) {
                ++arena.failures;
                tell(arena, std::string("refused for no reason that there is here: ") + answer.text);
            }
            return false;
        }
        if (answer.took_over) ++arena.takeovers;
        if (answer.after_crash) ++arena.crashes;
        // A record may be lost with the process that writes it, never its number: it only grows.
        const std::uint64_t before = arena.last_token.exchange(lock_.generation());
        if (before >= lock_.generation()) {
            ++arena.bad_tokens;
            tell(arena,
                 "fencing token " + std::to_string(lock_.generation()) + " came after " + std::to_string(before));
        }
        return true;
    }
    void release() override { lock_.release({}); }

private:
    LockRequest request_;
    AdaptiveLock lock_;
};

class Counted final : public Family {
public:
    Counted(const std::string &directory, bool several) : directory_(directory), several_(several) {}
    bool acquire(Arena &arena, Random &random) override {
        std::vector<SlotWish> wishes{{place_at(directory_, "a.slots"), 3}};
        if (several_) {
            area = 1 + pick(random, 3);
            const SlotWish second{place_at(directory_, "b.slots"), 2};
            if (area == 2) wishes = {second};
            if (area == 3) wishes.insert(pick(random, 2) == 0 ? wishes.begin() : wishes.end(), second);
        }
        const bool waits = pick(random, 4) != 0;
        const Deadline until = waits ? Deadline::never() : Deadline::none();
        dcs::Result<Slots> got = Slots::take(this_world(), wishes, until, "storm");
        if (!got && got.status().code == dcs::Code::limit && !waits) return false;
        if (!got) return failed(arena, got.status());
        slots_ = std::move(*got);
        return true;
    }
    void release() override { slots_.release(); }

private:
    std::string directory_;
    bool several_;
    Slots slots_;
};

template <class Kind, auto... Arguments> std::unique_ptr<Family> made(const std::string &directory) {
    return std::make_unique<Kind>(directory, Arguments...);
}

}  // namespace

const std::vector<FamilyKind> &families() {
    static const std::vector<FamilyKind> all = {
        {"hold", {1}, made<Hold, false>},     {"shared", {1}, made<Hold, true>},
        {"fifo", {1}, made<Queue>},           {"adaptive", {1}, made<Adaptive>},
        {"slots", {3}, made<Counted, false>}, {"limits", {3, 2}, made<Counted, true>},
    };
    return all;
}

}  // namespace storm
