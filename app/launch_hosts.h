/* The hosts of `quern launch`: "a,user@b:2,[fd00::1]:4", and a file with a host on each line. */
#ifndef APP_LAUNCH_HOSTS_H
#define APP_LAUNCH_HOSTS_H

#include <stdint.h>

enum { MOST_HOSTS = 1024, MOST_RANKS = 1024, HOST_CAPACITY = 256, PLACE_TEXT = 300 };

typedef struct launch_host {
    char name[HOST_CAPACITY]; /* as given to ssh: "user@node-1" */
    uint32_t slots;           /* ranks on it */
    int local;                /* this machine: started without ssh */
} launch_host;

typedef struct launch_hosts {
    launch_host at[MOST_HOSTS];
    uint32_t count, ranks;
} launch_hosts;

/* Adds the hosts of a list; one that is there already gets more ranks. Returns -1, or an exit code
 * after a message. */
int launch_hosts_list(const char *text, launch_hosts *hosts);
/* Adds those of a file: "NAME", "NAME:2" or "NAME slots=2" on a line; # begins a comment. */
int launch_hosts_file(const char *path, launch_hosts *hosts);

/* The address at which the ranks meet: HOST:PORT, where rank 0 listens. `given` is HOST or
 * HOST:PORT, or NULL: then the host is that of rank 0 as the others reach it. */
void launch_place(const launch_hosts *hosts, const char *given, char place[PLACE_TEXT]);

/* A TCP port that is free on this machine; 0: none. It is below 32768: from there on the system
 * assigns ports to outgoing connections. */
unsigned launch_free_port(void);

#endif
