#include "server.h"

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
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "answer.h"

namespace dcs::commands::page {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using std::chrono::seconds;

constexpr std::size_t most_watchers = 128;
constexpr std::size_t most_of_address = 16;  // connections of one that have not shown the token
constexpr std::uint32_t header_bytes = 8192;
constexpr int most_requests = 1000;  // of one connection
constexpr auto header_time = seconds(10), write_time = seconds(20), heartbeat = seconds(15), shutdown_time = seconds(2);
constexpr auto done = asio::as_tuple(asio::use_awaitable);

using Request = http::request<http::empty_body>;
using TcpStream = beast::basic_stream<asio::ip::tcp>;
using TlsStream = asio::ssl::stream<TcpStream>;

// Whose timers and socket it has.
template <class Stream> auto &lowest(Stream &stream) { return beast::get_lowest_layer(stream); }

AskedFor asked_for(const Request &request) {
    const auto field = [&](http::field name) { return std::string(request[name]); };
    return {.method = std::string(request.method_string()),
            .target = std::string(request.target()),
            .host = field(http::field::host),
            .accept = field(http::field::accept),
            .last_id = std::string(request["Last-Event-ID"]),
            .fetch_site = std::string(request["Sec-Fetch-Site"]),
            .fetch_mode = std::string(request["Sec-Fetch-Mode"]),
            .authorization = field(http::field::authorization),
            .hosts = request.count(http::field::host)};
}

template <class Message> void set_fields(Message &message, const Answer &answer, bool keep) {
    message.result(static_cast<unsigned>(answer.status));
    message.keep_alive(keep);
    message.set(http::field::content_type, answer.type);
    for (const auto &[name, value] : fixed_fields) message.set(name, value);
    if (answer.type == picture_type) message.set("Content-Security-Policy", picture_policy);
    if (answer.status == 405) message.set(http::field::allow, "GET, HEAD");
    if (answer.status == 401) message.set(http::field::www_authenticate, "Basic realm=\"DCS pool\", charset=\"UTF-8\"");
}

}  // namespace

struct Server::Inside {
    Inside(Place where, bool for_all) : place(std::move(where)), metrics_for_all(for_all) {}

    template <class Protocol> asio::awaitable<void> accept(typename Protocol::acceptor acceptor);
    template <class Protocol>
    asio::awaitable<void> serve_plain(beast::basic_stream<Protocol> stream, std::string user, bool own);
    asio::awaitable<void> serve_tls(TcpStream stream, std::string address);
    template <class Stream> asio::awaitable<void> serve(Stream &stream, Seat &seat, bool own);
    template <class Protocol> void receive(typename Protocol::socket socket);
    template <class Stream> asio::awaitable<bool> respond(Stream &stream, const Request &request, bool own, bool keep);
    template <class Stream> asio::awaitable<bool> write(Stream &stream, const Answer &answer, bool head, bool keep);
    template <class Stream> asio::awaitable<void> watch(Stream &stream, std::string last_id, bool head);
    Status prepare_tls();
    asio::awaitable<Answer> ask_detail(const std::string &target);
    void take(std::shared_ptr<const Published> next);

    Place place;
    const bool metrics_for_all;
    asio::io_context io{1};
    std::optional<asio::ip::tcp::acceptor> tcp;
    std::optional<asio::local::stream_protocol::acceptor> local;
    Collector *collector = nullptr;
    std::shared_ptr<const Published> published;
    std::set<asio::steady_timer *> watchers;
    Places places;
    asio::ssl::context tls{asio::ssl::context::tls_server};
};

void Server::Inside::take(std::shared_ptr<const Published> next) {
    published = std::move(next);
    for (asio::steady_timer *timer : watchers) timer->cancel();
}

Status Server::Inside::prepare_tls() {
    if (!place.access) return Status::ok();
    boost::system::error_code error;
    using asio::ssl::context;
    tls.set_options(context::no_tlsv1 | context::no_tlsv1_1 | context::no_tlsv1_2 | context::no_compression, error);
    SSL_CTX_set_session_cache_mode(tls.native_handle(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(tls.native_handle(), 0);
    if (!error) tls.use_certificate_chain(asio::buffer(place.access->certificate), error);
    if (!error) tls.use_private_key(asio::buffer(place.access->key), context::pem, error);
    return error ? fail(Code::invalid, "the certificate or its key cannot be used: " + error.message()) : Status::ok();
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
    lowest(stream).expires_after(write_time);
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
    lowest(stream).expires_after(write_time);
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
        lowest(stream).expires_after(write_time);
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
    Answer answer = answer_to(asked, published.get(), own, metrics_for_all, place.access ? &*place.access : nullptr);
    if (answer.kind == Answer::Kind::stream && watchers.size() >= most_watchers)
        answer = refusal(503, "too many browsers follow this page");
    if (answer.kind == Answer::Kind::stream) {
        co_await watch(stream, answer.last_id, head);
        co_return false;
    }
    if (answer.kind == Answer::Kind::detail) answer = co_await ask_detail(asked.target);
    co_return co_await write(stream, answer, head, keep && answer.status < 400);
}

// The connection of one who is no reader is for one request.
template <class Stream> asio::awaitable<void> Server::Inside::serve(Stream &stream, Seat &seat, bool own) {
    beast::flat_buffer buffer(header_bytes + 1024);
    for (int requests = 0; requests < most_requests; ++requests) {
        http::request_parser<http::empty_body> parser;
        parser.header_limit(header_bytes);
        lowest(stream).expires_after(header_time);
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
        if (place.access) own = place.access->admits(std::string(parser.get()[http::field::authorization]));
        if (own && !seat.becomes_own()) {
            co_await write(stream, refusal(503, "too many connections: try again"), false, false);
            break;
        }
        if (!co_await respond(stream, parser.get(), own, own && parser.keep_alive())) break;
    }
}

template <class Protocol>
asio::awaitable<void> Server::Inside::serve_plain(beast::basic_stream<Protocol> stream, std::string user, bool own) {
    Seat seat(places, std::move(user), own);
    co_await serve(stream, seat, own);
    boost::system::error_code ignored;
    stream.socket().shutdown(asio::socket_base::shutdown_send, ignored);
}

asio::awaitable<void> Server::Inside::serve_tls(TcpStream plain, std::string address) {
    Seat seat(places, std::move(address), false);
    TlsStream stream(std::move(plain), tls);
    lowest(stream).expires_after(header_time);
    const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::server, done);
    if (error) co_return;
    co_await serve(stream, seat, false);
    lowest(stream).expires_after(shutdown_time);
    co_await stream.async_shutdown(done);
}

// An IPv6 host has a whole network of 64 bits.
std::string network_of(const asio::ip::tcp::socket &socket) {
    boost::system::error_code error;
    const auto peer = socket.remote_endpoint(error);
    if (error) return "";
    asio::ip::address address = peer.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    if (address.is_v4()) return address.to_string();
    const auto bytes = address.to_v6().to_bytes();
    return std::string(bytes.begin(), bytes.begin() + 8);
}

// Without a place its socket is closed.
template <class Protocol> void Server::Inside::receive(typename Protocol::socket socket) {
    if constexpr (std::is_same_v<Protocol, asio::ip::tcp>) {
        if (place.access) {
            std::string address = network_of(socket);
            if (!places.has(address, false, most_of_address)) return;
            return asio::co_spawn(io, serve_tls(TcpStream(std::move(socket)), std::move(address)), asio::detached);
        }
    }
    const auto told = uid_of_peer(socket.native_handle());
    const bool own = told && (*told == ::geteuid() || *told == 0);
    std::string user = told ? std::to_string(*told) : "unknown";
    if (!places.has(user, own)) return;
    asio::co_spawn(io, serve_plain(beast::basic_stream<Protocol>(std::move(socket)), std::move(user), own),
                   asio::detached);
}

template <class Protocol> asio::awaitable<void> Server::Inside::accept(typename Protocol::acceptor acceptor) {
    for (;;) {
        auto [error, socket] = co_await acceptor.async_accept(done);
        if (error) {  // no descriptor left, say: those that there are end in a while
            asio::steady_timer pause(io, std::chrono::milliseconds(100));
            co_await pause.async_wait(done);
            continue;
        }
        receive<Protocol>(std::move(socket));
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
    if (Status s = in.prepare_tls(); !s) return s;
    const std::string address = in.place.address.empty() ? "127.0.0.1" : in.place.address;
    for (const std::uint16_t port : {in.place.port, std::uint16_t{0}}) {
        const asio::ip::tcp::endpoint where(asio::ip::make_address(address), port);
        in.tcp.emplace(in.io);
        in.tcp->open(where.protocol(), error);
        if (!error) in.tcp->set_option(asio::socket_base::reuse_address(true), error);
        if (!error) in.tcp->bind(where, error);
        if (!error) in.tcp->listen(128, error);
        if (!error || !in.place.any_port) break;
    }
    if (error)
        return fail(Code::io_error,
                    "cannot listen on " + address + ":" + std::to_string(in.place.port) + ": " + error.message());
    in.place.port = in.tcp->local_endpoint().port();
    return Status::ok();
}

std::string Server::url() const {
    const Place &place = inside_->place;
    if (!place.path.empty()) return "unix:" + place.path;
    const std::string port = ":" + std::to_string(place.port) + "/";
    if (!place.access) return "http://127.0.0.1" + port;
    if (place.address != "0.0.0.0" && place.address != "::")
        return "https://" + (place.address.find(':') == std::string::npos ? place.address : "[" + place.address + "]") +
               port;
    const std::string names = place.access->names;  // the last one is the longest that this host knows of itself
    return "https://" + names.substr(names.rfind(' ') + 1) + port;
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
