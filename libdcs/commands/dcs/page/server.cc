#include "server.h"

#include <map>
#include <optional>
#include <set>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "answer.h"
#include "peer.h"

namespace dcs::commands::page {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using std::chrono::seconds;

constexpr std::size_t most_connections = 256, most_watchers = 128;
constexpr std::size_t most_of_others = 64, most_of_other = 4;  // connections of other users, and of one of them
constexpr std::uint32_t header_bytes = 8192;
constexpr int most_requests = 1000;  // of one connection
constexpr auto header_time = seconds(10), write_time = seconds(20), heartbeat = seconds(15);
constexpr auto done = asio::as_tuple(asio::use_awaitable);

using Request = http::request<http::empty_body>;

AskedFor asked_for(const Request &request) {
    const auto field = [&](http::field name) { return std::string(request[name]); };
    AskedFor asked;
    asked.method = std::string(request.method_string());
    asked.target = std::string(request.target());
    asked.host = field(http::field::host);
    asked.hosts = request.count(http::field::host);
    asked.accept = field(http::field::accept);
    asked.last_id = std::string(request["Last-Event-ID"]);
    asked.fetch_site = std::string(request["Sec-Fetch-Site"]);
    asked.fetch_mode = std::string(request["Sec-Fetch-Mode"]);
    return asked;
}

template <class Message> void set_fields(Message &message, const Answer &answer, bool keep) {
    message.result(static_cast<unsigned>(answer.status));
    message.keep_alive(keep);
    message.set(http::field::content_type, answer.type);
    for (const auto &[name, value] : fixed_fields) message.set(name, value);
    if (answer.type == picture_type) message.set("Content-Security-Policy", picture_policy);
    if (answer.status == 405) message.set(http::field::allow, "GET, HEAD");
}

}  // namespace

struct Server::Inside {
    Inside(Place where, bool for_all) : place(std::move(where)), metrics_for_all(for_all) {}

    template <class Protocol> asio::awaitable<void> accept(typename Protocol::acceptor acceptor);
    template <class Stream> asio::awaitable<void> serve(Stream stream, std::uint32_t uid, bool own);
    template <class Stream> asio::awaitable<bool> respond(Stream &stream, const Request &request, bool own, bool keep);
    template <class Stream> asio::awaitable<bool> write(Stream &stream, const Answer &answer, bool head, bool keep);
    template <class Stream> asio::awaitable<void> watch(Stream &stream, std::string last_id, bool head);
    asio::awaitable<Answer> ask_detail(const std::string &target);
    void take(std::shared_ptr<const Published> next);
    bool has_place(std::uint32_t uid, bool own) const;

    Place place;
    const bool metrics_for_all;
    asio::io_context io{1};
    std::optional<asio::ip::tcp::acceptor> tcp;
    std::optional<asio::local::stream_protocol::acceptor> local;
    Collector *collector = nullptr;
    std::shared_ptr<const Published> published;
    std::set<asio::steady_timer *> watchers;
    std::size_t connections = 0, of_others = 0;
    std::map<std::uint32_t, std::size_t> of_other;  // by uid
};

// One more as long as it lives.
class Counted {
public:
    explicit Counted(std::size_t &n) : n_(n) { ++n_; }
    ~Counted() { --n_; }
    Counted(const Counted &) = delete;
    Counted &operator=(const Counted &) = delete;

private:
    std::size_t &n_;
};

void Server::Inside::take(std::shared_ptr<const Published> next) {
    published = std::move(next);
    for (asio::steady_timer *timer : watchers) timer->cancel();
}

// Asked in the collector's thread, answered here.
asio::awaitable<Answer> Server::Inside::ask_detail(const std::string &target) {
    asio::steady_timer wait(io, asio::steady_timer::time_point::max());
    auto detail = std::make_shared<std::optional<Detail>>();
    // The timer outlives the question: this coroutine waits until it is answered.
    const bool taken = collector->ask(target, [this, detail, &wait](Detail found) {
        asio::post(io, [detail, &wait, found = std::move(found)]() mutable {
            *detail = std::move(found);
            wait.cancel();
        });
    });
    if (!taken) co_return refusal(503, "too many questions at a time: try again");
    while (!*detail) co_await wait.async_wait(done);
    co_return Answer{(*detail)->status, (*detail)->type, (*detail)->text};
}

template <class Stream>
asio::awaitable<bool> Server::Inside::write(Stream &stream, const Answer &answer, bool head, bool keep) {
    stream.expires_after(write_time);
    const std::string_view bytes = *answer.body;
    if (head) {
        http::response<http::empty_body> message;
        set_fields(message, answer, keep);
        message.content_length(bytes.size());
        http::response_serializer<http::empty_body> serializer(message);
        const auto [error, n] = co_await http::async_write_header(stream, serializer, done);
        co_return !error && keep;
    }
    http::response<http::span_body<const char>> message;
    set_fields(message, answer, keep);
    message.body() = beast::span<const char>(bytes.data(), bytes.size());
    message.prepare_payload();
    const auto [error, n] = co_await http::async_write(stream, message, done);
    co_return !error && keep;
}

// Of a browser that reads slowly only the newest state is kept; one that does not read at all loses its connection.
template <class Stream> asio::awaitable<void> Server::Inside::watch(Stream &stream, std::string last_id, bool head) {
    http::response<http::empty_body> message;
    set_fields(message, Answer{200, "text/event-stream", nullptr}, false);
    http::response_serializer<http::empty_body> serializer(message);
    stream.expires_after(write_time);
    const auto [failed, size] = co_await http::async_write_header(stream, serializer, done);
    if (failed || head) co_return;
    asio::steady_timer timer(io);
    watchers.insert(&timer);
    collector->set_watchers(watchers.size());
    static const Text quiet = text_of(": quiet\n\n");
    for (;;) {
        const auto now = published;
        Text text = now ? now->update_since(last_id) : nullptr;
        if (now) last_id = now->id();
        if (!text) {
            timer.expires_after(heartbeat);
            const auto [cancelled] = co_await timer.async_wait(done);
            if (cancelled) continue;  // there is news
            text = quiet;
        }
        stream.expires_after(write_time);
        const auto [error, n] = co_await asio::async_write(stream, asio::buffer(*text), done);
        if (error) break;
    }
    watchers.erase(&timer);
    collector->set_watchers(watchers.size());
}

template <class Stream>
asio::awaitable<bool> Server::Inside::respond(Stream &stream, const Request &request, bool own, bool keep) {
    const AskedFor asked = asked_for(request);
    const bool head = asked.method == "HEAD";
    Answer answer = answer_to(asked, published.get(), own, metrics_for_all);
    if (answer.kind == Answer::Kind::stream && watchers.size() >= most_watchers)
        answer = refusal(503, "too many browsers follow this page");
    if (answer.kind == Answer::Kind::stream) {
        co_await watch(stream, answer.last_id, head);
        co_return false;
    }
    if (answer.kind == Answer::Kind::detail) answer = co_await ask_detail(asked.target);
    co_return co_await write(stream, answer, head, keep && answer.status < 400);
}

// Another user's connection is for one request.
template <class Stream> asio::awaitable<void> Server::Inside::serve(Stream stream, std::uint32_t uid, bool own) {
    const Counted counted(own ? connections : of_others), of_user(of_other[uid]);
    beast::flat_buffer buffer(header_bytes + 1024);
    for (int requests = 0; requests < most_requests; ++requests) {
        http::request_parser<http::empty_body> parser;
        parser.header_limit(header_bytes);
        stream.expires_after(header_time);
        const auto [error, n] = co_await http::async_read(stream, buffer, parser, done);
        const bool bad = error && error.category() == http::make_error_code(http::error::bad_method).category() &&
                         error != http::error::end_of_stream && error != http::error::partial_message;
        if (bad) {
            const bool large = error == http::error::header_limit || error == http::error::buffer_overflow;
            co_await write(stream,
                           refusal(large ? 431 : 400, large ? "the header is too large" : "this is not a request"),
                           false, false);
        }
        if (error) break;
        if (!co_await respond(stream, parser.get(), own, own && parser.keep_alive())) break;
    }
    boost::system::error_code ignored;
    stream.socket().shutdown(asio::socket_base::shutdown_send, ignored);
}

// One user takes no places of another, such as Prometheus.
bool Server::Inside::has_place(std::uint32_t uid, bool own) const {
    if (own) return connections < most_connections;
    const auto user = of_other.find(uid);
    return of_others < most_of_others && (user == of_other.end() || user->second < most_of_other);
}

template <class Protocol> asio::awaitable<void> Server::Inside::accept(typename Protocol::acceptor acceptor) {
    for (;;) {
        auto [error, socket] = co_await acceptor.async_accept(done);
        if (error) {  // no descriptor left, say: those that there are end in a while
            asio::steady_timer pause(io, std::chrono::milliseconds(100));
            co_await pause.async_wait(done);
            continue;
        }
        const auto told = uid_of_peer(socket.native_handle());
        const std::uint32_t uid = told ? *told : static_cast<std::uint32_t>(-1);
        const bool own = told && (uid == ::geteuid() || uid == 0);
        if (!has_place(uid, own)) continue;  // closes it
        asio::co_spawn(io, serve(beast::basic_stream<Protocol>(std::move(socket)), uid, own), asio::detached);
    }
}

Server::Server(Place place, bool metrics_for_all)
    : inside_(std::make_unique<Inside>(std::move(place), metrics_for_all)) {}
Server::~Server() = default;

Status Server::listen() {
    boost::system::error_code error;
    Inside &in = *inside_;
    if (!in.place.path.empty()) {
        const asio::local::stream_protocol::endpoint where(in.place.path);
        in.local.emplace(in.io);
        in.local->open(where.protocol(), error);
        if (!error) in.local->bind(where, error);
        if (!error) in.local->listen(128, error);
        return error ? fail(Code::io_error, "cannot listen on " + in.place.path + ": " + error.message())
                     : Status::ok();
    }
    for (const std::uint16_t port : {in.place.port, std::uint16_t{0}}) {
        const asio::ip::tcp::endpoint where(asio::ip::address_v4::loopback(), port);
        in.tcp.emplace(in.io);
        in.tcp->open(where.protocol(), error);
        if (!error) in.tcp->set_option(asio::socket_base::reuse_address(true), error);
        if (!error) in.tcp->bind(where, error);
        if (!error) in.tcp->listen(128, error);
        if (!error || !in.place.any_port) break;
    }
    if (error)
        return fail(Code::io_error,
                    "cannot listen on 127.0.0.1:" + std::to_string(in.place.port) + ": " + error.message());
    in.place.port = in.tcp->local_endpoint().port();
    return Status::ok();
}

std::string Server::url() const {
    const Place &place = inside_->place;
    return place.path.empty() ? "http://127.0.0.1:" + std::to_string(place.port) + "/" : "unix:" + place.path;
}

void Server::publish(std::shared_ptr<const Published> published) {
    asio::post(inside_->io, [in = inside_.get(), published = std::move(published)] { in->take(published); });
}

void Server::serve(Collector &collector, int signals) {
    Inside &in = *inside_;
    in.collector = &collector;
    asio::posix::stream_descriptor ending(in.io, signals);
    ending.async_wait(asio::posix::stream_descriptor::wait_read, [&](auto) { in.io.stop(); });
    if (in.tcp) asio::co_spawn(in.io, in.accept<asio::ip::tcp>(std::move(*in.tcp)), asio::detached);
    if (in.local) asio::co_spawn(in.io, in.accept<asio::local::stream_protocol>(std::move(*in.local)), asio::detached);
    in.io.run();
    ending.release();
}

}  // namespace dcs::commands::page
