#include "scheduler/record/read_session.h"

#include <algorithm>

#include "base/planted.h"
#include "scheduler/record/codec.h"
#include "scheduler/record/paths.h"
#include "store/names.h"

namespace dcs::record {
namespace {

// No file that is read whole here gets near these; a length from a damaged record might.
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

class SessionReader {
public:
    SessionReader(store::Store &store, const SessionKey &key, const HostNames::Known &known, core::SessionInfo info)
        : store_(store), key_(key), session_{{std::move(info), {}, {}, {}}, {}, HostNames(known)} {
        session_.results.resize(static_cast<std::size_t>(std::max(0, session_.info.result_count)), -1);
    }

    Result<SessionOnDisk> read() {
        std::vector<core::Grains::iterator> own_trees;
        if (auto s = read_log(store_, key_, session_, own_trees); !s) return s;
        if (auto s = read_own_trees(own_trees); !s) return s;
        if (auto s = check_others(); !s) return s;
        if (planted("record.order_by_number")) order_by_number();
        return std::move(session_);
    }

private:
    // A grain whose own tree is damaged is set aside alone, the rest of its session runs.
    Status read_own_trees(const std::vector<core::Grains::iterator> &own_trees) {
        for (const core::Grains::iterator place : own_trees) {
            const GrainNumber number = place->first;
            auto own = read_own_tree(GrainKey{key_, number});
            if (!own && own.status().code == Code::protocol) return own.status();
            if (!own) {
                session_.damaged[number] = own.status().text;
                session_.grains.erase(place);
                continue;
            }
            place->second = core::Grain(std::move(own->grain));
            session_.sifted.others.push_back(place);
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

    // What the checksums cannot tell: records that contradict each other would be our own bug on the way to disk. Such
    // a session is better set aside than believed.
    Status check_others() {
        std::vector<std::pair<std::int64_t, GrainNumber>> queue;
        for (const core::Grains::const_iterator at : session_.sifted.others) {
            const auto &[number, g] = *at;
            if (auto s = take_place(key_, session_.results, number, g); !s) return s;
            if (const auto *ready = std::get_if<core::Ready>(&g.phase))
                queue.emplace_back(ready->queue_position, number);
            if (g.status() == core::GrainStatus::running && g.lessee == core::no_host)
                return contradicts(key_, number, " runs on no host");
        }
        if (!std::is_sorted(queue.begin(), queue.end())) std::sort(queue.begin(), queue.end());
        for (std::size_t i = 1; i < queue.size(); ++i)
            if (queue[i].first == queue[i - 1].first)
                return contradicts(key_, queue[i].second, " has the same place in the queue as another");
        return Status::ok();
    }

    // The planted bug: results in the order of their grains' numbers, not of their ends.
    void order_by_number() {
        std::fill(session_.results.begin(), session_.results.end(), -1);
        std::int32_t index = 0;
        for (auto &[number, grain] : session_.grains)
            if (auto *end = std::get_if<core::Finished>(&grain.phase)) {
                session_.results[static_cast<std::size_t>(index)] = number;
                end->result_index = index++;
            }
    }

    store::Store &store_;
    const SessionKey &key_;
    SessionOnDisk session_;
};

}  // namespace

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
