#include "commands/dcs/frame/failure.h"

#include <boost/json.hpp>

#include "dcs.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

TEST_CASE("exit codes of library errors") {
    CHECK(exit_of(NO_ERROR) == 0);
    CHECK(exit_of(D_E_UNREACHABLE) == 5);
    CHECK(exit_of(D_E_BROKEN) == 5);
    CHECK(exit_of(D_E_REFUSED) == 4);
    CHECK(exit_of(D_E_NO_AUTH) == 4);
    CHECK(exit_of(D_E_SESSION_TAKEN) == 4);
    CHECK(exit_of(D_E_INVALID) == 2);
    CHECK(exit_of(D_E_SESSION_UNKNOWN) == 3);
    CHECK(exit_of(D_E_GRAIN_UNKNOWN) == 3);
    CHECK(exit_of(D_E_NOT_FOUND) == 3);
    for (int error : {D_E_SESSION_ACTIVE, D_E_SESSION_CLOSED, D_E_GRAIN_DIFFERS, D_E_NO_SPACE, D_E_IO_ERROR, D_E_LIMIT,
                      D_E_PROTOCOL, D_E_INTERNAL, D_E_CANNOT_RUN})
        CHECK(exit_of(error) == 1);
}

TEST_CASE("a failure as text") {
    CHECK(text_of({3, "x", "session 7: there is none", "list them"}, Format::table) ==
          "dcs: session 7: there is none\n  hint: list them\n");
    CHECK(text_of({3, "x", "session 7: there is none", ""}, Format::name) == "dcs: session 7: there is none\n");
    CHECK(text_of({3, "x", "dcs map: no", ""}, Format::table) == "dcs map: no\n");
    CHECK(text_of({3, "x", "host says \x1b[2J\nand more", "\x07"}, Format::table) ==
          "dcs: host says ?[2J\nand more\n  hint: ?\n");
}

TEST_CASE("a failure as JSON") {
    const std::string text = text_of({3, "session_unknown", "a \"quoted\"\nthing \x01 \xff", "h"}, Format::json);
    CHECK(text.back() == '\n');
    CHECK(text.find('\n') == text.size() - 1);
    const auto error = boost::json::parse(text).as_object().at("error").as_object();
    CHECK(error.at("code").as_string() == "session_unknown");
    CHECK(error.at("message").as_string() == "a \"quoted\"\nthing \x01 \xef\xbf\xbd");
    CHECK(error.at("hint").as_string() == "h");
    CHECK(error.size() == 3);
}

TEST_CASE("failures of our own libraries and usage errors") {
    const Failure io = failure_of("reading", fail(Code::io_error, "bad disk"));
    CHECK(io.exit == 1);
    CHECK(io.code == "io_error");
    CHECK(io.message == "reading: bad disk");
    CHECK(failure_of("", fail(Code::refused, "no")).message == "no");
    CHECK(failure_of("", fail(Code::refused, "no")).exit == 4);
    CHECK(usage_failure("x").exit == 2);
    CHECK(usage_failure("x").code == "usage");
    CHECK(not_found_failure("x").exit == 3);
}

TEST_CASE("what to do next, where the library's advice is for programmers") {
    CHECK(call_failure("session 7", D_E_SESSION_UNKNOWN).hint == about("`dcs ls` sessions"));
    CHECK(call_failure("grain 7:1", D_E_GRAIN_UNKNOWN).hint == about("`dcs SESSION` session's"));
    CHECK(call_failure("session 7", D_E_INVALID).hint.empty());
}
