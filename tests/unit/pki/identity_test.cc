// Keys and certificates in files.
#include <cstdio>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "pki/authority.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::pki;

namespace {

constexpr std::int64_t begun = 1'800'000'000;

struct Directory {
    std::string path;
    Directory() {
        char name[] = "/tmp/dcs_pki_XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path = name;
    }
    ~Directory() {
        for (const char *name : {"key.pem", "certificate.pem", "authority.pem", "authority-key.pem"}) {
            ::unlink((pki() + "/" + name).c_str());
            ::unlink((pki() + "/" + name + ".new").c_str());
        }
        ::rmdir(pki().c_str());
        ::rmdir((path + "/host").c_str());
        ::rmdir(path.c_str());
    }
    std::string pki() const { return path + "/host/pki"; }
};

int mode_of(const std::string &path) {
    struct stat st {};
    REQUIRE(::stat(path.c_str(), &st) == 0);
    return st.st_mode & 0777;
}

Identity identity_of(const Authority &authority, const std::string &key, const std::string &name) {
    const auto der = issue(authority, *public_key_of(key), Role::grain_server, name, begun);
    REQUIRE(der);
    return Identity{key, *read_certificate(*der), authority.certificate};
}

}  // namespace

TEST_CASE("the authority is made once, for its owner only") {
    Directory dir;
    ::mkdir((dir.path + "/host").c_str(), 0700);
    const auto first = authority_in(dir.pki(), begun);
    REQUIRE(first);
    const auto again = authority_in(dir.pki(), begun + day_s);
    REQUIRE(again);
    CHECK(again->key == first->key);
    CHECK(again->certificate.der == first->certificate.der);
    CHECK(mode_of(dir.pki() + "/authority-key.pem") == 0600);
    CHECK(mode_of(dir.pki()) == 0700);
    SECTION("a key that others can read is refused") {
        REQUIRE(::chmod((dir.pki() + "/authority-key.pem").c_str(), 0640) == 0);
        const auto open = authority_in(dir.pki(), begun);
        REQUIRE_FALSE(open);
        CHECK(open.status().code == Code::refused);
        CHECK(open.status().text == about("authority-key.pem read other users chmod 600 new authority every host"));
        CHECK(open.status().text.find("remove it and join again") == std::string::npos);
    }
    SECTION("a key that is a link is refused") {
        const std::string path = dir.pki() + "/authority-key.pem";
        REQUIRE(::rename(path.c_str(), (path + ".new").c_str()) == 0);
        REQUIRE(::symlink((path + ".new").c_str(), path.c_str()) == 0);
        CHECK_FALSE(authority_in(dir.pki(), begun));
    }
    SECTION("a damaged key does not become a new authority") {
        std::ofstream(dir.pki() + "/authority-key.pem") << "damaged";
        CHECK_FALSE(authority_in(dir.pki(), begun));
        REQUIRE(::unlink((dir.pki() + "/authority.pem").c_str()) == 0);
        CHECK_FALSE(authority_in(dir.pki(), begun));
    }
    SECTION("one that has lost its key is not replaced") {
        REQUIRE(::unlink((dir.pki() + "/authority-key.pem").c_str()) == 0);
        const auto lost = authority_in(dir.pki(), begun);
        CHECK(lost.status().code == Code::refused);
        CHECK(lost.status().text ==
              about("authority-key.pem is missing authority.pem restore it new authority remove all files"));
        std::ifstream kept(dir.pki() + "/authority.pem");
        CHECK(std::string(std::istreambuf_iterator<char>(kept), {}) == certificate_to_pem(first->certificate.der));
    }
    SECTION("one whose making was interrupted before its key had its name is made again") {
        const std::string key = dir.pki() + "/authority-key";
        REQUIRE(::rename((key + ".pem").c_str(), (key + ".unfinished").c_str()) == 0);
        const auto fresh = authority_in(dir.pki(), begun);
        REQUIRE(fresh);
        CHECK(fresh->key != first->key);
        CHECK(authority_in(dir.pki(), begun)->key == fresh->key);
        CHECK(::access((key + ".unfinished").c_str(), F_OK) != 0);
    }
}

TEST_CASE("an identity is written and read whole") {
    Directory dir;
    CHECK(read_identity(dir.pki()).status().code == Code::not_found);
    const auto key = key_in(dir.pki());
    REQUIRE(key);
    CHECK(*key_in(dir.pki()) == *key);
    const auto next = next_key_in(dir.pki());
    REQUIRE(next);
    CHECK(*next != *key);
    CHECK(*next_key_in(dir.pki()) == *next);  // who repeats the command goes on with it
    CHECK(*key_in(dir.pki()) == *key);
    drop_next_key(dir.pki());
    CHECK(*next_key_in(dir.pki()) != *next);
    CHECK(read_identity(dir.pki()).status().code == Code::not_found);
    const Authority authority = make_authority(begun);
    REQUIRE(write_identity(dir.pki(), identity_of(authority, *key, "h1")));
    const auto read = read_identity(dir.pki());
    REQUIRE(read);
    CHECK(read->key == *key);
    CHECK(read->certificate.name == "h1");
    CHECK(read->authority.der == authority.certificate.der);
    for (const char *name : {"/key.pem", "/certificate.pem", "/authority.pem"})
        CHECK(mode_of(dir.pki() + name) == 0600);
    SECTION("its key may be shared with one group, if its reader says so") {
        constexpr std::uint32_t group = 61777;
        if (::geteuid() != 0) {
            WARN("SKIPPED: only root can give files to a group");
            return;
        }
        REQUIRE(share_identity(dir.pki(), group));
        CHECK(mode_of(dir.pki() + "/key.pem") == 0640);
        CHECK(read_identity(dir.pki(), group));
        CHECK(read_identity(dir.pki()).status().text == about("key.pem read by other users join again chmod 600"));
        REQUIRE(::chmod((dir.pki() + "/key.pem").c_str(), 0644) == 0);
        CHECK(read_identity(dir.pki(), group).status().text ==
              about("key.pem read by other users join again chgrp dcs-key chmod 640"));
    }
    SECTION("a certificate of another key is told") {
        const Identity other = identity_of(authority, new_key(), "h1");
        std::ofstream(dir.pki() + "/certificate.pem") << certificate_to_pem(other.certificate.der);
        const auto mixed = read_identity(dir.pki());
        REQUIRE_FALSE(mixed);
        CHECK(mixed.status().text == about("not belong certificate"));
    }
    SECTION("a renewed certificate takes the old one's place") {
        Identity renewed = *read;
        renewed.certificate =
            *read_certificate(*issue(authority, *public_key_of(*key), Role::grain_server, "h1", begun + day_s));
        REQUIRE(write_identity(dir.pki(), renewed));
        CHECK(read_identity(dir.pki())->certificate.serial == renewed.certificate.serial);
    }
}
