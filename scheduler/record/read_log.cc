#include "scheduler/record/read_session.h"

#include <algorithm>
#include <atomic>
#include <tuple>

#include "base/large_work.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"

namespace dcs::record {
namespace {

// No file that is read whole here gets near this; a length from a damaged record might.
constexpr std::uint64_t max_log = std::uint64_t{4} << 30;

// Of each grain, where its last record begins. The numbers of nearly all sessions have few gaps: those up to as many as
// there may be records are in a vector.
class LastRecords {
public:
    explicit LastRecords(std::size_t log_bytes) : most_(log_bytes / least_record) {}
    void note(GrainNumber number, std::uint64_t at) {
        const auto index = static_cast<std::size_t>(number);
        if (index >= most_) {
            count_ += beyond_.insert_or_assign(number, at).second;
            return;
        }
        if (index >= starts_.size()) starts_.resize(std::min(most_, index + index / 2 + 1), none);
        count_ += starts_[index] == none;
        starts_[index] = static_cast<std::uint32_t>(at);
    }
    std::size_t count() const { return count_; }
    // The next one, ascending; false: there is none.
    bool next(GrainNumber &number, std::uint64_t &at) {
        while (next_ < starts_.size() && starts_[next_] == none) ++next_;
        if (next_ < starts_.size()) {
            number = static_cast<GrainNumber>(next_);
            at = starts_[next_++];
            return true;
        }
        if (beyond_.empty()) return false;
        std::tie(number, at) = *beyond_.begin();
        beyond_.erase(beyond_.begin());
        return true;
    }

private:
    static constexpr std::size_t least_record = 8;
    static constexpr std::uint32_t none = UINT32_MAX;  // where no record can begin
    const std::size_t most_;
    std::vector<std::uint32_t> starts_;
    std::map<GrainNumber, std::uint64_t> beyond_;
    std::size_t count_ = 0, next_ = 0;
};

// Records that follow each other.
struct Piece {
    struct Entry {
        GrainNumber number = 0;
        std::uint32_t at = 0;  // from `begin` on
    };
    std::size_t begin = 0, end = 0, count = 0;  // where in the log; how many
    std::vector<Entry> entries;
    Status wrong;

    void verify(std::string_view log) {
        std::string_view rest = log.substr(begin, end - begin);
        entries.reserve(count);
        while (!rest.empty()) {
            const std::size_t at = end - begin - rest.size();
            const auto entry = next_grain(rest);
            if (!entry) {
                wrong = entry.status();
                return;
            }
            entries.push_back({entry->number, static_cast<std::uint32_t>(at)});
        }
    }
};

// Grains that are decoded one after the other.
struct Block {
    struct Place {
        core::Grains::iterator grain;
        std::uint64_t at;  // where in the log its record begins
    };
    std::vector<Place> places;
    HostNames hosts;
    Status wrong;
    std::uint64_t bytes = 0;  // of their records
    core::Settled settled;
    std::vector<core::Grains::iterator> others;

    Status decode(std::string_view log, const SessionKey &key, SessionOnDisk &session) {
        const HostIds ids = [this](const std::string &name) { return hosts.id(name); };
        const core::Grain *near = nullptr;
        for (const Place &place : places) {
            std::string_view rest = log.substr(place.at);
            const std::size_t before = rest.size();
            auto &[number, grain] = *place.grain;
            if (Status s = take_verified(rest, ids, grain); !s)
                return of_file(session_directory(key) + "/" + grains_file, s);
            bytes += before - rest.size();
            if (near && grain.demands == near->demands) grain.demands = near->demands;  // one allocation for both
            near = &grain;
            if (!settled.take(grain)) {
                others.push_back(place.grain);
                continue;
            }
            if (Status s = take_place(key, session.results, number, grain); !s) return s;
            if (const char *what = core::wrong_record(session.info, grain))
                return contradicts(key, number, std::string(": ") + what);
        }
        if (hosts.further().empty()) places = {};  // adopt() has nothing to do
        return Status::ok();
    }

    // Makes the ids of its further hosts those that `all` gives them.
    void adopt(HostNames &all) {
        std::vector<core::HostId> ids;
        for (const std::string &name : hosts.further()) ids.push_back(all.id(name));
        const std::size_t first = hosts.known().size();
        const auto change = [&](core::HostId &id) {
            if (id == core::no_host || static_cast<std::size_t>(id) < first) return;
            id = ids[static_cast<std::size_t>(id) - first];
        };
        for (const Place &place : places) {
            if (ids.empty()) break;
            core::Grain &grain = place.grain->second;
            change(grain.lessee);
            if (grain.course->old_lease.host != core::no_host) change(grain.course.edit().old_lease.host);
            if (!grain.course->nogo->empty())
                for (core::HostId &id : grain.course.edit().nogo.edit()) change(id);
            if (!grain.course->moves->empty())
                for (core::Move &move : grain.course.edit().moves.edit()) change(move.host);
        }
    }
};

class LogReader {
public:
    LogReader(store::Store &store, const SessionKey &key, SessionOnDisk &session)
        : store_(store),
          key_(key),
          session_(session),
          log_(session.info.grains_length),
          last_(session.info.grains_length) {}

    Status read(std::vector<core::Grains::iterator> &own_trees) {
        const std::string path = session_directory(key_) + "/" + grains_file;
        if (Status s = verify(path); !s) return of_file(path, s);
        std::vector<Block> blocks;
        for (std::size_t i = 0; i < last_.count(); i += in_block)
            blocks.push_back({{}, HostNames(session_.hosts.known()), {}, 0, {}, {}});
        in_parts(
            blocks.size(), [&](std::size_t i) { return make(blocks[i]); },
            [&](std::size_t i) { blocks[i].wrong = blocks[i].decode(text(), key_, session_); });
        for (Block &block : blocks) {
            if (!block.wrong) return block.wrong;
            take(block, own_trees);
        }
        return Status::ok();
    }

private:
    static constexpr std::size_t in_block = 4096;

    std::string_view text() const { return {log_.bytes().data(), log_.bytes().size()}; }

    // While this thread reads, the others verify.
    Status verify(const std::string &path) {
        std::vector<Piece> pieces((text().size() + LargeMemory::page - 1) / LargeMemory::page);
        Status wrong;
        std::size_t had = 0;
        in_parts(
            pieces.size(),
            [&](std::size_t i) {
                const std::size_t size = std::min(LargeMemory::page, text().size() - had);
                const auto more = store_.read_into(path, had, log_.mapped(had, size));
                if (!more) wrong = more.status();
                else if (*more < size) wrong = fail(Code::io_error, "it is shorter than recorded");
                had += size;
                cut(pieces[i], i == 0 ? 0 : pieces[i - 1].end, had);
                return bool(wrong);
            },
            [&](std::size_t i) { pieces[i].verify(text()); });
        if (!wrong) return wrong;
        for (const Piece &piece : pieces) {
            if (!piece.wrong) return piece.wrong;
            for (const Piece::Entry &entry : piece.entries) last_.note(entry.number, piece.begin + entry.at);
        }
        return Status::ok();
    }

    // The piece has the records that end in what was read. What is left at the end is none.
    void cut(Piece &piece, std::size_t begin, std::size_t had) const {
        std::string_view rest = text().substr(begin, had - begin);
        while (pass_record(rest)) ++piece.count;
        piece.begin = begin;
        piece.end = had == text().size() ? had : had - rest.size();
    }

    bool make(Block &block) {
        core::Grains &grains = session_.grains;
        GrainNumber number = 0;
        std::uint64_t at = 0;
        block.places.reserve(in_block);
        while (block.places.size() < in_block && last_.next(number, at))
            block.places.push_back({grains.try_emplace(grains.end(), number), at});
        return true;
    }

    void take(Block &block, std::vector<core::Grains::iterator> &own_trees) {
        block.adopt(session_.hosts);
        session_.info.grains_live += block.bytes;
        session_.sifted.settled.add(block.settled);
        for (const core::Grains::iterator at : block.others) {
            if (at->second.own_tree) own_trees.push_back(at);
            else session_.sifted.others.push_back(at);
        }
    }

    store::Store &store_;
    const SessionKey &key_;
    SessionOnDisk &session_;
    const LargeMemory log_;
    LastRecords last_;
};

}  // namespace

Status take_place(const SessionKey &key, std::vector<GrainNumber> &results, GrainNumber number, const core::Grain &g) {
    const auto *end = std::get_if<core::Finished>(&g.phase);
    if (!end) return Status::ok();
    constexpr const char *what = " has no place of its own in the order of results";
    const auto place = static_cast<std::size_t>(end->result_index);  // -1 is beyond all
    if (place >= results.size()) return contradicts(key, number, what);
    const GrainNumber other = std::atomic_ref(results[place]).exchange(number, std::memory_order_relaxed);
    return other == -1 ? Status::ok() : contradicts(key, std::max(number, other), what);
}

Status read_log(store::Store &store, const SessionKey &key, SessionOnDisk &session,
                std::vector<core::Grains::iterator> &own_trees) {
    const std::uint64_t length = session.info.grains_length;
    if (length == 0) return Status::ok();
    if (length > max_log)
        return of_file(session_directory(key) + "/" + grains_file,
                       fail(Code::io_error, "its recorded length is impossible"));
    return LogReader(store, key, session).read(own_trees);
}

}  // namespace dcs::record
