/* Runs a target over files, and over mutations of them drawn from a fixed seed: what the test run
 * does, with any compiler. libFuzzer's own main takes this one's place in a campaign.
 *
 *     TARGET [-mutations=N] [-seed=N] FILE_OR_FOLDER...      N of each file; 0 where not said */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

enum { ROOM = 1 << 16 };

static uint64_t mutations, seed = 11, files, runs;

static uint32_t draw(uint64_t *state) { /* xorshift64* of Vigna */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 2685821657736338717u >> 32);
}

/* One small change of the kind that finds faults: another byte, a byte of the formats, a bit, a
 * piece taken out or doubled, the end cut off. */
static size_t mutate(uint8_t *bytes, size_t size, uint64_t *state) {
    static const char telling[] = ",;\t\n\r\"0129.-+eE(){}[]: \xFF\x80nN\x08\x01";
    size_t at = draw(state) % size, length = draw(state) % 16 + 1;
    if (at + length > size)
        length = size - at;
    switch (draw(state) % 6) {
    case 0:
        bytes[at] = (uint8_t)draw(state);
        return size;
    case 1:
        bytes[at] = (uint8_t)telling[draw(state) % sizeof telling];
        return size;
    case 2:
        bytes[at] ^= (uint8_t)(1u << draw(state) % 8);
        return size;
    case 3:
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length > 0 ? size - length : 1;
    case 4:
        if (size + length > ROOM)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    default:
        return at > 0 ? at : 1;
    }
}

/* In memory of exactly this size, so that a sanitizer sees a byte too far. */
static void run(const uint8_t *bytes, size_t size) {
    uint8_t *exact = malloc(size ? size : 1);
    FUZZ_MUST(exact != NULL);
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    runs++;
}

static void replay_file(const char *path) {
    static uint8_t good[ROOM], bytes[ROOM];
    FILE *file = fopen(path, "rb");
    FUZZ_MUST(file != NULL);
    const size_t size = fread(good, 1, ROOM, file);
    FUZZ_MUST(feof(file) || fgetc(file) == EOF);
    fclose(file);
    run(good, size);
    uint64_t state = seed + ++files * 0x9E3779B97F4A7C15u;
    for (uint64_t i = 0; i < mutations && size > 0; i++) {
        size_t length = size;
        memcpy(bytes, good, size);
        for (uint32_t changes = draw(&state) % 4 + 1; changes > 0; changes--)
            length = mutate(bytes, length, &state);
        run(bytes, length);
    }
}

/* In the order of their names: the mutations of a file depend on its place. */
static void replay(const char *path) {
    struct stat info;
    FUZZ_MUST(stat(path, &info) == 0);
    if (!S_ISDIR(info.st_mode)) {
        replay_file(path);
        return;
    }
    struct dirent **entry;
    const int count = scandir(path, &entry, NULL, alphasort);
    FUZZ_MUST(count >= 0);
    for (int i = 0; i < count; i++) {
        char inside[4096];
        snprintf(inside, sizeof inside, "%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.')
            replay(inside);
        free(entry[i]);
    }
    free(entry);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-mutations=", 11) == 0)
            mutations = strtoull(argv[i] + 11, NULL, 10);
        else if (strncmp(argv[i], "-seed=", 6) == 0)
            seed = strtoull(argv[i] + 6, NULL, 10);
        else
            replay(argv[i]);
    }
    printf("%llu files, %llu runs\n", (unsigned long long)files, (unsigned long long)runs);
    return files == 0;
}
