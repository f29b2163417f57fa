#include "launch_hosts.h"
#include "message.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <quern/files.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_FILE = 1 << 20 };

/* ---------------------------------------------------------------- names */

/* "user@host" without the user. */
static const char *bare(const char *name) {
    const char *at = strrchr(name, '@');
    return at ? at + 1 : name;
}

static int is_this_machine(const char *name) {
    char own[HOST_CAPACITY] = "";
    if (strchr(name, '@'))
        return 0;
    if (strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
        strcmp(name, "::1") == 0)
        return 1;
    return gethostname(own, sizeof own - 1) == 0 && strcmp(name, own) == 0;
}

/* ssh would take a name that begins with a dash for an option. */
static int is_name(const char *name, size_t size) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_.:@%";
    return size > 0 && size < HOST_CAPACITY && *name != '-' && strspn(name, allowed) >= size &&
           name[size - 1] != '@';
}

static int refuse(const char *where, const char *remedy, const char *format, const char *text,
                  size_t size) {
    char what[400];
    snprintf(what, sizeof what, format, (int)(size > 200 ? 200 : size), text);
    return message_fail(QN_USAGE, what, where, remedy);
}

static int add(launch_hosts *hosts, const char *name, size_t size, uint32_t slots,
               const char *where) {
    uint32_t i = 0;
    while (i < hosts->count &&
           (strlen(hosts->at[i].name) != size || strncmp(hosts->at[i].name, name, size) != 0))
        i++;
    hosts->ranks += slots;
    if (hosts->ranks > MOST_RANKS || i == MOST_HOSTS)
        return message_fail(QN_USAGE, "there are more than 1024 ranks", where,
                            "name fewer hosts, or fewer ranks on each");
    launch_host *host = &hosts->at[i];
    if (i == hosts->count) {
        hosts->count++;
        memcpy(host->name, name, size);
        host->name[size] = '\0';
        host->local = is_this_machine(host->name);
    }
    host->slots += slots;
    return -1;
}

/* "NAME", "NAME:SLOTS", "[ADDRESS]:SLOTS", and a bare IPv6 address, which has more colons. */
static int take(launch_hosts *hosts, const char *text, size_t size, const char *where) {
    const char *name = text, *end = text + size, *number = NULL;
    if (size > 0 && *text == '[') {
        const char *close = memchr(text, ']', size);
        name = text + 1;
        if (!close || (close + 1 < end && close[1] != ':'))
            return refuse(where, "such as [fd00::1]:2", "\"%.*s\" is not a host", text, size);
        number = close + 1 < end ? close + 2 : NULL;
        end = close;
    } else {
        const char *colon = memchr(text, ':', size);
        if (colon && !memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
            number = colon + 1;
            end = colon;
        }
    }
    unsigned long slots = 1;
    if (number) {
        const size_t digits = strspn(number, "0123456789");
        slots = digits > 0 && digits < 5 && number + digits == text + size
                    ? strtoul(number, NULL, 10)
                    : 0;
        if (slots < 1 || slots > MOST_RANKS)
            return refuse(where, "write NAME:N, with N from 1 to 1024",
                          "the number of ranks in \"%.*s\" is not valid", text, size);
    }
    if (!is_name(name, (size_t)(end - name)))
        return refuse(where, "write names or addresses, such as a,user@b:2",
                      "\"%.*s\" is not the name of a host", text, size);
    return add(hosts, name, (size_t)(end - name), (uint32_t)slots, where);
}

int launch_hosts_list(const char *text, launch_hosts *hosts) {
    int code = -1;
    for (const char *p = text; code < 0; p++) {
        const size_t size = strcspn(p, ",");
        code = take(hosts, p, size, "--hosts");
        p += size;
        if (!*p)
            break;
    }
    return code;
}

/* ---------------------------------------------------------------- the file */

static int take_line(launch_hosts *hosts, const char *line, size_t size, const char *where) {
    static const char blanks[] = " \t\r";
    char word[2][HOST_CAPACITY + 16];
    int words = 0;
    const char *end = line + size;
    while (line < end) {
        line += strspn(line, blanks);
        size_t length = strcspn(line, " \t\r\n#");
        if (line + length > end)
            length = line < end ? (size_t)(end - line) : 0;
        if (length == 0)
            break;
        if (words == 2 || length >= sizeof word[0])
            return refuse(where, "write NAME, NAME:2 or NAME slots=2",
                          "\"%.*s\" is not expected on this line", line, length);
        memcpy(word[words], line, length);
        word[words++][length] = '\0';
        line += length;
    }
    if (words == 0)
        return -1;
    if (words == 2) {
        char text[2 * sizeof word[0]];
        if (strncmp(word[1], "slots=", 6) != 0)
            return refuse(where, "write NAME, NAME:2 or NAME slots=2",
                          "\"%.*s\" is not expected on this line", word[1], strlen(word[1]));
        const int v6 = strchr(word[0], ':') && word[0][0] != '[';
        snprintf(text, sizeof text, "%s%s%s:%s", v6 ? "[" : "", word[0], v6 ? "]" : "",
                 word[1] + 6);
        return take(hosts, text, strlen(text), where);
    }
    return take(hosts, word[0], strlen(word[0]), where);
}

int launch_hosts_file(const char *path, launch_hosts *hosts) {
    qn_error err;
    char *text = NULL, where[600];
    size_t size = 0;
    int code = -1;
    if (qn_file_read(path, LONGEST_FILE, &text, &size, &err) != QN_OK)
        return message_error(&err);
    if (memchr(text, '\0', size))
        code = message_fail(QN_USAGE, "the file is not a text", path,
                            "write the name of a host on each line");
    unsigned number = 1;
    for (const char *p = text; code < 0 && p < text + size; number++) {
        const char *end = memchr(p, '\n', (size_t)(text + size - p));
        if (!end)
            end = text + size;
        snprintf(where, sizeof where, "%.500s, line %u", path, number);
        code = take_line(hosts, p, (size_t)(end - p), where);
        p = end + 1;
    }
    qn_file_bytes_free(text);
    return code;
}

/* ---------------------------------------------------------------- the rendezvous */

unsigned launch_free_port(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint32_t drawn = (uint32_t)now.tv_nsec / 64 + (uint32_t)getpid() * 7919;
    for (int tries = 0; tries < 1000; ++tries, drawn += 4099) {
        const unsigned port = 10000 + drawn % 20000;
        const struct sockaddr_in at = {.sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)port),
                                       .sin_addr.s_addr = htonl(INADDR_ANY)};
        const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listener < 0)
            return 0;
        const int is_free = bind(listener, (const struct sockaddr *)&at, sizeof at) == 0;
        close(listener);
        if (is_free)
            return port;
    }
    return 0;
}

/* The address of this machine from which packets to that host leave: the one that it can reach. No
 * packet is sent. */
static int own_address_towards(const char *host, char *text, size_t size) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM}, *found = NULL;
    int done = 0;
    if (getaddrinfo(host, "9", &hints, &found) != 0)
        return 0;
    for (const struct addrinfo *a = found; a && !done; a = a->ai_next) {
        struct sockaddr_storage own;
        socklen_t length = sizeof own;
        const int file = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        done = file >= 0 && connect(file, a->ai_addr, a->ai_addrlen) == 0 &&
               getsockname(file, (struct sockaddr *)&own, &length) == 0 &&
               getnameinfo((struct sockaddr *)&own, length, text, (socklen_t)size, NULL, 0,
                           NI_NUMERICHOST) == 0;
        if (file >= 0)
            close(file);
    }
    freeaddrinfo(found);
    return done;
}

static void host_of_rank0(const launch_hosts *hosts, char *text, size_t size) {
    uint32_t other = 0;
    if (!hosts->at[0].local) {
        snprintf(text, size, "%s", bare(hosts->at[0].name));
        return;
    }
    while (other < hosts->count && hosts->at[other].local)
        other++;
    if (other == hosts->count)
        snprintf(text, size, "127.0.0.1");
    else if (!own_address_towards(bare(hosts->at[other].name), text, size) &&
             gethostname(text, size - 1) != 0)
        snprintf(text, size, "localhost");
}

void launch_place(const launch_hosts *hosts, const char *given, char place[PLACE_TEXT]) {
    char host[HOST_CAPACITY] = "";
    const char *close = given ? strrchr(given, ']') : NULL;
    const char *colon = given ? strrchr(close ? close : given, ':') : NULL;
    if (given && colon && (close || strchr(given, ':') == colon)) {
        snprintf(place, PLACE_TEXT, "%.290s", given);
        return;
    }
    if (given)
        snprintf(host, sizeof host, "%.*s",
                 (int)(given[0] == '[' && close ? close - given - 1 : 255),
                 given[0] == '[' ? given + 1 : given);
    else
        host_of_rank0(hosts, host, sizeof host);
    const int v6 = strchr(host, ':') != NULL;
    snprintf(place, PLACE_TEXT, "%s%s%s:%u", v6 ? "[" : "", host, v6 ? "]" : "",
             launch_free_port());
}
