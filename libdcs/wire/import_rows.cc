#include "wire/import_rows.h"

#include <algorithm>

#include "base/limits.h"
#include "wire/message.h"

namespace dcs::wire {
namespace {

constexpr std::size_t known_row_bytes = 9, least_row_bytes = 32;

Status refused(const std::string &why) { return fail(Code::invalid, "the import is refused: " + why); }
Status not_rows() { return refused("the decoded rows are malformed"); }

template <class N> void put(ByteWriter &w, N value) { w.u64(static_cast<std::uint64_t>(std::int64_t{value})); }
template <class N> void get(ByteReader &in, N &value) { value = static_cast<N>(in.u64()); }

// Each field that is a number, in the order of its place.
template <class Session, class Use> void numbers_of_head(Session &head, const Use &use) {
    use(head.session), use(head.results), use(head.acknowledged), use(head.handed_out), use(head.grains);
}
template <class Grain, class Use> void numbers_of_grain(Grain &g, const Use &use) {
    use(g.grain), use(g.incarnation), use(g.sequence), use(g.failures), use(g.exit_code), use(g.signal);
    use(g.result_index), use(g.queue), use(g.input_position);
    auto &u = g.usage;
    use(u.user_us), use(u.system_us), use(u.max_rss_kb), use(u.minor_faults), use(u.major_faults);
    use(u.in_blocks), use(u.out_blocks);
}
template <class Grain, class Use> void streams_of_grain(Grain &g, const Use &use) {
    use(g.input), use(g.out), use(g.err), use(g.checkpoint), use(g.message);
}

void put_head(ByteWriter &w, const ExportedSession &head, std::uint32_t count) {
    w.text(head.user), w.text(head.ident), w.text(head.state);
    numbers_of_head(head, [&](auto value) { put(w, static_cast<std::int64_t>(value)); });
    w.text(head.log);
    w.u32(count);
}

void put_grain(ByteWriter &w, const ExportedGrain &g) {
    numbers_of_grain(g, [&](auto value) { put(w, static_cast<std::int64_t>(value)); });
    w.u8(g.queued ? 1 : 0);
    w.text(g.state), w.text(g.host);
    w.u32(static_cast<std::uint32_t>(g.nogo.size()));
    for (const std::string &name : g.nogo) w.text(name);
    w.text(pack(g.spec));
    streams_of_grain(g, [&](const ExportedStream &s) {
        w.u64(s.length);
        w.u8(s.whole ? 1 : 0);
        w.text(s.content);
    });
}

// One at least: the head.
Result<std::uint32_t> count_records(std::string_view stream) {
    ByteReader in(stream);
    std::uint32_t count = 0;
    do {
        (void)in.text();
        ++count;
    } while (in.good() && !in.at_end());
    return in.good() ? Result<std::uint32_t>(count) : Result<std::uint32_t>(refused("the stream ends inside a record"));
}

Status put_known(ByteWriter &w, const std::string &log, std::vector<std::int32_t> numbers) {
    const std::size_t count = numbers.size();
    ResultsKnown known(std::move(numbers));
    EventCursor cursor(log);
    Event event;
    while (cursor.next(event)) known.take(event);
    const std::string where = " at byte " + std::to_string(log.size() - cursor.left().size());
    if (!cursor.status()) return refused(cursor.status().text + where);
    if (!cursor.left().empty()) return refused("the event log: it ends inside a frame," + where);
    for (std::size_t i = 0; i < count; ++i) {
        const ResultsKnown::OfGrain &g = known.at(i);
        w.u32(g.known), w.u32(g.killed_after), w.u8(g.told ? 1 : 0);
    }
    return Status::ok();
}

}  // namespace

ResultsKnown::ResultsKnown(std::vector<std::int32_t> grains) : grains_(std::move(grains)), told_(grains_.size()) {}

void ResultsKnown::take(const Event &e) {
    if (!std::exchange(begun_, true)) imported_ = e.kind != EventKind::opened;
    if (e.grain >= 0) {
        const auto found = std::lower_bound(grains_.begin(), grains_.end(), e.grain);
        if (found == grains_.end() || *found != e.grain) return;
        return take_grain(e, told_[static_cast<std::size_t>(found - grains_.begin())]);
    }
    if (e.kind == EventKind::handed_out && (e.number >= handed_out_ || imported_)) handed_out_ = e.number;
    if (e.kind == EventKind::set_back) handed_out_ = std::min(handed_out_, e.number);
    if (e.kind == EventKind::imported) {
        imported_ = true;
        ++imports_;  // no grain counts as killed any more
    }
}

// An event of a grain that was never submitted there counts only if an import explains it.
void ResultsKnown::take_grain(const Event &e, OfGrain &g) {
    if (e.kind == EventKind::submitted) {
        if (!g.told) g = OfGrain{handed_out_, 0, true, 0};
        return;
    }
    if (!g.told && !imported_ && e.kind != EventKind::killed) return;
    g.told = true;
    switch (e.kind) {
    case EventKind::killed:
        if (g.killed_in == imports_) return;
        g.killed_in = imports_;
        g.killed_after = handed_out_;
        return;
    case EventKind::left:
    case EventKind::finished: g.killed_in = 0; return;
    case EventKind::undone:
        g.killed_in = 0;
        g.killed_after = 0;
        return;
    case EventKind::forgotten: g = OfGrain{}; return;
    default: return;
    }
}

Result<std::string> rows_of_import(std::string_view stream) {
    const auto records = count_records(stream);
    if (!records) return records.status();
    ByteReader in(stream);
    auto head = unpack_exported_session(in.text());
    if (!head) return refused(head.status().text);
    if (head->log.size() > limits::import_log_bytes)
        return fail(Code::limit, "the import is refused: its event log has " + std::to_string(head->log.size()) +
                                     " bytes, but an import accepts at most " +
                                     std::to_string(limits::import_log_bytes) +
                                     ": remove its file `log` and import it again");
    ByteWriter rows;
    rows.bytes().reserve(stream.size() + stream.size() / 2);
    std::vector<std::int32_t> numbers;
    put_head(rows, *head, *records - 1);
    while (!in.at_end()) {
        const auto grain = unpack_exported_grain(in.text());
        if (!grain) return refused(grain.status().text);
        put_grain(rows, *grain);
        numbers.push_back(grain->grain);
    }
    // Grains out of order are refused when the rows are read, so nothing needs to be known of them.
    if (!std::is_sorted(numbers.begin(), numbers.end())) numbers.assign(numbers.size(), -1);
    if (Status s = put_known(rows, head->log, std::move(numbers)); !s) return s;
    if (rows.size() > import_rows_bytes(stream.size())) return not_rows();
    return std::move(rows.bytes());
}

Result<ExportedSession> ImportRows::head() {
    ExportedSession head;
    head.user = in_.text(), head.ident = in_.text(), head.state = in_.text();
    numbers_of_head(head, [&](auto &value) { get(in_, value); });
    head.log = in_.text();
    count_ = in_.u32();
    if (!in_.good() || count_ > in_.left() / least_row_bytes) return not_rows();
    return head;
}

Result<ExportedGrain> ImportRows::grain() {
    ExportedGrain g;
    numbers_of_grain(g, [&](auto &value) { get(in_, value); });
    g.queued = in_.u8() != 0;
    g.state = in_.text(), g.host = in_.text();
    const std::uint32_t names = in_.u32();
    if (names > limits::nogo_items) return not_rows();
    for (std::uint32_t i = 0; i < names && in_.good(); ++i) g.nogo.emplace_back(in_.text());
    const std::string_view spec = in_.text();
    streams_of_grain(g, [&](ExportedStream &s) {
        s.length = in_.u64();
        s.whole = in_.u8() != 0;
        s.content = in_.text();
    });
    if (!in_.good()) return not_rows();
    auto known = unpack_spec(spec);  // as of any submission
    if (!known) return known.status();
    g.spec = std::move(*known);
    return g;
}

Result<std::vector<ResultsKnown::OfGrain>> ImportRows::known() {
    std::vector<ResultsKnown::OfGrain> all;
    if (in_.left() != std::size_t{count_} * known_row_bytes) return not_rows();
    all.reserve(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
        ResultsKnown::OfGrain g;
        g.known = in_.u32(), g.killed_after = in_.u32(), g.told = in_.u8() != 0;
        all.push_back(g);
    }
    return all;
}

}  // namespace dcs::wire
