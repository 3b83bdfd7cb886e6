/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "notify.h"

/* Every address has 16 bytes here, those of IPv4 as in ::ffff:192.0.2.1. */

enum { ADDRESS_LEN = 16, V4_BITS = 96, V4_AT = 12 };

struct net {
    uint8_t address[ADDRESS_LEN];
    unsigned bits;
};

struct entry {
    const char *name; /* host, or "*." and a domain; NULL: it is a network */
    struct net net;
};

struct allow {
    char *text; /* the names are in here */
    bool has_public;
    size_t count; /* 0 and not `has_public`: whatever is not link-local */
    struct entry entries[];
};

#define V4(a, b, c, d, bits)                                            \
    {                                                                   \
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, (a), (b), (c), (d)}, \
            V4_BITS + (bits)                                            \
    }

/* Where clouds keep secrets of the machine: link-local, but for the last. */
static const struct net link_local[] = {
    V4(169, 254, 0, 0, 16),
    {{0xfe, 0x80}, 10},
    {{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128},
};

/* What is not of the public internet, of IPv4 and of 2000::/3. */
static const struct net not_public[] = {
    V4(0, 0, 0, 0, 8),
    V4(10, 0, 0, 0, 8),
    V4(100, 64, 0, 0, 10),
    V4(127, 0, 0, 0, 8),
    V4(169, 254, 0, 0, 16),
    V4(172, 16, 0, 0, 12),
    V4(192, 0, 0, 0, 24),
    V4(192, 0, 2, 0, 24),
    V4(192, 168, 0, 0, 16),
    V4(198, 18, 0, 0, 15),
    V4(198, 51, 100, 0, 24),
    V4(203, 0, 113, 0, 24),
    V4(224, 0, 0, 0, 3),
    {{0x20, 0x01, 0x00}, 23},
    {{0x20, 0x01, 0x0d, 0xb8}, 32},
    {{0x20, 0x02}, 16},
    {{0x3f, 0xff, 0x00}, 20},
};

/* --- addresses ------------------------------------------------------------ */

static void set_v4(uint8_t address[ADDRESS_LEN], const void *v4)
{
    memset(address, 0, V4_AT);
    address[10] = address[11] = 0xff;
    memmove(address + V4_AT, v4, 4); /* may be there already */
}

static bool begins(const uint8_t *one, const uint8_t *other, unsigned bits)
{
    unsigned rest = 8 - bits % 8;

    if (memcmp(one, other, bits / 8) != 0)
        return false;
    return bits % 8 == 0 || one[bits / 8] >> rest == other[bits / 8] >> rest;
}

static bool is_v4(const uint8_t *address)
{
    static const uint8_t mapped[V4_AT] = {[10] = 0xff, [11] = 0xff};

    return begins(address, mapped, V4_BITS);
}

/* ::/0 has no address of IPv4. */
static bool is_in(const uint8_t *address, const struct net *net)
{
    return is_v4(address) == is_v4(net->address) &&
           begins(address, net->address, net->bits);
}

static bool is_in_one(const uint8_t *address, const struct net *nets,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_in(address, &nets[i]))
            return true;
    return false;
}

static bool is_link_local(const uint8_t *address)
{
    return is_in_one(address, link_local,
                     sizeof(link_local) / sizeof(link_local[0]));
}

static bool is_public(const uint8_t *address)
{
    static const struct net v6 = {{0x20}, 3};

    return (is_v4(address) || is_in(address, &v6)) &&
           !is_in_one(address, not_public,
                      sizeof(not_public) / sizeof(not_public[0]));
}

/* False: it is none of the internet's. */
static bool read_sockaddr(const struct sockaddr *from,
                          uint8_t address[ADDRESS_LEN])
{
    static const uint8_t nat64[V4_AT] = {0x00, 0x64, 0xff, 0x9b};
    const void *any = from;

    if (from->sa_family == AF_INET) {
        set_v4(address, &((const struct sockaddr_in *)any)->sin_addr);
        return true;
    }
    if (from->sa_family != AF_INET6)
        return false;
    memcpy(address, &((const struct sockaddr_in6 *)any)->sin6_addr,
           ADDRESS_LEN);
    if (begins(address, nat64, V4_BITS)) /* arrives there */
        set_v4(address, address + V4_AT);
    return true;
}

/* --- the option ----------------------------------------------------------- */

/* Up to three digits and nothing else, `most` at most. */
static bool read_bits(const char *text, unsigned most, unsigned *ret_bits)
{
    size_t len = strspn(text, "0123456789");
    unsigned bits = 0;

    if (len == 0 || len > 3 || text[len] != '\0')
        return false;
    for (size_t i = 0; i < len; i++)
        bits = bits * 10 + (unsigned)(text[i] - '0');
    *ret_bits = bits;
    return bits <= most;
}

/* "192.0.2.1", "192.0.2.0/24", "2001:db8::/32". */
static bool read_net(const char *word, struct net *ret_net)
{
    size_t len = strcspn(word, "/");
    unsigned most = 128, bits;
    char text[INET6_ADDRSTRLEN];
    uint8_t v4[4];

    if (len >= sizeof(text))
        return false;
    memcpy(text, word, len);
    text[len] = '\0';
    if (inet_pton(AF_INET, text, v4) == 1) {
        set_v4(ret_net->address, v4);
        most = 32;
    } else if (inet_pton(AF_INET6, text, ret_net->address) != 1) {
        return false;
    }
    bits = most;
    if (word[len] == '/' && !read_bits(word + len + 1, most, &bits))
        return false;
    ret_net->bits = 128 - most + bits;
    return true;
}

/* What ends in a number is no name but an address that went wrong. */
static bool is_name(const char *word)
{
    static const char bad[] = "*/:[]@?#%\\\"'";
    const char *last = strrchr(word, '.');

    if (strncmp(word, "*.", 2) == 0)
        word += 2;
    last = last == NULL ? word : last + 1;
    return *word != '\0' && *word != '.' && *last != '\0' &&
           strpbrk(word, bad) == NULL &&
           last[strspn(last, "0123456789")] != '\0';
}

static bool read_word(struct allow *allow, const char *word)
{
    struct entry *entry = &allow->entries[allow->count];

    if (strcmp(word, "public") == 0) {
        allow->has_public = true;
        return true;
    }
    *entry = (struct entry){.name = NULL};
    if (!read_net(word, &entry->net)) {
        if (!is_name(word))
            return false;
        entry->name = word;
    }
    allow->count++;
    return true;
}

/* The words of `allow->text`, each NUL-terminated; NULL, or the one that is
 * not understood. */
static const char *read_words(struct allow *allow)
{
    char *at = allow->text + strspn(allow->text, " \t\n");

    while (*at != '\0') {
        char *word = at;

        at += strcspn(at, " \t\n");
        if (*at != '\0')
            *at++ = '\0';
        if (!read_word(allow, word))
            return word;
        at += strspn(at, " \t\n");
    }
    return NULL;
}

void allow_free(struct allow *allow)
{
    if (allow != NULL)
        free(allow->text);
    free(allow);
}

struct allow *allow_new(const char *text, char *fault, size_t fault_cap)
{
    size_t len = strlen(text);
    struct allow *allow =
        calloc(1, sizeof(*allow) + (len / 2 + 1) * sizeof(allow->entries[0]));
    const char *word;

    (void)snprintf(fault, fault_cap, "out of memory");
    if (allow == NULL)
        return NULL;
    allow->text = malloc(len + 1);
    if (allow->text == NULL)
        goto fail;
    memcpy(allow->text, text, len + 1);
    word = read_words(allow);
    if (word == NULL)
        return allow;
    (void)snprintf(fault, fault_cap,
                   "option \"allow\": \"%.80s\" is no host, address or network",
                   word); /* cut */
fail:
    allow_free(allow);
    return NULL;
}

bool allow_is_given(const struct allow *allow)
{
    return allow->has_public || allow->count > 0;
}

/* --- the question --------------------------------------------------------- */

/* "*.example.com" is what lies below it; a host may end in a dot. */
static bool is_named(const char *name, const char *host)
{
    size_t name_len = strlen(name), len = strlen(host);

    if (len > 0 && host[len - 1] == '.')
        len--;
    if (*name != '*')
        return len == name_len && strncasecmp(name, host, len) == 0;
    name++;
    name_len--;
    return len > name_len &&
           strncasecmp(name, host + len - name_len, name_len) == 0;
}

bool allow_has(const struct allow *allow, const char *host,
               const struct sockaddr *to)
{
    uint8_t address[ADDRESS_LEN];
    bool is_local;

    if (!read_sockaddr(to, address))
        return false;
    is_local = is_link_local(address);
    if (!allow_is_given(allow))
        return !is_local;
    if (allow->has_public && is_public(address))
        return true;
    for (size_t i = 0; i < allow->count; i++) {
        const struct entry *entry = &allow->entries[i];

        if (entry->name != NULL && !is_local && is_named(entry->name, host))
            return true;
        if (entry->name == NULL && is_in(address, &entry->net) &&
            (!is_local || is_link_local(entry->net.address)))
            return true;
    }
    return false;
}
