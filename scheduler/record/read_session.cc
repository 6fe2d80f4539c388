#include "scheduler/record/read_session.h"

#include <algorithm>

#include "base/large_work.h"
#include "base/planted.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "store/names.h"

namespace dcs::record {
namespace {

// No file that is read whole here gets near these; a length from a damaged record might.
constexpr std::uint64_t max_log = std::uint64_t{4} << 30;
constexpr std::uint64_t max_status = 4u << 20;
constexpr std::uint64_t max_marker = 4096;

// A tree that the store, or this scheduler, has set aside: the marker's text, as an error.
Status check_marker(store::Store &store, const std::string &directory) {
    const std::string path = directory + "/" + store::damage_marker;
    auto text = store.read(path, 0, max_marker);
    if (!text && text.status().code == Code::not_found) return Status::ok();
    if (text) text->erase(text->find_last_not_of('\n') + 1);
    return of_file(path, text ? fail(Code::io_error, *text) : text.status());
}

// What the checksums cannot tell: records that contradict each other would be our own bug on the
// way to disk. Such a session is better set aside than believed.
class Contradictions {
public:
    Contradictions(const SessionKey &key, const core::SessionInfo &info)
        : key_(key), taken_(static_cast<std::size_t>(std::max(0, info.result_count))) {}

    Status take(GrainNumber number, const core::Grain &g) {
        if (const auto *end = std::get_if<core::Finished>(&g.phase)) {
            const auto place = static_cast<std::size_t>(end->result_index);  // -1 is beyond all
            if (place >= taken_.size() || taken_[place])
                return wrong(number, " has no place of its own in the order of results");
            taken_[place] = true;
        } else if (const auto *ready = std::get_if<core::Ready>(&g.phase)) {
            queue_.emplace_back(ready->queue_position, number);
        } else if (g.status() == core::GrainStatus::running && g.lessee == core::no_host) {
            return wrong(number, " runs on no host");
        }
        return Status::ok();
    }

    // After all of them.
    Status queue() {
        if (!std::is_sorted(queue_.begin(), queue_.end())) std::sort(queue_.begin(), queue_.end());
        for (std::size_t i = 1; i < queue_.size(); ++i)
            if (queue_[i].first == queue_[i - 1].first)
                return wrong(queue_[i].second, " has the same place in the queue as another");
        return Status::ok();
    }

private:
    Status wrong(GrainNumber number, const char *what) const {
        return of_file(session_directory(key_),
                       fail(Code::io_error, "grain " + to_text(GrainKey{key_, number}) + what));
    }

    const SessionKey &key_;
    std::vector<bool> taken_;
    std::vector<std::pair<std::int64_t, GrainNumber>> queue_;
};

// Of each grain, where its last record begins. The numbers of nearly all sessions have few gaps: those up to as many as
// there may be records are in a vector.
class LastRecords {
public:
    explicit LastRecords(std::size_t log_bytes) : most_(log_bytes / least_record) {}
    void note(GrainNumber number, std::size_t at) {
        const auto index = static_cast<std::size_t>(number);
        if (index >= most_) {
            beyond_[number] = at;
            return;
        }
        if (index >= starts_.size()) starts_.resize(index + 1, none);
        starts_[index] = at;
    }
    // Ascending.
    template <class Take> void each(Take take) const {
        for (std::size_t i = 0; i < starts_.size(); ++i)
            if (starts_[i] != none) take(static_cast<GrainNumber>(i), starts_[i]);
        for (const auto &[number, at] : beyond_) take(number, at);
    }

private:
    static constexpr std::size_t least_record = 8, none = SIZE_MAX;
    const std::size_t most_;
    std::vector<std::size_t> starts_;
    std::map<GrainNumber, std::size_t> beyond_;
};

struct Recorded {
    core::Grains::iterator grain;
    std::size_t at;  // where in the log its record begins
};

// Grains that are decoded one after the other.
struct Block {
    std::size_t begin = 0, end = 0;  // their places
    HostNames hosts;
    Status wrong;
    std::uint64_t bytes = 0;  // of their records

    void decode(std::string_view log, const std::vector<Recorded> &places) {
        const HostIds ids = [this](const std::string &name) { return hosts.id(name); };
        for (std::size_t i = begin; i < end && wrong; ++i) {
            std::string_view rest = log.substr(places[i].at);
            const std::size_t before = rest.size();
            core::DurableGrain &grain = places[i].grain->second;
            wrong = take_grain(rest, ids, grain).status();
            bytes += before - rest.size();
            if (i == begin) continue;
            const core::Grain &near = places[i - 1].grain->second;
            if (grain.demands == near.demands) grain.demands = near.demands;  // one allocation for both
        }
    }

    // Makes the ids of its further hosts those that `all` gives them.
    void adopt(HostNames &all, const std::vector<Recorded> &places) {
        std::vector<core::HostId> ids;
        for (const std::string &name : hosts.further()) ids.push_back(all.id(name));
        const std::size_t first = hosts.known().size();
        const auto change = [&](core::HostId &id) {
            if (id == core::no_host || static_cast<std::size_t>(id) < first) return;
            id = ids[static_cast<std::size_t>(id) - first];
        };
        for (std::size_t i = begin; i < end && !ids.empty(); ++i) {
            core::Grain &grain = places[i].grain->second;
            change(grain.lessee);
            if (grain.course->old_lease.host != core::no_host) change(grain.course.edit().old_lease.host);
            if (!grain.course->nogo->empty())
                for (core::HostId &id : grain.course.edit().nogo.edit()) change(id);
            if (!grain.course->moves->empty())
                for (core::Move &move : grain.course.edit().moves.edit()) change(move.host);
        }
    }
};

class SessionReader {
public:
    SessionReader(store::Store &store, const SessionKey &key, const HostNames::Known &known, core::SessionInfo info)
        : store_(store),
          key_(key),
          session_{std::move(info), {}, {}, HostNames(known)},
          contradictions_(key, session_.info) {}

    Result<SessionOnDisk> read() {
        if (auto s = read_log(); !s) return s;
        if (auto s = read_own_trees(); !s) return s;
        if (auto s = contradictions_.queue(); !s) return s;
        if (planted("record.order_by_number")) order_by_number();
        return std::move(session_);
    }

private:
    Status read_log() {
        const std::uint64_t length = session_.info.grains_length;
        if (length == 0) return Status::ok();
        const std::string path = session_directory(key_) + "/" + grains_file;
        if (length > max_log) return of_file(path, fail(Code::io_error, "its recorded length is impossible"));
        const LargeMemory log(length);
        const auto had = store_.read_into(path, 0, log.bytes());
        if (!had) return of_file(path, had.status());
        if (*had < length) return of_file(path, fail(Code::io_error, "it is shorter than recorded"));
        std::vector<Recorded> places;
        if (auto s = take_log({log.bytes().data(), log.bytes().size()}, places); !s) return of_file(path, s);
        return take_grains(places);
    }

    // Of each grain the last record counts; only that one is decoded.
    Status take_log(std::string_view log, std::vector<Recorded> &places) {
        LastRecords last(log.size());
        for (std::string_view rest = log; !rest.empty();) {
            const std::size_t at = log.size() - rest.size();
            const auto entry = next_grain(rest);
            if (!entry) return entry.status();
            last.note(entry->number, at);
        }
        last.each([&](GrainNumber number, std::size_t at) {
            places.push_back({session_.grains.try_emplace(session_.grains.end(), number), at});
        });
        constexpr std::size_t in_block = 4096;
        std::vector<Block> blocks;
        for (std::size_t begin = 0; begin < places.size(); begin += in_block)
            blocks.push_back({begin, std::min(places.size(), begin + in_block), HostNames(session_.hosts.known())});
        in_parts(blocks.size(), [&](std::size_t i) { blocks[i].decode(log, places); });
        for (Block &block : blocks) {
            if (!block.wrong) return block.wrong;
            block.adopt(session_.hosts, places);
            session_.info.grains_live += block.bytes;
        }
        return Status::ok();
    }

    Status take_grains(const std::vector<Recorded> &places) {
        for (const Recorded &place : places) {
            const auto &[number, grain] = *place.grain;
            if (grain.own_tree) own_trees_.push_back(place.grain);
            else if (auto s = contradictions_.take(number, grain); !s) return s;
        }
        return Status::ok();
    }

    // A grain whose own tree is damaged is set aside alone, the rest of its session runs.
    Status read_own_trees() {
        for (const core::Grains::iterator place : own_trees_) {
            const GrainNumber number = place->first;
            auto own = read_own_tree(GrainKey{key_, number});
            if (!own && own.status().code == Code::protocol) return own.status();
            if (!own) {
                session_.damaged[number] = own.status().text;
                session_.grains.erase(place);
                continue;
            }
            place->second = core::Grain(std::move(own->grain));
            if (auto s = contradictions_.take(number, place->second); !s) return s;
        }
        return Status::ok();
    }

    Result<GrainRecord> read_own_tree(const GrainKey &key) {
        if (auto s = check_marker(store_, grain_directory(key)); !s) return s;
        const std::string path = grain_directory(key) + "/" + status_file;
        auto bytes = store_.read(path, 0, max_status);
        if (!bytes) return of_file(path, bytes.status());
        auto own = decode_grain(*bytes, [this](const std::string &name) { return session_.hosts.id(name); });
        if (!own) return of_file(path, own.status());
        if (own->number != key.grain || !own->grain.own_tree)
            return of_file(path, fail(Code::io_error, "it is the status of another grain"));
        return own;
    }

    // The planted bug: results in the order of their grains' numbers, not of their ends.
    void order_by_number() {
        std::int32_t index = 0;
        for (auto &[number, grain] : session_.grains)
            if (auto *end = std::get_if<core::Finished>(&grain.phase)) end->result_index = index++;
    }

    store::Store &store_;
    const SessionKey &key_;
    SessionOnDisk session_;
    Contradictions contradictions_;
    std::vector<core::Grains::iterator> own_trees_;
};

}  // namespace

Status of_file(const std::string &path, const Status &why) { return fail(why.code, path + ": " + why.text); }

core::HostId HostNames::id(const std::string &name) {
    if (name != last_name_) {
        last_ = look_up(name);
        last_name_ = name;
    }
    return last_;
}

core::HostId HostNames::look_up(const std::string &name) {
    if (const auto there = known_->find(name); there != known_->end()) return there->second;
    const auto next = static_cast<core::HostId>(known_->size() + further_.size());
    const auto [there, fresh] = ids_.emplace(name, next);
    if (fresh) further_.push_back(name);
    return there->second;
}

Result<SessionOnDisk> read_session(store::Store &store, const SessionKey &key, const HostNames::Known &known) {
    if (auto s = check_marker(store, session_directory(key)); !s) return s;
    const std::string path = session_directory(key) + "/" + status_file;
    auto bytes = store.read(path, 0, max_status);
    if (!bytes) return of_file(path, bytes.status());
    auto info = decode_session(*bytes);
    if (!info) return of_file(path, info.status());
    return SessionReader(store, key, known, std::move(*info)).read();
}

}  // namespace dcs::record
