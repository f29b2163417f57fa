/* Preloaded into a process that uses Oclgrind 21.10 (tests/test_oclgrind.py). It replaces functions
 * of the simulator, to see more of what kernels do wrong:
 *
 * - Oclgrind gives new memory with zeros, which hide that a kernel reads it before it writes. Here
 *   each new array of the device, local array and variable of a lane is filled with 0xff.
 * - OCLGRIND_UNINITIALIZED notes for each byte whether it was written. Of an array of the device
 * the original forgets this whenever the host writes a part of the array, and it never notes what
 *   kernels write to an array that the host did not write. Both give false reports. Here a new
 * array is noted as unwritten once, in its full size.
 *
 * The functions are methods of C++ classes, so they have the names of GCC's encoding. The notes
 * have no lock: with OCLGRIND_UNINITIALIZED the simulator must have one thread
 * (OCLGRIND_NUM_THREADS). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATE "_ZN8oclgrind6Memory14allocateBufferEmmPKh"
#define SPACE "_ZNK8oclgrind6Memory15getAddressSpaceEv"
#define BEGIN_NOTES "_ZN8oclgrind12ShadowMemoryC1ENS_12AddressSpaceEj"
#define NEW_NOTES "_ZN8oclgrind12ShadowMemory8allocateEmm"
#define WRITE_NOTES "_ZN8oclgrind12ShadowMemory5storeEPKhmm"

enum { ARRAYS = 1 << 16, ARRAY_SHIFT = 48 }; /* the top bits of an address are its array's number */
enum { OF_THE_DEVICE = 1 };                  /* an AddressSpace */

/* Memory::allocateBuffer, ShadowMemory::ShadowMemory, ShadowMemory::allocate, ShadowMemory::store
 */
size_t memory_allocate(void *memory, size_t bytes, unsigned long flags,
                       const unsigned char *contents) __asm__(ALLOCATE);
void notes_begin(void *notes, unsigned space, unsigned bits) __asm__(BEGIN_NOTES);
void notes_allocate(void *notes, size_t address, size_t bytes) __asm__(NEW_NOTES);
void notes_write(void *notes, const unsigned char *from, size_t address,
                 size_t bytes) __asm__(WRITE_NOTES);

static struct {
    size_t bytes;
    int noted;
} arrays[ARRAYS];                /* of the device */
static const void *device_notes; /* of the last context */

/* Finds a function of the simulator once. */
static void find(const char *name, void *function, size_t size) {
    void *library = dlopen("liboclgrind-21.10.so", RTLD_NOLOAD | RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "oclgrind_memory: there is no %s; the version is not 21.10\n", name);
        abort();
    }
    memcpy(function, &found, size);
}

#define REAL(name, function)                                                                       \
    static __typeof__(&(function)) call;                                                           \
    if (!call)                                                                                     \
    find(name, &call, sizeof call)

/* Bytes of 0xff; the next call of the thread may free them. */
static const unsigned char *ones(size_t bytes) {
    static _Thread_local unsigned char *held;
    static _Thread_local size_t capacity;
    if (capacity < bytes) {
        free(held);
        held = malloc(bytes);
        if (!held)
            abort(); /* out of memory in a test */
        memset(held, 0xff, bytes);
        capacity = bytes;
    }
    return held;
}

size_t memory_allocate(void *memory, size_t bytes, unsigned long flags,
                       const unsigned char *contents) {
    static unsigned (*space)(const void *memory);
    REAL(ALLOCATE, memory_allocate);
    if (!space)
        find(SPACE, &space, sizeof space);
    const size_t address = call(memory, bytes, flags, contents ? contents : ones(bytes));
    if (space(memory) == OF_THE_DEVICE) {
        arrays[address >> ARRAY_SHIFT].bytes = bytes;
        arrays[address >> ARRAY_SHIFT].noted = 0;
    }
    return address;
}

void notes_begin(void *notes, unsigned space, unsigned bits) {
    REAL(BEGIN_NOTES, notes_begin);
    call(notes, space, bits);
    if (space == OF_THE_DEVICE) {
        device_notes = notes;
        for (int i = 0; i < ARRAYS; ++i)
            arrays[i].noted = 0;
    } else if (device_notes == notes) {
        device_notes = NULL; /* that context is gone */
    }
}

void notes_write(void *notes, const unsigned char *from, size_t address, size_t bytes) {
    REAL(WRITE_NOTES, notes_write);
    if (notes == device_notes && !arrays[address >> ARRAY_SHIFT].noted)
        notes_allocate(notes, address, bytes);
    call(notes, from, address, bytes);
}

void notes_allocate(void *notes, size_t address, size_t bytes) {
    const size_t array = address >> ARRAY_SHIFT, first = array << ARRAY_SHIFT;
    REAL(NEW_NOTES, notes_allocate);
    if (notes != device_notes) {
        call(notes, address, bytes);
    } else if (!arrays[array].noted) {
        arrays[array].noted = 1;
        call(notes, first, arrays[array].bytes);
        notes_write(notes, ones(arrays[array].bytes), first, arrays[array].bytes);
    }
}
