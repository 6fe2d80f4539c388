// dcs.hpp: dcs.h for C++20. Header only; link with -ldcs. dcs.h describes the calls.
//
//     dcs::session session = dcs::session::resume("squares", 100);
//     for (int i = 0; i < 100; ++i)
//         session.submit(i, {.argv = {"/usr/bin/factor"}, .input = std::to_string(i * i + 1) + "\n"});
//     for (const dcs::result &result : session.results()) std::cout << result.output;
//     session.close();
//
// Every failure is an exception, dcs::error; there are no return codes. Calls use the default pool unless they name one:
//
//     dcs::pool east({.directory = "/scratch/east"});
//     dcs::session session = east.resume("squares", 100);
#ifndef DCS_HPP
#define DCS_HPP

#if __cplusplus < 201709L
#error "dcs.hpp is for C++20: compile with -std=c++20"
#endif

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#ifdef DCS_NO_PAPER_NAMES
#include "dcs.h"
#else
#define DCS_NO_PAPER_NAMES  // nothing here is of 1990; a program that includes dcs.h itself has them
#include "dcs.h"
#undef DCS_NO_PAPER_NAMES
#endif

namespace dcs {

// A failed call. what(): what happened and what to do about it. After session::submit of many grains: the first taken()
// of them are submitted; refused() is the index of the grain that caused the error, or their number if the error does
// not concern one grain.
class error : public std::runtime_error {
public:
    error(int code, std::string text, std::size_t taken = 0, std::size_t refused = 0)
        : std::runtime_error(text + " (" + d_strerror(code) + ")"),
          code_(code),
          text_(std::move(text)),
          taken_(taken),
          refused_(refused) {}
    int code() const noexcept { return code_; }                       // D_E_...
    const char *name() const noexcept { return d_errorname(code_); }  // "D_E_..."
    const std::string &text() const noexcept { return text_; }        // what happened
    const char *hint() const noexcept { return d_strerror(code_); }   // what to do
    std::size_t taken() const noexcept { return taken_; }
    std::size_t refused() const noexcept { return refused_; }

private:
    int code_;
    std::string text_;
    std::size_t taken_, refused_;
};

inline void check(int code) {
    if (code != D_OK) throw error(code, d_errortext());
}

namespace detail {
// For C, which would cut it at a NUL.
inline const char *whole(const std::string &text) {
    if (text.find('\0') == std::string::npos) return text.c_str();
    throw error(D_E_INVALID, "a text of " + std::to_string(text.size()) + " bytes contains a NUL byte, after \"" +
                                 text.c_str() + "\": only the input of a grain may");
}
inline const char *text_or_null(const std::string &text) { return text.empty() ? nullptr : whole(text); }
template <class To, class From> void put_field(To &to, const From &from) {
    if constexpr (std::is_same_v<From, std::string>) to = text_or_null(from);
    else to = from;
}
}  // namespace detail

// See d_pool_options.
struct pool_options {
    std::string directory = {};  // empty: from the environment
    double patience_s = -1;      // negative: from the environment
    int auth_fd = -1;
};

class session;
class answer;

// An open pool. Copies share it; it is closed when the last copy and the last of its sessions and results ends.
class pool {
public:
    pool() noexcept : program_(of_default_pool()) {}  // the default pool: the environment names it
    pool(const pool &) = default;                     // and no move, which would leave a pool that is none
    pool &operator=(const pool &) = default;
    explicit pool(const pool_options &options) : program_(std::make_shared<program>()) {
        d_pool_options c;
        d_pool_options_init(&c);
        c.directory = detail::text_or_null(options.directory);
        c.patience_s = options.patience_s;
        c.auth_fd = options.auth_fd;
        handle_.reset(d_pool_open(&c), d_pool_close);
        if (!handle_) throw error(d_errornumber(), d_errortext());
    }
    d_pool *handle() const noexcept { return handle_.get(); }
    void set_patience(double seconds) const { check(d_pool_set_patience(handle(), seconds)); }

    // Names this program; all its sessions in a pool have one ident.
    void authorize(const std::string &ident) const {
        const char *name = detail::whole(ident);
        const std::string now = program_->named(ident);
        if (!now.empty() && now != ident)  // it would lose the sessions of the first
            throw error(D_E_INVALID, "this program calls itself \"" + now + "\" already and cannot be \"" + ident +
                                         "\" as well: use one ident for all sessions in a pool");
        check(d_pool_set_new_demands(handle(), 1));
        const int code = d_pool_get_auth(handle(), name);
        if (code != D_OK && now.empty()) program_->named("");
        check(code);
    }
    // A new session; one that is there from an earlier run, or a new one; a terminated one that becomes active again.
    inline session open(const std::string &ident, int number) const;
    inline session resume(const std::string &ident, int number, bool sent_reset = true) const;
    inline session reopen(const std::string &ident, int number, bool sent_reset = true) const;
    // The existing session of this ident from an earlier run, otherwise a new one, under a number that no session has had.
    // While a program has a session open, it is another one.
    inline session resume(const std::string &ident, bool sent_reset = true) const;
    inline answer query(int type, int session = -1, int grain = -1, const char *user = nullptr) const;

private:
    friend class session;
    struct program {
        std::mutex mutex, opening;                    // opening: while a session is looked for
        std::string ident;                            // empty: authorize() was not called
        std::multiset<int> taken;                     // sessions that it has open
        std::string named(const std::string &name) {  // from now on, if it had none; what it was
            const std::lock_guard held(mutex);
            return ident.empty() || name.empty() ? std::exchange(ident, name) : ident;
        }
    };
    static const std::shared_ptr<program> &of_default_pool() {
        static const auto *made = new auto(std::make_shared<program>());  // also for static objects at exit()
        return *made;
    }
    inline session taken(int number) const;
    std::shared_ptr<d_pool> handle_;
    std::shared_ptr<program> program_;
};

struct file_closer {
    void operator()(std::FILE *file) const noexcept { std::fclose(file); }
};
using stream = std::unique_ptr<std::FILE, file_closer>;  // open for reading

inline std::string read_all(std::FILE *file) {
    std::string text;
    char piece[16384];
    for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, n);
    if (std::ferror(file) != 0) throw error(D_E_IO_ERROR, "a stream cannot be read");
    return text;
}

// A file of a grain; see d_file.
struct file {
    std::string name = {};  // below the working directory; empty for programs
    std::string path = {};
    std::string binary_class = {};  // programs: for hosts of this class; empty: for all
    bool executable = false;
};

// A grain's demands of the pool and its hosts: type, name and default, in the order of d_grain.
#define DCS_CXX_DEMANDS(field)                                                                            \
    field(unsigned, host_class, 0) field(int, thrash, 0) field(bool, urgent, false) field(int, notice, 0) \
        field(int, attempts, 3) field(int, cores, 0) field(int, memory_mb, 0) field(int, wall_s, 0)       \
            field(std::string, resources, {})

// A grain to submit; see d_grain.
struct grain {
    std::vector<std::string> argv = {};
    std::string input = {};             // may hold any byte
    std::vector<std::string> env = {};  // "NAME=value"
#define DCS_CXX_FIELD(type, name, unless_said) type name = unless_said;
    DCS_CXX_DEMANDS(DCS_CXX_FIELD)
#undef DCS_CXX_FIELD
    std::string directory = {};  // absolute; empty: a private one
    std::string label = {};
    std::vector<file> files = {}, programs = {};
    std::vector<std::string> outputs = {};
    std::string input_path = {};  // instead of input
    int input_fd = -1;            // likewise, to its end
    std::string image = {};       // of the container in which it runs; empty: none
};

struct order {
    int number = 0;
    grain what = {};
};

// The result of a grain; it owns its strings.
struct result {
    int session = 0, grain = 0;
    int index = 0;      // in the order of finishing, from 0
    int completed = 0;  // results in the session so far
    int signal = 0, code = 0;
    struct rusage usage = {};
    std::string output = {}, error = {};  // the first 20 KiB
    std::size_t output_length = 0, error_length = 0;
    pool where = {};

    bool ok() const noexcept { return signal == 0 && code == 0; }
    stream open(const char *which) const {  // "out" or "err"
        std::FILE *opened = nullptr;
        check(d_pool_grain_stream(where.handle(), nullptr, session, grain, which, &opened));
        return stream(opened);
    }
    stream open_file(const std::string &name) const {  // an output file
        std::FILE *opened = nullptr;
        check(d_pool_grain_file(where.handle(), nullptr, session, grain, detail::whole(name), &opened));
        return stream(opened);
    }
    std::string whole_output() const { return output.size() == output_length ? output : read_all(open("out").get()); }
    std::string whole_error() const { return error.size() == error_length ? error : read_all(open("err").get()); }
};

namespace detail {

// A grain as a C struct. It points into `from`, which must outlive it.
class c_grain {
public:
    explicit c_grain(const grain &from) : argv_(pointers(from.argv)), env_(pointers(from.env)) {
        d_grain_init(&c);
        for (const std::string &name : from.outputs) outputs_.push_back(whole(name));
        if (!from.outputs.empty()) outputs_.push_back(nullptr);
        fill(files_, from.files);
        fill(programs_, from.programs);
        c.gargv = argv_.data();
        c.genvv = env_.data();
        c.input = from.input.data();
        c.input_length = from.input.size();
#define DCS_CXX_FIELD(type, name, unless_said) put_field(c.name, from.name);
        DCS_CXX_DEMANDS(DCS_CXX_FIELD)
#undef DCS_CXX_FIELD
        c.directory = text_or_null(from.directory);
        c.label = text_or_null(from.label);
        c.files = files_.data();
        c.file_count = files_.size();
        c.programs = programs_.data();
        c.program_count = programs_.size();
        c.outputs = outputs_.empty() ? nullptr : outputs_.data();
        c.input_path = text_or_null(from.input_path);
        c.input_fd = from.input_fd;
        c.image = text_or_null(from.image);
    }
    c_grain(c_grain &&) = default;
    c_grain(const c_grain &) = delete;
    d_grain c;

private:
    static std::vector<char *> pointers(const std::vector<std::string> &strings) {
        std::vector<char *> to;
        for (const std::string &s : strings) to.push_back(const_cast<char *>(whole(s)));  // C's argv is not const
        to.push_back(nullptr);
        return to;
    }
    static void fill(std::vector<d_file> &to, const std::vector<file> &from) {
        for (const file &f : from)
            to.push_back({sizeof(d_file), text_or_null(f.name), whole(f.path), text_or_null(f.binary_class),
                          f.executable ? 1 : 0, 0});
    }
    std::vector<char *> argv_, env_;
    std::vector<d_file> files_, programs_;
    std::vector<const char *> outputs_;
};

inline result result_of(const pool &where, int session, const d_result &row) {
    constexpr std::size_t most = 20 * 1024;
    return {.session = session,
            .grain = row.grain_num,
            .index = row.result_index,
            .completed = row.completed,
            .signal = row.termsig,
            .code = row.retcode,
            .usage = row.rusage,
            .output = std::string(row.output, std::min(row.outlen, most)),
            .error = std::string(row.error, std::min(row.errlen, most)),
            .output_length = row.outlen,
            .error_length = row.errlen,
            .where = where};
}

struct info_freer {
    void operator()(d_info *info) const noexcept { d_query_free(info); }
};

}  // namespace detail

// An answer of d_query. Its rows are valid as long as it exists, so give it a name:
//   const auto answer = dcs::query(D_Q_HOSTS);
//   for (const d_host_row &host : answer.hosts()) ...
class answer {
public:
    explicit answer(d_info *info) noexcept : info_(info) {}
    const d_info *operator->() const noexcept { return info_.get(); }
    std::span<const d_host_row> hosts() const &noexcept { return {info_->hosts, info_->host_count}; }
    std::span<const d_host_row> hosts() const && = delete;
    std::span<const d_session_row> sessions() const &noexcept { return {info_->sessions, info_->session_count}; }
    std::span<const d_session_row> sessions() const && = delete;
    std::span<const d_grain_row> grains() const &noexcept { return {info_->grains, info_->grain_count}; }
    std::span<const d_grain_row> grains() const && = delete;

private:
    std::unique_ptr<d_info, detail::info_freer> info_;
};

inline answer pool::query(int type, int session, int grain, const char *user) const {
    d_info *info = nullptr;
    check(d_pool_query(handle(), type, user, session, grain, &info));
    return answer(info);
}

// Of the default pool.
inline answer query(int type, int session = -1, int grain = -1, const char *user = nullptr) {
    return pool().query(type, session, grain, user);
}

// The remaining results, in the order in which grains finished; each step waits for the next one. Up to `batch` are taken
// at a time, and a batch counts as sent when the next one is requested. In the replay of a session that was closed
// before all its grains had ended, D_E_REPLAY_END follows the recorded results.
class result_range {
public:
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::input_iterator_tag;
        using value_type = result;
        using difference_type = std::ptrdiff_t;
        using pointer = const result *;
        using reference = const result &;
        iterator() = default;
        explicit iterator(result_range *range) : range_(range) { next(); }
        const result &operator*() const { return now_; }
        const result *operator->() const { return &now_; }
        iterator &operator++() {
            next();
            return *this;
        }
        void operator++(int) { next(); }
        bool operator==(std::default_sentinel_t) const noexcept { return range_ == nullptr; }

    private:
        inline void next();
        result_range *range_ = nullptr;
        result now_ = {};
    };
    iterator begin() { return iterator(this); }
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    friend class session;
    result_range(session *of, int batch) : session_(of), batch_(batch) {}
    session *session_;
    int batch_;
};

// A session of this program. Closed at the end of its scope; left open if an exception ends the scope, so that a rerun
// continues it, and in the child of a fork, where it can be used as well. Call close() to see an error of closing. One
// thread at a time may use a session.
class session {
public:
    // In the default pool; see the calls of the same names in class pool.
    static session open(const std::string &ident, int number) { return pool().open(ident, number); }
    static session resume(const std::string &ident, int number, bool sent_reset = true) {
        return pool().resume(ident, number, sent_reset);
    }
    static session reopen(const std::string &ident, int number, bool sent_reset = true) {
        return pool().reopen(ident, number, sent_reset);
    }
    static session resume(const std::string &ident, bool sent_reset = true) { return pool().resume(ident, sent_reset); }
    session(session &&from) noexcept
        : where_(from.where_),
          number_(std::exchange(from.number_, -1)),
          open_(std::exchange(from.open_, false)),
          unwinding_(from.unwinding_),
          process_(from.process_),
          ready_(std::move(from.ready_)),
          next_(from.next_) {}
    session(const session &) = delete;
    session &operator=(session &&) = delete;
    ~session() {
        if (!open_ || process_ != ::getpid()) return;
        if (std::uncaught_exceptions() > unwinding_) {
            leave();
            return;
        }
        const int left = unfinished("active");
        if (d_pool_close_ses(where_.handle(), number_) != D_OK) std::fprintf(stderr, "dcs: %s\n", d_errortext());
        else if (left > 0)
            std::fprintf(
                stderr,
                "dcs: session %d is closed, which ends %d of its grains; take results() to have them, close() to "
                "end them, or leave() to let them go on\n",
                number_, left);
        leave();
    }

    int number() const noexcept { return number_; }
    const pool &where() const noexcept { return where_; }

    // Durable when it returns. Repeating the same call changes nothing.
    void submit(int number, const grain &what) {
        const detail::c_grain one(what);
        check(d_pool_gexec_grain(where_.handle(), number_, number, &one.c));
    }
    void submit(std::span<const order> orders) {
        std::vector<detail::c_grain> grains;
        std::vector<d_grain_order> rows;
        grains.reserve(orders.size());
        rows.reserve(orders.size());
        for (const order &o : orders) {
            d_grain_order_init(&rows.emplace_back(), o.number);
            rows.back().grain = grains.emplace_back(o.what).c;
        }
        std::size_t taken = 0, refused = 0;
        const int code = d_pool_gexec_many(where_.handle(), number_, rows.data(), rows.size(), &taken, &refused);
        if (code != D_OK) throw error(code, d_errortext(), taken, refused);
    }

    // The next result, in the order in which grains finished; false: there are no more.
    bool wait(result &to, int batch = 1) { return take(D_BLOCK, to, batch); }
    // The same without waiting. false: none yet, or no more.
    bool poll(result &to) { return take(D_NO_BLOCK, to, 1); }
    result_range results(int batch = 64) & { return result_range(this, batch); }
    result_range results(int batch = 64) && = delete;  // of a session that ends before the first step

    // The grain does not run again, and a result that was not yet taken is discarded; results() takes some ahead.
    void kill(int number) { check(d_pool_gkill(where_.handle(), number_, number)); }
    // Terminates the session; results stay, and a rerun replays them.
    void close() {
        check(d_pool_close_ses(where_.handle(), number_));
        leave();
    }
    // From here on the end of its scope does not close it.
    void leave() noexcept {
        if (!open_) return;
        const std::lock_guard held(where_.program_->mutex);
        if (const auto found = where_.program_->taken.find(number_); found != where_.program_->taken.end())
            where_.program_->taken.erase(found);
        open_ = false;
    }

private:
    friend class pool;
    session(const pool &where, int number) : where_(where), number_(number) {}
    bool take(int block, result &to, int batch) {
        if (next_ == ready_.size()) {
            next_ = 0;
            ready_.clear();
            std::vector<d_result> rows(static_cast<std::size_t>(std::clamp(batch, 1, 1024)));
            d_result_init(rows.data(), rows.size());
            int count = 0;
            const int code =
                d_pool_gwait_many(where_.handle(), block, number_, static_cast<int>(rows.size()), rows.data(), &count);
            if (code == D_E_NOTHING_LEFT || (block == D_NO_BLOCK && code == D_E_NOTHING_YET)) return false;
            if (code != D_OK) {
                const error failed(code, d_errortext());  // before another call forgets the text
                if (code == D_E_REPLAY_END && unfinished("terminated") == 0) return false;
                throw failed;
            }
            for (const d_result &row : std::span(rows).first(static_cast<std::size_t>(count)))
                ready_.push_back(detail::result_of(where_, number_, row));
        }
        to = std::move(ready_[next_++]);
        return true;
    }

    // Grains that have not ended. -1: the session is not in this state, or that is not known.
    int unfinished(std::string_view state) const noexcept {
        try {
            const answer known = where_.query(D_Q_SESSIONS);
            for (const d_session_row &row : known.sessions())
                if (row.session == number_ && row.state == state && std::string_view(row.user) == known->user)
                    return row.ready + row.running;
        } catch (const std::exception &) {}
        return -1;
    }

    pool where_;
    int number_;
    bool open_ = true;
    int unwinding_ = std::uncaught_exceptions();
    pid_t process_ = ::getpid();
    std::vector<result> ready_ = {};
    std::size_t next_ = 0;
};

inline session pool::taken(int number) const {
    const std::lock_guard held(program_->mutex);
    program_->taken.insert(number);
    return session(*this, number);
}

inline session pool::open(const std::string &ident, int number) const {
    authorize(ident);
    check(d_pool_open_ses(handle(), number));
    return taken(number);
}

inline session pool::resume(const std::string &ident, int number, bool sent_reset) const {
    authorize(ident);
    check(d_pool_resume_ses(handle(), number, sent_reset ? 1 : 0));
    return taken(number);
}

inline session pool::reopen(const std::string &ident, int number, bool sent_reset) const {
    authorize(ident);
    check(d_pool_reopen_ses(handle(), number, sent_reset ? 1 : 0));
    return taken(number);
}

inline session pool::resume(const std::string &ident, bool sent_reset) const {
    authorize(ident);
    const std::lock_guard one_by_one(program_->opening);
    const auto is_taken = [&](int number) {
        const std::lock_guard held(program_->mutex);
        return program_->taken.count(number) != 0;
    };
    std::set<int> used;
    const answer known = query(D_Q_SESSIONS);
    for (const d_session_row &row : known.sessions()) {
        if (std::string_view(row.user) != known->user) continue;
        if (ident == row.ident && !is_taken(row.session)) return resume(ident, row.session, sent_reset);
        used.insert(row.session);
    }
    const int removed = known->last_session;
    for (int number = removed > 0 && removed < INT_MAX / 2 ? removed + 1 : 1;; ++number) {
        if (used.count(number) != 0) continue;
        const int code = d_pool_resume_ses(handle(), number, sent_reset ? 1 : 0);
        if (code == D_E_SESSION_TAKEN || code == D_E_SESSION_CLOSED) continue;  // by another program, just now
        check(code);
        return taken(number);
    }
}

inline void result_range::iterator::next() {
    if (!range_->session_->wait(now_, range_->batch_)) range_ = nullptr;
}

}  // namespace dcs

#undef DCS_CXX_DEMANDS
#endif
