/* A library of the right name that lacks nearly everything, as another program's stub may. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags) { return (int)flags; }

EXPORT int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return 0;
}
