#pragma once
// What the tests of the C calls say in short.
#include "dcs.h"
#include "fake_scheduler.h"
#include "support/catch.h"

namespace dcs::test {

inline char *words[] = {const_cast<char *>("bin/ecm"), const_cast<char *>("12"), nullptr};

inline int wait_for(int block, int session, int *grain) {
    return d_gwait(block, session, grain, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                   nullptr);
}

inline void get_auth() { REQUIRE(d_get_auth("tester") == NO_ERROR); }

inline Act as_usual(const wire::AnyMessage &m) {
    Act a;
    a.reply = plausible(m);
    return a;
}

template <class M> bool is(const wire::AnyMessage &m) { return std::holds_alternative<M>(m); }

inline d_file file_of(const char *name, const char *path) { return {sizeof(d_file), name, path, nullptr, 0, 0}; }

}  // namespace dcs::test
